/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading the configuration: the file, its drop-ins, checks of their owners, and the merge.
 *
 * These files name programs that run as root (restart hooks) and paths, so they and every directory of their
 * paths must be owned by root and not writable by others; otherwise none of them is used.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>

#include <lkg/config.h>
#include <lkg/documents.h>
#include <lkg/publication.h>
#include <lkg/file.h>
#include <lkg/messages.h>
#include <lkg/text.h>

#define DROPINS_MAX   1024
#define DUPLICATE_KEY 1006 /* the strict decoder's code */

struct loader {
        const struct lkg_config_options *options;
        struct lkg_report *report;
        struct lkg_value *doc; /* merged so far, NULL = nothing read */
        bool untrusted;
};

static void refuse(struct loader *l, const char *path, const char *what)
{
        const struct lkg_where where = { .file = path };

        l->untrusted = true;
        lkg_report_add(l->report, LKG_ERROR, 3018, &where,
                       "%s; it must be owned by root and not writable by others", what);
}

static bool owner_ok(const struct stat *st)
{
        if (st->st_uid != 0)
                return false;
        /* In a sticky directory (/tmp) other users cannot replace root's files. */
        return !(st->st_mode & (S_IWGRP | S_IWOTH)) || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX));
}

/* Checks every directory from the root down to @path, with symlinks resolved. */
static void check_way(struct loader *l, const char *path)
{
        LKG_CLEANUP(lkg_freep) char *real = realpath(path, NULL);
        struct stat st;

        if (!real || l->options->trust_any_owner)
                return;
        for (char *slash = strrchr(real, '/'); slash; slash = strrchr(real, '/')) {
                const char *directory = slash == real ? "/" : real;

                *slash = '\0';
                if (stat(directory, &st) < 0 || !owner_ok(&st))
                        refuse(l, path, "a directory on its way is not trusted");
        }
}

/* Return: 1: read into @ret; 0: missing or refused (see the report); -ENOMEM. */
/*
 * Every finding of the decoder is an error here: our configuration is read strictly. It was decoded
 * leniently, so that a duplicate key does not hide other mistakes.
 */
static void append_strictly(struct lkg_report *to, const struct lkg_report *from)
{
        static const char lenient[] = "; the last one counts";

        for (size_t i = 0; i < from->n_findings; i++) {
                const struct lkg_finding *f = &from->findings[i];
                const struct lkg_where where = { f->file, f->line, f->column };
                const char *cut = strstr(f->text, lenient);
                int n = cut ? (int)(cut - f->text) : (int)strlen(f->text);

                lkg_report_add(to, f->severity == LKG_NOTE ? LKG_NOTE : LKG_ERROR,
                               cut ? DUPLICATE_KEY : f->code, &where, "%.*s%s", n, f->text,
                               cut ? "; keep one of the two" : "");
        }
}

static int read_document(struct loader *l, const char *path, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report decoded = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_error err = { 0 };
        struct lkg_source *source;
        struct stat st;
        size_t size;
        int r;

        fd = lkg_open_trusted(AT_FDCWD, path, &st, &err);
        if (fd == -ENOENT || fd == -ENOTDIR) {
                const struct lkg_where where = { .file = path };

                if (path == l->options->path && l->options->must_exist)
                        lkg_report_add(l->report, LKG_ERROR, 3001, &where, "cannot be read: %s",
                                       strerror(-fd));
                return 0;
        }
        if (fd >= 0 && !l->options->trust_any_owner && !owner_ok(&st)) {
                refuse(l, path, "the file is not trusted");
                return 0;
        }
        if (fd == -ELOOP) {
                refuse(l, path, "a symlink leads through a place that is not trusted");
                return 0;
        }
        r = fd < 0 ? fd : lkg_read_file(fd, LKG_CONFIG_BYTES_MAX, &data, &size, &err);
        if (r < 0) {
                const struct lkg_where where = { .file = path };

                lkg_report_add(l->report, LKG_ERROR, 3001, &where, "cannot be read: %s", err.message);
                return r == -ENOMEM ? r : 0;
        }
        check_way(l, path);
        source = lkg_source_new("configuration", path);
        if (!source)
                return -ENOMEM;
        r = lkg_decode(data, size, lkg_detect_format(data, size), 0, source, &decoded, ret);
        lkg_source_unref(source);
        append_strictly(l->report, &decoded);
        return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

/* ---- merging ---- */

static int find_component(const struct lkg_value *list, const char *name, size_t *ret)
{
        for (size_t i = 0; i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *other =
                        lkg_value_type(item) == LKG_MAP ? lkg_map_get_string(item, "name") : NULL;

                if (other && strcmp(other, name) == 0) {
                        *ret = i;
                        return 1;
                }
        }
        return 0;
}

static int append_ref(struct lkg_value *list, const struct lkg_value *item)
{
        return lkg_list_append(list, lkg_value_ref((struct lkg_value *)item));
}

/* The components of @base, merged with those that @patch names, then the new ones of @patch in its order. */
static int merge_components(const struct lkg_value *base, const struct lkg_value *patch,
                            struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *list = lkg_value_new_list((struct lkg_source *)lkg_value_source(patch),
                                                    lkg_value_line(patch), lkg_value_column(patch));
        size_t at;
        int r = list ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < lkg_value_size(base); i++) {
                const struct lkg_value *item = lkg_list_get(base, i);
                const char *name = lkg_value_type(item) == LKG_MAP ? lkg_map_get_string(item, "name") : NULL;
                struct lkg_value *merged;

                if (!name || !find_component(patch, name, &at)) {
                        r = append_ref(list, item);
                        continue;
                }
                r = lkg_merge_json(item, lkg_list_get(patch, at), &merged);
                if (r >= 0)
                        r = lkg_list_append(list, merged);
        }
        for (size_t i = 0; r >= 0 && i < lkg_value_size(patch); i++) {
                const struct lkg_value *item = lkg_list_get(patch, i);
                const char *name = lkg_value_type(item) == LKG_MAP ? lkg_map_get_string(item, "name") : NULL;

                if (!name ||
                    (!find_component(base, name, &at) && find_component(patch, name, &at) && at == i))
                        r = append_ref(list, item);
        }
        if (r < 0)
                return r;
        *ret = LKG_STEAL(list);
        return 0;
}

