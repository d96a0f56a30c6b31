/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock (Linux 5.13 and later): a process of ours may change files below the directories that it was
 * given, and nowhere else; it cannot execute programs or open ports and, from Linux 6.12 on, it cannot
 * signal processes outside or connect to abstract sockets. Source: <linux/landlock.h>, landlock(7).
 *
 * This is in addition to read-only mounts: it also applies to later mounts, and without a mount namespace.
 */
#pragma once

#include <lkg/error.h>

/**
 * lkg_landlock_enter() - restrict this process for good; no_new_privs must be set before.
 * @writable: descriptors of directories; regular files and directories may be created there
 * @special: links, FIFOs, sockets and device nodes as well
 *
 * Return: the ABI version in use; 0: not supported by the kernel, or disabled; -errno.
 */
int lkg_landlock_enter(const int *writable, size_t n_writable, bool special, struct lkg_error *err);
