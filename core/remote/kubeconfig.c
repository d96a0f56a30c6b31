/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubeconfig, read field by field along tables. Only what the current context leads to is looked at closely; of
 * everything else the shape is enough.
 *
 * What is wrong is said where it stands and in the words of the field, and no value of a secret field is ever quoted:
 * of those only the type or the kind of mistake is named. The decoded tree holds copies of the secrets; they are wiped
 * before it is let go.
 */
#include "kubeconfig.h"

#include <openssl/crypto.h>

#include <lkg/buf.h>
#include <lkg/decode.h>
#include <lkg/limits.h>
#include <lkg/nearest.h>
#include <lkg/stack.h>

#include "endpoint.h"
#include "wipe.h"

#define CODE       7001
#define QUOTED_MAX (5 * LKG_QUOTE_MAX + 8)
#define PATH_MAX_  (2 * QUOTED_MAX + 64)
#define SHOWN_MAX  8u /* names listed in a message */

enum field_type {
        F_TEXT,    /* char *: one line */
        F_TOKEN,   /* char *: the same without the white space around it */
        F_PATH,    /* struct lkg_file_or_data: path */
        F_DATA,    /* struct lkg_file_or_data: data, base64 */
        F_BOOL,    /* bool */
        F_KEEP,    /* read elsewhere */
        F_ANY,     /* of no interest to us */
        F_REFUSED, /* must be empty; @why says what would be right */
};

struct field {
        const char *name;
        enum field_type type;
        size_t offset; /* in struct lkg_kubeconfig */
        const char *why;
};

#define AT(m) offsetof(struct lkg_kubeconfig, m)

static const struct field top_fields[] = {
        { "kind", F_KEEP },       { "apiVersion", F_KEEP }, { "clusters", F_KEEP },
        { "users", F_KEEP },      { "contexts", F_KEEP },   { "current-context", F_KEEP },
        { "preferences", F_ANY }, { "extensions", F_ANY },  { NULL },
};
static const struct field context_fields[] = {
        { "cluster", F_KEEP }, { "user", F_KEEP }, { "namespace", F_ANY }, { "extensions", F_ANY }, { NULL },
};
static const struct field cluster_fields[] = {
        { "server", F_TEXT, AT(server) },
        { "tls-server-name", F_TEXT, AT(tls_server_name) },
        { "proxy-url", F_TEXT, AT(proxy_url) },
        { "insecure-skip-tls-verify", F_BOOL, AT(insecure) },
        { "disable-compression", F_BOOL, AT(disable_compression) },
        { "certificate-authority", F_PATH, AT(ca) },
        { "certificate-authority-data", F_DATA, AT(ca) },
        { "extensions", F_ANY },
        { NULL },
};
#define WHY_AS                                                                                            \
        "whose configuration a node gets must not depend on it; take it out, or use a credential of its " \
        "own"
static const struct field user_fields[] = {
        { "client-certificate", F_PATH, AT(certificate) },
        { "client-certificate-data", F_DATA, AT(certificate) },
        { "client-key", F_PATH, AT(key) },
        { "client-key-data", F_DATA, AT(key) },
        { "token", F_TOKEN, AT(token) },
        { "tokenFile", F_PATH, AT(token_file) },
        { "username", F_TEXT, AT(username) },
        { "password", F_TEXT, AT(password) },
        { "as", F_TEXT, AT(impersonate) },
        { "as-uid", F_REFUSED, .why = WHY_AS },
        { "as-groups", F_REFUSED, .why = WHY_AS },
        { "as-user-extra", F_REFUSED, .why = WHY_AS },
        { "auth-provider", F_REFUSED,
          .why = "Kubernetes removed it in 1.26; use exec, a certificate or tokenFile" },
        { "exec", F_KEEP },
        { "extensions", F_ANY },
        { NULL },
};
static const struct field exec_fields[] = {
        { "command", F_KEEP },
        { "args", F_KEEP },
        { "env", F_KEEP },
        { "apiVersion", F_KEEP },
        { "installHint", F_ANY },
        { "provideClusterInfo", F_KEEP },
        { "interactiveMode", F_KEEP },
        { NULL },
};

struct reader {
        const struct lkg_kubeconfig_options *options;
        struct lkg_report report;
        struct lkg_kubeconfig *out;
        bool failed; /* no memory */
};

/* A map of the document and how people name it. */
struct section {
        const struct lkg_value *map, *at; /* map NULL = not there; at: what stands next to the place */
        char path[PATH_MAX_];             /* "users[u].user"; "" = the whole */
};

/* ---- findings ---- */

static void say(struct reader *r, enum lkg_severity severity, const struct lkg_value *at, const char *fmt,
                ...) LKG_PRINTF(4, 5);
