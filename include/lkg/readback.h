/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second reader: what is about to be served is read by a library that has nothing in common with our own scanner and
 * renderer, and compared with the document that was rendered. The two of ours share what their authors did not think of; libyaml
 * and json-c do not.
 *
 * What a plain YAML scalar means (a number, a word, a string) is a rule of go-yaml that no library has: that is asked of our own
 * resolver, which is compared with go-yaml itself in tests/fuzz/differential/.
 */
#pragma once

#include <lkg/decode.h>

/* A JSON document of more values is not read again: json-c takes up to 700 bytes for each. */
#define LKG_READBACK_JSON_VALUES_MAX 100000u

/**
 * lkg_readback() - does @text say @value, and nothing else?
 * @text: of lkg_render() in @format, comments allowed in YAML
 *
 * Time and memory in proportion to the text. Return: 0; 1: not read again, because it is JSON of too many values, or with what
 * json-c cannot tell: a NUL in a name, a whole number beyond 64 bits, -0; -EBADMSG: @err says what differs, with the field and the line, but no
 * value; -ENOMEM.
 */
int lkg_readback(const struct lkg_value *value, enum lkg_format format, const char *text, size_t size,
                 struct lkg_error *err);
