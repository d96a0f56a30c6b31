/* SPDX-License-Identifier: Apache-2.0 */
/* Telling one process from another that got the same number: the start time, field 22 of /proc/<pid>/stat. */
#include <fcntl.h>

#include <lkg/shared.h>

uint64_t lkg_process_start_time(int pid)
{
        char path[64], text[1024];
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        const char *p;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        p = strrchr(text, ')'); /* comm may hold anything, a closing bracket too: the last one ends it */
        if (!p)
                return 0;
        /* Behind the bracket: " S ppid ...": the state is field 3, so field 22 begins after 20 blanks. */
        for (int blanks = 0; blanks < 20; blanks++) {
                p = strchr(p + 1, ' ');
                if (!p)
                        return 0;
        }
        return strtoull(p + 1, NULL, 10);
}
