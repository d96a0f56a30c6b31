/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubeconfig, read field by field by tables. Only the entries of the current context are checked in full;
 * for all others only the shape is checked.
 *
 * A finding names the position and the field. The value of a secret field is never quoted, only its type or
 * the kind of mistake. The decoded tree contains copies of the secrets; they are wiped before it is freed.
 */
#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/stack.h>

#include "credential-internal.h"
#include "endpoint.h"
#include "kubeconfig-reader.h"

#define CODE           7001
#define SHOWN_MAX      8u /* names listed in a message */

#define EXEC_EXTENSION "client.authentication.k8s.io/exec"
#define AT(m)          offsetof(struct lkg_kubeconfig, m)

static const struct lkg_reader_field top_fields[] = {
        { "kind", F_KEEP },       { "apiVersion", F_KEEP }, { "clusters", F_KEEP },
        { "users", F_KEEP },      { "contexts", F_KEEP },   { "current-context", F_KEEP },
        { "preferences", F_ANY }, { "extensions", F_ANY },  { NULL },
};
static const struct lkg_reader_field context_fields[] = {
        { "cluster", F_KEEP }, { "user", F_KEEP }, { "namespace", F_ANY }, { "extensions", F_ANY }, { NULL },
};
static const struct lkg_reader_field cluster_fields[] = {
        { "server", F_TEXT, AT(identity.server) },
        { "tls-server-name", F_TEXT, AT(identity.tls_server_name) },
        { "proxy-url", F_TEXT, AT(identity.proxy_url) },
        { "insecure-skip-tls-verify", F_BOOL, AT(identity.insecure) },
        { "disable-compression", F_BOOL, AT(identity.disable_compression) },
        { "certificate-authority", F_PATH, AT(ca) },
        { "certificate-authority-data", F_DATA, AT(ca) },
        { "extensions", F_ANY },
        { NULL },
};

/* Return the closing quote, skipping escapes before it. */
static const char *quoted_end(const char *text)
{
        while (*text && *text != '"')
                text += text[0] == '\\' && text[1] ? 2 : 1;
        return text;
}

/*
 * Append @text without its quoted parts, except words of letters: a key may be a credential that is missing
 * the space before it.
 */
static void put_without_quotes(const char *text, struct lkg_buf *buf)
{
        while (*text) {
                size_t n = strcspn(text, "\"");
                const char *end;

                lkg_buf_append(buf, text, n);
                text += n;
                if (!*text)
                        return;
                end = quoted_end(text + 1);
                if (lkg_reader_may_show(lkg_span(text + 1, (size_t)(end - text - 1))))
                        lkg_buf_append(buf, text, (size_t)(end - text) + (*end == '"'));
                else
                        lkg_buf_puts(buf, "<masked>");
                text = *end ? end + 1 : end;
        }
}

/* The decoder's findings quote keys and anchors; keep only quotes that may be shown. */
static void take_over(struct lkg_reader *r, const struct lkg_report *from)
{
        for (size_t i = 0; i < from->n_findings; i++) {
                const struct lkg_finding *f = &from->findings[i];
                const struct lkg_where where = { r->options->file, f->line, f->column };
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;

                put_without_quotes(f->text, &text);
                lkg_report_add(&r->report, f->severity, CODE, &where, "%s", lkg_buf_text(&text));
        }
        lkg_report_count_unlisted(&r->report, from);
}

/* Return a name as part of a path or a list: the output of lkg_quote() without the quotes. */
static const char *bare(const char *name, size_t size, char buf[static LKG_READER_QUOTED_MAX])
{
        size_t n = strlen(lkg_quote(name, size, buf));
        char *end = strrchr(buf, '"');

        if (end > buf)
                memmove(end, end + 1, n - (size_t)(end - buf));
        memmove(buf, buf + 1, strlen(buf));
        return buf;
}

/* Return a URL in quotes; anything that could be a credential is masked. */
static const char *quote_url(const char *text, char buf[static LKG_READER_QUOTED_MAX])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;

        if (!lkg_mask_url(text, strlen(text), &masked))
                return lkg_quote(text, strlen(text), buf);
        return lkg_quote(lkg_buf_text(&masked), masked.size, buf);
}

/* ---- entries with names: clusters, users, contexts ---- */

static const struct lkg_value *entries(const struct lkg_section *top, const char *list)
{
        const struct lkg_value *value = lkg_section_get(top, list);

        return lkg_is_type(value, LKG_LIST) ? value : NULL;
}

