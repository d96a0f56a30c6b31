/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs rollout NAMESPACE/NAME[/KEY]: once, or a table that follows the rollout. It asks every two seconds (for the Nodes, which
 * are large, every half minute): one person looks, and what there is to see changes once in minutes. And what an operator may change
 * of it: --halt, --resume and --forgive.
 */
#include <time.h>

#include "fleet.h"

#define TRIES_MAX      5u /* of a write that meets another one */
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

static void read_reference(const struct lkg_tool *tool, struct lkg_reference *ret)
{
        const char *text = tool->n_words > 0 ? tool->words[0] : NULL;
        struct lkg_error err = { 0 };

        if (!text)
                lkg_tool_end(tool, LKG_TOOL_USAGE, "which ConfigMap? want NAMESPACE/NAME[/KEY]");
        if (tool->options.fleet.halt && tool->options.fleet.resume)
                lkg_tool_end(tool, LKG_TOOL_USAGE, "--halt and --resume are opposites");
        if (has_change(tool) && lkg_tool_structured(tool))
                lkg_tool_end(tool, LKG_TOOL_USAGE,
                             "--halt, --resume and --forgive answer with a line of text; ask for the state "
                             "with -o "
                             "without them");
        if (lkg_reference_from_text(text, strlen(text), ret, &err) < 0 ||
            ret->type != LKG_REFERENCE_CONFIGMAP)
                lkg_tool_end(tool, LKG_TOOL_USAGE,
                             "\"%.100s\" is not a ConfigMap; want NAMESPACE/NAME[/KEY]", text);
}

static int status_of(const struct lkg_fleet *fleet)
{
        bool stands = lkg_fleet_is_halted(fleet) || lkg_fleet_state(fleet) == LKG_FLEET_NOT_HERE;

        return stands ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
}

/* ---- the annotation ---- */

/*
 * A JSON merge patch, so that nothing else of the object is touched. It needs nothing but the right to patch; only after it the
 * nodes are counted, and who may not count them is told so.
 *
 * Return: are they counted? Else the words of @api say why not.
 */
static bool annotate(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet,
                     const char *value)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_resource resource = lkg_fleet_configmap(&fleet->reference);

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_map(&json, "metadata", LKG_JSON_TIGHT);
        lkg_json_map(&json, "annotations", LKG_JSON_TIGHT);
        if (value)
                lkg_json_text(&json, LKG_ANNOTATION_HALT, value);
        else
                lkg_json_null(&json, LKG_ANNOTATION_HALT);
        for (unsigned i = 0; i < 3; i++)
                lkg_json_end(&json);
        if (!lkg_fleet_send(api, &resource, "patch", &json))
                lkg_tool_end(tool, LKG_TOOL_FAILED, "%s", api->words);
        return lkg_fleet_take_answer(api, fleet) && lkg_fleet_look_at_slots(api, fleet);
}

/* What has been done is said at once, even if the rest fails. */
static int say_outcome(const char *what, const char *words)
{
        return lkg_tool_print_text(lkg_tool_format("%s%s\n", what, lkg_tool_clean(words)), LKG_TOOL_OK);
}

/* Counts of a wrong namespace are all 0. */
static const char *place(const struct lkg_fleet *fleet)
{
        return fleet->rollout.limits.max_in_trial && !lkg_fleet_has_slots(fleet)
                       ? lkg_tool_format(" (no slot is in namespace %s)", fleet->slot_namespace)
                       : "";
}

static int halt(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        if (!annotate(tool, api, fleet, "true"))
                return say_outcome(
                        "halted: no other node switches; how many have it or try it is not known: ",
                        api->words);
        return say_outcome("halted: no other node switches; ",
                           lkg_tool_format("%u on trial go on with it, %u have it already%s",
                                           fleet->counts.n_held, fleet->counts.n_done, place(fleet)));
}

static int resume(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        int r;

        if (!annotate(tool, api, fleet, NULL))
                return say_outcome("resumed; whether the rollout has halted itself is not known: ",
                                   api->words);
        if (lkg_fleet_state(fleet) != LKG_FLEET_HALTED)
                return say_outcome("resumed", place(fleet));
        r = say_outcome("there is no " LKG_ANNOTATION_HALT " any more, but the rollout has halted itself: ",
                        lkg_tool_format("%u failed", fleet->counts.n_failed));
        return r == LKG_TOOL_OK ? LKG_TOOL_DIFFERENT : r;
}

/* ---- a failure ---- */

_Noreturn static void no_such_failure(const struct lkg_tool *tool, const struct lkg_fleet *fleet)
{
        struct lkg_strings failed = { 0 };

        for (size_t i = 0; i < fleet->slots.ledger.n_items; i++) {
                const struct lkg_rollout_slot *slot = &fleet->slots.ledger.items[i];

                if (slot->state == LKG_SLOT_FAILED && strcmp(slot->hash, fleet->id.hash) == 0)
                        lkg_tool_add_word(&failed, slot->node);
        }
        lkg_tool_end(tool, LKG_TOOL_FAILED, "no failure of node %s is on record in namespace %s; failed: %s",
                     tool->options.fleet.forgive, fleet->slot_namespace,
                     failed.n_items ? lkg_tool_join(&failed) : "nobody");
}

