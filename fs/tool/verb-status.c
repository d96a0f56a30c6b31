/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs status: an administrator's first look at three in the morning. Components with problems come first;
 * for each the condition, then the served configuration, then the problems, then advice.
 *
 * Exit status 1 if any condition is not True, or if a process of lkgfs is not running.
 */
#include "known.h"

#define FINDINGS_LINES_MAX 8 /* for all components together: `cat` shows the rest */
#define DRIFT_FIELDS_MAX   3
#define UNKNOWN_FIELD_CODE 5003
#define POISON_CODE        2030 /* content that crashed an engine: nothing is more urgent */

enum rank { RANK_FALSE, RANK_UNKNOWN, RANK_FINDINGS, RANK_GOOD };

struct facts {
        struct lkg_view view; /* of one component */
        const struct lkg_known *known;
        size_t lines[_LKG_SEVERITY_MAX]; /* how many findings of each kind may be shown */
        enum rank rank;
};

static const char *text_of(const struct facts *facts, const char *file)
{
        return lkg_known_text(facts->known, file);
}

static enum rank rank_of(const struct facts *facts)
{
        const char *condition = text_of(facts, "condition");
        const size_t *n = facts->known->findings.n_severity;

        if (strncmp(condition, "False", 5) == 0)
                return RANK_FALSE;
        if (!*condition || strncmp(condition, "Unknown", 7) == 0)
                return RANK_UNKNOWN;
        return n[LKG_ERROR] || n[LKG_WARNING] ? RANK_FINDINGS : RANK_GOOD;
}

/* ---- the next step ---- */

/* Used if no document of this node is wrong. NULL: there is nothing to do. */
static const char *next_remote(const struct facts *facts)
{
        const struct lkg_known *known = facts->known;
        const char *trial = lkg_known_trial_next(known, facts->view.component);

        if (trial)
                return trial;
        if (facts->rank == RANK_FALSE || facts->rank == RANK_UNKNOWN)
                return known->findings_hidden ? "run this as root to see the findings"
                                              : "look into the log of lkgfsd (journalctl -u lkgfs)";
        if (known->findings.n_severity[LKG_WARNING])
                return "read the warnings above; all layers are applied";
        return lkg_value_size(known->drift)
                       ? "restart the component when that is convenient: it runs with other values"
                       : NULL;
}

static bool is_wrong_here(const struct facts *facts)
{
        return !facts->known->assigned_mark && facts->known->findings.n_severity[LKG_ERROR];
}

/* With the code of the first error. */
static const char *next_wrong(const struct facts *facts)
{
        const struct lkg_report *findings = &facts->known->findings;
        static const char words[] =
                "correct the files that the findings name; corrections take effect when saved";

        if (!is_wrong_here(facts))
                return next_remote(facts);
        for (size_t i = 0; i < findings->n_findings; i++)
                if (findings->findings[i].severity == LKG_ERROR && findings->findings[i].code)
                        return lkg_tool_format("%s (`lkgfs explain LKG%04u`)", words,
                                               findings->findings[i].code);
        return words;
}

/* Return: what to do about a process that is missing; NULL = none is. */
static const char *missing_advice(const struct lkg_processes *processes)
{
        const char *advice = NULL;

        for (size_t i = 0; i < processes->n && !advice; i++)
                if (lkg_process_missing(&processes->items[i]))
                        (void)lkg_process_loss(processes->items[i].name, &advice);
        return advice;
}

static bool ends_often(const struct lkg_processes *processes)
{
        for (size_t i = 0; i < processes->n; i++)
                if (lkg_process_ends(&processes->items[i]))
                        return true;
        return false;
}

/* One line. Nothing is served before a hold ends, so that comes first. A warning may be about the hold itself. */
static const char *next_of(const struct facts *facts)
{
        const struct lkg_known *known = facts->known;
        const char *advice = missing_advice(&known->processes),
                   *hold = lkg_known_hold_next(known, facts->view.component), *wrong = next_wrong(facts);

        if (known->processes.engine_silent)
                return "look into the log of lkgfsd (journalctl -u lkgfs): changes take effect when the "
                       "engine is "
                       "back";
        if (advice)
                return advice;
        if (hold)
                return facts->rank > RANK_UNKNOWN || (!known->assigned_mark && !is_wrong_here(facts))
                               ? hold
                               : lkg_tool_format("%s; then %s", hold, wrong ? wrong : "");
        return wrong                           ? wrong
               : ends_often(&known->processes) ? LKG_ENDS_ADVICE
               : *lkg_tool_word(known->hold, "rollout")
                       ? "nothing to do here: the rollout has not reached this node"
                       : "nothing to do";
}

