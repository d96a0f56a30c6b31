/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Characters -> tokens: which token begins here, where block collections begin and end (from indentation),
 * and which tokens are keys because ':' follows them (reference: scannerc.go of go.yaml.in/yaml/v2).
 *
 * The parser may not get a token before the scanner knows whether a KEY precedes it. That is decided within
 * 1024 characters and one line, so the queue stays short.
 */
#include "yaml-scan.h"

#include <lkg/base.h>

#define KEY_SIZE_MAX 1024u /* characters from the start of a simple key to its ':' */

static int fail_reader(struct lkg_yaml_scan *s)
{
        s->unreadable = true;
        return lkg_yaml_fail(s, NULL, s->at, s->text.fault);
}

/*
 * Upstream skips a byte order mark at the start of any line, but looks for it at the start of its buffer.
 * The buffer is filled, from the current position on, if it has fewer characters left than the scanner
 * needs; at the end of the text, every time. If it then begins with a byte order mark (a second one at the
 * very beginning, or one that happens to be there), the first character of each line is dropped until the
 * buffer is filled again. So for a text with such marks we track the state of that buffer.
 */
struct lkg_yaml_window {
        const char *start;
        const char *end; /* of the characters in it */
        size_t n_nuls;   /* that follow them */
};

static const char byte_order_mark[] = "\xef\xbb\xbf";

static void fill_window(struct lkg_yaml_scan *s, struct lkg_yaml_window *w)
{
        const char *end = s->text.data + s->text.size;

        if ((size_t)(end - w->end) <= LKG_YAML_CHUNK)
                w->end = end;
        else
                w->end += w->end == s->text.data ? s->text.first_chunk : LKG_YAML_CHUNK;
        while (w->end < end && ((unsigned char)*w->end & 0xc0) == 0x80)
                w->end--; /* half a character waits for the next chunk */
}

/* Upstream needs @n_chars characters at @at. */
static void look_at(struct lkg_yaml_scan *s, const char *at, size_t n_chars)
{
        struct lkg_yaml_window *w = s->window;
        const char *p = at;
        size_t n = 0;

        for (; p < w->end && n < n_chars; n++)
                p += lkg_yaml_char_size(*p);
        if (n + w->n_nuls >= n_chars)
                return;
        w->start = at;
        while (w->end < s->text.data + s->text.size && n < n_chars) {
                fill_window(s, w);
                for (; p < w->end && n < n_chars; n++)
                        p += lkg_yaml_char_size(*p);
        }
        if (n + w->n_nuls < n_chars)
                w->n_nuls++;
}

static void look_ahead(struct lkg_yaml_scan *s, size_t n_chars)
{
        if (s->window)
                look_at(s, s->p, n_chars);
}

/*
 * A token that starts at @from has been read. In a block scalar upstream needs one character, elsewhere four
 * at the start of a word and two inside it; two at a line break.
 */
static void look_back(struct lkg_yaml_scan *s, const char *from, bool block)
{
        bool begins = true;

        if (!s->window)
                return;
        for (const char *p = from; p < s->p; p += lkg_yaml_char_size(*p)) {
                bool is_break = lkg_yaml_break_size(p) > 0, blank = lkg_yaml_is(p, LKG_YC_BLANK);
                size_t n_chars = begins ? 4 : 2;

                if (blank || (block && !is_break))
                        n_chars = 1;
                else if (is_break)
                        n_chars = 2;
                look_at(s, p, n_chars);
                begins = blank || is_break;
        }
        /* where another word might have begun, in a scalar that white space has ended */
        if (begins && !block && (lkg_yaml_flow_level(s) > 0 || (int)s->at.column > s->indent))
                look_at(s, s->p, 4);
}

static void open_window(struct lkg_yaml_scan *s)
{
        if (!s->text.wide || !memmem(s->text.data, s->text.size, byte_order_mark, 3))
                return;
        s->window = lkg_must(calloc(1, sizeof(*s->window)));
        s->window->start = s->window->end = s->text.data;
}

