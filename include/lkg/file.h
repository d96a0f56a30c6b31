/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files the way this product may touch them: layers without ever blocking or leaving the trusted path, our own state
 * without ever leaving half a file. No state; callable from any thread.
 */
#pragma once

#include <sys/stat.h>

#include <lkg/error.h>

/**
 * lkg_open_trusted() - open a layer or configuration file for reading.
 * @dirfd: directory @path is relative to (an O_PATH descriptor will do), or AT_FDCWD
 * @path:  relative or absolute
 *
 * openat2 with RESOLVE_NO_MAGICLINKS, O_NONBLOCK|O_NOCTTY|O_CLOEXEC; the result is a regular file. A symlink (last or
 * on the way) is followed only when its target and every directory passed on the way are owned by root (or by the
 * caller's own uid when that is not 0: a tool run by a plain user) and not writable by group or others (sticky
 * directories excepted for entries owned by root). A plain, symlink-free path below @dirfd needs no such owner.
 * Rules: docs/specification.md 3.1.
 *
 * Return: the descriptor; -ENOENT (err set too); -ELOOP for an untrusted link; -EINVAL not a regular file (the message
 * says what it is: directory, FIFO, socket, device); another -errno.
 */
int lkg_open_trusted(int dirfd, const char *path, struct stat *ret_st, struct lkg_error *err);

/** lkg_trust_root_alone() - from now on "the caller's own uid" is nobody to trust: for a process that is not itself an administrator. */
void lkg_trust_root_alone(void);
/** lkg_is_trusted_user() - root, or, but for the above, this process's own. */
bool lkg_is_trusted_user(uid_t uid);

/** lkg_path_below() - the part of @path below directory @top, or NULL; relative paths count as below. */
const char *lkg_path_below(const char *path, const char *top);

/**
 * lkg_path_exists() - as this process would find it when it opens it: access(2) asks for the real user, without the capabilities
 * that a process of another user than root has. @dirfd: or AT_FDCWD
 */
bool lkg_path_exists(int dirfd, const char *path);

/* A directory that links may not lead out of. */
struct lkg_bounds {
        int root;         /* O_PATH */
        const char *path; /* absolute; a link to an absolute path below it stays beneath, too */
};

/**
 * lkg_open_beneath() - lkg_open_trusted() for what is below a directory that somebody else may write to, so that no link
 * there makes us read a file elsewhere (openat2(2), RESOLVE_BENEATH, but for absolute targets within).
 * @bounds: NULL = anywhere
 * @path:   relative to @dirfd
 * @way:    to the same file from the root of @bounds
 *
 * Return: as lkg_open_trusted(); -EXDEV for a link that leads out.
 */
int lkg_open_beneath(const struct lkg_bounds *bounds, int dirfd, const char *path, const char *way,
                     struct stat *ret_st, struct lkg_error *err);
/** lkg_open_directory() - O_PATH of a directory below; @follow: the last link, too. -EXDEV when one leads out. */
int lkg_open_directory(const struct lkg_bounds *bounds, const char *way, bool follow);

/**
 * lkg_open_plain() - for reading, a file that another process of ours has made and might have exchanged: no link, no waiting
 * for the other end of a FIFO, a regular file.
 * @name: one name in @dirfd
 *
 * Return: the descriptor; -EINVAL another type; -errno.
 */
int lkg_open_plain(int dirfd, const char *name);
/** lkg_open_plain_directory() - such a directory, for reading and for names in it. Return: the descriptor; -errno. */
int lkg_open_plain_directory(int dirfd, const char *name);

/**
 * lkg_open_owned() - open a file that decides what root does, for reading: nobody else may have a say in it.
 * @path: absolute
 *
 * As lkg_open_trusted(), but the rule for links holds for every path: the file and every directory on the way are owned
 * by root (or by the caller's own uid when that is not 0) and not writable by group or others. Whoever executes @path
 * afterwards executes what was looked at, because nobody else could put another file there. Rules: docs/specification.md 3.1.
 *
 * Return: as lkg_open_trusted(); -EPERM for a way that is not trusted.
 */
int lkg_open_owned(const char *path, struct stat *ret_st, struct lkg_error *err);

/** lkg_read_file() - whole descriptor into heap memory with a final NUL. -EFBIG over @max. Caller frees. */
int lkg_read_file(int fd, size_t max, char **ret, size_t *ret_size, struct lkg_error *err);

/**
 * lkg_map_file() - @size bytes of @fd in memory that is shared with whoever maps it, too.
 *
 * All of its space is taken at once: a full file system is an error here and no SIGBUS later. Who makes the file shorter does not
 * end us either: what is gone is zeros from then on, which nobody shares. Few files at a time (8), one thread at a time.
 * Return: 0 or -errno.
 */
int lkg_map_file(int fd, size_t size, void **ret);
/** lkg_unmap_file() - of lkg_map_file(), or NULL. */
void lkg_unmap_file(void *p);
/** lkg_map_was_cut() - has somebody made the file shorter, and have we noticed? */
bool lkg_map_was_cut(const void *p);

/** lkg_write_all() - all of @bytes to @fd, however often the kernel takes only a part. Return: 0 or -errno. */
int lkg_write_all(int fd, const void *bytes, size_t size);

/* Behind the name of a file that is not complete yet; no identifier of a configuration can have a `~`. */
#define LKG_TMP_SUFFIX "~tmp"

/** lkg_is_tmp_name() - would lkg_write_file_atomic() make such a name? What a crash left under one may be removed. */
bool lkg_is_tmp_name(const char *name);

/** lkg_sync_dir() - fsync of a directory, also of one that was opened with O_PATH. Return: 0 or -errno. */
int lkg_sync_dir(int dirfd);

/**
 * lkg_write_file_atomic() - replace @name in @dirfd: temporary name, write, optional fsync, rename, optional fsync of
 * the directory. Old or new content, never a third (docs/specification.md 4.16).
 */
int lkg_write_file_atomic(int dirfd, const char *name, const void *data, size_t size, mode_t mode,
                          bool durable, struct lkg_error *err);

/** lkg_bare_name_ok() - one file name: not empty, no slash, not `.` or `..`, at most NAME_MAX bytes. */
bool lkg_bare_name_ok(const char *name);

/** lkg_mkdir_p() - create @path and its parents with @mode; an existing directory is fine. */
int lkg_mkdir_p(int dirfd, const char *path, mode_t mode, struct lkg_error *err);

/* What a file was when we read it; equal identities mean "the same bytes", see core/base/file.c for the race rule. */
struct lkg_file_id {
        uint64_t dev, ino, size;
        int64_t mtime_ns, ctime_ns;
};
void lkg_file_id_from_stat(const struct stat *st, struct lkg_file_id *ret);
bool lkg_file_id_equal(const struct lkg_file_id *a, const struct lkg_file_id *b);
