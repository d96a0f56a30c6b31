/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents as text and back: what is read, merged, patched, masked, rendered and compared, in rows/documents.rows; and what no row
 * can say. Rule: docs/specification.md 3.3, 3.4, 2.13.
 */
#include <yaml.h>

#include <lkg/limits.h>
#include <lkg/schema.h>

#include "config-helpers.h"
#include "rows.h"

#include "core/layers/layers.h"

static void put_findings(const struct lkg_report *report, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_report_format(report, NULL);

        assert_non_null(text);
        lkg_buf_puts(ret, text);
}

static unsigned flags_of(const struct question *q)
{
        return (rows_has(q, "strict") ? LKG_DECODE_STRICT : 0) |
               (rows_has(q, "untyped") ? LKG_DECODE_UNTYPED : 0) |
               (rows_has(q, "twice") ? LKG_DECODE_TWICE : 0);
}

/* The value with whatever was said about it; only the findings where there is none. */
static void say_read(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        enum lkg_format format = strcmp(q->args[0], "json") == 0 ? LKG_FORMAT_JSON : LKG_FORMAT_YAML;
        struct lkg_source *source = lkg_source_new("layer", "f");
        int r;

        if (strcmp(q->args[0], "patch-file") == 0)
                r = lkg_decode_patch(q->text, q->size, flags_of(q), source, &report, &format, &value);
        else
                r = lkg_decode(q->text, q->size, format, flags_of(q), source, &report, &value);
        assert_int_equal(r, value ? 0 : -EBADMSG);
        assert_true(value || report.n_severity[LKG_ERROR] > 0);
        if (value && rows_has(q, "origin"))
                lkg_render_origin(value, ret);
        else if (value)
                lkg_render_json_compact(value, ret);
        if (value && strcmp(q->args[0], "patch-file") == 0)
                lkg_buf_puts(ret, format == LKG_FORMAT_JSON ? " of JSON" : " of YAML");
        if (value && report.n_findings > 0)
                lkg_buf_puts(ret, "; ");
        put_findings(&report, ret);
        lkg_source_unref(source);
}

static void say_format(const struct question *q, struct lkg_buf *ret)
{
        lkg_buf_puts(ret, lkg_detect_format(q->text, q->size) == LKG_FORMAT_JSON ? "json" : "yaml");
}

static void put_event(const yaml_event_t *event, struct lkg_buf *buf)
{
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                if (event->data.scalar.tag)
                        lkg_buf_printf(buf, "<%s>", (const char *)event->data.scalar.tag);
                lkg_buf_printf(buf, "%s ", (const char *)event->data.scalar.value);
                break;
        case YAML_ALIAS_EVENT:
                lkg_buf_printf(buf, "*%s ", (const char *)event->data.alias.anchor);
                break;
        case YAML_MAPPING_START_EVENT:
        case YAML_SEQUENCE_START_EVENT:
                lkg_buf_putc(buf, event->type == YAML_MAPPING_START_EVENT ? '{' : '[');
                break;
        case YAML_MAPPING_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
                lkg_buf_putc(buf, event->type == YAML_MAPPING_END_EVENT ? '}' : ']');
                break;
        default:
                break;
        }
}

/* What libyaml reads, in its events. A row that fails with another libyaml is a column of docs/decisions/008 that has changed. */
static void say_libyaml(const struct question *q, struct lkg_buf *ret)
{
        yaml_parser_t parser;
        yaml_event_type_t type = YAML_NO_EVENT;

        assert_int_equal(yaml_parser_initialize(&parser), 1);
        yaml_parser_set_input_string(&parser, (const unsigned char *)q->text, q->size);
        while (type != YAML_STREAM_END_EVENT) {
                yaml_event_t event;

                if (!yaml_parser_parse(&parser, &event)) {
                        lkg_buf_reset(ret);
                        lkg_buf_puts(ret, "refused");
                        break;
                }
                type = event.type;
                put_event(&event, ret);
                yaml_event_delete(&event);
        }
        yaml_parser_delete(&parser);
}

/* One layer of origin and merge rows, named after its place: base, one, two. */
static struct lkg_value *part_of(const struct question *q, size_t i)
{
        static const char *const names[] = { "base", "one", "two" };
        struct lkg_source *source = lkg_source_new(names[i], names[i]);
        struct lkg_value *value = NULL;

        if (lkg_decode(q->parts[i], strlen(q->parts[i]), lkg_detect_format(q->parts[i], strlen(q->parts[i])),
                       0, source, NULL, &value) < 0)
                fail_msg("%s", q->parts[i]);
        lkg_source_unref(source);
        return value;
}

