/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs schema: the kinds with tables as JSON Schema, for editors; without a word, their list. */
#include <linux/magic.h>
#include <sys/vfs.h>
#include <time.h>

#include "tool.h"
#include "processes.h"

#include <lkg/schema.h>

static int list_kinds(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char first[LKG_RELEASE_TEXT_MAX], last[LKG_RELEASE_TEXT_MAX];

        for (size_t i = 0; i < lkg_n_kinds; i++)
                lkg_buf_printf(&buf, "%-24s %-32s %s to %s\n", lkg_kinds[i].kind, lkg_kinds[i].api_version,
                               lkg_release_text(LKG_RELEASE_MIN, first),
                               lkg_release_text(LKG_RELEASE_MAX, last));
        lkg_buf_printf(&buf, "%-24s %s\n", LKG_CONFIG_KIND, LKG_CONFIG_API_VERSION);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_schema(const struct lkg_tool *tool, struct lkg_json *json)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_json_write_line(json, &buf);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r));
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_kind(const struct lkg_tool *tool, const struct lkg_kind *kind)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_schema *schema;
        int r = lkg_schema_get(kind->kind, kind->api_version, tool->options.release, &schema);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s: %s", kind->kind, strerror(-r));
        lkg_schema_json(schema, &json);
        return print_schema(tool, &json);
}

static int print_configuration(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        if (tool->options.release)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--release: %s does not depend on a release of Kubernetes",
                                     LKG_CONFIG_KIND);
        lkg_config_json(&json);
        return print_schema(tool, &json);
}

int lkg_verb_schema(const struct lkg_tool *tool)
{
        const char *word = tool->n_words > 0 ? tool->words[0] : NULL;

        if (lkg_tool_check_release(tool) != LKG_TOOL_OK)
                return LKG_TOOL_USAGE;
        if (!word)
                return list_kinds();
        if (strcasecmp(word, LKG_CONFIG_KIND) == 0 || strcasecmp(word, "lkgfs") == 0)
                return print_configuration(tool);
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (strcasecmp(word, lkg_kinds[i].kind) == 0 ||
                    strcasecmp(word, lkg_kinds[i].component) == 0)
                        return print_kind(tool, &lkg_kinds[i]);
        return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                             "there is no schema for kind \"%.60s\"; `lkgfs schema` lists them", word);
}

/* ---- verb-gate ---- */

/*
 * lkgfs gate COMPONENT, for the component's ExecStartPre=: while lkgfs is down, a node must not accidentally
 * start it on the unmerged base below the mount point. 0 if the view is served or an administrator has
 * created /etc/lkgfs/disabled, else 1, also if the mount does not answer.
 *
 * While the engine does not answer, starts are not counted: a crash loop would go unnoticed and not be
 * rolled back. A hung engine is replaced within seconds, so the gate waits briefly and then stays closed
 * (docs/decisions/017-gate-and-silence.md). Other missing processes are only reported.
 */

#define DISABLED "/etc/lkgfs/disabled"
#define WAIT_NS  (6 * LKG_NSEC_PER_SEC) /* engineTimeout, a second, a start; the verb has a limit of 10 s */
#define PAUSE_NS (100 * LKG_NSEC_PER_MSEC)

static bool engine_answers(const struct lkg_tool *tool, const struct lkg_view *view, const char *component)
{
        const struct timespec pause = { .tv_nsec = PAUSE_NS };
        uint64_t end_ns = lkg_boottime_ns() + WAIT_NS;
        struct lkg_processes processes;

        for (;;) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf missing = LKG_BUF_INIT;

                lkg_processes_read(view, component, &processes);
                if (!processes.engine_silent) {
                        if (lkg_processes_missing(&processes, &missing) && missing.data)
                                lkg_tool_note(tool, "missing: %s", missing.data);
                        return true;
                }
                if (lkg_boottime_ns() >= end_ns)
                        break;
                (void)nanosleep(&pause, NULL);
        }
        lkg_tool_note(tool,
                      "the engine does not answer, so a crash loop could not be noticed: see "
                      "%s/status/%s/condition",
                      view->root, component);
        return false;
}

static bool is_served(const struct lkg_tool *tool, const char *component)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *generation = NULL;
        struct statfs fs;
        int r;

        if (lkg_view_open(tool, &view) != LKG_TOOL_OK)
                return false;
        if (fstatfs(view.fd, &fs) < 0 || fs.f_type != FUSE_SUPER_MAGIC) {
                lkg_tool_note(tool, "%s is not mounted", view.root); /* perhaps a backup of a view */
                return false;
        }
        r = lkg_view_read(&view, &generation, NULL, "status/%s/generation", component);
        if (r < 0) {
                lkg_tool_note(tool, "%s/status/%s/generation: %s", view.root, component, strerror(-r));
                return false;
        }
        if (strtoull(generation, NULL, 10) == 0) {
                lkg_tool_note(tool, "no document of \"%s\" is served: see %s/status/%s/condition", component,
                              view.root, component);
                return false;
        }
        return engine_answers(tool, &view, component);
}

int lkg_verb_gate(const struct lkg_tool *tool)
{
        if (access(DISABLED, F_OK) == 0)
                return LKG_TOOL_OK;
        if (is_served(tool, tool->words[0]))
                return LKG_TOOL_OK;
        lkg_tool_note(tool,
                      "%s is blocked until lkgfs serves its file: `systemctl start lkgfs`; in an emergency "
                      "`touch " DISABLED "`",
                      tool->words[0]);
        return LKG_TOOL_DIFFERENT;
}
