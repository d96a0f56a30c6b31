/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkg_step(): every event in every state (rows/lifecycle.rows; the states are those of rows/lifecycle.states); invariants of all steps, over random
 * states; and, with a model of the disk, the result if the engine stops after each effect, or if each durable effect fails.
 *
 * Rule: docs/specification.md 4.4.
 */
#define UNIT_OWN_MAIN

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lkg/text.h>
#include <lkg/lifecycle.h>

#include "rows.h"

#define NOW  (UINT64_C(1000) * LKG_NSEC_PER_SEC)
#define WALL (UINT64_C(5000) * LKG_NSEC_PER_SEC)
#define SHA  "aaaaaaaaaaaabbbbbbbbbbbbccccccccccccddddddddddddeeeeeeeeeeeeffff"
#define GOOD "111111111111222222222222333333333333444444444444555555555555ffff"

/* ---- a world: state, facts, and the marks that they borrow ---- */

struct world {
        struct lkg_lifecycle l;
        struct lkg_lifecycle_facts facts;
        struct lkg_bad marks[8];
        struct lkg_bad_list bad;
};

static struct lkg_config_source source(const char *name)
{
        struct lkg_config_source s = { .ns = "kube-system", .key = LKG_KEY_DEFAULT };

        if (!*name)
                return (struct lkg_config_source){ 0 };
        (void)snprintf(s.name, sizeof(s.name), "%s", name);
        (void)snprintf(s.uid, sizeof(s.uid), "uid-%s", name);
        (void)strcpy(s.version, "1");
        (void)snprintf(s.sha256, sizeof(s.sha256), "content of %s", name);
        return s;
}

static int compare(const void *a, const void *b)
{
        return strcmp(((const struct lkg_bad *)a)->id, ((const struct lkg_bad *)b)->id);
}

static void set_mark(struct world *w, const struct lkg_bad *mark)
{
        struct lkg_bad *old = (struct lkg_bad *)lkg_bad_named(&w->bad, mark->id);

        if (!old) {
                assert_true(w->bad.n_items < LKG_ARRAY_SIZE(w->marks));
                old = &w->marks[w->bad.n_items++];
        }
        *old = *mark;
        qsort(w->marks, w->bad.n_items, sizeof(*w->marks), compare);
}

static void remove_mark(struct world *w, const char *id)
{
        struct lkg_bad *old = (struct lkg_bad *)lkg_bad_named(&w->bad, id);

        assert_non_null(old);
        memmove(old, old + 1, (size_t)(w->marks + --w->bad.n_items - old) * sizeof(*old));
}

static void condemn(struct world *w, const struct lkg_config_source *s, enum lkg_bad_cause cause)
{
        struct lkg_bad mark = { .time_ns = WALL - 1, .cause = cause, .source = *s };

        lkg_config_source_id(s, mark.id);
        (void)snprintf(mark.reason, sizeof(mark.reason), "marked earlier");
        set_mark(w, &mark);
}

/* @a, @b, @g: assigned, active, last known good; "" = local */
static void set_pointers(struct world *w, const char *a, const char *b, const char *g)
{
        struct lkg_pointers *p = &w->l.pointers;

        p->assigned = source(a);
        p->assigned_ns = *a ? WALL - 100 : 0;
        p->active = source(b);
        p->good = (struct lkg_good){ .source = source(g), .generation = 3 };
        (void)strcpy(p->good.sha256, GOOD);
}

static void set_trial(struct world *w, enum lkg_trial_state state, unsigned prior, uint64_t good_s)
{
        w->l.trial = (struct lkg_trial){
                .state = state,
                .rules = { 600 * LKG_NSEC_PER_SEC, 2 },
                .prior = prior,
                .good_ns = good_s * LKG_NSEC_PER_SEC,
                .started_wall_ns = WALL - 50,
                .running_since_ns = state == LKG_TRIAL_RUNNING ? NOW - 10 * LKG_NSEC_PER_SEC : 0,
        };
}

static void set_rollback(struct world *w, const char *from)
{
        w->l.pointers.rollback.from = source(from);
        (void)strcpy(w->l.pointers.rollback.reason, "it crashed");
        w->l.pointers.rollback.time_ns = WALL - 20;
        w->l.pointers.rollback.abandoned_generation = 6;
}

static void hold(struct world *w, enum lkg_hold_mode mode, uint64_t generation)
{
        w->l.record.hold = (struct lkg_hold){ .mode = mode, .generation = generation };
        w->l.record.held_by = (struct lkg_held_by){ .time_ns = WALL - 30, .uid = 0, .program = "sh" };
        w->facts.serves_active = false;
}

static void arm_try(struct world *w)
{
        w->l.record.hold =
                (struct lkg_hold){ .try_phase = LKG_TRY_ARMED, .try_duration_ns = 60, .try_previous = 7 };
        w->l.record.tried_by = (struct lkg_held_by){ .time_ns = WALL - 3, .program = "sh" };
}

static void leave_unfinished(struct world *w, enum lkg_unfinished_kind kind)
{
        w->l.record.unfinished.kind = kind;
        w->l.record.unfinished.by.time_ns = kind == LKG_UNFINISHED_GOOD ? WALL - 4 : 0;
        lkg_config_source_id(&w->l.pointers.active, w->l.record.unfinished.source);
}

/* ---- states: rows/lifecycle.states ---- */

#define STATES_MAX 64

static struct state {
        char *name;
        struct world world; /* its pointers are those of a world that begins as a copy */
} states[STATES_MAX];
static size_t n_states;

static size_t state_named(const char *name)
{
        for (size_t i = 0; i < n_states; i++)
                if (strcmp(states[i].name, name) == 0)
                        return i;
        fail_msg("no state %s", name);
        return 0;
}

#define MEMBER(of) offsetof(struct world, of), sizeof(((struct world *)NULL)->of)

