/* SPDX-License-Identifier: Apache-2.0 */
/* inotify and the set of files that are being written; time is simulated. Rule: docs/specification.md 2.5. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/stack.h>
#include "unit.h"
#include "tmpdir.h"

#define T0 (UINT64_C(100) * LKG_NSEC_PER_SEC)

struct place {
        char top[TMPDIR_MAX], path[PATH_MAX];
        int fd;
        struct lkg_watch watch;
};

static const char *at(struct place *p, const char *name)
{
        (void)snprintf(p->path, sizeof(p->path), "%s/%s", p->top, name);
        return p->path;
}

static void want(struct place *p, const char *name)
{
        struct lkg_stack_watch w = { .path = *name ? at(p, name) : p->top };

        lkg_watch_add(&p->watch, &w);
}

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));
        struct lkg_error err = { 0 };

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        assert_int_equal(mkdir(at(p, "d"), 0755), 0);
        p->fd = open(p->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        assert_int_equal(lkg_watch_open(&p->watch, p->fd, p->top, &err), 0);
        want(p, "");
        want(p, "d");
        assert_true(lkg_watch_end(&p->watch));
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        lkg_watch_deinit(&p->watch);
        assert_int_equal(tmpdir_remove(p->top), 0);
        lkg_close(p->fd);
        free(p);
        return 0;
}

static bool unsettled(struct place *p, const char *name)
{
        return lkg_watch_unsettled(&p->watch, at(p, name));
}

static int create(struct place *p, const char *name)
{
        int fd = open(at(p, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        return fd;
}

TEST_WITH(test_file_is_unsettled_until_it_is_closed, setup, teardown)
{
        struct place *p = *state;
        int fd = create(p, "d/a.conf");

        assert_false(lkg_watch_drain(&p->watch, T0));
        assert_true(unsettled(p, "d/a.conf"));
        assert_int_equal(write(fd, "x", 1), 1);
        assert_false(lkg_watch_drain(&p->watch, T0 + 5));
        assert_true(lkg_watch_deadline(&p->watch) == T0 + 5 + LKG_UNCLOSED_NS);
        lkg_close(fd);
        assert_true(lkg_watch_drain(&p->watch, T0 + 6));
        assert_false(unsettled(p, "d/a.conf"));
        assert_true(lkg_watch_deadline(&p->watch) == UINT64_MAX);
}

TEST_WITH(test_silent_writer_is_believed, setup, teardown)
{
        struct place *p = *state;
        int fd = create(p, "d/a.conf");

        assert_false(lkg_watch_drain(&p->watch, T0));
        assert_false(lkg_watch_tick(&p->watch, T0 + LKG_UNCLOSED_NS - 1));
        assert_true(unsettled(p, "d/a.conf"));
        assert_true(lkg_watch_tick(&p->watch, T0 + LKG_UNCLOSED_NS));
        assert_false(unsettled(p, "d/a.conf"));
        lkg_close(fd);
}

TEST_WITH(test_word_of_the_file_server_settles, setup, teardown)
{
        struct place *p = *state;
        int fd = create(p, "d/a.conf"), other = create(p, "b.conf");

        assert_false(lkg_watch_drain(&p->watch, T0));
        lkg_watch_settle(&p->watch, "d/a.conf"); /* relative to the source directory */
        assert_false(unsettled(p, "d/a.conf"));
        assert_true(unsettled(p, "b.conf"));
        lkg_watch_settle(&p->watch, at(p, "b.conf"));
        assert_false(unsettled(p, "b.conf"));
        assert_int_equal(write(fd, "x", 1), 1); /* the writer continues */
        assert_false(lkg_watch_drain(&p->watch, T0));
        assert_true(unsettled(p, "d/a.conf"));
        lkg_close(fd);
        lkg_close(other);
}

