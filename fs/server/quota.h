/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of a table that any user can fill. One user gets an eighth of it, all users together a half; the rest is for root of the
 * host's own namespaces. Root in a container counts as a user of its own: that of its mount namespace. So many users (a user
 * namespace has 65,536 uids) never take the part of root, and no container takes the part of another.
 *
 * A record's owner is a word: uid + 1; for root of another mount namespace the number of that namespace with the highest bit
 * set; 0 if an earlier build recorded none. Counts are in this process and computed again from the owners. No locks: the
 * caller locks the table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define QUOTA_HOST_ROOT 1u /* quota_owner(0) */
#define QUOTA_FOREIGN   0x80000000u

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

static inline uint32_t quota_owner(uid_t uid)
{
        return (uint32_t)uid + 1;
}

/** quota_is_crowded() - is it worth telling root of the host and of a container apart? Reading /proc costs more. */
static inline bool quota_is_crowded(const struct quota *quota)
{
        return quota->n_root >= quota->size / 16;
}

/** quota_ask() - one record more for @owner? Root of the host is not refused: the table has its own end. */
bool quota_ask(const struct quota *quota, uint32_t owner);
/** quota_is_nearly_used() - has @owner three quarters of its share, or have all users three quarters of theirs? */
bool quota_is_nearly_used(const struct quota *quota, uint32_t owner);
/** quota_is_half_used() - has @owner more than half of its share? */
bool quota_is_half_used(const struct quota *quota, uint32_t owner);
void quota_add(struct quota *quota, uint32_t owner);
void quota_remove(struct quota *quota, uint32_t owner);
void quota_reset(struct quota *quota);
