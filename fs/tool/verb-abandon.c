/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs abandon: undoes `lkgfs adopt`, by its record.
 *
 * The order lets the kubelet start after every step: what is served is written to the base if they differ, the drop-in of the
 * kubelet's unit goes first (it would start lkgfs, and wait for it), then lkgfs stops, then the other files go, the record last.
 * A kubelet that reads static pods from the view is restarted before their copies go, which it reads when lkgfs has stopped.
 * A run that was interrupted is continued by the next one: what is undone already is skipped.
 */
#include "adopt.h"

#include <sys/xattr.h>

#define XATTR_GENERATION "user.lkgfs.generation"

struct leaving {
        const struct lkg_tool *tool;
        struct lkg_adopt_node look;
        struct lkg_adopt_plan record;
        bool known; /* the look succeeded */
};

/* ---- what is served ---- */

/* The file of the view, whatever is held or comes from a ConfigMap. NULL: there is no view. */
static struct lkg_value *read_view(const struct leaving *l)
{
        const char *path = lkg_tool_format("%s%s/%s", l->look.root, l->record.mount_point, l->record.file);
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        struct lkg_value *doc = NULL;
        char *text;
        size_t size;
        int r;

        if (fd < 0 || fgetxattr(fd, XATTR_GENERATION, NULL, 0) <= 0)
                return NULL;
        r = lkg_tool_read(fd, LKG_DOC_BYTES_MAX, &text, &size);
        if (r == 0)
                r = lkg_decode(text, size, lkg_detect_format(text, size), 0, NULL, &report, &doc);
        if (r < 0)
                lkg_tool_end(l->tool, LKG_TOOL_FAILED, "read the view: %s", strerror(-r));
        return lkg_tool_own(doc);
}

/* What the layers make, by the configuration. */
static struct lkg_value *read_layers(const struct leaving *l)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf below = LKG_BUF_INIT;
        char *config;
        size_t size;
        int r = lkg_root_read(l->look.rootfd, LKG_ADOPT_CONFIG, &config, &size);

        if (r < 0)
                lkg_tool_end(l->tool, LKG_TOOL_FAILED, "read '%s" LKG_ADOPT_CONFIG "': %s", l->look.root,
                             strerror(-r));
        if (!*l->look.root)
                return lkg_adopt_merge(&l->look, l->record.source, config);
        /* The paths in the file are those of the node; below --root, what adopt would write is judged. */
        lkg_plan_config(&l->look, &l->record, l->look.root, &below);
        return lkg_adopt_merge(&l->look, l->record.source, lkg_buf_text(&below));
}

/* Without the view's directory of static pods: the layers name theirs. */
static struct lkg_value *read_served(const struct leaving *l)
{
        static const char field[] = "staticPodPath";
        struct lkg_value *doc = read_view(l);

        if (!doc)
                return read_layers(l);
        if (lkg_adopt_names_view(&l->record, doc))
                (void)lkg_map_set(doc, field, strlen(field),
                                  lkg_value_ref(lkg_map_get(read_layers(l), field)));
        return doc;
}

/* ---- baking ---- */

/* Drop-ins that the kubelet reads itself apply to the new base, too: is the result what is served? */
static int check_baked(const struct leaving *l, const struct lkg_value *wanted)
{
        struct lkg_value *now;
        const char *diff;
        int status = lkg_adopt_before(&l->look, &now);

        if (status != LKG_TOOL_OK)
                return status;
        diff = lkg_adopt_diff("served", wanted, "the kubelet without lkgfs", now);
        return *diff ? lkg_tool_print_text(diff, LKG_TOOL_DIFFERENT) : LKG_TOOL_OK;
}

