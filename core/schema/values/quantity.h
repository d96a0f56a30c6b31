/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource quantities: `100m`, `1.5Gi`, `12e6`. Rule: apimachinery, pkg/api/resource, ParseQuantity, String
 * and CanonicalizeBytes (v0.36).
 *
 * The arithmetic is exact: a decimal number of any length times a power of ten. The intended losses of
 * upstream are the same here: digits below 1n are rounded away from zero, values with a binary suffix stop
 * at 2^63-1, and a value of 1000E or more prints without its power of ten, because the family has no larger
 * suffix.
 *
 * A small value needs no memory; a long one owns its digits (lkg_quantity_deinit).
 */
#pragma once

#include <lkg/text.h>

enum lkg_quantity_format {
        LKG_QUANTITY_DECIMAL,  /* n u m - k M G T P E */
        LKG_QUANTITY_BINARY,   /* Ki Mi Gi Ti Pi Ei */
        LKG_QUANTITY_EXPONENT, /* e3, E-6 */
};

/*
 * (negative ? -1 : 1) x digits x 10^scale; the digits are @value, or @digits when there are too many for
 * it.
 */
struct lkg_quantity {
        enum lkg_quantity_format format;
        bool negative;
        bool as_written; /* prints as the text it came from: that was in canonical form, or nearly (`+1Gi`) */
        bool wide;       /* went through upstream's slow path: never an int64 for the component */
        uint64_t value;  /* 0 = zero, whatever the rest says */
        int32_t scale;
        char *digits; /* heap or NULL; characters '0' to '9', the first and the last not '0' */
        size_t n_digits;
};

#define LKG_QUANTITY_INIT \
        {                 \
                0         \
        }

void lkg_quantity_deinit(struct lkg_quantity *quantity);

/**
 * lkg_quantity_parse() - parse a quantity of a flag, a map of reservations or an eviction threshold
 * @ret:    written on success; deinit() it
 * @reason: LKG_REFUSAL_MAX bytes or NULL
 *
 * White space is not trimmed. An exponent above a million together with more than 18 digits is refused: the
 * component would compute for hours.
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int lkg_quantity_parse(const char *text, size_t size, struct lkg_quantity *ret, char *reason);

/**
 * lkg_quantity_trim() - the part of a JSON string or number that the decoder of type Quantity parses
 *
 * It trims white space from the raw JSON text. White space that JSON writes as an escape (tab, line feed,
 * ..., U+2028, U+2029) is therefore not trimmed, and makes the value wrong.
 */
struct lkg_span lkg_quantity_trim(const char *text, size_t size);

/**
 * lkg_quantity_text() - put the text that the component prints and marshals to JSON for @quantity
 * @source: its source text (trimmed), used when the value prints as written
 */
void lkg_quantity_text(const struct lkg_quantity *quantity, struct lkg_span source, struct lkg_buf *buf);

/** lkg_quantity_canonical() - put the canonical form, whatever the source text was: `01` becomes `1`. */
void lkg_quantity_canonical(const struct lkg_quantity *quantity, struct lkg_buf *buf);

/**
 * lkg_quantity_round() - round to whole multiples of 10^@unit, away from zero, like Quantity.RoundUp; -3 =
 * 1m.
 * Return: 0; -ENOMEM.
 */
int lkg_quantity_round(struct lkg_quantity *quantity, int32_t unit);

bool lkg_quantity_is_zero(const struct lkg_quantity *quantity);
/** lkg_quantity_sign() - -1, 0 or 1. */
int lkg_quantity_sign(const struct lkg_quantity *quantity);
/** lkg_quantity_compare() - -1, 0 or 1 as @a is less than, equal to or greater than @b. */
int lkg_quantity_compare(const struct lkg_quantity *a, const struct lkg_quantity *b);
/**
 * lkg_quantity_int64() - the value in units, like Quantity.AsInt64
 *
 * Return: false if it is not a whole number, not an int64, or stored by the component as a decimal (19
 * digits and more, fractions with a binary suffix, and the like), which it does not convert either.
 */
bool lkg_quantity_int64(const struct lkg_quantity *quantity, int64_t *ret);
/** lkg_quantity_double() - about the value in units; infinite if it is too large for a double. */
double lkg_quantity_double(const struct lkg_quantity *quantity);
/**
 * lkg_quantity_value() - the value in units, rounded up, like Quantity.Value
 *
 * Like that function it never fails: for a value that does not fit into 64 bits it returns the same
 * remainder as upstream's arithmetic, often 0 (`1e400`, `-1.00000000000000000001`), so that rules about 0
 * agree.
 */
int64_t lkg_quantity_value(const struct lkg_quantity *quantity);
