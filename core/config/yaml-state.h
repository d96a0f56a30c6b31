/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one YAML document being read, shared by yaml.c (tree), yaml-scalar.c (scalars), yaml-error.c
 * (words).
 */
#pragma once

#include <yaml.h>

#include "internal.h"

struct lkg_yaml_frame;
struct lkg_yaml_anchor;

struct lkg_yaml {
        yaml_parser_t parser;
        const char *data;
        size_t size;
        unsigned flags;
        struct lkg_source *source;
        struct lkg_report *report;
        struct lkg_yaml_frame *frames;
        size_t n_frames, n_frames_allocated;
        struct lkg_yaml_anchor *anchors;
        size_t n_anchors, n_anchors_allocated;
        struct lkg_value
                *anchor_index; /* map: name -> number of the anchor; linear search would be quadratic */
        uint64_t n_scanned;    /* what libyaml's scanner had to look at, see count_scan() */
        size_t flow_depth;
        struct lkg_value *root;
        uint64_t n_decoded, n_aliased;   /* as upstream's guard counts them */
        uint64_t n_values;               /* in the tree with aliases expanded */
        size_t index_chars, index_bytes; /* a position in the text both ways; moves forward only */
        bool failed;                     /* a finding that makes the document unusable was reported */
};

/* ---- findings ---- */

static inline struct lkg_where where_of(const struct lkg_yaml *p, unsigned line, unsigned column)
{
        return (struct lkg_where){ p->source ? p->source->file : NULL, line, column };
}

#define fail_at(p, code, line, column, ...)                                         \
        ({                                                                          \
                struct lkg_where _where = where_of(p, line, column);                \
                lkg_report_add((p)->report, LKG_ERROR, code, &_where, __VA_ARGS__); \
                (p)->failed = true;                                                 \
                -EBADMSG;                                                           \
        })

static inline unsigned line_of(yaml_mark_t mark)
{
        return (unsigned)mark.line + 1;
}

static inline unsigned column_of(yaml_mark_t mark)
{
        return (unsigned)mark.column + 1;
}

/** lkg_yaml_syntax_error() - report what libyaml complains about. Return: -EBADMSG or -ENOMEM. */
int lkg_yaml_syntax_error(struct lkg_yaml *p);

/* ---- scalars ---- */

bool lkg_yaml_is_tag(const char *tag, const char *name);
/** lkg_yaml_resolve() - meaning of a scalar event, its tag considered. Return: 0 or -EBADMSG (reported). */
int lkg_yaml_resolve(struct lkg_yaml *p, const yaml_event_t *event, struct lkg_scalar *scalar, unsigned line,
                     unsigned column);
/** lkg_yaml_scalar() - the value of a resolved scalar event. Return: 0, -EBADMSG (reported) or -ENOMEM. */
int lkg_yaml_scalar(struct lkg_yaml *p, const yaml_event_t *event, const struct lkg_scalar *scalar,
                    unsigned line, unsigned column, struct lkg_value **ret);
bool lkg_yaml_has_slash_escape(struct lkg_yaml *p, const yaml_event_t *event);
