/* SPDX-License-Identifier: Apache-2.0 */
/* A mapped file that another process truncates. */

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <lkg/file.h>

#include "unit.h"

#define SIZE (8u * 65536) /* some pages of any machine */

TEST(test_what_is_gone_is_zeros)
{
        int fd = memfd_create("test", MFD_CLOEXEC);
        char *p;

        assert_int_equal(lkg_map_file(fd, SIZE, (void **)&p), 0);
        memset(p, 'x', SIZE);
        assert_int_equal(ftruncate(fd, SIZE / 2), 0);
        assert_int_equal(p[SIZE / 2 - 1], 'x');
        assert_int_equal(p[SIZE - 1], 0);
        p[SIZE / 2] = 'y'; /* has no effect */
        assert_int_equal(p[SIZE / 2], 'y');
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(p[0], 0);
        lkg_unmap_file(p);
        lkg_unmap_file(NULL);
        lkg_close(fd);
}

TEST(test_there_are_as_many_as_are_closed)
{
        int fd = memfd_create("test", MFD_CLOEXEC);
        void *p[64];
        size_t n = 0;

        for (int i = 0; i < 1000; i++) {
                assert_int_equal(lkg_map_file(fd, SIZE, &p[0]), 0);
                lkg_unmap_file(p[0]);
        }
        while (n < LKG_ARRAY_SIZE(p) && lkg_map_file(fd, SIZE, &p[n]) == 0)
                n++;
        assert_true(n >= 2 && n < LKG_ARRAY_SIZE(p));
        assert_int_equal(lkg_map_file(fd, SIZE, &p[n]), -ENOSPC);
        while (n > 0)
                lkg_unmap_file(p[--n]);
        lkg_close(fd);
}

/* Other mappings are not our concern: the process dies, as it would without us. */
TEST(test_others_end_the_process)
{
        const struct rlimit no_core = { 0 };
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                int ours = memfd_create("test", 0), other = memfd_create("other", 0);
                volatile char *p;
                void *mapped;

                (void)setrlimit(RLIMIT_CORE, &no_core);
                if (lkg_map_file(ours, SIZE, &mapped) < 0 || ftruncate(other, SIZE) < 0)
                        _exit(1);
                p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, other, 0);
                if (p == MAP_FAILED || ftruncate(other, 0) < 0)
                        _exit(2);
                _exit(p[0] == 0 ? 3 : 4);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}
