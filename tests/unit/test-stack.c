/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer stack over real directories: caching, watches, unsettled files, files that appear and disappear.
 * tests/golden compares single layers and findings.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "config-helpers.h"
#include "tmpdir.h"

#include <lkg/text.h>
#include <lkg/limits.h>
#include <lkg/stack.h>

#define HEADER "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

static char root[TMPDIR_MAX];
static int root_fd = -EBADF;
static struct lkg_stack *stack;
static struct lkg_candidate *candidate; /* of the last look() */
static uint64_t (*clock_fn)(void);      /* NULL = the real one */
static bool with_patches;
static uint64_t max_dropins, max_bytes;

/* ---- files ---- */

static const char *at(const char *name)
{
        static char path[4][256];
        static unsigned next;

        next = (next + 1) % 4;
        (void)snprintf(path[next], sizeof(path[next]), "%s/%s", root, name);
        return path[next];
}

static void put(const char *name, const char *text)
{
        FILE *file = fopen(at(name), "we");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void make_dir(const char *name)
{
        assert_int_equal(mkdir(at(name), 0755), 0);
}

/*
 * The clock that file times are compared with: an hour ahead, so files are old enough for their identity to
 * be reliable.
 */
static uint64_t late_clock(void)
{
        return lkg_realtime_ns() + 3600 * LKG_NSEC_PER_SEC;
}

static int set_up(void **state)
{
        (void)state;
        clock_fn = NULL;
        with_patches = false;
        max_dropins = max_bytes = 0;
        if (tmpdir_make(root) < 0)
                return -1;
        root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return root_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
        (void)state;
        candidate = lkg_candidate_unref(candidate);
        stack = lkg_stack_free(stack);
        root_fd = lkg_close(root_fd);
        return tmpdir_remove(root);
}

/* ---- stack ---- */

static void open_stack(void)
{
        struct lkg_stack_config config = {
                .component = "kubelet",
                .source_fd = root_fd,
                .source_path = root,
                .base = "kubelet.conf",
                .base_is_view_name = true,
                .dropin_dir = "kubelet.conf.d",
                .instance = "kubelet-instance.conf",
                .patches_dir = with_patches ? "patches" : "",
                .patches_target = "kubeletconfiguration",
                .max_dropins = max_dropins,
                .max_bytes = max_bytes,
                .realtime_ns = clock_fn,
        };

        assert_int_equal(lkg_stack_new(&config, &stack, NULL), 0);
}

/* True if the candidate is the same object as before. */
static bool over(const struct lkg_stack_remote *remote)
{
        struct lkg_candidate *fresh = NULL;
        struct lkg_error err = { 0 };
        bool same;

        assert_int_equal(lkg_stack_over(stack, remote, &fresh, &err), 0);
        same = fresh == candidate;
        lkg_candidate_unref(candidate);
        candidate = fresh;
        return same;
}

static bool look_over(const struct lkg_stack_remote *remote)
{
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_stack_look(stack, NULL, 0, &err), 0);
        return over(remote);
}

static bool look(void)
{
        return look_over(NULL);
}

/* The same, with a hint about what may have changed. */
static bool look_at(const char *name)
{
        const char *const paths[] = { at(name) };
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_stack_look(stack, paths, 1, &err), 0);
        return over(NULL);
}

static const char *field(const char *pointer)
{
        const struct lkg_value *value;

        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        value = lkg_value_get_pointer(candidate->doc, pointer);
        return value ? json(value) : "-";
}

static void sample(void)
{
        put("kubelet.conf", HEADER "maxPods: 110\n");
        make_dir("kubelet.conf.d");
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 10\n");
        put("kubelet.conf.d/20-b.conf", HEADER "x: {z: 1}\n");
        open_stack();
}

/* ---- tests ---- */

TEST_WITH(test_nothing_then_something, set_up, tear_down)
{
        open_stack();
        assert_false(look());
        assert_int_equal(candidate->state, LKG_CANDIDATE_NONE);
        assert_true(look());
        assert_false(candidate->has_base);
        put("kubelet.conf", HEADER "maxPods: 1\n");
        assert_false(look());
        assert_string_equal(field("maxPods"), "1");
        assert_true(candidate->has_base);
        assert_false(candidate->has_dropin_dir);
        make_dir("kubelet.conf.d");
        assert_false(look()); /* upstream treats the base differently if there is a drop-in directory */
        assert_true(candidate->has_dropin_dir);
        put("kubelet.conf.d/1.conf", HEADER "maxPods: 2\n");
        assert_false(look());
        assert_string_equal(field("maxPods"), "2");
        put("kubelet-instance.conf", HEADER "maxPods: 3\n");
        assert_false(look());
        assert_string_equal(field("maxPods"), "3");
        assert_int_equal(candidate->n_layers, 3);
        assert_int_equal(unlink(at("kubelet-instance.conf")), 0);
        assert_int_equal(unlink(at("kubelet.conf.d/1.conf")), 0);
        assert_false(look());
        assert_string_equal(field("maxPods"), "1");
        assert_int_equal(unlink(at("kubelet.conf")), 0);
        assert_false(look());
        assert_int_equal(candidate->state, LKG_CANDIDATE_NONE);
}

static void base_says(const char *text)
{
        put("kubelet.conf", text);
        (void)look();
}

