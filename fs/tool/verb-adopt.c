/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs adopt: puts the configuration of this node's kubelet under lkgfs. It shows what it has recognised, what it writes and
 * what the kubelet would see differently, and refuses if that is anything.
 *
 * The order: record, directories, our configuration, lkgfs.service is started and must serve, and only then the drop-in of the
 * kubelet's unit. Before it, the kubelet starts as ever; after it, the view is there. What fails undoes what was done; when memory runs out or the
 * process is killed, `lkgfs abandon` does it from the record.
 */
#include "adopt.h"

#include <poll.h>

struct adoption {
        const struct lkg_tool *tool;
        struct lkg_adopt_node look;
        struct lkg_adopt_plan plan, old; /* old: of the record; without files if there is none */
        bool over;                       /* there is a record */
        bool adds_pods;                  /* and what it lists stays as it is: only static pods are added */
        struct lkg_strings pods;         /* their files */
};

/* Of an earlier adoption, and not of this one: it goes at the end, if it does not stay. */
static bool is_stale(const struct lkg_adopt_file *file)
{
        return !file->text && *file->sha256;
}

/* ---- showing ---- */

static void put_recognised(const struct adoption *a, struct lkg_buf *buf)
{
        const struct lkg_adopt_node *look = &a->look;
        const struct lkg_adopt_plan *plan = &a->plan;

        lkg_buf_printf(buf, "A node of %s, recognised by:\n", look->profile->name);
        for (size_t i = 0; i < look->signs.n_items; i++)
                lkg_buf_printf(buf, "    %s\n", look->signs.items[i]);
        lkg_buf_puts(buf, "The kubelet's command line comes from:\n");
        for (size_t i = 0; i < look->unit.files.n_items; i++)
                lkg_buf_printf(buf, "    %s\n", look->unit.files.items[i]);
        lkg_buf_printf(buf, "It reads now:\n    --config=%s\n", look->base);
        if (look->config_dir)
                lkg_buf_printf(buf, "    --config-dir=%s\n", look->config_dir);
        lkg_buf_printf(buf, "and then:\n    --config=%s/%s\n", plan->mount_point, plan->file);
        lkg_buf_puts(buf, "Stays where it is:\n");
        lkg_buf_printf(buf, "    %s, the base\n", look->base);
        if (look->config_dir)
                lkg_buf_printf(buf, "    %s, the drop-ins\n", look->config_dir);
        for (size_t i = 0; i < LKG_PROFILE_WORDS && look->profile->stays[i]; i++)
                lkg_buf_printf(buf, "    %s\n", look->profile->stays[i]);
}

static void put_files(const struct adoption *a, struct lkg_buf *buf)
{
        const char *at, *line;
        size_t size;

        for (size_t i = 0; i < a->plan.n_files; i++) {
                const struct lkg_adopt_file *file = &a->plan.files[i];

                if (strcmp(file->path, LKG_ADOPT_RECORD) == 0 ||
                    (a->adds_pods && lkg_plan_find(&a->old, file->path) < a->old.n_files))
                        continue;
                if (is_stale(file))
                        lkg_buf_printf(buf, "Removed: %s\n", file->path);
                else if (!file->text)
                        lkg_buf_printf(buf, "Directory: %s\n", file->path);
                else
                        lkg_buf_printf(buf, "File: %s%s%s%s\n", file->path,
                                       file->kept ? " (the present one is kept as " : "",
                                       file->kept ? file->path : "", file->kept ? LKG_ADOPT_ASIDE ")" : "");
                at = file->text ? file->text : "";
                while (lkg_tool_next_line(&at, &line, &size))
                        lkg_buf_printf(buf, "%s%.*s\n", size ? "    " : "", (int)size, line);
        }
}

static void put_pods(const struct adoption *a, struct lkg_buf *buf)
{
        if (a->pods.n_items > 0)
                lkg_buf_puts(buf, "Static pods, each of which is restarted once when the kubelet is "
                                  "restarted:\n");
        for (size_t i = 0; i < a->pods.n_items; i++)
                lkg_buf_printf(buf, "    %s\n", a->pods.items[i]);
}

/* ---- judging ---- */