/* Members that are set to a number, `unit` times what the file says; or to the name of a health. */
static const struct {
        const char *name;
        size_t offset, size;
        uint64_t unit;
} fields[] = {
        { "active", MEMBER(facts.active), 1 },
        { "serves-active", MEMBER(facts.serves_active), 1 },
        { "scope-all", MEMBER(facts.scope_all), 1 },
        { "remote", MEMBER(facts.remote), 1 },
        { "node", MEMBER(facts.health[LKG_CHECK_NODE]), 0 },
        { "http", MEMBER(facts.health[LKG_CHECK_HTTP]), 0 },
        { "prior", MEMBER(l.trial.prior), 1 },
        { "extended", MEMBER(l.trial.extended), 1 },
        { "stable-for", MEMBER(l.trial.rules.stable_for_ns), LKG_NSEC_PER_SEC },
        { "good-for", MEMBER(l.trial.good_ns), LKG_NSEC_PER_SEC },
        { "calm-for", MEMBER(l.trial.calm_ns), LKG_NSEC_PER_SEC },
        { "away-for", MEMBER(l.trial.away_ns), LKG_NSEC_PER_SEC },
        { "away-since", MEMBER(l.trial.away_since_ns), LKG_NSEC_PER_SEC },
        { "running-since", MEMBER(l.trial.running_since_ns), LKG_NSEC_PER_SEC },
        { "node-judged", MEMBER(l.trial.judged[LKG_CHECK_NODE]), 1 },
        { "http-judged", MEMBER(l.trial.judged[LKG_CHECK_HTTP]), 1 },
        { "node-seen", MEMBER(l.trial.seen[LKG_CHECK_NODE]), 0 },
        { "http-seen", MEMBER(l.trial.seen[LKG_CHECK_HTTP]), 0 },
        { "node-bad", MEMBER(l.trial.bad[LKG_CHECK_NODE]), 1 },
        { "http-bad", MEMBER(l.trial.bad[LKG_CHECK_HTTP]), 1 },
};

static void set_field(struct world *w, const char *name, const char *text)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(fields); i++) {
                void *at = (char *)w + fields[i].offset;
                uint64_t value;

                if (strcmp(fields[i].name, name) != 0)
                        continue;
                value = fields[i].unit ? strtoull(text, NULL, 10) * fields[i].unit
                                       : rows_named(lkg_health_name, LKG_HEALTH_BAD + 1, text);
                if (fields[i].size == 1)
                        *(uint8_t *)at = (uint8_t)value;
                else if (fields[i].size == 4)
                        *(uint32_t *)at = (uint32_t)value;
                else
                        *(uint64_t *)at = value;
                return;
        }
        fail_msg("no field %s", name);
}

static const char *source_name(const char *word)
{
        return word && strcmp(word, "-") != 0 ? word : "";
}

/* One word of a state. Return: false: it is none of these. */
static bool set_word(struct world *w, const char *word, const char *value, const char *second,
                     const char *third)
{
        struct lkg_config_source s =
                strcmp(value, "document") == 0 ? lkg_document_source(SHA) : source(source_name(value));

        if (strcmp(word, "pointers") == 0)
                set_pointers(w, source_name(value), source_name(second), source_name(third));
        else if (strcmp(word, "assigned") == 0)
                w->l.pointers.assigned = s;
        else if (strcmp(word, "trial") == 0)
                set_trial(w, rows_named(lkg_trial_state_name, _LKG_TRIAL_STATE_MAX, value),
                          (unsigned)atoi(second), strtoull(third, NULL, 10));
        else if (strcmp(word, "mark") == 0)
                condemn(w, &s, strcmp(second, "crashed") == 0 ? LKG_BAD_CRASHED : LKG_BAD_MARKED);
        else if (strcmp(word, "hold") == 0)
                hold(w, rows_named(lkg_hold_mode_name, _LKG_HOLD_MODE_MAX, value),
                     strtoull(second, NULL, 10));
        else if (strcmp(word, "pinned-for") == 0 && strcmp(value, "assigned") == 0)
                lkg_lifecycle_say_assigned(&w->l.pointers, w->l.record.pinned_for);
        else if (strcmp(word, "pinned-for") == 0)
                (void)strcpy(w->l.record.pinned_for, value);
        else if (strcmp(word, "try") == 0 && strcmp(value, "armed") == 0)
                arm_try(w);
        else if (strcmp(word, "try") == 0) {
                w->l.record.hold.try_phase = LKG_TRY_RUNNING;
                w->l.record.hold.try_deadline_ns = NOW;
        } else if (strcmp(word, "unfinished") == 0)
                leave_unfinished(w,
                                 strcmp(value, "good") == 0 ? LKG_UNFINISHED_GOOD : LKG_UNFINISHED_ABANDON);
        else if (strcmp(word, "rollback") == 0)
                set_rollback(w, source_name(value));
        else if (strcmp(word, "passed-over") == 0)
                (void)strcpy(w->l.pointers.rollback.passed_over, LKG_PASSED_OVER_UNKNOWN);
        else if (strcmp(word, "document") == 0)
                w->l.document = *value == '1' ? lkg_document_source(SHA) : source("");
        else if (strcmp(word, "good-is") == 0)
                *w->l.pointers.good.sha256 = '\0';
        else if (strcmp(word, "serves") == 0)
                w->facts.sha256 = strcmp(value, "good") == 0 ? GOOD : "";
        else
                return false;
        return true;
}

static void init_world(struct world *w)
{
        *w = (struct world){ .facts = { .remote = true,
                                        .watched = true,
                                        .serves_active = true,
                                        .active = 7,
                                        .sha256 = SHA,
                                        .trial_saved_ns = NOW - 2 * LKG_TRIAL_SAVE_NS } };
}

/* A world that borrows its own marks. */
static void copy_world(struct world *w, const struct world *from)
{
        *w = *from;
        w->bad.items = w->marks;
        w->facts.bad = &w->bad;
}

/* Names are words in the files. */
static const char *with_spaces(char *name)
{
        for (char *c = name; *c; c++)
                *c = *c == '_' ? ' ' : *c;
        return name;
}

