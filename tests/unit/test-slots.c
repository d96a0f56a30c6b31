/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node that seeks a slot, step by step. What it knows of all slots: test-slot-ledger.c; their objects: test-slot-object.c; fleets: tests/fleet.
 * Rule: docs/specification.md 4.14.
 */
#include "unit.h"
#include "slot-node.h"

/* Take, look again, switch, promote, give back. */
TEST(test_the_way_of_a_node)
{
        struct lkg_rollout_slot mine;
        struct node node;

        begin(&node);
        assert_int_equal(verdict(&node), LKG_SLOT_SILENT);
        list(&node, NULL, 0, S);
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_CREATE);
        mine = node.seeker.writing;
        assert_string_equal(mine.node, "me");
        assert_int_equal(mine.patience_ns, 900 * S);
        (void)strcpy(mine.version, "5");
        lkg_seeker_answered(&node.seeker, LKG_SLOT_DONE, &mine, at(3 * S));
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING); /* what the watch said may have been old */
        list(&node, &mine, 1, 4 * S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        node.outcome = LKG_OUTCOME_TRYING;
        assert_int_equal(next(&node, 5 * S), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, 300 * S),
                         LKG_SLOT_NOTHING); /* each renewal is an event for the whole fleet */
        assert_int_equal(next(&node, 480 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_HELD);
        (void)strcpy(mine.version, "6");
        lkg_seeker_answered(&node.seeker, LKG_SLOT_DONE, &mine, at(481 * S));
        node.outcome = LKG_OUTCOME_GOOD;
        assert_int_equal(next(&node, 482 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_FREE);
        assert_int_equal(node.seeker.writing.successes, 1);
        lkg_seeker_deinit(&node.seeker);
}

TEST(test_a_failure_is_noted_and_halts)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_HELD, "me", "5"),
                                             make_slot(1, LKG_SLOT_HELD, "other", "6") };
        struct node node;
        char words[256];

        begin(&node);
        node.outcome = LKG_OUTCOME_BAD;
        list(&node, slots, 2, S);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_FAILED);
        assert_string_equal(node.seeker.writing.reason, "it broke");
        slots[0] = node.seeker.writing;
        (void)strcpy(slots[0].version, "7");
        lkg_seeker_answered(&node.seeker, LKG_SLOT_DONE, &slots[0], at(3 * S));
        assert_int_equal(lkg_seeker_verdict(&node.seeker, node.now_ns, words), LKG_SLOT_HALTED);
        assert_string_equal(words, "rollout halted: 1 failed, node me: it broke");
        lkg_seeker_deinit(&node.seeker);
}

TEST(test_slow_start)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_HELD, "other", "5"),
                                             make_slot(1, LKG_SLOT_FREE, "", "6") };
        struct node node;

        begin(&node);
        list(&node, slots, 2, S);
        assert_int_equal(next(&node, 2 * S),
                         LKG_SLOT_NOTHING); /* slot 1 is free, and nobody has succeeded yet */
        slots[1].successes = 1;
        (void)strcpy(slots[1].version, "7");
        lkg_seeker_put(&node.seeker, &slots[1], 3 * S);
        assert_int_equal(next(&node, 4 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.index, 1);
        lkg_seeker_deinit(&node.seeker);
}

/* With more than one failure allowed, a first node that fails is not the end. */
TEST(test_a_failure_that_does_not_halt)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_FAILED, "other", "5");
        struct node node;

        begin(&node);
        node.seeker.wish.max_failures = 2;
        list(&node, &slot, 1, S);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_CREATE);
        assert_int_equal(node.seeker.writing.index, 1);
        lkg_seeker_deinit(&node.seeker);
}

