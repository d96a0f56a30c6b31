/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value tree: scalars, lists, copies, and reading of any value. doc-map.c has the maps, doc-life.c the
 * references.
 */
#include "doc-layout.h"

#include <lkg/array.h>

#define TYPE_MASK 15u

static const char *const type_names[_LKG_TYPE_MAX] = {
        [LKG_NULL] = "null",     [LKG_BOOL] = "bool", [LKG_NUMBER] = "number",
        [LKG_STRING] = "string", [LKG_LIST] = "list", [LKG_MAP] = "map",
};

const char *lkg_type_name(enum lkg_type type)
{
        return (unsigned)type < _LKG_TYPE_MAX ? type_names[type] : "?";
}

/* Return the value that has type, position and text. */
static const struct lkg_value *seen(const struct lkg_value *value)
{
        return value->view ? lkg_as_view(value)->of : value;
}

/* The source of a value, and the value that it has replaced. */
struct value_place {
        struct lkg_source *source;
        unsigned line, column;
        struct lkg_value *over;
};

static struct value_place place_of(const struct lkg_value *value, struct lkg_value *over)
{
        return (struct value_place){ lkg_value_source_mut(value), lkg_value_line(value),
                                     lkg_value_column(value), over };
}

static struct lkg_value *value_new(size_t size, enum lkg_type type, const struct value_place *place)
{
        size_t before = place->over ? sizeof(place->over) : 0;
        char *piece = lkg_piece_new(before + size);
        struct whole_value *value;

        if (!piece)
                return NULL;
        value = (struct whole_value *)(void *)(piece + before);
        *value = (struct whole_value){ .head = { .type = type & TYPE_MASK, .over = place->over != NULL },
                                       .refs = 1,
                                       .line = place->line,
                                       .column = place->column };
        value->source = lkg_source_ref(place->source);
        if (place->over)
                *lkg_place_over(value) = lkg_value_ref(place->over);
        return &value->head;
}

static struct lkg_value *null_new(const struct value_place *place)
{
        return value_new(sizeof(struct whole_value), LKG_NULL, place);
}

static struct lkg_value *bool_new(bool b, const struct value_place *place)
{
        struct lkg_value *value = value_new(sizeof(struct whole_value), LKG_BOOL, place);

        if (value)
                value->flag = b;
        return value;
}

static struct lkg_value *text_new(enum lkg_type type, const char *text, size_t size,
                                  const struct value_place *place)
{
        struct text_value *t;

        if (size >= UINT32_MAX)
                return NULL;
        t = (struct text_value *)value_new(lkg_text_value_size(size), type, place);
        if (!t)
                return NULL;
        t->size = (unsigned)size;
        if (size)
                memcpy(t->text, text, size);
        t->text[size] = '\0';
        return &t->head.head;
}

static struct lkg_value *collection_new(size_t size, enum lkg_type type, const struct value_place *place)
{
        struct lkg_value *value = value_new(size, type, place);

        if (value)
                memset((char *)value + sizeof(struct whole_value), 0, size - sizeof(struct whole_value));
        return value;
}

