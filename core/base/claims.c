/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that may still be carried out: see lkg/messages.h. */
#include <fcntl.h>

#include <lkg/messages.h>
#include <lkg/file.h>

enum { OFFERED = 1, TAKEN = 2, RETURNED = 3 /* taken by an engine that has died: offered again */ };

static uint64_t word_of(uint64_t ticket, unsigned state)
{
        return ticket << 2 | state;
}

static _Atomic uint64_t *slot_of(struct lkg_claims *claims, uint64_t ticket)
{
        return &claims->words[ticket % LKG_CLAIMS];
}

/* ---- the file ---- */

static int open_file(int runtime_fd)
{
        int fd = openat(runtime_fd, LKG_CLAIMS_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                        0600);

        return fd < 0 ? -errno : fd;
}

int lkg_claims_make(int runtime_fd)
{
        LKG_CLEANUP(lkg_closep) int fd = open_file(runtime_fd);

        return fd < 0 ? fd : 0;
}

/*
 * Two processes may open it at the same time, so it is never replaced: a file of zeros is valid and has no
 * commands, and the magic only identifies other layouts.
 */
int lkg_claims_open(int runtime_fd, struct lkg_claims **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = open_file(runtime_fd);
        struct lkg_claims *claims;
        void *p;
        int r;

        if (fd < 0)
                return lkg_error_set(err, fd, NULL, "open %s", LKG_CLAIMS_NAME);
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

/* Return: whether the word was @from. */
static bool turn(struct lkg_claims *claims, uint64_t ticket, unsigned from, uint64_t to)
{
        uint64_t now = word_of(ticket, from);

        return atomic_compare_exchange_strong(slot_of(claims, ticket), &now, to);
}

static bool is_now(struct lkg_claims *claims, uint64_t ticket, unsigned state)
{
        return atomic_load(slot_of(claims, ticket)) == word_of(ticket, state);
}

bool lkg_claim_offer(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = 0;

        return atomic_compare_exchange_strong(slot_of(claims, ticket), &now, word_of(ticket, OFFERED)) ||
               now == word_of(ticket, OFFERED) || now == word_of(ticket, RETURNED);
}

bool lkg_claim_take(struct lkg_claims *claims, uint64_t ticket)
{
        return turn(claims, ticket, OFFERED, word_of(ticket, TAKEN)) ||
               turn(claims, ticket, RETURNED, word_of(ticket, TAKEN)) || is_now(claims, ticket, TAKEN);
}

enum lkg_claim_fate lkg_claim_withdraw(struct lkg_claims *claims, uint64_t ticket)
{
        if (turn(claims, ticket, RETURNED, 0))
                return LKG_CLAIM_UNKNOWN;
        /* It cannot be returned meanwhile: that, too, is done by the file server only. */
        return turn(claims, ticket, OFFERED, 0) || !is_now(claims, ticket, TAKEN) ? LKG_CLAIM_NEVER
                                                                                  : LKG_CLAIM_TAKEN;
}

void lkg_claim_return(struct lkg_claims *claims, uint64_t ticket)
{
        (void)turn(claims, ticket, TAKEN, word_of(ticket, RETURNED));
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
