/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File access: layers are opened without ever blocking or leaving the trusted path; our own state is written without ever
 * leaving half a file. No state; callable from any thread.
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

/** lkg_trust_root_alone() - do not trust the caller's own uid any more: for a process that is not an administrator itself. */
void lkg_trust_root_alone(void);
/** lkg_is_trusted_user() - root; this process's own uid, too, unless lkg_trust_root_alone() was called. */
bool lkg_is_trusted_user(uid_t uid);

/** lkg_path_below() - the part of @path below directory @top, or NULL; relative paths count as below. */
const char *lkg_path_below(const char *path, const char *top);

/**
 * lkg_path_exists() - does @path exist for open(2) by this process? access(2) would check the real user without the capabilities
 * that a process of another user than root may have. @dirfd: or AT_FDCWD
 */
bool lkg_path_exists(int dirfd, const char *path);

/* A directory that links must not lead out of. */
struct lkg_bounds {
        int root;         /* O_PATH */
        const char *path; /* absolute; a link to an absolute path below it counts as beneath */
};

/**
 * lkg_open_beneath() - lkg_open_trusted() for files below a directory that others may write to: no link
 * there can make us read a file elsewhere (like openat2(2) with RESOLVE_BENEATH, but absolute targets within are allowed).
 * @bounds: NULL = anywhere
 * @path:   relative to @dirfd
 * @way:    path to the same file from the root of @bounds
 *
 * Return: as lkg_open_trusted(); -EXDEV for a link that leads out.
 */
int lkg_open_beneath(const struct lkg_bounds *bounds, int dirfd, const char *path, const char *way,
                     struct stat *ret_st, struct lkg_error *err);
/** lkg_open_directory() - O_PATH of a directory below @bounds; @follow: also a final link. -EXDEV for a link that leads out. */
int lkg_open_directory(const struct lkg_bounds *bounds, const char *way, bool follow);

/**
 * lkg_open_plain() - open for reading a file that another process of ours has made and might have replaced: not a link, a regular
 * file, and never waiting for the other end of a FIFO.
 * @name: one name in @dirfd
 *
 * Return: the descriptor; -EINVAL another type; -errno.
 */
int lkg_open_plain(int dirfd, const char *name);
/** lkg_open_plain_directory() - the same for a directory. Return: the descriptor; -errno. */
int lkg_open_plain_directory(int dirfd, const char *name);

/**
 * lkg_open_owned() - open for reading a file that decides what root does: only root may be able to change it.
 * @path: absolute
 *
 * As lkg_open_trusted(), but the rule for links holds for every path: the file and every directory on the way are owned
 * by root (or by the caller's own uid when that is not 0) and not writable by group or others. Executing @path
 * afterwards executes the file that was checked, because nobody else could put another one there. Rules: docs/specification.md 3.1.
 *
 * Return: as lkg_open_trusted(); -EPERM for a way that is not trusted.
 */
int lkg_open_owned(const char *path, struct stat *ret_st, struct lkg_error *err);

/**
 * lkg_make_owned_way() - open a directory whose place in the tree only root decides, make it and its parents with @mode if need be.
 * @path: absolute
 *
 * Every directory and link on the way as in lkg_open_owned(), before anything is made below it. Whose the directory itself is,
 * is for the caller to judge: in a sticky directory its owner can put another one in its place.
 *
 * Return: the descriptor, for reading; -EPERM for a way that is not trusted; another -errno.
 */
int lkg_make_owned_way(const char *path, mode_t mode, struct lkg_error *err);

/**
 * lkg_judge_program() - may root run the program @path? A file of lkg_open_owned() that is executable.
 * @ret_st: of the program; may be NULL
 *
 * Return: 0; as lkg_open_owned(); -EACCES: not executable.
 */
int lkg_judge_program(const char *path, struct stat *ret_st, struct lkg_error *err);

/** lkg_read_file() - whole descriptor into heap memory with a final NUL. -EFBIG over @max. Caller frees. */
int lkg_read_file(int fd, size_t max, char **ret, size_t *ret_size, struct lkg_error *err);

/**
 * lkg_map_file() - map @size bytes of @fd, shared with other processes that map it.
 *
 * All of its space is allocated at once: a full file system is an error here and not a SIGBUS later. A process that makes the
 * file shorter does not end us either: the missing part reads as zeros from then on, and is not shared any more. At most 8
 * files at a time, one thread at a time.
 * Return: 0 or -errno.
 */
int lkg_map_file(int fd, size_t size, void **ret);
/** lkg_unmap_file() - of lkg_map_file(), or NULL. */
void lkg_unmap_file(void *p);
/** lkg_map_was_cut() - have we noticed that the file was made shorter? */
bool lkg_map_was_cut(const void *p);

/**
 * lkg_wait_readable() - until @fd has something to read, or, of a pidfd, its process has ended. Looks once at least.
 * @deadline_ns: CLOCK_BOOTTIME. Return: false: it is over, or poll(2) failed.
 */
bool lkg_wait_readable(int fd, uint64_t deadline_ns);
/** lkg_write_all() - write all of @bytes to @fd, in several steps if the kernel takes only a part. Return: 0 or -errno. */
int lkg_write_all(int fd, const void *bytes, size_t size);

/* Suffix of a file that is not complete yet; no identifier of a configuration contains a `~`. */
#define LKG_TMP_SUFFIX "~tmp"

/** lkg_is_tmp_name() - is this a temporary name of lkg_write_file_atomic()? After a crash, a file of such a name may be removed. */
bool lkg_is_tmp_name(const char *name);

/** lkg_sync_dir() - fsync of a directory, even if it was opened with O_PATH. Return: 0 or -errno. */
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

/* Identity of a file when we read it; equal identities mean the same bytes (core/base/file.c has the race rule). */
struct lkg_file_id {
        uint64_t dev, ino, size;
        int64_t mtime_ns, ctime_ns;
};
void lkg_file_id_from_stat(const struct stat *st, struct lkg_file_id *ret);
bool lkg_file_id_equal(const struct lkg_file_id *a, const struct lkg_file_id *b);
