/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs gate COMPONENT, for the component's ExecStartPre=: a node must not start it by accident on the
 * unmerged base that lies under the mount point while lkgfs is down. 0 when the view is served or an
 * administrator has said so with /etc/lkgfs/disabled, else 1, also when the mount does not answer.
 */
#include <linux/magic.h>
#include <sys/vfs.h>

#include "tool.h"

#define DISABLED "/etc/lkgfs/disabled"

static bool is_served(const struct lkg_tool *tool, const char *component)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *generation = NULL;
        struct statfs fs;
        int r;

        if (lkg_view_open(tool, &view) != LKG_TOOL_OK)
                return false;
        if (fstatfs(view.fd, &fs) < 0 || fs.f_type != FUSE_SUPER_MAGIC) {
                lkg_tool_note(tool, "%s is not mounted", view.root); /* a backup of a view, perhaps */
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
        return true;
}

int lkg_verb_gate(const struct lkg_tool *tool)
{
        if (access(DISABLED, F_OK) == 0)
                return LKG_TOOL_OK;
        return is_served(tool, tool->words[0]) ? LKG_TOOL_OK : LKG_TOOL_DIFFERENT;
}
