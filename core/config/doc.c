/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value tree.
 *
 * A map is a sorted sequence (byte order of the keys) cut into chunks of at most CHUNK_MAX members. Chunks
 * are shared between maps and copied when one of several owners changes its own, so a copy with one
 * difference costs one chunk and a few pointers: the running results of ten thousand layers stay small. Keys
 * are shared as well.
 *
 * Nothing here recurses on the depth of a document: what a freed value held is freed from a work list that
 * is linked through the dying values themselves, so that freeing needs no memory.
 */
#include <assert.h>

#include "internal.h"

#define CHUNK_MAX 64u

struct key {
        unsigned refs;
        unsigned size;
        char text[];
};

struct member {
        struct key *key;
        struct lkg_value *value;
};

struct chunk {
        unsigned refs;
        unsigned n, allocated;
        struct member members[];
};

struct lkg_value {
        unsigned refs;
        uint8_t type;
        bool flag; /* of a bool */
        unsigned line, column;
        union {
                struct lkg_source *source;
                struct lkg_value *next_dying; /* only while being freed */
        };
        struct lkg_value *shadowed;
};

struct text_value {
        struct lkg_value head;
        size_t size;
        char text[];
};

struct list_value {
        struct lkg_value head;
        struct lkg_value **items;
        size_t n, allocated;
};

struct map_value {
        struct lkg_value head;
        struct chunk **chunks;
        unsigned n_chunks, n_allocated;
        size_t n;
        /*
         * Where lkg_map_at() last was: makes a walk by index linear. One thread, so a cache in a const map
         * is fine.
         */
        unsigned hint_chunk;
        size_t hint_first;
};

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

/* ---- casts ---- */

static struct text_value *as_text(const struct lkg_value *value)
{
        assert(value->type == LKG_STRING || value->type == LKG_NUMBER);
        return (struct text_value *)value;
}

static struct list_value *as_list(const struct lkg_value *value)
{
        assert(value->type == LKG_LIST);
        return (struct list_value *)value;
}

static struct map_value *as_map(const struct lkg_value *value)
{
        assert(value->type == LKG_MAP);
        return (struct map_value *)value;
}

/* ---- keys and chunks ---- */

static struct key *key_new(const char *text, size_t size)
{
        struct key *key = malloc(sizeof(*key) + size + 1);

        if (!key)
                return NULL;
        key->refs = 1;
        key->size = (unsigned)size;
        if (size)
                memcpy(key->text, text, size);
        key->text[size] = '\0';
        return key;
}

static void key_unref(struct key *key)
{
        if (--key->refs == 0)
                free(key);
}

static int key_compare(const char *a, size_t a_size, const struct key *b)
{
        size_t n = a_size < b->size ? a_size : b->size;
        int r = n ? memcmp(a, b->text, n) : 0;

        return r ? r : (a_size > b->size) - (a_size < b->size);
}

/* Drops one reference; a value without any goes to the work list. */
static void let_go(struct lkg_value *value, struct lkg_value **dying)
{
        if (!value || --value->refs > 0)
                return;
        lkg_source_unref(value->source);
        value->next_dying = *dying;
        *dying = value;
}

static void chunk_unref(struct chunk *chunk, struct lkg_value **dying)
{
        if (--chunk->refs > 0)
                return;
        for (unsigned i = 0; i < chunk->n; i++) {
                key_unref(chunk->members[i].key);
                let_go(chunk->members[i].value, dying);
        }
        free(chunk);
}

static struct chunk *chunk_new(unsigned allocated)
{
        struct chunk *chunk = malloc(sizeof(*chunk) + allocated * sizeof(struct member));

        if (chunk)
                *chunk = (struct chunk){ .refs = 1, .allocated = allocated };
        return chunk;
}

