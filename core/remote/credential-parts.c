/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files: CA, certificate and key, token, exec plugin.
 *
 * The expiry of a certificate is reported early: when less than a tenth of its lifetime and less than 30
 * days are left. (A kubelet renews at 70 to 90 %, so a working rotation never gets there.) An expired
 * certificate is still used: the server decides, and our clock may be wrong. For tokens only the expiry
 * itself is reported, because they are renewed just before it.
 */
#include <lkg/text.h>

#include "certificate.h"
#include "credential-internal.h"
#include "wipe.h"

#define TOKEN_AGE_NS    (60 * LKG_NSEC_PER_SEC)
#define ENDS_SOON_NS    (30 * 24 * 3600 * LKG_NSEC_PER_SEC)
#define ENDS_SOON_SHARE 10u

/* ---- what they say ---- */

void lkg_look_review_at(struct lkg_look *l, uint64_t at_ns)
{
        if (at_ns > l->now_ns && at_ns < l->review_ns)
                l->review_ns = at_ns;
}

static void take_ca(struct lkg_look *l)
{
        l->identity->ca = lkg_look_part(l, &l->k->ca, LKG_ERROR);
        if (l->identity->ca && lkg_certificate_count(l->identity->ca, strlen(l->identity->ca)) <= 0)
                lkg_look_say(l, LKG_ERROR, LKG_K_FILE, &l->k->ca,
                             "there is no certificate in it; want PEM, -----BEGIN CERTIFICATE-----");
}

static void judge_times(struct lkg_look *l, const struct lkg_file_or_data *x, uint64_t begins_ns,
                        uint64_t ends_ns)
{
        uint64_t soon_ns = ends_ns > begins_ns ? (ends_ns - begins_ns) / ENDS_SOON_SHARE : 0;
        char text[21];

        if (soon_ns > ENDS_SOON_NS)
                soon_ns = ENDS_SOON_NS;
        if (l->now_ns < begins_ns) {
                lkg_format_rfc3339(begins_ns, text);
                lkg_look_say(l, LKG_WARNING, LKG_K_ENDS, x,
                             "the certificate is valid from %s on only; it is used all the same, is the "
                             "clock right?",
                             text);
                lkg_look_review_at(l, begins_ns);
        }
        if (ends_ns == UINT64_MAX)
                return;
        lkg_format_rfc3339(ends_ns, text);
        if (l->now_ns >= ends_ns) {
                lkg_look_say(l, LKG_ERROR, LKG_K_ENDS, x,
                             "the certificate has ended at %s; it is used until there is another one", text);
        } else if (l->now_ns >= ends_ns - soon_ns) {
                lkg_look_say(l, LKG_WARNING, LKG_K_ENDS, x,
                             "the certificate ends at %s, and nobody has renewed it yet", text);
                lkg_look_review_at(l, ends_ns);
        } else {
                lkg_look_review_at(l, ends_ns - soon_ns);
        }
}

static void judge_key(struct lkg_look *l)
{
        const struct lkg_identity *i = l->identity;

        switch (lkg_certificate_key(i->certificate, strlen(i->certificate), i->key, strlen(i->key))) {
        case LKG_KEY_FITS:
                break;
        case LKG_KEY_MISSING:
                lkg_look_say(l, LKG_ERROR, LKG_K_FILE, &l->k->key,
                             "there is no private key in it; want PEM, -----BEGIN PRIVATE KEY-----");
                break;
        case LKG_KEY_ENCRYPTED:
                lkg_look_say(l, LKG_ERROR, LKG_K_FILE, &l->k->key,
                             "the key is encrypted, and nobody can type its passphrase here; want a key "
                             "without one");
                break;
        case LKG_KEY_OTHER:
                lkg_look_say(l, LKG_ERROR, LKG_K_FILE, &l->k->key,
                             "the key does not belong to the certificate of %s: half of a rotation, or "
                             "another pair",
                             l->k->certificate.field ? l->k->certificate.field : "client-certificate");
                break;
        }
}

/*
 * From the certificate of the current identity.
 * Return: false if there is none.
 */
static bool take_subject(struct lkg_look *l, uint64_t *ret_begins_ns, uint64_t *ret_ends_ns)
{
        struct lkg_identity *i = l->identity;
        struct lkg_certificate certificate;

        if (lkg_certificate_read(i->certificate, strlen(i->certificate), &certificate) < 0)
                return false;
        *ret_begins_ns = certificate.begins_ns;
        *ret_ends_ns = certificate.ends_ns;
        free(i->user);
        i->user = LKG_STEAL(certificate.user);
        i->is_node_group = certificate.is_node_group;
        if (certificate.ends_ns != UINT64_MAX)
                i->expires_ns = certificate.ends_ns;
        lkg_certificate_deinit(&certificate);
        return true;
}

