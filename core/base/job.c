/* SPDX-License-Identifier: Apache-2.0 */
/* Work in a forked process: see lkg/process.h. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <lkg/file.h>
#include <lkg/process.h>

#define PIPE_BYTES_MAX (1u << 20) /* a process may enlarge its pipe to this (pipe-max-size) */

/* ---- in the new process ---- */

static int take_stdio(const struct lkg_job_spec *spec, int out, int err)
{
        int null;

        if (spec->flags & LKG_JOB_KEEPS_STDIO)
                return 0;
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out < 0 ? null : out, STDOUT_FILENO) < 0 ||
            dup2(err < 0 ? null : err, STDERR_FILENO) < 0)
                return -1;
        return chdir("/");
}

static int take_fds(const struct lkg_job_spec *spec)
{
        if (spec->flags & LKG_JOB_KEEPS_FDS)
                return 0;
        for (size_t i = 0; i < spec->n_fds; i++)
                if (dup3(spec->fds[i], LKG_JOB_FIRST_FD + (int)i, O_CLOEXEC) < 0)
                        return -1;
        closefrom(LKG_JOB_FIRST_FD + (int)spec->n_fds);
        return 0;
}

static bool leads_group(const struct lkg_job_spec *spec)
{
        return !(spec->flags & (LKG_JOB_OUTLIVES_US | LKG_JOB_IN_GROUP));
}

_Noreturn static void become(const struct lkg_job_spec *spec, pid_t parent, int out, int err)
{
        sigset_t none;

        if (!(spec->flags & LKG_JOB_OUTLIVES_US) &&
            (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent))
                _exit(127);
        if (leads_group(spec) && setpgid(0, 0) < 0)
                _exit(127);
        if (take_stdio(spec, out, err) < 0 || take_fds(spec) < 0)
                _exit(127);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        _exit(spec->run(spec->userdata));
}

/* ---- start and end ---- */

/* @ret: the write end of the pipe; -EBADF: the output is not wanted. */
static int open_output(struct lkg_job_output *output, int *ret)
{
        int ends[2];

        output->fd = -EBADF;
        if (!output->data)
                return 0;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        /* Takes the output that is available at the end, without waiting for more. */
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        output->fd = ends[0];
        *ret = ends[1];
        return 0;
}

static void close_output(struct lkg_job_output *output)
{
        if (output && output->data)
                output->fd = lkg_close(output->fd);
}

static int start(struct lkg_job *job, const struct lkg_job_spec *spec, int out, int err)
{
        const pid_t self = getpid();
        int pidfd;
        pid_t pid = fork();

        if (pid == 0)
                become(spec, self, out, err);
        if (pid < 0)
                return -errno;
        *job = (struct lkg_job){ .pid = pid, .pidfd = -EBADF };
        job->leads = leads_group(spec);
        if (job->leads)
                (void)setpgid(pid, pid); /* the child does the same: one of the two is first */
        pidfd = pidfd_open(pid, 0);
        if (pidfd >= 0) {
                job->pidfd = pidfd;
                return 0;
        }
        pidfd = -errno;
        lkg_job_kill(job);
        (void)waitpid(pid, NULL, 0); /* it has done nothing yet that could block it */
        *job = (struct lkg_job)LKG_JOB_INIT;
        return pidfd;
}

int lkg_job_start(struct lkg_job *job, const struct lkg_job_spec *spec, struct lkg_job_output *out,
                  struct lkg_job_output *err)
{
        LKG_CLEANUP(lkg_closep) int out_end = -EBADF;
        LKG_CLEANUP(lkg_closep) int err_end = -EBADF;
        int r = out ? open_output(out, &out_end) : 0;

        if (r == 0 && err && err != out)
                r = open_output(err, &err_end);
        if (r == 0)
                r = start(job, spec, out_end, err == out ? out_end : err_end);
        if (r < 0) {
                close_output(out);
                close_output(err);
        }
        return r;
}

void lkg_job_kill(const struct lkg_job *job)
{
        if (job->pid <= 0)
                return;
        if (job->leads)
                (void)kill(-job->pid, SIGKILL);
        (void)kill(job->pid, SIGKILL);
}

