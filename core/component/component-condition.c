/* SPDX-License-Identifier: Apache-2.0 */
/* What a component says of itself in one line: its condition, the field `error`, its sources. */
#include <lkg/component.h>

bool lkg_component_refuses(const struct lkg_component *c)
{
        return c->candidate && (c->candidate->state == LKG_CANDIDATE_INVALID ||
                                (c->pods && c->candidate->report.n_severity[LKG_ERROR] > 0));
}

/* The text of the `error` field of NodeConfigStatus; empty = no error. A hint for people, never a value. */
const char *lkg_component_error(const struct lkg_component *c, bool *ret_findings)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad = d ? lkg_bad_find(&d->bad, &d->pointers.assigned) : NULL;
        bool unread = bad && (bad->cause == LKG_BAD_LOAD || bad->cause == LKG_BAD_PARSE);
        bool in_findings = bad ? unread || bad->cause == LKG_BAD_INVALID : lkg_component_refuses(c);

        if (ret_findings)
                *ret_findings = in_findings;
        if (in_findings)
                return unread ? "failed to load config, see status findings for details"
                              : "failed to validate config, see status findings for details";
        if (bad)
                return bad->reason;
        if (c->candidate && c->candidate->state == LKG_CANDIDATE_NAME_TAKEN)
                return "name taken: a kubeconfig stands under the name of the view file";
        if (c->faults.text)
                return c->faults.text;
        if (d && lkg_component_verdict(c) == LKG_AVOID)
                return d->pointers.rollback.reason;
        return d && d->desired == LKG_DESIRED_UNKNOWN
                       ? "failed to sync: the reference is unclear, see the condition"
                       : "";
}

const struct lkg_pointers *lkg_component_pointers(const struct lkg_component *c)
{
        static const struct lkg_pointers none = { 0 };

        return c->dynamic && c->dynamic->desired != LKG_DESIRED_NONE ? &c->dynamic->pointers : &none;
}

/* The document of the last known good, if it was served or stored: generation and SHA-256; 0 = unknown. */
uint64_t lkg_component_good_document(const struct lkg_component *c, const char **ret_sha256)
{
        const struct lkg_good *good = &lkg_component_pointers(c)->good;

        if (c->dynamic && c->dynamic->stores_good && *c->dynamic->pointers.good.sha256)
                good = &c->dynamic->pointers.good;
        *ret_sha256 = good->sha256;
        if (*good->sha256)
                return good->generation;
        if (!c->active || c->base || !lkg_config_source_is_local(&good->source))
                return 0;
        *ret_sha256 = c->active->sha256; /* a local configuration always counts as good */
        return c->active->number;
}

/* Wall time of the deadline while the trial's clock runs; 0 while it is stopped. */
uint64_t lkg_trial_wall_deadline(const struct lkg_trial *trial)
{
        uint64_t due = lkg_trial_due(trial);

        return due == UINT64_MAX ? 0 : lkg_realtime_ns() + due - lkg_boottime_ns();
}

/* ---- the condition ---- */

/* The number of the candidate's errors in the remote document itself. */
static size_t remote_errors(const struct lkg_component *c)
{
        bool syntax;

        return c->base && c->candidate
                       ? lkg_component_errors_in(&c->candidate->report, c->base->file, &syntax)
                       : 0;
}

/*
 * Why the assigned configuration is not used. *@ret_marked: it was marked by hand, and the reason is the
 * operator's text.
 */
static const char *why_not_assigned(const struct lkg_component *c, bool *ret_marked)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad = lkg_bad_find(&d->bad, &d->pointers.assigned);

        *ret_marked = bad && bad->cause == LKG_BAD_MARKED;
        if (bad)
                return bad->reason;
        if (*d->pointers.rollback.reason && lkg_component_verdict(c) == LKG_AVOID)
                return d->pointers.rollback.reason;
        return NULL;
}

/*
 * Did the assigned configuration (or, with trial.scope all, the document) fail its trial? Being bad for
 * another reason does not count.
 */
static bool failed_its_trial(const struct lkg_dynamic *d)
{
        const struct lkg_pointers *p = &d->pointers;
        const struct lkg_bad *bad = lkg_bad_find(&d->bad, &p->assigned);

        if (!*p->rollback.reason || d->trial.state != LKG_TRIAL_FAILED)
                return false;
        if (!bad)
                return d->scope_all;
        return lkg_bad_failed_trial(bad->cause) && strcmp(p->rollback.from.sha256, p->assigned.sha256) == 0;
}

/* A crash loop reads the new document by itself; a component that is alive goes on with what it has. */
static bool needs_restart(const struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad =
                lkg_bad_find(&d->bad, d->scope_all ? &d->document : &d->pointers.rollback.from);

        return d->trial.state == LKG_TRIAL_FAILED && *d->pointers.rollback.reason && bad &&
               bad->cause == LKG_BAD_UNHEALTHY && c->config->restart.policy == LKG_SETTINGS_RESTART_NEVER &&
               d->watched && lkg_component_runs_older(c);
}

