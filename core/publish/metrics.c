/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<c>/metrics.prom: the facts of one component as Prometheus text. Base units, counters end in
 * _total, no sample timestamps (node_exporter's collector skips a file that has one), bounded labels: never
 * a value, a file name or a message. Every sample names its component, so the files of several components
 * can be collected together.
 */
#include <inttypes.h>

#include <lkg-config.h>

#include "publisher.h"
#include "status.h"

struct metric {
        const char *name, *help;
        uint64_t value;
        bool absent;
};

static void put_help(struct lkg_buf *buf, const char *name, const char *help)
{
        size_t n = strlen(name), end = strlen("_total");
        bool counter = n > end && strcmp(name + n - end, "_total") == 0;

        lkg_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, counter ? "counter" : "gauge");
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

static void put_metrics(struct lkg_buf *buf, const struct lkg_component *c, const struct metric *metrics,
                        size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (metrics[i].absent)
                        continue;
                put_help(buf, metrics[i].name, metrics[i].help);
                put_labelled(buf, metrics[i].name, c, NULL, NULL, metrics[i].value);
        }
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

        put_help(buf, "lkgfs_config_info", "Configuration in each role; the value is always 1.");
        if (!c->active)
                return;
        (void)lkg_component_good_document(c, &good_sha256);
        put_info(buf, c, "assigned", &p->assigned,
                 lkg_config_source_equal(&p->assigned, lkg_component_source(c)) ? c->active->sha256 : "");
        put_info(buf, c, "active", lkg_component_source(c), c->active->sha256);
        put_info(buf, c, "lkg", &p->good.source, good_sha256);
}

static size_t count_drift(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_component_drift(c, &buf);
        return buf.data ? lkg_span_count(lkg_span(buf.data, buf.size), '\n') : 0;
}

static void put_counts(struct lkg_buf *buf, const struct lkg_component *c)
{
        static const struct lkg_trial none;
        const struct lkg_trial *trial = c->dynamic ? &c->dynamic->trial : &none;
        bool running = trial->state == LKG_TRIAL_RUNNING;
        uint64_t deadline = lkg_trial_wall_deadline(trial);
        const struct metric metrics[] = {
                { "lkgfs_config_error", "1 while the newest configuration is refused.",
                  *lkg_component_error(c, NULL) != '\0' },
                { "lkgfs_condition_ok", "1 while the condition ConfigOK is True.",
                  c->condition.status == LKG_CONDITION_TRUE },
                { "lkgfs_generation", "Number of the generation that is served, 0 for none.",
                  c->active ? c->active->number : 0 },
                { "lkgfs_generation_timestamp_seconds", "When that generation was published.",
                  c->active ? c->active->time_ns / LKG_NSEC_PER_SEC : 0 },
                { "lkgfs_held", "1 while one generation is held (hold, rollback, expired try).",
                  c->state.hold.mode != LKG_HOLD_FREE },
                { "lkgfs_layers", "Layers of the newest candidate.",
                  c->candidate ? c->candidate->n_layers : 0 },
                { "lkgfs_drift_fields",
                  "Fields in which the running process differs from the served document.", count_drift(c) },
                { "lkgfs_generations_total", "Generations published since the engine started.",
                  c->counts.published },
                { "lkgfs_refusals_total", "Candidates refused since the engine started.",
                  c->counts.refused },
                { "lkgfs_component_starts_total", "Starts of the component seen since the engine started.",
                  c->counts.starts },
                { "lkgfs_trial_running", "1 while a configuration is on trial.",
                  running || (c->pods && lkg_pods_on_trial(c) > 0) },
                { "lkgfs_trial_deadline_timestamp_seconds",
                  "When the trial passes; absent while its clock stands still.", deadline / LKG_NSEC_PER_SEC,
                  .absent = deadline == 0 },
                { "lkgfs_trial_extended",
                  "1 while a trial goes on beyond its duration, because the component is not healthy.",
                  running && trial->extended },
                { "lkgfs_bad_configs", "Entries of the bad list.",
                  c->dynamic ? c->dynamic->bad.n_items : 0 },
        };

        put_metrics(buf, c, metrics, LKG_ARRAY_SIZE(metrics));
}

/* Those with a sample for each of several words. */
static void put_words(struct lkg_buf *buf, const struct lkg_component *c)
{
        static const char *const reasons[] = {
                [LKG_ROLLBACK_CRASH_LOOP] = "crash_loop", [LKG_ROLLBACK_UNHEALTHY] = "not_healthy",
                [LKG_ROLLBACK_OPERATOR] = "operator",     [LKG_ROLLBACK_INVALID] = "invalid",
                [LKG_ROLLBACK_CONDEMNED] = "condemned",
        };

        put_help(buf, "lkgfs_rollbacks_total",
                 "Rollbacks to the last known good since the engine started, by reason.");
        for (size_t i = 0; i < _LKG_ROLLBACK_MAX; i++)
                put_labelled(buf, "lkgfs_rollbacks_total", c, "reason", reasons[i], c->counts.rollbacks[i]);
        put_help(buf, "lkgfs_healthy",
                 "1 if a check of the component's health is good, 0 if it is bad; absent if it does not "
                 "answer.");
        for (size_t i = 0; i < _LKG_CHECK_MAX; i++)
                if (c->health.state[i] == LKG_HEALTH_GOOD || c->health.state[i] == LKG_HEALTH_BAD)
                        put_labelled(buf, "lkgfs_healthy", c, "check", lkg_check_names[i],
                                     c->health.state[i] == LKG_HEALTH_GOOD);
        put_help(buf, "lkgfs_findings", "Findings, by severity.");
        for (int i = 0; i < _LKG_SEVERITY_MAX; i++)
                put_labelled(buf, "lkgfs_findings", c, "severity", lkg_severity_name((enum lkg_severity)i),
                             c->findings.n[i]);
}

