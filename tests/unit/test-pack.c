/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed maps: their content reads as before, lives as long as there is a reference, can be changed, and is
 * freed completely. Views: values that replace a scalar in a merge.
 */
#include <lkg/tree.h>

#include "config-helpers.h"

#include <stdlib.h>

static struct lkg_source *source, *other_source;
static size_t before;

static int set_up(void **state)
{
        (void)state;
        before = lkg_pieces_size();
        source = lkg_source_new("layer", "file");
        other_source = lkg_source_new("other", "other file");
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        source = lkg_source_unref(source);
        other_source = lkg_source_unref(other_source);
        return lkg_pieces_size() == before ? 0 : -1;
}

/*
 * The same value for the same @n, of every kind: short and long texts, no text, texts with NUL bytes,
 * positions near and beyond all limits.
 */
static struct lkg_value *value_of(unsigned n, unsigned seed)
{
        static const unsigned lines[] = { 1, 7, (1u << 22) - 1, 1u << 22, UINT32_MAX };
        static const unsigned columns[] = { 1, 1023, 1024, 70000 };
        static const unsigned sizes[] = { 0, 1, 3, 62, 63, 64, 65, 300 };
        struct lkg_source *from = (n + seed) % 11 == 0 ? other_source : (n + seed) % 13 == 0 ? NULL : source;
        unsigned line = lines[(n + seed) % 5], column = columns[(n / 3 + seed) % 4];
        struct lkg_value *list;
        char text[512];

        memset(text, 'a' + (int)(n % 26), sizeof(text));
        text[1] = n % 4 == 0 ? '\0' : text[1];
        switch ((n * 7 + seed) % 8) {
        case 0:
                return lkg_value_new_null(from, line, column);
        case 1:
                return lkg_value_new_bool(n % 2, from, line, column);
        case 2:
                (void)snprintf(text, sizeof(text), "%u", n);
                return lkg_value_new_number(text, from, line, column);
        case 3:
                list = lkg_value_new_list(from, line, column);
                assert_int_equal(lkg_list_append(list, lkg_value_new_bool(true, from, line, column)), 0);
                return list;
        case 4:
                return lkg_value_new_map(from, line, column);
        default:
                return lkg_value_new_string(text, sizes[(n / 5 + seed) % 8], from, line, column);
        }
}

/* Long and short names, the empty one, and names with a NUL byte. */
static size_t key_of(unsigned n, char key[static 128])
{
        static const unsigned sizes[] = { 2, 7, 8, 9, 20, 63, 64, 100 };
        size_t size = n == 0 ? 0 : sizes[n * 5 % 8];

        memset(key, 'k', size);
        for (size_t i = 0; size > 0 && i < 2; i++)
                key[i] = (char)(n >> (8 * i));
        return size;
}

static struct lkg_value *map_of(unsigned n, unsigned seed)
{
        struct lkg_value *map = lkg_value_new_map(source, 1, 1);

        for (unsigned i = 0; i < n; i++) {
                char key[128];
                size_t size = key_of(i, key);

                assert_int_equal(lkg_map_set(map, key, size, value_of(i, seed)), 0);
        }
        return map;
}

static void assert_same_value(const struct lkg_value *a, const struct lkg_value *b)
{
        const char *x, *y;
        size_t x_size, y_size;

        assert_int_equal(lkg_value_type(a), lkg_value_type(b));
        assert_int_equal(lkg_value_bool(a), lkg_value_bool(b));
        assert_int_equal(lkg_value_line(a), lkg_value_line(b));
        assert_int_equal(lkg_value_column(a), lkg_value_column(b));
        assert_ptr_equal(lkg_value_source(a), lkg_value_source(b));
        assert_int_equal(lkg_value_size(a), lkg_value_size(b));
        x = lkg_value_text(a, &x_size);
        y = lkg_value_text(b, &y_size);
        assert_int_equal(x_size, y_size);
        assert_memory_equal(x, y, x_size + 1);
        assert_true(lkg_value_equal(a, b));
}

