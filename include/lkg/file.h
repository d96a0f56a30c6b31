/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File access: layers are opened without blocking and without leaving the trusted path; our own state is
 * never left half written. No state; callable from any thread.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <lkg/base.h>

/**
 * lkg_open_trusted() - open a layer or configuration file for reading.
 * @dirfd: directory that @path is relative to (O_PATH is sufficient), or AT_FDCWD
 * @path:  relative or absolute
 *
 * openat2 with RESOLVE_NO_MAGICLINKS, O_NONBLOCK|O_NOCTTY|O_CLOEXEC; the result is a regular file. A symlink
 * (the last or an earlier component) is followed only if its target and every directory of the path are
 * owned by root (or by the caller's own uid if that is not 0: a tool run by a plain user) and not writable
 * by group or others (except sticky directories for entries owned by root). A path below @dirfd without
 * symlinks needs no such owner. Rules: docs/specification.md 3.1.
 *
 * Return: the descriptor; -ENOENT (err is also set); -ELOOP: an untrusted link; -EINVAL: not a regular file
 * (the message says what it is: directory, FIFO, socket, device); another -errno.
 */
int lkg_open_trusted(int dirfd, const char *path, struct stat *ret_st, struct lkg_error *err);

/**
 * lkg_trust_root_alone() - no longer trust the caller's own uid: for a process that is not an
 * administrator's.
 */
void lkg_trust_root_alone(void);
/**
 * lkg_is_trusted_user() - is it root? Or this process's own uid, unless lkg_trust_root_alone() was called.
 */
bool lkg_is_trusted_user(uid_t uid);

/** lkg_path_below() - the part of @path below directory @top, or NULL; relative paths count as below. */
const char *lkg_path_below(const char *path, const char *top);

/**
 * lkg_path_exists() - does @path exist for open(2) by this process? access(2) would check the real user
 * without the capabilities that a process of a user other than root may have. @dirfd: or AT_FDCWD
 */
bool lkg_path_exists(int dirfd, const char *path);

/* A directory that links must not leave. */
struct lkg_bounds {
        int root;         /* O_PATH */
        const char *path; /* absolute; a link to an absolute path below it is within the bounds */
};

/**
 * lkg_open_beneath() - lkg_open_trusted() for files below a directory that others may write to: no link
 * there can make us read a file elsewhere (like openat2(2) with RESOLVE_BENEATH, but absolute targets within are allowed).
 * @bounds: NULL = anywhere
 * @path:   relative to @dirfd
 * @way:    path of the same file from the root of @bounds
 *
 * Return: see lkg_open_trusted(); -EXDEV: a link that leaves the bounds.
 */
int lkg_open_beneath(const struct lkg_bounds *bounds, int dirfd, const char *path, const char *way,
                     struct stat *ret_st, struct lkg_error *err);
/**
 * lkg_open_directory() - O_PATH of a directory below @bounds; @follow: also a final link. -EXDEV: a link
 * that leaves them.
 */
int lkg_open_directory(const struct lkg_bounds *bounds, const char *way, bool follow);

/**
 * lkg_open_plain() - open a file for reading that another process of ours has made and might have replaced:
 * only a regular file, no symlink, and without waiting for the other end of a FIFO.
 * @name: one name in @dirfd
 *
 * Return: the descriptor; -EINVAL: another type; -errno.
 */
int lkg_open_plain(int dirfd, const char *name);
/** lkg_open_plain_directory() - the same for a directory. Return: the descriptor; -errno. */
int lkg_open_plain_directory(int dirfd, const char *name);

/**
 * lkg_open_owned() - open a file for reading that determines what root does: only root may be able to change
 * it.
 * @path: absolute
 *
 * Like lkg_open_trusted(), but the rule for links applies to every path: the file and every directory of the
 * path are owned by root (or by the caller's own uid if that is not 0) and not writable by group or others.
 * Executing @path afterwards executes the file that was checked, because no other user could replace it.
 * Rules: docs/specification.md 3.1.
 *
 * Return: see lkg_open_trusted(); -EPERM: the path is not trusted.
 */
int lkg_open_owned(const char *path, struct stat *ret_st, struct lkg_error *err);

/**
 * lkg_make_owned_way() - open a directory whose place in the tree only root controls; create it and its
 * parents with @mode if necessary.
 * @path: absolute
 *
 * Every directory and link of the path is checked as in lkg_open_owned(), before anything is created below
 * it. The caller must check the owner of the directory itself: in a sticky directory its owner can replace
 * it.
 *
 * Return: the descriptor, for reading; -EPERM: the path is not trusted; another -errno.
 */
int lkg_make_owned_way(const char *path, mode_t mode, struct lkg_error *err);

/**
 * lkg_judge_program() - may root run the program @path? A file of lkg_open_owned() that is executable.
 * @ret_st: of the program; may be NULL
 *
 * Return: 0; see lkg_open_owned(); -EACCES: not executable.
 */
int lkg_judge_program(const char *path, struct stat *ret_st, struct lkg_error *err);

/**
 * lkg_read_file() - read a whole file into heap memory with a final NUL. -EFBIG: over @max. Caller frees.
 */
