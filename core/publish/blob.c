/* SPDX-License-Identifier: Apache-2.0 */
/* Content-named files on tmpfs: see blob.h. */
#include <fcntl.h>
#include <search.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/publication.h>

#include "blob.h"

static int compare(const void *a, const void *b)
{
        return strcmp(((const struct lkg_blob *)a)->sha256, ((const struct lkg_blob *)b)->sha256);
}

void lkg_blobs_deinit(struct lkg_blobs *blobs)
{
        tdestroy(blobs->tree, free);
        blobs->tree = NULL;
        blobs->dirfd = lkg_close(blobs->dirfd);
}

struct lkg_blob *lkg_blob_find(struct lkg_blobs *blobs, const char *sha256)
{
        struct lkg_blob key, **node;

        memcpy(key.sha256, sha256, LKG_SHA256_HEX);
        node = tfind(&key, &blobs->tree, compare);
        return node ? *node : NULL;
}

static struct lkg_blob *add(struct lkg_blobs *blobs, const char *sha256, uint64_t size)
{
        struct lkg_blob *blob = lkg_must(calloc(1, sizeof(*blob)));

        memcpy(blob->sha256, sha256, LKG_SHA256_HEX);
        blob->size = size;
        blob->refs = 1;
        (void)lkg_must(tsearch(blob, &blobs->tree, compare));
        return blob;
}

int lkg_blob_put(struct lkg_blobs *blobs, const char *sha256, const void *data, size_t size,
                 struct lkg_blob **ret, struct lkg_error *err)
{
        char digest[LKG_SHA256_HEX];
        struct lkg_blob *blob;
        int r = 0;

        if (!sha256) {
                (void)lkg_need(lkg_sha256_hex(data, size, digest));
                sha256 = digest;
        }
        blob = lkg_blob_find(blobs, sha256);
        /*
         * Written directly under its final name: no manifest names it before it is complete, and one that a killed
         * engine left incomplete is shorter than it should be.
         */
        if (!blob || blob->size != size)
                r = lkg_write_new(blobs->dirfd, sha256, data, size, /* durable= */ false, NULL);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "write blob");
        if (blob)
                blob->size = size;
        *ret = blob ? lkg_blob_ref(blob) : add(blobs, sha256, size);
        return 0;
}

struct lkg_blob *lkg_blob_ref(struct lkg_blob *blob)
{
        if (blob)
                blob->refs++;
        return blob;
}

struct lkg_blob *lkg_blob_unref(struct lkg_blobs *blobs, struct lkg_blob *blob)
{
        if (!blob || --blob->refs > 0)
                return NULL;
        (void)unlinkat(blobs->dirfd, blob->sha256, 0);
        tdelete(blob, &blobs->tree, compare);
        free(blob);
        return NULL;
}

int lkg_blobs_open(int runtime_fd, struct lkg_blobs *ret, struct lkg_blob ***ret_all, size_t *ret_n,
                   struct lkg_error *err)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = NULL;
        struct lkg_blob **all = NULL;
        const struct dirent *e;
        struct stat st;
        size_t n = 0;
        int r = lkg_mkdir_p(runtime_fd, LKG_PUBLICATION_BLOBS, 0700, err);

        if (r < 0)
                return r;
        *ret = (struct lkg_blobs){ .dirfd = lkg_open_plain_directory(runtime_fd, LKG_PUBLICATION_BLOBS) };
        dir = ret->dirfd < 0 ? NULL : lkg_dir_open(ret->dirfd, ".");
        if (!dir)
                return lkg_error_set(err, ret->dirfd < 0 ? ret->dirfd : -errno, NULL, "open %s",
                                     LKG_PUBLICATION_BLOBS);
        while ((e = lkg_dir_next(dir, NULL))) {
                if (!lkg_is_sha256(e->d_name) ||
                    fstatat(ret->dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                (void)lkg_need(LKG_GROW(all, n));
                all[n++] = add(ret, e->d_name, (uint64_t)st.st_size);
        }
        *ret_all = all;
        *ret_n = n;
        return 0;
}
