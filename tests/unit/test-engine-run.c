/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole engine in this process: a temporary source, runtime and state directory, a socket for the file server's side
 * and one for the supervisor's. What a reader would see is read back from the manifest and the blobs.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <cmocka.h>

#include <lkg/control.h>
#include <lkg/file.h>
#include <lkg/log.h>
#include <lkg/publication.h>

#include "core/engine/config.h"
#include "core/engine/engine.h"
#include "core/engine/engine-internal.h"
#include "core/engine/fallback.h"

#define HEADER "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

struct node {
        char top[64], path[PATH_MAX], source[128], config[128],
                socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
        int source_fd, runtime_fd, state_fd, listen_fd;
        int supervisor[2]; /* ours, the engine's */
        int client;        /* the file server's connection */
        sd_event *event;
        struct lkg_engine *engine;
        uint64_t ticket;
};

/* ---- files ---- */

static const char *at(struct node *n, const char *name)
{
        (void)snprintf(n->path, sizeof(n->path), "%s/%s", n->top, name);
        return n->path;
}

static void put(struct node *n, const char *name, const char *text)
{
        int fd = open(at(n, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        assert_int_equal(close(fd), 0);
}

static void put_dropin(struct node *n, const char *name, const char *body)
{
        char path[256], text[1024];

        (void)snprintf(path, sizeof(path), "source/kubelet.conf.d/%s", name);
        (void)snprintf(text, sizeof(text), HEADER "%s", body);
        put(n, path, text);
}

static int open_dir(struct node *n, const char *name, int flags)
{
        int fd = open(at(n, name), O_DIRECTORY | O_CLOEXEC | flags);

        assert_true(fd >= 0);
        return fd;
}

static void remove_tree(const char *path)
{
        char command[PATH_MAX + 16];

        (void)snprintf(command, sizeof(command), "rm -rf -- '%s'", path);
        assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
        struct node *n = calloc(1, sizeof(*n));
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        const char *tmp = getenv("TMPDIR");

        assert_non_null(n);
        (void)snprintf(n->top, sizeof(n->top), "%.40s/lkgfs-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(n->top));
        assert_int_equal(mkdir(at(n, "source"), 0755), 0);
        assert_int_equal(mkdir(at(n, "source/kubelet.conf.d"), 0755), 0);
        assert_int_equal(mkdir(at(n, "runtime"), 0700), 0);
        assert_int_equal(mkdir(at(n, "state"), 0700), 0);
        assert_int_equal(mkdir(at(n, "etc"), 0755), 0);
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
        put(n, "source/kubelet.conf", HEADER "maxPods: 100\n");
        *state = n;
        return 0;
}

static void stop(struct node *n, bool orderly)
{
        if (n->engine && orderly)
                lkg_engine_stop(n->engine);
        n->engine = lkg_engine_free(n->engine);
        n->event = sd_event_unref(n->event);
        n->client = lkg_close(n->client);
        n->supervisor[0] = lkg_close(n->supervisor[0]);
        n->supervisor[1] = lkg_close(n->supervisor[1]);
}

static int teardown(void **state)
{
        struct node *n = *state;

        stop(n, true);
        lkg_close(n->source_fd);
        lkg_close(n->runtime_fd);
        lkg_close(n->state_fd);
        lkg_close(n->listen_fd);
        remove_tree(n->top);
        free(n);
        return 0;
}

/* ---- the other processes ---- */

static int start_with(struct node *n, struct lkg_error *err)
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

static void join(struct node *n)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        memcpy(address.sun_path, n->socket, sizeof(address.sun_path));
        n->client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_true(n->client >= 0);
        assert_int_equal(connect(n->client, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void start(struct node *n)
{
        struct lkg_error err = { 0 };
        int r = start_with(n, &err);

        if (r != 0)
                print_error("%s\n", err.message);
        assert_int_equal(r, 0);
        join(n);
}

/* One round of the engine's loop, at most @ms. */
static void turn(struct node *n, unsigned ms)
{
        assert_true(sd_event_run(n->event, UINT64_C(1000) * ms) >= 0);
}

static int ask(struct node *n, struct lkg_message *m, uint64_t ticket)
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

static int changed(struct node *n, const char *path)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_CHANGED);
        m.text_size = (uint32_t)strlen(path);
        memcpy(m.text, path, m.text_size);
        return ask(n, &m, ++n->ticket);
}

static int command_with(struct node *n, const char *name, const char *text, uint64_t ticket)
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

static int command(struct node *n, const char *name, const char *text)
{
        return command_with(n, name, text, ++n->ticket);
}

/* ---- the reader ---- */

static struct lkg_publication *current(struct node *n)
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

/* Every blob of the manifest exists and is what it says. */
static void check_blobs(struct node *n)
{
        struct lkg_publication *p = current(n);

        for (size_t i = 0; i < p->n_entries; i++) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                char name[100], sha256[LKG_SHA256_HEX];
                size_t size;
                int fd;

                if (p->entries[i].type != LKG_ENTRY_FILE)
                        continue;
                (void)snprintf(name, sizeof(name), "blobs/%s", p->entries[i].sha256);
                fd = openat(n->runtime_fd, name, O_RDONLY | O_CLOEXEC);
                if (fd < 0)
                        fail_msg("%s: no blob", p->entries[i].path);
                assert_int_equal(lkg_read_file(fd, SIZE_MAX / 4, &text, &size, NULL), 0);
                lkg_close(fd);
                assert_int_equal(size, p->entries[i].size);
                assert_int_equal(lkg_sha256_hex(text, size, sha256), 0);
                assert_string_equal(sha256, p->entries[i].sha256);
        }
        lkg_publication_free(p);
}

/* Content of one file of the view; NULL = no such file. Caller frees. */
static char *view(struct node *n, const char *path)
{
        struct lkg_publication *p = current(n);
        const struct lkg_entry *e = lkg_publication_find(p, path);
        char name[100], *text = NULL;
        size_t size;

        if (e) {
                int fd;

                (void)snprintf(name, sizeof(name), "blobs/%s", e->sha256);
                fd = openat(n->runtime_fd, name, O_RDONLY | O_CLOEXEC);
                assert_true(fd >= 0);
                assert_int_equal(lkg_read_file(fd, SIZE_MAX / 4, &text, &size, NULL), 0);
                lkg_close(fd);
        }
        lkg_publication_free(p);
        return text;
}

static bool has(struct node *n, const char *path, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, path);

        return content && strstr(content, text);
}

static void assert_has(struct node *n, const char *path, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, path);

        if (!content || !strstr(content, text))
                fail_msg("%s: %s\nis without: %s", path, content ? content : "(none)", text);
}

