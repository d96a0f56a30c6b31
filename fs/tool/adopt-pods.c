/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static pods of a node that is adopted: `lkgfs adopt --static-pods`, and the way back.
 *
 * The component is added by a drop-in of our configuration, so what somebody has written into the configuration since the adoption
 * stays. As long as it is configured, the kubelet's document names the directory of the view. The UID of a static pod contains the path
 * of its file, so the next start of the kubelet restarts each of them once.
 *
 * No pod may be lost. So every file that the kubelet reads now must be served, the view must cover its source directory, where copies
 * are when lkgfs is gone, and these copies are removed only when the kubelet has been started again and does not read them.
 */
#include "adopt.h"

#include <sys/xattr.h>

#include <lkg/publication.h>
#include <lkg/store.h>

#define FALLBACK ".lkgfs-fallback/" LKG_ADOPT_PODS_DIR

bool lkg_plan_has_pods(const struct lkg_adopt_plan *plan)
{
        return lkg_plan_find(plan, LKG_ADOPT_PODS) < plan->n_files;
}

static char *view_directory(const struct lkg_adopt_plan *plan)
{
        return lkg_tool_format("%s/" LKG_ADOPT_PODS_DIR, plan->mount_point);
}

bool lkg_adopt_names_view(const struct lkg_adopt_plan *plan, const struct lkg_value *doc)
{
        const char *path = lkg_map_get_string(doc, "staticPodPath");

        return path && strcmp(path, view_directory(plan)) == 0;
}

/* The directory that the kubelet reads without the component. */
static const char *path_now(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf config = LKG_BUF_INIT;
        const struct lkg_value *merged;
        const char *path, *used;
        size_t n;

        lkg_plan_config(look, plan, look->root, &config);
        merged = lkg_adopt_merge(look, plan->source, lkg_buf_text(&config));
        path = lkg_map_get_string(merged, "staticPodPath");
        used = lkg_map_get_string(lkg_adopt_effective(look, merged), "staticPodPath");
        if (!path || *path != '/')
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                             "staticPodPath of the kubelet names no directory, so it has no static pods");
        if (!used || strcmp(path, used) != 0)
                lkg_tool_end(
                        look->tool, LKG_TOOL_DIFFERENT,
                        "a flag of the kubelet (--pod-manifest-path) says where its static pods are; put "
                        "it into staticPodPath first");
        for (n = strlen(path); n > 1 && path[n - 1] == '/';)
                n--;
        return lkg_tool_cut(path, n);
}

/* @root: to judge by, and complete; NULL: to write */
static void put_config(const struct lkg_adopt_plan *plan, const char *root, const char *path,
                       struct lkg_buf *buf)
{
        lkg_buf_puts(buf, root ? "apiVersion: " LKG_CONFIG_API_VERSION "\nkind: " LKG_CONFIG_KIND "\n"
                               : "# Written by `lkgfs adopt --static-pods`; `lkgfs abandon` removes it.\n");
        lkg_buf_puts(buf, "components:\n- name: " LKG_ADOPT_PODS_DIR "\n  kind: " LKG_PODS_KIND "\n");
        if (root || strcmp(path, lkg_tool_format("%s/" LKG_PODS_SOURCE, plan->source)) != 0)
                lkg_plan_put_layer(plan, root, "source", path, buf);
}

void lkg_plan_add_pods(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(look->rootfd, plan->source, O_RDONLY | O_DIRECTORY);
        struct lkg_buf config = LKG_BUF_INIT;

        if (faccessat(fd, LKG_ADOPT_PODS_DIR, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
            !lkg_fallback_is_ours_dir(fd, LKG_ADOPT_PODS_DIR) &&
            !lkg_root_exists(look->rootfd, LKG_ADOPT_PODS))
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                             "'%s%s/" LKG_ADOPT_PODS_DIR
                             "' is in the way: copies of the manifests would be there",
                             look->root, plan->source);
        if (strcmp(plan->mount_point, plan->source) != 0)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                             "the view is mounted beside '%s': a kubelet that reads static pods from %s has "
                             "none when lkgfs is stopped",
                             plan->source, view_directory(plan));
        if (fgetxattr(fd, "user.lkgfs", NULL, 0) < 0 && errno == EOPNOTSUPP)
                lkg_tool_end(
                        look->tool, LKG_TOOL_DIFFERENT,
                        "the file system of '%s%s' has no extended attributes of users, by which copies "
                        "of the manifests are known: a kubelet has no static pods when lkgfs is stopped",
                        look->root, plan->source);
        put_config(plan, NULL, path_now(look, plan), &config);
        lkg_plan_add_text(look, plan, LKG_ADOPT_PODS, &config);
}

