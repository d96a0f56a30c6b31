/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of protobuf and what a reply of gRPC means: rows/wire.rows. */
#include <inttypes.h>

#include <lkg/http.h>

#include "rows.h"

static void answer_fields(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_span rest = lkg_span(q->text, q->size);
        struct lkg_wire_field field;
        int r;

        while ((r = lkg_wire_next(&rest, &field)) > 0)
                if (field.is_bytes)
                        lkg_buf_printf(ret, "%u '%.*s' ", field.number, (int)field.bytes.size,
                                       field.bytes.data);
                else
                        lkg_buf_printf(ret, "%u %" PRIu64 " ", field.number, field.value);
        lkg_buf_puts(ret, r == 0 ? "end" : strerrorname_np(-r));
}

/* NUMBER ++ TEXT */
static void answer_written(const struct question *q, struct lkg_buf *ret)
{
        lkg_wire_put(ret, (unsigned)strtoul(q->parts[0], NULL, 10), q->parts[1], strlen(q->parts[1]));
}

/* reply error= status= grpc= */
static void answer_reply(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_http_result result = { .error = -(int)rows_number(q, "error"),
                                                .status = rows_number(q, "status"),
                                                .grpc_status = atoi(rows_arg(q, "grpc", "-1")),
                                                .body = q->text,
                                                .size = q->size };
        struct lkg_error err = { 0 };
        struct lkg_span message;
        int r = lkg_grpc_answer(&result, &message, &err);

        if (r < 0)
                lkg_buf_printf(ret, "%s: %s", strerrorname_np(-r), err.message);
        else
                lkg_buf_printf(ret, "'%.*s'", (int)message.size, message.data);
}

static const struct operation operations[] = {
        { "fields", answer_fields },
        { "written", answer_written },
        { "reply", answer_reply },

        { 0 },
};

ROWS(wire, operations)
