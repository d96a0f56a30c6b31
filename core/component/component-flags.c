/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a component's command line: does it read the file that lkgfs serves, and does it also apply
 * drop-ins that lkgfs already applies? Looks only at names and paths; no value of another flag appears in a
 * finding.
 *
 * The engine has its own mount namespace and cannot see the view, so a path into the view is followed to the
 * view's root and from there in the source directory. A path inside a container cannot be followed at all.
 */
#include <limits.h>
#include <sys/stat.h>

#include <lkg/component.h>

#define LINKS_MAX 40u /* as in the kernel */

/* ---- flags on the command line ---- */

/* Compares flag names with the component's pflag normalisation: `_` equals `-`. */
static bool same_name(const char *word, size_t size, const char *name)
{
        if (strlen(name) != size)
                return false;
        for (size_t i = 0; i < size; i++)
                if ((word[i] == '_' ? '-' : word[i]) != name[i])
                        return false;
        return true;
}

static const struct lkg_flag *find_flag(const struct lkg_flag *flags, size_t n, const char *name,
                                        size_t size)
{
        for (size_t i = 0; i < n; i++)
                if (same_name(name, size, flags[i].name))
                        return &flags[i];
        return NULL;
}

/* `-v 2`: does a lone shorthand take the next word as its value? */
static bool short_takes_next(const struct lkg_flag *flags, size_t n, const char *word)
{
        for (size_t i = 0; i < n; i++)
                if (flags[i].shorthand == word[1])
                        return !flags[i].no_value && word[2] == '\0';
        return false;
}

const char *lkg_flag_on_line(const struct lkg_flag *flags, size_t n_flags, const struct lkg_strings *words,
                             const char *name)
{
        const char *value = NULL;

        for (size_t i = 0; i < words->n_items; i++) {
                const char *word = words->items[i], *equals, *given;
                const struct lkg_flag *flag;
                size_t size;

                if (strcmp(word, "--") == 0)
                        break;
                if (word[0] != '-' || word[1] == '\0')
                        continue;
                if (word[1] != '-') {
                        i += short_takes_next(flags, n_flags, word);
                        continue;
                }
                word += 2;
                equals = strchr(word, '=');
                size = equals ? (size_t)(equals - word) : strlen(word);
                flag = find_flag(flags, n_flags, word, size);
                given = equals ? equals + 1 : NULL;
                if (!equals && flag && !flag->no_value && i + 1 < words->n_items)
                        given = words->items[++i];
                if (given && same_name(word, size, name))
                        value = given;
        }
        return value;
}

/* ---- following a path ---- */

struct walk {
        const struct lkg_component *component;
        char done[PATH_MAX]; /* resolved, no trailing slash; "" = the root */
        char rest[2 * PATH_MAX];
};

/* The path relative to the root of the view ("" = the root itself); NULL = not in the view. */
static const char *inside_view(const struct lkg_component *c, const char *path)
{
        size_t n = strlen(c->env->mount_point);

        if (strncmp(path, c->env->mount_point, n) != 0 || (path[n] != '/' && path[n] != '\0'))
                return NULL;
        return path[n] ? path + n + 1 : path + n;
}

static bool is_view_file(const struct lkg_config_component *k, const char *name)
{
        if (strcmp(name, k->file) == 0)
                return true;
        for (size_t i = 0; i < k->aliases.n_items; i++)
                if (strcmp(name, k->aliases.items[i]) == 0)
                        return true;
        return false;
}

/* Reads the link at w->done, if it is one. A file of the view is never a link, whatever it covers. */
static ssize_t read_link(const struct walk *w, char *buf, size_t size)
{
        const char *inside = inside_view(w->component, w->done);

        if (!inside)
                return readlink(w->done, buf, size);
        if (!*inside || is_view_file(w->component->config, inside))
                return -1;
        return readlinkat(w->component->env->source_fd, inside, buf, size);
}

static void go_up(struct walk *w)
{
        char *slash = strrchr(w->done, '/');

        if (slash)
                *slash = '\0';
}

/*
 * Moves one name from w->rest to w->done; replaces a link by its target. Return: 0; -ELOOP; -ENAMETOOLONG.
 */
static int step(struct walk *w, unsigned *n_links)
{
        size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/"), length = strlen(w->done);
        char target[PATH_MAX], next[2 * PATH_MAX];
        const char *name = w->rest + skip;
        ssize_t got;

        if (n == 2 && memcmp(name, "..", 2) == 0) {
                go_up(w);
        } else if (n > 0 && !(n == 1 && *name == '.')) {
                if (length + 1 + n >= sizeof(w->done))
                        return -ENAMETOOLONG;
                w->done[length] = '/';
                memcpy(w->done + length + 1, name, n);
                w->done[length + 1 + n] = '\0';
        }
        memmove(w->rest, name + n, strlen(name + n) + 1);
        if (n == 0 || (got = read_link(w, target, sizeof(target) - 1)) < 0)
                return 0;
        target[got] = '\0';
        if (++*n_links > LINKS_MAX)
                return -ELOOP;
        if (snprintf(next, sizeof(next), "%s/%s", target, w->rest) >= (int)sizeof(next))
                return -ENAMETOOLONG;
        memcpy(w->rest, next, strlen(next) + 1);
        if (target[0] == '/')
                w->done[0] = '\0';
        else
                go_up(w);
        return 0;
}

/* A relative path starts at /, the working directory of services. */
static int follow(struct walk *w, const char *path)
{
        unsigned n_links = 0;
        int r = 0;

        w->done[0] = '\0';
        if (snprintf(w->rest, sizeof(w->rest), "%s", path) >= PATH_MAX)
                return -ENAMETOOLONG;
        while (r == 0 && w->rest[0])
                r = step(w, &n_links);
        return r;
}

