/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remains usable when lkgfs is gone for good: a copy of the served document as a plain file in the source
 * directory.
 *
 *     .lkgfs-fallback/<view name>   always; mode and owner of the view file
 *     <view name>                   only where the source directory has no such file
 *
 * Both carry the extended attribute user.lkgfs.fallback, whose value is the SHA-256 of the content. A file whose content
 * has the digest that it carries is never a base. Somebody who edits the copy under the view's name means it as a base:
 * from then on it is one, and whoever writes copies next takes the attribute away.
 *
 * The engine, for which the source directory is read-only, only looks; lkgfsd writes (fs/supervisor/fallback.c), out of
 * the blobs of the publication and with the names, owners and modes of its own settings.
 *
 * Where extended attributes are not supported only the copy in .lkgfs-fallback is written.
 */
#pragma once

#include <sys/types.h>

#include <lkg/base.h>

#define LKG_FALLBACK_DIR   ".lkgfs-fallback"
#define LKG_FALLBACK_XATTR "user.lkgfs.fallback"

/* The view file of a component. */
struct lkg_fallback_file {
        const char *name; /* borrowed; no slash */
        uid_t uid;
        gid_t gid;
        mode_t mode;
};

/** lkg_fallback_is_ours() - marked, and not edited since. One system call when it does not exist or is not marked. */
bool lkg_fallback_is_ours(int source_fd, const char *name);

/** lkg_fallback_is_copy() - the same of an open file, whose offset stays. */
bool lkg_fallback_is_copy(int fd);

/**
 * lkg_fallback_write() - bring the copies up to date; unchanged ones are not written.
 * @runtime_fd: the private runtime directory, whose blob @sha256 is the document
 *
 * A name that is taken by a file of somebody else stays as it is. Not synced: it matters after a death of ours, and a power
 * cut ends with our next start. Return: 0; -EBADMSG the blob is no such document; -errno.
 */
int lkg_fallback_write(int source_fd, int runtime_fd, const struct lkg_fallback_file *file,
                       const char *sha256);

/** lkg_fallback_withdraw() - the view name is not claimed any more: no copy under it may show through. 0 or -errno. */
int lkg_fallback_withdraw(int source_fd, const char *name);
