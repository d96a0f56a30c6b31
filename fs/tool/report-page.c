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

/* ---- problems ---- */

struct problems {
        struct lkg_value *list;
        size_t n[_LKG_SEVERITY_MAX];
};

static void add_problem(struct problems *problems, enum lkg_severity severity, const char *component,
                        const char *text, const char *advice)
{
        problems->n[severity]++;
        lkg_tool_append(problems->list,
                        lkg_tool_texts(lkg_tool_map(), "severity", lkg_severity_name(severity), "component",
                                       component, "text", text, "advice", advice, NULL));
}

/* What `lkgfs status` advises for a component; "" = nothing. */
static const char *next_of(const struct lkg_value *tree, const char *component)
{
        const struct lkg_value *item, *status = at(tree, "status.json", "json");

        for (size_t i = 0; (item = lkg_tool_item(status, "components", i)); i++)
                if (strcmp(lkg_tool_word(item, "name"), component) == 0)
                        return lkg_tool_word(item, "next");
        return "";
}

/* Those of one severity. If the doctor's advice is to look into the status, that of the status is given. */
static void add_doctor(const struct lkg_value *tree, enum lkg_severity severity, struct problems *problems)
{
        const struct lkg_value *item, *doctor = at(tree, "doctor.json", "json");

        for (size_t i = 0; (item = lkg_tool_item(doctor, "problems", i)); i++) {
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
        const struct lkg_value *row, *processes = at(tree, "environment", "processes");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                bool found = false;

                for (size_t k = 0; (row = lkg_tool_item(processes, "rows", k)); k++) {
                        const char *state = lkg_tool_word(row, "state");

                        if (strcmp(lkg_tool_word(row, "name"), names[i]) != 0)
                                continue;
                        found = true;
                        if (*state && strchr("TtDZX", *state))
                                add_problem(
                                        problems, LKG_ERROR, NULL,
                                        lkg_tool_format("%s (pid %.20s) does not run: it is in state %.80s",
                                                        names[i], lkg_tool_word(row, "pid"), state),
                                        "`systemctl status lkgfs`");
                }
                if (!found)
                        add_problem(problems, LKG_ERROR, NULL,
                                    lkg_tool_format("no process %s runs", names[i]),
                                    "`systemctl status lkgfs`");
        }
}

/* What the doctor cannot say: it reads the view as well. */
static void add_unanswered(const struct lkg_parts *parts, const struct lkg_value *tree,
                           struct problems *problems)
{
        const struct lkg_part *begun = NULL, *doctor = lkg_parts_find(parts, "doctor.json");

        for (size_t i = 0; i < parts->n && !begun; i++)
                if (parts->items[i].error == -EINPROGRESS)
                        begun = &parts->items[i];
        if (!begun && (!doctor || doctor->error < 0))
                add_problem(problems, LKG_ERROR, NULL, "`lkgfs doctor` gave no answer", "run it by hand");
        if (!begun)
                return;
        add_problem(
                problems, LKG_ERROR, NULL,
                lkg_tool_format(strcmp(begun->name, "view") == 0
                                        ? "the mounted view does not answer"
                                        : "the mounted view does not answer: `%s` could not be read in time",
                                begun->name),
                "`journalctl -u lkgfs` shows why; lkgfsd adopts the mount when it is started again");
        add_processes(tree, problems);
}

static void put_problems(const struct lkg_parts *parts, struct lkg_value *tree)
{
        struct problems problems = { .list = lkg_tool_map_list(tree, "problems") };
        size_t *n = problems.n;

        add_unanswered(parts, tree, &problems);
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++)
                add_doctor(tree, (enum lkg_severity)s, &problems);
        lkg_tool_map_number(tree, "nProblems", n[LKG_ERROR] + n[LKG_WARNING]);
        lkg_tool_map_number(tree, "nErrors", n[LKG_ERROR]);
        lkg_tool_map_number(tree, "nWarnings", n[LKG_WARNING]);
}

/* ---- findings ---- */

