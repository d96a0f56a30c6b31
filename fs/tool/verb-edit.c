/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs edit: visudo for drop-ins, and for manifests of static pods. The editor works on a copy in a private directory. After each
 * save the copy is judged together with all other layers: a child process puts it over the drop-in directory in a mount namespace of
 * its own (overlayfs), so findings name the real files, and nobody else sees it. Only what the user then decides to save is written, by
 * rename. A manifest is on trial then, and the verb waits for the verdict.
 *
 * In the names below, drop-ins are manifests where the component is one of static pods: they are its layers.
 */
#include "known.h"

#include <poll.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lkg/store.h>

/* below the private directory: the one file that is put over the drop-in directory */
#define JUDGED "judged"

/* Exit statuses of the judging child. */
enum { JUDGED_SAME = 10, JUDGED_CHANGED, JUDGED_REFUSED };

struct edit {
        const struct lkg_tool *tool;
        const char *name;
        struct lkg_tool_node *node;
        const struct lkg_config_component *component;
        const char *copy, *judged, *dropins; /* paths: the editor's file, JUDGED, the drop-in directory */
        int dropins_fd, judged_fd;
        bool exists; /* the drop-in did when we began */
        struct stat st;
        char *before; /* its content */
        size_t before_size;
};

_Noreturn static void fail(const struct edit *edit, const char *what, int r)
{
        lkg_tool_end(edit->tool, LKG_TOOL_FAILED, "%s: %s", what, strerror(-r));
}

/* A new drop-in begins with what every one needs; a manifest, with nothing. */
static void write_copy(const struct edit *edit)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_closep) int fd = open(lkg_tool_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        const struct lkg_config_component *k = edit->component;
        struct lkg_error err = { 0 };
        bool proxy = strcmp(k->kind, "KubeProxyConfiguration") == 0 || strcmp(k->name, "kube-proxy") == 0;
        int r = fd < 0 ? -errno : 0;

        if (edit->exists)
                lkg_buf_append(&buf, edit->before, edit->before_size);
        else if (!k->is_pods)
                lkg_buf_printf(&buf, "apiVersion: %s\nkind: %s\n",
                               *k->api_version ? k->api_version
                               : proxy         ? "kubeproxy.config.k8s.io/v1alpha1"
                                               : "kubelet.config.k8s.io/v1beta1",
                               *k->kind ? k->kind
                               : proxy  ? "KubeProxyConfiguration"
                                        : "KubeletConfiguration");
        if (r == 0)
                r = lkg_write_file_atomic(fd, edit->name, lkg_buf_text(&buf), buf.size, 0600, false, &err);
        if (r < 0)
                fail(edit, edit->copy, r);
}

