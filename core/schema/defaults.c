/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <lkg/text.h>
#include <lkg/tree.h>

#include "typed.h"

#include "values/values.h"

/* ---- defaults of the tables ---- */

/* The value of a field after defaulting. */
static int default_member(const struct lkg_schema_node *member, const struct lkg_value *was,
                          const void *userdata, struct lkg_value **ret)
{
        if (member->class == LKG_CLASS_STRUCT && !member->pointer)
                return lkg_typed_rebuild(member, was, default_member, userdata, ret);
        if (was || member->def)
                *ret = lkg_value_ref(was ? (struct lkg_value *)was : member->def);
        return 0;
}

/* Replace *object by a copy with the defaults of the tables. */
static int apply_table(const struct lkg_schema *schema, struct lkg_value **object)
{
        struct lkg_value *completed = NULL;
        int r = lkg_typed_rebuild(lkg_schema_root(schema), *object, default_member, NULL, &completed);

        if (r < 0)
                return r;
        lkg_value_unref(*object); /* it may be the same */
        *object = completed;
        return 0;
}

/* ---- computed defaults ---- */

/* Set a default with a value of its own; @json is its JSON text. */
static int set_default(struct lkg_value *object, const char *path, const char *json)
{
        struct lkg_value *value = NULL;
        int r = lkg_schema_default(json, &value);

        return r < 0 ? r : lkg_object_set(object, path, value);
}

static int set_if_missing(struct lkg_value *object, const char *path, const char *json)
{
        return lkg_object_has(object, path) ? 0 : set_default(object, path, json);
}

/*
 * Follows nodeStatusUpdateFrequency if only that is set. This must run before nodeStatusUpdateFrequency gets
 * its own default.
 */
static int default_report_frequency(struct lkg_value *object)
{
        const struct lkg_value *update = lkg_object_get(object, "nodeStatusUpdateFrequency");

        if (lkg_object_has(object, "nodeStatusReportFrequency"))
                return 0;
        if (!update)
                return set_default(object, "nodeStatusReportFrequency", "\"5m0s\"");
        return lkg_object_set(object, "nodeStatusReportFrequency",
                              lkg_value_ref((struct lkg_value *)update));
}

static int default_serial_pulls(struct lkg_value *object)
{
        bool parallel = lkg_object_has(object, "maxParallelImagePulls") &&
                        lkg_object_int(object, "maxParallelImagePulls") >= 2;

        return set_if_missing(object, "serializeImagePulls", parallel ? "false" : "true");
}

static int default_gated(const struct lkg_schema *schema, struct lkg_value *object,
                         const struct lkg_gates *gates)
{
        static const struct {
                const char *gate, *path, *json;
        } rows[] = {
                { "KubeletCrashLoopBackOffMax", "crashLoopBackOff.maxContainerRestartPeriod", "\"5m0s\"" },
                { "KubeletEnsureSecretPulledImages", "imagePullCredentialsVerificationPolicy",
                  "\"NeverVerifyPreloadedImages\"" },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(rows); i++)
                if (lkg_gates_enabled(gates, rows[i].gate) &&
                    lkg_node_find(lkg_schema_root(schema), rows[i].path))
                        r = set_if_missing(object, rows[i].path, rows[i].json);
        return r;
}

int lkg_defaults_kubelet(const struct lkg_schema *schema, struct lkg_value **object,
                         const struct lkg_gates *before, const struct lkg_value *unread,
                         struct lkg_report *report)
{
        LKG_CLEANUP(lkg_gates_deinit) struct lkg_gates gates = { 0 };
        int r = lkg_gates_copy(before, &gates);

        if (r == 0)
                r = lkg_gates_apply(&gates, *object, unread, report);
        if (r == -EBADMSG) /* it is reported; continue to find the other mistakes */
                r = 0;
        if (r == 0)
                r = default_report_frequency(*object);
        if (r == 0)
                r = default_serial_pulls(*object);
        if (r == 0 && lkg_object_int(*object, "podPidsLimit") < 0)
                r = set_default(*object, "podPidsLimit", "-1");
        if (r == 0)
                r = set_if_missing(*object, "podPidsLimit", "-1");
        if (r == 0)
                r = apply_table(schema, object);
        if (r == 0)
                r = default_gated(schema, *object, &gates);
        return r;
}

int lkg_defaults_flag_base(struct lkg_value *object)
{
        static const char *const rows[][2] = {
                { "authentication.anonymous.enabled", "true" },
                { "authentication.webhook.enabled", "false" },
                { "authorization.mode", "\"AlwaysAllow\"" },
                { "readOnlyPort", "10255" },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(rows); i++)
                r = set_default(object, rows[i][0], rows[i][1]);
        return r;
}

/* Linux: pkg/kubelet/eviction/defaults_linux.go */
static const char *const eviction_hard[][2] = {
        { "memory.available", "\"100Mi\"" }, { "nodefs.available", "\"10%\"" },
        { "nodefs.inodesFree", "\"5%\"" },   { "imagefs.available", "\"15%\"" },
        { "imagefs.inodesFree", "\"5%\"" },
};

