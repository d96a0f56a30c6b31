/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that read a kubeconfig: the document being read, a map in it with its name for messages, and tables of
 * fields. For those files only.
 *
 * A mistake is a finding (LKG7001) at its position; reading continues.
 */
#pragma once

#include <lkg/http.h>
#include <lkg/limits.h>
#include <lkg/text.h>

#define LKG_READER_QUOTED_MAX (5 * LKG_QUOTE_MAX + 8)
#define LKG_READER_PATH_MAX   (2 * LKG_READER_QUOTED_MAX + 64)

enum lkg_reader_type {
        F_TEXT,    /* char *: one line */
        F_TOKEN,   /* char *: the same without the white space around it */
        F_PATH,    /* struct lkg_file_or_data: path */
        F_DATA,    /* struct lkg_file_or_data: data, base64 */
        F_BOOL,    /* bool */
        F_KEEP,    /* read elsewhere */
        F_ANY,     /* of no interest to us */
        F_REFUSED, /* must be empty; @why says what would be right */
};

struct lkg_reader_field {
        const char *name;
        enum lkg_reader_type type;
        size_t offset; /* in struct lkg_kubeconfig */
        const char *why;
};

struct lkg_reader {
        const struct lkg_kubeconfig_options *options;
        struct lkg_report report;
        struct lkg_kubeconfig *out;
};

/* A map of the document, and its name for messages. */
struct lkg_section {
        const struct lkg_value *map, *at; /* map NULL = absent; at: the value nearest to where it would be */
        char path[LKG_READER_PATH_MAX];   /* "users[u].user"; "" = the whole */
};

static inline bool lkg_is_null(const struct lkg_value *value)
{
        return !value || lkg_value_type(value) == LKG_NULL;
}

static inline bool lkg_is_type(const struct lkg_value *value, enum lkg_type type)
{
        return value && lkg_value_type(value) == type;
}

static inline const struct lkg_value *lkg_section_get(const struct lkg_section *s, const char *name)
{
        return s->map ? lkg_map_get(s->map, name) : NULL;
}

/** lkg_section_at() - return where a member is, or would be. */
const struct lkg_value *lkg_section_at(const struct lkg_section *s, const char *name);

/* ---- findings ---- */

void lkg_reader_say(struct lkg_reader *r, enum lkg_severity severity, const struct lkg_value *at,
                    const char *fmt, ...) LKG_PRINTF(4, 5);
/** lkg_reader_wrong_type() - "users[u].user.token is a number; want ..." */
void lkg_reader_wrong_type(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                           const struct lkg_value *value, const char *want);
/** lkg_reader_may_show() - is it a word of letters, which cannot contain a credential? */
bool lkg_reader_may_show(struct lkg_span name);
/** lkg_reader_known() - add a warning for each member without a row in @fields. */
void lkg_reader_known(struct lkg_reader *r, const struct lkg_section *s,
                      const struct lkg_reader_field *fields);

/* ---- values; a wrong type is a finding ---- */

/** lkg_reader_text() - Return: 1: there is a text; 0: there is none; -1: it is of another type. @ret is empty then. */
int lkg_reader_text(struct lkg_reader *r, const struct lkg_section *s, const char *name,
                    struct lkg_span *ret);
/** lkg_entry_name() - the text under `name` of an entry. Return: whether there is one. */
bool lkg_entry_name(const struct lkg_value *item, struct lkg_span *ret);
/** lkg_reader_fields() - read all fields of @s that are in @fields into r->out. */
void lkg_reader_fields(struct lkg_reader *r, const struct lkg_section *s,
                       const struct lkg_reader_field *fields);

/** lkg_file_or_data_wipe() - wipe it; data may be missing. */
void lkg_file_or_data_wipe(struct lkg_file_or_data *x);

/** lkg_reader_user() - read users[].user with its exec plugin, and check for contradictions. */
void lkg_reader_user(struct lkg_reader *r, const struct lkg_section *s);
