/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that processes without a YAML parser need, as `key=value` lines. */
#include <inttypes.h>

#include <lkg/base.h>
#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/messages.h>

struct list {
        char ***items;
        size_t *n_items;
};

struct setting_key {
        const char *name;
        char **text;
        struct list list;
        uint32_t *number;
        enum { ANY, NAME_OR_NONE, PATH, PATH_OR_NONE } what; /* of a string or a list item */
};

static int list_add(struct list list, const char *value)
{
        return lkg_strings_take(list.items, list.n_items, strdup(value));
}

static int set_text(char **text, const char *value)
{
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

static int set_number(uint32_t *number, const char *value)
{
        unsigned long long n;
        char *end;

        if (*value < '0' || *value > '9') /* strtoull() accepts blanks and signs */
                return -EBADMSG;
        errno = 0;
        n = strtoull(value, &end, 10);
        if (errno || *end || n > UINT32_MAX)
                return -EBADMSG;
        *number = (uint32_t)n;
        return 0;
}

/*
 * Names are used in paths below the runtime directory, and the process that decodes the configuration may be
 * compromised.
 */
static bool is_fit(const struct setting_key *key, const char *value)
{
        if (!*value)
                return key->what != PATH;
        if (key->what == NAME_OR_NONE)
                return lkg_bare_name_ok(value);
        return key->what == ANY || value[0] == '/';
}

/* Return: 0; -ENOENT: no such key; -EBADMSG: an invalid value; -ENOMEM. */
static int set_one_of(const struct setting_key *keys, size_t n_keys, const char *name, const char *value)
{
        for (size_t i = 0; i < n_keys; i++) {
                if (strcmp(keys[i].name, name) != 0)
                        continue;
                if (!keys[i].number && !is_fit(&keys[i], value))
                        return -EBADMSG;
                if (keys[i].text)
                        return set_text(keys[i].text, value);
                if (keys[i].number)
                        return set_number(keys[i].number, value);
                return list_add(keys[i].list, value);
        }
        return -ENOENT;
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

static int set_restart(enum lkg_settings_restart *ret, const char *value)
{
        for (size_t i = 0; i < _LKG_SETTINGS_RESTART_MAX; i++)
                if (strcmp(restart_words[i], value) == 0) {
                        *ret = (enum lkg_settings_restart)i;
                        return 0;
                }
        return -EBADMSG;
}

static int add_component(struct lkg_settings *s, const char *name)
{
        struct lkg_settings_component *c;

        if (LKG_GROW(s->components, s->n_components) < 0)
                return -ENOMEM;
        c = &s->components[s->n_components++];
        *c = (struct lkg_settings_component){ .name = strdup(name),
                                              .unit = strdup(""),
                                              .file = strdup(""),
                                              .mode = 0600,
                                              .restart_unit = strdup(""),
                                              .restart_min_interval_ms = 60000,
                                              .restart_max_per_hour = 6 };
        return c->name && c->unit && c->file && c->restart_unit ? 0 : -ENOMEM;
}

/* Component keys apply to the component that was named last. */
static int set_component_key(struct lkg_settings *s, const char *name, const char *value)
{
        struct lkg_settings_component *c = s->n_components ? &s->components[s->n_components - 1] : NULL;

        if (strcmp(name, "component") == 0)
                return lkg_bare_name_ok(value) ? add_component(s, value) : -EBADMSG;
        if (!c)
                return -EBADMSG;
        if (strcmp(name, "component_restart") == 0)
                return set_restart(&c->restart, value);
        const struct setting_key keys[] = {
                { .name = "component_unit", .text = &c->unit },
                { .name = "component_file", .text = &c->file },
                { .name = "component_uid", .number = &c->uid },
                { .name = "component_gid", .number = &c->gid },
                { .name = "component_mode", .number = &c->mode },
                { .name = "component_exe", .list = { &c->exes, &c->n_exes } },
                { .name = "component_restart_unit", .text = &c->restart_unit },
                { .name = "component_restart_argv", .list = { &c->restart_argv, &c->n_restart_argv } },
                { .name = "component_restart_min_interval_ms", .number = &c->restart_min_interval_ms },
                { .name = "component_restart_max_per_hour", .number = &c->restart_max_per_hour },
        };
        return set_one_of(keys, LKG_ARRAY_SIZE(keys), name, value);
}

static int set_key(struct lkg_settings *s, const char *name, const char *value)
{
        const struct setting_key keys[] = {
                { .name = "state_dir", .text = &s->state_dir, .what = PATH },
                { .name = "runtime_dir", .text = &s->runtime_dir, .what = PATH },
                { .name = "source_dir", .text = &s->source_dir, .what = PATH_OR_NONE },
                { .name = "virtual_dir", .text = &s->virtual_dir, .what = NAME_OR_NONE },
                { .name = "engine_timeout_ms", .number = &s->engine_timeout_ms },
                { .name = "foreign_writes", .number = &s->foreign_writes },
                { .name = "restart_jitter_ms", .number = &s->restart_jitter_ms },
                { .name = "node_name", .text = &s->node_name },
                { .name = "engine_user", .text = &s->engine_user },
                { .name = "engine_uid", .number = &s->engine_uid },
                { .name = "engine_gid", .number = &s->engine_gid },
                { .name = "engine_user_missing", .number = &s->engine_user_missing },
        };
        int r = strncmp(name, "component", 9) == 0 ? set_component_key(s, name, value)
                                                   : set_one_of(keys, LKG_ARRAY_SIZE(keys), name, value);

        return r == -ENOENT ? 0 : r; /* a newer engine may send unknown keys */
}

static struct lkg_settings *settings_new(void)
{
        struct lkg_settings *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->engine_timeout_ms = 2000;
        if (set_text(&s->state_dir, "/var/lib/lkgfs") < 0 || set_text(&s->runtime_dir, "/run/lkgfs") < 0 ||
            set_text(&s->source_dir, "") < 0 || set_text(&s->virtual_dir, "") < 0 ||
            set_text(&s->node_name, "") < 0 || set_text(&s->engine_user, "") < 0)
                return lkg_settings_free(s);
        return s;
}

int lkg_settings_parse(const char *data, size_t size, struct lkg_settings **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = strndup(data, size);
        struct lkg_settings *s = settings_new();
        char *rest = text, *line;
        unsigned n = 0;

        if (!text || !s) {
                lkg_settings_free(s);
                return lkg_error_set(err, -ENOMEM, NULL, "settings");
        }
        if (strlen(text) != size) {
                lkg_settings_free(s);
                return lkg_error_set(err, -EBADMSG, NULL, "settings: a NUL byte");
        }
        while ((line = strsep(&rest, "\n"))) {
                char *value = strchr(line, '=');
                int r;

                n++;
                if (!*line)
                        continue;
                if (value)
                        *value++ = '\0';
                r = !value || lkg_unescape(value) < 0 ? -EBADMSG : set_key(s, line, value);
                if (r < 0) {
                        lkg_settings_free(s);
                        return lkg_error_set(err, r, NULL, "settings, line %u", n);
                }
        }
        *ret = s;
        return 0;
}

static void free_list(char **items, size_t n)
{
        for (size_t i = 0; i < n; i++)
                free(items[i]);
        free(items);
}

struct lkg_settings *lkg_settings_free(struct lkg_settings *s)
{
        if (!s)
                return NULL;
        free(s->state_dir);
        free(s->runtime_dir);
        free(s->source_dir);
        free(s->virtual_dir);
        free(s->node_name);
        free(s->engine_user);
        for (size_t i = 0; i < s->n_components; i++) {
                free(s->components[i].name);
                free(s->components[i].unit);
                free(s->components[i].file);
                free_list(s->components[i].exes, s->components[i].n_exes);
                free(s->components[i].restart_unit);
                free_list(s->components[i].restart_argv, s->components[i].n_restart_argv);
        }
        free(s->components);
        free(s);
        return NULL;
}

static void format_text(struct lkg_buf *buf, const char *name, const char *value)
{
        lkg_buf_printf(buf, "%s=", name);
        lkg_escape(buf, value ? value : "", 0x1f);
        lkg_buf_putc(buf, '\n');
}

static void format_list(struct lkg_buf *buf, const char *name, char *const *items, size_t n)
{
        for (size_t i = 0; i < n; i++)
                format_text(buf, name, items[i]);
}

static void format_component(struct lkg_buf *buf, const struct lkg_settings_component *c)
{
        format_text(buf, "component", c->name);
        format_text(buf, "component_unit", c->unit);
        format_text(buf, "component_file", c->file);
        lkg_buf_printf(buf,
                       "component_uid=%" PRIu32 "\ncomponent_gid=%" PRIu32 "\ncomponent_mode=%" PRIu32 "\n",
                       c->uid, c->gid, c->mode);
        format_list(buf, "component_exe", c->exes, c->n_exes);
        format_text(buf, "component_restart", restart_words[c->restart]);
        format_text(buf, "component_restart_unit", c->restart_unit);
        format_list(buf, "component_restart_argv", c->restart_argv, c->n_restart_argv);
        lkg_buf_printf(buf, "component_restart_min_interval_ms=%" PRIu32 "\n", c->restart_min_interval_ms);
        lkg_buf_printf(buf, "component_restart_max_per_hour=%" PRIu32 "\n", c->restart_max_per_hour);
}

void lkg_settings_format(const struct lkg_settings *s, struct lkg_buf *buf)
{
        format_text(buf, "state_dir", s->state_dir);
        format_text(buf, "runtime_dir", s->runtime_dir);
        format_text(buf, "source_dir", s->source_dir);
        format_text(buf, "virtual_dir", s->virtual_dir);
        for (size_t i = 0; i < s->n_components; i++)
                format_component(buf, &s->components[i]);
        lkg_buf_printf(buf, "engine_timeout_ms=%" PRIu32 "\n", s->engine_timeout_ms);
        lkg_buf_printf(buf, "foreign_writes=%" PRIu32 "\n", s->foreign_writes);
        lkg_buf_printf(buf, "restart_jitter_ms=%" PRIu32 "\n", s->restart_jitter_ms);
        format_text(buf, "node_name", s->node_name);
        format_text(buf, "engine_user", s->engine_user);
        lkg_buf_printf(buf,
                       "engine_uid=%" PRIu32 "\nengine_gid=%" PRIu32 "\nengine_user_missing=%" PRIu32 "\n",
                       s->engine_uid, s->engine_gid, s->engine_user_missing);
}
