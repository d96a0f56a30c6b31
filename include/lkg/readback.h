/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second reader: the bytes that are about to be served are read by a library that shares no code with our scanner and
 * renderer, and compared with the document that was rendered. Our scanner and renderer share the blind spots of their authors;
 * libyaml and json-c do not.
 *
 * The meaning of a plain YAML scalar (a number, a word, a string) follows rules of go-yaml that no C library
 * implements. Our own resolver applies them; tests/fuzz/differential/ compares it with go-yaml itself.
 */
#pragma once

#include <lkg/decode.h>

/* A JSON document with more values is not read back: json-c needs up to 700 bytes for each. */
#define LKG_READBACK_JSON_VALUES_MAX 100000u

#define LKG_READBACK_LEFT_OUT        2

/**
 * lkg_readback_test() - can the library that reads @format, in the version that is there, be believed?
 *
 * It must read a sample of every construct, and tell documents that differ, with the strictest flags with which it can. The first
 * call takes some 50 us, further ones have its answer. For one thread.
 * Return: 0; LKG_READBACK_LEFT_OUT: @why names library, version and what it does; -ENOMEM.
 */
int lkg_readback_test(enum lkg_format format, struct lkg_error *why);

/**
 * lkg_readback() - does @text mean exactly @value?
 * @text: from lkg_render() in @format, comments allowed in YAML
 *
 * Time and memory are proportional to the text.
 * Return: 0; 1: not read back, because it is JSON with too many values, or with something that json-c cannot
 * represent: a NUL in a name, an integer beyond 64 bits, -0; LKG_READBACK_LEFT_OUT: not read back, as lkg_readback_test();
 * -EBADMSG: @err says what differs, with the field and the line, but without a value; -ENOMEM.
 */
int lkg_readback(const struct lkg_value *value, enum lkg_format format, const char *text, size_t size,
                 struct lkg_error *err);
