/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs --complete WORD...: what could stand in the place of the last WORD, for the completions of bash, zsh and fish. A line for
 * each: the word, a tab, a few words about it; or one line `:file` or `:directory`.
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
        struct lkg_view view;
        size_t n_words; /* before the current one, without the verb */
        struct lkg_buf out;
};

static void offer(struct complete *c, const char *word, const char *help)
{
        if (strncmp(word, c->current, strlen(c->current)) == 0)
                lkg_buf_printf(&c->out, "%s%s\t%s\n", c->prefix, word, help ? help : "");
}

/* ---- from the view ---- */

/* A view that cannot be read is silent here. Return: is there one? */
static bool open_view(struct complete *c, bool one)
{
        struct lkg_error ignored = { 0 };

        return lkg_view_find(&c->tool, &c->view, &ignored) == 0 &&
               (!one || lkg_view_find_component(&c->tool, &c->view, &ignored) == 0);
}

static void offer_components(struct complete *c)
{
        struct lkg_strings names = { 0 };

        if (open_view(c, false))
                (void)lkg_view_components(&c->view, &names);
        for (size_t i = 0; i < names.n_items; i++)
                offer(c, names.items[i], "component");
}

/* The names that a directory of the view has for the component, such as history/kubelet. */
static struct lkg_strings list(struct complete *c, const char *directory)
{
        struct lkg_strings names = { 0 };

        if (open_view(c, true))
                (void)lkg_tool_names(c->view.fd, lkg_tool_format("%s/%s", directory, c->view.component),
                                     DT_UNKNOWN, &names);
        return names;
}

static void offer_generations(struct complete *c)
{
        const struct lkg_strings numbers = list(c, "history");

        for (size_t i = 0; i < numbers.n_items; i++) {
                const struct lkg_value *meta = lkg_view_read_json(&c->view, "history/%s/%s/meta.json",
                                                                  c->view.component, numbers.items[i]);

                offer(c, numbers.items[i], lkg_tool_word(meta, "time"));
        }
}

static void offer_bad(struct complete *c)
{
        const struct lkg_strings names = list(c, "bad");

        for (size_t i = 0; i < names.n_items; i++)
                offer(c, names.items[i], "marked bad");
}

/* The fields that a layer sets, as `blame` takes them. */
static void offer_set_fields(struct complete *c)
{
        const char *text = open_view(c, true) ? lkg_view_text(&c->view, "origin") : "";
        const struct lkg_value *rows = lkg_tool_origins(text);

        for (size_t i = 0; i < lkg_value_size(rows); i++) {
                const struct lkg_value *row = lkg_list_get(rows, i);
                char *field = lkg_tool_format("%s", lkg_tool_word(row, "field"));

                for (char *slash = field; *c->current != '/' && (slash = strchr(slash + 1, '/'));)
                        *slash = '.';
                offer(c, *c->current == '/' ? field : field + 1, lkg_tool_word(row, "layer"));
        }
}

/* Drop-ins and manifests of one component, by the names of its layers. */
static void offer_layers(struct complete *c)
{
        static const char *const roles[] = { "-drop-in-", "-manifest-" };
        static const char end[] = ".yaml", merged[] = ".merged.yaml";
        const struct lkg_strings names = list(c, "layers");

        for (size_t i = 0; i < names.n_items; i++) {
                size_t size = strlen(names.items[i]);

                if (strstr(names.items[i], merged) || size < strlen(end))
                        continue;
                names.items[i][size - strlen(end)] = '\0';
                for (size_t k = 0; k < LKG_ARRAY_SIZE(roles); k++) {
                        const char *name = strstr(names.items[i], roles[k]);

                        if (name)
                                offer(c, name + strlen(roles[k]), k ? "manifest" : "drop-in");
                }
        }
}

