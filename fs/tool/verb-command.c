/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollback, promote, forget, hold, sync, try, commit, startup: one write to the control file of the same
 * name. The words are those of the file, and checked before there is a view to ask.
 */
#include "tool.h"

#include <lkg/component.h>

#define DEFAULT_WORD "now" /* of the files that accept it: promote, sync, commit, startup */

int lkg_verb_command(const struct lkg_tool *tool)
{
        const char *word = tool->n_words > 0 ? tool->words[0] : DEFAULT_WORD;
        struct lkg_command_call call;
        char why[256];

        /* An empty write would do nothing and look successful. */
        if (!*word)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "want %s", tool->verb->words);
        if (lkg_command_parse(tool->verb->name, word, strlen(word), &call, why) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "%s",
                                     why + strlen(tool->verb->name) + strlen(": "));
        return lkg_view_command(tool, tool->verb->name, word);
}
