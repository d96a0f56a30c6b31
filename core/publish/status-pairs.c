/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status files with one key=value per line, so that a program need not parse a sentence: hold, process, trial, remote and
 * rollout. Absolute times, never a secret.
 */
#include <inttypes.h>

#include "status.h"

/* ---- one line ---- */

static void LKG_PRINTF(3, 4) put(struct lkg_buf *buf, const char *key, const char *fmt, ...)
{
        char value[1024];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(value, sizeof(value), fmt, ap);
        va_end(ap);
        lkg_buf_printf(buf, "%s=%s\n", key, value);
}

/* 0 = none */
static void put_number(struct lkg_buf *buf, const char *key, uint64_t number)
{
        if (number)
                put(buf, key, "%" PRIu64, number);
        else
                put(buf, key, "%s", "");
}

static void put_time(struct lkg_buf *buf, const char *key, uint64_t wall_ns)
{
        char text[21] = "";

        if (wall_ns)
                lkg_format_rfc3339(wall_ns, text);
        put(buf, key, "%s", text);
}

/* Foreign text stays on one line. */
static void put_foreign(struct lkg_buf *buf, const char *key, const char *text)
{
        lkg_buf_printf(buf, "%s=", key);
        lkg_buf_shown(buf, text, strlen(text));
        lkg_buf_putc(buf, '\n');
}

/* The same for what may contain a credential: a server's message, a certificate's subject, a URL. */
static void put_masked(struct lkg_buf *buf, const char *key, const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf clean = LKG_BUF_INIT;

        (void)lkg_mask_text(text, strlen(text), &clean);
        if (clean.data)
                lkg_blank_hidden(clean.data, clean.size, ' ');
        lkg_buf_printf(buf, "%s=%s\n", key, clean.data ? clean.data : "");
}

/* ---- hold: why the view does not follow changes ---- */

static void put_holder(struct lkg_buf *buf, const struct lkg_held_by *by)
{
        bool person = by->time_ns && strcmp(by->program, "try") != 0;

        put_time(buf, "since", by->time_ns);
        if (person)
                lkg_buf_printf(buf, "uid=%" PRIu32 "\npid=%" PRId32 "\n", by->uid, by->pid);
        else
                lkg_buf_puts(buf, "uid=\npid=\n");
        put_foreign(buf, "program", person ? by->program : "");
}

void lkg_status_render_hold(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        static const char *const modes[_LKG_HOLD_MODE_MAX] = {
                [LKG_HOLD_FREE] = "free",
                [LKG_HOLD_ON] = "hold",
                [LKG_HOLD_ROLLBACK] = "rollback",
                [LKG_HOLD_TRY_EXPIRED] = "try-expired",
        };
        const struct lkg_component *c = x->component;
        const struct lkg_hold *hold = &c->state.hold;
        const char *waiting = lkg_component_waiting(c);

        put(buf, "mode", "%s", modes[hold->mode]);
        if (hold->mode == LKG_HOLD_FREE)
                put(buf, "generation", "%s", "");
        else
                put(buf, "generation", "%" PRIu64, hold->generation);
        put_holder(buf, &c->state.held_by);
        put(buf, "newer", "%s", lkg_component_verdict(c) == LKG_WAIT ? "waits" : "none");
        put(buf, "try", "%s", lkg_try_phase_names[hold->try_phase]);
        put_time(buf, "until", hold->try_phase == LKG_TRY_RUNNING ? lkg_component_try_deadline(c) : 0);
        put_foreign(buf, "rollout", waiting ? waiting : "");
}

/* ---- process ---- */

/* The newest living process that has read the file; else the main process of the unit, whatever that has read. */
void lkg_status_render_process(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;
        const struct lkg_tracked *newest = NULL;

        for (size_t i = 0; c->facts && i < c->facts->n_processes; i++)
                if (c->facts->processes[i].pidfd >= 0)
                        newest = &c->facts->processes[i];
        put_foreign(buf, "unit", c->config->match.unit);
        put_number(buf, "pid", (uint64_t)(newest ? newest->pid : lkg_component_main_process(c)));
        put_number(buf, "generation", newest ? newest->generation : 0);
        put_foreign(buf, "version", c->facts ? c->facts->version : "");
}

/* ---- trial ---- */

/* What a check counts for, if that is not what it says. One that never was good says nothing about this configuration. */
static const char *judged_as(const struct lkg_trial *trial, unsigned check, enum lkg_health_state health)
{
        if (trial->state != LKG_TRIAL_RUNNING || health == LKG_HEALTH_OFF)
                return "";
        if (trial->judged[check])
                return trial->bad[check] && health == LKG_HEALTH_UNKNOWN
                               ? ", counts as bad, which it was before"
                               : "";
        return health == LKG_HEALTH_UNKNOWN ? ", not judged so far"
                                            : ", not judged: it was not good before the change";
}

