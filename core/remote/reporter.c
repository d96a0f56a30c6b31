/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the requests; outbox.c decides when the condition is written and which Event, and has the bodies.
 * Requests start only in the loop (pump()), so callers may use this from any callback.
 */
#include "outbox.h"

#define PATCH_TYPE  "application/strategic-merge-patch+json"
#define CREATE_TYPE "application/json"
#define WORDS_MAX   sizeof(((struct lkg_api_answer *)NULL)->words)

/* A condition to write; status "" = there is none. */
struct condition {
        char status[16], reason[1024], message[1024];
        uint64_t transition_ns;
        bool figures, pods;
};

struct lkg_reporter {
        struct lkg_reporter_options options; /* without its texts */
        char *node_name, *host;
        sd_event_source *timer;

        struct condition conditions[2]; /* ConfigOK, StaticPodsOK */
        struct lkg_heartbeat heartbeat; /* of both */
        struct lkg_call *patch;

        char uid[254];      /* of the Node; "" = unknown */
        char last_uid[254]; /* the last that was known: whose events the outbox has */
        struct lkg_outbox outbox;
        struct lkg_backoff events_backoff;
        uint64_t events_at_ns; /* not before */
        struct lkg_call *post;

        /* The reason of a failure, by kind of request. */
        char credential_words[WORDS_MAX], condition_words[WORDS_MAX], event_words[WORDS_MAX];
        char told[WORDS_MAX];
};

/* ---- messages ---- */

const char *lkg_reporter_words(const struct lkg_reporter *reporter)
{
        if (reporter->credential_words[0])
                return reporter->credential_words;
        return reporter->condition_words[0] ? reporter->condition_words : reporter->event_words;
}

static void tell_changes(struct lkg_reporter *reporter)
{
        const char *words = lkg_reporter_words(reporter);

        if (strcmp(words, reporter->told) == 0)
                return;
        lkg_text_copy(reporter->told, sizeof(reporter->told), words);
        if (reporter->options.changed)
                reporter->options.changed(reporter->options.userdata);
}

/* Describe whose credential it is instead, as far as that is known. */
static void describe_credential(const struct lkg_reporter *reporter, char *ret, size_t size)
{
        const struct lkg_identity *identity = lkg_credential_identity(reporter->options.credential);
        const char *file = lkg_credential_file(reporter->options.credential);

        if (!identity)
                (void)snprintf(ret, size, "there is no credential");
        else if (lkg_credential_kind(reporter->options.credential) == LKG_CREDENTIAL_IN_CLUSTER)
                (void)snprintf(ret, size, "the credential is a pod's");
        else if (!identity->user || identity->token || identity->username || identity->impersonate)
                (void)snprintf(ret, size, "the credential of %.120s does not say whose it is", file);
        else if (!identity->is_node_group)
                (void)snprintf(ret, size, "the credential of %.120s is that of %.100s, who is not a node",
                               file, identity->user);
        else
                (void)snprintf(ret, size, "the credential of %.120s is that of %.100s", file,
                               identity->user);
}

static bool may_write(struct lkg_reporter *reporter)
{
        char who[280];

        reporter->credential_words[0] = '\0';
        if (!reporter->options.condition && !reporter->options.events)
                return false;
        if (lkg_credential_is_node(reporter->options.credential, reporter->node_name))
                return true;
        describe_credential(reporter, who, sizeof(who));
        (void)snprintf(reporter->credential_words, sizeof(reporter->credential_words),
                       "nothing is written to the cluster: %s; want the client certificate of "
                       "system:node:%.100s, as in the kubelet's own kubeconfig",
                       who, reporter->node_name);
        return false;
}

/* ---- the condition ---- */

static void end_condition(struct lkg_reporter *reporter, bool success, uint64_t retry_after_ns,
                          const char *words)
{
        lkg_text_copy(reporter->condition_words, sizeof(reporter->condition_words), words);
        lkg_heartbeat_end(&reporter->heartbeat, success, retry_after_ns, lkg_random(), lkg_boottime_ns());
}

static void pump(struct lkg_reporter *reporter);

static void on_condition(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_reporter *reporter = userdata;
        bool success = answer->status == LKG_API_OK;

        reporter->patch = NULL;
        end_condition(reporter, success, answer->retry_after_ns, success ? "" : answer->words);
        pump(reporter);
}

static struct lkg_call *send_body(struct lkg_reporter *reporter, const struct lkg_resource *resource,
                                  bool patch, struct lkg_buf *body, lkg_client_fn *done)
{
        const struct lkg_request request = { .verb = patch ? "patch" : "create",
                                             .resource = resource,
                                             .content_type = patch ? PATCH_TYPE : CREATE_TYPE,
                                             .body = lkg_buf_text(body),
                                             .size = body->size,
                                             .done = done,
                                             .userdata = reporter };

        return lkg_client_send(reporter->options.client, &request);
}

