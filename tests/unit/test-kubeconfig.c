/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig: the meaning of each field, and the message for each mistake. */

#include <lkg/text.h>
#include <lkg/http.h>

#include "unit.h"

#define FILE_NAME "/k/config"

/* What a row changes in the plain one; NULL = unchanged, "" = missing. */
struct parts {
        const char *cluster, *user, *rest;
};

#define CLUSTER "server: 'https://h:6443'"
#define USER    "token: t0ken"
#define REST    "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"

/* Line 1: cluster; 2: user; the rest from line 3. Their content starts at columns 31 and 25. */
static char *compose(const struct parts *p)
{
        char *text;

        if (asprintf(&text, "clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n%s",
                     p->cluster ? p->cluster : CLUSTER, p->user ? p->user : USER,
                     p->rest ? p->rest : REST) < 0)
                fail();
        return text;
}

static int parse(const char *text, bool allow_exec, bool allow_insecure, struct lkg_kubeconfig **ret,
                 char **said)
{
        const struct lkg_kubeconfig_options options = { FILE_NAME, allow_exec, allow_insecure };
        struct lkg_report report = LKG_REPORT_INIT;
        size_t size;
        int r;

        *ret = NULL;
        r = lkg_kubeconfig_parse(text, strlen(text), &options, ret, &report);
        *said = lkg_report_format(&report, &size);
        assert_non_null(*said);
        assert_int_equal(r == 0, report.n_severity[LKG_ERROR] == 0);
        lkg_report_deinit(&report);
        return r;
}

static struct lkg_kubeconfig *good(const struct parts *p, bool allow)
{
        struct lkg_kubeconfig *k;
        char *text = compose(p), *said;

        if (parse(text, allow, allow, &k, &said) < 0)
                fail_msg("%s\n%s", text, said);
        free(text);
        free(said);
        return k;
}

TEST(test_fields)
{
        struct lkg_kubeconfig *k = good(
                &(struct parts){
                        .cluster = "server: 'HTTPS://h:6443/a//', tls-server-name: n.example, "
                                   "certificate-authority: ca.crt, "
                                   "proxy-url: 'socks5://u:p@proxy:1080', disable-compression: true, "
                                   "extensions: []",
                        .user = "client-certificate: /abs/c.pem, client-key-data: \"a2V5\\nS0VZ\", "
                                "tokenFile: ../t, token: ' t0ken ', "
                                "as: somebody",
                },
                false);

        assert_string_equal(k->file, FILE_NAME);
        assert_string_equal(k->identity.server, "https://h:6443/a");
        assert_string_equal(k->identity.tls_server_name, "n.example");
        assert_string_equal(k->identity.proxy_url, "socks5h://u:p@proxy:1080");
        assert_true(k->identity.disable_compression);
        assert_false(k->identity.insecure);
        assert_string_equal(k->ca.path, "/k/ca.crt");
        assert_string_equal(k->ca.field, "clusters[c].cluster.certificate-authority");
        assert_string_equal(k->certificate.path, "/abs/c.pem");
        assert_null(k->key.path);
        assert_string_equal(k->key.data, "keyKEY");
        assert_int_equal(k->key.size, 6);
        assert_string_equal(k->key.field, "users[u].user.client-key-data");
        assert_int_equal(k->key.line, 2);
        assert_string_equal(k->token_file.path, "/k/../t");
        assert_string_equal(k->identity.token, "t0ken");
        assert_string_equal(k->identity.impersonate, "somebody");
        lkg_kubeconfig_free(k);
}

