/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every setting of the LkgfsConfiguration document: one row per field with its type, default and place in struct
 * lkg_config. Data only; config-decode.c walks it. A row here is a paragraph in docs/man/lkgfs.conf.5.
 *
 * Defaults are text and go through the same conversion as the user's values: a default that would be refused cannot
 * exist. In a default of a component, `%` stands for the component's name.
 */
#include <lkg/schema.h>

#include "config-fields.h"

#define CONFIG(m)    offsetof(struct lkg_config, m)
#define COMPONENT(m) offsetof(struct lkg_config_component, m)

#define STRING       (1u << LKG_STRING)
#define NUMBER       (1u << LKG_NUMBER)
#define BARE_NAME    "a bare file name (no slash, not . or ..)"
#define LIST_OF(...)                                                                    \
        {                                                                               \
                1u << LKG_LIST, "a list of strings", "array", .list = true, __VA_ARGS__ \
        }

const struct lkg_config_type lkg_config_types[] = {
        [F_TEXT] = { STRING, "a string", "string", .text = true },
        [F_NAME] = { STRING, "a string", "string", .text = true, .code = 3008, .want = BARE_NAME },
        [F_LAYER] = { STRING, "a string", "string", .text = true, .code = 3017,
                      .want = "a path inside the source directory or an absolute one (no empty, . or .. "
                              "parts)" },
        [F_PATH] = { STRING, "a string", "string", .text = true },
        [F_BOOL] = { 1u << LKG_BOOL, "true or false", "boolean" },
        [F_DURATION] = { STRING, "a string: a duration like 30s or 5m", "string", .code = 3005,
                         .want = "a duration (want 500ms, 30s, 5m, 1h30m)" },
        [F_MODE] = { STRING, "a string: an octal mode in quotes, like \"0600\"", "string",
                     .pattern = "^[0-7]{1,5}$", .code = 3006,
                     .want = "an octal file mode (want \"0600\", \"0640\", at most \"0777\")" },
        [F_NUMBER] = { NUMBER, "a number", "integer", .code = 3010 },
        [F_BYTES] = { STRING | NUMBER, "a string or a number", "string", "integer",
                      "^[0-9]+([kMG]|[KMG]i)?$", 3011, "a size (want 1048576, 512Ki, 3Mi)" },
        [F_WORD] = { STRING, "a string", "string", .code = 3009 },
        /* `1.36` without quotes is a number */
        [F_RELEASE] = { STRING | NUMBER, "a string or a number", "string", "number", "^(auto|1[.][0-9]+)$",
                        3009 },
        [F_USER] = { STRING | NUMBER, "a string or a number", "string", "integer", .code = 3007,
                     .want = "a user of this system or a number" },
        [F_GROUP] = { STRING | NUMBER, "a string or a number", "string", "integer", .code = 3007,
                      .want = "a group of this system or a number" },
        [F_ACCOUNT] = { STRING | NUMBER, "a string or a number", "string", "integer", .text = true },
        [F_TEXTS] = LIST_OF(.want = NULL),
        [F_NAMES] = LIST_OF(.code = 3008, .want = BARE_NAME),
        [F_PATHS] = LIST_OF(.code = 3012, .want = "an absolute path"),
        [F_WORDS] = LIST_OF(.code = 3009),
        [F_OBJECT] = { 1u << LKG_MAP, "a map", "object" },
        [F_SKIP] = { 0 },
};

static const char *const policy_words[] = { "never", "unit", "hook", NULL };
static const char *const local_words[] = { "lkg", "strict", NULL };
static const char *const startup_words[] = { "refuse", "warn", NULL };
static const char *const writes_words[] = { "deny", "through", NULL };
static const char *const profile_words[] = { "none", "hardened", NULL };
static const char *const scope_words[] = { "remote", "all", NULL };
static const char *const link_words[] = { "beneath", "host", NULL };
static const char *const foreign_words[] = { "deny", "passthrough", "all", NULL };
static const char *const reference_words[] = { "nodeAnnotation", "nodeSpec", "static", "file", NULL };

static const char *const slots_words[] = { "require", "prefer", NULL };
static const char *const objects_words[] = { "configmaps", "leases", NULL };

static const struct lkg_config_field static_fields[] = {
        { "namespace", F_TEXT, CONFIG(remote.fixed.ns), "", .doc = "namespace of the ConfigMap" },
        { "name", F_TEXT, CONFIG(remote.fixed.name), "", .doc = "name of the ConfigMap" },
        { "key", F_TEXT, CONFIG(remote.fixed.key), "", .doc = "key of its data; empty = kubelet" },
        { "uid", F_TEXT, CONFIG(remote.fixed.uid), "",
          .doc = "an object with another uid is not accepted; empty = any" },
        { NULL },
};

