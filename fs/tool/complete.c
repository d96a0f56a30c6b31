/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs --complete WORD...: what could stand in the place of the last WORD, for the completions of zsh and fish, and for the
 * generations in that of bash. A line for each: the word, a tab, a few words about it; or one line `:file` or `:directory`.
 *
 * Everything comes from the tables of verbs and options and from the mounted view, so a new verb is completed without a change
 * here. A mount that does not answer ends it after two seconds; completion is silent then.
 */
#include "tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/schema.h>

#define LIMIT_S 2

struct complete {
        const char *current; /* what has been typed of the word */
        const char *prefix;  /* before each answer: "--output=" */
        struct lkg_tool tool;
        size_t n_words; /* before the current one, without the verb */
        struct lkg_buf out;
};

static void offer(struct complete *c, const char *word, const char *help)
{
        if (strncmp(word, c->current, strlen(c->current)) == 0)
                lkg_buf_printf(&c->out, "%s%s\t%s\n", c->prefix, word, help ? help : "");
}

static void offer_all(struct complete *c, const char *const *words)
{
        for (; *words; words++)
                offer(c, *words, NULL);
}

/* ---- from the view ---- */

static bool open_view(struct complete *c, struct lkg_view *view, char **ret_component)
{
        return lkg_view_open(&c->tool, view) == LKG_TOOL_OK &&
               (!ret_component || lkg_view_component(&c->tool, view, ret_component) == LKG_TOOL_OK);
}

static void offer_components(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        char **names = NULL;
        size_t n = 0;

        if (!open_view(c, &view, NULL) || lkg_view_components(&view, &names, &n) < 0)
                return;
        for (size_t i = 0; i < n; i++)
                offer(c, names[i], "component");
        lkg_view_free_mounts(names, n);
}

static void offer_generations(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) uint64_t *numbers = NULL;
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        size_t n = 0;

        if (!open_view(c, &view, &component) || asprintf(&path, "history/%s", component) < 0 ||
            lkg_view_list_numbers(&view, path, &numbers, &n) < 0)
                return;
        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *meta =
                        lkg_view_read_json(&view, "%s/%" PRIu64 "/meta.json", path, numbers[i]);
                char number[24];

                (void)snprintf(number, sizeof(number), "%" PRIu64, numbers[i]);
                offer(c, number, meta ? lkg_map_get_string(meta, "time") : NULL);
        }
}

static void offer_bad(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        char **names = NULL;
        size_t n = 0;

        if (!open_view(c, &view, &component) || lkg_view_bad_names(&view, component, &names, &n) < 0)
                return;
        for (size_t i = 0; i < n; i++)
                offer(c, names[i], "marked bad");
        lkg_view_free_mounts(names, n);
}

/* The fields that a layer sets, as `blame` takes them. */
static void offer_set_fields(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (!open_view(c, &view, &component) ||
            lkg_view_read(&view, &text, NULL, "status/%s/origin", component) < 0)
                return;
        for (char *line = text, *next; *line; line = next) {
                size_t size = strcspn(line, "\n");
                char *tab = memchr(line, '\t', size),
                     *layer = tab ? memchr(tab + 1, '\t', size - (size_t)(tab + 1 - line)) : NULL;

                next = line + size + (line[size] == '\n');
                line[size] = '\0';
                if (!layer)
                        continue;
                *tab = '\0';
                layer[1 + strcspn(layer + 1, "\t")] = '\0';
                for (char *slash = line + 1; *c->current != '/' && *slash; slash++)
                        *slash = *slash == '/' ? '.' : *slash;
                offer(c, *c->current == '/' ? line : line + 1, layer + 1);
        }
}