/* ---- findings ---- */

static void append_counts(const struct facts *facts, struct lkg_buf *buf)
{
        bool any = false;

        if (facts->known->findings_hidden) {
                lkg_buf_puts(buf, "only root may read them");
                return;
        }
        for (unsigned s = 0; s < _LKG_SEVERITY_MAX; s++) {
                size_t n = facts->known->findings.n_severity[s];

                if (n == 0)
                        continue;
                lkg_buf_printf(buf, "%s%zu %s%s", any ? ", " : "", n,
                               lkg_severity_name((enum lkg_severity)s), n == 1 ? "" : "s");
                any = true;
        }
        lkg_buf_puts(buf, any ? "" : "none");
}

/* Shows findings of this severity, either of poison or all others: poison comes first. */
static void append_some(const struct lkg_report *findings, enum lkg_severity severity, bool poison,
                        bool colour, size_t *room, struct lkg_buf *buf)
{
        for (size_t i = 0; i<findings->n_findings && * room> 0; i++) {
                const struct lkg_finding *f = &findings->findings[i];

                if (f->severity != severity || (f->code == POISON_CODE) != poison)
                        continue;
                lkg_buf_puts(buf, "    ");
                lkg_tool_put_finding(colour, f, buf);
                --*room;
        }
}

/* The worst first: errors and warnings before notes; notes only on request. */
static void append_findings(const struct facts *facts, bool colour, bool all, struct lkg_buf *buf)
{
        const struct lkg_report *findings = &facts->known->findings;
        size_t left = findings->n_dropped, notes = findings->n_severity[LKG_NOTE];

        for (int s = 0; s <= (all ? LKG_NOTE : LKG_WARNING); s++) {
                size_t room = facts->lines[s];

                left += findings->n_severity[s] - room;
                append_some(findings, (enum lkg_severity)s, true, colour, &room, buf);
                append_some(findings, (enum lkg_severity)s, false, colour, &room, buf);
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
                                const size_t *n_severity = facts[i].known->findings.n_severity;
                                bool worst = s == LKG_ERROR || !n_severity[LKG_ERROR];
                                size_t want = n_severity[s] - facts[i].lines[s];

                                if (round == 0)
                                        want = want && worst && s <= LKG_WARNING;
                                want = want < left ? want : left;
                                facts[i].lines[s] += want;
                                left -= want;
                        }
}

/* " (3 min ago)", which follows an absolute time. */
static void map_age(struct lkg_value *map, const char *key, const char *rfc3339)
{
        uint64_t then_ns, now_ns = lkg_realtime_ns();
        char age[LKG_AGE_MAX];

        /* Else the clock was set back: no age is better than a wrong one. */
        if (lkg_parse_rfc3339(rfc3339, &then_ns) == 0 && then_ns <= now_ns)
                lkg_tool_map_string(
                        map, key,
                        lkg_tool_format(" (%s ago)",
                                        lkg_tool_age((now_ns - then_ns) / LKG_NSEC_PER_SEC, age)));
}

static void append_drift(const struct lkg_known *known, struct lkg_buf *buf)
{
        size_t n = lkg_value_size(known->drift);
        unsigned long unseen = lkg_known_unseen(known);

        for (size_t i = 0; i < n && i < DRIFT_FIELDS_MAX; i++)
                lkg_buf_printf(buf, "%s%s\n", i == 0 ? "  drift     " : "            ",
                               lkg_known_drift(known, i));
        if (unseen)
                lkg_buf_printf(buf, "  drift     " LKG_UNSEEN "\n", unseen);
        if (n > DRIFT_FIELDS_MAX)
                lkg_buf_printf(buf, "            and %zu more: lkgfs drift\n", n - DRIFT_FIELDS_MAX);
}

/* Sentences about processes of lkgfs that do not run, or end again and again. */
static void map_trouble(struct lkg_value *map, const struct lkg_processes *processes)
{
        struct lkg_value *list = lkg_tool_map_list(map, "trouble");
        const char *text = lkg_processes_trouble(processes);

        if (text)
                lkg_tool_append(list, lkg_tool_string(text));
        for (size_t i = 0; i < processes->n; i++) {
                text = lkg_process_ends(&processes->items[i]);
                if (text)
                        lkg_tool_append(list, lkg_tool_string(text));
        }
}

