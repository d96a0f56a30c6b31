/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging: native journal entries with fields if stderr is the journal, plain lines otherwise. Neither ever
 * blocks.
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/text.h>

/* ---- journal ---- */

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Add a field to an entry; @value may have several lines. */
static void put_field(struct lkg_buf *entry, const char *name, const char *value)
{
        uint64_t size = htole64(strlen(value));

        if (!strchr(value, '\n')) {
                lkg_buf_printf(entry, "%s=%s\n", name, value);
                return;
        }
        lkg_buf_printf(entry, "%s\n", name);
        lkg_buf_append(entry, (const char *)&size, sizeof(size));
        lkg_buf_printf(entry, "%s\n", value);
}

/*
 * Send an entry without waiting. (sd_journal_sendv(3) waits if journald is stopped or too slow, and a daemon that a
 * node depends on must not wait for a log.)
 *
 * Return: 0; -EAGAIN: journald is not ready; another -errno.
 */
static int send_entry(const struct lkg_buf *entry)
{
        const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET };
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        if (lkg_buf_failed(entry))
                return -ENOMEM;
        /* A new socket for each line: none to keep across fork(), and lines are rare. */
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || sendto(fd, entry->data, entry->size, MSG_NOSIGNAL | MSG_DONTWAIT,
                             (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        return 0;
}

/* ---- lines ---- */

#define LINE_MAX_BYTES 1536

/* Set once by lkg_log_init() before any thread exists, then only read. */
static const char *program_name = "lkgfs";
static int max_logged = LOG_INFO;
static bool to_journal, with_prefix, is_socket, ask_first, for_supervisor;
static int (*divert)(int priority, const struct lkg_log_fields *fields, const char *text);
static atomic_uint n_lost; /* lines that could not be written to standard error */

/* JOURNAL_STREAM=dev:ino names the socket that stdout or stderr was connected to (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long dev, ino;
        struct stat st;

        if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2 || fstat(STDERR_FILENO, &st) < 0)
                return false;
        return st.st_dev == (dev_t)dev && st.st_ino == (ino_t)ino;
}

void lkg_log_init(const char *program, int max_priority)
{
        struct stat st;

        program_name = program;
        max_logged = max_priority;
        to_journal = stderr_is_journal();
        is_socket = fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode);
        with_prefix = !to_journal && getenv("INVOCATION_ID") && !isatty(STDERR_FILENO);
}

void lkg_log_for_supervisor(int (*send)(int priority, const struct lkg_log_fields *fields, const char *text))
{
        for_supervisor = with_prefix = true;
        to_journal = false;
        divert = send;
}

void lkg_log_never_wait(void)
{
        char path[64];
        struct stat st;
        int fd;

        if (fstat(STDERR_FILENO, &st) < 0 || !(S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO)))
                return;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", STDERR_FILENO);
        fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        ask_first = fd < 0; /* a security profile that does not allow it */
        if (fd < 0)
                return;
        (void)dup2(fd, STDERR_FILENO);
        (void)close(fd);
}

static int log_journal(const char *program, int priority, const struct lkg_log_fields *fields,
                       const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf entry = LKG_BUF_INIT;
        char number[32];

        put_field(&entry, "MESSAGE", text);
        (void)snprintf(number, sizeof(number), "%d", priority);
        put_field(&entry, "PRIORITY", number);
        put_field(&entry, "SYSLOG_IDENTIFIER", program);
        if (fields && fields->component)
                put_field(&entry, "LKGFS_COMPONENT", fields->component);
        if (fields && fields->generation) {
                (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)fields->generation);
                put_field(&entry, "LKGFS_GENERATION", number);
        }
        if (fields && fields->layer)
                put_field(&entry, "LKGFS_LAYER", fields->layer);
        if (fields && fields->message_id)
                put_field(&entry, "MESSAGE_ID", fields->message_id);
        return send_entry(&entry);
}

/*
 * One write per line, so that lines of several processes do not mix; if a pipe is full, the line is lost,
 * but we do not block. A socket (the journal's) has no name by which it could be reopened
 * (lkg_log_never_wait()).
 */
