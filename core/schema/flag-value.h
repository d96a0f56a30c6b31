/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line being applied: shared by its grammar (command-line.c) and the values of its flags
 * (flag-value.c).
 */
#pragma once

#include "typed.h"

struct lkg_flag_apply {
        const struct lkg_schema *schema;
        const struct lkg_flag *flags;
        size_t n_flags;
        unsigned char *used; /* by flag: of flag-value.c; zeroed at first */
        struct lkg_value *object;
        /* fields that a flag set to zero: path -> value as given; NULL = not needed */
        struct lkg_value *zeros;
        struct lkg_report *report;
        bool observed; /* see lkg_judge_config */
        unsigned runs;
        bool refused;
};

/**
 * lkg_flag_refuse() - report a mistake in the command line; a warning if the line was only discovered.
 * Return: 0.
 */
int lkg_flag_refuse(struct lkg_flag_apply *apply, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_flag_refuse_lost() - the same for what the release that runs takes: always an error. */
int lkg_flag_refuse_lost(struct lkg_flag_apply *apply, const char *fmt, ...) LKG_PRINTF(2, 3);
/**
 * lkg_flag_use() - set the field of @flag to @text.
 * Return: 0, also if it was refused; -ENOMEM.
 */
int lkg_flag_use(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *text);