/* Skips white space, comments and line breaks. A tab must not be where it could be indentation. */
static void skip_to_token(struct lkg_yaml_scan *s)
{
        do {
                look_ahead(s, 1);
                if (s->window && s->at.column == 0 && *s->p &&
                    memcmp(s->window->start, byte_order_mark, 3) == 0)
                        lkg_yaml_skip(s);
                while (*s->p == ' ' || (*s->p == '\t' && (lkg_yaml_flow_level(s) > 0 || !s->key_allowed)))
                        lkg_yaml_skip_ascii(s, 1);
                lkg_yaml_skip_comment(s);
                if (lkg_yaml_break_size(s->p) == 0)
                        return;
                look_ahead(s, 2);
                if (lkg_yaml_flow_level(s) == 0)
                        s->key_allowed = true;
        } while (lkg_yaml_skip_break(s, NULL));
}

/* ---- the queue ---- */

/*
 * Return a free slot before the token with this number; at the end for SIZE_MAX, and if that token has
 * already been taken (see forget_key()).
 */
static struct lkg_yaml_token *queue_slot(struct lkg_yaml_scan *s, size_t number)
{
        size_t i;

        if (s->head == s->n_tokens)
                s->head = s->n_tokens = 0;
        if (s->n_tokens == s->n_tokens_allocated && s->head > s->n_tokens / 2) {
                memmove(s->tokens, s->tokens + s->head, (s->n_tokens - s->head) * sizeof(*s->tokens));
                s->n_tokens -= s->head;
                s->head = 0;
        }
        lkg_need(LKG_RESERVE(s->tokens, s->n_tokens, s->n_tokens_allocated));
        i = number == SIZE_MAX || number < s->n_taken ? s->n_tokens : s->head + (number - s->n_taken);
        memmove(s->tokens + i + 1, s->tokens + i, (s->n_tokens - i) * sizeof(*s->tokens));
        s->n_tokens++;
        return &s->tokens[i];
}

static void insert_token(struct lkg_yaml_scan *s, size_t number, enum lkg_yaml_token_type type,
                         struct lkg_yaml_mark at)
{
        *queue_slot(s, number) = (struct lkg_yaml_token){ .type = type, .at = at, .key_level = SIZE_MAX };
}

/* Add a token of @size one-byte characters without a value. */
static int add_mark(struct lkg_yaml_scan *s, enum lkg_yaml_token_type type, size_t size)
{
        struct lkg_yaml_mark at = s->at;

        lkg_yaml_skip_ascii(s, size);
        insert_token(s, SIZE_MAX, type, at);
        return 0;
}

static size_t next_number(const struct lkg_yaml_scan *s)
{
        return s->n_taken + (s->n_tokens - s->head);
}

/* ---- simple keys ---- */

static struct lkg_yaml_key *top_key(struct lkg_yaml_scan *s)
{
        return &s->keys[s->n_keys - 1];
}

/*
 * Can ':' still make it a key?
 * Return: 1, 0, or -EBADMSG if a key is required.
 */
static int key_is_possible(struct lkg_yaml_scan *s, struct lkg_yaml_key *key)
{
        if (!key->possible)
                return 0;
        if (key->at.line == s->at.line && key->at.index + KEY_SIZE_MAX >= s->at.index)
                return 1;
        if (key->required)
                return lkg_yaml_fail(s, "while scanning a simple key", key->at,
                                     "could not find expected ':'");
        key->possible = false;
        return 0;
}

static int drop_key(struct lkg_yaml_scan *s)
{
        struct lkg_yaml_key *key = top_key(s);

        if (key->possible && key->required)
                return lkg_yaml_fail(s, "while scanning a simple key", key->at,
                                     "could not find expected ':'");
        key->possible = false;
        return 0;
}

/* The next token that is appended may be the start of a key. */
static int save_key(struct lkg_yaml_scan *s, size_t *ret_level)
{
        int r;

        *ret_level = SIZE_MAX;
        if (!s->key_allowed)
                return 0;
        r = drop_key(s);
        if (r < 0)
                return r;
        *top_key(s) = (struct lkg_yaml_key){
                .possible = true,
                .required = lkg_yaml_flow_level(s) == 0 && s->indent == (int)s->at.column,
                .token = next_number(s),
                .at = s->at,
        };
        *ret_level = s->n_keys - 1;
        return 0;
}

/*
 * When the innermost flow level ends, upstream forgets which token its last key began with. A level
 * without any key still has the number of its own bracket, so the bracket is forgotten: after `{}` and
 * `[]` at the start of a key the parser does not wait for the ':', and KEY comes too late.
 */
static void forget_key(struct lkg_yaml_scan *s)
{
        size_t number = top_key(s)->token;

        if (number >= s->n_taken && number - s->n_taken < s->n_tokens - s->head)
                s->tokens[s->head + (number - s->n_taken)].key_level = SIZE_MAX;
}

