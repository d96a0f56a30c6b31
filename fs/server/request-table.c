/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each request may do, who may make it, and what it consists of: a row for each. A request is classified by its header and
 * the first words of its arguments, before it is decoded: only requests that are answered from memory and tmpfs are certain to
 * finish; one that reaches the source directory may hang on a dead disk.
 *
 * A lookup of a new name, and open(O_CREAT) of any name, lock the directory, and the kernel may ask for its attributes and its ACL
 * then; fsync() and lseek() lock files that are only being read.
 */
#include <fcntl.h>

#include "requests.h"

struct shape {
        uint8_t fixed; /* minimum number of bytes at its start */
        uint8_t names; /* number of file names that follow, */
        uint8_t texts; /* and of other texts */
        uint8_t count; /* 1 + offset in the fixed part of a four-byte count of what follows; 0: none */
        uint8_t each;  /* bytes per item */
};

struct request_row {
        enum lkg_request_kind kind; /* if the node is one of the source */
        unsigned flags;             /* enum request_flags */
        struct shape shape;
};

#define FIXED(type)         (uint8_t)sizeof(struct type)
#define COUNT(type, member) (uint8_t)(1 + offsetof(struct type, member))
#define VIEW                REQUEST_VIEW
#define QUICK               REQUEST_QUICK
#define LONG                REQUEST_LONG
#define LOCKS               REQUEST_LOCKS_DIR
#define HANDLE              REQUEST_HANDLE
#define EINTR_OK            REQUEST_EINTR
#define NAME                (REQUEST_CHANGES | LOCKS) /* makes, removes or replaces a name */
#define OTHERS              REQUEST_OTHERS
#define ANY                 REQUEST_ANY_NODE

/*
 * A write, a close or a change of attributes is in the page cache like a read, most likely; what is not is noticed by a tick (workers.c).
 * Unlisted requests have no arguments, or libfuse refuses them without reading any.
 */
