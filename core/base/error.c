/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: one message, made where the cause is known, with context prepended on the way up. */
#include <stdarg.h>

#include <lkg/base.h>

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

int lkg_error_setv(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt,
                   va_list ap)
{
        size_t n;

        if (!err)
                return code;
        err->code = code;
        n = lkg_where_text(where, err->message, sizeof(err->message));
        (void)vsnprintf(err->message + n, sizeof(err->message) - n, fmt, ap);
        return code;
}

int lkg_error_set(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
{
        size_t length;
        va_list ap;

        va_start(ap, fmt);
        (void)lkg_error_setv(err, code, where, fmt, ap);
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