/* Return: LKG_TOOL_OK; another status after a message. @ret_diff: "" = there is no difference. */
static int compare(const struct adoption *a, const char **ret_diff)
{
        struct lkg_value *before, *after;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf config = LKG_BUF_INIT;
        int status = lkg_adopt_before(&a->look, &before);

        if (status != LKG_TOOL_OK)
                return status;
        lkg_plan_config(&a->look, &a->plan, a->look.root, &config);
        after = lkg_adopt_effective(&a->look,
                                    lkg_adopt_merge(&a->look, a->plan.source, lkg_buf_text(&config)));
        *ret_diff = lkg_adopt_diff("the kubelet now", before, "the kubelet with lkgfs", after);
        return LKG_TOOL_OK;
}

static int show(const struct adoption *a, const char *diff)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        put_recognised(a, &buf);
        put_files(a, &buf);
        put_pods(a, &buf);
        lkg_buf_puts(&buf, *diff                                ? diff
                           : a->tool->options.adopt.static_pods ? "What the kubelet sees: no difference but "
                                                                  "in staticPodPath, which names the view.\n"
                                                                : "What the kubelet sees: no difference.\n");
        return lkg_tool_print(&buf, *diff ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK);
}

/* ---- what an earlier adoption has written ---- */

/* What was kept aside stays kept; directories stay ours; other old files are removed at the end. */
static void carry_over(struct lkg_adopt_plan *plan, const struct lkg_adopt_plan *old)
{
        for (size_t i = old->n_files; i > 0; i--) {
                const struct lkg_adopt_file *file = &old->files[i - 1];
                size_t at = lkg_plan_find(plan, file->path);

                if (at < plan->n_files)
                        plan->files[at].kept = file->kept;
                else if (strcmp(file->path, LKG_ADOPT_RECORD) != 0)
                        lkg_plan_insert(plan, 0, file);
        }
}

static void read_earlier(struct adoption *a)
{
        size_t size;

        for (size_t i = 0; a->over && i < a->plan.n_files; i++) {
                struct lkg_adopt_file *file = &a->plan.files[i];
                int r = file->text ? lkg_root_read(a->look.rootfd, file->path, &file->earlier, &size) : 0;

                if (r < 0 && r != -ENOENT)
                        lkg_tool_end(a->tool, LKG_TOOL_FAILED,
                                     "the files of the earlier adoption cannot be read");
        }
}

/* ---- doing ---- */

#define RESTART "restart lkgfs.service"

/* That lkgfs.service uses the new files. */
static const char *again(const struct adoption *a)
{
        return a->adds_pods ? LKG_ADOPT_REREAD : RESTART;
}

/* Back to what was there, the last file first; the kubelet's drop-in is the last one. */
static void go_back(const struct adoption *a, size_t n_made, bool started)
{
        const char *kept;

        for (size_t i = n_made; i > 0; i--) {
                const struct lkg_adopt_file *file = &a->plan.files[i - 1];
                const struct lkg_adopt_file old = { .path = file->path, .text = file->earlier };

                if (file->earlier)
                        (void)lkg_adopt_make(&a->look, &old);
                else if (file->text || lkg_plan_find(&a->old, file->path) == a->old.n_files)
                        (void)lkg_adopt_unmake(&a->look, file, &kept);
        }
        if (started) {
                (void)lkg_adopt_systemctl(&a->look, LKG_ADOPT_RELOAD);
                (void)lkg_adopt_systemctl(&a->look, a->over ? again(a) : LKG_ADOPT_DISABLE);
        }
        lkg_tool_note(a->tool, "nothing has changed");
}

/* What the kubelet will read must be there. */
static const char *missing(const struct adoption *a)
{
        const char *path = lkg_tool_format("%s/%s", a->plan.mount_point, a->plan.file);

        for (size_t i = 0; access(path, R_OK) == 0; i++) {
                if (i == a->pods.n_items)
                        return NULL;
                path = lkg_tool_format("%s/" LKG_ADOPT_PODS_DIR "/%s", a->plan.mount_point,
                                       a->pods.items[i]);
        }
        return path;
}

/* Started and ready means served; this looks at the files themselves. */
static int start_view(const struct adoption *a)
{
        const char *path;
        int status = lkg_adopt_systemctl(&a->look, LKG_ADOPT_RELOAD);

        if (status == LKG_TOOL_OK)
                status = lkg_adopt_systemctl(&a->look, "enable --now lkgfs.service");
        if (status == LKG_TOOL_OK && a->over)
                status = lkg_adopt_systemctl(&a->look, again(a));
        if (status != LKG_TOOL_OK || !lkg_adopt_live(&a->look))
                return status;
        /* A lkgfsd that takes a view over is ready before its engine is, and one that reads its files again is ready all the time. */
        for (unsigned tries = 0; (path = missing(a)) && tries < LKG_ADOPT_TRIES; tries++)
                (void)poll(NULL, 0, 100);
        return !path ? LKG_TOOL_OK
                     : lkg_tool_fail(a->tool, LKG_TOOL_FAILED,
                                     "lkgfs.service runs, but '%s': %s; is LKGFS_MOUNTPOINT set "
                                     "in /etc/default/lkgfs?",
                                     path, strerror(errno));
}

