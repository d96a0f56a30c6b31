/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effective document: checking one that has no layers any more, and showing where each value comes from.
 */
#include <lkg/documents.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "judge.h"

/* ---- judging ---- */

/* If a value of a wrong type was left out, no component would run with this result. */
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
        struct lkg_layer_info layer = { .role = LKG_LAYER_BASE, .name = "", .doc = doc, .whole = true };
        struct lkg_candidate candidate = { .state = LKG_CANDIDATE_VALID,
                                           .doc = lkg_value_ref(doc),
                                           .merged = doc,
                                           .base = doc,
                                           .report = LKG_REPORT_INIT,
                                           .layers = &layer,
                                           .n_layers = 1,
                                           .has_base = true };
        int r;

        config.lint = false;                /* the report is not used */
        r = lkg_judge_new(&config, &again); /* another judge: the first keeps its results for the layers */
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

/* Put @value under @name again, with the source of @from. */
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
                return 0; /* for these there is nothing to do */
        }
        return copy ? lkg_map_set(map, name, strlen(name), copy) : -ENOMEM;
}

static bool is_zero(const struct lkg_value *value)
{
        const char *text;

        switch (lkg_value_type(value)) {
        case LKG_BOOL:
                return !lkg_value_bool(value);
        case LKG_NUMBER:
        case LKG_STRING:
                text = lkg_value_text(value, NULL);
                return !*text || strcmp(text, "0") == 0 || strcmp(text, "0s") == 0;
        case LKG_NULL:
        case LKG_LIST:
        case LKG_MAP:
        case _LKG_TYPE_MAX:
                break;
        }
        return false;
}

/* The source that sets this zero value explicitly; NULL = none. */
static const struct lkg_value *who_said(const struct lkg_schema_node *member, const struct lkg_value *zeros,
                                        const struct lkg_value *doc, const struct lkg_value *value)
{
        const struct lkg_value *said;

        if (lkg_value_source(value) || !is_zero(value))
                return NULL;
        said = lkg_map_get(zeros, member->field->path);
        if (!said && doc)
                said = lkg_object_get(doc, member->field->path);
        return said && lkg_value_type(said) != LKG_NULL ? said : NULL;
}

/* @map: @before, or a copy of it that may be changed. @before is shared. */
static int place_member(const struct lkg_schema_node *member, const struct lkg_value *zeros,
                        const struct lkg_value *doc, const struct lkg_value *value,
                        const struct lkg_value *before, struct lkg_value **map)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *inner = NULL;
        const struct lkg_value *said = NULL;
        bool is_map = member->class == LKG_CLASS_STRUCT && lkg_value_type(value) == LKG_MAP;
        int r = 0;

        if (is_map) {
                inner = lkg_value_ref((struct lkg_value *)value);
                r = lkg_effective_place_zeros(member, zeros, doc, &inner);
        } else {
                said = who_said(member, zeros, doc, value);
        }
        if (r < 0 || (!said && inner == value) || (!said && !inner))
                return r;
        if (*map == before) {
                struct lkg_value *own = lkg_value_clone_shallow(before);

                if (!own)
                        return -ENOMEM;
                lkg_value_unref(*map);
                *map = own;
        }
        r = said ? put_copy_from(*map, member->name, value, said)
                 : lkg_map_set(*map, member->name, strlen(member->name), LKG_STEAL(inner));
        return r < 0 ? r : 0;
}

/* A typed document does not contain zero values, so an encoded one has them without a source. */
int lkg_effective_place_zeros(const struct lkg_schema_node *node, const struct lkg_value *zeros,
                              const struct lkg_value *doc, struct lkg_value **effective)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *before = lkg_value_ref(*effective);
        struct lkg_beside beside = { .map = before };
        int r = 0;

        for (size_t m = 0; r >= 0 && m < node->n_members; m++) {
                const struct lkg_value *value = lkg_node_value(node->members[m], &beside);

                if (value)
                        r = place_member(node->members[m], zeros, doc, value, before, effective);
        }
        return r;
}

/* ---- rendering ---- */

static void put_comment(const struct lkg_value *value, struct lkg_buf *buf)
{
        const struct lkg_source *source = lkg_value_source(value);
        const char *text = source && source->layer ? source->layer : "default";
        size_t size = strlen(text);

        lkg_buf_puts(buf, " # ");
        for (size_t i = 0; i < size;) {
                uint32_t c;
                size_t n = lkg_utf8_decode((const unsigned char *)text + i, size - i, &c);

                if (n > 0 && !lkg_is_hidden(c))
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