static void say(struct reader *r, enum lkg_severity severity, const struct lkg_value *at, const char *fmt,
                ...)
{
        struct lkg_where where = lkg_where_of(at);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        va_list ap;

        if (!where.file)
                where.file = r->options->file;
        va_start(ap, fmt);
        if (vasprintf(&text, fmt, ap) < 0)
                text = NULL;
        va_end(ap);
        if (text)
                lkg_report_add(&r->report, severity, CODE, &where, "%s", text);
        else
                r->failed = true;
}

/* The decoder's findings quote keys and anchors only, never a value. */
static void take_over(struct reader *r, const struct lkg_report *from)
{
        for (size_t i = 0; i < from->n_findings; i++) {
                const struct lkg_finding *f = &from->findings[i];
                const struct lkg_where where = { r->options->file, f->line, f->column };

                lkg_report_add(&r->report, f->severity, CODE, &where, "%s", f->text);
        }
        lkg_report_count_unlisted(&r->report, from);
}

/* A name as it stands in a path or a list: what lkg_quote() makes of it, without the quotes. */
static const char *bare(const char *name, size_t size, char buf[static QUOTED_MAX])
{
        size_t n = strlen(lkg_quote(name, size, buf));
        char *end = strrchr(buf, '"');

        if (end > buf)
                memmove(end, end + 1, n - (size_t)(end - buf));
        memmove(buf, buf + 1, strlen(buf));
        return buf;
}

/* A URL in quotes, whatever could be a credential in it masked. */
static const char *quote_url(const char *text, char buf[static QUOTED_MAX])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;

        if (!lkg_mask_url(text, strlen(text), &masked))
                return lkg_quote(text, strlen(text), buf);
        return lkg_buf_failed(&masked) ? lkg_quote("", 0, buf) : lkg_quote(masked.data, masked.size, buf);
}

static const char *dot(const struct section *s)
{
        return s->path[0] ? "." : "";
}

/* ---- shape ---- */

static bool is_null(const struct lkg_value *value)
{
        return !value || lkg_value_type(value) == LKG_NULL;
}

static bool is_type(const struct lkg_value *value, enum lkg_type type)
{
        return value && lkg_value_type(value) == type;
}

static const struct lkg_value *member(const struct section *s, const char *name)
{
        return s->map ? lkg_map_get(s->map, name) : NULL;
}

/* Where a member is, or would be. */
static const struct lkg_value *place(const struct section *s, const char *name)
{
        const struct lkg_value *value = member(s, name);

        return value ? value : s->map ? s->map : s->at;
}

static void wrong_type(struct reader *r, const struct section *s, const char *name,
                       const struct lkg_value *value, const char *want)
{
        say(r, LKG_ERROR, value, "%s%s%s is a %s; want %s", s->path, dot(s), name,
            lkg_type_name(lkg_value_type(value)), want);
}

/* Return: whether there is a text; one of another type is a finding. */
static bool text_in(struct reader *r, const struct section *s, const char *name, struct lkg_span *ret)
{
        const struct lkg_value *value = member(s, name);

        *ret = lkg_span("", 0);
        if (is_null(value))
                return false;
        if (lkg_value_type(value) != LKG_STRING) {
                wrong_type(r, s, name, value,
                           is_type(value, LKG_LIST) || is_type(value, LKG_MAP) ? "a text"
                                                                               : "a text, in quotes");
                return false;
        }
        ret->data = lkg_value_text(value, &ret->size);
        return true;
}

static bool one_line(struct lkg_span text)
{
        for (size_t i = 0; i < text.size; i++)
                if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
                        return false;
        return true;
}

static char *dup_span(struct reader *r, struct lkg_span text)
{
        char *copy = lkg_span_dup(text);

        r->failed |= !copy;
        return copy;
}

static void known_fields(struct reader *r, const struct section *s, const struct field *fields)
{
        for (size_t i = 0; s->map && i < lkg_value_size(s->map); i++) {
                char quoted[QUOTED_MAX];
                struct lkg_nearest nearest;
                struct lkg_span name;
                const struct lkg_value *value = lkg_map_at(s->map, i, &name.data, &name.size);
                const struct field *f = fields;

                lkg_nearest_init(&nearest, name.data);
                for (; f->name && !lkg_span_is(name, f->name); f++)
                        lkg_nearest_offer(&nearest, f->name);
                if (f->name)
                        continue;
                say(r, LKG_WARNING, value, "%s%sunknown field %s, ignoring%s%s%s", s->path,
                    s->path[0] ? ": " : "", lkg_quote(name.data, name.size, quoted),
                    lkg_nearest_best(&nearest) ? "; did you mean " : "",
                    lkg_nearest_best(&nearest) ? lkg_nearest_best(&nearest) : "",
                    lkg_nearest_best(&nearest) ? "?" : "");
        }
}

