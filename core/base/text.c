/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdarg.h>

#include <lkg/base.h>
#include <lkg/text.h>

#define PIECE_BYTES 20u /* quoted from a value in a reason: the finding shows the whole value anyway */

bool lkg_span_is(struct lkg_span span, const char *text)
{
        return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

bool lkg_span_equal(struct lkg_span a, struct lkg_span b)
{
        return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

size_t lkg_span_space(struct lkg_span span)
{
        uint32_t c = 0;
        size_t n = lkg_utf8_decode((const unsigned char *)span.data, span.size, &c);

        return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
                               (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
                               c == 0x205f || c == 0x3000
                       ? n
                       : 0;
}

/* Size of the white space character at the end of @span; 0: none. */
static size_t space_at_end(struct lkg_span span)
{
        for (size_t n = 1; n <= 3 && n <= span.size; n++) {
                if (lkg_span_space(lkg_span(span.data + span.size - n, n)) == n)
                        return n;
        }
        return 0;
}

struct lkg_span lkg_span_trim(struct lkg_span span)
{
        size_t n;

        while ((n = lkg_span_space(span)) > 0)
                span = lkg_span(span.data + n, span.size - n);
        while ((n = space_at_end(span)) > 0)
                span.size -= n;
        return span;
}

bool lkg_span_cut(struct lkg_span span, char separator, struct lkg_span *ret_before,
                  struct lkg_span *ret_after)
{
        const char *at = span.size > 0 ? memchr(span.data, separator, span.size) : NULL;
        size_t n = at ? (size_t)(at - span.data) : span.size;

        *ret_before = lkg_span(span.data, n);
        *ret_after = at ? lkg_span(at + 1, span.size - n - 1) : lkg_span(span.data + span.size, 0);
        return at;
}

bool lkg_path_is_clean(struct lkg_span path)
{
        struct lkg_span rest = path, part;

        if (path.size > 0 && *path.data == '/')
                rest = lkg_span(path.data + 1, path.size - 1);
        while (lkg_span_next(&rest, '/', &part))
                if (part.size == 0 || lkg_span_is(part, ".") || lkg_span_is(part, ".."))
                        return false;
        return true;
}

bool lkg_span_next(struct lkg_span *rest, char separator, struct lkg_span *ret_part)
{
        struct lkg_span all = *rest;

        if (!all.data)
                return false;
        if (!lkg_span_cut(all, separator, ret_part, rest))
                *rest = lkg_span(NULL, 0);
        return true;
}

size_t lkg_span_count(struct lkg_span span, char c)
{
        size_t n = 0;

        for (size_t i = 0; i < span.size; i++)
                n += span.data[i] == c;
        return n;
}

char *lkg_span_dup(struct lkg_span span)
{
        char *copy = malloc(span.size + 1);

        if (!copy)
                return NULL;
        if (span.size > 0)
                memcpy(copy, span.data, span.size);
        copy[span.size] = '\0';
        return copy;
}

int lkg_refuse(char *reason, const char *fmt, ...)
{
        va_list ap;
        int n;

        if (!reason)
                return -EINVAL;
        va_start(ap, fmt);
        n = vsnprintf(reason, LKG_REFUSAL_MAX, fmt, ap);
        va_end(ap);
        if (n < 0)
                *reason = '\0';
        return -EINVAL;
}

/* One byte of a piece: printable ASCII and valid UTF-8 sequences unchanged, anything else as \xNN. */
static size_t piece_step(struct lkg_span span, size_t i, char *to)
{
        unsigned char c = (unsigned char)span.data[i];
        size_t n = c >= 0x80 ? lkg_shown_length(span.data + i, span.size - i, NULL) : 1;

        if (n > 1) {
                memcpy(to, span.data + i, n);
                to[n] = '\0';
                return n;
        }
        if (c < ' ' || c >= 0x7f)
                (void)snprintf(to, 5, "\\x%02x", c);
        else
                (void)snprintf(to, 3, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        return 1;
}

const char *lkg_piece(struct lkg_span span, char buf[static LKG_PIECE_MAX])
{
        size_t used = 0, i = 0;

        buf[used++] = '"';
        while (i < span.size && i < PIECE_BYTES) {
                i += piece_step(span, i, buf + used);
                used += strlen(buf + used);
        }
        (void)snprintf(buf + used, LKG_PIECE_MAX - used, i < span.size ? "...\"" : "\"");
        return buf;
}

/*
 * A private key; or `://` and `@` or `?` anywhere after it: more than lkg_mask_text() finds, because a piece
 * may be cut anywhere.
 */
static bool has_credentials(struct lkg_span span)
{
        const char *scheme = span.size > 0 ? memmem(span.data, span.size, "://", 3) : NULL;
        size_t rest = scheme ? span.size - (size_t)(scheme - span.data) : 0;

        return lkg_has_private_key(span.data, span.size) ||
               (scheme && (memchr(scheme, '@', rest) || memchr(scheme, '?', rest)));
}

const char *lkg_reason(struct lkg_span value, const char *reason)
{
        return has_credentials(value) && strchr(reason, '"') ? "not what is wanted here" : reason;
}

/* ---- utf8 ---- */

void lkg_utf8_mend(char *text)
{
        size_t left = strlen(text), n;
        const char *from = text;

        for (; left > 0; left -= n ? n : 1, from += n ? n : 1) {
                n = lkg_utf8_length(from, left);
                memmove(text, from, n);
                text += n;
        }
        *text = '\0';
}

/* ---- name ---- */

static bool is_label(struct lkg_span s)
{
        if (s.size == 0 || s.data[0] == '-' || s.data[s.size - 1] == '-')
                return false;
        for (size_t i = 0; i < s.size; i++) {
                char c = s.data[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
                        return false;
        }
        return true;
}

int lkg_name_dns_label(const char *text, size_t size, char *reason)
{
        if (size == 0)
                return lkg_refuse(reason, "empty; want a name, such as kube-system");
        if (size > LKG_DNS_LABEL_MAX)
                return lkg_refuse(reason, "longer than %u bytes", LKG_DNS_LABEL_MAX);
        if (!is_label(lkg_span(text, size)))
                return lkg_refuse(reason, "not a name of a-z, 0-9 and -, such as kube-system");
        return 0;
}

int lkg_name_dns_subdomain(const char *text, size_t size, char *reason)
{
        struct lkg_span rest = { text, size }, label;

        if (size == 0)
                return lkg_refuse(reason, "empty; want a domain, such as example.com");
        if (size > LKG_DNS_SUBDOMAIN_MAX)
                return lkg_refuse(reason, "longer than %u bytes", LKG_DNS_SUBDOMAIN_MAX);
        while (lkg_span_next(&rest, '.', &label)) {
                if (!is_label(label))
                        return lkg_refuse(reason,
                                          "not a domain of a-z, 0-9, - and points, such as example.com");
        }
        return 0;
}

void lkg_copy_span(struct lkg_span text, char *ret)
{
        if (text.size > 0)
                memcpy(ret, text.data, text.size);
        ret[text.size] = '\0';
}

bool lkg_identifier_in(struct lkg_span text)
{
        if (text.size == 0 || text.size > LKG_IDENTIFIER_MAX)
                return false;
        for (size_t i = 0; i < text.size; i++)
                if (!isalnum((unsigned char)text.data[i]) && !(text.data[i] && strchr("._-", text.data[i])))
                        return false;
        return !lkg_span_is(text, ".") && !lkg_span_is(text, "..");
}

bool lkg_identifier_ok(const char *text)
{
        return lkg_identifier_in(lkg_span(text, strlen(text)));
}

/* ---- nearest ---- */

#define NAME_BYTES_MAX 64

void lkg_nearest_init(struct lkg_nearest *nearest, const char *wrong)
{
        size_t n = strlen(wrong), limit = n / 3 < 2 ? 1 : 2;

        *nearest = (struct lkg_nearest){ .wrong = wrong, .distance = (unsigned)limit + 1 };
}

static bool same(char a, char b)
{
        return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Levenshtein distance with swapped neighbours ("stauts"), three rows; ignores case. Anything from @limit on is @limit. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m, unsigned limit)
{
        unsigned rows[3][NAME_BYTES_MAX + 1], least_before = 0;

        for (unsigned j = 0; j <= m; j++)
                rows[0][j] = j;
        for (unsigned i = 1; i <= n; i++) {
                unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *twice = rows[(i + 1) % 3];
                unsigned least = i;

                row[0] = i;
                for (unsigned j = 1; j <= m; j++) {
                        unsigned best = above[j - 1] + !same(a[i - 1], b[j - 1]);

                        if (above[j] + 1 < best)
                                best = above[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]) &&
                            twice[j - 2] + 1 < best)
                                best = twice[j - 2] + 1;
                        row[j] = best;
                        least = best < least ? best : least;
                }
                if (least >= limit && least_before >= limit) /* further rows have nothing smaller */
                        return limit;
                least_before = least;
        }
        return rows[n % 3][m];
}

void lkg_nearest_offer(struct lkg_nearest *nearest, const char *name)
{
        size_t n = strlen(nearest->wrong), m = strlen(name);
        unsigned d;

        if (n > NAME_BYTES_MAX || m > NAME_BYTES_MAX || (n > m ? n - m : m - n) >= nearest->distance)
                return;
        d = distance(nearest->wrong, n, name, m, nearest->distance);
        if (d < nearest->distance) {
                nearest->distance = d;
                nearest->best = name;
        }
}

/* ---- base64 ---- */

/* Decodes base64 like Go's encoding/base64. */

static int base64_value(char c)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) : -1;
}

ssize_t lkg_base64_decode(const char *from, size_t size, char *to)
{
        size_t n = 0, n_digits = 0, n_pad = 0;
        uint32_t bits = 0;

        for (size_t i = 0; i < size; i++) {
                int v;

                if (from[i] == '\n' || from[i] == '\r')
                        continue;
                if (from[i] == '=') {
                        n_pad++;
                        continue;
                }
                v = base64_value(from[i]);
                if (v < 0 || n_pad > 0)
                        return -1;
                bits = bits << 6 | (uint32_t)v;
                if (++n_digits % 4 == 0) {
                        to[n++] = (char)(bits >> 16);
                        to[n++] = (char)(bits >> 8);
                        to[n++] = (char)bits;
                }
        }
        if ((n_digits + n_pad) % 4 != 0 || n_pad > 2)
                return -1;
        if (n_digits % 4 == 2)
                to[n++] = (char)(bits >> 4);
        if (n_digits % 4 == 3) {
                to[n++] = (char)(bits >> 10);
                to[n++] = (char)(bits >> 2);
        }
        return (ssize_t)n;
}

/* ---- versions ---- */

/* Strip leading zeros, so that length and digits alone decide. NULL: not a decimal number. */
static const char *digits_of(const char *version)
{
        if (!version[0] || version[strspn(version, "0123456789")] != '\0')
                return NULL;
        version += strspn(version, "0");
        return version;
}

enum lkg_version_order lkg_version_compare(const char *a, const char *b)
{
        const char *x = digits_of(a), *y = digits_of(b);
        size_t n, m;
        int order;

        if (!x || !y)
                return strcmp(a, b) == 0 ? LKG_VERSION_SAME : LKG_VERSION_OTHER;
        n = strlen(x);
        m = strlen(y);
        order = n != m ? (n < m ? -1 : 1) : strcmp(x, y);
        return order < 0 ? LKG_VERSION_OLDER : order > 0 ? LKG_VERSION_NEWER : LKG_VERSION_SAME;
}

/* ---- strings ---- */

/* See lkg/text.h. */

int lkg_strings_take(char ***items, size_t *n_items, char *text)
{
        if (!text || LKG_GROW(*items, *n_items) < 0) {
                free(text);
                return lkg_lack();
        }
        (*items)[(*n_items)++] = text;
        return 0;
}

int lkg_strings_add(struct lkg_strings *strings, const char *text, size_t size)
{
        return lkg_strings_take(&strings->items, &strings->n_items, strndup(text, size));
}

int lkg_strings_parse(const char *data, size_t size, struct lkg_strings *ret)
{
        struct lkg_strings strings = { 0 };
        int r = 0;

        while (r == 0 && size > 0) {
                size_t n = strnlen(data, size), used = n < size ? n + 1 : n;

                r = lkg_strings_add(&strings, data, n);
                data += used;
                size -= used;
        }
        if (r < 0) {
                lkg_strings_deinit(&strings);
                return r;
        }
        *ret = strings;
        return 0;
}

int lkg_strings_copy(const struct lkg_strings *strings, struct lkg_strings *ret)
{
        struct lkg_strings copy = { 0 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < strings->n_items; i++)
                r = lkg_strings_add(&copy, strings->items[i], strlen(strings->items[i]));
        if (r < 0) {
                lkg_strings_deinit(&copy);
                return r;
        }
        *ret = copy;
        return 0;
}

bool lkg_strings_equal(const struct lkg_strings *a, const struct lkg_strings *b)
{
        if (a->n_items != b->n_items)
                return false;
        for (size_t i = 0; i < a->n_items; i++)
                if (strcmp(a->items[i], b->items[i]) != 0)
                        return false;
        return true;
}

const char *lkg_digits(const char *text, uint64_t *ret)
{
        unsigned long long n;
        char *end;

        if (*text < '0' || *text > '9') /* strtoull() accepts blanks and signs */
                return NULL;
        errno = 0;
        n = strtoull(text, &end, 10);
        if (errno)
                return NULL;
        *ret = n;
        return end;
}

static int compare_strings(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b); /* strcmp compares unsigned bytes */
}

void lkg_strings_sort(struct lkg_strings *strings)
{
        if (strings->n_items > 1)
                qsort(strings->items, strings->n_items, sizeof(*strings->items), compare_strings);
}

void lkg_strings_deinit(struct lkg_strings *strings)
{
        for (size_t i = 0; i < strings->n_items; i++)
                free(strings->items[i]);
        free(strings->items);
        *strings = (struct lkg_strings){ 0 };
}
