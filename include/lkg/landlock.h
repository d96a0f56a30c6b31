/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock (Linux 5.13 and later): a process of ours may change files below the directories that it was given, and nowhere else;
 * it executes no program, opens no port, and from Linux 6.12 on signals no process outside and reaches no abstract
 * socket. Source: <linux/landlock.h>, landlock(7).
 *
 * This is in addition to read-only mounts: it also holds for what is mounted later, and without a mount namespace.
 */
#pragma once

#include <lkg/error.h>

/**
 * lkg_landlock_enter() - restrict this process for ever; no_new_privs must be set before.
 * @writable: descriptors of directories; regular files and directories may be made there
 * @special: links, FIFOs, sockets and device nodes as well
 *
 * Return: the ABI version in force; 0 the kernel has none, or it is switched off; -errno.
 */
int lkg_landlock_enter(const int *writable, size_t n_writable, bool special, struct lkg_error *err);
