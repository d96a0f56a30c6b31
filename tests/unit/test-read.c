/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others write and the engine reads: kubeconfigs, ConfigMaps, Nodes, references, identities, annotations, times, and its own
 * settings: rows/read.rows. Rules: docs/specification.md 4.1, 4.2, 4.3, 4.14.
 */
#define UNIT_OWN_MAIN

#include <inttypes.h>

#include <lkg/config.h>
#include <lkg/documents.h>
#include <lkg/http.h>
#include <lkg/lifecycle.h>
#include <lkg/limits.h>
#include <lkg/objects.h>
#include <lkg/process.h>

#include "rows.h"

#include "core/remote/api.h"
#include "core/remote/http-internal.h"

#define NODE "6f1c2a34-9d1e-4b7f-8a55-0c1d2e3f4a5b" /* bucket 4.455; with the salt 2: 0.260 */
#define S    LKG_NSEC_PER_SEC
#define NOW  (UINT64_C(1794153600) * S) /* Sun, 08 Nov 2026 16:00:00 GMT */

static void put_findings(const struct lkg_report *report, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_report_format(report, NULL);

        assert_non_null(text);
        lkg_buf_puts(ret, text);
        assert_null(strstr(text, "s3cret"));
}

/* The first part, or the whole text; NULL if it is no JSON. */
static struct lkg_value *decoded(const char *text)
{
        struct lkg_value *value = NULL;

        if (lkg_decode_json(text, strlen(text), 0, NULL, NULL, &value) < 0)
                fail_msg("no JSON: %s", text);
        return value;
}

/* Return: true if it is right; else it is said why not. */
static bool right(int r, const struct lkg_error *err, struct lkg_buf *ret)
{
        if (r >= 0)
                return true;
        lkg_buf_printf(ret, "%s: %s", r == -EINVAL ? "wrong" : strerrorname_np(-r), err->message);
        return false;
}

/* ---- kubeconfigs ---- */

static void put(const char *name, const char *value, struct lkg_buf *ret)
{
        if (value)
                lkg_buf_printf(ret, "%s=%s ", name, value);
}

static void put_file(const char *name, const struct lkg_file_or_data *file, struct lkg_buf *ret)
{
        if (file->path || file->data)
                lkg_buf_printf(ret, "%s=%s%s (%s %u:%u) ", name,
                               file->path ? file->path : "data:", file->data ? file->data : "",
                               file->field ? file->field : "no field", file->line, file->column);
}

static void put_kubeconfig(const struct lkg_kubeconfig *k, struct lkg_buf *ret)
{
        const struct lkg_identity *id = &k->identity;

        put("file", k->file, ret);
        put("server", id->server, ret);
        put("tls-server-name", id->tls_server_name, ret);
        put("proxy", id->proxy_url, ret);
        put("insecure", id->insecure ? "yes" : NULL, ret);
        put("disable-compression", id->disable_compression ? "yes" : NULL, ret);
        put_file("ca", &k->ca, ret);
        put_file("certificate", &k->certificate, ret);
        put_file("key", &k->key, ret);
        put_file("token-file", &k->token_file, ret);
        put("token", id->token, ret);
        put("username", id->username, ret);
        put("password", id->password, ret);
        put("as", id->impersonate, ret);
        if (!k->exec)
                return;
        for (char **word = k->exec->argv; *word; word++)
                put("word", *word, ret);
        for (char **word = k->exec->env; word && *word; word++)
                put("env", *word, ret);
        put("version", k->exec->api_version, ret);
        put("cluster-info", k->exec->provide_cluster_info ? "yes" : NULL, ret);
}

/*
 * A whole file; or, with `parts`, what stands for cluster, user and the rest (`-`: as usual). Then the cluster stands in line 1 from column
 * 31, the user in line 2 from column 25.
 */
