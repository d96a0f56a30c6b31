/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <lkg/documents.h>
void lkg_pod_judge(const struct lkg_value *doc, unsigned release, struct lkg_report *report);

/* Where paths of this machine are looked up. */
struct lkg_pod_host {
        enum lkg_severity severity; /* of each finding */
        const char *mount_point;    /* of a view that must not be looked through; NULL = none */
        int source_fd;              /* what is there instead */
};

/**
 * lkg_pod_check_host() - what only this machine can say, as far as it is certain: paths of hostPath volumes, and files that a command line
 * names.
 */
void lkg_pod_check_host(const struct lkg_value *doc, const struct lkg_pod_host *host,
                        struct lkg_report *report);
/** lkg_pod_check_ports() - ports of the host that @other, the manifest in @file, wants as well. */
void lkg_pod_check_ports(const struct lkg_value *doc, const char *file, const struct lkg_value *other,
                         enum lkg_severity severity, struct lkg_report *report);
