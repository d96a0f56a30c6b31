/* SPDX-License-Identifier: Apache-2.0 */
/* Real restarts of components: programs, a stand-in for systemd, the loop, the files that others read. */
#include <fcntl.h>
#include <poll.h>

#include <lkg/text.h>
#include <lkg/messages.h>
#include <lkg/file.h>

#include "unit.h"
#include "fake-systemd.h"
#include "fs/supervisor/consumer.h"
#include "fs/supervisor/supervisor.h"
#include "tmpdir.h"

#define LIMIT_NS (20 * LKG_NSEC_PER_SEC) /* longer than even a slow machine needs */

struct place {
        char top[TMPDIR_MAX], hook[100];
        int fd; /* of top: the runtime directory */
        struct fake_systemd fake;
        sd_event *event;
        char *argv[3];
        struct lkg_settings_component component;
        struct lkg_settings settings;
        struct lkg_consumer *consumer;
};

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        (void)snprintf(p->hook, sizeof(p->hook), "%s/hook", p->top);
        p->fd = lkg_lift_fd(open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        assert_true(p->fd >= 0);
        p->argv[0] = p->hook;
        p->argv[1] = (char *)(uintptr_t) "an argument";
        p->component =
                (struct lkg_settings_component){ .name = (char *)(uintptr_t) "kubelet",
                                                 .unit = (char *)(uintptr_t) "kubelet.service",
                                                 .restart = LKG_SETTINGS_RESTART_HOOK,
                                                 .restart_unit = (char *)(uintptr_t) "kubelet.service",
                                                 .restart_argv = p->argv,
                                                 .n_restart_argv = 2,
                                                 .restart_max_per_hour = 100 };
        p->settings = (struct lkg_settings){ .components = &p->component,
                                             .n_components = 1,
                                             .node_name = (char *)(uintptr_t) "" };
        assert_int_equal(fake_systemd_start(&p->fake, p->top), 0);
        assert_true(sd_event_new(&p->event) >= 0);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        lkg_consumer_free(p->consumer);
        sd_event_unref(p->event);
        fake_systemd_stop(&p->fake);
        lkg_close(p->fd);
        assert_int_equal(tmpdir_remove(p->top), 0);
        free(p);
        return 0;
}

static void put_hook(const struct place *p, const char *script, mode_t mode)
{
        int fd = open(p->hook, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

        assert_true(fd >= 0);
        assert_int_equal(lkg_write_all(fd, script, strlen(script)), 0);
        assert_int_equal(fchmod(fd, mode), 0);
        assert_int_equal(close(fd), 0);
}

/* Caller frees; "" if there is none. */
static char *text_of(const struct place *p, const char *path)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(p->fd, path, O_RDONLY | O_CLOEXEC);
        char *text = NULL;

        if (fd < 0)
                return strdup("");
        assert_int_equal(lkg_read_file(fd, 100000, &text, NULL, NULL), 0);
        return text;
}

/* ---- one program ---- */

static void check_hook(struct place *p, bool want, const char *report)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        if (lkg_restart_hook(&p->component, 12, LIMIT_NS, &buf) != want || strcmp(buf.data, report) != 0)
                fail_msg("reported: %s", buf.data);
        lkg_buf_deinit(&buf);
}