static uint64_t generation(struct node *n)
{
        LKG_CLEANUP(lkg_freep) char *text = view(n, "status/kubelet/generation");

        assert_non_null(text);
        return strtoull(text, NULL, 10);
}

static void turn_until(struct node *n, const char *path, const char *text)
{
        for (unsigned i = 0; i < 500 && !has(n, path, text); i++)
                turn(n, 100);
        assert_has(n, path, text);
}

/* ---- cases ---- */

static void test_first_publication(void **state)
{
        struct node *n = *state;
        struct lkg_publication *p;
        const struct lkg_entry *e;
        struct lkg_message m;

        put_dropin(n, "10-a.conf", "maxPods: 110\n");
        start(n);
        assert_int_equal(lkg_message_recv(n->supervisor[0], &m), 1);
        assert_int_equal(m.type, LKG_MSG_PUBLISHED);
        assert_int_equal(m.number, 1);
        assert_has(n, "kubelet.conf", "maxPods: 110\n");
        assert_has(n, "kubelet.conf", "# Generated by lkgfs");
        assert_has(n, "status/kubelet/condition",
                   "True current is set to the local default, and an init config was provided: using "
                   "current (init)\n");
        assert_has(n, "status/kubelet/active", "init\n");
        assert_has(n, "status/kubelet/origin", "/maxPods\t110\tdrop-in 10-a.conf\t");
        assert_has(n, "layers/kubelet/0001-drop-in-10-a.conf.merged.yaml", "maxPods: 110\n");
        assert_has(n, "history/kubelet/1/meta.json", "\"generation\": 1,");
        assert_has(n, "status/kubelet/metrics.prom", "lkgfs_generation{component=\"kubelet\"} 1\n");
        p = current(n);
        e = lkg_publication_find(p, "kubelet.conf");
        assert_int_equal(e->flags, LKG_ENTRY_VIEW);
        assert_int_equal(e->generation, 1);
        assert_int_equal(lkg_publication_find(p, "status/kubelet/generation")->flags, LKG_ENTRY_POLL);
        assert_int_equal(lkg_publication_find(p, "status/kubelet/generation")->mode, 0444);
        assert_int_equal(lkg_publication_find(p, "status/kubelet/origin")->mode, 0600);
        assert_int_equal(lkg_publication_find(p, "control/kubelet/hold")->mode, 0200);
        lkg_publication_free(p);
        check_blobs(n);
}

