/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp filters: see <lkg/process.h>. */
#include <assert.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "syscall-policy.h"

#include <lkg/process.h>

#define PROGRAM_MAX 1024u
#define MODE_WORD   "LKGFS_SYSCALLS"

#if defined(__x86_64__)
#define ARCH    AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u /* the same calls with other numbers */
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH AUDIT_ARCH_S390X
#endif

#ifdef __s390x__
#define CLONE_FLAGS_ARG 1u /* CONFIG_CLONE_BACKWARDS2: the stack is the first argument */
#else
#define CLONE_FLAGS_ARG 0u
#endif

#define CLONE_NAMESPACES                                                                              \
        (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
         CLONE_NEWNET)

#define KILLED(name)                 \
        {                            \
#name, SYS_##name, 0 \
        }
#define FAILS(name, error)                 \
        {                                  \
#name, SYS_##name, (error) \
        }

const struct lkg_syscall_rule lkg_syscall_rules[] = {
        /* running other programs */
        KILLED(execve), KILLED(execveat),
        /* mounts and namespaces */
        KILLED(mount), KILLED(umount2), KILLED(pivot_root), KILLED(chroot), KILLED(fsopen), KILLED(fsconfig),
        KILLED(fsmount), KILLED(fspick), KILLED(move_mount), KILLED(open_tree), KILLED(mount_setattr),
        KILLED(setns), KILLED(unshare), KILLED(open_by_handle_at), KILLED(quotactl), KILLED(quotactl_fd),
        KILLED(acct), KILLED(swapon), KILLED(swapoff),
        /* other processes */
        KILLED(ptrace), KILLED(process_vm_readv), KILLED(process_vm_writev), KILLED(pidfd_getfd),
        /* the kernel and the machine */
        KILLED(init_module), KILLED(finit_module), KILLED(delete_module), KILLED(kexec_load),
#ifdef SYS_kexec_file_load
        KILLED(kexec_file_load),
#endif
        KILLED(reboot), KILLED(bpf), KILLED(perf_event_open), KILLED(userfaultfd), KILLED(sethostname),
        KILLED(setdomainname), KILLED(settimeofday), KILLED(clock_settime), KILLED(vhangup),
#ifdef SYS_iopl
        KILLED(iopl), KILLED(ioperm), KILLED(modify_ldt),
#endif
        /* Kerberos, which libcurl is linked with, searches for keyrings. */
        FAILS(add_key, EPERM), FAILS(request_key, EPERM), FAILS(keyctl, EPERM),
        /* Newer versions of libsystemd try these two and continue without a result. */
        FAILS(kcmp, EPERM), FAILS(name_to_handle_at, EPERM),
/* A resolver plugin that forks has to cope with a failure. Threads: see clone. */
#ifdef SYS_fork
        FAILS(fork, EPERM), FAILS(vfork, EPERM),
#endif
        /* Its flags are in memory, where a filter cannot read them; every C library falls back to clone. */
        FAILS(clone3, ENOSYS),
        /* A filter does not see operations through a ring. */
        FAILS(io_uring_setup, ENOSYS), FAILS(io_uring_enter, ENOSYS), FAILS(io_uring_register, ENOSYS),
        FAILS(io_setup, ENOSYS),
        /* Without a privilege they affect processes of the same user, which is root. */
        FAILS(tkill, EPERM), FAILS(pidfd_send_signal, EPERM), FAILS(process_madvise, EPERM),
        FAILS(process_mrelease, EPERM), FAILS(migrate_pages, EPERM), FAILS(move_pages, EPERM),
        FAILS(sched_setaffinity, EPERM), FAILS(sched_setattr, EPERM), FAILS(sched_setparam, EPERM),
        FAILS(sched_setscheduler, EPERM), FAILS(setpriority, EPERM), FAILS(ioprio_set, EPERM),
        /* Not needed. */
        FAILS(setuid, EPERM), FAILS(setgid, EPERM), FAILS(setreuid, EPERM), FAILS(setregid, EPERM),
        FAILS(setresuid, EPERM), FAILS(setresgid, EPERM), FAILS(setfsuid, EPERM), FAILS(setfsgid, EPERM),
        FAILS(setgroups, EPERM), FAILS(personality, EPERM), FAILS(adjtimex, EPERM),
        FAILS(clock_adjtime, EPERM), FAILS(syslog, EPERM), FAILS(fanotify_init, EPERM)
};
const size_t lkg_n_syscall_rules = LKG_ARRAY_SIZE(lkg_syscall_rules);

