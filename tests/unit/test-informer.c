/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The informer with a client that the test simulates, in steps: its requests, states, messages, and who may free it when: rows/informer.rows. After
 * each step it says what was sent, told and cancelled, how the informer fares, and what is in flight.
 */

#include <lkg/documents.h>
#include <lkg/client.h>

#include "rows.h"

#define MAX 2000u

/* ---- the client ---- */

struct lkg_call {
        bool watch;
        lkg_client_fn *done;
        void (*open)(void *userdata);
        int (*data)(const char *data, size_t size, void *userdata);
        void *userdata;
        char version[64]; /* of a watch; "" = none */
        unsigned seconds;
};

static struct lkg_call *get_call, *watch_call; /* in flight */
static unsigned n_gets, n_watches, n_cancelled;

struct lkg_call *lkg_client_send(struct lkg_client *client, const struct lkg_request *request)
{
        bool watch = strcmp(request->verb, "watch") == 0;
        struct lkg_call **place = watch ? &watch_call : &get_call;

        (void)client;
        assert_true(watch || strcmp(request->verb, "get") == 0);
        assert_string_equal(request->resource->plural, "configmaps");
        assert_string_equal(request->resource->name, "c");
        assert_null(*place);
        *(watch ? &n_watches : &n_gets) += 1;
        *place = calloc(1, sizeof(**place));
        (*place)->watch = watch;
        (*place)->open = request->open;
        (*place)->data = request->data;
        (*place)->done = request->done;
        (*place)->userdata = request->userdata;
        (*place)->seconds = request->seconds;
        (void)snprintf((*place)->version, sizeof((*place)->version), "%s",
                       request->version ? request->version : "");
        return *place;
}

struct lkg_call *lkg_call_cancel(struct lkg_call *call)
{
        if (!call)
                return NULL;
        n_cancelled++;
        if (call->watch)
                watch_call = NULL;
        else
                get_call = NULL;
        free(call);
        return NULL;
}

struct lkg_call *lkg_call_abandon(struct lkg_call *call)
{
        return lkg_call_cancel(call);
}

static struct lkg_value *decode(const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_json(text, strlen(text), 0, NULL, &report, &value), 0);
        lkg_report_deinit(&report);
        return value;
}

static void answer(struct lkg_call **call, enum lkg_api_status status, unsigned http_status,
                   const char *words, const char *text)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = text ? decode(text) : NULL;
        struct lkg_api_answer a = { .status = status, .http_status = http_status, .object = object };
        struct lkg_call *ended = LKG_STEAL(*call);

        assert_non_null(ended);
        (void)snprintf(a.words, sizeof(a.words), "%s", words);
        ended->done(&a, ended->userdata);
        free(ended);
}

#define OBJECT \
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"uid\":\"a\",\"resourceVersion\":\"%s\"}}"

/* ---- the user ---- */

static sd_event *event;
static struct lkg_informer *informer, *another;
static struct lkg_buf told = LKG_BUF_INIT;
static char in_state[16], in_changed[16]; /* what the next callback does */

static void act(char *action)
{
        char now[sizeof(in_state)];

        (void)strcpy(now, action);
        *action = '\0';
        if (strcmp(now, "fetch") == 0)
                lkg_informer_fetch(informer, false);
        else if (strcmp(now, "free") == 0)
                informer = lkg_informer_free(informer);
        else if (strcmp(now, "free another") == 0)
                another = lkg_informer_free(another);
}

static void on_state(const struct lkg_value *object, void *userdata)
{
        const struct lkg_value *metadata = object ? lkg_map_get(object, "metadata") : NULL;

        lkg_buf_printf(&told, "state %s, ",
                       metadata ? lkg_map_get_string(metadata, "resourceVersion") : "none");
        act(in_state);
        /* Still alive after that; must not be used if it was the last reference. */
        if (object)
                assert_int_equal(lkg_value_type(object), LKG_MAP);
}

static void on_changed(void *userdata)
{
        lkg_buf_puts(&told, "changed, ");
        act(in_changed);
}

static struct lkg_informer *begin_another(void)
{
        static const struct lkg_informer_ops ops = { on_state, on_changed };
        const struct lkg_informer_options options = {
                .event = event,
                .resource = { "v1", "configmaps", "ConfigMap", "kube-system", "c" },
                .poll_interval_ns = 60 * LKG_NSEC_PER_SEC,
                .max_bytes = MAX,
                .ops = &ops,
        };

        return lkg_informer_new(&options);
}

static void turn(void)
{
        while (sd_event_run(event, 0) > 0)
                ;
}

