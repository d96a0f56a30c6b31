/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The note about what an engine is judging, as its successor and the supervisor see it.
 * Rule: docs/specification.md 6.4.
 */

#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/admission.h>

#include "unit.h"
#include "fs/supervisor/pace.h"
#include "tmpdir.h"

#define S LKG_NSEC_PER_SEC

static char top[TMPDIR_MAX];
static int dirfd_of_test = -EBADF;

static int make_dir(void **state)
{
        (void)state;
        if (tmpdir_make(top) < 0)
                return -1;
        dirfd_of_test = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dirfd_of_test < 0 ? -1 : 0;
}

static int remove_dir(void **state)
{
        (void)state;
        dirfd_of_test = lkg_close(dirfd_of_test);
        return tmpdir_remove(top);
}

static struct lkg_judging_key key(const char *file, const char *sha256)
{
        struct lkg_judging_key key;

        lkg_judging_key("kubelet", file, sha256, &key);
        return key;
}

static void add(struct lkg_judging *judging, const char *file, const char *sha256)
{
        const struct lkg_judging_key k = key(file ? file : "", sha256);

        lkg_judging_add(judging, &k, "kubelet",
                        &(struct lkg_content){ file ? LKG_ADMIT_LAYER : LKG_ADMIT_TOGETHER, file ? file : "",
                                               sha256, 1000 });
}

static struct lkg_judging *open_in(int dirfd)
{
        struct lkg_judging *judging = NULL;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_judging_open(dirfd, &judging, &err), 0);
        return judging;
}

TEST_WITH(test_a_successor_finds_it, make_dir, remove_dir)
{
        int dirfd = dirfd_of_test;
        struct lkg_judging *dead = open_in(dirfd), *living;

        assert_int_equal(dead->since_ns, 0);
        add(dead, "50-x.conf", "aa");
        assert_int_not_equal(dead->since_ns, 0);
        lkg_judging_close(dead);
        living = open_in(dirfd);
        assert_int_not_equal(living->since_ns, 0);
        assert_int_equal(living->n_items, 1);
        assert_string_equal(living->items[0].file, "50-x.conf");
        assert_string_equal(living->items[0].component, "kubelet");
        assert_string_equal(living->items[0].sha256, "aa");
        lkg_judging_forget(living);
        assert_int_equal(living->since_ns, 0);
        lkg_judging_close(living);
}

TEST_WITH(test_what_harmed_nobody_is_known, make_dir, remove_dir)
{
        int dirfd = dirfd_of_test;
        struct lkg_judging *judging = open_in(dirfd);
        const struct lkg_judging_key a = key("50-x.conf", "aa"), b = key("50-x.conf", "bb");

        add(judging, "50-x.conf", "aa");
        lkg_judging_done(judging); /* read, and skipped because another layer is wrong */
        assert_false(lkg_judging_knows(judging, &a));
        add(judging, "50-x.conf", "aa");
        add(judging, NULL, "all of them");
        lkg_judging_judged(judging, &a, "kubelet", "50-x.conf", "aa");
        assert_false(lkg_judging_knows(judging, &a)); /* it could still do harm */
        lkg_judging_done(judging);
        assert_int_equal(judging->since_ns, 0);
        assert_int_equal(judging->n_items, 0);
        assert_true(lkg_judging_knows(judging, &a));
        assert_false(lkg_judging_knows(judging, &b));
        assert_int_equal(judging->n_known, 1); /* several layers together are no content */
        add(judging, "50-x.conf", "aa");
        add(judging, "50-x.conf", "aa");
        assert_int_equal(judging->n_items, 1);
        lkg_judging_judged(judging, &a, "kubelet", "50-x.conf", "aa");
        lkg_judging_done(judging);
        assert_int_equal(judging->n_known, 1); /* once is enough */
        lkg_judging_close(judging);
}

TEST(test_the_place_and_the_component_count)
{
        const struct lkg_judging_key a = key("50-x.conf", "aa"), b = key("60-x.conf", "aa");
        struct lkg_judging_key c;

        assert_false(lkg_judging_key_equal(&a, &b));
        lkg_judging_key("kube-proxy", "50-x.conf", "aa", &c);
        assert_false(lkg_judging_key_equal(&a, &c));
}

TEST_WITH(test_more_than_there_is_room_for, make_dir, remove_dir)
{
        int dirfd = dirfd_of_test;
        struct lkg_judging *judging = open_in(dirfd);
        char file[500], sha256[16];

        memset(file, 'x', sizeof(file) - 1);
        file[sizeof(file) - 1] = '\0';
        for (unsigned i = 0; i < LKG_JUDGING_ITEMS + 10; i++) {
                (void)snprintf(sha256, sizeof(sha256), "%u", i);
                add(judging, file, sha256);
        }
        assert_int_equal(judging->n_items, LKG_JUDGING_ITEMS);
        assert_int_equal(judging->others, 1);
        assert_int_equal(strlen(judging->items[0].file), LKG_JUDGING_FILE_MAX - 1);
        lkg_judging_done(judging);
        assert_int_equal(judging->others, 0);
        judging->n_items = UINT32_MAX; /* written by a compromised engine */
        add(judging, "a", "bb");
        lkg_judging_done(judging);
        lkg_judging_close(judging);
}