static const struct request_row rows[] = {
        [FUSE_LOOKUP] = { QUICK, LOCKS, { 0, 1 } },
        [FUSE_FORGET] = { VIEW, REQUEST_SILENT | ANY, { FIXED(fuse_forget_in) } },
        [FUSE_GETATTR] = { QUICK, LOCKS, { FIXED(fuse_getattr_in) } },
        [FUSE_SETATTR] = { QUICK, REQUEST_CHANGES | LOCKS | EINTR_OK, { FIXED(fuse_setattr_in) } },
        [FUSE_READLINK] = { QUICK },
        [FUSE_SYMLINK] = { LONG, NAME, { 0, 1, 1 } },
        [FUSE_MKNOD] = { LONG, NAME, { FIXED(fuse_mknod_in), 1 } },
        [FUSE_MKDIR] = { LONG, NAME, { FIXED(fuse_mkdir_in), 1 } },
        [FUSE_UNLINK] = { LONG, NAME, { 0, 1 } },
        [FUSE_RMDIR] = { LONG, NAME, { 0, 1 } },
        [FUSE_RENAME] = { LONG, NAME | OTHERS, { FIXED(fuse_rename_in), 2 } },
        [FUSE_LINK] = { LONG, NAME | OTHERS, { FIXED(fuse_link_in), 1 } },
        [FUSE_OPEN] = { QUICK, EINTR_OK, { FIXED(fuse_open_in) } },
        [FUSE_READ] = { QUICK, HANDLE | EINTR_OK, { FIXED(fuse_read_in) } },
        [FUSE_WRITE] = { QUICK,
                         HANDLE | EINTR_OK,
                         { FIXED(fuse_write_in), 0, 0, COUNT(fuse_write_in, size), 1 } },
        [FUSE_STATFS] = { QUICK, EINTR_OK | ANY },
        [FUSE_RELEASE] = { QUICK, HANDLE | ANY, { FIXED(fuse_release_in) } },
        [FUSE_FSYNC] = { LONG, HANDLE | EINTR_OK | REQUEST_LOCKS_FILE, { FIXED(fuse_fsync_in) } },
        [FUSE_SETXATTR] = { LONG,
                            REQUEST_CHANGES | LOCKS | OTHERS,
                            { FUSE_COMPAT_SETXATTR_IN_SIZE, 0, 1, COUNT(fuse_setxattr_in, size), 1 } },
        [FUSE_GETXATTR] = { QUICK, LOCKS, { FIXED(fuse_getxattr_in), 0, 1 } },
        [FUSE_LISTXATTR] = { QUICK, 0, { FIXED(fuse_getxattr_in) } },
        [FUSE_REMOVEXATTR] = { LONG, REQUEST_CHANGES | LOCKS | OTHERS, { 0, 0, 1 } },
        [FUSE_FLUSH] = { QUICK, HANDLE, { FIXED(fuse_flush_in) } },
        [FUSE_OPENDIR] = { VIEW, 0, { FIXED(fuse_open_in) } }, /* nothing is opened yet */
        [FUSE_READDIR] = { QUICK, LOCKS, { FIXED(fuse_read_in) } },
        [FUSE_RELEASEDIR] = { QUICK, ANY, { FIXED(fuse_release_in) } },
        [FUSE_FSYNCDIR] = { LONG, LOCKS, { FIXED(fuse_fsync_in) } },
        [FUSE_GETLK] = { VIEW, 0, { FIXED(fuse_lk_in) } },
        [FUSE_SETLK] = { VIEW, 0, { FIXED(fuse_lk_in) } },
        [FUSE_SETLKW] = { VIEW, 0, { FIXED(fuse_lk_in) } },
        [FUSE_ACCESS] = { VIEW, 0, { FIXED(fuse_access_in) } },
        [FUSE_CREATE] = { LONG, NAME | EINTR_OK | OTHERS, { FIXED(fuse_create_in), 1 } },
        [FUSE_INTERRUPT] = { VIEW, REQUEST_SILENT, { FIXED(fuse_interrupt_in) } },
        [FUSE_BMAP] = { VIEW, 0, { FIXED(fuse_bmap_in) } },
        [FUSE_DESTROY] = { VIEW, REQUEST_NEVER }, /* for file systems on a block device */
        [FUSE_IOCTL] = { QUICK, HANDLE, { FIXED(fuse_ioctl_in), 0, 0, COUNT(fuse_ioctl_in, in_size), 1 } },
        [FUSE_POLL] = { VIEW, ANY, { FIXED(fuse_poll_in) } },
        [FUSE_NOTIFY_REPLY] = { VIEW,
                                REQUEST_NEVER | REQUEST_SILENT }, /* to a notification that we do not send */
        [FUSE_BATCH_FORGET] = { VIEW,
                                REQUEST_SILENT | ANY,
                                { FIXED(fuse_batch_forget_in), 0, 0, COUNT(fuse_batch_forget_in, count),
                                  FIXED(fuse_forget_one) } },
        [FUSE_FALLOCATE] = { LONG, HANDLE | EINTR_OK, { FIXED(fuse_fallocate_in) } },
        [FUSE_READDIRPLUS] = { QUICK, LOCKS, { FIXED(fuse_read_in) } },
        [FUSE_RENAME2] = { LONG, NAME | OTHERS, { FIXED(fuse_rename2_in), 2 } },
        [FUSE_LSEEK] = { QUICK, HANDLE | REQUEST_LOCKS_FILE, { FIXED(fuse_lseek_in) } },
        [FUSE_COPY_FILE_RANGE] = { LONG, HANDLE | EINTR_OK | ANY, { FIXED(fuse_copy_file_range_in) } },
};

static const struct request_row *row_of(const struct fuse_in_header *header)
{
        static const struct request_row other = { REQUEST_LONG };

        return header->opcode < LKG_ARRAY_SIZE(rows) ? &rows[header->opcode] : &other;
}

bool lkg_request_is(const struct fuse_in_header *header, unsigned flags)
{
        return row_of(header)->flags & flags;
}

static const void *argument(const struct fuse_in_header *header)
{
        return header + 1;
}

/* Its file handle; 0 = none, or not of an open file of the source. */
static uint64_t handle_of(const struct fuse_in_header *header)
{
        uint64_t fh;

        if (!lkg_request_is(header, REQUEST_HANDLE) || header->len < sizeof(*header) + sizeof(fh))
                return 0;
        memcpy(&fh, argument(header), sizeof(fh));
        return lkg_handle_is_file(fh) ? fh : 0;
}

