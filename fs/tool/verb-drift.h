/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields in which the running process of a component differs from the served file: status/<component>/drift,
 * one line per field. Secrets are already masked in that file.
 */
#pragma once

#include "tool.h"

struct lkg_drift_field {
        char *pointer;          /* a word of one line */
        char *running, *served; /* JSON; NULL = the document does not have the field */
};

struct lkg_drift {
        struct lkg_drift_field *fields;
        size_t n_fields;
        /* pid of the component's process if it is unknown what it has read; 0 = none */
        unsigned long unseen;
};

/* Follows the component's name; takes one number. */
#define LKG_DRIFT_UNSEEN                                                                                    \
        "runs as process %lu, and what that has read is not known: it started while lkgfs did not run, or " \
        "was not seen"

/** lkg_drift_parse() - other lines are ignored. Return: 0 or -ENOMEM. */
int lkg_drift_parse(const char *text, struct lkg_drift *ret);
/**
 * lkg_drift_read() - the same from a view, and whether there is a process at all. Nothing differs if the
 * file cannot be read.
 * Return: 0 or the -errno of reading.
 */
int lkg_drift_read(const struct lkg_view *view, const char *component, struct lkg_drift *ret);
void lkg_drift_deinit(struct lkg_drift *drift);

/** lkg_drift_text() - "/maxPods runs with 110, served is 64"; long values are cut. */
void lkg_drift_text(const struct lkg_drift_field *field, struct lkg_buf *buf);

/** lkg_drift_value() - a list of {field, running, served}, the values as JSON texts. Caller owns one reference. */
struct lkg_value *lkg_drift_value(const struct lkg_drift *drift);
