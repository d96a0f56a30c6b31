/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a report: what report.html shows besides the parts themselves. What is wrong, findings by their severity, differences
 * between generations, fields with their layers, processes as the file server knows them, what happened.
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

/* What is in @directory of the tree (may be NULL), in the order in which it was read. */
static void list_names(const struct lkg_value *directory, struct lkg_strings *ret)
{
        const char *name = "";
        size_t size;

        for (size_t i = 0;
             directory && !lkg_parts_at(directory, "path") && lkg_map_at(directory, i, &name, &size); i++)
                lkg_tool_add_word(ret, name);
        lkg_tool_sort(ret);
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

/* ---- what is served, and what changed from one generation to the next ---- */

/* The document of a generation: the file of its directory that is not one of the history's own. */
static const char *document_of(const struct lkg_value *generation)
{
        struct lkg_strings names = { 0 };

        list_names(generation, &names);
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

        list_names(history, &numbers);
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

        list_names(directory, &files);
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

        list_names(judged, &names);
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

/* ---- what happened, the newest first, and who did it: from the view, and commands and crashes from the log ---- */

struct event {
        uint64_t time_ns;
        size_t order; /* of events of the same second */
        struct lkg_value *map;
};

struct events {
        const struct lkg_value *tree; /* of the parts */
        const char *component;        /* the one whose files are being read */
        const struct lkg_value *status;
        struct event *items;
        size_t n;
};

static void add(struct events *events, const char *time, const char *kind, const char *who, const char *fmt,
                ...) LKG_PRINTF(5, 6);

/* @who: NULL or "" = not known, or nobody */
static void add(struct events *events, const char *time, const char *kind, const char *who, const char *fmt,
                ...)
{
        struct event event = { .order = events->n };
        char shown[21];
        va_list ap;

        if (lkg_parse_rfc3339(time, &event.time_ns) < 0)
                return;
        lkg_format_rfc3339(event.time_ns, shown);
        va_start(ap, fmt);
        event.map = lkg_tool_texts(lkg_tool_map(), "time", shown, "kind", kind, "who", who, "text",
                                   lkg_tool_vformat(fmt, ap), NULL);
        va_end(ap);
        events->items = lkg_tool_grow(events->items, events->n, sizeof(*events->items));
        events->items[events->n++] = event;
}

/* @file: in status/<component>; @member: of the node in the tree */
static const struct lkg_value *status_of(const struct events *events, const char *file, const char *member)
{
        return lkg_parts_at(lkg_parts_at(events->status, file), member);
}

/* What the view has of the component in another directory. */
static const struct lkg_value *directory_of(const struct events *events, const char *directory,
                                            struct lkg_strings *ret_names)
{
        const struct lkg_value *ret = lkg_parts_at(lkg_parts_at(events->tree, directory), events->component);

        list_names(ret, ret_names);
        return ret;
}

/* ---- generations ---- */

static const struct lkg_value *find_layer(const struct lkg_value *meta, const struct lkg_value *layer)
{
        const struct lkg_value *item;

        for (size_t i = 0; (item = lkg_tool_item(meta, "layers", i)); i++)
                if (strcmp(lkg_tool_word(item, "role"), lkg_tool_word(layer, "role")) == 0 &&
                    strcmp(lkg_tool_word(item, "name"), lkg_tool_word(layer, "name")) == 0)
                        break;
        return item;
}

/* The layers of @meta that @other does not have; @compare: that it has with other content. */
static void put_layers(const struct lkg_value *meta, const struct lkg_value *other, bool compare,
                       const char *what, struct lkg_buf *buf)
{
        const struct lkg_value *layer;

        for (size_t i = 0; (layer = lkg_tool_item(meta, "layers", i)); i++) {
                const struct lkg_value *before = find_layer(other, layer);

                if (compare ? before && strcmp(lkg_tool_word(before, "sha256"),
                                               lkg_tool_word(layer, "sha256")) != 0
                            : !before)
                        lkg_buf_printf(buf, "%s%s %s %s", buf->size ? ", " : "; ", what,
                                       lkg_tool_word(layer, "role"), lkg_tool_word(layer, "name"));
        }
}

static void add_generation(struct events *events, const struct lkg_value *meta,
                           const struct lkg_value *before)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf changes = LKG_BUF_INIT;

        if (before) {
                put_layers(meta, before, true, "changed", &changes);
                put_layers(meta, before, false, "added", &changes);
                put_layers(before, meta, false, "removed", &changes);
        }
        add(events, lkg_tool_word(meta, "time"), "generation", NULL, "%s: generation %" PRIu64 " of %s%s",
            events->component, lkg_record_number(meta, "generation", 0), lkg_tool_word(meta, "source"),
            lkg_buf_text(&changes));
}

static void add_generations(struct events *events)
{
        struct lkg_strings numbers = { 0 };
        const struct lkg_value *history = directory_of(events, "history", &numbers), *newer = NULL;

        for (size_t i = 0; i <= numbers.n_items; i++) {
                const struct lkg_value *files =
                        i < numbers.n_items ? lkg_parts_at(history, numbers.items[i]) : NULL;
                const struct lkg_value *meta = lkg_parts_at(lkg_parts_at(files, "meta.json"), "json");

                if (newer)
                        add_generation(events, newer, meta);
                newer = meta;
        }
}

/* ---- starts, restarts, marks, holds, trials ---- */

static void add_starts(struct events *events)
{
        const struct lkg_value *list = status_of(events, "startups", "json");

        for (size_t i = 0; list && i < lkg_value_size(list); i++)
                add(events, lkg_value_text(lkg_list_get(list, i), NULL), "start", NULL, "%s started",
                    events->component);
}

static void add_restarts(struct events *events)
{
        const char *text = lkg_tool_word(lkg_parts_at(events->status, "restarts"), "text"), *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                char *rest = lkg_tool_cut(line, size);
                const char *time = strsep(&rest, " ");

                add(events, time, "restart", "lkgfs", "%s: restart asked for:%s%s", events->component,
                    rest ? " " : "", rest ? rest : "");
        }
}

