/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped files that another process shares: see <lkg/file.h>. One of the processes may be compromised, and
 * accessing a truncated part of a file causes SIGBUS. So the missing part is replaced by private zeros, as
 * systemd-journald does with journals.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include <lkg/file.h>

#define MAPS_MAX 8

/*
 * Append-only, without a lock: a process maps its few files at its start, in one thread, or later under its
 * own lock.
 */
static struct map {
        _Atomic(char *) at; /* NULL: free; stored last */
        size_t size;
} maps[MAPS_MAX];
static size_t page_size;

static struct map *map_of(const char *p)
{
        for (size_t i = 0; i < MAPS_MAX; i++) {
                char *at = atomic_load(&maps[i].at);

                if (at && p >= at && p < at + maps[i].size)
                        return &maps[i];
        }
        return NULL;
}

/* Only what signal-safety(7) allows, and mmap, which is a system call. */
static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
        struct map *map = map_of(info->si_addr);
        char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(page_size - 1));
        void *zeros = MAP_FAILED;
        int saved = errno;

        if (map)
                zeros = mmap(page, page_size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (zeros == MAP_FAILED)
                (void)signal(signal_number, SIG_DFL); /* the repeated access kills us */
        errno = saved;
}

static int guard(char *p, size_t size)
{
        struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER };

        page_size = (size_t)sysconf(_SC_PAGESIZE);
        for (size_t i = 0; i < MAPS_MAX; i++) {
                if (atomic_load(&maps[i].at))
                        continue;
                maps[i].size = size;
                atomic_store(&maps[i].at, p);
                return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
        }
        return -ENOSPC;
}

int lkg_map_file(int fd, size_t size, void **ret)
{
        int r = posix_fallocate(fd, 0, (off_t)size); /* returns an error number and does not set errno */
        void *p;

        if (r != 0)
                return -r;
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        r = guard(p, size);
        if (r < 0) {
                (void)munmap(p, size);
                return r;
        }
        *ret = p;
        return 0;
}

void lkg_unmap_file(void *p)
{
        struct map *map = p ? map_of(p) : NULL;

        if (!map)
                return;
        (void)munmap(p, map->size);
        atomic_store(&map->at, NULL);
}
