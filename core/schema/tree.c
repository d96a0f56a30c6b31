/* SPDX-License-Identifier: Apache-2.0 */
/* Rows -> trees. Only this file parses the Go type of a row. */
#include "tree.h"

#include <assert.h>
#include <limits.h>

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/schema.h>
#include <lkg/tree.h>

struct lkg_schema {
        const struct lkg_kind *kind;
        unsigned release;
        struct lkg_schema_node *root;
        struct lkg_schema *next;
};

/* A default that code computes: made once, identified by the address of its text. */
struct constant {
        const char *json;
        struct lkg_value *value;
};

static struct constant *constants;
static size_t n_constants;

static struct lkg_schema *schemas;

/* ---- Go types ---- */

struct scalar {
        const char *name;
        enum lkg_class class;
        int64_t min, max;
};

static const struct scalar scalars[] = {
        { "bool", LKG_CLASS_BOOL, 0, 0 },
        { "string", LKG_CLASS_STRING, 0, 0 },
        { "int32", LKG_CLASS_INT, INT32_MIN, INT32_MAX },
        { "int64", LKG_CLASS_INT, INT64_MIN, INT64_MAX },
        { "uint32", LKG_CLASS_INT, 0, UINT32_MAX },
        { "float32", LKG_CLASS_FLOAT, 0, 0 },
        { "float64", LKG_CLASS_FLOAT, 0, 0 },
        { "duration", LKG_CLASS_DURATION, 0, 0 },
        { "flush", LKG_CLASS_FLUSH, 0, 0 },
        { "quantity", LKG_CLASS_QUANTITY, 0, 0 },
        { "time", LKG_CLASS_TIME, 0, 0 },
        { "intstr", LKG_CLASS_INTSTR, INT32_MIN, INT32_MAX },
        { "any", LKG_CLASS_ANY, 0, 0 },
        { "struct", LKG_CLASS_STRUCT, 0, 0 },
};

#define TAKES(type) (1u << LKG_##type)

const struct lkg_class_row lkg_classes[] = {
        [LKG_CLASS_BOOL] = { "true or false", TAKES(BOOL), NULL, { "boolean" } },
        [LKG_CLASS_STRING] = { "a string", TAKES(STRING), "", { "string" } },
        [LKG_CLASS_INT] = { "an integer", TAKES(NUMBER), "0", { "integer" } },
        [LKG_CLASS_FLOAT] = { "a number", TAKES(NUMBER), "0", { "number" } },
        [LKG_CLASS_DURATION] = { "a duration such as \"1m30s\"", TAKES(STRING), "0s", { "string" } },
        [LKG_CLASS_FLUSH] = { "a duration such as \"5s\" (or an integer of nanoseconds)",
                              TAKES(STRING) | TAKES(NUMBER),
                              "0",
                              { "string", "integer" } },
        [LKG_CLASS_QUANTITY] = { "a quantity such as \"512Mi\"",
                                 TAKES(STRING) | TAKES(NUMBER),
                                 "0",
                                 { "string", "number" } },
        [LKG_CLASS_TIME] = { "a time such as \"2026-01-31T12:00:00Z\"", TAKES(STRING), NULL, { "string" } },
        [LKG_CLASS_INTSTR] = { "an integer or a string",
                               TAKES(STRING) | TAKES(NUMBER),
                               "0",
                               { "string", "integer" } },
        [LKG_CLASS_ANY] = { "anything", UINT_MAX, NULL, { NULL } },
        [LKG_CLASS_STRUCT] = { "a map of fields", TAKES(MAP), NULL, { "object" } },
        [LKG_CLASS_LIST] = { "a list", TAKES(LIST), NULL, { "array" } },
        [LKG_CLASS_MAP] = { "a map", TAKES(MAP), NULL, { "object" } },
};

void lkg_node_free(struct lkg_schema_node *node)
{
        if (!node)
                return;
        for (size_t i = 0; i < node->n_members; i++)
                lkg_node_free(node->members[i]);
        free(node->members);
        lkg_node_free(node->item);
        lkg_value_unref(node->def);
        free(node);
}

static bool starts(const char **text, const char *with)
{
        size_t n = strlen(with);

        if (strncmp(*text, with, n) != 0)
                return false;
        *text += n;
        return true;
}

static uint16_t last_number;

