/* SPDX-License-Identifier: Apache-2.0 */
/* Two documents of a kind: the fields in which they differ, and what has to be done after such a change (column `change`). */
#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/schema.h>

#include "tree.h"
#include "pipeline.h"

static const char *const class_names[] = {
        [LKG_CHANGE_RESTART] = "restart",
        [LKG_CHANGE_RECREATE] = "recreate",
        [LKG_CHANGE_DRAIN] = "drain",
};

const char *lkg_change_class_name(enum lkg_change_class change_class)
{
        return class_names[change_class];
}

enum lkg_change_class lkg_change_class_of(const struct lkg_field *field)
{
        size_t n = field && field->change ? strcspn(field->change, ":") : 0;

        for (size_t i = 0; n && i < LKG_ARRAY_SIZE(class_names); i++)
                if (strlen(class_names[i]) == n && strncmp(class_names[i], field->change, n) == 0)
                        return (enum lkg_change_class)i;
        return LKG_CHANGE_RESTART;
}

const char *lkg_danger_name(enum lkg_danger danger)
{
        static const char *const names[] = {
                [LKG_DANGER_HARMLESS] = "harmless",
                [LKG_DANGER_PODS] = "pods",
                [LKG_DANGER_STOPS] = "stops",
        };

        return names[danger];
}

/* ---- the field of a pointer ---- */

/* The node of the first name of *@pointer, which goes on to the next one; NULL: there is none. */
static const struct lkg_schema_node *step(const struct lkg_schema_node *node, const char **pointer)
{
        LKG_CLEANUP(lkg_freep) char *name = NULL;
        size_t size;
        const char *rest = lkg_pointer_next(*pointer, &name, &size);

        *pointer = rest ? rest : "";
        if (node->class != LKG_CLASS_STRUCT)
                return node->item;
        return rest ? lkg_node_member_folded(node, name, size) : NULL;
}

const struct lkg_field *lkg_schema_field(const struct lkg_schema *schema, const char *pointer)
{
        const struct lkg_schema_node *node = schema ? lkg_schema_root(schema) : NULL, *found = NULL;

        while (node && *pointer == '/') {
                const struct lkg_schema_node *next = step(node, &pointer);

                if (!next)
                        return node->class == LKG_CLASS_STRUCT ? NULL : node->field;
                found = node = next;
        }
        return found ? found->field : NULL;
}

/* ---- two values of a field ---- */

/* The row's own node; NULL: the pointer leads deeper, or nowhere. */
static const struct lkg_schema_node *node_at(const struct lkg_schema *schema, const char *pointer)
{
        const struct lkg_schema_node *node = schema ? lkg_schema_root(schema) : NULL;

        while (node && *pointer == '/')
                node = node->class == LKG_CLASS_STRUCT ? step(node, &pointer) : NULL;
        return node;
}

/* Without a --config file a kubelet has another default of this field. */
static bool depends_on_base(const struct lkg_schema *schema, const struct lkg_schema_node *node)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *flag_base = lkg_value_new_map(NULL, 0, 0);

        lkg_defaults_flag_base(flag_base);
        return lkg_schema_is_kubelet(schema) && lkg_object_has(flag_base, node->field->path);
}

static bool is_unset(const struct lkg_value *value)
{
        return !value || lkg_value_type(value) == LKG_NULL;
}

/* What the component makes of it: the default of a field that is left out. NULL: it is not known. */
static struct lkg_value *effective(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_value *made = NULL;

        if (is_unset(value))
                return lkg_value_ref(node->def);
        return lkg_typed_scalar(node, value, node->field->path, &ignored, &made) < 0 ? lkg_value_unref(made)
                                                                                     : made;
}

/*
 * Does the component make the same of two values of a field? A field that a document leaves out has the default of its row, and
 * 60s is 1m. Only of fields with a single value; a default that depends on other fields is not known here: such a field differs.
 */
static bool same_effect(const struct lkg_schema *schema, const char *pointer, const struct lkg_value *before,
                        const struct lkg_value *after, bool has_base)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *x = NULL, *y = NULL;
        const struct lkg_schema_node *node = node_at(schema, pointer);

        if (!node || !node->field || node->class >= LKG_CLASS_STRUCT)
                return false;
        if (is_unset(before) && is_unset(after)) /* null is nothing */
                return true;
        x = effective(node, before);
        y = effective(node, after);
        return x && y && lkg_value_equal(x, y) &&
               (has_base || (!is_unset(before) && !is_unset(after)) || !depends_on_base(schema, node));
}

/* ---- two documents ---- */

struct collecting {
        const struct lkg_schema *schema;
        bool has_base, each_once;
        struct lkg_field_changes *changes;
};

static bool has(const struct lkg_field_changes *changes, const struct lkg_field *field)
{
        for (size_t i = 0; field && i < changes->n_items; i++)
                if (changes->items[i].field == field)
                        return true;
        return false;
}

static int collect(const char *pointer, const struct lkg_value *before, const struct lkg_value *after,
                   void *userdata)
{
        const struct collecting *c = userdata;
        const struct lkg_field *field = lkg_schema_field(c->schema, pointer);

        if ((c->each_once && has(c->changes, field)) ||
            same_effect(c->schema, pointer, before, after, c->has_base))
                return 0;
        lkg_need(LKG_RESERVE(c->changes->items, c->changes->n_items, c->changes->allocated));
        c->changes->items[c->changes->n_items++] =
                (struct lkg_field_change){ .pointer = lkg_must(strdup(pointer)),
                                           .before = before,
                                           .after = after,
                                           .field = field,
                                           .danger = field ? field->danger : LKG_DANGER_UNKNOWN,
                                           .change_class = lkg_change_class_of(field) };
        return 0;
}

static int by_class(const void *a, const void *b)
{
        const struct lkg_field_change *x = a, *y = b;

        return x->change_class != y->change_class ? (int)y->change_class - (int)x->change_class
                                                  : strcmp(x->pointer, y->pointer);
}

static int by_danger(const void *a, const void *b)
{
        const struct lkg_field_change *x = a, *y = b;

        return x->danger != y->danger ? (int)y->danger - (int)x->danger : by_class(a, b);
}

static void collect_sorted(const struct collecting *c, const struct lkg_value *before,
                           const struct lkg_value *after, int (*order)(const void *a, const void *b))
{
        struct lkg_field_changes *ret = c->changes;

        *ret = (struct lkg_field_changes){ 0 };
        (void)lkg_value_compare(before, after, collect, (void *)c);
        if (ret->n_items)
                qsort(ret->items, ret->n_items, sizeof(*ret->items), order);
}

void lkg_schema_changes(const struct lkg_schema *schema, const struct lkg_value *before,
                        const struct lkg_value *after, bool has_base, struct lkg_field_changes *ret)
{
        collect_sorted(&(struct collecting){ schema, has_base, /* each_once= */ true, ret }, before, after,
                       by_class);
}

void lkg_schema_dangers(const struct lkg_schema *schema, const struct lkg_value *before,
                        const struct lkg_value *after, struct lkg_field_changes *ret)
{
        collect_sorted(&(struct collecting){ schema, /* has_base= */ false, /* each_once= */ false, ret },
                       before, after, by_danger);
}

void lkg_field_changes_deinit(struct lkg_field_changes *changes)
{
        for (size_t i = 0; i < changes->n_items; i++)
                free(changes->items[i].pointer);
        free(changes->items);
        *changes = (struct lkg_field_changes){ 0 };
}
