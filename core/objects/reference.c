/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References. A message starts with a reason of the dynamic-configuration proposal, literally; details follow in the
 * wording of the Kubernetes API server (`configMap.name: Invalid value: ...`).
 */

#include <lkg/documents.h>
#include <lkg/limits.h>
#include <lkg/text.h>
#include <lkg/objects.h>
#include <lkg/lifecycle.h>

#define INVALID    "invalid NodeConfigSource, "
#define NONE_SET   INVALID "exactly one subfield must be non-nil, but all were nil"
#define BOTH_SET   INVALID "exactly one subfield must be non-nil, but both were set"
#define INCOMPLETE "invalid ObjectReference, all of UID, Name, and Namespace must be specified"
#define WORD_LOCAL "local"

/* ---- parts of a reference ---- */

static int judge_key(const char *text, size_t size, char *reason)
{
        if (lkg_configmap_key_ok(lkg_span(text, size)))
                return 0;
        return lkg_refuse(
                reason,
                "want 1 to %u of the characters A-Z, a-z, 0-9, ., _ and -, not . and not .. in front",
                LKG_IDENTIFIER_MAX);
}

static int judge_uid(const char *text, size_t size, char *reason)
{
        if (lkg_identifier_in(lkg_span(text, size)))
                return 0;
        return lkg_refuse(reason,
                          "want 1 to %u of the characters A-Z, a-z, 0-9, ., _ and -, not . or .. alone",
                          LKG_IDENTIFIER_MAX);
}

enum part { PART_NS, PART_NAME, PART_KEY, PART_UID, _PART_MAX };
static const struct {
        const char *name;
        int (*judge)(const char *text, size_t size, char *reason);
        bool required;
        size_t offset;
} parts[] = {
        [PART_NS] = { "namespace", lkg_name_dns_label, true, offsetof(struct lkg_reference, ns) },
        [PART_NAME] = { "name", lkg_name_dns_subdomain, true, offsetof(struct lkg_reference, name) },
        [PART_KEY] = { "kubeletConfigKey", judge_key, false, offsetof(struct lkg_reference, key) },
        [PART_UID] = { "uid", judge_uid, false, offsetof(struct lkg_reference, uid) },
};

/* The parts as given, unchecked. As in Go, an empty text is the same as none. */
struct given {
        struct lkg_span text[_PART_MAX];
};

/* @path: path of the parent, with its dot (`configMap.`) */
static int check_given(const struct given *given, const char *path, struct lkg_reference *ret,
                       struct lkg_error *err)
{
        struct lkg_reference reference = { .type = LKG_REFERENCE_CONFIGMAP, .key = LKG_KEY_DEFAULT };

        for (size_t i = 0; i < _PART_MAX; i++) {
                char quoted[5 * LKG_QUOTE_MAX + 8], reason[LKG_REFUSAL_MAX];
                struct lkg_span text = given->text[i];
                char *to = (char *)&reference + parts[i].offset;

                if (text.size == 0 && parts[i].required)
                        return lkg_refuse_because(err, -EINVAL, NULL,
                                                  INVALID "%s%s: Required value: %s must be set", path,
                                                  parts[i].name, parts[i].name);
                if (text.size == 0)
                        continue;
                if (parts[i].judge(text.data, text.size, reason) < 0)
                        return lkg_refuse_because(err, -EINVAL, NULL, INVALID "%s%s: Invalid value: %s: %s",
                                                  path, parts[i].name,
                                                  lkg_quote(text.data, text.size, quoted), reason);
                memset(to, 0, LKG_IDENTIFIER_MAX + 1);
                lkg_copy_span(text, to);
        }
        *ret = reference;
        return 0;
}

static struct lkg_reference local(void)
{
        return (struct lkg_reference){ .type = LKG_REFERENCE_LOCAL, .key = LKG_KEY_DEFAULT };
}

int lkg_reference_from_parts(const char *ns, const char *name, const char *key, const char *uid,
                             struct lkg_reference *ret, struct lkg_error *err)
{
        const struct given given = { {
                [PART_NS] = lkg_span(ns, strlen(ns)),
                [PART_NAME] = lkg_span(name, strlen(name)),
                [PART_KEY] = lkg_span(key, strlen(key)),
                [PART_UID] = lkg_span(uid, strlen(uid)),
        } };

        return check_given(&given, "", ret, err);
}

/* ---- NodeConfigSource ---- */

/*
 * A field of a shape: the part that its text belongs to, or the allowed text of a field that does not identify
 * the object.
 */
struct shape_field {
        const char *name;
        int part;         /* enum part; -1 = none */
        const char *only; /* the only text allowed, besides none; NULL = any */
};

/*
 * resourceVersion: upstream forbade it in spec but set it in status.config. A copied status is accepted and its version
 * ignored: a reference follows the object, and only the current version of an object can be read.
 */
