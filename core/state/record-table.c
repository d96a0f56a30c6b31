/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: JSON files of ours. What is in one is a table of rows, from which it is read and written. Each member is checked alone:
 * an invalid one is lost, with a finding that names it, and the rest is still used.
 */
#include <inttypes.h>

#include <lkg/file.h>

#include "store-internal.h"

#define WANT_IDENTIFIER "1 to 253 of the characters A-Z, a-z, 0-9, ., _ and -"

const struct lkg_record_row lkg_source_rows[] = {
        { "namespace", LKG_RECORD_IDENTIFIER, LKG_MEMBER(struct lkg_config_source, ns) },
        { "name", LKG_RECORD_IDENTIFIER, LKG_MEMBER(struct lkg_config_source, name) },
        { "uid", LKG_RECORD_IDENTIFIER, LKG_MEMBER(struct lkg_config_source, uid) },
        { "resourceVersion", LKG_RECORD_IDENTIFIER, LKG_MEMBER(struct lkg_config_source, version) },
        { "key", LKG_RECORD_IDENTIFIER, LKG_MEMBER(struct lkg_config_source, key) },
        { "sha256", LKG_RECORD_DIGEST, LKG_MEMBER(struct lkg_config_source, sha256) },
        { NULL },
};

/* ---- the file ---- */

int lkg_store_read(int parent, const char *name, const char *file, struct lkg_report *report,
                   struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        const struct lkg_where where = { .file = file };
        struct lkg_error err = { 0 };
        uint64_t version;
        int r = lkg_record_read(parent, name, &value, &err);

        if (r == -ENOENT || r == -ENOMEM)
                return r == -ENOENT ? 0 : r;
        version = r < 0 ? 0 : lkg_record_number(value, "schemaVersion", 0);
        if (version == LKG_STORE_SCHEMA) {
                *ret = LKG_STEAL(value);
                return 1;
        }
        if (r < 0)
                lkg_report_add(report, LKG_WARNING, 4005, &where, "cannot be read, going on without it: %s",
                               err.message);
        else if (version > LKG_STORE_SCHEMA)
                lkg_report_add(report, LKG_WARNING, 6010, &where,
                               "has schemaVersion %" PRIu64 ", this lkgfs knows %u: going on without it",
                               version, LKG_STORE_SCHEMA);
        else
                lkg_report_add(report, LKG_WARNING, 4005, &where,
                               "has no valid schemaVersion (want %u), going on without it",
                               LKG_STORE_SCHEMA);
        lkg_store_put_aside(parent, name); /* also if it only cannot be read now: it would be overwritten */
        return 0;
}

int lkg_store_write(int parent, const char *name, struct lkg_json *json, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_json_write_line(json, &buf);

        return r < 0 ? lkg_error_set(err, r, NULL, "write %s", name)
                     : lkg_write_file_atomic(parent, name, buf.data, buf.size, 0600, /* durable= */ true,
                                             err);
}

/* ---- text ---- */

/* A control character would break the one-line files that show the text. */
static bool is_control(char c)
{
        return (unsigned char)c < 0x20 || c == 0x7f;
}

bool lkg_store_clean(const char *text, size_t size, char *ret, size_t room)
{
        bool whole = size < room;
        size_t n = whole ? size : room - 1, i = 0;

        while (i < n) {
                size_t length = lkg_utf8_length(text + i, size - i);

                if (length > n - i)
                        break; /* the cut is within this character */
                whole = whole && length > 0 && !is_control(text[i]);
                memcpy(ret + i, text + i, length ? length : 1);
                if (length == 0 || is_control(text[i]))
                        ret[i] = ' ';
                i += length ? length : 1;
        }
        ret[i] = '\0';
        return whole;
}

static void put_text(struct lkg_json *json, const char *name, const char *text)
{
        char clean[LKG_REASON_MAX];

        (void)lkg_store_clean(text, strlen(text), clean, sizeof(clean));
        lkg_json_text(json, name, clean);
}

/* ---- reading ---- */

#define WANT_MAX 64u

void lkg_fields_complain(const struct lkg_fields *fields, const char *field, const char *want)
{
        const struct lkg_where where = { .file = fields->file };

        if (fields->report)
                lkg_report_add(fields->report, LKG_WARNING, 4005, &where,
                               "%s%s %s, want %s; going on without it", fields->prefix, field,
                               lkg_map_get(fields->map, field) ? "cannot be understood" : "is missing",
                               want);
}

/* A member, as it stands in the record. */
struct record_member {
        const struct lkg_value *value; /* NULL = missing */
        const char *text;              /* NULL = it is none */
        const struct lkg_record_row *row;
        void *to;
        char want[WANT_MAX];
};

/* Each reads one type. Return: NULL; or what would be right. */

