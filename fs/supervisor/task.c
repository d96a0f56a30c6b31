/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One forked copy of this process at a time that may send requests through the view and so may block: if the
 * file server dies meanwhile, the loop is free to start the next one, and the task continues.
 */
#include "supervisor.h"

/* In the forked process. If it hangs, it must not hold our locks, or no lkgfsd could take over. */
static int run(void *userdata)
{
        struct lkg_supervisor *s = userdata;

        lkg_close(s->state_lock);
        lkg_close(s->runtime_lock);
        return s->task.run(s);
}

static void on_done(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;

        s->task.done(s, status);
}

int lkg_task_start(struct lkg_supervisor *s, int (*fn)(struct lkg_supervisor *s),
                   void (*done)(struct lkg_supervisor *s, int status), uint64_t limit_ns)
{
        const struct lkg_helper_work work = { .run = run,
                                              .done = on_done,
                                              .userdata = s,
                                              .limit_ns = limit_ns,
                                              .flags = LKG_JOB_KEEPS_FDS | LKG_JOB_OUTLIVES_US,
                                              .impatient = true };

        s->task.run = fn;
        s->task.done = done;
        return lkg_helper_start(&s->task.helper, s->event, &work);
}

void lkg_task_cancel(struct lkg_supervisor *s)
{
        lkg_helper_cancel(&s->task.helper);
}