static int end(void **state)
{
        if (!event)
                return 0;
        informer = lkg_informer_free(informer);
        another = lkg_informer_free(another);
        assert_null(get_call);
        assert_null(watch_call);
        turn();
        event = sd_event_unref(event);
        lkg_buf_deinit(&told);
        return 0;
}

STEP(steps, 0)
{
        (void)end(NULL);
        n_gets = n_watches = n_cancelled = 0;
        *in_state = *in_changed = '\0';
        assert_true(sd_event_new(&event) >= 0);
        informer = begin_another();
        assert_int_equal(n_gets, 0); /* nothing before the loop runs */
}

static void say(struct lkg_buf *ret)
{
        lkg_buf_printf(ret, "%s%u get%s%s, %u watch%s", told.size ? told.data : "", n_gets,
                       n_gets == 1 ? "" : "s", get_call ? " under way" : "", n_watches,
                       n_watches == 1 ? "" : "es");
        if (watch_call)
                lkg_buf_printf(ret, " under way from '%s'", watch_call->version);
        if (n_cancelled)
                lkg_buf_printf(ret, ", %u cancelled", n_cancelled);
        if (watch_call)
                assert_in_range(watch_call->seconds, 300, 599);
        if (informer) {
                const struct lkg_informer_look look = lkg_informer_look(informer);

                lkg_buf_printf(ret, "; %s, %s%s%s", lkg_informer_mode_name(look.mode),
                               lkg_api_status_name(look.status), look.success_ns ? ", has succeeded" : "",
                               look.failing_since_ns ? ", is failing" : "");
                if (*look.words)
                        lkg_buf_printf(ret, ": %s", look.words);
                if (*look.refusal)
                        lkg_buf_printf(ret, "; refused: %s", look.refusal);
        } else
                lkg_buf_puts(ret, "; freed");
        lkg_buf_reset(&told);
}

STEP(turn, 0)
{
        turn();
        say(ret);
}

/* A read finds this version. */
STEP(got, 1)
{
        char text[256];

        (void)snprintf(text, sizeof(text), OBJECT, q->parts[0]);
        answer(&get_call, LKG_API_OK, 200, "", text);
        say(ret);
}

STEP(got_text, 1)
{
        answer(&get_call, LKG_API_OK, 200, "", q->parts[0]);
        say(ret);
}

/* `get` or `watch` ends: HTTP status, status, words. */
STEP(failed, 4)
{
        answer(*q->parts[0] == 'g' ? &get_call : &watch_call,
               rows_named(lkg_api_status_name, _LKG_API_STATUS_MAX, q->parts[2]),
               (unsigned)strtoul(q->parts[1], NULL, 10), q->parts[3], NULL);
        say(ret);
}

STEP(open, 0)
{
        watch_call->open(watch_call->userdata);
        say(ret);
}

/*
 * Like the transport: a call that is cancelled from inside gets nothing more; one whose reader ends it is
 * told of its end.
 */
STEP(data, 1)
{
        unsigned before = n_cancelled;
        int r = watch_call->data(q->parts[0], strlen(q->parts[0]), watch_call->userdata);

        if (r < 0)
                lkg_buf_printf(ret, "%s: ", strerrorname_np(-r));
        if (r < 0 && n_cancelled == before)
                answer(&watch_call, LKG_API_UNREACHABLE, 200, "the stream was ended by its reader", NULL);
        say(ret);
}

STEP(fetch, 1)
{
        lkg_informer_fetch(informer, *q->parts[0] == 'a');
        say(ret);
}

/* What the next callback does. */
STEP(in_state, 1)
{
        (void)snprintf(in_state, sizeof(in_state), "%s", q->parts[0]);
}

STEP(in_changed, 1)
{
        (void)snprintf(in_changed, sizeof(in_changed), "%s", q->parts[0]);
}

STEP(another, 0)
{
        another = begin_another();
}

ROWS_WITH(informer, rows_steps, NULL, end)

/* ---- what no row can say ---- */

static int on_local_work(sd_event_source *source, void *userdata)
{
        unsigned *n_turns = userdata;

        assert_int_equal(n_gets, 0);
        return ++*n_turns < 5 ? 0 : sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

TEST_WITH(test_whoever_waits_on_this_machine_goes_first, NULL, end)
{
        sd_event_source *local = NULL;
        unsigned n_turns = 0;

        step_steps(NULL, NULL);
        turn();
        n_gets = 0;
        lkg_informer_fetch(informer, /* anew= */ true);
        assert_true(sd_event_add_defer(event, &local, on_local_work, &n_turns) >= 0);
        assert_int_equal(sd_event_source_set_enabled(local, SD_EVENT_ON), 0);
        turn();
        assert_int_equal(n_turns, 5);
        assert_int_equal(n_gets, 1);
        (void)sd_event_source_disable_unref(local);
}
