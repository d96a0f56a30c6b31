/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops all privileges that the file server does not need to act for its callers in one directory. It
 * answers every user of the mount, so it is the first process that an attacker reaches.
 */
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "file-server.h"
#include "held-requests.h"

#include <lkg/process.h>

static const int capabilities[] = {
        /* the kernel has checked the caller's permission (default_permissions) */
        CAP_DAC_OVERRIDE,
        CAP_DAC_READ_SEARCH,
        /* chmod, chown, utimensat, ACLs for callers that may do it */
        CAP_FOWNER,
        CAP_FSETID,
        CAP_CHOWN,
        /* new files belong to the caller */
        CAP_SETUID,
        CAP_SETGID,
        /* device nodes and security.capability for callers that may do it */
        CAP_MKNOD,
        CAP_SETFCAP,
        /* /proc/PID/exe and namespaces of a caller */
        CAP_SYS_PTRACE,
        /* trusted.* attributes; other calls that need it are not on the lists below */
        CAP_SYS_ADMIN,
        -1,
};

static const struct lkg_syscall_argument arguments[] = {
        { SYS_socket, 0, true, false, 0, { 0 }, EAFNOSUPPORT }, /* of any family; a library may try */
        { SYS_unshare, 0, true, false, 1, { CLONE_FS }, 0 },    /* a umask for each thread */
};

static const int allowed[] = {
        /* the owner of a new file */
        SYS_setfsuid,
        SYS_setfsgid,
        SYS_capset,
        /* files of the source directory */
        SYS_mkdirat,
        SYS_mknodat,
        SYS_unlinkat,
        SYS_linkat,
        SYS_symlinkat,
        SYS_renameat2,
        SYS_truncate,
        SYS_ftruncate,
        SYS_fallocate,
        SYS_fsync,
        SYS_fdatasync,
        SYS_syncfs,
        SYS_sync_file_range,
        SYS_copy_file_range,
        SYS_fchmod,
        SYS_fchmodat,
        SYS_fchown,
        SYS_fchownat,
        SYS_utimensat,
        SYS_flock,
        SYS_getxattr,
        SYS_lgetxattr,
        SYS_fgetxattr,
        SYS_setxattr,
        SYS_lsetxattr,
        SYS_fsetxattr,
        SYS_listxattr,
        SYS_llistxattr,
        SYS_flistxattr,
        SYS_removexattr,
        SYS_lremovexattr,
        SYS_fremovexattr,
        SYS_name_to_handle_at, /* files that a predecessor knew are found again by their handle */
        SYS_open_by_handle_at,
        SYS_splice,
        SYS_vmsplice,
/* the next supervisor connects to an existing socket; no other socket is ever created */
#ifdef SYS_accept /* s390x: accept4 with no flags */
        SYS_accept,
#endif
        SYS_sendmmsg,
        SYS_recvmmsg,
#ifdef SYS_renameat
        SYS_renameat,
#endif
#ifdef SYS_open
        SYS_chmod,
        SYS_chown,
        SYS_lchown,
        SYS_mkdir,
        SYS_rmdir,
        SYS_unlink,
        SYS_rename,
        SYS_link,
        SYS_symlink,
        SYS_mknod,
        SYS_utimes,
#endif
};

int server_confine(struct lkg_error *err)
{
        const struct lkg_syscall_policy policy = {
                .arguments = arguments,
                .n_arguments = LKG_ARRAY_SIZE(arguments),
                .allowed = allowed,
                .n_allowed = LKG_ARRAY_SIZE(allowed),
        };

        return lkg_confine(capabilities, &policy, err);
}

/* ---- program-file ---- */

/*
 * Which file has the path of a `match exe` rule? The path may be on a file system that does not answer, or
 * lead into the view itself, so workers never look it up: a thread does, at most one per path and only on
 * demand. The caller waits briefly; after that the last result is used, initially none.
 */

#define PROGRAMS 64u /* paths of all rules; further ones match no process */
#define LOOK_NS  (50 * LKG_NSEC_PER_MSEC)

static struct program {
        char *path; /* never freed: a thread may be using it */
        struct lkg_program_file file;
        uint64_t asked, answered; /* looks */
        uint64_t busy_ns;         /* CLOCK_MONOTONIC: start of the current look; 0 = no thread */
} programs[PROGRAMS];
static size_t n_programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects: all of them. A leaf. */
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;

static uint64_t monotonic_ns(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Runs as long as there is a question that is newer than the start of the last look. */
static void *look(void *userdata)
{
        struct program *p = userdata;
        struct stat st;

        (void)prctl(PR_SET_NAME, "program");

        (void)pthread_mutex_lock(&lock);
        while (p->answered < p->asked) {
                uint64_t question = p->asked;
                bool found;

                p->busy_ns = monotonic_ns();
                (void)pthread_mutex_unlock(&lock);
                found = stat(p->path, &st) == 0;
                (void)pthread_mutex_lock(&lock);
                p->file = found ? (struct lkg_program_file){ st.st_dev, st.st_ino }
                                : (struct lkg_program_file){ 0, 0 };
                p->answered = question;
                (void)pthread_cond_broadcast(&answered);
        }
        p->busy_ns = 0;
        (void)pthread_mutex_unlock(&lock);
        return NULL;
}

/* Lock held. Return: NULL: out of memory, or too many. */
static struct program *find(const char *path)
{
        for (size_t i = 0; i < n_programs; i++)
                if (strcmp(programs[i].path, path) == 0)
                        return &programs[i];
        if (n_programs == PROGRAMS || !(programs[n_programs].path = strdup(path)))
                return NULL;
        return &programs[n_programs++];
}

/* Lock held. Return: false: no thread looks. */
static bool somebody_looks(struct program *p, uint64_t now_ns)
{
        if (p->busy_ns != 0)
                return true;
        if (thread_start(look, p) < 0)
                return false;
        p->busy_ns = now_ns;
        return true;
}

void program_file_expect(const char *path)
{
        struct program *p;

        (void)pthread_mutex_lock(&lock);
        p = find(path);
        if (p && p->asked == 0) {
                p->asked = 1;
                (void)somebody_looks(p, monotonic_ns());
        }
        (void)pthread_mutex_unlock(&lock);
}

struct lkg_program_file program_file(const char *path)
{
        struct lkg_program_file file = { 0, 0 };
        uint64_t now = monotonic_ns(), question;
        struct timespec until;
        struct program *p;

        (void)pthread_mutex_lock(&lock);
        p = find(path);
        if (p) {
                question = ++p->asked;
                if (somebody_looks(p, now)) {
                        uint64_t end = p->busy_ns + LOOK_NS; /* wait only once for a look that hangs */

                        until.tv_sec = (time_t)(end / LKG_NSEC_PER_SEC);
                        until.tv_nsec = (long)(end % LKG_NSEC_PER_SEC);
                        while (p->answered < question &&
                               pthread_cond_clockwait(&answered, &lock, CLOCK_MONOTONIC, &until) == 0)
                                ;
                }
                file = p->file;
        }
        (void)pthread_mutex_unlock(&lock);
        return file;
}
