/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML -> value tree, the way sigs.k8s.io/yaml over go.yaml.in/yaml/v2 reads it (reference: their decode.go and
 * resolve.go): the first document only, YAML 1.1 scalars, stringified keys, last duplicate wins, merge keys that
 * override what stands before them, the alias bomb guard.
 *
 * libyaml's event parser does the syntax. Events build the tree through an explicit stack of open collections. An
 * alias shares the finished subtree of its anchor; what upstream would have decoded again is only counted, so a bomb
 * costs its text and not its expansion.
 *
 * Messages never quote values (they may be secrets), only keys, anchors and tags.
 */
#include <yaml.h>

#include "internal.h"

#define TAG_PREFIX "tag:yaml.org,2002:"
#define SCAN_MAX   UINT64_C(200000000) /* open flow collections, added up over all events; about a second */

/* One open collection. */
struct frame {
        struct lkg_value *value;
        struct lkg_value
                *merged_types; /* map: key text -> type of keys that are not strings; NULL if none */
        char *key;             /* map: the key that waits for its value; NULL = a key is next */
        size_t key_size;
        enum lkg_scalar_type key_type;
        unsigned key_line, key_column;
        bool merge; /* map: the value of `<<` comes next */
        bool block; /* block style: shown at the place of its key */
        char *anchor;
        uint64_t n_before; /* decoded nodes when it was opened */
};

/* An anchor is open (value NULL) from its node's first event on. */
struct anchor {
        struct lkg_value *value;
        enum lkg_scalar_type type; /* of a scalar, for its use as a key */
        uint64_t n_nodes;          /* what decoding it again costs */
};

struct parse {
        yaml_parser_t parser;
        const char *data;
        size_t size;
        unsigned flags;
        struct lkg_source *source;
        struct lkg_report *report;
        struct frame *frames;
        size_t n_frames, n_frames_allocated;
        struct anchor *anchors;
        size_t n_anchors, n_anchors_allocated;
        struct lkg_value
                *anchor_index; /* map: name -> number of the anchor; linear search would be quadratic */
        uint64_t n_scanned;    /* what libyaml's scanner had to look at, see count_scan() */
        size_t flow_depth;
        struct lkg_value *root;
        uint64_t n_decoded, n_aliased;   /* as upstream's guard counts them */
        uint64_t n_values;               /* in the tree with aliases expanded */
        size_t index_chars, index_bytes; /* a position in the text both ways; moves forward only */
        bool failed;                     /* a finding that makes the document unusable was reported */
};

/* ---- findings ---- */

static struct lkg_where where_of(const struct parse *p, unsigned line, unsigned column)
{
        return (struct lkg_where){ p->source ? p->source->file : NULL, line, column };
}

#define fail_at(p, code, line, column, ...)                                         \
        ({                                                                          \
                struct lkg_where _where = where_of(p, line, column);                \
                lkg_report_add((p)->report, LKG_ERROR, code, &_where, __VA_ARGS__); \
                (p)->failed = true;                                                 \
                -EBADMSG;                                                           \
        })

static unsigned line_of(yaml_mark_t mark)
{
        return (unsigned)mark.line + 1;
}

static unsigned column_of(yaml_mark_t mark)
{
        return (unsigned)mark.column + 1;
}