static void assert_same_map(const struct lkg_value *a, const struct lkg_value *b)
{
        assert_int_equal(lkg_value_size(a), lkg_value_size(b));
        for (size_t i = 0; i < lkg_value_size(a); i++) {
                const char *x, *y;
                size_t x_size, y_size;
                struct lkg_value *one = lkg_map_at(a, i, &x, &x_size);

                assert_same_value(one, lkg_map_at(b, i, &y, &y_size));
                assert_int_equal(x_size, y_size);
                assert_memory_equal(x, y, x_size + 1);
                assert_ptr_equal(lkg_map_get_n(a, x, x_size), one);
        }
        assert_null(lkg_map_get(a, "there is none of this name"));
}

static void test_reads_as_before(void **state)
{
        static const unsigned sizes[] = { 0, 1, 24, 25, 26, 100, 800, 5000 };

        (void)state;
        for (unsigned i = 0; i < LKG_ARRAY_SIZE(sizes); i++)
                for (unsigned seed = 0; seed < 8; seed++) {
                        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *packed = map_of(sizes[i], seed);
                        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *plain = map_of(sizes[i], seed);

                        lkg_map_pack(packed);
                        assert_same_map(packed, plain);
                        lkg_map_pack(packed); /* once more: of packs */
                        assert_same_map(packed, plain);
                }
}

static void test_members_outlive_the_map(void **state)
{
        enum { N = 600 };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *plain = map_of(N, 3);
        struct lkg_value *packed = map_of(N, 3), *kept[N], *keys = lkg_value_new_map(source, 1, 1);

        (void)state;
        lkg_map_pack(packed);
        for (unsigned i = 0; i < N; i++) {
                kept[i] = i % 7 == 0 ? lkg_value_ref(lkg_map_at(packed, i, NULL, NULL)) : NULL;
                if (i % 5 == 0) /* the key alone */
                        assert_int_equal(
                                lkg_map_set_like(keys, packed, i, lkg_value_new_bool(true, NULL, 0, 0)), 0);
        }
        lkg_value_unref(packed);
        for (unsigned i = 0; i < N; i++) {
                const char *key;
                size_t size;

                if (kept[i])
                        assert_same_value(kept[i], lkg_map_at(plain, i, NULL, NULL));
                lkg_value_unref(kept[i]);
                (void)lkg_map_at(plain, i, &key, &size);
                assert_int_equal(lkg_map_get_n(keys, key, size) != NULL, i % 5 == 0);
        }
        lkg_value_unref(keys);
}

/* Every member in turn is replaced, removed and put back in a copy; the packed map does not change. */
static void test_changes_after_packing(void **state)
{
        enum { N = 300 };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *packed = map_of(N, 5);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *plain = map_of(N, 5);

        (void)state;
        lkg_map_pack(packed);
        for (unsigned i = 0; i < N; i++) {
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *copy = lkg_value_clone_shallow(packed);
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *expected = lkg_value_clone_shallow(plain);
                char key[128];
                size_t size = key_of(i, key);

                assert_int_equal(lkg_map_set(copy, key, size, value_of(i, 6)), 1);
                assert_int_equal(lkg_map_set(expected, key, size, value_of(i, 6)), 1);
                assert_same_map(copy, expected);
                assert_int_equal(lkg_map_remove(copy, key, size), 1);
                assert_int_equal(lkg_map_remove(expected, key, size), 1);
                assert_same_map(copy, expected);
                lkg_map_pack(copy);
                assert_same_map(copy, expected);
                assert_int_equal(lkg_map_set(copy, "new", 3, value_of(i, 7)), 0);
                assert_int_equal(lkg_map_set(expected, "new", 3, value_of(i, 7)), 0);
                assert_same_map(copy, expected);
        }
        assert_same_map(packed, plain);
        for (unsigned i = 0; i < N; i++) { /* in place, to the last one */
                char key[128];
                size_t size = key_of(i * 7 % N, key);

                assert_int_equal(lkg_map_remove(packed, key, size), 1);
                assert_int_equal(lkg_map_remove(packed, key, size), 0);
        }
        assert_int_equal(lkg_value_size(packed), 0);
}