/* `lkgfs edit` finds the component by the name. */
static void offer_editable(struct complete *c)
{
        struct lkg_strings names = { 0 };

        if (!c->tool.options.component && open_view(c, false))
                (void)lkg_view_components(&c->view, &names);
        if (names.n_items == 0)
                offer_layers(c);
        for (size_t i = 0; i < names.n_items; i++) {
                c->tool.options.component = names.items[i];
                offer_layers(c);
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

/* ---- what may stand where the help has a word ---- */

static void offer_place(struct complete *c, struct lkg_span place, bool of_verb)
{
        static const struct {
                const char *name;
                bool of_verb; /* in its words; else the value of an option */
                void (*offer)(struct complete *c);
                const char *words; /* instead; with a colon it is the answer */
        } rows[] = {
                { "1.NN", false, offer_releases },
                { "BASE", false, NULL, ":file" },
                { "C", false, offer_components },
                { "CHECK", false, NULL, "condition|served|bad|processes" },
                { "COMPONENT", true, offer_components },
                { "DIR", false, NULL, ":directory" },
                { "DURATION", true, NULL, "30s|5m|10m|1h" },
                { "FIELD", true, offer_set_fields },
                { "FILE", false, NULL, ":file" },
                { "FILE", true, NULL, ":file" },
                { "ID", false, offer_bad },
                { "ID", true, offer_bad },
                { "K", false, offer_kinds },
                { "KIND", true, offer_kinds },
                { "M", false, NULL, ":directory" },
                { "M", true, offer_generations },
                { "MOUNTPOINT", true, NULL, ":directory" },
                { "N", true, offer_generations },
                { "NAME", true, offer_editable },
                { "PATCH", true, NULL, ":file" },
                { "T", false, NULL, "30s|5m|1h" },
                { "TARGET", true, NULL, ":file" },
                { "TYPE", false, NULL, "merge|strategic" },
                { "WORD", true, offer_known_names },
        };
        struct lkg_span one;

        while (lkg_span_next(&place, '|', &one)) {
                char word[32];
                size_t i = 0;

                (void)snprintf(word, sizeof(word), "%.*s", (int)one.size, one.data);
                if (strpbrk(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL) {
                        if (*word)
                                offer(c, word, NULL);
                        continue;
                }
                while (i < LKG_ARRAY_SIZE(rows) &&
                       (rows[i].of_verb != of_verb || strcmp(rows[i].name, word) != 0))
                        i++;
                if (i < LKG_ARRAY_SIZE(rows) && rows[i].offer)
                        rows[i].offer(c);
                else if (i < LKG_ARRAY_SIZE(rows) && *rows[i].words == ':')
                        lkg_buf_printf(&c->out, "%s\n", rows[i].words);
                else if (i < LKG_ARRAY_SIZE(rows))
                        place = lkg_span(rows[i].words, strlen(rows[i].words));
        }
}

static void complete_value(struct complete *c, const struct lkg_tool_option *option)
{
        const char *word;

        for (size_t i = 0; (word = lkg_tool_option_word(option, i)); i++)
                offer(c, word, NULL);
        if (!lkg_tool_option_word(option, 0))
                offer_place(c, lkg_span(option->value, strlen(option->value)), false);
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

/* `[N [M]]`, `[FILE...]`, `on|off`: the place of the current word. */
static void complete_word(struct complete *c)
{
        const char *words = c->tool.verb->words;
        struct lkg_span rest = lkg_span(words, strlen(words)), place = { words, 0 };

        for (size_t i = 0; i <= c->n_words; i++)
                if (!lkg_span_next(&rest, ' ', &place) && !strstr(words, "..."))
                        return;
        while (place.size && *place.data == '[')
                place = lkg_span(place.data + 1, place.size - 1);
        while (place.size && strchr("].", place.data[place.size - 1]))
                place.size--;
        offer_place(c, place, true);
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
        const struct lkg_tool_option *option;

        if (waiting) {
                complete_value(c, waiting);
        } else if (c->current[0] == '-' && equals) {
                option = lkg_tool_option_named(bits ? bits : ~0u, c->current);
                if (!option || !option->value)
                        return;
                c->prefix = lkg_tool_cut(c->current, (size_t)(equals + 1 - c->current));
                c->current = equals + 1;
                complete_value(c, option);
        } else if (c->current[0] == '-') {
                complete_option(c, bits);
        } else if (!c->tool.verb) {
                for (size_t i = 0; i < lkg_n_tool_verbs; i++)
                        offer(c, lkg_tool_verbs[i].name, lkg_tool_verbs[i].help);
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
