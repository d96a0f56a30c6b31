/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs diff on the mounted view: two generations of the history, what the component runs with, what would be served if
 * nothing were held, or what a bad mark is about. All of these files have masked secrets. The documents are compared as values: a base in JSON and the YAML
 * of layers/ are the same then, and the comment line is no difference.
 */
#include "processes.h"
#include "tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/documents.h>
#include <lkg/schema.h>

struct compared {
        char *name;   /* "generation 41" */
        char *origin; /* of a generation; NULL = not read */
        struct lkg_value *doc;
        struct lkg_buf yaml;
};

static void compared_deinit(struct compared *side)
{
        free(side->name);
        free(side->origin);
        lkg_value_unref(side->doc);
        lkg_buf_deinit(&side->yaml);
}

/* ---- reading ---- */

static bool ends_in(const char *text, const char *end)
{
        size_t n = strlen(text), k = strlen(end);

        return n >= k && strcmp(text + n - k, end) == 0;
}

/* @last: the last name in byte order that ends in @end; else the first that is not one of the history's own. */
static int find_name(const struct lkg_view *view, const char *path, const char *end, char **ret)
{
        int fd = openat(view->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        *ret = NULL;
        if (!dir)
                return -errno;
        for (struct dirent *e = readdir(dir); r == 0 && e; e = readdir(dir)) {
                const char *name = e->d_name;

                if (end ? !ends_in(name, end) || (*ret && strcmp(name, *ret) < 0)
                        : *ret || *name == '.' || strcmp(name, "origin") == 0 ||
                                    strcmp(name, "meta.json") == 0)
                        continue;
                free(*ret);
                *ret = strdup(name);
                r = *ret ? 0 : -ENOMEM;
        }
        (void)closedir(dir);
        return r < 0 ? r : *ret ? 0 : -ENOENT;
}

/* @path: a directory of the view. Takes @name over. */
static int read_compared(const struct lkg_tool *tool, const struct lkg_view *view, const char *path,
                         const char *end, char *name, struct compared *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *file = NULL;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        int r = find_name(view, path, end, &file);

        ret->name = name;
        if (r == 0)
                r = lkg_view_read(view, &text, NULL, "%s/%s", path, file);
        if (r == 0)
                r = lkg_decode_yaml(text, strlen(text), LKG_DECODE_UNTYPED, NULL, &ignored, &ret->doc);
        if (r < 0)
                return r == -ENOENT ? r
                                    : lkg_tool_fail(tool, LKG_TOOL_FAILED, "read %s/%s: %s", view->root,
                                                    path, strerror(-r));
        lkg_render(ret->doc, LKG_FORMAT_YAML, &ret->yaml);
        return lkg_buf_failed(&ret->yaml) || !name
                       ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM))
                       : LKG_TOOL_OK;
}

static int read_generation(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                           uint64_t number, const char *what, struct compared *ret)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        char *name = NULL;
        int r;

        if (asprintf(&path, "history/%s/%" PRIu64, component, number) < 0)
                path = NULL;
        if (asprintf(&name, "%sgeneration %" PRIu64, what, number) < 0)
                name = NULL;
        r = path ? read_compared(tool, view, path, NULL, name, ret)
                 : lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        if (!path)
                free(name);
        return r == -ENOENT ? lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                            "generation %" PRIu64
                                            " is not in the history; `lkgfs history` lists what is",
                                            number)
                            : r;
}

static int read_number(const struct lkg_tool *tool, const char *word, uint64_t *ret)
{
        char *end = NULL;

        errno = 0;
        *ret = *word >= '0' && *word <= '9' ? strtoull(word, &end, 10) : 0;
        return end && !*end && errno == 0 && *ret ? LKG_TOOL_OK
                                                  : lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                                                  "\"%.60s\" is no generation; want its "
                                                                  "number, see `lkgfs history`",
                                                                  word);
}

static int served_number(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                         uint64_t *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        int r = lkg_view_read(view, &text, NULL, "status/%s/generation", component);

        *ret = r < 0 ? 0 : strtoull(text, NULL, 10);
        return *ret ? LKG_TOOL_OK
                    : lkg_tool_fail(tool, LKG_TOOL_DIFFERENT, "%s: nothing is served", component);
}

static int read_served(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                       struct compared *ret)
{
        uint64_t number;
        int r = served_number(tool, view, component, &number);

        return r == LKG_TOOL_OK ? read_generation(tool, view, component, number, "served: ", ret) : r;
}

/* The merge of all layers, whether or not it is served. */
static int read_pending(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                        struct compared *ret)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        char *name = strdup("pending: the merge of the layers");
        int r;

        if (asprintf(&path, "layers/%s", component) < 0) {
                path = NULL;
                free(name);
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        }
        r = read_compared(tool, view, path, ".merged.yaml", name, ret);
        return r == -ENOENT ? lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                            "the layers of %s make no document; `lkgfs status` says why",
                                            component)
                            : r;
}

