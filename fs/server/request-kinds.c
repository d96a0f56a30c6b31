/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies a request by its header and the first words of its arguments, before it is decoded: only
 * requests that are answered from memory and tmpfs are certain to finish; one that reaches the source
 * directory may hang on a dead disk.
 */
#include <fcntl.h>

#include "held-requests.h"
#include "file-server.h"

struct opcode {
        enum request_kind kind; /* if the node is one of the source */
        /* its arguments begin with a file handle, which may refer to the source from any node */
        bool has_handle;
};

/* An unlisted request may do anything to its node. */
static const struct opcode opcodes[] = {
        [FUSE_LOOKUP] = { REQUEST_QUICK, false },      [FUSE_FORGET] = { REQUEST_VIEW, false },
        [FUSE_BATCH_FORGET] = { REQUEST_VIEW, false }, [FUSE_INTERRUPT] = { REQUEST_VIEW, false },
        [FUSE_GETATTR] = { REQUEST_QUICK, false },     [FUSE_SETATTR] = { REQUEST_LONG, false },
        [FUSE_READLINK] = { REQUEST_QUICK, false },    [FUSE_SYMLINK] = { REQUEST_LONG, false },
        [FUSE_MKNOD] = { REQUEST_LONG, false },        [FUSE_MKDIR] = { REQUEST_LONG, false },
        [FUSE_UNLINK] = { REQUEST_LONG, false },       [FUSE_RMDIR] = { REQUEST_LONG, false },
        [FUSE_RENAME] = { REQUEST_LONG, false },       [FUSE_RENAME2] = { REQUEST_LONG, false },
        [FUSE_LINK] = { REQUEST_LONG, false },         [FUSE_OPEN] = { REQUEST_QUICK, false },
        [FUSE_READ] = { REQUEST_QUICK, true },         [FUSE_WRITE] = { REQUEST_LONG, true },
        [FUSE_STATFS] = { REQUEST_QUICK, false },      [FUSE_RELEASE] = { REQUEST_QUICK, true },
        [FUSE_FSYNC] = { REQUEST_LONG, true },         [FUSE_SETXATTR] = { REQUEST_LONG, false },
        [FUSE_GETXATTR] = { REQUEST_QUICK, false },    [FUSE_LISTXATTR] = { REQUEST_QUICK, false },
        [FUSE_REMOVEXATTR] = { REQUEST_LONG, false },  [FUSE_FLUSH] = { REQUEST_LONG, true },
        [FUSE_OPENDIR] = { REQUEST_VIEW, false }, /* nothing is opened yet */
        [FUSE_READDIR] = { REQUEST_QUICK, false },     [FUSE_RELEASEDIR] = { REQUEST_QUICK, false },
        [FUSE_FSYNCDIR] = { REQUEST_LONG, false },     [FUSE_CREATE] = { REQUEST_LONG, false },
        [FUSE_POLL] = { REQUEST_VIEW, false },         [FUSE_IOCTL] = { REQUEST_QUICK, true },
        [FUSE_FALLOCATE] = { REQUEST_LONG, true },     [FUSE_READDIRPLUS] = { REQUEST_QUICK, false },
        [FUSE_LSEEK] = { REQUEST_QUICK, true },        [FUSE_COPY_FILE_RANGE] = { REQUEST_LONG, true },
};

static struct opcode opcode_of(const struct fuse_in_header *header)
{
        static const struct opcode other = { REQUEST_LONG, false };

        return header->opcode < LKG_ARRAY_SIZE(opcodes) ? opcodes[header->opcode] : other;
}

static const void *argument(const struct fuse_in_header *header)
{
        return header + 1;
}

/* Its file handle; 0 = none, or not of an open file of the source. */
static uint64_t handle_of(const struct fuse_in_header *header)
{
        uint64_t fh;

        if (!opcode_of(header).has_handle || header->len < sizeof(*header) + sizeof(fh))
                return 0;
        memcpy(&fh, argument(header), sizeof(fh));
        return handle_is_file(fh) ? fh : 0;
}

