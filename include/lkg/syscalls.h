/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a process of ours may make: a seccomp filter (seccomp(2)) made from a policy with
 * four results. Decision: docs/decisions/011-system-calls.md.
 *
 * killed calls that none of our libraries makes and injected code would want: running programs, mounting,
 * inspecting
 *            other processes, changing the kernel. The whole process dies of SIGSYS, and lkgfsd starts another one.
 * an error   calls that a library may try and can do without (Kerberos' keyrings, a fork), and calls that are harmless for
 *            the process itself but not for others: signals and limits of other processes, other socket families.
 * allowed the list: what our test suites were seen to call, and related calls. unlisted ENOSYS, as on a
 * kernel without the call, so that a new C library does not kill a node's engine. With
 *            LKGFS_SYSCALLS=kill in the environment the process dies instead; our end-to-end tests run like that.
 */
#pragma once

#include <lkg/error.h>

#define LKG_SYSCALL_VALUES 8u

struct lkg_syscall_rule {
        const char *name;
        int nr;
        int error; /* the errno of the call; 0 = the process is killed */
};

/* A call that is judged by one argument, of which the lower 32 bits are compared. */
struct lkg_syscall_argument {
        int nr;
        unsigned argument;
        bool only; /* only these values are allowed; otherwise all except these */
        bool own;  /* our pid is one of the values */
        unsigned n_values;
        uint32_t values[LKG_SYSCALL_VALUES];
        int error; /* as in lkg_syscall_rule */
};

struct lkg_syscall_policy {
        const struct lkg_syscall_argument *arguments;
        size_t n_arguments;
        const int *allowed;
        size_t n_allowed;
};

/*
 * Calls that are refused to all our processes, whatever the arguments; threads may be created, processes
 * not.
 */
extern const struct lkg_syscall_rule lkg_syscall_rules[];
extern const size_t lkg_n_syscall_rules;
/* Calls that all our processes need: memory, threads, time, waiting, their own descriptors. */
extern const int lkg_syscalls_common[];
extern const size_t lkg_n_syscalls_common;

/**
 * lkg_syscalls_restrict() - restrict this thread and the threads that it creates, for good: @policy, then
 * lkg_syscall_rules, then the common calls. Needs no_new_privs, or privileges.
 * Return: 0, also on a kernel without filters and on an unknown architecture; -errno.
 */
int lkg_syscalls_restrict(const struct lkg_syscall_policy *policy, struct lkg_error *err);
