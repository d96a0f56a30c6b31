/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs status: an administrator's first look at three in the morning. Components with problems come first;
 * for each the condition, then the served configuration, then the problems, then advice. Everything is read
 * from status/<component>/; a file that the caller may not read, or that this daemon does not provide, is
 * skipped.
 *
 * Exit status 1 if any condition is not True, or if a process of lkgfs is not running.
 */
#include "verb-drift.h"
#include "view-dynamic.h"
#include "view-held.h"
#include "processes.h"

#include <sys/stat.h>
#include <time.h>

#define FINDINGS_LINES_MAX 8 /* for all components together: `cat` shows the rest */
#define DRIFT_FIELDS_MAX   3
#define UNKNOWN_FIELD_CODE 5003
#define POISON_CODE        2030 /* content that crashed an engine: nothing is more urgent */

enum rank { RANK_FALSE, RANK_UNKNOWN, RANK_FINDINGS, RANK_GOOD };

struct facts {
        char *name;
        char *condition;                  /* "<status> <reason>: <message>" */
        struct lkg_value *condition_json; /* the same as a map; NULL = none */
        const char *since;                /* last transition, RFC 3339; of the map */
        char *generation, *sha256, *error, *last_error;
        struct lkg_report findings;
        struct lkg_view_dynamic dynamic;
        struct lkg_held held;
        struct lkg_drift drift;
        struct lkg_processes processes;
        size_t lines[_LKG_SEVERITY_MAX]; /* how many findings of each kind may be shown */
        bool findings_hidden;            /* only root may read them */
        char served_since[21];
        enum rank rank;
};

static void facts_deinit(struct facts *facts)
{
        char *texts[] = { facts->name,   facts->condition, facts->generation,
                          facts->sha256, facts->error,     facts->last_error };

        lkg_value_unref(facts->condition_json);
        lkg_report_deinit(&facts->findings);
        lkg_dynamic_deinit(&facts->dynamic);
        lkg_held_deinit(&facts->held);
        lkg_drift_deinit(&facts->drift);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++)
                free(texts[i]);
}

static const char *const condition_words[] = { [RANK_FALSE] = "False", [RANK_UNKNOWN] = "Unknown" };

static enum rank rank_of(const struct facts *facts)
{
        if (!facts->condition || strncmp(facts->condition, "Unknown", 7) == 0)
                return RANK_UNKNOWN;
        if (strncmp(facts->condition, condition_words[RANK_FALSE], 5) == 0)
                return RANK_FALSE;
        return facts->findings.n_severity[LKG_ERROR] || facts->findings.n_severity[LKG_WARNING]
                       ? RANK_FINDINGS
                       : RANK_GOOD;
}

static void read_facts(const struct lkg_view *view, const char *component, struct facts *facts)
{
        const struct {
                const char *file;
                char **text;
        } files[] = {
                { "condition", &facts->condition },
                { "sha256", &facts->sha256 },
                { "error", &facts->error },
                { "last-error", &facts->last_error },
        };
        struct stat st;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++)
                if (lkg_view_read(view, files[i].text, NULL, "status/%s/%s", component, files[i].file) < 0)
                        *files[i].text = NULL;
        if (lkg_view_read(view, &facts->generation, &st, "status/%s/generation", component) == 0)
                lkg_format_rfc3339((uint64_t)st.st_mtim.tv_sec * LKG_NSEC_PER_SEC, facts->served_since);
        facts->findings_hidden = lkg_view_findings(view, component, &facts->findings) == -EACCES;
        facts->condition_json = lkg_view_read_json(view, "status/%s/condition.json", component);
        if (facts->condition_json)
                facts->since = lkg_map_get_string(facts->condition_json, "lastTransitionTime");
        lkg_dynamic_read(view, component, &facts->dynamic);
        lkg_held_read(view, component, &facts->held);
        (void)lkg_drift_read(view, component, &facts->drift); /* only root may */
        lkg_processes_read(view, component, &facts->processes);
        facts->rank = rank_of(facts);
}

