/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credential. Every refresh reads all its files, which are a kubeconfig and at most four more of some KiB, into a struct credential_look. That
 * becomes the identity only if everything in it fits together, and is another one only if a server would see a difference.
 *
 * The expiry of a certificate is reported early: when less than a tenth of its lifetime and less than 30
 * days are left. (A kubelet renews at 70 to 90 %, so a working rotation never gets there.) An expired
 * certificate is still used: the server decides, and our clock may be wrong. For tokens only the expiry
 * itself is reported, because they are renewed just before it.
 */
#include <fcntl.h>
#include <limits.h>

#include <openssl/crypto.h>

#include <lkg/file.h>
#include <lkg/http.h>
#include <lkg/text.h>

#include "credential-internal.h"

#define POD_DIR         "/var/run/secrets/kubernetes.io/serviceaccount"
#define NODE_FILE       "kubelet.conf"
#define NODE_PREFIX     "system:node:"
#define FILE_BYTES_MAX  (1u << 20)
#define RETRY_NS        (10 * LKG_NSEC_PER_SEC) /* after a refusal */
#define ENDS_SOON_NS    (30 * 24 * 3600 * LKG_NSEC_PER_SEC)
#define ENDS_SOON_SHARE 10u

enum code {
        CODE_KUBECONFIG = 7001,
        CODE_FILE = 7002, /* a file that it names */
        CODE_EXEC = 7003,
        CODE_ENDS = 7004, /* certificate or token */
};

/* Where the search ends. */
enum search_end { FOUND_CONFIGURED, FOUND_POD, FOUND_SOURCE };

struct lkg_credential {
        struct lkg_credential_options options; /* with texts of its own; only the context may be NULL */
        char *source_file;

        enum search_end place;
        enum lkg_credential_kind kind;
        bool looked;        /* at least once */
        uint64_t review_ns; /* look again then at the latest; UINT64_MAX = whenever something is asked for */
        struct lkg_report report;
        struct lkg_identity *identity;
        uint64_t serial;
        struct lkg_exec_state exec;
        char exec_config[LKG_SHA256_HEX]; /* of the kubeconfig whose plugin was asked */
};

/* One look at all files. */
struct credential_look {
        struct lkg_credential *c;
        uint64_t now_ns, review_ns;
        struct lkg_report report;
        struct lkg_kubeconfig *k;
        enum lkg_credential_kind kind;
        struct lkg_identity *identity; /* being made */
        bool incomplete;               /* something is missing or does not fit; said */
};

/* ---- findings ---- */

const char *lkg_credential_file(const struct lkg_credential *c)
{
        if (c->place == FOUND_CONFIGURED)
                return c->options.kubeconfig;
        if (c->place == FOUND_POD)
                return c->options.pod_dir;
        return c->looked && c->kind == LKG_CREDENTIAL_NONE ? "" : c->source_file;
}

/*
 * Add a finding. @x NULL: about the kubeconfig as a whole; without a field: about the file. An error makes the look incomplete, unless
 * it is about an expiry.
 */
static void LKG_PRINTF(5, 6)
        say_finding(struct credential_look *l, enum lkg_severity severity, enum code code,
                    const struct lkg_file_or_data *x, const char *fmt, ...)
{
        struct lkg_where where = { .file = lkg_credential_file(l->c) };
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        va_list ap;

        if (x && x->field)
                where = (struct lkg_where){ l->k->file, x->line, x->column };
        else if (x && x->path)
                where.file = x->path;
        va_start(ap, fmt);
        text = lkg_vformat(fmt, ap);
        va_end(ap);
        lkg_report_add(&l->report, severity, code, *where.file ? &where : NULL, "%s%s%s",
                       x && x->field ? x->field : "", x && x->field ? ": " : "", text);
        if (severity == LKG_ERROR && code != CODE_ENDS)
                l->incomplete = true;
}

/* Another look is due then. */
static void review_at(struct credential_look *l, uint64_t at_ns)
{
        if (at_ns > l->now_ns && at_ns < l->review_ns)
                l->review_ns = at_ns;
}

