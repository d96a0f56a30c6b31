/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading the configuration: the file, its drop-ins, checks of their owners, and the merge.
 *
 * These files name programs that run as root (restart hooks) and paths, so they and every directory of their
 * paths must be owned by root and not writable by others; otherwise none of them is used.
 */
#include <fcntl.h>
#include <inttypes.h>
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

static void refuse_setting(struct loader *l, const char *path, const char *what)
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
                        refuse_setting(l, path, "a directory on its way is not trusted");
        }
}

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

/* Return: NULL: missing or refused (see the report). */
static struct lkg_value *read_document(struct loader *l, const char *path)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report decoded = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_value *doc = NULL;
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
                return NULL;
        }
        if (fd >= 0 && !l->options->trust_any_owner && !owner_ok(&st)) {
                refuse_setting(l, path, "the file is not trusted");
                return NULL;
        }
        if (fd == -ELOOP) {
                refuse_setting(l, path, "a symlink leads through a place that is not trusted");
                return NULL;
        }
        r = fd < 0 ? fd : lkg_read_file(fd, LKG_CONFIG_BYTES_MAX, &data, &size, &err);
        if (r < 0) {
                const struct lkg_where where = { .file = path };

                lkg_report_add(l->report, LKG_ERROR, 3001, &where, "cannot be read: %s", err.message);
                return NULL;
        }
        check_way(l, path);
        source = lkg_source_new("configuration", path);
        (void)lkg_decode(data, size, lkg_detect_format(data, size), 0, source, &decoded, &doc);
        lkg_source_unref(source);
        append_strictly(l->report, &decoded);
        return doc;
}

/* ---- merging ---- */

static const char *name_of(const struct lkg_value *component)
{
        return lkg_value_type(component) == LKG_MAP ? lkg_map_get_string(component, "name") : NULL;
}

static const struct lkg_value *find_component(const struct lkg_value *list, const char *name)
{
        for (size_t i = 0; name && i < lkg_value_size(list); i++) {
                const char *other = name_of(lkg_list_get(list, i));

                if (other && strcmp(other, name) == 0)
                        return lkg_list_get(list, i);
        }
        return NULL;
}

/* The components of @base, merged with those that @patch names, then the new ones of @patch in its order. */
static struct lkg_value *merge_components(const struct lkg_value *base, const struct lkg_value *patch)
{
        struct lkg_value *list = lkg_value_new_list((struct lkg_source *)lkg_value_source(patch),
                                                    lkg_value_line(patch), lkg_value_column(patch));

        for (size_t i = 0; i < lkg_value_size(base); i++) {
                struct lkg_value *item = lkg_list_get(base, i);
                const struct lkg_value *other = find_component(patch, name_of(item));

                lkg_list_append(list, other ? lkg_merge_json(item, other) : lkg_value_ref(item));
        }
        for (size_t i = 0; i < lkg_value_size(patch); i++) {
                struct lkg_value *item = lkg_list_get(patch, i);
                const char *name = name_of(item);

                if (!name || (!find_component(base, name) && find_component(patch, name) == item))
                        lkg_list_append(list, lkg_value_ref(item));
        }
        return list;
}

struct lkg_value *lkg_config_merge(const struct lkg_value *doc, const struct lkg_value *patch)
{
        static const char field[] = "components";
        struct lkg_value *merged = lkg_merge_json(doc, patch), *changed;
        const struct lkg_value *a = lkg_map_get(doc, field), *b = lkg_map_get(patch, field);

        if (!a || !b || lkg_value_type(a) != LKG_LIST || lkg_value_type(b) != LKG_LIST)
                return merged;
        changed = lkg_value_clone_shallow(merged);
        lkg_value_unref(merged);
        (void)lkg_map_set(changed, field, strlen(field), merge_components(a, b));
        return changed;
}

/* ---- drop-ins ---- */

static void list_dropins(struct loader *l, const char *directory, struct lkg_strings *names)
{
        const struct lkg_where where = { .file = directory };
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = opendir(directory); /* it may be a link */
        const struct dirent *e;

        if (!dir) {
                if (errno != ENOENT && errno != ENOTDIR)
                        lkg_report_add(l->report, LKG_ERROR, 3001, &where, "cannot be read: %s",
                                       strerror(errno));
                return;
        }
        while ((e = lkg_dir_next(dir, NULL))) {
                if (lkg_is_dropin_name(e->d_name))
                        (void)lkg_need(lkg_strings_add(names, e->d_name, strlen(e->d_name)));
                else if (e->d_name[0] != '.')
                        lkg_report_add(l->report, LKG_NOTE, 3019, &where,
                                       "%s is not read: a drop-in's name ends in .conf", e->d_name);
        }
}

static void add_document(struct loader *l, const char *path, bool may_be_empty)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = read_document(l, path);
        const struct lkg_where whole = { .file = path };
        struct lkg_value *merged;

        if (!doc)
                return;
        if (lkg_value_type(doc) == LKG_NULL) {
                if (!may_be_empty)
                        lkg_report_add(l->report, LKG_ERROR, 3004, &whole,
                                       "the document is empty; write at least apiVersion and kind, or "
                                       "remove the file");
                return;
        }
        if (lkg_value_type(doc) != LKG_MAP) {
                const struct lkg_where where = lkg_where_of(doc);

                lkg_report_add(l->report, LKG_ERROR, 3004, &where, "the document is a %s, want a map",
                               lkg_type_name(lkg_value_type(doc)));
                return;
        }
        if (!l->doc) {
                l->doc = LKG_STEAL(doc);
                return;
        }
        lkg_config_check(NULL, doc, l->report); /* duplicates within this file: the merge would hide them */
        merged = lkg_config_merge(l->doc, doc);
        lkg_value_unref(l->doc);
        l->doc = merged;
}

