/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder of the LkgfsConfiguration document: walks the tables of config-fields.c along a map. Unknown
 * members, wrong types and bad values each become a finding at their line and column, and decoding
 * continues, so that one run reports every mistake.
 */
#include <inttypes.h>
#include <limits.h>
#include <strings.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/schema.h>

#include "config-fields.h"

struct decoder {
        void *target;
        const char *directory, *component;
        struct lkg_report *report;
        char prefix[256]; /* "components[kubelet].match." */
};

/* ---- one value ---- */

static void *member(const struct decoder *d, const struct lkg_config_field *f)
{
        return (char *)d->target + f->offset;
}

static void set_text(char **to, const char *text)
{
        free(*to);
        *to = lkg_must(strdup(text));
}

static void complain(struct decoder *d, const struct lkg_config_field *f, const struct lkg_value *value,
                     const char *text, unsigned code, const char *want)
{
        const struct lkg_where where = lkg_where_of(value);
        char quoted[5 * 64 + 8];

        lkg_report_add(d->report, LKG_ERROR, code, &where, "%s%s: %s is not %s", d->prefix, f->name,
                       lkg_quote(text, strlen(text), quoted), want);
}

static bool layer_path_ok(const char *path)
{
        const char *p = path[0] == '/' ? path + 1 : path;

        if (!*path)
                return true;
        if (strlen(path) >= PATH_MAX)
                return false;
        while (true) {
                size_t n = strcspn(p, "/");

                if (n == 0 || n > NAME_MAX || (n == 1 && p[0] == '.') ||
                    (n == 2 && p[0] == '.' && p[1] == '.'))
                        return false;
                if (!p[n])
                        return true;
                p += n + 1;
        }
}

static void set_path(struct decoder *d, char **to, const char *text)
{
        char path[PATH_MAX];

        if (!*text || *text == '/' || !d->directory) {
                set_text(to, text);
                return;
        }
        if (snprintf(path, sizeof(path), "%s/%s", d->directory, text) < (int)sizeof(path))
                set_text(to, path);
}

static int word_index(const struct lkg_config_field *f, const char *text)
{
        for (int i = 0; f->words[i]; i++)
                if (strcmp(f->words[i], text) == 0)
                        return i;
        return -1;
}

/* Say what would fit, where that depends on the row. */
static void misfit(struct decoder *d, const struct lkg_config_field *f, const struct lkg_value *value,
                   const char *text)
{
        unsigned code = lkg_config_types[f->type].code;
        char want[128], first[LKG_RELEASE_TEXT_MAX], last[LKG_RELEASE_TEXT_MAX];
        uint64_t bytes;
        size_t n;

        if (f->words) {
                n = (size_t)snprintf(want, sizeof(want), "one of");
                for (size_t i = 0; f->words[i] && n < sizeof(want); i++)
                        n += (size_t)snprintf(want + n, sizeof(want) - n, "%s %s", i ? "," : "",
                                              f->words[i]);
        } else if (f->type == F_RELEASE) {
                (void)snprintf(want, sizeof(want), "auto or a release with tables, %s to %s",
                               lkg_release_text((unsigned)f->min, first),
                               lkg_release_text((unsigned)f->max, last));
        } else if (f->type == F_NUMBER) {
                (void)snprintf(want, sizeof(want), "a whole number from %" PRIu64 " to %" PRIu64, f->min,
                               f->max);
        } else if (f->type == F_BYTES && lkg_config_parse_bytes(text, &bytes) == 0) {
                code = 3010;
                (void)snprintf(want, sizeof(want), "a size from %" PRIu64 " to %" PRIu64 " bytes", f->min,
                               f->max);
        } else {
                (void)snprintf(want, sizeof(want), "%s", lkg_config_types[f->type].want);
        }
        complain(d, f, value, text, code, want);
}

static bool in_range(const struct lkg_config_field *f, uint64_t n)
{
        return n >= f->min && n <= f->max;
}

