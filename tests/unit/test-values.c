/* SPDX-License-Identifier: Apache-2.0 */
/* Single values as Go and the components read them: rows/values.rows. Rule: docs/specification.md 3.5. */
#include <arpa/inet.h>
#include <inttypes.h>

#include <lkg/text.h>
#include <lkg/tree.h>

#include "rows.h"
#include "core/schema/values/values.h"

static char reason[LKG_REFUSAL_MAX];

/* Return: false, and it is said why, if a parser has refused. */
static bool accepted(int r, struct lkg_buf *ret)
{
        if (r >= 0)
                return true;
        assert_int_equal(r, -EINVAL);
        lkg_buf_printf(ret, "refused: %s", reason);
        return false;
}

static void say_bool(const struct question *q, struct lkg_buf *ret)
{
        bool b = false;

        if (accepted(lkg_bool_parse(q->text, q->size, &b, reason), ret))
                lkg_buf_puts(ret, b ? "true" : "false");
}

static void say_int(const struct question *q, struct lkg_buf *ret)
{
        int64_t n = 0;

        if (accepted(lkg_int_parse(q->text, q->size, rows_number(q, "base"), rows_number(q, "bits"), &n,
                                   reason),
                     ret))
                lkg_buf_printf(ret, "%" PRId64, n);
}

static void say_uint(const struct question *q, struct lkg_buf *ret)
{
        uint64_t n = 0;

        if (accepted(lkg_uint_parse(q->text, q->size, rows_number(q, "base"), rows_number(q, "bits"), &n,
                                    reason),
                     ret))
                lkg_buf_printf(ret, "%" PRIu64, n);
}

static void say_float(const struct question *q, struct lkg_buf *ret)
{
        double n = 0;

        if (accepted(lkg_float_parse(q->text, q->size, rows_number(q, "bits"), &n, reason), ret))
                lkg_buf_printf(ret, "%.17g", n);
}

static void say_cpuset(const struct question *q, struct lkg_buf *ret)
{
        int64_t highest = -2;

        if (accepted(lkg_cpuset_parse(q->text, q->size, &highest, reason), ret))
                lkg_buf_printf(ret, "highest %" PRId64, highest);
}

/* As the component prints it; then what differs from that: the canonical form, AsInt64() and Value(). */
static void say_quantity(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        int64_t n = 0;

        if (!accepted(lkg_quantity_parse(q->text, q->size, &quantity, reason), ret))
                return;
        lkg_quantity_text(&quantity, lkg_span(q->text, q->size), ret);
        lkg_buf_puts(ret, ", ");
        lkg_quantity_canonical(&quantity, ret);
        if (lkg_quantity_int64(&quantity, &n))
                lkg_buf_printf(ret, ", %" PRId64, n);
        else
                lkg_buf_puts(ret, ", no int64");
        lkg_buf_printf(ret, ", value %" PRId64 ", sign %d%s", lkg_quantity_value(&quantity),
                       lkg_quantity_sign(&quantity), lkg_quantity_is_zero(&quantity) ? ", zero" : "");
}

/* The parts in their order, with the sign between: `1 ++ 1000m` is `1 = 1000m`. Every pair is compared, not only neighbours. */
static void say_order(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_quantity quantities[ROWS_PARTS_MAX];

        for (size_t i = 0; i < q->n_parts; i++)
                assert_int_equal(
                        lkg_quantity_parse(q->parts[i], strlen(q->parts[i]), &quantities[i], reason), 0);
        for (size_t i = 0; i < q->n_parts; i++) {
                for (size_t j = 0; j < q->n_parts; j++)
                        lkg_buf_putc(ret, "<=>"[1 + lkg_quantity_compare(&quantities[i], &quantities[j])]);
                lkg_buf_putc(ret, i + 1 < q->n_parts ? ' ' : '\n');
        }
        for (size_t i = 0; i < q->n_parts; i++)
                lkg_quantity_deinit(&quantities[i]);
}

static void say_trimmed(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_span span = lkg_quantity_trim(q->text, q->size);

        lkg_buf_printf(ret, "[%.*s]", (int)span.size, span.data);
}

