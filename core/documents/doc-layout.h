/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory layout of a value, for doc.c (scalars, lists), doc-map.c (maps), doc-key.c (keys), doc-pack.c (packed maps),
 * doc-life.c (references to all of these) and doc-memory.c (allocation).
 *
 * There may be millions of each, so none has a byte that only a few of them need. Only these files know the
 * kinds of values: whole values, values in a pack, and views of one of these.
 *
 * A map is a sorted tree (byte order of the keys): leaves of at most LKG_LEAF_MAX members, branches of at
 * most LKG_BRANCH_MAX of the next lower level; most maps are one leaf. Leaves and branches are shared
 * between maps and copied when one of several owners changes its map, so a copy with one difference costs
 * one path from the root to a leaf: the running results of ten thousand layers stay small.
 */
#pragma once

#include <assert.h>
#include <endian.h>

#include <lkg/tree.h>

#define LKG_LEAF_MAX   24u
#define LKG_BRANCH_MAX 32u
#define LKG_PACKED     UINT16_MAX
/*
 * Levels above the leaves. One more level would need many times as many insertions as a document can have
 * members.
 */
#define LKG_HEIGHT_MAX 8u

struct member {
        struct key *key;
        struct lkg_value *value;
};

/* A key. Its text follows directly. */
struct key {
        unsigned packed : 1;  /* it is part of a pack, which counts the references */
        unsigned shared : 1;  /* is in the table: found by its text */
        unsigned popular : 1; /* there was one of this text before */
        unsigned size : 29;   /* of one in a pack: bytes from the pack's beginning << 8 | size */
};

/* A key that is in no pack. */
struct whole_key {
        unsigned refs;
        struct key head;
};

/* The start of every value. A value in a pack has only this, its place and its text. */
struct lkg_value {
        uint8_t type : 4;
        uint8_t flag : 1;   /* of a bool */
        uint8_t over : 1;   /* it has replaced another value: lkg_value_shadowed() */
        uint8_t packed : 1; /* it is a struct packed_value */
        uint8_t view : 1;   /* it is a struct view_value */
        uint8_t size;       /* of the text of one in a pack */
        uint16_t
                stamp; /* of a list: lkg_list_stamp(), 0 = none; of one in a pack: bytes from its beginning */
};

/* A whole value. If it has replaced another value, a pointer to that one precedes it. */
struct whole_value {
        struct lkg_value head;
        unsigned refs;
        union {
                struct lkg_source *source;
                struct whole_value *next_dying; /* only while being freed */
        };
        unsigned line, column;
};

/* A scalar of a layer in a merge that has replaced another value. */
struct view_value {
        struct lkg_value head;
        unsigned refs;
        union {
                struct lkg_value *of;           /* the value that is seen: whole or in a pack */
                struct whole_value *next_dying; /* only while being freed */
        };
        struct lkg_value *over;
};

struct packed_value {
        struct lkg_value head;
        unsigned line : 22;
        unsigned column : 10;
        char text[];
};

struct text_value {
        struct whole_value head;
        unsigned size;
        char text[];
};

struct list_value {
        struct whole_value head;
        struct lkg_value **items;
        size_t n, allocated;
};

/* A part of a map: a leaf, or a branch if its level is above 0. The level is known from the path to it. */
struct node {
        unsigned refs;         /* of a pack: with those to its values and keys */
        uint16_t n, allocated; /* LKG_PACKED: a leaf that is a pack */
};

/*
 * A leaf that no longer changes, in one piece: its keys and values one after the other, each at a multiple
 * of 4. If a key or value is too big or shared, the pack contains a pointer to it.
 */
struct pack {
        struct node node;
        struct lkg_source *source; /* of all values in it */
        uint16_t size : 15;
        uint16_t plain : 1; /* all values are in it, and none is null */
        uint16_t at[]; /* of a member: bytes from the beginning, and flags: LKG_KEY_AWAY, LKG_VALUE_AWAY */
};

struct leaf {
        struct node node;
        struct member members[];
};

struct child {
        struct node *node;
        const struct key *first; /* its lowest */
        size_t n;                /* members below it */
};

struct branch {
        struct node node;
        struct child children[];
};

