/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ValidatePodCreate() asks of a Pod (pkg/apis/core/validation, 1.33 to 1.37): the rules of single fields, and those of metadata
 * and spec. Rules of containers and volumes: rules-pod-containers.c; of what places a pod: rules-pod-placing.c.
 */
#include "pod.h"
#include "values/values.h"

#define NO_MAX INT64_MAX

static const char set[] = "set it";
static const char not_negative[] = "it must not be negative";
static const char positive[] = "it must be at least 1";
static const char id[] = "want 0 to 2147483647";
static const char own[] = "hostUsers false";
static const char port[] = "want a port, 1 to 65535";
static const char no_objects[] = "a static pod cannot use objects of the API server";
static const char signals[] =
        "SIGABRT, SIGALRM, SIGBUS, SIGCHLD, SIGCLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, "
        "SIGIOT, SIGKILL, SIGPIPE, SIGPOLL, SIGPROF, SIGPWR, SIGQUIT, SIGSEGV, SIGSTKFLT, SIGSTOP, SIGSYS, "
        "SIGTERM, SIGTRAP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, "
        "SIGXCPU, SIGXFSZ, SIGRTMIN, SIGRTMIN+1, SIGRTMIN+2, SIGRTMIN+3, SIGRTMIN+4, SIGRTMIN+5, "
        "SIGRTMIN+6, SIGRTMIN+7, SIGRTMIN+8, SIGRTMIN+9, SIGRTMIN+10, SIGRTMIN+11, SIGRTMIN+12, "
        "SIGRTMIN+13, SIGRTMIN+14, SIGRTMIN+15, SIGRTMAX-14, SIGRTMAX-13, SIGRTMAX-12, SIGRTMAX-11, "
        "SIGRTMAX-10, SIGRTMAX-9, SIGRTMAX-8, SIGRTMAX-7, SIGRTMAX-6, SIGRTMAX-5, SIGRTMAX-4, SIGRTMAX-3, "
        "SIGRTMAX-2, SIGRTMAX-1, SIGRTMAX";

/* ---- single values ---- */

/* The kubelet appends `-NODE`, which begins and ends well. */
static int parse_pod_name(const char *text, size_t size, char *reason)
{
        LKG_CLEANUP(lkg_freep) char *name = lkg_format("%.*s-n", (int)size, text);

        return lkg_name_dns_subdomain(name, size + 2, reason);
}

/* Of a hyphen at its end, and what stands before it, only that is asked whether there is something. */
static int parse_prefix(const char *text, size_t size, char *reason)
{
        LKG_CLEANUP(lkg_freep) char *name = lkg_format("%.*s", (int)size, text);
        bool hyphen = size > 1 && text[size - 1] == '-';

        if (hyphen)
                name[size - 2] = 'a';
        return lkg_name_dns_subdomain(name, size - hyphen, reason);
}

static int parse_port_name(const char *text, size_t size, char *reason)
{
        bool letter = false, good = size > 0 && size <= 15 && text[0] != '-' && text[size - 1] != '-';

        for (size_t i = 0; i < size; i++) {
                letter |= text[i] >= 'a' && text[i] <= 'z';
                good &= (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
                        (text[i] == '-' && i > 0 && text[i - 1] != '-');
        }
        return good && letter ? 0
                              : lkg_refuse(reason, "want a name with a letter: at most 15 of a-z, 0-9 and "
                                                   "single -, such as metrics");
}

static int parse_trimmed(const char *text, size_t size, char *reason)
{
        struct lkg_span image = { text, size };

        return lkg_span_trim(image).size == size ? 0
                                                 : lkg_refuse(reason, "white space at an end; remove it");
}

static int parse_sysctl(const char *text, size_t size, char *reason)
{
        return lkg_sysctl_shape(text, size) ? 0
                                            : lkg_refuse(reason, "want a name such as net.core.somaxconn");
}

static int parse_ip_strict(const char *text, size_t size, char *reason)
{
        struct lkg_ip ip;

        if (lkg_ip_parse(text, size, &ip, reason) < 0)
                return -EINVAL;
        if (lkg_ip_is_v4(&ip) && memchr(text, ':', size))
                return lkg_refuse(reason, "an IPv4 address in the form of IPv6; write the IPv4 address");
        return lkg_ip_is_strict(text, size) ? 0 : lkg_refuse(reason, "leading zeros; remove them");
}

/* A domain with underscores, with a point at its end or alone. */
static int parse_search(const char *text, size_t size, char *reason)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf plain = LKG_BUF_INIT;
        struct lkg_span rest = { text, size }, label;

        if (size == 1 && *text == '.')
                return 0;
        rest.size -= size > 0 && text[size - 1] == '.';
        if (rest.size > LKG_DNS_SUBDOMAIN_MAX)
                return lkg_refuse(reason, "longer than %u bytes", LKG_DNS_SUBDOMAIN_MAX);
        while (lkg_span_next(&rest, '.', &label)) {
                size_t skip = label.size > 0 && *label.data == '_';

                if (plain.size > 0)
                        lkg_buf_putc(&plain, '.');
                for (size_t i = skip; i < label.size; i++)
                        lkg_buf_putc(&plain, label.data[i] == '_' ? '-' : label.data[i]);
                if (label.size == skip)
                        return lkg_refuse(reason, "an empty label; want a domain, such as example.com");
        }
        return lkg_name_dns_subdomain(lkg_buf_text(&plain), plain.size, reason);
}

