/* SPDX-License-Identifier: Apache-2.0 */
/* The files below status/<component>/: one row each. A row adds the file to the published tree and to the manual. */
#pragma once

#include <lkg/text.h>

#include <lkg/publish.h>

#define LKG_STATUS_FILES_MAX 24

struct lkg_status_context {
        const struct lkg_config *config;
        const struct lkg_component *component;
        const struct lkg_remote_status *remote; /* NULL = it follows no reference */
        const struct lkg_report *findings;      /* findings that are not about a component */
        uint64_t publication;
        uint64_t now_ns;    /* wall time of the publication */
        bool good_has_base; /* for the document that a rollback would serve, if it is local */
        bool layers_cut;    /* more layers than layers/ shows */
};

struct lkg_status_file {
        const char *name;
        bool document;    /* mode and owner of the component's file; otherwise a fact (statusMode, root) */
        unsigned flags;   /* LKG_ENTRY_POLL */
        unsigned depends; /* enum lkg_component_dirty: rendered again when one of these is set */
        void (*render)(const struct lkg_status_context *context, struct lkg_buf *buf);
        const char *manual;
        bool optional; /* no content = the file does not exist */
        bool dated; /* its time is the start of serving this generation, even if an engine found it served */
};

/* Renderers in separate files: metrics.c, status-findings.c, status-hold.c, status-remote.c. */
void lkg_status_render_findings(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_findings_json(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_metrics(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_hold(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_process(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_rollout(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_remote(const struct lkg_status_context *context, struct lkg_buf *buf);

extern const struct lkg_status_file lkg_status_files[];
extern const size_t lkg_n_status_files;
