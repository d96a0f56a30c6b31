/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which commands may still be carried out, so that "refused" is final. Rules: docs/specification.md 6.3.
 *
 * A write to a control file waits at most engineTimeout for the engine. After that, its message may still be
 * in the queue of an engine that hangs, is stopped, or is about to be replaced. It must not be carried out
 * when that queue is finally read, because the caller was told that it failed and may have done something
 * else. So a command is *offered* by the file server, *taken* by the engine when it starts, and can be
 * *withdrawn* only before that; each is one atomic operation on one word.
 *
 * The words are in a small file in the private runtime directory, mapped by the current file server and
 * engine; it outlives both. Tickets are unique per boot, so a word identifies one command.
 */
#pragma once

#include <stdatomic.h>

#include <lkg/error.h>

#define LKG_CLAIMS_NAME  "claims" /* in the runtime directory */
#define LKG_CLAIMS_MAGIC UINT64_C(0x6c6b672d636c6d01)
#define LKG_CLAIMS       1024 /* more than commands that can wait at once: a free word is found quickly */

struct lkg_claims {
        uint64_t magic;
        _Atomic uint64_t words[LKG_CLAIMS]; /* ticket << 2 | state, by ticket % LKG_CLAIMS; 0 = free */
};

/**
 * lkg_claims_make() - lkgfsd, before an engine starts: create the file, which is handed over to the engine's
 * user with the directory. If a file server created it meanwhile, it would belong to root.
 * Return: 0 or -errno.
 */
int lkg_claims_make(int runtime_fd);
/**
 * lkg_claims_open() - map the file in @runtime_fd, and create it if necessary, with its space allocated. 0
 * or -errno.
 */
int lkg_claims_open(int runtime_fd, struct lkg_claims **ret, struct lkg_error *err);
struct lkg_claims *lkg_claims_close(struct lkg_claims *claims);

/**
 * lkg_claim_offer() - file server: the command may be carried out.
 * Return: false: another command uses its word.
 */
bool lkg_claim_offer(struct lkg_claims *claims, uint64_t ticket);
/**
 * lkg_claim_take() - engine: the command is being carried out now.
 * Return: false: it was withdrawn, or never offered.
 *
 * Also true for a command that an earlier engine had taken: that engine died before it finished, and the
 * caller was not told of a failure.
 */
bool lkg_claim_take(struct lkg_claims *claims, uint64_t ticket);
enum lkg_claim_fate {
        LKG_CLAIM_NEVER,   /* it was not carried out, and will not be */
        LKG_CLAIM_UNKNOWN, /* an engine that has died may have carried it out; no other engine will */
        LKG_CLAIM_TAKEN,   /* it is being carried out */
};
/**
 * lkg_claim_withdraw() - file server: the command must no longer be carried out, unless it has been taken.
 */
enum lkg_claim_fate lkg_claim_withdraw(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claim_return() - file server: the engine that took it has died; the next one may take it. */
void lkg_claim_return(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claim_end() - file server: the command has been answered, with any result. */
void lkg_claim_end(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claims_keep() - file server, at its start: clear every word whose command no caller waits for. */
void lkg_claims_keep(struct lkg_claims *claims, bool (*waits)(uint64_t ticket));