static void test_views(void **state)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *packed = map_of(200, 1);
        struct lkg_value *top = NULL;
        unsigned n = 0;

        (void)state;
        lkg_map_pack(packed);
        for (unsigned i = 0; i < 200; i++) {
                struct lkg_value *value = lkg_map_at(packed, i, NULL, NULL), *next;
                const struct lkg_value *shadowed = top;

                next = top ? lkg_value_over(value, top) : lkg_value_ref(value);
                assert_same_value(next, value);
                assert_ptr_equal(lkg_value_shadowed(next), shadowed);
                lkg_value_unref(top);
                top = next;
                if (i % 3 == 0 && shadowed) { /* of a view, and a copy of it */
                        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *over = lkg_value_over(top, value);
                        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *copy = lkg_value_clone_shallow(over);

                        assert_same_value(over, value);
                        assert_same_value(copy, value);
                        assert_ptr_equal(lkg_value_shadowed(over), value);
                        assert_ptr_equal(lkg_value_shadowed(copy), value);
                }
        }
        for (const struct lkg_value *v = top; v; v = lkg_value_shadowed(v))
                n++;
        assert_int_equal(n, 200);
        packed = lkg_value_unref(packed); /* the chain keeps its parts alive */
        for (const struct lkg_value *v = top; v; v = lkg_value_shadowed(v))
                n += lkg_value_line(v) > 0;
        assert_int_equal(n, 400);
        lkg_value_unref(top);
}

/* Maps in packs in maps: freeing them does not recurse. */
static void test_depth(void **state)
{
        struct lkg_value *value = lkg_value_new_bool(true, source, 1, 1);

        (void)state;
        for (unsigned depth = 0; depth < 20000; depth++) {
                struct lkg_value *map = lkg_value_new_map(source, 1, 1);

                for (unsigned i = 0; i < 26; i++) {
                        const char key[] = { 'a', (char)('a' + i), (char)('a' + depth % 26) };

                        assert_int_equal(lkg_map_set(map, key, sizeof(key),
                                                     i == 13 ? value : lkg_value_new_null(source, 1, 1)),
                                         0);
                }
                lkg_map_pack(map);
                value = map;
        }
        lkg_value_unref(value);
}

static unsigned state_of_random;

static unsigned random_below(unsigned n)
{
        state_of_random = state_of_random * 1103515245u + 12345u;
        return (state_of_random >> 16) % n;
}

/* Mostly next to the names of other layers, some of them equal, some between them. */
static struct lkg_value *patch_of(unsigned layer, bool pack)
{
        unsigned n = 20 + random_below(180), start = random_below(4000), step = 1 + random_below(3) / 2 * 7;
        unsigned null_at = random_below(3) ? UINT32_MAX : random_below(n);
        struct lkg_value *patch = lkg_value_new_map(source, layer + 1, 1);

        for (unsigned i = 0; i < n; i++) {
                struct lkg_value *value = i == null_at
                                                  ? lkg_value_new_null(source, layer + 1, 1)
                                                  : lkg_value_new_bool(layer % 2, source, layer + 1, i + 1);
                char key[16];

                (void)snprintf(key, sizeof(key), "name%05u", start + i * step);
                assert_int_equal(lkg_map_set(patch, key, strlen(key), value), 0);
        }
        if (pack)
                lkg_map_pack(patch);
        return patch;
}

static void assert_same_origin(const struct lkg_value *a, const struct lkg_value *b)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf one = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf other = LKG_BUF_INIT;

        assert_same_map(a, b);
        lkg_render_origin(a, &one);
        lkg_render_origin(b, &other);
        assert_int_equal(one.size, other.size);
        assert_memory_equal(one.data, other.data, one.size);
}

/*
 * Whole leaves that a merge reuses make the same map as their members would, which can be changed like any
 * other.
 */
