/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --background and mount.lkgfs: the caller's process waits until the view is served or has failed, and exits
 * with that result; the daemon continues in its own session and logs to the journal, or to a file if there
 * is none.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <lkg/text.h>
#include <lkg/base.h>

#include "supervisor.h"

#define JOURNAL_SOCKET "/run/systemd/journal/stdout"
#define LOG_NAME       "lkgfsd.log"

/* One message. */
struct report {
        int code;
        char text[16384]; /* the reason and, without a journal, the output of the children */
};

static int wait_for_report(int fd, pid_t pid)
{
        LKG_CLEANUP(lkg_freep) struct report *report = calloc(1, sizeof(*report));
        ssize_t n = report ? TEMP_FAILURE_RETRY(recv(fd, report, sizeof(*report), 0)) : 0;

        if (n != (ssize_t)sizeof(*report)) {
                lkg_log_error("the daemon (pid %d) exited without a message", (int)pid);
                return EX_SOFTWARE;
        }
        report->text[sizeof(report->text) - 1] = '\0';
        if (report->code != 0)
                lkg_shown_error("%s", report->text);
        return report->code;
}

int lkg_background_enter(int *ret_ready_fd, int *ret_code, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int ours = -EBADF, theirs = -EBADF;
        int r = lkg_channel_pair(&ours, &theirs);
        pid_t pid;

        if (r < 0)
                return lkg_fail(err, EX_OSERR, -r, "socketpair");
        pid = fork();
        if (pid < 0)
                return lkg_fail(err, EX_OSERR, errno, "fork");
        if (pid > 0) {
                theirs = lkg_close(theirs);
                *ret_code = wait_for_report(ours, pid);
                return 1;
        }
        (void)setsid();
        *ret_ready_fd = LKG_STEAL_FD(theirs);
        return 0;
}

static int open_journal(void)
{
        char stream[64];
        struct stat st;
        int fd;

        if (access(JOURNAL_SOCKET, W_OK) < 0)
                return -errno;
        fd = sd_journal_stream_fd("lkgfsd", LOG_INFO, /* level_prefix= */ 1);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) == 0) {
                /* As the service manager sets it: our programs then log with structured fields. */
                (void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
                               (unsigned long long)st.st_ino);
                (void)setenv("JOURNAL_STREAM", stream, 1);
        }
        return fd;
}

static int open_log(struct lkg_supervisor *s)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        int fd;

        if (asprintf(&path, "%s/" LOG_NAME, s->settings->runtime_dir) < 0)
                return -ENOMEM;
        fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0640);
        fd = fd < 0 ? -errno : lkg_lift_fd(fd);
        if (fd < 0)
                return fd;
        s->background.log_fd = fd;
        s->background.log_start = lseek(fd, 0, SEEK_END);
        return fcntl(fd, F_DUPFD_CLOEXEC, LKG_FD_BASE);
}

int lkg_background_redirect(struct lkg_supervisor *s, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        LKG_CLEANUP(lkg_closep) int sink = -EBADF;

        if (!s->options->background)
                return 0;
        sink = open_journal();
        if (sink < 0)
                sink = open_log(s);
        if (sink < 0)
                return lkg_fail(err, EX_IOERR, -sink, "open %s/" LOG_NAME, s->settings->runtime_dir);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(sink, STDOUT_FILENO) < 0 ||
            dup2(sink, STDERR_FILENO) < 0)
                return lkg_fail(err, EX_OSERR, errno, "redirect the output");
        s->background.redirected = true;
        lkg_log_init("lkgfsd", s->options->verbose ? LOG_DEBUG : LOG_INFO);
        return 0;
}

void lkg_background_report(struct lkg_supervisor *s, int code, const char *text)
{
        LKG_CLEANUP(lkg_freep)
        struct report *report = s->background.ready_fd < 0 ? NULL : calloc(1, sizeof(*report));
        ssize_t n = 0;

        if (report) {
                report->code = code;
                /* The log lines since the start: the caller sees no other output. */
                if (code != 0 && s->background.log_fd >= 0)
                        n = pread(s->background.log_fd, report->text, sizeof(report->text) - 1,
                                  s->background.log_start);
                if (code != 0 && n <= 0)
                        (void)snprintf(report->text, sizeof(report->text), "lkgfsd: %s\n", text);
                if (send(s->background.ready_fd, report, sizeof(*report), MSG_NOSIGNAL) < 0)
                        lkg_log_warning("the process that started us is gone");
        }
        s->background.ready_fd = lkg_close(s->background.ready_fd);
}

void lkg_background_cleanup(struct lkg_supervisor *s)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;

        /* Keep the log only if it is the only record of a failure. */
        if (s->background.log_fd >= 0 && (s->end.code == 0 || !s->announced) &&
            asprintf(&path, "%s/" LOG_NAME, s->settings->runtime_dir) >= 0)
                (void)unlink(path);
}
