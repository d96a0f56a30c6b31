/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The note about the engine's current work (lkg/admission.h): kept for its successor, and checked against the
 * time that the work takes.
 */
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>

#include "supervisor.h"

#include <lkg/base.h>

void lkg_engine_note_open(struct lkg_supervisor *s)
{
        struct lkg_error err = { 0 };

        s->judging = lkg_judging_close(s->judging);
        if (lkg_judging_open(s->runtime_fd, &s->judging, &err) < 0)
                lkg_log_warning("%s", err.message);
        s->work = (struct lkg_work_watch){ 0 };
        s->engine_took_too_long = false;
}

void lkg_engine_note_end(struct lkg_supervisor *s, const struct lkg_child_end *end)
{
        enum lkg_judging_end how = end->code == CLD_EXITED                              ? LKG_END_EXIT
                                   : end->code == CLD_KILLED || end->code == CLD_DUMPED ? LKG_END_SIGNAL
                                                                                        : LKG_END_UNKNOWN;

        if (!s->judging || atomic_load(&s->judging->since_ns) == 0)
                return;
        /*
         * It recorded the end itself; or this engine died before it read the note, which is about the
         * previous one.
         */
        if (atomic_load(&s->judging->end) != LKG_END_UNKNOWN)
                return; /* recorded by the engine itself when it gave up */
        atomic_store(&s->judging->end_status, end->status);
        atomic_store(&s->judging->end, s->engine_took_too_long ? LKG_END_TIME : how);
}

enum lkg_work lkg_engine_work(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        uint64_t still_ns = s->settings->engine_timeout_ms * LKG_NSEC_PER_MSEC + LKG_NSEC_PER_SEC;
        struct timespec used = { 0 };
        enum lkg_work work;
        uint64_t bytes;
        clockid_t clock;

        if (!s->judging && child->adopted)
                lkg_engine_note_open(s);
        if (!s->judging || !lkg_child_running(child) || clock_getcpuclockid(child->pid, &clock) != 0 ||
            clock_gettime(clock, &used) < 0)
                return LKG_WORK_NONE;
        bytes = atomic_load(&s->judging->bytes);
        work = lkg_work_look(&s->work, atomic_load(&s->judging->since_ns), bytes,
                             (uint64_t)used.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)used.tv_nsec,
                             lkg_boottime_ns(), still_ns);
        if (work != LKG_WORK_TOO_LONG || s->engine_took_too_long)
                return work;
        s->engine_took_too_long = true;
        lkg_child_log(child, LOG_ERR,
                      "(pid %d) has used more than %u s of a processor for one look at the layers: killed; "
                      "what is "
                      "new in them will be refused",
                      (int)child->pid, (unsigned)(lkg_work_limit_ns(bytes) / LKG_NSEC_PER_SEC));
        (void)pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
        return work;
}

/* ---- engine-channel ---- */

/* Messages to the engine. */

int lkg_engine_tell(struct lkg_supervisor *s, const struct lkg_message *message)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        int r;

        if (child->channel < 0)
                return -ENOTCONN;
        r = lkg_message_send(child->channel, message);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* those: it has just ended */
                lkg_child_log(child, LOG_WARNING, "does not take messages: %s", strerror(-r));
        return r;
}

void lkg_engine_send(struct lkg_supervisor *s, uint32_t type)
{
        struct lkg_message message;

        lkg_message_init(&message, type);
        (void)lkg_engine_tell(s, &message);
}
