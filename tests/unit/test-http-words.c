/* SPDX-License-Identifier: Apache-2.0 */
/* curl's errors in words; when a server wants another request. */
#define UNIT_OWN_MAIN

#include <openssl/x509_vfy.h>

#include <lkg/process.h>

#include "unit.h"
#include "core/remote/http-internal.h"

#define S   LKG_NSEC_PER_SEC
#define NOW (UINT64_C(1794153600) * S) /* Sun, 08 Nov 2026 16:00:00 GMT */

/* ---- failures ---- */

static struct lkg_http_failure failure(CURLcode code)
{
        return (struct lkg_http_failure){
                .code = code,
                .detail = "",
                .peer = "api.example:6443",
                .host = "api.example",
                .has_ca = true,
                .connect_ns = 10 * S,
        };
}

static void expect(const struct lkg_http_failure *f, int error, const char *want)
{
        char words[256];

        assert_int_equal(lkg_http_explain(f, words), error);
        assert_string_equal(words, want);
}

TEST(test_no_connection)
{
        struct lkg_http_failure f = failure(CURLE_COULDNT_CONNECT);

        f.os_error = ECONNREFUSED;
        expect(&f, -ECONNREFUSED, "api.example:6443: connection refused");
        f.os_error = EHOSTUNREACH;
        expect(&f, -EHOSTUNREACH, "api.example:6443: no route to host");
        f.os_error = 0;
        expect(&f, -ECONNREFUSED, "api.example:6443: no connection");
        f = failure(CURLE_COULDNT_RESOLVE_HOST);
        expect(&f, -EHOSTUNREACH, "api.example:6443: the name cannot be resolved");
        f = failure(CURLE_OPERATION_TIMEDOUT);
        expect(&f, -ETIMEDOUT, "api.example:6443: no connection within 10 s");
}

TEST(test_a_proxy_is_named_without_its_password)
{
        static const char *const urls[] = { "http://user:secret@proxy.example:3128",
                                            "socks5h://user:secret@proxy.example:3128/",
                                            "http://user:se@cret@proxy.example:3128?x" };
        struct lkg_http_failure f = failure(CURLE_COULDNT_CONNECT);

        f.os_error = ECONNREFUSED;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(urls); i++) {
                f.proxy = urls[i];
                f.code = CURLE_COULDNT_CONNECT;
                expect(&f, -ECONNREFUSED, "proxy proxy.example:3128: connection refused");
                f.code = CURLE_COULDNT_RESOLVE_PROXY;
                expect(&f, -EHOSTUNREACH, "proxy proxy.example:3128: the name cannot be resolved");
        }
        f.code = CURLE_RECV_ERROR;
        f.proxy_status = 407;
        expect(&f, -ECONNREFUSED, "the proxy answers 407 when asked for api.example:6443");
}

TEST(test_certificates)
{
        static const struct {
                long verify;
                bool has_ca;
                const char *want;
        } rows[] = {
                { X509_V_OK, true,
                  "the certificate of api.example:6443 is for other names than api.example" },
                { X509_V_ERR_UNSPECIFIED, true,
                  "the certificate of api.example:6443 is for other names than api.example" },
                { X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, true,
                  "the certificate of api.example:6443 is not signed by the CA of the kubeconfig" },
                { X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, false,
                  "the certificate of api.example:6443 is not signed by a CA that this host trusts" },
                { X509_V_ERR_CERT_HAS_EXPIRED, true,
                  "the certificate of api.example:6443 has ended, or the clock here is wrong" },
                { X509_V_ERR_CERT_NOT_YET_VALID, true,
                  "the certificate of api.example:6443 is not valid yet, or the clock here is wrong" },
                { X509_V_ERR_INVALID_PURPOSE, true,
                  "the certificate of api.example:6443 is not good: unsuitable certificate purpose" },
        };
        struct lkg_http_failure f = failure(CURLE_PEER_FAILED_VERIFICATION);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                f.verify = rows[i].verify;
                f.has_ca = rows[i].has_ca;
                expect(&f, -EPROTO, rows[i].want);
        }
}

TEST(test_the_certificate_of_a_proxy_is_not_the_servers)
{
        struct lkg_http_failure f = failure(CURLE_PEER_FAILED_VERIFICATION);

        f.proxy = "https://u:secret@proxy.example:3129";
        f.verify = X509_V_ERR_UNSPECIFIED; /* it was never checked */
        f.proxy_verify = X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
        expect(&f, -EPROTO,
               "the certificate of proxy.example:3129 is not signed by the CA of the kubeconfig");
        f.proxy_verify = X509_V_OK;
        f.verify = X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
        expect(&f, -EPROTO, "the certificate of api.example:6443 is not signed by the CA of the kubeconfig");
}

TEST(test_a_proxy_of_the_environment_may_be_to_blame)
{
        struct lkg_http_failure f = failure(CURLE_COULDNT_CONNECT);

        f.environment_proxy = true;
        f.os_error = ECONNREFUSED;
        expect(&f, -ECONNREFUSED, "api.example:6443, or the proxy of the environment: connection refused");
}

TEST(test_tls_and_broken_connections)
{
        struct lkg_http_failure f = failure(CURLE_SSL_CONNECT_ERROR);

        f.detail = "error:0A00010B:SSL routines::wrong version number";
        expect(&f, -EPROTO, "api.example:6443: no TLS: error:0A00010B:SSL routines::wrong version number");
        f.detail = "a\nb\x1b[1m\xff";
        expect(&f, -EPROTO, "api.example:6443: no TLS: a?b?[1m?");
        f = failure(CURLE_RECV_ERROR);
        expect(&f, -ECONNRESET, "api.example:6443: the connection broke before the reply was complete");
        f.detail = "OpenSSL SSL_read: error:0A000412:SSL routines::sslv3 alert bad certificate, errno 0";
        expect(&f, -EPROTO,
               "api.example:6443 refuses TLS with us: OpenSSL SSL_read: error:0A000412:SSL routines::sslv3 "
               "alert "
               "bad certificate, errno 0");
        f = failure(CURLE_PARTIAL_FILE);
        expect(&f, -ECONNRESET, "api.example:6443: the connection broke before the reply was complete");
}

TEST(test_every_code_has_a_class_and_words)
{
        char words[256];

        for (int code = CURLE_OK + 1; code < CURL_LAST; code++) {
                struct lkg_http_failure f = failure((CURLcode)code);

                assert_true(lkg_http_explain(&f, words) < 0);
                assert_true(strlen(words) > 10);
        }
        {
                struct lkg_http_failure f = failure(CURLE_BAD_CONTENT_ENCODING);

                assert_int_equal(lkg_http_explain(&f, words), -EBADMSG);
                f.code = CURLE_OUT_OF_MEMORY;
                assert_int_equal(lkg_http_explain(&f, words), -ENOMEM);
        }
}

static int load(void **state)
{
        (void)state;
        return lkg_curl_load(NULL);
}

int main(void)
{
        return run_all(load, NULL);
}
