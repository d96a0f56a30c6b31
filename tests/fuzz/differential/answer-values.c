/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, quantities, manifests of pods. */
#include "answer.h"

#include <lkg/pod.h>
#include <lkg/text.h>

#include "core/schema/typed.h"
#include "core/schema/values/values.h"

static const char *text_of(const struct lkg_value *request, size_t *ret_size)
{
        const struct lkg_value *text = lkg_map_get(request, "text");

        *ret_size = 0;
        return text && lkg_value_type(text) == LKG_STRING ? lkg_value_text(text, ret_size) : "";
}

void answer_duration(const struct answer *a)
{
        char canonical[LKG_DURATION_MAX];
        size_t size;
        const char *text = text_of(a->request, &size);
        int64_t ns = 0;

        if (lkg_duration_parse(text, size, &ns, NULL) < 0) {
                lkg_buf_puts(a->out, "\"ok\":false");
                return;
        }
        lkg_duration_format(ns, canonical);
        lkg_buf_printf(a->out, "\"ok\":true,\"out\":{\"ns\":%lld,\"canonical\":\"%s\"}", (long long)ns,
                       canonical);
}

void answer_quantity(const struct answer *a)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf canonical = LKG_BUF_INIT;
        size_t size;
        const char *text = text_of(a->request, &size);
        int r = lkg_quantity_parse(text, size, &quantity, NULL);

        if (r == -ENOMEM)
                answer_die("no memory");
        if (r < 0) {
                lkg_buf_puts(a->out, "\"ok\":false");
                return;
        }
        lkg_quantity_text(&quantity, (struct lkg_span){ text, size }, &canonical);
        lkg_buf_printf(a->out,
                       "\"ok\":true,\"out\":{\"sign\":%d,\"canonical\":", lkg_quantity_sign(&quantity));
        lkg_buf_json_string(a->out, canonical.data ? canonical.data : "", canonical.size);
        lkg_buf_putc(a->out, '}');
}

void answer_pod(const struct answer *a)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_source *source = lkg_source_new("manifest", "pod.yaml");
        size_t size;
        const char *text = text_of(a->request, &size);
        int r = lkg_decode(text, size, lkg_detect_format(text, size), LKG_DECODE_TWICE, source, &report,
                           &doc);

        lkg_source_unref(source);
        if (r == 0)
                lkg_pod_judge(doc, (unsigned)lkg_object_int(a->request, "release"), &report);
        lkg_buf_puts(a->out, lkg_report_first_error(&report) ? "\"ok\":false" : "\"ok\":true");
        answer_error(a->out, "error", &report);
}
