/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables -> JSON Schema: types, defaults, deprecations and descriptions from the rows of the fields; limits and words from the
 * rules that are rows, provided that they hold for every document, whatever its other fields and feature gates say.
 */
#include <inttypes.h>

#include <lkg/schema.h>
#include <lkg/documents.h>

#include "rules.h"
#include "tree.h"

#define DRAFT    "http://json-schema.org/draft-07/schema#"

#define NUMBER   "([0-9]+[.]?[0-9]*|[.][0-9]+)"
#define TIMES    "(0|(" NUMBER "(ns|us|\xc2\xb5s|\xce\xbcs|ms|s|m|h))+)$"
#define DURATION "^[-+]?" TIMES
/* What sigs.k8s.io/yaml and resource.Quantity take, a number without digits, too; blanks around it are cut off. */
#define QUANTITY "^\\s*[-+]?[0-9]*[.]?[0-9]*([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?\\s*$"

/* ---- parts ---- */

void lkg_json_schema_head(struct lkg_json *json, const char *kind, const char *api_version,
                          const char *release)
{
        char title[256];

        (void)snprintf(title, sizeof(title), "%s %s%s%s", kind, api_version, release ? ", Kubernetes " : "",
                       release ? release : "");
        lkg_json_map(json, NULL, LKG_JSON_PRETTY);
        lkg_json_text(json, "$schema", DRAFT);
        lkg_json_text(json, "title", title);
        lkg_json_text(json, "type", "object");
}

void lkg_json_schema_const(struct lkg_json *json, const char *name, const char *text, const char *doc)
{
        lkg_json_map(json, name, LKG_JSON_AROUND);
        lkg_json_text(json, "description", doc);
        lkg_json_text(json, "const", text);
        lkg_json_end(json);
}

void lkg_json_schema_type(struct lkg_json *json, const char *type, const char * or)
{
        lkg_json_list(json, "type", LKG_JSON_ROW);
        lkg_json_text(json, NULL, type);
        if (or)
                lkg_json_text(json, NULL, or);
        lkg_json_text(json, NULL, "null");
        lkg_json_end(json);
}

void lkg_json_schema_duration(struct lkg_json *json, bool sign)
{
        lkg_json_schema_type(json, "string", NULL);
        lkg_json_text(json, "pattern", sign ? DURATION : "^" TIMES);
}

/* ---- rules ---- */

/*
 * What the rows of one path say together. Zero, nothing and null are replaced by the default before the rules apply, unless the
 * field tells unset from zero.
 */
struct limits {
        int64_t min, max;
        const char *words; /* NULL = any */
        bool has_min, has_max;
};

static bool in_release(const struct lkg_value_rule *row, unsigned release)
{
        return row->since <= release && (!row->until || row->until >= release);
}

/* Is the field required to be empty while the gate of @row is off? Then its words hold in any case. */
static bool is_unset_without_gate(const struct lkg_value_rule *rows, size_t n_rows,
                                  const struct lkg_value_rule *row, unsigned release)
{
        for (size_t i = 0; i < n_rows; i++)
                if (rows[i].kind == LKG_RULE_UNSET && rows[i].flags & LKG_RULE_GATE_OFF && rows[i].gate &&
                    in_release(&rows[i], release) && strcmp(rows[i].path, row->path) == 0 &&
                    strcmp(rows[i].gate, row->gate) == 0)
                        return true;
        return false;
}

static void limit_by_rows(struct limits *limits, const struct lkg_schema_node *node, unsigned release,
                          const struct lkg_value_rule *rows, size_t n_rows)
{
        for (size_t i = 0; i < n_rows; i++) {
                const struct lkg_value_rule *row = &rows[i];

                if (strcmp(row->path, node->field->path) != 0 || !in_release(row, release) || row->when ||
                    row->flags & (LKG_RULE_LATER | LKG_RULE_GATE_OFF))
                        continue;
                if (row->kind == LKG_RULE_WORD &&
                    (!row->gate || is_unset_without_gate(rows, n_rows, row, release)))
                        limits->words = row->words;
                if (row->kind != LKG_RULE_NUMBER || row->gate)
                        continue;
                if (row->min > limits->min)
                        limits->min = row->min;
                if (row->max < limits->max)
                        limits->max = row->max;
        }
}

/* An item has the row of its list, whose rules are not about the item. */
static struct limits limits_of(const struct lkg_schema_node *node, const struct lkg_schema *schema)
{
        unsigned release = lkg_schema_release(schema);
        struct limits limits = { .min = INT64_MIN, .max = INT64_MAX };

