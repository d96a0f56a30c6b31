/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks: acting with the caller's ids on create, the right to command, and recognising a component by executable or
 * unit (never by name or command line, which anybody can set). Source: live-view.md section 5.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>

#include "server.h"

#define SEEN_SLOTS 512u
#define TRUST_NS   (100 * LKG_NSEC_PER_MSEC)

/*
 * The kernel has checked the caller's permissions (default_permissions) with the caller's groups, which we do not
 * have: so the permission to search and write is kept, everything else that root may do is not.
 */
static void set_caps(bool full)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];

        if (syscall(SYS_capget, &header, data) < 0)
                return;
        if (full) {
                data[0].effective = data[0].permitted;
                data[1].effective = data[1].permitted;
        } else {
                data[0].effective |=
                        data[0].permitted & (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
        }
        (void)syscall(SYS_capset, &header, data);
}

void caller_enter(const struct fuse_ctx *ctx, struct caller *ret)
{
        (void)umask(ctx->umask);
        ret->switched = ctx->uid != 0 || ctx->gid != 0;
        if (!ret->switched)
                return;
        (void)setfsgid(ctx->gid);
        (void)setfsuid(ctx->uid); /* clears the effective file capabilities of this thread */
        if (ctx->uid != 0)
                set_caps(false);
}

void caller_leave(const struct caller *caller)
{
        if (!caller->switched)
                return;
        (void)setfsuid(0);
        (void)setfsgid(0);
        set_caps(true);
}

bool caller_is_notifier(const struct fuse_ctx *ctx)
{
        return ctx->pid != 0 && ctx->pid == atomic_load(&server.shm->notifier.pid);
}

static ino_t user_namespace(const char *path)
{
        struct stat st;

        return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* Root of a container's user namespace may be the host's root by number; what it lacks is the host's namespace. */
bool caller_may_command(const struct fuse_ctx *ctx)
{
        char path[64];
        ino_t own = user_namespace("/proc/self/ns/user");

        if (ctx->uid != 0 || ctx->pid == 0)
                return false;
        (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", ctx->pid);
        return own != 0 && user_namespace(path) == own;
}

static ssize_t read_proc(int tid, const char *name, char *buf, size_t size)
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

        if (read_proc(tid, "status", text, sizeof(text)) < 0)
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
        if (read_proc(tid, "loginuid", text, sizeof(text)) > 0)
                message->login_uid = (uint32_t)strtoul(text, NULL, 10);
}

/* In one of the unit's control groups: `/system.slice/kubelet.service` or below it. */
static bool in_unit(int tid, const char *unit)
{
        char text[4096];
        size_t size = strlen(unit);

        if (size == 0 || read_proc(tid, "cgroup", text, sizeof(text)) < 0)
                return false;
        for (const char *p = strstr(text, unit); p; p = strstr(p + 1, unit))
                if (p > text && p[-1] == '/' && (p[size] == '\n' || p[size] == '/' || p[size] == '\0'))
                        return true;
        return false;
}

static bool matches(const struct lkg_publication *publication, unsigned component, int tid, const char *exe)
{
        for (size_t i = 0; i < publication->n_rules; i++) {
                const struct lkg_rule *rule = &publication->rules[i];

                if (rule->component != component)
                        continue;
                if (rule->type == LKG_RULE_EXE && strcmp(rule->text, exe) == 0)
                        return true;
                if (rule->type == LKG_RULE_UNIT && in_unit(tid, rule->text))
                        return true;
        }
        return false;
}

static bool watched(const struct lkg_publication *publication, unsigned component)
{
        for (size_t i = 0; i < publication->n_rules; i++)
                if ((publication->rules[i].type == LKG_RULE_EXE ||
                     publication->rules[i].type == LKG_RULE_UNIT) &&
                    publication->rules[i].component == component)
                        return true;
        return false;
}

/*
 * Threads that were looked at: a direct-mapped cache, where a collision only costs another look. An open /proc/<tid>
 * file is bound to that very thread, not to the number: reading it fails once the thread is gone. That is cheaper than
 * comparing start times, and most opens of a component come from threads that were seen.
 */
static struct {
        int tid;
        unsigned component;
        int fd; /* of /proc/<tid>/comm, stored as fd + 1 */
        uint64_t checked_ns;
} seen[SEEN_SLOTS];
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: seen. A leaf. */

/* Alive at @now? Within TRUST_NS a number is not given to another thread: all other numbers would have to be used up. */
static bool still_there(size_t slot, uint64_t now_ns)
{
        char c;

        if (now_ns - seen[slot].checked_ns < TRUST_NS)
                return true;
        if (seen[slot].fd <= 0 || pread(seen[slot].fd - 1, &c, 1, 0) != 1)
                return false;
        seen[slot].checked_ns = now_ns;
        return true;
}

static bool was_seen(int tid, unsigned component)
{
        size_t slot = ((unsigned)tid * 31u + component) % SEEN_SLOTS;
        uint64_t now = atomic_load_explicit(&task.slot->since_ns, memory_order_relaxed);
        bool yes;

        (void)pthread_mutex_lock(&seen_lock);
        yes = seen[slot].tid == tid && seen[slot].component == component && still_there(slot, now);
        (void)pthread_mutex_unlock(&seen_lock);
        return yes;
}

static void remember(int tid, unsigned component)
{
        size_t slot = ((unsigned)tid * 31u + component) % SEEN_SLOTS;
        char path[64];
        int fd;

        (void)snprintf(path, sizeof(path), "/proc/%d/comm", tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        (void)pthread_mutex_lock(&seen_lock);
        lkg_close(seen[slot].fd - 1);
        seen[slot].tid = tid;
        seen[slot].component = component;
        seen[slot].fd = fd < 0 ? 0 : fd + 1;
        seen[slot].checked_ns = 0;
        (void)pthread_mutex_unlock(&seen_lock);
}

/* Called before the reply to the OPEN: until then the opener cannot go away. */
void caller_identify(const struct fuse_ctx *ctx, unsigned component)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = NULL;
        struct lkg_message message;

        if (ctx->uid != 0 || ctx->pid == 0 || was_seen(ctx->pid, component))
                return;
        ref = publication_get();
        if (!watched(ref->publication, component))
                return;
        remember(ctx->pid, component);
        lkg_message_init(&message, LKG_MSG_STARTED);
        caller_describe(ctx->pid, &message);
        if (message.pid == 0 || !matches(ref->publication, component, ctx->pid, message.exe))
                return;
        if (message.pid != ctx->pid) {
                if (was_seen(message.pid, component))
                        return; /* another thread of a process that was seen */
                remember(message.pid, component);
        }
        message.component = component;
        message.uid = ctx->uid;
        message.gid = ctx->gid;
        engine_tell(&message);
}
