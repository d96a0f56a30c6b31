/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process data from /proc: the start time (field 22 of /proc/<pid>/stat), which distinguishes it from
 * another process with the same pid, and its namespaces.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/shared.h>

/* Return: the state (field 3); 0: no such process. */
static char look(int pid, uint64_t *ret_start_time)
{
        char path[64], text[1024], state;
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
        p = strrchr(text, ')'); /* comm may contain anything, even a closing bracket: the last one ends it */
        if (!p || p[1] != ' ')
                return 0;
        state = p[2];
        /* After the bracket: " S ppid ...": the state is field 3, so field 22 starts after 20 blanks. */
        for (int blanks = 0; blanks < 20; blanks++) {
                p = strchr(p + 1, ' ');
                if (!p)
                        return 0;
        }
        *ret_start_time = strtoull(p + 1, NULL, 10);
        return state;
}

uint64_t lkg_process_start_time(int pid)
{
        uint64_t start_time = 0;

        return look(pid, &start_time) ? start_time : 0;
}

ino_t lkg_process_namespace(int pid, const char *type)
{
        struct stat st;
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, type);
        return stat(path, &st) < 0 ? 0 : st.st_ino;
}

int lkg_process_running(int pid, uint64_t start_time)
{
        uint64_t began = 0;
        char state = pid > 0 ? look(pid, &began) : 0;

        if (!state || (start_time && began != start_time) || state == 'Z' || state == 'X')
                return -ESRCH;
        return state != 'T' && state != 't';
}
