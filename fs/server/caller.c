/* SPDX-License-Identifier: Apache-2.0 */
/* The caller of a request: acting with its ids on create, the right to command, facts from /proc. */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>

#include <lkg/messages.h>

#include "quota.h"
#include "file-server.h"

/*
 * The kernel has checked the caller's permissions (default_permissions) with the caller's groups, which we
 * do not have: so we keep the permission to search and write, and drop everything else that root may do.
 */
static void set_caps(bool full, bool set_id)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];

        if (syscall(SYS_capget, &header, data) < 0)
                return;
        if (full) {
                data[0].effective = data[0].permitted & ~(set_id ? 0 : 1u << CAP_FSETID);
                data[1].effective = data[1].permitted;
        } else {
                data[0].effective |=
                        data[0].permitted & (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
        }
        (void)syscall(SYS_capset, &header, data);
}

/* The kernel says so if the caller has no CAP_FSETID, which root may lack, too; but not of every call. */
static bool ends_set_id_bits(void)
{
        const struct fuse_in_header *header = (const void *)task.slot->buf;
        const void *in = lkg_task_argument();

        switch (header->opcode) {
        case FUSE_WRITE:
                return ((const struct fuse_write_in *)in)->write_flags & FUSE_WRITE_KILL_SUIDGID;
        case FUSE_OPEN:
                return ((const struct fuse_open_in *)in)->open_flags & FUSE_OPEN_KILL_SUIDGID;
        case FUSE_SETATTR:
                return ((const struct fuse_setattr_in *)in)->valid & FATTR_KILL_SUIDGID;
        case FUSE_FALLOCATE:
        case FUSE_COPY_FILE_RANGE:
                return !lkg_process_has_capability((int)header->pid, CAP_FSETID);
        default:
                return false;
        }
}

void lkg_caller_enter(const struct fuse_ctx *ctx, struct caller *ret)
{
        bool user = ctx->uid != 0, without_fsetid = !user && ends_set_id_bits(); /* a user never has it */

        (void)umask(ctx->umask);
        ret->switched = user || ctx->gid != 0 || without_fsetid;
        if (!ret->switched)
                return;
        (void)setfsgid(ctx->gid);
        (void)setfsuid(ctx->uid); /* clears the effective file capabilities of this thread */
        if (user || without_fsetid)
                set_caps(!user, false);
}

void lkg_caller_leave(const struct caller *caller)
{
        if (!caller->switched)
                return;
        (void)setfsuid(0);
        (void)setfsgid(0);
        set_caps(true, true);
}

/*
 * Earlier notifiers are remembered, too: a request may be handled after its notifier was replaced. The number of one that has ended
 * may be used again, so each is held by a descriptor, which says whether it still runs: it waits for its answer until it does not.
 */
#define NOTIFIERS 8
static struct {
        int pid;
        uint64_t start_time;
        int pidfd; /* negative: it had ended when it was first seen */
} notifiers[NOTIFIERS];
static unsigned n_notifiers;
static pthread_mutex_t notifiers_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: both. A leaf. */

/* Lock held. The current one may have changed. */
static void note_notifier(void)
{
        int pid = atomic_load(&server.shm->notifier.pid), pidfd;
        uint64_t start_time = server.shm->notifier.start_time;
        unsigned last = (n_notifiers + NOTIFIERS - 1) % NOTIFIERS;

        if (pid == 0 || (notifiers[last].pid == pid && notifiers[last].start_time == start_time))
                return;
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0 && errno != ESRCH)
                return; /* no descriptor is left: ask again */
        if (lkg_process_start_time(pid) != start_time)
                pidfd = lkg_close(pidfd); /* another process by now */
        last = n_notifiers++ % NOTIFIERS;
        if (notifiers[last].pid != 0)
                lkg_close(notifiers[last].pidfd);
        notifiers[last].pid = pid;
        notifiers[last].start_time = start_time;
        notifiers[last].pidfd = pidfd;
}

static bool runs(int pidfd)
{
        struct pollfd end = { .fd = pidfd, .events = POLLIN };

        return pidfd >= 0 && poll(&end, 1, 0) == 0;
}

bool lkg_is_notifier(int tid)
{
        if (tid == 0)
                return false;
        LKG_LOCKED(&notifiers_lock);
        note_notifier();
        for (unsigned i = 0; i < NOTIFIERS; i++)
                if (notifiers[i].pid == tid && runs(notifiers[i].pidfd))
                        return true;
        return false;
}

