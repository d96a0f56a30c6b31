/* SPDX-License-Identifier: Apache-2.0 */
/* Which installer made this node? Looks at units and files, and at the kubelet's command line. */
#include <spawn.h>
#include <sys/wait.h>

#include "adopt.h"

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
                        lkg_tool_add_word(&look->flag_list, words->items[i]);
                i += n ? n : 1;
        }
        if (look->config_dir && !*look->config_dir)
                look->config_dir = NULL;
        look->flags = (const char *const *)look->flag_list.items;
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

/* ---- adopt-systemd ---- */

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
