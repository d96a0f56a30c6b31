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

struct lkg_value *lkg_judge_document(const struct lkg_judge *judge, struct lkg_value *doc)
{
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *again = NULL;
        struct lkg_judge_config config = judge->config;
        struct lkg_value *ret;
        struct lkg_layer_info layer = { .role = LKG_LAYER_BASE, .name = "", .doc = doc, .whole = true };
        struct lkg_candidate candidate = { .state = LKG_CANDIDATE_VALID,
                                           .doc = lkg_value_ref(doc),
                                           .merged = doc,
                                           .base = doc,
                                           .report = LKG_REPORT_INIT,
                                           .layers = &layer,
                                           .n_layers = 1,
                                           .has_base = true };

        config.lint = false;            /* the report is not used */
        again = lkg_judge_new(&config); /* another judge: the first keeps its results for the layers */
        lkg_judge_candidate(&candidate, again);
        ret = lkg_has_misfit(&candidate.report) ? NULL : LKG_STEAL(candidate.effective);
        lkg_value_unref(candidate.effective);
        lkg_value_unref(candidate.doc);
        lkg_report_deinit(&candidate.report);
        return ret;
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
