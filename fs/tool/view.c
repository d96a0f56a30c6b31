/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mounted view as the tool sees it: a directory with files. It only uses open, read, write and poll.
 *
 * Which mount: --mountpoint, else $LKGFS_MOUNTPOINT, else the only mount of type fuse.lkgfs in
 * /proc/self/mounts. Which directory in it: --virtual-dir, else the root if it has
 * status/<name>/generation, else the directory in it that has.
 */
#include <mntent.h>

#include "tool.h"

#include <lkg/component.h>
#include <lkg/publication.h>

#define FILE_BYTES_MAX (16u << 20)

void lkg_view_find_mounts(FILE *table, struct lkg_strings *ret)
{
        const struct mntent *mount;

        while ((mount = getmntent(table)))
                /* mounted twice over itself: one view */
                if (strcmp(mount->mnt_type, "fuse.lkgfs") == 0 && !lkg_tool_has_word(ret, mount->mnt_dir))
                        lkg_tool_add_word(ret, mount->mnt_dir);
}

int lkg_view_mounts(struct lkg_strings *ret)
{
        FILE *table = setmntent("/proc/self/mounts", "re");

        if (!table)
                return -errno;
        lkg_view_find_mounts(table, ret);
        (void)endmntent(table);
        return 0;
}

static int say_error(struct lkg_error *err, const char *fmt, ...) LKG_PRINTF(2, 3);

/* A sentence that is complete. Return: -EIO. */
static int say_error(struct lkg_error *err, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(err->message, sizeof(err->message), fmt, ap);
        va_end(ap);
        return -EIO;
}

/* ---- which view ---- */

const char *lkg_view_named(const struct lkg_tool *tool)
{
        const char *named = tool->options.mountpoint ? tool->options.mountpoint : getenv("LKGFS_MOUNTPOINT");

        return named && *named ? named : NULL;
}

bool lkg_view_is_there(const struct lkg_tool *tool)
{
        struct lkg_strings mounts = { 0 };

        return lkg_view_named(tool) || (lkg_view_mounts(&mounts) == 0 && mounts.n_items > 0);
}

static int find_mountpoint(const struct lkg_tool *tool, const char **ret, struct lkg_error *err)
{
        struct lkg_strings mounts = { 0 };
        const char *named = lkg_view_named(tool);
        int r = named ? 0 : lkg_view_mounts(&mounts);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "/proc/self/mounts");
        if (named || mounts.n_items == 1) {
                *ret = named ? named : lkg_tool_cut(mounts.items[0], strlen(mounts.items[0]));
                return 0;
        }
        if (mounts.n_items == 0)
                return say_error(err, "lkgfs is not mounted here; start it with `systemctl start lkgfs`, or "
                                      "mount it with `lkgfs mount MOUNTPOINT`");
        return say_error(err, "several lkgfs mounts: %s; choose with --mountpoint", lkg_tool_join(&mounts));
}

/* Is there a component's status below @root? The node's own directory `status` has none. */
static bool has_status(const char *root)
{
        const struct lkg_view view = { .fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) };
        struct lkg_strings components = { 0 };
        bool found = false;

        if (view.fd >= 0)
                (void)lkg_view_components(&view, &components);
        for (size_t i = 0; i < components.n_items && !found; i++)
                found = faccessat(view.fd, lkg_tool_format("status/%s/generation", components.items[i]),
                                  F_OK, 0) == 0;
        (void)lkg_close(view.fd);
        return found;
}

/* Return: the directory in @mountpoint with the status; NULL = none. */
static const char *find_virtual_dir(const char *mountpoint)
{
        struct lkg_strings names = { 0 };

        (void)lkg_tool_names(AT_FDCWD, lkg_tool_format("%s/.", mountpoint), DT_DIR, &names);
        for (size_t i = 0; i < names.n_items; i++) {
                const char *path = lkg_tool_format("%s/%s", mountpoint, names.items[i]);

                if (has_status(path))
                        return path;
        }
        return NULL;
}

