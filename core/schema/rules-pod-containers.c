/* SPDX-License-Identifier: Apache-2.0 */
/* What ValidatePodCreate() asks of containers and volumes beyond single fields, and of references to fields of the pod. */
#include "pod.h"
#include "values/values.h"

#include <inttypes.h>

/* ---- containers ---- */

/* Only containers that stay have probes and a lifecycle. */
static void check_init(const struct lkg_pod_part *container)
{
        static const char *const fields[] = { "lifecycle", "livenessProbe", "readinessProbe",
                                              "startupProbe" };

        for (size_t i = 0; !lkg_pod_is(container, "restartPolicy", "Always") && i < LKG_ARRAY_SIZE(fields);
             i++)
                lkg_pod_exclude(container, fields[i], "an init container without restartPolicy Always");
}

static void check_restarts(const struct lkg_pod_part *container, bool init)
{
        static const char policy[] = "restartPolicy", by_code[] = "restartPolicyRules";
        const struct lkg_value *value = lkg_pod_get(container, policy);
        bool gate = lkg_rule_gate(&container->rules, "ContainerRestartRules"),
             all = lkg_rule_gate(&container->rules, "RestartAllContainersOnContainerExits");
        const char *words = gate ? "Always, Never, OnFailure" : "Always";
        size_t n = lkg_pod_size(container, by_code);

        if (!gate && !init)
                lkg_pod_exclude(container, policy, "a container that is no init container");
        else if (value && !lkg_rule_word(words, lkg_text_of(value)))
                lkg_pod_breach(container, LKG_F_NOT_ONE_OF, policy, "is not known; want one of %s", words);
        if (n > 0 && !value && gate)
                lkg_pod_breach(container, LKG_F_REQUIRED, policy, "is needed with %s; set it", by_code);
        if (n > 20 && gate)
                lkg_pod_breach(container, LKG_F_OUT_OF_RANGE, by_code, "are too many; want at most 20");
        if (gate && init && !all && lkg_span_is(lkg_text_of(value), "Always") && n > 0)
                lkg_pod_exclude(container, by_code, "restartPolicy Always");
}

static void check_container(const struct lkg_pod_part *container)
{
        bool init = strcmp(container->name, "initContainers") == 0;

        lkg_pod_twice(container, "ports", "name");
        lkg_pod_twice(container, "volumeMounts", "mountPath");
        lkg_pod_twice(container, "resizePolicy", "resourceName");
        if (init)
                check_init(container);
        if (init && container->rules.release < 135 && lkg_pod_size(container, "resizePolicy") > 0)
                lkg_pod_exclude(container, "resizePolicy", "an init container");
        check_restarts(container, init);
}

static void check_container_port(const struct lkg_pod_part *port)
{
        const struct lkg_value *number = lkg_pod_get(port, "hostPort");

        if (number && lkg_pod_true(port->up->up, "hostNetwork") &&
            strcmp(port->up->name, "containers") == 0 &&
            lkg_value_int(number) != lkg_value_int(lkg_pod_get(port, "containerPort")))
                lkg_pod_breach(port, LKG_F_CONTRADICTION, "hostPort",
                               "must be containerPort when hostNetwork is true; remove the line");
}

static void check_resize(const struct lkg_pod_part *policy)
{
        bool never = lkg_pod_is(policy->up->up, "restartPolicy", "Never"),
             ends = strcmp(policy->up->name, "initContainers") == 0 &&
                    !lkg_pod_is(policy->up, "restartPolicy", "Always");

        if ((never || (ends && policy->rules.release >= 136)) &&
            lkg_pod_is(policy, "restartPolicy", "RestartContainer"))
                lkg_pod_breach(policy, LKG_F_CONTRADICTION, "restartPolicy",
                               "is not for containers that are not started again; want NotRequired");
}