/* ---- entries with names: clusters, users, contexts ---- */

static bool name_of(const struct lkg_value *item, struct lkg_span *ret)
{
        const struct lkg_value *name = is_type(item, LKG_MAP) ? lkg_map_get(item, "name") : NULL;

        if (!is_type(name, LKG_STRING))
                return false;
        ret->data = lkg_value_text(name, &ret->size);
        return true;
}

static const struct lkg_value *entries(const struct section *top, const char *list)
{
        const struct lkg_value *value = member(top, list);

        return is_type(value, LKG_LIST) ? value : NULL;
}

/* "there is a, b and 3 more", "there is none" */
static void list_names(const struct section *top, const char *list, struct lkg_buf *buf)
{
        const struct lkg_value *items = entries(top, list);
        size_t n = 0;

        for (size_t i = 0; items && i < lkg_value_size(items); i++) {
                char name[QUOTED_MAX];
                struct lkg_span text;

                if (name_of(lkg_list_get(items, i), &text) && ++n <= SHOWN_MAX)
                        lkg_buf_printf(buf, "%s%s", n == 1 ? "there is " : ", ",
                                       bare(text.data, text.size, name));
        }
        if (n > SHOWN_MAX)
                lkg_buf_printf(buf, " and %zu more", n - SHOWN_MAX);
        lkg_buf_puts(buf, n ? "" : "there is none");
        lkg_buf_append(buf, "", 0);
}

static void check_entries(struct reader *r, const struct section *top, const char *list)
{
        const struct lkg_value *items = member(top, list);

        if (is_null(items))
                return;
        if (!is_type(items, LKG_LIST)) {
                wrong_type(r, top, list, items, "a list of entries with a name");
                return;
        }
        for (size_t i = 0; i < lkg_value_size(items); i++) {
                const struct lkg_value *item = lkg_list_get(items, i);
                struct lkg_span name;

                if (!is_type(item, LKG_MAP))
                        say(r, LKG_ERROR, item, "%s[%zu] is a %s; want a map with a name", list, i,
                            lkg_type_name(lkg_value_type(item)));
                else if (!name_of(item, &name) && !is_null(lkg_map_get(item, "name")))
                        say(r, LKG_ERROR, item, "%s[%zu].name is a %s; want a text, in quotes", list, i,
                            lkg_type_name(lkg_value_type(lkg_map_get(item, "name"))));
        }
}

/*
 * The entry @name of @list: what it has under @body. @said: the field that names it.
 * Return: whether there is one; else it is a finding at @at.
 */
static bool find_entry(struct reader *r, const struct section *top, const char *list, const char *body,
                       struct lkg_span name, const char *said, const struct lkg_value *at,
                       struct section *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;
        const struct lkg_value *items = entries(top, list), *found = NULL;
        char shown[QUOTED_MAX];

        for (size_t i = 0; items && i < lkg_value_size(items); i++) {
                const struct lkg_value *item = lkg_list_get(items, i);
                struct lkg_span other;

                if (!name_of(item, &other) || !lkg_span_equal(other, name))
                        continue;
                if (found) {
                        say(r, LKG_ERROR, item, "%s has two entries named %s; remove one", list,
                            lkg_quote(name.data, name.size, shown));
                        return false;
                }
                found = item;
        }
        if (!found) {
                list_names(top, list, &names);
                say(r, LKG_ERROR, at, "%s is %s, which is not in %s; %s", said,
                    lkg_quote(name.data, name.size, shown), list, names.data ? names.data : "");
                return false;
        }
        (void)snprintf(ret->path, sizeof(ret->path), "%s[%s].%s", list, bare(name.data, name.size, shown),
                       body);
        ret->at = found;
        ret->map = lkg_map_get(found, body);
        if (is_type(ret->map, LKG_MAP))
                return true;
        if (!is_null(ret->map))
                say(r, LKG_ERROR, ret->map, "%s is a %s; want a map", ret->path,
                    lkg_type_name(lkg_value_type(ret->map)));
        ret->map = NULL;
        return is_null(lkg_map_get(found, body));
}

/* ---- fields ---- */

static bool set_field_name(struct reader *r, const struct section *s, const char *name,
                           struct lkg_file_or_data *to)
{
        const struct lkg_value *value = member(s, name);

        free(to->field);
        if (asprintf(&to->field, "%s.%s", s->path, name) < 0)
                to->field = NULL;
        to->line = lkg_value_line(value);
        to->column = lkg_value_column(value);
        r->failed |= !to->field;
        return to->field;
}

