/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over HTTP and the credentials for them. */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/documents.h>
#include <lkg/text.h>

/*
 * A kubeconfig (kubectl's `kind: Config`, apiVersion v1), reduced to its current context (or the one that is asked for). Pure: text in,
 * fields out, no file is opened. Source of the rules: client-go tools/clientcmd/api/v1 and its overrides:
 * `*-data` (base64) takes precedence over the file of the same name, relative paths start in the directory
 * of the kubeconfig, tokenFile takes precedence over token.
 */

#define LKG_KUBECONFIG_BYTES_MAX (1u << 20)
#define LKG_EXEC_V1              "client.authentication.k8s.io/v1"
#define LKG_EXEC_V1BETA1         "client.authentication.k8s.io/v1beta1"

/* A file, or its content. path and data NULL = not given; at most one of them is set. */
struct lkg_file_or_data {
        char *path; /* absolute */
        char *data; /* NUL-terminated, size bytes; decoded */
        size_t size;
        /* for messages: "users[u].user.client-key-data"; NULL = not given, or not from a kubeconfig */
        char *field;
        unsigned line, column; /* of the field */
};

/* users[].user.exec: a program that prints an ExecCredential. */
struct lkg_exec_plugin {
        char **argv;       /* NULL-terminated; argv[0] absolute or a name for PATH */
        char **env;        /* NAME=value, NULL-terminated */
        char *api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
        bool provide_cluster_info;
        char *cluster_config; /* JSON: the cluster's extension for exec plugins; NULL = none */
};

/* The transport's input. Immutable, shared; texts are PEM. NULL = not given. */
struct lkg_identity {
        unsigned refs;
        uint64_t serial;       /* changes with each change of the identity */
        char *server;          /* https://host[:port][/path], without a trailing `/` and userinfo */
        char *tls_server_name; /* NULL = the host of server */
        char *proxy_url;       /* with libcurl's schemes, see endpoint.h; NULL = from the environment */
        bool insecure;         /* insecure-skip-tls-verify */
        bool disable_compression;
        char *ca, *certificate, *key;
        char *token, *username, *password;
        char *impersonate;  /* `as`; groups and extra are refused: following a configuration needs neither */
        char *user;         /* the user in the certificate ("system:node:n1"); NULL = unknown (a token) */
        bool is_node_group; /* the certificate is of the group system:nodes */
        uint64_t expires_ns; /* wall time at which certificate or token expires; 0 = unknown */
};

struct lkg_kubeconfig {
        char *file; /* the path that users would edit; "" for an in-cluster configuration */
        /* what stands in it as text; the token is used while that of the file cannot be read */
        struct lkg_identity identity;
        struct lkg_file_or_data ca, certificate, key;
        struct lkg_file_or_data token_file; /* tokenFile: a path, never data */
        struct lkg_exec_plugin *exec;
};

struct lkg_kubeconfig_options {
        const char *file;    /* absolute path, for messages and relative paths */
        bool allow_exec;     /* remote.allowExec */
        bool allow_insecure; /* remote.allowInsecure */
        const char *context; /* instead of current-context; NULL = that */
};

/**
 * lkg_kubeconfig_parse() - decode and check.
 * @ret: lkg_kubeconfig_free(); written only on success
 *
 * Every mistake is one finding LKG7001 that names file, line, column, field, and the correct form, but never
 * a value of a secret field. Refused: no or an unknown current-context, cluster or user; a server that is
 * not https (or has userinfo, query or fragment); insecure-skip-tls-verify, exec and interactiveMode: Always
 * unless allowed (the last never is); data that is not base64; a certificate without a key and vice versa;
 * insecure together with a CA; a proxy that is not http, https or socks5; auth-provider (removed upstream).
 * Unknown fields are ignored, as in client-go, with a warning.
 *
 * Return: 0; -EBADMSG: @report has errors.
 */
int lkg_kubeconfig_parse(const char *text, size_t size, const struct lkg_kubeconfig_options *options,
                         struct lkg_kubeconfig **ret, struct lkg_report *report);