static void add_marks(struct events *events)
{
        struct lkg_strings ids = { 0 };
        const struct lkg_value *bad = directory_of(events, "bad", &ids);

        for (size_t i = 0; i < ids.n_items; i++) {
                const struct lkg_value *mark = lkg_parts_at(lkg_parts_at(bad, ids.items[i]), "json");
                bool loop = strcmp(lkg_tool_word(mark, "cause"), "crash_loop") == 0;

                add(events, lkg_tool_word(mark, "time"), loop ? "rollback" : "marked bad",
                    loop ? "lkgfs: crash loop" : NULL, "%s: %s: %s", events->component, ids.items[i],
                    lkg_tool_word(mark, "reason"));
        }
}

static void add_states(struct events *events)
{
        const struct lkg_value *hold = status_of(events, "hold", "map"),
                               *trial = status_of(events, "trial", "map"),
                               *condition = status_of(events, "condition.json", "json");
        const char *mode = lkg_tool_word(hold, "mode"), *uid = lkg_tool_word(hold, "uid"),
                   *state = lkg_tool_word(trial, "state");

        if (*mode && strcmp(mode, "free") != 0)
                add(events, lkg_tool_word(hold, "since"), "hold",
                    !*uid ? NULL
                          : lkg_tool_format("uid %s, pid %s, %s", uid, lkg_tool_word(hold, "pid"),
                                            lkg_tool_word(hold, "program")),
                    "%s: %s at generation %s, until now", events->component, mode,
                    lkg_tool_word(hold, "generation"));
        if (*state)
                add(events, lkg_tool_word(trial, "started"), "trial", NULL,
                    "%s: trial began; its state now: %s", events->component, state);
        add(events, lkg_tool_word(condition, "lastTransitionTime"), "condition", NULL,
            "%s: condition %s: %s", events->component, lkg_tool_word(condition, "status"),
            lkg_tool_word(condition, "reason"));
}

/* ---- the log ---- */

/* `...T02:29:20+0000` is what the journal writes; RFC 3339 has a colon in the zone. Return: where the time ends; 0: there is none. */
static size_t take_time(const char *line, size_t size, char ret[static 40])
{
        size_t n = 0;

        while (n < size && n < 36 && line[n] != ' ')
                n++;
        if (n < 20 || line[4] != '-' || line[10] != 'T')
                return 0;
        if ((line[n - 5] == '+' || line[n - 5] == '-') && n > 20)
                (void)snprintf(ret, 40, "%.*s:%.2s", (int)n - 2, line, line + n - 2);
        else
                (void)snprintf(ret, 40, "%.*s", (int)n, line);
        return n;
}

