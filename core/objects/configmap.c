/* SPDX-License-Identifier: Apache-2.0 */
/* One ConfigMap. Checks are in the order in which an author would fix the object. */

#include <lkg/objects.h>
#include <lkg/documents.h>
#include <lkg/limits.h>
#include <lkg/text.h>
#include <lkg/lifecycle.h>

#define KEYS_NAMED             8u /* number of keys that a message lists */
#define FINDING_MORE_DOCUMENTS 1010u

/* ---- decode ---- */

static const char *file_name(const struct lkg_configmap_options *options)
{
        return options->file ? options->file : "ConfigMap";
}

/* Reports the first error; a decoder that fails has reported at least one. */
static int undecodable(const struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_finding *f = lkg_report_first_error(report);
        const struct lkg_where where = { f ? f->file : NULL, f ? f->line : 0, f ? f->column : 0 };

        return lkg_refuse_because(err, -EBADMSG, &where, "%s", f ? f->text : "cannot be decoded");
}

/* Refuses a second document, which is ignored in a layer: it would be unclear which object is meant. */
static int check_single(const struct lkg_report *report, struct lkg_error *err)
{
        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];
                const struct lkg_where where = { f->file, f->line, f->column };

                if (f->code == FINDING_MORE_DOCUMENTS)
                        return lkg_refuse_because(err, -EINVAL, &where,
                                                  "more than one document; want one ConfigMap alone");
        }
        return 0;
}

/* `{kind: ConfigMap}` starts like JSON but is YAML in flow style. If it is neither, the JSON errors in @report stay. */
static int decode_flow(const char *text, size_t size, struct lkg_source *source, struct lkg_report *report,
                       struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report flow = LKG_REPORT_INIT;
        int r = lkg_decode(text, size, LKG_FORMAT_YAML, LKG_DECODE_STRICT, source, &flow, ret);

        if (r == 0) {
                lkg_report_deinit(report);
                lkg_report_append(report, &flow);
        }
        return r;
}

static int decode(const char *text, size_t size, const struct lkg_configmap_options *options,
                  struct lkg_value **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_source *source = lkg_source_new("ConfigMap", file_name(options));
        enum lkg_format format = lkg_detect_format(text, size);
        struct lkg_value *value = NULL;
        int r = lkg_decode(text, size, options->from_file ? format : LKG_FORMAT_JSON, LKG_DECODE_STRICT,
                           source, &report, &value);

        if (r == -EBADMSG && options->from_file && format == LKG_FORMAT_JSON)
                r = decode_flow(text, size, source, &report, &value);
        lkg_source_unref(source);
        if (r < 0)
                return undecodable(&report, err);
        r = check_single(&report, err);
        if (r < 0)
                lkg_value_unref(value);
        else
                *ret = value;
        return r;
}

/* ---- size ---- */

/* Upper bound of the size of @text as a JSON string. */
static size_t string_cost(const char *text, size_t size)
{
        size_t cost = size + 2;

        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)text[i];

                cost += c < 0x20 || c == 0x7f ? 5 : c == '"' || c == '\\' ? 1 : 0;
        }
        return cost;
}

/*
 * Does @value fit into @left bytes of JSON as lkg_configmap_format() writes it? YAML aliases can make the
 * object much larger than the file, and a checkpoint that cannot be read again would be worse than none, so
 * this is checked first. Recursion ends at LKG_CONFIGMAP_DEPTH_MAX.
 */
static bool fits(const struct lkg_value *value, unsigned depth, size_t *left)
{
        enum lkg_type type = lkg_value_type(value);
        size_t cost = 2 * (depth + 2) + 4, size; /* two lines with indent, brackets, a comma */
        bool map = type == LKG_MAP;

        if (type == LKG_STRING || type == LKG_NUMBER) {
                const char *text = lkg_value_text(value, &size);

                cost += string_cost(text, size);
        }
        if (depth > LKG_CONFIGMAP_DEPTH_MAX || cost + 2 * depth > *left)
                return false;
        *left -= cost + 2 * depth;
        for (size_t i = 0; (map || type == LKG_LIST) && i < lkg_value_size(value); i++) {
                const char *key = "";
                size_t key_size = 0;
                const struct lkg_value *item =
                        map ? lkg_map_at(value, i, &key, &key_size) : lkg_list_get(value, i);

                cost = string_cost(key, key_size) + 2;
                if (cost > *left)
                        return false;
                *left -= cost;
                if (!fits(item, depth + 1, left))
                        return false;
        }
        return true;
}

