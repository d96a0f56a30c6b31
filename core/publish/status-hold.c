/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<component>/hold and status/<component>/process: why the view does not follow changes, and which
 * process reads it. One key=value per line, so that a program need not parse the text of the condition.
 */
#include <inttypes.h>

#include <lkg/component.h>
#include "status.h"

static void put_time(struct lkg_buf *buf, const char *key, uint64_t wall_ns)
{
        char text[21] = "";

        if (wall_ns)
                lkg_format_rfc3339(wall_ns, text);
        lkg_buf_printf(buf, "%s=%s\n", key, text);
}

/* Foreign text stays on one line. */
static void put_text(struct lkg_buf *buf, const char *key, const char *text)
{
        lkg_buf_printf(buf, "%s=", key);
        lkg_buf_shown(buf, text, strlen(text));
        lkg_buf_putc(buf, '\n');
}

static const char *mode_word(enum lkg_hold_mode mode)
{
        static const char *const words[_LKG_HOLD_MODE_MAX] = {
                [LKG_HOLD_FREE] = "free",
                [LKG_HOLD_ON] = "hold",
                [LKG_HOLD_ROLLBACK] = "rollback",
                [LKG_HOLD_TRY_EXPIRED] = "try-expired",
        };

        return words[mode];
}

static const char *try_word(enum lkg_try_phase phase)
{
        static const char *const words[_LKG_TRY_PHASE_MAX] = {
                [LKG_TRY_NONE] = "none",
                [LKG_TRY_ARMED] = "armed",
                [LKG_TRY_RUNNING] = "running",
        };

        return words[phase];
}

static void put_holder(struct lkg_buf *buf, const struct lkg_component_state *state)
{
        const struct lkg_held_by *by = &state->held_by;
        bool person = by->time_ns && strcmp(by->program, "try") != 0;

        put_time(buf, "since", by->time_ns);
        if (person)
                lkg_buf_printf(buf, "uid=%" PRIu32 "\npid=%" PRId32 "\n", by->uid, by->pid);
        else
                lkg_buf_puts(buf, "uid=\npid=\n");
        put_text(buf, "program", person ? by->program : "");
}

void lkg_status_render_hold(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;
        const struct lkg_hold *hold = &c->state.hold;
        bool held = hold->mode != LKG_HOLD_FREE;
        const char *waiting = lkg_component_waiting(c);

        lkg_buf_printf(buf, "mode=%s\ngeneration=", mode_word(hold->mode));
        if (held)
                lkg_buf_printf(buf, "%" PRIu64, hold->generation);
        lkg_buf_putc(buf, '\n');
        put_holder(buf, &c->state);
        lkg_buf_printf(buf, "newer=%s\ntry=%s\n", lkg_component_verdict(c) == LKG_WAIT ? "waits" : "none",
                       try_word(hold->try_phase));
        put_time(buf, "until", hold->try_phase == LKG_TRY_RUNNING ? lkg_component_try_deadline(c) : 0);
        put_text(buf, "rollout", waiting ? waiting : "");
}

/* The newest living process that has read the file; else the main process of the unit, whatever that has read. */
static int find_living(const struct lkg_component *c, uint64_t *ret_generation)
{
        const struct lkg_tracked *newest = NULL;

        for (size_t i = 0; c->facts && i < c->facts->n_processes; i++)
                if (c->facts->processes[i].pidfd >= 0)
                        newest = &c->facts->processes[i];
        *ret_generation = newest ? newest->generation : 0;
        return newest ? newest->pid : lkg_component_main_process(c);
}

void lkg_status_render_process(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;
        uint64_t generation;
        int pid = find_living(c, &generation);

        put_text(buf, "unit", c->config->match.unit);
        lkg_buf_puts(buf, "pid=");
        if (pid)
                lkg_buf_printf(buf, "%d", pid);
        lkg_buf_puts(buf, "\ngeneration=");
        if (generation)
                lkg_buf_printf(buf, "%" PRIu64, generation);
        lkg_buf_putc(buf, '\n');
        put_text(buf, "version", c->facts ? c->facts->version : "");
}
