/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML -> value tree, the way sigs.k8s.io/yaml over go.yaml.in/yaml/v2 reads it (reference: their decode.go
 * and resolve.go): the first document only, YAML 1.1 scalars, stringified keys, last duplicate wins, merge
 * keys that override earlier keys, the guard against alias bombs.
 *
 * yaml-parse.c does the syntax. Its events build the tree through an explicit stack of open collections. An
 * alias shares the finished subtree of its anchor; values that upstream would decode again are only counted,
 * so a bomb costs its text and not its expansion.
 *
 * Messages never quote values (they may be secrets), only keys, anchors and tags.
 */
#include "yaml-state.h"

#include <lkg/base.h>

/* One open collection. */
struct lkg_yaml_frame {
        struct lkg_value *value;
        struct lkg_yaml_span key; /* map: waits for its value if @has_key */
        unsigned key_line, key_column;
        bool has_key;
        bool typed;        /* map: some keys are not strings, see lkg_yaml_key() */
        bool merge;        /* map: the value of `<<` comes next */
        bool merging;      /* list: it is the value of `<<`, its maps keep the types of their keys */
        bool block;        /* block style: shown at the place of its key */
        size_t anchor;     /* number of its anchor, or SIZE_MAX */
        uint64_t n_before; /* decoded nodes when it was opened */
};

/* An anchor is open (value NULL) from the first event of its node. */
struct lkg_yaml_anchor {
        struct lkg_value *value;
        struct lkg_value *typed;   /* a map whose keys are not all strings, as it was built; else NULL */
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

/* ---- anchors ---- */

static struct lkg_yaml_anchor *anchor_find(struct lkg_yaml *p, struct lkg_yaml_span name)
{
        const struct lkg_value *at =
                p->anchor_index ? lkg_map_get_n(p->anchor_index, name.text, name.size) : NULL;

        return at ? &p->anchors[strtoul(lkg_value_text(at, NULL), NULL, 10)] : NULL;
}

static int anchor_remember(struct lkg_yaml *p, struct lkg_yaml_span name)
{
        char number[24];
        int r;

        if (!p->anchor_index)
                p->anchor_index = lkg_value_new_map(NULL, 0, 0);
        if (!p->anchor_index)
                return -ENOMEM;
        (void)snprintf(number, sizeof(number), "%zu", p->n_anchors);
        r = lkg_map_set(p->anchor_index, name.text, name.size, lkg_value_new_number(number, NULL, 0, 0));
        return r < 0 ? r : 0;
}

/* Open an anchor; a repeated name is another anchor from here on, even inside its own node. */
static int anchor_open(struct lkg_yaml *p, struct lkg_yaml_span name, size_t *ret_number)
{
        if (LKG_RESERVE(p->anchors, p->n_anchors, p->n_anchors_allocated) < 0)
                return -ENOMEM;
        if (anchor_remember(p, name) < 0)
                return -ENOMEM;
        *ret_number = p->n_anchors++;
        p->anchors[*ret_number] = (struct lkg_yaml_anchor){ 0 };
        return 0;
}

static void anchor_close(struct lkg_yaml *p, size_t number, struct lkg_value *value, struct lkg_value *typed,
                         enum lkg_scalar_type type, uint64_t n_nodes)
{
        p->anchors[number] =
                (struct lkg_yaml_anchor){ lkg_value_ref(value), lkg_value_ref(typed), type, n_nodes };
}

/* ---- the tree ---- */

static struct lkg_yaml_frame *top(struct lkg_yaml *p)
{
        return p->n_frames > 0 ? &p->frames[p->n_frames - 1] : NULL;
}

/* Takes over @value, also on failure. */
static int push(struct lkg_yaml *p, struct lkg_value *value, const struct lkg_yaml_event *event,
                uint64_t n_before)
{
        struct lkg_yaml_frame *f;

        if (!value)
                return -ENOMEM;
        if (LKG_RESERVE(p->frames, p->n_frames, p->n_frames_allocated) < 0) {
                lkg_value_unref(value);
                return -ENOMEM;
        }
        f = &p->frames[p->n_frames++];
        *f = (struct lkg_yaml_frame){ .value = value, .block = event->block, .n_before = n_before };
        f->anchor = SIZE_MAX;
        return event->anchor.size > 0 ? anchor_open(p, event->anchor, &f->anchor) : 0;
}

/*
 * Report duplicate keys: an error if the component refuses them (drop-ins); else the last one counts, with a
 * warning.
 */
static void report_duplicate(struct lkg_yaml *p, const struct lkg_yaml_frame *f,
                             const struct lkg_value *earlier)
{
        struct lkg_where where = where_of(p, f->key_line, f->key_column);
        bool strict = p->flags & LKG_DECODE_STRICT;
        char quoted[5 * 64 + 8], number[LKG_NUMBER_TEXT_MAX];
        struct lkg_yaml_span key = lkg_yaml_plain_key(f->key.text, f->key.size, number);

        lkg_report_add(p->report, strict ? LKG_ERROR : LKG_WARNING,
                       strict ? LKG_C_DUPLICATE_HARD : LKG_C_DUPLICATE, &where,
                       strict ? "key %s is already set on line %u; keep one of the two"
                              : "key %s is already set on line %u; the last one counts",
                       lkg_quote(key.text, key.size, quoted), lkg_value_line(earlier));
        if (strict)
                p->failed = true;
}

/* Put @value (taken over) under the frame's waiting key. */
static int map_put(struct lkg_yaml *p, struct lkg_yaml_frame *f, struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *earlier = NULL;
        int r;

        f->typed = f->typed || lkg_yaml_key_is_typed(f->key.text, f->key.size);
        r = lkg_map_replace(f->value, f->key.text, f->key.size, value, &earlier);
        if (earlier)
                report_duplicate(p, f, earlier);
        f->has_key = false;
        return r < 0 ? r : 0;
}

/*
 * `<<`: set every member of @from in the map, also over earlier members (upstream's order-sensitive rule).
 */
static int merge_map(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_value *from)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < lkg_value_size(from); i++) {
                struct lkg_value *value = lkg_map_at(from, i, &f->key.text, &f->key.size);

                f->key_line = lkg_value_line(value);
                f->key_column = lkg_value_column(value);
                r = map_put(p, f, lkg_value_ref(value));
        }
        return r;
}

