/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <lkg/schema.h>

/**
 * lkg_schema_same_effect() - does the component make the same of two values of a field, and so has nothing to do after a change
 * from one to the other? A field that a document leaves out has the default of its row, and 60s is 1m.
 * @before, @after: NULL = left out
 * @has_base: see lkg_schema_changes()
 *
 * Only of fields with a single value. Defaults that depend on other fields are not known here: such a field differs.
 * Return: 0, 1; -ENOMEM.
 */
int lkg_schema_same_effect(const struct lkg_schema *schema, const char *pointer,
                           const struct lkg_value *before, const struct lkg_value *after, bool has_base);
