/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --background and mount.lkgfs: the caller's process waits until the view is served or has failed, and exits
 * with that result; the daemon continues in its own session and logs to the journal, or to a file if there
 * is none.
 */
#include <fcntl.h>
#include <sys/stat.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <lkg/text.h>
#include <lkg/base.h>

#include "supervisor.h"

#define JOURNAL_SOCKET "/run/systemd/journal/stdout"
#define LOG_NAME       "lkgfsd.log"

/* Sent with one write; atomicity (PIPE_BUF) is not needed, because there is one writer. */
struct report {
        int code;
        char text[16384]; /* the reason and, without a journal, the output of the children */
};

static int wait_for_report(int fd, pid_t pid)
{
        LKG_CLEANUP(lkg_freep) struct report *report = calloc(1, sizeof(*report));
        size_t n = 0;

        while (report && n < sizeof(*report)) {
                ssize_t k = read(fd, (char *)report + n, sizeof(*report) - n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        break;
                n += (size_t)k;
        }
        if (!report || n != sizeof(*report)) {
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
        int fds[2], fd;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return lkg_fail(err, EX_OSERR, errno, "pipe");
        pid = fork();
        if (pid < 0) {
                lkg_close(fds[0]);
                lkg_close(fds[1]);
                return lkg_fail(err, EX_OSERR, errno, "fork");
        }
        if (pid > 0) {
                lkg_close(fds[1]);
                *ret_code = wait_for_report(fds[0], pid);
                lkg_close(fds[0]);
                return 1;
        }
        lkg_close(fds[0]);
        (void)setsid();
        fd = lkg_lift_fd(fds[1]);
        if (fd < 0)
                return lkg_fail(err, EX_OSERR, -fd, "pipe");
        *ret_ready_fd = fd;
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

/* The log lines since the start, for the caller, which sees no other output. */
static size_t append_log(const struct lkg_supervisor *s, char *text, size_t size)
{
        ssize_t n;

        if (s->background.log_fd < 0 || size == 0)
                return 0;
        n = pread(s->background.log_fd, text, size - 1, s->background.log_start);
        if (n < 0)
                n = 0;
        text[n] = '\0';
        return (size_t)n;
}

void lkg_background_report(struct lkg_supervisor *s, int code, const char *text)
{
        LKG_CLEANUP(lkg_freep) struct report *report = NULL;
        size_t used;
        ssize_t n;

        if (s->background.ready_fd < 0)
                return;
        report = calloc(1, sizeof(*report));
        if (report) {
                report->code = code;
                used = code != 0 ? append_log(s, report->text, sizeof(report->text)) : 0;
                if (code != 0 && used == 0)
                        (void)snprintf(report->text, sizeof(report->text), "lkgfsd: %s\n", text);
                n = write(s->background.ready_fd, report, sizeof(*report));
                if (n != (ssize_t)sizeof(*report))
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
