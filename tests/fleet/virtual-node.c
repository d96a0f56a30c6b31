/* SPDX-License-Identifier: Apache-2.0 */
/* See virtual-node.h. Carries out the effects of lkg_step() as core/engine/effects.c does, in memory. */
#include "virtual-node.h"

#define S LKG_NSEC_PER_SEC

void virtual_node_init(struct virtual_node *node, const struct virtual_node_ops *ops)
{
        *node = (struct virtual_node){ .ops = *ops, .generation = 1, .start_every_ns = VIRTUAL_START_NS };
}

void virtual_node_reborn(struct virtual_node *node, uint64_t now_ns)
{
        static const struct lkg_trial none;
        bool mine = lkg_config_source_matches(&node->trial_of, lkg_tried_source(&node->pointers));

        memset(&node->l, 0, sizeof(node->l));
        node->l.pointers = node->pointers;
        node->l.trial = lkg_trial_resume(
                lkg_trial_believed(mine ? node->trial : none, &node->pointers, false, ""), true, now_ns);
        node->generation++;
}

/* ---- steps ---- */

static bool is_durable(enum lkg_effect_kind kind)
{
        return kind == LKG_EFFECT_SAVE_POINTERS || kind == LKG_EFFECT_SAVE_TRIAL ||
               kind == LKG_EFFECT_MARK_BAD;
}

static void save_trial(struct virtual_node *node, const struct lkg_lifecycle *next, uint64_t now_ns)
{
        node->trial = next->trial;
        node->trial_of = *lkg_lifecycle_tried(next, /* scope_all= */ false);
        node->trial.good_ns = lkg_trial_elapsed(&node->trial, now_ns); /* as the store writes it */
        node->trial.stable_ns = lkg_trial_stable(&node->trial, now_ns);
        node->trial.calm_ns = lkg_trial_calm(&node->trial, now_ns);
        node->trial.away_ns = lkg_trial_absence(&node->trial, now_ns);
        node->saved_ns = now_ns;
}

static bool carry_out(struct virtual_node *node, const struct lkg_event *event, const struct lkg_step *done,
                      const struct lkg_effect *effect, uint64_t now_ns)
{
        struct lkg_event next = *event;

        if (is_durable(effect->kind) && node->ops.dies && node->ops.dies(node->ops.userdata))
                return false;
        switch (effect->kind) {
        case LKG_EFFECT_ADOPT:
                node->l = done->next;
                return true;
        case LKG_EFFECT_SAVE_POINTERS:
                if (node->ops.saves)
                        node->ops.saves(&done->next.pointers, node->ops.userdata);
                node->pointers = done->next.pointers;
                return true;
        case LKG_EFFECT_SAVE_TRIAL:
                save_trial(node, &done->next, now_ns);
                return true;
        case LKG_EFFECT_MARK_BAD:
                if (node->n_marks < VIRTUAL_MARKS_MAX)
                        node->marks[node->n_marks++] = done->mark;
                return true;
        case LKG_EFFECT_FOLLOW:
        case LKG_EFFECT_SERVE_STORED:
                node->generation++;
                return true;
        case LKG_EFFECT_MERGE_GOOD:
                node->generation++;
                next.kind = LKG_EVENT_MERGED;
                next.merge = LKG_MERGE_VALID;
                next.sha256 = "";
                return virtual_node_step(node, next, now_ns);
        case LKG_EFFECT_BEGIN_TRIAL:
                next.kind = LKG_EVENT_BEGIN;
                return virtual_node_step(node, next, now_ns);
        case LKG_EFFECT_NEXT:
                next.kind = effect->next;
                return virtual_node_step(node, next, now_ns);
        default:
                return true;
        }
}