static int push_key_level(struct lkg_yaml_scan *s)
{
        lkg_need(LKG_RESERVE(s->keys, s->n_keys, s->n_keys_allocated));
        s->keys[s->n_keys++] = (struct lkg_yaml_key){ .token = next_number(s), .at = s->at };
        if (lkg_yaml_flow_level(s) > LKG_DOC_DEPTH_MAX)
                return lkg_yaml_fail(s, "while increasing flow level", s->at, "exceeded max depth of 1000");
        return 0;
}

/* ---- indentation ---- */

/* Begin a block collection at @column, unless we are already in it. */
static int indent_to(struct lkg_yaml_scan *s, unsigned column, size_t number, enum lkg_yaml_token_type type,
                     struct lkg_yaml_mark at)
{
        if (lkg_yaml_flow_level(s) > 0 || s->indent >= (int)column)
                return 0;
        lkg_need(LKG_RESERVE(s->indents, s->n_indents, s->n_indents_allocated));
        s->indents[s->n_indents++] = s->indent;
        s->indent = (int)column;
        if (s->n_indents > LKG_DOC_DEPTH_MAX)
                return lkg_yaml_fail(s, "while increasing indent level", at, "exceeded max depth of 1000");
        insert_token(s, number, type, at);
        return 0;
}

/* End every block collection that began to the right of @column. */
static void unindent_to(struct lkg_yaml_scan *s, int column)
{
        while (lkg_yaml_flow_level(s) == 0 && s->indent > column) {
                insert_token(s, SIZE_MAX, LKG_YT_BLOCK_END, s->at);
                s->indent = s->indents[--s->n_indents];
        }
}

/* ---- one function per kind of token ---- */

/* End all open collections: at the end, a directive or a document mark. */
static int end_blocks(struct lkg_yaml_scan *s)
{
        int r;

        unindent_to(s, -1);
        r = drop_key(s);
        s->key_allowed = false;
        return r;
}

static int fetch_end(struct lkg_yaml_scan *s)
{
        int r;

        if (s->at.column != 0) {
                s->at.column = 0;
                s->at.line++;
        }
        r = end_blocks(s);
        insert_token(s, SIZE_MAX, LKG_YT_STREAM_END, s->at);
        return r;
}

static int fetch_document_mark(struct lkg_yaml_scan *s, enum lkg_yaml_token_type type)
{
        int r = end_blocks(s);

        return r < 0 ? r : add_mark(s, type, 3);
}

static int fetch_flow_start(struct lkg_yaml_scan *s, enum lkg_yaml_token_type type)
{
        size_t level;
        int r = save_key(s, &level);

        if (r == 0)
                r = push_key_level(s);
        if (r < 0)
                return r;
        s->key_allowed = true;
        r = add_mark(s, type, 1);
        if (r == 0)
                s->tokens[s->n_tokens - 1].key_level = level;
        return r;
}

static int fetch_flow_end(struct lkg_yaml_scan *s, enum lkg_yaml_token_type type)
{
        int r = drop_key(s);

        if (r < 0)
                return r;
        if (lkg_yaml_flow_level(s) > 0) {
                forget_key(s);
                s->n_keys--;
        }
        s->key_allowed = false;
        return add_mark(s, type, 1);
}

static int fetch_flow_entry(struct lkg_yaml_scan *s)
{
        int r = drop_key(s);

        s->key_allowed = true;
        return r < 0 ? r : add_mark(s, LKG_YT_FLOW_ENTRY, 1);
}

/* In flow context '-' alone is not a token, but the parser can report its position better. */
static int fetch_block_entry(struct lkg_yaml_scan *s)
{
        int r = 0;

        if (lkg_yaml_flow_level(s) == 0) {
                if (!s->key_allowed)
                        return lkg_yaml_fail(s, NULL, s->at,
                                             "block sequence entries are not allowed in this context");
                r = indent_to(s, s->at.column, SIZE_MAX, LKG_YT_BLOCK_LIST_START, s->at);
        }
        if (r == 0)
                r = drop_key(s);
        s->key_allowed = true;
        return r < 0 ? r : add_mark(s, LKG_YT_BLOCK_ENTRY, 1);
}

