/* SPDX-License-Identifier: Apache-2.0 */
/* The credential of an exec plugin: when it is run, what it may answer, and what is used meanwhile. */
#include "credential-place.h"

#define EXEC "exec: {command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"

static void answer(struct place *p, const char *status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(&buf,
                       "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                       "\"status\":{%s}}",
                       status);
        lkg_credential_exec_done(p->c, buf.data, buf.size, NULL, p->now_ns);
}

static void open_exec(struct place *p)
{
        put_config(p, EXEC);
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 1);
        assert_said(p, 7003, LKG_NOTE, "exec plugin p: its answer is waited for");
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 1);
}

TEST_WITH(test_exec_token_and_its_renewal, setup, teardown)
{
        struct place *p = *state;

        open_exec(p);
        answer(p, "\"token\":\"one\",\"expirationTimestamp\":\"2030-03-17T17:48:20Z\""); /* in 100 s */
        assert_int_equal(refresh(p), 1);
        assert_silent(p);
        assert_string_equal(identity(p)->token, "one");
        assert_int_equal(identity(p)->expires_ns, p->now_ns + 100 * LKG_NSEC_PER_SEC);
        p->now_ns += 79 * LKG_NSEC_PER_SEC;
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 1);
        p->now_ns += LKG_NSEC_PER_SEC;
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 2);
        answer(p, "\"token\":\"two\"");
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->token, "two");
        p->now_ns += 1000 * DAY_NS; /* it states no expiration */
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 2);
}

TEST_WITH(test_exec_after_a_rejection, setup, teardown)
{
        struct place *p = *state;

        open_exec(p);
        answer(p, "\"token\":\"one\"");
        assert_int_equal(refresh(p), 1);
        lkg_credential_rejected(p->c);
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 1); /* not that soon */
        p->now_ns += 10 * LKG_NSEC_PER_SEC;
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 2);
        assert_string_equal(identity(p)->token, "one");
        answer(p, "\"token\":\"one\"");
        assert_int_equal(refresh(p), 0); /* an equal answer is no new identity */
        assert_int_equal(identity(p)->serial, 1);
}

TEST_WITH(test_exec_certificate, setup, teardown)
{
        struct place *p = *state;
        struct pair pair = node_pair(p->now_ns);
        struct lkg_buf buf = LKG_BUF_INIT;

        open_exec(p);
        lkg_buf_puts(&buf, "\"clientCertificateData\":");
        lkg_buf_json_string(&buf, pair.certificate, strlen(pair.certificate));
        lkg_buf_puts(&buf, ",\"clientKeyData\":");
        lkg_buf_json_string(&buf, pair.key, strlen(pair.key));
        answer(p, buf.data);
        assert_int_equal(refresh(p), 1);
        assert_string_equal(identity(p)->certificate, pair.certificate);
        assert_true(lkg_credential_is_node(p->c, "n1"));
        lkg_buf_deinit(&buf);
        free_pair(&pair);
}

TEST_WITH(test_exec_answers_of_no_use, setup, teardown)
{
        struct place *p = *state;
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "hello", "its output is not JSON" },
                { "[]", "its output is not an ExecCredential" },
                { "{\"kind\":\"Status\"}", "its output is not of kind ExecCredential" },
                { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
                  "its output is of another apiVersion than the kubeconfig names" },
                { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\"}",
                  "its output has no status" },
        };
        static const char *const statuses[][2] = {
                { "", "its output has neither a token nor a certificate" },
                { "\"token\":\"a\\nb\"", "the token in its output has white space or control characters" },
                { "\"clientKeyData\":\"k\"",
                  "its output has only one of clientCertificateData and clientKeyData" },
                { "\"clientCertificateData\":\"c\",\"token\":\"t\"",
                  "its output has only one of clientCertificateData and clientKeyData" },
                { "\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"",
                  "certificate and key in its output do not belong together, or are no PEM" },
                { "\"token\":\"t\",\"expirationTimestamp\":\"tomorrow\"",
                  "the expirationTimestamp in its output is not RFC 3339" },
        };

        open_exec(p);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                lkg_credential_exec_done(p->c, rows[i].text, strlen(rows[i].text), NULL, p->now_ns);
                assert_int_equal(refresh(p), 0);
                assert_said(p, 7003, LKG_ERROR, rows[i].want);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(statuses); i++) {
                answer(p, statuses[i][0]);
                assert_int_equal(refresh(p), 0);
                assert_said(p, 7003, LKG_ERROR, statuses[i][1]);
        }
        assert_null(identity(p));
        answer(p, "\"token\":\"t\"");
        assert_int_equal(refresh(p), 1);
        lkg_credential_rejected(p->c);
        p->now_ns += 300 * LKG_NSEC_PER_SEC;
        assert_int_equal(refresh(p), 0);
        lkg_credential_exec_done(p->c, NULL, 0, "it ended with 1", p->now_ns);
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7003, LKG_WARNING, "exec plugin p: it ended with 1"); /* still used */
        assert_string_equal(identity(p)->token, "t");
}

