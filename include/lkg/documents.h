/* SPDX-License-Identifier: Apache-2.0 */
/* Documents: the value tree, reading, merging, writing, the second readers, our own records. */
#pragma once

#include <lkg/base.h>
#include <lkg/text.h>

/*
 * The value tree: the meaning of a YAML or JSON document, and the position of each part of it.
 *
 * A value is immutable and reference counted once it is built; trees share subtrees, so a merge costs the
 * change and not the document. References are not atomic, and trees share their keys: all trees of a process
 * belong to one thread (the engine's, or the tool's).
 *
 * Every value knows its source, line and column. A merged leaf also knows the value it replaced
 * (lkg_value_shadowed), which may itself have replaced another: the chain is what `origin` and `blame`
 * print.
 */

enum lkg_type {
        LKG_NULL,
        LKG_BOOL,
        LKG_NUMBER, /* exact: kept as its canonical JSON text (Go's encoding/json form), never as a double */
        LKG_STRING,
        LKG_LIST,
        LKG_MAP,
        _LKG_TYPE_MAX
};

/* One source document. Shared by all its values. */
struct lkg_source {
        unsigned refs;
        char *layer; /* role and name as shown to users, e.g. `drop-in 10-node.conf` */
        char *file; /* the path that a user would edit, e.g. `/etc/kubernetes/kubelet.conf.d/10-node.conf` */
};

struct lkg_source *lkg_source_new(const char *layer, const char *file);
struct lkg_source *lkg_source_ref(struct lkg_source *source);
struct lkg_source *lkg_source_unref(struct lkg_source *source);

struct lkg_value;

struct lkg_value *lkg_value_ref(struct lkg_value *value);
struct lkg_value *lkg_value_unref(struct lkg_value *value); /* NULL is fine; returns NULL */
static inline void lkg_value_unrefp(struct lkg_value **value)
{
        *value = lkg_value_unref(*value);
}

/* Builders; @source may be NULL. Each returns one reference; without memory see lkg_no_memory(). Text is copied. */
struct lkg_value *lkg_value_new_null(struct lkg_source *source, unsigned line, unsigned column);
struct lkg_value *lkg_value_new_bool(bool b, struct lkg_source *source, unsigned line, unsigned column);
struct lkg_value *lkg_value_new_number(const char *json_text, struct lkg_source *source, unsigned line,
                                       unsigned column);
struct lkg_value *lkg_value_new_string(const char *text, size_t size, struct lkg_source *source,
                                       unsigned line, unsigned column);
struct lkg_value *lkg_value_new_list(struct lkg_source *source, unsigned line, unsigned column);
struct lkg_value *lkg_value_new_map(struct lkg_source *source, unsigned line, unsigned column);

/* Only for a list or map that has exactly one reference. Both take over the reference to @item. */
void lkg_list_append(struct lkg_value *list, struct lkg_value *item);
/** lkg_map_set() - add or replace @key. Return: 0; 1: an earlier value was replaced. */
int lkg_map_set(struct lkg_value *map, const char *key, size_t key_size, struct lkg_value *item);
/** lkg_map_remove() - drop @key. Return: 1 if it was there, else 0. */
int lkg_map_remove(struct lkg_value *map, const char *key, size_t key_size);
/** lkg_value_clone_shallow() - a new list or map (one reference) with shared members, to be changed. */
struct lkg_value *lkg_value_clone_shallow(const struct lkg_value *value);

/*
 * Reading. A document may have any value under a name: reading a value of the wrong type finds nothing
 * (NULL, "", 0), so a wrong document can be reported as a finding and never ends the program. The builders
 * above assert, because only the code that has built a value changes it.
 */
enum lkg_type lkg_value_type(const struct lkg_value *value);
const char *lkg_type_name(enum lkg_type type); /* "null", "bool", "number", "string", "list", "map" */
bool lkg_value_bool(const struct lkg_value *value);
/**
 * lkg_value_text() - text of a number or string (NUL-terminated, but may contain NUL bytes); "" for anything
 * else.
 */
