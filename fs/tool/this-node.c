/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This node, as its lkgfs configuration describes it: the input of `check`, `render`, `diff` and `blame` if no documents are
 * named.
 *
 * The base is below the view. So the tool leaves the mount namespace and unmounts the view in its own one; nobody else sees
 * that. State and runtime directory are opened through read-only mounts: whatever the code of the store does there, nothing is
 * changed under a running engine.
 */
#include "tool.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <lkg/component.h>
#include <lkg/messages.h>

#define SOURCE_DEFAULT "/etc/kubernetes"
#define STACKED_MAX    16 /* views mounted over each other */

const char *lkg_tool_node_path(const struct lkg_tool *tool)
{
        const char *path = tool->options.node_config ? tool->options.node_config : getenv("LKGFS_CONFIG");

        return path && *path ? path : LKG_CONFIG_DEFAULT;
}

bool lkg_tool_has_node(const struct lkg_tool *tool)
{
        return tool->options.node_config ||
               faccessat(AT_FDCWD, lkg_tool_node_path(tool), F_OK, AT_EACCESS) == 0;
}

/* ---- below the view ---- */

static int is_view(const char *path, bool *ret)
{
        struct lkg_strings mounts = { 0 };
        int r = lkg_view_mounts(&mounts);

        *ret = lkg_tool_has_word(&mounts, path);
        return r;
}

static int uncover(const struct lkg_tool *tool, const char *path)
{
        bool covered;
        int r = is_view(path, &covered);

        for (int i = 0; r == 0 && covered && i < STACKED_MAX; i++) {
                if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
                        r = -errno;
                else
                        r = is_view(path, &covered);
        }
        return r < 0 ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "look below the view on '%s': %s", path,
                                     strerror(-r))
                     : LKG_TOOL_OK;
}

/* Return: a descriptor; -ENOENT: there is no such directory; -errno. */
static int open_read_only(const char *path)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        LKG_CLEANUP(lkg_closep)
        int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_NO_AUTOMOUNT);
        int fd;

        if (tree < 0)
                return -errno;
        if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                return -errno;
        fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return fd;
}

/* ---- directories ---- */

/* sourceDir, else what the view covers, else what a view would cover. */
static int choose_source(const struct lkg_tool *tool, struct lkg_tool_node *node)
{
        struct lkg_strings mounts = { 0 };
        const char *path = *node->config->source_dir ? node->config->source_dir : tool->options.mountpoint;

        if (!path)
                path = getenv("LKGFS_MOUNTPOINT");
        if (!path && lkg_view_mounts(&mounts) == 0 && mounts.n_items == 1)
                path = mounts.items[0];
        node->source_path = lkg_tool_format("%s", path && *path ? path : SOURCE_DEFAULT);
        if (mounts.n_items > 1)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                     "there are several lkgfs mounts; say with --mountpoint which one '%s' "
                                     "is for",
                                     lkg_tool_node_path(tool));
        return LKG_TOOL_OK;
}

static int open_private(const struct lkg_tool *tool, const char *what, const char *top, const char *below,
                        int *ret)
{
        const char *path = lkg_tool_format("%s%s", top, below);

        *ret = open_read_only(path);
        return *ret >= 0 || *ret == -ENOENT
                       ? LKG_TOOL_OK
                       : lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s '%s': %s", what, path, strerror(-*ret));
}

static int open_directories(const struct lkg_tool *tool, struct lkg_tool_node *node)
{
        bool covered = false, root = geteuid() == 0;
        int status = LKG_TOOL_OK;

        (void)is_view(node->source_path, &covered);
        if (!root && (covered || node->config->remote.enabled))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                     "%s: run it as root, or name the documents: --config BASE ...",
                                     covered ? "the layers are below the view, where only root can look"
                                             : "only root can read the ConfigMap that this node follows");
        if (root && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "a mount namespace of its own: %s",
                                     strerror(errno));
        if (root)
                status = uncover(tool, node->source_path);
        if (status == LKG_TOOL_OK && root)
                status = open_private(tool, "stateDir", node->config->state_dir, "", &node->state_fd);
        if (status == LKG_TOOL_OK && root)
                status = open_private(tool, "runtimeDir", node->config->runtime_dir, "/" LKG_PRIVATE_DIR,
                                      &node->runtime_fd);
        if (status != LKG_TOOL_OK)
                return status;
        node->source_fd = open(node->source_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return node->source_fd >= 0 ? LKG_TOOL_OK
                                    : lkg_tool_fail(tool, LKG_TOOL_FAILED, "open '%s': %s",
                                                    node->source_path, strerror(errno));
}

