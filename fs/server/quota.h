/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have how much of a table that anybody can fill. One user has an eighth of it, all users together a half; who
 * is root by number, in whatever container, a quarter; and what is left, a quarter at least, only root of the host's own
 * namespaces. So many users (a user namespace brings 65,536 uids) never take what root needs, and root in a container
 * never takes what a user has.
 *
 * A record's owner is a word: uid + 1, and 0 where an earlier build noted none. Counts live in this process and are
 * made again from the owners. No locks: whoever has a table has a lock for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct quota_cell {
        uint32_t owner; /* 0 = free */
        uint32_t n;
};

struct quota {
        uint32_t size;    /* records of the table */
        uint32_t n_cells; /* a power of two; half of them is how many users may be there at a time */
        struct quota_cell *cells;
        uint32_t n_users, n_used; /* users with records; cells in use */
        uint32_t n_root;          /* records of uid 0 */
};

enum quota_answer {
        QUOTA_NO,
        QUOTA_YES,
        QUOTA_HOST_ROOT, /* only for root of the host's namespaces: see who asks, then ask again */
};

static inline uint32_t quota_owner(uid_t uid)
{
        return (uint32_t)uid + 1;
}

/** quota_ask() - one record more for @uid? @host_root: it is known to be the host's root. */
enum quota_answer quota_ask(const struct quota *quota, uid_t uid, bool host_root);
void quota_add(struct quota *quota, uint32_t owner);
void quota_remove(struct quota *quota, uint32_t owner);
void quota_reset(struct quota *quota);
