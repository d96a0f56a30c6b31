/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of places, with a fake API server: which place counts, and what the answer is.
 * Rule: docs/specification.md 4.2.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <lkg/config.h>
#include <lkg/places.h>

#include "unit.h"
#include "core/reference/apiserver.h"
#include "fake-remote.h"
#include "tmpdir.h"

struct bench {
        char top[TMPDIR_MAX];
        int fd;
        sd_event *event;
        struct lkg_config *config;
        struct lkg_places *places;
        unsigned n_turns;
        /* Result of earlier answers. */
        struct lkg_config_source assigned;
        char node_uid[64];
        bool carried_out;
        struct lkg_places_answer answer; /* the last one */
};

/* ---- a node ---- */

static bool turn(void *userdata)
{
        struct bench *b = userdata;

        b->n_turns++;
        return true;
}

static int setup(void **state)
{
        struct bench *b = calloc(1, sizeof(*b));

        if (!b || tmpdir_make(b->top) < 0 || sd_event_new(&b->event) < 0)
                return -1;
        b->fd = open(b->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        fake_reset();
        fake_credential(LKG_CREDENTIAL_NODE);
        *state = b;
        return b->fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
        struct bench *b = *state;

        lkg_places_answer_deinit(&b->answer);
        lkg_places_free(b->places);
        lkg_config_free(b->config);
        sd_event_unref(b->event);
        (void)close(b->fd);
        (void)tmpdir_remove(b->top);
        free(b);
        return 0;
}

static struct lkg_config *configure(const char *remote)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_config *config = NULL;
        char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"remote\":{\"enabled\":true,"
                       "\"nodeName\":\"n1\"%s}}",
                       LKG_CONFIG_API_VERSION, LKG_CONFIG_KIND, remote);
        assert_int_equal(lkg_decode_json(text, strlen(text), 0, NULL, &report, &doc), 0);
        if (lkg_config_decode(doc, "/etc/lkgfs", &config, &report) < 0)
                fail_msg("%s: %s", text, report.findings[0].text);
        return config;
}

/* Runs the loop until nothing is pending. */
static void settle(struct bench *b)
{
        for (unsigned i = 0; sd_event_run(b->event, 0) > 0; i++)
                assert_in_range(i, 0, 100);
}

static void begin_with(struct bench *b, const char *remote, bool wanted)
{
        const struct lkg_places_options options = {
                .event = b->event,
                .source_path = b->top,
                .source_fd = b->fd,
                .runtime_fd = b->fd,
                .turn = turn,
                .userdata = b,
        };

        b->config = configure(remote);
        b->places = lkg_places_new(&options, b->config);
        lkg_places_open(b->places, wanted, /* fresh= */ true);
        lkg_places_run(b->places);
        settle(b);
}

static void begin(struct bench *b, const char *remote)
{
        begin_with(b, remote, /* wanted= */ true);
}

static enum lkg_places_says ask_about(struct bench *b, const struct lkg_touched *touched)
{
        const struct lkg_places_known known = { .assigned = &b->assigned,
                                                .node_uid = b->node_uid,
                                                .carried_out = b->carried_out };

        lkg_places_answer_deinit(&b->answer);
        lkg_places_desired(b->places, &known, touched, &b->answer);
        return b->answer.says;
}

static enum lkg_places_says ask(struct bench *b)
{
        const struct lkg_touched everything = { .everything = true };

        return ask_about(b, &everything);
}

/* As the engine does. */
static void carry_out(struct bench *b)
{
        assert_int_equal(b->answer.says, LKG_PLACES_CONFIGMAP);
        b->assigned = b->answer.source;
        b->carried_out = true;
        if (b->answer.node_uid)
                (void)snprintf(b->node_uid, sizeof(b->node_uid), "%s", b->answer.node_uid);
}

#define UNKNOWN(b, text)                                          \
        do {                                                      \
                assert_int_equal(ask(b), LKG_PLACES_UNKNOWN);     \
                assert_non_null(strstr((b)->answer.words, text)); \
        } while (0)

#define STATIC      ",\"static\":{\"namespace\":\"kube-system\",\"name\":\"fixed\"}"
#define ONLY(place) ",\"references\":[\"" place "\"]"

/* ---- answers of the API server ---- */

#define SPEC                                                                               \
        "\"configSource\":{\"configMap\":{\"namespace\":\"kube-system\",\"name\":\"old\"," \
        "\"kubeletConfigKey\":"                                                            \
        "\"k\"}}"

