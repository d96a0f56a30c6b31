/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notifier: touches changed files through the view. It gets a detached clone of the view, so that it
 * neither keeps the mount busy nor sees mounts on top of it, and has no access to the device. Killing it
 * loses nothing.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <lkg/base.h>

#include "supervisor.h"

#define EARLY_NS      (1 * LKG_NSEC_PER_SEC)
#define KILL_GRACE_NS (50 * LKG_NSEC_PER_MSEC)
/*
 * Each step of its work is one call through the view, which a hung file server delays until it is replaced
 * (LKG_HEARTBEAT_HUNG_NS). So this is longer.
 */
#define STUCK_NS (5 * LKG_NSEC_PER_SEC)
/*
 * A user who keeps a directory of the view locked (a listing into memory of a file system that does not
 * answer) blocks everyone who changes it, and SIGKILL does not end that wait. The next notifier would be
 * blocked, too.
 */
#define ABANDONED_MAX 4u

/* Return: whether another one may be started; if not, one is started when an earlier one has ended. */
static bool may_start(struct lkg_child *child)
{
        if (child->n_abandoned < ABANDONED_MAX)
                return true;
        if (!child->held)
                lkg_child_log(
                        child, LOG_ERR,
                        "is not started: %u that were killed wait in the kernel; nobody wakes watchers "
                        "until one of them has ended",
                        child->n_abandoned);
        child->held = true;
        return false;
}

static int start(struct lkg_supervisor *s, struct lkg_child *child)
{
        const char *argv[] = { s->programs.notifier, "--root-fd", "3", "--shared-fd", "4",
                               "--supervisor-fd",    "5",         NULL };
        struct lkg_spawn spawn = { .argv = argv, .n_fds = 3, .namespace_fd = s->children_namespace };
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int r;

        if (s->connection.view_fd < 0)
                return 0; /* being mounted or unmounted: started when there is a view again */
        if (!may_start(child))
                return 0;
        r = lkg_channel_pair(&ours, &theirs);
        if (r < 0)
                return r;
        spawn.fds[0] = s->connection.view_fd;
        spawn.fds[1] = s->connection.shared_fd;
        spawn.fds[2] = theirs;
        return lkg_child_spawn(child, &spawn, &ours);
}

static void died(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        bool early = !end->adopted && end->lived_ns < EARLY_NS;

        if (s->connection.view_fd >= 0)
                lkg_child_start_later(child,
                                      lkg_restart_pause_ns(&child->restart, &lkg_restart_notifier, early));
}

/* It sends nothing; the socket only tells it when we are gone. */
static bool input(struct lkg_supervisor *s, struct lkg_child *child)
{
        char byte;

        (void)s;
        return recv(child->channel, &byte, sizeof(byte), MSG_DONTWAIT) > 0;
}

/* ---- a notifier that does nothing ---- */

bool lkg_notifier_look(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_NOTIFIER];
        struct lkg_shared *shared = s->connection.shared;
        struct lkg_progress *progress = &s->watchdog.notifier;
        struct lkg_child_end end = { .code = CLD_KILLED, .status = SIGKILL };
        bool has_work, stopped;
        uint64_t trace;

        if (!lkg_child_running(child) || child->ending || !shared) {
                *progress = (struct lkg_progress){ 0 };
                return false;
        }
        has_work = atomic_load(&shared->notify.wake_wanted) != atomic_load(&shared->notify.wake_done) ||
                   atomic_load(&shared->notify.relay_head) != atomic_load(&shared->notify.relay_tail);
        trace = atomic_load(&shared->notify.wake_done) + atomic_load(&shared->notify.relay_tail) +
                atomic_load(&shared->notify.steps);
        stopped = lkg_process_running((int)child->pid, 0) == 0;
        switch (lkg_progress_look(progress, has_work, stopped, trace, lkg_boottime_ns(), STUCK_NS)) {
        case LKG_PROGRESS_NONE:
                return false;
        case LKG_PROGRESS_WATCH:
                return true;
        case LKG_PROGRESS_STUCK:
                break;
        }
        lkg_child_log(child, LOG_ERR, "(pid %d) %s for %u s: killed", (int)child->pid,
                      stopped ? "was stopped" : "has done nothing", (unsigned)(STUCK_NS / LKG_NSEC_PER_SEC));
        end.adopted = child->adopted;
        end.lived_ns = lkg_boottime_ns() - child->started_ns;
        *progress = (struct lkg_progress){ 0 };
        lkg_child_abandon(child, KILL_GRACE_NS);
        died(s, child, &end);
        return true;
}

const struct lkg_child_ops lkg_notifier_ops = { .start = start, .died = died, .input = input };
