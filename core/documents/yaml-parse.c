/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens -> nodes: the grammar of YAML 1.1 with one token of look-ahead (reference: parserc.go of
 * go.yaml.in/yaml/v2, including its quirks, which decide what is accepted). The caller recurses: it asks for the members
 * of a list or map until there are no more.
 */
#include "yaml-scan.h"

#include <lkg/base.h>

struct lkg_yaml_tag_handle {
        struct lkg_span handle, prefix;
};

/* A set of tokens. */
#define IS(type)       (1u << (type))
#define IN(token, set) (IS((token)->type) & (set))

static int fail(struct lkg_yaml_parse *p, const char *context, struct lkg_yaml_mark context_at,
                const char *problem)
{
        (void)lkg_yaml_fail(&p->scan, context, context_at, problem);
        p->scan.problem_at = p->token->at;
        return -EBADMSG;
}

static int look(struct lkg_yaml_parse *p)
{
        return lkg_yaml_peek(&p->scan, &p->token);
}

/* Take the token and look at the next one. */
static int advance(struct lkg_yaml_parse *p)
{
        lkg_yaml_take(&p->scan);
        return look(p);
}

/* Return the position after an indicator, where an omitted value would be. */
static struct lkg_yaml_mark behind(const struct lkg_yaml_token *token)
{
        struct lkg_yaml_mark at = token->at;

        at.column++;
        at.index++;
        return at;
}

static int empty_scalar(struct lkg_yaml_node *ret, struct lkg_yaml_mark at)
{
        *ret = (struct lkg_yaml_node){ .type = LKG_YN_SCALAR, .at = at, .value = { "", 0 }, .plain = true };
        return 1;
}

/* ---- directives ---- */

static struct lkg_yaml_tag_handle *find_handle(const struct lkg_yaml_parse *p, struct lkg_span handle)
{
        for (size_t i = 0; i < p->n_handles; i++)
                if (lkg_span_equal(p->handles[i].handle, handle))
                        return &p->handles[i];
        return NULL;
}

static void add_handle(struct lkg_yaml_parse *p, struct lkg_span handle, struct lkg_span prefix)
{
        lkg_need(LKG_RESERVE(p->handles, p->n_handles, p->n_handles_allocated));
        p->handles[p->n_handles++] = (struct lkg_yaml_tag_handle){ handle, prefix };
}

static void add_default_handles(struct lkg_yaml_parse *p)
{
        static const struct lkg_yaml_tag_handle defaults[] = {
                { { "!", 1 }, { "!", 1 } },
                { { "!!", 2 }, { "tag:yaml.org,2002:", 18 } },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(defaults); i++)
                if (!find_handle(p, defaults[i].handle))
                        add_handle(p, defaults[i].handle, defaults[i].prefix);
}

static int directive(struct lkg_yaml_parse *p)
{
        static const struct lkg_yaml_mark none = { 0 };

        if (p->token->type == LKG_YT_TAG_DIRECTIVE) {
                if (find_handle(p, p->token->value))
                        return fail(p, NULL, none, "found duplicate %TAG directive");
                add_handle(p, p->token->value, p->token->suffix);
                return 0;
        }
        if (p->has_version)
                return fail(p, NULL, none, "found duplicate %YAML directive");
        if (p->token->major != 1 || p->token->minor != 1)
                return fail(p, NULL, none, "found incompatible YAML document");
        p->has_version = true;
        return 0;
}

/* ---- nodes ---- */

/* Build the whole tag from a handle and a suffix. */
static int resolve_tag(struct lkg_yaml_parse *p, const struct lkg_yaml_token *tag,
                       struct lkg_yaml_mark start, struct lkg_span *ret)
{
        const struct lkg_yaml_tag_handle *handle;

