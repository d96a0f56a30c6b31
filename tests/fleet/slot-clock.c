/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See slot-clock.h. The linker replaces calls from apiserver-slots.c into seeker.c by these (--wrap), so the product needs no option for
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include <lkg/slots.h>

#include "slot-clock.h"

#define YEAR (365 * 24 * 3600 * LKG_NSEC_PER_SEC)

struct slot_clock slot_clock = { .lapse = 1 };

static struct lkg_seeker_moment other(const struct lkg_seeker *seeker, struct lkg_seeker_moment at)
{
        const char *digits = strrchr(seeker->node, '-');
        uint32_t number = digits ? (uint32_t)strtoul(digits + 1, NULL, 10) : 0;

        at.now_ns *= slot_clock.lapse;
        if (slot_clock.wrong) /* 0 to 20 years, less ten */
                at.wall_ns += (number * UINT64_C(2654435761) % 1000) * (YEAR / 50) - 10 * YEAR;
        return at;
}

enum lkg_slot_request __real_lkg_seeker_next(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                             uint64_t *ret_due_ns);
enum lkg_slot_request __wrap_lkg_seeker_next(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                             uint64_t *ret_due_ns);
enum lkg_slot_request __wrap_lkg_seeker_next(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                             uint64_t *ret_due_ns)
{
        enum lkg_slot_request request = __real_lkg_seeker_next(seeker, other(seeker, at), ret_due_ns);

        if (*ret_due_ns != UINT64_MAX)
                *ret_due_ns = *ret_due_ns / slot_clock.lapse + 1;
        return request;
}

void __real_lkg_seeker_put(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, uint64_t now_ns);
void __wrap_lkg_seeker_put(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, uint64_t now_ns);
void __wrap_lkg_seeker_put(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, uint64_t now_ns)
{
        __real_lkg_seeker_put(seeker, slot, now_ns * slot_clock.lapse);
}

void __real_lkg_seeker_put_listed(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot,
                                  uint64_t now_ns);
void __wrap_lkg_seeker_put_listed(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot,
                                  uint64_t now_ns);
void __wrap_lkg_seeker_put_listed(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot,
                                  uint64_t now_ns)
{
        __real_lkg_seeker_put_listed(seeker, slot, now_ns * slot_clock.lapse);
}

void __real_lkg_seeker_watch_lost(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_watch_lost(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_watch_lost(struct lkg_seeker *seeker, struct lkg_seeker_moment at)
{
        __real_lkg_seeker_watch_lost(seeker, other(seeker, at));
}

void __real_lkg_seeker_watch_refused(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_watch_refused(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_watch_refused(struct lkg_seeker *seeker, struct lkg_seeker_moment at)
{
        __real_lkg_seeker_watch_refused(seeker, other(seeker, at));
}

void __real_lkg_seeker_listed(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_listed(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_listed(struct lkg_seeker *seeker, struct lkg_seeker_moment at)
{
        __real_lkg_seeker_listed(seeker, other(seeker, at));
}

void __real_lkg_seeker_answered(struct lkg_seeker *seeker, enum lkg_slot_answer answer,
                                const struct lkg_rollout_slot *written, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_answered(struct lkg_seeker *seeker, enum lkg_slot_answer answer,
                                const struct lkg_rollout_slot *written, struct lkg_seeker_moment at);
void __wrap_lkg_seeker_answered(struct lkg_seeker *seeker, enum lkg_slot_answer answer,
                                const struct lkg_rollout_slot *written, struct lkg_seeker_moment at)
{
        __real_lkg_seeker_answered(seeker, answer, written, other(seeker, at));
}
