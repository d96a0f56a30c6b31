/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as we write it, and flat maps read back; what is a question and an answer is in rows/json_out.rows. */
#include "config-helpers.h"
#include "rows.h"

#include <lkg/text.h>

/* ---- out of memory ---- */

#ifdef __SANITIZE_ADDRESS__
#define HAVE_FAILURES 0 /* its allocator cannot be replaced */
#else
#define HAVE_FAILURES 1

static long n_left = -1; /* allocations until one fails; negative: none does */
static bool goes_on;     /* only that one fails */

static bool fails(void)
{
        if (n_left < 0 || n_left-- > 0)
                return false;
        n_left = goes_on ? -1 : 0;
        errno = ENOMEM;
        return true;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
        return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
        return fails() ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
        return fails() ? NULL : __libc_realloc(p, size);
}
#endif

/* ---- what is built ---- */

/* Every kind of value in every layout, texts of each length among them. */
static void build(struct lkg_json *json, enum lkg_json_layout whole, enum lkg_json_layout inner)
{
        char text[400];

        lkg_json_map(json, NULL, whole);
        lkg_json_text(json, "type", "ConfigOK");
        lkg_json_u64(json, "most", UINT64_MAX);
        lkg_json_i64(json, "least", INT64_MIN);
        lkg_json_list(json, "list", inner);
        for (size_t i = 0; i < sizeof(text); i += 37) {
                memset(text, i % 2 ? '"' : 'x', i);
                text[i] = '\0';
                lkg_json_map(json, NULL, LKG_JSON_AROUND);
                lkg_json_text(json, "text", text);
                lkg_json_foreign(json, "name", "a\x1b\xff\xe2\x80\xae/");
                lkg_json_bool(json, "is", i % 2);
                lkg_json_end(json);
        }
        lkg_json_end(json);
        lkg_json_map(json, "map", inner == LKG_JSON_LINES ? LKG_JSON_ROW : inner);
        lkg_json_null(json, "nothing");
        lkg_json_rendered(json, "value", "[1.50,{\"b\":1}]", 14);
        lkg_json_list(json, "empty", LKG_JSON_AROUND);
        lkg_json_end(json);
        lkg_json_end(json);
        lkg_json_end(json);
}

static int write_built(enum lkg_json_layout whole, enum lkg_json_layout inner, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        build(&json, whole, inner);
        return lkg_json_write(&json, buf);
}

/* In the layout of the whole, and of a map in it. */
static void say_layout(const struct question *q, struct lkg_buf *ret)
{
        static const char *const names[] = { [LKG_JSON_TIGHT] = "tight",
                                             [LKG_JSON_PRETTY] = "pretty",
                                             [LKG_JSON_ROW] = "row",
                                             [LKG_JSON_LINES] = "lines",
                                             [LKG_JSON_AROUND] = "around" };
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

#define layout_name(i) names[i]
        lkg_json_map(&json, NULL, rows_named(layout_name, LKG_ARRAY_SIZE(names), q->parts[0]));
        lkg_json_u64(&json, "a", 1);
        lkg_json_map(&json, "in", rows_named(layout_name, LKG_ARRAY_SIZE(names), q->parts[1]));
        lkg_json_text(&json, "b", "x/");
        lkg_json_list(&json, "c", LKG_JSON_AROUND);
        lkg_json_bool(&json, NULL, true);
        lkg_json_null(&json, NULL);
        lkg_json_end(&json);
        lkg_json_end(&json);
        lkg_json_end(&json);
        assert_int_equal(lkg_json_write(&json, ret), 0);
}

TEST(test_lines)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_list(&json, "none", LKG_JSON_LINES);
        lkg_json_end(&json);
        lkg_json_list(&json, "two", LKG_JSON_LINES);
        for (unsigned i = 0; i < 2; i++) {
                lkg_json_map(&json, NULL, LKG_JSON_AROUND);
                lkg_json_u64(&json, "i", i);
                lkg_json_i64(&json, "j", -1);
                lkg_json_end(&json);
        }
        lkg_json_end(&json);
        lkg_json_end(&json);
        assert_int_equal(lkg_json_write_line(&json, &buf), 0);
        assert_string_equal(buf.data, "{\"none\":[],\"two\":[\n{\"i\":0,\"j\":-1},\n{\"i\":1,\"j\":-1}]}\n");
}

