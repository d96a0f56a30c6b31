/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of reading: the same operation on several files in turn, so that other load on the machine
 * affects all of them alike.
 *
 *     cycle [-c CPU] [-r ROUNDS] [-n ITERATIONS] cycle|read|mmap LABEL=PATH...
 *
 * cycle: open, fstat, read, read at the end of the file, close. read: one pread of the whole file on a
 * descriptor that stays open. mmap: map such a file, touch every page, unmap. Each round takes ITERATIONS
 * samples of each target after a warm-up that is not counted. Prints one line per target (measure.h).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "measure.h"

#define WARM_UP   20
#define TARGETS   16
#define READ_SIZE (1u << 17)

struct target {
        const char *label, *path;
        int fd; /* read and mmap */
        size_t size;
        struct samples samples;
};

static char data[READ_SIZE];

static void do_cycle(struct target *t)
{
        int fd = open(t->path, O_RDONLY | O_CLOEXEC);
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0)
                give_up("open %s", t->path);
        n = read(fd, data, sizeof(data));
        if (n != st.st_size || read(fd, data, sizeof(data)) != 0)
                give_up("%s: %zd bytes read of %lld", t->path, n, (long long)st.st_size);
        close(fd);
}

static void do_read(struct target *t)
{
        if (pread(t->fd, data, sizeof(data), 0) != (ssize_t)t->size)
                give_up("pread %s", t->path);
}

static void do_mmap(struct target *t)
{
        volatile const char *p = mmap(NULL, t->size, PROT_READ, MAP_PRIVATE, t->fd, 0);

        if (p == MAP_FAILED)
                give_up("mmap %s", t->path);
        for (size_t i = 0; i < t->size; i += 4096)
                (void)p[i];
        munmap((void *)p, t->size);
}

static const struct {
        const char *name;
        void (*run)(struct target *t);
        int keep_open;
} operations[] = {
        { "cycle", do_cycle, 0 },
        { "read", do_read, 1 },
        { "mmap", do_mmap, 1 },
};

#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void target_open(struct target *t, int keep_open)
{
        struct stat st;

        t->fd = -1;
        if (!keep_open)
                return;
        t->fd = open(t->path, O_RDONLY | O_CLOEXEC);
        if (t->fd < 0 || fstat(t->fd, &st) < 0)
                give_up("open %s", t->path);
        if (st.st_size <= 0 || st.st_size > (off_t)sizeof(data))
                give_up("%s: %lld bytes are not 1 to %zu", t->path, (long long)st.st_size, sizeof(data));
        t->size = (size_t)st.st_size;
}

static void measure(struct target *targets, size_t n_targets, void (*run)(struct target *), long rounds,
                    long iterations)
{
        for (long r = 0; r < rounds; r++)
                for (size_t t = 0; t < n_targets; t++)
                        for (long i = -WARM_UP; i < iterations; i++) {
                                uint64_t start = now_ns();

                                run(&targets[t]);
                                if (i >= 0)
                                        samples_add(&targets[t].samples, now_ns() - start);
                        }
}

int main(int argc, char **argv)
{
        static const char usage[] =
                "cycle [-c CPU] [-r ROUNDS] [-n ITERATIONS] cycle|read|mmap LABEL=PATH...";
        const struct command_line c = command_line(argc, argv, /* has_word= */ true, TARGETS, usage);
        struct target targets[TARGETS] = { 0 };
        size_t op = 0;

        while (op < N_OPERATIONS && strcmp(c.word, operations[op].name) != 0)
                op++;
        if (op == N_OPERATIONS) {
                fprintf(stderr, "usage: %s\n", usage);
                return 64;
        }
        for (size_t i = 0; i < c.n_targets; i++) {
                targets[i].path = split_label(c.targets[i]);
                targets[i].label = c.targets[i];
                samples_init(&targets[i].samples, (size_t)(c.rounds * c.iterations));
                target_open(&targets[i], operations[op].keep_open);
        }
        measure(targets, c.n_targets, operations[op].run, c.rounds, c.iterations);
        for (size_t t = 0; t < c.n_targets; t++) {
                samples_print(targets[t].label, &targets[t].samples);
                free(targets[t].samples.ns);
        }
        return 0;
}