static struct lkg_node_condition view_of(const struct condition *own)
{
        return (struct lkg_node_condition){ own->status,        own->reason,  own->message,
                                            own->transition_ns, own->figures, own->pods };
}

static void send_condition(struct lkg_reporter *reporter)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf body = LKG_BUF_INIT;
        struct lkg_node_condition conditions[LKG_ARRAY_SIZE(reporter->conditions)];
        size_t n = 0;
        const struct lkg_resource resource = {
                .group_version = "v1",
                .plural = "nodes",
                .kind = "Node",
                .name = reporter->node_name,
                .subresource = "status",
        };

        if (!lkg_heartbeat_begin(&reporter->heartbeat, lkg_boottime_ns()))
                return;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(reporter->conditions); i++)
                if (*reporter->conditions[i].status)
                        conditions[n++] = view_of(&reporter->conditions[i]);
        lkg_condition_body(conditions, n, lkg_realtime_ns(), &body);
        reporter->patch = send_body(reporter, &resource, true, &body, on_condition);
}

/* ---- events ---- */

/*
 * A POST conflict: an earlier POST with this name has arrived after all. A request that the server does not
 * understand will fail again; all other failures may be temporary.
 */
static enum lkg_outbox_result result_of(const struct lkg_api_answer *answer, bool patch)
{
        switch (answer->status) {
        case LKG_API_OK:
                return LKG_OUTBOX_SENT;
        case LKG_API_CONFLICT:
                return patch ? LKG_OUTBOX_FAILED : LKG_OUTBOX_SENT;
        case LKG_API_NOT_FOUND:
                return patch ? LKG_OUTBOX_FORGOTTEN : LKG_OUTBOX_FAILED;
        case LKG_API_INVALID:
        case LKG_API_TOO_LARGE:
                return LKG_OUTBOX_REFUSED;
        case LKG_API_UNREACHABLE:
        case LKG_API_UNAUTHORIZED:
        case LKG_API_FORBIDDEN:
        case LKG_API_GONE:
        case LKG_API_BUSY:
        case _LKG_API_STATUS_MAX:
                break;
        }
        return LKG_OUTBOX_FAILED;
}

static void end_event(struct lkg_reporter *reporter, enum lkg_outbox_result result, uint64_t retry_after_ns,
                      const char *words)
{
        uint64_t now_ns = lkg_boottime_ns();

        lkg_outbox_end(&reporter->outbox, result);
        if (result == LKG_OUTBOX_FAILED)
                reporter->events_at_ns = now_ns + lkg_backoff_failed(&reporter->events_backoff,
                                                                     retry_after_ns, lkg_random(), now_ns);
        else
                lkg_backoff_succeeded(&reporter->events_backoff, now_ns);
        if (result == LKG_OUTBOX_SENT || result == LKG_OUTBOX_FORGOTTEN)
                words = "";
        lkg_text_copy(reporter->event_words, sizeof(reporter->event_words), words);
}

static void on_event(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_reporter *reporter = userdata;

        reporter->post = NULL;
        end_event(reporter, result_of(answer, reporter->outbox.sending->told > 0), answer->retry_after_ns,
                  answer->words);
        pump(reporter);
}

static bool event_is_due(const struct lkg_reporter *reporter)
{
        return reporter->options.events && reporter->uid[0] && !reporter->post &&
               lkg_outbox_waiting(&reporter->outbox) > 0;
}

static void send_event(struct lkg_reporter *reporter)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf body = LKG_BUF_INIT;
        const struct lkg_event_node node = { reporter->node_name, reporter->uid, reporter->host };
        struct lkg_resource resource = {
                .group_version = "v1",
                .plural = "events",
                .kind = "Event",
                .ns = "default",
        };
        const struct lkg_node_event *event = NULL;

        if (event_is_due(reporter) && reporter->events_at_ns <= lkg_boottime_ns())
                event = lkg_outbox_next(&reporter->outbox, reporter->node_name,
                                        (uint64_t)lkg_random() << 32 | lkg_random());
        if (!event)
                return;
        resource.name = event->told ? event->name : NULL;
        lkg_event_body(event, &node, &body);
        reporter->post = send_body(reporter, &resource, event->told > 0, &body, on_event);
}

/* ---- the loop ---- */