/* ---- files ---- */

/* lkgfs must not read through its own view: a path below it is one below the source directory. Heap. */
static char *real_path(const struct lkg_credential *c, const char *path)
{
        size_t n = strlen(c->options.mount_point);

        if (n == 0 || strcmp(c->options.mount_point, c->options.source_path) == 0 ||
            strncmp(path, c->options.mount_point, n) != 0 || path[n] != '/')
                return lkg_copy(path);
        return lkg_format("%s%s", c->options.source_path, path + n);
}

/* @path NULL: the node's own file in the source directory. */
static int open_file(const struct lkg_credential *c, const char *path, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct stat st;

        if (path)
                return lkg_open_owned(path, &st, err);
        fd = lkg_open_trusted(c->options.source_fd, NODE_FILE, &st, err);
        if (fd < 0 || (lkg_is_trusted_user(st.st_uid) && !(st.st_mode & (S_IWGRP | S_IWOTH))))
                return LKG_STEAL_FD(fd);
        return lkg_error_set(err, -EPERM, NULL, "%s is not owned by root or is writable by others.",
                             c->source_file);
}

/* Return: 0; -errno with @err. */
static int read_file(struct credential_look *l, const char *path, char **ret, size_t *ret_size,
                     struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *real = path ? real_path(l->c, path) : NULL;
        LKG_CLEANUP(lkg_closep) int fd = open_file(l->c, real, err);
        int r = fd < 0 ? fd : lkg_read_file(fd, FILE_BYTES_MAX, ret, ret_size, err);

        return fd >= 0 && r < 0 ? lkg_error_wrap(err, r, "%s", real ? real : l->c->source_file) : r;
}

/* Read @x as a text without NUL bytes; NULL if it is not given or cannot be read. @severity: of a finding about that */
static char *read_part(struct credential_look *l, const struct lkg_file_or_data *x,
                       enum lkg_severity severity)
{
        LKG_CLEANUP(lkg_wipe_freep) char *text = NULL;
        struct lkg_error err = { 0 };
        size_t size = 0;

        if (x->data) {
                text = lkg_must(lkg_span_dup(lkg_span(x->data, x->size)));
                size = x->size;
        } else if (x->path && read_file(l, x->path, &text, &size, &err) < 0) {
                say_finding(l, severity, CODE_FILE, x, "%s", err.message);
        }
        if (!text || strlen(text) == size)
                return LKG_STEAL(text);
        OPENSSL_cleanse(text, size);
        say_finding(l, severity, CODE_FILE, x, "it has a NUL byte; want a PEM file or a token, plain text");
        return NULL;
}

/* ---- certificate, key, token ---- */

static void take_ca(struct credential_look *l)
{
        l->identity->ca = read_part(l, &l->k->ca, LKG_ERROR);
        if (l->identity->ca && lkg_certificate_count(l->identity->ca) <= 0)
                say_finding(l, LKG_ERROR, CODE_FILE, &l->k->ca,
                            "there is no certificate in it; want PEM, -----BEGIN CERTIFICATE-----");
}

static void judge_times(struct credential_look *l, const struct lkg_file_or_data *x, uint64_t begins_ns,
                        uint64_t ends_ns)
{
        uint64_t soon_ns = ends_ns > begins_ns ? (ends_ns - begins_ns) / ENDS_SOON_SHARE : 0;
        char text[21];

        if (soon_ns > ENDS_SOON_NS)
                soon_ns = ENDS_SOON_NS;
        if (l->now_ns < begins_ns) {
                lkg_format_rfc3339(begins_ns, text);
                say_finding(l, LKG_WARNING, CODE_ENDS, x,
                            "the certificate is valid from %s on only; it is used all the same, is the "
                            "clock right?",
                            text);
                review_at(l, begins_ns);
        }
        if (ends_ns == UINT64_MAX)
                return;
        lkg_format_rfc3339(ends_ns, text);
        if (l->now_ns >= ends_ns) {
                say_finding(l, LKG_ERROR, CODE_ENDS, x,
                            "the certificate has ended at %s; it is used until there is another one", text);
        } else if (l->now_ns >= ends_ns - soon_ns) {
                say_finding(l, LKG_WARNING, CODE_ENDS, x,
                            "the certificate ends at %s, and nobody has renewed it yet", text);
                review_at(l, ends_ns);
        } else {
                review_at(l, ends_ns - soon_ns);
        }
}

