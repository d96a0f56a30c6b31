/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories. A source directory is read natively: its own offsets survive a restart of this server. The
 * root and the virtual directories are a snapshot, sorted by a hash of the names and made when reading
 * begins; the hash is the offset, so a successor that makes the snapshot again continues at the right place.
 *
 * So an open directory has no state that must survive. A few directories that are being read have a stream:
 * the descriptor or the snapshot. It is made when reading begins, and made again at its offset after others
 * have evicted it; a user with many streams evicts their own first.
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "file-server.h"

struct listed {
        uint64_t offset;
        uint64_t ino;
        uint32_t type; /* S_IFMT bits */
        char *name;
};

struct listing {
        struct listed *items;
        size_t n_items, n_allocated;
};

struct linux_dirent64 {
        uint64_t d_ino;
        int64_t d_off;
        unsigned short d_reclen;
        unsigned char d_type;
        char d_name[];
};

#define UNKNOWN_INO    UINT64_C(0xffffffff)
#define GETDENTS_BYTES (32u * 1024) /* upper part of the thread's buffer */
#define STREAMS        64u
#define STREAMS_OF_ONE 16u

struct stream {
        uint64_t fh;
        uid_t uid;
        int fd;                  /* source directory */
        struct listing *listing; /* all others */
};
static struct stream streams[STREAMS]; /* not being read right now, the oldest first */
static size_t n_streams;
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: streams. A leaf. */

static void listing_free(struct listing *listing)
{
        if (!listing)
                return;
        for (size_t i = 0; i < listing->n_items; i++)
                free(listing->items[i].name);
        free(listing->items);
        free(listing);
}

static void end_stream(struct stream *stream)
{
        listing_free(LKG_STEAL(stream->listing));
        stream->fd = lkg_close(stream->fd);
}

/* Lock held. */
static struct stream take_out(size_t i)
{
        struct stream one = streams[i];

        n_streams--;
        memmove(&streams[i], &streams[i + 1], (n_streams - i) * sizeof(one));
        return one;
}

/* Makes a new one if there is none (any more). */
static struct stream take_stream(uint64_t fh, uid_t uid)
{
        struct stream stream = { .fh = fh, .uid = uid, .fd = -EBADF };
        LKG_LOCKED(&streams_lock);

        for (size_t i = 0; i < n_streams; i++)
                if (streams[i].fh == fh) {
                        stream = take_out(i);
                        break;
                }
        return stream;
}

static void put_stream(struct stream stream)
{
        struct stream out = { .fd = -EBADF };
        size_t n = 0, oldest = 0;

        (void)pthread_mutex_lock(&streams_lock);
        for (size_t i = n_streams; i-- > 0;)
                if (streams[i].uid == stream.uid) {
                        oldest = i;
                        n++;
                }
        if (n >= STREAMS_OF_ONE)
                out = take_out(oldest);
        else if (n_streams == STREAMS)
                out = take_out(0);
        streams[n_streams++] = stream;
        (void)pthread_mutex_unlock(&streams_lock);
        end_stream(&out);
}

void lkg_listing_close(uint64_t fh)
{
        struct stream stream = take_stream(fh, 0);

        end_stream(&stream);
}

static uint64_t offset_of(const char *name)
{
        uint64_t h = lkg_hash(0, name, strlen(name));

        h ^= h >> 32;
        return (h >> 2) + 3; /* positive as off_t; 1 and 2 are "." and ".." */
}

static int add_item(struct listing *listing, const char *name, uint64_t offset, uint64_t ino, uint32_t type)
{
        struct listed *item;

        if (LKG_RESERVE(listing->items, listing->n_items, listing->n_allocated) < 0)
                return -ENOMEM;
        item = &listing->items[listing->n_items];
        item->name = strdup(name);
        if (!item->name)
                return -ENOMEM;
        item->offset = offset;
        item->ino = ino;
        item->type = type;
        listing->n_items++;
        return 0;
}

static int by_offset(const void *a, const void *b)
{
        const struct listed *x = a, *y = b;

        if (x->offset != y->offset)
                return x->offset < y->offset ? -1 : 1;
        return strcmp(x->name, y->name);
}

