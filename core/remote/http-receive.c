/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives data in curl's callbacks: nothing here may add, remove or free a transfer. To stop, a callback stores the reason in
 * the transfer and makes curl fail; http.c reads the reason from there.
 */
#include <strings.h>

#include "http-internal.h"

size_t lkg_http_stop(struct lkg_http_transfer *t, int error, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(t->words, sizeof(t->words), fmt, ap);
        va_end(ap);
        t->error = error;
        return 0;
}

#define OK 200

static bool is_named(struct lkg_span name, const char *want)
{
        return name.size == strlen(want) && strncasecmp(name.data, want, name.size) == 0;
}

static void take_field(struct lkg_http_transfer *t, struct lkg_span line)
{
        struct lkg_span name, value;

        if (!lkg_span_cut(line, ':', &name, &value))
                return;
        value = lkg_span_trim(value);
        if (is_named(name, "Retry-After")) {
                t->retry_after_ns = lkg_http_retry_after(value.data, value.size, lkg_realtime_ns());
        } else if (is_named(name, "X-Kubernetes-PF-FlowSchema-UID") && value.size < sizeof(t->flow_schema)) {
                for (size_t i = 0; i < value.size; i++) /* it goes into logs */
                        t->flow_schema[i] =
                                value.data[i] > ' ' && value.data[i] < 0x7f ? value.data[i] : '?';
                t->flow_schema[value.size] = '\0';
        }
}

/* A header has ended: of a 1xx reply, or the one that counts. */
static void end_header(struct lkg_http_transfer *t)
{
        long status = 0;

        (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        if (status < 200)
                return;
        t->status = (unsigned)status;
        t->header_complete = true;
        if (t->request.on_data && t->status == OK && t->request.on_open)
                t->request.on_open(t->request.userdata);
}

size_t lkg_http_on_header(char *line, size_t one, size_t size, void *transfer)
{
        struct lkg_http_transfer *t = transfer;

        (void)one; /* always 1 */
        if (t->cancelled)
                return 0;
        t->progress_ns = lkg_boottime_ns();
        t->header_bytes += size;
        if (t->header_bytes > LKG_HTTP_HEADER_BYTES_MAX)
                return lkg_http_stop(t, -EFBIG, "%s: the header of the reply is over %u bytes", t->peer,
                                     LKG_HTTP_HEADER_BYTES_MAX);
        if (t->header_complete)
                return size; /* trailers */
        if (size > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
                t->retry_after_ns = 0;
                t->flow_schema[0] = '\0';
        } else if (lkg_span_trim(lkg_span(line, size)).size == 0) {
                end_header(t);
        } else {
                take_field(t, lkg_span(line, size));
        }
        return t->cancelled ? 0 : size;
}

static size_t pass_on(struct lkg_http_transfer *t, const char *data, size_t size)
{
        int r = t->request.on_data(data, size, t->request.userdata);

        if (t->cancelled)
                return 0;
        return r < 0 ? lkg_http_stop(t, r, "%s: the stream was ended by its reader", t->peer) : size;
}

size_t lkg_http_on_body(char *data, size_t one, size_t size, void *transfer)
{
        struct lkg_http_transfer *t = transfer;
        struct lkg_http *http = t->http;

        (void)one;
        if (t->cancelled)
                return 0;
        if (size == 0)
                return 0; /* some replies have an empty piece */
        t->progress_ns = lkg_boottime_ns();
        if (t->request.on_data && t->status == OK)
                return pass_on(t, data, size);
        if (size > t->request.max_bytes || t->body.size > t->request.max_bytes - size)
                return lkg_http_stop(t, -EFBIG, "the reply of %s is over %zu bytes", t->peer,
                                     t->request.max_bytes);
        if (size > http->max_bytes || http->buffered_bytes > http->max_bytes - size)
                return lkg_http_stop(t, -ENOBUFS, "%s: all replies together are over %zu bytes", t->peer,
                                     http->max_bytes);
        lkg_buf_append(&t->body, data, size);
        if (lkg_buf_failed(&t->body))
                return lkg_http_stop(t, -ENOMEM, "not enough memory for the reply of %s", t->peer);
        http->buffered_bytes += size;
        return size;
}
