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
        const void *in = task_argument();

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

void caller_enter(const struct fuse_ctx *ctx, struct caller *ret)
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

void caller_leave(const struct caller *caller)
{
        if (!caller->switched)
                return;
        (void)setfsuid(0);
        (void)setfsgid(0);
        set_caps(true, true);
}

/*
 * Half of all requests after a change come from the notifier, and each is checked several times; reading
 * /proc costs ten times as much as checking a pidfd. Earlier notifiers are also remembered until they have
 * ended: a request may be handled after its notifier was replaced.
 */
#define NOTIFIERS 8
static struct {
        _Atomic int pid; /* 0 = none */
        int pidfd;
} notifiers[NOTIFIERS];
static unsigned next_notifier;
static pthread_mutex_t notifiers_lock =
        PTHREAD_MUTEX_INITIALIZER; /* protects: both; pids are read without it. A leaf. */

static bool has_ended(int pidfd)
{
        struct pollfd end = { .fd = pidfd, .events = POLLIN };

        return poll(&end, 1, 0) != 0;
}

/*
 * Lock held. If the start time was right when the pidfd was opened, the pidfd is of that process until it
 * ends.
 */
static bool know_notifier(int pid, uint64_t start_time)
{
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        unsigned i = next_notifier;

        if (pidfd < 0)
                return false;
        if (lkg_process_start_time(pid) != start_time) {
                (void)close(pidfd);
                return false;
        }
        if (notifiers[i].pid != 0)
                (void)close(notifiers[i].pidfd);
        notifiers[i].pidfd = pidfd;
        atomic_store(&notifiers[i].pid, pid);
        next_notifier = (i + 1) % NOTIFIERS;
        return true;
}

/* Lock held. */
static bool is_known_notifier(int pid)
{
        for (unsigned i = 0; i < NOTIFIERS; i++)
                if (notifiers[i].pid == pid && !has_ended(notifiers[i].pidfd))
                        return true;
        return false;
}

/* Almost no caller is the notifier, and that can be decided without a lock. */
static bool may_be_notifier(int tid)
{
        if (tid == 0 || tid == atomic_load_explicit(&server.shm->notifier.pid, memory_order_relaxed))
                return tid != 0;
        for (unsigned i = 0; i < NOTIFIERS; i++)
                if (atomic_load_explicit(&notifiers[i].pid, memory_order_relaxed) == tid)
                        return true;
        return false;
}

bool is_notifier(int tid)
{
        const struct lkg_process *current = &server.shm->notifier;
        uint64_t start_time = current->start_time;
        bool yes;

        if (!may_be_notifier(tid))
                return false;
        (void)pthread_mutex_lock(&notifiers_lock);
        /* The pid of a notifier that has ended may be reused before lkgfsd (if it runs) starts a new one. */
        yes = is_known_notifier(tid) ||
              (tid == atomic_load(&current->pid) && know_notifier(tid, start_time));
        (void)pthread_mutex_unlock(&notifiers_lock);
        return yes;
}

bool caller_is_notifier(const struct fuse_ctx *ctx)
{
        return is_notifier(ctx->pid);
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

bool caller_may_change(const struct fuse_ctx *ctx)
{
        return is_allowed(LKG_FOREIGN_PASSTHROUGH) || caller_is_notifier(ctx) || !is_foreign(ctx);
}

/* Root of a container may have the host's uid 0, but it is not in the host's mount namespace. */
bool caller_is_root(const struct fuse_ctx *ctx)
{
        ino_t ours = lkg_process_namespace(getpid(), "user");

        return ctx->uid == 0 && ctx->pid != 0 && ours != 0 &&
               lkg_process_namespace(ctx->pid, "user") == ours;
}

bool caller_is_host_root(const struct fuse_ctx *ctx)
{
        return caller_is_root(ctx) && !is_foreign(ctx);
}

uint32_t caller_owner(const struct fuse_ctx *ctx)
{
        if (ctx->uid != 0)
                return quota_owner(ctx->uid);
        if (caller_is_host_root(ctx))
                return QUOTA_HOST_ROOT;
        return QUOTA_FOREIGN | (uint32_t)(ctx->pid == 0 ? 0 : lkg_process_namespace(ctx->pid, "mnt"));
}

uint32_t caller_share(const struct fuse_ctx *ctx, const struct quota *quota)
{
        return ctx->uid == 0 && quota_is_crowded(quota) ? caller_owner(ctx) : quota_owner(ctx->uid);
}

int caller_may_command(const struct fuse_ctx *ctx)
{
        if (!caller_is_root(ctx))
                return -EACCES;
        if (caller_is_notifier(ctx))
                return -EPERM;
        return !is_allowed(LKG_FOREIGN_ALL) && is_foreign(ctx) ? -EPERM : 0;
}

ssize_t caller_read_proc(int tid, const char *name, char *buf, size_t size)
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

static int thread_group(int tid)
{
        char text[2048];
        const char *p;

        if (caller_read_proc(tid, "status", text, sizeof(text)) < 0)
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

void caller_describe(int tid, struct lkg_message *message)
{
        char text[32];

        message->pid = thread_group(tid);
        message->start_time = lkg_process_start_time(message->pid);
        executable(tid, message->exe, sizeof(message->exe));
        message->login_uid = UINT32_MAX;
        if (caller_read_proc(tid, "loginuid", text, sizeof(text)) > 0)
                message->login_uid = (uint32_t)strtoul(text, NULL, 10);
}
