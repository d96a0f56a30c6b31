/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feature gates as in component-base/featuregate: the gates set so far, on top of the defaults of a release.
 * Setting is cumulative: AllAlpha and AllBeta change only gates that were not set before.
 */
#pragma once

#include <lkg/schema.h>

#define LKG_GATES_MAX 1024 /* rows of lkg_gates[] */

struct lkg_gates {
        unsigned release;
        bool lenient; /* the component is of another release, without tables: what it does not know is a warning */
        signed char set[LKG_GATES_MAX]; /* by row: 0 = not set, 1 = on, -1 = off */
};

/**
 * lkg_gates_apply() - apply the featureGates of a document or of flags.
 * @object: typed; its featureGates may be missing
 * @unread: values of it that could not be read, or NULL
 * @report: unknown, dropped, too new and locked gates, dependencies that are off: each at its position
 *
 * Return: 0, also if it is lenient; -EBADMSG: the component would not start with it.
 */
int lkg_gates_apply(struct lkg_gates *gates, const struct lkg_value *object, const struct lkg_value *unread,
                    struct lkg_report *report);

/** lkg_gate_unread() - is it unknown what @object sets this gate to, see lkg_object_unread()? */
bool lkg_gate_unread(const struct lkg_value *object, const struct lkg_value *unread, const char *name);

/** lkg_gates_enabled() - is it on? A gate that was dropped as GA is always on, an unknown one is off. */
bool lkg_gates_enabled(const struct lkg_gates *gates, const char *name);

/** lkg_gate_at() - return its state in @release (it may be REMOVED), or NULL. */
const struct lkg_gate_state *lkg_gate_at(const char *name, unsigned release);
/** lkg_gate_settable() - does a component of @release start with this gate set to @on? */
bool lkg_gate_settable(const char *name, bool on, unsigned release);
/**
 * lkg_gate_advise() - warn of gates in @map that will be dropped, and of those set to their default.
 * @below: the gates of the lower layers, or NULL
 */
void lkg_gate_advise(const struct lkg_value *map, const struct lkg_value *below, unsigned release, bool all,
                     struct lkg_report *report);
