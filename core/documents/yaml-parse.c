/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens -> events: the grammar of YAML 1.1 as a state machine, one token of look-ahead, states of the
 * enclosing collections on a stack (reference: parserc.go of go.yaml.in/yaml/v2, including its quirks, which
 * decide what is accepted).
 */
#include "yaml-scan.h"

#include <lkg/base.h>

struct lkg_yaml_tag_handle {
        struct lkg_yaml_span handle, prefix;
};

enum state {
        STATE_DOCUMENT,
        STATE_CONTENT, /* after `---` */
        STATE_BLOCK_NODE,
        STATE_DOCUMENT_END,
        STATE_BLOCK_LIST,
        STATE_INDENTLESS_LIST, /* a list in the same column as its key */
        STATE_BLOCK_KEY,
        STATE_BLOCK_VALUE,
        STATE_FLOW_LIST_FIRST,
        STATE_FLOW_LIST,
        STATE_PAIR_KEY, /* a map of one pair inside a flow list: [a: b] */
        STATE_PAIR_VALUE,
        STATE_PAIR_END,
        STATE_FLOW_KEY_FIRST,
        STATE_FLOW_KEY,
        STATE_FLOW_VALUE,
        STATE_FLOW_NO_VALUE, /* {a, b}: a key alone */
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

/* ---- stacks ---- */

static void push_state(struct lkg_yaml_parse *p, enum state state)
{
        lkg_need(LKG_RESERVE(p->states, p->n_states, p->n_states_allocated));
        p->states[p->n_states++] = (unsigned char)state;
}

static void pop_state(struct lkg_yaml_parse *p)
{
        p->state = p->states[--p->n_states];
}

static void push_start(struct lkg_yaml_parse *p, struct lkg_yaml_mark at)
{
        lkg_need(LKG_RESERVE(p->starts, p->n_starts, p->n_starts_allocated));
        p->starts[p->n_starts++] = at;
}

/* Take the token and look at the next one. */
static int advance(struct lkg_yaml_parse *p)
{
        lkg_yaml_take(&p->scan);
        return lkg_yaml_peek(&p->scan, &p->token);
}

/* ---- events ---- */

static int empty_scalar(struct lkg_yaml_event *event, struct lkg_yaml_mark at)
{
        *event = (struct lkg_yaml_event){
                .type = LKG_YE_SCALAR, .at = at, .value = { "", 0 }, .plain = true
        };
        return 0;
}

static int end_collection(struct lkg_yaml_parse *p, enum lkg_yaml_event_type type, bool take,
                          struct lkg_yaml_event *event)
{
        *event = (struct lkg_yaml_event){ .type = type, .at = p->token->at };
        pop_state(p);
        if (take) {
                p->n_starts--;
                lkg_yaml_take(&p->scan);
        }
        return 0;
}

/* ---- directives ---- */

static struct lkg_yaml_tag_handle *find_handle(const struct lkg_yaml_parse *p, struct lkg_yaml_span handle)
{
        for (size_t i = 0; i < p->n_handles; i++)
                if (p->handles[i].handle.size == handle.size &&
                    memcmp(p->handles[i].handle.text, handle.text, handle.size) == 0)
                        return &p->handles[i];
        return NULL;
}

static void add_handle(struct lkg_yaml_parse *p, struct lkg_yaml_span handle, struct lkg_yaml_span prefix)
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

/* ---- documents ---- */

static int parse_document(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        static const struct lkg_yaml_mark none = { 0 };
        const unsigned directives = IS(LKG_YT_VERSION) | IS(LKG_YT_TAG_DIRECTIVE);
        bool explicit;
        int r = 0;

        *event = (struct lkg_yaml_event){ .type = LKG_YE_DOCUMENT_START, .at = p->token->at };
        if (p->token->type == LKG_YT_STREAM_END) {
                event->type = LKG_YE_NOTHING;
                return 0;
        }
        explicit = IN(p->token, directives | IS(LKG_YT_DOCUMENT_START));
        while (r == 0 && IN(p->token, directives)) {
                r = directive(p);
                if (r == 0)
                        r = advance(p);
        }
        if (r < 0)
                return r;
        add_default_handles(p);
        push_state(p, STATE_DOCUMENT_END);
        p->state = explicit ? STATE_CONTENT : STATE_BLOCK_NODE;
        if (!explicit)
                return 0;
        if (p->token->type != LKG_YT_DOCUMENT_START)
                return fail(p, NULL, none, "did not find expected <document start>");
        lkg_yaml_take(&p->scan);
        return 0;
}

/* Upstream also reads the token after the document, so an error in that token counts. */
static int parse_document_end(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        *event = (struct lkg_yaml_event){ .type = LKG_YE_DOCUMENT_END, .at = p->token->at };
        if (p->token->type == LKG_YT_DOCUMENT_END)
                lkg_yaml_take(&p->scan);
        return 0;
}

/* ---- nodes ---- */

/* Build the whole tag from a handle and a suffix. */
static int resolve_tag(struct lkg_yaml_parse *p, const struct lkg_yaml_token *tag,
                       struct lkg_yaml_mark start, struct lkg_yaml_span *ret)
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
        lkg_buf_append(&p->scan.built, handle->prefix.text, handle->prefix.size);
        lkg_buf_append(&p->scan.built, tag->suffix.text, tag->suffix.size);
        *ret = lkg_yaml_keep(&p->scan);
        return 0;
}

