/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs that show one thing of a view: history, bad, drift, and rollout of this node. Each is a list of maps, or a map, that becomes
 * a document or a table.
 *
 * Ids, reasons and nodes come from anyone who can name an object or write a file, so hidden characters are escaped.
 */
#include "fleet.h"
#include "known.h"

/* What stands in a cell: a text of the row; "-" = it has none. */
static const char *cell(const struct lkg_value *row, const char *key)
{
        const char *text = lkg_map_get_string(row, key);

        return text ? text : "-";
}

/* ---- history ---- */

static struct lkg_value *read_history(const struct lkg_view *view, const struct lkg_strings *numbers)
{
        struct lkg_value *list = lkg_tool_list();
        uint64_t served = lkg_view_generation(view), number;

        for (size_t i = 0; i < numbers->n_items; i++) {
                if (lkg_record_parse_u64(numbers->items[i], &number) < 0)
                        continue;
                lkg_tool_append(list,
                                lkg_tool_map_of("generation", lkg_tool_number(number), "served",
                                                lkg_tool_bool(number == served), "meta",
                                                lkg_view_read_json(view, "history/%s/%" PRIu64 "/meta.json",
                                                                   view->component, number),
                                                NULL));
        }
        return list;
}

static void put_history(const struct lkg_value *list, struct lkg_buf *buf)
{
        static const struct lkg_column columns[] = { { "  GENERATION", "generation" },
                                                     { "TIME", "time", 20 },
                                                     { "SHA256", "sha256", 12 },
                                                     { "SOURCE", "source" } };
        struct lkg_value *rows = lkg_tool_list();

        for (size_t i = 0; i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i), *meta = lkg_map_get_map(item, "meta");
                bool served = lkg_value_bool(lkg_map_get(item, "served"));

                lkg_tool_append(
                        rows,
                        lkg_tool_texts(lkg_tool_map(), "generation",
                                       lkg_tool_format("%c %10" PRIu64, served ? '*' : ' ',
                                                       lkg_record_number(item, "generation", 0)),
                                       "time", meta ? lkg_map_get_string(meta, "time") : NULL, "sha256",
                                       lkg_tool_format("%.12s", meta ? cell(meta, "sha256") : "-"), "source",
                                       meta ? lkg_map_get_string(meta, "source") : NULL, NULL));
        }
        lkg_tool_put_table(rows, columns, LKG_ARRAY_SIZE(columns), buf);
}

