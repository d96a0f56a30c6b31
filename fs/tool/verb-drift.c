/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs drift: shows the fields in which the running component differs from the served document, each with
 * both values. Exit status 1 if there are any, 2 if a process is running and it is unknown what it has read.
 */
#include "verb-drift.h"
#include "processes.h"

#include <lkg/base.h>
#include <lkg/text.h>

#define SHOWN_MAX 48u /* bytes of a value in a sentence */

void lkg_drift_deinit(struct lkg_drift *drift)
{
        for (size_t i = 0; i < drift->n_fields; i++) {
                free(drift->fields[i].pointer);
                free(drift->fields[i].running);
                free(drift->fields[i].served);
        }
        free(drift->fields);
        *drift = (struct lkg_drift){ 0 };
}

/* `-` means a missing field; it is not a JSON value. */
static int take_value(const char *text, size_t size, char **ret)
{
        *ret = NULL;
        if (size == 1 && *text == '-')
                return 0;
        *ret = strndup(text, size);
        return *ret ? 0 : -ENOMEM;
}

static int take_line(const char *line, size_t size, struct lkg_drift *drift)
{
        const char *first = memchr(line, '\t', size);
        const char *second = first ? memchr(first + 1, '\t', size - (size_t)(first + 1 - line)) : NULL;
        struct lkg_drift_field field = { 0 };
        int r;

        if (!second)
                return 0;
        if (LKG_GROW(drift->fields, drift->n_fields) < 0)
                return -ENOMEM;
        field.pointer = strndup(line, (size_t)(first - line));
        r = field.pointer ? take_value(first + 1, (size_t)(second - first - 1), &field.running) : -ENOMEM;
        if (r == 0)
                r = take_value(second + 1, size - (size_t)(second + 1 - line), &field.served);
        drift->fields[drift->n_fields++] = field;
        return r;
}

int lkg_drift_parse(const char *text, struct lkg_drift *ret)
{
        LKG_CLEANUP(lkg_drift_deinit) struct lkg_drift drift = { 0 };

        while (*text) {
                size_t size = strcspn(text, "\n");
                int r = take_line(text, size, &drift);

                if (r < 0)
                        return r;
                text += size + (text[size] != '\0');
        }
        *ret = drift;
        drift = (struct lkg_drift){ 0 };
        return 0;
}

int lkg_drift_read(const struct lkg_view *view, const char *component, struct lkg_drift *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_component_process process;
        int r = lkg_view_read(view, &text, NULL, "status/%s/drift", component);

        *ret = (struct lkg_drift){ 0 };
        if (r >= 0)
                r = lkg_drift_parse(text, ret);
        if (r >= 0 && lkg_component_process_read(view, component, &process) == 0 && process.generation == 0)
                ret->unseen = process.pid;
        return r;
}

static void put_short(const char *text, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep)
        char *cut = text && strlen(text) > SHOWN_MAX ? strndup(text, SHOWN_MAX) : NULL;

        if (cut)
                lkg_utf8_mend(cut);
        lkg_tool_put_clean(buf, cut ? cut : text ? text : "nothing");
        if (cut)
                lkg_buf_puts(buf, "...");
}

void lkg_drift_text(const struct lkg_drift_field *field, struct lkg_buf *buf)
{
        lkg_tool_put_clean(buf, field->pointer);
        lkg_buf_puts(buf, " runs with ");
        put_short(field->running, buf);
        lkg_buf_puts(buf, ", served is ");
        put_short(field->served, buf);
}

struct lkg_value *lkg_drift_value(const struct lkg_drift *drift)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);
        bool failed = !list;

        for (size_t i = 0; i < drift->n_fields; i++) {
                struct lkg_tool_map item;

                lkg_tool_map_init(&item, false);
                lkg_tool_map_string(&item, "field", drift->fields[i].pointer);
                lkg_tool_map_string(&item, "running", drift->fields[i].running);
                lkg_tool_map_string(&item, "served", drift->fields[i].served);
                lkg_tool_list_take(list, &item, &failed);
        }
        return failed ? NULL : LKG_STEAL(list);
}

static int width_of(const char *text)
{
        return (int)strlen(text ? text : "-");
}

static int print_text(const struct lkg_drift *drift, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int field = (int)strlen("FIELD"), running = (int)strlen("RUNNING");

        if (drift->n_fields == 0)
                return status;
        for (size_t i = 0; i < drift->n_fields; i++) {
                const struct lkg_drift_field *f = &drift->fields[i];

                field = width_of(f->pointer) > field ? width_of(f->pointer) : field;
                running = width_of(f->running) > running ? width_of(f->running) : running;
        }
        lkg_buf_printf(&buf, "%-*s  %-*s  SERVED\n", field, "FIELD", running, "RUNNING");
        for (size_t i = 0; i < drift->n_fields; i++) {
                const struct lkg_drift_field *f = &drift->fields[i];

                lkg_tool_put_clean(&buf, f->pointer);
                lkg_buf_printf(&buf, "%*s  ", field - width_of(f->pointer), "");
                lkg_tool_put_clean(&buf, f->running ? f->running : "-");
                lkg_buf_printf(&buf, "%*s  ", running - width_of(f->running), "");
                lkg_tool_put_clean(&buf, f->served ? f->served : "-");
                lkg_buf_putc(&buf, '\n');
        }
        return lkg_tool_print(&buf, status);
}

int lkg_verb_drift(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_drift_deinit) struct lkg_drift drift = { 0 };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        struct lkg_tool_map map;
        int r, status;

        r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(tool, &view, &component);
        if (r != LKG_TOOL_OK)
                return r;
        r = lkg_drift_read(&view, component, &drift);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s/status/%s/drift': %s", view.root, component,
                                     strerror(-r));
        status = drift.n_fields ? LKG_TOOL_DIFFERENT : drift.unseen ? LKG_TOOL_FAILED : LKG_TOOL_OK;
        if (tool->options.format != LKG_TOOL_JSON && tool->options.format != LKG_TOOL_YAML) {
                if (drift.unseen)
                        return lkg_tool_fail(tool, status, "%s " LKG_DRIFT_UNSEEN, component, drift.unseen);
                return print_text(&drift, status);
        }
        lkg_tool_map_init(&map, true);
        lkg_tool_map_string(&map, "component", component);
        if (drift.unseen)
                lkg_tool_map_number(&map, "unseenProcess", drift.unseen);
        lkg_tool_map_value(&map, "fields", lkg_drift_value(&drift));
        return lkg_tool_print_map(tool, &map, status);
}
