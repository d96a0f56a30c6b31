/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor needs of the configuration, as `lkgfs-engine --print-settings` prints it: `key=value` lines, so
 * that the process which must never fail parses no YAML. Values have bytes below 0x20, 0x7f and `%` as %XX.
 *
 *     state_dir= runtime_dir= source_dir= virtual_dir= native_dir= (repeated) engine_timeout_ms=
 *     component=<name> component_unit=<unit> component_exe=<path> (repeated: of the component named last)
 *     view_file=<name>  (repeated: view names and aliases)   reserved=<name> (repeated: names the view shadows)
 *
 * A setting that is missing keeps its default; an unknown key is ignored (an older supervisor, a newer engine).
 */
#pragma once

#include <lkg/error.h>
#include <lkg/limits.h>

struct lkg_settings_component {
        char *name, *unit; /* unit "" = none */
        char **exes;       /* absolute */
        size_t n_exes;
};

struct lkg_settings {
        char *state_dir, *runtime_dir;
        char *source_dir; /* "" = the covered directory */
        char *virtual_dir;
        char **native_dirs;
        size_t n_native_dirs;
        char **view_files;
        size_t n_view_files;
        char **reserved;
        size_t n_reserved;
        struct lkg_settings_component *components;
        size_t n_components;
        uint32_t engine_timeout_ms;
};

int lkg_settings_parse(const char *data, size_t size, struct lkg_settings **ret, struct lkg_error *err);
struct lkg_settings *lkg_settings_free(struct lkg_settings *settings);

struct lkg_buf;
void lkg_settings_format(const struct lkg_settings *settings, struct lkg_buf *buf);
