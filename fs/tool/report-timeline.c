/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened, the newest first, and who did it: generations, starts and restarts of the component, marks, holds and trials
 * from the view, commands and crashes from the log.
 */
#include "report.h"

struct event {
        uint64_t time_ns;
        size_t order; /* of events of the same second */
        const char *kind;
        char *text, *who; /* who NULL = not known, or nobody */
};

struct events {
        const struct lkg_parts *parts;
        const char *component; /* the one whose files are being read */
        struct event *items;
        size_t n, n_allocated;
};

/* Takes @text and @who over. */
static void add(struct events *events, const char *time, const char *kind, char *text, char *who)
{
        uint64_t time_ns = 0;

        if (lkg_parse_rfc3339(time, &time_ns) < 0) {
                free(text);
                free(who);
                return;
        }
        (void)lkg_tool_need(LKG_RESERVE(events->items, events->n, events->n_allocated));
        events->items[events->n] = (struct event){ time_ns, events->n, kind, text, who };
        events->n++;
}

/* ---- generations ---- */

static const struct lkg_value *find_layer(const struct lkg_value *meta, const struct lkg_value *layer)
{
        const struct lkg_value *list;
        size_t n = lkg_tool_items(meta, "layers", &list);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(list, i);

                if (strcmp(lkg_tool_word(item, "role"), lkg_tool_word(layer, "role")) == 0 &&
                    strcmp(lkg_tool_word(item, "name"), lkg_tool_word(layer, "name")) == 0)
                        return item;
        }
        return NULL;
}

/* The layers of @meta that @other does not have, or has with other content. */
static void put_layers(const struct lkg_value *meta, const struct lkg_value *other, bool compare,
                       const char *what, struct lkg_buf *buf)
{
        const struct lkg_value *list;
        size_t n = lkg_tool_items(meta, "layers", &list);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *layer = lkg_list_get(list, i), *before = find_layer(other, layer);

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

        add(events, lkg_tool_word(meta, "time"), "generation",
            lkg_tool_format("%s: generation %llu of %s%s", events->component,
                            (unsigned long long)lkg_record_number(meta, "generation", 0),
                            lkg_tool_word(meta, "source"), lkg_tool_text(&changes)),
            NULL);
}

static void add_generations(struct events *events)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *newer = NULL;
        char prefix[300], number[256];

        (void)snprintf(prefix, sizeof(prefix), "history/%s/", events->component);
        for (size_t i = 0; lkg_parts_under(events->parts, prefix, i, number); i++) {
                struct lkg_value *meta = lkg_parts_json(events->parts, "%s%s/meta.json", prefix, number);

                if (newer)
                        add_generation(events, newer, meta);
                lkg_value_unref(newer);
                newer = meta;
        }
        if (newer)
                add_generation(events, newer, NULL);
}

/* ---- starts, restarts, marks, holds, trials ---- */

static void add_starts(struct events *events)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *list = lkg_parts_json(events->parts, "status/%s/startups", events->component);

        for (size_t i = 0; list && i < lkg_value_size(list); i++)
                add(events, lkg_value_text(lkg_list_get(list, i), NULL), "start",
                    lkg_tool_format("%s started", events->component), NULL);
}

static void add_restarts(struct events *events)
{
        const char *text = lkg_parts_text(events->parts, "status/%s/restarts", events->component), *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                LKG_CLEANUP(lkg_freep) char *time = lkg_tool_own(strndup(line, size));
                char *rest = strchr(time, ' ');

                if (rest)
                        *rest = '\0';
                add(events, time, "restart",
                    lkg_tool_format("%s: restart asked for:%s%s", events->component, rest ? " " : "",
                                    rest ? rest + 1 : ""),
                    lkg_tool_format("lkgfs"));
        }
}

static void add_marks(struct events *events)
{
        char prefix[300];

        (void)snprintf(prefix, sizeof(prefix), "bad/%s/", events->component);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(events->parts, part, prefix));) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *mark = lkg_parts_json(events->parts, "%s", part->name);

                add(events, lkg_tool_word(mark, "time"),
                    strcmp(lkg_tool_word(mark, "cause"), "crash_loop") == 0 ? "rollback" : "marked bad",
                    lkg_tool_format("%s: %s: %s", events->component, part->name + strlen(prefix),
                                    lkg_tool_word(mark, "reason")),
                    strcmp(lkg_tool_word(mark, "cause"), "crash_loop") == 0
                            ? lkg_tool_format("lkgfs: crash loop")
                            : NULL);
        }
}

