/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bad/<component>: one published file for each configuration that is known to be bad; root marks one as bad
 * by writing to its name and forgives it by removing the name. This file keeps no state: each write and each
 * removal is a command for the engine, whose verdict is the result of the call, and the directory shows what
 * the engine has published since.
 *
 * So a new name exists only for the process that created it: it is a separate node until its last close, and
 * no lookup finds it. `touch` leaves nothing behind, and one write is one command, as with control files.
 */
#include <fcntl.h>
#include <limits.h>

#include "file-server.h"

/* Return: 0; -EEXIST; -ENAMETOOLONG: the kernel lets names of 1024 bytes pass. @path: of @name in @dir. */
static int free_name(const struct lkg_node *dir, const char *name, char path[static LKG_NODE_NAME])
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        int r = strlen(name) > NAME_MAX ? -ENAMETOOLONG
                                        : lkg_node_child_path(dir, name, path, LKG_NODE_NAME);

        return r < 0 ? r : lkg_publication_find(ref->publication, path) ? -EEXIST : 0;
}

/* Make a file that does not exist in the publication. Return: 0 or -errno. */
static int make(fuse_req_t req, const struct lkg_node *dir, const char *name, struct fuse_entry_param *ret)
{
        struct lkg_entry entry = { .mode = 0600,
                                   .mtime_ns = (int64_t)lkg_realtime_ns(),
                                   .component = dir->component };
        char path[LKG_NODE_NAME];
        struct lkg_node *node;
        int r = lkg_caller_may_command(fuse_req_ctx(req));

        if (r == 0)
                r = free_name(dir, name, path);
        if (r == 0)
                r = lkg_node_virtual(LKG_NODE_BAD_MADE, path, &entry, NULL, &node);
        if (r == 0)
                lkg_view_entry(node, ret);
        return r;
}

int lkg_bad_create(fuse_req_t req, struct lkg_node *dir, const char *name, struct fuse_file_info *fi)
{
        struct fuse_entry_param entry;
        int r = make(req, dir, name, &entry);

        if (r == -EEXIST && !(fi->flags & O_EXCL))
                r = -ESTALE; /* published since the kernel's lookup: it looks again and opens that one */
        if (r < 0)
                return r;
        fi->fh = 0;
        fi->direct_io = 1;
        fi->noflush = 1;
        fuse_reply_create(req, &entry, fi);
        return REPLIED;
}

/* mknod() of a regular file: the node disappears with the reply. */
int lkg_bad_make(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        struct fuse_entry_param entry;
        int r = make(req, dir, name, &entry);

        if (r < 0)
                return r;
        fuse_reply_entry(req, &entry);
        return REPLIED;
}

int lkg_bad_write(fuse_req_t req, struct lkg_node *node, const char *data, size_t size)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        const struct lkg_entry *dir = lkg_publication_bad_directory(ref->publication, node);
        struct lkg_message *command;
        int r = 0;

        if (!dir)
                return -EPERM;
        if (size > 0)
                r = lkg_view_file_command(req, dir->component, "bad", &command);
        if (r < 0)
                return r;
        if (size > 0)
                lkg_link_named_text(command, strrchr(node->name, '/') + 1, data, size);
        fuse_reply_write(req, size);
        return REPLIED;
}

int lkg_bad_unlink(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        char path[LKG_NODE_NAME];
        struct lkg_message *command;
        int r = free_name(dir, name, path);

        if (r != -EEXIST)
                return r < 0 ? r : -ENOENT;
        r = lkg_view_file_command(req, dir->component, "forgive", &command);
        if (r == 0)
                lkg_link_text(command, name, strlen(name));
        return r;
}
