/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: a growing list that never fails its caller, and its one-line-per-finding form. */
#include <stdarg.h>

#include <lkg/base.h>
#include <lkg/limits.h>
#include <lkg/text.h>

void lkg_report_deinit(struct lkg_report *report)
{
        if (!report)
                return;
        for (size_t i = 0; i < report->n_findings; i++) {
                free(report->findings[i].file);
                free(report->findings[i].text);
        }
        free(report->findings);
        *report = (struct lkg_report)LKG_REPORT_INIT;
}

bool lkg_report_is_full(const struct lkg_report *report)
{
        return report->n_findings + report->n_elsewhere >= LKG_FINDINGS_MAX;
}

/* Advice must not displace the reason of a refusal. */
static bool can_give_way(const struct lkg_report *report, enum lkg_severity severity)
{
        return severity == LKG_ERROR && report->n_kept_errors < report->n_findings;
}

/* Drop the last finding that is not an error. */
static void give_way(struct lkg_report *report)
{
        size_t i = report->n_findings;

        while (report->findings[--i].severity == LKG_ERROR)
                ;
        free(report->findings[i].file);
        free(report->findings[i].text);
        memmove(&report->findings[i], &report->findings[i + 1],
                (report->n_findings - i - 1) * sizeof(report->findings[0]));
        report->n_findings--;
        report->n_dropped++;
}

static struct lkg_finding *report_slot(struct lkg_report *report, enum lkg_severity severity)
{
        if (lkg_report_is_full(report)) {
                if (!can_give_way(report, severity))
                        return NULL;
                give_way(report);
        }
        if (LKG_RESERVE(report->findings, report->n_findings, report->n_allocated) < 0)
                return NULL;
        return &report->findings[report->n_findings];
}

/* Takes over file and text, even if they do not fit. */
static void report_take(struct lkg_report *report, struct lkg_finding made)
{
        struct lkg_finding *finding = made.text ? report_slot(report, made.severity) : NULL;

        /* counted even if dropped: an error must never look like none */
        report->n_severity[made.severity]++;
        if (!finding) {
                report->n_dropped++;
                free(made.file);
                free(made.text);
                return;
        }
        *finding = made;
        report->n_findings++;
        report->n_kept_errors += made.severity == LKG_ERROR;
}

void lkg_report_add(struct lkg_report *report, enum lkg_severity severity, unsigned code,
                    const struct lkg_where *where, const char *fmt, ...)
{
        struct lkg_finding made = { .severity = severity, .code = code };
        va_list ap;

        if (!report)
                return;
        /* will not be shown: a million must cost nothing */
        if (lkg_report_is_full(report) && !can_give_way(report, severity)) {
                report_take(report, made);
                return;
        }
        va_start(ap, fmt);
        if (vasprintf(&made.text, fmt, ap) < 0)
                made.text = NULL;
        va_end(ap);
        if (where) {
                made.file = where->file ? strdup(where->file) : NULL;
                made.line = where->line;
                made.column = where->column;
        }
        report_take(report, made);
}

/* Adds a copy of @finding with the text @text, which is taken over. */
static void report_copy(struct lkg_report *report, const struct lkg_finding *finding, char *text,
                        bool incomplete)
{
        struct lkg_finding made = *finding;

        made.file = finding->file ? strdup(finding->file) : NULL;
        made.text = text;
        made.incomplete = incomplete;
        report_take(report, made);
}

void lkg_report_add_incomplete(struct lkg_report *report, const struct lkg_finding *finding,
                               const char *without)
{
        char *text;

        if (asprintf(&text, "%s%s%.400s%s", finding->text, without ? " (judged without " : "",
                     without ? without : "", without ? ")" : "") < 0)
                text = NULL;
        report_copy(report, finding, text, true);
}

void lkg_report_add_copy(struct lkg_report *report, const struct lkg_finding *finding)
{
        report_copy(report, finding, strdup(finding->text), finding->incomplete);
}