TEST_WITH(test_what_a_hook_gets, setup, teardown)
{
        struct place *p = *state;

        assert_int_equal(setenv("LKGFS_TEST_LEAK", "1", 1), 0);
        put_hook(p,
                 "#!/bin/sh\necho \"$1,$#\" $LKGFS_COMPONENT $LKGFS_GENERATION $LKGFS_TEST_LEAK; pwd\n"
                 "echo $PATH >&2; cat\n"
                 "for n in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$n ] && echo $n; done; exit 0\n",
                 0755);
        check_hook(p, true,
                   "\nan argument,1 kubelet 12\n/\n"
                   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
        assert_int_equal(unsetenv("LKGFS_TEST_LEAK"), 0);
}

TEST_WITH(test_how_a_hook_ends, setup, teardown)
{
        static const struct {
                const char *script;
                bool want;
                const char *report;
        } cases[] = {
                { "#!/bin/sh\n", true, "\n" },
                { "#!/bin/sh\necho no; exit 3\n", false, "exit status 3\nno\n" },
                { "#!/bin/sh\nkill -9 $$\n", false, "it was killed by signal 9\n" },
                { "#!/nonexistent/interpreter\n", false, NULL },
                { "#!/bin/sh\nprintf 'a\\033[1m\\tb\\177\\n\\nc'\n", true, "\na?[1m?b?\n\nc\n" },
                /* a remaining process of the program does not block us */
                { "#!/bin/sh\nsleep 60 & echo $!\n", true, NULL },
        };
        struct place *p = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_buf buf = LKG_BUF_INIT;

                put_hook(p, cases[i].script, 0755);
                if (lkg_restart_hook(&p->component, 12, LIMIT_NS, &buf) != cases[i].want ||
                    (cases[i].report && strcmp(buf.data, cases[i].report) != 0))
                        fail_msg("%s: %s", cases[i].script, buf.data);
                if (strstr(cases[i].script, "sleep"))
                        assert_int_equal(kill((pid_t)strtol(buf.data + 1, NULL, 10), SIGKILL), 0);
                lkg_buf_deinit(&buf);
        }
}

TEST_WITH(test_a_hook_that_does_not_end_is_killed_with_its_children, setup, teardown)
{
        struct place *p = *state;
        struct lkg_buf buf = LKG_BUF_INIT;
        char fifo[100], script[200];
        struct pollfd held;

        (void)snprintf(fifo, sizeof(fifo), "%s/fifo", p->top);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        held = (struct pollfd){ .fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC), .events = POLLIN };
        assert_true(held.fd >= 0);
        (void)snprintf(script, sizeof(script), "#!/bin/sh\nexec 9>%s\nsleep 600 &\necho began\nwait\n",
                       fifo);
        put_hook(p, script, 0755);
        for (uint64_t limit_ns = LKG_NSEC_PER_SEC; !buf.data || !strstr(buf.data, "began"); limit_ns *= 2) {
                lkg_buf_reset(&buf);
                assert_false(lkg_restart_hook(&p->component, 12, limit_ns, &buf));
                assert_non_null(strstr(buf.data, " s and was killed\n"));
        }
        assert_int_equal(poll(&held, 1, (int)(LIMIT_NS / LKG_NSEC_PER_MSEC)), 1);
        assert_true(held.revents & POLLHUP); /* not held any more */
        lkg_close(held.fd);
        lkg_buf_deinit(&buf);
}

TEST_WITH(test_too_much_output_is_cut, setup, teardown)
{
        struct place *p = *state;
        struct lkg_buf buf = LKG_BUF_INIT;
        unsigned n = 0;

        put_hook(p, "#!/bin/sh\ni=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done\n", 0755);
        assert_true(lkg_restart_hook(&p->component, 12, LIMIT_NS, &buf));
        assert_true(buf.size <= LKG_RESTART_REPORT_MAX);
        for (const char *line = buf.data; (line = strchr(line, '\n')); line++)
                n++;
        assert_int_equal(n, 1 + LKG_RESTART_OUTPUT_LINES + 1);
        assert_non_null(strstr(buf.data, "\n(more output left out)\n"));
        lkg_buf_deinit(&buf);
        put_hook(p, "#!/bin/sh\nprintf '%500s' x\n", 0755);
        assert_true(lkg_restart_hook(&p->component, 12, LIMIT_NS, &buf));
        assert_int_equal(buf.size, 1 + LKG_RESTART_LINE_MAX + 1);
        lkg_buf_deinit(&buf);
}

