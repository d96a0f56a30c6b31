/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the newest process with what is served: does its document have another meaning, and in which
 * fields?
 */
#include <lkg/component.h>
#include <lkg/documents.h>

static int parse(const struct lkg_generation *g, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_text *text = &g->document;

        return lkg_decode(text->data, text->size, lkg_detect_format(text->data, text->size), 0, NULL,
                          &ignored, ret);
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
        else if (value)
                buf->failed = true;
        else
                lkg_buf_putc(buf, '-');
}

static int put_line(const char *pointer, const struct lkg_value *runs, const struct lkg_value *served,
                    void *userdata)
{
        struct lkg_buf *buf = userdata;
        enum lkg_secrecy secrecy;

        if (lkg_pointer_text(pointer, buf) < 0)
                return -ENOMEM;
        secrecy = lkg_pointer_secrecy(pointer);
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
        if (lkg_value_compare(runs, served, put_line, buf) == -ENOMEM)
                buf->failed = true;
}
