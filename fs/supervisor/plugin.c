/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin.h"

#include <fcntl.h>

#include <openssl/crypto.h>

#include <lkg/file.h>
#include <lkg/base.h>

#include "supervisor.h"

#define OUTPUT_MAX ((64u << 10) + 1)
#define WHY_MAX    512u

/* ---- the output ---- */

static void tell_why(struct lkg_message *message, int r, const char *why)
{
        message->result = r;
        message->text_size =
                (uint32_t)snprintf(message->text, WHY_MAX, "%.*s", (int)strcspn(why, "\n"), why);
        if (message->text_size >= WHY_MAX)
                message->text_size = WHY_MAX - 1;
        for (uint32_t i = 0; i < message->text_size; i++)
                if ((unsigned char)message->text[i] < 0x20 || message->text[i] == 0x7f)
                        message->text[i] = '?';
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

/* ---- the helper ---- */

/* In the forked process, which becomes the engine's program. */
static int run(void *userdata)
{
        const struct lkg_supervisor *s = userdata;
        const char *argv[] = { s->programs.engine,
                               "--exec-credential",
                               "--mountpoint",
                               s->mount_point,
                               "--source-path",
                               s->source_path,
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
                (void)unlinkat(s->runtime_fd, LKG_EXEC_FILE, 0); /* the next engine will ask again */
}

static void on_done(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;
        struct lkg_message message;

        lkg_exec_answer(s->runtime_fd, &s->exec.helper, status, &message);
        answer(s, &message);
}

void lkg_exec_request(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = { .run = run,
                                              .done = on_done,
                                              .userdata = s,
                                              .program = s->programs.engine,
                                              .limit_ns = LKG_EXEC_LIMIT_NS };
        uint64_t now_ns = lkg_boottime_ns();
        struct lkg_message message;
        int r;

        if (s->phase > LKG_PHASE_RUNNING || lkg_helper_running(&s->exec.helper))
                return; /* the running one answers this request, too */
        lkg_message_init(&message, LKG_MSG_CREDENTIAL);
        if (s->exec.started_ns > 0 && now_ns - s->exec.started_ns < LKG_EXEC_PAUSE_NS) {
                tell_why(&message, -EAGAIN, "it ran only a few seconds ago");
                answer(s, &message);
                return;
        }
        s->exec.started_ns = now_ns;
        r = lkg_helper_start(&s->exec.helper, s->event, &work);
        if (r >= 0)
                return;
        lkg_log_error("exec plugin: start the process that runs it: %s", strerror(-r));
        tell_why(&message, r, "the process that runs it could not be started");
        answer(s, &message);
}

void lkg_exec_cancel(struct lkg_supervisor *s)
{
        lkg_helper_cancel(&s->exec.helper);
        if (s->exec.started_ns > 0)
                (void)unlinkat(s->runtime_fd, LKG_EXEC_FILE, 0);
}