/* A path of the file counts from the directory of the file. */
static char *absolute(struct reader *r, struct lkg_span path)
{
        const char *file = r->options->file, *slash = strrchr(file, '/');
        char *joined;

        if (path.data[0] == '/')
                return dup_span(r, path);
        if (asprintf(&joined, "%.*s/%.*s", (int)(slash ? slash - file : 0), file, (int)path.size,
                     path.data) < 0)
                joined = NULL;
        r->failed |= !joined;
        return joined;
}

static void wipe_data(struct lkg_file_or_data *x)
{
        if (x->data)
                OPENSSL_cleanse(x->data, x->size);
        free(x->data);
        x->data = NULL;
        x->size = 0;
}

/* `*-data` stands behind the field of the same name in the tables: what it says counts. */
static void take_data(struct reader *r, const struct section *s, const char *name, struct lkg_span text,
                      struct lkg_file_or_data *to)
{
        char *data = malloc(text.size + 3 + 1);
        ssize_t n = data ? lkg_base64_decode(text.data, text.size, data) : -1;

        r->failed |= !data;
        if (data && n < 0)
                say(r, LKG_ERROR, member(s, name),
                    "%s.%s is not base64; want the PEM file as `base64 -w0 FILE` prints it", s->path, name);
        if (n <= 0 || !set_field_name(r, s, name, to)) {
                if (data)
                        OPENSSL_cleanse(data, text.size);
                free(data);
                return;
        }
        if (to->path)
                say(r, LKG_WARNING, member(s, name),
                    "%s.%s counts, and the file of the field %.*s does not; take one out", s->path, name,
                    (int)(strlen(name) - strlen("-data")), name);
        free(to->path);
        to->path = NULL;
        data[n] = '\0';
        wipe_data(to);
        to->data = data;
        to->size = (size_t)n;
}

static void take_text(struct reader *r, const struct section *s, const struct field *f, struct lkg_span text)
{
        char *base = (char *)r->out + f->offset;

        if (f->type == F_TOKEN)
                text = lkg_span_trim(text);
        if (f->type != F_DATA && !one_line(text)) {
                say(r, LKG_ERROR, member(s, f->name),
                    "%s.%s has a control character; want one line of plain text", s->path, f->name);
                return;
        }
        if (text.size == 0)
                return;
        if (f->type == F_DATA)
                take_data(r, s, f->name, text, (struct lkg_file_or_data *)(void *)base);
        else if (f->type == F_PATH && set_field_name(r, s, f->name, (struct lkg_file_or_data *)(void *)base))
                ((struct lkg_file_or_data *)(void *)base)->path = absolute(r, text);
        else if (f->type != F_PATH)
                *(char **)(void *)base = dup_span(r, text);
}

static bool is_empty(const struct lkg_value *value)
{
        switch (lkg_value_type(value)) {
        case LKG_NULL:
                return true;
        case LKG_LIST:
        case LKG_MAP:
                return lkg_value_size(value) == 0;
        case LKG_STRING:
                return *lkg_value_text(value, NULL) == '\0';
        case LKG_BOOL:
        case LKG_NUMBER:
        case _LKG_TYPE_MAX:
                break;
        }
        return false;
}

static bool bool_in(struct reader *r, const struct section *s, const char *name)
{
        const struct lkg_value *value = member(s, name);

        if (is_null(value))
                return false;
        if (!is_type(value, LKG_BOOL)) {
                wrong_type(r, s, name, value, "true or false");
                return false;
        }
        return lkg_value_bool(value);
}

static void read_fields(struct reader *r, const struct section *s, const struct field *fields)
{
        known_fields(r, s, fields);
        for (const struct field *f = fields; s->map && f->name; f++) {
                const struct lkg_value *value = member(s, f->name);
                struct lkg_span text;

                if (f->type == F_KEEP || f->type == F_ANY || is_null(value))
                        continue;
                if (f->type == F_REFUSED) {
                        if (!is_empty(value))
                                say(r, LKG_ERROR, value, "%s.%s is not supported: %s", s->path, f->name,
                                    f->why);
                } else if (f->type == F_BOOL) {
                        *(bool *)((char *)r->out + f->offset) = bool_in(r, s, f->name);
                } else if (text_in(r, s, f->name, &text)) {
                        take_text(r, s, f, text);
                }
        }
}

/* ---- a cluster ---- */

static void replace(char **text, char *by)
{
        free(*text);
        *text = by;
}

