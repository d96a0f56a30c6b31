/* SPDX-License-Identifier: Apache-2.0 */
/* What every file needs: macros, arrays that grow, errors and findings, the log. */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/*
 * Small things every folder needs: cleanup attributes, ownership transfer, time.
 *
 * No state, no locks: everything here may be called from any thread.
 */

#define LKG_CLEANUP(f)    __attribute__((cleanup(f)))
#define LKG_PRINTF(f, a)  __attribute__((format(printf, f, a)))
#define LKG_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LKG_NSEC_PER_SEC  UINT64_C(1000000000)
#define LKG_NSEC_PER_MSEC UINT64_C(1000000)
#define LKG_SHA256_BYTES  32
#define LKG_SHA256_HEX    65 /* 64 digits and the final NUL */

/* Passes a pointer to its next owner: the variable is NULL afterwards, so its cleanup does nothing. */
#define LKG_STEAL(p)                             \
        ({                                       \
                __typeof__(p) _lkg_stolen = (p); \
                (p) = NULL;                      \
                _lkg_stolen;                     \
        })

/* The same for a file descriptor; -EBADF is "none" everywhere. */
#define LKG_STEAL_FD(fd)            \
        ({                          \
                int _lkg_fd = (fd); \
                (fd) = -EBADF;      \
                _lkg_fd;            \
        })

static inline void lkg_freep(void *p)
{
        free(*(void **)p);
}

/**
 * lkg_close() - close, preserve errno, always return -EBADF: `fd = lkg_close(fd)` leaves no stale number.
 */
static inline int lkg_close(int fd)
{
        if (fd >= 0) {
                int saved = errno;

                (void)close(fd);
                errno = saved;
        }
        return -EBADF;
}

static inline void lkg_closep(int *fd)
{
        *fd = lkg_close(*fd);
}

/** lkg_earlier(), lkg_later() - the smaller and the larger one, of two times mostly. */
static inline uint64_t lkg_earlier(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}
static inline uint64_t lkg_later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/** lkg_after() - @span after @time; UINT64_MAX, which is never, if that is too late. */
static inline uint64_t lkg_after(uint64_t time, uint64_t span)
{
        uint64_t sum;

        return __builtin_add_overflow(time, span, &sum) ? UINT64_MAX : sum;
}

/** lkg_boottime_ns() - absolute CLOCK_BOOTTIME in nanoseconds; the one clock for deadlines. */
uint64_t lkg_boottime_ns(void);

/** lkg_realtime_ns() - wall time in nanoseconds since 1970; for people and for files. */
uint64_t lkg_realtime_ns(void);
/** lkg_realtime_of() - the wall time of a moment in the past that lkgfs has by lkg_boottime_ns(). */
uint64_t lkg_realtime_of(uint64_t boottime_ns);

/**
 * lkg_timespec_ns() - for comparisons only: a user may set a file time that does not fit into 64 bits, which
 * wraps.
 */
static inline int64_t lkg_timespec_ns(const struct timespec *t)
{
        return (int64_t)((uint64_t)t->tv_sec * LKG_NSEC_PER_SEC + (uint64_t)t->tv_nsec);
}

/**
 * lkg_process_running() - is @pid (started at @start_time, 0 = any process with this pid) running?
 * Return: 1; 0 = it is stopped, by a signal or a debugger; -ESRCH = it has ended.
 */
int lkg_process_running(int pid, uint64_t start_time);

/** lkg_process_start_time() - field 22 of /proc/@pid/stat, 0 if there is no such process. */
uint64_t lkg_process_start_time(int pid);
/**
 * lkg_process_namespace() - the number of the namespace that a process or thread is in; valid as long as any process is in it.
 * @type: as in /proc/PID/ns: "mnt", "user" ...
 *
 * Source: namespaces(7).
 * Return: inode; 0: there is no such process, or we are not allowed to read it.
 */
ino_t lkg_process_namespace(int pid, const char *type);

/**
 * lkg_format_rfc3339() - write @ns since 1970 as `2026-01-02T03:04:05Z` (whole seconds, UTC) to @buf[21].
 */
void lkg_format_rfc3339(uint64_t ns, char buf[static 21]);

/** lkg_format_rfc3339_ns() - the same with all digits of the fraction, to @buf[31]. */
void lkg_format_rfc3339_ns(uint64_t ns, char buf[static 31]);

/**
 * lkg_parse_rfc3339() - parse `2026-01-02T03:04:05[.123456789](Z|+01:00)`; digits of the fraction after the
 * ninth are dropped.
 * Return: 0; -EINVAL: not RFC 3339, before 1970, or later than 64 bits of nanoseconds reach (2554).
 */
