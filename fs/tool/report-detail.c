/* SPDX-License-Identifier: Apache-2.0 */
/* What one looks up in a report: differences and marks, where each field comes from, processes, environment, log, what is missing. */
#include "report.h"
#include "known.h"

#define OPEN_MAX 1  /* differences that are shown without a click */
#define COLOURS  10 /* of layers */

/* ---- what changed from one generation to the next, and what differs from what runs ---- */

/* The document of a generation: the file of its directory that is not one of the history's own. */
static const struct lkg_part *document_of(const struct lkg_parts *parts, const char *component,
                                          const char *number)
{
        char prefix[600];

        (void)snprintf(prefix, sizeof(prefix), "history/%s/%s/", component, number);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, prefix));) {
                const char *name = part->name + strlen(prefix);

                if (strcmp(name, "origin") != 0 && strcmp(name, "meta.json") != 0 && part->error == 0)
                        return part;
        }
        return NULL;
}

static void put_difference(const struct lkg_parts *parts, const char *component, const char *from,
                           const char *to, bool open, struct lkg_buf *buf)
{
        const struct lkg_part *a = document_of(parts, component, from),
                              *b = document_of(parts, component, to);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf diff = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *a_name = lkg_tool_format("generation %s", from);
        LKG_CLEANUP(lkg_freep) char *b_name = lkg_tool_format("generation %s", to);

        lkg_html(buf, "<details%s><summary>%s → %s</summary>\n", open ? " open" : "", a_name, b_name);
        if (a && b)
                (void)lkg_tool_need(
                        lkg_render_diff(a_name, a->data, a->size, b_name, b->data, b->size, &diff));
        if (!a || !b)
                lkg_buf_puts(buf, "<p>A document of the two could not be read.</p>\n");
        else if (!diff.size)
                lkg_buf_puts(buf, "<p>They are equal, secrets and layers aside.</p>\n");
        else
                lkg_html_diff(buf, lkg_tool_text(&diff));
        lkg_buf_puts(buf, "</details>\n");
}

static void put_generations(const struct lkg_parts *parts, const char *component, struct lkg_buf *buf)
{
        char prefix[300], newer[256] = "", older[256];
        size_t n = 0;

        (void)snprintf(prefix, sizeof(prefix), "history/%s/", component);
        (void)lkg_parts_under(parts, prefix, 0, newer);
        for (; lkg_parts_under(parts, prefix, n + 1, older); n++) {
                put_difference(parts, component, older, newer, n < OPEN_MAX, buf);
                memcpy(newer, older, sizeof(newer));
        }
        if (n == 0)
                lkg_buf_puts(buf, "<p>There are no two generations to compare.</p>\n");
}

void lkg_report_changes(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        const char *diff, *drift;
        char component[256];

        lkg_html_section(buf, "changes", "Differences between generations", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                lkg_html(buf, "<h3>%s</h3>", component);
                put_generations(parts, component, buf);
                diff = lkg_parts_text(parts, "status/%s/diff", component);
                drift = lkg_parts_text(parts, "status/%s/drift", component);
                if (*diff) {
                        lkg_buf_puts(buf,
                                     "<details><summary>From the last known good document to the served "
                                     "one</summary>\n");
                        lkg_html_diff(buf, diff);
                        lkg_buf_puts(buf, "</details>\n");
                }
                if (*drift)
                        lkg_html(
                                buf,
                                "<details><summary>What the running component does not have yet: field, its "
                                "value, the served one</summary>\n<pre "
                                "class=\"wrap\">%s</pre>\n</details>\n",
                                drift);
        }
        if (!lkg_parts_next(parts, NULL, "status/"))
                lkg_buf_puts(buf, "<p>There is no view to read.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}

void lkg_report_bad(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        bool any = lkg_parts_next(parts, NULL, "bad/");

        lkg_html_section(buf, "bad", "Configurations marked bad", NULL);
        lkg_buf_puts(buf, any ? "<table><thead><tr><th>Configuration</th><th>Since</th><th>Cause</th>"
                                "<th>Reason</th></tr></thead>\n<tbody>\n"
                              : "<p>None is known.</p>\n");
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, "bad/"));) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *mark = lkg_parts_json(parts, "%s", part->name);

                lkg_html(buf,
                         "<tr><td class=\"mono\">%s</td><td data-label=\"since\">%s</td>"
                         "<td data-label=\"cause\">%s</td><td data-label=\"reason\">%s</td></tr>\n",
                         part->name + strlen("bad/"), lkg_tool_word(mark, "time"),
                         lkg_tool_word(mark, "cause"), lkg_tool_word(mark, "reason"));
        }
        lkg_buf_puts(buf, any ? "</tbody></table>\n</section>\n" : "</section>\n");
}

