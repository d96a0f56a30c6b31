/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM from a service manager means one of two things: "stop", which unmounts, or the first half of
 * "restart". During a restart the view must stay: if base and merged file share a name, a reader would
 * otherwise get the plain base. So systemd is asked for the job of our unit. If that is a restart, this
 * process ends as if it were killed: the file server keeps serving, the connection is also in the descriptor
 * store, and the next supervisor takes over (adopt.c).
 *
 * Without systemd, or without an answer, SIGTERM is a stop.
 */
#include <signal.h>

#include <systemd/sd-bus.h>

#include <lkg/base.h>

#include "facts-collectors.h"
#include "supervisor.h"

#define MANAGER      "org.freedesktop.systemd1"
#define PRIVATE      "unix:path=/run/systemd/private" /* for root, without a message bus */
#define ASK_LIMIT_NS (2 * LKG_NSEC_PER_SEC)           /* of the 20 s that the unit has for stopping */
#define CALL_USEC    (1 * 1000 * 1000)

static void bus_unrefp(sd_bus **bus)
{
        sd_bus_flush_close_unref(*bus);
}

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
        int r = sd_bus_get_property_string(bus, MANAGER, path, MANAGER ".Job", "JobType", NULL, &type);

        return r < 0 ? r : strcmp(type, "restart") == 0 || strcmp(type, "try-restart") == 0;
}

int lkg_unit_restarts(sd_bus *bus, pid_t pid)
{
        sd_bus_message *found = NULL, *job = NULL;
        const char *path = NULL;
        uint32_t id = 0;
        int r = sd_bus_call_method(bus, MANAGER, "/org/freedesktop/systemd1", MANAGER ".Manager",
                                   "GetUnitByPID", NULL, &found, "u", (uint32_t)pid);

        if (r >= 0)
                r = sd_bus_message_read(found, "o", &path);
        if (r >= 0)
                r = sd_bus_get_property(bus, MANAGER, path, MANAGER ".Unit", "Job", NULL, &job, "(uo)");
        if (r >= 0)
                r = sd_bus_message_read(job, "(uo)", &id, &path);
        if (r >= 0) /* 0: no job; the signal did not come from systemd */
                r = id == 0 ? 0 : is_restart(bus, path);
        sd_bus_message_unref(found);
        sd_bus_message_unref(job);
        return r;
}

/* In a separate process, because it may wait. Return: 0 a restart, 1 a stop. */
static int ask(void *userdata)
{
        LKG_CLEANUP(bus_unrefp) sd_bus *bus = lkg_facts_bus();
        int r = bus ? lkg_unit_restarts(bus, getppid()) : -ENOTCONN;

        (void)userdata;
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

        if (lkg_helper_running(&s->leaving))
                return;
        if (s->phase != LKG_PHASE_RUNNING || !getenv("NOTIFY_SOCKET") ||
            lkg_helper_start(&s->leaving, s->event, &work) < 0)
                s->life->stop(s, "SIGTERM");
}
