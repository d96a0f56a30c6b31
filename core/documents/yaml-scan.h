/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to nodes: the syntax of YAML as go.yaml.in/yaml/v2 implements it, which is the reference (see
 * docs/decisions/008). yaml-reader.c turns bytes into characters; yaml-scan.c, yaml-scan-scalar.c and
 * yaml-scan-word.c turn characters into tokens; yaml-parse.c turns tokens into
 * nodes; yaml.c builds the tree.
 *
 * The nesting is bounded by LKG_DOC_DEPTH_MAX. Every token is visited a constant number of
 * times, so the cost is proportional to the text. A span points into the text or into memory that lives as
 * long as the scanner does; it is NULL only for an anchor, tag or handle that is not there.
 *
 * Functions return 0 (or a documented positive value), or -EBADMSG with @problem and its position
 * set.
 */
#pragma once

#include <lkg/tree.h>

/* A position in the text; all three count characters from 0. */
struct lkg_yaml_mark {
        unsigned line, column;
        size_t index;
};

/* ---- characters ---- */

enum lkg_yaml_class {
        LKG_YC_BLANK = 1 << 0, /* space, tab */
        LKG_YC_BREAK = 1 << 1, /* may be, or begin, a line break: CR, LF, the first byte of NEL, LS, PS */
        LKG_YC_END = 1 << 2,   /* NUL: the end of the text */
        LKG_YC_WORD = 1 << 3,  /* letters, digits, '_', '-': anchors, handles, directives */
        LKG_YC_DIGIT = 1 << 4,
        LKG_YC_HEX = 1 << 5,
        LKG_YC_URI = 1 << 6,       /* allowed in a tag */
        LKG_YC_INDICATOR = 1 << 7, /* cannot begin a plain scalar */
        LKG_YC_FLOW = 1 << 8,      /* ends a plain scalar inside [ ] and { } */
        LKG_YC_WIDE = 1 << 9,      /* part of a character of more than one byte */
};
extern const uint16_t lkg_yaml_classes[256];

static inline bool lkg_yaml_is(const char *p, unsigned classes)
{
        return lkg_yaml_classes[(unsigned char)*p] & classes;
}

/** lkg_yaml_break_size() - bytes of the line break at @p, 0 if there is none. */
static inline size_t lkg_yaml_break_size(const char *p)
{
        if (!lkg_yaml_is(p, LKG_YC_BREAK))
                return 0;
        if (*p == '\n')
                return 1;
        if (*p == '\r')
                return p[1] == '\n' ? 2 : 1;
        if ((unsigned char)p[0] == 0xc2)
                return (unsigned char)p[1] == 0x85 ? 2 : 0;
        return (unsigned char)p[1] == 0x80 && ((unsigned char)p[2] == 0xa8 || (unsigned char)p[2] == 0xa9)
                       ? 3
                       : 0;
}

static inline bool lkg_yaml_is_breakz(const char *p)
{
        return *p == '\0' || lkg_yaml_break_size(p) > 0;
}

static inline bool lkg_yaml_is_blankz(const char *p)
{
        return lkg_yaml_is(p, LKG_YC_BLANK | LKG_YC_END) || lkg_yaml_break_size(p) > 0;
}

