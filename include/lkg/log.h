/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging for the mains and the engine's decisions; libraries below core/layers never log (docs/architecture.md).
 *
 * To the journal with structured fields if stderr is connected to it (JOURNAL_STREAM), otherwise one line on
 * stderr, with an `<N>` priority prefix under a service manager and without one on a terminal; a child of
 * lkgfsd logs to lkgfsd. Never a secret, never file content. Callable from any thread.
 */
#pragma once

#include <stdarg.h>
#include <syslog.h>

#include <lkg/base.h>

/* Structured context of one message; NULL or 0 members are left out. */
struct lkg_log_fields {
        const char *component;  /* LKGFS_COMPONENT= */
        uint64_t generation;    /* LKGFS_GENERATION= */
        const char *layer;      /* LKGFS_LAYER= */
        const char *message_id; /* MESSAGE_ID=, 32 hex digits */
};

/**
 * lkg_log_init() - @program names the process in the lines; messages above @max_priority are dropped
 * (usually LOG_INFO).
 */
void lkg_log_init(const char *program, int max_priority);
void lkg_log(int priority, const struct lkg_log_fields *fields, const char *fmt, ...) LKG_PRINTF(3, 4);

/**
 * lkg_log_for_supervisor() - this is a child of lkgfsd, and standard error is a pipe that lkgfsd reads: each
 * line is `<priority>text`. Call it before threads start.
 * @send: tried first, with the fields, or NULL. A result other than 0: the line could not be sent
 */
void lkg_log_for_supervisor(int (*send)(int priority, const struct lkg_log_fields *fields,
                                        const char *text));
/**
 * lkg_log_never_wait() - reopen the terminal or pipe at standard error for this process only, and drop lines
 * (they are counted) instead of waiting. Other processes that have it open are not affected.
 */
void lkg_log_never_wait(void);
/**
 * lkg_log_of() - log a line that the process @program sent to us. It is not trusted: its priority is at most
 * "error".
 */
void lkg_log_of(const char *program, int priority, const struct lkg_log_fields *fields, const char *line);

#define lkg_log_error(...)   lkg_log(LOG_ERR, NULL, __VA_ARGS__)
#define lkg_log_warning(...) lkg_log(LOG_WARNING, NULL, __VA_ARGS__)
#define lkg_log_notice(...)  lkg_log(LOG_NOTICE, NULL, __VA_ARGS__)
#define lkg_log_info(...)    lkg_log(LOG_INFO, NULL, __VA_ARGS__)
#define lkg_log_debug(...)   lkg_log(LOG_DEBUG, NULL, __VA_ARGS__)
