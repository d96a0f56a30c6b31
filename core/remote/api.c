/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of an API server, and what its answer means: see api.h. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/limits.h>

#include "api.h"

#define MESSAGE_BYTES_MAX 240u /* of the server's own message */
#define WHAT_BYTES        160  /* "get configmaps NAMESPACE/NAME", cut if a name is too long */

/* ---- requests ---- */

void lkg_resource_copy(const struct lkg_resource *resource, struct lkg_resource *ret)
{
        *ret = (struct lkg_resource){
                .group_version = lkg_copy(resource->group_version),
                .plural = lkg_copy(resource->plural),
                .kind = lkg_copy(resource->kind),
                .ns = lkg_copy(resource->ns),
                .name = lkg_copy(resource->name),
                .subresource = lkg_copy(resource->subresource),
        };
}

void lkg_resource_deinit(struct lkg_resource *resource)
{
        free((char *)(uintptr_t)resource->group_version);
        free((char *)(uintptr_t)resource->plural);
        free((char *)(uintptr_t)resource->kind);
        free((char *)(uintptr_t)resource->ns);
        free((char *)(uintptr_t)resource->name);
        free((char *)(uintptr_t)resource->subresource);
        *resource = (struct lkg_resource){ 0 };
}

/* RFC 3986, 2.3: encode everything except unreserved characters as %XX; valid in a path and in a query. */
static void encode(struct lkg_buf *buf, const char *text)
{
        for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
                if (isalnum(*p) || strchr("-._~", *p))
                        lkg_buf_putc(buf, (char)*p);
                else
                        lkg_buf_printf(buf, "%%%02X", *p);
        }
}

static int append_segment(struct lkg_buf *path, const char *what, const char *text, struct lkg_error *err)
{
        char quoted[5 * 64 + 8];

        if (!*text || strcmp(text, ".") == 0 || strcmp(text, "..") == 0 || strpbrk(text, "/%"))
                return lkg_error_set(err, -EINVAL, NULL, "%s is no %s of an object.",
                                     lkg_quote(text, strlen(text), quoted), what);
        lkg_buf_putc(path, '/');
        encode(path, text);
        return 0;
}

static const struct lkg_api_verb verbs[] = {
        { "get", "GET", true },      { "list", "GET", false },  { "watch", "GET", false },
        { "create", "POST", false }, { "update", "PUT", true }, { "patch", "PATCH", true },
};

const struct lkg_api_verb *lkg_api_verb(const char *name)
{
        const struct lkg_api_verb *verb = verbs;

        while (strcmp(verb->name, name) != 0)
                verb++;
        return verb;
}

static int put_path(const struct lkg_resource *resource, bool with_name, struct lkg_buf *path,
                    struct lkg_error *err)
{
        int r = 0;

        lkg_buf_puts(path, strchr(resource->group_version, '/') ? "/apis/" : "/api/");
        lkg_buf_puts(path, resource->group_version);
        if (resource->ns) {
                lkg_buf_puts(path, "/namespaces");
                r = append_segment(path, "namespace", resource->ns, err);
        }
        if (r >= 0)
                r = append_segment(path, "resource", resource->plural, err);
        if (r >= 0 && with_name)
                r = append_segment(path, "name", resource->name, err);
        if (r >= 0 && with_name && resource->subresource)
                r = append_segment(path, "subresource", resource->subresource, err);
        return r;
}

/* @text: NULL = no such parameter. @name ends in what precedes the value. */
static void put_parameter(struct lkg_buf *path, const char *name, const char *text)
{
        if (!text)
                return;
        lkg_buf_putc(path, memchr(path->data, '?', path->size) ? '&' : '?');
        lkg_buf_puts(path, name);
        encode(path, text);
}

static void put_number(struct lkg_buf *path, const char *name, unsigned number)
{
        char text[16];

        (void)snprintf(text, sizeof(text), "%u", number);
        put_parameter(path, name, number > 0 ? text : NULL);
}

