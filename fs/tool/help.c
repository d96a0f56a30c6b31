/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help, generated from the table of verbs: all of it fits on a screen of 24 lines of 80 columns, so verbs
 * that people do not type are only named.
 */
#include "tool.h"

/* @before: a verb that shares the line, or NULL */
static void line(const struct lkg_tool_verb *before, const struct lkg_tool_verb *verb, struct lkg_buf *buf)
{
        char left[40];

        (void)snprintf(left, sizeof(left), "%s%s%s%s%s", before ? before->name : "", before ? ", " : "",
                       verb->name, *verb->words ? " " : "", verb->words);
        lkg_buf_printf(buf, "  %-20s %s%s%s\n", left, before ? before->help : "", before ? "; " : "",
                       verb->help);
}

static void programs(struct lkg_buf *buf)
{
        const char *separator = "  ";

        for (size_t i = 0; i < lkg_n_tool_verbs; i++) {
                if (!lkg_tool_verbs[i].only_named)
                        continue;
                lkg_buf_printf(buf, "%s%s", separator, lkg_tool_verbs[i].name);
                separator = ", ";
        }
        lkg_buf_puts(buf, ": see lkgfs(1).\n");
}

void lkg_tool_help(struct lkg_buf *buf)
{
        const struct lkg_tool_verb *before = NULL;
        bool mounted = false;

        lkg_buf_puts(buf, "Usage: lkgfs VERB [-c COMPONENT] [-m MOUNTPOINT] [-o FORMAT] ...; on files:\n");
        for (size_t i = 0; i < lkg_n_tool_verbs; i++) {
                const struct lkg_tool_verb *verb = &lkg_tool_verbs[i];

                if (!mounted && verb->limit_s && !(verb->options & LKG_OPT_STACK)) {
                        lkg_buf_puts(buf, "On a mounted view:\n");
                        mounted = true;
                }
                if (!verb->only_named && !verb->on_one_line)
                        line(before, verb, buf);
                before = verb->on_one_line ? verb : NULL;
        }
        programs(buf);
        lkg_buf_puts(buf, "VERB --help: options, example. Exit: 0 good, 1 findings, 2 failure, 64 usage.\n");
}

void lkg_tool_verb_help(const struct lkg_tool_verb *verb, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "Usage: lkgfs %s [options]%s%s\n%s\nOptions:\n", verb->name,
                       *verb->words ? " " : "", verb->words, verb->help);
        lkg_tool_format_options(verb->options, buf);
        lkg_buf_printf(buf, "Example:\n  %s\n", verb->example);
}