static void test_change_is_published_before_the_answer(void **state)
{
        struct node *n = *state;

        start(n);
        for (unsigned i = 1; i <= 20; i++) {
                char body[32], want[32];

                (void)snprintf(body, sizeof(body), "maxPods: %u\n", i);
                (void)snprintf(want, sizeof(want), "maxPods: %u\n", i);
                put_dropin(n, "10-a.conf", body);
                assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
                assert_has(n, "kubelet.conf", want);
        }
        assert_int_equal(generation(n), 21);
        assert_has(n, "status/kubelet/diff", "-maxPods: 19\n+maxPods: 20\n");
        check_blobs(n);
        assert_null(view(n, "history/kubelet/5/kubelet.conf")); /* historyLimit 16: 6 to 21 */
        assert_has(n, "history/kubelet/6/kubelet.conf", "maxPods: 5\n");
}

static void test_same_bytes_are_no_generation(void **state)
{
        struct node *n = *state;

        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 100\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(generation(n), 1);
        assert_has(n, "layers/kubelet/0001-drop-in-10-a.conf.yaml", "maxPods: 100\n");
}

static void test_invalid_change_keeps_the_generation(void **state)
{
        struct node *n = *state;

        start(n);
        put_dropin(n, "10-a.conf", "maxPods: [\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(generation(n), 1);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_has(n, "status/kubelet/condition", "False failed to validate current (init), 1 error");
        assert_has(n, "status/kubelet/findings", "10-a.conf:");
        assert_has(n, "status/kubelet/error", "failed to validate config");
        assert_has(n, "status/kubelet/config.json", "\"rejected\":");
        assert_has(n, "status/kubelet/metrics.prom", "lkgfs_config_error{component=\"kubelet\"} 1\n");
        put_dropin(n, "10-a.conf", "maxPods: 7\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(generation(n), 2);
        assert_has(n, "status/kubelet/condition", "True ");
        assert_has(n, "status/kubelet/metrics.prom", "lkgfs_config_error{component=\"kubelet\"} 0\n");
}

static void test_change_behind_the_mount_is_seen(void **state)
{
        struct node *n = *state;

        start(n);
        put_dropin(n, "20-b.conf", "maxPods: 20\n");
        turn_until(n, "kubelet.conf", "maxPods: 20\n");
        assert_int_equal(unlink(at(n, "source/kubelet.conf.d/20-b.conf")), 0);
        turn_until(n, "kubelet.conf", "maxPods: 100\n");
        assert_int_equal(mkdir(at(n, "source/kubelet.conf.d/sub"), 0755), 0);
        put_dropin(n, "sub/1.conf", "maxPods: 21\n");
        turn_until(n, "kubelet.conf", "maxPods: 21\n");
}

static void test_instance_that_appears_later(void **state)
{
        struct node *n = *state;

        start(n);
        put(n, "source/kubelet-instance.conf", HEADER "maxPods: 33\n");
        turn_until(n, "kubelet.conf", "maxPods: 33\n");
        put(n, "source/kubelet.conf", HEADER "maxPods: 1\nregistryBurst: 9\n");
        turn_until(n, "kubelet.conf", "registryBurst: 9\n");
}

static void test_half_written_file_is_not_published(void **state)
{
        struct node *n = *state;
        int fd;

        start(n);
        fd = open(at(n, "source/kubelet.conf.d/30-c.conf"), O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, HEADER "maxPods: 3", strlen(HEADER) + 10), strlen(HEADER) + 10);
        put_dropin(n, "40-d.conf", "registryBurst: 4\n");
        assert_int_equal(changed(n, "kubelet.conf.d/40-d.conf"), 0);
        assert_has(n, "kubelet.conf", "registryBurst: 4\n");
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_int_equal(write(fd, "0\n", 2), 2);
        assert_int_equal(close(fd), 0);
        turn_until(n, "kubelet.conf", "maxPods: 30\n");
        assert_int_equal(generation(n), 3);
}

static void test_changed_settles_a_file_that_is_still_open(void **state)
{
        struct node *n = *state;
        int fd;

        start(n);
        fd = open(at(n, "source/kubelet.conf.d/30-c.conf"), O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, HEADER "maxPods: 3\n", strlen(HEADER) + 11), strlen(HEADER) + 11);
        assert_int_equal(changed(n, "kubelet.conf.d/30-c.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 3\n");
        assert_int_equal(close(fd), 0);
}

static void test_hold_collects_changes(void **state)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "hold", "on\n"), 0);
        assert_has(n, "status/kubelet/condition",
                   "True held at generation 1 (hold): using current (init)\n");
        put_dropin(n, "10-a.conf", "maxPods: 1\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        put_dropin(n, "20-b.conf", "registryBurst: 2\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/condition", "a newer one waits for hold off");
        put_dropin(n, "30-c.conf", "maxPods: [\n");
        assert_int_equal(changed(n, "kubelet.conf.d/30-c.conf"), 0);
        assert_has(n, "status/kubelet/condition", "False failed to validate");
        assert_int_equal(unlink(at(n, "source/kubelet.conf.d/30-c.conf")), 0);
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_int_equal(generation(n), 2);
        assert_has(n, "kubelet.conf", "maxPods: 1\nregistryBurst: 2\n");
}

