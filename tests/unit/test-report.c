/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, findings and the buffer they are written to; texts of others are in rows/report.rows. */

#include <lkg/text.h>
#include <lkg/base.h>
#include <lkg/limits.h>

#include "rows.h"

static void say_hidden(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *copy = strdup(q->text);

        lkg_buf_shown(ret, q->text, q->size);
        lkg_blank_hidden(copy, strlen(copy), '?');
        lkg_buf_printf(ret, " | %s | ", copy);
        lkg_buf_json_string(ret, q->text, q->size);
}

static void say_mended(const struct question *q, struct lkg_buf *ret)
{
        char text[32];

        (void)snprintf(text, sizeof(text), "%s", q->text);
        lkg_utf8_mend(text);
        lkg_buf_puts(ret, text);
}

/* Rule: docs/specification.md 2.13. */
static void say_quoted(const struct question *q, struct lkg_buf *ret)
{
        char buf[5 * 64 + 8];

        lkg_buf_puts(ret, lkg_quote(q->text, q->size, buf));
}

static const struct operation operations[] = {
        { "hidden", say_hidden, 0 },
        { "mend", say_mended, 0 },
        { "quote", say_quoted, 0 },
        { 0 },
};

ROWS(report, operations)

TEST(test_error)
{
        const struct lkg_where where = { .file = "a.conf", .line = 3, .column = 7 };
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_error_set(&err, -ENOENT, NULL, "open layer '%s'", "x"), -ENOENT);
        assert_string_equal(err.message, "open layer 'x': No such file or directory");
        assert_int_equal(lkg_error_set(&err, -EINVAL, &where, "want a list."), -EINVAL);
        assert_string_equal(err.message, "a.conf:3:7: want a list.");
        assert_int_equal(lkg_error_wrap(&err, -EINVAL, "load %d", 5), -EINVAL);
        assert_string_equal(err.message, "load 5: a.conf:3:7: want a list.");
        assert_int_equal(lkg_error_set(NULL, -EIO, NULL, "nobody listens"), -EIO);
        for (int i = 0; i < 400; i++)
                (void)lkg_error_wrap(&err, -EINVAL, "again");
        assert_true(strlen(err.message) < sizeof(err.message));
}

TEST(test_report_lines)
{
        const struct lkg_where where = { .file = "d/10.conf", .line = 14, .column = 3 };
        struct lkg_report report = LKG_REPORT_INIT, copy = LKG_REPORT_INIT;
        size_t size;
        char *text;

        lkg_report_add(&report, LKG_ERROR, 1001, &where, "field %s", "maxPods");
        lkg_report_add(&report, LKG_NOTE, 2001, NULL, "no place");
        lkg_report_append(&copy, &report);
        lkg_report_deinit(&report);
        text = lkg_report_format(&copy, &size);
        assert_non_null(text);
        assert_non_null(strstr(text, "d/10.conf:14:3: error: field maxPods [LKG1001]\n"));
        assert_non_null(strstr(text, "note: no place [LKG2001]\n"));
        assert_int_equal(size, strlen(text));
        assert_int_equal(copy.n_severity[LKG_ERROR], 1);
        free(text);
        lkg_report_deinit(&copy);
}

TEST(test_findings_are_text_whatever_a_name_is)
{
        const struct lkg_where where = { .file = "d/\xff\xc3\xa9.conf" };
        struct lkg_report report = LKG_REPORT_INIT;
        char *text;

        lkg_report_add(&report, LKG_NOTE, 2001, &where, "h\xc3\xa9\xe2\x82 \xed\xa0\x80\n");
        text = lkg_report_format(&report, NULL);
        assert_string_equal(
                text, "d/\\xff\xc3\xa9.conf: note: h\xc3\xa9\\xe2\\x82 \\xed\\xa0\\x80\\x0a [LKG2001]\n");
        free(text);
        lkg_report_deinit(&report);
}

TEST(test_report_is_bounded)
{
        struct lkg_report report = LKG_REPORT_INIT;

        for (unsigned i = 0; i < LKG_FINDINGS_MAX + 5; i++)
                lkg_report_add(&report, LKG_WARNING, 2001, NULL, "finding %u", i);
        assert_int_equal(report.n_findings, LKG_FINDINGS_MAX);
        assert_int_equal(report.n_dropped, 5);
        lkg_report_deinit(&report);
}