/* Somebody failed between the watch and the taking: the slot goes back, and the node does not switch. */
TEST(test_it_looks_again)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_FAILED, "other", "9"),
                                             make_slot(1, LKG_SLOT_HELD, "me", "8") };
        struct node node;

        begin(&node);
        list(&node, slots, 2, S);
        assert_int_equal(verdict(&node), LKG_SLOT_HALTED);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_FREE);
        assert_int_equal(node.seeker.writing.successes, 0);
        lkg_seeker_deinit(&node.seeker);
}

/* Take what is being written as carried out, as version @version. */
static struct lkg_rollout_slot carried_out(struct node *node, const char *version, uint64_t ns)
{
        struct lkg_rollout_slot slot = node->seeker.writing;

        (void)strcpy(slot.version, version);
        lkg_seeker_answered(&node->seeker, LKG_SLOT_DONE, &slot, at(ns));
        return slot;
}

/* By the clock of the observer, and only while it is in contact. It is asked first. */
TEST(test_who_has_vanished)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "other", "5");
        struct node node;

        begin(&node);
        list(&node, &slot, 1, S);
        lkg_seeker_lost_contact(&node.seeker);
        list(&node, &slot, 1, 800 * S);
        assert_int_equal(next(&node, 1000 * S), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, 1578 * S), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, 1581 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_HELD);
        assert_true(node.seeker.writing.asked);
        assert_string_equal(node.seeker.writing.node, "other");
        (void)carried_out(&node, "6", 1582 * S);
        assert_int_equal(next(&node, 1700 * S), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, 1703 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_FAILED);
        assert_false(node.seeker.writing.asked);
        assert_string_equal(node.seeker.writing.node, "other");
        assert_non_null(strstr(node.seeker.writing.reason, "vanished"));
        lkg_seeker_deinit(&node.seeker);
}

/* Who asked, and sees the answer, waits anew. */
TEST(test_who_answers_has_not_vanished)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "other", "5");
        struct node node;

        begin(&node);
        list(&node, &slot, 1, S);
        assert_int_equal(next(&node, 782 * S), LKG_SLOT_UPDATE);
        slot = carried_out(&node, "6", 783 * S);
        slot.asked = false;
        (void)strcpy(slot.version, "7");
        lkg_seeker_put(&node.seeker, &slot, 784 * S);
        assert_int_equal(next(&node, 1500 * S), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, 1565 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_HELD);
        lkg_seeker_deinit(&node.seeker);
}

/* Who cannot write, for whatever reason, does not conclude from a holder's silence that only the holder is dumb. */
TEST(test_nobody_vanishes_while_nothing_can_be_written)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "other", "5");
        const enum lkg_slot_answer answers[] = { LKG_SLOT_UNCLEAR, LKG_SLOT_FORBIDDEN };
        struct node node;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(answers); i++) {
                begin(&node);
                list(&node, &slot, 1, S);
                assert_int_equal(next(&node, 782 * S), LKG_SLOT_UPDATE);
                assert_true(node.seeker.writing.asked);
                lkg_seeker_answered(&node.seeker, answers[i], NULL, at(783 * S));
                list(&node, &slot, 1, 1500 * S);
                assert_int_equal(next(&node, 2270 * S), LKG_SLOT_NOTHING);
                assert_int_equal(next(&node, 2281 * S), LKG_SLOT_UPDATE);
                assert_int_equal(node.seeker.writing.state, LKG_SLOT_HELD);
                lkg_seeker_deinit(&node.seeker);
        }
}

