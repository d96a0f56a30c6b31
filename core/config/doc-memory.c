/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the small pieces that trees are made of. A judgement makes some hundred of them and lets go of
 * as many a moment later, which malloc's own lists are too short for: it would join and split the same
 * blocks again and again.
 *
 * Pieces that were freed wait in one list for each size, a few KiB at most, for the next of that size. One
 * thread, as all trees. A build that looks for mistakes with memory goes to malloc each time, so that it can
 * find them.
 */
#include "doc-layout.h"

#define STEP      16u   /* malloc's own */
#define PIECE_MAX 256u  /* bytes; above that malloc is asked */
#define KEPT_MAX  8192u /* bytes that wait, for each size */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define KEEPS_NOTHING 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_NOTHING 1
#endif
#ifndef KEEPS_NOTHING
#define KEEPS_NOTHING 0
#endif

struct piece {
        struct piece *next;
};

static struct {
        struct piece *first;
        size_t bytes;
} kept[PIECE_MAX / STEP + 1];

static size_t rounded(size_t size)
{
        return (size + STEP - 1) / STEP * STEP;
}

void *lkg_piece_new(size_t size)
{
        struct piece *piece;

        if (KEEPS_NOTHING || size > PIECE_MAX)
                return malloc(size);
        size = rounded(size);
        piece = kept[size / STEP].first;
        if (!piece)
                return malloc(size);
        kept[size / STEP].first = piece->next;
        kept[size / STEP].bytes -= size;
        return piece;
}

void lkg_piece_free(void *p, size_t size)
{
        struct piece *piece = p;

        if (!p)
                return;
        if (KEEPS_NOTHING || size > PIECE_MAX || kept[rounded(size) / STEP].bytes >= KEPT_MAX) {
                free(p);
                return;
        }
        size = rounded(size);
        piece->next = kept[size / STEP].first;
        kept[size / STEP].first = piece;
        kept[size / STEP].bytes += size;
}

__attribute__((destructor)) static void free_all(void)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kept); i++) {
                while (kept[i].first) {
                        struct piece *next = kept[i].first->next;

                        free(kept[i].first);
                        kept[i].first = next;
                }
                kept[i].bytes = 0;
        }
}