/* apimachinery, SimpleMetaFactory: names in any case, in the order in which the component reads them. */
TEST_WITH(test_last_spelling_of_a_header_name_counts, set_up, tear_down)
{
#define API  "\"apiVersion\": \"kubelet.config.k8s.io/v1beta1\""
#define KIND "\"kind\": \"KubeletConfiguration\""
        static const char *const refused[] = {
                "{" API ", " KIND ", \"apiVersioN\": \"\"}",
                "{" API ", " KIND ", \"Kind\": \"\"}",
                "{" API ",\n" KIND ",\n\"KIND\": \"\"}",
                "{\"Kind\": 5, " API ", " KIND "}",
                HEADER "apiversion: ''\n",
                ("apiversion: ''\n" HEADER),
                "apiVersion: v1\nkind: ''\n",
                "apiVersion: ''\nkind: KubeletConfiguration\n",
        };
        static const char *const taken[] = {
                "{\"apiversion\": \"\", " API ", " KIND "}",
                "{\"kind\": \"X\",\n" API ",\"Kind\": \"KubeletConfiguration\"}",
                "{" API ", " KIND ", \"KIND\": null}",
                "{\"kind\": null, " API ", \"Kind\": \"KubeletConfiguration\"}",
                "Kind: ''\n" HEADER,
                HEADER "Kind: ''\n",
                HEADER "apiversion: null\n",
        };

        open_stack();
        for (size_t i = 0; i < LKG_ARRAY_SIZE(refused); i++) {
                base_says(refused[i]);
                if (candidate->state != LKG_CANDIDATE_INVALID)
                        fail_msg("taken: %s", refused[i]);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(taken); i++) {
                base_says(taken[i]);
                if (candidate->state != LKG_CANDIDATE_VALID)
                        fail_msg("refused: %s", taken[i]);
                assert_string_equal(field("kind"), "\"KubeletConfiguration\"");
                assert_string_equal(field("apiVersion"), "\"kubelet.config.k8s.io/v1beta1\"");
        }
#undef API
#undef KIND
}

/* We serve in byte order, so the effective spelling may not be the last one. */
TEST_WITH(test_every_spelling_of_a_header_name_says_the_same, set_up, tear_down)
{
        open_stack();
        base_says("{\"apiversion\": \"\", \"apiVersion\": \"a/v1\", \"KIND\": \"X\", \"kind\": \"K\", "
                  "\"Kind\": null}");
        assert_string_equal(field(""), "{\"KIND\":\"K\",\"Kind\":null,\"apiVersion\":\"a/v1\","
                                       "\"apiversion\":\"a/v1\",\"kind\":\"K\"}");
}

TEST_WITH(test_nothing_changed_reads_nothing, set_up, tear_down)
{
        struct lkg_stack_stats before;

        clock_fn = late_clock;
        sample();
        look();
        before = *lkg_stack_stats(stack);
        assert_int_equal(before.n_parses, 3);
        for (int i = 0; i < 10; i++)
                assert_true(look());
        assert_int_equal(lkg_stack_stats(stack)->n_reads, before.n_reads);
        assert_int_equal(lkg_stack_stats(stack)->n_merges, before.n_merges);
}

TEST_WITH(test_one_change_parses_one_file, set_up, tear_down)
{
        struct lkg_stack_stats before;

        clock_fn = late_clock;
        sample();
        look();
        before = *lkg_stack_stats(stack);
        put("kubelet.conf.d/20-b.conf", HEADER "x: {z: 2}\n");
        assert_false(look());
        assert_string_equal(field("x.z"), "2");
        assert_int_equal(lkg_stack_stats(stack)->n_parses, before.n_parses + 1);
        assert_int_equal(lkg_stack_stats(stack)->n_merges, before.n_merges + 1);
        /* the first layer: all layers above it are merged again, but not parsed */
        before = *lkg_stack_stats(stack);
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 12\n");
        assert_false(look());
        assert_int_equal(lkg_stack_stats(stack)->n_parses, before.n_parses + 1);
        assert_int_equal(lkg_stack_stats(stack)->n_merges, before.n_merges + 2);
}

/* Same size, same inode, within one clock tick: the identity is not reliable, so the content is compared. */
TEST_WITH(test_second_write_within_a_tick, set_up, tear_down)
{
        sample();
        for (int i = 0; i < 50; i++) {
                char text[128];

                (void)snprintf(text, sizeof(text), HEADER "maxPods: %d\n", 10 + i);
                put("kubelet.conf.d/10-a.conf", text);
                look();
                (void)snprintf(text, sizeof(text), "%d", 10 + i);
                assert_string_equal(field("maxPods"), text);
        }
}

TEST_WITH(test_touch_changes_nothing, set_up, tear_down)
{
        struct lkg_stack_stats before;

        clock_fn = late_clock;
        sample();
        look();
        before = *lkg_stack_stats(stack);
        assert_int_equal(utimensat(root_fd, "kubelet.conf.d/10-a.conf", NULL, 0), 0);
        assert_true(look());
        assert_int_equal(lkg_stack_stats(stack)->n_reads, before.n_reads + 1);
        assert_int_equal(lkg_stack_stats(stack)->n_parses, before.n_parses);
}

TEST_WITH(test_rename_replaces, set_up, tear_down)
{
        sample();
        look();
        put("new", HEADER "maxPods: 77\n");
        assert_int_equal(rename(at("new"), at("kubelet.conf.d/10-a.conf")), 0);
        assert_false(look());
        assert_string_equal(field("maxPods"), "77");
        assert_int_equal(rename(at("kubelet.conf.d/10-a.conf"), at("kubelet.conf.d/30-a.conf")), 0);
        assert_false(look());
        assert_string_equal(candidate->layers[2].name, "30-a.conf");
}

