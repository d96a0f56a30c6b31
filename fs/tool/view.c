/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mounted view as the tool sees it: a directory with files. It only uses open, read, write and poll.
 *
 * Which mount: --mountpoint, else $LKGFS_MOUNTPOINT, else the only mount of type fuse.lkgfs in
 * /proc/self/mountinfo. Which directory in it: --virtual-dir, else the root if it has
 * status/<name>/generation, else the directory in it that has.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "tool.h"

#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/file.h>
#include <lkg/text.h>

#define FSTYPE         "fuse.lkgfs"
#define FILE_BYTES_MAX (16u << 20)

void lkg_view_free_mounts(char **mounts, size_t n)
{
        for (size_t i = 0; i < n; i++)
                free(mounts[i]);
        free(mounts);
}

/* The kernel writes blank, tab, newline and backslash of a path as \ooo. */
static char *unescape(const char *text, size_t size)
{
        char *ret = malloc(size + 1), *p = ret;

        for (size_t i = 0; ret && i < size; i++) {
                if (text[i] == '\\' && i + 3 < size && text[i + 1] >= '0' && text[i + 1] <= '3') {
                        *p++ = (char)((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 |
                                      (text[i + 3] - '0'));
                        i += 3;
                } else {
                        *p++ = text[i];
                }
        }
        if (ret)
                *p = '\0';
        return ret;
}

/*
 * `id parent dev root MOUNTPOINT options [optional...] - TYPE source super`: the fifth field. @end: of the
 * optional fields
 */
static const char *mount_path(const char *line, const char *end, size_t *ret_size)
{
        const char *p = line;

        for (int field = 0; field < 4; field++) {
                p = memchr(p, ' ', (size_t)(end - p));
                if (!p)
                        return NULL;
                p++;
        }
        *ret_size = strcspn(p, " \n");
        return p;
}

/* The same, if TYPE is ours. */
static const char *our_mountpoint(const char *line, size_t size, size_t *ret_size)
{
        const char *end = line + size, *separator = memmem(line, size, " - ", 3);
        size_t type_size = strlen(FSTYPE);

        if (!separator || (size_t)(end - separator) < 3 + type_size + 1 ||
            memcmp(separator + 3, FSTYPE " ", type_size + 1) != 0)
                return NULL;
        return mount_path(line, end, ret_size);
}

int lkg_view_find_mounts(const char *mountinfo, char ***ret, size_t *ret_n)
{
        char **mounts = NULL;
        size_t n = 0;

        for (const char *line = mountinfo; *line;) {
                size_t size = strcspn(line, "\n"), path_size = 0;
                const char *path = our_mountpoint(line, size, &path_size);

                line += size + (line[size] == '\n');
                if (path) {
                        char *mount = unescape(path, path_size);
                        bool known = false;

                        for (size_t i = 0; mount && i < n; i++) /* mounted twice over itself: one view */
                                known |= strcmp(mounts[i], mount) == 0;
                        if (known) {
                                free(mount);
                        } else if (lkg_strings_take(&mounts, &n, mount) < 0) {
                                lkg_view_free_mounts(mounts, n);
                                return -ENOMEM;
                        }
                }
        }
        *ret = mounts;
        *ret_n = n;
        return 0;
}

int lkg_view_read_mountinfo(char **ret)
{
        LKG_CLEANUP(lkg_closep) int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : lkg_read_file(fd, FILE_BYTES_MAX, ret, NULL, NULL);
}

bool lkg_view_is_there(const struct lkg_tool *tool)
{
        const char *named = tool->options.mountpoint ? tool->options.mountpoint : getenv("LKGFS_MOUNTPOINT");
        LKG_CLEANUP(lkg_freep) char *mountinfo = NULL;
        char **mounts = NULL;
        size_t n = 0;

        if (named && *named)
                return true;
        if (lkg_view_read_mountinfo(&mountinfo) == 0)
                (void)lkg_view_find_mounts(mountinfo, &mounts, &n);
        lkg_view_free_mounts(mounts, n);
        return n > 0;
}

static int only_mount(const struct lkg_tool *tool, char **ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *mountinfo = NULL;
        char **mounts = NULL;
        size_t n = 0;
        int r;

        r = lkg_view_read_mountinfo(&mountinfo);
        if (r == 0)
                r = lkg_view_find_mounts(mountinfo, &mounts, &n);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "/proc/self/mountinfo: %s", strerror(-r));
        if (n == 1) {
                *ret = LKG_STEAL(mounts[0]);
                lkg_view_free_mounts(mounts, n);
                return LKG_TOOL_OK;
        }
        for (size_t i = 0; i < n; i++)
                lkg_buf_printf(&names, "%s%s", i ? ", " : "", mounts[i]);
        lkg_view_free_mounts(mounts, n);
        if (n == 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                     "lkgfs is not mounted here; start it with `systemctl start lkgfs`, or "
                                     "mount it with `lkgfs mount MOUNTPOINT`");
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "several lkgfs mounts: %s; choose with --mountpoint",
                             names.data ? names.data : "");
}

