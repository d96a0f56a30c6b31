/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<c>/remote: everything that decides whether this node hears of the fleet's configuration, for somebody who has to find out
 * why it does not. One key=value a line, absolute times, never a secret. Empty while nothing of it is in use.
 */
#include <fcntl.h>

#include "engine-internal.h"
#include "status.h"

#define PLAN_NAME      "restart-plan" /* facts/<c>: the supervisor's, see fs/supervisor/consumer-plan.c */
#define PLAN_BYTES_MAX (64u << 10)

/* What others wrote (a server's words, a certificate's subject) stays on its line. */
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

static void put_credential(struct lkg_buf *buf, const struct lkg_api *api)
{
        const struct lkg_identity *identity = lkg_credential_identity(api->credential);
        const char *file = lkg_credential_file(api->credential);
        enum lkg_credential_kind kind = lkg_credential_kind(api->credential);

        put_pair(buf, "server", identity && identity->server ? identity->server : "");
        lkg_buf_printf(buf, "credential=%s", lkg_credential_kind_name(kind));
        if (*file)
                lkg_buf_putc(buf, ' ');
        lkg_buf_shown(buf, file, strlen(file));
        lkg_buf_putc(buf, '\n');
        put_pair(buf, "user", identity && identity->user ? identity->user : "");
        put_time(buf, "credential_expires", identity ? identity->expires_ns : 0);
}

static void put_reference(struct lkg_buf *buf, const struct lkg_api *api)
{
        const struct lkg_reference *r = &api->reference;

        lkg_buf_printf(buf, "reference=%s", lkg_place_name(api->engine->place));
        if (api->has_reference)
                lkg_buf_printf(buf, " %s/%s/%s", r->ns, r->name, r->key);
        lkg_buf_putc(buf, '\n');
}

/* @name: "node" or "configmap" */
static void put_followed(struct lkg_buf *buf, const char *name, struct lkg_api *api,
                         struct lkg_followed *followed)
{
        const struct lkg_informer *informer = followed->informer;
        char key[40], trouble[LKG_REASON_MAX] = "";
        const char *words;

        (void)snprintf(key, sizeof(key), "%s_mode", name);
        lkg_buf_printf(buf, "%s=%s\n", key,
                       informer ? lkg_informer_mode_name(lkg_informer_mode(informer)) : "off");
        (void)snprintf(key, sizeof(key), "%s_last_success", name);
        put_time(buf, key, informer ? lkg_informer_success_ns(informer) : 0);
        (void)snprintf(key, sizeof(key), "%s_failing_since", name);
        put_time(buf, key, followed->failing_wall_ns);
        /* A failure shows at once; what it does to the reference only after a while. */
        words = informer ? lkg_informer_words(informer) : "";
        if (informer && !*words &&
            lkg_api_trouble(api, followed, lkg_boottime_ns(), trouble) > LKG_TROUBLE_NOT_YET)
                words = trouble;
        (void)snprintf(key, sizeof(key), "%s_error", name);
        put_pair(buf, key, words);
}

static void put_rollout(struct lkg_buf *buf, const struct lkg_component *c)
{
        const struct lkg_api *api = c->api;
        const struct lkg_rollout *r = &api->rollout;

        if (!api->has_rollout) {
                lkg_buf_puts(buf, "rollout=none\n");
                return;
        }
        lkg_buf_printf(buf, "rollout=%s\nrollout_percent=%u.%03u\nrollout_bucket=%u.%03u\nrollout_halt=%s\n",
                       lkg_rollout_state_name(r->state), r->percent_milli / 1000, r->percent_milli % 1000,
                       r->bucket_milli / 1000, r->bucket_milli % 1000, r->halt ? "true" : "false");
}

/* A remote change restarts each node at a moment of its own (remote.restartJitter): when this one is due. */
static void put_restart(struct lkg_buf *buf, const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_closep)
        int fd = c->facts ? openat(c->facts->dirfd, PLAN_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -EBADF;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        uint64_t now = lkg_boottime_ns(), at = 0;
        const char *found;
        size_t size;

        if (fd >= 0 && lkg_read_file(fd, PLAN_BYTES_MAX, &text, &size, NULL) >= 0) {
                found = strstr(text, "\nnot_before_ns=");
                at = found ? strtoull(found + strlen("\nnot_before_ns="), NULL, 10) : 0;
        }
        put_time(buf, "restart_planned", at ? lkg_realtime_ns() + (at > now ? at - now : 0) : 0);
}

/* Whether the cluster hears of the condition, and which one it was given; else why not. */
static void put_reported(struct lkg_buf *buf, const struct lkg_status_context *x)
{
        const struct lkg_api *api = x->component->api;
        const char *words =
                api->reporter ? lkg_reporter_words(api->reporter) : "no credential, or no name of a Node";
        char text[LKG_REASON_MAX];

        if (!x->config->remote.condition)
                (void)snprintf(text, sizeof(text), "off");
        else if (*words)
                (void)snprintf(text, sizeof(text), "no, %.500s", words);
        else
                (void)snprintf(text, sizeof(text), "%s",
                               lkg_condition_status_name(x->component->condition.status));
        put_pair(buf, "reported", text);
}

void lkg_status_render_remote(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        struct lkg_api *api = x->component->api;

        if (!api || (!api->client && !lkg_api_in_use(api->engine, LKG_PLACE_STATIC)))
                return;
        put_credential(buf, api);
        put_pair(buf, "node", api->node_name);
        put_pair(buf, "node_uid", api->node_says.uid);
        put_reference(buf, api);
        put_followed(buf, "node", api, &api->node);
        put_followed(buf, "configmap", api, &api->object);
        put_rollout(buf, x->component);
        put_restart(buf, x->component);
        put_reported(buf, x);
}