/* In the format of the present one. */
static int write_base(const struct leaving *l, const struct lkg_value *served)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        const char *root = l->look.root, *base = l->look.base, *kept;
        char *present;
        size_t size;
        int r = lkg_root_read(l->look.rootfd, base, &present, &size);

        if (r < 0)
                return lkg_tool_fail(l->tool, LKG_TOOL_FAILED, "'%s%s': %s", root, base, strerror(-r));
        lkg_render(served, lkg_detect_format(present, size), &text);
        (void)lkg_buf_text(&text);
        if (lkg_adopt_replace(&l->look, base, text.data, false, &kept) != LKG_TOOL_OK)
                return LKG_TOOL_FAILED;
        lkg_tool_note(l->tool, "what was served is in %s%s now, which was kept as %s%.*s%s", root, base,
                      root, (int)(strrchr(base, '/') + 1 - base), base, kept);
        return LKG_TOOL_OK;
}

/* What the kubelet would lose is written to its base. */
static int bake(const struct leaving *l)
{
        struct lkg_value *served, *wanted, *before;
        const char *diff;
        int status;

        if (!l->known || !lkg_root_exists(l->look.rootfd, LKG_ADOPT_KUBELET))
                return LKG_TOOL_OK; /* done by an earlier run */
        served = read_served(l);
        wanted = lkg_adopt_effective(&l->look, served);
        status = lkg_adopt_before(&l->look, &before);
        if (status != LKG_TOOL_OK)
                return status;
        diff = lkg_adopt_diff("the kubelet without lkgfs", before, "served", wanted);
        if (l->tool->options.adopt.dry_run)
                return lkg_tool_print_text(
                        *diff ? lkg_tool_format(
                                        "%sThis is written to %s, which is kept as %s" LKG_ADOPT_BAKED ".\n",
                                        diff, l->look.base, l->look.base)
                              : "What the kubelet sees: no difference.\n",
                        LKG_TOOL_OK);
        if (!*diff)
                return LKG_TOOL_OK;
        status = write_base(l, served);
        if (status == LKG_TOOL_OK)
                status = check_baked(l, wanted);
        return status == LKG_TOOL_OK || l->tool->options.force
                       ? LKG_TOOL_OK
                       : lkg_tool_fail(l->tool, status,
                                       "the kubelet would not see what is served: its own drop-ins override "
                                       "it. Move "
                                       "them away and run it again, or use --force");
}

/* Only while they are served: else copies may be older than the manifests. */
static int bake_pods(const struct leaving *l)
{
        const char *dir = l->known && lkg_root_exists(l->look.rootfd, LKG_ADOPT_PODS)
                                  ? lkg_map_get_string(read_layers(l), "staticPodPath")
                                  : NULL;

        return dir && *dir == '/' ? lkg_adopt_bake_pods(&l->look, &l->record, dir) : LKG_TOOL_OK;
}

/* ---- undoing ---- */

/* @dropin: the drop-in of the kubelet's unit, or everything else; from the @end of them back to the @first */
static int undo(const struct leaving *l, bool dropin, size_t first, size_t end)
{
        int status = LKG_TOOL_OK;

        for (size_t i = end; status == LKG_TOOL_OK && i > first; i--) {
                const struct lkg_adopt_file *file = &l->record.files[i - 1];
                const char *kept = NULL;

                if ((strcmp(file->path, LKG_ADOPT_KUBELET) == 0) != dropin)
                        continue;
                status = lkg_adopt_unmake(&l->look, file, &kept);
                if (kept && status == LKG_TOOL_OK)
                        lkg_tool_note(l->tool, "%s%s %s", l->look.root, file->path, kept);
        }
        return status;
}

/* Its next start reads what the layers name. Return: LKG_TOOL_OK: no kubelet reads the copies any more. */
static int restart_kubelet(const struct leaving *l)
{
        if (!*l->look.root && !lkg_adopt_live(&l->look))
                return lkg_tool_fail(
                        l->tool, LKG_TOOL_FAILED,
                        "the kubelet cannot be restarted without systemd, so the copies of the static "
                        "pods stay; with --force, too");
        return lkg_adopt_systemctl(&l->look, LKG_ADOPT_RESTART);
}

