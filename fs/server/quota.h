/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of a table that any user can fill. One user gets an eighth of it, all users together half; the rest
 * is for root in the host's namespaces. Root in a container counts as a separate user, identified by its
 * mount namespace. So many users (a user namespace has 65,536 uids) never use up root's part, and no
 * container uses up that of another.
 *
 * A record's owner is one integer: uid + 1; for root in another mount namespace the number of that namespace
 * with the highest bit set. The counts are kept in this process and
 * recomputed from the owners. No locks: the caller locks the table.
 *
 * And which records of a table are in use. They are used in turn, but only twice as many as are in use: touched pages of a table stay
 * in memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define QUOTA_HOST_ROOT 1u /* lkg_quota_owner(0) */
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

static inline uint32_t lkg_quota_owner(uid_t uid)
{
        return (uint32_t)uid + 1;
}

/** lkg_quota_is_crowded() - is it worth reading /proc to tell the host's root and that of a container apart? */
static inline bool lkg_quota_is_crowded(const struct quota *quota)
{
        return quota->n_root >= quota->size / 16;
}

/**
 * lkg_quota_ask() - may @owner have one more record? The host's root is not refused: only the table limits it.
 */
bool lkg_quota_ask(const struct quota *quota, uint32_t owner);
/** lkg_quota_is_nearly_used() - is three quarters of @owner's share used, or of that of all users? */
bool lkg_quota_is_nearly_used(const struct quota *quota, uint32_t owner);
/** lkg_quota_is_half_used() - is more than half of @owner's share used? */
bool lkg_quota_is_half_used(const struct quota *quota, uint32_t owner);
void lkg_quota_add(struct quota *quota, uint32_t owner);
void lkg_quota_remove(struct quota *quota, uint32_t owner);
void lkg_quota_reset(struct quota *quota);

#define RECORDS_MIN 1024u

struct records {
        uint64_t *used; /* a bit for each */
        uint32_t n;     /* a multiple of 64 */
        uint32_t n_used, next;
};

/** lkg_records_limit() - records from here on are not taken now. */
uint32_t lkg_records_limit(const struct records *records);
/** lkg_records_take() - Return: the index; n: there is none. */
uint32_t lkg_records_take(struct records *records);
void lkg_records_mark(struct records *records, uint32_t index); /* it is in use already */
void lkg_records_give(struct records *records, uint32_t index);
/** lkg_records_next() - the first one from @i on whose bit is set. Return: @n: none. */
uint32_t lkg_records_next(const uint64_t *bits, uint32_t i, uint32_t n);
/** lkg_incarnation_new() - a number that no record of any table has had, so that no id ever means two things; not 0. */
uint32_t lkg_incarnation_new(void);
