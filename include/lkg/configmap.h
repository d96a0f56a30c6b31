/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ConfigMap object: from bytes to a checked identity, the payload, and the text of a checkpoint. Pure;
 * never quotes a value of `data`.
 *
 * An object is refused as a whole, before any part of it is used in a path, if the API server would not have
 * accepted it either (another kind, names and keys that no ConfigMap can have, `data` that is not text).
 * That is an invalid reference and never a bad mark; a missing, empty or wrong payload is a bad mark
 * (docs/specification.md 4.2, 4.5).
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/doc.h>
#include <lkg/reference.h>

#define LKG_CONFIGMAP_DEPTH_MAX 64u /* nested collections; real ones have 10, in managedFields */

/* Immutable; may be moved. */
struct lkg_configmap {
        struct lkg_value
                *object; /* the whole object, one reference; with uid and version, even generated ones */
        const char *ns, *name, *uid, *version; /* inside the object */
};

struct lkg_configmap_options {
        size_t max_bytes; /* remote.maxBytes; LKG_DOC_BYTES_MAX for checkpoints */
        /*
         * A file, not an API server's reply: YAML is allowed; uid and resourceVersion are generated if
         * missing: the first 12 hex digits of SHA-256 of `namespace/name`, and of the bytes of the file
         * (`sha256sum FILE`); and a file that is empty or contains the word `local` means the local
         * configuration.
         */
        bool from_file;
        const char *file; /* for messages: path of the file or of the API; NULL = "ConfigMap" */
};

/**
 * lkg_configmap_parse() - decode and check.
 * @ret: lkg_configmap_deinit(); written only on success
 *
 * Return: 0; -ENODATA: a file that means the local configuration; -EFBIG: over max_bytes, or too big when
 * written as a checkpoint; -EINVAL (another kind, no namespace or name, an identifier that must not become a
 * path); -EBADMSG (cannot be decoded: line and column in @err); -ENOMEM.
 */
int lkg_configmap_parse(const char *text, size_t size, const struct lkg_configmap_options *options,
                        struct lkg_configmap *ret, struct lkg_error *err);
/**
 * lkg_configmap_from_value() - the same checks for an object that has been decoded: a reply of the API
 * server.
 * @object: shared, never changed
 *
 * The receiver of the bytes has limited their number.
 * Return: 0; -EFBIG, -EINVAL and -ENOMEM as above.
 */
int lkg_configmap_from_value(const struct lkg_value *object, struct lkg_configmap *ret,
                             struct lkg_error *err);
void lkg_configmap_deinit(struct lkg_configmap *configmap);

/**
 * lkg_configmap_resolve() - the source that @reference refers to in this object.
 *
 * A key that is missing, empty or only in binaryData is *not* an error here: sha256 is "" then and
 * lkg_configmap_payload() has the reason, because such an object is assigned and bad, not an invalid
 * reference.
 *
 * Return: 0; -EINVAL: the object is not the one that @reference names (namespace, name, uid: "invalid
 * ObjectReference, UID ... does not match UID of downloaded ConfigMap ...") or the id is too long; -ENOMEM.
 */
int lkg_configmap_resolve(const struct lkg_configmap *configmap, const struct lkg_reference *reference,
                          struct lkg_config_source *ret, struct lkg_error *err);

/**
 * lkg_configmap_payload() - the bytes under @key of `data`; valid as long as the object.
 * Return: 0; -ENOENT: no such key (@err lists at most 8 existing keys); -ENODATA: it is empty; -EINVAL: it
 * is in binaryData.
 */
int lkg_configmap_payload(const struct lkg_configmap *configmap, const char *key, const char **ret_text,
                          size_t *ret_size, struct lkg_error *err);

/** lkg_configmap_annotation() - an annotation of the object, NULL = none. */
const char *lkg_configmap_annotation(const struct lkg_configmap *configmap, const char *name);

/**
 * lkg_configmap_format() - the whole object as JSON, as stored in a checkpoint: at most LKG_DOC_BYTES_MAX,
 * and lkg_configmap_parse() reads the same object from it.
 */
void lkg_configmap_format(const struct lkg_configmap *configmap, struct lkg_buf *buf);
