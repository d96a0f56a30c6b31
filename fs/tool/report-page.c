/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a report: what report.html shows besides the parts themselves. What is wrong, findings by their severity, differences
 * between generations, fields with their layers, processes as the file server knows them.
 */
#include "report.h"
#include "known.h"

#include <openssl/evp.h>

#define OPEN_MAX 1  /* differences that are shown without a click */
#define COLOURS  10 /* of layers */

static const char page[] =
#include "fs/tool/report.html.h"
        ;

static const struct lkg_value *at(const struct lkg_value *tree, const char *directory, const char *name)
{
        return lkg_parts_at(lkg_parts_at(tree, directory), name);
}

static struct lkg_value *list_in(struct lkg_value *map, const char *key)
{
        struct lkg_value *list = lkg_tool_list();

        lkg_tool_map_value(map, key, list);
        return list;
}

/* ---- problems ---- */

struct problems {
        struct lkg_value *list;
        size_t n[_LKG_SEVERITY_MAX];
};

static void add_problem(struct problems *problems, enum lkg_severity severity, const char *component,
                        const char *text, const char *advice)
{
        struct lkg_value *item = lkg_tool_map();

        problems->n[severity]++;
        lkg_tool_map_string(item, "severity", lkg_severity_name(severity));
        lkg_tool_map_string(item, "component", component);
        lkg_tool_map_string(item, "text", text);
        lkg_tool_map_string(item, "advice", advice);
        lkg_tool_append(problems->list, item);
}

/* What `lkgfs status` advises for a component; "" = nothing. */
static const char *next_of(const struct lkg_value *tree, const char *component)
{
        const struct lkg_value *list;
        size_t n = lkg_tool_items(at(tree, "status.json", "json"), "components", &list);

        for (size_t i = 0; i < n; i++)
                if (strcmp(lkg_tool_word(lkg_list_get(list, i), "name"), component) == 0)
                        return lkg_tool_word(lkg_list_get(list, i), "next");
        return "";
}

/* Those of one severity. If the doctor's advice is to look into the status, that of the status is given. */
static void add_doctor(const struct lkg_value *tree, enum lkg_severity severity, struct problems *problems)
{
        const struct lkg_value *list;
        size_t n = lkg_tool_items(at(tree, "doctor.json", "json"), "problems", &list);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *component = lkg_tool_word(item, "component"),
                           *advice = lkg_tool_word(item, "advice"), *next = next_of(tree, component);

                if (lkg_tool_severity(lkg_tool_word(item, "severity")) == severity)
                        add_problem(problems, severity, component, lkg_tool_word(item, "text"),
                                    *next && strcmp(advice, "see `lkgfs status`") == 0 ? next : advice);
        }
}

/* Who of us is not there, or does not run. */
static void add_processes(const struct lkg_value *tree, struct problems *problems)
{
        static const char *const names[] = { "lkgfsd", "lkgfs-fs", "lkgfs-engine", "lkgfs-notify" };
        const struct lkg_value *rows;
        size_t n = lkg_tool_items(at(tree, "environment", "processes"), "rows", &rows);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                bool found = false;
                char said[160];

                for (size_t k = 0; k < n; k++) {
                        const struct lkg_value *row = lkg_list_get(rows, k);
                        const char *state = lkg_tool_word(row, "state");

                        if (strcmp(lkg_tool_word(row, "name"), names[i]) != 0)
                                continue;
                        found = true;
                        (void)snprintf(said, sizeof(said),
                                       "%s (pid %.20s) does not run: it is in state %.80s", names[i],
                                       lkg_tool_word(row, "pid"), state);
                        if (*state && strchr("TtDZX", *state))
                                add_problem(problems, LKG_ERROR, NULL, said, "`systemctl status lkgfs`");
                }
                (void)snprintf(said, sizeof(said), "no process %s runs", names[i]);
                if (!found)
                        add_problem(problems, LKG_ERROR, NULL, said, "`systemctl status lkgfs`");
        }
}

/* What the doctor cannot say: it reads the view as well. */
static void add_unanswered(const struct lkg_parts *parts, const struct lkg_value *tree,
                           struct problems *problems)
{
        const struct lkg_part *begun = NULL, *doctor = lkg_parts_find(parts, "doctor.json");
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        for (size_t i = 0; i < parts->n && !begun; i++)
                if (parts->items[i].error == -EINPROGRESS)
                        begun = &parts->items[i];
        if (!begun && (!doctor || doctor->error < 0))
                add_problem(problems, LKG_ERROR, NULL, "`lkgfs doctor` gave no answer", "run it by hand");
        if (!begun)
                return;
        text = lkg_tool_format(strcmp(begun->name, "view") == 0
                                       ? "the mounted view does not answer"
                                       : "the mounted view does not answer: `%s` could not be read in time",
                               begun->name);
        add_problem(problems, LKG_ERROR, NULL, text,
                    "`journalctl -u lkgfs` shows why; lkgfsd adopts the mount when it is started again");
        add_processes(tree, problems);
}