int lkg_api_path(const struct lkg_request *request, struct lkg_buf *path, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf unused = LKG_BUF_INIT;
        const struct lkg_resource *resource = request->resource;
        bool watch = strcmp(request->verb, "watch") == 0;
        const char *one = watch ? resource->name : NULL, *version = request->version;
        /* In a selector the same names are refused as in a path. */
        int r = one ? append_segment(&unused, "name", one, err) : 0;

        if (r >= 0)
                r = put_path(resource, lkg_api_verb(request->verb)->with_name, path, err);
        if (r < 0)
                return r;
        put_parameter(path, "watch=", watch ? "true" : NULL);
        put_parameter(path, "allowWatchBookmarks=", watch ? "true" : NULL);
        put_parameter(path, "fieldSelector=metadata.name%3D", one);
        if (request->label) {
                put_parameter(path, "labelSelector=", request->label);
                lkg_buf_puts(path, "%3D");
                encode(path, request->value);
        }
        put_number(path, "timeoutSeconds=", request->seconds);
        if (version && !*version)
                lkg_buf_puts(path, "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
        else
                put_parameter(path, "resourceVersion=", version);
        put_number(path, "limit=", request->limit);
        put_parameter(path, "continue=", request->token);
        (void)lkg_buf_text(path);
        return 0;
}

void lkg_api_describe(const struct lkg_resource *resource, char *buf, size_t size)
{
        const char *ns = resource->ns ? resource->ns : "", *name = resource->name ? resource->name : "";

        (void)snprintf(buf, size, "%s%s%s%s%s%s%s", resource->plural, resource->subresource ? "/" : "",
                       resource->subresource ? resource->subresource : "", *ns || *name ? " " : "", ns,
                       *ns && *name ? "/" : "", name);
}

/* ---- answers ---- */

static const char *const status_names[] = {
        [LKG_API_OK] = "ok",
        [LKG_API_UNREACHABLE] = "unreachable",
        [LKG_API_UNAUTHORIZED] = "unauthorized",
        [LKG_API_FORBIDDEN] = "forbidden",
        [LKG_API_NOT_FOUND] = "not_found",
        [LKG_API_CONFLICT] = "conflict",
        [LKG_API_GONE] = "gone",
        [LKG_API_TOO_LARGE] = "too_large",
        [LKG_API_BUSY] = "busy",
        [LKG_API_INVALID] = "invalid",
};
static_assert(LKG_ARRAY_SIZE(status_names) == _LKG_API_STATUS_MAX, "a name for each status");

const char *lkg_api_status_name(enum lkg_api_status status)
{
        return status_names[status];
}

/* Rows are checked in this order. If @sentence begins with a blank, verb and resource precede it. */
static const struct status_row {
        unsigned first, last; /* HTTP status */
        enum lkg_api_status status;
        const char *sentence;
} status_rows[] = {
        { 200, 299, LKG_API_OK, "" },
        { 300, 399, LKG_API_INVALID,
          " is answered with a redirect, which is not followed: is the server's address right?" },
        { 401, 401, LKG_API_UNAUTHORIZED, " is refused: the server does not know who we are" },
        { 403, 403, LKG_API_FORBIDDEN, " is forbidden" },
        { 404, 404, LKG_API_NOT_FOUND, ": there is no such object" },
        { 409, 409, LKG_API_CONFLICT, ": conflict" },
        { 410, 410, LKG_API_GONE, ": that version is too old" },
        { 429, 429, LKG_API_BUSY, ": the server is busy" },
        { 500, 599, LKG_API_BUSY, ": the server fails" },
        { 0, UINT32_MAX, LKG_API_INVALID, ": unexpected answer" },
};

static const struct status_row *find_row(unsigned http_status)
{
        const struct status_row *row = status_rows;

        while (http_status < row->first || http_status > row->last)
                row++;
        return row;
}

static enum lkg_api_status status_of_error(int error)
{
        switch (error) {
        case -EFBIG:
                return LKG_API_TOO_LARGE;
        case -EBADMSG:
                return LKG_API_INVALID;
        default:
                return LKG_API_UNREACHABLE;
        }
}

/* Return: 0; -EBADMSG or -EKEYREJECTED, explained in @report. */
static int decode(const struct lkg_api_question *question, const struct lkg_http_result *result,
                  const char *what, struct lkg_value **ret, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        struct lkg_source *source;
        int r = lkg_admit_text(question->admission, LKG_ADMIT_OBJECT, what, result->body, result->size,
                               &why);

        if (r == -EKEYREJECTED && report)
                lkg_report_add(report, LKG_ERROR, 2030, NULL, "%s", why);
        if (r < 0)
                return r;
        source = lkg_source_new("API server", what);
        r = lkg_decode(result->body, result->size, LKG_FORMAT_JSON, 0, source, report, ret);
        (void)lkg_source_unref(source);
        return r;
}

static bool is_string(const struct lkg_value *map, const char *key, const char *want)
{
        const char *text = lkg_map_get_string(map, key);

        return text && strcmp(text, want) == 0;
}

/* Append printable, bounded text in quotes; credentials in URLs are removed. */
static void append_quoted(struct lkg_buf *words, const char *text, size_t size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        size_t n;

        (void)lkg_mask_text(text, size, &masked);
        (void)lkg_buf_text(&masked);
        n = masked.size;
        if (n > MESSAGE_BYTES_MAX) {
                n = MESSAGE_BYTES_MAX;
                while (n > 0 && ((unsigned char)masked.data[n] & 0xc0) == 0x80)
                        n--;
        }
        lkg_buf_puts(words, ": \"");
        for (size_t i = 0, length; i < n; i += length ? length : 1) {
                unsigned char c = (unsigned char)masked.data[i];

                length = lkg_shown_length(masked.data + i, n - i, NULL);
                if (length == 0)
                        lkg_buf_putc(words, '?');
                else if (c == '"') /* messages quote names: readable is better than reversible */
                        lkg_buf_putc(words, '\'');
                else
                        lkg_buf_append(words, masked.data + i, length);
        }
        lkg_buf_puts(words, n < masked.size ? "...\"" : "\"");
}

/* Append the message of a metav1.Status, or the first bytes of any other body. Return: is it a Status? */
static bool append_message(const struct lkg_api_question *question, const struct lkg_http_result *result,
                           const char *what, struct lkg_buf *words)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *status = NULL;
        struct lkg_value *message;
        bool is_status;
        size_t size;
        const char *text;

        if (!result->body || result->size == 0)
                return false;
        if (*result->body == '{')
                (void)decode(question, result, what, &status, NULL);
        is_status = status && lkg_value_type(status) == LKG_MAP && is_string(status, "kind", "Status");
        message = is_status ? lkg_map_get(status, "message") : NULL;
        if (message && lkg_value_type(message) == LKG_STRING) {
                text = lkg_value_text(message, &size);
                append_quoted(words, text, size);
        } else {
                append_quoted(words, result->body, strcspn(result->body, "\r\n"));
        }
        return is_status;
}

