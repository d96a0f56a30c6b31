/* SPDX-License-Identifier: Apache-2.0 */
#include "alive.h"

uint64_t lkg_alive_asked(struct lkg_alive *alive, uint64_t now_ns, uint64_t wall_ns)
{
        alive->asked = true;
        alive->ticket++;
        alive->last_ns = alive->asked_ns = now_ns;
        alive->asked_wall_ns = wall_ns;
        alive->waited_ns = 0;
        return alive->ticket;
}

bool lkg_alive_answered(struct lkg_alive *alive, uint64_t ticket)
{
        if (!alive->asked || ticket != alive->ticket)
                return false;
        alive->asked = false;
        return true;
}

void lkg_alive_forget(struct lkg_alive *alive)
{
        alive->asked = false;
}

enum lkg_alive_verdict lkg_alive_tick(struct lkg_alive *alive, uint64_t now_ns, uint64_t limit_ns,
                                      bool works)
{
        uint64_t passed_ns = now_ns - alive->last_ns;

        if (!alive->asked)
                return LKG_ALIVE_ASK;
        alive->last_ns = now_ns;
        if (works)
                return LKG_ALIVE_WORKS;
        alive->waited_ns += passed_ns < 2 * LKG_ALIVE_TICK_NS ? passed_ns : 2 * LKG_ALIVE_TICK_NS;
        if (alive->waited_ns >= limit_ns)
                return LKG_ALIVE_HUNG;
        return alive->waited_ns >= LKG_ALIVE_SILENT_NS ? LKG_ALIVE_SILENT : LKG_ALIVE_WAIT;
}

enum lkg_progress_verdict lkg_progress_look(struct lkg_progress *progress, bool has_work, bool stopped,
                                            uint64_t trace, uint64_t now_ns, uint64_t limit_ns)
{
        uint64_t passed_ns = progress->last_ns ? now_ns - progress->last_ns : 0;

        progress->last_ns = now_ns;
        if (!stopped && (!has_work || trace != progress->seen)) {
                progress->seen = trace;
                progress->waited_ns = 0;
                return has_work ? LKG_PROGRESS_WATCH : LKG_PROGRESS_NONE;
        }
        progress->waited_ns += passed_ns < 2 * LKG_ALIVE_TICK_NS ? passed_ns : 2 * LKG_ALIVE_TICK_NS;
        return progress->waited_ns >= limit_ns ? LKG_PROGRESS_STUCK : LKG_PROGRESS_WATCH;
}

/* ---- work ---- */

uint64_t lkg_work_limit_ns(uint64_t bytes)
{
        uint64_t most = (LKG_WORK_CPU_NS_MAX - LKG_WORK_CPU_NS) / LKG_WORK_CPU_NS_PER_MIB, mib = bytes >> 20;

        return LKG_WORK_CPU_NS + (mib < most ? mib : most) * LKG_WORK_CPU_NS_PER_MIB;
}

enum lkg_work lkg_work_look(struct lkg_work_watch *watch, uint64_t since_ns, uint64_t bytes, uint64_t cpu_ns,
                            uint64_t now_ns, uint64_t still_ns)
{
        if (since_ns == 0) {
                watch->since_ns = 0;
                return LKG_WORK_NONE;
        }
        if (since_ns != watch->since_ns) {
                *watch = (struct lkg_work_watch){
                        .since_ns = since_ns, .first_cpu_ns = cpu_ns, .cpu_ns = cpu_ns, .moved_ns = now_ns
                };
                return LKG_WORK_GOES_ON;
        }
        if (cpu_ns > watch->cpu_ns) {
                watch->cpu_ns = cpu_ns;
                watch->moved_ns = now_ns;
        }
        if (cpu_ns >= watch->first_cpu_ns && cpu_ns - watch->first_cpu_ns > lkg_work_limit_ns(bytes))
                return LKG_WORK_TOO_LONG;
        return now_ns - watch->moved_ns >= still_ns ? LKG_WORK_STILL : LKG_WORK_GOES_ON;
}
