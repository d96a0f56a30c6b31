/* SPDX-License-Identifier: Apache-2.0 */
/* The fields in which a condemned document differs from the last known good: see lkg/schema.h. */
#include <inttypes.h>
#include <stdio.h>

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/text.h>
#include <lkg/schema.h>

#include "tree.h"

/* ---- places: the text of `origin` ---- */

struct suspect_place {
        char *layer, *file; /* "" = not known */
        unsigned line;      /* 0 = not known */
};

static void place_deinit(struct suspect_place *place)
{
        free(place->layer);
        free(place->file);
}

/* The line of @shown, the pointer as `origin` shows it; NULL = it is not there. */
static const char *line_of(const char *origin, const char *shown)
{
        size_t n = strlen(shown);

        for (const char *line = origin; line && *line; line = strchr(line, '\n'), line += line != NULL)
                if (strncmp(line, shown, n) == 0 && line[n] == '\t')
                        return line + n + 1;
        return NULL;
}

/* `/etc/x.conf:3:10` */
static int take_position(const char *text, size_t size, struct suspect_place *ret)
{
        size_t colons[2] = { 0 }, n = 0;

        for (size_t i = size; i > 0 && n < LKG_ARRAY_SIZE(colons); i--) {
                if (text[i - 1] == ':')
                        colons[n++] = i - 1;
                else if (text[i - 1] < '0' || text[i - 1] > '9')
                        break;
        }
        if (n == 2)
                ret->line = (unsigned)strtoul(text + colons[1] + 1, NULL, 10);
        ret->file = strndup(text, n == 2 ? colons[1] : size);
        return ret->file ? 0 : -ENOMEM;
}

static int find_place(const char *origin, const char *shown, struct suspect_place *ret)
{
        const char *at = line_of(origin, shown);

        at = at ? strchr(at, '\t') : NULL;
        if (!at)
                return 0;
        at++;
        ret->layer = strndup(at, strcspn(at, "\t\n"));
        at += strcspn(at, "\t\n");
        if (!ret->layer)
                return -ENOMEM;
        at += *at == '\t';
        return take_position(at, strcspn(at, "\t\n"), ret);
}

/* ---- the differences ---- */

struct suspect {
        char *pointer;
        const struct lkg_value *before, *after; /* borrowed; NULL = the document does not have it */
        const struct lkg_field *field;          /* NULL: no row */
        enum lkg_danger danger;
        enum lkg_change_class change_class;
};

struct finding {
        const struct lkg_schema *schema;
        struct suspect *items;
        size_t n, allocated;
};

static void finding_deinit(struct finding *finding)
{
        for (size_t i = 0; i < finding->n; i++)
                free(finding->items[i].pointer);
        free(finding->items);
}

static int collect(const char *pointer, const struct lkg_value *before, const struct lkg_value *after,
                   void *userdata)
{
        struct finding *finding = userdata;
        struct suspect *item;
        int r = lkg_schema_same_effect(finding->schema, pointer, before, after, /* has_base= */ false);

        if (r != 0) /* what changes nothing is not to blame */
                return r < 0 ? r : 0;
        if (LKG_RESERVE(finding->items, finding->n, finding->allocated) < 0)
                return -ENOMEM;
        item = &finding->items[finding->n];
        *item = (struct suspect){ .pointer = strdup(pointer), .before = before, .after = after };
        if (!item->pointer)
                return -ENOMEM;
        finding->n++;
        item->field = lkg_schema_field(finding->schema, pointer);
        item->danger = item->field ? item->field->danger : LKG_DANGER_UNKNOWN;
        item->change_class = lkg_change_class_of(item->field);
        return 0;
}

static int worst_first(const void *a, const void *b)
{
        const struct suspect *x = a, *y = b;

        if (x->danger != y->danger)
                return (int)y->danger - (int)x->danger;
        if (x->change_class != y->change_class)
                return (int)y->change_class - (int)x->change_class;
        return strcmp(x->pointer, y->pointer);
}

/* ---- the map ---- */

struct writing {
        struct lkg_value *map;
        size_t size;
        bool failed;
};

static void take(struct writing *w, const char *name, struct lkg_value *value)
{
        w->failed |= !value || lkg_map_set(w->map, name, strlen(name), value) < 0;
}

/* At most @max bytes, whole characters. */
static void put_text(struct writing *w, const char *name, const char *text, size_t max)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t n = strlen(text);

        if (n > max) {
                n = 0;
                for (size_t k; (k = lkg_utf8_length(text + n, max - n)) > 0 && n + k <= max;)
                        n += k;
        }
        lkg_buf_append(&buf, text, n);
        if (text[n])
                lkg_buf_puts(&buf, "...");
        w->failed |= lkg_buf_failed(&buf);
        if (w->failed)
                return;
        w->size += buf.size + strlen(name);
        take(w, name, lkg_value_new_string(buf.data ? buf.data : "", buf.size, NULL, 0, 0));
}

static void put_number(struct writing *w, const char *name, uint64_t n)
{
        char text[24];

        (void)snprintf(text, sizeof(text), "%" PRIu64, n);
        take(w, name, lkg_value_new_number(text, NULL, 0, 0));
}

