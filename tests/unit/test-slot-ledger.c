/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node knows of all slots: lists against events, too many of them, old ones.
 * Rule: docs/specification.md 4.14.
 */
#include "unit.h"
#include "slot-node.h"

/* By the observer's own clock, in contact or not: the newest slot of what is wanted may be hardly younger, or there may be none. */
TEST(test_silent_slots_of_another_content_are_collected)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_HELD, "other", "5"),
                                             make_slot(0, LKG_SLOT_FREE, "", "4") };
        const struct lkg_rollout_id old = make_id("bb");
        struct node node;

        slots[0].created_ns = 20 * S;
        slots[1].created_ns = 10 * S;
        memcpy(slots[1].hash, old.hash, sizeof(old.hash));
        begin(&node);
        list(&node, slots, 2, S);
        lkg_seeker_lost_contact(&node.seeker);
        list(&node, slots, 2, LKG_SLOT_OLD_NS);
        assert_int_equal(next(&node, LKG_SLOT_OLD_NS), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, LKG_SLOT_OLD_NS + S), LKG_SLOT_UPDATE);
        assert_true(node.seeker.writing.collected);
        assert_string_equal(node.seeker.writing.hash, old.hash);
        lkg_seeker_deinit(&node.seeker);
}

/* A node that is kept at an earlier content: to it the slots of the newest look old, and one of them has halted that rollout. */
TEST(test_who_is_kept_back_collects_nothing)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_FAILED, "other", "4");
        const struct lkg_rollout_id newest = make_id("bb");
        struct lkg_slot_wish wish;
        struct node node;

        memcpy(slot.hash, newest.hash, sizeof(newest.hash));
        begin(&node);
        wish = node.seeker.wish;
        wish.newest = false;
        lkg_seeker_wish(&node.seeker, &wish);
        list(&node, &slot, 1, S);
        node.outcome = LKG_OUTCOME_GOOD;
        assert_int_equal(next(&node, LKG_SLOT_OLD_NS + 2 * S),
                         LKG_SLOT_CREATE); /* it only wants one for itself */
        lkg_seeker_answered(&node.seeker, LKG_SLOT_UNCLEAR, NULL, at(LKG_SLOT_OLD_NS + 3 * S));
        wish.any = false;
        lkg_seeker_wish(&node.seeker, &wish);
        list(&node, &slot, 1, LKG_SLOT_OLD_NS + 60 * S);
        assert_int_equal(next(&node, 2 * LKG_SLOT_OLD_NS), LKG_SLOT_NOTHING);
        wish.newest = true;
        lkg_seeker_wish(&node.seeker, &wish);
        assert_int_equal(next(&node, 2 * LKG_SLOT_OLD_NS + S), LKG_SLOT_UPDATE);
        assert_true(node.seeker.writing.collected);
        lkg_seeker_deinit(&node.seeker);
}

TEST(test_old_slots_are_collected)
{
        struct lkg_rollout_slot slots[3] = { make_slot(0, LKG_SLOT_HELD, "other", "5"),
                                             make_slot(0, LKG_SLOT_FREE, "", "4"),
                                             make_slot(1, LKG_SLOT_FAILED, "x", "3") };
        const struct lkg_rollout_id old = make_id("bb");
        struct node node;

        slots[0].created_ns = LKG_SLOT_OLD_NS + 10 * S;
        slots[1].created_ns = 5 * S;
        slots[2].created_ns = 20 * S; /* less than a day older */
        memcpy(slots[1].hash, old.hash, sizeof(old.hash));
        memcpy(slots[2].hash, old.hash, sizeof(old.hash));
        begin(&node);
        list(&node, slots, 3, S);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_UPDATE);
        assert_true(node.seeker.writing.collected);
        assert_int_equal(node.seeker.writing.index, 0);
        slots[1] = node.seeker.writing;
        (void)strcpy(slots[1].version, "6");
        lkg_seeker_answered(&node.seeker, LKG_SLOT_DONE, &slots[1], at(3 * S));
        (void)strcpy(slots[2].key, "special"); /* a pool of its own: its failures stay */
        slots[2].created_ns = 5 * S;
        (void)strcpy(slots[2].version, "7");
        lkg_seeker_put(&node.seeker, &slots[2], 4 * S);
        assert_int_equal(next(&node, 700 * S), LKG_SLOT_NOTHING);
        lkg_seeker_deinit(&node.seeker);
}

/* etcd was restored: what was known is newer than what there is. */
TEST(test_versions_that_go_back)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_FREE, "", "5000");
        struct node node;

        assert_true(lkg_version_compare("3000", "5000") == LKG_VERSION_OLDER);
        assert_false(lkg_version_compare("10000", "5000") == LKG_VERSION_OLDER);
        assert_false(lkg_version_compare("5000", "") == LKG_VERSION_OLDER);
        begin(&node);
        list(&node, &slot, 1, S);
        (void)strcpy(slot.version, "3000");
        lkg_seeker_put(&node.seeker, &slot, 2 * S); /* an event that crossed with a list */
        assert_string_equal(lkg_ledger_find(&node.seeker.ledger, slot.hash, 0)->version, "5000");
        lkg_seeker_forget(&node.seeker);
        lkg_seeker_put(&node.seeker, &slot, 3 * S);
        assert_string_equal(lkg_ledger_find(&node.seeker.ledger, slot.hash, 0)->version, "3000");
        lkg_seeker_deinit(&node.seeker);
}