/* @annotation, @spec: NULL = none */
static void tell_node(struct bench *b, const char *uid, const char *annotation, const char *spec)
{
        char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"%s\","
                       "\"resourceVersion\":\"5\"%s%s%s},\"spec\":{%s}}",
                       uid, annotation ? ",\"annotations\":{\"lkgfs.io/config-source\":\"" : "",
                       annotation ? annotation : "", annotation ? "\"}" : "", spec ? spec : "");
        fake_tell("nodes", text);
        settle(b);
}

static const char *configmap_json(const char *name, const char *version, const char *annotations, int pods)
{
        static char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":"
                       "\"kube-system\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%s\","
                       "\"annotations\":{%s}},\"data\":{\"kubelet\":\"maxPods: %d\\n\"}}",
                       name, name, version, annotations, pods);
        return text;
}

static void tell_configmap(struct bench *b, const char *version, const char *annotations, int pods)
{
        fake_tell("configmaps", configmap_json("cfg", version, annotations, pods));
        settle(b);
}

/* Version 1 of kube-system/cfg is assigned, by the annotation. */
static void follow(struct bench *b, const char *remote)
{
        begin(b, remote);
        tell_node(b, "node-1", "kube-system/cfg", NULL);
        (void)ask(b);
        tell_configmap(b, "1", "", 41);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        carry_out(b);
}

/* ---- the order ---- */

TEST(test_the_first_place_that_says_anything_counts)
{
        static const struct {
                const char *config, *annotation, *spec;
                enum lkg_reference_place place;
                const char *followed; /* NULL = no object */
        } rows[] = {
                { STATIC, "kube-system/cfg", SPEC, LKG_PLACE_NODE_ANNOTATION, "cfg" },
                { STATIC, NULL, SPEC, LKG_PLACE_NODE_SPEC, "old" },
                { STATIC, NULL, NULL, LKG_PLACE_STATIC, "fixed" },
                { "", NULL, NULL, LKG_PLACE_NONE, NULL },
                { STATIC, "local", SPEC, LKG_PLACE_NODE_ANNOTATION, NULL },
                { STATIC, "nonsense", SPEC, LKG_PLACE_NODE_ANNOTATION, NULL },
                { STATIC, "other/cfg", SPEC, LKG_PLACE_NODE_ANNOTATION, NULL },
                { STATIC ",\"references\":[\"nodeSpec\",\"nodeAnnotation\"]", "kube-system/cfg", SPEC,
                  LKG_PLACE_NODE_SPEC, "old" },
                { STATIC ",\"references\":[\"static\",\"nodeAnnotation\"]", "kube-system/cfg", SPEC,
                  LKG_PLACE_STATIC, "fixed" },
                { ",\"references\":[\"static\",\"nodeAnnotation\"]", "kube-system/cfg", NULL,
                  LKG_PLACE_NODE_ANNOTATION, "cfg" }, /* static is not set */
                { ",\"file\":\"/nowhere\"", NULL, NULL, LKG_PLACE_FILE, NULL },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                void *one = NULL;
                struct bench *b;

                assert_int_equal(setup(&one), 0);
                b = one;
                begin(b, rows[i].config);
                tell_node(b, "node-1", rows[i].annotation, rows[i].spec);
                (void)ask(b);
                if (b->answer.place != rows[i].place)
                        fail_msg("row %zu: %s", i, lkg_reference_place_name(b->answer.place));
                if (rows[i].followed)
                        assert_string_equal(fake_find("configmaps")->name, rows[i].followed);
                else
                        assert_null(fake_find("configmaps"));
                assert_int_equal(teardown(&one), 0);
        }
}

TEST_WITH(test_without_a_place_there_is_no_reference, setup, teardown)
{
        struct bench *b = *state;

        fake_credential(LKG_CREDENTIAL_NONE);
        begin(b, "");
        UNKNOWN(b, "no reference yet");
        assert_int_equal(b->answer.place, LKG_PLACE_NONE);
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
}

TEST_WITH(test_without_a_store_the_server_is_not_asked, setup, teardown)
{
        struct bench *b = *state;

        begin_with(b, STATIC, /* wanted= */ false);
        UNKNOWN(b, "no reference yet");
        assert_null(lkg_places_findings(b->places));
        assert_null(fake_find("nodes"));
}

/* ---- unknown and local ---- */

TEST_WITH(test_a_node_that_was_not_read_is_unknown, setup, teardown)
{
        struct bench *b = *state;

        begin(b, STATIC);
        UNKNOWN(b, "failed to read Node n1: no answer yet"); /* and static is not asked */
        assert_null(fake_find("configmaps"));
        fake_fail("nodes", LKG_API_FORBIDDEN, "get nodes n1 is forbidden", 1);
        settle(b);
        UNKNOWN(b, "failed to read Node n1: get nodes n1 is forbidden");
        fake_tell("nodes", NULL);
        settle(b);
        UNKNOWN(b, "failed to read Node n1: not found");
}