static void put_problems(const struct lkg_parts *parts, struct lkg_value *tree)
{
        struct problems problems = { .list = list_in(tree, "problems") };
        size_t *n = problems.n, all;

        add_unanswered(parts, tree, &problems);
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++)
                add_doctor(tree, (enum lkg_severity)s, &problems);
        all = n[LKG_ERROR] + n[LKG_WARNING];
        lkg_tool_map_number(tree, "nProblems", all);
        lkg_tool_map_bool(tree, "several", all > 1);
        lkg_tool_map_number(tree, "nErrors", n[LKG_ERROR]);
        lkg_tool_map_number(tree, "nWarnings", n[LKG_WARNING]);
}

/* ---- findings ---- */

/* Errors, then warnings; or the notes, which are folded. */
static void add_group(struct lkg_value *groups, const struct lkg_value *findings, size_t n, int from, int to)
{
        struct lkg_value *group = lkg_tool_map(), *items = list_in(group, "items");

        for (int s = from; s <= to; s++)
                for (size_t i = 0; i < n; i++) {
                        struct lkg_value *item = lkg_list_get(findings, i);

                        if ((int)lkg_tool_severity(lkg_tool_word(item, "severity")) == s)
                                lkg_tool_append(items, lkg_value_ref(item));
                }
        lkg_tool_map_bool(group, "folded", from == LKG_NOTE);
        lkg_tool_map_number(group, "n", lkg_value_size(items));
        lkg_tool_map_bool(group, "several", lkg_value_size(items) > 1);
        if (lkg_value_size(items))
                lkg_tool_append(groups, lkg_value_ref(group));
        lkg_value_unref(group);
}

/* @json: with a list of findings; @anew: it is the first one that was judged here */
static void add_findings(struct lkg_value *list, const char *name, const struct lkg_value *json, bool anew)
{
        struct lkg_value *item = lkg_tool_map(), *groups = list_in(item, "groups");
        const struct lkg_value *findings;
        size_t n = lkg_tool_items(json, "findings", &findings);

        add_group(groups, findings, n, LKG_ERROR, LKG_WARNING);
        add_group(groups, findings, n, LKG_NOTE, LKG_NOTE);
        lkg_tool_map_string(item, "name", name);
        lkg_tool_map_bool(item, "anew", anew);
        lkg_tool_map_bool(item, "known", findings);
        lkg_tool_map_bool(item, "none", findings && n == 0);
        lkg_tool_map_number(item, "notListed", json ? lkg_record_number(json, "notListed", 0) : 0);
        lkg_tool_append(list, item);
}

static void put_judged(struct lkg_value *tree, struct lkg_value *list)
{
        const struct lkg_value *judged;
        size_t n = lkg_tool_items(lkg_value_get_pointer(tree, "/judged/check.json/json"), "judged", &judged);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(judged, i);
                const char *name = lkg_tool_word(item, "component");

                add_findings(list, *name ? name : lkg_tool_word(item, "configuration"), item, i == 0);
        }
}

/* ---- what is served, and what changed from one generation to the next ---- */

static void put_condition(struct lkg_value *component)
{
        const char *text = lkg_tool_word(lkg_parts_at(component, "condition"), "text");

        lkg_tool_map_string(component, "state",
                            strncmp(text, "True ", 5) == 0    ? "good"
                            : strncmp(text, "False ", 6) == 0 ? "error"
                                                              : "unknown");
}

/* The document of a generation: the file of its directory that is not one of the history's own. */
static const char *document_of(const struct lkg_value *generation)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };

        lkg_parts_names(generation, &names);
        for (size_t i = 0; i < names.n_items; i++) {
                const struct lkg_value *file = lkg_parts_at(generation, names.items[i]);

                if (strcmp(names.items[i], "origin") != 0 && strcmp(names.items[i], "meta.json") != 0 &&
                    !lkg_parts_at(file, "why"))
                        return lkg_tool_word(file, "text");
        }
        return NULL;
}

static struct lkg_value *change_of(const struct lkg_value *history, const char *older, const char *newer)
{
        LKG_CLEANUP(lkg_freep) char *from = lkg_tool_format("generation %s", older);
        LKG_CLEANUP(lkg_freep) char *to = lkg_tool_format("generation %s", newer);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf diff = LKG_BUF_INIT;
        const char *a = document_of(lkg_parts_at(history, older)),
                   *b = document_of(lkg_parts_at(history, newer));
        struct lkg_value *item = lkg_tool_map();

