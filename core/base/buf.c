/* SPDX-License-Identifier: Apache-2.0 */
/* The end without memory; a growing byte buffer with sticky failure. */

#include <sysexits.h>
#include <unistd.h>

#include <lkg/text.h>

/* ---- no memory ---- */

static void (*last_words)(void);

void lkg_at_no_memory(void (*last)(void))
{
        last_words = last;
}

int lkg_lack(void)
{
        if (last_words)
                lkg_no_memory();
        return -ENOMEM;
}

_Noreturn void lkg_no_memory(void)
{
        void (*last)(void) = last_words;

        last_words = NULL; /* they may need memory themselves */
        if (last)
                last();
        else
                (void)dprintf(STDERR_FILENO, "%s\n", strerror(ENOMEM));
        _exit(EX_OSERR);
}

/* ---- the buffer ---- */

/*
 * Above this size, growing by half would waste too much memory; the kernel moves such blocks without copying
 * them.
 */
#define BIG ((size_t)1 << 20)

void lkg_buf_deinit(struct lkg_buf *buf)
{
        if (!buf)
                return;
        free(buf->data);
        *buf = (struct lkg_buf)LKG_BUF_INIT;
}

static bool reserve(struct lkg_buf *buf, size_t extra)
{
        size_t need, n;
        char *data;

        if (buf->failed)
                return false;
        if (__builtin_add_overflow(buf->size, extra, &need) ||
            __builtin_add_overflow(need, (size_t)1, &need)) {
                buf->failed = true;
                return false;
        }
        if (need <= buf->allocated)
                return true;
        n = buf->allocated ? buf->allocated : 64;
        while (n < need && n < BIG)
                n *= 2;
        if (n < need)
                n = need > SIZE_MAX - need / 4 ? need : need + need / 4;
        data = realloc(buf->data, n);
        if (!data) {
                buf->failed = lkg_lack() < 0;
                return false;
        }
        buf->data = data;
        buf->allocated = n;
        return true;
}

const char *lkg_buf_text(struct lkg_buf *buf)
{
        lkg_buf_append(buf, "", 0);
        if (buf->failed)
                lkg_no_memory();
        return buf->data;
}

void lkg_buf_expect(struct lkg_buf *buf, size_t extra)
{
        size_t need;
        char *data;

        if (buf->failed || __builtin_add_overflow(buf->size, extra, &need) || need <= buf->allocated)
                return;
        data = realloc(buf->data, need);
        if (!data)
                return; /* the next append reports it */
        if (!buf->data)
                *data = '\0';
        buf->data = data;
        buf->allocated = need;
}

void lkg_buf_append(struct lkg_buf *buf, const void *data, size_t size)
{
        if (!reserve(buf, size))
                return;
        if (size)
                memcpy(buf->data + buf->size, data, size);
        buf->size += size;
        buf->data[buf->size] = '\0';
}

void lkg_buf_puts(struct lkg_buf *buf, const char *text)
{
        lkg_buf_append(buf, text, strlen(text));
}

void lkg_buf_putc(struct lkg_buf *buf, char c)
{
        if (buf->failed || buf->allocated - buf->size < 2) {
                lkg_buf_append(buf, &c, 1);
                return;
        }
        buf->data[buf->size++] = c;
        buf->data[buf->size] = '\0';
}

void lkg_buf_u64(struct lkg_buf *buf, uint64_t n)
{
        char text[20];
        size_t at = sizeof(text);

        do
                text[--at] = (char)('0' + n % 10);
        while ((n /= 10) > 0);
        lkg_buf_append(buf, text + at, sizeof(text) - at);
}

void lkg_buf_printf(struct lkg_buf *buf, const char *fmt, ...)
{
        va_list ap, again;
        int n;

        if (!reserve(buf, 128))
                return;
        va_start(ap, fmt);
        va_copy(again, ap);
        n = vsnprintf(buf->data + buf->size, buf->allocated - buf->size, fmt, ap);
        va_end(ap);
        if (n < 0) {
                buf->failed = true;
        } else if ((size_t)n >= buf->allocated - buf->size) {
                if (reserve(buf, (size_t)n)) {
                        (void)vsnprintf(buf->data + buf->size, (size_t)n + 1, fmt, again);
                        buf->size += (size_t)n;
                }
        } else {
                buf->size += (size_t)n;
        }
        va_end(again);
}

