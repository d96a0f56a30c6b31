/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of a kubeconfig by tables: see kubeconfig-reader.h. */
#include "kubeconfig-reader.h"

#include <ctype.h>

#include <openssl/crypto.h>

#include <lkg/text.h>
#include <lkg/base.h>

#define CODE 7001

/* ---- findings ---- */

void lkg_reader_say(struct lkg_reader *r, enum lkg_severity severity, const struct lkg_value *at,
                    const char *fmt, ...)
{
        struct lkg_where where = lkg_where_of(at);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        va_list ap;

        if (!where.file)
                where.file = r->options->file;
        va_start(ap, fmt);
        text = lkg_vformat(fmt, ap);
        va_end(ap);
        lkg_report_add(&r->report, severity, CODE, &where, "%s", text);
}

static const char *dot(const struct lkg_section *s)
{
        return s->path[0] ? "." : "";
}

/* ---- shape ---- */

/* Return where a member is, or would be. */
const struct lkg_value *lkg_section_at(const struct lkg_section *s, const char *name)
{
        const struct lkg_value *value = lkg_section_get(s, name);

        return value ? value : s->map ? s->map : s->at;
}

void lkg_reader_wrong_type(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                           const struct lkg_value *value, const char *want)
{
        lkg_reader_say(r, LKG_ERROR, value, "%s%s%s is a %s; want %s", s->path, dot(s), name,
                       lkg_type_name(lkg_value_type(value)), want);
}

int lkg_reader_text(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                    struct lkg_span *ret)
{
        const struct lkg_value *value = lkg_section_get(s, name);

        *ret = lkg_span("", 0);
        if (lkg_is_null(value))
                return 0;
        if (lkg_value_type(value) != LKG_STRING) {
                lkg_reader_wrong_type(r, s, name, value,
                                      lkg_is_type(value, LKG_LIST) || lkg_is_type(value, LKG_MAP)
                                              ? "a text"
                                              : "a text, in quotes");
                return -1;
        }
        ret->data = lkg_value_text(value, &ret->size);
        return 1;
}

static bool one_line(struct lkg_span text)
{
        for (size_t i = 0; i < text.size; i++)
                if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
                        return false;
        return true;
}

static char *own_dup(struct lkg_span text)
{
        return lkg_must(lkg_span_dup(text));
}

/* Anything except a name of letters may be a credential that is missing a space or a name before it. */
bool lkg_reader_may_show(struct lkg_span name)
{
        for (size_t i = 0; i < name.size; i++)
                if (!isalpha((unsigned char)name.data[i]) && name.data[i] != '-')
                        return false;
        return name.size > 0 && name.size <= 40;
}

void lkg_reader_known(struct lkg_reader *r, const struct lkg_section *s,
                      const struct lkg_reader_field *fields)
{
        for (size_t i = 0; s->map && i < lkg_value_size(s->map); i++) {
                char quoted[LKG_READER_QUOTED_MAX];
                struct lkg_nearest nearest;
                struct lkg_span name;
                const struct lkg_value *value = lkg_map_at(s->map, i, &name.data, &name.size);
                const struct lkg_reader_field *f = fields;

                lkg_nearest_init(&nearest, name.data);
                for (; f->name && !lkg_span_is(name, f->name); f++)
                        lkg_nearest_offer(&nearest, f->name);
                if (f->name)
                        continue;
                lkg_reader_say(r, LKG_WARNING, value, "%s%sunknown field%s%s, ignoring%s%s%s", s->path,
                               s->path[0] ? ": " : "", lkg_reader_may_show(name) ? " " : "",
                               lkg_reader_may_show(name) ? lkg_quote(name.data, name.size, quoted)
                                                         : " (not shown, it could be a credential)",
                               lkg_nearest_best(&nearest) ? "; did you mean " : "",
                               lkg_nearest_best(&nearest) ? lkg_nearest_best(&nearest) : "",
                               lkg_nearest_best(&nearest) ? "?" : "");
        }
}