TEST_WITH(test_invalid_then_repaired, set_up, tear_down)
{
        sample();
        look();
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: [\n");
        assert_false(look());
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_null(candidate->doc);
        assert_true(candidate->layers[0].whole);
        assert_null(candidate->layers[1].doc);
        assert_false(candidate->layers[1].whole);
        assert_non_null(candidate->layers[2].doc);
        assert_false(candidate->layers[2].whole);
        assert_true(look());
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 10\n");
        assert_false(look());
        assert_string_equal(field("maxPods"), "10");
}

/* Findings of one file are kept up to a limit, and its error is among them. */
TEST_WITH(test_findings_of_one_layer_are_bounded, set_up, tear_down)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        size_t n = 0;

        sample();
        look();
        lkg_buf_puts(&text, HEADER);
        for (unsigned i = 0; i < 3 * LKG_LAYER_FINDINGS_MAX; i++)
                lkg_buf_printf(&text, "a%u: {$patch: x}\n", i);
        put("kubelet.conf.d/10-a.conf", text.data);
        assert_false(look());
        assert_int_equal(candidate->report.n_severity[LKG_WARNING], 3 * LKG_LAYER_FINDINGS_MAX);
        assert_int_equal(candidate->report.n_findings, LKG_LAYER_FINDINGS_MAX);
        for (unsigned i = 0; i < 3 * LKG_LAYER_FINDINGS_MAX; i++)
                lkg_buf_printf(&text, "a%u: {$patch: x}\n", i);
        put("kubelet.conf.d/10-a.conf", text.data);
        assert_false(look());
        for (size_t i = 0; i < candidate->report.n_findings; i++)
                n += candidate->report.findings[i].severity == LKG_ERROR;
        assert_int_equal(n, LKG_LAYER_FINDINGS_MAX);
        assert_int_equal(candidate->report.n_severity[LKG_ERROR], 3 * LKG_LAYER_FINDINGS_MAX);
}

/* A file that cannot be opened gives the same finding, and so the same candidate, each time. */
TEST_WITH(test_unreadable_is_stable, set_up, tear_down)
{
        sample();
        assert_int_equal(symlink("nowhere", at("kubelet.conf.d/30.conf")), 0);
        assert_int_equal(mkfifo(at("kubelet.conf.d/40.conf"), 0600), 0);
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_int_equal(candidate->report.n_severity[LKG_ERROR], 2);
        assert_true(look());
        put("kubelet.conf.d/nowhere", HEADER "maxPods: 5\n");
        assert_int_equal(unlink(at("kubelet.conf.d/40.conf")), 0);
        assert_false(look());
        assert_string_equal(field("maxPods"), "5");
}

TEST_WITH(test_findings_alone_make_a_new_candidate, set_up, tear_down)
{
        const struct lkg_value *doc;

        sample();
        look();
        doc = candidate->doc;
        put("kubelet.conf.d/a.yaml", "x");
        assert_false(look());
        assert_ptr_equal(candidate->doc, doc);
        assert_int_equal(candidate->report.n_severity[LKG_WARNING], 1);
        assert_true(look());
}

TEST_WITH(test_cookies, set_up, tear_down)
{
        unsigned before[3];

        sample();
        look();
        for (size_t i = 0; i < 3; i++)
                before[i] = candidate->layers[i].cookie;
        put("kubelet.conf.d/20-b.conf", HEADER "x: {z: 9}\n");
        look();
        assert_int_equal(candidate->layers[0].cookie, before[0]);
        assert_int_equal(candidate->layers[1].cookie, before[1]);
        assert_int_not_equal(candidate->layers[2].cookie, before[2]);
}

/* ---- unsettled ---- */

static const char *unsettled_name;

static bool is_unsettled(const char *path, void *userdata)
{
        assert_ptr_equal(userdata, &unsettled_name);
        return unsettled_name && strcmp(path, at(unsettled_name)) == 0;
}

/* One drop-in is being written while another one changes. */
TEST_WITH(test_unsettled_file_keeps_its_old_content, set_up, tear_down)
{
        sample();
        lkg_stack_set_unsettled(stack, is_unsettled, &unsettled_name);
        look();
        put("kubelet.conf.d/10-a.conf", HEADER);
        unsettled_name = "kubelet.conf.d/10-a.conf";
        put("kubelet.conf.d/20-b.conf", HEADER "x: {z: 5}\n");
        assert_false(look());
        assert_string_equal(field("maxPods"), "10");
        assert_string_equal(field("x.z"), "5");
        put("kubelet.conf.d/10-a.conf", "");
        assert_true(look());
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 11\n");
        unsettled_name = NULL;
        assert_false(look());
        assert_string_equal(field("maxPods"), "11");
}

TEST_WITH(test_unsettled_new_file_is_not_there_yet, set_up, tear_down)
{
        sample();
        lkg_stack_set_unsettled(stack, is_unsettled, &unsettled_name);
        look();
        put("kubelet.conf.d/30-new.conf", "apiVersion: kub");
        unsettled_name = "kubelet.conf.d/30-new.conf";
        assert_true(look());
        put("kubelet.conf.d/30-new.conf", HEADER "maxPods: 30\n");
        unsettled_name = NULL;
        assert_false(look());
        assert_string_equal(field("maxPods"), "30");
        unsettled_name = "kubelet.conf"; /* the base as well */
        put("kubelet.conf", "");
        assert_true(look());
        unsettled_name = NULL;
}

/* ---- watches ---- */

static const struct lkg_stack_watch *watch_of(const char *name)
{
        const struct lkg_stack_watch *watches;
        size_t n = lkg_stack_watches(stack, &watches);
        const char *path = *name ? at(name) : root;

        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        assert_true(strcmp(watches[i - 1].path, watches[i].path) < 0);
                if (strcmp(watches[i].path, path) == 0)
                        return &watches[i];
        }
        return NULL;
}

