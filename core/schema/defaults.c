/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <lkg/text.h>
#include <lkg/tree.h>

#include "typed.h"

#include "values/values.h"

/* ---- defaults of the tables ---- */

/* The value of a field after defaulting. */
static struct lkg_value *default_member(const struct lkg_schema_node *member, const struct lkg_value *was,
                                        const void *userdata)
{
        if (member->class == LKG_CLASS_STRUCT && !member->pointer)
                return lkg_typed_rebuild(member, was, default_member, userdata);
        return lkg_value_ref(was ? (struct lkg_value *)was : member->def);
}

/* Replace *object by a copy with the defaults of the tables. */
static void apply_table(const struct lkg_schema *schema, struct lkg_value **object)
{
        struct lkg_value *completed =
                lkg_typed_rebuild(lkg_schema_root(schema), *object, default_member, NULL);

        lkg_value_unref(*object); /* it may be the same */
        *object = completed;
}

/* ---- computed defaults ---- */

/* Set a default with a value of its own; @json is its JSON text. */
static void set_default(struct lkg_value *object, const char *path, const char *json)
{
        lkg_object_set(object, path, lkg_schema_default(json));
}

static void set_if_missing(struct lkg_value *object, const char *path, const char *json)
{
        if (!lkg_object_has(object, path))
                set_default(object, path, json);
}

/*
 * Follows nodeStatusUpdateFrequency if only that is set. This must run before nodeStatusUpdateFrequency gets
 * its own default.
 */
static void default_report_frequency(struct lkg_value *object)
{
        const struct lkg_value *update = lkg_object_get(object, "nodeStatusUpdateFrequency");

        if (update && !lkg_object_has(object, "nodeStatusReportFrequency"))
                lkg_object_set(object, "nodeStatusReportFrequency",
                               lkg_value_ref((struct lkg_value *)update));
        set_if_missing(object, "nodeStatusReportFrequency", "\"5m0s\"");
}

