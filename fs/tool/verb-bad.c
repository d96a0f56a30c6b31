/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs bad: the configurations that are known to be bad, one file each in bad/<component>/, newest first;
 * with an id, one of them and who is to blame; with an id and a reason, it adds one (as
 * `echo REASON > bad/<component>/ID` does). The verb `forget` removes one.
 *
 * Ids and reasons come from anyone who can name an object or write the file, so control characters are
 * escaped.
 */
#include "tool.h"

#include <fcntl.h>
#include <inttypes.h>

#include <lkg/schema.h>

struct mark {
        char *id;
        struct lkg_value *json; /* NULL: unreadable */
};

static void marks_free(struct mark *marks, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                free(marks[i].id);
                lkg_value_unref(marks[i].json);
        }
        free(marks);
}

static const char *text_of(const struct mark *mark, const char *key)
{
        const char *text = mark->json ? lkg_map_get_string(mark->json, key) : NULL;

        return text ? text : "-";
}

/* RFC 3339 in UTC sorts as text. */
static int newest_first(const void *a, const void *b)
{
        const struct mark *x = a, *y = b;
        int order = strcmp(text_of(y, "time"), text_of(x, "time"));

        return order ? order : strcmp(x->id, y->id);
}

/* Return: 0 (a missing directory is an empty list); -errno. */
static int read_marks(const struct lkg_view *view, const char *component, struct mark **ret, size_t *ret_n)
{
        char **names = NULL;
        struct mark *marks;
        size_t n = 0;
        int r;

        r = lkg_view_bad_names(view, component, &names, &n);
        if (r < 0)
                return r;
        marks = calloc(n ? n : 1, sizeof(*marks));
        for (size_t i = 0; marks && i < n; i++) {
                marks[i].id = LKG_STEAL(names[i]);
                marks[i].json = lkg_view_read_json(view, "bad/%s/%s", component, marks[i].id);
        }
        lkg_view_free_mounts(names, n);
        if (!marks)
                return -ENOMEM;
        if (n > 1)
                qsort(marks, n, sizeof(*marks), newest_first);
        *ret = marks;
        *ret_n = n;
        return 0;
}

/* Add blanks after @text, up to the next column. */
static void put_blanks(struct lkg_buf *buf, int width, const char *text)
{
        int n = width - (int)strlen(text);

        lkg_buf_printf(buf, "%*s", (n > 0 ? n : 0) + 2, "");
}

static int widest(int width, const char *text)
{
        int n = (int)strlen(text);

        return n > width ? n : width;
}

static int print_text(const struct mark *marks, size_t n)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int time_width = (int)strlen("TIME"), width = (int)strlen("ID");

        for (size_t i = 0; i < n; i++) {
                time_width = widest(time_width, text_of(&marks[i], "time"));
                width = widest(width, marks[i].id);
        }
        lkg_buf_printf(&buf, "%-*s  %-*s  REASON\n", time_width, "TIME", width, "ID");
        for (size_t i = 0; i < n; i++) {
                lkg_tool_put_clean(&buf, text_of(&marks[i], "time"));
                put_blanks(&buf, time_width, text_of(&marks[i], "time"));
                lkg_tool_put_clean(&buf, marks[i].id);
                put_blanks(&buf, width, marks[i].id);
                lkg_tool_put_clean(&buf, marks[i].json ? text_of(&marks[i], "reason") : "(cannot be read)");
                lkg_buf_putc(&buf, '\n');
        }
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_structured(const struct lkg_tool *tool, const char *component, const struct mark *marks,
                            size_t n)
{
        struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);
        struct lkg_tool_map map, item;
        bool failed = false;

        for (size_t i = 0; i < n; i++) {
                struct lkg_value *source = marks[i].json ? lkg_map_get(marks[i].json, "source") : NULL;

                lkg_tool_map_init(&item, false);
                lkg_tool_map_string(&item, "id", marks[i].id);
                if (marks[i].json) {
                        lkg_tool_map_string(&item, "time", lkg_map_get_string(marks[i].json, "time"));
                        lkg_tool_map_string(&item, "cause", lkg_map_get_string(marks[i].json, "cause"));
                        lkg_tool_map_string(&item, "reason", lkg_map_get_string(marks[i].json, "reason"));
                }
                if (source)
                        lkg_tool_map_value(&item, "source", lkg_value_ref(source));
                lkg_tool_list_take(list, &item, &failed);
        }
        lkg_tool_map_init(&map, true);
        map.failed |= failed;
        lkg_tool_map_string(&map, "component", component);
        lkg_tool_map_value(&map, "configurations", list);
        return lkg_tool_print_map(tool, &map, LKG_TOOL_OK);
}

