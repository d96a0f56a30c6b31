/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the engine still answer (pace.h), and does the notifier do its work? The engine is asked twice a
 * second while the view is in use, while it has work to do or has not published yet, and until it has
 * answered; otherwise once a minute, so that an idle node has almost no wake-ups. Urgent events come from
 * the kernel: its end (children.c), a stop (SIGCHLD), and each second of CPU time (a timer on its CPU clock,
 * for an endless loop).
 *
 * A second of silence is reported: in the shared memory for the file server, in the log, and to the service
 * manager. After engineTimeout and a second of silence the engine is killed and replaced.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <lkg/base.h>

#include "supervisor.h"

#define QUIET_NS (60 * LKG_NSEC_PER_SEC)
#define START_NS (30 * LKG_NSEC_PER_SEC) /* for the first reading; the same as ENGINE_LIMIT_NS */
/*
 * Each step of its work is one call through the view, which a hung file server delays until it is replaced
 * (LKG_HEARTBEAT_HUNG_NS). So this is longer.
 */
#define STUCK_NS     (5 * LKG_NSEC_PER_SEC)
#define CLOCK_STEP_S 1
#define CLOCK_SIGNAL (SIGRTMIN + 1)

static struct lkg_child *engine_of(struct lkg_supervisor *s)
{
        return &s->children[LKG_CHILD_ENGINE];
}

static struct lkg_health *health_of(struct lkg_supervisor *s)
{
        return s->connection.shared ? &s->connection.shared->health : NULL;
}

/* ---- reports ---- */

static void note_silent(struct lkg_supervisor *s)
{
        struct lkg_health *h = health_of(s);

        if (!h || atomic_load(&h->silent_ns) != 0)
                return;
        atomic_store(&h->silent_wall_ns, s->watchdog.silent_wall_ns);
        atomic_store(&h->silent_ns, s->watchdog.silent_ns);
}

/* The only place where the state becomes silent. @since_ns: CLOCK_BOOTTIME */
static void begin_silence(struct lkg_supervisor *s, uint64_t since_ns, uint64_t since_wall_ns)
{
        if (s->watchdog.silent_ns == 0) {
                s->watchdog.silent_ns = since_ns;
                s->watchdog.silent_wall_ns = since_wall_ns;
        }
        note_silent(s);
}

static void tell(struct lkg_supervisor *s)
{
        char since[21];

        if (s->watchdog.told || s->watchdog.silent_ns == 0 ||
            lkg_boottime_ns() - s->watchdog.silent_ns < LKG_ALIVE_SILENT_NS)
                return;
        s->watchdog.told = true;
        lkg_format_rfc3339(s->watchdog.silent_wall_ns, since);
        lkg_log_error("the engine has not answered since %s; the view stays as it is", since);
        if (s->phase == LKG_PHASE_RUNNING)
                lkg_notify_status("Serving %s; engine not answering since %s", s->mount_point, since);
}

void lkg_watchdog_heard(struct lkg_supervisor *s)
{
        struct lkg_health *h = health_of(s);

        s->watchdog.silent_ns = 0;
        if (h) {
                atomic_store(&h->heard_wall_ns, lkg_realtime_ns());
                atomic_store(&h->heard_ns, lkg_boottime_ns());
                atomic_store(&h->silent_ns, 0);
        }
        if (!s->watchdog.told)
                return;
        s->watchdog.told = false;
        lkg_log_notice("the engine answers again");
        if (s->phase == LKG_PHASE_RUNNING)
                lkg_notify_status("Serving %s", s->mount_point);
}

void lkg_watchdog_answered(struct lkg_supervisor *s, uint64_t ticket)
{
        if (lkg_alive_answered(&s->watchdog.alive, ticket))
                lkg_watchdog_heard(s);
}

/* ---- asking ---- */

