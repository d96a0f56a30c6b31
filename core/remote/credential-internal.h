/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the credential share among themselves. Nothing here is for others. */
#pragma once

#include "credential.h"

enum lkg_credential_code {
        LKG_K_KUBECONFIG = 7001,
        LKG_K_FILE = 7002, /* a file that it names */
        LKG_K_EXEC = 7003,
        LKG_K_ENDS = 7004, /* certificate or token */
};

/* ---- identity.c ---- */

struct lkg_identity *lkg_identity_new(void);
/** lkg_identity_same() - would the API server see any difference? Serial and expiry are not compared; either may be NULL. */
bool lkg_identity_same(const struct lkg_identity *a, const struct lkg_identity *b);

/* ---- credential-exec.c: what an exec plugin said, and when it is asked again; no I/O, clocks are arguments ---- */

struct lkg_exec_state {
        bool wanted; /* the kubeconfig has a plugin */
        bool asked;  /* and its answer is not here yet */
        bool stale;  /* what it said was rejected, or the kubeconfig is another one */
        bool have;
        bool no_answer;                       /* an attempt ended without one, see why; not looked at yet */
        uint64_t asked_ns, pause_ns, next_ns; /* not before next_ns */
        uint64_t refresh_ns;                  /* what we have is renewed; UINT64_MAX = it says no end */
        uint64_t expires_ns;                  /* 0 = it says none */
        char *token, *certificate, *key;
        char *answer, *why; /* arrived, not looked at yet; why the last attempt failed, NULL = it did not */
        size_t answer_size;
};

void lkg_exec_state_deinit(struct lkg_exec_state *state);
/** lkg_exec_state_done() - the answer came: @text, or NULL and @why. Return: 0 or -ENOMEM. */
int lkg_exec_state_done(struct lkg_exec_state *state, const char *text, size_t size, const char *why);
/**
 * lkg_exec_state_step() - take what has come, ask if it is time.
 * @run: asks; its result as in struct lkg_credential_options
 * @ret_review_ns: when there is something to do again
 * Return: 0 or -ENOMEM.
 */
int lkg_exec_state_step(struct lkg_exec_state *state, const char *api_version, uint64_t now_ns,
                        int (*run)(void *userdata), void *userdata, uint64_t *ret_review_ns);
