/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blobs of the runtime directory: immutable content named by its SHA-256, shared by all publications that name it.
 *
 * References are counted; a blob without references is unlinked. The file server keeps what it still needs
 * by its own hard link (pinned/). A manifest names a blob only when it is complete. A file that is shorter
 * than its content was being written when the engine was killed; no reader uses it, and it is written again
 * or removed.
 */
#pragma once

#include <lkg/base.h>

struct lkg_blob {
        char sha256[LKG_SHA256_HEX]; /* first member: the key of the tree */
        uint64_t size;
        unsigned refs;
};

struct lkg_blobs {
        int dirfd;  /* blobs/ */
        void *tree; /* tsearch(3) */
};

/**
 * lkg_blobs_open() - create blobs/ below @runtime_fd, and take a reference to every file in it, because a reader may be using it.
 * @ret_all: these; caller frees
 */
int lkg_blobs_open(int runtime_fd, struct lkg_blobs *ret, struct lkg_blob ***ret_all, size_t *ret_n,
                   struct lkg_error *err);
/** lkg_blobs_deinit() - free everything; the files stay for the next engine. */
void lkg_blobs_deinit(struct lkg_blobs *blobs);

/**
 * lkg_blob_put() - get the blob with this content, written unless it exists. Caller owns one reference.
 * @sha256: its name, if that is known, or another one of this form that identifies these bytes; NULL = to be computed
 *
 * Return: 0; -ENOSPC ...
 */
int lkg_blob_put(struct lkg_blobs *blobs, const char *sha256, const void *data, size_t size,
                 struct lkg_blob **ret, struct lkg_error *err);

/** lkg_blob_find() - NULL: there is none. Borrowed. */
struct lkg_blob *lkg_blob_find(struct lkg_blobs *blobs, const char *sha256);
struct lkg_blob *lkg_blob_ref(struct lkg_blob *blob);
struct lkg_blob *lkg_blob_unref(struct lkg_blobs *blobs,
                                struct lkg_blob *blob); /* NULL is fine; returns NULL */
