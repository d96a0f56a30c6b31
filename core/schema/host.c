/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the machine, passed to the judge; those that change are read when a document depends on them. */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <lkg/file.h>
#include <lkg/schema.h>

static bool file_exists(const char *path, void *userdata)
{
        (void)userdata;
        return lkg_path_exists(AT_FDCWD, path);
}

/*
 * The component assumes cgroup v2 if a cgroup2 file system is mounted here, and v1 if it cannot check that
 * (github.com/opencontainers/cgroups, IsCgroup2UnifiedMode).
 */
static unsigned cgroup_version(const char *path)
{
        struct statfs st;

        return statfs(path, &st) == 0 && (unsigned long)st.f_type == CGROUP2_SUPER_MAGIC ? 2 : 1;
}

/* The beginning of a file of the kernel as text; "" = it cannot be read. */
static size_t read_text(const char *root, const char *name, char *ret, size_t size)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char path[PATH_MAX];
        ssize_t n;

        *ret = '\0';
        if ((size_t)snprintf(path, sizeof(path), "%s%s", root, name) >= sizeof(path))
                return 0;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        n = fd < 0 ? -1 : read(fd, ret, size - 1);
        if (n <= 0)
                return 0;
        ret[n] = '\0';
        return (size_t)n;
}

/* A list of numbers. One that does not fit is unknown. */
static void read_list(const char *root, const char *name, char *ret, size_t size)
{
        size_t n = read_text(root, name, ret, size);

        if (n == 0 || ret[n - 1] != '\n')
                *ret = '\0';
        else
                ret[n - 1] = '\0';
}

/* 0 = unknown */
static double read_number(const char *root, const char *name)
{
        char text[64];

        return read_text(root, name, text, sizeof(text)) ? strtod(text, NULL) : 0;
}

static double read_memory(const char *root)
{
        static const char name[] = "MemTotal:";
        char text[1024];
        const char *line;

        (void)read_text(root, "/proc/meminfo", text, sizeof(text));
        line = strstr(text, name);
        return line ? strtod(line + strlen(name), NULL) * 1024 : 0;
}

/* Of the kubelet's root directory, or of where it will make it. */
static double read_storage(const char *root)
{
        static const char *const places[] = { "/var/lib/kubelet", "/var/lib" };
        char path[PATH_MAX];
        struct statfs st;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(places); i++)
                if ((size_t)snprintf(path, sizeof(path), "%s%s", root, places[i]) < sizeof(path) &&
                    statfs(path, &st) == 0)
                        return (double)st.f_blocks * (double)(st.f_frsize ? st.f_frsize : st.f_bsize);
        return 0;
}

/* The first line is a heading. */
static bool read_swap(const char *root)
{
        char text[1024];
        const char *end;

        (void)read_text(root, "/proc/swaps", text, sizeof(text));
        end = strchr(text, '\n');
        return end && end[1];
}

/* The first setting that is not as the kubelet wants it (pkg/kubelet/cm, setupKernelTunables). */
static void read_kernel(const char *root, char *ret, size_t size)
{
        static const struct {
                const char *name;
                int want;
        } settings[] = { { "vm/overcommit_memory", 1 },
                         { "vm/panic_on_oom", 0 },
                         { "kernel/panic", 10 },
                         { "kernel/panic_on_oops", 1 },
                         { "kernel/keys/root_maxkeys", 1000000 },
                         { "kernel/keys/root_maxbytes", 25000000 } };

        *ret = '\0';
        for (size_t i = 0; !*ret && i < LKG_ARRAY_SIZE(settings); i++) {
                char path[64], text[32];

                (void)snprintf(path, sizeof(path), "/proc/sys/%s", settings[i].name);
                if (read_text(root, path, text, sizeof(text)) && atoi(text) != settings[i].want)
                        (void)snprintf(ret, size, "%s is %d, not %d", settings[i].name, atoi(text),
                                       settings[i].want);
        }
}

static double read_pids(const char *root)
{
        double max = read_number(root, "/proc/sys/kernel/pid_max"),
               threads = read_number(root, "/proc/sys/kernel/threads-max");

        return threads > 0 && threads < max ? threads : max;
}

void lkg_host_look(struct lkg_host *host, enum lkg_host_fact fact, const char *root)
{
        switch (fact) {
        case LKG_HOST_CPUS:
                read_list(root, "/sys/devices/system/cpu/online", host->cpus, sizeof(host->cpus));
                break;
        case LKG_HOST_NUMA_NODES:
                read_list(root, "/sys/devices/system/node/online", host->numa_nodes,
                          sizeof(host->numa_nodes));
                break;
        case LKG_HOST_MEMORY:
                host->memory = read_memory(root);
                break;
        case LKG_HOST_STORAGE:
                host->storage = read_storage(root);
                break;
        case LKG_HOST_PIDS:
                host->pids = read_pids(root);
                break;
        case LKG_HOST_SWAP:
                host->swap = read_swap(root);
                break;
        case LKG_HOST_KERNEL:
                read_kernel(root, host->kernel, sizeof(host->kernel));
                break;
        }
}

static struct lkg_host this_host; /* with what has been looked at */

/* A layer changes more often than the machine, and who wrote it waits. */
static void look(struct lkg_host *host, enum lkg_host_fact fact)
{
        static uint64_t looked_ns[LKG_HOST_KERNEL + 1];
        uint64_t now = lkg_boottime_ns();

        if (looked_ns[fact] == 0 || now - looked_ns[fact] >= LKG_NSEC_PER_SEC) {
                looked_ns[fact] = now;
                lkg_host_look(&this_host, fact, "");
        }
        *host = this_host;
}

void lkg_host_detect(struct lkg_host *ret)
{
        this_host.cgroup = cgroup_version("/sys/fs/cgroup");
        this_host.exists = file_exists;
        this_host.look = look;
        *ret = this_host;
}
