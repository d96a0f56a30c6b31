/* SPDX-License-Identifier: Apache-2.0 */
/* A node in a private directory with an engine that runs in this process; the test is its file server and supervisor. */
#pragma once

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <lkg/messages.h>
#include <lkg/config.h>
#include <lkg/publication.h>
#include <lkg/file.h>
#include <lkg/base.h>

#include "unit.h"
#include "core/engine/engine.h"
#include "core/engine/engine-internal.h"
#include "tmpdir.h"

#define HEADER "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

struct node {
        char top[TMPDIR_MAX], path[PATH_MAX], source[128], config[128],
                socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
        int source_fd, runtime_fd, state_fd, listen_fd;
        int supervisor[2]; /* ours, the engine's */
        int client;        /* the file server's connection */
        sd_event *event;
        struct lkg_engine *engine;
        uint64_t ticket;
};

/* ---- files ---- */

static inline const char *at(struct node *n, const char *name)
{
        (void)snprintf(n->path, sizeof(n->path), "%s/%s", n->top, name);
        return n->path;
}

static inline void put(struct node *n, const char *name, const char *text)
{
        int fd = open(at(n, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        assert_int_equal(close(fd), 0);
}

static inline void put_dropin(struct node *n, const char *name, const char *body)
{
        char path[256], text[1024];

        (void)snprintf(path, sizeof(path), "source/kubelet.conf.d/%s", name);
        (void)snprintf(text, sizeof(text), HEADER "%s", body);
        put(n, path, text);
}

static inline int open_dir(struct node *n, const char *name, int flags)
{
        int fd = open(at(n, name), O_DIRECTORY | O_CLOEXEC | flags);

        assert_true(fd >= 0);
        return fd;
}

/* Make a node of the contents of n->top. */
static inline void settle_node(struct node *n)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void)snprintf(n->source, sizeof(n->source), "%s/source", n->top);
        (void)snprintf(n->config, sizeof(n->config), "%s/etc/config.yaml", n->top);
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", n->top);
        n->source_fd = open_dir(n, "source", O_PATH);
        n->runtime_fd = open_dir(n, "runtime", O_RDONLY);
        n->state_fd = open_dir(n, "state", O_RDONLY);
        n->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_true(n->listen_fd >= 0);
        assert_int_equal(bind(n->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(n->listen_fd, 4), 0);
        memcpy(n->socket, address.sun_path, sizeof(n->socket));
        n->client = n->supervisor[0] = n->supervisor[1] = -EBADF;
        n->ticket = 1000;
        lkg_log_init("test", LOG_EMERG);
}

static inline void unsettle_node(struct node *n)
{
        lkg_close(n->source_fd);
        lkg_close(n->runtime_fd);
        lkg_close(n->state_fd);
        lkg_close(n->listen_fd);
}

static inline void make_dirs(struct node *n)
{
        assert_int_equal(mkdir(at(n, "source"), 0755), 0);
        assert_int_equal(mkdir(at(n, "source/kubelet.conf.d"), 0755), 0);
        assert_int_equal(mkdir(at(n, "runtime"), 0700), 0);
        assert_int_equal(mkdir(at(n, "state"), 0700), 0);
        assert_int_equal(mkdir(at(n, "etc"), 0755), 0);
}

static inline int setup(void **state)
{
        struct node *n = calloc(1, sizeof(*n));

        assert_non_null(n);
        assert_int_equal(tmpdir_make(n->top), 0);
        make_dirs(n);
        settle_node(n);
        put(n, "source/kubelet.conf", HEADER "maxPods: 100\n");
        *state = n;
        return 0;
}

static inline void stop_node(struct node *n, bool orderly)
{
        if (n->engine && orderly)
                lkg_engine_stop(n->engine);
        n->engine = lkg_engine_free(n->engine);
        n->event = sd_event_unref(n->event);
        n->client = lkg_close(n->client);
        n->supervisor[0] = lkg_close(n->supervisor[0]);
        n->supervisor[1] = lkg_close(n->supervisor[1]);
}

static inline int teardown(void **state)
{
        struct node *n = *state;

        stop_node(n, true);
        unsettle_node(n);
        assert_int_equal(tmpdir_remove(n->top), 0);
        free(n);
        return 0;
}

/* ---- the other processes ---- */

static inline int start_with(struct node *n, struct lkg_error *err)
{
        const struct lkg_engine_options options = {
                .config_path = n->config,
                .vendor_dir = "/nonexistent/lkgfs/config.d",
                .source_path = n->source,
                .listen_fd = n->listen_fd,
                .supervisor_fd = n->supervisor[1],
                .source_fd = n->source_fd,
                .runtime_fd = n->runtime_fd,
                .state_fd = n->state_fd,
                .trust_any_owner = true,
        };
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_engine_options o = options;
        int r;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, n->supervisor), 0);
        o.supervisor_fd = n->supervisor[1];
        assert_true(sd_event_new(&n->event) >= 0);
        r = lkg_engine_new(&o, n->event, &n->engine, &report, err);
        lkg_report_deinit(&report);
        return r < 0 ? r : lkg_engine_start(n->engine, err);
}

