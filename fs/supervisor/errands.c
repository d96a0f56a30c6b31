/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine has us do, because it may neither execute programs nor write to the source directory. It decides when; what is
 * run or written is in files of root. Each errand is a helper, because a program or a disk may block.
 *
 * The exec plugin of a kubeconfig: `lkgfs-engine --exec-credential`, in a namespace without the view, prints what becomes the file
 * `credential` of the private runtime directory. One at a time, and at most one every 10 s: an earlier request is told to wait.
 *
 * Fallback copies (<lkg/publication.h>): our settings name the files, their owner and mode; the engine names the document by its
 * digest.
 */
#include <fcntl.h>
#include <openssl/crypto.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/publication.h>
#include <lkg/text.h>

#include "supervisor.h"

#define OUTPUT_MAX      ((64u << 10) + 1)
#define WHY_MAX         512u
#define EXEC_PAUSE_NS   (8 * LKG_NSEC_PER_SEC)  /* the engine waits 10 s, by another clock */
#define EXEC_LIMIT_NS   (30 * LKG_NSEC_PER_SEC) /* the engine's own limit is 25 s */
#define COPIES_LIMIT_NS (10 * LKG_NSEC_PER_SEC)
#define SOURCE_FD       LKG_HELPER_FIRST_FD
#define RUNTIME_FD      (LKG_HELPER_FIRST_FD + 1)

/* ---- the exec plugin ---- */

static void tell_why(struct lkg_message *message, int r, const char *why)
{
        message->result = r;
        (void)snprintf(message->text, WHY_MAX, "%.*s", (int)strcspn(why, "\n"), why);
        message->text_size = (uint32_t)strlen(message->text);
        lkg_blank_hidden(message->text, message->text_size, '?');
}

void lkg_exec_answer(int runtime_fd, struct lkg_helper *helper, int status, struct lkg_message *ret)
{
        struct lkg_error err = { 0 };
        char *text = NULL;
        size_t size = 0;
        int r = lkg_helper_answer(helper, OUTPUT_MAX, &text, &size);

        lkg_message_init(ret, LKG_MSG_CREDENTIAL);
        if (r < 0)
                tell_why(ret, r, "its output cannot be read");
        else if (status < 0)
                tell_why(ret, -ETIMEDOUT, "it did not end in time and was killed");
        else if (status > 0)
                tell_why(ret, -EIO, size > 0 ? text : "it could not be run");
        else if ((r = lkg_write_file_atomic(runtime_fd, LKG_EXEC_FILE, text, size, 0600,
                                            /* durable= */ false, &err)) < 0)
                tell_why(ret, r, err.message);
        if (text)
                OPENSSL_cleanse(text, size);
        free(text);
}

/* In the forked process, which becomes the engine's program. */
static int run(void *userdata)
{
        const struct lkg_supervisor *s = userdata;
        const char *argv[] = { s->programs[LKG_CHILD_ENGINE],
                               "--exec-credential",
                               "--mountpoint",
                               s->mount_point,
                               "--source-path",
                               s->source.path,
                               s->config ? "--config" : NULL,
                               s->config,
                               NULL };
        int r = lkg_hide_view(s->mount_point);

        if (r != 0)
                return r;
        (void)execv(argv[0], (char **)(uintptr_t)argv);
        return EX_UNAVAILABLE;
}

static void answer(struct lkg_supervisor *s, const struct lkg_message *message)
{
        if (lkg_engine_tell(s, message) < 0)
                (void)unlinkat(s->dirs.runtime, LKG_EXEC_FILE, 0); /* the next engine will ask again */
}

static void refuse_exec(struct lkg_supervisor *s, int r, const char *why)
{
        struct lkg_message message;

        lkg_message_init(&message, LKG_MSG_CREDENTIAL);
        tell_why(&message, r, why);
        answer(s, &message);
}

static void on_done(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;
        struct lkg_message message;

        lkg_exec_answer(s->dirs.runtime, &s->jobs.exec.helper, status, &message);
        answer(s, &message);
}