/* What has to be escaped, in every layout. Of the names and words of others, what is not UTF-8 is mended. */
static void say_text(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        bool foreign = rows_has(q, "foreign");

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        (foreign ? lkg_json_foreign : lkg_json_text)(&json, "t", q->text);
        lkg_json_map(&json, "r", LKG_JSON_ROW);
        (foreign ? lkg_json_foreign : lkg_json_text)(&json, "t", q->text);
        lkg_json_end(&json);
        lkg_json_end(&json);
        assert_int_equal(lkg_json_write(&json, ret), 0);
}

/* The ends of the ranges. */
TEST(test_values)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_list(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_u64(&json, NULL, 0);
        lkg_json_u64(&json, NULL, UINT64_MAX);
        lkg_json_u64(&json, NULL, (uint64_t)INT64_MAX + 1);
        lkg_json_i64(&json, NULL, INT64_MIN);
        lkg_json_i64(&json, NULL, -1);
        lkg_json_time(&json, NULL, 1500000000);
        lkg_json_time_ns(&json, NULL, 1500000000);
        lkg_json_text_n(&json, NULL, "a\0b", 3);
        lkg_json_rendered(&json, NULL, "1e5", 3);
        lkg_json_end(&json);
        assert_int_equal(lkg_json_write(&json, &buf), 0);
        assert_string_equal(buf.data,
                            "[0,18446744073709551615,9223372036854775808,-9223372036854775808,-1,"
                            "\"1970-01-01T00:00:01Z\",\"1970-01-01T00:00:01.5Z\",\"a\\u0000b\",1e5]");
}

/* ---- errors ---- */

static void refuse(struct lkg_json *json, int want)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_puts(&buf, "before");
        lkg_json_u64(json, "more", 1); /* changes nothing */
        lkg_json_end(json);
        assert_int_equal(lkg_json_write(json, &buf), want);
        assert_true(lkg_buf_failed(&buf));
        assert_string_equal(buf.data, "before");
        lkg_json_deinit(json);
}

TEST(test_invalid_utf8_is_an_error)
{
        static const char *const texts[] = {
                "\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "x\x80y"
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                struct lkg_json json = LKG_JSON_INIT;

                lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
                lkg_json_text(&json, "text", texts[i]);
                refuse(&json, -EILSEQ);
                lkg_json_map(&json, NULL, LKG_JSON_PRETTY);
                lkg_json_rendered(&json, "text", texts[i], strlen(texts[i]));
                refuse(&json, -EILSEQ);
        }
}

TEST(test_names)
{
        static const char *const names[] = { "a\"b", "a\\b", "\n", "\x7f", "\xc3\xa9" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                struct lkg_json json = LKG_JSON_INIT;

                lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
                lkg_json_u64(&json, names[i], 1);
                refuse(&json, -EINVAL);
        }
}

TEST(test_depth)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_json json = LKG_JSON_INIT;

        for (unsigned i = 0; i < LKG_JSON_DEPTH_MAX; i++)
                lkg_json_list(&json, NULL, i ? LKG_JSON_AROUND : LKG_JSON_PRETTY);
        for (unsigned i = 0; i < LKG_JSON_DEPTH_MAX; i++)
                lkg_json_end(&json);
        assert_int_equal(lkg_json_write(&json, &buf), 0);
        lkg_json_deinit(&json);
        for (unsigned i = 0; i <= LKG_JSON_DEPTH_MAX; i++)
                lkg_json_map(&json, i ? "m" : NULL, i ? LKG_JSON_AROUND : LKG_JSON_TIGHT);
        refuse(&json, -E2BIG);
}

TEST(test_size)
{
        LKG_CLEANUP(lkg_freep) char *text = malloc(1u << 20);
        struct lkg_json json = LKG_JSON_INIT;

        assert_non_null(text);
        memset(text, 'x', 1u << 20);
        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_text_n(&json, "too much", text, LKG_JSON_BYTES_MAX + 1);
        refuse(&json, -EFBIG);
        lkg_json_list(&json, NULL, LKG_JSON_TIGHT);
        for (unsigned i = 0; i < 64; i++)
                lkg_json_text_n(&json, NULL, text, 1u << 20);
        refuse(&json, -EFBIG);
}