int lkg_config_merge(const struct lkg_value *doc, const struct lkg_value *patch, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
        const struct lkg_value *a = lkg_value_type(doc) == LKG_MAP ? lkg_map_get(doc, "components") : NULL;
        const struct lkg_value *b =
                lkg_value_type(patch) == LKG_MAP ? lkg_map_get(patch, "components") : NULL;
        struct lkg_value *components, *changed;
        int r = lkg_merge_json(doc, patch, &merged);

        if (r < 0 || !a || !b || lkg_value_type(a) != LKG_LIST || lkg_value_type(b) != LKG_LIST) {
                if (r >= 0)
                        *ret = LKG_STEAL(merged);
                return r;
        }
        r = merge_components(a, b, &components);
        if (r < 0)
                return r;
        changed = lkg_value_clone_shallow(merged);
        if (!changed) {
                lkg_value_unref(components);
                return -ENOMEM;
        }
        r = lkg_map_set(changed, "components", strlen("components"), components);
        if (r < 0) {
                lkg_value_unref(changed);
                return r;
        }
        *ret = changed;
        return 0;
}

/* ---- drop-ins ---- */

struct dropins {
        char *names[DROPINS_MAX]; /* sorted, without duplicates */
        size_t n_names;
};

static void dropins_deinit(struct dropins *d)
{
        for (size_t i = 0; i < d->n_names; i++)
                free(d->names[i]);
}

static bool is_dropin(const char *name)
{
        size_t n = strlen(name);

        return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".conf") == 0;
}

static int add_name(struct loader *l, struct dropins *d, const char *directory, const char *name)
{
        const struct lkg_where where = { .file = directory };
        size_t at = 0;
        char *copy;

        while (at < d->n_names && strcmp(d->names[at], name) < 0)
                at++;
        if (at < d->n_names && strcmp(d->names[at], name) == 0)
                return 0;
        if (d->n_names == DROPINS_MAX) {
                lkg_report_add(l->report, LKG_ERROR, 3001, &where, "more than %d drop-ins", DROPINS_MAX);
                return 0;
        }
        copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        memmove(d->names + at + 1, d->names + at, (d->n_names - at) * sizeof(d->names[0]));
        d->names[at] = copy;
        d->n_names++;
        return 0;
}

static int list_dropins(struct loader *l, const char *directory, struct dropins *d)
{
        const struct lkg_where where = { .file = directory };
        DIR *dir = opendir(directory);
        int r = 0;

        if (!dir) {
                if (errno != ENOENT && errno != ENOTDIR)
                        lkg_report_add(l->report, LKG_ERROR, 3001, &where, "cannot be read: %s",
                                       strerror(errno));
                return 0;
        }
        for (struct dirent *e = readdir(dir); e && r >= 0; e = readdir(dir)) {
                if (is_dropin(e->d_name))
                        r = add_name(l, d, directory, e->d_name);
                else if (e->d_name[0] != '.')
                        lkg_report_add(l->report, LKG_NOTE, 3019, &where,
                                       "%s is not read: a drop-in's name ends in .conf", e->d_name);
        }
        (void)closedir(dir);
        return r;
}

