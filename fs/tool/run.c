/* SPDX-License-Identifier: Apache-2.0 */
/* How a verb runs: in a child that is abandoned if the mount does not answer, or again and again for --watch. */
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#include "tool.h"

#include <lkg/process.h>

/* ---- guarded ---- */

/*
 * On a broken node a call into the mount may wait forever: the kernel holds the caller until there is an
 * answer. SIGKILL ends that, but not if a server that hangs has already read the request (fs/fuse/dev.c,
 * request_wait_answer: then the kernel waits for the answer). So a verb that touches the mount runs in a
 * child; the parent waits for a limited time and passes on the child's output. The child holds no pipe of
 * the caller: `x=$(lkgfs status)` ends when the parent does, even if the child cannot.
 */
#define N_OUTPUTS 2

/* The child's standard output or standard error. */
struct output {
        int to;                /* our own descriptor */
        int read_fd, write_fd; /* -EBADF: the child uses ours */
        int error;             /* -errno of writing it, e.g. on a full disk */
};

/* A terminal is passed to the child: no reader waits for end of file, and colour and width depend on it. */
static int outputs_open(struct output outputs[N_OUTPUTS])
{
        for (size_t i = 0; i < N_OUTPUTS; i++) {
                int fds[2];

                if (isatty(outputs[i].to))
                        continue;
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return -errno;
                outputs[i].read_fd = fds[0];
                outputs[i].write_fd = fds[1];
        }
        return 0;
}

/* One piece of the child's output. */
static void pass_on(struct output *output)
{
        char bytes[16384];
        ssize_t n = read(output->read_fd, bytes, sizeof(bytes));

        if (n < 0 && errno == EINTR)
                return;
        if (n > 0 && output->error == 0)
                output->error = lkg_write_all(output->to, bytes, (size_t)n);
        if (n <= 0)
                lkg_closep(&output->read_fd);
}

/* Return: true: the child has ended and all its output was passed on; false: the deadline has passed. */
static bool wait_child(uint64_t limit_ns, int pidfd, struct output outputs[N_OUTPUTS])
{
        uint64_t deadline_ns = lkg_boottime_ns() + limit_ns;

        for (;;) {
                struct pollfd polled[N_OUTPUTS + 1] = { { .fd = pidfd, .events = POLLIN } };
                uint64_t now_ns = lkg_boottime_ns();
                int timeout_ms =
                        now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / LKG_NSEC_PER_MSEC) + 1 : 0;
                bool printed = false;
                int r;

                for (size_t i = 0; i < N_OUTPUTS; i++)
                        polled[i + 1] = (struct pollfd){ .fd = outputs[i].read_fd, .events = POLLIN };
                r = poll(polled, N_OUTPUTS + 1, timeout_ms);
                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return false;
                for (size_t i = 0; i < N_OUTPUTS; i++) {
                        if (!polled[i + 1].revents)
                                continue;
                        pass_on(&outputs[i]);
                        printed = true;
                }
                if (!printed)
                        return true;
        }
}

struct guarded {
        const struct lkg_tool *tool;
        struct output outputs[N_OUTPUTS];
};

static int run_verb(void *userdata)
{
        const struct guarded *guarded = userdata;

        for (size_t i = 0; i < N_OUTPUTS; i++)
                if (guarded->outputs[i].write_fd >= 0 &&
                    dup2(guarded->outputs[i].write_fd, guarded->outputs[i].to) < 0)
                        return LKG_TOOL_FAILED;
        return guarded->tool->verb->run(guarded->tool);
}

/* For a child that has ended. */
static int finish(const struct lkg_tool *tool, struct lkg_job *job, const struct output outputs[N_OUTPUTS])
{
        int status = lkg_job_reap(job);

        if (status < 0)
                status = lkg_tool_fail(tool, LKG_TOOL_FAILED, "ended by a signal");
        for (size_t i = 0; i < N_OUTPUTS; i++)
                if (outputs[i].error < 0)
                        status = lkg_tool_fail(tool, LKG_TOOL_FAILED, "write the output: %s",
                                               strerror(-outputs[i].error));
        return status;
}

static void guarded_deinit(struct guarded *guarded)
{
        for (size_t i = 0; i < N_OUTPUTS; i++) {
                lkg_closep(&guarded->outputs[i].read_fd);
                lkg_closep(&guarded->outputs[i].write_fd);
        }
}

