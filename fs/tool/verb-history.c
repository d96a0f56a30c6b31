/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs history: lists the generations in history/<component>/, newest first; the one served is marked. */
#include "tool.h"

static uint64_t served_generation(const struct lkg_view *view, const char *component)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        return lkg_view_read(view, &text, NULL, "status/%s/generation", component) < 0
                       ? 0
                       : strtoull(text, NULL, 10);
}

static const char *text_of(const struct lkg_value *meta, const char *key)
{
        const char *text = meta ? lkg_map_get_string(meta, key) : NULL;

        return text ? text : "-";
}

static void text_line(uint64_t number, bool served, const struct lkg_value *meta, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%c %10llu  %-20s  %-12.12s  %s\n", served ? '*' : ' ',
                       (unsigned long long)number, text_of(meta, "time"), text_of(meta, "sha256"),
                       text_of(meta, "source"));
}

static void structured_line(uint64_t number, bool served, struct lkg_value *meta, struct lkg_value *list,
                            bool *failed)
{
        struct lkg_tool_map item;

        lkg_tool_map_init(&item, false);
        lkg_tool_map_number(&item, "generation", number);
        lkg_tool_map_bool(&item, "served", served);
        if (meta)
                lkg_tool_map_value(&item, "meta", lkg_value_ref(meta));
        lkg_tool_list_take(list, &item, failed);
}

static int print_history(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                         const uint64_t *numbers, size_t n)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        bool structured = tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML;
        struct lkg_value *list = structured ? lkg_value_new_list(NULL, 0, 0) : NULL;
        uint64_t served = served_generation(view, component);
        struct lkg_tool_map map;
        bool failed = false;

        lkg_buf_puts(&buf, "  GENERATION  TIME                  SHA256        SOURCE\n");
        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *meta = lkg_view_read_json(view, "history/%s/%llu/meta.json", component,
                                                            (unsigned long long)numbers[i]);

                if (structured)
                        structured_line(numbers[i], numbers[i] == served, meta, list, &failed);
                else
                        text_line(numbers[i], numbers[i] == served, meta, &buf);
        }
        if (!structured)
                return lkg_tool_print(&buf, LKG_TOOL_OK);
        lkg_tool_map_init(&map, true);
        map.failed |= failed;
        lkg_tool_map_string(&map, "component", component);
        lkg_tool_map_value(&map, "generations", list);
        return lkg_tool_print_map(tool, &map, LKG_TOOL_OK);
}

int lkg_verb_history(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        LKG_CLEANUP(lkg_freep) uint64_t *numbers = NULL;
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        size_t n = 0;
        int r;

        r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(tool, &view, &component);
        if (r != LKG_TOOL_OK)
                return r;
        if (asprintf(&path, "history/%s", component) < 0) {
                path = NULL;
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        }
        r = lkg_view_list_numbers(&view, path, &numbers, &n);
        if (r < 0 && r != -ENOENT) /* nothing has been served yet: an empty history */
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s/%s': %s", view.root, path, strerror(-r));
        return print_history(tool, &view, component, numbers, n);
}
