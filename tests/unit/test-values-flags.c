/* SPDX-License-Identifier: Apache-2.0 */
/* Flags with several values, and how their text is split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/schema/values/flags.h"

static char reason[LKG_REFUSAL_MAX];

struct flag_case {
        const char *text;
        const char *want; /* output of the collectors below; NULL: refused */
};

static void put(struct lkg_buf *buf, struct lkg_span span, char end)
{
        lkg_buf_append(buf, span.data, span.size);
        lkg_buf_putc(buf, end);
}

static int collect_item(void *userdata, struct lkg_span item)
{
        put(userdata, item, '|');
        return 0;
}

static int collect_pair(void *userdata, struct lkg_span key, struct lkg_span value)
{
        put(userdata, key, '>');
        put(userdata, value, '|');
        return 0;
}

static int collect_bool(void *userdata, struct lkg_span key, bool value)
{
        put(userdata, key, '>');
        lkg_buf_puts(userdata, value ? "yes|" : "no|");
        return 0;
}

static int collect_level(void *userdata, struct lkg_span pattern, uint32_t verbosity)
{
        put(userdata, pattern, '>');
        lkg_buf_printf(userdata, "%u|", verbosity);
        return 0;
}

static int collect_memory(void *userdata, int32_t node, bool first, struct lkg_span type,
                          struct lkg_span source, const struct lkg_quantity *quantity)
{
        lkg_buf_printf(userdata, "%s%d ", first ? "new " : "", node);
        put(userdata, type, '>');
        lkg_quantity_text(quantity, source, userdata);
        lkg_buf_putc(userdata, '|');
        return 0;
}

static int full(void *userdata, struct lkg_span item)
{
        (void)userdata;
        (void)item;
        return -ENOSPC;
}

/* Runs @parse over @cases. */
static void run(const struct flag_case *cases, size_t n,
                int (*parse)(const char *text, size_t size, struct lkg_buf *buf))
{
        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
                int r = parse(cases[i].text, strlen(cases[i].text), &buf);

                assert_int_equal(r, cases[i].want ? 0 : -EINVAL);
                if (cases[i].want)
                        assert_string_equal(buf.data ? buf.data : "", cases[i].want);
        }
}

static int slice(const char *text, size_t size, struct lkg_buf *buf)
{
        return lkg_flag_slice(text, size, collect_item, buf, reason);
}

static void test_slice(void **state)
{
        static const struct flag_case cases[] = {
                { "", "" },
                { "a", "a|" },
                { "a,b", "a|b|" },
                { "a,", "a||" },
                { ",", "||" },
                { " a ,b", " a |b|" },
                { "\"a,b\",c", "a,b|c|" },
                { "\"a\"\"b\"", "a\"b|" },
                { "\"\"", "|" },
                { "a\nb", "a|" },
                { "\r\n\na\r\nb", "a|" },
                { "\"a\r\nb\",c", "a\nb|c|" },
                { "a\r", "a|" },
                { "\"a\"\r\n", "a|" },
                { "\n", NULL },
                { "\r", NULL },
                { "a\"b", NULL },
                { "\"a\"b", NULL },
                { "\"a", NULL },
                { "\"a\n", NULL },
        };

        (void)state;
        run(cases, LKG_ARRAY_SIZE(cases), slice);
        assert_int_equal(lkg_flag_slice("a,b", 3, full, NULL, reason), -ENOSPC);
}

static int equal_pairs(const char *text, size_t size, struct lkg_buf *buf)
{
        return lkg_flag_pairs(text, size, '=', collect_pair, buf, reason);
}

static int angle_pairs(const char *text, size_t size, struct lkg_buf *buf)
{
        return lkg_flag_pairs(text, size, '<', collect_pair, buf, reason);
}

static int one_pair(const char *text, size_t size, struct lkg_buf *buf)
{
        return lkg_flag_pair(text, size, collect_pair, buf, reason);
}

static int bools(const char *text, size_t size, struct lkg_buf *buf)
{
        return lkg_flag_bools(text, size, collect_bool, buf, reason);
}