const char *lkg_value_text(const struct lkg_value *value, size_t *ret_size);
const struct lkg_source *lkg_value_source(const struct lkg_value *value);
unsigned lkg_value_line(const struct lkg_value *value);
unsigned lkg_value_column(const struct lkg_value *value);
/** lkg_where_of() - the position of a value, for findings; @value may be NULL. */
struct lkg_where lkg_where_of(const struct lkg_value *value);
/* The same as a pointer, and as text (lkg_where_aside()), until the end of the block. */
#define LKG_AT(value)    (&(struct lkg_where[]){ lkg_where_of(value) }[0])
#define LKG_ASIDE(value) lkg_where_aside(LKG_AT(value), (char[LKG_ASIDE_MAX]){ 0 })
/** lkg_value_shadowed() - the value this one replaced in a lower layer, or NULL. Borrowed. */
const struct lkg_value *lkg_value_shadowed(const struct lkg_value *value);

size_t lkg_value_size(const struct lkg_value *value);                        /* members of a list or map */
struct lkg_value *lkg_list_get(const struct lkg_value *list, size_t i);      /* borrowed or NULL */
struct lkg_value *lkg_map_get(const struct lkg_value *map, const char *key); /* borrowed or NULL */
/** lkg_map_at() - member @i in byte order of the keys. Borrowed; NULL = there is none, and @ret_key is unchanged. */
struct lkg_value *lkg_map_at(const struct lkg_value *map, size_t i, const char **ret_key,
                             size_t *ret_key_size);

/* A member of a list or map: `for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);)` walks over all of them. */
struct lkg_member {
        struct lkg_span key;     /* of a map, NUL-terminated; of a list NULL and 0 */
        struct lkg_value *value; /* borrowed */
        size_t i;                /* its index */
        size_t n;                /* the members up to it */
};
/** lkg_value_next() - the next member, in byte order of the keys; NULL and scalars have none. Return: is there one? */
bool lkg_value_next(const struct lkg_value *value, struct lkg_member *m);

/** lkg_map_get_map() - a member that is a map; NULL: there is none, or @map is NULL or no map itself. */
const struct lkg_value *lkg_map_get_map(const struct lkg_value *map, const char *key);
/** lkg_map_get_string() - text of a string member, or NULL; NULL also if it contains a NUL byte. */
const char *lkg_map_get_string(const struct lkg_value *map, const char *key);

/** lkg_value_equal() - same meaning (type, text, members); origins are not compared. */
bool lkg_value_equal(const struct lkg_value *a, const struct lkg_value *b);

/**
 * lkg_value_get_pointer() - follow a dotted field (`authentication.anonymous.enabled`) or, if it starts with
 * '/', a JSON pointer (RFC 6901). Borrowed or NULL.
 */
struct lkg_value *lkg_value_get_pointer(const struct lkg_value *root, const char *pointer);
/**
 * lkg_pointer_next() - take the first name off a JSON pointer, which begins with `/`.
 * @ret: the name, not escaped any more; heap, NUL-terminated
 * Return: the rest of the pointer.
 */
const char *lkg_pointer_next(const char *pointer, char **ret, size_t *ret_size);
/** lkg_pointer_append() - append `/` and a name, escaped, to a JSON pointer. */
void lkg_pointer_append(struct lkg_buf *pointer, const char *name, size_t size);

/*
 * One leaf of a walk: a scalar, an empty map, or a list with its complete value (a list is replaced as a
 * whole).
 */
