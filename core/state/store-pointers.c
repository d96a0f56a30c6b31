/* SPDX-License-Identifier: Apache-2.0 */
/* The pointers (assigned, active, last known good) and the trial of the active configuration. */
#include <limits.h>

#include "store-internal.h"

#define POINTERS_NAME "pointers.json"
#define TRIAL_NAME    "trial.json"
#define TRIAL_MAX_NS  ((uint64_t)INT64_MAX) /* the longest duration */

/* ---- pointers ---- */

static void read_good(const struct lkg_fields *fields, struct lkg_good *ret)
{
        const struct lkg_value *map = lkg_fields_map(fields, "lastKnownGood");
        const struct lkg_fields inner = { map, fields->file, "lastKnownGood.", fields->report };

        if (!map)
                return;
        lkg_fields_source(&inner, "source", &ret->source);
        ret->generation = lkg_fields_number(&inner, "generation", UINT64_MAX / 2, 0);
        ret->time_ns = lkg_fields_time(&inner, "time");
        lkg_fields_digest(&inner, "document", ret->sha256);
}

/* Earlier versions did not write it. */
static void read_passed_over(const struct lkg_fields *fields, char ret[static LKG_SHA256_HEX])
{
        const char *text = lkg_map_get_string(fields->map, "passedOver");

        if (text && strcmp(text, LKG_PASSED_OVER_UNKNOWN) == 0)
                (void)snprintf(ret, LKG_SHA256_HEX, "%s", text);
        else if (lkg_map_get(fields->map, "passedOver"))
                lkg_fields_digest(fields, "passedOver", ret);
}

static void read_rollback(const struct lkg_fields *fields, struct lkg_pointers *ret)
{
        const struct lkg_value *map = lkg_fields_map(fields, "rollback");
        const struct lkg_fields inner = { map, fields->file, "rollback.", fields->report };

        if (!map)
                return;
        lkg_fields_source(&inner, "from", &ret->rollback.from);
        if (lkg_fields_text(&inner, "reason", ret->rollback.reason, sizeof(ret->rollback.reason)) &&
            !ret->rollback.reason[0])
                lkg_fields_complain(&inner, "reason", "some text");
        /* An empty reason would mean that there was no rollback. */
        if (!ret->rollback.reason[0])
                (void)snprintf(ret->rollback.reason, sizeof(ret->rollback.reason),
                               "the stored reason is lost");
        ret->rollback.time_ns = lkg_fields_time(&inner, "time");
        ret->rollback.starts_since = (unsigned)lkg_fields_number(&inner, "startsSince", UINT32_MAX, 0);
        ret->rollback.abandoned_generation =
                lkg_fields_number(&inner, "abandonedGeneration", UINT64_MAX / 2, 0);
        read_passed_over(&inner, ret->rollback.passed_over);
}

int lkg_store_load_pointers(const struct lkg_store_component *c, struct lkg_pointers *ret,
                            struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        char file[LKG_STORE_PATH];
        int r;

        *ret = (struct lkg_pointers){ .assigned_ns = 0 };
        (void)snprintf(file, sizeof(file), "%s/" POINTERS_NAME, c->path);
        r = lkg_store_read(c->fd, POINTERS_NAME, file, report, &map);
        if (r > 0) {
                const struct lkg_fields fields = { map, file, "", report };

                lkg_fields_source(&fields, "assigned", &ret->assigned);
                ret->assigned_ns = lkg_fields_time(&fields, "assignedTime");
                if (lkg_map_get(
                            map,
                            "nodeUid")) /* missing in records of earlier versions, and if no Node was followed */
                        (void)lkg_fields_identifier(&fields, "nodeUid", ret->node_uid);
                lkg_fields_source(&fields, "active", &ret->active);
                read_good(&fields, &ret->good);
                read_rollback(&fields, ret);
        }
        return r < 0 ? r : 0;
}

static void put_good(struct lkg_json *json, const struct lkg_good *good)
{
        lkg_json_map(json, "lastKnownGood", LKG_JSON_AROUND);
        lkg_store_put_source(json, "source", &good->source, false);
        lkg_json_u64(json, "generation", good->generation);
        lkg_json_time_ns(json, "time", good->time_ns);
        lkg_store_put_text(json, "document", good->sha256);
        lkg_json_end(json);
}