/* `baseWrites: through`: a view file whose writes go to the base, opened or truncated by its name. */
static bool goes_through(const struct fuse_in_header *header, const struct lkg_node *node)
{
        uint32_t flags;

        if (!(node->flags & LKG_ENTRY_THROUGH))
                return false;
        if (header->opcode != FUSE_OPEN)
                return header->opcode == FUSE_SETATTR;
        memcpy(&flags, argument(header), sizeof(flags));
        return (flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY;
}

/* In the root directory the view answers for its own names and for the attributes (source_attributes). */
static enum request_kind kind_in_root(const struct fuse_in_header *header, const struct lkg_node *root)
{
        enum request_kind kind = opcode_of(header).kind;
        const char *name = argument(header);

        if (header->opcode == FUSE_GETATTR)
                return REQUEST_VIEW;
        if (header->opcode == FUSE_LOOKUP &&
            (strcmp(name, LKG_DOOR_DIR) == 0 || publication_owns(root, name)))
                return REQUEST_VIEW;
        return kind;
}

/* Does it have a handle of an open file that is not content? */
static bool leads_to_source(const struct fuse_in_header *header)
{
        uint64_t fh = handle_of(header);
        const struct lkg_file *file = fh ? file_get(fh) : NULL;
        const struct lkg_node *node = file ? node_get(file->node) : NULL;

        return fh != 0 && (!node || node_is_source(node));
}

enum request_kind request_kind(const struct fuse_in_header *header)
{
        const struct lkg_node *node = node_get(header->nodeid);
        enum request_kind kind = opcode_of(header).kind;

        if (kind == REQUEST_VIEW || leads_to_source(header))
                return kind;
        if (header->opcode == FUSE_STATFS)
                return kind;
        if (!node)
                return REQUEST_VIEW;
        if (atomic_load(&node->kind) == LKG_NODE_ROOT)
                return kind_in_root(header, node);
        if (atomic_load(&node->kind) == LKG_NODE_SOURCE)
                return kind;
        return goes_through(header, node) ? REQUEST_LONG : REQUEST_VIEW;
}

bool request_is_long(const struct fuse_in_header *header)
{
        return opcode_of(header).kind == REQUEST_LONG;
}

/* Names and attributes of a directory are changed, looked up and listed under its lock. */
static bool locks_directory(uint32_t opcode)
{
        static const bool locks[] = {
                [FUSE_LOOKUP] = true,      [FUSE_SETATTR] = true,     [FUSE_SYMLINK] = true,
                [FUSE_MKNOD] = true,       [FUSE_MKDIR] = true,       [FUSE_UNLINK] = true,
                [FUSE_RMDIR] = true,       [FUSE_RENAME] = true,      [FUSE_LINK] = true,
                [FUSE_READDIR] = true,     [FUSE_READDIRPLUS] = true, [FUSE_CREATE] = true,
                [FUSE_RENAME2] = true,     [FUSE_FSYNCDIR] = true,    [FUSE_SETXATTR] = true,
                [FUSE_REMOVEXATTR] = true,
        };

        return opcode < LKG_ARRAY_SIZE(locks) && locks[opcode];
}

/*
 * A waiting request that holds the root's lock exclusively blocks those that share it, a lookup and a
 * listing.
 */
bool request_locks_root(const struct fuse_in_header *header)
{
        uint64_t newdir;

        if (!locks_directory(header->opcode))
                return false;
        if (header->nodeid == FUSE_ROOT_ID)
                return true;
        if (header->opcode != FUSE_RENAME && header->opcode != FUSE_RENAME2)
                return false;
        memcpy(&newdir, argument(header), sizeof(newdir)); /* both begin with it */
        return newdir == FUSE_ROOT_ID;
}

/*
 * A lookup of a new name, and open(O_CREAT) of any name, lock the directory; fsync() and lseek() lock files
 * that are only being read.
 */
bool request_locks(const struct fuse_in_header *header)
{
        return locks_directory(header->opcode) || header->opcode == FUSE_FSYNC ||
               header->opcode == FUSE_LSEEK;
}

uint64_t request_device(const struct fuse_in_header *header)
{
        const struct lkg_file *file = file_get(handle_of(header));
        const struct lkg_node *node = node_get(file ? file->node : header->nodeid);

        if (node && atomic_load(&node->kind) == LKG_NODE_VDIR)
                return ENGINE_DEVICE;
        return node && atomic_load(&node->kind) == LKG_NODE_SOURCE ? node->dev : server.source_dev;
}

/* A release, and the writeback of a page, do not identify their caller. */
uint32_t request_owner(const struct fuse_in_header *header)
{
        const struct fuse_ctx ctx = { .uid = header->uid, .gid = header->gid, .pid = (pid_t)header->pid };
        uint64_t fh = handle_of(header);
        bool unknown = header->opcode == FUSE_RELEASE || header->pid == 0;

        if (header->opcode == FUSE_WRITE)
                unknown = ((const struct fuse_write_in *)argument(header))->write_flags & FUSE_WRITE_CACHE;
        return unknown && fh != 0 ? file_owner(fh) : caller_owner(&ctx);
}

/* ---- shape ---- */

/*
 * Checks the form of a request: are all arguments there, is each name terminated, and is it a single name?
 * The kernel sends no other requests, but libfuse trusts every length, and a replayed request is in memory
 * that a compromised predecessor may have written. A name such as `..` or `a/b` would lead into the host's
 * file system.
 */

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
