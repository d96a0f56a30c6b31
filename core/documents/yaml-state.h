/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one YAML document being read, shared by yaml.c (tree), yaml-key.c (keys that are not
 * strings), yaml-scalar.c (scalars), yaml-error.c (messages).
 */
#pragma once

#include "yaml-scan.h"

struct lkg_yaml_anchor;

struct lkg_yaml {
        struct lkg_yaml_parse parse;
        const char *data;
        size_t size;
        unsigned flags;
        struct lkg_source *source;
        struct lkg_report *report;
        unsigned depth;   /* lists and maps that are open */
        unsigned deepest; /* the most since the innermost of them began, with what aliases stand for */
        struct lkg_yaml_anchor *anchors;
        size_t n_anchors, n_anchors_allocated;
        struct lkg_value *anchor_index; /* map: name -> number of the anchor; a search would be quadratic */
        uint64_t n_decoded, n_aliased;  /* as upstream's guard counts them */
        uint64_t n_nan_keys;            /* not-a-number is a different key each time */
        uint64_t n_suspects;            /* keys and values without a JSON form that were put into the tree */
        bool failed;                    /* a finding that makes the document unusable was reported */
};

/* ---- findings ---- */

static inline struct lkg_where where_of(const struct lkg_yaml *p, struct lkg_yaml_mark at)
{
        return (struct lkg_where){ p->source ? p->source->file : NULL, at.line + 1, at.column + 1 };
}

static inline struct lkg_yaml_mark mark_of(const struct lkg_value *value)
{
        return (struct lkg_yaml_mark){ lkg_value_line(value) - 1, lkg_value_column(value) - 1, 0 };
}

#define fail_at(p, code, at, ...)                                                   \
        ({                                                                          \
                struct lkg_where _where = where_of(p, at);                          \
                lkg_report_add((p)->report, LKG_ERROR, code, &_where, __VA_ARGS__); \
                (p)->failed = true;                                                 \
                -EBADMSG;                                                           \
        })

/* For a value that is made there: source, line, column. */
#define PLACE(p, at) (p)->source, (at).line + 1, (at).column + 1

/** lkg_yaml_syntax_error() - report the parser's error. Return: -EBADMSG. */
int lkg_yaml_syntax_error(struct lkg_yaml *p);

/* ---- scalars ---- */

bool lkg_yaml_is_tag(struct lkg_span tag, const char *name);
/**
 * lkg_yaml_resolve() - resolve the meaning of a scalar, including its tag.
 * Return: 0 or -EBADMSG (reported).
 */
int lkg_yaml_resolve(struct lkg_yaml *p, const struct lkg_yaml_node *node, struct lkg_scalar *scalar);
/**
 * lkg_yaml_scalar() - make the value of a resolved scalar.
 *
 * Infinity and not-a-number become numbers whose text is not valid JSON; lkg_yaml_check() reports them if
 * they are still there at the end.
 *
 * Return: 0 or -EBADMSG (reported).
 */
int lkg_yaml_scalar(struct lkg_yaml *p, const struct lkg_yaml_node *node, const struct lkg_scalar *scalar,
                    struct lkg_value **ret);

/* ---- keys ---- */

/*
 * While a map is being built, a key that is not a string has a prefix that no text has, so that `1` and
 * `"1"` are two keys, as they are upstream until the tree is converted to JSON.
 */
static inline bool lkg_yaml_key_is_typed(struct lkg_span key)
{
        return key.size > 0 && (unsigned char)*key.data == 0xff;
}

/**
 * lkg_yaml_key() - the name of a scalar as a key; it lives as long as the parser. A typed key has its prefix.
 * @value: of the scalar
 */
struct lkg_span lkg_yaml_key(struct lkg_yaml *p, const struct lkg_value *value,
                             const struct lkg_scalar *scalar, struct lkg_yaml_mark at);
/** lkg_yaml_plain_key() - return the JSON key of a typed one, without its prefix, in @buf if needed. */
struct lkg_span lkg_yaml_plain_key(struct lkg_span key, char buf[static LKG_NUMBER_TEXT_MAX]);
/**
 * lkg_yaml_plain_map() - return the map with JSON keys. A key without a JSON form stays as it is;
 * lkg_yaml_check() finds it.
 */
struct lkg_value *lkg_yaml_plain_map(struct lkg_yaml *p, const struct lkg_value *typed);
/** lkg_yaml_plain_list() - the same for the maps in a list. */
struct lkg_value *lkg_yaml_plain_list(struct lkg_yaml *p, const struct lkg_value *typed);
/**
 * lkg_yaml_check() - report every key and value without a JSON form in the finished tree. Upstream checks
 * only the remaining values: values that a later duplicate replaced do not count.
 */
void lkg_yaml_check(struct lkg_yaml *p, const struct lkg_value *root);
