/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML -> value tree, the way sigs.k8s.io/yaml over go.yaml.in/yaml/v2 reads it (reference: their decode.go
 * and resolve.go): the first document only, YAML 1.1 scalars, stringified keys, last duplicate wins, merge
 * keys that override earlier keys, the guard against alias bombs.
 *
 * yaml-parse.c does the syntax. An alias shares the finished subtree of its anchor; values that upstream would
 * decode again are only counted, so a bomb costs its text and not its expansion.
 *
 * Messages never quote values (they may be secrets), only keys, anchors and tags.
 */
#include "yaml-state.h"

#include <lkg/base.h>

/* What a node has become. */
struct tree {
        struct lkg_value *value; /* owned */
        /* owned: a map whose keys are not all strings, or a list of such, as it was built; else NULL */
        struct lkg_value *typed;
        bool alias;
        struct lkg_yaml_mark at;
};

static void tree_deinit(struct tree *tree)
{
        lkg_value_unref(tree->value);
        lkg_value_unref(tree->typed);
}

/* A map that is being read. */
struct map {
        struct lkg_value *value;
        struct lkg_span key; /* waits for its value */
        struct lkg_yaml_mark key_at;
        bool typed; /* some keys are not strings, see lkg_yaml_key() */
};

/* An anchor is open (value NULL) from the first event of its node. */
struct lkg_yaml_anchor {
        struct lkg_value *value;
        struct lkg_value *typed;   /* a map whose keys are not all strings, as it was built; else NULL */
        enum lkg_scalar_type type; /* of a scalar, for its use as a key */
        uint64_t n_nodes;          /* what decoding it again costs */
        unsigned height;           /* levels of lists and maps in it */
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

static int count_nodes(struct lkg_yaml *p, uint64_t n, bool aliased, struct lkg_yaml_mark at)
{
        p->n_decoded += n;
        if (aliased)
                p->n_aliased += n;
        if (aliased && p->n_aliased > LKG_ALIAS_INSIDE_MIN && p->n_decoded > LKG_ALIAS_DECODED_MIN &&
            (double)p->n_aliased / (double)p->n_decoded > alias_ratio_max(p->n_decoded))
                return fail_at(p, LKG_C_ALIAS_BOMB, at,
                               "the document consists mostly of aliases (%llu of %llu values); write the "
                               "values out",
                               (unsigned long long)p->n_aliased, (unsigned long long)p->n_decoded);
        if (p->n_decoded > LKG_DOC_NODES_MAX)
                return fail_at(p, LKG_C_LIMIT, at, "the document has more than %u values",
                               LKG_DOC_NODES_MAX);
        return 0;
}

/* ---- anchors ---- */

static struct lkg_yaml_anchor *anchor_find(struct lkg_yaml *p, struct lkg_span name)
{
        const struct lkg_value *at = p->anchor_index ? lkg_map_find(p->anchor_index, name) : NULL;

