/* SPDX-License-Identifier: Apache-2.0 */
/* The value tree: order, sharing, freeing, pointers, walks. */
#include <lkg/tree.h>

#include "config-helpers.h"
#include "core/documents/doc-layout.h"

static struct lkg_value *number(unsigned n)
{
        char text[16];

        (void)snprintf(text, sizeof(text), "%u", n);
        return lkg_value_new_number(text, NULL, 0, 0);
}

static void set(struct lkg_value *map, const char *key, struct lkg_value *value)
{
        assert_true(lkg_map_set(map, key, strlen(key), value) >= 0);
}

TEST(test_map_is_sorted)
{
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);

        set(map, "b", number(2));
        set(map, "a", number(1));
        set(map, "", number(0));
        set(map, "\xc3\xa9", number(9));
        set(map, "ab", number(3));
        assert_string_equal(json(map), "{\"\":0,\"a\":1,\"ab\":3,\"b\":2,\"\xc3\xa9\":9}");
        assert_int_equal(lkg_map_set(map, "a", 1, number(7)), 1);
        assert_int_equal(lkg_map_remove(map, "b", 1), 1);
        assert_int_equal(lkg_map_remove(map, "b", 1), 0);
        assert_null(lkg_map_get(map, "b"));
        assert_string_equal(json(map), "{\"\":0,\"a\":7,\"ab\":3,\"\xc3\xa9\":9}");
        lkg_value_unref(map);
}

TEST(test_key_with_nul)
{
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);

        assert_int_equal(lkg_map_set(map, "a\0b", 3, number(1)), 0);
        assert_int_equal(lkg_map_set(map, "a", 1, number(2)), 0);
        assert_int_equal(lkg_value_size(map), 2);
        assert_string_equal(json(map), "{\"a\":2,\"a\\u0000b\":1}");
        lkg_value_unref(map);
}

/* ---- maps compared with a plain array ---- */

struct model {
        struct lkg_value *map;
        unsigned n_keys, n_there;
        unsigned *there; /* by key: the last value set, 0 = not there */
};

static void model_init(struct model *m, unsigned n_keys)
{
        *m = (struct model){ .map = lkg_value_new_map(NULL, 0, 0), .n_keys = n_keys };
        m->there = calloc(n_keys, sizeof(*m->there));
        assert_non_null(m->map);
        assert_non_null(m->there);
}

static void model_deinit(struct model *m)
{
        lkg_value_unref(m->map);
        free(m->there);
}

/* Longer than the eight bytes that are compared first. */
static void key_of(unsigned k, char ret[static 24])
{
        (void)snprintf(ret, 24, "unknown%07u", k);
}

static void model_set(struct model *m, unsigned k, unsigned n)
{
        char key[24];

        key_of(k, key);
        assert_int_equal(lkg_map_set(m->map, key, strlen(key), number(n)), m->there[k] != 0);
        m->n_there += m->there[k] == 0;
        m->there[k] = n;
}

static void model_remove(struct model *m, unsigned k)
{
        char key[24];

        key_of(k, key);
        assert_int_equal(lkg_map_remove(m->map, key, strlen(key)), m->there[k] != 0);
        m->n_there -= m->there[k] != 0;
        m->there[k] = 0;
}

/* By name and by index, forwards and backwards. */
static void model_check(const struct model *m)
{
        size_t at = 0;

        assert_int_equal(lkg_value_size(m->map), m->n_there);
        for (unsigned k = 0; k < m->n_keys; k++) {
                const struct lkg_value *value;
                const char *found;
                char key[24];

                key_of(k, key);
                value = lkg_map_get(m->map, key);
                assert_int_equal(value != NULL, m->there[k] != 0);
                if (!value)
                        continue;
                assert_int_equal(strtoul(lkg_value_text(value, NULL), NULL, 10), m->there[k]);
                assert_ptr_equal(lkg_map_at(m->map, at++, &found, NULL), value);
                assert_string_equal(found, key);
        }
        assert_null(lkg_map_at(m->map, at, NULL, NULL));
        for (unsigned k = m->n_keys; k-- > 0;) {
                char key[24];

                key_of(k, key);
                if (m->there[k])
                        assert_ptr_equal(lkg_map_at(m->map, --at, NULL, NULL), lkg_map_get(m->map, key));
        }
}

static struct model model_copy(const struct model *m)
{
        struct model copy = { .map = lkg_value_clone_shallow(m->map),
                              .n_keys = m->n_keys,
                              .n_there = m->n_there };

        copy.there = calloc(m->n_keys, sizeof(*copy.there));
        assert_non_null(copy.map);
        assert_non_null(copy.there);
        memcpy(copy.there, m->there, m->n_keys * sizeof(*copy.there));
        return copy;
}

/*
 * Insertion and removal in any order, with enough members for a map of one leaf, of branches, and of
 * branches of branches; copies are made on the way and must not change.
 */
