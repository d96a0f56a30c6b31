/* SPDX-License-Identifier: Apache-2.0 */
#include "view-dynamic.h"

#include <lkg/documents.h>

void lkg_dynamic_deinit(struct lkg_view_dynamic *dynamic)
{
        free(dynamic->assigned);
        free(dynamic->active);
        free(dynamic->last_known_good);
        free(dynamic->trial_state);
        free(dynamic->trial_started);
        free(dynamic->trial_deadline);
        free(dynamic->assigned_mark);
        *dynamic = (struct lkg_view_dynamic){ 0 };
}

/* If there is no memory for a fact, it counts as unknown. */
static void take_text(char **text, const char *value)
{
        free(*text);
        *text = strdup(value);
}

static bool take_number(uint64_t *ret, const char *value)
{
        return lkg_record_parse_u64(value, ret) == 0;
}

static void take_trial_line(char *line, struct lkg_view_dynamic *dynamic)
{
        char *value = strchr(line, '=');

        if (!value)
                return;
        *value++ = '\0';
        if (strcmp(line, "state") == 0)
                take_text(&dynamic->trial_state, value);
        else if (strcmp(line, "started") == 0)
                take_text(&dynamic->trial_started, value);
        else if (strcmp(line, "deadline") == 0)
                take_text(&dynamic->trial_deadline, value);
        else if (strcmp(line, "prior_starts") == 0)
                dynamic->has_prior_starts = take_number(&dynamic->prior_starts, value);
        else if (strcmp(line, "threshold") == 0)
                dynamic->has_threshold = take_number(&dynamic->threshold, value);
}

void lkg_dynamic_parse_trial(const char *text, struct lkg_view_dynamic *dynamic)
{
        LKG_CLEANUP(lkg_freep) char *copy = strdup(text);
        char *save = NULL;

        for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
             line = strtok_r(NULL, "\n", &save))
                take_trial_line(line, dynamic);
}

bool lkg_dynamic_is_remote(const char *text)
{
        const char *at = text ? strchr(text, '@') : NULL;

        return at && strncmp(text, "local@", 6) != 0;
}

/* A mark with the id of the assigned configuration, or with its uid, which covers all versions. */
static bool marks(const char *name, const char *assigned)
{
        size_t id = strcspn(assigned, " "), uid = strcspn(assigned, "@"), n = strlen(name);

        return (n == id || n == uid) && strncmp(name, assigned, n) == 0;
}

void lkg_dynamic_read(const struct lkg_view *view, const char *component, struct lkg_view_dynamic *ret)
{
        LKG_CLEANUP(lkg_freep) char *trial = NULL;
        struct lkg_view_dynamic dynamic = { 0 };
        const struct {
                const char *file;
                char **text;
        } files[] = {
                { "assigned", &dynamic.assigned },
                { "active", &dynamic.active },
                { "last-known-good", &dynamic.last_known_good },
        };
        char **names = NULL;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++)
                if (lkg_view_read(view, files[i].text, NULL, "status/%s/%s", component, files[i].file) < 0)
                        *files[i].text = NULL;
        if (lkg_view_read(view, &trial, NULL, "status/%s/trial", component) == 0)
                lkg_dynamic_parse_trial(trial, &dynamic);
        dynamic.has_bad = lkg_view_bad_names(view, component, &names, &dynamic.n_bad) == 0;
        for (size_t i = 0; i < dynamic.n_bad; i++)
                if (lkg_dynamic_is_remote(dynamic.assigned) && marks(names[i], dynamic.assigned))
                        take_text(&dynamic.assigned_mark, names[i]);
        lkg_view_free_mounts(names, dynamic.n_bad);
        *ret = dynamic;
}

bool lkg_dynamic_is_on_trial(const struct lkg_view_dynamic *dynamic)
{
        return dynamic->trial_state && strcmp(dynamic->trial_state, "running") == 0;
}

bool lkg_dynamic_matters(const struct lkg_view_dynamic *dynamic)
{
        return lkg_dynamic_is_remote(dynamic->assigned) || lkg_dynamic_is_remote(dynamic->active) ||
               lkg_dynamic_is_remote(dynamic->last_known_good) || lkg_dynamic_is_on_trial(dynamic) ||
               dynamic->n_bad > 0;
}

