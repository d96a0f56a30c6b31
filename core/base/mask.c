/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of credentials, and a credential that became part of a name because a space is missing (`{token:s3cret}` is a map
 * with the key `token:s3cret`).
 *
 * Userinfo and queries of URLs (`https://user:password@host/path?token=...`): no status file, no finding and
 * no log line shows them. This is done here, below all code that quotes user input.
 */
#include <lkg/text.h>

#include <ctype.h>
#include <strings.h>

#define MASK "<masked>"

/* The end of the authority that starts at @i. */
static size_t authority_end(const char *text, size_t size, size_t i)
{
        while (i < size && text[i] != '\0' && !strchr("/?# \t\r\n\"'<>`\\", text[i]))
                i++;
        return i;
}

/*
 * The query of the URL whose authority ends at @i, up to a blank.
 * Return: its start, after its `?`; 0 = none.
 */
static size_t query_start(const char *text, size_t size, size_t i, size_t *ret_end)
{
        size_t start = 0;

        for (; i < size && (unsigned char)text[i] > ' '; i++)
                if (text[i] == '?' && start == 0)
                        start = i + 1;
        *ret_end = i;
        return start < i ? start : 0;
}

bool lkg_mask_text(const char *text, size_t size, struct lkg_buf *buf)
{
        bool found = false;
        size_t start = 0;

        for (size_t i = 0; i + 3 <= size;) {
                size_t from, end, query, query_end, at = SIZE_MAX;

                if (memcmp(text + i, "://", 3) != 0) {
                        i++;
                        continue;
                }
                from = i + 3;
                end = authority_end(text, size, from);
                for (size_t k = from; k < end; k++)
                        if (text[k] == '@')
                                at = k;
                i = end > from ? end : from;
                query = query_start(text, size, i, &query_end);
                if (at != SIZE_MAX) {
                        lkg_buf_append(buf, text + start, from - start);
                        lkg_buf_puts(buf, MASK);
                        start = at;
                        found = true;
                }
                if (query > 0) {
                        lkg_buf_append(buf, text + start, query - start);
                        lkg_buf_puts(buf, MASK);
                        start = i = query_end;
                        found = true;
                }
        }
        lkg_buf_append(buf, text + start, size - start);
        return found;
}

bool lkg_mask_url(const char *text, size_t size, struct lkg_buf *buf)
{
        const char *scheme = lkg_find_scheme(text, size);
        size_t from = scheme ? (size_t)(scheme - text) + 3 : 0, keep = from, end = from;

        while (end < size && text[end] != '?' && text[end] != '#')
                end++;
        for (size_t i = from; i < size; i++)
                if (text[i] == '@')
                        keep = i;
        if (keep > end) /* a password with such a character, or an address in the query */
                keep = end = from;
        lkg_buf_append(buf, text, from);
        if (keep > from)
                lkg_buf_puts(buf, MASK);
        if (end > keep)
                lkg_buf_append(buf, text + keep, end - keep);
        if (end > from && end < size)
                lkg_buf_putc(buf, text[end++]);
        if (end < size)
                lkg_buf_puts(buf, MASK);
        return keep > from || end < size;
}

/* ---- names ---- */

#define NAME(text)                     \
        {                              \
                text, sizeof(text) - 1 \
        }

/* Every name of every document comes here, several times for each publication. */
static bool is_secret_name(const char *name, size_t size)
{
        static const struct {
                const char *text;
                size_t size;
        } names[] = { NAME("password"),      NAME("passwd"),          NAME("token"),
                      NAME("bearerToken"),   NAME("id-token"),        NAME("access-token"),
                      NAME("refresh-token"), NAME("secret"),          NAME("clientSecret"),
                      NAME("privateKey"),    NAME("client-key-data"), NAME("staticPodURLHeader"),
                      NAME("httpHeaders") };
        bool variable = size > 0 && isupper((unsigned char)name[size - 1]); /* PGPASSWORD has no words */

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                if ((size == names[i].size || (variable && size > names[i].size)) &&
                    strncasecmp(name + size - names[i].size, names[i].text, names[i].size) == 0)
                        return true;
        return false;
}

/* memmem(3) prepares a table for every call; texts are short, and most have no such byte. */
static const char *find_mark(const char *text, size_t size, const char *mark, size_t length)
{
        const char *end = text + size;

        for (const char *p = text; (size_t)(end - p) >= length; p++) {
                p = memchr(p, mark[0], (size_t)(end - p) - length + 1);
                if (!p)
                        return NULL;
                if (memcmp(p, mark, length) == 0)
                        return p;
        }
        return NULL;
}

const char *lkg_find_scheme(const char *text, size_t size)
{
        return find_mark(text, size, "://", 3);
}

bool lkg_has_private_key(const char *text, size_t size)
{
        static const char mark[] = "PRIVATE KEY-----";

        return find_mark(text, size, mark, strlen(mark)) != NULL;
}

/* Characters of a name; any other character ends the part that was intended as the name: in DB_PASSWORD, too. */
static bool in_word(unsigned char c)
{
        return isalnum(c) || c == '-' || c >= 0x80;
}

static size_t word_end(const char *name, size_t size, size_t i)
{
        while (i < size && in_word((unsigned char)name[i]))
                i++;
        return i;
}

bool lkg_holds_secret_name(const char *name, size_t size)
{
        for (size_t word = 0, end; word < size; word = end + 1) {
                end = word_end(name, size, word);
                if (is_secret_name(name + word, end - word))
                        return true;
        }
        return false;
}

/* For `token:s3cret`, and for a path. Return: bytes of @name before the credential; 0 = there is none. */
static size_t before_credential(const char *name, size_t size, bool secret)
{
        for (size_t word = 0, end; (end = word_end(name, size, word)) + 1 < size; word = end + 1) {
                if (end == word)
                        continue;
                secret |= is_secret_name(name + word, end - word);
                if (strchr("./[]", name[end])) /* a path: the next component is below this one */
                        continue;
                if (secret)
                        return end + 1;
        }
        return 0;
}

bool lkg_mask_name(const char *name, size_t size, bool secret, struct lkg_buf *buf)
{
        size_t before = buf->size, shown;

        if (lkg_has_private_key(name, size)) {
                lkg_buf_puts(buf, MASK);
                return true;
        }
        if (lkg_find_scheme(name, size)) {
                if (lkg_mask_text(name, size, buf))
                        return true;
                buf->size = before;
        }
        shown = before_credential(name, size, secret);
        lkg_buf_append(buf, name, shown > 0 ? shown : size);
        if (shown > 0)
                lkg_buf_puts(buf, MASK);
        return shown > 0;
}