/* "a, b and 3 more", "nothing" */
static void list_names(const struct lkg_section *top, const char *list, struct lkg_buf *buf)
{
        const struct lkg_value *items = entries(top, list);
        size_t n = 0;

        for (size_t i = 0; items && i < lkg_value_size(items); i++) {
                char name[LKG_READER_QUOTED_MAX];
                struct lkg_span text;

                if (lkg_entry_name(lkg_list_get(items, i), &text) && ++n <= SHOWN_MAX)
                        lkg_buf_printf(buf, "%s%s", n == 1 ? "" : ", ", bare(text.data, text.size, name));
        }
        if (n > SHOWN_MAX)
                lkg_buf_printf(buf, " and %zu more", n - SHOWN_MAX);
        lkg_buf_puts(buf, n ? "" : "nothing");
}

static void check_entries(struct lkg_reader *r, const struct lkg_section *top, const char *list)
{
        const struct lkg_value *items = lkg_section_get(top, list);

        if (lkg_is_null(items))
                return;
        if (!lkg_is_type(items, LKG_LIST)) {
                lkg_reader_wrong_type(r, top, list, items, "a list of entries with a name");
                return;
        }
        for (size_t i = 0; i < lkg_value_size(items); i++) {
                const struct lkg_value *item = lkg_list_get(items, i);
                struct lkg_span name;

                if (lkg_is_null(item))
                        continue; /* for Go an entry without a name */
                if (!lkg_is_type(item, LKG_MAP))
                        lkg_reader_say(r, LKG_ERROR, item, "%s[%zu] is a %s; want a map with a name", list,
                                       i, lkg_type_name(lkg_value_type(item)));
                else if (!lkg_entry_name(item, &name) && !lkg_is_null(lkg_map_get(item, "name")))
                        lkg_reader_say(r, LKG_ERROR, item, "%s[%zu].name is a %s; want a text, in quotes",
                                       list, i, lkg_type_name(lkg_value_type(lkg_map_get(item, "name"))));
        }
}

/*
 * The member `cluster` of the entry @name of @list, `clusters`. @said: the field that refers to the entry.
 * Return: whether it exists; otherwise there is a finding at @at.
 */
static bool find_entry(struct lkg_reader *r, const struct lkg_section *top, const char *list,
                       struct lkg_span name, const char *said, const struct lkg_value *at,
                       struct lkg_section *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;
        const struct lkg_value *items = entries(top, list), *found = NULL;
        char shown[LKG_READER_QUOTED_MAX], body[sizeof("clusters")];

        for (size_t i = 0; items && i < lkg_value_size(items); i++) {
                const struct lkg_value *item = lkg_list_get(items, i);
                struct lkg_span other;

                if (!lkg_entry_name(item, &other) || !lkg_span_equal(other, name))
                        continue;
                if (found) {
                        lkg_reader_say(r, LKG_ERROR, item, "%s has two entries named %s; remove one", list,
                                       lkg_quote(name.data, name.size, shown));
                        return false;
                }
                found = item;
        }
        if (!found) {
                list_names(top, list, &names);
                lkg_reader_say(r, LKG_ERROR, at, "%s is %s, which is not in %s; there is: %s", said,
                               lkg_quote(name.data, name.size, shown), list, lkg_buf_text(&names));
                return false;
        }
        (void)snprintf(body, sizeof(body), "%.*s", (int)strlen(list) - 1, list);
        (void)snprintf(ret->path, sizeof(ret->path), "%s[%s].%s", list, bare(name.data, name.size, shown),
                       body);
        ret->at = found;
        ret->map = lkg_map_get(found, body);
        if (lkg_is_type(ret->map, LKG_MAP))
                return true;
        if (!lkg_is_null(ret->map))
                lkg_reader_say(r, LKG_ERROR, ret->map, "%s is a %s; want a map", ret->path,
                               lkg_type_name(lkg_value_type(ret->map)));
        ret->map = NULL;
        return lkg_is_null(lkg_map_get(found, body));
}

/* ---- a cluster ---- */

static void replace(char **text, char *by)
{
        free(*text);
        *text = by;
}

static void check_url(struct lkg_reader *r, const struct lkg_section *s, const char *name, const char *want,
                      int (*judge)(struct lkg_span, char **, char *), char **url)
{
        char reason[LKG_REFUSAL_MAX], shown[LKG_READER_QUOTED_MAX], *canonical = NULL;

        if (judge(lkg_span(*url, strlen(*url)), &canonical, reason) < 0)
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, name), "%s.%s is %s: %s; want %s", s->path,
                               name, quote_url(*url, shown), reason, want);
        else
                replace(url, canonical);
}