/* " (3 min ago)" after an absolute time. */
static void append_age(const char *rfc3339, struct lkg_buf *buf)
{
        struct tm tm = { 0 };
        const char *end = strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &tm);
        int64_t age_s;

        lkg_buf_puts(buf, rfc3339);
        if (!end)
                return;
        age_s = (int64_t)(lkg_realtime_ns() / LKG_NSEC_PER_SEC) - (int64_t)timegm(&tm);
        if (age_s < 0)
                return; /* the clock was set back: no age is better than a wrong one */
        if (age_s < 120)
                lkg_buf_printf(buf, " (%lld s ago)", (long long)age_s);
        else if (age_s < 2 * 3600)
                lkg_buf_printf(buf, " (%lld min ago)", (long long)(age_s / 60));
        else if (age_s < 2 * 86400)
                lkg_buf_printf(buf, " (%lld h ago)", (long long)(age_s / 3600));
        else
                lkg_buf_printf(buf, " (%lld days ago)", (long long)(age_s / 86400));
}

/* `lkgfs explain CODE` for the first error. */
static void append_explain(const struct lkg_report *findings, struct lkg_buf *buf)
{
        for (size_t i = 0; i < findings->n_findings; i++)
                if (findings->findings[i].severity == LKG_ERROR && findings->findings[i].code) {
                        lkg_buf_printf(buf, " (`lkgfs explain LKG%04u`)", findings->findings[i].code);
                        return;
                }
}

/* Used if no document of this node is wrong. Return: false: there is nothing to do. */
static bool append_next_remote(const struct facts *facts, struct lkg_buf *buf)
{
        if (lkg_dynamic_next(&facts->dynamic, facts->name, buf))
                return true;
        if (facts->rank == RANK_FALSE || facts->rank == RANK_UNKNOWN)
                lkg_buf_puts(buf, facts->findings_hidden
                                          ? "run this as root to see the findings"
                                          : "look into the log of lkgfsd (journalctl -u lkgfs)");
        else if (facts->findings.n_severity[LKG_WARNING])
                lkg_buf_puts(buf, "read the warnings above; all layers are applied");
        else if (facts->drift.n_fields)
                lkg_buf_puts(buf,
                             "restart the component when that is convenient: it runs with other values");
        else
                return false;
        return true;
}

static bool append_next_wrong(const struct facts *facts, struct lkg_buf *buf)
{
        if (facts->dynamic.assigned_mark || !facts->findings.n_severity[LKG_ERROR])
                return append_next_remote(facts, buf);
        lkg_buf_puts(buf, "correct the files that the findings name; corrections take effect when saved");
        append_explain(&facts->findings, buf);
        return true;
}

/* Nothing is served before a hold ends, so that comes first. A warning may be about the hold itself. */
static void append_next_held(const struct facts *facts, struct lkg_buf *buf)
{
        if (facts->rank > RANK_UNKNOWN)
                return;
        if (!facts->dynamic.assigned_mark && !facts->findings.n_severity[LKG_ERROR])
                return;
        lkg_buf_puts(buf, "; then ");
        (void)append_next_wrong(facts, buf);
}

static bool missing_advice(const struct lkg_processes *processes, const char **ret)
{
        for (size_t i = 0; i < processes->n; i++)
                if (lkg_process_missing(&processes->items[i])) {
                        (void)lkg_process_loss(processes->items[i].name, ret);
                        return true;
                }
        return false;
}

static bool ends_often(const struct lkg_processes *processes)
{
        for (size_t i = 0; i < processes->n; i++)
                if (lkg_process_ends(&processes->items[i], NULL))
                        return true;
        return false;
}

/* The next step, one line. */
static void append_next(const struct facts *facts, struct lkg_buf *buf)
{
        const char *advice = NULL;

        if (facts->processes.engine_silent)
                lkg_buf_puts(buf,
                             "look into the log of lkgfsd (journalctl -u lkgfs): changes take effect when "
                             "the engine is back");
        else if (missing_advice(&facts->processes, &advice))
                lkg_buf_puts(buf, advice);
        else if (lkg_held_next(&facts->held, facts->name, buf))
                append_next_held(facts, buf);
        else if (!append_next_wrong(facts, buf))
                lkg_buf_puts(buf, ends_often(&facts->processes) ? LKG_ENDS_ADVICE
                                  : facts->held.rollout
                                          ? "nothing to do here: the rollout has not reached this node"
                                          : "nothing to do");
}

