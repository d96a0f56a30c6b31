/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node that is adopted: which installer made it, by its units and files and the kubelet's command line; what is written, and what
 * the kubelet reads without lkgfs and with it.
 *
 * The installer's own files stay as they are: the merged document gets a name that nobody else uses, and the kubelet's unit gets a
 * drop-in that appends --config to its command line, where the last flag counts.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "adopt.h"

#include <lkg/publication.h>

#define DEFAULT_EXE   "/usr/bin/kubelet"
#define DEFAULT_MOUNT "/etc/kubernetes"

void lkg_adopt_root(const struct lkg_tool *tool, struct lkg_adopt_node *ret)
{
        const char *root = tool->options.adopt.root ? tool->options.adopt.root : "";
        size_t n = strlen(root);

        *ret = (struct lkg_adopt_node){ .tool = tool, .rootfd = -EBADF, .root = root };
        if (n && (*root != '/' || root[n - 1] == '/'))
                lkg_tool_end(tool, LKG_TOOL_USAGE,
                             "--root: \"%.200s\" is not right, want an absolute path without a final slash",
                             root);
        ret->rootfd = open(n ? root : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (ret->rootfd < 0)
                lkg_tool_end(tool, LKG_TOOL_FAILED, "open '%s': %s", root, strerror(errno));
}

/* ---- the command line ---- */

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* --NAME=VALUE, --NAME VALUE, -NAME=VALUE. Return: how many words it has; 0: another flag. */
static size_t flag_value(const struct lkg_strings *words, size_t i, const char *name, const char **ret)
{
        const char *word = words->items[i];
        size_t n = strlen(name);

        if (word[0] != '-')
                return 0;
        word += word[1] == '-' ? 2 : 1;
        if (strncmp(word, name, n) != 0 || (word[n] && word[n] != '='))
                return 0;
        if (word[n]) {
                *ret = word + n + 1;
                return 1;
        }
        *ret = i + 1 < words->n_items ? words->items[i + 1] : "";
        return 2;
}

/* A wrapper (sh -c) would not pass on what is appended to its command line. */
static size_t n_program_words(const struct lkg_strings *words)
{
        if (words->n_items == 0)
                return 0;
        if (strcmp(base_name(words->items[0]), "kubelet") == 0)
                return 1;
        return words->n_items > 1 && strcmp(base_name(words->items[0]), "hyperkube") == 0 &&
                               strcmp(words->items[1], "kubelet") == 0
                       ? 2
                       : 0;
}

/* The last flag counts, as in pflag. */
static void read_flags(struct lkg_adopt_node *look)
{
        const struct lkg_strings *words = &look->unit.words;
        size_t i = n_program_words(words);

        if (i == 0)
                return;
        look->program = words->items[0];
        while (i < words->n_items) {
                size_t n = flag_value(words, i, "config", &look->base);

                if (n == 0)
                        n = flag_value(words, i, "config-dir", &look->config_dir);
                if (n == 0)
                        lkg_tool_add_word(&look->flags, words->items[i]);
                i += n ? n : 1;
        }
        if (look->config_dir && !*look->config_dir)
                look->config_dir = NULL;
}

/* ---- recognising ---- */

static const char *first_file(const struct lkg_adopt_node *look, const char *const *files)
{
        for (size_t i = 0; i < LKG_PROFILE_WORDS && files[i]; i++)
                if (lkg_root_exists(look->rootfd, files[i]))
                        return files[i];
        return NULL;
}

static bool has_config(const struct lkg_adopt_node *look, const struct lkg_profile *profile)
{
        if (!profile->config[0])
                return true;
        for (size_t i = 0; look->base && i < LKG_PROFILE_WORDS && profile->config[i]; i++)
                if (strcmp(look->base, profile->config[i]) == 0)
                        return true;
        return false;
}

/* Reads the unit of the row that is asked next, once. Return: 1; 0: none of the row's units exists; -errno. */
static int read_unit(const struct lkg_profile *profile, struct lkg_adopt_node *look, struct lkg_error *err)
{
        for (size_t i = 0; i < LKG_PROFILE_WORDS && profile->units[i]; i++) {
                int r;

                if (look->unit_name && strcmp(look->unit_name, profile->units[i]) == 0)
                        return 1;
                r = lkg_unit_file_read(look->rootfd, profile->units[i], LKG_ADOPT_DROPIN, &look->unit, err);
                if (r == -ENOENT && !*err->message)
                        continue;
                if (r < 0)
                        return r;
                look->unit_name = profile->units[i];
                read_flags(look);
                return 1;
        }
        return 0;
}

static int recognise(struct lkg_adopt_node *look, struct lkg_error *err)
{
        for (size_t i = 0; i < lkg_n_profiles; i++) {
                const struct lkg_profile *profile = &lkg_profiles[i];
                const char *file;
                int r = read_unit(profile, look, err);

                if (r < 0)
                        return r;
                file = first_file(look, profile->files);
                if (r == 0 || (profile->files[0] && !file) || !has_config(look, profile))
                        continue;
                look->profile = profile;
                lkg_tool_add_word(&look->signs, look->unit.files.items[0]);
                if (file)
                        lkg_tool_add_word(&look->signs, file);
                return 0;
        }
        return -ENOENT;
}

static const char *unknown(void)
{
        struct lkg_buf text = LKG_BUF_INIT;

        for (size_t i = 0; i < lkg_n_profiles; i++) {
                const struct lkg_profile *p = &lkg_profiles[i];

                if (i && strcmp(p->units[0], lkg_profiles[i - 1].units[0]) == 0)
                        continue;
                for (size_t k = 0; k < LKG_PROFILE_WORDS && p->units[k]; k++)
                        lkg_buf_printf(&text, "%s%s", text.size ? ", " : "", p->units[k]);
        }
        return lkg_tool_format(
                "this node is not known: none of the units %s exists in /etc, /run, /usr/local/lib, "
                "/usr/lib or /lib/systemd/system",
                lkg_tool_take(&text));
}

#define EXTENSION "/usr/lib/extension-release.d/extension-release.lkgfs"
#define SETUP     "/etc/systemd/system/lkgfs-setup.service"

/* What every profile needs. NULL = it is there. */
static const char *lacking(const struct lkg_adopt_node *look)
{
        const struct lkg_unit_on_disk *unit = &look->unit;
        const char *file = unit->files.items[0];

        if (look->profile->cannot)
                return lkg_tool_format("a node of %s (%s): %s", look->profile->name, file,
                                       look->profile->cannot);
        if (unit->n_exec_start != 1)
                return lkg_tool_format("%s: %zu ExecStart= lines, want one", file, unit->n_exec_start);
        if (!look->program)
                return lkg_tool_format(
                        "%s: ExecStart= runs '%s', want kubelet itself: arguments for lkgfs are "
                        "appended to its command line",
                        file, unit->words.n_items ? unit->words.items[0] : "");
        if (!look->base || *look->base != '/')
                return lkg_tool_format(
                        "%s: the kubelet is started without --config=/ABSOLUTE/PATH%s%s, so it has "
                        "no document that lkgfs could serve",
                        file, unit->lacking.n_items ? "; no value is known for $" : "",
                        unit->lacking.n_items ? unit->lacking.items[0] : "");
        if (look->config_dir && *look->config_dir != '/')
                return lkg_tool_format("%s: --config-dir=%s, want an absolute path", file, look->config_dir);
        if (!lkg_root_exists(look->rootfd, look->base))
                return lkg_tool_format(
                        "'%s%s', which --config names, does not exist; has the node joined its "
                        "cluster?",
                        look->root, look->base);
        /* systemd reads its units before it merges extensions, and the kubelet would wait for a view for ever */
        if (lkg_root_exists(look->rootfd, EXTENSION) && !lkg_root_exists(look->rootfd, SETUP))
                return lkg_tool_format(
                        "lkgfs is a system extension here, and nothing would start it at the next "
                        "boot; make '%s" SETUP "', as docs/platforms/images.md says",
                        look->root);
        return NULL;
}

int lkg_adopt_look(struct lkg_adopt_node *ret)
{
        struct lkg_error err = { 0 };
        int r = recognise(ret, &err);
        bool known = r != -ENOENT || *err.message;
        const char *why = !known ? unknown() : r == 0 ? lacking(ret) : NULL;

        if (known && r < 0)
                return lkg_tool_fail(ret->tool, LKG_TOOL_FAILED, "%s",
                                     *err.message ? err.message : strerror(-r));
        return why ? lkg_tool_fail(ret->tool, LKG_TOOL_DIFFERENT, "%s", why) : LKG_TOOL_OK;
}

/* ---- systemctl ---- */

/* systemctl, for the steps of adopt and abandon: the same commands that are printed for a tree that does not run. */

extern char **environ;

bool lkg_adopt_live(const struct lkg_adopt_node *look)
{
        return !*look->root && access("/run/systemd/system", F_OK) == 0;
}

int lkg_adopt_systemctl(const struct lkg_adopt_node *look, const char *words)
{
        char *copy = lkg_tool_format("systemctl %s", words);
        char *argv[8] = { NULL }, *rest = copy;
        int r, status = 0;
        pid_t pid;

        if (!lkg_adopt_live(look)) {
                lkg_tool_note(look->tool, "not run, systemd does not run here: %s", copy);
                return LKG_TOOL_OK;
        }
        for (size_t i = 0; rest && i + 1 < LKG_ARRAY_SIZE(argv); i++)
                argv[i] = strsep(&rest, " ");
        r = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
        if (r != 0)
                return lkg_tool_fail(look->tool, LKG_TOOL_FAILED, "run `systemctl %s`: %s", words,
                                     strerror(r));
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return lkg_tool_fail(look->tool, LKG_TOOL_FAILED, "`systemctl %s`: %s", words,
                                             strerror(errno));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return LKG_TOOL_OK;
        return lkg_tool_fail(look->tool, LKG_TOOL_FAILED, "`systemctl %s` failed (%s %d)", words,
                             WIFEXITED(status) ? "exit status" : "signal",
                             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* ---- what is written ---- */

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

void lkg_plan_put_layer(const struct lkg_adopt_plan *plan, const char *root, const char *key,
                        const char *path, struct lkg_buf *buf)
{
        size_t n = strlen(plan->source);
        const char *layer = strncmp(path, plan->source, n) == 0 && path[n] == '/' ? path + n + 1 : path;

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
        lkg_plan_put_layer(plan, root, "base", plan->base, buf);
        /* A directory that does not exist yet is as good as an empty one, but only for judging. */
        if (plan->config_dir)
                fd = lkg_root_open(look->rootfd, plan->config_dir, O_PATH | O_DIRECTORY);
        if (!root || fd >= 0)
                lkg_plan_put_layer(plan, root, "dropInDir", plan->config_dir, buf);
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
                          "of the unit, and what lkgfs\n"
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

void lkg_plan_add_text(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan, const char *path,
                       struct lkg_buf *buf)
{
        add_directory(look, plan, directory_of(path));
        add(look, plan, path, lkg_tool_take(buf));
}

/* The kubelet's drop-in is the last one: the view must be there before the kubelet needs it. */
static void add_files(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *old,
                      struct lkg_adopt_plan *plan)
{
        struct lkg_buf config = LKG_BUF_INIT, lkgfs = LKG_BUF_INIT, kubelet = LKG_BUF_INIT;

        add_directory(look, plan, LKG_ADOPT_DIRECTORY);
        add_directory(look, plan, plan->config_dir);
        lkg_plan_config(look, plan, NULL, &config);
        lkg_plan_add_text(look, plan, LKG_ADOPT_CONFIG, &config);
        if (look->tool->options.adopt.static_pods || lkg_plan_has_pods(old))
                lkg_plan_add_pods(look, plan);
        if (strcmp(plan->mount_point, DEFAULT_MOUNT) != 0) {
                lkg_buf_printf(&lkgfs,
                               "# Written by `lkgfs adopt`; `lkgfs abandon` removes it.\n[Service]\n"
                               "Environment=LKGFS_MOUNTPOINT=%s\n",
                               plan->mount_point);
                lkg_plan_add_text(look, plan, LKG_ADOPT_LKGFS, &lkgfs);
        }
        kubelet_dropin(look, plan, &kubelet);
        lkg_plan_add_text(look, plan, LKG_ADOPT_KUBELET, &kubelet);
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

/* Does something there count? What `abandon` has kept of an edited file does not. */
static bool has_dropins(const struct lkg_adopt_node *look)
{
        LKG_CLEANUP(lkg_closep)
        int fd = lkg_root_open(look->rootfd, LKG_ADOPT_DROPINS, O_RDONLY | O_DIRECTORY);
        struct lkg_strings names = { 0 };
        bool found = fd >= 0 && lkg_tool_names(fd, ".", DT_UNKNOWN, &names) < 0;

        for (size_t i = 0; i < names.n_items; i++)
                found |= lkg_is_dropin_name(names.items[i]);
        return found;
}

/* What would act together with the written configuration, and what nobody would find again. */
static void check_place(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *old,
                        const struct lkg_adopt_plan *plan)
{
        if (has_dropins(look) && !look->tool->options.force &&
            lkg_plan_find(old, LKG_ADOPT_DROPINS) == old->n_files)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT,
                             "'%s" LKG_ADOPT_DROPINS "' would change what is written; move it away, or use "
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
        add_files(look, old, ret);
        check_place(look, old, ret);
}

/* ---- what the component reads: effective documents, so that the order in which defaults and flags apply counts, too ---- */

/* The caller frees it. */
static struct lkg_judge *judge_new(const struct lkg_adopt_node *look)
{
        const struct lkg_judge_config config = {
                .release = look->tool->options.release,
                .flags = (const char *const *)look->flags.items,
                .n_flags = look->flags.n_items,
                .flags_observed = true,
                .component = lkg_schema_reader("kubelet"),
        };

        return lkg_judge_new(&config);
}

#define NO_EFFECTIVE "%s: the kubelet would not start with it; mend it first"

static void print_errors(const struct lkg_tool *tool, const struct lkg_report *report)
{
        if (report->n_severity[LKG_ERROR])
                lkg_tool_print_findings(tool, STDERR_FILENO, report);
}

int lkg_adopt_before(const struct lkg_adopt_node *look, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = judge_new(look);
        struct lkg_candidate *candidate = NULL;
        struct lkg_stack *stack = NULL;
        struct lkg_error err = { 0 };
        int status = LKG_TOOL_OK;
        const struct lkg_stack_config layers = {
                .component = "kubelet",
                .source_fd = AT_FDCWD,
                .source_path = "",
                .base = lkg_tool_format("%s%s", look->root, look->base),
                .dropin_dir = !look->config_dir ? "" : lkg_tool_format("%s%s", look->root, look->config_dir),
                .dropin_dir_required = true,
                .instance = "",
                .patches_dir = "",
                .patches_target = "",
                .kind = "",
                .api_version = ""
        };
        stack = lkg_stack_new(&layers);
        lkg_stack_set_judge(stack, lkg_judge_candidate, judge);
        if (lkg_stack_refresh(stack, &candidate, &err) < 0) {
                status = lkg_tool_fail(look->tool, LKG_TOOL_FAILED, "%s", err.message);
        } else if (!candidate->doc || !candidate->effective) {
                print_errors(look->tool, &candidate->report);
                status = lkg_tool_fail(look->tool, LKG_TOOL_DIFFERENT, NO_EFFECTIVE,
                                       "the present configuration");
        } else {
                *ret = lkg_tool_own(lkg_value_ref(candidate->effective));
        }
        lkg_candidate_unref(candidate);
        lkg_stack_free(stack);
        return status;
}

static struct lkg_config *read_config(const struct lkg_adopt_node *look, const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_config *config = NULL;
        int r = lkg_decode_yaml(text, strlen(text), LKG_DECODE_STRICT, NULL, &report, &doc);

        if (r == 0)
                r = lkg_config_decode(doc, "/etc/lkgfs", &config, &report);
        if (r == 0 && config->n_components == 1)
                return config;
        if (r == 0)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT, "'%s" LKG_ADOPT_CONFIG "': want one component",
                             look->root);
        print_errors(look->tool, &report);
        lkg_tool_end(look->tool, LKG_TOOL_FAILED, "the configuration of lkgfs: %s", strerror(-r));
}

struct lkg_candidate *lkg_adopt_judge(const struct lkg_adopt_node *look, const char *source,
                                      const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_config *config = read_config(look, text);
        struct lkg_offline_place place = { .config = config,
                                           .component = &config->components[0],
                                           .source_path = lkg_tool_format("%s%s", look->root, source),
                                           .runtime_fd = -EBADF,
                                           .state_fd = -EBADF,
                                           .release = look->tool->options.release };
        struct lkg_offline offline;
        struct lkg_error err = { 0 };
        struct lkg_candidate *ret;

        fd = place.source_fd = lkg_root_open(look->rootfd, source, O_PATH | O_DIRECTORY);
        if (fd < 0)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "open '%s': %s", place.source_path, strerror(-fd));
        if (lkg_offline_judge(&place, &offline, &report, &err) < 0)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "%s", err.message);
        lkg_tool_add_findings(offline.candidate, &report);
        ret = lkg_candidate_ref(offline.candidate);
        lkg_offline_deinit(&offline);
        lkg_config_free(config);
        return ret;
}

struct lkg_value *lkg_adopt_merge(const struct lkg_adopt_node *look, const char *source, const char *text)
{
        struct lkg_candidate *candidate = lkg_adopt_judge(look, source, text);
        struct lkg_value *ret = lkg_tool_own(lkg_value_ref(candidate->doc));

        if (candidate->state != LKG_CANDIDATE_VALID) {
                print_errors(look->tool, &candidate->report);
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT, "lkgfs would not serve this configuration");
        }
        lkg_candidate_unref(candidate);
        return ret;
}

/* Written and read again, as the component gets it. */
struct lkg_value *lkg_adopt_effective(const struct lkg_adopt_node *look, const struct lkg_value *served)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = judge_new(look);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_value *ret;

        lkg_render(served, LKG_FORMAT_YAML, &text);
        if (lkg_decode_yaml(lkg_buf_text(&text), text.size, 0, NULL, &report, &doc) < 0)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "the merged document cannot be read again");
        ret = lkg_tool_own(lkg_judge_document(judge, doc));
        if (!ret)
                lkg_tool_end(look->tool, LKG_TOOL_DIFFERENT, NO_EFFECTIVE, "the merged document");
        return ret;
}

const char *lkg_adopt_diff(const char *a_name, const struct lkg_value *a, const char *b_name,
                           const struct lkg_value *b)
{
        const char *diff = lkg_tool_diff(a_name, lkg_tool_masked(a, LKG_FORMAT_YAML), b_name,
                                         lkg_tool_masked(b, LKG_FORMAT_YAML));

        return *diff || lkg_value_equal(a, b) ? diff : "a secret value differs\n";
}
