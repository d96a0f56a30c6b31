/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's part of the facts: the collecting processes, their ends and time limits. See
 * facts-collect.h.
 *
 * There are two processes, because one result is urgent: why a process started must be known while its
 * open() waits, so it must not wait for a program's version. The slow one starts when the fast one has
 * ended.
 */
#include <inttypes.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/process.h>
#include <lkg/shared.h>

#include "facts-collect.h"
#include "supervisor.h"

#define STARTS_LIMIT_NS (1 * LKG_NSEC_PER_SEC)
#define REST_LIMIT_NS   (30 * LKG_NSEC_PER_SEC)

/* ---- in the forked process ---- */

/*
 * The forked process that collects facts. Every step may block and has a time limit; the supervisor kills
 * the process if it still takes too long. No messages: a fact that cannot be determined is unknown.
 */

#define VERSION_LIMIT_NS  (5 * LKG_NSEC_PER_SEC)
#define VERSION_BYTES_MAX 4096u
#define BUS_LIMIT_USEC    (5 * UINT64_C(1000000))

/* ---- files ---- */

/* Opens the directory @name in @dirfd and creates it if necessary; symlinks are not followed. */
static int plain_directory(int dirfd, const char *name)
{
        if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        return lkg_open_plain_directory(dirfd, name);
}

int lkg_facts_dir(int runtime_fd, const char *component)
{
        LKG_CLEANUP(lkg_closep) int facts = plain_directory(runtime_fd, LKG_FACTS_DIR);

        return facts < 0 ? facts : plain_directory(facts, component);
}

/* ---- the version ---- */

/* In the process that becomes the component's program: nothing of ours, and few of root's privileges. */
static int become_program(void *userdata)
{
        const struct rlimit none = { 0, 0 }, small = { 1 << 20, 1 << 20 };
        char *const argv[] = { userdata, (char *)(uintptr_t) "--version", NULL };
        char *const env[] = { (char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };

        (void)setrlimit(RLIMIT_CORE, &none);
        (void)setrlimit(RLIMIT_FSIZE, &small);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)execve(argv[0], argv, env);
        return 127;
}

/*
 * The first line of the output of @exe, "" if it is not usable.
 * Return: false: the program could not be started at all: try again.
 */
static bool ask_version(const char *exe, struct lkg_buf *ret)
{
        char text[VERSION_BYTES_MAX];
        const struct lkg_job_spec spec = { .run = become_program, .userdata = (void *)(uintptr_t)exe };
        struct lkg_job_output output = { .data = text, .max = sizeof(text), .bounded = true };
        int status = 0, r = lkg_job_run(&spec, VERSION_LIMIT_NS, &output, NULL, &status);
        size_t line;

        if (r < 0)
                return r == -ETIMEDOUT || r == -EFBIG;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return false;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return true;
        for (line = 0; line < output.size && text[line] != '\n'; line++)
                ;
        lkg_blank_hidden(text, line, '?');
        lkg_buf_append(ret, text, line);
        return true;
}

static bool recorded(int dirfd, const char *program)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_fact_version version;

        if (lkg_fact_read(dirfd, LKG_FACT_VERSION, &text, NULL) < 0)
                return false;
        lkg_fact_version_parse(text, &version);
        return strcmp(version.program, program) == 0;
}

void lkg_facts_version(int dirfd, char *const *exes, size_t n_exes)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf printed = LKG_BUF_INIT, buf = LKG_BUF_INIT;
        struct lkg_error err = { 0 };
        struct stat st;
        char identity[128];
        size_t i = 0;
        bool refused;
        int r;

        while (i < n_exes && stat(exes[i], &st) < 0)
                i++;
        if (i == n_exes)
                return; /* it may be in the middle of an upgrade: keep the old answer */
        /* A program is run as root only if no other user can replace it. It may be in the middle of an upgrade. */
        r = lkg_judge_program(exes[i], &st, &err);
        refused = r == -EPERM || r == -EACCES || r == -EINVAL;
        if (r < 0 && !refused)
                return;
        (void)snprintf(identity, sizeof(identity), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "%s",
                       (uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                       (uint64_t)st.st_mtim.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec,
                       refused ? " refused" : "");
        if (recorded(dirfd, identity))
                return;
        if (refused)
                lkg_log_warning("match.exe: --version is not asked for: %s", err.message);
        else if (!ask_version(exes[i], &printed))
                return;
        if (lkg_buf_failed(&printed))
                return;
        lkg_fact_version_format(&(struct lkg_fact_version){ printed.data ? printed.data : "", identity },
                                &buf);
        (void)lkg_fact_write(dirfd, LKG_FACT_VERSION, &buf);
}

/* ---- all ---- */

