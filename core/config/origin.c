/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where every leaf comes from: TSV, one line per leaf in key order. Tabs and line breaks cannot occur inside
 * a column: values are JSON, and names of layers and files are escaped like any text here.
 */
#include "internal.h"

#include <lkg/render.h>

/* Text of a column: control bytes as \xNN, so that a hostile file name cannot forge a column or a line. */
static void column_text(struct lkg_buf *buf, const char *text)
{
        for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
                if (*p < 0x20 || *p == 0x7f)
                        lkg_buf_printf(buf, "\\x%02x", *p);
                else
                        lkg_buf_putc(buf, (char)*p);
        }
}

static void json_value(struct lkg_buf *buf, const struct lkg_value *value, enum lkg_secrecy secrecy)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = lkg_mask_value(value, secrecy);

        if (masked)
                lkg_render_json_compact(masked, buf);
        else
                buf->failed = true;
}

static int origin_line(const struct lkg_leaf *leaf, void *userdata)
{
        const struct lkg_source *source = lkg_value_source(leaf->value);
        struct lkg_buf *buf = userdata;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf pointer = LKG_BUF_INIT;
        enum lkg_secrecy secrecy = lkg_pointer_secrecy(leaf->pointer);

        (void)lkg_mask_text(leaf->pointer, strlen(leaf->pointer), &pointer);
        if (lkg_buf_failed(&pointer))
                return -ENOMEM;
        column_text(buf, pointer.data);
        lkg_buf_putc(buf, '\t');
        json_value(buf, leaf->value, secrecy);
        lkg_buf_putc(buf, '\t');
        column_text(buf, source ? source->layer : "");
        lkg_buf_putc(buf, '\t');
        if (source)
                column_text(buf, source->file);
        if (lkg_value_line(leaf->value))
                lkg_buf_printf(buf, ":%u:%u", lkg_value_line(leaf->value), lkg_value_column(leaf->value));
        lkg_buf_putc(buf, '\t');
        for (const struct lkg_value *v = lkg_value_shadowed(leaf->value), *first = v; v;
             v = lkg_value_shadowed(v)) {
                if (v != first)
                        lkg_buf_putc(buf, ';');
                if (lkg_value_source(v))
                        column_text(buf, lkg_value_source(v)->layer);
                lkg_buf_putc(buf, '=');
                json_value(buf, v, secrecy);
        }
        lkg_buf_putc(buf, '\n');
        return lkg_buf_failed(buf) ? -ENOMEM : 0;
}

void lkg_render_origin(const struct lkg_value *root, struct lkg_buf *buf)
{
        if (lkg_value_walk(root, origin_line, buf) < 0)
                buf->failed = true;
}