static struct lkg_condition_remote remote_facts(const struct lkg_component *c,
                                                const struct lkg_config_source *shown)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_pointers *p = &d->pointers;
        const struct lkg_candidate *local = c->base ? lkg_component_local(c) : NULL;
        bool in_use = d->desired != LKG_DESIRED_NONE;
        struct lkg_condition_remote remote = {
                .assigned = in_use ? p->assigned.uid : "",
                .active = shown->uid,
                .followed = lkg_component_source(c)->uid,
                .followed_lost = c->base && c->base->fault,
                .followed_unread = c->loss.unread,
                .assigned_version = in_use ? p->assigned.version : NULL,
                .active_version = shown->version,
                .good_failed = d->good_failed,
                .active_is_assigned = lkg_config_source_equal(&p->assigned, shown),
                .active_is_good = lkg_config_source_equal(&p->good.source, shown) &&
                                  (!d->scope_all || !c->active ||
                                   lkg_is_good_document(&d->pointers, c->active->sha256)),
                .went_back = d->scope_all && *p->rollback.reason && c->active &&
                             lkg_is_good_document(&d->pointers, c->active->sha256) &&
                             !lkg_component_serves_candidate(c),
                .local_has_base = local && local->has_base,
                .n_local_errors = local ? lkg_component_local_errors(c) : 0,
                .restart_needed = needs_restart(c),
                .untried = *c->assigned.untried ? c->assigned.untried : NULL,
        };

        if (in_use || d->scope_all)
                remote.bad = why_not_assigned(c, &remote.marked);
        if (d->desired == LKG_DESIRED_UNKNOWN)
                remote.desired_fault = d->desired_fault;
        remote.waits = c->assigned.tried_with && !remote.bad;
        remote.waiting = lkg_component_waiting(c);
        remote.any = *remote.assigned || remote.bad || remote.desired_fault;
        /*
         * The same rule that marked it bad: the start that was one too many already ran on the last known
         * good.
         */
        remote.exonerated =
                remote.bad && failed_its_trial(d) && p->rollback.starts_since > d->trial.rules.threshold;
        return remote;
}

/* If two configurations have the same document, it belongs to the one that is followed now. */
bool lkg_component_served_has_base(const struct lkg_component *c)
{
        if (lkg_component_serves_candidate(c))
                return c->candidate->has_base;
        return c->active && c->active->has_base;
}

bool lkg_component_local_has_base(const struct lkg_component *c)
{
        const struct lkg_candidate *local = lkg_component_local(c);

        if (!local)
                return !c->active || c->active->has_base;
        return local->has_base || (!c->base && *lkg_component_wanted_base(c));
}

static struct lkg_condition_pods pods_facts(const struct lkg_component *c)
{
        const struct lkg_bad *bad;
        struct lkg_condition_pods pods = { .is = c->pods != NULL };

        if (!c->pods)
                return pods;
        pods.n = c->pods->n_items;
        bad = lkg_pods_first_bad(c, &pods.n_bad);
        pods.bad = bad ? bad->reason : NULL;
        pods.n_tried = lkg_pods_on_trial(c);
        for (size_t i = c->pods->n_items; i-- > 0;)
                if (c->pods->items[i].trial.state == LKG_POD_DEAD_END && c->pods->items[i].facts.is_good)
                        pods.dead_end = c->pods->items[i].file;
        return pods;
}

void lkg_component_update_condition(struct lkg_component *c, const struct lkg_report *node, bool not_ready)
{
        uint64_t wall = lkg_realtime_ns();
        struct lkg_config_source shown;
        struct lkg_condition_facts facts;

        lkg_component_count_findings(c, node,
                                     c->findings.n); /* the condition shows the number in findings */
        if (c->pods)
                lkg_pods_follow(c);
        facts = (struct lkg_condition_facts){
                .pods = pods_facts(c),
                .remote = c->dynamic ? remote_facts(c, lkg_component_shown(c, &shown))
                                     : (struct lkg_condition_remote){ .assigned = "",
                                                                      .active = "",
                                                                      .followed = "" },
                .component = c->config->name,
                .file = c->config->file,
                .top = c->names.top,
                .status_path = c->names.status_path,
                .hold = &c->state.hold,
                .held_by = &c->state.held_by,
                .state = c->candidate ? c->candidate->state : LKG_CANDIDATE_NONE,
                .verdict = lkg_component_verdict(c),
                .n_errors = c->candidate ? c->candidate->report.n_severity[LKG_ERROR] : 0,
                .n_remote_errors = remote_errors(c),
                .n_all_errors = c->findings.n[LKG_ERROR],
                .candidate_has_base = c->candidate && lkg_component_local_has_base(c),
                .active = c->active ? c->active->number : 0,
                .active_has_base = lkg_component_served_has_base(c),
                .last_good = c->served.from_disk,
                .lost = *c->state.lost ? c->state.lost : NULL,
                .fault = c->faults.text,
                .not_ready = not_ready,
                .try_deadline_wall_ns = lkg_component_try_deadline(c),
        };

        if (!lkg_condition_update(&c->condition, &facts, wall))
                return;
        if (c->state.status != c->condition.status || c->state.transition_ns != c->condition.transition_ns)
                c->due.record = true;
        c->state.status = c->condition.status;
        c->state.transition_ns = c->condition.transition_ns;
}
