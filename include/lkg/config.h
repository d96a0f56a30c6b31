/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own configuration: the LkgfsConfiguration document, its drop-ins, every setting with its default.
 *
 * Loaded once at start and again on SIGHUP; immutable afterwards, owned by the engine. User manual:
 * docs/man/lkgfs.conf.5; the tables in config-fields.c are its source.
 */
#pragma once

#include <sys/types.h>

#include <lkg/process.h>
#include <lkg/documents.h>
#include <lkg/messages.h>
#include <lkg/base.h>
#include <lkg/limits.h>
#include <lkg/text.h>

#define LKG_CONFIG_KIND        "LkgfsConfiguration"
#define LKG_CONFIG_API_VERSION "config.lkgfs.io/v1alpha1"
#define LKG_CONFIG_DEFAULT     "/etc/lkgfs/config.yaml"
#define LKG_CONFIG_VENDOR_DIR  "/usr/lib/lkgfs/config.d"

#define LKG_ENGINE_USER        "lkgfs" /* engineUser by default: created by the package */

#define LKG_PODS_KIND          "StaticPods" /* of a component whose documents are static pods */
#define LKG_PODS_SOURCE        "manifests"  /* where they are, if neither we nor a kubelet's layers say so */

#define LKG_WAKE_NAME          ".lv" /* the notifier's own name in the view */

enum lkg_local_policy { LKG_LOCAL_LKG, LKG_LOCAL_STRICT };
enum lkg_startup_rules { LKG_STARTUP_REFUSE, LKG_STARTUP_WARN };
enum lkg_base_writes { LKG_BASE_WRITES_DENY, LKG_BASE_WRITES_THROUGH };
enum lkg_guard_profile { LKG_GUARD_NONE, LKG_GUARD_HARDENED };
enum lkg_layer_links { LKG_LINKS_BENEATH, LKG_LINKS_HOST };
enum lkg_rollout_slots { LKG_SLOTS_REQUIRE, LKG_SLOTS_PREFER };
enum lkg_trial_scope { LKG_TRIAL_REMOTE, LKG_TRIAL_ALL };

/* How a process is recognised as the component. */
struct lkg_config_match {
        char *unit;
        struct lkg_strings exe;
        struct lkg_strings cgroup; /* patterns of paths */
};

struct lkg_config_restart {
        int policy; /* enum lkg_settings_restart */
        char *unit;
        struct lkg_strings hook;
        uint64_t min_interval_ns;
        uint64_t max_per_hour;
};

/* What a remote configuration must not set. */
struct lkg_config_guard {
        int profile; /* enum lkg_guard_profile */
        struct lkg_strings deny, pinned;
};

struct lkg_config_http {
        char *url; /* "" = none, "auto" = that of the served document */
        bool allow_remote;
        uint64_t interval_ns, timeout_ns, failure_threshold;
};

struct lkg_config_pods {
        char *source, *dir; /* of the source directory, of the view */
        bool source_set;
        uint64_t duration_ns, settle_ns;
        bool duration_set, settle_set;
};

struct lkg_config_health {               /* trial.health */
        bool node_ready, node_ready_set; /* set by the user, not a default */
        uint64_t stable_for_ns;
        struct lkg_config_http http;
};

struct lkg_config_component {
        char *name, *file;
        struct lkg_strings aliases;
        char *kind, *api_version;
        char *base, *dropin_dir, *instance, *patches_dir; /* relative to the source directory, or absolute */
        bool base_set, dropin_dir_set, instance_set;      /* set by the user, not a default */
        uint64_t max_dropins, max_layer_bytes;
        uint32_t mode, uid, gid;
        struct lkg_config_match match;
        struct lkg_config_restart restart;
        int local_policy; /* enum lkg_local_policy */
        /* enum lkg_startup_rules: for values that pass validation and stop the component at its start */
        int startup_rules;
        struct lkg_config_guard guard;
        struct lkg_config_health health;
        int base_writes;         /* enum lkg_base_writes */
        uint64_t schema_release; /* 136 is 1.36; 0 = auto */
        bool is_pods; /* kind StaticPods: dropin_dir is pods.source, and file is pods.dir, a directory */
        struct lkg_config_pods pods;
        char *runtime_endpoint; /* auto, or unix:///path; "" = none */
};