static void check_cluster(struct lkg_reader *r, const struct lkg_section *s)
{
        struct lkg_identity *i = &r->out->identity;
        char reason[LKG_REFUSAL_MAX], shown[LKG_READER_QUOTED_MAX];

        if (!i->server && !lkg_is_type(lkg_section_get(s, "server"), LKG_NUMBER))
                lkg_reader_say(r, LKG_ERROR, lkg_section_at(s, "server"),
                               "%s has no server; want https://HOST[:PORT]", s->path);
        if (i->server)
                check_url(r, s, "server", "https://HOST[:PORT][/PATH]", lkg_endpoint_server, &i->server);
        if (i->proxy_url)
                check_url(r, s, "proxy-url", "http://, https:// or socks5:// and HOST[:PORT]",
                          lkg_endpoint_proxy, &i->proxy_url);
        if (i->tls_server_name &&
            lkg_endpoint_host(lkg_span(i->tls_server_name, strlen(i->tls_server_name)), reason) < 0)
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, "tls-server-name"),
                               "%s.tls-server-name is %s: %s", s->path,
                               lkg_quote(i->tls_server_name, strlen(i->tls_server_name), shown), reason);
        if (!i->insecure)
                return;
        if (!r->options->allow_insecure)
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, "insecure-skip-tls-verify"),
                               "%s.insecure-skip-tls-verify is true, and remote.allowInsecure of lkgfs's "
                               "own configuration is not; want certificate-authority",
                               s->path);
        else if (r->out->ca.field)
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, "insecure-skip-tls-verify"),
                               "%s is set, and insecure-skip-tls-verify says not to look at it; take one of "
                               "the two out",
                               r->out->ca.field);
        else
                lkg_reader_say(r, LKG_WARNING, lkg_section_get(s, "insecure-skip-tls-verify"),
                               "%s.insecure-skip-tls-verify is true: whoever stands between node and server "
                               "decides what the node runs",
                               s->path);
}

/* ---- the whole ---- */

/* The cluster's configuration for plugins: spec.cluster.config of the ExecCredential that they get. */
static void read_exec_extension(struct lkg_reader *r, const struct lkg_section *cluster)
{
        const struct lkg_value *items = lkg_section_get(cluster, "extensions");
        struct lkg_exec_plugin *exec = r->out->exec;

        if (!exec || !exec->provide_cluster_info || !lkg_is_type(items, LKG_LIST))
                return;
        for (size_t i = 0; i < lkg_value_size(items) && !exec->cluster_config; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
                const struct lkg_value *item = lkg_list_get(items, i), *extension;
                struct lkg_span name;

                if (!lkg_entry_name(item, &name) || !lkg_span_is(name, EXEC_EXTENSION))
                        continue;
                extension = lkg_map_get(item, "extension");
                if (lkg_is_null(extension))
                        continue;
                lkg_render_json_compact(extension, &buf);
                exec->cluster_config = lkg_must(lkg_buf_steal(&buf, NULL));
        }
}

static void check_header(struct lkg_reader *r, const struct lkg_section *top, const char *field,
                         const char *want)
{
        struct lkg_span text;
        char quoted[LKG_READER_QUOTED_MAX];

        if (lkg_reader_text(r, top, field, &text) > 0 && text.size > 0 && !lkg_span_is(text, want))
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(top, field), "%s is %s; want %s", field,
                               lkg_quote(text.data, text.size, quoted), want);
}

/* Find the entry that @field of @from names. */
static bool follow(struct lkg_reader *r, const struct lkg_section *top, const struct lkg_section *from,
                   const char *field, const char *list, struct lkg_section *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;
        struct lkg_span name;
        char said[sizeof(from->path) + 16];

        (void)snprintf(said, sizeof(said), "%s%s%s", from->path, from == top ? "" : ".", field);
        if (lkg_reader_text(r, from, field, &name) < 0)
                return false;
        if (name.size > 0)
                return find_entry(r, top, list, name, said, lkg_section_get(from, field), ret);
        list_names(top, list, &names);
        lkg_reader_say(r, LKG_ERROR, lkg_section_at(from, field),
                       "%s is %s; want the name of an entry of %s, where there is: %s", said,
                       from == top ? "empty" : "missing", list, lkg_buf_text(&names));
        return false;
}

static bool current_context(struct lkg_reader *r, const struct lkg_section *top, struct lkg_section *ret)
{
        const char *asked = r->options->context;

        return asked ? find_entry(r, top, "contexts", lkg_span(asked, strlen(asked)),
                                  "the context that is asked for", top->at, ret)
                     : follow(r, top, top, "current-context", "contexts", ret);
}

