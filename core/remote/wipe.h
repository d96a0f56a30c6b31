/* SPDX-License-Identifier: Apache-2.0 */
/* Overwrites secrets before their memory is freed. */
#pragma once

#include <lkg/documents.h>

/** lkg_wipe_free() - overwrite a text, then free it. NULL is fine. */
void lkg_wipe_free(char *text);
void lkg_wipe_freep(char **text);

/**
 * lkg_value_wipe() - overwrite the text of @value; does nothing unless it is a string; NULL is fine. For a
 * tree that only the caller references and frees next: the value must not be read again.
 */
void lkg_value_wipe(const struct lkg_value *value);
