/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reference, set by an administrator or for a fleet: a ConfigMap by namespace and name, or the local
 * configuration. Pure: text or value in, reference or reason out. Rules: docs/specification.md 4.2, from the
 * proposal that docs/dynamic-configuration.md names, and from NodeConfigSource of Kubernetes 1.8 to 1.10
 * (`configMapRef`: an ObjectReference) and 1.11 to 1.25 (`configMap`).
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/source.h>

enum lkg_reference_type { LKG_REFERENCE_LOCAL, LKG_REFERENCE_CONFIGMAP };

/* Each array is zero after its text, so memcmp() compares two references. */
struct lkg_reference {
        enum lkg_reference_type type;
        char ns[LKG_IDENTIFIER_MAX + 1], name[LKG_IDENTIFIER_MAX + 1];
        char key[LKG_IDENTIFIER_MAX + 1]; /* never empty: LKG_KEY_DEFAULT unless given */
        char uid[LKG_IDENTIFIER_MAX + 1]; /* required uid of the object; "" = any */
};

/**
 * lkg_reference_from_node_source() - parse a NodeConfigSource in either form.
 * @source: a map; NULL or null = the local configuration
 *
 * `configMap`: namespace and name, optionally kubeletConfigKey (absent = `kubelet`) and uid; a
 * resourceVersion is ignored, because a reference floats (it may have been copied from status.config).
 * `configMapRef`: namespace, name and uid, all of them; kind and apiVersion are ConfigMap and v1 or absent.
 * An unknown field is refused: its author meant a key or an object, and it would be ignored. A null or an
 * empty text counts as an absent field.
 *
 * Return: 0; -EINVAL: @err->message is the proposal's reason ("invalid NodeConfigSource, exactly one
 * subfield must be non-nil, but all were nil"), followed by details that the proposal does not have.
 */
int lkg_reference_from_node_source(const struct lkg_value *source, struct lkg_reference *ret,
                                   struct lkg_error *err);

/**
 * lkg_reference_from_text() - parse the value of the annotation lkgfs.io/config-source: a NodeConfigSource
 * as JSON, `namespace/name[/key]`, or `local`; surrounding white space is ignored. Empty text is -EINVAL
 * (the caller handles an absent annotation), and so is the text `null`: only the word `local` resets.
 *
 * Return: 0; -EINVAL as above, quoting at most LKG_QUOTE_MAX bytes; -ENOMEM.
 */
int lkg_reference_from_text(const char *text, size_t size, struct lkg_reference *ret, struct lkg_error *err);

/** lkg_reference_from_parts() - from our own configuration (`remote.static`); key and uid may be "". */
int lkg_reference_from_parts(const char *ns, const char *name, const char *key, const char *uid,
                             struct lkg_reference *ret, struct lkg_error *err);

/**
 * lkg_reference_allowed() - does a pattern of remote.allowedSources (`namespace/name`; either may be `*`, or
 * end with one) allow @ns/@name?
 */
bool lkg_reference_allowed(const char *const *patterns, size_t n_patterns, const char *ns, const char *name);
