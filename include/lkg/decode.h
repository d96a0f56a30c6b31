/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text -> value tree. YAML as sigs.k8s.io/yaml reads it (YAML 1.1 scalars by table, first document only,
 * stringified keys), with our own parser; JSON with positions, as Go's encoding/json reads it.
 *
 * Bounded in memory and time for any input: LKG_DOC_BYTES_MAX, LKG_DOC_DEPTH_MAX, LKG_DOC_NODES_MAX and
 * the alias guard (limits.h). No recursion on input depth.
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/error.h>

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
 * Return: 0; -EBADMSG: @report has the reason why there is no tree; -ENOMEM.
 */
int lkg_decode(const char *data, size_t size, enum lkg_format format, unsigned flags,
               struct lkg_source *source, struct lkg_report *report, struct lkg_value **ret);
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
 * Return: heap; NULL = nothing that is known, or no memory.
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
