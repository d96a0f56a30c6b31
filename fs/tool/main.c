/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs: the tool for people. See lkgfs(1). */
#include "tool.h"

#include "lkg-config.h"

/* What adopt has made by then is in its record, and every file is written as a whole. */
static void no_memory(void)
{
        (void)dprintf(STDERR_FILENO, "lkgfs: %s\n", strerror(ENOMEM));
        _exit(LKG_TOOL_FAILED);
}

/* Are there tables for what --release names? */
static int check_release(const struct lkg_tool *tool)
{
        const struct lkg_tool_options *options = &tool->options;
        char first[LKG_RELEASE_TEXT_MAX], last[LKG_RELEASE_TEXT_MAX];

        if ((options->release && !lkg_release_has_tables(options->release)) ||
            (options->runs && !lkg_release_has_tables(options->runs)))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "--release: there are tables for %s to %s only",
                                     lkg_release_text(LKG_RELEASE_MIN, first),
                                     lkg_release_text(LKG_RELEASE_MAX, last));
        return LKG_TOOL_OK;
}

int main(int argc, char **argv)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf help = LKG_BUF_INIT;
        struct lkg_tool tool;
        char message[512];
        int status;

        lkg_at_no_memory(no_memory);
        if (argc > 1 && strcmp(argv[1], "--complete") == 0)
                return lkg_tool_complete(argc - 2, argv + 2);
        if (lkg_tool_parse(&tool, argc, argv, message) < 0) {
                (void)lkg_tool_fail(&tool, LKG_TOOL_USAGE, "%s", message);
                (void)dprintf(STDERR_FILENO, "Try `lkgfs %s%s--help`.\n", tool.verb ? tool.verb->name : "",
                              tool.verb ? " " : "");
                return LKG_TOOL_USAGE;
        }
        if (tool.options.version)
                return lkg_tool_print_text("lkgfs " LKG_VERSION "\n", LKG_TOOL_OK);
        if (tool.options.help && tool.verb)
                lkg_tool_verb_help(tool.verb, &help);
        else if (tool.options.help)
                lkg_tool_help(&help);
        if (tool.options.help)
                return lkg_tool_print(&help, LKG_TOOL_OK);
        if (!tool.verb) {
                (void)lkg_tool_fail(&tool, LKG_TOOL_USAGE, "which verb? `lkgfs --help` lists them");
                return LKG_TOOL_USAGE;
        }
        if (check_release(&tool) != LKG_TOOL_OK)
                return LKG_TOOL_USAGE;
        if (lkg_rollout_is_of_fleet(&tool))
                return tool.verb->run(&tool);
        if (tool.options.watch)
                return lkg_tool_watch(&tool);
        if (!tool.verb->limit_s || lkg_tool_has_sources(&tool))
                return tool.verb->run(&tool);
        status = lkg_tool_guard(&tool);
        /* A gate has two results; a mount that hangs does not serve. */
        return tool.verb->run == lkg_verb_gate && status != LKG_TOOL_OK ? LKG_TOOL_DIFFERENT : status;
}
