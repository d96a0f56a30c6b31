/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of a kubeconfig by tables: see kubeconfig-reader.h. */
#include "kubeconfig-reader.h"

#include <ctype.h>

#include <openssl/crypto.h>

#include <lkg/text.h>

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
        if (vasprintf(&text, fmt, ap) < 0)
                text = NULL;
        va_end(ap);
        if (text)
                lkg_report_add(&r->report, severity, CODE, &where, "%s", text);
        else
                r->failed = true;
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

/* Return: whether there is a text; a value of another type is a finding. */
bool lkg_reader_text(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                     struct lkg_span *ret)
{
        const struct lkg_value *value = lkg_section_get(s, name);

        *ret = lkg_span("", 0);
        if (lkg_is_null(value))
                return false;
        if (lkg_value_type(value) != LKG_STRING) {
                lkg_reader_wrong_type(r, s, name, value,
                                      lkg_is_type(value, LKG_LIST) || lkg_is_type(value, LKG_MAP)
                                              ? "a text"
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

char *lkg_reader_dup(struct lkg_reader *r, struct lkg_span text)
{
        char *copy = lkg_span_dup(text);

        r->failed |= !copy;
        return copy;
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

static bool set_field_name(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                           struct lkg_file_or_data *to)
{
        const struct lkg_value *value = lkg_section_get(s, name);

        free(to->field);
        if (asprintf(&to->field, "%s.%s", s->path, name) < 0)
                to->field = NULL;
        to->line = lkg_value_line(value);
        to->column = lkg_value_column(value);
        r->failed |= !to->field;
        return to->field;
}

/* A path in the file is relative to the directory of the file. */
char *lkg_reader_path(struct lkg_reader *r, struct lkg_span path)
{
        const char *file = r->options->file, *slash = strrchr(file, '/');
        char *joined;

        if (path.data[0] == '/')
                return lkg_reader_dup(r, path);
        if (asprintf(&joined, "%.*s/%.*s", (int)(slash ? slash - file : 0), file, (int)path.size,
                     path.data) < 0)
                joined = NULL;
        r->failed |= !joined;
        return joined;
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
        char *data = malloc(text.size + 3 + 1);
        ssize_t n = data ? lkg_base64_decode(text.data, text.size, data) : -1;

        r->failed |= !data;
        if (data && n < 0)
                lkg_reader_say(r, LKG_ERROR, lkg_section_get(s, name),
                               "%s.%s is not base64; want the PEM file as `base64 -w0 FILE` prints it",
                               s->path, name);
        if (n == 0 || !set_field_name(r, s, name, to) || n < 0) {
                if (data)
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
        if (f->type == F_DATA)
                take_data(r, s, f->name, text, (struct lkg_file_or_data *)(void *)base);
        else if (f->type == F_PATH && set_field_name(r, s, f->name, (struct lkg_file_or_data *)(void *)base))
                ((struct lkg_file_or_data *)(void *)base)->path = lkg_reader_path(r, text);
        else if (f->type != F_PATH)
                *(char **)(void *)base = lkg_reader_dup(r, text);
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

bool lkg_reader_bool(struct lkg_reader *r, const struct lkg_section *s, const char *name)
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
                        *(bool *)((char *)r->out + f->offset) = lkg_reader_bool(r, s, f->name);
                } else if (lkg_reader_text(r, s, f->name, &text)) {
                        take_text(r, s, f, text);
                }
        }
}
