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

static const char *const policy_words[] = { "never", "unit", "hook", NULL };
static const char *const local_words[] = { "lkg", "strict", NULL };
static const char *const startup_words[] = { "refuse", "warn", NULL };
static const char *const writes_words[] = { "deny", "through", NULL };
static const char *const profile_words[] = { "none", "hardened", NULL };
static const char *const scope_words[] = { "remote", "all", NULL };
static const char *const link_words[] = { "beneath", "host", NULL };
static const char *const foreign_words[] = { "deny", "passthrough", "all", NULL };
static const char *const reference_words[] = { "nodeAnnotation", "nodeSpec", "static", "file", NULL };

static const struct lkg_config_field static_fields[] = {
        { "namespace", F_TEXT, CONFIG(remote.fixed.ns), "" },
        { "name", F_TEXT, CONFIG(remote.fixed.name), "" },
        { "key", F_TEXT, CONFIG(remote.fixed.key), "" },
        { "uid", F_TEXT, CONFIG(remote.fixed.uid), "" },
        { NULL },
};

static const struct lkg_config_field remote_fields[] = {
        { "enabled", F_BOOL, CONFIG(remote.enabled), "false" },
        { "kubeconfig", F_PATH, CONFIG(remote.kubeconfig), "" },
        { "nodeName", F_TEXT, CONFIG(remote.node_name), "" },
        { "references", F_WORDS, CONFIG(remote.references), "nodeAnnotation,nodeSpec,static,file",
          reference_words },
        { "static", F_OBJECT, .sub = static_fields },
        { "file", F_PATH, CONFIG(remote.file), "" },
        { "allowedSources", F_TEXTS, CONFIG(remote.allowed_sources), "kube-system/*" },
        { "allowExec", F_BOOL, CONFIG(remote.allow_exec), "false" },
        { "allowInsecure", F_BOOL, CONFIG(remote.allow_insecure), "false" },
        { "pollInterval", F_DURATION, CONFIG(remote.poll_interval_ns), "60s" },
        { "maxBytes", F_BYTES, CONFIG(remote.max_bytes), "3Mi" },
        { "restartJitter", F_DURATION, CONFIG(remote.restart_jitter_ns), "5m" },
        { "condition", F_BOOL, CONFIG(remote.condition), "true" },
        { "events", F_BOOL, CONFIG(remote.events), "true" },
        { NULL },
};

static const struct lkg_config_field trial_fields[] = {
        { "scope", F_WORD, CONFIG(trial.scope), "remote", scope_words },
        { "duration", F_DURATION, CONFIG(trial.duration_ns), "10m" },
        { "crashLoopThreshold", F_NUMBER, CONFIG(trial.crash_loop_threshold), "10", .min = 0, .max = 10 },
        { "minDuration", F_DURATION, CONFIG(trial.min_duration_ns), "5m",
          .set_offset = CONFIG(trial.min_duration_set) },
        { "maxDuration", F_DURATION, CONFIG(trial.max_duration_ns), "0s" },
        { NULL },
};

const struct lkg_config_field lkg_config_fields[] = {
        { "apiVersion", F_SKIP },
        { "kind", F_SKIP },
        { "stateDir", F_PATH, CONFIG(state_dir), "/var/lib/lkgfs" },
        { "runtimeDir", F_PATH, CONFIG(runtime_dir), "/run/lkgfs" },
        { "sourceDir", F_PATH, CONFIG(source_dir), "" },
        { "virtualDir", F_NAME, CONFIG(virtual_dir), "" },
        { "nativeDirs", F_NAMES, CONFIG(native_dirs), NULL },
        { "layerLinks", F_WORD, CONFIG(layer_links), "beneath", link_words },
        { "foreignWrites", F_WORD, CONFIG(foreign_writes), "deny", foreign_words },
        { "statusMode", F_MODE, CONFIG(status_mode), "0444" },
        { "engineUser", F_ACCOUNT, CONFIG(engine_user), LKG_ENGINE_USER,
          .set_offset = CONFIG(engine_user_set) },
        { "engineTimeout", F_DURATION, CONFIG(engine_timeout_ns), "2s" },
        { "historyLimit", F_NUMBER, CONFIG(history_limit), "16", .min = 1, .max = LKG_HISTORY_MAX },
        { "remote", F_OBJECT, .sub = remote_fields },
        { "trial", F_OBJECT, .sub = trial_fields },
        { "components", F_SKIP },
        { NULL },
};

static const struct lkg_config_field match_fields[] = {
        { "unit", F_TEXT, COMPONENT(match.unit), "%.service" },
        { "exe", F_PATHS, COMPONENT(match.exe), "/usr/bin/%" },
        { "cgroup", F_PATHS, COMPONENT(match.cgroup), NULL },
        { NULL },
};

static const struct lkg_config_field restart_fields[] = {
        { "policy", F_WORD, COMPONENT(restart.policy), "never", policy_words },
        { "unit", F_TEXT, COMPONENT(restart.unit), "" },
        { "hook", F_TEXTS, COMPONENT(restart.hook), NULL },
        { "minInterval", F_DURATION, COMPONENT(restart.min_interval_ns), "60s" },
        { "maxPerHour", F_NUMBER, COMPONENT(restart.max_per_hour), "6", .min = 1, .max = 3600 },
        { NULL },
};

static const struct lkg_config_field guard_fields[] = {
        { "profile", F_WORD, COMPONENT(guard.profile), "none", profile_words },
        { "deny", F_TEXTS, COMPONENT(guard.deny), NULL },
        { "pinned", F_TEXTS, COMPONENT(guard.pinned), NULL },
        { NULL },
};

const struct lkg_config_field lkg_component_fields[] = {
        { "name", F_NAME, COMPONENT(name), "kubelet" },
        { "file", F_NAME, COMPONENT(file), "%.conf" },
        { "aliases", F_NAMES, COMPONENT(aliases), NULL },
        { "kind", F_TEXT, COMPONENT(kind), "" },
        { "apiVersion", F_TEXT, COMPONENT(api_version), "" },
        { "base", F_LAYER, COMPONENT(base), NULL,
          .set_offset = COMPONENT(base_set) }, /* default: the name in `file` */
        { "dropInDir", F_LAYER, COMPONENT(dropin_dir), "%.conf.d", .set_offset = COMPONENT(dropin_dir_set) },
        { "instance", F_LAYER, COMPONENT(instance), "%-instance.conf",
          .set_offset = COMPONENT(instance_set) },
        { "patchesDir", F_LAYER, COMPONENT(patches_dir), "" },
        { "mode", F_MODE, COMPONENT(mode), "0600" },
        { "owner", F_USER, COMPONENT(uid), "root" },
        { "group", F_GROUP, COMPONENT(gid), "root" },
        { "match", F_OBJECT, .sub = match_fields },
        { "restart", F_OBJECT, .sub = restart_fields },
        { "localPolicy", F_WORD, COMPONENT(local_policy), "lkg", local_words },
        { "startupRules", F_WORD, COMPONENT(startup_rules), "refuse", startup_words },
        { "guard", F_OBJECT, .sub = guard_fields },
        { "baseWrites", F_WORD, COMPONENT(base_writes), "deny", writes_words },
        { "schemaRelease", F_RELEASE, COMPONENT(schema_release), "auto", .min = LKG_RELEASE_MIN,
          .max = LKG_RELEASE_MAX },
        { NULL },
};