static void put_rollback(struct lkg_json *json, const struct lkg_pointers *p)
{
        if (!p->rollback.reason[0]) {
                lkg_json_null(json, "rollback");
                return;
        }
        lkg_json_map(json, "rollback", LKG_JSON_AROUND);
        lkg_store_put_source(json, "from", &p->rollback.from, false);
        lkg_store_put_text(json, "reason", p->rollback.reason);
        lkg_json_time_ns(json, "time", p->rollback.time_ns);
        lkg_json_u64(json, "startsSince", p->rollback.starts_since);
        lkg_json_u64(json, "abandonedGeneration", p->rollback.abandoned_generation);
        lkg_store_put_text(json, "passedOver", p->rollback.passed_over);
        lkg_json_end(json);
}

int lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                            struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        int r;

        lkg_store_begin(&json, LKG_JSON_PRETTY);
        lkg_store_put_source(&json, "assigned", &pointers->assigned, false);
        lkg_json_time_ns(&json, "assignedTime", pointers->assigned_ns);
        if (*pointers->node_uid)
                lkg_store_put_text(&json, "nodeUid", pointers->node_uid);
        lkg_store_put_source(&json, "active", &pointers->active, false);
        put_good(&json, &pointers->good);
        put_rollback(&json, pointers);
        lkg_json_end(&json);
        r = lkg_store_write(c->fd, POINTERS_NAME, &json, err);
        return r < 0 ? lkg_error_wrap(err, r, "save the pointers of %s", c->path) : 0;
}

/* ---- trial ---- */

static void read_checks(const struct lkg_fields *fields, const char *field, bool ret[static _LKG_CHECK_MAX])
{
        const struct lkg_value *list = lkg_map_get(fields->map, field);
        bool is_list = list && lkg_value_type(list) == LKG_LIST;

        if (list && !is_list)
                lkg_fields_complain(fields, field, "a list");
        for (size_t i = 0; is_list && i < lkg_value_size(list); i++) {
                const char *name = lkg_value_text(lkg_list_get(list, i), NULL);
                unsigned k = 0;

                while (k < _LKG_CHECK_MAX && strcmp(name, lkg_check_name((enum lkg_check)k)) != 0)
                        k++;
                if (k < _LKG_CHECK_MAX)
                        ret[k] = true;
                else
                        lkg_fields_complain(fields, field, "node or http");
        }
}

/* Health, which earlier versions did not judge. What is lost is judged once it has been good again. */
static void read_health(const struct lkg_fields *fields, struct lkg_trial *trial)
{
        if (lkg_map_get(fields->map, "stableForNs"))
                trial->rules.stable_for_ns = lkg_fields_number(fields, "stableForNs", TRIAL_MAX_NS, 0);
        if (lkg_map_get(fields->map, "stableNs"))
                trial->stable_ns = lkg_fields_number(fields, "stableNs", TRIAL_MAX_NS, 0);
        if (lkg_map_get(fields->map, "calmNs"))
                trial->calm_ns = lkg_fields_number(fields, "calmNs", TRIAL_MAX_NS, 0);
        if (lkg_map_get(fields->map, "awayNs"))
                trial->away_ns = lkg_fields_number(fields, "awayNs", TRIAL_MAX_NS, 0);
        trial->extended = lkg_map_get(fields->map, "extended") && lkg_fields_flag(fields, "extended");
        read_checks(fields, "judged", trial->judged);
        read_checks(fields, "bad", trial->bad);
}

