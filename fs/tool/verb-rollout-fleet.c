/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs rollout NAMESPACE/NAME[/KEY]: once, or a table that follows the rollout. It asks every two seconds (for the Nodes, which
 * are large, every half minute): one person looks, and what there is to see changes once in minutes.
 */
#include <time.h>

#include "fleet.h"

#define PAUSE_NS       (2 * LKG_NSEC_PER_SEC)
#define NODES_PAUSE_NS (30 * LKG_NSEC_PER_SEC)

static bool has_change(const struct lkg_tool *tool)
{
        return tool->options.fleet.halt || tool->options.fleet.resume || tool->options.fleet.forgive;
}

bool lkg_rollout_is_of_fleet(const struct lkg_tool *tool)
{
        return tool->verb->run == lkg_verb_rollout &&
               (tool->n_words > 0 || tool->options.fleet.kubeconfig || tool->options.fleet.context ||
                tool->options.fleet.slots_namespace || has_change(tool));
}

static int read_reference(const struct lkg_tool *tool, struct lkg_reference *ret)
{
        const char *text = tool->n_words > 0 ? tool->words[0] : NULL;
        struct lkg_error err = { 0 };

        if (!text)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "which ConfigMap? want NAMESPACE/NAME[/KEY]");
        if (tool->options.fleet.halt && tool->options.fleet.resume)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "--halt and --resume are opposites");
        if (has_change(tool) && lkg_tool_structured(tool))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--halt, --resume and --forgive answer with a line of text; "
                                     "ask for the state with -o without them");
        if (lkg_reference_from_text(text, strlen(text), ret, &err) < 0 ||
            ret->type != LKG_REFERENCE_CONFIGMAP)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "\"%.100s\" is not a ConfigMap; want NAMESPACE/NAME[/KEY]", text);
        return LKG_TOOL_OK;
}

static int status_of(const struct lkg_fleet *fleet)
{
        bool stands = lkg_fleet_is_halted(fleet) || lkg_fleet_state(fleet) == LKG_FLEET_NOT_HERE;

        return stands ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
}

static int print(const struct lkg_tool *tool, const struct lkg_fleet *fleet)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (lkg_tool_structured(tool))
                return lkg_tool_print_map(tool, lkg_fleet_map(fleet), status_of(fleet));
        lkg_fleet_show(fleet, lkg_realtime_ns(), "", &buf);
        return lkg_tool_print(&buf, status_of(fleet));
}

/* ---- live ---- */

/* A terminal sees ages grow; anything else gets a new table when something else has changed. */
static int show_screen(const struct lkg_tool *tool, const struct lkg_fleet *fleet, const char *trouble,
                       char **shown)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf ageless = LKG_BUF_INIT;

        lkg_fleet_show(fleet, lkg_realtime_ns(), trouble, &text);
        lkg_fleet_show(fleet, 0, trouble, &ageless);
        return lkg_screen_show(tool, shown, lkg_tool_text(&text), lkg_tool_text(&ageless));
}

static int follow(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        static const struct timespec pause = { .tv_sec = (time_t)(PAUSE_NS / LKG_NSEC_PER_SEC) };
        LKG_CLEANUP(lkg_freep) char *shown = NULL;
        uint64_t nodes_ns = lkg_boottime_ns();
        const char *trouble = "";
        int r;

        for (;;) {
                bool nodes = lkg_boottime_ns() >= nodes_ns + NODES_PAUSE_NS;

                r = show_screen(tool, fleet, trouble, &shown);
                if (r != LKG_TOOL_OK)
                        return r;
                (void)nanosleep(&pause, NULL);
                trouble = lkg_fleet_look(api, fleet, nodes) ? "" : api->words;
                if (!*trouble && nodes)
                        nodes_ns = lkg_boottime_ns();
        }
}

static int look_and_act(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        if (has_change(tool)) /* no look: what halts must not wait for an answer that may be refused */
                return lkg_fleet_change(tool, api, fleet);
        if (!lkg_fleet_look(api, fleet, /* nodes= */ true))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", api->words);
        if (!lkg_tool_structured(tool) && (tool->options.watch || isatty(STDOUT_FILENO) == 1))
                return follow(tool, api, fleet);
        return print(tool, fleet);
}

int lkg_verb_rollout_of_fleet(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_fleet_deinit) struct lkg_fleet fleet = { .slot_namespace = LKG_SLOTS_NAMESPACE };
        LKG_CLEANUP(lkg_fleet_close) struct lkg_fleet_api api = { .root_fd = -EBADF };
        int r = read_reference(tool, &fleet.reference);

        if (tool->options.fleet.slots_namespace)
                fleet.slot_namespace = tool->options.fleet.slots_namespace;
        if (r != LKG_TOOL_OK)
                return r;
        lkg_fleet_open(tool, &api);
        return look_and_act(tool, &api, &fleet);
}