void lkg_report_add_words(struct lkg_report *report, size_t i, const char *words)
{
        char *text;

        if (!words || i >= report->n_findings ||
            asprintf(&text, "%s; %s", report->findings[i].text, words) < 0)
                return;
        free(report->findings[i].text);
        report->findings[i].text = text;
}

static bool is_same(const struct lkg_finding *a, const struct lkg_finding *b)
{
        return a->code == b->code && a->severity == b->severity && a->line == b->line &&
               a->column == b->column && !a->file == !b->file &&
               (!a->file || strcmp(a->file, b->file) == 0) && strcmp(a->text, b->text) == 0;
}

bool lkg_report_has(const struct lkg_report *report, const struct lkg_finding *finding)
{
        for (size_t i = 0; i < report->n_findings; i++)
                if (is_same(&report->findings[i], finding))
                        return true;
        return false;
}

const struct lkg_finding *lkg_report_first_error(const struct lkg_report *report)
{
        for (size_t i = 0; i < report->n_findings; i++)
                if (report->findings[i].severity == LKG_ERROR)
                        return &report->findings[i];
        return NULL;
}

bool lkg_report_has_code(const struct lkg_report *report, size_t first, unsigned code)
{
        for (size_t i = first; i < report->n_findings; i++)
                if (report->findings[i].code == code)
                        return true;
        return false;
}

bool lkg_report_equal(const struct lkg_report *a, const struct lkg_report *b)
{
        if (a->n_findings != b->n_findings || a->n_dropped != b->n_dropped)
                return false;
        for (size_t i = 0; i < a->n_findings; i++)
                if (!is_same(&a->findings[i], &b->findings[i]))
                        return false;
        return true;
}

void lkg_report_append(struct lkg_report *to, const struct lkg_report *from)
{
        for (size_t i = 0; i < from->n_findings; i++)
                lkg_report_add_copy(to, &from->findings[i]);
        lkg_report_count_unlisted(to, from);
}

void lkg_report_count_unlisted(struct lkg_report *to, const struct lkg_report *from)
{
        for (unsigned s = 0; s < _LKG_SEVERITY_MAX; s++) {
                size_t listed = 0;

                for (size_t i = 0; i < from->n_findings; i++)
                        listed += from->findings[i].severity == (enum lkg_severity)s;
                to->n_severity[s] += from->n_severity[s] - listed;
        }
        to->n_dropped += from->n_dropped;
}

/* ---- what is shown ---- */

#define NOTES_SHOWN 3 /* of one code */

/* Findings about no file are about all of them. Equal ones keep their order, which is that of their places in the array. */
static int compare_shown(const void *left, const void *right)
{
        const struct lkg_finding *a = *(const struct lkg_finding *const *)left;
        const struct lkg_finding *b = *(const struct lkg_finding *const *)right;
        int r = (int)a->severity - (int)b->severity;

        if (r == 0)
                r = strcmp(a->file ? a->file : "", b->file ? b->file : "");
        if (r == 0)
                r = (a->line > b->line) - (a->line < b->line);
        if (r == 0)
                r = (a->column > b->column) - (a->column < b->column);
        return r ? r : (a > b) - (a < b);
}

static void sort(struct lkg_report *report)
{
        LKG_CLEANUP(lkg_freep) const struct lkg_finding **order = calloc(report->n_findings, sizeof(*order));
        LKG_CLEANUP(lkg_freep) struct lkg_finding *sorted = calloc(report->n_findings, sizeof(*sorted));

        if (!order || !sorted)
                return; /* a list out of order is better than none */
        for (size_t i = 0; i < report->n_findings; i++)
                order[i] = &report->findings[i];
        qsort(order, report->n_findings, sizeof(*order), compare_shown);
        for (size_t i = 0; i < report->n_findings; i++)
                sorted[i] = *order[i];
        memcpy(report->findings, sorted, report->n_findings * sizeof(*sorted));
}

/* Return: how many notes of @code there are from @first up to @end. */
static size_t count_notes(const struct lkg_report *report, size_t first, size_t end, unsigned code)
{
        size_t n = 0;

        for (size_t i = first; i < end; i++)
                n += report->findings[i].severity == LKG_NOTE && report->findings[i].code == code;
        return n;
}

