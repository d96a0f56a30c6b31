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

/* Where the pointer to the value stands that this one has replaced. */
static struct lkg_value **place_over(const struct lkg_value *value)
{
        return (struct lkg_value **)(uintptr_t)value - 1;
}

static void free_members(struct lkg_value *value, struct lkg_value **dying)
{
        if (value->over)
                lkg_value_let_go(*place_over(value), dying);
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

/* With room for the NUL; small texts begin where the fields end. */
static size_t text_size(size_t size)
{
        size_t whole = offsetof(struct text_value, text) + size + 1;

        return whole < sizeof(struct text_value) ? sizeof(struct text_value) : whole;
}

/* Of the value itself, as value_new() was asked for it. */
static size_t size_of(const struct lkg_value *value)
{
        switch ((enum lkg_type)value->type) {
        case LKG_NUMBER:
        case LKG_STRING:
                return text_size(lkg_as_text(value)->size);
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

static void value_free(struct lkg_value *value)
{
        size_t before = value->over ? sizeof(*place_over(value)) : 0;

        lkg_piece_free((char *)value - before, before + size_of(value));
}

struct lkg_value *lkg_value_unref(struct lkg_value *value)
{
        struct lkg_value *dying = NULL;

        lkg_value_let_go(value, &dying);
        while (dying) {
                struct lkg_value *v = dying;

                dying = v->next_dying;
                free_members(v, &dying);
                value_free(v);
        }
        return NULL;
}

/* Where a value comes from, and what it has replaced. */
struct place {
        struct lkg_source *source;
        unsigned line, column;
        struct lkg_value *over;
};

static struct place place_of(const struct lkg_value *value, struct lkg_value *over)
{
        return (struct place){ value->source, value->line, value->column, over };
}

static struct lkg_value *value_new(size_t size, enum lkg_type type, const struct place *place)
{
        size_t before = place->over ? sizeof(place->over) : 0;
        char *piece = lkg_piece_new(before + size);
        struct lkg_value *value;

        if (!piece)
                return NULL;
        value = (struct lkg_value *)(void *)(piece + before);
        *value = (struct lkg_value){ .refs = 1,
                                     .type = (uint8_t)type,
                                     .over = place->over,
                                     .line = place->line,
                                     .column = place->column };
        value->source = lkg_source_ref(place->source);
        if (place->over)
                *place_over(value) = lkg_value_ref(place->over);
        return value;
}

static struct lkg_value *null_new(const struct place *place)
{
        return value_new(sizeof(struct lkg_value), LKG_NULL, place);
}

static struct lkg_value *bool_new(bool b, const struct place *place)
{
        struct lkg_value *value = value_new(sizeof(*value), LKG_BOOL, place);

        if (value)
                value->flag = b;
        return value;
}

static struct lkg_value *text_new(enum lkg_type type, const char *text, size_t size,
                                  const struct place *place)
{
        struct text_value *t;

        if (size >= UINT32_MAX)
                return NULL;
        t = (struct text_value *)value_new(text_size(size), type, place);
        if (!t)
                return NULL;
        t->size = (unsigned)size;
        if (size)
                memcpy(t->text, text, size);
        t->text[size] = '\0';
        return &t->head;
}

static struct lkg_value *collection_new(size_t size, enum lkg_type type, const struct place *place)
{
        struct lkg_value *value = value_new(size, type, place);

        if (value)
                memset((char *)value + sizeof(*value), 0, size - sizeof(*value));
        return value;
}

struct lkg_value *lkg_value_new_null(struct lkg_source *source, unsigned line, unsigned column)
{
        return null_new(&(struct place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_bool(bool b, struct lkg_source *source, unsigned line, unsigned column)
{
        return bool_new(b, &(struct place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_number(const char *json_text, struct lkg_source *source, unsigned line,
                                       unsigned column)
{
        return text_new(LKG_NUMBER, json_text, strlen(json_text),
                        &(struct place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_string(const char *text, size_t size, struct lkg_source *source,
                                       unsigned line, unsigned column)
{
        return text_new(LKG_STRING, text, size, &(struct place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_list(struct lkg_source *source, unsigned line, unsigned column)
{
        return collection_new(sizeof(struct list_value), LKG_LIST,
                              &(struct place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_map(struct lkg_source *source, unsigned line, unsigned column)
{
        return lkg_map_new_over(source, line, column, NULL);
}

struct lkg_value *lkg_map_new_over(struct lkg_source *source, unsigned line, unsigned column,
                                   struct lkg_value *shadowed)
{
        return collection_new(sizeof(struct map_value), LKG_MAP,
                              &(struct place){ source, line, column, shadowed });
}

static struct lkg_value *clone_list(const struct lkg_value *value, struct lkg_value *shadowed)
{
        const struct list_value *from = lkg_as_list(value);
        const struct place place = place_of(value, shadowed);
        struct lkg_value *copy = collection_new(sizeof(*from), LKG_LIST, &place);
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

/* A copy with another shadow. */
static struct lkg_value *clone(const struct lkg_value *value, struct lkg_value *shadowed)
{
        const struct place place = place_of(value, shadowed);
        const struct text_value *t;

        switch ((enum lkg_type)value->type) {
        case LKG_NULL:
                return null_new(&place);
        case LKG_BOOL:
                return bool_new(value->flag, &place);
        case LKG_NUMBER:
        case LKG_STRING:
                t = lkg_as_text(value);
                return text_new(value->type, t->text, t->size, &place);
        case LKG_LIST:
                return clone_list(value, shadowed);
        case LKG_MAP:
                return lkg_map_clone(value, shadowed);
        case _LKG_TYPE_MAX:
                break;
        }
        return NULL;
}

struct lkg_value *lkg_value_clone_shallow(const struct lkg_value *value)
{
        return clone(value, value->over ? *place_over(value) : NULL);
}

struct lkg_value *lkg_value_over(const struct lkg_value *value, const struct lkg_value *shadowed)
{
        return clone(value, (struct lkg_value *)shadowed);
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
        return value->over ? *place_over(value) : NULL;
}

size_t lkg_value_size(const struct lkg_value *value)
{
        return value->type == LKG_LIST  ? lkg_as_list(value)->n
               : value->type == LKG_MAP ? lkg_as_map(value)->n
                                        : 0;
}