bool lkg_entry_name(const struct lkg_value *item, struct lkg_span *ret)
{
        const struct lkg_value *name = lkg_is_type(item, LKG_MAP) ? lkg_map_get(item, "name") : NULL;

        if (!lkg_is_type(name, LKG_STRING))
                return false;
        ret->data = lkg_value_text(name, &ret->size);
        return true;
}

/* ---- fields ---- */

static void set_field_name(const struct lkg_section *s, const char *name, struct lkg_file_or_data *to)
{
        const struct lkg_value *value = lkg_section_get(s, name);

        free(to->field);
        to->field = lkg_format("%s.%s", s->path, name);
        to->line = lkg_value_line(value);
        to->column = lkg_value_column(value);
}

/* A path in the file is relative to the directory of the file. */
static char *own_path(struct lkg_reader *r, struct lkg_span path)
{
        const char *file = r->options->file, *slash = strrchr(file, '/');

        if (path.data[0] == '/')
                return own_dup(path);
        return lkg_format("%.*s/%.*s", (int)(slash ? slash - file : 0), file, (int)path.size, path.data);
}

void lkg_file_or_data_wipe(struct lkg_file_or_data *x)
{
        if (x->data)
                OPENSSL_cleanse(x->data, x->size);
        free(x->data);
        x->data = NULL;
        x->size = 0;
}

/* `*-data` comes after the field of the same name in the tables, so it wins. */
static void take_data(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                      struct lkg_span text, struct lkg_file_or_data *to)
{
        char *data = lkg_must(malloc(text.size + 3 + 1));
        ssize_t n = lkg_base64_decode(text.data, text.size, data);

        if (n < 0)
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, name),
                               "%s.%s is not base64; want the PEM file as `base64 -w0 FILE` prints it",
                               s->path, name);
        if (n != 0)
                set_field_name(s, name, to);
        if (n <= 0) {
                OPENSSL_cleanse(data, text.size);
                free(data);
                return;
        }
        if (to->path)
                lkg_reader_say(r, LKG_WARNING, lkg_section_get(s, name),
                               "%s.%s counts, and the file of the field %.*s does not; take one out",
                               s->path, name, (int)(strlen(name) - strlen("-data")), name);
        free(to->path);
        to->path = NULL;
        data[n] = '\0';
        lkg_file_or_data_wipe(to);
        to->data = data;
        to->size = (size_t)n;
}

static void take_text(struct lkg_reader *r, const struct lkg_section *s, const struct lkg_reader_field *f,
                      struct lkg_span text)
{
        char *base = (char *)r->out + f->offset;

        if (f->type == F_TOKEN)
                text = lkg_span_trim(text);
        if (f->type != F_DATA && !one_line(text)) {
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, f->name),
                               "%s.%s has a control character; want one line of plain text", s->path,
                               f->name);
                return;
        }
        if (text.size == 0)
                return;
        if (f->type == F_DATA) {
                take_data(r, s, f->name, text, (struct lkg_file_or_data *)(void *)base);
        } else if (f->type == F_PATH) {
                set_field_name(s, f->name, (struct lkg_file_or_data *)(void *)base);
                ((struct lkg_file_or_data *)(void *)base)->path = own_path(r, text);
        } else {
                *(char **)(void *)base = own_dup(text);
        }
}

static bool is_empty(const struct lkg_value *value)
{
        if (lkg_is_type(value, LKG_LIST) || lkg_is_type(value, LKG_MAP))
                return lkg_value_size(value) == 0;
        return lkg_is_type(value, LKG_STRING) && *lkg_value_text(value, NULL) == '\0';
}

static bool read_bool(struct lkg_reader *r, const struct lkg_section *s, const char *name)
{
        const struct lkg_value *value = lkg_section_get(s, name);

        if (lkg_is_null(value))
                return false;
        if (!lkg_is_type(value, LKG_BOOL)) {
                lkg_reader_wrong_type(r, s, name, value, "true or false");
                return false;
        }
        return lkg_value_bool(value);
}

