/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec plugin of a kubeconfig, for an engine that must not execute programs: a helper runs `lkgfs-engine
 * --exec-credential` in a namespace without the view, and its output becomes the file `credential` of the private runtime
 * directory. The command comes from files owned by root; the engine only decides when.
 *
 * One at a time, and at most one every 10 s: an earlier request is told to wait.
 */
#pragma once

#include <lkg/messages.h>

#include "jobs.h"

struct lkg_supervisor;

#define LKG_EXEC_FILE     "credential"
#define LKG_EXEC_PAUSE_NS (8 * LKG_NSEC_PER_SEC)  /* the engine waits 10 s, by another clock */
#define LKG_EXEC_LIMIT_NS (30 * LKG_NSEC_PER_SEC) /* the engine's own limit is 25 s */

/** lkg_exec_request() - a request of the engine. The answer is a message of the same type, now or later. */
void lkg_exec_request(struct lkg_supervisor *s);
/**
 * lkg_exec_cancel() - end a running plugin, within 1 s, without a message. A file that was not fetched is
 * removed.
 */
void lkg_exec_cancel(struct lkg_supervisor *s);

/**
 * lkg_exec_answer() - turn the output of a helper into the file and a message to the engine.
 * @helper: its output: the plugin's answer, or one line why there is none
 * @status: its exit status, -1 = killed
 */
void lkg_exec_answer(int runtime_fd, struct lkg_helper *helper, int status, struct lkg_message *ret);
