/* SPDX-License-Identifier: Apache-2.0 */
/* Traces one child process: see trace.h. */
#include "trace.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <linux/ptrace.h>

#define SYSCALL_STOP (SIGTRAP | 0x80)

/* Which arguments of a call are directory descriptors, names, flags, an offset or a size; -1 = none. */
static const struct known {
        long nr;
        enum trace_kind kind;
        int dirfd, path, to_dirfd, to_path, flags, at;
} known[] = {
        { SYS_openat, TRACE_OPEN, 0, 1, -1, -1, 2, -1 },
        { SYS_write, TRACE_WRITE, 0, -1, -1, -1, -1, -1 },
        { SYS_pwrite64, TRACE_WRITE, 0, -1, -1, -1, -1, 3 },
        { SYS_ftruncate, TRACE_TRUNCATE, 0, -1, -1, -1, -1, 1 },
        { SYS_fchmod, TRACE_CHANGE, 0, -1, -1, -1, -1, -1 },
        { SYS_utimensat, TRACE_CHANGE, 0, 1, -1, -1, -1, -1 },
        { SYS_fsync, TRACE_FSYNC, 0, -1, -1, -1, -1, -1 },
        { SYS_fdatasync, TRACE_FSYNC, 0, -1, -1, -1, -1, -1 },
        { SYS_mkdirat, TRACE_MKDIR, 0, 1, -1, -1, -1, -1 },
        { SYS_unlinkat, TRACE_UNLINK, 0, 1, -1, -1, 2, -1 },
        { SYS_linkat, TRACE_LINK, 0, 1, 2, 3, -1, -1 },
#ifdef SYS_renameat
        { SYS_renameat, TRACE_RENAME, 0, 1, 2, 3, -1, -1 },
#endif
        { SYS_renameat2, TRACE_RENAME, 0, 1, 2, 3, 4, -1 },
};

/* How often memory is allocated depends on the heap of the parent and does not affect the disk. */
static const long of_memory[] = { SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise };

struct tracer {
        pid_t pid;
        const struct trace_plan *plan;
        struct trace_result *result;
        unsigned n_stops, n_known;
        const struct known *current; /* the call in progress; NULL = OTHER, or none */
        bool uncounted;              /* a call about memory */
        bool between;                /* `from` was opened, `until` was not yet */
        bool failing;                /* it must not be carried out */
        struct trace_call call;
};

/* ---- the child ---- */

static void child(int (*prepare)(void *), int (*run)(void *), void *userdata, volatile int *status)
{
        if (prepare(userdata) < 0)
                _exit(3);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
                _exit(4);
        *status = run(userdata);
        _exit(0);
}

/* ---- what a call is about ---- */

static void read_text(pid_t pid, uint64_t address, char ret[static TRACE_PATH_MAX])
{
        struct iovec here = { ret, TRACE_PATH_MAX - 1 }, there = { (void *)(uintptr_t)address, 0 };
        size_t page = (size_t)sysconf(_SC_PAGESIZE), left = page - (size_t)(address % page);
        ssize_t n;

        /*
         * Do not read beyond the page, after which nothing may be mapped, unless the text continues there.
         */
        there.iov_len = left < TRACE_PATH_MAX - 1 ? left : TRACE_PATH_MAX - 1;
        n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (n > 0 && !memchr(ret, '\0', (size_t)n) && (size_t)n < TRACE_PATH_MAX - 1) {
                here = (struct iovec){ ret + n, TRACE_PATH_MAX - 1 - (size_t)n };
                there = (struct iovec){ (void *)(uintptr_t)(address + (uint64_t)n), here.iov_len };
                n += process_vm_readv(pid, &here, 1, &there, 1, 0);
        }
        ret[n > 0 ? n : 0] = '\0';
}

static void fd_path(pid_t pid, int fd, char ret[static TRACE_PATH_MAX])
{
        char link[64];
        ssize_t n;

        (void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, fd);
        n = readlink(link, ret, TRACE_PATH_MAX - 1);
        ret[n > 0 ? n : 0] = '\0';
}

