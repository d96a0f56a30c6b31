/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: started in its own mount namespace in which the view does not exist, so that no path of a
 * configuration can lead through our own mount. It sees the rest of the host, including later mounts; mounts
 * from before its start are read-only.
 *
 * Does it work? It is asked twice a second while the view is in use, while it has work to do or has not published yet, and until it
 * has answered; otherwise once a minute, so that an idle node has almost no wake-ups. An answer, and CPU time for work that it has
 * noted, are its progress (pace.h). Urgent events come from the kernel: its end (children.c), a stop (SIGCHLD), and each second of
 * CPU time (a timer on its CPU clock, for an endless loop). A second of silence is reported: in the shared memory for the file
 * server, in the log, and to the service manager. After engineTimeout and a second without progress it is killed and replaced.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/messages.h>
#include <lkg/publication.h>

#include "consumer.h"
#include "facts-collect.h"
#include "supervisor.h"

/* One more than the number of engines that may be killed from outside before their document is refused (core/state/poison.c). */
#define TRIES_AT_START 4u
#define END_NS         (2 * LKG_NSEC_PER_SEC)
#define START_NS       (30 * LKG_NSEC_PER_SEC) /* for the first reading; the same as ENGINE_LIMIT_NS */
#define CLOCK_STEP_S   1
#define CLOCK_SIGNAL   (SIGRTMIN + 1)

static struct lkg_child *engine_of(struct lkg_supervisor *s)
{
        return &s->children[LKG_CHILD_ENGINE];
}

/* ---- its work ---- */

/*
 * The note about its current work (lkg/admission.h): kept for its successor, and checked against the time that the work takes.
 * Without a note an engine runs, too; then a document that kills it is not recognised.
 */
static void note_open(struct lkg_supervisor *s)
{
        struct lkg_error err = { 0 };

        s->engine.judging = lkg_judging_close(s->engine.judging);
        if (lkg_judging_open(s->dirs.runtime, &s->engine.judging, &err) < 0)
                lkg_log_warning("%s", err.message);
        s->engine.work = (struct lkg_work_watch){ 0 };
        s->engine.took_too_long = false;
}

static void note_end(struct lkg_supervisor *s, const struct lkg_child_end *end)
{
        struct lkg_judging *note = s->engine.judging;
        enum lkg_judging_end how = end->code == CLD_EXITED ? LKG_END_EXIT
                                   : end->code != 0        ? LKG_END_SIGNAL
                                                           : LKG_END_UNKNOWN;

        /*
         * It recorded the end itself when it gave up; or this engine died before it read the note, which is
         * about the previous one.
         */
        if (!note || atomic_load(&note->since_ns) == 0 || atomic_load(&note->end) != LKG_END_UNKNOWN)
                return;
        atomic_store(&note->end_status, end->status);
        atomic_store(&note->end, s->engine.took_too_long ? LKG_END_TIME : how);
}

/* If the work takes too long, the engine is killed, and the note tells its successor. @ret_cpu_ns: what it has used so far */
static enum lkg_work look_at_work(struct lkg_supervisor *s, uint64_t *ret_cpu_ns)
{
        struct lkg_child *child = engine_of(s);
        struct timespec used = { 0 };
        enum lkg_work work;
        uint64_t bytes;
        clockid_t clock;

