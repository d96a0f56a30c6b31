/* SPDX-License-Identifier: Apache-2.0 */
#include "report-parts.h"

#include <stdarg.h>

#include <lkg/base.h>
#include <lkg/file.h>

void lkg_parts_deinit(struct lkg_parts *parts)
{
        for (size_t i = 0; i < parts->n; i++) {
                free(parts->items[i].name);
                free(parts->items[i].data);
        }
        free(parts->items);
        *parts = (struct lkg_parts){ 0 };
}

static struct lkg_part *find_begun(struct lkg_parts *parts, const char *name)
{
        struct lkg_part *last = parts->n ? &parts->items[parts->n - 1] : NULL;

        return last && last->error == -EINPROGRESS && strcmp(last->name, name) == 0 ? last : NULL;
}

void lkg_parts_add(struct lkg_parts *parts, const char *name, const char *data, size_t size, int error,
                   uint64_t modified_s)
{
        struct lkg_part part = { .size = size, .error = error, .modified_s = modified_s };
        struct lkg_part *begun = find_begun(parts, name);

        part.name = strdup(name);
        part.data = malloc(size + 1);
        if (!part.name || !part.data ||
            (!begun && LKG_RESERVE(parts->items, parts->n, parts->n_allocated) < 0)) {
                free(part.name);
                free(part.data);
                parts->no_memory = true;
                return;
        }
        if (size)
                memcpy(part.data, data, size);
        part.data[size] = '\0';
        if (begun) {
                free(begun->name);
                free(begun->data);
                *begun = part;
        } else {
                parts->items[parts->n++] = part;
        }
}

static const struct lkg_part *find(const struct lkg_parts *parts, const char *fmt, va_list ap)
        LKG_PRINTF(2, 0);

static const struct lkg_part *find(const struct lkg_parts *parts, const char *fmt, va_list ap)
{
        LKG_CLEANUP(lkg_freep) char *name = NULL;

        if (vasprintf(&name, fmt, ap) < 0) {
                name = NULL;
                return NULL;
        }
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
                name = strndup(data, frame.name_size);
                if (!name) {
                        parts->no_memory = true;
                        return;
                }
                lkg_parts_add(parts, name, data + frame.name_size, frame.size, frame.error,
                              frame.modified_s);
                data += frame.name_size + frame.size;
                size -= frame.name_size + frame.size;
        }
}
