/* SPDX-License-Identifier: Apache-2.0 */
#include "work.h"

enum lkg_work lkg_work_look(struct lkg_work_watch *watch, uint64_t since_ns, uint64_t cpu_ns,
                            uint64_t now_ns, uint64_t still_ns)
{
        if (since_ns == 0) {
                watch->since_ns = 0;
                return LKG_WORK_NONE;
        }
        if (since_ns != watch->since_ns) {
                *watch = (struct lkg_work_watch){ since_ns, cpu_ns, cpu_ns, now_ns };
                return LKG_WORK_GOES_ON;
        }
        if (cpu_ns > watch->cpu_ns) {
                watch->cpu_ns = cpu_ns;
                watch->moved_ns = now_ns;
        }
        if (cpu_ns >= watch->first_cpu_ns && cpu_ns - watch->first_cpu_ns > LKG_WORK_CPU_NS)
                return LKG_WORK_TOO_LONG;
        return now_ns - watch->moved_ns >= still_ns ? LKG_WORK_STILL : LKG_WORK_GOES_ON;
}