static void set_timer(struct lkg_reporter *reporter, bool allowed)
{
        uint64_t due = UINT64_MAX;

        if (allowed && reporter->options.condition)
                due = lkg_heartbeat_due(&reporter->heartbeat);
        if (allowed && event_is_due(reporter) && reporter->events_at_ns < due)
                due = reporter->events_at_ns;
        lkg_remote_arm(reporter->timer, due);
}

/* Send everything that can be sent now; the credential may have changed since the last time. */
static void pump(struct lkg_reporter *reporter)
{
        bool allowed = may_write(reporter);

        if (allowed && reporter->options.condition)
                send_condition(reporter);
        if (allowed)
                send_event(reporter);
        set_timer(reporter, allowed);
        tell_changes(reporter);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        pump(userdata);
        return 0;
}

/* ---- requests of the caller ---- */

void lkg_reporter_set_node(struct lkg_reporter *reporter, const char *uid)
{
        if (strcmp(reporter->uid, uid) == 0)
                return;
        if (uid[0] && reporter->last_uid[0] && strcmp(reporter->last_uid, uid) != 0) {
                /* Another Node with this name: it has its own events. */
                reporter->post = lkg_call_cancel(reporter->post);
                lkg_outbox_renew(&reporter->outbox);
                lkg_heartbeat_kick(&reporter->heartbeat, lkg_boottime_ns()); /* nor has it our condition */
        }
        lkg_text_copy(reporter->uid, sizeof(reporter->uid), uid);
        if (uid[0])
                lkg_text_copy(reporter->last_uid, sizeof(reporter->last_uid), uid);
        lkg_remote_arm(reporter->timer, 0);
}

void lkg_reporter_set_condition(struct lkg_reporter *reporter, const struct lkg_node_condition *condition)
{
        struct condition next = { .transition_ns = condition->transition_ns,
                                  .figures = condition->figures,
                                  .pods = condition->pods },
                         *own = &reporter->conditions[condition->pods];
        const struct lkg_node_condition before = view_of(own);
        bool can_wait = *own->status && lkg_condition_figures_differ(&before, condition);

        lkg_text_copy(next.status, sizeof(next.status), condition->status);
        lkg_text_copy(next.reason, sizeof(next.reason), condition->reason);
        lkg_text_copy(next.message, sizeof(next.message), condition->message);
        if (*own->status && next.transition_ns == own->transition_ns &&
            strcmp(next.status, own->status) == 0 && strcmp(next.reason, own->reason) == 0 &&
            strcmp(next.message, own->message) == 0)
                return;
        *own = next;
        if (can_wait)
                return;
        lkg_heartbeat_changed(&reporter->heartbeat, lkg_boottime_ns());
        lkg_remote_arm(reporter->timer, 0);
}

void lkg_reporter_event(struct lkg_reporter *reporter, bool warning, const char *reason, const char *message)
{
        if (!reporter->options.events)
                return;
        lkg_outbox_add(&reporter->outbox, warning, reason, message, lkg_boottime_ns(), lkg_realtime_ns());
        lkg_remote_arm(reporter->timer, 0);
}

/*
 * A waiting request would be sent with the credential of that moment, which must not belong to another user.
 */
static void take_back(struct lkg_reporter *reporter)
{
        if (reporter->patch)
                end_condition(reporter, false, 0, "");
        if (reporter->post)
                end_event(reporter, LKG_OUTBOX_FAILED, 0, "");
        reporter->patch = lkg_call_cancel(reporter->patch);
        reporter->post = lkg_call_cancel(reporter->post);
}

void lkg_reporter_kick(struct lkg_reporter *reporter)
{
        if (!may_write(reporter))
                take_back(reporter);
        lkg_heartbeat_kick(&reporter->heartbeat, lkg_boottime_ns());
        reporter->events_backoff = (struct lkg_backoff){ 0 };
        reporter->events_at_ns = 0;
        lkg_remote_arm(reporter->timer, 0);
}

/* ---- creating and freeing ---- */

struct lkg_reporter *lkg_reporter_free(struct lkg_reporter *reporter)
{
        if (!reporter)
                return NULL;
        lkg_call_cancel(reporter->patch);
        lkg_call_cancel(reporter->post);
        sd_event_source_disable_unref(reporter->timer);
        free(reporter->node_name);
        free(reporter->host);
        free(reporter);
        return NULL;
}

struct lkg_reporter *lkg_reporter_new(const struct lkg_reporter_options *options)
{
        struct lkg_reporter *reporter = lkg_must(calloc(1, sizeof(*reporter)));

        reporter->options = *options;
        reporter->node_name = lkg_copy(options->node_name);
        reporter->host = lkg_copy(options->host);
        reporter->timer = lkg_remote_timer(options->event, 0, on_timer, reporter);
        lkg_remote_arm(reporter->timer, 0);
        return reporter;
}
