/* SPDX-License-Identifier: Apache-2.0 */
/* The one record of encoding/csv that pflag reads for a stringSlice: comma, double quotes, no comments. */
#include <lkg/text.h>

#include "flags.h"

struct csv {
        struct lkg_span rest; /* lines not read yet */
        struct lkg_span line; /* the rest of the current one, without its end */
        bool newline;         /* the current line ends in one */
};

/*
 * Take the next line without its end: \n, \r\n, or a \r before the end of the text.
 * Return: false at the end.
 */
static bool next_line(struct csv *csv)
{
        struct lkg_span rest;

        if (csv->rest.size == 0)
                return false;
        csv->newline = lkg_span_cut(csv->rest, '\n', &csv->line, &rest);
        csv->rest = rest;
        if (csv->line.size > 0 && csv->line.data[csv->line.size - 1] == '\r')
                csv->line.size--;
        return true;
}

static void skip(struct csv *csv, size_t n)
{
        csv->line = lkg_span(csv->line.data + n, csv->line.size - n);
}

static int stray_quote(char *reason)
{
        return lkg_refuse(reason, "a stray double quote; quote a whole item, and double quotes inside it");
}

/* Take an item in quotes, which may span several lines. The line then starts after the closing quote. */
static int quoted(struct csv *csv, struct lkg_buf *buf, char *reason)
{
        skip(csv, 1);
        for (;;) {
                struct lkg_span before, after;

                if (!lkg_span_cut(csv->line, '"', &before, &after)) {
                        lkg_buf_append(buf, before.data, before.size);
                        if (csv->newline)
                                lkg_buf_putc(buf, '\n');
                        if (!next_line(csv))
                                return stray_quote(reason);
                        continue;
                }
                lkg_buf_append(buf, before.data, before.size);
                csv->line = after;
                if (after.size == 0 || *after.data != '"')
                        return 0;
                lkg_buf_putc(buf, '"');
                skip(csv, 1);
        }
}

/*
 * Take the next item into @buf.
 * Return: 1: more items follow; 0: it was the last; a negative error.
 */
static int next_item(struct csv *csv, struct lkg_buf *buf, char *reason)
{
        struct lkg_span item, after;
        int r;

        if (csv->line.size > 0 && *csv->line.data == '"') {
                r = quoted(csv, buf, reason);
                if (r < 0)
                        return r;
                if (csv->line.size == 0)
                        return 0;
                if (*csv->line.data != ',')
                        return stray_quote(reason);
                skip(csv, 1);
                return 1;
        }
        r = lkg_span_cut(csv->line, ',', &item, &after);
        if (lkg_span_count(item, '"') > 0)
                return stray_quote(reason);
        lkg_buf_append(buf, item.data, item.size);
        csv->line = after;
        return r;
}

int lkg_flag_slice(const char *text, size_t size, int (*each)(void *userdata, struct lkg_span item),
                   void *userdata, char *reason)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct csv csv = { .rest = { text, size } };
        int r;

        if (size == 0)
                return 0;
        do {
                if (!next_line(&csv))
                        return lkg_refuse(reason, "nothing but line ends");
        } while (csv.line.size == 0);
        do {
                int stop;

                lkg_buf_reset(&buf);
                r = next_item(&csv, &buf, reason);
                if (r < 0)
                        return r;
                if (lkg_buf_failed(&buf))
                        return -ENOMEM;
                stop = each(userdata, lkg_span(buf.size > 0 ? buf.data : "", buf.size));
                if (stop < 0)
                        return stop;
        } while (r > 0);
        return 0;
}