int lkg_parse_rfc3339(const char *text, uint64_t *ret_ns);
#define LKG_BOOT_ID_MAX 40
/** lkg_boot_id() - the boot id from /proc/sys/kernel/random/boot_id; "" if it cannot be read. */
void lkg_boot_id(char ret[static LKG_BOOT_ID_MAX]);

/** lkg_sha256() - SHA-256 of @data. Return: 0; lkg_lack(). */
int lkg_sha256(const void *data, size_t size, unsigned char ret[static LKG_SHA256_BYTES]);
/** lkg_sha256_hex() - SHA-256 of @data as 64 lower-case hex digits and NUL. Return: 0; lkg_lack(). */
int lkg_sha256_hex(const void *data, size_t size, char ret[static LKG_SHA256_HEX]);
/** lkg_is_sha256() - are these 64 lower-case hex digits? */
bool lkg_is_sha256(const char *text);
/** lkg_hash() - FNV-1a, for tables; not safe against chosen collisions. The same in all our builds. */
uint64_t lkg_hash(uint64_t seed, const void *data, size_t size);

/**
 * lkg_base64_decode() - decode like Go's base64.StdEncoding: padded, line breaks ignored.
 * @to: room for 3/4 of @size, at least 3 bytes; may be @from
 * Return: number of bytes; -1: it is not base64.
 */
ssize_t lkg_base64_decode(const char *from, size_t size, char *to);

/* ---- no memory ---- */

/*
 * Processes that can be replaced at any moment (the engine, the tool, the reader of the settings) end without memory, see
 * docs/decisions/034-no-memory.md: half a document is none, and half a publication neither. The folders that only they use report no
 * lack of memory. core/base, which the file server and lkgfsd use as well, does in those two.
 */

/** lkg_at_no_memory() - from now on a lack of memory is the end of this process. @last is called first; without memory of its own. */
void lkg_at_no_memory(void (*last)(void));
/** lkg_no_memory() - end this process with EX_OSERR, after what lkg_at_no_memory() has set. */
_Noreturn void lkg_no_memory(void);
/** lkg_lack() - there is no memory. Return: -ENOMEM, where that is not the end. */
int lkg_lack(void);

/** lkg_must() - @memory, which was allocated just now. */
static inline void *lkg_must(void *memory)
{
        if (!memory)
                lkg_no_memory();
        return memory;
}

/** lkg_need() - @r, of a call that fails without memory. */
static inline int lkg_need(int r)
{
        if (r == -ENOMEM)
                lkg_no_memory();
        return r;
}

/* ---- array ---- */

/*
 * Growing arrays. An array is three members of the struct that owns it: `items`, `n` and, if it grows in
 * steps, `allocated`. All are initially 0, and free(items) frees it.
 */

static inline int lkg_array_resize(void *items, size_t n, size_t size)
{
        void *grown, *old;

        memcpy(&old, items, sizeof(old));
        grown = reallocarray(old, n, size);
        if (!grown)
                return lkg_lack();
        memcpy(items, &grown, sizeof(grown));
        return 0;
}

static inline int lkg_array_reserve(void *items, size_t n, size_t *allocated, size_t size)
{
        size_t more = *allocated ? 2 * *allocated : 4;

        if (n < *allocated)
                return 0;
        if (lkg_array_resize(items, more, size) < 0)
                return -ENOMEM;
        *allocated = more;
        return 0;
}

/**
 * LKG_RESERVE() - make room for one more item after the existing @n; doubles the size.
 * Return: 0; -ENOMEM, nothing changed.
 */
#define LKG_RESERVE(items, n, allocated) lkg_array_reserve(&(items), n, &(allocated), sizeof(*(items)))

/** LKG_RESIZE() - make room for @n items; never shrinks. Return: 0; -ENOMEM, nothing changed. */
#define LKG_RESIZE(items, n) lkg_array_resize(&(items), (n), sizeof(*(items)))

/** LKG_GROW() - make room for exactly one more: for arrays with few items. */
#define LKG_GROW(items, n) LKG_RESIZE(items, (n) + 1)

/* ---- error ---- */

/*
 * Two kinds of errors.
 *
 * A *fault* (memory, disk, kernel) is a struct lkg_error: filled once, where the cause is known, passed up,
 * and printed once by a main(). A *finding* is data: a document, a drop-in directory or a configuration is
 * wrong in one place. Validation collects all findings in a struct lkg_report and continues.
 *
 * The caller owns both; neither is shared between threads.
 */

/* A position in a user's file. line and column count from 1; 0 = unknown. file may be NULL. */
struct lkg_where {
        const char *file; /* borrowed */
        unsigned line, column;
};