/* ---- fields and their layers: a letter, a colour and a name; neither is needed to understand the other ---- */

enum { FIELD, VALUE, LAYER, WHERE, SHADOWS, N_ORIGINS };

struct origins {
        struct lkg_strings layers; /* in the order in which they appear in the legend */
        size_t *n_fields;          /* of each */
        struct lkg_buf rows;
};

static size_t layer_number(struct origins *origins, const char *name)
{
        size_t n = origins->layers.n_items;

        for (size_t i = 0; i < n; i++)
                if (strcmp(origins->layers.items[i], name) == 0)
                        return i;
        (void)lkg_tool_need(LKG_GROW(origins->n_fields, n));
        origins->n_fields[n] = 0;
        lkg_tool_add_word(&origins->layers, name);
        return n;
}

/* All layers in the order of the merge, by the names of their files: `0003-drop-in-50-x.conf.yaml`. */
static void add_layers(struct origins *origins, const struct lkg_parts *parts, const char *component)
{
        static const char *const roles[] = { "base", "remote", "patch", "drop-in", "instance" };
        static const char end[] = ".yaml", merged[] = ".merged.yaml";
        char prefix[300];

        (void)snprintf(prefix, sizeof(prefix), "layers/%s/", component);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, prefix));) {
                const char *name = part->name + strlen(prefix), *dash = strchr(name, '-');
                size_t size = strlen(name);

                if (!dash || size < sizeof(merged) || strcmp(name + size - strlen(merged), merged) == 0)
                        continue;
                for (size_t i = 0; i < LKG_ARRAY_SIZE(roles); i++) {
                        size_t n = strlen(roles[i]);
                        LKG_CLEANUP(lkg_freep) char *layer = NULL;

                        if (strncmp(dash + 1, roles[i], n) != 0 || dash[n + 1] != '-')
                                continue;
                        layer = lkg_tool_format("%s %.*s", roles[i],
                                                (int)(strlen(dash + n + 2) - strlen(end)), dash + n + 2);
                        (void)layer_number(origins, layer);
                }
        }
}

/* A, B, ..., Z, AA, AB, ... */
static void put_key(struct lkg_buf *buf, size_t layer)
{
        char letters[8], *p = letters + sizeof(letters) - 1;

        *p = '\0';
        for (size_t n = layer + 1; n > 0 && p > letters; n = (n - 1) / 26)
                *--p = (char)('A' + (n - 1) % 26);
        lkg_html(buf, "<span class=\"key l%zu\">%s</span>", layer % COLOURS, p);
}

static void add_row(struct origins *origins, const char *const columns[static N_ORIGINS])
{
        size_t layer = layer_number(origins, columns[LAYER]);
        struct lkg_buf *buf = &origins->rows;

        origins->n_fields[layer]++;
        lkg_html(buf, "<tr class=\"l%zu\"><td>", layer % COLOURS);
        put_key(buf, layer);
        lkg_html(buf,
                 "</td><td class=\"mono\" data-label=\"\">%s</td><td class=\"mono\" data-label=\"\">%s</td>"
                 "<td class=\"where\" data-label=\"\">%s</td>"
                 "<td class=\"was\" data-label=\"instead of\">%s</td></tr>\n",
                 columns[FIELD], columns[VALUE], columns[WHERE], columns[SHADOWS]);
}

/* Lines of status/<component>/origin; the last one may be a comment that counts those left out. */
static void add_lines(struct origins *origins, const char *text)
{
        const char *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                LKG_CLEANUP(lkg_freep) char *copy = lkg_tool_own(strndup(line, size));
                const char *columns[N_ORIGINS] = { "", "", "", "", "" };
                char *rest = copy;
                size_t n = 0;

                for (; rest && n < N_ORIGINS; n++)
                        columns[n] = strsep(&rest, "\t");
                if (n > LAYER)
                        add_row(origins, columns);
        }
}

