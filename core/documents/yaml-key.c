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

static int typed_key(struct lkg_yaml *p, char type, const char *text, struct lkg_yaml_span *ret)
{
        struct lkg_buf *buf = &p->parse.scan.built;

        lkg_buf_reset(buf);
        lkg_buf_putc(buf, PREFIX);
        lkg_buf_putc(buf, type);
        lkg_buf_puts(buf, text);
        return lkg_yaml_keep(&p->parse.scan, ret);
}

static int text_key(struct lkg_yaml *p, const struct lkg_value *value, struct lkg_yaml_span *ret)
{
        struct lkg_buf *buf = &p->parse.scan.built;
        size_t size;
        const char *text = lkg_value_text(value, &size);

        lkg_buf_reset(buf);
        lkg_buf_append(buf, text, size);
        return lkg_yaml_keep(&p->parse.scan, ret);
}

/*
 * A key that is an error if it stays: its position replaces its value; two of them need not be
 * distinguished.
 */
static int suspect_key(struct lkg_yaml *p, char type, struct lkg_yaml_mark at, struct lkg_yaml_span *ret)
{
        char text[48];

        p->n_suspects++;
        (void)snprintf(text, sizeof(text), "%u:%u", line_of(at), column_of(at));
        return typed_key(p, type, text, ret);
}

static int float_key(struct lkg_yaml *p, double d, struct lkg_yaml_span *ret)
{
        char text[48];

        if (isnan(d))
                (void)snprintf(text, sizeof(text), "nan%llu", (unsigned long long)p->n_nan_keys++);
        else
                (void)snprintf(text, sizeof(text), "%.17g", d);
        return typed_key(p, 'f', text, ret);
}

int lkg_yaml_key(struct lkg_yaml *p, const struct lkg_value *value, const struct lkg_scalar *scalar,
                 struct lkg_yaml_mark at, struct lkg_yaml_span *ret)
{
        switch (scalar->type) {
        case LKG_S_NULL:
                return suspect_key(p, 'n', at, ret);
        case LKG_S_BOOL:
                return typed_key(p, 'b', scalar->b ? "true" : "false", ret);
        case LKG_S_INT:
                return scalar->big ? suspect_key(p, 'u', at, ret) : typed_key(p, 'i', scalar->text, ret);
        case LKG_S_FLOAT:
                return float_key(p, scalar->d, ret);
        case LKG_S_STRING:
        case LKG_S_MERGE:
                break;
        }
        return text_key(p, value, ret);
}

struct lkg_yaml_span lkg_yaml_plain_key(const char *key, size_t size, char buf[static LKG_NUMBER_TEXT_MAX])
{
        if (!lkg_yaml_key_is_typed(key, size))
                return (struct lkg_yaml_span){ key, size };
        if (key[1] != 'f')
                return (struct lkg_yaml_span){ key + 2, size - 2 };
        lkg_float_key(strncmp(key + 2, "nan", 3) == 0 ? (double)NAN : strtod(key + 2, NULL), buf);
        return (struct lkg_yaml_span){ buf, strlen(buf) };
}

static bool is_suspect(const char *key, size_t size)
{
        return lkg_yaml_key_is_typed(key, size) && (key[1] == 'n' || key[1] == 'u');
}

/* ---- remaining keys and values without a JSON form ---- */

struct open {
        const struct lkg_value *value;
        size_t i;
};

struct opens {
        struct open *items;
        size_t n, allocated;
};

static int opens_push(struct opens *opens, const struct lkg_value *value)
{
        if (lkg_value_size(value) == 0)
                return 0;
        if (LKG_RESERVE(opens->items, opens->n, opens->allocated) < 0)
                return -ENOMEM;
        opens->items[opens->n++] = (struct open){ value, 0 };
        return 0;
}

static void report_key(struct lkg_yaml *p, const char *key)
{
        const char *colon;
        unsigned line, column;

        colon = strchr(key + 2, ':');
        line = (unsigned)strtoul(key + 2, NULL, 10);
        column = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
        if (key[1] == 'n')
                (void)fail_at(p, LKG_C_KEY, line, column, "null cannot be a key; quote it, or name a key");
        else
                (void)fail_at(p, LKG_C_KEY, line, column,
                              "a number above 9223372036854775807 cannot be a key; quote it");
}