        return at ? &p->anchors[strtoul(lkg_value_text(at, NULL), NULL, 10)] : NULL;
}

/* Open an anchor; a repeated name is another anchor from here on, even inside its own node. */
static size_t anchor_open(struct lkg_yaml *p, struct lkg_span name)
{
        char number[24];

        if (name.size == 0)
                return SIZE_MAX;
        lkg_need(LKG_RESERVE(p->anchors, p->n_anchors, p->n_anchors_allocated));
        if (!p->anchor_index)
                p->anchor_index = lkg_value_new_map(NULL, 0, 0);
        (void)snprintf(number, sizeof(number), "%zu", p->n_anchors);
        (void)lkg_map_set(p->anchor_index, name.data, name.size, lkg_value_new_number(number, NULL, 0, 0));
        p->anchors[p->n_anchors] = (struct lkg_yaml_anchor){ 0 };
        return p->n_anchors++;
}

/* @anchor: its references are taken as well */
static void anchor_close(struct lkg_yaml *p, size_t number, struct lkg_yaml_anchor anchor)
{
        if (number == SIZE_MAX)
                return;
        (void)lkg_value_ref(anchor.value);
        (void)lkg_value_ref(anchor.typed);
        p->anchors[number] = anchor;
}

/* ---- the tree ---- */

/*
 * Report duplicate keys: an error if the component refuses them (drop-ins); else the last one counts, with a
 * warning.
 */
static void report_duplicate(struct lkg_yaml *p, const struct map *map, const struct lkg_value *earlier)
{
        struct lkg_where where = where_of(p, map->key_at);
        bool strict = p->flags & LKG_DECODE_STRICT;
        char number[LKG_NUMBER_TEXT_MAX];

        lkg_report_add(p->report, strict ? LKG_ERROR : LKG_WARNING,
                       strict ? LKG_C_DUPLICATE_HARD : LKG_C_DUPLICATE, &where,
                       strict ? "key %s is already set on line %u; keep one of the two"
                              : "key %s is already set on line %u; the last one counts",
                       LKG_QUOTE(lkg_yaml_plain_key(map->key, number)), lkg_value_line(earlier));
        if (strict)
                p->failed = true;
}

/* Put @value (taken over) under the key that waits for it. */
static void map_put(struct lkg_yaml *p, struct map *map, struct lkg_value *value)
{
        const struct lkg_value *earlier = lkg_map_find(map->value, map->key);

        map->typed = map->typed || lkg_yaml_key_is_typed(map->key);
        if (earlier)
                report_duplicate(p, map, earlier);
        (void)lkg_map_set(map->value, map->key.data, map->key.size, value);
}

/*
 * `<<`: set every member of @from in the map, also over earlier members (upstream's order-sensitive rule).
 */
static void merge_map(struct lkg_yaml *p, struct map *map, const struct lkg_value *from)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(from, &m);) {
                map->key = m.key;
                map->key_at = mark_of(m.value);
                map_put(p, map, lkg_value_ref(m.value));
        }
}

static int merge_refused(struct lkg_yaml *p, struct lkg_yaml_mark at)
{
        return fail_at(p, LKG_C_ANCHOR, at,
                       "the value of '<<' must be a map, an alias of a map, or a list of those");
}

/* With typed keys, if it has any. Upstream refuses an alias of a list, but not a list of aliases. */
static int merge_value(struct lkg_yaml *p, struct map *map, const struct tree *tree)
{
        const struct lkg_value *from = tree->typed ? tree->typed : tree->value;

        if (lkg_value_type(from) == LKG_MAP) {
                merge_map(p, map, from);
                return 0;
        }
        if (lkg_value_type(from) != LKG_LIST || tree->alias)
                return merge_refused(p, tree->at);
        for (size_t i = lkg_value_size(from); i-- > 0;) { /* earlier items win */
                const struct lkg_value *item = lkg_list_get(from, i);

                if (lkg_value_type(item) != LKG_MAP)
                        return merge_refused(p, mark_of(item));
                merge_map(p, map, item);
        }
        return 0;
}

static bool is_merge_key(const struct lkg_yaml_node *node)
{
        return lkg_span_is(node->value, "<<") && (node->plain || lkg_yaml_is_tag(node->tag, "merge"));
}

/* ---- nodes ---- */

/* A text key needs no value of its own. */
static bool is_text_key(const struct lkg_yaml_node *node, const struct lkg_scalar *scalar)
{
        return scalar->type == LKG_S_STRING && node->anchor.size == 0 &&
               !lkg_yaml_is_tag(node->tag, "binary");
}

/*
 * What looks like quotes or white space around a text and belongs to it. The text is not quoted in the message: it may be a secret.
 */