        if (a && b)
                (void)lkg_tool_need(lkg_render_diff(from, a, strlen(a), to, b, strlen(b), &diff));
        lkg_tool_map_string(item, "from", from);
        lkg_tool_map_string(item, "to", to);
        lkg_tool_map_bool(item, "known", a && b);
        lkg_tool_map_bool(item, "equal", a && b && !diff.size);
        lkg_tool_map_string(item, "difference", lkg_tool_text(&diff));
        return item;
}

static void put_changes(const struct lkg_value *tree, const char *name, struct lkg_value *component)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings numbers = { 0 };
        struct lkg_value *list = list_in(component, "changes");
        const struct lkg_value *history = at(tree, "history", name);

        lkg_parts_names(history, &numbers);
        for (size_t i = 0; i + 1 < numbers.n_items; i++) {
                struct lkg_value *item = change_of(history, numbers.items[i + 1], numbers.items[i]);

                lkg_tool_map_bool(item, "open", i < OPEN_MAX);
                lkg_tool_append(list, item);
        }
}

/* ---- fields and their layers: a letter, a colour and a name; neither is needed to understand the other ---- */

/* A, B, ..., Z, AA, AB, ... */
static void put_letters(struct lkg_value *layer, size_t i)
{
        char letters[8], *p = letters + sizeof(letters) - 1;

        *p = '\0';
        for (size_t n = i + 1; n > 0 && p > letters; n = (n - 1) / 26)
                *--p = (char)('A' + (n - 1) % 26);
        lkg_tool_map_string(layer, "letters", p);
        lkg_tool_map_number(layer, "colour", i % COLOURS);
}

struct layers {
        struct lkg_strings names; /* in the order in which they appear */
        size_t *n_fields;         /* of each */
};

static size_t layer_number(struct layers *layers, const char *name)
{
        size_t n = layers->names.n_items;

        for (size_t i = 0; i < n; i++)
                if (strcmp(layers->names.items[i], name) == 0)
                        return i;
        (void)lkg_tool_need(LKG_GROW(layers->n_fields, n));
        layers->n_fields[n] = 0;
        lkg_tool_add_word(&layers->names, name);
        return n;
}

/* All layers in the order of the merge, by the names of their files: `0003-drop-in-50-x.conf.yaml`. */
static void add_layers(struct layers *layers, const struct lkg_value *directory)
{
        static const char *const roles[] = { "base", "remote", "patch", "drop-in", "instance" };
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings files = { 0 };

        lkg_parts_names(directory, &files);
        for (size_t k = 0; k < files.n_items; k++) {
                char *name = files.items[k], *dash = strchr(name, '-'),
                     *end = name + strlen(name) - strlen(".yaml");

                if (!dash || end < dash || strcmp(end, ".yaml") != 0 || strstr(name, ".merged.yaml"))
                        continue;
                *end = '\0';
                for (size_t i = 0; i < LKG_ARRAY_SIZE(roles); i++) {
                        size_t n = strlen(roles[i]);

                        if (strncmp(dash + 1, roles[i], n) != 0 || dash[n + 1] != '-')
                                continue;
                        dash[n + 1] = ' ';
                        (void)layer_number(layers, dash + 1);
                        break;
                }
        }
}

static struct lkg_value *row_of(struct layers *layers, const struct lkg_value *given)
{
        static const char *const keys[] = { "field", "where", "shadows" };
        size_t layer = layer_number(layers, lkg_tool_word(given, "layer"));
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf value = LKG_BUF_INIT;
        struct lkg_value *row = lkg_tool_map();

        layers->n_fields[layer]++;
        put_letters(row, layer);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(keys); i++)
                lkg_tool_map_string(row, keys[i], lkg_map_get_string(given, keys[i]));
        if (lkg_map_get(given, "value"))
                lkg_render_json_compact(lkg_map_get(given, "value"), &value);
        lkg_tool_map_string(row, "value", lkg_tool_text(&value));
        return row;
}

/* @fields: as `lkgfs blame -o json` has them, or NULL; @missing: why there may be none */
static void add_origins(struct lkg_value *list, const char *component, const struct lkg_value *directory,
                        const struct lkg_value *fields, const char *missing)
{
        struct lkg_value *item = lkg_tool_map(), *legend = list_in(item, "layers"),
                         *rows = list_in(item, "rows");
        struct layers layers = { 0 };

        add_layers(&layers, directory);
        for (size_t i = 0; fields && i < lkg_value_size(fields); i++)
                lkg_tool_append(rows, row_of(&layers, lkg_list_get(fields, i)));
        for (size_t i = 0; i < layers.names.n_items; i++) {
                struct lkg_value *layer = lkg_tool_map();

                put_letters(layer, i);
                lkg_tool_map_string(layer, "name", layers.names.items[i]);
                lkg_tool_map_number(layer, "n", layers.n_fields[i]);
                lkg_tool_map_bool(layer, "one", layers.n_fields[i] == 1);
                lkg_tool_append(legend, layer);
        }
        lkg_tool_map_string(item, "component", component);
        lkg_tool_map_string(item, "missing", missing);
        lkg_tool_append(list, item);
        lkg_strings_deinit(&layers.names);
        free(layers.n_fields);
}

