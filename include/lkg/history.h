/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last generations of one component, on disk and as a list.
 *
 * On disk, history/<component>/<n>/ in the state directory:
 *
 *     document   the bytes that were served (0600)
 *     shown      the same with secrets masked; only if there are any
 *     origin     TSV, as status/<component>/origin was
 *     meta.json  schemaVersion 1, generation, sha256 (of document), time (RFC 3339), timeNs, local (init or default),
 *                source (local@<12 hex>), sourceSha256 (of the bytes of a remote one), layers (role, name, and of up to 64 the sha256 of the
 *                layer's canonical YAML)
 *
 * A record is written to a directory with another name and renamed, so it is complete or does not exist;
 * meta.json's sha256 is checked when it is read. The list is in ascending order of generations.
 */
#pragma once

#include <lkg/error.h>

#include "generation.h"

struct lkg_history_entry {
        uint64_t number;
        uint64_t time_ns;
        char source[LKG_SOURCE_ID_MAX + 1]; /* id of the remote configuration in it; "" = local */
        char source_sha256[LKG_SHA256_HEX]; /* of its bytes; "" = local, or of an earlier build */
        char sha256[LKG_SHA256_HEX];        /* of the document */
        struct lkg_generation *generation;  /* NULL = on disk only */
        bool written;
        bool durable; /* written and flushed; for a record of an earlier engine, that is not known */
};

struct lkg_history {
        int dirfd; /* history/<component> */
        struct lkg_history_entry *entries;
        size_t n_entries;
        uint64_t *forgotten; /* records on disk that no longer have an entry */
        size_t n_forgotten;
};

/**
 * lkg_history_open() - read the directory of @component below @state_fd.
 *
 * Removes records that were torn by a power failure (not flushed, so never acknowledged). A record that
 * cannot be read for another reason is reported and skipped.
 */
int lkg_history_open(int state_fd, const char *component, struct lkg_history *ret, struct lkg_report *report,
                     struct lkg_error *err);
void lkg_history_deinit(struct lkg_history *history);

struct lkg_history_entry *lkg_history_find(const struct lkg_history *history, uint64_t number);

/** lkg_history_add() - add @generation; lkg_history_write() writes it later. Return: 0 or -ENOMEM. */
int lkg_history_add(struct lkg_history *history, struct lkg_generation *generation);

/** lkg_history_remove() - remove an entry that was added but not written. */
void lkg_history_remove(struct lkg_history *history, uint64_t number);

/**
 * lkg_history_write() - write entries that are not on disk, free their memory, remove pruned records.
 * @durable: flush this generation, even if it was written before, so that it survives a power failure after a
 *           return of 0; 0 = none
 */
int lkg_history_write(struct lkg_history *history, uint64_t durable, struct lkg_error *err);

/**
 * lkg_history_prune() - remove entries until @limit are left, but none of @keep (active, held, the one that
 * a try returns to): first those with a duplicate of a newer number, then the oldest, so that a burst of
 * changes back and forth does not displace older entries. The next lkg_history_write() removes their records,
 * when no caller waits; a later engine prunes what it still finds.
 * Return: whether any were removed.
 */
bool lkg_history_prune(struct lkg_history *history, size_t limit, const uint64_t *keep, size_t n_keep);

/**
 * lkg_history_get() - get the whole generation, from memory or disk.
 * Return: 0, caller owns one reference; -ENOENT; -EBADMSG; another -errno.
 */
int lkg_history_get(const struct lkg_history *history, uint64_t number, struct lkg_generation **ret,
                    struct lkg_error *err);