static void ask_unit(int dirfd, sd_bus *bus, const char *name)
{
        LKG_CLEANUP(lkg_unit_deinit) struct lkg_unit unit = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_unit_query(bus, name, &unit);

        if (r == 0)
                r = lkg_unit_words(&unit, &buf);
        if (r == 0)
                (void)lkg_fact_write(dirfd, LKG_FACT_EXEC_START, &buf);
        else if (r == -ENOENT)
                (void)unlinkat(dirfd, LKG_FACT_EXEC_START,
                               0); /* the service manager reports that there is none */
}

sd_bus *lkg_facts_bus(void)
{
        sd_bus *bus = NULL;

        if (sd_bus_open_system(&bus) < 0)
                return NULL;
        (void)sd_bus_set_method_call_timeout(bus, BUS_LIMIT_USEC);
        return bus;
}

/* Collects the facts of all @components, writes those that differ. */
static void collect(int runtime_fd, const struct lkg_settings_component *components, size_t n)
{
        sd_bus *bus = lkg_facts_bus();

        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_closep) int fd = lkg_facts_dir(runtime_fd, components[i].name);

                if (fd < 0)
                        continue;
                if (bus && *components[i].unit)
                        ask_unit(fd, bus, components[i].unit);
                lkg_facts_version(fd, components[i].exes, components[i].n_exes);
        }
        sd_bus_flush_close_unref(bus);
}

/* ---- why did it start ---- */

/*
 * Why did the main process of a unit start? Derived from a counter of systemd 252 (src/core/service.c; later versions do not
 * differ in this):
 *
 *   NRestarts   is raised by one in service_enter_restart(), when the pause after an end is over and the
 *               unit has Restart= for such an end, just before the process is started again. It goes back to
 *               0 at a start that follows an end after which there was no automatic restart: a stop,
 *               `systemctl restart`, RuntimeMax= without Restart= ... (service_enter_dead() sets
 *               flush_n_restarts, service_start() looks at it), by `systemctl reset-failed`, and when the
 *               unit is unloaded. It is kept by daemon-reload and daemon-reexec. So at a start 0 means
 *               "a manual start", a boot included. One case does not show as 0: `systemctl restart` or
 *               `stop` and `start` in the pause before an automatic restart. The unit has SubState
 *               auto-restart then, is only set to dead (service_stop()), and the counter stays. It does not
 *               grow either, which is why we remember what it was.
 *   Result      is the result of the previous process, from its end until service_start() resets it to `success`. So it must
 *               be read in between; it means nothing while a process runs.
 *   MainPID     0 while no main process runs.
 *
 * All are read with one call, so they are consistent. The state is kept in the file `end`, see
 * facts-collect.h.
 */

enum lkg_start_why lkg_start_why(const struct lkg_unit_last *last, uint32_t n_restarts)
{
        if (n_restarts == 0)
                return LKG_START_MANUAL;
        if (last->pid > 0 && last->ended && strcmp(last->sub_state, "auto-restart") == 0 &&
            n_restarts == last->n_restarts)
                return LKG_START_MANUAL; /* it was started before the pause ended */
        /* The end is known only of the immediately preceding process. */
        if (last->pid > 0 && last->ended && strcmp(last->result, "success") == 0 &&
            n_restarts == last->n_restarts + 1)
                return LKG_START_CLEAN;
        return LKG_START_AUTOMATIC;
}

/*
 * The states of a unit between two processes in which Result already belongs to the first: not the states of
 * a start (condition, start-pre, start), where it belongs to no process.
 */
static bool is_end(const char *sub_state)
{
        static const char *const states[] = {
                "dead",          "failed",        "auto-restart",  "auto-restart-queued",
                "stop",          "stop-post",     "stop-sigterm",  "stop-sigkill",
                "stop-watchdog", "final-sigterm", "final-sigkill", "final-watchdog",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(states); i++)
                if (strcmp(states[i], sub_state) == 0)
                        return true;
        return false;
}

bool lkg_unit_ended(struct lkg_unit_last *last, const struct lkg_unit_now *now)
{
        bool queued = strcmp(now->sub_state, "auto-restart") == 0 && now->n_restarts != last->n_restarts;

        if (last->pid <= 0 || now->main_pid != 0 || !is_end(now->sub_state))
                return false;
        last->ended = true;
        /* The pause is over and the counter was raised; later versions call this moment so. */
        (void)snprintf(last->sub_state, sizeof(last->sub_state), "%s",
                       queued ? "auto-restart-queued" : now->sub_state);
        (void)snprintf(last->result, sizeof(last->result), "%s", now->result);
        return true;
}

/* ---- files ---- */

bool lkg_unit_last_parse(const char *text, struct lkg_unit_last *ret)
{
        struct lkg_unit_last last = { 0 };
        char why[16];

        _Static_assert(LKG_UNIT_WORD_MAX == 32, "the widths below");
        if (sscanf(text, "%d %" SCNu64 " %" SCNu32 " %15s %31s %31s", &last.pid, &last.start_time,
                   &last.n_restarts, why, last.sub_state, last.result) != 6 ||
            last.pid <= 0)
                return false;
        if (!lkg_start_why_parse(why, &last.why))
                return false;
        last.ended = strcmp(last.sub_state, "running") != 0;
        *ret = last;
        return true;
}

