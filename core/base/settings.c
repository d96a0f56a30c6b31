/* SPDX-License-Identifier: Apache-2.0 */
/* The few settings that processes without a YAML parser need, as `key=value` lines. */
#include <inttypes.h>

#include <lkg/buf.h>
#include <lkg/settings.h>

#include "escape.h"

struct list {
        char ***items;
        size_t *n_items;
};

struct key {
        const char *name;
        char **text;
        struct list list;
        uint32_t *number;
};

static int list_add(struct list list, const char *value)
{
        char **items = reallocarray(*list.items, *list.n_items + 1, sizeof(*items));

        if (!items)
                return -ENOMEM;
        *list.items = items;
        items[*list.n_items] = strdup(value);
        if (!items[*list.n_items])
                return -ENOMEM;
        (*list.n_items)++;
        return 0;
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
        char *end;

        errno = 0;
        unsigned long long n = strtoull(value, &end, 10);
        if (errno || *end || end == value || n > UINT32_MAX)
                return -EBADMSG;
        *number = (uint32_t)n;
        return 0;
}

/* Keys of a component belong to the one that was named last. */
static int set_component_key(struct lkg_settings *s, const char *name, const char *value)
{
        struct lkg_settings_component *c = s->n_components ? &s->components[s->n_components - 1] : NULL;

        if (strcmp(name, "component") != 0) {
                if (!c)
                        return -EBADMSG;
                if (strcmp(name, "component_unit") == 0)
                        return set_text(&c->unit, value);
                return list_add((struct list){ &c->exes, &c->n_exes }, value);
        }
        c = reallocarray(s->components, s->n_components + 1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        s->components = c;
        c += s->n_components++;
        *c = (struct lkg_settings_component){ .name = strdup(value), .unit = strdup("") };
        return c->name && c->unit ? 0 : -ENOMEM;
}

static int set_key(struct lkg_settings *s, const char *name, const char *value)
{
        const struct key keys[] = {
                { .name = "state_dir", .text = &s->state_dir },
                { .name = "runtime_dir", .text = &s->runtime_dir },
                { .name = "source_dir", .text = &s->source_dir },
                { .name = "virtual_dir", .text = &s->virtual_dir },
                { .name = "native_dir", .list = { &s->native_dirs, &s->n_native_dirs } },
                { .name = "view_file", .list = { &s->view_files, &s->n_view_files } },
                { .name = "reserved", .list = { &s->reserved, &s->n_reserved } },
                { .name = "engine_timeout_ms", .number = &s->engine_timeout_ms },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(keys); i++) {
                if (strcmp(keys[i].name, name) != 0)
                        continue;
                if (keys[i].text)
                        return set_text(keys[i].text, value);
                if (keys[i].number)
                        return set_number(keys[i].number, value);
                return list_add(keys[i].list, value);
        }
        if (strcmp(name, "component") == 0 || strcmp(name, "component_unit") == 0 ||
            strcmp(name, "component_exe") == 0)
                return set_component_key(s, name, value);
        return 0; /* a newer engine may say more than we understand */
}

static struct lkg_settings *settings_new(void)
{
        struct lkg_settings *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->engine_timeout_ms = 2000;
        if (set_text(&s->state_dir, "/var/lib/lkgfs") < 0 || set_text(&s->runtime_dir, "/run/lkgfs") < 0 ||
            set_text(&s->source_dir, "") < 0 || set_text(&s->virtual_dir, "") < 0)
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
        free_list(s->native_dirs, s->n_native_dirs);
        free_list(s->view_files, s->n_view_files);
        free_list(s->reserved, s->n_reserved);
        for (size_t i = 0; i < s->n_components; i++) {
                free(s->components[i].name);
                free(s->components[i].unit);
                free_list(s->components[i].exes, s->components[i].n_exes);
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

void lkg_settings_format(const struct lkg_settings *s, struct lkg_buf *buf)
{
        format_text(buf, "state_dir", s->state_dir);
        format_text(buf, "runtime_dir", s->runtime_dir);
        format_text(buf, "source_dir", s->source_dir);
        format_text(buf, "virtual_dir", s->virtual_dir);
        format_list(buf, "native_dir", s->native_dirs, s->n_native_dirs);
        format_list(buf, "view_file", s->view_files, s->n_view_files);
        format_list(buf, "reserved", s->reserved, s->n_reserved);
        for (size_t i = 0; i < s->n_components; i++) {
                format_text(buf, "component", s->components[i].name);
                format_text(buf, "component_unit", s->components[i].unit);
                format_list(buf, "component_exe", s->components[i].exes, s->components[i].n_exes);
        }
        lkg_buf_printf(buf, "engine_timeout_ms=%" PRIu32 "\n", s->engine_timeout_ms);
}
