/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

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

/* Its process has been named before. */
static void take_ends(const char *line, struct lkg_processes *processes)
{
        const char *name = NULL, *reason = NULL, *value = memrchr(line, ' ', strcspn(line, "\n"));
        size_t size = find_label(line, "process", &name), reason_size = find_label(line, "reason", &reason);

        for (size_t i = 0; value && i < processes->n; i++) {
                struct lkg_process_told *p = &processes->items[i];

                if (strlen(p->name) != size || strncmp(p->name, name, size) != 0)
                        continue;
                p->n_ends = (unsigned)strtoul(value, NULL, 10);
                (void)snprintf(p->reason, sizeof(p->reason), "%.*s", (int)reason_size, reason ? reason : "");
        }
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
                if (starts_with(line, "lkgfs_process_restarts_recent"))
                        take_ends(line, ret);
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

bool lkg_process_ends(const struct lkg_process_told *process, struct lkg_buf *buf)
{
        if (process->n_ends <= LKG_ENDS_MANY || !buf)
                return process->n_ends > LKG_ENDS_MANY;
        lkg_buf_printf(buf, "%s ended %u times within a minute, the last time: ", process->name,
                       process->n_ends);
        lkg_tool_put_clean(buf, process->reason);
        return true;
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

/* ---- the component's ---- */

static uint64_t number_of(const char *text, const char *key)
{
        const char *at = strstr(text, key);

        return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int lkg_component_process_read(const struct lkg_view *view, const char *component,
                               struct lkg_component_process *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        int r = lkg_view_read(view, &text, NULL, "status/%s/process", component);

        *ret = (struct lkg_component_process){ 0 };
        if (r < 0)
                return r;
        ret->pid = (unsigned long)number_of(text, "\npid=");
        ret->generation = number_of(text, "\ngeneration=");
        return 0;
}
