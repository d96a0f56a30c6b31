/* SPDX-License-Identifier: Apache-2.0 */
/* The suspects of a bad mark as lines for people: the same after `bad ID` and below `diff --bad ID`. */
#include "tool.h"

#include <inttypes.h>

#include <lkg/schema.h>

static const char *text_of(const struct lkg_value *item, const char *key, const char *fallback)
{
        const char *text = lkg_map_get_string(item, key);

        return text ? text : fallback;
}

static void put_place(const struct lkg_value *item, struct lkg_buf *buf)
{
        const char *layer = lkg_map_get_string(item, "layer");
        const char *file = lkg_map_get_string(item, "file");
        uint64_t line = lkg_suspects_number(item, "line");

        if (!layer)
                return;
        lkg_buf_puts(buf, "  ");
        lkg_tool_put_clean(buf, *layer ? layer : "-");
        if (!file || !*file)
                return;
        lkg_buf_puts(buf, " (");
        lkg_tool_put_clean(buf, file);
        if (line)
                lkg_buf_printf(buf, ":%" PRIu64, line);
        lkg_buf_putc(buf, ')');
}

static void put_item(const struct lkg_value *item, struct lkg_buf *buf)
{
        const char *before = lkg_map_get_string(item, "old"), *after = lkg_map_get_string(item, "new");

        lkg_buf_printf(buf, "%-8s  %-8s  ", text_of(item, "danger", "-"), text_of(item, "changeClass", "-"));
        lkg_tool_put_clean(buf, text_of(item, "pointer", ""));
        lkg_buf_puts(buf, ": ");
        if (before && after && strcmp(before, after) == 0) {
                lkg_buf_puts(buf, "another value, which is not shown");
        } else {
                lkg_tool_put_clean(buf, before ? before : "unset");
                lkg_buf_puts(buf, " -> ");
                lkg_tool_put_clean(buf, after ? after : "unset");
        }
        put_place(item, buf);
        lkg_buf_putc(buf, '\n');
}

void lkg_tool_put_suspects(const struct lkg_value *suspects, struct lkg_buf *buf)
{
        const struct lkg_value *fields =
                lkg_suspects_known(suspects) ? lkg_map_get(suspects, "fields") : NULL;
        uint64_t more = lkg_suspects_number(suspects, "notListed");

        if (!fields)
                return;
        if (lkg_value_size(fields) == 0) {
                lkg_buf_puts(buf, "no field differs from the last known good\n");
                return;
        }
        lkg_buf_puts(buf, "DANGER    CHANGE    FIELD: OLD -> NEW\n");
        for (size_t i = 0; i < lkg_value_size(fields); i++)
                put_item(lkg_list_get(fields, i), buf);
        if (more)
                lkg_buf_printf(buf, "%" PRIu64 " more are not listed; `lkgfs diff --bad ID` lists all\n",
                               more);
}

const char *lkg_tool_suspects_missing(const struct lkg_value *mark)
{
        struct lkg_value *suspects =
                mark && lkg_value_type(mark) == LKG_MAP ? lkg_map_get(mark, "suspects") : NULL;

        if (lkg_suspects_known(suspects))
                return NULL;
        if (suspects && lkg_value_type(suspects) == LKG_MAP)
                return text_of(suspects, "unknown", "the record does not say");
        return "the record has none; an earlier version of lkgfs wrote it, or it is damaged";
}