/* 10 s, 20 s, ... 5 min */
TEST_WITH(test_exec_is_asked_less_often_while_it_fails, setup, teardown)
{
        struct place *p = *state;
        static const unsigned pauses[] = { 10, 20, 40, 80, 160, 300, 300 };

        open_exec(p);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(pauses); i++) {
                lkg_credential_exec_done(p->c, NULL, 0, "it ended with 1", p->now_ns);
                assert_int_equal(refresh(p), 0);
                p->now_ns += (pauses[i] - 1) * LKG_NSEC_PER_SEC;
                assert_int_equal(refresh(p), 0);
                assert_int_equal(p->n_asked, 1 + (int)i);
                p->now_ns += LKG_NSEC_PER_SEC;
                assert_int_equal(refresh(p), 0);
                assert_int_equal(p->n_asked, 2 + (int)i);
        }
        p->now_ns += 45 * LKG_NSEC_PER_SEC; /* no answer at all arrived */
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7003, LKG_ERROR, "exec plugin p: nothing came back from it");
}

TEST_WITH(test_exec_that_cannot_be_asked, setup, teardown)
{
        struct place *p = *state;

        p->ask_result = -EIO;
        put_config(p, EXEC);
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7003, LKG_ERROR, "exec plugin p: it cannot be asked for now");
        p->ask_result = 0;
        p->now_ns += 10 * LKG_NSEC_PER_SEC;
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 2);
}

/* Right after the start the plugin cannot be run yet: neither a failure nor a pause. */
TEST_WITH(test_exec_that_cannot_be_asked_yet, setup, teardown)
{
        struct place *p = *state;

        p->ask_result = -EAGAIN;
        put_config(p, EXEC);
        open_with(p, p->config, NULL);
        assert_int_equal(refresh(p), 0);
        assert_said(p, 7003, LKG_NOTE, "exec plugin p: its answer is waited for");
        assert_int_equal(lkg_credential_due_ns(p->c), p->now_ns + 1);
        p->ask_result = 0;
        p->now_ns++;
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 2);
        assert_int_equal(lkg_credential_due_ns(p->c), p->now_ns + 10 * LKG_NSEC_PER_SEC);
        answer(p, "\"token\":\"one\",\"expirationTimestamp\":\"2030-03-17T17:48:20Z\"");
        assert_int_equal(lkg_credential_due_ns(p->c), 0);
        assert_int_equal(refresh(p), 1);
        assert_true(lkg_credential_due_ns(p->c) > p->now_ns + 79 * LKG_NSEC_PER_SEC);
        assert_true(lkg_credential_due_ns(p->c) <= p->now_ns + 80 * LKG_NSEC_PER_SEC);
}

TEST_WITH(test_a_plugin_below_the_view_is_that_of_the_source, setup, teardown)
{
        static const struct {
                const char *command, *want; /* NULL = below the source directory */
        } rows[] = { { "/no/such/view/bin/p", NULL },
                     { "/no/such/viewer/p", "/no/such/viewer/p" },
                     { "p", "p" } };
        struct place *p = *state;
        const struct lkg_credential_options options = { .kubeconfig = p->config,
                                                        .source_path = p->src,
                                                        .source_fd = p->source_fd,
                                                        .mount_point = "/no/such/view",
                                                        .allow_exec = true };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
                struct lkg_kubeconfig *k = NULL;
                char user[256], want[256];

                (void)snprintf(user, sizeof(user),
                               "exec: {command: %s, apiVersion: client.authentication.k8s.io/v1, "
                               "interactiveMode: Never}",
                               rows[i].command);
                put_config(p, user);
                (void)snprintf(want, sizeof(want), "%s%s", rows[i].want ? "" : p->src,
                               rows[i].want ? rows[i].want : "/bin/p");
                assert_int_equal(lkg_credential_load(&options, &k, &report), 0);
                assert_string_equal(k->exec->argv[0], want);
                lkg_kubeconfig_free(k);
        }
}

TEST_WITH(test_another_kubeconfig_asks_again, setup, teardown)
{
        struct place *p = *state;

        open_exec(p);
        answer(p, "\"token\":\"one\"");
        assert_int_equal(refresh(p), 1);
        p->now_ns += 20 * LKG_NSEC_PER_SEC;
        put_config(p, EXEC " ");
        assert_int_equal(refresh(p), 0);
        assert_int_equal(p->n_asked, 2);
        put_config(p, "token: mine"); /* no plugin any more: its answer is ignored */
        assert_int_equal(refresh(p), 1);
        answer(p, "\"token\":\"late\"");
        assert_int_equal(refresh(p), 0);
        assert_string_equal(identity(p)->token, "mine");
}
