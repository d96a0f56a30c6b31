/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forked process that carries out one restart. It writes its report to memory, because it has no channel
 * for messages; the loop logs it.
 */
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <systemd/sd-bus.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/process.h>

#include "consumer.h"
#include "facts-collectors.h"

#define MANAGER      "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define PATH_ENV     "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* One line: bytes that could start another line, or control a terminal, are replaced. */
static void put_line(struct lkg_buf *report, const char *text, size_t size)
{
        size_t max = size < LKG_RESTART_LINE_MAX ? size : LKG_RESTART_LINE_MAX;

        lkg_buf_append(report, text, max);
        if (!lkg_buf_failed(report))
                lkg_blank_hidden(report->data + report->size - max, max, '?');
        lkg_buf_putc(report, '\n');
}

static void put_reason(struct lkg_buf *report, const char *fmt, ...) LKG_PRINTF(2, 3);
static void put_reason(struct lkg_buf *report, const char *fmt, ...)
{
        char text[LKG_RESTART_LINE_MAX + 1];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        put_line(report, text, strlen(text));
}

/* ---- hook ---- */

/* Return: 0 or -errno, with the reason in @report. */
static int check_program(const char *path, struct lkg_buf *report)
{
        struct lkg_error err = { 0 };
        int r = lkg_judge_program(path, NULL, &err);

        if (r < 0)
                put_reason(report, "%s", err.message);
        return r;
}

struct hook {
        const struct lkg_settings_component *component;
        uint64_t generation;
};

/* In the new process. */
static int become_hook(void *userdata)
{
        const struct hook *hook = userdata;
        const struct lkg_settings_component *component = hook->component;
        char name[64 + NAME_MAX], number[64];
        char *const env[] = { (char *)(uintptr_t)PATH_ENV, name, number, NULL };
        char **argv = calloc(component->n_restart_argv + 1, sizeof(*argv));

        if (!argv)
                return 127;
        (void)snprintf(name, sizeof(name), "LKGFS_COMPONENT=%s", component->name);
        (void)snprintf(number, sizeof(number), "LKGFS_GENERATION=%" PRIu64, hook->generation);
        for (size_t i = 0; i < component->n_restart_argv; i++)
                argv[i] = component->restart_argv[i];
        (void)execve(argv[0], argv, env);
        (void)dprintf(STDERR_FILENO, "execute %s: %s\n", argv[0], strerror(errno));
        return 127;
}

static void put_output(const struct lkg_job_output *output, struct lkg_buf *report)
{
        const char *p = output->data, *end = p + output->size;
        unsigned n = 0;

        for (; p < end && n < LKG_RESTART_OUTPUT_LINES; n++) {
                const char *eol = memchr(p, '\n', (size_t)(end - p));
                size_t size = (size_t)((eol ? eol : end) - p);

                put_line(report, p, size);
                p += size + 1;
        }
        if (p < end || output->cut)
                lkg_buf_puts(report, "(more output left out)\n");
}

