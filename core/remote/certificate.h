/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from PEM texts and tokens what a client needs: the user name, whether certificate and key match, and
 * the expiry. Nothing is verified: the API server does that. Pure; OpenSSL wipes keys when it frees them.
 */
#pragma once

#include <lkg/base.h>

struct lkg_certificate {
        uint64_t begins_ns, ends_ns; /* wall time; 0 and UINT64_MAX when it is out of our range */
        char *user;                  /* the common name: the user; NULL = none, or none that is valid */
        bool is_node_group;          /* one of its organizations is system:nodes */
};
void lkg_certificate_deinit(struct lkg_certificate *certificate);

/**
 * lkg_certificate_read() - read the first certificate of @pem.
 * Return: 0; -EINVAL: there is none; -ENOMEM.
 */
int lkg_certificate_read(const char *pem, size_t size, struct lkg_certificate *ret);

/**
 * lkg_certificate_count() - count the readable certificates in the bundle @pem.
 * Return: number; -ENOMEM.
 */
int lkg_certificate_count(const char *pem, size_t size);

enum lkg_key_state {
        LKG_KEY_FITS,
        LKG_KEY_MISSING,   /* it has no private key */
        LKG_KEY_ENCRYPTED, /* it needs a passphrase */
        LKG_KEY_OTHER,     /* it belongs to another certificate */
};

/** lkg_certificate_key() - check the first private key of @key against the first certificate of @pem. */
enum lkg_key_state lkg_certificate_key(const char *pem, size_t size, const char *key, size_t key_size);

/**
 * lkg_token_ends_ns() - return the claim `exp` of a JSON web token (RFC 7519), wall time; 0 = no such claim,
 * or another kind of token.
 */
uint64_t lkg_token_ends_ns(const char *token);