static int find_mountpoint(const struct lkg_tool *tool, char **ret)
{
        const char *given = tool->options.mountpoint ? tool->options.mountpoint : getenv("LKGFS_MOUNTPOINT");

        if (!given || !*given)
                return only_mount(tool, ret);
        *ret = strdup(given);
        return *ret ? LKG_TOOL_OK : lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
}

/* Is there a component's status below @root? The node's own directory `status` has none. */
static bool has_status(const char *root)
{
        struct lkg_view view = { .fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) };
        char **components = NULL;
        bool found = false;
        size_t n = 0;

        if (view.fd >= 0 && lkg_view_components(&view, &components, &n) == 0)
                for (size_t i = 0; i < n && !found; i++) {
                        LKG_CLEANUP(lkg_freep) char *path = NULL;

                        if (asprintf(&path, "status/%s/generation", components[i]) < 0)
                                path = NULL;
                        found = path && faccessat(view.fd, path, F_OK, 0) == 0;
                }
        lkg_view_free_mounts(components, n);
        (void)lkg_close(view.fd);
        return found;
}

/* Return: the directory in @mountpoint with the status; NULL = none. */
static char *find_virtual_dir(const char *mountpoint)
{
        DIR *dir = opendir(mountpoint);
        char *found = NULL;

        for (struct dirent *e = dir ? readdir(dir) : NULL; e && !found; e = readdir(dir)) {
                LKG_CLEANUP(lkg_freep) char *path = NULL;

                if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || strcmp(e->d_name, ".") == 0 ||
                    strcmp(e->d_name, "..") == 0)
                        continue;
                if (asprintf(&path, "%s/%s", mountpoint, e->d_name) < 0)
                        path = NULL;
                else if (has_status(path))
                        found = LKG_STEAL(path);
        }
        if (dir)
                (void)closedir(dir);
        return found;
}

static int choose_root(const struct lkg_tool *tool, const char *mountpoint, char **ret)
{
        const char *given = tool->options.virtual_dir;
        char *root = NULL;

        if (given && *given) {
                if (asprintf(&root, "%s/%s", mountpoint, given) < 0)
                        root = NULL;
        } else {
                root = !given && !has_status(mountpoint) ? find_virtual_dir(mountpoint) : NULL;
                if (!root)
                        root = strdup(mountpoint);
        }
        *ret = root;
        return root ? 0 : -ENOMEM;
}

int lkg_view_open(const struct lkg_tool *tool, struct lkg_view *ret)
{
        struct lkg_view view = { .fd = -EBADF };
        int r;

        r = find_mountpoint(tool, &view.mountpoint);
        if (r != LKG_TOOL_OK)
                return r;
        r = choose_root(tool, view.mountpoint, &view.root);
        if (r < 0) {
                lkg_view_close(&view);
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r));
        }
        view.fd = open(view.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (view.fd < 0 || faccessat(view.fd, "status", F_OK, 0) < 0) {
                const char *why = errno == ENOENT ? "lkgfs is not running there"
                                  : errno == ENOTCONN
                                          ? "the mount is dead (start lkgfsd again, it recovers it)"
                                          : strerror(errno);

                (void)lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s': %s", view.root, why);
                lkg_view_close(&view);
                return LKG_TOOL_FAILED;
        }
        *ret = view;
        return LKG_TOOL_OK;
}

