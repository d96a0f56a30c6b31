/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program, and stops it before and after each of its system calls that is about DIR or what is below. At stop N, somebody who may
 * write there exchanges every file in the directory of that call for a name of VICTIM:
 *
 *     exchange DIR VICTIM symlink|hardlink|fifo N COMMAND...
 *
 * Exits with 0 if there was a stop N, with 3 if there was none, with 4 if the command did not end within 10 seconds after it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir, *victim, *kind;
static char where[PATH_MAX]; /* the directory of the last call that was about it */
static pid_t child;

static bool below(const char *path)
{
        size_t n = strlen(dir);

        return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* @path: a directory, or a file in one. */
static bool note(const char *path)
{
        struct stat st;

        if (!below(path))
                return false;
        (void)snprintf(where, sizeof(where), "%s", path);
        if (lstat(where, &st) < 0 || !S_ISDIR(st.st_mode))
                *strrchr(where, '/') = '\0';
        return true;
}

static bool about_descriptor(long long fd)
{
        char link[64], path[PATH_MAX];
        ssize_t n;

        (void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)child, (int)fd);
        n = fd < 0 || fd > INT_MAX ? -1 : readlink(link, path, sizeof(path) - 1);
        path[n > 0 ? n : 0] = '\0';
        return note(path);
}

static bool about_text(unsigned long long address)
{
        char link[64], path[PATH_MAX];
        ssize_t n;
        int fd;

        (void)snprintf(link, sizeof(link), "/proc/%d/mem", (int)child);
        fd = open(link, O_RDONLY | O_CLOEXEC);
        n = fd < 0 || address < 4096 ? -1 : pread(fd, path, sizeof(path) - 1, (off_t)address);
        if (fd >= 0)
                (void)close(fd);
        path[n > 0 ? n : 0] = '\0';
        return note(path);
}

/* Any of its first arguments may be a descriptor or a path. */
static bool is_about(void)
{
        static bool entered;
        struct __ptrace_syscall_info info;

        if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0)
                return false;
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
                return entered;
        entered = false;
        for (size_t i = 0; i < 4 && !entered; i += 1)
                entered = (i % 2 == 0 && about_descriptor((long long)(int)info.entry.args[i])) ||
                          about_text(info.entry.args[i]);
        return entered;
}

static void exchange(void)
{
        DIR *open = opendir(where);

        for (const struct dirent *e = open ? readdir(open) : NULL; e; e = readdir(open)) {
                struct stat st;

                if (fstatat(dirfd(open), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode) ||
                    unlinkat(dirfd(open), e->d_name, 0) < 0)
                        continue;
                if (strcmp(kind, "symlink") == 0)
                        (void)!symlinkat(victim, dirfd(open), e->d_name);
                else if (strcmp(kind, "hardlink") == 0)
                        (void)!linkat(AT_FDCWD, victim, dirfd(open), e->d_name, 0);
                else
                        (void)!mkfifoat(dirfd(open), e->d_name, 0666);
        }
        if (open)
                (void)closedir(open);
}

static void hangs(int number)
{
        (void)number;
        (void)kill(child, SIGKILL);
        _exit(4);
}

static int trace(unsigned long n)
{
        bool reached = false;
        int status;

        (void)waitpid(child, &status, 0);
        (void)ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
        while (ptrace(PTRACE_SYSCALL, child, NULL, 0) == 0 && waitpid(child, &status, 0) == child &&
               WIFSTOPPED(status)) {
                if (WSTOPSIG(status) != (SIGTRAP | 0x80) || !is_about() || --n > 0)
                        continue;
                exchange();
                reached = true;
                (void)alarm(10);
                (void)ptrace(PTRACE_DETACH, child, NULL, NULL);
                (void)waitpid(child, &status, 0);
                break;
        }
        return reached ? 0 : 3;
}

int main(int argc, char **argv)
{
        if (argc < 6)
                return 64;
        dir = argv[1];
        victim = argv[2];
        kind = argv[3];
        (void)signal(SIGALRM, hangs);
        child = fork();
        if (child == 0) {
                (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
                (void)execv(argv[5], argv + 5);
                _exit(127);
        }
        return child < 0 ? 2 : trace(strtoul(argv[4], NULL, 10));
}
