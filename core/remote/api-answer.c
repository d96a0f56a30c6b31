/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/limits.h>

#include "api-answer.h"
#include "api-request.h"

#define MESSAGE_BYTES_MAX 240u /* of the server's own message */
#define WHAT_BYTES        160  /* "get configmaps NAMESPACE/NAME", cut if a name is too long */

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

/* Return: 0; -EBADMSG or -EKEYREJECTED, explained in @report; -ENOMEM. */
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
        if (!source)
                return -ENOMEM;
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
        if (lkg_buf_failed(&masked))
                return;
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

/*
 * Append the message of a metav1.Status, or the first bytes of any other body.
 * Return: 1: it is a Status; 0; -ENOMEM.
 */
static int append_message(const struct lkg_api_question *question, const struct lkg_http_result *result,
                          const char *what, struct lkg_buf *words)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *status = NULL;
        struct lkg_value *message;
        bool is_status;
        size_t size;
        const char *text;
        int r = 0;

        if (!result->body || result->size == 0)
                return 0;
        if (*result->body == '{')
                r = decode(question, result, what, &status, NULL);
        if (r == -ENOMEM)
                return r;
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

static void set_words(struct lkg_api_answer *answer, const struct lkg_buf *words)
{
        size_t n = words->size < sizeof(answer->words) ? words->size : sizeof(answer->words) - 1;

        while (n > 0 && n < words->size && ((unsigned char)words->data[n] & 0xc0) == 0x80)
                n--;
        *(char *)mempcpy(answer->words, words->data ? words->data : "", n) = '\0';
}

static int judge_failure(const struct lkg_api_question *question, const struct lkg_http_result *result,
                         const char *what, struct lkg_api_answer *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf words = LKG_BUF_INIT, said = LKG_BUF_INIT;
        const struct status_row *row = find_row(result->status);
        int r = append_message(question, result, what, &said);

        if (r < 0 || lkg_buf_failed(&said))
                return -ENOMEM;
        /* A 404 of a proxy, or for a path that is not served, says nothing about the object. */
        if (r == 0 && row->status == LKG_API_NOT_FOUND)
                row = find_row(0);
        ret->status = row->status;
        lkg_buf_printf(&words, "%s%s (%u)", what, row->sentence, result->status);
        if (result->retry_after_ns > 0)
                lkg_buf_printf(&words, ", asks to wait %" PRIu64 " s",
                               result->retry_after_ns / LKG_NSEC_PER_SEC);
        lkg_buf_append(&words, said.data, said.size);
        if (lkg_buf_failed(&words))
                return -ENOMEM;
        set_words(ret, &words);
        return 0;
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
                lkg_buf_puts(words, ": the answer is no object");
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
        lkg_buf_puts(words, code == -EKEYREJECTED ? ": the answer is not read" : ": the answer is no JSON");
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

static int judge_object(const struct lkg_api_question *question, const struct lkg_http_result *result,
                        const char *what, struct lkg_api_answer *ret, struct lkg_value **ret_object)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf words = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        int r = decode(question, result, what, &object, &report);

        if (r == -ENOMEM)
                return r;
        lkg_buf_puts(&words, what);
        if (r < 0)
                append_finding(&words, r, &report);
        if (r < 0 ||
            !is_asked_for(question->resource, strcmp(question->verb, "list") == 0, object, &words)) {
                ret->status = LKG_API_INVALID;
                set_words(ret, &words);
                return lkg_buf_failed(&words) ? -ENOMEM : 0;
        }
        ret->object = object;
        ret->text = result->body;
        ret->size = result->size;
        *ret_object = LKG_STEAL(object);
        return 0;
}

int lkg_api_judge(const struct lkg_api_question *question, const struct lkg_http_result *result,
                  struct lkg_api_answer *ret, struct lkg_value **ret_object)
{
        char name[WHAT_BYTES], what[WHAT_BYTES + 16];

        *ret_object = NULL;
        *ret = (struct lkg_api_answer){
                .status = LKG_API_OK,
                .http_status = result->status,
                .cut = result->error == -ECONNRESET && result->status > 0,
                .retry_after_ns = result->retry_after_ns,
        };
        memcpy(ret->flow_schema, result->flow_schema, sizeof(ret->flow_schema));
        lkg_api_describe(question->resource, name, sizeof(name));
        (void)snprintf(what, sizeof(what), "%s %s", question->verb, name);
        if (result->error < 0) {
                ret->status = status_of_error(result->error);
                (void)snprintf(ret->words, sizeof(ret->words), "%s: %s", what, result->words);
                return 0;
        }
        if (find_row(result->status)->status != LKG_API_OK)
                return judge_failure(question, result, what, ret);
        return question->stream ? 0 : judge_object(question, result, what, ret, ret_object);
}