/*
 * Receive the next message to the supervisor; requests for copies are skipped and carried out by
 * write_copies().
 */
static inline int hear(const struct node *n, struct lkg_message *ret)
{
        int r;

        do
                r = lkg_message_recv(n->supervisor[0], ret);
        while (r == 1 && ret->type == LKG_MSG_FALLBACK);
        return r;
}

/* Write all requested copies, as lkgfsd does; drop other messages. Return: how many were written. */
static inline unsigned write_copies(struct node *n)
{
        const struct lkg_fallback_file file = { "kubelet.conf", getuid(), getgid(), 0600 };
        struct lkg_message m;
        unsigned count = 0;

        while (lkg_message_recv(n->supervisor[0], &m) == 1) {
                size_t length = strcspn(m.text, " ");

                if (m.type != LKG_MSG_FALLBACK || strncmp(m.text, "kubelet ", 8) != 0)
                        continue;
                m.result = m.text[length + 1] ? lkg_fallback_write(n->source_fd, n->runtime_fd, &file,
                                                                   m.text + length + 1)
                                              : lkg_fallback_withdraw(n->source_fd, file.name);
                m.text[length] = '\0';
                m.text_size = (uint32_t)length;
                (void)lkg_message_send(n->supervisor[0], &m); /* fails if the engine has ended */
                count++;
        }
        return count;
}

static inline void join(struct node *n)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        memcpy(address.sun_path, n->socket, sizeof(address.sun_path));
        n->client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_true(n->client >= 0);
        assert_int_equal(connect(n->client, (struct sockaddr *)&address, sizeof(address)), 0);
}

static inline void start(struct node *n)
{
        struct lkg_error err = { 0 };
        int r = start_with(n, &err);

        if (r != 0)
                print_error("%s\n", err.message);
        assert_int_equal(r, 0);
        join(n);
}

/* One iteration of the engine's loop, at most @ms. */
static inline void turn(struct node *n, unsigned ms)
{
        assert_true(sd_event_run(n->event, UINT64_C(1000) * ms) >= 0);
}

/* Offer a command, as the file server does before it sends it. */
static inline void offer(struct node *n, uint64_t ticket)
{
        struct lkg_claims *claims = NULL;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_claims_open(n->runtime_fd, &claims, &err), 0);
        lkg_claim_end(claims, ticket);
        assert_true(lkg_claim_offer(claims, ticket));
        lkg_claims_close(claims);
}

/* Return the answer to a command that was not offered. */
static inline int ask_plain(struct node *n, struct lkg_message *m, uint64_t ticket)
{
        struct lkg_message answer;

        m->ticket = ticket;
        assert_int_equal(lkg_message_send(n->client, m), 0);
        for (unsigned i = 0; i < 1000; i++) {
                int r = lkg_message_recv(n->client, &answer);

                if (r == -EAGAIN) {
                        turn(n, 1000);
                        continue;
                }
                assert_int_equal(r, 1);
                if (answer.type == LKG_MSG_DONE) {
                        assert_int_equal(answer.ticket, ticket);
                        return answer.result;
                }
        }
        fail_msg("no answer");
        return 0;
}

static inline int ask(struct node *n, struct lkg_message *m, uint64_t ticket)
{
        if (m->type == LKG_MSG_COMMAND)
                offer(n, ticket);
        return ask_plain(n, m, ticket);
}

static inline int changed(struct node *n, const char *path)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_CHANGED);
        m.text_size = (uint32_t)strlen(path);
        memcpy(m.text, path, m.text_size);
        return ask(n, &m, ++n->ticket);
}