static const char *read_text(const struct record_member *m)
{
        size_t size;
        const char *text;

        *(char *)m->to = '\0';
        if (!m->value || lkg_value_type(m->value) != LKG_STRING)
                return "text";
        text = lkg_value_text(m->value, &size);
        return lkg_store_clean(text, size, m->to, m->row->size) ? NULL
                                                                : "shorter text without control characters";
}

static const char *read_foreign(const struct record_member *m)
{
        if (!m->text)
                return "text";
        lkg_text_copy(m->to, m->row->size, m->text);
        return strlen(m->text) < m->row->size ? NULL : "shorter text";
}

/* An identifier or "": lkg_config_source_check() decides whether it may be missing. */
static const char *read_identifier(const struct record_member *m)
{
        if (!m->text || (*m->text && !lkg_identifier_ok(m->text)))
                return WANT_IDENTIFIER;
        (void)strcpy(m->to, m->text);
        return NULL;
}

static const char *read_digest(const struct record_member *m)
{
        const char *const *other = m->row->words;

        if (!m->text || (*m->text && !lkg_is_sha256(m->text) && !(other && strcmp(m->text, *other) == 0)))
                return "64 hex digits, or nothing";
        (void)strcpy(m->to, m->text);
        return NULL;
}

static const char *read_time(const struct record_member *m)
{
        uint64_t ns;

        if (!m->text || lkg_parse_rfc3339(m->text, &ns) < 0)
                return "a time in the form of RFC 3339";
        *(uint64_t *)m->to = ns;
        return NULL;
}

static const char *read_flag(const struct record_member *m)
{
        if (!m->value || lkg_value_type(m->value) != LKG_BOOL)
                return "true or false";
        *(bool *)m->to = lkg_value_bool(m->value);
        return NULL;
}

static bool find_word(const struct lkg_record_row *row, const char *text, uint32_t *ret)
{
        for (uint32_t i = 0; row->words[i]; i++)
                if (text && strcmp(row->words[i], text) == 0) {
                        *ret = i;
                        return true;
                }
        return false;
}

/* `a, b or c` */
static const char *say_words(struct record_member *m)
{
        const char *const *words = m->row->words;
        size_t used = 0;

        for (size_t i = 0; words[i] && used < sizeof(m->want); i++)
                used += (size_t)snprintf(m->want + used, sizeof(m->want) - used, "%s%s",
                                         i == 0         ? ""
                                         : words[i + 1] ? ", "
                                                        : " or ",
                                         words[i]);
        return m->want;
}

static const char *read_word(struct record_member *m)
{
        return find_word(m->row, m->text, m->to) ? NULL : say_words(m);
}

/* A list of words, each with its flag. Those that are known count, whatever else is in it. */
static const char *read_words(struct record_member *m)
{
        const char *wrong = NULL;
        uint32_t word;

        if (!m->value || lkg_value_type(m->value) != LKG_LIST)
                return "a list";
        for (size_t i = 0; i < lkg_value_size(m->value); i++)
                if (find_word(m->row, lkg_value_text(lkg_list_get(m->value, i), NULL), &word))
                        ((bool *)m->to)[word] = true;
                else
                        wrong = say_words(m);
        return wrong;
}

/* UINT64_MAX stands for what is no number. */
static uint64_t max_of(const struct lkg_record_row *row)
{
        return row->max ? row->max : UINT64_MAX - 1;
}

static const char *read_number(struct record_member *m, const struct lkg_fields *fields)
{
        uint64_t n = lkg_record_number(fields->map, m->row->name, UINT64_MAX);

        (void)snprintf(m->want, sizeof(m->want), "a whole number from 0 to %" PRIu64, max_of(m->row));
        if (n > max_of(m->row))
                return m->want;
        if (m->row->size == sizeof(uint64_t))
                *(uint64_t *)m->to = n;
        else
                *(uint32_t *)m->to = (uint32_t)n;
        return NULL;
}

/* A source counts as a whole, or not at all. The local one is null, and not an object without a uid. */
static const char *take_source(const struct lkg_fields *inner, struct lkg_config_source *ret)
{
        struct lkg_config_source source = { .uid = "" };

        if (!lkg_record_get(inner, lkg_source_rows, &source))
                return NULL; /* its parts are reported */
        if (lkg_config_source_is_local(&source))
                lkg_fields_complain(inner, "uid", WANT_IDENTIFIER);
        else if (lkg_config_source_check(&source, NULL) < 0)
                return "a source with resourceVersion and key";
        else
                *ret = source;
        return NULL;
}

static const char *read_map(const struct record_member *m, const struct lkg_fields *fields)
{
        const struct lkg_record_row *row = m->row;
        char prefix[128];
        const struct lkg_fields inner = { m->value, fields->file, prefix, fields->report };

        if (m->value && lkg_value_type(m->value) == LKG_NULL)
                return NULL;
        if (!m->value || lkg_value_type(m->value) != LKG_MAP)
                return "an object or null";
        (void)snprintf(prefix, sizeof(prefix), "%s%s.", fields->prefix, row->name);
        if (row->type == LKG_RECORD_SOURCE)
                return take_source(&inner, m->to);
        (void)lkg_record_get(&inner, row->rows, m->to);
        return NULL;
}

