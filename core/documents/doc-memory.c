/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the small pieces that trees are made of. There may be millions of them, and one evaluation
 * allocates a few hundred and frees them a moment later: malloc would add a word to each, and join and split
 * the same blocks again and again.
 *
 * A block has pieces of one size. The first free piece of a size is taken, from a block that has any; a block
 * without a piece in use goes back to the kernel, except one of each size. Single-threaded, like all trees.
 *
 * A build with memory checkers and a program under valgrind call malloc each time, so that memory errors are
 * found.
 */
#include <sys/mman.h>

#include "doc-layout.h"
#include <lkg-config.h>

#if LKG_HAVE_VALGRIND
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#define STEP       sizeof(void *)
#define PIECE_MAX  1024u /* bytes; above that malloc is asked */
#define BLOCK_SIZE 65536u

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define ALWAYS_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ALWAYS_MALLOC 1
#endif
#ifndef ALWAYS_MALLOC
#define ALWAYS_MALLOC 0
#endif

struct piece {
        struct piece *next;
};

/* The header at the beginning of its own memory, at a multiple of BLOCK_SIZE. */
struct block {
        struct block *next, *previous; /* of those of a size with a free piece */
        struct piece *free;            /* pieces that were in use before */
        unsigned n_used, n_made; /* pieces in use; pieces ever used: the memory after them is untouched */
        unsigned size, n_max;
};

static struct block *with_room[PIECE_MAX / STEP + 1];
static size_t in_use;

static bool is_malloced(size_t size)
{
        return ALWAYS_MALLOC || size > PIECE_MAX || RUNNING_ON_VALGRIND;
}

static void list_add(struct block *block)
{
        struct block **first = &with_room[block->size / STEP];

        block->previous = NULL;
        block->next = *first;
        if (*first)
                (*first)->previous = block;
        *first = block;
}

static void list_remove(struct block *block)
{
        if (block->next)
                block->next->previous = block->previous;
        if (block->previous)
                block->previous->next = block->next;
        else
                with_room[block->size / STEP] = block->next;
}

/* Map memory at a multiple of its size: map twice as much and unmap the excess. */
static void *map_block(void)
{
        char *p = mmap(NULL, 2 * BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        size_t before;

        if (p == MAP_FAILED)
                return NULL;
        before = -(uintptr_t)p % BLOCK_SIZE;
        if (before > 0)
                (void)munmap(p, before);
        (void)munmap(p + before + BLOCK_SIZE, BLOCK_SIZE - before);
        /* Only the memory before and after it was unmapped. */
        /* cppcheck-suppress deallocret */
        return p + before;
}

static struct block *block_new(size_t size)
{
        struct block *block = map_block();

        if (!block)
                return NULL;
        block->size = (unsigned)size;
        block->n_max = (unsigned)((BLOCK_SIZE - sizeof(*block)) / size);
        list_add(block);
        return block;
}

static void *block_take(struct block *block)
{
        struct piece *piece = block->free;

        if (piece)
                block->free = piece->next;
        else
                piece = (struct piece *)(void *)((char *)(block + 1) +
                                                 (size_t)block->n_made++ * block->size);
        if (++block->n_used == block->n_max)
                list_remove(block);
        return piece;
}

static void *take(size_t size)
{
        struct block *block;

        if (is_malloced(size))
                return malloc(size);
        size = (size + STEP - 1) / STEP * STEP;
        block = with_room[size / STEP];
        if (!block)
                block = block_new(size);
        return block ? block_take(block) : NULL;
}

void *lkg_piece_new(size_t size)
{
        void *p = take(size);

        if (p)
                in_use += size;
        return p;
}

size_t lkg_pieces_size(void)
{
        return in_use;
}

void lkg_piece_free(void *p, size_t size)
{
        struct block *block = (struct block *)((uintptr_t)p & ~(uintptr_t)(BLOCK_SIZE - 1));
        struct piece *piece = p;

        if (!p)
                return;
        in_use -= size;
        if (is_malloced(size)) {
                free(p);
                return;
        }
        if (block->n_used-- == block->n_max)
                list_add(block);
        piece->next = block->free;
        block->free = piece;
        if (block->n_used == 0 && (block->next || block->previous)) {
                list_remove(block);
                (void)munmap(block, BLOCK_SIZE);
        }
}