struct lkg_above {
        const struct lkg_value *map;
        const struct lkg_above *up; /* the map around it; NULL = none */
        size_t pointer_size;        /* size of the part of the leaf's pointer that leads to this map */
};
struct lkg_leaf {
        const char *pointer; /* JSON pointer, valid during the call */
        const struct lkg_value *value;
        const struct lkg_above *above; /* the map that has it; NULL = the leaf is the document */
};
typedef int (*lkg_leaf_fn)(const struct lkg_leaf *leaf, void *userdata);
/** lkg_value_walk() - call @fn for each leaf in key order; stops on a non-zero return and returns it. */
int lkg_value_walk(const struct lkg_value *root, lkg_leaf_fn fn, void *userdata);

/* @a, @b: the value there; NULL: that document does not have it. */
typedef int (*lkg_difference_fn)(const char *pointer, const struct lkg_value *a, const struct lkg_value *b,
                                 void *userdata);
/**
 * lkg_value_compare() - call @fn for each leaf in which two documents differ: the leaves of @a in key order, then those that only
 * @b has; stops on a non-zero return and returns it.
 */
int lkg_value_compare(const struct lkg_value *a, const struct lkg_value *b, lkg_difference_fn fn,
                      void *userdata);

/* ---- decode ---- */

/*
 * Text -> value tree. YAML as sigs.k8s.io/yaml reads it (YAML 1.1 scalars by table, first document only,
 * stringified keys), with our own parser; JSON with positions, as Go's encoding/json reads it.
 *
 * Bounded in memory and time for any input: LKG_DOC_BYTES_MAX, LKG_DOC_DEPTH_MAX, LKG_DOC_NODES_MAX and
 * the alias guard (limits.h).
 */

enum lkg_format { LKG_FORMAT_YAML, LKG_FORMAT_JSON };

enum lkg_decode_flags {
        LKG_DECODE_STRICT = 1 << 0, /* a duplicate key is an error, not a warning */
        /*
         * Numbers as Go stores them in an untyped document (drop-ins): a number that fits into an int64
         * stays, everything else becomes the shortest float64. Without this flag a JSON number keeps its
         * text, so that a typed decoder can still distinguish 50 from 50.0.
         */
        LKG_DECODE_UNTYPED = 1 << 1,
        /*
         * If a name occurs twice with a map, the later map is merged into the earlier one, as a typed
         * decoder of Go fills one field twice (a JSON base; in YAML only one of them is left after the
         * conversion to JSON).
         */
        LKG_DECODE_TWICE = 1 << 2,
        LKG_DECODE_ADVISE = 1 << 3, /* warn of numbers that are not what they look like: octal, 1_10 */
        LKG_DECODE_OWN = 1 << 4,    /* see lkg_decode_own() */
};

/**
 * lkg_detect_format() - JSON if the first character after white space is '{', else YAML, as in apimachinery.
 */
enum lkg_format lkg_detect_format(const char *data, size_t size);

/**
 * lkg_decode() - read one document.
 * @source: where the text comes from; becomes the origin of every value
 * @report: everything that is wrong with the document, with line and column
 * @ret:    the tree, caller owns one reference; an empty document is LKG_NULL
 *
 * Return: 0; -EBADMSG: @report has the reason why there is no tree.
 */
int lkg_decode(const char *data, size_t size, enum lkg_format format, unsigned flags,
               struct lkg_source *source, struct lkg_report *report, struct lkg_value **ret);
/**
 * lkg_decode_own() - what we have rendered, or a part of it: many layers may come to more than one may have (LKG_FALLBACK_BYTES_MAX
 * instead of LKG_DOC_BYTES_MAX), and nobody reads a report. Return: as lkg_decode().
 */
int lkg_decode_own(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                   struct lkg_value **ret);
int lkg_decode_yaml(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                    struct lkg_report *report, struct lkg_value **ret);
int lkg_decode_json(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                    struct lkg_report *report, struct lkg_value **ret);

/**
 * lkg_resembles() - what a text that is no layer looks like, and what to do with it: one clause for a finding.
 * @data: NULL = only @doc is known
 * @line: of the mistake; 0 = not known
 * @doc:  NULL = it could not be read
 *
 * lkg_decode() and lkg_decode_patch() ask it themselves after a syntax error.
 *
 * Return: heap; NULL = nothing that is known.
 */
