/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through a value tree: comparing, rewriting, following a pointer, visiting the leaves. They recurse (LKG_DOC_DEPTH_MAX). */
#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

bool lkg_value_equal(const struct lkg_value *a, const struct lkg_value *b)
{
        struct lkg_member x = { 0 }, y = { 0 };
        struct lkg_span text, other;

        if (a == b)
                return true;
        if (!a || !b || lkg_value_type(a) != lkg_value_type(b) || lkg_value_size(a) != lkg_value_size(b) ||
            lkg_value_bool(a) != lkg_value_bool(b))
                return false;
        text.data = lkg_value_text(a, &text.size);
        other.data = lkg_value_text(b, &other.size);
        if (!lkg_span_equal(text, other))
                return false;
        while (lkg_value_next(a, &x) && lkg_value_next(b, &y))
                if (!lkg_span_equal(x.key, y.key) || !lkg_value_equal(x.value, y.value))
                        return false;
        return true;
}

struct lkg_value *lkg_value_rewrite(const struct lkg_value *value, lkg_rewrite_fn *fn, void *userdata)
{
        bool list = lkg_value_type(value) == LKG_LIST;
        struct lkg_value *to = NULL;
        size_t at = 0; /* in the new list */

        for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);) {
                struct lkg_value *made = fn(value, &m, userdata);

                if (made == m.value) {
                        lkg_value_unref(made);
                        at++;
                        continue;
                }
                if (!to)
                        to = lkg_value_clone_shallow(value);
                if (list && made)
                        lkg_list_set(to, at++, made);
                else if (list)
                        lkg_list_remove(to, at);
                else if (made)
                        (void)lkg_map_set(to, m.key.data, m.key.size, made);
                else
                        (void)lkg_map_remove(to, m.key.data, m.key.size);
        }
        return to ? to : lkg_value_ref((struct lkg_value *)value);
}

/* ---- pointers ---- */

static bool list_index(const char *text, size_t size, size_t *ret)
{
        size_t n = 0;

        if (size == 0 || size > 9 || (text[0] == '0' && size > 1))
                return false;
        for (size_t i = 0; i < size; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return false;
                n = n * 10 + (size_t)(text[i] - '0');
        }
        *ret = n;
        return true;
}

static struct lkg_value *step(const struct lkg_value *value, const char *key, size_t size)
{
        size_t i;

        if (lkg_value_type(value) == LKG_MAP)
                return lkg_map_find(value, lkg_span(key, size));
        if (lkg_value_type(value) == LKG_LIST && list_index(key, size, &i))
                return lkg_list_get(value, i);
        return NULL;
}

const char *lkg_pointer_next(const char *pointer, char **ret, size_t *ret_size)
{
        size_t n = strcspn(++pointer, "/"), size = 0;
        char *name = lkg_must(malloc(n + 1));

        for (size_t i = 0; i < n; i++) {
                if (pointer[i] == '~' && i + 1 < n && (pointer[i + 1] == '0' || pointer[i + 1] == '1'))
                        name[size++] = pointer[++i] == '0' ? '~' : '/';
                else
                        name[size++] = pointer[i];
        }
        name[size] = '\0';
        *ret = name;
        *ret_size = size;
        return pointer + n;
}

void lkg_pointer_append(struct lkg_buf *buf, const char *name, size_t size)
{
        lkg_buf_putc(buf, '/');
        if (!memchr(name, '~', size) && !memchr(name, '/', size)) {
                lkg_buf_append(buf, name, size);
                return;
        }
        for (size_t i = 0; i < size; i++) {
                if (name[i] == '~')
                        lkg_buf_puts(buf, "~0");
                else if (name[i] == '/')
                        lkg_buf_puts(buf, "~1");
                else
                        lkg_buf_putc(buf, name[i]);
        }
}

static struct lkg_value *get_json_pointer(const struct lkg_value *value, const char *pointer)
{
        while (value && *pointer == '/') {
                LKG_CLEANUP(lkg_freep) char *name = NULL;
                size_t size;

                pointer = lkg_pointer_next(pointer, &name, &size);
                value = step(value, name, size);
        }
        return (struct lkg_value *)value;
}

struct lkg_value *lkg_value_get_pointer(const struct lkg_value *root, const char *pointer)
{
        const struct lkg_value *value = root;

        if (!root)
                return NULL;
        if (*pointer == '/')
                return get_json_pointer(root, pointer);
        /*
         * Keys may contain dots themselves (`evictionHard.memory.available`): the longest existing key wins.
         */
        while (value && *pointer) {
                size_t n = strlen(pointer);
                const struct lkg_value *next = step(value, pointer, n);

                while (!next && n > 0) {
                        while (n > 0 && pointer[--n] != '.') {
                        }
                        if (n > 0)
                                next = step(value, pointer, n);
                }
                value = next;
                pointer += n;
                if (value && *pointer == '.')
                        pointer++;
        }
        return (struct lkg_value *)value;
}

/* ---- leaves ---- */

static bool is_inner(const struct lkg_value *value)
{
        return lkg_value_type(value) == LKG_MAP && lkg_value_size(value) > 0;
}

static int walk(const struct lkg_value *map, const struct lkg_above *up, struct lkg_buf *pointer,
                lkg_leaf_fn fn, void *userdata)
{
        const struct lkg_above here = { map, up, pointer->size };
        int r = 0;

        for (struct lkg_member m = { 0 }; r == 0 && lkg_value_next(map, &m);) {
                pointer->size = here.pointer_size;
                lkg_pointer_append(pointer, m.key.data, m.key.size);
                if (is_inner(m.value))
                        r = walk(m.value, &here, pointer, fn, userdata);
                else
                        r = fn(&(struct lkg_leaf){ lkg_buf_text(pointer), m.value, &here }, userdata);
        }
        return r;
}

int lkg_value_walk(const struct lkg_value *root, lkg_leaf_fn fn, void *userdata)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf pointer = LKG_BUF_INIT;

        return is_inner(root) ? walk(root, NULL, &pointer, fn, userdata)
                              : fn(&(struct lkg_leaf){ .pointer = "", .value = root }, userdata);
}

struct comparison {
        const struct lkg_value *other;
        lkg_difference_fn fn;
        void *userdata;
};

static const struct lkg_value *beside(const struct comparison *c, const char *pointer)
{
        return *pointer ? lkg_value_get_pointer(c->other, pointer) : c->other;
}

static int compare_leaf(const struct lkg_leaf *leaf, void *userdata)
{
        const struct comparison *c = userdata;
        const struct lkg_value *value = beside(c, leaf->pointer);

        return value && lkg_value_equal(value, leaf->value)
                       ? 0
                       : c->fn(leaf->pointer, leaf->value, value, c->userdata);
}

static int only_there(const struct lkg_leaf *leaf, void *userdata)
{
        const struct comparison *c = userdata;

        return beside(c, leaf->pointer) ? 0 : c->fn(leaf->pointer, NULL, leaf->value, c->userdata);
}

int lkg_value_compare(const struct lkg_value *a, const struct lkg_value *b, lkg_difference_fn fn,
                      void *userdata)
{
        struct comparison c = { b, fn, userdata };
        int r = lkg_value_walk(a, compare_leaf, &c);

        c.other = a;
        return r == 0 ? lkg_value_walk(b, only_there, &c) : r;
}
