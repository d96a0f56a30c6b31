/* SPDX-License-Identifier: Apache-2.0 */
#include "pace.h"

static uint64_t at_most_two_ticks(uint64_t passed_ns)
{
        return passed_ns < 2 * LKG_ALIVE_TICK_NS ? passed_ns : 2 * LKG_ALIVE_TICK_NS;
}

enum lkg_progress_verdict lkg_progress_look(struct lkg_progress *progress, bool has_work, bool stopped,
                                            uint64_t trace, uint64_t now_ns, uint64_t limit_ns)
{
        uint64_t passed_ns = progress->last_ns ? now_ns - progress->last_ns : 0;
        bool moved = trace != progress->seen;

        progress->last_ns = now_ns;
        progress->seen = trace;
        if (!stopped && (moved || !has_work)) {
                progress->waited_ns = 0;
                return moved ? LKG_PROGRESS_WATCH : LKG_PROGRESS_NONE;
        }
        progress->waited_ns += at_most_two_ticks(passed_ns);
        return progress->waited_ns >= limit_ns ? LKG_PROGRESS_STUCK : LKG_PROGRESS_WATCH;
}

enum lkg_progress_verdict lkg_heartbeat_look(struct lkg_progress *progress, uint64_t served, bool waiting,
                                             bool busy, uint64_t busy_age_ns, uint64_t now_ns)
{
        enum lkg_progress_verdict verdict =
                lkg_progress_look(progress, waiting || busy, false, served, now_ns, LKG_HEARTBEAT_HUNG_NS);
        bool old = waiting || busy_age_ns >= LKG_HEARTBEAT_HUNG_NS;

        return verdict == LKG_PROGRESS_STUCK && !old ? LKG_PROGRESS_WATCH : verdict;
}

/* ---- work ---- */

uint64_t lkg_work_limit_ns(uint64_t bytes)
{
        uint64_t most = (LKG_WORK_CPU_NS_MAX - LKG_WORK_CPU_NS) / LKG_WORK_CPU_NS_PER_MIB, mib = bytes >> 20;

        return LKG_WORK_CPU_NS + (mib < most ? mib : most) * LKG_WORK_CPU_NS_PER_MIB;
}

enum lkg_work lkg_work_look(struct lkg_work_watch *watch, uint64_t since_ns, uint64_t bytes, uint64_t cpu_ns)
{
        if (since_ns != watch->since_ns)
                *watch = (struct lkg_work_watch){ .since_ns = since_ns, .first_cpu_ns = cpu_ns };
        if (since_ns == 0)
                return LKG_WORK_NONE;
        return cpu_ns > watch->first_cpu_ns && cpu_ns - watch->first_cpu_ns > lkg_work_limit_ns(bytes)
                       ? LKG_WORK_TOO_LONG
                       : LKG_WORK_GOES_ON;
}

/* ---- starts ---- */

#define MSEC LKG_NSEC_PER_MSEC
#define SEC  LKG_NSEC_PER_SEC

const struct lkg_restart_pace lkg_restart_server = { .n_free = 3, .first_ns = 10 * MSEC, .max_ns = 1 * SEC };
const struct lkg_restart_pace lkg_restart_refused = { .n_free = 0,
                                                      .first_ns = 100 * MSEC,
                                                      .max_ns = 5 * SEC };
const struct lkg_restart_pace lkg_restart_engine = { .n_free = 1, .first_ns = 50 * MSEC, .max_ns = 1 * SEC };
const struct lkg_restart_pace lkg_restart_fatal = { .n_free = 0, .first_ns = 10 * SEC, .max_ns = 10 * SEC };
const struct lkg_restart_pace lkg_restart_mount = { .n_free = 2, .first_ns = 100 * MSEC, .max_ns = 5 * SEC };

uint64_t lkg_restart_pause_ns(unsigned *n_early, const struct lkg_restart_pace *pace, bool early)
{
        uint64_t pause_ns = pace->first_ns;

        if (!early) {
                *n_early = 0;
                return 0;
        }
        if (*n_early < UINT32_MAX)
                ++*n_early;
        if (*n_early <= pace->n_free)
                return 0;
        for (unsigned i = pace->n_free + 1; i < *n_early && pause_ns < pace->max_ns; i++)
                pause_ns *= 2;
        return pause_ns < pace->max_ns ? pause_ns : pace->max_ns;
}