/* A field that nobody reads, probably a typo, so that another value counts than was meant. */
static void append_typo(const struct lkg_report *findings, struct lkg_buf *buf)
{
        for (size_t i = 0; i < findings->n_findings; i++) {
                const struct lkg_finding *f = &findings->findings[i];
                const char *hint = f->code == UNKNOWN_FIELD_CODE ? strstr(f->text, "; did you mean ") : NULL;

                if (!hint)
                        continue;
                lkg_buf_printf(buf, "; but %.*s", (int)strcspn(f->text, " "), f->text);
                if (f->file)
                        lkg_buf_printf(buf, " (%s:%u)", f->file, f->line);
                lkg_buf_printf(buf, " is not a field and counts for nothing%s", hint);
                return;
        }
}

/* ---- as a document ---- */

static void map_hold(struct lkg_value *map, const struct lkg_known *known)
{
        static const struct lkg_tool_member members[] = {
                { "generation", "generation" },
                { "since", "since" },
                { "uid", "uid" },
                { "pid", "pid" },
                { "program", "program" },
                { "until", "until" },
                { "rollout", "rollout" },
        };
        const char *mode = lkg_known_mode(known), *try = lkg_known_try(known);
        struct lkg_value *item;

        if (!mode && strcmp(try, "none") == 0 && !lkg_map_get(known->hold, "rollout"))
                return;
        item = lkg_tool_map();
        lkg_tool_map_members(item, known->hold, members, LKG_ARRAY_SIZE(members));
        lkg_tool_map_bool(item, "newerWaits", lkg_known_newer_waits(known));
        lkg_tool_map_value(map, "hold",
                           lkg_tool_texts(item, "mode", mode ? mode : "free", "try", try, NULL));
}

static void map_trial(struct lkg_value *map, const struct lkg_value *trial)
{
        static const struct lkg_tool_member members[] = {
                { "state", "state" },
                { "started", "started" },
                { "deadline", "deadline" },
                { "prior_starts", "priorStarts", .number = true },
                { "threshold", "threshold", .number = true },
        };
        struct lkg_value *item;

        if (!lkg_map_get(trial, "state"))
                return;
        item = lkg_tool_map();
        lkg_tool_map_members(item, trial, members, LKG_ARRAY_SIZE(members));
        lkg_tool_map_value(map, "trial", item);
}

static struct lkg_value *map_component(const struct facts *facts)
{
        static const struct lkg_tool_member texts[] = {
                { "sha256", "sha256" },        { "active", "active" },
                { "assigned", "assigned" },    { "error", "error" },
                { "last-error", "lastError" }, { "last-known-good", "lastKnownGood" },
        };
        const struct lkg_known *known = facts->known;
        const char *status = lkg_tool_word(known->condition, "status");
        struct lkg_value *map = lkg_tool_map(), *condition = lkg_tool_map(), *processes = lkg_tool_map();

        lkg_tool_texts(map, "name", facts->view.component, "servedSince",
                       *known->served_since ? known->served_since : NULL, "next", next_of(facts), NULL);
        /* from condition.json: a reason may contain a colon, so the line of text cannot be parsed */
        lkg_tool_texts(condition, "status", *status ? status : "Unknown", "reason",
                       lkg_tool_word(known->condition, "reason"), "message",
                       lkg_tool_word(known->condition, "message"), "since",
                       known->condition ? lkg_map_get_string(known->condition, "lastTransitionTime") : NULL,
                       NULL);
        lkg_tool_map_value(map, "condition", condition);
        for (size_t i = 0; i < known->processes.n; i++)
                lkg_tool_map_bool(processes, known->processes.items[i].name, known->processes.items[i].up);
        if (known->processes.n)
                lkg_tool_map_value(map, "processes", processes);
        lkg_tool_map_number(map, "generation", strtoull(text_of(facts, "generation"), NULL, 10));
        lkg_tool_map_members(map, known->texts, texts, LKG_ARRAY_SIZE(texts));
        map_hold(map, known);
        if (known->has_marks)
                lkg_tool_map_number(map, "bad", known->marks.n_items);
        map_trial(map, known->trial);
        if (lkg_value_size(known->pods) > 0)
                lkg_tool_map_value(map, "pods", known->pods);
        lkg_tool_map_value(map, "drift", known->drift);
        if (lkg_known_unseen(known))
                lkg_tool_map_number(map, "unseenProcess", lkg_known_unseen(known));
        lkg_tool_map_number(map, "notListed", known->findings.n_dropped);
        lkg_tool_map_value(map, "findings", lkg_tool_findings_value(&known->findings, NULL));
        return map;
}

