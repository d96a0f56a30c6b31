/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/component.h>

int lkg_track_open(struct lkg_track *track, const struct lkg_component *c,
                   const struct lkg_component_env *env, struct lkg_remote_base *base, struct lkg_error *err)
{
        struct lkg_stack_config config =
                lkg_component_stack_config(env->config, c->config, env->source_fd, env->source_path);
        struct lkg_judge_config judge = lkg_component_judge_config(c);
        const struct lkg_admission admission = lkg_component_admission(c);
        int r;

        lkg_track_close(track);
        track->base = base;
        if (base)
                config.remote = lkg_remote_base_stack(base);
        if (c->base_is_fallback)
                config.base = "";
        config.base_wanted = lkg_component_wanted_base(c);
        r = lkg_judge_new(&judge, &track->judge);
        if (r < 0)
                (void)lkg_error_set(err, r, NULL, "judge");
        else
                r = lkg_stack_new(&config, &track->stack, err);
        if (r < 0) {
                lkg_track_close(track);
                return r;
        }
        lkg_stack_set_unsettled(track->stack, lkg_is_unsettled, env->settled);
        lkg_stack_set_judge(track->stack, lkg_candidate_judge, track->judge);
        lkg_stack_set_admission(track->stack, &admission);
        return 0;
}

void lkg_track_close(struct lkg_track *track)
{
        lkg_candidate_unref(track->candidate);
        lkg_stack_free(track->stack);
        lkg_judge_free(track->judge);
        lkg_remote_base_free(track->base);
        *track = (struct lkg_track){ 0 };
}

int lkg_track_refresh(struct lkg_track *track, const struct lkg_touched *touched, struct lkg_error *err)
{
        struct lkg_candidate *candidate = NULL;
        int r = touched->everything
                        ? lkg_stack_refresh(track->stack, &candidate, err)
                        : lkg_stack_refresh_touched(track->stack, (const char *const *)touched->paths,
                                                    touched->n_paths, &candidate, err);

        if (r < 0)
                return r;
        r = candidate != track->candidate;
        lkg_candidate_unref(track->candidate);
        track->candidate = candidate;
        return r;
}

bool lkg_track_valid(const struct lkg_track *track)
{
        return track->candidate && track->candidate->state == LKG_CANDIDATE_VALID;
}

int lkg_component_follow(struct lkg_component *c, struct lkg_track *track)
{
        struct lkg_track before = { .base = c->base, .judge = c->judge, .stack = c->stack };
        struct lkg_candidate *candidate = LKG_STEAL(track->candidate);

        c->base = track->base;
        c->judge = track->judge;
        c->stack = track->stack;
        *track = before;
        lkg_track_close(track);
        return lkg_component_take_candidate(c, candidate);
}

void lkg_track_rejudge(struct lkg_track *track, const struct lkg_judge_config *config)
{
        if (!track->stack)
                return;
        (void)lkg_judge_configure(track->judge, config);
        lkg_stack_rejudge(track->stack);
}
