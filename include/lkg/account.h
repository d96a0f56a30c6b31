/* SPDX-License-Identifier: Apache-2.0 */
/* Users of this machine, as in its own user database file. */
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
 * lkg_account_find() - look up the user @name: an entry of @database with its group, a number (which needs
 * no entry and is also used for the group), or root, also for "".
 * @database: a file like LKG_PASSWD_FILE. No directory service is queried: a node must come up while none of
 * them answers.
 *
 * Return: 0; -ENOENT: unknown, or a number that no process can have; another -errno: @database cannot be read.
 */
int lkg_account_find(const char *database, const char *name, struct lkg_account *ret);

/** lkg_account_parse() - @text is `UID:GID`, in numbers; it is changed. Return: 0; -EINVAL. */
int lkg_account_parse(char *text, struct lkg_account *ret);
