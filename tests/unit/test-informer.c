/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The informer with a client that the test simulates: its requests, states, messages, and who may free it
 * when.
 */

#include <lkg/documents.h>
#include <lkg/client.h>

#include "unit.h"

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
        *place = test_calloc(1, sizeof(**place));
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
        test_free(call);
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
        test_free(ended);
}

#define OBJECT(v)                                                                                           \
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"uid\":\"a\",\"resourceVersion\":\"" v "\"}" \
        "}"
#define EVENT(type, v) "{\"type\":\"" type "\",\"object\":" OBJECT(v) "}\n"

static void got(const char *text)
{
        answer(&get_call, LKG_API_OK, 200, "", text);
}

static void opened(void)
{
        watch_call->open(watch_call->userdata);
}

/*
 * Like the transport: a call that is cancelled from inside gets nothing more; one whose reader ends it is
 * told of its end.
 */
static int send_data(const char *text)
{
        unsigned before = n_cancelled;
        int r = watch_call->data(text, strlen(text), watch_call->userdata);

        if (r < 0 && n_cancelled == before)
                answer(&watch_call, LKG_API_UNREACHABLE, 200, "the stream was ended by its reader", NULL);
        return r;
}

/* ---- the user ---- */

struct listener {
        sd_event *event;
        struct lkg_informer *informer;
        char versions[256]; /* "100 none 101 " */
        unsigned n_changed;
        /* Actions for the next callback. */
        struct lkg_informer **free_in_state, **free_in_changed;
        bool fetch_in_state;
};

static void on_state(const struct lkg_value *object, void *userdata)
{
        struct listener *l = userdata;
        const struct lkg_value *metadata = object ? lkg_map_get(object, "metadata") : NULL;
        size_t n = strlen(l->versions);

        (void)snprintf(l->versions + n, sizeof(l->versions) - n, "%s ",
                       metadata ? lkg_map_get_string(metadata, "resourceVersion") : "none");
        if (l->fetch_in_state)
                lkg_informer_fetch(l->informer, false);
        l->fetch_in_state = false;
        if (l->free_in_state)
                *l->free_in_state = lkg_informer_free(*l->free_in_state);
        l->free_in_state = NULL;
        /* Still alive after that; must not be used if it was the last reference. */
        if (object)
                assert_int_equal(lkg_value_type(object), LKG_MAP);
}

static void on_changed(void *userdata)
{
        struct listener *l = userdata;

        l->n_changed++;
        if (l->free_in_changed)
                *l->free_in_changed = lkg_informer_free(*l->free_in_changed);
        l->free_in_changed = NULL;
}

static const struct lkg_informer_ops ops = { on_state, on_changed };

static void turn(struct listener *l)
{
        while (sd_event_run(l->event, 0) > 0)
                ;
}

static struct lkg_informer *begin_another(struct listener *l)
{
        const struct lkg_informer_options options = {
                .event = l->event,
                .resource = { "v1", "configmaps", "ConfigMap", "kube-system", "c" },
                .poll_interval_ns = 60 * LKG_NSEC_PER_SEC,
                .max_bytes = MAX,
                .ops = &ops,
                .userdata = l,
        };
        struct lkg_informer *informer = NULL;

        informer = lkg_informer_new(&options);
        return informer;
}

static void begin(struct listener *l)
{
        *l = (struct listener){ 0 };
        get_call = watch_call = NULL;
        n_gets = n_watches = n_cancelled = 0;
        assert_true(sd_event_new(&l->event) >= 0);
        l->informer = begin_another(l);
        assert_int_equal(n_gets, 0); /* nothing before the loop runs */
        turn(l);
}

static void begin_watching(struct listener *l)
{
        begin(l);
        got(OBJECT("100"));
        opened();
        l->versions[0] = '\0';
        l->n_changed = 0;
}

static void end(struct listener *l)
{
        l->informer = lkg_informer_free(l->informer);
        assert_null(get_call);
        assert_null(watch_call);
        turn(l);
        l->event = sd_event_unref(l->event);
}

/* ---- tests ---- */

