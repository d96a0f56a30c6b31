/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<c>/remote: everything that determines whether this node gets the fleet's configuration, for
 * finding out why it does not. One key=value per line, absolute times, never a secret. Empty if remote
 * configuration is not in use.
 */
#include "status.h"

/* Foreign text (a server's message, a certificate's subject) stays on one line. */
static void put_pair(struct lkg_buf *buf, const char *key, const char *value)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf clean = LKG_BUF_INIT;

        (void)lkg_mask_text(value, strlen(value), &clean);
        if (lkg_buf_failed(&clean))
                buf->failed = true;
        if (clean.data)
                lkg_blank_hidden(clean.data, clean.size, ' ');
        lkg_buf_printf(buf, "%s=%s\n", key, clean.data ? clean.data : "");
}

static void put_time(struct lkg_buf *buf, const char *key, uint64_t wall_ns)
{
        char text[21] = "";

        if (wall_ns)
                lkg_format_rfc3339(wall_ns, text);
        lkg_buf_printf(buf, "%s=%s\n", key, text);
}

static void put_credential(struct lkg_buf *buf, const struct lkg_remote_status *r)
{
        put_pair(buf, "server", r->server);
        lkg_buf_printf(buf, "credential=%s", r->credential);
        if (*r->credential_file)
                lkg_buf_putc(buf, ' ');
        lkg_buf_shown(buf, r->credential_file, strlen(r->credential_file));
        lkg_buf_putc(buf, '\n');
        put_pair(buf, "user", r->user);
        put_time(buf, "credential_expires", r->expires_ns);
}

/* status/<c>/rollout */
void lkg_status_render_rollout(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_rollout_status *s = x->remote ? &x->remote->slots : NULL;

        if (!s || !s->any)
                return;
        put_pair(buf, "state",
                 x->component->slot_needed ? lkg_slot_verdict_name(s->verdict)
                 : s->own >= 0             ? "in trial"
                                           : "none");
        lkg_buf_printf(buf, "max_in_trial=%u\nmax_failures=%u\n", s->max_in_trial, s->max_failures);
        lkg_buf_printf(buf, "in_trial=%u\ndone=%u\nfailed=%u\n", s->counts.n_held, s->counts.n_done,
                       s->counts.n_failed);
        put_pair(buf, "failed_node", s->failed_node);
        put_pair(buf, "failed_reason", s->failed_reason);
        lkg_buf_printf(buf, s->own < 0 ? "slot=\n" : "slot=%d\n", s->own);
        put_pair(buf, "waiting", x->component->slot_words);
}

static void put_reference(struct lkg_buf *buf, const struct lkg_remote_status *r)
{
        lkg_buf_printf(buf, "reference=%s", r->place);
        if (r->reference)
                lkg_buf_printf(buf, " %s/%s/%s", r->reference->ns, r->reference->name, r->reference->key);
        lkg_buf_putc(buf, '\n');
}

/* @name: "node" or "configmap" */
static void put_object(struct lkg_buf *buf, const char *name, const struct lkg_remote_object *object)
{
        char key[40];

        (void)snprintf(key, sizeof(key), "%s_mode", name);
        lkg_buf_printf(buf, "%s=%s\n", key, object->mode);
        (void)snprintf(key, sizeof(key), "%s_last_success", name);
        put_time(buf, key, object->success_ns);
        (void)snprintf(key, sizeof(key), "%s_failing_since", name);
        put_time(buf, key, object->failing_ns);
        (void)snprintf(key, sizeof(key), "%s_error", name);
        put_pair(buf, key, object->error);
}

static void put_rollout(struct lkg_buf *buf, const struct lkg_remote_status *remote)
{
        const struct lkg_rollout *r = remote->rollout;

        if (!remote->has_rollout) {
                lkg_buf_puts(buf, "rollout=none\n");
                return;
        }
        lkg_buf_printf(buf, "rollout=%s\nrollout_percent=%u.%03u\nrollout_bucket=%u.%03u\nrollout_halt=%s\n",
                       lkg_rollout_state_name(r->state), r->percent_milli / 1000, r->percent_milli % 1000,
                       r->bucket_milli / 1000, r->bucket_milli % 1000, r->halt ? "true" : "false");
}

/* Is the condition reported to the cluster, and which one; else why not. */
static void put_reported(struct lkg_buf *buf, const struct lkg_status_context *x)
{
        char text[LKG_REASON_MAX];

        if (!x->config->remote.condition)
                (void)snprintf(text, sizeof(text), "off");
        else if (*x->remote->not_reported)
                (void)snprintf(text, sizeof(text), "no, %.500s", x->remote->not_reported);
        else
                (void)snprintf(text, sizeof(text), "%s",
                               lkg_condition_status_name(x->component->condition.status));
        put_pair(buf, "reported", text);
}

void lkg_status_render_remote(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_remote_status *remote = x->remote;

        if (!remote || !remote->in_use)
                return;
        put_credential(buf, remote);
        put_pair(buf, "node", remote->node_name);
        put_pair(buf, "node_uid", remote->node_uid);
        put_reference(buf, remote);
        put_object(buf, "node", &remote->node);
        put_object(buf, "configmap", &remote->configmap);
        put_rollout(buf, remote);
        put_time(buf, "restart_planned", remote->restart_ns);
        put_reported(buf, x);
}