/* A row with an impossible type is a bug; test-tables finds it. */
struct lkg_schema_node *lkg_node_new(const struct lkg_field *field, const char *name, const char *type)
{
        struct lkg_schema_node *node = lkg_must(calloc(1, sizeof(*node)));

        node->field = field;
        node->name = name;
        node->name_size = strlen(name);
        node->pointer = starts(&type, "*");
        node->go = type;
        node->class = LKG_CLASS_STRUCT;
        if (starts(&type, "[]") || starts(&type, "map[string]")) {
                node->class = node->go[0] == '[' ? LKG_CLASS_LIST : LKG_CLASS_MAP;
                node->item = lkg_node_new(field, "", type);
                if (node->class == LKG_CLASS_LIST && last_number < LKG_NODE_NUMBER_MAX)
                        node->number = ++last_number;
                return node;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(scalars); i++) {
                if (strcmp(type, scalars[i].name) != 0)
                        continue;
                node->class = scalars[i].class;
                node->min = scalars[i].min;
                node->max = scalars[i].max;
                node->single = strcmp(type, "float32") == 0;
        }
        return node;
}

/* ---- building ---- */

/* Compare a key with a member's name in byte order. */
static int compare(const char *key, size_t size, const struct lkg_schema_node *member)
{
        int r = (unsigned char)*key - (unsigned char)*member->name; /* of most */

        if (r == 0)
                r = memcmp(key, member->name, size < member->name_size ? size : member->name_size);

        return r ? r : (size > member->name_size) - (size < member->name_size);
}

