/* SPDX-License-Identifier: Apache-2.0 */
/* The fields in which a condemned document differs from the last known good: see lkg/schema.h. */
#include <inttypes.h>
#include <stdio.h>

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/text.h>
#include <lkg/schema.h>

#include "tree.h"

/* ---- the map ---- */

static void put(struct lkg_value *map, const char *name, struct lkg_value *value)
{
        (void)lkg_map_set(map, name, strlen(name), value);
}

/* At most @max bytes, whole characters. Return: what it takes, about. */
static size_t put_text(struct lkg_value *map, const char *name, const char *text, size_t size, size_t max)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t n = size;

        if (n > max) {
                n = 0;
                for (size_t k; (k = lkg_utf8_length(text + n, max - n)) > 0 && n + k <= max;)
                        n += k;
        }
        lkg_buf_append(&buf, text, n);
        if (n < size)
                lkg_buf_puts(&buf, "...");
        put(map, name, lkg_value_new_string(lkg_buf_text(&buf), buf.size, NULL, 0, 0));
        return buf.size + strlen(name);
}

static size_t put_word(struct lkg_value *map, const char *name, const char *text)
{
        return put_text(map, name, text, strlen(text), LKG_SUSPECT_TEXT_MAX);
}

static void put_number(struct lkg_value *map, const char *name, uint64_t n)
{
        char text[24];

        (void)snprintf(text, sizeof(text), "%" PRIu64, n);
        put(map, name, lkg_value_new_number(text, NULL, 0, 0));
}

/* As JSON text, masked like `origin`. */
static size_t put_value(struct lkg_value *map, const char *name, const char *pointer,
                        const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (!value)
                return 0;
        masked = lkg_mask_value(value, lkg_pointer_secrecy(pointer));
        lkg_render_json_compact(masked, &buf);
        return put_text(map, name, lkg_buf_text(&buf), buf.size, LKG_SUSPECT_VALUE_MAX);
}

/* `/etc/x.conf:3:10` */
static size_t put_position(struct lkg_value *map, const char *text, size_t size)
{
        size_t colons[2] = { 0 }, n = 0;
        unsigned line = 0;

        for (size_t i = size; i > 0 && n < LKG_ARRAY_SIZE(colons); i--) {
                if (text[i - 1] == ':')
                        colons[n++] = i - 1;
                else if (text[i - 1] < '0' || text[i - 1] > '9')
                        break;
        }
        if (n == 2)
                line = (unsigned)strtoul(text + colons[1] + 1, NULL, 10);
        if (line)
                put_number(map, "line", line);
        return put_text(map, "file", text, n == 2 ? colons[1] : size, LKG_SUSPECT_TEXT_MAX);
}

/* The line of @origin with the pointer @shown: pointer, value, layer, position, separated by tabs. */
static size_t put_place(struct lkg_value *map, const char *origin, const char *shown)
{
        size_t n = strlen(shown), layer, size;
        const char *line = origin;

        while (line && *line && !(strncmp(line, shown, n) == 0 && line[n] == '\t')) {
                line = strchr(line, '\n');
                line += line != NULL;
        }
        line = line && *line ? strchr(line + n + 1, '\t') : NULL;
        if (!line)
                return 0;
        line++;
        layer = strcspn(line, "\t\n");
        size = put_text(map, "layer", line, layer, LKG_SUSPECT_TEXT_MAX);
        line += layer + (line[layer] == '\t');
        return size + put_position(map, line, strcspn(line, "\t\n"));
}

/* Of a value that no line of `origin` stands for. */
static size_t put_own_place(struct lkg_value *map, const struct lkg_value *value)
{
        const struct lkg_where where = lkg_where_of(value);

        if (!where.file || !where.line)
                return 0;
        put_number(map, "line", where.line);
        return put_word(map, "file", where.file);
}

/* The place of a field that is gone is where the last known good had it. */
static struct lkg_value *describe(const struct lkg_field_change *change,
                                  const struct lkg_suspects_side *good,
                                  const struct lkg_suspects_side *condemned, size_t *size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf shown = LKG_BUF_INIT;
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);
        size_t n;

        lkg_pointer_text(change->pointer, &shown);
        *size += put_word(map, "pointer", lkg_buf_text(&shown));
        if (change->field) {
                *size += put_word(map, "field", change->field->path);
                *size += put_word(map, "danger", lkg_danger_name(change->danger));
                *size += put_word(map, "changeClass", lkg_change_class_name(change->change_class));
        }
        n = put_place(map, change->after ? condemned->origin : good->origin, lkg_buf_text(&shown));
        *size += n ? n : put_own_place(map, change->after ? change->after : change->before);
        *size += put_value(map, "old", change->pointer, change->before);
        *size += put_value(map, "new", change->pointer, change->after);
        return map;
}