static int patch(const struct question *q, const struct lkg_value *base, const struct lkg_value *change,
                 struct lkg_report *report, struct lkg_value **ret)
{
        const char *kind = rows_arg(q, "kind", NULL);
        const struct lkg_schema *schema = NULL;
        struct lkg_merge_type type;

        if (rows_has(q, "operations"))
                return lkg_patch_json(base, change, report, ret);
        if (rows_has(q, "merge")) {
                *ret = lkg_merge_json(base, change);
                return 0;
        }
        if (!kind)
                return lkg_merge_strategic(base, change, report, ret);
        assert_int_equal(lkg_schema_get(kind, NULL, 0, &schema), 0);
        type = lkg_schema_merge_type(schema);
        return lkg_merge_strategic_typed(base, change, &type, report, ret);
}

/*
 * All parts merged one over the other, and what was said of it. An input is never changed; a JSON merge patch that is applied again
 * changes nothing, or it is said.
 */
static void say_merged(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *running = part_of(q, 0);

        for (size_t i = 1; i < q->n_parts; i++) {
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *change = part_of(q, i);
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
                const char *before = json(running);
                int r = patch(q, running, change, &report, &merged);

                assert_string_equal(json(running), before);
                assert_int_equal(r, merged ? 0 : -EBADMSG);
                lkg_value_unref(running);
                running = lkg_value_ref(merged);
                if (!running)
                        break;
                if (rows_has(q, "merge")) {
                        LKG_CLEANUP(lkg_value_unrefp)
                        struct lkg_value *twice = lkg_merge_json(merged, change);

                        if (!lkg_value_equal(merged, twice))
                                lkg_buf_printf(ret, "applied again %s; ", json(twice));
                }
        }
        if (running && rows_has(q, "origin"))
                lkg_render_origin(running, ret);
        else if (running)
                lkg_render_json_compact(running, ret);
        if (running && report.n_findings > 0)
                lkg_buf_puts(ret, "; ");
        put_findings(&report, ret);
        lkg_value_unref(running);
}

static void comment(const struct lkg_value *value, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, " # %s", lkg_type_name(lkg_value_type(value)));
}

/* A document in JSON as canonical text, which is read back as the same. */
static void say_rendered(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *back = NULL;

        assert_int_equal(lkg_decode_json(q->text, q->size, 0, NULL, NULL, &value), 0);
        if (rows_has(q, "commented")) {
                lkg_render_commented(value, comment, ret);
                return;
        }
        lkg_render(value, rows_has(q, "json") ? LKG_FORMAT_JSON : LKG_FORMAT_YAML, ret);
        assert_int_equal(lkg_decode(ret->data, ret->size,
                                    rows_has(q, "json") ? LKG_FORMAT_JSON : LKG_FORMAT_YAML,
                                    LKG_DECODE_STRICT, NULL, NULL, &back),
                         0);
        assert_true(lkg_value_equal(value, back));
}

/* Is what is shown the same as what it was made from? */
static void say_masked(const struct question *q, struct lkg_buf *ret)
{
        bool masked = false;

        if (rows_has(q, "text"))
                masked = lkg_mask_text(q->text, q->size, ret);
        else if (rows_has(q, "url"))
                masked = lkg_mask_url(q->text, q->size, ret);
        else if (rows_has(q, "name"))
                masked = lkg_mask_name(q->text, q->size, rows_has(q, "below-a-secret"), ret);
        else
                fail_msg("mask what?");
        assert_int_equal(masked,
                         ret->size != q->size || (q->size && memcmp(ret->data, q->text, q->size) != 0));
}

static int no_secret(const struct lkg_leaf *leaf, void *userdata)
{
        (void)userdata;
        for (const struct lkg_value *v = leaf->value; v; v = lkg_value_shadowed(v))
                assert_null(strstr(json(v), "s3cret"));
        return 0;
}

/* A document without its secrets, whatever it replaced included. */
static void say_masked_tree(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = part_of(q, 0);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;

        if (q->n_parts > 1) {
                struct lkg_value *over = part_of(q, 1), *merged = lkg_merge_json(value, over);

                lkg_value_unref(value);
                lkg_value_unref(over);
                value = merged;
        }
        masked = lkg_mask_secrets(value);
        assert_int_equal(lkg_value_walk(masked, no_secret, NULL), 0);
        lkg_render_json_compact(masked, ret);
        lkg_buf_puts(ret, masked == value ? " (shared)" : "");
}

