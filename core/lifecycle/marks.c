/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in the bad list, which is sorted by id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lkg/lifecycle.h>

static int compare(const void *id, const void *bad)
{
        return strcmp(id, ((const struct lkg_bad *)bad)->id);
}

const struct lkg_bad *lkg_bad_named(const struct lkg_bad_list *list, const char *id)
{
        return list->n_items ? bsearch(id, list->items, list->n_items, sizeof(*list->items), compare) : NULL;
}

const struct lkg_bad *lkg_bad_find(const struct lkg_bad_list *list, const struct lkg_config_source *source)
{
        char id[LKG_SOURCE_ID_MAX + 1];
        const struct lkg_bad *bad;

        if (lkg_config_source_is_local(source))
                return NULL;
        lkg_config_source_id(source, id);
        bad = lkg_bad_named(list, id);
        return bad ? bad : lkg_bad_named(list, source->uid);
}

bool lkg_bad_failed_trial(enum lkg_bad_cause cause)
{
        return cause == LKG_BAD_CRASHED || cause == LKG_BAD_UNHEALTHY;
}

const struct lkg_bad *lkg_bad_same_content(const struct lkg_bad_list *list,
                                           const struct lkg_config_source *source)
{
        for (size_t i = 0; i < list->n_items; i++)
                if (lkg_config_source_same_content(&list->items[i].source, source))
                        return &list->items[i];
        return NULL;
}