static void read_state(char *line)
{
        struct state *state = &states[n_states];
        char *words = strstr(line, ": "), *rest;

        assert_true(words && n_states < STATES_MAX);
        *words = '\0';
        state->name = strdup(line);
        init_world(&state->world);
        copy_world(&state->world, &state->world);
        for (char *word = strtok_r(words + 2, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
                const char *values[3] = { 0 };
                char *value = strchr(word, '=');

                *value++ = '\0';
                if (strcmp(word, "like") == 0) {
                        copy_world(&state->world, &states[state_named(with_spaces(value))].world);
                        continue;
                }
                (void)rows_split_to(value, ",", 3, values);
                if (!set_word(&state->world, word, values[0], values[1], values[2]))
                        set_field(&state->world, word, value);
        }
        n_states++;
}

static void read_states(void)
{
        FILE *f = fopen(TEST_DIR "/rows/lifecycle.states", "re");
        char line[512];

        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                if (*line != '#' && *line != '\n')
                        read_state(line);
        (void)fclose(f);
}

static void make(struct world *w, size_t state)
{
        copy_world(w, &states[state].world);
}

/* ---- events ---- */

static const struct lkg_held_by somebody = { .time_ns = WALL, .uid = 0, .pid = 42, .program = "echo" };
static const struct lkg_startup crash = { .time_ns = WALL, .pid = 9, .start_time = 99, .counted = true };
static const struct lkg_startup excused = { .time_ns = WALL, .pid = 9, .start_time = 99 };
static const struct lkg_trial stored_trial = { .state = LKG_TRIAL_RUNNING, .rules = { 5, 1 }, .prior = 1 };
static const struct lkg_hold free_hold = { .mode = LKG_HOLD_FREE };
static struct lkg_config_source source_b, source_a2, source_g2;
static struct lkg_bad mark_a, mark_document;

#define RULES                             \
        {                                 \
                600 * LKG_NSEC_PER_SEC, 2 \
        }

static const struct {
        const char *name;
        struct lkg_event event;
} events[] = {
        { "assigned another", { LKG_EVENT_ASSIGNED, .source = &source_b, .node_uid = "node-2" } },
        { "assigned a new version of the same", { LKG_EVENT_ASSIGNED, .source = &source_a2 } },
        { "assigned a new version of the last known good", { LKG_EVENT_ASSIGNED, .source = &source_g2 } },
        { "node", { LKG_EVENT_NODE, .node_uid = "node-2" } },
        { "reset", { LKG_EVENT_RESET } },
        { "tried good", { LKG_EVENT_TRIED_GOOD } },
        { "tried bad", { LKG_EVENT_TRIED_BAD, .cause = LKG_BAD_INVALID, .reason = "why" } },
        { "forbidden", { LKG_EVENT_FORBIDDEN, .reason = "why" } },
        { "lost", { LKG_EVENT_LOST, .reason = "why", .fault = "gone" } },
        { "lost, an engine died of it",
          { LKG_EVENT_LOST, .reason = "why", .fault = "gone", .known = true } },
        { "settle", { LKG_EVENT_SETTLE } },
        { "resumed", { LKG_EVENT_RESUMED } },
        { "layers, what is served", { LKG_EVENT_LAYERS, .sha256 = "" } },
        { "layers, a marked document", { LKG_EVENT_LAYERS, .sha256 = SHA, .mark = &mark_document } },
        { "served", { LKG_EVENT_SERVED, .rules = RULES } },
        { "begin", { LKG_EVENT_BEGIN, .rules = RULES } },
        { "begin, no trial wanted", { LKG_EVENT_BEGIN } },
        { "begin, one is stored", { LKG_EVENT_BEGIN, .rules = RULES, .stored = &stored_trial } },
        { "passed", { LKG_EVENT_PASSED } },
        { "merged", { LKG_EVENT_MERGED, .merge = LKG_MERGE_VALID, .sha256 = "" } },
        { "merged, invalid", { LKG_EVENT_MERGED, .merge = LKG_MERGE_INVALID, .sha256 = SHA } },
        { "merged, no checkpoint", { LKG_EVENT_MERGED, .fault = "gone", .sha256 = "" } },
        { "finish", { LKG_EVENT_FINISH, .servable = true } },
        { "finish, nothing to serve", { LKG_EVENT_FINISH } },
        { "pinned", { LKG_EVENT_PINNED, .mode = LKG_HOLD_ROLLBACK } },
        { "finished", { LKG_EVENT_FINISHED } },
        { "publishing", { LKG_EVENT_PUBLISHING } },
        { "unpublished", { LKG_EVENT_UNPUBLISHED, .hold = &free_hold } },
        { "hold lost", { LKG_EVENT_HOLD_LOST, .reason = "the hold at 7" } },
        { "pin", { LKG_EVENT_PIN } },
        { "start, counted", { LKG_EVENT_START, .startup = &crash } },
        { "start, not counted", { LKG_EVENT_START, .startup = &excused } },
        { "start, reported", { LKG_EVENT_START, .startup = &crash, .by_command = true } },
        { "alive", { LKG_EVENT_ALIVE, .alive = true } },
        { "not alive", { LKG_EVENT_ALIVE } },
        { "not alive, away", { LKG_EVENT_ALIVE, .away = true } },
        { "health", { LKG_EVENT_HEALTH } },
        { "try due", { LKG_EVENT_TRY_DUE } },
        { "trial due", { LKG_EVENT_TRIAL_DUE } },
        { "trial due, the Node is not Ready", { LKG_EVENT_TRIAL_DUE, .reason = "the Node is not Ready" } },
        { "hold on", { LKG_EVENT_HOLD, .command = LKG_CMD_HOLD_ON, .by = &somebody, .by_command = true } },
        { "hold off", { LKG_EVENT_HOLD, .command = LKG_CMD_HOLD_OFF, .by = &somebody, .by_command = true } },
        { "rollback 3",
          { LKG_EVENT_HOLD, .command = LKG_CMD_ROLLBACK, .argument = 3, .known = true, .by = &somebody,
            .by_command = true } },
        { "rollback 3, of another source",
          { LKG_EVENT_HOLD, .command = LKG_CMD_ROLLBACK, .argument = 3, .known = true, .other = true,
            .by = &somebody, .by_command = true } },
        { "rollback 99, unknown",
          { LKG_EVENT_HOLD, .command = LKG_CMD_ROLLBACK, .argument = 99, .by = &somebody,
            .by_command = true } },
        { "try 5m",
          { LKG_EVENT_HOLD, .command = LKG_CMD_TRY, .argument = 300, .by = &somebody, .by_command = true } },
        { "now", { LKG_EVENT_HOLD, .command = LKG_CMD_COMMIT, .by = &somebody, .by_command = true } },
        { "rollback lkg",
          { LKG_EVENT_ROLLBACK_GOOD, .servable = true, .by = &somebody, .by_command = true } },
        { "rollback lkg, nothing to serve",
          { LKG_EVENT_ROLLBACK_GOOD, .by = &somebody, .by_command = true } },
        { "promote", { LKG_EVENT_PROMOTE, .by = &somebody, .by_command = true } },
        { "mark", { LKG_EVENT_MARK, .mark = &mark_a, .by = &somebody, .by_command = true } },
        { "forgiven", { LKG_EVENT_FORGIVEN } },
};

static void init_sources(void)
{
        source_b = source("b");
        source_a2 = source("a");
        (void)strcpy(source_a2.version, "2");
        source_g2 = source("g");
        (void)strcpy(source_g2.version, "2");
        mark_a = (struct lkg_bad){ .time_ns = WALL, .cause = LKG_BAD_MARKED, .source = { .uid = "uid-a" } };
        (void)strcpy(mark_a.id, "uid-a");
        (void)strcpy(mark_a.reason, "by hand");
        mark_document = (struct lkg_bad){ .time_ns = WALL - 1,
                                          .cause = LKG_BAD_CRASHED,
                                          .source = lkg_document_source(SHA) };
        lkg_config_source_id(&mark_document.source, mark_document.id);
        (void)strcpy(mark_document.reason, "marked earlier");
}

static struct lkg_event event_of(size_t i)
{
        struct lkg_event event = events[i].event;

        event.wall_ns = WALL;
        event.ticket = event.by ? 77 : 0;
        return event;
}

static struct lkg_event event_named(const char *name)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(events); i++)
                if (strcmp(events[i].name, name) == 0)
                        return event_of(i);
        fail_msg("no event %s", name);
        return (struct lkg_event){ 0 };
}