static void check_url(struct reader *r, const struct section *s, const char *name, const char *want,
                      int (*judge)(struct lkg_span, char **, char *), char **url)
{
        char reason[LKG_REFUSAL_MAX], shown[QUOTED_MAX], *canonical = NULL;
        int k = judge(lkg_span(*url, strlen(*url)), &canonical, reason);

        if (k == -ENOMEM)
                r->failed = true;
        else if (k < 0)
                say(r, LKG_ERROR, member(s, name), "%s.%s is %s: %s; want %s", s->path, name,
                    quote_url(*url, shown), reason, want);
        else
                replace(url, canonical);
}

static void check_cluster(struct reader *r, const struct section *s)
{
        struct lkg_kubeconfig *k = r->out;
        char reason[LKG_REFUSAL_MAX], shown[QUOTED_MAX];

        if (!k->server && !is_type(member(s, "server"), LKG_NUMBER))
                say(r, LKG_ERROR, place(s, "server"), "%s has no server; want https://HOST[:PORT]", s->path);
        if (k->server)
                check_url(r, s, "server", "https://HOST[:PORT][/PATH]", lkg_endpoint_server, &k->server);
        if (k->proxy_url)
                check_url(r, s, "proxy-url", "http://, https:// or socks5:// and HOST[:PORT]",
                          lkg_endpoint_proxy, &k->proxy_url);
        if (k->tls_server_name &&
            lkg_endpoint_host(lkg_span(k->tls_server_name, strlen(k->tls_server_name)), reason) < 0)
                say(r, LKG_ERROR, member(s, "tls-server-name"), "%s.tls-server-name is %s: %s", s->path,
                    lkg_quote(k->tls_server_name, strlen(k->tls_server_name), shown), reason);
        if (!k->insecure)
                return;
        if (!r->options->allow_insecure)
                say(r, LKG_ERROR, member(s, "insecure-skip-tls-verify"),
                    "%s.insecure-skip-tls-verify is true, and remote.allowInsecure of lkgfs's own "
                    "configuration is "
                    "not; want certificate-authority",
                    s->path);
        else if (k->ca.field)
                say(r, LKG_ERROR, member(s, "insecure-skip-tls-verify"),
                    "%s is set, and insecure-skip-tls-verify says not to look at it; take one of the two "
                    "out",
                    k->ca.field);
        else
                say(r, LKG_WARNING, member(s, "insecure-skip-tls-verify"),
                    "%s.insecure-skip-tls-verify is true: whoever stands between node and server decides "
                    "what the "
                    "node runs",
                    s->path);
}

/* ---- a user ---- */

/* Room for one more and the NULL at the end. */
static bool push(struct reader *r, char ***list, size_t *n, char *item)
{
        char **grown = item ? reallocarray(*list, *n + 2, sizeof(**list)) : NULL;

        if (!grown) {
                r->failed = true;
                free(item);
                return false;
        }
        grown[(*n)++] = item;
        grown[*n] = NULL;
        *list = grown;
        return true;
}

static bool no_nul(struct reader *r, const struct section *s, const char *name, const struct lkg_value *at,
                   struct lkg_span text)
{
        if (!memchr(text.data, '\0', text.size))
                return true;
        say(r, LKG_ERROR, at, "%s.%s has a NUL byte, which no program can be given", s->path, name);
        return false;
}

static void read_argv(struct reader *r, const struct section *s, struct lkg_exec_plugin *exec)
{
        const struct lkg_value *args = member(s, "args");
        struct lkg_span text;
        size_t n = 0;

        if (!text_in(r, s, "command", &text) || text.size == 0) {
                if (is_null(member(s, "command")) || is_type(member(s, "command"), LKG_STRING))
                        say(r, LKG_ERROR, place(s, "command"), "%s has no command; want the program to run",
                            s->path);
                return;
        }
        if (!no_nul(r, s, "command", member(s, "command"), text))
                return;
        /* With a slash it is a path and counts from the directory of the file, without one a name for PATH. */
        if (!push(r, &exec->argv, &n,
                  memchr(text.data, '/', text.size) ? absolute(r, text) : dup_span(r, text)))
                return;
        if (!is_null(args) && !is_type(args, LKG_LIST))
                wrong_type(r, s, "args", args, "a list of texts");
        for (size_t i = 0; is_type(args, LKG_LIST) && i < lkg_value_size(args); i++) {
                const struct lkg_value *item = lkg_list_get(args, i);

                if (!is_type(item, LKG_STRING)) {
                        wrong_type(r, s, "args", item, "a list of texts, in quotes");
                        return;
                }
                text.data = lkg_value_text(item, &text.size);
                if (!no_nul(r, s, "args", item, text) || !push(r, &exec->argv, &n, dup_span(r, text)))
                        return;
        }
}

