/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to an event: a new object, a higher count, or nothing. */
#include "unit.h"
#include "core/remote/outbox.h"

#define S   LKG_NSEC_PER_SEC
#define NOW (1000 * S)
#define W   (7000000 * S)

static struct lkg_outbox box;

static int reset(void **state)
{
        (void)state;
        memset(&box, 0, sizeof(box));
        return 0;
}

static void add(const char *message, uint64_t after_s)
{
        lkg_outbox_add(&box, false, "ConfigPromoted", message, NOW + after_s * S, W + after_s * S);
}

/* Sends the next event; "POST name count message" or "PATCH ...", "" = nothing to send. */
static const char *next(uint64_t random, enum lkg_outbox_result result)
{
        static char text[2048];
        const struct lkg_node_event *event = lkg_outbox_next(&box, "n1", random);

        if (!event)
                return "";
        (void)snprintf(text, sizeof(text), "%s %s %llu %s", event->told ? "PATCH" : "POST", event->name,
                       (unsigned long long)event->count, event->message);
        lkg_outbox_end(&box, result);
        return text;
}

TEST_WITH(test_in_the_order_in_which_they_happened, reset, NULL)
{
        const struct lkg_node_event *event;

        add("one", 0);
        add("two", 1);
        event = lkg_outbox_next(&box, "n1", 0xabc);
        assert_non_null(event);
        assert_string_equal(event->name, "n1.0000000000000abc");
        assert_int_equal(event->first_wall_ns, W);
        assert_null(lkg_outbox_next(&box, "n1", 1)); /* one at a time */
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
        assert_string_equal(next(2, LKG_OUTBOX_SENT), "POST n1.0000000000000002 1 two");
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "");
}

TEST_WITH(test_the_same_again_is_a_count, reset, NULL)
{
        const struct lkg_node_event *event;

        add("one", 0);
        (void)next(1, LKG_OUTBOX_SENT);
        add("one", 60);
        event = lkg_outbox_next(&box, "n1", 2);
        assert_non_null(event);
        assert_true(event->told);
        assert_string_equal(event->name, "n1.0000000000000001");
        assert_int_equal(event->count, 2);
        assert_int_equal(event->first_wall_ns, W);
        assert_int_equal(event->last_wall_ns, W + 60 * S);
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
        add("one", 120);
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "PATCH n1.0000000000000001 3 one");
}

TEST_WITH(test_type_and_reason_make_another_one, reset, NULL)
{
        add("one", 0);
        (void)next(1, LKG_OUTBOX_SENT);
        lkg_outbox_add(&box, true, "ConfigPromoted", "one", NOW, W);
        assert_string_equal(next(2, LKG_OUTBOX_SENT), "POST n1.0000000000000002 1 one");
        lkg_outbox_add(&box, false, "ConfigRejected", "one", NOW, W);
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "POST n1.0000000000000003 1 one");
}

TEST_WITH(test_what_waits_is_counted_there, reset, NULL)
{
        const struct lkg_node_event *event;

        add("one", 0);
        add("one", 1);
        add("one", 2);
        event = lkg_outbox_next(&box, "n1", 1);
        assert_non_null(event);
        assert_int_equal(event->count, 3);
        assert_int_equal(event->last_wall_ns, W + 2 * S);
        add("one", 3); /* while it is in flight */
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
        assert_string_equal(next(2, LKG_OUTBOX_SENT), "PATCH n1.0000000000000001 4 one");
}

TEST_WITH(test_a_failed_one_is_tried_again_under_its_name, reset, NULL)
{
        add("one", 0);
        assert_string_equal(next(1, LKG_OUTBOX_FAILED), "POST n1.0000000000000001 1 one");
        add("one", 1);
        assert_string_equal(next(2, LKG_OUTBOX_FAILED), "POST n1.0000000000000001 2 one");
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "POST n1.0000000000000001 2 one");
        add("one", 2);
        assert_string_equal(next(4, LKG_OUTBOX_FAILED), "PATCH n1.0000000000000001 3 one");
        assert_string_equal(next(5, LKG_OUTBOX_SENT), "PATCH n1.0000000000000001 3 one"); /* counted once */
}

TEST_WITH(test_an_object_that_is_gone_is_made_again, reset, NULL)
{
        add("one", 0);
        (void)next(1, LKG_OUTBOX_SENT);
        add("one", 3600);
        assert_string_equal(next(2, LKG_OUTBOX_FORGOTTEN), "PATCH n1.0000000000000001 2 one");
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "POST n1.0000000000000003 2 one");
        add("one", 3700);
        assert_string_equal(next(4, LKG_OUTBOX_SENT), "PATCH n1.0000000000000003 3 one");
}

TEST_WITH(test_a_refused_one_does_not_block, reset, NULL)
{
        add("one", 0);
        add("two", 0);
        (void)next(1, LKG_OUTBOX_REFUSED);
        assert_string_equal(next(2, LKG_OUTBOX_SENT), "POST n1.0000000000000002 1 two");
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "");
}