static void test_pairs(void **state)
{
        static const struct flag_case cases[] = {
                { "", "" },
                { ",,", "" },
                { "a=b,c=d", "a>b|c>d|" },
                { " a = b ,\302\240c=", "a>b|c>|" },
                { "a=b=c", "a>b=c|" },
                { "=", ">|" },
                { "a=b,a=c", "a>b|a>c|" },
                { "a", NULL },
                { "a=b,c", NULL },
                { " ", NULL },
        };
        static const struct flag_case angles[] = {
                { "memory.available<100Mi,nodefs.available<10%",
                  "memory.available>100Mi|nodefs.available>10%|" },
                { "a=b", NULL },
        };
        static const struct flag_case unsplit[] = {
                { "a=b,c=d", "a>b,c=d|" },
                { "", NULL },
                { "a", NULL },
        };
        static const struct flag_case booleans[] = {
                { "A=true, B = F", "A>yes|B>no|" },
                { "", "" },
                { "A", NULL },
                { "A=yes", NULL },
        };
        static const struct flag_case long_name[] = { { "PodLifecycleSleepActionAllowZero=x", NULL } };

        (void)state;
        run(cases, LKG_ARRAY_SIZE(cases), equal_pairs);
        assert_string_equal(reason, "\" \" is no pair; want name=value");
        run(angles, LKG_ARRAY_SIZE(angles), angle_pairs);
        run(unsplit, LKG_ARRAY_SIZE(unsplit), one_pair);
        run(booleans, LKG_ARRAY_SIZE(booleans), bools);
        assert_string_equal(reason, "the value of \"A\" is not a boolean; want true or false");
        run(long_name, LKG_ARRAY_SIZE(long_name), bools);
        assert_string_equal(reason, "the value of \"PodLifecycleSleepActionAllowZero\" is not a boolean; "
                                    "want true or false");
}

static int vmodule(const char *text, size_t size, struct lkg_buf *buf)
{
        return lkg_flag_vmodule(text, size, collect_level, buf, reason);
}

static void test_vmodule(void **state)
{
        static const struct flag_case cases[] = {
                { "", "" },          { "a=1,b*=2147483647,", "a>1|b*>2147483647|" },
                { " a=1", " a>1|" }, { "a=2147483648", NULL },
                { "a=-1", NULL },    { "a= 1", NULL },
                { "a", NULL },       { "a=", NULL },
                { "=1", NULL },      { "a=1=2", NULL },
        };

        (void)state;
        run(cases, LKG_ARRAY_SIZE(cases), vmodule);
}

static int reserved_memory(const char *text, size_t size, struct lkg_buf *buf)
{
        return lkg_flag_reserved_memory(text, size, collect_memory, buf, reason);
}

static void test_reserved_memory(void **state)
{
        static const struct flag_case cases[] = {
                { "", "" },
                { "0:memory=1Gi,hugepages-2Mi=1024Mi;1:memory=01",
                  "new 0 memory>1Gi|0 hugepages-2Mi>1Gi|new 1 memory>01|" },
                { "0:memory=1;0:memory=2", "new 0 memory>1|new 0 memory>2|" },
                { "4294967297:memory=1", "new 1 memory>1|" }, /* 32 bits of the number are kept */
                { "0:hugepages-=1", "new 0 hugepages->1|" },
                { "0:", NULL },
                { "0", NULL },
                { "0:memory", NULL },
                { "0:memory=1;", NULL },
                { "0:memory=1=2", NULL },
                { "0:1:memory=1", NULL },
                { "0:cpu=1", NULL },
                { "x:memory=1", NULL },
                { "0:memory= 1", NULL },
                { "0:memory=1234567890123456789012Gx", NULL },
        };

        (void)state;
        run(cases, LKG_ARRAY_SIZE(cases), reserved_memory);
}

static void test_spans(void **state)
{
        struct lkg_span before, after, rest = lkg_span("a,,b,", 5), part;
        char piece[LKG_PIECE_MAX];
        size_t n = 0;

        (void)state;
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

static void test_reasons_are_cut(void **state)
{
        char small[LKG_REFUSAL_MAX + 1], text[400];

        (void)state;
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        small[LKG_REFUSAL_MAX] = 'z';
        assert_int_equal(lkg_refuse(small, "%s", text), -EINVAL);
        assert_int_equal(strlen(small), LKG_REFUSAL_MAX - 1);
        assert_int_equal(small[LKG_REFUSAL_MAX], 'z');
        assert_int_equal(lkg_refuse(NULL, "%s", text), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_slice),   cmocka_unit_test(test_pairs),
                cmocka_unit_test(test_vmodule), cmocka_unit_test(test_reserved_memory),
                cmocka_unit_test(test_spans),   cmocka_unit_test(test_reasons_are_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