static int list_marks(const struct lkg_tool *tool, const struct lkg_view *view, const char *component)
{
        struct mark *marks = NULL;
        size_t n = 0;
        int r;

        r = read_marks(view, component, &marks, &n);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s/bad/%s: %s", view->root, component,
                                     strerror(-r));
        if (tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML)
                r = print_structured(tool, component, marks, n);
        else
                r = print_text(marks, n);
        marks_free(marks, n);
        return r;
}

/* ---- one mark ---- */

static void put_fact(struct lkg_buf *buf, const char *name, const char *text)
{
        lkg_buf_printf(buf, "%-10s ", name);
        lkg_tool_put_clean(buf, text);
        lkg_buf_putc(buf, '\n');
}

static void put_compared(const struct lkg_value *suspects, struct lkg_buf *buf)
{
        uint64_t condemned = lkg_suspects_number(suspects, "generation");
        uint64_t good = lkg_suspects_number(suspects, "lastKnownGood");

        lkg_buf_printf(buf, "%-10s generation %" PRIu64 " with the last known good", "compared", condemned);
        if (good)
                lkg_buf_printf(buf, ", generation %" PRIu64, good);
        lkg_buf_puts(buf, "\n\n");
}

static int show_text(const struct mark *mark)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        const struct lkg_value *suspects = lkg_map_get(mark->json, "suspects");
        const char *missing = lkg_tool_suspects_missing(mark->json);

        put_fact(&buf, "id", mark->id);
        put_fact(&buf, "time", text_of(mark, "time"));
        put_fact(&buf, "cause", text_of(mark, "cause"));
        put_fact(&buf, "reason", text_of(mark, "reason"));
        if (missing) {
                lkg_buf_printf(&buf, "%-10s not known: ", "suspects");
                lkg_tool_put_clean(&buf, missing);
                lkg_buf_putc(&buf, '\n');
        } else {
                put_compared(suspects, &buf);
                lkg_tool_put_suspects(suspects, &buf);
        }
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int show_structured(const struct lkg_tool *tool, const char *component, const struct mark *mark)
{
        static const char *const keys[] = { "source", "suspects" };
        struct lkg_tool_map map;

        lkg_tool_map_init(&map, true);
        lkg_tool_map_string(&map, "component", component);
        lkg_tool_map_string(&map, "id", mark->id);
        lkg_tool_map_string(&map, "time", lkg_map_get_string(mark->json, "time"));
        lkg_tool_map_string(&map, "cause", lkg_map_get_string(mark->json, "cause"));
        lkg_tool_map_string(&map, "reason", lkg_map_get_string(mark->json, "reason"));
        for (size_t i = 0; i < LKG_ARRAY_SIZE(keys); i++)
                if (lkg_map_get(mark->json, keys[i]))
                        lkg_tool_map_value(&map, keys[i], lkg_value_ref(lkg_map_get(mark->json, keys[i])));
        return lkg_tool_print_map(tool, &map, LKG_TOOL_OK);
}

static int show_mark(const struct lkg_tool *tool, const struct lkg_view *view, const char *component)
{
        struct mark mark = { .id = tool->words[0],
                             .json = lkg_view_read_json(view, "bad/%s/%s", component, tool->words[0]) };
        int r;

        if (!mark.json)
                return lkg_tool_fail(
                        tool, LKG_TOOL_FAILED,
                        "%s: %.255s is not marked bad, or its record cannot be read; `lkgfs bad` "
                        "lists all",
                        component, mark.id);
        if (tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML)
                r = show_structured(tool, component, &mark);
        else
                r = show_text(&mark);
        lkg_value_unref(mark.json);
        return r;
}

/* ---- another mark ---- */

/* The words after the id are joined, as by echo(1). */
static int condemn(const struct lkg_tool *tool, const struct lkg_view *view, const char *component)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf reason = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *path = NULL;

        for (size_t i = 1; i < tool->n_words; i++)
                lkg_buf_printf(&reason, "%s%s", i > 1 ? " " : "", tool->words[i]);
        if (lkg_buf_failed(&reason) || asprintf(&path, "bad/%s/%s", component, tool->words[0]) < 0) {
                path = NULL;
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        }
        return lkg_view_write(tool, view, component, path, O_CREAT, reason.data);
}

int lkg_verb_bad(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        const char *id = tool->n_words > 0 ? tool->words[0] : NULL;
        int r;

        /* An id that is not a file name would lead elsewhere; an empty reason would have no effect. */
        if (id && (!*id || *id == '.' || strchr(id, '/')))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "\"%.60s\" is neither a uid nor a source id", id);
        if (id && tool->n_words > 1 && !*tool->words[1])
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "missing: a reason after the id");
        r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(tool, &view, &component);
        if (r != LKG_TOOL_OK)
                return r;
        if (tool->n_words > 1)
                return condemn(tool, &view, component);
        return id ? show_mark(tool, &view, component) : list_marks(tool, &view, component);
}