TEST(test_reads_watches_and_tells)
{
        struct listener l;

        begin(&l);
        assert_int_equal(n_gets, 1);
        assert_int_equal(lkg_informer_look(l.informer).mode, LKG_INFORMER_STARTING);
        assert_int_equal(lkg_informer_look(l.informer).success_ns, 0);
        got(OBJECT("100"));
        assert_string_equal(l.versions, "100 ");
        assert_true(lkg_informer_look(l.informer).success_ns > 0);
        assert_string_equal(watch_call->version, "100");
        assert_in_range(watch_call->seconds, 300, 599);
        opened();
        assert_int_equal(lkg_informer_look(l.informer).mode, LKG_INFORMER_WATCH);
        assert_int_equal(l.n_changed, 1);
        assert_int_equal(send_data(EVENT("MODIFIED", "101") "{\"type\":\"MODI"), 0);
        assert_int_equal(send_data("FIED\",\"object\":" OBJECT("102") "}\n"), 0);
        assert_int_equal(send_data(EVENT("DELETED", "103")), 0);
        assert_string_equal(l.versions, "100 101 102 none ");
        assert_int_equal(l.n_changed, 1); /* a state is no change of mode */
        assert_int_equal(n_gets, 1);
        end(&l);
}

TEST(test_no_object_is_a_state)
{
        struct listener l;

        begin(&l);
        answer(&get_call, LKG_API_NOT_FOUND, 404, "there is no such object", NULL);
        assert_string_equal(l.versions, "none ");
        assert_int_equal(lkg_informer_look(l.informer).status, LKG_API_OK);
        assert_string_equal(lkg_informer_look(l.informer).words, "");
        assert_string_equal(watch_call->version, "");
        end(&l);
}

TEST(test_failure_and_its_words_until_the_next_success)
{
        struct listener l;

        begin(&l);
        answer(&get_call, LKG_API_FORBIDDEN, 403, "get configmaps kube-system/c is forbidden", NULL);
        assert_int_equal(lkg_informer_look(l.informer).mode, LKG_INFORMER_DOWN);
        assert_int_equal(lkg_informer_look(l.informer).status, LKG_API_FORBIDDEN);
        assert_string_equal(lkg_informer_look(l.informer).words,
                            "get configmaps kube-system/c is forbidden");
        assert_true(lkg_informer_look(l.informer).failing_since_ns > 0);
        assert_int_equal(l.n_changed, 1);
        lkg_informer_fetch(l.informer, false);
        turn(&l);
        assert_int_equal(n_gets, 2);
        got(OBJECT("100"));
        assert_int_equal(lkg_informer_look(l.informer).status, LKG_API_OK);
        assert_string_equal(lkg_informer_look(l.informer).words, "");
        assert_int_equal(lkg_informer_look(l.informer).failing_since_ns, 0);
        assert_int_equal(l.n_changed, 2);
        end(&l);
}

TEST(test_long_words_are_cut)
{
        struct listener l;
        char words[512];

        memset(words, 'w', sizeof(words));
        words[sizeof(words) - 1] = '\0';
        begin(&l);
        answer(&get_call, LKG_API_BUSY, 500, words, NULL);
        assert_string_equal(lkg_informer_look(l.informer).words, words);
        end(&l);
}

TEST(test_an_object_that_is_another_one_is_no_state)
{
        struct listener l;

        begin(&l);
        got("{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"d\",\"uid\":\"a\",\"resourceVersion\":\"1\"}"
            "}");
        assert_string_equal(l.versions, "");
        assert_int_equal(lkg_informer_look(l.informer).status, LKG_API_INVALID);
        assert_string_equal(lkg_informer_look(l.informer).words,
                            "the API server sent metadata.name \"d\"; want c");
        end(&l);
}