/**
 * lkg_kubeconfig_detect() - is it one (lkg_is_kubeconfig())?
 * Return: 1; 0; -EBADMSG: not YAML, so unknown.
 */
int lkg_kubeconfig_detect(const char *text, size_t size);

/**
 * lkg_kubeconfig_in_cluster() - make one from a pod's KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and @directory
 * (/var/run/secrets/kubernetes.io/serviceaccount) with `token` and `ca.crt`.
 * Return: 0; -ENOENT: not in a pod (a variable is missing); -EINVAL: host or port is invalid.
 */
int lkg_kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                              struct lkg_kubeconfig **ret, struct lkg_error *err);

/* Wipes the secrets. */
struct lkg_kubeconfig *lkg_kubeconfig_free(struct lkg_kubeconfig *kubeconfig);

/* ---- credential ---- */

/*
 * The current credential for the API server: a kubeconfig (or a pod's service account) and every file that
 * it names, read and checked, and read again when one of them changes. A rotation of a certificate, a token
 * or the whole kubeconfig needs no notification. While files cannot be read or do not match (in the middle
 * of a rotation), the last good set is used, with a finding.
 *
 * Search order if remote.kubeconfig is empty: a pod's service account; the node's own kubeconfig
 * `kubelet.conf` in the source directory, if it is one (kubeadm); none.
 */

struct lkg_identity *lkg_identity_ref(struct lkg_identity *identity);
/** lkg_identity_new() - all zero, one reference. */
struct lkg_identity *lkg_identity_new(void);
/* wipes the memory of the last one */
struct lkg_identity *lkg_identity_unref(struct lkg_identity *identity);

enum lkg_credential_kind {
        LKG_CREDENTIAL_NONE,
        LKG_CREDENTIAL_KUBECONFIG, /* remote.kubeconfig */
        LKG_CREDENTIAL_NODE,       /* kubelet.conf of the source directory */
        LKG_CREDENTIAL_IN_CLUSTER,
};
const char *lkg_credential_kind_name(enum lkg_credential_kind kind);

struct lkg_credential_options {
        const char *kubeconfig;  /* remote.kubeconfig, absolute; "" = search */
        const char *source_path; /* path of the source directory, for messages */
        int source_fd;           /* O_PATH */
        const char *mount_point; /* of the view: paths below it mean the source directory; NULL = none */
        const char *pod_dir;     /* of a pod's service account; NULL = where Kubernetes mounts it */
        const char *context;     /* of the kubeconfig; NULL = its current one */
        bool allow_exec, allow_insecure;
        /*
         * Runs the exec plugin of kubeconfig @file in another process (this one must not execute programs);
         * the answer arrives at lkg_credential_exec_done().
         * Return: 0; -EAGAIN: not yet, try again at the next refresh; another -errno: it cannot be run.
         */
        int (*run_exec)(void *userdata);
        void *userdata;
};

struct lkg_credential;

/** lkg_credential_new() - nothing is read yet. Options are copied, source_fd is borrowed. */
struct lkg_credential *lkg_credential_new(const struct lkg_credential_options *options);
struct lkg_credential *lkg_credential_free(struct lkg_credential *credential);

/**
 * lkg_credential_refresh() - read the files, which takes about a millisecond. Call it before each request, and every few seconds while
 * one is waiting: nothing else notices a rotation.
 * @now_ns: wall time, for expiry of exec credentials and certificates
 *
 * Only files that only root (or, if we are not root, our own user) can write or replace are used, including
 * every directory and link of the path (lkg_open_owned()); at most 1 MiB each.
 *
 * Return: has the identity changed, or is it gone?
 */
bool lkg_credential_refresh(struct lkg_credential *credential, uint64_t now_ns);

/**
 * lkg_credential_due_ns() - wall time at which a refresh is needed although no file changes: a certificate or token
 * expires soon, or a plugin must be run. UINT64_MAX = never.
 */
uint64_t lkg_credential_due_ns(const struct lkg_credential *credential);

/**
 * lkg_credential_rejected() - the server answered 401: a refresh is due now, and an exec plugin
 * runs again (at the earliest 10 s after its last run).
 */
