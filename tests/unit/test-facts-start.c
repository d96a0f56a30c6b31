/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the process of a unit started: conclusions from the counter (rows/starts.rows), and queries to a stand-in for systemd.
 */
#include <fcntl.h>

#include <lkg/file.h>
#include <lkg/shared.h>

#include "rows.h"
#include "fake-systemd.h"
#include "fs/supervisor/facts-collect.h"
#include "fs/supervisor/supervisor.h"
#include "tmpdir.h"

/* ---- conclusions ---- */

/* A word; `-` is none. */
static void take(const char *word, char ret[static LKG_UNIT_WORD_MAX])
{
        (void)snprintf(ret, LKG_UNIT_WORD_MAX, "%s", *word == '-' ? "" : word);
}

static void say_why(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_unit_last last = { .pid = atoi(q->parts[1]),
                                      .start_time = *q->parts[1] != '-',
                                      .n_restarts = (uint32_t)strtoul(q->parts[2], NULL, 10),
                                      .ended = *q->parts[3] != '-' };

        take(q->parts[3], last.sub_state);
        take(q->parts[4], last.result);
        lkg_buf_puts(ret,
                     lkg_start_why_word(lkg_start_why(&last, (uint32_t)strtoul(q->parts[0], NULL, 10))));
}

static void say_end(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_unit_last last = { .pid = 7, .start_time = 1, .n_restarts = 4 }, none = { 0 };
        struct lkg_unit_now now = { .main_pid = (uint32_t)strtoul(q->parts[0], NULL, 10),
                                    .n_restarts = (uint32_t)strtoul(q->parts[1], NULL, 10) };

        take(q->parts[2], now.sub_state);
        take(q->parts[3], now.result);
        if (lkg_unit_ended(&last, &now))
                lkg_buf_printf(ret, "%s %s", last.sub_state, last.result);
        assert_int_equal(last.ended, ret->size > 0);
        assert_int_equal(last.ended, *last.sub_state != '\0');
        assert_false(lkg_unit_ended(&none, &now)); /* of which unit? */
}

static void say_remembered(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_unit_last last;

        if (lkg_unit_last_parse(q->text, &last)) {
                lkg_unit_last_format(&last, ret);
                assert_string_equal(ret->data, q->text);
        } else
                lkg_buf_puts(ret, "refused");
}

static const struct operation operations[] = {
        { "why", say_why, 5 }, { "ends", say_end, 4 }, { "remembered", say_remembered, 0 }, { 0 }
};

ROWS(starts, operations)

/* ---- asking ---- */

struct place {
        char top[TMPDIR_MAX];
        int fd; /* of top: the runtime directory */
        struct fake_systemd fake;
        struct lkg_settings_component components[3];
        pid_t children[2]; /* main processes that run */
};

static char *const no_exes[] = { NULL };

static int setup(void **state)
{
        static const char *const names[][2] = { { "kubelet", "kubelet.service" },
                                                { "none", "" },
                                                { "x", "x.service" } };
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        p->fd = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        for (size_t i = 0; i < 3; i++)
                p->components[i] = (struct lkg_settings_component){ .name = (char *)(uintptr_t)names[i][0],
                                                                    .unit = (char *)(uintptr_t)names[i][1],
                                                                    .exes = (char **)(uintptr_t)no_exes };
        for (size_t i = 0; i < 2; i++) {
                p->children[i] = fork();
                if (p->children[i] == 0) {
                        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
                        while (true)
                                (void)pause();
                }
                assert_true(p->children[i] > 0);
        }
        assert_int_equal(fake_systemd_start(&p->fake, p->top), 0);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        for (size_t i = 0; i < 2; i++) {
                (void)kill(p->children[i], SIGKILL);
                (void)waitpid(p->children[i], NULL, 0);
        }
        fake_systemd_stop(&p->fake);
        lkg_close(p->fd);
        assert_int_equal(tmpdir_remove(p->top), 0);
        free(p);
        return 0;
}

static void set(struct place *p, pid_t main_pid, uint32_t n_restarts, const char *sub_state,
                const char *result)
{
        struct fake_unit *unit = p->fake.unit;

        unit->main_pid = (uint32_t)main_pid;
        unit->n_restarts = n_restarts;
        (void)snprintf(unit->sub_state, sizeof(unit->sub_state), "%s", sub_state);
        (void)snprintf(unit->result, sizeof(unit->result), "%s", result);
}

/* Caller frees; NULL: it does not exist. */
static char *fact(const struct place *p, const char *path)
{
        int fd = openat(p->fd, path, O_RDONLY | O_CLOEXEC);
        char *text = NULL;

        if (fd < 0)
                return NULL;
        assert_int_equal(lkg_read_file(fd, 1000, &text, NULL, NULL), 0);
        lkg_close(fd);
        return text;
}

/* @why NULL: no answer. */
static void check_start(struct place *p, pid_t pid, const char *why)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        char want[100];

        lkg_starts_collect(p->fd, p->components, 3);
        text = fact(p, "facts/kubelet/start");
        if (!why) {
                assert_null(text);
                return;
        }
        (void)snprintf(want, sizeof(want), "%d %llu %s\n", pid,
                       (unsigned long long)lkg_process_start_time(pid), why);
        assert_non_null(text);
        assert_string_equal(text, want);
}

