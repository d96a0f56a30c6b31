/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full load, with every failure counted: what the processes of a node notice while ours are killed.
 *
 *     load -s SECONDS [-j READERS] [-w DIRECTORY] PATH...
 *
 * Each reader opens the paths in turn, compares st_size with what it reads, checks that the content is
 * not torn (it must begin as the first read of that path began) and closes. With -w one more process
 * creates, renames and removes files in DIRECTORY. Prints one line: calls, failed calls, torn
 * contents, longest call in microseconds, tab-separated; what failed goes to standard error.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

#define READERS 16
#define PREFIX  32
#define PATHS   8

/* Shared by all processes; anonymous memory. */
struct result {
        atomic_ullong calls, failed, torn, longest_ns;
};

static struct result *result;
static uint64_t end_ns;

/* Count one call that began at @start; @ok: did it succeed? */
static int counted(const char *what, const char *path, uint64_t start, int ok)
{
        unsigned long long took = now_ns() - start, longest = atomic_load(&result->longest_ns);
        int saved = errno;

        atomic_fetch_add(&result->calls, 1);
        while (took > longest && !atomic_compare_exchange_weak(&result->longest_ns, &longest, took))
                continue;
        if (!ok) {
                atomic_fetch_add(&result->failed, 1);
                fprintf(stderr, "%s %s: %s\n", what, path, strerror(saved));
        }
        return ok;
}

static void read_once(const char *path, char prefix[static PREFIX])
{
        static char data[1 << 17];
        uint64_t t = now_ns();
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat st;
        ssize_t n;

        if (!counted("open", path, t, fd >= 0))
                return;
        t = now_ns();
        if (counted("fstat", path, t, fstat(fd, &st) == 0)) {
                t = now_ns();
                n = read(fd, data, sizeof(data));
                if (counted("read", path, t, n >= 0) &&
                    (n != st.st_size || n < PREFIX || (prefix[0] && memcmp(prefix, data, PREFIX) != 0))) {
                        atomic_fetch_add(&result->torn, 1);
                        fprintf(stderr, "%s: %zd bytes of %lld, or another beginning\n", path, n,
                                (long long)st.st_size);
                } else if (n >= PREFIX) {
                        memcpy(prefix, data, PREFIX);
                }
        }
        t = now_ns();
        counted("close", path, t, close(fd) == 0);
}

static void reader(char **paths, int n_paths)
{
        static char prefixes[PATHS][PREFIX];

        while (now_ns() < end_ns)
                for (int i = 0; i < n_paths; i++)
                        read_once(paths[i], prefixes[i]);
}

static void write_file(const char *path)
{
        uint64_t t = now_ns();
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (!counted("create", path, t, fd >= 0))
                return;
        t = now_ns();
        counted("write", path, t, write(fd, path, 16) == 16);
        t = now_ns();
        counted("close", path, t, close(fd) == 0);
}

static void writer(const char *directory)
{
        char from[4096], to[4096];
        uint64_t t;

        (void)snprintf(from, sizeof(from), "%s/load-%d.new", directory, (int)getpid());
        (void)snprintf(to, sizeof(to), "%s/load-%d", directory, (int)getpid());
        while (now_ns() < end_ns) {
                write_file(from);
                t = now_ns();
                counted("rename", to, t, rename(from, to) == 0);
                t = now_ns();
                counted("unlink", to, t, unlink(to) == 0);
        }
}

static void start(const char *directory, char **paths, int n_paths)
{
        pid_t pid = fork();

        if (pid < 0)
                give_up("fork");
        if (pid > 0)
                return;
        if (directory)
                writer(directory);
        else
                reader(paths, n_paths);
        _exit(0);
}

int main(int argc, char **argv)
{
        const char *directory = NULL;
        long seconds = 10, readers = 4;
        int option, status;

        while ((option = getopt(argc, argv, "s:j:w:")) != -1) {
                if (option == 's')
                        seconds = number(optarg, 1, 3600);
                else if (option == 'j')
                        readers = number(optarg, 1, READERS);
                else if (option == 'w')
                        directory = optarg;
                else
                        return 64;
        }
        if (optind == argc || argc - optind > PATHS) {
                fprintf(stderr, "usage: load -s SECONDS [-j READERS] [-w DIRECTORY] PATH...\n");
                return 64;
        }
        result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (result == MAP_FAILED)
                give_up("mmap");
        end_ns = now_ns() + (uint64_t)seconds * 1000000000;
        for (long i = 0; i < readers; i++)
                start(NULL, argv + optind, argc - optind);
        if (directory)
                start(directory, NULL, 0);
        while (wait(&status) > 0)
                if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                        atomic_fetch_add(&result->failed, 1);
        printf("%llu\t%llu\t%llu\t%.1f\n", atomic_load(&result->calls), atomic_load(&result->failed),
               atomic_load(&result->torn), (double)atomic_load(&result->longest_ns) / 1e3);
        return 0;
}