struct lkg_value *lkg_suspects_find(const struct lkg_schema *schema, const struct lkg_suspects_side *good,
                                    const struct lkg_suspects_side *condemned, bool whole)
{
        LKG_CLEANUP(lkg_field_changes_deinit) struct lkg_field_changes changes = { 0 };
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0), *list = lkg_value_new_list(NULL, 0, 0);
        size_t i = 0, size = 0;

        lkg_schema_dangers(schema, good->doc, condemned->doc, &changes);
        for (; i < changes.n_items && (whole || i < LKG_SUSPECTS_MAX); i++) {
                struct lkg_value *item = describe(&changes.items[i], good, condemned, &size);

                if (i > 0 && !whole && size > LKG_SUSPECTS_BYTES_MAX) {
                        lkg_value_unref(item);
                        break;
                }
                lkg_list_append(list, item);
        }
        if (condemned->generation)
                put_number(map, "generation", condemned->generation);
        if (good->generation)
                put_number(map, "lastKnownGood", good->generation);
        put(map, "fields", list);
        if (changes.n_items > i)
                put_number(map, "notListed", changes.n_items - i);
        return map;
}

struct lkg_value *lkg_suspects_unknown(const char *why)
{
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);

        (void)put_word(map, "unknown", why);
        return map;
}

/* ---- reading it ---- */

static const struct lkg_value *fields_of(const struct lkg_value *suspects)
{
        const struct lkg_value *fields =
                suspects && lkg_value_type(suspects) == LKG_MAP ? lkg_map_get(suspects, "fields") : NULL;

        return fields && lkg_value_type(fields) == LKG_LIST ? fields : NULL;
}

bool lkg_suspects_known(const struct lkg_value *suspects)
{
        return fields_of(suspects) != NULL;
}

static uint64_t number_of(const struct lkg_value *map, const char *name)
{
        const struct lkg_value *value =
                map && lkg_value_type(map) == LKG_MAP ? lkg_map_get(map, name) : NULL;

        return value && lkg_value_type(value) == LKG_NUMBER ? strtoull(lkg_value_text(value, NULL), NULL, 10)
                                                            : 0;
}

uint64_t lkg_suspects_number(const struct lkg_value *suspects, const char *name)
{
        return number_of(suspects, name);
}

/* A kind without a table: the first name of the pointer, because the rest may be content. */
static struct lkg_span name_of(const struct lkg_value *item)
{
        static const char whole[] = "the document";
        const char *field = lkg_map_get_string(item, "field"),
                   *pointer = lkg_map_get_string(item, "pointer");

        if (field)
                return lkg_span(field, strlen(field));
        if (pointer && *pointer)
                return lkg_span(pointer + 1, strcspn(pointer + 1, "/"));
        return lkg_span(whole, strlen(whole));
}

/* The field of item @i was named before: another key of the same map. */
static bool is_repeated(const struct lkg_value *fields, size_t i)
{
        struct lkg_span name = name_of(lkg_list_get(fields, i));

        for (struct lkg_member m = { 0 }; m.n < i && lkg_value_next(fields, &m);)
                if (lkg_span_equal(name_of(m.value), name))
                        return true;
        return false;
}

static void say_one(const struct lkg_value *item, struct lkg_buf *buf)
{
        const char *layer = lkg_map_get_string(item, "layer");
        const struct lkg_span name = name_of(item);
        uint64_t line = number_of(item, "line");

        lkg_buf_append(buf, name.data, name.size);
        if (!layer || !*layer)
                return;
        lkg_buf_printf(buf, " (%s", layer);
        if (line)
                lkg_buf_printf(buf, ":%" PRIu64, line);
        lkg_buf_putc(buf, ')');
}

static size_t n_others(const struct lkg_value *fields, size_t from)
{
        size_t n = 0;

        for (size_t i = from; i < lkg_value_size(fields); i++)
                n += !is_repeated(fields, i);
        return n;
}

void lkg_suspects_say(const struct lkg_value *suspects, size_t room, struct lkg_buf *buf)
{
        static const char more[] = " and 18446744073709551615 more";
        const struct lkg_value *fields = fields_of(suspects);
        size_t start = buf->size, i = 0, n = fields ? lkg_value_size(fields) : 0;
        uint64_t others;

        if (!fields)
                return;
        if (n == 0) {
                lkg_buf_puts(buf, "no field differs from the last known good");
                return;
        }
        for (; i < n; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf one = LKG_BUF_INIT;

                if (is_repeated(fields, i))
                        continue;
                say_one(lkg_list_get(fields, i), &one);
                if (i > 0 && buf->size - start + one.size + sizeof(more) > room)
                        break;
                lkg_buf_puts(buf, i == 0 ? "suspects: " : ", ");
                lkg_buf_append(buf, one.data, one.size);
        }
        others = n_others(fields, i) + number_of(suspects, "notListed");
        if (others)
                lkg_buf_printf(buf, " and %" PRIu64 " more", others);
}