static int apply(struct adoption *a)
{
        int status = LKG_TOOL_OK;
        bool started = false;
        const char *kept;
        size_t n_made = 0;

        read_earlier(a);
        for (size_t i = 0; status == LKG_TOOL_OK && i < a->plan.n_files; i++) {
                const struct lkg_adopt_file *file = &a->plan.files[i];

                if (is_stale(file))
                        continue;
                if (strcmp(file->path, LKG_ADOPT_KUBELET) == 0) {
                        started = true;
                        status = start_view(a);
                }
                if (status != LKG_TOOL_OK)
                        break;
                n_made = i + 1;
                status = lkg_adopt_make(&a->look, file);
        }
        if (status == LKG_TOOL_OK && !started) {
                started = true;
                status = start_view(a);
        }
        if (status == LKG_TOOL_OK)
                status = lkg_adopt_systemctl(&a->look, LKG_ADOPT_RELOAD);
        if (status != LKG_TOOL_OK)
                go_back(a, n_made, started);
        for (size_t i = a->plan.n_files; status == LKG_TOOL_OK && !a->adds_pods && i > 0; i--)
                if (is_stale(&a->plan.files[i - 1]))
                        (void)lkg_adopt_unmake(&a->look, &a->plan.files[i - 1], &kept);
        return status;
}

static void make_plan(struct adoption *a)
{
        if (!a->adds_pods) {
                lkg_plan_make(&a->look, &a->old, &a->plan);
                if (a->over)
                        carry_over(&a->plan, &a->old);
        } else {
                a->plan = a->old;
                a->plan.files = NULL;
                a->plan.n_files = 0;
                carry_over(&a->plan, &a->old);
                lkg_plan_add_pods(&a->look, &a->plan);
        }
        lkg_plan_add_record(&a->plan, NULL);
        if (a->tool->options.adopt.static_pods)
                lkg_adopt_pods(&a->look, &a->plan, &a->pods);
}

static void say_adopted(const struct adoption *a)
{
        lkg_tool_note(a->tool, "adopted (%s); when it suits: systemctl restart kubelet", a->plan.profile);
        if (a->pods.n_items > 0)
                lkg_tool_note(
                        a->tool,
                        "that restarts each static pod once (%s); of several control-plane nodes do one "
                        "after the other",
                        lkg_tool_join(&a->pods));
}

static int adopt(struct adoption *a)
{
        const struct lkg_tool_options_of_adopt *options = &a->tool->options.adopt;
        const char *diff = "";
        int status;

        lkg_adopt_root(a->tool, &a->look);
        a->over = lkg_adopt_record_find(&a->look, &a->old);
        a->adds_pods = a->over && options->static_pods && !options->over && !lkg_plan_has_pods(&a->old);
        if (a->over && !options->over && !options->dry_run && !a->adds_pods)
                return lkg_tool_fail(a->tool, LKG_TOOL_DIFFERENT,
                                     "this node was adopted before ('%s" LKG_ADOPT_RECORD
                                     "'); --over writes its files again, `lkgfs abandon` goes back",
                                     a->look.root);
        status = lkg_adopt_look(&a->look);
        if (status != LKG_TOOL_OK)
                return status;
        make_plan(a);
        if (!a->adds_pods)
                status = compare(a, &diff);
        if (status != LKG_TOOL_OK)
                return status;
        if (options->dry_run)
                return show(a, diff);
        if (*diff && !a->tool->options.force) {
                (void)lkg_tool_print_text(diff, LKG_TOOL_DIFFERENT);
                return lkg_tool_fail(
                        a->tool, LKG_TOOL_DIFFERENT,
                        "the kubelet would see another configuration; nothing has changed. Mend it, or use "
                        "--force");
        }
        status = apply(a);
        if (status == LKG_TOOL_OK)
                say_adopted(a);
        return status;
}

int lkg_verb_adopt(const struct lkg_tool *tool)
{
        struct adoption a = { .tool = tool };

        return adopt(&a);
}