static bool put_line(const char *line, size_t size)
{
        struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };

        if (is_socket)
                return send(STDERR_FILENO, line, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
        if (ask_first && poll(&out, 1, 0) != 1)
                return false;
        return write(STDERR_FILENO, line, size) >= 0;
}

static void say_what_was_lost(const char *program)
{
        unsigned n = atomic_exchange(&n_lost, 0);
        char line[128];
        int size;

        if (n == 0)
                return;
        size = snprintf(line, sizeof(line), "%s%s: %u lines could not be written here\n",
                        with_prefix ? "<4>" : "", program, n);
        if (!put_line(line, (size_t)size))
                atomic_fetch_add(&n_lost, n);
}

static void write_stderr(int priority, const char *start, const char *context, const char *text, size_t size)
{
        char line[2048], prefix[8] = "";
        int n;

        if (with_prefix)
                (void)snprintf(prefix, sizeof(prefix), "<%d>", priority);
        n = snprintf(line, sizeof(line), "%s%s%s%.*s\n", prefix, start, context, (int)size, text);
        if (n < 0)
                return;
        if ((size_t)n >= sizeof(line)) {
                n = sizeof(line) - 1;
                line[n - 1] = '\n';
        }
        if (!put_line(line, (size_t)n))
                atomic_fetch_add(&n_lost, 1);
}

static void log_stderr(const char *program, int priority, const struct lkg_log_fields *fields,
                       const char *text)
{
        char context[320] = "", start[64] = "";

        if (fields && fields->component && fields->generation)
                (void)snprintf(context, sizeof(context), "%s, generation %llu: ", fields->component,
                               (unsigned long long)fields->generation);
        else if (fields && fields->component)
                (void)snprintf(context, sizeof(context), "%s: ", fields->component);
        if (!for_supervisor) {
                say_what_was_lost(program);
                (void)snprintf(start, sizeof(start), "%s: ", program);
        }
        if (program == program_name && !for_supervisor) {
                write_stderr(priority, start, context, text, strlen(text));
                return;
        }
        /*
         * A child's line must not look like that of another program; and lkgfsd, which knows whose pipe this
         * is, treats each line as a message.
         */
        for (size_t n; *text; text += n + (text[n] == '\n')) {
                n = strcspn(text, "\n");
                write_stderr(priority, start, context, text, n);
        }
}

/*
 * Some of our own messages have several lines; foreign text never has: names and quotes were escaped when
 * they were inserted.
 */
static void blank_lines(char *text)
{
        for (size_t n; *text; text += n + (text[n] == '\n')) {
                n = strcspn(text, "\n");
                lkg_blank_hidden(text, n, '?');
        }
}

static void write_line(const char *program, int priority, const struct lkg_log_fields *fields,
                       const char *text)
{
        int r = divert       ? divert(priority, fields, text)
                : to_journal ? log_journal(program, priority, fields, text)
                             : -ENOTCONN;

        if (r < 0)
                log_stderr(program, priority, fields, text);
}

void lkg_log(int priority, const struct lkg_log_fields *fields, const char *fmt, ...)
{
        char text[LINE_MAX_BYTES];
        int saved = errno;
        va_list ap;

        if (priority > max_logged)
                return;
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        blank_lines(text);
        write_line(program_name, priority, fields, text);
        errno = saved;
}

static const char *shown(const char *text, char *buf, size_t size)
{
        if (!text)
                return NULL;
        (void)snprintf(buf, size, "%s", text);
        lkg_blank_hidden(buf, strlen(buf), '?');
        return buf;
}

void lkg_log_of(const char *program, int priority, const struct lkg_log_fields *fields, const char *line)
{
        char text[LINE_MAX_BYTES], component[64], layer[256];
        struct lkg_log_fields theirs = fields ? *fields : (struct lkg_log_fields){ 0 };
        int saved = errno;

        if (priority > max_logged)
                return;
        theirs.component = shown(theirs.component, component, sizeof(component));
        theirs.layer = shown(theirs.layer, layer, sizeof(layer));
        (void)snprintf(text, sizeof(text), "%s", line);
        blank_lines(text);
        write_line(program, priority < LOG_ERR ? LOG_ERR : priority, &theirs, text);
        errno = saved;
}
