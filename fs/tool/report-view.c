/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the mounted view for a report. Runs in a child process, which is abandoned if the mount does not answer. */
#include "report-parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/file.h>
#include <lkg/text.h>

#define DEPTH_MAX      4
#define FILES_MAX      4096u
#define FILE_BYTES_MAX (4u << 20)
#define ALL_BYTES_MAX  (24u << 20)

struct reading {
        const struct lkg_view *view;
        const char *component; /* NULL = all */
        bool masks;            /* these are documents in full */
        size_t n, bytes;
};

static void send_file(struct reading *reading, const char *path)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct stat st = { 0 };
        size_t size = 0;
        int r;

        lkg_parts_send(path, NULL, 0, -EINPROGRESS, 0);
        fd = openat(reading->view->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 || fstat(fd, &st) < 0 ? -errno
            : S_ISREG(st.st_mode)        ? lkg_read_file(fd, FILE_BYTES_MAX, &text, &size, NULL)
                                         : -EINVAL;
        if (r == 0 && reading->masks)
                r = lkg_report_mask_document(text, size, &masked);
        if (r == 0 && reading->bytes + size > ALL_BYTES_MAX)
                r = -EFBIG;
        if (r < 0) {
                lkg_parts_send(path, NULL, 0, r, 0);
                return;
        }
        reading->bytes += size;
        lkg_parts_send(path, reading->masks ? masked.data : text, reading->masks ? masked.size : size, 0,
                       st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0);
}

static int by_number_then_name(const void *a, const void *b)
{
        const char *x = *(char *const *)a, *y = *(char *const *)b;
        char *x_end, *y_end;
        unsigned long long m = strtoull(x, &x_end, 10), n = strtoull(y, &y_end, 10);

        return *x_end || *y_end || m == n ? strcmp(x, y)
               : m > n                    ? -1
                                          : 1; /* generations: the newest first */
}

/* Return: 0 or -errno. The caller frees with lkg_view_free_mounts(). */
static int list(int at, const char *path, char ***ret, size_t *ret_n)
{
        int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                r = -errno;
                (void)lkg_close(fd);
                return r;
        }
        while (r == 0 && (entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        r = lkg_strings_take(ret, ret_n, strdup(entry->d_name));
        (void)closedir(dir);
        if (*ret_n > 1)
                qsort(*ret, *ret_n, sizeof(**ret), by_number_then_name);
        return r;
}

static void send_tree(struct reading *reading, const char *path, unsigned depth);

static void send_entry(struct reading *reading, const char *path, unsigned depth)
{
        struct stat st;

        if (reading->n++ >= FILES_MAX)
                return;
        if (fstatat(reading->view->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                send_tree(reading, path, depth);
        else
                send_file(reading, path);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most DEPTH_MAX deep */
static void send_tree(struct reading *reading, const char *path, unsigned depth)
{
        char **names = NULL;
        size_t n = 0;
        int r;

        if (depth >= DEPTH_MAX)
                return;
        r = list(reading->view->fd, path, &names, &n);
        if (r < 0 && r != -ENOENT) /* nothing has been served yet: no history */
                lkg_parts_send(path, NULL, 0, r, 0);
        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_freep) char *child = NULL;

                if (depth == 0 && reading->component && !reading->masks &&
                    strcmp(names[i], reading->component) != 0)
                        continue;
                if (asprintf(&child, "%s/%s", path, names[i]) < 0)
                        child = NULL;
                else
                        send_entry(reading, child, depth + 1);
        }
        lkg_view_free_mounts(names, n);
}

int lkg_report_read_view(const struct lkg_tool *tool)
{
        static const char *const directories[] = { "status", "bad", "lkg", "history", "layers" };
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        struct reading reading = { .view = &view, .component = tool->options.component };
        struct lkg_tool quiet = *tool;
        char said[512] = "";

        quiet.said = &said;
        lkg_parts_send("view", NULL, 0, -EINPROGRESS, 0);
        if (lkg_view_open(&quiet, &view) != LKG_TOOL_OK) {
                lkg_parts_send("view", said, strlen(said), -ENOTCONN, 0);
                return LKG_TOOL_FAILED;
        }
        lkg_parts_send("view", view.root, strlen(view.root), 0, 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(directories); i++) {
                reading.masks = strcmp(directories[i], "lkg") == 0;
                send_tree(&reading, directories[i], 0);
        }
        if (reading.n > FILES_MAX)
                lkg_parts_send("view-files-left-out", NULL, 0, -E2BIG, 0);
        return LKG_TOOL_OK;
}
