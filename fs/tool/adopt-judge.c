/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the component reads without lkgfs and with it, as effective documents: defaults and flags included, so that the order in
 * which they apply counts, too.
 */
#include "adopt.h"

/* The caller frees it. */
static struct lkg_judge *judge_new(const struct lkg_adopt_node *look)
{
        const struct lkg_judge_config config = {
                .release = look->tool->options.release,
                .flags = look->flags,
                .n_flags = look->flag_list.n_items,
                .flags_observed = true,
                .component = lkg_schema_reader("kubelet"),
        };

        return lkg_judge_new(&config);
}

#define NO_EFFECTIVE "%s: the kubelet would not start with it; mend it first"

static void print_errors(const struct lkg_tool *tool, const struct lkg_report *report)
{
        if (report->n_severity[LKG_ERROR])
                lkg_tool_print_findings(tool, STDERR_FILENO, report);
}

int lkg_adopt_before(const struct lkg_adopt_node *look, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = judge_new(look);
        struct lkg_candidate *candidate = NULL;
        struct lkg_stack *stack = NULL;
        struct lkg_error err = { 0 };
        int status = LKG_TOOL_OK;
        const struct lkg_stack_config layers = {
                .component = "kubelet",
                .source_fd = AT_FDCWD,
                .source_path = "",
                .base = lkg_tool_format("%s%s", look->root, look->base),
                .dropin_dir = !look->config_dir ? "" : lkg_tool_format("%s%s", look->root, look->config_dir),
                .dropin_dir_required = true,
                .instance = "",
                .patches_dir = "",
                .patches_target = "",
                .kind = "",
                .api_version = ""
        };
        if (lkg_stack_new(&layers, &stack, &err) == 0)
                lkg_stack_set_judge(stack, lkg_judge_candidate, judge);
        if (!stack || lkg_stack_refresh(stack, &candidate, &err) < 0) {
                status = lkg_tool_fail(look->tool, LKG_TOOL_FAILED, "%s", err.message);
        } else if (!candidate->doc || !candidate->effective) {
                print_errors(look->tool, &candidate->report);
                status = lkg_tool_fail(look->tool, LKG_TOOL_DIFFERENT, NO_EFFECTIVE,
                                       "the present configuration");
        } else {
                *ret = lkg_tool_own(lkg_value_ref(candidate->effective));
        }
        lkg_candidate_unref(candidate);
        lkg_stack_free(stack);
        return status;
}

static struct lkg_config *read_config(const struct lkg_adopt_node *look, const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_config *config = NULL;
        int r = lkg_decode_yaml(text, strlen(text), LKG_DECODE_STRICT, NULL, &report, &doc);

        if (r == 0)
                r = lkg_config_decode(doc, "/etc/lkgfs", &config, &report);
        if (r == 0 && config->n_components == 1)
                return config;
        if (r == 0)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT, "'%s" LKG_ADOPT_CONFIG "': want one component",
                             look->root);
        print_errors(look->tool, &report);
        lkg_tool_end(look->tool, LKG_TOOL_FAILED, "the configuration of lkgfs: %s", strerror(-r));
}

struct lkg_value *lkg_adopt_merge(const struct lkg_adopt_node *look, const char *source, const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_config *config = read_config(look, text);
        struct lkg_offline_place place = { .config = config,
                                           .component = &config->components[0],
                                           .source_path = lkg_tool_format("%s%s", look->root, source),
                                           .runtime_fd = -EBADF,
                                           .state_fd = -EBADF,
                                           .release = look->tool->options.release };
        struct lkg_offline offline;
        struct lkg_error err = { 0 };
        struct lkg_value *ret;

        fd = place.source_fd = lkg_root_open(look->rootfd, source, O_PATH | O_DIRECTORY);
        if (fd < 0)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "open '%s': %s", place.source_path, strerror(-fd));
        if (lkg_offline_judge(&place, &offline, &report, &err) < 0)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "%s", err.message);
        lkg_tool_add_findings(offline.candidate, &report);
        if (offline.candidate->state != LKG_CANDIDATE_VALID) {
                print_errors(look->tool, &offline.candidate->report);
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT, "lkgfs would not serve this configuration");
        }
        ret = lkg_tool_own(lkg_value_ref(offline.candidate->doc));
        lkg_offline_deinit(&offline);
        lkg_config_free(config);
        return ret;
}

/* Written and read again, as the component gets it. */
struct lkg_value *lkg_adopt_effective(const struct lkg_adopt_node *look, const struct lkg_value *served)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = judge_new(look);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_value *ret;

        lkg_render(served, LKG_FORMAT_YAML, &text);
        if (lkg_decode_yaml(lkg_buf_text(&text), text.size, 0, NULL, &report, &doc) < 0)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "the merged document cannot be read again");
        ret = lkg_tool_own(lkg_judge_document(judge, doc));
        if (!ret)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT, NO_EFFECTIVE, "the merged document");
        return ret;
}

const char *lkg_adopt_diff(const char *a_name, const struct lkg_value *a, const char *b_name,
                           const struct lkg_value *b)
{
        const char *diff = lkg_tool_diff(a_name, lkg_tool_masked(a, LKG_FORMAT_YAML), b_name,
                                         lkg_tool_masked(b, LKG_FORMAT_YAML));

        return *diff || lkg_value_equal(a, b) ? diff : "a secret value differs\n";
}
