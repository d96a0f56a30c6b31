/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a component that several files of the view show. */
#include <lkg/component.h>

struct lkg_component *lkg_component_find(struct lkg_component *components, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(components[i].config->name, name) == 0)
                        return &components[i];
        return NULL;
}

struct lkg_log_fields lkg_component_log_fields(const struct lkg_component *c)
{
        return (struct lkg_log_fields){ .component = c->config->name,
                                        .generation = c->active ? c->active->number : 0 };
}

/* The text of the `error` field of NodeConfigStatus; empty = no error. A hint for people, never a value. */
const char *lkg_component_error(const struct lkg_component *c, bool *ret_findings)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad = d ? lkg_dynamic_is_bad(d, &d->pointers.assigned) : NULL;
        bool unread = bad && (bad->cause == LKG_BAD_LOAD || bad->cause == LKG_BAD_PARSE);
        bool in_findings = bad ? unread || bad->cause == LKG_BAD_INVALID
                               : c->candidate && c->candidate->state == LKG_CANDIDATE_INVALID;

        if (ret_findings)
                *ret_findings = in_findings;
        if (in_findings)
                return unread ? "failed to load config, see status findings for details"
                              : "failed to validate config, see status findings for details";
        if (bad)
                return bad->reason;
        if (c->candidate && c->candidate->state == LKG_CANDIDATE_NAME_TAKEN)
                return "name taken: a kubeconfig stands under the name of the view file";
        if (c->fault)
                return c->fault;
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

        if (c->dynamic && c->dynamic->scope_all && *c->dynamic->pointers.good.sha256)
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
