/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effective document: judging one that has no layers any more, and showing where each value comes from.
 */
#include <lkg/render.h>

#include "../config/internal.h"
#include "findings-codes.h"
#include "judge.h"

/* ---- judging ---- */

/* A value that did not fit was left out, so what the judge came to is nothing that anything would run with. */
static bool was_decoded(const struct lkg_report *report)
{
        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (f->severity == LKG_ERROR &&
                    (f->code == LKG_F_WRONG_TYPE || f->code == LKG_F_NOT_FITTING))
                        return false;
        }
        return true;
}

int lkg_judge_document(const struct lkg_judge *judge, struct lkg_value *doc, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *again = NULL;
        struct lkg_judge_config config = judge->config;
        struct lkg_layer_info layer = { .role = LKG_LAYER_BASE, .name = "", .doc = doc, .merged = doc };
        struct lkg_candidate candidate = { .state = LKG_CANDIDATE_VALID,
                                           .doc = lkg_value_ref(doc),
                                           .report = LKG_REPORT_INIT,
                                           .layers = &layer,
                                           .n_layers = 1,
                                           .has_base = true };
        int r;

        config.lint = false;                /* nobody reads the report */
        r = lkg_judge_new(&config, &again); /* another one: the first keeps what it knows about the layers */
        if (r == 0)
                r = lkg_judge_candidate(&candidate, again);
        if (r == 0)
                *ret = was_decoded(&candidate.report) ? LKG_STEAL(candidate.effective) : NULL;
        lkg_value_unref(candidate.effective);
        lkg_value_unref(candidate.doc);
        lkg_report_deinit(&candidate.report);
        return r;
}

/* ---- rendering ---- */

#define DEPTH_MAX 64u /* of maps in maps; no kind has more than a few */

/* What may stand in a comment: printable, and no line break of any YAML version. */
static bool is_printable(uint32_t c)
{
        return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c <= 0x9f) && c != 0x2028 && c != 0x2029 &&
               c != 0xfeff && c != 0xfffe && c != 0xffff;
}

static void put_comment(const struct lkg_value *value, struct lkg_buf *buf)
{
        const struct lkg_source *source = lkg_value_source(value);
        const char *text = source && source->layer ? source->layer : "default";
        size_t size = strlen(text);

        lkg_buf_puts(buf, " # ");
        for (size_t i = 0; i < size;) {
                uint32_t c;
                size_t n = lkg_utf8_decode((const unsigned char *)text + i, size - i, &c);

                if (n > 0 && is_printable(c))
                        lkg_buf_append(buf, text + i, n);
                else
                        lkg_buf_putc(buf, '?');
                i += n ? n : 1;
        }
}

static void put_indented(const char *line, size_t size, size_t indent, struct lkg_buf *buf)
{
        for (size_t i = 0; size > 0 && i < indent; i++)
                lkg_buf_putc(buf, ' ');
        lkg_buf_append(buf, line, size);
}

/*
 * One member as lkg_render() writes it in a map of its own, moved to its place, with the comment behind its first
 * line: behind a scalar, a key, or the sign of a block of text a comment is allowed and changes nothing.
 */
static void put_member(const char *key, size_t key_size, const struct lkg_value *value, bool mark,
                       size_t indent, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *one = lkg_value_new_map(NULL, 0, 0);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;

        if (!one || lkg_map_set(one, key, key_size, lkg_value_ref((struct lkg_value *)value)) < 0) {
                buf->failed = true;
                return;
        }
        lkg_render(one, LKG_FORMAT_YAML, &text);
        if (lkg_buf_failed(&text)) {
                buf->failed = true;
                return;
        }
        for (size_t at = 0; at < text.size;) {
                const char *line = text.data + at, *end = memchr(line, '\n', text.size - at);
                size_t n = end ? (size_t)(end - line) : text.size - at;

                put_indented(line, n, indent, buf);
                if (mark && at == 0)
                        put_comment(value, buf);
                lkg_buf_putc(buf, '\n');
                at += n + 1;
        }
}

/* The line of a key whose map follows, its members deeper by two. */
static void put_key(const char *key, size_t key_size, size_t indent, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *null = lkg_value_new_null(NULL, 0, 0);
        size_t start = buf->size;

        if (!null) {
                buf->failed = true;
                return;
        }
        put_member(key, key_size, null, false, indent, buf);
        if (lkg_buf_failed(buf) || buf->size - start < strlen(" null\n"))
                return;
        buf->size -= strlen(" null\n");
        lkg_buf_putc(buf, '\n');
}

static void put_map(const struct lkg_value *map, size_t indent, unsigned depth, struct lkg_buf *buf)
{
        for (size_t i = 0; i < lkg_value_size(map) && !lkg_buf_failed(buf); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(map, i, &key, &size);

                if (lkg_value_type(value) != LKG_MAP || lkg_value_size(value) == 0 || depth == DEPTH_MAX) {
                        put_member(key, size, value, true, indent, buf);
                        continue;
                }
                put_key(key, size, indent, buf);
                put_map(value, indent + 2, depth + 1, buf);
        }
}

void lkg_effective_render(const struct lkg_value *effective, struct lkg_buf *buf)
{
        if (lkg_value_type(effective) == LKG_MAP && lkg_value_size(effective) > 0)
                put_map(effective, 0, 0, buf);
        else
                lkg_render(effective, LKG_FORMAT_YAML, buf);
}
