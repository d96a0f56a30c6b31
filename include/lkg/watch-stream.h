/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits the bytes of a watch into events: one JSON document per line, {"type": ..., "object": ...}. Pure;
 * bounded memory.
 * Source: Kubernetes API concepts, "Efficient detection of changes"; apimachinery pkg/watch.
 */
#pragma once

#include <lkg/admission.h>
#include <lkg/buf.h>
#include <lkg/doc.h>

enum lkg_event_type {
        LKG_EVENT_ADDED,
        LKG_EVENT_MODIFIED,
        LKG_EVENT_DELETED,
        LKG_EVENT_BOOKMARK,
        LKG_EVENT_ERROR
};

struct lkg_watch_event {
        enum lkg_event_type type;
        const struct lkg_value *object; /* a map */
};

struct lkg_watch_stream {
        struct lkg_buf line;
        size_t max_bytes; /* of one line */
        const struct lkg_admission
                *admission; /* asked before a line is decoded; borrowed, NULL = no check */
        const char *what;   /* as it is asked about; NULL = "a watch" */
};

void lkg_watch_stream_init(struct lkg_watch_stream *stream, size_t max_bytes);
void lkg_watch_stream_deinit(struct lkg_watch_stream *stream);

/** lkg_watch_stream_is_partial() - has a line begun and not ended? */
bool lkg_watch_stream_is_partial(const struct lkg_watch_stream *stream);

/**
 * lkg_watch_stream_feed() - call @fn for each complete event; it returns a negative value to stop.
 *
 * An unknown type is skipped (a later release may have more), and so is an empty line.
 * Return: 0; the result of @fn; -EFBIG: a line over max_bytes; -EBADMSG: no JSON, no map, no object, not
 * admitted; -ENOMEM. The stream is unusable after a negative result.
 */
int lkg_watch_stream_feed(struct lkg_watch_stream *stream, const char *data, size_t size,
                          int (*fn)(const struct lkg_watch_event *event, void *userdata), void *userdata,
                          struct lkg_error *err);
