/* SPDX-License-Identifier: Apache-2.0 */
/* --halt, --resume and --forgive: what an operator may change of a rollout. */
#include "fleet.h"

#define TRIES_MAX 5u /* of a write that meets another one */

/* ---- the annotation ---- */

static void put_annotation(const char *value, struct lkg_json *json)
{
        lkg_json_map(json, NULL, LKG_JSON_TIGHT);
        lkg_json_map(json, "metadata", LKG_JSON_TIGHT);
        lkg_json_map(json, "annotations", LKG_JSON_TIGHT);
        if (value)
                lkg_json_text(json, LKG_ANNOTATION_HALT, value);
        else
                lkg_json_null(json, LKG_ANNOTATION_HALT);
        for (unsigned i = 0; i < 3; i++)
                lkg_json_end(json);
}

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

        put_annotation(value, &json);
        if (!lkg_fleet_send(api, &resource, "patch", &json))
                lkg_tool_end(tool, LKG_TOOL_FAILED, "%s", api->words);
        return lkg_fleet_take_answer(api, fleet) && lkg_fleet_look_at_slots(api, fleet);
}

/* What has been done is said at once, even if the rest fails. */
static int say(const char *what, const char *words)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_puts(&buf, what);
        lkg_tool_put_clean(&buf, words);
        lkg_buf_putc(&buf, '\n');
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

/* Counts of a wrong namespace are all 0. Caller frees. */
static char *place(const struct lkg_fleet *fleet)
{
        return fleet->rollout.limits.max_in_trial && !lkg_fleet_has_slots(fleet)
                       ? lkg_tool_format(" (no slot is in namespace %s)", fleet->slot_namespace)
                       : lkg_tool_format("%s", "");
}

static int halt(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_freep) char *where = NULL;

        if (!annotate(tool, api, fleet, "true"))
                return say("halted: no other node switches; how many have it or try it is not known: ",
                           api->words);
        where = place(fleet);
        text = lkg_tool_format("%u on trial go on with it, %u have it already%s", fleet->counts.n_held,
                               fleet->counts.n_done, where);
        return say("halted: no other node switches; ", text);
}

static int resume(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        int r;

        if (!annotate(tool, api, fleet, NULL))
                return say("resumed; whether the rollout has halted itself is not known: ", api->words);
        if (lkg_fleet_state(fleet) != LKG_FLEET_HALTED) {
                text = place(fleet);
                return say("resumed", text);
        }
        text = lkg_tool_format("%u failed", fleet->counts.n_failed);
        r = say("there is no " LKG_ANNOTATION_HALT " any more, but the rollout has halted itself: ", text);
        return r == LKG_TOOL_OK ? LKG_TOOL_DIFFERENT : r;
}

/* ---- a failure ---- */

_Noreturn static void no_such_failure(const struct lkg_tool *tool, const struct lkg_fleet *fleet)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings failed = { 0 };
        LKG_CLEANUP(lkg_freep) char *names = NULL;

        for (size_t i = 0; i < fleet->ledger.n_items; i++) {
                const struct lkg_rollout_slot *slot = &fleet->ledger.items[i];

                if (slot->state == LKG_SLOT_FAILED && strcmp(slot->hash, fleet->id.hash) == 0)
                        lkg_tool_add_word(&failed, slot->node);
        }
        names = lkg_tool_join(&failed);
        lkg_tool_end(tool, LKG_TOOL_FAILED, "no failure of node %s is on record in namespace %s; failed: %s",
                     tool->options.fleet.forgive, fleet->slot_namespace, failed.n_items ? names : "nobody");
}

static bool write_slot(struct lkg_fleet_api *api, const struct lkg_fleet *fleet,
                       const struct lkg_rollout_slot *slot)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        char name[LKG_SLOT_HASH + 8];
        const struct lkg_slot_format *format = lkg_slot_format(fleet->slot_kind);
        const struct lkg_resource resource = { .group_version = format->group_version,
                                               .plural = format->plural,
                                               .kind = format->kind,
                                               .ns = fleet->slot_namespace,
                                               .name = name };

        lkg_slot_name(slot, name);
        lkg_slot_write(fleet->slot_kind, slot, &fleet->id, fleet->slot_namespace, &json);
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
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (!lkg_fleet_look(api, fleet, /* nodes= */ false))
                lkg_tool_end(tool, LKG_TOOL_FAILED, "%s", api->words);
        if (!lkg_fleet_find(fleet, node, LKG_SLOT_FAILED))
                no_such_failure(tool, fleet);
        while (lkg_fleet_find(fleet, node, LKG_SLOT_FAILED))
                forgive_one(tool, api, fleet);
        text = lkg_tool_format("%s does not count any more, %u of %u are left; "
                               "on %s the content stays marked bad until `lkgfs forget` there",
                               node, fleet->counts.n_failed, lkg_fleet_halting(fleet), node);
        return say("forgiven: the failure of ", text);
}

int lkg_fleet_change(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
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
