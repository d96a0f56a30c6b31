/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping privileges at the start of a process, and proving to another process that it belongs to lkgfs. */
#pragma once

#include <sys/types.h>

#include <lkg/account.h>
#include <lkg/error.h>

/* The leak checker of a sanitizer traces its own process, and shadow memory counts as data: such builds have no filter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LKG_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define LKG_SANITIZED 1
#endif
#endif
#ifndef LKG_SANITIZED
#define LKG_SANITIZED 0
#endif

/**
 * lkg_capabilities_keep() - drop all other capabilities, for this thread, the threads that it creates, and
 * every program that it executes; no ambient and no inheritable ones. A capability that was missing before
 * is still missing afterwards.
 * @capabilities: numbers of <linux/capability.h>, ended by -1
 *
 * Source: capabilities(7).
 * Return: 0 or -errno.
 */
int lkg_capabilities_keep(const int *capabilities, struct lkg_error *err);

/** lkg_has_capability() - is it effective in this process? */
bool lkg_has_capability(int capability);

/**
 * lkg_become() - change to another user for good: all ids, no supplementary groups, only @capabilities, and none of them for
 * executed programs. Call while this process has one thread.
 *
 * Source: capabilities(7). Return: 0; -EINVAL: there is no such user in this user namespace; -errno.
 */
int lkg_become(const struct lkg_account *account, const int *capabilities, struct lkg_error *err);

struct lkg_syscall_policy;
/**
 * lkg_confine() - lkg_capabilities_keep(), no_new_privs, and lkg_syscalls_restrict() (not in sanitizer builds).
 * Return: 0; -errno: do not run unprotected.
 */
int lkg_confine(const int *capabilities, const struct lkg_syscall_policy *policy, struct lkg_error *err);

/**
 * lkg_peer_of_host() - does the process at the other end of @socket have our uid, our user namespace, and
 * @capability in effect, and is it still running after these checks?
 * @mount_namespace: it must be in this one, too (inode of /proc/PID/ns/mnt); 0 = any
 *
 * A compromised engine fails: it has no such capability, and its own namespace. So does root in a container.
 * Source: SO_PEERCRED of unix(7), SO_PEERPIDFD from Linux 6.5 on.
 * Return: its pid; -EPERM; another -errno.
 */
int lkg_peer_of_host(int socket, int capability, ino_t mount_namespace);
