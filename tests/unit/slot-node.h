/* SPDX-License-Identifier: Apache-2.0 */
/* One node that seeks a slot, for tests: they set what has become of the content. Include <cmocka.h> before. */
#pragma once

#include "slot-samples.h"

struct node {
        struct lkg_seeker seeker;
        enum lkg_slot_outcome outcome;
        uint64_t now_ns;
};

static inline enum lkg_slot_outcome outcome(const char *sha256, char reason[static LKG_SLOT_REASON_MAX],
                                            void *userdata)
{
        const struct node *node = userdata;

        if (strcmp(sha256, "aa") != 0)
                return LKG_OUTCOME_OVER;
        if (node->outcome == LKG_OUTCOME_BAD)
                (void)strcpy(reason, "it broke");
        return node->outcome;
}

static inline struct lkg_seeker_moment at(uint64_t ns)
{
        return (struct lkg_seeker_moment){ ns, 0, 0 }; /* random 0: no wait */
}

static inline void begin(struct node *node)
{
        const struct lkg_seeker_ops ops = { .outcome = outcome, .userdata = node };
        const struct lkg_slot_wish wish = { .any = true,
                                            .id = make_id("aa"),
                                            .newest = true,
                                            .max_in_trial = 2,
                                            .max_failures = 1,
                                            .duration_ns = 600 * S };

        *node = (struct node){ .outcome = LKG_OUTCOME_WANTED };
        lkg_seeker_init(&node->seeker, "me", &ops);
        lkg_seeker_wish(&node->seeker, &wish);
}

static inline void list_only(struct node *node, const struct lkg_rollout_slot *slots, size_t n, uint64_t ns)
{
        uint64_t due;

        node->now_ns = ns;
        assert_int_equal(lkg_seeker_next(&node->seeker, at(ns), &due), LKG_SLOT_LIST);
        lkg_seeker_list_begins(&node->seeker, "");
        for (size_t i = 0; i < n; i++)
                lkg_seeker_put_listed(&node->seeker, &slots[i], ns);
        lkg_seeker_listed(&node->seeker, at(ns));
}

/* And the watch that follows. */
static inline void list(struct node *node, const struct lkg_rollout_slot *slots, size_t n, uint64_t ns)
{
        list_only(node, slots, n, ns);
        lkg_seeker_watch_open(&node->seeker);
}

static inline enum lkg_slot_request next(struct node *node, uint64_t ns)
{
        uint64_t due;
        enum lkg_slot_request request = lkg_seeker_next(&node->seeker, at(ns), &due);

        node->now_ns = ns;
        return request == LKG_SLOT_NOTHING && due <= ns + S ? lkg_seeker_next(&node->seeker, at(due), &due)
                                                            : request;
}

static inline enum lkg_slot_verdict verdict(const struct node *node)
{
        char words[256];

        return lkg_seeker_verdict(&node->seeker, node->now_ns, words);
}