static void say_ip(const struct question *q, struct lkg_buf *ret)
{
        char text[INET6_ADDRSTRLEN];
        struct lkg_ip ip;

        if (!accepted(lkg_ip_parse(q->text, q->size, &ip, reason), ret))
                return;
        assert_non_null(inet_ntop(AF_INET6, ip.bytes, text, sizeof(text)));
        lkg_buf_printf(ret, "%s%s", text, lkg_ip_is_v4(&ip) ? " v4" : "");
}

/* One network; or two, and whether they are one of each family. */
static void say_cidr(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_cidr cidr[2];

        for (size_t i = 0; i < q->n_parts; i++) {
                if (!accepted(lkg_cidr_parse(q->parts[i], strlen(q->parts[i]), &cidr[i], reason), ret))
                        return;
                lkg_buf_printf(ret, "%sv%d /%u", i ? ", " : "", cidr[i].v4 ? 4 : 6, cidr[i].prefix);
        }
        if (q->n_parts == 2 && lkg_cidr_dual_stack(&cidr[0], &cidr[1]))
                lkg_buf_puts(ret, ", dual stack");
}

static void say_host_port(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_span host, port;

        if (accepted(lkg_host_port_split(q->text, q->size, &host, &port, reason), ret))
                lkg_buf_printf(ret, "host [%.*s] port [%.*s]", (int)host.size, host.data, (int)port.size,
                               port.data);
        lkg_buf_puts(ret, "; to listen on: ");
        if (accepted(lkg_host_port_check(q->text, q->size, reason), ret))
                lkg_buf_puts(ret, "right");
}

static void say_complete(const struct question *q, struct lkg_buf *ret)
{
        lkg_buf_printf(ret, "%d", lkg_host_port_complete(q->text, q->size));
}

static void say_url(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_span scheme;

        if (accepted(lkg_url_parse(q->text, q->size, &scheme, reason), ret))
                lkg_buf_printf(ret, "scheme [%.*s]", (int)scheme.size, scheme.data);
}

/* The parsers that only say yes (and how much of it) or no. */
static void say_right(const struct question *q, struct lkg_buf *ret)
{
        static const struct {
                const char *name;
                int (*parse)(const char *text, size_t size, char *reason);
        } parsers[] = {
                { "ip-flag", lkg_ip_flag },
                { "ip-port-flag", lkg_ip_port_flag },
                { "trace-endpoint", lkg_url_trace_endpoint },
                { "subdomain", lkg_name_dns_subdomain },
                { "qualified", lkg_name_qualified },
                { "label-value", lkg_name_label_value },
                { "image", lkg_image_pattern },
                { "image-full", lkg_image_pattern_full },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(parsers); i++)
                if (strcmp(parsers[i].name, q->args[1]) == 0) {
                        int r = parsers[i].parse(q->text, q->size, reason);

                        if (accepted(r, ret))
                                lkg_buf_printf(ret, "%d", r);
                        return;
                }
        fail_msg("no parser '%s'", q->args[1]);
}

static void say_duration(const struct question *q, struct lkg_buf *ret)
{
        char buf[LKG_DURATION_MAX];
        int64_t ns = 42;
        size_t size;

        if (!accepted(lkg_duration_parse(q->text, q->size, &ns, reason), ret)) {
                assert_int_equal(lkg_duration_parse(q->text, q->size, &ns, NULL), -EINVAL);
                assert_int_equal(ns, 42);
                return;
        }
        size = lkg_duration_format(ns, buf);
        assert_int_equal(size, strlen(buf));
        lkg_buf_printf(ret, "%" PRId64 ", %s", ns, buf);
}

/* Our own settings, options and commands: lengths of time, so no sign is allowed. */
static void say_plain_duration(const struct question *q, struct lkg_buf *ret)
{
        uint64_t ns = 42;

        if (lkg_duration_parse_plain(q->text, &ns) == 0)
                lkg_buf_printf(ret, "%" PRIu64, ns);
        else
                lkg_buf_printf(ret, "refused%s", ns == 42 ? "" : ", and written");
}