TEST(test_servers)
{
        static const struct {
                const char *written, *becomes;
        } rows[] = {
                { "https://[2001:db8::1]:6443", "https://[2001:db8::1]:6443" },
                { "https://[::1]", "https://[::1]" },
                { "https://10.0.0.1:/", "https://10.0.0.1" },
                { "https://api.example/k8s/clusters/c-1/", "https://api.example/k8s/clusters/c-1" },
                { "https://a_b-c.example.:1/%7Ex", "https://a_b-c.example.:1/%7Ex" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char cluster[128];
                struct lkg_kubeconfig *k;

                (void)snprintf(cluster, sizeof(cluster), "server: '%s'", rows[i].written);
                k = good(&(struct parts){ .cluster = cluster }, false);
                assert_string_equal(k->identity.server, rows[i].becomes);
                lkg_kubeconfig_free(k);
        }
}

TEST(test_no_server)
{
        static const char *const rows[] = {
                "h:6443",
                "//h",
                "http://h",
                "https://",
                "https://:1",
                "https:/h",
                "https://u@h",
                "https://u:p@h:1",
                "https://h/?a",
                "https://h#f",
                "https://h:0",
                "https://h:65536",
                "https://h:x",
                "https://[::1",
                "https://[::g]",
                "https://[::1]x",
                "https://::1",
                "https://h/../x",
                "https://h/.",
                "https://h/a b",
                "https://h\\\\@evil",
                "https://h/%4",
                "https://\xc3\xa9.example",
                "https://h%2e",
                "ftp://h",
                "https://[]",
                "https://[::1%25eth0]",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char cluster[128], *text, *said;
                struct lkg_kubeconfig *k;

                (void)snprintf(cluster, sizeof(cluster), "server: \"%s\"", rows[i]);
                text = compose(&(struct parts){ .cluster = cluster });
                assert_int_equal(parse(text, false, false, &k, &said), -EBADMSG);
                if (strncmp(said, "/k/config:1:40: error: clusters[c].cluster.server is \"", 53) != 0 ||
                    !strstr(said, "want https://HOST[:PORT][/PATH] [LKG7001]") || strchr(said, '\n')[1])
                        fail_msg("%s: %s", rows[i], said);
                free(text);
                free(said);
        }
}

#define EXEC(more) \
        "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: p" more "}"
#define END " [LKG7001]\n"

/* The exact messages. */
TEST(test_mistakes)
{
        static const struct {
                struct parts parts;
                bool exec, insecure;
                const char *want;
        } rows[] = {
                /* the whole */
                { { .rest = "" },
                  .want = "/k/config:1:1: error: current-context is empty; want the name of an entry of "
                          "contexts, where there is: nothing" END },
                { { .rest = "contexts: [{name: a}, {name: b}]\ncurrent-context: ''\n" },
                  .want = "/k/config:4:18: error: current-context is empty; want the name of an entry of "
                          "contexts, where there "
                          "is: a, b" END },
                { { .rest = "contexts: [{name: a}]\ncurrent-context: z\n" },
                  .want = "/k/config:4:18: error: current-context is \"z\", which is not in contexts; there "
                          "is: a" END },
                { { .rest = "contexts: {}\n" },
                  .want = "/k/config:3:11: error: contexts is a map; want a list of entries with a "
                          "name" END },
                { { .rest = "contexts: [x]\n" },
                  .want = "/k/config:3:12: error: contexts[0] is a string; want a map with a name" END },
                { { .rest = "contexts: [{name: 5}]\n" },
                  .want = "/k/config:3:12: error: contexts[0].name is a number; want a text, in "
                          "quotes" END },
                { { .rest = "contexts: [{name: x}, {name: x}]\ncurrent-context: x\n" },
                  .want = "/k/config:3:23: error: contexts has two entries named \"x\"; remove one" END },
                { { .rest = "contexts: [{name: x, context: []}]\ncurrent-context: x\n" },
                  .want = "/k/config:3:31: error: contexts[x].context is a list; want a map" END },
                { { .rest = "contexts: [{name: x, context: {cluster: d, user: v}}]\ncurrent-context: x\n" },
                  .want = "/k/config:3:41: error: contexts[x].context.cluster is \"d\", which is not in "
                          "clusters; there is: "
                          "c" END "/k/config:3:50: error: contexts[x].context.user is \"v\", which is not "
                          "in users; there "
                          "is: u" END },
                { { .rest = "contexts: [{name: x}]\ncurrent-context: x\n" },
                  .want = "/k/config:3:12: error: contexts[x].context.cluster is missing; want the name of "
                          "an entry of "
                          "clusters, where there is: c" END
                          "/k/config:3:12: error: contexts[x].context.user is missing; "
                          "want the name of an entry of users, where there is: u" END },
                { { .rest = REST "kind: Conf\napiVersion: v2\n" },
                  .want = "/k/config:5:7: error: kind is \"Conf\"; want Config" END
                          "/k/config:6:13: error: apiVersion is \"v2\"; want v1" END },
                { { .rest = REST "current-contxt: x\nextensions: []\npreferences: {colors: true}\n" },
                  .want = "/k/config:5:17: warning: unknown field \"current-contxt\", ignoring; did you "
                          "mean "
                          "current-context?" END },
                /* A missing space joins a name and a credential. */
                { { .rest = REST "a=s3cret: x\n" },
                  .want = "/k/config:5:11: warning: unknown field (not shown, it could be a credential), "
                          "ignoring" END },
                { { .rest = REST "token:s3cret: x\ntoken:s3cret: y\n" },
                  .want = "/k/config:6:1: warning: key <masked> is already set on line 5; the last one "
                          "counts" END "/k/config:6:15: warning: unknown field (not shown, it could be a "
                          "credential), ignoring" END },
                { { .rest = REST "current-context: x\n" },
                  .want = "/k/config:5:1: warning: key \"current-context\" is already set on line 4; "
                          "the last one counts" END },
                { { .rest = "a: [\n" },
                  .want = "/k/config:3:4: error: did not find expected node content (noticed on line 4); a "
                          "value is missing "
                          "between two commas" END },
                /* the cluster */
                { { .cluster = "" },
                  .want = "/k/config:1:31: error: clusters[c].cluster has no server; want "
                          "https://HOST[:PORT]" END },
                { { .cluster = "server: 5" },
                  .want = "/k/config:1:40: error: clusters[c].cluster.server is a number; want a text, in "
                          "quotes" END },
                { { .cluster = "server: 'http://u:pw@h'" },
                  .want = "/k/config:1:40: error: clusters[c].cluster.server is \"http://<masked>@h\": "
                          "nothing but https is spoken; "
                          "want https://HOST[:PORT][/PATH]" END },
                { { .cluster = CLUSTER ", proxy-url: 'u:pw@proxy'" },
                  .want = "/k/config:1:69: error: clusters[c].cluster.proxy-url is \"<masked>@proxy\": it "
                          "does not begin with a "
                          "scheme; want http://, https:// or socks5:// and HOST[:PORT]" END },
                { { .cluster = CLUSTER ", proxy-url: 'http://h/x'" },
                  .want = "/k/config:1:69: error: clusters[c].cluster.proxy-url is \"http://h/x\": the URL "
                          "of a proxy has no path; "
                          "want http://, https:// or socks5:// and HOST[:PORT]" END },
                { { .cluster = CLUSTER ", tls-server-name: '[::1]'" },
                  .want = "/k/config:1:75: error: clusters[c].cluster.tls-server-name is \"[::1]\": want a "
                          "host name (letters, digits, "
                          "'-' and '.') or an address without brackets" END },
                { { .cluster = CLUSTER ", certificate-authority-data: 'a b'" },
                  .want = "/k/config:1:86: error: clusters[c].cluster.certificate-authority-data is not "
                          "base64; want the PEM file as "
                          "`base64 -w0 FILE` prints it" END },
                { { .cluster = CLUSTER ", certificate-authority: a, certificate-authority-data: YQ==" },
                  .want = "/k/config:1:112: warning: clusters[c].cluster.certificate-authority-data counts, "
                          "and the file of the field "
                          "certificate-authority does not; take one out" END },
                { { .cluster = CLUSTER ", insecure-skip-tls-verify: true" },
                  .want = "/k/config:1:84: error: clusters[c].cluster.insecure-skip-tls-verify is true, and "
                          "remote.allowInsecure of "
                          "lkgfs's own configuration is not; want certificate-authority" END },
                { { .cluster = CLUSTER ", insecure-skip-tls-verify: true, certificate-authority: a" },
                  .insecure = true,
                  .want = "/k/config:1:84: error: clusters[c].cluster.certificate-authority is set, and "
                          "insecure-skip-tls-verify says "
                          "not to look at it; take one of the two out" END },
                { { .cluster = CLUSTER ", insecure-skip-tls-verify: true" },
                  .insecure = true,
                  .want = "/k/config:1:84: warning: clusters[c].cluster.insecure-skip-tls-verify is true: "
                          "whoever stands between node "
                          "and server decides what the node runs" END },
                { { .cluster = CLUSTER ", insecure-skip-tls-verify: 'yes', disable-compression: 1" },
                  .want = "/k/config:1:84: error: clusters[c].cluster.insecure-skip-tls-verify is a string; "
                          "want true or false" END
                          "/k/config:1:112: error: clusters[c].cluster.disable-compression is a number; "
                          "want true or false" END },
                { { .cluster = CLUSTER ", api-version: v1" },
                  .want = "/k/config:1:71: warning: clusters[c].cluster: unknown field \"api-version\", "
                          "ignoring" END },
                /* the user */
                { { .user = "" },
                  .want = "/k/config:2:25: warning: users[u].user has no credential, so requests are "
                          "anonymous; want "
                          "a certificate, a token or tokenFile" END },
                { { .user = "client-certificate: c" },
                  .want = "/k/config:2:46: error: users[u].user has a client certificate without its key; "
                          "want client-key or "
                          "client-key-data" END },
                { { .user = "client-key: k" },
                  .want = "/k/config:2:38: error: users[u].user has a client key without its certificate; "
                          "want client-certificate or "
                          "client-certificate-data" END },
                { { .user = "client-certificate: c, client-key-data: S3CRET" },
                  .want = "/k/config:2:66: error: users[u].user.client-key-data is not base64; want the PEM "
                          "file as `base64 -w0 FILE` "
                          "prints it" END },
                { { .user = "token: 12345678901" },
                  .want = "/k/config:2:33: error: users[u].user.token is a number; want a text, in "
                          "quotes" END },
                { { .user = "token: \"s3cret\\nX: y\"" },
                  .want = "/k/config:2:33: error: users[u].user.token has a control character; want one "
                          "line of plain text" END },
                { { .user = "token: t, username: me, password: s3cret" },
                  .want = "/k/config:2:46: error: users[u].user has a token and username or password, and a "
                          "request can carry one of "
                          "them; take one out" END },
                { { .user = "tokenFile: t, username: me" },
                  .want = "/k/config:2:50: error: users[u].user has a token and username or password, and a "
                          "request can carry one of "
                          "them; take one out" END },
                { { .user = "username: 'a:b', password: s3cret" },
                  .want = "/k/config:2:36: error: users[u].user.username has a colon, which ends a user's "
                          "name (RFC 7617)" END },
                { { .user = USER ", as: a, as-groups: [g], as-uid: '1', as-user-extra: {a: [b]}, "
                                 "auth-provider: {name: gcp}" },
                  .want = "/k/config:2:71: error: users[u].user.as-uid is not supported: of what "
                          "impersonates only `as` is; take it "
                          "out, or use a credential that needs none" END
                          "/k/config:2:58: error: users[u].user.as-groups is not supported: of what "
                          "impersonates only `as` is; take it "
                          "out, or use a credential that needs none" END
                          "/k/config:2:91: error: users[u].user.as-user-extra is not supported: of what "
                          "impersonates only `as` is; take "
                          "it out, or use a credential that needs none" END
                          "/k/config:2:116: error: users[u].user.auth-provider is not supported: Kubernetes "
                          "removed it in 1.26; use "
                          "exec, a certificate or tokenFile" END },
                { { .user = USER ", as-groups: [], as-uid: '', auth-provider: null" }, .want = "" },
                /* the exec plugin */
                { { .user = EXEC("") },
                  .want = "/k/config:2:32: error: users[u].user.exec runs a program, and remote.allowExec "
                          "of lkgfs's own configuration "
                          "does not allow it; set that, or want a certificate or tokenFile" END },
                { { .user = "exec: p" },
                  .exec = true,
                  .want = "/k/config:2:32: error: users[u].user.exec is a string; want a map with "
                          "command" END },
                { { .user = "exec: {interactiveMode: Never}" },
                  .exec = true,
                  .want = "/k/config:2:32: error: users[u].user.exec has no command; want the program to "
                          "run" END "/k/config:2:32: error: users[u].user.exec.apiVersion is \"\"; want "
                          "client.authentication.k8s.io/v1 or v1beta1" END },
                { { .user = "exec: {command: p, apiVersion: client.authentication.k8s.io/v1alpha1}" },
                  .exec = true,
                  .want = "/k/config:2:57: error: users[u].user.exec.apiVersion is "
                          "\"client.authentication.k8s.io/v1alpha1\"; want "
                          "client.authentication.k8s.io/v1 or v1beta1" END },
                { { .user = "exec: {command: p, apiVersion: client.authentication.k8s.io/v1}" },
                  .exec = true,
                  .want = "/k/config:2:32: error: users[u].user.exec has no interactiveMode, which "
                          "client.authentication.k8s.io/v1 "
                          "requires; want Never or IfAvailable" END },
                { { .user = "exec: {command: p, apiVersion: client.authentication.k8s.io/v1beta1, "
                            "interactiveMode: Always}" },
                  .exec = true,
                  .want = "/k/config:2:112: error: users[u].user.exec.interactiveMode is Always, and there "
                          "is no terminal; want Never "
                          "or IfAvailable" END },
                { { .user = EXEC(", args: [1]") },
                  .exec = true,
                  .want = "/k/config:2:121: error: users[u].user.exec.args is a number; want a list of "
                          "texts, in quotes" END },
                { { .user = EXEC(", args: [\"a\\0b\"]") },
                  .exec = true,
                  .want = "/k/config:2:121: error: users[u].user.exec.args has a NUL byte, which no program "
                          "can be given" END },
                { { .user = EXEC(", env: [{name: 'A=B', value: s3cret}]") },
                  .exec = true,
                  .want = "/k/config:2:120: error: users[u].user.exec.env[0]: want {name: NAME, value: "
                          "\"TEXT\"}, NAME without =" END },
                { { .user = EXEC(", env: [{name: A, value: 7}]") },
                  .exec = true,
                  .want = "/k/config:2:120: error: users[u].user.exec.env[0]: want {name: NAME, value: "
                          "\"TEXT\"}, NAME without =" END },
                { { .user = USER ", " EXEC("") },
                  .exec = true,
                  .want = "/k/config:2:46: warning: users[u].user.exec is not run, because a token or "
                          "username is given" END },
        };
        size_t n_failed = 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_kubeconfig *k;
                char *text = compose(&rows[i].parts), *said;
                int r = parse(text, rows[i].exec, rows[i].insecure, &k, &said);

                if (strcmp(said, rows[i].want) != 0) {
                        print_error("--- row %zu, %s\n%s\nsaid:\n%swanted:\n%s", i,
                                    r == 0 ? "accepted" : "refused", text, said, rows[i].want);
                        n_failed++;
                }
                assert_null(strstr(said, "s3cret"));
                assert_int_equal(r == 0, !strstr(rows[i].want, "error:"));
                assert_true(r == 0 || !k);
                lkg_kubeconfig_free(k);
                free(text);
                free(said);
        }
        assert_int_equal(n_failed, 0);
}