/** lkg_where_text() - write `file:line:column: `, as far as it is known, to @buf. Return: its length. */
size_t lkg_where_text(const struct lkg_where *where, char *buf, size_t size);

#define LKG_ASIDE_MAX 512
/** lkg_where_aside() - the same within a sentence: ` (file:line:column)`, or nothing. Return: @buf. */
const char *lkg_where_aside(const struct lkg_where *where, char buf[static LKG_ASIDE_MAX]);

struct lkg_error {
        int code;           /* -errno */
        char message[1024]; /* `file:line:col: what, what would be right`, no final newline */
};

/**
 * lkg_error_set() - record the cause of a failure.
 * @err:  may be NULL. An error that is already set is overwritten.
 * @code: -errno
 * @where: the place in a user's file, or NULL
 *
 * Appends `: strerror` if @code is a plain system error and @fmt does not end in '.'; see core/base/report.c.
 *
 * Return: @code, so that `return lkg_error_set(...)` reads well.
 */
int lkg_error_set(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
        LKG_PRINTF(4, 5);

/**
 * lkg_refuse_because() - lkg_error_set() without the system's error text after the message.
 *
 * The refusal comes from a rule and not from the system, and some messages are reasons of the
 * dynamic-configuration proposal, which monitoring compares literally.
 * Return: @code.
 */
int lkg_refuse_because(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
        LKG_PRINTF(4, 5);

/** lkg_error_wrap() - prepend `purpose: ` to an error on its way up. Return: @code. */
int lkg_error_wrap(struct lkg_error *err, int code, const char *fmt, ...) LKG_PRINTF(3, 4);

enum lkg_severity { LKG_ERROR, LKG_WARNING, LKG_NOTE, _LKG_SEVERITY_MAX };

/*
 * The code of a finding never changes its meaning; lkgfs-findings(7) and `lkgfs explain CODE` describe each.
 * One row per code in core/base/findings.c.
 */
struct lkg_finding {
        enum lkg_severity severity;
        unsigned code;         /* printed as LKG%04u */
        char *file;            /* owned; NULL = no file */
        unsigned line, column; /* 0 = unknown */
        char *text;            /* owned; never a secret, at most LKG_QUOTE_MAX bytes of any value */
        /* found in a merge without some broken layer: proves nothing about the whole */
        bool incomplete;
};

struct lkg_buf; /* lkg/text.h */

struct lkg_report {
        struct lkg_finding *findings;
        size_t n_findings, n_allocated;
        /*
         * beyond LKG_FINDINGS_MAX: counted, not stored; an error replaces the last finding that is not an
         * error
         */
        size_t n_dropped;
        size_t n_folded; /* notes that lkg_report_arrange() took out of the list */
        size_t n_kept_errors;
        /* stored by reports that will be appended to this one: room is reserved for them */
        size_t n_elsewhere;
        size_t n_severity[_LKG_SEVERITY_MAX];
};

#define LKG_REPORT_INIT \
        {               \
                0       \
        }

void lkg_report_deinit(struct lkg_report *report);
/** lkg_report_add() - add a finding; never fails (out of memory, it is counted as dropped). */
void lkg_report_add(struct lkg_report *report, enum lkg_severity severity, unsigned code,
                    const struct lkg_where *where, const char *fmt, ...) LKG_PRINTF(5, 6);
/** lkg_report_is_full() - would another finding only be counted? Then its text is not needed. */
bool lkg_report_is_full(const struct lkg_report *report);
/**
 * lkg_report_add_incomplete() - add @finding, found without some layers.
 * @without: which ones, for ` (judged without ...)` after its text; NULL = nothing is missing from the
 * merge, but it must not be served
 */
void lkg_report_add_incomplete(struct lkg_report *report, const struct lkg_finding *finding,
                               const char *without);
/** lkg_report_add_copy() - add a copy of a finding of another report. */
void lkg_report_add_copy(struct lkg_report *report, const struct lkg_finding *finding);
/** lkg_report_add_words() - append `; WORDS` to finding @i, if it is listed. @words: NULL = nothing. */
void lkg_report_add_words(struct lkg_report *report, size_t i, const char *words);
/** lkg_report_has() - does @report list a finding with the same text and position? */
bool lkg_report_has(const struct lkg_report *report, const struct lkg_finding *finding);
/** lkg_report_first_error() - NULL: it has none, or none is listed. */
const struct lkg_finding *lkg_report_first_error(const struct lkg_report *report);
/** lkg_report_has_code() - has a finding from the @first one on this code? */
bool lkg_report_has_code(const struct lkg_report *report, size_t first, unsigned code);
/** lkg_report_equal() - do both list the same findings in the same order, and omit the same number? */
bool lkg_report_equal(const struct lkg_report *a, const struct lkg_report *b);
/** lkg_report_append() - append copies of all findings of @from to @to. */
void lkg_report_append(struct lkg_report *to, const struct lkg_report *from);
/**
 * lkg_report_count_unlisted() - for callers that copy the findings of @from themselves: add the number that
 * @from only counts.
 */
void lkg_report_count_unlisted(struct lkg_report *to, const struct lkg_report *from);
/**
 * lkg_report_arrange() - the order in which findings are shown, everywhere: errors, warnings, notes; within each by file and line.
 * @all: false: of the notes of one code beyond the third, only the first stays, and its text is their number
 *
 * For a copy that is only shown: what a folded note says is lost.
 */
void lkg_report_arrange(struct lkg_report *report, bool all);
/** lkg_finding_format() - append `file:line:col: severity: text [LKGnnnn]` without a line break; control characters escaped. */
void lkg_finding_format(const struct lkg_finding *finding, struct lkg_buf *buf);
/**
 * lkg_report_format() - lines `file:line:col: severity: text [LKGnnnn]\n`; heap, caller frees; NULL = no
 * memory.
 */
char *lkg_report_format(const struct lkg_report *report, size_t *ret_size);
const char *lkg_severity_name(enum lkg_severity severity);

/* One row per finding code: the text of `lkgfs explain` and the man page. */
struct lkg_finding_kind {
        unsigned code;
        enum lkg_severity severity;
        const char *title;     /* a few words */
        const char *advice;    /* one or two sentences: what to do */
        const char *paragraph; /* what happened, why it matters, an example where it helps */
};
extern const struct lkg_finding_kind lkg_finding_kinds[];
extern const size_t lkg_n_finding_kinds;

/**
 * lkg_quote() - write at most LKG_QUOTE_MAX bytes of @text in double quotes to @buf; userinfo of URLs is
 * masked, control bytes and invalid UTF-8 are escaped.
 */
const char *lkg_quote(const char *text, size_t size, char buf[static 5 * 64 + 8]);

/* ---- log ---- */

/*
 * Logging for the mains and the engine's decisions; libraries below core/layers never log (docs/architecture.md).
 *
 * To the journal with structured fields if stderr is connected to it (JOURNAL_STREAM), otherwise one line on
 * stderr, with an `<N>` priority prefix under a service manager and without one on a terminal; a child of
 * lkgfsd logs to lkgfsd. Never a secret, never file content. Callable from any thread.
 */

/* Structured context of one message; NULL or 0 members are left out. */
struct lkg_log_fields {
        const char *component;  /* LKGFS_COMPONENT= */
        uint64_t generation;    /* LKGFS_GENERATION= */
        const char *layer;      /* LKGFS_LAYER= */
        const char *message_id; /* MESSAGE_ID=, 32 hex digits */
};

/**
 * lkg_log_init() - @program names the process in the lines; messages above @max_priority are dropped
 * (usually LOG_INFO).
 */
void lkg_log_init(const char *program, int max_priority);
void lkg_log(int priority, const struct lkg_log_fields *fields, const char *fmt, ...) LKG_PRINTF(3, 4);

/**
 * lkg_log_for_supervisor() - this is a child of lkgfsd, and standard error is a pipe that lkgfsd reads: each
 * line is `<priority>text`. Call it before threads start.
 * @send: tried first, with the fields, or NULL. A result other than 0: the line could not be sent
 */
void lkg_log_for_supervisor(int (*send)(int priority, const struct lkg_log_fields *fields,
                                        const char *text));
/**
 * lkg_log_never_wait() - reopen the terminal or pipe at standard error for this process only, and drop lines
 * (they are counted) instead of waiting. Other processes that have it open are not affected.
 */
void lkg_log_never_wait(void);
/**
 * lkg_log_of() - log a line that the process @program sent to us. It is not trusted: its priority is at most
 * "error".
 */
void lkg_log_of(const char *program, int priority, const struct lkg_log_fields *fields, const char *line);

#define lkg_log_error(...)   lkg_log(LOG_ERR, NULL, __VA_ARGS__)
#define lkg_log_warning(...) lkg_log(LOG_WARNING, NULL, __VA_ARGS__)
#define lkg_log_notice(...)  lkg_log(LOG_NOTICE, NULL, __VA_ARGS__)
#define lkg_log_info(...)    lkg_log(LOG_INFO, NULL, __VA_ARGS__)
#define lkg_log_debug(...)   lkg_log(LOG_DEBUG, NULL, __VA_ARGS__)
