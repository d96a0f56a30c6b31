/* SPDX-License-Identifier: Apache-2.0 */
/* What ValidatePodCreate() asks of containers and volumes beyond single fields, and of references to fields of the pod. */
#include "pod.h"
#include "values/values.h"

#include <inttypes.h>

/* ---- containers ---- */

/* Containers share the node's ports; init containers, of which one runs at a time, do not. */
static void check_host_port(const struct lkg_rules *port, const char *path)
{
        const struct lkg_rules *spec = lkg_rule_around(port, "PodSpec");
        const struct lkg_value *number = lkg_rule_get(port, path),
                               *inside = lkg_rule_get(port, "containerPort");
        bool host = lkg_rule_bool(spec, "hostNetwork"), init = strcmp(port->up->name, "initContainers") == 0;
        struct lkg_span protocol = lkg_rule_text(port, "protocol");
        LKG_CLEANUP(lkg_freep) char *key = NULL;

        if (number && host && !init && lkg_value_int(number) != lkg_value_int(inside))
                lkg_breach(port, LKG_F_CONTRADICTION, path, number,
                           "must be containerPort when hostNetwork is true; remove the line");
        if (!number && host)
                number = inside;
        key = lkg_format("%s %s %" PRId64, protocol.size ? protocol.data : "TCP",
                         lkg_rule_text(port, "hostIP").data, lkg_value_int(number));
        if (number)
                lkg_rule_once(port, init ? port->up : spec, lkg_span(key, strlen(key)), path, number);
}

static void check_volume_name(const struct lkg_rules *mount, const char *path)
{
        if (!lkg_map_find(mount->volumes, lkg_rule_text(mount, path)))
                lkg_breach_at(mount, LKG_F_REQUIRED, path, "is not a volume of the pod; add it to volumes");
}

static void check_recursive(const struct lkg_rules *mount, const char *path)
{
        bool shared =
                lkg_rule_get(mount, "mountPropagation") && !lkg_rule_is(mount, "mountPropagation", "None");

        if (lkg_rule_is(mount, path, "Enabled, IfPossible") && (shared || !lkg_rule_bool(mount, "readOnly")))
                lkg_breach_at(mount, LKG_F_CONTRADICTION, path,
                              "needs readOnly true, and no mountPropagation");
}

static void check_file_key(const struct lkg_rules *key, const char *path)
{
        const struct lkg_value *volume = lkg_map_find(key->volumes, lkg_rule_text(key, path));

        /* what has a name alone is an emptyDir, too */
        if (!volume || (!lkg_map_get(volume, "emptyDir") && lkg_value_size(volume) > 1))
                lkg_breach_at(key, LKG_F_REQUIRED, path, "is not an emptyDir volume of the pod");
}

static void check_sleep(const struct lkg_rules *sleep, const char *path)
{
        const struct lkg_value *grace =
                lkg_rule_get(lkg_rule_around(sleep, "PodSpec"), "terminationGracePeriodSeconds");
        int64_t most = !grace                     ? 30
                       : lkg_value_int(grace) < 0 ? 1
                                                  : lkg_value_int(grace),
                least = sleep->release < 135, n = lkg_rule_int(sleep, path);

        if (n < least || n > most)
                lkg_breach_at(sleep, LKG_F_OUT_OF_RANGE, path,
                              "is out of range; want at most terminationGracePeriodSeconds, %" PRId64, most);
}

/* Every member but the name is a source; without any it is an emptyDir. */
static void check_volume(const struct lkg_rules *volume, const char *path)
{
        size_t n = 0;

        for (struct lkg_member m = { 0 }; lkg_value_next(volume->object, &m);)
                if (!lkg_span_is(m.key, "name") && n++ > 0)
                        lkg_breach(volume, LKG_F_CONTRADICTION, m.key.data, m.value,
                                   "is one too many; keep one source");
}

/* ---- fields of the pod ---- */

