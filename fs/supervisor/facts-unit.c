/* SPDX-License-Identifier: Apache-2.0 */
/* The unit of a component, as the service manager has it loaded: org.freedesktop.systemd1(5). */
#include <glob.h>
#include <fcntl.h>
#include <string.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "facts-collectors.h"

#define MANAGER       "org.freedesktop.systemd1"
#define MANAGER_PATH  "/org/freedesktop/systemd1"
#define ENV_BYTES_MAX (1u << 20)

static void free_list(char **items, size_t n)
{
        for (size_t i = 0; i < n; i++)
                free(items[i]);
        free(items);
}

void lkg_unit_deinit(struct lkg_unit *unit)
{
        free_list(unit->argv, unit->n_argv);
        free_list(unit->environment, unit->n_environment);
        for (size_t i = 0; i < unit->n_files; i++)
                free(unit->files[i].path);
        free(unit->files);
        *unit = (struct lkg_unit){ 0 };
}

/* ---- properties ---- */

static int read_list(sd_bus_message *m, char ***ret, size_t *ret_n)
{
        char **items = NULL;
        size_t n = 0;
        int r = sd_bus_message_read_strv(m, &items);

        if (r < 0)
                return r;
        while (items && items[n])
                n++;
        free_list(*ret, *ret_n);
        *ret = items;
        *ret_n = n;
        return 0;
}

/* One command: s as <flags> and times that are not used here. @flags: the signature of the third member. */
static int read_command(sd_bus_message *m, const char *flags, struct lkg_unit *unit)
{
        char **words = NULL;
        const char *path;
        size_t n = 0;
        int r = sd_bus_message_read(m, "s", &path);

        if (r >= 0)
                r = read_list(m, &unit->argv, &unit->n_argv);
        if (r >= 0 && flags[0] == 'b')
                r = sd_bus_message_skip(m, "b");
        else if (r >= 0)
                r = read_list(m, &words, &n);
        for (size_t i = 0; i < n; i++)
                if (strcmp(words[i], "no-env-expand") == 0)
                        unit->verbatim = true;
        free_list(words, n);
        return r < 0 ? r : sd_bus_message_skip(m, "ttttuii");
}

