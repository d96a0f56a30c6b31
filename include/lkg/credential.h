/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current credential for the API server: a kubeconfig (or a pod's service account) and every file that it names, read and
 * checked, and read again when one of them changes. A rotation of a certificate, a token or the whole kubeconfig needs no
 * notice. While files cannot be read or do not match (half of a rotation), the last good set is used, with a finding.
 *
 * Order of search when remote.kubeconfig is empty: a pod's service account; the node's own kubeconfig `kubelet.conf` in the
 * source directory, if it is one (kubeadm); none.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/kubeconfig.h>

/* The transport's input. Immutable, shared; texts are PEM. NULL = not given. */
struct lkg_identity {
        unsigned refs;
        uint64_t serial; /* another one after each change */
        char *server, *tls_server_name, *proxy_url;
        bool insecure, disable_compression;
        char *ca, *certificate, *key;
        char *token, *username, *password, *impersonate;
        char *user; /* the user that the certificate names ("system:node:n1"); NULL = unknown (a token) */
        bool is_node_group;  /* and that it is in the group system:nodes */
        uint64_t expires_ns; /* wall time at which certificate or token end; 0 = unknown */
};
struct lkg_identity *lkg_identity_ref(struct lkg_identity *identity);
struct lkg_identity *lkg_identity_unref(struct lkg_identity *identity); /* wipes the last one */

enum lkg_credential_kind {
        LKG_CREDENTIAL_NONE,
        LKG_CREDENTIAL_KUBECONFIG, /* remote.kubeconfig */
        LKG_CREDENTIAL_NODE,       /* kubelet.conf of the source directory */
        LKG_CREDENTIAL_IN_CLUSTER,
};
const char *lkg_credential_kind_name(enum lkg_credential_kind kind);

struct lkg_credential_options {
        const char *kubeconfig;  /* remote.kubeconfig, absolute; "" = search */
        const char *source_path; /* source directory as people know it */
        int source_fd;           /* O_PATH */
        const char *
                mount_point; /* where the view is: paths below it mean the source directory; NULL = nowhere */
        const char *pod_dir; /* of a pod's service account; NULL = where Kubernetes mounts it */
        bool allow_exec, allow_insecure;
        /* Runs the exec plugin of kubeconfig @file, elsewhere (this process must not execute anything); the answer comes back
         * through lkg_credential_exec_done(). Return: 0; -EAGAIN: not yet, asked again with the next refresh; another -errno:
         * it cannot be asked for. */
        int (*run_exec)(void *userdata);
        void *userdata;
};

struct lkg_credential;

/** lkg_credential_new() - nothing is read yet. Options are copied, source_fd is borrowed. */
int lkg_credential_new(const struct lkg_credential_options *options, struct lkg_credential **ret);
struct lkg_credential *lkg_credential_free(struct lkg_credential *credential);

/**
 * lkg_credential_refresh() - check the files; cheap (stat) while nothing has changed. To be called before each request,
 * and every few seconds while one waits: nothing else notices a rotation.
 * @now_ns: wall time, for expiry of exec credentials and certificates
 *
 * Only files are used that only root (or, without root, our own user) can write or replace, every directory and link of the
 * path included (lkg_open_owned()); at most 1 MiB each. A token file is read again at least every 60 s.
 *
 * Return: 1 when the identity has changed (or is gone); 0; -ENOMEM.
 */
int lkg_credential_refresh(struct lkg_credential *credential, uint64_t now_ns);

/**
 * lkg_credential_due_ns() - wall time at which a refresh is needed although no file changes: a certificate or token
 * expires soon, or a plugin must be run. UINT64_MAX = never.
 */
uint64_t lkg_credential_due_ns(const struct lkg_credential *credential);

/**
 * lkg_credential_rejected() - the server answered 401: the next refresh reads everything, and an exec plugin runs again
 * (10 s after it was asked last, at the earliest).
 */
void lkg_credential_rejected(struct lkg_credential *credential);

/**
 * lkg_credential_exec_done() - the plugin's output, an ExecCredential as JSON, or why there is none (@why; @text is
 * NULL then). The next refresh uses it.
 */
void lkg_credential_exec_done(struct lkg_credential *credential, const char *text, size_t size,
                              const char *why);

/**
 * lkg_credential_load() - read the kubeconfig that a credential with @options would follow, for the process that runs its plugin.
 * A CA file has been read: it is data then. A plugin below the view is looked up in the source directory.
 * Return: 0; -ENOENT: there is none, or a service account serves; -EBADMSG when @report says what is wrong; -ENOMEM.
 */
int lkg_credential_load(const struct lkg_credential_options *options, struct lkg_kubeconfig **ret,
                        struct lkg_report *report);

/** lkg_credential_identity() - the newest one that is complete, borrowed; NULL = none, see the findings. */
struct lkg_identity *lkg_credential_identity(const struct lkg_credential *credential);
enum lkg_credential_kind lkg_credential_kind(const struct lkg_credential *credential);
/** lkg_credential_file() - the kubeconfig, or the service account's directory; "" = none. */
const char *lkg_credential_file(const struct lkg_credential *credential);
/** lkg_credential_findings() - the findings of the last look at the files, LKG7001 to LKG7004. */
const struct lkg_report *lkg_credential_findings(const struct lkg_credential *credential);
/**
 * lkg_credential_is_node() - is the identity certainly that of node @name (certificate of system:node:@name, group
 * system:nodes)?
 */
bool lkg_credential_is_node(const struct lkg_credential *credential, const char *name);
