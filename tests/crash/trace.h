/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function in a child process that stops before and after each system call: to kill it there, to make
 * the call fail, or to record the call. Works without privileges: the child asks to be traced.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <lkg/base.h>

#define TRACE_CALLS_MAX 16384u
#define TRACE_PATH_MAX  512u

/* Calls that may change a disk or fail because of one; everything else is OTHER. */
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
        char path
                [TRACE_PATH_MAX]; /* absolute: the path that it is about; of a rename or link the old name */
        char to[TRACE_PATH_MAX];  /* of a rename or link: the new name */
        long result;              /* -errno on failure */
        uint64_t flags;           /* of an open, rename or unlink */
        uint64_t at;              /* of a write with an offset: where; of ftruncate: the size */
        bool has_at;
        char *data; /* of a write, if the plan asks for it: malloc, @result bytes */
};

struct trace_plan {
        unsigned kill_at;         /* number of the stop, from 1; 0 = never */
        unsigned fail_at;         /* number of the call that is not OTHER, from 1; 0 = never */
        int error;                /* the error; the call is not carried out */
        bool for_ever;            /* all later calls fail, too */
        const char *below;        /* only calls about paths below this one; NULL = all */
        const char *from, *until; /* only between the openings of these two paths; NULL = always */
        unsigned kinds;           /* only these (1 << kind), opening only to write; 0 = all */
        struct trace_call *calls; /* room for TRACE_CALLS_MAX, or NULL: do not record */
        bool with_data;           /* record the bytes of writes, too */
};

struct trace_result {
        bool ended;             /* by itself; otherwise it was killed */
        int status;             /* what the function returned */
        bool reached;           /* the stop or call of the plan was reached */
        enum trace_kind failed; /* kind of the first call that was made to fail */
        bool committed;         /* a name had been created or removed before that */
        size_t n_calls;         /* the number of recorded calls */
};

/** trace_supported() - can calls be made to fail on this machine? (Killing always works.) */
bool trace_supported(void);

/**
 * trace_run() - run @prepare undisturbed, then @run as planned, in a child with a copy of this memory.
 * Return: 0, or -errno when the tracing itself failed.
 */
int trace_run(int (*prepare)(void *userdata), int (*run)(void *userdata), void *userdata,
              const struct trace_plan *plan, struct trace_result *ret);
