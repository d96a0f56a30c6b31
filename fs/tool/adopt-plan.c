/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written to adopt a node. The installer's own files stay as they are: the merged document gets a name that nobody
 * else uses, and the kubelet's unit gets a drop-in that appends --config to its command line, where the last flag counts.
 */
#include "adopt.h"

#include <lkg/publication.h>

#define DEFAULT_EXE   "/usr/bin/kubelet"
#define DEFAULT_MOUNT "/etc/kubernetes"
#define OWN_DROPINS   "/etc/lkgfs/config.d"

/* Names of the merged file, in order of preference: kube-bench looks for the first one. */
static const char *const file_names[] = { "kubelet-config.yaml", "kubelet-merged.yaml" };

/* ---- words of YAML and of systemd ---- */

static void put_path(struct lkg_buf *buf, const char *text)
{
        lkg_render(lkg_tool_string(text), LKG_FORMAT_YAML, buf);
        (void)lkg_buf_text(buf);
        if (buf->size && buf->data[buf->size - 1] == '\n')
                buf->size--;
}

/* As a layer is written in the configuration: relative to the source directory if it is there. */
static const char *layer_path(const struct lkg_adopt_plan *plan, const char *path)
{
        size_t n = strlen(plan->source);

        return strncmp(path, plan->source, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static void put_layer(const struct lkg_adopt_plan *plan, const char *root, const char *key, const char *path,
                      struct lkg_buf *buf)
{
        const char *layer = layer_path(plan, path);

        lkg_buf_printf(buf, "  %s: ", key);
        put_path(buf, lkg_tool_format("%s%s", root && *layer == '/' ? root : "", layer));
        lkg_buf_putc(buf, '\n');
}

void lkg_plan_config(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan, const char *root,
                     struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        lkg_buf_printf(buf,
                       "# Written by `lkgfs adopt` for a node of %s; `lkgfs abandon` goes back.\n"
                       "apiVersion: " LKG_CONFIG_API_VERSION "\nkind: " LKG_CONFIG_KIND "\n",
                       look->profile->name);
        if (strcmp(plan->mount_point, plan->source) != 0) {
                lkg_buf_puts(buf, "sourceDir: ");
                put_path(buf, plan->source);
                lkg_buf_putc(buf, '\n');
        }
        lkg_buf_printf(buf, "components:\n- name: kubelet\n  file: %s\n", plan->file);
        put_layer(plan, root, "base", plan->base, buf);
        /* A directory that does not exist yet is as good as an empty one, but only for judging. */
        if (plan->config_dir)
                fd = lkg_root_open(look->rootfd, plan->config_dir, O_PATH | O_DIRECTORY);
        if (!root || fd >= 0)
                put_layer(plan, root, "dropInDir", plan->config_dir, buf);
        else
                lkg_buf_puts(buf, "  dropInDir: \"\"\n");
        if (strcmp(look->program, DEFAULT_EXE) != 0) {
                lkg_buf_puts(buf, "  match:\n    exe: [");
                put_path(buf, look->program);
                lkg_buf_puts(buf, "]\n");
        }
}

/*
 * The kubelet must be able to start whatever becomes of lkgfs. Without the program the gate is open, as it is with
 * /etc/lkgfs/disabled; and then there may be no view, so the words that name it are written to a file at each start, which systemd
 * reads after ExecStartPre= (systemd.exec(5), EnvironmentFile=). Without them the kubelet reads its own files, as it did before.
 */
static void kubelet_dropin(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan,
                           struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "# Written by `lkgfs adopt`; `lkgfs abandon` removes it. The command line is that "
                          "of the unit, "
                          "and what lkgfs\n"
                          "# appends, if there is a view. If the unit changes, run `lkgfs adopt --over`.\n"
                          "[Unit]\nWants=lkgfs.service\nAfter=lkgfs.service\n\n[Service]\n"
                          "EnvironmentFile=-" LKG_ADOPT_ARGUMENTS "\n");
        lkg_buf_printf(buf,
                       "ExecStartPre=/bin/sh -c 'test ! -e " LKG_BINDIR "/lkgfs || exec " LKG_BINDIR
                       "/lkgfs gate kubelet --mountpoint %s'\n",
                       plan->mount_point);
        /* The view has its drop-ins merged already. */
        lkg_buf_printf(buf,
                       "ExecStartPre=/bin/sh -c 'rm -f " LKG_ADOPT_ARGUMENTS
                       "; test ! -e %s/%s || echo \"LKGFS_ARGS=--config=%s/%s%s\" > " LKG_ADOPT_ARGUMENTS
                       "'\n",
                       plan->mount_point, plan->file, plan->mount_point, plan->file,
                       look->config_dir ? " --config-dir=" : "");
        lkg_buf_printf(buf, "ExecStart=\nExecStart=%s $LKGFS_ARGS\n", look->unit.exec_start);
}

/* ---- the list ---- */

static const char *directory_of(const char *path)
{
        const char *slash = strrchr(path, '/');

        return lkg_tool_cut(path, (size_t)(slash - path) + (slash == path));
}

/* @text: NULL = a directory */
static void add(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan, const char *path,
                const char *text)
{
        const struct lkg_adopt_file file = { .path = path,
                                             .text = text,
                                             .kept = text && lkg_root_exists(look->rootfd, path) };

        lkg_plan_insert(plan, plan->n_files, &file);
}

/* With its parents, as far as they are missing. */
static void add_directory(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan, const char *path)
{
        for (size_t n = 1; n <= strlen(path); n++) {
                const char *part = lkg_tool_cut(path, n);

                if ((!path[n] || path[n] == '/') && lkg_plan_find(plan, part) == plan->n_files &&
                    !lkg_root_exists(look->rootfd, part))
                        add(look, plan, part, NULL);
        }
}

static void add_text(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan, const char *path,
                     struct lkg_buf *buf)
{
        add_directory(look, plan, directory_of(path));
        add(look, plan, path, lkg_tool_take(buf));
}

/* The kubelet's drop-in is the last one: the view must be there before the kubelet needs it. */
static void add_files(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan)
{
        struct lkg_buf config = LKG_BUF_INIT, lkgfs = LKG_BUF_INIT, kubelet = LKG_BUF_INIT;

        add_directory(look, plan, LKG_ADOPT_DIRECTORY);
        add_directory(look, plan, plan->config_dir);
        lkg_plan_config(look, plan, NULL, &config);
        add_text(look, plan, LKG_ADOPT_CONFIG, &config);
        if (strcmp(plan->mount_point, DEFAULT_MOUNT) != 0) {
                lkg_buf_printf(&lkgfs,
                               "# Written by `lkgfs adopt`; `lkgfs abandon` removes it.\n[Service]\n"
                               "Environment=LKGFS_MOUNTPOINT=%s\n",
                               plan->mount_point);
                add_text(look, plan, LKG_ADOPT_LKGFS, &lkgfs);
        }
        kubelet_dropin(look, plan, &kubelet);
        add_text(look, plan, LKG_ADOPT_KUBELET, &kubelet);
}

/* ---- names ---- */

static void choose_file(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *old,
                        struct lkg_adopt_plan *plan)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(look->rootfd, plan->source, O_PATH | O_DIRECTORY);
        bool over = look->tool->options.adopt.over && strcmp(plan->mount_point, plan->source) == 0;

        if (fd < 0)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT, "'%s%s', where lkgfs would take its layers: %s",
                             look->root, plan->source, strerror(-fd));
        for (size_t i = 0; !plan->file && i < LKG_ARRAY_SIZE(file_names); i++)
                if ((over && old->file && strcmp(old->file, file_names[i]) == 0) ||
                    faccessat(fd, file_names[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
                    lkg_fallback_is_ours(fd, file_names[i]))
                        plan->file = file_names[i];
        if (!plan->file)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                             "'%s%s' has files %s and %s already: there is no name for the "
                             "merged document",
                             look->root, plan->source, file_names[0], file_names[1]);
}