static void set_words(struct lkg_api_answer *answer, struct lkg_buf *words)
{
        lkg_text_copy(answer->words, sizeof(answer->words), lkg_buf_text(words));
}

static void judge_failure(const struct lkg_api_question *question, const struct lkg_http_result *result,
                          const char *what, struct lkg_api_answer *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf words = LKG_BUF_INIT, said = LKG_BUF_INIT;
        const struct status_row *row = find_row(result->status);

        /* A 404 of a proxy, or for a path that is not served, says nothing about the object. */
        if (!append_message(question, result, what, &said) && row->status == LKG_API_NOT_FOUND)
                row = find_row(0);
        ret->status = row->status;
        lkg_buf_printf(&words, "%s%s (%u)", what, row->sentence, result->status);
        if (result->retry_after_ns > 0)
                lkg_buf_printf(&words, ", asks to wait %" PRIu64 " s",
                               result->retry_after_ns / LKG_NSEC_PER_SEC);
        lkg_buf_puts(&words, lkg_buf_text(&said));
        set_words(ret, &words);
}

/* Is it the requested object? If not, the message says what it is. */
static bool is_asked_for(const struct lkg_resource *resource, bool list, const struct lkg_value *object,
                         struct lkg_buf *words)
{
        const struct lkg_value *metadata = NULL;
        const struct {
                const char *key, *want;
                bool in_metadata;
        } rows[] = {
                { "apiVersion", resource->group_version, false },
                { "kind", resource->kind, false },
                { "namespace", resource->ns, true },
                { "name", resource->name, true },
        };

