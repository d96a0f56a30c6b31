/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a report's page, each from the parts alone. Each prints itself, with its heading. */
#pragma once

#include "html-page.h"
#include "report-parts.h"

/** lkg_report_page() - the whole page. Return: 0 or -ENOMEM. */
int lkg_report_page(const struct lkg_parts *parts, struct lkg_buf *ret);

/* report-problems.c: what is wrong and what to do; then each component; then what the documents' authors did wrong */
struct lkg_report_counts {
        size_t n[_LKG_SEVERITY_MAX];
};
struct lkg_report_counts lkg_report_problems(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_components(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_findings(const struct lkg_parts *parts, struct lkg_buf *buf);
/* report-timeline.c */
void lkg_report_timeline(const struct lkg_parts *parts, struct lkg_buf *buf);
/* report-changes.c */
void lkg_report_changes(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_bad(const struct lkg_parts *parts, struct lkg_buf *buf);
/* report-origins.c */
void lkg_report_origins(const struct lkg_parts *parts, struct lkg_buf *buf);
/* report-node.c */
void lkg_report_processes(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_environment(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_log(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_unread(const struct lkg_parts *parts, struct lkg_buf *buf);
/** lkg_report_fact() - the value of "@key=..." in a text of such lines, at most 255 bytes. Return: is it there, and not empty? */
bool lkg_report_fact(const char *text, const char *key, char ret[static 256]);
