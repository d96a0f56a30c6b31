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
        unsigned depends; /* enum lkg_dirty: rendered again when one of these is set */
        void (*render)(const struct lkg_status_context *context, struct lkg_buf *buf);
        const char *manual;
        bool optional; /* rendered as nothing = there is no such file */
};

extern const struct lkg_status_file lkg_status_files[];
extern const size_t lkg_n_status_files;
