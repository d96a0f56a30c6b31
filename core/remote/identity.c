/* SPDX-License-Identifier: Apache-2.0 */
/* Who this node is to the API server; and how what it proves that with is overwritten before its memory is freed. */
#include <openssl/crypto.h>

#include "credential-internal.h"
#include "wipe.h"

void lkg_wipe_free(char *text)
{
        if (text)
                OPENSSL_cleanse(text, strlen(text));
        free(text);
}

void lkg_wipe_freep(char **text)
{
        lkg_wipe_free(*text);
}

void lkg_value_wipe(const struct lkg_value *value)
{
        const char *text;
        size_t size;

        if (!value || lkg_value_type(value) != LKG_STRING)
                return;
        text = lkg_value_text(value, &size);
        OPENSSL_cleanse((void *)(uintptr_t)text, size);
}

/* ---- identity ---- */

struct lkg_identity *lkg_identity_new(void)
{
        struct lkg_identity *identity = calloc(1, sizeof(*identity));

        if (identity)
                identity->refs = 1;
        return identity;
}

struct lkg_identity *lkg_identity_ref(struct lkg_identity *identity)
{
        if (identity)
                identity->refs++;
        return identity;
}

struct lkg_identity *lkg_identity_unref(struct lkg_identity *identity)
{
        if (!identity || --identity->refs > 0)
                return NULL;
        free(identity->server);
        free(identity->tls_server_name);
        lkg_wipe_free(identity->proxy_url);
        free(identity->ca);
        lkg_wipe_free(identity->certificate); /* the file may hold the key as well */
        lkg_wipe_free(identity->key);
        lkg_wipe_free(identity->token);
        lkg_wipe_free(identity->username);
        lkg_wipe_free(identity->password);
        free(identity->impersonate);
        free(identity->user);
        free(identity);
        return NULL;
}

static bool same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : !a && !b;
}

bool lkg_identity_same(const struct lkg_identity *a, const struct lkg_identity *b)
{
        if (!a || !b)
                return a == b;
        return same_text(a->server, b->server) && same_text(a->tls_server_name, b->tls_server_name) &&
               same_text(a->proxy_url, b->proxy_url) && a->insecure == b->insecure &&
               a->disable_compression == b->disable_compression && same_text(a->ca, b->ca) &&
               same_text(a->certificate, b->certificate) && same_text(a->key, b->key) &&
               same_text(a->token, b->token) && same_text(a->username, b->username) &&
               same_text(a->password, b->password) && same_text(a->impersonate, b->impersonate);
}
