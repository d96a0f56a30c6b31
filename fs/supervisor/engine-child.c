/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: started in its own mount namespace in which the view does not exist, so that no path of a
 * configuration can lead through our own mount. It sees the rest of the host, including later mounts; mounts
 * from before its start are read-only.
 */
#include <fcntl.h>
#include <signal.h>
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
#define EARLY_NS       (1 * LKG_NSEC_PER_SEC)

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
        enum lkg_judging_end how = end->code == CLD_EXITED                              ? LKG_END_EXIT
                                   : end->code == CLD_KILLED || end->code == CLD_DUMPED ? LKG_END_SIGNAL
                                                                                        : LKG_END_UNKNOWN;

        if (!s->engine.judging || atomic_load(&s->engine.judging->since_ns) == 0)
                return;
        /*
         * It recorded the end itself; or this engine died before it read the note, which is about the
         * previous one.
         */
        if (atomic_load(&s->engine.judging->end) != LKG_END_UNKNOWN)
                return; /* recorded by the engine itself when it gave up */
        atomic_store(&s->engine.judging->end_status, end->status);
        atomic_store(&s->engine.judging->end, s->engine.took_too_long ? LKG_END_TIME : how);
}

uint64_t lkg_engine_silence_ns(const struct lkg_supervisor *s)
{
        return s->settings->engine_timeout_ms * LKG_NSEC_PER_MSEC + LKG_NSEC_PER_SEC;
}

enum lkg_work lkg_engine_work(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        struct timespec used = { 0 };
        enum lkg_work work;
        uint64_t bytes;
        clockid_t clock;

        if (!s->engine.judging && child->adopted)
                note_open(s);
        if (!s->engine.judging || !lkg_child_running(child) ||
            clock_getcpuclockid(child->pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
                return LKG_WORK_NONE;
        bytes = atomic_load(&s->engine.judging->bytes);
        work = lkg_work_look(&s->engine.work, atomic_load(&s->engine.judging->since_ns), bytes,
                             (uint64_t)used.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)used.tv_nsec,
                             lkg_boottime_ns(), lkg_engine_silence_ns(s));
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

/* ---- its start ---- */

static bool same_account(const struct lkg_account *a, const struct lkg_account *b)
{
        return a->uid == b->uid && a->gid == b->gid;
}

/* The user of the next engine; if that is root, the reason is logged once. */
static struct lkg_account choose_account(struct lkg_supervisor *s)
{
        struct lkg_account account;
        const int directories[] = { s->source.fd, s->dirs.state };
        enum lkg_engine_root why = lkg_engine_account(s->settings, directories, &account);

        if (s->engine.root != (int)why)
                lkg_engine_user_tell(s->settings, why);
        s->engine.root = (int)why;
        return account;
}

/*
 * An empty file in place of a publication says that there was one: the next engine takes a higher number. A directory of blobs belongs to the
 * engine.
 */
static void make_again(const struct lkg_supervisor *s, const char *name, bool directory)
{
        if (!directory)
                lkg_close(openat(s->dirs.runtime, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 0600));
        else if (mkdirat(s->dirs.runtime, name, 0700) == 0 && strcmp(name, LKG_PUBLICATION_BLOBS) == 0 &&
                 fchownat(s->dirs.runtime, name, s->engine.account.uid, s->engine.account.gid,
                          AT_SYMLINK_NOFOLLOW) < 0)
                lkg_log_warning("%s: %s", name, strerror(errno));
}

bool lkg_runtime_mend(const struct lkg_supervisor *s)
{
        static const struct {
                const char *name;
                mode_t type;
        } parts[] = { { LKG_PUBLICATION_CURRENT, S_IFREG },
                      { LKG_PUBLICATION_BLOBS, S_IFDIR },
                      { LKG_PUBLICATION_PINNED, S_IFDIR },
                      { LKG_CLAIMS_NAME, S_IFREG },
                      { LKG_JUDGING_NAME, S_IFREG } };
        bool any = false;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(parts); i++) {
                struct stat st;

                if (fstatat(s->dirs.runtime, parts[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    (st.st_mode & S_IFMT) == parts[i].type)
                        continue;
                lkg_log_warning("%s in the private runtime directory is of another type: put aside",
                                parts[i].name);
                if (lkg_put_aside(s->dirs.runtime, parts[i].name) == 0)
                        make_again(s, parts[i].name, parts[i].type == S_IFDIR);
                any = true;
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

static void start_another(struct lkg_supervisor *s)
{
        lkg_engine_send(s, LKG_MSG_STOP);
        lkg_child_end(&s->children[LKG_CHILD_ENGINE], 0, END_NS);
}

void lkg_engine_publish_anew(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];

        if (!lkg_child_running(child) || child->ending)
                return;
        lkg_child_log(child, LOG_NOTICE,
                      "is started again: the file server found no publication that it could believe");
        start_another(s);
}

void lkg_engine_check_mounts(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];

        if (s->source.over || !lkg_child_running(child) || child->ending ||
            lkg_mounts_below(s->source.path) == s->source.mounts)
                return;
        lkg_child_log(child, LOG_NOTICE, "is started again: something was mounted or unmounted below %s",
                      s->source.path);
        start_another(s);
}

bool lkg_engine_check_user(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        const struct lkg_account account = choose_account(s);

        if (!lkg_child_running(child) || child->ending || child->adopted ||
            same_account(&account, &s->engine.account))
                return false;
        lkg_child_log(child, LOG_NOTICE, "is started again, as user %u", (unsigned)account.uid);
        start_another(s);
        return true;
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
        if (message->type == LKG_MSG_ALIVE)
                lkg_watchdog_answered(s, message->ticket);
        else if (message->type != LKG_MSG_FATAL && message->type != LKG_MSG_LOG) /* of any thread */
                lkg_watchdog_heard(s);
        if (message->type == LKG_MSG_FATAL) {
                heard_fatal(s, child, message);
        } else if (message->type == LKG_MSG_STARTED) {
                lkg_facts_refresh(s);
        } else if (message->type == LKG_MSG_CREDENTIAL) {
                lkg_exec_request(s);
        } else if (message->type == LKG_MSG_LOG) {
                heard_line(child, message);
        } else if (message->type == LKG_MSG_FALLBACK) {
                lkg_fallback_request(s, message);
        } else if (message->type == LKG_MSG_RESTART) {
                if (s->consumer) /* else we are about to end */
                        lkg_consumer_request(s->consumer, message->component, message->number,
                                             message->result == 1);
        } else if (message->type == LKG_MSG_PUBLISHED) {
                lkg_watchdog_wake(s); /* the notifier may have work now */
                if (child->ready)
                        return;
                child->ready = true;
                s->engine.handed_over = true;
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
        const struct lkg_restart_pace *policy = end->fatal ? &lkg_restart_fatal : &lkg_restart_engine;
        bool early = end->fatal || (!end->ready && !end->adopted && end->lived_ns < EARLY_NS);

        note_end(s, end);
        lkg_watchdog_gone(s);
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
        .started = lkg_watchdog_started,
        .died = died,
        .input = input,
};
