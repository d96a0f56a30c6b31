/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a unit from its files. */
#include "adopt.h"

#include <linux/openat2.h>
#include <sys/syscall.h>

#define BYTES_MAX (1u << 20) /* of one file */

/* The first that has a file wins. systemd.unit(5), without generators and the transient directories. */
static const char *const directories[] = {
        "/etc/systemd/system",     "/run/systemd/system", "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system", "/lib/systemd/system",
};

struct reading {
        int rootfd;
        struct lkg_unit_on_disk *unit;
        struct lkg_strings environment;       /* lkg_env_set() */
        struct lkg_strings environment_files; /* they win over Environment= */
        struct lkg_error *err;
};

/* ---- below the root ---- */

int lkg_root_open(int rootfd, const char *path, int flags)
{
        struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        long fd = syscall(SYS_openat2, rootfd, path, &how, sizeof(how));

        return fd < 0 ? -errno : (int)fd;
}

bool lkg_root_exists(int rootfd, const char *path)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(rootfd, path, O_PATH);

        return fd >= 0;
}

int lkg_root_read(int rootfd, const char *path, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(rootfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? lkg_tool_read(fd, BYTES_MAX, ret, ret_size) : -EINVAL;
}

/* ---- words ---- */

/* The next word of a command line or of Environment=. Return: false: there is none. */
static bool next_word(const char **at, struct lkg_buf *word)
{
        const char *p = *at + strspn(*at, " \t\n");
        char quote = 0;

        lkg_buf_reset(word);
        if (!*p)
                return false;
        for (; *p && (quote || !strchr(" \t\n", *p)); p++) {
                if (quote ? *p == quote : *p == '"' || *p == '\'') {
                        quote = quote ? 0 : *p;
                } else if (*p == '\\' && p[1]) {
                        p++;
                        lkg_buf_putc(word, *p == 'n' ? '\n' : *p == 't' ? '\t' : *p);
                } else {
                        lkg_buf_putc(word, *p);
                }
        }

        *at = p;
        return true;
}

static void fill_words(struct reading *r)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf word = LKG_BUF_INIT, filled = LKG_BUF_INIT;
        const char *at = r->unit->exec_start;

        at += strspn(at, "-@:+!");
        while (next_word(&at, &word))
                lkg_exec_expand(&r->environment, lkg_buf_text(&word), &filled, &r->unit->lacking);
        for (const char *p = filled.data; p && p < filled.data + filled.size; p += strlen(p) + 1)
                lkg_tool_add_word(&r->unit->words, p);
}

/* ---- environment files ---- */

static int read_environment_files(struct reading *r)
{
        for (size_t i = 0; i < r->environment_files.n_items; i++) {
                const char *path = r->environment_files.items[i];
                bool optional = *path == '-';
                char *text = NULL;
                size_t size;
                int status;

                path += optional;
                status = lkg_root_read(r->rootfd, path, &text, &size);
                if (status == -ENOENT && optional)
                        continue;
                if (status < 0)
                        return lkg_error_set(r->err, status, NULL, "EnvironmentFile '%s'", path);
                (void)lkg_need(lkg_env_parse(&r->environment, text, size));
                lkg_tool_add_word(&r->unit->files, path);
        }
        return 0;
}

/* ---- unit files ---- */

/* An empty value takes back those before it. */
static void assign(struct reading *r, const char *key, const char *value)
{
        struct lkg_unit_on_disk *unit = r->unit;

        if (strcmp(key, "Environment") == 0) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf word = LKG_BUF_INIT;

                if (!*value)
                        r->environment = (struct lkg_strings){ 0 };
                while (next_word(&value, &word))
                        (void)lkg_need(lkg_env_set(&r->environment, lkg_buf_text(&word)));
        } else if (strcmp(key, "EnvironmentFile") == 0) {
                if (*value)
                        lkg_tool_add_word(&r->environment_files, value);
                else
                        r->environment_files = (struct lkg_strings){ 0 };
        } else if (strcmp(key, "ExecStart") == 0) {
                unit->exec_start = *value ? lkg_tool_cut(value, strlen(value)) : NULL;
                unit->n_exec_start = *value ? unit->n_exec_start + 1 : 0;
        }
}

