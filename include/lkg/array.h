/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow: the one place where that is written. An array is three members of whoever has it, `items`, `n` and, where it
 * grows in strides, `allocated`; all are 0 at the beginning, and free(items) ends it.
 */
#pragma once

#include <lkg/base.h>

static inline int lkg_array_resize(void *items, size_t n, size_t size)
{
        void *grown, *old;

        memcpy(&old, items, sizeof(old));
        grown = reallocarray(old, n, size);
        if (!grown)
                return -ENOMEM;
        memcpy(items, &grown, sizeof(grown));
        return 0;
}

static inline int lkg_array_reserve(void *items, size_t n, size_t *allocated, size_t size)
{
        size_t more = *allocated ? 2 * *allocated : 4;

        if (n < *allocated)
                return 0;
        if (lkg_array_resize(items, more, size) < 0)
                return -ENOMEM;
        *allocated = more;
        return 0;
}

/** LKG_RESERVE() - room for one more item behind the @n that there are, in strides that double. Return: 0; -ENOMEM, nothing changed. */
#define LKG_RESERVE(items, n, allocated) lkg_array_reserve(&(items), n, &(allocated), sizeof(*(items)))

/** LKG_RESIZE() - room for @n items, which is never less than there are. Return: 0; -ENOMEM, nothing changed. */
#define LKG_RESIZE(items, n) lkg_array_resize(&(items), (n), sizeof(*(items)))

/** LKG_GROW() - the same without strides, for what has few items. */
#define LKG_GROW(items, n) LKG_RESIZE(items, (n) + 1)
