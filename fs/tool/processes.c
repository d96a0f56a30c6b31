/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#define AGAIN_NS (300 * LKG_NSEC_PER_MSEC)
#define ENGINE   "lkgfs-engine"

/* The effect of a missing process. Not for the file server: without it there is no answer at all. */
static const struct loss {
        const char *name, *loss, *advice;
} losses[] = {
        { "lkgfsd", "nothing that ends is started again, and no component is restarted",
          "`systemctl start lkgfs`, or start it as it was started: it takes the view over; journalctl -u "
          "lkgfs "
          "says why it ended" },
        { "lkgfs-notify", "nobody who watches a file of the view hears of a change",
          "lkgfsd restarts it; journalctl -u lkgfs shows why it ends" },
};

const char *lkg_process_loss(const char *name, const char **ret_advice)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(losses); i++)
                if (strcmp(losses[i].name, name) == 0) {
                        *ret_advice = losses[i].advice;
                        return losses[i].loss;
                }
        *ret_advice = "journalctl -u lkgfs";
        return "it is needed";
}

/* The value of the label @name in `metric{a="x",name="value"} 1`. Return: its length, 0 = none. */
static size_t find_label(const char *line, const char *name, const char **ret)
{
        char text[32];
        const char *at;

        (void)snprintf(text, sizeof(text), "%s=\"", name);
        at = strstr(line, text);
        if (!at || at >= line + strcspn(line, "\n"))
                return 0;
        *ret = at + strlen(text);
        return strcspn(*ret, "\"\n");
}

static bool starts_with(const char *line, const char *metric)
{
        return strncmp(line, metric, strlen(metric)) == 0 && line[strlen(metric)] == '{';
}

static bool is_one(const char *line)
{
        const char *value = memrchr(line, ' ', strcspn(line, "\n"));

        return value && value[1] == '1';
}

void lkg_processes_parse(const char *metrics, struct lkg_processes *ret)
{
        *ret = (struct lkg_processes){ .n = 0 };
        for (const char *line = metrics; *line;
             line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0')) {
                const char *name = NULL;
                size_t size;

                if (starts_with(line, "lkgfs_engine_up"))
                        ret->engine_silent = !is_one(line);
                if (starts_with(line, "lkgfs_engine_user_missing"))
                        ret->no_user = is_one(line);
                if (!starts_with(line, "lkgfs_process_up") || ret->n == LKG_PROCESSES_MAX)
                        continue;
                size = find_label(line, "process", &name);
                if (size == 0 || size >= sizeof(ret->items[0].name))
                        continue;
                memcpy(ret->items[ret->n].name, name, size);
                ret->items[ret->n].name[size] = '\0';
                ret->items[ret->n++].up = is_one(line);
        }
}

bool lkg_process_missing(const struct lkg_process_told *process)
{
        return !process->up && strcmp(process->name, ENGINE) != 0;
}

size_t lkg_processes_missing(const struct lkg_processes *processes, struct lkg_buf *buf)
{
        size_t n = 0;

        for (size_t i = 0; i < processes->n; i++) {
                if (!lkg_process_missing(&processes->items[i]))
                        continue;
                if (buf)
                        lkg_buf_printf(buf, "%s%s", n ? ", " : "", processes->items[i].name);
                n++;
        }
        return n;
}

void lkg_processes_read(const struct lkg_view *view, const char *component, struct lkg_processes *ret)
{
        const struct timespec pause = { .tv_nsec = AGAIN_NS };

        for (int i = 0; i < 2; i++) {
                LKG_CLEANUP(lkg_freep) char *metrics = NULL;

                if (lkg_view_read(view, &metrics, NULL, "status/%s/metrics.prom", component) < 0)
                        metrics = NULL;
                lkg_processes_parse(metrics ? metrics : "", ret);
                if (lkg_processes_missing(ret, NULL) == 0)
                        return;
                if (i == 0)
                        (void)nanosleep(&pause, NULL);
        }
}

/* ---- processes of others ---- */

/* Is @pid a process of root with this name? Only a hint: every process can choose its name. */
static bool is_named(int proc, const char *pid, const char *name)
{
        char path[300], comm[LKG_PROC_NAMES + 2] = "";
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct stat st;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "%s/comm", pid);
        fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != 0)
                return false;
        n = read(fd, comm, sizeof(comm) - 1);
        if (n <= 0)
                return false;
        comm[strcspn(comm, "\n")] = '\0';
        return strncmp(comm, name, LKG_PROC_NAMES) == 0 && strlen(comm) == strnlen(name, LKG_PROC_NAMES);
}

unsigned long lkg_process_named(const char *name)
{
        DIR *dir = opendir("/proc");
        const struct dirent *entry;
        unsigned long found = 0;

        while (dir && !found && (entry = readdir(dir)))
                if (isdigit((unsigned char)entry->d_name[0]) && is_named(dirfd(dir), entry->d_name, name))
                        found = strtoul(entry->d_name, NULL, 10);
        if (dir)
                (void)closedir(dir);
        return found;
}