/* Errors, then warnings; or the notes, which are folded. */
static void add_group(struct lkg_value *groups, const struct lkg_value *json, int from, int to)
{
        struct lkg_value *group = lkg_tool_map();
        struct lkg_value *items = lkg_tool_map_list(group, "items"), *item;

        for (int s = from; s <= to; s++)
                for (size_t i = 0; (item = lkg_tool_item(json, "findings", i)); i++)
                        if ((int)lkg_tool_severity(lkg_tool_word(item, "severity")) == s)
                                lkg_tool_append(items, item);
        lkg_tool_map_bool(group, "folded", from == LKG_NOTE);
        lkg_tool_map_number(group, "n", lkg_value_size(items));
        if (lkg_value_size(items))
                lkg_tool_append(groups, group);
}

/* @json: with a list of findings; @anew: it is the first one that was judged here */
static void add_findings(struct lkg_value *list, const char *name, const struct lkg_value *json, bool anew)
{
        struct lkg_value *item = lkg_tool_texts(lkg_tool_map(), "name", name, NULL),
                         *groups = lkg_tool_map_list(item, "groups");
        const struct lkg_value *findings;
        size_t n = lkg_tool_items(json, "findings", &findings);

        add_group(groups, json, LKG_ERROR, LKG_WARNING);
        add_group(groups, json, LKG_NOTE, LKG_NOTE);
        lkg_tool_bools(item, "anew", anew, "known", findings != NULL, "none", findings && n == 0, NULL);
        lkg_tool_map_number(item, "notListed", json ? lkg_record_number(json, "notListed", 0) : 0);
        lkg_tool_append(list, item);
}

static void put_judged(struct lkg_value *tree, struct lkg_value *list)
{
        const struct lkg_value *item, *check = lkg_value_get_pointer(tree, "/judged/check.json/json");

        for (size_t i = 0; (item = lkg_tool_item(check, "judged", i)); i++) {
                const char *name = lkg_tool_word(item, "component");

                add_findings(list, *name ? name : lkg_tool_word(item, "configuration"), item, i == 0);
        }
}

/* ---- what is served, and what changed from one generation to the next ---- */

/* The document of a generation: the file of its directory that is not one of the history's own. */
static const char *document_of(const struct lkg_value *generation)
{
        struct lkg_strings names = { 0 };

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
        const char *from = lkg_tool_format("generation %s", older),
                   *to = lkg_tool_format("generation %s", newer);
        const char *a = document_of(lkg_parts_at(history, older)),
                   *b = document_of(lkg_parts_at(history, newer)),
                   *diff = a && b ? lkg_tool_diff(from, a, to, b) : "";
        struct lkg_value *item =
                lkg_tool_texts(lkg_tool_map(), "from", from, "to", to, "difference", diff, NULL);

        return lkg_tool_bools(item, "known", a && b, "equal", a && b && !*diff, NULL);
}

static void put_changes(const struct lkg_value *tree, const char *name, struct lkg_value *component)
{
        struct lkg_strings numbers = { 0 };
        struct lkg_value *list = lkg_tool_map_list(component, "changes");
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
static void put_letters(struct lkg_value *map, size_t i)
{
        char letters[8], *p = letters + sizeof(letters) - 1;

        *p = '\0';
        for (size_t n = i + 1; n > 0 && p > letters; n = (n - 1) / 26)
                *--p = (char)('A' + (n - 1) % 26);
        lkg_tool_map_string(map, "letters", p);
        lkg_tool_map_number(map, "colour", i % COLOURS);
}

/* The layers in the order in which they appear, with the number of their fields. Return: the place of @name, to which @fields are added. */
static size_t count_layer(struct lkg_value *legend, const char *name, size_t fields)
{
        struct lkg_value *layer;
        size_t i = 0;

        while ((layer = lkg_list_get(legend, i)) && strcmp(lkg_tool_word(layer, "name"), name) != 0)
                i++;
        if (!layer) {
                layer = lkg_tool_texts(lkg_tool_map(), "name", name, NULL);
                put_letters(layer, i);
                lkg_tool_append(legend, layer);
        }
        lkg_tool_map_number(layer, "n", fields + lkg_record_number(layer, "n", 0));
        return i;
}

/* All layers in the order of the merge, by the names of their files: `0003-drop-in-50-x.conf.yaml`. */
static void add_layers(struct lkg_value *legend, const struct lkg_value *directory)
{
        static const char *const roles[] = { "base", "remote", "patch", "drop-in", "instance" };
        struct lkg_strings files = { 0 };

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
                        (void)count_layer(legend, dash + 1, 0);
                        break;
                }
        }
}