/* ---- what no row says ---- */

char *lkg_pod_lower(struct lkg_span text)
{
        char *lower = lkg_must(lkg_span_dup(text));

        for (size_t i = 0; i < text.size; i++)
                lower[i] = (char)(lower[i] >= 'A' && lower[i] <= 'Z' ? lower[i] + 'a' - 'A' : lower[i]);
        return lower;
}

static void check_labels(const struct lkg_rules *part, const char *path)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(part, path), &m);) {
                struct lkg_span value = lkg_text_of(m.value);
                char why[LKG_REFUSAL_MAX];

                if (lkg_name_qualified(m.key.data, m.key.size, why) < 0 ||
                    lkg_name_label_value(value.data, value.size, why) < 0)
                        lkg_breach(part, LKG_F_BAD_FORMAT, LKG_KEY_PATH(path, m.key), m.value,
                                   "is no label: %s", why);
        }
}

static void check_annotations(const struct lkg_rules *pod, const char *path)
{
        size_t size = strlen("kubernetes.io/config.hash") + 32; /* which the kubelet adds */

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(pod, path), &m);) {
                LKG_CLEANUP(lkg_freep) char *key = lkg_pod_lower(m.key);
                char why[LKG_REFUSAL_MAX];

                size += m.key.size + lkg_text_of(m.value).size;
                if (lkg_name_qualified(key, m.key.size, why) < 0)
                        lkg_breach(pod, LKG_F_BAD_FORMAT, LKG_KEY_PATH(path, m.key), m.value,
                                   "has no name of an annotation: %s", why);
        }
        if (size > 256 * 1024)
                lkg_breach_at(pod, LKG_F_OUT_OF_RANGE, path,
                              "is too large; want at most 262144 bytes with the kubelet's own");
}

static void check_searches(const struct lkg_rules *dns, const char *path)
{
        size_t size = 0;

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(dns, path), &m);)
                size += lkg_text_of(m.value).size + (m.i > 0);
        if (size > 2048)
                lkg_breach_at(dns, LKG_F_OUT_OF_RANGE, path, "are too long; want at most 2048 bytes");
}

/* A sysctl of a name space that the pod does not have of its own. */
static void check_sysctl(const struct lkg_rules *sysctl, const char *path)
{
        struct lkg_span text = lkg_rule_text(sysctl, path);
        LKG_CLEANUP(lkg_freep) char *name = lkg_span_dup(text);
        const char *field;

        lkg_sysctl_normalise(name);
        field = strncmp(name, "net.", 4) == 0 ? "hostNetwork" : "hostIPC";
        /* those that 1.36 knows are of these two */
        if (lkg_sysctl_pattern_136(text.data, text.size, NULL) == 0 &&
            lkg_rule_bool(lkg_rule_around(sysctl, "PodSpec"), field))
                lkg_breach_at(sysctl, LKG_F_CONTRADICTION, path,
                              "would be that of the node, because %s is true", field);
}

/* ---- rows ---- */