void lkg_exec_request(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = { .run = run,
                                              .done = on_done,
                                              .userdata = s,
                                              .program = s->programs[LKG_CHILD_ENGINE],
                                              .limit_ns = EXEC_LIMIT_NS };
        uint64_t now_ns = lkg_boottime_ns();
        int r;

        if (s->phase > LKG_PHASE_RUNNING || lkg_helper_running(&s->jobs.exec.helper))
                return; /* the running one answers this request, too */
        if (s->jobs.exec.started_ns > 0 && now_ns - s->jobs.exec.started_ns < EXEC_PAUSE_NS) {
                refuse_exec(s, -EAGAIN, "it ran only a few seconds ago");
                return;
        }
        s->jobs.exec.started_ns = now_ns;
        r = lkg_helper_start(&s->jobs.exec.helper, s->event, &work);
        if (r >= 0)
                return;
        lkg_log_error("exec plugin: start the process that runs it: %s", strerror(-r));
        refuse_exec(s, r, "the process that runs it could not be started");
}

void lkg_exec_cancel(struct lkg_supervisor *s)
{
        lkg_helper_cancel(&s->jobs.exec.helper);
        if (s->jobs.exec.started_ns > 0)
                (void)unlinkat(s->dirs.runtime, LKG_EXEC_FILE, 0);
}

/* ---- fallback copies ---- */

/* In the forked process. Its exit status is an errno value. */
static int write_copy(void *userdata)
{
        const struct lkg_copies *copies = userdata;
        const struct lkg_supervisor *s = copies->supervisor;
        const struct lkg_settings_component *c = &s->settings->components[copies - s->jobs.copies];
        const struct lkg_fallback_file file = { c->file, c->uid, c->gid, c->mode };
        int r = c->is_pods        ? lkg_fallback_write_pods(SOURCE_FD, RUNTIME_FD, &file)
                : *copies->sha256 ? lkg_fallback_write(SOURCE_FD, RUNTIME_FD, &file, copies->sha256)
                                  : lkg_fallback_withdraw(SOURCE_FD, c->file);

        return r < 0 ? -r : 0;
}

static void on_copy(void *userdata, int status)
{
        struct lkg_copies *copies = userdata;
        struct lkg_supervisor *s = copies->supervisor;
        size_t component = (size_t)(copies - s->jobs.copies);
        struct lkg_message m;

        if (copies->helper.wanted) /* requested again meanwhile: the document may be gone */
                return;
        lkg_message_init(&m, LKG_MSG_FALLBACK);
        m.result = status < 0 ? -ETIMEDOUT : -status;
        if (component < s->settings->n_components) { /* else a reload has removed it */
                m.text_size = (uint32_t)snprintf(m.text, sizeof(m.text), "%s",
                                                 s->settings->components[component].name);
                (void)lkg_engine_tell(s, &m); /* the next engine will ask again */
        }
        if (!lkg_fallback_busy(s))
                s->life->copies_done(s);
}

/* A helper has a copy of our memory from its start: a later request needs another one. */
static void start_copy(void *userdata)
{
        struct lkg_copies *copies = userdata;
        struct lkg_supervisor *s = copies->supervisor;
        const struct lkg_helper_work work = { .run = write_copy,
                                              .done = on_copy,
                                              .again = start_copy,
                                              .userdata = copies,
                                              .fds = { s->source.fd, s->dirs.runtime },
                                              .n_fds = 2,
                                              .limit_ns = COPIES_LIMIT_NS };
        int r = lkg_helper_start(&copies->helper, s->event, &work);

        if (r < 0)
                on_copy(copies, -r);
}

void lkg_fallback_request(struct lkg_supervisor *s, const struct lkg_message *message)
{
        size_t length = strcspn(message->text, " ");

        for (size_t i = 0; i < s->settings->n_components && i < LKG_COMPONENTS_MAX; i++) {
                struct lkg_copies *copies = &s->jobs.copies[i];

                if (!lkg_span_is(lkg_span(message->text, length), s->settings->components[i].name))
                        continue; /* if there is none: it asks again after the reload */
                copies->supervisor = s;
                (void)snprintf(copies->sha256, sizeof(copies->sha256), "%s",
                               message->text + length + (message->text[length] == ' '));
                start_copy(copies);
        }
}

bool lkg_fallback_busy(const struct lkg_supervisor *s)
{
        bool busy = false;

        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++)
                busy = busy || lkg_helper_running(&s->jobs.copies[i].helper);
        return busy;
}

void lkg_fallback_cancel(struct lkg_supervisor *s)
{
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++)
                lkg_helper_cancel(&s->jobs.copies[i].helper);
}
