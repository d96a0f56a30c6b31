/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations as Go writes them: `1h30m`, `-1.5s`, `100ms`. Rule: the standard library's time.ParseDuration
 * and Duration.String (Go 1.26), which metav1.Duration and pflag's duration flags both use.
 */
#pragma once

#include <lkg/span.h>

#define LKG_DURATION_MAX 32 /* bytes of a canonical duration including the NUL; the longest has 26 */

/**
 * lkg_duration_parse() - parse a duration, in nanoseconds
 * @ret_ns: any int64, even negative
 * @reason: LKG_REFUSAL_MAX bytes or NULL
 *
 * An optional sign, then numbers with a unit each (`ns us µs μs ms s m h`), fractions allowed, in any order
 * and number; `0` needs no unit. Fractions of a nanosecond are dropped. JSON null and the empty string are
 * not durations.
 *
 * Return: 0; -EINVAL.
 */
int lkg_duration_parse(const char *text, size_t size, int64_t *ret_ns, char *reason);

/**
 * lkg_duration_parse_plain() - parse a length of time in our own settings, options and commands: the same
 * without a sign.
 * Return: 0; -EINVAL.
 */
int lkg_duration_parse_plain(const char *text, uint64_t *ret_ns);

/** lkg_duration_format() - write the canonical form: `1m0s`, `1.5s`, `100ms`, `0s`. Return: its length. */
size_t lkg_duration_format(int64_t ns, char buf[static LKG_DURATION_MAX]);
