/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the store only. */
#pragma once

#include <dirent.h>

#include <lkg/documents.h>
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
 * lkg_store_make_dir() - open directory @name of @parent; creates it (0700) if it is missing, and puts anything else with that
 * name aside. Not durable: call lkg_sync_dir(@parent) after creating all of them.
 * @path:   path of @parent below the state directory, "" = itself; for messages
 * @report: may be NULL
 *
 * Return: descriptor; -errno.
 */
int lkg_store_make_dir(int parent, const char *name, const char *path, struct lkg_report *report,
                       struct lkg_error *err);

/** lkg_store_list() - open @parent, or its directory @name, for listing; never through a symlink. NULL: see errno. */
DIR *lkg_store_list(int parent, const char *name);
static inline void lkg_closedirp(DIR **dir)
{
        if (*dir)
                (void)closedir(*dir);
        *dir = NULL;
}
/** lkg_store_next() - the next entry except `.` and `..`; NULL: the end, or @ret_error is -errno. */
const struct dirent *lkg_store_next(DIR *dir, int *ret_error);

/**
 * lkg_store_put_aside() - keep a damaged record as `<name>.damaged`, before a new one is written.
 * A regular file also keeps its old name, so that one of them always exists; anything else is renamed. Best effort.
 */
void lkg_store_put_aside(int parent, const char *name);

/** lkg_store_remove_dir() - remove @name with everything in it, at most @depth levels of directories. Return: 0 or -errno. */
int lkg_store_remove_dir(int parent, const char *name, unsigned depth);

/** lkg_store_release_path() - `releases/<name>[/<below>]` of the current release. */
void lkg_store_release_path(const struct lkg_store_component *c, const char *below,
                            char ret[static LKG_RELEASE_PATH]);

/* ---- reading records: store-fields.c ---- */

/**
 * lkg_store_clean() - copy at most @room - 1 bytes of @text, with control characters and invalid UTF-8 as spaces.
 * Return: is the copy identical?
 */
bool lkg_store_clean(const char *text, size_t size, char *ret, size_t room);

/* One map of a record. Each invalid field is a finding (LKG4005 unless stated otherwise) and counts as absent. */
struct lkg_fields {
        const struct lkg_value *map;
        const char *file;   /* below the state directory */
        const char *prefix; /* prefix of field names in findings: "assigned.", "" */
        struct lkg_report *report;
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
/** lkg_fields_text() - text of at most @size - 1 bytes without control characters. Return: is it unchanged? */
bool lkg_fields_text(const struct lkg_fields *fields, const char *field, char *ret, size_t size);
/** lkg_fields_number() - a whole number up to @max, or @fallback. */
uint64_t lkg_fields_number(const struct lkg_fields *fields, const char *field, uint64_t max,
                           uint64_t fallback);
/** lkg_fields_time() - ns since 1970, or 0. */
uint64_t lkg_fields_time(const struct lkg_fields *fields, const char *field);
bool lkg_fields_flag(const struct lkg_fields *fields, const char *field);
/** lkg_fields_digest() - 64 hex digits, or "". */
void lkg_fields_digest(const struct lkg_fields *fields, const char *field, char ret[static LKG_SHA256_HEX]);
/** lkg_fields_map() - a map; NULL if it is null or invalid. */
const struct lkg_value *lkg_fields_map(const struct lkg_fields *fields, const char *field);
/** lkg_fields_source() - a source; the local one if it is null or any part is invalid. */
void lkg_fields_source(const struct lkg_fields *fields, const char *field, struct lkg_config_source *ret);
/** lkg_fields_identifier() - an identifier or "", into @ret[LKG_IDENTIFIER_MAX + 1]. Return: is it valid? */
bool lkg_fields_identifier(const struct lkg_fields *fields, const char *field, char *ret);
/** lkg_fields_parts() - the parts of a source, each checked alone. Return: are all of them valid? */
bool lkg_fields_parts(const struct lkg_fields *fields, struct lkg_config_source *ret);

/* ---- writing records: store-fields.c ---- */

/** lkg_store_begin() - begin a record: a map with schemaVersion. */
void lkg_store_begin(struct lkg_json *json, enum lkg_json_layout layout);
/** lkg_store_put_text() - a text, with control characters and invalid UTF-8 as spaces. */
void lkg_store_put_text(struct lkg_json *json, const char *name, const char *text);
/** lkg_store_put_source() - a source as a map on one line; null for the local one unless @whole. */
void lkg_store_put_source(struct lkg_json *json, const char *name, const struct lkg_config_source *source,
                          bool whole);
/**
 * lkg_store_write() - write the record as @name of @parent, durably and atomically.
 * Return: 0; -ENOMEM: the record could not be built; -errno.
 */
int lkg_store_write(int parent, const char *name, struct lkg_json *json, struct lkg_error *err);
