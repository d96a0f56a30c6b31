/* SPDX-License-Identifier: Apache-2.0 */
#include "work.h"

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