static void say_kubeconfig(const struct question *q, struct lkg_buf *ret)
{
        static const char *const usual[] = {
                "server: 'https://h:6443'", "token: t0ken",
                "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
        };
        const struct lkg_kubeconfig_options options = { "/k/config", rows_has(q, "exec"),
                                                        rows_has(q, "insecure"), NULL };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_kubeconfig *k = NULL;
        const char *parts[3];
        int r;

        for (size_t i = 0; i < 3; i++)
                parts[i] = i < q->n_parts && strcmp(q->parts[i], "-") != 0 ? q->parts[i] : usual[i];
        if (rows_has(q, "parts"))
                assert_true(
                        asprintf(&text,
                                 "clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n%s",
                                 parts[0], parts[1], parts[2]) > 0);
        else
                text = strdup(q->text);
        r = lkg_kubeconfig_parse(text, strlen(text), &options, &k, &report);
        assert_int_equal(r == 0, report.n_severity[LKG_ERROR] == 0);
        assert_int_equal(r == 0, k != NULL);
        if (k)
                put_kubeconfig(k, ret);
        put_findings(&report, ret);
        lkg_kubeconfig_free(k);
}

static void say_detected(const struct question *q, struct lkg_buf *ret)
{
        int r = lkg_kubeconfig_detect(q->text, q->size);

        lkg_buf_puts(ret, r > 0 ? "a kubeconfig" : r == 0 ? "something else" : "unknown");
}

/* Host and port as a pod has them in its environment; `-` is none. */
static void say_in_cluster(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_kubeconfig *k = NULL;
        struct lkg_error err = { 0 };
        int r = lkg_kubeconfig_in_cluster(strcmp(q->parts[0], "-") == 0 ? NULL : q->parts[0], q->parts[1],
                                          "/d", &k, &err);

        if (right(r, &err, ret))
                put_kubeconfig(k, ret);
        lkg_kubeconfig_free(k);
}

/* ---- objects ---- */

#define META                                                                                        \
        "\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"kube-system\"," \
        "\"name\":\"cfg\","

static void put_payload(const struct lkg_configmap *configmap, const char *key, struct lkg_buf *ret)
{
        struct lkg_error err = { 0 };
        const char *text;
        size_t size;

        lkg_buf_puts(ret, "; ");
        if (right(lkg_configmap_payload(configmap, key, &text, &size, &err), &err, ret)) {
                assert_int_equal(strlen(text), size);
                lkg_buf_printf(ret, "%s: %s", key, text);
        }
}

static void put_resolved(const struct lkg_configmap *configmap, const char *text, struct lkg_buf *ret)
{
        struct lkg_config_source source = { .uid = "before" };
        struct lkg_reference reference;
        struct lkg_error err = { 0 };

        lkg_buf_puts(ret, "; ");
        assert_int_equal(lkg_reference_from_text(text, strlen(text), &reference, NULL), 0);
        if (right(lkg_configmap_resolve(configmap, &reference, &source, &err), &err, ret))
                lkg_buf_printf(ret, "%s/%s@%s:%s %.12s", source.ns, source.uid, source.version, source.key,
                               source.sha256);
        else
                assert_string_equal(source.uid, "before");
}

/*
 * An object of the API server or, with `file`, of a file; the former passes the same checks when it comes decoded. @FULL and @META stand for
 * the beginning of one. Parts after it: `= KEY` asks for a payload, another one is a reference to it.
 */
