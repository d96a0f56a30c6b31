/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's part of the facts: the collecting processes, their ends and time limits. See
 * facts-collectors.h.
 *
 * There are two processes, because one result is urgent: why a process started must be known while its
 * open() waits, so it must not wait for a program's version. The slow one starts when the fast one has
 * ended.
 */

#include "facts-collectors.h"
#include "supervisor.h"

#define STARTS_LIMIT_NS (1 * LKG_NSEC_PER_SEC)
#define REST_LIMIT_NS   (30 * LKG_NSEC_PER_SEC)

static int run_starts(void *userdata)
{
        const struct lkg_supervisor *s = userdata;

        return lkg_starts_collect(LKG_HELPER_FIRST_FD, s->settings->components, s->settings->n_components);
}

static int run_rest(void *userdata)
{
        const struct lkg_supervisor *s = userdata;

        lkg_facts_collect(LKG_HELPER_FIRST_FD, s->settings->components, s->settings->n_components);
        return 0;
}

static void on_rest(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;
        bool again = s->facts.again_rest;

        (void)status;
        s->facts.again_rest = false;
        if (again)
                lkg_facts_refresh(s);
}

static void ask_rest(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = { .run = run_rest,
                                              .done = on_rest,
                                              .userdata = s,
                                              .fds = { s->runtime_fd },
                                              .n_fds = 1,
                                              .limit_ns = REST_LIMIT_NS };

        if (lkg_helper_running(&s->facts.rest))
                s->facts.again_rest = true;
        else
                (void)lkg_helper_start(&s->facts.rest, s->event,
                                       &work); /* out of memory: the next start tries again */
}

static void on_starts(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;
        bool again = s->facts.again_starts;

        if (status != 0) /* too late; and the old file may be about an earlier start */
                lkg_starts_unknown(s->runtime_fd, s->settings->components, s->settings->n_components);
        s->facts.again_starts = false;
        if (again)
                lkg_facts_refresh(s);
        else
                ask_rest(s);
}

void lkg_facts_refresh(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = { .run = run_starts,
                                              .done = on_starts,
                                              .userdata = s,
                                              .fds = { s->runtime_fd },
                                              .n_fds = 1,
                                              .limit_ns = STARTS_LIMIT_NS };

        if (s->phase > LKG_PHASE_RUNNING || s->settings->n_components == 0)
                return;
        if (lkg_helper_running(&s->facts.starts))
                s->facts.again_starts = true;
        else if (lkg_helper_start(&s->facts.starts, s->event, &work) < 0)
                lkg_starts_unknown(s->runtime_fd, s->settings->components, s->settings->n_components);
}

void lkg_facts_cancel(struct lkg_supervisor *s)
{
        s->facts.again_starts = s->facts.again_rest = false;
        lkg_helper_cancel(&s->facts.starts);
        lkg_helper_cancel(&s->facts.rest);
}