/* What would be right, for the parser's most frequent complaints. */
static const struct {
        const char *problem, *advice;
} advices[] = {
        { "mapping values are not allowed in this context",
          "a value that contains ': ' must be quoted, and a nested key belongs on its own, deeper indented "
          "line" },
        { "found character that cannot start any token",
          "indent with spaces, not tabs, and quote a value that starts with @, ` or %" },
        { "found a tab character that violates indentation", "indent with spaces, not tabs" },
        { "found a tab character where an indentation space is expected", "indent with spaces, not tabs" },
        { "could not find expected ':'", "write 'key: value', with a space after the colon" },
        { "did not find expected key",
          "the line is indented differently from its neighbours, or a quote or bracket "
          "before it is not closed" },
        { "did not find expected '-' indicator", "all items of a list start in the same column" },
        { "did not find expected ',' or ']'", "close the list with ]" },
        { "did not find expected ',' or '}'", "close the map with }" },
        { "did not find expected node content", "a value is missing between two commas" },
        { "found unexpected end of stream", "a quote or bracket is not closed" },
        { "found unknown escape character",
          "in double quotes write a backslash as \\\\, or use single quotes" },
        { "control characters are not allowed", "save the file as plain UTF-8 text" },
        { "block sequence entries are not allowed in this context",
          "start the list on the line below its key" },
        { "found incompatible YAML document", "remove the %YAML line, or write %YAML 1.1" },
};

static const char *advice_for(const char *problem)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(advices); i++)
                if (strcmp(advices[i].problem, problem) == 0)
                        return advices[i].advice;
        return NULL;
}

/* The reader knows only a byte offset. */
static void place_of_offset(const struct parse *p, size_t offset, unsigned *ret_line, unsigned *ret_column)
{
        unsigned line = 1, column = 1;

        for (size_t i = 0; i < offset && i < p->size; i++) {
                if (p->data[i] == '\n') {
                        line++;
                        column = 1;
                } else if (((unsigned char)p->data[i] & 0xc0) != 0x80) {
                        column++;
                }
        }
        *ret_line = line;
        *ret_column = column;
}

static int syntax_error(struct parse *p)
{
        const char *problem = p->parser.problem ? p->parser.problem : "not readable as YAML";
        const char *advice = advice_for(problem);
        unsigned line, column;

        if (p->parser.error == YAML_MEMORY_ERROR)
                return -ENOMEM;
        if (p->parser.error == YAML_READER_ERROR) {
                place_of_offset(p, p->parser.problem_offset, &line, &column);
                if (p->parser.problem_offset < p->size && p->data[p->parser.problem_offset] == '\0')
                        return fail_at(p, LKG_C_BYTES, line, column,
                                       "a NUL byte; this is no text file, save it as plain UTF-8 text");
                return fail_at(p, LKG_C_BYTES, line, column, "%s; save the file as plain UTF-8 text",
                               problem);
        }
        line = line_of(p->parser.problem_mark);
        column = column_of(p->parser.problem_mark);
        if (p->parser.context && p->parser.context_mark.line != p->parser.problem_mark.line)
                return fail_at(p, LKG_C_SYNTAX, line, column, "%s (%s that starts on line %u)%s%s", problem,
                               p->parser.context, line_of(p->parser.context_mark), advice ? "; " : "",
                               advice ? advice : "");
        return fail_at(p, LKG_C_SYNTAX, line, column, "%s%s%s", problem, advice ? "; " : "",
                       advice ? advice : "");
}

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

static int count_nodes(struct parse *p, uint64_t n, bool aliased, unsigned line, unsigned column)
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
 * For each token libyaml's scanner looks at every open flow collection. Ten thousand of them around a million values
 * would keep it busy for an hour, so the product is limited as well.
 */
static int count_scan(struct parse *p, const yaml_event_t *event)
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

static struct anchor *anchor_find(struct parse *p, const char *name)
{
        const struct lkg_value *at = p->anchor_index ? lkg_map_get(p->anchor_index, name) : NULL;

        return at ? &p->anchors[strtoul(lkg_value_text(at, NULL), NULL, 10)] : NULL;
}

static int anchor_remember(struct parse *p, const char *name)
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

/* Opens an anchor; a name that is used again is another anchor from here on. */
static int anchor_open(struct parse *p, const char *name)
{
        struct anchor *a = anchor_find(p, name);

        if (a) {
                a->value = lkg_value_unref(a->value);
                return 0;
        }
        if (p->n_anchors == p->n_anchors_allocated) {
                size_t n = p->n_anchors_allocated ? 2 * p->n_anchors_allocated : 8;
                struct anchor *anchors = reallocarray(p->anchors, n, sizeof(*anchors));

                if (!anchors)
                        return -ENOMEM;
                p->anchors = anchors;
                p->n_anchors_allocated = n;
        }
        if (anchor_remember(p, name) < 0)
                return -ENOMEM;
        p->anchors[p->n_anchors++] = (struct anchor){ 0 };
        return 0;
}

