/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one part of the answer to FUSE_INIT in which views differ that the same file server can serve: may files be mapped shared whose content
 * the kernel does not keep? Views of 0.1.0 have not asked for it. <linux/fuse.h>, FUSE_DIRECT_IO_ALLOW_MMAP (Linux 6.6), in the second half of
 * the flags.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <linux/fuse.h>

#define LKG_INIT_MAPS_DIRECTLY (1u << 4)

/** lkg_init_set_maps() - say so in @reply, or not. Return: did it say so? A reply that is too short never does. */
static inline bool lkg_init_set_maps(void *reply, size_t size, bool maps)
{
        struct fuse_init_out out;
        char *at = (char *)reply + sizeof(struct fuse_out_header);
        bool did;

        if (size < sizeof(struct fuse_out_header) + sizeof(out))
                return false;
        memcpy(&out, at, sizeof(out));
        did = out.flags & FUSE_INIT_EXT && out.flags2 & LKG_INIT_MAPS_DIRECTLY;
        out.flags2 &= ~LKG_INIT_MAPS_DIRECTLY;
        out.flags2 |= maps ? LKG_INIT_MAPS_DIRECTLY : 0;
        out.flags = out.flags2 ? out.flags | FUSE_INIT_EXT : out.flags & ~(uint32_t)FUSE_INIT_EXT;
        memcpy(at, &out, sizeof(out));
        return did;
}