/** lkg_yaml_char_size() - bytes of the (valid) character that begins with @c. */
static inline size_t lkg_yaml_char_size(char c)
{
        unsigned char b = (unsigned char)c;

        return b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

/* ---- reader ---- */

/*
 * The text of a document as UTF-8. Upstream reads LKG_YAML_CHUNK bytes at a time and never notices invalid
 * bytes after the first document that it did not need to read, so the text ends before the chunk with the
 * first fault.
 */
#define LKG_YAML_CHUNK 512u
#define LKG_YAML_PAD   8u /* NUL bytes after the text: the longest look-ahead */

struct lkg_yaml_text {
        char *data; /* owned */
        size_t size;
        size_t first_chunk;  /* bytes of the text in the first chunk */
        bool wide;           /* some characters have more than one byte */
        const char *fault;   /* the error in the bytes after the text; NULL = the text is complete */
        size_t fault_offset; /* where in the input */
};

/** lkg_yaml_read() - @size bytes of UTF-8 or (with a byte order mark) UTF-16. */
void lkg_yaml_read(const char *data, size_t size, struct lkg_yaml_text *ret);

/* ---- tokens ---- */

enum lkg_yaml_token_type {
        LKG_YT_STREAM_END,
        LKG_YT_VERSION,       /* %YAML; @major, @minor */
        LKG_YT_TAG_DIRECTIVE, /* %TAG; @value is the handle, @suffix the prefix */
        LKG_YT_DOCUMENT_START,
        LKG_YT_DOCUMENT_END,
        LKG_YT_BLOCK_LIST_START,
        LKG_YT_BLOCK_MAP_START,
        LKG_YT_BLOCK_END,
        LKG_YT_FLOW_LIST_START,
        LKG_YT_FLOW_LIST_END,
        LKG_YT_FLOW_MAP_START,
        LKG_YT_FLOW_MAP_END,
        LKG_YT_BLOCK_ENTRY,
        LKG_YT_FLOW_ENTRY,
        LKG_YT_KEY,
        LKG_YT_VALUE,
        LKG_YT_ALIAS,
        LKG_YT_ANCHOR,
        LKG_YT_TAG, /* @value is the handle, @suffix the rest */
        LKG_YT_SCALAR,
};

struct lkg_yaml_token {
        enum lkg_yaml_token_type type;
        struct lkg_yaml_mark at;
        struct lkg_span value, suffix;
        bool plain; /* a scalar without quotes that is not a block scalar */
        int major, minor;
        size_t key_level; /* of the flow level whose possible key this token begins, else SIZE_MAX */
};

/* A possible key, if ':' follows; one for each flow level. */
struct lkg_yaml_key {
        bool possible;
        bool required; /* a block map can only go on with a key here */
        size_t token;  /* number of its first token */
        struct lkg_yaml_mark at;
};

struct lkg_yaml_scan {
        struct lkg_yaml_text text;
        const char *p; /* the next character */
        struct lkg_yaml_mark at;

        struct lkg_yaml_token *tokens; /* [head, n) wait for the parser */
        size_t head, n_tokens, n_tokens_allocated;
        size_t n_taken;             /* tokens that the parser has taken; number of the token at @head */
        struct lkg_yaml_mark taken; /* where the last of them begins */
        bool head_ready;

        int indent; /* column of the innermost block collection, -1 outside of all */
        int *indents;
        size_t n_indents, n_indents_allocated;
        struct lkg_yaml_key *keys;
        size_t n_keys, n_keys_allocated; /* n_keys - 1 is the flow level */
        bool key_allowed;                /* may a simple key begin here? */
        bool started;
        struct lkg_yaml_window *window; /* only if the text has byte order marks inside, see look_ahead() */

        struct lkg_buf built; /* the scalar being put together */
        struct lkg_yaml_kept *kept;

        /* of the failure */
        const char *problem, *context;
        struct lkg_yaml_mark problem_at, context_at;
        bool unreadable; /* the failure is @text.fault */
};

void lkg_yaml_scan_init(struct lkg_yaml_scan *s, const char *data, size_t size);
void lkg_yaml_scan_deinit(struct lkg_yaml_scan *s);

/** lkg_yaml_peek() - the next token; it stays next until lkg_yaml_take(). Borrowed. */
int lkg_yaml_peek(struct lkg_yaml_scan *s, struct lkg_yaml_token **ret);
void lkg_yaml_take(struct lkg_yaml_scan *s);

/* ---- between the files of the scanner: yaml-reader.c ---- */

static inline size_t lkg_yaml_flow_level(const struct lkg_yaml_scan *s)
{
        return s->n_keys - 1;
}

/* Skip one character; it is not a line break. */
static inline void lkg_yaml_skip(struct lkg_yaml_scan *s)
{
        s->p += lkg_yaml_char_size(*s->p);
        s->at.index++;
        s->at.column++;
}

/* Skip @n characters, all of them one byte long and on this line. */
static inline void lkg_yaml_skip_ascii(struct lkg_yaml_scan *s, size_t n)
{
        s->p += n;
        s->at.index += n;
        s->at.column += (unsigned)n;
}

/* Skip all characters that are one byte long and in none of @classes. */
static inline void lkg_yaml_skip_until(struct lkg_yaml_scan *s, unsigned classes)
{
        const char *p = s->p;

        while (!lkg_yaml_is(p, classes | LKG_YC_WIDE | LKG_YC_BREAK | LKG_YC_END))
                p++;
        lkg_yaml_skip_ascii(s, (size_t)(p - s->p));
}

static inline void lkg_yaml_skip_blanks(struct lkg_yaml_scan *s)
{
        while (lkg_yaml_is(s->p, LKG_YC_BLANK))
                lkg_yaml_skip_ascii(s, 1);
}

void lkg_yaml_skip_comment(struct lkg_yaml_scan *s); /* at '#' or not; up to the line break */
/**
 * lkg_yaml_skip_break() - skip a line break; true and its normal form in @ret if there is one, else false.
 */
bool lkg_yaml_skip_break(struct lkg_yaml_scan *s, struct lkg_span *ret);
/**
 * lkg_yaml_fail() - record a failure at the current position.
 * Return: -EBADMSG.
 */
int lkg_yaml_fail(struct lkg_yaml_scan *s, const char *context, struct lkg_yaml_mark context_at,
                  const char *problem);
/** lkg_yaml_keep() - the text in @built, NUL-terminated, valid as long as the scanner. */
struct lkg_span lkg_yaml_keep(struct lkg_yaml_scan *s);

void lkg_yaml_kept_free(struct lkg_yaml_kept *kept);

/* ---- yaml-scan-scalar.c, yaml-scan-word.c ---- */

int lkg_yaml_scan_block_scalar(struct lkg_yaml_scan *s, bool literal, struct lkg_yaml_token *token);
int lkg_yaml_scan_quoted(struct lkg_yaml_scan *s, bool single, struct lkg_yaml_token *token);
int lkg_yaml_scan_plain(struct lkg_yaml_scan *s, struct lkg_yaml_token *token);
int lkg_yaml_scan_directive(struct lkg_yaml_scan *s, struct lkg_yaml_token *token);
int lkg_yaml_scan_anchor(struct lkg_yaml_scan *s, struct lkg_yaml_token *token);
int lkg_yaml_scan_tag(struct lkg_yaml_scan *s, struct lkg_yaml_token *token);

/* ---- nodes ---- */

enum lkg_yaml_node_type { LKG_YN_SCALAR, LKG_YN_ALIAS, LKG_YN_LIST, LKG_YN_MAP };

enum lkg_yaml_shape {
        LKG_YS_FLOW_LIST,
        LKG_YS_FLOW_MAP,
        LKG_YS_PAIR,            /* a map of one pair inside a flow list: [a: b] */
        LKG_YS_BLOCK_LIST,      /* from here on in block style */
        LKG_YS_INDENTLESS_LIST, /* a list in the same column as its key */
        LKG_YS_BLOCK_MAP,
};

/* A scalar or an alias, or the beginning of a list or map. */
struct lkg_yaml_node {
        enum lkg_yaml_node_type type;
        struct lkg_yaml_mark at;
        struct lkg_span anchor, tag, value; /* anchor and tag: empty = none */
        bool plain; /* scalar: its meaning is that of a plain one (no quotes and no tag, or the tag "!") */
        enum lkg_yaml_shape shape; /* of a list or map */
        /* likewise: where its first token is, or that of the collection around it that has one */
        struct lkg_yaml_mark start;
};

/* A list or map whose members are being read. */
struct lkg_yaml_open {
        enum lkg_yaml_shape shape;
        struct lkg_yaml_mark start; /* of its node */
        const struct lkg_yaml_open *up;
        size_t n;  /* members that have begun */
        bool bare; /* the key stands alone: {a, b} */
};

struct lkg_yaml_tag_handle;

struct lkg_yaml_parse {
        struct lkg_yaml_scan scan;
        struct lkg_yaml_token *token;        /* the next one, while a node is made of it */
        const struct lkg_yaml_open *open;    /* the innermost one, which the caller sets; NULL = none */
        struct lkg_yaml_tag_handle *handles; /* %TAG and the two that are always there */
        size_t n_handles, n_handles_allocated;
        bool has_version;
};

void lkg_yaml_parse_deinit(struct lkg_yaml_parse *p);
/** lkg_yaml_document() - the node of the first document. Return: 1; 0: there is no document; -EBADMSG. */
int lkg_yaml_document(struct lkg_yaml_parse *p, struct lkg_yaml_node *ret);
/** lkg_yaml_document_end() - after that node. Upstream reads the token behind it, too, so an error in that counts. */
int lkg_yaml_document_end(struct lkg_yaml_parse *p);
/** lkg_yaml_member() - the next item or key; a key is followed by lkg_yaml_value(). Return: 1; 0: it has ended; -EBADMSG. */
int lkg_yaml_member(struct lkg_yaml_parse *p, struct lkg_yaml_open *open, struct lkg_yaml_node *ret);
/** lkg_yaml_value() - the value of the key. Return: 1; -EBADMSG. */
int lkg_yaml_value(struct lkg_yaml_parse *p, const struct lkg_yaml_open *open, struct lkg_yaml_node *ret);
/** lkg_yaml_has_more() - does anything but its end mark follow the first document, and where? */
bool lkg_yaml_has_more(struct lkg_yaml_parse *p, struct lkg_yaml_mark *ret);