static void check_mount(const struct lkg_pod_part *mount)
{
        static const char name[] = "name", propagation[] = "mountPropagation",
                          read_only[] = "recursiveReadOnly";

        if (!lkg_pod_volume(mount, lkg_pod_text(mount, name)))
                lkg_pod_breach(mount, LKG_F_REQUIRED, name, "is not a volume of the pod; add it to volumes");
        if (lkg_pod_text(mount, "subPath").size > 0 && lkg_pod_text(mount, "subPathExpr").size > 0)
                lkg_pod_exclude(mount, "subPathExpr", "subPath");
        if (lkg_pod_is(mount, propagation, "Bidirectional") &&
            !lkg_pod_true(mount->up, "securityContext.privileged"))
                lkg_pod_breach(mount, LKG_F_CONTRADICTION, propagation, "is for privileged containers only");
        if (lkg_rule_word("Enabled, IfPossible", lkg_pod_text(mount, read_only)) &&
            (!lkg_pod_true(mount, "readOnly") ||
             (lkg_pod_get(mount, propagation) && !lkg_pod_is(mount, propagation, "None"))))
                lkg_pod_breach(mount, LKG_F_CONTRADICTION, read_only,
                               "needs readOnly true, and no mountPropagation");
}

static void check_security(const struct lkg_pod_part *context)
{
        const struct lkg_pod_part *spec = lkg_pod_around(context, "PodSpec");
        const struct lkg_value *users = lkg_pod_get(spec, "hostUsers"),
                               *escalation = lkg_pod_get(context, "allowPrivilegeEscalation");

        if (lkg_pod_is(context, "procMount", "Unmasked") && (!users || lkg_value_bool(users)))
                lkg_pod_breach(context, LKG_F_CONTRADICTION, "procMount", "needs hostUsers false");
        if (lkg_pod_is(spec, "os.name", "linux"))
                lkg_pod_exclude(context, "windowsOptions", "os linux");
        if (!escalation || lkg_value_bool(escalation))
                return;
        lkg_pod_exclude(context, "privileged", "allowPrivilegeEscalation false");
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_pod_get(context, "capabilities.add"), &m);)
                if (lkg_span_is(lkg_text_of(m.value), "CAP_SYS_ADMIN"))
                        lkg_breach(&context->rules, LKG_F_CONTRADICTION,
                                   LKG_ITEM_PATH("capabilities.add", m.i, NULL), m.value,
                                   "cannot go with allowPrivilegeEscalation false");
}

static void check_profile(const struct lkg_pod_part *profile)
{
        if (!lkg_pod_is(profile, "type", "Localhost"))
                lkg_pod_exclude(profile, "localhostProfile", "another type than Localhost");
}

/* ---- handlers ---- */

static void check_lifecycle(const struct lkg_pod_part *lifecycle)
{
        if (!lkg_pod_get(lkg_pod_around(lifecycle, "PodSpec"), "os"))
                lkg_pod_exclude(lifecycle, "stopSignal", "a pod that does not say os.name");
}

static void check_handler(const struct lkg_pod_part *handler)
{
        const struct lkg_pod_part *spec = lkg_pod_around(handler, "PodSpec");
        const struct lkg_value *grace = lkg_pod_get(spec, "terminationGracePeriodSeconds");
        int64_t most = !grace                     ? 30
                       : lkg_value_int(grace) < 0 ? 1
                                                  : lkg_value_int(grace),
                least = handler->rules.release < 135,
                n = lkg_value_int(lkg_pod_get(handler, "sleep.seconds"));

        lkg_pod_one_of(handler, "exec httpGet tcpSocket sleep", true);
        if (lkg_pod_get(handler, "sleep") && (n < least || n > most))
                lkg_pod_breach(handler, LKG_F_OUT_OF_RANGE, "sleep.seconds",
                               "is out of range; want at most terminationGracePeriodSeconds, %" PRId64,
                               most);
}

static void check_probe(const struct lkg_pod_part *probe)
{
        static const char successes[] = "successThreshold";
        bool readiness = strcmp(probe->name, "readinessProbe") == 0;

        lkg_pod_one_of(probe, "exec httpGet tcpSocket grpc", true);
        if (readiness)
                lkg_pod_exclude(probe, "terminationGracePeriodSeconds", "a readiness probe");
        else if (lkg_value_int(lkg_pod_get(probe, successes)) > 1)
                lkg_pod_breach(probe, LKG_F_OUT_OF_RANGE, successes, "must be 1 but for a readiness probe");
}

