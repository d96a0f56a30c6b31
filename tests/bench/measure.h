/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the measuring programs: a clock, samples with percentiles, pinning, their options, error exit. */
#pragma once

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Durations of one target in nanoseconds, in the order of measurement. */
struct samples {
        uint32_t *ns;
        size_t n, n_allocated;
};

/** now_ns() - CLOCK_MONOTONIC. */
static inline uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/** give_up() - a failed measurement gives no figure: print why, exit 1. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void give_up(const char *fmt, ...)
{
        int saved = errno;
        va_list ap;

        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fprintf(stderr, ": %s\n", saved ? strerror(saved) : "unexpected");
        exit(1);
}

static inline void samples_init(struct samples *s, size_t n)
{
        s->ns = calloc(n, sizeof(*s->ns));
        s->n = 0;
        s->n_allocated = n;
        if (!s->ns)
                give_up("memory for %zu samples", n);
}

static inline void samples_add(struct samples *s, uint64_t ns)
{
        if (s->n < s->n_allocated)
                s->ns[s->n++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static inline int compare_ns(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static inline double percentile_us(const struct samples *sorted, unsigned percent)
{
        if (!sorted->n)
                return 0;
        return sorted->ns[(sorted->n - 1) * percent / 100] / 1e3;
}

/** samples_print() - sort, then one line: label, n, p50, p99 and mean in microseconds, tab-separated. */
static inline void samples_print(const char *label, struct samples *s)
{
        double sum = 0;

        qsort(s->ns, s->n, sizeof(*s->ns), compare_ns);
        for (size_t i = 0; i < s->n; i++)
                sum += s->ns[i];
        printf("%s\t%zu\t%.3f\t%.3f\t%.3f\n", label, s->n, percentile_us(s, 50), percentile_us(s, 99),
               s->n ? sum / (double)s->n / 1e3 : 0);
}

/** pin_to_cpu() - run this process on one CPU; -1 = leave it to the scheduler. */
static inline void pin_to_cpu(int cpu)
{
        cpu_set_t set;

        if (cpu < 0)
                return;
        CPU_ZERO(&set);
        CPU_SET((unsigned)cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
                give_up("pin to CPU %d", cpu);
}

/** number() - parse a decimal argument in [@min, @max]; anything else ends the program. */
static inline long number(const char *text, long min, long max)
{
        char *end;
        long value;

        errno = 0;
        value = strtol(text, &end, 10);
        if (errno || end == text || *end || value < min || value > max) {
                errno = EINVAL;
                give_up("'%s' is not a number from %ld to %ld", text, min, max);
        }
        return value;
}

/* [-c CPU] [-r ROUNDS] [-n ITERATIONS] [WORD] LABEL=TARGET...: each round measures each target ITERATIONS times. */
struct command_line {
        long rounds, iterations;
        const char *word; /* NULL: the program takes none */
        char **targets;
        size_t n_targets;
};

static inline struct command_line command_line(int argc, char **argv, bool has_word, size_t max_targets,
                                               const char *usage)
{
        struct command_line c = { .rounds = 4, .iterations = 100 };
        int option;

        while ((option = getopt(argc, argv, "c:r:n:")) != -1) {
                if (option == 'c')
                        pin_to_cpu((int)number(optarg, 0, 1023));
                else if (option == 'r')
                        c.rounds = number(optarg, 1, 1000);
                else if (option == 'n')
                        c.iterations = number(optarg, 1, 1000000);
                else
                        exit(64);
        }
        c.word = has_word && optind < argc ? argv[optind++] : NULL;
        c.targets = argv + optind;
        c.n_targets = (size_t)(argc - optind);
        if (c.n_targets == 0 || c.n_targets > max_targets || (has_word && !c.word)) {
                fprintf(stderr, "usage: %s\n", usage);
                exit(64);
        }
        return c;
}

/** split_label() - LABEL=TARGET in place; return TARGET. */
static inline char *split_label(char *text)
{
        char *equals = strchr(text, '=');

        if (!equals) {
                errno = EINVAL;
                give_up("'%s' is not LABEL=TARGET", text);
        }
        *equals = '\0';
        return equals + 1;
}
