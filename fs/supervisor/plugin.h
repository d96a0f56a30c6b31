/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec plugin of a kubeconfig, for an engine that must not execute programs: a helper runs `lkgfs-engine
 * --exec-credential` in a namespace without the view, and its output becomes the file `credential` of the private runtime
 * directory. The command comes from files of root; the engine only says when.
 *
 * One at a time, and one every 10 s: a request that comes earlier is told to wait.
 */
#pragma once

#include <lkg/control.h>

struct lkg_supervisor;

#define LKG_EXEC_FILE     "credential"
#define LKG_EXEC_PAUSE_NS (8 * LKG_NSEC_PER_SEC)  /* the engine itself leaves 10 s, by another clock */
#define LKG_EXEC_LIMIT_NS (30 * LKG_NSEC_PER_SEC) /* its own is 25 s */

/** lkg_exec_request() - the engine asks. Its answer is a message of the same type, later or at once. */
void lkg_exec_request(struct lkg_supervisor *s);
/** lkg_exec_cancel() - end a running plugin, within 1 s, without a message. A file that was not fetched is removed. */
void lkg_exec_cancel(struct lkg_supervisor *s);

/**
 * lkg_exec_answer() - the output of a helper becomes the file and a message to the engine.
 * @output_fd: its output: the plugin's answer, or one line why there is none
 * @status:    its exit status, -1 = killed
 */
void lkg_exec_answer(int runtime_fd, int output_fd, int status, struct lkg_message *ret);
