/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credential: where it is searched for, the requirements for its files, complete and partial rotation,
 * expiry.
 */
#include "credential-place.h"

/* ---- where it is searched for ---- */

TEST_WITH(test_nothing_found, setup, teardown)
{
        struct place *p = *state;

        open_with(p, "", NULL);
        assert_int_equal(refresh(p), 0);
        assert_null(identity(p));
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_NONE);
        assert_string_equal(lkg_credential_file(p->c), "");
        assert_silent(p);
        put(p->src, "kubelet.conf", "kind: KubeletConfiguration\n");
        assert_int_equal(refresh(p), 0);
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_NONE);
        assert_silent(p);
}

TEST_WITH(test_the_nodes_own_comes_and_goes, setup, teardown)
{
        struct place *p = *state;
        char path[128];

        open_with(p, "", NULL);
        assert_int_equal(refresh(p), 0);
        put_config(p, "token: t");
        (void)snprintf(path, sizeof(path), "%s/kubelet.conf", p->src);
        assert_int_equal(rename(p->config, path), 0);
        assert_int_equal(refresh(p), 1);
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_NODE);
        assert_string_equal(lkg_credential_file(p->c), path);
        assert_string_equal(identity(p)->token, "t");
        put(p->src, "kubelet.conf", "a: ["); /* in the middle of a write */
        assert_int_equal(refresh(p), 0);
        assert_non_null(identity(p));
        assert_int_equal(unlink(path), 0);
        assert_int_equal(refresh(p), 1);
        assert_null(identity(p));
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_NONE);
        put(p->src, "bootstrap-kubelet.conf", "kind: Config\n");
        assert_int_equal(refresh(p), 0);
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_NONE);
}

TEST_WITH(test_what_is_configured_comes_first, setup, teardown)
{
        struct place *p = *state;

        put_config(p, "token: t");
        put(p->src, "kubelet.conf", "kind: Config\n");
        put(p->pod, "token", "p");
        (void)setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
        (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_KUBECONFIG);
        assert_string_equal(identity(p)->token, "t");
        assert_int_equal(identity(p)->serial, 1);
}

/* A volume of the kubelet: symlinks to a directory that is replaced as a whole. */
TEST_WITH(test_service_account_and_its_rotation, setup, teardown)
{
        struct place *p = *state;
        struct pair ca = make_pair(p->now_ns, NULL, "ca", -1, 100);
        char path[128], next[128];

        (void)setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
        (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        (void)snprintf(path, sizeof(path), "%s/..1", p->pod);
        assert_int_equal(mkdir(path, 0755), 0);
        put(path, "token", "one\n");
        put(path, "ca.crt", ca.certificate);
        (void)snprintf(path, sizeof(path), "%s/..2", p->pod);
        assert_int_equal(mkdir(path, 0755), 0);
        put(path, "token", "two");
        put(path, "ca.crt", ca.certificate);
        (void)snprintf(path, sizeof(path), "%s/..data", p->pod);
        assert_int_equal(symlink("..1", path), 0);
        (void)snprintf(next, sizeof(next), "%s/token", p->pod);
        assert_int_equal(symlink("..data/token", next), 0);
        (void)snprintf(next, sizeof(next), "%s/ca.crt", p->pod);
        assert_int_equal(symlink("..data/ca.crt", next), 0);
        open_with(p, "", NULL);
        assert_int_equal(refresh(p), 1);
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_IN_CLUSTER);
        assert_string_equal(lkg_credential_file(p->c), p->pod);
        assert_string_equal(identity(p)->server, "https://10.0.0.1:443");
        assert_string_equal(identity(p)->token, "one");
        assert_string_equal(identity(p)->ca, ca.certificate);
        (void)snprintf(next, sizeof(next), "%s/..tmp", p->pod);
        assert_int_equal(symlink("..2", next), 0);
        assert_int_equal(rename(next, path), 0);
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->token, "two");
        assert_int_equal(identity(p)->serial, 2);
        assert_silent(p);
        free_pair(&ca);
}