static void describe(pid_t pid, const uint64_t args[6], int dirfd, int path, char ret[static TRACE_PATH_MAX])
{
        char dir[TRACE_PATH_MAX] = "", name[TRACE_PATH_MAX] = "";
        int n;

        if (dirfd >= 0)
                fd_path(pid, (int)args[dirfd], dir);
        if (path >= 0 && args[path])
                read_text(pid, args[path], name);
        if (!*name || strcmp(name, ".") == 0)
                n = snprintf(ret, TRACE_PATH_MAX, "%s", dir);
        else if (*name == '/')
                n = snprintf(ret, TRACE_PATH_MAX, "%s", name);
        else
                n = snprintf(ret, TRACE_PATH_MAX, "%s/%s", dir, name);
        if (n < 0 || (size_t)n >= TRACE_PATH_MAX)
                ret[0] = '\0';
}

/* Read the bytes that are about to be written. */
static char *read_bytes(pid_t pid, uint64_t address, size_t size)
{
        char *data = malloc(size ? size : 1);
        struct iovec here = { data, size }, there = { (void *)(uintptr_t)address, size };

        if (data && size && process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)size) {
                free(data);
                return NULL;
        }
        return data;
}

/* ---- making a call fail ---- */

#if defined(__x86_64__)
static int skip_call(pid_t pid)
{
        return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.orig_rax), -1L) < 0 ? -errno : 0;
}

static int set_result(pid_t pid, long result)
{
        return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rax), result) < 0 ? -errno : 0;
}
#elif defined(__aarch64__)
static int skip_call(pid_t pid)
{
        int nr = -1;
        struct iovec iov = { &nr, sizeof(nr) };

        return ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &iov) < 0 ? -errno : 0;
}

static int set_result(pid_t pid, long result)
{
        struct user_regs_struct regs;
        struct iovec iov = { &regs, sizeof(regs) };

        if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov) < 0)
                return -errno;
        regs.regs[0] = (unsigned long long)result;
        return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &iov) < 0 ? -errno : 0;
}
#else
#define CANNOT_FAIL
static int skip_call(pid_t pid)
{
        (void)pid;
        return -ENOTSUP;
}

static int set_result(pid_t pid, long result)
{
        (void)pid;
        (void)result;
        return -ENOTSUP;
}
#endif

bool trace_supported(void)
{
#ifdef CANNOT_FAIL
        return false;
#else
        return true;
#endif
}

/* ---- stops ---- */

/* Does the plan apply to this call? */
static bool counts(struct tracer *t)
{
        const struct trace_plan *plan = t->plan;
        const struct trace_call *call = &t->call;

        if (plan->from && call->kind == TRACE_OPEN && strcmp(call->path, plan->from) == 0)
                t->between = true;
        if (plan->until && call->kind == TRACE_OPEN && strcmp(call->path, plan->until) == 0)
                t->between = false;
        if (plan->from && !t->between)
                return false;
        if (plan->below && strncmp(call->path, plan->below, strlen(plan->below)) != 0)
                return false;
        if (plan->kinds == 0)
                return true;
        return plan->kinds & 1u << call->kind &&
               (call->kind != TRACE_OPEN || call->flags & (O_CREAT | O_WRONLY | O_RDWR));
}

static bool must_fail(const struct tracer *t)
{
        if (t->plan->fail_at == 0)
                return false;
        return t->plan->for_ever ? t->n_known >= t->plan->fail_at : t->n_known == t->plan->fail_at;
}