TEST(test_exec_plugin)
{
        struct lkg_kubeconfig *k = good(
                &(struct parts){
                        .user = EXEC(
                                ", args: [get-token, '--x=y'], env: [{name: A, value: b=c}, {name: E}], "
                                "provideClusterInfo: true, installHint: none") },
                true);

        assert_string_equal(k->exec->argv[0], "p");
        assert_string_equal(k->exec->argv[1], "get-token");
        assert_string_equal(k->exec->argv[2], "--x=y");
        assert_null(k->exec->argv[3]);
        assert_string_equal(k->exec->env[0], "A=b=c");
        assert_string_equal(k->exec->env[1], "E=");
        assert_null(k->exec->env[2]);
        assert_true(k->exec->provide_cluster_info);
        assert_string_equal(k->exec->api_version, LKG_EXEC_V1);
        lkg_kubeconfig_free(k);
        k = good(
                &(struct parts){
                        .user = "exec: {command: bin/p, apiVersion: client.authentication.k8s.io/v1beta1}" },
                true);
        assert_string_equal(k->exec->argv[0], "/k/bin/p");
        assert_null(k->exec->env);
        lkg_kubeconfig_free(k);
}

/* What kubectl accepts, too: JSON, entries that are null, a second document. */
TEST(test_other_entries_do_not_matter)
{
        static const char json[] =
                "{\"kind\":\"Config\",\"apiVersion\":\"v1\",\"clusters\":[{\"name\":\"c\",\"cluster\":"
                "{\"server\":\"https://h\"}}],\"users\":[null,{\"name\":\"z\",\"user\":{\"token\":1}},"
                "{\"name\":\"u\",\"user\":{\"token\":\"t\"}}],\"contexts\":[{\"name\":\"x\",\"context\":"
                "{\"cluster\":\"c\",\"user\":\"u\",\"namespace\":\"n\"}}],\"current-context\":\"x\"}";
        struct lkg_kubeconfig *k;
        char *said;

        assert_int_equal(parse(json, false, false, &k, &said), 0);
        assert_string_equal(said, "");
        assert_string_equal(k->identity.token, "t");
        free(said);
        lkg_kubeconfig_free(k);
}

