/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a Pod, and the rules of each. */
#pragma once

#include <lkg/pod.h>

#include "rules.h"

/* A Go type: `*bool: a b@134~135; string: c` are its fields by their types; b is in 1.34 and 1.35 alone. */
struct lkg_pod_type {
        const char *name, *fields;
};
extern const struct lkg_pod_type lkg_pod_types[]; /* tables/pod.c, by name */
extern const size_t lkg_n_pod_types;

/* A struct in a Pod that is judged: rules.node->go is its type, rules.object its value. */
struct lkg_pod_part {
        struct lkg_rules rules;
        const struct lkg_pod_part *up;
        const char *name;          /* of the field that it is, or is an item of */
        struct lkg_value *volumes; /* of a PodSpec: by name, the first of each */
};

/* A rule of single fields, or of a type. */
struct lkg_pod_rule {
        const char *
                fields; /* `Type.field`, between spaces; the field may be dotted. The rule has no path of its own */
        struct lkg_value_rule rule;
};
struct lkg_pod_check {
        const char *type;
        void (*check)(const struct lkg_pod_part *part);
};
#define LKG_POD_ROW(of, at, ...)                           \
        {                                                  \
                at,                                        \
                {                                          \
                        .kind = LKG_RULE_##of, __VA_ARGS__ \
                }                                          \
        }

extern const struct lkg_pod_rule lkg_pod_rules[];
extern const size_t lkg_n_pod_rules;
extern const struct lkg_pod_check lkg_pod_spec_checks[], lkg_pod_container_checks[],
        lkg_pod_placing_checks[];
extern const size_t lkg_n_pod_spec_checks, lkg_n_pod_container_checks, lkg_n_pod_placing_checks;

/* ---- for the checks ---- */

static inline const struct lkg_value *lkg_pod_get(const struct lkg_pod_part *part, const char *path)
{
        return lkg_object_get(part->rules.object, path);
}
static inline struct lkg_span lkg_pod_text(const struct lkg_pod_part *part, const char *path)
{
        return lkg_text_of(lkg_pod_get(part, path));
}
static inline bool lkg_pod_is(const struct lkg_pod_part *part, const char *path, const char *word)
{
        return lkg_span_is(lkg_pod_text(part, path), word);
}
static inline bool lkg_pod_true(const struct lkg_pod_part *part, const char *path)
{
        return lkg_object_bool(part->rules.object, path);
}
/** lkg_pod_size() - members of a list or map; 0: it is not there. */
static inline size_t lkg_pod_size(const struct lkg_pod_part *part, const char *path)
{
        const struct lkg_value *value = lkg_pod_get(part, path);

        return value ? lkg_value_size(value) : 0;
}
/* lkg_breach() about the value at @path. */
#define lkg_pod_breach(part, code, path, ...) \
        lkg_breach(&(part)->rules, code, path, lkg_pod_get(part, path), __VA_ARGS__)

/** lkg_pod_around() - the part of this type around @part; NULL = there is none. */
const struct lkg_pod_part *lkg_pod_around(const struct lkg_pod_part *part, const char *type);
/** lkg_pod_one_of() - report all but the first of these fields, between spaces; @needed: or that none of them is there. */
void lkg_pod_one_of(const struct lkg_pod_part *part, const char *fields, bool needed);
/** lkg_pod_once() - report @value at @path if @seen has its @key already, else note it there. An empty key is none. */
void lkg_pod_once(const struct lkg_pod_part *part, struct lkg_value *seen, struct lkg_span key,
                  const char *path, const struct lkg_value *value);
/** lkg_pod_twice() - report each item of @list whose @member, a text, is that of an earlier one. */
void lkg_pod_twice(const struct lkg_pod_part *part, const char *list, const char *member);
/** lkg_pod_exclude() - report what stands at @path, if it is not false: it cannot go with @what. */
void lkg_pod_exclude(const struct lkg_pod_part *part, const char *path, const char *what);
/** lkg_pod_labels() - report names in a map that are none of labels, and values. */
void lkg_pod_labels(const struct lkg_pod_part *part, const char *path);
/** lkg_pod_volume() - the volume of this name in the pod that @part is in; NULL = it has none. */
const struct lkg_value *lkg_pod_volume(const struct lkg_pod_part *part, struct lkg_span name);
/** lkg_pod_lower() - @text in lower case (ASCII); heap. */
char *lkg_pod_lower(struct lkg_span text);
/** lkg_pod_port_name() - at most 15 of a-z, 0-9 and single hyphens. Return: 0; -EINVAL. */
int lkg_pod_port_name(const char *text, size_t size, char *reason);
/** lkg_pod_amount() - a quantity in billionths, the finest that there is; what is beyond 2^63 is as good as endless. */
__int128 lkg_pod_amount(const struct lkg_value *value);
