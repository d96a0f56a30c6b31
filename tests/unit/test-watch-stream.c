/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a watch: events, however the stream is split, and input that is no event. */

#include <lkg/client.h>

#include "unit.h"

#define MAX 1000u

struct heard {
        char text[512]; /* "ADDED=1 " */
        int answer;     /* of the callback */
};

static int hear(const struct lkg_watch_event *event, void *userdata)
{
        static const char *const names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
        struct heard *heard = userdata;
        const char *n = lkg_map_get_string(event->object, "n");
        size_t used = strlen(heard->text);

        (void)snprintf(heard->text + used, sizeof(heard->text) - used, "%s=%s ", names[event->type],
                       n ? n : "");
        return heard->answer;
}

/* In pieces of @piece bytes. */
static int feed(const char *text, size_t piece, struct heard *heard, bool *ret_partial,
                struct lkg_error *err)
{
        size_t size = strlen(text);
        struct lkg_watch_stream stream;
        int r = 0;

        lkg_watch_stream_init(&stream, MAX);
        for (size_t i = 0; i < size && r == 0; i += piece)
                r = lkg_watch_stream_feed(&stream, text + i, piece < size - i ? piece : size - i, hear,
                                          heard, err);
        *ret_partial = lkg_watch_stream_is_partial(&stream);
        lkg_watch_stream_deinit(&stream);
        return r;
}

#define EVENT(type, n) "{\"type\":\"" type "\",\"object\":{\"n\":\"" n "\"}}"

TEST(test_events_in_pieces_of_every_size)
{
        static const char text[] =
                EVENT("ADDED", "1") "\n" EVENT("MODIFIED", "2") "\r\n\n \n" EVENT("DELETED", "3") "\n" EVENT(
                        "BOOKMARK",
                        "4") "\n" EVENT("ERROR",
                                        "5") "\n" EVENT("RENAMED",
                                                        "6") "\n{\"type\":\"LATER\"}\n" EVENT("ADDED", "7");

        for (size_t piece = 1; piece <= sizeof(text); piece++) {
                struct heard heard = { 0 };
                bool partial;

                assert_int_equal(feed(text, piece, &heard, &partial, NULL), 0);
                assert_string_equal(heard.text, "ADDED=1 MODIFIED=2 DELETED=3 BOOKMARK=4 ERROR=5 ");
                assert_true(partial);
        }
}

TEST(test_what_is_no_event)
{
        static const struct {
                const char *text;
                int r;
                const char *words;
        } rows[] = {
                { "{\n", -EBADMSG,
                  "the watch sent no JSON: column 2: found the end of the file where JSON wants" },
                { "[1]\n", -EBADMSG, "the watch sent a list; want {\"type\": ..., \"object\": ...}" },
                { "null\n", -EBADMSG, "the watch sent a null; want" },
                { "{\"object\":{}}\n", -EBADMSG, "the watch sent an event without a type" },
                { "{\"type\":1,\"object\":{}}\n", -EBADMSG, "the watch sent an event without a type" },
                { "{\"type\":\"ADDED\"}\n", -EBADMSG, "the watch sent an event ADDED without an object" },
                { "{\"type\":\"ADDED\",\"object\":[]}\n", -EBADMSG,
                  "the watch sent an event ADDED without an object" },
                { "{\"type\":\"ADDED\",\"object\":{\"a\":1,\"a\":2}}\n", -EBADMSG,
                  "the watch sent no JSON: column" },
                { EVENT("ADDED", "1") EVENT("ADDED", "2") "\n", -EBADMSG, "the watch sent no JSON: column" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_error err = { 0 };
                struct heard heard = { 0 };
                bool partial;

                assert_int_equal(feed(rows[i].text, 1000, &heard, &partial, &err), rows[i].r);
                if (!strstr(err.message, rows[i].words))
                        fail_msg("%s: %s", rows[i].text, err.message);
                assert_string_equal(heard.text, "");
        }
}

/* One event of exactly @size bytes. */
static void make_event(char *text, size_t size)
{
        static const char head[] = "{\"type\":\"ADDED\",\"object\":{\"n\":\"", tail[] = "\"}}";

        memset(text, 'x', size);
        memcpy(text, head, sizeof(head) - 1);
        memcpy(text + size - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
        text[size] = '\n';
        text[size + 1] = '\0';
}

TEST(test_the_longest_event)
{
        static const size_t pieces[] = { 1, 7, 999, 1000, 1001, 4096 };
        char text[MAX + 3];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(pieces); i++) {
                struct lkg_error err = { 0 };
                struct heard heard = { 0 };
                bool partial;

                make_event(text, MAX);
                assert_int_equal(feed(text, pieces[i], &heard, &partial, &err), 0);
                assert_non_null(strstr(heard.text, "ADDED=xxx"));
                make_event(text, MAX + 1);
                heard.text[0] = '\0';
                assert_int_equal(feed(text, pieces[i], &heard, &partial, &err), -EFBIG);
                assert_string_equal(
                        err.message,
                        "the watch sent an event of more than 1000 bytes (remote.maxBytes, and what "
                        "is around the object)");
                assert_string_equal(heard.text, "");
        }
}

TEST(test_a_line_without_an_end_is_not_collected)
{
        struct lkg_watch_stream stream;
        char piece[100];
        int r = 0;

        memset(piece, ' ', sizeof(piece));
        lkg_watch_stream_init(&stream, MAX);
        for (unsigned i = 0; i < 10; i++)
                assert_int_equal(lkg_watch_stream_feed(&stream, piece, sizeof(piece), hear, NULL, NULL), 0);
        r = lkg_watch_stream_feed(&stream, piece, 1, hear, NULL, NULL);
        assert_int_equal(r, -EFBIG);
        assert_true(stream.line.size <= MAX);
        lkg_watch_stream_deinit(&stream);
}

TEST(test_who_listens_can_stop_it)
{
        struct heard heard = { .answer = -ECANCELED };
        bool partial;

        assert_int_equal(
                feed(EVENT("ADDED", "1") "\n" EVENT("ADDED", "2") "\n", 1000, &heard, &partial, NULL),
                -ECANCELED);
        assert_string_equal(heard.text, "ADDED=1 ");
}
