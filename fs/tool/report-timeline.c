/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened, the newest first, and who did it: generations, starts and restarts of the component, marks, holds and trials
 * from the view, commands and crashes from the log.
 */
#include "report-page.h"

#include <stdarg.h>

#include <lkg/base.h>
#include <lkg/documents.h>

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
        bool failed;
};

/* Takes @text and @who over. */
static void add(struct events *events, const char *time, const char *kind, char *text, char *who)
{
        uint64_t time_ns = 0;

        if (!text || (time && lkg_parse_rfc3339(time, &time_ns) < 0) || !time) {
                events->failed |= !text;
                free(text);
                free(who);
                return;
        }
        if (LKG_RESERVE(events->items, events->n, events->n_allocated) < 0) {
                events->failed = true;
                free(text);
                free(who);
                return;
        }
        events->items[events->n] = (struct event){ time_ns, events->n, kind, text, who };
        events->n++;
}

static char *format(const char *fmt, ...) LKG_PRINTF(1, 2);

static char *format(const char *fmt, ...)
{
        char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        if (vasprintf(&text, fmt, ap) < 0)
                text = NULL;
        va_end(ap);
        return text;
}

static const char *word(const struct lkg_value *map, const char *key)
{
        const char *text = map ? lkg_map_get_string(map, key) : NULL;

        return text ? text : "";
}

/* ---- generations ---- */

static const struct lkg_value *find_layer(const struct lkg_value *meta, const struct lkg_value *layer)
{
        const struct lkg_value *list = meta ? lkg_map_get(meta, "layers") : NULL;

        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);

                if (strcmp(word(item, "role"), word(layer, "role")) == 0 &&
                    strcmp(word(item, "name"), word(layer, "name")) == 0)
                        return item;
        }
        return NULL;
}

/* The layers of @meta that @other does not have, or has with other content. */
static void put_layers(const struct lkg_value *meta, const struct lkg_value *other, bool compare,
                       const char *what, struct lkg_buf *buf)
{
        const struct lkg_value *list = lkg_map_get(meta, "layers");

        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const struct lkg_value *layer = lkg_list_get(list, i), *before = find_layer(other, layer);

                if (compare ? before && strcmp(word(before, "sha256"), word(layer, "sha256")) != 0 : !before)
                        lkg_buf_printf(buf, "%s%s %s %s", buf->size ? ", " : "; ", what, word(layer, "role"),
                                       word(layer, "name"));
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
        lkg_buf_putc(&changes, '\0');
        if (lkg_buf_failed(&changes)) {
                events->failed = true;
                return;
        }
        add(events, word(meta, "time"), "generation",
            format("%s: generation %llu of %s%s", events->component,
                   (unsigned long long)lkg_record_number(meta, "generation", 0), word(meta, "source"),
                   changes.data),
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
                    format("%s started", events->component), NULL);
}

static void add_restarts(struct events *events)
{
        const char *line = lkg_parts_text(events->parts, "status/%s/restarts", events->component);

        for (; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0')) {
                LKG_CLEANUP(lkg_freep) char *time = strndup(line, strcspn(line, " \n"));
                size_t n = strcspn(line, "\n"), at = time ? strlen(time) : n;

                add(events, time, "restart",
                    format("%s: restart asked for:%.*s", events->component, (int)(n - at), line + at),
                    strdup("lkgfs"));
        }
}

static void add_marks(struct events *events)
{
        char prefix[300];

        (void)snprintf(prefix, sizeof(prefix), "bad/%s/", events->component);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(events->parts, part, prefix));) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *mark = lkg_parts_json(events->parts, "%s", part->name);

                add(events, word(mark, "time"),
                    strcmp(word(mark, "cause"), "crash_loop") == 0 ? "rollback" : "marked bad",
                    format("%s: %s: %s", events->component, part->name + strlen(prefix),
                           word(mark, "reason")),
                    strcmp(word(mark, "cause"), "crash_loop") == 0 ? strdup("lkgfs: crash loop") : NULL);
        }
}

