/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The component's command line over its document, as pflag parses it (docs/specification.md 3.5). Values set by a
 * flag have a source whose layer is `flag --name`.
 */
#pragma once

#include "typed.h"

/**
 * lkg_flags_apply() - apply the flags of @config to @object, in their order.
 * @object: typed, complete; changed
 * @zeros:  a map, or NULL: gets the fields that a flag set to zero, which @object cannot contain: path ->
 * value as given
 * @report: unknown flags, bad values (never a secret one), words that are not flags (by their position only)
 *
 * Feature gates are per key: gates that the command line does not name are kept. Every other map or list
 * that a flag names is replaced, except --vmodule, which the kubelet appends.
 *
 * Return: 0; -EBADMSG.
 */
int lkg_flags_apply(const struct lkg_schema *schema, const struct lkg_judge_config *config,
                    struct lkg_value *object, struct lkg_value *zeros, struct lkg_report *report);

/*
 * ---- a command line being applied: shared by its grammar (command-line.c), the values of its flags (flag-value.c), and the
 * flags that are lists or maps (flag-lists.c) ----
 */

struct lkg_flag_apply {
        const struct lkg_schema *schema;
        const struct lkg_judge_config *config;
        size_t word; /* of its flags: the one at work */
        const struct lkg_flag *flags;
        size_t n_flags;
        unsigned char *used; /* by flag: enum lkg_flag_used; zeroed at first */
        struct lkg_value *object;
        /* fields that a flag set to zero: path -> value as given; NULL = not needed */
        struct lkg_value *zeros;
        struct lkg_report *report;
        bool refused;
};

enum lkg_flag_used {
        LKG_FLAG_AGAIN = 1 << 0, /* lists and maps are cleared by the first use only */
        /* was given as nothing, and the component has let go of where it keeps the value */
        LKG_FLAG_GONE = 1 << 1,
        /* the document has a duration as an integer, and so has every later value */
        LKG_FLAG_INTEGER = 1 << 2,
};

/* One use of a flag. */
struct lkg_flag_use {
        struct lkg_flag_apply *apply;
        const struct lkg_flag *flag;
        const struct lkg_schema_node *node; /* of the field; NULL = it sets none */
        struct lkg_source *source;
        struct lkg_span text;
        unsigned char *used;    /* of this flag */
        struct lkg_value *made; /* the new value; a list or map is there from the start */
};

/* Of a type of flags. Return: 0: use->made; 1: the field stays as it is; -EINVAL and a reason. */
typedef int lkg_flag_parse_fn(struct lkg_flag_use *use, char *why);

/**
 * lkg_flag_refuse() - report a mistake in the command line; a warning if the line was only discovered.
 * @lost: the release that runs takes it: always an error
 */
void lkg_flag_refuse(struct lkg_flag_apply *apply, bool lost, const char *fmt, ...) LKG_PRINTF(3, 4);

/** lkg_flag_string(), lkg_flag_number() - a value with the flag as its source. */
struct lkg_value *lkg_flag_string(const struct lkg_flag_use *use, struct lkg_span text);
struct lkg_value *lkg_flag_number(const struct lkg_flag_use *use, int64_t n);

/** lkg_flag_use() - set the field of @flag to @text, or refuse it. */
void lkg_flag_use(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *text);
/**
 * lkg_flag_begin_list() - begin the value of a flag that is a list or a map. Return: what puts its items in; NULL: it is neither.
 */
lkg_flag_parse_fn *lkg_flag_begin_list(struct lkg_flag_use *use);