void lkg_reader_fields(struct lkg_reader *r, const struct lkg_section *s,
                       const struct lkg_reader_field *fields)
{
        lkg_reader_known(r, s, fields);
        for (const struct lkg_reader_field *f = fields; s->map && f->name; f++) {
                const struct lkg_value *value = lkg_section_get(s, f->name);
                struct lkg_span text;

                if (f->type == F_KEEP || f->type == F_ANY || lkg_is_null(value))
                        continue;
                if (f->type == F_REFUSED) {
                        if (!is_empty(value))
                                lkg_reader_say(r, LKG_ERROR, value, "%s.%s is not supported: %s", s->path,
                                               f->name, f->why);
                } else if (f->type == F_BOOL) {
                        *(bool *)((char *)r->out + f->offset) = read_bool(r, s, f->name);
                } else if (lkg_reader_text(r, s, f->name, &text) > 0) {
                        take_text(r, s, f, text);
                }
        }
}

/* ---- users[].user: our credential for the API server. Rules: client-go, tools/clientcmd, validation.go ---- */

#define AT(m)  offsetof(struct lkg_kubeconfig, m)

#define WHY_AS "of what impersonates only `as` is; take it out, or use a credential that needs none"
static const struct lkg_reader_field user_fields[] = {
        { "client-certificate", F_PATH, AT(certificate) },
        { "client-certificate-data", F_DATA, AT(certificate) },
        { "client-key", F_PATH, AT(key) },
        { "client-key-data", F_DATA, AT(key) },
        { "token", F_TOKEN, AT(identity.token) },
        { "tokenFile", F_PATH, AT(token_file) },
        { "username", F_TEXT, AT(identity.username) },
        { "password", F_TEXT, AT(identity.password) },
        { "as", F_TEXT, AT(identity.impersonate) },
        { "as-uid", F_REFUSED, .why = WHY_AS },
        { "as-groups", F_REFUSED, .why = WHY_AS },
        { "as-user-extra", F_REFUSED, .why = WHY_AS },
        { "auth-provider", F_REFUSED,
          .why = "Kubernetes removed it in 1.26; use exec, a certificate or tokenFile" },
        { "exec", F_KEEP },
        { "extensions", F_ANY },
        { NULL },
};
static const struct lkg_reader_field exec_fields[] = {
        { "command", F_KEEP },
        { "args", F_KEEP },
        { "env", F_KEEP },
        { "apiVersion", F_KEEP },
        { "installHint", F_ANY },
        { "provideClusterInfo", F_KEEP },
        { "interactiveMode", F_KEEP },
        { NULL },
};

/* ---- the exec plugin ---- */

/* Room for one more and the NULL at the end. */
static void push(char ***list, size_t *n, char *item)
{
        (void)lkg_need(LKG_RESIZE(*list, *n + 2));
        (*list)[(*n)++] = item;
        (*list)[*n] = NULL;
}

static bool no_nul(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                   const struct lkg_value *at, struct lkg_span text)
{
        if (!memchr(text.data, '\0', text.size))
                return true;
        lkg_reader_say(r, LKG_ERROR, at, "%s.%s has a NUL byte, which no program can be given", s->path,
                       name);
        return false;
}