/* ---- the table ---- */

static const char *const event_names[_LKG_EVENT_MAX] = {
        [LKG_EVENT_ASSIGNED] = "assigned",
        [LKG_EVENT_NODE] = "node",
        [LKG_EVENT_RESET] = "reset",
        [LKG_EVENT_TRIED_GOOD] = "tried good",
        [LKG_EVENT_TRIED_BAD] = "tried bad",
        [LKG_EVENT_FORBIDDEN] = "forbidden",
        [LKG_EVENT_LOST] = "lost",
        [LKG_EVENT_SETTLE] = "settle",
        [LKG_EVENT_RESUMED] = "resumed",
        [LKG_EVENT_LAYERS] = "layers",
        [LKG_EVENT_SERVED] = "served",
        [LKG_EVENT_BEGIN] = "begin",
        [LKG_EVENT_PASSED] = "passed",
        [LKG_EVENT_MERGED] = "merged",
        [LKG_EVENT_FINISH] = "finish",
        [LKG_EVENT_PINNED] = "pinned",
        [LKG_EVENT_FINISHED] = "finished",
        [LKG_EVENT_PUBLISHING] = "publishing",
        [LKG_EVENT_UNPUBLISHED] = "unpublished",
        [LKG_EVENT_HOLD_LOST] = "hold lost",
        [LKG_EVENT_PIN] = "pin",
        [LKG_EVENT_START] = "start",
        [LKG_EVENT_ALIVE] = "alive",
        [LKG_EVENT_HEALTH] = "health",
        [LKG_EVENT_TRY_DUE] = "try due",
        [LKG_EVENT_TRIAL_DUE] = "trial due",
        [LKG_EVENT_HOLD] = "hold",
        [LKG_EVENT_ROLLBACK_GOOD] = "rollback good",
        [LKG_EVENT_PROMOTE] = "promote",
        [LKG_EVENT_MARK] = "mark",
        [LKG_EVENT_FORGIVEN] = "forgiven",
        [LKG_EVENT_FAILED] = "failed",
};

static const char *const effect_names[_LKG_EFFECT_MAX] = {
        [LKG_EFFECT_ADOPT] = "adopt",
        [LKG_EFFECT_KEEP_RECORD] = "keep record",
        [LKG_EFFECT_RESTORE_RECORD] = "restore record",
        [LKG_EFFECT_FORGET_RECORD] = "forget record",
        [LKG_EFFECT_KEEP_GENERATION] = "keep generation",
        [LKG_EFFECT_SAVE_RECORD] = "save record",
        [LKG_EFFECT_SAVE_DOCUMENT] = "save document",
        [LKG_EFFECT_SAVE_TRIAL] = "save trial",
        [LKG_EFFECT_SAVE_POINTERS] = "save pointers",
        [LKG_EFFECT_MARK_BAD] = "mark bad",
        [LKG_EFFECT_FORGIVE] = "forgive",
        [LKG_EFFECT_NOTE_START] = "note start",
        [LKG_EFFECT_FOLLOW] = "follow",
        [LKG_EFFECT_FOLLOW_MISSING] = "follow missing",
        [LKG_EFFECT_MERGE_GOOD] = "merge good",
        [LKG_EFFECT_SERVE_STORED] = "serve stored",
        [LKG_EFFECT_SERVE_GOOD] = "serve good",
        [LKG_EFFECT_BEGIN_TRIAL] = "begin trial",
        [LKG_EFFECT_TELL] = "tell",
        [LKG_EFFECT_RETRY] = "retry",
        [LKG_EFFECT_NEXT] = "next",
};

static void say_source(struct lkg_buf *buf, const char *what, const struct lkg_config_source *before,
                       const struct lkg_config_source *after)
{
        if (!lkg_config_source_equal(before, after))
                lkg_buf_printf(buf, " %s=%s%s%s", what, *after->uid ? after->uid : "local",
                               *after->version ? "/" : "", after->version);
}

static void say_change(struct lkg_buf *buf, const struct lkg_lifecycle *a, const struct lkg_lifecycle *b)
{
        say_source(buf, "assigned", &a->pointers.assigned, &b->pointers.assigned);
        say_source(buf, "active", &a->pointers.active, &b->pointers.active);
        say_source(buf, "good", &a->pointers.good.source, &b->pointers.good.source);
        say_source(buf, "document", &a->document, &b->document);
        if (a->pointers.good.generation != b->pointers.good.generation)
                lkg_buf_printf(buf, " good-generation=%" PRIu64, b->pointers.good.generation);
        if (strcmp(a->pointers.node_uid, b->pointers.node_uid) != 0)
                lkg_buf_printf(buf, " node=%s", b->pointers.node_uid);
        if (strcmp(a->pointers.rollback.reason, b->pointers.rollback.reason) != 0)
                lkg_buf_printf(buf, " rollback=\"%s\"", b->pointers.rollback.reason);
        if (strcmp(a->pointers.rollback.passed_over, b->pointers.rollback.passed_over) != 0)
                lkg_buf_printf(buf, " passed-over=\"%.12s\"", b->pointers.rollback.passed_over);
        if (a->pointers.rollback.starts_since != b->pointers.rollback.starts_since)
                lkg_buf_printf(buf, " starts-since=%u", b->pointers.rollback.starts_since);
        if (a->trial.state != b->trial.state)
                lkg_buf_printf(buf, " trial=%s", lkg_trial_state_name(b->trial.state));
        if (a->trial.prior != b->trial.prior)
                lkg_buf_printf(buf, " prior=%u", b->trial.prior);
        if (!a->trial.running_since_ns != !b->trial.running_since_ns)
                lkg_buf_printf(buf, " clock=%s", b->trial.running_since_ns ? "runs" : "stopped");
        if (!a->trial.away_since_ns != !b->trial.away_since_ns)
                lkg_buf_printf(buf, " absence=%s", b->trial.away_since_ns ? "runs" : "stopped");
        if (a->record.hold.mode != b->record.hold.mode)
                lkg_buf_printf(buf, " hold=\"%s\"", lkg_hold_mode_name(b->record.hold.mode));
        if (a->record.hold.generation != b->record.hold.generation)
                lkg_buf_printf(buf, " held=%" PRIu64, b->record.hold.generation);
        if (a->record.hold.try_phase != b->record.hold.try_phase)
                lkg_buf_printf(buf, " try=%d", b->record.hold.try_phase);
        if (strcmp(a->record.pinned_for, b->record.pinned_for) != 0)
                lkg_buf_printf(buf, " pinned-for=%s", *b->record.pinned_for ? b->record.pinned_for : "-");
        if (a->record.unfinished.kind != b->record.unfinished.kind)
                lkg_buf_printf(buf, " unfinished=%d", b->record.unfinished.kind);
}

