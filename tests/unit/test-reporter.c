/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the cluster and with which credential; the test simulates client and credential. */

#include <lkg/text.h>

#include "unit.h"
#include "core/remote/outbox.h"

/* ---- the client ---- */

struct lkg_call {
        bool event;
        lkg_client_fn *done;
        void *userdata;
        char line[512]; /* "patch nodes/n1/status application/...", "create default/events ..." */
        char body[2048];
};

static struct lkg_call *condition_call, *event_call;
static unsigned n_cancelled;

struct lkg_call *lkg_client_send(struct lkg_client *client, const struct lkg_request *request)
{
        const struct lkg_resource *resource = request->resource;
        bool event = strcmp(resource->plural, "events") == 0;
        struct lkg_call **place = event ? &event_call : &condition_call;

        (void)client;
        assert_null(*place);
        assert_string_equal(resource->group_version, "v1");
        assert_string_equal(resource->kind, event ? "Event" : "Node");
        *place = test_calloc(1, sizeof(**place));
        (*place)->event = event;
        (*place)->done = request->done;
        (*place)->userdata = request->userdata;
        assert_true(request->size < sizeof((*place)->body));
        memcpy((*place)->body, request->body, request->size);
        (void)snprintf((*place)->line, sizeof((*place)->line), "%s %s%s%s/%s/%s %s", request->verb,
                       resource->ns ? resource->ns : "", resource->ns ? "/" : "", resource->plural,
                       resource->name ? resource->name : "",
                       resource->subresource ? resource->subresource : "", request->content_type);
        return *place;
}

struct lkg_call *lkg_call_cancel(struct lkg_call *call)
{
        if (!call)
                return NULL;
        n_cancelled++;
        if (call->event)
                event_call = NULL;
        else
                condition_call = NULL;
        test_free(call);
        return NULL;
}

static void answer(struct lkg_call **call, enum lkg_api_status status, const char *words)
{
        /* So late that no timer is involved. */
        struct lkg_api_answer a = { .status = status, .retry_after_ns = 600 * LKG_NSEC_PER_SEC };
        struct lkg_call *ended = LKG_STEAL(*call);

        assert_non_null(ended);
        (void)snprintf(a.words, sizeof(a.words), "%s", words);
        ended->done(&a, ended->userdata);
        test_free(ended);
}

/* ---- the credential ---- */

static bool is_node;
static enum lkg_credential_kind kind;
static struct lkg_identity *identity;

bool lkg_credential_is_node(const struct lkg_credential *credential, const char *name)
{
        (void)credential;
        assert_string_equal(name, "n1");
        return is_node;
}

struct lkg_identity *lkg_credential_identity(const struct lkg_credential *credential)
{
        (void)credential;
        return identity;
}

enum lkg_credential_kind lkg_credential_kind(const struct lkg_credential *credential)
{
        (void)credential;
        return kind;
}

const char *lkg_credential_file(const struct lkg_credential *credential)
{
        (void)credential;
        return "/etc/lkgfs/kubeconfig";
}

/* ---- the user ---- */

struct user {
        sd_event *event;
        struct lkg_reporter *reporter;
        unsigned n_changed;
};

static void on_changed(void *userdata)
{
        ((struct user *)userdata)->n_changed++;
}

static void turn(struct user *user)
{
        while (sd_event_run(user->event, 0) > 0)
                ;
}

static void begin_with(struct user *user, bool condition, bool events)
{
        struct lkg_reporter_options options = {
                .node_name = "n1",
                .host = "host-1",
                .condition = condition,
                .events = events,
                .changed = on_changed,
                .userdata = user,
        };

        *user = (struct user){ 0 };
        is_node = true;
        kind = LKG_CREDENTIAL_NODE;
        identity = NULL;
        n_cancelled = 0;
        assert_true(sd_event_new(&user->event) >= 0);
        options.event = user->event;
        user->reporter = lkg_reporter_new(&options);
}

static void begin(struct user *user)
{
        begin_with(user, true, true);
}

static void end(struct user *user)
{
        lkg_reporter_free(user->reporter);
        assert_null(condition_call);
        assert_null(event_call);
        turn(user);
        sd_event_unref(user->event);
}

static void set(struct user *user, const char *status, const char *reason)
{
        const struct lkg_node_condition condition = { status, reason, "using current",
                                                      UINT64_C(1800000000) * 1000000000 };

        lkg_reporter_set_condition(user->reporter, &condition);
        turn(user);
}

static void happen(struct user *user, const char *message)
{
        lkg_reporter_event(user->reporter, true, "ConfigRejected", message);
        turn(user);
}

