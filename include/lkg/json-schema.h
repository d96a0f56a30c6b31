/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds as JSON Schema, for editors and CI: `lkgfs schema`. Draft-07, because it is the latest draft that yaml-language-server,
 * editors and Debian's validators all know; `deprecated`, which came later, is only an annotation, and others ignore it.
 *
 * A schema accepts every document that the component accepts, and so allows what is legal although it looks odd: null (in a
 * patch it removes a field), zero for "the default", unknown fields. It says nothing about rules between fields.
 *
 * Failures are recorded in the struct lkg_json.
 */
#pragma once

#include <lkg/json-out.h>
#include <lkg/schema.h>

/** lkg_schema_json() - the fields of @schema. A whole document. */
void lkg_schema_json(const struct lkg_schema *schema, struct lkg_json *json);

/* ---- parts, for other kinds; each adds members to the map that was begun last ---- */

/** lkg_json_schema_head() - begin the document of @kind: `$schema`, title, description, type. */
void lkg_json_schema_head(struct lkg_json *json, const char *kind, const char *api_version,
                          const char *release);
/** lkg_json_schema_const() - a member @name that has only the value @text. */
void lkg_json_schema_const(struct lkg_json *json, const char *name, const char *text, const char *doc);
/** lkg_json_schema_type() - `"type": [@type, @or, "null"]`; @or may be NULL. */
void lkg_json_schema_type(struct lkg_json *json, const char *type, const char * or);
/** lkg_json_schema_duration() - a string that Go's time.ParseDuration() may take. @sign: also a negative one. */
void lkg_json_schema_duration(struct lkg_json *json, bool sign);
