/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory as a whole: its lock, its format, and leftovers of a crash. See store.h. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/file.h>

#include <lkg/file.h>
#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/lifecycle.h>

#include "store-internal.h"

#define LOCK_PAUSE_NS (100 * (long)LKG_NSEC_PER_MSEC)
#define FORMAT_NAME   "format"
#define FORMAT_PREFIX "lkgfs-state "
#define FORMAT_NUMBER UINT64_C(1)
#define FORMAT_MAX    64u
/* `lock` is that of lkgfsd; this one also excludes two engines of one lkgfsd */
#define LOCK_NAME "store.lock"

/* ---- format ---- */

enum format { FORMAT_ABSENT, FORMAT_OURS, FORMAT_DAMAGED };

/* Return: enum format; -EPROTO: newer. */
static int judge_format(const char *text, struct lkg_error *err)
{
        const char *digits = text + strlen(FORMAT_PREFIX);
        uint64_t n;

        if (strncmp(text, FORMAT_PREFIX, strlen(FORMAT_PREFIX)) != 0 || *digits < '0' || *digits > '9')
                return FORMAT_DAMAGED;
        errno = 0;
        n = strtoull(digits, NULL, 10); /* too many digits: ERANGE and UINT64_MAX, which is newer */
        if (n > FORMAT_NUMBER)
                return lkg_refuse_because(err, -EPROTO, NULL,
                                          "the state directory was written by a newer lkgfs (format %" PRIu64
                                          ", this one knows %" PRIu64
                                          "); nothing was touched: use that lkgfs, or another stateDir",
                                          n, FORMAT_NUMBER);
        return lkg_record_parse_u64(digits, &n) == 0 && n == FORMAT_NUMBER ? FORMAT_OURS : FORMAT_DAMAGED;
}

static int read_format(int fd, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        int r = lkg_record_read_text(fd, FORMAT_NAME, FORMAT_MAX, &text, &size, err);

        if (r == -ENOENT)
                return FORMAT_ABSENT;
        if (r == -EBADMSG || r == -EFBIG)
                return FORMAT_DAMAGED;
        return r < 0 ? r : judge_format(text, err);
}

/* A directory without this file, from an older lkgfs, has this format. */
static int make_format(int fd, bool damaged, struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_where where = { .file = FORMAT_NAME };
        char text[FORMAT_MAX];
        int n = snprintf(text, sizeof(text), FORMAT_PREFIX "%" PRIu64 "\n", FORMAT_NUMBER);

        if (damaged) {
                lkg_report_add(report, LKG_WARNING, 4005, &where,
                               "does not say which format the state directory has (want \"" FORMAT_PREFIX
                               "%" PRIu64 "\"), written anew",
                               FORMAT_NUMBER);
                lkg_store_put_aside(fd, FORMAT_NAME);
        }
        return lkg_write_file_atomic(fd, FORMAT_NAME, text, (size_t)n, 0600, true, err);
}

/* ---- lock ---- */

static int busy(int lock, struct lkg_error *err)
{
        char text[32];
        ssize_t n = pread(lock, text, sizeof(text) - 1, 0);
        uint64_t pid = 0;

        text[n > 0 ? n : 0] = '\0';
        if (lkg_record_parse_u64(text, &pid) < 0 || pid == 0 || pid > INT_MAX)
                return lkg_refuse_because(err, -EBUSY, NULL,
                                          "another lkgfs uses the state directory; stop it first, or use "
                                          "another stateDir");
        return lkg_refuse_because(err, -EBUSY, NULL,
                                  "another lkgfs (pid %" PRIu64
                                  ") uses the state directory; stop it first, or use another stateDir",
                                  pid);
}

/*
 * On a read-only file system, lock a descriptor for reading: nothing can be saved then, but everything that was saved is still
 * used.
 */
