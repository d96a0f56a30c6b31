/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens on a TCP port of this machine: /proc/net/tcp has the sockets (proc(5)), /proc/PID/fd their owners. Needs root. */
#include "processes.h"

#include <dirent.h>
#include <fcntl.h>

#define LISTEN 0x0a /* TCP_LISTEN in include/net/tcp_states.h of the kernel */

/* Return: the inode of a socket in @file that listens on @port; 0 = none. */
static unsigned long find_socket(const char *file, unsigned port)
{
        FILE *f = fopen(file, "re");
        unsigned long found = 0;
        char line[512];

        while (f && !found && fgets(line, sizeof(line), f)) {
                unsigned local, state;
                unsigned long inode;

                if (sscanf(line, " %*[^:]: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", &local, &state,
                           &inode) == 3 &&
                    local == port && state == LISTEN)
                        found = inode;
        }
        if (f)
                (void)fclose(f);
        return found;
}

static bool holds(int proc, const char *pid, const char *wanted)
{
        char path[300], target[64];
        const struct dirent *entry;
        bool found = false;
        DIR *dir;
        int fd;

        (void)snprintf(path, sizeof(path), "%.20s/fd", pid);
        fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir)
                lkg_close(fd);
        while (dir && !found && (entry = readdir(dir))) {
                ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

                target[n < 0 ? 0 : n] = '\0';
                found = strcmp(target, wanted) == 0;
        }
        if (dir)
                (void)closedir(dir);
        return found;
}

static void read_name(int proc, const char *pid, char name[static LKG_PROC_NAMES + 1])
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char path[300];
        ssize_t n;

        (void)snprintf(path, sizeof(path), "%.20s/comm", pid);
        fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : read(fd, name, LKG_PROC_NAMES);
        name[n < 0 ? 0 : n] = '\0';
        name[strcspn(name, "\n")] = '\0';
}

unsigned long lkg_port_holder(unsigned port, char name[static LKG_PROC_NAMES + 1])
{
        unsigned long inode = find_socket("/proc/net/tcp", port), pid = 0;
        const struct dirent *entry;
        char wanted[64];
        DIR *dir;

        if (!inode)
                inode = find_socket("/proc/net/tcp6", port);
        dir = inode ? opendir("/proc") : NULL;
        (void)snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
        while (dir && !pid && (entry = readdir(dir)))
                if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                    holds(dirfd(dir), entry->d_name, wanted)) {
                        pid = strtoul(entry->d_name, NULL, 10);
                        read_name(dirfd(dir), entry->d_name, name);
                }
        if (dir)
                (void)closedir(dir);
        return pid;
}