static void read_env(struct reader *r, const struct section *s, struct lkg_exec_plugin *exec)
{
        const struct lkg_value *env = member(s, "env");
        size_t n = 0;

        if (!is_null(env) && !is_type(env, LKG_LIST))
                wrong_type(r, s, "env", env, "a list of {name, value}");
        for (size_t i = 0; is_type(env, LKG_LIST) && i < lkg_value_size(env); i++) {
                const struct lkg_value *item = lkg_list_get(env, i);
                const struct lkg_value *value = is_type(item, LKG_MAP) ? lkg_map_get(item, "value") : NULL;
                struct lkg_span name, text = lkg_span("", 0);
                char *pair;

                if (!name_of(item, &name) || name.size == 0 || memchr(name.data, '=', name.size) ||
                    (!is_null(value) && !is_type(value, LKG_STRING))) {
                        say(r, LKG_ERROR, item,
                            "%s.env[%zu]: want {name: NAME, value: \"TEXT\"}, NAME without =", s->path, i);
                        return;
                }
                if (!is_null(value))
                        text.data = lkg_value_text(value, &text.size);
                if (!no_nul(r, s, "env", item, name) || !no_nul(r, s, "env", item, text))
                        return;
                if (asprintf(&pair, "%.*s=%.*s", (int)name.size, name.data, (int)text.size, text.data) < 0)
                        pair = NULL;
                if (!push(r, &exec->env, &n, pair))
                        return;
        }
}

/* interactiveMode: a daemon has no terminal. Version v1 requires the field; v1beta1 means IfAvailable without it. */
static void check_interactive(struct reader *r, const struct section *s, const char *api_version)
{
        struct lkg_span mode;
        char quoted[QUOTED_MAX];

        if (!text_in(r, s, "interactiveMode", &mode) && !is_null(member(s, "interactiveMode")))
                return;
        if (lkg_span_is(mode, "Never") || lkg_span_is(mode, "IfAvailable"))
                return;
        if (lkg_span_is(mode, "Always"))
                say(r, LKG_ERROR, member(s, "interactiveMode"),
                    "%s.interactiveMode is Always, and here is no terminal; want Never or IfAvailable",
                    s->path);
        else if (mode.size > 0)
                say(r, LKG_ERROR, member(s, "interactiveMode"),
                    "%s.interactiveMode is %s; want Never or IfAvailable", s->path,
                    lkg_quote(mode.data, mode.size, quoted));
        else if (strcmp(api_version, LKG_EXEC_V1) == 0)
                say(r, LKG_ERROR, place(s, "interactiveMode"),
                    "%s has no interactiveMode, which %s requires; want Never or IfAvailable", s->path,
                    api_version);
}

static void check_exec_version(struct reader *r, const struct section *s, struct lkg_exec_plugin *exec)
{
        struct lkg_span text;
        char quoted[QUOTED_MAX];

        if (!text_in(r, s, "apiVersion", &text) && !is_null(member(s, "apiVersion")))
                return;
        if (!lkg_span_is(text, LKG_EXEC_V1) && !lkg_span_is(text, LKG_EXEC_V1BETA1)) {
                say(r, LKG_ERROR, place(s, "apiVersion"),
                    "%s.apiVersion is %s; want " LKG_EXEC_V1 " or v1beta1", s->path,
                    lkg_quote(text.data, text.size, quoted));
                return;
        }
        exec->api_version = dup_span(r, text);
        if (exec->api_version)
                check_interactive(r, s, exec->api_version);
}

static void read_exec(struct reader *r, const struct section *user)
{
        const struct lkg_value *map = member(user, "exec");
        struct section s = { .map = map, .at = map };
        struct lkg_exec_plugin *exec;

        if (is_null(map))
                return;
        if (!is_type(map, LKG_MAP)) {
                wrong_type(r, user, "exec", map, "a map with command");
                return;
        }
        (void)snprintf(s.path, sizeof(s.path), "%.*s.exec", (int)sizeof(s.path) - 8, user->path);
        known_fields(r, &s, exec_fields);
        exec = r->out->exec = calloc(1, sizeof(*exec));
        r->failed |= !exec;
        if (!exec)
                return;
        if (!r->options->allow_exec)
                say(r, LKG_ERROR, map,
                    "%s runs a program, and remote.allowExec of lkgfs's own configuration does not allow "
                    "it; set that, "
                    "or want a certificate or tokenFile",
                    s.path);
        read_argv(r, &s, exec);
        read_env(r, &s, exec);
        check_exec_version(r, &s, exec);
        exec->provide_cluster_info = bool_in(r, &s, "provideClusterInfo");
}