#define ROW      LKG_POD_ROW
#define OR_EMPTY .flags = LKG_RULE_EMPTY_OK
#define NIL      .flags = LKG_RULE_NIL
#define STATIC   .flags = LKG_RULE_STATIC
#define GATE_OFF .flags = LKG_RULE_GATE_OFF | LKG_RULE_EMPTY_OK

const struct lkg_value_rule lkg_pod_rules[] = {
        /* what a static pod cannot have; a name that is empty is no reference (skipEmptyNames) */
        ROW(UNSET, "PodSpec.ephemeralContainers", "they can only be added to a running pod", STATIC),
        ROW(UNSET, "PodSpec.schedulingGates", "the kubelet has scheduled a static pod already", STATIC),
        ROW(UNSET, "PodSpec.resourceClaims Container.resources.claims", no_objects, STATIC),
        ROW(UNSET, "PodSpec.resources.claims", no_objects, .flags = LKG_RULE_STATIC | LKG_RULE_NIL,
            .since = 135),
        ROW(UNSET,
            "PodSpec.serviceAccountName PodSpec.serviceAccount LocalObjectReference.name Container.envFrom "
            "Container.volumeDevices",
            no_objects, STATIC, .since = 134),
        ROW(UNSET,
            "Volume.secret Volume.configMap Volume.persistentVolumeClaim Volume.ephemeral Volume.csi "
            "Volume.glusterfs Volume.azureFile VolumeProjection.secret VolumeProjection.configMap "
            "VolumeProjection.serviceAccountToken EnvVarSource.secretKeyRef EnvVarSource.configMapKeyRef",
            no_objects, .flags = LKG_RULE_STATIC | LKG_RULE_NIL, .since = 134),
        ROW(UNSET, "VolumeProjection.clusterTrustBundle VolumeProjection.podCertificate", no_objects,
            .flags = LKG_RULE_STATIC | LKG_RULE_NIL),

        ROW(SET,
            "Pod.metadata.name PodSpec.containers OwnerReference.kind OwnerReference.name "
            "OwnerReference.uid PodDNSConfigOption.name Container.name Container.image EnvVar.name "
            "FileKeySelector.key FileKeySelector.path VolumeMount.mountPath ExecAction.command "
            "NodeSelector.nodeSelectorTerms TopologySpreadConstraint.topologyKey Volume.name "
            "HostPathVolumeSource.path DownwardAPIVolumeFile.path GitRepoVolumeSource.repository "
            "GCEPersistentDiskVolumeSource.pdName AWSElasticBlockStoreVolumeSource.volumeID "
            "NFSVolumeSource.server ISCSIVolumeSource.targetPortal ISCSIVolumeSource.iqn "
            "RBDVolumeSource.monitors RBDVolumeSource.image CephFSVolumeSource.monitors "
            "CinderVolumeSource.volumeID FlexVolumeSource.driver QuobyteVolumeSource.registry "
            "QuobyteVolumeSource.volume AzureDiskVolumeSource.diskName AzureDiskVolumeSource.diskURI "
            "VsphereVirtualDiskVolumeSource.volumePath PhotonPersistentDiskVolumeSource.pdID "
            "PortworxVolumeSource.volumeID ScaleIOVolumeSource.gateway ScaleIOVolumeSource.system "
            "ScaleIOVolumeSource.volumeName StorageOSVolumeSource.volumeName",
            set),
        ROW(SET, "ImageVolumeSource.reference", set, .since = 137),
        ROW(SET, "PodSpec.dnsConfig.nameservers", "set it with dnsPolicy None", .when = "dnsPolicy",
            .is = "None"),
        ROW(SET, "PodSchedulingGroup.podGroupName", set, NIL),
        ROW(SET, "ContainerRestartRule.exitCodes", set, NIL, .since = 135),
        ROW(SET, "AppArmorProfile.localhostProfile", set, .when = "type", .is = "Localhost"),
        ROW(SET, "SeccompProfile.localhostProfile", set, NIL, .when = "type", .is = "Localhost"),

        ROW(PARSE, "Pod.metadata.name", .parse = parse_pod_name, OR_EMPTY),
        ROW(PARSE, "Pod.metadata.generateName", .parse = parse_prefix, OR_EMPTY),
        ROW(PARSE, "Pod.metadata.finalizers", .parse = lkg_name_qualified, OR_EMPTY),
        ROW(MATCH, "Pod.metadata.finalizers", "want a domain before it, such as example.com/name",
            .words = "/|^(kubernetes|orphan|foregroundDeletion)?$"),
        ROW(NOT, "Pod.metadata.finalizers", "cannot go with orphan; remove one of them",
            .words = "foregroundDeletion", .when = "metadata.finalizers", .is = "orphan"),
        ROW(MATCH, "OwnerReference.apiVersion", "want one such as v1 or apps/v1",
            .words = "^([^/]*/)?[^/]+$"),
        ROW(PARSE,
            "Pod.metadata.namespace PodSpec.hostname PodSpec.subdomain Container.name Volume.name "
            "PodAffinityTerm.namespaces WorkloadReference.podGroupReplicaKey "
            "StorageOSVolumeSource.volumeName StorageOSVolumeSource.volumeNamespace",
            .parse = lkg_name_dns_label, OR_EMPTY),
        ROW(PARSE, "WorkloadReference.podGroup", .parse = lkg_name_dns_label),
        ROW(PARSE, "PodSpec.priorityClassName HostAlias.hostnames", .parse = lkg_name_dns_subdomain,
            OR_EMPTY),
        ROW(PARSE,
            "PodSpec.hostnameOverride PodSpec.runtimeClassName PodSchedulingGroup.podGroupName "
            "WorkloadReference.name",
            .parse = lkg_name_dns_subdomain),
        ROW(PARSE, "PodReadinessGate.conditionType PodAffinityTerm.topologyKey matchExpressions.key",
            .parse = lkg_name_qualified),
        ROW(PARSE,
            "Toleration.key PodAffinityTerm.matchLabelKeys PodAffinityTerm.mismatchLabelKeys "
            "TopologySpreadConstraint.matchLabelKeys",
            .parse = lkg_name_qualified, OR_EMPTY),
        ROW(PARSE, "LabelSelectorRequirement.values", .parse = lkg_name_label_value, OR_EMPTY),
        ROW(PARSE, "PodDNSConfig.nameservers", .parse = lkg_ip_check, GATE_OFF,
            .gate = "StrictIPCIDRValidation"),
        ROW(PARSE, "PodDNSConfig.nameservers", .parse = parse_ip_strict, OR_EMPTY,
            .gate = "StrictIPCIDRValidation"),
        ROW(PARSE, "HostAlias.ip", .parse = lkg_ip_check, .flags = LKG_RULE_GATE_OFF,
            .gate = "StrictIPCIDRValidation"),
        ROW(PARSE, "HostAlias.ip", .parse = parse_ip_strict, .gate = "StrictIPCIDRValidation"),
        ROW(PARSE, "PodDNSConfig.searches", .parse = parse_search, OR_EMPTY),
        ROW(PARSE, "Sysctl.name", .parse = parse_sysctl),
        ROW(PARSE, "Container.image AppArmorProfile.localhostProfile", .parse = parse_trimmed),
        ROW(PARSE, "ContainerPort.name HTTPGetAction.port TCPSocketAction.port", .parse = parse_port_name,
            OR_EMPTY),
        ROW(MATCH, "EnvVar.name FileKeySelector.key",
            "want printable ASCII without =", .words = "^[ -<>-~]*$"),
        /* up to 1.34, the kubelet validated without the options of its feature gates */
        ROW(MATCH, "EnvVar.name", "want letters, digits, -, _ and points, no digit and no .. at its begin",
            .words = "^([.]?[-_A-Za-z][-._A-Za-z0-9]*|[.][0-9][-._A-Za-z0-9]*)?$", .until = 134),
        ROW(MATCH, "HTTPHeader.name", "want letters, digits and -, such as X-Custom",
            .words = "^[-A-Za-z0-9]+$"),
        ROW(PARSE,
            "SeccompProfile.localhostProfile VolumeMount.subPath VolumeMount.subPathExpr "
            "GitRepoVolumeSource.directory",
            .parse = lkg_path_descending, OR_EMPTY),
        ROW(PARSE, "HostPathVolumeSource.path FileKeySelector.path", .parse = lkg_path_forward, OR_EMPTY),
        ROW(PARSE, "DownwardAPIVolumeFile.path", .parse = lkg_path_local, OR_EMPTY),
        ROW(MATCH, "NFSVolumeSource.path", "want an absolute path", .words = "^/"),

        ROW(NUMBER,
            "Pod.metadata.generation Probe.initialDelaySeconds Probe.timeoutSeconds Probe.periodSeconds "
            "Probe.successThreshold Probe.failureThreshold",
            not_negative, .max = NO_MAX),
        ROW(NUMBER,
            "Probe.terminationGracePeriodSeconds TopologySpreadConstraint.maxSkew "
            "TopologySpreadConstraint.minDomains",
            positive, 1, NO_MAX),
        ROW(NUMBER, "PodSpec.activeDeadlineSeconds", "want 1 to 2147483647", 1, INT32_MAX),
        ROW(NUMBER,
            "PodSecurityContext.fsGroup PodSecurityContext.runAsUser PodSecurityContext.runAsGroup "
            "PodSecurityContext.supplementalGroups SecurityContext.runAsUser SecurityContext.runAsGroup "
            "DownwardAPIVolumeSource.defaultUser "
            "DownwardAPIVolumeFile.user ProjectedVolumeSource.defaultUser",
            id, .max = INT32_MAX),
        ROW(NUMBER, "ContainerPort.containerPort GRPCAction.port HTTPGetAction.port TCPSocketAction.port",
            port, 1, 65535),
        ROW(NUMBER, "ContainerPort.hostPort", port, .max = 65535),
        ROW(NUMBER, "PreferredSchedulingTerm.weight WeightedPodAffinityTerm.weight", "want 1 to 100", 1,
            100),
        ROW(NUMBER,
            "DownwardAPIVolumeSource.defaultMode DownwardAPIVolumeFile.mode "
            "ProjectedVolumeSource.defaultMode",
            "want 0 to 0777", .max = 0777),
        ROW(NUMBER, "EmptyDirVolumeSource.mode", "want 0 to 01777", .max = 01777),
        ROW(NUMBER,
            "GCEPersistentDiskVolumeSource.partition AWSElasticBlockStoreVolumeSource.partition "
            "ISCSIVolumeSource.lun",
            "want 0 to 255", .max = 255),

        ROW(COUNT, "PodSpec.hostnameOverride", "is longer than 64 bytes", .max = 64),
        ROW(COUNT, "PodDNSConfig.nameservers", "are too many; want at most 3", .max = 3),
        ROW(COUNT, "PodDNSConfig.searches", "are too many; want at most 32", .max = 32),

        ROW(WORD, "ManagedFieldsEntry.operation", .words = "Apply, Update"),
        ROW(WORD, "ManagedFieldsEntry.fieldsType", .words = "FieldsV1", OR_EMPTY),
        ROW(WORD, "PodSpec.restartPolicy", .words = "Always, OnFailure, Never", OR_EMPTY),
        ROW(WORD, "PodSpec.dnsPolicy", .words = "ClusterFirstWithHostNet, ClusterFirst, Default, None",
            OR_EMPTY),
        ROW(WORD, "PodSpec.preemptionPolicy", .words = "PreemptLowerPriority, Never"),
        ROW(WORD, "PodOS.name", .words = "linux, windows"),
        ROW(WORD, "PodSecurityContext.fsGroupChangePolicy", .words = "OnRootMismatch, Always"),
        ROW(WORD, "PodSecurityContext.supplementalGroupsPolicy", .words = "Merge, Strict"),
        ROW(WORD, "PodSecurityContext.seLinuxChangePolicy", .words = "Recursive, MountOption"),
        ROW(WORD, "PodSecurityContext.seLinuxChangePolicy", "want Recursive", .words = "Recursive",
            .flags = LKG_RULE_GATE_OFF, .gate = "SELinuxMount", .since = 135),
        ROW(WORD, "SecurityContext.procMount", .words = "Default, Unmasked"),
        ROW(WORD, "SeccompProfile.type AppArmorProfile.type",
            .words = "Localhost, RuntimeDefault, Unconfined"),
        ROW(WORD, "Container.imagePullPolicy", .words = "Always, IfNotPresent, Never", OR_EMPTY),
        ROW(WORD, "ImageVolumeSource.pullPolicy", .words = "Always, IfNotPresent, Never", OR_EMPTY,
            .gate = "ImageVolume"),
        ROW(WORD, "ImageVolumeSource.pullPolicy", .words = "Always, IfNotPresent, Never", .until = 134),
        ROW(WORD, "Container.terminationMessagePolicy", .words = "File, FallbackToLogsOnError", OR_EMPTY),
        ROW(WORD, "ContainerPort.protocol", .words = "TCP, UDP, SCTP", OR_EMPTY),
        ROW(WORD, "VolumeMount.mountPropagation", .words = "None, HostToContainer, Bidirectional"),
        ROW(WORD, "VolumeMount.recursiveReadOnly", .words = "Disabled, IfPossible, Enabled"),
        ROW(WORD, "HostPathVolumeSource.type",
            .words = "DirectoryOrCreate, Directory, FileOrCreate, File, Socket, CharDevice, BlockDevice",
            OR_EMPTY),
        ROW(WORD, "ContainerResizePolicy.resourceName", .words = "cpu, memory"),
        ROW(WORD, "ContainerResizePolicy.restartPolicy", .words = "NotRequired, RestartContainer"),
        ROW(WORD, "ContainerRestartRule.action", .words = "Restart", .since = 135, .until = 135),
        ROW(WORD, "ContainerRestartRule.action", .words = "Restart, RestartAllContainers", .since = 136),
        ROW(WORD, "ContainerRestartRuleOnExitCodes.operator", .words = "In, NotIn", .since = 135),
        ROW(WORD, "HTTPGetAction.scheme", .words = "HTTP, HTTPS", OR_EMPTY),
        ROW(WORD, "HTTPGetAction.protocol", .words = "HTTP1, HTTP2"),
        ROW(WORD, "GRPCAction.mode", .words = "Plaintext, TLS"),
        ROW(WORD, "Lifecycle.stopSignal", .words = signals),
        ROW(WORD, "AzureDiskVolumeSource.cachingMode", .words = "None, ReadOnly, ReadWrite"),
        ROW(WORD, "AzureDiskVolumeSource.kind", .words = "Shared, Dedicated, Managed"),
        ROW(WORD, "Toleration.effect", .words = "NoSchedule, PreferNoSchedule, NoExecute", OR_EMPTY),
        ROW(WORD, "Toleration.operator", .words = "Equal, Exists", OR_EMPTY),
        ROW(WORD, "TopologySpreadConstraint.whenUnsatisfiable", .words = "DoNotSchedule, ScheduleAnyway"),
        ROW(WORD, "TopologySpreadConstraint.nodeAffinityPolicy TopologySpreadConstraint.nodeTaintsPolicy",
            .words = "Honor, Ignore"),

        ROW(ONCE, "Volume.name", .around = "PodSpec"),
        ROW(ONCE, "Sysctl.name", .around = "PodSecurityContext"),
        ROW(UNSET, "PodSpec.hostNetwork", own, .when = "hostUsers", .is = "false", GATE_OFF,
            .gate = "UserNamespacesHostNetworkSupport"),
        ROW(UNSET, "PodSpec.hostPID PodSpec.hostIPC", own, .when = "hostUsers", .is = "false"),
        ROW(UNSET, "PodSpec.shareProcessNamespace", "hostPID", .when = "hostPID"),
        ROW(UNSET, "PodSpec.hostnameOverride", "hostNetwork", NIL, .when = "hostNetwork"),
        ROW(UNSET, "PodSpec.hostnameOverride", "setHostnameAsFQDN", NIL, .when = "setHostnameAsFQDN"),
        ROW(UNSET, "PodSpec.schedulingGroup", "evictionResponders", NIL, .when = "evictionResponders"),
        ROW(UNSET, "PodSpec.securityContext.windowsOptions", "os linux", NIL, .when = "os.name",
            .is = "linux"),

        ROW(CHECK, "Pod.metadata.labels PodSpec.nodeSelector LabelSelector.matchLabels",
            .check = check_labels),
        ROW(CHECK, "Pod.metadata.annotations", .check = check_annotations),
        ROW(CHECK, "PodDNSConfig.searches", .check = check_searches),
        ROW(CHECK, "Sysctl.name", .check = check_sysctl),
};
const size_t lkg_n_pod_rules = LKG_ARRAY_SIZE(lkg_pod_rules);