char *lkg_resembles(const char *data, size_t size, unsigned line, const struct lkg_value *doc);

/**
 * lkg_decode_patch() - read a patch: valid JSON as JSON, everything else as YAML.
 * @ret_format: which of them it was
 *
 * Upstream always reads a patch file as YAML, so `{a: 1}` is not broken JSON; and its patch library gets
 * JSON, so nothing that JSON can express (surrogate pairs, escaped slashes, a list or scalar) is refused.
 *
 * Return: see lkg_decode().
 */
int lkg_decode_patch(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                     struct lkg_report *report, enum lkg_format *ret_format, struct lkg_value **ret);

/* ---- merge ---- */

/*
 * Merges two documents. Inputs are never changed; the result shares unchanged parts, and every leaf keeps
 * its origin and the value that it shadows.
 */

/** The fields of metav1.TypeMeta, apiVersion and kind. Layers above the first one do not change them. */
#define LKG_HEADER_FIELDS 2
extern const char *const lkg_header_fields[LKG_HEADER_FIELDS];

/**
 * lkg_without_header() - @doc without those that @running has, so that they keep their origin. @running: NULL = without both
 * Return: one reference.
 */
struct lkg_value *lkg_without_header(const struct lkg_value *doc, const struct lkg_value *running);

/**
 * lkg_merge_json() - JSON merge patch as gopkg.in/evanphx/json-patch.v4 applies it (mergePatch).
 * @base: a map (anything else is replaced by the patch)
 * Return: one reference.
 */
struct lkg_value *lkg_merge_json(const struct lkg_value *base, const struct lkg_value *patch);

/** lkg_merge_json_into() - the same, but takes over @base, which is changed in place if nobody else holds it. */
struct lkg_value *lkg_merge_json_into(struct lkg_value *base, const struct lkg_value *patch);

/**
 * lkg_merge_json_patch() - the same for two whole documents of any shape, as json-patch's MergePatch handles
 * them: a target that is not a map is replaced; a list as a patch replaces any target.
 *
 * Return: 0; -EBADMSG: @report says which of the two is unsuitable.
 */
int lkg_merge_json_patch(const struct lkg_value *target, const struct lkg_value *patch,
                         struct lkg_report *report, struct lkg_value **ret);

/*
 * What a strategic merge needs to know about the Go type of a position in the document. Implemented by
 * core/schema; small enough to be passed by value.
 */
enum lkg_merge_class {
        LKG_MERGE_ANY,    /* unknown: everything may be merged */
        LKG_MERGE_STRUCT, /* has fields */
        LKG_MERGE_LIST,   /* of anything except lists */
        LKG_MERGE_OTHER,  /* a map, a list of lists, a scalar: nothing below it has a field */
};

struct lkg_merge_type {
        enum lkg_merge_class class;
        bool pointer; /* the field is a pointer (`*bool`, `*Struct`) */
        /*
         * LKG_MERGE_STRUCT: the field with this JSON name, else the first one with this name in another
         * case (lkg_merge_key_folds). Return: false if there is none.
         */
        bool (*member)(const struct lkg_merge_type *type, const char *key, size_t key_size,
                       struct lkg_merge_type *ret);
        const void *data; /* for @member; borrowed */
};

/** lkg_merge_key_folds() - is @key the name of a field, ignoring case as Go's encoding/json does? */
bool lkg_merge_key_folds(const char *name, const char *key, size_t key_size);

/**
 * lkg_merge_strategic_typed() - strategic merge patch on a kind whose lists are all atomic, as
 * k8s.io/apimachinery/pkg/util/strategicpatch applies it: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/x`,
 * `$setElementOrder/x` are honoured.
 * @base, @patch: maps; null counts as an empty one, as upstream
 * @type: of the kind; NULL = unknown. If known, a map or list is merged into another only where the kind has
 *        a struct or list field; scalars, and members of one side only, pass through.
 *
 * Return: 0; -EBADMSG: @report says what is wrong with the patch.
 */