static void take_certificate(struct lkg_look *l)
{
        struct lkg_identity *i = l->identity;
        uint64_t begins_ns, ends_ns;

        i->certificate = lkg_look_part(l, &l->k->certificate, LKG_ERROR);
        i->key = lkg_look_part(l, &l->k->key, LKG_ERROR);
        if (!i->certificate || !i->key)
                return;
        if (!take_subject(l, &begins_ns, &ends_ns)) {
                lkg_look_say(l, LKG_ERROR, LKG_K_FILE, &l->k->certificate,
                             "there is no certificate in it; want PEM, -----BEGIN CERTIFICATE-----");
                return;
        }
        judge_key(l);
        judge_times(l, &l->k->certificate, begins_ns, ends_ns);
}

/* Read the token from a file; NULL, with a finding, if it cannot be used. */
static char *read_token_file(struct lkg_look *l)
{
        const struct lkg_file_or_data *x = &l->k->token_file;
        enum lkg_severity severity = l->k->token ? LKG_WARNING : LKG_ERROR; /* that one counts then */
        LKG_CLEANUP(lkg_wipe_freep) char *text = lkg_look_part(l, x, severity);
        struct lkg_span token;
        char *copy;

        if (!text)
                return NULL;
        token = lkg_span_trim(lkg_span(text, strlen(text)));
        for (size_t i = 0; i < token.size; i++)
                if ((unsigned char)token.data[i] <= ' ' || token.data[i] == 0x7f) {
                        lkg_look_say(l, severity, LKG_K_FILE, x,
                                     "the token has white space or a control character in it");
                        return NULL;
                }
        if (token.size == 0) {
                lkg_look_say(l, severity, LKG_K_FILE, x, "the file is empty; want a token");
                return NULL;
        }
        copy = lkg_span_dup(token);
        l->no_memory |= !copy;
        return copy;
}

static void take_token(struct lkg_look *l)
{
        struct lkg_identity *i = l->identity;
        uint64_t ends_ns;
        char text[21];

        if (l->k->token_file.path) {
                i->token = read_token_file(l);
                lkg_look_review_at(l, l->now_ns + TOKEN_AGE_NS);
        }
        if (!i->token && l->k->token) {
                i->token = strdup(l->k->token);
                l->no_memory |= !i->token;
        }
        ends_ns = i->token ? lkg_token_ends_ns(i->token) : 0;
        if (ends_ns == 0)
                return;
        if (i->expires_ns == 0 || ends_ns < i->expires_ns)
                i->expires_ns = ends_ns;
        lkg_look_review_at(l, ends_ns);
        if (l->now_ns < ends_ns)
                return;
        lkg_format_rfc3339(ends_ns, text);
        lkg_look_say(l, LKG_ERROR, LKG_K_ENDS, l->k->token_file.path ? &l->k->token_file : NULL,
                     "the token has ended at %s; it is used until there is another one", text);
}

/* ---- the exec plugin ---- */

static bool copy_text(struct lkg_look *l, char **to, const char *text)
{
        lkg_wipe_free(*to);
        *to = text ? strdup(text) : NULL;
        l->no_memory |= text && !*to;
        return *to;
}

static void take_exec(struct lkg_look *l)
{
        struct lkg_exec_state *exec = &l->c->exec;
        struct lkg_identity *i = l->identity;
        uint64_t review_ns, begins_ns, ends_ns;

        exec->wanted = l->k->exec && !i->token && !l->k->token_file.path && !l->k->username;
        if (!exec->wanted) {
                lkg_exec_state_deinit(exec);
                return;
        }
        if (lkg_exec_state_step(exec, l->k->exec->api_version, l->now_ns, l->c->run_exec, l->c->userdata,
                                &review_ns) < 0)
                l->no_memory = true;
        lkg_look_review_at(l, review_ns);
        if (exec->why)
                lkg_look_say(l, exec->have ? LKG_WARNING : LKG_ERROR, LKG_K_EXEC, NULL, "exec plugin %s: %s",
                             l->k->exec->argv[0], exec->why);
        if (!exec->have) {
                if (!exec->why)
                        lkg_look_say(l, LKG_NOTE, LKG_K_EXEC, NULL,
                                     "exec plugin %s: its answer is waited for", l->k->exec->argv[0]);
                l->incomplete = true;
                return;
        }
        copy_text(l, &i->token, exec->token);
        if (exec->certificate && copy_text(l, &i->certificate, exec->certificate) &&
            copy_text(l, &i->key, exec->key))
                (void)take_subject(l, &begins_ns, &ends_ns);
        if (exec->expires_ns)
                i->expires_ns = exec->expires_ns;
}

/* ---- the whole ---- */

void lkg_look_take(struct lkg_look *l)
{
        struct lkg_identity *i = l->identity = lkg_identity_new();

        l->no_memory |= !i;
        if (!i)
                return;
        i->insecure = l->k->insecure;
        i->disable_compression = l->k->disable_compression;
        copy_text(l, &i->server, l->k->server);
        copy_text(l, &i->tls_server_name, l->k->tls_server_name);
        copy_text(l, &i->proxy_url, l->k->proxy_url);
        copy_text(l, &i->username, l->k->username);
        copy_text(l, &i->password, l->k->password);
        copy_text(l, &i->impersonate, l->k->impersonate);
        take_ca(l);
        take_certificate(l);
        take_token(l);
        take_exec(l);
}
