/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a watch: events, however the stream is split, and input that is no event: rows/watch.rows. */

#include <lkg/client.h>

#include "rows.h"

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

        (void)snprintf(heard->text + used, sizeof(heard->text) - used, "%s=%.8s ", names[event->type],
                       n ? n : "");
        return heard->answer;
}

/* In pieces of @piece bytes: what is heard, and how it ends. */
static void feed(const struct question *q, size_t piece, struct lkg_buf *ret)
{
        struct heard heard = { .answer = rows_has(q, "stopped") ? -ECANCELED : 0 };
        struct lkg_watch_stream stream;
        struct lkg_error err = { 0 };
        int r = 0;

        lkg_watch_stream_init(&stream, MAX);
        for (size_t i = 0; i < q->size && r == 0; i += piece) {
                r = lkg_watch_stream_feed(&stream, q->text + i, piece < q->size - i ? piece : q->size - i,
                                          hear, &heard, &err);
                assert_true(stream.line.size <= MAX);
        }
        lkg_buf_puts(ret, heard.text);
        if (r < 0)
                lkg_buf_printf(ret, "%s %s", strerrorname_np(-r), err.message);
        else if (lkg_watch_stream_is_partial(&stream))
                lkg_buf_puts(ret, "and a part");
        lkg_watch_stream_deinit(&stream);
}

/* The same however the stream is split. */
static void say_events(const struct question *q, struct lkg_buf *ret)
{
        feed(q, q->size, ret);
        for (size_t piece = 1; piece < q->size; piece++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

                feed(q, piece, &buf);
                assert_string_equal(buf.data, ret->data);
        }
}

static const struct operation operations[] = {
        { "events", say_events, 0 },
        { 0 },
};

ROWS(watch, operations)