static bool write_slot(struct lkg_fleet_api *api, const struct lkg_fleet *fleet,
                       const struct lkg_rollout_slot *slot)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        char name[LKG_SLOT_HASH + 8];
        const struct lkg_slot_format *format = lkg_slot_format(fleet->slots.kind);
        const struct lkg_resource resource = { .group_version = format->group_version,
                                               .plural = format->plural,
                                               .kind = format->kind,
                                               .ns = fleet->slot_namespace,
                                               .name = name };

        lkg_slot_name(slot, name);
        lkg_slot_write(fleet->slots.kind, slot, &fleet->id, fleet->slot_namespace, &json);
        return lkg_fleet_send(api, &resource, "update", &json);
}

/* One slot. Nodes write there, too: after a conflict it is looked at again. */
static void forgive_one(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        for (unsigned i = 0; i < TRIES_MAX; i++) {
                const struct lkg_rollout_slot *failed =
                        lkg_fleet_find(fleet, tool->options.fleet.forgive, LKG_SLOT_FAILED);
                struct lkg_rollout_slot slot;
                bool written;

                if (!failed)
                        return; /* somebody else was faster */
                slot = *failed;
                lkg_slot_give_back(&slot);
                written = write_slot(api, fleet, &slot);
                if ((!written && api->status != LKG_API_CONFLICT) ||
                    !lkg_fleet_look(api, fleet, /* nodes= */ false))
                        lkg_tool_end(tool, LKG_TOOL_FAILED, "%s", api->words);
                if (written)
                        return;
        }
        lkg_tool_end(tool, LKG_TOOL_FAILED, "its slot is written by others all the time; try again");
}

static int forgive(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        const char *node = tool->options.fleet.forgive;

        if (!lkg_fleet_look(api, fleet, /* nodes= */ false))
                lkg_tool_end(tool, LKG_TOOL_FAILED, "%s", api->words);
        if (!lkg_fleet_find(fleet, node, LKG_SLOT_FAILED))
                no_such_failure(tool, fleet);
        while (lkg_fleet_find(fleet, node, LKG_SLOT_FAILED))
                forgive_one(tool, api, fleet);
        return say_outcome("forgiven: the failure of ",
                           lkg_tool_format("%s does not count any more, %u of %u are left; "
                                           "on %s the content stays marked bad until `lkgfs forget` there",
                                           node, fleet->counts.n_failed, lkg_fleet_halting(fleet), node));
}

/* Nothing needs to be known before. A failure ends the verb. Return: exit status. */
static int change(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        int r = LKG_TOOL_OK;

        if (tool->options.fleet.halt) /* first: it is the brake */
                r = halt(tool, api, fleet);
        if (r == LKG_TOOL_OK && tool->options.fleet.forgive)
                r = forgive(tool, api, fleet);
        if (r == LKG_TOOL_OK && tool->options.fleet.resume)
                r = resume(tool, api, fleet);
        return r;
}

/* ---- live ---- */

/* A terminal sees ages grow; anything else gets a new table when something else has changed. */
static int follow(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        static const struct timespec pause = { .tv_sec = (time_t)(PAUSE_NS / LKG_NSEC_PER_SEC) };
        LKG_CLEANUP(lkg_freep) char *shown = NULL;
        uint64_t nodes_ns = lkg_boottime_ns();
        const char *trouble = "";
        size_t kept = lkg_tool_kept();
        int r;

        for (;;) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf ageless = LKG_BUF_INIT;
                bool nodes = lkg_boottime_ns() >= nodes_ns + NODES_PAUSE_NS;

                lkg_fleet_show(fleet, lkg_realtime_ns(), trouble, &text);
                lkg_fleet_show(fleet, 0, trouble, &ageless);
                r = lkg_screen_show(tool, &shown, lkg_buf_text(&text), lkg_buf_text(&ageless));
                if (r != LKG_TOOL_OK)
                        return r;
                lkg_tool_let_go(kept);
                (void)nanosleep(&pause, NULL);
                trouble = lkg_fleet_look(api, fleet, nodes) ? "" : api->words;
                if (!*trouble && nodes)
                        nodes_ns = lkg_boottime_ns();
        }
}

static int look_and_act(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (has_change(tool)) /* no look: what halts must not wait for an answer that may be refused */
                return change(tool, api, fleet);
        if (!lkg_fleet_look(api, fleet, /* nodes= */ true))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", api->words);
        if (lkg_tool_structured(tool))
                return lkg_tool_print_map(tool, lkg_fleet_map(fleet), status_of(fleet));
        if (tool->options.watch || isatty(STDOUT_FILENO) == 1)
                return follow(tool, api, fleet);
        lkg_fleet_show(fleet, lkg_realtime_ns(), "", &buf);
        return lkg_tool_print(&buf, status_of(fleet));
}

int lkg_verb_rollout_of_fleet(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_fleet_deinit) struct lkg_fleet fleet = { .slot_namespace = LKG_SLOTS_NAMESPACE };
        LKG_CLEANUP(lkg_fleet_close) struct lkg_fleet_api api = { .root_fd = -EBADF };

        read_reference(tool, &fleet.reference);
        if (tool->options.fleet.slots_namespace)
                fleet.slot_namespace = tool->options.fleet.slots_namespace;
        lkg_fleet_open(tool, &api);
        return look_and_act(tool, &api, &fleet);
}