static void read_argv(struct lkg_reader *r, const struct lkg_section *s, struct lkg_exec_plugin *exec)
{
        const struct lkg_value *args = lkg_section_get(s, "args");
        struct lkg_span text;
        size_t n = 0;

        if (lkg_reader_text(r, s, "command", &text) < 0)
                return;
        if (text.size == 0) {
                lkg_reader_say(r, LKG_ERROR, lkg_section_at(s, "command"),
                               "%s has no command; want the program to run", s->path);
                return;
        }
        if (!no_nul(r, s, "command", lkg_section_get(s, "command"), text))
                return;
        /* With a slash it is a path relative to the directory of the file, without one a name for PATH. */
        push(&exec->argv, &n, memchr(text.data, '/', text.size) ? own_path(r, text) : own_dup(text));
        if (!lkg_is_null(args) && !lkg_is_type(args, LKG_LIST))
                lkg_reader_wrong_type(r, s, "args", args, "a list of texts");
        for (size_t i = 0; lkg_is_type(args, LKG_LIST) && i < lkg_value_size(args); i++) {
                const struct lkg_value *item = lkg_list_get(args, i);

                if (!lkg_is_type(item, LKG_STRING)) {
                        lkg_reader_wrong_type(r, s, "args", item, "a list of texts, in quotes");
                        return;
                }
                text.data = lkg_value_text(item, &text.size);
                if (!no_nul(r, s, "args", item, text))
                        return;
                push(&exec->argv, &n, own_dup(text));
        }
}

static void read_env(struct lkg_reader *r, const struct lkg_section *s, struct lkg_exec_plugin *exec)
{
        const struct lkg_value *env = lkg_section_get(s, "env");
        size_t n = 0;

        if (!lkg_is_null(env) && !lkg_is_type(env, LKG_LIST))
                lkg_reader_wrong_type(r, s, "env", env, "a list of {name, value}");
        for (size_t i = 0; lkg_is_type(env, LKG_LIST) && i < lkg_value_size(env); i++) {
                const struct lkg_value *item = lkg_list_get(env, i);
                const struct lkg_value *value =
                        lkg_is_type(item, LKG_MAP) ? lkg_map_get(item, "value") : NULL;
                struct lkg_span name, text = lkg_span("", 0);

                if (!lkg_entry_name(item, &name) || name.size == 0 || memchr(name.data, '=', name.size) ||
                    (!lkg_is_null(value) && !lkg_is_type(value, LKG_STRING))) {
                        lkg_reader_say(r, LKG_ERROR, item,
                                       "%s.env[%zu]: want {name: NAME, value: \"TEXT\"}, NAME without =",
                                       s->path, i);
                        return;
                }
                if (!lkg_is_null(value))
                        text.data = lkg_value_text(value, &text.size);
                if (!no_nul(r, s, "env", item, name) || !no_nul(r, s, "env", item, text))
                        return;
                push(&exec->env, &n,
                     lkg_format("%.*s=%.*s", (int)name.size, name.data, (int)text.size, text.data));
        }
}

/* interactiveMode: a daemon has no terminal. Version v1 requires the field; v1beta1 means IfAvailable without it. */
static void check_interactive(struct lkg_reader *r, const struct lkg_section *s, const char *api_version)
{
        struct lkg_span mode;
        char quoted[LKG_READER_QUOTED_MAX];

        if (lkg_reader_text(r, s, "interactiveMode", &mode) < 0 || lkg_span_is(mode, "Never") ||
            lkg_span_is(mode, "IfAvailable"))
                return;
        if (lkg_span_is(mode, "Always"))
                lkg_reader_say(
                        r, LKG_ERROR, lkg_section_get(s, "interactiveMode"),
                        "%s.interactiveMode is Always, and there is no terminal; want Never or IfAvailable",
                        s->path);
        else if (mode.size > 0)
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, "interactiveMode"),
                               "%s.interactiveMode is %s; want Never or IfAvailable", s->path,
                               lkg_quote(mode.data, mode.size, quoted));
        else if (strcmp(api_version, LKG_EXEC_V1) == 0)
                lkg_reader_say(r, LKG_ERROR, lkg_section_at(s, "interactiveMode"),
                               "%s has no interactiveMode, which %s requires; want Never or IfAvailable",
                               s->path, api_version);
}

static void check_exec_version(struct lkg_reader *r, const struct lkg_section *s,
                               struct lkg_exec_plugin *exec)
{
        struct lkg_span text;
        char quoted[LKG_READER_QUOTED_MAX];

