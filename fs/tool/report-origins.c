/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each field of the document with the layer that it comes from. A layer has a letter, a colour and its name; a row shows the
 * letter and the colour, so neither is needed to understand the other.
 */
#include "report-page.h"

#include <lkg/documents.h>
#include <lkg/text.h>

#define COLOURS   10
#define N_COLUMNS 5

enum { FIELD, VALUE, LAYER, WHERE, SHADOWS };

struct origins {
        char **layers; /* in the order in which they appear in the legend */
        size_t n_layers;
        size_t *n_fields; /* of each */
        struct lkg_buf rows;
        bool failed;
};

static size_t layer_number(struct origins *origins, const char *name)
{
        size_t *grown;

        for (size_t i = 0; i < origins->n_layers; i++)
                if (strcmp(origins->layers[i], name) == 0)
                        return i;
        grown = reallocarray(origins->n_fields, origins->n_layers + 1, sizeof(*grown));
        if (!grown || lkg_strings_take(&origins->layers, &origins->n_layers, strdup(name)) < 0) {
                origins->n_fields = grown ? grown : origins->n_fields;
                origins->failed = true;
                return 0;
        }
        origins->n_fields = grown;
        grown[origins->n_layers - 1] = 0;
        return origins->n_layers - 1;
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
                        if (asprintf(&layer, "%s %.*s", roles[i], (int)(strlen(dash + n + 2) - strlen(end)),
                                     dash + n + 2) < 0)
                                layer = NULL;
                        if (layer)
                                (void)layer_number(origins, layer);
                        origins->failed |= !layer;
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
        lkg_buf_printf(buf, "<span class=\"key l%zu\">%s</span>", layer % COLOURS, p);
}

static void put_cell(struct lkg_buf *buf, const char *class, const char *label, const char *text)
{
        lkg_buf_printf(buf, "<td class=\"%s\" data-label=\"%s\">", class, label);
        lkg_html_text(buf, text);
        lkg_buf_puts(buf, "</td>");
}

static void add_row(struct origins *origins, const char *const columns[static N_COLUMNS])
{
        size_t layer = layer_number(origins, columns[LAYER]);
        struct lkg_buf *buf = &origins->rows;

        if (origins->failed)
                return;
        origins->n_fields[layer]++;
        lkg_buf_printf(buf, "<tr class=\"l%zu\"><td>", layer % COLOURS);
        put_key(buf, layer);
        lkg_buf_puts(buf, "</td>");
        put_cell(buf, "mono", "", columns[FIELD]);
        put_cell(buf, "mono", "", columns[VALUE]);
        put_cell(buf, "where", "", columns[WHERE]);
        put_cell(buf, "was", "instead of", columns[SHADOWS]);
        lkg_buf_puts(buf, "</tr>\n");
}

/* Lines of status/<component>/origin; the last one may be a comment that counts those left out. */
static void add_lines(struct origins *origins, const char *text)
{
        while (*text) {
                LKG_CLEANUP(lkg_freep) char *line = strndup(text, strcspn(text, "\n"));
                const char *columns[N_COLUMNS] = { "", "", "", "", "" };
                size_t n = 0;

                text += strcspn(text, "\n");
                text += *text != '\0';
                if (!line) {
                        origins->failed = true;
                        return;
                }
                for (char *p = line; p && n < N_COLUMNS; n++) {
                        columns[n] = strsep(&p, "\t");
                }
                if (n > LAYER)
                        add_row(origins, columns);
        }
}

/* The same from `lkgfs blame -o json`. */
static void add_judged(struct origins *origins, const struct lkg_value *blame)
{
        static const char *const keys[N_COLUMNS] = { "field", NULL, "layer", "where", "shadows" };
        const struct lkg_value *list = blame ? lkg_map_get(blame, "fields") : NULL;

        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf value = LKG_BUF_INIT;
                const struct lkg_value *item = lkg_list_get(list, i), *json = lkg_map_get(item, "value");
                const char *columns[N_COLUMNS];

                for (size_t k = 0; k < N_COLUMNS; k++) {
                        columns[k] = keys[k] ? lkg_map_get_string(item, keys[k]) : NULL;
                        columns[k] = columns[k] ? columns[k] : "";
                }
                if (json)
                        lkg_render_json_compact(json, &value);
                lkg_buf_putc(&value, '\0');
                origins->failed |= lkg_buf_failed(&value);
                if (!lkg_buf_failed(&value)) {
                        columns[VALUE] = value.data;
                        add_row(origins, columns);
                }
        }
}

/* @missing: why there may be none */
static void put_origins(struct origins *origins, const char *component, const char *missing,
                        struct lkg_buf *buf)
{
        lkg_html_element(buf, "h3", NULL, component);
        if (!origins->rows.size)
                lkg_html_element(buf, "p", NULL, missing);
        lkg_buf_puts(buf, "<ul class=\"legend\">\n");
        for (size_t i = 0; i < origins->n_layers; i++) {
                lkg_buf_puts(buf, "<li>");
                put_key(buf, i);
                lkg_buf_putc(buf, ' ');
                lkg_html_text(buf, origins->layers[i]);
                lkg_buf_printf(buf, " <span class=\"soft\">%zu field%s</span></li>\n", origins->n_fields[i],
                               origins->n_fields[i] == 1 ? "" : "s");
        }
        lkg_buf_puts(buf, "</ul>\n");
        if (origins->rows.size) {
                lkg_buf_puts(buf, "<table "
                                  "class=\"fields\"><thead><tr><th>Layer</th><th>Field</th><th>Value</"
                                  "th><th>Place</th>"
                                  "<th>Instead of</th></tr></thead>\n<tbody>\n");
                lkg_buf_append(buf, origins->rows.data, origins->rows.size);
                lkg_buf_puts(buf, "</tbody></table>\n");
        }
        buf->failed |= origins->failed || origins->rows.failed;
}

static void origins_deinit(struct origins *origins)
{
        lkg_view_free_mounts(origins->layers, origins->n_layers);
        free(origins->n_fields);
        lkg_buf_deinit(&origins->rows);
}

void lkg_report_origins(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        char component[256];

        lkg_html_section(buf, "layers", "Fields and the layers they come from", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                LKG_CLEANUP(origins_deinit) struct origins origins = { 0 };

                add_layers(&origins, parts, component);
                add_lines(&origins, lkg_parts_text(parts, "status/%s/origin", component));
                put_origins(&origins, component, "Where its fields come from could not be read.", buf);
        }
        for (size_t i = 0; lkg_parts_under(parts, "judged/", i, component); i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *blame = lkg_parts_json(parts, "judged/%s/origin.json", component);
                LKG_CLEANUP(origins_deinit) struct origins origins = { 0 };

                add_judged(&origins, blame);
                put_origins(&origins, component,
                            "The layers do not make a valid document: see the findings.", buf);
        }
        if (!lkg_parts_under(parts, "status/", 0, component) &&
            !lkg_parts_under(parts, "judged/", 0, component))
                lkg_buf_puts(buf, "<p>There are no layers to read.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}