/* However many warnings there are, the reason for a refusal is listed. */
TEST(test_an_error_finds_room)
{
        struct lkg_report report = LKG_REPORT_INIT, copy = LKG_REPORT_INIT;

        lkg_report_add(&report, LKG_ERROR, 1001, NULL, "first");
        for (unsigned i = 0; i < LKG_FINDINGS_MAX + 5; i++)
                lkg_report_add(&report, LKG_WARNING, 2001, NULL, "finding %u", i);
        lkg_report_add(&report, LKG_ERROR, 1002, NULL, "last");
        assert_int_equal(report.n_findings, LKG_FINDINGS_MAX);
        assert_string_equal(report.findings[0].text, "first");
        assert_string_equal(report.findings[LKG_FINDINGS_MAX - 1].text, "last");
        assert_int_equal(report.n_dropped, 7);
        assert_int_equal(report.n_severity[LKG_WARNING], LKG_FINDINGS_MAX + 5);
        for (unsigned i = 0; i < 2 * LKG_FINDINGS_MAX; i++)
                lkg_report_add(&copy, LKG_WARNING, 2001, NULL, "finding %u", i);
        lkg_report_append(&copy, &report);
        assert_string_equal(copy.findings[LKG_FINDINGS_MAX - 1].text, "last");
        assert_int_equal(copy.n_severity[LKG_ERROR], 2);
        for (unsigned i = 0; i < 2 * LKG_FINDINGS_MAX; i++)
                lkg_report_add(&copy, LKG_ERROR, 1003, NULL, "error %u", i);
        assert_int_equal(copy.n_findings, LKG_FINDINGS_MAX);
        assert_int_equal(copy.n_severity[LKG_ERROR], 2 * LKG_FINDINGS_MAX + 2);
        lkg_report_deinit(&report);
        lkg_report_deinit(&copy);
}

/* Every code is unique, has a description and a remedy. */
TEST(test_finding_kinds)
{
        assert_true(lkg_n_finding_kinds > 0);
        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                assert_non_null(lkg_finding_kinds[i].title);
                assert_true(strlen(lkg_finding_kinds[i].advice) > 10);
                if (i > 0)
                        assert_true(lkg_finding_kinds[i].code > lkg_finding_kinds[i - 1].code);
        }
}

/*
 * Errors, warnings, notes; each by file and line; the notes of one code beyond three are a number.
 * Rule: docs/specification.md 2.10.
 */
TEST(test_order_and_folding)
{
        static const struct {
                enum lkg_severity severity;
                unsigned code, line;
                const char *file;
        } rows[] = {
                { LKG_NOTE, 5008, 4, "b" }, { LKG_NOTE, 5008, 1, "a" },     { LKG_WARNING, 5003, 9, "a" },
                { LKG_NOTE, 5008, 2, "a" }, { LKG_WARNING, 5003, 0, NULL }, { LKG_NOTE, 5012, 3, "a" },
                { LKG_NOTE, 5008, 3, "b" }, { LKG_ERROR, 5001, 10, "b" },   { LKG_ERROR, 5001, 9, "b" },
                { LKG_NOTE, 5008, 9, "b" },
        };

        for (int all = 0; all < 2; all++) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
                LKG_CLEANUP(lkg_freep) char *text = NULL;

                for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                        lkg_report_add(&report, rows[i].severity, rows[i].code,
                                       &(struct lkg_where){ rows[i].file, rows[i].line, 1 }, "t");
                lkg_report_arrange(&report, all);
                text = lkg_report_format(&report, NULL);
                assert_string_equal(
                        text, all ? "b:9:1: error: t [LKG5001]\nb:10:1: error: t [LKG5001]\n"
                                    "warning: t [LKG5003]\na:9:1: warning: t [LKG5003]\n"
                                    "a:1:1: note: t [LKG5008]\na:2:1: note: t [LKG5008]\n"
                                    "a:3:1: note: t [LKG5012]\nb:3:1: note: t [LKG5008]\n"
                                    "b:4:1: note: t [LKG5008]\nb:9:1: note: t [LKG5008]\n"
                                  : "b:9:1: error: t [LKG5001]\nb:10:1: error: t [LKG5001]\n"
                                    "warning: t [LKG5003]\na:9:1: warning: t [LKG5003]\n"
                                    "a:1:1: note: t [LKG5008]\na:2:1: note: t [LKG5008]\n"
                                    "a:3:1: note: t [LKG5012]\nb:3:1: note: t [LKG5008]\n"
                                    "b:4:1: note: 2 more notes of this kind, from here on; `lkgfs check "
                                    "--all` lists them [LKG5008]\n");
                assert_int_equal(report.n_folded, all ? 0 : 1);
                assert_int_equal(report.n_severity[LKG_NOTE], 6);
        }
}
