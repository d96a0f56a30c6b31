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

/* ---- zero values ---- */

/* Puts @value under @name again, as coming from where @from does. */
static int put_copy_from(struct lkg_value *map, const char *name, const struct lkg_value *value,
                         const struct lkg_value *from)
{
        struct lkg_source *source = lkg_value_source_mut(from);
        unsigned line = lkg_value_line(from), column = lkg_value_column(from);
        const char *text;
        struct lkg_value *copy = NULL;
        size_t size;

        switch (lkg_value_type(value)) {
        case LKG_BOOL:
                copy = lkg_value_new_bool(lkg_value_bool(value), source, line, column);
                break;
        case LKG_NUMBER:
                copy = lkg_value_new_number(lkg_value_text(value, NULL), source, line, column);
                break;
        case LKG_STRING:
                text = lkg_value_text(value, &size);
                copy = lkg_value_new_string(text, size, source, line, column);
                break;
        case LKG_NULL:
        case LKG_LIST:
        case LKG_MAP:
        case _LKG_TYPE_MAX:
                return 0; /* of these there is nothing to say */
        }
        return copy ? lkg_map_set(map, name, strlen(name), copy) : -ENOMEM;
}

/* A typed document does not hold zero values, so an encoded one has them from nowhere. */
int lkg_effective_place_zeros(const struct lkg_node *node, const struct lkg_value *zeros,
                              const struct lkg_value *doc, struct lkg_value *effective)
{
        size_t at = 0;
        int r = 0;

        for (size_t m = 0; r >= 0 && m < node->n_members; m++) {
                const struct lkg_node *member = node->members[m];
                struct lkg_value *value = (struct lkg_value *)lkg_node_value(member, effective, &at);
                const struct lkg_value *said;

                if (value && member->class == LKG_CLASS_STRUCT && lkg_value_type(value) == LKG_MAP) {
                        r = lkg_effective_place_zeros(member, zeros, doc, value);
                        continue;
                }
                if (!value || lkg_value_source(value))
                        continue;
                said = lkg_map_get(zeros, member->field->path);
                if (!said && doc)
                        said = lkg_object_get(doc, member->field->path);
                if (said && lkg_value_type(said) != LKG_NULL)
                        r = put_copy_from(effective, member->name, value, said);
        }
        return r < 0 ? r : 0;
}

/* ---- rendering ---- */

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

void lkg_effective_render(const struct lkg_value *effective, struct lkg_buf *buf)
{
        lkg_render_commented(effective, put_comment, buf);
}