static int add_document(struct loader *l, const char *path, bool may_be_empty)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        const struct lkg_where whole = { .file = path };
        struct lkg_value *merged;
        int r = read_document(l, path, &doc);

        if (r <= 0)
                return r;
        if (lkg_value_type(doc) == LKG_NULL) {
                if (!may_be_empty)
                        lkg_report_add(l->report, LKG_ERROR, 3004, &whole,
                                       "the document is empty; write at least apiVersion and kind, or "
                                       "remove the file");
                return 0;
        }
        if (lkg_value_type(doc) != LKG_MAP) {
                const struct lkg_where where = lkg_where_of(doc);

                lkg_report_add(l->report, LKG_ERROR, 3004, &where, "the document is a %s, want a map",
                               lkg_type_name(lkg_value_type(doc)));
                return 0;
        }
        if (!l->doc) {
                l->doc = LKG_STEAL(doc);
                return 0;
        }
        lkg_config_check(NULL, doc, l->report); /* duplicates within this file: the merge would hide them */
        r = lkg_config_merge(l->doc, doc, &merged);
        if (r < 0)
                return r;
        lkg_value_unref(l->doc);
        l->doc = merged;
        return 0;
}

static int add_dropins(struct loader *l, const char *vendor, const char *local)
{
        LKG_CLEANUP(dropins_deinit) struct dropins d = { 0 };
        char path[PATH_MAX];
        int r = list_dropins(l, local, &d);

        if (r >= 0)
                r = list_dropins(l, vendor, &d);
        for (size_t i = 0; r >= 0 && i < d.n_names; i++) {
                if (snprintf(path, sizeof(path), "%s/%s", local, d.names[i]) >= (int)sizeof(path))
                        continue;
                if (!lkg_path_exists(AT_FDCWD, path) &&
                    snprintf(path, sizeof(path), "%s/%s", vendor, d.names[i]) >= (int)sizeof(path))
                        continue;
                r = add_document(l, path,
                                 /* may_be_empty= */
                                 true); /* an empty file hides the one with the same name below /usr */
        }
        return r;
}

/* A drop-in alone needs no header: it is a patch of a document that has one, or of the defaults. */
static int complete_header(struct loader *l)
{
        static const char *const header[][2] = { { "apiVersion", LKG_CONFIG_API_VERSION },
                                                 { "kind", LKG_CONFIG_KIND } };
        struct lkg_value *doc;

        if (!l->doc)
                return 0;
        doc = lkg_value_clone_shallow(l->doc);
        if (!doc)
                return -ENOMEM;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(header); i++) {
                struct lkg_value *text;

                if (lkg_map_get(doc, header[i][0]))
                        continue;
                text = lkg_value_new_string(header[i][1], strlen(header[i][1]), NULL, 0, 0);
                if (!text || lkg_map_set(doc, header[i][0], strlen(header[i][0]), text) < 0) {
                        lkg_value_unref(doc);
                        return -ENOMEM;
                }
        }
        lkg_value_unref(l->doc);
        l->doc = doc;
        return 0;
}