static int merge_refused(struct lkg_yaml *p, unsigned line, unsigned column)
{
        return fail_at(p, LKG_C_ANCHOR, line, column,
                       "the value of '<<' must be a map, an alias of a map, or a list of those");
}

/*
 * @from: with typed keys, if it has any. Upstream refuses an alias of a list, but not a list of aliases.
 */
static int merge_value(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_value *from,
                       bool is_alias, struct lkg_yaml_mark at)
{
        int r = 0;

        f->merge = false;
        if (lkg_value_type(from) == LKG_MAP)
                return merge_map(p, f, from);
        if (lkg_value_type(from) != LKG_LIST || is_alias)
                return merge_refused(p, line_of(at), column_of(at));
        for (size_t i = lkg_value_size(from); i-- > 0 && r == 0;) { /* earlier items win */
                const struct lkg_value *item = lkg_list_get(from, i);

                r = lkg_value_type(item) == LKG_MAP
                            ? merge_map(p, f, item)
                            : merge_refused(p, lkg_value_line(item), lkg_value_column(item));
        }
        return r;
}

/* Attach a finished value. Both references are taken over; @typed may be NULL. */
static int attach(struct lkg_yaml *p, struct lkg_value *value, struct lkg_value *typed, bool is_alias,
                  struct lkg_yaml_mark at)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *plain = value;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *as_built = typed;
        struct lkg_yaml_frame *f = top(p);

        if (!f) {
                p->root = LKG_STEAL(plain);
                return 0;
        }
        if (lkg_value_type(f->value) == LKG_LIST)
                return lkg_list_append(f->value,
                                       f->merging && as_built ? LKG_STEAL(as_built) : LKG_STEAL(plain));
        if (f->merge)
                return merge_value(p, f, as_built ? as_built : plain, is_alias, at);
        return map_put(p, f, LKG_STEAL(plain));
}

/* ---- keys ---- */

