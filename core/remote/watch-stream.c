/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/client.h>

#include <lkg/documents.h>
#include <lkg/limits.h>

#define LINE_KEPT_MAX (64u << 10) /* a larger buffer is freed: a watch is idle nearly always */

static const char *const event_names[] = {
        [LKG_EVENT_ADDED] = "ADDED",     [LKG_EVENT_MODIFIED] = "MODIFIED",
        [LKG_EVENT_DELETED] = "DELETED", [LKG_EVENT_BOOKMARK] = "BOOKMARK",
        [LKG_EVENT_ERROR] = "ERROR",
};

void lkg_watch_stream_init(struct lkg_watch_stream *stream, size_t max_bytes)
{
        *stream = (struct lkg_watch_stream){
                /* If the decoder would refuse a line, it need not be collected first. */
                .max_bytes = max_bytes < LKG_DOC_BYTES_MAX ? max_bytes : LKG_DOC_BYTES_MAX,
        };
}

void lkg_watch_stream_deinit(struct lkg_watch_stream *stream)
{
        if (stream)
                lkg_buf_deinit(&stream->line);
}

bool lkg_watch_stream_is_partial(const struct lkg_watch_stream *stream)
{
        return stream->line.size > 0;
}

static bool is_blank(const char *text, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
                        return false;
        return true;
}

static bool event_type(const char *name, enum lkg_event_type *ret)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(event_names); i++)
                if (strcmp(event_names[i], name) == 0) {
                        *ret = (enum lkg_event_type)i;
                        return true;
                }
        return false;
}

static int refuse_json(const struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_finding *f = lkg_report_first_error(report);

        return lkg_refuse_because(err, -EBADMSG, NULL, "the watch sent no JSON: column %u: %s",
                                  f ? f->column : 0, f ? f->text : "it cannot be decoded");
}

static int take_event(const struct lkg_value *event, int (*fn)(const struct lkg_watch_event *, void *),
                      void *userdata, struct lkg_error *err)
{
        struct lkg_watch_event ret;
        const char *name;

        if (lkg_value_type(event) != LKG_MAP)
                return lkg_refuse_because(err, -EBADMSG, NULL,
                                          "the watch sent a %s; want {\"type\": ..., \"object\": ...}",
                                          lkg_type_name(lkg_value_type(event)));
        name = lkg_map_get_string(event, "type");
        if (!name)
                return lkg_refuse_because(err, -EBADMSG, NULL, "the watch sent an event without a type");
        if (!event_type(name, &ret.type))
                return 0;
        ret.object = lkg_map_get(event, "object");
        if (!ret.object || lkg_value_type(ret.object) != LKG_MAP)
                return lkg_refuse_because(err, -EBADMSG, NULL,
                                          "the watch sent an event %s without an object", name);
        return fn(&ret, userdata);
}

/* Strict: different readers read an object with duplicate keys differently. */
static int take_line(const struct lkg_watch_stream *stream, const char *text, size_t size,
                     int (*fn)(const struct lkg_watch_event *, void *), void *userdata,
                     struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *event = NULL;

        if (is_blank(text, size))
                return 0;
        if (lkg_admit_text(stream->admission, LKG_ADMIT_OBJECT, stream->what ? stream->what : "a watch",
                           text, size, &why) < 0)
                return lkg_refuse_because(err, -EBADMSG, NULL, "an event of the watch is not read: %s", why);
        if (lkg_decode_json(text, size, LKG_DECODE_STRICT, /* source= */ NULL, &report, &event) < 0)
                return refuse_json(&report, err);
        return take_event(event, fn, userdata, err);
}

/* @size counts only the newest bytes of a line, which may have begun earlier. */
static int check_size(const struct lkg_watch_stream *stream, size_t size, struct lkg_error *err)
{
        if (size <= stream->max_bytes && stream->line.size <= stream->max_bytes - size)
                return 0;
        return lkg_refuse_because(err, -EFBIG, NULL,
                                  "the watch sent an event of more than %zu bytes (remote.maxBytes, and "
                                  "what is around the object)",
                                  stream->max_bytes);
}

int lkg_watch_stream_feed(struct lkg_watch_stream *stream, const char *data, size_t size,
                          int (*fn)(const struct lkg_watch_event *event, void *userdata), void *userdata,
                          struct lkg_error *err)
{
        const char *end;
        int r;

        for (; size > 0; size -= (size_t)(end + 1 - data), data = end + 1) {
                size_t n;

                end = memchr(data, '\n', size);
                n = end ? (size_t)(end - data) : size;
                r = check_size(stream, n, err);
                if (r < 0)
                        return r;
                if (end && stream->line.size == 0) { /* the usual case: a whole line, without a copy */
                        r = take_line(stream, data, n, fn, userdata, err);
                        if (r < 0)
                                return r;
                        continue;
                }
                lkg_buf_append(&stream->line, data, n);
                (void)lkg_buf_text(&stream->line);
                if (!end)
                        return 0;
                r = take_line(stream, stream->line.data, stream->line.size, fn, userdata, err);
                if (r < 0)
                        return r;
                if (stream->line.allocated > LINE_KEPT_MAX)
                        lkg_buf_deinit(&stream->line);
                else
                        lkg_buf_reset(&stream->line);
        }
        return 0;
}