TEST(test_map_against_model)
{
        static const unsigned sizes[] = { 20, 1000, 30000 };

        for (size_t s = 0; s < LKG_ARRAY_SIZE(sizes); s++) {
                enum { COPIES = 5 };
                struct model m, copies[COPIES];
                uint32_t random = 12345;

                model_init(&m, sizes[s]);
                for (unsigned c = 0; c < COPIES; c++) {
                        for (unsigned step = 1; step <= 3 * sizes[s]; step++) {
                                unsigned k;

                                random = random * 1664525u + 1013904223u;
                                k = (random >> 8) % sizes[s];
                                if (random >> 30 == 0)
                                        model_remove(&m, k);
                                else
                                        model_set(&m, k, step);
                        }
                        copies[c] = model_copy(&m);
                }
                for (unsigned c = 0; c < COPIES; c++) {
                        model_check(&copies[c]);
                        model_deinit(&copies[c]);
                }
                for (unsigned k = 0; k < sizes[s]; k += 2)
                        model_remove(&m, k);
                model_check(&m);
                for (unsigned k = sizes[s]; k-- > 0;)
                        model_remove(&m, k);
                model_check(&m);
                model_set(&m, 7, 7);
                model_check(&m);
                model_deinit(&m);
        }
}

/*
 * In order, backwards, backwards above some, and with runs in between, as from layers with their own names. A chunk
 * for each member would make every insertion cost all members.
 */
TEST(test_map_in_order)
{
        enum { N = 200000, RUN = 100 };
        struct model up, down, above, runs;

        model_init(&up, N);
        model_init(&down, N);
        model_init(&above, N);
        model_init(&runs, N);
        for (unsigned k = 0; k < RUN; k++)
                model_set(&above, k, k + 1);
        for (unsigned k = N; k-- > RUN;)
                model_set(&above, k, k + 1);
        for (unsigned k = 0; k < N; k++) {
                model_set(&up, k, k + 1);
                model_set(&down, N - 1 - k, k + 1);
        }
        for (unsigned first = 0; first < N / RUN; first++)
                for (unsigned k = 0; k < RUN; k++)
                        model_set(&runs, first * 7 % (N / RUN) * RUN + k, k + 1);
        model_check(&up);
        model_check(&down);
        model_check(&above);
        model_check(&runs);
        assert_true(lkg_as_map(up.map)->n_chunks <= N / (LKG_CHUNK_MAX / 2));
        assert_true(lkg_as_map(down.map)->n_chunks <= N / (LKG_CHUNK_MAX / 4));
        assert_true(lkg_as_map(above.map)->n_chunks <= N / (LKG_CHUNK_MAX / 4));
        assert_true(lkg_as_map(runs.map)->n_chunks <= N / (LKG_CHUNK_MAX / 4));
        model_deinit(&up);
        model_deinit(&down);
        model_deinit(&above);
        model_deinit(&runs);
}

TEST(test_clone_does_not_change_the_original)
{
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0), *copy;

        for (unsigned i = 0; i < 300; i++) {
                char key[8];

                (void)snprintf(key, sizeof(key), "%03u", i);
                set(map, key, number(i));
        }
        copy = lkg_value_clone_shallow(map);
        set(copy, "100", number(7));
        set(copy, "150x", number(8));
        assert_int_equal(lkg_map_remove(copy, "200", 3), 1);
        assert_string_equal(lkg_value_text(lkg_map_get(map, "100"), NULL), "100");
        assert_string_equal(lkg_value_text(lkg_map_get(copy, "100"), NULL), "7");
        assert_null(lkg_map_get(map, "150x"));
        assert_non_null(lkg_map_get(map, "200"));
        assert_int_equal(lkg_value_size(map), 300);
        assert_int_equal(lkg_value_size(copy), 300);
        assert_ptr_equal(lkg_map_get(map, "000"), lkg_map_get(copy, "000"));
        lkg_value_unref(map);
        assert_string_equal(lkg_value_text(lkg_map_get(copy, "299"), NULL), "299");
        lkg_value_unref(copy);
}

/* As deep as a document may be, and as many replaced values as there may be layers. */
TEST(test_deep_values)
{
        struct lkg_value *deep[2];
        struct lkg_buf buf = LKG_BUF_INIT;

        for (int k = 0; k < 2; k++) {
                struct lkg_value *value = number(1);

                for (unsigned i = 0; i < LKG_DOC_DEPTH_MAX; i++) {
                        struct lkg_value *outer =
                                i % 2 ? lkg_value_new_map(NULL, 0, 0) : lkg_value_new_list(NULL, 0, 0);

                        assert_non_null(outer);
                        if (i % 2)
                                assert_int_equal(lkg_map_set(outer, "k", 1, value), 0);
                        else
                                lkg_list_append(outer, value);
                        value = outer;
                }
                deep[k] = value;
        }
        assert_true(lkg_value_equal(deep[0], deep[1]));
        lkg_render_json_compact(deep[0], &buf);
        assert_int_equal(buf.size, 500 * 2 + 500 * 6 + 1);
        lkg_buf_deinit(&buf);
        lkg_value_unref(deep[0]);
        lkg_value_unref(deep[1]);
}