TEST_WITH(test_only_what_nobody_else_can_change_is_run, setup, teardown)
{
        struct place *p = *state;
        char link[120], report[600], inner[150];

        put_hook(p, "#!/bin/sh\n", 0775);
        (void)snprintf(report, sizeof(report), "%s is not owned by root or is writable by others.\n",
                       p->hook);
        check_hook(p, false, report);
        put_hook(p, "#!/bin/sh\n", 0644);
        (void)snprintf(report, sizeof(report), "%s is not executable.\n", p->hook);
        check_hook(p, false, report);
        put_hook(p, "#!/bin/sh\n", 0755);
        check_hook(p, true, "\n");
        assert_int_equal(chmod(p->top, 0777), 0); /* a directory on the path */
        (void)snprintf(report, sizeof(report),
                       "%s: the way leads through a directory that is not owned by root or is writable by "
                       "others: %s (user %u, mode 0777).\n",
                       p->hook, p->top, (unsigned)getuid());
        check_hook(p, false, report);
        /* ... also behind a link that is itself acceptable */
        (void)snprintf(link, sizeof(link), "%s/d", p->top);
        assert_int_equal(mkdir(link, 0755), 0);
        (void)snprintf(inner, sizeof(inner), "%s/link", link);
        assert_int_equal(symlink(p->hook, inner), 0);
        assert_int_equal(chmod(p->top, 0755), 0);
        p->argv[0] = inner;
        check_hook(p, true, "\n");
        assert_int_equal(chmod(link, 0777), 0);
        (void)snprintf(report, sizeof(report),
                       "%s: the way leads through a directory that is not owned by root or is writable by "
                       "others: %s (user %u, mode 0777).\n",
                       inner, link, (unsigned)getuid());
        check_hook(p, false, report);
        p->argv[0] = p->top;
        assert_int_equal(chmod(p->top, 0755), 0);
        (void)snprintf(report, sizeof(report), "%s is a directory; a regular file is wanted.\n", p->top);
        check_hook(p, false, report);
        p->argv[0] = (char *)(uintptr_t) "hook";
        check_hook(p, false, "hook is not an absolute path.\n");
        p->component.n_restart_argv = 0;
        check_hook(p, false, "no program is configured\n");
}

/* ---- the service manager ---- */

static void check_unit(const char *unit, uint64_t limit_ns, bool want, const char *reason)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        if (lkg_restart_unit(unit, limit_ns, &buf) != want || strcmp(buf.data, reason) != 0)
                fail_msg("reported: %s", buf.data);
        lkg_buf_deinit(&buf);
}

TEST_WITH(test_restart_of_a_unit, setup, teardown)
{
        struct place *p = *state;
        char *job = p->fake.unit->job_result;

        check_unit("kubelet.service", LIMIT_NS, true, "\n");
        assert_int_equal(p->fake.unit->n_restarted, 1);
        check_unit("other.service", LIMIT_NS, false, "other.service: Unit other.service not loaded.\n");
        strcpy(job, "failed");
        check_unit("kubelet.service", LIMIT_NS, false, "kubelet.service: the job ended with 'failed'\n");
        job[0] = '\0'; /* a job that takes longer continues and is not requested again */
        check_unit("kubelet.service", 20 * LKG_NSEC_PER_MSEC, true, "\n");
        assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/lkgfs", 1), 0);
        {
                struct lkg_buf buf = LKG_BUF_INIT;

                assert_false(lkg_restart_unit("kubelet.service", LIMIT_NS, &buf));
                lkg_buf_deinit(&buf);
        }
        assert_int_equal(p->fake.unit->n_restarted, 3);
}

/* ---- the loop ---- */

static void start(struct place *p)
{
        p->consumer = lkg_consumer_new(p->event, p->fd, &p->settings);
        assert_non_null(p->consumer);
        lkg_consumer_enable(p->consumer);
}

/* Runs the loop until @text is in the file. */
static void await(struct place *p, const char *path, const char *text)
{
        uint64_t end_ns = lkg_boottime_ns() + LIMIT_NS;

        while (true) {
                LKG_CLEANUP(lkg_freep) char *now = text_of(p, path);

                if (strstr(now, text))
                        return;
                if (lkg_boottime_ns() > end_ns)
                        fail_msg("%s: %s", path, now);
                assert_true(sd_event_run(p->event, 100000) >= 0);
        }
}

static unsigned n_lines(const struct place *p, const char *path)
{
        LKG_CLEANUP(lkg_freep) char *text = text_of(p, path);
        unsigned n = 0;

        for (const char *c = text; *c; c++)
                n += *c == '\n';
        return n;
}