/* Drop-ins of the component, by the names of its layers. */
static void offer_dropins(struct complete *c)
{
        static const char role[] = "-drop-in-", end[] = ".yaml", merged[] = ".merged.yaml";
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        DIR *dir;
        int fd;

        if (!open_view(c, &view, &component) || asprintf(&path, "layers/%s", component) < 0)
                return;
        fd = openat(view.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
                char *name = strstr(e->d_name, role);
                size_t size = strlen(e->d_name);

                if (!name ||
                    (size >= strlen(merged) && strcmp(e->d_name + size - strlen(merged), merged) == 0) ||
                    size < strlen(end))
                        continue;
                e->d_name[size - strlen(end)] = '\0';
                offer(c, name + strlen(role), "drop-in");
        }
        if (dir)
                (void)closedir(dir);
}

/* ---- from the tables ---- */

static void offer_known_names(struct complete *c)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++)
                        offer(c, lkg_kinds[k].fields[i].path, lkg_kinds[k].kind);
}

static void offer_releases(struct complete *c)
{
        for (unsigned release = LKG_RELEASE_MIN; release <= LKG_RELEASE_MAX; release++) {
                char text[LKG_RELEASE_TEXT_MAX];

                offer(c, lkg_release_text(release, text), "Kubernetes");
        }
}

static void offer_kinds(struct complete *c)
{
        for (size_t i = 0; i < lkg_n_kinds; i++)
                offer(c, lkg_kinds[i].kind, lkg_kinds[i].component);
}

static void files(struct complete *c)
{
        lkg_buf_puts(&c->out, ":file\n");
}

static void directories(struct complete *c)
{
        lkg_buf_puts(&c->out, ":directory\n");
}

static void offer_verbs(struct complete *c)
{
        for (size_t i = 0; i < lkg_n_tool_verbs; i++)
                offer(c, lkg_tool_verbs[i].name, lkg_tool_verbs[i].help);
}

/* ---- values of options ---- */

static void complete_value(struct complete *c, const struct lkg_tool_option *option)
{
        static const char *const checks[] = { "condition", "served", "bad", "processes", NULL };
        static const char *const types[] = { "merge", "strategic", NULL };
        static const char *const times[] = { "30s", "5m", "1h", NULL };
        const char *word;

        for (size_t i = 0; (word = lkg_tool_option_word(option, i)); i++)
                offer(c, word, NULL);
        if (lkg_tool_option_word(option, 0))
                return;
        if (strcmp(option->value, "1.NN") == 0)
                offer_releases(c);
        else if (strcmp(option->value, "K") == 0)
                offer_kinds(c);
        else if (strcmp(option->value, "C") == 0)
                offer_components(c);
        else if (strcmp(option->value, "CHECK") == 0)
                offer_all(c, checks);
        else if (strcmp(option->value, "TYPE") == 0)
                offer_all(c, types);
        else if (strcmp(option->value, "T") == 0)
                offer_all(c, times);
        else if (strcmp(option->value, "DIR") == 0 || strcmp(option->value, "M") == 0)
                directories(c);
        else if (strcmp(option->value, "ID") == 0)
                offer_bad(c);
        else if (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "BASE") == 0)
                files(c);
}

static void complete_option(struct complete *c, unsigned bits)
{
        struct lkg_tool_option option;

        for (size_t i = 0; lkg_tool_option_at(bits, i, &option); i++) {
                char name[40];

                (void)snprintf(name, sizeof(name), "--%s", option.name);
                offer(c, name, option.help);
        }
}

/* ---- words of verbs ---- */