static int fetch_key(struct lkg_yaml_scan *s)
{
        bool block = lkg_yaml_flow_level(s) == 0;
        int r = 0;

        if (block) {
                if (!s->key_allowed)
                        return lkg_yaml_fail(s, NULL, s->at, "mapping keys are not allowed in this context");
                r = indent_to(s, s->at.column, SIZE_MAX, LKG_YT_BLOCK_MAP_START, s->at);
        }
        if (r == 0)
                r = drop_key(s);
        s->key_allowed = block;
        return r < 0 ? r : add_mark(s, LKG_YT_KEY, 1);
}

/*
 * ':' after a possible simple key: KEY goes in front of that, and the start of a map if the key is its
 * first.
 */
static int fetch_simple_value(struct lkg_yaml_scan *s)
{
        struct lkg_yaml_key *key = top_key(s);
        int r;

        insert_token(s, key->token, LKG_YT_KEY, key->at);
        r = indent_to(s, key->at.column, key->token, LKG_YT_BLOCK_MAP_START, key->at);
        key->possible = false;
        s->key_allowed = false;
        return r < 0 ? r : add_mark(s, LKG_YT_VALUE, 1);
}

static int fetch_value(struct lkg_yaml_scan *s)
{
        bool block = lkg_yaml_flow_level(s) == 0;
        int r = key_is_possible(s, top_key(s));

        if (r != 0)
                return r < 0 ? r : fetch_simple_value(s);
        if (block) {
                if (!s->key_allowed)
                        return lkg_yaml_fail(s, NULL, s->at,
                                             "mapping values are not allowed in this context");
                r = indent_to(s, s->at.column, SIZE_MAX, LKG_YT_BLOCK_MAP_START, s->at);
        }
        s->key_allowed = block;
        return r < 0 ? r : add_mark(s, LKG_YT_VALUE, 1);
}

static int append(struct lkg_yaml_scan *s, const struct lkg_yaml_token *token)
{
        *queue_slot(s, SIZE_MAX) = *token;
        return 0;
}

static int fetch_directive(struct lkg_yaml_scan *s)
{
        struct lkg_yaml_token token = { .key_level = SIZE_MAX };
        int r = end_blocks(s);

        if (r == 0)
                r = lkg_yaml_scan_directive(s, &token);
        return r < 0 ? r : append(s, &token);
}

static int fetch_block_scalar(struct lkg_yaml_scan *s)
{
        const char *start = s->p;
        struct lkg_yaml_token token = { .type = LKG_YT_SCALAR, .at = s->at, .key_level = SIZE_MAX };
        int r = drop_key(s);

        s->key_allowed = true;
        if (r == 0)
                r = lkg_yaml_scan_block_scalar(s, *s->p == '|', &token);
        look_back(s, start, true);
        return r < 0 ? r : append(s, &token);
}

/* Scalars on one line, anchors, aliases, tags: the possible beginnings of a simple key. */
static int fetch_word(struct lkg_yaml_scan *s)
{
        const char *start = s->p;
        struct lkg_yaml_token token = { .type = LKG_YT_SCALAR, .at = s->at };
        int r = save_key(s, &token.key_level);

        if (r < 0)
                return r;
        s->key_allowed = false;
        switch (*s->p) {
        case '*':
        case '&':
                r = lkg_yaml_scan_anchor(s, &token);
                break;
        case '!':
                r = lkg_yaml_scan_tag(s, &token);
                break;
        case '\'':
        case '"':
                r = lkg_yaml_scan_quoted(s, *s->p == '\'', &token);
                break;
        default:
                r = lkg_yaml_scan_plain(s, &token);
        }
        look_back(s, start, false);
        return r < 0 ? r : append(s, &token);
}

/* ---- which token? ---- */

static bool at_document_mark(const struct lkg_yaml_scan *s, const char *mark)
{
        return s->at.column == 0 && s->p[0] == mark[0] && s->p[1] == mark[0] && s->p[2] == mark[0] &&
               lkg_yaml_is_blankz(s->p + 3);
}

/* Not an indicator: either a plain scalar begins here, or the character is invalid. */
static int fetch_other(struct lkg_yaml_scan *s)
{
        bool block = lkg_yaml_flow_level(s) == 0;
        bool starts = !lkg_yaml_is_blankz(s->p) && !lkg_yaml_is(s->p, LKG_YC_INDICATOR);

        if (*s->p == '-')
                starts = !lkg_yaml_is(s->p + 1, LKG_YC_BLANK);
        if (block && (*s->p == '?' || *s->p == ':'))
                starts = !lkg_yaml_is_blankz(s->p + 1);
        return starts ? fetch_word(s)
                      : lkg_yaml_fail(s, "while scanning for the next token", s->at,
                                      "found character that cannot start any token");
}