static void say_effects(struct lkg_buf *buf, const struct lkg_step *step)
{
        for (size_t i = 0; i < step->n_effects; i++) {
                const struct lkg_effect *effect = &step->effects[i];

                lkg_buf_printf(buf, "%s%s%s", i ? ", " : "", effect->optional ? "try to " : "",
                               effect_names[effect->kind]);
                if (effect->kind == LKG_EFFECT_NEXT)
                        lkg_buf_printf(buf, " %s", event_names[effect->next]);
                if (effect->kind == LKG_EFFECT_KEEP_GENERATION)
                        lkg_buf_printf(buf, " %" PRIu64, effect->generation);
        }
}

static unsigned n_asked;

/* What an event does in a state: the event is the section, the state is the row. */
static void say_step(const struct question *q, struct lkg_buf *ret)
{
        char name[80];
        struct lkg_event event;
        struct lkg_step step;
        struct world w;

        (void)snprintf(name, sizeof(name), "%s", q->args[1]);
        event = event_named(with_spaces(name));
        make(&w, state_named(q->text));
        lkg_step(&w.l, &w.facts, &event, NOW, &step);
        if (step.result)
                lkg_buf_printf(ret, "refused: %s", step.why);
        else if (!step.n_effects)
                lkg_buf_printf(ret, "-");
        say_effects(ret, &step);
        lkg_buf_printf(ret, " |");
        say_change(ret, &w.l, &step.next);
        n_asked++;
}

/* ---- invariants of every step ---- */

static bool is_durable(enum lkg_effect_kind kind)
{
        return kind >= LKG_EFFECT_KEEP_RECORD && kind <= LKG_EFFECT_NOTE_START;
}

static size_t first(const struct lkg_step *step, enum lkg_effect_kind kind)
{
        for (size_t i = 0; i < step->n_effects; i++)
                if (step->effects[i].kind == kind)
                        return i;
        return SIZE_MAX;
}

static bool has_new_pointers(const struct lkg_lifecycle *a, const struct lkg_lifecycle *b)
{
        return !lkg_config_source_equal(&a->pointers.assigned, &b->pointers.assigned) ||
               !lkg_config_source_equal(&a->pointers.active, &b->pointers.active) ||
               !lkg_config_source_equal(&a->pointers.good.source, &b->pointers.good.source) ||
               strcmp(a->pointers.good.sha256, b->pointers.good.sha256) != 0 ||
               strcmp(a->pointers.rollback.reason, b->pointers.rollback.reason) != 0;
}

static void check_step(const struct world *w, const struct lkg_event *event, const struct lkg_step *step)
{
        size_t adopt = first(step, LKG_EFFECT_ADOPT), pointers = first(step, LKG_EFFECT_SAVE_POINTERS);
        size_t mark = first(step, LKG_EFFECT_MARK_BAD), record = first(step, LKG_EFFECT_SAVE_RECORD);
        struct lkg_buf changes = LKG_BUF_INIT;
        size_t size;
        char *text;

        assert_true(step->n_effects <= LKG_EFFECTS_MAX);
        say_change(&changes, &w->l, &step->next);
        lkg_buf_printf(&changes, "%s", "");
        text = lkg_buf_steal(&changes, &size);
        if (step->result < 0) {
                assert_int_equal(step->n_effects, 0);
                assert_true(!text || !*text);
                assert_non_null(step->why);
        }
        if (text && *text)
                assert_true(adopt != SIZE_MAX); /* no change is lost */
        free(text);
        if (has_new_pointers(&w->l, &step->next))
                assert_true(pointers < adopt); /* durable before it counts */
        if (mark != SIZE_MAX && pointers != SIZE_MAX)
                assert_true(mark < pointers); /* otherwise a crash between them would follow it again */
        if (strcmp(w->l.pointers.good.sha256, step->next.pointers.good.sha256) != 0 &&
            *step->next.pointers.good.sha256)
                assert_true(first(step, LKG_EFFECT_SAVE_DOCUMENT) < pointers);
        if (record != SIZE_MAX && step->next.record.hold.generation != w->l.record.hold.generation &&
            step->next.record.hold.generation && event->kind == LKG_EVENT_HOLD)
                assert_true(first(step, LKG_EFFECT_KEEP_GENERATION) < record);
        /* Merging, serving and starting a trial use the current state, so ADOPT and saves of this step must come before them. */
        for (size_t i = 0; i + 1 < step->n_effects; i++) {
                enum lkg_effect_kind kind = step->effects[i].kind;

                if (kind != LKG_EFFECT_MERGE_GOOD && kind != LKG_EFFECT_SERVE_GOOD &&
                    kind != LKG_EFFECT_BEGIN_TRIAL && kind != LKG_EFFECT_NEXT)
                        continue;
                kind = step->effects[i + 1].kind;
                assert_true(kind == LKG_EFFECT_NEXT || kind == LKG_EFFECT_NOTE_START);
        }
        if (event->kind != LKG_EVENT_TRIED_GOOD && event->kind != LKG_EVENT_ASSIGNED &&
            lkg_bad_find(w->facts.bad, &step->next.pointers.active))
                if (!lkg_bad_find(w->facts.bad, &w->l.pointers.active))
                        fail_msg("%s goes to %s, which is bad", event_names[event->kind],
                                 step->next.pointers.active.uid);
        if (event->kind != LKG_EVENT_BEGIN && event->kind != LKG_EVENT_ASSIGNED && !w->facts.scope_all &&
            *step->next.pointers.rollback.reason && !*w->l.pointers.rollback.reason)
                assert_int_not_equal(step->next.trial.state, LKG_TRIAL_RUNNING);
}

static uint64_t rnd(uint64_t *seed)
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

