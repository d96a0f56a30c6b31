/* SPDX-License-Identifier: Apache-2.0 */
#include "wipe.h"

#include <openssl/crypto.h>

void lkg_wipe_free(char *text)
{
        if (text)
                OPENSSL_cleanse(text, strlen(text));
        free(text);
}

void lkg_wipe_freep(char **text)
{
        lkg_wipe_free(*text);
}

void lkg_value_wipe(const struct lkg_value *value)
{
        const char *text;
        size_t size;

        if (!value || lkg_value_type(value) != LKG_STRING)
                return;
        text = lkg_value_text(value, &size);
        OPENSSL_cleanse((void *)(uintptr_t)text, size);
}
