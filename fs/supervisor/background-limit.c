/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the kernel, page reads and closes are background requests, and it sends no more of them while
 * max_background of FUSE_INIT (32) are unanswered: 32 reads of a dead file system below the source directory
 * would block those of the view. The file server itself limits waiting requests (fs/server/held-requests.h),
 * so the kernel's limit is lifted.
 *
 * This is not done in the answer to FUSE_INIT, which must not change: a build takes over a connection of an
 * earlier build only if it would answer the same. The control file system is used without being mounted
 * anywhere.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include <lkg/base.h>

#include "supervisor.h"

static int open_control(void)
{
        LKG_CLEANUP(lkg_closep) int context = fsopen("fusectl", FSOPEN_CLOEXEC);

        if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        context = lkg_lift_fd(LKG_STEAL_FD(context));
        if (context < 0)
                return context;
        return lkg_lift_fd(fsmount(context, FSMOUNT_CLOEXEC, 0));
}

static int set_limit(int control, unsigned number, const char *name)
{
        static const char most[] = "65535";
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char path[64];

        (void)snprintf(path, sizeof(path), "%u/%s", number, name);
        fd = openat(control, path, O_WRONLY | O_CLOEXEC);
        return fd < 0 || write(fd, most, sizeof(most) - 1) < 0 ? -errno : 0;
}

/* Repeating this is harmless: an adopted connection may be one of an earlier build. */
void lkg_connection_lift_limit(struct lkg_supervisor *s)
{
        LKG_CLEANUP(lkg_closep) int control = open_control();
        struct statx x;
        int r = control;

        if (r >= 0) /* the number of a connection is that of its device; reading it needs no request */
                r = statx(s->connection.view_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &x) < 0 ? -errno
                                                                                                    : 0;
        if (r >= 0)
                r = set_limit(control, makedev(x.stx_dev_major, x.stx_dev_minor), "max_background");
        if (r >= 0)
                r = set_limit(control, makedev(x.stx_dev_major, x.stx_dev_minor), "congestion_threshold");
        if (r < 0)
                lkg_log_notice("the limit of requests in the background stays: %s; a dead file system below "
                               "the source "
                               "directory can delay reads of the view",
                               strerror(-r));
}
