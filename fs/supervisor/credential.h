/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec plugin of a kubeconfig, for an engine that may execute nothing: a helper runs `lkgfs-engine --exec-credential` in a
 * namespace without the view, and what that prints becomes the file `credential` of the private runtime directory. What is run
 * stands in root's files; the engine only says that it is time.
 *
 * One at a time, and one every 10 s: whoever asks more often is told to wait.
 */
#pragma once

#include <lkg/control.h>

struct lkg_supervisor;

#define LKG_EXEC_FILE     "credential"
#define LKG_EXEC_PAUSE_NS (8 * LKG_NSEC_PER_SEC)  /* the engine itself leaves 10 s, by another clock */
#define LKG_EXEC_LIMIT_NS (30 * LKG_NSEC_PER_SEC) /* its own is 25 s */

/** lkg_exec_request() - the engine asks. Its answer is a message of the same type, later or at once. */
void lkg_exec_request(struct lkg_supervisor *s);
/** lkg_exec_cancel() - end what runs, at most 1 s; nobody is told. A file that nobody fetched goes. */
void lkg_exec_cancel(struct lkg_supervisor *s);

/**
 * lkg_exec_answer() - what a helper left becomes the file, and the message about it.
 * @output_fd: what it printed: the plugin's answer, or in one line why there is none
 * @status:    its exit status, -1 = killed
 */
void lkg_exec_answer(int runtime_fd, int output_fd, int status, struct lkg_message *ret);