static inline int command_with(struct node *n, const char *name, const char *text, uint64_t ticket)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_COMMAND);
        m.pid = 1;
        m.component = 0;
        (void)snprintf(m.command, sizeof(m.command), "%s", name);
        m.text_size = (uint32_t)strlen(text);
        memcpy(m.text, text, m.text_size);
        return ask(n, &m, ticket);
}

static inline int command(struct node *n, const char *name, const char *text)
{
        return command_with(n, name, text, ++n->ticket);
}

/* ---- the reader ---- */

static inline struct lkg_publication *current(struct node *n)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_publication *p = NULL;
        struct lkg_error err = { 0 };
        size_t size;
        int fd = openat(n->runtime_fd, "current", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(lkg_read_file(fd, LKG_MANIFEST_BYTES_MAX, &text, &size, NULL), 0);
        lkg_close(fd);
        if (lkg_publication_parse(text, size, &p, &err) < 0)
                fail_msg("%s", err.message);
        return p;
}

/* Every blob of the manifest exists and has the stated content. */
static inline void check_blobs(struct node *n)
{
        LKG_CLEANUP(lkg_closep)
        int blobs = openat(n->runtime_fd, LKG_PUBLICATION_BLOBS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct lkg_publication *p = current(n);

        for (size_t i = 0; i < p->n_entries; i++) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                size_t size;

                if (p->entries[i].type != LKG_ENTRY_FILE)
                        continue;
                if (lkg_publication_read(blobs, &p->entries[i], SIZE_MAX / 4, &text, &size) < 0)
                        fail_msg("%s: no blob, or another one", p->entries[i].path);
                assert_int_equal(size, p->entries[i].size);
        }
        lkg_publication_free(p);
}

/* Content of one file of the view, rendered if it has to be; NULL = no such file. Caller frees. */
/* `True serving generation 1 from base; [REASON: MESSAGE]` without the plain sentence: `True REASON: MESSAGE`. In place. */
static inline void leave_canonical(char *condition)
{
        char status[16] = "", words[2048] = "";

        if (sscanf(condition, "%15s serving %*[^;]; [%2047[^\n]", status, words) != 2)
                return;
        words[strlen(words) - 1] = '\0';                    /* the bracket */
        (void)sprintf(condition, "%s %s\n", status, words); /* shorter than it was */
}

static inline char *view_raw(struct node *n, const char *path)
{
        struct lkg_publication *p = current(n);
        const struct lkg_entry *e = lkg_publication_find(p, path);
        LKG_CLEANUP(lkg_closep)
        int blobs = openat(n->runtime_fd, LKG_PUBLICATION_BLOBS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct lkg_engine_snapshot now;
        struct lkg_entry rendered = { .path = path };
        struct lkg_rendered answer;
        char *text = NULL;

        if (!e || e->type != LKG_ENTRY_FILE) {
                e = NULL;
                lkg_engine_take_snapshot(n->engine, &now);
                if (lkg_publisher_render(n->engine->publisher, &now.snapshot, path, ++n->ticket, &answer,
                                         NULL) == 0 &&
                    !answer.is_dir) {
                        rendered.size = answer.size;
                        memcpy(rendered.sha256, answer.sha256, sizeof(rendered.sha256));
                        e = &rendered;
                }
        }
        if (e)
                assert_int_equal(lkg_publication_read(blobs, e, SIZE_MAX / 4, &text, NULL), 0);
        lkg_publication_free(p);
        return text;
}

static inline char *view(struct node *n, const char *path)
{
        static const char condition[] = "/condition";
        char *text = view_raw(n, path);
        size_t size = strlen(path);

        if (text && size > strlen(condition) && strcmp(path + size - strlen(condition), condition) == 0)
                leave_canonical(text);
        return text;
}

static inline bool has(struct node *n, const char *path, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, path);

        return content && strstr(content, text);
}

static inline void assert_has(struct node *n, const char *path, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, path);

        if (!content || !strstr(content, text))
                fail_msg("%s: %s\nis without: %s", path, content ? content : "(none)", text);
}

static inline uint64_t generation(struct node *n)
{
        LKG_CLEANUP(lkg_freep) char *text = view(n, "status/kubelet/generation");

        assert_non_null(text);
        return strtoull(text, NULL, 10);
}

static inline void turn_until(struct node *n, const char *path, const char *text)
{
        for (unsigned i = 0; i < 500 && !has(n, path, text); i++)
                turn(n, 100);
        assert_has(n, path, text);
}
