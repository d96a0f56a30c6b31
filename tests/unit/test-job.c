/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <lkg/process.h>

#include "unit.h"

#define LIMIT_NS (30 * LKG_NSEC_PER_SEC) /* for tests that do not reach it */
#define SOON_NS  (50 * LKG_NSEC_PER_MSEC)

static int run(int (*fn)(void *), void *userdata, uint64_t limit_ns, struct lkg_job_output *out,
               struct lkg_job_output *err, int *ret_status)
{
        const struct lkg_job_spec spec = { .run = fn, .userdata = userdata };

        return lkg_job_run(&spec, limit_ns, out, err, ret_status);
}

/* No child process is left. */
static void assert_no_children(void)
{
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

static int speak(void *userdata)
{
        const char *text = userdata;

        (void)!write(STDOUT_FILENO, text, strlen(text));
        (void)!write(STDERR_FILENO, "!", 1);
        return 7;
}

TEST(test_status_and_output)
{
        char text[8], complaint[8];
        struct lkg_job_output out = { .data = text, .max = sizeof(text) },
                              err = { .data = complaint, .max = sizeof(complaint) };
        int status = 0;

        assert_int_equal(run(speak, (void *)(uintptr_t) "hello", LIMIT_NS, &out, &err, &status), 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        assert_int_equal(out.size, 5);
        assert_memory_equal(text, "hello", 5);
        assert_int_equal(err.size, 1);
        assert_false(out.cut);
        assert_int_equal(run(speak, (void *)(uintptr_t) "nobody wants it", LIMIT_NS, NULL, NULL, &status),
                         0);
        assert_no_children();
}

TEST(test_one_pipe_for_both)
{
        char text[8];
        struct lkg_job_output out = { .data = text, .max = sizeof(text) };
        int status = 0;

        assert_int_equal(run(speak, (void *)(uintptr_t) "ab", LIMIT_NS, &out, &out, &status), 0);
        assert_int_equal(out.size, 3);
        assert_memory_equal(text, "ab!", 3);
}

TEST(test_as_much_as_there_is_room)
{
        char text[5];
        struct lkg_job_output out = { .data = text, .max = sizeof(text) };
        int status = 0;

        assert_int_equal(run(speak, (void *)(uintptr_t) "12345", LIMIT_NS, &out, NULL, &status), 0);
        assert_true(out.size == 5 && !out.cut);
        out = (struct lkg_job_output){ .data = text, .max = sizeof(text) };
        assert_int_equal(run(speak, (void *)(uintptr_t) "123456", LIMIT_NS, &out, NULL, &status), 0);
        assert_true(out.size == 5 && out.cut && WEXITSTATUS(status) == 7);
        out = (struct lkg_job_output){ .data = text, .max = sizeof(text), .bounded = true };
        assert_int_equal(run(speak, (void *)(uintptr_t) "12345", LIMIT_NS, &out, NULL, &status), 0);
        out = (struct lkg_job_output){ .data = text, .max = sizeof(text), .bounded = true };
        assert_int_equal(run(speak, (void *)(uintptr_t) "123456", LIMIT_NS, &out, NULL, &status), -EFBIG);
        assert_no_children();
}

static int chatter(void *userdata)
{
        char text[4096];

        (void)userdata;
        memset(text, 'x', sizeof(text));
        for (;;)
                (void)!write(STDOUT_FILENO, text, sizeof(text));
        return 0;
}

TEST(test_output_without_end)
{
        char text[100];
        struct lkg_job_output out = { .data = text, .max = sizeof(text), .bounded = true };
        int status = 0;

        assert_int_equal(run(chatter, NULL, LIMIT_NS, &out, NULL, &status), -EFBIG);
        out = (struct lkg_job_output){ .data = text, .max = sizeof(text) };
        assert_int_equal(run(chatter, NULL, SOON_NS, &out, NULL, &status), -ETIMEDOUT);
        assert_true(out.cut && out.size == sizeof(text));
        assert_no_children();
}

static int hang(void *userdata)
{
        (void)userdata;
        for (;;)
                (void)pause();
        return 0;
}

/* Ignores SIGTERM and similar signals, and may be stopped. */
static int resist(void *userdata)
{
        for (int i = 1; i < NSIG; i++)
                (void)signal(i, SIG_IGN);
        (void)raise(SIGSTOP);
        return hang(userdata);
}

TEST(test_the_limit)
{
        int status = 0;

        assert_int_equal(run(hang, NULL, SOON_NS, NULL, NULL, &status), -ETIMEDOUT);
        assert_int_equal(run(resist, NULL, SOON_NS, NULL, NULL, &status), -ETIMEDOUT);
        assert_no_children();
}

static int say_and_hang(void *userdata)
{
        (void)!write(LKG_JOB_FIRST_FD, "x", 1);
        return hang(userdata);
}

static int leave_a_speaker(void *userdata)
{
        return fork() == 0 ? say_and_hang(userdata) : hang(userdata);
}

/* The write end, which only the job gets. @ret_fd is the other one. */
static int open_pipe(int *ret_fd)
{
        int ends[2];

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        *ret_fd = fcntl(ends[1], F_DUPFD_CLOEXEC, 100);
        assert_true(*ret_fd >= 100);
        lkg_close(ends[1]);
        return ends[0];
}

TEST(test_its_processes_end_with_it)
{
        char bytes[2];
        int fd, end = open_pipe(&fd);
        const struct lkg_job_spec spec = { .run = leave_a_speaker, .fds = &fd, .n_fds = 1 };
        struct lkg_job job = LKG_JOB_INIT;

        assert_int_equal(lkg_job_start(&job, &spec, NULL, NULL), 0);
        lkg_close(fd);
        assert_int_equal(read(end, bytes, 1), 1); /* the process that it started is running */
        assert_true(lkg_job_cancel(&job));
        assert_int_equal(read(end, bytes, 1), 0); /* the other end is closed everywhere */
        lkg_close(end);
        assert_no_children();
}

static int leave_a_listener(void *userdata)
{
        char byte;

        if (fork() == 0)
                return (int)read(LKG_JOB_FIRST_FD, &byte, 1);
        (void)!write(STDOUT_FILENO, "x", 1);
        (void)userdata;
        return 3;
}

/* The end of the program counts, even if another process keeps its output open. */
TEST(test_what_it_leaves_behind_is_not_waited_for)
{
        char text[4];
        struct lkg_job_output out = { .data = text, .max = sizeof(text) };
        int ends[2], fd, status = 0;
        struct lkg_job_spec spec = { .run = leave_a_listener, .fds = &fd, .n_fds = 1 };

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        fd = fcntl(ends[0], F_DUPFD_CLOEXEC, 100);
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        assert_int_equal(lkg_job_run(&spec, LIMIT_NS, &out, NULL, &status), 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        assert_int_equal(out.size, 1);
        lkg_close(ends[1]);
        assert_true(waitpid(-1, &status, 0) > 0); /* we have become its parent */
        assert_int_equal(status, 0);
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
        lkg_close(ends[0]);
        lkg_close(fd);
        assert_no_children();
}

static int die(void *userdata)
{
        (void)userdata;
        return raise(SIGKILL);
}

/* In the root directory, without our descriptors, with default signal handling. */
static int look_around(void *userdata)
{
        char cwd[8] = "";
        sigset_t mask;
        int first = *(const int *)userdata;

        if (!getcwd(cwd, sizeof(cwd)) || strcmp(cwd, "/") != 0)
                return 1;
        for (int fd = 3; fd < 200; fd++)
                if (fcntl(fd, F_GETFD) >= 0 && fd != first)
                        return 2;
        if (sigprocmask(SIG_SETMASK, NULL, &mask) < 0 || sigismember(&mask, SIGUSR1))
                return 3;
        return getpgrp() == getpid() ? 0 : 4;
}

TEST(test_how_it_begins)
{
        int none = -1, three = 3, fd, status = -1;
        struct lkg_job_spec spec = { .run = look_around, .userdata = &none };
        sigset_t mask, old;

        fd = fcntl(STDOUT_FILENO, F_DUPFD, 50); /* not close-on-exec */
        assert_true(fd >= 50);
        (void)sigemptyset(&mask);
        (void)sigaddset(&mask, SIGUSR1);
        (void)sigprocmask(SIG_BLOCK, &mask, &old);
        assert_int_equal(lkg_job_run(&spec, LIMIT_NS, NULL, NULL, &status), 0);
        assert_int_equal(status, 0);
        spec = (struct lkg_job_spec){ .run = look_around, .userdata = &three, .fds = &fd, .n_fds = 1 };
        assert_int_equal(lkg_job_run(&spec, LIMIT_NS, NULL, NULL, &status), 0);
        assert_int_equal(status, 0);
        (void)sigprocmask(SIG_SETMASK, &old, NULL);
        lkg_close(fd);
        assert_int_equal(run(die, NULL, LIMIT_NS, NULL, NULL, &status), 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- a job in an event loop ---- */

TEST(test_cancel_and_reap)
{
        const struct lkg_job_spec hangs = { .run = hang },
                                  speaks = { .run = speak, .userdata = (void *)(uintptr_t) "" };
        struct lkg_job job = LKG_JOB_INIT;
        int r;

        assert_true(lkg_job_cancel(&job)); /* there is none */
        assert_int_equal(lkg_job_start(&job, &hangs, NULL, NULL), 0);
        assert_int_equal(lkg_job_reap(&job), -EAGAIN);
        assert_true(lkg_job_cancel(&job));
        assert_true(job.pid == 0 && job.pidfd < 0);
        assert_int_equal(lkg_job_start(&job, &speaks, NULL, NULL), 0);
        while ((r = lkg_job_reap(&job)) == -EAGAIN)
                ;
        assert_int_equal(r, 7);
        assert_int_equal(lkg_job_start(&job, &hangs, NULL, NULL), 0);
        lkg_job_kill(&job);
        while ((r = lkg_job_reap(&job)) == -EAGAIN)
                ;
        assert_int_equal(r, -1);
        assert_no_children();
}

static int start_another(void *userdata)
{
        const struct lkg_job_spec inner = { .run = say_and_hang, .fds = userdata, .n_fds = 1 };
        struct lkg_job job = LKG_JOB_INIT;

        return lkg_job_start(&job, &inner, NULL, NULL) == 0 ? hang(NULL) : 1;
}

/* A process that is killed by SIGKILL cannot end its own jobs. */
TEST(test_it_ends_with_us)
{
        char bytes[2];
        int fd, end = open_pipe(&fd);
        struct lkg_job_spec spec = { .run = start_another, .userdata = &fd, .flags = LKG_JOB_KEEPS_FDS };
        struct lkg_job job = LKG_JOB_INIT;

        assert_int_equal(lkg_job_start(&job, &spec, NULL, NULL), 0);
        lkg_close(fd);
        assert_int_equal(read(end, bytes, 1), 1);
        assert_int_equal(kill(job.pid, SIGKILL), 0); /* not its group */
        assert_int_equal(read(end, bytes, 1), 0);
        lkg_close(end);
        assert_true(lkg_job_cancel(&job));
        assert_no_children();
}
