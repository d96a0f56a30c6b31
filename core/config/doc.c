/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value tree: life, scalars, lists; doc-map.c has the maps.
 *
 * Nothing here recurses on the depth of a document: what a freed value held is freed from a work list that
 * is linked through the dying values themselves, so that freeing needs no memory.
 */
#include "doc-layout.h"

static const char *const type_names[_LKG_TYPE_MAX] = {
        [LKG_NULL] = "null",     [LKG_BOOL] = "bool", [LKG_NUMBER] = "number",
        [LKG_STRING] = "string", [LKG_LIST] = "list", [LKG_MAP] = "map",
};

const char *lkg_type_name(enum lkg_type type)
{
        return (unsigned)type < _LKG_TYPE_MAX ? type_names[type] : "?";
}

/* ---- sources ---- */

struct lkg_source *lkg_source_new(const char *layer, const char *file)
{
        struct lkg_source *source = calloc(1, sizeof(*source));

        if (!source)
                return NULL;
        source->refs = 1;
        source->layer = strdup(layer ? layer : "");
        source->file = strdup(file ? file : "");
        if (!source->layer || !source->file)
                return lkg_source_unref(source);
        return source;
}

struct lkg_source *lkg_source_ref(struct lkg_source *source)
{
        if (source)
                source->refs++;
        return source;
}

struct lkg_source *lkg_source_unref(struct lkg_source *source)
{
        if (source && --source->refs == 0) {
                free(source->layer);
                free(source->file);
                free(source);
        }
        return NULL;
}

/* ---- life ---- */

static void free_members(struct lkg_value *value, struct lkg_value **dying)
{
        lkg_value_let_go(value->shadowed, dying);
        if (value->type == LKG_LIST) {
                struct list_value *list = lkg_as_list(value);

                for (size_t i = 0; i < list->n; i++)
                        lkg_value_let_go(list->items[i], dying);
                free(list->items);
        } else if (value->type == LKG_MAP) {
                lkg_map_free_members(lkg_as_map(value), dying);
        }
}

struct lkg_value *lkg_value_ref(struct lkg_value *value)
{
        if (value)
                value->refs++;
        return value;
}

/* Of the value itself, as value_new() was asked for it. */
static size_t size_of(const struct lkg_value *value)
{
        switch ((enum lkg_type)value->type) {
        case LKG_NUMBER:
        case LKG_STRING:
                return sizeof(struct text_value) + lkg_as_text(value)->size + 1;
        case LKG_LIST:
                return sizeof(struct list_value);
        case LKG_MAP:
                return sizeof(struct map_value);
        case LKG_NULL:
        case LKG_BOOL:
        case _LKG_TYPE_MAX:
                break;
        }
        return sizeof(struct lkg_value);
}

struct lkg_value *lkg_value_unref(struct lkg_value *value)
{
        struct lkg_value *dying = NULL;

        lkg_value_let_go(value, &dying);
        while (dying) {
                struct lkg_value *v = dying;

                dying = v->next_dying;
                free_members(v, &dying);
                lkg_piece_free(v, size_of(v));
        }
        return NULL;
}

static struct lkg_value *value_new(size_t size, enum lkg_type type, struct lkg_source *source, unsigned line,
                                   unsigned column)
{
        struct lkg_value *value = lkg_piece_new(size);

        if (!value)
                return NULL;
        *value = (struct lkg_value){ .refs = 1, .type = (uint8_t)type, .line = line, .column = column };
        value->source = lkg_source_ref(source);
        return value;
}

struct lkg_value *lkg_value_new_null(struct lkg_source *source, unsigned line, unsigned column)
{
        return value_new(sizeof(struct lkg_value), LKG_NULL, source, line, column);
}

struct lkg_value *lkg_value_new_bool(bool b, struct lkg_source *source, unsigned line, unsigned column)
{
        struct lkg_value *value = value_new(sizeof(*value), LKG_BOOL, source, line, column);

        if (value)
                value->flag = b;
        return value;
}

static struct lkg_value *text_new(enum lkg_type type, const char *text, size_t size,
                                  struct lkg_source *source, unsigned line, unsigned column)
{
        struct lkg_value *value =
                value_new(sizeof(struct text_value) + size + 1, type, source, line, column);
        struct text_value *t;

        if (!value)
                return NULL;
        t = lkg_as_text(value);
        t->size = size;
        if (size)
                memcpy(t->text, text, size);
        t->text[size] = '\0';
        return value;
}

struct lkg_value *lkg_value_new_number(const char *json_text, struct lkg_source *source, unsigned line,
                                       unsigned column)
{
        return text_new(LKG_NUMBER, json_text, strlen(json_text), source, line, column);
}

struct lkg_value *lkg_value_new_string(const char *text, size_t size, struct lkg_source *source,
                                       unsigned line, unsigned column)
{
        return text_new(LKG_STRING, text, size, source, line, column);
}

struct lkg_value *lkg_value_new_list(struct lkg_source *source, unsigned line, unsigned column)
{
        struct lkg_value *value = value_new(sizeof(struct list_value), LKG_LIST, source, line, column);

        if (value)
                memset((char *)value + sizeof(*value), 0, sizeof(struct list_value) - sizeof(*value));
        return value;
}

struct lkg_value *lkg_value_new_map(struct lkg_source *source, unsigned line, unsigned column)
{
        struct lkg_value *value = value_new(sizeof(struct map_value), LKG_MAP, source, line, column);

        if (value)
                memset((char *)value + sizeof(*value), 0, sizeof(struct map_value) - sizeof(*value));
        return value;
}

static struct lkg_value *clone_list(const struct lkg_value *value)
{
        const struct list_value *from = lkg_as_list(value);
        struct lkg_value *copy = lkg_value_new_list(value->source, value->line, value->column);
        struct list_value *to;

