/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a new lkgfsd finds: a program of another build, the memory of an earlier one.
 * Rule: docs/specification.md 6.9.
 */
#define UNIT_OWN_MAIN

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <lkg/file.h>

#include "unit.h"
#include "fs/supervisor/supervisor.h"
#include "tmpdir.h"

static char top[TMPDIR_MAX];

static int make_dir(void **state)
{
        (void)state;
        return tmpdir_make(top);
}

static int remove_dir(void **state)
{
        (void)state;
        return tmpdir_remove(top);
}

/* ---- builds ---- */

TEST(test_builds)
{
        LKG_CLEANUP(lkg_closep) int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char path[TMPDIR_MAX + 16];
        size_t size = 0;

        (void)snprintf(path, sizeof(path), "%s/program", top);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
        assert_int_equal(lkg_read_file(from, 256u << 20, &text, &size, NULL), 0);
        assert_int_equal(lkg_write_all(fd, text, size), 0);
        assert_int_equal(lkg_build_same(getpid(), path), 1);
        assert_int_equal(pwrite(fd, "x", 1, (off_t)size / 2), 1);
        assert_int_equal(lkg_build_same(getpid(), path), 0);
        assert_int_equal(ftruncate(fd, 70), 0);
        assert_int_equal(lkg_build_same(getpid(), path), 0);
        assert_true(lkg_build_same(getpid(), "/nonexistent") < 0);
        assert_true(lkg_build_same(0, path) < 0);
}

/* ---- memory ---- */

static void check_memory(size_t size, uint64_t magic, bool want)
{
        LKG_CLEANUP(lkg_closep) int fd = memfd_create("test", MFD_CLOEXEC);
        struct lkg_shared *shared;

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
        shared = lkg_shared_map(fd);
        assert_int_equal(shared != NULL, want);
        assert_int_equal(shared ? munmap(shared, sizeof(*shared)) : 0, 0);
}

TEST(test_a_memory_of_another_layout_is_not_ours)
{
        check_memory(sizeof(struct lkg_shared), LKG_SHARED_MAGIC, true);
        check_memory(sizeof(struct lkg_shared), LKG_SHARED_MAGIC + 1, false);
        check_memory(sizeof(struct lkg_shared) - 1, LKG_SHARED_MAGIC, false);
        check_memory(sizeof(struct lkg_shared) + 4096, LKG_SHARED_MAGIC, false);
}

int main(void)
{
        return run_all(make_dir, remove_dir);
}