/* As JSON text, masked like `origin`. */
static void put_value(struct writing *w, const char *name, const char *pointer,
                      const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (!value)
                return;
        masked = lkg_mask_value(value, lkg_pointer_secrecy(pointer));
        if (masked)
                lkg_render_json_compact(masked, &buf);
        lkg_buf_putc(&buf, '\0');
        w->failed |= !masked || lkg_buf_failed(&buf);
        if (!w->failed)
                put_text(w, name, buf.data, LKG_SUSPECT_VALUE_MAX);
}

/* The place of a field that is gone is where the last known good had it. */
static void put_place(struct writing *w, const struct suspect *d, const char *shown,
                      const struct lkg_suspects_side *good, const struct lkg_suspects_side *condemned)
{
        LKG_CLEANUP(place_deinit) struct suspect_place place = { 0 };

        w->failed |= find_place(d->after ? condemned->origin : good->origin, shown, &place) < 0;
        if (w->failed || !place.layer)
                return;
        put_text(w, "layer", place.layer, LKG_SUSPECT_TEXT_MAX);
        put_text(w, "file", place.file, LKG_SUSPECT_TEXT_MAX);
        if (place.line)
                put_number(w, "line", place.line);
}

/* Return: one reference; NULL = no memory. */
static struct lkg_value *describe(const struct suspect *d, const struct lkg_suspects_side *good,
                                  const struct lkg_suspects_side *condemned, size_t *ret_size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf shown = LKG_BUF_INIT;
        struct writing w = { .map = lkg_value_new_map(NULL, 0, 0) };

        w.failed = !w.map || lkg_pointer_text(d->pointer, &shown) < 0;
        lkg_buf_putc(&shown, '\0');
        w.failed |= lkg_buf_failed(&shown);
        if (!w.failed) {
                put_text(&w, "pointer", shown.data, LKG_SUSPECT_TEXT_MAX);
                if (d->field) {
                        put_text(&w, "field", d->field->path, LKG_SUSPECT_TEXT_MAX);
                        put_text(&w, "danger", lkg_danger_name(d->danger), LKG_SUSPECT_TEXT_MAX);
                        put_text(&w, "changeClass", lkg_change_class_name(d->change_class),
                                 LKG_SUSPECT_TEXT_MAX);
                }
                put_place(&w, d, shown.data, good, condemned);
                put_value(&w, "old", d->pointer, d->before);
                put_value(&w, "new", d->pointer, d->after);
        }
        *ret_size = w.size;
        return w.failed ? lkg_value_unref(w.map) : w.map;
}

static int put_fields(struct writing *w, const struct finding *finding, const struct lkg_suspects_side *good,
                      const struct lkg_suspects_side *condemned, bool whole)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);
        size_t i = 0, size = 0, one;

        for (; list && i < finding->n && (whole || i < LKG_SUSPECTS_MAX); i++) {
                struct lkg_value *item = describe(&finding->items[i], good, condemned, &one);

                size += one;
                if (item && i > 0 && !whole && size > LKG_SUSPECTS_BYTES_MAX) {
                        lkg_value_unref(item);
                        break;
                }
                if (!item || lkg_list_append(list, item) < 0)
                        return -ENOMEM;
        }
        if (!list)
                return -ENOMEM;
        take(w, "fields", LKG_STEAL(list));
        if (finding->n > i)
                put_number(w, "notListed", finding->n - i);
        return 0;
}

int lkg_suspects_find(const struct lkg_schema *schema, const struct lkg_suspects_side *good,
                      const struct lkg_suspects_side *condemned, bool whole, struct lkg_value **ret)
{
        LKG_CLEANUP(finding_deinit) struct finding finding = { .schema = schema };
        struct writing w = { .map = lkg_value_new_map(NULL, 0, 0) };
        int r = w.map ? lkg_value_compare(good->doc, condemned->doc, collect, &finding) : -ENOMEM;

        if (r >= 0 && finding.n > 0)
                qsort(finding.items, finding.n, sizeof(*finding.items), worst_first);
        if (r >= 0 && condemned->generation)
                put_number(&w, "generation", condemned->generation);
        if (r >= 0 && good->generation)
                put_number(&w, "lastKnownGood", good->generation);
        if (r >= 0)
                r = put_fields(&w, &finding, good, condemned, whole);
        if (r < 0 || w.failed) {
                lkg_value_unref(w.map);
                return -ENOMEM;
        }
        *ret = w.map;
        return 0;
}

struct lkg_value *lkg_suspects_unknown(const char *why)
{
        struct writing w = { .map = lkg_value_new_map(NULL, 0, 0) };

        w.failed = !w.map;
        if (!w.failed)
                put_text(&w, "unknown", why, LKG_SUSPECT_TEXT_MAX);
        return w.failed ? lkg_value_unref(w.map) : w.map;
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
        struct lkg_span name = name_of(lkg_list_get(fields, i)), earlier;

        for (size_t k = 0; k < i; k++) {
                earlier = name_of(lkg_list_get(fields, k));
                if (earlier.size == name.size && memcmp(earlier.data, name.data, name.size) == 0)
                        return true;
        }
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