static int take_lock(int fd, bool *ret_read_only, struct lkg_error *err)
{
        const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        LKG_CLEANUP(lkg_closep) int lock = openat(fd, LOCK_NAME, O_RDWR | O_CREAT | flags, 0600);
        char text[32];
        int n;

        *ret_read_only = lock < 0 && errno == EROFS;
        if (*ret_read_only)
                lock = openat(fd, LOCK_NAME, O_RDONLY | flags);
        if (lock < 0)
                return lkg_error_set(err, *ret_read_only ? -EROFS : -errno, NULL,
                                     "open " LOCK_NAME " of the state directory");
        if (flock(lock, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? busy(lock, err)
                                            : lkg_error_set(err, -errno, NULL, "lock the state directory");
        n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
        if (!*ret_read_only && ftruncate(lock, 0) == 0 && pwrite(lock, text, (size_t)n, 0) < 0)
                lkg_log_debug("no process id in " LOCK_NAME ": %s",
                              strerror(errno)); /* only a hint for people */
        return LKG_STEAL_FD(lock);
}

/* ---- sweep ---- */

/* Errors are ignored: leftovers are never read, and are removed the next time. */
static void sweep(int parent, const char *name, unsigned depth)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(parent, name);
        const struct dirent *entry;

        while (dir && (entry = lkg_dir_next(dir, NULL))) {
                if (!lkg_is_tmp_name(entry->d_name)) {
                        if (depth > 0 && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
                                sweep(dirfd(dir), entry->d_name, depth - 1);
                } else if (unlinkat(dirfd(dir), entry->d_name, 0) < 0) {
                        (void)lkg_store_remove_dir(dirfd(dir), entry->d_name, LKG_RELEASE_DEPTH);
                }
        }
}

/* ---- the whole ---- */

static int prepare(int fd, int format, struct lkg_report *report, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int checkpoints = -EBADF, dynamic = -EBADF;
        int r = format == FORMAT_OURS ? 0 : make_format(fd, format == FORMAT_DAMAGED, report, err);

        if (r < 0)
                return r;
        checkpoints = lkg_store_make_path(fd, LKG_CHECKPOINTS, report, err);
        dynamic = checkpoints < 0 ? checkpoints : lkg_store_make_path(fd, LKG_DYNAMIC, report, err);
        if (dynamic < 0)
                return dynamic;
        sweep(fd, ".", 0);
        sweep(fd, "components", 0);
        sweep(fd, LKG_CHECKPOINTS, 2); /* uid, version */
        sweep(fd, LKG_DYNAMIC, 4);     /* component, releases, release, bad */
        return 0;
}

int lkg_store_lock(int state_fd, unsigned n_tries, struct lkg_store_lock *ret, struct lkg_error *err)
{
        const struct timespec moment = { .tv_nsec = LOCK_PAUSE_NS };
        bool read_only = false;
        int format = read_format(state_fd, err), lock;

        /* Checked before the lock, because creating the lock file would change a directory of a newer lkgfs. */
        if (format < 0)
                return format;
        lock = take_lock(state_fd, &read_only, err);
        for (unsigned i = 1; lock == -EBUSY && i < n_tries; i++) {
                (void)nanosleep(&moment, NULL);
                lock = take_lock(state_fd, &read_only, err);
        }
        if (lock < 0)
                return lock;
        *ret = (struct lkg_store_lock){ .fd = lock, .read_only = read_only };
        return 0;
}

int lkg_store_open_locked(int state_fd, const struct lkg_store_lock *taken, struct lkg_store *ret,
                          struct lkg_report *report, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int lock = taken->fd;
        int format = read_format(state_fd, err), r; /* again: it may have changed before the lock */

        if (format < 0)
                return format;
        if (taken->read_only) {
                lkg_report_add(report, LKG_WARNING, 6013, NULL,
                               "the state directory is on a read-only file system: what is stored still "
                               "serves, nothing new is remembered");
        } else {
                r = prepare(state_fd, format, report, err);
                if (r < 0)
                        return r;
        }
        *ret = (struct lkg_store){ .fd = state_fd,
                                   .lock_fd = LKG_STEAL_FD(lock),
                                   .read_only = taken->read_only };
        return 0;
}

int lkg_store_open(int state_fd, struct lkg_store *ret, struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_store_lock lock;
        int r = lkg_store_lock(state_fd, /* n_tries= */ 1, &lock, err);

        return r < 0 ? r : lkg_store_open_locked(state_fd, &lock, ret, report, err);
}

void lkg_store_close(struct lkg_store *store)
{
        *store = (struct lkg_store){ .fd = -EBADF, .lock_fd = lkg_close(store->lock_fd) };
}
