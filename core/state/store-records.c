/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a component that change: pointers (assigned, active, last known good), the trial, the last starts. */
#include <limits.h>

#include "store-internal.h"

#define POINTERS_NAME  "pointers.json"
#define TRIAL_NAME     "trial.json"
#define STARTUPS_NAME  "startups.json"
#define GENERATION_MAX (UINT64_MAX / 2)
#define TRIAL_MAX_NS   ((uint64_t)INT64_MAX) /* the longest duration */

/* Return: see lkg_store_read(). @path: below the directory of the component */
static int read_record(const struct lkg_store_component *c, const char *path,
                       char ret_file[static LKG_STORE_PATH], struct lkg_report *report,
                       struct lkg_value **ret)
{
        (void)snprintf(ret_file, LKG_STORE_PATH, "%s/%s", c->path, path);
        return lkg_store_read(c->fd, path, ret_file, report, ret);
}

/* ---- pointers ---- */

#define POINTER(member)  LKG_MEMBER(struct lkg_pointers, member)
#define ROLLBACK(member) LKG_MEMBER(struct lkg_pointers, rollback.member)

static const struct lkg_record_row good_rows[] = {
        { "source", LKG_RECORD_SOURCE, POINTER(good.source) },
        { "generation", LKG_RECORD_NUMBER, POINTER(good.generation), .max = GENERATION_MAX },
        { "time", LKG_RECORD_TIME, POINTER(good.time_ns) },
        { "document", LKG_RECORD_DIGEST, POINTER(good.sha256) },
        { NULL },
};
static const struct lkg_record_row pointer_rows[] = {
        { "assigned", LKG_RECORD_SOURCE, POINTER(assigned) },
        { "assignedTime", LKG_RECORD_TIME, POINTER(assigned_ns) },
        { "nodeUid", LKG_RECORD_IDENTIFIER, POINTER(node_uid), .optional = true },
        { "active", LKG_RECORD_SOURCE, POINTER(active) },
        { "lastKnownGood", LKG_RECORD_MAP, .rows = good_rows },
        { NULL },
};
static const char *const unknown[] = { LKG_PASSED_OVER_UNKNOWN, NULL };
static const struct lkg_record_row rollback_rows[] = {
        { "from", LKG_RECORD_SOURCE, ROLLBACK(from) },
        { "reason", LKG_RECORD_TEXT, ROLLBACK(reason) },
        { "time", LKG_RECORD_TIME, ROLLBACK(time_ns) },
        { "startsSince", LKG_RECORD_NUMBER, ROLLBACK(starts_since), .max = UINT32_MAX },
        { "abandonedGeneration", LKG_RECORD_NUMBER, ROLLBACK(abandoned_generation), .max = GENERATION_MAX },
        { "passedOver", LKG_RECORD_DIGEST, ROLLBACK(passed_over), .optional = true, .words = unknown },
        { NULL },
};
static const struct lkg_record_row whole_rollback[] = {
        { "rollback", LKG_RECORD_MAP, .rows = rollback_rows },
        { NULL },
};

int lkg_store_load_pointers(const struct lkg_store_component *c, struct lkg_pointers *ret,
                            struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        char file[LKG_STORE_PATH];
        struct lkg_fields fields = { .file = file, .prefix = "", .report = report };
        int r = read_record(c, POINTERS_NAME, file, report, &map);

        *ret = (struct lkg_pointers){ .assigned_ns = 0 };
        if (r <= 0)
                return r;
        fields.map = map;
        (void)lkg_record_get(&fields, pointer_rows, ret);
        (void)lkg_record_get(&fields, whole_rollback, ret);
        if (!lkg_map_get_map(map, "rollback") || ret->rollback.reason[0])
                return 0;
        /* An empty reason would mean that there was no rollback. */
        lkg_fields_complain(&fields, "rollback.reason", "some text");
        (void)snprintf(ret->rollback.reason, sizeof(ret->rollback.reason), "the stored reason is lost");
        return 0;
}

int lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                            struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        int r;

        lkg_record_begin(&json, LKG_JSON_PRETTY, pointer_rows, pointers);
        if (pointers->rollback.reason[0])
                lkg_record_put(&json, whole_rollback, pointers);
        else
                lkg_json_null(&json, "rollback");
        lkg_json_end(&json);
        r = lkg_store_write(c->fd, POINTERS_NAME, &json, err);
        return r < 0 ? lkg_error_wrap(err, r, "save the pointers of %s", c->path) : 0;
}

/* ---- trial ---- */

struct stored_trial {
        struct lkg_config_source source;
        struct lkg_trial trial;
};