static void forget(struct lkg_job *job)
{
        lkg_close(job->pidfd);
        *job = (struct lkg_job)LKG_JOB_INIT;
}

bool lkg_job_ended(const struct lkg_job *job)
{
        siginfo_t info = { 0 };

        return waitid(P_PID, (id_t)job->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

int lkg_job_reap(struct lkg_job *job)
{
        siginfo_t info = { 0 };

        if (waitid(P_PID, (id_t)job->pid, &info, WEXITED | WNOHANG) < 0)
                info.si_code = 0; /* already reaped elsewhere */
        else if (info.si_pid == 0)
                return -EAGAIN;
        forget(job);
        return info.si_code == CLD_EXITED ? info.si_status : -1;
}

bool lkg_job_cancel(struct lkg_job *job)
{
        if (job->pid <= 0)
                return true;
        lkg_job_kill(job);
        if (!lkg_wait_readable(job->pidfd, lkg_boottime_ns() + LKG_JOB_GRACE_NS))
                return false;
        (void)lkg_job_reap(job);
        return true;
}

/* ---- waiting for it here ---- */

/* Reads one piece of its output. Return: its size; 0: nothing available. */
static size_t take(struct lkg_job_output *output)
{
        char spare[4096];
        bool full = output->size == output->max;
        ssize_t n = full ? read(output->fd, spare, sizeof(spare))
                         : read(output->fd, output->data + output->size, output->max - output->size);

        if (n == 0)
                output->fd = lkg_close(output->fd);
        if (n <= 0)
                return 0;
        output->cut |= full;
        output->size += full ? 0 : (size_t)n;
        return (size_t)n;
}

static bool is_over(const struct lkg_job_output *output)
{
        return output->bounded && output->cut;
}

/* Reads the rest of the pipe and no more: a process that it left behind may write forever. */
static void take_rest(struct lkg_job_output *output)
{
        size_t left = output->max + PIPE_BYTES_MAX, n = 1;

        while (output->fd >= 0 && n > 0 && left > 0 && !is_over(output)) {
                n = take(output);
                left -= n < left ? n : left;
        }
}

/* Return: 0: it has ended, and all its output was read; -errno. */
static int await(const struct lkg_job *job, uint64_t deadline_ns, struct lkg_job_output *outputs[2])
{
        uint64_t now_ns;

        while ((now_ns = lkg_boottime_ns()) < deadline_ns) {
                struct pollfd p[] = { { .fd = job->pidfd, .events = POLLIN },
                                      { .fd = outputs[0]->fd, .events = POLLIN },
                                      { .fd = outputs[1]->fd, .events = POLLIN } };
                int r = poll(p, LKG_ARRAY_SIZE(p), (int)((deadline_ns - now_ns) / LKG_NSEC_PER_MSEC) + 1);

                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r <= 0)
                        continue;
                for (size_t i = 0; i < 2; i++) {
                        if (p[0].revents)
                                take_rest(outputs[i]);
                        else if (p[i + 1].revents)
                                (void)take(outputs[i]);
                        if (is_over(outputs[i]))
                                return -EFBIG;
                }
                if (p[0].revents)
                        return 0;
        }
        return -ETIMEDOUT;
}

int lkg_job_run(const struct lkg_job_spec *spec, uint64_t limit_ns, struct lkg_job_output *out,
                struct lkg_job_output *err, int *ret_status)
{
        struct lkg_job_output none = { .fd = -EBADF };
        struct lkg_job_output *outputs[2] = { out && out->data ? out : &none,
                                              err && err != out && err->data ? err : &none };
        uint64_t deadline_ns = lkg_boottime_ns() + limit_ns;
        struct lkg_job job = LKG_JOB_INIT;
        int r = lkg_job_start(&job, spec, out, err);

        if (r < 0)
                return r;
        r = await(&job, deadline_ns, outputs);
        if (r < 0)
                (void)lkg_job_cancel(&job);
        else if (waitpid(job.pid, ret_status, 0) < 0)
                r = -errno;
        close_output(out);
        close_output(err);
        forget(&job);
        return r;
}