static int check_size(const struct lkg_value *object, struct lkg_error *err)
{
        size_t left = LKG_DOC_BYTES_MAX;

        if (fits(object, 0, &left))
                return 0;
        return lkg_refuse_because(
                err, -EFBIG, NULL,
                "the ConfigMap would be too big or too deep as a checkpoint; want at most %u bytes "
                "as JSON and %u levels",
                LKG_DOC_BYTES_MAX, LKG_CONFIGMAP_DEPTH_MAX);
}

/* ---- kind, members of data ---- */

/* Present and not null: Go decodes null into a typed field as absent. */
static const struct lkg_value *member(const struct lkg_value *map, const char *name)
{
        const struct lkg_value *value = map ? lkg_map_get(map, name) : NULL;

        return value && lkg_value_type(value) != LKG_NULL ? value : NULL;
}

static struct lkg_span text_of(const struct lkg_value *value)
{
        size_t size;
        const char *text = lkg_value_text(value, &size);

        return lkg_span(text, size);
}

static bool is_text(const struct lkg_value *value, const char *text)
{
        return value && lkg_value_type(value) == LKG_STRING && lkg_span_is(text_of(value), text);
}

static int check_kind(const struct lkg_value *object, struct lkg_error *err)
{
        const struct lkg_value *kind, *version;
        const struct lkg_where where = lkg_where_of(object);
        char quoted[5 * LKG_QUOTE_MAX + 8], other[5 * LKG_QUOTE_MAX + 8];

        if (lkg_value_type(object) != LKG_MAP)
                return lkg_refuse_because(err, -EINVAL, &where, "a %s; want a ConfigMap",
                                          lkg_type_name(lkg_value_type(object)));
        kind = member(object, "kind");
        version = member(object, "apiVersion");
        if (is_text(kind, "ConfigMap") && is_text(version, "v1"))
                return 0;
        if (!kind || !version || lkg_value_type(kind) != LKG_STRING || lkg_value_type(version) != LKG_STRING)
                return lkg_refuse_because(
                        err, -EINVAL, &where,
                        "no kind or no apiVersion; want kind: ConfigMap and apiVersion: v1");
        lkg_quote(text_of(kind).data, text_of(kind).size, quoted);
        lkg_quote(text_of(version).data, text_of(version).size, other);
        return lkg_refuse_because(err, -EINVAL, &where, "kind %s of apiVersion %s; want %s", quoted, other,
                                  is_text(kind, "List") || is_text(kind, "ConfigMapList")
                                          ? "the ConfigMap itself and no list"
                                          : "kind ConfigMap of apiVersion v1");
}

/* A field that must be a map: `data`, `binaryData`, `metadata`, annotations. @ret: NULL = absent. */
static int take_map(const struct lkg_value *map, const char *field, const char *path,
                    const struct lkg_value **ret, struct lkg_error *err)
{
        const struct lkg_value *value = member(map, field);
        const struct lkg_where where = lkg_where_of(value);

        if (value && lkg_value_type(value) != LKG_MAP)
                return lkg_refuse_because(err, -EINVAL, &where, "%s is a %s; want a map", path,
                                          lkg_type_name(lkg_value_type(value)));
        *ret = value;
        return 0;
}

static int check_texts(const struct lkg_value *map, const char *path, struct lkg_error *err)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];

        for (size_t i = 0; map && i < lkg_value_size(map); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(map, i, &key, &size);
                const struct lkg_where where = lkg_where_of(value);

                if (lkg_value_type(value) != LKG_STRING)
                        return lkg_refuse_because(
                                err, -EINVAL, &where,
                                "%s: %s is a %s; want text (a number in quotes, a document behind |)", path,
                                lkg_quote(key, size, quoted), lkg_type_name(lkg_value_type(value)));
        }
        return 0;
}