static void fold_note(struct lkg_finding *note, size_t n)
{
        char *text;

        if (asprintf(&text, "%zu more note%s of this kind, from here on; `lkgfs check --all` lists %s", n,
                     n == 1 ? "" : "s", n == 1 ? "it" : "them") < 0)
                return;
        free(note->text);
        note->text = text;
}

static void fold(struct lkg_report *report)
{
        size_t n = 0;

        for (size_t i = 0; i < report->n_findings; i++) {
                struct lkg_finding *f = &report->findings[i];
                size_t before = f->severity == LKG_NOTE ? count_notes(report, 0, n, f->code) : 0;

                if (before > NOTES_SHOWN) {
                        free(f->file);
                        free(f->text);
                        report->n_folded++;
                        continue;
                }
                if (before == NOTES_SHOWN)
                        fold_note(f, count_notes(report, i, report->n_findings, f->code));
                report->findings[n++] = *f;
        }
        report->n_findings = n;
}

void lkg_report_arrange(struct lkg_report *report, bool all)
{
        if (report->n_findings == 0)
                return;
        sort(report);
        if (!all)
                fold(report);
}

void lkg_finding_format(const struct lkg_finding *f, struct lkg_buf *buf)
{
        if (f->file) {
                lkg_buf_shown(buf, f->file,
                              strlen(f->file)); /* one line, whatever a hostile name contains */
                if (f->line)
                        lkg_buf_printf(buf, ":%u:%u", f->line, f->column ? f->column : 1);
                lkg_buf_puts(buf, ": ");
        }
        lkg_buf_printf(buf, "%s: ", lkg_severity_name(f->severity));
        lkg_buf_shown(buf, f->text, strlen(f->text));
        lkg_buf_printf(buf, " [LKG%04u]", f->code);
}

char *lkg_report_format(const struct lkg_report *report, size_t *ret_size)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_append(&buf, "", 0); /* an empty report is an empty string, not "out of memory" */
        for (size_t i = 0; i < report->n_findings; i++) {
                lkg_finding_format(&report->findings[i], &buf);
                lkg_buf_putc(&buf, '\n');
        }
        if (report->n_dropped)
                lkg_buf_printf(&buf,
                               "note: %zu more findings are not listed, a list has at most %u [LKG4000]\n",
                               report->n_dropped, LKG_FINDINGS_MAX);
        return lkg_buf_steal(&buf, ret_size);
}

#define QUOTED_MAX (5 * 64 + 8)

