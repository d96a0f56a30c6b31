/* SPDX-License-Identifier: Apache-2.0 */
/* Several documents in one input, separated by lines `%%`. */
#pragma once

#include <string.h>

#include <lkg/base.h>

#define FUZZ_SEPARATOR "\n%%\n"

/* Get the next document of *data; false after the last one. *data is NULL at the end. */
static inline bool fuzz_next_document(const char **data, size_t *size, const char **ret, size_t *ret_size)
{
        const char *hit;

        if (!*data)
                return false;
        hit = memmem(*data, *size, FUZZ_SEPARATOR, strlen(FUZZ_SEPARATOR));
        *ret = *data;
        *ret_size = hit ? (size_t)(hit - *data) : *size;
        if (!hit) {
                *data = NULL;
                return true;
        }
        *size -= *ret_size + strlen(FUZZ_SEPARATOR);
        *data = hit + strlen(FUZZ_SEPARATOR);
        return true;
}