/* What would act together with the written configuration, and what nobody would find again. */
static void check_place(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *old,
                        const struct lkg_adopt_plan *plan)
{
        if (lkg_root_exists(look->rootfd, OWN_DROPINS) && !look->tool->options.force)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                             "'%s" OWN_DROPINS "' would change what is written; move it away, or use "
                             "--force to keep it unjudged",
                             look->root);
        for (size_t i = 0; i < plan->n_files && !old->file; i++) {
                const char *aside = lkg_tool_format("%s" LKG_ADOPT_ASIDE, plan->files[i].path);

                if (lkg_root_exists(look->rootfd, aside))
                        lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                                     "'%s%s' is in the way: it was kept by an adoption without a "
                                     "record; move it away",
                                     look->root, aside);
        }
}

void lkg_plan_make(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *old,
                   struct lkg_adopt_plan *ret)
{
        const struct lkg_profile *profile = look->profile;

        *ret = (struct lkg_adopt_plan){ .mount_point = profile->mount_point,
                                        .source =
                                                profile->source ? profile->source : directory_of(look->base),
                                        .profile = profile->name,
                                        .base = look->base };
        choose_file(look, old, ret);
        ret->config_dir =
                look->config_dir ? look->config_dir : lkg_tool_format("%s/kubelet.conf.d", ret->source);
        add_files(look, ret);
        check_place(look, old, ret);
}
