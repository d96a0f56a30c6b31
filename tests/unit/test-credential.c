/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credential, in steps: rows/credential.rows. Where it is searched for, the requirements for its files, complete and partial rotation, expiry,
 * and exec plugins: when one is run, what it may answer, and what is used meanwhile. $TOP is the directory that stands for the host, $TOP/src the
 * source directory, $TOP/pod that of a service account.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <lkg/file.h>
#include <lkg/http.h>

#include "rows.h"
#include "tmpdir.h"

#define EXEC "exec: {command: %s, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"

/* ---- certificates ---- */

struct pair {
        char *certificate, *key;
};

static char *bio_text(BIO *bio)
{
        char *data, *copy;
        long n = BIO_get_mem_data(bio, &data);

        copy = strndup(data, (size_t)n);
        assert_non_null(copy);
        BIO_free(bio);
        return copy;
}

static void add_name(X509 *x, const char *field, const char *value)
{
        if (value)
                assert_int_equal(X509_NAME_add_entry_by_txt(X509_get_subject_name(x), field, MBSTRING_UTF8,
                                                            (const unsigned char *)value, -1, -1, 0),
                                 1);
}

/* Days from @now_ns on, negative = in the past. */
static struct pair make_pair(uint64_t now_ns, const char *group, const char *user, int from_days,
                             int to_days)
{
        struct pair pair;
        EVP_PKEY *key = EVP_EC_gen("P-256");
        time_t now = (time_t)(now_ns / LKG_NSEC_PER_SEC);
        X509 *x = X509_new();
        BIO *bio;

        assert_non_null(key);
        assert_non_null(x);
        assert_int_equal(X509_set_version(x, X509_VERSION_3), 1);
        assert_non_null(X509_time_adj_ex(X509_getm_notBefore(x), from_days, 0, &now));
        assert_non_null(X509_time_adj_ex(X509_getm_notAfter(x), to_days, 0, &now));
        add_name(x, "O", group);
        add_name(x, "CN", user);
        assert_int_equal(X509_set_issuer_name(x, X509_get_subject_name(x)), 1);
        assert_int_equal(X509_set_pubkey(x, key), 1);
        assert_true(X509_sign(x, key, EVP_sha256()) > 0);
        bio = BIO_new(BIO_s_mem());
        assert_int_equal(PEM_write_bio_X509(bio, x), 1);
        pair.certificate = bio_text(bio);
        bio = BIO_new(BIO_s_mem());
        assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
        pair.key = bio_text(bio);
        X509_free(x);
        EVP_PKEY_free(key);
        return pair;
}

static void free_pair(struct pair *pair)
{
        free(pair->certificate);
        free(pair->key);
}

static char *encrypted_key(void)
{
        EVP_PKEY *key = EVP_EC_gen("P-256");
        BIO *bio = BIO_new(BIO_s_mem());

        assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL),
                         1);
        EVP_PKEY_free(key);
        return bio_text(bio);
}

/* ---- the place ---- */

static char top[TMPDIR_MAX], src[TMPDIR_MAX + 8], pod[TMPDIR_MAX + 8];
static int source_fd = -EBADF;
static struct lkg_credential *credential;
static struct lkg_identity *held;
static struct pair pairs[2]; /* a, b */
static char *encrypted;
static uint64_t now_ns;
static int n_asked, ask_result;

static const char *at(const char *name)
{
        static char path[PATH_MAX];

        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        return path;
}

static int end(void **state)
{
        (void)state;
        credential = lkg_credential_free(credential);
        held = lkg_identity_unref(held);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(pairs); i++) {
                free_pair(&pairs[i]);
                pairs[i] = (struct pair){ NULL };
        }
        free(encrypted);
        encrypted = NULL;
        source_fd = lkg_close(source_fd);
        if (*top)
                assert_int_equal(tmpdir_remove(top), 0);
        *top = '\0';
        return 0;
}

STEP(steps, 0)
{
        (void)end(NULL);
        assert_int_equal(tmpdir_make(top), 0);
        (void)snprintf(src, sizeof(src), "%s/src", top);
        (void)snprintf(pod, sizeof(pod), "%s/pod", top);
        assert_int_equal(mkdir(src, 0755), 0);
        assert_int_equal(mkdir(pod, 0755), 0);
        source_fd = open(src, O_PATH | O_DIRECTORY | O_CLOEXEC);
        now_ns = UINT64_C(1900000000) * LKG_NSEC_PER_SEC;
        n_asked = ask_result = 0;
        (void)unsetenv("KUBERNETES_SERVICE_HOST");
        (void)unsetenv("KUBERNETES_SERVICE_PORT");
}

/* ---- files ---- */

/* Each @from becomes @to; takes @text over. */
static char *replaced(char *text, const char *from, const char *to)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        const char *rest = text;

        for (const char *next; (next = strstr(rest, from)); rest = next + strlen(from))
                lkg_buf_printf(&buf, "%.*s%s", (int)(next - rest), rest, to);
        lkg_buf_printf(&buf, "%s", rest);
        free(text);
        return lkg_buf_steal(&buf, NULL);
}