TEST_WITH(test_watches, set_up, tear_down)
{
        sample();
        assert_null(watch_of(""));
        look();
        assert_non_null(watch_of(""));
        assert_false(watch_of("")->recursive_member);
        assert_non_null(watch_of("kubelet.conf.d"));
        assert_true(watch_of("kubelet.conf.d")->recursive_member);
        make_dir("kubelet.conf.d/sub");
        make_dir("elsewhere");
        make_dir("elsewhere/deep");
        put("elsewhere/deep/file", HEADER "maxPods: 9\n");
        assert_int_equal(symlink("deep/file", at("elsewhere/link")), 0);
        assert_int_equal(symlink("../elsewhere/link", at("kubelet.conf.d/90.conf")), 0);
        look();
        assert_string_equal(field("maxPods"), "9");
        assert_true(watch_of("kubelet.conf.d/sub")->recursive_member);
        assert_non_null(watch_of("elsewhere"));
        assert_non_null(watch_of("elsewhere/deep"));
        assert_false(watch_of("elsewhere/deep")->recursive_member);
        assert_int_equal(unlink(at("kubelet.conf.d/90.conf")), 0);
        look();
        assert_null(watch_of("elsewhere/deep"));
}

/* A missing path is watched for in the nearest existing directory. */
TEST_WITH(test_watches_of_missing_things, set_up, tear_down)
{
        struct lkg_stack_config config = { .component = "kubelet",
                                           .source_fd = root_fd,
                                           .source_path = root };
        char base[128], dir[128];

        (void)snprintf(base, sizeof(base), "%s/a/b/c/base.yaml", root);
        (void)snprintf(dir, sizeof(dir), "%s/x/y.d", root);
        config.base = base;
        config.dropin_dir = dir;
        assert_int_equal(lkg_stack_new(&config, &stack, NULL), 0);
        look();
        assert_non_null(watch_of(""));
        make_dir("a");
        make_dir("a/b");
        look();
        assert_non_null(watch_of("a/b"));
        make_dir("a/b/c");
        put("a/b/c/base.yaml", HEADER "maxPods: 4\n");
        look();
        assert_non_null(watch_of("a/b/c"));
        assert_string_equal(field("maxPods"), "4");
}

/* In a directory that is only on the path to a layer, one name matters. */
TEST_WITH(test_names_that_matter, set_up, tear_down)
{
        const struct lkg_stack_watch *w;

        sample();
        make_dir("elsewhere");
        put("elsewhere/file", HEADER "maxPods: 9\n");
        put("elsewhere/other", "");
        assert_int_equal(symlink("../elsewhere/file", at("kubelet.conf.d/90.conf")), 0);
        look();
        w = watch_of("elsewhere");
        assert_non_null(w);
        assert_int_equal(w->n_names, 1);
        assert_string_equal(w->names[0], "file");
        w = watch_of("");
        assert_int_equal(w->n_names, 3);
        assert_string_equal(w->names[0], "kubelet.conf");
        assert_string_equal(w->names[1], "kubelet.conf.d");
        assert_string_equal(w->names[2], "kubelet-instance.conf");
}

/* ---- what was touched ---- */

TEST_WITH(test_touched_layer_alone_is_looked_at, set_up, tear_down)
{
        struct lkg_stack_stats before;

        clock_fn = late_clock;
        sample();
        look();
        before = *lkg_stack_stats(stack);
        put("kubelet.conf.d/20-b.conf", HEADER "x: {z: 7}\n");
        put("kubelet.conf", HEADER "maxPods: 1\nx: {y: 1}\n");
        assert_false(look_at("kubelet.conf.d/20-b.conf"));
        assert_string_equal(field("x.z"), "7");
        assert_int_equal(lkg_stack_stats(stack)->n_walks, before.n_walks);
        assert_int_equal(lkg_stack_stats(stack)->n_reads, before.n_reads + 1);
        assert_int_equal(lkg_stack_stats(stack)->n_merges, before.n_merges + 1);
        assert_true(look_at("kubelet.conf.d/20-b.conf"));
        assert_true(lkg_stack_knows(stack, at("kubelet.conf.d/20-b.conf")));
        assert_false(lkg_stack_knows(stack, at("kubelet.conf.d/21.conf")));
        /* the base: read because it is named */
        put("kubelet.conf.d/10-a.conf", HEADER);
        assert_true(look_at("pki/ca.crt"));
        assert_false(look_at("kubelet.conf"));
        assert_int_equal(lkg_stack_stats(stack)->n_walks, before.n_walks);
        assert_false(look()); /* a full look misses nothing */
        assert_string_equal(field("maxPods"), "1");
}