/* At once, and with a short backoff: a holder that is asked has two minutes. */
TEST(test_a_holder_that_is_asked_answers)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        struct node node;
        uint64_t ns = 10 * S;

        begin(&node);
        list(&node, &slot, 1, S);
        node.outcome = LKG_OUTCOME_TRYING;
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_NOTHING);
        slot.asked = true;
        (void)strcpy(slot.version, "6");
        lkg_seeker_put(&node.seeker, &slot, 9 * S);
        for (unsigned i = 0; i < 8; i++, ns += 11 * S) { /* far below the 30 s that the backoff reaches */
                assert_int_equal(next(&node, ns), LKG_SLOT_UPDATE);
                assert_int_equal(node.seeker.writing.state, LKG_SLOT_HELD);
                assert_false(node.seeker.writing.asked);
                lkg_seeker_answered(&node.seeker, LKG_SLOT_UNCLEAR, NULL, at(ns));
                list(&node, &slot, 1, ns + (10 * S) + (S / 2));
        }
        assert_int_equal(next(&node, ns), LKG_SLOT_UPDATE);
        (void)carried_out(&node, "7", ns);
        assert_int_equal(next(&node, ns + S), LKG_SLOT_NOTHING);
        lkg_seeker_deinit(&node.seeker);
}

TEST(test_conflicts_widen_the_window)
{
        struct node node;

        begin(&node);
        list(&node, NULL, 0, S);
        for (unsigned i = 0; i < 12; i++) {
                uint64_t ns = 1000 * S * (i + 1);

                assert_int_equal(next(&node, ns), LKG_SLOT_CREATE);
                lkg_seeker_answered(&node.seeker, LKG_SLOT_CONFLICT, NULL, at(ns));
                list(&node, NULL, 0, ns + S);
        }
        assert_int_equal(node.seeker.window_ns, LKG_SLOT_WINDOW_MAX);
        assert_int_equal(node.seeker.n_conflicts, 12);
        lkg_seeker_deinit(&node.seeker);
}

/* Else the last nodes of a large fleet wait for minutes, for slots that nobody else wants. */
TEST(test_the_window_shrinks_with_those_who_are_left)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_FREE, "", "5"),
                                             make_slot(1, LKG_SLOT_FREE, "", "6") };
        struct node node;
        uint64_t due_ns;

        begin(&node);
        node.seeker.wish.fleet = 1000;
        list(&node, slots, 2, S);
        node.seeker.window_ns = 40 * S; /* after conflicts, when all of them competed */
        (void)lkg_seeker_next(&node.seeker, (struct lkg_seeker_moment){ S, S, UINT32_MAX }, &due_ns);
        assert_in_range(due_ns, 40 * S, 42 * S);
        slots[0].successes = 980;
        (void)strcpy(slots[0].version, "7");
        node.seeker.take_at_ns = 0;
        lkg_seeker_put(&node.seeker, &slots[0], S);
        (void)lkg_seeker_next(&node.seeker, (struct lkg_seeker_moment){ S, S, UINT32_MAX }, &due_ns);
        assert_in_range(due_ns, 8 * S, 10 * S);
        lkg_seeker_deinit(&node.seeker);
}

TEST(test_a_slot_that_is_not_used_goes_back)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        struct node node;

        begin(&node);
        list(&node, &slot, 1, S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        assert_int_equal(next(&node, 30 * S), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, 62 * S), LKG_SLOT_UPDATE);
        assert_int_equal(node.seeker.writing.state, LKG_SLOT_FREE);
        lkg_seeker_deinit(&node.seeker);
}

/* A full disk or a hold may keep a node from using it for hours, and the fleet does not wait. */
TEST(test_a_grant_does_not_outlive_contact)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_HELD, "me", "5"),
                                             make_slot(1, LKG_SLOT_FAILED, "other", "6") };
        struct node node;

        begin(&node);
        list(&node, slots, 1, S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        lkg_seeker_lost_contact(&node.seeker);
        assert_int_equal(verdict(&node), LKG_SLOT_SILENT);
        list(&node, slots, 1, 2 * S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        lkg_seeker_lost_contact(&node.seeker);
        list(&node, slots, 2, 3 * S);
        assert_int_equal(verdict(&node), LKG_SLOT_HALTED);
        lkg_seeker_deinit(&node.seeker);
}

TEST(test_a_grant_does_not_outlive_a_failure)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_HELD, "me", "5"),
                                             make_slot(1, LKG_SLOT_FAILED, "other", "6") };
        struct node node;

        begin(&node);
        list(&node, slots, 1, S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        lkg_seeker_put(&node.seeker, &slots[1], 2 * S);
        assert_int_equal(verdict(&node), LKG_SLOT_HALTED);
        node.outcome = LKG_OUTCOME_TRYING; /* who has switched before stays */
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        lkg_seeker_deinit(&node.seeker);
}

