/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts: what lkgfsd finds out about a component because the engine may not query it itself (programs, the
 * service manager), as files below facts/<component>/ of the private runtime directory. Each is replaced
 * atomically.
 * Rules: docs/specification.md 6.6.
 *
 * This is version 1 of the layout. Another version must use a directory with another name, so that neither
 * side reads what it does not know. A fact that cannot be decoded counts as unknown.
 */
#pragma once

#include <lkg/buf.h>

#define LKG_FACTS_VERSION 1
#define LKG_FACTS_DIR     "facts"
#define LKG_PRIVATE_DIR   "private" /* of the runtime directory: for our own processes only */

#define LKG_FACT_VERSION  "version" /* lkgfsd: struct lkg_fact_version */
#define LKG_FACT_EXEC_START \
        "exec-start" /* lkgfsd: words of the unit's ExecStart after the first, each ended by a NUL */
#define LKG_FACT_START     "start"        /* lkgfsd: struct lkg_fact_start */
#define LKG_FACT_RESTARTED "restarted"    /* lkgfsd: struct lkg_fact_restarted */
#define LKG_FACT_RESTARTS  "restarts"     /* lkgfsd: lines for people */
#define LKG_FACT_PLAN      "restart-plan" /* lkgfsd, for itself; the engine shows lkg_fact_plan_due() */
#define LKG_FACT_END       "end"          /* lkgfsd, for itself */
#define LKG_FACT_PROCESS   "process"      /* the engine, for its successor */

#define LKG_FACT_BYTES_MAX (256u << 10)

/* The output of `EXE --version`. */
struct lkg_fact_version {
        const char *printed; /* one line; "" = nothing usable */
        const char *program; /* one line: the file that was run, for lkgfsd itself */
};

void lkg_fact_version_format(const struct lkg_fact_version *version, struct lkg_buf *buf);
/** lkg_fact_version_parse() - @text is split into lines, which @ret borrows; missing ones are "". */
void lkg_fact_version_parse(char *text, struct lkg_fact_version *ret);

/*
 * Why the unit's main process was started: by Restart= of the unit after a failure, or after a clean exit,
 * or manually.
 */
enum lkg_start_why { LKG_START_AUTOMATIC, LKG_START_CLEAN, LKG_START_MANUAL, _LKG_START_MAX };

const char *lkg_start_why_word(enum lkg_start_why why);
/** lkg_start_why_parse() - Return: is @word valid? */
bool lkg_start_why_parse(const char *word, enum lkg_start_why *ret);

struct lkg_fact_start {
        int pid; /* above 0 */
        uint64_t start_time;
        enum lkg_start_why why;
};

void lkg_fact_start_format(const struct lkg_fact_start *start, struct lkg_buf *buf);
bool lkg_fact_start_parse(const char *text, struct lkg_fact_start *ret);

/* The last restart that lkgfsd requested: the following start does not count against a configuration. */
struct lkg_fact_restarted {
        uint64_t asked_ns; /* CLOCK_BOOTTIME */
        char boot[LKG_BOOT_ID_MAX];
        uint64_t generation;
        char result[16]; /* its first word: asked, done, failed:; truncated */
};

/** lkg_fact_restarted_format() - @result: the whole text, instead of the first word in @restarted */
void lkg_fact_restarted_format(const struct lkg_fact_restarted *restarted, const char *result,
                               struct lkg_buf *buf);
bool lkg_fact_restarted_parse(const char *text, struct lkg_fact_restarted *ret);

/**
 * lkg_fact_plan_due() - when the planned restart is due.
 * Return: CLOCK_BOOTTIME; 0 = none is planned, or @text is not a plan.
 */
uint64_t lkg_fact_plan_due(const char *text);

/**
 * lkg_fact_read() - read the file @name in the directory of a component; no symlink, no FIFO, at most
 * LKG_FACT_BYTES_MAX bytes.
 * @ret_size: may be NULL; the text ends with a NUL
 * Return: 0, caller frees; -ENOENT; another -errno.
 */
int lkg_fact_read(int dirfd, const char *name, char **ret, size_t *ret_size);
/** lkg_fact_write() - replace the file @name; unchanged content is not written and wakes no watcher. Return: 0; -EFBIG; -errno. */
int lkg_fact_write(int dirfd, const char *name, const struct lkg_buf *buf);
