/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LkgfsConfiguration as JSON Schema, from the rows of config-fields.c. Unlike the kinds of components it has no unknown
 * settings. The header is not required, because drop-ins need none.
 */
#include <lkg/schema.h>

#include "config-fields.h"

static void put_table(struct lkg_json *json, const struct lkg_config_field *table);

static void put_words(struct lkg_json *json, const char *const *words, bool null)
{
        lkg_json_list(json, "enum", LKG_JSON_ROW);
        for (; *words; words++)
                lkg_json_text(json, NULL, *words);
        if (null)
                lkg_json_null(json, NULL);
        lkg_json_end(json);
}

static void put_items(struct lkg_json *json, const struct lkg_config_field *field)
{
        lkg_json_map(json, "items", LKG_JSON_AROUND);
        lkg_json_text(json, "type", "string");
        if (field->type == F_WORDS)
                put_words(json, field->words, /* null= */ false);
        lkg_json_end(json);
}

static void put_limits(struct lkg_json *json, const struct lkg_config_field *field)
{
        char min[LKG_RELEASE_TEXT_MAX], max[LKG_RELEASE_TEXT_MAX];

        if (field->type == F_NUMBER) {
                lkg_json_u64(json, "minimum", field->min);
                lkg_json_u64(json, "maximum", field->max);
        } else if (field->type == F_RELEASE) {
                (void)lkg_release_text((unsigned)field->min, min);
                (void)lkg_release_text((unsigned)field->max, max);
                lkg_json_rendered(json, "minimum", min, strlen(min));
                lkg_json_rendered(json, "maximum", max, strlen(max));
        } else {
                lkg_json_u64(json, "minimum", 0);
        }
}

static void put_components(struct lkg_json *json)
{
        lkg_json_schema_type(json, "array", NULL);
        lkg_json_map(json, "items", LKG_JSON_AROUND);
        lkg_json_text(json, "type", "object");
        put_table(json, lkg_component_fields);
        lkg_json_list(json, "required", LKG_JSON_ROW);
        lkg_json_text(json, NULL, "name");
        lkg_json_end(json);
        lkg_json_end(json);
}

static void put_type(struct lkg_json *json, const struct lkg_config_field *field)
{
        const struct lkg_config_type *type = &lkg_config_types[field->type];

        if (field->type == F_SKIP) { /* the header is written by the caller */
                put_components(json);
                return;
        }
        if (field->type == F_DURATION) {
                lkg_json_schema_duration(json, /* sign= */ false);
                return;
        }
        lkg_json_schema_type(json, type->json, type->json_or);
        if (type->pattern)
                lkg_json_text(json, "pattern", type->pattern);
        if (type->given & 1u << LKG_NUMBER)
                put_limits(json, field);
        if (field->type == F_WORD)
                put_words(json, field->words, /* null= */ true);
        if (type->list)
                put_items(json, field);
        if (field->type == F_OBJECT)
                put_table(json, field->sub);
}

static void put_default_list(struct lkg_json *json, const char *items)
{
        lkg_json_list(json, "default", LKG_JSON_ROW);
        while (*items) {
                size_t size = strcspn(items, ",");

                lkg_json_text_n(json, NULL, items, size);
                items += size + (items[size] == ',');
        }
        lkg_json_end(json);
}

/* In a default of a component, `%` stands for its name: that is no value, so it is only in the description. */
static void put_default(struct lkg_json *json, const struct lkg_config_field *field)
{
        if (field->fallback && strchr(field->fallback, '%'))
                return;
        if (lkg_config_types[field->type].list)
                put_default_list(json, field->fallback ? field->fallback : "");
        else if (!field->fallback)
                return;
        else if (field->type == F_BOOL || field->type == F_NUMBER)
                lkg_json_rendered(json, "default", field->fallback, strlen(field->fallback));
        else
                lkg_json_text(json, "default", field->fallback);
}

static void put_description(struct lkg_json *json, const struct lkg_config_field *field)
{
        const char *percent = field->fallback ? strchr(field->fallback, '%') : NULL;
        char text[512];

        if (!percent) {
                lkg_json_text(json, "description", field->doc);
                return;
        }
        (void)snprintf(text, sizeof(text), "%s\nDefault: %.*sNAME%s", field->doc,
                       (int)(percent - field->fallback), field->fallback, percent + 1);
        lkg_json_text(json, "description", text);
}

static void put_table(struct lkg_json *json, const struct lkg_config_field *table)
{
        lkg_json_map(json, "properties", LKG_JSON_AROUND);
        for (const struct lkg_config_field *field = table; field->name; field++) {
                if (field->type == F_SKIP && strcmp(field->name, "components") != 0) {
                        lkg_json_schema_const(json, field->name,
                                              strcmp(field->name, "kind") == 0 ? LKG_CONFIG_KIND
                                                                               : LKG_CONFIG_API_VERSION,
                                              field->doc);
                        continue;
                }
                lkg_json_map(json, field->name, LKG_JSON_AROUND);
                put_description(json, field);
                put_default(json, field);
                put_type(json, field);
                lkg_json_end(json);
        }
        lkg_json_end(json);
        lkg_json_bool(json, "additionalProperties", false);
}

void lkg_config_json(struct lkg_json *json)
{
        lkg_json_schema_head(json, LKG_CONFIG_KIND, LKG_CONFIG_API_VERSION, /* release= */ NULL);
        put_table(json, lkg_config_fields);
        lkg_json_end(json);
}
