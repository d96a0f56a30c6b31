/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager (sd_notify(3)) and descriptors in its store. The store is the third holder
 * of the connection: if all our processes are killed at once, callers only wait until the unit is started
 * again.
 */
#include <stdarg.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#include "supervisor.h"

struct stored {
        const char *name;
        int fd;
};

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

void lkg_notify_stopping(void)
{
        (void)sd_notify(0, "STOPPING=1\nSTATUS=Unmounting");
}

void lkg_notify_leaving(void)
{
        (void)sd_notify(0, "STOPPING=1\nSTATUS=Restarting, the view stays mounted");
}

void lkg_notify_unstore(void)
{
        static const char *const names[] = { "fuse", "shared", "source", "listen" };

        if (!getenv("NOTIFY_SOCKET"))
                return;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                (void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", names[i]);
}

void lkg_notify_store(struct lkg_supervisor *s)
{
        const struct stored stored[] = {
                { "fuse", s->connection.device },
                { "shared", s->connection.shared_fd },
                { "source", s->source_fd },
                { "listen", s->listen_fd },
        };

        if (!getenv("NOTIFY_SOCKET"))
                return;
        /* Adopted descriptors are already in the store, and the manager ignores the same file sent again. */
        if (!s->adopted || s->announced)
                lkg_notify_unstore(); /* of an earlier connection */
        for (size_t i = 0; i < LKG_ARRAY_SIZE(stored); i++) {
                char text[64];

                (void)snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", stored[i].name);
                (void)sd_pid_notify_with_fds(0, 0, text, &stored[i].fd, 1);
        }
}