int lkg_tool_guard(const struct lkg_tool *tool)
{
        LKG_CLEANUP(guarded_deinit)
        struct guarded guarded = {
                tool, { { STDOUT_FILENO, -EBADF, -EBADF, 0 }, { STDERR_FILENO, -EBADF, -EBADF, 0 } }
        };
        const struct lkg_job_spec spec = {
                .run = run_verb,
                .userdata = &guarded,
                .flags = LKG_JOB_KEEPS_STDIO | LKG_JOB_KEEPS_FDS | LKG_JOB_IN_GROUP,
        };
        struct lkg_job job = LKG_JOB_INIT;
        int r = outputs_open(guarded.outputs);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "pipe: %s", strerror(-r));
        r = lkg_job_start(&job, &spec, NULL, NULL);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "fork: %s", strerror(-r));
        for (size_t i = 0; i < N_OUTPUTS; i++)
                lkg_closep(&guarded.outputs[i].write_fd);
        if (wait_child(tool->verb->limit_s * LKG_NSEC_PER_SEC, job.pidfd, guarded.outputs))
                return finish(tool, &job, guarded.outputs);
        lkg_job_kill(&job); /* does not wait: we exit, and init reaps it */
        (void)lkg_tool_fail(tool, LKG_TOOL_FAILED,
                            "the mount has not answered for %u s: is lkgfsd running? "
                            "(journalctl -u lkgfs; lkgfsd adopts the mount when it is started again)",
                            tool->verb->limit_s);
        return tool->verb->silent ? tool->verb->silent(tool) : LKG_TOOL_FAILED;
}

/* ---- again and again ---- */

/*
 * status --watch: prints the screen again whenever it has changed. It looks once a second, in a process of its own each time, so
 * that a mount that hangs for a while does not end it. A terminal is cleared before each screen; anything else gets one screen
 * after the other, and no new one only because a time like "3 s ago" has grown.
 */
#define PAUSE_NS     LKG_NSEC_PER_SEC
#define SCREEN_MAX   (16u << 20)
#define CLEAR_SCREEN "\033[H\033[2J"

/* The verb's standard output. Return: its exit status; -errno. */
static int run_once(const struct lkg_tool *tool, int (*run)(const struct lkg_tool *tool), char **ret)
{
        int pipe_fds[2], status, r;
        pid_t pid;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                if (dup2(pipe_fds[1], STDOUT_FILENO) < 0)
                        _exit(LKG_TOOL_FAILED);
                lkg_close(pipe_fds[0]);
                lkg_close(pipe_fds[1]);
                _exit(run(tool));
        }
        r = pid < 0 ? -errno : 0;
        lkg_close(pipe_fds[1]);
        if (r == 0)
                r = lkg_read_file(pipe_fds[0], SCREEN_MAX, ret, NULL, NULL);
        lkg_close(pipe_fds[0]);
        if (pid > 0 && waitpid(pid, &status, 0) < 0)
                return -errno;
        return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : LKG_TOOL_FAILED;
}

/* Skips " (3 min ago)". */
static const char *skip_age(const char *text)
{
        size_t n = 0;

        if (text[0] != ' ' || text[1] != '(' || text[2] < '0' || text[2] > '9')
                return text;
        n = 2 + strspn(text + 2, "0123456789 abcdefghijklmnopqrstuvwxyz");
        return text[n] == ')' && n > 6 && strncmp(text + n - 4, " ago", 4) == 0 ? text + n + 1 : text;
}

/* Are the two equal, apart from ages ("(3 s ago)")? */
static bool same_screen(const char *a, const char *b)
{
        for (;;) {
                a = skip_age(a);
                b = skip_age(b);
                if (*a != *b)
                        return false;
                if (!*a)
                        return true;
                a++;
                b++;
        }
}

int lkg_screen_show(const struct lkg_tool *tool, char **shown, const char *text, const char *compared)
{
        bool terminal = isatty(STDOUT_FILENO) == 1;
        const char *before = terminal ? CLEAR_SCREEN : *shown ? "\n" : "";
        int r;

        if (!terminal && *shown && same_screen(compared, *shown))
                return LKG_TOOL_OK;
        r = lkg_write_all(STDOUT_FILENO, before, strlen(before));
        if (r >= 0)
                r = lkg_write_all(STDOUT_FILENO, text, strlen(text));
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "standard output: %s", strerror(-r));
        free(*shown);
        *shown = lkg_tool_format("%s", compared);
        return LKG_TOOL_OK;
}

int lkg_tool_watch(const struct lkg_tool *tool, int (*run)(const struct lkg_tool *tool))
{
        static const struct timespec pause = { .tv_sec = (time_t)(PAUSE_NS / LKG_NSEC_PER_SEC) };
        LKG_CLEANUP(lkg_freep) char *shown = NULL;
        struct lkg_tool once = *tool;

        once.options.colour =
                lkg_tool_colour_for(tool, STDOUT_FILENO) ? LKG_COLOUR_ALWAYS : LKG_COLOUR_NEVER;
        for (;;) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                int status = run_once(&once, run, &text), r;

                if (status < 0)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-status));
                if (status == LKG_TOOL_USAGE)
                        return status; /* it has said why */
                r = lkg_screen_show(tool, &shown, text, text);
                if (r != LKG_TOOL_OK)
                        return r;
                (void)nanosleep(&pause, NULL);
        }
}
