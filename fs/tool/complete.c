/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs --complete WORD...: what could stand in the place of the last WORD, for the completions of zsh and fish, and for the
 * generations in that of bash. A line for each: the word, a tab, a few words about it; or one line `:file` or `:directory`.
 *
 * Everything comes from the tables of verbs and options and from the mounted view, so a new verb is completed without a change
 * here. A mount that does not answer ends it after two seconds; completion is silent then.
 */
#include "tool.h"

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

/* A view that cannot be read is silent here. Return: is there one? */
static bool open_view(struct complete *c, bool one, struct lkg_view *view)
{
        struct lkg_error ignored = { 0 };

        return lkg_view_find(&c->tool, view, &ignored) == 0 &&
               (!one || lkg_view_find_component(&c->tool, view, &ignored) == 0);
}

static void offer_components(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = LKG_VIEW_INIT;
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };

        if (open_view(c, false, &view))
                (void)lkg_view_components(&view, &names);
        for (size_t i = 0; i < names.n_items; i++)
                offer(c, names.items[i], "component");
}

static void offer_generations(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = LKG_VIEW_INIT;
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings numbers = { 0 };
        LKG_CLEANUP(lkg_freep) char *path = NULL;

        if (!open_view(c, true, &view))
                return;
        path = lkg_tool_format("history/%s", view.component);
        (void)lkg_view_list(&view, path, DT_UNKNOWN, &numbers);
        for (size_t i = 0; i < numbers.n_items; i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *meta =
                        lkg_view_read_json(&view, "%s/%s/meta.json", path, numbers.items[i]);

                offer(c, numbers.items[i], lkg_tool_word(meta, "time"));
        }
}

static void offer_bad(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = LKG_VIEW_INIT;
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };

        if (open_view(c, true, &view))
                (void)lkg_view_bad_names(&view, &names);
        for (size_t i = 0; i < names.n_items; i++)
                offer(c, names.items[i], "marked bad");
}

/* The fields that a layer sets, as `blame` takes them. */
static void offer_set_fields(struct complete *c)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = LKG_VIEW_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        const char *at, *line;
        size_t size;

        text = open_view(c, true, &view) ? lkg_view_status(&view, "origin") : NULL;
        at = text ? text : "";
        while (lkg_tool_next_line(&at, &line, &size)) {
                LKG_CLEANUP(lkg_freep) char *copy = lkg_tool_own(strndup(line, size));
                char *rest = copy, *field = strsep(&rest, "\t"), *value = strsep(&rest, "\t"),
                     *layer = strsep(&rest, "\t");

                if (!value || !layer)
                        continue;
                for (char *slash = field + 1; *c->current != '/' && *slash; slash++)
                        *slash = *slash == '/' ? '.' : *slash;
                offer(c, *c->current == '/' ? field : field + 1, layer);
        }
}

/* Drop-ins of the component, by the names of its layers. */
static void offer_dropins(struct complete *c)
{
        static const char role[] = "-drop-in-", end[] = ".yaml", merged[] = ".merged.yaml";
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = LKG_VIEW_INIT;
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };
        LKG_CLEANUP(lkg_freep) char *path = NULL;

        if (!open_view(c, true, &view))
                return;
        path = lkg_tool_format("layers/%s", view.component);
        (void)lkg_view_list(&view, path, DT_UNKNOWN, &names);
        for (size_t i = 0; i < names.n_items; i++) {
                char *name = strstr(names.items[i], role);
                size_t size = strlen(names.items[i]);

                if (!name || strstr(name, merged) || size < strlen(end))
                        continue;
                names.items[i][size - strlen(end)] = '\0';
                offer(c, name + strlen(role), "drop-in");
        }
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
        for (size_t i = 0; i < lkg_n_tool_option_rows; i++) {
                const struct lkg_tool_option *option = &lkg_tool_option_rows[i];
                char name[40];

                (void)snprintf(name, sizeof(name), "--%s", option->name);
                if (lkg_tool_option_shown(option, bits))
                        offer(c, name, option->help);
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

/* Takes what stands before the current word. Return: the option whose value the current word is; NULL = none. */
static const struct lkg_tool_option *read_line(struct complete *c, int n, char **words, bool *ret_ended)
{
        const struct lkg_tool_option *waiting = NULL;

        *ret_ended = false;
        for (int i = 0; i < n; i++) {
                const char *word = words[i];

                if (waiting) {
                        if (strcmp(waiting->name, "mountpoint") == 0)
                                c->tool.options.mountpoint = word;
                        if (strcmp(waiting->name, "component") == 0)
                                c->tool.options.component = word;
                        waiting = NULL;
                } else if (strcmp(word, "--") == 0) {
                        *ret_ended = true;
                } else if (word[0] == '-' && word[1]) {
                        waiting = lkg_tool_option_named(c->tool.verb ? c->tool.verb->options : ~0u, word);
                        if (waiting && (!waiting->value || strchr(word, '=')))
                                waiting = NULL;
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
        const struct lkg_tool_option *option;

        if (waiting) {
                complete_value(c, waiting);
        } else if (c->current[0] == '-' && equals) {
                prefix = strndup(c->current, (size_t)(equals + 1 - c->current));
                option = lkg_tool_option_named(bits ? bits : ~0u, c->current);
                if (!prefix || !option || !option->value)
                        return;
                c->prefix = prefix;
                c->current = equals + 1;
                complete_value(c, option);
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
        struct complete c = { .current = n > 0 ? words[n - 1] : "", .prefix = "" };
        const struct lkg_tool_option *waiting;
        bool ended;
        int status;

        (void)alarm(LIMIT_S);
        waiting = read_line(&c, n > 0 ? n - 1 : 0, words, &ended);
        if (!ended)
                complete_last(&c, waiting);
        status = lkg_tool_print(&c.out, LKG_TOOL_OK);
        lkg_buf_deinit(&c.out);
        return status;
}