        if (!copy || from->n == 0)
                return copy;
        to = lkg_as_list(copy);
        to->items = reallocarray(NULL, from->n, sizeof(*to->items));
        if (!to->items)
                return lkg_value_unref(copy);
        to->n = to->allocated = from->n;
        for (size_t i = 0; i < from->n; i++)
                to->items[i] = lkg_value_ref(from->items[i]);
        return copy;
}

/* A copy without the shadow. */
static struct lkg_value *clone(const struct lkg_value *value)
{
        const struct text_value *t;

        switch ((enum lkg_type)value->type) {
        case LKG_NULL:
                return lkg_value_new_null(value->source, value->line, value->column);
        case LKG_BOOL:
                return lkg_value_new_bool(value->flag, value->source, value->line, value->column);
        case LKG_NUMBER:
        case LKG_STRING:
                t = lkg_as_text(value);
                return text_new(value->type, t->text, t->size, value->source, value->line, value->column);
        case LKG_LIST:
                return clone_list(value);
        case LKG_MAP:
                return lkg_map_clone(value);
        case _LKG_TYPE_MAX:
                break;
        }
        return NULL;
}

struct lkg_value *lkg_value_clone_shallow(const struct lkg_value *value)
{
        struct lkg_value *copy = clone(value);

        if (copy)
                copy->shadowed = lkg_value_ref(value->shadowed);
        return copy;
}

struct lkg_value *lkg_value_over(const struct lkg_value *value, const struct lkg_value *shadowed)
{
        struct lkg_value *copy = clone(value);

        if (copy)
                copy->shadowed = lkg_value_ref((struct lkg_value *)shadowed);
        return copy;
}

void lkg_value_place(struct lkg_value *value, unsigned line, unsigned column)
{
        assert(value->refs == 1);
        value->line = line;
        value->column = column;
}

/* ---- lists ---- */

int lkg_list_insert(struct lkg_value *value, size_t i, struct lkg_value *item)
{
        struct list_value *list = lkg_as_list(value);

        assert(value->refs == 1 && i <= list->n);
        if (!item)
                return -ENOMEM;
        if (list->n == list->allocated) {
                size_t n = list->allocated ? 2 * list->allocated : 4;
                struct lkg_value **items = reallocarray(list->items, n, sizeof(*items));

                if (!items) {
                        lkg_value_unref(item);
                        return -ENOMEM;
                }
                list->items = items;
                list->allocated = n;
        }
        value->stamp = 0;
        memmove(list->items + i + 1, list->items + i, (list->n - i) * sizeof(*list->items));
        list->items[i] = item;
        list->n++;
        return 0;
}

int lkg_list_append(struct lkg_value *list, struct lkg_value *item)
{
        return lkg_list_insert(list, lkg_as_list(list)->n, item);
}

void lkg_list_set(struct lkg_value *value, size_t i, struct lkg_value *item)
{
        struct list_value *list = lkg_as_list(value);

        assert(value->refs == 1 && i < list->n);
        value->stamp = 0;
        lkg_value_unref(list->items[i]);
        list->items[i] = item;
}

void lkg_list_remove(struct lkg_value *value, size_t i)
{
        struct list_value *list = lkg_as_list(value);

        assert(value->refs == 1 && i < list->n);
        value->stamp = 0;
        lkg_value_unref(list->items[i]);
        memmove(list->items + i, list->items + i + 1, (list->n - i - 1) * sizeof(*list->items));
        list->n--;
}

void lkg_list_stamp(const struct lkg_value *list, uint16_t stamp)
{
        lkg_as_list(list)->head.stamp = stamp;
}

uint16_t lkg_list_stamp_get(const struct lkg_value *list)
{
        return list->type == LKG_LIST ? list->stamp : 0;
}

struct lkg_value *lkg_list_get(const struct lkg_value *list, size_t i)
{
        return list->type == LKG_LIST && i < lkg_as_list(list)->n ? lkg_as_list(list)->items[i] : NULL;
}

/* ---- reading ---- */

enum lkg_type lkg_value_type(const struct lkg_value *value)
{
        return value->type;
}

bool lkg_value_bool(const struct lkg_value *value)
{
        return value->type == LKG_BOOL && value->flag;
}

const char *lkg_value_text(const struct lkg_value *value, size_t *ret_size)
{
        bool has_text = value->type == LKG_STRING || value->type == LKG_NUMBER;

        if (ret_size)
                *ret_size = has_text ? lkg_as_text(value)->size : 0;
        return has_text ? lkg_as_text(value)->text : "";
}

const struct lkg_source *lkg_value_source(const struct lkg_value *value)
{
        return value->source;
}

struct lkg_source *lkg_value_source_mut(const struct lkg_value *value)
{
        return value->source;
}

unsigned lkg_value_line(const struct lkg_value *value)
{
        return value->line;
}

unsigned lkg_value_column(const struct lkg_value *value)
{
        return value->column;
}

struct lkg_where lkg_where_of(const struct lkg_value *value)
{
        const struct lkg_source *source = value ? lkg_value_source(value) : NULL;

        return (struct lkg_where){
                .file = source && *source->file ? source->file : NULL,
                .line = value ? lkg_value_line(value) : 0,
                .column = value ? lkg_value_column(value) : 0,
        };
}

const struct lkg_value *lkg_value_shadowed(const struct lkg_value *value)
{
        return value->shadowed;
}

size_t lkg_value_size(const struct lkg_value *value)
{
        return value->type == LKG_LIST  ? lkg_as_list(value)->n
               : value->type == LKG_MAP ? lkg_as_map(value)->n
                                        : 0;
}