/* An anchor and a tag, in either order, at most one of each. */
static int parse_properties(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
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
                        event->anchor = p->token->value;
                        anchored = true;
                }
                r = advance(p);
        }
        return r == 0 && tagged ? resolve_tag(p, &tag, event->at, &event->tag) : r;
}

static int scalar_node(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        event->type = LKG_YE_SCALAR;
        event->value = p->token->value;
        event->plain =
                event->tag.size == 0 ? p->token->plain : event->tag.size == 1 && event->tag.text[0] == '!';
        pop_state(p);
        lkg_yaml_take(&p->scan);
        return 0;
}

static int start_node(struct lkg_yaml_parse *p, struct lkg_yaml_event *event, bool indentless)
{
        static const struct {
                enum lkg_yaml_token_type token;
                enum state state;
                enum lkg_yaml_event_type event;
                bool block;
        } starts[] = {
                { LKG_YT_FLOW_LIST_START, STATE_FLOW_LIST_FIRST, LKG_YE_LIST_START, false },
                { LKG_YT_FLOW_MAP_START, STATE_FLOW_KEY_FIRST, LKG_YE_MAP_START, false },
                { LKG_YT_BLOCK_LIST_START, STATE_BLOCK_LIST, LKG_YE_LIST_START, true },
                { LKG_YT_BLOCK_MAP_START, STATE_BLOCK_KEY, LKG_YE_MAP_START, true },
        };

        if (indentless) {
                p->state = STATE_INDENTLESS_LIST;
                event->type = LKG_YE_LIST_START;
                event->block = true;
                return 0;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(starts); i++) {
                if (starts[i].token != p->token->type)
                        continue;
                p->state = starts[i].state;
                event->type = starts[i].event;
                event->block = starts[i].block;
                push_start(p, p->token->at);
                lkg_yaml_take(&p->scan);
                return 0;
        }
        return -EINVAL; /* not reached: the caller has asked for one of these */
}

static int parse_node(struct lkg_yaml_parse *p, struct lkg_yaml_event *event, bool block, bool indentless)
{
        const unsigned flow_starts = IS(LKG_YT_FLOW_LIST_START) | IS(LKG_YT_FLOW_MAP_START);
        const unsigned block_starts = IS(LKG_YT_BLOCK_LIST_START) | IS(LKG_YT_BLOCK_MAP_START);
        int r;

        *event = (struct lkg_yaml_event){ .at = p->token->at, .value = { "", 0 } };
        if (p->token->type == LKG_YT_ALIAS) {
                event->type = LKG_YE_ALIAS;
                event->anchor = p->token->value;
                pop_state(p);
                lkg_yaml_take(&p->scan);
                return 0;
        }
        r = parse_properties(p, event);
        if (r < 0)
                return r;
        indentless = indentless && p->token->type == LKG_YT_BLOCK_ENTRY;
        if (indentless || IN(p->token, flow_starts | (block ? block_starts : 0)))
                return start_node(p, event, indentless);
        if (p->token->type == LKG_YT_SCALAR)
                return scalar_node(p, event);
        if (event->anchor.size > 0 || event->tag.size > 0) { /* an empty scalar with properties */
                event->type = LKG_YE_SCALAR;
                event->plain = event->tag.size == 0;
                pop_state(p);
                return 0;
        }
        return fail(p, block ? "while parsing a block node" : "while parsing a flow node", event->at,
                    "did not find expected node content");
}

/*
 * Parse a node, unless one of the tokens in @none shows that it is omitted; then emit an empty scalar at
 * @at.
 */
static int node_or_empty(struct lkg_yaml_parse *p, unsigned none, enum state next, struct lkg_yaml_mark at,
                         bool block, bool indentless, struct lkg_yaml_event *event)
{
        if (IN(p->token, none)) {
                p->state = next;
                return empty_scalar(event, at);
        }
        push_state(p, next);
        return parse_node(p, event, block, indentless);
}

