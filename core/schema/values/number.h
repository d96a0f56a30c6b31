/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Booleans and numbers in flags. Rule: Go 1.26, strconv.ParseBool, ParseInt, ParseUint, Atoi and
 * ParseFloat; pflag's Int32, Int64, Uint32, ... call them with base 0, most other code with base 10. White
 * space is never trimmed.
 */
#pragma once

#include <lkg/text.h>

/** lkg_bool_parse() - 1 t T TRUE true True, 0 f F FALSE false False. Return: 0; -EINVAL. */
int lkg_bool_parse(const char *text, size_t size, bool *ret, char *reason);

/**
 * lkg_int_parse() - a whole number with an optional sign
 * @base: 10; or 0: `0x`, `0o`, `0b` and a leading 0 (octal) set the base, and single underscores are allowed
 *        between digits and after the prefix
 * @bits: 1 to 64; the value must fit into a signed integer of that size. Atoi is base 10, 64 bits
 *
 * Return: 0; -EINVAL.
 */
int lkg_int_parse(const char *text, size_t size, unsigned base, unsigned bits, int64_t *ret, char *reason);

/** lkg_uint_parse() - the same for an unsigned number: no sign allowed, not even `+`. Return: 0; -EINVAL. */
int lkg_uint_parse(const char *text, size_t size, unsigned base, unsigned bits, uint64_t *ret, char *reason);

/**
 * lkg_float_parse() - a decimal or hexadecimal (`0x1p-2`) number, `inf`, `infinity` or `nan` in any case
 * @bits: 32 (rounded once, to float precision) or 64
 *
 * Return: 0; -EINVAL, also when the value is too large for the type; -ENOMEM.
 */
int lkg_float_parse(const char *text, size_t size, unsigned bits, double *ret, char *reason);