static int check_keys(const struct lkg_value *map, const char *path, const struct lkg_value *other,
                      struct lkg_error *err)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];

        for (size_t i = 0; map && i < lkg_value_size(map); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(map, i, &key, &size);
                const struct lkg_where where = lkg_where_of(value);

                if (!lkg_configmap_key_ok(lkg_span(key, size)))
                        return lkg_refuse_because(
                                err, -EINVAL, &where,
                                "%s: the key %s cannot be in a ConfigMap: want 1 to %u of the "
                                "characters A-Z, a-z, 0-9, ., _ and -, not . and not .. in front",
                                path, lkg_quote(key, size, quoted), LKG_IDENTIFIER_MAX);
                if (other && lkg_map_get(other, key))
                        return lkg_refuse_because(err, -EINVAL, &where,
                                                  "%s: the key %s is also in binaryData", path,
                                                  lkg_quote(key, size, quoted));
        }
        return 0;
}

static int check_data(const struct lkg_value *object, struct lkg_error *err)
{
        const struct lkg_value *data, *binary;
        int r = take_map(object, "data", "data", &data, err);

        if (r == 0)
                r = take_map(object, "binaryData", "binaryData", &binary, err);
        if (r == 0)
                r = check_keys(binary, "binaryData", NULL, err);
        if (r == 0)
                r = check_keys(data, "data", binary, err);
        return r < 0 ? r : check_texts(data, "data", err);
}

/* ---- identity ---- */

static int judge_version(const char *text, size_t size, char *reason)
{
        return lkg_identifier_in(lkg_span(text, size))
                       ? 0
                       : lkg_refuse(reason, "not 1 to %u of the characters A-Z, a-z, 0-9, ., _ and -",
                                    LKG_IDENTIFIER_MAX);
}

static int judge_uid(const char *text, size_t size, char *reason)
{
        if (lkg_span_is(lkg_span(text, size), LKG_UID_LOCAL))
                return lkg_refuse(reason, "the name of local configurations; want the uid of an object");
        return judge_version(text, size, reason);
}

/* Fields that identify the object. */
static const struct identity {
        const char *field;
        int (*judge)(const char *text, size_t size, char *reason);
        bool made; /* may be missing in a file */
        size_t offset;
} identities[] = {
        { "namespace", lkg_name_dns_label, false, offsetof(struct lkg_configmap, ns) },
        { "name", lkg_name_dns_subdomain, false, offsetof(struct lkg_configmap, name) },
        { "uid", judge_uid, true, offsetof(struct lkg_configmap, uid) },
        { "resourceVersion", judge_version, true, offsetof(struct lkg_configmap, version) },
};

/* Return: 1: valid; 0: missing, may be generated; -EINVAL. */
static int check_identity(const struct lkg_value *metadata, const struct identity *identity, bool from_file,
                          struct lkg_error *err)
{
        const struct lkg_value *value = member(metadata, identity->field);
        const struct lkg_where where = lkg_where_of(value ? value : metadata);
        char quoted[5 * LKG_QUOTE_MAX + 8], reason[LKG_REFUSAL_MAX];
        struct lkg_span text;

        if (value && lkg_value_type(value) != LKG_STRING)
                return lkg_refuse_because(err, -EINVAL, &where, "metadata.%s is a %s; want text%s",
                                          identity->field, lkg_type_name(lkg_value_type(value)),
                                          lkg_value_type(value) == LKG_NUMBER ? ", in quotes" : "");
        if (!value || text_of(value).size == 0) {
                if (identity->made && from_file)
                        return 0;
                return lkg_refuse_because(err, -EINVAL, &where, "metadata.%s is missing", identity->field);
        }
        text = text_of(value);
        if (identity->judge(text.data, text.size, reason) < 0)
                return lkg_refuse_because(err, -EINVAL, &where, "metadata.%s %s: %s", identity->field,
                                          lkg_quote(text.data, text.size, quoted), reason);
        return 1;
}

/* Sets @field to the first digits of the SHA-256 of @data. */
static void make_up(struct lkg_value *metadata, const char *field, const void *data, size_t size)
{
        char hash[LKG_SHA256_HEX];

        (void)lkg_need(lkg_sha256_hex(data, size, hash));
        (void)lkg_map_set(metadata, field, strlen(field),
                          lkg_value_new_string(hash, LKG_SHORT_HASH, NULL, 0, 0));
}

