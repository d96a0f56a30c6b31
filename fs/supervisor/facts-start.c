/* SPDX-License-Identifier: Apache-2.0 */
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
 * facts-collectors.h.
 */
#include <inttypes.h>
#include <limits.h>

#include <lkg/file.h>
#include <lkg/shared.h>

#include "facts-collectors.h"

#define MANAGER       "org.freedesktop.systemd1"
#define MANAGER_PATH  "/org/freedesktop/systemd1"
#define LINE_MAX_SIZE 256u

/* ---- data of the manager ---- */

static int read_word(sd_bus_message *m, char ret[static LKG_UNIT_WORD_MAX])
{
        const char *text;
        int r = sd_bus_message_read(m, "s", &text);

        if (r < 0)
                return r;
        /* Only a single word; anything else becomes an unknown word. */
        (void)snprintf(ret, LKG_UNIT_WORD_MAX, "%s", *text && !strpbrk(text, " \t\n") ? text : "-");
        return 0;
}

static int read_value(sd_bus_message *m, const char *name, struct lkg_unit_now *now)
{
        if (strcmp(name, "MainPID") == 0)
                return sd_bus_message_read(m, "u", &now->main_pid);
        if (strcmp(name, "NRestarts") == 0)
                return sd_bus_message_read(m, "u", &now->n_restarts);
        return read_word(m, strcmp(name, "Result") == 0 ? now->result : now->sub_state);
}

static const struct {
        const char *name, *type;
} wanted[] = { { "MainPID", "u" }, { "NRestarts", "u" }, { "Result", "s" }, { "SubState", "s" } };

/* @found: a bit for each property that we need; a repeated one counts once. Return: 0 or -errno. */
static int read_property(sd_bus_message *m, struct lkg_unit_now *now, unsigned *found)
{
        const char *name;
        int r = sd_bus_message_read(m, "s", &name);

        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(wanted); i++) {
                if (strcmp(wanted[i].name, name) != 0)
                        continue;
                r = sd_bus_message_enter_container(m, 'v', wanted[i].type);
                if (r < 0)
                        return r;
                r = read_value(m, name, now);
                *found |= 1u << i;
                return r < 0 ? r : sd_bus_message_exit_container(m) < 0 ? -EBADMSG : 0;
        }
        r = r < 0 ? r : sd_bus_message_skip(m, "v");
        return r < 0 ? r : 0;
}

int lkg_unit_now_read(sd_bus_message *m, struct lkg_unit_now *ret)
{
        struct lkg_unit_now now = { 0 };
        unsigned found = 0;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_property(m, &now, &found);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r < 0)
                return r;
        if (found != (1u << LKG_ARRAY_SIZE(wanted)) - 1 || now.main_pid > INT32_MAX)
                return -EBADMSG;
        *ret = now;
        return 0;
}

static void message_unrefp(sd_bus_message **m)
{
        sd_bus_message_unref(*m);
}

static void error_free(sd_bus_error *error)
{
        sd_bus_error_free(error);
}

int lkg_unit_now_query(sd_bus *bus, const char *name, struct lkg_unit_now *ret)
{
        LKG_CLEANUP(message_unrefp) sd_bus_message *unit = NULL, *all = NULL;
        LKG_CLEANUP(error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path;
        int r = sd_bus_call_method(bus, MANAGER, MANAGER_PATH, MANAGER ".Manager", "GetUnit", &error, &unit,
                                   "s", name);

        if (r < 0)
                return sd_bus_error_has_name(&error, MANAGER ".NoSuchUnit") ? -ENOENT : r;
        r = sd_bus_message_read(unit, "o", &path);
        if (r >= 0) /* "": the properties of all interfaces */
                r = sd_bus_call_method(bus, MANAGER, path, "org.freedesktop.DBus.Properties", "GetAll", NULL,
                                       &all, "s", "");
        return r < 0 ? r : lkg_unit_now_read(all, ret);
}

/* ---- conclusions ---- */

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

static void read_last(int dirfd, struct lkg_unit_last *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        *ret = (struct lkg_unit_last){ 0 };
        if (lkg_fact_read(dirfd, LKG_FACT_END, &text, NULL) >= 0)
                (void)lkg_unit_last_parse(text, ret);
}

static void write_last(int dirfd, const struct lkg_unit_last *last)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_unit_last_format(last, &buf);
        (void)lkg_fact_write(dirfd, LKG_FACT_END, &buf);
}

/*
 * First the file that others wait for, then our state: if we are killed in between, a repetition has the
 * same result.
 */
void lkg_start_record(int dirfd, const struct lkg_unit_now *now)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_unit_last last, next = { .pid = (int)now->main_pid, .n_restarts = now->n_restarts };

        read_last(dirfd, &last);
        if (next.pid == 0) {
                if (lkg_unit_ended(&last, now))
                        write_last(dirfd, &last);
                return;
        }
        next.start_time = lkg_process_start_time(next.pid);
        if (next.start_time == 0)
                return; /* it has ended since; we will be notified of that */
        if (last.pid == next.pid && last.start_time == next.start_time)
                next = last; /* already judged: this counter is remembered */
        else
                next.why = lkg_start_why(&last, now->n_restarts);
        lkg_fact_start_format(&(struct lkg_fact_start){ next.pid, next.start_time, next.why }, &buf);
        (void)lkg_fact_write(dirfd, LKG_FACT_START, &buf);
        write_last(dirfd, &next);
}

/* ---- all ---- */

int lkg_starts_collect(int runtime_fd, const struct lkg_settings_component *components, size_t n)
{
        sd_bus *bus = NULL;
        int status = 0;

        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_closep) int fd = -EBADF;
                struct lkg_unit_now now;
                int r;

                if (!*components[i].unit)
                        continue;
                fd = lkg_facts_dir(runtime_fd, components[i].name);
                if (fd < 0)
                        continue;
                if (!bus)
                        bus = lkg_facts_bus();
                r = bus ? lkg_unit_now_query(bus, components[i].unit, &now) : -ENOTCONN;
                if (r >= 0)
                        lkg_start_record(fd, &now);
                else
                        (void)unlinkat(fd, LKG_FACT_START, 0);
                if (!bus)
                        status = 1; /* skip the others; the loop removes their facts */
                if (!bus)
                        break;
        }
        sd_bus_flush_close_unref(bus);
        return status;
}

void lkg_starts_unknown(int runtime_fd, const struct lkg_settings_component *components, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char path[NAME_MAX + 16];

                (void)snprintf(path, sizeof(path), LKG_FACTS_DIR "/%s/" LKG_FACT_START, components[i].name);
                (void)unlinkat(runtime_fd, path, 0);
        }
}