static void random_world(struct world *w, uint64_t *seed)
{
        static const char *const names[] = { "", "a", "b", "g" };

        make(w, rnd(seed) % n_states);
        if (rnd(seed) % 2)
                set_pointers(w, names[rnd(seed) % 4], names[rnd(seed) % 4], names[rnd(seed) % 4]);
        if (rnd(seed) % 2)
                set_trial(w, (enum lkg_trial_state)(rnd(seed) % _LKG_TRIAL_STATE_MAX),
                          (unsigned)(rnd(seed) % 5), rnd(seed) % 700);
        if (rnd(seed) % 3 == 0)
                w->l.record.hold =
                        (struct lkg_hold){ .mode = (enum lkg_hold_mode)(rnd(seed) % _LKG_HOLD_MODE_MAX),
                                           .generation = rnd(seed) % 9,
                                           .try_phase =
                                                   (enum lkg_try_phase)(rnd(seed) % _LKG_TRY_PHASE_MAX) };
        for (size_t i = 1; i < 4; i++) {
                const struct lkg_config_source s = source(names[i]);

                if (rnd(seed) % 5 == 0)
                        condemn(w, &s, (enum lkg_bad_cause)(rnd(seed) % _LKG_BAD_CAUSE_MAX));
        }
        w->facts.scope_all = rnd(seed) % 4 == 0;
        w->facts.remote = rnd(seed) % 8 != 0;
        w->facts.serves_active = rnd(seed) % 3 != 0;
        if (rnd(seed) % 8 == 0)
                w->facts.active = 0;
}

TEST(test_every_step)
{
        uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
        struct world w;
        struct lkg_step step;

        for (unsigned round = 0; round < 100000; round++) {
                struct lkg_event event = event_of(rnd(&seed) % LKG_ARRAY_SIZE(events));

                random_world(&w, &seed);
                lkg_step(&w.l, &w.facts, &event, NOW, &step);
                check_step(&w, &event, &step);
                /* ... and each of its effects may fail */
                for (size_t i = 0; i < step.n_effects; i++) {
                        struct lkg_event failed = event;
                        struct lkg_step then;

                        if (!is_durable(step.effects[i].kind) || step.effects[i].optional)
                                continue;
                        failed.kind = LKG_EVENT_FAILED;
                        failed.of = event.kind;
                        failed.failed = step.effects[i].kind;
                        failed.code = -ENOSPC;
                        failed.before = &w.l.record;
                        failed.marked_id = first(&step, LKG_EFFECT_MARK_BAD) < i ? step.mark.id : NULL;
                        lkg_step(&w.l, &w.facts, &failed, NOW, &then);
                        check_step(&w, &failed, &then);
                }
        }
}

/* ---- a model of the engine and its disk: stopped after each durable effect, or each of them fails ---- */

struct machine {
        struct world w; /* memory; a mark is on disk at once */
        struct lkg_component_state record, kept;
        bool has_kept;
        struct lkg_pointers pointers;
        struct lkg_trial trial;
        struct lkg_config_source trial_of;
        unsigned n_durable;           /* so far */
        unsigned stop_after, fail_at; /* 0 = never */
        bool fails_on;                /* and all later ones, too */
        bool stopped;
        bool nothing_servable; /* the layers of the last known good have gone */
};

static int carry_out(struct machine *m, const struct lkg_event *event, bool *ret_accepted);

static int durable(struct machine *m)
{
        m->n_durable++;
        if (m->stopped || (m->stop_after && m->n_durable > m->stop_after)) {
                m->stopped = true;
                return -EINTR;
        }
        return m->fail_at && (m->n_durable == m->fail_at || (m->fails_on && m->n_durable > m->fail_at))
                       ? -ENOSPC
                       : 0;
}

static void do_durable(struct machine *m, const struct lkg_event *event, const struct lkg_step *step,
                       enum lkg_effect_kind kind)
{
        switch (kind) {
        case LKG_EFFECT_KEEP_RECORD:
                m->kept = m->record;
                m->has_kept = true;
                break;
        case LKG_EFFECT_RESTORE_RECORD:
                assert_true(m->has_kept);
                m->record = m->kept;
                m->has_kept = false;
                break;
        case LKG_EFFECT_FORGET_RECORD:
                m->has_kept = false;
                break;
        case LKG_EFFECT_SAVE_RECORD:
                m->record = step->next.record;
                break;
        case LKG_EFFECT_SAVE_TRIAL:
                m->trial = step->next.trial;
                m->trial_of = *lkg_lifecycle_tried(&step->next, m->w.facts.scope_all);
                break;
        case LKG_EFFECT_SAVE_POINTERS:
                m->pointers = step->next.pointers;
                break;
        case LKG_EFFECT_MARK_BAD:
                set_mark(&m->w, &step->mark);
                break;
        case LKG_EFFECT_FORGIVE:
                remove_mark(&m->w, event->marked_id);
                break;
        default:
                break;
        }
}

static int nested(struct machine *m, const struct lkg_event *event, enum lkg_event_kind kind,
                  bool *ret_settled)
{
        struct lkg_event next = *event;
        bool accepted;
        int r;

        next.kind = kind;
        r = carry_out(m, &next, &accepted);
        *ret_settled = r < 0;
        return r;
}

static int do_effect(struct machine *m, const struct lkg_event *event, const struct lkg_step *step,
                     const struct lkg_effect *effect, bool *ret_settled)
{
        struct lkg_event next = *event;
        bool ignored;
        int r;

        if (is_durable(effect->kind)) {
                r = durable(m);
                if (r == 0)
                        do_durable(m, event, step, effect->kind);
                return r;
        }
        switch (effect->kind) {
        case LKG_EFFECT_ADOPT:
                m->w.l = step->next;
                return 0;
        case LKG_EFFECT_NEXT:
                return nested(m, event, effect->next, ret_settled);
        case LKG_EFFECT_MERGE_GOOD:
                next.merge = LKG_MERGE_VALID;
                next.sha256 = "";
                (void)nested(m, &next, LKG_EVENT_MERGED, &ignored);
                return 0;
        case LKG_EFFECT_SERVE_STORED:
                m->w.facts.sha256 = GOOD;
                m->w.facts.active = 3;
                return 0;
        case LKG_EFFECT_SERVE_GOOD:
                m->w.facts.active = 90;
                m->w.facts.sha256 = GOOD;
                next.mode = effect->mode;
                return nested(m, &next, LKG_EVENT_PINNED, ret_settled);
        case LKG_EFFECT_BEGIN_TRIAL:
                return nested(m, event, LKG_EVENT_BEGIN, ret_settled);
        default:
                return 0;
        }
}