static int parse_content(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        if (IN(p->token, IS(LKG_YT_VERSION) | IS(LKG_YT_TAG_DIRECTIVE) | IS(LKG_YT_DOCUMENT_START) |
                                 IS(LKG_YT_DOCUMENT_END) | IS(LKG_YT_STREAM_END))) {
                pop_state(p);
                return empty_scalar(event, p->token->at);
        }
        return parse_node(p, event, true, false);
}

/* ---- block collections ---- */

/* Return the position after an indicator, where an omitted value would be. */
static struct lkg_yaml_mark behind(const struct lkg_yaml_token *token)
{
        struct lkg_yaml_mark at = token->at;

        at.column++;
        at.index++;
        return at;
}

static int parse_block_list(struct lkg_yaml_parse *p, struct lkg_yaml_event *event, bool indentless)
{
        unsigned none = IS(LKG_YT_BLOCK_ENTRY) | IS(LKG_YT_BLOCK_END);
        struct lkg_yaml_mark at;
        int r;

        if (p->token->type == LKG_YT_BLOCK_ENTRY) {
                at = behind(p->token);
                r = advance(p);
                if (r < 0)
                        return r;
                if (indentless)
                        none |= IS(LKG_YT_KEY) | IS(LKG_YT_VALUE);
                return node_or_empty(p, none, indentless ? STATE_INDENTLESS_LIST : STATE_BLOCK_LIST, at,
                                     true, false, event);
        }
        if (indentless) /* whatever follows belongs to the map around it */
                return end_collection(p, LKG_YE_LIST_END, false, event);
        if (p->token->type == LKG_YT_BLOCK_END)
                return end_collection(p, LKG_YE_LIST_END, true, event);
        return fail(p, "while parsing a block collection", p->starts[p->n_starts - 1],
                    "did not find expected '-' indicator");
}

static int parse_block_key(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        const unsigned none = IS(LKG_YT_KEY) | IS(LKG_YT_VALUE) | IS(LKG_YT_BLOCK_END);
        struct lkg_yaml_mark at;
        int r;

        if (p->token->type == LKG_YT_KEY) {
                at = p->token->at;
                r = advance(p);
                if (r < 0)
                        return r;
                return node_or_empty(p, none, STATE_BLOCK_VALUE, at, true, true, event);
        }
        if (p->token->type == LKG_YT_BLOCK_END)
                return end_collection(p, LKG_YE_MAP_END, true, event);
        return fail(p, "while parsing a block mapping", p->starts[p->n_starts - 1],
                    "did not find expected key");
}

static int parse_block_value(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        const unsigned none = IS(LKG_YT_KEY) | IS(LKG_YT_VALUE) | IS(LKG_YT_BLOCK_END);
        struct lkg_yaml_mark at;
        int r;

        if (p->token->type != LKG_YT_VALUE) {
                p->state = STATE_BLOCK_KEY;
                return empty_scalar(event, p->token->at);
        }
        at = behind(p->token);
        r = advance(p);
        return r < 0 ? r : node_or_empty(p, none, STATE_BLOCK_KEY, at, true, true, event);
}

/* ---- flow collections ---- */

/* Skip the comma between two members. */
static int flow_comma(struct lkg_yaml_parse *p, const char *context, const char *problem)
{
        if (p->token->type != LKG_YT_FLOW_ENTRY)
                return fail(p, context, p->starts[p->n_starts - 1], problem);
        return advance(p);
}

static int parse_flow_list(struct lkg_yaml_parse *p, struct lkg_yaml_event *event, bool first)
{
        int r = 0;

        if (!first && p->token->type != LKG_YT_FLOW_LIST_END)
                r = flow_comma(p, "while parsing a flow sequence", "did not find expected ',' or ']'");
        if (r < 0)
                return r;
        if (p->token->type == LKG_YT_FLOW_LIST_END)
                return end_collection(p, LKG_YE_LIST_END, true, event);
        if (p->token->type == LKG_YT_KEY) {
                *event = (struct lkg_yaml_event){ .type = LKG_YE_MAP_START, .at = p->token->at };
                p->state = STATE_PAIR_KEY;
                lkg_yaml_take(&p->scan);
                return 0;
        }
        push_state(p, STATE_FLOW_LIST);
        return parse_node(p, event, false, false);
}

/* An omitted key swallows the next token: `[? ]` needs a second bracket. So does upstream. */
static int parse_pair_key(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        const unsigned none = IS(LKG_YT_VALUE) | IS(LKG_YT_FLOW_ENTRY) | IS(LKG_YT_FLOW_LIST_END);

        if (IN(p->token, none)) {
                p->state = STATE_PAIR_VALUE;
                (void)empty_scalar(event, behind(p->token));
                lkg_yaml_take(&p->scan);
                return 0;
        }
        push_state(p, STATE_PAIR_VALUE);
        return parse_node(p, event, false, false);
}

