/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel caches unused names, and the file server has a node for each. A user whose share of nodes is
 * used up by directories would be refused from then on: files can be forgotten one by one
 * (fs/server/content.c), but invalidating the name of a directory detaches every mount on it, in any
 * namespace. Reconfiguring the file system with the same options drops all unused names and affects no
 * mount.
 *
 * The names of all users have to be looked up again afterwards, so it is done every few seconds at most. It
 * also writes dirty pages, which may hang on a dead disk: a helper waits for it.
 *
 * Source: fs/super.c, reconfigure_super(); fs/dcache.c, shrink_dcache_sb() and d_invalidate().
 */
#include <sys/mount.h>

#include <lkg/base.h>

#include "supervisor.h"

#define LIMIT_NS (10 * LKG_NSEC_PER_SEC)
#define PAUSE_NS (2 * LKG_NSEC_PER_SEC)

static int reconfigure(void *userdata)
{
        int fs = fspick(LKG_HELPER_FIRST_FD, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);

        (void)userdata;
        return fs < 0 || fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0 ? EX_OSERR : 0;
}

static void on_pause_over(void *userdata)
{
        struct lkg_supervisor *s = userdata;

        if (s->dentries.wanted)
                lkg_dentries_drop(s);
}

static void on_done(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;

        if (status != 0)
                lkg_log_debug("unused names of the view were not dropped (%d)", status);
        (void)lkg_timer_set(&s->dentries.pause, s->event, PAUSE_NS, 0, on_pause_over, s);
}

void lkg_dentries_drop(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = { .run = reconfigure,
                                              .done = on_done,
                                              .userdata = s,
                                              .fds = { s->connection.view_fd },
                                              .n_fds = 1,
                                              .limit_ns = LIMIT_NS };

        s->dentries.wanted = true;
        if (lkg_timer_is_set(&s->dentries.pause) || lkg_helper_running(&s->dentries.helper) ||
            s->connection.view_fd < 0)
                return;
        s->dentries.wanted = false;
        (void)lkg_helper_start(&s->dentries.helper, s->event, &work);
}

void lkg_dentries_end(struct lkg_supervisor *s)
{
        lkg_timer_stop(&s->dentries.pause);
        lkg_helper_cancel(&s->dentries.helper);
}