        if (tag->value.size == 0) {
                *ret = tag->suffix;
                return 0;
        }
        handle = find_handle(p, tag->value);
        if (!handle) {
                (void)fail(p, "while parsing a node", start, "found undefined tag handle");
                p->scan.problem_at = tag->at; /* which has been taken */
                return -EBADMSG;
        }
        lkg_buf_reset(&p->scan.built);
        lkg_buf_append(&p->scan.built, handle->prefix.data, handle->prefix.size);
        lkg_buf_append(&p->scan.built, tag->suffix.data, tag->suffix.size);
        *ret = lkg_yaml_keep(&p->scan);
        return 0;
}

/* An anchor and a tag, in either order, at most one of each. */
static int parse_properties(struct lkg_yaml_parse *p, struct lkg_yaml_node *node)
{
        struct lkg_yaml_token tag = { 0 };
        bool tagged = false, anchored = false;
        int r = 0;

        while (r == 0 && ((p->token->type == LKG_YT_ANCHOR && !anchored) ||
                          (p->token->type == LKG_YT_TAG && !tagged))) {
                if (p->token->type == LKG_YT_TAG) {
                        tag = *p->token;
                        tagged = true;
                } else {
                        node->anchor = p->token->value;
                        anchored = true;
                }
                r = advance(p);
        }
        return r == 0 && tagged ? resolve_tag(p, &tag, node->at, &node->tag) : r;
}

/* Does a list or map begin here? */
static bool start_collection(struct lkg_yaml_parse *p, struct lkg_yaml_node *node, bool block,
                             bool indentless)
{
        static const struct {
                enum lkg_yaml_token_type token;
                enum lkg_yaml_node_type type;
                enum lkg_yaml_shape shape;
        } starts[] = {
                { LKG_YT_FLOW_LIST_START, LKG_YN_LIST, LKG_YS_FLOW_LIST },
                { LKG_YT_FLOW_MAP_START, LKG_YN_MAP, LKG_YS_FLOW_MAP },
                { LKG_YT_BLOCK_LIST_START, LKG_YN_LIST, LKG_YS_BLOCK_LIST },
                { LKG_YT_BLOCK_MAP_START, LKG_YN_MAP, LKG_YS_BLOCK_MAP },
        };

        if (indentless && p->token->type == LKG_YT_BLOCK_ENTRY) {
                node->type = LKG_YN_LIST;
                node->shape = LKG_YS_INDENTLESS_LIST;
                node->start = p->open->start;
                return true;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(starts); i++) {
                if (starts[i].token != p->token->type || (!block && starts[i].shape >= LKG_YS_BLOCK_LIST))
                        continue;
                node->type = starts[i].type;
                node->shape = starts[i].shape;
                node->start = p->token->at;
                lkg_yaml_take(&p->scan);
                return true;
        }
        return false;
}

/* Return: 1; -EBADMSG. */
static int parse_node(struct lkg_yaml_parse *p, bool block, bool indentless, struct lkg_yaml_node *ret)
{
        int r;

        *ret = (struct lkg_yaml_node){ .type = LKG_YN_SCALAR, .at = p->token->at, .value = { "", 0 } };
        if (p->token->type == LKG_YT_ALIAS) {
                ret->type = LKG_YN_ALIAS;
                ret->anchor = p->token->value;
                lkg_yaml_take(&p->scan);
                return 1;
        }
        r = parse_properties(p, ret);
        if (r < 0)
                return r;
        if (start_collection(p, ret, block, indentless))
                return 1;
        if (p->token->type == LKG_YT_SCALAR) {
                ret->value = p->token->value;
                ret->plain =
                        ret->tag.size == 0 ? p->token->plain : ret->tag.size == 1 && ret->tag.data[0] == '!';
                lkg_yaml_take(&p->scan);
                return 1;
        }
        if (ret->anchor.size > 0 || ret->tag.size > 0) { /* an empty scalar with properties */
                ret->plain = ret->tag.size == 0;
                return 1;
        }
        return fail(p, block ? "while parsing a block node" : "while parsing a flow node", ret->at,
                    "did not find expected node content");
}

/* Unless one of the tokens in @none shows that the node is omitted; then it is an empty scalar at @at. */
static int node_or_empty(struct lkg_yaml_parse *p, unsigned none, struct lkg_yaml_mark at, bool block,
                         bool indentless, struct lkg_yaml_node *ret)
{
        return IN(p->token, none) ? empty_scalar(ret, at) : parse_node(p, block, indentless, ret);
}