static void append_counts(const struct facts *facts, struct lkg_buf *buf)
{
        bool any = false;

        if (facts->findings_hidden) {
                lkg_buf_puts(buf, "only root may read them");
                return;
        }
        for (unsigned s = 0; s < _LKG_SEVERITY_MAX; s++) {
                size_t n = facts->findings.n_severity[s];

                if (n == 0)
                        continue;
                lkg_buf_printf(buf, "%s%zu %s%s", any ? ", " : "", n,
                               lkg_severity_name((enum lkg_severity)s), n == 1 ? "" : "s");
                any = true;
        }
        lkg_buf_puts(buf, any ? "" : "none");
}

static void append_finding(const struct lkg_finding *f, bool colour, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;

        lkg_finding_format(f, &line);
        lkg_buf_putc(&line, '\0');
        if (!lkg_buf_failed(&line))
                lkg_tool_paint_findings(colour, line.data, "    ", buf);
}

/* Shows findings of this severity, either of poison or all others: poison comes first. */
static void append_some(const struct facts *facts, enum lkg_severity severity, bool poison, bool colour,
                        size_t *room, struct lkg_buf *buf)
{
        for (size_t i = 0; i<facts->findings.n_findings && * room> 0; i++) {
                const struct lkg_finding *f = &facts->findings.findings[i];

                if (f->severity != severity || (f->code == POISON_CODE) != poison)
                        continue;
                append_finding(f, colour, buf);
                --*room;
        }
}

/* The worst first: errors and warnings before notes; notes only on request. */
static void append_findings(const struct facts *facts, bool colour, bool all, struct lkg_buf *buf)
{
        size_t left = facts->findings.n_dropped, notes = facts->findings.n_severity[LKG_NOTE];

        for (int s = 0; s <= (all ? LKG_NOTE : LKG_WARNING); s++) {
                size_t room = facts->lines[s];

                left += facts->findings.n_severity[s] - room;
                append_some(facts, (enum lkg_severity)s, true, colour, &room, buf);
                append_some(facts, (enum lkg_severity)s, false, colour, &room, buf);
        }
        if (left)
                lkg_buf_printf(buf, "    and %zu more\n", left);
        if (notes > 0 && !all)
                lkg_buf_printf(buf, "    %zu note%s: lkgfs status --all\n", notes, notes == 1 ? "" : "s");
}

/*
 * Share the screen: first one line per component for its worst finding, then errors of all, then warnings.
 */
static void share_lines(struct facts *facts, size_t n, bool all)
{
        size_t left = all ? SIZE_MAX : FINDINGS_LINES_MAX;

        for (int round = 0; round < 2; round++)
                for (int s = 0; s <= (all ? LKG_NOTE : LKG_WARNING); s++)
                        for (size_t i = 0; i < n; i++) {
                                const struct lkg_report *report = &facts[i].findings;
                                bool worst = s == LKG_ERROR || !report->n_severity[LKG_ERROR];
                                size_t want = report->n_severity[s] - facts[i].lines[s];

                                if (round == 0)
                                        want = want && worst && s <= LKG_WARNING;
                                want = want < left ? want : left;
                                facts[i].lines[s] += want;
                                left -= want;
                        }
}

static void append_drift(const struct facts *facts, struct lkg_buf *buf)
{
        size_t n = facts->drift.n_fields;

        for (size_t i = 0; i < n && i < DRIFT_FIELDS_MAX; i++) {
                lkg_buf_puts(buf, i == 0 ? "  drift     " : "            ");
                lkg_drift_text(&facts->drift.fields[i], buf);
                lkg_buf_putc(buf, '\n');
        }
        if (facts->drift.unseen)
                lkg_buf_printf(buf, "  drift     " LKG_DRIFT_UNSEEN "\n", facts->drift.unseen);
        if (n > DRIFT_FIELDS_MAX)
                lkg_buf_printf(buf, "            and %zu more: lkgfs drift\n", n - DRIFT_FIELDS_MAX);
}

static void append_missing(const struct facts *facts, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf missing = LKG_BUF_INIT;
        size_t n = lkg_processes_missing(&facts->processes, &missing);

        if (n > 0 && missing.data)
                lkg_buf_printf(buf, "  processes %s do%s not run\n", missing.data, n == 1 ? "es" : "");
        for (size_t i = 0; i < facts->processes.n; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf ends = LKG_BUF_INIT;

                if (!lkg_process_ends(&facts->processes.items[i], &ends))
                        continue;
                lkg_buf_puts(buf, "  processes ");
                lkg_buf_append(buf, ends.data, ends.size);
                lkg_buf_putc(buf, '\n');
        }
}