/* Only the first command is the component; further ones exist only for Type=oneshot. */
static int read_commands(sd_bus_message *m, const char *flags, struct lkg_unit *unit)
{
        const char *item = flags[0] == 'b' ? "sasbttttuii" : "sasasttttuii";
        const char *array = flags[0] == 'b' ? "(sasbttttuii)" : "(sasasttttuii)";
        bool first = true;
        int r = sd_bus_message_enter_container(m, 'a', array);

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', item)) > 0) {
                r = first ? read_command(m, flags, unit) : sd_bus_message_skip(m, item);
                first = false;
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_exec_start(sd_bus_message *m, struct lkg_unit *unit)
{
        return read_commands(m, "b", unit);
}

static int read_exec_start_ex(sd_bus_message *m, struct lkg_unit *unit)
{
        return read_commands(m, "as", unit);
}

static int read_environment(sd_bus_message *m, struct lkg_unit *unit)
{
        return read_list(m, &unit->environment, &unit->n_environment);
}

static int read_files(sd_bus_message *m, struct lkg_unit *unit)
{
        int r = sd_bus_message_enter_container(m, 'a', "(sb)");

        while (r >= 0) {
                const char *path;
                int optional;

                r = sd_bus_message_read(m, "(sb)", &path, &optional);
                if (r <= 0)
                        break;
                if (LKG_GROW(unit->files, unit->n_files) < 0)
                        return -ENOMEM;
                unit->files[unit->n_files] = (struct lkg_unit_file){ strdup(path), optional };
                if (!unit->files[unit->n_files].path)
                        return -ENOMEM;
                unit->n_files++;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static const struct {
        const char *name, *signature;
        int (*read)(sd_bus_message *m, struct lkg_unit *unit);
} properties[] = {
        { "ExecStart", "a(sasbttttuii)", read_exec_start },
        { "ExecStartEx", "a(sasasttttuii)", read_exec_start_ex },
        { "Environment", "as", read_environment },
        { "EnvironmentFiles", "a(sb)", read_files },
};

static int read_property(sd_bus_message *m, struct lkg_unit *unit)
{
        const char *name;
        int r = sd_bus_message_read(m, "s", &name);

        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(properties); i++) {
                if (strcmp(properties[i].name, name) != 0)
                        continue;
                r = sd_bus_message_enter_container(m, 'v', properties[i].signature);
                if (r == -ENXIO)
                        return sd_bus_message_skip(m, "v"); /* another version has a different type */
                if (r >= 0)
                        r = properties[i].read(m, unit);
                return r < 0 ? r : sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_skip(m, "v");
}

int lkg_unit_read(sd_bus_message *m, struct lkg_unit *ret)
{
        LKG_CLEANUP(lkg_unit_deinit) struct lkg_unit unit = { 0 };
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_property(m, &unit);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r < 0)
                return r;
        if (unit.n_argv == 0)
                return -ENOENT;
        *ret = unit;
        unit = (struct lkg_unit){ 0 };
        return 0;
}

static void message_unrefp(sd_bus_message **m)
{
        sd_bus_message_unref(*m);
}

int lkg_unit_query(sd_bus *bus, const char *name, struct lkg_unit *ret)
{
        LKG_CLEANUP(message_unrefp) sd_bus_message *loaded = NULL, *all = NULL;
        const char *path;
        int r = sd_bus_call_method(bus, MANAGER, MANAGER_PATH, MANAGER ".Manager", "LoadUnit", NULL, &loaded,
                                   "s", name);

        if (r >= 0)
                r = sd_bus_message_read(loaded, "o", &path);
        if (r >= 0)
                r = sd_bus_call_method(bus, MANAGER, path, "org.freedesktop.DBus.Properties", "GetAll", NULL,
                                       &all, "s", MANAGER ".Service");
        return r < 0 ? r : lkg_unit_read(all, ret);
}

/* ---- the words ---- */

static int read_file(struct lkg_env *env, const char *path)
{
        LKG_CLEANUP(lkg_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size = 0;
        int r = fd < 0 ? -errno : lkg_read_file(fd, ENV_BYTES_MAX, &text, &size, NULL);

        return r < 0 ? r : lkg_env_parse(env, text, size);
}

static int read_env_file(struct lkg_env *env, const struct lkg_unit_file *file)
{
        glob_t found = { 0 };
        int r = glob(file->path, GLOB_NOSORT | GLOB_BRACE, NULL, &found);

        if (r != 0) {
                globfree(&found);
                return r == GLOB_NOSPACE ? -ENOMEM : file->optional ? 0 : -ENOENT;
        }
        for (size_t i = 0; r == 0 && i < found.gl_pathc; i++) {
                r = read_file(env, found.gl_pathv[i]);
                if (r < 0 && r != -ENOMEM)
                        r = file->optional ? 0 : -ENOENT;
        }
        globfree(&found);
        return r;
}

int lkg_unit_words(const struct lkg_unit *unit, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_env_deinit) struct lkg_env env = { 0 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < unit->n_environment; i++)
                r = lkg_env_set(&env, unit->environment[i]);
        for (size_t i = 0; r == 0 && i < unit->n_files; i++)
                r = read_env_file(&env, &unit->files[i]);
        if (r < 0)
                return r;
        lkg_buf_append(ret, "", 0);
        for (size_t i = 1; i < unit->n_argv; i++)
                if (unit->verbatim)
                        lkg_buf_append(ret, unit->argv[i], strlen(unit->argv[i]) + 1);
                else
                        lkg_exec_expand(&env, unit->argv[i], ret);
        return lkg_buf_failed(ret) ? -ENOMEM : 0;
}
