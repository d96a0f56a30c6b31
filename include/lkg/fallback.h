/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fallback copies, which remain usable without lkgfs: the served document as a plain file in the source
 * directory.
 *
 *     .lkgfs-fallback/<view name>   always; mode and owner of the view file
 *     <view name>                   only where the source directory has no such file
 *
 * Both carry the extended attribute user.lkgfs.fallback, whose value is the SHA-256 of the content. A file
 * whose content matches this digest is never a base. A copy under the view's name that a user has edited is
 * intended as a base: from then on it is one, and the next write of copies removes the attribute. Rules:
 * docs/specification.md 2.16.
 *
 * The engine only checks them, because its source directory is read-only. lkgfsd writes them
 * (fs/supervisor/fallback-copies.c) from the blobs of the publication, with the names, owners and modes of
 * its own settings.
 *
 * Without support for extended attributes, only the copy in .lkgfs-fallback is written.
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

/**
 * lkg_fallback_is_ours() - is it marked, and unedited since? One system call if it does not exist or is not
 * marked.
 */
bool lkg_fallback_is_ours(int source_fd, const char *name);

/** lkg_fallback_is_copy() - the same for an open file; its offset does not change. */
bool lkg_fallback_is_copy(int fd);

/**
 * lkg_fallback_write() - bring the copies up to date; unchanged ones are not written.
 * @runtime_fd: the private runtime directory, whose blob @sha256 is the document
 *
 * A file of that name that is not ours is not changed. Not synced: the copies matter when lkgfs is gone, and
 * after a power failure our next start writes them again.
 * Return: 0; -EBADMSG: the blob is not that document; -errno.
 */
int lkg_fallback_write(int source_fd, int runtime_fd, const struct lkg_fallback_file *file,
                       const char *sha256);

/**
 * lkg_fallback_withdraw() - the view name is no longer claimed: remove the copy with that name. 0 or -errno.
 */
int lkg_fallback_withdraw(int source_fd, const char *name);
