/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through a value tree: comparing, following a pointer, visiting the leaves. All keep their own stack,
 * so ten thousand levels of nesting cost heap, not thread stack.
 */

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

struct pair {
        const struct lkg_value *a, *b;
};

struct pairs {
        struct pair *items;
        size_t n, allocated;
};

static bool pairs_push(struct pairs *pairs, const struct lkg_value *a, const struct lkg_value *b)
{
        if (a == b)
                return true;
        if (LKG_RESERVE(pairs->items, pairs->n, pairs->allocated) < 0)
                return false;
        pairs->items[pairs->n++] = (struct pair){ a, b };
        return true;
}

/* Compare two values except for their members, which are put on the list. */
static bool pair_equal(const struct lkg_value *a, const struct lkg_value *b, struct pairs *pairs)
{
        enum lkg_type type = lkg_value_type(a);
        size_t n = lkg_value_size(a), a_size, b_size;

        if (type != lkg_value_type(b) || n != lkg_value_size(b))
                return false;
        if (type == LKG_BOOL)
                return lkg_value_bool(a) == lkg_value_bool(b);
        if (type == LKG_NUMBER || type == LKG_STRING) {
                const char *x = lkg_value_text(a, &a_size), *y = lkg_value_text(b, &b_size);

                return a_size == b_size && memcmp(x, y, a_size) == 0;
        }
        for (size_t i = 0; i < n; i++) {
                const char *x, *y;
                const struct lkg_value *from, *to;

                if (type == LKG_LIST) {
                        if (!pairs_push(pairs, lkg_list_get(a, i), lkg_list_get(b, i)))
                                return false;
                        continue;
                }
                from = lkg_map_at(a, i, &x, &a_size);
                to = lkg_map_at(b, i, &y, &b_size);
                if (a_size != b_size || memcmp(x, y, a_size) != 0 || !pairs_push(pairs, from, to))
                        return false;
        }
        return true;
}

bool lkg_value_equal(const struct lkg_value *a, const struct lkg_value *b)
{
        struct pairs pairs = { 0 };
        bool equal = true;

        if (a == b)
                return true;
        if (!a || !b)
                return false;
        equal = pairs_push(&pairs, a,
                           b); /* no memory reads as "differs": the caller does more work, never less */
        while (equal && pairs.n > 0) {
                struct pair pair = pairs.items[--pairs.n];

                equal = pair_equal(pair.a, pair.b, &pairs);
        }
        free(pairs.items);
        return equal;
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
                return lkg_map_get_n(value, key, size);
        if (lkg_value_type(value) == LKG_LIST && list_index(key, size, &i))
                return lkg_list_get(value, i);
        return NULL;
}

const char *lkg_pointer_next(const char *pointer, char **ret, size_t *ret_size)
{
        size_t n = strcspn(++pointer, "/"), size = 0;
        char *name = malloc(n + 1);

        if (!name)
                return NULL;
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
                if (!pointer)
                        return NULL;
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

struct levels {
        struct lkg_above *items;
        size_t n, allocated;
};

static bool levels_push(struct levels *levels, const struct lkg_value *map, size_t pointer_size)
{
        if (LKG_RESERVE(levels->items, levels->n, levels->allocated) < 0)
                return false;
        levels->items[levels->n++] = (struct lkg_above){ map, 0, pointer_size };
        return true;
}

static bool is_inner(const struct lkg_value *value)
{
        return lkg_value_type(value) == LKG_MAP && lkg_value_size(value) > 0;
}

static int walk_levels(struct levels *levels, struct lkg_buf *pointer, lkg_leaf_fn fn, void *userdata)
{
        while (levels->n > 0) {
                struct lkg_above *level = &levels->items[levels->n - 1];
                const struct lkg_value *value;
                const char *key = NULL;
                size_t size = 0;
                int r;

                value = lkg_map_at(level->map, level->i, &key, &size);
                if (!value) {
                        levels->n--;
                        continue;
                }
                level->i++;
                pointer->size = level->pointer_size;
                lkg_pointer_append(pointer, key, size);
                if (lkg_buf_failed(pointer))
                        return -ENOMEM;
                if (is_inner(value)) {
                        if (!levels_push(levels, value, pointer->size))
                                return -ENOMEM;
                        continue;
                }
                r = fn(&(struct lkg_leaf){ pointer->data, value, levels->items, levels->n }, userdata);
                if (r != 0)
                        return r;
        }
        return 0;
}

int lkg_value_walk(const struct lkg_value *root, lkg_leaf_fn fn, void *userdata)
{
        struct lkg_buf pointer = LKG_BUF_INIT;
        struct levels levels = { 0 };
        int r;

        if (!is_inner(root))
                return fn(&(struct lkg_leaf){ .pointer = "", .value = root }, userdata);
        r = levels_push(&levels, root, 0) ? walk_levels(&levels, &pointer, fn, userdata) : -ENOMEM;
        free(levels.items);
        lkg_buf_deinit(&pointer);
        return r;
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
