/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that stands for a host, with certificates and a credential in it. */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <lkg/text.h>
#include <lkg/http.h>
#include <lkg/file.h>

#include "unit.h"
#include "tmpdir.h"

#define DAY_NS (UINT64_C(86400) * LKG_NSEC_PER_SEC)

/* All state of a test: a directory `d` that stands for the host, `d/src` for the source directory. */
struct place {
        char d[TMPDIR_MAX], src[TMPDIR_MAX + 8], config[TMPDIR_MAX + 16], pod[TMPDIR_MAX + 8];
        int source_fd;
        struct lkg_credential *c;
        uint64_t now_ns;
        int n_asked, ask_result;
};

/* ---- certificates ---- */

struct pair {
        char *certificate, *key;
};

static inline char *bio_text(BIO *bio)
{
        char *data, *copy;
        long n = BIO_get_mem_data(bio, &data);

        copy = strndup(data, (size_t)n);
        assert_non_null(copy);
        BIO_free(bio);
        return copy;
}

static inline void add_name(X509 *x, const char *field, const char *value)
{
        if (value)
                assert_int_equal(X509_NAME_add_entry_by_txt(X509_get_subject_name(x), field, MBSTRING_UTF8,
                                                            (const unsigned char *)value, -1, -1, 0),
                                 1);
}

/* Days from @now_ns on, negative = in the past. */
static inline struct pair make_pair(uint64_t now_ns, const char *group, const char *user, int from_days,
                                    int to_days)
{
        struct pair pair;
        EVP_PKEY *key = EVP_EC_gen("P-256");
        time_t now = (time_t)(now_ns / LKG_NSEC_PER_SEC);
        X509 *x = X509_new();
        BIO *bio;

        assert_non_null(key);
        assert_non_null(x);
        assert_int_equal(X509_set_version(x, X509_VERSION_3), 1);
        assert_non_null(X509_time_adj_ex(X509_getm_notBefore(x), from_days, 0, &now));
        assert_non_null(X509_time_adj_ex(X509_getm_notAfter(x), to_days, 0, &now));
        add_name(x, "O", group);
        add_name(x, "CN", user);
        assert_int_equal(X509_set_issuer_name(x, X509_get_subject_name(x)), 1);
        assert_int_equal(X509_set_pubkey(x, key), 1);
        assert_true(X509_sign(x, key, EVP_sha256()) > 0);
        bio = BIO_new(BIO_s_mem());
        assert_int_equal(PEM_write_bio_X509(bio, x), 1);
        pair.certificate = bio_text(bio);
        bio = BIO_new(BIO_s_mem());
        assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
        pair.key = bio_text(bio);
        X509_free(x);
        EVP_PKEY_free(key);
        return pair;
}

static inline struct pair node_pair(uint64_t now_ns)
{
        return make_pair(now_ns, "system:nodes", "system:node:n1", -1, 364);
}

static inline void free_pair(struct pair *pair)
{
        free(pair->certificate);
        free(pair->key);
}

static inline char *encrypted_key(void)
{
        EVP_PKEY *key = EVP_EC_gen("P-256");
        BIO *bio = BIO_new(BIO_s_mem());

        assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL),
                         1);
        EVP_PKEY_free(key);
        return bio_text(bio);
}

/* ---- files ---- */

static inline void put(const char *dir, const char *name, const char *text)
{
        int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(lkg_write_file_atomic(fd, name, text, strlen(text), 0600, false, NULL), 0);
        lkg_close(fd);
}

static inline void put_config(struct place *p, const char *user)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(
                &buf,
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: u, user: {%s}}]\n"
                "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
                user);
        put(p->d, "config", buf.data);
}

static inline void put_pair(struct place *p, const struct pair *pair)
{
        put(p->d, "crt", pair->certificate);
        put(p->d, "key", pair->key);
}

static inline int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        if (!p || tmpdir_make(p->d) < 0)
                return -1;
        (void)snprintf(p->src, sizeof(p->src), "%s/src", p->d);
        (void)snprintf(p->pod, sizeof(p->pod), "%s/pod", p->d);
        (void)snprintf(p->config, sizeof(p->config), "%s/config", p->d);
        p->now_ns = UINT64_C(1900000000) * LKG_NSEC_PER_SEC;
        if (mkdir(p->src, 0755) < 0 || mkdir(p->pod, 0755) < 0)
                return -1;
        p->source_fd = open(p->src, O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)unsetenv("KUBERNETES_SERVICE_HOST");
        (void)unsetenv("KUBERNETES_SERVICE_PORT");
        *state = p;
        return 0;
}

static inline int teardown(void **state)
{
        struct place *p = *state;

        lkg_credential_free(p->c);
        lkg_close(p->source_fd);
        (void)tmpdir_remove(p->d);
        free(p);
        return 0;
}

static inline int count_ask(void *userdata)
{
        struct place *p = userdata;

        p->n_asked++;
        return p->ask_result;
}

static inline void open_with(struct place *p, const char *kubeconfig, const char *mount_point)
{
        const struct lkg_credential_options o = {
                .kubeconfig = kubeconfig,
                .source_path = p->src,
                .source_fd = p->source_fd,
                .mount_point = mount_point,
                .pod_dir = p->pod,
                .allow_exec = true,
                .run_exec = count_ask,
                .userdata = p,
        };

        p->c = lkg_credential_free(p->c);
        p->c = lkg_credential_new(&o);
}

static inline int refresh(struct place *p)
{
        return lkg_credential_refresh(p->c, p->now_ns);
}

static inline const struct lkg_identity *identity(const struct place *p)
{
        return lkg_credential_identity(p->c);
}

/* Exactly one finding, of @code, and its text contains @part. */
static inline void assert_said(const struct place *p, unsigned code, enum lkg_severity severity,
                               const char *part)
{
        const struct lkg_report *report = lkg_credential_findings(p->c);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        text = lkg_report_format(report, &size);
        if (report->n_findings != 1 || report->findings[0].code != code ||
            report->findings[0].severity != severity || !strstr(text, part))
                fail_msg("wanted LKG%u %s, got:\n%s", code, part, text);
}

static inline void assert_silent(const struct place *p)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        text = lkg_report_format(lkg_credential_findings(p->c), &size);
        assert_string_equal(text, "");
}

#define PAIR "client-certificate: crt, client-key: key"
