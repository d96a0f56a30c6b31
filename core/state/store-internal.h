/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the store only. */
#pragma once

#include <lkg/documents.h>
#include <lkg/file.h>
#include <lkg/text.h>
#include <lkg/store.h>

#define LKG_STORE_SCHEMA   1u
#define LKG_STORE_ASIDE    ".damaged"
#define LKG_CHECKPOINTS    "checkpoints"
#define LKG_DYNAMIC        "dynamic"
#define LKG_DOCUMENTS      "documents"
#define LKG_RELEASES       "releases"
#define LKG_BAD            "bad"     /* in the directory of a release */
#define LKG_RELEASE_DEPTH  1u        /* levels of directories below that of a release: bad */
#define LKG_RELEASE_PATH   96u       /* of a file of a release, below the directory of its component */
#define LKG_DIR_PATH       384u      /* of any directory of lkgfs, below the state directory */
#define LKG_STORE_PATH     640u      /* of any file of lkgfs */
#define LKG_RELEASE_UNSURE "unknown" /* directory in use while the release is not known */

/* ---- directories: store-dir.c ---- */

/**
 * lkg_store_make_path() - open the directory @path below @top; creates (0700) what is missing of it, puts aside whatever else has one of
 * its names, and flushes the parent of each directory.
 * @report: may be NULL
 *
 * Return: descriptor; -errno.
 */
int lkg_store_make_path(int top, const char *path, struct lkg_report *report, struct lkg_error *err);

/**
 * lkg_store_put_aside() - keep a damaged record as `<name>.damaged`, before a new one is written.
 * A regular file also keeps its old name, so that one of them always exists; anything else is renamed. Best effort.
 */
void lkg_store_put_aside(int parent, const char *name);

/** lkg_store_remove_dir() - remove @name with everything in it, at most @depth levels of directories. Return: 0 or -errno. */
int lkg_store_remove_dir(int parent, const char *name, unsigned depth);

/** lkg_store_release_path() - `releases/<name>/<below>` of the current release. */
void lkg_store_release_path(const struct lkg_store_component *c, const char *below,
                            char ret[static LKG_RELEASE_PATH]);
/** lkg_store_make_bad() - open the directory of marks of @release; creates it. Return: descriptor; -errno. */
int lkg_store_make_bad(const struct lkg_store_component *c, const char *release, struct lkg_report *report,
                       struct lkg_error *err);

/* ---- records: record.c ---- */

enum lkg_record_type {
        LKG_RECORD_TEXT,       /* char[]; control characters and invalid UTF-8 as spaces */
        LKG_RECORD_FOREIGN,    /* char[]: any text */
        LKG_RECORD_IDENTIFIER, /* char[LKG_IDENTIFIER_MAX + 1]: an identifier or "" */
        LKG_RECORD_DIGEST,     /* char[LKG_SHA256_HEX]: 64 hex digits or "" or the only one of words */
        LKG_RECORD_TIME,       /* uint64_t: ns since 1970 */
        LKG_RECORD_NUMBER,     /* 4 or 8 bytes, from 0 to max */
        LKG_RECORD_FLAG,       /* bool */
        LKG_RECORD_WORD,       /* an enum: index in words */
        LKG_RECORD_WORDS,      /* bool[]: a list of those words that hold */
        LKG_RECORD_MAP,        /* rows, of the struct at offset */
        LKG_RECORD_SOURCE,     /* struct lkg_config_source; null = the local one */
};

/* A member of a record, and where it is in the struct. A table ends with a row without a name. */
struct lkg_record_row {
        const char *name;
        enum lkg_record_type type;
        size_t offset, size;
        bool optional;            /* earlier versions did not write it */
        uint64_t max;             /* of a number; 0 = any */
        const char *const *words; /* the last is NULL */
        const struct lkg_record_row *rows;
        enum lkg_json_layout layout; /* of a map */
};
#define LKG_MEMBER(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

extern const struct lkg_record_row lkg_source_rows[];

/* One map of a record that is being read. Each invalid member is a finding (LKG4005). */
struct lkg_fields {
        const struct lkg_value *map;
        const char *file;          /* below the state directory */
        const char *prefix;        /* prefix of names in findings: "assigned.", "" */
        struct lkg_report *report; /* NULL = invalid members are lost without a word */
};

/**
 * lkg_store_read() - read the record @name of @parent.
 * @file: its path below the state directory, for findings
 *
 * Return: 1: see @ret; 0: there is none, or it is damaged or of another schemaVersion: then it is in @report and
 * put aside; -ENOMEM.
 */
int lkg_store_read(int parent, const char *name, const char *file, struct lkg_report *report,
                   struct lkg_value **ret);
/** lkg_fields_complain() - add a finding about @field. */
void lkg_fields_complain(const struct lkg_fields *fields, const char *field, const char *want);
/**
 * lkg_record_get() - read the members of a map. What is missing or invalid stays as it is in @ret; a text becomes what of it can be shown.
 * Return: are all of them valid, digests aside?
 */
bool lkg_record_get(const struct lkg_fields *fields, const struct lkg_record_row *rows, void *ret);
/** lkg_store_clean() - copy at most @room - 1 bytes of @text, with control characters and invalid UTF-8 as spaces.
 * Return: is the copy identical? */
bool lkg_store_clean(const char *text, size_t size, char *ret, size_t room);

/** lkg_record_begin() - begin a record: a map with schemaVersion and @rows; the caller ends it. */
void lkg_record_begin(struct lkg_json *json, enum lkg_json_layout layout, const struct lkg_record_row *rows,
                      const void *from);
/** lkg_record_put() - add members to the map that was begun last. */
void lkg_record_put(struct lkg_json *json, const struct lkg_record_row *rows, const void *from);
/**
 * lkg_store_write() - write the record as @name of @parent, durably and atomically.
 * Return: 0; -ENOMEM: the record could not be built; -errno.
 */
int lkg_store_write(int parent, const char *name, struct lkg_json *json, struct lkg_error *err);