static struct lkg_value *row_of(struct lkg_value *legend, const struct lkg_value *given)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf value = LKG_BUF_INIT;
        struct lkg_value *row;

        if (lkg_map_get(given, "value"))
                lkg_render_json_compact(lkg_map_get(given, "value"), &value);
        row = lkg_tool_texts(lkg_tool_map(), "field", lkg_map_get_string(given, "field"), "where",
                             lkg_map_get_string(given, "where"), "shadows",
                             lkg_map_get_string(given, "shadows"), "value", lkg_buf_text(&value), NULL);
        put_letters(row, count_layer(legend, lkg_tool_word(given, "layer"), 1));
        return row;
}

/* @fields: as `lkgfs blame -o json` has them, or NULL; @missing: why there may be none */
static void add_origins(struct lkg_value *list, const char *component, const struct lkg_value *directory,
                        const struct lkg_value *fields, const char *missing)
{
        struct lkg_value *item = lkg_tool_texts(lkg_tool_map(), "component", component, "missing", missing,
                                                NULL),
                         *legend = lkg_tool_map_list(item, "layers"),
                         *rows = lkg_tool_map_list(item, "rows");

        add_layers(legend, directory);
        for (size_t i = 0; fields && i < lkg_value_size(fields); i++)
                lkg_tool_append(rows, row_of(legend, lkg_list_get(fields, i)));
        lkg_tool_append(list, item);
}

static void put_judged_origins(const struct lkg_value *tree, struct lkg_value *list)
{
        struct lkg_strings names = { 0 };
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
        struct lkg_value *list = lkg_tool_map_list(tree, "told");
        struct lkg_processes processes;

        lkg_processes_parse(lkg_tool_word(lkg_parts_at(component, "metrics.prom"), "text"), &processes);
        for (size_t i = 0; i < processes.n; i++) {
                const struct lkg_process_told *told = &processes.items[i];
                struct lkg_value *item = lkg_tool_map();
                const char *advice;

                lkg_tool_texts(item, "name", told->name, "loss", lkg_process_loss(told->name, &advice),
                               NULL);
                lkg_tool_map_bool(item, "up", told->up);
                lkg_tool_append(list, item);
        }
        lkg_tool_map_bool(tree, "engineSilent", processes.engine_silent);
}

/* ---- the whole ---- */

/* Before it is listed, everything is in the map of the component. */
static void put_component(struct lkg_value *tree, const char *name, struct lkg_value *origins)
{
        struct lkg_value *component = lkg_map_get(lkg_map_get(tree, "status"), name);
        struct lkg_value *fields =
                lkg_tool_origins(lkg_tool_word(lkg_parts_at(component, "origin"), "text"));
        const char *condition = lkg_tool_word(lkg_parts_at(component, "condition"), "text");

        add_findings(lkg_map_get(tree, "findings"), name, at(component, "findings.json", "json"), false);
        add_origins(origins, name, at(tree, "layers", name), fields,
                    "Where its fields come from could not be read.");
        if (!lkg_map_get(tree, "told"))
                put_told(tree, component);
        lkg_tool_texts(component, "name", name, "next", next_of(tree, name), "state",
                       strncmp(condition, "True ", 5) == 0    ? "good"
                       : strncmp(condition, "False ", 6) == 0 ? "error"
                                                              : "unknown",
                       NULL);
        put_changes(tree, name, component);
        lkg_tool_append(lkg_map_get(tree, "components"), component);
}

static void put_components(struct lkg_value *tree)
{
        struct lkg_strings names = { 0 };
        struct lkg_value *findings = lkg_tool_map_list(tree, "findings"),
                         *origins = lkg_tool_map_list(tree, "origins");

        (void)lkg_tool_map_list(tree, "components");
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

        (void)lkg_need(lkg_sha256(style, (size_t)(strstr(style, "</style>") - style), digest));
        (void)EVP_EncodeBlock(text, digest, sizeof(digest));
        lkg_tool_map_string(tree, "styleDigest", (const char *)text);
}

void lkg_report_page(const struct lkg_parts *parts, struct lkg_buf *ret)
{
        struct lkg_value *tree = lkg_parts_tree(parts);

        put_style_digest(tree);
        put_problems(parts, tree);
        lkg_tool_map_value(tree, "events", lkg_report_timeline(tree));
        put_components(tree);
        lkg_tool_fill(page, tree, /* html= */ true, ret);
}