static const struct shape_field typed_fields[] = {
        /* ConfigMapNodeConfigSource, 1.11 and later */
        { "namespace", PART_NS }, { "name", PART_NAME },     { "kubeletConfigKey", PART_KEY },
        { "uid", PART_UID },      { "resourceVersion", -1 }, { NULL },
};
static const struct shape_field object_fields[] = {
        /* ObjectReference, 1.8 to 1.10 */
        { "namespace", PART_NS },   { "name", PART_NAME },
        { "uid", PART_UID },        { "kind", -1, "ConfigMap" },
        { "apiVersion", -1, "v1" }, { "resourceVersion", -1 },
        { "fieldPath", -1, "" },    { NULL },
};
/* NodeConfigSource itself; it had a TypeMeta until 1.10. */
static const struct shape_field source_fields[] = {
        { "configMap", -1 },
        { "configMapRef", -1 },
        { "kind", -1, "NodeConfigSource" },
        { "apiVersion", -1, "v1" },
        { NULL },
};

static const struct shape_field *find_field(const struct shape_field *fields, struct lkg_span name)
{
        for (; fields->name; fields++)
                if (lkg_span_is(name, fields->name))
                        return fields;
        return NULL;
}

static int unknown_field(const struct shape_field *fields, const char *intro, const char *path,
                         struct lkg_span name, struct lkg_error *err)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];
        struct lkg_nearest nearest;
        size_t n = strlen(path), shown = n ? n - 1 : 0; /* without its dot */

        lkg_nearest_init(&nearest, name.data);
        for (const struct shape_field *f = fields; f->name; f++)
                lkg_nearest_offer(&nearest, f->name);
        lkg_quote(name.data, name.size, quoted);
        if (lkg_nearest_best(&nearest))
                return lkg_refuse_because(err, -EINVAL, NULL, "%s%.*s%sunknown field %s, did you mean %s?",
                                          intro, (int)shown, path, n ? ": " : "", quoted,
                                          lkg_nearest_best(&nearest));
        return lkg_refuse_because(err, -EINVAL, NULL, "%s%.*s%sunknown field %s", intro, (int)shown, path,
                                  n ? ": " : "", quoted);
}

static bool is_null(const struct lkg_value *value)
{
        return !value || lkg_value_type(value) == LKG_NULL;
}

static int wrong_type(const char *path, const char *name, const struct lkg_value *value, const char *want,
                      struct lkg_error *err)
{
        return lkg_refuse_because(err, -EINVAL, NULL, INVALID "%s%s is a %s; want %s", path, name,
                                  lkg_type_name(lkg_value_type(value)), want);
}

/* The text of a member; empty if it is null. */
static int take_text(const struct shape_field *field, const char *path, const struct lkg_value *value,
                     struct lkg_span *ret, struct lkg_error *err)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];

        *ret = lkg_span("", 0);
        if (is_null(value))
                return 0;
        if (lkg_value_type(value) != LKG_STRING)
                return wrong_type(path, field->name, value, "text", err);
        ret->data = lkg_value_text(value, &ret->size);
        if (ret->size == 0 || !field->only || lkg_span_is(*ret, field->only))
                return 0;
        lkg_quote(ret->data, ret->size, quoted);
        if (!*field->only)
                return lkg_refuse_because(err, -EINVAL, NULL,
                                          INVALID "%s%s: Invalid value: %s: must not be set", path,
                                          field->name, quoted);
        return lkg_refuse_because(err, -EINVAL, NULL, INVALID "%s%s: Invalid value: %s: want %s", path,
                                  field->name, quoted, field->only);
}

/* An unknown field that is null counts as absent. */
static int read_fields(const struct shape_field *fields, const char *path, const struct lkg_value *map,
                       struct given *ret, struct lkg_error *err)
{
        *ret = (struct given){ 0 };
        for (size_t i = 0; i < lkg_value_size(map); i++) {
                struct lkg_span name, text;
                const struct lkg_value *value = lkg_map_at(map, i, &name.data, &name.size);
                const struct shape_field *field = find_field(fields, name);
                int r;

                if (!field && is_null(value))
                        continue;
                if (!field)
                        return unknown_field(fields, INVALID, path, name, err);
                r = take_text(field, path, value, &text, err);
                if (r < 0)
                        return r;
                if (field->part >= 0)
                        ret->text[field->part] = text;
        }
        return 0;
}

static int from_config_map(const struct lkg_value *map, struct lkg_reference *ret, struct lkg_error *err)
{
        struct given given;
        int r = read_fields(typed_fields, "configMap.", map, &given, err);

        return r < 0 ? r : check_given(&given, "configMap.", ret, err);
}

/* The older shape must have all three (proposal); its key is always `kubelet`. */
static int from_config_map_ref(const struct lkg_value *map, struct lkg_reference *ret, struct lkg_error *err)
{
        struct given given;
        int r = read_fields(object_fields, "configMapRef.", map, &given, err);

        if (r < 0)
                return r;
        if (given.text[PART_UID].size == 0 || given.text[PART_NAME].size == 0 ||
            given.text[PART_NS].size == 0)
                return lkg_refuse_because(err, -EINVAL, NULL, INCOMPLETE);
        return check_given(&given, "configMapRef.", ret, err);
}