/* The same from `lkgfs blame -o json`. */
static void add_judged(struct origins *origins, const struct lkg_value *blame)
{
        const struct lkg_value *list;
        size_t n = lkg_tool_items(blame, "fields", &list);

        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf value = LKG_BUF_INIT;
                const struct lkg_value *item = lkg_list_get(list, i), *json = lkg_map_get(item, "value");

                if (json)
                        lkg_render_json_compact(json, &value);
                add_row(origins, (const char *const[N_ORIGINS]){
                                         [FIELD] = lkg_tool_word(item, "field"),
                                         [VALUE] = lkg_tool_text(&value),
                                         [LAYER] = lkg_tool_word(item, "layer"),
                                         [WHERE] = lkg_tool_word(item, "where"),
                                         [SHADOWS] = lkg_tool_word(item, "shadows"),
                                 });
        }
}

/* @missing: why there may be none */
static void put_origins(struct origins *origins, const char *component, const char *missing,
                        struct lkg_buf *buf)
{
        bool any = origins->rows.size;

        lkg_html(buf, "<h3>%s</h3>", component);
        if (!any)
                lkg_html(buf, "<p>%s</p>", missing);
        lkg_buf_puts(buf, "<ul class=\"legend\">\n");
        for (size_t i = 0; i < origins->layers.n_items; i++) {
                lkg_buf_puts(buf, "<li>");
                put_key(buf, i);
                lkg_html(buf, " %s <span class=\"soft\">%zu field%s</span></li>\n", origins->layers.items[i],
                         origins->n_fields[i], origins->n_fields[i] == 1 ? "" : "s");
        }
        lkg_buf_puts(buf, "</ul>\n");
        if (any) {
                lkg_buf_puts(buf, "<table class=\"fields\"><thead><tr><th>Layer</th><th>Field</th>"
                                  "<th>Value</th><th>Place</th><th>Instead of</th></tr></thead>\n<tbody>\n");
                lkg_buf_puts(buf, lkg_tool_text(&origins->rows));
                lkg_buf_puts(buf, "</tbody></table>\n");
        }
        lkg_strings_deinit(&origins->layers);
        free(origins->n_fields);
        lkg_buf_deinit(&origins->rows);
}

void lkg_report_origins(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        char component[256];
        bool any = false;

        lkg_html_section(buf, "layers", "Fields and the layers they come from", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                struct origins origins = { .rows = LKG_BUF_INIT };

                any = true;
                add_layers(&origins, parts, component);
                add_lines(&origins, lkg_parts_text(parts, "status/%s/origin", component));
                put_origins(&origins, component, "Where its fields come from could not be read.", buf);
        }
        for (size_t i = 0; lkg_parts_under(parts, "judged/", i, component); i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *blame = lkg_parts_json(parts, "judged/%s/origin.json", component);
                struct origins origins = { .rows = LKG_BUF_INIT };

                any = true;
                add_judged(&origins, blame);
                put_origins(&origins, component,
                            "The layers do not make a valid document: see the findings.", buf);
        }
        lkg_buf_puts(buf, any ? "</section>\n" : "<p>There are no layers to read.</p>\n</section>\n");
}

/* ---- processes ---- */

/* The columns of environment/processes; the last two, program and command line, share a cell. */
static void put_process(char *line, struct lkg_buf *buf)
{
        static const char *const labels[] = { "", "pid", "parent", "uid", "state", "memory", "started" };

        lkg_buf_puts(buf, "<tr>");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(labels); i++)
                lkg_html(buf, "<td class=\"num\" data-label=\"%s\">%s</td>", labels[i],
                         line ? strsep(&line, "\t") : "");
        lkg_html(buf, "<td class=\"mono long\">%s", line ? strsep(&line, "\t") : "");
        lkg_html(buf, "<br><span class=\"soft\">%s</span></td></tr>\n", line ? line : "");
}

/* As the file server knows it, which is told of each death. */
static void put_told(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        struct lkg_processes processes = { .n = 0 };
        char component[256];

        if (lkg_parts_under(parts, "status/", 0, component))
                lkg_processes_parse(lkg_parts_text(parts, "status/%s/metrics.prom", component), &processes);
        if (processes.n == 0)
                return;
        lkg_buf_puts(buf, "<p>The file server says: ");
        for (size_t i = 0; i < processes.n; i++) {
                const struct lkg_process_told *told = &processes.items[i];
                const char *advice = NULL;

                lkg_html(buf, "%s%s", i ? ", " : "", told->name);
                if (told->up)
                        lkg_buf_puts(buf, " runs");
                else
                        lkg_html(buf, " does not run (%s)", lkg_process_loss(told->name, &advice));
        }
        lkg_buf_puts(buf, processes.engine_silent ? "; the engine does not answer.</p>\n" : ".</p>\n");
}