static void check_user(struct reader *r, const struct section *s)
{
        struct lkg_kubeconfig *k = r->out;
        bool token = k->token || k->token_file.field;

        if (k->certificate.field && !k->key.field)
                say(r, LKG_ERROR, place(s, "client-certificate"),
                    "%s has a client certificate without its key; want client-key or client-key-data",
                    s->path);
        if (k->key.field && !k->certificate.field)
                say(r, LKG_ERROR, place(s, "client-key"),
                    "%s has a client key without its certificate; want client-certificate or "
                    "client-certificate-data",
                    s->path);
        if (token && (k->username || k->password))
                say(r, LKG_ERROR, place(s, "username"),
                    "%s has a token and username or password, and a request can carry one of them; take one "
                    "out",
                    s->path);
        if (k->password && !k->username)
                say(r, LKG_ERROR, place(s, "password"), "%s has a password without username", s->path);
        if (k->username && strchr(k->username, ':'))
                say(r, LKG_ERROR, place(s, "username"),
                    "%s.username has a colon, which ends a user's name (RFC 7617)", s->path);
        if (k->exec && (token || k->username))
                say(r, LKG_WARNING, place(s, "exec"),
                    "%s.exec is not run, because a token or username is given", s->path);
        if (!token && !k->username && !k->certificate.field && !k->key.field && !k->exec &&
            r->report.n_severity[LKG_ERROR] == 0)
                say(r, LKG_WARNING, place(s, "token"),
                    "%s has no credential, so requests are anonymous; want a certificate, a token or "
                    "tokenFile",
                    s->path);
}

/* ---- the whole ---- */

static void check_header(struct reader *r, const struct section *top, const char *field, const char *want)
{
        struct lkg_span text;
        char quoted[QUOTED_MAX];

        if (text_in(r, top, field, &text) && text.size > 0 && !lkg_span_is(text, want))
                say(r, LKG_ERROR, member(top, field), "%s is %s; want %s", field,
                    lkg_quote(text.data, text.size, quoted), want);
}

/* The entry that the context's @field names. */
static bool follow(struct reader *r, const struct section *top, const struct section *context,
                   const char *field, const char *list, struct section *ret)
{
        struct lkg_span name;
        char said[sizeof(context->path) + 16];

        (void)snprintf(said, sizeof(said), "%s.%s", context->path, field);
        if (!text_in(r, context, field, &name) && !is_null(member(context, field)))
                return false;
        if (name.size == 0) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;

                list_names(top, list, &names);
                say(r, LKG_ERROR, place(context, field),
                    "%s is missing; want the name of an entry of %s, %s", said, list,
                    names.data ? names.data : "");
                return false;
        }
        return find_entry(r, top, list, field, name, said, member(context, field), ret);
}

static bool current_context(struct reader *r, const struct section *top, struct section *ret)
{
        struct lkg_span name;

        if (!text_in(r, top, "current-context", &name) && !is_null(member(top, "current-context")))
                return false;
        if (name.size == 0) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;

                list_names(top, "contexts", &names);
                say(r, LKG_ERROR, place(top, "current-context"),
                    "current-context is empty; want the name of one of the contexts, %s",
                    names.data ? names.data : "");
                return false;
        }
        return find_entry(r, top, "contexts", "context", name, "current-context",
                          member(top, "current-context"), ret);
}

static void read_document(struct reader *r, const struct lkg_value *doc)
{
        const struct section top = { .map = doc, .at = doc };
        struct section context, cluster, user;

        if (!is_type(doc, LKG_MAP)) {
                say(r, LKG_ERROR, doc,
                    is_null(doc) ? "the file is empty; want a kubeconfig (kind: Config)"
                                 : "this is no map; want a kubeconfig (kind: Config)");
                return;
        }
        known_fields(r, &top, top_fields);
        check_header(r, &top, "kind", "Config");
        check_header(r, &top, "apiVersion", "v1");
        check_entries(r, &top, "clusters");
        check_entries(r, &top, "users");
        check_entries(r, &top, "contexts");
        if (r->report.n_severity[LKG_ERROR] > 0 || !current_context(r, &top, &context))
                return;
        known_fields(r, &context, context_fields);
        if (follow(r, &top, &context, "cluster", "clusters", &cluster)) {
                read_fields(r, &cluster, cluster_fields);
                check_cluster(r, &cluster);
        }
        if (follow(r, &top, &context, "user", "users", &user)) {
                read_fields(r, &user, user_fields);
                read_exec(r, &user);
                check_user(r, &user);
        }
}

