/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Needed by every part of lkgfsd: errors with an exit status, and descriptors kept above those that children
 * get.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "supervisor.h"

int lkg_fail(struct lkg_error *err, int exit_code, int errnum, const char *fmt, ...)
{
        char text[sizeof(err->message)];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        lkg_error_set(err, -errnum, NULL, "%s", text);
        return exit_code;
}

int lkg_lift_fd(int fd)
{
        int lifted;

        if (fd < 0)
                return fd;
        if (fd >= LKG_FD_BASE)
                return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : fd;
        lifted = fcntl(fd, F_DUPFD_CLOEXEC, LKG_FD_BASE);
        if (lifted < 0)
                lifted = -errno;
        lkg_close(fd);
        return lifted;
}
int lkg_channel_pair(int *ret_ours, int *ret_theirs)
{
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = lkg_lift_fd(pair[0]);
        theirs = lkg_lift_fd(pair[1]);
        if (ours < 0 || theirs < 0)
                return ours < 0 ? ours : theirs;
        *ret_ours = LKG_STEAL_FD(ours);
        *ret_theirs = LKG_STEAL_FD(theirs);
        return 0;
}

int lkg_set_oom_score(const char *score)
{
        LKG_CLEANUP(lkg_closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        return fd < 0 || write(fd, score, strlen(score)) < 0 ? -errno : 0;
}