static void anchor_close(struct parse *p, const char *name, struct lkg_value *value,
                         enum lkg_scalar_type type, uint64_t n_nodes)
{
        struct anchor *a = anchor_find(p, name);

        if (!a)
                return;
        a->value = lkg_value_ref(value);
        a->type = type;
        a->n_nodes = n_nodes;
}

/* ---- scalars ---- */

static bool is_tag(const char *tag, const char *name)
{
        return tag && strncmp(tag, TAG_PREFIX, strlen(TAG_PREFIX)) == 0 &&
               strcmp(tag + strlen(TAG_PREFIX), name) == 0;
}

static int base64_value(char c)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) : -1;
}

/* Go's base64.StdEncoding: padded, line breaks ignored. @to has room for 3/4 of @size. Return: bytes, or -1. */
static ssize_t base64_decode(const char *from, size_t size, char *to)
{
        size_t n = 0, n_digits = 0, n_pad = 0;
        uint32_t bits = 0;

        for (size_t i = 0; i < size; i++) {
                int v;

                if (from[i] == '\n' || from[i] == '\r')
                        continue;
                if (from[i] == '=') {
                        n_pad++;
                        continue;
                }
                v = base64_value(from[i]);
                if (v < 0 || n_pad > 0)
                        return -1;
                bits = bits << 6 | (uint32_t)v;
                if (++n_digits % 4 == 0) {
                        to[n++] = (char)(bits >> 16);
                        to[n++] = (char)(bits >> 8);
                        to[n++] = (char)bits;
                }
        }
        if ((n_digits + n_pad) % 4 != 0 || n_pad > 2)
                return -1;
        if (n_digits % 4 == 2)
                to[n++] = (char)(bits >> 4);
        if (n_digits % 4 == 3) {
                to[n++] = (char)(bits >> 10);
                to[n++] = (char)(bits >> 2);
        }
        return (ssize_t)n;
}

/* Bytes to a string in which what is not UTF-8 is U+FFFD, as Go's JSON encoder writes it. */
static struct lkg_value *string_from_bytes(struct parse *p, const char *bytes, size_t size, unsigned line,
                                           unsigned column)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        uint32_t c;

        for (size_t i = 0; i < size;) {
                size_t n = lkg_utf8_decode((const unsigned char *)bytes + i, size - i, &c);

                if (n == 0)
                        lkg_buf_puts(&buf, "\xef\xbf\xbd");
                else
                        lkg_buf_append(&buf, bytes + i, n);
                i += n ? n : 1;
        }
        return lkg_buf_failed(&buf) ? NULL
                                    : lkg_value_new_string(buf.data, buf.size, p->source, line, column);
}

static int binary_value(struct parse *p, const char *text, size_t size, unsigned line, unsigned column,
                        struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_freep) char *bytes = malloc(size + 3);
        ssize_t n;

        if (!bytes)
                return -ENOMEM;
        n = base64_decode(text, size, bytes);
        if (n < 0)
                return fail_at(p, LKG_C_SCALAR, line, column, "a !!binary value must be base64");
        *ret = string_from_bytes(p, bytes, (size_t)n, line, column);
        return *ret ? 0 : -ENOMEM;
}

/* An explicit tag must fit what the text is; !!float takes integers as well. */
static int check_tag(struct parse *p, const char *tag, const char *text, size_t size,
                     struct lkg_scalar *scalar, unsigned line, unsigned column)
{
        static const struct {
                const char *tag;
                enum lkg_scalar_type type;
                const char *want;
        } tags[] = {
                { "bool", LKG_S_BOOL, "true or false" },
                { "int", LKG_S_INT, "a whole number" },
                { "float", LKG_S_FLOAT, "a number" },
                { "null", LKG_S_NULL, "null or nothing" },
        };

