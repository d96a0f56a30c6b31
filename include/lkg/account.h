/* SPDX-License-Identifier: Apache-2.0 */
/* Users of this machine, as its own file names them. */
#pragma once

#include <sys/types.h>

#include <lkg/base.h>

#define LKG_PASSWD_FILE "/etc/passwd"

/* All 0: root. */
struct lkg_account {
        uid_t uid;
        gid_t gid;
};

/**
 * lkg_account_find() - the user @name: one of @database with its group, a number (which need not be in there, and is the group's,
 * too), or root, as which "" counts.
 * @database: a file like LKG_PASSWD_FILE. No directory service is asked: a node must come up while none of them answers.
 *
 * Return: 0; -ENOENT: unknown, also when it is no number that a process can have; another -errno: @database cannot be read.
 */
int lkg_account_find(const char *database, const char *name, struct lkg_account *ret);