static void say_secrecy(const struct question *q, struct lkg_buf *ret)
{
        static const char *const words[] = {
                [LKG_PUBLIC] = "public", [LKG_SECRET] = "secret", [LKG_SECRET_URL] = "a URL"
        };

        lkg_buf_puts(ret, words[lkg_pointer_secrecy(q->text)]);
}

static void say_quoted(const struct question *q, struct lkg_buf *ret)
{
        char quoted[5 * 64 + 8];

        lkg_buf_puts(ret, lkg_quote(q->text, q->size, quoted));
}

static void say_equal(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *a = part_of(q, 0);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *b = part_of(q, 1);

        assert_int_equal(lkg_value_equal(a, b), lkg_value_equal(b, a));
        lkg_buf_puts(ret, lkg_value_equal(a, b) ? "equal" : "different");
}

/* A document and a pointer into it: the value, and where it stands. */
static void say_pointed_at(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *root = part_of(q, 0);
        const struct lkg_value *value = lkg_value_get_pointer(root, q->parts[1]);

        if (value)
                lkg_buf_printf(ret, "%s at %u:%u", json(value), lkg_value_line(value),
                               lkg_value_column(value));
        else
                lkg_buf_puts(ret, "nothing");
}

static void say_diff(const struct question *q, struct lkg_buf *ret)
{
        int r = lkg_render_diff("a", q->parts[0], strlen(q->parts[0]), "b", q->parts[1], strlen(q->parts[1]),
                                ret);

        assert_int_equal(r, strcmp(q->parts[0], q->parts[1]) != 0);
}

static void say_patch_name(const struct question *q, struct lkg_buf *ret)
{
        static const char *const types[] = {
                [LKG_PATCH_STRATEGIC] = "strategic", [LKG_PATCH_MERGE] = "merge", [LKG_PATCH_JSON] = "json"
        };
        enum lkg_patch_type type = LKG_PATCH_STRATEGIC;
        int r = lkg_patch_name(q->text, "kubeletconfiguration", &type);

        lkg_buf_puts(ret, r > 0 ? types[type] : r == 0 ? "another file" : "wrong");
}

/* A document, and a text that somebody wrote for it. */
static void say_readback(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        struct lkg_error err = { 0 };
        int r;

        assert_int_equal(lkg_decode_json(q->parts[0], strlen(q->parts[0]),
                                         rows_has(q, "as-written") ? 0 : LKG_DECODE_UNTYPED, NULL, NULL,
                                         &value),
                         0);
        r = lkg_readback(value, rows_has(q, "json") ? LKG_FORMAT_JSON : LKG_FORMAT_YAML, q->parts[1],
                         strlen(q->parts[1]), &err);
        lkg_buf_puts(ret, r == 0 ? "the same" : r > 0 ? "not compared" : err.message);
}

static const struct operation operations[] = {
        { "yaml", say_read },
        { "json", say_read },
        { "patch-file", say_read },
        { "format", say_format },
        { "libyaml", say_libyaml },
        { "merged", say_merged },
        { "rendered", say_rendered },
        { "masked", say_masked },
        { "masked-tree", say_masked_tree },
        { "secrecy", say_secrecy },
        { "quoted", say_quoted },
        { "equal", say_equal },
        { "pointed-at", say_pointed_at },
        { "diff", say_diff },
        { "patch-name", say_patch_name },
        { "readback", say_readback },
        { 0 },
};

ROWS(documents, operations)

/* Every level doubles the size: 2^60 values when expanded. Rule: docs/specification.md 3.8. */
TEST(test_alias_bomb)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        const char *got;

        lkg_buf_puts(&buf, "a0: &a0 [x, x]\n");
        for (unsigned i = 1; i <= 60; i++)
                lkg_buf_printf(&buf, "a%u: &a%u [*a%u, *a%u]\n", i, i, i - 1, i - 1);
        got = answer(buf.data, buf.size, LKG_FORMAT_YAML, 0);
        assert_non_null(strstr(got, "mostly of aliases"));
        assert_non_null(strstr(got, "[LKG1004]"));
        lkg_buf_deinit(&buf);
        /* Many aliases of a small value are fine. */
        lkg_buf_puts(&buf, "a: &a [x]\nl:\n");
        for (unsigned i = 0; i < 2000; i++)
                lkg_buf_puts(&buf, "- *a\n");
        assert_true(answer(buf.data, buf.size, LKG_FORMAT_YAML, 0)[0] == '{');
        lkg_buf_deinit(&buf);
}
