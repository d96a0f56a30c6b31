/* SPDX-License-Identifier: Apache-2.0 */
/* Resources as paths, and the meaning of an API server's replies. */
#define UNIT_OWN_MAIN

#include "unit.h"
#include "core/remote/api.h"

#include <lkg/text.h>

static const struct lkg_resource configmap = { "v1", "configmaps", "ConfigMap", "kube-system", "cm", NULL };
static const struct lkg_resource node = { "v1", "nodes", "Node", NULL, "n1", NULL };
static const struct lkg_resource node_status = { "v1", "nodes", "Node", NULL, "n1", "status" };
static const struct lkg_resource event = { "v1", "events", "Event", "default", NULL, NULL };
static const struct lkg_resource lease = { "coordination.k8s.io/v1", "leases", "Lease", "x", "l", NULL };

/* ---- paths ---- */

TEST(test_paths)
{
        static const struct lkg_resource odd = { "v1", "nodes", "Node", NULL, "a&b=c d#\xc3\xa9", NULL },
                                         nodes = { "v1", "nodes", "NodeList", NULL, NULL, NULL };
#define WATCH "?watch=true&allowWatchBookmarks=true"
        static const struct {
                struct lkg_request request;
                const char *want;
        } rows[] = {
                { { .verb = "get", .resource = &configmap },
                  "/api/v1/namespaces/kube-system/configmaps/cm" },
                { { .verb = "update", .resource = &node }, "/api/v1/nodes/n1" },
                { { .verb = "patch", .resource = &node_status }, "/api/v1/nodes/n1/status" },
                { { .verb = "create", .resource = &event }, "/api/v1/namespaces/default/events" },
                { { .verb = "get", .resource = &lease },
                  "/apis/coordination.k8s.io/v1/namespaces/x/leases/l" },
                { { .verb = "watch", .resource = &configmap, .version = "123", .seconds = 300 },
                  "/api/v1/namespaces/kube-system/configmaps" WATCH
                  "&fieldSelector=metadata.name%3Dcm&timeoutSeconds=300&resourceVersion=123" },
                { { .verb = "watch", .resource = &odd, .seconds = 5 },
                  "/api/v1/nodes" WATCH
                  "&fieldSelector=metadata.name%3Da%26b%3Dc%20d%23%C3%A9&timeoutSeconds=5" },
                { { .verb = "watch", .resource = &node, .version = "1&watch=false", .seconds = 5 },
                  "/api/v1/nodes" WATCH "&fieldSelector=metadata.name%3Dn1&timeoutSeconds=5"
                  "&resourceVersion=1%26watch%3Dfalse" },
                { { .verb = "watch", .resource = &node, .version = "", .seconds = 5 },
                  "/api/v1/nodes" WATCH "&fieldSelector=metadata.name%3Dn1&timeoutSeconds=5"
                  "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan" },
                { { .verb = "watch",
                    .resource = &nodes,
                    .label = "x/y",
                    .value = "z",
                    .version = "7",
                    .seconds = 5 },
                  "/api/v1/nodes" WATCH "&labelSelector=x%2Fy%3Dz&timeoutSeconds=5&resourceVersion=7" },
                { { .verb = "list", .resource = &nodes }, "/api/v1/nodes" },
                { { .verb = "list", .resource = &nodes, .limit = 100 }, "/api/v1/nodes?limit=100" },
                { { .verb = "list",
                    .resource = &nodes,
                    .label = "x",
                    .value = "y",
                    .limit = 5,
                    .token = "a&b=" },
                  "/api/v1/nodes?labelSelector=x%3Dy&limit=5&continue=a%26b%3D" },
        };
#undef WATCH

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf path = LKG_BUF_INIT;

                assert_int_equal(lkg_api_path(&rows[i].request, &path, NULL), 0);
                assert_string_equal(path.data, rows[i].want);
        }
}