/* One character, or a byte that belongs to none, as it can be told from others. Return: its size in @text. */
static size_t quote_one(const char *text, size_t size, char **p, char name[static LKG_CHARACTER_NAME_MAX])
{
        uint32_t c = 0;
        size_t length = lkg_utf8_decode((const unsigned char *)text, size, &c);

        *name = '\0';
        if (length > 0 && lkg_lookalike(c, name)) {
                *p += sprintf(*p, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
                return length;
        }
        if (length == 0 || lkg_is_hidden(c)) {
                *p += sprintf(*p, "\\x%02x", (unsigned char)*text);
                return 1;
        }
        if (c == '"' || c == '\\')
                *(*p)++ = '\\';
        *p = mempcpy(*p, text, length);
        return length;
}

/* ` (\u0430 is CYRILLIC SMALL LETTER A)` after a text that has such a character: of the first, and of more if there is room. */
static void name_one(struct lkg_buf *names, const char *escape, size_t size, const char *name)
{
        LKG_CLEANUP(lkg_freep) char *words = NULL;

        if (asprintf(&words, "%.*s is %s", (int)size, escape, name) < 0) {
                words = NULL;
                return;
        }
        if (names->size > 0 && memmem(names->data, names->size, words, strlen(words)))
                return;
        lkg_buf_puts(names, names->size > 0 ? ", " : " (");
        lkg_buf_puts(names, words);
}

static const char *quote(const char *text, size_t size, char *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;
        size_t n = size < LKG_QUOTE_MAX ? size : LKG_QUOTE_MAX, named = 0;
        char name[LKG_CHARACTER_NAME_MAX], *p = buf;

        /* Do not split a UTF-8 sequence. */
        while (n < size && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
                n--;
        *p++ = '"';
        for (size_t i = 0; i < n;) {
                char *start = p;

                i += quote_one(text + i, n - i, &p, name);
                if (*name)
                        name_one(&names, start, (size_t)(p - start), name);
                if (named == 0) /* the first always has room */
                        named = names.size;
        }
        *p++ = '"';
        if (n < size)
                p = stpcpy(p, "...");
        if (names.size + 2 <= QUOTED_MAX - (size_t)(p - buf))
                named = names.size;
        if (named > 0 && !lkg_buf_failed(&names)) {
                p = mempcpy(p, names.data, named);
                *p++ = ')';
        }
        *p = '\0';
        return buf;
}

const char *lkg_quote(const char *text, size_t size, char buf[static 5 * 64 + 8])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;

        if (!lkg_mask_name(text, size, false, &masked))
                return quote(text, size, buf);
        return lkg_buf_failed(&masked) ? quote("", 0, buf) : quote(masked.data, masked.size, buf);
}

/* ---- error ---- */

/* Faults: one message, made where the cause is known, with context prepended on the way up. */

size_t lkg_where_text(const struct lkg_where *where, char *buf, size_t size)
{
        int n = 0;

        if (size > 0)
                *buf = '\0';
        if (!where || !where->file)
                return 0;
        if (where->line && where->column)
                n = snprintf(buf, size, "%s:%u:%u: ", where->file, where->line, where->column);
        else if (where->line)
                n = snprintf(buf, size, "%s:%u: ", where->file, where->line);
        else
                n = snprintf(buf, size, "%s: ", where->file);
        return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

const char *lkg_where_aside(const struct lkg_where *where, char buf[static LKG_ASIDE_MAX])
{
        char place[LKG_ASIDE_MAX - 4];
        size_t size = lkg_where_text(where, place, sizeof(place));

        if (size < 2) {
                *buf = '\0';
                return buf;
        }
        place[size - 2] = '\0'; /* the colon and the space */
        (void)snprintf(buf, LKG_ASIDE_MAX, " (%s)", place);
        return buf;
}

LKG_PRINTF(4, 0)
static void set_message(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt,
                        va_list ap)
{
        size_t n;

        if (!err)
                return;
        err->code = code;
        n = lkg_where_text(where, err->message, sizeof(err->message));
        (void)vsnprintf(err->message + n, sizeof(err->message) - n, fmt, ap);
}

int lkg_error_set(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
{
        size_t length;
        va_list ap;

        va_start(ap, fmt);
        set_message(err, code, where, fmt, ap);
        va_end(ap);
        if (!err)
                return code;
        length = strlen(err->message);
        /*
         * A sentence that ends in a full stop contains the cause; otherwise the system's error text follows.
         */
        if (code < 0 && length > 0 && err->message[length - 1] != '.')
                (void)snprintf(err->message + length, sizeof(err->message) - length, ": %s",
                               strerror(-code));
        return code;
}

int lkg_refuse_because(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        set_message(err, code, where, fmt, ap);
        va_end(ap);
        return code;
}

int lkg_error_wrap(struct lkg_error *err, int code, const char *fmt, ...)
{
        char purpose[512], whole[sizeof(err->message)];
        va_list ap;

        if (!err)
                return code;
        va_start(ap, fmt);
        (void)vsnprintf(purpose, sizeof(purpose), fmt, ap);
        va_end(ap);
        /* Both parts are bounded; if necessary the end of the older message is cut. */
        (void)snprintf(whole, sizeof(whole), "%s: %.*s", purpose, (int)(sizeof(whole) - sizeof(purpose) - 3),
                       err->message);
        memcpy(err->message, whole, sizeof(whole));
        err->code = code;
        return code;
}
