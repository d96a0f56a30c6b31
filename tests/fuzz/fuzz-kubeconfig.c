/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a kubeconfig: it is accepted or an error says why, an accepted one is complete, and no
 * finding contains a line break or text from the place of a secret, even if the space before it is missing.
 */

#include <lkg/http.h>

#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const struct lkg_file_or_data *x)
{
        FUZZ_CHECK(!x->path || !x->data);
        FUZZ_CHECK(!x->path || x->path[0] == '/');
        FUZZ_CHECK(!x->data || (x->size > 0 && x->data[x->size] == '\0'));
        FUZZ_CHECK((x->path || x->data) == (x->field != NULL));
}

static void check(const struct lkg_kubeconfig *k, const struct lkg_kubeconfig_options *o)
{
        FUZZ_CHECK(strncmp(k->identity.server, "https://", 8) == 0 &&
                   !strpbrk(k->identity.server + 8, "@?#\\ \t\n"));
        FUZZ_CHECK(k->identity.server[strlen(k->identity.server) - 1] != '/');
        check_part(&k->ca);
        check_part(&k->certificate);
        check_part(&k->key);
        check_part(&k->token_file);
        FUZZ_CHECK(!k->certificate.field == !k->key.field);
        FUZZ_CHECK(!k->identity.insecure || (o->allow_insecure && !k->ca.field));
        FUZZ_CHECK(!k->identity.token || (*k->identity.token && !strpbrk(k->identity.token, "\r\n")));
        FUZZ_CHECK(!k->exec || (o->allow_exec && k->exec->argv[0][0] && k->exec->api_version));
        for (size_t i = 0; k->exec && k->exec->env && k->exec->env[i]; i++)
                FUZZ_CHECK(strchr(k->exec->env[i], '=') > k->exec->env[i]);
}

#define WORD "s3cret"

/* Characters between the name of a credential and its value, even if one of them is forgotten. */
static bool is_between(char c)
{
        return strchr(" \t\n:='\"{[|>-", c);
}

/* Does every occurrence of the secret text follow the name of a credential? */
static bool in_its_place(const char *data, size_t size)
{
        static const char *const names[] = { "token", "password", "client-key-data" };
        const char *hit = size ? memmem(data, size, WORD, strlen(WORD)) : NULL;
        bool all = hit;

        for (; hit && all; hit = memmem(hit + 1, size - (size_t)(hit + 1 - data), WORD, strlen(WORD))) {
                const char *p = hit;

                all = false;
                while (p > data && is_between(p[-1]))
                        p--;
                for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                        size_t n = strlen(names[i]);

                        /* The name itself, not the end of another word; and something in between. */
                        all |= p < hit && (size_t)(p - data) >= n && memcmp(p - n, names[i], n) == 0 &&
                               ((size_t)(p - data) == n || is_between(p[-(ssize_t)n - 1]));
                }
        }
        return all;
}

static void parse(const uint8_t *data, size_t size, bool allow)
{
        const struct lkg_kubeconfig_options o = { "/k/config", allow, allow };
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_kubeconfig *k = NULL;
        int r = lkg_kubeconfig_parse((const char *)data, size, &o, &k, &report);

        FUZZ_CHECK(r == 0 || r == -EBADMSG);
        FUZZ_CHECK((r == 0) == (report.n_severity[LKG_ERROR] == 0));
        FUZZ_CHECK((r == 0) == (k != NULL));
        for (size_t i = 0; i < report.n_findings; i++)
                FUZZ_CHECK(report.findings[i].code == 7001 && !(in_its_place((const char *)data, size) &&
                                                                strstr(report.findings[i].text, WORD)));
        if (k)
                check(k, &o);
        lkg_kubeconfig_free(k);
        lkg_report_deinit(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int r = lkg_kubeconfig_detect((const char *)data, size);

        FUZZ_CHECK(r == 0 || r == 1 || r == -EBADMSG);
        parse(data, size, false);
        parse(data, size, true);
        return 0;
}
