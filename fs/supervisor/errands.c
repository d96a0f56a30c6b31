/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine has us do, because it may neither execute programs nor write to the source directory. It decides when; what is
 * run or written is in files of root. Each errand is a helper, because a program or a disk may block.
 *
 * What `lkgfs-engine` prints in a namespace without the view becomes a file of the private runtime directory: the answer of the exec
 * plugin of a kubeconfig (--exec-credential), and what the container runtime says about static pods (--containers). Of each one at a
 * time, with a pause between two: an earlier request is told to wait.
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

#define WHY_MAX         512u
#define NOBODY          "65534:65534"
#define COPIES_LIMIT_NS (10 * LKG_NSEC_PER_SEC)
#define SOURCE_FD       LKG_HELPER_FIRST_FD
#define RUNTIME_FD      (LKG_HELPER_FIRST_FD + 1)

/* ---- what the engine's program prints ---- */

/* In the forked process, which becomes that program. */
static int become_engine(const struct lkg_supervisor *s, const char *const *argv)
{
        int r = lkg_hide_view(s->mount_point);

        if (r != 0)
                return r;
        (void)execv(argv[0], (char **)(uintptr_t)argv);
        return EX_UNAVAILABLE;
}

static int ask_plugin(void *userdata)
{
        const struct lkg_supervisor *s = ((struct lkg_errand *)userdata)->supervisor;
        const char *argv[] = { s->programs[LKG_CHILD_ENGINE],
                               "--exec-credential",
                               "--mountpoint",
                               s->mount_point,
                               "--source-path",
                               s->source.path,
                               s->config ? "--config" : NULL,
                               s->config,
                               NULL };

        return become_engine(s, argv);
}

static int ask_runtime(void *userdata)
{
        const struct lkg_errand *errand = userdata;
        const struct lkg_supervisor *s = errand->supervisor;
        const char *argv[] = { s->programs[LKG_CHILD_ENGINE],           "--containers", errand->runtime,
                               lkg_may_change_user() ? "--user" : NULL, NOBODY,         NULL };

        return become_engine(s, argv);
}

static const struct kind {
        enum lkg_message_type type;
        const char *file;
        int (*run)(void *userdata);
        size_t max;                  /* bytes of the output */
        uint64_t pause_ns, limit_ns; /* from one start to the next; longer than the program's own */
} kinds[_LKG_ERRAND_MAX] = {
        /* The engine waits 10 s, by another clock. */
        [LKG_ERRAND_CREDENTIAL] = { LKG_MSG_CREDENTIAL, LKG_EXEC_FILE, ask_plugin, (64u << 10) + 1,
                                    8 * LKG_NSEC_PER_SEC, 30 * LKG_NSEC_PER_SEC },
        [LKG_ERRAND_CONTAINERS] = { LKG_MSG_CONTAINERS, LKG_CONTAINERS_FILE, ask_runtime,
                                    LKG_CONTAINERS_BYTES_MAX, LKG_NSEC_PER_SEC / 2, 5 * LKG_NSEC_PER_SEC },
};

static void tell_why(struct lkg_message *message, int r, const char *why)
{
        message->result = r;
        (void)snprintf(message->text, WHY_MAX, "%.*s", (int)strcspn(why, "\n"), why);
        message->text_size = (uint32_t)strlen(message->text);
        lkg_blank_hidden(message->text, message->text_size, '?');
}

void lkg_errand_answer(enum lkg_errand_kind kind, int runtime_fd, struct lkg_helper *helper, int status,
                       struct lkg_message *ret)
{
        const struct kind *k = &kinds[kind];
        struct lkg_error err = { 0 };
        char *text = NULL;
        size_t size = 0;
        int r = lkg_helper_answer(helper, k->max, &text, &size);

        lkg_message_init(ret, k->type);
        if (r < 0)
                tell_why(ret, r, "its output cannot be read");
        else if (status < 0)
                tell_why(ret, -ETIMEDOUT, "it did not end in time and was killed");
        else if (status > 0)
                tell_why(ret, -EIO, size > 0 ? text : "it could not be run");
        else if ((r = lkg_write_file_atomic(runtime_fd, k->file, text, size, 0600, /* durable= */ false,
                                            &err)) < 0)
                tell_why(ret, r, err.message);
        if (text)
                OPENSSL_cleanse(text, size);
        free(text);
}

