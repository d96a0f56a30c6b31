/* SPDX-License-Identifier: Apache-2.0 */
/* What poison.c and poison-file.c share. */
#pragma once

#include <lkg/poison.h>

/** lkg_poison_add() - one more entry; the oldest goes when there are too many. Return: 0 or -ENOMEM. */
int lkg_poison_add(struct lkg_poison *poison, const struct lkg_refused *refused);
/** lkg_poison_load() - the list. Entries that another version of lkgfs wrote are lifted. Return: 0 or -ENOMEM. */
int lkg_poison_load(struct lkg_poison *poison, struct lkg_report *report);
/** lkg_poison_load_judged() - known keys, into a note that knows none. */
void lkg_poison_load_judged(struct lkg_poison *poison);
/** lkg_poison_save_judged() - those that the file does not have. Return: 0 or -errno. */
int lkg_poison_save_judged(struct lkg_poison *poison, struct lkg_error *err);