TEST_WITH(test_a_pod_without_a_token_is_none, setup, teardown)
{
        struct place *p = *state;

        (void)setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
        (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        open_with(p, "", NULL);
        assert_int_equal(refresh(p), 0);
        assert_int_equal(lkg_credential_kind(p->c), LKG_CREDENTIAL_NONE);
}

/* ---- its owner ---- */

TEST_WITH(test_the_nodes_certificate, setup, teardown)
{
        struct place *p = *state;
        struct pair pair = node_pair(p->now_ns);
        char both[8192];

        /* one file with both, like the kubelet's */
        (void)snprintf(both, sizeof(both), "%s%s", pair.certificate, pair.key);
        put(p->d, "kubelet-client-1.pem", both);
        (void)snprintf(both, sizeof(both), "%s/kubelet-client-current.pem", p->d);
        assert_int_equal(symlink("kubelet-client-1.pem", both), 0);
        put_config(p,
                   "client-certificate: kubelet-client-current.pem, client-key: kubelet-client-current.pem");
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        assert_silent(p);
        assert_string_equal(identity(p)->user, "system:node:n1");
        assert_int_equal(identity(p)->expires_ns, p->now_ns + 364 * DAY_NS);
        assert_true(lkg_credential_is_node(p->c, "n1"));
        assert_false(lkg_credential_is_node(p->c, "n"));
        assert_false(lkg_credential_is_node(p->c, "n12"));
        assert_false(lkg_credential_is_node(p->c, ""));
        free_pair(&pair);
}

TEST_WITH(test_who_is_not_certainly_the_node, setup, teardown)
{
        struct place *p = *state;
        static const struct {
                const char *group, *user, *more;
        } rows[] = {
                { "system:masters", "system:node:n1", "" },
                { NULL, "system:node:n1", "" },
                { "system:nodes", "n1", "" },
                { "system:nodes", NULL, "" },
                { "system:nodes", "system:node:n1", ", token: t" },
                { "system:nodes", "system:node:n1", ", as: other" },
                { "system:nodes", "system:node:n1", ", username: other" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct pair pair = make_pair(p->now_ns, rows[i].group, rows[i].user, -1, 10);
                char user[128];

                (void)snprintf(user, sizeof(user), PAIR "%s", rows[i].more);
                put_pair(p, &pair);
                put_config(p, user);
                open_with(p, p->config, NULL);
                assert_int_equal(refresh(p), 1);
                assert_false(lkg_credential_is_node(p->c, "n1"));
                free_pair(&pair);
        }
}

/* ---- files that are wrong ---- */

TEST_WITH(test_wrong_files, setup, teardown)
{
        struct place *p = *state;
        struct pair pair = node_pair(p->now_ns), other = node_pair(p->now_ns);
        char *encrypted = encrypted_key();
        const struct {
                const char *user, *file, *text, *want;
        } rows[] = {
                { PAIR, "crt", "hello", "client-certificate: there is no certificate in it; want PEM" },
                { PAIR, "key", "hello", "client-key: there is no private key in it; want PEM" },
                { PAIR, "key", other.key,
                  "client-key: the key does not belong to the certificate of "
                  "users[u].user.client-certificate: half of a rotation, or another pair" },
                { PAIR, "key", encrypted, "client-key: the key is encrypted" },
                { "tokenFile: t", "t", " \n", "tokenFile: the file is empty; want a token" },
                { "tokenFile: t", "t", "a b",
                  "tokenFile: the token has white space or a control character in it" },
                { "tokenFile: t", NULL, NULL, "/t: No such file or directory" },
                { "tokenFile: src", NULL, NULL, "/src is a directory; a regular file is wanted" },
                { "client-certificate-data: aGVsbG8=, client-key-data: aGVsbG8=", NULL, NULL,
                  "client-certificate-data: there is no certificate in it" },
                { "client-certificate-data: AAAA, client-key: key", NULL, NULL,
                  "client-certificate-data: it has a NUL byte; want a PEM file" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                put_pair(p, &pair);
                put_config(p, rows[i].user);
                if (rows[i].file)
                        put(p->d, rows[i].file, rows[i].text);
                open_with(p, p->config, NULL);
                assert_int_equal(refresh(p), 0);
                assert_null(identity(p));
                assert_said(p, 7002, LKG_ERROR, rows[i].want);
                assert_said(p, 7002, LKG_ERROR, "config:2:"); /* the place of the field */
                if (rows[i].file && rows[i].file[0] == 't') {
                        char path[128];

                        (void)snprintf(path, sizeof(path), "%s/t", p->d);
                        assert_int_equal(unlink(path), 0);
                }
        }
        free(encrypted);
        free_pair(&pair);
        free_pair(&other);
}

TEST_WITH(test_wrong_ca, setup, teardown)
{
        struct place *p = *state;

        put(p->d, "ca", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        put(p->d, "config",
            "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: ca}}]\n"
            "users: [{name: u, user: {token: t}}]\n"
            "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n");
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7002, LKG_ERROR,
                    "clusters[c].cluster.certificate-authority: there is no certificate in it");
}

TEST_WITH(test_files_that_others_can_change, setup, teardown)
{
        struct place *p = *state;
        char path[128];

        put(p->d, "t", "token");
        put_config(p, "tokenFile: t");
        (void)snprintf(path, sizeof(path), "%s/t", p->d);
        assert_int_equal(chmod(path, 0620), 0);
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7002, LKG_ERROR, "is not owned by root or is writable by others");
        assert_int_equal(chmod(path, 0600), 0);
        assert_int_equal(refresh(p), 1); /* noticed without another check of the kubeconfig's timestamps */
        assert_int_equal(chmod(p->config, 0602), 0);
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7001, LKG_ERROR, "is not owned by root or is writable by others");
        assert_non_null(identity(p));
        assert_int_equal(chmod(p->d, 0777), 0);
        assert_int_equal(chmod(p->config, 0600), 0);
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7001, LKG_ERROR, "the way leads through a directory that is not owned by root");
        assert_int_equal(chmod(p->d, 0755), 0);
        p->now_ns += 11 * LKG_NSEC_PER_SEC; /* no file has changed, so this is noticed by time */
        assert_int_equal(refresh(p), 0);
        assert_silent(p);
}