void lkg_status_render_trial(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        static const struct lkg_trial none;
        const struct lkg_component *c = x->component;
        const struct lkg_trial *trial = c->dynamic ? &c->dynamic->trial : &none;
        char text[LKG_DURATION_MAX];

        put(buf, "state", "%s", lkg_trial_state_name(trial->state));
        put_time(buf, "started", trial->started_wall_ns);
        put_time(buf, "deadline", lkg_trial_wall_deadline(trial));
        put(buf, "prior_starts", "%u", trial->prior);
        put(buf, "threshold", "%u", trial->rules.threshold);
        (void)lkg_duration_format((int64_t)trial->rules.stable_for_ns, text);
        put(buf, "stable_for", "%s", text);
        put(buf, "extended", "%s", trial->extended ? "yes" : "no");
        for (unsigned i = 0; i < _LKG_CHECK_MAX; i++)
                lkg_buf_printf(buf, "health_%s=%s%s%s%s\n", lkg_check_name((enum lkg_check)i),
                               lkg_health_name(c->health.state[i]), *c->health.words[i] ? ": " : "",
                               c->health.words[i], judged_as(trial, i, c->health.state[i]));
}

/* ---- rollout ---- */

void lkg_status_render_rollout(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_rollout_status *s = x->remote ? &x->remote->slots : NULL;

        if (!s || !s->any)
                return;
        put(buf, "state", "%s",
            x->component->slots.needed ? lkg_slot_verdict_name(s->verdict)
            : s->own >= 0              ? "in trial"
                                       : "none");
        put(buf, "max_in_trial", "%u", s->max_in_trial);
        put(buf, "max_failures", "%u", s->max_failures);
        put(buf, "in_trial", "%u", s->counts.n_held);
        put(buf, "done", "%u", s->counts.n_done);
        put(buf, "failed", "%u", s->counts.n_failed);
        put_masked(buf, "failed_node", s->failed_node);
        put_masked(buf, "failed_reason", s->failed_reason);
        if (s->own < 0)
                put(buf, "slot", "%s", "");
        else
                put(buf, "slot", "%d", s->own);
        put_masked(buf, "waiting", x->component->slots.words);
}

/* ---- remote: everything that determines whether this node gets the fleet's configuration ---- */

static void put_credential(struct lkg_buf *buf, const struct lkg_remote_status *r)
{
        put_masked(buf, "server", r->server);
        lkg_buf_printf(buf, "credential=%s%s", r->credential, *r->credential_file ? " " : "");
        lkg_buf_shown(buf, r->credential_file, strlen(r->credential_file));
        lkg_buf_putc(buf, '\n');
        put_masked(buf, "user", r->user);
        put_time(buf, "credential_expires", r->expires_ns);
}

/* @name: "node" or "configmap" */
static void put_object(struct lkg_buf *buf, const char *name, const struct lkg_remote_object *object)
{
        char key[40];

        (void)snprintf(key, sizeof(key), "%s_mode", name);
        put(buf, key, "%s", object->mode);
        (void)snprintf(key, sizeof(key), "%s_last_success", name);
        put_time(buf, key, object->success_ns);
        (void)snprintf(key, sizeof(key), "%s_failing_since", name);
        put_time(buf, key, object->failing_ns);
        (void)snprintf(key, sizeof(key), "%s_error", name);
        put_masked(buf, key, object->error);
}

static void put_rollout(struct lkg_buf *buf, const struct lkg_rollout *r)
{
        put(buf, "rollout", "%s", r ? lkg_rollout_state_name(r->state) : "none");
        if (!r)
                return;
        put(buf, "rollout_percent", "%u.%03u", r->percent_milli / 1000, r->percent_milli % 1000);
        put(buf, "rollout_bucket", "%u.%03u", r->bucket_milli / 1000, r->bucket_milli % 1000);
        put(buf, "rollout_halt", "%s", r->halt ? "true" : "false");
}

/* Is the condition reported to the cluster, and which one; else why not. */
static void put_reported(struct lkg_buf *buf, const struct lkg_status_context *x)
{
        char text[LKG_REASON_MAX];

        (void)snprintf(text, sizeof(text), "no, %.500s", x->remote->not_reported);
        put_masked(buf, "reported",
                   !x->in->config->remote.condition ? "off"
                   : *x->remote->not_reported       ? text
                                              : lkg_condition_status_name(x->component->condition.status));
}

/* Empty if remote configuration is not in use. */
void lkg_status_render_remote(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_remote_status *r = x->remote;

        if (!r || !r->in_use)
                return;
        put_credential(buf, r);
        put_masked(buf, "node", r->node_name);
        put_masked(buf, "node_uid", r->node_uid);
        if (r->reference)
                put(buf, "reference", "%s %s/%s/%s", r->place, r->reference->ns, r->reference->name,
                    r->reference->key);
        else
                put(buf, "reference", "%s", r->place);
        put_object(buf, "node", &r->node);
        put_object(buf, "configmap", &r->configmap);
        put_rollout(buf, r->has_rollout ? r->rollout : NULL);
        put_time(buf, "restart_planned", r->restart_ns);
        put_reported(buf, x);
}