static void warn_of_lookalikes(struct lkg_yaml *p, const struct lkg_yaml_node *node, bool key)
{
        const unsigned char *text = (const unsigned char *)node->value.data;
        size_t size = node->value.size, last = size;
        struct lkg_where where = where_of(p, node->at);
        char name[LKG_CHARACTER_NAME_MAX];
        uint32_t begin = 0, end = 0;

        if (!node->plain || !p->parse.scan.text.wide || size == 0)
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

/* @r: of the parser */
static int parsed(struct lkg_yaml *p, int r)
{
        return r < 0 ? lkg_yaml_syntax_error(p) : r;
}

/* @key: of a map, else NULL; a text needs no value then, so *ret may stay NULL. */
static int read_scalar(struct lkg_yaml *p, const struct lkg_yaml_node *node, struct map *key,
                       struct lkg_value **ret)
{
        struct lkg_scalar scalar;
        int r = lkg_yaml_resolve(p, node, &scalar);

        if (r == 0)
                r = count_nodes(p, 1, false, node->at);
        if (r < 0)
                return r;
        warn_of_lookalikes(p, node, key);
        if (key && is_text_key(node, &scalar)) {
                key->key = node->value;
                return 0;
        }
        r = lkg_yaml_scalar(p, node, &scalar, ret);
        if (r < 0)
                return r;
        anchor_close(p, anchor_open(p, node->anchor),
                     (struct lkg_yaml_anchor){ *ret, .type = scalar.type, .n_nodes = 1 });
        if (key)
                key->key = lkg_yaml_key(p, *ret, &scalar, node->at);
        return 0;
}

static int too_deep(struct lkg_yaml *p, const struct lkg_yaml_node *node)
{
        return fail_at(p, LKG_C_LIMIT, node->at, "nested deeper than %u levels", LKG_DOC_DEPTH_MAX);
}

static int find_alias(struct lkg_yaml *p, const struct lkg_yaml_node *node,
                      const struct lkg_yaml_anchor **ret)
{
        const struct lkg_yaml_anchor *a = anchor_find(p, node->anchor);
        int r;

        if (!a)
                /* Not quoted: a text that merely begins with '*' may be anything, even a credential. */
                return fail_at(p, LKG_C_ANCHOR, node->at,
                               "alias of an unknown anchor; an anchor stands before its aliases, as &name, "
                               "and a text "
                               "that begins with '*' needs quotes");
        if (!a->value)
                return fail_at(p, LKG_C_ANCHOR, node->at, "anchor %s contains itself",
                               LKG_QUOTE(node->anchor));
        r = count_nodes(p, 1, false, node->at); /* the alias itself */
        if (r == 0)
                r = count_nodes(p, a->n_nodes, true, node->at);
        if (r == 0 && p->depth + a->height > LKG_DOC_DEPTH_MAX)
                return too_deep(p, node);
        if (p->depth + a->height > p->deepest)
                p->deepest = p->depth + a->height;
        *ret = a;
        return r;
}

/* An alias used as a key: its type is the type of the anchored scalar. */
static int key_from_alias(struct lkg_yaml *p, struct map *map, const struct lkg_yaml_node *node)
{
        struct lkg_scalar scalar = { .finite = true };
        const struct lkg_yaml_anchor *a;
        enum lkg_type type;
        const char *text;
        int r = find_alias(p, node, &a);

        if (r < 0)
                return r;
        type = lkg_value_type(a->value);
        text = lkg_value_text(a->value, NULL);
        if (type == LKG_LIST || type == LKG_MAP)
                return fail_at(p, LKG_C_KEY, node->at, "a %s cannot be a key", lkg_type_name(type));
        if (type == LKG_NUMBER)
                lkg_scalar_resolve(text, strlen(text), &scalar);
        scalar.b = lkg_value_bool(a->value);
        scalar.type = a->type;
        map->key = lkg_yaml_key(p, a->value, &scalar, node->at);
        return 0;
}

static int read_key(struct lkg_yaml *p, struct map *map, const struct lkg_yaml_node *node)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;

        map->key_at = node->at;
        if (node->type == LKG_YN_SCALAR)
                return read_scalar(p, node, map, &value);
        if (node->type == LKG_YN_ALIAS)
                return key_from_alias(p, map, node);
        return fail_at(p, LKG_C_KEY, node->at, "a %s cannot be a key; is a value in { } or [ ] not quoted?",
                       node->type == LKG_YN_MAP ? "map" : "list");
}