static int enter(struct tracer *t, const struct __ptrace_syscall_info *info)
{
        t->current = NULL;
        t->failing = t->uncounted = false;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(of_memory); i++)
                t->uncounted = t->uncounted || (uint64_t)of_memory[i] == info->entry.nr;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(known); i++)
                if ((uint64_t)known[i].nr == info->entry.nr)
                        t->current = &known[i];
        if (!t->current)
                return 0;
        if (t->plan->calls || t->plan->below) {
                uint64_t args[6];

                for (size_t i = 0; i < LKG_ARRAY_SIZE(args); i++)
                        args[i] = info->entry.args[i];
                t->call = (struct trace_call){ .kind = t->current->kind };
                describe(t->pid, args, t->current->dirfd, t->current->path, t->call.path);
                describe(t->pid, args, t->current->to_dirfd, t->current->to_path, t->call.to);
                if (t->current->flags >= 0)
                        t->call.flags = args[t->current->flags];
                t->call.has_at = t->current->at >= 0;
                if (t->call.has_at)
                        t->call.at = args[t->current->at];
                if (t->plan->with_data && t->current->kind == TRACE_WRITE)
                        t->call.data = read_bytes(t->pid, args[1], (size_t)args[2]);
        }
        if (t->plan->below && !counts(t))
                return 0;
        t->n_known++;
        t->failing = must_fail(t);
        if (!t->failing)
                return 0;
        if (!t->result->reached)
                t->result->failed = t->current->kind;
        t->result->reached = true;
        return skip_call(t->pid);
}

static int leave(struct tracer *t, const struct __ptrace_syscall_info *info)
{
        long result = t->failing ? -t->plan->error : (long)info->exit.rval;

        if (!t->current)
                return 0;
        if (result == 0 && !t->result->reached &&
            (t->current->kind == TRACE_RENAME || t->current->kind == TRACE_UNLINK))
                t->result->committed = true;
        if (t->plan->calls && t->result->n_calls < TRACE_CALLS_MAX) {
                t->call.result = result;
                t->plan->calls[t->result->n_calls++] = t->call;
                t->call.data = NULL;
        }
        return t->failing ? set_result(t->pid, result) : 0;
}

static int stopped(struct tracer *t)
{
        struct __ptrace_syscall_info info;

        if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) < 0)
                return -errno;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
                return enter(t, &info);
        return info.op == PTRACE_SYSCALL_INFO_EXIT ? leave(t, &info) : 0;
}

/* The child is stopped for the first time. Return: 0 when it has exited or was killed. */
static int follow(struct tracer *t)
{
        int status, signal_number = 0, r;

        if (ptrace(PTRACE_SETOPTIONS, t->pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
                return -errno;
        while (true) {
                if (ptrace(PTRACE_SYSCALL, t->pid, NULL, (long)signal_number) < 0 ||
                    waitpid(t->pid, &status, 0) < 0)
                        return -errno;
                if (WIFEXITED(status) || WIFSIGNALED(status)) {
                        t->result->ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
                        return t->result->ended || WIFSIGNALED(status) ? 0 : -ECHILD;
                }
                signal_number = WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status);
                if (signal_number)
                        continue;
                r = stopped(t);
                if (r < 0)
                        return r;
                if (!t->uncounted && ++t->n_stops == t->plan->kill_at) {
                        t->result->reached = true;
                        return kill(t->pid, SIGKILL) < 0 || waitpid(t->pid, &status, 0) < 0 ? -errno : 0;
                }
        }
}

int trace_run(int (*prepare)(void *), int (*run)(void *), void *userdata, const struct trace_plan *plan,
              struct trace_result *ret)
{
        int *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct tracer t = { .plan = plan, .result = ret };
        int status, r;

        if (shared == MAP_FAILED)
                return -errno;
        *ret = (struct trace_result){ .ended = false };
        (void)fflush(NULL);
        t.pid = fork();
        if (t.pid == 0)
                child(prepare, run, userdata, shared);
        if (t.pid < 0 || waitpid(t.pid, &status, 0) < 0)
                r = -errno;
        else if (!WIFSTOPPED(status))
                r = -ECHILD;
        else
                r = follow(&t);
        if (r < 0 && t.pid > 0) {
                (void)kill(t.pid, SIGKILL);
                (void)waitpid(t.pid, &status, 0);
        }
        ret->status = *shared;
        free(t.call.data);
        (void)munmap(shared, sizeof(*shared));
        return r;
}
