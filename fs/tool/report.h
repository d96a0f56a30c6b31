/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs report: named pieces of text, in the order in which they were read, each with the reason if it could not be read. Both forms of
 * a report, page and archive, show the same parts. A part never holds a secret: what may hold one is masked where it is read.
 *
 * Parts are read in child processes, which send them through a pipe: if a file hangs, those before it have arrived, and its name.
 *
 * The page is report.html, filled in (template.c) from one tree of values: the parts by their names, and what report-page.c finds in
 * them. It needs nothing but itself: no script, no image, no address.
 */
#pragma once

#include "tool.h"

/* ---- parts: report-part.c ---- */

struct lkg_part {
        char *name; /* "status/kubelet/condition" */
        char *data; /* with a final NUL; may be empty */
        size_t size;
        int error;           /* 0; -errno: it could not be read; -EINPROGRESS: it was begun */
        uint64_t modified_s; /* since 1970 */
};

struct lkg_parts {
        struct lkg_part *items;
        size_t n;
};

/** lkg_parts_add() - add a copy; a part with this name that was only begun is replaced. */
void lkg_parts_add(struct lkg_parts *parts, const char *name, const char *data, size_t size, int error,
                   uint64_t modified_s);
/** lkg_parts_find() - NULL = there is none. */
const struct lkg_part *lkg_parts_find(const struct lkg_parts *parts, const char *name);
/** lkg_parts_send() - write a part to standard output, for lkg_parts_receive(). @error -EINPROGRESS: it is being read. */
void lkg_parts_send(const char *name, const char *data, size_t size, int error, uint64_t modified_s);
void lkg_parts_receive(struct lkg_parts *parts, const char *data, size_t size);

/**
 * lkg_parts_tree() - the parts as a tree of values: a map for each directory of their names. Of a part:
 *
 *     path, below, title  its name; without the first directory; as people call it
 *     text, line          "" if it could not be read; its first line
 *     said, why           what is there instead of a text, and why; without an error, said is the text
 *     since               when it was last changed
 *     json                what it is as JSON
 *     pairs, map          of lines key=value: a list of {key, label, value}, and a map
 *     rows                of environment/processes: one map for each
 *
 * Lists of the whole, in the order of reading: `marks`, `surroundings` (configuration and environment), `unread` (what could not be
 * read), `messages` (what those who read have said).
 */
struct lkg_value *lkg_parts_tree(const struct lkg_parts *parts);
/** lkg_parts_at() - what @directory of the tree (may be NULL) has under @name, from its top or below; NULL = nothing. */
const struct lkg_value *lkg_parts_at(const struct lkg_value *directory, const char *name);
/** lkg_report_collect() - read everything that can be read (report-read.c); it ends within a minute, whatever hangs. */
void lkg_report_collect(const struct lkg_tool *tool, struct lkg_parts *ret);

/* ---- the page ---- */

/** lkg_report_page() - the whole page: report-page.c. */
void lkg_report_page(const struct lkg_parts *parts, struct lkg_buf *ret);
