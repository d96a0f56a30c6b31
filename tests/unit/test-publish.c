/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs and publications without an engine: what is written, shared and removed, and what a failure leaves
 * behind. Rule: docs/specification.md 6.1.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/file.h>

#include "unit.h"
#include "core/publish/publisher.h"
#include "tmpdir.h"

struct place {
        char top[TMPDIR_MAX];
        int fd;
        struct lkg_config *config;
        struct lkg_component components[2];
        struct lkg_manifest_rules rules;
        struct lkg_report findings;
        struct lkg_publisher *publisher;
        struct lkg_snapshot_component now[1];
};

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));
        struct lkg_publication *previous = NULL;
        struct lkg_error err = { 0 };

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        p->fd = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        assert_int_equal(lkg_config_decode(NULL, "/etc/lkgfs", &p->config, &p->findings), 0);
        p->components[0] = (struct lkg_component){ .config = &p->config->components[0],
                                                   .history = { .dirfd = -EBADF } };
        p->rules = lkg_rules_build(p->config, p->fd, p->top, &p->findings);
        assert_int_equal(lkg_publisher_open(p->fd, &p->publisher, &previous, &err), 0);
        assert_null(previous);
        assert_true(p->publisher->fresh);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        lkg_publisher_reset(p->publisher);
        lkg_component_deinit(&p->components[0]);
        lkg_publisher_free(p->publisher);
        lkg_rules_deinit(&p->rules);
        lkg_report_deinit(&p->findings);
        lkg_config_free(p->config);
        assert_int_equal(tmpdir_remove(p->top), 0);
        lkg_close(p->fd);
        free(p);
        return 0;
}

static struct lkg_snapshot input(struct place *p, uint64_t now_ns)
{
        p->now[0] = (struct lkg_snapshot_component){ .component = &p->components[0] };
        return (struct lkg_snapshot){
                .config = p->config,
                .components = p->now,
                .n_components = 1,
                .rules = &p->rules,
                .findings = &p->findings,
                .now_ns = now_ns,
        };
}

static void publish(struct place *p, uint64_t now_ns)
{
        struct lkg_snapshot in = input(p, now_ns);
        struct lkg_error err = { 0 };

        if (lkg_publish(p->publisher, &in, &err) < 0)
                fail_msg("%s", err.message);
}

static void serve(struct place *p, uint64_t number, const char *document)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = lkg_generation_alloc();

        g->number = number;
        g->time_ns = number * LKG_NSEC_PER_SEC;
        g->document = (struct lkg_text){ strdup(document), strlen(document) };
        g->origin = (struct lkg_text){ strdup("o\n"), 2 };
        g->meta = (struct lkg_text){ strdup("m\n"), 2 };
        assert_int_equal(lkg_sha256_hex(document, strlen(document), g->sha256), 0);
        lkg_component_set_active(&p->components[0], g);
        lkg_history_add(&p->components[0].history, g);
}

static struct lkg_publication *current(struct place *p)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(p->fd, "current", O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_publication *pub = NULL;
        struct lkg_error err = { 0 };
        size_t size;

        assert_true(fd >= 0);
        assert_int_equal(lkg_read_file(fd, LKG_MANIFEST_BYTES_MAX, &text, &size, NULL), 0);
        if (lkg_publication_parse(text, size, &pub, &err) < 0)
                fail_msg("%s", err.message);
        return pub;
}

