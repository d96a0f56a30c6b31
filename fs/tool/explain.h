/* SPDX-License-Identifier: Apache-2.0 */
/* What `lkgfs explain` finds under a word: fields, flags, feature gates. */
#pragma once

#include <lkg/schema.h>

#include "tool.h"

enum lkg_explained_what { LKG_EXPLAINED_FIELD, LKG_EXPLAINED_FLAG, LKG_EXPLAINED_GATE };

struct lkg_explained {
        enum lkg_explained_what what;
        const struct lkg_kind *kind;   /* NULL for a gate */
        const struct lkg_field *field; /* the first row of its path */
        const char *key; /* of the map that the field is, as requested; NULL = none. Borrowed */
        const struct lkg_flag *flag;
        const struct lkg_gate *gate;
};

#define LKG_EXPLAINED_MAX 32

struct lkg_explained_list {
        struct lkg_explained items[LKG_EXPLAINED_MAX];
        size_t n_items; /* number found; beyond LKG_EXPLAINED_MAX they are only counted */
        bool ambiguous; /* the word is the end of several paths of one kind */
};

/**
 * lkg_explain_find() - find what @word names.
 * @kind: a kind or a component, NULL = all
 *
 * Matches in order of preference: a whole path, flag or gate as it is written; the same in another case; a
 * map and one of its keys (`systemReserved.cpu`; a gate after `featureGates.` is also the gate); the end of
 * a path (`cacheTTL`). List indexes, brackets and the hyphens before a flag are ignored.
 */
void lkg_explain_find(const char *word, const char *kind, struct lkg_explained_list *ret);
struct lkg_explain_near {
        const char *names[6];
        size_t n;
};
/** lkg_explain_nearest() - the name that was probably meant by its spelling, else some names that contain @word. */
void lkg_explain_nearest(const char *word, const char *kind, struct lkg_explain_near *ret);
/** lkg_explain_kind_known() - is @name a kind or component with tables? */
bool lkg_explain_kind_known(const char *name);

/**
 * lkg_explain_text() - several lines about one item, for people.
 * @release: 136 is 1.36
 */
void lkg_explain_text(const struct lkg_explained *item, unsigned release, struct lkg_buf *buf);
/** lkg_explain_value() - the same facts as a map. */
void lkg_explain_value(const struct lkg_explained *item, unsigned release, struct lkg_tool_map *ret);
