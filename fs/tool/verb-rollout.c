/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs rollout: the rollout with slots that this node takes part in, as status/<c>/rollout has it. Exit status 1 if it has halted.
 * With a ConfigMap: see verb-rollout-fleet.c.
 */
#include "fleet.h"
#include "report-page.h"

struct rollout {
        char state[256], max_in_trial[256], max_failures[256], in_trial[256], done[256], failed[256];
        char failed_node[256], failed_reason[256], slot[256], waiting[256];
};

static void read_rollout(const char *text, struct rollout *ret)
{
        const struct {
                const char *key;
                char *value;
        } rows[] = {
                { "state", ret->state },
                { "max_in_trial", ret->max_in_trial },
                { "max_failures", ret->max_failures },
                { "in_trial", ret->in_trial },
                { "done", ret->done },
                { "failed", ret->failed },
                { "failed_node", ret->failed_node },
                { "failed_reason", ret->failed_reason },
                { "slot", ret->slot },
                { "waiting", ret->waiting },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (!lkg_report_fact(text, rows[i].key, rows[i].value))
                        *rows[i].value = '\0';
}

static bool has_halted(const struct rollout *rollout)
{
        return strtoul(rollout->failed, NULL, 10) >= strtoul(rollout->max_failures, NULL, 10);
}

static void put_line(struct lkg_buf *buf, const char *name, const char *value)
{
        lkg_buf_printf(buf, "%-11s", name);
        lkg_tool_put_clean(buf, value);
        lkg_buf_putc(buf, '\n');
}

static int print_text(const struct rollout *rollout, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        put_line(&buf, "this node", *rollout->waiting ? rollout->waiting : rollout->state);
        if (*rollout->slot)
                put_line(&buf, "slot", rollout->slot);
        lkg_buf_printf(&buf, "%-11s%s of %s at a time\n", "in trial", rollout->in_trial,
                       rollout->max_in_trial);
        put_line(&buf, "done", rollout->done);
        lkg_buf_printf(&buf, "%-11s%s, halts with %s\n", "failed", rollout->failed, rollout->max_failures);
        if (*rollout->failed_node) {
                lkg_buf_printf(&buf, "%-11snode ", "");
                lkg_tool_put_clean(&buf, rollout->failed_node);
                lkg_buf_puts(&buf, ": ");
                lkg_tool_put_clean(&buf, rollout->failed_reason);
                lkg_buf_putc(&buf, '\n');
        }
        return lkg_tool_print(&buf, status);
}

static int print_map(const struct lkg_tool *tool, const struct rollout *rollout, const char *component,
                     int status)
{
        struct lkg_tool_map map;

        lkg_tool_map_init(&map, true);
        lkg_tool_map_string(&map, "component", component);
        lkg_tool_map_string(&map, "state", rollout->state);
        lkg_tool_map_bool(&map, "halted", has_halted(rollout));
        lkg_tool_map_number(&map, "maxInTrial", strtoul(rollout->max_in_trial, NULL, 10));
        lkg_tool_map_number(&map, "maxFailures", strtoul(rollout->max_failures, NULL, 10));
        lkg_tool_map_number(&map, "inTrial", strtoul(rollout->in_trial, NULL, 10));
        lkg_tool_map_number(&map, "done", strtoul(rollout->done, NULL, 10));
        lkg_tool_map_number(&map, "failed", strtoul(rollout->failed, NULL, 10));
        lkg_tool_map_string(&map, "failedNode", *rollout->failed_node ? rollout->failed_node : NULL);
        lkg_tool_map_string(&map, "failedReason", *rollout->failed_reason ? rollout->failed_reason : NULL);
        lkg_tool_map_string(&map, "slot", *rollout->slot ? rollout->slot : NULL);
        lkg_tool_map_string(&map, "waiting", *rollout->waiting ? rollout->waiting : NULL);
        return lkg_tool_print_map(tool, &map, status);
}

int lkg_verb_rollout(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL, *text = NULL;
        struct rollout rollout;
        int r, status;

        if (lkg_rollout_is_of_fleet(tool))
                return lkg_verb_rollout_of_fleet(tool);
        r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(tool, &view, &component);
        if (r != LKG_TOOL_OK)
                return r;
        r = lkg_view_read(&view, &text, NULL, "status/%s/rollout", component);
        if (r == -ENOENT)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                     "%s takes part in no rollout with slots (annotation "
                                     "lkgfs.io/rollout-max-in-trial of its ConfigMap)",
                                     component);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s/status/%s/rollout': %s", view.root,
                                     component, strerror(-r));
        read_rollout(text, &rollout);
        status = has_halted(&rollout) ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
        return tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML
                       ? print_map(tool, &rollout, component, status)
                       : print_text(&rollout, status);
}