void lkg_unit_last_format(const struct lkg_unit_last *last, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%d %" PRIu64 " %" PRIu32 " %s %s %s\n", last->pid, last->start_time,
                       last->n_restarts, lkg_start_why_word(last->why),
                       last->ended ? last->sub_state : "running", last->ended ? last->result : "-");
}

/*
 * First the file that others wait for, then our state: if we are killed in between, a repetition has the
 * same result.
 */
static void record_start(int dirfd, const struct lkg_unit_now *now)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT, state = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_unit_last last = { 0 },
                             next = { .pid = (int)now->main_pid, .n_restarts = now->n_restarts };

        if (lkg_fact_read(dirfd, LKG_FACT_END, &text, NULL) >= 0)
                (void)lkg_unit_last_parse(text, &last);
        if (next.pid > 0)
                next.start_time = lkg_process_start_time(next.pid);
        if (next.pid > 0 && next.start_time == 0)
                return; /* it has ended since; we will be notified of that */
        if (next.pid == 0 && !lkg_unit_ended(&last, now))
                return;
        if (next.pid == 0 || (last.pid == next.pid && last.start_time == next.start_time))
                next = last; /* already judged: this counter is remembered */
        else
                next.why = lkg_start_why(&last, now->n_restarts);
        if (now->main_pid != 0) {
                lkg_fact_start_format(&(struct lkg_fact_start){ next.pid, next.start_time, next.why }, &buf);
                (void)lkg_fact_write(dirfd, LKG_FACT_START, &buf);
        }
        lkg_unit_last_format(&next, &state);
        (void)lkg_fact_write(dirfd, LKG_FACT_END, &state);
}

/* ---- all ---- */

void lkg_starts_unknown(int runtime_fd, const struct lkg_settings_component *components, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char path[NAME_MAX + 16];

                (void)snprintf(path, sizeof(path), LKG_FACTS_DIR "/%s/" LKG_FACT_START, components[i].name);
                (void)unlinkat(runtime_fd, path, 0);
        }
}

void lkg_starts_collect(int runtime_fd, const struct lkg_settings_component *components, size_t n)
{
        sd_bus *bus = lkg_facts_bus();

        for (size_t i = 0; bus && i < n; i++) {
                LKG_CLEANUP(lkg_closep)
                int fd = *components[i].unit ? lkg_facts_dir(runtime_fd, components[i].name) : -EBADF;
                struct lkg_unit_now now;

                if (fd >= 0 && lkg_unit_now_query(bus, components[i].unit, &now) >= 0)
                        record_start(fd, &now);
                else if (fd >= 0)
                        (void)unlinkat(fd, LKG_FACT_START, 0);
        }
        if (!bus)
                lkg_starts_unknown(runtime_fd, components, n);
        sd_bus_flush_close_unref(bus);
}

/* ---- the loop ---- */

static int run_starts(void *userdata)
{
        const struct lkg_supervisor *s = userdata;

        lkg_starts_collect(LKG_HELPER_FIRST_FD, s->settings->components, s->settings->n_components);
        return 0;
}

static int run_rest(void *userdata)
{
        const struct lkg_supervisor *s = userdata;

        collect(LKG_HELPER_FIRST_FD, s->settings->components, s->settings->n_components);
        return 0;
}

static void ask_rest(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        const struct lkg_helper_work work = { .run = run_rest,
                                              .again = ask_rest,
                                              .userdata = s,
                                              .fds = { s->dirs.runtime },
                                              .n_fds = 1,
                                              .limit_ns = REST_LIMIT_NS };

        (void)lkg_helper_start(&s->jobs.facts, s->event,
                               &work); /* out of memory: the next start tries again */
}

static void on_starts(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;

        if (status != 0) /* too late; and the old file may be about an earlier start */
                lkg_starts_unknown(s->dirs.runtime, s->settings->components, s->settings->n_components);
        if (!s->jobs.starts.wanted) /* the more urgent question is first */
                ask_rest(s);
}

static void ask_starts(void *userdata)
{
        lkg_facts_refresh(userdata);
}

void lkg_facts_refresh(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = { .run = run_starts,
                                              .done = on_starts,
                                              .again = ask_starts,
                                              .userdata = s,
                                              .fds = { s->dirs.runtime },
                                              .n_fds = 1,
                                              .limit_ns = STARTS_LIMIT_NS };

        if (s->phase > LKG_PHASE_RUNNING || s->settings->n_components == 0)
                return;
        if (lkg_helper_start(&s->jobs.starts, s->event, &work) < 0)
                lkg_starts_unknown(s->dirs.runtime, s->settings->components, s->settings->n_components);
}

void lkg_facts_cancel(struct lkg_supervisor *s)
{
        lkg_helper_cancel(&s->jobs.starts);
        lkg_helper_cancel(&s->jobs.facts);
}
