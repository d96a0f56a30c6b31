/* SPDX-License-Identifier: Apache-2.0 */
/* A request in curl: address, identity, options that switch off unwanted behaviour of curl; and what arrives. */
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>

#include "credential-internal.h"
#include "http-internal.h"

#define OK                200
#define KEEPALIVE_SECONDS 15L
/*
 * libcurl 7.88 takes 32 KiB at a time from a connection of HTTP/2. What does not fit into its buffer (16 KiB) it forgets until another
 * byte comes, which never does at the end of a reply. A record of TLS fits.
 */
#define HTTP2_BUFFER_BYTES (64L << 10)
#define USER_TIMEOUT_MSEC  30000 /* bytes unacknowledged for this long: the connection is dead */

/* ---- options ---- */

static const struct number_option {
        CURLoption option;
        long value;
} number_options[] = {
        { CURLOPT_NOSIGNAL, 1 },
        /* Otherwise a transfer that ends during its name lookup would block the loop until the lookup is done. */
        { CURLOPT_QUICK_EXIT, 1 },
        { CURLOPT_FOLLOWLOCATION, 0 },
        { CURLOPT_NETRC, CURL_NETRC_IGNORED },
        { CURLOPT_PATH_AS_IS, 1 },
        { CURLOPT_PIPEWAIT,
          1 }, /* HTTP/2: rather a stream of the connection that is being made than another one */
        { CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
        /* A resumed TLS session would keep its original identity. */
        { CURLOPT_SSL_SESSIONID_CACHE, 0 },
        { CURLOPT_TCP_KEEPALIVE, 1 },
        { CURLOPT_TCP_KEEPIDLE, KEEPALIVE_SECONDS },
        { CURLOPT_TCP_KEEPINTVL, KEEPALIVE_SECONDS },
        { CURLOPT_SUPPRESS_CONNECT_HEADERS, 1 },
        { CURLOPT_HEADEROPT, CURLHEADER_SEPARATE }, /* our headers are not for a proxy */
};

static int check(CURLcode code, struct lkg_error *err)
{
        if (code == CURLE_OK)
                return 0;
        if (code == CURLE_OUT_OF_MEMORY)
                lkg_no_memory();
        return lkg_error_set(err, -EINVAL, NULL, "libcurl does not take an option: %s.",
                             lkg_curl.easy_strerror(code));
}

/* Close-on-exec from the beginning, unlike curl's own call. */
static curl_socket_t open_socket(void *userdata, curlsocktype purpose, struct curl_sockaddr *address)
{
        const int msec = USER_TIMEOUT_MSEC;
        int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

        if (fd >= 0) /* a system without it has the keepalive */
                (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &msec, sizeof(msec));
        return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* Before anything is sent, and so before anything is read; also on a connection that was there. */
static int on_connected(void *transfer, char *peer, char *ours, int peer_port, int our_port)
{
        struct lkg_http_transfer *t = transfer;
        int r = t->request.on_connected(t->request.userdata);

        if (r >= 0)
                return CURL_PREREQFUNC_OK;
        (void)lkg_http_stop(t, r, "%s: the request was given up", t->peer);
        return CURL_PREREQFUNC_ABORT;
}

/* ---- where to ---- */

static const struct scheme {
        const char *name, *curls;
        bool connect_only, is_http2;
} schemes[] = {
        { "https://", "https" }, /* the only one unless `plain` */
        { "http://", "http" },
        { "tcp://", "http", .connect_only = true },
        { "grpc://", "http", .is_http2 = true },
};

struct address {
        const struct scheme *scheme;
        char *host, *port, *path; /* curl's memory; host in brackets if it is an IPv6 address */
};

static void address_deinit(struct address *a)
{
        lkg_curl.free(a->host);
        lkg_curl.free(a->port);
        lkg_curl.free(a->path);
}

static void url_cleanup(CURLU **url)
{
        lkg_curl.url_cleanup(*url);
}

static const struct scheme *scheme_of(const struct lkg_http_transfer *t)
{
        size_t n = t->http->plain ? LKG_ARRAY_SIZE(schemes) : 1;

        for (size_t i = 0; i < n; i++)
                if (strncasecmp(t->identity->server, schemes[i].name, strlen(schemes[i].name)) == 0)
                        return &schemes[i];
        return NULL;
}

static int parse_server(const struct lkg_http_transfer *t, struct address *ret, struct lkg_error *err)
{
        LKG_CLEANUP(url_cleanup) CURLU *url = lkg_must(lkg_curl.url());

        ret->scheme = scheme_of(t);
        if (!ret->scheme ||
            lkg_curl.url_set(url, CURLUPART_URL, t->identity->server, CURLU_NON_SUPPORT_SCHEME) !=
                    CURLUE_OK ||
            lkg_curl.url_set(url, CURLUPART_SCHEME, ret->scheme->curls, 0) != CURLUE_OK ||
            lkg_curl.url_get(url, CURLUPART_HOST, &ret->host, 0) != CURLUE_OK ||
            lkg_curl.url_get(url, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
            lkg_curl.url_get(url, CURLUPART_PATH, &ret->path, 0) != CURLUE_OK)
                return lkg_error_set(err, -EINVAL, NULL,
                                     "the address of the API server is not an https URL.");
        if (strcmp(ret->path, "/") == 0)
                *ret->path = '\0';
        return 0;
}

/*
 * libcurl 7.88 fails when it is told about a connection that is there already what it will be: the second version takes it as it is.
 * Only the connection of a socket is used again.
 */
static long http2_version(const struct lkg_http_transfer *t)
{
        bool is_there = t->http->unix_path && t->http->ended.n_connections > 0;

        return is_there ? CURL_HTTP_VERSION_2_0 : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
}

/*
 * Set CURLOPT_URL, which also determines the expected certificate, and CURLOPT_CONNECT_TO if the certificate
 * is for another name.
 */
static int set_address(struct lkg_http_transfer *t, const struct address *a, struct lkg_error *err)
{
        const char *name = t->identity->tls_server_name;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf url = LKG_BUF_INIT;
        char real[LKG_HTTP_PEER_MAX + 4];
        CURLcode code;

        (void)snprintf(t->peer, sizeof(t->peer), "%s:%s", a->host, a->port);
        (void)snprintf(t->host, sizeof(t->host), "%s", name ? name : a->host);
        lkg_buf_printf(&url, name && strchr(name, ':') ? "%s://[%s]:%s%s%s" : "%s://%s:%s%s%s",
                       a->scheme->curls, t->host, a->port, a->path, t->request.path);
        code = lkg_curl.easy_setopt(t->easy, CURLOPT_URL, lkg_buf_text(&url));
        if (code == CURLE_OK && a->scheme->connect_only)
                code = lkg_curl.easy_setopt(t->easy, CURLOPT_CONNECT_ONLY, 1L);
        if (code == CURLE_OK && a->scheme->is_http2)
                code = lkg_curl.easy_setopt(t->easy, CURLOPT_HTTP_VERSION, http2_version(t));
        if (code == CURLE_OK && a->scheme->is_http2)
                code = lkg_curl.easy_setopt(t->easy, CURLOPT_BUFFERSIZE, HTTP2_BUFFER_BYTES);
        if (code != CURLE_OK || !name)
                return check(code, err);
        (void)snprintf(real, sizeof(real), "::%s", t->peer); /* whatever host and port the URL says */
        t->connect_to = lkg_must(lkg_curl.slist_append(NULL, real));
        return check(lkg_curl.easy_setopt(t->easy, CURLOPT_CONNECT_TO, t->connect_to), err);
}

/* ---- headers ---- */

static void add_header(struct lkg_http_transfer *t, const char *text)
{
        t->headers = lkg_must(lkg_curl.slist_append(t->headers, text));
}

/* A line break would inject another header. */
static int check_line(const char *name, const char *value, struct lkg_error *err)
{
        for (const char *p = value; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        return lkg_error_set(err, -EINVAL, NULL,
                                             "what is to be sent as %s has a control character.", name);
        return 0;
}

static int add_field(struct lkg_http_transfer *t, const char *name, const char *value, struct lkg_error *err)
{
        char *line;

        /* For a blank value curl would send nothing: we would not be the user that the kubeconfig names. */
        if (value[strspn(value, " ")] == '\0')
                return lkg_error_set(err, -EINVAL, NULL, "what is to be sent as %s is blank.", name);
        if (check_line(name, value, err) < 0)
                return -EINVAL;
        line = lkg_format("%s: %s", name, value);
        add_header(t, line);
        lkg_wipe_free(line);
        return 0;
}

static int add_token(struct lkg_http_transfer *t, struct lkg_error *err)
{
        char *text = lkg_format("Bearer %s", t->identity->token);
        int r = add_field(t, "Authorization", text, err);

        lkg_wipe_free(text);
        return r;
}

/* For curl, `NAME:` means that the field is not sent, and `NAME;` that it is empty. */
static int add_line(struct lkg_http_transfer *t, const char *text, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *line = lkg_copy(text);
        char *colon = strchr(line, ':');

        if (!colon || colon == line)
                return lkg_error_set(err, -EINVAL, NULL, "a header has no name.");
        if (check_line("a header", text, err) < 0)
                return -EINVAL;
        if (colon[1 + strspn(colon + 1, " ")] == '\0')
                (void)strcpy(colon, ";");
        add_header(t, line);
        return 0;
}

static int set_headers(struct lkg_http_transfer *t, struct lkg_error *err)
{
        const struct lkg_strings *more = t->request.headers;
        int r = t->http->plain ? 0 : add_field(t, "Accept", "application/json", err);

        for (size_t i = 0; r >= 0 && more && i < more->n_items; i++)
                r = add_line(t, more->items[i], err);
        if (r >= 0 && t->identity->tls_server_name) /* else the URL says it */
                r = add_field(t, "Host", t->peer, err);
        if (r >= 0 && t->request.content_type)
                r = add_field(t, "Content-Type", t->request.content_type, err);
        if (r >= 0 && t->request.content_type)
                add_header(t, "Expect:"); /* no round trip before a body */
        if (r >= 0 && t->identity->token)
                r = add_token(t, err);
        if (r >= 0 && t->identity->impersonate)
                r = add_field(t, "Impersonate-User", t->identity->impersonate, err);
        return r < 0 ? r : check(lkg_curl.easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers), err);
}

/*
 * ---- what arrives, in curl's callbacks: nothing here may add, remove or free a transfer. To stop, a callback stores the reason in the
 * transfer and makes curl fail; http.c reads the reason from there ----
 */

size_t lkg_http_stop(struct lkg_http_transfer *t, int error, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(t->result.words, sizeof(t->result.words), fmt, ap);
        va_end(ap);
        t->result.error = error;
        return 0;
}

static bool is_field(struct lkg_span name, const char *wanted)
{
        return name.size == strlen(wanted) && strncasecmp(name.data, wanted, name.size) == 0;
}

static void take_field(struct lkg_http_transfer *t, struct lkg_span line)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_span name, value;
        const char *rest;
        uint64_t n;

        if (!lkg_span_cut(line, ':', &name, &value))
                return;
        if (is_field(name, "Retry-After") && !t->header_complete)
                t->result.retry_after_ns = lkg_http_retry_after(value.data, value.size, lkg_realtime_ns());
        if (!is_field(name, "grpc-status"))
                return;
        text = lkg_must(lkg_span_dup(lkg_span_trim(value)));
        rest = lkg_digits(text, &n);
        t->result.grpc_status = rest && !*rest && n <= INT_MAX ? (int)n : -1;
}

/* A header has ended: of a 1xx reply, or the one that counts. */
static void end_header(struct lkg_http_transfer *t)
{
        long status = 0;

        (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        if (status < 200)
                return;
        t->result.status = (unsigned)status;
        t->header_complete = true;
        if (t->request.on_data && t->result.status == OK && t->request.on_open)
                t->request.on_open(t->request.userdata);
}

static size_t on_header(char *line, size_t one, size_t size, void *transfer)
{
        struct lkg_http_transfer *t = transfer;

        if (t->cancelled)
                return 0;
        t->progress_ns = lkg_boottime_ns();
        t->header_bytes += size;
        if (t->header_bytes > LKG_HTTP_HEADER_BYTES_MAX)
                return lkg_http_stop(t, -EFBIG, "%s: the header of the reply is over %u bytes", t->peer,
                                     LKG_HTTP_HEADER_BYTES_MAX);
        if (t->header_complete) {
                take_field(t, lkg_span(line, size)); /* trailers */
        } else if (size > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
                t->result.retry_after_ns = 0;
        } else if (lkg_span_trim(lkg_span(line, size)).size == 0) {
                end_header(t);
        } else {
                take_field(t, lkg_span(line, size));
        }
        return t->cancelled ? 0 : size;
}

static size_t pass_on(struct lkg_http_transfer *t, const char *data, size_t size)
{
        int r = t->request.on_data(data, size, t->request.userdata);

        if (t->cancelled)
                return 0;
        return r < 0 ? lkg_http_stop(t, r, "%s: the stream was ended by its reader", t->peer) : size;
}

static size_t on_body(char *data, size_t one, size_t size, void *transfer)
{
        struct lkg_http_transfer *t = transfer;
        struct lkg_http *http = t->http;

        if (t->cancelled || size == 0) /* some replies have an empty piece */
                return 0;
        t->progress_ns = lkg_boottime_ns();
        if (t->request.on_data && t->result.status == OK)
                return pass_on(t, data, size);
        if (size > t->request.max_bytes || t->body.size > t->request.max_bytes - size)
                return lkg_http_stop(t, -EFBIG, "the reply of %s is over %zu bytes", t->peer,
                                     t->request.max_bytes);
        if (size > http->max_bytes || http->buffered_bytes > http->max_bytes - size)
                return lkg_http_stop(t, -ENOBUFS, "%s: all replies together are over %zu bytes", t->peer,
                                     http->max_bytes);
        lkg_buf_append(&t->body, data, size);
        (void)lkg_buf_text(&t->body);
        http->buffered_bytes += size;
        return size;
}

/* ---- everything ---- */

static CURLcode set_numbers(CURL *easy)
{
        CURLcode code = CURLE_OK;

        for (size_t i = 0; code == CURLE_OK && i < LKG_ARRAY_SIZE(number_options); i++)
                code = lkg_curl.easy_setopt(easy, number_options[i].option, number_options[i].value);
        /* Refused by a library that was built without it. */
        (void)lkg_curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        return code;
}

/* The identity outlives the handle, so curl need not copy a key. @pem: may be NULL. */
static void set_blob(CURL *easy, CURLcode *code, CURLoption option, const char *pem)
{
        struct curl_blob blob = { .data = (void *)(uintptr_t)pem, .flags = CURL_BLOB_NOCOPY };

        if (*code != CURLE_OK || !pem)
                return;
        blob.len = strlen(pem);
        *code = lkg_curl.easy_setopt(easy, option, &blob);
}

/* An answer without a length may end with the connection, as for Go and libcurl 7.88. That of 8.14 wants the goodbye of TLS. */
static CURLcode on_tls(CURL *easy, void *context, void *userdata)
{
        (void)lkg_curl.set_tls_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
        return CURLE_OK;
}

#define SET(option, value)                                                \
        do {                                                              \
                if (code == CURLE_OK)                                     \
                        code = lkg_curl.easy_setopt(easy, option, value); \
        } while (0)

static CURLcode set_request(struct lkg_http_transfer *t)
{
        CURL *easy = t->easy;
        CURLcode code = set_numbers(easy);

        SET(CURLOPT_PRIVATE, t);
        SET(CURLOPT_PROTOCOLS_STR, t->http->plain ? "http,https" : "https");
        SET(CURLOPT_ERRORBUFFER, t->curl_words);
        SET(CURLOPT_HEADERFUNCTION, on_header);
        SET(CURLOPT_HEADERDATA, t);
        SET(CURLOPT_WRITEFUNCTION, on_body);
        SET(CURLOPT_WRITEDATA, t);
        SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
        SET(CURLOPT_FORBID_REUSE, t->http->plain && !t->http->unix_path ? 1L : 0L); /* as a kubelet asks */
        if (t->http->unix_path)
                SET(CURLOPT_UNIX_SOCKET_PATH, t->http->unix_path);
        if (t->request.on_connected) {
                SET(CURLOPT_PREREQFUNCTION, on_connected);
                SET(CURLOPT_PREREQDATA, t);
        }
        SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(t->http->connect_ns / LKG_NSEC_PER_MSEC));
        SET(CURLOPT_USERAGENT, t->http->user_agent);
        if (!t->identity->disable_compression)
                SET(CURLOPT_ACCEPT_ENCODING, "gzip");
        if (t->request.content_type) {
                SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request.size);
                SET(CURLOPT_COPYPOSTFIELDS, t->request.body);
        }
        SET(CURLOPT_CUSTOMREQUEST, t->request.method);
        return code;
}

static CURLcode set_identity(struct lkg_http_transfer *t)
{
        const struct lkg_identity *i = t->identity;
        CURL *easy = t->easy;
        CURLcode code = CURLE_OK;

        if (t->http->plain) {
                if (lkg_curl.set_tls_options)
                        SET(CURLOPT_SSL_CTX_FUNCTION, on_tls);
                SET(CURLOPT_PROXY, "");
        } else if (i->proxy_url) { /* else the environment's, and its exceptions */
                SET(CURLOPT_PROXY, i->proxy_url);
                SET(CURLOPT_NOPROXY, "");
        }
        if (i->ca) { /* it replaces all CAs that this host trusts, as in Go also for a TLS proxy */
                SET(CURLOPT_CAPATH, NULL);
                SET(CURLOPT_PROXY_CAPATH, NULL);
        }
        SET(CURLOPT_SSL_VERIFYPEER, i->insecure ? 0L : 1L);
        SET(CURLOPT_SSL_VERIFYHOST, i->insecure ? 0L : 2L);
        set_blob(easy, &code, CURLOPT_CAINFO_BLOB, i->ca);
        set_blob(easy, &code, CURLOPT_PROXY_CAINFO_BLOB, i->ca);
        set_blob(easy, &code, CURLOPT_SSLCERT_BLOB, i->certificate);
        set_blob(easy, &code, CURLOPT_SSLKEY_BLOB, i->key);
        if (i->username && !i->token) {
                SET(CURLOPT_USERNAME, i->username);
                SET(CURLOPT_PASSWORD, i->password ? i->password : "");
        }
        return code;
}

int lkg_http_prepare(struct lkg_http_transfer *t, struct lkg_error *err)
{
        LKG_CLEANUP(address_deinit) struct address address = { 0 };
        int r;

        t->easy = lkg_must(lkg_curl.easy_init());
        r = check(set_request(t), err);
        if (r >= 0)
                r = parse_server(t, &address, err);
        if (r >= 0)
                r = set_address(t, &address, err);
        if (r >= 0)
                r = check(set_identity(t), err);
        if (r >= 0)
                r = set_headers(t, err);
        return r;
}

void lkg_http_unprepare(struct lkg_http_transfer *t)
{
        if (t->easy)
                lkg_curl.easy_cleanup(t->easy);
        t->easy = NULL;
        for (struct curl_slist *item = t->headers; item; item = item->next)
                OPENSSL_cleanse(item->data, strlen(item->data));
        lkg_curl.slist_free_all(t->headers);
        lkg_curl.slist_free_all(t->connect_to);
        t->headers = t->connect_to = NULL;
}
