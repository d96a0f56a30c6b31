/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node that seeks a slot, and what it knows of all slots, in steps: rows/slots.rows. Their objects: test-slot-object.c; fleets: tests/fleet.
 * Times are seconds. After each step it says what the node asks for, what it writes, and whether it may switch.
 * Rule: docs/specification.md 4.14.
 */
#include "rows.h"
#include "slot-samples.h"

struct node {
        struct lkg_seeker seeker;
        enum lkg_slot_outcome outcome;
        uint64_t now_ns;
};

static enum lkg_slot_outcome outcome(const char *sha256, char reason[static LKG_SLOT_REASON_MAX],
                                     void *userdata)
{
        const struct node *node = userdata;

        if (strcmp(sha256, "aa") != 0)
                return LKG_OUTCOME_OVER;
        if (node->outcome == LKG_OUTCOME_BAD)
                (void)strcpy(reason, "it broke");
        return node->outcome;
}

static struct lkg_seeker_moment at(uint64_t ns)
{
        return (struct lkg_seeker_moment){ ns, 0, 0 }; /* random 0: no wait */
}

static void begin(struct node *node)
{
        const struct lkg_seeker_ops ops = { .outcome = outcome, .userdata = node };
        const struct lkg_slot_wish usual = { .any = true,
                                             .id = make_id("aa"),
                                             .newest = true,
                                             .max_in_trial = 2,
                                             .max_failures = 1,
                                             .duration_ns = 600 * S };

        *node = (struct node){ .outcome = LKG_OUTCOME_WANTED };
        lkg_seeker_init(&node->seeker, "me", &ops);
        lkg_seeker_wish(&node->seeker, &usual);
}

static void list_only(struct node *node, const struct lkg_rollout_slot *slots, size_t n, uint64_t ns)
{
        uint64_t due;

        node->now_ns = ns;
        assert_int_equal(lkg_seeker_next(&node->seeker, at(ns), &due), LKG_SLOT_LIST);
        lkg_seeker_list_begins(&node->seeker, "");
        for (size_t i = 0; i < n; i++)
                lkg_seeker_put_listed(&node->seeker, &slots[i], ns);
        lkg_seeker_listed(&node->seeker, at(ns));
}

/* And the watch that follows, if any does. */
static void list(struct node *node, const struct lkg_rollout_slot *slots, size_t n, uint64_t ns)
{
        list_only(node, slots, n, ns);
        if (lkg_seeker_watches(&node->seeker))
                lkg_seeker_watch_open(&node->seeker);
        else
                lkg_seeker_watch_closed(&node->seeker);
}

static enum lkg_slot_request next(struct node *node, uint64_t ns)
{
        uint64_t due;
        enum lkg_slot_request request = lkg_seeker_next(&node->seeker, at(ns), &due);

        node->now_ns = ns;
        return request == LKG_SLOT_NOTHING && due <= ns + S ? lkg_seeker_next(&node->seeker, at(due), &due)
                                                            : request;
}

static enum lkg_slot_verdict verdict(const struct node *node)
{
        char words[256];

        return lkg_seeker_verdict(&node->seeker, node->now_ns, words);
}

/* ---- steps ---- */

static struct node me;
static struct lkg_slot_wish wish;       /* which the seeker may put off */
static struct lkg_rollout_slot some[3]; /* a, b, c */

static struct lkg_rollout_slot *named(const char *name)
{
        assert_in_range(*name, 'a', 'c');
        return &some[*name - 'a'];
}

static uint64_t ns_of(const char *seconds)
{
        return (uint64_t)(strtod(seconds, NULL) * 10) * (S / 10);
}

