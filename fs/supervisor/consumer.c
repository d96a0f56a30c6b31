/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's part of restarting components. See consumer.h. */
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/process.h>
#include <lkg/text.h>

#include "consumer-plan.h"
#include "consumer.h"
#include "facts-collect.h"
#include "supervisor.h"

#define HOOK_LIMIT_NS (30 * LKG_NSEC_PER_SEC)
#define UNIT_LIMIT_NS (100 * LKG_NSEC_PER_SEC) /* a little more than systemd's DefaultTimeoutStartSec= */
#define GRACE_NS      (10 * LKG_NSEC_PER_SEC)  /* enough for reporting the result */

struct entry {
        struct lkg_consumer *consumer;                  /* borrowed */
        const struct lkg_settings_component *component; /* borrowed from the settings */
        int dirfd;
        struct lkg_plan plan;
        struct lkg_helper helper;
        struct { /* settings at the start of the running restart: a reload may change them meanwhile */
                enum lkg_settings_restart policy;
                uint64_t asked_ns;
        } running;
        struct lkg_timer timer;
};

struct lkg_consumer {
        sd_event *event;                     /* borrowed */
        int runtime_fd;                      /* borrowed */
        const struct lkg_settings *settings; /* borrowed */
        bool enabled;
        char boot_id[LKG_BOOT_ID_MAX];
        struct entry *entries[LKG_COMPONENTS_MAX]; /* as in the settings; NULL: it cannot be restarted */
};

static void arm(struct entry *e);

static bool is_restarted(const struct entry *e)
{
        return e->component->restart != LKG_SETTINGS_RESTART_NEVER;
}

static struct lkg_log_fields fields_of(const struct entry *e, uint64_t generation)
{
        return (struct lkg_log_fields){ .component = e->component->name, .generation = generation };
}

/* ---- files ---- */

static void save_plan(struct entry *e)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        const struct lkg_log_fields fields = fields_of(e, 0);
        int r;

        lkg_plan_format(&e->plan, e->consumer->boot_id, &buf);
        r = lkg_fact_write(e->dirfd, LKG_FACT_PLAN, &buf);
        if (r < 0)
                lkg_log(LOG_WARNING, &fields, "the plan of restarts of %s is not kept for a successor: %s",
                        e->component->name, strerror(-r));
}

static int write_restarted(const struct entry *e, uint64_t generation, const char *result)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_fact_restarted restarted = { .asked_ns = e->running.asked_ns, .generation = generation };

        (void)snprintf(restarted.boot, sizeof(restarted.boot), "%s", e->consumer->boot_id);
        lkg_fact_restarted_format(&restarted, result, &buf);
        return lkg_fact_write(e->dirfd, LKG_FACT_RESTARTED, &buf);
}

static void write_history(const struct entry *e, uint64_t generation, const char *result)
{
        LKG_CLEANUP(lkg_freep) char *old = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT, buf = LKG_BUF_INIT;
        char time[21];

        (void)lkg_fact_read(e->dirfd, LKG_FACT_RESTARTS, &old, NULL);
        lkg_format_rfc3339(lkg_realtime_ns(), time);
        lkg_buf_printf(&line, "%s %s %" PRIu64 " %s", time, lkg_settings_restart_word(e->running.policy),
                       generation, result);
        if (lkg_buf_failed(&line))
                return;
        lkg_restarts_append(old, line.data, &buf);
        (void)lkg_fact_write(e->dirfd, LKG_FACT_RESTARTS, &buf);
}

/* ---- the end of a restart ---- */

/* @reason: NULL = success. */
static void ended(struct entry *e, const char *reason)
{
        const uint64_t generation = e->plan.running_generation;
        const struct lkg_log_fields fields = fields_of(e, generation);
        char result[LKG_RESTART_LINE_MAX + 32];
        bool again = lkg_plan_end(&e->plan, !reason);

        (void)snprintf(result, sizeof(result), "%s%s", reason ? "failed: " : "done", reason ? reason : "");
        if (write_restarted(e, generation, result) < 0)
                lkg_log(LOG_WARNING, &fields, "the restart of %s could not be recorded", e->component->name);
        write_history(e, generation, result);
        if (reason)
                lkg_log(LOG_ERR, &fields, "restart of %s for generation %" PRIu64 " %s; %s",
                        e->component->name, generation, result, again ? "it is tried again" : "given up");
        else
                lkg_log(LOG_NOTICE, &fields, "restarted %s for generation %" PRIu64, e->component->name,
                        generation);
        arm(e);
}