/* Put the text of a scalar into the configuration. Return: does it fit? */
static bool convert(struct decoder *d, const struct lkg_config_field *f, const char *text)
{
        void *to = member(d, f);

        switch (f->type) {
        case F_NAME:
        case F_LAYER:
                if (f->type == F_LAYER ? !layer_path_ok(text) : *text && !lkg_bare_name_ok(text))
                        return false;
                set_text(to, text);
                return true;
        case F_TEXT:
        case F_ACCOUNT:
                set_text(to, text);
                return true;
        case F_PATH:
                set_path(d, to, text);
                return true;
        case F_BOOL:
                *(bool *)to = strcmp(text, "true") == 0;
                return true;
        case F_DURATION:
                return lkg_duration_parse_plain(text, to) == 0;
        case F_MODE:
                return lkg_config_parse_mode(text, to) == 0;
        case F_NUMBER:
                return lkg_config_parse_number(text, to) == 0 && in_range(f, *(uint64_t *)to);
        case F_BYTES:
                return lkg_config_parse_bytes(text, to) == 0 && in_range(f, *(uint64_t *)to);
        case F_RELEASE:
                return lkg_config_parse_release(text, to) == 0 &&
                       (*(uint64_t *)to == 0 || in_range(f, *(uint64_t *)to));
        case F_WORD:
                *(int *)to = word_index(f, text);
                return *(int *)to >= 0;
        case F_USER:
        case F_GROUP:
                return lkg_config_parse_owner(text, f->type == F_GROUP, to) == 0;
        default:
                return true;
        }
}

/* The text of a scalar field, from the document (@value) or from the table (@value is NULL). */
static void set_scalar(struct decoder *d, const struct lkg_config_field *f, const char *text,
                       const struct lkg_value *value)
{
        if (!convert(d, f, text))
                misfit(d, f, value, text);
}

static void add_item(struct decoder *d, const struct lkg_config_field *f, const char *text, size_t size,
                     const struct lkg_value *value)
{
        if ((f->type == F_NAMES && !lkg_bare_name_ok(text)) ||
            (f->type == F_PATHS && (*text != '/' || strlen(text) >= PATH_MAX)) ||
            (f->type == F_WORDS && word_index(f, text) < 0))
                misfit(d, f, value, text);
        else
                lkg_need(lkg_strings_add(member(d, f), text, size));
}

static bool is_list(const struct lkg_config_field *f)
{
        return lkg_config_types[f->type].list;
}

/* ---- defaults ---- */

static void apply_defaults(struct decoder *d, const struct lkg_config_field *table)
{
        for (const struct lkg_config_field *f = table; f->name; f++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
                char *rest, *item;

                if (f->type == F_OBJECT)
                        apply_defaults(d, f->sub);
                if (!f->fallback || f->type == F_OBJECT || f->type == F_SKIP)
                        continue;
                for (const char *p = f->fallback; *p; p++)
                        if (*p == '%')
                                lkg_buf_puts(&text, d->component);
                        else
                                lkg_buf_putc(&text, *p);
                (void)lkg_buf_text(&text);
                rest = text.data;
                if (is_list(f))
                        while ((item = strsep(&rest, ",")))
                                lkg_need(lkg_strings_add(member(d, f), item, strlen(item)));
                else
                        set_scalar(d, f, text.data, NULL);
        }
}

/* ---- the walk ---- */

static void wrong_type(struct decoder *d, const struct lkg_config_field *f, const struct lkg_value *value,
                       const char *want)
{
        const struct lkg_where where = lkg_where_of(value);

        lkg_report_add(d->report, LKG_ERROR, 3004, &where, "%s%s: is a %s, want %s", d->prefix, f->name,
                       lkg_type_name(lkg_value_type(value)), want);
}

static bool text_ok(struct decoder *d, const struct lkg_config_field *f, const struct lkg_value *value)
{
        size_t size;
        const char *text = lkg_value_text(value, &size);

        if (strlen(text) == size)
                return true;
        complain(d, f, value, text, 3004, "free of NUL bytes");
        return false;
}