/* Does this frame wait for a key? */
static bool wants_key(const struct lkg_yaml_frame *f)
{
        return f && lkg_value_type(f->value) == LKG_MAP && !f->has_key && !f->merge;
}

static void set_key(struct lkg_yaml_frame *f, struct lkg_yaml_span key, struct lkg_yaml_mark at)
{
        f->has_key = true;
        f->key = key;
        f->key_line = line_of(at);
        f->key_column = column_of(at);
}

static int key_from_value(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_value *value,
                          const struct lkg_scalar *scalar, struct lkg_yaml_mark at)
{
        struct lkg_yaml_span key;
        int r = lkg_yaml_key(p, value, scalar, at, &key);

        if (r == 0)
                set_key(f, key, at);
        return r;
}

/* An alias used as a key: its type is the type of the anchored scalar. */
static int key_from_alias(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_yaml_anchor *a,
                          struct lkg_yaml_mark at)
{
        struct lkg_scalar scalar = { .type = a->type, .finite = true };
        enum lkg_type type = lkg_value_type(a->value);

        if (type == LKG_LIST || type == LKG_MAP)
                return fail_at(p, LKG_C_KEY, line_of(at), column_of(at), "a %s cannot be a key",
                               lkg_type_name(type));
        if (type == LKG_BOOL)
                scalar.b = lkg_value_bool(a->value);
        if (type == LKG_NUMBER)
                lkg_scalar_resolve(lkg_value_text(a->value, NULL), strlen(lkg_value_text(a->value, NULL)),
                                   &scalar);
        scalar.type = a->type;
        return key_from_value(p, f, a->value, &scalar, at);
}

static bool is_merge_key(const struct lkg_yaml_event *event)
{
        return event->value.size == 2 && memcmp(event->value.text, "<<", 2) == 0 &&
               (event->plain || lkg_yaml_is_tag(event->tag, "merge"));
}

/* ---- events ---- */

/* The anchor of a scalar is complete immediately. */
static int anchor_scalar(struct lkg_yaml *p, const struct lkg_yaml_event *event, struct lkg_value *value,
                         enum lkg_scalar_type type)
{
        size_t number;
        int r;

        if (event->anchor.size == 0)
                return 0;
        r = anchor_open(p, event->anchor, &number);
        if (r == 0)
                anchor_close(p, number, value, NULL, type, 1);
        return r;
}

/* A text key needs no value of its own. */
static bool is_text_key(const struct lkg_yaml_event *event, const struct lkg_scalar *scalar)
{
        return scalar->type == LKG_S_STRING && event->anchor.size == 0 &&
               !lkg_yaml_is_tag(event->tag, "binary");
}

/*
 * What looks like quotes or white space around a text and belongs to it. The text is not quoted in the message: it may be a secret.
 */
static void warn_of_lookalikes(struct lkg_yaml *p, const struct lkg_yaml_event *event, bool key)
{
        const unsigned char *text = (const unsigned char *)event->value.text;
        size_t size = event->value.size, last = size;
        struct lkg_where where = where_of(p, line_of(event->at), column_of(event->at));
        char name[LKG_CHARACTER_NAME_MAX];
        uint32_t begin = 0, end = 0;

        if (!event->plain || !p->parse.scan.text.wide || size == 0)
                return;
        while (last > 0 && (text[--last] & 0xc0) == 0x80)
                ;
        (void)lkg_utf8_decode(text, size, &begin);
        (void)lkg_utf8_decode(text + last, size - last, &end);
        if (lkg_lookalike_is(begin, "QUOTATION MARK") && lkg_lookalike(begin, name))
                lkg_report_add(p->report, LKG_WARNING, LKG_C_QUOTES, &where,
                               "this %s begins with U+%04X %s, which quotes nothing and belongs to it; "
                               "write \" or '",
                               key ? "key" : "value", begin, name);
        if (!lkg_lookalike_is(begin, "SPACE") && !lkg_lookalike_is(end, "SPACE"))
                return;
        (void)lkg_lookalike(lkg_lookalike_is(begin, "SPACE") ? begin : end, name);
        lkg_report_add(p->report, LKG_WARNING, LKG_C_SPACE, &where,
                       "this %s %s with U+%04X %s, which is no white space of YAML and belongs to it; write "
                       "plain spaces",
                       key ? "key" : "value", lkg_lookalike_is(begin, "SPACE") ? "begins" : "ends",
                       lkg_lookalike_is(begin, "SPACE") ? begin : end, name);
}

