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

/* Without a --config file a kubelet has another default of this field. Return: 0, 1; -ENOMEM. */
static int depends_on_base(const struct lkg_schema *schema, const struct lkg_schema_node *node)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *flag_base = NULL;

        if (!lkg_schema_is_kubelet(schema))
                return 0;
        flag_base = lkg_value_new_map(NULL, 0, 0);
        if (!flag_base || lkg_defaults_flag_base(flag_base) < 0)
                return -ENOMEM;
        return lkg_object_get(flag_base, node->field->path) != NULL;
}

static bool is_unset(const struct lkg_value *value)
{
        return !value || lkg_value_type(value) == LKG_NULL;
}

/* What the component makes of it: the default of a field that is left out. Return: 0, @ret may be NULL: it is not known; -ENOMEM. */
static int effective(const struct lkg_schema_node *node, const struct lkg_value *value,
                     struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        int r;

        *ret = NULL;
        if (is_unset(value)) {
                *ret = node->def ? lkg_value_ref(node->def) : NULL;
                return 0;
        }
        r = lkg_typed_scalar(node, value, node->field->path, &ignored, ret);
        if (r == -EBADMSG) /* of the wrong type */
                *ret = lkg_value_unref(*ret);
        return r == -EBADMSG ? 0 : r;
}

int lkg_schema_same_effect(const struct lkg_schema *schema, const char *pointer,
                           const struct lkg_value *before, const struct lkg_value *after, bool has_base)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *x = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *y = NULL;
        const struct lkg_schema_node *node = node_at(schema, pointer);
        int r;

        if (!node || !node->field || node->class >= LKG_CLASS_STRUCT)
                return 0;
        if (is_unset(before) && is_unset(after)) /* null is nothing */
                return 1;
        r = effective(node, before, &x);
        if (r == 0)
                r = effective(node, after, &y);
        if (r < 0)
                return r;
        if (!x || !y || !lkg_value_equal(x, y))
                return 0;
        if (has_base || (!is_unset(before) && !is_unset(after)))
                return 1;
        r = depends_on_base(schema, node);
        return r < 0 ? r : !r;
}

/* ---- two documents ---- */

struct collecting {
        const struct lkg_schema *schema;
        bool has_base;
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
        struct lkg_field_change *item;
        int r;

        if (has(c->changes, field))
                return 0;
        r = lkg_schema_same_effect(c->schema, pointer, before, after, c->has_base);
        if (r != 0)
                return r < 0 ? r : 0;
        if (LKG_GROW(c->changes->items, c->changes->n_items) < 0)
                return -ENOMEM;
        item = &c->changes->items[c->changes->n_items];
        *item = (struct lkg_field_change){ .pointer = strdup(pointer),
                                           .field = field,
                                           .change_class = lkg_change_class_of(field) };
        if (!item->pointer)
                return -ENOMEM;
        c->changes->n_items++;
        return 0;
}

static int by_class(const void *a, const void *b)
{
        const struct lkg_field_change *x = a, *y = b;

        return x->change_class != y->change_class ? (int)y->change_class - (int)x->change_class
                                                  : strcmp(x->pointer, y->pointer);
}

int lkg_schema_changes(const struct lkg_schema *schema, const struct lkg_value *before,
                       const struct lkg_value *after, bool has_base, struct lkg_field_changes *ret)
{
        struct collecting c = { schema, has_base, ret };
        int r;

        *ret = (struct lkg_field_changes){ 0 };
        r = lkg_value_compare(before, after, collect, &c);
        if (r < 0)
                lkg_field_changes_deinit(ret);
        else if (ret->n_items)
                qsort(ret->items, ret->n_items, sizeof(*ret->items), by_class);
        return r;
}

void lkg_field_changes_deinit(struct lkg_field_changes *changes)
{
        for (size_t i = 0; i < changes->n_items; i++)
                free(changes->items[i].pointer);
        free(changes->items);
        *changes = (struct lkg_field_changes){ 0 };
}