        *ret_cpu_ns = 0;
        if (!s->engine.judging && child->adopted)
                note_open(s);
        if (!s->engine.judging || !lkg_child_running(child) ||
            clock_getcpuclockid(child->pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
                return LKG_WORK_NONE;
        *ret_cpu_ns = (uint64_t)lkg_timespec_ns(&used);
        bytes = atomic_load(&s->engine.judging->bytes);
        work = lkg_work_look(&s->engine.work, atomic_load(&s->engine.judging->since_ns), bytes, *ret_cpu_ns);
        if (work != LKG_WORK_TOO_LONG || s->engine.took_too_long)
                return work;
        s->engine.took_too_long = true;
        lkg_child_log(child, LOG_ERR,
                      "(pid %d) has used more than %u s of a processor for one look at the layers: killed; "
                      "what is new in them will be refused",
                      (int)child->pid, (unsigned)(lkg_work_limit_ns(bytes) / LKG_NSEC_PER_SEC));
        (void)pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
        return work;
}

/* ---- does it answer ---- */

/* There is a connection before there is an engine, and its successor takes this over. */
static struct lkg_health *health_of(struct lkg_supervisor *s)
{
        return &s->connection.shared->health;
}

/* @since_ns: CLOCK_BOOTTIME */
static void begin_silence(struct lkg_supervisor *s, uint64_t since_ns, uint64_t since_wall_ns)
{
        struct lkg_health *h = health_of(s);

        if (atomic_load(&h->silent_ns) != 0)
                return;
        atomic_store(&h->silent_wall_ns, since_wall_ns);
        atomic_store(&h->silent_ns, since_ns);
}

static void tell(struct lkg_supervisor *s)
{
        uint64_t silent_ns = atomic_load(&health_of(s)->silent_ns);
        char since[21];

        if (s->watchdog.told || silent_ns == 0 || lkg_boottime_ns() - silent_ns < LKG_ALIVE_SILENT_NS)
                return;
        s->watchdog.told = true;
        lkg_format_rfc3339(atomic_load(&health_of(s)->silent_wall_ns), since);
        lkg_log_error("the engine has not answered since %s; the view stays as it is", since);
        if (s->phase == LKG_PHASE_RUNNING)
                lkg_notify_status("Serving %s; engine not answering since %s", s->mount_point, since);
}

static void heard_from_it(struct lkg_supervisor *s)
{
        struct lkg_health *h = health_of(s);

        atomic_store(&h->heard_wall_ns, lkg_realtime_ns());
        atomic_store(&h->heard_ns, lkg_boottime_ns());
        atomic_store(&h->silent_ns, 0);
        if (!s->watchdog.told)
                return;
        s->watchdog.told = false;
        lkg_log_notice("the engine answers again");
        if (s->phase == LKG_PHASE_RUNNING)
                lkg_notify_status("Serving %s", s->mount_point);
}

/* Any other ticket is an earlier engine's. */
static void answered(struct lkg_supervisor *s, uint64_t ticket)
{
        if (!s->watchdog.asked || ticket != s->watchdog.ticket)
                return;
        s->watchdog.asked = false;
        heard_from_it(s);
}

static void ask(struct lkg_supervisor *s)
{
        struct lkg_message message;

        s->watchdog.asked = true;
        s->watchdog.asked_ns = lkg_boottime_ns();
        s->watchdog.asked_wall_ns = lkg_realtime_ns();
        s->watchdog.engine = (struct lkg_progress){ .last_ns = s->watchdog.asked_ns };
        lkg_message_init(&message, LKG_MSG_ALIVE);
        message.ticket = ++s->watchdog.ticket;
        (void)lkg_engine_tell(s, &message); /* a full queue counts as no answer */
}

/* At its start it gets the time for the first reading, unless it is stuck in what it reads. */
static uint64_t silence_limit_ns(const struct lkg_supervisor *s, const struct lkg_child *child,
                                 enum lkg_work work)
{
        uint64_t limit_ns = s->settings->engine_timeout_ms * LKG_NSEC_PER_MSEC + LKG_NSEC_PER_SEC;

        return !child->ready && work == LKG_WORK_NONE && limit_ns < START_NS ? START_NS : limit_ns;
}

static void look_at_engine(struct lkg_supervisor *s, struct lkg_child *child)
{
        enum lkg_progress_verdict verdict;
        uint64_t cpu_ns, limit_ns;
        enum lkg_work work;
        char why[64];
        bool works;

        if (!lkg_child_running(child) || child->ending) {
                tell(s);
                return;
        }
        lkg_child_hear_out(child); /* messages that have already arrived count */
        work = look_at_work(s, &cpu_ns);
        if (work == LKG_WORK_TOO_LONG)
                return; /* killed for that */
        works = work != LKG_WORK_NONE && lkg_process_running((int)child->pid, 0) != 0;
        atomic_store(&health_of(s)->works, works);
        if (!s->watchdog.asked) {
                ask(s);
                return;
        }
        limit_ns = silence_limit_ns(s, child, work);
        verdict = lkg_progress_look(&s->watchdog.engine, true, false, work == LKG_WORK_NONE ? 0 : cpu_ns,
                                    lkg_boottime_ns(), limit_ns);
        if (!works && s->watchdog.engine.waited_ns >= LKG_ALIVE_SILENT_NS)
                begin_silence(s, s->watchdog.asked_ns, s->watchdog.asked_wall_ns);
        if (!works) /* the file server notes each wait */
                tell(s);
        (void)snprintf(why, sizeof(why), "has answered nothing for %u s",
                       (unsigned)(limit_ns / LKG_NSEC_PER_SEC));
        if (verdict == LKG_PROGRESS_STUCK)
                lkg_child_replace(child, why);
}

/* The view is not in use, and the engine has neither work nor an unanswered question. */
static bool is_quiet(struct lkg_supervisor *s)
{
        const struct lkg_child *child = engine_of(s);
        uint64_t cpu_ns;

        return lkg_child_running(child) && child->ready && !s->watchdog.asked &&
               atomic_load(&health_of(s)->silent_ns) == 0 && s->phase == LKG_PHASE_RUNNING &&
               look_at_work(s, &cpu_ns) == LKG_WORK_NONE;
}

static bool look(struct lkg_supervisor *s, struct lkg_child *child, bool busy)
{
        atomic_store(&health_of(s)->looked_ns, lkg_boottime_ns());
        if (s->phase >= LKG_PHASE_UNMOUNT || (!busy && is_quiet(s)))
                return false;
        look_at_engine(s, child);
        return true;
}

/* ---- events of the kernel ---- */

/*
 * A check alone would find no work and go back to sleep: only an unanswered question reveals an engine that
 * does nothing.
 */
static void ask_now(struct lkg_supervisor *s)
{
        if (!s->watchdog.asked)
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

static void started(struct lkg_supervisor *s)
{
        drop_clock(s);
        s->watchdog.asked = false;
        watch_clock(s);
        lkg_watchdog_wake(s);
}

static void gone(struct lkg_supervisor *s)
{
        drop_clock(s);
        s->watchdog.asked = false;
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

/* ---- its start ---- */

static bool same_account(const struct lkg_account *a, const struct lkg_account *b)
{
        return a->uid == b->uid && a->gid == b->gid;
}

/*
 * The user of the next engine. One that is less confined is better than none; the reason is logged once.
 * Asking about the directories sends no request to them.
 */
static struct lkg_account choose_account(struct lkg_supervisor *s)
{
        const struct lkg_settings *settings = s->settings;
        struct lkg_account account = { 0 };
        const char *why_root = NULL;

        if (settings->engine_user_missing)
                why_root = "there is no such user in " LKG_PASSWD_FILE;
        else if (settings->engine_uid != 0 && !lkg_may_change_user()) /* in a container */
                why_root = "lkgfsd may not change to it (CAP_SETUID, CAP_SETGID, CAP_CHOWN, "
                           "CAP_DAC_READ_SEARCH)";
        else if (settings->engine_uid != 0 &&
                 (lkg_asks_elsewhere(s->source.fd) || lkg_asks_elsewhere(s->dirs.state)))
                why_root = "a server decides who may read and write in the source or state directory";
        if (why_root && s->engine.why_root != why_root)
                lkg_log_notice("the engine runs as root, without capabilities, and not as engineUser %s: %s",
                               settings->engine_user, why_root);
        s->engine.why_root = why_root;
        if (!why_root)
                account = (struct lkg_account){ .uid = settings->engine_uid, .gid = settings->engine_gid };
        return account;
}

bool lkg_runtime_mend(const struct lkg_supervisor *s)
{
        static const struct {
                const char *name;
                mode_t type;
                bool engines; /* or root's */
        } parts[] = { { LKG_PUBLICATION_CURRENT, S_IFREG, false },
                      { LKG_PUBLICATION_BLOBS, S_IFDIR, true },
                      { LKG_PUBLICATION_PINNED, S_IFDIR, false },
                      { LKG_CLAIMS_NAME, S_IFREG, false },
                      { LKG_JUDGING_NAME, S_IFREG, false } };
        const int dir = s->dirs.runtime;
        bool any = false;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(parts); i++) {
                const char *name = parts[i].name;
                struct stat st;
                int r;

                if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    (st.st_mode & S_IFMT) == parts[i].type)
                        continue;
                any = true;
                lkg_log_warning("%s in the private runtime directory is of another type: put aside", name);
                if (lkg_put_aside(dir, name) < 0)
                        continue;
                /* An empty file says that there was a publication: the next engine takes a higher number. */
                r = parts[i].type == S_IFDIR ? mkdirat(dir, name, 0700)
                                             : mknodat(dir, name, S_IFREG | 0600, 0);
                if (r == 0 && parts[i].engines)
                        r = fchownat(dir, name, s->engine.account.uid, s->engine.account.gid,
                                     AT_SYMLINK_NOFOLLOW);
                if (r < 0)
                        lkg_log_warning("%s: %s", name, strerror(errno));
        }
        return any;
}

static int prepare(struct lkg_supervisor *s, struct lkg_child *child, int channel, const char **more)
{
        const struct lkg_account account = choose_account(s);

        s->engine.handed_over = s->engine.handed_over && same_account(&account, &s->engine.account);
        s->engine.account = account;
        (void)snprintf(s->engine.user, sizeof(s->engine.user), "%u:%u", (unsigned)account.uid,
                       (unsigned)account.gid);
        more[0] = "--mountpoint";
        more[1] = s->mount_point;
        more[2] = "--source-path";
        more[3] = s->source.path;
        more[4] = "--user";
        more[5] = s->engine.user;
        more[6] = s->config ? "--config" : NULL;
        more[7] = s->config;
        (void)lkg_runtime_mend(s);
        note_open(s);
        /* on failure the engine or the file server reports that there are none */
        (void)lkg_claims_make(s->dirs.runtime);
        s->source.mounts = s->source.over ? 0 : lkg_mounts_below(s->source.path);
        return 0;
}

/* Return: whether there was one to be replaced. */
static bool start_another(struct lkg_supervisor *s, const char *fmt, ...) LKG_PRINTF(2, 3);
static bool start_another(struct lkg_supervisor *s, const char *fmt, ...)
{
        struct lkg_child *child = engine_of(s);
        char why[PATH_MAX];
        va_list ap;

        if (!lkg_child_running(child) || child->ending)
                return false;
        va_start(ap, fmt);
        (void)vsnprintf(why, sizeof(why), fmt, ap);
        va_end(ap);
        lkg_child_log(child, LOG_NOTICE, "is started again%s", why);
        lkg_engine_send(s, LKG_MSG_STOP);
        lkg_child_end(child, 0, END_NS);
        return true;
}

void lkg_engine_publish_anew(struct lkg_supervisor *s)
{
        (void)start_another(s, ": the file server found no publication that it could believe");
}

void lkg_engine_check_mounts(struct lkg_supervisor *s)
{
        if (!s->source.over && lkg_mounts_below(s->source.path) != s->source.mounts)
                (void)start_another(s, ": something was mounted or unmounted below %s", s->source.path);
}

bool lkg_engine_check_user(struct lkg_supervisor *s)
{
        const struct lkg_account account = choose_account(s);

        return !engine_of(s)->adopted && !same_account(&account, &s->engine.account) &&
               start_another(s, ", as user %u", (unsigned)account.uid);
}

static void heard_fatal(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_message *message)
{
        int code = message->result > 0 && message->result < 128 ? message->result : EX_SOFTWARE;

        child->fatal = true;
        if (s->phase == LKG_PHASE_ENGINE)
                s->life->fail(s, code, "%s", message->text[0] ? message->text : "the engine gave up.");
        else
                lkg_child_log(child, LOG_ERR, "gave up (%d): %s; the view stays as it is", code,
                              message->text);
}

/* Any text is logged, like standard error, as a line of the engine. */
static void heard_line(struct lkg_child *child, const struct lkg_message *message)
{
        const struct lkg_log_fields fields = {
                .component = *message->command ? message->command : NULL,
                .generation = message->number,
                .layer = *message->exe ? message->exe : NULL,
        };

        lkg_said_line(&child->said, message->result, &fields, message->text);
}

static void heard(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_message *message)
{
        /* of any thread */
        if (message->type != LKG_MSG_ALIVE && message->type != LKG_MSG_FATAL && message->type != LKG_MSG_LOG)
                heard_from_it(s);
        switch (message->type) {
        case LKG_MSG_ALIVE:
                answered(s, message->ticket);
                break;
        case LKG_MSG_FATAL:
                heard_fatal(s, child, message);
                break;
        case LKG_MSG_STARTED:
                lkg_facts_refresh(s);
                break;
        case LKG_MSG_CREDENTIAL:
                lkg_errand_request(s, LKG_ERRAND_CREDENTIAL, message);
                break;
        case LKG_MSG_CONTAINERS:
                lkg_errand_request(s, LKG_ERRAND_CONTAINERS, message);
                break;
        case LKG_MSG_LOG:
                heard_line(child, message);
                break;
        case LKG_MSG_FALLBACK:
                lkg_fallback_request(s, message);
                break;
        case LKG_MSG_RESTART:
                if (s->consumer) /* else we are about to end */
                        lkg_consumer_request(s->consumer, message->component, message->number,
                                             message->result == 1);
                break;
        case LKG_MSG_PUBLISHED:
                lkg_watchdog_wake(s); /* the notifier may have work now */
                if (child->ready)
                        break;
                child->ready = s->engine.handed_over = true;
                child->n_early = 0;
                s->life->engine_ready(s);
        }
}

static bool input(struct lkg_supervisor *s, struct lkg_child *child)
{
        struct lkg_message message;
        int r = lkg_message_recv(child->channel, &message);

        if (r > 0)
                heard(s, child, &message);
        return r > 0 || r == -EBADMSG; /* an unknown message can only come from the engine */
}

static void died(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        const struct lkg_restart_pace *policy = child->fatal ? &lkg_restart_fatal : &lkg_restart_engine;
        bool early = child->fatal || (!child->ready && lkg_child_early(child));

        note_end(s, end);
        gone(s);
        if (s->phase == LKG_PHASE_ENGINE && ++s->engine.n_tries >= TRIES_AT_START) {
                s->life->fail(s, EX_SOFTWARE,
                              "the engine ended %u times before its first publication, last %s %d.",
                              TRIES_AT_START, end->code == CLD_EXITED ? "with code" : "by signal",
                              end->status);
                return;
        }
        lkg_child_start_later(child, lkg_restart_pause_ns(&child->n_early, policy, early));
}

const struct lkg_child_row lkg_engine_row = {
        .name = "engine",
        .program = "lkgfs-engine",
        .fds = { [LKG_ENGINE_LISTEN_FD - 3] = { "--listen-fd",
                                                offsetof(struct lkg_supervisor, dirs.listen) },
                 [LKG_ENGINE_CHANNEL_FD - 3] = { "--supervisor-fd", LKG_CHILD_CHANNEL },
                 [LKG_ENGINE_SOURCE_FD - 3] = { "--source-fd", offsetof(struct lkg_supervisor, source.fd) },
                 [LKG_ENGINE_RUNTIME_FD - 3] = { "--runtime-fd",
                                                 offsetof(struct lkg_supervisor, dirs.runtime) },
                 [LKG_ENGINE_STATE_FD - 3] = { "--state-fd", offsetof(struct lkg_supervisor, dirs.state) } },
        .prepare = prepare,
        .begin = lkg_engine_begin,
        .setup = lkg_engine_setup,
        .started = started,
        .look = look,
        .died = died,
        .input = input,
};
