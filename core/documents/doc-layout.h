/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory layout of a value, for doc.c (values and lists) and doc-map.c (maps).
 *
 * A map is a sorted array (byte order of the keys) that is cut into chunks. Maps share their chunks, and one of
 * several owners copies a chunk before it changes it: a copy with one difference costs a pointer for each chunk
 * and one chunk.
 */
#pragma once

#include <assert.h>

#include <lkg/tree.h>

/* A key. Its text follows. */
struct key {
        unsigned refs;
        unsigned size;
        char text[];
};

struct member {
        struct key *key;
        struct lkg_value *value;
};

#define LKG_CHUNK_MAX 64u /* members */

struct chunk {
        unsigned refs;
        uint16_t n, allocated;
        struct member members[];
};

struct lkg_value {
        unsigned refs;
        uint8_t type;
        bool flag;      /* of a bool */
        uint16_t stamp; /* of a list: lkg_list_stamp() */
        unsigned line, column;
        struct lkg_source *source;
        struct lkg_value *over; /* the value that this one has replaced; NULL = none */
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
        struct chunk **chunks; /* none is empty */
        size_t n_chunks, allocated;
        size_t n; /* members */
        /*
         * The chunk of the last lkg_map_at() and the index of its first member: makes a walk by index linear.
         * Trees are used by one thread, so a cache in a const map is fine.
         */
        size_t at_chunk, at_first;
};

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

/* ---- doc-map.c ---- */

/** lkg_map_share() - give the empty map @to the members of @from. */
void lkg_map_share(struct map_value *to, const struct map_value *from);
/** lkg_map_let_go() - drop the members of a map that is being freed. */
void lkg_map_let_go(struct map_value *map);
