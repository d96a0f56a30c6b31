/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of reading: the same operation on several files in turn, so that other load on the machine
 * affects all of them alike.
 *
 *     cycle [-c CPU] [-r ROUNDS] [-n ITERATIONS] cycle|stat|touch|read|mmap LABEL=PATH...
 *
 * cycle: open, fstat, read, read at the end of the file, close. stat: by path. touch: set the file's time,
 * which is a change. read: one pread of the whole file on a descriptor that stays open. mmap: map such a
 * file, touch every page, unmap. Each round takes ITERATIONS samples of each target after a warm-up that is
 * not counted. Prints one line per target (measure.h).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void do_stat(struct target *t)
{
        struct stat st;

        if (stat(t->path, &st) < 0)
                give_up("stat %s", t->path);
}

static void do_touch(struct target *t)
{
        if (utimensat(AT_FDCWD, t->path, NULL, 0) < 0)
                give_up("utimensat %s", t->path);
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
        { "cycle", do_cycle, 0 }, { "stat", do_stat, 0 }, { "touch", do_touch, 0 },
        { "read", do_read, 1 },   { "mmap", do_mmap, 1 },
};

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

__attribute__((noreturn)) static void usage(void)
{
        fprintf(stderr, "usage: cycle [-c CPU] [-r ROUNDS] [-n ITERATIONS] cycle|stat|touch|read|mmap "
                        "LABEL=PATH...\n");
        exit(64);
}

int main(int argc, char **argv)
{
        struct target targets[TARGETS] = { 0 };
        long rounds = 8, iterations = 400;
        size_t n_targets = 0, op = 0;
        int option;

        while ((option = getopt(argc, argv, "c:r:n:")) != -1) {
                if (option == 'c')
                        pin_to_cpu((int)number(optarg, 0, 1023));
                else if (option == 'r')
                        rounds = number(optarg, 1, 1000);
                else if (option == 'n')
                        iterations = number(optarg, 1, 1000000);
                else
                        usage();
        }
        if (argc - optind < 2 || argc - optind - 1 > TARGETS)
                usage();
        while (op < sizeof(operations) / sizeof(operations[0]) &&
               strcmp(argv[optind], operations[op].name) != 0)
                op++;
        if (op == sizeof(operations) / sizeof(operations[0]))
                usage();
        for (int i = optind + 1; i < argc; i++) {
                struct target *t = &targets[n_targets++];
                char *equals = strchr(argv[i], '=');

                if (!equals)
                        usage();
                *equals = '\0';
                t->label = argv[i];
                t->path = equals + 1;
                samples_init(&t->samples, (size_t)(rounds * iterations));
                target_open(t, operations[op].keep_open);
        }
        measure(targets, n_targets, operations[op].run, rounds, iterations);
        for (size_t t = 0; t < n_targets; t++) {
                samples_print(targets[t].label, &targets[t].samples);
                free(targets[t].samples.ns);
        }
        return 0;
}
