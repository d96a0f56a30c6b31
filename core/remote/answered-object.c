/* SPDX-License-Identifier: Apache-2.0 */
#include "answered-object.h"

#include <lkg/documents.h>
#include <lkg/text.h>

/* ---- versions ---- */

/* Strip leading zeros, so that length and digits alone decide. NULL: not a decimal number. */
static const char *digits_of(const char *version)
{
        if (!version[0] || version[strspn(version, "0123456789")] != '\0')
                return NULL;
        version += strspn(version, "0");
        return version;
}

enum lkg_version_order lkg_version_compare(const char *a, const char *b)
{
        const char *x = digits_of(a), *y = digits_of(b);
        size_t n, m;
        int order;

        if (!x || !y)
                return strcmp(a, b) == 0 ? LKG_VERSION_SAME : LKG_VERSION_OTHER;
        n = strlen(x);
        m = strlen(y);
        order = n != m ? (n < m ? -1 : 1) : strcmp(x, y);
        return order < 0 ? LKG_VERSION_OLDER : order > 0 ? LKG_VERSION_NEWER : LKG_VERSION_SAME;
}

/* ---- objects ---- */

static int refuse(struct lkg_error *err, const char *fmt, ...) LKG_PRINTF(2, 3);
static int refuse(struct lkg_error *err, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void)lkg_error_setv(err, -EINVAL, NULL, fmt, ap);
        va_end(ap);
        return -EINVAL;
}

/* Return the text of a string; data is NULL if @value is not a string. */
static struct lkg_span text_of(const struct lkg_value *value)
{
        struct lkg_span text = { NULL, 0 };

        if (value && lkg_value_type(value) == LKG_STRING)
                text.data = lkg_value_text(value, &text.size);
        return text;
}

/* Not isalnum(), which depends on the locale. */
static bool identifier_byte(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
}

static bool is_identifier(struct lkg_span text)
{
        if (!text.data || text.size == 0 || text.size > LKG_OBJECT_ID_MAX)
                return false;
        for (size_t i = 0; i < text.size; i++)
                if (!identifier_byte(text.data[i]))
                        return false;
        return !lkg_span_is(text, ".") && !lkg_span_is(text, "..");
}

static int read_identifier(const struct lkg_value *metadata, const char *field, const char *what, char *ret,
                           struct lkg_error *err)
{
        struct lkg_span text = text_of(metadata ? lkg_map_get(metadata, field) : NULL);
        char quoted[5 * 64 + 8];

        if (!text.data)
                return refuse(err, "%s an object without metadata.%s", what, field);
        if (!is_identifier(text))
                return refuse(err, "%s metadata.%s %s; want 1 to %u of A-Z a-z 0-9 . _ -", what, field,
                              lkg_quote(text.data, text.size, quoted), LKG_OBJECT_ID_MAX);
        memcpy(ret, text.data, text.size);
        ret[text.size] = '\0';
        return 0;
}

static const struct lkg_value *map_member(const struct lkg_value *object, const char *name)
{
        const struct lkg_value *value = lkg_value_type(object) == LKG_MAP ? lkg_map_get(object, name) : NULL;

        return value && lkg_value_type(value) == LKG_MAP ? value : NULL;
}

/* @required: the field must be present. */
static int check_text(const struct lkg_value *map, const char *field, const char *label, const char *want,
                      bool required, const char *what, struct lkg_error *err)
{
        const struct lkg_value *value = lkg_map_get(map, field);
        struct lkg_span text = text_of(value);
        char quoted[5 * 64 + 8];

        if (!value && !required)
                return 0;
        if (!text.data)
                return refuse(err, "%s an object without %s; want %s", what, label, want);
        if (!lkg_span_is(text, want))
                return refuse(err, "%s %s %s; want %s", what, label, lkg_quote(text.data, text.size, quoted),
                              want);
        return 0;
}

int lkg_object_read(const struct lkg_value *object, const struct lkg_resource *resource, const char *what,
                    struct lkg_object_id *ret, struct lkg_error *err)
{
        const struct lkg_value *metadata = map_member(object, "metadata");
        struct lkg_object_id id = { 0 };
        int r;

        if (!metadata)
                return refuse(err, "%s an object without metadata", what);
        r = check_text(object, "kind", "kind", resource->kind, false, what, err);
        if (r == 0)
                r = check_text(object, "apiVersion", "apiVersion", resource->group_version, false, what,
                               err);
        if (r == 0)
                r = check_text(metadata, "name", "metadata.name", resource->name, true, what, err);
        if (r == 0 && resource->ns)
                r = check_text(metadata, "namespace", "metadata.namespace", resource->ns, false, what, err);
        if (r == 0)
                r = read_identifier(metadata, "uid", what, id.uid, err);
        if (r == 0)
                r = read_identifier(metadata, "resourceVersion", what, id.version, err);
        if (r == 0)
                *ret = id;
        return r;
}

int lkg_object_read_version(const struct lkg_value *object, const char *what,
                            char ret[static LKG_OBJECT_ID_MAX + 1], struct lkg_error *err)
{
        return read_identifier(map_member(object, "metadata"), "resourceVersion", what, ret, err);
}

bool lkg_object_says_gone(const struct lkg_value *object)
{
        const struct lkg_value *code = lkg_map_get(object, "code");
        struct lkg_span reason = text_of(lkg_map_get(object, "reason"));

        if (code && lkg_value_type(code) == LKG_NUMBER && strcmp(lkg_value_text(code, NULL), "410") == 0)
                return true;
        return reason.data && (lkg_span_is(reason, "Expired") || lkg_span_is(reason, "Gone"));
}