static int add_virtual(struct listing *listing, const struct lkg_publication *publication, const char *dir)
{
        size_t size = strlen(dir);
        int r = 0;

        for (size_t i = 0; i < publication->n_entries && r == 0; i++) {
                const struct lkg_entry *entry = &publication->entries[i];
                const char *name = entry->path;

                if (size > 0) {
                        if (strncmp(name, dir, size) != 0 || name[size] != '/')
                                continue;
                        name += size + 1;
                }
                if (strchr(name, '/'))
                        continue;
                r = add_item(listing, name, offset_of(name), UNKNOWN_INO,
                             lkg_entry_is_dir(entry) ? S_IFDIR : S_IFREG);
        }
        return r;
}

/* Return: 0; -ETIMEDOUT: the engine does not answer; -EAGAIN with task.again; another -errno. */
static int add_asked(struct listing *listing, const char *dir)
{
        char path[LKG_NODE_NAME + 1];
        int r = -EAGAIN;

        if (snprintf(path, sizeof(path), "%s/", dir) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        for (int attempt = 0; r == -EAGAIN && !task.again && attempt < 16; attempt++) {
                LKG_CLEANUP(lkg_freep) char *names = NULL;
                struct lkg_rendered rendered;
                size_t size = 0;

                r = lkg_link_render(path, &rendered);
                if (r == 0)
                        r = lkg_publication_read_blob(server.blobs, rendered.sha256, rendered.size, &names,
                                                      &size);
                if (r == -ENOENT && rendered.sha256[0])
                        r = -EAGAIN; /* so many others have asked that it is gone */
                for (const char *p = names; r == 0 && p && p < names + size; p += strlen(p) + 1)
                        r = lkg_bare_name_ok(p + 1) ? add_item(listing, p + 1, offset_of(p + 1), UNKNOWN_INO,
                                                               *p == 'd' ? S_IFDIR : S_IFREG)
                                                    : -EBADMSG;
        }
        return r;
}

/* A name of the real root is shown unless the publication has that name or hides it. */
static int add_real(struct listing *listing, const struct lkg_publication *publication)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *stream = lkg_dir_open(server.source, ".");
        const struct dirent *d;
        int r = 0;

        if (!stream)
                return -errno;
        while (r == 0 && (d = lkg_dir_next(stream, &r))) {
                if (lkg_publication_hides(publication, d->d_name) ||
                    lkg_publication_find(publication, d->d_name) ||
                    lkg_publication_rule(publication, LKG_RULE_ALIAS, d->d_name))
                        continue;
                r = add_item(listing, d->d_name, offset_of(d->d_name), d->d_ino, DTTOIF(d->d_type));
        }
        for (size_t i = 0; i < publication->n_rules && r == 0; i++) {
                const struct lkg_rule *rule = &publication->rules[i];
                struct stat st;

                /*
                 * Listed if the view uses the base's own name; otherwise that name already shows the base.
                 */
                if (rule->type == LKG_RULE_ALIAS && !strchr(rule->text, '/') &&
                    lkg_publication_find(publication, rule->target) &&
                    fstatat(server.source, rule->target, &st, AT_SYMLINK_NOFOLLOW) == 0)
                        r = add_item(listing, rule->text, offset_of(rule->text), st.st_ino,
                                     st.st_mode & S_IFMT);
        }
        return r;
}

/* A directory of the view that is gone, but was opened before: what its name means now. */
static int add_instead(struct listing *listing, const char *name)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *stream = lkg_dir_open(server.source, name);
        const struct dirent *d;
        int r = 0;

        while (stream && r == 0 && (d = lkg_dir_next(stream, &r)))
                r = add_item(listing, d->d_name, offset_of(d->d_name), d->d_ino, DTTOIF(d->d_type));
        return r;
}

/* The notifier's door lists the inodes of older generations by node id. */
static int add_doors(struct listing *listing)
{
        uint64_t ids[1024];
        size_t n = lkg_nodes_old_views(ids, LKG_ARRAY_SIZE(ids));
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                char name[32];

                (void)snprintf(name, sizeof(name), "%llx", (unsigned long long)ids[i]);
                r = add_item(listing, name, offset_of(name), UNKNOWN_INO, S_IFREG);
        }
        return r;
}