TEST_WITH(test_a_restart_leaves_its_traces, setup, teardown)
{
        struct place *p = *state;
        char script[400], boot[LKG_BOOT_ID_MAX], when[64];
        LKG_CLEANUP(lkg_freep) char *restarted = NULL;
        LKG_CLEANUP(lkg_freep) char *during = NULL;

        put_hook(p, "", 0755);
        (void)snprintf(script, sizeof(script),
                       "#!/bin/sh\ncat %s/facts/kubelet/restarted > %s/during; echo $LKGFS_GENERATION >> "
                       "%s/count\n",
                       p->top, p->top, p->top);
        put_hook(p, script, 0755);
        start(p);
        lkg_consumer_request(p->consumer, 0, 11, false);
        lkg_consumer_request(p->consumer, 0, 12, false); /* the newest wins, once */
        lkg_consumer_request(p->consumer, 1, 99, false); /* a component without restarts */
        await(p, "facts/kubelet/restarts", "done");
        restarted = text_of(p, "facts/kubelet/restarted");
        during = text_of(p, "during");
        lkg_boot_id(boot);
        (void)snprintf(when, sizeof(when), " %s 12 done\n", boot);
        assert_string_equal(strchr(restarted, ' '), when);
        (void)snprintf(when, sizeof(when), " %s 12 asked\n", boot);
        assert_string_equal(strchr(during, ' '), when); /* it was there before */
        assert_int_equal(strtoull(restarted, NULL, 10), strtoull(during, NULL, 10));
        assert_int_equal(n_lines(p, "count"), 1);
        await(p, "facts/kubelet/restarts", "Z hook 12 done\n");
        assert_int_equal(n_lines(p, "facts/kubelet/restarts"), 1);
}

TEST_WITH(test_a_restart_of_the_unit, setup, teardown)
{
        struct place *p = *state;

        p->component.restart = LKG_SETTINGS_RESTART_UNIT;
        start(p);
        lkg_consumer_request(p->consumer, 0, 3, false);
        await(p, "facts/kubelet/restarts", "Z unit 3 done\n");
        assert_int_equal(p->fake.unit->n_restarted, 1);
}

/* The engine's message arrives here. */
TEST_WITH(test_the_message_of_the_engine, setup, teardown)
{
        struct place *p = *state;
        static struct lkg_shared shared;
        struct lkg_supervisor *s = calloc(1, sizeof(*s));
        struct lkg_child *child;
        struct lkg_message message;
        int pair[2];

        assert_non_null(s);
        put_hook(p, "#!/bin/sh\n", 0755);
        p->settings.node_name = (char *)(uintptr_t) "node-1";
        p->settings.restart_jitter_ms = UINT32_MAX;
        start(p);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        child = &s->children[LKG_CHILD_ENGINE];
        child->channel = pair[0];
        s->consumer = p->consumer;
        s->connection.shared = &shared;
        lkg_message_init(&message, LKG_MSG_RESTART);
        message.component = 0;
        message.number = 8;
        message.result = 1; /* a remote change: not now */
        assert_int_equal(lkg_message_send(pair[1], &message), 0);
        lkg_engine_row.input(s, child);
        assert_int_equal(sd_event_run(p->event, 0), 0);
        await(p, "facts/kubelet/restart-plan", "planned_generation=8\n");
        message.result = 0;
        message.number = 9;
        assert_int_equal(lkg_message_send(pair[1], &message), 0);
        lkg_engine_row.input(s, child);
        await(p, "facts/kubelet/restarts", "hook 9 done");
        s->consumer = NULL; /* about to end */
        assert_int_equal(lkg_message_send(pair[1], &message), 0);
        lkg_engine_row.input(s, child);
        lkg_close(pair[0]);
        lkg_close(pair[1]);
        free(s);
}

TEST_WITH(test_a_failure_is_tried_again_and_given_up, setup, teardown)
{
        struct place *p = *state;

        put_hook(p, "#!/bin/sh\nexit 1\n", 0755);
        start(p);
        lkg_consumer_request(p->consumer, 0, 5, false);
        while (n_lines(p, "facts/kubelet/restarts") < 4)
                assert_true(sd_event_run(p->event, LIMIT_NS / 1000) > 0);
        await(p, "facts/kubelet/restarted", " 5 failed: exit status 1\n");
        assert_int_equal(sd_event_run(p->event, 0), 0); /* nothing is due any more */
        assert_int_equal(n_lines(p, "facts/kubelet/restarts"), 4);
}