int lkg_defaults_eviction(struct lkg_value *object)
{
        const struct lkg_value *was = lkg_object_get(object, "evictionHard");
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;

        if (was && !lkg_object_bool(object, LKG_EVICTION_MERGE))
                return 0;
        map = was ? lkg_value_clone_shallow(was) : lkg_value_new_map(NULL, 0, 0);
        if (!map)
                return -ENOMEM;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(eviction_hard); i++) {
                const char *key = eviction_hard[i][0];
                struct lkg_value *value = NULL;
                int r;

                if (lkg_map_get(map, key))
                        continue;
                r = lkg_schema_default(eviction_hard[i][1], &value);
                if (r == 0)
                        r = lkg_map_set(map, key, strlen(key), value);
                if (r < 0)
                        return r;
        }
        return lkg_object_set(object, "evictionHard", LKG_STEAL(map));
}

int lkg_defaults_eviction_done(struct lkg_value *object)
{
        const struct lkg_value *merge = lkg_object_get(object, LKG_EVICTION_MERGE);
        const struct lkg_value *thresholds = lkg_object_get(object, "evictionHard");
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *again = NULL, *no = NULL;
        int r;

        if (!lkg_object_bool(object, LKG_EVICTION_MERGE))
                return 0;
        again = lkg_value_clone_shallow(object);
        no = lkg_value_new_bool(false, lkg_value_source_mut(merge), lkg_value_line(merge),
                                lkg_value_column(merge));
        r = again && no ? lkg_defaults_eviction(again) : -ENOMEM;
        if (r < 0 || (thresholds && lkg_value_equal(lkg_object_get(again, "evictionHard"), thresholds)))
                return r;
        return lkg_object_set(object, LKG_EVICTION_MERGE, LKG_STEAL(no));
}

/* ---- kube-proxy ---- */

/*
 * Does an address get brackets as a host? Up to 1.35 an IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) has
 * none, and is refused for that.
 */
static bool has_brackets(const char *address, size_t size, int family, unsigned release)
{
        struct lkg_ip ip;

        if (release >= 136)
                return family != 1;
        return lkg_ip_parse(address, size, &ip, NULL) == 0 && !lkg_ip_is_v4(&ip);
}

/* proxyutil.AppendPortIfNeeded: an address without a port gets one; the rules report a value that is not an address. */
static int append_port(struct lkg_value *object, unsigned release, const char *path, unsigned port)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *made = NULL;
        const char *address;
        size_t size;
        int family;

        if (!value || lkg_value_type(value) != LKG_STRING)
                return 0;
        address = lkg_value_text(value, &size);
        family = lkg_host_port_complete(address, size);
        if (family == 0)
                return 0;
        lkg_buf_printf(&text, has_brackets(address, size, family, release) ? "[%.*s]:%u" : "%.*s:%u",
                       (int)size, address, port);
        if (lkg_buf_failed(&text))
                return -ENOMEM;
        made = lkg_value_new_string(text.data, text.size, lkg_value_source_mut(value), lkg_value_line(value),
                                    lkg_value_column(value));
        return made ? lkg_object_set(object, path, LKG_STEAL(made)) : -ENOMEM;
}

static int default_addresses(struct lkg_value *object, unsigned release)
{
        const struct lkg_value *bind = lkg_object_get(object, "bindAddress");
        const char *text = "0.0.0.0";
        size_t size = strlen(text);
        struct lkg_ip ip;
        bool v4;
        int r;

        if (bind)
                text = lkg_value_text(bind, &size);
        v4 = lkg_ip_parse(text, size, &ip, NULL) == 0 && lkg_ip_is_v4(&ip);
        r = append_port(object, release, "healthzBindAddress", 10256);
        if (r == 0)
                r = append_port(object, release, "metricsBindAddress", 10249);
        if (r == 0)
                r = set_if_missing(object, "healthzBindAddress",
                                   v4 ? "\"0.0.0.0:10256\"" : "\"[::]:10256\"");
        if (r == 0)
                r = set_if_missing(object, "metricsBindAddress",
                                   v4 ? "\"127.0.0.1:10249\"" : "\"[::1]:10249\"");
        return r;
}

/* cmd/kube-proxy/app/server_linux.go, platformApplyDefaults */
static int default_platform(struct lkg_value *object)
{
        const struct lkg_value *addresses = lkg_object_get(object, "nodePortAddresses");
        int r = set_if_missing(object, "mode", "\"iptables\"");

        if (r == 0 && lkg_span_is(lkg_object_text(object, "mode"), "nftables") &&
            (!addresses || lkg_value_size(addresses) == 0))
                r = set_default(object, "nodePortAddresses", "[\"primary\"]");
        if (r == 0)
                r = set_if_missing(object, "detectLocalMode", "\"ClusterCIDR\"");
        return r;
}

int lkg_defaults_kubeproxy(const struct lkg_schema *schema, struct lkg_value **object)
{
        int r = default_addresses(*object, lkg_schema_release(schema));

        if (r == 0)
                r = apply_table(schema, object);
        if (r == 0)
                r = default_platform(*object);
        return r;
}
