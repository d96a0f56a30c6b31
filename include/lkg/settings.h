/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor needs from the configuration, as `lkgfs-engine --print-settings` prints it: `key=value` lines, so
 * that the supervisor parses no YAML. In values, bytes below 0x20, 0x7f and `%` are written as %XX.
 *
 *     state_dir= runtime_dir= source_dir= virtual_dir= engine_timeout_ms=
 *     component=<name>, then, for the component named last:
 *         component_file=<view name> component_uid= component_gid= component_mode=<decimal>  (of the copies, <lkg/fallback.h>)
 *         component_unit=<unit> component_exe=<path> (repeated) component_restart=never|unit|hook
 *         component_restart_unit=<unit> component_restart_argv=<word> (repeated)
 *         component_restart_min_interval_ms= component_restart_max_per_hour=
 *     foreign_writes=<enum lkg_foreign_writes> restart_jitter_ms= node_name= (empty: the machine id is used
 *     instead) engine_user=<as it is configured> engine_uid= engine_gid= (0: root) engine_user_missing=0|1
 *
 * A setting that is missing keeps its default; an unknown key is ignored (an older supervisor, a newer engine).
 */
#pragma once

#include <lkg/error.h>
#include <lkg/limits.h>

enum lkg_settings_restart {
        LKG_SETTINGS_RESTART_NEVER,
        LKG_SETTINGS_RESTART_UNIT,
        LKG_SETTINGS_RESTART_HOOK,
        _LKG_SETTINGS_RESTART_MAX
};

/* What callers in another mount namespace may do, besides reading. */
enum lkg_foreign_writes {
        LKG_FOREIGN_DENY,        /* nothing: EROFS, and EPERM in control/ and bad/ */
        LKG_FOREIGN_PASSTHROUGH, /* change the files of the source directory */
        LKG_FOREIGN_ALL,         /* also send commands */
        _LKG_FOREIGN_MAX
};

struct lkg_settings_component {
        char *name, *unit; /* unit "" = none */
        char *file;        /* its name in the view */
        uint32_t uid, gid, mode;
        char **exes; /* absolute */
        size_t n_exes;
        enum lkg_settings_restart restart;
        char *restart_unit;  /* the unit to restart, "" = none */
        char **restart_argv; /* the first one is absolute */
        size_t n_restart_argv;
        uint32_t restart_min_interval_ms, restart_max_per_hour; /* max at least 1 */
};

struct lkg_settings {
        char *state_dir, *runtime_dir;
        char *source_dir; /* "" = the covered directory */
        char *virtual_dir;
        struct lkg_settings_component *components;
        size_t n_components;
        uint32_t engine_timeout_ms;
        uint32_t foreign_writes;    /* enum lkg_foreign_writes */
        uint32_t restart_jitter_ms; /* of a restart after a remote change; 0 = none */
        char *node_name;
        char *engine_user; /* for messages; "" = root */
        uint32_t engine_uid, engine_gid;
        uint32_t engine_user_missing; /* there is no such user: engine_uid is 0 */
};

/** lkg_settings_restart_word() - `never`, `unit`, `hook`. */
const char *lkg_settings_restart_word(enum lkg_settings_restart restart);

int lkg_settings_parse(const char *data, size_t size, struct lkg_settings **ret, struct lkg_error *err);
struct lkg_settings *lkg_settings_free(struct lkg_settings *settings);

struct lkg_buf;
void lkg_settings_format(const struct lkg_settings *settings, struct lkg_buf *buf);