struct lkg_value *lkg_value_new_null(struct lkg_source *source, unsigned line, unsigned column)
{
        return null_new(&(struct value_place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_bool(bool b, struct lkg_source *source, unsigned line, unsigned column)
{
        return bool_new(b, &(struct value_place){ source, line, column, NULL });
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
        return collection_new(sizeof(struct list_value), LKG_LIST,
                              &(struct value_place){ source, line, column, NULL });
}

struct lkg_value *lkg_value_new_map(struct lkg_source *source, unsigned line, unsigned column)
{
        return lkg_map_new_over(source, line, column, NULL);
}

struct lkg_value *lkg_map_new_over(struct lkg_source *source, unsigned line, unsigned column,
                                   struct lkg_value *shadowed)
{
        return collection_new(sizeof(struct map_value), LKG_MAP,
                              &(struct value_place){ source, line, column, shadowed });
}

static struct lkg_value *clone_list(const struct lkg_value *value, struct lkg_value *shadowed)
{
        const struct list_value *from = lkg_as_list(value);
        const struct value_place place = place_of(value, shadowed);
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

static struct lkg_value *clone_map(const struct lkg_value *value, struct lkg_value *shadowed)
{
        const struct map_value *from = lkg_as_map(value);
        struct lkg_value *copy =
                lkg_map_new_over(from->head.source, from->head.line, from->head.column, shadowed);

        if (!copy || !from->root)
                return copy;
        from->root->refs++;
        lkg_as_map(copy)->root = from->root;
        lkg_as_map(copy)->height = from->height;
        lkg_as_map(copy)->n = from->n;
        return copy;
}

/* Copy a value, with another shadow. */
static struct lkg_value *clone(const struct lkg_value *value, struct lkg_value *shadowed)
{
        const struct value_place place = place_of(value, shadowed);
        const char *text;
        size_t size;

        switch ((enum lkg_type)value->type) {
        case LKG_NULL:
                return null_new(&place);
        case LKG_BOOL:
                return bool_new(value->flag, &place);
        case LKG_NUMBER:
        case LKG_STRING:
                text = lkg_value_text(value, &size);
                return text_new(value->type, text, size, &place);
        case LKG_LIST:
                return clone_list(value, shadowed);
        case LKG_MAP:
                return clone_map(value, shadowed);
        case _LKG_TYPE_MAX:
                break;
        }
        return NULL;
}

struct lkg_value *lkg_value_clone_shallow(const struct lkg_value *value)
{
        return clone(value, (struct lkg_value *)lkg_value_shadowed(value));
}

/* Never larger than a copy, and mostly smaller. */
static struct lkg_value *view_new(const struct lkg_value *of, const struct lkg_value *shadowed)
{
        struct view_value *view = lkg_piece_new(sizeof(*view));

        if (!view)
                return NULL;
        of = seen(of);
        *view = (struct view_value){ .head = { .type = of->type, .flag = of->flag, .over = 1, .view = 1 },
                                     .refs = 1 };
        view->of = lkg_value_ref((struct lkg_value *)of);
        view->over = lkg_value_ref((struct lkg_value *)shadowed);
        return &view->head;
}

struct lkg_value *lkg_value_over(const struct lkg_value *value, const struct lkg_value *shadowed)
{
        if (value->type == LKG_LIST || value->type == LKG_MAP)
                return clone(value, (struct lkg_value *)shadowed);
        return view_new(value, shadowed);
}

void lkg_value_place(struct lkg_value *value, unsigned line, unsigned column)
{
        struct whole_value *whole = lkg_as_whole(value);

        assert(whole->refs == 1);
        whole->line = line;
        whole->column = column;
}

/* ---- lists ---- */

int lkg_list_insert(struct lkg_value *value, size_t i, struct lkg_value *item)
{
        struct list_value *list = lkg_as_list(value);

        assert(list->head.refs == 1 && i <= list->n);
        if (!item)
                return -ENOMEM;
        if (LKG_RESERVE(list->items, list->n, list->allocated) < 0) {
                lkg_value_unref(item);
                return -ENOMEM;
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

        assert(list->head.refs == 1 && i < list->n);
        value->stamp = 0;
        lkg_value_unref(list->items[i]);
        list->items[i] = item;
}

void lkg_list_remove(struct lkg_value *value, size_t i)
{
        struct list_value *list = lkg_as_list(value);

        assert(list->head.refs == 1 && i < list->n);
        value->stamp = 0;
        lkg_value_unref(list->items[i]);
        memmove(list->items + i, list->items + i + 1, (list->n - i - 1) * sizeof(*list->items));
        list->n--;
}

void lkg_list_stamp(const struct lkg_value *list, uint16_t stamp)
{
        lkg_as_list(list)->head.head.stamp = stamp;
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
        bool has_text = lkg_value_has_text(value);

        value = seen(value);
        if (ret_size)
                *ret_size = !has_text ? 0 : value->packed ? value->size : lkg_as_text(value)->size;
        return !has_text ? "" : value->packed ? lkg_as_packed(value)->text : lkg_as_text(value)->text;
}

struct lkg_source *lkg_value_source_mut(const struct lkg_value *value)
{
        value = seen(value);
        return value->packed ? lkg_pack_of(value)->source : lkg_as_whole(value)->source;
}

const struct lkg_source *lkg_value_source(const struct lkg_value *value)
{
        return lkg_value_source_mut(value);
}

unsigned lkg_value_line(const struct lkg_value *value)
{
        value = seen(value);
        return value->packed ? lkg_as_packed(value)->line : lkg_as_whole(value)->line;
}

unsigned lkg_value_column(const struct lkg_value *value)
{
        value = seen(value);
        return value->packed ? lkg_as_packed(value)->column : lkg_as_whole(value)->column;
}

struct lkg_where lkg_where_of(const struct lkg_value *value)
{
        const struct lkg_source *source;

        if (!value)
                return (struct lkg_where){ 0 };
        value = seen(value);
        source = lkg_value_source(value);
        return (struct lkg_where){
                .file = source && *source->file ? source->file : NULL,
                .line = lkg_value_line(value),
                .column = lkg_value_column(value),
        };
}

const struct lkg_value *lkg_value_shadowed(const struct lkg_value *value)
{
        return !value->over  ? NULL
               : value->view ? lkg_as_view(value)->over
                             : *lkg_place_over(lkg_as_whole(value));
}

size_t lkg_value_size(const struct lkg_value *value)
{
        return value->type == LKG_LIST  ? lkg_as_list(value)->n
               : value->type == LKG_MAP ? lkg_as_map(value)->n
                                        : 0;
}
