/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effective document: checking one that has no layers any more, and showing where each value comes from.
 */
#include <lkg/documents.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "judge.h"
#include "typed.h"

/* ---- judging ---- */

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
                *ret = lkg_has_misfit(&candidate.report) ? NULL : LKG_STEAL(candidate.effective);
        lkg_value_unref(candidate.effective);
        lkg_value_unref(candidate.doc);
        lkg_report_deinit(&candidate.report);
        return r;
}

/* ---- zero values ---- */

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

struct said {
        const struct lkg_value *zeros, *doc;
};

/* What sets this zero value explicitly; NULL = nothing. */
static const struct lkg_value *who_said(const struct lkg_schema_node *member, const struct said *s,
                                        const struct lkg_value *value)
{
        const struct lkg_value *said;

        if (lkg_value_source(value) || !is_zero(value))
                return NULL;
        said = lkg_map_get(s->zeros, member->field->path);
        if (!said && s->doc)
                said = lkg_object_get(s->doc, member->field->path);
        return said && lkg_value_type(said) != LKG_NULL ? said : NULL;
}

static int place_member(const struct lkg_schema_node *member, const struct lkg_value *was,
                        const void *userdata, struct lkg_value **ret)
{
        const struct lkg_value *said;

        if (!was)
                return 0;
        if (member->class == LKG_CLASS_STRUCT && lkg_value_type(was) == LKG_MAP)
                return lkg_typed_rebuild(member, was, place_member, userdata, ret);
        said = who_said(member, userdata, was);
        if (said)
                return lkg_typed_zero(member, said, ret);
        *ret = lkg_value_ref((struct lkg_value *)was);
        return 0;
}

/* A typed document does not contain zero values, so an encoded one has them without a source. */
int lkg_effective_place_zeros(const struct lkg_schema_node *root, const struct lkg_value *zeros,
                              const struct lkg_value *doc, struct lkg_value **effective)
{
        const struct said said = { zeros, doc };
        struct lkg_value *placed = NULL;
        int r = lkg_typed_rebuild(root, *effective, place_member, &said, &placed);

        if (r < 0)
                return r;
        lkg_value_unref(*effective);
        *effective = placed;
        return 0;
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