/* ---- the node ---- */

int lkg_tool_node_read(const struct lkg_tool *tool, struct lkg_tool_node **ret)
{
        const struct lkg_config_options options = { .path = lkg_tool_node_path(tool),
                                                    .trust_any_owner = geteuid() != 0 };
        struct lkg_tool_node *node = *ret = lkg_tool_keep(calloc(1, sizeof(*node)));
        int r;

        node->source_fd = node->runtime_fd = node->state_fd = -EBADF;
        if (faccessat(AT_FDCWD, options.path, R_OK, AT_EACCESS) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "read '%s': %s", options.path, strerror(errno));
        r = lkg_config_load(&options, &node->config, &node->report);
        if (r == -EBADMSG || r == -EPERM)
                return LKG_TOOL_DIFFERENT;
        return r < 0 ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s': %s", options.path, strerror(-r))
                     : choose_source(tool, node);
}

/* As the engine does. */
static int find_manifests(const struct lkg_tool *tool, const struct lkg_tool_node *node)
{
        struct lkg_config_component *components = node->config->components, *pods = NULL;
        size_t n = node->config->n_components;
        struct lkg_tool_sources *judged;
        const char *dir;

        for (size_t i = 0; i < n; i++)
                if (components[i].is_pods && !components[i].pods.source_set)
                        pods = &components[i];
        for (size_t i = 0; i < n && pods; i++) {
                if (components[i].is_pods)
                        continue;
                if (lkg_tool_node_judge(tool, node, &components[i], &judged) != LKG_TOOL_OK)
                        return LKG_TOOL_FAILED;
                dir = lkg_pods_directory(judged->candidate, NULL, node->source_path, node->source_fd);
                if (dir) {
                        free(pods->dropin_dir);
                        pods->dropin_dir = lkg_copy(dir);
                }
        }
        return LKG_TOOL_OK;
}

int lkg_tool_node_open(const struct lkg_tool *tool, struct lkg_tool_node **ret)
{
        int status = lkg_tool_node_read(tool, ret);

        if (status == LKG_TOOL_OK)
                status = open_directories(tool, *ret);
        return status == LKG_TOOL_OK ? find_manifests(tool, *ret) : status;
}

int lkg_tool_node_judge(const struct lkg_tool *tool, const struct lkg_tool_node *node,
                        const struct lkg_config_component *component, struct lkg_tool_sources **ret)
{
        const struct lkg_offline_place place = {
                .config = node->config,
                .component = component,
                .source_fd = node->source_fd,
                .source_path = node->source_path,
                .runtime_fd = node->runtime_fd,
                .state_fd = node->state_fd,
                .release = tool->options.release,
                .runs = tool->options.runs,
                .flags = (const char *const *)tool->flags,
                .n_flags = tool->n_flags,
                .lint_all = tool->options.all,
        };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_offline offline;
        struct lkg_error err = { 0 };

        if (lkg_offline_judge(&place, &offline, &report, &err) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
        lkg_tool_add_findings(offline.candidate, &report);
        *ret = lkg_tool_keep(malloc(sizeof(**ret)));
        **ret = (struct lkg_tool_sources){ .stack = offline.stack,
                                           .judge = offline.judge,
                                           .remote = offline.remote,
                                           .candidate = offline.candidate,
                                           .facts = offline.facts,
                                           .dirfd = AT_FDCWD };
        return LKG_TOOL_OK;
}

const struct lkg_config_component *lkg_tool_node_component(const struct lkg_tool *tool,
                                                           const struct lkg_tool_node *node)
{
        const struct lkg_config *config = node->config;
        const char *wanted = tool->options.component;
        struct lkg_strings names = { 0 };

        for (size_t i = 0; i < config->n_components; i++) {
                if (wanted ? strcmp(config->components[i].name, wanted) == 0 : config->n_components == 1)
                        return &config->components[i];
                lkg_tool_add_word(&names, config->components[i].name);
        }
        if (config->n_components == 0)
                lkg_tool_end(tool, LKG_TOOL_DIFFERENT, "'%s' has no component", lkg_tool_node_path(tool));
        if (wanted)
                lkg_tool_end(tool, LKG_TOOL_USAGE, "--component: no \"%s\", there are: %s", wanted,
                             lkg_tool_join(&names));
        lkg_tool_end(tool, LKG_TOOL_USAGE, "which component? --component C, one of: %s",
                     lkg_tool_join(&names));
}