TEST(test_names_are_shown_safely)
{
        struct lkg_kubeconfig *k;
        char *said;

        assert_int_equal(parse("clusters: [{name: \"a\\nb\\\"c\", cluster: {}}]\nusers: [{name: "
                               "'https://u:s3cret@h', user: {token: 1}}]\n"
                               "contexts: [{name: x, context: {cluster: \"a\\nb\\\"c\", user: "
                               "'https://u:s3cret@h'}}]\ncurrent-context: x\n",
                               false, false, &k, &said),
                         -EBADMSG);
        assert_non_null(strstr(said, "clusters[a\\x0ab\\\"c].cluster has no server"));
        assert_non_null(strstr(said, "users[https://<masked>@h].user.token is a number"));
        assert_null(strstr(said, "s3cret"));
        free(said);
}

TEST(test_many_names_are_counted)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_kubeconfig *k;
        char *said;

        lkg_buf_puts(&buf, "contexts:\n");
        for (unsigned i = 0; i < 20; i++)
                lkg_buf_printf(&buf, "- {name: n%u}\n", i);
        assert_int_equal(parse(buf.data, false, false, &k, &said), -EBADMSG);
        assert_non_null(strstr(said, "there is: n0, n1, n2, n3, n4, n5, n6, n7 and 12 more"));
        free(said);
        lkg_buf_deinit(&buf);
}