TEST_WITH(test_the_oldest_of_too_many_go, reset, NULL)
{
        const struct lkg_node_event *event;
        char text[32];

        for (unsigned i = 0; i < 18; i++) {
                (void)snprintf(text, sizeof(text), "m%u", i);
                add(text, 0);
        }
        event = lkg_outbox_next(&box, "n1", 1);
        assert_non_null(event);
        assert_string_equal(event->message, "m2");
        add("m18", 0);
        assert_string_equal(event->message, "m2"); /* not the one in flight */
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
        assert_string_equal(next(2, LKG_OUTBOX_SENT), "POST n1.0000000000000002 1 m4");
        assert_int_equal(lkg_outbox_waiting(&box), 14);
}

/* 25 at once, then one every five minutes. */
TEST_WITH(test_spam_is_counted_and_not_sent, reset, NULL)
{
        unsigned n = 0;

        for (unsigned i = 0; i < 100; i++) {
                add("one", 0);
                n += next(1, LKG_OUTBOX_SENT)[0] != '\0';
        }
        assert_int_equal(n, 25);
        add("two", 299);
        assert_string_equal(next(2, LKG_OUTBOX_SENT), "");
        add("one", 300);
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "PATCH n1.0000000000000001 101 one");
        add("one", 301);
        assert_string_equal(next(4, LKG_OUTBOX_SENT), "");
        for (unsigned i = 0; i < 30; i++) { /* a day later */
                char text[16];

                (void)snprintf(text, sizeof(text), "m%u", i);
                add(text, 86400);
                n += next(10 + i, LKG_OUTBOX_SENT)[0] != '\0';
        }
        assert_int_equal(n, 50);
}

TEST_WITH(test_the_object_unused_longest_is_forgotten, reset, NULL)
{
        char text[16];

        for (unsigned i = 0; i <= LKG_OUTBOX_EVENTS; i++) {
                (void)snprintf(text, sizeof(text), "m%u", i);
                add(text, i * 300);
                (void)next(i, LKG_OUTBOX_SENT);
                if (i == LKG_OUTBOX_EVENTS - 1) { /* m0 is used again */
                        add("m0", i * 300);
                        assert_string_equal(next(99, LKG_OUTBOX_SENT), "PATCH n1.0000000000000000 2 m0");
                }
        }
        add("m0", 60 * 300);
        assert_string_equal(next(100, LKG_OUTBOX_SENT), "PATCH n1.0000000000000000 3 m0");
        add("m1", 60 * 300);
        assert_string_equal(next(101, LKG_OUTBOX_SENT), "POST n1.0000000000000065 1 m1");
}

TEST_WITH(test_another_node_begins_anew, reset, NULL)
{
        add("one", 0);
        (void)next(1, LKG_OUTBOX_SENT);
        add("two", 0);
        (void)next(2, LKG_OUTBOX_FAILED);
        lkg_outbox_renew(&box);
        add("one", 0);
        assert_string_equal(next(3, LKG_OUTBOX_SENT), "POST n1.0000000000000003 1 two");
        assert_string_equal(next(4, LKG_OUTBOX_SENT), "POST n1.0000000000000004 1 one");
}

TEST_WITH(test_words_are_cut_between_characters, reset, NULL)
{
        char reason[200], message[1100];
        const struct lkg_node_event *event;

        memset(reason, 'R', sizeof(reason));
        reason[sizeof(reason) - 1] = '\0';
        memset(message, 'm', sizeof(message));
        message[sizeof(message) - 1] = '\0';
        memcpy(message + 1022, "\xe2\x82\xac", 3); /* bytes 1022 to 1024: one too many */
        lkg_outbox_add(&box, false, reason, message, NOW, W);
        event = lkg_outbox_next(&box, "n1", 1);
        assert_non_null(event);
        assert_int_equal(strlen(event->reason), 128);
        assert_int_equal(strlen(event->message), 1022);
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
        memcpy(message + 1021, "\xe2\x82\xac", 4); /* just fits */
        lkg_outbox_add(&box, false, reason, message, NOW, W);
        event = lkg_outbox_next(&box, "n1", 1);
        assert_non_null(event);
        assert_int_equal(strlen(event->message), 1024);
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
}

TEST_WITH(test_the_longest_node_name, reset, NULL)
{
        const struct lkg_node_event *event;
        char node[254];

        memset(node, 'n', sizeof(node));
        node[235] = '.';
        node[253] = '\0';
        add("one", 0);
        event = lkg_outbox_next(&box, node, UINT64_MAX);
        assert_non_null(event);
        assert_int_equal(strlen(event->name), 235 + 17);
        assert_string_equal(event->name + 235, ".ffffffffffffffff");
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
}