static void check_port(const struct lkg_pod_part *action)
{
        const struct lkg_value *value = lkg_pod_get(action, "port");
        int64_t n = lkg_value_int(value);

        if (value && lkg_value_type(value) == LKG_STRING
                    ? lkg_pod_port_name(lkg_text_of(value).data, lkg_text_of(value).size, NULL) < 0
                    : n < 1 || n > 65535)
                lkg_pod_breach(action, LKG_F_BAD_FORMAT, "port",
                               "is no port; want 1 to 65535, or the name of one");
}

static void check_http(const struct lkg_pod_part *http)
{
        check_port(http);
        if (!lkg_pod_is(http, "protocol", "HTTP2"))
                return;
        if (lkg_pod_is(http, "scheme", "HTTPS"))
                lkg_pod_exclude(http, "protocol", "HTTPS");
        if (lkg_pod_text(http, "host").size > 0)
                lkg_pod_exclude(http, "host", "protocol HTTP2");
}

/* ---- volumes ---- */

/* Every member but the name is a source; without any it is an emptyDir. */
static void check_volume(const struct lkg_pod_part *volume)
{
        size_t n = 0;

        for (struct lkg_member m = { 0 }; lkg_value_next(volume->rules.object, &m);)
                if (!lkg_span_is(m.key, "name") && n++ > 0)
                        lkg_breach(&volume->rules, LKG_F_CONTRADICTION, m.key.data, m.value,
                                   "is one too many; keep one source");
}

static void check_empty_dir(const struct lkg_pod_part *dir)
{
        if (lkg_pod_amount(lkg_pod_get(dir, "sizeLimit")) < 0)
                lkg_pod_breach(dir, LKG_F_OUT_OF_RANGE, "sizeLimit",
                               "is out of range; it must not be negative");
}

static void check_projected(const struct lkg_pod_part *projected)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *seen = lkg_value_new_map(NULL, 0, 0);

        for (struct lkg_member s = { 0 }; lkg_value_next(lkg_pod_get(projected, "sources"), &s);)
                for (struct lkg_member m = { 0 };
                     lkg_value_next(lkg_object_get(s.value, "downwardAPI.items"), &m);)
                        lkg_pod_once(projected, seen, lkg_object_text(m.value, "path"),
                                     LKG_ITEM_PATH(LKG_ITEM_PATH("sources", s.i, "downwardAPI.items"), m.i,
                                                   "path"),
                                     lkg_object_get(m.value, "path"));
}

static void check_projection(const struct lkg_pod_part *source)
{
        lkg_pod_one_of(source,
                       "downwardAPI configMap secret serviceAccountToken clusterTrustBundle podCertificate",
                       source->rules.release >= 134);
}

/* ---- variables, and fields of the pod ---- */

static void check_env(const struct lkg_pod_part *env)
{
        if (lkg_pod_text(env, "value").size > 0)
                lkg_pod_exclude(env, "valueFrom", "value");
}

static void check_env_source(const struct lkg_pod_part *source)
{
        lkg_pod_one_of(source, "fieldRef resourceFieldRef fileKeyRef secretKeyRef configMapKeyRef", true);
}

static void check_file_key(const struct lkg_pod_part *key)
{
        const struct lkg_value *volume = lkg_pod_volume(key, lkg_pod_text(key, "volumeName"));

        /* what has a name alone is an emptyDir, too */
        if (!volume || (!lkg_map_get(volume, "emptyDir") && lkg_value_size(volume) > 1))
                lkg_pod_breach(key, LKG_F_REQUIRED, "volumeName", "is not an emptyDir volume of the pod");
}

static void check_file(const struct lkg_pod_part *file)
{
        lkg_pod_one_of(file, "fieldRef resourceFieldRef", true);
}

