/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings that own their strings. */
#pragma once

#include <lkg/base.h>

struct lkg_strings {
        char **items;
        size_t n_items;
};

/**
 * lkg_strings_take() - append @text, which the list owns from now on, to a list that is two members of another struct.
 *
 * Return: 0; -ENOMEM: nothing changed and @text is freed; also if @text is NULL, so that strdup() can be
 * used in the call.
 */
int lkg_strings_take(char ***items, size_t *n_items, char *text);

/** lkg_strings_add() - append a copy of the @size bytes at @text, up to their first NUL. Return: 0; -ENOMEM, nothing changed. */
int lkg_strings_add(struct lkg_strings *strings, const char *text, size_t size);

/** lkg_strings_parse() - strings that each end with a NUL (the last one may lack it). Return: 0 or -ENOMEM. */
int lkg_strings_parse(const char *data, size_t size, struct lkg_strings *ret);

/** lkg_strings_copy() - Return: 0 or -ENOMEM. */
int lkg_strings_copy(const struct lkg_strings *strings, struct lkg_strings *ret);

bool lkg_strings_equal(const struct lkg_strings *a, const struct lkg_strings *b);
void lkg_strings_deinit(struct lkg_strings *strings);
