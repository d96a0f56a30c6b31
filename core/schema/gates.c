/* SPDX-License-Identifier: Apache-2.0 */
/* Rule: component-base/featuregate, unsafeSetFromMap and featureEnabled (v0.36). */
#include "gates.h"

#include "findings-codes.h"
#include "rules.h"

#include <lkg/schema.h>
#include <lkg/text.h>
#include <lkg/tree.h>

static const char all_alpha[] = "AllAlpha", all_beta[] = "AllBeta";

/* ---- the table ---- */

/* Return the row of @name, or lkg_n_gates. */
static size_t find_gate(const char *name)
{
        size_t low = 0, high = lkg_n_gates;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (strcmp(lkg_gates[middle].name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < lkg_n_gates && strcmp(lkg_gates[low].name, name) == 0 ? low : lkg_n_gates;
}

/* The same for a name from a document: a name with a NUL byte is not a gate. @ret: its state in @release, or NULL */
static size_t find_n(struct lkg_span name, unsigned release, const struct lkg_gate_state **ret)
{
        size_t row = strlen(name.data) == name.size ? find_gate(name.data) : lkg_n_gates;

        *ret = row < lkg_n_gates ? lkg_gate_in(&lkg_gates[row], release) : NULL;
        return row;
}

const struct lkg_gate_state *lkg_gate_at(const char *name, unsigned release)
{
        const struct lkg_gate_state *state;

        (void)find_n(lkg_span(name, strlen(name)), release, &state);
        return state;
}

bool lkg_gate_settable(const char *name, bool on, unsigned release)
{
        const struct lkg_gate_state *row = lkg_gate_at(name, release);

        if (strcmp(name, all_alpha) == 0 || strcmp(name, all_beta) == 0)
                return true;
        return row && row->stage != LKG_GATE_REMOVED && (!row->locked || row->def == on);
}

/* ---- the state ---- */

/* @row: of find_gate() */
static bool is_on(const struct lkg_gates *gates, size_t row)
{
        const struct lkg_gate_state *state;

        if (row >= lkg_n_gates)
                return false;
        if (gates->set[row])
                return gates->set[row] > 0;
        state = lkg_gate_in(&lkg_gates[row], gates->release);
        if (state && state->stage == LKG_GATE_REMOVED && state > lkg_gates[row].states)
                state--; /* it stays what it was last: on, if it was generally available */
        return state && state->def;
}

bool lkg_gates_enabled(const struct lkg_gates *gates, const char *name)
{
        return is_on(gates, find_gate(name));
}

/* AllAlpha, AllBeta: set every gate of that stage that was not set before. */
static void set_all(struct lkg_gates *gates, enum lkg_gate_stage stage, bool on)
{
        for (size_t i = 0; i < lkg_n_gates; i++) {
                const struct lkg_gate_state *row = lkg_gate_in(&lkg_gates[i], gates->release);

                if (row && row->stage == stage && gates->set[i] == 0)
                        gates->set[i] = on ? 1 : -1;
        }
}

/* ---- findings ---- */

static const char *nearest_gate(const char *name, unsigned release)
{
        struct lkg_nearest nearest;

        lkg_nearest_init(&nearest, name);
        for (size_t i = 0; i < lkg_n_gates; i++) {
                const struct lkg_gate_state *row = lkg_gate_in(&lkg_gates[i], release);

                if (row && row->stage != LKG_GATE_REMOVED)
                        lkg_nearest_offer(&nearest, lkg_gates[i].name);
        }
        return lkg_nearest_best(&nearest);
}

/* A flag has no line that could be removed. */
static const char *without_it(const struct lkg_value *value)
{
        char flag[LKG_FLAG_NOTE_MAX];

        return *lkg_flag_note(value, flag) ? "take it out of the command line" : "remove the line";
}

/* A name that the release does not know: find out why. */
static void report_unknown(const struct lkg_gates *gates, const struct lkg_member *m,
                           struct lkg_report *report)
{
        const struct lkg_value *value = m->value;
        const struct lkg_gate_state *row;
        size_t first = find_n(m->key, gates->release, &row);
        char now[LKG_RELEASE_TEXT_MAX], then[LKG_GATE_DROPPED_MAX];
        const char *nearest, *flag = LKG_FLAG_NOTE(value);

        (void)lkg_release_text(gates->release, now);
        if (gates->lenient) {
                lkg_report_add(
                        report, LKG_WARNING, LKG_F_GATE_UNKNOWN, LKG_AT(value),
                        "featureGates%s: %s is unknown in %s, the nearest release with tables; whether the "
                        "component starts with it cannot be said",
                        flag, LKG_QUOTE(m->key), now);
                return;
        }
        if (row) {
                lkg_report_add(report, LKG_ERROR, LKG_F_GATE_REMOVED, LKG_AT(value),
                               "featureGates%s: %s was dropped %s, and the component does not start with a "
                               "gate that it does not know; %s",
                               flag, m->key.data, lkg_gate_dropped(row, then), without_it(value));
                return;
        }
        if (first < lkg_n_gates) {
                lkg_report_add(
                        report, LKG_ERROR, LKG_F_GATE_TOO_NEW, LKG_AT(value),
                        "featureGates%s: %s comes with %s and this is %s, which does not start with it; "
                        "%s until the upgrade",
                        flag, m->key.data, LKG_RELEASE_TEXT(lkg_gates[first].states[0].since), now,
                        without_it(value));
                return;
        }
        nearest = report && !lkg_report_is_full(report) ? nearest_gate(m->key.data, gates->release) : NULL;
        lkg_report_add(
                report, LKG_ERROR, LKG_F_GATE_UNKNOWN, LKG_AT(value),
                "featureGates%s: no feature gate %s in %s, and the component does not start with it; %s%s%s",
                flag, LKG_QUOTE(m->key), now, nearest ? "did you mean " : without_it(value),
                nearest ? nearest : "", nearest ? "?" : "");
}

static int set_one(struct lkg_gates *gates, const struct lkg_member *m, struct lkg_report *report)
{
        bool on = lkg_value_bool(m->value), beta = lkg_span_is(m->key, all_beta);
        const struct lkg_gate_state *row;
        size_t first = find_n(m->key, gates->release, &row);

        if (beta || lkg_span_is(m->key, all_alpha)) {
                set_all(gates, beta ? LKG_GATE_BETA : LKG_GATE_ALPHA, on);
                return 0;
        }
        if (!row || row->stage == LKG_GATE_REMOVED) {
                report_unknown(gates, m, report);
                return gates->lenient ? 0 : -EBADMSG;
        }
        if (row->locked && row->def != on) {
                lkg_report_add(report, gates->lenient ? LKG_WARNING : LKG_ERROR, LKG_F_GATE_LOCKED,
                               LKG_AT(m->value), "featureGates%s: %s is locked to %s; %s",
                               LKG_FLAG_NOTE(m->value), m->key.data, row->def ? "true" : "false",
                               without_it(m->value));
                return gates->lenient ? 0 : -EBADMSG;
        }
        gates->set[first] = on ? 1 : -1;
        return 0;
}

static bool is_unread(const struct lkg_value *object, const struct lkg_value *unread, const char *name)
{
        char path[128];

        (void)snprintf(path, sizeof(path), "featureGates.%s", name);
        return lkg_object_unread(object, unread, path, LKG_UNREAD_ITSELF);
}

bool lkg_gate_unread(const struct lkg_value *object, const struct lkg_value *unread, const char *name)
{
        return unread && (is_unread(object, unread, name) || is_unread(object, unread, all_alpha) ||
                          is_unread(object, unread, all_beta));
}

static int check_needs(const struct lkg_gates *gates, const struct lkg_value *object,
                       const struct lkg_value *unread, struct lkg_report *report)
{
        const struct lkg_value *map = lkg_object_get(object, "featureGates");
        int r = 0;

        for (size_t i = 0; i < lkg_n_gate_needs; i++) {
                const struct lkg_gate_needs *row = &lkg_gate_needs[i];
                const struct lkg_value *on, *off;
                struct lkg_where where, other;
                char place[LKG_ASIDE_MAX];

                if (row->since > gates->release || !lkg_gates_enabled(gates, row->name) ||
                    lkg_gates_enabled(gates, row->needs) || lkg_gate_unread(object, unread, row->name) ||
                    lkg_gate_unread(object, unread, row->needs))
                        continue;
                on = lkg_map_get(map, row->name);
                off = lkg_map_get(map, row->needs);
                where = lkg_where_of(off ? off : on ? on : map);
                other = lkg_where_of(off ? on : NULL);
                lkg_report_add(
                        report, gates->lenient ? LKG_WARNING : LKG_ERROR, LKG_F_GATE_NEEDS, &where,
                        "featureGates: %s is on%s%s and needs %s, which is off%s; turn both on or both off",
                        row->name, LKG_FLAG_NOTE(on), lkg_where_aside(&other, place), row->needs,
                        LKG_FLAG_NOTE(off));
                r = gates->lenient ? 0 : -EBADMSG;
        }
        return r;
}

int lkg_gates_apply(struct lkg_gates *gates, const struct lkg_value *object, const struct lkg_value *unread,
                    struct lkg_report *report)
{
        const struct lkg_value *map = lkg_object_get(object, "featureGates");
        int result = 0;

        if (!map || lkg_value_type(map) != LKG_MAP)
                return 0;
        for (struct lkg_member m = { 0 }; lkg_value_next(map, &m);)
                if (!is_unread(object, unread, m.key.data) && set_one(gates, &m, report) < 0)
                        result = -EBADMSG;
        return result < 0 ? result : check_needs(gates, object, unread, report);
}

/*
 * Does AllAlpha or AllBeta decide about @stage? Then a gate would not have its default if its line were
 * removed.
 */
static bool has_group(const struct lkg_value *map, enum lkg_gate_stage stage)
{
        if (!map)
                return false;
        return (stage == LKG_GATE_ALPHA && lkg_map_get(map, all_alpha)) ||
               (stage == LKG_GATE_BETA && lkg_map_get(map, all_beta));
}

/*
 * A gate set to its default: redundant, or it undoes an earlier layer. @below: the value in that layer, or
 * NULL.
 */
static void advise_default(const char *name, const struct lkg_value *value, const struct lkg_value *below,
                           bool all, struct lkg_report *report)
{
        const char *word = lkg_value_type(value) == LKG_BOOL && lkg_value_bool(value) ? "true" : "false";

        if (below && !lkg_value_equal(below, value))
                lkg_report_add(report, LKG_NOTE, LKG_F_RESETS_EARLIER, LKG_AT(value),
                               "featureGates: %s: %s, the default, takes back what an earlier layer set%s",
                               name, word, LKG_ASIDE(below));
        else if (all)
                lkg_report_add(report, LKG_NOTE, LKG_F_EQUALS_DEFAULT, LKG_AT(value),
                               "featureGates: %s is %s by default; the line could be left out", name, word);
}

static void advise_one(const char *name, const struct lkg_value *value, const struct lkg_gate_state *row,
                       const struct lkg_value *map, const struct lkg_value *below, bool all,
                       struct lkg_report *report)
{
        bool on = lkg_value_type(value) == LKG_BOOL && lkg_value_bool(value);
        bool grouped = has_group(map, row->stage) || has_group(below, row->stage);
        const struct lkg_value *was = below ? lkg_map_get(below, name) : NULL;

        if (lkg_value_type(value) != LKG_BOOL || (row->locked && row->def != on))
                return;
        if (row->stage == LKG_GATE_GA || row->stage == LKG_GATE_DEPRECATED)
                lkg_report_add(
                        report, LKG_WARNING, LKG_F_GATE_GOING, LKG_AT(value),
                        "featureGates: %s is %s and will be dropped; after that upgrade the component "
                        "does not start with it; remove the line%s",
                        name, row->stage == LKG_GATE_GA ? "generally available" : "deprecated",
                        row->def != on                        ? " when you can do without it"
                        : was && !lkg_value_equal(was, value) ? ""
                                                              : ", it changes nothing");
        else if (row->stage != LKG_GATE_REMOVED && row->def == on && !grouped)
                advise_default(name, value, was, all, report);
}

void lkg_gate_advise(const struct lkg_value *map, const struct lkg_value *below, unsigned release, bool all,
                     struct lkg_report *report)
{
        if (!map || lkg_value_type(map) != LKG_MAP)
                return;
        if (below && lkg_value_type(below) != LKG_MAP)
                below = NULL; /* `featureGates:` without a value, or what another finding is about */
        for (struct lkg_member m = { 0 }; lkg_value_next(map, &m);) {
                const struct lkg_gate_state *row;

                (void)find_n(m.key, release, &row);
                if (row)
                        advise_one(m.key.data, m.value, row, map, below, all, report);
        }
}