/* Return: whether it succeeded; if not, the reason is in @report. */
static bool judge_end(int r, int status, uint64_t limit_ns, struct lkg_buf *report)
{
        if (r == -ETIMEDOUT)
                put_reason(report, "it did not end within %" PRIu64 " s and was killed",
                           limit_ns / LKG_NSEC_PER_SEC);
        else if (r < 0)
                put_reason(report, "start it: %s", strerror(-r));
        else if (WIFSIGNALED(status))
                put_reason(report, "it was killed by signal %d", WTERMSIG(status));
        else if (WEXITSTATUS(status) != 0)
                put_reason(report, "exit status %d", WEXITSTATUS(status));
        else
                put_reason(report, "%s", "");
        return r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool lkg_restart_hook(const struct lkg_settings_component *component, uint64_t generation, uint64_t limit_ns,
                      struct lkg_buf *report)
{
        struct hook hook = { component, generation };
        const struct lkg_job_spec spec = { .run = become_hook, .userdata = &hook };
        char printed[LKG_RESTART_OUTPUT_LINES * (LKG_RESTART_LINE_MAX + 1)];
        struct lkg_job_output output = { .data = printed, .max = sizeof(printed) };
        int r, status = 0;
        bool done;

        if (component->n_restart_argv == 0) {
                put_reason(report, "no program is configured");
                return false;
        }
        if (check_program(component->restart_argv[0], report) < 0)
                return false;
        r = lkg_job_run(&spec, limit_ns, &output, &output, &status);
        done = judge_end(r, status, limit_ns, report);
        put_output(&output, report);
        return done;
}

/* ---- unit ---- */

static void message_unrefp(sd_bus_message **m)
{
        sd_bus_message_unref(*m);
}

static void bus_closep(sd_bus **bus)
{
        sd_bus_flush_close_unref(*bus);
}

static void error_free(sd_bus_error *error)
{
        sd_bus_error_free(error);
}

struct job {
        char path[256];
        char result[32]; /* "" = still running */
};

/* JobRemoved(u id, o job, s unit, s result) */
static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct job *job = userdata;
        const char *path, *unit, *result;
        uint32_t id;

        (void)error;
        if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) >= 0 && strcmp(path, job->path) == 0)
                (void)snprintf(job->result, sizeof(job->result), "%s", *result ? result : "unknown");
        return 0;
}

/* Return: 0; -ETIMEDOUT: it is still running; another -errno. */
static int await_job(sd_bus *bus, const struct job *job, uint64_t deadline_ns)
{
        while (!*job->result) {
                uint64_t now_ns = lkg_boottime_ns();
                int r = sd_bus_process(bus, NULL);

                if (r == 0 && now_ns >= deadline_ns)
                        return -ETIMEDOUT;
                if (r == 0)
                        r = sd_bus_wait(bus, (deadline_ns - now_ns) / 1000 + 1);
                if (r < 0 && r != -EINTR)
                        return r;
        }
        return 0;
}

/*
 * The bus sends signals to subscribers only; subscribe before starting the job, so that no signal is missed.
 */
static int ask_restart(sd_bus *bus, const char *unit, struct job *job, sd_bus_error *error)
{
        LKG_CLEANUP(message_unrefp) sd_bus_message *reply = NULL;
        const char *path;
        int r = sd_bus_match_signal(bus, NULL, MANAGER, MANAGER_PATH, MANAGER ".Manager", "JobRemoved",
                                    on_job_removed, job);

        if (r >= 0)
                r = sd_bus_call_method(bus, MANAGER, MANAGER_PATH, MANAGER ".Manager", "Subscribe", error,
                                       NULL, NULL);
        if (r >= 0)
                r = sd_bus_call_method(bus, MANAGER, MANAGER_PATH, MANAGER ".Manager", "TryRestartUnit",
                                       error, &reply, "ss", unit, "replace");
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r >= 0)
                (void)snprintf(job->path, sizeof(job->path), "%s", path);
        return r < 0 ? r : 0;
}

bool lkg_restart_unit(const char *unit, uint64_t limit_ns, struct lkg_buf *report)
{
        LKG_CLEANUP(bus_closep) sd_bus *bus = lkg_facts_bus();
        LKG_CLEANUP(error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        uint64_t deadline_ns = lkg_boottime_ns() + limit_ns;
        struct job job = { "", "" };
        int r;

        if (!bus) {
                put_reason(report, "the system bus cannot be reached");
                return false;
        }
        r = ask_restart(bus, unit, &job, &error);
        if (r < 0) {
                put_reason(report, "%s: %s", unit, error.message ? error.message : strerror(-r));
                return false;
        }
        r = await_job(bus, &job, deadline_ns);
        /* The restart is in progress; if its result is unknown, do not request another one. */
        if (r < 0 || strcmp(job.result, "done") == 0 || strcmp(job.result, "skipped") == 0) {
                put_reason(report, "%s", "");
                return true;
        }
        put_reason(report, "%s: the job ended with '%s'", unit, job.result);
        return false;
}