#define TRIAL(member) LKG_MEMBER(struct stored_trial, trial.member)

/* Health was not judged by earlier versions. What is lost of it is judged once it has been good again. */
static const struct lkg_record_row trial_rows[] = {
        { "source", LKG_RECORD_SOURCE, LKG_MEMBER(struct stored_trial, source) },
        { "state", LKG_RECORD_WORD, TRIAL(state), .words = lkg_trial_state_names },
        { "durationNs", LKG_RECORD_NUMBER, TRIAL(rules.duration_ns), .max = TRIAL_MAX_NS },
        { "threshold", LKG_RECORD_NUMBER, TRIAL(rules.threshold), .max = LKG_TRIAL_THRESHOLD_MAX },
        { "stableForNs", LKG_RECORD_NUMBER, TRIAL(rules.stable_for_ns), .optional = true,
          .max = TRIAL_MAX_NS },
        { "priorStarts", LKG_RECORD_NUMBER, TRIAL(prior), .max = UINT32_MAX },
        { "lastPid", LKG_RECORD_NUMBER, TRIAL(last_pid), .max = INT_MAX },
        { "lastStartTime", LKG_RECORD_NUMBER, TRIAL(last_start_time) },
        { "goodNs", LKG_RECORD_NUMBER, TRIAL(good_ns), .max = TRIAL_MAX_NS },
        { "stableNs", LKG_RECORD_NUMBER, TRIAL(stable_ns), .optional = true, .max = TRIAL_MAX_NS },
        { "calmNs", LKG_RECORD_NUMBER, TRIAL(calm_ns), .optional = true, .max = TRIAL_MAX_NS },
        { "awayNs", LKG_RECORD_NUMBER, TRIAL(away_ns), .optional = true, .max = TRIAL_MAX_NS },
        { "extended", LKG_RECORD_FLAG, TRIAL(extended), .optional = true },
        { "judged", LKG_RECORD_WORDS, TRIAL(judged), .optional = true, .words = lkg_check_names },
        { "bad", LKG_RECORD_WORDS, TRIAL(bad), .optional = true, .words = lkg_check_names },
        { "started", LKG_RECORD_TIME, TRIAL(started_wall_ns) },
        { NULL },
};

int lkg_store_load_trial(const struct lkg_store_component *c, const struct lkg_config_source *source,
                         struct lkg_trial *ret, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        char file[LKG_STORE_PATH];
        struct stored_trial stored = { .trial = { .state = _LKG_TRIAL_STATE_MAX,
                                                  .rules = { .duration_ns = UINT64_MAX,
                                                             .threshold = UINT32_MAX } } };
        const struct lkg_trial *trial = &stored.trial;
        int r = read_record(c, TRIAL_NAME, file, report, &map);

        *ret = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        if (r <= 0)
                return r;
        (void)lkg_record_get(&(struct lkg_fields){ map, file, "", report }, trial_rows, &stored);
        /* A trial whose rules are lost starts again. If only the clock or the starts are lost, it takes longer. */
        if (trial->state == _LKG_TRIAL_STATE_MAX || trial->rules.duration_ns == UINT64_MAX ||
            trial->rules.threshold == UINT32_MAX)
                return 0;
        if (!source || lkg_config_source_matches(&stored.source, source))
                *ret = *trial;
        return 0;
}

int lkg_store_save_trial(const struct lkg_store_component *c, const struct lkg_config_source *source,
                         const struct lkg_trial *trial, uint64_t now_ns, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        struct stored_trial stored = { *source, *trial };
        int r;

        stored.trial.good_ns = lkg_trial_elapsed(trial, now_ns);
        stored.trial.stable_ns = lkg_trial_stable(trial, now_ns);
        stored.trial.calm_ns = lkg_trial_calm(trial, now_ns);
        stored.trial.away_ns = lkg_trial_absence(trial, now_ns);
        lkg_record_begin(&json, LKG_JSON_PRETTY, trial_rows, &stored);
        lkg_json_end(&json);
        r = lkg_store_write(c->fd, TRIAL_NAME, &json, err);
        return r < 0 ? lkg_error_wrap(err, r, "save the trial of %s", c->path) : 0;
}

/* ---- starts: one line each ---- */

#define STARTUP(member) LKG_MEMBER(struct lkg_startup, member)

static const struct lkg_record_row startups_rows[] = {
        { "boot", LKG_RECORD_TEXT, LKG_MEMBER(struct lkg_startups, boot) },
        { NULL },
};
static const struct lkg_record_row startup_rows[] = {
        { "time", LKG_RECORD_TIME, STARTUP(time_ns) },
        { "pid", LKG_RECORD_NUMBER, STARTUP(pid), .max = INT_MAX },
        { "startTime", LKG_RECORD_NUMBER, STARTUP(start_time) },
        { "counted", LKG_RECORD_FLAG, STARTUP(counted) },
        { "local", LKG_RECORD_FLAG, STARTUP(local) },
        { NULL },
};