void lkg_buf_reset(struct lkg_buf *buf)
{
        buf->size = 0;
        buf->failed = false;
        if (buf->data)
                buf->data[0] = '\0';
}

char *lkg_buf_steal(struct lkg_buf *buf, size_t *ret_size)
{
        char *data = NULL;

        if (reserve(buf, 0)) {
                buf->data[buf->size] = '\0';
                if (ret_size)
                        *ret_size = buf->size;
                if (buf->allocated > BIG)
                        data = realloc(buf->data, buf->size + 1);
                if (data)
                        buf->data = NULL;
                else
                        data = LKG_STEAL(buf->data);
        } else if (ret_size) {
                *ret_size = 0;
        }
        lkg_buf_deinit(buf);
        return data;
}

char *lkg_vformat(const char *fmt, va_list ap)
{
        char *text;

        return lkg_must(vasprintf(&text, fmt, ap) < 0 ? NULL : text);
}

char *lkg_format(const char *fmt, ...)
{
        va_list ap;
        char *text;

        va_start(ap, fmt);
        text = lkg_vformat(fmt, ap);
        va_end(ap);
        return text;
}

char *lkg_copy(const char *text)
{
        return text ? lkg_must(strdup(text)) : NULL;
}

static void json_escape(struct lkg_buf *buf, uint32_t c)
{
        switch (c) {
        case '"':
                lkg_buf_puts(buf, "\\\"");
                break;
        case '\\':
                lkg_buf_puts(buf, "\\\\");
                break;
        case '\n':
                lkg_buf_puts(buf, "\\n");
                break;
        case '\r':
                lkg_buf_puts(buf, "\\r");
                break;
        case '\t':
                lkg_buf_puts(buf, "\\t");
                break;
        default:
                if (c >= 0x10000) /* as a pair of surrogates */
                        lkg_buf_printf(buf, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
                else
                        lkg_buf_printf(buf, "\\u%04x", c);
        }
}

void lkg_buf_json_string(struct lkg_buf *buf, const char *text, size_t size)
{
        const unsigned char *p = (const unsigned char *)text;
        size_t start = 0; /* start of the unchanged part */

        lkg_buf_putc(buf, '"');
        for (size_t i = 0; i < size;) {
                uint32_t c = p[i];
                size_t n = c >= 0x20 && c < 0x7f ? 1 : lkg_shown_length(text + i, size - i, &c);

                if (n > 0 && p[i] != '"' && p[i] != '\\') {
                        i += n;
                        continue;
                }
                lkg_buf_append(buf, text + start, i - start);
                if (c == UINT32_MAX)
                        lkg_buf_puts(buf, "\xef\xbf\xbd");
                else
                        json_escape(buf, c);
                i += c == UINT32_MAX ? 1 : lkg_utf8_length(p + i, size - i);
                start = i;
        }
        lkg_buf_append(buf, text + start, size - start);
        lkg_buf_putc(buf, '"');
}

void lkg_text_copy(char *ret, size_t size, const char *text)
{
        size_t n = strnlen(text, size - 1);

        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) /* cut here; the NUL is not such a byte */
                n--;
        memmove(ret, text, n);
        ret[n] = '\0';
}

/* ---- escape ---- */

void lkg_escape(struct lkg_buf *buf, const char *text, unsigned char max_control)
{
        const unsigned char *p = (const unsigned char *)text, *start = p; /* start: of the unchanged part */

        for (; *p; p++) {
                if (*p > max_control && *p != 0x7f && *p != '%')
                        continue;
                lkg_buf_append(buf, start, (size_t)(p - start));
                lkg_buf_printf(buf, "%%%02X", *p);
                start = p + 1;
        }
        lkg_buf_append(buf, start, (size_t)(p - start));
}

int lkg_hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int lkg_unescape(char *text)
{
        char *to = strchrnul(text, '%');

        for (const char *from = to; *from; from++) {
                if (*from != '%') {
                        *to++ = *from;
                        continue;
                }
                int high = lkg_hex_digit(from[1]);
                int low = high < 0 ? -1 : lkg_hex_digit(from[2]);

                if (low < 0 || (high == 0 && low == 0))
                        return -EBADMSG;
                *to++ = (char)(high << 4 | low);
                from += 2;
        }
        *to = '\0';
        return 0;
}