const struct lkg_schema_node *lkg_node_member(const struct lkg_schema_node *node, const char *name,
                                              size_t size)
{
        size_t low = 0, high = node->n_members;

        while (low < high) {
                size_t middle = (low + high) / 2;
                int c = compare(name, size, node->members[middle]);

                if (c == 0)
                        return node->members[middle];
                if (c > 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

const char *lkg_node_nearest(const struct lkg_schema_node *node, const char *name)
{
        struct lkg_nearest nearest;

        lkg_nearest_init(&nearest, name);
        for (size_t i = 0; i < node->n_members; i++)
                lkg_nearest_offer(&nearest, node->members[i]->name);
        return lkg_nearest_best(&nearest);
}

void lkg_node_add(struct lkg_schema_node *node, struct lkg_schema_node *member)
{
        struct lkg_schema_node **members;
        size_t i = node->n_members;

        lkg_need(LKG_GROW(node->members, node->n_members));
        members = node->members;
        for (; i > 0 && strcmp(members[i - 1]->name, member->name) > 0; i--)
                members[i] = members[i - 1];
        members[i] = member;
        node->n_members++;
}

/* Return the struct that contains the last part of a path, the name of a member. */
static struct lkg_schema_node *holder(struct lkg_schema_node *root, const char *path, const char **ret_name)
{
        const char *dot = strrchr(path, '.');
        char above[256];

        (void)snprintf(above, sizeof(above), "%.*s", dot ? (int)(dot - path) : 0, path);
        *ret_name = dot ? dot + 1 : path;
        return (struct lkg_schema_node *)lkg_node_find(root, above);
}

static struct lkg_value *parse_default(const char *json)
{
        struct lkg_source *source = lkg_source_new("default", "");
        struct lkg_value *value = NULL;

        (void)lkg_decode_json(json, strlen(json), LKG_DECODE_UNTYPED, source, NULL, &value);
        assert(value);
        lkg_source_unref(source);
        lkg_value_place(value, 0, 0);
        return value;
}

struct lkg_value *lkg_schema_default(const char *json)
{
        for (size_t i = 0; i < n_constants; i++)
                if (constants[i].json == json)
                        return lkg_value_ref(constants[i].value);
        lkg_need(LKG_GROW(constants, n_constants));
        constants[n_constants] = (struct constant){ json, parse_default(json) };
        return lkg_value_ref(constants[n_constants++].value);
}

static void add_row(struct lkg_schema_node *root, const struct lkg_field *field)
{
        const char *name;
        struct lkg_schema_node *parent = holder(root, field->path, &name), *node;

        assert(parent); /* test-tables */
        node = lkg_node_new(field, name, field->type);
        if (field->def)
                node->def = parse_default(field->def);
        lkg_node_add(parent, node);
}

static struct lkg_schema *build(const struct lkg_kind *kind, unsigned release)
{
        static const struct lkg_field top = { "", "struct" };
        struct lkg_schema *schema = lkg_must(calloc(1, sizeof(*schema)));

        schema->kind = kind;
        schema->release = release;
        schema->root = lkg_node_new(&top, "", top.type);
        for (size_t i = 0; i < *kind->n_fields; i++)
                if (lkg_field_in(&kind->fields[i], release))
                        add_row(schema->root, &kind->fields[i]);
        return schema;
}

int lkg_schema_get(const char *kind, const char *api_version, unsigned release,
                   const struct lkg_schema **ret)
{
        const struct lkg_kind *row = NULL;
        struct lkg_schema *schema;

        release = lkg_release_judged(release);
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (strcmp(lkg_kinds[i].kind, kind) == 0 &&
                    (!api_version || strcmp(lkg_kinds[i].api_version, api_version) == 0))
                        row = &lkg_kinds[i];
        if (!row)
                return -ENOENT;
        for (schema = schemas; schema; schema = schema->next) {
                if (schema->kind == row && schema->release == release) {
                        *ret = schema;
                        return 0;
                }
        }
        schema = build(row, release);
        schema->next = schemas;
        schemas = schema;
        *ret = schema;
        return 0;
}

const char *lkg_schema_kind(const struct lkg_schema *schema)
{
        return schema->kind->kind;
}

const char *lkg_schema_api_version(const struct lkg_schema *schema)
{
        return schema->kind->api_version;
}

unsigned lkg_schema_release(const struct lkg_schema *schema)
{
        return schema->release;
}

const char *lkg_schema_reader(const char *name)
{
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (strcmp(lkg_kinds[i].component, name) == 0)
                        return lkg_kinds[i].component;
        return NULL;
}

bool lkg_schema_is_kubelet(const struct lkg_schema *schema)
{
        return schema->kind->fields == lkg_kubelet_fields;
}

const struct lkg_schema_node *lkg_schema_root(const struct lkg_schema *schema)
{
        return schema->root;
}

/* ---- looking up ---- */

const struct lkg_schema_node *lkg_node_member_folded(const struct lkg_schema_node *node, const char *name,
                                                     size_t size)
{
        const struct lkg_schema_node *member = lkg_node_member(node, name, size);

        for (size_t i = 0; !member && i < node->n_members; i++)
                if (lkg_merge_key_folds(node->members[i]->name, name, size))
                        member = node->members[i];
        return member;
}

const struct lkg_value *lkg_node_value(const struct lkg_schema_node *member, const struct lkg_value *map,
                                       size_t *i)
{
        const struct lkg_value *value;
        const char *key;
        size_t size;
        int r = 0;

        while ((value = map ? lkg_map_at(map, *i, &key, &size) : NULL) &&
               (r = compare(key, size, member)) < 0)
                ++*i;
        return r == 0 ? value : NULL;
}

const struct lkg_schema_node *lkg_node_find(const struct lkg_schema_node *node, const char *path)
{
        while (node && *path) {
                size_t size = strcspn(path, ".[{");

                if (size > 0)
                        node = lkg_node_member(node, path, size);
                else
                        node = node->item;
                path += size > 0 ? size : 2;
                if (*path == '.')
                        path++;
        }
        return node;
}

/* ---- for strategic merges ---- */

static bool merge_member(const struct lkg_merge_type *type, const char *key, size_t size,
                         struct lkg_merge_type *ret);

static struct lkg_merge_type merge_type(const struct lkg_schema_node *node)
{
        bool plain_list = node->class == LKG_CLASS_LIST && node->item->class != LKG_CLASS_LIST;

        return (struct lkg_merge_type){
                .class = node->class == LKG_CLASS_STRUCT ? LKG_MERGE_STRUCT
                         : plain_list                    ? LKG_MERGE_LIST
                                                         : LKG_MERGE_OTHER,
                .pointer = node->pointer,
                .member = merge_member,
                .data = node,
        };
}

static bool merge_member(const struct lkg_merge_type *type, const char *key, size_t size,
                         struct lkg_merge_type *ret)
{
        const struct lkg_schema_node *member = lkg_node_member_folded(type->data, key, size);

        if (member)
                *ret = merge_type(member);
        return member;
}

struct lkg_merge_type lkg_schema_merge_type(const struct lkg_schema *schema)
{
        return merge_type(schema->root);
}