int lkg_read_file(int fd, size_t max, char **ret, size_t *ret_size, struct lkg_error *err);

/**
 * lkg_map_file() - map @size bytes of @fd, shared with other processes that map it.
 *
 * All of its space is allocated at once: a full file system is an error here and not a SIGBUS later. A
 * process that truncates the file does not kill us either: the missing part reads as zeros from then on, and
 * is no longer shared. At most 8 files at a time, one thread at a time.
 * Return: 0 or -errno.
 */
int lkg_map_file(int fd, size_t size, void **ret);
/** lkg_unmap_file() - unmap memory of lkg_map_file(), or NULL. */
void lkg_unmap_file(void *p);

/**
 * lkg_wait_readable() - wait until @fd is readable or, for a pidfd, its process has ended. Checks at least
 * once.
 * @deadline_ns: CLOCK_BOOTTIME.
 * Return: false: timeout, or poll(2) failed.
 */
bool lkg_wait_readable(int fd, uint64_t deadline_ns);
/**
 * lkg_write_all() - write all of @bytes to @fd, in several steps if the kernel accepts only a part.
 * Return: 0 or -errno.
 */
int lkg_write_all(int fd, const void *bytes, size_t size);

/* Suffix of a file that is not complete yet; no identifier of a configuration contains a `~`. */
#define LKG_TMP_SUFFIX "~tmp"

/**
 * lkg_is_tmp_name() - is this a temporary name of lkg_write_file_atomic()? After a crash, such files may be
 * removed.
 */
bool lkg_is_tmp_name(const char *name);
/** lkg_is_dropin_name() - is it read in a directory like config.d, or that of a unit? `.conf` at its end, no point before. */
bool lkg_is_dropin_name(const char *name);

/** lkg_sync_dir() - fsync of a directory, even if it was opened with O_PATH. Return: 0 or -errno. */
int lkg_sync_dir(int dirfd);

/* What a written file is. Owner and mode are set on its descriptor before anybody knows it by @name: who may write the directory may exchange
   each name at each moment. */
struct lkg_new_file {
        mode_t mode;
        bool owned; /* uid and gid are set */
        uid_t uid;
        gid_t gid;
        bool durable;
        bool only_new; /* -EEXIST if @name exists */
};

/**
 * lkg_write_file_as() - replace @name in @dirfd: temporary name, write, optional fsync, rename, optional fsync of
 * the directory. Old or new content, never a third (docs/specification.md 4.16).
 */
int lkg_write_file_as(int dirfd, const char *name, const void *data, size_t size,
                      const struct lkg_new_file *as, struct lkg_error *err);
/** lkg_write_file_atomic() - the same for a file of the caller. */
int lkg_write_file_atomic(int dirfd, const char *name, const void *data, size_t size, mode_t mode,
                          bool durable, struct lkg_error *err);

/**
 * lkg_create_anew() - open a new file for writing; what has the name is cleared first (lkg_clear_name()).
 * Return: descriptor; -errno.
 */
int lkg_create_anew(int dirfd, const char *name, mode_t mode);
/**
 * lkg_write_new() - the same, with @data in it, for us alone. It is not atomic: the name must mean nothing to others yet.
 * @durable: flush the data, but not the directory
 * Return: 0; -errno: there is no such file.
 */
int lkg_write_new(int dirfd, const char *name, const void *data, size_t size, bool durable,
                  struct lkg_error *err);

/** lkg_put_aside() - rename @name in @dirfd, whatever it is, to a hidden name of its own. Return: 0 or -errno. */
int lkg_put_aside(int dirfd, const char *name);
/** lkg_clear_name() - remove @name in @dirfd; a directory, which nobody of us made there, is put aside. Return: 0 or -errno. */
int lkg_clear_name(int dirfd, const char *name);

/**
 * lkg_bare_name_ok() - is it a valid file name: not empty, no slash, not `.` or `..`, at most NAME_MAX
 * bytes?
 */
bool lkg_bare_name_ok(const char *name);

/**
 * lkg_dir_open() - open @name of @dirfd, which may be an O_PATH descriptor, to list what is in it; never through a symlink. "." = @dirfd itself
 * Return: NULL: see errno.
 */
DIR *lkg_dir_open(int dirfd, const char *name);
/** lkg_dir_next() - the next entry except `.` and `..`. NULL: the end, or @ret_error, which may be NULL, is -errno. */
const struct dirent *lkg_dir_next(DIR *dir, int *ret_error);
static inline void lkg_dir_closep(DIR **dir)
{
        if (*dir)
                (void)closedir(*dir);
        *dir = NULL;
}

/** lkg_mkdir_p() - create @path and its parents with @mode; an existing directory is fine. */
int lkg_mkdir_p(int dirfd, const char *path, mode_t mode, struct lkg_error *err);

/* Identity of a file when we read it; equal identities mean the same bytes (core/base/file.c has the race rule). */
struct lkg_file_id {
        uint64_t dev, ino, size;
        int64_t mtime_ns, ctime_ns;
};
void lkg_file_id_from_stat(const struct stat *st, struct lkg_file_id *ret);
bool lkg_file_id_equal(const struct lkg_file_id *a, const struct lkg_file_id *b);
