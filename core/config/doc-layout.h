/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a value is made of: for doc.c, which knows life, scalars and lists, doc-map.c, which knows maps, and
 * doc-memory.c, which all of it comes from.
 *
 * A map is a sorted sequence (byte order of the keys) cut into chunks of at most LKG_CHUNK_MAX members.
 * Chunks are shared between maps and copied when one of several owners changes its own, so a copy with one
 * difference costs one chunk and a few pointers: the running results of ten thousand layers stay small. Keys
 * are shared as well.
 */
#pragma once

#include <assert.h>

#include "internal.h"

#define LKG_CHUNK_MAX 24u

struct key {
        uint64_t head;    /* the first eight bytes as a number that sorts like them */
        struct key *next; /* of those with a hash in common */
        unsigned refs;
        unsigned size;
        unsigned hash;
        bool shared; /* found by whoever looks for its text */
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
        bool flag;      /* of a bool */
        uint16_t stamp; /* of a list: lkg_list_stamp(); 0 = none */
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
        struct chunk **chunks; /* &only, or owned */
        struct chunk *only;
        unsigned n_chunks, n_allocated;
        size_t n;
        /*
         * Where lkg_map_at() last was: makes a walk by index linear. One thread, so a cache in a const map
         * is fine.
         */
        unsigned hint_chunk;
        size_t hint_first;
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

/** lkg_piece_new() - at least @size bytes, not initialised. NULL = no memory. */
void *lkg_piece_new(size_t size);
/** lkg_piece_free() - @size: as it was asked for; NULL is fine. */
void lkg_piece_free(void *p, size_t size);
/** lkg_map_clone() - a map with the chunks of @value, without its shadow. NULL = no memory. */
struct lkg_value *lkg_map_clone(const struct lkg_value *value);
/** lkg_map_free_members() - let go of what a dying map holds. */
void lkg_map_free_members(struct map_value *map, struct lkg_value **dying);
