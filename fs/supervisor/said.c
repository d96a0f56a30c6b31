/* SPDX-License-Identifier: Apache-2.0 */
#include "said.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <lkg/file.h>

#define CHUNK        4096u
#define CHUNKS       4u                        /* per turn: then others are served */
#define CHUNKS_LAST  (LKG_SAID_PIPE / CHUNK)   /* the capacity of a pipe; a writer may keep writing */
#define PAUSE_NS     (100 * LKG_NSEC_PER_MSEC) /* between two reads from a child without allowance */
#define AGAIN_BYTES  (4 * LKG_SAID_LINE)       /* needed before lines are logged again */
#define RAW_PRIORITY LOG_WARNING               /* for text without our format: a library's last message */

/* ---- pipes ---- */

/* A separate file description. */
static int open_again(int fd, int flags)
{
        char path[64];
        int again;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, flags | O_NONBLOCK | O_CLOEXEC);
        return again < 0 ? -errno : lkg_lift_fd(again);
}

int lkg_said_pipe(int *ret_ours, int *ret_theirs)
{
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int both, fds[2];

        if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
                return -errno;
        ours = lkg_lift_fd(fds[0]);
        theirs = lkg_lift_fd(fds[1]);
        if (ours < 0 || theirs < 0)
                return ours < 0 ? ours : theirs;
        (void)fcntl(theirs, F_SETPIPE_SZ, (int)LKG_SAID_PIPE); /* otherwise 64 KiB */
        both = open_again(theirs, O_RDWR);
        if (both >= 0) { /* without /proc: one end each */
                lkg_close(theirs);
                theirs = both;
        }
        *ret_ours = LKG_STEAL_FD(ours);
        *ret_theirs = LKG_STEAL_FD(theirs);
        return 0;
}

/*
 * Its standard error may be anything by now. An anonymous pipe can be opened without any other process, and
 * read without waiting, because the file description is ours.
 */
int lkg_said_of(int pid)
{
        char path[64];
        struct stat st;
        struct statfs fs;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, STDERR_FILENO);
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || (S_ISFIFO(st.st_mode) && fstatfs(fd, &fs) < 0))
                return -errno;
        return S_ISFIFO(st.st_mode) && fs.f_type == PIPEFS_MAGIC ? open_again(fd, O_RDONLY) : -ENOTSUP;
}

/* ---- the allowance ---- */

static void refill(struct lkg_said *said)
{
        uint64_t now_ns = lkg_boottime_ns(), more;

        if (said->filled_ns == 0) {
                said->left = LKG_SAID_BURST;
                said->filled_ns = now_ns;
        }
        more = (now_ns - said->filled_ns) / 1000 * LKG_SAID_RATE / 1000000;
        if (more == 0)
                return;
        said->left = more > LKG_SAID_BURST - said->left ? LKG_SAID_BURST : said->left + (size_t)more;
        said->filled_ns = now_ns;
        if (said->left >= AGAIN_BYTES)
                said->spent = false;
}

static void leave_out(struct lkg_said *said, int priority, const char *text)
{
        struct lkg_said_line *line = &said->last[said->n_left_out++ % LKG_SAID_LAST];

        said->spent = true;
        line->priority = priority;
        (void)snprintf(line->text, sizeof(line->text), "%s", text);
}

static void tell_left_out(struct lkg_said *said)
{
        if (said->n_left_out == 0)
                return;
        lkg_log_warning("%s says more than is logged: %u lines left out", said->program, said->n_left_out);
        said->n_left_out = 0;
}

void lkg_said_line(struct lkg_said *said, int priority, const struct lkg_log_fields *fields,
                   const char *text)
{
        size_t price = strlen(text) + LKG_SAID_PRICE;

        refill(said);
        if (said->spent || said->left < price) {
                leave_out(said, priority, text);
                return;
        }
        tell_left_out(said);
        said->left -= price;
        lkg_log_of(said->program, priority, fields, text);
}

/* ---- lines ---- */