TEST_WITH(test_an_outage_is_unknown_after_a_while, setup, teardown)
{
        struct bench *b = *state;

        follow(b, "");
        fake_fail("nodes", LKG_API_UNREACHABLE, "connection refused", 290);
        settle(b);
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
        fake_fail("nodes", LKG_API_UNREACHABLE, "connection refused", 301);
        settle(b);
        UNKNOWN(b, "API server not reached since ");
        assert_non_null(fake_find("configmaps")); /* it may be named again */
}

TEST_WITH(test_what_cannot_be_understood_is_unknown, setup, teardown)
{
        struct bench *b = *state;

        follow(b, "");
        tell_node(b, "node-1", "nonsense", NULL);
        UNKNOWN(b, "invalid NodeConfigSource, \"nonsense\" is not a reference");
        assert_null(fake_find("configmaps"));
        tell_node(b, "node-1", "other/cfg", NULL);
        UNKNOWN(b, "ConfigMap other/cfg is not one of remote.allowedSources");
        assert_null(fake_find("configmaps"));
}

TEST_WITH(test_only_who_said_it_takes_it_back_by_silence, setup, teardown)
{
        struct bench *b = *state;

        begin(b, "");
        tell_node(b, "node-1", NULL, NULL);
        assert_int_equal(ask(b), LKG_PLACES_LOCAL); /* nothing is assigned */
        tell_node(b, "node-1", "kube-system/cfg", NULL);
        (void)ask(b);
        tell_configmap(b, "1", "", 41);
        (void)ask(b);
        carry_out(b);
        tell_node(b, "node-2", NULL, NULL);
        UNKNOWN(b, "node n1 does not say, and it is not the node that did (UID node-1)");
        tell_node(b, "node-1", NULL, NULL);
        assert_int_equal(ask(b), LKG_PLACES_LOCAL);
        tell_node(b, "node-2", "local", NULL); /* an explicit local counts from any Node */
        assert_int_equal(ask(b), LKG_PLACES_LOCAL);
}

/* ---- a ConfigMap ---- */

TEST_WITH(test_a_configmap_comes_with_its_source_and_the_node, setup, teardown)
{
        struct bench *b = *state;

        begin(b, "");
        tell_node(b, "node-1", "kube-system/cfg", NULL);
        UNKNOWN(b, "failed to download ConfigMap with name cfg from namespace kube-system: no answer yet");
        assert_null(b->answer.node_uid);
        b->n_turns = 0;
        tell_configmap(b, "1", "", 41);
        assert_int_equal(b->n_turns, 1);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        assert_string_equal(b->answer.source.uid, "uid-cfg");
        assert_string_equal(b->answer.source.version, "1");
        assert_string_equal(b->answer.configmap->name, "cfg");
        assert_string_equal(b->answer.node_uid, "node-1");
        assert_true(b->answer.again_at_ns == UINT64_MAX);
        carry_out(b);
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
        tell_node(b, "node-2", "kube-system/cfg", NULL); /* another Node with the same reference */
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
        assert_string_equal(b->answer.node_uid, "node-2");
        assert_string_equal(b->answer.source.uid, "uid-cfg");
        fake_tell("configmaps", NULL);
        settle(b);
        UNKNOWN(b, "kube-system: not found");
}

TEST_WITH(test_no_node_refers_to_a_static_one, setup, teardown)
{
        struct bench *b = *state;

        begin(b, STATIC ONLY("static"));
        (void)ask(b);
        fake_tell("configmaps", configmap_json("fixed", "1", "", 41));
        settle(b);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        assert_null(b->answer.node_uid);
}

TEST_WITH(test_what_could_not_be_carried_out_is_said_again, setup, teardown)
{
        struct bench *b = *state;

        follow(b, "");
        b->carried_out = false;
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED); /* no place has said anything new */
        lkg_places_ask(b->places);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        carry_out(b);
        lkg_places_ask(b->places);
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
        lkg_places_again(b->places);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
}

TEST_WITH(test_of_a_flood_of_versions_only_some_count, setup, teardown)
{
        struct bench *b = *state;

        follow(b, "");
        b->places->apiserver->pace.full_ns = lkg_boottime_ns() + 600 * LKG_NSEC_PER_SEC; /* there was one */
        tell_configmap(b, "2", "", 42);
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
        assert_true(b->answer.again_at_ns < UINT64_MAX);
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
        assert_true(b->answer.again_at_ns < UINT64_MAX); /* it is not forgotten */
        b->places->apiserver->pace.full_ns = 0;
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        assert_string_equal(b->answer.source.version, "2");
}

