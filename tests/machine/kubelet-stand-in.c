/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubelet --config=FILE [FLAG...] | kubelet --version: what the kubelet is for lkgfs. It reads FILE when it starts,
 * and copies it to FOLDER/read; then, unlike the kubelet, it reads it fifty times a second: more often it would take
 * half a processor of a machine that is emulated, all the time. FOLDER/counts has
 * struct counts, of all processes since the machine was booted. It exits with 1 if maxPods is 13 when it starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "/run/kubelet-stand-in"
#define BAD    "\nmaxPods: 13\n"
#define MERGED "\npodPidsLimit: 4096\n" /* from a drop-in, so the base does not have it */

struct counts {
        uint64_t reads;
        uint64_t unmerged;   /* reads of the base, or of something else */
        uint64_t failed;     /* calls */
        uint64_t last_errno; /* of them */
        uint64_t starts;
};

static char document[1 << 20];

/* Return: its length; -errno. */
static ssize_t read_document(const char *path)
{
        size_t len = 0;
        ssize_t n;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        while ((n = read(fd, document + len, sizeof(document) - 1 - len)) > 0)
                len += (size_t)n;
        if (n < 0)
                n = -errno;
        if (close(fd) < 0 && n == 0)
                n = -errno;
        document[len] = '\0';
        return n < 0 ? n : (ssize_t)len;
}

static int keep(size_t len)
{
        FILE *file = fopen(FOLDER "/read.new", "we");

        if (!file)
                return -errno;
        (void)fwrite(document, 1, len, file);
        if (fclose(file) != 0 || rename(FOLDER "/read.new", FOLDER "/read") < 0)
                return -errno;
        return 0;
}

static struct counts *map_counts(void)
{
        struct counts *counts;
        int fd;

        (void)mkdir(FOLDER, 0755);
        fd = open(FOLDER "/counts", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 || ftruncate(fd, sizeof(*counts)) < 0)
                return NULL;
        counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return counts == MAP_FAILED ? NULL : counts;
}

static ssize_t count(struct counts *counts, const char *path)
{
        ssize_t len = read_document(path);

        if (len < 0) {
                counts->last_errno = (uint64_t)-len;
                counts->failed++;
        } else {
                counts->unmerged += !strstr(document, MERGED);
                counts->reads++;
        }
        return len;
}

int main(int argc, char *argv[])
{
        const struct timespec pause = { .tv_nsec = 20000000 };
        const char *path = NULL;
        struct counts *counts;
        ssize_t len;

        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--version") == 0) {
                        (void)puts("Kubernetes v1.35.1");
                        return 0;
                }
                if (strncmp(argv[i], "--config=", 9) == 0)
                        path = argv[i] + 9;
        }
        counts = map_counts();
        if (!counts || !path)
                return 1;
        len = count(counts, path);
        if (len < 0 || keep((size_t)len) < 0)
                return 1;
        counts->starts++;
        if (strstr(document, BAD))
                return 1;
        for (;;) {
                (void)count(counts, path);
                (void)nanosleep(&pause, NULL);
        }
}