static void say_configmap(const struct question *q, struct lkg_buf *ret)
{
        bool file = rows_has(q, "file");
        const struct lkg_configmap_options options = { .max_bytes = 3u << 20,
                                                       .from_file = file,
                                                       .file = file ? "cm.yaml" : "api" };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_configmap configmap = { 0 }, decoded_one = { 0 };
        struct lkg_error err = { 0 };
        const char *rest = q->parts[0];
        int r;

        if (strncmp(rest, "@META", 5) == 0 || strncmp(rest, "@FULL", 5) == 0)
                lkg_buf_printf(&text, "{" META "%s",
                               rest[1] == 'F' ? "\"uid\":\"u-1\",\"resourceVersion\":\"7\"}" : "");
        lkg_buf_puts(&text, text.size ? rest + 5 : rest);
        r = lkg_configmap_parse(text.data, text.size, &options, &configmap, &err);
        if (!right(r, &err, ret)) {
                assert_null(configmap.object);
                return;
        }
        lkg_buf_printf(ret, "%s/%s %s@%s", configmap.ns, configmap.name, configmap.uid, configmap.version);
        for (size_t i = 1; i < q->n_parts; i++)
                if (strncmp(q->parts[i], "= ", 2) == 0)
                        put_payload(&configmap, q->parts[i] + 2, ret);
                else if (strncmp(q->parts[i], "@ ", 2) == 0)
                        put("; annotation", lkg_configmap_annotation(&configmap, q->parts[i] + 2), ret);
                else
                        put_resolved(&configmap, q->parts[i], ret);
        if (!file)
                assert_int_equal(lkg_configmap_from_value(configmap.object, &decoded_one, &err), 0);
        lkg_configmap_deinit(&decoded_one);
        lkg_configmap_deinit(&configmap);
}

/* A decoded object, as the watch brings it. */
static void say_configmap_value(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_configmap configmap = { 0 };
        struct lkg_error err = { 0 };

        assert_true(asprintf(&text, "%s%s", *q->text == '@' ? "{" META : "",
                             *q->text == '@' ? q->text + 5 : q->text) > 0);
        value = decoded(text);
        if (right(lkg_configmap_from_value(value, &configmap, &err), &err, ret))
                lkg_buf_printf(ret, "%s/%s %s@%s", configmap.ns, configmap.name, configmap.uid,
                               configmap.version);
        else
                assert_null(configmap.object);
        lkg_configmap_deinit(&configmap);
}

static void put_reference(const struct lkg_reference *reference, struct lkg_buf *ret)
{
        if (reference->type == LKG_REFERENCE_LOCAL)
                lkg_buf_puts(ret, "local");
        else
                lkg_buf_printf(ret, "%s/%s/%s %s", reference->ns, reference->name, reference->key,
                               reference->uid);
}

static void say_reference(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_reference reference = { .ns = "before" };
        struct lkg_error err = { 0 };

        if (right(lkg_reference_from_text(q->text, q->size, &reference, &err), &err, ret))
                put_reference(&reference, ret);
        else
                assert_string_equal(reference.ns, "before");
}

/* Namespace, name, key, uid. */
static void say_reference_of(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_reference reference, same;
        struct lkg_error err = { 0 };
        char text[1024];

        memset(&same, 0xff, sizeof(same));
        if (!right(lkg_reference_from_parts(q->parts[0], q->parts[1], q->parts[2], q->parts[3], &reference,
                                            &err),
                   &err, ret))
                return;
        put_reference(&reference, ret);
        (void)snprintf(text, sizeof(text), "%s/%s/%s", reference.ns, reference.name, reference.key);
        assert_int_equal(lkg_reference_from_text(text, strlen(text), &same, NULL), 0);
        if (!*q->parts[3])
                assert_memory_equal(&reference, &same, sizeof(same));
}

/* Namespace and name, and the patterns that allow them. */
static void say_allowed(const struct question *q, struct lkg_buf *ret)
{
        bool allowed = lkg_reference_allowed(q->parts + 2, q->n_parts - 2, q->parts[0], q->parts[1]);

        lkg_buf_puts(ret, allowed ? "allowed" : "not allowed");
}

static void say_object(const struct question *q, struct lkg_buf *ret)
{
        static const struct lkg_resource configmap = { .group_version = "v1",
                                                       .plural = "configmaps",
                                                       .kind = "ConfigMap",
                                                       .ns = "kube-system",
                                                       .name = "c" };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = decoded(q->text);
        char version[LKG_IDENTIFIER_MAX + 1];
        struct lkg_error err = { 0 };
        struct lkg_object_id id;

        if (rows_has(q, "bookmark")) {
                if (right(lkg_object_read_version(value, "the watch sent", version, &err), &err, ret))
                        lkg_buf_puts(ret, version);
        } else if (rows_has(q, "status")) {
                lkg_buf_puts(ret, lkg_object_says_gone(value) ? "gone" : "not gone");
        } else if (right(lkg_object_read(value, &configmap, "the watch sent", &id, &err), &err, ret)) {
                lkg_buf_printf(ret, "%s@%s", id.uid, id.version);
        }
}