/* Parse the value of a pair in a list (@end is ']') or in a map ('}'). */
static int parse_flow_value(struct lkg_yaml_parse *p, struct lkg_yaml_event *event, enum state next,
                            enum lkg_yaml_token_type end)
{
        int r;

        if (p->token->type != LKG_YT_VALUE) {
                p->state = next;
                return empty_scalar(event, p->token->at);
        }
        r = advance(p);
        return r < 0 ? r
                     : node_or_empty(p, IS(LKG_YT_FLOW_ENTRY) | IS(end), next, p->token->at, false, false,
                                     event);
}

static int parse_pair_end(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        p->state = STATE_FLOW_LIST;
        *event = (struct lkg_yaml_event){ .type = LKG_YE_MAP_END, .at = p->token->at };
        return 0;
}

static int parse_flow_key(struct lkg_yaml_parse *p, struct lkg_yaml_event *event, bool first)
{
        const unsigned none = IS(LKG_YT_VALUE) | IS(LKG_YT_FLOW_ENTRY) | IS(LKG_YT_FLOW_MAP_END);
        int r = 0;

        if (!first && p->token->type != LKG_YT_FLOW_MAP_END)
                r = flow_comma(p, "while parsing a flow mapping", "did not find expected ',' or '}'");
        if (r < 0)
                return r;
        if (p->token->type == LKG_YT_FLOW_MAP_END)
                return end_collection(p, LKG_YE_MAP_END, true, event);
        if (p->token->type == LKG_YT_KEY) {
                r = advance(p);
                return r < 0 ? r
                             : node_or_empty(p, none, STATE_FLOW_VALUE, p->token->at, false, false, event);
        }
        push_state(p, STATE_FLOW_NO_VALUE);
        return parse_node(p, event, false, false);
}

static int parse_flow_no_value(struct lkg_yaml_parse *p, struct lkg_yaml_event *event)
{
        p->state = STATE_FLOW_KEY;
        return empty_scalar(event, p->token->at);
}

/* ---- the machine ---- */

int lkg_yaml_next(struct lkg_yaml_parse *p, struct lkg_yaml_event *ret)
{
        int r = lkg_yaml_peek(&p->scan, &p->token);

        if (r < 0)
                return r;
        switch ((enum state)p->state) {
        case STATE_DOCUMENT:
                return parse_document(p, ret);
        case STATE_CONTENT:
                return parse_content(p, ret);
        case STATE_BLOCK_NODE:
                return parse_node(p, ret, true, false);
        case STATE_DOCUMENT_END:
                return parse_document_end(p, ret);
        case STATE_BLOCK_LIST:
                return parse_block_list(p, ret, false);
        case STATE_INDENTLESS_LIST:
                return parse_block_list(p, ret, true);
        case STATE_BLOCK_KEY:
                return parse_block_key(p, ret);
        case STATE_BLOCK_VALUE:
                return parse_block_value(p, ret);
        case STATE_FLOW_LIST_FIRST:
                return parse_flow_list(p, ret, true);
        case STATE_FLOW_LIST:
                return parse_flow_list(p, ret, false);
        case STATE_PAIR_KEY:
                return parse_pair_key(p, ret);
        case STATE_PAIR_VALUE:
                return parse_flow_value(p, ret, STATE_PAIR_END, LKG_YT_FLOW_LIST_END);
        case STATE_PAIR_END:
                return parse_pair_end(p, ret);
        case STATE_FLOW_KEY_FIRST:
                return parse_flow_key(p, ret, true);
        case STATE_FLOW_KEY:
                return parse_flow_key(p, ret, false);
        case STATE_FLOW_VALUE:
                return parse_flow_value(p, ret, STATE_FLOW_KEY, LKG_YT_FLOW_MAP_END);
        case STATE_FLOW_NO_VALUE:
                return parse_flow_no_value(p, ret);
        }
        return -EINVAL; /* not reached */
}

bool lkg_yaml_has_more(struct lkg_yaml_parse *p, struct lkg_yaml_mark *ret)
{
        int r = lkg_yaml_peek(&p->scan, &p->token);

        while (r == 0 && p->token->type == LKG_YT_DOCUMENT_END)
                r = advance(p);
        *ret = r < 0 ? p->scan.problem_at : p->token->at;
        return r < 0 || p->token->type != LKG_YT_STREAM_END;
}

void lkg_yaml_parse_init(struct lkg_yaml_parse *p, const char *data, size_t size)
{
        *p = (struct lkg_yaml_parse){ .state = STATE_DOCUMENT };
        lkg_yaml_scan_init(&p->scan, data, size);
}

void lkg_yaml_parse_deinit(struct lkg_yaml_parse *p)
{
        free(p->states);
        free(p->starts);
        free(p->handles);
        lkg_yaml_scan_deinit(&p->scan);
}