static void ask(struct lkg_supervisor *s)
{
        struct lkg_message message;

        lkg_message_init(&message, LKG_MSG_ALIVE);
        message.ticket = lkg_alive_asked(&s->watchdog.alive, lkg_boottime_ns(), lkg_realtime_ns());
        (void)lkg_engine_tell(s, &message); /* a full queue counts as no answer */
}

static bool is_stopped(const struct lkg_child *child)
{
        return lkg_process_running((int)child->pid, 0) == 0;
}

static void look_at_engine(struct lkg_supervisor *s)
{
        struct lkg_child *child = engine_of(s);
        uint64_t limit_ns = lkg_engine_silence_ns(s);
        enum lkg_alive_verdict verdict;
        enum lkg_work work;
        char why[64];
        bool works;

        if (!lkg_child_running(child) || child->ending) {
                if (s->watchdog.silent_ns != 0)
                        note_silent(s); /* the shared memory may have been replaced meanwhile */
                tell(s);
                return;
        }
        lkg_child_hear_out(child); /* messages that have already arrived count */
        work = lkg_engine_work(s);
        if (work == LKG_WORK_TOO_LONG)
                return; /* killed for that */
        works = work == LKG_WORK_GOES_ON && !is_stopped(child);
        if (health_of(s))
                atomic_store(&health_of(s)->works, works);
        if (!child->ready && limit_ns < START_NS)
                limit_ns = START_NS;
        verdict = lkg_alive_tick(&s->watchdog.alive, lkg_boottime_ns(), limit_ns, works);
        if (verdict == LKG_ALIVE_ASK)
                ask(s);
        if (verdict == LKG_ALIVE_SILENT || verdict == LKG_ALIVE_HUNG)
                begin_silence(s, s->watchdog.alive.asked_ns, s->watchdog.alive.asked_wall_ns);
        tell(s);
        (void)snprintf(why, sizeof(why), "has answered nothing for %u s",
                       (unsigned)(limit_ns / LKG_NSEC_PER_SEC));
        if (work == LKG_WORK_STILL || verdict == LKG_ALIVE_HUNG)
                lkg_child_replace(child, why);
}

/* ---- a notifier that does nothing ---- */

/* Return: whether to check again in a tick. */
static bool look_at_notifier(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_NOTIFIER];
        struct lkg_shared *shared = s->connection.shared;
        struct lkg_progress *progress = &s->watchdog.notifier;
        enum lkg_progress_verdict verdict;
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
        stopped = is_stopped(child);
        verdict = lkg_progress_look(progress, has_work, stopped, trace, lkg_boottime_ns(), STUCK_NS);
        if (verdict == LKG_PROGRESS_STUCK) {
                lkg_child_replace(child, stopped ? "was stopped for 5 s" : "has done nothing for 5 s");
                *progress = (struct lkg_progress){ 0 };
        }
        return verdict != LKG_PROGRESS_NONE;
}

/* ---- when ---- */

static void on_look(void *userdata);

static void look_in(struct lkg_supervisor *s, uint64_t pause_ns)
{
        s->watchdog.quiet = pause_ns == QUIET_NS;
        if (lkg_timer_set(&s->watchdog.timer, s->event, pause_ns, pause_ns / 10, on_look, s) < 0)
                lkg_log_error("no timer for watching the engine: out of memory");
}

/* The view is not in use, and the engine has neither work nor an unanswered question. */
static bool is_quiet(struct lkg_supervisor *s)
{
        const struct lkg_child *child = engine_of(s);

        return lkg_child_running(child) && child->ready && !s->watchdog.alive.asked &&
               s->watchdog.silent_ns == 0 && !lkg_timer_is_set(&s->watchdog.server_timer) &&
               s->phase == LKG_PHASE_RUNNING && lkg_engine_work(s) == LKG_WORK_NONE;
}