static int read_node(struct lkg_yaml *p, const struct lkg_yaml_node *node, const struct map *around,
                     bool merge, struct tree *ret);

/* `<<`: the key itself is no member. */
static int read_merge(struct lkg_yaml *p, struct map *map, const struct lkg_yaml_open *open,
                      const struct lkg_yaml_node *key)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *name = lkg_value_new_string("<<", 2, PLACE(p, key->at));
        LKG_CLEANUP(tree_deinit) struct tree tree = { 0 };
        struct lkg_yaml_node node;
        int r;

        anchor_close(p, anchor_open(p, key->anchor),
                     (struct lkg_yaml_anchor){ name, .type = LKG_S_STRING, .n_nodes = 1 });
        r = parsed(p, lkg_yaml_value(&p->parse, open, &node));
        if (r >= 0)
                r = read_node(p, &node, NULL, /* merge= */ true, &tree);
        return r < 0 ? r : merge_value(p, map, &tree);
}

static int read_member(struct lkg_yaml *p, struct map *map, const struct lkg_yaml_open *open,
                       const struct lkg_yaml_node *key)
{
        LKG_CLEANUP(tree_deinit) struct tree tree = { 0 };
        struct lkg_yaml_node node;
        int r;

        if (key->type == LKG_YN_SCALAR && is_merge_key(key))
                return read_merge(p, map, open, key);
        r = read_key(p, map, key);
        if (r >= 0)
                r = parsed(p, lkg_yaml_value(&p->parse, open, &node));
        if (r >= 0)
                r = read_node(p, &node, map, /* merge= */ false, &tree);
        if (r >= 0)
                map_put(p, map, LKG_STEAL(tree.value));
        return r;
}

static int read_map(struct lkg_yaml *p, struct lkg_yaml_open *open, struct tree *ret)
{
        struct map map = { .value = ret->value };
        struct lkg_yaml_node key;
        int r;

        while ((r = parsed(p, lkg_yaml_member(&p->parse, open, &key))) > 0) {
                r = read_member(p, &map, open, &key);
                if (r < 0)
                        return r;
        }
        if (r == 0 && map.typed) {
                ret->typed = ret->value;
                ret->value = lkg_yaml_plain_map(p, ret->typed);
        }
        return r;
}

/* @merge: it is the value of `<<`, so its maps keep the types of their keys */
static int read_list(struct lkg_yaml *p, struct lkg_yaml_open *open, bool merge, struct tree *ret)
{
        struct lkg_yaml_node node;
        int r;

        while ((r = parsed(p, lkg_yaml_member(&p->parse, open, &node))) > 0) {
                LKG_CLEANUP(tree_deinit) struct tree item = { 0 };

                r = read_node(p, &node, NULL, /* merge= */ false, &item);
                if (r < 0)
                        return r;
                lkg_list_append(ret->value,
                                merge && item.typed ? LKG_STEAL(item.typed) : LKG_STEAL(item.value));
        }
        if (r == 0 && merge) {
                ret->typed = ret->value;
                ret->value = lkg_yaml_plain_list(p, ret->typed);
        }
        return r;
}

/* @around: the map that has it, which gives a collection in block style the place of its key; else NULL */
static int read_collection(struct lkg_yaml *p, const struct lkg_yaml_node *node, const struct map *around,
                           bool merge, struct tree *ret)
{
        struct lkg_yaml_mark at = node->shape >= LKG_YS_BLOCK_LIST && around ? around->key_at : node->at;
        struct lkg_yaml_open open = { node->shape, node->start, .up = p->parse.open };
        bool map = node->type == LKG_YN_MAP;
        uint64_t before = p->n_decoded;
        unsigned deepest = p->deepest;
        size_t anchor;
        int r = 0;

        if (p->depth >= LKG_DOC_DEPTH_MAX)
                return too_deep(p, node);
        /* The list of `<<: [..]` is not decoded as a value itself, only its items. */
        if (map || !merge)
                r = count_nodes(p, 1, false, node->at);
        if (r < 0)
                return r;
        ret->value = map ? lkg_value_new_map(PLACE(p, at)) : lkg_value_new_list(PLACE(p, at));
        anchor = anchor_open(p, node->anchor);
        p->deepest = ++p->depth;
        p->parse.open = &open;
        r = map ? read_map(p, &open, ret) : read_list(p, &open, merge, ret);
        p->parse.open = open.up;
        p->depth--;
        if (r == 0)
                anchor_close(p, anchor,
                             (struct lkg_yaml_anchor){ ret->value, ret->typed, LKG_S_STRING,
                                                       p->n_decoded - before, p->deepest - p->depth });
        if (p->deepest < deepest)
                p->deepest = deepest;
        return r;
}