TEST_WITH(test_the_nodes_file_must_be_its_own, setup, teardown)
{
        struct place *p = *state;
        char path[128];

        put_config(p, "token: t");
        (void)snprintf(path, sizeof(path), "%s/kubelet.conf", p->src);
        assert_int_equal(rename(p->config, path), 0);
        assert_int_equal(chmod(path, 0666), 0);
        open_with(p, "", NULL);
        assert_int_equal(refresh(p), 0);
        assert_null(identity(p));
        assert_said(p, 7001, LKG_ERROR, "is not owned by root or is writable by others");
}

TEST_WITH(test_paths_below_the_view_mean_the_source, setup, teardown)
{
        struct place *p = *state;

        put(p->src, "t", "token");
        put_config(p, "tokenFile: /no/such/view/t");
        open_with(p, p->config, "/no/such/view");
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->token, "token");
        put_config(p, "tokenFile: /no/such/viewer/t");
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7002, LKG_ERROR, "tokenFile: /no/such/viewer/t: No such file or directory");
}

/* ---- rotation ---- */

TEST_WITH(test_nothing_new_is_nothing, setup, teardown)
{
        struct place *p = *state;
        struct pair pair = node_pair(p->now_ns);
        const struct lkg_identity *first;

        put_pair(p, &pair);
        put_config(p, PAIR);
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        first = identity(p);
        assert_int_equal(refresh(p), 0);
        put_pair(p, &pair); /* new files with the same content */
        assert_int_equal(refresh(p), 0);
        assert_ptr_equal(identity(p), first);
        assert_int_equal(first->serial, 1);
        lkg_credential_rejected(p->c);
        assert_int_equal(refresh(p), 0);
        free_pair(&pair);
}

TEST_WITH(test_half_a_rotation_keeps_the_last_one, setup, teardown)
{
        struct place *p = *state;
        struct pair one = node_pair(p->now_ns), two = node_pair(p->now_ns);

        put_pair(p, &one);
        put_config(p, PAIR);
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        put(p->d, "crt", two.certificate);
        assert_int_equal(refresh(p), 0);
        assert_string_equal(identity(p)->certificate, one.certificate);
        assert_said(p, 7002, LKG_ERROR, "half of a rotation");
        put(p->d, "key", two.key);
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->certificate, two.certificate);
        assert_string_equal(identity(p)->key, two.key);
        assert_int_equal(identity(p)->serial, 2);
        assert_silent(p);
        free_pair(&one);
        free_pair(&two);
}