/* The text is complete, or there is none: never an unwanted null, never a truncated text. */
TEST(test_no_memory)
{
#if HAVE_FAILURES
        static const enum lkg_json_layout whole[] = { LKG_JSON_TIGHT, LKG_JSON_PRETTY },
                                          inner[] = { LKG_JSON_AROUND, LKG_JSON_TIGHT, LKG_JSON_ROW,
                                                      LKG_JSON_LINES };
        void *volatile probe;

        n_left = 0;
        probe = malloc(1);
        n_left = -1;
        free(probe);
        if (probe) /* valgrind has replaced our allocator */
                return;
        for (unsigned i = 0; i < 2 * LKG_ARRAY_SIZE(whole) * LKG_ARRAY_SIZE(inner); i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf want = LKG_BUF_INIT;
                int r = -ENOMEM;

                assert_int_equal(write_built(whole[i & 1], inner[i >> 1 & 3], &want), 0);
                goes_on = i & 8;
                for (long n = 0; r < 0; n++) {
                        struct lkg_buf buf = LKG_BUF_INIT;

                        assert_true(n < 10000);
                        n_left = n;
                        r = write_built(whole[i & 1], inner[i >> 1 & 3], &buf);
                        n_left = -1;
                        assert_true(r == 0 || r == -ENOMEM);
                        assert_true(lkg_buf_failed(&buf) == (r < 0));
                        if (r == 0)
                                assert_string_equal(buf.data, want.data);
                        assert_true(n > 6 || r < 0); /* there are more than that, so they did fail */
                        lkg_buf_deinit(&buf);
                }
        }
#else
#endif
}

TEST(test_another_reader_reads_the_same)
{
        static const enum lkg_json_layout inner[] = { LKG_JSON_AROUND, LKG_JSON_TIGHT, LKG_JSON_ROW,
                                                      LKG_JSON_LINES };
        struct lkg_value *first = NULL;

        for (unsigned i = 0; i < 2 * LKG_ARRAY_SIZE(inner); i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
                struct lkg_report report = LKG_REPORT_INIT;
                struct lkg_value *value = NULL;

                assert_int_equal(write_built(i % 2 ? LKG_JSON_TIGHT : LKG_JSON_PRETTY, inner[i / 2], &buf),
                                 0);
                assert_int_equal(lkg_decode_json(buf.data, buf.size, 0, NULL, &report, &value), 0);
                if (first)
                        assert_true(lkg_value_equal(first, value));
                else
                        first = lkg_value_ref(value);
                lkg_value_unref(value);
                lkg_report_deinit(&report);
        }
        lkg_value_unref(first);
}

/* ---- reading a flat map back ---- */

static const struct lkg_json_change no_change = { NULL };

TEST(test_texts_of_a_flat_one)
{
        static const char text[] = "{\"a\":\"x\\u202e\\\"\\n/\",\"b\":5,\"f\":\"\\u0000\"}";
        LKG_CLEANUP(lkg_json_flat_freep) struct json_object *object = NULL;

        assert_int_equal(lkg_json_read_flat(text, strlen(text), &object), 0);
        assert_string_equal(lkg_json_get(object, "a"), "x\xe2\x80\xae\"\n/");
        assert_null(lkg_json_get(object, "b"));
        assert_null(lkg_json_get(object, "f"));
        assert_null(lkg_json_get(object, "z"));
}

TEST(test_changes_of_a_flat_one)
{
        static const struct lkg_json_change changes[] = {
                { "z", "new" }, { "a", "again" }, { "b", NULL }, { NULL }
        };
        LKG_CLEANUP(lkg_json_flat_freep) struct json_object *object = NULL;
        static const char text[] = "{\"a\":1,\"b\":2}";

        assert_int_equal(lkg_json_read_flat(text, strlen(text), &object), 0);
        for (unsigned i = 0; i < 2; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
                LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

                lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
                lkg_json_copy_flat(&json, i ? object : NULL, changes);
                lkg_json_end(&json);
                assert_int_equal(lkg_json_write(&json, &buf), 0);
                assert_string_equal(buf.data, i ? "{\"a\":\"again\",\"b\":2,\"z\":\"new\"}"
                                                : "{\"z\":\"new\",\"a\":\"again\"}");
        }
}

/* Read, and written again. */
static void say_flat(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_json_flat_freep) struct json_object *object = NULL;
        int r = lkg_json_read_flat(q->text, q->size, &object);

        if (r < 0) {
                assert_int_equal(r, -EBADMSG);
                assert_null(object);
                lkg_buf_puts(ret, "refused");
                return;
        }
        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_copy_flat(&json, object, &no_change);
        lkg_json_end(&json);
        assert_int_equal(lkg_json_write(&json, ret), 0);
}

static const struct operation operations[] = {
        { "layout", say_layout, 0 },
        { "text", say_text, 0 },
        { "flat", say_flat, 0 },
        { 0 },
};

ROWS(json_out, operations)