static size_t count_blobs(struct place *p)
{
        DIR *dir = fdopendir(openat(p->fd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        size_t n = 0;

        for (struct dirent *e = readdir(dir); e; e = readdir(dir))
                n += strlen(e->d_name) == LKG_SHA256_HEX - 1;
        (void)closedir(dir);
        return n;
}

TEST_WITH(test_round_trip, setup, teardown)
{
        struct place *p = *state;
        struct lkg_publication *pub;
        const struct lkg_entry *e;

        serve(p, 4, "a: 1\n");
        publish(p, 9 * LKG_NSEC_PER_SEC);
        pub = current(p);
        assert_int_equal(pub->number, 1);
        assert_int_equal(pub->timeout_ms, 2000);
        assert_int_equal(pub->n_components, 1);
        assert_int_equal(pub->components[0].generation, 4);
        e = lkg_publication_find(pub, "kubelet.conf");
        assert_int_equal(e->mode, 0600);
        assert_int_equal(e->size, 5);
        assert_int_equal(e->mtime_ns, 4 * LKG_NSEC_PER_SEC);
        assert_int_equal(e->component, 0);
        assert_int_equal(lkg_publication_find(pub, "history/kubelet")->type, LKG_ENTRY_ASKED);
        assert_int_equal(lkg_publication_find(pub, "status/kubelet/sha256")->type, LKG_ENTRY_RENDERED);
        assert_int_equal(lkg_publication_find(pub, "status/kubelet/condition")->mtime_ns,
                         9 * LKG_NSEC_PER_SEC);
        assert_int_equal(lkg_publication_find(pub, "control")->mode, 0700);
        lkg_publication_free(pub);
}

static void set_reason(struct place *p, const char *reason)
{
        (void)snprintf(p->components[0].condition.reason, sizeof(p->components[0].condition.reason), "%s",
                       reason);
}

TEST_WITH(test_only_what_changed_is_written, setup, teardown)
{
        struct place *p = *state;
        struct lkg_publication *pub;
        size_t before;

        serve(p, 1, "a: 1\n");
        publish(p, LKG_NSEC_PER_SEC);
        before = count_blobs(p);
        publish(p, 2 * LKG_NSEC_PER_SEC);
        assert_int_equal(p->publisher->number, 1); /* nothing new */
        set_reason(p, "other");
        publish(p, 3 * LKG_NSEC_PER_SEC);
        assert_int_equal(p->publisher->number, 2);
        assert_int_equal(count_blobs(p), before + 2); /* condition and condition.json */
        pub = current(p);
        assert_int_equal(lkg_publication_find(pub, "status/kubelet/generation")->mtime_ns, LKG_NSEC_PER_SEC);
        assert_int_equal(lkg_publication_find(pub, "status/kubelet/condition")->mtime_ns,
                         3 * LKG_NSEC_PER_SEC);
        assert_int_equal(lkg_publication_find(pub, "status/kubelet")->mtime_ns, 3 * LKG_NSEC_PER_SEC);
        lkg_publication_free(pub);
}

/* A text is rendered again when the state of the engine is another one, and its blob stays until others were asked for. */
TEST_WITH(test_texts_are_rendered_when_asked_for, setup, teardown)
{
        struct place *p = *state;
        struct lkg_snapshot in = input(p, 1);
        struct lkg_rendered first, second;
        struct lkg_error err = { 0 };

        serve(p, 1, "a: 1\n");
        publish(p, 1);
        assert_int_equal(
                lkg_publisher_render(p->publisher, &in, "status/kubelet/last-error", 1, &first, &err), 0);
        p->components[0].faults.last_error = strdup("hold: no");
        assert_int_equal(
                lkg_publisher_render(p->publisher, &in, "status/kubelet/last-error", 2, &second, &err), 0);
        assert_int_equal(second.size, strlen("hold: no\n"));
        assert_string_not_equal(first.sha256, second.sha256);
        assert_int_equal(faccessat(p->publisher->blobs.dirfd, first.sha256, F_OK, 0), 0);
        for (unsigned i = 0; i < LKG_ANSWERED_MAX; i++)
                assert_int_equal(lkg_publisher_render(p->publisher, &in, "status/kubelet/metrics.prom",
                                                      3 + i, &second, &err),
                                 0);
        assert_int_equal(faccessat(p->publisher->blobs.dirfd, second.sha256, F_OK, 0), 0);
        assert_int_equal(
                lkg_publisher_render(p->publisher, &in, "status/kubelet/condition", 1, &second, &err),
                -ENOENT); /* the publication has it */
}

TEST_WITH(test_blobs_stay_until_nobody_can_need_them, setup, teardown)
{
        struct place *p = *state;
        char reason[16];
        size_t first;

        serve(p, 1, "a: 1\n");
        publish(p, 1);
        lkg_publisher_loaded(p->publisher, 1);
        first = count_blobs(p);
        for (unsigned i = 2; i <= 20; i++) {
                (void)snprintf(reason, sizeof(reason), "%u", i);
                set_reason(p, reason);
                publish(p, i);
        }
        assert_int_equal(count_blobs(p), first + 19 * 2); /* a reader may load any of them */
        lkg_publisher_loaded(p->publisher, 20);
        assert_int_equal(count_blobs(p), first);
        assert_int_equal(p->publisher->n_kept, 1);
        lkg_publisher_loaded(p->publisher, 1000); /* nonsense from a peer is ignored */
        assert_int_equal(count_blobs(p), first);
}

TEST_WITH(test_without_a_reader_old_publications_are_bounded, setup, teardown)
{
        struct place *p = *state;
        char reason[16];

        for (unsigned i = 1; i <= LKG_PUBLICATIONS_KEPT + 50; i++) {
                (void)snprintf(reason, sizeof(reason), "%u", i);
                set_reason(p, reason);
                publish(p, i);
        }
        assert_int_equal(p->publisher->n_kept, LKG_PUBLICATIONS_KEPT);
}

TEST_WITH(test_failure_changes_nothing_for_readers, setup, teardown)
{
        struct place *p = *state;
        struct lkg_snapshot in = input(p, 2);
        struct lkg_publication *pub;
        struct lkg_error err = { 0 };

        serve(p, 1, "a: 1\n");
        publish(p, 1);
        serve(p, 2, "a: 2\n");
        assert_int_equal(renameat(p->fd, "current", p->fd, "aside"), 0);
        assert_int_equal(mkdirat(p->fd, "current", 0700), 0);
        assert_true(lkg_publish(p->publisher, &in, &err) < 0);
        assert_int_equal(p->publisher->number, 1);
        assert_int_equal(unlinkat(p->fd, "current", AT_REMOVEDIR), 0);
        assert_int_equal(renameat(p->fd, "aside", p->fd, "current"), 0);
        pub = current(p);
        assert_int_equal(faccessat(p->publisher->blobs.dirfd,
                                   lkg_publication_find(pub, "kubelet.conf")->sha256, F_OK, 0),
                         0);
        lkg_publication_free(pub);
        publish(p, 3);
        pub = current(p);
        assert_int_equal(pub->number, 2);
        assert_int_equal(lkg_publication_find(pub, "kubelet.conf")->generation, 2);
        lkg_publication_free(pub);
}

TEST_WITH(test_successor_takes_over, setup, teardown)
{
        struct place *p = *state;
        struct lkg_publication *previous = NULL;
        struct lkg_publisher *second;
        struct lkg_error err = { 0 };
        size_t n;
        int fd;

        serve(p, 3, "a: 1\n");
        publish(p, 1);
        n = count_blobs(p);
        assert_int_equal(lkg_publisher_open(p->fd, &second, &previous, &err), 0);
        assert_false(second->fresh);
        assert_int_equal(second->number, 1);
        assert_int_equal(lkg_publication_find(previous, "kubelet.conf")->generation, 3);
        assert_int_equal(count_blobs(p), n);
        lkg_publication_free(previous);
        lkg_publisher_free(second);
        fd = openat(p->fd, "current", O_WRONLY | O_TRUNC | O_CLOEXEC); /* a broken manifest */
        lkg_close(fd);
        previous = NULL;
        assert_int_equal(lkg_publisher_open(p->fd, &second, &previous, &err), 0);
        assert_null(previous);
        assert_true(second->number > 1000); /* more than were ever published */
        lkg_publisher_free(second);
}

/* Killed while it wrote a blob: no manifest names it, and the next engine does not consider it complete. */
TEST_WITH(test_what_was_not_written_to_the_end, setup, teardown)
{
        struct place *p = *state;
        struct lkg_publication *previous = NULL;
        struct lkg_publisher *second;
        struct lkg_blob *blob = NULL;
        struct lkg_error err = { 0 };
        char sha256[LKG_SHA256_HEX], *data = NULL;
        size_t size;
        int fd;

        publish(p, 1);
        assert_int_equal(lkg_sha256_hex("abc", 3, sha256), 0);
        fd = openat(p->publisher->blobs.dirfd, sha256, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, "a", 1), 1);
        lkg_close(fd);
        assert_int_equal(lkg_publisher_open(p->fd, &second, &previous, &err), 0);
        assert_int_equal(lkg_blob_put(&second->blobs, NULL, "abc", 3, &blob, &err), 0);
        assert_int_equal(blob->size, 3);
        assert_int_equal(lkg_publication_read_blob(second->blobs.dirfd, sha256, 3, &data, &size), 0);
        assert_string_equal(data, "abc");
        free(data);
        lkg_blob_unref(&second->blobs, blob);
        lkg_publication_free(previous);
        lkg_publisher_free(second);
}

TEST_WITH(test_damaged_blob_is_noticed, setup, teardown)
{
        struct place *p = *state;
        struct lkg_blob *blob = NULL, *again = NULL;
        struct lkg_error err = { 0 };
        char *data = NULL;
        size_t size;
        int fd;

        assert_int_equal(lkg_blob_put(&p->publisher->blobs, NULL, "abc", 3, &blob, &err), 0);
        assert_int_equal(lkg_blob_put(&p->publisher->blobs, NULL, "abc", 3, &again, &err), 0);
        assert_ptr_equal(blob, again);
        assert_int_equal(lkg_publication_read_blob(p->publisher->blobs.dirfd, blob->sha256, 3, &data, &size),
                         0);
        assert_string_equal(data, "abc");
        free(data);
        fd = openat(p->publisher->blobs.dirfd, blob->sha256, O_WRONLY | O_CLOEXEC);
        assert_int_equal(write(fd, "xyz", 3), 3);
        lkg_close(fd);
        assert_int_equal(lkg_publication_read_blob(p->publisher->blobs.dirfd, blob->sha256, 3, &data, &size),
                         -EBADMSG);
        lkg_blob_unref(&p->publisher->blobs, again);
        assert_int_equal(count_blobs(p), 1);
        lkg_blob_unref(&p->publisher->blobs, blob);
        assert_int_equal(count_blobs(p), 0);
}

static const struct lkg_rule *rule(const struct lkg_manifest_rules *rules, enum lkg_rule_type type,
                                   const char *text)
{
        for (size_t i = 0; i < rules->n_items; i++)
                if (rules->items[i].type == type && strcmp(rules->items[i].text, text) == 0)
                        return &rules->items[i];
        return NULL;
}

TEST_WITH(test_rules, setup, teardown)
{
        struct place *p = *state;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_config_component *k = &p->config->components[0];
        struct lkg_manifest_rules rules;

        for (size_t i = 0; lkg_config_virtual_dirs[i]; i++)
                if (strcmp(lkg_config_virtual_dirs[i], "control") != 0)
                        assert_int_equal(mkdirat(p->fd, lkg_config_virtual_dirs[i], 0755), 0);
        free(k->instance);
        assert_true(asprintf(&k->instance, "%s/inst.conf", p->top) > 0); /* absolute, but inside */
        free(k->patches_dir);
        k->patches_dir = strdup("/elsewhere/patches");
        rules = lkg_rules_build(p->config, p->fd, p->top, &report);
        assert_int_equal(report.n_findings, 5);
        for (size_t i = 0; i < report.n_findings; i++)
                assert_int_equal(report.findings[i].code, 4004);
        assert_non_null(rule(&rules, LKG_RULE_CLASH, "status"));
        assert_non_null(rule(&rules, LKG_RULE_CLASH, "bad"));
        assert_non_null(rule(&rules, LKG_RULE_CLASH, "lkg"));
        assert_null(rule(&rules, LKG_RULE_CLASH, "control"));
        assert_non_null(rule(&rules, LKG_RULE_HIDE, ".lkgfs-fallback"));
        assert_non_null(rule(&rules, LKG_RULE_HIDE, ".lv"));
        assert_non_null(rule(&rules, LKG_RULE_FILE, "kubelet.conf"));
        assert_non_null(rule(&rules, LKG_RULE_FILE, "inst.conf"));
        assert_non_null(rule(&rules, LKG_RULE_TREE, "kubelet.conf.d"));
        assert_string_equal(rule(&rules, LKG_RULE_ALIAS, "kubelet.conf.base")->target, "kubelet.conf");
        assert_null(rule(&rules, LKG_RULE_TREE, "/elsewhere/patches"));
        lkg_rules_deinit(&rules);
        lkg_report_deinit(&report);
}
