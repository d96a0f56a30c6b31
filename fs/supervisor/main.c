/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfsd, also installed as mount.lkgfs: the process that mounts a view and keeps it alive. See
 * supervisor.h.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <lkg-config.h>

#include <lkg/text.h>
#include <lkg/base.h>

#include "supervisor.h"

#define OOM_SCORE_PROTECTED "-999" /* killed last; the engine resets its own score */

/* None of our descriptors may become 0, 1 or 2. */
static int ensure_standard_fds(void)
{
        int fd;

        do {
                fd = open("/dev/null", O_RDWR);
                if (fd < 0)
                        return -errno;
        } while (fd <= STDERR_FILENO);
        lkg_close(fd);
        return 0;
}

static void ignore(int signal)
{
        struct sigaction action = { .sa_handler = SIG_IGN };

        (void)sigaction(signal, &action, NULL);
}

static void prepare_process(void)
{
        static const struct rlimit no_core = { 0, 0 };
        struct sigaction action = { .sa_handler = SIG_DFL };
        int r;

        (void)sigaction(SIGCHLD, &action,
                        NULL); /* if the parent ignores it, we would lose our children's exit codes */
        ignore(SIGPIPE);
        ignore(SIGUSR1);
        ignore(SIGUSR2);
        (void)umask(0022);
        /* Writing a core takes longer than a restart, and callers wait for it. */
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)prctl(PR_SET_DUMPABLE, 0); /* it handles credentials: a debugger needs CAP_SYS_PTRACE */
        r = lkg_set_oom_score(OOM_SCORE_PROTECTED);
        if (r < 0)
                lkg_log_debug("no protection from the out-of-memory killer: %s", strerror(-r));
}

static int run(const struct lkg_options *options)
{
        struct lkg_error err = { 0 };
        int ready_fd = -EBADF, code = 0, r;

        lkg_log_init("lkgfsd", options->verbose ? LOG_DEBUG : LOG_INFO);
        if (options->background && !options->fake) {
                r = lkg_background_enter(&ready_fd, &code, &err);
                if (r == 1)
                        return code;
                if (r != 0) {
                        lkg_log_error("%s", err.message);
                        return r;
                }
        }
        prepare_process();
        lkg_log_never_wait();
        return lkg_supervisor_run(options, ready_fd);
}

int main(int argc, char *argv[])
{
        struct lkg_options options = { 0 };
        struct lkg_error err = { 0 };
        int code;

        if (ensure_standard_fds() < 0)
                return EX_OSERR;
        code = lkg_options_parse(argc, argv, &options, &err);
        if (code != 0)
                lkg_shown_error("%s: %s\n", options.helper ? "mount.lkgfs" : "lkgfsd", err.message);
        else if (options.action == LKG_ACTION_HELP)
                (void)fputs(lkg_options_usage(options.helper), stdout);
        else if (options.action == LKG_ACTION_VERSION)
                (void)printf("lkgfsd %s\n", LKG_VERSION);
        else
                code = run(&options);
        code = lkg_options_exit_code(options.helper, code);
        lkg_options_deinit(&options);
        return code;
}