/* The generation that the newest living process has read. */
static int read_running(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                        struct compared *ret)
{
        struct lkg_component_process process;

        if (lkg_component_process_read(view, component, &process) < 0 || process.generation == 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                     "it is not known which generation %s has read: no process of it was "
                                     "seen; `lkgfs doctor` says more",
                                     component);
        return read_generation(tool, view, component, process.generation, "running: ", ret);
}

/* ---- a mark ---- */

/* One of the two documents that a mark compares. A document that is gone is never replaced by another one. */
static int read_marked(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                       uint64_t number, const char *what, struct compared *ret)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        LKG_CLEANUP(lkg_freep) char *meta = NULL;
        LKG_CLEANUP(lkg_freep) char *named = NULL;
        int r = number ? lkg_view_read(view, &meta, NULL, "history/%s/%" PRIu64 "/meta.json", component,
                                       number)
                       : -ENOENT;

        if (r == -ENOENT)
                return lkg_tool_fail(
                        tool, LKG_TOOL_FAILED,
                        "the document of %s is not in the history%s; `lkgfs bad %.255s` shows what "
                        "was noted about the difference",
                        what, number ? " any more" : ", because it was not served before",
                        tool->options.bad);
        if (asprintf(&named, "%s: ", what) < 0) {
                named = NULL;
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        }
        r = read_generation(tool, view, component, number, named, ret);
        if (r == LKG_TOOL_OK &&
            lkg_view_read(view, &ret->origin, NULL, "history/%s/%" PRIu64 "/origin", component, number) < 0)
                ret->origin = NULL; /* then the layers are not named */
        return r;
}

static int read_bad(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                    struct compared *from, struct compared *to, struct lkg_value **ret_mark)
{
        const char *id = tool->options.bad, *missing;
        const struct lkg_value *suspects;
        int r;

        if (!*id || *id == '.' || strchr(id, '/'))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "\"%.60s\" is neither a uid nor a source id", id);
        *ret_mark = lkg_view_read_json(view, "bad/%s/%s", component, id);
        if (!*ret_mark)
                return lkg_tool_fail(
                        tool, LKG_TOOL_FAILED,
                        "%.255s is not marked bad, or its record cannot be read; `lkgfs bad` lists all", id);
        missing = lkg_tool_suspects_missing(*ret_mark);
        if (missing)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "nothing can be compared: %.300s", missing);
        suspects = lkg_map_get(*ret_mark, "suspects");
        r = read_marked(tool, view, component, lkg_suspects_number(suspects, "lastKnownGood"),
                        "last known good", from);
        return r == LKG_TOOL_OK ? read_marked(tool, view, component,
                                              lkg_suspects_number(suspects, "generation"), "marked bad", to)
                                : r;
}

/* The files of the history are masked: a secret that differs is known from the mark alone. */
static int add_secrets(const struct lkg_value *mark, struct lkg_value *whole)
{
        const struct lkg_value *noted = lkg_map_get(lkg_map_get(mark, "suspects"), "fields");
        struct lkg_value *fields = lkg_map_get(whole, "fields");
        int r = 0;

        for (size_t i = 0; r >= 0 && i < lkg_value_size(noted); i++) {
                struct lkg_value *item = lkg_list_get(noted, i);
                const char *before = lkg_map_get_string(item, "old"),
                           *after = lkg_map_get_string(item, "new");

                if (before && after && strcmp(before, after) == 0)
                        r = lkg_list_append(fields, lkg_value_ref(item));
        }
        return r;
}

/* All fields that differ, with their layers. Return: 0, caller owns one reference; -ENOMEM. */
static int find_suspects(const struct compared *from, const struct compared *to,
                         const struct lkg_value *mark, struct lkg_value **ret)
{
        const struct lkg_suspects_side good = { from->doc, from->origin ? from->origin : "", 0 };
        const struct lkg_suspects_side condemned = { to->doc, to->origin ? to->origin : "", 0 };
        const char *kind = lkg_map_get_string(to->doc, "kind");
        const struct lkg_schema *schema = NULL;
        int r;

        if (kind && lkg_schema_get(kind, lkg_map_get_string(to->doc, "apiVersion"), 0, &schema) < 0)
                schema = NULL;
        r = lkg_suspects_find(schema, &good, &condemned, /* whole= */ true, ret);
        return r < 0 ? r : add_secrets(mark, *ret);
}

/* ---- which two ---- */

