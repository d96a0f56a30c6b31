/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl is loaded here; and its errors are explained for people: server, cause, and never a credential. */
#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <strings.h>
#include <time.h>

#include <lkg/process.h>

#include "http-internal.h"

#define WORDS_BYTES 256

/* ---- the library ---- */

struct lkg_curl lkg_curl;

static int load(void)
{
#define ROW(name) { "curl_" #name, offsetof(struct lkg_curl, name) },
        static const struct {
                const char *name;
                size_t offset;
        } functions[] = { LKG_CURL_FUNCTIONS(ROW) };
#undef ROW
        void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
        struct lkg_curl curl;

        if (!library)
                return -ELIBACC;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(functions); i++) {
                void *function = dlsym(library, functions[i].name);

                if (!function)
                        return -ELIBACC;
                memcpy((char *)&curl + functions[i].offset, &function, sizeof(function));
        }
        *(void **)&curl.set_tls_options = dlsym(library, "SSL_CTX_set_options");
        /* The loop's thread is the only one of this process: the resolver's begin with the first request. */
        if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                lkg_no_memory();
        lkg_curl = curl;
        return 0;
}

int lkg_curl_load(struct lkg_error *err)
{
        int r = lkg_curl.easy_init ? 0 : load();

        return r < 0 ? lkg_error_set(err, r, NULL, "load libcurl: %s.", dlerror()) : 0;
}

/* ---- words ---- */

uint64_t lkg_http_retry_after(const char *text, size_t size, uint64_t now_ns)
{
        struct lkg_span span = lkg_span_trim(lkg_span(text, size));
        uint64_t seconds = 0;
        char date[64];
        size_t i;
        time_t at;

        for (i = 0; i < span.size && span.data[i] >= '0' && span.data[i] <= '9'; i++)
                seconds = seconds > LKG_RETRY_AFTER_MAX_NS ? seconds
                                                           : 10 * seconds + (uint64_t)(span.data[i] - '0');
        if (i == 0 && span.size > 0 && span.size < sizeof(date)) {
                *(char *)mempcpy(date, span.data, span.size) = '\0';
                at = lkg_curl.getdate(date, NULL);
                if (at > 0 && (uint64_t)at > now_ns / LKG_NSEC_PER_SEC)
                        seconds = (uint64_t)at - now_ns / LKG_NSEC_PER_SEC;
        } else if (i < span.size) {
                return 0; /* a date begins with the name of a day; curl would also accept many other texts as one */
        }
        return seconds > LKG_RETRY_AFTER_MAX_NS / LKG_NSEC_PER_SEC ? LKG_RETRY_AFTER_MAX_NS
                                                                   : seconds * LKG_NSEC_PER_SEC;
}

/* OpenSSL's messages contain no credential, but may contain bytes of the peer: make them printable and bounded. */
static const char *quote_detail(const char *detail, char buf[static 128])
{
        size_t n = 0;

        for (const unsigned char *p = (const unsigned char *)detail; *p && n + 1 < 128; p++)
                buf[n++] = *p < 0x20 || *p >= 0x7f ? '?' : (char)*p;
        buf[n] = '\0';
        return buf;
}

/* Return host:port of a proxy URL, which may contain user and password. */
static const char *proxy_peer(const char *url, char buf[static LKG_HTTP_PEER_MAX])
{
        const char *scheme = strstr(url, "://"), *from = scheme ? scheme + 3 : url, *at;
        size_t n = strcspn(from, "/?#");

        at = memrchr(from, '@', n);
        if (at) {
                n -= (size_t)(at + 1 - from);
                from = at + 1;
        }
        (void)snprintf(buf, LKG_HTTP_PEER_MAX, "%.*s",
                       (int)(n < LKG_HTTP_PEER_MAX ? n : LKG_HTTP_PEER_MAX - 1), from);
        return buf;
}

/* Explain whose certificate is wrong: a TLS proxy has one, too, and it is checked first. */
static int explain_certificate(const struct lkg_http_failure *f, char words[static WORDS_BYTES])
{
        bool of_proxy =
                f->proxy && strncasecmp(f->proxy, "https://", 8) == 0 && f->proxy_verify != X509_V_OK;
        char buf[LKG_HTTP_PEER_MAX];
        const char *peer = of_proxy ? proxy_peer(f->proxy, buf) : f->peer;
        const char *host = of_proxy ? "the proxy's" : f->host;
        long verify = of_proxy ? f->proxy_verify : f->verify;

        switch (verify) {
        case X509_V_OK: /* it is good, but not for this name; curl begins with the second, and may leave it at that */
        case X509_V_ERR_UNSPECIFIED:
                (void)snprintf(words, WORDS_BYTES, "the certificate of %s is for other names than %s", peer,
                               host);
                break;
        case X509_V_ERR_CERT_HAS_EXPIRED:
                (void)snprintf(words, WORDS_BYTES,
                               "the certificate of %s has ended, or the clock here is wrong", peer);
                break;
        case X509_V_ERR_CERT_NOT_YET_VALID:
                (void)snprintf(words, WORDS_BYTES,
                               "the certificate of %s is not valid yet, or the clock here is wrong", peer);
                break;
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        case X509_V_ERR_CERT_UNTRUSTED:
                (void)snprintf(words, WORDS_BYTES, "the certificate of %s is not signed by %s", peer,
                               f->has_ca ? "the CA of the kubeconfig" : "a CA that this host trusts");
                break;
        default:
                (void)snprintf(words, WORDS_BYTES, "the certificate of %s is not good: %s", peer,
                               X509_verify_cert_error_string(verify));
        }
        return -EPROTO;
}

