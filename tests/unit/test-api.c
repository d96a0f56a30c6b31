/* SPDX-License-Identifier: Apache-2.0 */
/* Resources as paths, and the meaning of an API server's replies: rows/api.rows. */
#include <lkg/text.h>

#include "core/remote/api.h"
#include "rows.h"

static const struct lkg_resource configmap = { "v1", "configmaps", "ConfigMap", "kube-system", "cm", NULL };

static struct lkg_resource resource_of(const char *name)
{
        static char long_name[600];
        const struct {
                const char *name;
                struct lkg_resource resource;
        } rows[] = {
                { "configmap", configmap },
                { "node", { "v1", "nodes", "Node", NULL, "n1", NULL } },
                { "status", { "v1", "nodes", "Node", NULL, "n1", "status" } },
                { "event", { "v1", "events", "Event", "default", NULL, NULL } },
                { "lease", { "coordination.k8s.io/v1", "leases", "Lease", "x", "l", NULL } },
                { "odd", { "v1", "nodes", "Node", NULL, "a&b=c d#\xc3\xa9", NULL } },
                { "nodes", { "v1", "nodes", "NodeList", NULL, NULL, NULL } },
                { "long", { "v1", "configmaps", "ConfigMap", "kube-system", long_name, NULL } },
        };
        size_t i = 0;

        memset(long_name, 'n', sizeof(long_name) - 1);
        while (strcmp(rows[i].name, name) != 0)
                assert_true(++i < LKG_ARRAY_SIZE(rows));
        return rows[i].resource;
}

/* The value of a part `name=VALUE`; NULL without one. */
static const char *member(const struct question *q, const char *name)
{
        size_t size = strlen(name);

        for (size_t i = 2; i < q->n_parts; i++)
                if (strncmp(q->parts[i], name, size) == 0 && q->parts[i][size] == '=')
                        return q->parts[i] + size + 1;
        return NULL;
}

static unsigned number(const char *text)
{
        return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static void say_path(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_resource resource = resource_of(q->parts[1]);
        const struct lkg_request request = {
                .verb = q->parts[0],
                .resource = &resource,
                .version = member(q, "version"),
                .label = member(q, "label"),
                .value = member(q, "value"),
                .token = member(q, "token"),
                .seconds = number(member(q, "seconds")),
                .limit = number(member(q, "limit")),
        };
        struct lkg_error err = { 0 };
        int r;

        if (member(q, "name"))
                resource.name = member(q, "name");
        if (member(q, "ns"))
                resource.ns = member(q, "ns");
        r = lkg_api_path(&request, ret, &err);
        if (r < 0) {
                lkg_buf_reset(ret);
                lkg_buf_printf(ret, "%s: %s", strerrorname_np(-r), err.message);
        }
}

static void say_description(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_resource resource = resource_of(q->text);
        char text[64];

        lkg_api_describe(&resource, text, sizeof(text));
        lkg_buf_puts(ret, text);
}

static void say_answer(const char *verb, const char *name, const struct lkg_http_result *result,
                       struct lkg_buf *ret)
{
        const struct lkg_resource resource = resource_of(name);
        const struct lkg_api_question question = { verb, &resource, strcmp(verb, "watch") == 0 };
        struct lkg_api_answer answer;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = lkg_api_judge(&question, result, &answer);

        assert_ptr_equal(answer.object, object);
        assert_true(result->error || answer.http_status == result->status);
        lkg_buf_printf(ret, "%s%s", lkg_api_status_name(answer.status), object ? ", an object" : "");
        if (answer.retry_after_ns)
                lkg_buf_printf(ret, ", again in %u s", (unsigned)(answer.retry_after_ns / LKG_NSEC_PER_SEC));
        if (*answer.words)
                lkg_buf_printf(ret, ": %s", answer.words);
}

static void say_reply(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_http_result result = {
                .status = number(q->parts[2]),
                .body = q->parts[3],
                .size = strlen(q->parts[3]),
                .retry_after_ns = q->n_parts > 4 ? number(q->parts[4]) * LKG_NSEC_PER_SEC : 0
        };

        say_answer(q->parts[0], q->parts[1], &result, ret);
}

static void say_error(const struct question *q, struct lkg_buf *ret)
{
        static const char body[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                   "\"namespace\":\"kube-system\",\"name\":\"cm\"}}";
        struct lkg_http_result result = { .words = "api.example:6443: connection refused",
                                          .status = 200,
                                          .body = body,
                                          .size = sizeof(body) - 1 };
        const char *name;

        while (!(name = strerrorname_np(-result.error)) || strcmp(name, q->text) != 0)
                result.error--;
        say_answer("get", "configmap", &result, ret);
}

static const struct operation operations[] = { { "path", say_path, 0 },
                                               { "describe", say_description, 0 },
                                               { "reply", say_reply, 0 },
                                               { "error", say_error, 0 },
                                               { 0 } };

ROWS(api, operations)

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

TEST(test_every_status_has_a_name)
{
        for (unsigned s = 0; s < _LKG_API_STATUS_MAX; s++)
                assert_true(strlen(lkg_api_status_name((enum lkg_api_status)s)) > 1);
}
