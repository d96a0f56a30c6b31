/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of records. Each field is checked alone: an invalid one is lost, with a finding that names it, and the rest
 * is still used.
 */
#include <inttypes.h>

#include <lkg/file.h>
#include <lkg/documents.h>
#include <lkg/text.h>

#include "store-internal.h"

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
        if (r < 0) {
                lkg_report_add(report, LKG_WARNING, 4005, &where, "cannot be read, going on without it: %s",
                               err.message);
                lkg_store_put_aside(parent,
                                    name); /* also if it only cannot be read now: it would be overwritten */
                return 0;
        }
        version = lkg_record_number(value, "schemaVersion", 0);
        if (version != LKG_STORE_SCHEMA) {
                if (version > LKG_STORE_SCHEMA)
                        lkg_report_add(report, LKG_WARNING, 6010, &where,
                                       "has schemaVersion %" PRIu64
                                       ", this lkgfs knows %u: going on without it",
                                       version, LKG_STORE_SCHEMA);
                else
                        lkg_report_add(report, LKG_WARNING, 4005, &where,
                                       "has no valid schemaVersion (want %u), going on without it",
                                       LKG_STORE_SCHEMA);
                lkg_store_put_aside(parent, name);
                return 0;
        }
        *ret = LKG_STEAL(value);
        return 1;
}

/* ---- reading ---- */

void lkg_fields_complain(const struct lkg_fields *fields, const char *field, const char *want)
{
        const struct lkg_where where = { .file = fields->file };

        lkg_report_add(fields->report, LKG_WARNING, 4005, &where, "%s%s %s, want %s; going on without it",
                       fields->prefix, field,
                       lkg_map_get(fields->map, field) ? "cannot be understood" : "is missing", want);
}

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

bool lkg_fields_text(const struct lkg_fields *fields, const char *field, char *ret, size_t room)
{
        const struct lkg_value *value = lkg_map_get(fields->map, field);
        size_t size;
        const char *text;

        ret[0] = '\0';
        if (!value || lkg_value_type(value) != LKG_STRING) {
                lkg_fields_complain(fields, field, "text");
                return false;
        }
        text = lkg_value_text(value, &size);
        if (lkg_store_clean(text, size, ret, room))
                return true;
        lkg_fields_complain(fields, field, "shorter text without control characters");
        return false;
}

uint64_t lkg_fields_number(const struct lkg_fields *fields, const char *field, uint64_t max,
                           uint64_t fallback)
{
        uint64_t n = lkg_record_number(fields->map, field, UINT64_MAX);
        char want[64];

        if (n <= max && n != UINT64_MAX)
                return n;
        (void)snprintf(want, sizeof(want), "a whole number from 0 to %" PRIu64, max);
        lkg_fields_complain(fields, field, want);
        return fallback;
}

uint64_t lkg_fields_time(const struct lkg_fields *fields, const char *field)
{
        const char *text = lkg_map_get_string(fields->map, field);
        uint64_t ns = 0;

        if (!text || lkg_parse_rfc3339(text, &ns) < 0)
                lkg_fields_complain(fields, field, "a time in the form of RFC 3339");
        return ns;
}

bool lkg_fields_flag(const struct lkg_fields *fields, const char *field)
{
        const struct lkg_value *value = lkg_map_get(fields->map, field);

        if (value && lkg_value_type(value) == LKG_BOOL)
                return lkg_value_bool(value);
        lkg_fields_complain(fields, field, "true or false");
        return false;
}

void lkg_fields_digest(const struct lkg_fields *fields, const char *field, char ret[static LKG_SHA256_HEX])
{
        const char *text = lkg_map_get_string(fields->map, field);

        ret[0] = '\0';
        if (text && lkg_is_sha256(text))
                memcpy(ret, text, LKG_SHA256_HEX);
        else if (!text || *text)
                lkg_fields_complain(fields, field, "64 hex digits, or nothing");
}

