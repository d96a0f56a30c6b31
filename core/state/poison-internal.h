/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by poison.c and poison-file.c. */
#pragma once

#include <lkg/store.h>

/** lkg_poison_add() - add an entry; drops the oldest if there are too many. */
void lkg_poison_add(struct lkg_poison *poison, const struct lkg_refused *refused);
/** lkg_poison_load() - read the list. Entries that another version of lkgfs wrote are lifted. Return: 0 or -ENOMEM. */
int lkg_poison_load(struct lkg_poison *poison, struct lkg_report *report);
/** lkg_poison_load_judged() - read known keys into a note without any. */
void lkg_poison_load_judged(struct lkg_poison *poison);
/** lkg_poison_save_judged() - append the keys that the file does not have. Return: 0 or -errno. */
int lkg_poison_save_judged(struct lkg_poison *poison, struct lkg_error *err);
