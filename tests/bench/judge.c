/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-judge DIRECTORY ITERATIONS - CPU time from layer files to a validated document.
 *
 * DIRECTORY holds `kubelet.conf` and `kubelet.conf.d/`. Prints microseconds of CPU: `all` (find, read,
 * parse, merge, default and validate everything), `read` (only list, open and read the files), `one` (the
 * last drop-in is rewritten each time), and `resident KIB`.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lkg/file.h>
#include <lkg/limits.h>
#include <lkg/schema.h>

#include "measure.h"

static uint64_t cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct bench {
        struct lkg_stack *stack;
        struct lkg_judge *judge;
};

static void start(struct bench *b, int source_fd)
{
        const struct lkg_stack_config config = {
                .component = "kubelet",
                .source_fd = source_fd,
                .source_path = "/source",
                .base = "kubelet.conf",
                .dropin_dir = "kubelet.conf.d",
                .instance = "",
                .patches_dir = "",
                .max_dropins = LKG_DROPINS_LIMIT,
                .max_bytes = LKG_LAYER_BYTES_LIMIT,
                .kind = "",
                .api_version = "",
        };
        struct lkg_judge_config judge = { .host = { .cgroup = 2 }, .lint = true };

        b->judge = lkg_judge_new(&judge);
        b->stack = lkg_stack_new(&config);
        lkg_stack_set_judge(b->stack, lkg_judge_candidate, b->judge);
}

static void look(struct bench *b, const char *touched)
{
        struct lkg_candidate *candidate = NULL;
        struct lkg_error err = { 0 };

        if (lkg_stack_look(b->stack, touched ? &touched : NULL, touched ? 1 : 0, &err) < 0 ||
            lkg_stack_over(b->stack, NULL, &candidate, &err) < 0)
                give_up("refresh: %s", err.message);
        if (candidate->state != LKG_CANDIDATE_VALID)
                give_up("the documents are not valid: %s",
                        candidate->report.n_findings ? candidate->report.findings[0].text : "");
        lkg_candidate_unref(candidate);
}

static void stop(struct bench *b)
{
        lkg_stack_free(b->stack);
        lkg_judge_free(b->judge);
}

static void rewrite(int source_fd, unsigned i)
{
        char text[200];
        int n = snprintf(
                text, sizeof(text),
                "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: %u\n",
                100 + i % 1000);
        int fd = openat(source_fd, "kubelet.conf.d/zz.conf", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0 || write(fd, text, (size_t)n) != n || close(fd) < 0)
                give_up("rewrite a drop-in");
}

static void read_one(int dirfd, const char *name)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_error err = { 0 };
        struct stat st;
        size_t size;

        fd = lkg_open_trusted(dirfd, name, &st, &err);
        if (fd < 0 || lkg_read_file(fd, LKG_DOC_BYTES_MAX, &data, &size, &err) < 0)
                give_up("%s", err.message);
}

/* Open and read the same files as layers are read, and nothing else. */
static void read_all(int source_fd)
{
        int fd = openat(source_fd, "kubelet.conf.d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir)
                give_up("kubelet.conf.d");
        read_one(source_fd, "kubelet.conf");
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        read_one(dirfd(dir), entry->d_name);
        closedir(dir);
}

int main(int argc, char **argv)
{
        unsigned iterations = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
        struct rusage usage;
        uint64_t began, spent = 0;
        struct bench b;
        int fd;

        if (iterations == 0)
                give_up("usage: bench-judge DIRECTORY ITERATIONS");
        fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                give_up("%s", argv[1]);
        rewrite(fd, 0);
        start(&b, fd); /* the tables are built once per process */
        look(&b, NULL);
        stop(&b);
        began = cpu_ns();
        for (unsigned i = 0; i < iterations; i++) {
                start(&b, fd);
                look(&b, NULL);
                stop(&b);
        }
        printf("all %.1f\n", (double)(cpu_ns() - began) / iterations / 1000);
        began = cpu_ns();
        for (unsigned i = 0; i < iterations; i++)
                read_all(fd);
        printf("read %.1f\n", (double)(cpu_ns() - began) / iterations / 1000);
        start(&b, fd);
        look(&b, NULL);
        for (unsigned i = 0; i < iterations; i++) {
                rewrite(fd, i);
                began = cpu_ns();
                look(&b, "/source/kubelet.conf.d/zz.conf");
                spent += cpu_ns() - began;
        }
        printf("one %.1f\n", (double)spent / iterations / 1000);
        stop(&b);
        if (getrusage(RUSAGE_SELF, &usage) == 0)
                printf("resident %ld\n", usage.ru_maxrss);
        return 0;
}
