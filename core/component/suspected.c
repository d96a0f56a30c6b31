/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks a configuration as bad, with the fields that are suspected: its document and that of the last known good are compared if
 * both are there. A mark without suspects says why; nothing is guessed.
 */
#include <lkg/component.h>
#include <lkg/documents.h>
#include <lkg/schema.h>

/* ---- the condemned document ---- */

/* Is @mark about this generation? A uid alone means all versions, and local@<12 hex> is a document. */
static bool is_about(const struct lkg_bad *mark, const char *source, const char *source_sha256,
                     const char *sha256)
{
        struct lkg_config_source made_of;

        if (strcmp(mark->source.uid, LKG_UID_LOCAL) == 0)
                return *mark->source.version && strncmp(sha256, mark->source.version, LKG_SHORT_HASH) == 0;
        if (!*source)
                return false;
        lkg_config_source_recorded(source, source_sha256, &made_of);
        if (!*mark->source.version)
                return strcmp(made_of.uid, mark->source.uid) == 0;
        return strcmp(source, mark->id) == 0 || lkg_config_source_matches(&made_of, &mark->source);
}

/* Only what readers get is on trial; it may be attributed to another source with the same document. */
static bool is_served(const struct lkg_component *c, const struct lkg_bad *mark)
{
        const struct lkg_generation *active = c->active;

        return active && (lkg_bad_failed_trial(mark->cause) ||
                          is_about(mark, active->source, active->source_sha256, active->sha256));
}

/*
 * What readers get, else the newest generation of it. Return: 0; -ENOENT: it was never served, or is no longer in the history;
 * -errno.
 */
static int find_condemned(const struct lkg_component *c, const struct lkg_bad *mark,
                          struct lkg_generation **ret)
{
        if (is_served(c, mark)) {
                *ret = lkg_generation_ref(c->active);
                return 0;
        }
        for (size_t i = c->history.n_entries; i-- > 0;) {
                const struct lkg_history_entry *entry = &c->history.entries[i];

                if (is_about(mark, entry->source, entry->source_sha256, entry->sha256))
                        return lkg_history_get(&c->history, entry->number, ret, NULL);
        }
        return -ENOENT;
}

/* ---- the comparison ---- */

/* The name of an item by which its list is a map: containers, volumes, ports, variables. NULL = it has none, or another has it. */
static const char *name_of(const struct lkg_value *item, const struct lkg_value *map)
{
        const char *name = lkg_value_type(item) == LKG_MAP ? lkg_map_get_string(item, "name") : NULL;

        return name && !lkg_map_get(map, name) ? name : NULL;
}

/* @value with lists of what has names as maps, so that the field of one container is told from the rest. One reference. */
static struct lkg_value *by_name(const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);
        enum lkg_type type = lkg_value_type(value);

        if (type != LKG_MAP && type != LKG_LIST)
                return lkg_value_ref((struct lkg_value *)value);
        for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);) {
                const char *name = type == LKG_MAP ? m.key.data : name_of(m.value, map);

                if (!name)
                        return lkg_value_ref((struct lkg_value *)value);
                (void)lkg_map_set(map, name, strlen(name), by_name(m.value));
        }
        return LKG_STEAL(map);
}

/* Of a set of static pods, the document that @mark is about: a map with its file, or with nothing. Takes over @set. */
static struct lkg_value *pod_of(struct lkg_value *set, const struct lkg_bad *mark)
{
        const char *file = mark->source.uid;
        const struct lkg_value *texts = lkg_pods_texts(set), *text = lkg_pods_text(texts, file);
        struct lkg_value *one, *doc;

        if (!texts)
                return set;
        one = lkg_value_new_map(NULL, 0, 0);
        doc = text ? lkg_pods_document("manifest", file, text) : NULL;
        if (doc)
                (void)lkg_map_set(one, file, strlen(file), by_name(doc));
        lkg_value_unref(doc);
        lkg_value_unref(set);
        return one;
}

static int read_side(struct lkg_generation *g, const struct lkg_bad *mark, struct lkg_value **ret_doc,
                     struct lkg_suspects_side *ret)
{
        int r = lkg_decode_own(g->document.data, g->document.size, LKG_DECODE_UNTYPED, NULL, ret_doc);

        if (r < 0)
                return r;
        *ret_doc = pod_of(*ret_doc, mark);
        lkg_generation_describe(g);
        *ret = (struct lkg_suspects_side){ *ret_doc, g->origin.data ? g->origin.data : "", g->number };
        return 0;
}

