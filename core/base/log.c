/* SPDX-License-Identifier: Apache-2.0 */
/* Logging: native journal entries with fields when stderr is the journal, plain lines otherwise. */
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <lkg/buf.h>
#include <lkg/log.h>

#define LINE_MAX_BYTES 1536

/* Set once by lkg_log_init() before any thread exists, read only afterwards. */
static const char *program_name = "lkgfs";
static int max_logged = LOG_INFO;
static bool to_journal, with_prefix;
static int (*divert)(int priority, const struct lkg_log_fields *fields, const char *text);

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
        program_name = program;
        max_logged = max_priority;
        to_journal = stderr_is_journal();
        with_prefix = !to_journal && getenv("INVOCATION_ID") && !isatty(STDERR_FILENO);
}

void lkg_log_divert(int (*send)(int priority, const struct lkg_log_fields *fields, const char *text))
{
        if (!to_journal)
                return;
        divert = send;
        with_prefix = true;
}

/* One journal field. The strings live in the caller's frame until sd_journal_sendv() has copied them. */
static void add_field(struct iovec *iov, int *n, char *buf, size_t size, const char *fmt, ...)
        LKG_PRINTF(5, 6);
static void add_field(struct iovec *iov, int *n, char *buf, size_t size, const char *fmt, ...)
{
        va_list ap;
        int length;

        va_start(ap, fmt);
        length = vsnprintf(buf, size, fmt, ap);
        va_end(ap);
        if (length < 0)
                return;
        iov[*n].iov_base = buf;
        iov[*n].iov_len = (size_t)length < size ? (size_t)length : size - 1;
        (*n)++;
}

static int log_journal(const char *program, int priority, const struct lkg_log_fields *fields,
                       const char *text)
{
        char message[1600], prio[16], ident[64], component[128], generation[64], layer[256], id[64];
        struct iovec iov[7];
        int n = 0;

        add_field(iov, &n, message, sizeof(message), "MESSAGE=%s", text);
        add_field(iov, &n, prio, sizeof(prio), "PRIORITY=%d", priority);
        add_field(iov, &n, ident, sizeof(ident), "SYSLOG_IDENTIFIER=%s", program);
        if (fields && fields->component)
                add_field(iov, &n, component, sizeof(component), "LKGFS_COMPONENT=%s", fields->component);
        if (fields && fields->generation)
                add_field(iov, &n, generation, sizeof(generation), "LKGFS_GENERATION=%llu",
                          (unsigned long long)fields->generation);
        if (fields && fields->layer)
                add_field(iov, &n, layer, sizeof(layer), "LKGFS_LAYER=%s", fields->layer);
        if (fields && fields->message_id)
                add_field(iov, &n, id, sizeof(id), "MESSAGE_ID=%s", fields->message_id);
        return sd_journal_sendv(iov, n);
}

static void log_stderr(const char *program, int priority, const struct lkg_log_fields *fields,
                       const char *text)
{
        char line[2048], prefix[8] = "", context[320] = "";
        int n;

        if (with_prefix)
                (void)snprintf(prefix, sizeof(prefix), "<%d>", priority);
        if (fields && fields->component && fields->generation)
                (void)snprintf(context, sizeof(context), "%s, generation %llu: ", fields->component,
                               (unsigned long long)fields->generation);
        else if (fields && fields->component)
                (void)snprintf(context, sizeof(context), "%s: ", fields->component);
        n = snprintf(line, sizeof(line), "%s%s: %s%s\n", prefix, program, context, text);
        if (n < 0)
                return;
        if ((size_t)n >= sizeof(line)) {
                n = sizeof(line) - 1;
                line[n - 1] = '\n';
        }
        /* One write per line, so that lines of several processes do not mix; a full pipe loses a line, not us. */
        if (write(STDERR_FILENO, line, (size_t)n) < 0)
                return;
}

/* Some of our messages have lines; what others wrote has none by now: names and quotes are escaped where they are put in. */
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
        int r = !to_journal ? -ENOTCONN
                : divert    ? divert(priority, fields, text)
                            : log_journal(program, priority, fields, text);

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

void lkg_log_of(const char *program, int priority, const struct lkg_log_fields *fields, const char *line)
{
        char text[LINE_MAX_BYTES];
        int saved = errno;

        if (priority > max_logged)
                return;
        (void)snprintf(text, sizeof(text), "%s", line);
        blank_lines(text);
        write_line(program, priority < LOG_EMERG ? LOG_EMERG : priority, fields, text);
        errno = saved;
}