/* `<priority>text`, or text from a library. */
static void take_line(struct lkg_said *said)
{
        const char *text = said->line;
        int priority = RAW_PRIORITY;

        said->line[said->used] = '\0';
        if (text[0] == '<' && text[1] >= '0' && text[1] <= '7' && text[2] == '>') {
                priority = text[1] - '0';
                text += 3;
        }
        if (*text)
                lkg_said_line(said, priority, NULL, text);
        said->used = 0;
}

static void take_bytes(struct lkg_said *said, const char *data, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                if (data[i] != '\n')
                        said->line[said->used++] = data[i] ? data[i] : '?';
                if (data[i] == '\n' || said->used == sizeof(said->line) - 1)
                        take_line(said);
        }
}

static bool is_open(const struct lkg_said *said)
{
        return said->program && said->fd >= 0;
}

/* Return: false: nothing more for now; with @ret_end set: nothing more ever. */
static bool take_chunk(struct lkg_said *said, bool *ret_end)
{
        char data[CHUNK];
        ssize_t n = is_open(said) ? read(said->fd, data, sizeof(data)) : 0;

        *ret_end = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
        if (n > 0)
                take_bytes(said, data, (size_t)n);
        return n > 0;
}

/* ---- a running child ---- */

static void on_pause_over(void *userdata)
{
        struct lkg_said *said = userdata;

        (void)sd_event_source_set_enabled(said->source, SD_EVENT_ON);
}

/* Its output fills the pipe meanwhile; then it gets EAGAIN. */
static void pause_listening(struct lkg_said *said)
{
        if (lkg_timer_is_set(&said->pause) ||
            lkg_timer_set(&said->pause, sd_event_source_get_event(said->source), PAUSE_NS, 0, on_pause_over,
                          said) < 0)
                return;
        (void)sd_event_source_set_enabled(said->source, SD_EVENT_OFF);
}

static int on_said(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_said *said = userdata;
        bool end = false;

        for (unsigned i = 0; i < (said->spent ? CHUNKS_LAST : CHUNKS) && take_chunk(said, &end); i++) {
        }
        if (end)
                said->source = sd_event_source_disable_unref(said->source);
        else if (said->spent)
                pause_listening(said);
        return 0;
}

int lkg_said_watch(struct lkg_said *said, sd_event *event, const char *program, int fd)
{
        int r;

        lkg_said_end(said);
        said->program = program;
        r = sd_event_add_io(event, &said->source, fd, EPOLLIN, on_said, said);
        if (r < 0) {
                lkg_close(fd);
                return r;
        }
        said->fd = fd;
        return 0;
}

void lkg_said_hear(struct lkg_said *said)
{
        bool end;

        for (unsigned i = 0; i < CHUNKS_LAST && take_chunk(said, &end); i++) {
        }
}

static void tell_last(struct lkg_said *said)
{
        unsigned n = said->n_left_out, kept = n < LKG_SAID_LAST ? n : LKG_SAID_LAST;

        tell_left_out(said);
        for (unsigned i = n - kept; i != n; i++) {
                const struct lkg_said_line *line = &said->last[i % LKG_SAID_LAST];

                lkg_log_of(said->program, line->priority, NULL, line->text);
        }
}

void lkg_said_end(struct lkg_said *said)
{
        said->source = sd_event_source_disable_unref(said->source);
        lkg_timer_stop(&said->pause);
        if (!is_open(said))
                return;
        lkg_said_hear(said);
        if (said->used > 0)
                take_line(said);
        tell_last(said);
        said->fd = lkg_close(said->fd);
}

/* ---- an ended child ---- */

void lkg_said_all(const char *program, int fd)
{
        struct lkg_said *said = fd < 0 ? NULL : calloc(1, sizeof(*said));
        if (!said)
                return;
        said->program = program;
        said->fd = fcntl(fd, F_DUPFD_CLOEXEC, LKG_FD_BASE);
        lkg_said_end(said);
        free(said);
}
