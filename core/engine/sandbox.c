/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up privileges: see sandbox.h. */
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "sandbox.h"

#define DATA_BYTES_MAX (256u << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH AUDIT_ARCH_S390X
#endif

static int drop_capabilities(struct lkg_error *err)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };

        /* The bounding set first, while we may; without the capability to do so there is nothing to bound. */
        for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0)
                return lkg_error_set(err, -errno, NULL, "drop capabilities");
        return 0;
}

static int limit(int resource, rlim_t value)
{
        const struct rlimit both = { value, value };

        return setrlimit((__rlimit_resource_t)resource, &both) < 0 ? -errno : 0;
}

#ifdef ARCH
#define DENY(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, DENIED)
#define DENIED     (SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA))

/* A deny-list: what could change the system or reach into another process. The rest the C library may need. */
static int deny_system_calls(struct lkg_error *err)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, DENIED), /* another calling convention: nothing of ours */
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                DENY(mount),
                DENY(umount2),
                DENY(pivot_root),
                DENY(fsopen),
                DENY(fsmount),
                DENY(fspick),
                DENY(move_mount),
                DENY(open_tree),
                DENY(mount_setattr),
                DENY(chroot),
                DENY(setns),
                DENY(unshare),
                DENY(ptrace),
                DENY(process_vm_readv),
                DENY(process_vm_writev),
                DENY(pidfd_getfd),
                DENY(init_module),
                DENY(finit_module),
                DENY(delete_module),
                DENY(kexec_load),
                DENY(reboot),
                DENY(swapon),
                DENY(swapoff),
                DENY(bpf),
                DENY(perf_event_open),
                DENY(userfaultfd),
                DENY(keyctl),
                DENY(add_key),
                DENY(request_key),
                DENY(open_by_handle_at),
                DENY(sethostname),
                DENY(setdomainname),
                DENY(settimeofday),
                DENY(clock_settime),
                DENY(acct),
                DENY(quotactl),
                DENY(execve),
                DENY(execveat),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = { .len = (unsigned short)LKG_ARRAY_SIZE(filter),
                                            .filter = filter };

        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 && errno != EINVAL)
                return lkg_error_set(err, -errno, NULL, "seccomp filter");
        return 0; /* EINVAL: a kernel without seccomp filters; the rest still holds */
}
#else
static int deny_system_calls(struct lkg_error *err)
{
        (void)err;
        return 0;
}
#endif

int lkg_sandbox_enter(struct lkg_error *err)
{
        int r = limit(RLIMIT_CORE, 0);

        if (r >= 0 && !SANITIZED) /* a sanitizer's shadow memory counts as data */
                r = limit(RLIMIT_DATA, DATA_BYTES_MAX);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "resource limits");
        if (prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        r = drop_capabilities(err);
        if (r < 0 || SANITIZED) /* the leak checker traces its own process */
                return r;
        return deny_system_calls(err);
}
