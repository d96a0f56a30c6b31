/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager (sd_notify(3)) and descriptors in its store. The store is the third holder
 * of the connection: if all our processes are killed at once, callers only wait until the unit is started
 * again.
 */
#include <stdarg.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#include <lkg/base.h>

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
