/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs: what a child inherits and what it does not, output in memory, limits. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "fs/supervisor/supervisor.h"

#define LIMIT_NS (20 * LKG_NSEC_PER_SEC)

static int run(const char *script, const char *input, char **ret_output)
{
        const char *argv[] = { "/bin/sh", "-c", script, NULL };
        struct lkg_run r = LKG_RUN_INIT;

        *ret_output = NULL;
        assert_int_equal(lkg_run_start(&r, argv, input, input ? strlen(input) : 0), 0);
        return lkg_run_wait(&r, LIMIT_NS, 1 << 16, ret_output, NULL);
}

static void test_output_and_exit_code(void **state)
{
        char *output;

        (void)state;
        assert_int_equal(run("cat; echo done; exit 7", "in put\n", &output), 7);
        assert_string_equal(output, "in put\ndone\n");
        free(output);
        assert_int_equal(run("cat", NULL, &output), 0); /* stdin is /dev/null */
        assert_string_equal(output, "");
        free(output);
        assert_int_equal(run("kill -9 $$", NULL, &output), 128 + 9);
        free(output);
}

static void test_too_much_output(void **state)
{
        const char *argv[] = { "/bin/sh", "-c", "echo 0123456789", NULL };
        struct lkg_run r = LKG_RUN_INIT;
        char *output = NULL;

        (void)state;
        assert_int_equal(lkg_run_start(&r, argv, NULL, 0), 0);
        assert_int_equal(lkg_run_wait(&r, LIMIT_NS, 4, &output, NULL), -EFBIG);
        assert_null(output);
}

static void test_a_program_that_does_not_end_is_killed(void **state)
{
        const char *argv[] = { "/bin/sh", "-c", "while :; do read x < /dev/zero; done", NULL };
        struct lkg_run r = LKG_RUN_INIT;
        char *output = NULL;

        (void)state;
        assert_int_equal(lkg_run_start(&r, argv, NULL, 0), 0);
        assert_int_equal(lkg_run_wait(&r, 10 * LKG_NSEC_PER_MSEC, 4, &output, NULL), -ETIMEDOUT);
        assert_int_equal(r.job.pid, 0);
}

static void test_a_missing_program_is_an_error_of_ours(void **state)
{
        const char *argv[] = { "/nonexistent/program", NULL };
        struct lkg_run r = LKG_RUN_INIT;

        (void)state;
        assert_int_equal(lkg_run_start(&r, argv, NULL, 0), -ENOENT);
}

/*
 * A child that prints the numbers of its descriptors from 3 on, except the one it reads the directory with.
 */
static const char *const list_fds =
        "for f in /proc/self/fd/*; do n=${f##*/}; "
        "[ -e /proc/$$/fd/$n ] && [ $n -gt 2 ] && [ $n -lt 10 ] && echo $n; done; exit 0";

static int no_setup(const void *userdata)
{
        return *(const int *)userdata;
}

static void check_fds(int (*setup)(const void *userdata))
{
        const char *argv[] = { "/bin/sh", "-c", list_fds, NULL };
        int null = lkg_lift_fd(open("/dev/null", O_RDONLY)), leak = open("/dev/null", O_RDONLY), zero = 0;
        int out = lkg_lift_fd(memfd_create("out", MFD_CLOEXEC)), pidfd = -EBADF, status = 0;
        struct lkg_spawn spawn = { .argv = argv,
                                   .fds = { null, null },
                                   .n_fds = 2,
                                   .stdin_fd = -EBADF,
                                   .stdout_fd = out,
                                   .stderr_fd = out,
                                   .setup = setup,
                                   .userdata = &zero };
        char text[64] = "";
        pid_t pid = 0;

        assert_true(null >= LKG_FD_BASE && out >= LKG_FD_BASE && leak >= 0);
        assert_int_equal(lkg_spawn(&spawn, &pid, &pidfd), 0);
        assert_true(pidfd >= LKG_FD_BASE);
        assert_true(lkg_wait_pidfd(pidfd, LIMIT_NS));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(pread(out, text, sizeof(text) - 1, 0) >= 0);
        assert_string_equal(text, "3\n4\n"); /* `leak` is not close-on-exec, and yet not inherited */
        lkg_close(pidfd);
        lkg_close(leak);
        lkg_close(null);
        lkg_close(out);
}

static void test_children_get_their_descriptors_and_no_others(void **state)
{
        (void)state;
        check_fds(NULL);
        check_fds(no_setup);
}

static void test_a_failing_setup_is_the_exit_code(void **state)
{
        const char *argv[] = { "/bin/true", NULL };
        int code = 42, pidfd = -EBADF, status = 0;
        struct lkg_spawn spawn = { .argv = argv,
                                   .stdin_fd = -EBADF,
                                   .stdout_fd = STDOUT_FILENO,
                                   .stderr_fd = STDERR_FILENO,
                                   .setup = no_setup,
                                   .userdata = &code };
        pid_t pid = 0;

        (void)state;
        assert_int_equal(lkg_spawn(&spawn, &pid, &pidfd), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 42);
        lkg_close(pidfd);
}

static void test_lifted_descriptors(void **state)
{
        int fd = lkg_lift_fd(open("/dev/null", O_RDONLY));

        (void)state;
        assert_true(fd >= LKG_FD_BASE);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(lkg_lift_fd(fd), fd);
        lkg_close(fd);
        assert_int_equal(lkg_lift_fd(-ENOENT), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_output_and_exit_code),
                cmocka_unit_test(test_too_much_output),
                cmocka_unit_test(test_a_program_that_does_not_end_is_killed),
                cmocka_unit_test(test_a_missing_program_is_an_error_of_ours),
                cmocka_unit_test(test_children_get_their_descriptors_and_no_others),
                cmocka_unit_test(test_a_failing_setup_is_the_exit_code),
                cmocka_unit_test(test_lifted_descriptors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