int lkg_merge_strategic_typed(const struct lkg_value *base, const struct lkg_value *patch,
                              const struct lkg_merge_type *type, struct lkg_report *report,
                              struct lkg_value **ret);
/** lkg_merge_strategic() - the same without a type. */
int lkg_merge_strategic(const struct lkg_value *base, const struct lkg_value *patch,
                        struct lkg_report *report, struct lkg_value **ret);
/** lkg_patch_json() - RFC 6902 like evanphx/json-patch v4. Return: 0; -EBADMSG (@report). */
int lkg_patch_json(const struct lkg_value *base, const struct lkg_value *patch, struct lkg_report *report,
                   struct lkg_value **ret);

/* ---- render ---- */

/*
 * Renders a value tree as canonical text: sorted keys, one style, nothing tool-specific; reading the text
 * and rendering it again gives the same bytes. sigs.k8s.io/yaml reads the YAML as the same document; JSON is
 * indented by two.
 */

/* Starts the comment in the first line of a document that lkgfs serves. */
#define LKG_GENERATED_BY "Generated by lkgfs, do not edit"

/** lkg_render() - append @value to @buf, including a final newline. Failure is sticky in @buf. */
void lkg_render(const struct lkg_value *value, enum lkg_format format, struct lkg_buf *buf);
/**
 * lkg_render_commented() - append @map as YAML, with a comment after each value.
 * @comment: appends ` # text` without a line break. Called for each member that is not a map with members, of
 *           @map and of the maps in it, LKG_COMMENT_DEPTH_MAX deep; not for members of lists
 *
 * The comment is on the first line of the member: it is allowed after a scalar, a key, or the indicator of a
 * block scalar, and changes nothing. Without the comments the text equals that of lkg_render().
 */
#define LKG_COMMENT_DEPTH_MAX 64u
typedef void lkg_comment_fn(const struct lkg_value *value, struct lkg_buf *buf);
void lkg_render_commented(const struct lkg_value *map, lkg_comment_fn *comment, struct lkg_buf *buf);
/** lkg_render_json_compact() - one line, no spaces, no newline: the form of a value in `origin`. */
void lkg_render_json_compact(const struct lkg_value *value, struct lkg_buf *buf);
/**
 * lkg_render_diff() - unified diff of two texts.
 * Return: 1: they differ; 0: equal.
 */
int lkg_render_diff(const char *a_name, const char *a, size_t a_size, const char *b_name, const char *b,
                    size_t b_size, struct lkg_buf *buf);

/**
 * lkg_render_origin() - TSV, one line per leaf in key order: JSON pointer, JSON value, layer, file:line:col,
 * and the values that it shadows (`layer=json-value;...`, empty if none). Secret values (see lkg_mask_secrets) are
 * printed as "<masked>", including shadowed ones.
 */
void lkg_render_origin(const struct lkg_value *root, struct lkg_buf *buf);
/**
 * lkg_render_origin_upto() - the first lines that fit into @size_max bytes.
 * Return: number of omitted lines.
 */
size_t lkg_render_origin_upto(const struct lkg_value *root, size_t size_max, struct lkg_buf *buf);

/**
 * lkg_mask_secrets() - @root with secret values as "<masked>": docs/specification.md 2.13. The value of a
 * JSON patch operation is as secret as the field that its path names.
 *
 * Parts without secrets are shared; a masked value does not keep the value that it shadows.
 * Return: one reference.
 */
struct lkg_value *lkg_mask_secrets(const struct lkg_value *root);
enum lkg_secrecy {
        LKG_PUBLIC,     /* shown, except private keys and parts of URLs */
        LKG_SECRET_URL, /* a URL that may contain credentials: only scheme, host and path are shown */
        LKG_SECRET,     /* never shown */
};

