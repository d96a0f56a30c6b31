/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control files: one row per command. Parsing only; what a command does is decided by decide.h and carried out by
 * the engine.
 */
#pragma once

#include "decide.h"

enum lkg_command_action { LKG_DO_HOLD, LKG_DO_SYNC };

struct lkg_command_call {
        enum lkg_command_action action;
        enum lkg_hold_command hold; /* LKG_DO_HOLD */
        uint64_t argument;
};

struct lkg_command {
        const char *name; /* of the control file */
        int (*parse)(const char *text, struct lkg_command_call *ret);
        const char *usage; /* what may be written, for messages */
        const char *manual;
};

extern const struct lkg_command lkg_commands[];
extern const size_t lkg_n_commands;

/**
 * lkg_command_parse() - one write to control/<component>/@name.
 * @text: @size bytes as written; a final newline is ignored
 * @why:  filled when the result is negative
 *
 * Return: 1; 0 for an empty write (nothing to do); -EINVAL.
 */
int lkg_command_parse(const char *name, const char *text, size_t size, struct lkg_command_call *ret,
                      char why[static 256]);