const int lkg_syscalls_common[] = {
        /* memory */
        SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_msync, SYS_mincore,
        SYS_mlock, SYS_mlock2, SYS_munlock, SYS_memfd_create, SYS_membarrier,
        /* threads; clone: by its flags */
        SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_rseq, SYS_exit,
        SYS_exit_group, SYS_gettid, SYS_sched_yield, SYS_sched_getaffinity, SYS_getcpu,
        /* this process */
        SYS_getpid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getgroups,
        SYS_getresuid, SYS_getresgid, SYS_getrusage, SYS_times, SYS_uname, SYS_sysinfo, SYS_getrandom,
        SYS_umask, SYS_capget,
        /* time */
        SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday,
        SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
        /* receiving signals */
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait,
        SYS_sigaltstack, SYS_signalfd4, SYS_restart_syscall,
        /* waiting */
        SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_ppoll, SYS_pselect6, SYS_eventfd2, SYS_pipe2,
        SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_pidfd_open, SYS_waitid,
        SYS_wait4,
        /* descriptors and files */
        SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
        SYS_lseek, SYS_close, SYS_dup, SYS_dup3, SYS_openat, SYS_openat2, SYS_fstat, SYS_newfstatat,
        SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_statfs,
        SYS_fstatfs, SYS_fadvise64,
        /* existing sockets */
        SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown, SYS_getsockname, SYS_getpeername,
        SYS_getsockopt, SYS_setsockopt, SYS_accept4,
/* older variants */
#ifdef SYS_epoll_pwait2
        SYS_epoll_pwait2,
#endif
#ifdef SYS_close_range
        SYS_close_range,
#endif
#ifdef SYS_open
        SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_poll, SYS_select, SYS_epoll_wait,
        SYS_dup2, SYS_pipe, SYS_eventfd, SYS_getdents,
#endif
#ifdef SYS_time
        SYS_time,
#endif
#ifdef SYS_arch_prctl
        SYS_arch_prctl
#endif
};
const size_t lkg_n_syscalls_common = LKG_ARRAY_SIZE(lkg_syscalls_common);

#ifdef ARCH

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

/* Checked after the policy's own. */
static const struct lkg_syscall_argument common_arguments[] = {
        /* Signals and limits: only for this process itself. */
        { SYS_kill, 0, true, true, 0, { 0 }, EPERM },
        { SYS_tgkill, 0, true, true, 0, { 0 }, EPERM },
        { SYS_rt_sigqueueinfo, 0, true, true, 0, { 0 }, EPERM },
        { SYS_rt_tgsigqueueinfo, 0, true, true, 0, { 0 }, EPERM },
        { SYS_prlimit64, 0, true, true, 1, { 0 }, EPERM },
        /* Names of threads and of memory, but not whether other processes may inspect us. */
        { SYS_prctl,
          0,
          true,
          false,
          5,
          { PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE, PR_GET_SECCOMP },
          EPERM },
        { SYS_fcntl, 1, false, false, 2, { F_SETOWN, F_SETOWN_EX }, EPERM },
        /*
         * The last two write to the terminal that lkgfsd was started from: as input, and as a pasted
         * selection.
         */
        { SYS_ioctl, 1, false, false, 4, { FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX }, 0 },
};

struct program {
        size_t n;
        struct sock_filter at[PROGRAM_MAX];
};

static void put(struct program *p, struct sock_filter instruction)
{
        assert(p->n < PROGRAM_MAX); /* only the tables above are added */
        p->at[p->n++] = instruction;
}

static void put_answer(struct program *p, uint32_t answer)
{
        put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

static uint32_t refusal(int error)
{
        return error ? SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA) : SECCOMP_RET_KILL_PROCESS;
}

