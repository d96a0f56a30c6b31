/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that lkgfsd, which parses no YAML, reads as `key=value` lines: a row for each key, and for each key of a component. */
#include <lkg/base.h>
#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/messages.h>

enum setting_type { TEXT, LIST, NUMBER, RESTART };

struct setting_row {
        const char *name;
        enum setting_type type;
        size_t offset, count; /* of its member, and of the number of items of a list */
        enum { ANY, NAME_OR_NONE, PATH, PATH_OR_NONE } want; /* of a text or an item */
        const char *text;                                    /* by default; NULL = "" */
        uint32_t number;
};

#define S(member) offsetof(struct lkg_settings, member)
#define C(member) offsetof(struct lkg_settings_component, member)

static const struct setting_row rows[] = {
        { "state_dir", TEXT, S(state_dir), .want = PATH, .text = "/var/lib/lkgfs" },
        { "runtime_dir", TEXT, S(runtime_dir), .want = PATH, .text = "/run/lkgfs" },
        { "source_dir", TEXT, S(source_dir), .want = PATH_OR_NONE },
        { "virtual_dir", TEXT, S(virtual_dir), .want = NAME_OR_NONE },
        { "engine_timeout_ms", NUMBER, S(engine_timeout_ms), .number = 2000 },
        { "foreign_writes", NUMBER, S(foreign_writes) },
        { "restart_jitter_ms", NUMBER, S(restart_jitter_ms) },
        { "node_name", TEXT, S(node_name) },
        { "engine_user", TEXT, S(engine_user) },
        { "engine_uid", NUMBER, S(engine_uid) },
        { "engine_gid", NUMBER, S(engine_gid) },
        { "engine_user_missing", NUMBER, S(engine_user_missing) },
        { NULL },
};

static const struct setting_row component_rows[] = {
        { "component_unit", TEXT, C(unit) },
        { "component_file", TEXT, C(file) },
        { "component_uid", NUMBER, C(uid) },
        { "component_gid", NUMBER, C(gid) },
        { "component_mode", NUMBER, C(mode), .number = 0600 },
        { "component_pods", NUMBER, C(is_pods) },
        { "component_exe", LIST, C(exes), C(n_exes) },
        { "component_restart", RESTART, C(restart) },
        { "component_restart_unit", TEXT, C(restart_unit) },
        { "component_restart_argv", LIST, C(restart_argv), C(n_restart_argv) },
        { "component_restart_min_interval_ms", NUMBER, C(restart_min_interval_ms), .number = 60000 },
        { "component_restart_max_per_hour", NUMBER, C(restart_max_per_hour), .number = 6 },
        { "component_runtime_endpoint", TEXT, C(runtime_endpoint) },
        { NULL },
};

/* Where a row's member is in the settings, or the component, @of. */
static void *member(const void *of, size_t offset)
{
        return (char *)(uintptr_t)of + offset;
}

static const char *const restart_words[_LKG_SETTINGS_RESTART_MAX] = {
        [LKG_SETTINGS_RESTART_NEVER] = "never",
        [LKG_SETTINGS_RESTART_UNIT] = "unit",
        [LKG_SETTINGS_RESTART_HOOK] = "hook",
};

const char *lkg_settings_restart_word(enum lkg_settings_restart restart)
{
        return restart_words[restart];
}

/* ---- reading ---- */

static int set_text(char **text, const char *value)
{
        free(*text);
        *text = strdup(value);
        return *text ? 0 : -ENOMEM;
}

static int set_number(uint32_t *number, const char *value)
{
        uint64_t n;
        const char *rest = lkg_digits(value, &n);

        if (!rest || *rest || n > UINT32_MAX)
                return -EBADMSG;
        *number = (uint32_t)n;
        return 0;
}

static int set_restart(enum lkg_settings_restart *ret, const char *value)
{
        for (size_t i = 0; i < _LKG_SETTINGS_RESTART_MAX; i++)
                if (strcmp(restart_words[i], value) == 0) {
                        *ret = (enum lkg_settings_restart)i;
                        return 0;
                }
        return -EBADMSG;
}

