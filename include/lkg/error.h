/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of errors.
 *
 * A *fault* (memory, disk, kernel) is a struct lkg_error: filled once, where the cause is known, passed up,
 * and printed once by a main(). A *finding* is data: a document, a drop-in directory or a configuration is
 * wrong in one place. Validation collects all findings in a struct lkg_report and continues.
 *
 * The caller owns both; neither is shared between threads.
 */
#pragma once

#include <stdarg.h>

#include <lkg/base.h>

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
 * Appends `: strerror` if @code is a plain system error and @fmt does not end in '.'; see core/base/error.c.
 *
 * Return: @code, so that `return lkg_error_set(...)` reads well.
 */
int lkg_error_set(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
        LKG_PRINTF(4, 5);

/**
 * lkg_error_setv() - only the message, never with the system's error text; for functions that take a format.
 * Return: @code.
 */
int lkg_error_setv(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt,
                   va_list ap) LKG_PRINTF(4, 0);

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

struct lkg_buf; /* lkg/buf.h */

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