void lkg_credential_rejected(struct lkg_credential *credential);

/**
 * lkg_credential_exec_done() - the plugin's output, an ExecCredential as JSON, or the reason why there is
 * none (@why, with @text NULL). The next refresh uses it. @now_ns: wall time
 */
void lkg_credential_exec_done(struct lkg_credential *credential, const char *text, size_t size,
                              const char *why, uint64_t now_ns);

/**
 * lkg_credential_load() - read the kubeconfig that a credential with @options would follow, for the process that runs its plugin.
 * A CA file is read and becomes data. A plugin below the view is looked up in the source directory.
 * Return: 0; -ENOENT: there is none, or a service account is used; -EBADMSG: @report has the reason.
 */
int lkg_credential_load(const struct lkg_credential_options *options, struct lkg_kubeconfig **ret,
                        struct lkg_report *report);

/** lkg_credential_identity() - the newest complete one, borrowed; NULL = none, see the findings. */
struct lkg_identity *lkg_credential_identity(const struct lkg_credential *credential);
enum lkg_credential_kind lkg_credential_kind(const struct lkg_credential *credential);
/** lkg_credential_file() - the kubeconfig, or the service account's directory; "" = none. */
const char *lkg_credential_file(const struct lkg_credential *credential);
/** lkg_credential_findings() - findings of the last check of the files, LKG7001 to LKG7004. */
const struct lkg_report *lkg_credential_findings(const struct lkg_credential *credential);
/**
 * lkg_credential_is_node() - is the identity certainly that of node @name (certificate of system:node:@name, group
 * system:nodes)?
 */
bool lkg_credential_is_node(const struct lkg_credential *credential, const char *name);

/* ---- http ---- */

/*
 * HTTPS requests on the event loop: libcurl's multi interface driven by sd-event, without threads and
 * without blocking. TLS 1.2 or later, HTTP/2 if the server supports it, connections are kept open.
 * Independent of Kubernetes, except that every reply is JSON. A redirect is an answer; it is never followed.
 *
 * Memory is bounded: all replies together have at most max_bytes of the options (decompressed), one reply at most
 * max_bytes of its request, one header 256 KiB. Time is bounded: see struct lkg_http_request.
 *
 * One thread, that of the loop. The process must ignore SIGPIPE.
 */

#define LKG_HTTP_CONNECT_NS (10 * LKG_NSEC_PER_SEC) /* for name resolution, TCP, proxy and TLS together */

/*
 * Priority of every event source of the network: a server that sends endlessly (or one object of some MiB
 * after another) delays local work by at most one iteration of the loop.
 */
#define LKG_REMOTE_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

/**
 * lkg_remote_timer() - an event source of that priority, which is off. Timers go by CLOCK_BOOTTIME. If there can be none, that is
 * like no memory: see lkg_no_memory().
 */
sd_event_source *lkg_remote_timer(sd_event *event, uint64_t accuracy_ns, sd_event_time_handler_t fn,
                                  void *userdata);
/** lkg_remote_arm() - set the timer; 0 = the next turn of the loop; UINT64_MAX = off. NULL is fine. */
void lkg_remote_arm(sd_event_source *timer, uint64_t at_ns);

struct lkg_http_options {
        sd_event *event;
        const char *user_agent;
        size_t max_bytes;
        uint64_t connect_ns; /* 0 = LKG_HTTP_CONNECT_NS */
        /*
         * Never a proxy, and also servers with http://, with tcp:// (a connection is made, which is the answer) and with grpc://
         * (HTTP/2 without TLS and without asking first, RFC 9113, 3.3): health endpoints, and sockets of this machine.
         */
        bool plain;
        const char *
                unix_path; /* of the socket that is connected to, whatever the server; borrowed; NULL = none */
        uint64_t doubt_ns; /* how long a stream may be silent if another one of its connections hangs */
};