static void say(struct lkg_buf *ret, enum lkg_slot_request request)
{
        static const char *const requests[] = { "nothing", "list", "create", "update", "watch" };
        const struct lkg_rollout_slot *w = &me.seeker.writing;
        char words[256] = "";
        enum lkg_slot_verdict v = lkg_seeker_verdict(&me.seeker, me.now_ns, words);

        lkg_buf_puts(ret, requests[request]);
        if (request == LKG_SLOT_CREATE || request == LKG_SLOT_UPDATE) {
                lkg_buf_printf(ret, " %u %s, node '%s'", w->index, lkg_slot_state_name(w->state), w->node);
                if (*w->node_uid)
                        lkg_buf_printf(ret, " of UID %s", w->node_uid);
                lkg_buf_printf(ret, ", %s%s, %u successes%s%s", w->uid,
                               strcmp(w->hash, me.seeker.wish.id.hash) == 0 ? "" : ", of another content",
                               w->successes, w->asked ? ", asked" : "", w->collected ? ", collected" : "");
                if (w->patience_ns != 900 * S)
                        lkg_buf_printf(ret, ", patience %u", (unsigned)(w->patience_ns / S));
                if (*w->reason)
                        lkg_buf_printf(ret, ", because %s", w->reason);
        }
        lkg_buf_printf(ret, "; %s: %s", lkg_slot_verdict_name(v), words);
}

STEP(steps, 0)
{
        lkg_seeker_deinit(&me.seeker);
        begin(&me);
        wish = me.seeker.wish;
        memset(some, 0, sizeof(some));
}

/* NAME INDEX STATE NODE VERSION */
STEP(slot, 5)
{
        *named(q->parts[0]) = make_slot((unsigned)strtoul(q->parts[1], NULL, 10),
                                        rows_named(lkg_slot_state_name, LKG_SLOT_FAILED + 1, q->parts[2]),
                                        *q->parts[3] == '-' ? "" : q->parts[3], q->parts[4]);
}

/* Another value of a member. */
STEP(set, 3)
{
        struct lkg_rollout_slot *slot = named(q->parts[0]);
        const char *member = q->parts[1], *value = q->parts[2];

        if (strcmp(member, "asked") == 0)
                slot->asked = *value == '1';
        else if (strcmp(member, "created") == 0)
                slot->created_ns = ns_of(value);
        else if (strcmp(member, "successes") == 0)
                slot->successes = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(member, "content") == 0)
                memcpy(slot->hash, make_id(value).hash, sizeof(slot->hash));
        else if (strcmp(member, "key") == 0)
                (void)snprintf(slot->key, sizeof(slot->key), "%s", value);
        else if (strcmp(member, "uid") == 0)
                (void)snprintf(slot->node_uid, sizeof(slot->node_uid), "%s", value);
        else if (strcmp(member, "version") == 0)
                (void)snprintf(slot->version, sizeof(slot->version), "%s", value);
        else
                fail_msg("a slot has no member %s", member);
}

STEP(wish, 2)
{
        const char *member = q->parts[0];
        unsigned value = (unsigned)strtoul(q->parts[1], NULL, 10);

        if (strcmp(member, "any") == 0)
                wish.any = value != 0;
        else if (strcmp(member, "newest") == 0)
                wish.newest = value != 0;
        else if (strcmp(member, "uid") == 0) {
                (void)snprintf(wish.id.uid, sizeof(wish.id.uid), "%s", q->parts[1]);
                lkg_rollout_id_seal(&wish.id);
        } else if (strcmp(member, "failures") == 0)
                wish.max_failures = value;
        else if (strcmp(member, "in_trial") == 0)
                wish.max_in_trial = value;
        else if (strcmp(member, "fleet") == 0)
                wish.fleet = value;
        else if (strcmp(member, "bucket") == 0)
                wish.bucket = value;
        else
                fail_msg("a wish has no member %s", member);
        lkg_seeker_wish(&me.seeker, &wish);
        say(ret, LKG_SLOT_NOTHING);
}

STEP(node_uid, 1)
{
        (void)snprintf(me.seeker.node_uid, sizeof(me.seeker.node_uid), "%s", q->parts[0]);
}

/* What has become of the content. */
STEP(outcome, 1)
{
        static const char words[] = "wtgb"; /* wanted, trying, good, bad */

        me.outcome = (enum lkg_slot_outcome)(strchr(words, *q->parts[0]) - words);
        say(ret, LKG_SLOT_NOTHING);
}

STEP(at, 1)
{
        me.now_ns = ns_of(q->parts[0]);
        say(ret, LKG_SLOT_NOTHING);
}

/* The slots of a list. */
static size_t take(const struct question *q, size_t i, struct lkg_rollout_slot ret[static 3])
{
        size_t n = 0;

        for (; i < q->n_parts; i++)
                if (*q->parts[i])
                        ret[n++] = *named(q->parts[i]);
        return n;
}

