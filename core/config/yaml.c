/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML -> value tree, the way sigs.k8s.io/yaml over go.yaml.in/yaml/v2 reads it (reference: their decode.go
 * and resolve.go): the first document only, YAML 1.1 scalars, stringified keys, last duplicate wins, merge
 * keys that override what stands before them, the alias bomb guard.
 *
 * libyaml's event parser does the syntax. Events build the tree through an explicit stack of open
 * collections. An alias shares the finished subtree of its anchor; what upstream would have decoded again is
 * only counted, so a bomb costs its text and not its expansion.
 *
 * Messages never quote values (they may be secrets), only keys, anchors and tags.
 */
#include "yaml-state.h"

#define SCAN_MAX UINT64_C(200000000) /* open flow collections, added up over all events; about a second */

/* One open collection. */
struct lkg_yaml_frame {
        struct lkg_value *value;
        struct lkg_value
                *merged_types; /* map: key text -> type of keys that are not strings; NULL if none */
        char *key;             /* map: the key that waits for its value; NULL = a key is next */
        size_t key_size;
        enum lkg_scalar_type key_type;
        unsigned key_line, key_column;
        bool merge;        /* map: the value of `<<` comes next */
        bool block;        /* block style: shown at the place of its key */
        size_t anchor;     /* number of its anchor, or SIZE_MAX */
        uint64_t n_before; /* decoded nodes when it was opened */
};

/* An anchor is open (value NULL) from its node's first event on. */
struct lkg_yaml_anchor {
        struct lkg_value *value;
        enum lkg_scalar_type type; /* of a scalar, for its use as a key */
        uint64_t n_nodes;          /* what decoding it again costs */
};

/* ---- limits ---- */

/* Upstream's allowedAliasRatio(): small documents may be nearly all aliases, huge ones not. */
static double alias_ratio_max(uint64_t n_decoded)
{
        if (n_decoded <= 400000)
                return 0.99;
        if (n_decoded >= 4000000)
                return 0.10;
        return 0.99 - 0.89 * ((double)(n_decoded - 400000) / 3600000);
}

static int count_nodes(struct lkg_yaml *p, uint64_t n, bool aliased, unsigned line, unsigned column)
{
        p->n_decoded += n;
        if (aliased)
                p->n_aliased += n;
        if (aliased && p->n_aliased > LKG_ALIAS_INSIDE_MIN && p->n_decoded > LKG_ALIAS_DECODED_MIN &&
            (double)p->n_aliased / (double)p->n_decoded > alias_ratio_max(p->n_decoded))
                return fail_at(p, LKG_C_ALIAS_BOMB, line, column,
                               "the document consists mostly of aliases (%llu of %llu values); write the "
                               "values out",
                               (unsigned long long)p->n_aliased, (unsigned long long)p->n_decoded);
        if (p->n_decoded > LKG_DOC_NODES_MAX)
                return fail_at(p, LKG_C_LIMIT, line, column, "the document has more than %u values",
                               LKG_DOC_NODES_MAX);
        return 0;
}

/*
 * For each token libyaml's scanner looks at every open flow collection. Ten thousand of them around a
 * million values would keep it busy for an hour, so the product is limited as well.
 */
static int count_scan(struct lkg_yaml *p, const yaml_event_t *event)
{
        bool start = (event->type == YAML_SEQUENCE_START_EVENT &&
                      event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE) ||
                     (event->type == YAML_MAPPING_START_EVENT &&
                      event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);

        if (start)
                p->flow_depth++;
        p->n_scanned += p->flow_depth;
        if (p->n_scanned > SCAN_MAX)
                return fail_at(p, LKG_C_LIMIT, line_of(event->start_mark), column_of(event->start_mark),
                               "too many values inside too many levels of [ ] and { }");
        return 0;
}

/* ---- anchors ---- */

static struct lkg_yaml_anchor *anchor_find(struct lkg_yaml *p, const char *name)
{
        const struct lkg_value *at = p->anchor_index ? lkg_map_get(p->anchor_index, name) : NULL;

