/* SPDX-License-Identifier: Apache-2.0 */
/* A valid candidate is checked by a second reader before it is published. Rule: docs/specification.md 2.2. */
#include "config-helpers.h"
#include <lkg/store.h>

#include <lkg/schema.h>

static void judge_text(const char *text, size_t size, enum lkg_format format, struct lkg_candidate *ret)
{
        const struct lkg_judge_config config = { .release = 0 };
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);
        struct lkg_judge *judge;

        assert_int_equal(lkg_map_set(map, "field", 5, lkg_value_new_string(text, size, NULL, 0, 0)), 0);
        *ret = (struct lkg_candidate){
                .refs = 1, .state = LKG_CANDIDATE_VALID, .doc = map, .format = format
        };
        judge = lkg_judge_new(&config);
        lkg_candidate_judge(ret, judge, "");
        lkg_judge_free(judge);
}

static void forget(struct lkg_candidate *candidate)
{
        lkg_value_unref(candidate->doc);
        lkg_report_deinit(&candidate->report);
        free(candidate->text);
}

TEST(test_what_cannot_be_written_is_not_served)
{
        static const enum lkg_format formats[] = { LKG_FORMAT_YAML, LKG_FORMAT_JSON };
        struct lkg_candidate candidate;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(formats); i++) {
                judge_text("caf\xc3\xa9: yes", 9, formats[i], &candidate);
                assert_int_equal(candidate.report.n_findings, 0);
                forget(&candidate);
                judge_text("caf\xe9", 4, formats[i],
                           &candidate); /* not UTF-8: no decoder returns such a value */
                assert_int_equal(candidate.report.n_findings, 1);
                assert_int_equal(candidate.report.findings[0].code, 2033);
                assert_int_equal(candidate.report.n_severity[LKG_ERROR], 1);
                assert_non_null(strstr(candidate.report.findings[0].text, "field 'field'"));
                assert_null(strstr(candidate.report.findings[0].text, "caf"));
                forget(&candidate);
        }
}

/* The reason for the refusal is already known. */
TEST(test_what_is_refused_is_not_read_again)
{
        const struct lkg_judge_config config = { .release = 0 };
        struct lkg_candidate candidate = { .refs = 1, .state = LKG_CANDIDATE_VALID };
        struct lkg_judge *judge;

        candidate.doc = lkg_value_new_string("\xff", 1, NULL, 0, 0);
        lkg_report_add(&candidate.report, LKG_ERROR, 1001, NULL, "no document");
        judge = lkg_judge_new(&config);
        lkg_candidate_judge(&candidate, judge, "");
        assert_int_equal(candidate.report.n_findings, 1);
        lkg_judge_free(judge);
        forget(&candidate);
}
