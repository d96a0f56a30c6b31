/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the process of a unit started: conclusions from the counter, and queries to a stand-in for systemd.
 */
#include <fcntl.h>

#include <lkg/file.h>
#include <lkg/shared.h>

#include "unit.h"
#include "fake-systemd.h"
#include "fs/supervisor/facts-collect.h"
#include "fs/supervisor/supervisor.h"
#include "tmpdir.h"

/* ---- conclusions ---- */

TEST(test_why)
{
        static const struct {
                struct lkg_unit_last last;
                uint32_t n_restarts;
                enum lkg_start_why want;
        } cases[] = {
                /* nothing known from before */
                { { 0 }, 0, LKG_START_MANUAL },
                { { 0 }, 1, LKG_START_AUTOMATIC },
                { { 0, .ended = true, .result = "success", .sub_state = "auto-restart" },
                  1,
                  LKG_START_AUTOMATIC },
                /* the end was seen */
                { { 7, 1, 0, 0, true, "auto-restart", "exit-code" }, 1, LKG_START_AUTOMATIC },
                { { 7, 1, 4, 0, true, "auto-restart", "signal" }, 5, LKG_START_AUTOMATIC },
                { { 7, 1, 4, 0, true, "auto-restart", "success" }, 5, LKG_START_CLEAN },
                { { 7, 1, 4, 0, true, "auto-restart-queued", "success" }, 5, LKG_START_CLEAN },
                { { 7, 1, 4, 0, true, "stop-post", "success" }, 5, LKG_START_CLEAN },
                /* started by hand before the pause ended: the counter stays */
                { { 7, 1, 4, 0, true, "auto-restart", "exit-code" }, 4, LKG_START_MANUAL },
                /* the same number, but no pause: a start in between was not seen */
                { { 7, 1, 1, 0, true, "dead", "success" }, 1, LKG_START_AUTOMATIC },
                { { 7, 1, 1, 0, false, "", "" }, 1, LKG_START_AUTOMATIC },
                { { 7, 1, 1, 0, true, "auto-restart-queued", "exit-code" }, 1, LKG_START_AUTOMATIC },
                /* the known end is not that of the previous process */
                { { 7, 1, 4, 0, true, "auto-restart", "success" }, 6, LKG_START_AUTOMATIC },
                { { 7, 1, 4, 0, false, "", "" }, 5, LKG_START_AUTOMATIC },
                /* a stop, a reset of the counter */
                { { 7, 1, 4, 0, true, "dead", "success" }, 0, LKG_START_MANUAL },
                { { 7, 1, 4, 0, true, "failed", "exit-code" }, 0, LKG_START_MANUAL },
                { { 7, 1, 4, 0, false, "", "" }, 1, LKG_START_AUTOMATIC },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++)
                if (lkg_start_why(&cases[i].last, cases[i].n_restarts) != cases[i].want)
                        fail_msg("case %zu: %s", i + 1,
                                 lkg_start_why_word(lkg_start_why(&cases[i].last, cases[i].n_restarts)));
}

TEST(test_ends)
{
        static const struct {
                struct lkg_unit_now now;
                bool want;
                const char *sub_state;
        } cases[] = {
                { { 0, 4, "auto-restart", "exit-code" }, true, "auto-restart" },
                { { 0, 5, "auto-restart", "exit-code" }, true, "auto-restart-queued" },
                { { 0, 5, "auto-restart-queued", "exit-code" }, true, "auto-restart-queued" },
                { { 0, 4, "failed", "exit-code" }, true, "failed" },
                { { 0, 4, "stop-sigterm", "exit-code" }, true, "stop-sigterm" },
                { { 0, 5, "start-pre", "success" }, false, "" }, /* the result belongs to no process now */
                { { 0, 5, "start", "success" }, false, "" },
                { { 0, 5, "running", "success" }, false, "" },
                { { 8, 4, "stop-sigterm", "success" }, false, "" }, /* it has not ended yet */
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_unit_last last = { .pid = 7, .start_time = 1, .n_restarts = 4 };

                if (lkg_unit_ended(&last, &cases[i].now) != cases[i].want || last.ended != cases[i].want ||
                    strcmp(last.sub_state, cases[i].sub_state) != 0)
                        fail_msg("case %zu: %s", i + 1, last.sub_state);
                if (last.ended)
                        assert_string_equal(last.result, cases[i].now.result);
                last = (struct lkg_unit_last){ 0 };
                assert_false(lkg_unit_ended(&last, &cases[i].now)); /* of which unit? */
        }
}

TEST(test_what_is_remembered)
{
        static const struct {
                const char *text;
                bool want;
        } cases[] = {
                { "17 99 3 automatic auto-restart exit-code\n", true },
                { "17 99 0 manual running -\n", true },
                { "17 99 1 clean dead success\n", true },
                { "", false },
                { "17 99 3 automatic auto-restart", false },
                { "17 99 3 why auto-restart exit-code\n", false },
                { "0 99 3 manual running -\n", false },
                { "-1 99 3 manual running -\n", false },
                { "x 99 3 manual running -\n", false },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_buf buf = LKG_BUF_INIT;
                struct lkg_unit_last last;

                if (lkg_unit_last_parse(cases[i].text, &last) != cases[i].want)
                        fail_msg("%s", cases[i].text);
                if (!cases[i].want)
                        continue;
                lkg_unit_last_format(&last, &buf);
                assert_string_equal(buf.data, cases[i].text);
                lkg_buf_deinit(&buf);
        }
}

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
