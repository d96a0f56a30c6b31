/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the engine in the middle of work that it noted (lkg/judging.h), and does that work go on? Pure: the note, processor
 * time and clock are numbers.
 */
#pragma once

#include <lkg/base.h>

/*
 * The limit of processor time for one piece of work. A usual change takes a few milliseconds, the largest documents that the limits
 * allow less than a second. Processor time and not wall time: a busy machine says nothing about a document.
 */
#define LKG_WORK_CPU_NS (5 * LKG_NSEC_PER_SEC)

enum lkg_work {
        LKG_WORK_NONE,    /* it has nothing in hand */
        LKG_WORK_GOES_ON, /* it computes */
        LKG_WORK_STILL, /* it has work in hand and uses no processor time: stopped, or it waits for something */
        LKG_WORK_TOO_LONG, /* more than LKG_WORK_CPU_NS for one piece of work */
};

struct lkg_work_watch {
        uint64_t since_ns;     /* which piece of work: when it began; 0 = none */
        uint64_t first_cpu_ns; /* processor time of the process when we first saw this piece of work */
        uint64_t cpu_ns;       /* at the last look */
        uint64_t moved_ns;     /* CLOCK_BOOTTIME of the last look that found more processor time used */
};

/**
 * lkg_work_look() - one check.
 * @since_ns: from the note, 0 = no work
 * @cpu_ns:   processor time that the process has used so far
 * @still_ns: how long work may use no processor time at all
 *
 * The checks need not be regular: time before the first one does not count.
 */
enum lkg_work lkg_work_look(struct lkg_work_watch *watch, uint64_t since_ns, uint64_t cpu_ns,
                            uint64_t now_ns, uint64_t still_ns);