        if (node->class == LKG_CLASS_INT) {
                limits.min = node->min;
                limits.max = node->max;
        }
        if (*node->name && lkg_schema_is_kubelet(schema))
                limit_by_rows(&limits, node, release, lkg_kubelet_rules, lkg_n_kubelet_rules);
        else if (*node->name)
                limit_by_rows(&limits, node, release, lkg_kubeproxy_rules, lkg_n_kubeproxy_rules);
        if (*node->name)
                limit_by_rows(&limits, node, release, lkg_logging_rules, lkg_n_logging_rules);
        if (!node->pointer && limits.min > 0)
                limits.min = 0;
        limits.has_min = limits.min != INT64_MIN;
        limits.has_max = limits.max != INT64_MAX;
        return limits;
}

/* ---- nodes ---- */

static void put_type(struct lkg_json *json, const struct lkg_schema_node *node,
                     const struct lkg_schema *schema);
static void put_node(struct lkg_json *json, const char *name, const struct lkg_schema_node *node,
                     const struct lkg_schema *schema);

static void put_words(struct lkg_json *json, const char *words)
{
        lkg_json_list(json, "enum", LKG_JSON_ROW);
        while (*words) {
                size_t size = strcspn(words, ",");

                lkg_json_text_n(json, NULL, words, size);
                words += size;
                words += strspn(words, ", ");
        }
        lkg_json_text(json, NULL, ""); /* the default */
        lkg_json_null(json, NULL);
        lkg_json_end(json);
}

/* In a map of a patch: $patch, $retainKeys and such. */
static void put_directives(struct lkg_json *json)
{
        lkg_json_map(json, "patternProperties", LKG_JSON_AROUND);
        lkg_json_map(json, "^[$]", LKG_JSON_AROUND);
        lkg_json_end(json);
        lkg_json_end(json);
}

static void put_struct(struct lkg_json *json, const struct lkg_schema_node *node,
                       const struct lkg_schema *schema)
{
        lkg_json_map(json, "properties", LKG_JSON_AROUND);
        for (size_t i = 0; i < node->n_members; i++) {
                const char *name = node->members[i]->name;

                if (*node->field->path == '\0' && strcmp(name, "kind") == 0)
                        lkg_json_schema_const(json, name, lkg_schema_kind(schema),
                                              node->members[i]->field->doc);
                else if (*node->field->path == '\0' && strcmp(name, "apiVersion") == 0)
                        lkg_json_schema_const(json, name, lkg_schema_api_version(schema),
                                              node->members[i]->field->doc);
                else
                        put_node(json, name, node->members[i], schema);
        }
        lkg_json_end(json);
}

/* ---- feature gates ---- */

static void put_gate(struct lkg_json *json, const char *name, const struct lkg_gate_state *gate)
{
        char text[128];

        (void)snprintf(text, sizeof(text), "%s, %s by default%s", lkg_gate_stage_name(gate->stage),
                       gate->def ? "on" : "off", gate->locked ? ", locked" : "");
        lkg_json_map(json, name, LKG_JSON_AROUND);
        lkg_json_text(json, "description", text);
        lkg_json_schema_type(json, "boolean", NULL);
        lkg_json_bool(json, "default", gate->def);
        if (gate->locked) {
                lkg_json_list(json, "enum", LKG_JSON_ROW);
                lkg_json_bool(json, NULL, gate->def);
                lkg_json_null(json, NULL);
                lkg_json_end(json);
        }
        if (gate->stage == LKG_GATE_DEPRECATED)
                lkg_json_bool(json, "deprecated", true);
        lkg_json_end(json);
}

/* A name that the release does not know may only be removed, by a patch. */
static void put_gates(struct lkg_json *json, unsigned release)
{
        char message[128];

        (void)snprintf(message, sizeof(message), "Kubernetes %s does not know this feature gate",
                       LKG_RELEASE_TEXT(release));
        lkg_json_map(json, "properties", LKG_JSON_AROUND);
        for (size_t i = 0; i < lkg_n_gates; i++) {
                const struct lkg_gate_state *gate = lkg_gate_in(&lkg_gates[i], release);

                if (gate && gate->stage != LKG_GATE_REMOVED)
                        put_gate(json, lkg_gates[i].name, gate);
        }
        for (size_t i = 0; i < lkg_n_map_keys; i++) {
                if (strcmp(lkg_map_keys[i].fields[0], "featureGates") != 0)
                        continue;
                lkg_json_map(json, lkg_map_keys[i].key, LKG_JSON_AROUND);
                lkg_json_text(json, "description", lkg_map_keys[i].doc);
                lkg_json_schema_type(json, "boolean", NULL);
                lkg_json_end(json);
        }
        lkg_json_end(json);
        put_directives(json);
        lkg_json_map(json, "additionalProperties", LKG_JSON_AROUND);
        lkg_json_text(json, "type", "null");
        lkg_json_text(json, "errorMessage", message);
        lkg_json_end(json);
}

