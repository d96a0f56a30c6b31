/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The component's own validation: every rule is checked and every violation is reported, not only the first.
 *
 * The document is typed (lkg/schema.h), complete with defaults and flags. A finding has the position of the
 * value that violates the rule; if the rule is between two fields, it names both positions. A default has no
 * position, so the finding names the value that can be changed.
 */
#pragma once

#include "findings-codes.h"
#include "gates.h"
#include "typed.h"

struct lkg_rules {
        const struct lkg_schema *schema;
        const struct lkg_value *object;
        const struct lkg_gates *gates; /* as they are when the component validates: flags and document */
        const struct lkg_host *host;
        struct lkg_report *report;
        bool no_eviction;     /* --experimental-allocatable-ignore-eviction: thresholds reserve nothing */
        bool startup_refuses; /* see struct lkg_judge_config */
        const struct lkg_value *unread; /* see lkg_object_unread(); NULL = nothing */
        bool *doubt; /* the current rule has used some of it, see lkg_rule_begin(); needed with @unread */
};

/* Each adds errors and warnings to rules->report. Fails only with -ENOMEM. */
int lkg_rules_kubelet(const struct lkg_rules *rules);
int lkg_rules_kubeproxy(const struct lkg_rules *rules);
/** lkg_rules_logging() - component-base/logs/api/v1 Validate; both kinds have the same `logging`. */
int lkg_rules_logging(const struct lkg_rules *rules);
/**
 * lkg_rules_later() - report values that pass validation and stop the component at its start: warnings, or
 * errors.
 */
int lkg_rules_later(const struct lkg_rules *rules);
/**
 * lkg_startup_amount() - what a reservation or an eviction threshold comes to.
 * @capacity: of which a percentage is taken; 0 = unknown
 * Return: 0; -EINVAL: no quantity, or a percentage of what is unknown; -ENOMEM.
 */
int lkg_startup_amount(struct lkg_span value, double capacity, double *ret);
/** lkg_rules_host() - report values that this host cannot bear; nothing for facts that are unknown. */
int lkg_rules_host(const struct lkg_rules *rules);