int lkg_view_find(const struct lkg_tool *tool, struct lkg_view *ret, struct lkg_error *err)
{
        const char *given = tool->options.virtual_dir, *root = NULL, *why;
        int r = find_mountpoint(tool, &ret->mountpoint, err);

        if (r < 0)
                return r;
        if (given && *given)
                root = lkg_tool_format("%s/%s", ret->mountpoint, given);
        else if (!given && !has_status(ret->mountpoint))
                root = find_virtual_dir(ret->mountpoint);
        ret->root = root ? root : ret->mountpoint;
        ret->fd = open(ret->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (ret->fd >= 0 && faccessat(ret->fd, "status", F_OK, 0) == 0)
                return 0;
        why = errno == ENOENT     ? "lkgfs is not running there"
              : errno == ENOTCONN ? "the mount is dead (start lkgfsd again, it recovers it)"
                                  : strerror(errno);
        return say_error(err, "'%s': %s", ret->root, why);
}

int lkg_view_find_component(const struct lkg_tool *tool, struct lkg_view *view, struct lkg_error *err)
{
        struct lkg_strings components = { 0 };
        const char *given = tool->options.component;
        int r = lkg_view_components(view, &components);

        if (r < 0)
                return say_error(err, "'%s/status': %s", view->root, strerror(-r));
        if (given && !lkg_tool_has_word(&components, given))
                return say_error(err, "no component \"%.60s\", there is: %s", given,
                                 lkg_tool_join(&components));
        if (!given && components.n_items == 0)
                return say_error(err, "'%s' has no component", view->root);
        if (!given && components.n_items > 1) {
                (void)say_error(err, "several components: %s; choose with --component",
                                lkg_tool_join(&components));
                return -EINVAL;
        }
        view->component = given ? given : lkg_tool_cut(components.items[0], strlen(components.items[0]));
        return 0;
}

struct lkg_view lkg_view_open(const struct lkg_tool *tool, bool one)
{
        struct lkg_view view = { 0 };
        struct lkg_error err = { 0 };
        int r = lkg_view_find(tool, &view, &err);

        if (r == 0 && one)
                r = lkg_view_find_component(tool, &view, &err);
        if (r < 0)
                lkg_tool_end(tool, r == -EINVAL ? LKG_TOOL_USAGE : LKG_TOOL_FAILED, "%s", err.message);
        return view;
}

/* ---- names ---- */

int lkg_view_components(const struct lkg_view *view, struct lkg_strings *ret)
{
        return lkg_tool_names(view->fd, "status", DT_DIR, ret);
}

int lkg_view_bad_names(const struct lkg_view *view, struct lkg_strings *ret)
{
        int r = lkg_tool_names(view->fd, lkg_tool_format("bad/%s", view->component), DT_REG, ret);

        return r == -ENOENT ? 0 : r;
}

/* ---- files ---- */

bool lkg_view_is_no_answer(const char *text)
{
        const char *value = *text == '{' ? strchr(text, ':') : NULL; /* of the first member */

        if (value)
                return strncmp(value + 1, "\"" LKG_NOT_ANSWERING, strlen(LKG_NOT_ANSWERING) + 1) == 0;
        return strncmp(text, "# " LKG_NOT_ANSWERING, strlen(LKG_NOT_ANSWERING) + 2) == 0;
}

static int read_path(const struct lkg_view *view, const char *path, char **ret, size_t *ret_size,
                     struct stat *ret_st)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(view->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int r;

        if (fd < 0 || (ret_st && fstat(fd, ret_st) < 0))
                return -errno;
        r = lkg_tool_read(fd, FILE_BYTES_MAX, ret, ret_size);
        return r == 0 && lkg_view_is_no_answer(*ret) ? -ETIMEDOUT : r;
}

int lkg_view_read(const struct lkg_view *view, char **ret, struct stat *ret_st, const char *fmt, ...)
{
        size_t size = 0;
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = read_path(view, lkg_tool_vformat(fmt, ap), ret, &size, ret_st);
        va_end(ap);
        if (r == 0 && size > 0 && (*ret)[size - 1] == '\n')
                (*ret)[size - 1] = '\0';
        return r;
}

char *lkg_view_status(const struct lkg_view *view, const char *file)
{
        char *text = NULL;

        return lkg_view_read(view, &text, NULL, "status/%s/%s", view->component, file) < 0 ? NULL : text;
}

const char *lkg_view_text(const struct lkg_view *view, const char *file)
{
        const char *text = lkg_view_status(view, file);

        return text ? text : "";
}

uint64_t lkg_view_generation(const struct lkg_view *view)
{
        return strtoull(lkg_view_text(view, "generation"), NULL, 10);
}

struct lkg_value *lkg_view_read_json(const struct lkg_view *view, const char *fmt, ...)
{
        struct lkg_value *value = NULL;
        char *text = NULL;
        size_t size = 0;
        va_list ap;

        va_start(ap, fmt);
        if (read_path(view, lkg_tool_vformat(fmt, ap), &text, &size, NULL) == 0)
                value = lkg_tool_decode(text);
        va_end(ap);
        return value && lkg_value_type(value) == LKG_MAP ? value : NULL;
}

/* ---- writing ---- */

static int refused(const struct lkg_tool *tool, const struct lkg_view *view, const char *path, int error)
{
        const char *words = "";

        if (error == EACCES || error == EPERM)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s/%s: only root may do this", view->root,
                                     path);
        if (error == EINVAL || error == EBUSY)
                words = lkg_view_text(view, "last-error");
        if (*words)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", words);
        if (error == ETIMEDOUT)
                return lkg_tool_fail(
                        tool, LKG_TOOL_FAILED,
                        "%s/%s: the engine does not answer; this is not carried out, now or later",
                        view->root, path);
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s/%s: %s", view->root, path, strerror(error));
}

int lkg_view_write(const struct lkg_tool *tool, const struct lkg_view *view, const char *path, int flags,
                   const char *text)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(view->fd, path, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0644);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                return refused(tool, view, path, errno);
        return LKG_TOOL_OK;
}

int lkg_view_command(const struct lkg_tool *tool, const struct lkg_view *view, const char *command,
                     const char *text)
{
        return lkg_view_write(tool, view, lkg_tool_format("control/%s/%s", view->component, command), 0,
                              text);
}

/* ---- verb-command ---- */

/*
 * rollback, promote, forget, hold, sync, try, commit, startup: one write to the control file of the same
 * name. The words are those of the file, and checked before there is a view to ask.
 */

#define DEFAULT_WORD "now" /* of the files that accept it: promote, sync, commit, startup */

int lkg_verb_command(const struct lkg_tool *tool)
{
        const char *word = tool->n_words > 0 ? tool->words[0] : DEFAULT_WORD;
        struct lkg_view view = { 0 };
        struct lkg_command_call call;
        char why[256];

        /* An empty write would do nothing and look successful. */
        if (!*word)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "want %s", tool->verb->words);
        if (lkg_command_parse(tool->verb->name, word, strlen(word), &call, why) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "%s",
                                     why + strlen(tool->verb->name) + strlen(": "));
        view = lkg_view_open(tool, true);
        return lkg_view_command(tool, &view, tool->verb->name, word);
}