TEST(test_names_that_would_lead_elsewhere_are_refused)
{
        static const char *const names[] = { "", ".", "..", "a/b", "../x", "a%2fb" }, *const verbs[] = {
                "get", "watch"
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names) * LKG_ARRAY_SIZE(verbs); i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf path = LKG_BUF_INIT;
                struct lkg_resource resource = configmap;
                const struct lkg_request request = { .verb = verbs[i % 2], .resource = &resource };
                struct lkg_error error = { 0 };

                resource.name = names[i / 2];
                assert_int_equal(lkg_api_path(&request, &path, &error), -EINVAL);
                assert_non_null(strstr(error.message, "is no name of an object"));
                resource = configmap;
                resource.ns = names[i / 2];
                assert_int_equal(lkg_api_path(&request, &path, &error), -EINVAL);
                assert_non_null(strstr(error.message, "is no namespace of an object"));
        }
}

TEST(test_descriptions)
{
        char text[64];

        lkg_api_describe(&configmap, text, sizeof(text));
        assert_string_equal(text, "configmaps kube-system/cm");
        lkg_api_describe(&node_status, text, sizeof(text));
        assert_string_equal(text, "nodes/status n1");
        lkg_api_describe(&event, text, sizeof(text));
        assert_string_equal(text, "events default");
        lkg_api_describe(&(struct lkg_resource){ .plural = "nodes" }, text, sizeof(text));
        assert_string_equal(text, "nodes");
}

TEST(test_copies_have_texts_of_their_own)
{
        char name[] = "cm";
        struct lkg_resource resource = configmap, copy;

        resource.name = name;
        lkg_resource_copy(&resource, &copy);
        name[0] = 'x';
        assert_string_equal(copy.name, "cm");
        assert_string_equal(copy.ns, "kube-system");
        assert_null(copy.subresource);
        lkg_resource_deinit(&copy);
}

/* ---- answers ---- */

static struct lkg_value *object; /* of the last answer */

static struct lkg_api_answer judge(const char *verb, const struct lkg_resource *resource,
                                   const struct lkg_http_result *result)
{
        const struct lkg_api_question question = { verb, resource, strcmp(verb, "watch") == 0 };
        struct lkg_api_answer answer;

        object = lkg_value_unref(object);
        object = lkg_api_judge(&question, result, &answer);
        assert_ptr_equal(answer.object, object);
        return answer;
}

static struct lkg_api_answer reply(const struct lkg_resource *resource, unsigned status, const char *body)
{
        const struct lkg_http_result result = { .status = status, .body = body, .size = strlen(body) };

        return judge("get", resource, &result);
}

TEST(test_status_codes)
{
        static const struct {
                unsigned http;
                enum lkg_api_status want;
        } rows[] = {
                { 301, LKG_API_INVALID }, { 302, LKG_API_INVALID },      { 307, LKG_API_INVALID },
                { 400, LKG_API_INVALID }, { 401, LKG_API_UNAUTHORIZED }, { 403, LKG_API_FORBIDDEN },
                { 404, LKG_API_INVALID }, { 405, LKG_API_INVALID },      { 409, LKG_API_CONFLICT },
                { 410, LKG_API_GONE },    { 422, LKG_API_INVALID },      { 429, LKG_API_BUSY },
                { 500, LKG_API_BUSY },    { 503, LKG_API_BUSY },         { 504, LKG_API_BUSY },
                { 599, LKG_API_BUSY },    { 600, LKG_API_INVALID },      { 999, LKG_API_INVALID },
                { 0, LKG_API_INVALID },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_api_answer answer = reply(&configmap, rows[i].http, "");

                assert_int_equal(answer.status, rows[i].want);
                assert_int_equal(answer.http_status, rows[i].http);
                assert_non_null(strstr(answer.words, "get configmaps kube-system/cm"));
                assert_null(answer.object);
        }
}

TEST(test_only_a_status_says_that_there_is_no_object)
{
        struct lkg_api_answer answer = reply(
                &configmap, 404, "{\"kind\":\"Status\",\"message\":\"configmaps \\\"cm\\\" not found\"}");

        assert_int_equal(answer.status, LKG_API_NOT_FOUND);
        assert_string_equal(answer.words, "get configmaps kube-system/cm: there is no such object (404): "
                                          "\"configmaps 'cm' not found\"");
        answer = reply(&configmap, 404, "<html>not found</html>");
        assert_int_equal(answer.status, LKG_API_INVALID);
}

