/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process of ours may change anything, as the kernel's own rule (Landlock, Linux 5.13 and later): below directories that
 * it was given, and nowhere else; no program is executed, no port opened, and from Linux 6.12 on no process outside is signalled
 * and no abstract socket reached. Source: <linux/landlock.h>, landlock(7).
 *
 * It holds beside read-only mounts: also for what is mounted into the namespace of the process later, and without a namespace.
 */
#pragma once

#include <lkg/error.h>

/**
 * lkg_landlock_enter() - for this process and for ever; asks for no new privileges to be set before.
 * @writable: descriptors of directories; regular files and directories may be made there
 * @special: links, FIFOs, sockets and device nodes as well
 *
 * Return: ABI version that is in force; 0 the kernel has none, or it is switched off; -errno.
 */
int lkg_landlock_enter(const int *writable, size_t n_writable, bool special, struct lkg_error *err);