static int on_merge_key(struct lkg_yaml *p, struct lkg_yaml_frame *f, const struct lkg_yaml_event *event)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *value =
                lkg_value_new_string("<<", 2, p->source, line_of(event->at), column_of(event->at));

        f->merge = true;
        return value ? anchor_scalar(p, event, value, LKG_S_STRING) : -ENOMEM;
}

static int on_scalar(struct lkg_yaml *p, const struct lkg_yaml_event *event)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        struct lkg_yaml_frame *f = top(p);
        struct lkg_scalar scalar;
        int r;

        if (wants_key(f) && is_merge_key(event))
                return on_merge_key(p, f, event);
        r = lkg_yaml_resolve(p, event, &scalar);
        if (r == 0)
                r = count_nodes(p, 1, false, line_of(event->at), column_of(event->at));
        if (r < 0)
                return r;
        warn_of_lookalikes(p, event, wants_key(f));
        if (wants_key(f) && is_text_key(event, &scalar)) {
                set_key(f, event->value, event->at);
                return 0;
        }
        r = lkg_yaml_scalar(p, event, &scalar, &value);
        if (r == 0)
                r = anchor_scalar(p, event, value, scalar.type);
        if (r < 0)
                return r;
        return wants_key(f) ? key_from_value(p, f, value, &scalar, event->at)
                            : attach(p, LKG_STEAL(value), NULL, false, event->at);
}

static int on_alias(struct lkg_yaml *p, const struct lkg_yaml_event *event)
{
        unsigned line = line_of(event->at), column = column_of(event->at);
        const struct lkg_yaml_anchor *a = anchor_find(p, event->anchor);
        struct lkg_yaml_frame *f = top(p);
        char quoted[5 * 64 + 8];
        int r;

        if (!a)
                /* Not quoted: a text that merely begins with '*' may be anything, even a credential. */
                return fail_at(p, LKG_C_ANCHOR, line, column,
                               "alias of an unknown anchor; an anchor stands before its aliases, as &name, "
                               "and a text "
                               "that begins with '*' needs quotes");
        if (!a->value)
                return fail_at(p, LKG_C_ANCHOR, line, column, "anchor %s contains itself",
                               lkg_quote(event->anchor.text, event->anchor.size, quoted));
        r = count_nodes(p, 1, false, line, column); /* the alias itself */
        if (r == 0)
                r = count_nodes(p, a->n_nodes, true, line, column);
        if (r < 0)
                return r;
        if (wants_key(f))
                return key_from_alias(p, f, a, event->at);
        return attach(p, lkg_value_ref(a->value), lkg_value_ref(a->typed), true, event->at);
}

static int on_start(struct lkg_yaml *p, const struct lkg_yaml_event *event, bool map)
{
        unsigned line = line_of(event->at), column = column_of(event->at);
        struct lkg_yaml_frame *f = top(p);
        bool merging = f && f->merge;
        uint64_t before = p->n_decoded;
        int r;

        if (wants_key(f))
                return fail_at(p, LKG_C_KEY, line, column,
                               "a %s cannot be a key; is a value in { } or [ ] not quoted?",
                               map ? "map" : "list");
        if (p->n_frames >= LKG_DOC_DEPTH_MAX)
                return fail_at(p, LKG_C_LIMIT, line, column, "nested deeper than %u levels",
                               LKG_DOC_DEPTH_MAX);
        /* The list of `<<: [..]` is not decoded as a value itself, only its items. */
        if (map || !merging) {
                r = count_nodes(p, 1, false, line, column);
                if (r < 0)
                        return r;
        }
        if (event->block && f && f->has_key) {
                line = f->key_line;
                column = f->key_column;
        }
        r = push(p,
                 map ? lkg_value_new_map(p->source, line, column)
                     : lkg_value_new_list(p->source, line, column),
                 event, before);
        if (r == 0)
                top(p)->merging = merging && !map;
        return r;
}

