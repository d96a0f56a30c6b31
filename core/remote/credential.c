/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credential: one check of all files is a struct lkg_look; it becomes the identity only if everything in
 * it fits together. The files of a check are remembered by file identity, so the next refresh costs one stat
 * per file until a file changes.
 */

#include <fcntl.h>
#include <limits.h>

#include <openssl/crypto.h>

#include <lkg/http.h>

#include "credential-internal.h"
#include "wipe.h"

#define POD_DIR     "/var/run/secrets/kubernetes.io/serviceaccount"
#define NODE_PREFIX "system:node:"
#define RETRY_NS    (10 * LKG_NSEC_PER_SEC) /* after a refusal: no file changes when a directory is repaired */

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

static enum lkg_found search(const struct lkg_credential *c)
{
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        char path[PATH_MAX];

        if (*c->kubeconfig)
                return LKG_FOUND_CONFIGURED;
        if (!host || !*host || !port || !*port)
                return LKG_FOUND_SOURCE;
        /*
         * A pod without a token (automountServiceAccountToken: false) is not meant to talk to the API
         * server.
         */
        if (snprintf(path, sizeof(path), "%s/token", c->pod_dir) >= (int)sizeof(path) ||
            !lkg_path_exists(AT_FDCWD, path))
                return LKG_FOUND_SOURCE;
        return LKG_FOUND_POD;
}

static void look_in_pod(struct lkg_look *l)
{
        struct lkg_error err = { 0 };
        int r = lkg_kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
                                          getenv("KUBERNETES_SERVICE_PORT"), l->c->pod_dir, &l->k, &err);

        l->kind = LKG_CREDENTIAL_IN_CLUSTER;
        if (r == -ENOMEM)
                l->no_memory = true;
        else if (r < 0)
                lkg_look_say(l, LKG_ERROR, LKG_K_KUBECONFIG, NULL, "%s", err.message);
}

/*
 * The node's file counts as a kubeconfig only if it looks like one; if it cannot be decoded, the last result
 * stays.
 */
static bool counts(struct lkg_look *l, const char *text, size_t size)
{
        int r;

        if (l->c->place != LKG_FOUND_SOURCE)
                return true;
        r = lkg_kubeconfig_detect(text, size);
        l->no_memory |= r == -ENOMEM;
        return r == 1 || (r == -EBADMSG && l->c->kind == LKG_CREDENTIAL_NODE);
}

/* A different kubeconfig may have a different plugin. */
static void note_config(struct lkg_look *l, const char *text, size_t size)
{
        char sha256[LKG_SHA256_HEX];

        if (lkg_sha256_hex(text, size, sha256) < 0) {
                l->no_memory = true;
                return;
        }
        if (strcmp(sha256, l->c->exec_config) != 0)
                l->c->exec.stale = true;
        memcpy(l->c->exec_config, sha256, sizeof(sha256));
}

static void look_at_kubeconfig(struct lkg_look *l)
{
        struct lkg_credential *c = l->c;
        bool in_source = c->place == LKG_FOUND_SOURCE;
        const char *file = in_source ? c->source_file : c->kubeconfig;
        const struct lkg_kubeconfig_options options = { .file = file,
                                                        .allow_exec = c->allow_exec,
                                                        .allow_insecure = c->allow_insecure,
                                                        .context = c->context };
        struct lkg_seen *seen =
                lkg_look_note(l, in_source ? strdup(file) : lkg_look_path(c, file), in_source);
        struct lkg_error err = { 0 };
        char *text = NULL;
        size_t size = 0;
        int r;

        if (!seen)
                return;
        l->kind = in_source ? LKG_CREDENTIAL_NODE : LKG_CREDENTIAL_KUBECONFIG;
        r = lkg_look_read(l, seen, &text, &size, &err);
        if (r == -ENOMEM) {
                l->no_memory = true;
        } else if (r == -ENOENT && in_source) {
                l->kind = LKG_CREDENTIAL_NONE;
        } else if (r < 0) {
                lkg_look_say(l, LKG_ERROR, LKG_K_KUBECONFIG, NULL, "%s", err.message);
        } else if (!counts(l, text, size)) {
                l->kind = LKG_CREDENTIAL_NONE;
        } else {
                note_config(l, text, size);
                r = lkg_kubeconfig_parse(text, size, &options, &l->k, &l->report);
                l->no_memory |= r == -ENOMEM;
                l->incomplete |= r < 0;
        }
        if (text)
                OPENSSL_cleanse(text, size);
        free(text);
}

/* ---- life ---- */

/* Return: 1 if the identity has changed or is gone. */
static int settle(struct lkg_credential *c, struct lkg_look *l)
{
        if (l->kind == LKG_CREDENTIAL_NONE) {
                bool had = c->identity;

                c->identity = lkg_identity_unref(c->identity);
                return had;
        }
        if (l->incomplete || !l->identity)
                return 0; /* the last complete identity stays; the findings say why */
        if (lkg_identity_same(c->identity, l->identity)) {
                /* the one difference that no request shows */
                c->identity->expires_ns = l->identity->expires_ns;
                return 0;
        }
        lkg_identity_unref(c->identity);
        c->identity = LKG_STEAL(l->identity);
        c->identity->serial = ++c->serial;
        return 1;
}

static void look_deinit(struct lkg_look *l)
{
        lkg_seen_forget(l->seen, &l->n_seen);
        lkg_report_deinit(&l->report);
        lkg_kubeconfig_free(l->k);
        lkg_identity_unref(l->identity);
}

