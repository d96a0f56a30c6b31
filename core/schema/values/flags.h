/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of command-line flags that contain more than one value. Rule: k8s.io/component-base v0.36 cli/flag
 * and logs/api/v1, pkg/util/flag of Kubernetes 1.36, pflag v1.0 with Go's encoding/csv.
 *
 * Each parser calls back for every item in the order of the text. Items are borrowed during the call. A
 * callback returns 0, or a negative number that ends the walk and is returned. A callback may have been
 * called before a later item turns out to be wrong: then the component does not start, and the collected
 * items are discarded.
 *
 * The caller combines several uses of one flag:
 *
 *     stringSlice, mapStringBool, mapStringString, langleMap, colonMultimap, reservedMemory
 *             the first use clears the value of the configuration, also with an empty text; later uses add
 *     featureGates (a mapStringBool), kubelet
 *             named gates win, unnamed gates of the configuration stay
 *     vmodule
 *             adds to the value of the configuration
 *     reservedMemory
 *             an empty text changes nothing
 */
#pragma once

#include "quantity.h"
#include <lkg/text.h>

/**
 * lkg_flag_slice() - a stringSlice: the first record of a comma-separated text, quoted as in CSV
 *
 * `a,"b,c"` are two items; a quote inside a quoted item is doubled. Items are not trimmed. Of a text of
 * several lines only the first that is not empty counts. The empty text has no item.
 *
 * Return: 0; -EINVAL for a stray quote or lines that are all empty; -ENOMEM; what @each returned.
 */
int lkg_flag_slice(const char *text, size_t size, int (*each)(void *userdata, struct lkg_span item),
                   void *userdata, char *reason);

/**
 * lkg_flag_pairs() - key, separator and value between commas
 * @separator: `=` for mapStringString, `<` for langleMap, `:` for colonMultimap (where a repeated key
 *             appends)
 *
 * Empty items are skipped, keys and values are trimmed, and may be empty. The first separator counts.
 *
 * Return: 0; -EINVAL; what @each returned.
 */
int lkg_flag_pairs(const char *text, size_t size, char separator,
                   int (*each)(void *userdata, struct lkg_span key, struct lkg_span value), void *userdata,
                   char *reason);

/**
 * lkg_flag_pair() - exactly one pair: a mapStringString that does not split (--cpu-manager-policy-options)
 *
 * Commas belong to the value. Return: as lkg_flag_pairs().
 */
int lkg_flag_pair(const char *text, size_t size,
                  int (*each)(void *userdata, struct lkg_span key, struct lkg_span value), void *userdata,
                  char *reason);

/** lkg_flag_bools() - mapStringBool: pairs with `=` whose values are booleans (lkg_bool_parse). */
int lkg_flag_bools(const char *text, size_t size,
                   int (*each)(void *userdata, struct lkg_span key, bool value), void *userdata,
                   char *reason);

/**
 * lkg_flag_vmodule() - `pattern=N,pattern=N`: verbosity by source file
 *
 * Empty items are skipped, nothing is trimmed; N is decimal and at most 2147483647.
 *
 * Return: 0; -EINVAL; what @each returned.
 */
int lkg_flag_vmodule(const char *text, size_t size,
                     int (*each)(void *userdata, struct lkg_span pattern, uint32_t verbosity),
                     void *userdata, char *reason);

/**
 * lkg_flag_reserved_memory() - `0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi`
 * @each: called for every limit; @node changes, or @first is true, when a new reservation begins. @source
 *        is the text of the quantity, for lkg_quantity_text()
 *
 * The number of the node is cut to 32 bits, as the component does. A limit named twice in one reservation:
 * the later one counts.
 *
 * Return: 0; -EINVAL; -ENOMEM; what @each returned.
 */
int lkg_flag_reserved_memory(const char *text, size_t size,
                             int (*each)(void *userdata, int32_t node, bool first, struct lkg_span type,
                                         struct lkg_span source, const struct lkg_quantity *quantity),
                             void *userdata, char *reason);

/**
 * lkg_flag_memory_type() - can memory of this type be reserved: `memory`, or `hugepages-` and any suffix?
 */
bool lkg_flag_memory_type(struct lkg_span type);