TEST_WITH(test_touched_names_that_need_a_walk, set_up, tear_down)
{
        uint64_t walks;

        clock_fn = late_clock;
        sample();
        look();
        put("kubelet.conf.d/30-new.conf", HEADER "maxPods: 30\n");
        assert_false(look_at("kubelet.conf.d/30-new.conf"));
        assert_string_equal(field("maxPods"), "30");
        assert_int_equal(unlink(at("kubelet.conf.d/30-new.conf")), 0);
        assert_false(look_at("kubelet.conf.d/30-new.conf"));
        assert_string_equal(field("maxPods"), "10");
        put("kubelet-instance.conf", HEADER "maxPods: 5\n");
        assert_false(look_at("kubelet-instance.conf"));
        assert_string_equal(field("maxPods"), "5");
        make_dir("kubelet.conf.d/sub");
        put("kubelet.conf.d/sub/40.conf", HEADER "x: {z: 40}\n");
        assert_false(look_at("kubelet.conf.d/sub"));
        assert_string_equal(field("x.z"), "40");
        put("kubelet.conf.d/sub/40.conf", HEADER "x: {z: 41}\n");
        assert_false(look_at("kubelet.conf.d/sub/40.conf"));
        assert_string_equal(field("x.z"), "41");
        walks = lkg_stack_stats(stack)->n_walks;
        assert_true(look_at("pki"));
        assert_int_equal(lkg_stack_stats(stack)->n_walks, walks);
        (void)rename(at("kubelet.conf.d"), at("gone.d"));
        assert_false(look_at("kubelet.conf.d"));
        assert_int_equal(candidate->n_layers, 2);
}

/* One file is two layers: a change of one is a change of both. */
TEST_WITH(test_touched_file_with_two_names, set_up, tear_down)
{
        clock_fn = late_clock;
        sample();
        assert_int_equal(symlink("10-a.conf", at("kubelet.conf.d/90.conf")), 0);
        look();
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 33\n");
        assert_false(look_at("kubelet.conf.d/10-a.conf"));
        assert_string_equal(field("maxPods"), "33");
        assert_ptr_equal(lkg_value_get_pointer(candidate->layers[candidate->n_layers - 1].doc, "/x"), NULL);
        assert_string_equal(
                lkg_value_text(lkg_value_get_pointer(candidate->layers[3].doc, "/maxPods"), NULL), "33");
}

/* A known name has become a link, a directory, or nothing. */
TEST_WITH(test_touched_layer_is_something_else, set_up, tear_down)
{
        clock_fn = late_clock;
        sample();
        put("other", HEADER "maxPods: 77\n");
        look();
        assert_int_equal(unlink(at("kubelet.conf.d/10-a.conf")), 0);
        assert_int_equal(symlink("../other", at("kubelet.conf.d/10-a.conf")), 0);
        assert_false(look_at("kubelet.conf.d/10-a.conf"));
        assert_string_equal(field("maxPods"), "77");
        put("other", HEADER "maxPods: 78\n");
        assert_false(look_at("other"));
        assert_string_equal(field("maxPods"), "78");
        assert_int_equal(unlink(at("kubelet.conf.d/10-a.conf")), 0);
        assert_false(look_at("kubelet.conf.d/10-a.conf"));
        assert_int_equal(unlink(at("kubelet.conf")), 0);
        assert_false(look_at("kubelet.conf"));
        assert_false(candidate->has_base);
}

TEST_WITH(test_touched_but_unsettled, set_up, tear_down)
{
        sample();
        lkg_stack_set_unsettled(stack, is_unsettled, &unsettled_name);
        look();
        put("kubelet.conf.d/10-a.conf", HEADER);
        unsettled_name = "kubelet.conf.d/10-a.conf";
        assert_true(look_at("kubelet.conf.d/10-a.conf"));
        assert_string_equal(field("maxPods"), "10");
        unsettled_name = NULL;
        put("kubelet.conf.d/20-b.conf", HEADER "x: {z: 5}\n");
        assert_false(look_at("kubelet.conf.d/20-b.conf")); /* including what was skipped */
        assert_string_equal(field("x.z"), "5");
        assert_string_not_equal(field("maxPods"), "10");
        unsettled_name = "kubelet.conf.d/30-new.conf";
        put("kubelet.conf.d/30-new.conf", HEADER "maxPods: 30\n");
        assert_true(look_at("kubelet.conf.d/30-new.conf"));
        unsettled_name = NULL;
        put("kubelet.conf", HEADER "maxPods: 1\nx: {y: 1}\n");
        assert_false(look_at("kubelet.conf"));
        assert_string_equal(field("maxPods"), "30");
}

/* Same size, same inode, within one clock tick: each layer is read again, once. */
TEST_WITH(test_touched_within_a_tick, set_up, tear_down)
{
        sample();
        look();
        for (int i = 0; i < 50; i++) {
                struct lkg_stack_stats before = *lkg_stack_stats(stack);
                char text[128];

                (void)snprintf(text, sizeof(text), HEADER "maxPods: %d\n", 10 + i);
                put("kubelet.conf.d/10-a.conf", text);
                (void)look_at("kubelet.conf.d/10-a.conf");
                assert_in_range(lkg_stack_stats(stack)->n_reads, before.n_reads + 1,
                                before.n_reads + candidate->n_layers);
                (void)snprintf(text, sizeof(text), "%d", 10 + i);
                assert_string_equal(field("maxPods"), text);
        }
}

/* ---- names and sources ---- */

TEST_WITH(test_name_taken, set_up, tear_down)
{
        static const char *const texts[] = {
                "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: secret}}]\n",
                "clusters: []\n",
                "contexts: []\n",
                "{\"users\": []}",
        };

        open_stack();
        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                char *findings;

                put("kubelet.conf", texts[i]);
                look();
                assert_int_equal(candidate->state, LKG_CANDIDATE_NAME_TAKEN);
                assert_null(candidate->doc);
                assert_null(candidate->layers[0].doc);
                findings = lkg_report_format(&candidate->report, NULL);
                assert_null(strstr(findings, "secret"));
                assert_non_null(strstr(findings, "file: kubelet-config.yaml"));
                free(findings);
        }
        put("kubelet.conf", HEADER);
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
}