/* ---- API server ---- */

static void put_objects(struct lkg_buf *buf, const struct lkg_component *c,
                        const struct lkg_remote_status *remote)
{
        const struct {
                const char *name;
                const struct lkg_remote_object *is;
        } objects[] = { { "node", &remote->node }, { "configmap", &remote->configmap } };
        static const struct metric metrics[] = {
                { "lkgfs_remote_up", "1 while the API server answers for this object." },
                { "lkgfs_remote_watching", "1 while this object is watched, 0 while it is polled or down." },
                { "lkgfs_remote_last_success_timestamp_seconds",
                  "When the API server last answered for this object, 0 for never." },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(metrics); i++) {
                put_help(buf, metrics[i].name, metrics[i].help);
                for (size_t k = 0; k < LKG_ARRAY_SIZE(objects); k++) {
                        const struct lkg_remote_object *o = objects[k].is;
                        const uint64_t values[] = { o->success_ns && !o->failing, o->watching,
                                                    o->success_ns / LKG_NSEC_PER_SEC };

                        /* An object that may be missing is no outage that needs an alert. */
                        if (o->followed && !o->may_be_missing)
                                put_labelled(buf, metrics[i].name, c, "object", objects[k].name, values[i]);
                }
        }
}

static void put_client(struct lkg_buf *buf, const struct lkg_component *c,
                       const struct lkg_remote_status *remote)
{
        const struct lkg_rollout_status *slots = &remote->slots;
        const struct metric metrics[] = {
                { "lkgfs_remote_received_bytes_total",
                  "Bytes received from the API server since the engine started.", remote->received_bytes },
                { "lkgfs_remote_sent_bytes_total", "Bytes sent to the API server since the engine started.",
                  remote->sent_bytes },
                { "lkgfs_remote_connections_total",
                  "Connections to the API server since the engine started.", remote->n_connections },
                { "lkgfs_credential_expiration_timestamp_seconds",
                  "When the certificate or token for the API server expires.",
                  remote->expires_ns / LKG_NSEC_PER_SEC, .absent = remote->expires_ns == 0 },
                { "lkgfs_rollout_waiting",
                  "1 while a rollout holds back the configuration that the reference names.",
                  lkg_component_waiting(c) != NULL },
                { "lkgfs_rollout_halted",
                  "1 while the rollout has halted itself, because too many nodes have failed.",
                  slots->counts.n_failed >= slots->max_failures, .absent = !slots->any },
        };

        put_help(buf, "lkgfs_remote_requests_total",
                 "Answers of the API server since the engine started, by what they mean.");
        for (size_t i = 0; i < remote->n_counts; i++)
                put_labelled(buf, "lkgfs_remote_requests_total", c, "code", remote->counts[i].code,
                             remote->counts[i].n);
        put_metrics(buf, c, metrics, LKG_ARRAY_SIZE(metrics));
        if (!slots->any)
                return;
        put_help(buf, "lkgfs_rollout_nodes", "Nodes of the rollout, by state: in_trial, done, failed.");
        put_labelled(buf, "lkgfs_rollout_nodes", c, "state", "in_trial", slots->counts.n_held);
        put_labelled(buf, "lkgfs_rollout_nodes", c, "state", "done", slots->counts.n_done);
        put_labelled(buf, "lkgfs_rollout_nodes", c, "state", "failed", slots->counts.n_failed);
}

static void put_ratio(struct lkg_buf *buf, const struct lkg_component *c, const char *name, const char *help,
                      unsigned milli)
{
        put_help(buf, name, help);
        put_sample(buf, name, c, NULL, NULL);
        lkg_buf_printf(buf, "%u.%05u\n", milli / 100000, milli % 100000);
}

static void put_remote(struct lkg_buf *buf, const struct lkg_component *c,
                       const struct lkg_remote_status *remote)
{
        if (!remote || !remote->has_client)
                return;
        put_objects(buf, c, remote);
        put_client(buf, c, remote);
        if (!remote->has_rollout)
                return;
        put_ratio(buf, c, "lkgfs_rollout_bucket_ratio",
                  "Bucket of this node in a rollout: it switches if the allowed ratio is larger.",
                  remote->rollout->bucket_milli);
        put_ratio(buf, c, "lkgfs_rollout_allowed_ratio",
                  "Share of the nodes that may switch, by the annotations of the ConfigMap.",
                  remote->rollout->percent_milli);
}

static void put_pods(struct lkg_buf *buf, const struct lkg_component *c)
{
        if (!c->pods)
                return;
        put_help(buf, "lkgfs_static_pods", "Static pods that are served, by the state of their trial.");
        for (unsigned i = 0; i < _LKG_POD_STATE_MAX; i++)
                put_labelled(buf, "lkgfs_static_pods", c, "state", lkg_pod_state_names[i],
                             lkg_pods_in(c, i));
}

void lkg_status_render_metrics(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;
        const struct metric engine[] = {
                { "lkgfs_engine_user_missing",
                  "1 while the engine runs as root because engineUser does not exist.",
                  x->in->config->engine_user_missing },
                { "lkgfs_publication", "Number of the publication this file belongs to.",
                  x->publisher->number },
        };

        put_help(buf, "lkgfs_build_info", "Version of lkgfs; the value is always 1.");
        put_labelled(buf, "lkgfs_build_info", c, "version", LKG_VERSION, 1);
        put_metrics(buf, c, engine, LKG_ARRAY_SIZE(engine));
        put_config_info(buf, c);
        put_counts(buf, c);
        put_words(buf, c);
        put_pods(buf, c);
        put_remote(buf, c, x->remote);
}