/* pkg/apis/core/pods, ConvertDownwardAPIFieldLabel(); pkg/fieldpath, SplitMaybeSubscriptedPath(). */
static void check_field(const struct lkg_rules *ref, const char *path)
{
        static const char in_volumes[] =
                "metadata.name, metadata.namespace, metadata.labels, metadata.annotations, metadata.uid",
                          in_variables[] =
                                  "metadata.name, metadata.namespace, metadata.uid, spec.nodeName, "
                                  "spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP, "
                                  "status.podIPs, spec.host";
        const char *words = lkg_rule_around(ref, "Volume") ? in_volumes : in_variables;
        struct lkg_span text = lkg_rule_text(ref, path), map = text, key;
        const char *open = strstr(text.data, "['");
        bool keyed = open > text.data && text.size > 2 && strcmp(text.data + text.size - 2, "']") == 0 &&
                     open + 4 <= text.data + text.size;
        LKG_CLEANUP(lkg_freep) char *lower = NULL;

        if (!keyed && !lkg_rule_word(words, text))
                lkg_breach_at(ref, LKG_F_NOT_ONE_OF, path, "is not known; want one of %s", words);
        if (!keyed)
                return;
        map.size = (size_t)(open - text.data);
        key = lkg_span(open + 2, text.size - map.size - 4);
        lower = lkg_pod_lower(key);
        if (!lkg_rule_word("metadata.annotations, metadata.labels", map) ||
            lkg_name_qualified(lkg_span_is(map, "metadata.labels") ? key.data : lower, key.size, NULL) < 0)
                lkg_breach_at(ref, LKG_F_BAD_FORMAT, path,
                              "is not right; want metadata.labels['NAME'] or metadata.annotations['NAME']");
}

static void check_resource_field(const struct lkg_rules *ref, const char *path)
{
        static const char words[] = "limits.cpu, limits.memory, limits.ephemeral-storage, requests.cpu, "
                                    "requests.memory, requests.ephemeral-storage",
                          bytes[] = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
        struct lkg_span text = lkg_rule_text(ref, path), given = lkg_rule_text(ref, "divisor");
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf printed = LKG_BUF_INIT;
        bool known = lkg_rule_word(words, text) || strncmp(text.data, "limits.hugepages-", 17) == 0 ||
                     strncmp(text.data, "requests.hugepages-", 19) == 0;
        const char *want = lkg_rule_word("limits.cpu, requests.cpu", text) ? "1m, 1" : bytes;

        if (!known)
                lkg_breach_at(ref, LKG_F_NOT_ONE_OF, path, "is not known; want one of %s", words);
        if (!known || given.size == 0 || lkg_quantity_parse(given.data, given.size, &quantity, NULL) < 0)
                return;
        lkg_quantity_text(&quantity, given, &printed);
        if (!lkg_quantity_is_zero(&quantity) &&
            !lkg_rule_word(want, lkg_span(lkg_buf_text(&printed), printed.size)))
                lkg_breach_at(ref, LKG_F_NOT_ONE_OF, "divisor", "is not known; want one of %s", want);
}

/* ---- rows ---- */

#define ROW      LKG_POD_ROW
#define NIL      .flags = LKG_RULE_NIL
#define OR_EMPTY .flags = LKG_RULE_EMPTY_OK

static const char ends[] = "is not for containers that are not started again; want NotRequired";
static const char projections[] =
        "downwardAPI, configMap, secret, serviceAccountToken, clusterTrustBundle, podCertificate";

