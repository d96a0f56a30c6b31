/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have how much of a table that anybody can fill. One user has an eighth of it, all users together a half, and what is
 * left only root of the host's own namespaces. Root in a container is a user like any other: the one of its mount namespace. So
 * many users (a user namespace brings 65,536 uids) never take what root needs, and no container takes what another one has.
 *
 * A record's owner is a word: uid + 1, for root of another mount namespace that one's number with the highest bit set, and 0 where an
 * earlier build noted none. Counts live in this process and are made again from the owners. No locks: whoever has a table has a
 * lock for it.
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

/** quota_is_crowded() - does it matter whose root it is? Below that nobody is looked at for it: a look costs more than a record. */
static inline bool quota_is_crowded(const struct quota *quota)
{
        return quota->n_root >= quota->size / 16;
}

/** quota_ask() - one record more for @owner? Root of the host is not refused: the table has its own end. */
bool quota_ask(const struct quota *quota, uint32_t owner);
/** quota_is_nearly_used() - has @owner three quarters of what it may have, or users of what they may have together? */
bool quota_is_nearly_used(const struct quota *quota, uint32_t owner);
/** quota_is_half_used() - has @owner more than a half of what it may have? */
bool quota_is_half_used(const struct quota *quota, uint32_t owner);
void quota_add(struct quota *quota, uint32_t owner);
void quota_remove(struct quota *quota, uint32_t owner);
void quota_reset(struct quota *quota);