        if (is_tag(tag, "timestamp")) {
                if (!lkg_scalar_is_timestamp(text, size))
                        return fail_at(p, LKG_C_SCALAR, line, column,
                                       "the value does not fit its tag !!timestamp (want 2001-01-31)");
                scalar->type = LKG_S_STRING;
                return 0;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(tags); i++) {
                if (!is_tag(tag, tags[i].tag))
                        continue;
                if (tags[i].type == LKG_S_FLOAT && scalar->type == LKG_S_INT && !scalar->big) {
                        scalar->type = LKG_S_FLOAT;
                        lkg_float_json(scalar->d, scalar->text);
                }
                if (scalar->type != tags[i].type)
                        return fail_at(p, LKG_C_SCALAR, line, column,
                                       "the value does not fit its tag !!%s (want %s)", tags[i].tag,
                                       tags[i].want);
                return 0;
        }
        scalar->type = LKG_S_STRING; /* !!str, and every tag unknown to upstream */
        return 0;
}

static int resolve(struct parse *p, const yaml_event_t *event, struct lkg_scalar *scalar, unsigned line,
                   unsigned column)
{
        const char *text = (const char *)event->data.scalar.value;
        const char *tag = (const char *)event->data.scalar.tag;
        size_t size = event->data.scalar.length;

        if (!tag && !event->data.scalar.plain_implicit) {
                *scalar = (struct lkg_scalar){ .type = LKG_S_STRING, .finite = true };
                return 0;
        }
        lkg_scalar_resolve(text, size, scalar);
        return tag ? check_tag(p, tag, text, size, scalar, line, column) : 0;
}

static int number_value(struct parse *p, const struct lkg_scalar *scalar, unsigned line, unsigned column,
                        struct lkg_value **ret)
{
        char untyped[LKG_NUMBER_TEXT_MAX];
        const char *text = scalar->text;

        if (!scalar->finite)
                return fail_at(
                        p, LKG_C_SCALAR, line, column,
                        "infinity and not-a-number have no JSON form; write a number, or quote a word");
        if ((p->flags & LKG_DECODE_UNTYPED) && lkg_number_untyped(text, untyped) == 0)
                text = untyped;
        *ret = lkg_value_new_number(text, p->source, line, column);
        return *ret ? 0 : -ENOMEM;
}

/*
 * libyaml takes the escape `\/`, go-yaml v2 does not. The event has lost the escapes, so the source text is looked at;
 * marks count characters, the text bytes.
 */
static bool has_slash_escape(struct parse *p, const yaml_event_t *event)
{
        size_t start, end;

        if (event->data.scalar.style != YAML_DOUBLE_QUOTED_SCALAR_STYLE ||
            p->parser.encoding != YAML_UTF8_ENCODING)
                return false;
        while (p->index_chars < event->start_mark.index && p->index_bytes < p->size) {
                p->index_bytes++;
                while (p->index_bytes < p->size && ((unsigned char)p->data[p->index_bytes] & 0xc0) == 0x80)
                        p->index_bytes++;
                p->index_chars++;
        }
        end = p->index_bytes + (event->end_mark.index - event->start_mark.index) * 4;
        if (end > p->size)
                end = p->size;
        start = p->index_bytes;
        while (start < end && p->data[start] != '"') /* an anchor or a tag stands before the quote */
                start++;
        for (size_t i = start + 1; i + 1 < end && p->data[i] != '"'; i++) {
                if (p->data[i] != '\\')
                        continue;
                if (p->data[++i] == '/')
                        return true;
        }
        return false;
}

