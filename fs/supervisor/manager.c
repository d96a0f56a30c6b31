/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager (sd_notify(3)) and descriptors in its store. The store is the third holder
 * of the connection: if all our processes are killed at once, callers only wait until the unit is started
 * again.
 */
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include <lkg/base.h>

#include "facts-collect.h"
#include "supervisor.h"

void lkg_notify_ready(struct lkg_supervisor *s)
{
        (void)sd_notifyf(0, "READY=1\nMAINPID=%d\nSTATUS=Serving %s", (int)getpid(), s->mount_point);
}

void lkg_notify_status(const char *fmt, ...)
{
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        (void)sd_notifyf(0, "STATUS=%s", text);
}

void lkg_notify_reloading(void)
{
        struct timespec now = { 0 };

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
                         (unsigned long long)now.tv_sec * 1000000u +
                                 (unsigned long long)now.tv_nsec / 1000u);
}

/* One order for all: the store, and what a file server hands over. */
const char *const lkg_kept_names[LKG_HANDOVER_FDS_MAX] = { "fuse", "shared", "source", "listen" };

void lkg_notify_unstore(void)
{
        for (size_t i = 0; getenv("NOTIFY_SOCKET") && i < LKG_HANDOVER_FDS_MAX; i++)
                (void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", lkg_kept_names[i]);
}

void lkg_notify_store(struct lkg_supervisor *s)
{
        const int fds[LKG_HANDOVER_FDS_MAX] = { s->connection.device, s->connection.shared_fd, s->source.fd,
                                                s->dirs.listen };

        if (!getenv("NOTIFY_SOCKET"))
                return;
        /* Adopted descriptors are already in the store, and the manager ignores the same file sent again. */
        if (!s->adopted || s->announced)
                lkg_notify_unstore(); /* of an earlier connection */
        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++) {
                char text[64];

                (void)snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", lkg_kept_names[i]);
                (void)sd_pid_notify_with_fds(0, 0, text, &fds[i], 1);
        }
}

/* ---- stop or restart ---- */

/*
 * SIGTERM from a service manager means one of two things: "stop", which unmounts, or the first half of
 * "restart". During a restart the view must stay: if base and merged file share a name, a reader would
 * otherwise get the plain base. So systemd is asked for the job of our unit. If that is a restart, this
 * process ends as if it were killed: the file server keeps serving, the connection is also in the descriptor
 * store, and the next supervisor takes over (adopt.c).
 *
 * Without systemd, or without an answer, SIGTERM is a stop.
 */

#define PRIVATE      "unix:path=/run/systemd/private" /* for root, without a message bus */
#define ASK_LIMIT_NS (2 * LKG_NSEC_PER_SEC)           /* of the 20 s that the unit has for stopping */
#define CALL_USEC    (1 * 1000 * 1000)

static sd_bus *open_private(void)
{
        sd_bus *bus = NULL;

        if (sd_bus_new(&bus) >= 0 && sd_bus_set_address(bus, PRIVATE) >= 0 && sd_bus_start(bus) >= 0) {
                (void)sd_bus_set_method_call_timeout(bus, CALL_USEC);
                return bus;
        }
        sd_bus_unref(bus);
        return NULL;
}

/* The type of the org.freedesktop.systemd1.Job at @path. Return: 1 restart; 0 another; -errno. */
static int is_restart(sd_bus *bus, const char *path)
{
        LKG_CLEANUP(lkg_freep) char *type = NULL;
        int r = sd_bus_get_property_string(bus, LKG_SYSTEMD, path, LKG_SYSTEMD ".Job", "JobType", NULL,
                                           &type);

        return r < 0 ? r : strcmp(type, "restart") == 0 || strcmp(type, "try-restart") == 0;
}

int lkg_unit_restarts(sd_bus *bus, pid_t pid)
{
        LKG_CLEANUP(lkg_bus_message_unrefp) sd_bus_message *found = NULL, *job = NULL;
        const char *path = NULL;
        uint32_t id = 0;
        int r = sd_bus_call_method(bus, LKG_SYSTEMD, LKG_SYSTEMD_PATH, LKG_SYSTEMD ".Manager",
                                   "GetUnitByPID", NULL, &found, "u", (uint32_t)pid);

        if (r >= 0)
                r = sd_bus_message_read(found, "o", &path);
        if (r >= 0)
                r = sd_bus_get_property(bus, LKG_SYSTEMD, path, LKG_SYSTEMD ".Unit", "Job", NULL, &job,
                                        "(uo)");
        if (r >= 0)
                r = sd_bus_message_read(job, "(uo)", &id, &path);
        if (r < 0 || id == 0) /* no job; the signal did not come from systemd */
                return r < 0 ? r : 0;
        return is_restart(bus, path);
}

/* In a separate process, because it may wait. Return: 0 a restart, 1 a stop. */
static int ask(void *userdata)
{
        LKG_CLEANUP(lkg_bus_closep) sd_bus *bus = lkg_facts_bus();
        int r = bus ? lkg_unit_restarts(bus, getppid()) : -ENOTCONN;

        if (r < 0) {
                sd_bus_flush_close_unref(bus);
                bus = open_private();
                r = bus ? lkg_unit_restarts(bus, getppid()) : -ENOTCONN;
        }
        return r == 1 ? 0 : 1;
}

static void answered(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;

        if (status == 0)
                s->life->leave(s);
        else
                s->life->stop(s, "SIGTERM");
}

void lkg_leave_or_stop(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = {
                .run = ask, .done = answered, .userdata = s, .limit_ns = ASK_LIMIT_NS
        };

        if (lkg_helper_running(&s->jobs.leaving))
                return;
        if (s->phase != LKG_PHASE_RUNNING || !getenv("NOTIFY_SOCKET") ||
            lkg_helper_start(&s->jobs.leaving, s->event, &work) < 0)
                s->life->stop(s, "SIGTERM");
}