/* A start without a time is of no use. */
static void read_startup(const struct lkg_fields *fields, const struct lkg_value *item, size_t i,
                         struct lkg_startups *ret)
{
        char prefix[48];
        struct lkg_startup *startup = &ret->items[ret->n_items];

        (void)snprintf(prefix, sizeof(prefix), "starts[%zu].", i);
        *startup = (struct lkg_startup){ .time_ns = 0 };
        (void)lkg_record_get(&(struct lkg_fields){ item, fields->file, prefix, fields->report },
                             startup_rows, startup);
        ret->n_items += startup->time_ns > 0;
}

static void read_items(const struct lkg_fields *fields, struct lkg_startups *ret)
{
        const struct lkg_value *list = lkg_map_get(fields->map, "starts");
        bool is_list = list && lkg_value_type(list) == LKG_LIST;
        size_t n = is_list ? lkg_value_size(list) : 0;

        if (!is_list || n > LKG_STARTUPS_MAX)
                lkg_fields_complain(fields, "starts", is_list ? "a shorter list" : "a list");
        for (size_t i = n > LKG_STARTUPS_MAX ? n - LKG_STARTUPS_MAX : 0; i < n; i++)
                if (lkg_value_type(lkg_list_get(list, i)) == LKG_MAP)
                        read_startup(fields, lkg_list_get(list, i), i, ret);
                else
                        lkg_fields_complain(fields, "starts", "objects in it");
}

int lkg_store_load_startups(const struct lkg_store_component *c, struct lkg_startups *ret,
                            struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        char path[LKG_RELEASE_PATH], file[LKG_STORE_PATH];
        struct lkg_fields fields = { .file = file, .prefix = "", .report = report };
        int r;

        *ret = (struct lkg_startups){ .n_items = 0 };
        lkg_store_release_path(c, STARTUPS_NAME, path);
        r = read_record(c, path, file, report, &map);
        if (r <= 0)
                return r;
        fields.map = map;
        /* a boot id is a UUID */
        if (!lkg_record_get(&fields, startups_rows, ret) ||
            ret->boot[strspn(ret->boot, "0123456789abcdef-")]) {
                lkg_fields_complain(&fields, "boot", "a boot id");
                ret->boot[0] = '\0';
        }
        read_items(&fields, ret);
        return 0;
}

int lkg_store_save_startups(const struct lkg_store_component *c, const struct lkg_startups *startups,
                            struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        char path[LKG_RELEASE_PATH];
        int r;

        lkg_record_begin(&json, LKG_JSON_PRETTY, startups_rows, startups);
        lkg_json_list(&json, "starts", LKG_JSON_AROUND);
        for (size_t i = 0; i < startups->n_items; i++) {
                lkg_json_map(&json, NULL, LKG_JSON_ROW);
                lkg_record_put(&json, startup_rows, &startups->items[i]);
                lkg_json_end(&json);
        }
        lkg_json_end(&json);
        lkg_json_end(&json);
        lkg_store_release_path(c, STARTUPS_NAME, path);
        r = lkg_store_write(c->fd, path, &json, err);
        return r < 0 ? lkg_error_wrap(err, r, "save the starts of %s", c->path) : 0;
}

void lkg_startups_add(struct lkg_startups *startups, const char *boot, const struct lkg_startup *startup)
{
        /* Process ids and start times restart at every boot: those of an earlier boot no longer identify a process. */
        if (strcmp(startups->boot, boot) != 0)
                for (size_t i = 0; i < startups->n_items; i++)
                        startups->items[i].start_time = 0;
        (void)snprintf(startups->boot, sizeof(startups->boot), "%s", boot);
        if (startups->n_items == LKG_STARTUPS_MAX)
                memmove(startups->items, startups->items + 1,
                        --startups->n_items * sizeof(startups->items[0]));
        startups->items[startups->n_items++] = *startup;
}

/* "Have I seen this process?" - is its start on record? Outlives the engine. */
bool lkg_startups_knows(const struct lkg_startups *startups, const char *boot, int pid, uint64_t start_time)
{
        if (!*boot || strcmp(startups->boot, boot) != 0 || pid < 0 || start_time == 0)
                return false;
        for (size_t i = 0; i < startups->n_items; i++)
                if (startups->items[i].pid == pid && startups->items[i].start_time == start_time)
                        return true;
        return false;
}