        if (lkg_value_type(object) != LKG_MAP) {
                lkg_buf_puts(words, ": the answer is not an object");
                return false;
        }
        metadata = lkg_map_get(object, "metadata");
        if (!metadata || lkg_value_type(metadata) != LKG_MAP) {
                lkg_buf_puts(words, ": the answer has no metadata");
                return false;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const struct lkg_value *map = rows[i].in_metadata ? metadata : object;
                const char *is = lkg_map_get_string(map, rows[i].key);
                char quoted[5 * 64 + 8];

                if (!rows[i].want || (list && rows[i].in_metadata) ||
                    is_string(map, rows[i].key, rows[i].want))
                        continue;
                lkg_buf_printf(words, ": the answer has %s %s instead of \"%s\"", rows[i].key,
                               is ? lkg_quote(is, strlen(is), quoted) : "missing", rows[i].want);
                return false;
        }
        return true;
}

/* Append the first mistake of a document. @code: of decode() */
static void append_finding(struct lkg_buf *words, int code, const struct lkg_report *report)
{
        lkg_buf_puts(words, code == -EKEYREJECTED ? ": the answer is not read" : ": the answer is not JSON");
        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (f->severity != LKG_ERROR)
                        continue;
                if (f->line)
                        lkg_buf_printf(words, ": line %u column %u", f->line, f->column);
                lkg_buf_printf(words, ": %s", f->text);
                return;
        }
}

static struct lkg_value *judge_object(const struct lkg_api_question *question,
                                      const struct lkg_http_result *result, const char *what,
                                      struct lkg_api_answer *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf words = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        int r = decode(question, result, what, &object, &report);

        lkg_buf_puts(&words, what);
        if (r < 0)
                append_finding(&words, r, &report);
        if (r < 0 ||
            !is_asked_for(question->resource, strcmp(question->verb, "list") == 0, object, &words)) {
                ret->status = LKG_API_INVALID;
                set_words(ret, &words);
                return NULL;
        }
        ret->object = object;
        return LKG_STEAL(object);
}

struct lkg_value *lkg_api_judge(const struct lkg_api_question *question,
                                const struct lkg_http_result *result, struct lkg_api_answer *ret)
{
        char name[WHAT_BYTES], what[WHAT_BYTES + 16];

        *ret = (struct lkg_api_answer){
                .status = LKG_API_OK,
                .http_status = result->status,
                .cut = result->error == -ECONNRESET && result->status > 0,
                .retry_after_ns = result->retry_after_ns,
        };
        lkg_api_describe(question->resource, name, sizeof(name));
        (void)snprintf(what, sizeof(what), "%s %s", question->verb, name);
        if (result->error < 0) {
                ret->status = status_of_error(result->error);
                (void)snprintf(ret->words, sizeof(ret->words), "%s: %s", what, result->words);
        } else if (find_row(result->status)->status != LKG_API_OK) {
                judge_failure(question, result, what, ret);
        } else if (!question->stream) {
                return judge_object(question, result, what, ret);
        }
        return NULL;
}

