/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs gate COMPONENT, for the component's ExecStartPre=: while lkgfs is down, a node must not accidentally
 * start it on the unmerged base below the mount point. 0 if the view is served or an administrator has
 * created /etc/lkgfs/disabled, else 1, also if the mount does not answer.
 *
 * While the engine does not answer, starts are not counted: a crash loop would go unnoticed and not be
 * rolled back. A hung engine is replaced within seconds, so the gate waits briefly and then stays closed
 * (docs/decisions/017-gate-and-silence.md). Other missing processes are only reported.
 */
#include <linux/magic.h>
#include <sys/vfs.h>
#include <time.h>

#include "processes.h"

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