static int read_both(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                     struct compared *from, struct compared *to, struct lkg_value **ret_mark)
{
        uint64_t first, second;
        int r;

        if (tool->options.bad)
                return read_bad(tool, view, component, from, to, ret_mark);
        if (tool->options.pending) {
                r = read_served(tool, view, component, from);
                return r == LKG_TOOL_OK ? read_pending(tool, view, component, to) : r;
        }
        if (tool->options.running) {
                r = read_running(tool, view, component, from);
                return r == LKG_TOOL_OK ? read_served(tool, view, component, to) : r;
        }
        r = read_number(tool, tool->words[0], &first);
        if (r == LKG_TOOL_OK && tool->n_words > 1)
                r = read_number(tool, tool->words[1], &second);
        if (r == LKG_TOOL_OK)
                r = read_generation(tool, view, component, first, "", from);
        if (r != LKG_TOOL_OK)
                return r;
        return tool->n_words > 1 ? read_generation(tool, view, component, second, "", to)
                                 : read_served(tool, view, component, to);
}

/* ---- the verb ---- */

static int check_usage(const struct lkg_tool *tool)
{
        const struct lkg_tool_options *o = &tool->options;
        bool several = o->pending + o->running + (o->bad != NULL) + (tool->n_words > 0) > 1;

        if (several || lkg_tool_has_sources(tool) || o->node_config)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "one of: N [M], --pending, --running, --bad ID, or documents "
                                     "(--config, ...)");
        return LKG_TOOL_OK;
}

static int print_structured(const struct lkg_tool *tool, const char *component, const struct compared *from,
                            const struct compared *to, const char *diff, const struct lkg_value *suspects,
                            int status)
{
        struct lkg_tool_map map;

        lkg_tool_map_init(&map, true);
        lkg_tool_map_string(&map, "component", component);
        lkg_tool_map_string(&map, "from", from->name);
        lkg_tool_map_string(&map, "to", to->name);
        lkg_tool_map_string(&map, "diff", diff);
        lkg_tool_map_changes(&map, from->doc, to->doc);
        if (suspects)
                lkg_tool_map_value(&map, "fields", lkg_value_ref(lkg_map_get(suspects, "fields")));
        return lkg_tool_print_map(tool, &map, status);
}

static int print_text(const struct lkg_tool *tool, const struct compared *from, const struct compared *to,
                      const struct lkg_buf *diff, const struct lkg_value *suspects, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf painted = LKG_BUF_INIT;

        if (lkg_tool_colour_for(tool, STDOUT_FILENO))
                lkg_tool_paint_diff(diff->data, diff->size - 1, &painted);
        else
                lkg_buf_append(&painted, diff->data, diff->size - 1);
        if (diff->size > 1 && lkg_tool_put_changes(from->doc, to->doc, &painted) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        if (suspects) {
                lkg_buf_puts(&painted, diff->size > 1 ? "\n" : "");
                lkg_tool_put_suspects(suspects, &painted);
        }
        return lkg_tool_print(&painted, status);
}

/* @mark: NULL = it is no question of a mark */
static int print(const struct lkg_tool *tool, const char *component, const struct compared *from,
                 const struct compared *to, const struct lkg_value *mark)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf diff = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *suspects = NULL;
        int r = lkg_render_diff(from->name, from->yaml.data, from->yaml.size, to->name, to->yaml.data,
                                to->yaml.size, &diff);
        int status = r == 0 ? LKG_TOOL_OK : LKG_TOOL_DIFFERENT;

        lkg_buf_putc(&diff, '\0');
        if (r >= 0 && mark)
                r = find_suspects(from, to, mark, &suspects);
        if (r < 0 || lkg_buf_failed(&diff))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(r < 0 ? -r : ENOMEM));
        if (suspects && lkg_value_size(lkg_map_get(suspects, "fields")) > 0)
                status = LKG_TOOL_DIFFERENT;
        if (tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML)
                return print_structured(tool, component, from, to, diff.data, suspects, status);
        return print_text(tool, from, to, &diff, suspects, status);
}

bool lkg_tool_diff_is_of_view(const struct lkg_tool *tool)
{
        return tool->verb->run == lkg_verb_diff &&
               (tool->options.pending || tool->options.running || tool->options.bad || tool->n_words > 0);
}

int lkg_tool_diff_view(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(compared_deinit) struct compared from = { 0 };
        LKG_CLEANUP(compared_deinit) struct compared to = { 0 };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *mark = NULL;
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        int r = check_usage(tool);

        if (r == LKG_TOOL_OK)
                r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(tool, &view, &component);
        if (r == LKG_TOOL_OK)
                r = read_both(tool, &view, component, &from, &to, &mark);
        return r == LKG_TOOL_OK ? print(tool, component, &from, &to, mark) : r;
}