static void map_processes(const struct facts *facts, struct lkg_tool_map *map)
{
        struct lkg_tool_map processes;

        if (facts->processes.n == 0)
                return;
        lkg_tool_map_init(&processes, false);
        for (size_t i = 0; i < facts->processes.n; i++)
                lkg_tool_map_bool(&processes, facts->processes.items[i].name, facts->processes.items[i].up);
        map->failed |= processes.failed;
        lkg_tool_map_value(map, "processes", processes.value);
}

/* A field that nobody reads, probably a typo, so that another value counts than was meant. */
static void append_typo(const struct facts *facts, struct lkg_buf *buf)
{
        for (size_t i = 0; i < facts->findings.n_findings; i++) {
                const struct lkg_finding *f = &facts->findings.findings[i];
                const char *hint = f->code == UNKNOWN_FIELD_CODE ? strstr(f->text, "; did you mean ") : NULL;

                if (!hint)
                        continue;
                lkg_buf_printf(buf, "; but %.*s", (int)strcspn(f->text, " "), f->text);
                if (f->file)
                        lkg_buf_printf(buf, " (%s:%u)", f->file, f->line);
                lkg_buf_printf(buf, " is no field and counts for nothing%s", hint);
                return;
        }
}

static void text_component(const struct lkg_view *view, const struct facts *facts, bool colour, bool all,
                           struct lkg_buf *buf)
{
        static const enum lkg_severity paints[] = { [RANK_FALSE] = LKG_ERROR,
                                                    [RANK_UNKNOWN] = LKG_WARNING,
                                                    [RANK_FINDINGS] = LKG_WARNING,
                                                    [RANK_GOOD] = LKG_NOTE };
        bool served = facts->generation && strtoull(facts->generation, NULL, 10) > 0;

        lkg_buf_printf(buf, "%s%s: %s", lkg_tool_paint(colour, paints[facts->rank]), facts->name,
                       facts->condition ? facts->condition : "Unknown: no condition can be read");
        append_typo(facts, buf);
        lkg_buf_printf(buf, "%s\n", lkg_tool_paint_end(colour));
        if (facts->since) {
                lkg_buf_puts(buf, "  since     ");
                append_age(facts->since, buf);
                lkg_buf_putc(buf, '\n');
        }
        append_missing(facts, buf);
        if (served) {
                lkg_buf_printf(buf, "  serving   generation %s, sha256 %.12s, %s, since ", facts->generation,
                               facts->sha256 ? facts->sha256 : "?",
                               facts->dynamic.active ? facts->dynamic.active : "?");
                append_age(facts->served_since, buf);
                lkg_buf_putc(buf, '\n');
        } else {
                lkg_buf_printf(buf, "  serving   nothing below %s\n", view->mountpoint);
        }
        lkg_held_text(&facts->held, buf);
        lkg_dynamic_text(&facts->dynamic, buf);
        append_drift(facts, buf);
        if (facts->error && *facts->error && !facts->findings.n_severity[LKG_ERROR]) /* else it is below */
                lkg_buf_printf(buf, "  error     %s\n", facts->error);
        lkg_buf_puts(buf, "  findings  ");
        append_counts(facts, buf);
        lkg_buf_putc(buf, '\n');
        append_findings(facts, colour, all, buf);
        if (facts->last_error && *facts->last_error &&
            (!facts->error || strcmp(facts->last_error, facts->error) != 0))
                lkg_buf_printf(buf, "  refused   %s\n", facts->last_error);
        lkg_buf_puts(buf, "  next      ");
        append_next(facts, buf);
        lkg_buf_putc(buf, '\n');
}

/* From condition.json: a reason may contain a colon, so the line of text cannot be parsed. */
static void put_condition(struct lkg_tool_map *map, const struct facts *facts)
{
        static const char *const members[] = { "status", "reason", "message" };
        struct lkg_tool_map condition;

        lkg_tool_map_init(&condition, false);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(members); i++) {
                const char *text =
                        facts->condition_json ? lkg_map_get_string(facts->condition_json, members[i]) : NULL;

                lkg_tool_map_string(&condition, members[i], text ? text : i == 0 ? "Unknown" : "");
        }
        lkg_tool_map_string(&condition, "since", facts->since);
        map->failed |= condition.failed;
        lkg_tool_map_value(map, "condition", condition.value);
}