TEST_WITH(test_another_layout_is_replaced, make_dir, remove_dir)
{
        int dirfd = dirfd_of_test, fd;
        struct lkg_judging *judging = open_in(dirfd);

        judging->magic++;
        add(judging, "50-x.conf", "aa");
        lkg_judging_close(judging);
        judging = open_in(dirfd);
        assert_int_equal(judging->since_ns, 0);
        lkg_judging_close(judging);
        assert_int_equal(unlinkat(dirfd, LKG_JUDGING_NAME, 0), 0);
        assert_int_equal(symlinkat("elsewhere", dirfd, LKG_JUDGING_NAME), 0);
        judging = open_in(dirfd);
        assert_int_equal(faccessat(dirfd, "elsewhere", F_OK, 0), -1);
        lkg_judging_close(judging);
        assert_int_equal(unlinkat(dirfd, LKG_JUDGING_NAME, 0), 0);
        fd = openat(dirfd, LKG_JUDGING_NAME, O_WRONLY | O_CREAT, 0600); /* truncated by a full disk */
        assert_true(fd >= 0);
        close(fd);
        judging = open_in(dirfd);
        add(judging, "50-x.conf", "aa");
        lkg_judging_close(judging);
}

/* ---- the supervisor's view ---- */

TEST(test_work_by_processor_time)
{
        static const struct {
                uint64_t since_ns, cpu_ns;
                enum lkg_work want;
        } rows[] = {
                { 0, 7 * S, LKG_WORK_NONE },
                { 50 * S, 7 * S, LKG_WORK_GOES_ON }, /* seen for the first time: its 7 s were used before */
                { 50 * S, 8 * S, LKG_WORK_GOES_ON },
                { 50 * S, 12 * S, LKG_WORK_GOES_ON },
                { 50 * S, 12 * S + 1, LKG_WORK_TOO_LONG },
                { 60 * S, 13 * S, LKG_WORK_GOES_ON }, /* the next piece starts at zero */
                { 60 * S, 1 * S, LKG_WORK_GOES_ON },  /* of another process */
                { 0, 14 * S, LKG_WORK_NONE },
                { 60 * S, 30 * S, LKG_WORK_GOES_ON },
        };
        struct lkg_work_watch watch = { 0 };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                assert_int_equal(lkg_work_look(&watch, rows[i].since_ns, 1000, rows[i].cpu_ns),
                                 rows[i].want);
}

/* A slow machine may take its time for what is large, and no content has it for ever. */
TEST(test_work_by_size)
{
        struct lkg_work_watch watch = { 0 };

        assert_int_equal(lkg_work_limit_ns(0), 5 * S);
        assert_int_equal(lkg_work_limit_ns((1 << 20) - 1), 5 * S);
        assert_int_equal(lkg_work_limit_ns(1 << 20), 5 * S + S / 2);
        assert_int_equal(lkg_work_limit_ns(50 << 20), 30 * S);
        assert_int_equal(lkg_work_limit_ns(110 << 20), 60 * S);
        assert_int_equal(lkg_work_limit_ns(111 << 20), 60 * S);
        assert_int_equal(lkg_work_limit_ns(UINT64_MAX), 60 * S);
        assert_int_equal(lkg_work_look(&watch, 50 * S, 0, 0), LKG_WORK_GOES_ON);
        assert_int_equal(lkg_work_look(&watch, 50 * S, 10 << 20, 10 * S), LKG_WORK_GOES_ON);
        assert_int_equal(lkg_work_look(&watch, 50 * S, 20 << 20, 11 * S), LKG_WORK_GOES_ON);
        assert_int_equal(lkg_work_look(&watch, 50 * S, 20 << 20, 15 * S + 1), LKG_WORK_TOO_LONG);
        assert_int_equal(lkg_work_limit_ns(20 << 20), 15 * S);
}

/* What is added again is worked on again: read, merged, judged with the others. */
TEST_WITH(test_the_size_of_the_work, make_dir, remove_dir)
{
        struct lkg_judging *judging = open_in(dirfd_of_test);

        add(judging, "50-x.conf", "aa");
        add(judging, "50-x.conf", "aa");
        add(judging, NULL, "all");
        assert_int_equal(judging->bytes, 3000);
        lkg_judging_done(judging);
        assert_int_equal(judging->bytes, 0);
        add(judging, "60-x.conf", "bb");
        assert_int_equal(judging->bytes, 1000);
        lkg_judging_close(judging);
}