static void decode_list(struct decoder *d, const struct lkg_config_field *f, const struct lkg_value *value)
{
        lkg_strings_deinit(member(d, f));
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                const struct lkg_value *item = lkg_list_get(value, i);
                const char *text;
                size_t size;

                if (lkg_value_type(item) != LKG_STRING) {
                        wrong_type(d, f, item, "a string");
                } else if (text_ok(d, f, item)) {
                        /* first, because the order of arguments is unspecified */
                        text = lkg_value_text(item, &size);
                        add_item(d, f, text, size, item);
                }
        }
}

static void decode_table(struct decoder *d, const struct lkg_config_field *table,
                         const struct lkg_value *map);

static void decode_object(struct decoder *d, const struct lkg_config_field *f, const struct lkg_value *value)
{
        size_t length = strlen(d->prefix);

        (void)snprintf(d->prefix + length, sizeof(d->prefix) - length, "%s.", f->name);
        decode_table(d, f->sub, value);
        d->prefix[length] = '\0';
}

static void decode_field(struct decoder *d, const struct lkg_config_field *f, const struct lkg_value *value)
{
        const struct lkg_config_type *type = &lkg_config_types[f->type];

        if (f->type == F_SKIP || lkg_value_type(value) == LKG_NULL) /* null = the default */
                return;
        if (f->set_offset)
                *(bool *)((char *)d->target + f->set_offset) = true;
        if (!(type->given & 1u << lkg_value_type(value)))
                wrong_type(d, f, value, type->given_text);
        else if (f->type == F_OBJECT)
                decode_object(d, f, value);
        else if (type->list)
                decode_list(d, f, value);
        else if (f->type == F_BOOL)
                set_scalar(d, f, lkg_value_bool(value) ? "true" : "false", value);
        else if (text_ok(d, f, value))
                set_scalar(d, f, lkg_value_text(value, NULL), value);
}

static const char *nearest(const struct lkg_config_field *table, const char *key)
{
        struct lkg_nearest near;

        lkg_nearest_init(&near, key);
        for (const struct lkg_config_field *f = table; f->name; f++)
                lkg_nearest_offer(&near, f->name);
        return lkg_nearest_best(&near);
}

static void unknown_field(struct decoder *d, const struct lkg_config_field *table, const char *key,
                          size_t size, const struct lkg_value *value)
{
        const struct lkg_where where = lkg_where_of(value);
        const char *guess = nearest(table, key);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf known = LKG_BUF_INIT;
        char quoted[5 * 64 + 8], place[sizeof(d->prefix) + 2] = "";
        int n = (int)strlen(d->prefix);

        if (n > 0) /* without its final dot */
                (void)snprintf(place, sizeof(place), "%.*s: ", n - 1, d->prefix);
        for (const struct lkg_config_field *f = table; f->name; f++)
                lkg_buf_printf(&known, "%s%s", f == table ? "" : ", ", f->name);
        if (guess)
                lkg_report_add(d->report, LKG_ERROR, 3003, &where, "%sunknown field %s, did you mean %s?",
                               place, lkg_quote(key, size, quoted), guess);
        else
                lkg_report_add(d->report, LKG_ERROR, 3003, &where, "%sunknown field %s (known: %s)", place,
                               lkg_quote(key, size, quoted), lkg_buf_text(&known));
}

/* A field of an earlier build; an empty list, its default, asks for nothing. */
static bool is_gone(struct decoder *d, const struct lkg_config_field *table, const char *key,
                    const struct lkg_value *value)
{
        const struct lkg_where where = lkg_where_of(value);
        enum lkg_type type = lkg_value_type(value);

        if (table != lkg_config_fields || strcmp(key, "nativeDirs") != 0)
                return false;
        if (type != LKG_NULL && !(type == LKG_LIST && lkg_value_size(value) == 0))
                lkg_report_add(d->report, LKG_ERROR, 3003, &where,
                               "nativeDirs is not a field any more: all directories are passed through the "
                               "view; remove it");
        return true;
}