static void report_value(struct lkg_yaml *p, const struct lkg_value *value)
{
        (void)fail_at(p, LKG_C_SCALAR, lkg_value_line(value), lkg_value_column(value),
                      "infinity and not-a-number have no JSON form; write a number, or quote a word");
}

static bool is_suspect_value(const struct lkg_value *value)
{
        const char *text;

        if (lkg_value_type(value) != LKG_NUMBER)
                return false;
        text = lkg_value_text(value, NULL);
        return text[*text == '-'] == '.';
}

/* Visit every key and value below @root. Without @report only check whether there is a suspect one. */
static int walk(struct lkg_yaml *p, const struct lkg_value *root, bool report, bool *ret_any)
{
        struct opens opens = { 0 };
        int r;

        if (p->n_suspects == 0)
                return 0;
        r = opens_push(&opens, root);
        *ret_any = is_suspect_value(root);
        if (*ret_any && report)
                report_value(p, root);
        while (r == 0 && opens.n > 0) {
                struct open *o = &opens.items[opens.n - 1];
                const struct lkg_value *value;
                bool bad_key, bad_value;
                const char *key = "";
                size_t size = 0;

                if (o->i == lkg_value_size(o->value)) {
                        opens.n--;
                        continue;
                }
                value = lkg_value_type(o->value) == LKG_LIST ? lkg_list_get(o->value, o->i)
                                                             : lkg_map_at(o->value, o->i, &key, &size);
                o->i++;
                bad_key = is_suspect(key, size);
                bad_value = is_suspect_value(value);
                if (bad_key && report)
                        report_key(p, key);
                if (bad_value && report)
                        report_value(p, value);
                *ret_any = *ret_any || bad_key || bad_value;
                r = opens_push(&opens, value);
        }
        free(opens.items);
        return r;
}

int lkg_yaml_check(struct lkg_yaml *p, const struct lkg_value *root)
{
        bool any;

        return walk(p, root, true, &any);
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
static int put_plain(struct lkg_yaml *p, struct lkg_value *map, struct lkg_yaml_span key,
                     struct lkg_value *value)
{
        const struct lkg_value *earlier = lkg_map_get_n(map, key.text, key.size);
        bool suspect = false;
        int r = earlier ? walk(p, earlier, false, &suspect) : 0;

        if (r == 0 && earlier && !suspect && stands_before(value, earlier)) {
                r = walk(p, value, false, &suspect);
                suspect = !suspect; /* the earlier member stays unless this one has to be found */
        }
        if (r == 0 && !suspect)
                r = lkg_map_set(map, key.text, key.size, lkg_value_ref(value));
        return r < 0 ? r : 0;
}

struct lkg_value *lkg_yaml_plain_map(struct lkg_yaml *p, const struct lkg_value *typed)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *map = lkg_value_new_map(lkg_value_source_mut(typed), lkg_value_line(typed),
                                                  lkg_value_column(typed));

        if (!map)
                return NULL;
        for (size_t i = 0; i < lkg_value_size(typed); i++) {
                char number[LKG_NUMBER_TEXT_MAX];
                struct lkg_yaml_span plain;
                const char *key;
                size_t size;
                struct lkg_value *value = lkg_map_at(typed, i, &key, &size);

                plain = is_suspect(key, size) ? (struct lkg_yaml_span){ key, size }
                                              : lkg_yaml_plain_key(key, size, number);
                if (put_plain(p, map, plain, value) < 0)
                        return NULL;
        }
        return LKG_STEAL(map);
}

struct lkg_value *lkg_yaml_plain_list(struct lkg_yaml *p, const struct lkg_value *typed)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = lkg_value_clone_shallow(typed);

        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                struct lkg_value *plain;

                if (lkg_value_type(item) != LKG_MAP)
                        continue;
                plain = lkg_yaml_plain_map(p, item);
                if (!plain)
                        return NULL;
                lkg_list_set(list, i, plain);
        }
        return LKG_STEAL(list);
}