static void judge_key(struct credential_look *l)
{
        const struct lkg_identity *i = l->identity;

        switch (lkg_certificate_key(i->certificate, i->key)) {
        case LKG_KEY_FITS:
                break;
        case LKG_KEY_MISSING:
                say_finding(l, LKG_ERROR, CODE_FILE, &l->k->key,
                            "there is no private key in it; want PEM, -----BEGIN PRIVATE KEY-----");
                break;
        case LKG_KEY_ENCRYPTED:
                say_finding(l, LKG_ERROR, CODE_FILE, &l->k->key,
                            "the key is encrypted, and nobody can type its passphrase here; want a key "
                            "without one");
                break;
        case LKG_KEY_OTHER:
                say_finding(l, LKG_ERROR, CODE_FILE, &l->k->key,
                            "the key does not belong to the certificate of %s: half of a rotation, or "
                            "another pair",
                            l->k->certificate.field ? l->k->certificate.field : "client-certificate");
                break;
        }
}

static void take_certificate(struct credential_look *l)
{
        struct lkg_identity *i = l->identity;
        uint64_t begins_ns, ends_ns;

        i->certificate = read_part(l, &l->k->certificate, LKG_ERROR);
        i->key = read_part(l, &l->k->key, LKG_ERROR);
        if (!i->certificate || !i->key)
                return;
        if (lkg_identity_read_certificate(i, &begins_ns, &ends_ns) < 0) {
                say_finding(l, LKG_ERROR, CODE_FILE, &l->k->certificate,
                            "there is no certificate in it; want PEM, -----BEGIN CERTIFICATE-----");
                return;
        }
        judge_key(l);
        judge_times(l, &l->k->certificate, begins_ns, ends_ns);
}

/* Read the token from a file; NULL, with a finding, if it cannot be used. */
static char *read_token_file(struct credential_look *l)
{
        const struct lkg_file_or_data *x = &l->k->token_file;
        enum lkg_severity severity = l->identity->token ? LKG_WARNING : LKG_ERROR; /* that one counts then */
        LKG_CLEANUP(lkg_wipe_freep) char *text = read_part(l, x, severity);
        struct lkg_span token;

        if (!text)
                return NULL;
        token = lkg_span_trim(lkg_span(text, strlen(text)));
        for (size_t i = 0; i < token.size; i++)
                if ((unsigned char)token.data[i] <= ' ' || token.data[i] == 0x7f) {
                        say_finding(l, severity, CODE_FILE, x,
                                    "the token has white space or a control character in it");
                        return NULL;
                }
        if (token.size == 0) {
                say_finding(l, severity, CODE_FILE, x, "the file is empty; want a token");
                return NULL;
        }
        return lkg_must(lkg_span_dup(token));
}

static void take_token(struct credential_look *l)
{
        struct lkg_identity *i = l->identity;
        char *from_file = l->k->token_file.path ? read_token_file(l) : NULL;
        uint64_t ends_ns;
        char text[21];

        if (from_file) {
                lkg_wipe_free(i->token);
                i->token = from_file;
        }
        ends_ns = i->token ? lkg_token_ends_ns(i->token) : 0;
        if (ends_ns == 0)
                return;
        if (i->expires_ns == 0 || ends_ns < i->expires_ns)
                i->expires_ns = ends_ns;
        review_at(l, ends_ns);
        if (l->now_ns < ends_ns)
                return;
        lkg_format_rfc3339(ends_ns, text);
        say_finding(l, LKG_ERROR, CODE_ENDS, l->k->token_file.path ? &l->k->token_file : NULL,
                    "the token has ended at %s; it is used until there is another one", text);
}

