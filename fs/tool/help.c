/* SPDX-License-Identifier: Apache-2.0 */
/* Help made from the table of verbs: the whole fits a screen of 24 lines of 80 columns. */
#include "tool.h"

static void line(const struct lkg_tool_verb *verb, struct lkg_buf *buf)
{
        char left[40];

        (void)snprintf(left, sizeof(left), "%s%s%s", verb->name, *verb->words ? " " : "", verb->words);
        lkg_buf_printf(buf, "  %-20s %s\n", left, verb->help);
}

void lkg_tool_help(struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "Usage: lkgfs VERB [--component C] [--mountpoint M] [-o text|json|yaml] ...\n"
                          "On files:\n");
        for (size_t i = 0; i < lkg_n_tool_verbs; i++) {
                if (i > 0 && !(lkg_tool_verbs[i - 1].options & LKG_OPT_VIEW) && lkg_tool_verbs[i].limit_s &&
                    !(lkg_tool_verbs[i].options & LKG_OPT_STACK))
                        lkg_buf_puts(buf, "On a mounted view:\n");
                line(&lkg_tool_verbs[i], buf);
        }
        lkg_buf_puts(buf, "`lkgfs VERB --help` shows the options of a verb and an example.\n"
                          "Exit status: 0 good, 1 findings or a difference, 2 failure, 64 usage.\n");
}

void lkg_tool_verb_help(const struct lkg_tool_verb *verb, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "Usage: lkgfs %s [options]%s%s\n\n%s\n\nOptions:\n", verb->name,
                       *verb->words ? " " : "", verb->words, verb->help);
        lkg_tool_format_options(verb->options, buf);
        lkg_buf_printf(buf, "\nExample:\n  %s\n", verb->example);
}