static void read_document(struct lkg_reader *r, const struct lkg_value *doc)
{
        const struct lkg_section top = { .map = doc, .at = doc };
        struct lkg_section context, user, cluster = { 0 };

        if (!lkg_is_type(doc, LKG_MAP)) {
                lkg_reader_say(r, LKG_ERROR, doc,
                               lkg_is_null(doc) ? "the file is empty; want a kubeconfig (kind: Config)"
                                                : "this is not a map; want a kubeconfig (kind: Config)");
                return;
        }
        lkg_reader_known(r, &top, top_fields);
        check_header(r, &top, "kind", "Config");
        check_header(r, &top, "apiVersion", "v1");
        check_entries(r, &top, "clusters");
        check_entries(r, &top, "users");
        check_entries(r, &top, "contexts");
        if (r->report.n_severity[LKG_ERROR] > 0 || !current_context(r, &top, &context))
                return;
        lkg_reader_known(r, &context, context_fields);
        if (follow(r, &top, &context, "cluster", "clusters", &cluster)) {
                lkg_reader_fields(r, &cluster, cluster_fields);
                check_cluster(r, &cluster);
        }
        if (follow(r, &top, &context, "user", "users", &user)) {
                lkg_reader_user(r, &user);
                read_exec_extension(r, &cluster);
        }
}

/* Always YAML, as in client-go. Return: 0; -EBADMSG. */
static int decode(struct lkg_reader *r, const char *text, size_t size, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report findings = LKG_REPORT_INIT;
        struct lkg_source *source = lkg_source_new("kubeconfig", r->options->file);
        int k = lkg_decode_yaml(text, size, 0, source, &findings, ret);

        lkg_source_unref(source);
        take_over(r, &findings);
        return k;
}

static int read_text(struct lkg_reader *r, const char *text, size_t size)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        int k;

        r->out = lkg_must(calloc(1, sizeof(*r->out)));
        r->out->file = lkg_copy(r->options->file);
        if (size > LKG_KUBECONFIG_BYTES_MAX) {
                lkg_reader_say(r, LKG_ERROR, NULL,
                               "the file has more than %u bytes; want a kubeconfig (kind: Config)",
                               LKG_KUBECONFIG_BYTES_MAX);
                return -EBADMSG;
        }
        k = decode(r, text, size, &doc);
        if (k == 0) {
                read_document(r, doc);
                lkg_value_wipe(doc);
        }
        return r->report.n_severity[LKG_ERROR] > 0 ? -EBADMSG : k;
}

int lkg_kubeconfig_detect(const char *text, size_t size)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report findings = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        int r = lkg_decode_yaml(text, size, 0, NULL, &findings, &doc);

        if (r < 0)
                return r;
        r = lkg_is_kubeconfig(doc);
        lkg_value_wipe(doc);
        return r;
}

int lkg_kubeconfig_parse(const char *text, size_t size, const struct lkg_kubeconfig_options *options,
                         struct lkg_kubeconfig **ret, struct lkg_report *report)
{
        struct lkg_reader r = { .options = options, .report = LKG_REPORT_INIT };
        int k = read_text(&r, text, size);

        lkg_report_append(report, &r.report);
        lkg_report_deinit(&r.report);
        if (k == 0)
                *ret = LKG_STEAL(r.out);
        lkg_kubeconfig_free(r.out);
        return k;
}

/* ---- in a pod ---- */

int lkg_kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                              struct lkg_kubeconfig **ret, struct lkg_error *err)
{
        struct lkg_kubeconfig *k;
        struct lkg_span h, p;
        char reason[LKG_REFUSAL_MAX];

        if (!host || !*host || !port || !*port)
                return lkg_error_set(
                        err, -ENOENT, NULL,
                        "not in a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set.");
        h = lkg_span(host, strlen(host));
        p = lkg_span(port, strlen(port));
        if (lkg_endpoint_host(h, reason) < 0)
                return lkg_error_set(err, -EINVAL, NULL, "KUBERNETES_SERVICE_HOST: %s.", reason);
        if (lkg_endpoint_port(p, reason) < 0)
                return lkg_error_set(err, -EINVAL, NULL, "KUBERNETES_SERVICE_PORT: %s.", reason);
        k = lkg_must(calloc(1, sizeof(*k)));
        k->file = lkg_copy("");
        k->identity.server = lkg_format(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
        k->ca.path = lkg_format("%s/ca.crt", directory);
        k->token_file.path = lkg_format("%s/token", directory);
        *ret = k;
        return 0;
}

/* ---- the end ---- */

static void free_part(struct lkg_file_or_data *x)
{
        lkg_file_or_data_wipe(x);
        free(x->path);
        free(x->field);
}

static void free_list(char **list)
{
        for (size_t i = 0; list && list[i]; i++)
                lkg_wipe_free(list[i]);
        free(list);
}

struct lkg_kubeconfig *lkg_kubeconfig_free(struct lkg_kubeconfig *k)
{
        if (!k)
                return NULL;
        free(k->file);
        lkg_identity_deinit(&k->identity);
        free_part(&k->ca);
        free_part(&k->certificate);
        free_part(&k->key);
        free_part(&k->token_file);
        if (k->exec) {
                free_list(k->exec->argv);
                free_list(k->exec->env);
                free(k->exec->api_version);
                lkg_wipe_free(k->exec->cluster_config);
                free(k->exec);
        }
        free(k);
        return NULL;
}