/* Of the request that this thread handles. */
bool lkg_caller_is_notifier(void)
{
        return task.notifiers;
}

/* ---- namespaces ---- */

/*
 * Is the caller outside the mount namespace of lkgfs, or not visible (a pid namespace that is not ours or
 * below)? Read again each time: the id of a thread that waits for its answer cannot be reused, and reading
 * costs less than proving that an earlier result is about the same thread.
 */
static bool is_foreign(const struct fuse_ctx *ctx)
{
        ino_t ours = atomic_load_explicit(&server.shm->mount_namespace, memory_order_relaxed);

        return ctx->pid == 0 || ours == 0 || lkg_process_namespace(ctx->pid, "mnt") != ours;
}

/* An unknown answer is a denial. */
static bool is_allowed(enum lkg_foreign_writes least)
{
        uint32_t allowed = atomic_load_explicit(&server.shm->foreign_writes, memory_order_relaxed);

        return allowed >= least && allowed < _LKG_FOREIGN_MAX;
}

bool lkg_caller_may_change(const struct fuse_ctx *ctx)
{
        return is_allowed(LKG_FOREIGN_PASSTHROUGH) || lkg_caller_is_notifier() || !is_foreign(ctx);
}

/* Root of a container may have the host's uid 0, but it is not in the host's mount namespace. */
bool lkg_caller_is_root(const struct fuse_ctx *ctx)
{
        static _Atomic ino_t namespace; /* ours; 0 = not known */
        ino_t ours = atomic_load(&namespace);

        if (ours == 0)
                atomic_store(&namespace, ours = lkg_process_namespace(getpid(), "user"));
        return ctx->uid == 0 && ctx->pid != 0 && ours != 0 &&
               lkg_process_namespace(ctx->pid, "user") == ours;
}

bool lkg_caller_is_host_root(const struct fuse_ctx *ctx)
{
        return lkg_caller_is_root(ctx) && !is_foreign(ctx);
}

uint32_t lkg_caller_owner(const struct fuse_ctx *ctx)
{
        if (ctx->uid != 0)
                return lkg_quota_owner(ctx->uid);
        if (lkg_caller_is_host_root(ctx))
                return QUOTA_HOST_ROOT;
        return QUOTA_FOREIGN | (uint32_t)(ctx->pid == 0 ? 0 : lkg_process_namespace(ctx->pid, "mnt"));
}

uint32_t lkg_caller_share(const struct fuse_ctx *ctx, const struct quota *quota)
{
        return ctx->uid == 0 && lkg_quota_is_crowded(quota) ? lkg_caller_owner(ctx)
                                                            : lkg_quota_owner(ctx->uid);
}

int lkg_caller_may_command(const struct fuse_ctx *ctx)
{
        if (!lkg_caller_is_root(ctx))
                return -EACCES;
        if (lkg_caller_is_notifier())
                return -EPERM;
        return !is_allowed(LKG_FOREIGN_ALL) && is_foreign(ctx) ? -EPERM : 0;
}

ssize_t lkg_caller_read_proc(int tid, const char *name, char *buf, size_t size)
{
        char path[64];
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buf, size - 1);
        if (n < 0)
                return -errno;
        buf[n] = '\0';
        return n;
}

int lkg_caller_process(int tid)
{
        char text[2048];
        const char *p;

        if (lkg_caller_read_proc(tid, "status", text, sizeof(text)) < 0)
                return 0;
        p = strstr(text, "\nTgid:");
        return p ? (int)strtol(p + 6, NULL, 10) : 0;
}

static void executable(int pid, char *buf, size_t size)
{
        char path[64];
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
        n = readlink(path, buf, size - 1);
        buf[n > 0 ? n : 0] = '\0';
}

void lkg_caller_describe(int tid, struct lkg_message *message)
{
        char text[32];

        message->pid = lkg_caller_process(tid);
        message->start_time = lkg_process_start_time(message->pid);
        executable(tid, message->exe, sizeof(message->exe));
        message->login_uid = UINT32_MAX;
        if (lkg_caller_read_proc(tid, "loginuid", text, sizeof(text)) > 0)
                message->login_uid = (uint32_t)strtoul(text, NULL, 10);
}
