/* SPDX-License-Identifier: Apache-2.0 */
/* Two documents of a kind: the fields in which they differ, and what has to be done after such a change (column `change`). */
#include <lkg/array.h>
#include <lkg/doc.h>
#include <lkg/schema.h>

#include "tree.h"

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

static const struct lkg_schema_node *step(const struct lkg_schema_node *node, const char *name, size_t size)
{
        char plain[256]; /* names of fields have no ~ and are shorter */
        size_t n = 0;

        if (node->class != LKG_CLASS_STRUCT)
                return node->item;
        for (size_t i = 0; i < size && n < sizeof(plain); i++) {
                bool escaped = name[i] == '~' && i + 1 < size;

                plain[n++] = !escaped ? name[i] : name[i + 1] == '1' ? '/' : '~';
                i += escaped;
        }
        return n < sizeof(plain) ? lkg_node_member_folded(node, plain, n) : NULL;
}

const struct lkg_field *lkg_schema_field(const struct lkg_schema *schema, const char *pointer)
{
        const struct lkg_schema_node *node = schema ? lkg_schema_root(schema) : NULL, *found = NULL;

        while (node && *pointer == '/') {
                size_t size = strcspn(++pointer, "/");
                const struct lkg_schema_node *next = step(node, pointer, size);

                if (!next)
                        return node->class == LKG_CLASS_STRUCT ? NULL : node->field;
                found = node = next;
                pointer += size;
        }
        return found ? found->field : NULL;
}

/* ---- two documents ---- */

struct collecting {
        const struct lkg_schema *schema;
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

        (void)before;
        (void)after;
        if (has(c->changes, field))
                return 0;
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
                       const struct lkg_value *after, struct lkg_field_changes *ret)
{
        struct collecting c = { schema, ret };
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
