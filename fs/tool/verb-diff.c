/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs diff: what each layer changes, as unified diffs; or two documents of the mounted view: generations of the history, what the
 * component runs with, what would be served if nothing were held, what a bad mark is about. Secret values are masked: a diff is often
 * shown to others. Documents of the view are compared as values: a base in JSON and the YAML of layers/ are the same then, and the
 * comment line is no difference.
 */
#include "tool.h"

/* ---- what has to be done after a change: lines below a diff, or a list for programs ---- */

/* Nothing if the kind has no table. */
static void find_changes(const struct lkg_value *before, const struct lkg_value *after,
                         struct lkg_field_changes *ret)
{
        const char *kind = lkg_map_get_string(after, "kind");
        const struct lkg_schema *schema;

        *ret = (struct lkg_field_changes){ 0 };
        if (kind && lkg_schema_get(kind, lkg_map_get_string(after, "apiVersion"), 0, &schema) == 0)
                lkg_schema_changes(schema, before, after, /* has_base= */ false, ret);
}

const char *lkg_tool_changed(const struct lkg_field_change *change)
{
        struct lkg_buf name = LKG_BUF_INIT;

        if (change->field)
                return change->field->path;
        lkg_pointer_text(change->pointer, &name);
        return lkg_tool_take(&name);
}

/* The most expensive first; those that need a restart in one line. */
static void put_changes(const struct lkg_value *before, const struct lkg_value *after, struct lkg_buf *buf)
{
        struct lkg_field_changes changes;
        size_t i = 0;

        find_changes(before, after, &changes);
        for (; i < changes.n_items && changes.items[i].change_class > LKG_CHANGE_RESTART; i++)
                lkg_buf_printf(buf, "=> %s: %s\n", lkg_tool_changed(&changes.items[i]),
                               changes.items[i].field->change);
        for (size_t k = i; k < changes.n_items; k++)
                lkg_buf_printf(buf, "%s%s", k == i ? "=> restart: " : ", ",
                               lkg_tool_changed(&changes.items[k]));
        if (i < changes.n_items)
                lkg_buf_putc(buf, '\n');
        lkg_field_changes_deinit(&changes);
}

static void map_changes(struct lkg_value *map, const struct lkg_value *before, const struct lkg_value *after)
{
        struct lkg_value *list = lkg_tool_map_list(map, "changes");
        struct lkg_field_changes changes;

        find_changes(before, after, &changes);
        for (size_t i = 0; i < changes.n_items; i++) {
                const struct lkg_field_change *change = &changes.items[i];
                const char *needs = change->field ? change->field->change : NULL;

                lkg_tool_append(list,
                                lkg_tool_texts(lkg_tool_map(), "field", lkg_tool_changed(change),
                                               "changeClass", lkg_change_class_name(change->change_class),
                                               "changeNeeds", needs ? strchr(needs, ':') + 2 : NULL, NULL));
        }
        lkg_field_changes_deinit(&changes);
}

/* ---- layers ---- */

/* What layer @i changes in the result before it; "" = nothing, or there is none. */
static const char *diff_layer(const struct lkg_candidate *candidate, size_t i)
{
        struct lkg_value *before = lkg_tool_own(lkg_candidate_merged(candidate, i - 1)),
                         *after = lkg_tool_own(lkg_candidate_merged(candidate, i));
        const struct lkg_layer_info *layer = &candidate->layers[i];

        return !before || !after ? ""
                                 : lkg_tool_diff(layer[-1].file, lkg_tool_masked(before, candidate->format),
                                                 lkg_tool_format("%s %s", lkg_layer_role_name(layer->role),
                                                                 layer->file),
                                                 lkg_tool_masked(after, candidate->format));
}