static void test_rollback_pins_until_hold_off(void **state)
{
        struct node *n = *state;
        LKG_CLEANUP(lkg_freep) char *first = NULL;
        LKG_CLEANUP(lkg_freep) char *rolled_back = NULL;

        start(n);
        first = view(n, "kubelet.conf");
        put_dropin(n, "10-a.conf", "maxPods: 1\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(command(n, "rollback", "7\n"), -EINVAL);
        assert_has(n, "status/kubelet/last-error", "rollback: no such generation in history\n");
        assert_int_equal(command(n, "rollback", "lkg\n"), -EINVAL);
        assert_int_equal(command(n, "rollback", "1\n2\n"), -EINVAL);
        assert_int_equal(command(n, "rollback", ""), 0);
        assert_int_equal(generation(n), 2);
        assert_int_equal(command(n, "rollback", "1"), 0);
        rolled_back = view(n, "kubelet.conf");
        assert_string_equal(first, rolled_back);
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/condition", "True held at generation 1 (rollback)");
        put_dropin(n, "10-a.conf", "maxPods: 2\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        stop(n, false); /* a pin survives also a death without a word */
        start(n);
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/condition", "held at generation 1 (rollback)");
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 2\n");
        assert_true(generation(n) > 2);
        assert_has(n, "status/kubelet/last-error", "");
}

static void test_try_that_is_not_committed(void **state)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "commit", "now"), -EINVAL);
        assert_int_equal(command(n, "try", "0s"), -EINVAL);
        assert_int_equal(command(n, "try", "soon"), -EINVAL);
        assert_int_equal(command(n, "try", "300ms"), 0);
        assert_int_equal(command(n, "try", "300ms"), -EBUSY);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 5\n");
        assert_has(n, "status/kubelet/condition", "True on try until ");
        turn_until(n, "status/kubelet/condition", "False try expired, held at generation 1");
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/findings", "/maxPods");
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 5\n");
        assert_false(has(n, "status/kubelet/findings", "try"));
}

static void test_try_that_is_committed(void **state)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "try", "1h"), 0);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        stop(n, false);
        start(n);
        assert_has(n, "status/kubelet/condition", "on try until ");
        assert_int_equal(command(n, "commit", "now\n"), 0);
        assert_has(n, "status/kubelet/condition", "True current is set");
        assert_int_equal(command(n, "commit", "now\n"), -EINVAL);
}

static void test_try_that_expires_while_down(void **state)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "try", "1ms"), 0);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        stop(n, true);
        start(n);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_has(n, "status/kubelet/condition", "try expired, held at generation 1");
}

static void test_commands_need_root(void **state)
{
        struct node *n = *state;
        struct lkg_message m;

        start(n);
        lkg_message_init(&m, LKG_MSG_COMMAND);
        m.uid = 1000;
        m.pid = 1;
        m.component = 0;
        (void)strcpy(m.command, "hold");
        (void)strcpy(m.text, "on");
        m.text_size = 2;
        assert_int_equal(ask(n, &m, ++n->ticket), -EACCES);
        m.uid = 0;
        m.pid = 0;
        assert_int_equal(ask(n, &m, ++n->ticket), -EACCES);
        m.pid = 1;
        m.component = 9;
        assert_int_equal(ask(n, &m, ++n->ticket), -EINVAL);
        assert_has(n, "status/kubelet/condition", "True current is set");
}

