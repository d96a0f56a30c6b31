/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <lkg/file.h>

#include "supervisor.h"

extern char **environ;

/*
 * Children must not inherit ignored signals from us or our parent: these are set to their defaults.
 */
static void default_signals(sigset_t *ret)
{
        static const int signals[] = {
                SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2
        };

        (void)sigemptyset(ret);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(signals); i++)
                (void)sigaddset(ret, signals[i]);
}

static int add_fds(posix_spawn_file_actions_t *actions, const struct lkg_spawn *spawn)
{
        int r;

        if (spawn->stdin_fd >= 0)
                r = posix_spawn_file_actions_adddup2(actions, spawn->stdin_fd, STDIN_FILENO);
        else
                r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(actions, spawn->stdout_fd, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(actions, spawn->stderr_fd, STDERR_FILENO);
        for (size_t i = 0; r == 0 && i < spawn->n_fds; i++)
                r = posix_spawn_file_actions_adddup2(actions, spawn->fds[i], 3 + (int)i);
        if (r == 0)
                r = posix_spawn_file_actions_addclosefrom_np(actions, 3 + (int)spawn->n_fds);
        return -r;
}

static int spawn_quick(const struct lkg_spawn *spawn, pid_t *ret_pid)
{
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attr;
        sigset_t none, defaults;
        int r;

        r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attr);
        if (r != 0) {
                (void)posix_spawn_file_actions_destroy(&actions);
                return -r;
        }
        (void)sigemptyset(&none);
        default_signals(&defaults);
        r = add_fds(&actions, spawn);
        if (r == 0)
                r = -posix_spawnattr_setsigmask(&attr, &none);
        if (r == 0)
                r = -posix_spawnattr_setsigdefault(&attr, &defaults);
        if (r == 0)
                r = -posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (r == 0) /* argv of this interface predates const */
                r = -posix_spawn(ret_pid, spawn->argv[0], &actions, &attr,
                                 (char *const *)(uintptr_t)spawn->argv, environ);
        (void)posix_spawnattr_destroy(&attr);
        (void)posix_spawn_file_actions_destroy(&actions);
        return r;
}

static void reset_signals(void)
{
        struct sigaction action = { .sa_handler = SIG_DFL };
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void)sigaction(i, &action, NULL);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Distinguishable from its parent already: setup may take forever, and then a successor of lkgfsd has to
 * end it.
 */
static void take_name(const char *program)
{
        const char *slash = strrchr(program, '/');

        (void)prctl(PR_SET_NAME, slash ? slash + 1 : program, 0, 0, 0);
}

/* In the forked child: places the descriptors, runs setup, calls execve. Never returns. */
static void exec_child(const struct lkg_spawn *spawn)
{
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC), r;

        take_name(spawn->argv[0]);
        reset_signals();
        if (dup2(spawn->stdin_fd >= 0 ? spawn->stdin_fd : null, STDIN_FILENO) < 0 ||
            dup2(spawn->stdout_fd, STDOUT_FILENO) < 0 || dup2(spawn->stderr_fd, STDERR_FILENO) < 0)
                _exit(EX_OSERR);
        for (size_t i = 0; i < spawn->n_fds; i++)
                if (dup2(spawn->fds[i], 3 + (int)i) < 0)
                        _exit(EX_OSERR);
        r = spawn->before ? spawn->before(spawn->userdata) : 0;
        if (r != 0)
                _exit(r);
        if (spawn->namespace_fd > 0 && setns(spawn->namespace_fd, CLONE_NEWNS) < 0) {
                (void)dprintf(STDERR_FILENO, "mount namespace of %s: %s\n", spawn->argv[0], strerror(errno));
                _exit(EX_UNAVAILABLE);
        }
        closefrom(3 + (int)spawn->n_fds); /* before anything that takes time: our locks are among them */
        r = spawn->setup ? spawn->setup(spawn->userdata) : 0;
        if (r != 0)
                _exit(r);
        execve(spawn->argv[0], (char *const *)(uintptr_t)spawn->argv, environ);
        (void)dprintf(STDERR_FILENO, "execute %s: %s\n", spawn->argv[0], strerror(errno));
        _exit(EX_UNAVAILABLE);
}