void lkg_report_processes(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        const char *text = lkg_parts_text(parts, "environment/processes"), *line;
        bool any = *text;
        size_t size;

        lkg_html_section(buf, "processes", "Processes", NULL);
        put_told(parts, buf);
        lkg_buf_puts(buf, any ? "<table><thead><tr><th>Process</th><th>Pid</th><th>Parent</th><th>Uid</th>"
                                "<th>State</th><th>Memory</th><th>Started</th>"
                                "<th>Program, command line</th></tr></thead>\n<tbody>\n"
                              : "<p>No process of lkgfs, kubelet or kube-proxy was found.</p>\n");
        while (lkg_tool_next_line(&text, &line, &size)) {
                LKG_CLEANUP(lkg_freep) char *copy = lkg_tool_own(strndup(line, size));

                put_process(copy, buf);
        }
        lkg_buf_puts(buf, any ? "</tbody></table>\n</section>\n" : "</section>\n");
}

/* ---- environment ---- */

static void put_pairs(const char *text, struct lkg_buf *buf)
{
        const char *line;
        size_t size;

        lkg_buf_puts(buf, "<dl>\n");
        while (lkg_tool_next_line(&text, &line, &size)) {
                LKG_CLEANUP(lkg_freep) char *key = lkg_tool_own(strndup(line, size));
                char *value = strchr(key, '=');

                if (!value || !value[1])
                        continue;
                *value++ = '\0';
                for (char *p = key; (p = strchr(p, '_'));)
                        *p = ' ';
                lkg_html(buf, "<dt>%s</dt><dd>%s</dd>\n", key, value);
        }
        lkg_buf_puts(buf, "</dl>\n");
}

static void put_part(const struct lkg_part *part, const char *title, struct lkg_buf *buf)
{
        if (!part)
                return;
        lkg_html(buf,
                 part->error < 0
                         ? "<details><summary>%s</summary>\n<p>It could not be read: %s.</p>\n</details>\n"
                         : "<details><summary>%s</summary>\n<pre class=\"wrap\">%s</pre>\n</details>\n",
                 title,
                 part->error < 0 ? strerror(-part->error)
                 : *part->data   ? part->data
                                 : "(empty)");
}

void lkg_report_environment(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        lkg_html_section(buf, "environment", "Environment", NULL);
        put_pairs(lkg_parts_text(parts, "environment/system"), buf);
        put_part(lkg_parts_find(parts, "environment/mounts"), "Mounts of lkgfs", buf);
        put_part(lkg_parts_find(parts, "environment/lkgfs.service"), "systemd: lkgfs.service", buf);
        put_part(lkg_parts_find(parts, "environment/systemd"), "systemd: version", buf);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, "config/"));)
                put_part(part, part->name + strlen("config"), buf);
        if (!lkg_parts_next(parts, NULL, "config/"))
                lkg_buf_puts(buf, "<p>There is no configuration of lkgfs: the defaults count.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}

void lkg_report_log(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        const struct lkg_part *log = lkg_parts_find(parts, "log");

        lkg_html_section(buf, "log", "Log of lkgfs", NULL);
        put_part(log, "The last messages", buf);
        if (!log)
                lkg_buf_puts(buf, "<p>The journal has none. If lkgfsd logs to a file, name it: <code>lkgfs "
                                  "report --log FILE</code>.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}

/* ---- what is missing ---- */

static const char *reason_of(int error)
{
        return error == -EINPROGRESS || error == -ETIMEDOUT ? "it gave no answer in time"
               : error == -EBADMSG  ? "it cannot be decoded, so its secrets could not be masked"
               : error == -EFBIG    ? "it is too large"
               : error == -ENOTCONN ? "there is no view"
                                    : strerror(-error);
}

void lkg_report_unread(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        bool any = false;

        lkg_html_section(buf, "unread", "What could not be read", NULL);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, ""));) {
                if (part->error == 0)
                        continue;
                lkg_buf_puts(buf, any ? "" : "<dl>\n");
                any = true;
                lkg_html(buf, "<dt class=\"mono\">%s</dt><dd>%s</dd>\n", part->name,
                         *part->data ? part->data : reason_of(part->error));
        }
        lkg_buf_puts(buf, any ? "</dl>\n" : "<p>Everything was read.</p>\n");
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, ""));)
                if (strstr(part->name, ".messages"))
                        put_part(part, part->name, buf);
        lkg_buf_puts(buf, "</section>\n");
}
