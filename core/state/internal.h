/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of core/state only. */
#pragma once

#include <lkg/error.h>
#include <lkg/span.h>

/**
 * lkg_refuse_because() - lkg_error_set() without the system's error text after the message.
 *
 * The refusal comes from a rule and not from the system, and some messages are reasons of the
 * dynamic-configuration proposal, which monitors compare literally. Return: @code.
 */
int lkg_refuse_because(struct lkg_error *err, int code, const struct lkg_where *where, const char *fmt, ...)
        LKG_PRINTF(4, 5);

/** lkg_identifier_in() - lkg_identifier_ok() for a piece of text. */
bool lkg_identifier_in(struct lkg_span text);

/**
 * lkg_configmap_key_ok() - may a ConfigMap have this key? `[-._a-zA-Z0-9]+`, at most 253, not `.`, `..`, nor
 * `..` first.
 */
bool lkg_configmap_key_ok(struct lkg_span text);

/** lkg_copy_span() - copy @text into @ret[LKG_IDENTIFIER_MAX + 1]; its length was checked before. */
void lkg_copy_span(struct lkg_span text, char *ret);
