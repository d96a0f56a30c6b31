/* SPDX-License-Identifier: Apache-2.0 */
/* curl's errors in words: rows/http_words.rows. A row says what differs from a request to api.example over TLS, with the CA of a kubeconfig. */
#define UNIT_OWN_MAIN

#include <openssl/x509_vfy.h>

#include <lkg/process.h>

#include "rows.h"
#include "core/remote/http-internal.h"

#define WORD(name)          \
        {                   \
#name, name \
        }

static const struct {
        const char *name;
        long value;
} words[] = {
        WORD(CURLE_COULDNT_CONNECT),
        WORD(CURLE_COULDNT_RESOLVE_HOST),
        WORD(CURLE_COULDNT_RESOLVE_PROXY),
        WORD(CURLE_OPERATION_TIMEDOUT),
        WORD(CURLE_RECV_ERROR),
        WORD(CURLE_PARTIAL_FILE),
        WORD(CURLE_PEER_FAILED_VERIFICATION),
        WORD(CURLE_SSL_CONNECT_ERROR),
        WORD(CURLE_BAD_CONTENT_ENCODING),
        WORD(CURLE_OUT_OF_MEMORY),
        WORD(ECONNREFUSED),
        WORD(EHOSTUNREACH),
        WORD(X509_V_OK),
        WORD(X509_V_ERR_UNSPECIFIED),
        WORD(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY),
        WORD(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT),
        WORD(X509_V_ERR_CERT_HAS_EXPIRED),
        WORD(X509_V_ERR_CERT_NOT_YET_VALID),
        WORD(X509_V_ERR_INVALID_PURPOSE),
};

static long value_of(const char *name)
{
#define word_name(i) words[i].name
        return words[rows_named(word_name, LKG_ARRAY_SIZE(words), name)].value;
}

static struct lkg_http_failure failure(CURLcode code)
{
        return (struct lkg_http_failure){
                .code = code,
                .detail = "",
                .peer = "api.example:6443",
                .host = "api.example",
                .has_ca = true,
                .connect_ns = 10 * LKG_NSEC_PER_SEC,
        };
}

static const char *after(const char *text, const char *name)
{
        return strncmp(text, name, strlen(name)) == 0 ? text + strlen(name) : NULL;
}

/* The code, then members: NAME=VALUE. */
static void say_failure(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_http_failure f = failure((CURLcode)value_of(q->parts[0]));
        char text[256];
        int r;

        for (size_t i = 1; i < q->n_parts; i++) {
                const char *part = q->parts[i], *value;

                if ((value = after(part, "proxy=")))
                        f.proxy = value;
                else if ((value = after(part, "proxy_status=")))
                        f.proxy_status = atoi(value);
                else if ((value = after(part, "proxy_verify=")))
                        f.proxy_verify = value_of(value);
                else if ((value = after(part, "verify=")))
                        f.verify = value_of(value);
                else if ((value = after(part, "os_error=")))
                        f.os_error = (int)value_of(value);
                else if ((value = after(part, "detail=")))
                        f.detail = value;
                else if ((value = after(part, "has_ca=")))
                        f.has_ca = *value == '1';
                else if ((value = after(part, "environment_proxy=")))
                        f.environment_proxy = *value == '1';
                else
                        fail_msg("a failure has no %s", part);
        }
        r = lkg_http_explain(&f, text);
        lkg_buf_printf(ret, "%s: %s", strerrorname_np(-r), text);
}

static const struct operation operations[] = { { "failure", say_failure, 0 }, { 0 } };

ROWS(http_words, operations)

TEST(test_every_code_has_a_class_and_words)
{
        char text[256];

        for (int code = CURLE_OK + 1; code < CURL_LAST; code++) {
                struct lkg_http_failure f = failure((CURLcode)code);

                assert_true(lkg_http_explain(&f, text) < 0);
                assert_true(strlen(text) > 10);
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