        return at ? &p->anchors[strtoul(lkg_value_text(at, NULL), NULL, 10)] : NULL;
}

static int anchor_remember(struct lkg_yaml *p, const char *name)
{
        char number[24];
        int r;

        if (!p->anchor_index)
                p->anchor_index = lkg_value_new_map(NULL, 0, 0);
        if (!p->anchor_index)
                return -ENOMEM;
        (void)snprintf(number, sizeof(number), "%zu", p->n_anchors);
        r = lkg_map_set(p->anchor_index, name, strlen(name), lkg_value_new_number(number, NULL, 0, 0));
        return r < 0 ? r : 0;
}

/* Opens an anchor; a name that is used again is another anchor from here on, even inside its own node. */
static int anchor_open(struct lkg_yaml *p, const char *name, size_t *ret_number)
{
        if (p->n_anchors == p->n_anchors_allocated) {
                size_t n = p->n_anchors_allocated ? 2 * p->n_anchors_allocated : 8;
                struct lkg_yaml_anchor *anchors = reallocarray(p->anchors, n, sizeof(*anchors));

                if (!anchors)
                        return -ENOMEM;
                p->anchors = anchors;
                p->n_anchors_allocated = n;
        }
        if (anchor_remember(p, name) < 0)
                return -ENOMEM;
        *ret_number = p->n_anchors++;
        p->anchors[*ret_number] = (struct lkg_yaml_anchor){ 0 };
        return 0;
}

static void anchor_close(struct lkg_yaml *p, size_t number, struct lkg_value *value,
                         enum lkg_scalar_type type, uint64_t n_nodes)
{
        p->anchors[number] = (struct lkg_yaml_anchor){ lkg_value_ref(value), type, n_nodes };
}

/* ---- the tree ---- */

static struct lkg_yaml_frame *top(struct lkg_yaml *p)
{
        return p->n_frames > 0 ? &p->frames[p->n_frames - 1] : NULL;
}

static int push(struct lkg_yaml *p, struct lkg_value *value, const char *anchor, bool block)
{
        struct lkg_yaml_frame *f;

        if (!value)
                return -ENOMEM;
        if (p->n_frames == p->n_frames_allocated) {
                size_t n = p->n_frames_allocated ? 2 * p->n_frames_allocated : 16;
                struct lkg_yaml_frame *frames = reallocarray(p->frames, n, sizeof(*frames));

                if (!frames) {
                        lkg_value_unref(value);
                        return -ENOMEM;
                }
                p->frames = frames;
                p->n_frames_allocated = n;
        }
        f = &p->frames[p->n_frames++];
        *f = (struct lkg_yaml_frame){ .value = value, .block = block, .n_before = p->n_decoded };
        f->anchor = SIZE_MAX;
        if (anchor)
                return anchor_open(p, anchor, &f->anchor);
        return 0;
}

static void frame_deinit(struct lkg_yaml_frame *f)
{
        lkg_value_unref(f->value);
        lkg_value_unref(f->merged_types);
        free(f->key);
}

/*
 * Collisions of different key types (`1:` and `"1":`) are not duplicates to upstream: last wins, silently.
 */
static bool same_key_type(const struct lkg_yaml_frame *f)
{
        const struct lkg_value *type;
        char c = (char)('0' + f->key_type);

        type = f->merged_types ? lkg_map_get_n(f->merged_types, f->key, f->key_size) : NULL;
        return type ? lkg_value_text(type, NULL)[0] == c : f->key_type == LKG_S_STRING;
}

static int note_key_type(struct lkg_yaml_frame *f)
{
        char c[2] = { (char)('0' + f->key_type), '\0' };

        if (f->key_type == LKG_S_STRING && !f->merged_types)
                return 0;
        if (!f->merged_types)
                f->merged_types = lkg_value_new_map(NULL, 0, 0);
        if (!f->merged_types)
                return -ENOMEM;
        return lkg_map_set(f->merged_types, f->key, f->key_size, lkg_value_new_string(c, 1, NULL, 0, 0)) < 0
                       ? -ENOMEM
                       : 0;
}

