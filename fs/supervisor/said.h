/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of our children. None of them has our standard error: a child could overwrite or truncate a file,
 * or inject input into a terminal. Each has its own pipe; neither reading nor writing it blocks. Its lines
 * are logged as lines of that child: escaped, with no priority above "error", and with limits of size,
 * number and memory.
 *
 * The child also holds the read end. So a child that outlives us is not killed by SIGPIPE, and our successor
 * reads its output since then (lkg_said_of()).
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/base.h>

#include "jobs.h"

#define LKG_SAID_PIPE      (256u << 10) /* room for a whole sanitizer report */
#define LKG_SAID_LINE      1536u        /* the maximum of our own lines; a longer one is split */
#define LKG_SAID_BURST     (256u << 10) /* of the log: what one child may log at once ... */
#define LKG_SAID_RATE      1024u        /* ... and per second: 90 MB per day */
#define LKG_SAID_PRICE     32u          /* per line, in addition to its bytes */
#define LKG_SAID_LAST      16u          /* lines that are always logged at its end */
#define LKG_SAID_LAST_SIZE 256u

struct lkg_said {
        const char *program; /* borrowed: "lkgfs-engine"; NULL = never used */
        int fd;              /* -EBADF: none */
        sd_event_source *source;
        struct lkg_timer pause;
        /* The allowance; it outlives a process, because otherwise dying would renew it. */
        uint64_t filled_ns; /* 0 = full */
        size_t left;
        bool spent;
        unsigned n_left_out;
        /* An incomplete line. */
        char line[LKG_SAID_LINE];
        size_t used;
        /* The last of the lines that were left out. */
        struct lkg_said_line {
                int priority;
                char text[LKG_SAID_LAST_SIZE];
        } last[LKG_SAID_LAST];
};

/** lkg_said_pipe() - for reading, and for the output of a child: lifted, non-blocking. Return: 0 or -errno. */
int lkg_said_pipe(int *ret_ours, int *ret_theirs);
/** lkg_said_of() - the pipe of process @pid, which a predecessor started. Return: our end; -errno. */
int lkg_said_of(int pid);
/** lkg_said_watch() - listen on @fd, which is taken over, until lkg_said_end(). Return: 0 or -errno. */
int lkg_said_watch(struct lkg_said *said, sd_event *event, const char *program, int fd);
/** lkg_said_hear() - log the content of the pipe, so that it precedes the next line that we log. */
void lkg_said_hear(struct lkg_said *said);
/** lkg_said_end() - log its remaining output, and the last of the lines that were left out. */
void lkg_said_end(struct lkg_said *said);
/** lkg_said_line() - log a line of it that arrived another way, on the same allowance. */
void lkg_said_line(struct lkg_said *said, int priority, const struct lkg_log_fields *fields,
                   const char *text);
/** lkg_said_all() - log the output in @fd of a program that has ended. */
void lkg_said_all(const char *program, int fd);