static int collect(const struct lkg_leaf *leaf, void *userdata)
{
        lkg_buf_printf(userdata, "%s=%s\n", leaf->pointer, json(leaf->value));
        return strcmp(leaf->pointer, "/stop") == 0 ? 42 : 0;
}

TEST(test_walk)
{
        struct lkg_value *root = doc("{\"b\":{\"y\":[1,{\"z\":2}],\"x\":null},\"a/~\":{},\"c\":\"s\"}");
        struct lkg_value *stop = doc("{\"a\":1,\"stop\":2,\"z\":3}");
        struct lkg_buf buf = LKG_BUF_INIT;

        assert_int_equal(lkg_value_walk(root, collect, &buf), 0);
        assert_string_equal(buf.data, "/a~1~0={}\n/b/x=null\n/b/y=[1,{\"z\":2}]\n/c=\"s\"\n");
        lkg_buf_reset(&buf);
        assert_int_equal(lkg_value_walk(stop, collect, &buf), 42);
        assert_string_equal(buf.data, "/a=1\n/stop=2\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(root);
        lkg_value_unref(stop);
}

/*
 * Keys with equal first bytes, short keys, keys with a NUL: they are in byte order.
 */
TEST(test_order_of_similar_keys)
{
        static const struct {
                const char *text;
                size_t size;
        } keys[] = { { "", 0 },         { "\0", 1 },        { "a", 1 },         { "a\0", 2 },
                     { "a\0b", 3 },     { "ab", 2 },        { "abcdefg", 7 },   { "abcdefg\0", 8 },
                     { "abcdefgh", 8 }, { "abcdefgha", 9 }, { "abcdefghb", 9 }, { "abcdefgi", 8 },
                     { "\xc3\xa9", 2 } };
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);

        for (size_t i = LKG_ARRAY_SIZE(keys); i-- > 0;)
                assert_int_equal(lkg_map_set(map, keys[i].text, keys[i].size, number((unsigned)i)), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(keys); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(map, i, &key, &size);

                assert_int_equal(size, keys[i].size);
                assert_memory_equal(key, keys[i].text, size);
                assert_ptr_equal(lkg_map_find(map, lkg_span(keys[i].text, keys[i].size)), value);
        }
        lkg_value_unref(map);
}

/* A lookup in a value of another type finds nothing. */
TEST(test_looks_at_other_types_find_nothing)
{
        static const char *const texts[] = { "null", "true", "5", "\"text\"", "[1]", "{\"a\": 1}" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                struct lkg_value *value = doc(texts[i]);
                enum lkg_type type = lkg_value_type(value);
                const char *key = "untouched";
                size_t size = 9;

                assert_int_equal(lkg_map_get(value, "a") != NULL, type == LKG_MAP);
                assert_null(lkg_map_get_string(value, "a"));
                assert_int_equal(lkg_map_at(value, 0, &key, &size) != NULL, type == LKG_MAP);
                assert_string_equal(key, type == LKG_MAP ? "a" : "untouched");
                assert_int_equal(lkg_list_get(value, 0) != NULL, type == LKG_LIST);
                assert_int_equal(lkg_list_stamp_get(value), 0);
                assert_string_equal(lkg_value_text(value, &size), type == LKG_NUMBER   ? "5"
                                                                  : type == LKG_STRING ? "text"
                                                                                       : "");
                assert_int_equal(lkg_value_bool(value), type == LKG_BOOL);
                lkg_value_unref(value);
        }
}

TEST(test_stamp_is_lost_with_a_change)
{
        struct lkg_value *list = lkg_value_new_list(NULL, 0, 0), *copy;

        lkg_list_append(list, number(1));
        assert_int_equal(lkg_list_stamp_get(list), 0);
        lkg_list_stamp(list, 7);
        copy = lkg_value_clone_shallow(list);
        assert_int_equal(lkg_list_stamp_get(copy), 0);
        assert_int_equal(lkg_list_stamp_get(list), 7);
        lkg_list_set(list, 0, number(2));
        assert_int_equal(lkg_list_stamp_get(list), 0);
        lkg_list_stamp(list, 7);
        lkg_list_append(list, number(3));
        assert_int_equal(lkg_list_stamp_get(list), 0);
        lkg_list_stamp(list, 7);
        lkg_list_remove(list, 0);
        assert_int_equal(lkg_list_stamp_get(list), 0);
        lkg_value_unref(copy);
        lkg_value_unref(list);
}
