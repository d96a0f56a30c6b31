/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings for programs that show them beside the lines of a file: SARIF 2.1.0 (code scanning, editors) and workflow commands of
 * GitHub Actions. verb-check.c adds what it has judged, and what it could not read; both end up in the product, so that a failed
 * run is never mistaken for one without findings.
 */
#pragma once

#include "tool.h"

struct lkg_annotations {
        const struct lkg_tool *tool;
        char *directory;         /* the working directory, with a slash at its end; NULL = unknown */
        struct lkg_value *rules; /* SARIF: of the findings so far */
        struct lkg_value *results, *failures;
        size_t *rule_of; /* of each row in lkg_finding_kinds: its place in @rules, from 1 */
        size_t n_rules;
        struct lkg_buf lines; /* GitHub */
        bool no_memory;
};

/** lkg_annotations_wanted() - is one of the two formats asked for? */
bool lkg_annotations_wanted(const struct lkg_tool *tool);
void lkg_annotations_init(struct lkg_annotations *a, const struct lkg_tool *tool);
void lkg_annotations_deinit(struct lkg_annotations *a);
/** lkg_annotations_add() - the findings of @report. @place: the file that one without a file belongs to; NULL = none. */
void lkg_annotations_add(struct lkg_annotations *a, const char *place, const struct lkg_report *report);
/** lkg_annotations_fail() - something could not be judged. */
void lkg_annotations_fail(struct lkg_annotations *a, const char *place, const char *message);
int lkg_annotations_print(struct lkg_annotations *a, int status);

/** lkg_sarif_uri() - @path as a URI reference: relative as it is, absolute with "file://". */
void lkg_sarif_uri(const char *path, struct lkg_buf *buf);