static void decode_table(struct decoder *d, const struct lkg_config_field *table,
                         const struct lkg_value *map)
{
        for (size_t i = 0; i < lkg_value_size(map); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(map, i, &key, &size);
                const struct lkg_config_field *f = table;

                while (f->name && (strlen(key) != size || strcmp(f->name, key) != 0))
                        f++;
                if (f->name)
                        decode_field(d, f, value);
                else if (!is_gone(d, table, key, value))
                        unknown_field(d, table, key, size, value);
        }
}

/* ---- documents ---- */

/* What a component of static pods has, besides what is only about them. */
static const char *const pods_fields[] = { "name",         "kind",  "source",       "dir",
                                           "maxDropIns",   "mode",  "owner",        "maxLayerBytes",
                                           "group",        "trial", "startupRules", "runtimeEndpoint",
                                           "schemaRelease" };
static const char *const only_pods_fields[] = { "source", "dir", "runtimeEndpoint" };

static bool is_listed(const char *const *names, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

/* Fields that mean nothing for the kind of this component. */
static void refuse_other_fields(struct decoder *d, bool is_pods, const struct lkg_value *map)
{
        for (const struct lkg_config_field *f = lkg_component_fields; f->name; f++) {
                const struct lkg_value *value = lkg_map_get(map, f->name);

                if (!value ||
                    (is_pods ? is_listed(pods_fields, LKG_ARRAY_SIZE(pods_fields), f->name)
                             : !is_listed(only_pods_fields, LKG_ARRAY_SIZE(only_pods_fields), f->name)))
                        continue;
                lkg_report_add(d->report, LKG_ERROR, 3020, LKG_AT(value), "%s%s: %s kind " LKG_PODS_KIND,
                               d->prefix, f->name, is_pods ? "means nothing for" : "is only for");
        }
}

/* The manifests are its drop-ins, and the directory of the view is its file. */
static void make_pods(struct lkg_config_component *c, const struct lkg_value *map)
{
        c->is_pods = true;
        set_text(&c->file, c->pods.dir ? c->pods.dir : "");
        set_text(&c->dropin_dir, c->pods.source ? c->pods.source : "");
        set_text(&c->base, "");
        set_text(&c->instance, "");
        set_text(&c->match.unit, "");
        lkg_strings_deinit(&c->match.exe);
        if (!lkg_map_get(map, "startupRules"))
                c->startup_rules = LKG_STARTUP_WARN;
}

static void decode_component(struct decoder *d, struct lkg_config_component *component,
                             const struct lkg_value *map)
{
        const char *name = map ? lkg_map_get_string(map, "name") : "kubelet";
        char shown[160];

        d->target = component;
        d->component = name && lkg_bare_name_ok(name) ? name : "unnamed";
        (void)snprintf(shown, sizeof(shown), "%s", d->component);
        (void)snprintf(d->prefix, sizeof(d->prefix), "components[%s].", shown);
        apply_defaults(d, lkg_component_fields);
        if (map && (!name || !*name)) {
                const struct lkg_where where = lkg_where_of(map);

                lkg_report_add(d->report, LKG_ERROR, 3015, &where,
                               "components: a component has no name (want name: kubelet)");
        }
        if (map) {
                const char *kind = lkg_map_get_string(map, "kind");
                bool is_pods = kind && strcmp(kind, LKG_PODS_KIND) == 0;

                decode_table(d, lkg_component_fields, map);
                refuse_other_fields(d, is_pods, map);
                if (is_pods)
                        make_pods(component, map);
        }
        if (!component->base)
                set_text(&component->base, component->file ? component->file : "");
        d->prefix[0] = '\0';
}

static void decode_components(struct decoder *d, struct lkg_config *config, const struct lkg_value *list)
{
        const struct lkg_config_field row = { "components", F_SKIP };
        size_t n = list && lkg_value_type(list) == LKG_LIST ? lkg_value_size(list) : 0;

        if (list && lkg_value_type(list) != LKG_LIST && lkg_value_type(list) != LKG_NULL)
                wrong_type(d, &row, list, "a list of components");
        if (n > LKG_COMPONENTS_MAX) {
                const struct lkg_where where = lkg_where_of(list);

                lkg_report_add(d->report, LKG_ERROR, 3016, &where,
                               "components: %zu components, the limit is %u", n, LKG_COMPONENTS_MAX);
                n = LKG_COMPONENTS_MAX;
        }
        config->components = lkg_must(calloc(n ? n : 1, sizeof(*config->components)));
        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *map = lkg_list_get(list, i);

                if (lkg_value_type(map) == LKG_MAP)
                        decode_component(d, &config->components[config->n_components++], map);
                else
                        wrong_type(d, &row, map, "a map");
        }
        if (n == 0) /* nothing configured: use the component that is usually meant */
                decode_component(d, &config->components[config->n_components++], NULL);
}

