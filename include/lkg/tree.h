/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Value trees within core/, beyond <lkg/documents.h>: finding codes, changes in place, scalars.
 */
#pragma once

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/limits.h>

/* Finding codes of core/documents and core/layers; core/base/findings.c has one row for each. */
enum lkg_config_code {
        LKG_C_SYNTAX = 1001,
        LKG_C_BYTES = 1002,          /* not text: NUL, control characters, invalid UTF-8 */
        LKG_C_LIMIT = 1003,          /* too big, too deep, too many values */
        LKG_C_ALIAS_BOMB = 1004,     /* excessive aliasing */
        LKG_C_DUPLICATE = 1005,      /* duplicate key, the last one counts */
        LKG_C_DUPLICATE_HARD = 1006, /* duplicate key, refused */
        LKG_C_KEY = 1007,            /* a key that JSON cannot represent */
        LKG_C_SCALAR = 1008,         /* a value that JSON cannot represent, or that does not match its tag */
        LKG_C_ANCHOR = 1009,         /* unknown anchor, anchor that contains itself, bad merge key */
        LKG_C_MORE_DOCUMENTS = 1010, /* only the first document counts */
        LKG_C_QUOTES = 1011,         /* typographic quotes, which do not quote */
        LKG_C_SPACE = 1012,          /* a space around a text that is none of ASCII and belongs to it */
        LKG_C_FOREIGN = 1013,        /* the document of a program that is no component */

        LKG_C_EMPTY = 2001,        /* the file is empty or contains no document */
        LKG_C_NOT_A_MAP = 2002,    /* top level is not a map */
        LKG_C_NO_HEADER = 2003,    /* kind or apiVersion missing */
        LKG_C_OTHER_HEADER = 2004, /* kind or apiVersion differ from the base */
        LKG_C_UNREADABLE = 2005,   /* open or read failed, not a regular file, untrusted symlink */
        LKG_C_TOO_BIG = 2006,
        LKG_C_KUBECONFIG = 2007,    /* a kubeconfig used as a layer */
        LKG_C_NAME_TAKEN = 2008,    /* a kubeconfig under the view name */
        LKG_C_NO_DROPIN_DIR = 2009, /* configured directory missing */
        LKG_C_NOT_A_DIR = 2010,     /* drop-in directory is a symlink or a file */
        LKG_C_WALK_LIMIT = 2011,    /* too deep, too many entries, too many layers */
        LKG_C_PLACEHOLDER = 2036,   /* a value that a template has, and nobody put in */
        LKG_C_OTHER_NAMES = 2035,   /* the file has other names, so inotify does not see every change */
        LKG_C_UNSTABLE = 2012,      /* entries vanished during the walk */
        LKG_C_SORT_TRAP = 2013,     /* 100.conf before 9.conf */
        LKG_C_SKIPPED_YAML = 2014,  /* .yaml, .yml, .json in the drop-in directory */
        LKG_C_SKIPPED = 2015,       /* other entries without .conf */
        LKG_C_SKIPPED_LINK = 2016,  /* symlink to a directory */
        LKG_C_TWICE = 2017,         /* ConfigMap volume layout: files applied twice */
        LKG_C_NO_BASE = 2018,       /* drop-ins without a base */
        LKG_C_NO_INSTANCE = 2019,   /* configured instance file missing */
        LKG_C_PATCH_NAME = 2020,    /* patches directory: invalid name */
        LKG_C_PATCH_TYPE = 2021,    /* patches directory: unknown type after '+' */
        LKG_C_STRATEGIC = 2022,     /* a directive of a strategic merge patch is wrong */
        LKG_C_JSON_PATCH = 2023,    /* an operation of an RFC 6902 patch is wrong */
        LKG_C_HEADER_LOST = 2024,   /* a patch removes or changes kind or apiVersion */
        LKG_C_DIRECTIVE_IN_DROPIN = 2025, /* $patch and similar keys are plain keys in a drop-in */
        LKG_C_IDLE_DIRECTIVE = 2026,      /* a directive in a map that no earlier layer sets */
        LKG_C_ODD_NUMBER = 2027,          /* octal, or with underscores */
        LKG_C_HIDDEN = 2028,              /* a hidden file that counts */
        LKG_C_EDITOR_LOCK = 2029,         /* ignored here, fatal for the component's own walk */
        LKG_C_POISON = 2030,              /* an engine crashed on it */
        LKG_C_BASE_MISSING = 2031,        /* a required base is missing */
        LKG_C_GENERATED = 2032,           /* our own output instead of a base */
        LKG_C_IDLE_PATCH = 2040,          /* a kubeadm patch file without a patch */
        LKG_C_MANIFEST_NAME = 2041,       /* a file name that a static pod cannot have here */
        LKG_C_SAME_POD = 2042,            /* two manifests of one pod */
        LKG_C_COPY = 2043,                /* a copy or a leftover beside the manifests */
        LKG_C_POD_BAD = 2044,             /* a manifest that is marked bad */
};