static void log_output(const struct entry *e, char *rest)
{
        const struct lkg_log_fields fields = fields_of(e, e->plan.running_generation);
        char *line;

        while (rest && (line = strsep(&rest, "\n")))
                if (*line)
                        lkg_log(LOG_NOTICE, &fields, "restart hook of %s: %s", e->component->name, line);
}

static void on_done(void *userdata, int status)
{
        struct entry *e = userdata;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        char *rest = NULL, *reason = NULL;
        size_t size;

        if (lkg_helper_answer(&e->helper, LKG_RESTART_REPORT_MAX, &text, &size) >= 0) {
                rest = text;
                reason = strsep(&rest, "\n");
                log_output(e, rest);
        }
        if (status == 0)
                reason = NULL;
        else if (!reason || !*reason)
                reason = (char *)(uintptr_t) "no result within the time limit";
        ended(e, reason);
}

/* ---- a restart ---- */

/* In the forked process. */
static int run(void *userdata)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf report = LKG_BUF_INIT;
        const struct entry *e = userdata;
        bool done =
                e->running.policy == LKG_SETTINGS_RESTART_HOOK
                        ? lkg_restart_hook(e->component, e->plan.running_generation, HOOK_LIMIT_NS, &report)
                        : lkg_restart_unit(e->component->restart_unit, UNIT_LIMIT_NS, &report);

        if (!lkg_buf_failed(&report))
                (void)lkg_write_all(STDOUT_FILENO, report.data, report.size);
        return done ? 0 : 1;
}

static int start(struct entry *e, uint64_t generation)
{
        bool hook = e->running.policy == LKG_SETTINGS_RESTART_HOOK;
        const struct lkg_helper_work work = { .run = run,
                                              .done = on_done,
                                              .userdata = e,
                                              .program = "lkgfsd",
                                              .limit_ns =
                                                      (hook ? HOOK_LIMIT_NS : UNIT_LIMIT_NS) + GRACE_NS };
        int r = write_restarted(e, generation, "asked"); /* first: the start that follows is not a failure */

        return r < 0 ? r : lkg_helper_start(&e->helper, e->consumer->event, &work);
}

static void begin(void *userdata)
{
        struct entry *e = userdata;
        uint64_t generation;
        int r;

        e->running.asked_ns = lkg_boottime_ns();
        e->running.policy = e->component->restart;
        generation = lkg_plan_begin(&e->plan, e->running.asked_ns);
        save_plan(e);
        r = start(e, generation);
        if (r < 0)
                ended(e, strerror(-r));
}

/* Called after every change of the plan: save it, and wait for its time. */
static void arm(struct entry *e)
{
        const struct lkg_settings_component *c = e->component;
        struct lkg_plan_limits limits;
        uint64_t due_ns, now_ns = lkg_boottime_ns();

        save_plan(e);
        lkg_timer_stop(&e->timer);
        if (!is_restarted(e) || !e->consumer->enabled)
                return;
        limits = (struct lkg_plan_limits){ .min_interval_ns = c->restart_min_interval_ms * LKG_NSEC_PER_MSEC,
                                           .max_per_hour = c->restart_max_per_hour };
        due_ns = lkg_plan_due(&e->plan, &limits);
        if (due_ns == LKG_PLAN_NEVER)
                return;
        (void)lkg_timer_set(&e->timer, e->consumer->event, due_ns > now_ns ? due_ns - now_ns + 999 : 0, 0,
                            begin, e); /* else the next request tries again */
}

/* ---- components ---- */

static void end_entry(struct entry *e)
{
        if (!e)
                return;
        lkg_timer_stop(&e->timer);
        lkg_helper_cancel(&e->helper);
        lkg_close(e->dirfd);
        free(e);
}

