/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of HTML that needs nothing but itself: no script, no image, no address. Text comes from files that anybody may have
 * written, so there is one way to put text into the page, and it escapes. What cannot be seen is shown as \xNN.
 */
#pragma once

#include "tool.h"

/** lkg_html_text() - @text, escaped, for content and for quoted attributes; line breaks stay. */
void lkg_html_text(struct lkg_buf *buf, const char *text);
void lkg_html_bytes(struct lkg_buf *buf, const char *text, size_t size);
/** lkg_html_prose() - the same; what stands between two ` becomes code. */
void lkg_html_prose(struct lkg_buf *buf, const char *text);
/** lkg_html_element() - <@tag class="@class">@text</@tag>; @class NULL = none. @tag and @class are ours and not escaped. */
void lkg_html_element(struct lkg_buf *buf, const char *tag, const char *class, const char *text);
/** lkg_html_begin() - everything up to <main>. */
void lkg_html_begin(struct lkg_buf *buf, const char *title);
void lkg_html_end(struct lkg_buf *buf);
/** lkg_html_section() - begin a section with its heading; end it with "</section>\n". @note: stands beside it; NULL = none. */
void lkg_html_section(struct lkg_buf *buf, const char *id, const char *title, const char *note);
/** lkg_html_time() - an RFC 3339 time; the date and the zone are there for those who need them. */
void lkg_html_time(struct lkg_buf *buf, const char *rfc3339);
/** lkg_html_severity() - "error" as a badge with a sign: not by colour alone. */
void lkg_html_severity(struct lkg_buf *buf, const char *severity);
/** lkg_html_diff() - a unified diff. */
void lkg_html_diff(struct lkg_buf *buf, const char *text);

/* html-style.c */
extern const char lkg_html_style[];