static void add_dropins(struct loader *l, const char *vendor, const char *local)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };
        const struct lkg_where where = { .file = local };
        char path[PATH_MAX];
        unsigned n = 0;

        list_dropins(l, local, &names);
        list_dropins(l, vendor, &names);
        lkg_strings_sort(&names);
        for (size_t i = 0; i < names.n_items; i++) {
                const char *name = names.items[i];

                if (i > 0 && strcmp(name, names.items[i - 1]) == 0)
                        continue; /* in both */
                if (++n > DROPINS_MAX) {
                        lkg_report_add(l->report, LKG_ERROR, 3001, &where, "more than %d drop-ins",
                                       DROPINS_MAX);
                        return;
                }
                if (snprintf(path, sizeof(path), "%s/%s", local, name) >= (int)sizeof(path))
                        continue;
                if (!lkg_path_exists(AT_FDCWD, path) &&
                    snprintf(path, sizeof(path), "%s/%s", vendor, name) >= (int)sizeof(path))
                        continue;
                add_document(l, path,
                             /* may_be_empty= */
                             true); /* an empty file hides the one with the same name below /usr */
        }
}

/* A drop-in alone needs no header: it is a patch of a document that has one, or of the defaults. */
static void complete_header(struct loader *l)
{
        static const char *const header[][2] = { { "apiVersion", LKG_CONFIG_API_VERSION },
                                                 { "kind", LKG_CONFIG_KIND } };
        struct lkg_value *doc;

        if (!l->doc)
                return;
        doc = lkg_value_clone_shallow(l->doc);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(header); i++) {
                const char *name = header[i][0], *text = header[i][1];

                if (!lkg_map_get(doc, name))
                        (void)lkg_map_set(doc, name, strlen(name),
                                          lkg_value_new_string(text, strlen(text), NULL, 0, 0));
        }
        lkg_value_unref(l->doc);
        l->doc = doc;
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
        add_document(&l, path, /* may_be_empty= */ false);
        has_file = l.doc != NULL;
        add_dropins(&l, options->vendor_dir ? options->vendor_dir : LKG_CONFIG_VENDOR_DIR, local);
        if (!has_file)
                complete_header(&l);
        r = l.untrusted ? -EPERM : lkg_config_decode(l.doc, directory, ret, report);
        lkg_value_unref(l.doc);
        if (r >= 0 && report->n_severity[LKG_ERROR] > errors) { /* a broken drop-in next to a valid file */
                *ret = lkg_config_free(*ret);
                return -EBADMSG;
        }
        return r;
}

/* ---- what the supervisor needs ---- */

static void put_text(struct lkg_buf *buf, const char *key, const char *value)
{
        lkg_buf_printf(buf, "%s=", key);
        lkg_escape(buf, value, 0x1f);
        lkg_buf_putc(buf, '\n');
}

static void put_texts(struct lkg_buf *buf, const char *key, const struct lkg_strings *values)
{
        for (size_t i = 0; i < values->n_items; i++)
                put_text(buf, key, values->items[i]);
}

static void put_number(struct lkg_buf *buf, const char *key, uint64_t n)
{
        lkg_buf_printf(buf, "%s=%" PRIu64 "\n", key, n > UINT32_MAX ? UINT32_MAX : n);
}

static void put_ms(struct lkg_buf *buf, const char *key, uint64_t ns)
{
        put_number(buf, key, ns / LKG_NSEC_PER_MSEC);
}

/* A component that the supervisor collects facts about, and how it restarts it. */
static void put_component(struct lkg_buf *buf, const struct lkg_config_component *c)
{
        put_text(buf, "component", c->name);
        put_text(buf, "component_unit", c->match.unit);
        put_text(buf, "component_file", c->file);
        put_number(buf, "component_uid", c->uid);
        put_number(buf, "component_gid", c->gid);
        put_number(buf, "component_mode", c->mode);
        put_texts(buf, "component_exe", &c->match.exe);
        put_text(buf, "component_restart",
                 lkg_settings_restart_word((enum lkg_settings_restart)c->restart.policy));
        put_text(buf, "component_restart_unit", *c->restart.unit ? c->restart.unit : c->match.unit);
        put_texts(buf, "component_restart_argv", &c->restart.hook);
        put_ms(buf, "component_restart_min_interval_ms", c->restart.min_interval_ns);
        put_number(buf, "component_restart_max_per_hour", c->restart.max_per_hour);
        if (!c->is_pods)
                return;
        put_number(buf, "component_pods", 1);
        put_text(buf, "component_runtime_endpoint", c->runtime_endpoint);
}

void lkg_config_to_settings(const struct lkg_config *config, struct lkg_buf *buf)
{
        put_text(buf, "state_dir", config->state_dir);
        put_text(buf, "runtime_dir", config->runtime_dir);
        put_text(buf, "source_dir", config->source_dir);
        put_text(buf, "virtual_dir", config->virtual_dir);
        put_ms(buf, "engine_timeout_ms", config->engine_timeout_ns);
        put_number(buf, "foreign_writes", (uint64_t)config->foreign_writes);
        put_ms(buf, "restart_jitter_ms", config->remote.restart_jitter_ns);
        put_text(buf, "node_name", config->remote.node_name);
        put_text(buf, "engine_user", config->engine_user);
        put_number(buf, "engine_uid", config->engine_account.uid);
        put_number(buf, "engine_gid", config->engine_account.gid);
        put_number(buf, "engine_user_missing", config->engine_user_missing);
        for (size_t i = 0; i < config->n_components; i++)
                put_component(buf, &config->components[i]);
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