/*
 * If the loaded value compares like this with @value, continue with the next @n instructions, else skip
 * them.
 */
static void put_test(struct program *p, uint16_t comparison, uint32_t value, unsigned n)
{
        put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0, (uint8_t)n));
}

/* Arguments that the kernel treats as ints: the upper half of the register has no meaning. */
static void put_load_argument(struct program *p, unsigned argument)
{
        uint32_t offset = (uint32_t)(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));

        if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
                offset += (uint32_t)sizeof(uint32_t);
        put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void put_rule(struct program *p, const struct lkg_syscall_rule *rule)
{
        put_test(p, BPF_JEQ, (uint32_t)rule->nr, 1);
        put_answer(p, refusal(rule->error));
}

static void put_argument_rule(struct program *p, const struct lkg_syscall_argument *rule)
{
        uint32_t listed = rule->only ? SECCOMP_RET_ALLOW : refusal(rule->error);
        unsigned n = rule->n_values + (rule->own ? 1 : 0);

        put_test(p, BPF_JEQ, (uint32_t)rule->nr, 1 + 2 * n + 1);
        put_load_argument(p, rule->argument);
        for (unsigned i = 0; i < n; i++) {
                put_test(p, BPF_JEQ, i < rule->n_values ? rule->values[i] : (uint32_t)getpid(), 1);
                put_answer(p, listed);
        }
        put_answer(p, rule->only ? refusal(rule->error) : SECCOMP_RET_ALLOW);
}

/* Creates threads, but also processes, which we do not need; in new namespaces they are an attack. */
static void put_clone(struct program *p)
{
        put_test(p, BPF_JEQ, SYS_clone, 6);
        put_load_argument(p, CLONE_FLAGS_ARG);
        put_test(p, BPF_JSET, CLONE_NAMESPACES, 1);
        put_answer(p, SECCOMP_RET_KILL_PROCESS);
        put_test(p, BPF_JSET, CLONE_THREAD, 1);
        put_answer(p, SECCOMP_RET_ALLOW);
        put_answer(p, refusal(EPERM));
}

/* Other calling conventions reach the same calls by other numbers; our programs do not use them. */
static void put_convention(struct program *p)
{
        put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
        put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
        put_answer(p, SECCOMP_RET_KILL_PROCESS);
        put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
#ifdef X32_BIT
        put_test(p, BPF_JGE, X32_BIT, 1);
        put_answer(p, SECCOMP_RET_KILL_PROCESS);
#endif
}

static void put_arguments(struct program *p, const struct lkg_syscall_argument *rules, size_t n)
{
        for (size_t i = 0; i < n; i++)
                put_argument_rule(p, &rules[i]);
}

static void put_allowed(struct program *p, const int *numbers, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                put_test(p, BPF_JEQ, (uint32_t)numbers[i], 1);
                put_answer(p, SECCOMP_RET_ALLOW);
        }
}

static void build(struct program *p, const struct lkg_syscall_policy *policy)
{
        const char *mode = secure_getenv(MODE_WORD);

        put_convention(p);
        put_arguments(p, policy->arguments, policy->n_arguments);
        put_arguments(p, common_arguments, LKG_ARRAY_SIZE(common_arguments));
        put_allowed(p, policy->allowed, policy->n_allowed);
        for (size_t i = 0; i < lkg_n_syscall_rules; i++)
                put_rule(p, &lkg_syscall_rules[i]);
        put_clone(p);
        put_allowed(p, lkg_syscalls_common, lkg_n_syscalls_common);
        put_answer(p, mode && strcmp(mode, "kill") == 0 ? refusal(0) : refusal(ENOSYS));
}

int lkg_syscalls_restrict(const struct lkg_syscall_policy *policy, struct lkg_error *err)
{
        /*
         * Without this flag, kernels before 5.16 disable speculation for the process, which costs a file
         * server a fifth.
         */
        const unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        struct program p = { 0 };
        struct sock_fprog program = { .filter = p.at };

        build(&p, policy);
        program.len = (unsigned short)p.n;
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) < 0 && errno != EINVAL &&
            errno != ENOSYS)
                return lkg_error_set(err, -errno, NULL, "seccomp filter");
        return 0; /* EINVAL, ENOSYS: a kernel without seccomp filters; the other measures still apply */
}

