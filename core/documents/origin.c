/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin of every leaf: TSV, one line per leaf in key order. A column cannot contain tabs or line
 * breaks: values are JSON, and names of layers and files are escaped like any other text here.
 */

#include <lkg/documents.h>
#include <lkg/tree.h>

/* Text of a column, so that a hostile file name cannot forge a column or a line. */
static void column_text(struct lkg_buf *buf, const char *text)
{
        lkg_buf_shown(buf, text, strlen(text));
}

/* Put one name of a pointer; it is escaped, so that no URL is detected in the pointer itself. */
static void put_name(const char *name, size_t size, bool secret, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT, shown = LKG_BUF_INIT;

        (void)lkg_mask_name(name, size, secret, &masked);
        lkg_pointer_append(&shown, lkg_buf_text(&masked), masked.size);
        column_text(buf, lkg_buf_text(&shown));
}

/* It contains no URL, no name of a credential and no key. */
static bool is_plain(const char *pointer)
{
        return !strstr(pointer, "~1~1") && !strpbrk(pointer, ":= \t,;{}\"'()<>&*!|@#$%^?`\\+");
}

void lkg_pointer_text(const char *pointer, struct lkg_buf *buf)
{
        bool secret = false;

        if (is_plain(pointer)) { /* nearly always */
                column_text(buf, pointer);
                return;
        }
        while (*pointer == '/') {
                LKG_CLEANUP(lkg_freep) char *name = NULL;
                size_t size;

                pointer = lkg_pointer_next(pointer, &name, &size);
                put_name(name, size, secret, buf);
                secret |= lkg_holds_secret_name(name, size);
        }
}

static void json_value(struct lkg_buf *buf, const struct lkg_value *value, enum lkg_secrecy secrecy)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = lkg_mask_value(value, secrecy);

        lkg_render_json_compact(masked, buf);
}

struct origin {
        struct lkg_buf *buf;
        size_t size_max;
        size_t n_unlisted;
};

static bool is_full(const struct origin *o)
{
        return o->buf->size > o->size_max;
}

/* Appends the chain of replaced values: `layer=value;...`. */
static void put_replaced(const struct origin *o, const struct lkg_value *replaced, enum lkg_secrecy secrecy,
                         bool *first)
{
        struct lkg_buf *buf = o->buf;

        for (const struct lkg_value *v = replaced; v && !is_full(o); v = lkg_value_shadowed(v)) {
                if (!*first)
                        lkg_buf_putc(buf, ';');
                *first = false;
                if (lkg_value_source(v))
                        column_text(buf, lkg_value_source(v)->layer);
                lkg_buf_putc(buf, '=');
                json_value(buf, v, secrecy);
        }
}

/*
 * A map around the leaf may have replaced another value, and thereby the leaf: a whole scalar or list, or
 * the value at the same path of another map. The nearest map replaced last.
 */
static void put_shadows(const struct origin *o, const struct lkg_leaf *leaf, enum lkg_secrecy secrecy)
{
        bool first = true;

        put_replaced(o, lkg_value_shadowed(leaf->value), secrecy, &first);
        for (const struct lkg_above *above = leaf->above; above; above = above->up) {
                const struct lkg_value *replaced = lkg_value_shadowed(above->map);

                if (replaced && lkg_value_type(replaced) == LKG_MAP)
                        replaced = lkg_value_get_pointer(replaced, leaf->pointer + above->pointer_size);
                put_replaced(o, replaced, secrecy, &first);
        }
}

static int origin_line(const struct lkg_leaf *leaf, void *userdata)
{
        const struct lkg_source *source = lkg_value_source(leaf->value);
        struct origin *o = userdata;
        struct lkg_buf *buf = o->buf;
        enum lkg_secrecy secrecy = lkg_pointer_secrecy(leaf->pointer);
        size_t before = buf->size;

        if (o->n_unlisted > 0) { /* no line after a missing one */
                o->n_unlisted++;
                return 0;
        }
        lkg_pointer_text(leaf->pointer, buf);
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
        put_shadows(o, leaf, secrecy);
        lkg_buf_putc(buf, '\n');
        if (is_full(o)) {
                buf->size = before;
                o->n_unlisted++;
        }
        return 0;
}

size_t lkg_render_origin_upto(const struct lkg_value *root, size_t size_max, struct lkg_buf *buf)
{
        struct origin o = { .buf = buf, .size_max = size_max };

        (void)lkg_value_walk(root, origin_line, &o);
        return o.n_unlisted;
}

void lkg_render_origin(const struct lkg_value *root, struct lkg_buf *buf)
{
        (void)lkg_render_origin_upto(root, SIZE_MAX, buf);
}
