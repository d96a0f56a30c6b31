/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources as API paths and as text for messages. Pure. Source: Kubernetes API concepts, "Resource URIs".
 */
#pragma once

#include <lkg/text.h>
#include <lkg/client.h>

/**
 * lkg_resource_copy() - copy a resource with its texts.
 * Return: 0 or -ENOMEM; then @ret is empty.
 */
int lkg_resource_copy(const struct lkg_resource *resource, struct lkg_resource *ret);
void lkg_resource_deinit(struct lkg_resource *resource);

/**
 * lkg_api_path() - /api/v1/... or /apis/GROUP/VERSION/..., of the object, or of the collection if @with_name
 * is false.
 * Return: 0; -EINVAL: empty, `.`, `..`, or with `/` or `%` (apimachinery, pkg/api/validation/path); -ENOMEM.
 */
int lkg_api_path(const struct lkg_resource *resource, bool with_name, struct lkg_buf *path,
                 struct lkg_error *err);

/**
 * lkg_api_watch_path() - the same with the query of a watch on one object. @version: as in
 * lkg_client_watch().
 */
int lkg_api_watch_path(const struct lkg_resource *resource, const char *version, unsigned seconds,
                       struct lkg_buf *path, struct lkg_error *err);

/** lkg_api_watch_list_path() - a watch on the objects of a collection that have a label, from @version on. */
int lkg_api_watch_list_path(const struct lkg_resource *resource, const char *label, const char *value,
                            const char *version, unsigned seconds, struct lkg_buf *path,
                            struct lkg_error *err);

/** lkg_api_select_path() - objects of a collection. */
int lkg_api_select_path(const struct lkg_resource *resource, const struct lkg_selection *selection,
                        struct lkg_buf *path, struct lkg_error *err);

/** lkg_api_describe() - "nodes/status n1", "configmaps kube-system/kubelet-config", "events default", "nodes". */
void lkg_api_describe(const struct lkg_resource *resource, char *buf, size_t size);