static void test_whole_leaves(void **state)
{
        (void)state;
        for (unsigned seed = 0; seed < 60; seed++) {
                struct lkg_value *packed = lkg_value_new_map(NULL, 0, 0),
                                 *plain = lkg_value_new_map(NULL, 0, 0);
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *kept = NULL;
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *kept_plain = NULL;

                for (unsigned layer = 0; layer < 40; layer++) {
                        unsigned random = state_of_random;
                        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *a = patch_of(layer, true);
                        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *b = NULL;
                        char key[16];

                        state_of_random = random;
                        b = patch_of(layer, false);
                        assert_int_equal(lkg_merge_json_into(&packed, a), 0);
                        assert_int_equal(lkg_merge_json_into(&plain, b), 0);
                        assert_int_equal(lkg_value_size(packed), lkg_value_size(plain));
                        if (layer == 20) { /* shared from here on */
                                kept = lkg_value_ref(packed);
                                kept_plain = lkg_value_ref(plain);
                        }
                        if (layer % 7 != 6)
                                continue;
                        lkg_value_unref(packed); /* a copy, changed in between */
                        packed = lkg_value_clone_shallow(kept ? kept : plain);
                        lkg_value_unref(plain);
                        plain = lkg_value_clone_shallow(kept_plain ? kept_plain : packed);
                        for (unsigned i = 0; i < 200; i++) {
                                (void)snprintf(key, sizeof(key), "name%05u", random_below(4500));
                                assert_int_equal(lkg_map_remove(packed, key, strlen(key)),
                                                 lkg_map_remove(plain, key, strlen(key)));
                        }
                }
                assert_same_origin(packed, plain);
                if (kept)
                        assert_same_origin(kept, kept_plain);
                lkg_value_unref(packed);
                lkg_value_unref(plain);
        }
}

/* A leaf with nothing in between costs one entry of a branch, not its members. */
static void test_whole_leaves_are_shared(void **state)
{
        struct lkg_value *running = lkg_value_new_map(NULL, 0, 0);
        size_t used = 0;

        (void)state;
        assert_int_equal(lkg_map_set(running, "kind", 4, lkg_value_new_bool(true, NULL, 0, 0)), 0);
        for (unsigned layer = 0; layer < 100; layer++) {
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = lkg_value_new_map(source, 1, 1);
                size_t with_patch;

                for (unsigned i = 0; i < 240; i++) {
                        char key[24];

                        (void)snprintf(key, sizeof(key), "name%ux%u", layer, i);
                        assert_int_equal(
                                lkg_map_set(patch, key, strlen(key), lkg_value_new_bool(true, source, 1, 1)),
                                0);
                }
                lkg_map_pack(patch);
                with_patch = lkg_pieces_size();
                assert_int_equal(lkg_merge_json_into(&running, patch), 0);
                used += lkg_pieces_size() - with_patch;
        }
        assert_int_equal(lkg_value_size(running), 1 + 100 * 240);
        assert_true(used < 100 * 240 * 4);
        lkg_value_unref(running);
}

/*
 * Bytes per field in a hundred documents of a thousand fields each, with different names or the same ones.
 */
static size_t bytes_of_field(bool same)
{
        enum { DOCUMENTS = 100, FIELDS = 1000 };
        size_t start = lkg_pieces_size(), used;
        struct lkg_value *docs[DOCUMENTS];

        for (unsigned d = 0; d < DOCUMENTS; d++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

                for (unsigned f = 0; f < FIELDS; f++)
                        lkg_buf_printf(&buf, "unknown%u%s%u: 1\n", f, same ? "x" : "y", same ? 1u : d);
                docs[d] = doc(buf.data);
        }
        used = lkg_pieces_size() - start;
        for (unsigned d = 0; d < DOCUMENTS; d++)
                lkg_value_unref(docs[d]);
        return used / DOCUMENTS / FIELDS;
}

static void test_size(void **state)
{
        (void)state;
        assert_true(bytes_of_field(false) <= 38);
        assert_true(bytes_of_field(true) <= 28);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_reads_as_before, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_members_outlive_the_map, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_changes_after_packing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_views, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_depth, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_whole_leaves, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_whole_leaves_are_shared, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_size, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
