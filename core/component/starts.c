/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known about a start, and how earlier processes ended. These facts decide, in this order of trust,
 * whether a start counts: our own restart request (the supervisor's file `restarted`), how the previous
 * process ended, the boot ID, and what the service manager says (the supervisor's file `start`).
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <lkg/component.h>

#define OWN_EVENT_NS (2 * LKG_NSEC_PER_SEC) /* a process that watches its file exits at once */

/* ---- how a process ended ---- */

/* From linux/pidfd.h, kernel 6.15: exit information of a process. */
struct ending {
        uint64_t mask, cgroup;
        uint32_t pid, tgid, ppid, ids[8];
        int32_t exit_code;
        uint32_t spare[2];
};
#define ENDING_MASK_EXIT (UINT64_C(1) << 3)
#define ENDING_IOCTL     _IOWR(0xFF, 11, struct ending)

/* Killed by a signal, so not because of our change event. Known only after its parent has reaped it. */
static bool was_killed(int pidfd)
{
        struct ending ending = { .mask = ENDING_MASK_EXIT };

        return pidfd >= 0 && ioctl(pidfd, ENDING_IOCTL, &ending) == 0 && ending.mask & ENDING_MASK_EXIT &&
               WIFSIGNALED(ending.exit_code);
}

/*
 * kube-proxy exits when its file changes. If a process that ran another generation exited right after a
 * publication, that was the reason; the start that follows says nothing about the new generation.
 */
static void note_end(struct lkg_component *c, const struct lkg_tracked *t)
{
        uint64_t now = lkg_boottime_ns();

        if (!c->active || t->generation == 0 || t->generation == c->active->number ||
            c->process.served_ns == 0 || now - c->process.served_ns > OWN_EVENT_NS)
                return;
        if (c->process.own_event && !was_killed(c->process.ended_fd))
                return; /* another process already did, however this one ended */
        lkg_close(c->process.ended_fd);
        c->process.ended_fd = fcntl(t->pidfd, F_DUPFD_CLOEXEC, 0);
        c->process.own_event = true;
}

void lkg_component_note_ends(struct lkg_component *c)
{
        for (size_t i = 0; c->facts && i < c->facts->n_processes; i++) {
                struct lkg_tracked *t = &c->facts->processes[i];

                if (t->pidfd < 0 || t->end_noted || !lkg_facts_ended(t))
                        continue;
                t->end_noted = true;
                note_end(c, t);
        }
}

/* kube-proxy exits when its file changes; a process that was killed did not exit for that reason. */
static bool take_own_event(struct lkg_component *c)
{
        bool own = c->process.own_event && !was_killed(c->process.ended_fd);

        c->process.own_event = false;
        c->process.ended_fd = lkg_close(c->process.ended_fd);
        return own;
}

/* ---- a start ---- */

/* Did we ask for this start? Only if nothing has started since we asked. */
static bool was_asked_for(const struct lkg_component *c)
{
        const struct lkg_startups *starts = &c->dynamic->startups;
        uint64_t now = lkg_boottime_ns(), wall = lkg_realtime_ns();
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_fact_restarted last;

        if (!c->facts || lkg_fact_read(c->facts->dirfd, LKG_FACT_RESTARTED, &text, NULL) < 0 ||
            !lkg_fact_restarted_parse(text, &last) ||
            strncmp(last.result, "failed", strlen("failed")) == 0 ||
            strcmp(last.boot, c->dynamic->boot) != 0 || last.asked_ns > now)
                return false;
        return starts->n_items == 0 ||
               starts->items[starts->n_items - 1].time_ns < wall - (now - last.asked_ns);
}

/* What the service manager said last about the main process of the unit. */
static bool read_start(const struct lkg_component *c, struct lkg_fact_start *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        return c->facts && lkg_fact_read(c->facts->dirfd, LKG_FACT_START, &text, NULL) >= 0 &&
               lkg_fact_start_parse(text, ret);
}

bool lkg_component_manager_says(const struct lkg_component *c, int pid, uint64_t start_time,
                                bool *ret_automatic)
{
        struct lkg_fact_start start;

        if (!read_start(c, &start) || start.pid != pid || start.start_time != start_time)
                return false;
        *ret_automatic = start.why == LKG_START_AUTOMATIC;
        return true;
}

int lkg_component_main_process(const struct lkg_component *c)
{
        struct lkg_fact_start start;

        return read_start(c, &start) && lkg_process_running(start.pid, start.start_time) >= 0 ? start.pid
                                                                                              : 0;
}

struct lkg_start_facts lkg_component_start_facts(struct lkg_component *c, int pid, uint64_t start_time)
{
        const struct lkg_dynamic *d = c->dynamic;
        struct lkg_start_facts facts = {
                .first_after_boot = *d->startups.boot && strcmp(d->startups.boot, d->boot) != 0,
                .asked_for = was_asked_for(c),
                .own_event = take_own_event(c),
        };

        facts.manager_knows = pid && lkg_component_manager_says(c, pid, start_time, &facts.automatic);
        return facts;
}

/* ---- planned restarts ---- */

uint64_t lkg_component_planned_restart(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        uint64_t now = lkg_boottime_ns(), at = 0;

        if (c->facts && lkg_fact_read(c->facts->dirfd, LKG_FACT_PLAN, &text, NULL) >= 0)
                at = lkg_fact_plan_due(text);
        return at ? lkg_realtime_ns() + (at > now ? at - now : 0) : 0;
}

/* ---- which starts count ---- */

void lkg_component_learn_version(struct lkg_component *c, struct lkg_report *report)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        unsigned release = lkg_component_release(c);
        struct lkg_error err = { 0 };
        char words[64], guess[16];
        int r;

        if (!c->dynamic)
                return;
        (void)snprintf(guess, sizeof(guess), "%u.%u", release / 100, release % 100);
        (void)snprintf(words, sizeof(words), "%s", guess);
        if (c->facts && *c->facts->version)
                (void)snprintf(words, sizeof(words), "%.63s", c->facts->version);
        else if (*c->dynamic->store.release)
                return; /* unknown at the moment: most likely still the previous version */
        r = lkg_dynamic_set_release(c->dynamic, words, guess, report, &err);
        if (r < 0)
                lkg_log(LOG_ERR, &fields, "cannot begin the bad list of %s: %s", words, err.message);
        if (r <= 0)
                return;
        lkg_log(LOG_INFO, &fields, "bad list and startups of %s count", c->dynamic->store.release);
        lkg_component_note_tried(c, false);
}
