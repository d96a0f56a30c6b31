/* SPDX-License-Identifier: Apache-2.0 */
/* Filled templates, and parts in a pipe. The archive and its masks are golden: session-report. */
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"
#include "fs/tool/report.h"

static void assert_text(struct lkg_buf *buf, const char *want)
{
        lkg_buf_putc(buf, '\0');
        assert_false(lkg_buf_failed(buf));
        assert_string_equal(buf->data, want);
        lkg_buf_deinit(buf);
}

static void fill(const char *template, const char *json, bool html, struct lkg_buf *buf)
{
        const struct lkg_value *value = lkg_tool_decode(json);

        assert_non_null(value);
        lkg_tool_fill(template, value, html, buf);
}

TEST(test_values_are_escaped)
{
        struct lkg_value *raw = lkg_tool_map();
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_tool_map_value(raw, "text",
                           lkg_tool_own(lkg_value_new_string(
                                   "<a href=\"x\" id='y'>&amp;\n\x1b[31m\xff\xe2\x80\xae", 34, NULL, 0, 0)));
        lkg_tool_fill("{{text}}", raw, true, &buf);
        assert_text(&buf,
                    "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;\n\\x1b[31m\\xff\\xe2\\x80\\xae");
        lkg_tool_fill("{{text}}", raw, false, &buf);
        assert_text(&buf, "<a href=\"x\" id='y'>&amp;\\x0a\\x1b[31m\\xff\\xe2\\x80\\xae");
        fill("{{a:prose}}", "{\"a\":\"run `lkgfs <x>`, or ` alone\"}", true, &buf);
        assert_text(&buf, "run <code>lkgfs &lt;x&gt;</code>, or ` alone");
        fill("{{a:prose}}", "{\"a\":\"``\"}", true, &buf);
        assert_text(&buf, "<code></code>");
        fill("{{a:time}}", "{\"a\":\"2026-01-02T03:04:05Z\"}", true, &buf);
        assert_text(&buf, "<time datetime=\"2026-01-02T03:04:05Z\"><span class=\"date\">2026-01-02</span> "
                          "03:04:05</time>");
        fill("{{a:time}}", "{\"a\":\"<b>\"}", true, &buf);
        assert_text(&buf, "<time datetime=\"&lt;b&gt;\">&lt;b&gt;</time>");
}

TEST(test_diff_lines_have_signs_and_tags)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        fill("{{a:diff}}", "{\"a\":\"--- a\\n+++ b\\n@@ -1 +1 @@\\n same\\n-<old>\\n+new\"}", true, &buf);
        assert_text(
                &buf,
                "<pre class=\"diff\" tabindex=\"0\"><b>--- a</b>\n<b>+++ b</b>\n<b>@@ -1 +1 @@</b>\n same\n"
                "<del>-&lt;old&gt;</del>\n<ins>+new</ins>\n</pre>\n");
}

TEST(test_sections)
{
        static const char json[] =
                "{\"list\":[{\"a\":1},{\"a\":2,\"b\":\"x\"}],\"words\":[\"u\",\"v\"],\"none\":[],"
                "\"b\":\"around\",\"map\":{\"m\":{\"k\":\"deep\"}},\"zero\":0,\"yes\":true,"
                "\"no\":false,\"empty\":\"\"}";
        static const struct {
                const char *template, *want;
        } rows[] = {
                { "plain } {text}", "plain } {text}" },
                { "{{#list}}{{,}}{{a}}{{b}}{{/}}.", "1around, 2x." },
                { "{{#words}}{{,}}{{.}}{{/}}", "u, v" },
                { "{{?words}}[{{#words}}{{.}}{{/}}]{{/}}{{?none}}never{{/}}{{!none}}none{{/}}", "[uv]none" },
                { "{{map/m/k}}{{map/x/k}}{{unknown}}", "deep" },
                { "{{#map/m}}{{k}}{{/}}{{#b}}<{{.}}>{{/}}", "deep<around>" },
                { "{{?zero}}0{{/}}{{?yes}}y{{/}}{{?no}}n{{/}}{{?empty}}e{{/}}{{!empty}}-{{/}}", "y-" },
                { "{{?no}}a{{?yes}}b{{/}}c{{/}}d", "d" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_buf buf = LKG_BUF_INIT;

                fill(rows[i].template, json, false, &buf);
                assert_text(&buf, rows[i].want);
        }
}

/* Whatever is cut off at the end, the parts before it are there. */
TEST(test_parts_through_a_pipe_that_is_cut)
{
        int memory = memfd_create("parts", MFD_CLOEXEC), saved = dup(STDOUT_FILENO);
        char data[512];
        ssize_t size;

        (void)fflush(stdout);
        assert_true(dup2(memory, STDOUT_FILENO) >= 0);
        lkg_parts_send("a", NULL, 0, -EINPROGRESS, 0);
        lkg_parts_send("a", "one", 3, 0, 7);
        lkg_parts_send("b/c", NULL, 0, -EINPROGRESS, 0);
        assert_true(dup2(saved, STDOUT_FILENO) >= 0);
        (void)close(saved);
        size = pread(memory, data, sizeof(data), 0);
        (void)close(memory);
        for (ssize_t n = 0; n <= size; n++) {
                struct lkg_parts parts = { 0 };
                const struct lkg_part *a, *b;

                lkg_parts_receive(&parts, data, (size_t)n);
                a = lkg_parts_find(&parts, "a");
                b = lkg_parts_find(&parts, "b/c");
                assert_true(parts.n <= 2);
                if (b) {
                        const struct lkg_value *tree = lkg_parts_tree(&parts);

                        assert_int_equal(n, size);
                        assert_int_equal(b->error, -EINPROGRESS);
                        assert_int_equal(a->modified_s, 7);
                        assert_string_equal(lkg_tool_word(lkg_parts_at(tree, "a"), "text"), "one");
                        assert_string_equal(lkg_tool_word(lkg_parts_at(tree, "a"), "since"),
                                            "1970-01-01T00:00:07Z");
                        assert_string_equal(lkg_tool_word(lkg_parts_at(lkg_parts_at(tree, "b"), "c"), "why"),
                                            "it gave no answer in time");
                        assert_int_equal(lkg_value_size(lkg_parts_at(tree, "unread")), 1);
                }
        }
}