        if (lkg_reader_text(r, s, "apiVersion", &text) < 0)
                return;
        if (!lkg_span_is(text, LKG_EXEC_V1) && !lkg_span_is(text, LKG_EXEC_V1BETA1)) {
                lkg_reader_say(r, LKG_ERROR, lkg_section_at(s, "apiVersion"),
                               "%s.apiVersion is %s; want " LKG_EXEC_V1 " or v1beta1", s->path,
                               lkg_quote(text.data, text.size, quoted));
                return;
        }
        exec->api_version = own_dup(text);
        check_interactive(r, s, exec->api_version);
}

static void read_exec(struct lkg_reader *r, const struct lkg_section *user)
{
        const struct lkg_value *map = lkg_section_get(user, "exec");
        struct lkg_section s = { .map = map, .at = map };
        struct lkg_exec_plugin *exec;

        if (lkg_is_null(map))
                return;
        if (!lkg_is_type(map, LKG_MAP)) {
                lkg_reader_wrong_type(r, user, "exec", map, "a map with command");
                return;
        }
        (void)snprintf(s.path, sizeof(s.path), "%.*s.exec", (int)sizeof(s.path) - 8, user->path);
        lkg_reader_known(r, &s, exec_fields);
        exec = r->out->exec = lkg_must(calloc(1, sizeof(*exec)));
        if (!r->options->allow_exec)
                lkg_reader_say(r, LKG_ERROR, map,
                               "%s runs a program, and remote.allowExec of lkgfs's own configuration does "
                               "not allow it; set that, or want a certificate or tokenFile",
                               s.path);
        read_argv(r, &s, exec);
        read_env(r, &s, exec);
        check_exec_version(r, &s, exec);
        exec->provide_cluster_info = read_bool(r, &s, "provideClusterInfo");
}

static void check_user(struct lkg_reader *r, const struct lkg_section *s)
{
        struct lkg_kubeconfig *k = r->out;
        bool token = k->identity.token || k->token_file.field;

        if (k->certificate.field && !k->key.field)
                lkg_reader_say(
                        r, LKG_ERROR, lkg_section_at(s, "client-certificate"),
                        "%s has a client certificate without its key; want client-key or client-key-data",
                        s->path);
        if (k->key.field && !k->certificate.field)
                lkg_reader_say(r, LKG_ERROR, lkg_section_at(s, "client-key"),
                               "%s has a client key without its certificate; want client-certificate or "
                               "client-certificate-data",
                               s->path);
        if (token && (k->identity.username || k->identity.password))
                lkg_reader_say(r, LKG_ERROR, lkg_section_at(s, "username"),
                               "%s has a token and username or password, and a request can carry one of "
                               "them; take one out",
                               s->path);
        if (k->identity.password && !k->identity.username)
                lkg_reader_say(r, LKG_WARNING, lkg_section_at(s, "password"),
                               "%s has a password without username, ignoring", s->path);
        if (k->identity.username && strchr(k->identity.username, ':'))
                lkg_reader_say(r, LKG_ERROR, lkg_section_at(s, "username"),
                               "%s.username has a colon, which ends a user's name (RFC 7617)", s->path);
        if (k->exec && (token || k->identity.username))
                lkg_reader_say(r, LKG_WARNING, lkg_section_at(s, "exec"),
                               "%s.exec is not run, because a token or username is given", s->path);
        if (!token && !k->identity.username && !k->certificate.field && !k->key.field && !k->exec &&
            r->report.n_severity[LKG_ERROR] == 0)
                lkg_reader_say(r, LKG_WARNING, lkg_section_at(s, "token"),
                               "%s has no credential, so requests are anonymous; want a certificate, a "
                               "token or tokenFile",
                               s->path);
}

void lkg_reader_user(struct lkg_reader *r, const struct lkg_section *s)
{
        lkg_reader_fields(r, s, user_fields);
        read_exec(r, s);
        check_user(r, s);
}
