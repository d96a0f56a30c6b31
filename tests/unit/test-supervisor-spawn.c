/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs: what a child inherits and what it does not, output in memory, limits. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "unit.h"
#include "fs/supervisor/supervisor.h"

#define LIMIT_NS (20 * LKG_NSEC_PER_SEC)

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

TEST(test_children_get_their_descriptors_and_no_others)
{
        const char *argv[] = { "/bin/sh", "-c", list_fds, NULL };
        int null = lkg_lift_fd(open("/dev/null", O_RDONLY)), leak = open("/dev/null", O_RDONLY), zero = 0;
        int out = lkg_lift_fd(memfd_create("out", MFD_CLOEXEC)), pidfd = -EBADF, status = 0;
        struct lkg_spawn spawn = { .argv = argv,
                                   .fds = { null, null },
                                   .n_fds = 2,
                                   .output_fd = out,
                                   .setup = no_setup,
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

TEST(test_a_missing_program_is_an_exit_code)
{
        const char *argv[] = { "/nonexistent/program", NULL };
        int pidfd = -EBADF, status = 0;
        struct lkg_spawn spawn = { .argv = argv, .output_fd = STDERR_FILENO };
        pid_t pid = 0;

        assert_int_equal(lkg_spawn(&spawn, &pid, &pidfd), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), EX_UNAVAILABLE);
        lkg_close(pidfd);
}

TEST(test_a_failing_setup_is_the_exit_code)
{
        const char *argv[] = { "/bin/true", NULL };
        int code = 42, pidfd = -EBADF, status = 0;
        struct lkg_spawn spawn = {
                .argv = argv, .output_fd = STDERR_FILENO, .setup = no_setup, .userdata = &code
        };
        pid_t pid = 0;

        assert_int_equal(lkg_spawn(&spawn, &pid, &pidfd), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 42);
        lkg_close(pidfd);
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
