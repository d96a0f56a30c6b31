/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that are not strings. Upstream decodes a document into maps whose keys keep their type, and turns
 * them into strings at the end. So `1` and `"1"` are not duplicates, `1` and `0x1` are, and null or a huge
 * number as a key is an error only if the map that has it is still part of the document (reference:
 * convertToJSONableObject of sigs.k8s.io/yaml).
 */
#include <math.h>

#include "yaml-state.h"

#include <lkg/base.h>

#define PREFIX '\xff' /* begins no character of UTF-8 */

static struct lkg_span typed_key(struct lkg_yaml *p, char type, const char *text)
{
        struct lkg_buf *buf = &p->parse.scan.built;

        lkg_buf_reset(buf);
        lkg_buf_putc(buf, PREFIX);
        lkg_buf_putc(buf, type);
        lkg_buf_puts(buf, text);
        return lkg_yaml_keep(&p->parse.scan);
}

static struct lkg_span text_key(struct lkg_yaml *p, const struct lkg_value *value)
{
        struct lkg_buf *buf = &p->parse.scan.built;
        size_t size;
        const char *text = lkg_value_text(value, &size);

        lkg_buf_reset(buf);
        lkg_buf_append(buf, text, size);
        return lkg_yaml_keep(&p->parse.scan);
}

/*
 * A key that is an error if it stays: its position replaces its value; two of them need not be
 * distinguished.
 */
static struct lkg_span suspect_key(struct lkg_yaml *p, char type, struct lkg_yaml_mark at)
{
        char text[48];

        p->n_suspects++;
        (void)snprintf(text, sizeof(text), "%u:%u", at.line, at.column);
        return typed_key(p, type, text);
}

static struct lkg_span float_key(struct lkg_yaml *p, double d)
{
        char text[48];

        if (isnan(d))
                (void)snprintf(text, sizeof(text), "nan%llu", (unsigned long long)p->n_nan_keys++);
        else
                (void)snprintf(text, sizeof(text), "%.17g", d);
        return typed_key(p, 'f', text);
}

struct lkg_span lkg_yaml_key(struct lkg_yaml *p, const struct lkg_value *value,
                             const struct lkg_scalar *scalar, struct lkg_yaml_mark at)
{
        switch (scalar->type) {
        case LKG_S_NULL:
                return suspect_key(p, 'n', at);
        case LKG_S_BOOL:
                return typed_key(p, 'b', scalar->b ? "true" : "false");
        case LKG_S_INT:
                return scalar->big ? suspect_key(p, 'u', at) : typed_key(p, 'i', scalar->text);
        case LKG_S_FLOAT:
                return float_key(p, scalar->d);
        case LKG_S_STRING:
        case LKG_S_MERGE:
                break;
        }
        return text_key(p, value);
}

struct lkg_span lkg_yaml_plain_key(struct lkg_span key, char buf[static LKG_NUMBER_TEXT_MAX])
{
        const char *text = key.data + 2;

        if (!lkg_yaml_key_is_typed(key))
                return key;
        if (key.data[1] != 'f')
                return lkg_span(text, key.size - 2);
        lkg_float_key(strncmp(text, "nan", 3) == 0 ? (double)NAN : strtod(text, NULL), buf);
        return lkg_span(buf, strlen(buf));
}

static bool is_suspect(struct lkg_span key)
{
        return lkg_yaml_key_is_typed(key) && (key.data[1] == 'n' || key.data[1] == 'u');
}

/* ---- remaining keys and values without a JSON form ---- */

static void report_key(struct lkg_yaml *p, const char *key)
{
        char *colon;
        struct lkg_yaml_mark at = { .line = (unsigned)strtoul(key + 2, &colon, 10) };

        at.column = (unsigned)strtoul(colon + 1, NULL, 10);
        (void)fail_at(p, LKG_C_KEY, at, "%s",
                      key[1] == 'n' ? "null cannot be a key; quote it, or name a key"
                                    : "a number above 9223372036854775807 cannot be a key; quote it");
}

static bool is_suspect_value(const struct lkg_value *value)
{
        const char *text;

        if (lkg_value_type(value) != LKG_NUMBER)
                return false;
        text = lkg_value_text(value, NULL);
        return text[*text == '-'] == '.';
}

/* Visit @value and every key and value in it; without @report only until one is found. Return: is there a suspect one? */
static bool walk(struct lkg_yaml *p, const struct lkg_value *value, bool report)
{
        bool any = is_suspect_value(value);

        if (p->n_suspects == 0)
                return false;
        if (any && report)
                (void)fail_at(
                        p, LKG_C_SCALAR, mark_of(value),
                        "infinity and not-a-number have no JSON form; write a number, or quote a word");
        for (struct lkg_member m = { 0 }; (report || !any) && lkg_value_next(value, &m);) {
                bool bad_key = is_suspect(m.key);

                if (bad_key && report)
                        report_key(p, m.key.data);
                any |= bad_key | walk(p, m.value, report);
        }
        return any;
}

void lkg_yaml_check(struct lkg_yaml *p, const struct lkg_value *root)
{
        (void)walk(p, root, /* report= */ true);
}

/* ---- JSON keys for typed ones ---- */

static bool stands_before(const struct lkg_value *a, const struct lkg_value *b)
{
        if (lkg_value_line(a) != lkg_value_line(b))
                return lkg_value_line(a) < lkg_value_line(b);
        return lkg_value_column(a) < lkg_value_column(b);
}

/*
 * Of two keys with the same text (`1` and `"1"`) upstream keeps either; we keep the last. But upstream
 * checks the values of both, so we keep one that contains something without a JSON form.
 */
static void put_plain(struct lkg_yaml *p, struct lkg_value *map, struct lkg_span key,
                      struct lkg_value *value)
{
        const struct lkg_value *earlier = lkg_map_find(map, key);

        if (earlier && walk(p, earlier, /* report= */ false))
                return;
        if (earlier && stands_before(value, earlier) && !walk(p, value, /* report= */ false))
                return; /* the earlier member stays unless this one has to be found */
        (void)lkg_map_set(map, key.data, key.size, lkg_value_ref(value));
}

struct lkg_value *lkg_yaml_plain_map(struct lkg_yaml *p, const struct lkg_value *typed)
{
        struct lkg_value *map = lkg_value_new_map(lkg_value_source_mut(typed), lkg_value_line(typed),
                                                  lkg_value_column(typed));

        for (struct lkg_member m = { 0 }; lkg_value_next(typed, &m);) {
                char number[LKG_NUMBER_TEXT_MAX];

                put_plain(p, map, is_suspect(m.key) ? m.key : lkg_yaml_plain_key(m.key, number), m.value);
        }
        return map;
}

static struct lkg_value *plain_item(const struct lkg_value *list, const struct lkg_member *m, void *userdata)
{
        (void)list;
        return lkg_value_type(m->value) == LKG_MAP ? lkg_yaml_plain_map(userdata, m->value)
                                                   : lkg_value_ref(m->value);
}

struct lkg_value *lkg_yaml_plain_list(struct lkg_yaml *p, const struct lkg_value *typed)
{
        return lkg_value_rewrite(typed, plain_item, p);
}
