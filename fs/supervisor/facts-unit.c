/* SPDX-License-Identifier: Apache-2.0 */
/* The unit of a component, as the service manager has it loaded: org.freedesktop.systemd1(5). */
#include <fcntl.h>
#include <glob.h>
#include <string.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/text.h>

#include "facts-collect.h"

#define ENV_BYTES_MAX (1u << 20)

void lkg_unit_deinit(struct lkg_unit *unit)
{
        lkg_strings_deinit(&unit->argv);
        lkg_strings_deinit(&unit->environment);
        lkg_strings_deinit(&unit->files);
        *unit = (struct lkg_unit){ 0 };
}

/* ---- properties ---- */

static int read_list(sd_bus_message *m, struct lkg_strings *ret)
{
        struct lkg_strings list = { 0 };
        int r = sd_bus_message_read_strv(m, &list.items);

        if (r < 0)
                return r;
        while (list.items && list.items[list.n_items])
                list.n_items++;
        lkg_strings_deinit(ret);
        *ret = list;
        return 0;
}

/* Only the first command is the component; further ones exist only for Type=oneshot. */
static int read_commands(sd_bus_message *m, void *userdata)
{
        static const char command[] = "sasasttttuii", of_array[] = "(sasasttttuii)";
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings flags = { 0 };
        struct lkg_unit *unit = userdata;
        int r = sd_bus_message_enter_container(m, 'a', of_array);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'r', command);
        if (r > 0) {
                r = sd_bus_message_skip(m, "s");
                if (r >= 0)
                        r = read_list(m, &unit->argv);
                if (r >= 0)
                        r = read_list(m, &flags);
                if (r >= 0)
                        r = sd_bus_message_skip(m, "ttttuii");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        for (size_t i = 0; i < flags.n_items; i++)
                if (strcmp(flags.items[i], "no-env-expand") == 0)
                        unit->verbatim = true;
        while (r >= 0 && (r = sd_bus_message_at_end(m, /* complete= */ 0)) == 0)
                r = sd_bus_message_skip(m, of_array);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_environment(sd_bus_message *m, void *userdata)
{
        return read_list(m, &((struct lkg_unit *)userdata)->environment);
}

static int read_files(sd_bus_message *m, void *userdata)
{
        struct lkg_unit *unit = userdata;
        int r = sd_bus_message_enter_container(m, 'a', "(sb)"), optional;
        const char *path;

        while (r >= 0 && (r = sd_bus_message_read(m, "(sb)", &path, &optional)) > 0) {
                char *copy = NULL;

                r = asprintf(&copy, "%s%s", optional ? "-" : "", path) < 0
                            ? -ENOMEM
                            : lkg_strings_take(&unit->files.items, &unit->files.n_items, copy);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_number(sd_bus_message *m, void *ret)
{
        return sd_bus_message_read(m, "u", ret);
}

/* Only a single word; anything else becomes an unknown word. */
static int read_word(sd_bus_message *m, void *ret)
{
        const char *text;
        int r = sd_bus_message_read(m, "s", &text);

        if (r < 0)
                return r;
        (void)snprintf(ret, LKG_UNIT_WORD_MAX, "%s", *text && !strpbrk(text, " \t\n") ? text : "-");
        return 0;
}

struct property {
        const char *name, *type;
        int (*read)(sd_bus_message *m, void *ret);
        size_t offset; /* of what it is read into */
};

static const struct property unit_properties[] = {
        { "ExecStartEx", "a(sasasttttuii)", read_commands, 0 }, /* systemd 243 and later */
        { "Environment", "as", read_environment, 0 },
        { "EnvironmentFiles", "a(sb)", read_files, 0 },
};

static const struct property now_properties[] = {
        { "MainPID", "u", read_number, offsetof(struct lkg_unit_now, main_pid) },
        { "NRestarts", "u", read_number, offsetof(struct lkg_unit_now, n_restarts) },
        { "Result", "s", read_word, offsetof(struct lkg_unit_now, result) },
        { "SubState", "s", read_word, offsetof(struct lkg_unit_now, sub_state) },
};

static int read_property(sd_bus_message *m, const struct property *properties, size_t n, void *ret,
                         unsigned *found)
{
        const char *name;
        int r = sd_bus_message_read(m, "s", &name);

        for (size_t i = 0; r >= 0 && i < n; i++) {
                if (strcmp(properties[i].name, name) != 0)
                        continue;
                r = sd_bus_message_enter_container(m, 'v', properties[i].type);
                if (r == -ENXIO)
                        return sd_bus_message_skip(m, "v"); /* another version has a different type */
                if (r >= 0)
                        r = properties[i].read(m, (char *)ret + properties[i].offset);
                *found |= 1u << i;
                return r < 0 ? r : sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_skip(m, "v");
}

/* The reply to GetAll. @found: a bit for each of @properties. Return: 0 or -errno. */
static int read_all(sd_bus_message *m, const struct property *properties, size_t n, void *ret,
                    unsigned *found)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_property(m, properties, n, ret, found);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : 0;
}

int lkg_unit_read(sd_bus_message *m, struct lkg_unit *ret)
{
        LKG_CLEANUP(lkg_unit_deinit) struct lkg_unit unit = { 0 };
        unsigned found = 0;
        int r = read_all(m, unit_properties, LKG_ARRAY_SIZE(unit_properties), &unit, &found);

        if (r < 0 || unit.argv.n_items == 0)
                return r < 0 ? r : -ENOENT;
        *ret = unit;
        unit = (struct lkg_unit){ 0 };
        return 0;
}

int lkg_unit_now_read(sd_bus_message *m, struct lkg_unit_now *ret)
{
        struct lkg_unit_now now = { 0 };
        unsigned found = 0;
        int r = read_all(m, now_properties, LKG_ARRAY_SIZE(now_properties), &now, &found);

        if (r < 0)
                return r;
        if (found != (1u << LKG_ARRAY_SIZE(now_properties)) - 1 || now.main_pid > INT32_MAX)
                return -EBADMSG;
        *ret = now;
        return 0;
}

/* ---- questions ---- */

/* All properties of a unit that @method, GetUnit or LoadUnit, finds; -ENOENT: it is not loaded. */
static int get_all(sd_bus *bus, const char *method, const char *name, sd_bus_message **ret)
{
        LKG_CLEANUP(lkg_bus_message_unrefp) sd_bus_message *unit = NULL;
        LKG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path;
        int r = sd_bus_call_method(bus, LKG_SYSTEMD, LKG_SYSTEMD_PATH, LKG_SYSTEMD ".Manager", method,
                                   &error, &unit, "s", name);

        if (r < 0)
                return sd_bus_error_has_name(&error, LKG_SYSTEMD ".NoSuchUnit") ? -ENOENT : r;
        r = sd_bus_message_read(unit, "o", &path);
        if (r >= 0) /* "": the properties of all interfaces */
                r = sd_bus_call_method(bus, LKG_SYSTEMD, path, "org.freedesktop.DBus.Properties", "GetAll",
                                       NULL, ret, "s", "");
        return r;
}

int lkg_unit_query(sd_bus *bus, const char *name, struct lkg_unit *ret)
{
        LKG_CLEANUP(lkg_bus_message_unrefp) sd_bus_message *all = NULL;
        int r = get_all(bus, "LoadUnit", name, &all);

        return r < 0 ? r : lkg_unit_read(all, ret);
}

int lkg_unit_now_query(sd_bus *bus, const char *name, struct lkg_unit_now *ret)
{
        LKG_CLEANUP(lkg_bus_message_unrefp) sd_bus_message *all = NULL;
        int r = get_all(bus, "GetUnit", name, &all);

        return r < 0 ? r : lkg_unit_now_read(all, ret);
}

/* ---- the words ---- */

static int read_file(struct lkg_strings *env, const char *path)
{
        LKG_CLEANUP(lkg_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size = 0;

        if (fd < 0 || lkg_read_file(fd, ENV_BYTES_MAX, &text, &size, NULL) < 0)
                return -ENOENT;
        return lkg_env_parse(env, text, size);
}

/* @pattern: a `-` before it makes it optional */
static int read_files_like(struct lkg_strings *env, const char *pattern)
{
        const int missing = *pattern == '-' ? 0 : -ENOENT;
        glob_t found = { 0 };
        int r = glob(pattern + (*pattern == '-'), GLOB_NOSORT | GLOB_BRACE, NULL, &found);

        if (r != 0)
                r = r == GLOB_NOSPACE ? -ENOMEM : missing;
        for (size_t i = 0; r == 0 && i < found.gl_pathc; i++) {
                r = read_file(env, found.gl_pathv[i]);
                r = r == -ENOENT ? missing : r;
        }
        globfree(&found);
        return r;
}

int lkg_unit_words(const struct lkg_unit *unit, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings env = { 0 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < unit->environment.n_items; i++)
                r = lkg_env_set(&env, unit->environment.items[i]);
        for (size_t i = 0; r == 0 && i < unit->files.n_items; i++)
                r = read_files_like(&env, unit->files.items[i]);
        if (r < 0)
                return r;
        lkg_buf_append(ret, "", 0);
        for (size_t i = 1; i < unit->argv.n_items; i++)
                if (unit->verbatim)
                        lkg_buf_append(ret, unit->argv.items[i], strlen(unit->argv.items[i]) + 1);
                else
                        lkg_exec_expand(&env, unit->argv.items[i], ret, NULL);
        return lkg_buf_failed(ret) ? -ENOMEM : 0;
}