/* The same behind the token that is there. @at: NULL = where the next one is */
static int next_or_empty(struct lkg_yaml_parse *p, unsigned none, const struct lkg_yaml_mark *at, bool block,
                         bool indentless, struct lkg_yaml_node *ret)
{
        int r = advance(p);

        return r < 0 ? r : node_or_empty(p, none, at ? *at : p->token->at, block, indentless, ret);
}

/* The token is the end of a list or map. */
static int end(struct lkg_yaml_parse *p)
{
        lkg_yaml_take(&p->scan);
        return 0;
}

/* ---- documents ---- */

int lkg_yaml_document(struct lkg_yaml_parse *p, struct lkg_yaml_node *ret)
{
        static const struct lkg_yaml_mark none = { 0 };
        const unsigned directives = IS(LKG_YT_VERSION) | IS(LKG_YT_TAG_DIRECTIVE);
        bool explicit;
        int r = look(p);

        if (r < 0 || p->token->type == LKG_YT_STREAM_END)
                return r;
        explicit = IN(p->token, directives | IS(LKG_YT_DOCUMENT_START));
        while (r == 0 && IN(p->token, directives)) {
                r = directive(p);
                if (r == 0)
                        r = advance(p);
        }
        if (r < 0)
                return r;
        add_default_handles(p);
        if (!explicit)
                return parse_node(p, true, false, ret);
        if (p->token->type != LKG_YT_DOCUMENT_START)
                return fail(p, NULL, none, "did not find expected <document start>");
        return next_or_empty(
                p, directives | IS(LKG_YT_DOCUMENT_START) | IS(LKG_YT_DOCUMENT_END) | IS(LKG_YT_STREAM_END),
                NULL, true, false, ret);
}

int lkg_yaml_document_end(struct lkg_yaml_parse *p)
{
        int r = look(p);

        if (r == 0 && p->token->type == LKG_YT_DOCUMENT_END)
                lkg_yaml_take(&p->scan);
        return r;
}

bool lkg_yaml_has_more(struct lkg_yaml_parse *p, struct lkg_yaml_mark *ret)
{
        int r = look(p);

        while (r == 0 && p->token->type == LKG_YT_DOCUMENT_END)
                r = advance(p);
        *ret = r < 0 ? p->scan.problem_at : p->token->at;
        return r < 0 || p->token->type != LKG_YT_STREAM_END;
}

/* ---- block collections ---- */

static int block_item(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        bool indentless = open->shape == LKG_YS_INDENTLESS_LIST;
        unsigned none = IS(LKG_YT_BLOCK_ENTRY) | IS(LKG_YT_BLOCK_END);
        struct lkg_yaml_mark at = behind(p->token);

        if (indentless)
                none |= IS(LKG_YT_KEY) | IS(LKG_YT_VALUE);
        if (p->token->type == LKG_YT_BLOCK_ENTRY)
                return next_or_empty(p, none, &at, true, false, ret);
        if (indentless) /* whatever follows belongs to the map around it */
                return 0;
        if (p->token->type == LKG_YT_BLOCK_END)
                return end(p);
        return fail(p, "while parsing a block collection", open->start,
                    "did not find expected '-' indicator");
}

#define NO_BLOCK_NODE (IS(LKG_YT_KEY) | IS(LKG_YT_VALUE) | IS(LKG_YT_BLOCK_END))

static int block_key(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        struct lkg_yaml_mark at = p->token->at;

        if (p->token->type == LKG_YT_KEY)
                return next_or_empty(p, NO_BLOCK_NODE, &at, true, true, ret);
        if (p->token->type == LKG_YT_BLOCK_END)
                return end(p);
        return fail(p, "while parsing a block mapping", open->start, "did not find expected key");
}

static int block_value(struct lkg_yaml_parse *p, struct lkg_yaml_node *ret)
{
        struct lkg_yaml_mark at = behind(p->token);

        return p->token->type == LKG_YT_VALUE ? next_or_empty(p, NO_BLOCK_NODE, &at, true, true, ret)
                                              : empty_scalar(ret, p->token->at);
}

