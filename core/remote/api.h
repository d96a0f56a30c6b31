/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources as API paths and as text for messages; the meaning of a reply; which state of an object it is. Pure. Source: Kubernetes API
 * concepts, "Resource URIs"; API conventions, "Response Status Kind" and "HTTP Status codes".
 */
#pragma once

#include <lkg/client.h>

/** lkg_resource_copy() - copy a resource with its texts. */
void lkg_resource_copy(const struct lkg_resource *resource, struct lkg_resource *ret);
void lkg_resource_deinit(struct lkg_resource *resource);

/* A verb as in RBAC, and how HTTP says it. */
struct lkg_api_verb {
        const char *name, *method;
        bool with_name; /* the path ends in the object's name, else it is that of the collection */
};
/** lkg_api_verb() - get, list, watch, create, update or patch; nothing else is asked for. */
const struct lkg_api_verb *lkg_api_verb(const char *name);

/**
 * lkg_api_path() - /api/v1/... or /apis/GROUP/VERSION/..., with the query.
 * Return: 0; -EINVAL: a name is empty, `.`, `..`, or has `/` or `%` (apimachinery, pkg/api/validation/path).
 */
int lkg_api_path(const struct lkg_request *request, struct lkg_buf *path, struct lkg_error *err);

/** lkg_api_describe() - "nodes/status n1", "configmaps kube-system/kubelet-config", "events default", "nodes". */
void lkg_api_describe(const struct lkg_resource *resource, char *buf, size_t size);

/* The request that the reply belongs to. */
struct lkg_api_question {
        const char *verb; /* the verb as in RBAC: get, watch, create, patch */
        const struct lkg_resource *resource;
        bool stream;                           /* of status 200: no object is expected */
        const struct lkg_admission *admission; /* asked before the reply is decoded; NULL = no check */
};

/**
 * lkg_api_judge() - fill in status, message and, on success, the object.
 * Return: the decoded reply, one reference; NULL unless status is LKG_API_OK and it is not a stream
 */
struct lkg_value *lkg_api_judge(const struct lkg_api_question *question,
                                const struct lkg_http_result *result, struct lkg_api_answer *ret);

/* One state of an object: uid and resourceVersion, checked before use (both become names of directories). */
struct lkg_object_id {
        char uid[LKG_IDENTIFIER_MAX + 1], version[LKG_IDENTIFIER_MAX + 1];
};

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
                            char ret[static LKG_IDENTIFIER_MAX + 1], struct lkg_error *err);

/**
 * lkg_object_says_gone() - does @object, the Status of an ERROR event, say that a version is too old to
 * resume from?
 */
bool lkg_object_says_gone(const struct lkg_value *object);
