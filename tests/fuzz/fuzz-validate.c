/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any documents as base and drop-ins of a component (the first one is the base; if it is empty, there is
 * none), through the whole judge. Judging twice gives the same result; a refusal has an error that says why;
 * the served document, read alone, gives the same effective document.
 */
#include "fuzz-document.h"
#include "fuzz-layers.h"
#include "tests/lib/candidate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LAYERS_MAX 4

/* A stack refuses layers of another kind or version, and those without one, before the judge sees them. */
static bool belongs(const struct lkg_value *doc, const struct made_layer *first)
{
        static const char *const names[] = { "apiVersion", "kind" };

        if (lkg_value_type(doc) != LKG_MAP)
                return false;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                const char *text = lkg_map_get_string(doc, names[i]);
                const char *other = first->doc ? lkg_map_get_string(first->doc, names[i]) : text;

                if (!text || strcmp(text, other) != 0)
                        return false;
        }
        return true;
}

static size_t decode_layers(const char *data, size_t size, struct made_layer layers[static LAYERS_MAX])
{
        const char *text;
        size_t text_size, n = 0, i = 0;

        for (; i < LAYERS_MAX && fuzz_next_document(&data, &size, &text, &text_size); i++) {
                struct lkg_report report = LKG_REPORT_INIT;
                char name[24];

                if (i == 0 && text_size == 0)
                        continue;
                (void)snprintf(name, sizeof(name), "%zu.conf", i);
                if (layer_decode(i == 0 ? LKG_LAYER_BASE : LKG_LAYER_DROPIN, name, text, text_size, &report,
                                 &layers[n]) == 0 &&
                    belongs(layers[n].doc, n ? &layers[0] : &layers[n]))
                        n++;
                else
                        layer_free(&layers[n]);
                lkg_report_deinit(&report);
        }
        return n;
}

static void check_report(const struct lkg_report *report)
{
        char *text = lkg_report_format(report, NULL);

        FUZZ_CHECK(text);
        for (size_t i = 0; i < report->n_findings; i++)
                FUZZ_CHECK(report->findings[i].code > 0 && *report->findings[i].text);
        free(text);
}

/* With a fresh judge. */
static void judge_once(const struct made_layer *layers, size_t n, bool lint, struct lkg_candidate *ret)
{
        struct lkg_judge_config config = { .host = { .cgroup = 2, .stated = true }, .lint = lint };
        struct lkg_judge *judge = NULL;

        judge = lkg_judge_new(&config);
        FUZZ_CHECK(candidate_build(layers, n, ret) == 0);
        lkg_judge_candidate(ret, judge);
        check_report(&ret->report);
        if (ret->schema && ret->report.n_severity[LKG_ERROR] == 0)
                FUZZ_CHECK(ret->effective);
        lkg_judge_free(judge);
}

static bool has_finding(const struct lkg_candidate *candidate, unsigned code)
{
        for (size_t i = 0; i < candidate->report.n_findings; i++)
                if (candidate->report.findings[i].code == code)
                        return true;
        return false;
}

/*
 * Of a drop-in's mergeDefaultEvictionSettings only the effect is served, which is none; @alone is consumed.
 */
static struct lkg_value *eviction_as(const struct lkg_value *effective, struct lkg_value *alone)
{
        static const char name[] = "mergeDefaultEvictionSettings";
        struct lkg_value *copy = lkg_value_clone_shallow(alone), *value = lkg_map_get(effective, name);

        if (value)
                FUZZ_CHECK(lkg_map_set(copy, name, strlen(name), lkg_value_ref(value)) >= 0);
        lkg_value_unref(alone);
        return copy;
}

static void check_served(const struct lkg_candidate *candidate)
{
        struct made_layer layer = { .role = LKG_LAYER_BASE, .name = "served", .file = "/e/served" };
        struct lkg_candidate alone;

        /* A drop-in may have more than three decimals, which one file cannot express; a note says so. */
        if (candidate->report.n_severity[LKG_ERROR] > 0 || !candidate->effective ||
            has_finding(candidate, 5028))
                return;
        layer.doc = candidate->doc;
        judge_once(&layer, 1, false, &alone);
        FUZZ_CHECK(alone.report.n_severity[LKG_ERROR] == 0);
        alone.effective = eviction_as(candidate->effective, alone.effective);
        FUZZ_CHECK(lkg_value_equal(candidate->effective, alone.effective));
        candidate_free(&alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct made_layer layers[LAYERS_MAX] = { 0 };
        size_t n = decode_layers((const char *)data, size, layers);
        struct lkg_candidate first, second;

        judge_once(layers, n, true, &first);
        judge_once(layers, n, true, &second);
        FUZZ_CHECK(first.report.n_findings == second.report.n_findings);
        FUZZ_CHECK((first.effective != NULL) == (second.effective != NULL));
        FUZZ_CHECK(!first.effective || lkg_value_equal(first.effective, second.effective));
        if (!has_finding(
                    &first,
                    5010)) /* a relative path in a drop-in is relative to another directory in one file */
                check_served(&first);
        candidate_free(&first);
        candidate_free(&second);
        for (size_t i = 0; i < n; i++)
                layer_free(&layers[i]);
        return 0;
}
