/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened, the newest first, and who did it: generations, starts and restarts of the component, marks, holds and trials
 * from the view, commands and crashes from the log.
 */
#include "report.h"

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

        lkg_parts_names(ret, ret_names);
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

/* ---- the whole ---- */

static int newest_first(const void *a, const void *b)
{
        const struct event *x = a, *y = b;

        if (x->time_ns / LKG_NSEC_PER_SEC != y->time_ns / LKG_NSEC_PER_SEC)
                return x->time_ns < y->time_ns ? 1 : -1;
        return x->order < y->order ? -1 : 1;
}

struct lkg_value *lkg_report_timeline(const struct lkg_value *tree)
{
        struct lkg_strings names = { 0 };
        struct events events = { .tree = tree };
        struct lkg_value *list = lkg_tool_list();

        lkg_parts_names(lkg_parts_at(tree, "status"), &names);
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