/* With certificates and keys in it. */
static char *filled(const char *text)
{
        static const char *const names[][2] = { { "$CERTIFICATE_A", "$KEY_A" },
                                                { "$CERTIFICATE_B", "$KEY_B" } };
        char *ret = strdup(text);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(pairs) && pairs[i].key; i++) {
                ret = replaced(ret, names[i][0], pairs[i].certificate);
                ret = replaced(ret, names[i][1], pairs[i].key);
        }
        if (encrypted)
                ret = replaced(ret, "$ENCRYPTED", encrypted);
        return ret;
}

static void put(const char *name, const char *text)
{
        LKG_CLEANUP(lkg_closep) int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *whole = filled(text);

        assert_true(fd >= 0);
        assert_int_equal(lkg_write_file_atomic(fd, name, whole, strlen(whole), 0600, false, NULL), 0);
}

STEP(put, 2)
{
        put(q->parts[0], q->parts[1]);
}

static void put_config(const char *user)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(
                &buf,
                "clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: u, user: {%s}}]\n"
                "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
                user);
        put("config", buf.data);
}

/* The kubeconfig of a user. */
STEP(config, 1)
{
        put_config(q->parts[0]);
}

STEP(config_exec, 1)
{
        char user[256];

        (void)snprintf(user, sizeof(user), EXEC, q->parts[0]);
        put_config(user);
}

/* A or B; valid from and to, in days; O and CN of its owner, or - */
STEP(pair, 5)
{
        struct pair *pair = &pairs[*q->parts[0] - 'A'];

        free_pair(pair);
        *pair = make_pair(now_ns, *q->parts[3] == '-' ? NULL : q->parts[3],
                          *q->parts[4] == '-' ? NULL : q->parts[4], atoi(q->parts[1]), atoi(q->parts[2]));
}

STEP(encrypted, 0)
{
        encrypted = encrypted_key();
}

STEP(mkdir, 1)
{
        assert_int_equal(mkdir(at(q->parts[0]), 0755), 0);
}

STEP(symlink, 2)
{
        assert_int_equal(symlink(q->parts[1], at(q->parts[0])), 0);
}

STEP(unlink, 1)
{
        assert_int_equal(unlink(at(q->parts[0])), 0);
}

STEP(move, 2)
{
        LKG_CLEANUP(lkg_closep) int fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(renameat(fd, q->parts[0], fd, q->parts[1]), 0);
}

STEP(chmod, 2)
{
        assert_int_equal(chmod(at(q->parts[0]), (mode_t)strtoul(q->parts[1], NULL, 8)), 0);
}

/* As a container of a cluster has it. */
STEP(in_cluster, 0)
{
        (void)setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
        (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
}

/* ---- the credential ---- */

static int count_ask(void *userdata)
{
        (void)userdata;
        n_asked++;
        return ask_result;
}

static struct lkg_credential_options options_of(const char *kubeconfig, const char *mount_point)
{
        return (struct lkg_credential_options){ .kubeconfig = *kubeconfig ? at(kubeconfig) : "",
                                                .source_path = src,
                                                .source_fd = source_fd,
                                                .mount_point = *mount_point ? mount_point : NULL,
                                                .pod_dir = pod,
                                                .allow_exec = true,
                                                .run_exec = count_ask };
}

/* The kubeconfig, if one is configured, and where the view is. */
STEP(open, 2)
{
        const struct lkg_credential_options options = options_of(q->parts[0], q->parts[1]);

        lkg_credential_free(credential);
        credential = lkg_credential_new(&options);
}

static void say(struct lkg_buf *ret, const char *text)
{
        char user[32];
        LKG_CLEANUP(lkg_freep) char *shown = replaced(strdup(text), top, "$TOP");

        (void)snprintf(user, sizeof(user), "(user %u,", (unsigned)getuid());
        shown = replaced(shown, user, "(user me,");
        lkg_buf_puts(ret, shown);
}

/* Whose it is: the whole text is the certificate of a pair, its key, or the one after the other. */
static void say_pem(struct lkg_buf *ret, const char *what, const char *text)
{
        if (!text || !*text)
                return;
        lkg_buf_printf(ret, ", %s", what);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(pairs) && pairs[i].key; i++) {
                size_t size = strlen(pairs[i].certificate);
                bool both = strncmp(text, pairs[i].certificate, size) == 0 &&
                            strcmp(text + size, pairs[i].key) == 0;

                if (both || strcmp(text, strcmp(what, "key") ? pairs[i].certificate : pairs[i].key) == 0)
                        lkg_buf_printf(ret, " %c%s", (int)('A' + i), both ? " (both)" : "");
        }
}

static void say_text(struct lkg_buf *ret, const char *what, const char *text)
{
        if (text && *text)
                lkg_buf_printf(ret, ", %s %s", what, text);
}

