/* SPDX-License-Identifier: Apache-2.0 */
/* The possible contents of a disk after a power failure: see disk.h. */
#include "disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/file.h>

#define NONE    SIZE_MAX
#define NEVER   SIZE_MAX
#define ENTRIES 2u

enum kind { NAMES, BYTES, SIZE, FLUSH };

/* From this call on, a name of a directory means this file or directory; NONE = nothing. */
struct entry {
        size_t dir;
        char *name;
        size_t node;
};

struct op {
        enum kind kind;
        struct entry entries[ENTRIES]; /* NAMES */
        size_t n_entries;
        size_t durable[ENTRIES]; /* the point by which each is durable; for bytes the first */
        size_t node;             /* BYTES, SIZE, FLUSH */
        size_t at, size;
        char *data;
};

struct node {
        bool is_dir;
        size_t size; /* of a file, if every call is kept */
};

struct disk {
        char *top;
        struct node *nodes;
        size_t n_nodes, n_before; /* n_before: calls that stand for the initial contents */
        struct op *ops;
        size_t n_ops;
        const char *const *leave_out;
};

/* ---- growing ---- */

static void *grow(void *items, size_t n, size_t size)
{
        void *grown;

        if (n && (n & (n - 1)))
                return items;
        grown = reallocarray(items, n ? 2 * n : 1, size);
        if (!grown)
                abort();
        return grown;
}

static size_t new_node(struct disk *d, bool is_dir)
{
        d->nodes = grow(d->nodes, d->n_nodes, sizeof(*d->nodes));
        d->nodes[d->n_nodes] = (struct node){ .is_dir = is_dir };
        return d->n_nodes++;
}

static struct op *new_op(struct disk *d, enum kind kind)
{
        d->ops = grow(d->ops, d->n_ops, sizeof(*d->ops));
        d->ops[d->n_ops] = (struct op){ .kind = kind, .durable = { NEVER, NEVER } };
        return &d->ops[d->n_ops++];
}

static void add_entry(struct op *op, size_t dir, const char *name, size_t node)
{
        op->entries[op->n_entries++] = (struct entry){ dir, strdup(name), node };
}

static void add_bytes(struct disk *d, size_t node, size_t at, const char *data, size_t size)
{
        struct op *op = new_op(d, BYTES);

        op->node = node;
        op->at = at;
        op->size = size;
        op->data = malloc(size ? size : 1);
        if (!op->data)
                abort();
        memcpy(op->data, data, size);
        if (d->nodes[node].size < at + size)
                d->nodes[node].size = at + size;
}

/* ---- names if every call is kept ---- */

static size_t find_in(const struct disk *d, size_t dir, const char *name, size_t length)
{
        for (size_t i = d->n_ops; i-- > 0;)
                for (size_t k = 0; k < d->ops[i].n_entries; k++) {
                        const struct entry *e = &d->ops[i].entries[k];

                        if (e->dir == dir && strlen(e->name) == length && memcmp(e->name, name, length) == 0)
                                return e->node;
                }
        return NONE;
}

/* Return: the node; NONE. @ret_dir, @ret_name: directory and last name of @path, NONE if it is outside. */
static size_t find(const struct disk *d, const char *path, size_t *ret_dir, const char **ret_name)
{
        size_t top = strlen(d->top), at = 0;

        *ret_dir = NONE;
        *ret_name = "";
        if (strncmp(path, d->top, top) != 0 || (path[top] != '/' && path[top] != '\0'))
                return NONE;
        path += top;
        while (true) {
                size_t length;

                path += strspn(path, "/");
                length = strcspn(path, "/");
                if (length == 0)
                        return at;
                for (size_t i = 0; d->leave_out[i]; i++)
                        if (strlen(d->leave_out[i]) == length &&
                            memcmp(path, d->leave_out[i], length) == 0) {
                                *ret_dir = NONE;
                                return NONE;
                        }
                *ret_dir = at;
                *ret_name = path;
                if (at == NONE) {
                        *ret_dir = NONE;
                        return NONE;
                }
                at = find_in(d, at, path, length);
                path += length;
        }
}

/* ---- the beginning ---- */

static void load_file(struct disk *d, int dirfd, const char *name, size_t node)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        size_t size = 0;

        if (fd < 0 || lkg_read_file(fd, SIZE_MAX / 4, &data, &size, NULL) < 0)
                abort();
        add_bytes(d, node, 0, data, size);
}