/* ---- flow collections ---- */

/* Skip the comma between two members. */
static int flow_comma(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open,
                      enum lkg_yaml_token_type last, const char *context, const char *problem)
{
        if (open->n == 0 || p->token->type == last)
                return 0;
        if (p->token->type != LKG_YT_FLOW_ENTRY)
                return fail(p, context, open->start, problem);
        return advance(p);
}

static int flow_item(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        int r = flow_comma(p, open, LKG_YT_FLOW_LIST_END, "while parsing a flow sequence",
                           "did not find expected ',' or ']'");

        if (r < 0)
                return r;
        if (p->token->type == LKG_YT_FLOW_LIST_END)
                return end(p);
        if (p->token->type == LKG_YT_KEY) {
                *ret = (struct lkg_yaml_node){
                        .type = LKG_YN_MAP, .at = p->token->at, .shape = LKG_YS_PAIR, .start = open->start
                };
                lkg_yaml_take(&p->scan);
                return 1;
        }
        return parse_node(p, false, false, ret);
}

/* An omitted key swallows the next token: `[? ]` needs a second bracket. So does upstream. */
static int pair_key(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        if (open->n > 0)
                return 0;
        if (!IN(p->token, IS(LKG_YT_VALUE) | IS(LKG_YT_FLOW_ENTRY) | IS(LKG_YT_FLOW_LIST_END)))
                return parse_node(p, false, false, ret);
        (void)empty_scalar(ret, behind(p->token));
        lkg_yaml_take(&p->scan);
        return 1;
}

static int flow_key(struct lkg_yaml_parse *p, struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        int r = flow_comma(p, open, LKG_YT_FLOW_MAP_END, "while parsing a flow mapping",
                           "did not find expected ',' or '}'");

        if (r < 0)
                return r;
        if (p->token->type == LKG_YT_FLOW_MAP_END)
                return end(p);
        open->bare = p->token->type != LKG_YT_KEY;
        return open->bare
                       ? parse_node(p, false, false, ret)
                       : next_or_empty(p, IS(LKG_YT_VALUE) | IS(LKG_YT_FLOW_ENTRY) | IS(LKG_YT_FLOW_MAP_END),
                                       NULL, false, false, ret);
}

static int flow_value(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        enum lkg_yaml_token_type last =
                open->shape == LKG_YS_PAIR ? LKG_YT_FLOW_LIST_END : LKG_YT_FLOW_MAP_END;

        if (open->bare || p->token->type != LKG_YT_VALUE)
                return empty_scalar(ret, p->token->at);
        return next_or_empty(p, IS(LKG_YT_FLOW_ENTRY) | IS(last), NULL, false, false, ret);
}

/* ---- members ---- */

static int next_member(struct lkg_yaml_parse *p, struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        switch (open->shape) {
        case LKG_YS_FLOW_LIST:
                return flow_item(p, open, ret);
        case LKG_YS_FLOW_MAP:
                return flow_key(p, open, ret);
        case LKG_YS_PAIR:
                return pair_key(p, open, ret);
        case LKG_YS_BLOCK_MAP:
                return block_key(p, open, ret);
        case LKG_YS_BLOCK_LIST:
        case LKG_YS_INDENTLESS_LIST:
                break;
        }
        return block_item(p, open, ret);
}

int lkg_yaml_member(struct lkg_yaml_parse *p, struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        int r = look(p);

        if (r == 0)
                r = next_member(p, open, ret);
        open->n++;
        return r;
}

int lkg_yaml_value(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open, struct lkg_yaml_node *ret)
{
        int r = look(p);

        if (r < 0)
                return r;
        return open->shape == LKG_YS_BLOCK_MAP ? block_value(p, ret) : flow_value(p, open, ret);
}

void lkg_yaml_parse_deinit(struct lkg_yaml_parse *p)
{
        free(p->handles);
        lkg_yaml_scan_deinit(&p->scan);
}
