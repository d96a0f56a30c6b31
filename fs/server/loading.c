/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a new publication: reads it, parses it, replaces the previous one and retires its nodes. */
#include <fcntl.h>

#include <lkg/file.h>

#include "file-server.h"

static int read_manifest(struct lkg_publication **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        size_t size = 0;
        int r;

        fd = lkg_open_plain(server.runtime, LKG_PUBLICATION_CURRENT);
        if (fd < 0)
                return lkg_error_set(err, fd, NULL, "open the publication");
        r = lkg_read_file(fd, LKG_MANIFEST_BYTES_MAX, &text, &size, err);
        if (r < 0)
                return r;
        return lkg_publication_parse(text, size, ret, err);
}

/* One load at a time, so that a newer publication is never replaced by an older one. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static int load(struct lkg_error *err)
{
        struct lkg_publication *publication = NULL;
        struct publication_ref *ref, *old;
        int r = read_manifest(&publication, err);

        if (r < 0)
                return r;
        if (server.publication && server.publication->publication->number == publication->number) {
                lkg_publication_free(publication);
                return 0;
        }
        ref = calloc(1, sizeof(*ref));
        if (!ref) {
                lkg_publication_free(publication);
                return lkg_error_set(err, -ENOMEM, NULL, "publication %llu",
                                     (unsigned long long)publication->number);
        }
        ref->publication = publication;
        ref->refs = 1;
        (void)pthread_mutex_lock(&server.publication_lock);
        old = server.publication;
        server.publication = ref;
        (void)pthread_mutex_unlock(&server.publication_lock);
        atomic_store(&server.shm->publication, publication->number);
        if (old)
                publication_put(old);
        nodes_retire(publication);
        return 0;
}

int publication_load(struct lkg_error *err)
{
        int r;

        (void)pthread_mutex_lock(&load_lock);
        r = load(err);
        (void)pthread_mutex_unlock(&load_lock);
        return r;
}