bool virtual_node_step(struct virtual_node *node, struct lkg_event event, uint64_t now_ns)
{
        const struct lkg_bad_list bad = { node->marks, node->n_marks };
        const struct lkg_lifecycle_facts facts = {
                .bad = &bad,
                .remote = true,
                .watched = true,
                .serves_active = true,
                .active = node->generation,
                .sha256 = "",
                .trial_saved_ns = node->saved_ns,
        };
        struct lkg_step done;

        event.wall_ns = now_ns + S;
        lkg_step(&node->l, &facts, &event, now_ns, &done);
        for (size_t i = 0; i < done.n_effects; i++)
                if (!carry_out(node, &event, &done, &done.effects[i], now_ns))
                        return false;
        return true;
}

/* ---- what is assigned ---- */

bool virtual_node_assign(struct virtual_node *node, const struct lkg_config_source *source, uint64_t now_ns)
{
        return lkg_config_source_equal(&node->l.pointers.assigned, source) ||
               virtual_node_step(node, (struct lkg_event){ .kind = LKG_EVENT_ASSIGNED, .source = source },
                                 now_ns);
}

bool virtual_node_is_bad(const struct virtual_node *node, const struct lkg_config_source *source)
{
        for (unsigned i = 0; i < node->n_marks; i++)
                if (lkg_config_source_equal(&node->marks[i].source, source))
                        return true;
        return false;
}

bool virtual_node_wants(const struct virtual_node *node)
{
        const struct lkg_pointers *p = &node->l.pointers;

        return !lkg_config_source_is_local(&p->assigned) &&
               !lkg_config_source_equal(&p->assigned, &p->active) &&
               !virtual_node_is_bad(node, &p->assigned);
}

bool virtual_node_switch(struct virtual_node *node, uint64_t now_ns)
{
        if (!virtual_node_step(node, (struct lkg_event){ .kind = LKG_EVENT_TRIED_GOOD }, now_ns))
                return false;
        node->start_ns = now_ns + S;
        return true;
}

/* ---- the component ---- */

bool virtual_node_serve(struct virtual_node *node, const struct lkg_trial_rules *rules, uint64_t now_ns)
{
        return virtual_node_step(node, (struct lkg_event){ .kind = LKG_EVENT_SERVED, .rules = *rules },
                                 now_ns);
}

bool virtual_node_live(struct virtual_node *node, uint64_t now_ns)
{
        return virtual_node_step(node, (struct lkg_event){ .kind = LKG_EVENT_ALIVE, .alive = true }, now_ns);
}

bool virtual_node_crash(struct virtual_node *node, uint64_t now_ns)
{
        const struct lkg_startup startup = {
                .time_ns = now_ns, .pid = (int)node->n_starts + 1, .start_time = now_ns + 1, .counted = true
        };

        if (now_ns < node->start_ns)
                return true;
        node->n_starts++;
        node->start_ns = now_ns + node->start_every_ns;
        return virtual_node_step(node, (struct lkg_event){ .kind = LKG_EVENT_START, .startup = &startup },
                                 now_ns);
}

bool virtual_node_tick(struct virtual_node *node, uint64_t now_ns)
{
        return virtual_node_step(node, (struct lkg_event){ .kind = LKG_EVENT_TRIAL_DUE }, now_ns);
}

uint64_t virtual_node_due(const struct virtual_node *node)
{
        uint64_t due_ns = lkg_trial_due(&node->l.trial);

        return due_ns != UINT64_MAX && node->saved_ns + LKG_TRIAL_SAVE_NS < due_ns
                       ? node->saved_ns + LKG_TRIAL_SAVE_NS
                       : due_ns;
}

enum lkg_slot_outcome virtual_node_outcome(const struct virtual_node *node, const char *uid,
                                           const char *sha256, char reason[static LKG_SLOT_REASON_MAX])
{
        const struct lkg_bad_list bad = { (struct lkg_bad *)node->marks, node->n_marks };

        return lkg_lifecycle_slot_outcome(&node->l.pointers, &bad, uid, sha256, reason);
}