static int look(struct lkg_credential *c, uint64_t now_ns)
{
        LKG_CLEANUP(look_deinit) struct lkg_look l = { .c = c, .now_ns = now_ns, .review_ns = UINT64_MAX };
        int r;

        if (c->place == LKG_FOUND_POD)
                look_in_pod(&l);
        else
                look_at_kubeconfig(&l);
        if (l.k && !l.no_memory)
                lkg_look_take(&l);
        if (l.no_memory)
                return -ENOMEM; /* nothing has changed, and the next refresh looks again */
        if (l.incomplete)
                lkg_look_review_at(&l, now_ns + RETRY_NS);
        r = settle(c, &l);
        lkg_seen_forget(c->seen, &c->n_seen);
        memcpy(c->seen, l.seen, sizeof(l.seen));
        c->n_seen = l.n_seen;
        l.n_seen = 0;
        lkg_report_deinit(&c->report);
        c->report = l.report;
        l.report = (struct lkg_report)LKG_REPORT_INIT;
        c->kind = l.kind;
        c->looked_ns = now_ns;
        c->review_ns = l.review_ns;
        c->looked = true;
        c->again = false;
        return r;
}

static bool is_due(const struct lkg_credential *c, uint64_t now_ns)
{
        if (!c->looked || c->again || now_ns >= c->review_ns || now_ns < c->looked_ns)
                return true;
        for (size_t i = 0; i < c->n_seen; i++)
                if (lkg_seen_changed(c, &c->seen[i]))
                        return true;
        return false;
}

int lkg_credential_refresh(struct lkg_credential *c, uint64_t now_ns)
{
        enum lkg_found place = search(c);

        c->again |= place != c->place;
        c->place = place;
        return is_due(c, now_ns) ? look(c, now_ns) : 0;
}

uint64_t lkg_credential_due_ns(const struct lkg_credential *c)
{
        return c->looked && !c->again ? c->review_ns : 0;
}

void lkg_credential_rejected(struct lkg_credential *c)
{
        c->again = true;
        c->exec.stale = true;
}

void lkg_credential_exec_done(struct lkg_credential *c, const char *text, size_t size, const char *why)
{
        if (lkg_exec_state_done(&c->exec, text, size, why) < 0)
                c->exec.no_answer = true; /* asked again later */
        c->again = true;
}

int lkg_credential_new(const struct lkg_credential_options *o, struct lkg_credential **ret)
{
        struct lkg_credential *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->kubeconfig = strdup(o->kubeconfig ? o->kubeconfig : "");
        c->source_path = strdup(o->source_path);
        c->mount_point = strdup(o->mount_point ? o->mount_point : "");
        c->pod_dir = strdup(o->pod_dir ? o->pod_dir : POD_DIR);
        if (asprintf(&c->source_file, "%s/" LKG_CREDENTIAL_NODE_FILE, o->source_path) < 0)
                c->source_file = NULL;
        c->context = o->context ? strdup(o->context) : NULL;
        c->source_fd = o->source_fd;
        c->allow_exec = o->allow_exec;
        c->allow_insecure = o->allow_insecure;
        c->run_exec = o->run_exec;
        c->userdata = o->userdata;
        if (!c->kubeconfig || !c->source_path || !c->mount_point || !c->pod_dir || !c->source_file ||
            (o->context && !c->context)) {
                lkg_credential_free(c);
                return -ENOMEM;
        }
        *ret = c;
        return 0;
}

struct lkg_credential *lkg_credential_free(struct lkg_credential *c)
{
        if (!c)
                return NULL;
        lkg_seen_forget(c->seen, &c->n_seen);
        lkg_report_deinit(&c->report);
        lkg_identity_unref(c->identity);
        lkg_exec_state_deinit(&c->exec);
        free(c->kubeconfig);
        free(c->source_path);
        free(c->mount_point);
        free(c->pod_dir);
        free(c->source_file);
        free(c->context);
        free(c);
        return NULL;
}

/* So that the process that runs a plugin need not open the CA file. */
static void take_ca_as_data(struct lkg_look *l)
{
        struct lkg_file_or_data *ca = &l->k->ca;
        char *text = ca->path ? lkg_look_part(l, ca, LKG_ERROR) : NULL;

        if (!text)
                return;
        free(LKG_STEAL(ca->path));
        ca->data = text;
        ca->size = strlen(text);
}

/* A plugin next to the kubeconfig is named by the kubeconfig's path, which may be the one in the view. */
static void take_command(struct lkg_look *l)
{
        char **command = l->k->exec && l->k->exec->argv ? &l->k->exec->argv[0] : NULL;
        char *path = command && strchr(*command, '/') ? lkg_look_path(l->c, *command) : NULL;

        if (path) {
                lkg_wipe_free(*command);
                *command = path;
        } else if (command && strchr(*command, '/')) {
                l->no_memory = true;
        }
}

int lkg_credential_load(const struct lkg_credential_options *options, struct lkg_kubeconfig **ret,
                        struct lkg_report *report)
{
        struct lkg_credential *c = NULL;
        struct lkg_look l = { .review_ns = UINT64_MAX };
        int r = lkg_credential_new(options, &c);

        if (r < 0)
                return r;
        l.c = c;
        c->place = search(c);
        if (c->place != LKG_FOUND_POD)
                look_at_kubeconfig(&l);
        if (l.k) {
                take_ca_as_data(&l);
                take_command(&l);
        }
        lkg_report_append(report, &l.report);
        if (l.no_memory)
                r = -ENOMEM;
        else if (l.incomplete)
                r = -EBADMSG;
        else if (!l.k)
                r = -ENOENT;
        else
                *ret = LKG_STEAL(l.k);
        look_deinit(&l);
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