STEP(list, 4)
{
        struct lkg_rollout_slot there[3];

        list(&me, there, take(q, 1, there), ns_of(q->parts[0]));
        say(ret, LKG_SLOT_NOTHING);
}

/* A list of this version, without anything that it was asked for. */
STEP(listed, 4)
{
        struct lkg_rollout_slot there[3];
        size_t n = take(q, 2, there);

        lkg_seeker_list_begins(&me.seeker, q->parts[1]);
        for (size_t i = 0; i < n; i++)
                lkg_seeker_put_listed(&me.seeker, &there[i], ns_of(q->parts[0]));
        lkg_seeker_listed(&me.seeker, at(ns_of(q->parts[0])));
}

STEP(next, 1)
{
        say(ret, next(&me, ns_of(q->parts[0])));
}

/* The API server has written it, as this version; it is the slot NAME from now on. */
STEP(done, 3)
{
        struct lkg_rollout_slot slot = me.seeker.writing;

        (void)snprintf(slot.version, sizeof(slot.version), "%s", q->parts[1]);
        lkg_seeker_answered(&me.seeker, LKG_SLOT_DONE, &slot, at(ns_of(q->parts[0])));
        if (*q->parts[2])
                *named(q->parts[2]) = slot;
        say(ret, LKG_SLOT_NOTHING);
}

STEP(answered, 2)
{
        static const char words[] = "dcfu"; /* done, conflict, forbidden, unclear */
        enum lkg_slot_answer answer = (enum lkg_slot_answer)(strchr(words, *q->parts[1]) - words);

        lkg_seeker_answered(&me.seeker, answer, NULL, at(ns_of(q->parts[0])));
        say(ret, LKG_SLOT_NOTHING);
        if (answer == LKG_SLOT_CONFLICT)
                lkg_buf_printf(ret, ", %u conflicts, window %u s", (unsigned)me.seeker.n_conflicts,
                               (unsigned)(me.seeker.window_ns / S));
}

STEP(put, 2)
{
        lkg_seeker_put(&me.seeker, named(q->parts[1]), ns_of(q->parts[0]));
        say(ret, LKG_SLOT_NOTHING);
}

STEP(lost, 0)
{
        lkg_seeker_lost_contact(&me.seeker);
        say(ret, LKG_SLOT_NOTHING);
}

STEP(forget, 0)
{
        lkg_seeker_forget(&me.seeker);
}

STEP(known, 1)
{
        const struct lkg_rollout_slot *slot = named(q->parts[0]);
        const struct lkg_rollout_slot *found = lkg_ledger_find(&me.seeker.ledger, slot->hash, slot->index);

        lkg_buf_printf(ret, found ? "version %s" : "none", found ? found->version : "");
}

/* With the worst of luck, when is a slot taken, if the window was so wide? */
STEP(window, 1)
{
        uint64_t due_ns;

        me.seeker.window_ns = ns_of(q->parts[0]);
        me.seeker.take_at_ns = 0;
        (void)lkg_seeker_next(&me.seeker, (struct lkg_seeker_moment){ S, S, UINT32_MAX }, &due_ns);
        lkg_buf_printf(ret, "after %u s", (unsigned)((due_ns - S) / S));
}

ROWS(slots, rows_steps)

/* ---- what no row can say ---- */

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

/* A list that succeeds is no sign that the watch will. */
TEST(test_a_watch_that_is_lost_again_and_again_waits_longer)
{
        struct node node;
        uint64_t due, ns = S, before = 0;

        begin(&node);
        for (unsigned n = 1; n <= 5; n++) {
                list(&node, NULL, 0, ns);
                lkg_seeker_watch_lost(&node.seeker, at(ns));
                assert_int_equal(verdict(&node), LKG_SLOT_SILENT);
                assert_int_equal(lkg_seeker_next(&node.seeker, at(ns), &due), LKG_SLOT_NOTHING);
                assert_true(due - ns > before);
                before = due - ns;
                ns = due;
        }
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

TEST(test_which_version_is_older)
{
        assert_true(lkg_version_compare("3000", "5000") == LKG_VERSION_OLDER);
        assert_false(lkg_version_compare("10000", "5000") == LKG_VERSION_OLDER);
        assert_false(lkg_version_compare("5000", "") == LKG_VERSION_OLDER);
}
