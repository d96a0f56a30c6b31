/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays. An array is three members of the struct that owns it: `items`, `n` and, if it grows in
 * steps, `allocated`. All are initially 0, and free(items) frees it.
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

/**
 * LKG_RESERVE() - make room for one more item after the existing @n; doubles the size.
 * Return: 0; -ENOMEM, nothing changed.
 */
#define LKG_RESERVE(items, n, allocated) lkg_array_reserve(&(items), n, &(allocated), sizeof(*(items)))

/** LKG_RESIZE() - make room for @n items; never shrinks. Return: 0; -ENOMEM, nothing changed. */
#define LKG_RESIZE(items, n) lkg_array_resize(&(items), (n), sizeof(*(items)))

/** LKG_GROW() - make room for exactly one more: for arrays with few items. */
#define LKG_GROW(items, n) LKG_RESIZE(items, (n) + 1)