/* Makes chunk @c of a map its own, with room for one more member. */
static int chunk_own(struct map_value *map, unsigned c, bool room)
{
        struct chunk *chunk = map->chunks[c], *own;
        unsigned want = chunk->n + (room ? 1 : 0);

        if (chunk->refs == 1 && want <= chunk->allocated)
                return 0;
        if (want > chunk->allocated)
                want = chunk->allocated < 4 ? 4 : 2 * chunk->allocated;
        if (want > CHUNK_MAX)
                want = CHUNK_MAX;
        if (chunk->refs == 1) {
                own = realloc(chunk, sizeof(*chunk) + want * sizeof(struct member));
                if (!own)
                        return -ENOMEM;
                own->allocated = want;
                map->chunks[c] = own;
                return 0;
        }
        own = chunk_new(want);
        if (!own)
                return -ENOMEM;
        own->n = chunk->n;
        memcpy(own->members, chunk->members, chunk->n * sizeof(struct member));
        for (unsigned i = 0; i < own->n; i++) {
                own->members[i].key->refs++;
                own->members[i].value->refs++;
        }
        chunk->refs--; /* was above 1 */
        map->chunks[c] = own;
        return 0;
}

/* Puts an empty slot for a chunk at @c. */
static int chunks_insert(struct map_value *map, unsigned c, struct chunk *chunk)
{
        if (map->n_chunks == map->n_allocated) {
                unsigned n = map->n_allocated ? 2 * map->n_allocated : 1;
                struct chunk **chunks = reallocarray(map->chunks, n, sizeof(*chunks));

                if (!chunks)
                        return -ENOMEM;
                map->chunks = chunks;
                map->n_allocated = n;
        }
        memmove(map->chunks + c + 1, map->chunks + c, (map->n_chunks - c) * sizeof(*map->chunks));
        map->chunks[c] = chunk;
        map->n_chunks++;
        return 0;
}

/* Cuts a full chunk in two; at its end when the new key belongs there, so that sorted input fills chunks. */
static int chunk_split(struct map_value *map, unsigned c, bool at_end)
{
        struct chunk *chunk, *right;
        unsigned keep;
        int r = chunk_own(map, c, false);

        if (r < 0)
                return r;
        chunk = map->chunks[c];
        keep = at_end && c + 1 == map->n_chunks ? chunk->n : chunk->n / 2;
        right = chunk_new(keep == chunk->n ? 8 : CHUNK_MAX);
        if (!right)
                return -ENOMEM;
        r = chunks_insert(map, c + 1, right);
        if (r < 0) {
                free(right);
                return r;
        }
        right->n = chunk->n - keep;
        memcpy(right->members, chunk->members + keep, right->n * sizeof(struct member));
        chunk->n = keep;
        return 0;
}