/* ---- bodies ---- */

TEST(test_body_of_a_condition)
{
        static const struct lkg_node_condition condition = { "False", "failed to parse current (UID: a)",
                                                             "using \"x\"\n",
                                                             UINT64_C(1700000000) * 1000000000 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_condition_body(&condition, UINT64_C(1700000100) * 1000000000 + 999999999, &buf);
        assert_string_equal(
                buf.data,
                "{\"status\":{\"conditions\":[{\"type\":\"ConfigOK\",\"status\":\"False\","
                "\"reason\":\"failed to parse current (UID: a)\",\"message\":\"using \\\"x\\\"\\n\","
                "\"lastHeartbeatTime\":\"2023-11-14T22:15:00Z\",\"lastTransitionTime\":"
                "\"2023-11-14T22:13:20Z\"}]}}");
}

TEST(test_body_of_an_event)
{
        struct lkg_node_event event = {
                .warning = true,
                .reason = "ConfigRejected",
                .message = "no \"kind\"",
                .name = "n1.00000000000000ff",
                .count = 3,
                .first_wall_ns = UINT64_C(1700000000) * 1000000000,
                .last_wall_ns = UINT64_C(1700000100) * 1000000000,
        };
        static const struct lkg_event_node node = { "n1", "3f-9a", "host-1" };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_event_body(&event, &node, &buf);
        assert_string_equal(
                buf.data,
                "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"n1.00000000000000ff\","
                "\"namespace\":\"default\"},\"involvedObject\":{\"kind\":\"Node\",\"apiVersion\":\"v1\","
                "\"name\":\"n1\","
                "\"uid\":\"3f-9a\"},"
                "\"reason\":\"ConfigRejected\",\"message\":\"no "
                "\\\"kind\\\"\",\"type\":\"Warning\",\"source\":{"
                "\"component\":\"lkgfs\",\"host\":\"host-1\"},\"firstTimestamp\":\"2023-11-14T22:13:20Z\","
                "\"reportingComponent\":\"lkgfs\",\"reportingInstance\":\"host-1\","
                "\"lastTimestamp\":\"2023-11-14T22:15:00Z\",\"count\":3}");
        lkg_buf_reset(&buf);
        event.told = 2;
        lkg_event_body(&event, &node, &buf);
        assert_string_equal(buf.data, "{\"lastTimestamp\":\"2023-11-14T22:15:00Z\",\"count\":3}");
}

/* ---- the condition ---- */

TEST(test_a_condition_is_a_patch_of_the_status)
{
        struct user user;

        begin(&user);
        turn(&user);
        assert_null(condition_call); /* nothing to report yet */
        set(&user, "True", "all checks passed");
        assert_string_equal(condition_call->line,
                            "patch nodes/n1/status application/strategic-merge-patch+json");
        assert_non_null(strstr(condition_call->body, "\"reason\":\"all checks passed\""));
        assert_non_null(strstr(condition_call->body, "\"lastTransitionTime\":\"2027-01-15T08:00:00Z\""));
        answer(&condition_call, LKG_API_OK, "");
        set(&user, "True", "all checks passed"); /* the same: nothing is sent */
        assert_null(condition_call);
        assert_string_equal(lkg_reporter_words(user.reporter), "");
        assert_int_equal(user.n_changed, 0);
        end(&user);
}

/* Every slot that one node takes would otherwise be a write by each node that waits. */
TEST(test_figures_of_a_rollout_can_wait)
{
        static const struct {
                struct lkg_node_condition next;
                bool can_wait;
        } rows[] = {
                { { "True", "waiting for a rollout slot (2 of 5 in trial, 1 done, 0 failed)",
                    "using current", 7, true },
                  true },
                { { "True", "waiting for a rollout slot (2 of 5 in trial, 1 done, 0 failed)",
                    "using current", 7, false },
                  false },
                { { "True", "waiting for a rollout slot (2 of 5 in trial, 1 done, 0 failed)",
                    "using current", 8, true },
                  false },
                { { "False", "waiting for a rollout slot (2 of 5 in trial, 1 done, 0 failed)",
                    "using current", 7, true },
                  false },
                { { "True", "waiting for a rollout slot (2 of 5 in trial, 1 done, 0 failed)", "using init",
                    7, true },
                  false },
                { { "True", "rollout halted: 1 failed, node n2: crash loop", "using current", 7, true },
                  false },
                { { "True", "waiting for a rollout slot: no API server is asked", "using current", 7, true },
                  false },
                { { "True", "", "using current", 7, true }, false },
        };
        static const struct lkg_node_condition before = {
                "True", "waiting for a rollout slot (1 of 5 in trial, 0 done, 0 failed)", "using current", 7,
                true
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (lkg_condition_figures_differ(&before, &rows[i].next) != rows[i].can_wait)
                        fail_msg("row %zu", i);
}

TEST(test_a_condition_that_cannot_be_written)
{
        struct user user;

        begin(&user);
        set(&user, "True", "all checks passed");
        answer(&condition_call, LKG_API_FORBIDDEN, "patch nodes/status n1 is forbidden");
        assert_string_equal(lkg_reporter_words(user.reporter), "patch nodes/status n1 is forbidden");
        assert_int_equal(user.n_changed, 1);
        set(&user, "False", "crash loop");
        assert_null(condition_call); /* not before the back-off is over */
        lkg_reporter_kick(user.reporter);
        turn(&user);
        /* At most one per second: the timer takes care of it. */
        end(&user);
}

/* ---- which credential ---- */

TEST(test_nothing_is_written_with_another_credential)
{
        static struct lkg_identity admin = { .user = (char *)"kubernetes-admin" },
                                   token = { .token = (char *)"x" },
                                   other_node = { .user = (char *)"system:node:n2", .is_node_group = true };
        static const struct {
                struct lkg_identity *identity;
                enum lkg_credential_kind kind;
                const char *words;
        } rows[] = {
                { NULL, LKG_CREDENTIAL_NONE, "there is no credential" },
                { &token, LKG_CREDENTIAL_IN_CLUSTER, "the credential is a pod's" },
                { &token, LKG_CREDENTIAL_KUBECONFIG,
                  "the credential of /etc/lkgfs/kubeconfig does not say whose it is" },
                { &admin, LKG_CREDENTIAL_KUBECONFIG,
                  "the credential of /etc/lkgfs/kubeconfig is that of kubernetes-admin, who is not a node" },
                { &other_node, LKG_CREDENTIAL_NODE,
                  "the credential of /etc/lkgfs/kubeconfig is that of system:node:n2" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct user user;
                char want[512];

                begin(&user);
                is_node = false;
                identity = rows[i].identity;
                kind = rows[i].kind;
                lkg_reporter_set_node(user.reporter, "uid-1");
                set(&user, "True", "all checks passed");
                happen(&user, "one");
                assert_null(condition_call);
                assert_null(event_call);
                (void)snprintf(want, sizeof(want),
                               "nothing is written to the cluster: %s; want the client certificate of "
                               "system:node:n1, "
                               "as in the kubelet's own kubeconfig",
                               rows[i].words);
                assert_string_equal(lkg_reporter_words(user.reporter), want);
                assert_int_equal(user.n_changed, 1);
                is_node = true; /* rotated */
                lkg_reporter_kick(user.reporter);
                turn(&user);
                assert_non_null(condition_call);
                assert_non_null(event_call);
                assert_string_equal(lkg_reporter_words(user.reporter), "");
                assert_int_equal(user.n_changed, 2);
                end(&user);
        }
}

/* A request may still be waiting for its turn when the credential changes. */
TEST(test_another_credential_takes_back_what_is_under_way)
{
        struct user user;

        begin(&user);
        lkg_reporter_set_node(user.reporter, "uid-1");
        set(&user, "True", "all checks passed");
        happen(&user, "one");
        lkg_reporter_kick(user.reporter); /* still the node's */
        assert_int_equal(n_cancelled, 0);
        is_node = false;
        lkg_reporter_kick(user.reporter);
        assert_int_equal(n_cancelled, 2); /* before the loop runs */
        turn(&user);
        assert_null(condition_call);
        assert_null(event_call);
        is_node = true;
        lkg_reporter_kick(user.reporter);
        turn(&user);
        assert_non_null(strstr(event_call->body, "\"message\":\"one\""));
        assert_non_null(strstr(event_call->body, "\"count\":1"));
        end(&user);
}

TEST(test_what_is_turned_off_is_not_sent)
{
        struct user user;

        begin_with(&user, false, true);
        lkg_reporter_set_node(user.reporter, "uid-1");
        set(&user, "True", "all checks passed");
        happen(&user, "one");
        assert_null(condition_call);
        assert_non_null(event_call);
        end(&user);

        begin_with(&user, true, false);
        lkg_reporter_set_node(user.reporter, "uid-1");
        set(&user, "True", "all checks passed");
        happen(&user, "one");
        assert_non_null(condition_call);
        assert_null(event_call);
        end(&user);

        begin_with(&user, false, false);
        is_node = false;
        set(&user, "True", "all checks passed");
        assert_string_equal(lkg_reporter_words(user.reporter), ""); /* nothing is to be written */
        end(&user);
}

/* ---- events ---- */

TEST(test_events_wait_for_the_node)
{
        struct user user;

        begin(&user);
        happen(&user, "one");
        assert_null(event_call);
        lkg_reporter_set_node(user.reporter, "uid-1");
        turn(&user);
        assert_string_equal(event_call->line, "create default/events// application/json");
        assert_non_null(strstr(event_call->body, "\"name\":\"n1\",\"uid\":\"uid-1\""));
        assert_non_null(strstr(event_call->body, "\"type\":\"Warning\""));
        end(&user);
}

TEST(test_one_event_after_the_other_and_counts)
{
        char name[64], want[160];
        struct user user;

        begin(&user);
        lkg_reporter_set_node(user.reporter, "uid-1");
        happen(&user, "one");
        happen(&user, "two");
        assert_non_null(strstr(event_call->body, "\"message\":\"one\""));
        (void)snprintf(name, sizeof(name), "%.19s", strstr(event_call->body, "n1."));
        answer(&event_call, LKG_API_OK, "");
        assert_non_null(strstr(event_call->body, "\"message\":\"two\""));
        answer(&event_call, LKG_API_OK, "");
        assert_null(event_call);
        happen(&user, "one");
        (void)snprintf(want, sizeof(want), "patch default/events/%s/ application/strategic-merge-patch+json",
                       name);
        assert_string_equal(event_call->line, want);
        assert_non_null(strstr(event_call->body, "{\"lastTimestamp\":\""));
        assert_non_null(strstr(event_call->body, "\"count\":2}"));
        answer(&event_call, LKG_API_NOT_FOUND, "no such event"); /* it has expired */
        assert_string_equal(event_call->line, "create default/events// application/json");
        assert_non_null(strstr(event_call->body, "\"count\":2"));
        assert_null(strstr(event_call->body, name));
        assert_string_equal(lkg_reporter_words(user.reporter), "");
        end(&user);
}

TEST(test_what_becomes_of_an_event_that_was_not_taken)
{
        static const struct {
                enum lkg_api_status status;
                bool next; /* the next one is sent at once */
                const char *words;
        } rows[] = {
                { LKG_API_CONFLICT, true, "" }, /* it had arrived */
                { LKG_API_INVALID, true, "no" },      { LKG_API_TOO_LARGE, true, "no" },
                { LKG_API_FORBIDDEN, false, "no" },   { LKG_API_BUSY, false, "no" },
                { LKG_API_UNREACHABLE, false, "no" }, { LKG_API_NOT_FOUND, false, "no" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct user user;

                begin(&user);
                lkg_reporter_set_node(user.reporter, "uid-1");
                happen(&user, "one");
                happen(&user, "two");
                answer(&event_call, rows[i].status, "no");
                assert_int_equal(event_call != NULL, rows[i].next);
                assert_string_equal(lkg_reporter_words(user.reporter), rows[i].words);
                if (!rows[i].next) {
                        lkg_reporter_kick(user.reporter);
                        turn(&user);
                        assert_non_null(strstr(event_call->body, "\"message\":\"one\""));
                }
                end(&user);
        }
}

TEST(test_a_new_node_has_events_of_its_own)
{
        struct user user;

        begin(&user);
        lkg_reporter_set_node(user.reporter, "uid-1");
        happen(&user, "one");
        answer(&event_call, LKG_API_OK, "");
        happen(&user, "two");
        lkg_reporter_set_node(user.reporter, "uid-2"); /* while it is in flight */
        assert_int_equal(n_cancelled, 1);
        turn(&user);
        assert_non_null(strstr(event_call->body, "\"uid\":\"uid-2\""));
        assert_non_null(strstr(event_call->body, "\"message\":\"two\""));
        answer(&event_call, LKG_API_OK, "");
        happen(&user, "one");
        assert_string_equal(event_call->line, "create default/events// application/json");
        assert_non_null(strstr(event_call->body, "\"count\":1"));
        answer(&event_call, LKG_API_OK, "");
        lkg_reporter_set_node(user.reporter, ""); /* deleted, ... */
        happen(&user, "one");
        assert_null(event_call);
        lkg_reporter_set_node(user.reporter, "uid-3"); /* ... and created again */
        turn(&user);
        assert_string_equal(event_call->line, "create default/events// application/json");
        assert_non_null(strstr(event_call->body, "\"count\":1"));
        end(&user);
}