/* Whether it is another one, all that there is of it, how often a plugin was asked, and the findings. */
STEP(refresh, 0)
{
        bool is_new = lkg_credential_refresh(credential, now_ns);
        const struct lkg_identity *identity = lkg_credential_identity(credential);
        LKG_CLEANUP(lkg_freep) char *findings = NULL;

        lkg_buf_puts(ret, is_new ? "new" : "as before");
        if (identity) {
                lkg_buf_printf(ret, ", #%u", (unsigned)identity->serial);
                say_text(ret, "server", strcmp(identity->server, "https://h") == 0 ? "" : identity->server);
                say_text(ret, "token", identity->token);
                say_pem(ret, "certificate", identity->certificate);
                say_pem(ret, "key", identity->key);
                say_pem(ret, "CA", identity->ca);
                say_text(ret, "user", identity->user);
                if (identity->expires_ns)
                        lkg_buf_printf(ret, ", ends in %" PRIi64 " s",
                                       (int64_t)(identity->expires_ns - now_ns) / (int64_t)LKG_NSEC_PER_SEC);
        } else
                lkg_buf_puts(ret, ", none");
        if (n_asked > 0)
                lkg_buf_printf(ret, ", asked %d", n_asked);
        findings = lkg_report_format(lkg_credential_findings(credential), NULL);
        if (*findings)
                lkg_buf_puts(ret, "; ");
        say(ret, findings);
}

/* Which one it is, and its file. */
STEP(kind, 0)
{
        lkg_buf_printf(ret, "%s ", lkg_credential_kind_name(lkg_credential_kind(credential)));
        say(ret, lkg_credential_file(credential));
}

STEP(is_node, 1)
{
        lkg_buf_puts(ret, lkg_credential_is_node(credential, q->parts[0]) ? "yes" : "no");
}

/* When it must be looked at again although no file changes. */
STEP(due, 0)
{
        uint64_t due_ns = lkg_credential_due_ns(credential);

        if (due_ns <= now_ns)
                lkg_buf_puts(ret, "now");
        else if (due_ns - now_ns < LKG_NSEC_PER_SEC)
                lkg_buf_puts(ret, "soon");
        else
                lkg_buf_printf(ret, "in %" PRIu64 " s",
                               (due_ns - now_ns + LKG_NSEC_PER_SEC - 1) / LKG_NSEC_PER_SEC);
}

STEP(after, 1)
{
        now_ns += strtoull(q->parts[0], NULL, 10) * LKG_NSEC_PER_SEC;
}

/* A nanosecond later. */
STEP(soon, 0)
{
        now_ns++;
}

/* A request was answered 401. */
STEP(rejected, 0)
{
        lkg_credential_rejected(credential);
}

/* Somebody uses the identity on. */
STEP(hold, 0)
{
        held = lkg_identity_ref(lkg_credential_identity(credential));
}

STEP(held, 0)
{
        lkg_buf_puts(ret, held->token);
}

STEP(close, 0)
{
        credential = lkg_credential_free(credential);
}

/* ---- exec plugins ---- */

/* What comes of asking for the plugin: an error, or nothing. */
STEP(asking, 1)
{
        ask_result = strcmp(q->parts[0], "EIO") == 0      ? -EIO
                     : strcmp(q->parts[0], "EAGAIN") == 0 ? -EAGAIN
                                                          : 0;
}

STEP(answer, 1)
{
        LKG_CLEANUP(lkg_freep) char *text = filled(q->parts[0]);

        lkg_credential_exec_done(credential, text, strlen(text), NULL, now_ns);
}

/* The status of an ExecCredential. */
STEP(answer_status, 1)
{
        LKG_CLEANUP(lkg_freep) char *status = filled(q->parts[0]);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(&buf,
                       "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                       "\"status\":{%s}}",
                       status);
        lkg_credential_exec_done(credential, buf.data, buf.size, NULL, now_ns);
}

/* With certificate and key of a pair. */
STEP(answer_pair, 0)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_puts(&buf, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                           "\"status\":{\"clientCertificateData\":");
        lkg_buf_json_string(&buf, pairs[0].certificate, strlen(pairs[0].certificate));
        lkg_buf_puts(&buf, ",\"clientKeyData\":");
        lkg_buf_json_string(&buf, pairs[0].key, strlen(pairs[0].key));
        lkg_buf_puts(&buf, "}}");
        lkg_credential_exec_done(credential, buf.data, buf.size, NULL, now_ns);
}

/* It says nothing, because of this. */
STEP(ended, 1)
{
        lkg_credential_exec_done(credential, NULL, 0, q->parts[0], now_ns);
}

/* The program that the kubeconfig names, for a view that is there. */
STEP(program, 1)
{
        const struct lkg_credential_options options = options_of("config", q->parts[0]);
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_kubeconfig *k = NULL;

        assert_int_equal(lkg_credential_load(&options, &k, &report), 0);
        say(ret, k->exec->argv[0]);
        lkg_kubeconfig_free(k);
        lkg_report_deinit(&report);
}

ROWS_WITH(credential, rows_steps, NULL, end)