static void load_dir(struct disk *d, int fd, size_t node)
{
        DIR *dir = fdopendir(fd);
        const struct dirent *entry;

        if (!dir)
                abort();
        while ((entry = readdir(dir))) {
                bool out = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
                struct stat st;
                size_t child;

                for (size_t i = 0; d->leave_out[i]; i++)
                        out = out || strcmp(d->leave_out[i], entry->d_name) == 0;
                if (out || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                child = new_node(d, S_ISDIR(st.st_mode));
                add_entry(new_op(d, NAMES), node, entry->d_name, child);
                if (S_ISDIR(st.st_mode))
                        load_dir(d, openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                 child);
                else if (S_ISREG(st.st_mode))
                        load_file(d, dirfd(dir), entry->d_name, child);
        }
        (void)closedir(dir);
}

struct disk *disk_new(const char *top, const char *const *leave_out)
{
        struct disk *d = calloc(1, sizeof(*d));

        if (!d)
                abort();
        d->top = strdup(top);
        d->leave_out = leave_out;
        (void)new_node(d, true);
        load_dir(d, open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
        for (size_t i = 0; i < d->n_ops; i++)
                d->ops[i].durable[0] = d->ops[i].durable[1] = 0;
        d->n_before = d->n_ops;
        return d;
}

struct disk *disk_free(struct disk *d)
{
        for (size_t i = 0; d && i < d->n_ops; i++) {
                for (size_t k = 0; k < d->ops[i].n_entries; k++)
                        free(d->ops[i].entries[k].name);
                free(d->ops[i].data);
        }
        if (d) {
                free(d->ops);
                free(d->nodes);
                free(d->top);
        }
        free(d);
        return NULL;
}

/* ---- calls ---- */

static void flushed(struct disk *d, size_t node)
{
        size_t now = d->n_ops - d->n_before;

        for (size_t i = 0; i < d->n_ops; i++) {
                struct op *op = &d->ops[i];

                for (size_t k = 0; k < op->n_entries; k++)
                        if (op->entries[k].dir == node && op->durable[k] == NEVER)
                                op->durable[k] = now;
                if ((op->kind == BYTES || op->kind == SIZE) && op->node == node && op->durable[0] == NEVER)
                        op->durable[0] = now;
        }
}

static int play_open(struct disk *d, const struct trace_call *call, size_t node, size_t dir,
                     const char *name)
{
        if (node == NONE && call->flags & O_CREAT && dir != NONE) {
                size_t made = new_node(d, false);

                add_entry(new_op(d, NAMES), dir, name, made);
                return 1;
        }
        if (node != NONE && call->flags & O_TRUNC && d->nodes[node].size > 0) {
                new_op(d, SIZE)->node = node;
                d->nodes[node].size = 0;
                return 1;
        }
        return 0;
}

static int play_rename(struct disk *d, const struct trace_call *call, size_t node, size_t dir,
                       const char *name)
{
        size_t to_dir;
        const char *to_name;
        size_t to = find(d, call->to, &to_dir, &to_name);
        bool exchange = call->kind == TRACE_RENAME && call->flags & 2u; /* RENAME_EXCHANGE */
        struct op *op;

        if (node == NONE && to_dir == NONE)
                return 0;
        if (node == NONE || to_dir == NONE)
                return -EINVAL;
        op = new_op(d, NAMES);
        if (call->kind == TRACE_RENAME)
                add_entry(op, dir, name, exchange ? to : NONE);
        add_entry(op, to_dir, to_name, node);
        return 1;
}

int disk_play(struct disk *d, const struct trace_call *call)
{
        const char *name;
        size_t dir, node;

        if (call->result < 0)
                return 0;
        node = find(d, call->path, &dir, &name);
        switch (call->kind) {
        case TRACE_OPEN:
                return play_open(d, call, node, dir, name);
        case TRACE_WRITE:
                if (node == NONE || d->nodes[node].is_dir || call->result == 0)
                        return 0;
                if (!call->data)
                        return -EINVAL;
                add_bytes(d, node, call->has_at ? (size_t)call->at : d->nodes[node].size, call->data,
                          (size_t)call->result);
                return 1;
        case TRACE_TRUNCATE:
                if (node == NONE || d->nodes[node].size == call->at)
                        return 0;
                new_op(d, SIZE)->node = node;
                d->ops[d->n_ops - 1].size = d->nodes[node].size = (size_t)call->at;
                return 1;
        case TRACE_FSYNC:
                if (node == NONE)
                        return 0;
                new_op(d, FLUSH)->node = node;
                flushed(d, node);
                return 1;
        case TRACE_MKDIR:
                if (dir == NONE)
                        return 0;
                node = new_node(d, true);
                add_entry(new_op(d, NAMES), dir, name, node);
                return 1;
        case TRACE_UNLINK:
                if (node == NONE)
                        return 0;
                add_entry(new_op(d, NAMES), dir, name, NONE);
                return 1;
        case TRACE_RENAME:
        case TRACE_LINK:
                return play_rename(d, call, node, dir, name);
        case TRACE_CHANGE:
        case TRACE_OTHER:
                return 0;
        }
        return 0;
}

size_t disk_points(const struct disk *d)
{
        return d->n_ops - d->n_before;
}

static bool is_durable(const struct op *op, size_t at)
{
        for (size_t k = 0; k < (op->kind == NAMES ? op->n_entries : 1); k++)
                if (op->durable[k] == NEVER || op->durable[k] > at)
                        return false;
        return true;
}

size_t disk_loose(const struct disk *d, size_t at, size_t *ret, size_t max)
{
        size_t n = 0;

        for (size_t i = 0; i < at && n < max; i++) {
                const struct op *op = &d->ops[d->n_before + i];

                if (op->kind != FLUSH && !is_durable(op, at))
                        ret[n++] = i;
        }
        return n;
}

bool disk_is_bytes(const struct disk *d, size_t call)
{
        return d->ops[d->n_before + call].kind == BYTES;
}

/* A path of @node if every call before @before is kept; "" = it has none. */
static void path_of(const struct disk *d, size_t node, size_t before, char *ret, size_t size)
{
        char rest[PATH_MAX] = "";

        for (size_t depth = 0; node != 0 && depth < 16; depth++) {
                const struct entry *found = NULL;
                char joined[2 * PATH_MAX];

                for (size_t i = before; !found && i-- > 0;)
                        for (size_t k = 0; k < d->ops[i].n_entries; k++)
                                if (d->ops[i].entries[k].node == node)
                                        found = &d->ops[i].entries[k];
                if (!found)
                        break;
                (void)snprintf(joined, sizeof(joined), "%s%s%s", found->name, *rest ? "/" : "", rest);
                (void)snprintf(rest, sizeof(rest), "%.4000s", joined);
                node = found->dir;
        }
        (void)snprintf(ret, size, "%s", rest);
}

char *disk_describe(const struct disk *d, size_t call)
{
        static const char *const words[] = {
                [NAMES] = "names", [BYTES] = "write", [SIZE] = "truncate", [FLUSH] = "fsync"
        };
        const struct op *op = &d->ops[d->n_before + call];
        char path[PATH_MAX], *text = NULL;
        int n = 0;

        if (op->kind != NAMES) {
                path_of(d, op->node, d->n_before + call + 1, path, sizeof(path));
                n = asprintf(&text, "%zu %s %s (%zu bytes)", call, words[op->kind], path, op->size);
        } else {
                char dir[PATH_MAX];
                const struct entry *e = &op->entries[0], *to = &op->entries[op->n_entries - 1];

                path_of(d, e->dir, d->n_before + call, dir, sizeof(dir));
                n = asprintf(&text, "%zu %s %s/%s%s%s", call,
                             op->n_entries > 1          ? "rename"
                             : e->node == NONE          ? "unlink"
                             : d->nodes[e->node].is_dir ? "mkdir"
                                                        : "create",
                             dir, e->name, op->n_entries > 1 ? " -> " : "",
                             op->n_entries > 1 ? to->name : "");
        }
        return n < 0 ? NULL : text;
}

/* ---- after a cut ---- */

/* One moment: which node each name means, and which bytes each file has. */
struct moment {
        const struct disk *d;
        size_t at;
        const unsigned char *fates;
};

static enum disk_fate fate(const struct moment *m, size_t op)
{
        return op < m->d->n_before || !m->fates ? DISK_KEPT : (enum disk_fate)m->fates[op - m->d->n_before];
}

static int compare_names(const void *a, const void *b)
{
        const struct entry *const *x = a, *const *y = b;

        return strcmp((*x)->name, (*y)->name);
}

/* List the names of @dir in order. Caller frees. */
static size_t list(const struct moment *m, size_t dir, const struct entry ***ret)
{
        const struct entry **found = NULL;
        size_t n = 0, kept = 0;

        for (size_t i = 0; i < m->d->n_before + m->at; i++)
                for (size_t k = 0; k < m->d->ops[i].n_entries; k++) {
                        const struct entry *e = &m->d->ops[i].entries[k];
                        size_t at = 0;

                        if (e->dir != dir || fate(m, i) != DISK_KEPT)
                                continue;
                        while (at < n && strcmp(found[at]->name, e->name) != 0)
                                at++;
                        if (at == n)
                                found = grow(found, n++, sizeof(struct entry *));
                        found[at] = e;
                }
        for (size_t i = 0; i < n; i++)
                if (found[i]->node != NONE)
                        found[kept++] = found[i];
        if (kept)
                qsort(found, kept, sizeof(*found), compare_names);
        *ret = found;
        return kept;
}

/* Return the bytes of a file. Caller frees. */
static char *bytes(const struct moment *m, size_t node, size_t *ret_size)
{
        size_t room = 1, size = 0;
        char *data;

        for (size_t i = 0; i < m->d->n_before + m->at; i++)
                if (m->d->ops[i].node == node && m->d->ops[i].kind == BYTES)
                        room += m->d->ops[i].at + m->d->ops[i].size;
                else if (m->d->ops[i].node == node && m->d->ops[i].kind == SIZE)
                        room += m->d->ops[i].size;
        data = calloc(room, 1);
        if (!data)
                abort();
        for (size_t i = 0; i < m->d->n_before + m->at; i++) {
                const struct op *op = &m->d->ops[i];
                size_t n = op->size;

                if ((op->kind != BYTES && op->kind != SIZE) || op->node != node || fate(m, i) == DISK_LOST)
                        continue;
                if (op->kind == SIZE) {
                        if (op->size < size)
                                memset(data + op->size, 0, size - op->size);
                        size = op->size;
                        continue;
                }
                if (fate(m, i) == DISK_HALF)
                        n /= 2;
                if (fate(m, i) == DISK_ZEROS)
                        memset(data + op->at, 0, n);
                else
                        memcpy(data + op->at, op->data, n);
                if (size < op->at + n)
                        size = op->at + n;
        }
        *ret_size = size;
        return data;
}

static uint64_t mix(uint64_t hash, const char *data, size_t size)
{
        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (unsigned char)data[i]) * UINT64_C(1099511628211);
        return (hash ^ size) * UINT64_C(1099511628211);
}

/* @parent: where to write it, -1 = nowhere. Return: 0 or -errno. */
static int visit(const struct moment *m, size_t dir, int parent, const char *only, uint64_t *hash)
{
        const struct entry **names = NULL;
        size_t n = list(m, dir, &names);
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++) {
                LKG_CLEANUP(lkg_freep) char *data = NULL;
                LKG_CLEANUP(lkg_closep) int fd = -EBADF;
                const char *name = names[i]->name;
                size_t size = 0;

                if (only && strcmp(only, name) != 0)
                        continue;
                *hash = mix(*hash, name, strlen(name));
                if (m->d->nodes[names[i]->node].is_dir) {
                        if (parent >= 0 && !only && mkdirat(parent, name, 0700) < 0)
                                r = -errno;
                        if (parent >= 0 && r == 0)
                                fd = only ? fcntl(parent, F_DUPFD_CLOEXEC, 0)
                                          : openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                        if (r == 0)
                                r = visit(m, names[i]->node, parent >= 0 ? fd : -1, NULL, hash);
                        *hash = mix(*hash, "/", 1);
                        continue;
                }
                data = bytes(m, names[i]->node, &size);
                *hash = mix(*hash, data, size);
                if (parent < 0)
                        continue;
                fd = openat(parent, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                r = fd < 0 ? -errno : lkg_write_all(fd, data, size);
        }
        free(names);
        return r;
}

uint64_t disk_digest_of(const struct disk *d, size_t at, const unsigned char *fates, const char *name)
{
        const struct moment m = { d, at, fates };
        uint64_t hash = UINT64_C(14695981039346656037);

        (void)visit(&m, 0, -1, name, &hash);
        return hash;
}

uint64_t disk_digest(const struct disk *d, size_t at, const unsigned char *fates)
{
        return disk_digest_of(d, at, fates, NULL);
}

int disk_write(const struct disk *d, size_t at, const unsigned char *fates, const char *name,
               const char *top)
{
        LKG_CLEANUP(lkg_closep) int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct moment m = { d, at, fates };
        uint64_t hash = 0;

        return fd < 0 ? -errno : visit(&m, 0, fd, name, &hash);
}