/* Replaces the metadata of @object, which has one reference, by a complete copy. */
static void complete(struct lkg_value *object, bool uid, bool version, const char *text, size_t size)
{
        struct lkg_value *metadata = lkg_value_clone_shallow(lkg_map_get(object, "metadata"));
        char path[2 * LKG_IDENTIFIER_MAX + 2];

        (void)snprintf(path, sizeof(path), "%s/%s", lkg_map_get_string(metadata, "namespace"),
                       lkg_map_get_string(metadata, "name"));
        if (!uid)
                make_up(metadata, "uid", path, strlen(path));
        if (!version)
                make_up(metadata, "resourceVersion", text, size);
        (void)lkg_map_set(object, "metadata", strlen("metadata"), metadata);
}

static int check_metadata(struct lkg_value *object, const char *text, size_t size, bool from_file,
                          struct lkg_error *err)
{
        bool there[LKG_ARRAY_SIZE(identities)];
        const struct lkg_value *metadata, *annotations;
        const struct lkg_where where = lkg_where_of(object);
        int r = take_map(object, "metadata", "metadata", &metadata, err);

        if (r < 0)
                return r;
        if (!metadata)
                return lkg_refuse_because(err, -EINVAL, &where,
                                          "metadata is missing; want namespace and name");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(identities); i++) {
                r = check_identity(metadata, &identities[i], from_file, err);
                if (r < 0)
                        return r;
                there[i] = r > 0;
        }
        r = take_map(metadata, "annotations", "metadata.annotations", &annotations, err);
        if (r == 0)
                r = check_texts(annotations, "metadata.annotations", err);
        if (r == 0 && !(there[2] && there[3]))
                complete(object, there[2], there[3], text, size);
        return r;
}

/* ---- the whole ---- */

/* Empty or the word `local`: in a file, this means what an absent reference means elsewhere (docs/specification.md 4.3). */
static bool means_local(const struct lkg_value *object)
{
        return lkg_value_type(object) == LKG_NULL || is_text(object, "local");
}

/*
 * Checks an object from any source, in the order in which an author would fix it.
 * @object: takes over one reference
 * @text:   the bytes that it was decoded from, to generate a missing version; NULL if not @from_file
 */
static int take_object(struct lkg_value *object, const char *text, size_t size, bool from_file,
                       struct lkg_configmap *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *owned = object;
        struct lkg_configmap configmap = { 0 };
        int r = check_size(owned, err);

        if (r == 0)
                r = check_kind(owned, err);
        if (r == 0)
                r = check_metadata(owned, text, size, from_file, err);
        if (r == 0)
                r = check_data(owned, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(identities); i++) {
                const char *found = lkg_map_get_string(lkg_map_get(owned, "metadata"), identities[i].field);

                memcpy((char *)&configmap + identities[i].offset, &found, sizeof(found));
        }
        configmap.object = LKG_STEAL(owned);
        *ret = configmap;
        return 0;
}

int lkg_configmap_parse(const char *text, size_t size, const struct lkg_configmap_options *options,
                        struct lkg_configmap *ret, struct lkg_error *err)
{
        size_t max = options->max_bytes < LKG_DOC_BYTES_MAX ? options->max_bytes : LKG_DOC_BYTES_MAX;
        const struct lkg_where where = { file_name(options), 0, 0 };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        int r;

        if (size > max)
                return lkg_refuse_because(err, -EFBIG, &where, "more than %zu bytes", max);
        r = decode(text, size, options, &object, err);
        if (r < 0)
                return r;
        if (options->from_file && means_local(object))
                return lkg_refuse_because(err, -ENODATA, &where, "no ConfigMap: the local configuration");
        return take_object(LKG_STEAL(object), text, size, options->from_file, ret, err);
}

int lkg_configmap_from_value(const struct lkg_value *object, struct lkg_configmap *ret,
                             struct lkg_error *err)
{
        /* The values are shared; none is changed, because nothing is generated. */
        return take_object(lkg_value_ref((struct lkg_value *)object), NULL, 0, /* from_file= */ false, ret,
                           err);
}

void lkg_configmap_deinit(struct lkg_configmap *configmap)
{
        lkg_value_unref(configmap->object);
        *configmap = (struct lkg_configmap){ 0 };
}

void lkg_configmap_format(const struct lkg_configmap *configmap, struct lkg_buf *buf)
{
        lkg_render(configmap->object, LKG_FORMAT_JSON, buf);
}

