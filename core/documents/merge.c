/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON merge patch as gopkg.in/evanphx/json-patch.v4 applies it, which differs from RFC 7386 in what it does
 * with null inside lists: null members of objects in a list are dropped, unless the list replaces an object;
 * null items stay.
 *
 * Persistent: the result shares unchanged values with base and patch, so the cost depends on the patch
 * alone.
 */

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

const char *const lkg_header_fields[LKG_HEADER_FIELDS] = { "apiVersion", "kind" };

static bool is_map(const struct lkg_value *value)
{
        return value && lkg_value_type(value) == LKG_MAP;
}

/* Without the null members of maps. */
static struct lkg_value *prune(const struct lkg_value *value, const struct lkg_member *m, void *userdata)
{
        if (lkg_value_type(m->value) == LKG_NULL && is_map(value))
                return NULL;
        return lkg_value_rewrite(m->value, prune, userdata);
}

/* What replaces @earlier, which may be NULL. Null members are dropped from it, unless it is a list in place of a map. */
static struct lkg_value *replacement(const struct lkg_value *value, const struct lkg_value *earlier)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *pruned = NULL;

        pruned = lkg_value_type(value) == LKG_LIST && is_map(earlier)
                         ? lkg_value_ref((struct lkg_value *)value)
                         : lkg_value_rewrite(value, prune, NULL);
        return earlier ? lkg_value_over(pruned, earlier) : LKG_STEAL(pruned);
}

/* Takes over *@map, which may be changed afterwards. */
static void own(struct lkg_value **map)
{
        struct lkg_value *shared = *map;

        if (lkg_value_is_own(shared))
                return;
        *map = lkg_value_clone_shallow(shared);
        lkg_value_unref(shared);
}

/* Takes over @into. No member is looked at again after its own turn. */
static struct lkg_value *merge_maps(struct lkg_value *into, const struct lkg_value *patch)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(patch, &m);) {
                struct lkg_value *earlier = lkg_map_find(into, m.key), *made = NULL;

                if (is_map(earlier) && is_map(m.value))
                        made = merge_maps(lkg_value_ref(earlier), m.value);
                else if (lkg_value_type(m.value) != LKG_NULL)
                        made = replacement(m.value, earlier);
                if (made == earlier) { /* nothing has changed it */
                        lkg_value_unref(made);
                        continue;
                }
                own(&into);
                if (made)
                        (void)lkg_map_set(into, m.key.data, m.key.size, made);
                else
                        (void)lkg_map_remove(into, m.key.data, m.key.size);
        }
        return into;
}

struct lkg_value *lkg_merge_json_into(struct lkg_value *base, const struct lkg_value *patch)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *below = base;

        return is_map(base) && is_map(patch) ? merge_maps(LKG_STEAL(below), patch)
                                             : replacement(patch, below);
}

struct lkg_value *lkg_merge_json(const struct lkg_value *base, const struct lkg_value *patch)
{
        return lkg_merge_json_into(lkg_value_ref((struct lkg_value *)base), patch);
}

struct lkg_value *lkg_without_header(const struct lkg_value *doc, const struct lkg_value *running)
{
        struct lkg_value *patch = lkg_value_clone_shallow(doc);

        for (size_t i = 0; i < LKG_HEADER_FIELDS; i++)
                if (!running || lkg_map_get(running, lkg_header_fields[i]))
                        (void)lkg_map_remove(patch, lkg_header_fields[i], strlen(lkg_header_fields[i]));
        return patch;
}

static int refuse_value(struct lkg_report *report, const struct lkg_value *value, const char *what,
                        const char *want)
{
        lkg_report_add(report, LKG_ERROR, LKG_C_NOT_A_MAP, LKG_AT(value), "the %s is a %s, want %s", what,
                       lkg_type_name(lkg_value_type(value)), want);
        return -EBADMSG;
}

int lkg_merge_json_patch(const struct lkg_value *target, const struct lkg_value *patch,
                         struct lkg_report *report, struct lkg_value **ret)
{
        enum lkg_type type = lkg_value_type(patch);

        if (lkg_value_type(target) == LKG_NULL)
                return refuse_value(report, target, "target", "a document");
        if (type != LKG_MAP && type != LKG_LIST)
                return refuse_value(report, patch, "patch", "a map or a list");
        /*
         * If the whole patch is a list, null members are dropped whatever it replaces; inside a document
         * they are not.
         */
        *ret = lkg_merge_json(type == LKG_LIST ? NULL : target, patch);
        return 0;
}
