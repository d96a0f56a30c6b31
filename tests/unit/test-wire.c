/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of protobuf, what a reply of gRPC means, and the lines about containers: rows/wire.rows. */
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/file.h>
#include <lkg/http.h>
#include <lkg/messages.h>
#include <lkg/probes.h>

#include "rows.h"
#include "tmpdir.h"

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

static void answer_lines(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_containers_deinit) struct lkg_containers containers = { 0 };
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_error err = { 0 };
        char d[TMPDIR_MAX];
        int r;

        assert_int_equal(tmpdir_make(d), 0);
        fd = open(d, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (strcmp(q->text, "none") != 0)
                assert_int_equal(
                        lkg_write_file_atomic(fd, LKG_CONTAINERS_FILE, q->text, q->size, 0600, false, NULL),
                        0);
        r = lkg_containers_read(fd, &containers, &err);
        if (r < 0)
                lkg_buf_printf(ret, "%s: %s", strerrorname_np(-r), err.message);
        for (size_t i = 0; i < containers.n; i++) {
                const struct lkg_container *c = &containers.items[i];

                lkg_buf_printf(ret,
                               "%s/%s %s '%s' %" PRIu64 " %s state %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                               c->ns, c->pod, c->uid, c->ip, c->sandbox_ns, c->name, c->state, c->restarts,
                               c->created_ns);
        }
        assert_int_equal(tmpdir_remove(d), 0);
}

static const struct operation operations[] = {
        { "fields", answer_fields },
        { "written", answer_written },
        { "reply", answer_reply },
        { "lines", answer_lines },
        { 0 },
};

ROWS(wire, operations)