static int fetch_at_indicator(struct lkg_yaml_scan *s)
{
        bool block = lkg_yaml_flow_level(s) == 0;

        switch (*s->p) {
        case '[':
                return fetch_flow_start(s, LKG_YT_FLOW_LIST_START);
        case '{':
                return fetch_flow_start(s, LKG_YT_FLOW_MAP_START);
        case ']':
                return fetch_flow_end(s, LKG_YT_FLOW_LIST_END);
        case '}':
                return fetch_flow_end(s, LKG_YT_FLOW_MAP_END);
        case ',':
                return fetch_flow_entry(s);
        case '-':
                return lkg_yaml_is_blankz(s->p + 1) ? fetch_block_entry(s) : fetch_other(s);
        case '?':
                return !block || lkg_yaml_is_blankz(s->p + 1) ? fetch_key(s) : fetch_other(s);
        case ':':
                return !block || lkg_yaml_is_blankz(s->p + 1) ? fetch_value(s) : fetch_other(s);
        case '*':
        case '&':
        case '!':
        case '\'':
        case '"':
                return fetch_word(s);
        case '|':
        case '>':
                return block ? fetch_block_scalar(s) : fetch_other(s);
        default:
                return fetch_other(s);
        }
}

static int fetch(struct lkg_yaml_scan *s)
{
        int r;

        if (!s->started) {
                s->started = true;
                r = push_key_level(s);
                if (r < 0)
                        return r;
                s->key_allowed = true;
        }
        if (s->text.fault && s->text.size == 0)
                return fail_reader(s);
        skip_to_token(s);
        look_ahead(s, 4);
        unindent_to(s, (int)s->at.column);
        /* The distance that upstream looks ahead here; with less it would read on, into the fault. */
        if (s->text.fault && s->text.data + s->text.size - s->p < 4)
                return fail_reader(s);
        if (*s->p == '\0')
                return fetch_end(s);
        if (s->at.column == 0 && *s->p == '%')
                return fetch_directive(s);
        if (at_document_mark(s, "-"))
                return fetch_document_mark(s, LKG_YT_DOCUMENT_START);
        if (at_document_mark(s, "."))
                return fetch_document_mark(s, LKG_YT_DOCUMENT_END);
        return fetch_at_indicator(s);
}

/*
 * Is the token at the head final?
 * Return: 1 or 0, or -EBADMSG.
 */
static int head_is_final(struct lkg_yaml_scan *s)
{
        const struct lkg_yaml_token *head;
        struct lkg_yaml_key *key;
        int r;

        if (s->head == s->n_tokens)
                return 0; /* there may be no room for tokens yet, either */
        head = &s->tokens[s->head];
        if (head->key_level >= s->n_keys)
                return 1;
        key = &s->keys[head->key_level];
        if (key->token != s->n_taken)
                return 1;
        r = key_is_possible(s, key);
        return r < 0 ? r : !r;
}

int lkg_yaml_peek(struct lkg_yaml_scan *s, struct lkg_yaml_token **ret)
{
        while (!s->head_ready) {
                int r = head_is_final(s);

                if (r < 0)
                        return r;
                if (r > 0) {
                        s->head_ready = true;
                        break;
                }
                r = fetch(s);
                if (r < 0)
                        return r;
        }
        *ret = &s->tokens[s->head];
        return 0;
}

void lkg_yaml_take(struct lkg_yaml_scan *s)
{
        s->head_ready = false;
        s->taken = s->tokens[s->head].at;
        s->n_taken++;
        s->head++;
}

void lkg_yaml_scan_init(struct lkg_yaml_scan *s, const char *data, size_t size)
{
        *s = (struct lkg_yaml_scan){ .indent = -1 };
        lkg_yaml_read(data, size, &s->text);
        s->p = s->text.data;
        open_window(s);
}

void lkg_yaml_scan_deinit(struct lkg_yaml_scan *s)
{
        lkg_yaml_kept_free(s->kept);
        free(s->window);
        free(s->tokens);
        free(s->indents);
        free(s->keys);
        free(s->text.data);
        lkg_buf_deinit(&s->built);
}