static void put_judged_origins(const struct lkg_value *tree, struct lkg_value *list)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };
        const struct lkg_value *judged = lkg_parts_at(tree, "judged"), *fields;

        lkg_parts_names(judged, &names);
        for (size_t i = 0; i < names.n_items; i++) {
                const struct lkg_value *origin = at(judged, names.items[i], "origin.json");

                (void)lkg_tool_items(lkg_parts_at(origin, "json"), "fields", &fields);
                if (!at(judged, names.items[i], "path")) /* else it is a part, and no component */
                        add_origins(list, names.items[i], NULL, fields,
                                    "The layers do not make a valid document: see the findings.");
        }
}

/* ---- processes ---- */

/* As the file server knows them, which is told of each death; the same for all components. */
static void put_told(struct lkg_value *tree, const struct lkg_value *component)
{
        struct lkg_value *list = list_in(tree, "told");
        struct lkg_processes processes;

        lkg_processes_parse(lkg_tool_word(lkg_parts_at(component, "metrics.prom"), "text"), &processes);
        for (size_t i = 0; i < processes.n; i++) {
                const struct lkg_process_told *told = &processes.items[i];
                struct lkg_value *item = lkg_tool_map();
                const char *advice = NULL;

                lkg_tool_map_string(item, "name", told->name);
                lkg_tool_map_bool(item, "up", told->up);
                lkg_tool_map_string(item, "loss", lkg_process_loss(told->name, &advice));
                lkg_tool_append(list, item);
        }
        lkg_tool_map_bool(tree, "engineSilent", processes.engine_silent);
}

/* ---- the whole ---- */

/* Before it is listed, everything is in the map of the component. */
static void put_component(struct lkg_value *tree, const char *name, struct lkg_value *origins)
{
        struct lkg_value *component = lkg_map_get(lkg_map_get(tree, "status"), name);
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *fields =
                lkg_tool_origins(lkg_tool_word(lkg_parts_at(component, "origin"), "text"));

        add_findings(lkg_map_get(tree, "findings"), name, at(component, "findings.json", "json"), false);
        add_origins(origins, name, at(tree, "layers", name), fields,
                    "Where its fields come from could not be read.");
        if (!lkg_map_get(tree, "told"))
                put_told(tree, component);
        lkg_tool_map_string(component, "name", name);
        lkg_tool_map_string(component, "next", next_of(tree, name));
        put_condition(component);
        put_changes(tree, name, component);
        lkg_tool_append(lkg_map_get(tree, "components"), lkg_value_ref(component));
}

static void put_components(struct lkg_value *tree)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };
        struct lkg_value *findings = list_in(tree, "findings"), *origins = list_in(tree, "origins");

        (void)list_in(tree, "components");
        lkg_parts_names(lkg_parts_at(tree, "status"), &names);
        for (size_t i = 0; i < names.n_items; i++)
                if (!at(lkg_parts_at(tree, "status"), names.items[i], "path"))
                        put_component(tree, names.items[i], origins);
        put_judged(tree, findings);
        put_judged_origins(tree, origins);
}

/*
 * The policy allows the one style that the page has, by its digest, and nothing else: even if text got into the page unescaped,
 * it could load, run and send nothing.
 */
static void put_style_digest(struct lkg_value *tree)
{
        const char *style = strstr(page, "<style>") + strlen("<style>");
        unsigned char digest[LKG_SHA256_BYTES], text[4 * LKG_SHA256_BYTES / 3 + 4];

        (void)lkg_tool_need(lkg_sha256(style, (size_t)(strstr(style, "</style>") - style), digest));
        (void)EVP_EncodeBlock(text, digest, sizeof(digest));
        lkg_tool_map_string(tree, "styleDigest", (const char *)text);
}

void lkg_report_page(const struct lkg_parts *parts, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *tree = lkg_parts_tree(parts);

        put_style_digest(tree);
        put_problems(parts, tree);
        lkg_tool_map_value(tree, "events", lkg_report_timeline(tree));
        put_components(tree);
        lkg_tool_fill(page, tree, /* html= */ true, ret);
}
