/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/wait.h>

#include "unit.h"
#include "../../fs/supervisor/supervisor.h"

#define LIMIT_NS (30 * LKG_NSEC_PER_SEC) /* for tests that do not reach it */
#define SOON_NS  (20 * LKG_NSEC_PER_MSEC)

struct heard {
        unsigned n;
        int status;
};

static void on_done(void *userdata, int status)
{
        struct heard *heard = userdata;

        heard->n++;
        heard->status = status;
}

static int answer(void *userdata)
{
        (void)userdata;
        return 7;
}

static int hang(void *userdata)
{
        (void)userdata;
        for (;;)
                (void)pause();
        return 0;
}

static sd_event *loop(void)
{
        sd_event *event = NULL;

        assert_true(sd_event_new(&event) >= 0);
        return event;
}

static void turn(sd_event *event)
{
        assert_true(sd_event_run(event, (uint64_t)LIMIT_NS / 1000) > 0);
}

static bool has_children(void)
{
        siginfo_t info = { 0 };

        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

TEST(test_its_end)
{
        struct heard heard = { 0 };
        const struct lkg_helper_work work = {
                .run = answer, .done = on_done, .userdata = &heard, .limit_ns = LIMIT_NS
        };
        struct lkg_helper helper = { 0 };
        sd_event *event = loop();

        assert_int_equal(lkg_helper_start(&helper, event, &work), 0);
        assert_int_equal(lkg_helper_start(&helper, event, &work), -EBUSY);
        while (heard.n == 0)
                turn(event);
        assert_int_equal(heard.status, 7);
        assert_false(lkg_helper_running(&helper));
        assert_false(has_children());
        sd_event_unref(event);
}

/* With any patience: @done is called once, and no zombie remains. */
TEST(test_the_limit)
{
        for (int impatient = 0; impatient < 2; impatient++) {
                struct heard heard = { 0 };
                const struct lkg_helper_work work = { .run = hang,
                                                      .done = on_done,
                                                      .userdata = &heard,
                                                      .limit_ns = SOON_NS,
                                                      .flags = impatient ? LKG_JOB_OUTLIVES_US : 0,
                                                      .impatient = impatient };
                struct lkg_helper helper = { 0 };
                sd_event *event = loop();

                assert_int_equal(lkg_helper_start(&helper, event, &work), 0);
                while (heard.n == 0 || has_children())
                        turn(event);
                assert_int_equal(heard.n, 1);
                assert_int_equal(heard.status, -1);
                assert_false(lkg_helper_running(&helper));
                lkg_helper_cancel(&helper);
                sd_event_unref(event);
        }
}

TEST(test_cancel)
{
        for (int impatient = 0; impatient < 2; impatient++) {
                struct heard heard = { 0 };
                const struct lkg_helper_work work = { .run = hang,
                                                      .done = on_done,
                                                      .userdata = &heard,
                                                      .limit_ns = LIMIT_NS,
                                                      .impatient = impatient };
                struct lkg_helper helper = { 0 };
                sd_event *event = loop();

                assert_int_equal(lkg_helper_start(&helper, event, &work), 0);
                lkg_helper_cancel(&helper);
                assert_false(lkg_helper_running(&helper));
                while (has_children())
                        turn(event);
                assert_int_equal(heard.n, 0);
                sd_event_unref(event);
        }
}

/* ---- programs: output in memory, limits ---- */

static int become_script(void *userdata)
{
        (void)execl("/bin/sh", "sh", "-c", userdata, NULL);
        return 127;
}

static int run(const char *text, uint64_t limit_ns, size_t max, char **ret_output)
{
        const struct lkg_helper_work work = { .run = become_script,
                                              .userdata = (void *)(uintptr_t)text,
                                              .program = "/bin/sh",
                                              .limit_ns = limit_ns };
        size_t size;

        *ret_output = NULL;
        return lkg_helper_run(&work, max, ret_output, &size);
}

TEST(test_output_and_exit_code)
{
        char *output;

        assert_int_equal(run("echo in put; echo done; exit 7", LIMIT_NS, 100, &output), 7);
        assert_string_equal(output, "in put\ndone\n");
        free(output);
        assert_int_equal(run("cat; echo wrong >&2", LIMIT_NS, 100, &output),
                         0); /* stdin is empty, stderr logged */
        assert_string_equal(output, "");
        free(output);
        assert_int_equal(run("kill -9 $$", LIMIT_NS, 100, &output), -ECHILD);
        assert_null(output);
}

TEST(test_too_much_output)
{
        char *output;

        assert_int_equal(run("echo 0123456789", LIMIT_NS, 4, &output), -EFBIG);
        assert_null(output);
}

TEST(test_a_program_that_does_not_end_is_killed)
{
        char *output;

        assert_int_equal(run("while :; do read x < /dev/zero; done", 10 * LKG_NSEC_PER_MSEC, 4, &output),
                         -ETIMEDOUT);
        assert_null(output);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(test_lifted_descriptors)
{
        int fd = lkg_lift_fd(open("/dev/null", O_RDONLY));

        assert_true(fd >= LKG_FD_BASE);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(lkg_lift_fd(fd), fd);
        lkg_close(fd);
        assert_int_equal(lkg_lift_fd(-ENOENT), -ENOENT);
}