static enum lkg_errand_kind kind_of(const struct lkg_errand *errand)
{
        return (enum lkg_errand_kind)(errand - errand->supervisor->jobs.errands);
}

static void answer(const struct lkg_errand *errand, const struct lkg_message *message)
{
        struct lkg_supervisor *s = errand->supervisor;

        if (lkg_engine_tell(s, message) < 0)
                (void)unlinkat(s->dirs.runtime, kinds[kind_of(errand)].file,
                               0); /* the next engine will ask again */
}

static void refuse(const struct lkg_errand *errand, int r, const char *why)
{
        struct lkg_message message;

        lkg_message_init(&message, kinds[kind_of(errand)].type);
        tell_why(&message, r, why);
        answer(errand, &message);
}

static void on_done(void *userdata, int status)
{
        struct lkg_errand *errand = userdata;
        struct lkg_message message;

        lkg_errand_answer(kind_of(errand), errand->supervisor->dirs.runtime, &errand->helper, status,
                          &message);
        answer(errand, &message);
}

/* The path of the socket is root's word, not the engine's. Return: false: there is none. */
static bool find_runtime(const struct lkg_supervisor *s, const char *component,
                         char ret[static LKG_RUNTIME_PATH_MAX])
{
        static const char *const usual[] = { "/run/containerd/containerd.sock", "/run/crio/crio.sock",
                                             "/var/run/cri-dockerd.sock" };
        const char *path = "";

        for (size_t i = 0; i < s->settings->n_components; i++)
                if (strcmp(s->settings->components[i].name, component) == 0)
                        path = s->settings->components[i].runtime_endpoint;
        if (strncmp(path, LKG_RUNTIME_SCHEME, strlen(LKG_RUNTIME_SCHEME)) == 0)
                path += strlen(LKG_RUNTIME_SCHEME);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(usual) && strcmp(path, "auto") == 0; i++)
                if (lkg_path_exists(AT_FDCWD, usual[i]))
                        path = usual[i];
        lkg_text_copy(ret, LKG_RUNTIME_PATH_MAX, path);
        return *path == '/';
}

void lkg_errand_request(struct lkg_supervisor *s, enum lkg_errand_kind kind,
                        const struct lkg_message *message)
{
        struct lkg_errand *errand = &s->jobs.errands[kind];
        const struct lkg_helper_work work = { .run = kinds[kind].run,
                                              .done = on_done,
                                              .userdata = errand,
                                              .program = s->programs[LKG_CHILD_ENGINE],
                                              .limit_ns = kinds[kind].limit_ns };
        uint64_t now_ns = lkg_boottime_ns();
        int r;

        errand->supervisor = s;
        if (s->phase > LKG_PHASE_RUNNING || lkg_helper_running(&errand->helper))
                return; /* the running one answers this request, too */
        if (errand->started_ns > 0 && now_ns - errand->started_ns < kinds[kind].pause_ns) {
                refuse(errand, -EAGAIN, "it ran only a few seconds ago");
                return;
        }
        if (kind == LKG_ERRAND_CONTAINERS && !find_runtime(s, message->text, errand->runtime)) {
                refuse(errand, -ENOENT, "there is no socket of a container runtime, see runtimeEndpoint");
                return;
        }
        errand->started_ns = now_ns;
        r = lkg_helper_start(&errand->helper, s->event, &work);
        if (r >= 0)
                return;
        lkg_log_error("%s: start the process that asks for it: %s", kinds[kind].file, strerror(-r));
        refuse(errand, r, "the process that asks for it could not be started");
}

void lkg_errands_cancel(struct lkg_supervisor *s)
{
        for (size_t i = 0; i < _LKG_ERRAND_MAX; i++) {
                lkg_helper_cancel(&s->jobs.errands[i].helper);
                if (s->jobs.errands[i].started_ns > 0)
                        (void)unlinkat(s->dirs.runtime, kinds[i].file, 0);
        }
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