static int print_layers(const struct lkg_tool *tool, const struct lkg_candidate *candidate)
{
        struct lkg_value *list = lkg_tool_list();
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int status = LKG_TOOL_OK;

        for (size_t i = 1; i < candidate->n_layers; i++) {
                const struct lkg_layer_info *layer = &candidate->layers[i];
                const char *diff = diff_layer(candidate, i);

                if (!*diff)
                        continue;
                status = LKG_TOOL_DIFFERENT;
                lkg_tool_append(list, lkg_tool_texts(lkg_tool_map(), "role",
                                                     lkg_layer_role_name(layer->role), "name", layer->name,
                                                     "file", layer->file, "diff", diff, NULL));
                lkg_tool_put_diff(tool, diff, &buf);
        }
        return lkg_tool_structured(tool) ? lkg_tool_print_listed(tool, NULL, "layers", list, status)
                                         : lkg_tool_print(&buf, status);
}

/* ---- reading two documents of the view ---- */

struct compared {
        const char *name; /* "generation 41" */
        char *origin;     /* of a generation; NULL = not read */
        struct lkg_value *doc;
        const char *yaml;
};

struct pair_of_documents {
        const struct lkg_tool *tool;
        struct lkg_view view;
        struct compared from, to;
        struct lkg_value *mark; /* NULL = it is no question of a mark */
};

static bool ends_in(const char *text, const char *end)
{
        size_t n = strlen(text), k = strlen(end);

        return n >= k && strcmp(text + n - k, end) == 0;
}

/* The last name that ends in @end; without it the first that is not one of the history's own. Return: 0, caller frees; -errno. */
static int find_name(const struct lkg_view *view, const char *path, const char *end, char **ret)
{
        struct lkg_strings names = { 0 };
        const char *found = NULL;
        int r = lkg_tool_names(view->fd, path, DT_UNKNOWN, &names);

        for (size_t i = 0; i < names.n_items; i++) {
                const char *name = names.items[i];

                if (end ? ends_in(name, end)
                        : !found && strcmp(name, "origin") != 0 && strcmp(name, "meta.json") != 0)
                        found = name;
        }
        *ret = found ? lkg_tool_cut(found, strlen(found)) : NULL;
        return r < 0 || found ? r : -ENOENT;
}

/* @path: a directory of the view. Return: false: there is no such document. */
static bool read_compared(const struct pair_of_documents *c, const char *path, const char *end,
                          struct compared *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_buf yaml = LKG_BUF_INIT;
        char *file = NULL, *text = NULL;
        int r = find_name(&c->view, path, end, &file);

        if (r == 0)
                r = lkg_view_read(&c->view, &text, NULL, "%s/%s", path, file);
        if (r == 0)
                r = lkg_decode_yaml(text, strlen(text), LKG_DECODE_UNTYPED, NULL, &ignored, &ret->doc);
        (void)lkg_tool_own(ret->doc);
        if (r == -ENOENT)
                return false;
        if (r < 0)
                lkg_tool_end(c->tool, LKG_TOOL_FAILED, "read %s/%s: %s", c->view.root, path, strerror(-r));
        lkg_render(ret->doc, LKG_FORMAT_YAML, &yaml);
        ret->yaml = lkg_tool_take(&yaml);
        return true;
}

static void read_generation(const struct pair_of_documents *c, uint64_t number, const char *what,
                            struct compared *ret)
{
        const char *path = lkg_tool_format("history/%s/%" PRIu64, c->view.component, number);

        ret->name = lkg_tool_format("%sgeneration %" PRIu64, what, number);
        if (!read_compared(c, path, NULL, ret))
                lkg_tool_end(c->tool, LKG_TOOL_FAILED,
                             "generation %" PRIu64 " is not in the history; `lkgfs history` lists what is",
                             number);
}

static uint64_t read_number(const struct lkg_tool *tool, const char *word)
{
        uint64_t number = 0;

        if (lkg_record_parse_u64(word, &number) < 0 || number == 0)
                lkg_tool_end(tool, LKG_TOOL_USAGE,
                             "\"%.60s\" is not a generation; want its number, see `lkgfs history`", word);
        return number;
}