/* ---- the exec plugin ---- */

static void copy_text(char **to, const char *text)
{
        lkg_wipe_free(*to);
        *to = lkg_copy(text);
}

static void take_exec(struct credential_look *l)
{
        struct lkg_exec_state *exec = &l->c->exec;
        struct lkg_identity *i = l->identity;
        uint64_t begins_ns, ends_ns;

        exec->wanted = l->k->exec && !i->token && !l->k->token_file.path && !i->username;
        if (!exec->wanted) {
                lkg_exec_state_deinit(exec);
                return;
        }
        review_at(l, lkg_exec_state_step(exec, l->k->exec->api_version, l->now_ns, l->c->options.run_exec,
                                         l->c->options.userdata));
        if (exec->why)
                say_finding(l, exec->have ? LKG_WARNING : LKG_ERROR, CODE_EXEC, NULL, "exec plugin %s: %s",
                            l->k->exec->argv[0], exec->why);
        if (!exec->have) {
                if (!exec->why)
                        say_finding(l, LKG_NOTE, CODE_EXEC, NULL, "exec plugin %s: its answer is waited for",
                                    l->k->exec->argv[0]);
                l->incomplete = true;
                return;
        }
        copy_text(&i->token, exec->token);
        if (exec->certificate) {
                copy_text(&i->certificate, exec->certificate);
                copy_text(&i->key, exec->key);
                (void)lkg_identity_read_certificate(i, &begins_ns, &ends_ns);
        }
        if (exec->expires_ns)
                i->expires_ns = exec->expires_ns;
}

/* Fill l->identity from l->k, which loses what it has of one. */
static void take_all(struct credential_look *l)
{
        l->identity = lkg_identity_new();
        *l->identity = l->k->identity;
        l->identity->refs = 1;
        l->k->identity = (struct lkg_identity){ 0 };
        take_ca(l);
        take_certificate(l);
        take_token(l);
        take_exec(l);
}

/* ---- the kubeconfig ---- */

static const char *const kind_names[] = {
        [LKG_CREDENTIAL_NONE] = "none",
        [LKG_CREDENTIAL_KUBECONFIG] = "kubeconfig",
        [LKG_CREDENTIAL_NODE] = "node",
        [LKG_CREDENTIAL_IN_CLUSTER] = "in-cluster",
};

const char *lkg_credential_kind_name(enum lkg_credential_kind kind)
{
        return (size_t)kind < LKG_ARRAY_SIZE(kind_names) ? kind_names[kind] : "?";
}

static enum search_end search(const struct lkg_credential *c)
{
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        char path[PATH_MAX];

        if (*c->options.kubeconfig)
                return FOUND_CONFIGURED;
        if (!host || !*host || !port || !*port)
                return FOUND_SOURCE;
        /*
         * A pod without a token (automountServiceAccountToken: false) is not meant to talk to the API
         * server.
         */
        if (snprintf(path, sizeof(path), "%s/token", c->options.pod_dir) >= (int)sizeof(path) ||
            !lkg_path_exists(AT_FDCWD, path))
                return FOUND_SOURCE;
        return FOUND_POD;
}

static void look_in_pod(struct credential_look *l)
{
        struct lkg_error err = { 0 };

        l->kind = LKG_CREDENTIAL_IN_CLUSTER;
        if (lkg_kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
                                      l->c->options.pod_dir, &l->k, &err) < 0)
                say_finding(l, LKG_ERROR, CODE_KUBECONFIG, NULL, "%s", err.message);
}

/* A different kubeconfig may have a different plugin. */
static void note_config(struct credential_look *l, const char *text, size_t size)
{
        char sha256[LKG_SHA256_HEX];

        (void)lkg_need(lkg_sha256_hex(text, size, sha256));
        if (strcmp(sha256, l->c->exec_config) != 0)
                l->c->exec.stale = true;
        memcpy(l->c->exec_config, sha256, sizeof(sha256));
}