/* Nobody asks for the next step meanwhile: a list may be under way, or an API server slow. */
TEST(test_a_grant_is_for_a_minute)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        struct node node;

        begin(&node);
        list(&node, &slot, 1, S);
        node.now_ns = 60 * S;
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        node.now_ns = 61 * S;
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING);
        lkg_seeker_deinit(&node.seeker);
}

/* What is known may be old after an unclear answer: no grant before the next list. */
TEST(test_no_grant_before_a_list_that_is_owed)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        struct node node;

        begin(&node);
        slot.asked = true;
        list(&node, &slot, 1, S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_UPDATE);
        lkg_seeker_answered(&node.seeker, LKG_SLOT_UNCLEAR, NULL, at(3 * S));
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING);
        lkg_seeker_deinit(&node.seeker);
}

/* An API server that has just started refuses at first: that is not the missing permission with which `prefer` goes on. */
TEST(test_a_missing_permission)
{
        struct node node;
        uint64_t due, ns = S;

        begin(&node);
        for (unsigned n = 1; n <= 12; n++) {
                assert_int_equal(lkg_seeker_next(&node.seeker, at(ns), &due), LKG_SLOT_LIST);
                lkg_seeker_answered(&node.seeker, LKG_SLOT_FORBIDDEN, NULL, at(ns));
                assert_int_equal(verdict(&node),
                                 n < LKG_SLOT_REFUSALS_SURE ? LKG_SLOT_DOUBTED : LKG_SLOT_REFUSED);
                assert_false(lkg_rollout_lets_go(verdict(&node), /* prefer= */ false));
                assert_int_equal(lkg_rollout_lets_go(verdict(&node), /* prefer= */ true),
                                 n >= LKG_SLOT_REFUSALS_SURE);
                assert_int_equal(lkg_seeker_next(&node.seeker, at(ns), &due), LKG_SLOT_NOTHING);
                assert_true(due - ns <= (n == 1 ? 2 * S : 450 * S));
                ns = due;
        }
        assert_true(ns > 600 * S); /* not every second for ever */
        list(&node, NULL, 0, ns);
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING);
        assert_int_equal(node.seeker.n_refusals, 0);
        lkg_seeker_deinit(&node.seeker);
}

/* To list is allowed, to create is not: the lists between do not make the refusal young again. */
TEST(test_a_permission_to_create_is_missing)
{
        unsigned n_creates = 0, n_requests = 0;
        struct node node;
        uint64_t ns = S;

        begin(&node);
        for (uint64_t due = ns; ns < 3600 * S; n_requests++, ns = due) {
                enum lkg_slot_request request = lkg_seeker_next(&node.seeker, at(ns), &due);

                if (request == LKG_SLOT_LIST) {
                        node.seeker.under_way = LKG_SLOT_NOTHING;
                        lkg_seeker_list_begins(&node.seeker, "");
                        lkg_seeker_listed(&node.seeker, at(ns));
                        lkg_seeker_watch_open(&node.seeker);
                        due = ns + 1;
                } else if (request == LKG_SLOT_CREATE) {
                        lkg_seeker_answered(&node.seeker, LKG_SLOT_FORBIDDEN, NULL, at(ns));
                        n_creates++;
                        due = ns + 1;
                }
                if (n_creates >= LKG_SLOT_REFUSALS_SURE)
                        assert_int_equal(verdict(&node), LKG_SLOT_REFUSED);
        }
        assert_in_range(n_creates, 10, 40);
        assert_true(n_requests < 200);
        lkg_seeker_deinit(&node.seeker);
}

