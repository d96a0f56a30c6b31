/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of ours gives up when it starts, and how it proves to another one that it is of ours. */
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
 * lkg_capabilities_keep() - no others, for this thread and those that it makes, and for whatever it executes; no ambient and no
 * inheritable ones. A capability that is kept but was not there is not there afterwards.
 * @capabilities: numbers of <linux/capability.h>, ended by -1
 *
 * Source: capabilities(7). Return: 0 or -errno.
 */
int lkg_capabilities_keep(const int *capabilities, struct lkg_error *err);

/** lkg_has_capability() - in effect for this process? */
bool lkg_has_capability(int capability);

/**
 * lkg_become() - another user for good: all ids, no further groups, of the capabilities only @capabilities, and none of them for
 * anything that is executed. While this process is the only thread.
 *
 * Source: capabilities(7). Return: 0; -EINVAL: there is no such user in this user namespace; -errno.
 */
int lkg_become(const struct lkg_account *account, const int *capabilities, struct lkg_error *err);

struct lkg_syscall_policy;
/**
 * lkg_confine() - lkg_capabilities_keep(), no new privileges, and lkg_syscalls_restrict() but in a sanitizer's build.
 * Return: 0 or -errno: better not to run than to run unprotected.
 */
int lkg_confine(const int *capabilities, const struct lkg_syscall_policy *policy, struct lkg_error *err);

/**
 * lkg_peer_of_host() - is the process at the other end of @socket the user that we are, in our own user namespace, with the
 * capability @capability in effect, and alive after all that was looked at?
 * @mount_namespace: and in that one (inode of /proc/PID/ns/mnt); 0 = whichever
 *
 * An engine that was taken over is none: it has no capability, and a namespace of its own. Root of a container is none.
 * Source: SO_PEERCRED of unix(7), SO_PEERPIDFD from Linux 6.5 on. Return: its process id; -EPERM; another -errno.
 */
int lkg_peer_of_host(int socket, int capability, ino_t mount_namespace);