static const char *read_member(struct record_member *m, const struct lkg_fields *fields)
{
        switch (m->row->type) {
        case LKG_RECORD_TEXT:
                return read_text(m);
        case LKG_RECORD_FOREIGN:
                return read_foreign(m);
        case LKG_RECORD_IDENTIFIER:
                return read_identifier(m);
        case LKG_RECORD_DIGEST:
                return read_digest(m);
        case LKG_RECORD_TIME:
                return read_time(m);
        case LKG_RECORD_NUMBER:
                return read_number(m, fields);
        case LKG_RECORD_FLAG:
                return read_flag(m);
        case LKG_RECORD_WORD:
                return read_word(m);
        case LKG_RECORD_WORDS:
                return read_words(m);
        case LKG_RECORD_MAP:
        case LKG_RECORD_SOURCE:
                return read_map(m, fields);
        }
        return NULL;
}

bool lkg_record_get(const struct lkg_fields *fields, const struct lkg_record_row *rows, void *ret)
{
        bool valid = true;

        for (; rows->name; rows++) {
                struct record_member m = { .value = lkg_map_get(fields->map, rows->name),
                                           .text = lkg_map_get_string(fields->map, rows->name),
                                           .row = rows,
                                           .to = (char *)ret + rows->offset };
                const char *want = !m.value && rows->optional ? NULL : read_member(&m, fields);

                if (!want)
                        continue;
                lkg_fields_complain(fields, rows->name, want);
                valid = valid && (rows->optional || rows->type == LKG_RECORD_DIGEST);
        }
        return valid;
}

/* ---- writing ---- */

static void put_words(struct lkg_json *json, const struct lkg_record_row *row, const bool *holds)
{
        lkg_json_list(json, row->name, LKG_JSON_TIGHT);
        for (size_t i = 0; row->words[i]; i++)
                if (holds[i])
                        lkg_json_text(json, NULL, row->words[i]);
        lkg_json_end(json);
}

static void put_number(struct lkg_json *json, const struct lkg_record_row *row, const void *from)
{
        uint64_t n = row->size == sizeof(uint64_t) ? *(const uint64_t *)from : *(const uint32_t *)from;

        lkg_json_u64(json, row->name, n < max_of(row) ? n : max_of(row));
}

static void put_map(struct lkg_json *json, const struct lkg_record_row *row, const void *from)
{
        bool source = row->type == LKG_RECORD_SOURCE;

        if (source && lkg_config_source_is_local(from)) {
                lkg_json_null(json, row->name);
                return;
        }
        lkg_json_map(json, row->name, source ? LKG_JSON_TIGHT : row->layout);
        lkg_record_put(json, source ? lkg_source_rows : row->rows, from);
        lkg_json_end(json);
}

static void put_member(struct lkg_json *json, const struct lkg_record_row *row, const void *from)
{
        switch (row->type) {
        case LKG_RECORD_TEXT:
        case LKG_RECORD_IDENTIFIER:
        case LKG_RECORD_DIGEST:
                put_text(json, row->name, from);
                break;
        case LKG_RECORD_FOREIGN:
                lkg_json_foreign(json, row->name, from);
                break;
        case LKG_RECORD_TIME:
                lkg_json_time_ns(json, row->name, *(const uint64_t *)from);
                break;
        case LKG_RECORD_NUMBER:
                put_number(json, row, from);
                break;
        case LKG_RECORD_FLAG:
                lkg_json_bool(json, row->name, *(const bool *)from);
                break;
        case LKG_RECORD_WORD:
                lkg_json_text(json, row->name, row->words[*(const uint32_t *)from]);
                break;
        case LKG_RECORD_WORDS:
                put_words(json, row, from);
                break;
        case LKG_RECORD_MAP:
        case LKG_RECORD_SOURCE:
                put_map(json, row, from);
                break;
        }
}

void lkg_record_put(struct lkg_json *json, const struct lkg_record_row *rows, const void *from)
{
        for (; rows->name; rows++) {
                const char *member = (const char *)from + rows->offset;

                if (rows->type != LKG_RECORD_IDENTIFIER || !rows->optional || *member)
                        put_member(json, rows, member);
        }
}

void lkg_record_begin(struct lkg_json *json, enum lkg_json_layout layout, const struct lkg_record_row *rows,
                      const void *from)
{
        lkg_json_map(json, NULL, layout);
        lkg_json_u64(json, "schemaVersion", LKG_STORE_SCHEMA);
        lkg_record_put(json, rows, from);
}
