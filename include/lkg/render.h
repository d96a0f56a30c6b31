/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Value tree -> canonical text: sorted keys, one style, nothing tool-specific inside; rendering what was
 * read back gives the same bytes. YAML output is what sigs.k8s.io/yaml would read as the same document; JSON
 * is indented by two.
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/decode.h>

/** lkg_render() - append @value to @buf, final newline included. Failure is sticky in @buf. */
void lkg_render(const struct lkg_value *value, enum lkg_format format, struct lkg_buf *buf);
/**
 * lkg_render_commented() - append @map as YAML, with a comment behind each value.
 * @comment: appends ` # text` without a line break. Asked for each member that is no map with members, of
 *           @map and of the maps in it, LKG_COMMENT_DEPTH_MAX deep; not for what stands in lists
 *
 * The comment stands on the first line of the member: behind a scalar, a key, or the sign of a block of text
 * it is allowed and changes nothing. Without the comments the text is that of lkg_render().
 */
#define LKG_COMMENT_DEPTH_MAX 64u
typedef void lkg_comment_fn(const struct lkg_value *value, struct lkg_buf *buf);
void lkg_render_commented(const struct lkg_value *map, lkg_comment_fn *comment, struct lkg_buf *buf);
/** lkg_render_json_compact() - one line, no spaces, no newline: the form of a value in `origin`. */
void lkg_render_json_compact(const struct lkg_value *value, struct lkg_buf *buf);
/**
 * lkg_render_diff() - unified diff of two texts.
 * Return: 1 when they differ, 0 when equal, -ENOMEM.
 */
int lkg_render_diff(const char *a_name, const char *a, size_t a_size, const char *b_name, const char *b,
                    size_t b_size, struct lkg_buf *buf);

/**
 * lkg_render_origin() - TSV, one line per leaf in key order: JSON pointer, JSON value, layer, file:line:col,
 * what it shadows (`layer=json-value;...`, empty if nothing). Secret values (see lkg_mask_secrets) are
 * printed as "<masked>", shadowed ones too.
 */
void lkg_render_origin(const struct lkg_value *root, struct lkg_buf *buf);

/**
 * lkg_mask_secrets() - @root with secret values as "<masked>": staticPodURLHeader values, userinfo and queries of
 * URLs. The value of an operation of a JSON patch is as secret as what its path names.
 *
 * Shares what holds no secret; a masked value remembers no shadowed one. Return: one reference, NULL = no
 * memory.
 */
struct lkg_value *lkg_mask_secrets(const struct lkg_value *root);
enum lkg_secrecy {
        LKG_PUBLIC,     /* but for what any text may hold: private keys, parts of URLs */
        LKG_SECRET_URL, /* a URL that may hold credentials: only scheme, host and path are shown */
        LKG_SECRET,     /* never shown */
};

/** lkg_mask_value() - the same for one member; @secrecy: of the field that it stands in or below. */
struct lkg_value *lkg_mask_value(const struct lkg_value *value, enum lkg_secrecy secrecy);
/** lkg_pointer_secrecy() - of what a JSON pointer leads to: the most secret field on its way. */
enum lkg_secrecy lkg_pointer_secrecy(const char *pointer);
/**
 * lkg_pointer_text() - a JSON pointer as people may see it: URLs in names masked, control bytes as \xNN, so that
 * it is one word of one line. Return: 0; -ENOMEM.
 */
int lkg_pointer_text(const char *pointer, struct lkg_buf *buf);
/** lkg_name_secrecy() - of a field with this name, wherever it stands, in any case. */
enum lkg_secrecy lkg_name_secrecy(const char *name, size_t size);