static int leave(const struct leaving *l)
{
        size_t n = l->record.n_files, last = lkg_plan_find(&l->record, LKG_ADOPT_RECORD) + 1;
        int status = undo(l, true, 0, n), pods = LKG_TOOL_DIFFERENT;

        if (status == LKG_TOOL_OK)
                status = lkg_adopt_systemctl(&l->look, LKG_ADOPT_RELOAD);
        if (status == LKG_TOOL_OK && lkg_plan_has_pods(&l->record))
                status = pods = restart_kubelet(l);
        if (status == LKG_TOOL_OK)
                status = lkg_adopt_systemctl(&l->look, LKG_ADOPT_DISABLE);
        if (status != LKG_TOOL_OK && !l->tool->options.force)
                return status;
        status = undo(l, false, last, n);
        if (status == LKG_TOOL_OK)
                status = lkg_adopt_systemctl(&l->look, LKG_ADOPT_RELOAD);
        if (status == LKG_TOOL_OK && pods == LKG_TOOL_OK)
                lkg_adopt_clean_pods(&l->look, &l->record);
        if (status == LKG_TOOL_OK)
                status = lkg_adopt_clean(&l->look, &l->record);
        return status == LKG_TOOL_OK ? undo(l, false, 0, last) : status;
}

static int show(const struct leaving *l)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(&buf, "Adopted as a node of %s. In this order:\n", l->record.profile);
        lkg_buf_puts(&buf, "    " LKG_ADOPT_KUBELET ": undone; systemctl daemon-reload\n");
        if (lkg_plan_has_pods(&l->record))
                lkg_buf_puts(
                        &buf,
                        "    manifests that are not what is served: replaced, kept as .NAME" LKG_ADOPT_BAKED
                        "\n"
                        "    systemctl " LKG_ADOPT_RESTART ", which restarts each static pod once\n");
        lkg_buf_puts(&buf, "    systemctl disable --now lkgfs.service\n");
        for (size_t i = l->record.n_files; i > 0; i--) {
                const struct lkg_adopt_file *file = &l->record.files[i - 1];

                if (strcmp(file->path, LKG_ADOPT_KUBELET) != 0 && strcmp(file->path, LKG_ADOPT_RECORD) != 0)
                        lkg_buf_printf(&buf, "    %s: %s\n", file->path,
                                       !*file->sha256 ? "removed if it is empty"
                                       : file->kept   ? "put back as it was"
                                                      : "removed");
        }
        lkg_buf_puts(&buf, "    " LKG_ADOPT_RECORD ": removed\n");
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int abandon(struct leaving *l)
{
        int status;

        lkg_adopt_root(l->tool, &l->look);
        if (!lkg_adopt_record_find(&l->look, &l->record))
                return lkg_tool_fail(l->tool, LKG_TOOL_DIFFERENT,
                                     "this node is not adopted: there is no '%s" LKG_ADOPT_RECORD "'",
                                     l->look.root);
        status = lkg_adopt_look(&l->look);
        if (status != LKG_TOOL_OK && !l->tool->options.force)
                return lkg_tool_fail(
                        l->tool, status,
                        "so it is not known what the kubelet would read; --force goes back all the same");
        l->known = status == LKG_TOOL_OK;
        status = bake(l);
        if (status == LKG_TOOL_OK && !l->tool->options.adopt.dry_run)
                status = bake_pods(l);
        if (status == LKG_TOOL_OK)
                status = l->tool->options.adopt.dry_run ? show(l) : leave(l);
        if (status == LKG_TOOL_OK && !l->tool->options.adopt.dry_run)
                lkg_tool_note(l->tool, lkg_plan_has_pods(&l->record)
                                               ? "abandoned"
                                               : "abandoned; when it suits: systemctl restart kubelet");
        return status;
}

int lkg_verb_abandon(const struct lkg_tool *tool)
{
        struct leaving l = { .tool = tool };

        return abandon(&l);
}