static void read_served(const struct pair_of_documents *c, struct compared *ret)
{
        uint64_t number = lkg_view_generation(&c->view);

        if (!number)
                lkg_tool_end(c->tool, LKG_TOOL_DIFFERENT, "%s: nothing is served", c->view.component);
        read_generation(c, number, "served: ", ret);
}

/* The merge of all layers, whether or not it is served. */
static void read_pending(const struct pair_of_documents *c, struct compared *ret)
{
        ret->name = "pending: the merge of the layers";
        if (!read_compared(c, lkg_tool_format("layers/%s", c->view.component), ".merged.yaml", ret))
                lkg_tool_end(c->tool, LKG_TOOL_FAILED,
                             "the layers of %s make no document; `lkgfs status` says why",
                             c->view.component);
}

/* The generation that the newest living process has read. */
static void read_running(const struct pair_of_documents *c, struct compared *ret)
{
        struct lkg_value *process = lkg_tool_pairs(lkg_view_text(&c->view, "process"));
        uint64_t number = strtoull(lkg_tool_word(process, "generation"), NULL, 10);

        if (!number)
                lkg_tool_end(c->tool, LKG_TOOL_FAILED,
                             "it is not known which generation %s has read: no process of it was "
                             "seen; `lkgfs doctor` says more",
                             c->view.component);
        read_generation(c, number, "running: ", ret);
}

/* ---- a mark ---- */

/* One of the two documents that a mark compares. A document that is gone is never replaced by another one. */
static void read_marked(const struct pair_of_documents *c, uint64_t number, const char *what,
                        struct compared *ret)
{
        char *meta = NULL;
        int r = number ? lkg_view_read(&c->view, &meta, NULL, "history/%s/%" PRIu64 "/meta.json",
                                       c->view.component, number)
                       : -ENOENT;

        if (r == -ENOENT)
                lkg_tool_end(c->tool, LKG_TOOL_FAILED,
                             "the document of %s is not in the history%s; `lkgfs bad %.255s` shows what "
                             "was noted about the difference",
                             what, number ? " any more" : ", because it was not served before",
                             c->tool->options.diff.bad);
        read_generation(c, number, lkg_tool_format("%s: ", what), ret);
        if (lkg_view_read(&c->view, &ret->origin, NULL, "history/%s/%" PRIu64 "/origin", c->view.component,
                          number) < 0)
                ret->origin = NULL; /* then the layers are not named */
}

static void read_bad(struct pair_of_documents *c)
{
        const char *id = c->tool->options.diff.bad, *missing;
        const struct lkg_value *suspects;

        if (!*id || *id == '.' || strchr(id, '/'))
                lkg_tool_end(c->tool, LKG_TOOL_USAGE, "\"%.60s\" is neither a uid nor a source id", id);
        c->mark = lkg_view_read_json(&c->view, "bad/%s/%s", c->view.component, id);
        if (!c->mark)
                lkg_tool_end(c->tool, LKG_TOOL_FAILED,
                             "%.255s is not marked bad, or its record cannot be read; `lkgfs bad` lists all",
                             id);
        missing = lkg_tool_suspects_missing(c->mark);
        if (missing)
                lkg_tool_end(c->tool, LKG_TOOL_FAILED, "nothing can be compared: %.300s", missing);
        suspects = lkg_map_get(c->mark, "suspects");
        read_marked(c, lkg_suspects_number(suspects, "lastKnownGood"), "last known good", &c->from);
        read_marked(c, lkg_suspects_number(suspects, "generation"), "marked bad", &c->to);
}

/* All fields that differ, with their layers. The files of the history are masked: a secret that differs is known from the mark. */
static struct lkg_value *find_suspects(const struct pair_of_documents *c)
{
        const struct compared *from = &c->from, *to = &c->to;
        const struct lkg_suspects_side good = { from->doc, from->origin ? from->origin : "", 0 };
        const struct lkg_suspects_side condemned = { to->doc, to->origin ? to->origin : "", 0 };
        const char *kind = lkg_map_get_string(to->doc, "kind");
        const struct lkg_schema *schema = NULL;
        struct lkg_value *whole, *item;

