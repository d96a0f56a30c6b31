/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs bake: writes the merged documents as plain files, for a node that continues without lkgfs. Documents
 * named on the command line give one file with the name of the base; without any, every document of the
 * mounted view is written, including aliases.
 *
 * Each file is written completely or not at all. Without --force, an existing file stops everything before
 * the first write, and a file that appears meanwhile is not replaced either (RENAME_NOREPLACE).
 */
#include "tool.h"

#include <sys/xattr.h>

#define XATTR_GENERATION "user.lkgfs.generation"
#define XATTR_SHA256     "user.lkgfs.sha256"
#define DEFAULT_MODE     0600 /* the default mode of the view file: it may contain secrets */

struct baked {
        char *name;
        const char *text;
        struct lkg_new_file as;
};

struct bake {
        const struct lkg_tool *tool;
        struct baked *files;
        size_t n_files;
};

static void write_files(const struct bake *bake)
{
        const char *directory = bake->tool->options.directory;
        int dirfd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct lkg_error err = { 0 };

        if (dirfd < 0)
                lkg_tool_end(bake->tool, LKG_TOOL_FAILED, "open '%s': %s", directory, strerror(errno));
        for (size_t i = 0; i < bake->n_files && !bake->tool->options.force; i++)
                if (faccessat(dirfd, bake->files[i].name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                        lkg_tool_end(bake->tool, LKG_TOOL_FAILED,
                                     "'%s/%s' exists already; --force replaces it", directory,
                                     bake->files[i].name);
        for (size_t i = 0; i < bake->n_files; i++) {
                const struct baked *file = &bake->files[i];

                if (lkg_write_file_as(dirfd, file->name, file->text, strlen(file->text), &file->as, &err) <
                    0)
                        lkg_tool_end(bake->tool, LKG_TOOL_FAILED, "%s/: %s", directory, err.message);
                lkg_tool_note(bake->tool, "wrote %s/%s", directory, file->name);
        }
        (void)lkg_close(dirfd);
}

/* A component reads it without lkgfs, so a second reader checks it first, as before a document is served. */
static struct baked *add_file(struct bake *bake, const char *name, const struct lkg_value *doc,
                              enum lkg_format format)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_error err = { 0 };
        struct baked *file;
        int r;

        bake->files = lkg_tool_grow(bake->files, bake->n_files, sizeof(*bake->files));
        file = &bake->files[bake->n_files++];
        lkg_render(doc, format, &buf);
        *file = (struct baked){
                .name = lkg_tool_cut(name, strlen(name)),
                .text = lkg_tool_take(&buf),
                .as = { .mode = DEFAULT_MODE, .durable = true, .only_new = !bake->tool->options.force }
        };
        r = lkg_need(lkg_readback(doc, format, file->text, strlen(file->text), &err));
        if (r == LKG_READBACK_LEFT_OUT)
                lkg_tool_note(bake->tool, "warning: %s [LKG2034]", err.message);
        if (r < 0)
                lkg_tool_end(bake->tool, LKG_TOOL_FAILED,
                             "a second reader reads the result differently: %s [LKG2033]", err.message);
        return file;
}

static int bake_sources(struct bake *bake)
{
        const char *base = bake->tool->options.config, *slash;
        struct lkg_tool_sources *sources;
        int r;

        if (!base || strcmp(base, "-") == 0)
                return lkg_tool_fail(bake->tool, LKG_TOOL_USAGE,
                                     "--config BASE must be a file: it names the result");
        r = lkg_tool_sources_load(bake->tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        lkg_tool_print_findings(bake->tool, STDERR_FILENO, &sources->candidate->report);
        if (!sources->candidate->doc)
                return LKG_TOOL_DIFFERENT;
        slash = strrchr(base, '/');
        (void)add_file(bake, slash ? slash + 1 : base, sources->candidate->doc, sources->candidate->format);
        write_files(bake);
        return LKG_TOOL_OK;
}

/* One document of the view, without the comment line that says "do not edit". */
static void bake_view_file(struct bake *bake, int fd, const char *name)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *doc = NULL;
        char *data = NULL;
        struct lkg_error err = { 0 };
        enum lkg_format format;
        struct baked *file;
        struct stat st;
        size_t size;

        if (lkg_read_file(fd, LKG_DOC_BYTES_MAX, &data, &size, &err) < 0 || fstat(fd, &st) < 0)
                lkg_tool_end(bake->tool, LKG_TOOL_FAILED, "read '%s': %s", name,
                             *err.message ? err.message : strerror(errno));
        (void)lkg_tool_keep(data);
        format = lkg_detect_format(data, size);
        if (lkg_decode(data, size, format, 0, NULL, &report, &doc) < 0) {
                lkg_tool_print_findings(bake->tool, STDERR_FILENO, &report);
                lkg_tool_end(bake->tool, LKG_TOOL_FAILED, "'%s' cannot be read", name);
        }
        file = add_file(bake, name, lkg_tool_own(doc), format);
        file->as.mode = st.st_mode & 07777;
        file->as.owned = true;
        file->as.uid = st.st_uid;
        file->as.gid = st.st_gid;
}

/* A document of the view has the generation attribute; @sha256 (or NULL) selects those of one component. */
static bool is_wanted(int fd, const char *sha256)
{
        char value[LKG_SHA256_HEX] = "";

        if (fgetxattr(fd, XATTR_GENERATION, NULL, 0) <= 0)
                return false;
        return !sha256 || (fgetxattr(fd, XATTR_SHA256, value, sizeof(value) - 1) == LKG_SHA256_HEX - 1 &&
                           strcmp(value, sha256) == 0);
}

static void bake_directory(struct bake *bake, const char *mountpoint, const char *sha256)
{
        LKG_CLEANUP(lkg_closep) int top = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct lkg_strings names = { 0 };
        int r = top < 0 ? -errno : lkg_tool_names(top, ".", DT_UNKNOWN, &names);

        if (r < 0)
                lkg_tool_end(bake->tool, LKG_TOOL_FAILED, "open '%s': %s", mountpoint, strerror(-r));
        for (size_t i = 0; i < names.n_items; i++) {
                LKG_CLEANUP(lkg_closep) int fd = -EBADF;
                struct stat st;

                if (fstatat(top, names.items[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                        continue;
                fd = openat(top, names.items[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (fd >= 0 && is_wanted(fd, sha256))
                        bake_view_file(bake, fd, names.items[i]);
        }
}

static int bake_view(struct bake *bake)
{
        struct lkg_view view = lkg_view_open(bake->tool, bake->tool->options.component);
        char *sha256 = view.component ? lkg_view_status(&view, "sha256") : NULL;

        if (view.component && !sha256)
                return lkg_tool_fail(bake->tool, LKG_TOOL_FAILED, "'%s': no document of \"%s\" is served",
                                     view.root, view.component);
        bake_directory(bake, view.mountpoint, sha256);
        if (bake->n_files == 0)
                return lkg_tool_fail(bake->tool, LKG_TOOL_DIFFERENT, "'%s' serves no document%s",
                                     view.mountpoint,
                                     view.component && lkg_view_status(&view, "pods")
                                             ? " of it: static pods are plain files, copy their directory"
                                             : "");
        write_files(bake);
        return LKG_TOOL_OK;
}

int lkg_verb_bake(const struct lkg_tool *tool)
{
        struct bake bake = { .tool = tool };

        if (!tool->options.directory)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "missing: --directory DIR");
        return lkg_tool_has_sources(tool) ? bake_sources(&bake) : bake_view(&bake);
}
