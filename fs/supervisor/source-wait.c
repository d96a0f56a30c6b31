/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the source directory at the start. It may be on a file system that does not answer (a network file
 * system without its server): an access waits in the kernel, where no signal ends it. So a separate process
 * does it, which can be left behind; it passes on what it has opened. lkgfsd reports what it waits for, can
 * be stopped, and continues when the answer arrives.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <systemd/sd-daemon.h>

#include <lkg/base.h>

#include "supervisor.h"

#define FOR_EVER_NS (365 * 86400 * LKG_NSEC_PER_SEC) /* helpers have a limit; ours is SIGTERM */
#define TELL_NS     (3 * LKG_NSEC_PER_SEC)
#define TELL_AGAIN  60 /* repeat after this many times */
#define EXTEND_USEC "15000000"

struct source_wait {
        const char *path;
        int status; /* errno of the helper; -1: it is running, or was killed */
};

/* In the helper. Cached attributes of the directory do not show whether the file system works. */
static int open_source(void *userdata)
{
        const struct source_wait *wait = userdata;
        int fd = open(wait->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct statx x;
        int r;

        if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x) < 0)
                return errno & 0xff;
        r = lkg_handover_send(LKG_HELPER_FIRST_FD, LKG_HANDOVER_KEEP, 1, &fd, 1);
        return -r & 0xff;
}

static void on_done(void *userdata, int status)
{
        struct source_wait *wait = userdata;

        wait->status = status;
}

/* The service manager would kill a start that takes too long, and start again, which waits for the same. */
static void tell(const struct lkg_supervisor *s, unsigned n)
{
        lkg_notify_status("Waiting for the source directory %s, which does not answer", s->source_path);
        (void)sd_notify(0, "EXTEND_TIMEOUT_USEC=" EXTEND_USEC);
        if (n % TELL_AGAIN == 0)
                lkg_log_warning("the source directory %s does not answer; lkgfs starts when it does",
                                s->source_path);
}

/* Return: 0, also if we are stopped meanwhile; -errno. */
static int run_until_done(struct lkg_supervisor *s, struct lkg_helper *helper)
{
        uint64_t told_ns = lkg_boottime_ns();
        unsigned n = 0;
        int r = 0;

        while (r >= 0 && lkg_helper_running(helper) && s->phase != LKG_PHASE_END) {
                r = sd_event_run(s->event, TELL_NS / 1000);
                if (lkg_helper_running(helper) && lkg_boottime_ns() - told_ns >= TELL_NS) {
                        tell(s, n++);
                        told_ns = lkg_boottime_ns();
                }
        }
        if (n > 0 && s->phase != LKG_PHASE_END)
                lkg_log_notice("the source directory %s answers", s->source_path);
        return r < 0 ? r : 0;
}

static int receive(int channel)
{
        int fds[LKG_HANDOVER_FDS_MAX];
        struct lkg_handover message;
        int fd, r = lkg_handover_recv(channel, MSG_DONTWAIT, &message, fds);

        if (r <= 0)
                return r < 0 ? r : -ECONNRESET;
        fd = LKG_STEAL_FD(fds[0]);
        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                lkg_close(fds[i]);
        return fd < 0 ? -EBADMSG : lkg_lift_fd(fd);
}

/* Return: a descriptor; -ECANCELED: we are being stopped; another -errno. */
static int wait_for(struct lkg_supervisor *s)
{
        struct source_wait wait = { .path = s->source_path, .status = -1 };
        struct lkg_helper helper = LKG_HELPER_INIT;
        struct lkg_helper_work work = {
                .run = open_source, .done = on_done, .userdata = &wait, .n_fds = 1, .limit_ns = FOR_EVER_NS
        };
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int r = lkg_channel_pair(&ours, &theirs);

        if (r < 0)
                return r;
        work.fds[0] = theirs;
        r = lkg_helper_start(&helper, s->event, &work);
        if (r >= 0)
                r = run_until_done(s, &helper);
        lkg_helper_cancel(&helper);
        if (r < 0 || s->phase == LKG_PHASE_END)
                return r < 0 ? r : -ECANCELED;
        if (wait.status != 0)
                return wait.status > 0 ? -wait.status : -EIO;
        return receive(ours);
}

int lkg_source_open(struct lkg_supervisor *s, struct lkg_error *err)
{
        int fd = wait_for(s);

        if (fd == -ECANCELED)
                return 0;
        if (fd < 0)
                return lkg_fail(err, EX_IOERR, -fd, "open the source directory %s", s->source_path);
        s->source_fd = fd;
        return 0;
}
