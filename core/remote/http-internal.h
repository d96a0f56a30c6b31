/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the http*.c files only. */
#pragma once

#include <sys/queue.h>

#include <curl/curl.h>
#include <openssl/ssl.h>

#include <lkg/text.h>
#include <lkg/http.h>

/*
 * Every function of libcurl that is called. The library and the twenty that come with it (GnuTLS, Kerberos, LDAP, SSH) cost 3 ms and
 * 1 MiB of each process, and most nodes ask no server for anything: so it is loaded by the first request.
 */
#define LKG_CURL_FUNCTIONS(F)  \
        F(easy_cleanup)        \
        F(easy_getinfo)        \
        F(easy_init)           \
        F(easy_setopt)         \
        F(easy_strerror)       \
        F(free)                \
        F(getdate)             \
        F(global_init)         \
        F(multi_add_handle)    \
        F(multi_assign)        \
        F(multi_cleanup)       \
        F(multi_info_read)     \
        F(multi_init)          \
        F(multi_remove_handle) \
        F(multi_setopt)        \
        F(multi_socket_action) \
        F(slist_append)        \
        F(slist_free_all)      \
        F(url)                 \
        F(url_cleanup)         \
        F(url_get)             \
        F(url_set)

#define LKG_CURL_MEMBER(name) __typeof__(curl_##name) *name;
struct lkg_curl {
        LKG_CURL_FUNCTIONS(LKG_CURL_MEMBER)
        __typeof__(SSL_CTX_set_options) *set_tls_options; /* NULL: TLS is not OpenSSL's */
};
extern struct lkg_curl lkg_curl;

/** lkg_curl_load() - call it before anything else of libcurl. Return: 0; -ELIBACC. */
int lkg_curl_load(struct lkg_error *err);

/* all header lines of one reply, trailers and 1xx replies too */
#define LKG_HTTP_HEADER_BYTES_MAX (256u << 10)
#define LKG_HTTP_PEER_MAX         288 /* "host:port" with its final NUL */

/*
 * The connections of one identity: a multi handle and its event sources. Requests of the current identity
 * use the current pool; an old pool is freed when its last request has ended.
 */
struct lkg_http_pool {
        struct lkg_http *http; /* borrowed, outlives the pool */
        CURLM *multi;
        sd_event_source *timer;
        uint64_t serial; /* of the identity */
        unsigned n_transfers;
        bool broken; /* curl gave up on it */
        struct lkg_http_pool *next;
};

enum lkg_http_phase {
        LKG_HTTP_QUEUED,  /* the next turn of the loop gives it to curl */
        LKG_HTTP_RUNNING, /* curl has it */
        LKG_HTTP_ENDED,
};

struct lkg_http_transfer {
        struct lkg_http *http;           /* borrowed, outlives it */
        struct lkg_http_pool *pool;      /* counted in its n_transfers */
        struct lkg_identity *identity;   /* a reference: curl reads its PEM texts where they are */
        struct lkg_http_request request; /* without its texts, once it has begun */
        enum lkg_http_phase phase;
        bool cancelled; /* nothing is called any more; freed by the next turn of the loop */
        sd_event_source *timer;
        uint64_t started_ns, progress_ns;

        CURL *easy;
        struct curl_slist *headers, *connect_to;
        char curl_words[CURL_ERROR_SIZE];
        char host[LKG_HTTP_PEER_MAX]; /* the name that the certificate must have */
        char peer[LKG_HTTP_PEER_MAX]; /* host:port of the server */

        size_t header_bytes;
        bool header_complete;
        struct lkg_buf body;
        struct lkg_http_result result; /* as far as it is known; body and size at the end */

        TAILQ_ENTRY(lkg_http_transfer) link;
};

struct lkg_http {
        sd_event *event;
        /* adds, removes and frees handles, which must not happen inside a callback of curl */
        sd_event_source *settle;
        char *user_agent;
        size_t max_bytes, buffered_bytes; /* of the bodies of all transfers */
        uint64_t connect_ns, doubt_ns;
        bool plain;
        const char *unix_path;                 /* borrowed */
        struct lkg_http_pool *pools, *current; /* current is one of pools, or NULL */
        TAILQ_HEAD(lkg_http_transfers, lkg_http_transfer) transfers;
        struct lkg_http_counters ended, counters; /* of ended transfers; the last answer */
};

/* http-easy.c */

/** lkg_http_prepare() - set up the easy handle of a transfer whose request and identity are set. */
int lkg_http_prepare(struct lkg_http_transfer *transfer, struct lkg_error *err);
/** lkg_http_unprepare() - free it; credentials are wiped. */
void lkg_http_unprepare(struct lkg_http_transfer *transfer);

/**
 * lkg_http_stop() - record why @transfer ends, in place of curl's own error.
 * Return: 0, which is not the size that curl expects from a callback, so curl aborts.
 */
size_t lkg_http_stop(struct lkg_http_transfer *transfer, int error, const char *fmt, ...) LKG_PRINTF(3, 4);

/* http-words.c: pure */

/**
 * lkg_http_retry_after() - parse the value of a Retry-After header: seconds or an HTTP date (RFC 9110,
 * 10.2.3).
 * @now_ns: wall time
 * Return: nanoseconds, at most LKG_RETRY_AFTER_MAX_NS; 0: neither, or not in the future.
 */
uint64_t lkg_http_retry_after(const char *text, size_t size, uint64_t now_ns);

/* Details of a transfer that curl ended. */
struct lkg_http_failure {
        CURLcode code;
        int os_error;           /* CURLINFO_OS_ERRNO */
        long verify;            /* CURLINFO_SSL_VERIFYRESULT */
        long proxy_verify;      /* CURLINFO_PROXY_SSL_VERIFYRESULT */
        long proxy_status;      /* CURLINFO_HTTP_CONNECTCODE */
        const char *detail;     /* CURLOPT_ERRORBUFFER */
        const char *peer;       /* server, host:port */
        const char *host;       /* name that its certificate must have */
        const char *proxy;      /* URL; NULL = none, or the environment's */
        bool environment_proxy; /* the environment names one; whether it was used is not known */
        bool has_ca;            /* the kubeconfig names a CA */
        uint64_t connect_ns;    /* limit */
};
/**
 * lkg_http_explain() - return a sentence for people, and the class of the error.
 * Return: -errno as in struct lkg_http_result.
 */
int lkg_http_explain(const struct lkg_http_failure *failure, char words[static 256]);
