/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets a reply of the API server. Pure. Source: Kubernetes API conventions, "Response Status Kind" and
 * "HTTP Status codes".
 */
#pragma once

#include <lkg/client.h>

/* The request that the reply belongs to. */
struct lkg_api_question {
        const char *verb; /* the verb as in RBAC: get, watch, create, patch */
        const struct lkg_resource *resource;
        bool stream;                           /* of status 200: no object is expected */
        const struct lkg_admission *admission; /* asked before the reply is decoded; NULL = no check */
};

/**
 * lkg_api_judge() - return status and message, and on success the object.
 * @ret:        object stays NULL unless @ret_object is set
 * @ret_object: the decoded reply, caller owns one reference; NULL unless status is LKG_API_OK and it is not
 * a stream
 *
 * Return: 0; -ENOMEM: nothing is known.
 */
int lkg_api_judge(const struct lkg_api_question *question, const struct lkg_http_result *result,
                  struct lkg_api_answer *ret, struct lkg_value **ret_object);