TEST_WITH(test_a_crash_loop_is_automatic, setup, teardown)
{
        struct place *p = *state;

        set(p, p->children[0], 0, "running", "success");
        check_start(p, p->children[0], "manual");
        set(p, 0, 0, "auto-restart", "exit-code");
        check_start(p, p->children[0], "manual"); /* still true of that process */
        set(p, p->children[1], 1, "running", "success");
        check_start(p, p->children[1], "automatic");
        check_start(p, p->children[1], "automatic"); /* asked again, nothing changes */
        assert_null(fact(p, "facts/none/start"));
        assert_null(fact(p, "facts/x/start")); /* a unit that is not loaded */
}

TEST_WITH(test_an_end_that_was_a_success_is_clean, setup, teardown)
{
        struct place *p = *state;

        set(p, p->children[0], 3, "running", "success");
        check_start(p, p->children[0], "automatic");
        set(p, 0, 3, "auto-restart", "success");
        check_start(p, p->children[0], "automatic");
        set(p, 0, 4, "start-pre", "success");
        check_start(p, p->children[0], "automatic");
        set(p, p->children[1], 4, "running", "success");
        check_start(p, p->children[1], "clean");
}

TEST_WITH(test_an_operator_who_does_not_wait_for_the_pause, setup, teardown)
{
        struct place *p = *state;

        set(p, p->children[0], 3, "running", "success");
        check_start(p, p->children[0], "automatic");
        set(p, 0, 3, "auto-restart", "exit-code");
        check_start(p, p->children[0], "automatic");
        set(p, p->children[1], 3, "running", "success");
        check_start(p, p->children[1], "manual");
}

TEST_WITH(test_the_answer_survives_that_nobody_answered_once, setup, teardown)
{
        struct place *p = *state;

        set(p, p->children[0], 1, "running", "success");
        check_start(p, p->children[0], "automatic");
        lkg_starts_unknown(p->fd, p->components, 3);
        assert_null(fact(p, "facts/kubelet/start"));
        check_start(p, p->children[0], "automatic"); /* not judged by its own counter */
}

TEST_WITH(test_no_answer_removes_what_was_known, setup, teardown)
{
        struct place *p = *state;
        struct lkg_unit_now now;
        sd_bus *bus;

        set(p, p->children[0], 1, "running", "success");
        check_start(p, p->children[0], "automatic");
        set(p, p->children[0], 1, "running", ""); /* no NRestarts: not a service of a systemd that we know */
        check_start(p, 0, NULL);
        set(p, p->children[0], 1, "running", "success");
        check_start(p, p->children[0], "automatic");
        bus = lkg_facts_bus();
        assert_non_null(bus);
        assert_int_equal(lkg_unit_now_query(bus, "x.service", &now), -ENOENT);
        (void)sd_bus_set_method_call_timeout(bus, 20000);
        p->fake.unit->silent = true;
        assert_int_equal(lkg_unit_now_query(bus, "kubelet.service", &now), -ETIMEDOUT);
        sd_bus_close_unref(bus);
        assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/lkgfs", 1), 0);
        lkg_starts_collect(p->fd, p->components, 3);
        assert_null(fact(p, "facts/kubelet/start"));
}

/* Run until the file exists, or does not. */
static void run_until(const struct place *p, sd_event *event, bool there)
{
        uint64_t end_ns = lkg_boottime_ns() + 20 * LKG_NSEC_PER_SEC;

        while ((faccessat(p->fd, "facts/kubelet/start", F_OK, 0) == 0) != there) {
                assert_true(lkg_boottime_ns() < end_ns);
                assert_true(sd_event_run(event, 100000) >= 0);
        }
}

/* The loop sends its query and does not wait for a bus that hangs. */
TEST_WITH(test_a_bus_that_hangs_is_in_nobodys_way, setup, teardown)
{
        struct place *p = *state;
        struct lkg_supervisor *s = calloc(1, sizeof(*s));
        struct lkg_settings settings = { .components = p->components, .n_components = 3 };

        assert_non_null(s);
        assert_true(sd_event_new(&s->event) >= 0);
        s->settings = &settings;
        s->phase = LKG_PHASE_RUNNING;
        s->dirs.runtime = lkg_lift_fd(open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        set(p, p->children[0], 2, "running", "success");
        lkg_facts_refresh(s);
        lkg_facts_refresh(s); /* meanwhile: once more afterwards */
        run_until(p, s->event, true);
        p->fake.unit->silent = true;
        lkg_facts_refresh(s);
        run_until(p, s->event, false);
        p->fake.unit->silent = false;
        lkg_facts_refresh(s);
        run_until(p, s->event, true);
        lkg_facts_cancel(s);
        lkg_facts_cancel(s);
        sd_event_unref(s->event);
        lkg_close(s->dirs.runtime);
        free(s);
}

TEST_WITH(test_a_process_that_is_gone_is_not_recorded, setup, teardown)
{
        struct place *p = *state;
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        set(p, pid, 1, "running", "success");
        check_start(p, 0, NULL);
}
