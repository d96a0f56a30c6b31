/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the status files about dynamic configuration: assigned, active, last known good, trial, bad marks. Shared by the verbs
 * status and doctor. Parts with missing or unreadable files are left out.
 */
#pragma once

#include "tool.h"

struct lkg_view_dynamic {
        char *assigned, *active,
                *last_known_good; /* "<source id> <namespace>/<name>", "init", "default"; NULL = unknown */
        char *trial_state, *trial_started, *trial_deadline; /* NULL = unknown, "" = none */
        uint64_t prior_starts, threshold;
        bool has_prior_starts, has_threshold;
        bool has_bad; /* bad/<component>/ could be listed */
        size_t n_bad;
        char *assigned_mark; /* the name in bad/ that marks the assigned configuration; NULL = none */
};

void lkg_dynamic_read(const struct lkg_view *view, const char *component, struct lkg_view_dynamic *ret);
void lkg_dynamic_deinit(struct lkg_view_dynamic *dynamic);

/**
 * lkg_dynamic_parse_trial() - parse status/<component>/trial, `key=value` lines in any order; unknown keys
 * are ignored.
 */
void lkg_dynamic_parse_trial(const char *text, struct lkg_view_dynamic *dynamic);

/** lkg_dynamic_is_remote() - does this text name a ConfigMap, and not `init`, `default` or a local id? */
bool lkg_dynamic_is_remote(const char *text);

/** lkg_dynamic_matters() - is there anything besides the local configuration? If not, no lines are added. */
bool lkg_dynamic_matters(const struct lkg_view_dynamic *dynamic);

/** lkg_dynamic_is_on_trial() - is the trial running? */
bool lkg_dynamic_is_on_trial(const struct lkg_view_dynamic *dynamic);

/** lkg_dynamic_text() - the lines of `lkgfs status`; none if nothing matters. */
void lkg_dynamic_text(const struct lkg_view_dynamic *dynamic, struct lkg_buf *buf);
void lkg_dynamic_map(const struct lkg_view_dynamic *dynamic, struct lkg_tool_map *map);

/**
 * lkg_dynamic_next() - one line of advice about a refused or tried configuration.
 * Return: false: there is none.
 */
bool lkg_dynamic_next(const struct lkg_view_dynamic *dynamic, const char *component, struct lkg_buf *buf);