/* Faults that end a watch: the words say why, and no state is reported. */
TEST(test_what_breaks_a_watch)
{
        static const struct {
                const char *data;
                enum lkg_api_status status;
                const char *words;
        } rows[] = {
                { "{]\n", LKG_API_INVALID, "the watch sent no JSON: column 2: " },
                { "{\"type\":\"ADDED\"}\n", LKG_API_INVALID,
                  "the watch sent an event ADDED without an object" },
                { "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Secret\",\"metadata\":{}}}\n" EVENT(
                          "MODIFIED", "101"),
                  LKG_API_INVALID, "the watch sent kind \"Secret\"; want ConfigMap" },
                { "{\"type\":\"BOOKMARK\",\"object\":{}}\n", LKG_API_INVALID,
                  "the watch sent an object without metadata.resourceVersion" },
                { "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd is\\u001b "
                  "gone\"}}\n" EVENT("MODIFIED", "101"),
                  LKG_API_BUSY, "the API server broke the watch off: \"etcd is\\x1b gone\"" },
                { "{\"type\":\"ERROR\",\"object\":{}}\n", LKG_API_BUSY,
                  "the API server broke the watch off: it does not say why" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct listener l;

                begin_watching(&l);
                assert_true(send_data(rows[i].data) < 0);
                assert_null(watch_call);
                assert_int_equal(n_cancelled, 1);
                assert_string_equal(l.versions, "");
                assert_int_equal(lkg_informer_look(l.informer).mode, LKG_INFORMER_DOWN);
                assert_int_equal(lkg_informer_look(l.informer).status, rows[i].status);
                if (!strstr(lkg_informer_look(l.informer).words, rows[i].words))
                        fail_msg("%s", lkg_informer_look(l.informer).words);
                assert_int_equal(n_gets, 1); /* not before the back-off is over */
                end(&l);
        }
}

TEST(test_an_event_that_is_too_big)
{
        char data[MAX + 1000];
        struct listener l;

        memset(data, ' ', sizeof(data));
        data[sizeof(data) - 1] = '\0';
        begin_watching(&l);
        assert_int_equal(send_data(data), -EFBIG);
        assert_int_equal(lkg_informer_look(l.informer).status, LKG_API_TOO_LARGE);
        end(&l);
}

TEST(test_an_expired_watch_is_read_again_without_a_word)
{
        struct listener l;

        begin_watching(&l);
        assert_true(send_data("{\"type\":\"ERROR\",\"object\":{\"reason\":\"Expired\",\"code\":410}}\n") <
                    0);
        assert_int_equal(n_gets, 2);
        assert_string_equal(lkg_informer_look(l.informer).words, "");
        got(OBJECT("100"));
        assert_string_equal(watch_call->version, "");
        opened();
        assert_int_equal(n_gets, 3);
        assert_int_equal(l.n_changed, 0);
        end(&l);
}

TEST(test_a_watch_may_begin_inside_the_one_before)
{
        struct listener l;

        begin(&l);
        answer(&get_call, LKG_API_NOT_FOUND, 404, "", NULL);
        opened();
        assert_true(send_data("{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n" EVENT("ADDED", "1")) < 0);
        assert_int_equal(n_watches, 2);
        assert_int_equal(n_cancelled, 1);
        opened();
        assert_int_equal(send_data(EVENT("ADDED", "101")), 0);
        assert_string_equal(l.versions, "none 101 ");
        assert_string_equal(lkg_informer_look(l.informer).words, "");
        end(&l);
}

TEST(test_half_an_event_at_the_end_is_a_failure)
{
        struct listener l;

        begin_watching(&l);
        assert_int_equal(send_data("{\"type\":"), 0);
        answer(&watch_call, LKG_API_OK, 200, "", NULL);
        assert_int_equal(lkg_informer_look(l.informer).mode, LKG_INFORMER_DOWN);
        assert_string_equal(lkg_informer_look(l.informer).words,
                            "the watch ended in the middle of an event");
        end(&l);
}

TEST(test_half_an_event_does_not_go_on_in_the_next_watch)
{
        struct listener l;

        begin_watching(&l);
        assert_int_equal(send_data("{\"type\":"), 0);
        lkg_informer_fetch(l.informer, true);
        turn(&l);
        got(OBJECT("100"));
        opened();
        assert_int_equal(send_data(EVENT("MODIFIED", "101")), 0);
        assert_string_equal(l.versions, "100 101 ");
        end(&l);
}

TEST(test_a_watch_that_ends_at_once)
{
        struct listener l;

        begin_watching(&l);
        answer(&watch_call, LKG_API_OK, 200, "", NULL);
        assert_string_equal(lkg_informer_look(l.informer).words,
                            "the API server ended the watch at once, without an event");
        end(&l);
}

TEST(test_a_refused_watch_says_what_is_missing)
{
        struct listener l;

        begin(&l);
        got(OBJECT("100"));
        answer(&watch_call, LKG_API_FORBIDDEN, 403, "watch configmaps kube-system/c is forbidden", NULL);
        assert_int_equal(lkg_informer_look(l.informer).mode, LKG_INFORMER_POLL);
        assert_int_equal(lkg_informer_look(l.informer).status, LKG_API_OK); /* it is being read */
        assert_string_equal(lkg_informer_look(l.informer).words, "");
        assert_string_equal(lkg_informer_look(l.informer).refusal,
                            "watch configmaps kube-system/c is forbidden");
        lkg_informer_fetch(l.informer, true);
        turn(&l);
        got(OBJECT("100"));
        opened();
        assert_string_equal(lkg_informer_look(l.informer).refusal, "");
        end(&l);
}

TEST(test_fetch_reads_while_the_watch_goes_on)
{
        struct listener l;

        begin_watching(&l);
        lkg_informer_fetch(l.informer, false);
        assert_int_equal(n_gets, 1); /* from the loop: the caller may be in any callback */
        turn(&l);
        assert_int_equal(n_gets, 2);
        assert_int_equal(n_cancelled, 0);
        got(OBJECT("100"));
        assert_string_equal(l.versions, "100 ");
        l.fetch_in_state = true;
        assert_int_equal(send_data(EVENT("MODIFIED", "101")), 0);
        turn(&l);
        assert_int_equal(n_gets, 3);
        end(&l);
}

TEST(test_anew_ends_what_is_under_way)
{
        struct listener l;

        begin_watching(&l);
        lkg_informer_fetch(l.informer, false);
        turn(&l);
        lkg_informer_fetch(l.informer, true);
        lkg_informer_fetch(l.informer, false); /* does not cancel it */
        turn(&l);
        assert_int_equal(n_cancelled, 2);
        assert_null(watch_call);
        assert_non_null(get_call);
        assert_int_equal(n_gets, 3);
        end(&l);
}

TEST(test_free_inside_its_own_callbacks)
{
        struct listener l;

        begin(&l);
        l.free_in_state = &l.informer;
        got(OBJECT("100"));
        assert_null(l.informer);
        assert_null(watch_call); /* nothing starts any more */
        end(&l);

        begin_watching(&l);
        l.free_in_state = &l.informer;
        (void)send_data(EVENT("MODIFIED", "101") EVENT("MODIFIED", "102"));
        assert_string_equal(l.versions, "101 ");
        end(&l);

        begin(&l);
        l.free_in_changed = &l.informer;
        answer(&get_call, LKG_API_BUSY, 500, "busy", NULL);
        assert_null(l.informer);
        end(&l);

        begin_watching(&l);
        l.free_in_changed = &l.informer;
        (void)send_data("{]\n");
        assert_null(l.informer);
        end(&l);
}

TEST(test_free_another_one_inside_a_callback)
{
        struct lkg_informer *other;
        struct listener l;

        begin_watching(&l);
        assert_non_null(watch_call);
        get_call = NULL;
        other = begin_another(&l);
        turn(&l); /* its read is in flight */
        assert_non_null(get_call);
        l.free_in_state = &other;
        assert_int_equal(send_data(EVENT("MODIFIED", "101")), 0);
        assert_null(other);
        assert_null(get_call);
        assert_int_equal(send_data(EVENT("MODIFIED", "102")), 0);
        assert_string_equal(l.versions, "101 102 ");
        end(&l);
}

static int on_local_work(sd_event_source *source, void *userdata)
{
        unsigned *n_turns = userdata;

        assert_int_equal(n_gets, 0);
        return ++*n_turns < 5 ? 0 : sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

TEST(test_whoever_waits_on_this_machine_goes_first)
{
        sd_event_source *local = NULL;
        unsigned n_turns = 0;
        struct listener l;

        begin(&l);
        n_gets = 0;
        lkg_informer_fetch(l.informer, /* anew= */ true);
        assert_true(sd_event_add_defer(l.event, &local, on_local_work, &n_turns) >= 0);
        assert_int_equal(sd_event_source_set_enabled(local, SD_EVENT_ON), 0);
        turn(&l);
        assert_int_equal(n_turns, 5);
        assert_int_equal(n_gets, 1);
        (void)sd_event_source_disable_unref(local);
        end(&l);
}

TEST(test_knows_what_it_follows)
{
        struct lkg_resource resource = { "v1", "configmaps", "ConfigMap", "kube-system", "c" };
        struct listener l;

        begin(&l);
        assert_true(lkg_informer_is(l.informer, &resource));
        resource.ns = NULL;
        assert_false(lkg_informer_is(l.informer, &resource));
        resource.ns = "kube-system";
        resource.name = "d";
        assert_false(lkg_informer_is(l.informer, &resource));
        end(&l);
}

TEST(test_names_of_modes)
{
        assert_string_equal(lkg_informer_mode_name(LKG_INFORMER_STARTING), "starting");
        assert_string_equal(lkg_informer_mode_name(LKG_INFORMER_WATCH), "watch");
        assert_string_equal(lkg_informer_mode_name(LKG_INFORMER_POLL), "poll");
        assert_string_equal(lkg_informer_mode_name(LKG_INFORMER_DOWN), "down");
}
