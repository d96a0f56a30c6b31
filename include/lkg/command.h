/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control files: one row per command. Parsing only; decide.h decides the effect of a command, and the engine carries it out.
 */
#pragma once

#include <lkg/decide.h>
#include <lkg/source.h>

enum lkg_command_action {
        LKG_DO_HOLD,
        LKG_DO_SYNC,
        LKG_DO_ROLLBACK_GOOD, /* `rollback lkg` */
        LKG_DO_PROMOTE,
        LKG_DO_FORGET,  /* id, with all versions of a uid; "" = all */
        LKG_DO_FORGIVE, /* id: the entry with exactly this name */
        LKG_DO_CONDEMN, /* id, text: the reason */
        LKG_DO_STARTUP, /* argument: pid, 0 = unknown */
};

#define LKG_COMMAND_TEXT_MAX 255u

struct lkg_command_call {
        enum lkg_command_action action;
        enum lkg_hold_command hold; /* LKG_DO_HOLD */
        uint64_t argument;
        char id[LKG_SOURCE_ID_MAX + 1]; /* a uid, a source id */
        char text[LKG_COMMAND_TEXT_MAX + 1];
};

struct lkg_command {
        const char *name; /* of the control file */
        int (*parse)(const char *text, struct lkg_command_call *ret);
        const char *usage; /* what may be written, for messages */
        const char *manual;
};

/*
 * Two more commands come from bad/ instead of a control file: `bad`, whose text is a file name, a NUL and the reason;
 * `forgive`, whose text is a file name.
 */
#define LKG_COMMAND_BAD     "bad"
#define LKG_COMMAND_FORGIVE "forgive"

extern const struct lkg_command lkg_commands[];
extern const size_t lkg_n_commands;

/**
 * lkg_command_parse() - parse one write to control/<component>/@name.
 * @text: @size bytes as written; a final newline is ignored
 * @why:  filled if the result is negative
 *
 * Return: 1; 0 for an empty write (nothing to do); -EINVAL.
 */
int lkg_command_parse(const char *name, const char *text, size_t size, struct lkg_command_call *ret,
                      char why[static 256]);