static void report_duplicate(struct lkg_yaml *p, const struct lkg_yaml_frame *f,
                             const struct lkg_value *earlier)
{
        struct lkg_where where = where_of(p, f->key_line, f->key_column);
        bool strict = p->flags & LKG_DECODE_STRICT;
        char quoted[5 * 64 + 8];

        lkg_report_add(p->report, strict ? LKG_ERROR : LKG_WARNING,
                       strict ? LKG_C_DUPLICATE_HARD : LKG_C_DUPLICATE, &where,
                       strict ? "key %s is already set on line %u; keep one of the two"
                              : "key %s is already set on line %u; the last one counts",
                       lkg_quote(f->key, f->key_size, quoted), lkg_value_line(earlier));
        if (strict)
                p->failed = true;
}

/* Puts @value (taken over) under the frame's waiting key. */
static int map_put(struct lkg_yaml *p, struct lkg_yaml_frame *f, struct lkg_value *value)
{
        struct lkg_value *earlier = lkg_map_get_n(f->value, f->key, f->key_size);
        int r;

        if (earlier && same_key_type(f))
                report_duplicate(p, f, earlier);
        r = note_key_type(f);
        if (r < 0) {
                lkg_value_unref(value);
                return r;
        }
        r = lkg_map_set(f->value, f->key, f->key_size, value);
        free(f->key);
        f->key = NULL;
        return r < 0 ? r : 0;
}

/*
 * `<<`: every member of @from is set in the map, also over what stands before it (upstream's
 * order-sensitive rule).
 */