static void add_hold(struct events *events)
{
        const char *hold = lkg_parts_text(events->parts, "status/%s/hold", events->component);
        const char *trial = lkg_parts_text(events->parts, "status/%s/trial", events->component);
        char mode[256], since[256], generation[256], uid[256] = "", pid[256] = "", program[256] = "";

        if (lkg_report_fact(hold, "mode", mode) && strcmp(mode, "free") != 0 &&
            lkg_report_fact(hold, "since", since)) {
                (void)lkg_report_fact(hold, "generation", generation);
                (void)lkg_report_fact(hold, "uid", uid);
                (void)lkg_report_fact(hold, "pid", pid);
                (void)lkg_report_fact(hold, "program", program);
                add(events, since, "hold",
                    format("%s: %s at generation %s, until now", events->component, mode, generation),
                    *uid ? format("uid %s, pid %s, %s", uid, pid, program) : NULL);
        }
        if (lkg_report_fact(trial, "started", since) && lkg_report_fact(trial, "state", mode))
                add(events, since, "trial",
                    format("%s: trial began; its state now: %s", events->component, mode), NULL);
}

static void add_condition(struct events *events)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *json =
                lkg_parts_json(events->parts, "status/%s/condition.json", events->component);

        add(events, word(json, "lastTransitionTime"), "condition",
            format("%s: condition %s: %s", events->component, word(json, "status"), word(json, "reason")),
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
        LKG_CLEANUP(lkg_freep) char *copy = strndup(message, size);
        const char *kind = copy ? kind_of(copy) : NULL;
        size_t n = events->n;
        char *by, *result, *who = NULL;

        if (!kind)
                return;
        by = strcmp(kind, "command") == 0 ? strstr(copy, " by uid ") : NULL;
        result = by ? strstr(by, ": ") : NULL;
        if (result) {
                who = format("%.*s", (int)(result - by) - 4, by + 4);
                *by = '\0';
        }
        add(events, time, kind, format("%s%s%s", copy, result ? ": " : "", result ? result + 2 : ""), who);
        if (events->n > n) /* the last line of a second is the newest */
                events->items[n].order = SIZE_MAX - n;
}

static void add_log(struct events *events)
{
        const char *line = lkg_parts_text(events->parts, "log");

        for (; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0')) {
                size_t size = strcspn(line, "\n"), message_size = 0, at;
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
        lkg_buf_puts(buf, "</div><div>");
        lkg_html_element(buf, "span", "badge", event->kind);
        lkg_buf_puts(buf, "</div><div><p>");
        lkg_html_prose(buf, event->text);
        lkg_buf_puts(buf, "</p>");
        if (event->who) {
                lkg_buf_puts(buf, "<p class=\"do\">by ");
                lkg_html_text(buf, event->who);
                lkg_buf_puts(buf, "</p>");
        }
        lkg_buf_puts(buf, "</div></li>\n");
}

static void read_events(struct events *events)
{
        char component[256];

        for (size_t i = 0; lkg_parts_under(events->parts, "status/", i, component); i++) {
                events->component = component;
                add_generations(events);
                add_starts(events);
                add_restarts(events);
                add_marks(events);
                add_hold(events);
                add_condition(events);
        }
        events->component = NULL;
        add_log(events);
}

void lkg_report_timeline(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        struct events events = { .parts = parts };

        read_events(&events);
        if (events.n > 1)
                qsort(events.items, events.n, sizeof(*events.items), newest_first);
        lkg_html_section(buf, "timeline", "Timeline", "newest first, UTC");
        lkg_buf_puts(buf, events.n ? "<ol class=\"items line\">\n" : "<p>Nothing is known.</p>\n");
        for (size_t i = 0; i < events.n; i++)
                put_event(&events.items[i], buf);
        lkg_buf_puts(buf, events.n ? "</ol>\n</section>\n" : "</section>\n");
        buf->failed |= events.failed;
        for (size_t i = 0; i < events.n; i++) {
                free(events.items[i].text);
                free(events.items[i].who);
        }
        free(events.items);
}