/* How a request ended. */
struct lkg_http_result {
        /*
         * 0: a complete reply was received. -ETIMEDOUT; -EFBIG: over max_bytes of the request, or a header
         * over its limit; -ENOBUFS: over the limit of all replies; -ECONNREFUSED, -EHOSTUNREACH (also: no
         * such name), ...: no connection; -ECONNRESET: it broke; -EPROTO: TLS or a certificate; -EBADMSG:
         * not HTTP, or invalid compression; the result of on_data; -ENOMEM; -EIO.
         */
        int error;
        char words[256];         /* of an error, for people; names the server, never a credential */
        unsigned status;         /* HTTP status, 0 = none received */
        uint64_t retry_after_ns; /* 0 = not given by the server */
        int grpc_status;         /* from the header or the trailers; -1 = not given by the server */
        const char *body;        /* NUL-terminated; NULL for a stream */
        size_t size;
};

struct lkg_http_request {
        const char *method;       /* "GET", "POST", "PATCH" */
        const char *path;         /* "/api/v1/...?..."; comes after the identity's server */
        const char *content_type; /* NULL = no body */
        /* more fields, "NAME: VALUE"; one replaces what would be sent under that name; NULL = none */
        const struct lkg_strings *headers;
        const char *body;
        size_t size;
        size_t max_bytes;     /* limit of the reply; for a stream, of a reply with a status other than 200 */
        uint64_t deadline_ns; /* after the start; LKG_HTTP_CONNECT_NS of it for connecting */
        uint64_t idle_ns;     /* longest time without a byte, including the first one; 0 = no limit */
        /*
         * Called when there is a connection, before anything is sent. A negative result ends the request with that error. NULL = nobody
         */
        int (*on_connected)(void *userdata);
        /*
         * A stream: called for each piece as it arrives, at most 16 KiB; the status is 200. A negative
         * result ends the request with that error. Replies with another status have a body instead. NULL =
         * not a stream.
         */
        int (*on_data)(const char *data, size_t size, void *userdata);
        void (*on_open)(void *userdata); /* stream: status 200 was received; may be NULL */
        /*
         * Called once, in all cases except after lkg_http_cancel(). May start another request and cancel
         * others.
         */
        void (*on_end)(const struct lkg_http_result *result, void *userdata);
        void *userdata;
};

struct lkg_http_transfer; /* one request in flight */
struct lkg_http;

struct lkg_http_counters {
        uint64_t n_connections, received_bytes, sent_bytes;
};

struct lkg_http *lkg_http_new(const struct lkg_http_options *options);
/** lkg_http_free() - cancel all requests in flight. Not from a callback of a request. */
struct lkg_http *lkg_http_free(struct lkg_http *http);

/**
 * lkg_http_start() - send @request as @identity. Texts are copied. May be called from any callback; no callback runs before it
 * returns.
 *
 * An identity with another serial than that of the previous request gets new connections, so a rotated
 * certificate never uses an old connection. So does the first request after one that timed out. Requests in
 * flight continue.
 *
 * Return: 0; on failure nothing is called: -ELIBACC: there is no libcurl; -EINVAL: curl refuses it (an invalid URL), or a
 * credential or another field contains a control character.
 */
int lkg_http_start(struct lkg_http *http, struct lkg_identity *identity,
                   const struct lkg_http_request *request, struct lkg_http_transfer **ret,
                   struct lkg_error *err);
/**
 * lkg_http_cancel() - end it without calling anything. NULL is fine; returns NULL. From any callback,
 * including its own on_data and on_open, but not its own on_end (it has ended).
 */
struct lkg_http_transfer *lkg_http_cancel(struct lkg_http_transfer *transfer);
/**
 * lkg_http_distrust() - @transfer hangs. From now on no request uses its connection, and other streams of
 * the same connections may be silent for at most doubt_ns. NULL is fine.
 */
void lkg_http_distrust(struct lkg_http_transfer *transfer);

/**
 * lkg_http_counters() - since creation, including requests in flight. Bytes are counted after decryption and
 * before decompression, as far as curl counts them.
 */
const struct lkg_http_counters *lkg_http_counters(struct lkg_http *http);

/* ---- grpc ---- */

/*
 * Calls of gRPC with one message there and one back, over lkg_http_start() (grpc/doc/PROTOCOL-HTTP2.md), and the wire format of the
 * messages (protobuf.dev, "Encoding"): a message is its fields, in any order, those that a reader does not know included.
 */

