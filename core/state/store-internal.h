/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the store only. */
#pragma once

#include <dirent.h>

#include <lkg/doc.h>
#include <lkg/json-out.h>
#include <lkg/store.h>

#define LKG_STORE_SCHEMA   1u
#define LKG_STORE_ASIDE    ".damaged"
#define LKG_CHECKPOINTS    "checkpoints"
#define LKG_DYNAMIC        "dynamic"
#define LKG_DOCUMENTS      "documents"
#define LKG_RELEASES       "releases"
#define LKG_BAD            "bad"     /* in a release */
#define LKG_RELEASE_DEPTH  1u        /* directories inside the one of a release: bad */
#define LKG_RELEASE_PATH   96u       /* of what is in a release, in the directory of its component */
#define LKG_DIR_PATH       384u      /* of any directory of ours, below the state directory */
#define LKG_STORE_PATH     640u      /* of any file of ours */
#define LKG_RELEASE_UNSURE "unknown" /* directory that counts while the release is not known */

/* ---- directories: store-dir.c ---- */

/**
 * lkg_store_make_dir() - open directory @name of @parent, made when it is missing (0700). Anything else with that name is put
 * aside. Not durable: lkg_sync_dir(@parent) when all of them are made.
 * @path:   of @parent below the state directory, "" = itself; for messages
 * @report: may be NULL
 *
 * Return: descriptor; -errno.
 */
int lkg_store_make_dir(int parent, const char *name, const char *path, struct lkg_report *report,
                       struct lkg_error *err);

/** lkg_store_list() - the entries of @parent, or of its directory @name, never through a symlink. NULL: errno. */
DIR *lkg_store_list(int parent, const char *name);
static inline void lkg_closedirp(DIR **dir)
{
        if (*dir)
                (void)closedir(*dir);
        *dir = NULL;
}
/** lkg_store_next() - the next entry but `.` and `..`; NULL at the end, or -errno in @ret_error. */
const struct dirent *lkg_store_next(DIR *dir, int *ret_error);

/**
 * lkg_store_put_aside() - keep a damaged record as `<name>.damaged`, before a new one is written.
 * A file keeps its name, too, so that there is no moment without either; anything else is renamed. As good as it goes.
 */
void lkg_store_put_aside(int parent, const char *name);

/** lkg_store_remove_dir() - @name with everything in it, at most @depth directories deep. Return: 0 or -errno. */
int lkg_store_remove_dir(int parent, const char *name, unsigned depth);

/** lkg_store_release_path() - `releases/<name>[/<below>]` of what counts now. */
void lkg_store_release_path(const struct lkg_store_component *c, const char *below,
                            char ret[static LKG_RELEASE_PATH]);

/* ---- reading records: store-fields.c ---- */

/**
 * lkg_store_clean() - at most @room - 1 bytes of @text, with control characters and invalid UTF-8 as spaces.
 * Return: is it the same?
 */
bool lkg_store_clean(const char *text, size_t size, char *ret, size_t room);

/* One map of a record. A wrong field is one finding (LKG4005 unless said otherwise) and reads as absent. */
struct lkg_fields {
        const struct lkg_value *map;
        const char *file;   /* below the state directory */
        const char *prefix; /* in front of field names in findings: "assigned.", "" */
        struct lkg_report *report;
};

/**
 * lkg_store_read() - the record @name of @parent.
 * @file: the same below the state directory, for findings
 *
 * Return: 1 and @ret; 0: none, or it is damaged, of another schemaVersion (both in @report) and put aside;
 * -ENOMEM.
 */
int lkg_store_read(int parent, const char *name, const char *file, struct lkg_report *report,
                   struct lkg_value **ret);

/** lkg_fields_complain() - a finding about @field. */
void lkg_fields_complain(const struct lkg_fields *fields, const char *field, const char *want);
/** lkg_fields_text() - text of at most @size - 1 bytes without control characters. Return: is it whole? */
bool lkg_fields_text(const struct lkg_fields *fields, const char *field, char *ret, size_t size);
/** lkg_fields_number() - a whole number up to @max, or @fallback. */
uint64_t lkg_fields_number(const struct lkg_fields *fields, const char *field, uint64_t max,
                           uint64_t fallback);
/** lkg_fields_time() - ns since 1970, or 0. */
uint64_t lkg_fields_time(const struct lkg_fields *fields, const char *field);
bool lkg_fields_flag(const struct lkg_fields *fields, const char *field);
/** lkg_fields_digest() - 64 hex digits, or "". */
void lkg_fields_digest(const struct lkg_fields *fields, const char *field, char ret[static LKG_SHA256_HEX]);
/** lkg_fields_map() - a map, NULL when it is null or wrong. */
const struct lkg_value *lkg_fields_map(const struct lkg_fields *fields, const char *field);
/** lkg_fields_source() - a source, the local one when it is null or anything in it is wrong. */
void lkg_fields_source(const struct lkg_fields *fields, const char *field, struct lkg_config_source *ret);
/** lkg_fields_identifier() - into @ret[LKG_IDENTIFIER_MAX + 1]; may be empty. Return: is it one, or empty? */
bool lkg_fields_identifier(const struct lkg_fields *fields, const char *field, char *ret);
/** lkg_fields_parts() - the parts of a source, unchecked as a whole. Return: are all of them fine? */
bool lkg_fields_parts(const struct lkg_fields *fields, struct lkg_config_source *ret);

/* ---- writing records: store-fields.c ---- */

/** lkg_store_begin() - a record: a map with its schemaVersion. */
void lkg_store_begin(struct lkg_json *json, enum lkg_json_layout layout);
/** lkg_store_put_text() - control characters and invalid UTF-8 as spaces. */
void lkg_store_put_text(struct lkg_json *json, const char *name, const char *text);
/** lkg_store_put_source() - a map in one line; null for the local one unless @whole. */
void lkg_store_put_source(struct lkg_json *json, const char *name, const struct lkg_config_source *source,
                          bool whole);
/**
 * lkg_store_write() - write the record as @name of @parent, durable and never half of it.
 * Return: 0; -ENOMEM: the record could not be built; -errno.
 */
int lkg_store_write(int parent, const char *name, struct lkg_json *json, struct lkg_error *err);
