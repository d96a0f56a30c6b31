/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalars: tags, base64, numbers. Untagged plain scalars are resolved by scalar.c; this file applies
 * tags, like go-yaml v2's resolve().
 */
#include "yaml-state.h"

#define TAG_PREFIX "tag:yaml.org,2002:"

bool lkg_yaml_is_tag(struct lkg_span tag, const char *name)
{
        size_t prefix = strlen(TAG_PREFIX), size = strlen(name);

        return tag.size == prefix + size && memcmp(tag.data, TAG_PREFIX, prefix) == 0 &&
               memcmp(tag.data + prefix, name, size) == 0;
}

/* Bytes to a string; invalid UTF-8 becomes U+FFFD, as in Go's JSON encoder. */
static struct lkg_value *string_from_bytes(struct lkg_yaml *p, const char *bytes, size_t size,
                                           struct lkg_yaml_mark at)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        uint32_t c;

        for (size_t i = 0; i < size;) {
                size_t n = lkg_utf8_decode((const unsigned char *)bytes + i, size - i, &c);

                if (n == 0)
                        lkg_buf_puts(&buf, "\xef\xbf\xbd");
                else
                        lkg_buf_append(&buf, bytes + i, n);
                i += n ? n : 1;
        }
        return lkg_value_new_string(lkg_buf_text(&buf), buf.size, PLACE(p, at));
}

static int binary_value(struct lkg_yaml *p, const struct lkg_yaml_node *node, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_freep) char *bytes = lkg_must(malloc(node->value.size + 3));
        ssize_t n = lkg_base64_decode(node->value.data, node->value.size, bytes);

        if (n < 0)
                return fail_at(p, LKG_C_SCALAR, node->at, "a !!binary value must be base64");
        *ret = string_from_bytes(p, bytes, (size_t)n, node->at);
        return 0;
}

/* An explicit tag must fit the text; !!float takes integers as well. */
static int check_tag(struct lkg_yaml *p, const struct lkg_yaml_node *node, struct lkg_scalar *scalar)
{
        static const struct {
                const char *tag;
                enum lkg_scalar_type type;
                const char *want;
        } tags[] = {
                { "bool", LKG_S_BOOL, "true or false" },
                { "int", LKG_S_INT, "a whole number" },
                { "float", LKG_S_FLOAT, "a number" },
                { "null", LKG_S_NULL, "null or nothing" },
        };

        if (lkg_yaml_is_tag(node->tag, "timestamp")) {
                if (!lkg_scalar_is_timestamp(node->value.data, node->value.size))
                        return fail_at(p, LKG_C_SCALAR, node->at,
                                       "the value does not fit its tag !!timestamp (want 2001-01-31)");
                scalar->type = LKG_S_STRING;
                return 0;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(tags); i++) {
                if (!lkg_yaml_is_tag(node->tag, tags[i].tag))
                        continue;
                if (tags[i].type == LKG_S_FLOAT && scalar->type == LKG_S_INT && !scalar->big) {
                        scalar->type = LKG_S_FLOAT;
                        lkg_float_json(scalar->d, scalar->text);
                }
                if (scalar->type != tags[i].type)
                        return fail_at(p, LKG_C_SCALAR, node->at,
                                       "the value does not fit its tag !!%s (want %s)", tags[i].tag,
                                       tags[i].want);
                return 0;
        }
        scalar->type = LKG_S_STRING; /* !!str, and every tag unknown to upstream */
        return 0;
}

int lkg_yaml_resolve(struct lkg_yaml *p, const struct lkg_yaml_node *node, struct lkg_scalar *scalar)
{
        if (node->tag.size == 0 && !node->plain) {
                *scalar = (struct lkg_scalar){ .type = LKG_S_STRING, .finite = true };
                return 0;
        }
        lkg_scalar_resolve(node->value.data, node->value.size, scalar);
        return node->tag.size > 0 ? check_tag(p, node, scalar) : 0;
}

/* The number itself may be a secret that should have been in quotes: it is not shown. */
static void warn_of_odd_number(struct lkg_yaml *p, struct lkg_span text, struct lkg_yaml_mark at)
{
        struct lkg_where where = where_of(p, at);
        const char *digits = text.data;
        size_t size = text.size;

        if (size > 0 && (*digits == '-' || *digits == '+')) {
                digits++;
                size--;
        }
        if (memchr(text.data, '_', text.size))
                lkg_report_add(
                        p->report, LKG_WARNING, LKG_C_ODD_NUMBER, &where,
                        "underscores in a number are left out here (1_10 is 110); write it without, or "
                        "in quotes if it is a text");
        else if (size > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '7' &&
                 strspn(digits, "01234567") >= size)
                lkg_report_add(
                        p->report, LKG_WARNING, LKG_C_ODD_NUMBER, &where,
                        "a number with a leading zero is octal here (010 is 8); write it without, or in "
                        "quotes if it is a text");
}

static struct lkg_value *number_value(struct lkg_yaml *p, const struct lkg_scalar *scalar,
                                      struct lkg_yaml_mark at)
{
        char untyped[LKG_NUMBER_TEXT_MAX];
        const char *text = scalar->text;

        if (!scalar->finite) {
                p->n_suspects++;
                lkg_float_key(scalar->d, untyped);
                text = untyped;
        } else if ((p->flags & LKG_DECODE_UNTYPED) && lkg_number_untyped(text, untyped) == 0) {
                text = untyped;
        }
        return lkg_value_new_number(text, PLACE(p, at));
}

int lkg_yaml_scalar(struct lkg_yaml *p, const struct lkg_yaml_node *node, const struct lkg_scalar *scalar,
                    struct lkg_value **ret)
{
        if (lkg_yaml_is_tag(node->tag, "binary"))
                return binary_value(p, node, ret);
        switch (scalar->type) {
        case LKG_S_NULL:
                *ret = lkg_value_new_null(PLACE(p, node->at));
                break;
        case LKG_S_BOOL:
                *ret = lkg_value_new_bool(scalar->b, PLACE(p, node->at));
                break;
        case LKG_S_INT:
        case LKG_S_FLOAT:
                if (p->flags & LKG_DECODE_ADVISE)
                        warn_of_odd_number(p, node->value, node->at);
                *ret = number_value(p, scalar, node->at);
                break;
        case LKG_S_STRING:
        case LKG_S_MERGE:
                *ret = lkg_value_new_string(node->value.data, node->value.size, PLACE(p, node->at));
                break;
        }
        return 0;
}