/* Strategic merge directives. */
#define LKG_DIRECTIVE_PATCH  "$patch"
#define LKG_DIRECTIVE_RETAIN "$retainKeys"
#define LKG_DIRECTIVE_DELETE "$deleteFromPrimitiveList"
#define LKG_DIRECTIVE_ORDER  "$setElementOrder"

/* doc.c */
struct lkg_value *lkg_map_find(const struct lkg_value *map, struct lkg_span key); /* lkg_map_get() */
/** lkg_value_over() - a copy of @value (with shared members) that shadows @shadowed. */
struct lkg_value *lkg_value_over(const struct lkg_value *value, const struct lkg_value *shadowed);
/* schema's typed-object.c: reading objects. Missing values are returned as zero. @path is dotted, without lists. */
const struct lkg_value *lkg_object_get(const struct lkg_value *object, const char *path);
bool lkg_object_has(const struct lkg_value *object, const char *path);
bool lkg_object_bool(const struct lkg_value *object, const char *path);
int64_t lkg_object_int(const struct lkg_value *object, const char *path);
struct lkg_span lkg_object_text(const struct lkg_value *object, const char *path); /* borrowed */
int64_t lkg_value_int(const struct lkg_value *value);                              /* NULL = 0 */
/** lkg_text_of() - return the text of a string, including NUL bytes; else empty. Borrowed. */
struct lkg_span lkg_text_of(const struct lkg_value *value);
/**
 * lkg_value_rewrite() - @value with other members; what does not change is shared.
 * @fn: the new value of a member, one reference, which may be the same; NULL = it is left out
 * Return: one reference.
 */
typedef struct lkg_value *lkg_rewrite_fn(const struct lkg_value *value, const struct lkg_member *m,
                                         void *userdata);
struct lkg_value *lkg_value_rewrite(const struct lkg_value *value, lkg_rewrite_fn *fn, void *userdata);
/** lkg_value_is_own() - is there one reference only, so that the holder may change it? */
bool lkg_value_is_own(const struct lkg_value *value);
/** lkg_list_set() - replace item @i; takes over @item. */
void lkg_list_set(struct lkg_value *list, size_t i, struct lkg_value *item);
/** lkg_list_insert() - insert @item before item @i <= size; takes over @item. */
void lkg_list_insert(struct lkg_value *list, size_t i, struct lkg_value *item);
void lkg_list_remove(struct lkg_value *list, size_t i);
/** lkg_value_place() - set line and column of a value that is not shared yet. */
void lkg_value_place(struct lkg_value *value, unsigned line, unsigned column);
struct lkg_source *lkg_value_source_mut(const struct lkg_value *value); /* borrowed; for making siblings */

/**
 * lkg_list_stamp() - cache a result about a list, as a number that the caller chooses.
 *
 * Copies do not have it, and a changed list loses it; values below a shared value are never changed in
 * place. There is one thread, so writing to a const value is safe. 0 = no result.
 */
void lkg_list_stamp(const struct lkg_value *list, uint16_t stamp);
uint16_t lkg_list_stamp_get(const struct lkg_value *list);

/* scalar.c */
enum lkg_scalar_type { LKG_S_STRING, LKG_S_NULL, LKG_S_BOOL, LKG_S_INT, LKG_S_FLOAT, LKG_S_MERGE };
#define LKG_NUMBER_TEXT_MAX 64
struct lkg_scalar {
        enum lkg_scalar_type type;
        bool b;
        bool big;                       /* an integer beyond the int64 range */
        bool finite;                    /* false: .inf or .nan */
        double d;                       /* of a float */
        char text[LKG_NUMBER_TEXT_MAX]; /* JSON text of a number */
};
/** lkg_scalar_resolve() - resolve an untagged plain scalar as go-yaml v2 does (YAML 1.1 words and numbers). */
void lkg_scalar_resolve(const char *text, size_t size, struct lkg_scalar *ret);
bool lkg_scalar_is_timestamp(const char *text, size_t size);
/** lkg_float_json() - format @d as Go's encoding/json prints a float64; @d is finite. */
void lkg_float_json(double d, char buf[static LKG_NUMBER_TEXT_MAX]);
/** lkg_float_key() - format @d as a map key: Go's 'g' format with the shortest digits of a float32. */
void lkg_float_key(double d, char buf[static LKG_NUMBER_TEXT_MAX]);
/**
 * lkg_number_untyped() - a number after Go's untyped round trip: an int64 stays, otherwise float64. 0 or
 * -ERANGE.
 */
int lkg_number_untyped(const char *text, char buf[static LKG_NUMBER_TEXT_MAX]);