TEST_WITH(test_a_broken_kubeconfig_keeps_the_last_one, setup, teardown)
{
        struct place *p = *state;

        put_config(p, "token: one");
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        put_config(p, "token: 1");
        assert_int_equal(refresh(p), 0);
        assert_string_equal(identity(p)->token, "one");
        assert_said(p, 7001, LKG_ERROR, "users[u].user.token is a number");
        assert_int_equal(unlink(p->config), 0);
        assert_int_equal(refresh(p), 0);
        assert_string_equal(identity(p)->token, "one");
        assert_said(p, 7001, LKG_ERROR, "No such file or directory");
        put_config(p, "token: two");
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->token, "two");
}

TEST_WITH(test_an_identity_outlives_the_next_one, setup, teardown)
{
        struct place *p = *state;
        struct lkg_identity *held;

        put_config(p, "token: one");
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        held = lkg_identity_ref(lkg_credential_identity(p->c));
        put_config(p, "token: two");
        assert_int_equal(refresh(p), 1);
        assert_string_equal(held->token, "one");
        p->c = lkg_credential_free(p->c);
        assert_string_equal(held->token, "one");
        assert_null(lkg_identity_unref(held));
}

TEST_WITH(test_a_token_file_is_read_every_minute, setup, teardown)
{
        struct place *p = *state;
        char path[128];
        int fd;

        put(p->d, "t", "one");
        put_config(p, "tokenFile: t, token: old");
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->token, "one");
        (void)snprintf(path, sizeof(path), "%s/t", p->d);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(refresh(p), 1); /* the file beside it is used while this one cannot be read */
        assert_string_equal(identity(p)->token, "old");
        assert_said(p, 7002, LKG_WARNING, "tokenFile: ");
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, "two", 3), 3);
        lkg_close(fd);
        p->now_ns += 60 * LKG_NSEC_PER_SEC;
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->token, "two");
}

/* ---- ends ---- */

TEST_WITH(test_ends_of_a_certificate, setup, teardown)
{
        struct place *p = *state;
        static const struct {
                int from, to;
                uint64_t later_days; /* days after the first refresh, which is silent if it is not 0 */
                enum lkg_severity severity;
                const char *want;
        } rows[] = {
                { -1, 99, 0, LKG_NOTE, NULL },
                { -91, 9, 0, LKG_WARNING,
                  "client-certificate: the certificate ends at 2030-03-26T17:46:40Z, and nobody" },
                { -10, 90, 81, LKG_WARNING, "the certificate ends at" },
                { -1000, 9000, 8971, LKG_WARNING, "the certificate ends at" },
                { -100, 0, 0, LKG_ERROR,
                  "the certificate has ended at 2030-03-17T17:46:40Z; it is used until" },
                { -10, 90, 91, LKG_ERROR, "the certificate has ended at" },
                { 1, 100, 0, LKG_WARNING, "the certificate is valid from 2030-03-18T17:46:40Z on only" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct pair pair = make_pair(p->now_ns, "o", "u", rows[i].from, rows[i].to);
                uint64_t start_ns = p->now_ns;

                put_pair(p, &pair);
                put_config(p, PAIR);
                open_with(p, p->config, NULL);
                assert_int_equal(refresh(p), 1); /* used anyway */
                if (rows[i].later_days > 0) {
                        assert_silent(p);
                        p->now_ns += rows[i].later_days * DAY_NS + 1;
                        assert_int_equal(refresh(p), 0);
                }
                if (rows[i].want)
                        assert_said(p, 7004, rows[i].severity, rows[i].want);
                else
                        assert_silent(p);
                p->now_ns = start_ns;
                free_pair(&pair);
        }
}

TEST_WITH(test_end_of_a_token, setup, teardown)
{
        struct place *p = *state;

        /* {"exp":1900000100} */
        put(p->d, "t", "eyJhbGciOiJub25lIn0.eyJleHAiOjE5MDAwMDAxMDB9.c2ln");
        put_config(p, "tokenFile: t");
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 1);
        assert_silent(p);
        assert_int_equal(identity(p)->expires_ns, UINT64_C(1900000100) * LKG_NSEC_PER_SEC);
        p->now_ns += 100 * LKG_NSEC_PER_SEC;
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7004, LKG_ERROR,
                    "users[u].user.tokenFile: the token has ended at 2030-03-17T17:48:20Z");
        assert_non_null(identity(p));
}
