/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report, and the masks over what may hold a secret. */
#include "report.h"

#define MASK "<masked>"

void lkg_parts_deinit(struct lkg_parts *parts)
{
        for (size_t i = 0; i < parts->n; i++) {
                free(parts->items[i].name);
                free(parts->items[i].data);
        }
        free(parts->items);
}

void lkg_parts_add(struct lkg_parts *parts, const char *name, const char *data, size_t size, int error,
                   uint64_t modified_s)
{
        struct lkg_part *last = parts->n ? &parts->items[parts->n - 1] : NULL;

        if (last && last->error == -EINPROGRESS && strcmp(last->name, name) == 0) {
                free(last->name);
                free(last->data);
        } else {
                (void)lkg_tool_need(LKG_RESERVE(parts->items, parts->n, parts->n_allocated));
                last = &parts->items[parts->n++];
        }
        *last = (struct lkg_part){ .name = lkg_tool_format("%s", name),
                                   .data = lkg_tool_own(malloc(size + 1)),
                                   .size = size,
                                   .error = error,
                                   .modified_s = modified_s };
        if (size)
                memcpy(last->data, data, size);
        last->data[size] = '\0';
}

static const struct lkg_part *find(const struct lkg_parts *parts, const char *fmt, va_list ap)
        LKG_PRINTF(2, 0);
static const struct lkg_part *find(const struct lkg_parts *parts, const char *fmt, va_list ap)
{
        LKG_CLEANUP(lkg_freep) char *name = lkg_tool_vformat(fmt, ap);
        for (size_t i = 0; i < parts->n; i++)
                if (strcmp(parts->items[i].name, name) == 0)
                        return &parts->items[i];
        return NULL;
}

const struct lkg_part *lkg_parts_find(const struct lkg_parts *parts, const char *fmt, ...)
{
        const struct lkg_part *part;
        va_list ap;

        va_start(ap, fmt);
        part = find(parts, fmt, ap);
        va_end(ap);
        return part;
}

const char *lkg_parts_text(const struct lkg_parts *parts, const char *fmt, ...)
{
        const struct lkg_part *part;
        va_list ap;

        va_start(ap, fmt);
        part = find(parts, fmt, ap);
        va_end(ap);
        return part && part->error == 0 ? part->data : "";
}

struct lkg_value *lkg_parts_json(const struct lkg_parts *parts, const char *fmt, ...)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_part *part;
        struct lkg_value *value = NULL;
        va_list ap;

        va_start(ap, fmt);
        part = find(parts, fmt, ap);
        va_end(ap);
        if (!part || part->error < 0 ||
            lkg_decode_json(part->data, part->size, 0, NULL, &ignored, &value) < 0)
                return NULL;
        return value;
}

const struct lkg_part *lkg_parts_next(const struct lkg_parts *parts, const struct lkg_part *part,
                                      const char *prefix)
{
        for (size_t i = part ? (size_t)(part - parts->items) + 1 : 0; i < parts->n; i++)
                if (strncmp(parts->items[i].name, prefix, strlen(prefix)) == 0)
                        return &parts->items[i];
        return NULL;
}

bool lkg_parts_under(const struct lkg_parts *parts, const char *prefix, size_t i, char ret[static 256])
{
        const char *last = NULL;
        size_t last_size = 0;

        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, prefix));) {
                const char *name = part->name + strlen(prefix);
                size_t size = strcspn(name, "/");

                /* Parts of one directory follow each other. */
                if (!name[size] || size > 255 ||
                    (last && size == last_size && strncmp(name, last, size) == 0))
                        continue;
                last = name;
                last_size = size;
                if (i-- > 0)
                        continue;
                memcpy(ret, name, size);
                ret[size] = '\0';
                return true;
        }
        return false;
}

/* ---- through a pipe ---- */

struct part_frame {
        size_t name_size, size;
        int64_t error; /* no padding: it is written as it is */
        uint64_t modified_s;
};

void lkg_parts_send(const char *name, const char *data, size_t size, int error, uint64_t modified_s)
{
        const struct part_frame frame = { strlen(name), size, error, modified_s };

        if (lkg_write_all(STDOUT_FILENO, &frame, sizeof(frame)) < 0 ||
            lkg_write_all(STDOUT_FILENO, name, frame.name_size) < 0 ||
            (size && lkg_write_all(STDOUT_FILENO, data, size) < 0))
                _exit(LKG_TOOL_FAILED); /* nobody listens any more */
}

void lkg_parts_receive(struct lkg_parts *parts, const char *data, size_t size)
{
        struct part_frame frame;

        while (size >= sizeof(frame)) {
                LKG_CLEANUP(lkg_freep) char *name = NULL;

                memcpy(&frame, data, sizeof(frame));
                data += sizeof(frame);
                size -= sizeof(frame);
                if (frame.name_size > size || frame.size > size - frame.name_size)
                        return; /* it was cut off */
                name = lkg_tool_own(strndup(data, frame.name_size));
                lkg_parts_add(parts, name, data + frame.name_size, frame.size, (int)frame.error,
                              frame.modified_s);
                data += frame.name_size + frame.size;
                size -= frame.name_size + frame.size;
        }
}

/* ---- masks ---- */

/*
 * Masks what is not masked where it lies: lkg/ and our own configuration are documents in full, and command lines are those of
 * others. Everything else in a report was masked by who wrote it (docs/specification.md 2.13).
 */
int lkg_report_mask_document(const char *text, size_t size, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        enum lkg_format format = lkg_detect_format(text, size);

        if (lkg_decode(text, size, format, LKG_DECODE_UNTYPED, NULL, &ignored, &doc) < 0)
                return -EBADMSG;
        lkg_tool_render_masked(doc, format, ret);
        return 0;
}

/* A word that names a credential hides itself, and the next one if it has no value: `--token=x`, `--token x`. */
static void mask_word(const char *word, size_t size, bool *hide_next, struct lkg_buf *ret)
{
        const char *equals = memchr(word, '=', size);
        size_t name_size = equals ? (size_t)(equals - word) : size;
        size_t dashes = 0;

        while (dashes < name_size && word[dashes] == '-')
                dashes++;
        if (*hide_next && dashes == 0) {
                lkg_buf_puts(ret, MASK);
                *hide_next = false;
                return;
        }
        *hide_next = false;
        if (!dashes || lkg_name_secrecy(word + dashes, name_size - dashes) == LKG_PUBLIC) {
                (void)lkg_mask_text(word, size, ret);
                return;
        }
        lkg_buf_append(ret, word, name_size);
        if (equals)
                lkg_buf_puts(ret, "=" MASK);
        *hide_next = !equals;
}

static void mask_line(const char *line, size_t size, struct lkg_buf *ret)
{
        bool hide_next = false;

        if (lkg_has_private_key(line, size)) {
                lkg_buf_puts(ret, MASK);
                return;
        }
        for (size_t at = 0; at < size;) {
                size_t n = 0;

                while (at + n < size && line[at + n] != ' ')
                        n++;
                if (n)
                        mask_word(line + at, n, &hide_next, ret);
                at += n;
                for (; at < size && line[at] == ' '; at++)
                        lkg_buf_putc(ret, ' ');
        }
}

void lkg_report_mask_lines(const char *text, size_t size, struct lkg_buf *ret)
{
        for (size_t at = 0; at < size;) {
                const char *end = memchr(text + at, '\n', size - at);
                size_t n = end ? (size_t)(end - text) - at : size - at;

                mask_line(text + at, n, ret);
                if (end)
                        lkg_buf_putc(ret, '\n');
                at += n + 1;
        }
}
