/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notifier: touches changed files through the view. It gets a detached clone of the view, so that it
 * neither keeps the mount busy nor sees what is mounted on top, and nothing of the device. Killing it loses
 * nothing.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <lkg/log.h>

#include "supervisor.h"

#define EARLY_NS (1 * LKG_NSEC_PER_SEC)

static int start(struct lkg_supervisor *s, struct lkg_child *child)
{
        const char *argv[] = { s->programs.notifier, "--root-fd", "3", "--shared-fd", "4",
                               "--supervisor-fd",    "5",         NULL };
        struct lkg_spawn spawn = { .argv = argv, .n_fds = 3, .stdin_fd = -EBADF, .stdout_fd = -EBADF };
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int pair[2], pidfd = -EBADF, r;
        pid_t pid = 0;

        if (s->connection.view_fd < 0)
                return 0; /* being mounted or unmounted: started when there is a view again */
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = lkg_lift_fd(pair[0]);
        theirs = lkg_lift_fd(pair[1]);
        if (ours < 0 || theirs < 0)
                return ours < 0 ? ours : theirs;
        spawn.fds[0] = s->connection.view_fd;
        spawn.fds[1] = s->connection.shared_fd;
        spawn.fds[2] = theirs;
        r = lkg_spawn(&spawn, &pid, &pidfd);
        return r < 0 ? r : lkg_child_watch(child, pid, pidfd, LKG_STEAL_FD(ours));
}

static void died(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        bool early = !end->adopted && end->lived_ns < EARLY_NS;

        if (s->connection.view_fd >= 0)
                lkg_child_start_later(child,
                                      lkg_restart_pause_ns(&child->restart, &lkg_restart_notifier, early));
}

/* It has nothing to say; the socket only tells it when we are gone. */
static void input(struct lkg_supervisor *s, struct lkg_child *child)
{
        char byte;

        (void)s;
        while (child->channel >= 0 && recv(child->channel, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
                ;
}

const struct lkg_child_ops lkg_notifier_ops = { .start = start, .died = died, .input = input };