/* ---- which object, in which state ---- */

/* Return the text of a string; data is NULL if @value is not a string. */
static struct lkg_span text_of(const struct lkg_value *value)
{
        struct lkg_span text = { NULL, 0 };

        if (value && lkg_value_type(value) == LKG_STRING)
                text.data = lkg_value_text(value, &text.size);
        return text;
}

static int read_identifier(const struct lkg_value *metadata, const char *field, const char *what, char *ret,
                           struct lkg_error *err)
{
        struct lkg_span text = text_of(metadata ? lkg_map_get(metadata, field) : NULL);
        char quoted[5 * 64 + 8];

        if (!text.data)
                return lkg_refuse_because(err, -EINVAL, NULL, "%s an object without metadata.%s", what,
                                          field);
        if (!lkg_identifier_in(text))
                return lkg_refuse_because(
                        err, -EINVAL, NULL, "%s metadata.%s %s; want 1 to %u of A-Z a-z 0-9 . _ -", what,
                        field, lkg_quote(text.data, text.size, quoted), LKG_IDENTIFIER_MAX);
        lkg_copy_span(text, ret);
        return 0;
}

/* @required: the field must be present. */
static int check_text(const struct lkg_value *map, const char *field, const char *label, const char *want,
                      bool required, const char *what, struct lkg_error *err)
{
        const struct lkg_value *value = lkg_map_get(map, field);
        struct lkg_span text = text_of(value);
        char quoted[5 * 64 + 8];

        if (!value && !required)
                return 0;
        if (!text.data)
                return lkg_refuse_because(err, -EINVAL, NULL, "%s an object without %s; want %s", what,
                                          label, want);
        if (!lkg_span_is(text, want))
                return lkg_refuse_because(err, -EINVAL, NULL, "%s %s %s; want %s", what, label,
                                          lkg_quote(text.data, text.size, quoted), want);
        return 0;
}

int lkg_object_read(const struct lkg_value *object, const struct lkg_resource *resource, const char *what,
                    struct lkg_object_id *ret, struct lkg_error *err)
{
        const struct lkg_value *metadata = lkg_map_get_map(object, "metadata");
        struct lkg_object_id id = { 0 };
        int r;

        if (!metadata)
                return lkg_refuse_because(err, -EINVAL, NULL, "%s an object without metadata", what);
        r = check_text(object, "kind", "kind", resource->kind, false, what, err);
        if (r == 0)
                r = check_text(object, "apiVersion", "apiVersion", resource->group_version, false, what,
                               err);
        if (r == 0)
                r = check_text(metadata, "name", "metadata.name", resource->name, true, what, err);
        if (r == 0 && resource->ns)
                r = check_text(metadata, "namespace", "metadata.namespace", resource->ns, false, what, err);
        if (r == 0)
                r = read_identifier(metadata, "uid", what, id.uid, err);
        if (r == 0)
                r = read_identifier(metadata, "resourceVersion", what, id.version, err);
        if (r == 0)
                *ret = id;
        return r;
}

int lkg_object_read_version(const struct lkg_value *object, const char *what,
                            char ret[static LKG_IDENTIFIER_MAX + 1], struct lkg_error *err)
{
        return read_identifier(lkg_map_get_map(object, "metadata"), "resourceVersion", what, ret, err);
}

bool lkg_object_says_gone(const struct lkg_value *object)
{
        const struct lkg_value *code = lkg_map_get(object, "code");
        struct lkg_span reason = text_of(lkg_map_get(object, "reason"));

        if (code && lkg_value_type(code) == LKG_NUMBER && strcmp(lkg_value_text(code, NULL), "410") == 0)
                return true;
        return reason.data && (lkg_span_is(reason, "Expired") || lkg_span_is(reason, "Gone"));
}
