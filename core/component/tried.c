/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the assigned configuration: see lkg/component.h. */
#include <lkg/objects.h>
#include <lkg/base.h>
#include <lkg/component.h>

/* The document of the base file, for pinned fields. */
static const struct lkg_value *local_base(const struct lkg_component *c)
{
        const struct lkg_candidate *local = lkg_component_local(c);

        return local && local->n_layers > 0 && local->layers[0].role == LKG_LAYER_BASE ? local->layers[0].doc
                                                                                       : NULL;
}

int lkg_component_check_guard(const struct lkg_component *c, const struct lkg_candidate *tried,
                              struct lkg_report *report)
{
        const struct lkg_config_component *k = c->config;
        const struct lkg_guard guard = {
                .hardened = k->guard.profile == LKG_GUARD_HARDENED,
                .deny = (const char *const *)k->guard.deny.items,
                .n_deny = k->guard.deny.n_items,
                .pinned = (const char *const *)k->guard.pinned.items,
                .n_pinned = k->guard.pinned.n_items,
        };
        const struct lkg_value *remote =
                tried && tried->n_layers > 0 && tried->layers[0].role == LKG_LAYER_REMOTE
                        ? tried->layers[0].doc
                        : NULL;

        return remote ? lkg_guard_check(&guard, remote, local_base(c), report) : 0;
}

static bool is_base_broken(const struct lkg_candidate *local)
{
        return local && local->n_layers > 0 && local->layers[0].role == LKG_LAYER_BASE &&
               !local->layers[0].doc;
}

enum lkg_tried lkg_component_blame(const struct lkg_component *c, const struct lkg_candidate *tried,
                                   bool *ret_syntax)
{
        const struct lkg_candidate *local = lkg_component_local(c);

        if (c->config->guard.pinned.n_items && is_base_broken(local))
                return LKG_TRIED_WAIT; /* the value to compare with is unknown */
        if (c->remote_findings.n_severity[LKG_ERROR] > 0)
                return LKG_TRIED_BAD;
        if (tried->state == LKG_CANDIDATE_VALID)
                return LKG_TRIED_GOOD;
        if (lkg_component_errors_in(&tried->report, c->tried->file, ret_syntax) > 0)
                return LKG_TRIED_BAD;
        if (local && local->state == LKG_CANDIDATE_INVALID && lkg_component_local_errors(c) > 0)
                return LKG_TRIED_WAIT;
        /*
         * A local layer that has become invalid with the current configuration will not become valid with
         * the next one.
         */
        return c->base && c->candidate && c->candidate->state == LKG_CANDIDATE_INVALID ? LKG_TRIED_WAIT
                                                                                       : LKG_TRIED_BAD;
}

int lkg_component_load_assigned(struct lkg_component *c, const struct lkg_component_env *env,
                                struct lkg_candidate **ret, struct lkg_error *err)
{
        int r;

        lkg_report_deinit(&c->remote_findings);
        r = lkg_component_load_base(c, env, &c->dynamic->pointers.assigned, &c->tried, &c->remote_findings,
                                    err);
        if (r == -EINVAL)
                return 1;
        if (r < 0)
                return r;
        c->limits_of = c->tried->source;
        c->limits = c->tried->limits;
        c->limits_duration_ns = c->tried->rules.duration_ns;
        r = lkg_component_over(c, c->tried, ret, err);
        if (r >= 0 && lkg_component_check_guard(c, *ret, &c->remote_findings) < 0)
                r = lkg_error_set(err, -ENOMEM, NULL, "guard");
        return r;
}

void lkg_component_note_tried(struct lkg_component *c, bool done)
{
        lkg_candidate_unref(c->tried_with);
        c->tried_with = done ? lkg_candidate_ref(lkg_component_local(c)) : NULL;
        lkg_remote_base_free(c->tried);
        c->tried = NULL;
}

bool lkg_component_was_tried(const struct lkg_component *c)
{
        return c->tried_with && c->tried_with == lkg_component_local(c);
}

/* ---- findings ---- */

void lkg_component_say_not_used(struct lkg_component *c, const char *id, const char *reason)
{
        const struct lkg_where where = { .file = id };

        lkg_report_add(&c->remote_findings, LKG_WARNING, 6008, &where,
                       "is assigned and not used: %s; remove %sbad/%s/%s to try it again", reason, c->top,
                       c->config->name, id);
}

void lkg_component_say_switched_off(struct lkg_component *c)
{
        const struct lkg_config_source *assigned = &c->dynamic->pointers.assigned;

        if (!lkg_config_source_is_local(assigned))
                lkg_report_add(&c->remote_findings, LKG_NOTE, 6007, NULL,
                               "a remote configuration is assigned (ConfigMap %s/%s) and not used, because "
                               "remote configuration is off",
                               assigned->ns, assigned->name);
}

/*
 * Keeps the findings of a tried configuration that will not be served. Findings about the local layers
 * themselves, or found without one of them, are shown with those layers for as long as they are true.
 */
void lkg_component_keep_findings(struct lkg_component *c, const struct lkg_candidate *candidate)
{
        const struct lkg_candidate *local = lkg_component_local(c);

        for (size_t i = 0; candidate && i < candidate->report.n_findings; i++) {
                const struct lkg_finding *f = &candidate->report.findings[i];

                if (!f->incomplete && !(local && lkg_report_has(&local->report, f)))
                        lkg_report_add_copy(&c->remote_findings, f);
        }
        if (candidate)
                lkg_report_count_unlisted(&c->remote_findings, &candidate->report);
}

void lkg_component_explain_assigned(struct lkg_component *c, const struct lkg_component_env *env,
                                    const struct lkg_bad *bad)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *candidate = NULL;
        struct lkg_error err = { 0 };
        bool syntax = false;
        int r;

        lkg_component_try_anew(c);
        if (lkg_component_was_tried(c))
                return;
        r = lkg_component_load_assigned(c, env, &candidate, &err);
        if (r == 0 && lkg_component_blame(c, candidate, &syntax) == LKG_TRIED_BAD)
                lkg_component_keep_findings(c, candidate);
        if (r < 0)
                lkg_log(LOG_WARNING, &fields, "cannot find again what is wrong with what is assigned: %s",
                        err.message);
        lkg_component_say_not_used(c, bad->id, bad->reason);
        lkg_component_note_tried(c, true);
}

void lkg_component_try_anew(struct lkg_component *c)
{
        *c->untried = '\0';
        c->try_at_ns = c->try_pause_ns = 0;
}

/* ---- the desired configuration ---- */

void lkg_component_set_desired(struct lkg_component *c, enum lkg_desired_state state, const char *fault,
                               const char *waiting)
{
        struct lkg_dynamic *d = c->dynamic;

        if (d->desired == state && strcmp(d->desired_fault, fault) == 0 && strcmp(d->waiting, waiting) == 0)
                return;
        d->desired = state;
        (void)snprintf(d->desired_fault, sizeof(d->desired_fault), "%.500s", fault);
        (void)snprintf(d->waiting, sizeof(d->waiting), "%.255s", waiting);
}

void lkg_component_forgive(struct lkg_component *c, const char *source)
{
        struct lkg_error err = { 0 };

        if (!c->dynamic || !*source ||
            lkg_dynamic_forgive(c->dynamic, source, /* exactly= */ true, &err) < 0)
                return;
        if (!lkg_dynamic_is_bad(c->dynamic, &c->dynamic->pointers.assigned))
                lkg_report_deinit(&c->remote_findings);
        lkg_component_note_tried(c, false);
}
