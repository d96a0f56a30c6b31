/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a remote configuration may not set, and what it may only set to the base's value: rows/guard.rows.
 * Rule: docs/specification.md 4.13.
 */

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/objects.h>
#include <lkg/schema.h>

#include "rows.h"

static struct lkg_value *value_of(const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_source *source = lkg_source_new("remote", "cm");
        struct lkg_value *value = NULL;

        if (lkg_decode(text, strlen(text), lkg_detect_format(text, strlen(text)), 0, source, &report,
                       &value) < 0)
                fail_msg("%s", text);
        lkg_source_unref(source);
        lkg_report_deinit(&report);
        return value;
}

/* Findings of @guard as one text; the caller frees it. */
static char *findings(const struct lkg_guard *guard, const char *remote, const char *base)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *r = value_of(remote);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *b = base ? value_of(base) : NULL;
        int n = lkg_guard_check(guard, r, b, &report);

        assert_int_equal(n, report.n_findings);
        assert_int_equal(n, report.n_severity[LKG_ERROR]);
        return lkg_report_format(&report, NULL);
}

/* `a.b[].c` as a document that has it, and nothing else: {"a":{"b":[{"c":null}]}} */
static void document_with(const char *path, char ret[static 256])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf head = LKG_BUF_INIT;
        char tail[32] = "", before[32];
        struct lkg_span rest = lkg_span(path, strlen(path)), part;

        while (lkg_span_next(&rest, '.', &part)) {
                bool list = part.size > 2 && part.data[part.size - 1] == ']';

                lkg_buf_printf(&head, "{\"%.*s\":%s", (int)(part.size - (list ? 2 : 0)), part.data,
                               list ? "[" : "");
                memcpy(before, tail, sizeof(before));
                (void)snprintf(tail, sizeof(tail), "%s}%.20s", list ? "]" : "", before);
        }
        (void)snprintf(ret, 256, "%snull%s", head.data, tail);
}

/* `a,b` as a list. */
static size_t names(const char *text, char copy[static 256], const char *ret[static ROWS_PARTS_MAX])
{
        (void)snprintf(copy, 256, "%s", text);
        return *text ? rows_split(copy, ",", ret) : 0;
}

static void say(const struct question *q, const char *remote, const char *base, struct lkg_buf *ret)
{
        const char *deny[ROWS_PARTS_MAX], *pinned[ROWS_PARTS_MAX];
        char first[256], second[256];
        const struct lkg_guard guard = { .deny = deny,
                                         .n_deny = names(rows_arg(q, "deny", ""), first, deny),
                                         .pinned = pinned,
                                         .n_pinned = names(rows_arg(q, "pinned", ""), second, pinned),
                                         .hardened = rows_has(q, "hardened") };
        LKG_CLEANUP(lkg_freep) char *text = findings(&guard, remote, base);

        lkg_buf_puts(ret, text);
}

/* Findings about a document, maybe over a base. */
static void say_findings(const struct question *q, struct lkg_buf *ret)
{
        say(q, q->parts[0], q->n_parts > 1 ? q->parts[1] : NULL, ret);
}

static void say_of_path(const struct question *q, struct lkg_buf *ret)
{
        char remote[256];

        document_with(q->text, remote);
        say(q, remote, NULL, ret);
}

static const struct operation operations[] = { { "guard", say_findings, 0 },
                                               { "path", say_of_path, 0 },
                                               { 0 } };

ROWS(guard, operations)

/* ---- what no row can say ---- */

static void assert_denied(const char *path, const char *guard)
{
        const struct lkg_guard hardened = { .hardened = true }, none = { .hardened = false };
        char remote[256], want[200];
        char *text;

        document_with(path, remote);
        text = findings(&hardened, remote, NULL);
        (void)snprintf(want, sizeof(want), "(guard.profile hardened: %s)", guard);
        if (!strstr(text, want) && !strstr(text, "(guard.profile hardened: authentication: "))
                fail_msg("%s: %s", remote, text);
        free(text);
        text = findings(&none, remote, NULL);
        assert_string_equal(text, "");
        free(text);
}

TEST(test_hardened_is_the_column_of_the_tables)
{
        const struct lkg_guard hardened = { .hardened = true };
        char remote[256], *text;

        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];

                        if (strcmp(field->guard, LKG_GUARD_NOTHING) != 0) {
                                assert_denied(field->path, field->guard);
                                continue;
                        }
                        document_with(field->path, remote);
                        text = findings(&hardened, remote, NULL);
                        assert_string_equal(text, "");
                        free(text);
                }
        for (size_t i = 0; i < lkg_n_guarded_keys; i++)
                assert_denied(lkg_guarded_keys[i].path, lkg_guarded_keys[i].guard);
}

TEST(test_maps_are_judged_to_the_end)
{
        static const char *const rules[] = { "a" };
        const struct lkg_guard pin = { .pinned = rules, .n_pinned = 1 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf maps = LKG_BUF_INIT;
        char *text;

        for (size_t i = 0; i < 900; i++)
                lkg_buf_puts(&maps, "{\"a\":");
        lkg_buf_puts(&maps, "1");
        for (size_t i = 0; i < 900; i++)
                lkg_buf_puts(&maps, "}");
        text = findings(&pin, maps.data, maps.data);
        assert_string_equal(text, "");
        free(text);
        text = findings(&pin, maps.data, "{\"a\":{\"a\":{}}}");
        assert_true(*text);
        free(text);
}