static void put_map(struct lkg_json *json, const struct lkg_schema_node *node,
                    const struct lkg_schema *schema)
{
        if (strcmp(node->field->path, "featureGates") == 0) {
                put_gates(json, lkg_schema_release(schema));
                return;
        }
        lkg_json_map(json, "properties", LKG_JSON_AROUND);
        for (size_t i = 0; i < lkg_n_map_keys; i++) {
                const struct lkg_map_key *key = &lkg_map_keys[i];

                if (lkg_map_key_find(node->field->path, key->key) != key)
                        continue;
                lkg_json_map(json, key->key, LKG_JSON_AROUND);
                lkg_json_text(json, "description", key->doc);
                put_type(json, node->item, schema);
                lkg_json_end(json);
        }
        lkg_json_end(json);
        put_directives(json);
        put_node(json, "additionalProperties", node->item, schema);
}

/* ---- words ---- */

/* Purpose, rule, unit, flag and gate in one text, as `lkgfs explain` has them in lines. */
static void put_description(struct lkg_json *json, const struct lkg_field *field)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        const struct {
                const char *label, *text;
        } parts[] = { { "Allowed: ", field->rule },
                      { "Unit: ", field->unit },
                      { "Feature gate: ", field->gate },
                      { "Flag: --", field->flag } };

        lkg_buf_puts(&buf, field->doc);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(parts); i++)
                if (parts[i].text)
                        lkg_buf_printf(&buf, "\n%s%s", parts[i].label, parts[i].text);
        lkg_json_text(json, "description", lkg_buf_text(&buf));
}

static void put_default(struct lkg_json *json, const struct lkg_value *def)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_render_json_compact(def, &buf);
        lkg_json_rendered(json, "default", lkg_buf_text(&buf), buf.size);
}

static void put_annotations(struct lkg_json *json, const struct lkg_schema_node *node)
{
        put_description(json, node->field);
        if (node->def && !(node->field->flags & LKG_FIELD_SECRET))
                put_default(json, node->def);
        if (!node->field->deprecated)
                return;
        lkg_json_bool(json, "deprecated", true);
        lkg_json_text(json, "deprecationMessage", node->field->deprecated); /* what editors show */
}

static void put_type(struct lkg_json *json, const struct lkg_schema_node *node,
                     const struct lkg_schema *schema)
{
        struct limits limits = limits_of(node, schema);

        lkg_json_schema_type(json, lkg_classes[node->class].json[0], lkg_classes[node->class].json[1]);
        switch (node->class) {
        case LKG_CLASS_STRING:
                if (limits.words)
                        put_words(json, limits.words);
                break;
        case LKG_CLASS_INT:
                if (limits.has_min)
                        lkg_json_i64(json, "minimum", limits.min);
                if (limits.has_max)
                        lkg_json_i64(json, "maximum", limits.max);
                break;
        case LKG_CLASS_DURATION:
                lkg_json_text(json, "pattern", DURATION);
                break;
        case LKG_CLASS_QUANTITY:
                lkg_json_text(json, "pattern", QUANTITY);
                break;
        case LKG_CLASS_STRUCT:
                put_struct(json, node, schema);
                break;
        case LKG_CLASS_LIST:
                put_node(json, "items", node->item, schema);
                break;
        case LKG_CLASS_MAP:
                put_map(json, node, schema);
                break;
        case LKG_CLASS_BOOL:
        case LKG_CLASS_FLOAT:
        case LKG_CLASS_FLUSH:
        case LKG_CLASS_TIME:
        case LKG_CLASS_INTSTR:
        case LKG_CLASS_ANY:
                break;
        }
}

/* Items have the row of their container, whose description need not be repeated. */
static void put_node(struct lkg_json *json, const char *name, const struct lkg_schema_node *node,
                     const struct lkg_schema *schema)
{
        lkg_json_map(json, name, LKG_JSON_AROUND);
        if (*node->name)
                put_annotations(json, node);
        put_type(json, node, schema);
        lkg_json_end(json);
}

void lkg_schema_json(const struct lkg_schema *schema, struct lkg_json *json)
{
        char release[LKG_RELEASE_TEXT_MAX];

        lkg_json_schema_head(json, lkg_schema_kind(schema), lkg_schema_api_version(schema),
                             lkg_release_text(lkg_schema_release(schema), release));
        put_struct(json, lkg_schema_root(schema), schema);
        lkg_json_end(json);
}
