/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, merges and judges the layers of a component that is not served: --check. */
#include <lkg/component.h>

int lkg_component_check(const struct lkg_config *config, const struct lkg_config_component *k, int source_fd,
                        const char *source_path, struct lkg_report *report)
{
        const struct lkg_stack_config layers = lkg_component_stack_config(config, k, source_fd, source_path);
        struct lkg_judge_config judge_config = { .release = (unsigned)k->schema_release,
                                                 .component = lkg_component_reader(k),
                                                 .lint = true,
                                                 .startup_refuses = k->startup_rules == LKG_STARTUP_REFUSE };
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = NULL;
        struct lkg_candidate *candidate = NULL;
        struct lkg_stack *stack = NULL;
        struct lkg_error err = { 0 };
        int r = lkg_stack_new(&layers, &stack, &err);

        lkg_host_detect(&judge_config.host);
        if (r >= 0)
                r = lkg_judge_new(&judge_config, &judge);
        if (r >= 0) {
                lkg_stack_set_judge(stack, lkg_judge_candidate, judge);
                r = lkg_stack_refresh(stack, &candidate, &err);
        }
        if (r < 0) {
                lkg_shown_error("%s: %s\n", k->name, err.message);
        } else {
                lkg_report_append(report, &candidate->report);
                r = candidate->state == LKG_CANDIDATE_INVALID ||
                    candidate->state == LKG_CANDIDATE_NAME_TAKEN;
        }
        lkg_candidate_unref(candidate);
        lkg_stack_free(stack);
        return r;
}
