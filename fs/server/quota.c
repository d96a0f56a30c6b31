/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts by owner: open addressing with linear probing, without allocations, so that it works when memory is
 * exhausted.
 */
#include <string.h>

#include "quota.h"
#include "file-server.h"

static uint32_t home(const struct quota *quota, uint32_t owner)
{
        return (owner * 2654435761u >> 7) & (quota->n_cells - 1);
}

/* The cell of @owner, or the free one where it would be. */
static struct quota_cell *find_cell(const struct quota *quota, uint32_t owner)
{
        uint32_t i = home(quota, owner);

        while (quota->cells[i].owner != 0 && quota->cells[i].owner != owner)
                i = (i + 1) & (quota->n_cells - 1);
        return &quota->cells[i];
}

bool lkg_quota_ask(const struct quota *quota, uint32_t owner)
{
        const struct quota_cell *cell;

        if (owner == QUOTA_HOST_ROOT)
                return true;
        if (quota->n_users >= quota->size / 2)
                return false;
        cell = find_cell(quota, owner);
        if (cell->owner == 0)
                return quota->n_used < quota->n_cells / 2;
        return cell->n < quota->size / 8;
}

bool lkg_quota_is_nearly_used(const struct quota *quota, uint32_t owner)
{
        return owner != QUOTA_HOST_ROOT &&
               (find_cell(quota, owner)->n >= quota->size / 32 * 3 || quota->n_users >= quota->size / 8 * 3);
}

bool lkg_quota_is_half_used(const struct quota *quota, uint32_t owner)
{
        return owner != QUOTA_HOST_ROOT && find_cell(quota, owner)->n > quota->size / 16;
}

/*
 * Records that were not checked (a replay) may belong to more owners than there are cells;
 * the excess counts for all users together.
 */
void lkg_quota_add(struct quota *quota, uint32_t owner)
{
        struct quota_cell *cell;

        if (owner == QUOTA_HOST_ROOT) {
                quota->n_root++;
                return;
        }
        quota->n_users++;
        if (owner == 0)
                return;
        cell = find_cell(quota, owner);
        if (cell->owner == 0) {
                if (quota->n_used + 1 >= quota->n_cells)
                        return;
                cell->owner = owner;
                quota->n_used++;
        }
        cell->n++;
}

/* Move up cells that are further along only because this one was taken. */
static void empty(struct quota *quota, uint32_t hole)
{
        uint32_t mask = quota->n_cells - 1;

        quota->n_used--;
        for (uint32_t i = (hole + 1) & mask; quota->cells[i].owner != 0; i = (i + 1) & mask) {
                uint32_t from = home(quota, quota->cells[i].owner);

                if (((i - from) & mask) < ((i - hole) & mask))
                        continue;
                quota->cells[hole] = quota->cells[i];
                hole = i;
        }
        quota->cells[hole] = (struct quota_cell){ 0 };
}

void lkg_quota_remove(struct quota *quota, uint32_t owner)
{
        struct quota_cell *cell;

        if (owner == QUOTA_HOST_ROOT) {
                if (quota->n_root > 0)
                        quota->n_root--;
                return;
        }
        if (quota->n_users > 0)
                quota->n_users--;
        if (owner == 0)
                return;
        cell = find_cell(quota, owner);
        if (cell->owner != 0 && --cell->n == 0)
                empty(quota, (uint32_t)(cell - quota->cells));
}

void lkg_quota_reset(struct quota *quota)
{
        if (quota->n_used > 0)
                memset(quota->cells, 0, quota->n_cells * sizeof(*quota->cells));
        quota->n_users = quota->n_used = quota->n_root = 0;
}

/* ---- records ---- */

uint32_t lkg_records_limit(const struct records *records)
{
        uint32_t limit = 2 * records->n_used;

        return limit < RECORDS_MIN ? RECORDS_MIN : limit < records->n ? limit : records->n;
}

void lkg_records_mark(struct records *records, uint32_t index)
{
        records->used[index / 64] |= UINT64_C(1) << index % 64;
        records->n_used++;
}

uint32_t lkg_records_take(struct records *records)
{
        uint32_t limit = lkg_records_limit(records);

        for (uint32_t n = 0; n < limit; n++) {
                uint32_t i = records->next < limit ? records->next : 0;

                records->next = i + 1;
                if (records->used[i / 64] >> i % 64 & 1)
                        continue;
                lkg_records_mark(records, i);
                return i;
        }
        return records->n;
}

void lkg_records_give(struct records *records, uint32_t index)
{
        records->used[index / 64] &= ~(UINT64_C(1) << index % 64);
        records->n_used--;
}

uint32_t lkg_records_next(const uint64_t *bits, uint32_t i, uint32_t n)
{
        while (i < n) {
                uint64_t rest = bits[i / 64] >> i % 64;

                if (rest != 0)
                        return i + (uint32_t)__builtin_ctzll(rest) < n ? i + (uint32_t)__builtin_ctzll(rest)
                                                                       : n;
                i = (i / 64 + 1) * 64;
        }
        return n;
}

uint32_t lkg_incarnation_new(void)
{
        uint32_t number;

        do
                number = atomic_fetch_add(&server.shm->incarnation, 1) + 1;
        while (number == 0);
        return number;
}
