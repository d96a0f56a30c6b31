/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the form of a request: are all arguments there, is each name terminated, and is it a single name?
 * The kernel sends no other requests, but libfuse trusts every length, and a replayed request is in memory
 * that a compromised predecessor may have written. A name such as `..` or `a/b` would lead into the host's
 * file system.
 */
#include "held-requests.h"

struct shape {
        uint8_t fixed; /* minimum number of bytes at its start */
        uint8_t names; /* number of file names that follow, */
        uint8_t texts; /* and of other texts */
        uint8_t count; /* 1 + offset in the fixed part of a four-byte count of what follows; 0: none */
        uint8_t each;  /* bytes per item */
};

#define COUNT(type, member) (uint8_t)(1 + offsetof(struct type, member))
#define FIXED(type)         (uint8_t)sizeof(struct type)

/* Unlisted requests have no arguments, or libfuse refuses them without reading any. */
static const struct shape shapes[] = {
        [FUSE_LOOKUP] = { 0, 1 },
        [FUSE_FORGET] = { FIXED(fuse_forget_in) },
        [FUSE_GETATTR] = { FIXED(fuse_getattr_in) },
        [FUSE_SETATTR] = { FIXED(fuse_setattr_in) },
        [FUSE_SYMLINK] = { 0, 1, 1 },
        [FUSE_MKNOD] = { FIXED(fuse_mknod_in), 1 },
        [FUSE_MKDIR] = { FIXED(fuse_mkdir_in), 1 },
        [FUSE_UNLINK] = { 0, 1 },
        [FUSE_RMDIR] = { 0, 1 },
        [FUSE_RENAME] = { FIXED(fuse_rename_in), 2 },
        [FUSE_LINK] = { FIXED(fuse_link_in), 1 },
        [FUSE_OPEN] = { FIXED(fuse_open_in) },
        [FUSE_READ] = { FIXED(fuse_read_in) },
        [FUSE_WRITE] = { FIXED(fuse_write_in), 0, 0, COUNT(fuse_write_in, size), 1 },
        [FUSE_RELEASE] = { FIXED(fuse_release_in) },
        [FUSE_FSYNC] = { FIXED(fuse_fsync_in) },
        [FUSE_SETXATTR] = { FUSE_COMPAT_SETXATTR_IN_SIZE, 0, 1, COUNT(fuse_setxattr_in, size), 1 },
        [FUSE_GETXATTR] = { FIXED(fuse_getxattr_in), 0, 1 },
        [FUSE_LISTXATTR] = { FIXED(fuse_getxattr_in) },
        [FUSE_REMOVEXATTR] = { 0, 0, 1 },
        [FUSE_FLUSH] = { FIXED(fuse_flush_in) },
        [FUSE_OPENDIR] = { FIXED(fuse_open_in) },
        [FUSE_READDIR] = { FIXED(fuse_read_in) },
        [FUSE_RELEASEDIR] = { FIXED(fuse_release_in) },
        [FUSE_FSYNCDIR] = { FIXED(fuse_fsync_in) },
        [FUSE_GETLK] = { FIXED(fuse_lk_in) },
        [FUSE_SETLK] = { FIXED(fuse_lk_in) },
        [FUSE_SETLKW] = { FIXED(fuse_lk_in) },
        [FUSE_ACCESS] = { FIXED(fuse_access_in) },
        [FUSE_CREATE] = { FIXED(fuse_create_in), 1 },
        [FUSE_INTERRUPT] = { FIXED(fuse_interrupt_in) },
        [FUSE_BMAP] = { FIXED(fuse_bmap_in) },
        [FUSE_IOCTL] = { FIXED(fuse_ioctl_in), 0, 0, COUNT(fuse_ioctl_in, in_size), 1 },
        [FUSE_POLL] = { FIXED(fuse_poll_in) },
        [FUSE_BATCH_FORGET] = { FIXED(fuse_batch_forget_in), 0, 0, COUNT(fuse_batch_forget_in, count),
                                FIXED(fuse_forget_one) },
        [FUSE_FALLOCATE] = { FIXED(fuse_fallocate_in) },
        [FUSE_READDIRPLUS] = { FIXED(fuse_read_in) },
        [FUSE_RENAME2] = { FIXED(fuse_rename2_in), 2 },
        [FUSE_LSEEK] = { FIXED(fuse_lseek_in) },
        [FUSE_COPY_FILE_RANGE] = { FIXED(fuse_copy_file_range_in) },
};

/* The file system limits its length (ENAMETOOLONG). */
static bool is_name(const char *text)
{
        return *text && !strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

/* DESTROY is for file systems on a block device; NOTIFY_REPLY for servers that send such a notification. */
static bool is_never_sent(uint32_t opcode)
{
        return opcode == FUSE_DESTROY || opcode == FUSE_NOTIFY_REPLY;
}

static bool is_answered(uint32_t opcode)
{
        return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT &&
               opcode != FUSE_NOTIFY_REPLY;
}

bool request_is_sound(const struct fuse_in_header *header, size_t size)
{
        const struct shape none = { 0 }, *shape = header->opcode < LKG_ARRAY_SIZE(shapes)
                                                          ? &shapes[header->opcode]
                                                          : &none;
        const char *p = (const char *)(header + 1), *fixed = p, *end = (const char *)header + size;
        uint32_t count = 0;

        if (size < sizeof(*header) || header->len != size || is_never_sent(header->opcode) ||
            (header->unique == 0 && is_answered(header->opcode)) || (size_t)(end - p) < shape->fixed)
                return false;
        p += shape->fixed;
        for (unsigned i = 0; i < shape->names + shape->texts; i++) {
                const char *nul = memchr(p, '\0', (size_t)(end - p));

                if (!nul || (i < shape->names && !is_name(p)))
                        return false;
                p = nul + 1;
        }
        if (shape->count)
                memcpy(&count, fixed + shape->count - 1, sizeof(count));
        return (uint64_t)count * shape->each <= (uint64_t)(end - p);
}

bool request_has_reply(const struct fuse_in_header *header)
{
        return header->unique != 0 && is_answered(header->opcode);
}