static void test_repeated_ticket_is_not_carried_out_twice(void **state)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command_with(n, "try", "1h", 77), 0);
        assert_int_equal(command_with(n, "try", "1h", 77), 0);
        assert_int_equal(command_with(n, "try", "1h", 78), -EBUSY);
        assert_int_equal(command_with(n, "try", "1h", 78), -EBUSY);
        stop(n, false); /* the answer was lost with the engine */
        start(n);
        assert_int_equal(command_with(n, "try", "1h", 77), 0);
}

static void test_restart_keeps_the_generation(void **state)
{
        struct node *n = *state;
        struct lkg_publication *p;
        uint64_t number;

        put(n, "source/kubelet.conf",
            HEADER "maxPods: 8\nstaticPodURLHeader: {Authorization: [secret-word]}\n");
        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        p = current(n);
        number = p->number;
        lkg_publication_free(p);
        stop(n, false); /* before anything was written to the history */
        start(n);
        assert_int_equal(generation(n), 2);
        p = current(n);
        assert_true(p->number > number);
        lkg_publication_free(p);
        assert_has(n, "history/kubelet/2/kubelet.conf", "maxPods: 5\n");
        assert_false(has(n, "history/kubelet/2/kubelet.conf", "secret-word"));
        check_blobs(n);
}

static void test_reboot_keeps_the_generation(void **state)
{
        struct node *n = *state;

        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        stop(n, true);
        remove_tree(at(n, "runtime/blobs"));
        assert_int_equal(unlink(at(n, "runtime/current")), 0);
        start(n);
        assert_int_equal(generation(n), 2);
        assert_has(n, "status/kubelet/condition", "True current is set");
        assert_has(n, "status/kubelet/diff", "+maxPods: 5\n");
        assert_has(n, "history/kubelet/1/kubelet.conf", "maxPods: 100\n");
}

static void test_last_good_after_reboot_with_invalid_layers(void **state)
{
        struct node *n = *state;

        start(n);
        stop(n, true);
        remove_tree(at(n, "runtime/blobs"));
        assert_int_equal(unlink(at(n, "runtime/current")), 0);
        put_dropin(n, "10-a.conf", "maxPods: [\n");
        start(n);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_has(n, "status/kubelet/condition", "False failed to validate current (init), 1 error");
        assert_has(n, "status/kubelet/condition", "using last-known-good (init), generation 1\n");
        put_dropin(n, "10-a.conf", "maxPods: 6\n");
        turn_until(n, "status/kubelet/condition", "True ");
        assert_has(n, "kubelet.conf", "maxPods: 6\n");
}

static void test_strict_policy_refuses_last_good(void **state)
{
        struct node *n = *state;
        struct lkg_error err = { 0 };

        start(n);
        stop(n, true);
        remove_tree(at(n, "runtime/blobs"));
        assert_int_equal(unlink(at(n, "runtime/current")), 0);
        put_dropin(n, "10-a.conf", "maxPods: [\n");
        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"
            "components: [{name: kubelet, localPolicy: strict}]\n");
        assert_int_equal(start_with(n, &err), 78);
        assert_non_null(strstr(err.message, "localPolicy is strict"));
}

static void test_engine_that_died_of_a_layer_serves_first(void **state)
{
        struct node *n = *state;
        struct lkg_message m;

        start(n);
        stop(n, true);
        remove_tree(at(n, "runtime/blobs"));
        assert_int_equal(unlink(at(n, "runtime/current")), 0);
        put(n, "runtime/starting", "");
        start(n);
        /* Two publications: the first before any layer was looked at. */
        assert_int_equal(lkg_message_recv(n->supervisor[0], &m), 1);
        assert_int_equal(m.number, 1);
        assert_int_equal(lkg_message_recv(n->supervisor[0], &m), 1);
        assert_int_equal(m.number, 2);
        assert_has(n, "status/kubelet/condition", "True ");
        assert_int_equal(access(at(n, "runtime/starting"), F_OK), -1);
}

static void test_invalid_without_last_good_is_fatal(void **state)
{
        struct node *n = *state;
        struct lkg_error err = { 0 };
        struct lkg_message m;

        put_dropin(n, "10-a.conf", "maxPods: [\n");
        assert_int_equal(start_with(n, &err), 78);
        assert_non_null(strstr(err.message, "10-a.conf:"));
        assert_int_equal(lkg_message_recv(n->supervisor[0], &m), 1);
        assert_int_equal(m.type, LKG_MSG_FATAL);
        assert_int_equal(m.result, 78);
        assert_string_equal(m.text, err.message);
        assert_int_equal(access(at(n, "runtime/current"), F_OK), -1);
}

