/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current credential for the API server: a kubeconfig (or a pod's service account) and every file that
 * it names, read and checked, and read again when one of them changes. A rotation of a certificate, a token
 * or the whole kubeconfig needs no notification. While files cannot be read or do not match (in the middle
 * of a rotation), the last good set is used, with a finding.
 *
 * Search order if remote.kubeconfig is empty: a pod's service account; the node's own kubeconfig
 * `kubelet.conf` in the source directory, if it is one (kubeadm); none.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/kubeconfig.h>

/* The transport's input. Immutable, shared; texts are PEM. NULL = not given. */
struct lkg_identity {
        unsigned refs;
        uint64_t serial; /* changes with each change of the identity */
        char *server, *tls_server_name, *proxy_url;
        bool insecure, disable_compression;
        char *ca, *certificate, *key;
        char *token, *username, *password, *impersonate;
        char *user;          /* the user in the certificate ("system:node:n1"); NULL = unknown (a token) */
        bool is_node_group;  /* the certificate is of the group system:nodes */
        uint64_t expires_ns; /* wall time at which certificate or token expires; 0 = unknown */
};
struct lkg_identity *lkg_identity_ref(struct lkg_identity *identity);
/** lkg_identity_new() - all zero, one reference. NULL = no memory. */
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
int lkg_credential_new(const struct lkg_credential_options *options, struct lkg_credential **ret);
struct lkg_credential *lkg_credential_free(struct lkg_credential *credential);

/**
 * lkg_credential_refresh() - check the files; cheap (stat) while nothing has changed. Call it before each
 * request, and every few seconds while one is waiting: nothing else notices a rotation.
 * @now_ns: wall time, for expiry of exec credentials and certificates
 *
 * Only files that only root (or, if we are not root, our own user) can write or replace are used, including
 * every directory and link of the path (lkg_open_owned()); at most 1 MiB each. A token file is read again at
 * least every 60 s.
 *
 * Return: 1: the identity has changed (or is gone); 0; -ENOMEM.
 */
int lkg_credential_refresh(struct lkg_credential *credential, uint64_t now_ns);

/**
 * lkg_credential_due_ns() - wall time at which a refresh is needed although no file changes: a certificate or token
 * expires soon, or a plugin must be run. UINT64_MAX = never.
 */
uint64_t lkg_credential_due_ns(const struct lkg_credential *credential);

/**
 * lkg_credential_rejected() - the server answered 401: the next refresh reads everything, and an exec plugin
 * runs again (at the earliest 10 s after its last run).
 */
void lkg_credential_rejected(struct lkg_credential *credential);

/**
 * lkg_credential_exec_done() - the plugin's output, an ExecCredential as JSON, or the reason why there is
 * none (@why, with @text NULL). The next refresh uses it.
 */
void lkg_credential_exec_done(struct lkg_credential *credential, const char *text, size_t size,
                              const char *why);

/**
 * lkg_credential_load() - read the kubeconfig that a credential with @options would follow, for the process that runs its plugin.
 * A CA file is read and becomes data. A plugin below the view is looked up in the source directory.
 * Return: 0; -ENOENT: there is none, or a service account is used; -EBADMSG: @report has the reason;
 * -ENOMEM.
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
