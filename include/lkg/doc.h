/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value tree: the meaning of a YAML or JSON document, and the position of each part of it.
 *
 * A value is immutable and reference counted once it is built; trees share subtrees, so a merge costs the
 * change and not the document. References are not atomic, and trees share their keys: all trees of a process
 * belong to one thread (the engine's, or the tool's).
 *
 * Every value knows its source, line and column. A merged leaf also knows the value it replaced
 * (lkg_value_shadowed), which may itself have replaced another: the chain is what `origin` and `blame`
 * print.
 */
#pragma once

#include <lkg/error.h>

enum lkg_type {
        LKG_NULL,
        LKG_BOOL,
        LKG_NUMBER, /* exact: kept as its canonical JSON text (Go's encoding/json form), never as a double */
        LKG_STRING,
        LKG_LIST,
        LKG_MAP,
        _LKG_TYPE_MAX
};

/* One source document. Shared by all its values. */
struct lkg_source {
        unsigned refs;
        char *layer; /* role and name as shown to users, e.g. `drop-in 10-node.conf` */
        char *file; /* the path that a user would edit, e.g. `/etc/kubernetes/kubelet.conf.d/10-node.conf` */
};

struct lkg_source *lkg_source_new(const char *layer, const char *file);
struct lkg_source *lkg_source_ref(struct lkg_source *source);
struct lkg_source *lkg_source_unref(struct lkg_source *source);

struct lkg_value;

struct lkg_value *lkg_value_ref(struct lkg_value *value);
struct lkg_value *lkg_value_unref(struct lkg_value *value); /* NULL is fine; returns NULL */
static inline void lkg_value_unrefp(struct lkg_value **value)
{
        *value = lkg_value_unref(*value);
}

/* Builders; @source may be NULL. Each returns one reference or NULL (no memory). Text is copied. */
struct lkg_value *lkg_value_new_null(struct lkg_source *source, unsigned line, unsigned column);
struct lkg_value *lkg_value_new_bool(bool b, struct lkg_source *source, unsigned line, unsigned column);
struct lkg_value *lkg_value_new_number(const char *json_text, struct lkg_source *source, unsigned line,
                                       unsigned column);
struct lkg_value *lkg_value_new_string(const char *text, size_t size, struct lkg_source *source,
                                       unsigned line, unsigned column);
struct lkg_value *lkg_value_new_list(struct lkg_source *source, unsigned line, unsigned column);
struct lkg_value *lkg_value_new_map(struct lkg_source *source, unsigned line, unsigned column);

/*
 * Only for a list or map that has exactly one reference. Both take over the reference to @item, even on
 * failure.
 */
int lkg_list_append(struct lkg_value *list, struct lkg_value *item);
/** lkg_map_set() - add or replace @key. Return: 0; 1: an earlier value was replaced; -ENOMEM. */
int lkg_map_set(struct lkg_value *map, const char *key, size_t key_size, struct lkg_value *item);
/** lkg_map_remove() - drop @key. Return: 1 if it was there, else 0; -ENOMEM. */
int lkg_map_remove(struct lkg_value *map, const char *key, size_t key_size);
/** lkg_value_clone_shallow() - a new list or map (one reference) with shared members, to be changed. */
struct lkg_value *lkg_value_clone_shallow(const struct lkg_value *value);

/*
 * Reading. A document may have any value under a name: reading a value of the wrong type finds nothing
 * (NULL, "", 0), so a wrong document can be reported as a finding and never ends the program. The builders
 * above assert, because only the code that has built a value changes it.
 */
enum lkg_type lkg_value_type(const struct lkg_value *value);
const char *lkg_type_name(enum lkg_type type); /* "null", "bool", "number", "string", "list", "map" */
bool lkg_value_bool(const struct lkg_value *value);
/**
 * lkg_value_text() - text of a number or string (NUL-terminated, but may contain NUL bytes); "" for anything
 * else.
 */
const char *lkg_value_text(const struct lkg_value *value, size_t *ret_size);
const struct lkg_source *lkg_value_source(const struct lkg_value *value);
unsigned lkg_value_line(const struct lkg_value *value);
unsigned lkg_value_column(const struct lkg_value *value);
/** lkg_where_of() - the position of a value, for findings; @value may be NULL. */
struct lkg_where lkg_where_of(const struct lkg_value *value);
/** lkg_value_shadowed() - the value this one replaced in a lower layer, or NULL. Borrowed. */
const struct lkg_value *lkg_value_shadowed(const struct lkg_value *value);

size_t lkg_value_size(const struct lkg_value *value);                        /* members of a list or map */
struct lkg_value *lkg_list_get(const struct lkg_value *list, size_t i);      /* borrowed or NULL */
struct lkg_value *lkg_map_get(const struct lkg_value *map, const char *key); /* borrowed or NULL */
/** lkg_map_at() - member @i in byte order of the keys. Borrowed; NULL = there is none, and @ret_key is unchanged. */
struct lkg_value *lkg_map_at(const struct lkg_value *map, size_t i, const char **ret_key,
                             size_t *ret_key_size);
/** lkg_map_get_string() - text of a string member, or NULL; NULL also if it contains a NUL byte. */
const char *lkg_map_get_string(const struct lkg_value *map, const char *key);

/** lkg_value_equal() - same meaning (type, text, members); origins are not compared. */
bool lkg_value_equal(const struct lkg_value *a, const struct lkg_value *b);

/**
 * lkg_value_get_pointer() - follow a dotted field (`authentication.anonymous.enabled`) or, if it starts with
 * '/', a JSON pointer (RFC 6901). Borrowed or NULL.
 */
struct lkg_value *lkg_value_get_pointer(const struct lkg_value *root, const char *pointer);

/*
 * One leaf of a walk: a scalar, an empty map, or a list with its complete value (a list is replaced as a
 * whole).
 */
struct lkg_above {
        const struct lkg_value *map;
        size_t i;            /* the member after the one that leads to the leaf */
        size_t pointer_size; /* size of the part of the leaf's pointer that leads to this map */
};
struct lkg_leaf {
        const char *pointer; /* JSON pointer, valid during the call */
        const struct lkg_value *value;
        const struct lkg_above
                *above; /* @n_above maps around it, the outermost first; valid during the call */
        size_t n_above;
};
typedef int (*lkg_leaf_fn)(const struct lkg_leaf *leaf, void *userdata);
/** lkg_value_walk() - call @fn for each leaf in key order; stops on a non-zero return and returns it. */
int lkg_value_walk(const struct lkg_value *root, lkg_leaf_fn fn, void *userdata);

/* @a, @b: the value there; NULL: that document does not have it. */
typedef int (*lkg_difference_fn)(const char *pointer, const struct lkg_value *a, const struct lkg_value *b,
                                 void *userdata);
/**
 * lkg_value_compare() - call @fn for each leaf in which two documents differ: the leaves of @a in key order, then those that only
 * @b has; stops on a non-zero return and returns it.
 */
int lkg_value_compare(const struct lkg_value *a, const struct lkg_value *b, lkg_difference_fn fn,
                      void *userdata);