static const struct lkg_config_field remote_fields[] = {
        { "enabled", F_BOOL, CONFIG(remote.enabled), "false",
          .doc = "whether remote configuration is followed at all" },
        { "kubeconfig", F_PATH, CONFIG(remote.kubeconfig), "",
          .doc = "how to reach the API server; empty = the service account of the pod, else kubelet.conf in "
                 "the source directory" },
        { "nodeName", F_TEXT, CONFIG(remote.node_name), "",
          .doc = "name of the Node object; empty = the host name in lower case" },
        { "references", F_WORDS, CONFIG(remote.references), "nodeAnnotation,nodeSpec,static,file",
          reference_words, .doc = "where to look for the reference to a ConfigMap, in this order" },
        { "static", F_OBJECT, .sub = static_fields, .doc = "one ConfigMap of the API server" },
        { "file", F_PATH, CONFIG(remote.file), "", .doc = "a local file with one ConfigMap; empty = none" },
        { "allowedSources", F_TEXTS, CONFIG(remote.allowed_sources), "kube-system/*",
          .doc = "objects that may be requested, as namespace/name; either part may be * or end in one" },
        { "allowExec", F_BOOL, CONFIG(remote.allow_exec), "false",
          .doc = "whether the exec plugin of a kubeconfig may be run, as root" },
        { "allowInsecure", F_BOOL, CONFIG(remote.allow_insecure), "false",
          .doc = "whether a kubeconfig may contain insecure-skip-tls-verify" },
        { "pollInterval", F_DURATION, CONFIG(remote.poll_interval_ns), "60s",
          .doc = "how often an object is read that may not be watched; at least 1s" },
        { "maxBytes", F_BYTES, CONFIG(remote.max_bytes), "3Mi", .min = 1, .max = LKG_DOC_BYTES_MAX,
          .doc = "maximum size of one object" },
        { "restartJitter", F_DURATION, CONFIG(remote.restart_jitter_ns), "5m",
          .doc = "after a remote change, restart components at some time within this period" },
        { "condition", F_BOOL, CONFIG(remote.condition), "true",
          .doc = "whether the condition ConfigOK is written to the Node" },
        { "events", F_BOOL, CONFIG(remote.events), "true",
          .doc = "whether Events about the condition are written" },
        { "rolloutSlots", F_WORD, CONFIG(remote.rollout_slots), "require", slots_words,
          .doc = "if a ConfigMap limits how many nodes try it and this node may not take part: wait, or go "
                 "ahead" },
        { "rolloutNamespace", F_TEXT, CONFIG(remote.rollout_namespace), "lkgfs-rollout",
          .doc = "namespace of the slots of rollouts" },
        { "rolloutObjects", F_WORD, CONFIG(remote.rollout_objects), "configmaps", objects_words,
          .doc = "objects that the slots of rollouts are, the same on all nodes; leases need another "
                 "credential than the kubelet's" },
        { NULL },
};

static const struct lkg_config_field trial_fields[] = {
        { "scope", F_WORD, CONFIG(trial.scope), "remote", scope_words, .set_offset = CONFIG(trial.scope_set),
          .doc = "what is on trial: remote configurations, or every new document" },
        { "duration", F_DURATION, CONFIG(trial.duration_ns), "10m", .set_offset = CONFIG(trial.duration_set),
          .doc = "how long a component must run with a configuration until it is trusted; 0s = no trial" },
        { "crashLoopThreshold", F_NUMBER, CONFIG(trial.crash_loop_threshold), "10", .min = 0, .max = 10,
          .doc = "number of counted starts before the one that gets the last known good configuration" },
        { "minDuration", F_DURATION, CONFIG(trial.min_duration_ns), "5m",
          .set_offset = CONFIG(trial.min_duration_set),
          .doc = "lower limit of the duration, also of one that a candidate sets" },
        { "maxDuration", F_DURATION, CONFIG(trial.max_duration_ns), "0s",
          .doc = "upper limit of the duration; 0s = none" },
        { NULL },
};