/* A trial whose rules are lost starts again. If only the clock or the starts are lost, it takes longer. */
static void read_trial(const struct lkg_fields *fields, struct lkg_trial *ret)
{
        const char *state = lkg_map_get_string(fields->map, "state");
        struct lkg_trial trial = { .state = LKG_TRIAL_IDLE };
        uint64_t duration = lkg_fields_number(fields, "durationNs", TRIAL_MAX_NS, UINT64_MAX);
        uint64_t threshold = lkg_fields_number(fields, "threshold", LKG_TRIAL_THRESHOLD_MAX, UINT64_MAX);

        trial.prior = (unsigned)lkg_fields_number(fields, "priorStarts", UINT32_MAX, 0);
        trial.last_pid = (int)lkg_fields_number(fields, "lastPid", INT_MAX, 0);
        trial.last_start_time = lkg_fields_number(fields, "lastStartTime", UINT64_MAX - 1, 0);
        trial.started_wall_ns = lkg_fields_time(fields, "started");
        trial.good_ns = lkg_fields_number(fields, "goodNs", TRIAL_MAX_NS, 0);
        if (!state || lkg_trial_state_parse(state, &trial.state) < 0) {
                lkg_fields_complain(fields, "state", "idle, running, passed or failed");
                return;
        }
        if (duration == UINT64_MAX || threshold == UINT64_MAX)
                return;
        trial.rules = (struct lkg_trial_rules){ .duration_ns = duration, .threshold = (unsigned)threshold };
        read_health(fields, &trial);
        *ret = trial;
}

int lkg_store_load_trial(const struct lkg_store_component *c, const struct lkg_config_source *source,
                         struct lkg_trial *ret, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        char file[LKG_STORE_PATH];
        int r;

        *ret = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        (void)snprintf(file, sizeof(file), "%s/" TRIAL_NAME, c->path);
        r = lkg_store_read(c->fd, TRIAL_NAME, file, report, &map);
        if (r > 0) {
                const struct lkg_fields fields = { map, file, "", report };
                struct lkg_config_source of;
                struct lkg_trial trial = { .state = LKG_TRIAL_IDLE };

                lkg_fields_source(&fields, "source", &of);
                read_trial(&fields, &trial);
                if (!source || lkg_config_source_matches(&of, source))
                        *ret = trial;
        }
        return r < 0 ? r : 0;
}

static void put_checks(struct lkg_json *json, const char *field, const bool checks[static _LKG_CHECK_MAX])
{
        lkg_json_list(json, field, LKG_JSON_TIGHT);
        for (unsigned k = 0; k < _LKG_CHECK_MAX; k++)
                if (checks[k])
                        lkg_json_text(json, NULL, lkg_check_name((enum lkg_check)k));
        lkg_json_end(json);
}

static uint64_t at_most(uint64_t ns)
{
        return ns < TRIAL_MAX_NS ? ns : TRIAL_MAX_NS;
}

int lkg_store_save_trial(const struct lkg_store_component *c, const struct lkg_config_source *source,
                         const struct lkg_trial *trial, uint64_t now_ns, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        int r;

        lkg_store_begin(&json, LKG_JSON_PRETTY);
        lkg_store_put_source(&json, "source", source, false);
        lkg_json_text(&json, "state", lkg_trial_state_name(trial->state));
        lkg_json_u64(&json, "durationNs", trial->rules.duration_ns);
        lkg_json_u64(&json, "threshold", trial->rules.threshold);
        lkg_json_u64(&json, "stableForNs", trial->rules.stable_for_ns);
        lkg_json_u64(&json, "priorStarts", trial->prior);
        lkg_json_i64(&json, "lastPid", trial->last_pid);
        lkg_json_u64(&json, "lastStartTime", trial->last_start_time);
        lkg_json_u64(&json, "goodNs", at_most(lkg_trial_elapsed(trial, now_ns)));
        lkg_json_u64(&json, "stableNs", at_most(lkg_trial_stable(trial, now_ns)));
        lkg_json_u64(&json, "calmNs", at_most(lkg_trial_calm(trial, now_ns)));
        lkg_json_u64(&json, "awayNs", at_most(lkg_trial_absence(trial, now_ns)));
        lkg_json_bool(&json, "extended", trial->extended);
        put_checks(&json, "judged", trial->judged);
        put_checks(&json, "bad", trial->bad);
        lkg_json_time_ns(&json, "started", trial->started_wall_ns);
        lkg_json_end(&json);
        r = lkg_store_write(c->fd, TRIAL_NAME, &json, err);
        return r < 0 ? lkg_error_wrap(err, r, "save the trial of %s", c->path) : 0;
}