TEST(test_forbidden_names_verb_resource_name_and_what_the_server_said)
{
        struct lkg_http_result result = {
                .status = 403,
                .body = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
                        "\"message\":\"nodes \\\"n1\\\" is forbidden: "
                        "no\\nway\",\"reason\":\"Forbidden\",\"code\":403}",
        };
        struct lkg_api_answer answer;

        result.size = strlen(result.body);
        answer = judge("patch", &node_status, &result);
        assert_int_equal(answer.status, LKG_API_FORBIDDEN);
        assert_string_equal(answer.words,
                            "patch nodes/status n1 is forbidden (403): \"nodes 'n1' is forbidden: no?way\"");
        answer = judge("watch", &configmap, &result);
        assert_non_null(strstr(answer.words, "watch configmaps kube-system/cm is forbidden (403)"));
}

TEST(test_what_is_no_status_is_quoted_as_it_is)
{
        struct lkg_api_answer answer = reply(&configmap, 404, "404 page not found\nand more");

        assert_string_equal(
                answer.words,
                "get configmaps kube-system/cm: unexpected answer (404): \"404 page not found\"");
        answer = reply(&configmap, 500, "{\"kind\":\"Status\",\"message\":7}");
        assert_non_null(strstr(answer.words, "\"{'kind':'Status','message':7}\""));
        answer = reply(&configmap, 500, "{broken");
        assert_non_null(strstr(answer.words, "(500): \"{broken\""));
        answer = reply(&configmap, 500, "\x1b[2J\xff\x01");
        assert_non_null(strstr(answer.words, "(500): \"?[2J??\""));
}

TEST(test_words_are_bounded_and_hide_what_urls_have)
{
        char body[4000] =
                "{\"kind\":\"Status\",\"message\":\"see https://u:geheim@x.example/y?token=geheim for ";
        struct lkg_api_answer answer;
        size_t n = strlen(body);

        for (; n + 4 < sizeof(body) - 10; n += 2)
                memcpy(body + n, "\xc3\xa4", 2);
        (void)strcpy(body + n, "\"}");
        answer = reply(&configmap, 500, body);
        assert_true(strlen(answer.words) < 400);
        assert_null(strstr(answer.words, "geheim"));
        assert_non_null(strstr(answer.words, "x.example"));
        n = strlen(answer.words);
        assert_string_equal(answer.words + n - 4, "...\"");
        for (size_t i = 0, length; i < n; i += length) /* no character is split */
                assert_true((length = lkg_utf8_length(answer.words + i, n - i)) > 0);
}

TEST(test_an_endless_name_is_cut)
{
        char name[600];
        struct lkg_resource resource = configmap;
        struct lkg_api_answer answer;

        memset(name, 'n', sizeof(name));
        name[sizeof(name) - 1] = '\0';
        resource.name = name;
        answer = reply(&resource, 403, "no");
        assert_non_null(strstr(answer.words, "is forbidden (403): \"no\""));
}

TEST(test_busy_says_how_long)
{
        const struct lkg_http_result result = {
                .status = 429,
                .body = "slow down",
                .size = 9,
                .retry_after_ns = 7 * LKG_NSEC_PER_SEC,
        };
        struct lkg_api_answer answer = judge("get", &configmap, &result);

        assert_int_equal(answer.status, LKG_API_BUSY);
        assert_int_equal(answer.retry_after_ns, 7 * LKG_NSEC_PER_SEC);
        assert_string_equal(answer.words,
                            "get configmaps kube-system/cm: the server is busy (429), asks to wait 7 s: "
                            "\"slow down\"");
}

#define OBJECT(v, k, ns, name)                                                           \
        "{\"apiVersion\":\"" v "\",\"kind\":\"" k "\",\"metadata\":{\"namespace\":\"" ns \
        "\",\"name\":\"" name "\"}}"