static void structured_component(const struct facts *facts, struct lkg_value *list, bool *failed)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf next = LKG_BUF_INIT;
        struct lkg_tool_map map;

        append_next(facts, &next);
        lkg_tool_map_init(&map, false);
        lkg_tool_map_string(&map, "name", facts->name);
        put_condition(&map, facts);
        map_processes(facts, &map);
        lkg_tool_map_number(&map, "generation",
                            facts->generation ? strtoull(facts->generation, NULL, 10) : 0);
        lkg_tool_map_string(&map, "servedSince", *facts->served_since ? facts->served_since : NULL);
        lkg_tool_map_string(&map, "sha256", facts->sha256);
        lkg_held_map(&facts->held, &map);
        lkg_dynamic_map(&facts->dynamic, &map);
        lkg_tool_map_value(&map, "drift", lkg_drift_value(&facts->drift));
        if (facts->drift.unseen)
                lkg_tool_map_number(&map, "unseenProcess", facts->drift.unseen);
        lkg_tool_map_string(&map, "error", facts->error);
        lkg_tool_map_string(&map, "lastError", facts->last_error);
        lkg_tool_map_string(&map, "next", next.data);
        lkg_tool_map_number(&map, "notListed", facts->findings.n_dropped);
        lkg_tool_map_value(&map, "findings", lkg_tool_findings_value(&facts->findings, NULL));
        lkg_tool_list_take(list, &map, failed);
}

static int by_rank(const void *a, const void *b)
{
        const struct facts *x = a, *y = b;

        return x->rank != y->rank ? (int)x->rank - (int)y->rank : strcmp(x->name, y->name);
}

static int print_facts(const struct lkg_tool *tool, const struct lkg_view *view, struct facts *facts,
                       size_t n)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        bool structured = tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML;
        struct lkg_value *list = structured ? lkg_value_new_list(NULL, 0, 0) : NULL;
        bool colour = lkg_tool_colour_for(tool, STDOUT_FILENO), failed = false;
        int status = LKG_TOOL_OK;
        struct lkg_tool_map map;

        qsort(facts, n, sizeof(*facts), by_rank);
        share_lines(facts, n, tool->options.all);
        for (size_t i = 0; i < n; i++) {
                if (facts[i].rank <= RANK_UNKNOWN || lkg_processes_missing(&facts[i].processes, NULL) ||
                    ends_often(&facts[i].processes))
                        status = LKG_TOOL_DIFFERENT;
                if (structured)
                        structured_component(&facts[i], list, &failed);
                else
                        text_component(view, &facts[i], colour, tool->options.all, &buf);
        }
        if (!structured)
                return lkg_tool_print(&buf, status);
        lkg_tool_map_init(&map, true);
        map.failed |= failed;
        lkg_tool_map_string(&map, "mountpoint", view->mountpoint);
        lkg_tool_map_value(&map, "components", list);
        return lkg_tool_print_map(tool, &map, status);
}

/* The requested components: the named one, else all. */
static int choose_components(const struct lkg_tool *tool, const struct lkg_view *view, char ***ret,
                             size_t *ret_n)
{
        char **list;
        int r;

        if (!tool->options.component) {
                r = lkg_view_components(view, ret, ret_n);
                return r == 0 ? LKG_TOOL_OK
                              : lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s/status': %s", view->root,
                                              strerror(-r));
        }
        list = calloc(1, sizeof(*list));
        if (!list)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        r = lkg_view_component(tool, view, &list[0]);
        if (r != LKG_TOOL_OK) {
                free(list);
                return r;
        }
        *ret = list;
        *ret_n = 1;
        return LKG_TOOL_OK;
}

int lkg_verb_status(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        struct facts *facts;
        char **names = NULL;
        size_t n = 0;
        int r;

        r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = choose_components(tool, &view, &names, &n);
        if (r != LKG_TOOL_OK)
                return r;
        facts = calloc(n ? n : 1, sizeof(*facts));
        if (!facts) {
                lkg_view_free_mounts(names, n);
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        }
        for (size_t i = 0; i < n; i++) {
                facts[i].name = LKG_STEAL(names[i]);
                read_facts(&view, facts[i].name, &facts[i]);
        }
        r = print_facts(tool, &view, facts, n);
        for (size_t i = 0; i < n; i++)
                facts_deinit(&facts[i]);
        free(facts);
        lkg_view_free_mounts(names, n);
        return r;
}