static void make_directory(struct edit *edit)
{
        const char *path = lkg_tool_directory();

        if (!path)
                fail(edit, "temporary directory", -errno);
        edit->copy = lkg_tool_format("%s/%s", path, edit->name);
        edit->judged = lkg_tool_format("%s/" JUDGED, path);
        if (mkdir(edit->judged, 0700) < 0)
                fail(edit, edit->judged, -errno);
        edit->judged_fd = open(edit->judged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (edit->judged_fd < 0)
                fail(edit, edit->judged, -errno);
        write_copy(edit);
}

/* ---- the drop-in ---- */

static int read_dropin(struct edit *edit)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(edit->dropins_fd, edit->name,
                        O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        int r;

        if (fd < 0 && errno == ENOENT)
                return LKG_TOOL_OK;
        if (fd < 0 && errno == ELOOP)
                return lkg_tool_fail(edit->tool, LKG_TOOL_FAILED,
                                     "'%s/%s' is a symbolic link, which saving would replace; edit what it "
                                     "leads to",
                                     edit->dropins, edit->name);
        r = fd < 0 || fstat(fd, &edit->st) < 0 ? -errno : 0;
        if (r == 0 && !S_ISREG(edit->st.st_mode))
                return lkg_tool_fail(edit->tool, LKG_TOOL_FAILED, "'%s/%s' is not a regular file",
                                     edit->dropins, edit->name);
        if (r == 0)
                r = lkg_tool_read(fd, LKG_DOC_BYTES_MAX, &edit->before, &edit->before_size);
        if (r < 0)
                return lkg_tool_fail(edit->tool, LKG_TOOL_FAILED, "%s: %s", edit->name, strerror(-r));
        edit->exists = true;
        return LKG_TOOL_OK;
}

/* A drop-in is never of static pods, and a manifest is of nothing else, so --component is needed only where several would do. */
static const struct lkg_config_component *component_of(const struct edit *edit,
                                                       const struct lkg_tool_node *node, bool pods)
{
        const struct lkg_config *config = node->config;
        const struct lkg_config_component *found = NULL;
        size_t n = 0;

        for (size_t i = 0; i < config->n_components; i++)
                if (config->components[i].is_pods == pods) {
                        found = &config->components[i];
                        n++;
                }
        return n == 1 && !edit->tool->options.component ? found : lkg_tool_node_component(edit->tool, node);
}

/* Return: the exit status of @ask, which runs in a child: it leaves the mount namespace to look below the view. */
static int ask_child(const struct edit *edit, int (*ask)(const struct edit *edit, int fd), int fd)
{
        int status;
        pid_t pid = fork();

        if (pid == 0)
                _exit(ask(edit, fd));
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                fail(edit, "judge", -errno);
        if (!WIFEXITED(status))
                lkg_tool_end(edit->tool, LKG_TOOL_FAILED, "judging was ended by a signal");
        return WEXITSTATUS(status);
}

static int say_directory(const struct edit *edit, int fd)
{
        struct lkg_tool_node *node;
        int status = lkg_tool_node_open(edit->tool, &node);
        const char *path;

        if (status != LKG_TOOL_OK)
                return status;
        path = component_of(edit, node, edit->component->is_pods)->dropin_dir;
        return lkg_write_all(fd, path, strlen(path)) < 0 ? LKG_TOOL_FAILED : LKG_TOOL_OK;
}

/* Of manifests it is where the kubelet's layers say, which are below the view. */
static const char *dropin_directory(const struct edit *edit)
{
        int status, fds[2] = { -EBADF, -EBADF };
        size_t size;
        char *path;

        if (!edit->component->is_pods || edit->component->pods.source_set)
                return edit->component->dropin_dir;
        if (pipe2(fds, O_CLOEXEC) < 0)
                fail(edit, "pipe", -errno);
        status = ask_child(edit, say_directory, fds[1]); /* a path fits into the pipe */
        lkg_close(fds[1]);
        if (status != LKG_TOOL_OK)
                exit(status);
        status = lkg_tool_read(fds[0], PATH_MAX, &path, &size);
        lkg_close(fds[0]);
        if (status < 0)
                fail(edit, "the directory of the manifests", status);
        return path;
}

static void open_dropins(struct edit *edit)
{
        const char *path = dropin_directory(edit);

        if (!*path)
                lkg_tool_end(edit->tool, LKG_TOOL_FAILED, "%s has no drop-in directory",
                             edit->component->name);
        edit->dropins = *path == '/' ? path : lkg_tool_format("%s/%s", edit->node->source_path, path);
        edit->dropins_fd = open(edit->dropins, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (edit->dropins_fd < 0)
                fail(edit, edit->dropins, -errno);
}

/* The file that @name means: `etcd` is etcd.yaml. NULL: there is none, and a new one must be asked for with --component. */
static const char *manifest_name(const struct edit *edit, const char *name)
{
        static const char *const ends[] = { "", ".yaml", ".yml", ".json" };

        if (*name == '.' || !lkg_identifier_ok(name))
                return NULL;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ends); i++) {
                const char *file = lkg_tool_format("%s%s", name, ends[i]);

                if (faccessat(edit->dropins_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                        return file;
        }
        if (!edit->tool->options.component)
                return NULL;
        return strchr(name, '.') ? name : lkg_tool_format("%s.yaml", name);
}

/* What is edited. */
static int choose(struct edit *edit)
{
        const char *name = edit->tool->n_words ? edit->tool->words[0] : "50-local.conf";
        bool dropin = lkg_is_dropin_name(name) && !strchr(name, '/'), pods = false;

        for (size_t i = 0; i < edit->node->config->n_components; i++)
                pods |= edit->node->config->components[i].is_pods;
        edit->name = dropin ? name : NULL;
        if (dropin || pods) {
                edit->component = component_of(edit, edit->node, !dropin);
                open_dropins(edit);
                if (edit->component->is_pods)
                        edit->name = edit->tool->n_words ? manifest_name(edit, name) : NULL;
        }
        if (!edit->name)
                return lkg_tool_fail(
                        edit->tool, LKG_TOOL_USAGE,
                        "\"%.60s\" is not a drop-in%s; want a name that ends in .conf, without a slash "
                        "and without a dot at its beginning",
                        name,
                        pods ? ", nor a manifest of a static pod (a new one: --component static-pods)" : "");
        return read_dropin(edit);
}

/* ---- the editor ---- */

static void run_editor(const struct edit *edit)
{
        static const char *const variables[] = { "SUDO_EDITOR", "VISUAL", "EDITOR" };
        const char *editor = NULL;
        int status;
        pid_t pid;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(variables) && (!editor || !*editor); i++)
                editor = getenv(variables[i]);
        if (!editor || !*editor)
                editor = access("/usr/bin/editor", X_OK) == 0 ? "/usr/bin/editor" : "vi";
        pid = fork();
        if (pid == 0) {
                (void)execl("/bin/sh", "sh", "-c", lkg_tool_format("%s \"$1\"", editor), "sh", edit->copy,
                            (char *)NULL);
                _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                fail(edit, editor, -errno);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                lkg_tool_end(edit->tool, LKG_TOOL_FAILED, "the editor `%s` failed; nothing was changed",
                             editor);
}

/* ---- judging, in a child ---- */

/*
 * The edited file over the drop-in directory. Both are opened here: overlayfs wants them in this mount namespace. Magic links need
 * no escapes in the options.
 */
static void cover_dropins(const struct edit *edit, const struct lkg_tool_node *node, const char *path)
{
        LKG_CLEANUP(lkg_closep)
        int lower = openat(node->source_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        LKG_CLEANUP(lkg_closep) int upper = open(edit->judged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char options[96], target[32];

        if (lower < 0 || upper < 0)
                fail(edit, lower < 0 ? edit->dropins : edit->judged, -errno);
        (void)snprintf(options, sizeof(options), "lowerdir=/proc/self/fd/%d:/proc/self/fd/%d", upper, lower);
        (void)snprintf(target, sizeof(target), "/proc/self/fd/%d", lower);
        if (mount("overlay", target, "overlay", MS_RDONLY | MS_NODEV | MS_NOSUID, options) < 0)
                fail(edit, "judge the copy among the drop-ins (overlayfs)", -errno);
}

/* Is the edited manifest served, and no other one lost by it? */
static bool serves_all(const struct edit *edit, const struct lkg_candidate *before,
                       const struct lkg_candidate *after)
{
        const struct lkg_value *texts = lkg_pods_texts(after->texts);

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_pods_texts(before->texts), &m);)
                if (!lkg_map_get(texts, m.key.data))
                        return false;
        return lkg_map_get(texts, edit->name);
}

/* The merged document, masked. Of a manifest its own text: who edits it has just seen it. */
static const char *text_of(const struct edit *edit, const struct lkg_candidate *candidate)
{
        const struct lkg_value *text;

        if (!edit->component->is_pods)
                return lkg_tool_masked(candidate->doc, LKG_FORMAT_YAML);
        text = lkg_map_get(lkg_pods_texts(candidate->texts), edit->name);
        return text ? lkg_value_text(text, NULL) : edit->exists ? edit->before : "";
}

/* Of a comment a kubelet sees nothing. */
static bool is_same_pod(const struct edit *edit, const struct lkg_candidate *before,
                        const struct lkg_candidate *after)
{
        const struct lkg_value *old;

        if (!edit->component->is_pods)
                return false;
        old = lkg_map_get(before->doc, edit->name);
        return old && lkg_value_equal(old, lkg_map_get(after->doc, edit->name));
}

/* Shows what changes in the merged document, or in the manifest. Return: one of JUDGED_...; an exit status after a message. */
static int judge_in_child(const struct edit *edit, int fd)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf shown = LKG_BUF_INIT;
        const char *diff;
        const struct lkg_config_component *component;
        struct lkg_tool_sources *before, *after;
        struct lkg_tool_node *node;
        int status = lkg_tool_node_open(edit->tool, &node);

        (void)fd;
        if (status != LKG_TOOL_OK)
                return status;
        component = component_of(edit, node, edit->component->is_pods);
        status = lkg_tool_node_judge(edit->tool, node, component, &before);
        if (status != LKG_TOOL_OK)
                return status;
        cover_dropins(edit, node, component->dropin_dir);
        status = lkg_tool_node_judge(edit->tool, node, component, &after);
        if (status != LKG_TOOL_OK)
                return status;
        lkg_tool_print_findings(edit->tool, STDOUT_FILENO, &after->candidate->report);
        if (edit->component->is_pods ? !serves_all(edit, before->candidate, after->candidate)
                                     : after->candidate->state != LKG_CANDIDATE_VALID)
                return JUDGED_REFUSED;
        diff = lkg_tool_diff(edit->component->is_pods ? edit->name : "the layers as they are",
                             text_of(edit, before->candidate), "with this file",
                             text_of(edit, after->candidate));
        lkg_tool_put_diff(edit->tool, diff, &shown);
        (void)lkg_tool_print(&shown, LKG_TOOL_OK);
        return *diff && !is_same_pod(edit, before->candidate, after->candidate) ? JUDGED_CHANGED
                                                                                : JUDGED_SAME;
}

/* Return: JUDGED_.... What cannot be judged ends the verb, after a message. */
static int judge(const struct edit *edit, const char *data, size_t size)
{
        struct lkg_error err = { 0 };
        int status;

        if (lkg_write_file_atomic(edit->judged_fd, edit->name, data, size, 0600, false, &err) < 0)
                lkg_tool_end(edit->tool, LKG_TOOL_FAILED, "%s", err.message);
        status = ask_child(edit, judge_in_child, -EBADF);
        if (status < JUDGED_SAME)
                exit(status);
        return status;
}

/* ---- saving ---- */

/* Did somebody else change it meanwhile? */
static bool is_unchanged(const struct edit *edit)
{
        struct edit now = { .tool = edit->tool,
                            .name = edit->name,
                            .dropins = edit->dropins,
                            .dropins_fd = edit->dropins_fd };

        return read_dropin(&now) == LKG_TOOL_OK && now.exists == edit->exists &&
               now.before_size == edit->before_size &&
               (!now.exists || memcmp(now.before, edit->before, now.before_size) == 0);
}

/* What a new drop-in is: what all others there may do, of their owner if it is one; 0600 of root without others. */
static void like_others(const struct edit *edit, struct lkg_new_file *as)
{
        struct lkg_strings names = { 0 };
        bool any = false;

        *as = (struct lkg_new_file){ .mode = 0600, .durable = true, .owned = true };
        (void)lkg_tool_names(edit->dropins_fd, ".", DT_UNKNOWN, &names);
        for (size_t i = 0; i < names.n_items; i++) {
                struct stat st;

                if (*names.items[i] == '.' ||
                    (!edit->component->is_pods && !lkg_is_dropin_name(names.items[i])) ||
                    fstatat(edit->dropins_fd, names.items[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                as->mode = (any ? as->mode : 0777) & st.st_mode & 0777;
                as->uid = !any || as->uid == st.st_uid ? st.st_uid : 0;
                as->gid = !any || as->gid == st.st_gid ? st.st_gid : 0;
                any = true;
        }
}

static void save(const struct edit *edit, const char *data, size_t size)
{
        struct lkg_new_file as = { .mode = edit->st.st_mode & 0777,
                                   .owned = true,
                                   .uid = edit->st.st_uid,
                                   .gid = edit->st.st_gid,
                                   .durable = true };
        struct lkg_error err = { 0 };

        if (!edit->exists)
                like_others(edit, &as);
        if (lkg_write_file_as(edit->dropins_fd, edit->name, data, size, &as, &err) < 0)
                lkg_tool_end(edit->tool, LKG_TOOL_FAILED, "%s", err.message);
}

/* The view of the component. Return: false: there is none. */
static bool find_view(const struct edit *edit, struct lkg_view *ret)
{
        struct lkg_error err = { 0 };

        if (!lkg_view_is_there(edit->tool))
                return false;
        if (lkg_view_find(edit->tool, ret, &err) < 0) {
                lkg_tool_note(edit->tool, "%s", err.message);
                return false;
        }
        ret->component = edit->component->name;
        return true;
}

/* What the view says of the component; NULL = there is none. */
static char *served(const struct edit *edit, const char *file)
{
        struct lkg_view view = { 0 };

        return find_view(edit, &view) ? lkg_view_status(&view, file) : NULL;
}

/* The rename through the view is answered when its generation is published. */
static int say_served(const struct edit *edit, const char *before)
{
        char *now = before ? served(edit, "generation") : NULL;
        char *condition = now ? served(edit, "condition") : NULL;

        if (!now)
                lkg_tool_note(edit->tool, "saved; no view of it is mounted");
        else if (strcmp(before, now) != 0)
                lkg_tool_note(edit->tool, "saved; generation %s is served", now);
        else
                lkg_tool_note(edit->tool, "saved; generation %s is still served: %s", now,
                              condition ? condition : "");
        return condition && strncmp(condition, "False", 5) == 0 ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
}

/* ---- the verdict about a manifest ---- */

/* Its line in status/<component>/pods; NULL = it has none. */
static const struct lkg_value *pod_of(const struct edit *edit, const char *pods)
{
        const struct lkg_value *rows = lkg_known_pods(pods);

        for (size_t i = 0; i < lkg_value_size(rows); i++)
                if (strcmp(lkg_tool_word(lkg_list_get(rows, i), "file"), edit->name) == 0)
                        return lkg_list_get(rows, i);
        return NULL;
}

/* Return: LKG_TOOL_OK, LKG_TOOL_DIFFERENT; -1: there is no verdict yet. @said: the state that was said last */
static int look(const struct edit *edit, const struct lkg_view *view, const char *sha256,
                char said[static 512])
{
        const char *pods = lkg_view_status(view, "pods"), *state, *why, *line;
        struct lkg_value *mark =
                lkg_view_read_json(view, "bad/%s/%s@%.12s", view->component, edit->name, sha256);
        const struct lkg_value *pod = pods ? pod_of(edit, pods) : NULL;

        if (mark)
                return lkg_tool_fail(edit->tool, LKG_TOOL_DIFFERENT, "%s: bad: %s", edit->name,
                                     lkg_tool_clean(lkg_tool_word(mark, "reason")));
        if (!pods) /* the engine is being replaced */
                return -1;
        if (!pod || strncmp(lkg_tool_word(pod, "sha256"), sha256, 12) != 0)
                return lkg_tool_fail(edit->tool, LKG_TOOL_DIFFERENT, "%s is saved, and not served: %s",
                                     edit->name, lkg_view_text(view, "condition"));
        state = lkg_tool_word(pod, "state");
        why = lkg_tool_word(pod, "why");
        line = lkg_tool_format("%s: %s%s%s", edit->name, state, *why ? ": " : "", why);
        if (strncmp(said, line, 511) != 0)
                lkg_tool_note(edit->tool, "%s", line);
        (void)snprintf(said, 512, "%s", line);
        if (strcmp(state, "dead end") == 0)
                return LKG_TOOL_DIFFERENT;
        return strcmp(state, "good") == 0 || strcmp(state, "untried") == 0 ? LKG_TOOL_OK : -1;
}

/* Says each change of the pod's state. Who interrupts it leaves the trial alone: nothing here is part of it. */
static int wait_for_verdict(const struct edit *edit, const struct lkg_view *view, const char *data,
                            size_t size)
{
        const char *path = lkg_tool_format("status/%s/generation", view->component);
        char sha256[LKG_SHA256_HEX], said[512] = "";
        size_t kept = lkg_tool_kept();

        (void)lkg_need(lkg_sha256_hex(data, size, sha256));
        lkg_tool_note(
                edit->tool,
                "waiting for the verdict; ^C leaves the trial alone, and `lkgfs status -c %s` shows it",
                view->component);
        for (;;) {
                LKG_CLEANUP(lkg_closep) int fd = openat(view->fd, path, O_RDONLY | O_CLOEXEC);
                int status = look(edit, view, sha256, said);

                if (status >= 0)
                        return status;
                lkg_tool_let_go(kept);
                /* a trial that ends well makes no generation */
                (void)poll(&(struct pollfd){ .fd = fd, .events = POLLPRI }, 1, 1000);
        }
}

/* ---- the conversation ---- */

/* Return: one of @letters; at the end of input 'q'. */
static char ask(const char *question, const char *letters)
{
        char line[64];

        for (;;) {
                (void)printf("%s ", question);
                (void)fflush(stdout);
                if (!fgets(line, sizeof(line), stdin))
                        return 'q';
                if (line[0] && line[0] != '\n' && strchr(letters, line[0]))
                        return line[0];
        }
}

static char decide(const struct edit *edit, int judged)
{
        const char *name = edit->component->name;

        if (judged == JUDGED_REFUSED)
                return ask("It would be refused. (e)dit again, (s)ave anyway, (q)uit without saving?",
                           "esq");
        if (edit->component->is_pods) {
                (void)puts(
                        judged == JUDGED_SAME
                                ? "The pod does not change, so the kubelet does not restart it."
                                : "The kubelet starts the pod anew with it. If its probes do not answer, or "
                                  "it restarts too often, the last good manifest is served again; without "
                                  "probes nobody can tell.");
                return ask("(s)ave, (e)dit again, (q)uit without saving?", "seq");
        }
        if (judged == JUDGED_SAME)
                (void)puts("The merged document does not change.");
        else if (edit->component->restart.policy == LKG_SETTINGS_RESTART_NEVER)
                (void)printf("Takes effect when %s is restarted; lkgfs does not do that (restart.policy: "
                             "Never).\n",
                             name);
        else
                (void)printf("Takes effect with a restart of %s, which lkgfs asks for.\n", name);
        return ask("(s)ave, (t)ry for 5 minutes, (e)dit again, (q)uit without saving?", "steq");
}

static int commit(const struct edit *edit, char answer, const char *data, size_t size)
{
        char *before = served(edit, "generation");
        struct lkg_view view = { 0 };
        struct lkg_error err = { 0 };
        int status = LKG_TOOL_OK;

        if (!is_unchanged(edit) &&
            ask("Somebody else has changed the file meanwhile. (s)ave over it, (q)uit "
                "without saving?",
                "sq") == 'q')
                return LKG_TOOL_DIFFERENT;
        if (answer == 't') {
                if (lkg_view_find(edit->tool, &view, &err) < 0 ||
                    lkg_view_find_component(edit->tool, &view, &err) < 0)
                        lkg_tool_end(edit->tool, LKG_TOOL_FAILED, "%s", err.message);
                status = lkg_view_command(edit->tool, &view, "try", "5m");
        }
        if (status != LKG_TOOL_OK)
                return status;
        save(edit, data, size);
        if (edit->component->is_pods && find_view(edit, &view)) {
                /* The view may be mounted beside the directory that was written to. */
                status = lkg_view_command(edit->tool, &view, "sync", "now");
                if (status == LKG_TOOL_OK && !edit->tool->options.wait.never)
                        return wait_for_verdict(edit, &view, data, size);
                return status == LKG_TOOL_OK ? say_served(edit, before) : status;
        }
        status = say_served(edit, before);
        if (status == LKG_TOOL_OK && answer == 't')
                lkg_tool_note(edit->tool, "it is kept if `lkgfs commit` follows within 5 minutes");
        return status;
}

static int converse(const struct edit *edit)
{
        for (;;) {
                LKG_CLEANUP(lkg_closep) int fd = -EBADF;
                size_t size;
                char *data, answer;
                int r, judged;

                run_editor(edit);
                fd = open(edit->copy, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
                r = fd < 0 ? -errno : lkg_tool_read(fd, LKG_DOC_BYTES_MAX, &data, &size);
                if (r < 0)
                        fail(edit, edit->copy, r);
                if (edit->exists && size == edit->before_size && memcmp(data, edit->before, size) == 0) {
                        lkg_tool_note(edit->tool, "'%s' was not changed", edit->name);
                        return LKG_TOOL_OK;
                }
                judged = judge(edit, data, size);
                answer = decide(edit, judged);
                if (answer == 'q') {
                        lkg_tool_note(edit->tool, "nothing was changed");
                        return LKG_TOOL_DIFFERENT;
                }
                if (answer != 'e')
                        return commit(edit, answer, data, size);
        }
}

int lkg_verb_edit(const struct lkg_tool *tool)
{
        struct edit edit = { .tool = tool, .dropins_fd = -EBADF, .judged_fd = -EBADF };
        int status;

        if (geteuid() != 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                     "only root can judge this node; run it with sudo");
        status = lkg_tool_node_read(tool, &edit.node);
        if (status != LKG_TOOL_FAILED)
                lkg_tool_print_findings(tool, STDERR_FILENO, &edit.node->report);
        if (status == LKG_TOOL_OK)
                status = choose(&edit);
        if (status != LKG_TOOL_OK)
                return status;
        make_directory(&edit);
        return converse(&edit);
}