TEST(test_an_object_is_the_one_that_was_asked_for)
{
        struct lkg_api_answer answer =
                reply(&configmap, 200, OBJECT("v1", "ConfigMap", "kube-system", "cm"));

        assert_int_equal(answer.status, LKG_API_OK);
        assert_non_null(answer.object);
        assert_string_equal(answer.words, "");
        answer = reply(&node, 200,
                       "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}");
        assert_int_equal(answer.status, LKG_API_OK);
        answer = reply(&event, 201, OBJECT("v1", "Event", "default", "anything.17"));
        assert_int_equal(answer.status, LKG_API_OK);
}

TEST(test_another_object_is_not_believed)
{
        static const struct {
                const char *body, *words;
        } rows[] = {
                { OBJECT("v1", "Secret", "kube-system", "cm"),
                  "the answer has kind \"Secret\" instead of \"ConfigMap\"" },
                { OBJECT("v2", "ConfigMap", "kube-system", "cm"),
                  "the answer has apiVersion \"v2\" instead of \"v1\"" },
                { OBJECT("v1", "ConfigMap", "default", "cm"),
                  "the answer has namespace \"default\" instead of \"kube-system\"" },
                { OBJECT("v1", "ConfigMap", "kube-system", "cm2"),
                  "the answer has name \"cm2\" instead of \"cm\"" },
                { "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"kube-"
                  "system\"}}",
                  "the answer has name missing instead of \"cm\"" },
                { "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":[]}",
                  "the answer has no metadata" },
                { "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}", "the answer has no metadata" },
                { "[]", "the answer is not an object" },
                { "null", "the answer is not an object" },
                { "7", "the answer is not an object" },
                { "", "the answer is not JSON" },
                { "<html>", "the answer is not JSON" },
                { "{\"apiVersion\":\"v1\",", "the answer is not JSON: line 1 column" },
                { OBJECT("v1", "ConfigMap", "kube-system", "cm") "x", "the answer is not JSON" },
                { "apiVersion: v1\nkind: ConfigMap\n", "the answer is not JSON" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_api_answer answer = reply(&configmap, 200, rows[i].body);

                assert_int_equal(answer.status, LKG_API_INVALID);
                assert_null(answer.object);
                if (!strstr(answer.words, rows[i].words))
                        fail_msg("%s: %s", rows[i].body, answer.words);
        }
}

TEST(test_transport_errors)
{
        static const struct {
                int error;
                enum lkg_api_status want;
        } rows[] = {
                { -ETIMEDOUT, LKG_API_UNREACHABLE }, { -ECONNREFUSED, LKG_API_UNREACHABLE },
                { -EPROTO, LKG_API_UNREACHABLE },    { -ENOBUFS, LKG_API_UNREACHABLE },
                { -ENOMEM, LKG_API_UNREACHABLE },    { -EFBIG, LKG_API_TOO_LARGE },
                { -EBADMSG, LKG_API_INVALID },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const struct lkg_http_result result = {
                        .error = rows[i].error,
                        .words = "api.example:6443: connection refused",
                        .status = 200,
                        .body = OBJECT("v1", "ConfigMap", "kube-system", "cm"),
                        .size = 10,
                };
                struct lkg_api_answer answer = judge("get", &configmap, &result);

                assert_int_equal(answer.status, rows[i].want);
                assert_null(answer.object);
                assert_string_equal(answer.words,
                                    "get configmaps kube-system/cm: api.example:6443: connection refused");
        }
}

TEST(test_the_end_of_a_watch_has_no_object)
{
        const struct lkg_http_result result = { .status = 200 };
        struct lkg_api_answer answer = judge("watch", &configmap, &result);

        assert_int_equal(answer.status, LKG_API_OK);
        assert_null(answer.object);
}

TEST(test_every_status_has_a_name)
{
        for (unsigned s = 0; s < _LKG_API_STATUS_MAX; s++)
                assert_true(strlen(lkg_api_status_name((enum lkg_api_status)s)) > 1);
}

static int forget_object(void **state)
{
        (void)state;
        object = lkg_value_unref(object);
        return 0;
}

int main(void)
{
        return run_all(NULL, forget_object);
}