void lkg_view_close(struct lkg_view *view)
{
        free(view->mountpoint);
        free(view->root);
        (void)lkg_close(view->fd);
        *view = (struct lkg_view){ .fd = -EBADF };
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static DIR *open_directory(const struct lkg_view *view, const char *path)
{
        int fd = openat(view->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        if (!dir)
                (void)lkg_close(fd);
        return dir;
}

/* Entries of @path with type @type, sorted. */
static int list_names(const struct lkg_view *view, const char *path, unsigned char type, char ***ret,
                      size_t *ret_n)
{
        DIR *dir = open_directory(view, path);
        const struct dirent *entry;
        char **list = NULL;
        size_t n = 0;
        int r = 0;

        if (!dir)
                return -errno;
        while (r == 0 && (entry = readdir(dir)))
                if (entry->d_name[0] != '.' && (entry->d_type == type || entry->d_type == DT_UNKNOWN))
                        r = lkg_strings_take(&list, &n, strdup(entry->d_name));
        (void)closedir(dir);
        if (r < 0) {
                lkg_view_free_mounts(list, n);
                return r;
        }
        if (n > 1)
                qsort(list, n, sizeof(*list), by_name);
        *ret = list;
        *ret_n = n;
        return 0;
}

int lkg_view_components(const struct lkg_view *view, char ***ret, size_t *ret_n)
{
        return list_names(view, "status", DT_DIR, ret, ret_n);
}

int lkg_view_bad_names(const struct lkg_view *view, const char *component, char ***ret, size_t *ret_n)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        int r;

        if (asprintf(&path, "bad/%s", component) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = list_names(view, path, DT_REG, ret, ret_n);
        if (r != -ENOENT)
                return r;
        *ret = NULL;
        *ret_n = 0;
        return 0;
}

int lkg_view_component(const struct lkg_tool *tool, const struct lkg_view *view, char **ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;
        const char *given = tool->options.component;
        int r, status = LKG_TOOL_OK;
        char **list = NULL;
        bool known = false;
        size_t n = 0;

        r = lkg_view_components(view, &list, &n);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s/status': %s", view->root, strerror(-r));
        for (size_t i = 0; i < n; i++) {
                lkg_buf_printf(&names, "%s%s", i ? ", " : "", list[i]);
                known |= given && strcmp(list[i], given) == 0;
        }
        lkg_buf_append(&names, "", 0);
        if (given && !known)
                status = lkg_tool_fail(tool, LKG_TOOL_FAILED, "no component \"%.60s\", there is: %s", given,
                                       names.data ? names.data : "");
        else if (!given && n == 0)
                status = lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s' has no component", view->root);
        else if (!given && n > 1)
                status = lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                       "several components: %s; choose with --component",
                                       names.data ? names.data : "");
        if (status == LKG_TOOL_OK) {
                *ret = strdup(given ? given : list[0]);
                if (!*ret)
                        status = lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        }
        lkg_view_free_mounts(list, n);
        return status;
}

static int read_formatted(const struct lkg_view *view, char **ret, size_t *ret_size, struct stat *ret_st,
                          const char *fmt, va_list ap) LKG_PRINTF(5, 0);

static int read_formatted(const struct lkg_view *view, char **ret, size_t *ret_size, struct stat *ret_st,
                          const char *fmt, va_list ap)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        if (vasprintf(&path, fmt, ap) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        fd = openat(view->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || (ret_st && fstat(fd, ret_st) < 0))
                return -errno;
        return lkg_read_file(fd, FILE_BYTES_MAX, ret, ret_size, NULL);
}

int lkg_view_read(const struct lkg_view *view, char **ret, struct stat *ret_st, const char *fmt, ...)
{
        size_t size = 0;
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = read_formatted(view, ret, &size, ret_st, fmt, ap);
        va_end(ap);
        if (r < 0)
                return r;
        if (size > 0 && (*ret)[size - 1] == '\n')
                (*ret)[size - 1] = '\0';
        return 0;
}

struct lkg_value *lkg_view_read_json(const struct lkg_view *view, const char *fmt, ...)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_value *value = NULL;
        size_t size = 0;
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = read_formatted(view, &text, &size, NULL, fmt, ap);
        va_end(ap);
        if (r < 0 || lkg_decode_json(text, size, 0, NULL, &report, &value) < 0)
                return NULL;
        if (lkg_value_type(value) != LKG_MAP)
                value = lkg_value_unref(value);
        return value;
}

