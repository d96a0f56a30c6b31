/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written to the cluster and with which credential, in steps: rows/reporter.rows; the test simulates client and credential. After each step
 * it says what has been sent.
 */

#include <lkg/text.h>

#include "rows.h"
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
static bool condition_told, event_told; /* what is sent was said */

struct lkg_call *lkg_client_send(struct lkg_client *client, const struct lkg_request *request)
{
        const struct lkg_resource *resource = request->resource;
        bool event = strcmp(resource->plural, "events") == 0;
        struct lkg_call **place = event ? &event_call : &condition_call;

        (void)client;
        assert_null(*place);
        assert_string_equal(resource->group_version, "v1");
        assert_string_equal(resource->kind, event ? "Event" : "Node");
        *place = calloc(1, sizeof(**place));
        (*place)->event = event;
        (*place)->done = request->done;
        (*place)->userdata = request->userdata;
        assert_true(request->size < sizeof((*place)->body));
        memcpy((*place)->body, request->body, request->size);
        *(event ? &event_told : &condition_told) = false;
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
        free(call);
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
        free(ended);
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

static sd_event *loop;
static struct lkg_reporter *reporter;
static unsigned n_changed;
static char first_name[64]; /* of the first Event */

static void on_changed(void *userdata)
{
        n_changed++;
}

static int end(void **state)
{
        if (!loop)
                return 0;
        reporter = lkg_reporter_free(reporter);
        assert_null(condition_call);
        assert_null(event_call);
        while (sd_event_run(loop, 0) > 0)
                ;
        loop = sd_event_unref(loop);
        return 0;
}

/* Without the time of this run, and without the random names of Events: N for the first one, M for others. */
static void put_body(struct lkg_buf *ret, const char *text)
{
        static const char transition[] = "\"2027-01-15T08:00:00Z\"";

        while (*text)
                if (strncmp(text, "\"20", 3) == 0 && text[11] == 'T' &&
                    strncmp(text, transition, strlen(transition)) != 0) {
                        lkg_buf_puts(ret, "\"TIME\"");
                        text += strlen(transition);
                } else if (strncmp(text, "n1.", 3) == 0) {
                        if (!*first_name)
                                (void)snprintf(first_name, sizeof(first_name), "%.19s", text);
                        lkg_buf_putc(ret, strncmp(text, first_name, 19) == 0 ? 'N' : 'M');
                        text += 19;
                } else
                        lkg_buf_putc(ret, *text++);
}

static void put_call(struct lkg_buf *ret, const char *what, const struct lkg_call *call, bool *told)
{
        if (call && !*told) {
                lkg_buf_puts(ret, what);
                put_body(ret, call->line);
                lkg_buf_puts(ret, " ");
                put_body(ret, call->body);
                lkg_buf_puts(ret, "; ");
        }
        *told = true;
}

static void say(struct lkg_buf *ret)
{
        const char *words;

        while (sd_event_run(loop, 0) > 0)
                ;
        put_call(ret, "condition: ", condition_call, &condition_told);
        put_call(ret, "event: ", event_call, &event_told);
        words = lkg_reporter_words(reporter);
        lkg_buf_printf(ret, "%s%s%s%s%u changes", condition_call ? "condition under way, " : "",
                       event_call ? "event under way, " : "", words, *words ? ", " : "", n_changed);
        if (n_cancelled)
                lkg_buf_printf(ret, ", %u cancelled", n_cancelled);
}

/* A reporter of conditions, of events, or of both. */
static void begin(bool condition, bool events)
{
        struct lkg_reporter_options options = {
                .node_name = "n1",
                .host = "host-1",
                .condition = condition,
                .events = events,
                .changed = on_changed,
        };

        (void)end(NULL);
        is_node = true;
        kind = LKG_CREDENTIAL_NODE;
        identity = NULL;
        n_cancelled = n_changed = 0;
        *first_name = '\0';
        assert_true(sd_event_new(&loop) >= 0);
        options.event = loop;
        reporter = lkg_reporter_new(&options);
}

STEP(steps, 0)
{
        begin(true, true);
}

STEP(only, 1)
{
        begin(*q->parts[0] == 'c', *q->parts[0] == 'e');
}

STEP(turn, 0)
{
        say(ret);
}

/* STATUS REASON */
STEP(set, 2)
{
        const struct lkg_node_condition condition = { q->parts[0], q->parts[1], "using current",
                                                      UINT64_C(1800000000) * 1000000000 };

        lkg_reporter_set_condition(reporter, &condition);
        say(ret);
}

STEP(happens, 1)
{
        lkg_reporter_event(reporter, true, "ConfigRejected", q->parts[0]);
        say(ret);
}

STEP(node, 1)
{
        lkg_reporter_set_node(reporter, q->parts[0]);
        say(ret);
}

/* Before the loop runs: what was taken back? */
STEP(kick, 0)
{
        unsigned before = n_cancelled;

        lkg_reporter_kick(reporter);
        if (n_cancelled > before)
                lkg_buf_printf(ret, "%u taken back at once; ", n_cancelled - before);
        say(ret);
}

/* `condition` or `event`: status and words. */
STEP(answer, 3)
{
        answer(*q->parts[0] == 'c' ? &condition_call : &event_call,
               rows_named(lkg_api_status_name, _LKG_API_STATUS_MAX, q->parts[1]), q->parts[2]);
        say(ret);
}

/* Whose credential it is from now on: the node's, or of a KIND, with a USER or none. */
STEP(credential, 2)
{
        static struct lkg_identity one;
        static char user[64];
        static const char *const kinds[] = { "none", "kubeconfig", "node", "in-cluster" };

        is_node = *q->parts[0] == '-';
        kind = LKG_CREDENTIAL_NONE;
        while (!is_node && strcmp(kinds[kind], q->parts[0]) != 0)
                kind++;
        (void)snprintf(user, sizeof(user), "%s", q->parts[1]);
        one = *user ? (struct lkg_identity){ .user = user, .is_node_group = kind == LKG_CREDENTIAL_NODE }
                    : (struct lkg_identity){ .token = (char *)(uintptr_t) "x" };
        identity = kind == LKG_CREDENTIAL_NONE ? NULL : &one;
}

ROWS_WITH(reporter, rows_steps, NULL, end)

/* ---- what no row can say ---- */

/* ---- bodies ---- */

TEST(test_body_of_a_condition)
{
        static const struct lkg_node_condition condition = { "False", "failed to parse current (UID: a)",
                                                             "using \"x\"\n",
                                                             UINT64_C(1700000000) * 1000000000 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_condition_body(&condition, 1, UINT64_C(1700000100) * 1000000000 + 999999999, &buf);
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