static int carry_out(struct machine *m, const struct lkg_event *event, bool *ret_accepted)
{
        struct lkg_event failed = *event;
        struct lkg_step *step = malloc(sizeof(*step));
        bool marked = false, settled = false, accepted = false;
        int r = 0, then;

        assert_non_null(step);
        lkg_step(&m->w.l, &m->w.facts, event, NOW, step);
        *ret_accepted = step->accepted;
        r = step->result;
        for (size_t i = 0; r == 0 && i < step->n_effects && !m->stopped; i++) {
                const struct lkg_effect *effect = &step->effects[i];
                bool is_new =
                        effect->kind == LKG_EFFECT_MARK_BAD && !lkg_bad_named(&m->w.bad, step->mark.id);

                r = do_effect(m, event, step, effect, &settled);
                marked = marked || (is_new && r == 0);
                if (effect->optional)
                        r = 0;
                if (r == 0 || settled || m->stopped)
                        continue;
                if (event->kind != LKG_EVENT_FAILED)
                        failed.of = event->kind;
                failed.kind = LKG_EVENT_FAILED;
                failed.failed = effect->kind;
                failed.code = r;
                failed.marked_id = marked ? step->mark.id : NULL;
                then = carry_out(m, &failed, &accepted);
                r = accepted ? then : r;
                break;
        }
        *ret_accepted = *ret_accepted || accepted;
        free(step);
        return r;
}

static int happen(struct machine *m, struct lkg_event event)
{
        const struct lkg_component_state before = m->w.l.record;
        bool accepted;

        event.before = &before;
        event.wall_ns = WALL;
        return carry_out(m, &event, &accepted);
}

/* What the next cycles do, with a working disk. */
static void settle(struct machine *m)
{
        m->stop_after = m->fail_at = 0;
        for (unsigned i = 0; i < 3; i++) {
                m->w.facts.serves_active = m->w.l.record.hold.mode == LKG_HOLD_FREE;
                assert_int_equal(
                        happen(m, (struct lkg_event){ LKG_EVENT_FINISH, .servable = !m->nothing_servable }),
                        0);
                m->w.facts.serves_active = m->w.l.record.hold.mode == LKG_HOLD_FREE;
                assert_int_equal(happen(m, (struct lkg_event){ LKG_EVENT_SETTLE }), 0);
                assert_int_equal(happen(m, (struct lkg_event){ LKG_EVENT_TRY_DUE }), 0);
        }
}

/* Another engine starts with what is on disk (lkg_dynamic_open()). */
static void restart(struct machine *m)
{
        struct lkg_lifecycle *l = &m->w.l;

        m->stop_after = m->fail_at = 0;
        m->stopped = m->has_kept = false;
        l->record = m->record;
        l->pointers = m->pointers;
        l->trial = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        if (lkg_config_source_matches(&m->trial_of, lkg_lifecycle_tried(l, m->w.facts.scope_all)))
                l->trial = m->trial;
        l->trial = lkg_trial_believed(l->trial, &l->pointers, m->w.facts.scope_all, m->w.facts.sha256);
        assert_int_equal(happen(m, (struct lkg_event){ LKG_EVENT_PIN }), 0);
        assert_int_equal(happen(m, (struct lkg_event){ LKG_EVENT_RESUMED }), 0);
        settle(m);
}

static char *outcome(const struct machine *m)
{
        const struct lkg_lifecycle *l = &m->w.l;
        struct lkg_buf buf = LKG_BUF_INIT;
        size_t size;

        lkg_buf_printf(&buf,
                       "assigned %s/%s active %s/%s good %s/%s@%" PRIu64 " hold %d@%" PRIu64
                       " try %d unfinished %d",
                       l->pointers.assigned.uid, l->pointers.assigned.version, l->pointers.active.uid,
                       l->pointers.active.version, l->pointers.good.source.uid,
                       l->pointers.good.source.version, l->pointers.good.generation, l->record.hold.mode,
                       l->record.hold.generation, l->record.hold.try_phase, l->record.unfinished.kind);
        lkg_buf_printf(&buf, " rollback %d node %s", *l->pointers.rollback.reason != '\0',
                       l->pointers.node_uid);
        if (m->w.facts.scope_all)
                lkg_buf_printf(&buf, " serves %.4s", m->w.facts.sha256);
        else
                lkg_buf_printf(&buf, " trial %s %u", lkg_trial_state_name(l->trial.state), l->trial.prior);
        /* A new version of bad bytes may be marked before it is assigned: correct, and without effect. */
        for (size_t i = 0; i < m->w.bad.n_items; i++)
                if (strcmp(m->w.bad.items[i].source.version, "2") != 0)
                        lkg_buf_printf(&buf, " bad %s", m->w.bad.items[i].id);
        return lkg_buf_steal(&buf, &size);
}

static void begin(struct machine *m, size_t state)
{
        memset(m, 0, sizeof(*m));
        make(&m->w, state);
        m->record = m->w.l.record;
        m->pointers = m->w.l.pointers;
        m->trial = m->w.l.trial;
        m->trial_of = *lkg_lifecycle_tried(&m->w.l, m->w.facts.scope_all);
}

/* After each effect the engine stops, and another one starts. */
static void stop_after_each(struct machine *m, size_t state, struct lkg_event event, unsigned n,
                            const char *before, const char *after)
{
        for (unsigned stop = 0; stop < n; stop++) {
                LKG_CLEANUP(lkg_freep) char *found = NULL;

                begin(m, state);
                m->stop_after = stop;
                m->stopped = stop == 0;
                (void)happen(m, event);
                restart(m);
                found = outcome(m);
                if (strcmp(found, before) != 0 && strcmp(found, after) != 0)
                        fail_msg("stopped after effect %u:\n  found  %s\n  before %s\n  after  %s", stop,
                                 found, before, after);
        }
}

/* An effect fails, and maybe all after it. */
static void fail_at(struct machine *m, size_t state, struct lkg_event event, unsigned at, bool on,
                    const char *before, const char *after)
{
        LKG_CLEANUP(lkg_freep) char *found = NULL, *restarted = NULL;
        bool old, new;
        int r;

        begin(m, state);
        m->fail_at = at;
        m->fails_on = on;
        r = happen(m, event);
        settle(m);
        found = outcome(m);
        restart(m);
        restarted = outcome(m);
        old = strcmp(found, before) == 0;
        new = strcmp(found, after) == 0;
        if ((!old && !new) || (r == 0 && !new) || (r < 0 && event.by_command && !old))
                fail_msg("effect %u%s failed, result %d:\n  found  %s\n  before %s\n  after  %s", at,
                         on ? " and all after it" : "", r, found, before, after);
        if (strcmp(restarted, before) != 0 && strcmp(restarted, after) != 0)
                fail_msg("effect %u failed, then another engine:\n  found  %s\n  before %s\n  after  %s", at,
                         restarted, before, after);
}