/* A line with the ones that continue it, joined by a space; comments between them are left out. */
static bool next_line(const char **at, struct lkg_buf *line)
{
        bool more = false;

        lkg_buf_reset(line);
        if (!**at)
                return false;
        do {
                const char *p = *at + strspn(*at, " \t");
                size_t n = strcspn(p, "\n");

                *at = p + n + (p[n] == '\n');
                if (more && (*p == '#' || *p == ';'))
                        continue;
                while (n && strchr(" \t\r", p[n - 1]))
                        n--;
                more = n && p[n - 1] == '\\' && (line->size || !strchr("#;", *p));
                n -= more;
                while (more && n && strchr(" \t", p[n - 1]))
                        n--;
                if (line->size && n)
                        lkg_buf_putc(line, ' ');
                lkg_buf_append(line, p, n);
        } while (more && **at);
        (void)lkg_buf_text(line);
        return true;
}

static void parse_unit(struct reading *r, const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;
        bool service = false;

        while (next_line(&text, &line)) {
                char *key = line.data, *equals;

                if (*key == '[')
                        service = strcmp(key, "[Service]") == 0;
                equals = strchr(key, '=');
                if (!service || !equals || strchr("[#;", *key))
                        continue;
                *equals++ = '\0';
                for (size_t n = strlen(key); n && strchr(" \t", key[n - 1]); n--)
                        key[n - 1] = '\0';
                assign(r, key, equals + strspn(equals, " \t"));
        }
}

static int read_unit_file(struct reading *r, const char *path)
{
        char *text = NULL;
        size_t size;
        int status = lkg_root_read(r->rootfd, path, &text, &size);

        if (status == -ENOENT)
                return status;
        if (status < 0)
                return lkg_error_set(r->err, status, NULL, "unit file '%s'", path);
        lkg_tool_add_word(&r->unit->files, path);
        parse_unit(r, text);
        return 0;
}

/* ---- drop-ins ---- */

static int compare_names(const void *a, const void *b)
{
        const char *const *x = a, *const *y = b;

        return strcmp(strrchr(*x, '/'), strrchr(*y, '/'));
}

static bool has_name(const struct lkg_strings *paths, const char *name)
{
        for (size_t i = 0; i < paths->n_items; i++)
                if (strcmp(strrchr(paths->items[i], '/') + 1, name) == 0)
                        return true;
        return false;
}

static int list_dropins(const struct reading *r, const char *directory, const char *name,
                        const char *without, struct lkg_strings *ret)
{
        struct lkg_strings names = { 0 };
        const char *path = lkg_tool_format("%s/%s.d", directory, name);
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(r->rootfd, path, O_RDONLY | O_DIRECTORY);
        int status = fd < 0 ? fd : lkg_tool_names(fd, ".", DT_UNKNOWN, &names);

        for (size_t i = 0; i < names.n_items; i++) {
                const char *item = names.items[i];

                if (lkg_is_dropin_name(item) && !has_name(ret, item) &&
                    !(without && strcmp(item, without) == 0))
                        lkg_tool_add_word(ret, lkg_tool_format("%s/%s", path, item));
        }
        return status == -ENOENT || status == -ENOTDIR ? 0 : status;
}

static int read_dropins(struct reading *r, const char *name, const char *without)
{
        struct lkg_strings paths = { 0 };
        int status = 0;

        for (size_t i = 0; status == 0 && i < LKG_ARRAY_SIZE(directories); i++)
                status = list_dropins(r, directories[i], name, without, &paths);
        if (paths.n_items)
                qsort(paths.items, paths.n_items, sizeof(*paths.items), compare_names);
        for (size_t i = 0; status == 0 && i < paths.n_items; i++) {
                status = read_unit_file(r, paths.items[i]);
                if (status == -ENOENT) /* a link to nothing */
                        status = 0;
        }
        return status;
}

int lkg_unit_file_read(int rootfd, const char *name, const char *without, struct lkg_unit_on_disk *ret,
                       struct lkg_error *err)
{
        struct reading r = { .rootfd = rootfd, .unit = ret, .err = err };
        int status = -ENOENT;

        *ret = (struct lkg_unit_on_disk){ 0 };
        for (size_t i = 0; status == -ENOENT && i < LKG_ARRAY_SIZE(directories); i++)
                status = read_unit_file(&r, lkg_tool_format("%s/%.200s", directories[i], name));
        if (status == 0)
                status = read_dropins(&r, name, without);
        if (status == 0)
                status = read_environment_files(&r);
        if (status == 0 && ret->exec_start)
                fill_words(&r);
        return status;
}
