/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list and the watch of the slots of a rollout, with a client, a timer and a clock that are the test's: when the watch goes on where
 * it ended, and when all slots are listed anew. What a node does with slots: test-slots.c. Rule: docs/specification.md 4.14.
 */
#include <lkg/documents.h>

#include "core/reference/apiserver.h"
#include "slot-samples.h"
#include "unit.h"

static uint64_t now_ns, due_ns;
static sd_event_time_handler_t handler;
static void *keeper;
static struct lkg_request list, watch; /* under way: done is set */
static char position[32];
static unsigned n_lists, n_watches, n_abandoned;
static struct lkg_slot_wish wish;
static struct lkg_config config;
static struct lkg_places places;
static struct lkg_apiserver api;

/* ---- in the place of others ---- */

uint64_t __wrap_lkg_boottime_ns(void);
uint64_t __wrap_lkg_boottime_ns(void)
{
        return now_ns;
}

sd_event_source *__wrap_lkg_remote_timer(sd_event *event, uint64_t slack_ns, sd_event_time_handler_t fn,
                                         void *userdata);
sd_event_source *__wrap_lkg_remote_timer(sd_event *event, uint64_t slack_ns, sd_event_time_handler_t fn,
                                         void *userdata)
{
        handler = fn;
        keeper = userdata;
        return userdata;
}

void __wrap_lkg_remote_arm(sd_event_source *timer, uint64_t at_ns);
void __wrap_lkg_remote_arm(sd_event_source *timer, uint64_t at_ns)
{
        if (timer) /* not that of the API server */
                due_ns = at_ns;
}

sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *source);
sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *source)
{
        return NULL;
}

struct lkg_call *__wrap_lkg_client_send(struct lkg_client *client, const struct lkg_request *request);
struct lkg_call *__wrap_lkg_client_send(struct lkg_client *client, const struct lkg_request *request)
{
        *(request->data ? &watch : &list) = *request;
        *(request->data ? &n_watches : &n_lists) += 1;
        if (request->data)
                (void)snprintf(position, sizeof(position), "%s", request->version);
        return (struct lkg_call *)(request->data ? &watch : &list);
}

struct lkg_call *__wrap_lkg_call_cancel(struct lkg_call *call);
struct lkg_call *__wrap_lkg_call_cancel(struct lkg_call *call)
{
        if (call)
                ((struct lkg_request *)call)->done = NULL;
        return NULL;
}

struct lkg_call *__wrap_lkg_call_abandon(struct lkg_call *call);
struct lkg_call *__wrap_lkg_call_abandon(struct lkg_call *call)
{
        n_abandoned++;
        return __wrap_lkg_call_cancel(call);
}

/* ---- a node ---- */

static void pass(uint64_t ns)
{
        now_ns += ns;
        if (now_ns >= due_ns)
                assert_int_equal(handler(NULL, 0, keeper), 0);
}

static void end(struct lkg_request *request, struct lkg_api_answer answer)
{
        lkg_client_fn *done = request->done;

        request->done = NULL;
        done(&answer, request->userdata);
}

static void answer_list(void)
{
        static const char text[] = "{\"metadata\": {\"resourceVersion\": \"10\"}, \"items\": []}";
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;

        assert_int_equal(lkg_decode_json(text, sizeof(text) - 1, 0, NULL, NULL, &object), 0);
        end(&list, (struct lkg_api_answer){ .status = LKG_API_OK, .object = object });
}

static int begin(void **state)
{
        /* halted, so it watches and takes none */
        wish = (struct lkg_slot_wish){ .any = true, .id = make_id("aa"), .max_in_trial = 1 };
        char words[256];

        now_ns = 1000 * S;
        n_lists = n_watches = n_abandoned = 0;
        config = (struct lkg_config){ .remote = { .rollout_namespace = (char *)"lkgfs-rollout",
                                                  .max_bytes = 1 << 20 } };
        api = (struct lkg_apiserver){ .places = &places, .node_name = "me" };
        places = (struct lkg_places){ .config = &config, .apiserver = &api };
        api.slots = lkg_slot_keeper_new(&api);
        (void)lkg_places_slot(&places, &wish, words);
        pass(0);
        answer_list();
        assert_non_null(watch.done);
        return 0;
}

static int finish(void **state)
{
        api.slots = lkg_slot_keeper_free(api.slots);
        return 0;
}

/* ---- what holds ---- */

/* If nothing of the kind changes, an API server may send no bookmark for hours. */
TEST_WITH(test_silence_is_a_fault_after_the_first_bookmark, begin, finish)
{
        static const char mark[] =
                "{\"type\": \"BOOKMARK\", \"object\": {\"metadata\": {\"resourceVersion\": \"12\"}}}\n";

        watch.open(watch.userdata);
        pass(290 * S);
        assert_int_equal(n_abandoned, 0);
        assert_int_equal(watch.data(mark, sizeof(mark) - 1, watch.userdata), 0);
        pass(149 * S);
        assert_int_equal(n_abandoned, 0);
        pass(2 * S);
        assert_int_equal(n_abandoned, 1);
        assert_int_equal(n_lists, 1);
        pass(2 * S);
        assert_int_equal(n_lists, 2);
}

TEST_WITH(test_a_watch_that_does_not_open_is_silent, begin, finish)
{
        pass(151 * S);
        assert_int_equal(n_abandoned, 1);
}

/* A balancer ends connections that are quiet: nothing was missed. */
TEST_WITH(test_a_quiet_watch_that_is_cut_goes_on, begin, finish)
{
        watch.open(watch.userdata);
        pass(35 * S);
        end(&watch, (struct lkg_api_answer){ .status = LKG_API_UNREACHABLE, .cut = true });
        assert_int_equal(n_watches, 2);
        assert_string_equal(position, "10");
        watch.open(watch.userdata);
        pass(5 * S);
        end(&watch, (struct lkg_api_answer){ .status = LKG_API_UNREACHABLE, .cut = true });
        assert_int_equal(n_watches, 2); /* not quiet */
        pass(2 * S);
        assert_int_equal(n_lists, 2);
}

TEST_WITH(test_a_watch_that_ends_as_announced_goes_on, begin, finish)
{
        watch.open(watch.userdata);
        pass(300 * S);
        end(&watch, (struct lkg_api_answer){ .status = LKG_API_OK });
        assert_int_equal(n_watches, 2);
        assert_int_equal(n_lists, 1);
}

/* Each write of a slot is an event for who watches, so only who has to do with it does. */
TEST_WITH(test_who_has_it_closes_its_watch, begin, finish)
{
        char words[256];

        watch.open(watch.userdata);
        wish.any = false;
        (void)lkg_places_slot(&places, &wish, words);
        pass(S);
        assert_null(watch.done);
        pass(86400 * S);
        assert_int_equal(n_lists, 1);
        wish.any = true;
        (void)lkg_places_slot(&places, &wish, words);
        pass(S);
        assert_null(watch.done);
        answer_list();
        assert_non_null(watch.done);
        assert_int_equal(n_watches, 2);
}

TEST_WITH(test_a_watch_that_ends_at_once_is_no_circle, begin, finish)
{
        for (uint64_t until_ns = now_ns + 60 * S; now_ns < until_ns && n_watches < 100;) {
                if (watch.done) {
                        watch.open(watch.userdata);
                        pass(10 * LKG_NSEC_PER_MSEC);
                        end(&watch, (struct lkg_api_answer){ .status = LKG_API_OK });
                } else {
                        pass(due_ns > now_ns ? due_ns - now_ns : 0);
                        answer_list();
                }
        }
        assert_in_range(n_watches, 3, 10);
}
