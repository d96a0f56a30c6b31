/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which commands may still be carried out: what makes "refused" final.
 *
 * A write to a control file waits for the engine at most engineTimeout. Its message may lie in a queue then, of an engine that
 * hangs, is stopped, or is about to be replaced, and must not be carried out when that queue is read at last: whoever was told
 * that it failed has done something else meanwhile. So a command is *offered* by the file server, *taken* by the engine at the
 * moment in which it begins with it, and can be *withdrawn* only before that; each is one atomic step on one word.
 *
 * The words are a small file of the private runtime directory, mapped by the file server and the engine of the moment; it
 * outlives both. Tickets are unique per boot, so a word names its command and no other.
 */
#pragma once

#include <stdatomic.h>

#include <lkg/error.h>

#define LKG_CLAIMS_NAME  "claims" /* in the runtime directory */
#define LKG_CLAIMS_MAGIC UINT64_C(0x6c6b672d636c6d01)
#define LKG_CLAIMS       1024 /* more than commands that can wait at a time, so that a free word is found soon */

struct lkg_claims {
        uint64_t magic;
        _Atomic uint64_t words[LKG_CLAIMS]; /* ticket << 2 | state, by ticket % LKG_CLAIMS; 0 = free */
};

/** lkg_claims_open() - map the file of @runtime_fd, made when there is none. Its space is taken at once. 0 or -errno. */
int lkg_claims_open(int runtime_fd, struct lkg_claims **ret, struct lkg_error *err);
struct lkg_claims *lkg_claims_close(struct lkg_claims *claims);

/** lkg_claim_offer() - file server: it may be carried out. Return: false when another command has its word. */
bool lkg_claim_offer(struct lkg_claims *claims, uint64_t ticket);
/**
 * lkg_claim_take() - engine: it is being carried out now. Return: false when it is withdrawn, or was never offered.
 *
 * True again for one that an engine before had taken: it died in the middle, and nobody was told that it failed.
 */
bool lkg_claim_take(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claim_withdraw() - file server: it must not be carried out any more. Return: false when it has been taken. */
bool lkg_claim_withdraw(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claim_return() - file server: the engine that took it has died; the next one may take it. */
void lkg_claim_return(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claim_end() - it is answered, whatever became of it. */
void lkg_claim_end(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claims_keep() - file server, at its start: forget every word for which @waits says that nobody waits. */
void lkg_claims_keep(struct lkg_claims *claims, bool (*waits)(uint64_t ticket));