static const struct lkg_schema *schema_of(const struct lkg_component *c, const struct lkg_value *doc)
{
        const char *kind = lkg_map_get_string(doc, "kind");
        const struct lkg_schema *schema = NULL;

        if (!kind || lkg_schema_get(kind, lkg_map_get_string(doc, "apiVersion"), lkg_component_release(c),
                                    &schema) < 0)
                return NULL;
        return schema;
}

/* Of a pod all names are fields, or names of containers and the like. */
static void name_fields(struct lkg_value *suspects, const char *file)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_map_get(suspects, "fields"), &m);) {
                const char *pointer = lkg_map_get_string(m.value, "pointer");
                size_t n = strlen(file) + 2;

                if (pointer && strlen(pointer) > n)
                        (void)lkg_map_set(
                                m.value, "field", 5,
                                lkg_value_new_string(pointer + n, strlen(pointer + n), NULL, 0, 0));
        }
}

/* Return: 0, see @ret; 1: @ret_why. */
static int compare(const struct lkg_component *c, const struct lkg_bad *mark, struct lkg_generation *good,
                   struct lkg_generation *condemned, struct lkg_value **ret, const char **ret_why)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *before = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *after = NULL;
        struct lkg_suspects_side a, b;
        int r = read_side(good, mark, &before, &a);

        if (r >= 0)
                r = read_side(condemned, mark, &after, &b);
        *ret_why = "one of the two documents cannot be read";
        if (r < 0)
                return 1;
        *ret = lkg_suspects_find(schema_of(c, after), &a, &b, /* whole= */ false);
        if (c->pods)
                name_fields(*ret, mark->source.uid);
        return 0;
}

/* The stored document, else a merge that a rollback would serve; NULL = neither. */
static struct lkg_generation *find_good(const struct lkg_component *c)
{
        struct lkg_generation *good = NULL;

        return lkg_component_stored_good(c, &good, NULL) >= 0 ? good : lkg_component_good_generation(c);
}

static int suspect(const struct lkg_component *c, const struct lkg_bad *mark, struct lkg_value **ret,
                   const char **ret_why)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *condemned = NULL;
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *good = NULL;

        *ret_why = "its document was not served, or is no longer in the history";
        if (find_condemned(c, mark, &condemned) < 0)
                return 1;
        *ret_why = "there is no document of the last known good";
        good = find_good(c);
        if (!good)
                return 1;
        *ret_why = "its document is that of the last known good";
        if (!lkg_bad_failed_trial(mark->cause) && strcmp(good->sha256, condemned->sha256) == 0)
                return 1;
        return compare(c, mark, good, condemned, ret, ret_why);
}

int lkg_component_mark_bad(struct lkg_component *c, const struct lkg_bad *bad, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *suspects = NULL;
        struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *known = lkg_bad_named(&d->bad, bad->id);
        struct lkg_bad mark = *bad;
        const char *why = NULL;
        struct lkg_error ignored = { 0 };
        uint64_t generation;
        int r = suspect(c, bad, &suspects, &why);

        /* Marked again, and the documents are gone by now: the earlier comparison is still true. */
        if (r > 0 && known && lkg_suspects_known(known->suspects))
                suspects = lkg_value_ref(known->suspects);
        else if (r > 0)
                suspects = lkg_suspects_unknown(why);
        mark.suspects = suspects;
        /* The mark names the generation, so that is in the history before it, if it can be (docs/specification.md 4.16). */
        generation = lkg_suspects_number(suspects, "generation");
        if (generation)
                (void)lkg_history_write(&c->history, generation, &ignored);
        return lkg_store_mark_bad(&d->store, &d->bad, &mark, err);
}

/* ---- what must be kept for them ---- */

size_t lkg_component_suspected_generations(const struct lkg_component *c, uint64_t *ret, size_t n_max)
{
        const struct lkg_bad_list *list = c->dynamic ? &c->dynamic->bad : NULL;
        const struct lkg_bad *newest = NULL;
        size_t n = 0;

        for (size_t i = 0; list && i < list->n_items; i++)
                if (lkg_suspects_number(list->items[i].suspects, "generation") &&
                    (!newest || list->items[i].time_ns > newest->time_ns))
                        newest = &list->items[i];
        if (newest && n < n_max)
                ret[n++] = lkg_suspects_number(newest->suspects, "generation");
        if (newest && n < n_max)
                ret[n++] = lkg_suspects_number(newest->suspects, "lastKnownGood");
        return n;
}
