/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restarts components when the engine reports that the meaning of their configuration has changed
 * (LKG_MSG_RESTART). Only this process may do that, and configuration owned by root says how: which unit, or
 * which program. consumer-plan.h decides when; a forked process does it, so that the loop never waits.
 *
 * In `facts/<component>/` (docs/specification.md 6.6):
 *
 *     restarted     for the engine: the start that follows does not count against a configuration. So it is written
 *                   before the restart is asked for (`asked`), and again, with the same time, after it.
 *     restarts      a line when a restart has been carried out, or has failed.
 *     restart-plan  our own state. A restart during which we were killed counts as failed, so it is repeated.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/messages.h>

struct lkg_consumer;

/**
 * lkg_consumer_new() - create one; nothing is restarted before lkg_consumer_enable(). Everything is borrowed.
 * @runtime_fd: the private runtime directory, at LKG_FD_BASE or above
 *
 * Return: NULL: out of memory.
 */
struct lkg_consumer *lkg_consumer_new(sd_event *event, int runtime_fd, const struct lkg_settings *settings);
/** lkg_consumer_free() - end what runs. At most 1 s per component. */
struct lkg_consumer *lkg_consumer_free(struct lkg_consumer *consumer);

/** lkg_consumer_configure() - the components, borrowed until the next call; plans are kept by name. */
void lkg_consumer_configure(struct lkg_consumer *consumer, const struct lkg_settings *settings);
/** lkg_consumer_enable() - the view is served: planned restarts may be carried out. */
void lkg_consumer_enable(struct lkg_consumer *consumer);
/**
 * lkg_consumer_request() - restart the component at @index.
 * @generation: the one that it must read; 0 = a planned restart is no longer needed
 * @remote:     because of a remote change: wait for this node's jitter
 */
void lkg_consumer_request(struct lkg_consumer *consumer, uint32_t index, uint64_t generation, bool remote);

/* ---- in the forked process ---- */

#define LKG_RESTART_REPORT_MAX   8192u
#define LKG_RESTART_OUTPUT_LINES 20u
#define LKG_RESTART_LINE_MAX     300u

struct lkg_buf;

/**
 * lkg_restart_hook() - run the configured program; after @limit_ns its process group is killed.
 * @report: line 1: why it failed, empty if it did not; then lines of its output, at most
 *          LKG_RESTART_OUTPUT_LINES of LKG_RESTART_LINE_MAX bytes, control bytes replaced
 *
 * Absolute path; the file and every directory of the path must be owned by root and not writable by others.
 * No shell; environment PATH, LKGFS_COMPONENT and LKGFS_GENERATION; empty standard input; only the
 * descriptors 0, 1, 2; working directory `/`.
 *
 * Return: whether it succeeded.
 */
bool lkg_restart_hook(const struct lkg_settings_component *component, uint64_t generation, uint64_t limit_ns,
                      struct lkg_buf *report);
/**
 * lkg_restart_unit() - call TryRestartUnit(@unit, "replace") over the system bus and wait for the result of
 * its job.
 * @limit_ns: for the job. One that takes longer continues, and counts as carried out.
 * @report:   as above, without output
 */
bool lkg_restart_unit(const char *unit, uint64_t limit_ns, struct lkg_buf *report);