static int absolute_directory(const char *path, char ret[static PATH_MAX])
{
        const char *slash = strrchr(path, '/');
        char cwd[PATH_MAX] = "";
        int n;

        if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
                return -errno;
        n = snprintf(ret, PATH_MAX, "%s%s%.*s", cwd, *path == '/' || !slash ? "" : "/",
                     slash ? (int)(slash - path) : 0, path);
        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int lkg_config_load(const struct lkg_config_options *options, struct lkg_config **ret,
                    struct lkg_report *report)
{
        struct loader l = { .options = options, .report = report };
        const char *path = options->path ? options->path : LKG_CONFIG_DEFAULT;
        char directory[PATH_MAX], local[PATH_MAX + 16];
        size_t errors = report->n_severity[LKG_ERROR];
        bool has_file;
        int r = absolute_directory(path, directory);

        if (r < 0) {
                lkg_report_add(report, LKG_ERROR, 3001, NULL, "the directory of %s: %s", path, strerror(-r));
                return -EBADMSG;
        }
        (void)snprintf(local, sizeof(local), "%s/config.d", directory);
        r = add_document(&l, path, /* may_be_empty= */ false);
        has_file = l.doc != NULL;
        if (r >= 0)
                r = add_dropins(&l, options->vendor_dir ? options->vendor_dir : LKG_CONFIG_VENDOR_DIR,
                                local);
        if (r >= 0 && !has_file)
                r = complete_header(&l);
        if (r >= 0 && l.untrusted)
                r = -EPERM;
        else if (r >= 0)
                r = lkg_config_decode(l.doc, directory, ret, report);
        lkg_value_unref(l.doc);
        if (r >= 0 && report->n_severity[LKG_ERROR] > errors) { /* a broken drop-in next to a valid file */
                *ret = lkg_config_free(*ret);
                return -EBADMSG;
        }
        return r;
}

/* ---- what the supervisor needs ---- */

static int push(char ***items, size_t *n_items, const char *text)
{
        return lkg_strings_take(items, n_items, strdup(text));
}

static uint32_t to_ms(uint64_t ns)
{
        uint64_t ms = ns / LKG_NSEC_PER_MSEC;

        return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

static int fill_restart(const struct lkg_config_component *from, struct lkg_settings_component *to)
{
        static const enum lkg_settings_restart policies[] = {
                [LKG_RESTART_NEVER] = LKG_SETTINGS_RESTART_NEVER,
                [LKG_RESTART_UNIT] = LKG_SETTINGS_RESTART_UNIT,
                [LKG_RESTART_HOOK] = LKG_SETTINGS_RESTART_HOOK,
        };
        const char *unit = from->restart.unit && *from->restart.unit ? from->restart.unit : from->match.unit;
        int r = 0;

        to->restart = policies[from->restart.policy];
        to->restart_unit = strdup(unit ? unit : "");
        for (size_t k = 0; r >= 0 && k < from->restart.hook.n_items; k++)
                r = push(&to->restart_argv, &to->n_restart_argv, from->restart.hook.items[k]);
        to->restart_min_interval_ms = to_ms(from->restart.min_interval_ns);
        to->restart_max_per_hour = (uint32_t)from->restart.max_per_hour;
        return r < 0 || !to->restart_unit ? -ENOMEM : 0;
}

/* The components that the supervisor collects facts about, and how it restarts them. */
static int fill_components(const struct lkg_config *config, struct lkg_settings *s)
{
        s->components = calloc(config->n_components ? config->n_components : 1, sizeof(*s->components));
        if (!s->components)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_components; i++) {
                const struct lkg_config_component *from = &config->components[i];
                struct lkg_settings_component *to = &s->components[s->n_components++];
                int r = 0;

                to->name = strdup(from->name);
                to->unit = strdup(from->match.unit ? from->match.unit : "");
                to->file = strdup(from->file);
                to->uid = from->uid;
                to->gid = from->gid;
                to->mode = from->mode;
                for (size_t k = 0; r >= 0 && k < from->match.exe.n_items; k++)
                        r = push(&to->exes, &to->n_exes, from->match.exe.items[k]);
                if (r < 0 || !to->name || !to->unit || !to->file || fill_restart(from, to) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int lkg_config_to_settings(const struct lkg_config *config, struct lkg_settings **ret)
{
        struct lkg_settings *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->state_dir = strdup(config->state_dir);
        s->runtime_dir = strdup(config->runtime_dir);
        s->source_dir = strdup(config->source_dir);
        s->virtual_dir = strdup(config->virtual_dir);
        s->node_name = strdup(config->remote.node_name ? config->remote.node_name : "");
        s->engine_user = strdup(config->engine_user);
        s->engine_uid = config->engine_account.uid;
        s->engine_gid = config->engine_account.gid;
        s->engine_user_missing = config->engine_user_missing;
        s->engine_timeout_ms = to_ms(config->engine_timeout_ns);
        s->foreign_writes = (uint32_t)config->foreign_writes;
        s->restart_jitter_ms = to_ms(config->remote.restart_jitter_ns);
        if (!s->state_dir || !s->runtime_dir || !s->source_dir || !s->virtual_dir || !s->node_name ||
            !s->engine_user || fill_components(config, s) < 0) {
                lkg_settings_free(s);
                return -ENOMEM;
        }
        *ret = s;
        return 0;
}

/* ---- a reload ---- */

static void swap_text(char **a, char **b)
{
        char *text = *a;

        *a = *b;
        *b = text;
}

void lkg_config_keep_mount(struct lkg_config *config, struct lkg_config *next, struct lkg_report *report)
{
        const struct {
                const char *name;
                char **old, **new;
        } texts[] = {
                { "stateDir", &config->state_dir, &next->state_dir },
                { "runtimeDir", &config->runtime_dir, &next->runtime_dir },
                { "sourceDir", &config->source_dir, &next->source_dir },
                { "virtualDir", &config->virtual_dir, &next->virtual_dir },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                if (strcmp(*texts[i].old, *texts[i].new) == 0)
                        continue;
                lkg_report_add(report, LKG_NOTE, 4012, NULL, "%s: the change takes effect at the next mount",
                               texts[i].name);
                swap_text(texts[i].old, texts[i].new);
        }
}