static void add_hold(struct events *events)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *hold =
                lkg_tool_pairs(lkg_parts_text(events->parts, "status/%s/hold", events->component));
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *trial =
                lkg_tool_pairs(lkg_parts_text(events->parts, "status/%s/trial", events->component));
        const char *mode = lkg_tool_word(hold, "mode"), *uid = lkg_tool_word(hold, "uid"),
                   *state = lkg_tool_word(trial, "state");

        if (*mode && strcmp(mode, "free") != 0)
                add(events, lkg_tool_word(hold, "since"), "hold",
                    lkg_tool_format("%s: %s at generation %s, until now", events->component, mode,
                                    lkg_tool_word(hold, "generation")),
                    *uid ? lkg_tool_format("uid %s, pid %s, %s", uid, lkg_tool_word(hold, "pid"),
                                           lkg_tool_word(hold, "program"))
                         : NULL);
        if (*state)
                add(events, lkg_tool_word(trial, "started"), "trial",
                    lkg_tool_format("%s: trial began; its state now: %s", events->component, state), NULL);
}

static void add_condition(struct events *events)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *json =
                lkg_parts_json(events->parts, "status/%s/condition.json", events->component);

        add(events, lkg_tool_word(json, "lastTransitionTime"), "condition",
            lkg_tool_format("%s: condition %s: %s", events->component, lkg_tool_word(json, "status"),
                            lkg_tool_word(json, "reason")),
            NULL);
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

/* After `host lkgfs-engine[123]: ` */
static const char *message_of(const char *line, size_t size, size_t *ret_size)
{
        const char *program = memmem(line, size, "lkgfs", 5), *end = line + size;
        const char *colon = program ? memmem(program, (size_t)(end - program), ": ", 2) : NULL;

        if (!colon)
                return NULL;
        *ret_size = (size_t)(end - colon) - 2;
        return colon + 2;
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
static void add_log_line(struct events *events, const char *time, const char *message, size_t size)
{
        LKG_CLEANUP(lkg_freep) char *copy = lkg_tool_own(strndup(message, size));
        const char *kind = kind_of(copy);
        size_t n = events->n;
        char *by, *result, *who = NULL;

        if (!kind)
                return;
        by = strcmp(kind, "command") == 0 ? strstr(copy, " by uid ") : NULL;
        result = by ? strstr(by, ": ") : NULL;
        if (result) {
                who = lkg_tool_format("%.*s", (int)(result - by) - 4, by + 4);
                *by = '\0';
        }
        add(events, time, kind,
            lkg_tool_format("%s%s%s", copy, result ? ": " : "", result ? result + 2 : ""), who);
        if (events->n > n) /* the last line of a second is the newest */
                events->items[n].order = SIZE_MAX - n;
}

static void add_log(struct events *events)
{
        const char *text = lkg_parts_text(events->parts, "log"), *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                size_t message_size = 0, at;
                const char *message;
                char time[40];

                at = take_time(line, size, time);
                message = at ? message_of(line + at, size - at, &message_size) : NULL;
                if (message)
                        add_log_line(events, time, message, message_size);
        }
}

/* ---- the section ---- */

static int newest_first(const void *a, const void *b)
{
        const struct event *x = a, *y = b;

        if (x->time_ns / LKG_NSEC_PER_SEC != y->time_ns / LKG_NSEC_PER_SEC)
                return x->time_ns < y->time_ns ? 1 : -1;
        return x->order < y->order ? -1 : 1;
}

static void put_event(const struct event *event, struct lkg_buf *buf)
{
        char time[21];

        lkg_format_rfc3339(event->time_ns, time);
        lkg_buf_puts(buf, "<li><div>");
        lkg_html_time(buf, time);
        lkg_html(buf, "</div><div><span class=\"badge\">%s</span></div><div><p>%-s</p>", event->kind,
                 event->text);
        if (event->who)
                lkg_html(buf, "<p class=\"do\">by %s</p>", event->who);
        lkg_buf_puts(buf, "</div></li>\n");
}

void lkg_report_timeline(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        struct events events = { .parts = parts };
        char component[256];

        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                events.component = component;
                add_generations(&events);
                add_starts(&events);
                add_restarts(&events);
                add_marks(&events);
                add_hold(&events);
                add_condition(&events);
        }
        add_log(&events);
        if (events.n > 1)
                qsort(events.items, events.n, sizeof(*events.items), newest_first);
        lkg_html_section(buf, "timeline", "Timeline", "newest first, UTC");
        lkg_buf_puts(buf, events.n ? "<ol class=\"items line\">\n" : "<p>Nothing is known.</p>\n");
        for (size_t i = 0; i < events.n; i++) {
                put_event(&events.items[i], buf);
                free(events.items[i].text);
                free(events.items[i].who);
        }
        lkg_buf_puts(buf, events.n ? "</ol>\n</section>\n" : "</section>\n");
        free(events.items);
}