static void say_version_order(const struct question *q, struct lkg_buf *ret)
{
        static const char *const words[] = { [LKG_VERSION_OLDER] = "older",
                                             [LKG_VERSION_SAME] = "the same",
                                             [LKG_VERSION_NEWER] = "newer",
                                             [LKG_VERSION_OTHER] = "another" };

        lkg_buf_puts(ret, words[lkg_version_compare(q->parts[0], q->parts[1])]);
}

static void put_saying(const char *name, const struct lkg_saying *saying, struct lkg_buf *ret)
{
        static const char *const words[] = { [LKG_SAYS_UNKNOWN] = "unknown",
                                             [LKG_SAYS_NOTHING] = "nothing",
                                             [LKG_SAYS_LOCAL] = "local",
                                             [LKG_SAYS_REFERENCE] = "",
                                             [LKG_SAYS_INVALID] = "invalid: " };

        lkg_buf_printf(ret, ", %s says %s%s", name, words[saying->says], saying->fault);
        if (saying->says == LKG_SAYS_REFERENCE)
                put_reference(&saying->reference, ret);
}

/* A Node; with `annotations` or `configSource` only what stands there. */
static void say_node(const struct question *q, struct lkg_buf *ret)
{
        static const char id[] = "\"name\":\"n1\",\"uid\":\"u-1\",\"resourceVersion\":\"9\"";
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        struct lkg_node_object node = { .uid = "before" };
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_error err = { 0 };
        int r;

        if (rows_has(q, "annotations"))
                r = asprintf(&text, "{\"metadata\":{%s,\"annotations\":%s}}", id, q->text);
        else if (rows_has(q, "configSource"))
                r = asprintf(&text, "{\"metadata\":{%s},\"spec\":{\"configSource\":%s}}", id, q->text);
        else
                r = asprintf(&text, "%s", q->text);
        assert_true(r > 0);
        value = decoded(text);
        if (!right(lkg_node_read(value, "n1", &node, &err), &err, ret)) {
                assert_string_equal(node.uid, "before");
                return;
        }
        lkg_buf_printf(ret, "%s@%s", node.uid, node.version);
        put_saying("the annotation", &node.annotation, ret);
        put_saying("the spec", &node.spec, ret);
}

/* ---- identities ---- */

static void put_source(const struct lkg_config_source *source, struct lkg_buf *ret)
{
        char id[LKG_SOURCE_ID_MAX + 1];
        struct lkg_error err = { 0 };

        lkg_config_source_id(source, id);
        lkg_buf_printf(ret, "%zu bytes: %.60s; ", strlen(id), id);
        if (right(lkg_config_source_check(source, &err), &err, ret))
                lkg_buf_puts(ret, "right");
}

/* uid, version, key: the id, and whether each part may stand in a path. Or an id: its parts. */
static void say_source(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_config_source source = { .ns = "" };

        if (rows_has(q, "identifier")) {
                lkg_buf_puts(ret, lkg_identifier_ok(q->text) ? "right" : "wrong");
        } else if (rows_has(q, "id")) {
                if (lkg_config_source_parse_id(q->text, &source) < 0)
                        lkg_buf_puts(ret, "no id");
                else
                        lkg_buf_printf(ret, "uid %.20s version %.20s key %s", source.uid, source.version,
                                       source.key);
        } else {
                (void)snprintf(source.uid, sizeof(source.uid), "%s", q->parts[0]);
                (void)snprintf(source.version, sizeof(source.version), "%s", q->parts[1]);
                (void)snprintf(source.key, sizeof(source.key), "%s", q->parts[2]);
                put_source(&source, ret);
        }
}

