/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The component's command line over its document, as pflag parses it (docs/specification.md 3.5). Values set by a
 * flag have a source whose layer is `flag --name`.
 */
#pragma once

#include "typed.h"

struct lkg_command_line {
        const char *const *words; /* without argv[0] */
        size_t n_words;
        bool observed; /* see lkg_judge_config: its mistakes are warnings, and the words are left out */
        unsigned runs; /* likewise: but for those that this release takes */
};

/**
 * lkg_flags_apply() - apply the flags to @object, in their order.
 * @object: typed, complete; changed
 * @zeros:  a map, or NULL: gets the fields that a flag set to zero, which @object cannot contain: path ->
 * value as given
 * @report: unknown flags, bad values (never a secret one), words that are not flags (by their position only)
 *
 * Feature gates are per key: gates that the command line does not name are kept. Every other map or list
 * that a flag names is replaced, except --vmodule, which the kubelet appends.
 *
 * Return: 0; -EBADMSG; -ENOMEM.
 */
int lkg_flags_apply(const struct lkg_schema *schema, const struct lkg_command_line *line,
                    struct lkg_value *object, struct lkg_value *zeros, struct lkg_report *report);
