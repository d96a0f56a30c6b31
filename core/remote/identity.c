/* SPDX-License-Identifier: Apache-2.0 */
/* Who this node is to the API server; what certificates and tokens say about that; and how all of it is overwritten after use. */
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <lkg/documents.h>

#include "credential-internal.h"

#define NODES_GROUP     "system:nodes"
#define CLAIMS_MAX      16384u
#define SECONDS_MAX     (UINT64_MAX / LKG_NSEC_PER_SEC)
#define BUNDLE_MAX      4096 /* certificates: more are not counted */
#define PASSPHRASE_NONE (-1)

/* ---- secrets ---- */

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
        enum lkg_type type = value ? lkg_value_type(value) : LKG_NULL;
        size_t n = type == LKG_MAP || type == LKG_LIST ? lkg_value_size(value) : 0, size;
        struct lkg_span key;

        if (type == LKG_STRING || type == LKG_NUMBER) {
                const char *text = lkg_value_text(value, &size);

                OPENSSL_cleanse((void *)(uintptr_t)text, size);
        }
        for (size_t i = 0; i < n; i++)
                lkg_value_wipe(type == LKG_LIST ? lkg_list_get(value, i)
                                                : lkg_map_at(value, i, &key.data, &key.size));
}

/* ---- identity ---- */

#define TEXT(name) offsetof(struct lkg_identity, name)

/* All that a server can see of it as text. The file of the certificate may hold the key as well, so all are wiped. */
static const size_t identity_texts[] = { TEXT(server),     TEXT(tls_server_name), TEXT(proxy_url),
                                         TEXT(ca),         TEXT(certificate),     TEXT(key),
                                         TEXT(token),      TEXT(username),        TEXT(password),
                                         TEXT(impersonate) };

static char **identity_text(const struct lkg_identity *identity, size_t i)
{
        return (char **)(void *)((char *)(uintptr_t)identity + identity_texts[i]);
}

struct lkg_identity *lkg_identity_new(void)
{
        struct lkg_identity *identity = lkg_must(calloc(1, sizeof(*identity)));

        identity->refs = 1;
        return identity;
}

struct lkg_identity *lkg_identity_ref(struct lkg_identity *identity)
{
        identity->refs++;
        return identity;
}

void lkg_identity_deinit(struct lkg_identity *identity)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(identity_texts); i++)
                lkg_wipe_free(*identity_text(identity, i));
        free(identity->user);
}

struct lkg_identity *lkg_identity_unref(struct lkg_identity *identity)
{
        if (!identity || --identity->refs > 0)
                return NULL;
        lkg_identity_deinit(identity);
        free(identity);
        return NULL;
}

bool lkg_identity_same(const struct lkg_identity *a, const struct lkg_identity *b)
{
        if (!a || a->insecure != b->insecure || a->disable_compression != b->disable_compression)
                return false;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(identity_texts); i++) {
                const char *x = *identity_text(a, i), *y = *identity_text(b, i);

                if (!x != !y || (x && strcmp(x, y) != 0))
                        return false;
        }
        return true;
}

/* ---- certificates ---- */

static void bio_freep(BIO **bio)
{
        BIO_free(*bio);
}

static void x509_freep(X509 **x)
{
        X509_free(*x);
}

static void pkey_freep(EVP_PKEY **key)
{
        EVP_PKEY_free(*key);
}

/* Give no passphrase, and note the request. */
static int no_passphrase(char *buf, int size, int writing, void *userdata)
{
        bool *asked = userdata;

        if (asked)
                *asked = true;
        return PASSPHRASE_NONE;
}

/* Return: NULL if there is none. OpenSSL's error messages are dropped. */
static X509 *first_certificate(const char *pem)
{
        LKG_CLEANUP(bio_freep) BIO *bio = lkg_must(BIO_new_mem_buf(pem, -1));
        X509 *x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);

        ERR_clear_error();
        return x;
}

static uint64_t time_ns(const ASN1_TIME *t, uint64_t otherwise)
{
        struct tm tm;
        time_t seconds;

        if (!t || ASN1_TIME_to_tm(t, &tm) != 1)
                return otherwise;
        seconds = timegm(&tm);
        return seconds < 0                        ? 0
               : (uint64_t)seconds >= SECONDS_MAX ? UINT64_MAX
                                                  : (uint64_t)seconds * LKG_NSEC_PER_SEC;
}

