/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results below a layer, which are merged on demand: they are the same, with the same origins, whichever layer
 * changed; and a document of many layers with interleaved names costs its fields, not their product.
 */
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include "config-helpers.h"
#include "tmpdir.h"

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/stack.h>
#include <lkg/tree.h>

#define HEADER   "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define N_LAYERS 40
#define N_FIELDS 400

static char root[TMPDIR_MAX];
static int root_fd = -EBADF;
static struct lkg_stack *stack;
static struct lkg_candidate *candidate;

static int set_up(void **state)
{
        (void)state;
        if (tmpdir_make(root) < 0)
                return -1;
        root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return root_fd < 0 || mkdirat(root_fd, "d", 0755) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
        (void)state;
        candidate = lkg_candidate_unref(candidate);
        stack = lkg_stack_free(stack);
        root_fd = lkg_close(root_fd);
        return tmpdir_remove(root);
}

static void put(unsigned layer, const char *text, size_t size)
{
        char name[32];
        int fd;

        (void)snprintf(name, sizeof(name), "d/%04u.conf", layer);
        fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, size), size);
        assert_int_equal(close(fd), 0);
}

/*
 * Names between those of all others, some of which others set too, a map that grows, and a removal of an
 * earlier value.
 */
static void put_layer(unsigned layer, unsigned value)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_puts(&buf, HEADER);
        for (unsigned i = 0; i < N_FIELDS; i++)
                lkg_buf_printf(&buf, "unknown%ux%u: %u\n", i, layer, value);
        lkg_buf_printf(&buf, "common: %u\nmaxPods: %u\n", layer, value);
        lkg_buf_printf(&buf, "map:\n  common: a%u\n  own%u: %u\n", layer, layer, value);
        if (layer > 0)
                lkg_buf_printf(&buf, "unknown7x%u: null\n", layer - 1);
        put(layer, buf.data, buf.size);
}

static struct lkg_stack *stack_new(void)
{
        struct lkg_stack_config config = {
                .component = "kubelet", .source_fd = root_fd, .source_path = root, .dropin_dir = "d"
        };

        return lkg_stack_new(&config);
}

static void look(void)
{
        struct lkg_error err = { 0 };

        if (!stack)
                stack = stack_new();
        candidate = lkg_candidate_unref(candidate);
        assert_int_equal(lkg_stack_refresh(stack, &candidate, &err), 0);
}

static void assert_alike(const struct lkg_value *a, const struct lkg_value *b)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf one = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf other = LKG_BUF_INIT;

        assert_int_equal(!a, !b);
        if (!a)
                return;
        lkg_render_origin(a, &one);
        lkg_render_origin(b, &other);
        assert_true(lkg_value_equal(a, b));
        assert_int_equal(one.size, other.size);
        assert_memory_equal(one.data, other.data, one.size);
}

/* Every result equals the merge of its layers one after the other. */
static void assert_results(void)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *running = lkg_value_new_map(NULL, 0, 0);
        for (size_t i = 0; i < candidate->n_layers; i++) {
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *partial = NULL;
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = NULL;
                const struct lkg_layer_info *info = &candidate->layers[i];

                if (!info->left_out) {
                        struct lkg_value *next = NULL;

                        patch = lkg_value_clone_shallow(info->doc);
                        for (unsigned f = 0; lkg_map_get(running, "kind") && f < 2; f++)
                                assert_int_equal(
                                        lkg_map_remove(patch, f ? "kind" : "apiVersion", f ? 4 : 10), 1);
                        next = lkg_merge_json(running, patch);
                        lkg_value_unref(running);
                        running = next;
                }
                if (i % 13 != 0 && i + 1 < candidate->n_layers) /* origins of all take a while */
                        continue;
                partial = lkg_candidate_partial(candidate, i);
                assert_alike(partial, running);
                merged = lkg_candidate_merged(candidate, i);
                assert_ptr_equal(merged, info->whole ? partial : NULL);
        }
}

static size_t allocated(void)
{
        return mallinfo2().uordblks;
}

TEST_WITH(test_changes, set_up, tear_down)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *first = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *again = NULL;
        size_t before;

        for (unsigned i = 0; i < N_LAYERS; i++)
                put_layer(i, i);
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        assert_results();
        first = lkg_candidate_partial(candidate, 3); /* backwards, too */
        again = lkg_candidate_partial(candidate, 3);
        assert_ptr_equal(first, again);

        before = allocated();
        for (unsigned i = N_LAYERS; i-- > 0; i -= i > 17 ? 17 : i) {
                put_layer(i, 1000 + i);
                look();
                assert_results();
        }
        put(20, "maxPods: [\n", 11); /* broken, and valid again */
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_results();
        put_layer(20, 7);
        for (unsigned i = 0; i < 5; i++) { /* the last one differs */
                put_layer(N_LAYERS + i, 5);
                look();
                assert_results();
        }
        for (unsigned i = 0; i < 5; i++) {
                char name[32];

                (void)snprintf(name, sizeof(name), "d/%04u.conf", N_LAYERS + 4 - i);
                assert_int_equal(unlinkat(root_fd, name, 0), 0);
                look();
                assert_results();
        }
        first = lkg_value_unref(first);
        again = lkg_value_unref(again);
        assert_true(allocated() <= 2 * before);
        /* nothing accumulates; 0 with another allocator */
}

/* The content of every layer is counted once, and what the results add has a limit. */
TEST_WITH(test_memory, set_up, tear_down)
{
        size_t before = allocated(), fields = (size_t)N_FIELDS * 4 * N_LAYERS;

        for (unsigned i = 0; i < 4 * N_LAYERS; i++)
                put_layer(i, i);
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        assert_true(allocated() - before < fields * 200 + (4u << 20));
        before = allocated();
        put_layer(N_LAYERS, 1);
        look();
        assert_true(allocated() - before < 1u << 20);
}