/* The lines are read where there is no JSON; in those a position cannot always be distinguished from text. */
int lkg_view_findings(const struct lkg_view *view, const char *component, struct lkg_report *ret)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *map = lkg_view_read_json(view, "status/%s/findings.json", component);
        LKG_CLEANUP(lkg_freep) char *lines = NULL;
        int r;

        if (lkg_tool_findings_take(map, ret))
                return 0;
        r = lkg_view_read(view, &lines, NULL, "status/%s/findings", component);
        if (r < 0)
                return r;
        lkg_tool_findings_parse(lines, ret);
        return 0;
}

static int descending(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? 1 : x > y ? -1 : 0;
}

int lkg_view_list_numbers(const struct lkg_view *view, const char *path, uint64_t **ret, size_t *ret_n)
{
        DIR *dir = open_directory(view, path);
        const struct dirent *entry;
        uint64_t *list = NULL;
        size_t n = 0;

        if (!dir)
                return -errno;
        while ((entry = readdir(dir))) {
                char *end;
                uint64_t number = strtoull(entry->d_name, &end, 10);

                if (*end || end == entry->d_name)
                        continue;
                if (LKG_GROW(list, n) < 0) {
                        free(list);
                        (void)closedir(dir);
                        return -ENOMEM;
                }
                list[n++] = number;
        }
        (void)closedir(dir);
        if (n > 1)
                qsort(list, n, sizeof(*list), descending);
        *ret = list;
        *ret_n = n;
        return 0;
}

static int refused(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                   const char *path, int error)
{
        LKG_CLEANUP(lkg_freep) char *words = NULL;

        if (error == EACCES || error == EPERM)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s/%s: only root may do this", view->root,
                                     path);
        if ((error == EINVAL || error == EBUSY) &&
            lkg_view_read(view, &words, NULL, "status/%s/last-error", component) == 0 && *words)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", words);
        if (error == ETIMEDOUT)
                return lkg_tool_fail(
                        tool, LKG_TOOL_FAILED,
                        "%s/%s: the engine does not answer; this is not carried out, now or later",
                        view->root, path);
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s/%s: %s", view->root, path, strerror(error));
}

int lkg_view_write(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                   const char *path, int flags, const char *text)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(view->fd, path, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0644);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                return refused(tool, view, component, path, errno);
        return LKG_TOOL_OK;
}

int lkg_view_command(const struct lkg_tool *tool, const char *command, const char *text)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        int r;

        r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(tool, &view, &component);
        if (r != LKG_TOOL_OK)
                return r;
        if (asprintf(&path, "control/%s/%s", component, command) < 0) {
                path = NULL;
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        }
        return lkg_view_write(tool, &view, component, path, 0, text);
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
        struct lkg_command_call call;
        char why[256];

        /* An empty write would do nothing and look successful. */
        if (!*word)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "want %s", tool->verb->words);
        if (lkg_command_parse(tool->verb->name, word, strlen(word), &call, why) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "%s",
                                     why + strlen(tool->verb->name) + strlen(": "));
        return lkg_view_command(tool, tool->verb->name, word);
}
