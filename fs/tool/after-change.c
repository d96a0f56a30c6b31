/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be done after a change from one document to another: lines below a diff, or a list for programs. */
#include "tool.h"

#include <lkg/documents.h>
#include <lkg/schema.h>

/* Return: 0; 1: the kind has no table; -ENOMEM. */
static int find_changes(const struct lkg_value *before, const struct lkg_value *after,
                        struct lkg_field_changes *ret)
{
        const char *kind = lkg_map_get_string(after, "kind");
        const struct lkg_schema *schema;
        int r;

        *ret = (struct lkg_field_changes){ 0 };
        if (!kind)
                return 1;
        r = lkg_schema_get(kind, lkg_map_get_string(after, "apiVersion"), 0, &schema);
        if (r < 0)
                return r == -ENOENT ? 1 : r;
        return lkg_schema_changes(schema, before, after, /* has_base= */ false, ret);
}

int lkg_tool_put_changed(const struct lkg_field_change *change, struct lkg_buf *buf)
{
        if (change->field)
                lkg_buf_puts(buf, change->field->path);
        else
                return lkg_pointer_text(change->pointer, buf);
        return 0;
}

int lkg_tool_put_changes(const struct lkg_value *before, const struct lkg_value *after, struct lkg_buf *buf)
{
        struct lkg_field_changes changes;
        size_t i = 0;
        int r = find_changes(before, after, &changes);

        if (r != 0)
                return r < 0 ? r : 0;
        for (; r == 0 && i < changes.n_items && changes.items[i].change_class > LKG_CHANGE_RESTART; i++) {
                lkg_buf_puts(buf, "=> ");
                r = lkg_tool_put_changed(&changes.items[i], buf);
                lkg_buf_printf(buf, ": %s\n", changes.items[i].field->change);
        }
        for (size_t k = i; r == 0 && k < changes.n_items; k++) {
                lkg_buf_puts(buf, k == i ? "=> restart: " : ", ");
                r = lkg_tool_put_changed(&changes.items[k], buf);
        }
        if (i < changes.n_items)
                lkg_buf_putc(buf, '\n');
        lkg_field_changes_deinit(&changes);
        return r < 0 || lkg_buf_failed(buf) ? -ENOMEM : 0;
}

static void add_change(const struct lkg_field_change *change, struct lkg_value *list, bool *failed)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf name = LKG_BUF_INIT;
        struct lkg_tool_map item;

        *failed |= lkg_tool_put_changed(change, &name) < 0;
        lkg_buf_putc(&name, '\0');
        lkg_tool_map_init(&item, false);
        lkg_tool_map_string(&item, "field", lkg_buf_failed(&name) ? "" : name.data);
        lkg_tool_map_string(&item, "changeClass", lkg_change_class_name(change->change_class));
        if (change->field && change->field->change)
                lkg_tool_map_string(&item, "changeNeeds", strchr(change->field->change, ':') + 2);
        lkg_tool_list_take(list, &item, failed);
}

void lkg_tool_map_changes(struct lkg_tool_map *map, const struct lkg_value *before,
                          const struct lkg_value *after)
{
        struct lkg_field_changes changes;
        struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);
        bool failed = find_changes(before, after, &changes) < 0 || !list;

        for (size_t i = 0; !failed && i < changes.n_items; i++)
                add_change(&changes.items[i], list, &failed);
        lkg_field_changes_deinit(&changes);
        map->failed |= failed;
        lkg_tool_map_value(map, "changes", list);
}