static void complete_word(struct complete *c)
{
        static const char *const on_off[] = { "on", "off", NULL };
        static const char *const times[] = { "30s", "5m", "10m", "1h", NULL };
        static const struct {
                const char *verb;
                size_t n_max; /* words before it */
                void (*offer)(struct complete *c);
                const char *word; /* offered, too */
        } rows[] = {
                { "rollback", 0, offer_generations, "lkg" },
                { "diff", 1, offer_generations, NULL },
                { "forget", 0, offer_bad, "all" },
                { "bad", 0, offer_bad, NULL },
                { "blame", 0, offer_set_fields, NULL },
                { "explain", 0, offer_known_names, NULL },
                { "edit", 0, offer_dropins, NULL },
                { "gate", 0, offer_components, NULL },
                { "schema", 0, offer_kinds, NULL },
                { "check", SIZE_MAX, files, NULL },
                { "convert", 0, files, NULL },
                { "patch", 1, files, NULL },
                { "mount", 0, directories, NULL },
                { "wait", 0, NULL, "generation" },
                { "promote", 0, NULL, "now" },
                { "sync", 0, NULL, "now" },
                { "commit", 0, NULL, "now" },
                { "startup", 0, NULL, "now" },
        };
        const char *verb = c->tool.verb->name;

        if (strcmp(verb, "hold") == 0 && c->n_words == 0)
                offer_all(c, on_off);
        if (strcmp(verb, "try") == 0 && c->n_words == 0)
                offer_all(c, times);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                if (strcmp(rows[i].verb, verb) != 0 || c->n_words > rows[i].n_max)
                        continue;
                if (rows[i].word)
                        offer(c, rows[i].word, NULL);
                if (rows[i].offer)
                        rows[i].offer(c);
        }
}

/* ---- the command line ---- */

/* Takes what stands before the current word. Return: the option whose value the current word is; name NULL = none. */
static struct lkg_tool_option read_line(struct complete *c, int n, char **words, bool *ret_ended)
{
        struct lkg_tool_option waiting = { 0 }, option;

        *ret_ended = false;
        for (int i = 0; i < n; i++) {
                const char *word = words[i];

                if (waiting.name) {
                        if (strcmp(waiting.name, "mountpoint") == 0)
                                c->tool.options.mountpoint = word;
                        if (strcmp(waiting.name, "component") == 0)
                                c->tool.options.component = word;
                        waiting = (struct lkg_tool_option){ 0 };
                } else if (strcmp(word, "--") == 0) {
                        *ret_ended = true;
                } else if (word[0] == '-' && word[1]) {
                        if (lkg_tool_option_named(c->tool.verb ? c->tool.verb->options : 0, word, &option) &&
                            option.value && !strchr(word, '='))
                                waiting = option;
                } else if (!c->tool.verb) {
                        c->tool.verb = lkg_tool_find_verb(word);
                        *ret_ended |= !c->tool.verb;
                } else {
                        c->n_words++;
                }
        }
        return waiting;
}

static void complete_last(struct complete *c, const struct lkg_tool_option *waiting)
{
        unsigned bits = c->tool.verb ? c->tool.verb->options : 0;
        const char *equals = strchr(c->current, '=');
        LKG_CLEANUP(lkg_freep) char *prefix = NULL;
        struct lkg_tool_option option;

        if (waiting->name) {
                complete_value(c, waiting);
        } else if (c->current[0] == '-' && equals) {
                prefix = strndup(c->current, (size_t)(equals + 1 - c->current));
                if (!prefix || !lkg_tool_option_named(bits, c->current, &option) || !option.value)
                        return;
                c->prefix = prefix;
                c->current = equals + 1;
                complete_value(c, &option);
                c->prefix = "";
        } else if (c->current[0] == '-') {
                complete_option(c, bits);
        } else if (!c->tool.verb) {
                offer_verbs(c);
        } else {
                complete_word(c);
        }
}

int lkg_tool_complete(int n, char **words)
{
        char said[512];
        struct complete c = { .current = n > 0 ? words[n - 1] : "",
                              .prefix = "",
                              .tool = { .said = &said } };
        struct lkg_tool_option waiting;
        bool ended;
        int status;

        (void)alarm(LIMIT_S);
        waiting = read_line(&c, n > 0 ? n - 1 : 0, words, &ended);
        if (!ended)
                complete_last(&c, &waiting);
        status = lkg_tool_print(&c.out, LKG_TOOL_OK);
        lkg_buf_deinit(&c.out);
        return status;
}