/*
 * The node's file counts as a kubeconfig only if it looks like one; if it cannot be decoded, the last result
 * stays.
 */
static bool counts(struct credential_look *l, const char *text, size_t size)
{
        int r;

        if (l->c->place != FOUND_SOURCE)
                return true;
        r = lkg_kubeconfig_detect(text, size);
        return r == 1 || (r == -EBADMSG && l->c->kind == LKG_CREDENTIAL_NODE);
}

static void look_at_kubeconfig(struct credential_look *l)
{
        const struct lkg_credential *c = l->c;
        bool in_source = c->place == FOUND_SOURCE;
        const struct lkg_kubeconfig_options options = { .file = in_source ? c->source_file
                                                                          : c->options.kubeconfig,
                                                        .allow_exec = c->options.allow_exec,
                                                        .allow_insecure = c->options.allow_insecure,
                                                        .context = c->options.context };
        struct lkg_error err = { 0 };
        char *text = NULL;
        size_t size = 0;
        int r = read_file(l, in_source ? NULL : c->options.kubeconfig, &text, &size, &err);

        l->kind = in_source ? LKG_CREDENTIAL_NODE : LKG_CREDENTIAL_KUBECONFIG;
        if (r == -ENOENT && in_source) {
                l->kind = LKG_CREDENTIAL_NONE;
        } else if (r < 0) {
                say_finding(l, LKG_ERROR, CODE_KUBECONFIG, NULL, "%s", err.message);
        } else if (!counts(l, text, size)) {
                l->kind = LKG_CREDENTIAL_NONE;
        } else {
                note_config(l, text, size);
                l->incomplete |= lkg_kubeconfig_parse(text, size, &options, &l->k, &l->report) < 0;
        }
        if (text)
                OPENSSL_cleanse(text, size);
        free(text);
}

/* ---- life ---- */

/* Return: has the identity changed, or is it gone? */
static bool settle(struct lkg_credential *c, struct credential_look *l)
{
        if (l->kind == LKG_CREDENTIAL_NONE) {
                bool had = c->identity;

                c->identity = lkg_identity_unref(c->identity);
                return had;
        }
        if (l->incomplete || !l->identity)
                return false; /* the last complete identity stays; the findings say why */
        if (lkg_identity_same(c->identity, l->identity)) {
                /* the one difference that no request shows */
                c->identity->expires_ns = l->identity->expires_ns;
                return false;
        }
        lkg_identity_unref(c->identity);
        c->identity = LKG_STEAL(l->identity);
        c->identity->serial = ++c->serial;
        return true;
}

static void look_deinit(struct credential_look *l)
{
        lkg_report_deinit(&l->report);
        lkg_kubeconfig_free(l->k);
        lkg_identity_unref(l->identity);
}

bool lkg_credential_refresh(struct lkg_credential *c, uint64_t now_ns)
{
        LKG_CLEANUP(look_deinit)
        struct credential_look l = { .c = c, .now_ns = now_ns, .review_ns = UINT64_MAX };

        c->place = search(c);
        if (c->place == FOUND_POD)
                look_in_pod(&l);
        else
                look_at_kubeconfig(&l);
        if (l.k)
                take_all(&l);
        if (l.incomplete)
                review_at(&l, now_ns + RETRY_NS);
        lkg_report_deinit(&c->report);
        c->report = l.report;
        l.report = (struct lkg_report)LKG_REPORT_INIT;
        c->kind = l.kind;
        c->review_ns = l.review_ns;
        c->looked = true;
        return settle(c, &l);
}

uint64_t lkg_credential_due_ns(const struct lkg_credential *c)
{
        return c->review_ns;
}

void lkg_credential_rejected(struct lkg_credential *c)
{
        c->review_ns = 0;
        c->exec.stale = true;
}