struct lkg_wire_field {
        unsigned number; /* above 0 */
        bool is_bytes; /* a text or a message, in `bytes`; else a number, in `value`; one of fixed width is not read: 0 */
        uint64_t value;        /* of a signed one: as two's complement */
        struct lkg_span bytes; /* borrowed from the message */
};

/**
 * lkg_wire_next() - take the first field from @rest, which is the whole message at first.
 * Return: 1; 0: there is none left; -EBADMSG: it is cut, or no message.
 */
int lkg_wire_next(struct lkg_span *rest, struct lkg_wire_field *ret);
/** lkg_wire_put() - append field @number: a text, or a message. */
void lkg_wire_put(struct lkg_buf *message, unsigned number, const char *data, size_t size);

/**
 * lkg_grpc_request() - make @ret the call of @method, "/package.Service/Method"; limits and callbacks are the caller's.
 * @frame: becomes its body; must live until lkg_http_start()
 */
void lkg_grpc_request(const char *method, const struct lkg_buf *message, struct lkg_buf *frame,
                      struct lkg_http_request *ret);
/**
 * lkg_grpc_answer() - the message of a reply, borrowed from it.
 * Return: 0; an error of @result; -EPROTO: another status than OK; -EBADMSG: it is none of gRPC. @err: what the server does, no
 * content of the answer
 */
int lkg_grpc_answer(const struct lkg_http_result *result, struct lkg_span *ret, struct lkg_error *err);

/* ---- exec-plugin ---- */

/*
 * Runs the exec plugin of a kubeconfig like client-go's plugin/pkg/client/auth/exec, but with restrictions:
 * a fixed PATH, only the environment named here, no terminal, and limits. Never in the engine, but in a
 * process that the supervisor starts for it.
 *
 * The plugin runs as root, so its program and every directory of the path must be owned by root
 * (lkg_open_owned()).
 */

#define LKG_EXEC_PATH       "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LKG_EXEC_OUTPUT_MAX (64u << 10)
#define LKG_EXEC_SAID_MAX   2048u /* limit of the stderr text that is kept */
#define LKG_EXEC_LIMIT_NS   (25 * LKG_NSEC_PER_SEC)

/**
 * lkg_exec_plugin_find() - find the program for @command.
 * @command: absolute, or a name for @search (directories with `:` between them)
 * Return: 0, @ret is absolute, heap; -ENOENT; -EPERM: users other than root could change it; -EACCES: not
 * executable; another -errno.
 */
int lkg_exec_plugin_find(const char *command, const char *search, char **ret, struct lkg_error *err);

/**
 * lkg_exec_plugin_info() - write KUBERNETES_EXEC_INFO: an ExecCredential with spec.interactive and, if
 * requested, spec.cluster.
 */
void lkg_exec_plugin_info(const struct lkg_kubeconfig *kubeconfig, struct lkg_buf *buf);

/**
 * lkg_exec_plugin_run() - run it to its end.
 * @program:  from lkg_exec_plugin_find()
 * @limit_ns: after that it is killed with its process group
 * @ret:      its output, NUL-terminated, at least one byte; heap, a secret: the caller wipes it
 * @said:     appended: the start of its stderr, even if it fails
 *
 * Return: 0; -ETIMEDOUT; -EFBIG over LKG_EXEC_OUTPUT_MAX; -EIO: it failed or printed nothing; another
 * -errno.
 */
int lkg_exec_plugin_run(const struct lkg_kubeconfig *kubeconfig, const char *program, uint64_t limit_ns,
                        char **ret, size_t *ret_size, struct lkg_buf *said, struct lkg_error *err);

/**
 * lkg_exec_credential() - print the output of the plugin that the kubeconfig names, or one line why there is none. Logs that line
 * and the plugin's stderr.
 * @enabled: is remote configuration on?
 *
 * Return: exit code: 0; 78: the configuration or the kubeconfig does not allow it or is wrong; 74: the plugin failed; 70.
 */
int lkg_exec_credential(const struct lkg_credential_options *options, bool enabled);