/*
 * Names are used in paths below the runtime directory, and the process that decodes the configuration may be
 * compromised.
 */
static bool is_fit(const struct setting_row *row, const char *value)
{
        if (!*value)
                return row->want != PATH;
        if (row->want == NAME_OR_NONE)
                return lkg_bare_name_ok(value);
        return row->want == ANY || value[0] == '/';
}

/* Return: 0, also for an unknown key, which a newer engine may send; -EBADMSG: an invalid value; -ENOMEM. */
static int set_key(const struct setting_row *row, void *of, const char *name, const char *value)
{
        while (row->name && strcmp(row->name, name) != 0)
                row++;
        if (!row->name)
                return 0;
        switch (row->type) {
        case TEXT:
                return is_fit(row, value) ? set_text(member(of, row->offset), value) : -EBADMSG;
        case LIST:
                return lkg_strings_take(member(of, row->offset), member(of, row->count), strdup(value));
        case NUMBER:
                return set_number(member(of, row->offset), value);
        case RESTART:
                return set_restart(member(of, row->offset), value);
        }
        return -EBADMSG;
}

static int set_defaults(const struct setting_row *row, void *of)
{
        int r = 0;

        for (; r == 0 && row->name; row++)
                if (row->type == TEXT)
                        r = set_text(member(of, row->offset), row->text ? row->text : "");
                else if (row->type == NUMBER)
                        *(uint32_t *)member(of, row->offset) = row->number;
        return r;
}

static int add_component(struct lkg_settings *s, const char *name)
{
        struct lkg_settings_component *c;

        if (LKG_GROW(s->components, s->n_components) < 0)
                return -ENOMEM;
        c = &s->components[s->n_components++];
        *c = (struct lkg_settings_component){ .name = strdup(name) };
        return c->name ? set_defaults(component_rows, c) : -ENOMEM;
}

/* Component keys apply to the component that was named last. */
static int set_line(struct lkg_settings *s, const char *name, const char *value)
{
        if (strcmp(name, "component") == 0)
                return lkg_bare_name_ok(value) ? add_component(s, value) : -EBADMSG;
        if (strncmp(name, "component", 9) != 0)
                return set_key(rows, s, name, value);
        return s->n_components ? set_key(component_rows, &s->components[s->n_components - 1], name, value)
                               : -EBADMSG;
}

static void settings_freep(struct lkg_settings **s)
{
        lkg_settings_free(*s);
}

int lkg_settings_parse(const char *data, size_t size, struct lkg_settings **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = strndup(data, size);
        LKG_CLEANUP(settings_freep) struct lkg_settings *s = calloc(1, sizeof(*s));
        char *rest = text, *line;
        unsigned n = 0;

        if (!text || !s || set_defaults(rows, s) < 0)
                return lkg_error_set(err, -ENOMEM, NULL, "settings");
        if (strlen(text) != size)
                return lkg_error_set(err, -EBADMSG, NULL, "settings: a NUL byte");
        while ((line = strsep(&rest, "\n"))) {
                char *value = strchr(line, '=');
                int r;

                n++;
                if (!*line)
                        continue;
                if (value)
                        *value++ = '\0';
                r = !value || lkg_unescape(value) < 0 ? -EBADMSG : set_line(s, line, value);
                if (r < 0)
                        return lkg_error_set(err, r, NULL, "settings, line %u", n);
        }
        *ret = LKG_STEAL(s);
        return 0;
}

static void free_members(const struct setting_row *row, void *of)
{
        for (; row->name; row++) {
                char **items = row->type == LIST ? *(char ***)member(of, row->offset) : NULL;

                for (size_t i = 0; items && i < *(size_t *)member(of, row->count); i++)
                        free(items[i]);
                free(items);
                if (row->type == TEXT)
                        free(*(char **)member(of, row->offset));
        }
}

struct lkg_settings *lkg_settings_free(struct lkg_settings *s)
{
        if (!s)
                return NULL;
        for (size_t i = 0; i < s->n_components; i++) {
                free(s->components[i].name);
                free_members(component_rows, &s->components[i]);
        }
        free(s->components);
        free_members(rows, s);
        free(s);
        return NULL;
}