        if (kind && lkg_schema_get(kind, lkg_map_get_string(to->doc, "apiVersion"), 0, &schema) < 0)
                schema = NULL;
        whole = lkg_tool_own(lkg_suspects_find(schema, &good, &condemned, /* whole= */ true));
        for (size_t i = 0; (item = lkg_tool_item(lkg_map_get(c->mark, "suspects"), "fields", i)); i++) {
                const char *before = lkg_map_get_string(item, "old"),
                           *after = lkg_map_get_string(item, "new");

                if (before && after && strcmp(before, after) == 0)
                        lkg_tool_append(lkg_map_get(whole, "fields"), item);
        }
        return whole;
}

/* ---- the verb ---- */

static void read_both(struct pair_of_documents *c)
{
        const struct lkg_tool *tool = c->tool;
        uint64_t first, second;

        if (tool->options.diff.bad) {
                read_bad(c);
        } else if (tool->options.diff.pending) {
                read_served(c, &c->from);
                read_pending(c, &c->to);
        } else if (tool->options.diff.running) {
                read_running(c, &c->from);
                read_served(c, &c->to);
        } else {
                first = read_number(tool, tool->words[0]);
                second = tool->n_words > 1 ? read_number(tool, tool->words[1]) : 0;
                read_generation(c, first, "", &c->from);
                if (second)
                        read_generation(c, second, "", &c->to);
                else
                        read_served(c, &c->to);
        }
}

static int print_comparison(const struct pair_of_documents *c)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_value *suspects = c->mark ? find_suspects(c) : NULL;
        const struct compared *from = &c->from, *to = &c->to;
        const char *diff = lkg_tool_diff(from->name, from->yaml, to->name, to->yaml);
        int status = *diff ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
        struct lkg_value *map;

        if (suspects && lkg_value_size(lkg_map_get(suspects, "fields")) > 0)
                status = LKG_TOOL_DIFFERENT;
        if (lkg_tool_structured(c->tool)) {
                map = lkg_tool_texts(lkg_tool_document(), "component", c->view.component, "from", from->name,
                                     "to", to->name, "diff", diff, NULL);
                map_changes(map, from->doc, to->doc);
                if (suspects)
                        lkg_tool_map_value(map, "fields", lkg_map_get(suspects, "fields"));
                return lkg_tool_print_map(c->tool, map, status);
        }
        lkg_tool_put_diff(c->tool, diff, &buf);
        if (*diff)
                put_changes(from->doc, to->doc, &buf);
        if (suspects) {
                lkg_buf_puts(&buf, *diff ? "\n" : "");
                lkg_tool_put_suspects(suspects, &buf);
        }
        return lkg_tool_print(&buf, status);
}

static int diff_view(const struct lkg_tool *tool)
{
        struct pair_of_documents c = { .tool = tool };
        const struct lkg_tool_options *o = &tool->options;

        if (o->diff.pending + o->diff.running + (o->diff.bad != NULL) + (tool->n_words > 0) > 1 ||
            lkg_tool_has_sources(tool) || o->node_config)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "one of: N [M], --pending, --running, --bad ID, or documents "
                                     "(--config, ...)");
        c.view = lkg_view_open(tool, true);
        read_both(&c);
        return print_comparison(&c);
}

int lkg_verb_diff(const struct lkg_tool *tool)
{
        struct lkg_tool_sources *sources;
        const struct lkg_tool_options *o = &tool->options;
        int r;

        if (o->diff.pending || o->diff.running || o->diff.bad || tool->n_words > 0)
                return diff_view(tool);
        r = lkg_tool_sources_load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        lkg_tool_print_findings(tool, STDERR_FILENO, &sources->candidate->report);
        if (sources->candidate->texts)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "manifests are beside one another, none changes another; `diff N` "
                                     "compares generations");
        return sources->candidate->doc ? print_layers(tool, sources->candidate) : LKG_TOOL_DIFFERENT;
}
