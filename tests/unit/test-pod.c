/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kubelet makes of manifests, rows/pod.rows: `MANIFEST ++ VERDICT => FINDINGS`. The verdict is upstream's
 * (tests/release/pod/record.py): accepted, or the stage that refuses, and the fields that validation names. Ours must be the same,
 * and name each of them, or what it is in, or something in it.
 */
#include <ctype.h>

#include <lkg/pod.h>
#include <lkg/schema.h>

#include "rows.h"

#define HEAD "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"

static const struct {
        const char *name, *before, *after;
} templates[] = {
        { "whole", "", "" },
        { "meta", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, ",
          "}\nspec: {containers: [{name: c, image: i}]}\n" },
        { "spec", HEAD "spec: {containers: [{name: c, image: i}], ", "}\n" },
        { "container", HEAD "spec: {volumes: [{name: v}], containers: [{name: c, image: i, ", "}]}\n" },
        { "init",
          HEAD "spec: {volumes: [{name: v}], containers: [{name: c, image: i}], initContainers: [{name: d, "
               "image: i, ",
          "}]}\n" },
        { "volume", HEAD "spec: {containers: [{name: c, image: i}], volumes: [{name: v, ", "}]}\n" },
};

static struct lkg_value *decode(const char *text, size_t size, struct lkg_report *report)
{
        struct lkg_source *source = lkg_source_new("manifest", "m");
        struct lkg_value *doc = NULL;

        (void)lkg_decode(text, size, lkg_detect_format(text, size), LKG_DECODE_TWICE, source, report, &doc);
        lkg_source_unref(source);
        return doc;
}

static struct lkg_value *expand(const struct question *q, const char *text, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf manifest = LKG_BUF_INIT;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(templates); i++)
                if (strcmp(templates[i].name, q->args[1]) == 0)
                        lkg_buf_printf(&manifest, "%s%s%s", templates[i].before, text, templates[i].after);
        return decode(lkg_buf_text(&manifest), manifest.size, report);
}

/* The path that an error is about, as upstream's fields are recorded: in lower case, without indexes. */
static void plain_path(const char *text, char *ret)
{
        bool inside = false;

        for (; *text && *text != ':'; text++) {
                inside = (inside || *text == '[') && *text != ']';
                if (!inside && *text != ']' && *text != '"')
                        *ret++ = (char)tolower((unsigned char)*text);
        }
        *ret = '\0';
}

static bool is_within(const char *path, const char *outer)
{
        size_t size = strlen(outer);

        return strncmp(path, outer, size) == 0 && (path[size] == '\0' || path[size] == '.');
}

static bool is_named(const struct lkg_report *report, const char *field)
{
        for (size_t i = 0; i < report->n_findings; i++) {
                char path[1024];

                assert_true(strlen(report->findings[i].text) < sizeof(path));
                plain_path(report->findings[i].text, path);
                if (report->findings[i].severity == LKG_ERROR &&
                    (is_within(path, field) || is_within(field, path)))
                        return true;
        }
        return false;
}

static unsigned n_differ;

static void say_pod(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = expand(q, q->parts[0], &report);
        LKG_CLEANUP(lkg_freep) char *verdict = strdup(q->parts[1]);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        char *rest = verdict, *word = strsep(&rest, " ");

        assert_int_equal(q->n_parts, 2);
        if (doc)
                lkg_pod_judge(doc, (unsigned)strtoul(q->args[2], NULL, 10), &report);
        text = lkg_report_format(&report, NULL);
        lkg_buf_puts(ret, text);
        if ((strcmp(word, "accepted") == 0) != !lkg_report_first_error(&report)) {
                print_error("%s: upstream says %s\n", q->parts[0], q->parts[1]);
                n_differ++;
        }
        while ((word = strsep(&rest, " "))) {
                if (is_named(&report, word))
                        continue;
                print_error("%s: nothing is said about %s\n", q->parts[0], word);
                n_differ++;
        }
}

static const struct operation operations[] = {
        { "pod", say_pod, 0 },
        { 0 },
};
ROWS(pod, operations)

TEST(test_upstream_agrees)
{
        assert_int_equal(n_differ, 0);
}
