/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs report: one file for a ticket. A page of HTML, or the raw parts as a tar archive, about everything that can be read: a
 * dead engine, a mount that hangs, or no mount at all is what it is for.
 */
#include <sys/utsname.h>

#include "report.h"

/*
 * A POSIX tar archive: ustar headers, and a pax header for a name that does not fit. Regular files only, mode 0600, owner root.
 * Writing needs no library for so little, and every node would have to install it.
 */
#define BLOCK      512
#define NAME_MAX_U 100 /* of a ustar header, without its prefix */

struct tar_header {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
        char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "the format has 512 bytes");

static void pad(struct lkg_buf *buf, size_t size)
{
        static const char zeros[BLOCK];

        if (size % BLOCK)
                lkg_buf_append(buf, zeros, BLOCK - size % BLOCK);
}

static void put_header(struct lkg_buf *buf, const char *name, char type, size_t size, uint64_t modified_s)
{
        struct tar_header h = { .type = type, .magic = "ustar", .version = { '0', '0' } };
        const unsigned char *bytes = (const unsigned char *)&h;
        unsigned sum = 0;

        (void)snprintf(h.name, sizeof(h.name), "%s", name);
        (void)snprintf(h.mode, sizeof(h.mode), "%07o", 0600u);
        (void)snprintf(h.uid, sizeof(h.uid), "%07o", 0u);
        (void)snprintf(h.gid, sizeof(h.gid), "%07o", 0u);
        (void)snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)size & 077777777777ull);
        (void)snprintf(h.mtime, sizeof(h.mtime), "%011llo",
                       (unsigned long long)modified_s & 077777777777ull);
        memset(h.checksum, ' ', sizeof(h.checksum));
        for (size_t i = 0; i < sizeof(h); i++)
                sum += bytes[i];
        (void)snprintf(h.checksum, sizeof(h.checksum) - 1, "%06o", sum);
        lkg_buf_append(buf, &h, sizeof(h));
}

/* `LENGTH path=NAME\n`, where LENGTH counts its own digits as well. */
static void put_long_name(struct lkg_buf *buf, const char *name)
{
        size_t rest = strlen(name) + strlen(" path=\n"), size = rest + 1;
        char digits[24];

        while (rest + (size_t)snprintf(digits, sizeof(digits), "%zu", size) != size)
                size++;
        put_header(buf, "pax", 'x', size, 0);
        lkg_buf_printf(buf, "%s path=%s\n", digits, name);
        pad(buf, size);
}

static void add_file(struct lkg_buf *buf, const char *name, const char *data, size_t size,
                     uint64_t modified_s)
{
        if (strlen(name) >= NAME_MAX_U)
                put_long_name(buf, name);
        put_header(buf, name, '0', size, modified_s);
        if (size)
                lkg_buf_append(buf, data, size);
        pad(buf, size);
}

/* ---- the verb ---- */

static void put_archive(const struct lkg_parts *parts, struct lkg_buf *ret)
{
        static const char end[2 * BLOCK];
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf unread = LKG_BUF_INIT;
        uint64_t now_s = lkg_realtime_ns() / LKG_NSEC_PER_SEC;

        for (size_t i = 0; i < parts->n; i++) {
                const struct lkg_part *part = &parts->items[i];

                if (part->error < 0)
                        lkg_buf_printf(&unread, "%s\t%s\n", part->name,
                                       *part->data ? part->data : strerror(-part->error));
                else
                        add_file(ret, lkg_tool_format("lkgfs-report/%s", part->name), part->data, part->size,
                                 part->modified_s ? part->modified_s : now_s);
        }
        add_file(ret, "lkgfs-report/could-not-be-read", lkg_buf_text(&unread), unread.size, now_s);
        lkg_buf_append(ret, end, sizeof(end));
}

/* On a terminal nobody wants to see a page: it becomes a file of the working directory. */
static const char *choose_file(const struct lkg_tool *tool, bool tar)
{
        struct utsname uts = { .nodename = "node" };
        char time[21];

        if (tool->options.report.file)
                return strcmp(tool->options.report.file, "-") == 0 ? NULL : tool->options.report.file;
        if (!isatty(STDOUT_FILENO))
                return NULL;
        (void)uname(&uts);
        lkg_format_rfc3339(lkg_realtime_ns(), time);
        return lkg_tool_format("lkgfs-report-%.64s-%s.%s", uts.nodename, time, tar ? "tar" : "html");
}

/* For root alone: documents are in it. It is written as a whole or not at all. */
static int write_file(const struct lkg_tool *tool, const char *path, const struct lkg_buf *buf)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        char *directory = slash ? lkg_tool_format("%.*s/", (int)(slash - path), path) : lkg_tool_format(".");
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_error err = { 0 };

        if (!*name)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "--file '%s': %s", path, strerror(EISDIR));
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
        struct lkg_parts parts = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        bool tar = tool->options.format == LKG_TOOL_TAR;
        const char *file = choose_file(tool, tar);

        lkg_report_collect(tool, &parts);
        if (tar)
                put_archive(&parts, &buf);
        else
                lkg_report_page(&parts, &buf);
        (void)lkg_buf_text(&buf);
        return file ? write_file(tool, file, &buf) : lkg_tool_print(&buf, LKG_TOOL_OK);
}