static void decode_header(struct decoder *d, const struct lkg_value *doc, const char *field,
                          const char *want)
{
        const struct lkg_value *value = lkg_map_get(doc, field);
        const struct lkg_where where = lkg_where_of(value ? value : doc);
        char quoted[5 * 64 + 8];

        if (!value)
                lkg_report_add(d->report, LKG_ERROR, 3002, &where, "%s is missing (want %s)", field, want);
        else if (lkg_value_type(value) != LKG_STRING)
                lkg_report_add(d->report, LKG_ERROR, 3002, &where, "%s is a %s (want %s)", field,
                               lkg_type_name(lkg_value_type(value)), want);
        else if (strcmp(lkg_value_text(value, NULL), want) != 0)
                lkg_report_add(
                        d->report, LKG_ERROR, 3002, &where, "%s is %s (want %s)", field,
                        lkg_quote(lkg_value_text(value, NULL), strlen(lkg_value_text(value, NULL)), quoted),
                        want);
}

/* The engine's user. A user that does not exist is not an error: the engine then runs as root. */
static void find_engine_user(struct lkg_config *config)
{
        const char *name = config->engine_user ? config->engine_user : "";

        config->engine_user_missing = lkg_account_find(LKG_PASSWD_FILE, name, &config->engine_account) < 0;
}

int lkg_config_decode(const struct lkg_value *doc, const char *directory, struct lkg_config **ret,
                      struct lkg_report *report)
{
        struct lkg_config *config = lkg_must(calloc(1, sizeof(*config)));
        struct decoder d = { .target = config, .directory = directory, .component = "", .report = report };
        size_t errors = report->n_severity[LKG_ERROR];

        apply_defaults(&d, lkg_config_fields);
        if (doc && lkg_value_type(doc) == LKG_MAP) {
                decode_header(&d, doc, "apiVersion", LKG_CONFIG_API_VERSION);
                decode_header(&d, doc, "kind", LKG_CONFIG_KIND);
                decode_table(&d, lkg_config_fields, doc);
                decode_components(&d, config, lkg_map_get(doc, "components"));
        } else {
                if (doc && lkg_value_type(doc) != LKG_NULL) {
                        const struct lkg_where where = lkg_where_of(doc);

                        lkg_report_add(report, LKG_ERROR, 3004, &where, "the document is a %s, want a map",
                                       lkg_type_name(lkg_value_type(doc)));
                }
                decode_components(&d, config, NULL);
        }
        find_engine_user(config);
        lkg_config_check(config, doc, report);
        if (report->n_severity[LKG_ERROR] > errors) {
                lkg_config_free(config);
                return -EBADMSG;
        }
        *ret = config;
        return 0;
}

/* ---- the end ---- */

static void free_table(void *target, const struct lkg_config_field *table)
{
        for (const struct lkg_config_field *f = table; f->name; f++) {
                void *place = (char *)target + f->offset;

                if (f->type == F_OBJECT)
                        free_table(target, f->sub);
                else if (is_list(f))
                        lkg_strings_deinit(place);
                else if (lkg_config_types[f->type].text)
                        free(*(char **)place);
        }
}

struct lkg_config *lkg_config_free(struct lkg_config *config)
{
        if (!config)
                return NULL;
        for (size_t i = 0; i < config->n_components; i++)
                free_table(&config->components[i], lkg_component_fields);
        free(config->components);
        free_table(config, lkg_config_fields);
        free(config);
        return NULL;
}