const struct lkg_value *lkg_fields_map(const struct lkg_fields *fields, const char *field)
{
        const struct lkg_value *value = lkg_map_get(fields->map, field);

        if (value && lkg_value_type(value) == LKG_MAP)
                return value;
        if (!value || lkg_value_type(value) != LKG_NULL)
                lkg_fields_complain(fields, field, "an object or null");
        return NULL;
}

/* An identifier or "": lkg_config_source_check() decides whether it may be missing. */
bool lkg_fields_identifier(const struct lkg_fields *fields, const char *field, char *ret)
{
        const struct lkg_value *value = lkg_map_get(fields->map, field);
        size_t size;
        const char *text =
                value && lkg_value_type(value) == LKG_STRING ? lkg_value_text(value, &size) : NULL;

        ret[0] = '\0';
        if (text && strlen(text) == size && (!*text || lkg_identifier_ok(text))) {
                memcpy(ret, text, size + 1);
                return true;
        }
        lkg_fields_complain(fields, field, "1 to 253 of the characters A-Z, a-z, 0-9, ., _ and -");
        return false;
}

bool lkg_fields_parts(const struct lkg_fields *fields, struct lkg_config_source *ret)
{
        bool ok = lkg_fields_identifier(fields, "namespace", ret->ns);

        ok = lkg_fields_identifier(fields, "name", ret->name) && ok;
        ok = lkg_fields_identifier(fields, "uid", ret->uid) && ok;
        ok = lkg_fields_identifier(fields, "resourceVersion", ret->version) && ok;
        ok = lkg_fields_identifier(fields, "key", ret->key) && ok;
        lkg_fields_digest(fields, "sha256", ret->sha256);
        return ok;
}

void lkg_fields_source(const struct lkg_fields *fields, const char *field, struct lkg_config_source *ret)
{
        const struct lkg_value *map = lkg_fields_map(fields, field);
        struct lkg_config_source source = { .uid = "" };
        struct lkg_error err = { 0 };
        char prefix[128];
        struct lkg_fields inner = { map, fields->file, prefix, fields->report };

        *ret = (struct lkg_config_source){ .uid = "" };
        if (!map)
                return;
        (void)snprintf(prefix, sizeof(prefix), "%s%s.", fields->prefix, field);
        if (!lkg_fields_parts(&inner, &source))
                return;
        if (lkg_config_source_is_local(&source)) /* the local source is null, not an object without a uid */
                lkg_fields_complain(&inner, "uid", "1 to 253 of the characters A-Z, a-z, 0-9, ., _ and -");
        else if (lkg_config_source_check(&source, &err) < 0)
                lkg_fields_complain(fields, field, "a source with resourceVersion and key");
        else
                *ret = source;
}

/* ---- writing ---- */

void lkg_store_begin(struct lkg_json *json, enum lkg_json_layout layout)
{
        lkg_json_map(json, NULL, layout);
        lkg_json_u64(json, "schemaVersion", LKG_STORE_SCHEMA);
}

void lkg_store_put_text(struct lkg_json *json, const char *name, const char *text)
{
        char clean[LKG_REASON_MAX];

        (void)lkg_store_clean(text, strlen(text), clean, sizeof(clean));
        lkg_json_text(json, name, clean);
}

void lkg_store_put_source(struct lkg_json *json, const char *name, const struct lkg_config_source *source,
                          bool whole)
{
        const struct {
                const char *field, *text;
        } parts[] = {
                { "namespace", source->ns }, { "name", source->name },
                { "uid", source->uid },      { "resourceVersion", source->version },
                { "key", source->key },      { "sha256", source->sha256 },
        };

        if (lkg_config_source_is_local(source) && !whole) {
                lkg_json_null(json, name);
                return;
        }
        lkg_json_map(json, name, LKG_JSON_TIGHT);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(parts); i++)
                lkg_store_put_text(json, parts[i].field, parts[i].text);
        lkg_json_end(json);
}

int lkg_store_write(int parent, const char *name, struct lkg_json *json, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_json_write_line(json, &buf);

        return r < 0 ? lkg_error_set(err, r, NULL, "write %s", name)
                     : lkg_write_file_atomic(parent, name, buf.data, buf.size, 0600, /* durable= */ true,
                                             err);
}
