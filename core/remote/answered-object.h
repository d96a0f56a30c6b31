/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies one state of an API object: uid and resourceVersion, checked before use (both become names of directories), and
 * compares versions. Pure.
 */
#pragma once

#include <lkg/client.h>

#define LKG_OBJECT_ID_MAX 253u

struct lkg_object_id {
        char uid[LKG_OBJECT_ID_MAX + 1], version[LKG_OBJECT_ID_MAX + 1];
};

enum lkg_version_order { LKG_VERSION_OLDER, LKG_VERSION_SAME, LKG_VERSION_NEWER, LKG_VERSION_OTHER };

/**
 * lkg_version_compare() - is @a older than, the same as or newer than @b, or just different?
 *
 * Decimal versions of any length are compared as numbers (they count the changes of the whole store, so they
 * are comparable between objects, too); other versions only for equality.
 */
enum lkg_version_order lkg_version_compare(const char *a, const char *b);

/**
 * lkg_object_read() - is @object the one that @resource names, and which state of it?
 * @what: the beginning of a message: "the watch sent"
 *
 * metadata.name is always compared; kind, apiVersion and metadata.namespace only if @object has them. uid
 * and resourceVersion must match `[A-Za-z0-9._-]{1,253}` and not be `.` or `..`.
 *
 * Return: 0; -EINVAL.
 */
int lkg_object_read(const struct lkg_value *object, const struct lkg_resource *resource, const char *what,
                    struct lkg_object_id *ret, struct lkg_error *err);

/**
 * lkg_object_read_version() - read only the resourceVersion, for a bookmark.
 * Return: 0; -EINVAL.
 */
int lkg_object_read_version(const struct lkg_value *object, const char *what,
                            char ret[static LKG_OBJECT_ID_MAX + 1], struct lkg_error *err);

/**
 * lkg_object_says_gone() - does @object, the Status of an ERROR event, say that a version is too old to
 * resume from?
 */
bool lkg_object_says_gone(const struct lkg_value *object);