/* To list is allowed, to watch is not: no list makes up for it, and `prefer` goes on. */
TEST(test_a_permission_to_watch_is_missing)
{
        struct node node;
        uint64_t due, ns = S;

        begin(&node);
        for (unsigned n = 1; n <= 12; n++) {
                list_only(&node, NULL, 0, ns);
                assert_int_equal(next(&node, ns), LKG_SLOT_NOTHING); /* not before it hears the others */
                lkg_seeker_watch_refused(&node.seeker, at(ns));
                assert_int_equal(verdict(&node),
                                 n < LKG_SLOT_REFUSALS_SURE ? LKG_SLOT_DOUBTED : LKG_SLOT_REFUSED);
                assert_int_equal(lkg_seeker_next(&node.seeker, at(ns), &due), LKG_SLOT_NOTHING);
                ns = due;
        }
        assert_true(ns > 600 * S);
        list(&node, NULL, 0, ns);
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING);
        assert_int_equal(next(&node, ns + S), LKG_SLOT_CREATE);
        lkg_seeker_deinit(&node.seeker);
}

/* It would be taken for vanished, and the rollout would halt. */
TEST(test_a_holder_that_is_refused_goes_on_asking)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        struct node node;
        uint64_t due;

        begin(&node);
        list(&node, &slot, 1, S);
        node.outcome = LKG_OUTCOME_TRYING;
        lkg_seeker_lost_contact(&node.seeker);
        for (unsigned i = 0; i < 20; i++) {
                assert_int_equal(lkg_seeker_next(&node.seeker, at(S * (10 + 31 * i)), &due), LKG_SLOT_LIST);
                lkg_seeker_answered(&node.seeker, LKG_SLOT_FORBIDDEN, NULL, at(S * (10 + 31 * i)));
        }
        lkg_seeker_deinit(&node.seeker);
}

/* Slots can be deleted by hand, or be asked for when the trial runs already. */
TEST(test_on_trial_without_a_slot)
{
        struct lkg_rollout_slot others[2] = { make_slot(0, LKG_SLOT_HELD, "a", "5"),
                                              make_slot(1, LKG_SLOT_HELD, "b", "6") };
        struct node node;

        begin(&node);
        node.outcome = LKG_OUTCOME_TRYING;
        list(&node, others, 2, S);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_CREATE); /* above the two that there may be */
        assert_int_equal(node.seeker.writing.index, 2);
        assert_string_equal(node.seeker.writing.node, "me");
        lkg_seeker_deinit(&node.seeker);

        begin(&node); /* noted as vanished: that is its slot */
        node.outcome = LKG_OUTCOME_TRYING;
        others[0] = make_slot(0, LKG_SLOT_FAILED, "me", "5");
        list(&node, others, 2, S);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_NOTHING);
        lkg_seeker_deinit(&node.seeker);
}

/* The same machine under a new Node object; and another machine under an old name. */
TEST(test_another_node_uid)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        struct node node;

        (void)strcpy(slot.node_uid, "before");
        begin(&node);
        (void)strcpy(node.seeker.node_uid, "now");
        node.outcome = LKG_OUTCOME_TRYING;
        list(&node, &slot, 1, S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_NOTHING);
        assert_int_equal(next(&node, 500 * S), LKG_SLOT_UPDATE);
        assert_string_equal(node.seeker.writing.node_uid, "now");
        lkg_seeker_deinit(&node.seeker);

        begin(&node);
        (void)strcpy(node.seeker.node_uid, "now");
        list(&node, &slot, 1, S);
        assert_int_equal(lkg_seeker_own(&node.seeker), -1);
        lkg_seeker_deinit(&node.seeker);
}