/* NULL = it is not shown here. The starts of a component are in status/. */
static const char *kind_of(const char *message)
{
        static const struct {
                const char *words, *kind;
        } rows[] = {
                { "control/", "command" },      { "bad/", "command" },
                { "was killed by", "crash" },   { " exited with", "crash" },
                { "rolled back", "rollback" },  { "rollback", "rollback" },
                { "refused, ", "refused" },     { "crash loop", "rollback" },
                { "trial", "trial" },           { "started (pid", "lkgfs" },
                { "not answering", "silence" }, { "does not answer", "silence" },
        };

        if (strstr(message, ", generation ") && strstr(message, " started (pid"))
                return NULL;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (strstr(message, rows[i].words))
                        return rows[i].kind;
        return NULL;
}

/* `kubelet: control/hold "on" by uid 0, pid 7, /usr/bin/lkgfs, login uid 1000: accepted` */
static void add_log_line(struct events *events, const char *time, char *message)
{
        const char *kind = kind_of(message);
        size_t n = events->n;
        char *by, *result;

        if (!kind)
                return;
        by = strcmp(kind, "command") == 0 ? strstr(message, " by uid ") : NULL;
        result = by ? strstr(by, ": ") : NULL;
        if (result)
                *by = *result = '\0';
        add(events, time, kind, result ? by + strlen(" by ") : NULL, "%s%s%s", message, result ? ": " : "",
            result ? result + 2 : "");
        if (events->n > n) /* the last line of a second is the newest */
                events->items[n].order = SIZE_MAX - n;
}

/* The message is what stands after `host lkgfs-engine[123]: `. */
static void add_log(struct events *events)
{
        const char *text = lkg_tool_word(lkg_parts_at(events->tree, "log"), "text"), *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                char time[40];
                size_t at = take_time(line, size, time);
                const char *end = line + size,
                           *program = at ? memmem(line + at, size - at, "lkgfs", 5) : NULL,
                           *colon = program ? memmem(program, (size_t)(end - program), ": ", 2) : NULL;

                if (colon)
                        add_log_line(events, time, lkg_tool_cut(colon + 2, (size_t)(end - colon) - 2));
        }
}

/* ---- all events ---- */

static int newest_first(const void *a, const void *b)
{
        const struct event *x = a, *y = b;

        if (x->time_ns / LKG_NSEC_PER_SEC != y->time_ns / LKG_NSEC_PER_SEC)
                return x->time_ns < y->time_ns ? 1 : -1;
        return x->order < y->order ? -1 : 1;
}

static struct lkg_value *timeline(const struct lkg_value *tree)
{
        struct lkg_strings names = { 0 };
        struct events events = { .tree = tree };
        struct lkg_value *list = lkg_tool_list();

        list_names(lkg_parts_at(tree, "status"), &names);
        for (size_t i = 0; i < names.n_items; i++) {
                events.component = names.items[i];
                events.status = lkg_parts_at(lkg_parts_at(tree, "status"), names.items[i]);
                add_generations(&events);
                add_starts(&events);
                add_restarts(&events);
                add_marks(&events);
                add_states(&events);
        }
        add_log(&events);
        if (events.n > 1)
                qsort(events.items, events.n, sizeof(*events.items), newest_first);
        for (size_t i = 0; i < events.n; i++)
                lkg_tool_append(list, events.items[i].map);
        return list;
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
        const struct lkg_value *item, *check = lkg_value_get_pointer(tree, "/judged/check.json/json");
        struct lkg_strings names = { 0 };
        struct lkg_value *findings = lkg_tool_map_list(tree, "findings"),
                         *origins = lkg_tool_map_list(tree, "origins");

        (void)lkg_tool_map_list(tree, "components");
        list_names(lkg_parts_at(tree, "status"), &names);
        for (size_t i = 0; i < names.n_items; i++)
                if (!at(lkg_parts_at(tree, "status"), names.items[i], "path"))
                        put_component(tree, names.items[i], origins);
        for (size_t i = 0; (item = lkg_tool_item(check, "judged", i)); i++) {
                const char *name = lkg_tool_word(item, "component");

                add_findings(findings, *name ? name : lkg_tool_word(item, "configuration"), item, i == 0);
        }
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
        lkg_tool_map_value(tree, "events", timeline(tree));
        put_components(tree);
        lkg_tool_fill(page, tree, /* html= */ true, ret);
}