/* ---- the rollout ---- */

#define HALT       "\"lkgfs.io/halt\":\"true\""
#define PERCENT(p) "\"lkgfs.io/rollout-percent\":\"" p "\""

TEST_WITH(test_the_rollout_holds_back_what_is_new, setup, teardown)
{
        struct bench *b = *state;

        follow(b, "");
        tell_configmap(b, "2", HALT, 42);
        assert_int_equal(ask(b), LKG_PLACES_WAITING);
        assert_string_equal(b->answer.words, "rollout halted");
        assert_string_equal(b->answer.node_uid, "node-1");
        tell_configmap(b, "3", PERCENT("ten"), 42);
        UNKNOWN(b, "rollout unclear: annotation lkgfs.io/rollout-percent is \"ten\"");
        tell_configmap(b, "4", HALT, 41); /* the content that is assigned */
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        assert_string_equal(b->answer.source.version, "4");
}

TEST_WITH(test_the_rollout_waits_for_the_node, setup, teardown)
{
        struct bench *b = *state;

        begin(b, STATIC ONLY("static"));
        (void)ask(b);
        fake_tell("configmaps", configmap_json("fixed", "1", PERCENT("99.999"), 41));
        settle(b);
        assert_int_equal(ask(b), LKG_PLACES_WAITING);
        assert_string_equal(b->answer.words, "waiting for the rollout: the Node was not read yet");
        fake_fail("nodes", LKG_API_FORBIDDEN, "get nodes n1 is forbidden", 1);
        settle(b);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP); /* by its name */
}

/* ---- a file ---- */

static void put(struct bench *b, const char *name, const char *text)
{
        char path[TMPDIR_MAX + 16];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/%s", b->top, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        assert_int_equal(close(fd), 0);
}

TEST_WITH(test_a_file_is_a_place, setup, teardown)
{
        struct bench *b = *state;
        char remote[128];

        (void)snprintf(remote, sizeof(remote), ",\"file\":\"%s/cm\"" ONLY("file"), b->top);
        begin(b, remote);
        UNKNOWN(b, "no reference yet");
        put(b, "cm", configmap_json("cfg", "7", HALT, 47)); /* a rollout is not for files */
        assert_int_equal(ask_about(b, NULL), LKG_PLACES_UNCHANGED);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        assert_int_equal(b->answer.place, LKG_PLACE_FILE);
        assert_string_equal(b->answer.source.version, "7");
        assert_null(b->answer.node_uid);
        carry_out(b);
        assert_int_equal(ask(b), LKG_PLACES_UNCHANGED);
        lkg_places_again(b->places);
        assert_true(lkg_places_looks_at_file(b->places));
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        put(b, "cm", "nonsense");
        assert_int_equal(ask(b), LKG_PLACES_UNKNOWN);
        put(b, "cm", "local\n");
        assert_int_equal(ask(b), LKG_PLACES_LOCAL);
}

TEST_WITH(test_a_file_counts_while_the_node_says_nothing, setup, teardown)
{
        struct bench *b = *state;
        char remote[128];

        (void)snprintf(remote, sizeof(remote), ",\"file\":\"%s/cm\"", b->top);
        put(b, "cm", configmap_json("cfg", "7", "", 47));
        begin(b, remote);
        UNKNOWN(b, "failed to read Node n1: no answer yet");
        tell_node(b, "node-1", NULL, NULL);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP);
        carry_out(b);
        tell_node(b, "node-1", "local", NULL);
        assert_int_equal(ask(b), LKG_PLACES_LOCAL);
        tell_node(b, "node-1", NULL, NULL);
        assert_int_equal(ask(b), LKG_PLACES_CONFIGMAP); /* it may have changed meanwhile */
}

TEST_WITH(test_another_configuration, setup, teardown)
{
        struct bench *b = *state;
        struct lkg_config *before;

        follow(b, "");
        before = b->config;
        b->config = configure(",\"allowedSources\":[\"other/*\"]");
        lkg_places_set_config(b->places, b->config);
        lkg_config_free(before);
        lkg_places_open(b->places, true, false);
        UNKNOWN(b, "ConfigMap kube-system/cfg is not one of remote.allowedSources");
        assert_null(fake_find("configmaps"));
        assert_non_null(fake_find("nodes")); /* as before */
}