/* What the annotations of a ConfigMap mean for a node. */
static void say_rollout(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_configmap_options options = { .max_bytes = 1u << 20 };
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_configmap configmap;
        struct lkg_rollout rollout;
        struct lkg_error err = { 0 };

        assert_true(asprintf(&text,
                             "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":"
                             "\"a\",\"name\":\"b\","
                             "\"uid\":\"u\",\"resourceVersion\":\"1\",\"annotations\":{%s}}}",
                             q->text) > 0);
        assert_int_equal(lkg_configmap_parse(text, strlen(text), &options, &configmap, &err), 0);
        lkg_rollout_decide(&configmap, NODE, &rollout);
        lkg_configmap_deinit(&configmap);
        lkg_buf_printf(ret, "%s%s%s; %u milli%s, bucket %u", lkg_rollout_state_name(rollout.state),
                       *rollout.words ? ": " : "", rollout.words, rollout.percent_milli,
                       rollout.has_percent ? "" : " by default", rollout.bucket_milli);
}

/* Salt and uid: a contract, computed by another implementation of SHA-256. */
static void say_bucket(const struct question *q, struct lkg_buf *ret)
{
        lkg_buf_printf(ret, "%u", lkg_rollout_bucket(q->parts[0], q->parts[1]));
}

/* ---- times, settings ---- */

static void say_retry_after(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = malloc(q->size + 2); /* no NUL behind it */

        memcpy(text, q->text, q->size);
        memcpy(text + q->size, "x", 2);
        lkg_buf_printf(ret, "%" PRIu64 " s", lkg_http_retry_after(text, q->size, NOW) / S);
}

/* Written again it is the same time. */
static void say_time(const struct question *q, struct lkg_buf *ret)
{
        uint64_t ns = 7, again = 7;
        char text[31];

        if (lkg_parse_rfc3339(q->text, &ns) < 0) {
                assert_int_equal(ns, 7);
                lkg_buf_puts(ret, "wrong");
                return;
        }
        lkg_format_rfc3339_ns(ns, text);
        assert_int_equal(lkg_parse_rfc3339(text, &again), 0);
        assert_int_equal(again, ns);
        lkg_buf_printf(ret, "%" PRIu64 " %s", ns, text);
}

/* A document of lkgfs itself: what the supervisor gets of it, or the mistakes. */
static void say_config(const struct question *q, struct lkg_buf *ret)
{
        static const char header[] = "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n";
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_source *source = lkg_source_new("configuration", "c.yaml");
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_config *config = NULL;
        int r;

        lkg_buf_printf(&text, "%s%s\n", rows_has(q, "raw") ? "" : header, q->text);
        if (!rows_has(q, "raw") &&
            !strstr(q->text, "engineUser")) /* whether there is an lkgfs here is another question */
                lkg_buf_puts(&text, "engineUser: root\n");
        r = lkg_decode_yaml(text.data, text.size, LKG_DECODE_STRICT, source, &report, &doc);
        if (r >= 0)
                r = lkg_config_decode(doc, "/etc/lkgfs", &config, &report);
        assert_int_equal(r, config ? 0 : -EBADMSG);
        if (config)
                lkg_config_to_settings(config, ret);
        put_findings(&report, ret);
        lkg_config_free(config);
        lkg_source_unref(source);
}

static const struct operation operations[] = {
        { "kubeconfig", say_kubeconfig },
        { "kubeconfig-detect", say_detected },
        { "in-cluster", say_in_cluster },
        { "configmap", say_configmap },
        { "configmap-value", say_configmap_value },
        { "reference", say_reference },
        { "reference-of", say_reference_of },
        { "allowed", say_allowed },
        { "object", say_object },
        { "version-order", say_version_order },
        { "node", say_node },
        { "source", say_source },
        { "rollout", say_rollout },
        { "bucket", say_bucket },
        { "retry-after", say_retry_after },
        { "time", say_time },
        { "config", say_config },
        { 0 },
};

ROWS(read, operations)

static int load(void **state)
{
        (void)state;
        return lkg_curl_load(NULL);
}

int main(void)
{
        return run_all(load, NULL);
}
