/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the component has lived with the configuration on trial, and the ends of earlier processes: the last known good, and
 * ends that lkgfs itself caused.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <lkg/log.h>

#include "engine-internal.h"

#define OWN_EVENT_NS (2 * LKG_NSEC_PER_SEC) /* a watcher ends itself at once */

/* ---- is the component alive on what is on trial? ---- */

static bool runs_active(const struct lkg_engine *e, const struct lkg_component *c,
                        const struct lkg_tracked *t)
{
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;
        const struct lkg_history_entry *entry = lkg_history_find(&c->history, t->generation);
        char id[LKG_SOURCE_ID_MAX + 1];

        if (!c->active || t->pidfd < 0)
                return false;
        if (t->generation == c->active->number) {
                lkg_engine_take_lifecycle(e, c, &l, &facts);
                return lkg_lifecycle_serves_tried(&l, &facts); /* an operator may have pinned another one */
        }
        if (c->dynamic->scope_all || !entry)
                return false;
        lkg_config_source_id(&c->dynamic->pointers.active, id);
        return strcmp(entry->source, id) == 0;
}

/* Its open() is not answered yet, so it is not known which generation it will read. */
static bool waits_for_us(const struct lkg_engine *e, const struct lkg_component *c,
                         const struct lkg_tracked *t)
{
        for (size_t i = 0; i < e->n_starting; i++)
                if (e->starting[i].component == c->index && e->starting[i].pid == t->pid &&
                    e->starting[i].start_time == t->start_time)
                        return true;
        return false;
}

void lkg_engine_update_alive(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        struct lkg_event event = { .kind = LKG_EVENT_ALIVE };
        struct lkg_error err = { 0 };

        if (!d || !d->watched || !c->facts || d->trial.state != LKG_TRIAL_RUNNING)
                return;
        for (size_t i = 0; i < c->facts->n_processes; i++)
                event.alive = event.alive || (!waits_for_us(e, c, &c->facts->processes[i]) &&
                                              runs_active(e, c, &c->facts->processes[i]));
        (void)lkg_engine_step(e, c, &event, &err);
}

/* ---- the clock ---- */

static bool is_on_trial(const struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;

        lkg_engine_take_lifecycle(e, c, &l, &facts);
        return lkg_lifecycle_on_trial(&l, &facts);
}

void lkg_engine_tick_trial(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_event event = { .kind = LKG_EVENT_TRIAL_DUE };
        struct lkg_error err = { 0 };

        if (!c->dynamic || c->dynamic->trial.state != LKG_TRIAL_RUNNING)
                return;
        c->trial_failed_ns = lkg_engine_step(e, c, &event, &err) < 0 ? lkg_boottime_ns() : 0;
}

uint64_t lkg_engine_trial_deadline(const struct lkg_engine *e, const struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        uint64_t due, save, first;

        if (!d || d->trial.state != LKG_TRIAL_RUNNING)
                return LKG_NEVER;
        due = is_on_trial(e, c) ? lkg_trial_due(&d->trial) : LKG_NEVER;
        save = d->trial.running_since_ns ? d->trial_saved_ns + LKG_TRIAL_SAVE_NS : LKG_NEVER;
        first = due < save ? due : save;
        return first <= c->trial_failed_ns ? LKG_NEVER : first;
}

/* ---- how a process ended ---- */

/* linux/pidfd.h of kernel 6.15; exit information of a process. */
struct ending {
        uint64_t mask, cgroup;
        uint32_t pid, tgid, ppid, ids[8];
        int32_t exit_code;
        uint32_t spare[2];
};
#define ENDING_MASK_EXIT (UINT64_C(1) << 3)
#define ENDING_IOCTL     _IOWR(0xFF, 11, struct ending)

/* By a signal, which our change event does not send. Known only when its parent has waited for it. */
bool lkg_was_killed(int pidfd)
{
        struct ending ending = { .mask = ENDING_MASK_EXIT };

        return pidfd >= 0 && ioctl(pidfd, ENDING_IOCTL, &ending) == 0 && ending.mask & ENDING_MASK_EXIT &&
               WIFSIGNALED(ending.exit_code);
}

/*
 * kube-proxy ends itself when its file changes. A process that ran on another generation and ended by itself right after a
 * publication did that; the start that follows says nothing about the new one.
 */
static void note_end(struct lkg_component *c, const struct lkg_tracked *t)
{
        uint64_t now = lkg_boottime_ns();

        if (!c->active || t->generation == 0 || t->generation == c->active->number || c->served_ns == 0 ||
            now - c->served_ns > OWN_EVENT_NS)
                return;
        if (c->own_event && !lkg_was_killed(c->ended_fd))
                return; /* one did it, whatever this one died of */
        lkg_close(c->ended_fd);
        c->ended_fd = fcntl(t->pidfd, F_DUPFD_CLOEXEC, 0);
        c->own_event = true;
}

void lkg_engine_note_ends(struct lkg_component *c)
{
        for (size_t i = 0; c->facts && i < c->facts->n_processes; i++) {
                struct lkg_tracked *t = &c->facts->processes[i];

                if (t->pidfd < 0 || t->end_noted || !lkg_facts_ended(t))
                        continue;
                t->end_noted = true;
                note_end(c, t);
        }
}