void lkg_credential_exec_done(struct lkg_credential *c, const char *text, size_t size, const char *why,
                              uint64_t now_ns)
{
        lkg_exec_state_done(&c->exec, text, size, why, now_ns);
        c->review_ns = 0;
}

#define OPTION(name) offsetof(struct lkg_credential_options, name)
static const size_t option_texts[] = { OPTION(kubeconfig), OPTION(source_path), OPTION(mount_point),
                                       OPTION(pod_dir), OPTION(context) };

static char **option_text(struct lkg_credential *c, size_t i)
{
        return (char **)(void *)((char *)&c->options + option_texts[i]);
}

struct lkg_credential *lkg_credential_new(const struct lkg_credential_options *o)
{
        struct lkg_credential *c = lkg_must(calloc(1, sizeof(*c)));

        c->options = *o;
        c->options.kubeconfig = o->kubeconfig ? o->kubeconfig : "";
        c->options.mount_point = o->mount_point ? o->mount_point : "";
        c->options.pod_dir = o->pod_dir ? o->pod_dir : POD_DIR;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(option_texts); i++) {
                char **text = option_text(c, i);

                *text = lkg_copy(*text);
        }
        c->source_file = lkg_format("%s/" NODE_FILE, o->source_path);
        return c;
}

struct lkg_credential *lkg_credential_free(struct lkg_credential *c)
{
        if (!c)
                return NULL;
        lkg_report_deinit(&c->report);
        lkg_identity_unref(c->identity);
        lkg_exec_state_deinit(&c->exec);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(option_texts); i++)
                free(*option_text(c, i));
        free(c->source_file);
        free(c);
        return NULL;
}

/* So that the process that runs a plugin need not open the CA file. */
static void take_ca_as_data(struct credential_look *l)
{
        struct lkg_file_or_data *ca = &l->k->ca;
        char *text = ca->path ? read_part(l, ca, LKG_ERROR) : NULL;

        if (!text)
                return;
        free(LKG_STEAL(ca->path));
        ca->data = text;
        ca->size = strlen(text);
}

/* A plugin next to the kubeconfig is named by the kubeconfig's path, which may be the one in the view. */
static void take_command(struct credential_look *l)
{
        char **command = l->k->exec && l->k->exec->argv ? &l->k->exec->argv[0] : NULL;
        char *path;

        if (!command || !strchr(*command, '/'))
                return;
        path = real_path(l->c, *command);
        lkg_wipe_free(*command);
        *command = path;
}

int lkg_credential_load(const struct lkg_credential_options *options, struct lkg_kubeconfig **ret,
                        struct lkg_report *report)
{
        struct lkg_credential *c = lkg_credential_new(options);
        LKG_CLEANUP(look_deinit) struct credential_look l = { .c = c, .review_ns = UINT64_MAX };
        int r = 0;

        c->place = search(c);
        if (c->place != FOUND_POD)
                look_at_kubeconfig(&l);
        if (l.k) {
                take_ca_as_data(&l);
                take_command(&l);
        }
        lkg_report_append(report, &l.report);
        if (l.incomplete)
                r = -EBADMSG;
        else if (!l.k)
                r = -ENOENT;
        else
                *ret = LKG_STEAL(l.k);
        lkg_credential_free(c);
        return r;
}

struct lkg_identity *lkg_credential_identity(const struct lkg_credential *c)
{
        return c->identity;
}

enum lkg_credential_kind lkg_credential_kind(const struct lkg_credential *c)
{
        return c->kind;
}

const struct lkg_report *lkg_credential_findings(const struct lkg_credential *c)
{
        return &c->report;
}

bool lkg_credential_is_node(const struct lkg_credential *c, const char *name)
{
        const struct lkg_identity *i = c->identity;
        size_t n = strlen(NODE_PREFIX);

        /* With a token, a password or impersonation the server may see another user, which is unknown here. */
        return i && i->user && i->is_node_group && !i->token && !i->username && !i->impersonate && *name &&
               strncmp(i->user, NODE_PREFIX, n) == 0 && strcmp(i->user + n, name) == 0;
}
