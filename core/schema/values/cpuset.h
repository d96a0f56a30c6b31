/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs: `0-3,8`. Rule: k8s.io/utils/cpuset, Parse. */
#pragma once

#include <lkg/text.h>

#define LKG_CPUSET_MAX (INT64_C(1) << 26) /* CPUs named in one list; the component keeps each in memory */

/**
 * lkg_cpuset_parse() - numbers and ranges between commas; the empty text is the empty set
 * @ret_highest: the highest CPU named, -1 for none
 * @reason:      LKG_REFUSAL_MAX bytes or NULL
 *
 * White space is not allowed. A list of more than LKG_CPUSET_MAX CPUs is refused: the component would run
 * out of memory, and no kernel has as many.
 *
 * Return: 0; -EINVAL.
 */
int lkg_cpuset_parse(const char *text, size_t size, int64_t *ret_highest, char *reason);
