/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that may still be carried out: see lkg/claims.h. */
#include <fcntl.h>

#include <lkg/claims.h>
#include <lkg/file.h>

enum { OFFERED = 1, TAKEN = 2 };

static uint64_t word_of(uint64_t ticket, unsigned state)
{
        return ticket << 2 | state;
}

static _Atomic uint64_t *slot_of(struct lkg_claims *claims, uint64_t ticket)
{
        return &claims->words[ticket % LKG_CLAIMS];
}

/* ---- the file ---- */

/*
 * Two processes may open it at the same time, so it is never replaced: a file of zeros is a valid one without commands, and the
 * magic is only there to tell another layout.
 */
int lkg_claims_open(int runtime_fd, struct lkg_claims **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(runtime_fd, LKG_CLAIMS_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                        0600);
        struct lkg_claims *claims;
        void *p;
        int r;

        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "open %s", LKG_CLAIMS_NAME);
        r = lkg_map_file(fd, sizeof(*claims), &p);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "make %s", LKG_CLAIMS_NAME);
        claims = p;
        if (claims->magic != LKG_CLAIMS_MAGIC) {
                for (size_t i = 0; claims->magic != 0 && i < LKG_CLAIMS; i++)
                        atomic_store(&claims->words[i], 0);
                claims->magic = LKG_CLAIMS_MAGIC;
        }
        *ret = claims;
        return 0;
}

struct lkg_claims *lkg_claims_close(struct lkg_claims *claims)
{
        lkg_unmap_file(claims);
        return NULL;
}

/* ---- words ---- */

bool lkg_claim_offer(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = 0;

        return atomic_compare_exchange_strong(slot_of(claims, ticket), &now, word_of(ticket, OFFERED)) ||
               now == word_of(ticket, OFFERED);
}

bool lkg_claim_take(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = word_of(ticket, OFFERED);

        return atomic_compare_exchange_strong(slot_of(claims, ticket), &now, word_of(ticket, TAKEN)) ||
               now == word_of(ticket, TAKEN);
}

bool lkg_claim_withdraw(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = word_of(ticket, OFFERED);

        return atomic_compare_exchange_strong(slot_of(claims, ticket), &now, 0) ||
               now != word_of(ticket, TAKEN);
}

void lkg_claim_return(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = word_of(ticket, TAKEN);

        (void)atomic_compare_exchange_strong(slot_of(claims, ticket), &now, word_of(ticket, OFFERED));
}

void lkg_claim_end(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = atomic_load(slot_of(claims, ticket));

        if (now >> 2 == ticket)
                (void)atomic_compare_exchange_strong(slot_of(claims, ticket), &now, 0);
}

void lkg_claims_keep(struct lkg_claims *claims, bool (*waits)(uint64_t ticket))
{
        for (size_t i = 0; i < LKG_CLAIMS; i++) {
                uint64_t word = atomic_load(&claims->words[i]);

                if (word != 0 && !waits(word >> 2))
                        atomic_store(&claims->words[i], 0);
        }
}