static int merge_map(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_value *from)
{
        for (size_t i = 0; i < lkg_value_size(from); i++) {
                const char *key;
                struct lkg_value *value = lkg_map_at(from, i, &key, &f->key_size);
                int r;

                f->key = malloc(f->key_size + 1);
                if (!f->key)
                        return -ENOMEM;
                memcpy(f->key, key, f->key_size + 1);
                f->key_type = LKG_S_STRING;
                f->key_line = lkg_value_line(value);
                f->key_column = lkg_value_column(value);
                r = map_put(p, f, lkg_value_ref(value));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int merge_value(struct lkg_yaml *p, struct lkg_yaml_frame *f, struct lkg_value *value, unsigned line,
                       unsigned column)
{
        static const char want[] = "the value of '<<' must be a map, an alias of a map, or a list of those";
        int r = 0;

        f->merge = false;
        if (lkg_value_type(value) == LKG_MAP) {
                r = merge_map(p, f, value);
        } else if (lkg_value_type(value) == LKG_LIST) {
                for (size_t i = lkg_value_size(value); i-- > 0 && r == 0;) { /* earlier items win */
                        const struct lkg_value *item = lkg_list_get(value, i);

                        r = lkg_value_type(item) == LKG_MAP ? merge_map(p, f, item)
                                                            : fail_at(p, LKG_C_ANCHOR, lkg_value_line(item),
                                                                      lkg_value_column(item), "%s", want);
                }
        } else {
                r = fail_at(p, LKG_C_ANCHOR, line, column, "%s", want);
        }
        lkg_value_unref(value);
        return r;
}

/* A finished value (taken over) goes where it belongs. */
static int attach(struct lkg_yaml *p, struct lkg_value *value, bool is_alias, unsigned line, unsigned column)
{
        struct lkg_yaml_frame *f = top(p);

        if (!f) {
                p->root = value;
                return 0;
        }
        if (lkg_value_type(f->value) == LKG_LIST)
                return lkg_list_append(f->value, value);
        if (f->merge) {
                /* An alias of a list is refused upstream, a list of aliases is not. */
                if (is_alias && lkg_value_type(value) == LKG_LIST) {
                        lkg_value_unref(value);
                        return fail_at(
                                p, LKG_C_ANCHOR, line, column,
                                "the value of '<<' must be a map, an alias of a map, or a list of those");
                }
                return merge_value(p, f, value, line, column);
        }
        return map_put(p, f, value);
}

/* ---- keys ---- */

static int set_key(struct lkg_yaml *p, struct lkg_yaml_frame *f, const char *text, size_t size,
                   enum lkg_scalar_type type, unsigned line, unsigned column)
{
        (void)p;
        f->key = malloc(size + 1);
        if (!f->key)
                return -ENOMEM;
        if (size)
                memcpy(f->key, text, size);
        f->key[size] = '\0';
        f->key_size = size;
        f->key_type = type;
        f->key_line = line;
        f->key_column = column;
        return 0;
}

/* The JSON key of a scalar key (layering: "Keys"): numbers and words in their canonical text. */
static int key_from_scalar(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_value *value,
                           const struct lkg_scalar *scalar, unsigned line, unsigned column)
{
        char number[LKG_NUMBER_TEXT_MAX];
        const char *text;
        size_t size;

        switch (scalar->type) {
        case LKG_S_NULL:
                return fail_at(p, LKG_C_KEY, line, column, "null cannot be a key; quote it, or name a key");
        case LKG_S_BOOL:
                text = scalar->b ? "true" : "false";
                break;
        case LKG_S_INT:
                if (scalar->big)
                        return fail_at(p, LKG_C_KEY, line, column,
                                       "a number above 9223372036854775807 cannot be a key; quote it");
                text = scalar->text;
                break;
        case LKG_S_FLOAT:
                lkg_float_key(scalar->d, number);
                text = number;
                break;
        case LKG_S_STRING:
        case LKG_S_MERGE:
        default:
                text = lkg_value_text(value, &size);
                return set_key(p, f, text, size, LKG_S_STRING, line, column);
        }
        return set_key(p, f, text, strlen(text), scalar->type, line, column);
}

/* An alias used as a key: its type is that of the anchored scalar. */
static int key_from_alias(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_yaml_anchor *a,
                          unsigned line, unsigned column)
{
        struct lkg_scalar scalar = { .type = a->type, .finite = true };
        enum lkg_type type = lkg_value_type(a->value);

        if (type == LKG_LIST || type == LKG_MAP)
                return fail_at(p, LKG_C_KEY, line, column, "a %s cannot be a key", lkg_type_name(type));
        if (type == LKG_BOOL)
                scalar.b = lkg_value_bool(a->value);
        if (type == LKG_NUMBER)
                lkg_scalar_resolve(lkg_value_text(a->value, NULL), strlen(lkg_value_text(a->value, NULL)),
                                   &scalar);
        scalar.type = a->type;
        return key_from_scalar(p, f, a->value, &scalar, line, column);
}

/* Does this frame wait for a key? */
static bool wants_key(const struct lkg_yaml_frame *f)
{
        return f && lkg_value_type(f->value) == LKG_MAP && !f->key && !f->merge;
}

/* ---- events ---- */

static int on_scalar(struct lkg_yaml *p, const yaml_event_t *event)
{
        unsigned line = line_of(event->start_mark), column = column_of(event->start_mark);
        const char *anchor = (const char *)event->data.scalar.anchor;
        const char *tag = (const char *)event->data.scalar.tag;
        struct lkg_value *value = NULL;
        struct lkg_yaml_frame *f = top(p);
        struct lkg_scalar scalar;
        size_t number;
        int r;

        if (lkg_yaml_has_slash_escape(p, event))
                return fail_at(p, LKG_C_SYNTAX, line, column,
                               "the escape \\/ is not known in YAML 1.1; write / alone");
        r = lkg_yaml_resolve(p, event, &scalar, line, column);
        if (r < 0)
                return r;
        if (wants_key(f) && event->data.scalar.length == 2 &&
            memcmp(event->data.scalar.value, "<<", 2) == 0 &&
            (event->data.scalar.plain_implicit || lkg_yaml_is_tag(tag, "merge"))) {
                f->merge = true;
                return 0;
        }
        r = count_nodes(p, 1, false, line, column);
        if (r < 0)
                return r;
        if (wants_key(f) && !scalar.finite) {
                char text[LKG_NUMBER_TEXT_MAX];

                lkg_float_key(scalar.d, text);
                return set_key(p, f, text, strlen(text), LKG_S_FLOAT, line, column);
        }
        r = lkg_yaml_scalar(p, event, &scalar, line, column, &value);
        if (r < 0)
                return r;
        if (anchor) {
                r = anchor_open(p, anchor, &number);
                if (r < 0) {
                        lkg_value_unref(value);
                        return r;
                }
                anchor_close(p, number, value, lkg_yaml_is_tag(tag, "binary") ? LKG_S_STRING : scalar.type,
                             1);
        }
        if (!wants_key(f))
                return attach(p, value, false, line, column);
        r = key_from_scalar(p, f, value, &scalar, line, column);
        lkg_value_unref(value);
        return r;
}

static int on_alias(struct lkg_yaml *p, const yaml_event_t *event)
{
        unsigned line = line_of(event->start_mark), column = column_of(event->start_mark);
        const char *name = (const char *)event->data.alias.anchor;
        const struct lkg_yaml_anchor *a = anchor_find(p, name);
        struct lkg_yaml_frame *f = top(p);
        char quoted[5 * 64 + 8];
        int r;

        if (!a)
                /* Not quoted: a text that merely begins with '*' may be anything, a credential too. */
                return fail_at(p, LKG_C_ANCHOR, line, column,
                               "alias of an unknown anchor; an anchor stands before its aliases, as &name, "
                               "and a text "
                               "that begins with '*' needs quotes");
        if (!a->value)
                return fail_at(p, LKG_C_ANCHOR, line, column, "anchor %s contains itself",
                               lkg_quote(name, strlen(name), quoted));
        r = count_nodes(p, 1, false, line, column); /* the alias itself */
        if (r == 0)
                r = count_nodes(p, a->n_nodes, true, line, column);
        if (r < 0)
                return r;
        if (wants_key(f))
                return key_from_alias(p, f, a, line, column);
        return attach(p, lkg_value_ref(a->value), true, line, column);
}

static int on_start(struct lkg_yaml *p, const yaml_event_t *event, bool map)
{
        unsigned line = line_of(event->start_mark), column = column_of(event->start_mark);
        const char *anchor =
                (const char *)(map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor);
        bool block = map ? event->data.mapping_start.style == YAML_BLOCK_MAPPING_STYLE
                         : event->data.sequence_start.style == YAML_BLOCK_SEQUENCE_STYLE;
        uint64_t before = p->n_decoded;
        struct lkg_yaml_frame *f = top(p);
        int r;

        if (wants_key(f))
                return fail_at(p, LKG_C_KEY, line, column,
                               "a %s cannot be a key; is a value in { } or [ ] not quoted?",
                               map ? "map" : "list");
        if (p->n_frames >= LKG_DOC_DEPTH_MAX)
                return fail_at(p, LKG_C_LIMIT, line, column, "nested deeper than %u levels",
                               LKG_DOC_DEPTH_MAX);
        /* The list of `<<: [..]` is not decoded as a value itself, only its items. */
        if (map || !f || !f->merge) {
                r = count_nodes(p, 1, false, line, column);
                if (r < 0)
                        return r;
        }
        if (block && f && f->key) {
                line = f->key_line;
                column = f->key_column;
        }
        r = push(p,
                 map ? lkg_value_new_map(p->source, line, column)
                     : lkg_value_new_list(p->source, line, column),
                 anchor, block);
        if (r == 0)
                top(p)->n_before = before;
        return r;
}

static int on_end(struct lkg_yaml *p, const yaml_event_t *event)
{
        struct lkg_yaml_frame f = p->frames[--p->n_frames];
        struct lkg_value *value = LKG_STEAL(f.value);
        int r;

        if (!f.block)
                p->flow_depth--;
        if (f.anchor != SIZE_MAX)
                anchor_close(p, f.anchor, value, LKG_S_STRING, p->n_decoded - f.n_before);
        r = attach(p, value, false, line_of(event->start_mark), column_of(event->start_mark));
        frame_deinit(&f);
        return r;
}

static int on_document_start(struct lkg_yaml *p, const yaml_event_t *event)
{
        const yaml_version_directive_t *version = event->data.document_start.version_directive;

        if (version && (version->major != 1 || version->minor != 1))
                return fail_at(p, LKG_C_SYNTAX, line_of(event->start_mark), column_of(event->start_mark),
                               "found incompatible YAML document; %s",
                               "remove the %YAML line, or write %YAML 1.1");
        return count_nodes(p, 1, false, 1, 1);
}

/* One event. Return: 1 at the end of the first document, 0 to go on, negative on failure. */
static int on_event(struct lkg_yaml *p, const yaml_event_t *event)
{
        switch (event->type) {
        case YAML_DOCUMENT_START_EVENT:
                return on_document_start(p, event);
        case YAML_SCALAR_EVENT:
                return on_scalar(p, event);
        case YAML_ALIAS_EVENT:
                return on_alias(p, event);
        case YAML_MAPPING_START_EVENT:
                return on_start(p, event, true);
        case YAML_SEQUENCE_START_EVENT:
                return on_start(p, event, false);
        case YAML_MAPPING_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
                return on_end(p, event);
        case YAML_DOCUMENT_END_EVENT:
        case YAML_STREAM_END_EVENT:
                return 1;
        default:
                return 0;
        }
}

static int next_event(struct lkg_yaml *p)
{
        yaml_event_t event;
        int r;

        if (!yaml_parser_parse(&p->parser, &event))
                return lkg_yaml_syntax_error(p);
        r = count_scan(p, &event);
        if (r == 0)
                r = on_event(p, &event);
        yaml_event_delete(&event);
        return r;
}

/* Upstream never looks behind the first document; a user who wrote a second one should know. */
static void look_behind(struct lkg_yaml *p)
{
        struct lkg_where where;
        yaml_event_t event;
        bool more;

        if (!p->parser.stream_start_produced || p->parser.stream_end_produced)
                return; /* the stream had no document at all */
        if (!yaml_parser_parse(&p->parser, &event)) {
                more = true;
                where = where_of(p, line_of(p->parser.problem_mark), column_of(p->parser.problem_mark));
        } else {
                more = event.type != YAML_STREAM_END_EVENT;
                where = where_of(p, line_of(event.start_mark), column_of(event.start_mark));
                yaml_event_delete(&event);
        }
        if (more)
                lkg_report_add(p->report, LKG_WARNING, LKG_C_MORE_DOCUMENTS, &where,
                               "only the first document of a file counts; what follows here is ignored");
}

static void parse_deinit(struct lkg_yaml *p)
{
        while (p->n_frames > 0)
                frame_deinit(&p->frames[--p->n_frames]);
        free(p->frames);
        for (size_t i = 0; i < p->n_anchors; i++)
                lkg_value_unref(p->anchors[i].value);
        free(p->anchors);
        lkg_value_unref(p->anchor_index);
        lkg_value_unref(p->root);
        yaml_parser_delete(&p->parser);
}

int lkg_decode_yaml(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                    struct lkg_report *report, struct lkg_value **ret)
{
        struct lkg_yaml p = {
                .data = data, .size = size, .flags = flags, .source = source, .report = report
        };
        int r = 0;

        if (size > LKG_DOC_BYTES_MAX)
                return fail_at(&p, LKG_C_LIMIT, 0, 0, "the document has %zu bytes; the limit is %u", size,
                               LKG_DOC_BYTES_MAX);
        if (!yaml_parser_initialize(&p.parser))
                return -ENOMEM;
        yaml_parser_set_input_string(&p.parser, (const unsigned char *)data, size);
        if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
                p.index_bytes = 3; /* marks do not count the byte order mark */
        while (r == 0)
                r = next_event(&p);
        if (r > 0)
                look_behind(&p);
        if (r > 0 && p.failed)
                r = -EBADMSG;
        if (r > 0) {
                *ret = p.root ? LKG_STEAL(p.root) : lkg_value_new_null(source, 1, 1);
                r = *ret ? 0 : -ENOMEM;
        }
        parse_deinit(&p);
        return r;
}