/* A fallback copy carries a mark and is never a source. */
TEST_WITH(test_fallback_is_no_base, set_up, tear_down)
{
        sample();
        look();
        if (setxattr(at("kubelet.conf"), "user.lkgfs.fallback", "1", 1, 0) < 0) {
                assert_true(errno == ENOTSUP || errno == EPERM);
                skip(); /* no user xattrs on this file system */
        }
        look();
        assert_false(candidate->has_base);
        assert_string_equal(candidate->layers[0].name, "10-a.conf");
}

TEST_WITH(test_source_directory_is_gone, set_up, tear_down)
{
        struct lkg_candidate *fresh = NULL;
        struct lkg_error err = { 0 };

        open_stack();
        assert_int_equal(rmdir(root), 0);
        assert_int_equal(lkg_stack_refresh(stack, &fresh, &err), -ENOENT);
        assert_non_null(strstr(err.message, root));
        assert_int_equal(mkdir(root, 0755), 0); /* for tear_down() */
}

/* ---- many layers ---- */

static void put_many(unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                char name[64], text[160];

                (void)snprintf(name, sizeof(name), "kubelet.conf.d/%05u.conf", i);
                (void)snprintf(text, sizeof(text), HEADER "featureGates: {Gate%05u: true}\nlast: %u\n", i,
                               i);
                put(name, text);
        }
}

TEST_WITH(test_a_thousand_layers, set_up, tear_down)
{
        struct lkg_stack_stats before;

        clock_fn = late_clock;
        max_dropins = 1002;
        sample();
        put_many(1000);
        look();
        assert_string_equal(field("last"), "999");
        assert_int_equal(lkg_value_size(lkg_map_get(candidate->doc, "featureGates")), 1000);
        before = *lkg_stack_stats(stack);
        put("kubelet.conf.d/00990.conf", HEADER "featureGates: {Gate00990: false}\n");
        assert_false(look());
        assert_string_equal(field("featureGates.Gate00990"), "false");
        assert_int_equal(lkg_stack_stats(stack)->n_reads, before.n_reads + 1);
        assert_int_equal(lkg_stack_stats(stack)->n_parses, before.n_parses + 1);
        assert_int_equal(lkg_stack_stats(stack)->n_merges,
                         before.n_merges + 12); /* 00990..00999, 10-a, 20-b */
}

static void assert_refused(const char *words)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_report_format(&candidate->report, NULL);

        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_non_null(text);
        assert_non_null(strstr(text, words));
}

/* Nothing is served of layers that are too many or too big; the finding names the first one and the setting. */
TEST_WITH(test_limit_of_dropins, set_up, tear_down)
{
        sample();
        put_many(254);
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        put("kubelet.conf.d/zz.conf", HEADER "maxPods: 9\n");
        look();
        assert_refused("kubelet.conf.d/zz.conf: error: more than 256 drop-ins (maxDropIns)");
        assert_int_equal(candidate->n_layers, 257);
        assert_int_equal(unlink(at("kubelet.conf.d/zz.conf")), 0);
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
}

static void put_sized(const char *name, int size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(&buf, HEADER "#%*s\n", size - (int)strlen(HEADER) - 2, "");
        put(name, buf.data);
}

TEST_WITH(test_limit_of_bytes, set_up, tear_down)
{
        clock_fn = late_clock;
        max_bytes = 3000;
        sample();
        put_sized("kubelet.conf.d/50.conf", 2000);
        look();
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        put_sized("kubelet.conf.d/50.conf", 2900); /* and the others */
        look_at("kubelet.conf.d/50.conf");
        assert_refused("kubelet.conf.d/50.conf: error: with this file the layers are larger than 3000 bytes "
                       "together (maxLayerBytes)");
        put_sized("kubelet.conf.d/50.conf", 2000);
        look_at("kubelet.conf.d/50.conf");
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        put_sized("kubelet.conf.d/60.conf", 2000);
        look();
        assert_refused("kubelet.conf.d/60.conf: error: with this file");
        put_sized("kubelet.conf.d/50.conf", 200); /* another one is shorter now */
        look_at("kubelet.conf.d/50.conf");
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
}

/* A base that is too big is not said to be missing. */
TEST_WITH(test_a_base_that_is_too_big, set_up, tear_down)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        max_bytes = 50;
        sample();
        look();
        assert_refused("kubelet.conf: error: with this file");
        text = lkg_report_format(&candidate->report, NULL);
        assert_null(strstr(text, "has no base file"));
}