static bool opens_for_reading(const struct fuse_in_header *header)
{
        uint32_t flags;

        memcpy(&flags, argument(header), sizeof(flags));
        return (flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
}

bool lkg_request_changes(const struct fuse_in_header *header)
{
        return lkg_request_is(header, REQUEST_CHANGES) ||
               (header->opcode == FUSE_OPEN && !opens_for_reading(header));
}

/* `baseWrites: through`: a view file whose writes go to the base, opened or truncated by its name. */
static bool goes_through(const struct fuse_in_header *header, const struct lkg_node *node)
{
        return (node->flags & LKG_ENTRY_THROUGH) &&
               (header->opcode == FUSE_SETATTR ||
                (header->opcode == FUSE_OPEN && !opens_for_reading(header)));
}

/* In the root directory the view answers for its own names, the attributes (lkg_source_attributes) and the ACL, if it can. */
static enum lkg_request_kind kind_in_root(const struct fuse_in_header *header, const struct lkg_node *root)
{
        const char *name = argument(header);

        if (header->opcode == FUSE_GETATTR ||
            (header->opcode == FUSE_LOOKUP &&
             (strcmp(name, LKG_DOOR_DIR) == 0 || lkg_publication_owns(root, name))) ||
            (header->opcode == FUSE_GETXATTR &&
             lkg_xattr_is_absent(root, name + sizeof(struct fuse_getxattr_in))))
                return REQUEST_VIEW;
        return row_of(header)->kind;
}

/* Does it have a handle of an open file that is not content? */
static bool leads_to_source(const struct fuse_in_header *header)
{
        uint64_t fh = handle_of(header);
        const struct lkg_file *file = fh ? lkg_file_get(fh) : NULL;
        const struct lkg_node *node = file ? lkg_node_get(file->node) : NULL;

        return fh != 0 && (!node || lkg_node_is_source(node));
}

enum lkg_request_kind lkg_request_kind(const struct fuse_in_header *header)
{
        const struct lkg_node *node = lkg_node_get(header->nodeid);
        enum lkg_request_kind kind = row_of(header)->kind;

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

bool lkg_request_is_long(const struct fuse_in_header *header)
{
        return row_of(header)->kind == REQUEST_LONG;
}

/*
 * A waiting request that holds the root's lock exclusively blocks those that share it, a lookup and a
 * listing.
 */
bool lkg_request_locks_root(const struct fuse_in_header *header)
{
        uint64_t newdir;

        if (!lkg_request_is(header, REQUEST_LOCKS_DIR))
                return false;
        if (header->nodeid == FUSE_ROOT_ID)
                return true;
        if (header->opcode != FUSE_RENAME && header->opcode != FUSE_RENAME2)
                return false;
        memcpy(&newdir, argument(header), sizeof(newdir)); /* both begin with it */
        return newdir == FUSE_ROOT_ID;
}

uint64_t lkg_request_device(const struct fuse_in_header *header)
{
        const struct lkg_file *file = lkg_file_get(handle_of(header));
        const struct lkg_node *node = lkg_node_get(file ? file->node : header->nodeid);

        if (node && atomic_load(&node->kind) == LKG_NODE_VDIR)
                return ENGINE_DEVICE;
        return node && atomic_load(&node->kind) == LKG_NODE_SOURCE ? node->dev : server.source_dev;
}

/* A release, and the writeback of a page, do not identify their caller. */
uint32_t lkg_request_owner(const struct fuse_in_header *header)
{
        const struct fuse_ctx ctx = { .uid = header->uid, .gid = header->gid, .pid = (pid_t)header->pid };
        uint64_t fh = handle_of(header);
        bool unknown = header->opcode == FUSE_RELEASE || header->pid == 0;

        if (header->opcode == FUSE_WRITE)
                unknown = ((const struct fuse_write_in *)argument(header))->write_flags & FUSE_WRITE_CACHE;
        return unknown && fh != 0 ? lkg_file_owner(fh) : lkg_caller_owner(&ctx);
}

/* ---- shape ---- */

/*
 * Checks the form of a request: are all arguments there, is each name terminated, and is it a single name?
 * The kernel sends no other requests, but libfuse trusts every length, and a replayed request is in memory
 * that a compromised predecessor may have written. A name such as `..` or `a/b` would lead into the host's
 * file system.
 */

/* The file system limits its length (ENAMETOOLONG). */
static bool is_name(const char *text)
{
        return *text && !strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

bool lkg_request_is_sound(const struct fuse_in_header *header, size_t size)
{
        const struct shape *shape = &row_of(header)->shape;
        const char *p = (const char *)(header + 1), *fixed = p, *end = (const char *)header + size;
        uint32_t count = 0;

        if (size < sizeof(*header) || header->len != size || lkg_request_is(header, REQUEST_NEVER) ||
            (header->unique == 0 && !lkg_request_is(header, REQUEST_SILENT)) ||
            (size_t)(end - p) < shape->fixed)
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

bool lkg_request_has_reply(const struct fuse_in_header *header)
{
        return header->unique != 0 && !lkg_request_is(header, REQUEST_SILENT);
}
