/* SPDX-License-Identifier: Apache-2.0 */
/* The files below status/<component>/: one row each. A row adds the file to the published tree and to the manual. */
#pragma once

#include <lkg/text.h>

#include <lkg/publish.h>

#define LKG_STATUS_FILES_MAX 26

struct lkg_status_context {
        const struct lkg_snapshot *in;
        const struct lkg_component *component;
        const struct lkg_remote_status *remote; /* NULL = it follows no reference */
        const struct lkg_publisher *publisher;  /* with the current publication */
};

/** lkg_status_context() - of component @i. */
static inline struct lkg_status_context lkg_status_context(const struct lkg_snapshot *in, size_t i,
                                                           const struct lkg_publisher *publisher)
{
        return (struct lkg_status_context){ in, in->components[i].component, in->components[i].remote,
                                            publisher };
}

struct lkg_status_file {
        const char *name;
        bool document;  /* mode and owner of the component's file; otherwise a fact (statusMode, root) */
        unsigned flags; /* LKG_ENTRY_POLL */
        bool blob; /* a publication has its bytes, so it is there without an engine; else rendered when looked up */
        void (*render)(const struct lkg_status_context *context, struct lkg_buf *buf);
        const char *manual;
        bool (*exists)(const struct lkg_status_context *context); /* NULL = always */
};

/* Renderers in separate files: metrics.c, pod-files.c, status-pairs.c. */
void lkg_status_render_pods(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_metrics(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_hold(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_process(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_trial(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_rollout(const struct lkg_status_context *context, struct lkg_buf *buf);
void lkg_status_render_remote(const struct lkg_status_context *context, struct lkg_buf *buf);

extern const struct lkg_status_file lkg_status_files[];
extern const size_t lkg_n_status_files;