static int scalar_value(struct parse *p, const yaml_event_t *event, const struct lkg_scalar *scalar,
                        unsigned line, unsigned column, struct lkg_value **ret)
{
        const char *text = (const char *)event->data.scalar.value;
        size_t size = event->data.scalar.length;

        if (is_tag((const char *)event->data.scalar.tag, "binary"))
                return binary_value(p, text, size, line, column, ret);
        switch (scalar->type) {
        case LKG_S_NULL:
                *ret = lkg_value_new_null(p->source, line, column);
                break;
        case LKG_S_BOOL:
                *ret = lkg_value_new_bool(scalar->b, p->source, line, column);
                break;
        case LKG_S_INT:
        case LKG_S_FLOAT:
                return number_value(p, scalar, line, column, ret);
        case LKG_S_STRING:
        case LKG_S_MERGE:
                *ret = lkg_value_new_string(text, size, p->source, line, column);
                break;
        }
        return *ret ? 0 : -ENOMEM;
}

/* ---- the tree ---- */

static struct frame *top(struct parse *p)
{
        return p->n_frames > 0 ? &p->frames[p->n_frames - 1] : NULL;
}

static int push(struct parse *p, struct lkg_value *value, const char *anchor, bool block)
{
        struct frame *f;

        if (!value)
                return -ENOMEM;
        if (p->n_frames == p->n_frames_allocated) {
                size_t n = p->n_frames_allocated ? 2 * p->n_frames_allocated : 16;
                struct frame *frames = reallocarray(p->frames, n, sizeof(*frames));

                if (!frames) {
                        lkg_value_unref(value);
                        return -ENOMEM;
                }
                p->frames = frames;
                p->n_frames_allocated = n;
        }
        f = &p->frames[p->n_frames++];
        *f = (struct frame){ .value = value, .block = block, .n_before = p->n_decoded };
        if (anchor) {
                f->anchor = strdup(anchor);
                if (!f->anchor)
                        return -ENOMEM;
                return anchor_open(p, anchor);
        }
        return 0;
}

static void frame_deinit(struct frame *f)
{
        lkg_value_unref(f->value);
        lkg_value_unref(f->merged_types);
        free(f->key);
        free(f->anchor);
}

/* Collisions of different key types (`1:` and `"1":`) are not duplicates to upstream: last wins, silently. */
static bool same_key_type(const struct frame *f)
{
        const struct lkg_value *type;
        char c = (char)('0' + f->key_type);

        type = f->merged_types ? lkg_map_get_n(f->merged_types, f->key, f->key_size) : NULL;
        return type ? lkg_value_text(type, NULL)[0] == c : f->key_type == LKG_S_STRING;
}

static int note_key_type(struct frame *f)
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

static void report_duplicate(struct parse *p, const struct frame *f, const struct lkg_value *earlier)
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
static int map_put(struct parse *p, struct frame *f, struct lkg_value *value)
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

/* `<<`: every member of @from is set in the map, also over what stands before it (upstream's order-sensitive rule). */
static int merge_map(struct parse *p, struct frame *f, const struct lkg_value *from)
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