static void on_look(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        bool woken = s->watchdog.quiet || s->watchdog.woken, notifying;

        if (s->phase >= LKG_PHASE_UNMOUNT)
                return;
        s->watchdog.woken = false;
        if (health_of(s))
                atomic_store(&health_of(s)->looked_ns, lkg_boottime_ns());
        notifying = look_at_notifier(s);
        if (!woken && !notifying && is_quiet(s)) {
                look_in(s, QUIET_NS);
                return;
        }
        look_at_engine(s);
        if (s->phase < LKG_PHASE_UNMOUNT)
                look_in(s, LKG_ALIVE_TICK_NS);
}

void lkg_watchdog_wake(struct lkg_supervisor *s)
{
        s->watchdog.woken = true;
        if (s->phase < LKG_PHASE_UNMOUNT && (s->watchdog.quiet || !lkg_timer_is_set(&s->watchdog.timer)))
                look_in(s, LKG_ALIVE_TICK_NS);
}

/* ---- events of the kernel ---- */

/*
 * A check alone would find no work and go back to sleep: only an unanswered question reveals an engine that
 * does nothing.
 */
static void ask_now(struct lkg_supervisor *s)
{
        if (!s->watchdog.alive.asked)
                ask(s);
        lkg_watchdog_wake(s);
}

static bool was_stopped(const struct lkg_child *child)
{
        siginfo_t stopped = { 0 };

        return lkg_child_running(child) && !child->adopted && !child->ending &&
               waitid(P_PID, (id_t)child->pid, &stopped, WSTOPPED | WNOHANG) == 0 && stopped.si_pid != 0;
}

static int on_sigchld(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        if (was_stopped(engine_of(s)))
                ask_now(s);
        if (was_stopped(&s->children[LKG_CHILD_NOTIFIER]))
                lkg_watchdog_wake(s);
        return 0;
}

static int on_clock(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        if (lkg_child_running(engine_of(s)) && !engine_of(s)->ending)
                ask_now(s);
        return 0;
}

static void drop_clock(struct lkg_supervisor *s)
{
        if (s->watchdog.has_clock)
                (void)timer_delete(s->watchdog.clock);
        s->watchdog.has_clock = false;
}

/* Without the timer, an endless loop is found when the view is used, or within a minute. */
static void watch_clock(struct lkg_supervisor *s)
{
        const struct itimerspec step = { { CLOCK_STEP_S, 0 }, { CLOCK_STEP_S, 0 } };
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL };
        clockid_t clock;

        event.sigev_signo = CLOCK_SIGNAL;
        if (clock_getcpuclockid(engine_of(s)->pid, &clock) != 0 ||
            timer_create(clock, &event, &s->watchdog.clock) < 0)
                return;
        s->watchdog.has_clock = true;
        if (timer_settime(s->watchdog.clock, 0, &step, NULL) < 0)
                drop_clock(s);
}

void lkg_watchdog_started(struct lkg_supervisor *s)
{
        drop_clock(s);
        lkg_alive_forget(&s->watchdog.alive);
        watch_clock(s);
        lkg_watchdog_wake(s);
}

void lkg_watchdog_gone(struct lkg_supervisor *s)
{
        drop_clock(s);
        lkg_alive_forget(&s->watchdog.alive);
        if (health_of(s))
                atomic_store(&health_of(s)->works, 0);
        if (s->phase == LKG_PHASE_ENGINE)
                return; /* it has never answered */
        begin_silence(s, lkg_boottime_ns(), lkg_realtime_ns());
        lkg_watchdog_wake(s);
}

int lkg_watchdog_init(struct lkg_supervisor *s)
{
        int r = sd_event_add_signal(s->event, NULL, SIGCHLD | SD_EVENT_SIGNAL_PROCMASK, on_sigchld, s);

        if (r >= 0)
                r = sd_event_add_signal(s->event, NULL, CLOCK_SIGNAL | SD_EVENT_SIGNAL_PROCMASK, on_clock,
                                        s);
        return r;
}

void lkg_watchdog_deinit(struct lkg_supervisor *s)
{
        drop_clock(s);
        lkg_timer_stop(&s->watchdog.timer);
}
