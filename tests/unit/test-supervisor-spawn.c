/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs: output in memory, limits. */
#include <fcntl.h>
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

TEST(test_lifted_descriptors)
{
        int fd = lkg_lift_fd(open("/dev/null", O_RDONLY));

        assert_true(fd >= LKG_FD_BASE);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(lkg_lift_fd(fd), fd);
        lkg_close(fd);
        assert_int_equal(lkg_lift_fd(-ENOENT), -ENOENT);
}