TEST_WITH(test_complete_at_once, setup, teardown)
{
        struct place *p = *state;
        char target[PATH_MAX];
        int fd = create(p, "x");

        lkg_close(fd);
        assert_true(lkg_watch_drain(&p->watch, T0));
        (void)strcpy(target, at(p, "x"));
        assert_int_equal(link(target, at(p, "d/link.conf")), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        assert_false(unsettled(p, "d/link.conf"));
        assert_int_equal(symlink(target, at(p, "d/sym.conf")), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        assert_false(unsettled(p, "d/sym.conf"));
        assert_int_equal(mkdir(at(p, "d/sub"), 0755), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        assert_int_equal(rename(target, at(p, "d/moved.conf")), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        assert_int_equal(unlink(at(p, "d/moved.conf")), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        assert_int_equal(chmod(at(p, "d/link.conf"), 0400), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        assert_true(lkg_watch_deadline(&p->watch) == UINT64_MAX);
}

TEST_WITH(test_removed_file_is_forgotten, setup, teardown)
{
        struct place *p = *state;
        int fd = create(p, "d/a.conf");

        assert_false(lkg_watch_drain(&p->watch, T0));
        assert_int_equal(unlink(at(p, "d/a.conf")), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        assert_true(lkg_watch_deadline(&p->watch) == UINT64_MAX);
        lkg_close(fd);
}

TEST_WITH(test_replaced_directory_is_watched_again, setup, teardown)
{
        struct place *p = *state;
        char old[PATH_MAX];
        int fd;

        (void)strcpy(old, at(p, "d"));
        assert_int_equal(rename(old, at(p, "old")), 0);
        assert_int_equal(mkdir(at(p, "d"), 0755), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        want(p, "");
        want(p, "d");
        assert_true(lkg_watch_end(&p->watch)); /* new: look again */
        fd = create(p, "d/a.conf");
        lkg_close(fd);
        assert_true(lkg_watch_drain(&p->watch, T0));
        want(p, "");
        want(p, "d");
        assert_false(lkg_watch_end(&p->watch));
}

TEST_WITH(test_unwanted_directory_is_quiet, setup, teardown)
{
        struct place *p = *state;
        int fd;

        want(p, "");
        assert_false(lkg_watch_end(&p->watch));
        assert_int_equal(p->watch.dirs.n, 1);
        (void)lkg_watch_drain(&p->watch, T0);
        fd = create(p, "d/a.conf");
        lkg_close(fd);
        assert_false(lkg_watch_drain(&p->watch, T0));
}

TEST_WITH(test_poll_is_wanted_where_inotify_is_blind, setup, teardown)
{
        struct place *p = *state;
        struct lkg_stack_watch w = { .path = p->top, .poll_only = true };

        assert_false(p->watch.poll);
        lkg_watch_add(&p->watch, &w);
        (void)lkg_watch_end(&p->watch);
        assert_true(p->watch.poll);
}

/* In the directory of a base, other entries appear and disappear. */
TEST_WITH(test_other_names_are_quiet, setup, teardown)
{
        struct place *p = *state;
        const char *names[] = { "base.conf", "link" };
        struct lkg_stack_watch one = { .path = p->top, .names = names, .n_names = 1 };
        struct lkg_stack_watch two = { .path = p->top, .names = names + 1, .n_names = 1 };
        struct lkg_touched touched;

        lkg_watch_add(&p->watch, &one);
        lkg_watch_add(&p->watch, &two); /* of another component */
        want(p, "d");
        (void)lkg_watch_end(&p->watch);
        (void)lkg_watch_drain(&p->watch, T0);
        touched = lkg_watch_take_touched(&p->watch);
        assert_true(touched.everything); /* the first look covers everything */
        lkg_touched_deinit(&touched);
        lkg_close(create(p, "other"));
        assert_int_equal(mkdir(at(p, "volume"), 0755), 0);
        assert_int_equal(unlink(at(p, "other")), 0);
        assert_false(lkg_watch_drain(&p->watch, T0));
        assert_int_equal(symlink("x", at(p, "link")), 0);
        assert_true(lkg_watch_drain(&p->watch, T0));
        lkg_close(create(p, "base.conf"));
        lkg_close(create(p, "d/any"));
        assert_true(lkg_watch_drain(&p->watch, T0));
        touched = lkg_watch_take_touched(&p->watch);
        assert_false(touched.everything);
        assert_int_equal(touched.n_paths, 3);
        assert_string_equal(touched.paths[0], at(p, "link"));
        assert_string_equal(touched.paths[1], at(p, "base.conf"));
        assert_string_equal(touched.paths[2], at(p, "d/any"));
        lkg_touched_deinit(&touched);
}

TEST_WITH(test_too_much_is_everything, setup, teardown)
{
        struct place *p = *state;
        struct lkg_touched touched = lkg_watch_take_touched(&p->watch);

        lkg_touched_deinit(&touched);
        for (unsigned i = 0; i < 2 * LKG_TOUCHED_MAX; i++) {
                char name[32];

                (void)snprintf(name, sizeof(name), "d/%u", i % (LKG_TOUCHED_MAX + 1));
                lkg_watch_touch(&p->watch, at(p, name));
                assert_int_equal(p->watch.touched.everything, i >= LKG_TOUCHED_MAX);
        }
        touched = lkg_watch_take_touched(&p->watch);
        assert_true(touched.everything);
        assert_int_equal(touched.n_paths, 0);
        lkg_touched_deinit(&touched);
        touched = lkg_watch_take_touched(&p->watch);
        assert_false(touched.everything);
}