/* The number of nodes counts, not that of the slot. */
TEST(test_a_lowered_number)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_FREE, "", "5"),
                                             make_slot(1, LKG_SLOT_HELD, "other", "6") };
        struct lkg_slot_wish wish;
        struct node node;

        begin(&node);
        slots[0].successes = 3;
        list(&node, slots, 2, S);
        wish = node.seeker.wish;
        wish.max_in_trial = 1;
        lkg_seeker_wish(&node.seeker, &wish);
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_NOTHING);
        wish.max_in_trial = 2;
        lkg_seeker_wish(&node.seeker, &wish);
        assert_int_equal(next(&node, 3 * S), LKG_SLOT_UPDATE);
        lkg_seeker_deinit(&node.seeker);
}

TEST(test_more_failures_than_slots)
{
        struct lkg_rollout_slot slots[2] = { make_slot(0, LKG_SLOT_FAILED, "a", "5"),
                                             make_slot(1, LKG_SLOT_FAILED, "b", "6") };
        struct lkg_slot_wish wish;
        struct node node;

        begin(&node);
        wish = node.seeker.wish;
        wish.max_failures = 9;
        lkg_seeker_wish(&node.seeker, &wish);
        list(&node, slots, 1, S);
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING);
        lkg_seeker_put(&node.seeker, &slots[1], 2 * S);
        assert_int_equal(verdict(&node), LKG_SLOT_HALTED);
        lkg_seeker_deinit(&node.seeker);
}

/* The trial of another ConfigMap has a slot: it says nothing about this one. */
TEST(test_another_configmap)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        struct lkg_slot_wish wish;
        struct node node;

        begin(&node);
        node.outcome = LKG_OUTCOME_TRYING;
        list(&node, &slot, 1, S);
        assert_int_equal(verdict(&node), LKG_SLOT_GRANTED);
        wish = node.seeker.wish;
        (void)strcpy(wish.id.uid, "uid-2");
        lkg_rollout_id_seal(&wish.id);
        lkg_seeker_wish(&node.seeker, &wish);
        assert_int_equal(verdict(&node), LKG_SLOT_WAITING);
        node.outcome = LKG_OUTCOME_GOOD;
        assert_int_equal(next(&node, 2 * S), LKG_SLOT_UPDATE);
        slot = node.seeker.writing;
        (void)strcpy(slot.version, "6");
        lkg_seeker_answered(&node.seeker, LKG_SLOT_DONE, &slot, at(3 * S));
        lkg_seeker_wish(&node.seeker, &wish);
        list(&node, NULL, 0, 4 * S);
        assert_int_equal(next(&node, 5 * S), LKG_SLOT_CREATE);
        assert_string_equal(node.seeker.writing.uid, "uid-2");
        lkg_seeker_deinit(&node.seeker);
}

/* Whatever causes the conflicts: no loop without a pause. */
TEST(test_no_loop_of_conflicts)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "me", "5");
        unsigned n = 0;
        struct node node;

        slot.asked = true;
        begin(&node);
        node.outcome = LKG_OUTCOME_TRYING;
        for (uint64_t ns = S, due = 0; ns < 100 * S; ns = due) {
                const struct lkg_seeker_moment moment = { ns, 0, UINT32_MAX };
                enum lkg_slot_request request = lkg_seeker_next(&node.seeker, moment, &due);

                if (request == LKG_SLOT_NOTHING)
                        continue;
                due = ns + 1;
                if (request == LKG_SLOT_UPDATE) {
                        lkg_seeker_answered(&node.seeker, LKG_SLOT_CONFLICT, NULL, moment);
                        n++;
                        continue;
                }
                lkg_seeker_list_begins(&node.seeker, "");
                lkg_seeker_put_listed(&node.seeker, &slot, ns);
                lkg_seeker_listed(&node.seeker, moment);
        }
        assert_in_range(n, 10, 20); /* often enough for one who is asked */
        lkg_seeker_deinit(&node.seeker);
}