TEST(test_no_kubeconfig_at_all)
{
        static const char *const rows[][2] = {
                { "", "/k/config:1:1: error: the file is empty; want a kubeconfig (kind: Config)" END },
                { "- a\n", "/k/config:1:1: error: this is not a map; want a kubeconfig (kind: Config)" END },
        };
        struct lkg_kubeconfig *k;
        char *said, *big = malloc(LKG_KUBECONFIG_BYTES_MAX + 2);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                assert_int_equal(parse(rows[i][0], false, false, &k, &said), -EBADMSG);
                assert_string_equal(said, rows[i][1]);
                free(said);
        }
        assert_non_null(big);
        memset(big, '#', LKG_KUBECONFIG_BYTES_MAX + 1);
        big[LKG_KUBECONFIG_BYTES_MAX + 1] = '\0';
        assert_int_equal(parse(big, false, false, &k, &said), -EBADMSG);
        assert_string_equal(said, "/k/config: error: the file has more than 1048576 bytes; want a "
                                  "kubeconfig (kind: Config)" END);
        free(said);
        free(big);
}

TEST(test_detect)
{
        static const struct {
                const char *text;
                int want;
        } rows[] = {
                { "kind: Config\n", 1 },
                { "users: []\n", 1 },
                { "kind: KubeletConfiguration\n", 0 },
                { "", 0 },
                { "a: [", -EBADMSG },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                assert_int_equal(lkg_kubeconfig_detect(rows[i].text, strlen(rows[i].text)), rows[i].want);
}

TEST(test_in_a_pod)
{
        struct lkg_error err = { 0 };
        struct lkg_kubeconfig *k = NULL;

        assert_int_equal(lkg_kubeconfig_in_cluster("10.96.0.1", "443", "/d", &k, &err), 0);
        assert_string_equal(k->identity.server, "https://10.96.0.1:443");
        assert_string_equal(k->ca.path, "/d/ca.crt");
        assert_string_equal(k->token_file.path, "/d/token");
        assert_null(k->ca.field);
        lkg_kubeconfig_free(k);
        assert_int_equal(lkg_kubeconfig_in_cluster("fd00::1", "6443", "/d", &k, &err), 0);
        assert_string_equal(k->identity.server, "https://[fd00::1]:6443");
        lkg_kubeconfig_free(k);
        assert_int_equal(lkg_kubeconfig_in_cluster(NULL, "443", "/d", &k, &err), -ENOENT);
        assert_int_equal(lkg_kubeconfig_in_cluster("h", "", "/d", &k, &err), -ENOENT);
        assert_int_equal(lkg_kubeconfig_in_cluster("h/x", "443", "/d", &k, &err), -EINVAL);
        assert_non_null(strstr(err.message, "KUBERNETES_SERVICE_HOST"));
        assert_int_equal(lkg_kubeconfig_in_cluster("h", "0", "/d", &k, &err), -EINVAL);
        assert_non_null(strstr(err.message, "KUBERNETES_SERVICE_PORT"));
}
