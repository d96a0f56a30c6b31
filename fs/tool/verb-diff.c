/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs diff on documents: what each layer changes in the running result, as unified diffs; view-diff.c has the rest. Secret values are masked: a
 * diff is often shown to others.
 */
#include "tool.h"

#include <lkg/documents.h>

/* Return: 1; 0: no result after layer @i; -ENOMEM. */
static int render_merged(const struct lkg_candidate *candidate, size_t i, enum lkg_format format,
                         struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
        int r = lkg_candidate_merged(candidate, i, &merged);

        if (r < 0 || !merged)
                return r;
        r = lkg_tool_render_masked(merged, format, buf);
        return r < 0 ? r : 1;
}

/* The diff between layer @i and the result before it. Return: 1: there is one; 0; -ENOMEM. */
static int diff_layer(const struct lkg_candidate *candidate, size_t i, enum lkg_format format,
                      struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf before = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf after = LKG_BUF_INIT;
        const struct lkg_layer_info *layer = &candidate->layers[i], *lower = &candidate->layers[i - 1];
        LKG_CLEANUP(lkg_freep) char *name = NULL;
        int r = render_merged(candidate, i - 1, format, &before);

        if (r > 0)
                r = render_merged(candidate, i, format, &after);
        if (r == 0)
                return 0;
        if (r < 0)
                return r;
        if (asprintf(&name, "%s %s", lkg_layer_role_name(layer->role), layer->file) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        return lkg_render_diff(lower->file, before.data, before.size, name, after.data, after.size, buf);
}

static void add_item(const struct lkg_layer_info *layer, const char *text, struct lkg_value *list,
                     bool *failed)
{
        struct lkg_tool_map item;

        lkg_tool_map_init(&item, false);
        lkg_tool_map_string(&item, "role", lkg_layer_role_name(layer->role));
        lkg_tool_map_string(&item, "name", layer->name);
        lkg_tool_map_string(&item, "file", layer->file);
        lkg_tool_map_string(&item, "diff", text);
        lkg_tool_list_take(list, &item, failed);
}

static int print_layers(const struct lkg_tool *tool, const struct lkg_candidate *candidate)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        bool structured = tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML;
        bool colour = lkg_tool_colour_for(tool, STDOUT_FILENO), failed = false;
        struct lkg_value *list = structured ? lkg_value_new_list(NULL, 0, 0) : NULL;
        int status = LKG_TOOL_OK, r = 0;
        struct lkg_tool_map map;

        for (size_t i = 1; i < candidate->n_layers && r >= 0; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf one = LKG_BUF_INIT;

                r = diff_layer(candidate, i, candidate->format, &one);
                if (r <= 0)
                        continue;
                status = LKG_TOOL_DIFFERENT;
                if (structured)
                        add_item(&candidate->layers[i], one.data, list, &failed);
                else if (colour)
                        lkg_tool_paint_diff(one.data, one.size, &buf);
                else
                        lkg_buf_append(&buf, one.data, one.size);
        }
        if (r < 0) {
                lkg_value_unref(list);
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r));
        }
        if (!structured)
                return lkg_tool_print(&buf, status);
        lkg_tool_map_init(&map, true);
        map.failed |= failed;
        lkg_tool_map_value(&map, "layers", list);
        return lkg_tool_print_map(tool, &map, status);
}

int lkg_verb_diff(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        int r;

        if (lkg_tool_diff_is_of_view(tool))
                return lkg_tool_diff_view(tool);
        r = lkg_tool_sources_load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        lkg_tool_print_findings(tool, STDERR_FILENO, &sources.candidate->report);
        if (!sources.candidate->doc)
                return LKG_TOOL_DIFFERENT;
        return print_layers(tool, sources.candidate);
}