int lkg_spawn(const struct lkg_spawn *spawn, pid_t *ret_pid, int *ret_pidfd)
{
        pid_t pid = 0;
        int r, pidfd;

        if (spawn->setup || spawn->namespace_fd > 0) {
                pid = fork();
                if (pid == 0)
                        exec_child(spawn);
                r = pid < 0 ? -errno : 0;
        } else {
                r = spawn_quick(spawn, &pid);
        }
        if (r < 0)
                return r;
        pidfd = pidfd_open(pid, 0); /* always close-on-exec; not reaped yet, so the pid is still its own */
        pidfd = pidfd < 0 ? -errno : lkg_lift_fd(pidfd);
        if (pidfd < 0) {
                (void)kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
                return pidfd;
        }
        *ret_pid = pid;
        *ret_pidfd = pidfd;
        return 0;
}

static int memory_file(const char *name, const void *data, size_t size)
{
        int fd = memfd_create(name, MFD_CLOEXEC), r;

        fd = fd < 0 ? -errno : lkg_lift_fd(fd);
        if (fd < 0)
                return fd;
        r = lkg_write_all(fd, data, size);
        if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        if (r < 0)
                lkg_close(fd);
        return r < 0 ? r : fd;
}

int lkg_run_start(struct lkg_run *run, const char *const *argv, const void *input, size_t input_size)
{
        LKG_CLEANUP(lkg_closep) int in = -EBADF;
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        LKG_CLEANUP(lkg_closep) int out = memory_file("lkgfs-output", NULL, 0);
        struct lkg_spawn spawn = { .argv = argv };
        int r;

        if (out < 0)
                return out;
        if (input) {
                in = memory_file("lkgfs-input", input, input_size);
                if (in < 0)
                        return in;
        }
        r = lkg_said_pipe(&ours, &theirs);
        if (r < 0)
                return r;
        spawn.stdin_fd = in;
        spawn.stdout_fd = out;
        spawn.stderr_fd = theirs;
        r = lkg_spawn(&spawn, &run->job.pid, &run->job.pidfd);
        if (r < 0)
                return r;
        run->program = argv[0];
        run->output = LKG_STEAL_FD(out);
        run->said = LKG_STEAL_FD(ours);
        return 0;
}

static int exit_status(pid_t pid)
{
        siginfo_t info = { 0 };
        int r;

        do
                r = waitid(P_PID, (id_t)pid, &info, WEXITED);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return -errno;
        return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int lkg_run_finish(struct lkg_run *run, size_t max, char **ret_output, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int output = LKG_STEAL_FD(run->output);
        LKG_CLEANUP(lkg_closep) int said = LKG_STEAL_FD(run->said);
        int status = exit_status(run->job.pid);
        int r;

        lkg_close(run->job.pidfd);
        run->job = (struct lkg_job)LKG_JOB_INIT;
        lkg_said_all(run->program, said);
        if (status < 0)
                return status;
        if (lseek(output, 0, SEEK_SET) < 0)
                return -errno;
        r = lkg_read_file(output, max, ret_output, ret_size, NULL);
        return r < 0 ? r : status;
}

int lkg_run_wait(struct lkg_run *run, uint64_t limit_ns, size_t max, char **ret_output, size_t *ret_size)
{
        if (!lkg_wait_pidfd(run->job.pidfd, limit_ns)) {
                lkg_run_cancel(run, NULL);
                return -ETIMEDOUT;
        }
        return lkg_run_finish(run, max, ret_output, ret_size);
}

void lkg_run_cancel(struct lkg_run *run, sd_event *event)
{
        if (run->job.pid <= 0)
                return;
        if (!lkg_job_cancel(&run->job) && event)
                lkg_reap_later(event, run->job.pid, run->job.pidfd);
        else
                lkg_close(run->job.pidfd);
        run->job = (struct lkg_job)LKG_JOB_INIT;
        run->output = lkg_close(run->output);
        lkg_said_all(run->program, run->said);
        run->said = lkg_close(run->said);
}