/* What may be secret of every user, not of ours alone. */
static void wipe_document(const struct lkg_value *doc)
{
        static const char *const secrets[] = { "token", "password", "client-key-data" };
        const struct lkg_value *users = is_type(doc, LKG_MAP) ? lkg_map_get(doc, "users") : NULL;

        for (size_t i = 0; is_type(users, LKG_LIST) && i < lkg_value_size(users); i++) {
                const struct lkg_value *item = lkg_list_get(users, i);
                const struct lkg_value *user = is_type(item, LKG_MAP) ? lkg_map_get(item, "user") : NULL;
                const struct lkg_value *exec = is_type(user, LKG_MAP) ? lkg_map_get(user, "exec") : NULL;
                const struct lkg_value *env = is_type(exec, LKG_MAP) ? lkg_map_get(exec, "env") : NULL;

                for (size_t k = 0; is_type(user, LKG_MAP) && k < LKG_ARRAY_SIZE(secrets); k++)
                        lkg_value_wipe(lkg_map_get(user, secrets[k]));
                for (size_t k = 0; is_type(env, LKG_LIST) && k < lkg_value_size(env); k++)
                        if (is_type(lkg_list_get(env, k), LKG_MAP))
                                lkg_value_wipe(lkg_map_get(lkg_list_get(env, k), "value"));
        }
}

/* YAML whatever it looks like, as client-go reads it. Return: 0; -EBADMSG; -ENOMEM. */
static int decode(struct reader *r, const char *text, size_t size, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report findings = LKG_REPORT_INIT;
        struct lkg_source *source = lkg_source_new("kubeconfig", r->options->file);
        int k;

        if (!source)
                return -ENOMEM;
        k = lkg_decode_yaml(text, size, 0, source, &findings, ret);
        lkg_source_unref(source);
        take_over(r, &findings);
        return k;
}

static int read_text(struct reader *r, const char *text, size_t size)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        int k;

        r->out = calloc(1, sizeof(*r->out));
        if (!r->out || !(r->out->file = strdup(r->options->file)))
                return -ENOMEM;
        if (size > LKG_KUBECONFIG_BYTES_MAX) {
                say(r, LKG_ERROR, NULL, "the file has more than %u bytes; want a kubeconfig (kind: Config)",
                    LKG_KUBECONFIG_BYTES_MAX);
                return -EBADMSG;
        }
        k = decode(r, text, size, &doc);
        if (k == 0) {
                read_document(r, doc);
                wipe_document(doc);
        }
        if (k == -ENOMEM || r->failed)
                return -ENOMEM;
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
        wipe_document(doc);
        return r;
}

int lkg_kubeconfig_parse(const char *text, size_t size, const struct lkg_kubeconfig_options *options,
                         struct lkg_kubeconfig **ret, struct lkg_report *report)
{
        struct reader r = { .options = options, .report = LKG_REPORT_INIT };
        int k = read_text(&r, text, size);

        lkg_report_append(report, &r.report);
        lkg_report_deinit(&r.report);
        if (k == 0)
                *ret = LKG_STEAL(r.out);
        lkg_kubeconfig_free(r.out);
        return k;
}

/* ---- in a pod ---- */

static int pod_file(const char *directory, const char *name, struct lkg_file_or_data *ret)
{
        if (asprintf(&ret->path, "%s/%s", directory, name) < 0)
                ret->path = NULL;
        return ret->path ? 0 : -ENOMEM;
}

int lkg_kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                              struct lkg_kubeconfig **ret, struct lkg_error *err)
{
        struct lkg_kubeconfig *k;
        struct lkg_span h, p;
        char reason[LKG_REFUSAL_MAX];
        int r;

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
        k = calloc(1, sizeof(*k));
        if (!k)
                return lkg_error_set(err, -ENOMEM, NULL, "service account");
        k->file = strdup("");
        if (asprintf(&k->server, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port) < 0)
                k->server = NULL;
        r = k->file && k->server ? pod_file(directory, "ca.crt", &k->ca) : -ENOMEM;
        if (r == 0)
                r = pod_file(directory, "token", &k->token_file);
        if (r < 0) {
                lkg_kubeconfig_free(k);
                return lkg_error_set(err, r, NULL, "service account");
        }
        *ret = k;
        return 0;
}

/* ---- the end ---- */

static void free_part(struct lkg_file_or_data *x)
{
        wipe_data(x);
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
        free(k->server);
        free(k->tls_server_name);
        lkg_wipe_free(k->proxy_url);
        free_part(&k->ca);
        free_part(&k->certificate);
        free_part(&k->key);
        free_part(&k->token_file);
        lkg_wipe_free(k->token);
        lkg_wipe_free(k->username);
        lkg_wipe_free(k->password);
        free(k->impersonate);
        if (k->exec) {
                free_list(k->exec->argv);
                free_list(k->exec->env);
                free(k->exec->api_version);
                free(k->exec);
        }
        free(k);
        return NULL;
}
