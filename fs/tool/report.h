/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs report: named pieces of text, in the order in which they were read, each with the reason if it could not be read. Both forms of
 * a report, page and archive, show the same parts. A part never holds a secret: what may hold one is masked where it is read.
 *
 * Parts are read in child processes, which send them through a pipe: if a file hangs, those before it have arrived, and its name.
 *
 * The page needs nothing but itself: no script, no image, no address. Text comes from files that anybody may have written, so there is
 * one way to put text into the page, and it escapes. What cannot be seen is shown as \xNN.
 */
#pragma once

#include "tool.h"

/* ---- parts: report-parts.c ---- */

struct lkg_part {
        char *name; /* "status/kubelet/condition" */
        char *data; /* with a final NUL; may be empty */
        size_t size;
        int error;           /* 0; -errno: it could not be read; -EINPROGRESS: it was begun */
        uint64_t modified_s; /* since 1970 */
};

struct lkg_parts {
        struct lkg_part *items;
        size_t n, n_allocated;
};

void lkg_parts_deinit(struct lkg_parts *parts);
/** lkg_parts_add() - add a copy; a part with this name that was only begun is replaced. */
void lkg_parts_add(struct lkg_parts *parts, const char *name, const char *data, size_t size, int error,
                   uint64_t modified_s);
/** lkg_parts_find() - NULL = there is none. */
const struct lkg_part *lkg_parts_find(const struct lkg_parts *parts, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_parts_text() - its text; "" if it is missing or could not be read. */
const char *lkg_parts_text(const struct lkg_parts *parts, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_parts_json() - a JSON part; NULL if it is missing. Caller owns one reference. */
struct lkg_value *lkg_parts_json(const struct lkg_parts *parts, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_parts_next() - the next part after @part (NULL = from the start) whose name begins with @prefix; NULL = no more. */
const struct lkg_part *lkg_parts_next(const struct lkg_parts *parts, const struct lkg_part *part,
                                      const char *prefix);
/** lkg_parts_under() - the @i-th different name right below @prefix ("status/"), NUL-terminated in @ret. Return: is there one? */
bool lkg_parts_under(const struct lkg_parts *parts, const char *prefix, size_t i, char ret[static 256]);
/** lkg_parts_send() - write a part to standard output, for lkg_parts_receive(). @error -EINPROGRESS: it is being read. */
void lkg_parts_send(const char *name, const char *data, size_t size, int error, uint64_t modified_s);
void lkg_parts_receive(struct lkg_parts *parts, const char *data, size_t size);

/** lkg_report_mask_document() - @text (YAML or JSON) as it may be shown. Return: 0; -EBADMSG: it cannot be decoded, so nothing of it is shown. */
int lkg_report_mask_document(const char *text, size_t size, struct lkg_buf *ret);
/** lkg_report_mask_lines() - lines of a log, or words of a command line. */
void lkg_report_mask_lines(const char *text, size_t size, struct lkg_buf *ret);

/** lkg_report_collect() - read everything that can be read (report-read.c); it ends within a minute, whatever hangs. */
void lkg_report_collect(const struct lkg_tool *tool, struct lkg_parts *ret);

/* ---- tar: verb-report.c ---- */
void lkg_tar_add(struct lkg_buf *buf, const char *name, const char *data, size_t size, uint64_t modified_s);
void lkg_tar_end(struct lkg_buf *buf);

/* ---- HTML: html.c ---- */

/** lkg_html() - append @fmt, with each %s escaped, line breaks kept; %-s: the same, and what stands between two ` becomes code. */
void lkg_html(struct lkg_buf *buf, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_html_section() - begin a section with its heading; end it with "</section>\n". @note: stands beside it; NULL = none. */
void lkg_html_section(struct lkg_buf *buf, const char *id, const char *title, const char *note);
/** lkg_html_time() - an RFC 3339 time; the date and the zone are there for those who need them. */
void lkg_html_time(struct lkg_buf *buf, const char *rfc3339);
/** lkg_html_diff() - a unified diff. */
void lkg_html_diff(struct lkg_buf *buf, const char *text);
extern const char lkg_html_style[];

/** lkg_report_page() - the whole page: report-page.c. */
void lkg_report_page(const struct lkg_parts *parts, struct lkg_buf *ret);
/* Its sections, each from the parts alone: report-timeline.c, report-detail.c */
void lkg_report_timeline(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_changes(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_bad(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_origins(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_processes(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_environment(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_log(const struct lkg_parts *parts, struct lkg_buf *buf);
void lkg_report_unread(const struct lkg_parts *parts, struct lkg_buf *buf);
