/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without a fuzzing engine: runs one target over every file of the directories (or files) named on the
 * command line.
 */
#include <dirent.h>
#include <fcntl.h>

#include <lkg/file.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(int dirfd, const char *name)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        LKG_CLEANUP(lkg_freep) uint8_t *exact = NULL;
        size_t size = 0;

        if (fd < 0 || lkg_read_file(fd, SIZE_MAX / 2, &data, &size, NULL) < 0) {
                (void)fprintf(stderr, "cannot read %s\n", name);
                return -1;
        }
        exact = malloc(
                size ? size
                     : 1); /* exactly this many bytes, so that a sanitizer notices a read beyond the end */
        if (!exact)
                return -1;
        if (size)
                memcpy(exact, data, size);
        (void)LLVMFuzzerTestOneInput(exact, size);
        return 1;
}

static int run_directory(const char *path)
{
        DIR *dir = opendir(path);
        const struct dirent *entry;
        int n = 0, r = 0;

        if (!dir)
                return run_file(AT_FDCWD, path);
        while (r >= 0 && (entry = readdir(dir))) {
                if (entry->d_name[0] == '.')
                        continue;
                r = run_file(dirfd(dir), entry->d_name);
                n += r > 0;
        }
        (void)closedir(dir);
        return r < 0 ? r : n;
}

int main(int argc, char **argv)
{
        int n = 0;

        for (int i = 1; i < argc; i++) {
                int r = run_directory(argv[i]);

                if (r < 0)
                        return 1;
                n += r;
        }
        (void)printf("%d inputs\n", n);
        return n > 0 ? 0 : 1;
}
