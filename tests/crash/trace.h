/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function in a process of its own, stopped before and after each of its system calls: to be killed there, to be told that
 * a call failed, or to be listened to. Works for plain users: the process is our own child and asks to be traced.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <lkg/base.h>

#define TRACE_CALLS_MAX 16384u
#define TRACE_PATH_MAX  512u

/* What may change a disk or fail because of one; everything else is OTHER. */
enum trace_kind {
        TRACE_OTHER,
        TRACE_OPEN,
        TRACE_WRITE,
        TRACE_FSYNC,
        TRACE_RENAME,
        TRACE_MKDIR,
        TRACE_LINK,
        TRACE_UNLINK,
        TRACE_TRUNCATE,
        TRACE_CHANGE
};

struct trace_call {
        enum trace_kind kind;
        char path[TRACE_PATH_MAX]; /* absolute: what it is about; of a rename or link the old name */
        char to[TRACE_PATH_MAX];   /* of a rename or link: the new name */
        long result;               /* -errno on failure */
        uint64_t flags;            /* of an open, rename or unlink */
        uint64_t at;               /* of a write with an offset: where; of ftruncate: the size */
        bool has_at;
        char *data; /* of a write, when the plan asks for it: malloc, @result bytes */
};

struct trace_plan {
        unsigned kill_at;         /* number of the stop, from 1; 0 = never */
        unsigned fail_at;         /* number of the call that is not OTHER, from 1; 0 = never */
        int error;                /* with which it fails, without having been carried out */
        bool for_ever;            /* all later ones, too */
        const char *below;        /* only calls about what lies below this path; NULL = all */
        const char *from, *until; /* only between the openings of these two paths; NULL = all the time */
        unsigned kinds;           /* only these (1 << kind), opening only to write; 0 = all */
        struct trace_call *calls; /* room for TRACE_CALLS_MAX, or NULL: nothing is written down */
        bool with_data;           /* what is written, too */
};

struct trace_result {
        bool ended;             /* by itself; else it was killed */
        int status;             /* what the function returned */
        bool reached;           /* the stop or call of the plan */
        enum trace_kind failed; /* kind of the first call that was made to fail */
        bool committed;         /* a name had been given or taken before that */
        size_t n_calls;         /* those written down */
};

/** trace_supported() - can calls be made to fail on this machine? (Killing works everywhere.) */
bool trace_supported(void);

/**
 * trace_run() - @prepare undisturbed, then @run as planned, in a child with a copy of this memory.
 * Return: 0, or -errno when the tracing itself failed.
 */
int trace_run(int (*prepare)(void *userdata), int (*run)(void *userdata), void *userdata,
              const struct trace_plan *plan, struct trace_result *ret);