#else

int lkg_syscalls_restrict(const struct lkg_syscall_policy *policy, struct lkg_error *err)
{
        return 0;
}

#endif

/* ---- syscall-policy ---- */

/* socketpair(2) takes its flags in the type argument. */
#define STREAM(flags) (SOCK_STREAM | (flags))

#define NEVER(call)                                         \
        {                                                   \
                SYS_##call, 0, true, false, 0, { 0 }, EPERM \
        }

/*
 * First the calls that an engine running as root may not make, then the calls that are checked by an
 * argument.
 */
#ifdef SYS_open
#define N_OLD 6
#else
#define N_OLD 0
#endif
#define N_OF_ROOT (5 + N_OLD)

static const struct lkg_syscall_argument arguments[] = {
        NEVER(fchmod),
        NEVER(fchmodat),
        NEVER(fchown),
        NEVER(fchownat),
        NEVER(utimensat),
#ifdef SYS_open
        NEVER(chmod),
        NEVER(chown),
        NEVER(lchown),
        NEVER(utime),
        NEVER(utimes),
        NEVER(futimesat),
#endif
        /*
         * No AF_UNIX: by name, it could reach every socket of root on this node, above all those of the
         * service manager and the container runtime. Netlink: the resolver reads the addresses of this
         * machine.
         */
        { SYS_socket, 0, true, false, 3, { AF_INET, AF_INET6, AF_NETLINK }, EAFNOSUPPORT },
        /*
         * libcurl wakes itself up with a socketpair. A datagram socket could send to any name; these stay
         * connected to each other.
         */
        { SYS_socketpair,
          1,
          true,
          false,
          4,
          { STREAM(0), STREAM(SOCK_CLOEXEC), STREAM(SOCK_NONBLOCK), STREAM(SOCK_CLOEXEC | SOCK_NONBLOCK) },
          EAFNOSUPPORT },
        /*
         * No leases and no locks: both can make other processes wait, and for some of them a readable file
         * is enough.
         */
        { SYS_fcntl,
          1,
          true,
          false,
          8,
          { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_ADD_SEALS, F_GET_SEALS },
          EPERM },
        /*
         * The engine passes no descriptor to our other processes: closing the last one of a connection can
         * take hours (SO_LINGER).
         */
        { SYS_sendmsg, 0, true, false, 0, { 0 }, ENOSYS },
        { SYS_sendmmsg, 0, true, false, 0, { 0 }, ENOSYS },
};

static const int allowed[] = {
        /* state and publications */
        SYS_mkdirat, SYS_unlinkat, SYS_renameat2, SYS_linkat, SYS_ftruncate, SYS_fallocate, SYS_fsync,
        SYS_fdatasync, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_fgetxattr,
        SYS_getxattr, SYS_lgetxattr, SYS_copy_file_range,
        /* the API server and the resolver */
        SYS_connect, SYS_bind, SYS_recvmmsg,
#ifdef SYS_accept /* s390x: accept4 with no flags */
        SYS_accept,
#endif
#ifdef SYS_renameat
        SYS_renameat,
#endif
#ifdef SYS_getrlimit
        SYS_getrlimit, SYS_setrlimit,
#endif
#ifdef SYS_open
        SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename, SYS_chmod
#endif
};

_Static_assert(LKG_ARRAY_SIZE(arguments) > N_OF_ROOT, "the first ones");

const struct lkg_syscall_policy lkg_engine_syscalls = {
        .arguments = arguments + N_OF_ROOT,
        .n_arguments = LKG_ARRAY_SIZE(arguments) - N_OF_ROOT,
        .allowed = allowed,
        .n_allowed = LKG_ARRAY_SIZE(allowed),
};

const struct lkg_syscall_policy lkg_engine_syscalls_of_root = {
        .arguments = arguments,
        .n_arguments = LKG_ARRAY_SIZE(arguments),
        .allowed = allowed,
        .n_allowed = LKG_ARRAY_SIZE(allowed),
};