const char *lkg_configmap_annotation(const struct lkg_configmap *configmap, const char *name)
{
        const struct lkg_value *annotations =
                member(lkg_map_get(configmap->object, "metadata"), "annotations");

        return annotations ? lkg_map_get_string(annotations, name) : NULL;
}

/* ---- the part that a reference means ---- */

/* Is it the object that @reference means? An empty uid matches any. */
static int check_same(const struct lkg_configmap *configmap, const struct lkg_reference *reference,
                      struct lkg_error *err)
{
        if (strcmp(configmap->ns, reference->ns) != 0 || strcmp(configmap->name, reference->name) != 0)
                return lkg_refuse_because(
                        err, -EINVAL, NULL,
                        "invalid ObjectReference, %s/%s does not match the ConfigMap %s/%s", reference->ns,
                        reference->name, configmap->ns, configmap->name);
        if (reference->uid[0] && strcmp(configmap->uid, reference->uid) != 0)
                return lkg_refuse_because(
                        err, -EINVAL, NULL,
                        "invalid ObjectReference, UID \"%s\" does not match UID of downloaded "
                        "ConfigMap \"%s\"",
                        reference->uid, configmap->uid);
        return 0;
}

int lkg_configmap_resolve(const struct lkg_configmap *configmap, const struct lkg_reference *reference,
                          struct lkg_config_source *ret, struct lkg_error *err)
{
        struct lkg_config_source source = { .ns = "" };
        const char *text;
        size_t size;
        int r = check_same(configmap, reference, err);

        if (r < 0)
                return r;
        (void)strcpy(source.ns, configmap->ns);
        (void)strcpy(source.name, configmap->name);
        (void)strcpy(source.uid, configmap->uid);
        (void)strcpy(source.version, configmap->version);
        memcpy(source.key, reference->key, sizeof(source.key));
        r = lkg_config_source_check(&source, err);
        if (r < 0)
                return r;
        if (lkg_configmap_payload(configmap, source.key, &text, &size, NULL) == 0)
                (void)lkg_need(lkg_sha256_hex(text, size, source.sha256));
        *ret = source;
        return 0;
}

static int no_such_key(const struct lkg_configmap *configmap, const struct lkg_value *data, const char *key,
                       struct lkg_error *err)
{
        size_t n = data ? lkg_value_size(data) : 0, used = 0;
        char quoted[5 * LKG_QUOTE_MAX + 8], names[KEYS_NAMED * (LKG_QUOTE_MAX + 8)] = "";

        for (size_t i = 0; i < n && i < KEYS_NAMED; i++) {
                const char *other;
                size_t size;

                (void)lkg_map_at(data, i, &other, &size);
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                         lkg_quote(other, size, quoted));
        }
        return lkg_refuse_because(err, -ENOENT, NULL, "no key %s in data of ConfigMap %s/%s; it has %s%s",
                                  lkg_quote(key, strlen(key), quoted), configmap->ns, configmap->name,
                                  n ? names : "none", n > KEYS_NAMED ? ", ..." : "");
}

int lkg_configmap_payload(const struct lkg_configmap *configmap, const char *key, const char **ret_text,
                          size_t *ret_size, struct lkg_error *err)
{
        const struct lkg_value *data = member(configmap->object, "data");
        const struct lkg_value *binary = member(configmap->object, "binaryData");
        const struct lkg_value *value = data ? lkg_map_get(data, key) : NULL;
        char quoted[5 * LKG_QUOTE_MAX + 8];
        struct lkg_span text;

        if (!value && binary && lkg_map_get(binary, key))
                return lkg_refuse_because(
                        err, -EINVAL, NULL, "key %s of ConfigMap %s/%s is in binaryData; want it in data",
                        lkg_quote(key, strlen(key), quoted), configmap->ns, configmap->name);
        if (!value)
                return no_such_key(configmap, data, key, err);
        text = text_of(value);
        if (text.size == 0)
                return lkg_refuse_because(err, -ENODATA, NULL, "key %s of ConfigMap %s/%s is empty",
                                          lkg_quote(key, strlen(key), quoted), configmap->ns,
                                          configmap->name);
        *ret_text = text.data;
        *ret_size = text.size;
        return 0;
}