static int merge_value(struct parse *p, struct frame *f, struct lkg_value *value, unsigned line,
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
static int attach(struct parse *p, struct lkg_value *value, bool is_alias, unsigned line, unsigned column)
{
        struct frame *f = top(p);

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

static int set_key(struct parse *p, struct frame *f, const char *text, size_t size,
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
static int key_from_scalar(struct parse *p, struct frame *f, const struct lkg_value *value,
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
static int key_from_alias(struct parse *p, struct frame *f, const struct anchor *a, unsigned line,
                          unsigned column)
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
static bool wants_key(const struct frame *f)
{
        return f && lkg_value_type(f->value) == LKG_MAP && !f->key && !f->merge;
}

/* ---- events ---- */

static int on_scalar(struct parse *p, const yaml_event_t *event)
{
        unsigned line = line_of(event->start_mark), column = column_of(event->start_mark);
        const char *anchor = (const char *)event->data.scalar.anchor;
        const char *tag = (const char *)event->data.scalar.tag;
        struct lkg_value *value = NULL;
        struct frame *f = top(p);
        struct lkg_scalar scalar;
        int r;

        if (has_slash_escape(p, event))
                return fail_at(p, LKG_C_SYNTAX, line, column,
                               "the escape \\/ is not known in YAML 1.1; write / alone");
        r = resolve(p, event, &scalar, line, column);
        if (r < 0)
                return r;
        if (wants_key(f) && event->data.scalar.length == 2 &&
            memcmp(event->data.scalar.value, "<<", 2) == 0 &&
            (event->data.scalar.plain_implicit || is_tag(tag, "merge"))) {
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
        r = scalar_value(p, event, &scalar, line, column, &value);
        if (r < 0)
                return r;
        if (anchor) {
                r = anchor_open(p, anchor);
                if (r < 0) {
                        lkg_value_unref(value);
                        return r;
                }
                anchor_close(p, anchor, value, is_tag(tag, "binary") ? LKG_S_STRING : scalar.type, 1);
        }
        if (!wants_key(f))
                return attach(p, value, false, line, column);
        r = key_from_scalar(p, f, value, &scalar, line, column);
        lkg_value_unref(value);
        return r;
}

static int on_alias(struct parse *p, const yaml_event_t *event)
{
        unsigned line = line_of(event->start_mark), column = column_of(event->start_mark);
        const char *name = (const char *)event->data.alias.anchor;
        const struct anchor *a = anchor_find(p, name);
        struct frame *f = top(p);
        char quoted[5 * 64 + 8];
        int r;

        if (!a)
                return fail_at(
                        p, LKG_C_ANCHOR, line, column,
                        "alias of the unknown anchor %s; an anchor stands before its aliases, as &name",
                        lkg_quote(name, strlen(name), quoted));
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

static int on_start(struct parse *p, const yaml_event_t *event, bool map)
{
        unsigned line = line_of(event->start_mark), column = column_of(event->start_mark);
        const char *anchor =
                (const char *)(map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor);
        bool block = map ? event->data.mapping_start.style == YAML_BLOCK_MAPPING_STYLE
                         : event->data.sequence_start.style == YAML_BLOCK_SEQUENCE_STYLE;
        uint64_t before = p->n_decoded;
        struct frame *f = top(p);
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

static int on_end(struct parse *p, const yaml_event_t *event)
{
        struct frame f = p->frames[--p->n_frames];
        struct lkg_value *value = LKG_STEAL(f.value);
        int r;

        if (!f.block)
                p->flow_depth--;
        if (f.anchor)
                anchor_close(p, f.anchor, value, LKG_S_STRING, p->n_decoded - f.n_before);
        r = attach(p, value, false, line_of(event->start_mark), column_of(event->start_mark));
        frame_deinit(&f);
        return r;
}

static int on_document_start(struct parse *p, const yaml_event_t *event)
{
        const yaml_version_directive_t *version = event->data.document_start.version_directive;

        if (version && (version->major != 1 || version->minor != 1))
                return fail_at(p, LKG_C_SYNTAX, line_of(event->start_mark), column_of(event->start_mark),
                               "found incompatible YAML document; %s",
                               advice_for("found incompatible YAML document"));
        return count_nodes(p, 1, false, 1, 1);
}

/* One event. Return: 1 at the end of the first document, 0 to go on, negative on failure. */
static int on_event(struct parse *p, const yaml_event_t *event)
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

static int next_event(struct parse *p)
{
        yaml_event_t event;
        int r;

        if (!yaml_parser_parse(&p->parser, &event))
                return syntax_error(p);
        r = count_scan(p, &event);
        if (r == 0)
                r = on_event(p, &event);
        yaml_event_delete(&event);
        return r;
}

/* Upstream never looks behind the first document; a user who wrote a second one should know. */
static void look_behind(struct parse *p)
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

static void parse_deinit(struct parse *p)
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
        struct parse p = { .data = data, .size = size, .flags = flags, .source = source, .report = report };
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
