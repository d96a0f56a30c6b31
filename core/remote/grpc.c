/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of protobuf field by field, and calls of gRPC with one message in each direction: see <lkg/http.h>. Pure. */
#include <endian.h>

#include <lkg/http.h>

#define FRAME_BYTES 5u /* a flag: is it compressed; 32 bits: size of the message */
#define VARINT_BITS 64u
#define NUMBER_MAX  ((1u << 29) - 1)
#define OF_WIRE(n)  ((n)&7)

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* ---- reading ---- */

static bool take(struct lkg_span *rest, uint64_t size, struct lkg_span *ret)
{
        if (size > rest->size)
                return false;
        *ret = lkg_span(rest->data, (size_t)size);
        *rest = lkg_span(rest->data + size, rest->size - (size_t)size);
        return true;
}

/* Seven bits a byte, the lowest ones first; bits beyond 64 are lost, as in every reader. */
static bool take_varint(struct lkg_span *rest, uint64_t *ret)
{
        struct lkg_span byte;

        *ret = 0;
        for (unsigned shift = 0; shift < VARINT_BITS && take(rest, 1, &byte); shift += 7) {
                *ret |= (uint64_t)(*byte.data & 0x7f) << shift;
                if (!(*byte.data & 0x80))
                        return true;
        }
        return false;
}

int lkg_wire_next(struct lkg_span *rest, struct lkg_wire_field *ret)
{
        struct lkg_wire_field field = { 0 };
        struct lkg_span skipped;
        uint64_t tag, size;
        bool ok;

        if (rest->size == 0)
                return 0;
        if (!take_varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
                return -EBADMSG;
        field.number = (unsigned)(tag >> 3);
        switch (OF_WIRE(tag)) {
        case WIRE_VARINT:
                ok = take_varint(rest, &field.value);
                break;
        case WIRE_FIXED64:
                ok = take(rest, sizeof(uint64_t), &skipped);
                break;
        case WIRE_FIXED32:
                ok = take(rest, sizeof(uint32_t), &skipped);
                break;
        case WIRE_BYTES:
                ok = take_varint(rest, &size) && take(rest, size, &field.bytes);
                field.is_bytes = true;
                break;
        default: /* groups, which proto3 does not have */
                ok = false;
        }
        if (!ok)
                return -EBADMSG;
        *ret = field;
        return 1;
}

/* ---- writing ---- */

static void put_varint(struct lkg_buf *buf, uint64_t n)
{
        for (; n > 0x7f; n >>= 7)
                lkg_buf_putc(buf, (char)(0x80 | (n & 0x7f)));
        lkg_buf_putc(buf, (char)n);
}

void lkg_wire_put(struct lkg_buf *message, unsigned number, const char *data, size_t size)
{
        put_varint(message, (uint64_t)number << 3 | WIRE_BYTES);
        put_varint(message, size);
        lkg_buf_append(message, data, size);
}

/* ---- calls ---- */

void lkg_grpc_request(const char *method, const struct lkg_buf *message, struct lkg_buf *frame,
                      struct lkg_http_request *ret)
{
        static char te[] = "TE: trailers";
        static char *items[] = { te };
        static const struct lkg_strings headers = { items, 1 };
        const uint32_t size = htobe32((uint32_t)message->size);

        lkg_buf_putc(frame, 0);
        lkg_buf_append(frame, &size, sizeof(size));
        lkg_buf_append(frame, message->data, message->size);
        ret->method = "POST";
        ret->path = method;
        ret->content_type = "application/grpc";
        ret->headers = &headers;
        ret->body = lkg_buf_text(frame);
        ret->size = frame->size;
}

int lkg_grpc_answer(const struct lkg_http_result *result, struct lkg_span *ret, struct lkg_error *err)
{
        struct lkg_span rest = lkg_span(result->body, result->size), head;
        uint32_t size;

        if (result->error < 0)
                return lkg_refuse_because(err, result->error, NULL, "no answer: %s",
                                          strerror(-result->error));
        if (result->status != 200)
                return lkg_refuse_because(err, -EPROTO, NULL, "status %u", result->status);
        if (result->grpc_status > 0)
                return lkg_refuse_because(err, -EPROTO, NULL, "status %d of gRPC", result->grpc_status);
        if (result->grpc_status < 0 || !take(&rest, FRAME_BYTES, &head) || *head.data != 0)
                return lkg_refuse_because(err, -EBADMSG, NULL, "an answer that is not gRPC");
        memcpy(&size, head.data + 1, sizeof(size));
        if (be32toh(size) != rest.size)
                return lkg_refuse_because(err, -EBADMSG, NULL, "an answer that is not one message");
        *ret = rest;
        return 0;
}