/* An emptied patch file, as a user may leave one: alone, before others, under a drop-in. */
TEST_WITH(test_patch_files_that_hold_nothing, set_up, tear_down)
{
        static const char *const texts[] = {
                "",
                "\n",
                " \n  \n",
                "# nothing\n",
                "---\n",
                "---\n---\n",
                "null\n",
                "~",
                "---\n# nothing\n---\nnull\n",
                "\xef\xbb\xbf",
                "\xef\xbb\xbf# x\n",
                "!!null\n",
        };
        static const char *const names[] = { "patches/kubeletconfiguration.yaml",
                                             "patches/kubeletconfiguration0+merge.yaml",
                                             "patches/kubeletconfiguration1+json.json",
                                             "patches/kubeletconfiguration2+strategic.yaml" };

        with_patches = true;
        make_dir("patches");
        make_dir("kubelet.conf.d");
        open_stack();
        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                for (size_t k = 0; k < LKG_ARRAY_SIZE(names); k++) {
                        put(names[k], texts[i]);
                        (void)look();
                        assert_int_equal(candidate->state, LKG_CANDIDATE_NONE); /* nothing else exists */
                        assert_null(candidate->doc);
                        assert_int_equal(candidate->report.n_severity[LKG_ERROR], 0);
                        put("kubelet.conf", HEADER "maxPods: 1\n");
                        (void)look();
                        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
                        assert_string_equal(show(lkg_map_get(candidate->doc, "maxPods"), -1), "1");
                        put("kubelet.conf.d/1.conf", HEADER "maxPods: 2\n");
                        put("patches/kubeletconfiguration9.yaml", "port: 3\n");
                        (void)look();
                        assert_int_equal(candidate->n_layers, 4);
                        assert_string_equal(show(lkg_map_get(candidate->doc, "maxPods"), -1), "2");
                        assert_string_equal(show(lkg_map_get(candidate->doc, "port"), -1), "3");
                        assert_int_equal(candidate->report.n_severity[LKG_NOTE], 1);
                        assert_int_equal(candidate->report.findings[0].code, 2040);
                        assert_int_equal(unlink(at("kubelet.conf")), 0);
                        (void)look();
                        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
                        assert_int_equal(unlink(at("kubelet.conf.d/1.conf")), 0);
                        (void)look(); /* a patch without a target */
                        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
                        assert_int_equal(candidate->report.n_severity[LKG_ERROR], 2);
                        assert_int_equal(unlink(at("patches/kubeletconfiguration9.yaml")), 0);
                        assert_int_equal(unlink(at(names[k])), 0);
                }
        }
}

/* ---- admission ---- */

static const char *refused_name; /* "" = all together, NULL = none */
static size_t size_asked;
static struct lkg_buf asked; /* what the admission was asked about, and (+) what was judged */

/* What is refused to be opened, and what is worked on: "" = all together, NULL = nothing. */
static const char *refused_file, *in_work;

static int admit(const struct lkg_content *content, char **ret_why, void *userdata)
{
        const char *slash = strrchr(content->file, '/');

        assert_ptr_equal(userdata, &refused_name);
        assert_int_equal(strlen(content->sha256), 64);
        in_work = slash ? slash + 1 : "";
        if (content->what == LKG_ADMIT_READ) {
                if (!refused_file || strcmp(refused_file, slash + 1) != 0)
                        return 0;
                *ret_why = strdup("whoever opens it is killed");
                return -EKEYREJECTED;
        }
        assert_int_equal(content->what, *content->file ? LKG_ADMIT_LAYER : LKG_ADMIT_TOGETHER);
        size_asked += content->size;
        lkg_buf_printf(&asked, "%s ", slash ? slash + 1 : "all");
        if (!refused_name || strcmp(refused_name, slash ? slash + 1 : "") != 0)
                return 0;
        *ret_why = strdup("it bites");
        return -EKEYREJECTED;
}

static void note_finished(void *userdata)
{
        assert_ptr_equal(userdata, &refused_name);
        in_work = NULL;
}

static void note_judged(const char *file, const char *sha256, void *userdata)
{
        (void)sha256;
        assert_ptr_equal(userdata, &refused_name);
        lkg_buf_printf(&asked, "+%s ", strrchr(file, '/') + 1);
}

/* Looks, and compares what was asked about. Return: the same candidate? */
static bool look_and_ask(const char *want)
{
        bool same;

        lkg_buf_reset(&asked);
        lkg_buf_puts(&asked, "");
        size_asked = 0;
        same = look();
        assert_string_equal(asked.size ? asked.data : "", want);
        return same;
}

static void set_admission(void)
{
        const struct lkg_admission admission = {
                .admit = admit, .finished = note_finished, .judged = note_judged, .userdata = &refused_name
        };

        refused_name = refused_file = NULL;
        sample();
        lkg_stack_set_admission(stack, &admission);
}

static const struct lkg_finding *poison_finding(void)
{
        for (size_t i = 0; i < candidate->report.n_findings; i++)
                if (candidate->report.findings[i].code == 2030)
                        return &candidate->report.findings[i];
        return NULL;
}

TEST_WITH(test_each_layer_is_asked_about_before_it_is_read, set_up, tear_down)
{
        const size_t size = strlen(HEADER "maxPods: 12\n");
        size_t all;

        set_admission();
        (void)look_and_ask("kubelet.conf 10-a.conf 20-b.conf kubelet.conf 10-a.conf 20-b.conf "
                           "all +kubelet.conf +10-a.conf +20-b.conf ");
        assert_true(look_and_ask("all ")); /* a full look merges again */
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 12\n");
        assert_false(look_and_ask("10-a.conf 10-a.conf all +10-a.conf "));
        all = size_asked - 2 * size;
        assert_true(all > 2 * size);
        assert_true(look_and_ask("all "));
        assert_int_equal(size_asked, all);
        lkg_buf_deinit(&asked);
}

TEST_WITH(test_what_was_read_but_never_judged_is_asked_about_again, set_up, tear_down)
{
        set_admission();
        (void)look();
        put("kubelet.conf.d/20-b.conf", HEADER "maxPods: [\n");
        (void)look();
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 12\n");
        assert_false(look_and_ask("10-a.conf 10-a.conf all "));
        put("kubelet.conf.d/20-b.conf", HEADER "maxPods: 13\n");
        assert_false(look_and_ask("20-b.conf 10-a.conf 20-b.conf all +10-a.conf +20-b.conf "));
        lkg_buf_deinit(&asked);
}