/* What the state is before an event and after it, with another engine or without. Return: how many durable effects it has. */
static unsigned ends_of(struct machine *m, size_t state, struct lkg_event event,
                        void (*go_on)(struct machine *), char **ret_before, char **ret_after)
{
        unsigned n;

        begin(m, state);
        go_on(m);
        *ret_before = outcome(m);
        begin(m, state);
        assert_int_equal(happen(m, event), 0);
        n = m->n_durable;
        go_on(m);
        *ret_after = outcome(m);
        return n;
}

/*
 * How many durable effects an event has in a state: wherever they end, there is the state before it or the one after it.
 * Rule: docs/specification.md 4.
 */
static void say_interrupted(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *before = NULL, *after = NULL, *old = NULL, *new = NULL;
        const struct lkg_event event = event_named(q->parts[1]);
        struct machine *m = malloc(sizeof(*m));
        size_t state = state_named(q->parts[0]);
        unsigned n;

        assert_non_null(m);
        n = ends_of(m, state, event, restart, &before, &after);
        stop_after_each(m, state, event, n, before, after);
        assert_int_equal(ends_of(m, state, event, settle, &old, &new), n);
        for (unsigned at = 1; at <= n; at++) {
                fail_at(m, state, event, at, false, old, new);
                fail_at(m, state, event, at, true, old, new);
        }
        lkg_buf_printf(ret, "%u", n);
        free(m);
}

static const struct operation operations[] = { { "step", say_step, 0 },
                                               { "interrupted", say_interrupted, 0 },
                                               { 0 } };

ROWS(lifecycle, operations)

TEST(test_every_event_in_every_state)
{
        assert_int_equal(n_asked, n_states * LKG_ARRAY_SIZE(events));
}

/* An id names one version; with its digest, the same bytes under the next version are bad, too. */
TEST(test_a_mark_by_hand_knows_the_content)
{
        struct lkg_event event = event_named("mark");
        struct lkg_bad mark = { .cause = LKG_BAD_MARKED };
        struct lkg_step *step = malloc(sizeof(*step));
        struct world *w = malloc(sizeof(*w));

        assert_non_null(step);
        assert_non_null(w);
        (void)strcpy(mark.id, "uid-a@1");
        assert_int_equal(lkg_config_source_parse_id(mark.id, &mark.source), 0);
        event.mark = &mark;
        make(w, state_named("on trial"));
        lkg_step(&w->l, &w->facts, &event, NOW, step);
        assert_string_equal(step->mark.source.sha256, "content of a");
        set_mark(w, &step->mark);
        event = event_named("assigned a new version of the same");
        lkg_step(&w->l, &w->facts, &event, NOW, step);
        assert_int_equal(step->effects[0].kind, LKG_EFFECT_MARK_BAD);
        assert_string_equal(step->mark.id, "uid-a@2");
        free(step);
        free(w);
}

/* A plan of which nothing is done yet, and what it was to serve has gone: it ends without a mark. */
TEST(test_a_plan_that_cannot_be_carried_out_is_dropped)
{
        struct machine *m = malloc(sizeof(*m));
        char *before, *found;

        assert_non_null(m);
        begin(m, state_named("on trial"));
        restart(m);
        before = outcome(m);
        begin(m, state_named("on trial"));
        m->stop_after = 2; /* its record is on disk */
        (void)happen(m, event_named("rollback lkg"));
        assert_true(m->stopped);
        assert_int_equal(m->record.unfinished.kind, LKG_UNFINISHED_GOOD);
        m->nothing_servable = true;
        restart(m);
        found = outcome(m);
        assert_string_equal(found, before);
        assert_int_equal(m->record.unfinished.kind, LKG_UNFINISHED_NONE);
        assert_int_equal(m->record.ticket,
                         0); /* the answer to a repeated command is a refusal, not "done" */
        free(before);
        free(found);
        free(m);
}

TEST(test_names)
{
        for (int i = 0; i < _LKG_EVENT_MAX; i++)
                assert_non_null(event_names[i]);
        for (int i = 0; i < _LKG_EFFECT_MAX; i++)
                assert_non_null(effect_names[i]);
}

/* What the fleet is told: a node whose own layers do not go with a content, or whose operator went back, proves nothing about it. */
TEST(test_what_a_slot_is_told)
{
        static const enum lkg_slot_outcome wanted[] = {
                [LKG_BAD_MARKED] = LKG_OUTCOME_OVER,   [LKG_BAD_LOAD] = LKG_OUTCOME_BAD,
                [LKG_BAD_PARSE] = LKG_OUTCOME_OVER,    [LKG_BAD_INVALID] = LKG_OUTCOME_OVER,
                [LKG_BAD_CRASHED] = LKG_OUTCOME_BAD,   [LKG_BAD_OPERATOR] = LKG_OUTCOME_OVER,
                [LKG_BAD_UNHEALTHY] = LKG_OUTCOME_BAD,
        };
        const struct lkg_config_source source = { .uid = "u", .sha256 = "aa", .version = "7" };
        struct lkg_bad mark = { .source = source, .reason = "why" };
        const struct lkg_bad_list none = { NULL, 0 }, marked = { &mark, 1 };
        struct lkg_pointers p = { .assigned = source };
        char reason[LKG_SLOT_REASON_MAX];

        assert_int_equal(LKG_ARRAY_SIZE(wanted), _LKG_BAD_CAUSE_MAX);
        assert_int_equal(lkg_lifecycle_slot_outcome(&p, &none, "u", "aa", reason), LKG_OUTCOME_WANTED);
        assert_int_equal(lkg_lifecycle_slot_outcome(&p, &none, "u", "bb", reason), LKG_OUTCOME_OVER);
        for (unsigned cause = 0; cause < _LKG_BAD_CAUSE_MAX; cause++) {
                mark.cause = cause;
                p.active = (struct lkg_config_source){ .uid = "" };
                assert_int_equal(lkg_lifecycle_slot_outcome(&p, &marked, "u", "aa", reason), wanted[cause]);
                p.active = source; /* it still runs it, until the rollback */
                assert_int_equal(lkg_lifecycle_slot_outcome(&p, &marked, "u", "aa", reason),
                                 wanted[cause] == LKG_OUTCOME_BAD ? LKG_OUTCOME_BAD : LKG_OUTCOME_TRYING);
        }
        p.good.source = source;
        assert_int_equal(lkg_lifecycle_slot_outcome(&p, &none, "u", "aa", reason), LKG_OUTCOME_GOOD);
}

int main(void)
{
        init_sources();
        read_states();
        return run_all(NULL, NULL);
}
