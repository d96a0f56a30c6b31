/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of a table that any user can fill. One user gets an eighth of it, all users together half; the rest
 * is for root in the host's namespaces. Root in a container counts as a separate user, identified by its
 * mount namespace. So many users (a user namespace has 65,536 uids) never use up root's part, and no
 * container uses up that of another.
 *
 * A record's owner is one integer: uid + 1; for root in another mount namespace the number of that namespace
 * with the highest bit set; 0 if an earlier build recorded none. The counts are kept in this process and
 * recomputed from the owners. No locks: the caller locks the table.
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
        uint32_t n_cells; /* a power of two; room for half as many users at a time */
        struct quota_cell *cells;
        uint32_t n_users, n_used; /* users with records; cells in use */
        uint32_t n_root;          /* records of uid 0 */
};

static inline uint32_t quota_owner(uid_t uid)
{
        return (uint32_t)uid + 1;
}

/** quota_is_crowded() - is it worth reading /proc to tell the host's root and that of a container apart? */
static inline bool quota_is_crowded(const struct quota *quota)
{
        return quota->n_root >= quota->size / 16;
}

/**
 * quota_ask() - may @owner have one more record? The host's root is not refused: only the table limits it.
 */
bool quota_ask(const struct quota *quota, uint32_t owner);
/** quota_is_nearly_used() - is three quarters of @owner's share used, or of that of all users? */
bool quota_is_nearly_used(const struct quota *quota, uint32_t owner);
/** quota_is_half_used() - is more than half of @owner's share used? */
bool quota_is_half_used(const struct quota *quota, uint32_t owner);
void quota_add(struct quota *quota, uint32_t owner);
void quota_remove(struct quota *quota, uint32_t owner);
void quota_reset(struct quota *quota);