const struct lkg_config_field lkg_config_fields[] = {
        { "apiVersion", F_SKIP, .doc = "group and version of this kind" },
        { "kind", F_SKIP, .doc = "kind of this document" },
        { "stateDir", F_PATH, CONFIG(state_dir), "/var/lib/lkgfs",
          .doc = "what survives a reboot: history, holds, numbers" },
        { "runtimeDir", F_PATH, CONFIG(runtime_dir), "/run/lkgfs",
          .doc = "what survives a restart of a process; should be on a tmpfs" },
        { "sourceDir", F_PATH, CONFIG(source_dir), "",
          .doc = "the real directory behind the view; empty = the one that the mount covers" },
        { "virtualDir", F_NAME, CONFIG(virtual_dir), "",
          .doc = "directory of the view that holds status, control, layers, history, bad and lkg; empty = "
                 "the root of the view" },
        { "layerLinks", F_WORD, CONFIG(layer_links), "beneath", link_words,
          .doc = "where symbolic links of layers below the source directory may lead" },
        { "foreignWrites", F_WORD, CONFIG(foreign_writes), "deny", foreign_words,
          .doc = "what processes in other mount namespaces may do besides reading" },
        { "statusMode", F_MODE, CONFIG(status_mode), "0444", .doc = "mode of the files below status/" },
        { "engineUser", F_ACCOUNT, CONFIG(engine_user), LKG_ENGINE_USER,
          .set_offset = CONFIG(engine_user_set),
          .doc = "user of the engine: a name in /etc/passwd or a number; root, empty or 0 = root" },
        { "engineTimeout", F_DURATION, CONFIG(engine_timeout_ns), "2s",
          .doc = "how long a caller waits for the engine, 10ms to 1m" },
        { "historyLimit", F_NUMBER, CONFIG(history_limit), "16", .min = 1, .max = LKG_HISTORY_MAX,
          .doc = "generations kept per component" },
        { "remote", F_OBJECT, .sub = remote_fields, .doc = "remote configuration" },
        { "trial", F_OBJECT, .sub = trial_fields, .doc = "when a new configuration is trusted" },
        { "components", F_SKIP, .doc = "the served components; none = kubelet" },
        { NULL },
};

static const struct lkg_config_field match_fields[] = {
        { "unit", F_TEXT, COMPONENT(match.unit), "%.service",
          .doc = "systemd unit of the component; empty = none" },
        { "exe", F_PATHS, COMPONENT(match.exe), "/usr/bin/%",
          .doc = "programs of the component, absolute paths" },
        { "cgroup", F_PATHS, COMPONENT(match.cgroup), NULL,
          .doc = "patterns of control group paths, for components in containers" },
        { NULL },
};

static const struct lkg_config_field restart_fields[] = {
        { "policy", F_WORD, COMPONENT(restart.policy), "never", policy_words,
          .doc = "how the component is restarted if it runs with another document than is served" },
        { "unit", F_TEXT, COMPONENT(restart.unit), "", .doc = "unit to restart; empty = that of match" },
        { "hook", F_TEXTS, COMPONENT(restart.hook), NULL,
          .doc = "program that restarts the component: an argument list that begins with an absolute path" },
        { "minInterval", F_DURATION, COMPONENT(restart.min_interval_ns), "60s",
          .doc = "minimum time between two restarts" },
        { "maxPerHour", F_NUMBER, COMPONENT(restart.max_per_hour), "6", .min = 1, .max = 3600,
          .doc = "maximum number of restarts in any hour" },
        { NULL },
};

static const struct lkg_config_field guard_fields[] = {
        { "profile", F_WORD, COMPONENT(guard.profile), "none", profile_words,
          .doc = "hardened denies fields that would let the author of a ConfigMap become root on the node" },
        { "deny", F_TEXTS, COMPONENT(guard.deny), NULL,
          .doc = "fields that a remote configuration must not set; a final * stands for the rest of a "
                 "name" },
        { "pinned", F_TEXTS, COMPONENT(guard.pinned), NULL,
          .doc = "fields that a remote configuration must not change" },
        { NULL },
};

static const struct lkg_config_field http_fields[] = {
        { "url", F_TEXT, COMPONENT(health.http.url), "",
          .doc = "health endpoint, like http://127.0.0.1:10248/healthz; auto = as the served document says; "
                 "empty = none" },
        { "interval", F_DURATION, COMPONENT(health.http.interval_ns), "10s",
          .doc = "time between two requests, 1s to 10m" },
        { "timeout", F_DURATION, COMPONENT(health.http.timeout_ns), "1s",
          .doc = "longest time of one request, 100ms to 1m" },
        { "failureThreshold", F_NUMBER, COMPONENT(health.http.failure_threshold), "3", .min = 1, .max = 100,
          .doc = "consecutive failures after which the endpoint counts as bad" },
        { "allowRemote", F_BOOL, COMPONENT(health.http.allow_remote), "false",
          .doc = "whether the host of url may be another one than this machine's loopback" },
        { NULL },
};

static const struct lkg_config_field health_fields[] = {
        { "nodeReady", F_BOOL, COMPONENT(health.node_ready), "true",
          .set_offset = COMPONENT(health.node_ready_set),
          .doc = "whether the Node must be Ready; default: true for kubelet, if its Node is followed" },
        { "stableFor", F_DURATION, COMPONENT(health.stable_for_ns), "1m",
          .doc = "how long the component must have lived healthily, without a break, when the trial ends" },
        { "http", F_OBJECT, .sub = http_fields, .doc = "health endpoint of the component" },
        { NULL },
};