static void default_gated(const struct lkg_schema *schema, struct lkg_value *object,
                          const struct lkg_gates *gates)
{
        static const struct {
                const char *gate, *path, *json;
        } rows[] = {
                { "KubeletCrashLoopBackOffMax", "crashLoopBackOff.maxContainerRestartPeriod", "\"5m0s\"" },
                { "KubeletEnsureSecretPulledImages", "imagePullCredentialsVerificationPolicy",
                  "\"NeverVerifyPreloadedImages\"" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (lkg_gates_enabled(gates, rows[i].gate) &&
                    lkg_node_find(lkg_schema_root(schema), rows[i].path))
                        set_if_missing(object, rows[i].path, rows[i].json);
}

void lkg_defaults_kubelet(const struct lkg_schema *schema, struct lkg_value **object,
                          const struct lkg_gates *before, const struct lkg_value *unread,
                          struct lkg_report *report)
{
        struct lkg_gates gates = *before;

        (void)lkg_gates_apply(&gates, *object, unread, report); /* it is reported; find the other mistakes */
        default_report_frequency(*object);
        set_if_missing(*object, "serializeImagePulls",
                       lkg_object_int(*object, "maxParallelImagePulls") >= 2 ? "false" : "true");
        if (lkg_object_int(*object, "podPidsLimit") < 0)
                set_default(*object, "podPidsLimit", "-1");
        set_if_missing(*object, "podPidsLimit", "-1");
        apply_table(schema, object);
        default_gated(schema, *object, &gates);
}

void lkg_defaults_flag_base(struct lkg_value *object)
{
        static const char *const rows[][2] = {
                { "authentication.anonymous.enabled", "true" },
                { "authentication.webhook.enabled", "false" },
                { "authorization.mode", "\"AlwaysAllow\"" },
                { "readOnlyPort", "10255" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                set_default(object, rows[i][0], rows[i][1]);
}

/* Linux: pkg/kubelet/eviction/defaults_linux.go */
static const char *const eviction_hard[][2] = {
        { "memory.available", "\"100Mi\"" }, { "nodefs.available", "\"10%\"" },
        { "nodefs.inodesFree", "\"5%\"" },   { "imagefs.available", "\"15%\"" },
        { "imagefs.inodesFree", "\"5%\"" },
};

void lkg_defaults_eviction(struct lkg_value *object)
{
        const struct lkg_value *was = lkg_object_get(object, "evictionHard");
        struct lkg_value *map;

        if (was && !lkg_object_bool(object, LKG_EVICTION_MERGE))
                return;
        map = was ? lkg_value_clone_shallow(was) : lkg_value_new_map(NULL, 0, 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(eviction_hard); i++) {
                const char *key = eviction_hard[i][0];

                if (!lkg_map_get(map, key))
                        (void)lkg_map_set(map, key, strlen(key), lkg_schema_default(eviction_hard[i][1]));
        }
        lkg_object_set(object, "evictionHard", map);
}

void lkg_defaults_eviction_done(struct lkg_value *object)
{
        const struct lkg_value *merge = lkg_object_get(object, LKG_EVICTION_MERGE);
        const struct lkg_value *thresholds = lkg_object_get(object, "evictionHard");
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *again = NULL;

        if (!lkg_object_bool(object, LKG_EVICTION_MERGE))
                return;
        again = lkg_value_clone_shallow(object);
        lkg_defaults_eviction(again);
        if (!thresholds || !lkg_value_equal(lkg_object_get(again, "evictionHard"), thresholds))
                lkg_object_set(object, LKG_EVICTION_MERGE,
                               lkg_value_new_bool(false, lkg_value_source_mut(merge), lkg_value_line(merge),
                                                  lkg_value_column(merge)));
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
static void append_port(struct lkg_value *object, unsigned release, const char *path, unsigned port)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_span address = lkg_text_of(value);
        int family = lkg_host_port_complete(address.data, address.size);

        if (family == 0)
                return;
        lkg_buf_printf(&text,
                       has_brackets(address.data, address.size, family, release) ? "[%.*s]:%u" : "%.*s:%u",
                       (int)address.size, address.data, port);
        lkg_object_set(object, path, lkg_typed_canonical(value, LKG_STRING, lkg_buf_text(&text)));
}

static void default_addresses(struct lkg_value *object, unsigned release)
{
        const struct lkg_value *bind = lkg_object_get(object, "bindAddress");
        struct lkg_span text = bind ? lkg_text_of(bind) : lkg_span("0.0.0.0", strlen("0.0.0.0"));
        struct lkg_ip ip;
        bool v4 = lkg_ip_parse(text.data, text.size, &ip, NULL) == 0 && lkg_ip_is_v4(&ip);

        append_port(object, release, "healthzBindAddress", 10256);
        append_port(object, release, "metricsBindAddress", 10249);
        set_if_missing(object, "healthzBindAddress", v4 ? "\"0.0.0.0:10256\"" : "\"[::]:10256\"");
        set_if_missing(object, "metricsBindAddress", v4 ? "\"127.0.0.1:10249\"" : "\"[::1]:10249\"");
}

/* cmd/kube-proxy/app/server_linux.go, platformApplyDefaults */
static void default_platform(struct lkg_value *object)
{
        const struct lkg_value *addresses = lkg_object_get(object, "nodePortAddresses");

        set_if_missing(object, "mode", "\"iptables\"");
        if (lkg_span_is(lkg_object_text(object, "mode"), "nftables") &&
            (!addresses || lkg_value_size(addresses) == 0))
                set_default(object, "nodePortAddresses", "[\"primary\"]");
        set_if_missing(object, "detectLocalMode", "\"ClusterCIDR\"");
}

void lkg_defaults_kubeproxy(const struct lkg_schema *schema, struct lkg_value **object)
{
        default_addresses(*object, lkg_schema_release(schema));
        apply_table(schema, object);
        default_platform(*object);
}