/* Return an attribute as UTF-8; NULL if it is absent or has a NUL byte, which no node name can have. */
static char *attribute_text(const X509_NAME_ENTRY *entry)
{
        unsigned char *utf8 = NULL;
        int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
        char *copy = n >= 0 && !memchr(utf8, '\0', (size_t)n) ? strndup((char *)utf8, (size_t)n) : NULL;

        if (n >= 0)
                OPENSSL_free(utf8);
        return copy;
}

/* The last of several common names counts, as in Go's crypto/x509. */
static void read_subject(const X509_NAME *name, struct lkg_identity *identity)
{
        int at = -1, last = -1;

        while ((at = X509_NAME_get_index_by_NID(name, NID_commonName, at)) >= 0)
                last = at;
        free(identity->user);
        identity->user = last < 0 ? NULL : attribute_text(X509_NAME_get_entry(name, last));
        identity->is_node_group = false;
        while ((at = X509_NAME_get_index_by_NID(name, NID_organizationName, at)) >= 0) {
                LKG_CLEANUP(lkg_freep) char *group = attribute_text(X509_NAME_get_entry(name, at));

                if (group && strcmp(group, NODES_GROUP) == 0)
                        identity->is_node_group = true;
        }
}

int lkg_identity_read_certificate(struct lkg_identity *identity, uint64_t *ret_begins_ns,
                                  uint64_t *ret_ends_ns)
{
        LKG_CLEANUP(x509_freep) X509 *x = first_certificate(identity->certificate);

        if (!x)
                return -EINVAL;
        *ret_begins_ns = time_ns(X509_get0_notBefore(x), 0);
        *ret_ends_ns = time_ns(X509_get0_notAfter(x), UINT64_MAX);
        if (*ret_ends_ns != UINT64_MAX)
                identity->expires_ns = *ret_ends_ns;
        read_subject(X509_get_subject_name(x), identity);
        ERR_clear_error();
        return 0;
}

int lkg_certificate_count(const char *pem)
{
        LKG_CLEANUP(bio_freep) BIO *bio = lkg_must(BIO_new_mem_buf(pem, -1));
        int n = 0;

        while (n < BUNDLE_MAX) {
                LKG_CLEANUP(x509_freep) X509 *x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);

                if (x)
                        n++;
                else if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE || BIO_eof(bio))
                        break; /* the end; an unreadable one is skipped, as in Go */
        }
        ERR_clear_error();
        return n;
}

enum lkg_key_state lkg_certificate_key(const char *pem, const char *key)
{
        LKG_CLEANUP(bio_freep) BIO *bio = lkg_must(BIO_new_mem_buf(key, -1));
        LKG_CLEANUP(x509_freep) X509 *x = first_certificate(pem);
        LKG_CLEANUP(pkey_freep) EVP_PKEY *pkey = NULL;
        bool asked = false, fits;

        pkey = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
        fits = pkey && x && X509_check_private_key(x, pkey) == 1;
        ERR_clear_error();
        if (!pkey)
                return asked ? LKG_KEY_ENCRYPTED : LKG_KEY_MISSING;
        return fits ? LKG_KEY_FITS : LKG_KEY_OTHER;
}

/* ---- tokens ---- */

/*
 * Decode base64url without padding (RFC 7515) to @to, which has room for @size + 4.
 * Return: the number of bytes; -1.
 */
static ssize_t decode_segment(const char *from, size_t size, char *to)
{
        size_t n = size;

        for (size_t i = 0; i < size; i++)
                to[i] = from[i] == '-' ? '+' : from[i] == '_' ? '/' : from[i];
        while (n % 4 != 0)
                to[n++] = '=';
        return lkg_base64_decode(to, n, to);
}

uint64_t lkg_token_ends_ns(const char *token)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *claims = NULL;
        const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;
        const struct lkg_value *exp;
        char text[CLAIMS_MAX + 4];
        ssize_t n;
        double seconds;

        if (!second || (size_t)(second - first - 1) > CLAIMS_MAX)
                return 0;
        n = decode_segment(first + 1, (size_t)(second - first - 1), text);
        if (n <= 0 || lkg_decode_json(text, (size_t)n, 0, NULL, &report, &claims) < 0 ||
            lkg_value_type(claims) != LKG_MAP)
                return 0;
        exp = lkg_map_get(claims, "exp");
        if (!exp || lkg_value_type(exp) != LKG_NUMBER)
                return 0;
        seconds = strtod(lkg_value_text(exp, NULL), NULL);
        return seconds >= 1 && seconds < (double)SECONDS_MAX ? (uint64_t)seconds * LKG_NSEC_PER_SEC : 0;
}
