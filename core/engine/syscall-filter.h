/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls the engine may make: a seccomp filter with three answers.
 *
 * killed    what no library of ours ever does and injected code wants: running programs, mounting, looking into other
 *           processes, changing the kernel. The whole process dies of SIGSYS, and lkgfsd starts another engine.
 * an error  what a library may try and survives (Kerberos' keyrings, a fork, a newer call with an older one behind it), and what
 *           is harmless for the engine itself but not for others: signals and limits of other processes, other socket families.
 * allowed   the rest, so that a new C library does not end the engine: docs/decisions/011-system-calls.md.
 */
#pragma once

#include <lkg/error.h>

struct lkg_syscall_rule {
        const char *name;
        int nr;
        int error; /* what it fails with; 0 = the process is killed */
};

/* Calls that are refused whatever their arguments are. */
extern const struct lkg_syscall_rule lkg_syscall_rules[];
extern const size_t lkg_n_syscall_rules;

/**
 * lkg_syscall_filter_install() - for this thread and those that it makes, for good. Needs no_new_privs, or privileges.
 * Return: 0, also on a kernel without filters and on an architecture that is not known here; -errno.
 */
int lkg_syscall_filter_install(struct lkg_error *err);
