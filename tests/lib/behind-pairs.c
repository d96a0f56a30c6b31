/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes a file behind the mount and reads it through the view, as often as it is told:
 *
 *     behind-pairs BEHIND VIEW PAIRS [KIND...]
 *
 * BEHIND and VIEW lead to the same directory. After each change has ended, the file is opened, read and looked at (stat) by its name, and
 * by a descriptor that has been open since before; meanwhile other threads read and look at it without a pause. Prints one line for each
 * kind, `KIND PAIRS WRONG`; exits with 1 if one was wrong.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME           "pairs"
#define SIZE_MAX_BYTES 20000

static int behind, view;
static _Atomic bool over;
static char want[SIZE_MAX_BYTES];
static size_t want_size;
static int held; /* opened through the view */
static unsigned wrong;

static void die(const char *what)
{
        perror(what);
        exit(2);
}

static int open_at(int dir, const char *name, int flags)
{
        int fd = openat(dir, name, flags | O_CLOEXEC, 0644);

        if (fd < 0)
                die(name);
        return fd;
}

/* A document that no other one begins with. */
static void fill(unsigned n, size_t size)
{
        for (size_t i = 0; i < size; i++)
                want[i] = (char)('a' + (n * 7 + i / 64) % 26);
        want_size = size;
}

static void put(int fd, const void *data, size_t size, off_t at)
{
        if (pwrite(fd, data, size, at) != (ssize_t)size)
                die("pwrite");
}

/* ---- kinds of change; each leaves what is there in want ---- */

static void rewrite(unsigned n)
{
        int fd = open_at(behind, NAME, O_WRONLY | O_TRUNC);

        fill(n, 1 + n * 37 % 9000);
        put(fd, want, want_size, 0);
        (void)close(fd);
}

/* The descriptor that is held has what the name had when it was opened. */
static void rename_over(unsigned n)
{
        int fd = open_at(behind, NAME ".new", O_WRONLY | O_CREAT | O_TRUNC);

        fill(n, 1 + n * 37 % 9000);
        put(fd, want, want_size, 0);
        (void)close(fd);
        if (renameat(behind, NAME ".new", behind, NAME) < 0)
                die("rename");
        (void)close(held);
        held = open_at(view, NAME, O_RDONLY);
}

static void append(unsigned n)
{
        char line[32];
        int size = snprintf(line, sizeof(line), "line %u\n", n), fd;

        if (want_size + (size_t)size > sizeof(want)) {
                rewrite(n);
                return;
        }
        fd = open_at(behind, NAME, O_WRONLY | O_APPEND);
        put(fd, line, (size_t)size, 0);
        (void)close(fd);
        memcpy(want + want_size, line, (size_t)size);
        want_size += (size_t)size;
}

/* Shorter, or longer by zeros. */
static void cut(unsigned n)
{
        size_t size = 1 + n * 4099 % 12000;
        int fd = open_at(behind, NAME, O_WRONLY);

        if (ftruncate(fd, (off_t)size) < 0)
                die("ftruncate");
        (void)close(fd);
        if (size > want_size)
                memset(want + want_size, 0, size - want_size);
        want_size = size;
}

/* The size stays, and most file systems leave the times as they are. */
static void store(unsigned n)
{
        static char *mapped;

        if (n == 0) {
                int fd = open_at(behind, NAME, O_RDWR | O_TRUNC);

                fill(n, 5000);
                put(fd, want, want_size, 0);
                mapped = mmap(NULL, want_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (mapped == MAP_FAILED)
                        die("mmap");
                (void)close(fd);
        }
        fill(n, 5000);
        memcpy(mapped, want, want_size);
}

static const struct kind {
        const char *name;
        void (*change)(unsigned n);
} kinds[] = {
        { "rewritten", rewrite }, { "renamed", rename_over }, { "appended", append },
        { "truncated", cut },     { "mapped", store },
};

/* ---- what a reader sees ---- */

static void note(const char *kind, unsigned n, const char *how, long long got)
{
        if (wrong++ < 5)
                fprintf(stderr, "%s %u: %s: %lld of %zu bytes%s\n", kind, n, how, got, want_size,
                        got == (long long)want_size ? ", others" : "");
}

static void check_content(const char *kind, unsigned n, const char *how, int fd)
{
        static char got[SIZE_MAX_BYTES + 1];
        ssize_t size = pread(fd, got, sizeof(got), 0);

        if (size != (ssize_t)want_size || memcmp(got, want, want_size) != 0)
                note(kind, n, how, size);
}

static void check_size(const char *kind, unsigned n, const char *how, int r, const struct stat *st)
{
        if (r < 0 || st->st_size != (off_t)want_size)
                note(kind, n, how, r < 0 ? -1 : (long long)st->st_size);
}

static void check(const char *kind, unsigned n)
{
        struct stat st;
        int fd;

        check_content(kind, n, "pread of the held descriptor", held);
        check_size(kind, n, "fstat of the held descriptor", fstat(held, &st), &st);
        check_size(kind, n, "stat", fstatat(view, NAME, &st, 0), &st);
        fd = open_at(view, NAME, O_RDONLY);
        check_size(kind, n, "fstat of a new descriptor", fstat(fd, &st), &st);
        check_content(kind, n, "read of a new descriptor", fd);
        (void)close(fd);
}

/* Whoever else reads must not make a reader believe what was true a moment ago. */
static void *disturb(void *arg)
{
        char buf[4096];
        struct stat st;

        (void)arg;
        while (!over) {
                int fd = openat(view, NAME, O_RDONLY | O_CLOEXEC);

                if (fd < 0)
                        continue;
                (void)!pread(fd, buf, sizeof(buf), 0);
                (void)!fstatat(view, NAME, &st, 0);
                (void)!pread(fd, buf, sizeof(buf), 4096);
                (void)close(fd);
        }
        return NULL;
}

static void run(const struct kind *kind, unsigned pairs)
{
        pthread_t threads[2];
        int fd = open_at(behind, NAME, O_WRONLY | O_CREAT | O_TRUNC);
        unsigned before = wrong;

        (void)close(fd);
        want_size = 0;
        held = open_at(view, NAME, O_RDONLY);
        over = false;
        for (size_t i = 0; i < 2; i++)
                if (pthread_create(&threads[i], NULL, disturb, NULL) != 0)
                        die("pthread_create");
        for (unsigned n = 0; n < pairs; n++) {
                kind->change(n);
                check(kind->name, n);
        }
        over = true;
        for (size_t i = 0; i < 2; i++)
                (void)pthread_join(threads[i], NULL);
        (void)close(held);
        (void)unlinkat(behind, NAME, 0);
        printf("%s %u %u\n", kind->name, pairs, wrong - before);
}

int main(int argc, char **argv)
{
        bool chosen[sizeof(kinds) / sizeof(kinds[0])] = { false };

        if (argc < 4) {
                fprintf(stderr, "usage: behind-pairs BEHIND VIEW PAIRS [KIND...]\n");
                return 64;
        }
        behind = open_at(AT_FDCWD, argv[1], O_PATH | O_DIRECTORY);
        view = open_at(AT_FDCWD, argv[2], O_PATH | O_DIRECTORY);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
                for (int i = 4; i < argc; i++)
                        chosen[k] |= strcmp(argv[i], kinds[k].name) == 0;
                if (argc == 4 || chosen[k])
                        run(&kinds[k], (unsigned)strtoul(argv[3], NULL, 10));
        }
        return wrong ? 1 : 0;
}
