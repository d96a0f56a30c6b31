/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a reply of gRPC and as a message of protobuf: what is read lies within, each step takes something, and what is written is
 * read back.
 */
#include <lkg/http.h>

#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct lkg_span inner, struct lkg_span outer)
{
        FUZZ_CHECK(inner.size == 0 ||
                   (inner.data >= outer.data && inner.data + inner.size <= outer.data + outer.size));
}

static void check_written(const struct lkg_wire_field *field)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_wire_field again;
        struct lkg_span rest;

        lkg_wire_put(&buf, field->number, field->bytes.data, field->bytes.size);
        rest = lkg_span(buf.data, buf.size);
        FUZZ_CHECK(lkg_wire_next(&rest, &again) == 1 && rest.size == 0 && again.is_bytes);
        FUZZ_CHECK(again.number == field->number && lkg_span_equal(again.bytes, field->bytes));
}

static void read_message(struct lkg_span message, unsigned depth)
{
        struct lkg_span rest = message;
        struct lkg_wire_field field;
        int r;

        for (size_t left = rest.size; (r = lkg_wire_next(&rest, &field)) > 0; left = rest.size) {
                FUZZ_CHECK(rest.size < left && field.number > 0);
                check_within(rest, message);
                check_within(field.bytes, message);
                if (!field.is_bytes)
                        continue;
                check_written(&field);
                if (depth > 0)
                        read_message(field.bytes, depth - 1);
        }
        FUZZ_CHECK(r == -EBADMSG || (r == 0 && rest.size == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct lkg_http_result reply = { .status = 200, .body = (const char *)data, .size = size };
        const struct lkg_span all = lkg_span((const char *)data, size);
        struct lkg_error err = { 0 };
        struct lkg_span message;

        read_message(all, 3);
        if (lkg_grpc_answer(&reply, &message, &err) < 0) {
                FUZZ_CHECK(err.message[0]);
                return 0;
        }
        check_within(message, all);
        FUZZ_CHECK(message.size + 5 == size);
        read_message(message, 3);
        return 0;
}
