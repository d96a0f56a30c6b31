/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ConfigMap object: from bytes to checked identity, payload and the text a checkpoint holds. Pure; never quotes a value
 * of `data`.
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/doc.h>

#include "reference.h"

/* Immutable; strings live inside the object. */
struct lkg_configmap {
        struct lkg_value *object; /* the whole object as decoded; one reference */
        const char *ns, *name, *uid, *version;
        char made_uid[13], made_version[13]; /* behind uid and version when the object has none (files) */
};

struct lkg_configmap_options {
        size_t max_bytes; /* remote.maxBytes */
        /* A file, not an API server's reply: YAML is allowed, and uid and resourceVersion are made up when missing: the
         * first 12 hex digits of SHA-256 of "namespace/name", and of the object's canonical JSON. */
        bool from_file;
};

/**
 * lkg_configmap_parse() - decode and check.
 * Return: 0; -EFBIG over max_bytes; -EINVAL (another kind, no namespace or name, an identifier that must not become a path);
 * -EBADMSG (cannot be decoded: line and column in @err); -ENOMEM.
 */
int lkg_configmap_parse(const char *text, size_t size, const struct lkg_configmap_options *options,
                        struct lkg_configmap *ret, struct lkg_error *err);
void lkg_configmap_deinit(struct lkg_configmap *configmap);

/**
 * lkg_configmap_resolve() - the source that @reference means in this object.
 *
 * A key that is missing, empty or in binaryData only is *not* an error here: sha256 is "" then and lkg_configmap_payload()
 * says why, because such an object is assigned and bad, not an invalid reference.
 *
 * Return: 0; -EINVAL when the object is another one than @reference names (namespace, name, uid: "invalid ObjectReference,
 * UID ... does not match UID of downloaded ConfigMap ...") or the id is too long.
 */
int lkg_configmap_resolve(const struct lkg_configmap *configmap, const struct lkg_reference *reference,
                          struct lkg_config_source *ret, struct lkg_error *err);

/**
 * lkg_configmap_payload() - the bytes under @key of `data`; valid as long as the object.
 * Return: 0; -ENOENT no such key (@err says which keys there are, at most 8), -ENODATA it is empty, -EINVAL it is in
 * binaryData.
 */
int lkg_configmap_payload(const struct lkg_configmap *configmap, const char *key, const char **ret_text,
                          size_t *ret_size, struct lkg_error *err);

/** lkg_configmap_annotation() - of the object, NULL = none. */
const char *lkg_configmap_annotation(const struct lkg_configmap *configmap, const char *name);

/** lkg_configmap_format() - the whole object as JSON, as a checkpoint keeps it (with the made-up uid and version). */
void lkg_configmap_format(const struct lkg_configmap *configmap, struct lkg_buf *buf);
