/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which generation is served: saved while a publication may fail, recovered at a start, kept in the history.
 */
#include <lkg/component.h>

/* ---- a publication that may fail ---- */

void lkg_component_remember(const struct lkg_component *c, struct lkg_served *ret)
{
        *ret = (struct lkg_served){
                .active = lkg_generation_ref(c->active),
                .previous = lkg_generation_ref(c->previous),
                .hold = c->state.hold,
                .last_good = c->last_good,
        };
}

void lkg_served_deinit(struct lkg_served *served)
{
        served->active = lkg_generation_unref(served->active);
        served->previous = lkg_generation_unref(served->previous);
}

void lkg_component_serve_before(struct lkg_component *c, struct lkg_served *before)
{
        if (before->number) {
                lkg_history_remove(&c->history, before->number);
                c->n_published--;
        }
        lkg_generation_unref(c->active);
        lkg_generation_unref(c->previous);
        c->active = LKG_STEAL(before->active);
        c->previous = LKG_STEAL(before->previous);
        c->last_good = before->last_good;
}

/* ---- the history ---- */

void lkg_component_prune_history(struct lkg_component *c, size_t limit)
{
        /*
         * The generation that was last served according to the disk is kept until a newer record is on disk.
         */
        uint64_t keep[8 + LKG_FACTS_PROCESSES_MAX] = {
                c->active ? c->active->number : 0,
                c->state.hold.generation,
                c->state.hold.try_previous,
                c->state.last_good,
                c->dynamic ? c->dynamic->pointers.good.generation : 0,
                c->state.unfinished.held,
        };

        (void)lkg_component_suspected_generations(c, keep + 6, 2);
        /* Also the generation of each living process, to show how it differs. */
        for (size_t i = 0; c->facts && i < c->facts->n_processes; i++)
                if (c->facts->processes[i].pidfd >= 0)
                        keep[8 + i] = c->facts->processes[i].generation;
        lkg_history_prune(&c->history, limit, keep, LKG_ARRAY_SIZE(keep));
}

void lkg_component_recover_last_good(struct lkg_component *c)
{
        const struct lkg_log_fields fields = { .component = c->config->name };
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        struct lkg_error err = { 0 };
        int r = c->state.last_good ? lkg_history_get(&c->history, c->state.last_good, &g, &err) : -ENOENT;

        for (size_t i = c->history.n_entries; r < 0 && i-- > 0;)
                r = lkg_history_get(&c->history, c->history.entries[i].number, &g, &err);
        if (r < 0) {
                if (c->history.n_entries)
                        lkg_log(LOG_WARNING, &fields, "no generation of the history can be read: %s",
                                err.message);
                return;
        }
        lkg_component_set_active(c, g);
        (void)lkg_component_note_published(c); /* it was published before, so there is nothing to announce */
        c->last_good = true;
}

void lkg_component_recover_previous(struct lkg_component *c)
{
        for (size_t i = c->history.n_entries; c->active && i-- > 0;) {
                if (c->history.entries[i].number >= c->active->number)
                        continue;
                lkg_generation_unref(c->previous);
                c->previous = NULL;
                (void)lkg_history_get(&c->history, c->history.entries[i].number, &c->previous, NULL);
                return;
        }
}
