/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs report: one file for a ticket. A page of HTML, or the raw parts as a tar archive, about everything that can be read: a
 * dead engine, a mount that hangs, or no mount at all is what it is for.
 */
#include "report-page.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include <lkg/file.h>

static int print_archive(const struct lkg_parts *parts, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf unread = LKG_BUF_INIT;
        uint64_t now_s = lkg_realtime_ns() / LKG_NSEC_PER_SEC;

        for (size_t i = 0; i < parts->n; i++) {
                LKG_CLEANUP(lkg_freep) char *name = NULL;
                const struct lkg_part *part = &parts->items[i];

                if (part->error < 0) {
                        lkg_buf_printf(&unread, "%s\t%s\n", part->name,
                                       *part->data ? part->data : strerror(-part->error));
                        continue;
                }
                if (asprintf(&name, "lkgfs-report/%s", part->name) < 0) {
                        name = NULL;
                        return -ENOMEM;
                }
                lkg_tar_add(ret, name, part->data, part->size, part->modified_s ? part->modified_s : now_s);
        }
        if (!lkg_buf_failed(&unread))
                lkg_tar_add(ret, "lkgfs-report/could-not-be-read", unread.size ? unread.data : "",
                            unread.size, now_s);
        lkg_tar_end(ret);
        return lkg_buf_failed(ret) || lkg_buf_failed(&unread) ? -ENOMEM : 0;
}

/* On a terminal nobody wants to see a page: it becomes a file of the working directory. */
static const char *choose_file(const struct lkg_tool *tool, bool tar, char ret[static 200])
{
        struct utsname uts = { .nodename = "node" };
        char time[21];

        if (tool->options.file)
                return strcmp(tool->options.file, "-") == 0 ? NULL : tool->options.file;
        if (!isatty(STDOUT_FILENO))
                return NULL;
        (void)uname(&uts);
        lkg_format_rfc3339(lkg_realtime_ns(), time);
        (void)snprintf(ret, 200, "lkgfs-report-%.64s-%s.%s", uts.nodename, time, tar ? "tar" : "html");
        return ret;
}

/* For root alone: documents are in it. It is written as a whole or not at all. */
static int write_file(const struct lkg_tool *tool, const char *path, const struct lkg_buf *buf)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        LKG_CLEANUP(lkg_freep)
        char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_error err = { 0 };

        if (!directory || !*name)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "--file '%s': %s", path,
                                     strerror(directory ? EISDIR : ENOMEM));
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "open '%s': %s", directory, strerror(errno));
        if (lkg_write_file_atomic(fd, name, buf->data, buf->size, 0600, false, &err) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
        lkg_tool_note(tool, "written: %s", path);
        return LKG_TOOL_OK;
}

int lkg_verb_report(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_parts_deinit) struct lkg_parts parts = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        bool tar = tool->options.format == LKG_TOOL_TAR;
        char chosen[200];
        const char *file = choose_file(tool, tar, chosen);
        int r = lkg_report_collect(tool, &parts);

        if (r == 0)
                r = tar ? print_archive(&parts, &buf) : lkg_report_page(&parts, &buf);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r));
        return file ? write_file(tool, file, &buf) : lkg_tool_print(&buf, LKG_TOOL_OK);
}