/* @merge: it is the value of `<<` */
static int read_node(struct lkg_yaml *p, const struct lkg_yaml_node *node, const struct map *around,
                     bool merge, struct tree *ret)
{
        const struct lkg_yaml_anchor *a;
        int r;

        ret->at = node->at;
        if (node->type == LKG_YN_SCALAR)
                return read_scalar(p, node, NULL, &ret->value);
        if (node->type != LKG_YN_ALIAS)
                return read_collection(p, node, around, merge, ret);
        r = find_alias(p, node, &a);
        if (r < 0)
                return r;
        ret->alias = true;
        ret->value = lkg_value_ref(a->value);
        ret->typed = lkg_value_ref(a->typed);
        return 0;
}

static int read_document(struct lkg_yaml *p, struct tree *ret)
{
        struct lkg_yaml_node node;
        int r = parsed(p, lkg_yaml_document(&p->parse, &node));

        if (r <= 0)
                return r;
        r = count_nodes(p, 1, false, (struct lkg_yaml_mark){ 0 });
        if (r == 0)
                r = read_node(p, &node, NULL, /* merge= */ false, ret);
        return r < 0 ? r : parsed(p, lkg_yaml_document_end(&p->parse));
}

/* Upstream never reads beyond the first document; a user who wrote a second one should know. */
static void look_behind(struct lkg_yaml *p)
{
        struct lkg_yaml_mark at;
        struct lkg_where where;

        if (!lkg_yaml_has_more(&p->parse, &at))
                return;
        where = where_of(p, at);
        lkg_report_add(p->report, LKG_WARNING, LKG_C_MORE_DOCUMENTS, &where,
                       "only the first document of a file counts; what follows here is ignored");
}

static void deinit(struct lkg_yaml *p)
{
        for (size_t i = 0; i < p->n_anchors; i++) {
                lkg_value_unref(p->anchors[i].value);
                lkg_value_unref(p->anchors[i].typed);
        }
        free(p->anchors);
        lkg_value_unref(p->anchor_index);
        lkg_yaml_parse_deinit(&p->parse);
}

int lkg_decode_yaml(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                    struct lkg_report *report, struct lkg_value **ret)
{
        LKG_CLEANUP(tree_deinit) struct tree root = { 0 };
        struct lkg_yaml p = {
                .data = data, .size = size, .flags = flags, .source = source, .report = report
        };
        int r;

        if (size > (flags & LKG_DECODE_OWN ? LKG_FALLBACK_BYTES_MAX : LKG_DOC_BYTES_MAX)) {
                lkg_report_add(report, LKG_ERROR, LKG_C_LIMIT,
                               &(struct lkg_where){ source ? source->file : NULL, 0, 0 },
                               "the document has %zu bytes; the limit is %u", size, LKG_DOC_BYTES_MAX);
                return -EBADMSG;
        }
        lkg_yaml_scan_init(&p.parse.scan, data, size);
        r = read_document(&p, &root);
        if (r == 0) {
                look_behind(&p);
                if (!root.value)
                        root.value = lkg_value_new_null(source, 1, 1);
                lkg_yaml_check(&p, root.value);
                r = p.failed ? -EBADMSG : 0;
        }
        if (r == 0)
                *ret = LKG_STEAL(root.value);
        deinit(&p);
        return r;
}