const struct lkg_value_rule lkg_pod_container_rules[] = {
        ROW(ONCE, "Container.name", .around = "PodSpec"),
        ROW(ONCE, "ContainerPort.name VolumeMount.mountPath ContainerResizePolicy.resourceName",
            .around = "Container"),
        ROW(ONCE, "DownwardAPIVolumeFile.path", .around = "ProjectedVolumeSource"),

        ROW(ONE_OF, "LifecycleHandler", .words = "exec, httpGet, tcpSocket, sleep"),
        ROW(ONE_OF, "Probe", .words = "exec, httpGet, tcpSocket, grpc"),
        ROW(ONE_OF, "EnvVarSource",
            .words = "fieldRef, resourceFieldRef, fileKeyRef, secretKeyRef, configMapKeyRef"),
        ROW(ONE_OF, "DownwardAPIVolumeFile", .words = "fieldRef, resourceFieldRef"),
        ROW(ONE_OF, "VolumeProjection", .words = projections, OR_EMPTY, .until = 133),
        ROW(ONE_OF, "VolumeProjection", .words = projections, .since = 134),

        /* only containers that stay have probes and a lifecycle */
        ROW(UNSET,
            "initContainers.lifecycle initContainers.livenessProbe initContainers.readinessProbe "
            "initContainers.startupProbe",
            "an init container without restartPolicy Always", NIL, .when = "restartPolicy", .is = "!Always"),
        ROW(UNSET, "initContainers.resizePolicy", "init containers have none up to 1.34", .until = 134),
        ROW(UNSET, "containers.restartPolicy", "only init containers have one up to 1.34", NIL,
            .until = 134),
        ROW(WORD, "initContainers.restartPolicy", .words = "Always", .until = 134),
        ROW(WORD, "Container.restartPolicy", .words = "Always, Never, OnFailure", .since = 135),
        ROW(SET, "Container.restartPolicy", "set it with restartPolicyRules", NIL,
            .when = "restartPolicyRules", .since = 135),
        ROW(COUNT, "Container.restartPolicyRules", "are too many; want at most 20", .max = 20, .since = 135),
        ROW(UNSET, "initContainers.restartPolicyRules", "restartPolicy Always", .when = "restartPolicy",
            .is = "Always", .since = 135, .until = 135),
        ROW(NOT, "ContainerResizePolicy.restartPolicy", ends, .words = "RestartContainer",
            .around = "PodSpec", .when = "restartPolicy", .is = "Never"),
        ROW(NOT, "ContainerResizePolicy.restartPolicy", ends, .words = "RestartContainer",
            .around = "initContainers", .when = "restartPolicy", .is = "!Always", .since = 136),
        ROW(UNSET, "Lifecycle.stopSignal", "a pod that does not say os.name", NIL, .around = "PodSpec",
            .when = "os", .is = "!"),
        ROW(UNSET, "readinessProbe.terminationGracePeriodSeconds", "a readiness probe has none", NIL),
        ROW(NUMBER, "livenessProbe.successThreshold startupProbe.successThreshold",
            "it must be 1 but for a readiness probe", .min = INT64_MIN, .max = 1),
        ROW(NOT, "HTTPGetAction.protocol", "cannot go with HTTPS; remove one of them", .words = "HTTP2",
            .when = "scheme", .is = "HTTPS"),
        ROW(UNSET, "HTTPGetAction.host", "protocol HTTP2", .when = "protocol", .is = "HTTP2"),

        ROW(NOT, "SecurityContext.procMount", "needs hostUsers false", .words = "Unmasked",
            .around = "PodSpec", .when = "hostUsers", .is = "!false"),
        ROW(UNSET, "SecurityContext.windowsOptions", "os linux", NIL, .around = "PodSpec", .when = "os.name",
            .is = "linux"),
        ROW(UNSET, "SecurityContext.privileged", "allowPrivilegeEscalation false",
            .when = "allowPrivilegeEscalation", .is = "false"),
        ROW(NOT, "SecurityContext.capabilities.add", "cannot go with allowPrivilegeEscalation false",
            .words = "CAP_SYS_ADMIN", .when = "allowPrivilegeEscalation", .is = "false"),
        ROW(UNSET, "SeccompProfile.localhostProfile AppArmorProfile.localhostProfile",
            "another type than Localhost", NIL, .when = "type", .is = "!Localhost"),

        ROW(WORD, "ObjectFieldSelector.apiVersion", .words = "v1", OR_EMPTY),
        ROW(SET, "ResourceFieldSelector.containerName", "set it in a volume", .around = "Volume"),
        ROW(UNSET, "EnvVar.valueFrom", "value", NIL, .when = "value"),
        ROW(UNSET, "VolumeMount.subPathExpr", "subPath", .when = "subPath"),
        ROW(NOT, "VolumeMount.mountPropagation", "is for privileged containers only",
            .words = "Bidirectional", .around = "Container", .when = "securityContext.privileged",
            .is = "!"),

        ROW(CHECK, "ContainerPort.hostPort", .check = check_host_port),
        ROW(CHECK, "VolumeMount.name", .check = check_volume_name),
        ROW(CHECK, "VolumeMount.recursiveReadOnly", .check = check_recursive),
        ROW(CHECK, "FileKeySelector.volumeName", .check = check_file_key),
        ROW(CHECK, "SleepAction.seconds", .check = check_sleep),
        ROW(CHECK, "Volume", .check = check_volume),
        ROW(CHECK, "ObjectFieldSelector.fieldPath", .check = check_field),
        ROW(CHECK, "ResourceFieldSelector.resource", .check = check_resource_field),
};
const size_t lkg_n_pod_container_rules = LKG_ARRAY_SIZE(lkg_pod_container_rules);