/* pkg/apis/core/pods, ConvertDownwardAPIFieldLabel(); pkg/fieldpath, SplitMaybeSubscriptedPath(). */
static void check_field(const struct lkg_pod_part *ref)
{
        static const char in_volumes[] =
                "metadata.name, metadata.namespace, metadata.labels, metadata.annotations, metadata.uid",
                          in_variables[] =
                                  "metadata.name, metadata.namespace, metadata.uid, spec.nodeName, "
                                  "spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP, "
                                  "status.podIPs, spec.host",
                          path[] = "fieldPath";
        const char *words = lkg_pod_around(ref, "Volume") ? in_volumes : in_variables;
        struct lkg_span text = lkg_pod_text(ref, path), map = text, key;
        const char *open = strstr(text.data, "['");
        bool keyed = open > text.data && text.size > 2 && strcmp(text.data + text.size - 2, "']") == 0 &&
                     open + 4 <= text.data + text.size;
        LKG_CLEANUP(lkg_freep) char *lower = NULL;

        if (lkg_pod_get(ref, "apiVersion") && !lkg_pod_is(ref, "apiVersion", "v1"))
                lkg_pod_breach(ref, LKG_F_NOT_ONE_OF, "apiVersion", "is not known; want v1");
        if (!keyed && !lkg_rule_word(words, text))
                lkg_pod_breach(ref, LKG_F_NOT_ONE_OF, path, "is not known; want one of %s", words);
        if (!keyed)
                return;
        map.size = (size_t)(open - text.data);
        key = lkg_span(open + 2, text.size - map.size - 4);
        lower = lkg_pod_lower(key);
        if (!lkg_rule_word("metadata.annotations, metadata.labels", map) ||
            lkg_name_qualified(lkg_span_is(map, "metadata.labels") ? key.data : lower, key.size, NULL) < 0)
                lkg_pod_breach(ref, LKG_F_BAD_FORMAT, path,
                               "is not right; want metadata.labels['NAME'] or metadata.annotations['NAME']");
}

static void check_resource_field(const struct lkg_pod_part *ref)
{
        static const char words[] = "limits.cpu, limits.memory, limits.ephemeral-storage, requests.cpu, "
                                    "requests.memory, requests.ephemeral-storage",
                          bytes[] = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
        struct lkg_span text = lkg_pod_text(ref, "resource"), given = lkg_pod_text(ref, "divisor");
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf printed = LKG_BUF_INIT;
        bool known = lkg_rule_word(words, text) || strncmp(text.data, "limits.hugepages-", 17) == 0 ||
                     strncmp(text.data, "requests.hugepages-", 19) == 0;
        const char *want = lkg_rule_word("limits.cpu, requests.cpu", text) ? "1m, 1" : bytes;

        if (lkg_pod_around(ref, "Volume") && lkg_pod_text(ref, "containerName").size == 0)
                lkg_pod_breach(ref, LKG_F_REQUIRED, "containerName",
                               "is empty and must not be in a volume; set it");
        else if (!known)
                lkg_pod_breach(ref, LKG_F_NOT_ONE_OF, "resource", "is not known; want one of %s", words);
        if (!known || given.size == 0 || lkg_quantity_parse(given.data, given.size, &quantity, NULL) < 0)
                return;
        lkg_quantity_text(&quantity, given, &printed);
        if (!lkg_quantity_is_zero(&quantity) &&
            !lkg_rule_word(want, lkg_span(lkg_buf_text(&printed), printed.size)))
                lkg_pod_breach(ref, LKG_F_NOT_ONE_OF, "divisor", "is not known; want one of %s", want);
}

const struct lkg_pod_check lkg_pod_container_checks[] = {
        { "Container", check_container },
        { "ContainerPort", check_container_port },
        { "ContainerResizePolicy", check_resize },
        { "VolumeMount", check_mount },
        { "SecurityContext", check_security },
        { "SeccompProfile", check_profile },
        { "AppArmorProfile", check_profile },
        { "Lifecycle", check_lifecycle },
        { "LifecycleHandler", check_handler },
        { "Probe", check_probe },
        { "HTTPGetAction", check_http },
        { "TCPSocketAction", check_port },
        { "Volume", check_volume },
        { "EmptyDirVolumeSource", check_empty_dir },
        { "ProjectedVolumeSource", check_projected },
        { "VolumeProjection", check_projection },
        { "EnvVar", check_env },
        { "EnvVarSource", check_env_source },
        { "FileKeySelector", check_file_key },
        { "DownwardAPIVolumeFile", check_file },
        { "ObjectFieldSelector", check_field },
        { "ResourceFieldSelector", check_resource_field },
};
const size_t lkg_n_pod_container_checks = LKG_ARRAY_SIZE(lkg_pod_container_checks);
