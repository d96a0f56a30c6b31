/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files about credentials: wiping, certificates and tokens, the state of an exec plugin. */
#pragma once

#include <lkg/http.h>
#include <lkg/documents.h>

/* ---- identity.c: secrets are overwritten before their memory is freed ---- */

/** lkg_wipe_free() - overwrite a text, then free it. NULL is fine. */
void lkg_wipe_free(char *text);
void lkg_wipe_freep(char **text);

/**
 * lkg_value_wipe() - overwrite every text and number in @value. NULL is fine. For a tree that only the caller references and frees
 * next: it must not be read again.
 */
void lkg_value_wipe(const struct lkg_value *value);

/** lkg_identity_deinit() - free what one has, which nobody references. */
void lkg_identity_deinit(struct lkg_identity *identity);
/** lkg_identity_same() - would the API server see no difference? Serial and expiry are not compared; @a may be NULL. */
bool lkg_identity_same(const struct lkg_identity *a, const struct lkg_identity *b);

/*
 * ---- what a client needs of PEM texts and tokens. Nothing is verified: the API server does that. Pure; OpenSSL wipes
 * keys when it frees them ----
 */

/**
 * lkg_identity_read_certificate() - read user, node group and expiry from the first certificate of @identity.
 * @ret_begins_ns, @ret_ends_ns: wall time; 0 and UINT64_MAX when it is out of our range
 * Return: 0; -EINVAL: there is none, and nothing has changed.
 */
int lkg_identity_read_certificate(struct lkg_identity *identity, uint64_t *ret_begins_ns,
                                  uint64_t *ret_ends_ns);

/** lkg_certificate_count() - count the readable certificates in the bundle @pem. */
int lkg_certificate_count(const char *pem);

enum lkg_key_state {
        LKG_KEY_FITS,
        LKG_KEY_MISSING,   /* it has no private key */
        LKG_KEY_ENCRYPTED, /* it needs a passphrase */
        LKG_KEY_OTHER,     /* it belongs to another certificate */
};

/** lkg_certificate_key() - check the first private key of @key against the first certificate of @pem. */
enum lkg_key_state lkg_certificate_key(const char *pem, const char *key);

/**
 * lkg_token_ends_ns() - return the claim `exp` of a JSON web token (RFC 7519), wall time; 0 = no such claim,
 * or another kind of token.
 */
uint64_t lkg_token_ends_ns(const char *token);

/*
 * ---- credential-exec.c: the answer of an exec plugin, and when to run it again; no I/O, clocks are
 * arguments ----
 */

struct lkg_exec_state {
        bool wanted; /* the kubeconfig has a plugin */
        bool asked;  /* and its answer is not here yet */
        bool stale;  /* its answer was rejected, or the kubeconfig has changed */
        bool have;
        const char *api_version; /* that its answer must have; NULL = it was never to be asked */
        uint64_t asked_ns, pause_ns, next_ns; /* not before next_ns */
        uint64_t refresh_ns;                  /* what we have is renewed; UINT64_MAX = it says no end */
        uint64_t expires_ns;                  /* 0 = it says none */
        char *token, *certificate, *key;
        char *why; /* why the last attempt failed, NULL = it did not */
};

void lkg_exec_state_deinit(struct lkg_exec_state *state);
/** lkg_exec_state_done() - the plugin has finished: @text, or NULL and @why. */
void lkg_exec_state_done(struct lkg_exec_state *state, const char *text, size_t size, const char *why,
                         uint64_t now_ns);
/**
 * lkg_exec_state_step() - run the plugin if it is due.
 * @run: runs it; result as in struct lkg_credential_options
 * Return: the time of the next step
 */
uint64_t lkg_exec_state_step(struct lkg_exec_state *state, const char *api_version, uint64_t now_ns,
                             int (*run)(void *userdata), void *userdata);