static void say_scalar(const struct question *q, struct lkg_buf *ret)
{
        static const char *const types[] = { [LKG_S_NULL] = "null",
                                             [LKG_S_BOOL] = "bool",
                                             [LKG_S_INT] = "int",
                                             [LKG_S_FLOAT] = "float",
                                             [LKG_S_STRING] = "text" };
        struct lkg_scalar scalar = { 0 };

        lkg_scalar_resolve(q->text, q->size, &scalar);
        lkg_buf_puts(ret, types[scalar.type]);
        if (scalar.type == LKG_S_INT || (scalar.type == LKG_S_FLOAT && *scalar.text))
                lkg_buf_printf(ret, " %s", scalar.text);
        if (lkg_scalar_is_timestamp(q->text, q->size))
                lkg_buf_puts(ret, ", a time");
}

static void say_float_key(const struct question *q, struct lkg_buf *ret)
{
        char buf[LKG_NUMBER_TEXT_MAX];

        lkg_float_key(strtod(q->text, NULL), buf);
        lkg_buf_puts(ret, buf);
}

/* The first part is wrong; the others are offered. */
static void say_nearest(const struct question *q, struct lkg_buf *ret)
{
        static const char *const names[] = { "maxPods", "maxOpenFiles", "podsPerCore",
                                             "port",    "readOnlyPort", "v" };
        struct lkg_nearest nearest;
        const char *best;

        lkg_nearest_init(&nearest, q->parts[0]);
        for (size_t i = 0; q->n_parts == 1 && i < LKG_ARRAY_SIZE(names); i++)
                lkg_nearest_offer(&nearest, names[i]);
        for (size_t i = 1; i < q->n_parts; i++)
                lkg_nearest_offer(&nearest, q->parts[i]);
        best = lkg_nearest_best(&nearest);
        lkg_buf_puts(ret, best ? best : "none");
}

static const struct operation operations[] = {
        { "bool", say_bool },
        { "int", say_int },
        { "uint", say_uint },
        { "float", say_float },
        { "cpuset", say_cpuset },
        { "quantity", say_quantity },
        { "quantity-order", say_order },
        { "quantity-trim", say_trimmed },
        { "ip", say_ip },
        { "cidr", say_cidr },
        { "host-port", say_host_port },
        { "host-port-complete", say_complete },
        { "url", say_url },
        { "right", say_right },
        { "duration", say_duration },
        { "plain-duration", say_plain_duration },
        { "scalar", say_scalar },
        { "float-key", say_float_key },
        { "nearest", say_nearest },
        { 0 },
};

ROWS(values, operations)

TEST(test_spans)
{
        struct lkg_span before, after, rest = lkg_span("a,,b,", 5), part;
        char piece[LKG_PIECE_MAX];
        size_t n = 0;

        while (lkg_span_next(&rest, ',', &part))
                n++;
        assert_int_equal(n, 4);
        assert_int_equal(part.size, 0);
        assert_false(lkg_span_cut(lkg_span("ab", 2), '=', &before, &after));
        assert_int_equal(before.size, 2);
        assert_int_equal(after.size, 0);
        assert_true(lkg_span_is(lkg_span_trim(lkg_span("\343\200\200\t a b\342\200\251\n", 12)), "a b"));
        assert_int_equal(lkg_span_trim(lkg_span("\302", 1)).size, 1);
        assert_string_equal(lkg_piece(lkg_span("a\"\\\n\0\303\251\302\205\377", 10), piece),
                            "\"a\\\"\\\\\\x0a\\x00\303\251\\xc2\\x85\\xff\"");
        assert_string_equal(lkg_piece(lkg_span("0123456789012345678901", 22), piece),
                            "\"01234567890123456789...\"");
}

TEST(test_reasons_are_cut)
{
        char small[LKG_REFUSAL_MAX + 1], text[400];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        small[LKG_REFUSAL_MAX] = 'z';
        assert_int_equal(lkg_refuse(small, "%s", text), -EINVAL);
        assert_int_equal(strlen(small), LKG_REFUSAL_MAX - 1);
        assert_int_equal(small[LKG_REFUSAL_MAX], 'z');
        assert_int_equal(lkg_refuse(NULL, "%s", text), -EINVAL);
}
