/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and changing a typed document by dotted path. */
#include "typed.h"

#include <inttypes.h>

#include <lkg/limits.h>
#include <lkg/text.h>
#include <lkg/tree.h>

const struct lkg_value *lkg_object_get(const struct lkg_value *object, const char *path)
{
        const char *dot;

        while (object && lkg_value_type(object) == LKG_MAP && (dot = strchr(path, '.'))) {
                object = lkg_map_find(object, lkg_span(path, (size_t)(dot - path)));
                path = dot + 1;
        }
        return object && lkg_value_type(object) == LKG_MAP ? lkg_map_get(object, path) : NULL;
}

bool lkg_object_has(const struct lkg_value *object, const char *path)
{
        return lkg_object_get(object, path) != NULL;
}

bool lkg_object_bool(const struct lkg_value *object, const char *path)
{
        const struct lkg_value *value = lkg_object_get(object, path);

        return value && lkg_value_type(value) == LKG_BOOL && lkg_value_bool(value);
}

int64_t lkg_value_int(const struct lkg_value *value)
{
        size_t size;

        if (!value || lkg_value_type(value) != LKG_NUMBER)
                return 0;
        return strtoimax(lkg_value_text(value, &size), NULL, 10);
}

int64_t lkg_object_int(const struct lkg_value *object, const char *path)
{
        return lkg_value_int(lkg_object_get(object, path));
}

double lkg_object_float(const struct lkg_value *object, const char *path)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        size_t size;

        return value && lkg_value_type(value) == LKG_NUMBER ? strtod(lkg_value_text(value, &size), NULL) : 0;
}

struct lkg_span lkg_text_of(const struct lkg_value *value)
{
        struct lkg_span text = lkg_span("", 0);

        if (value && lkg_value_type(value) == LKG_STRING)
                text.data = lkg_value_text(value, &text.size);
        return text;
}

const char *lkg_value_shown(const struct lkg_value *value, char buf[static LKG_SHOWN_MAX])
{
        switch (lkg_value_type(value)) {
        case LKG_BOOL:
                return lkg_value_bool(value) ? "true" : "false";
        case LKG_NUMBER:
                (void)snprintf(buf, LKG_SHOWN_MAX, "%.*s", (int)LKG_QUOTE_MAX, lkg_value_text(value, NULL));
                return buf;
        case LKG_STRING:
                return lkg_quote_span(lkg_text_of(value), buf);
        case LKG_LIST:
        case LKG_MAP:
                return NULL;
        case LKG_NULL:
        case _LKG_TYPE_MAX:
                break;
        }
        return "null";
}

struct lkg_span lkg_object_text(const struct lkg_value *object, const char *path)
{
        return lkg_text_of(lkg_object_get(object, path));
}

int64_t lkg_value_duration(const struct lkg_value *value)
{
        const char *text;
        int64_t ns = 0;
        size_t size;

        if (!value || lkg_value_type(value) != LKG_STRING)
                return lkg_value_int(value);
        text = lkg_value_text(value, &size);
        (void)lkg_duration_parse(text, size, &ns, NULL);
        return ns;
}

/*
 * Return the map under @key for changing: a new one if it is missing, else a copy. A member that is
 * referenced once may still be seen through another map: shallow copies share their leaves until one of them
 * changes.
 */
static struct lkg_value *own_member(struct lkg_value *map, const char *key, size_t size)
{
        struct lkg_value *was = lkg_map_find(map, lkg_span(key, size)), *mine;

        mine = was && lkg_value_type(was) == LKG_MAP ? lkg_value_clone_shallow(was)
                                                     : lkg_value_new_map(lkg_value_source_mut(map), 0, 0);
        (void)lkg_map_set(map, key, size, mine);
        return mine;
}

void lkg_object_set(struct lkg_value *object, const char *path, struct lkg_value *item)
{
        struct lkg_value *map = object;
        const char *dot;

        for (; (dot = strchr(path, '.')); path = dot + 1) {
                size_t size = (size_t)(dot - path);

                if (!item && !lkg_map_find(map, lkg_span(path, size)))
                        return;
                map = own_member(map, path, size);
        }
        if (item)
                (void)lkg_map_set(map, path, strlen(path), item);
        else
                (void)lkg_map_remove(map, path, strlen(path));
}

/* ---- what could not be read ---- */

/* Is @path @outer itself, or below it? */
static bool is_within(const char *path, const char *outer, size_t size)
{
        return size == 0 || (strncmp(path, outer, size) == 0 && strchr(".[", path[size])); /* or its end */
}

/* Has another layer than that of @bad, or a flag, put a value at @path? */
static bool is_replaced(const struct lkg_value *object, const char *path, const struct lkg_value *bad)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        const struct lkg_source *source = value ? lkg_value_source(value) : NULL;

        return source && source != lkg_value_source(bad) && strcmp(source->layer, "default") != 0;
}

bool lkg_object_unread(const struct lkg_value *object, const struct lkg_value *unread, const char *path,
                       enum lkg_unread_extent extent)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(unread, &m);) {
                const char *bad = m.key.data;

                if (is_within(path, bad, m.key.size) && !is_replaced(object, path, m.value))
                        return true;
                if (extent == LKG_UNREAD_PARTS && is_within(bad, path, strlen(path)) &&
                    !is_replaced(object, bad, m.value))
                        return true;
        }
        return false;
}