static int on_end(struct lkg_yaml *p, const struct lkg_yaml_event *event)
{
        struct lkg_yaml_frame f = p->frames[--p->n_frames];
        struct lkg_value *value = f.value, *typed = NULL;

        if (f.typed || f.merging) {
                typed = f.value;
                value = f.typed ? lkg_yaml_plain_map(p, typed) : lkg_yaml_plain_list(p, typed);
                if (!value) {
                        lkg_value_unref(typed);
                        return -ENOMEM;
                }
        }
        if (f.anchor != SIZE_MAX)
                anchor_close(p, f.anchor, value, typed, LKG_S_STRING, p->n_decoded - f.n_before);
        return attach(p, value, typed, false, event->at);
}

/* One event. Return: 1 at the end of the first document, 0 to go on, negative on failure. */
static int on_event(struct lkg_yaml *p, const struct lkg_yaml_event *event)
{
        switch (event->type) {
        case LKG_YE_DOCUMENT_START:
                return count_nodes(p, 1, false, 1, 1);
        case LKG_YE_SCALAR:
                return on_scalar(p, event);
        case LKG_YE_ALIAS:
                return on_alias(p, event);
        case LKG_YE_MAP_START:
                return on_start(p, event, true);
        case LKG_YE_LIST_START:
                return on_start(p, event, false);
        case LKG_YE_MAP_END:
        case LKG_YE_LIST_END:
                return on_end(p, event);
        case LKG_YE_NOTHING:
        case LKG_YE_DOCUMENT_END:
                break;
        }
        return 1;
}

static int read_events(struct lkg_yaml *p)
{
        struct lkg_yaml_event event;
        int r = 0;

        while (r == 0) {
                r = lkg_yaml_next(&p->parse, &event);
                if (r < 0)
                        return lkg_yaml_syntax_error(p, r);
                r = on_event(p, &event);
        }
        return r < 0 ? r : 0;
}

/* Upstream never reads beyond the first document; a user who wrote a second one should know. */
static void look_behind(struct lkg_yaml *p)
{
        struct lkg_yaml_mark at;
        struct lkg_where where;

        if (!lkg_yaml_has_more(&p->parse, &at))
                return;
        where = where_of(p, line_of(at), column_of(at));
        lkg_report_add(p->report, LKG_WARNING, LKG_C_MORE_DOCUMENTS, &where,
                       "only the first document of a file counts; what follows here is ignored");
}

static void deinit(struct lkg_yaml *p)
{
        while (p->n_frames > 0)
                lkg_value_unref(p->frames[--p->n_frames].value);
        free(p->frames);
        for (size_t i = 0; i < p->n_anchors; i++) {
                lkg_value_unref(p->anchors[i].value);
                lkg_value_unref(p->anchors[i].typed);
        }
        free(p->anchors);
        lkg_value_unref(p->anchor_index);
        lkg_value_unref(p->root);
        lkg_yaml_parse_deinit(&p->parse);
}

int lkg_decode_yaml(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                    struct lkg_report *report, struct lkg_value **ret)
{
        struct lkg_yaml p = {
                .data = data, .size = size, .flags = flags, .source = source, .report = report
        };
        int r;

        if (size > LKG_DOC_BYTES_MAX)
                return fail_at(&p, LKG_C_LIMIT, 0, 0, "the document has %zu bytes; the limit is %u", size,
                               LKG_DOC_BYTES_MAX);
        r = lkg_yaml_parse_init(&p.parse, data, size);
        if (r == 0)
                r = read_events(&p);
        if (r == 0)
                look_behind(&p);
        if (r == 0 && !p.root) {
                p.root = lkg_value_new_null(source, 1, 1);
                r = p.root ? 0 : -ENOMEM;
        }
        if (r == 0)
                r = lkg_yaml_check(&p, p.root);
        if (r == 0 && p.failed)
                r = -EBADMSG;
        if (r == 0)
                *ret = LKG_STEAL(p.root);
        deinit(&p);
        return r;
}