/* ---- as text: the document in lines ---- */

static const char lines[] =
        "{{#condition/since}}  since     {{.}}{{sinceAge}}\n{{/}}"
        "{{#trouble}}  processes {{.}}\n{{/}}"
        "{{?generation}}  serving   generation {{generation}}, sha256 {{digest}}, "
        "{{active}}{{!active}}?{{/}}, "
        "since {{servedSince}}{{servedAge}}\n{{/}}"
        "{{!generation}}  serving   nothing below {{mountpoint}}\n{{/}}"
        "{{?held}}  held      at generation {{hold/generation}}{{!hold/generation}}?{{/}} "
        "({{hold/mode}}){{who}}; "
        "{{?hold/newerWaits}}a newer one waits{{/}}{{!hold/newerWaits}}nothing newer waits{{/}}\n{{/}}"
        "{{?tried}}  try       until {{hold/until}}{{!hold/until}}?{{/}}\n{{/}}"
        "{{?armed}}  try       armed: the next change is on try\n{{/}}"
        "{{#hold/rollout}}  rollout   {{.}}\n{{/}}"
        "{{?dynamic}}"
        "{{#assigned}}  assigned  {{.}}\n{{/}}"
        "{{#active}}  active    {{.}}\n{{/}}"
        "{{#lastKnownGood}}  last good {{.}}\n{{/}}"
        "{{?trying}}  trial     {{trial/state}}{{#trial/started}} since {{.}}{{/}}"
        "{{?onTrial}}{{#trial/deadline}} until {{.}}{{/}}{{/}}"
        "{{?hasStarts}}, {{trial/priorStarts}} start{{trial/priorStarts:s}}{{/}}"
        "{{?hasThreshold}}, threshold {{trial/threshold}}{{/}}\n{{/}}"
        "{{?bad}}  bad       {{bad}} configuration{{bad:s}}{{?assignedBad}}, the assigned one "
        "too{{/}} "
        "(`lkgfs bad`)\n{{/}}"
        "{{/}}"
        "{{#notGood}}  pod       {{.}}\n{{/}}";

/* Static pods that are not good. */
static void map_pods(struct lkg_value *map, const struct lkg_value *pods)
{
        struct lkg_value *list = lkg_tool_map_list(map, "notGood");

        for (size_t i = 0; i < lkg_value_size(pods); i++) {
                const struct lkg_value *pod = lkg_list_get(pods, i);
                const char *state = lkg_tool_word(pod, "state"), *since = lkg_tool_word(pod, "since"),
                           *why = lkg_tool_word(pod, "why");

                if (strcmp(state, "good") != 0)
                        lkg_tool_append(list, lkg_tool_string(lkg_tool_format(
                                                      "%s: %s%s%s%s%s", lkg_tool_word(pod, "file"), state,
                                                      *since == '-' ? "" : " since ",
                                                      *since == '-' ? "" : since, *why ? ": " : "", why)));
        }
}

/* What only people are shown. */
static void map_words(const struct facts *facts, struct lkg_value *map)
{
        const struct lkg_known *known = facts->known;
        const char *sha256 = text_of(facts, "sha256"), *state = lkg_tool_word(known->trial, "state"),
                   *try = lkg_known_try(known);
        const struct lkg_value *trial = lkg_map_get_map(map, "trial");

        lkg_tool_texts(map, "who", lkg_known_who(known), "digest",
                       lkg_tool_format("%.12s", *sha256 ? sha256 : "?"), "mountpoint",
                       facts->view.mountpoint, NULL);
        map_age(map, "sinceAge", lkg_tool_word(known->condition, "lastTransitionTime"));
        map_age(map, "servedAge", known->served_since);
        map_trouble(map, &known->processes);
        map_pods(map, known->pods);
        lkg_tool_bools(map, "held", lkg_known_mode(known) != NULL, "tried", strcmp(try, "running") == 0,
                       "armed", strcmp(try, "armed") == 0, "dynamic", lkg_known_dynamic(known), "trying",
                       *state && strcmp(state, "idle") != 0, "onTrial", lkg_known_on_trial(known),
                       "hasStarts", trial && lkg_map_get(trial, "priorStarts"), "hasThreshold",
                       trial && lkg_map_get(trial, "threshold"), "assignedBad", known->assigned_mark != NULL,
                       NULL);
}