static void load_plan(struct entry *e)
{
        const struct lkg_settings *settings = e->consumer->settings;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        const struct lkg_log_fields fields = fields_of(e, 0);

        if (lkg_fact_read(e->dirfd, LKG_FACT_PLAN, &text, NULL) < 0)
                return;
        lkg_plan_parse(text, e->consumer->boot_id, lkg_boottime_ns(),
                       settings->restart_jitter_ms * LKG_NSEC_PER_MSEC, &e->plan);
        if (e->plan.running_generation != 0)
                lkg_log(LOG_NOTICE, &fields, "an earlier lkgfsd ended while it restarted %s%s",
                        e->component->name,
                        lkg_plan_end(&e->plan, /* done= */ false) ? "; it is asked for again" : "");
}

/* NULL is no reason to stop serving the view, nor for the others. */
static struct entry *begin_entry(struct lkg_consumer *c, const struct lkg_settings_component *component)
{
        int dirfd = lkg_lift_fd(lkg_facts_dir(c->runtime_fd, component->name));
        struct entry *e = dirfd < 0 ? NULL : calloc(1, sizeof(*e));

        if (!e) {
                lkg_log_error("%s cannot be restarted: %s", component->name,
                              strerror(dirfd < 0 ? -dirfd : ENOMEM));
                lkg_close(dirfd);
                return NULL;
        }
        *e = (struct entry){ .consumer = c, .component = component, .dirfd = dirfd };
        load_plan(e);
        return e;
}

static void adapt(struct entry *e)
{
        if (is_restarted(e)) {
                arm(e);
                return;
        }
        lkg_timer_stop(&e->timer);
        lkg_plan_withdraw(&e->plan);
        (void)unlinkat(e->dirfd, LKG_FACT_PLAN, 0);
}

/* The entry of a component of this name, which is no longer in the list. */
static struct entry *take(struct entry *entries[static LKG_COMPONENTS_MAX], const char *name)
{
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++)
                if (entries[i] && strcmp(entries[i]->component->name, name) == 0)
                        return LKG_STEAL(entries[i]);
        return NULL;
}

void lkg_consumer_configure(struct lkg_consumer *c, const struct lkg_settings *settings)
{
        struct entry *before[LKG_COMPONENTS_MAX];

        memcpy(before, c->entries, sizeof(before));
        memset(c->entries, 0, sizeof(c->entries));
        c->settings = settings;
        for (size_t i = 0; i < settings->n_components && i < LKG_COMPONENTS_MAX; i++) {
                const struct lkg_settings_component *component = &settings->components[i];
                struct entry *e = take(before, component->name);

                c->entries[i] = e = e ? e : begin_entry(c, component);
                if (!e)
                        continue;
                e->component = component;
                adapt(e);
        }
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++)
                end_entry(before[i]);
}

void lkg_consumer_enable(struct lkg_consumer *c)
{
        c->enabled = true;
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++)
                if (c->entries[i] && is_restarted(c->entries[i]))
                        arm(c->entries[i]);
}

/* ---- requests ---- */

/* If the node's name is unknown, the machine id is used; only its digest is used, which is not published. */
static uint64_t jitter_ns(const struct lkg_consumer *c, const char *component)
{
        char machine[SD_ID128_STRING_MAX] = "";
        const char *node = c->settings->node_name;
        sd_id128_t id;

        if (!*node && sd_id128_get_machine(&id) >= 0)
                node = sd_id128_to_string(id, machine);
        return lkg_plan_jitter_ns(*node ? node : c->boot_id, component, c->settings->restart_jitter_ms);
}

void lkg_consumer_request(struct lkg_consumer *c, uint32_t index, uint64_t generation, bool remote)
{
        struct entry *e = index < LKG_COMPONENTS_MAX ? c->entries[index] : NULL;
        const struct lkg_log_fields fields = e ? fields_of(e, generation) : (struct lkg_log_fields){ 0 };
        uint64_t delay_ns;

        if (!e || !is_restarted(e))
                return;
        if (generation == 0) {
                if (e->plan.generation != 0)
                        lkg_log(LOG_INFO, &fields, "the restart of %s is not needed any more",
                                e->component->name);
                lkg_plan_withdraw(&e->plan);
                arm(e);
                return;
        }
        delay_ns = remote ? jitter_ns(c, e->component->name) : 0;
        lkg_plan_request(&e->plan, generation, delay_ns, lkg_boottime_ns());
        lkg_log(LOG_INFO, &fields, "%s is to be restarted for generation %" PRIu64 " (%s)",
                e->component->name, generation, lkg_settings_restart_word(e->component->restart));
        arm(e);
}