struct lkg_config_remote {
        bool enabled;
        char *kubeconfig, *node_name;
        struct lkg_strings references;
        struct {
                char *ns, *name, *key, *uid;
        } fixed; /* `static` in the document */
        char *file;
        struct lkg_strings allowed_sources;
        bool allow_exec, allow_insecure;
        uint64_t poll_interval_ns, max_bytes, restart_jitter_ns;
        bool condition, events;
        int rollout_slots;   /* enum lkg_rollout_slots */
        int rollout_objects; /* enum lkg_slot_kind */
        char *rollout_namespace;
};

struct lkg_config_trial {
        int scope;                    /* enum lkg_trial_scope */
        bool scope_set, duration_set; /* set by the user, not a default */
        uint64_t duration_ns, crash_loop_threshold;
        uint64_t min_duration_ns, max_duration_ns; /* 0 = no clamp */
        bool min_duration_set;                     /* set by the user, not a default */
};

struct lkg_config {
        char *state_dir, *runtime_dir; /* absolute */
        char *source_dir;              /* absolute, or "" = the covered directory */
        char *virtual_dir;             /* one name, or "" */
        int foreign_writes;            /* as enum lkg_foreign_writes */
        int layer_links;               /* enum lkg_layer_links */
        uint32_t status_mode;
        char *engine_user;        /* a name, a number, "" = root */
        bool engine_user_set;     /* set by the user, not a default */
        bool engine_user_missing; /* no such user: root is used */
        struct lkg_account engine_account;
        uint64_t engine_timeout_ns;
        uint64_t history_limit;
        struct lkg_config_remote remote;
        struct lkg_config_trial trial;
        struct lkg_config_component *components;
        size_t n_components;
};

struct lkg_config_options {
        const char *path;       /* the --config file; NULL = LKG_CONFIG_DEFAULT */
        const char *vendor_dir; /* NULL = LKG_CONFIG_VENDOR_DIR */
        bool trust_any_owner; /* unit tests and `lkgfs-engine --check` by a plain user: no ownership rule */
        bool must_exist;      /* a file that was named: that it is missing is an error */
};

/**
 * lkg_config_load() - read the document and its drop-ins, decode them strictly and check them.
 * @report: every finding, with file, line and column
 * @ret:    caller frees with lkg_config_free()
 *
 * Drop-ins are `*.conf` in @vendor_dir and in `config.d` next to the file, JSON merge patches in byte order of their
 * names; one in config.d replaces the vendor's of the same name (systemd's rule). `components` merge by name. A missing
 * file or directory is empty.
 *
 * Return: 0; -EBADMSG: @report has errors; -EPERM: a file or a directory of its path is not owned by
 * root or is writable by others (the report says which).
 */
int lkg_config_load(const struct lkg_config_options *options, struct lkg_config **ret,
                    struct lkg_report *report);

/**
 * lkg_config_decode() - turn the merged document into settings. Pure, except for the user database.
 * @doc:       a map, or NULL for all defaults
 * @directory: absolute; relative paths of the document start here
 *
 * Return: 0; -EBADMSG when @report has errors.
 */
int lkg_config_decode(const struct lkg_value *doc, const char *directory, struct lkg_config **ret,
                      struct lkg_report *report);

/**
 * lkg_config_merge() - merge one drop-in into the document: a JSON merge patch, `components` by name.
 * Return: one reference.
 */
struct lkg_value *lkg_config_merge(const struct lkg_value *doc, const struct lkg_value *patch);

/** lkg_config_check() - checks that involve several settings: duplicates, reserved names, contradictions. */
void lkg_config_check(const struct lkg_config *config, const struct lkg_value *doc,
                      struct lkg_report *report);

/** lkg_config_json() - the settings as a JSON Schema (lkg/schema.h). A whole document. */
struct lkg_json;
void lkg_config_json(struct lkg_json *json);

struct lkg_config *lkg_config_free(struct lkg_config *config);

/** lkg_config_is_virtual() - is @name a top-level directory of the virtual tree under this configuration? */
bool lkg_config_is_virtual(const struct lkg_config *config, const char *name);

/* The names of the virtual directories, in byte order, NULL at the end. */
extern const char *const lkg_config_virtual_dirs[];

/** lkg_config_to_settings() - append the part that the supervisor needs, as lkg_settings_parse() reads it. */
void lkg_config_to_settings(const struct lkg_config *config, struct lkg_buf *buf);

/**
 * lkg_config_keep_mount() - settings of the mount itself stay as @config has them until the next mount; what differs changes
 * places. @report: which
 */
void lkg_config_keep_mount(struct lkg_config *config, struct lkg_config *next, struct lkg_report *report);