struct map_value {
        struct whole_value head;
        struct node *root; /* a leaf when height is 0; NULL = no member */
        size_t n;
        /*
         * The last position of lkg_map_at(): makes a walk by index linear. Trees are used by one thread, so
         * a cache in a const map is fine.
         */
        struct node *hint;
        size_t hint_first;      /* the index of its first member */
        const struct node *put; /* the leaf where the last insertion was, only to be compared */
        unsigned put_at;        /* and the place in it */
        unsigned height;
};

static inline struct whole_value *lkg_as_whole(const struct lkg_value *value)
{
        assert(!value->packed && !value->view);
        return (struct whole_value *)value;
}

static inline struct view_value *lkg_as_view(const struct lkg_value *value)
{
        assert(value->view);
        return (struct view_value *)value;
}

static inline struct packed_value *lkg_as_packed(const struct lkg_value *value)
{
        assert(value->packed);
        return (struct packed_value *)value;
}

static inline struct text_value *lkg_as_text(const struct lkg_value *value)
{
        assert(value->type == LKG_STRING || value->type == LKG_NUMBER);
        return (struct text_value *)value;
}

static inline bool lkg_value_has_text(const struct lkg_value *value)
{
        return value->type == LKG_STRING || value->type == LKG_NUMBER;
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

/** lkg_place_over() - the location of the pointer to the value that a whole value has replaced. */
static inline struct lkg_value **lkg_place_over(const struct whole_value *value)
{
        return (struct lkg_value **)(uintptr_t)value - 1;
}

/** lkg_text_value_size() - includes the NUL; small texts begin where the fields end. */
static inline size_t lkg_text_value_size(size_t size)
{
        size_t whole = offsetof(struct text_value, text) + size + 1;

        return whole < sizeof(struct text_value) ? sizeof(struct text_value) : whole;
}

static inline struct whole_key *lkg_whole_key(const struct key *key)
{
        return (struct whole_key *)((uintptr_t)key - offsetof(struct whole_key, head));
}

static inline struct pack *lkg_key_pack(const struct key *key)
{
        return (struct pack *)((uintptr_t)key - (key->size >> 8));
}

/* Flags of pack.at */
#define LKG_KEY_AWAY   1u /* a pointer to it is there */
#define LKG_VALUE_AWAY 2u
#define LKG_AWAY       3u

static inline size_t lkg_padded(size_t size)
{
        return (size + 3) & ~(size_t)3;
}

/* Comparisons read eight bytes. */
static inline size_t lkg_packed_key_size(size_t text_size)
{
        return lkg_padded(sizeof(struct key) +
                          (text_size + 1 < sizeof(uint64_t) ? sizeof(uint64_t) : text_size + 1));
}

/* ---- doc-pack.c ---- */

static inline bool lkg_is_pack(const struct node *node)
{
        return node->allocated == LKG_PACKED;
}

static inline struct pack *lkg_pack_of(const struct lkg_value *value)
{
        return (struct pack *)((uintptr_t)value - lkg_as_packed(value)->head.stamp);
}

/**
 * lkg_pack_new() - make a pack of as many of the first @n members of a map as fit. NULL = no memory.
 * @members: the references stay the caller's, and there must be no others: the values may move into the pack
 * @source:  of most of the values
 */
struct pack *lkg_pack_new(const struct member *members, unsigned n, struct lkg_source *source);
/* ---- doc.c ---- */

/** lkg_map_new_over() - make an empty map that has replaced @shadowed (may be NULL). NULL = no memory. */
struct lkg_value *lkg_map_new_over(struct lkg_source *source, unsigned line, unsigned column,
                                   struct lkg_value *shadowed);

/* ---- doc-memory.c ---- */

/**
 * lkg_piece_new() - allocate at least @size bytes, aligned for a pointer at most, not initialised. NULL = no
 * memory.
 */
void *lkg_piece_new(size_t size);
/** lkg_piece_free() - @size: the requested size; NULL is fine. */
void lkg_piece_free(void *p, size_t size);

/* ---- doc-key.c ---- */

/* A key to look up in a map. */
struct lkg_sought {
        uint64_t head; /* the first eight bytes as a number that sorts like them */
        const char *text;
        size_t size;
};

struct lkg_sought lkg_sought(const char *text, size_t size);
/** lkg_key_get() - return a reference to a key with this text; it may be shared. NULL = no memory. */
struct key *lkg_key_get(const char *text, size_t size);
/** lkg_key_forget() - free a key without references. */
void lkg_key_forget(struct key *key);
/** lkg_key_is_alone() - does only one map use this key, and is it likely to stay so? */
bool lkg_key_is_alone(const struct key *key);
static inline size_t lkg_key_size(const struct key *key)
{
        return key->packed ? key->size & UINT8_MAX : key->size;
}
/** lkg_key_text() - NUL-terminated, and may contain NUL bytes. At least eight bytes are readable. */
static inline const char *lkg_key_text(const struct key *key, size_t *ret_size)
{
        if (ret_size)
                *ret_size = lkg_key_size(key);
        return (const char *)(key + 1);
}
/** lkg_text_head() - the first eight bytes. */
static inline uint64_t lkg_text_head(const char *text)
{
        uint64_t head;

        memcpy(&head, text, sizeof(head));
        return be64toh(head);
}
/** lkg_key_compare_rest() - lkg_key_compare() of two keys whose heads are equal. */
int lkg_key_compare_rest(const struct lkg_sought *sought, const struct key *key);
/**
 * lkg_key_compare() - in byte order: below 0, 0 or above 0. Most keys differ in their first bytes; most of
 * the others are the same key.
 */
static inline int lkg_key_compare(const struct lkg_sought *sought, const struct key *key)
{
        uint64_t head = lkg_text_head(lkg_key_text(key, NULL));

        return sought->head < head ? -1 : sought->head > head ? 1 : lkg_key_compare_rest(sought, key);
}

/* ---- parts of maps ---- */

/* A part whose members may be changed. */
static inline struct leaf *lkg_as_leaf(struct node *node)
{
        return (struct leaf *)node;
}

static inline struct pack *lkg_as_pack(struct node *node)
{
        return (struct pack *)node;
}

static inline struct branch *lkg_as_branch(struct node *node)
{
        return (struct branch *)node;
}

static inline size_t lkg_part_size(unsigned level, unsigned allocated)
{
        return level > 0 ? sizeof(struct branch) + allocated * sizeof(struct child)
                         : sizeof(struct leaf) + allocated * sizeof(struct member);
}

static inline void lkg_part_free(struct node *node, unsigned level)
{
        lkg_piece_free(node, lkg_part_size(level, node->allocated));
}

/* ---- doc-life.c ---- */

/** lkg_pack_member() - borrowed. */
struct member lkg_pack_member(const struct pack *pack, unsigned i);
/**
 * lkg_pack_let_go() - drop one reference; values that are freed with the pack go to the work list @dying.
 */
void lkg_pack_let_go(struct pack *pack, struct whole_value **dying);
struct key *lkg_key_ref(struct key *key);
void lkg_key_unref(struct key *key);
/**
 * lkg_key_let_go() - the same for a key that is not NULL; values that are freed with it go to the work list
 * @dying.
 */
void lkg_key_let_go(struct key *key, struct whole_value **dying);
/**
 * lkg_part_unref() - drop a reference to a part of a map and free the parts below that only it uses.
 * Recurses to the leaves: LKG_HEIGHT_MAX levels at most.
 */
void lkg_part_unref(struct node *node, unsigned level, struct whole_value **dying);
/** lkg_values_free() - free the work list, and the values that are freed with it. */
void lkg_values_free(struct whole_value *dying);

/** lkg_value_seen_let_go() - lkg_value_let_go() for the value that a view shows. */
void lkg_value_seen_let_go(struct lkg_value *value, struct whole_value **dying);

/** lkg_value_let_go() - drop one reference; a value without references goes to the work list @dying. */
static inline void lkg_value_let_go(struct lkg_value *value, struct whole_value **dying)
{
        struct whole_value *whole = (struct whole_value *)value;

        if (value && value->packed) {
                lkg_pack_let_go(lkg_pack_of(value), dying);
                return;
        }
        if (!value || --whole->refs > 0)
                return;
        if (value->view) /* of a value that is not a view, so this recurses once at most */
                lkg_value_seen_let_go(lkg_as_view(value)->of, dying);
        else
                lkg_source_unref(whole->source);
        whole->next_dying = *dying;
        *dying = whole;
}