/* Where @key is (true), or would have to be put (false). */
static bool map_find(const struct map_value *map, const char *key, size_t size, unsigned *ret_c,
                     unsigned *ret_i)
{
        unsigned low = 0, high = map->n_chunks;
        const struct chunk *chunk;

        while (high - low > 1) { /* the last chunk whose first key is not above @key */
                unsigned middle = low + (high - low) / 2;

                if (map->chunks[middle]->n > 0 &&
                    key_compare(key, size, map->chunks[middle]->members[0].key) < 0)
                        high = middle;
                else
                        low = middle;
        }
        *ret_c = low;
        *ret_i = 0;
        if (map->n_chunks == 0)
                return false;
        chunk = map->chunks[low];
        low = 0;
        high = chunk->n;
        while (low < high) {
                unsigned middle = low + (high - low) / 2;
                int r = key_compare(key, size, chunk->members[middle].key);

                if (r == 0) {
                        *ret_i = middle;
                        return true;
                }
                if (r < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        *ret_i = low;
        return false;
}

/* ---- life ---- */

static void free_members(struct lkg_value *value, struct lkg_value **dying)
{
        let_go(value->shadowed, dying);
        if (value->type == LKG_LIST) {
                struct list_value *list = as_list(value);

                for (size_t i = 0; i < list->n; i++)
                        let_go(list->items[i], dying);
                free(list->items);
        } else if (value->type == LKG_MAP) {
                struct map_value *map = as_map(value);

                for (unsigned c = 0; c < map->n_chunks; c++)
                        chunk_unref(map->chunks[c], dying);
                free(map->chunks);
        }
}

struct lkg_value *lkg_value_ref(struct lkg_value *value)
{
        if (value)
                value->refs++;
        return value;
}

struct lkg_value *lkg_value_unref(struct lkg_value *value)
{
        struct lkg_value *dying = NULL;

        let_go(value, &dying);
        while (dying) {
                struct lkg_value *v = dying;

                dying = v->next_dying;
                free_members(v, &dying);
                free(v);
        }
        return NULL;
}

static struct lkg_value *value_new(size_t size, enum lkg_type type, struct lkg_source *source, unsigned line,
                                   unsigned column)
{
        struct lkg_value *value = malloc(size);

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
        t = as_text(value);
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
        const struct list_value *from = as_list(value);
        struct lkg_value *copy = lkg_value_new_list(value->source, value->line, value->column);
        struct list_value *to;

        if (!copy || from->n == 0)
                return copy;
        to = as_list(copy);
        to->items = reallocarray(NULL, from->n, sizeof(*to->items));
        if (!to->items)
                return lkg_value_unref(copy);
        to->n = to->allocated = from->n;
        for (size_t i = 0; i < from->n; i++)
                to->items[i] = lkg_value_ref(from->items[i]);
        return copy;
}

static struct lkg_value *clone_map(const struct lkg_value *value)
{
        const struct map_value *from = as_map(value);
        struct lkg_value *copy = lkg_value_new_map(value->source, value->line, value->column);
        struct map_value *to;

        if (!copy || from->n_chunks == 0)
                return copy;
        to = as_map(copy);
        to->chunks = reallocarray(NULL, from->n_chunks, sizeof(*to->chunks));
        if (!to->chunks)
                return lkg_value_unref(copy);
        to->n_chunks = to->n_allocated = from->n_chunks;
        to->n = from->n;
        for (unsigned c = 0; c < from->n_chunks; c++) {
                to->chunks[c] = from->chunks[c];
                to->chunks[c]->refs++;
        }
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
                t = as_text(value);
                return text_new(value->type, t->text, t->size, value->source, value->line, value->column);
        case LKG_LIST:
                return clone_list(value);
        case LKG_MAP:
                return clone_map(value);
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
        struct list_value *list = as_list(value);

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
        memmove(list->items + i + 1, list->items + i, (list->n - i) * sizeof(*list->items));
        list->items[i] = item;
        list->n++;
        return 0;
}

int lkg_list_append(struct lkg_value *list, struct lkg_value *item)
{
        return lkg_list_insert(list, as_list(list)->n, item);
}

void lkg_list_set(struct lkg_value *value, size_t i, struct lkg_value *item)
{
        struct list_value *list = as_list(value);

        assert(value->refs == 1 && i < list->n);
        lkg_value_unref(list->items[i]);
        list->items[i] = item;
}

void lkg_list_remove(struct lkg_value *value, size_t i)
{
        struct list_value *list = as_list(value);

        assert(value->refs == 1 && i < list->n);
        lkg_value_unref(list->items[i]);
        memmove(list->items + i, list->items + i + 1, (list->n - i - 1) * sizeof(*list->items));
        list->n--;
}

struct lkg_value *lkg_list_get(const struct lkg_value *list, size_t i)
{
        return i < as_list(list)->n ? as_list(list)->items[i] : NULL;
}

/* ---- maps ---- */

static int map_insert(struct map_value *map, unsigned c, unsigned i, struct key *key, struct lkg_value *item)
{
        struct chunk *chunk;
        int r;

        if (map->n_chunks == 0) {
                chunk = chunk_new(4);
                if (!chunk)
                        return -ENOMEM;
                r = chunks_insert(map, 0, chunk);
                if (r < 0) {
                        free(chunk);
                        return r;
                }
        } else if (map->chunks[c]->n == CHUNK_MAX) {
                r = chunk_split(map, c, i == CHUNK_MAX);
                if (r < 0)
                        return r;
                if (i >= map->chunks[c]->n) {
                        i -= map->chunks[c]->n;
                        c++;
                }
        }
        r = chunk_own(map, c, true);
        if (r < 0)
                return r;
        chunk = map->chunks[c];
        memmove(chunk->members + i + 1, chunk->members + i, (chunk->n - i) * sizeof(struct member));
        chunk->members[i] = (struct member){ key, item };
        chunk->n++;
        map->n++;
        return 0;
}

int lkg_map_set(struct lkg_value *value, const char *key, size_t key_size, struct lkg_value *item)
{
        struct map_value *map = as_map(value);
        struct key *k = NULL;
        unsigned c, i;
        int r;

        assert(value->refs == 1);
        if (!item)
                return -ENOMEM;
        map->hint_chunk = 0;
        map->hint_first = 0;
        if (map_find(map, key, key_size, &c, &i)) {
                r = chunk_own(map, c, false);
                if (r < 0) {
                        lkg_value_unref(item);
                        return r;
                }
                lkg_value_unref(map->chunks[c]->members[i].value);
                map->chunks[c]->members[i].value = item;
                return 1;
        }
        k = key_size < UINT32_MAX ? key_new(key, key_size) : NULL;
        r = k ? map_insert(map, c, i, k, item) : -ENOMEM;
        if (r < 0) {
                if (k)
                        key_unref(k);
                lkg_value_unref(item);
        }
        return r;
}

/* The member that lkg_map_at() would return. */
static struct member *member_at(struct map_value *map, size_t i)
{
        if (i < map->hint_first) {
                map->hint_chunk = 0;
                map->hint_first = 0;
        }
        while (i - map->hint_first >= map->chunks[map->hint_chunk]->n)
                map->hint_first += map->chunks[map->hint_chunk++]->n;
        return &map->chunks[map->hint_chunk]->members[i - map->hint_first];
}

int lkg_map_append_like(struct lkg_value *value, const struct lkg_value *other, size_t i,
                        struct lkg_value *item)
{
        struct map_value *map = as_map(value);
        struct key *key;
        unsigned c = map->n_chunks ? map->n_chunks - 1 : 0;
        int r;

        assert(value->refs == 1);
        if (!item)
                return -ENOMEM;
        key = member_at(as_map(other), i)->key;
        assert(map->n == 0 ||
               key_compare(key->text, key->size, map->chunks[c]->members[map->chunks[c]->n - 1].key) > 0);
        r = map_insert(map, c, map->n_chunks ? map->chunks[c]->n : 0, key, item);
        if (r < 0)
                lkg_value_unref(item);
        else
                key->refs++;
        return r;
}

static int map_remove_in(struct map_value *map, unsigned c, unsigned i)
{
        struct chunk *chunk;

        if (chunk_own(map, c, false) < 0)
                return -ENOMEM;
        chunk = map->chunks[c];
        map->hint_chunk = 0;
        map->hint_first = 0;
        key_unref(chunk->members[i].key);
        lkg_value_unref(chunk->members[i].value);
        memmove(chunk->members + i, chunk->members + i + 1, (chunk->n - i - 1) * sizeof(struct member));
        chunk->n--;
        map->n--;
        if (chunk->n == 0) { /* no empty chunks: the binary search looks at first keys */
                free(chunk);
                memmove(map->chunks + c, map->chunks + c + 1,
                        (map->n_chunks - c - 1) * sizeof(*map->chunks));
                map->n_chunks--;
        }
        return 1;
}

int lkg_map_remove(struct lkg_value *value, const char *key, size_t key_size)
{
        struct map_value *map = as_map(value);
        unsigned c, i;

        assert(value->refs == 1);
        return map_find(map, key, key_size, &c, &i) ? map_remove_in(map, c, i) : 0;
}

struct lkg_value *lkg_map_get_n(const struct lkg_value *map, const char *key, size_t key_size)
{
        unsigned c, i;

        return map_find(as_map(map), key, key_size, &c, &i) ? as_map(map)->chunks[c]->members[i].value
                                                            : NULL;
}

struct lkg_value *lkg_map_get(const struct lkg_value *map, const char *key)
{
        return lkg_map_get_n(map, key, strlen(key));
}

struct lkg_value *lkg_map_at(const struct lkg_value *value, size_t i, const char **ret_key,
                             size_t *ret_key_size)
{
        struct map_value *map = as_map(value);
        struct member *member;

        if (i >= map->n)
                return NULL;
        member = member_at(map, i);
        if (ret_key)
                *ret_key = member->key->text;
        if (ret_key_size)
                *ret_key_size = member->key->size;
        return member->value;
}

const char *lkg_map_get_string(const struct lkg_value *map, const char *key)
{
        const struct lkg_value *value = lkg_map_get(map, key);

        return value && value->type == LKG_STRING ? as_text(value)->text : NULL;
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
        const struct text_value *t = as_text(value);

        if (ret_size)
                *ret_size = t->size;
        return t->text;
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
        return value->type == LKG_LIST ? as_list(value)->n : value->type == LKG_MAP ? as_map(value)->n : 0;
}