struct lkg_consumer *lkg_consumer_new(sd_event *event, int runtime_fd, const struct lkg_settings *settings)
{
        struct lkg_consumer *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->event = event;
        c->runtime_fd = runtime_fd;
        lkg_boot_id(c->boot_id);
        lkg_consumer_configure(c, settings);
        return c;
}

struct lkg_consumer *lkg_consumer_free(struct lkg_consumer *c)
{
        for (size_t i = 0; c && i < LKG_COMPONENTS_MAX; i++)
                end_entry(c->entries[i]);
        free(c);
        return NULL;
}

/* ---- in the forked process ---- */

/*
 * The forked process that carries out one restart. It writes its report to memory, because it has no channel
 * for messages; the loop logs it.
 */

#define PATH_ENV "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

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

/* The reason, empty if it succeeded. Return: whether it did. */
static bool judge_end(int r, int status, uint64_t limit_ns, struct lkg_buf *report)
{
        if (r == -ETIMEDOUT)
                put_reason(report, "it did not end within %" PRIu64 " s and was killed",
                           limit_ns / LKG_NSEC_PER_SEC);
        else if (r < 0)
                put_reason(report, "start it: %s", strerror(-r));
        else if (WIFSIGNALED(status))
                put_reason(report, "it was killed by signal %d", WTERMSIG(status));
        else if (status != 0)
                put_reason(report, "exit status %d", WEXITSTATUS(status));
        else
                lkg_buf_putc(report, '\n');
        return r == 0 && status == 0;
}

bool lkg_restart_hook(const struct lkg_settings_component *component, uint64_t generation, uint64_t limit_ns,
                      struct lkg_buf *report)
{
        struct hook hook = { component, generation };
        const struct lkg_job_spec spec = { .run = become_hook, .userdata = &hook };
        char printed[LKG_RESTART_OUTPUT_LINES * (LKG_RESTART_LINE_MAX + 1)];
        struct lkg_job_output output = { .data = printed, .max = sizeof(printed) };
        struct lkg_error err = { .message = "no program is configured" };
        int r, status = 0;
        bool done;

        if (component->n_restart_argv == 0 ||
            lkg_judge_program(component->restart_argv[0], NULL, &err) < 0) {
                put_reason(report, "%s", err.message);
                return false;
        }
        r = lkg_job_run(&spec, limit_ns, &output, &output, &status);
        done = judge_end(r, status, limit_ns, report);
        put_output(&output, report);
        return done;
}

/* ---- unit ---- */

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
        LKG_CLEANUP(lkg_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *path;
        int r = sd_bus_match_signal(bus, NULL, LKG_SYSTEMD, LKG_SYSTEMD_PATH, LKG_SYSTEMD ".Manager",
                                    "JobRemoved", on_job_removed, job);

        if (r >= 0)
                r = sd_bus_call_method(bus, LKG_SYSTEMD, LKG_SYSTEMD_PATH, LKG_SYSTEMD ".Manager",
                                       "Subscribe", error, NULL, NULL);
        if (r >= 0)
                r = sd_bus_call_method(bus, LKG_SYSTEMD, LKG_SYSTEMD_PATH, LKG_SYSTEMD ".Manager",
                                       "TryRestartUnit", error, &reply, "ss", unit, "replace");
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r >= 0)
                (void)snprintf(job->path, sizeof(job->path), "%s", path);
        return r < 0 ? r : 0;
}

bool lkg_restart_unit(const char *unit, uint64_t limit_ns, struct lkg_buf *report)
{
        LKG_CLEANUP(lkg_bus_closep) sd_bus *bus = lkg_facts_bus();
        LKG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        uint64_t deadline_ns = lkg_boottime_ns() + limit_ns;
        struct job job = { "", "" };
        int r = bus ? ask_restart(bus, unit, &job, &error) : 0;

        if (!bus)
                put_reason(report, "the system bus cannot be reached");
        else if (r < 0)
                put_reason(report, "%s: %s", unit, error.message ? error.message : strerror(-r));
        else if (await_job(bus, &job, deadline_ns) == 0 && strcmp(job.result, "done") != 0 &&
                 strcmp(job.result, "skipped") != 0)
                put_reason(report, "%s: the job ended with '%s'", unit, job.result);
        else /* in progress, if its result is unknown: do not request another one */
                return judge_end(0, 0, 0, report);
        return false;
}
