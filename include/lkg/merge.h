/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two documents -> one. Inputs are never changed; the result shares what did not change and every leaf keeps
 * its origin and the value it shadows.
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/error.h>

/**
 * lkg_merge_json() - JSON merge patch as gopkg.in/evanphx/json-patch.v4 applies it (layering.md 1.4, "JMP").
 * @base: a map (anything else is replaced by the patch)
 * @ret:  caller owns one reference
 *
 * Return: 0 or -ENOMEM.
 */
int lkg_merge_json(const struct lkg_value *base, const struct lkg_value *patch, struct lkg_value **ret);

/**
 * lkg_merge_strategic() - strategic merge patch on a kind whose lists are all atomic (layering.md 1.6,
 * "SMP"): `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/x`, `$setElementOrder/x` are honoured.
 *
 * Return: 0; -EBADMSG when @report says what the patch does wrong; -ENOMEM.
 */
int lkg_merge_strategic(const struct lkg_value *base, const struct lkg_value *patch,
                        struct lkg_report *report, struct lkg_value **ret);
