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
 * @words: "" = they are counted; why not
 */
static int annotate(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet,
                    const char *value, char words[static LKG_API_WORDS_MAX])
{
        LKG_CLEANUP(lkg_fleet_answer_deinit) struct lkg_fleet_answer answer = { .object = NULL };
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_resource resource = lkg_fleet_configmap(&fleet->reference);
        struct lkg_error err = { 0 };

        *words = '\0';
        put_annotation(value, &json);
        if (!lkg_fleet_send(api, &resource, "patch", &json, &answer))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", answer.words);
        if (lkg_fleet_take_configmap(fleet, answer.object, &err) < 0)
                (void)snprintf(words, LKG_API_WORDS_MAX, "%.500s", err.message);
        else if (lkg_fleet_look_at_slots(api, fleet, words))
                *words = '\0';
        return LKG_TOOL_OK;
}

/* Counts of a wrong namespace are all 0. */
static void put_place(const struct lkg_fleet *fleet, struct lkg_buf *buf)
{
        if (fleet->rollout.limits.max_in_trial && !lkg_fleet_has_slots(fleet))
                lkg_buf_printf(buf, " (no slot is in namespace %s)", fleet->slot_namespace);
        lkg_buf_putc(buf, '\n');
}

static int halt(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet,
                struct lkg_buf *buf)
{
        char words[LKG_API_WORDS_MAX];
        int r = annotate(tool, api, fleet, "true", words);

        if (r != LKG_TOOL_OK)
                return r;
        lkg_buf_puts(buf, "halted: no other node switches; ");
        if (*words) {
                lkg_buf_puts(buf, "how many have it or try it is not known: ");
                lkg_tool_put_clean(buf, words);
                lkg_buf_putc(buf, '\n');
                return LKG_TOOL_OK;
        }
        lkg_buf_printf(buf, "%u on trial go on with it, %u have it already", fleet->counts.n_held,
                       fleet->counts.n_done);
        put_place(fleet, buf);
        return LKG_TOOL_OK;
}

static int resume(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet,
                  struct lkg_buf *buf)
{
        char words[LKG_API_WORDS_MAX];
        int r = annotate(tool, api, fleet, NULL, words);

        if (r != LKG_TOOL_OK)
                return r;
        if (*words) {
                lkg_buf_puts(buf, "resumed; whether the rollout has halted itself is not known: ");
                lkg_tool_put_clean(buf, words);
                lkg_buf_putc(buf, '\n');
                return LKG_TOOL_OK;
        }
        if (lkg_fleet_state(fleet) != LKG_FLEET_HALTED) {
                lkg_buf_puts(buf, "resumed");
                put_place(fleet, buf);
                return LKG_TOOL_OK;
        }
        lkg_buf_printf(buf,
                       "there is no " LKG_ANNOTATION_HALT
                       " any more, but the rollout has halted itself: %u failed\n",
                       fleet->counts.n_failed);
        return LKG_TOOL_DIFFERENT;
}

/* ---- a failure ---- */

static void list_failed(const struct lkg_fleet *fleet, struct lkg_buf *buf)
{
        const char *separator = "";

        for (size_t i = 0; i < fleet->ledger.n_items; i++) {
                const struct lkg_rollout_slot *slot = &fleet->ledger.items[i];

                if (slot->state != LKG_SLOT_FAILED || strcmp(slot->hash, fleet->id.hash) != 0)
                        continue;
                lkg_buf_puts(buf, separator);
                lkg_tool_put_clean(buf, slot->node);
                separator = ", ";
        }
        lkg_buf_puts(buf, *separator ? "" : "nobody");
}

static int no_such_failure(const struct lkg_tool *tool, const struct lkg_fleet *fleet)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;

        list_failed(fleet, &names);
        return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                             "no failure of node %s is on record in namespace %s; failed: %s",
                             tool->options.fleet.forgive, fleet->slot_namespace, lkg_tool_text(&names));
}

static bool write_slot(struct lkg_fleet_api *api, const struct lkg_fleet *fleet,
                       const struct lkg_rollout_slot *slot, struct lkg_fleet_answer *ret)
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
        return lkg_fleet_send(api, &resource, "update", &json, ret);
}

/* One slot. Nodes write there, too: after a conflict it is looked at again. */
static int forgive_one(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        char words[LKG_API_WORDS_MAX] = "";

        for (unsigned i = 0; i < TRIES_MAX; i++) {
                LKG_CLEANUP(lkg_fleet_answer_deinit) struct lkg_fleet_answer answer = { .object = NULL };
                const struct lkg_rollout_slot *failed =
                        lkg_fleet_find(fleet, tool->options.fleet.forgive, LKG_SLOT_FAILED);
                struct lkg_rollout_slot slot;

                if (!failed)
                        return LKG_TOOL_OK; /* somebody else was faster */
                slot = *failed;
                lkg_slot_give_back(&slot);
                if (!write_slot(api, fleet, &slot, &answer) && answer.status != LKG_API_CONFLICT)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", answer.words);
                if (!lkg_fleet_look(api, fleet, /* nodes= */ false, words))
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", words);
                if (answer.status == LKG_API_OK)
                        return LKG_TOOL_OK;
        }
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "its slot is written by others all the time; try again");
}

static int forgive(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet,
                   struct lkg_buf *buf)
{
        const char *node = tool->options.fleet.forgive;
        char words[LKG_API_WORDS_MAX];
        int r = LKG_TOOL_OK;

        if (!lkg_fleet_look(api, fleet, /* nodes= */ false, words))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", words);
        if (!lkg_fleet_find(fleet, node, LKG_SLOT_FAILED))
                return no_such_failure(tool, fleet);
        while (r == LKG_TOOL_OK && lkg_fleet_find(fleet, node, LKG_SLOT_FAILED))
                r = forgive_one(tool, api, fleet);
        if (r == LKG_TOOL_OK)
                lkg_buf_printf(buf,
                               "forgiven: the failure of %s does not count any more, %u of %u are left; "
                               "on %s the content stays marked bad until `lkgfs forget` there\n",
                               node, fleet->counts.n_failed, lkg_fleet_halting(fleet), node);
        return r;
}

int lkg_fleet_change(const struct lkg_tool *tool, struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = LKG_TOOL_OK;

        if (tool->options.fleet.halt) /* first: it is the brake */
                r = halt(tool, api, fleet, &buf);
        if (r == LKG_TOOL_OK && tool->options.fleet.forgive)
                r = forgive(tool, api, fleet, &buf);
        if (r == LKG_TOOL_OK && tool->options.fleet.resume)
                r = resume(tool, api, fleet, &buf);
        if (r == LKG_TOOL_FAILED && buf.size == 0)
                return r;
        return lkg_tool_print(&buf, r); /* what has been done is said, even if the rest has failed */
}
