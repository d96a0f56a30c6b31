/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resolved remote configuration: which object, which version of it, which key. Pure values, no allocation.
 *
 * The source id is `<uid>@<resourceVersion>`, followed by `:key` when the key is not `kubelet`. Every part
 * is used in a path or as a file name, so each is checked first, and so is the whole id, which is the name
 * of a file in bad/ (docs/specification.md 4.1).
 *
 * Not to be confused with struct lkg_source of doc.h, the file from which a value was read.
 */
#pragma once

#include <lkg/error.h>
#include <lkg/limits.h>
#include <lkg/span.h>

#define LKG_IDENTIFIER_MAX 253u
#define LKG_SOURCE_ID_MAX  255u /* NAME_MAX */
#define LKG_KEY_DEFAULT    "kubelet"
#define LKG_UID_LOCAL      "local" /* in ids of local configurations; no object may have this uid */
#define LKG_REASON_MAX     512u    /* why something is bad or unclear, for messages */
#define LKG_SHORT_HASH     12u     /* hex digits of a SHA-256 that represent it in ids */

/* All empty = the local configuration. */
struct lkg_config_source {
        char ns[LKG_IDENTIFIER_MAX + 1], name[LKG_IDENTIFIER_MAX + 1]; /* of the ConfigMap */
        char uid[LKG_IDENTIFIER_MAX + 1], version[LKG_IDENTIFIER_MAX + 1], key[LKG_IDENTIFIER_MAX + 1];
        char sha256[LKG_SHA256_HEX]; /* of the bytes under the key; "" = none */
};

static inline bool lkg_config_source_is_local(const struct lkg_config_source *source)
{
        return source->uid[0] == '\0';
}

/** lkg_identifier_ok() - `[A-Za-z0-9._-]{1,253}`, not `.` or `..`. */
bool lkg_identifier_ok(const char *text);

/** lkg_config_source_equal() - the same object, version and key; two local ones are equal. */
bool lkg_config_source_equal(const struct lkg_config_source *a, const struct lkg_config_source *b);

/**
 * lkg_config_source_same_content() - the same bytes of the same key of the same object, whatever its
 * version.
 */
bool lkg_config_source_same_content(const struct lkg_config_source *a, const struct lkg_config_source *b);

/**
 * lkg_config_source_matches() - is it the same configuration? The content decides: equal, or the same bytes
 * under another version, as when only an annotation of the object has changed.
 */
bool lkg_config_source_matches(const struct lkg_config_source *a, const struct lkg_config_source *b);

/**
 * lkg_config_source_recorded() - the source that a record names, for lkg_config_source_matches(); ns and name
 * stay empty.
 * @id:     lkg_config_source_id() of it; "" = the local one
 * @sha256: of its bytes; "" = not known
 */
void lkg_config_source_recorded(const char *id, const char *sha256, struct lkg_config_source *ret);

/** lkg_config_records_match() - lkg_config_source_matches() for two records. */
bool lkg_config_records_match(const char *id_a, const char *sha256_a, const char *id_b,
                              const char *sha256_b);

/**
 * lkg_config_source_id() - `<uid>@<version>[:key]`; only the uid if there is no version, "" for the local
 * one.
 * @source: has passed lkg_config_source_check(); an id that is too long is truncated
 */
void lkg_config_source_id(const struct lkg_config_source *source, char ret[static LKG_SOURCE_ID_MAX + 1]);

/**
 * lkg_config_source_check() - may every part be used in a path, and the id as a file name?
 *
 * Namespace and name may be missing: an id does not contain them. The local one is valid.
 * Return: 0; -EINVAL: @err names the wrong part.
 */
int lkg_config_source_check(const struct lkg_config_source *source, struct lkg_error *err);

/**
 * lkg_config_source_parse_id() - parse an id or a uid; ns, name and sha256 stay empty, for a uid alone also
 * version and key. The key is LKG_KEY_DEFAULT if it is missing (`uid@7:kubelet` equals `uid@7`). `local@<12
 * hex>` is an id whose uid is `local`; `local` alone is not an id.
 * Return: 0 or -EINVAL.
 */
int lkg_config_source_parse_id(const char *text, struct lkg_config_source *ret);

/**
 * lkg_refuse_because() - lkg_error_set() without the system's error text after the message.
 *
 * The refusal comes from a rule and not from the system, and some messages are reasons of the
 * dynamic-configuration proposal, which monitoring compares literally.
 * Return: @code.
 */
int lkg_refuse_because(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
        LKG_PRINTF(4, 5);

/** lkg_identifier_in() - lkg_identifier_ok() for a span. */
bool lkg_identifier_in(struct lkg_span text);

/**
 * lkg_configmap_key_ok() - may a ConfigMap have this key? `[-._a-zA-Z0-9]+`, at most 253, not `.`, `..`, nor
 * `..` first.
 */
bool lkg_configmap_key_ok(struct lkg_span text);

/** lkg_copy_span() - copy @text to @ret[LKG_IDENTIFIER_MAX + 1]; the caller has checked its length. */
void lkg_copy_span(struct lkg_span text, char *ret);