static int explain_connect(const struct lkg_http_failure *f, char words[static WORDS_BYTES])
{
        const char *why = f->os_error ? strerrordesc_np(f->os_error) : NULL;
        char buf[LKG_HTTP_PEER_MAX], first = why ? (char)tolower((unsigned char)*why) : 'n';

        /* If there are several addresses, this is the errno of one of them; it may also be missing. */
        (void)snprintf(words, WORDS_BYTES, "%s%s%s: %c%s", f->proxy ? "proxy " : "",
                       f->proxy ? proxy_peer(f->proxy, buf) : f->peer,
                       f->environment_proxy ? ", or the proxy of the environment" : "", first,
                       why ? why + 1 : "o connection");
        return f->os_error ? -f->os_error : -ECONNREFUSED;
}

static int explain_broken(const struct lkg_http_failure *f, char words[static WORDS_BYTES])
{
        char buf[128];

        /* A TLS 1.3 server refuses our certificate after the handshake, which looks like a broken connection. */
        if (strstr(f->detail, "alert")) {
                (void)snprintf(words, WORDS_BYTES, "%s refuses TLS with us: %s", f->peer,
                               quote_detail(f->detail, buf));
                return -EPROTO;
        }
        if (f->proxy_status >= 300) {
                (void)snprintf(words, WORDS_BYTES, "the proxy answers %ld when asked for %s",
                               f->proxy_status, f->peer);
                return -ECONNREFUSED;
        }
        (void)snprintf(words, WORDS_BYTES, "%s: the connection broke before the reply was complete",
                       f->peer);
        return -ECONNRESET;
}

int lkg_http_explain(const struct lkg_http_failure *f, char words[static WORDS_BYTES])
{
        char buf[LKG_HTTP_PEER_MAX], detail[128];

        switch (f->code) {
        case CURLE_COULDNT_RESOLVE_HOST:
                (void)snprintf(words, WORDS_BYTES, "%s: the name cannot be resolved", f->peer);
                return -EHOSTUNREACH;
        case CURLE_COULDNT_RESOLVE_PROXY:
                (void)snprintf(words, WORDS_BYTES, "proxy %s: the name cannot be resolved",
                               f->proxy ? proxy_peer(f->proxy, buf) : "of the environment");
                return -EHOSTUNREACH;
        case CURLE_COULDNT_CONNECT:
                return explain_connect(f, words);
        case CURLE_PROXY:
                (void)snprintf(words, WORDS_BYTES, "the proxy does not connect to %s", f->peer);
                return -ECONNREFUSED;
        case CURLE_OPERATION_TIMEDOUT:
                (void)snprintf(words, WORDS_BYTES, "%s: no connection within %" PRIu64 " s", f->peer,
                               f->connect_ns / LKG_NSEC_PER_SEC);
                return -ETIMEDOUT;
        case CURLE_PEER_FAILED_VERIFICATION:
                return explain_certificate(f, words);
        case CURLE_SSL_CERTPROBLEM:
                (void)snprintf(words, WORDS_BYTES, "the client certificate and its key cannot be used: %s",
                               quote_detail(f->detail, detail));
                return -EPROTO;
        case CURLE_SSL_CACERT_BADFILE:
                (void)snprintf(words, WORDS_BYTES, "the CA of the kubeconfig cannot be used");
                return -EPROTO;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_CIPHER:
                (void)snprintf(words, WORDS_BYTES, "%s: no TLS: %s", f->peer,
                               quote_detail(f->detail, detail));
                return -EPROTO;
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_GOT_NOTHING:
        case CURLE_PARTIAL_FILE:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
                return explain_broken(f, words);
        case CURLE_BAD_CONTENT_ENCODING:
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_HTTP3:
                (void)snprintf(words, WORDS_BYTES, "%s does not answer as HTTP: %s", f->peer,
                               lkg_curl.easy_strerror(f->code));
                return -EBADMSG;
        case CURLE_OUT_OF_MEMORY:
                /* libcurl also returns this for a header line over its 100 KiB. */
                (void)snprintf(words, WORDS_BYTES, "%s: not enough memory, or an endless header line",
                               f->peer);
                return -ENOMEM;
        default:
                (void)snprintf(words, WORDS_BYTES, "%s: %s", f->peer, lkg_curl.easy_strerror(f->code));
                return -EIO;
        }
}
