/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the engine doing work that it has noted (lkg/admission.h), and is it making progress? Pure: the caller
 * passes in the note, CPU time and clock.
 */
#pragma once

#include <lkg/base.h>

/*
 * The limit of CPU time for one piece of work. A typical change takes a few milliseconds. CPU time and not
 * wall time: a busy machine proves nothing about a document. What is large may take longer, so that a slow
 * machine proves nothing either: a million fields, 17 MB noted three times, take about six seconds on a
 * small virtual machine.
 */
#define LKG_WORK_CPU_NS         (5 * LKG_NSEC_PER_SEC)
#define LKG_WORK_CPU_NS_PER_MIB (LKG_NSEC_PER_SEC / 2)
#define LKG_WORK_CPU_NS_MAX     (60 * LKG_NSEC_PER_SEC)

enum lkg_work {
        LKG_WORK_NONE,     /* no work */
        LKG_WORK_GOES_ON,  /* it is computing */
        LKG_WORK_STILL,    /* it has work but uses no CPU time: it is stopped or waits */
        LKG_WORK_TOO_LONG, /* more CPU time than lkg_work_limit_ns() */
};

struct lkg_work_watch {
        uint64_t since_ns;     /* start of the current piece of work; 0 = none */
        uint64_t first_cpu_ns; /* CPU time of the process when this piece of work was first seen */
        uint64_t cpu_ns;       /* at the last check */
        uint64_t moved_ns;     /* CLOCK_BOOTTIME of the last check that found more CPU time used */
};

/** lkg_work_limit_ns() - the CPU time that one piece of work on @bytes of content may take. */
uint64_t lkg_work_limit_ns(uint64_t bytes);

/**
 * lkg_work_look() - one check.
 * @since_ns: from the note, 0 = no work
 * @bytes:    from the note: its content so far
 * @cpu_ns:   CPU time that the process has used so far
 * @still_ns: how long work may use no CPU time at all
 *
 * The checks need not be regular: time before the first one does not count.
 */
enum lkg_work lkg_work_look(struct lkg_work_watch *watch, uint64_t since_ns, uint64_t bytes, uint64_t cpu_ns,
                            uint64_t now_ns, uint64_t still_ns);