static int make_listing(const struct lkg_node *node, struct listing **ret)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        struct listing *listing = calloc(1, sizeof(*listing));
        uint32_t kind = atomic_load(&node->kind);
        int r;

        if (!listing)
                return -ENOMEM;
        r = add_item(listing, ".", 1, UNKNOWN_INO, S_IFDIR);
        if (r == 0)
                r = add_item(listing, "..", 2, UNKNOWN_INO, S_IFDIR);
        if (r == 0 && kind == LKG_NODE_HIDDEN)
                r = add_doors(listing);
        else if (r == 0 && kind != LKG_NODE_ROOT && ref->publication->number == 0)
                r = -EIO; /* nobody knows what is in it */
        else if (r == 0 && kind == LKG_NODE_VDIR && lkg_publication_asked(ref->publication, node->name))
                r = add_asked(listing, node->name);
        else if (r == 0 && lkg_view_is_gone(node))
                r = add_instead(listing, node->name);
        else if (r == 0)
                r = add_virtual(listing, ref->publication, kind == LKG_NODE_ROOT ? "" : node->name);
        if (r == 0 && kind == LKG_NODE_ROOT)
                r = add_real(listing, ref->publication);
        if (r < 0) {
                listing_free(listing);
                return r;
        }
        qsort(listing->items, listing->n_items, sizeof(*listing->items), by_offset);
        *ret = listing;
        return 0;
}

static size_t add_entry(fuse_req_t req, size_t used, size_t size, const char *name, uint64_t ino,
                        uint32_t type, off_t off)
{
        struct stat st = { .st_ino = ino, .st_mode = type };

        return fuse_add_direntry(req, task.buf + used, size - used, name, &st, off);
}

/* Return: bytes in task.buf, 0 = the end; -errno. */
static ssize_t read_snapshot(fuse_req_t req, struct lkg_node *node, size_t size, off_t off,
                             struct stream *stream)
{
        size_t used = 0;
        int r = 0;

        if (off == 0)
                listing_free(LKG_STEAL(stream->listing));
        if (!stream->listing)
                r = make_listing(node, &stream->listing);
        if (r < 0)
                return r;
        for (size_t i = 0; i < stream->listing->n_items; i++) {
                const struct listed *item = &stream->listing->items[i];
                size_t need;

                if (item->offset <= (uint64_t)off)
                        continue;
                need = add_entry(req, used, size, item->name, item->ino, item->type, (off_t)item->offset);
                if (need > size - used)
                        break;
                used += need;
        }
        return (ssize_t)used;
}

static ssize_t read_native(fuse_req_t req, struct lkg_node *node, size_t size, off_t off,
                           struct stream *stream)
{
        char *raw = task.buf + LKG_MAX_WRITE - GETDENTS_BYTES;
        size_t used = 0;
        long n;

        if (stream->fd < 0)
                stream->fd = lkg_source_open_node(node, O_RDONLY | O_DIRECTORY);
        if (stream->fd < 0)
                return stream->fd;
        if (lseek(stream->fd, off, SEEK_SET) < 0)
                return -errno;
        n = syscall(SYS_getdents64, stream->fd, raw, GETDENTS_BYTES);
        if (n < 0)
                return -errno;
        for (long at = 0; at < n;) {
                const struct linux_dirent64 *d = (const void *)(raw + at);
                size_t need = add_entry(req, used, size, d->d_name, d->d_ino, DTTOIF(d->d_type), d->d_off);

                if (need > size - used)
                        break;
                used += need;
                at += d->d_reclen;
        }
        return (ssize_t)used;
}

/*
 * The stream is put back before the reply: the next request for it may immediately be handled by another
 * thread.
 */
int lkg_listing_read(fuse_req_t req, struct lkg_node *node, size_t size, off_t off, uint64_t fh)
{
        struct stream stream = take_stream(fh, fuse_req_ctx(req)->uid);
        ssize_t n;

        if (size > LKG_MAX_WRITE - GETDENTS_BYTES)
                size = LKG_MAX_WRITE - GETDENTS_BYTES;
        if (atomic_load(&node->kind) == LKG_NODE_SOURCE)
                n = read_native(req, node, size, off, &stream);
        else
                n = read_snapshot(req, node, size, off, &stream);
        if (n > 0)
                put_stream(stream);
        else
                end_stream(&stream); /* read to its end: most likely not read again */
        if (n < 0)
                return (int)n;
        fuse_reply_buf(req, task.buf, (size_t)n);
        return REPLIED;
}