static void text_component(const struct facts *facts, bool colour, bool all, struct lkg_buf *buf)
{
        static const enum lkg_severity paints[] = { [RANK_FALSE] = LKG_ERROR,
                                                    [RANK_UNKNOWN] = LKG_WARNING,
                                                    [RANK_FINDINGS] = LKG_WARNING,
                                                    [RANK_GOOD] = LKG_NOTE };
        struct lkg_value *map = map_component(facts);
        const struct lkg_known *known = facts->known;
        const char *condition = text_of(facts, "condition"), *error = text_of(facts, "error"),
                   *last_error = text_of(facts, "last-error");

        lkg_buf_printf(buf, "%s%s: %s", lkg_tool_paint(colour, paints[facts->rank]), facts->view.component,
                       *condition ? condition : "Unknown: no condition can be read");
        append_typo(&known->findings, buf);
        lkg_buf_printf(buf, "%s\n", lkg_tool_paint_end(colour));
        map_words(facts, map);
        lkg_tool_fill(lines, map, /* html= */ false, buf);
        append_drift(known, buf);
        if (*error && !known->findings.n_severity[LKG_ERROR]) /* else it is below */
                lkg_buf_printf(buf, "  error     %s\n", error);
        lkg_buf_puts(buf, "  findings  ");
        append_counts(facts, buf);
        lkg_buf_putc(buf, '\n');
        append_findings(facts, colour, all, buf);
        if (*last_error && strcmp(last_error, error) != 0)
                lkg_buf_printf(buf, "  refused   %s\n", last_error);
        lkg_buf_printf(buf, "  next      %s\n", lkg_tool_word(map, "next"));
}

/* ---- the verb ---- */

static int by_rank(const void *a, const void *b)
{
        const struct facts *x = a, *y = b;

        return x->rank != y->rank ? (int)x->rank - (int)y->rank
                                  : strcmp(x->view.component, y->view.component);
}

static int print_facts(const struct lkg_tool *tool, const struct lkg_view *view, struct facts *facts,
                       size_t n)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_value *map, *list;
        int status = LKG_TOOL_OK;

        qsort(facts, n, sizeof(*facts), by_rank);
        share_lines(facts, n, tool->options.all);
        for (size_t i = 0; i < n; i++)
                if (facts[i].rank <= RANK_UNKNOWN || lkg_processes_missing(&facts[i].known->processes) ||
                    ends_often(&facts[i].known->processes))
                        status = LKG_TOOL_DIFFERENT;
        if (!lkg_tool_structured(tool)) {
                for (size_t i = 0; i < n; i++)
                        text_component(&facts[i], lkg_tool_colour_for(tool, STDOUT_FILENO),
                                       tool->options.all, &buf);
                return lkg_tool_print(&buf, status);
        }
        map = lkg_tool_texts(lkg_tool_document(), "mountpoint", view->mountpoint, NULL);
        list = lkg_tool_map_list(map, "components");
        for (size_t i = 0; i < n; i++)
                lkg_tool_append(list, map_component(&facts[i]));
        return lkg_tool_print_map(tool, map, status);
}

/* The named component, else all. */
int lkg_verb_status(const struct lkg_tool *tool)
{
        struct lkg_view view = lkg_view_open(tool, tool->options.component);
        struct lkg_strings names = { 0 };
        struct facts *facts;
        int r = 0;

        if (view.component)
                lkg_tool_add_word(&names, view.component);
        else
                r = lkg_view_components(&view, &names);
        if (r < 0)
                lkg_tool_end(tool, LKG_TOOL_FAILED, "'%s/status': %s", view.root, strerror(-r));
        facts = lkg_tool_keep(calloc(names.n_items + 1, sizeof(*facts)));
        for (size_t i = 0; i < names.n_items; i++) {
                facts[i].view = view;
                facts[i].view.component = names.items[i];
                facts[i].known = lkg_known_read(&facts[i].view);
                facts[i].rank = rank_of(&facts[i]);
        }
        return print_facts(tool, &view, facts, names.n_items);
}