static void test_kubeconfig_under_the_name_is_fatal_at_first(void **state)
{
        struct node *n = *state;
        struct lkg_error err = { 0 };

        put(n, "source/kubelet.conf",
            "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: t0psecret}}]\n");
        assert_int_equal(start_with(n, &err), 78);
        assert_non_null(strstr(err.message, "file: kubelet-config.yaml"));
        assert_null(strstr(err.message, "t0psecret"));
}

static void test_kubeconfig_that_appears_later_passes_through(void **state)
{
        struct node *n = *state;

        start(n);
        put(n, "source/kubelet.conf",
            "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: t0psecret}}]\n");
        assert_int_equal(changed(n, "kubelet.conf"), 0);
        assert_null(view(n, "kubelet.conf"));
        assert_has(n, "status/kubelet/condition", "False name taken: ");
        assert_has(n, "status/kubelet/generation", "0\n");
        assert_int_equal(command(n, "rollback", "1"), 0);
        assert_null(view(n, "kubelet.conf"));
        put(n, "source/kubelet.conf", HEADER "maxPods: 2\n");
        assert_int_equal(changed(n, "kubelet.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 100\n"); /* the rollback counts again */
}

static void test_no_layer_claims_no_name(void **state)
{
        struct node *n = *state;

        assert_int_equal(unlink(at(n, "source/kubelet.conf")), 0);
        start(n);
        assert_null(view(n, "kubelet.conf"));
        assert_has(n, "status/kubelet/condition", "Unknown no layer found: kubelet.conf is not served\n");
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        turn_until(n, "kubelet.conf", "maxPods: 5\n");
        assert_has(n, "status/kubelet/active", "default\n");
}

/* Until nothing is left to be done after a change. */
static void settle(struct node *n)
{
        uint64_t end = lkg_boottime_ns() + 400 * LKG_NSEC_PER_MSEC;

        while (lkg_boottime_ns() < end)
                turn(n, 50);
}

/* No event tells of a write through a name outside the watched directories; the next change brings it along. */
static void test_silent_change_counts_after_the_next(void **state)
{
        struct node *n = *state;
        char other[PATH_MAX];

        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        put_dropin(n, "20-b.conf", "registryBurst: 1\n");
        start(n);
        settle(n);
        assert_int_equal(command(n, "sync", "now"),
                         0); /* now its identity is old enough to prove something */
        (void)strcpy(other, at(n, "etc/other"));
        assert_int_equal(link(at(n, "source/kubelet.conf.d/10-a.conf"), other), 0);
        put(n, "etc/other", HEADER "maxPods: 6\n");
        put_dropin(n, "20-b.conf", "registryBurst: 2\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        assert_has(n, "kubelet.conf", "registryBurst: 2\n");
        turn_until(n, "kubelet.conf", "maxPods: 6\n");
}

/* The source directory holds much that is no layer. */
static void test_other_entries_cost_nothing(void **state)
{
        struct node *n = *state;
        const struct lkg_stack_stats *stats;
        uint64_t refreshes;

        start(n);
        settle(n);
        stats = lkg_stack_stats(n->engine->components[0].stack);
        refreshes = stats->n_refreshes;
        put(n, "source/admin.conf", "x");
        assert_int_equal(mkdir(at(n, "source/tmp"), 0755), 0);
        assert_int_equal(unlink(at(n, "source/admin.conf")), 0);
        settle(n);
        assert_int_equal(stats->n_refreshes, refreshes);
        put(n, "source/kubelet-instance.conf", HEADER "maxPods: 3\n");
        turn_until(n, "kubelet.conf", "maxPods: 3\n");
}

static void test_fallback_copies(void **state)
{
        struct node *n = *state;
        char value[80];

        assert_int_equal(unlink(at(n, "source/kubelet.conf")), 0);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        start(n);
        stop(n, true);
        assert_int_equal(access(at(n, "source/.lkgfs-fallback/kubelet.conf"), R_OK), 0);
        if (getxattr(at(n, "source/.lkgfs-fallback/kubelet.conf"), LKG_FALLBACK_XATTR, value,
                     sizeof(value)) < 0)
                skip(); /* a file system without user attributes: only this copy */
        assert_int_equal(access(at(n, "source/kubelet.conf"), R_OK), 0);
        put_dropin(n, "10-a.conf", "registryBurst: 5\n");
        start(n); /* the copy is not a base: maxPods is gone */
        assert_has(n, "status/kubelet/active", "default\n");
        assert_false(has(n, "kubelet.conf", "maxPods"));
        settle(n);
        put(n, "source/kubelet.conf", HEADER "maxPods: 9\n"); /* somebody means it */
        turn_until(n, "kubelet.conf", "maxPods: 9\n");
        assert_has(n, "status/kubelet/active", "init\n");
        assert_true(getxattr(at(n, "source/kubelet.conf"), LKG_FALLBACK_XATTR, value, sizeof(value)) < 0);
}

static void test_full_runtime_directory_is_tried_again(void **state)
{
        struct node *n = *state;

        start(n);
        /* A directory in the manifest's place cannot be replaced by a file. */
        assert_int_equal(renameat(n->runtime_fd, "current", n->runtime_fd, "aside"), 0);
        assert_int_equal(mkdirat(n->runtime_fd, "current", 0700), 0);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0); /* answered all the same */
        assert_int_equal(unlinkat(n->runtime_fd, "current", AT_REMOVEDIR), 0);
        assert_int_equal(renameat(n->runtime_fd, "aside", n->runtime_fd, "current"), 0);
        turn_until(n, "kubelet.conf", "maxPods: 5\n");
        assert_has(n, "status/kubelet/condition", "True ");
        check_blobs(n);
}

static void test_many_layers_are_rendered_later(void **state)
{
        struct node *n = *state;

        for (unsigned i = 0; i < 150; i++) {
                char name[32], body[32];

                (void)snprintf(name, sizeof(name), "%03u.conf", i);
                (void)snprintf(body, sizeof(body), "maxPods: %u\n", i);
                put_dropin(n, name, body);
        }
        start(n);
        assert_has(n, "kubelet.conf", "maxPods: 149\n");
        assert_null(view(n, "layers/kubelet/0150-drop-in-149.conf.yaml"));
        turn_until(n, "layers/kubelet/0150-drop-in-149.conf.merged.yaml", "maxPods: 149\n");
        put_dropin(n, "149.conf", "maxPods: 7\n");
        assert_int_equal(changed(n, "kubelet.conf.d/149.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 7\n");
        turn_until(n, "layers/kubelet/0150-drop-in-149.conf.merged.yaml", "maxPods: 7\n");
        check_blobs(n);
}

static void test_old_blobs_go_when_they_are_not_needed(void **state)
{
        struct node *n = *state;
        struct lkg_publication *p, *last;
        struct lkg_message m;
        char name[100];

        start(n);
        put_dropin(n, "10-a.conf", "maxPods: [\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        p = current(n); /* its findings file is named by this publication alone */
        (void)snprintf(name, sizeof(name), "blobs/%s",
                       lkg_publication_find(p, "status/kubelet/findings")->sha256);
        put_dropin(n, "10-a.conf", "maxPods: 4\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(faccessat(n->runtime_fd, name, F_OK, 0), 0); /* somebody may be loading it */
        last = current(n);
        lkg_message_init(&m, LKG_MSG_LOADED);
        m.number = last->number;
        assert_int_equal(lkg_message_send(n->client, &m), 0);
        assert_int_equal(command(n, "sync", "now"), 0);
        assert_int_equal(faccessat(n->runtime_fd, name, F_OK, 0), -1);
        check_blobs(n);
        lkg_publication_free(p);
        lkg_publication_free(last);
}

static void test_reload(void **state)
{
        struct node *n = *state;
        struct lkg_message m;

        start(n);
        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nhistoryLimits: 4\n");
        lkg_message_init(&m, LKG_MSG_RELOAD);
        assert_int_equal(lkg_message_send(n->supervisor[0], &m), 0);
        turn_until(n, "status/kubelet/findings", "config.yaml:3:");
        assert_int_equal(generation(n), 1);
        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nhistoryLimit: 4\nvirtualDir: "
            ".x\n"
            "components:\n- name: kubelet\n  aliases: [kubelet-config.yaml]\n- name: kube-proxy\n  base: "
            "kp.yaml\n");
        put(n, "source/kp.yaml",
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n");
        assert_int_equal(lkg_message_send(n->supervisor[0], &m), 0);
        turn_until(n, "kubelet-config.yaml", "maxPods: 100\n");
        assert_has(n, "kube-proxy.conf", "KubeProxyConfiguration\n");
        assert_has(n, "status/kubelet/findings", "virtualDir: the change takes effect at the next mount");
        assert_int_equal(generation(n), 1);
        put_dropin(n, "10-a.conf", "maxPods: 4\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_true(generation(n) > 2); /* 2 is kube-proxy's: numbers are the node's */
        assert_has(n, "history/kubelet/1/kubelet.conf", "maxPods: 100\n");
}

static void test_reload_never_withdraws_what_was_just_written(void **state)
{
        struct node *n = *state;
        struct lkg_message m;

        start(n);
        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nhistoryLimit: 3\n");
        for (unsigned i = 0; i < 5; i++) {
                put(n, "source/kubelet.conf", HEADER "maxPods: 100\n"); /* a new file, the same content */
                lkg_message_init(&m, LKG_MSG_RELOAD);
                assert_int_equal(lkg_message_send(n->supervisor[0], &m), 0);
                turn(n, 1000);
                assert_has(n, "kubelet.conf", "maxPods: 100\n");
                turn(n, 0);
                assert_int_equal(generation(n), 1);
        }
}

static void test_secrets_stay_in_the_document(void **state)
{
        struct node *n = *state;
        struct lkg_publication *p;

        put(n, "source/kubelet.conf",
            HEADER "staticPodURL: https://user:t0psecret@example.com/\nstaticPodURLHeader: {Authorization: "
                   "[t0psecret]}\n");
        start(n);
        put_dropin(n, "10-a.conf", "maxPods: [t0psecret\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        put_dropin(n, "10-a.conf", "maxPods: 4\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        p = current(n);
        for (size_t i = 0; i < p->n_entries; i++)
                if (p->entries[i].type == LKG_ENTRY_FILE &&
                    strcmp(p->entries[i].path, "kubelet.conf") != 0 &&
                    has(n, p->entries[i].path, "t0psecret"))
                        fail_msg("%s shows a secret", p->entries[i].path);
        lkg_publication_free(p);
        assert_has(n, "kubelet.conf", "t0psecret");
}

static void test_generation_numbers_are_never_used_again(void **state)
{
        struct node *n = *state;

        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 4\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(generation(n), 2);
        stop(n, false);
        remove_tree(at(n, "runtime/blobs")); /* a power cut: nothing of generation 2 is left */
        assert_int_equal(unlink(at(n, "runtime/current")), 0);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        start(n);
        assert_true(generation(n) > 2);
}

static void test_virtual_dir_moves_everything(void **state)
{
        struct node *n = *state;

        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nvirtualDir: .lkgfs\n");
        start(n);
        assert_has(n, "kubelet.conf", "see .lkgfs/status/kubelet/origin.");
        assert_has(n, ".lkgfs/status/kubelet/generation", "1\n");
        assert_null(view(n, "status/kubelet/generation"));
        stop(n, false);
        start(n);
        assert_has(n, ".lkgfs/status/kubelet/generation", "1\n");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(test_first_publication),
                CASE(test_change_is_published_before_the_answer),
                CASE(test_same_bytes_are_no_generation),
                CASE(test_invalid_change_keeps_the_generation),
                CASE(test_change_behind_the_mount_is_seen),
                CASE(test_instance_that_appears_later),
                CASE(test_half_written_file_is_not_published),
                CASE(test_changed_settles_a_file_that_is_still_open),
                CASE(test_hold_collects_changes),
                CASE(test_rollback_pins_until_hold_off),
                CASE(test_try_that_is_not_committed),
                CASE(test_try_that_is_committed),
                CASE(test_try_that_expires_while_down),
                CASE(test_commands_need_root),
                CASE(test_repeated_ticket_is_not_carried_out_twice),
                CASE(test_restart_keeps_the_generation),
                CASE(test_reboot_keeps_the_generation),
                CASE(test_last_good_after_reboot_with_invalid_layers),
                CASE(test_strict_policy_refuses_last_good),
                CASE(test_engine_that_died_of_a_layer_serves_first),
                CASE(test_invalid_without_last_good_is_fatal),
                CASE(test_kubeconfig_under_the_name_is_fatal_at_first),
                CASE(test_kubeconfig_that_appears_later_passes_through),
                CASE(test_no_layer_claims_no_name),
                CASE(test_silent_change_counts_after_the_next),
                CASE(test_other_entries_cost_nothing),
                CASE(test_fallback_copies),
                CASE(test_full_runtime_directory_is_tried_again),
                CASE(test_many_layers_are_rendered_later),
                CASE(test_old_blobs_go_when_they_are_not_needed),
                CASE(test_reload),
                CASE(test_reload_never_withdraws_what_was_just_written),
                CASE(test_secrets_stay_in_the_document),
                CASE(test_generation_numbers_are_never_used_again),
                CASE(test_virtual_dir_moves_everything),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