/* The generations that can be rolled back to, newest first; the one served is marked. */
int lkg_verb_history(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_view view = lkg_view_open(tool, true);
        const char *path = lkg_tool_format("history/%s", view.component);
        struct lkg_strings numbers = { 0 };
        struct lkg_value *list;
        int r = lkg_tool_names(view.fd, path, DT_UNKNOWN, &numbers);

        if (r < 0 && r != -ENOENT) /* nothing has been served yet: an empty history */
                lkg_tool_end(tool, LKG_TOOL_FAILED, "'%s/%s': %s", view.root, path, strerror(-r));
        list = read_history(&view, &numbers);
        if (lkg_tool_structured(tool))
                return lkg_tool_print_listed(tool, &view, "generations", list, LKG_TOOL_OK);
        put_history(list, &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

/* ---- suspects: after `bad ID` and below `diff --bad ID` ---- */

static struct lkg_value *suspect_row(const struct lkg_value *item)
{
        static const char words[] =
                "{{pointer}}: {{?same}}another value, which is not shown{{/}}"
                "{{!same}}{{old}}{{!old}}unset{{/}} -> {{new}}{{!new}}unset{{/}}{{/}}"
                "{{?placed}}  {{layer}}{{!layer}}-{{/}}{{#file}} ({{.}}{{?line}}:{{line}}{{/}}){{/}}{{/}}";
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_value *map = lkg_tool_own(lkg_must(lkg_value_clone_shallow(item)));
        const char *before = lkg_map_get_string(item, "old"), *after = lkg_map_get_string(item, "new");

        lkg_tool_bools(map, "same", before && after && strcmp(before, after) == 0, "placed",
                       lkg_map_get_string(item, "layer") != NULL, NULL);
        lkg_tool_fill(words, map, /* html= */ false, &text);
        return lkg_tool_texts(map, "words", lkg_buf_text(&text), NULL);
}

void lkg_tool_put_suspects(const struct lkg_value *suspects, struct lkg_buf *buf)
{
        static const struct lkg_column columns[] = { { "DANGER", "danger", 8 },
                                                     { "CHANGE", "changeClass", 8 },
                                                     { "FIELD: OLD -> NEW", "words" } };
        struct lkg_value *rows = lkg_tool_list();
        const struct lkg_value *item;
        uint64_t more = lkg_suspects_number(suspects, "notListed");

        if (!lkg_suspects_known(suspects))
                return;
        for (size_t i = 0; (item = lkg_tool_item(suspects, "fields", i)); i++)
                lkg_tool_append(rows, suspect_row(item));
        if (lkg_value_size(rows))
                lkg_tool_put_table(rows, columns, LKG_ARRAY_SIZE(columns), buf);
        else
                lkg_buf_puts(buf, "no field differs from the last known good\n");
        if (more && lkg_value_size(rows))
                lkg_buf_printf(buf, "%" PRIu64 " more are not listed; `lkgfs diff --bad ID` lists all\n",
                               more);
}

const char *lkg_tool_suspects_missing(const struct lkg_value *mark)
{
        const struct lkg_value *suspects = mark ? lkg_map_get(mark, "suspects") : NULL;
        const char *why;

        if (lkg_suspects_known(suspects))
                return NULL;
        if (!suspects || lkg_value_type(suspects) != LKG_MAP)
                return "the record has none; an earlier version of lkgfs wrote it, or it is damaged";
        why = lkg_map_get_string(suspects, "unknown");
        return why ? why : "the record does not say";
}

/* ---- bad ---- */

/* RFC 3339 in UTC sorts as text. */
static int newest_first(const void *a, const void *b)
{
        const struct lkg_value *x = *(struct lkg_value *const *)a, *y = *(struct lkg_value *const *)b;
        int order = strcmp(cell(y, "time"), cell(x, "time"));

        return order ? order : strcmp(cell(x, "id"), cell(y, "id"));
}

/* The members of a mark that are shown; @whole: with what it was compared to. */
static void map_mark(struct lkg_value *map, const char *id, const struct lkg_value *json, bool whole)
{
        static const char *const keys[] = { "time", "cause", "reason", "source", "suspects" };

        lkg_tool_map_string(map, "id", id);
        for (size_t i = 0; json && i < LKG_ARRAY_SIZE(keys) - !whole; i++) {
                struct lkg_value *value = lkg_map_get(json, keys[i]);

                if (value && (i > 2 || lkg_map_get_string(json, keys[i])))
                        lkg_tool_map_value(map, keys[i], value);
        }
}

/* @unreadable: the reason of one whose record cannot be read; NULL = none */
static struct lkg_value *read_mark(const struct lkg_view *view, const char *id, const char *unreadable)
{
        struct lkg_value *json = lkg_view_read_json(view, "bad/%s/%s", view->component, id);
        struct lkg_value *item = lkg_tool_map();

        map_mark(item, id, json, false);
        if (!json)
                lkg_tool_map_string(item, "reason", unreadable);
        return item;
}

static int list_marks(const struct lkg_tool *tool, const struct lkg_view *view)
{
        static const struct lkg_column columns[] = { { "TIME", "time" },
                                                     { "ID", "id" },
                                                     { "REASON", "reason" } };
        struct lkg_strings names = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_value *list = lkg_tool_list();
        struct lkg_value **marks;
        int r = lkg_view_bad_names(view, &names);

        if (r < 0)
                lkg_tool_end(tool, LKG_TOOL_FAILED, "%s/bad/%s: %s", view->root, view->component,
                             strerror(-r));
        marks = lkg_tool_keep(calloc(names.n_items + 1, sizeof(*marks)));
        for (size_t i = 0; i < names.n_items; i++)
                marks[i] = read_mark(view, names.items[i],
                                     lkg_tool_structured(tool) ? NULL : "(cannot be read)");
        qsort(marks, names.n_items, sizeof(*marks), newest_first);
        for (size_t i = 0; i < names.n_items; i++)
                lkg_tool_append(list, marks[i]);
        if (lkg_tool_structured(tool))
                return lkg_tool_print_listed(tool, view, "configurations", list, LKG_TOOL_OK);
        lkg_tool_put_table(list, columns, LKG_ARRAY_SIZE(columns), &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int show_text(const char *id, const struct lkg_value *json)
{
        static const char text[] =
                "id         {{id}}\n"
                "time       {{time}}{{!time}}-{{/}}\n"
                "cause      {{cause}}{{!cause}}-{{/}}\n"
                "reason     {{reason}}{{!reason}}-{{/}}\n"
                "{{#missing}}suspects   not known: {{.}}\n{{/}}"
                "{{!missing}}compared   generation {{generation}} with the last known good"
                "{{#lastKnownGood}}, generation {{.}}{{/}}\n\n{{/}}";
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_value *map = lkg_tool_own(lkg_must(lkg_value_clone_shallow(json)));
        const struct lkg_value *suspects = lkg_map_get(json, "suspects");

        lkg_tool_texts(map, "id", id, "missing", lkg_tool_suspects_missing(json), NULL);
        lkg_tool_map_number(map, "generation", lkg_suspects_number(suspects, "generation"));
        lkg_tool_map_number(map, "lastKnownGood", lkg_suspects_number(suspects, "lastKnownGood"));
        lkg_tool_fill(text, map, /* html= */ false, &buf);
        lkg_tool_put_suspects(suspects, &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int show_mark(const struct lkg_tool *tool, const struct lkg_view *view, const char *id)
{
        struct lkg_value *json = lkg_view_read_json(view, "bad/%s/%s", view->component, id);
        struct lkg_value *map;

        if (!json)
                lkg_tool_end(tool, LKG_TOOL_FAILED,
                             "%s: %.255s is not marked bad, or its record cannot be read; `lkgfs bad` "
                             "lists all",
                             view->component, id);
        if (!lkg_tool_structured(tool))
                return show_text(id, json);
        map = lkg_tool_texts(lkg_tool_document(), "component", view->component, NULL);
        map_mark(map, id, json, true);
        return lkg_tool_print_map(tool, map, LKG_TOOL_OK);
}

/* The verb `forget` removes a mark. */
int lkg_verb_bad(const struct lkg_tool *tool)
{
        struct lkg_view view = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf reason = LKG_BUF_INIT;
        const char *id = tool->n_words > 0 ? tool->words[0] : NULL;

        for (size_t i = 1; i < tool->n_words; i++)
                lkg_buf_printf(&reason, "%s%s", i > 1 ? " " : "", tool->words[i]);
        /* An id that is not a file name would lead elsewhere; an empty reason would have no effect. */
        if (id && (!*id || *id == '.' || strchr(id, '/')))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "\"%.60s\" is neither a uid nor a source id", id);
        if (id && tool->n_words > 1 && !*tool->words[1])
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "missing: a reason after the id");
        view = lkg_view_open(tool, true);
        if (tool->n_words > 1) /* as `echo REASON > bad/<component>/ID` does, whose words are joined */
                return lkg_view_write(tool, &view, lkg_tool_format("bad/%s/%s", view.component, id), O_CREAT,
                                      lkg_buf_text(&reason));
        return id ? show_mark(tool, &view, id) : list_marks(tool, &view);
}

/* ---- drift ---- */

/* Exit status 1 if the running component differs from what is served, 2 if it runs and it is unknown what it has read. */
int lkg_verb_drift(const struct lkg_tool *tool)
{
        static const struct lkg_column columns[] = { { "FIELD", "field" },
                                                     { "RUNNING", "running" },
                                                     { "SERVED", "served" } };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_view view = lkg_view_open(tool, true);
        const struct lkg_known *known = lkg_known_read(&view);
        struct lkg_value *map;
        unsigned long unseen;
        int status;

        if (known->drift_error < 0)
                lkg_tool_end(tool, LKG_TOOL_FAILED, "'%s/status/%s/drift': %s", view.root, view.component,
                             strerror(-known->drift_error));
        unseen = lkg_known_unseen(known);
        status = lkg_value_size(known->drift) ? LKG_TOOL_DIFFERENT : unseen ? LKG_TOOL_FAILED : LKG_TOOL_OK;
        if (lkg_tool_structured(tool)) {
                map = lkg_tool_texts(lkg_tool_document(), "component", view.component, NULL);
                if (unseen)
                        lkg_tool_map_number(map, "unseenProcess", unseen);
                lkg_tool_map_value(map, "fields", known->drift);
                return lkg_tool_print_map(tool, map, status);
        }
        if (unseen)
                return lkg_tool_fail(tool, status, "%s " LKG_UNSEEN, view.component, unseen);
        if (lkg_value_size(known->drift))
                lkg_tool_put_table(known->drift, columns, LKG_ARRAY_SIZE(columns), &buf);
        return lkg_tool_print(&buf, status);
}

/* ---- the rollout that this node takes part in: status/<component>/rollout ---- */

static bool has_halted(const struct lkg_value *rollout)
{
        return strtoul(lkg_tool_word(rollout, "failed"), NULL, 10) >=
               strtoul(lkg_tool_word(rollout, "max_failures"), NULL, 10);
}

static int print_rollout(const struct lkg_value *rollout, int status)
{
        static const char text[] = "this node  {{waiting}}{{!waiting}}{{state}}{{/}}\n"
                                   "{{#slot}}slot       {{.}}\n{{/}}"
                                   "in trial   {{in_trial}} of {{max_in_trial}} at a time\n"
                                   "done       {{done}}\n"
                                   "failed     {{failed}}, halts with {{max_failures}}\n"
                                   "{{#failed_node}}           node {{.}}: {{failed_reason}}\n{{/}}";
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_tool_fill(text, rollout, /* html= */ false, &buf);
        return lkg_tool_print(&buf, status);
}

static int print_rollout_map(const struct lkg_tool *tool, const struct lkg_view *view,
                             const struct lkg_value *rollout, int status)
{
        static const struct lkg_tool_member members[] = {
                { "state", "state" },
                { "max_in_trial", "maxInTrial", true },
                { "max_failures", "maxFailures", true },
                { "in_trial", "inTrial", true },
                { "done", "done", true },
                { "failed", "failed", true },
                { "failed_node", "failedNode" },
                { "failed_reason", "failedReason" },
                { "slot", "slot" },
                { "waiting", "waiting" },
        };
        struct lkg_value *map = lkg_tool_texts(lkg_tool_document(), "component", view->component, NULL);

        lkg_tool_map_bool(map, "halted", has_halted(rollout));
        lkg_tool_map_members(map, rollout, members, LKG_ARRAY_SIZE(members));
        return lkg_tool_print_map(tool, map, status);
}

/* Exit status 1 if it has halted. With a ConfigMap: see verb-rollout-fleet.c. */
int lkg_verb_rollout(const struct lkg_tool *tool)
{
        struct lkg_view view = { 0 };
        struct lkg_value *rollout;
        char *text;
        int r, status;

        if (lkg_rollout_is_of_fleet(tool))
                return lkg_verb_rollout_of_fleet(tool);
        view = lkg_view_open(tool, true);
        r = lkg_view_read(&view, &text, NULL, "status/%s/rollout", view.component);
        if (r == -ENOENT)
                lkg_tool_end(tool, LKG_TOOL_FAILED,
                             "%s takes part in no rollout with slots (annotation "
                             "lkgfs.io/rollout-max-in-trial of its ConfigMap)",
                             view.component);
        if (r < 0)
                lkg_tool_end(tool, LKG_TOOL_FAILED, "'%s/status/%s/rollout': %s", view.root, view.component,
                             strerror(-r));
        rollout = lkg_tool_pairs(text);
        status = has_halted(rollout) ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
        return lkg_tool_structured(tool) ? print_rollout_map(tool, &view, rollout, status)
                                         : print_rollout(rollout, status);
}
