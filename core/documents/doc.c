/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value tree: life of a value, scalars, lists, copies, and reading of any value. doc-map.c has the maps.
 */
#include "doc-layout.h"

#include <lkg/base.h>

static const char *const type_names[_LKG_TYPE_MAX] = {
        [LKG_NULL] = "null",     [LKG_BOOL] = "bool", [LKG_NUMBER] = "number",
        [LKG_STRING] = "string", [LKG_LIST] = "list", [LKG_MAP] = "map",
};

const char *lkg_type_name(enum lkg_type type)
{
        return (unsigned)type < _LKG_TYPE_MAX ? type_names[type] : "?";
}

/* ---- life ---- */

struct lkg_source *lkg_source_new(const char *layer, const char *file)
{
        struct lkg_source *source = lkg_must(calloc(1, sizeof(*source)));

        source->refs = 1;
        source->layer = lkg_must(strdup(layer ? layer : ""));
        source->file = lkg_must(strdup(file ? file : ""));
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

struct lkg_value *lkg_value_ref(struct lkg_value *value)
{
        if (value)
                value->refs++;
        return value;
}

/* Recursion is as deep as the document, but not as long as the chain of replaced values. */
struct lkg_value *lkg_value_unref(struct lkg_value *value)
{
        while (value && --value->refs == 0) {
                struct lkg_value *dying = value;

                value = dying->over;
                if (dying->type == LKG_LIST) {
                        struct list_value *list = lkg_as_list(dying);

                        for (size_t i = 0; i < list->n; i++)
                                lkg_value_unref(list->items[i]);
                        free(list->items);
                } else if (dying->type == LKG_MAP) {
                        lkg_map_let_go(lkg_as_map(dying));
                }
                lkg_source_unref(dying->source);
                free(dying);
        }
        return NULL;
}

/* ---- making ---- */

/* The position of a value, and the value that it has replaced. */
struct value_place {
        struct lkg_source *source;
        unsigned line, column;
        const struct lkg_value *over;
};

/* All bytes after the head are 0. */
static struct lkg_value *value_new(size_t size, enum lkg_type type, const struct value_place *place)
{
        struct lkg_value *value = lkg_must(calloc(1, size));

        value->refs = 1;
        value->type = (uint8_t)type;
        value->line = place->line;
        value->column = place->column;
        value->source = lkg_source_ref(place->source);
        value->over = lkg_value_ref((struct lkg_value *)place->over);
        return value;
}

static struct lkg_value *text_new(enum lkg_type type, const char *text, size_t size,
                                  const struct value_place *place)
{
        struct lkg_value *value = value_new(offsetof(struct text_value, text) + size + 1, type, place);

        assert(size < UINT32_MAX);
        ((struct text_value *)value)->size = (unsigned)size;
        if (size)
                memcpy(((struct text_value *)value)->text, text, size);
        return value;
}

struct lkg_value *lkg_value_new_null(struct lkg_source *source, unsigned line, unsigned column)
{
        return value_new(sizeof(struct lkg_value), LKG_NULL,
                         &(struct value_place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_bool(bool b, struct lkg_source *source, unsigned line, unsigned column)
{
        struct lkg_value *value = value_new(sizeof(struct lkg_value), LKG_BOOL,
                                            &(struct value_place){ source, line, column, NULL });

        value->flag = b;
        return value;
}

struct lkg_value *lkg_value_new_number(const char *json_text, struct lkg_source *source, unsigned line,
                                       unsigned column)
{
        return text_new(LKG_NUMBER, json_text, strlen(json_text),
                        &(struct value_place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_string(const char *text, size_t size, struct lkg_source *source,
                                       unsigned line, unsigned column)
{
        return text_new(LKG_STRING, text, size, &(struct value_place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_list(struct lkg_source *source, unsigned line, unsigned column)
{
        return value_new(sizeof(struct list_value), LKG_LIST,
                         &(struct value_place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_map(struct lkg_source *source, unsigned line, unsigned column)
{
        return value_new(sizeof(struct map_value), LKG_MAP,
                         &(struct value_place){ source, line, column, NULL });
}

static void share_items(struct list_value *to, const struct list_value *from)
{
        if (from->n == 0)
                return;
        to->items = lkg_must(reallocarray(NULL, from->n, sizeof(*to->items)));
        to->n = to->allocated = from->n;
        for (size_t i = 0; i < from->n; i++)
                to->items[i] = lkg_value_ref(from->items[i]);
}

struct lkg_value *lkg_value_over(const struct lkg_value *value, const struct lkg_value *shadowed)
{
        const struct value_place place = { value->source, value->line, value->column, shadowed };
        struct lkg_value *copy = NULL;
        const char *text;
        size_t size;

        switch ((enum lkg_type)value->type) {
        case LKG_NULL:
        case LKG_BOOL:
                copy = value_new(sizeof(*copy), value->type, &place);
                copy->flag = value->flag;
                break;
        case LKG_NUMBER:
        case LKG_STRING:
                text = lkg_value_text(value, &size);
                copy = text_new(value->type, text, size, &place);
                break;
        case LKG_LIST:
                copy = value_new(sizeof(struct list_value), LKG_LIST, &place);
                share_items(lkg_as_list(copy), lkg_as_list(value));
                break;
        case LKG_MAP:
                copy = value_new(sizeof(struct map_value), LKG_MAP, &place);
                lkg_map_share(lkg_as_map(copy), lkg_as_map(value));
                break;
        case _LKG_TYPE_MAX:
                break;
        }
        return copy;
}

struct lkg_value *lkg_value_clone_shallow(const struct lkg_value *value)
{
        return lkg_value_over(value, value->over);
}

bool lkg_value_is_own(const struct lkg_value *value)
{
        return value->refs == 1;
}

void lkg_value_place(struct lkg_value *value, unsigned line, unsigned column)
{
        assert(value->refs == 1);
        value->line = line;
        value->column = column;
}

/* ---- lists ---- */

void lkg_list_insert(struct lkg_value *value, size_t i, struct lkg_value *item)
{
        struct list_value *list = lkg_as_list(value);

        assert(value->refs == 1 && i <= list->n && item);
        lkg_need(LKG_RESERVE(list->items, list->n, list->allocated));
        value->stamp = 0;
        memmove(list->items + i + 1, list->items + i, (list->n - i) * sizeof(*list->items));
        list->items[i] = item;
        list->n++;
}

void lkg_list_append(struct lkg_value *list, struct lkg_value *item)
{
        lkg_list_insert(list, lkg_as_list(list)->n, item);
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
        return list->stamp;
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
        const struct text_value *t =
                value->type == LKG_STRING || value->type == LKG_NUMBER ? (const void *)value : NULL;

        if (ret_size)
                *ret_size = t ? t->size : 0;
        return t ? t->text : "";
}

struct lkg_source *lkg_value_source_mut(const struct lkg_value *value)
{
        return value->source;
}

const struct lkg_source *lkg_value_source(const struct lkg_value *value)
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
        if (!value)
                return (struct lkg_where){ 0 };
        return (struct lkg_where){
                .file = value->source && *value->source->file ? value->source->file : NULL,
                .line = value->line,
                .column = value->column,
        };
}

const struct lkg_value *lkg_value_shadowed(const struct lkg_value *value)
{
        return value->over;
}

size_t lkg_value_size(const struct lkg_value *value)
{
        return value->type == LKG_LIST  ? lkg_as_list(value)->n
               : value->type == LKG_MAP ? lkg_as_map(value)->n
                                        : 0;
}