/* Besides the two subfields, only a TypeMeta is allowed. */
static int check_source(const struct lkg_value *source, bool any, struct lkg_error *err)
{
        for (size_t i = 0; i < lkg_value_size(source); i++) {
                struct lkg_span name, text;
                const struct lkg_value *value = lkg_map_at(source, i, &name.data, &name.size);
                const struct shape_field *field = find_field(source_fields, name);
                int r;

                if (!field && is_null(value))
                        continue;
                if (!field)
                        return unknown_field(source_fields, any ? INVALID : NONE_SET ": ", "", name, err);
                if (!field->only)
                        continue;
                r = take_text(field, "", value, &text, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int lkg_reference_from_node_source(const struct lkg_value *source, struct lkg_reference *ret,
                                   struct lkg_error *err)
{
        const struct lkg_value *typed, *object;
        int r;

        if (is_null(source)) {
                *ret = local();
                return 0;
        }
        if (lkg_value_type(source) != LKG_MAP)
                return wrong_type("", "it", source, "a map with configMap", err);
        typed = lkg_map_get(source, "configMap");
        object = lkg_map_get(source, "configMapRef");
        if (!is_null(typed) && !is_null(object))
                return lkg_refuse_because(err, -EINVAL, NULL, BOTH_SET);
        r = check_source(source, !is_null(typed) || !is_null(object), err);
        if (r < 0)
                return r;
        if (is_null(typed) && is_null(object))
                return lkg_refuse_because(err, -EINVAL, NULL, NONE_SET);
        if (!is_null(typed))
                return lkg_value_type(typed) != LKG_MAP ? wrong_type("", "configMap", typed, "a map", err)
                                                        : from_config_map(typed, ret, err);
        return lkg_value_type(object) != LKG_MAP ? wrong_type("", "configMapRef", object, "a map", err)
                                                 : from_config_map_ref(object, ret, err);
}

/* ---- text ---- */

static int from_json(struct lkg_span text, struct lkg_reference *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        const struct lkg_finding *f;

        if (lkg_decode_json(text.data, text.size, LKG_DECODE_STRICT, NULL, &report, &value) == 0)
                return lkg_reference_from_node_source(value, ret, err);
        f = lkg_report_first_error(&report);
        return f ? lkg_refuse_because(err, -EINVAL, NULL, INVALID "line %u, column %u of its JSON: %s",
                                      f->line, f->column, f->text)
                 : lkg_refuse_because(err, -EINVAL, NULL, INVALID "its JSON cannot be read");
}

static int from_path(struct lkg_span text, struct lkg_reference *ret, struct lkg_error *err)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];
        struct given given = { 0 };
        size_t n_slashes = lkg_span_count(text, '/');
        struct lkg_span rest;

        if (n_slashes < 1 || n_slashes > 2)
                return lkg_refuse_because(
                        err, -EINVAL, NULL,
                        INVALID "%s is not a reference; want namespace/name, namespace/name/key, a "
                                "NodeConfigSource as JSON, or local",
                        lkg_quote(text.data, text.size, quoted));
        (void)lkg_span_cut(text, '/', &given.text[PART_NS], &rest);
        (void)lkg_span_cut(rest, '/', &given.text[PART_NAME], &given.text[PART_KEY]);
        if (n_slashes == 2 && given.text[PART_KEY].size == 0)
                return lkg_refuse_because(
                        err, -EINVAL, NULL,
                        INVALID "kubeletConfigKey: Required value: want a key behind the second /, or no /");
        return check_given(&given, "", ret, err);
}

int lkg_reference_from_text(const char *text, size_t size, struct lkg_reference *ret, struct lkg_error *err)
{
        struct lkg_span trimmed = lkg_span_trim(lkg_span(text, size));

        if (trimmed.size == 0)
                return lkg_refuse_because(err, -EINVAL, NULL,
                                          INVALID "the text is empty; want namespace/name, or local");
        if (lkg_span_is(trimmed, WORD_LOCAL)) {
                *ret = local();
                return 0;
        }
        return trimmed.data[0] == '{' ? from_json(trimmed, ret, err) : from_path(trimmed, ret, err);
}

/* ---- allowed objects ---- */

/* @pattern: `*`, `prefix*` or a name */
static bool matches(struct lkg_span pattern, const char *name)
{
        if (pattern.size > 0 && pattern.data[pattern.size - 1] == '*')
                return strncmp(name, pattern.data, pattern.size - 1) == 0;
        return lkg_span_is(pattern, name);
}

bool lkg_reference_allowed(const char *const *patterns, size_t n_patterns, const char *ns, const char *name)
{
        for (size_t i = 0; i < n_patterns; i++) {
                struct lkg_span first, second;

                if (lkg_span_cut(lkg_span(patterns[i], strlen(patterns[i])), '/', &first, &second) &&
                    matches(first, ns) && matches(second, name))
                        return true;
        }
        return false;
}