/** lkg_mask_value() - the same for one member; @secrecy: of the field that contains it. */
struct lkg_value *lkg_mask_value(const struct lkg_value *value, enum lkg_secrecy secrecy);
/**
 * lkg_pointer_secrecy() - of the value that a JSON pointer refers to: that of the most secret field of the
 * path.
 */
enum lkg_secrecy lkg_pointer_secrecy(const char *pointer);
/**
 * lkg_pointer_text() - write a JSON pointer as it may be shown: URLs in names masked, control bytes as \xNN,
 * so that it is one word on one line.
 */
void lkg_pointer_text(const char *pointer, struct lkg_buf *buf);
/** lkg_name_secrecy() - of a field with this name, anywhere and in any case. */
enum lkg_secrecy lkg_name_secrecy(const char *name, size_t size);

/* ---- readback ---- */

/*
 * The second reader: the bytes that are about to be served are read by a library that shares no code with our scanner and
 * renderer, and compared with the document that was rendered. Our scanner and renderer share the blind spots of their authors;
 * libyaml and json-c do not.
 *
 * The meaning of a plain YAML scalar (a number, a word, a string) follows rules of go-yaml that no C library
 * implements. Our own resolver applies them; tests/fuzz/differential/ compares it with go-yaml itself.
 */

/* A JSON document with more values is not read back: json-c needs up to 700 bytes for each. */
#define LKG_READBACK_JSON_VALUES_MAX 100000u

#define LKG_READBACK_LEFT_OUT        2

/**
 * lkg_readback_test() - can the library that reads @format, in the version that is there, be believed?
 *
 * It must read a sample of every construct, and tell documents that differ, with the strictest flags with which it can. The first
 * call takes some 50 us, further ones have its answer. For one thread.
 * Return: 0; LKG_READBACK_LEFT_OUT: @why names library, version and what it does.
 */
int lkg_readback_test(enum lkg_format format, struct lkg_error *why);

/**
 * lkg_readback() - does @text mean exactly @value?
 * @text: from lkg_render() in @format, comments allowed in YAML
 *
 * Time and memory are proportional to the text.
 * Return: 0; 1: not read back, because it is JSON with too many values, or with something that json-c cannot
 * represent: a NUL in a name, an integer beyond 64 bits, -0; LKG_READBACK_LEFT_OUT: not read back, as lkg_readback_test();
 * -EBADMSG: @err says what differs, with the field and the line, but without a value.
 */
int lkg_readback(const struct lkg_value *value, enum lkg_format format, const char *text, size_t size,
                 struct lkg_error *err);

/* ---- record ---- */

/*
 * Small JSON files of ours: state, history, dynamic configuration. They are read here; their
 * owners write them as text with lkg_write_file_atomic(). No state; callable from any thread.
 */

#define LKG_RECORD_BYTES_MAX (8u << 20)

/**
 * lkg_record_read_text() - read a whole file of ours: never a symlink, never blocks, regular files only.
 * Return: 0; -ENOENT; -EBADMSG: it is not a regular file; -EFBIG: over @max; -ENOMEM; -errno. Caller frees.
 */
int lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                         struct lkg_error *err);

/**
 * lkg_record_read() - read the JSON object in a file of ours.
 * Return: see lkg_record_read_text(); -EBADMSG also if it is not a JSON object.
 */
int lkg_record_read(int dirfd, const char *path, struct lkg_value **ret, struct lkg_error *err);

/**
 * lkg_record_parse_u64() - parse decimal digits with at most one line break after them.
 * Return: 0 or -EBADMSG.
 */
int lkg_record_parse_u64(const char *text, uint64_t *ret);

/** lkg_record_number() - member @name of a map as a number, or @fallback. */
uint64_t lkg_record_number(const struct lkg_value *map, const char *name, uint64_t fallback);