/* What a kubelet reads there. (Source: pkg/kubelet/config/file.go, extractFromDir.) */
static bool is_manifest(int dirfd, const char *name)
{
        struct stat st;

        return *name != '.' && fstatat(dirfd, name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

void lkg_adopt_pods(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan,
                    struct lkg_strings *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf config = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_strings names = { 0 }, lost = { 0 };
        const char *path = path_now(look, plan);
        struct lkg_candidate *candidate;
        int r;

        put_config(plan, look->root, path, &config);
        candidate = lkg_adopt_judge(look, plan->source, lkg_buf_text(&config));
        fd = lkg_root_open(look->rootfd, path, O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd : lkg_tool_names(fd, ".", DT_UNKNOWN, &names);
        if (r < 0)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "'%s%s': %s", look->root, path, strerror(-r));
        for (size_t i = 0; i < names.n_items; i++)
                if (is_manifest(fd, names.items[i]))
                        lkg_tool_add_word(
                                lkg_map_get(lkg_pods_texts(candidate->texts), names.items[i]) ? ret : &lost,
                                names.items[i]);
        if (lost.n_items > 0) {
                lkg_tool_print_findings(look->tool, STDERR_FILENO, &candidate->report);
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                             "not served would be: %s; mend them first, or move them away. Nothing has "
                             "changed",
                             lkg_tool_join(&lost));
        }
        lkg_candidate_unref(candidate);
}

/* ---- the way back ---- */

static int read_in(int dirfd, const char *name, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

        return fd < 0 ? -errno : lkg_tool_read(fd, LKG_DOC_BYTES_MAX, ret, ret_size);
}

/* Is the manifest what is served of it? @ret_text: that; NULL = nothing is. What cannot be read ends the verb. */
static bool is_served(const struct lkg_adopt_node *look, int view, int fd, const char *name, char **ret_text)
{
        char *present;
        size_t size, n;
        int r = read_in(view, name, ret_text, &size);

        if (r < 0 && r != -ENOENT)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "%s, as it is served: %s", name, strerror(-r));
        if (r < 0)
                *ret_text = NULL;
        return r >= 0 && read_in(fd, name, &present, &n) >= 0 && size == n &&
               memcmp(*ret_text, present, n) == 0;
}

int lkg_adopt_bake_pods(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan,
                        const char *dir)
{
        LKG_CLEANUP(lkg_closep)
        int view = lkg_root_open(look->rootfd, view_directory(plan), O_RDONLY | O_DIRECTORY);
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(look->rootfd, dir, O_RDONLY | O_DIRECTORY);
        struct lkg_strings names = { 0 };
        int status = LKG_TOOL_OK;
        const char *path, *kept;
        char *text;

        if (view < 0 || fd < 0)
                return LKG_TOOL_OK; /* an earlier run has been here, or nobody reads it */
        (void)lkg_tool_names(fd, ".", DT_UNKNOWN, &names);
        for (size_t i = 0; status == LKG_TOOL_OK && i < names.n_items; i++) {
                if (!is_manifest(fd, names.items[i]) || is_served(look, view, fd, names.items[i], &text))
                        continue;
                path = lkg_tool_format("%s/%s", dir, names.items[i]);
                status = lkg_adopt_replace(look, path, text, true, &kept);
                if (status == LKG_TOOL_OK)
                        lkg_tool_note(look->tool, "%s%s is not what was served, and is kept as %s",
                                      look->root, path, kept);
        }
        return status;
}

/* @ours: only marked copies, in a directory that is marked; else it is ours by its place */
static void remove_copies(int source_fd, const char *directory, bool ours)
{
        struct lkg_strings names = { 0 };

        if (ours && !lkg_fallback_is_ours_dir(source_fd, directory))
                return;
        (void)lkg_tool_names(source_fd, directory, DT_UNKNOWN, &names);
        for (size_t i = 0; i < names.n_items; i++) {
                const char *path = lkg_tool_format("%s/%s", directory, names.items[i]);

                if (!ours || lkg_fallback_is_ours(source_fd, path))
                        (void)unlinkat(source_fd, path, 0);
        }
        (void)unlinkat(source_fd, directory, AT_REMOVEDIR);
}

void lkg_adopt_clean_pods(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(look->rootfd, plan->source, O_RDONLY | O_DIRECTORY);

        if (fd < 0)
                return;
        remove_copies(fd, LKG_ADOPT_PODS_DIR, true);
        remove_copies(fd, FALLBACK, false);
}
