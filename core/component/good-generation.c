/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rollback would serve now: the last known good merged with today's local layers, or its stored
 * document.
 */
#include <lkg/component.h>

int lkg_component_stored_good(const struct lkg_component *c, struct lkg_generation **ret,
                              struct lkg_error *err)
{
        const struct lkg_good *good = &c->dynamic->pointers.good;
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        struct lkg_text text = { 0 };
        int r;

        /*
         * Any local configuration counts as good, so the last one that was served replaces a stored
         * document.
         */
        for (size_t i = c->history.n_entries; !*good->sha256 && i-- > 0;) {
                r = lkg_history_get(&c->history, c->history.entries[i].number, &g, err);
                if (r >= 0 && !*g->source) {
                        *ret = LKG_STEAL(g);
                        return 0;
                }
                g = lkg_generation_unref(g);
        }
        if (!*good->sha256)
                return lkg_error_set(err, -ENOENT, NULL, "no document was stored");
        if (lkg_history_get(&c->history, good->generation, &g, NULL) >= 0 &&
            strcmp(g->sha256, good->sha256) == 0) {
                *ret = LKG_STEAL(g);
                return 0;
        }
        g = lkg_generation_unref(g);
        r = lkg_store_load_document(&c->dynamic->store, good->sha256, &text.data, &text.size, err);
        if (r >= 0)
                r = lkg_generation_stored(&good->source, good->generation, good->time_ns, text, ret);
        return r;
}

/* The last known good merged with today's layers; NULL = it is not known, or not loaded. Borrowed until the next look. */
static struct lkg_candidate *merged_good(const struct lkg_component *c)
{
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;
        struct lkg_candidate *good = NULL;

        if (lkg_config_source_equal(lkg_component_source(c), source))
                return c->candidate;
        if (lkg_config_source_is_local(source))
                return lkg_component_local(c);
        if (c->good)
                (void)lkg_component_over(c, c->good, &good, NULL);
        lkg_candidate_unref(good); /* the stack keeps it */
        return good;
}

/* The candidate of a merge that a rollback would serve now; NULL = it cannot be merged. */
static struct lkg_candidate *good_candidate(const struct lkg_component *c)
{
        struct lkg_candidate *candidate = merged_good(c);

        return candidate && candidate->state == LKG_CANDIDATE_VALID ? candidate : NULL;
}

static bool can_serve_stored(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        int r = lkg_component_stored_good(c, &g, NULL);

        return r != -ENOENT && r != -EBADMSG; /* another error may pass */
}

bool lkg_component_can_serve_good(struct lkg_component *c, const struct lkg_component_env *env)
{
        const struct lkg_candidate *merged;
        struct lkg_error err = { 0 };

        if (!c->dynamic)
                return false;
        if (c->dynamic->scope_all)
                return can_serve_stored(c);
        (void)lkg_component_load_good(c, env, &err); /* another base may be followed only since this round */
        merged = merged_good(c);
        if (!merged)
                return true; /* not known: trying shows it */
        switch (merged->state) {
        case LKG_CANDIDATE_VALID:
                return true;
        case LKG_CANDIDATE_INVALID:
                return (merged == c->candidate && c->active) || can_serve_stored(c);
        case LKG_CANDIDATE_NONE:
        case LKG_CANDIDATE_NAME_TAKEN:
                break;
        }
        return false;
}

/* Without remote configuration, the local configuration is good, whatever was good before. */
static bool has_good(const struct lkg_component *c)
{
        return c->dynamic->scope_all || c->dynamic->desired != LKG_DESIRED_NONE;
}

static int make_good(const struct lkg_component *c, struct lkg_candidate *candidate,
                     struct lkg_generation **ret)
{
        struct lkg_text text;
        int r = lkg_candidate_take_text(candidate, c->hint, &text);

        return r < 0 ? r : lkg_generation_new(candidate, &c->dynamic->pointers.good.source, 0, 0, text, ret);
}

int lkg_component_good_generation(const struct lkg_component *c, struct lkg_generation **ret)
{
        struct lkg_candidate *candidate = NULL;
        struct lkg_generation *g = NULL;
        int r;

        *ret = NULL;
        if (!c->dynamic || !c->active || !has_good(c))
                return 0;
        if (!c->dynamic->scope_all) {
                candidate = good_candidate(c);
                if (candidate && strcmp(candidate->sha256, c->active->sha256) == 0)
                        return 0;
        }
        r = candidate ? make_good(c, candidate, &g) : lkg_component_stored_good(c, &g, NULL);
        if (r == -ENOMEM)
                return r;
        if (g && strcmp(g->sha256, c->active->sha256) == 0)
                g = lkg_generation_unref(g);
        *ret = g;
        return 0;
}