TEST_WITH(test_a_refused_layer_is_not_read, set_up, tear_down)
{
        uint64_t parses;

        set_admission();
        (void)look();
        refused_name = "10-a.conf";
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 12\n");
        parses = lkg_stack_stats(stack)->n_parses;
        assert_false(look());
        assert_int_equal(lkg_stack_stats(stack)->n_parses, parses);
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_non_null(poison_finding());
        assert_string_equal(poison_finding()->text, "it bites");
        assert_string_equal(poison_finding()->file, at("kubelet.conf.d/10-a.conf"));
        assert_true(look()); /* and the finding stays the same */
        put("kubelet.conf.d/20-b.conf", HEADER "maxPods: [\n");
        assert_false(look()); /* other layers are read */
        assert_int_equal(candidate->report.n_severity[LKG_ERROR], 2);
        put("kubelet.conf.d/20-b.conf", HEADER "podsPerCore: 3\n");
        (void)look();
        refused_name = NULL; /* the file itself is not touched */
        assert_false(look());
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        assert_string_equal(field("maxPods"), "12");
        lkg_buf_deinit(&asked);
}

/* Unlike its content, the file is not opened; and nothing is said to be in work when it is not. */
TEST_WITH(test_a_file_that_nobody_may_open, set_up, tear_down)
{
        uint64_t parses;

        set_admission();
        (void)look();
        assert_string_equal(in_work, ""); /* until the loop waits */
        refused_file = "30-c.conf";
        put("kubelet.conf.d/30-c.conf", HEADER "maxPods: 12\n");
        parses = lkg_stack_stats(stack)->n_parses;
        assert_false(look());
        assert_int_equal(lkg_stack_stats(stack)->n_parses, parses);
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_string_equal(poison_finding()->text, "whoever opens it is killed");
        assert_string_equal(poison_finding()->file, at("kubelet.conf.d/30-c.conf"));
        assert_true(look());
        refused_file = NULL;
        assert_false(look());
        assert_string_equal(field("maxPods"), "12");
        lkg_buf_deinit(&asked);
}

TEST_WITH(test_layers_that_are_refused_together, set_up, tear_down)
{
        set_admission();
        (void)look();
        refused_name = "";
        put("kubelet.conf.d/10-a.conf", HEADER "maxPods: 12\n");
        assert_false(look());
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_non_null(poison_finding());
        assert_null(poison_finding()->file);
        assert_non_null(strstr(poison_finding()->text, "kubelet.conf, "));
        assert_non_null(strstr(poison_finding()->text, "kubelet.conf.d/10-a.conf, "));
        assert_non_null(strstr(poison_finding()->text, "kubelet.conf.d/20-b.conf: it bites"));
        assert_true(look());
        refused_name = NULL;
        assert_false(look());
        assert_string_equal(field("maxPods"), "12");
        lkg_buf_deinit(&asked);
}

static struct lkg_stack_remote in_memory(const char *text)
{
        return (struct lkg_stack_remote){
                .name = "a", .file = "kube-system/a:kubelet", .text = text, .size = strlen(text)
        };
}

TEST_WITH(test_each_base_is_remembered, set_up, tear_down)
{
        const struct lkg_stack_remote one = in_memory(HEADER "port: 1\n"),
                                      two = in_memory(HEADER "port: 2\n");
        struct lkg_candidate *of_one, *local;
        uint64_t n_merges;

        sample();
        (void)look();
        local = lkg_candidate_ref(candidate);
        (void)over(&one);
        assert_string_equal(field("port"), "1");
        assert_string_equal(field("maxPods"), "10"); /* of the drop-in */
        assert_int_equal(candidate->layers[0].role, LKG_LAYER_REMOTE);
        of_one = lkg_candidate_ref(candidate);
        (void)over(&two);
        assert_string_equal(field("port"), "2");
        n_merges = lkg_stack_stats(stack)->n_merges;
        (void)over(&one);
        assert_ptr_equal(candidate, of_one);
        (void)over(NULL);
        assert_ptr_equal(candidate, local);
        assert_int_equal(lkg_stack_stats(stack)->n_merges, n_merges);

        put("kubelet.conf.d/20-b.conf", HEADER "maxPods: 21\n");
        (void)look_over(&one);
        assert_string_equal(field("port"), "1");
        assert_string_equal(field("maxPods"), "21");
        assert_int_equal(lkg_stack_stats(stack)->n_merges, n_merges + 1); /* the others when somebody asks */
        put("kubelet.conf", "kind: [\n");
        (void)look_over(&two);
        assert_string_equal(field("maxPods"), "21"); /* whatever the base file is */
        (void)over(NULL);
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        lkg_candidate_unref(of_one);
        lkg_candidate_unref(local);
}

TEST_WITH(test_more_bases_than_are_remembered, set_up, tear_down)
{
        char text[sizeof(HEADER) + 32];

        sample();
        (void)look();
        for (unsigned round = 0; round < 3; round++)
                for (unsigned i = 0; i < 6; i++) {
                        struct lkg_stack_remote remote;

                        (void)snprintf(text, sizeof(text), HEADER "port: %u\n", i);
                        remote = in_memory(text);
                        (void)over(&remote);
                        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
                        assert_int_equal(field("port")[0], '0' + (int)i);
                }
}

TEST_WITH(test_a_document_in_memory_is_asked_about, set_up, tear_down)
{
        const struct lkg_stack_remote remote = in_memory(HEADER "maxPods: 1\n");

        set_admission();
        refused_name = "a:kubelet";
        (void)look_over(&remote);
        assert_int_equal(candidate->state, LKG_CANDIDATE_INVALID);
        assert_string_equal(poison_finding()->file, "kube-system/a:kubelet");
        refused_name = NULL;
        (void)look_over(&remote);
        assert_int_equal(candidate->state, LKG_CANDIDATE_VALID);
        lkg_buf_deinit(&asked);
}