/* etcdutl --bump-revision: the list is new, its objects are old. What a list says counts, unless an event is newer than the list. */
TEST(test_a_list_knows_better)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_FREE, "", "5000");
        struct lkg_seeker *seeker;
        struct node node;

        begin(&node);
        seeker = &node.seeker;
        list(&node, &slot, 1, S);
        (void)strcpy(slot.version, "3000");
        lkg_seeker_list_begins(seeker, "4000"); /* it crossed with the event that told of 5000 */
        lkg_seeker_put_listed(seeker, &slot, 2 * S);
        lkg_seeker_listed(seeker, at(2 * S));
        assert_string_equal(lkg_ledger_find(&seeker->ledger, slot.hash, 0)->version, "5000");
        lkg_seeker_list_begins(seeker, "4000"); /* so it did not know of it yet */
        lkg_seeker_listed(seeker, at(3 * S));
        assert_non_null(lkg_ledger_find(&seeker->ledger, slot.hash, 0));
        lkg_seeker_list_begins(seeker, "1000005000");
        lkg_seeker_put_listed(seeker, &slot, 4 * S);
        lkg_seeker_listed(seeker, at(4 * S));
        assert_string_equal(lkg_ledger_find(&seeker->ledger, slot.hash, 0)->version, "3000");
        lkg_seeker_list_begins(seeker, "1000005001");
        lkg_seeker_listed(seeker, at(5 * S));
        assert_null(lkg_ledger_find(&seeker->ledger, slot.hash, 0));
        lkg_seeker_deinit(seeker);
}

static void put_many(struct lkg_seeker *seeker, const char *content, unsigned n, uint64_t ns)
{
        const struct lkg_rollout_id id = make_id(content);

        for (unsigned i = 0; i < n; i++) {
                struct lkg_rollout_slot slot = make_slot(i % LKG_SLOTS_MAX, LKG_SLOT_FREE, "", "5");

                memcpy(slot.hash, id.hash, sizeof(id.hash));
                slot.hash[0] = (char)('a' + i / LKG_SLOTS_MAX);
                lkg_seeker_put_listed(seeker, &slot, ns);
        }
}

/* An operator deletes the old slots, as `lkgfs rollout` advises: the list has room then, and so has who hears of it by the watch. */
TEST(test_too_many_slots)
{
        struct lkg_rollout_slot one;
        struct node node;

        begin(&node);
        list(&node, NULL, 0, S);
        lkg_seeker_list_begins(&node.seeker, "");
        put_many(&node.seeker, "bb", LKG_SLOTS_KNOWN_MAX, S);
        lkg_seeker_listed(&node.seeker, at(S));
        assert_false(node.seeker.ledger.too_many);
        lkg_seeker_list_begins(&node.seeker, "");
        put_many(&node.seeker, "cc", LKG_SLOTS_KNOWN_MAX, S);
        lkg_seeker_listed(&node.seeker, at(S));
        assert_false(node.seeker.ledger.too_many);
        assert_int_equal(node.seeker.ledger.n_items, LKG_SLOTS_KNOWN_MAX);
        one = make_slot(0, LKG_SLOT_FREE, "", "6");
        lkg_seeker_put(&node.seeker, &one, 2 * S);
        assert_true(node.seeker.ledger.too_many);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_NOTHING);
        lkg_seeker_removed(&node.seeker, node.seeker.ledger.items[7].hash,
                           node.seeker.ledger.items[7].index);
        list(&node, &one, 1, 3 * S);
        assert_false(node.seeker.ledger.too_many);
        assert_int_equal(next(&node, 4 * S), LKG_SLOT_UPDATE);
        lkg_seeker_deinit(&node.seeker);
}

/* In the order of the API server, whenever this node has heard of them. */
TEST(test_whose_failure_halts)
{
        struct lkg_rollout_slot slots[] = { make_slot(0, LKG_SLOT_FAILED, "a", "900"),
                                            make_slot(1, LKG_SLOT_FAILED, "b", "1000"),
                                            make_slot(2, LKG_SLOT_HELD, "c", "800"),
                                            make_slot(3, LKG_SLOT_FAILED, "d", "1100"),
                                            make_slot(0, LKG_SLOT_FAILED, "e", "700") };
        struct lkg_ledger ledger = { .items = NULL };
        const struct lkg_rollout_id other = make_id("bb");

        memcpy(slots[4].hash, other.hash, sizeof(other.hash));
        for (size_t i = LKG_ARRAY_SIZE(slots); i-- > 0;)
                lkg_ledger_put(&ledger, &slots[i], NULL, S);
        assert_int_equal(lkg_ledger_failed_before(&ledger, &slots[0]), 0);
        assert_int_equal(lkg_ledger_failed_before(&ledger, &slots[1]), 1);
        assert_int_equal(lkg_ledger_failed_before(&ledger, &slots[3]), 2);
        assert_int_equal(lkg_ledger_failed_before(&ledger, &slots[4]), 0);
        lkg_ledger_deinit(&ledger);
}
