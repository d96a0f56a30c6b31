/* SPDX-License-Identifier: Apache-2.0 */
/* The files below status/<component>/: one row each. A row adds the file to the published tree and to the manual. */
#pragma once

#include <lkg/buf.h>

#include "component.h"

struct lkg_status_context {
        const struct lkg_config *config;
        const struct lkg_component *component;
        const struct lkg_report *findings; /* of the whole engine */
        uint64_t publication;
        uint64_t now_ns; /* wall time of the publication */
};

struct lkg_status_file {
        const char *name;
        bool document;    /* mode and owner of the component's file; else a fact (statusMode, root) */
        unsigned flags;   /* LKG_ENTRY_POLL */
        unsigned depends; /* enum lkg_component_dirty: rendered again when one of these is set */
        void (*render)(const struct lkg_status_context *context, struct lkg_buf *buf);
        const char *manual;
        bool optional; /* rendered as nothing = there is no such file */
        bool dated; /* its time says since when this generation is served, also in an engine that found it served */
};

/** lkg_status_error() - what the field `error` of NodeConfigStatus says; "" = nothing. */
const char *lkg_status_error(const struct lkg_component *c);
/** lkg_status_pointers() - which source plays which part; all local while remote configuration is off. */
const struct lkg_pointers *lkg_status_pointers(const struct lkg_component *c);
/** lkg_status_good_document() - of the last known good, where it is known. Return: its generation, 0 = none. */
uint64_t lkg_status_good_document(const struct lkg_component *c, const char **ret_sha256);

/** lkg_status_trial_deadline() - wall time; 0 = there is none now. */
uint64_t lkg_status_trial_deadline(const struct lkg_trial *trial);

/* Renderers with a file of their own: metrics.c, status-findings.c, status-hold.c, status-remote.c. */
void lkg_status_render_findings(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_findings_json(const struct lkg_status_context *context, struct lkg_buf *buf);
/**
 * lkg_status_count_findings() - of each severity, how many both of them show or count. @node: those that are not about a
 * component.
 */
void lkg_status_count_findings(const struct lkg_component *c, const struct lkg_report *node,
                               size_t ret[static _LKG_SEVERITY_MAX]);
void lkg_status_render_metrics(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_hold(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_process(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_remote(const struct lkg_status_context *context, struct lkg_buf *buf);

extern const struct lkg_status_file lkg_status_files[];
extern const size_t lkg_n_status_files;