static void text_line(const char *label, const char *text, struct lkg_buf *buf)
{
        if (!text)
                return;
        lkg_buf_printf(buf, "  %-10s", label);
        lkg_tool_put_clean(buf, text);
        lkg_buf_putc(buf, '\n');
}

/* "running since T until T, 2 starts before, rollback after 10" */
static void text_trial(const struct lkg_view_dynamic *dynamic, struct lkg_buf *buf)
{
        if (!dynamic->trial_state || strcmp(dynamic->trial_state, "idle") == 0)
                return;
        lkg_buf_printf(buf, "  %-10s", "trial");
        lkg_tool_put_clean(buf, dynamic->trial_state);
        if (dynamic->trial_started && *dynamic->trial_started) {
                lkg_buf_puts(buf, " since ");
                lkg_tool_put_clean(buf, dynamic->trial_started);
        }
        if (lkg_dynamic_is_on_trial(dynamic) && dynamic->trial_deadline && *dynamic->trial_deadline) {
                lkg_buf_puts(buf, " until ");
                lkg_tool_put_clean(buf, dynamic->trial_deadline);
        }
        if (dynamic->has_prior_starts)
                lkg_buf_printf(buf, ", %llu start%s", (unsigned long long)dynamic->prior_starts,
                               dynamic->prior_starts == 1 ? "" : "s");
        if (dynamic->has_threshold)
                lkg_buf_printf(buf, ", threshold %llu", (unsigned long long)dynamic->threshold);
        lkg_buf_putc(buf, '\n');
}

void lkg_dynamic_text(const struct lkg_view_dynamic *dynamic, struct lkg_buf *buf)
{
        if (!lkg_dynamic_matters(dynamic))
                return;
        text_line("assigned", dynamic->assigned, buf);
        text_line("active", dynamic->active, buf);
        text_line("last good", dynamic->last_known_good, buf);
        text_trial(dynamic, buf);
        if (dynamic->n_bad)
                lkg_buf_printf(buf, "  %-10s%zu configuration%s%s (`lkgfs bad`)\n", "bad", dynamic->n_bad,
                               dynamic->n_bad == 1 ? "" : "s",
                               dynamic->assigned_mark ? ", the assigned one too" : "");
}

void lkg_dynamic_map(const struct lkg_view_dynamic *dynamic, struct lkg_tool_map *map)
{
        struct lkg_tool_map trial;

        lkg_tool_map_string(map, "active", dynamic->active);
        lkg_tool_map_string(map, "assigned", dynamic->assigned);
        lkg_tool_map_string(map, "lastKnownGood", dynamic->last_known_good);
        if (dynamic->has_bad)
                lkg_tool_map_number(map, "bad", dynamic->n_bad);
        if (!dynamic->trial_state)
                return;
        lkg_tool_map_init(&trial, false);
        lkg_tool_map_string(&trial, "state", dynamic->trial_state);
        if (dynamic->trial_started && *dynamic->trial_started)
                lkg_tool_map_string(&trial, "started", dynamic->trial_started);
        if (dynamic->trial_deadline && *dynamic->trial_deadline)
                lkg_tool_map_string(&trial, "deadline", dynamic->trial_deadline);
        if (dynamic->has_prior_starts)
                lkg_tool_map_number(&trial, "priorStarts", dynamic->prior_starts);
        if (dynamic->has_threshold)
                lkg_tool_map_number(&trial, "threshold", dynamic->threshold);
        map->failed |= trial.failed;
        lkg_tool_map_value(map, "trial", trial.value);
}

bool lkg_dynamic_next(const struct lkg_view_dynamic *dynamic, const char *component, struct lkg_buf *buf)
{
        if (dynamic->assigned_mark) {
                lkg_buf_puts(buf,
                             "assign a corrected ConfigMap, or let this one be tried again: `lkgfs forget ");
                lkg_tool_put_clean(buf, dynamic->assigned_mark);
                lkg_buf_printf(buf, " --component %s`", component);
                return true;
        }
        if (lkg_dynamic_is_on_trial(dynamic)) {
                lkg_buf_printf(
                        buf, "wait for the end of the trial, or end it now: `lkgfs promote --component %s`",
                        component);
                return true;
        }
        return false;
}
