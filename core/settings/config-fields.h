/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of the tables in config-fields.c, shared with the decoder that walks them; private to the
 * configuration.
 */
#pragma once

#include <lkg/config.h>

enum lkg_field_type {
        F_TEXT,     /* char * */
        F_NAME,     /* char *, a bare file name or "" */
        F_LAYER,    /* char *, relative inside the source directory or absolute, "" = unused */
        F_PATH,     /* char *, made absolute with the configuration's own directory */
        F_BOOL,     /* bool */
        F_DURATION, /* uint64_t ns */
        F_MODE,     /* uint32_t from an octal string */
        F_NUMBER,   /* uint64_t within min..max */
        F_BYTES,    /* uint64_t from a number or a quantity: 3Mi */
        F_WORD,     /* int: index into words */
        F_RELEASE,  /* uint64_t: 136 for 1.36 (text or number), 0 for auto; within min..max */
        F_USER,     /* uint32_t */
        F_GROUP,    /* uint32_t */
        F_ACCOUNT,  /* char *, the name or number of a user, known or not */
        F_TEXTS,    /* struct lkg_strings */
        F_NAMES,    /* struct lkg_strings of bare names */
        F_PATHS,    /* struct lkg_strings of absolute paths */
        F_WORDS,    /* struct lkg_strings, each one of words */
        F_OBJECT,   /* a nested table */
        F_SKIP,     /* decoded elsewhere */
};

/* What the types have in common for the decoder, its messages and the JSON Schema. */
struct lkg_config_type {
        unsigned given;             /* bits 1 << enum lkg_type: what may stand in a document */
        const char *given_text;     /* the same in words */
        const char *json, *json_or; /* types of JSON Schema */
        const char *pattern;        /* of a text, for JSON Schema; NULL = any */
        unsigned code;              /* finding about a value that does not fit; 0 = every one does */
        const char *want;           /* what would fit; NULL = it depends on the row */
        bool text;                  /* char * */
        bool list;                  /* struct lkg_strings */
};

/* By enum lkg_field_type. */
extern const struct lkg_config_type lkg_config_types[];

struct lkg_config_field {
        const char *name;
        enum lkg_field_type type;
        size_t offset;
        const char *fallback;               /* lists: items separated by commas; NULL = empty */
        const char *const *words;           /* F_WORD, F_WORDS: NULL at the end */
        const struct lkg_config_field *sub; /* F_OBJECT: table ended by a NULL name */
        uint64_t min, max;                  /* F_NUMBER, F_RELEASE */
        size_t set_offset;                  /* bool that records "set by the user"; 0 = none */
        const char *doc;                    /* one line: its purpose */
};

extern const struct lkg_config_field lkg_config_fields[];
extern const struct lkg_config_field lkg_component_fields[];

/* Text -> number, strictly: no blanks, signs or trailing text. Return: 0 or -EINVAL. */
int lkg_config_parse_number(const char *text, uint64_t *ret);
int lkg_config_parse_bytes(const char *text, uint64_t *ret);   /* 1048576, 512Ki, 3M */
int lkg_config_parse_release(const char *text, uint64_t *ret); /* auto is 0, 1.36 is 136 */
int lkg_config_parse_mode(const char *text, uint32_t *ret);    /* octal, at most 0777 */
/** lkg_config_parse_owner() - a number or a name from the user (group) database. -ENOENT: unknown name. */
int lkg_config_parse_owner(const char *text, bool group, uint32_t *ret);