static const struct lkg_config_field component_trial_fields[] = {
        { "duration", F_DURATION, COMPONENT(pods.duration_ns), "5m",
          .set_offset = COMPONENT(pods.duration_set),
          .doc = "of StaticPods: how long a changed manifest may take until its probes answer well; "
                 "default: "
                 "trial.duration, else 5m" },
        { "settle", F_DURATION, COMPONENT(pods.settle_ns), "30s", .set_offset = COMPONENT(pods.settle_set),
          .doc = "of StaticPods: manifests that change within this time are tried together" },
        { "health", F_OBJECT, .sub = health_fields,
          .doc = "what must be good, besides that the component lives" },
        { NULL },
};

const struct lkg_config_field lkg_component_fields[] = {
        { "name", F_NAME, COMPONENT(name), "kubelet", .doc = "name of the component, required" },
        { "file", F_NAME, COMPONENT(file), "%.conf", .doc = "name of the merged file in the view" },
        { "aliases", F_NAMES, COMPONENT(aliases), NULL, .doc = "more names for the merged file" },
        { "kind", F_TEXT, COMPONENT(kind), "",
          .doc = "kind that every layer must have; empty = that of the base" },
        { "apiVersion", F_TEXT, COMPONENT(api_version), "",
          .doc = "apiVersion that every layer must have; empty = that of the base" },
        { "source", F_LAYER, COMPONENT(pods.source), LKG_PODS_SOURCE,
          .set_offset = COMPONENT(pods.source_set),
          .doc = "of StaticPods: directory of the manifests; default: what staticPodPath of the kubelet's "
                 "layers names" },
        { "dir", F_NAME, COMPONENT(pods.dir), "static-pods",
          .doc = "of StaticPods: directory of the view from which the kubelet reads them" },
        { "base", F_LAYER, COMPONENT(base), NULL, .set_offset = COMPONENT(base_set),
          .doc = "the lowest layer, relative to the source directory; empty = none. Default: the name in "
                 "`file`" }, /* default: the name in `file` */
        { "dropInDir", F_LAYER, COMPONENT(dropin_dir), "%.conf.d", .set_offset = COMPONENT(dropin_dir_set),
          .doc = "directory of drop-ins; empty = none" },
        { "instance", F_LAYER, COMPONENT(instance), "%-instance.conf", .set_offset = COMPONENT(instance_set),
          .doc = "the highest layer, a strategic merge patch; empty = none" },
        { "patchesDir", F_LAYER, COMPONENT(patches_dir), "",
          .doc = "directory of kubeadm patches for kubeletconfiguration; empty = none" },
        { "maxDropIns", F_NUMBER, COMPONENT(max_dropins), "256", .min = 1, .max = LKG_DROPINS_LIMIT,
          .doc = "how many drop-ins are accepted, and how many patches" },
        { "maxLayerBytes", F_BYTES, COMPONENT(max_layer_bytes), "8Mi", .min = 1,
          .max = LKG_LAYER_BYTES_LIMIT, .doc = "how large the layers may be together" },
        { "mode", F_MODE, COMPONENT(mode), "0600", .doc = "mode of the merged file" },
        { "owner", F_USER, COMPONENT(uid), "root", .doc = "owner of the merged file, a name or a number" },
        { "group", F_GROUP, COMPONENT(gid), "root", .doc = "group of the merged file, a name or a number" },
        { "match", F_OBJECT, .sub = match_fields, .doc = "how a process is recognised as the component" },
        { "restart", F_OBJECT, .sub = restart_fields, .doc = "whether and how the component is restarted" },
        { "localPolicy", F_WORD, COMPONENT(local_policy), "lkg", local_words,
          .doc = "at a start with invalid local layers: serve what was served last, or refuse to start" },
        { "startupRules", F_WORD, COMPONENT(startup_rules), "refuse", startup_words,
          .doc = "values with which the component exits at its start: refuse them, or only warn" },
        { "guard", F_OBJECT, .sub = guard_fields, .doc = "what a remote configuration must not set" },
        { "trial", F_OBJECT, .sub = component_trial_fields, .doc = "when a trial of this component passes" },
        { "baseWrites", F_WORD, COMPONENT(base_writes), "deny", writes_words,
          .doc = "through: writes to the merged file go to the base" },
        { "runtimeEndpoint", F_TEXT, COMPONENT(runtime_endpoint), "auto",
          .doc = "socket of the container runtime, like unix:///run/containerd/containerd.sock, that is "
                 "asked about static pods; auto = "
                 "where it usually is; empty = it is not asked" },
        { "schemaRelease", F_RELEASE, COMPONENT(schema_release), "auto", .min = LKG_RELEASE_MIN,
          .max = LKG_RELEASE_MAX,
          .doc = "Kubernetes release by which documents are judged; auto = that of the component, if it is "
                 "known" },
        { NULL },
};
