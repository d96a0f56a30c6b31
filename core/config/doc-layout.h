/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a value is made of: for doc.c, which knows life, scalars and lists, doc-map.c, which knows maps, doc-key.c, which
 * knows their keys, and doc-memory.c, which all of it comes from.
 *
 * There may be millions of each, so none has a byte that few of them need: what only some have stands before them
 * in memory (the value that one has replaced).
 *
 * A map is a sorted tree (byte order of the keys): leaves of at most LKG_LEAF_MAX members, branches of at most
 * LKG_BRANCH_MAX of the next lower level; most maps are one leaf. Leaves and branches are shared between maps and
 * copied when one of several owners changes its own, so a copy with one difference costs one path from the root to a
 * leaf: the running results of ten thousand layers stay small.
 */
#pragma once

#include <assert.h>

#include "internal.h"

#define LKG_LEAF_MAX   24u
#define LKG_BRANCH_MAX 32u
/* Levels above the leaves. A level more needs many times as many insertions as there can be members in a document. */
#define LKG_HEIGHT_MAX 8u

struct key;

struct member {
        struct key *key;
        struct lkg_value *value;
};

struct lkg_value {
        unsigned refs;
        uint8_t type;
        bool flag : 1;  /* of a bool */
        bool over : 1;  /* it has replaced another value, a pointer to which stands before it */
        uint16_t stamp; /* of a list: lkg_list_stamp(); 0 = none */
        unsigned line, column;
        union {
                struct lkg_source *source;
                struct lkg_value *next_dying; /* only while being freed */
        };
};

struct text_value {
        struct lkg_value head;
        unsigned size;
        char text[];
};

struct list_value {
        struct lkg_value head;
        struct lkg_value **items;
        size_t n, allocated;
};

struct map_value {
        struct lkg_value head;
        struct node *root; /* a leaf when height is 0; NULL = no member */
        size_t n;
        /*
         * Where lkg_map_at() last was: makes a walk by index linear. One thread, so a cache in a const map
         * is fine.
         */
        struct node *hint;
        size_t hint_first;      /* the index of its first member */
        const struct node *put; /* the leaf where the last insertion was, only to be compared */
        unsigned put_at;        /* and the place in it */
        unsigned height;
};

static inline struct text_value *lkg_as_text(const struct lkg_value *value)
{
        assert(value->type == LKG_STRING || value->type == LKG_NUMBER);
        return (struct text_value *)value;
}

static inline struct list_value *lkg_as_list(const struct lkg_value *value)
{
        assert(value->type == LKG_LIST);
        return (struct list_value *)value;
}

static inline struct map_value *lkg_as_map(const struct lkg_value *value)
{
        assert(value->type == LKG_MAP);
        return (struct map_value *)value;
}

/** lkg_value_let_go() - drop one reference; a value without any goes to the work list @dying. */
static inline void lkg_value_let_go(struct lkg_value *value, struct lkg_value **dying)
{
        if (!value || --value->refs > 0)
                return;
        lkg_source_unref(value->source);
        value->next_dying = *dying;
        *dying = value;
}

/* ---- doc-memory.c ---- */

/** lkg_piece_new() - at least @size bytes for a pointer or less, not initialised. NULL = no memory. */
void *lkg_piece_new(size_t size);
/** lkg_piece_free() - @size: as it was asked for; NULL is fine. */
void lkg_piece_free(void *p, size_t size);

/* ---- doc-key.c ---- */

/* What is looked for in a map. */
struct lkg_sought {
        uint64_t head; /* the first eight bytes as a number that sorts like them */
        const char *text;
        size_t size;
};

struct lkg_sought lkg_sought(const char *text, size_t size);
/** lkg_key_get() - one reference to a key of this text, perhaps one that others have. NULL = no memory. */
struct key *lkg_key_get(const char *text, size_t size);
struct key *lkg_key_ref(struct key *key);
void lkg_key_unref(struct key *key);
/** lkg_key_text() - NUL-terminated, and may hold NUL bytes. */
const char *lkg_key_text(const struct key *key, size_t *ret_size);
/** lkg_key_compare() - in byte order: below 0, 0 or above 0. */
int lkg_key_compare(const struct lkg_sought *sought, const struct key *key);

/* ---- doc-map.c ---- */

/** lkg_map_clone() - a map with the members of @value that has replaced @shadowed (may be NULL). NULL = no memory. */
struct lkg_value *lkg_map_clone(const struct lkg_value *value, struct lkg_value *shadowed);
/** lkg_map_free_members() - let go of what a dying map holds. */
void lkg_map_free_members(struct map_value *map, struct lkg_value **dying);

/* ---- doc.c ---- */

/** lkg_map_new_over() - an empty map that has replaced @shadowed (may be NULL). NULL = no memory. */
struct lkg_value *lkg_map_new_over(struct lkg_source *source, unsigned line, unsigned column,
                                   struct lkg_value *shadowed);
