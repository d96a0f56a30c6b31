/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a watch: the events do not depend on how the stream is split, memory is bounded, and whatever
 * they contain, their follower asks for at most one read and one watch at a time and accepts no malicious
 * identity.
 */
#include <lkg/limits.h>
#include <lkg/documents.h>

#include "core/remote/follow.h"

#include "fuzz-check.h"

#define MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct lkg_resource resource = {
        .group_version = "v1",
        .plural = "configmaps",
        .kind = "ConfigMap",
        .ns = "kube-system",
        .name = "c",
};

struct reader {
        struct lkg_buf heard;
        struct lkg_follow follow;
        bool getting, watching;
        uint64_t now_ns;
};

static void carry_out(struct reader *reader, unsigned todo)
{
        FUZZ_CHECK(!(todo & LKG_FOLLOW_TELL) || !(todo & LKG_FOLLOW_TELL_NONE));
        if (todo & LKG_FOLLOW_END_GET)
                reader->getting = false;
        if (todo & LKG_FOLLOW_END_WATCH)
                reader->watching = false;
        FUZZ_CHECK(!(todo & LKG_FOLLOW_GET) || !reader->getting);
        FUZZ_CHECK(!(todo & LKG_FOLLOW_WATCH) || !reader->watching);
        reader->getting |= (todo & LKG_FOLLOW_GET) != 0;
        reader->watching |= (todo & LKG_FOLLOW_WATCH) != 0;
        FUZZ_CHECK(reader->getting == reader->follow.getting && reader->watching == reader->follow.watching);
        /* Something is always due: requests end at their own time, everything else has a time here. */
        FUZZ_CHECK(reader->getting || reader->watching || lkg_follow_due(&reader->follow) != UINT64_MAX);
}

static struct lkg_moment tick(struct reader *reader)
{
        reader->now_ns += 100 * LKG_NSEC_PER_MSEC;
        return (struct lkg_moment){ reader->now_ns, reader->now_ns, (uint32_t)reader->now_ns };
}

static void break_watch(struct reader *reader, enum lkg_api_status status)
{
        carry_out(reader, lkg_follow_broken(&reader->follow, status, tick(reader)));
}

static void check_identifier(const char *text)
{
        FUZZ_CHECK(text[0] && strlen(text) <= LKG_IDENTIFIER_MAX && !strchr(text, '/'));
        FUZZ_CHECK(strcmp(text, ".") != 0 && strcmp(text, "..") != 0);
}

static void follow(struct reader *reader, const struct lkg_watch_event *event)
{
        char version[LKG_IDENTIFIER_MAX + 1];
        struct lkg_object_id id;
        struct lkg_error err = { 0 };

        if (event->type == LKG_EVENT_ERROR) {
                break_watch(reader, lkg_object_says_gone(event->object) ? LKG_API_GONE : LKG_API_BUSY);
        } else if (event->type == LKG_EVENT_BOOKMARK) {
                if (lkg_object_read_version(event->object, "the watch sent", version, &err) < 0) {
                        FUZZ_CHECK(err.message[0]);
                        return;
                }
                check_identifier(version);
                carry_out(reader, lkg_follow_bookmark(&reader->follow, version, tick(reader)));
        } else {
                if (lkg_object_read(event->object, &resource, "the watch sent", &id, &err) < 0) {
                        FUZZ_CHECK(err.message[0]);
                        return;
                }
                check_identifier(id.uid);
                check_identifier(id.version);
                carry_out(reader, lkg_follow_event(&reader->follow, event->type, &id, tick(reader)));
        }
}

static int on_event(const struct lkg_watch_event *event, void *userdata)
{
        struct reader *reader = userdata;

        lkg_buf_u64(&reader->heard, (uint64_t)event->type);
        lkg_render(event->object, LKG_FORMAT_JSON, &reader->heard);
        if (reader->watching)
                follow(reader, event);
        return 0;
}

/* The read was answered and its watch is open. */
static void begin(struct reader *reader)
{
        const struct lkg_object_id id = { "a", "100" };

        reader->now_ns = 500 * LKG_NSEC_PER_SEC;
        lkg_follow_begin(&reader->follow, 60 * LKG_NSEC_PER_SEC, reader->now_ns);
        carry_out(reader, lkg_follow_tick(&reader->follow, tick(reader)));
        reader->getting = false;
        carry_out(reader, lkg_follow_got(&reader->follow, &id, tick(reader)));
        carry_out(reader, lkg_follow_opened(&reader->follow, tick(reader)));
}

/* In pieces with sizes from the data, or whole. */
static int read_stream(const char *data, size_t size, bool whole, struct reader *reader)
{
        struct lkg_watch_stream stream;
        struct lkg_error err = { 0 };
        int r = 0;

        begin(reader);
        lkg_watch_stream_init(&stream, MAX);
        for (size_t i = 0, piece; i < size && r == 0; i += piece) {
                piece = whole ? size : 1 + (unsigned char)data[i] % 61u;
                if (piece > size - i)
                        piece = size - i;
                r = lkg_watch_stream_feed(&stream, data + i, piece, on_event, reader, &err);
                FUZZ_CHECK(stream.line.size <= MAX);
        }
        FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -EFBIG);
        FUZZ_CHECK((r == 0) == (err.message[0] == '\0'));
        if (r < 0 && reader->watching)
                break_watch(reader, LKG_API_INVALID);
        lkg_watch_stream_deinit(&stream);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct reader whole = { .heard = LKG_BUF_INIT }, pieces = { .heard = LKG_BUF_INIT };
        int r = read_stream((const char *)data, size, true, &whole);

        FUZZ_CHECK(r == read_stream((const char *)data, size, false, &pieces));
        FUZZ_CHECK(whole.heard.size == pieces.heard.size &&
                   (whole.heard.size == 0 ||
                    memcmp(whole.heard.data, pieces.heard.data, whole.heard.size) == 0));
        lkg_buf_deinit(&whole.heard);
        lkg_buf_deinit(&pieces.heard);
        return 0;
}
