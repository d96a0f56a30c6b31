/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a new lkgfsd finds: a program of another build, the memory of an earlier one, a restart or a stop.
 * Rule: docs/specification.md 6.9.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <lkg/file.h>

#include "fake-systemd.h"
#include "fs/supervisor/build.h"
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

/* A copy of this program with @change xored into its build id, or with @more bytes appended. */
static void copy_self(const char *path, unsigned char change, size_t more)
{
        LKG_CLEANUP(lkg_closep) int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_closep) int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        unsigned char id[LKG_BUILD_ID_MAX];
        size_t size = 0;
        int n;

        assert_int_equal(lkg_read_file(from, 256u << 20, &text, &size, NULL), 0);
        n = lkg_build_id(from, id);
        assert_true(n >= 8);
        for (char *p = text; change && (p = memmem(p, size - (size_t)(p - text), id, (size_t)n)); p++)
                *p = (char)((unsigned char)*p ^ change);
        assert_int_equal(lkg_write_all(to, text, size), 0);
        assert_int_equal(lkg_write_all(to, text, more), 0);
}

static void test_builds(void **state)
{
        char path[TMPDIR_MAX + 16];

        (void)state;
        (void)snprintf(path, sizeof(path), "%s/program", top);
        copy_self(path, 0, 0);
        assert_int_equal(lkg_build_same(getpid(), path), 1);
        copy_self(path, 0, 100); /* signed or stripped later: still the same build */
        assert_int_equal(lkg_build_same(getpid(), path), 1);
        copy_self(path, 0xff, 0);
        assert_int_equal(lkg_build_same(getpid(), path), 0);
        assert_true(lkg_build_same(getpid(), "/nonexistent") < 0);
        assert_true(lkg_build_same(0, path) < 0);
        assert_int_equal(truncate(path, 70), 0); /* truncated within its headers */
        assert_int_equal(lkg_build_same(getpid(), path), 0);
}

static void test_no_build_id(void **state)
{
        LKG_CLEANUP(lkg_closep) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_closep) int text = open("/proc/version", O_RDONLY | O_CLOEXEC);
        unsigned char id[LKG_BUILD_ID_MAX];

        (void)state;
        assert_int_equal(lkg_build_id(fd, id), -EBADMSG);
        assert_int_equal(lkg_build_id(text, id), -EBADMSG);
}

/* ---- memory ---- */

static int memory(size_t size, uint64_t magic)
{
        int fd = memfd_create("test", MFD_CLOEXEC);
        uint64_t head[2] = { magic, size };

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
        return fd;
}

static void test_a_memory_of_an_earlier_build_is_grown(void **state)
{
        LKG_CLEANUP(lkg_closep) int fd = memory(LKG_SHARED_MIN, LKG_SHARED_MAGIC);
        struct lkg_shared *shared;
        struct stat st;

        (void)state;
        assert_null(lkg_shared_map(fd)); /* a file server alone does not use it */
        assert_int_equal(pwrite(fd, "/etc/kubernetes", 16, offsetof(struct lkg_shared, mount_point)), 16);
        shared = lkg_shared_adopt(fd);
        assert_non_null(shared);
        assert_string_equal(shared->mount_point, "/etc/kubernetes");
        assert_int_equal(shared->size, sizeof(*shared));
        assert_int_equal(atomic_load(&shared->health.silent_ns), 0);
        assert_int_equal(munmap(shared, sizeof(*shared)), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, sizeof(*shared));
        shared = lkg_shared_map(fd);
        assert_non_null(shared);
        assert_int_equal(munmap(shared, sizeof(*shared)), 0);
}

static void test_a_memory_of_a_later_build_is_as_good(void **state)
{
        LKG_CLEANUP(lkg_closep) int fd = memory(sizeof(struct lkg_shared) + 4096, LKG_SHARED_MAGIC);
        struct lkg_shared *shared = lkg_shared_adopt(fd);
        struct stat st;

        (void)state;
        assert_non_null(shared);
        assert_int_equal(munmap(shared, sizeof(*shared)), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, sizeof(*shared) + 4096);
}

static void test_any_other_memory_is_not_ours(void **state)
{
        LKG_CLEANUP(lkg_closep) int other = memory(sizeof(struct lkg_shared), LKG_SHARED_MAGIC + 1);
        LKG_CLEANUP(lkg_closep) int cut = memory(LKG_SHARED_MIN - 1, LKG_SHARED_MAGIC);

        (void)state;
        assert_null(lkg_shared_adopt(other));
        assert_null(lkg_shared_adopt(cut));
}

/* 0.1.0 ended here: moving it breaks the hand-over from that release. */
_Static_assert(offsetof(struct lkg_shared, health) % 8 == 0, "what follows is aligned");

/* ---- SIGTERM ---- */

static void test_what_a_job_means(void **state)
{
        static const struct {
                const char *type;
                int want;
        } rows[] = { { "", 0 }, { "stop", 0 }, { "restart", 1 }, { "try-restart", 1 }, { "start", 0 } };
        struct fake_systemd fake = { .listen_fd = -EBADF };
        sd_bus *bus = NULL;

        (void)state;
        assert_int_equal(fake_systemd_start(&fake, top), 0);
        assert_true(sd_bus_open_system(&bus) >= 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                (void)snprintf(fake.unit->job_type, sizeof(fake.unit->job_type), "%s", rows[i].type);
                assert_int_equal(lkg_unit_restarts(bus, getpid()), rows[i].want);
        }
        fake.unit->silent = true;
        assert_true(sd_bus_set_method_call_timeout(bus, 20 * 1000) >= 0);
        assert_true(lkg_unit_restarts(bus, getpid()) < 0);
        sd_bus_flush_close_unref(bus);
        fake_systemd_stop(&fake);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_builds),
                cmocka_unit_test(test_no_build_id),
                cmocka_unit_test(test_a_memory_of_an_earlier_build_is_grown),
                cmocka_unit_test(test_a_memory_of_a_later_build_is_as_good),
                cmocka_unit_test(test_any_other_memory_is_not_ours),
                cmocka_unit_test(test_what_a_job_means),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