TEST_WITH(test_never, setup, teardown)
{
        struct place *p = *state;

        p->component.restart = LKG_SETTINGS_RESTART_NEVER;
        start(p);
        lkg_consumer_request(p->consumer, 0, 5, false);
        assert_int_equal(sd_event_run(p->event, 0), 0);
        assert_int_equal(faccessat(p->fd, "facts/kubelet/restart-plan", F_OK, 0), -1);
        assert_int_equal(faccessat(p->fd, "facts/kubelet/restarted", F_OK, 0), -1);
}

TEST_WITH(test_a_remote_change_waits_for_this_nodes_turn, setup, teardown)
{
        struct place *p = *state;

        put_hook(p, "#!/bin/sh\n", 0755);
        p->settings.node_name = (char *)(uintptr_t) "node-1";
        p->settings.restart_jitter_ms = UINT32_MAX; /* this node's part of it is weeks */
        start(p);
        lkg_consumer_request(p->consumer, 0, 5, true);
        assert_int_equal(sd_event_run(p->event, 0), 0);
        await(p, "facts/kubelet/restart-plan", "planned_generation=5\n");
        /* A successor still waits, but not once a local change arrives. */
        p->consumer = lkg_consumer_free(p->consumer);
        start(p);
        await(p, "facts/kubelet/restart-plan", "planned_generation=5\n");
        assert_int_equal(sd_event_run(p->event, 0), 0);
        lkg_consumer_request(p->consumer, 0, 6, false);
        await(p, "facts/kubelet/restarts", "hook 6 done");
        /* The change is taken back. */
        p->component.restart_max_per_hour = 1;
        lkg_consumer_request(p->consumer, 0, 7, true);
        lkg_consumer_request(p->consumer, 0, 0, true);
        {
                LKG_CLEANUP(lkg_freep) char *plan = text_of(p, "facts/kubelet/restart-plan");

                assert_null(strstr(plan, "planned_generation"));
                assert_non_null(strstr(plan, "asked_ns="));
        }
}

TEST_WITH(test_a_successor_asks_again_for_what_was_interrupted, setup, teardown)
{
        struct place *p = *state;

        put_hook(p, "#!/bin/sh\nwhile :; do sleep 60; done\n", 0755);
        start(p);
        lkg_consumer_request(p->consumer, 0, 5, false);
        await(p, "facts/kubelet/restart-plan", "running_generation=5\n");
        p->consumer = lkg_consumer_free(p->consumer); /* and what it had started */
        put_hook(p, "#!/bin/sh\n", 0755);
        start(p);
        await(p, "facts/kubelet/restarts", "hook 5 done");
        assert_int_equal(n_lines(p, "facts/kubelet/restarts"), 1);
}

TEST_WITH(test_a_reload_keeps_plans_by_name, setup, teardown)
{
        struct place *p = *state;
        struct lkg_settings_component two[2] = { p->component, p->component };
        struct lkg_settings other = p->settings;

        put_hook(p, "#!/bin/sh\n", 0755);
        p->settings.restart_jitter_ms = UINT32_MAX;
        p->settings.node_name = (char *)(uintptr_t) "node-1";
        start(p);
        lkg_consumer_request(p->consumer, 0, 5, true);
        two[0].name = (char *)(uintptr_t) "kube-proxy";
        other.components = two;
        other.n_components = 2;
        lkg_consumer_configure(p->consumer, &other);
        await(p, "facts/kubelet/restart-plan", "planned_generation=5\n");
        lkg_consumer_request(p->consumer, 1, 6, false);
        await(p, "facts/kubelet/restarts", "hook 6 done");
        assert_int_equal(faccessat(p->fd, "facts/kube-proxy/restarts", F_OK, 0), -1);
        two[1].restart = LKG_SETTINGS_RESTART_NEVER;
        lkg_consumer_configure(p->consumer, &other);
        assert_int_equal(faccessat(p->fd, "facts/kubelet/restart-plan", F_OK, 0), -1);
        lkg_consumer_request(p->consumer, 1, 7, false);
        assert_int_equal(sd_event_run(p->event, 0), 0);
        p->consumer = lkg_consumer_free(p->consumer); /* before `two` goes out of scope */
}
