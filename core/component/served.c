/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which generation is served: saved while a publication may fail, recovered at a start, kept in the history; and in what
 * the newest process differs from it.
 */
#include <lkg/component.h>
#include <lkg/documents.h>

/* ---- a publication that may fail ---- */

void lkg_component_remember(const struct lkg_component *c, struct lkg_served *ret)
{
        *ret = (struct lkg_served){
                .active = lkg_generation_ref(c->active),
                .previous = lkg_generation_ref(c->previous),
                .hold = c->state.hold,
                .last_good = c->served.from_disk,
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
                c->counts.published--;
        }
        lkg_generation_unref(c->active);
        lkg_generation_unref(c->previous);
        c->active = LKG_STEAL(before->active);
        c->previous = LKG_STEAL(before->previous);
        c->served.from_disk = before->last_good;
}

/* ---- the history ---- */

void lkg_component_prune_history(struct lkg_component *c)
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
        lkg_history_prune(&c->history, c->env->config->history_limit, keep, LKG_ARRAY_SIZE(keep));
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
        c->served.from_disk = true;
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

/* ---- the running process ---- */

static int parse(const struct lkg_generation *g, struct lkg_value **ret)
{
        return lkg_decode_own(g->document.data, g->document.size, 0, NULL, ret);
}

/* Unknown counts as different. */
static bool means_the_same(const struct lkg_generation *a, const struct lkg_generation *b)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *x = NULL, *y = NULL;

        return a && b &&
               (strcmp(a->sha256, b->sha256) == 0 ||
                (parse(a, &x) >= 0 && parse(b, &y) >= 0 && lkg_value_equal(x, y)));
}

/*
 * The document that the newest living process has read; NULL = no process is alive, or unknown. One
 * reference.
 */
static struct lkg_generation *running(const struct lkg_component *c, bool *ret_alive)
{
        struct lkg_generation *g = NULL;

        *ret_alive = false;
        for (size_t i = c->facts ? c->facts->n_processes : 0; i-- > 0;) {
                const struct lkg_tracked *t = &c->facts->processes[i];

                if (t->pidfd < 0)
                        continue;
                *ret_alive = true;
                (void)lkg_history_get(&c->history, t->generation, &g, NULL);
                return g;
        }
        return NULL;
}

bool lkg_component_runs_older(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        bool alive;

        g = running(c, &alive);
        if (!alive && c->dynamic && c->dynamic->watched)
                return false; /* the next process to start will read it */
        if (!g)
                g = lkg_generation_ref(c->previous);
        return !means_the_same(g, c->active);
}

/* ---- status/<c>/drift ---- */

/* Shows a value as `origin` does; `-` = the document does not have the field. */
static void put_value(const struct lkg_value *value, enum lkg_secrecy secrecy, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *masked = value ? lkg_mask_value(value, secrecy) : NULL;

        lkg_buf_putc(buf, '\t');
        if (masked)
                lkg_render_json_compact(masked, buf);
        else
                lkg_buf_putc(buf, '-');
}

static int put_line(const char *pointer, const struct lkg_value *runs, const struct lkg_value *served,
                    void *userdata)
{
        struct lkg_buf *buf = userdata;
        enum lkg_secrecy secrecy = lkg_pointer_secrecy(pointer);

        lkg_pointer_text(pointer, buf);
        put_value(runs, secrecy, buf);
        put_value(served, secrecy, buf);
        lkg_buf_putc(buf, '\n');
        return 0;
}

void lkg_component_drift(const struct lkg_component *c, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *runs = NULL, *served = NULL;
        bool alive;

        g = running(c, &alive);
        if (!g || !c->active || g->number == c->active->number || parse(g, &runs) < 0 ||
            parse(c->active, &served) < 0)
                return;
        (void)lkg_value_compare(runs, served, put_line, buf);
}
