/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubeconfig (kubectl's `kind: Config`, apiVersion v1), reduced to its current context (or the one that is asked for). Pure: text in,
 * fields out, no file is opened. Source of the rules: client-go tools/clientcmd/api/v1 and its overrides:
 * `*-data` (base64) takes precedence over the file of the same name, relative paths start in the directory
 * of the kubeconfig, tokenFile takes precedence over token.
 */
#pragma once

#include <lkg/doc.h>

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

struct lkg_kubeconfig {
        char *file;            /* the path that users would edit; "" for an in-cluster configuration */
        char *server;          /* https://host[:port][/path], without a trailing `/` and userinfo */
        char *tls_server_name; /* NULL = the host of server */
        char *proxy_url;       /* with libcurl's schemes, see endpoint.h; NULL = from the environment */
        bool insecure;         /* insecure-skip-tls-verify */
        bool disable_compression;
        struct lkg_file_or_data ca, certificate, key;
        struct lkg_file_or_data token_file; /* tokenFile: a path, never data */
        char *token;                        /* used while the file cannot be read */
        char *username, *password;
        char *impersonate; /* `as`; groups and extra are refused: following a configuration needs neither */
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
 * Return: 0; -EBADMSG: @report has errors; -ENOMEM.
 */
int lkg_kubeconfig_parse(const char *text, size_t size, const struct lkg_kubeconfig_options *options,
                         struct lkg_kubeconfig **ret, struct lkg_report *report);

/**
 * lkg_kubeconfig_detect() - is it one (lkg_is_kubeconfig())?
 * Return: 1; 0; -EBADMSG: not YAML, so unknown; -ENOMEM.
 */
int lkg_kubeconfig_detect(const char *text, size_t size);

/**
 * lkg_kubeconfig_in_cluster() - make one from a pod's KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and @directory
 * (/var/run/secrets/kubernetes.io/serviceaccount) with `token` and `ca.crt`.
 * Return: 0; -ENOENT: not in a pod (a variable is missing); -EINVAL: host or port is invalid; -ENOMEM.
 */
int lkg_kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                              struct lkg_kubeconfig **ret, struct lkg_error *err);

/* Wipes the secrets. */
struct lkg_kubeconfig *lkg_kubeconfig_free(struct lkg_kubeconfig *kubeconfig);
