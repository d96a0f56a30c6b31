/* SPDX-License-Identifier: Apache-2.0 */
/* What a slot of a rollout is told about this node: see <lkg/slots.h>. */
#include <stdio.h>
#include <string.h>

#include <lkg/lifecycle.h>

static bool has_content(const struct lkg_config_source *source, const char *uid, const char *sha256)
{
        return strcmp(source->uid, uid) == 0 && strcmp(source->sha256, sha256) == 0;
}

int lkg_rollout_id_of(const struct lkg_config_source *source, struct lkg_rollout_id *ret)
{
        *ret = (struct lkg_rollout_id){ .ns = "" };
        (void)snprintf(ret->ns, sizeof(ret->ns), "%s", source->ns);
        (void)snprintf(ret->name, sizeof(ret->name), "%s", source->name);
        (void)snprintf(ret->uid, sizeof(ret->uid), "%s", source->uid);
        (void)snprintf(ret->key, sizeof(ret->key), "%s", source->key);
        (void)snprintf(ret->version, sizeof(ret->version), "%s", source->version);
        (void)snprintf(ret->sha256, sizeof(ret->sha256), "%s", source->sha256);
        return lkg_rollout_id_seal(ret);
}

/*
 * Does the mark say something about the content, so that the fleet has to know? A trial that failed does, and what made an engine
 * crash. A layer of this node that the content does not go with, or an operator who went back here, does not.
 */
static bool is_failure(const struct lkg_bad *mark)
{
        return lkg_bad_failed_trial(mark->cause) || mark->cause == LKG_BAD_LOAD;
}

static const struct lkg_bad *find_bad(const struct lkg_bad_list *list, const char *uid, const char *sha256)
{
        for (size_t i = 0; i < list->n_items; i++)
                if (has_content(&list->items[i].source, uid, sha256))
                        return &list->items[i];
        return NULL;
}

enum lkg_slot_outcome lkg_lifecycle_slot_outcome(const struct lkg_pointers *p,
                                                 const struct lkg_bad_list *bad, const char *uid,
                                                 const char *sha256, char reason[static LKG_SLOT_REASON_MAX])
{
        const struct lkg_bad *mark = find_bad(bad, uid, sha256);

        if (has_content(&p->good.source, uid, sha256))
                return LKG_OUTCOME_GOOD;
        if (mark && is_failure(mark)) {
                (void)snprintf(reason, LKG_SLOT_REASON_MAX, "%.255s", mark->reason);
                return LKG_OUTCOME_BAD;
        }
        if (has_content(&p->active, uid, sha256))
                return LKG_OUTCOME_TRYING;
        return !mark && has_content(&p->assigned, uid, sha256) ? LKG_OUTCOME_WANTED : LKG_OUTCOME_OVER;
}
