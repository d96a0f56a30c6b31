/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<c>/metrics.prom: the facts of one component as Prometheus text. Base units, counters end in
 * _total, no sample timestamps (node_exporter's collector skips a file that has one), bounded labels: never
 * a value, a file name or a message. Every sample names its component, so the files of several components
 * can be collected together.
 */
#include <inttypes.h>

#include <lkg-config.h>

#include "status.h"

static void put_metric(struct lkg_buf *buf, const char *name, const char *type, const char *help)
{
        lkg_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(struct lkg_buf *buf, const char *text)
{
        for (const char *p = text; *p; p++) {
                if (*p == '\\' || *p == '"')
                        lkg_buf_putc(buf, '\\');
                if (*p == '\n')
                        lkg_buf_puts(buf, "\\n");
                else
                        lkg_buf_putc(buf, *p);
        }
}

/* `name{component="...",label="value"} `; @label NULL = none. */
static void put_sample(struct lkg_buf *buf, const char *name, const struct lkg_component *c,
                       const char *label, const char *value)
{
        lkg_buf_printf(buf, "%s{component=\"", name);
        put_label(buf, c->config->name);
        lkg_buf_putc(buf, '"');
        if (label) {
                lkg_buf_printf(buf, ",%s=\"", label);
                put_label(buf, value);
                lkg_buf_putc(buf, '"');
        }
        lkg_buf_puts(buf, "} ");
}

static void put_labelled(struct lkg_buf *buf, const char *name, const struct lkg_component *c,
                         const char *label, const char *value, uint64_t number)
{
        put_sample(buf, name, c, label, value);
        lkg_buf_printf(buf, "%" PRIu64 "\n", number);
}

static void put_number(struct lkg_buf *buf, const char *name, const char *type, const char *help,
                       const struct lkg_component *c, uint64_t value)
{
        put_metric(buf, name, type, help);
        put_labelled(buf, name, c, NULL, NULL, value);
}

/* ---- configuration ---- */

static void put_info(struct lkg_buf *buf, const struct lkg_component *c, const char *role,
                     const struct lkg_config_source *source, const char *sha256)
{
        char id[LKG_SOURCE_ID_MAX + 1];

        if (lkg_config_source_is_local(source))
                (void)snprintf(id, sizeof(id), "local%s%.12s", *sha256 ? "@" : "", sha256);
        else
                lkg_config_source_id(source, id);
        lkg_buf_puts(buf, "lkgfs_config_info{component=\"");
        put_label(buf, c->config->name);
        lkg_buf_printf(buf, "\",role=\"%s\",source_id=\"%s\"} 1\n", role, id);
}

static void put_config_info(struct lkg_buf *buf, const struct lkg_component *c)
{
        const struct lkg_pointers *p = lkg_component_pointers(c);
        const char *good_sha256;

        put_metric(buf, "lkgfs_config_info", "gauge", "Configuration in each role; the value is always 1.");
        if (!c->active)
                return;
        (void)lkg_component_good_document(c, &good_sha256);
        put_info(buf, c, "assigned", &p->assigned,
                 lkg_config_source_equal(&p->assigned, lkg_component_source(c)) ? c->active->sha256 : "");
        put_info(buf, c, "active", lkg_component_source(c), c->active->sha256);
        put_info(buf, c, "lkg", &p->good.source, good_sha256);
}

static void put_findings(struct lkg_buf *buf, const struct lkg_component *c)
{
        put_metric(buf, "lkgfs_findings", "gauge", "Findings, by severity.");
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++)
                put_labelled(buf, "lkgfs_findings", c, "severity", lkg_severity_name((enum lkg_severity)s),
                             c->n_findings[s]);
}

static size_t count_drift(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t n = 0;

        lkg_component_drift(c, &buf);
        for (size_t i = 0; i < buf.size; i++)
                n += buf.data[i] == '\n';
        return n;
}

static void put_served(struct lkg_buf *buf, const struct lkg_component *c)
{
        put_config_info(buf, c);
        put_number(buf, "lkgfs_config_error", "gauge", "1 while the newest configuration is refused.", c,
                   *lkg_component_error(c, NULL) != '\0');
        put_number(buf, "lkgfs_condition_ok", "gauge", "1 while the condition ConfigOK is True.", c,
                   c->condition.status == LKG_CONDITION_TRUE);
        put_number(buf, "lkgfs_generation", "gauge", "Number of the generation that is served, 0 for none.",
                   c, c->active ? c->active->number : 0);
        put_number(buf, "lkgfs_generation_timestamp_seconds", "gauge", "When that generation was published.",
                   c, c->active ? c->active->time_ns / LKG_NSEC_PER_SEC : 0);
        put_number(buf, "lkgfs_held", "gauge",
                   "1 while one generation is held (hold, rollback, expired try).", c,
                   c->state.hold.mode != LKG_HOLD_FREE);
        put_number(buf, "lkgfs_layers", "gauge", "Layers of the newest candidate.", c,
                   c->candidate ? c->candidate->n_layers : 0);
        put_number(buf, "lkgfs_drift_fields", "gauge",
                   "Fields in which the running process differs from the served document.", c,
                   count_drift(c));
        put_number(buf, "lkgfs_generations_total", "counter",
                   "Generations published since the engine started.", c, c->n_published);
        put_number(buf, "lkgfs_refusals_total", "counter", "Candidates refused since the engine started.", c,
                   c->n_refused);
}

/* ---- trial ---- */

static const char *const rollback_words[] = {
        [LKG_ROLLBACK_CRASH_LOOP] = "crash_loop", [LKG_ROLLBACK_UNHEALTHY] = "not_healthy",
        [LKG_ROLLBACK_OPERATOR] = "operator",     [LKG_ROLLBACK_INVALID] = "invalid",
        [LKG_ROLLBACK_CONDEMNED] = "condemned",
};

static void put_trial(struct lkg_buf *buf, const struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        uint64_t deadline = d ? lkg_trial_wall_deadline(&d->trial) : 0;

        put_metric(buf, "lkgfs_rollbacks_total", "counter",
                   "Rollbacks to the last known good since the engine started, by reason.");
        for (size_t i = 0; i < _LKG_ROLLBACK_MAX; i++)
                put_labelled(buf, "lkgfs_rollbacks_total", c, "reason", rollback_words[i],
                             c->n_rollbacks[i]);
        put_number(buf, "lkgfs_component_starts_total", "counter",
                   "Starts of the component seen since the engine started.", c, c->n_starts);
        put_number(buf, "lkgfs_trial_running", "gauge", "1 while a configuration is on trial.", c,
                   d && d->trial.state == LKG_TRIAL_RUNNING);
        if (deadline)
                put_number(buf, "lkgfs_trial_deadline_timestamp_seconds", "gauge",
                           "When the trial passes; absent while its clock stands still.", c,
                           deadline / LKG_NSEC_PER_SEC);
        put_number(buf, "lkgfs_trial_extended", "gauge",
                   "1 while a trial goes on beyond its duration, because the component is not healthy.", c,
                   d && d->trial.state == LKG_TRIAL_RUNNING && d->trial.extended);
        put_metric(buf, "lkgfs_healthy", "gauge",
                   "1 if a check of the component's health is good, 0 if it is bad; absent if it does not "
                   "answer.");
        for (size_t i = 0; i < _LKG_CHECK_MAX; i++)
                if (c->health[i] == LKG_HEALTH_GOOD || c->health[i] == LKG_HEALTH_BAD)
                        put_labelled(buf, "lkgfs_healthy", c, "check", lkg_check_name((enum lkg_check)i),
                                     c->health[i] == LKG_HEALTH_GOOD);
        put_number(buf, "lkgfs_bad_configs", "gauge", "Entries of the bad list.", c, d ? d->bad.n_items : 0);
}

/* ---- API server ---- */

static uint64_t is_up(const struct lkg_remote_object *object)
{
        return object->success_ns && !object->failing;
}

static uint64_t is_watching(const struct lkg_remote_object *object)
{
        return object->watching;
}

static uint64_t last_success(const struct lkg_remote_object *object)
{
        return object->success_ns / LKG_NSEC_PER_SEC;
}

/* An object that may be missing is no outage that needs an alert. */
static void put_object(struct lkg_buf *buf, const struct lkg_component *c, const char *metric,
                       const char *name, const struct lkg_remote_object *object,
                       uint64_t (*value)(const struct lkg_remote_object *object))
{
        if (object->followed && !object->may_be_missing)
                put_labelled(buf, metric, c, "object", name, value(object));
}

static void put_objects(struct lkg_buf *buf, const struct lkg_component *c,
                        const struct lkg_remote_status *remote)
{
        static const struct {
                const char *name, *help;
                uint64_t (*value)(const struct lkg_remote_object *object);
        } rows[] = {
                { "lkgfs_remote_up", "1 while the API server answers for this object.", is_up },
                { "lkgfs_remote_watching", "1 while this object is watched, 0 while it is polled or down.",
                  is_watching },
                { "lkgfs_remote_last_success_timestamp_seconds",
                  "When the API server last answered for this object, 0 for never.", last_success },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                put_metric(buf, rows[i].name, "gauge", rows[i].help);
                put_object(buf, c, rows[i].name, "node", &remote->node, rows[i].value);
                put_object(buf, c, rows[i].name, "configmap", &remote->configmap, rows[i].value);
        }
}

static void put_client(struct lkg_buf *buf, const struct lkg_component *c,
                       const struct lkg_remote_status *remote)
{
        put_metric(buf, "lkgfs_remote_requests_total", "counter",
                   "Answers of the API server since the engine started, by what they mean.");
        for (size_t i = 0; i < remote->n_counts; i++)
                put_labelled(buf, "lkgfs_remote_requests_total", c, "code", remote->counts[i].code,
                             remote->counts[i].n);
        put_number(buf, "lkgfs_remote_received_bytes_total", "counter",
                   "Bytes received from the API server since the engine started.", c,
                   remote->received_bytes);
        put_number(buf, "lkgfs_remote_sent_bytes_total", "counter",
                   "Bytes sent to the API server since the engine started.", c, remote->sent_bytes);
        put_number(buf, "lkgfs_remote_connections_total", "counter",
                   "Connections to the API server since the engine started.", c, remote->n_connections);
}

static void put_rollout(struct lkg_buf *buf, const struct lkg_component *c,
                        const struct lkg_remote_status *remote)
{
        const struct lkg_rollout *rollout = remote->rollout;

        put_number(buf, "lkgfs_rollout_waiting", "gauge",
                   "1 while a rollout holds back the configuration that the reference names.", c,
                   lkg_component_waiting(c) != NULL);
        if (remote->slots.any) {
                const struct lkg_slot_counts *counts = &remote->slots.counts;

                put_metric(buf, "lkgfs_rollout_nodes", "gauge",
                           "Nodes of the rollout, by state: in_trial, done, failed.");
                put_labelled(buf, "lkgfs_rollout_nodes", c, "state", "in_trial", counts->n_held);
                put_labelled(buf, "lkgfs_rollout_nodes", c, "state", "done", counts->n_done);
                put_labelled(buf, "lkgfs_rollout_nodes", c, "state", "failed", counts->n_failed);
                put_number(buf, "lkgfs_rollout_halted", "gauge",
                           "1 while the rollout has halted itself, because too many nodes have failed.", c,
                           counts->n_failed >= remote->slots.max_failures);
        }
        if (!remote->has_rollout)
                return;
        put_metric(buf, "lkgfs_rollout_bucket_ratio", "gauge",
                   "Bucket of this node in a rollout: it switches if the allowed ratio is larger.");
        put_sample(buf, "lkgfs_rollout_bucket_ratio", c, NULL, NULL);
        lkg_buf_printf(buf, "0.%05u\n", rollout->bucket_milli % 100000);
        put_metric(buf, "lkgfs_rollout_allowed_ratio", "gauge",
                   "Share of the nodes that may switch, by the annotations of the ConfigMap.");
        put_sample(buf, "lkgfs_rollout_allowed_ratio", c, NULL, NULL);
        lkg_buf_printf(buf, "%u.%05u\n", rollout->percent_milli / 100000, rollout->percent_milli % 100000);
}

static void put_remote(struct lkg_buf *buf, const struct lkg_component *c,
                       const struct lkg_remote_status *remote)
{
        if (!remote || !remote->has_client)
                return;
        put_objects(buf, c, remote);
        put_client(buf, c, remote);
        if (remote->expires_ns)
                put_number(buf, "lkgfs_credential_expiration_timestamp_seconds", "gauge",
                           "When the certificate or token for the API server expires.", c,
                           remote->expires_ns / LKG_NSEC_PER_SEC);
        put_rollout(buf, c, remote);
}

void lkg_status_render_metrics(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;

        put_metric(buf, "lkgfs_build_info", "gauge", "Version of lkgfs; the value is always 1.");
        put_labelled(buf, "lkgfs_build_info", c, "version", LKG_VERSION, 1);
        put_number(buf, "lkgfs_engine_user_missing", "gauge",
                   "1 while the engine runs as root because engineUser does not exist.", c,
                   x->config->engine_user_missing);
        put_served(buf, c);
        put_trial(buf, c);
        put_remote(buf, c, x->remote);
        put_findings(buf, x->component);
        put_number(buf, "lkgfs_publication", "gauge", "Number of the publication this file belongs to.", c,
                   x->publication);
}