/* ---- findings ---- */

static bool look_up(const struct walk *w, struct stat *ret)
{
        const char *inside = inside_view(w->component, w->done);
        int r;

        if (inside)
                r = fstatat(w->component->env->source_fd, *inside ? inside : ".", ret, 0);
        else
                r = stat(*w->done ? w->done : "/", ret);
        return r == 0;
}

static void check_config_dir(struct lkg_component *c, const char *value)
{
        struct walk *w = calloc(1, sizeof(*w));
        const char *ours = c->config->dropin_dir;
        struct stat a, b;

        if (w && value && *value && *ours) {
                w->component = c;
                if (follow(w, value) == 0 && look_up(w, &a) &&
                    fstatat(c->env->source_fd, ours, &b, 0) == 0 && a.st_dev == b.st_dev &&
                    a.st_ino == b.st_ino)
                        lkg_report_add(&c->findings.facts, LKG_ERROR, 5019, NULL,
                                       "the command line of %s has --config-dir for %s, whose drop-ins are "
                                       "in %s already: they are applied twice; take --config-dir out",
                                       c->config->name, ours, c->config->file);
        }
        free(w);
}

/*
 * A running process was recognised because it opened our file. So if we cannot find its --config, that path
 * leads to the view in a way that we cannot see (a container). If we can find it, it is another file, which
 * the process reads as well or instead.
 */
static void check_config(struct lkg_component *c, const char *value, bool running)
{
        struct walk *w = calloc(1, sizeof(*w));
        const char *inside = NULL;
        struct stat st;
        bool found;

        if (!w)
                return;
        w->component = c;
        found = value && *value && follow(w, value) == 0;
        if (found)
                inside = inside_view(c, w->done);
        if (!value || !*value)
                lkg_report_add(&c->findings.facts, LKG_WARNING, 4016, NULL,
                               "the command line of %s has no --config, so it does not read %s/%s",
                               c->config->name, c->env->mount_point, c->config->file);
        else if (!(inside && is_view_file(c->config, inside)) && (!running || (found && look_up(w, &st))))
                lkg_report_add(&c->findings.facts, LKG_WARNING, 4016, NULL,
                               "--config on the command line of %s does not name %s/%s, so what is served "
                               "there is not what it reads",
                               c->config->name, c->env->mount_point, c->config->file);
        free(w);
}

static void check_pods(struct lkg_component *c, const char *value)
{
        if (c->names.pods_dir && value && strcmp(value, c->names.pods_dir) != 0)
                lkg_report_add(&c->findings.facts, LKG_WARNING, 4026, NULL,
                               "--pod-manifest-path on the command line of %s overrides staticPodPath, so "
                               "it does not "
                               "read its static pods from %s",
                               c->config->name, c->names.pods_dir);
}

static void check_release(struct lkg_component *c)
{
        char is[LKG_RELEASE_TEXT_MAX], first[LKG_RELEASE_TEXT_MAX], last[LKG_RELEASE_TEXT_MAX],
                taken[LKG_RELEASE_TEXT_MAX];
        unsigned release = c->facts->release;

        if (c->config->schema_release || !release || lkg_release_has_tables(release))
                return;
        lkg_report_add(
                &c->findings.facts, LKG_WARNING, 4017, NULL,
                "%s is of release %s, for which there are no tables (known: %s to %s); it is judged as %s",
                c->config->name, lkg_release_text(release, is), lkg_release_text(LKG_RELEASE_MIN, first),
                lkg_release_text(LKG_RELEASE_MAX, last), lkg_release_text(lkg_component_release(c), taken));
}

void lkg_component_check_facts(struct lkg_component *c)
{
        bool proxy = c->candidate && c->candidate->schema &&
                     strcmp(lkg_schema_kind(c->candidate->schema), "KubeProxyConfiguration") == 0;
        const struct lkg_flag *flags = proxy ? lkg_kubeproxy_flags : lkg_kubelet_flags;
        size_t n = proxy ? lkg_n_kubeproxy_flags : lkg_n_kubelet_flags;
        const struct lkg_line *line;
        bool running;

        lkg_report_deinit(&c->findings.facts);
        c->due.facts = false;
        if (c->pods && c->env->mount_point && !lkg_component_covers(c->env))
                lkg_report_add(
                        &c->findings.facts, LKG_WARNING, 4026, NULL,
                        "the view is not mounted over %s, so no kubelet would find static pods when lkgfs "
                        "is stopped; none is told to read %s/%s",
                        c->env->source_path, c->env->mount_point, c->config->file);
        if (c->pods && c->pods->elsewhere)
                lkg_report_add(
                        &c->findings.facts, LKG_WARNING, 4026, NULL,
                        "staticPodPath of the kubelet's layers names another directory, and there is no %s, "
                        "which is served; manifests are read from %s until each is there, or gone here",
                        c->pods->elsewhere, c->config->dropin_dir);
        /* in other programs, flags have other meanings */
        if (!c->facts || !c->candidate || !c->candidate->schema)
                return;
        check_release(c);
        line = lkg_facts_line(c->facts, &running);
        if (!line || !c->env->mount_point)
                return;
        check_config_dir(c, lkg_flag_on_line(flags, n, &line->words, "config-dir"));
        check_config(c, lkg_flag_on_line(flags, n, &line->words, "config"), running);
        check_pods(c, proxy ? NULL : lkg_flag_on_line(flags, n, &line->words, "pod-manifest-path"));
}
