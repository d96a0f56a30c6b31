/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the publication: immutable files, directories, control files; and the names through which the
 * notifier reaches inodes of older generations.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>

#include "quota.h"
#include "file-server.h"

/* In the root directory a name is its own path, as in every open of a view file. NULL: too long. */
static const char *child_path(const struct lkg_node *dir, const char *name, char *buf, size_t size)
{
        int n;

        if (atomic_load(&dir->kind) == LKG_NODE_ROOT)
                return name;
        n = snprintf(buf, size, "%s/%s", dir->name, name);
        return n < 0 || (size_t)n >= size ? NULL : buf;
}

void lkg_view_entry(struct lkg_node *node, struct fuse_entry_param *ret)
{
        uint32_t kind = atomic_load(&node->kind);

        memset(ret, 0, sizeof(*ret));
        ret->ino = lkg_node_id(node);
        lkg_node_attributes(node, &ret->attr);
        /* Content never changes, but its name may refer to other content at any time. */
        ret->attr_timeout = kind == LKG_NODE_CONTENT ? FOREVER_S : DIRECTORY_S;
        ret->entry_timeout = kind == LKG_NODE_VDIR || kind == LKG_NODE_BAD ? DIRECTORY_S : 0;
}

/*
 * The entry at @path, or one that is made of the engine's answer.
 * Return: 0; -ENOENT; -ETIMEDOUT: the engine does not answer, @ret has no content; another -errno.
 */
static int find_entry(const struct lkg_publication *publication, const char *path, struct lkg_entry *ret)
{
        const struct lkg_entry *entry = lkg_publication_find(publication, path);
        struct lkg_rendered rendered = { .is_dir = false };
        int r;

        if (entry && entry->type != LKG_ENTRY_RENDERED) {
                *ret = *entry;
                return 0;
        }
        if (!entry)
                entry = lkg_publication_asked(publication, path);
        r = entry ? lkg_link_render(path, &rendered) : -ENOENT;
        if (r < 0 && r != -ETIMEDOUT)
                return r;
        *ret = (struct lkg_entry){ .path = path,
                                   .type = rendered.is_dir ? LKG_ENTRY_DIR : LKG_ENTRY_FILE,
                                   .mode = rendered.is_dir ? 0700 : entry->mode,
                                   .uid = rendered.is_dir ? 0 : entry->uid,
                                   .gid = rendered.is_dir ? 0 : entry->gid,
                                   .mtime_ns = rendered.mtime_ns,
                                   .size = rendered.size,
                                   .flags = LKG_ENTRY_ANSWERED,
                                   .component = entry->component };
        memcpy(ret->sha256, rendered.sha256, LKG_SHA256_HEX);
        return r;
}

/* Return: 0; -EAGAIN: the publication was replaced, look again; -ENOENT; another -errno. */
static int find_node(const struct lkg_publication *publication, const char *path, struct lkg_node **ret)
{
        static const enum lkg_node_kind kinds[] = {
                [LKG_ENTRY_DIR] = LKG_NODE_VDIR,        [LKG_ENTRY_FILE] = LKG_NODE_CONTENT,
                [LKG_ENTRY_CONTROL] = LKG_NODE_CONTROL, [LKG_ENTRY_BAD] = LKG_NODE_BAD,
                [LKG_ENTRY_ASKED] = LKG_NODE_VDIR,
        };
        struct lkg_entry entry;
        int r = find_entry(publication, path, &entry);

        /* only the engine knows whether it exists */
        if (r == -ETIMEDOUT && !lkg_publication_find(publication, path)) {
                *ret = lkg_node_last(path);
                return *ret ? 0 : -ETIMEDOUT;
        }
        if (r == -ETIMEDOUT)
                return lkg_outage_answer(publication, &entry, ret);
        if (r < 0)
                return r;
        if (entry.type == LKG_ENTRY_ASKED) {
                entry.mode = 0700;
                entry.uid = entry.gid = 0;
        }
        r = entry.type == LKG_ENTRY_FILE ? lkg_outage_node(publication, &entry, ret) : -ENOENT;
        return r == -ENOENT ? lkg_node_virtual(kinds[entry.type], path, &entry, NULL, ret) : r;
}

static int lookup_entry(const char *path, struct fuse_entry_param *ret)
{
        for (int attempt = 0;; attempt++) {
                LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
                struct lkg_node *node;
                int r = find_node(ref->publication, path, &node);

                if (task.again)
                        return r;
                /* Made up (published.c): is there one by now? */
                if (r == -ENOENT && ref->publication->number == 0 &&
                    (strchr(path, '/') || lkg_publication_hides(ref->publication, path)))
                        r = -EAGAIN;
                /* Replaced meanwhile: the node may have been made too late to be marked as old. */
                if (r == 0 && attempt < 16 &&
                    atomic_load(&server.shm->publication) != ref->publication->number) {
                        lkg_node_forget(node, 1);
                        continue;
                }
                if (r == 0) {
                        lkg_view_entry(node, ret);
                        return 0;
                }
                if (r != -EAGAIN)
                        return r;
                /*
                 * Its blob is gone: there is a newer publication, and a new engine's message about it has
                 * not arrived.
                 */
                if (attempt == 16 || lkg_publication_load(NULL) < 0)
                        return -EIO;
        }
}

static int lookup_door(const char *name, struct fuse_entry_param *ret)
{
        struct lkg_node *node;
        char *end;
        uint64_t id = strtoull(name, &end, 16);

        if (*end || atomic_load(&server.shm->notify.lv_closing))
                return -ENOENT;
        node = lkg_node_old_view(id);
        if (!node)
                return -ENOENT;
        lkg_view_entry(node, ret);
        return 0;
}

/* Not of what is made up while nothing is published. */
bool lkg_view_is_gone(const struct lkg_node *dir)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = NULL;

        if (atomic_load(&dir->kind) != LKG_NODE_VDIR || strchr(dir->name, '/'))
                return false;
        ref = lkg_publication_get();
        return ref->publication->number != 0 && !lkg_publication_find(ref->publication, dir->name);
}

/**
 * lkg_view_lookup() - Return: 0; -ENOENT: not a name of the view (in the root directory: look in the source);
 * another -errno.
 */
int lkg_view_lookup(struct lkg_node *dir, const char *name, struct fuse_entry_param *ret)
{
        char buf[PATH_MAX];
        const char *path;
        struct lkg_node *door;
        int r;

        if (atomic_load(&dir->kind) == LKG_NODE_HIDDEN)
                return lookup_door(name, ret);
        if (atomic_load(&dir->kind) == LKG_NODE_ROOT && strcmp(name, LKG_DOOR_DIR) == 0) {
                r = lkg_node_virtual(LKG_NODE_HIDDEN, LKG_DOOR_DIR, NULL, NULL, &door);
                if (r < 0)
                        return r;
                door->mode = 0700;
                lkg_view_entry(door, ret);
                return 0;
        }
        path = child_path(dir, name, buf, sizeof(buf));
        return path ? lookup_entry(path, ret) : -ENAMETOOLONG;
}

/* `baseWrites: through`: the base that receives the writes to this view file; NULL: writes are refused. */
struct lkg_node *lkg_view_through(const struct lkg_node *node)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        const struct lkg_rule *base =
                lkg_publication_rule_of(ref->publication, LKG_RULE_FILE, node->component);
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_node *found = NULL;
        struct stat st;

        if (!base || !(node->flags & LKG_ENTRY_THROUGH))
                return NULL;
        fd = openat(server.source, base->text, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                (void)lkg_node_source(FUSE_ROOT_ID, base->text, &fd, &st, &found);
        return found;
}

static int open_through(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        struct lkg_node *base = lkg_view_through(node);
        int r;

        if (!base)
                return -EPERM;
        fi->direct_io = 1; /* a write does not change what is read */
        r = lkg_source_open_file(req, base, fi);
        lkg_node_forget(base, 1); /* the open file holds it now */
        return r;
}

static int open_command(fuse_req_t req, struct fuse_file_info *fi)
{
        int r = lkg_caller_may_command(fuse_req_ctx(req));

        if (r < 0)
                return r;
        fi->direct_io = 1;
        fi->noflush = 1;
        fuse_reply_open(req, fi);
        return REPLIED;
}

bool lkg_view_takes_commands(const struct lkg_node *node, bool writes)
{
        uint32_t kind = atomic_load(&node->kind);

        return kind == LKG_NODE_CONTROL || kind == LKG_NODE_BAD_MADE ||
               (writes && lkg_publication_holds_bad(node));
}

static bool is_polled(const struct lkg_node *node)
{
        return (node->flags & LKG_ENTRY_POLL) && atomic_load(&node->kind) == LKG_NODE_CONTENT;
}

int lkg_view_file_open(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        const struct fuse_ctx *ctx = fuse_req_ctx(req);
        bool writes = (fi->flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY;
        bool waits = false;
        int r;

        fi->fh = 0;
        if (lkg_view_takes_commands(node, writes))
                return open_command(req, fi);
        if (writes && !lkg_caller_is_notifier())
                return open_through(req, node, fi);
        if (!writes && (node->flags & LKG_ENTRY_VIEW))
                waits = lkg_start_park(ctx, node);
        if (is_polled(node))
                fi->fh = lkg_handle_new(); /* its release ends the polling */
        /*
         * A caller that waits for the engine may get ESTALE and then never closes the file, so opens by root
         * and by components are only counted.
         */
        r = lkg_content_open(ctx, node, waits || writes, &fi->fh);
        if (r < 0)
                return r;
        fi->keep_cache = 1;
        fi->noflush = 1;
        fuse_reply_open(req, fi);
        return REPLIED;
}

int lkg_view_file_read(fuse_req_t req, struct lkg_node *node, size_t size, off_t off)
{
        uint32_t kind = atomic_load(&node->kind);
        ssize_t n = 0;

        if (kind == LKG_NODE_CONTENT)
                n = lkg_node_read_content(node, task.buf, size < LKG_MAX_WRITE ? size : LKG_MAX_WRITE, off);
        if (n < 0)
                return (int)n;
        fuse_reply_buf(req, task.buf, (size_t)n);
        return REPLIED;
}

int lkg_view_getattr(fuse_req_t req, const struct lkg_node *node)
{
        struct stat st;

        lkg_node_attributes(node, &st);
        fuse_reply_attr(req, &st, atomic_load(&node->kind) == LKG_NODE_CONTENT ? FOREVER_S : DIRECTORY_S);
        return REPLIED;
}

/*
 * Timestamps: the notifier causes MODIFY with them. On files that take commands, truncation and times have
 * no effect.
 */
int lkg_view_setattr(fuse_req_t req, struct lkg_node *node, int valid)
{
        bool commands = lkg_view_takes_commands(node, true);

        if (commands ? (valid & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0
                     : !lkg_caller_is_notifier())
                return -EPERM;
        return lkg_view_getattr(req, node);
}

/**
 * lkg_view_file_command() - the reply will be the engine's verdict on a command of the caller, who adds the text to @ret.
 * Return: 0; as lkg_caller_may_command(); -EBUSY: too many wait for the engine.
 */
int lkg_view_file_command(fuse_req_t req, unsigned component, const char *command, struct lkg_message **ret)
{
        const struct fuse_ctx *ctx = fuse_req_ctx(req);
        int r = lkg_caller_may_command(ctx);
        struct lkg_parked *parked = r == 0 ? lkg_link_park(LKG_MSG_COMMAND) : NULL;

        if (!parked)
                return r < 0 ? r : -EBUSY;
        *ret = &parked->message;
        lkg_caller_describe(ctx->pid, *ret);
        (*ret)->uid = ctx->uid;
        (*ret)->gid = ctx->gid;
        (*ret)->component = component;
        (void)snprintf((*ret)->command, sizeof((*ret)->command), "%.31s", command);
        return 0;
}

/* One write, one command. The engine's verdict is the result of write(). */
int lkg_view_file_write(fuse_req_t req, struct lkg_node *node, const char *data, size_t size)
{
        const char *slash = strrchr(node->name, '/');
        struct lkg_message *command;
        int r = 0;

        if (size > 0)
                r = lkg_view_file_command(req, node->component, slash ? slash + 1 : node->name, &command);
        if (r < 0)
                return r;
        if (size > 0)
                lkg_link_text(command, data, size);
        fuse_reply_write(req, size);
        return REPLIED;
}

/* ---- pollers ---- */

static pthread_mutex_t pollers_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: shm->pollers, quota. A leaf. */
static struct quota_cell cells[LKG_POLLERS];
static struct quota quota = { .size = LKG_POLLERS, .n_cells = LKG_POLLERS, .cells = cells };

/* Records of a predecessor; one that it was about to fill is empty. */
void lkg_view_recount_pollers(void)
{
        lkg_quota_reset(&quota);
        for (size_t i = 0; i < LKG_POLLERS; i++) {
                if (atomic_load(&server.shm->pollers[i].kh) != 0)
                        lkg_quota_add(&quota, server.shm->pollers[i].owner);
        }
}

/* Lock held. */
static void forget_poller(size_t i)
{
        atomic_store(&server.shm->pollers[i].kh, 0);
        lkg_quota_remove(&quota, server.shm->pollers[i].owner);
}

/* Lock held. LKG_POLLERS: none. One poll handle has one record, for all callers. */
static size_t find_poller(uint64_t kh)
{
        size_t i = 0;

        while (i < LKG_POLLERS && atomic_load(&server.shm->pollers[i].kh) != kh)
                i++;
        return i;
}

/*
 * Will the kernel be told when @node changes? false: the caller's share of pollers is used up, or all are in
 * use. The owner is determined without the lock, because that reads /proc.
 */
static bool add_poller(const struct fuse_ctx *ctx, const struct fuse_poll_in *in, uint64_t node)
{
        uint32_t owner = lkg_caller_share(ctx, &quota);
        bool told = true;
        LKG_LOCKED(&pollers_lock);
        size_t i = find_poller(in->kh);

        if (i == LKG_POLLERS) {
                i = find_poller(0);
                told = i < LKG_POLLERS && (task.replay || lkg_quota_ask(&quota, owner));
                if (told) {
                        server.shm->pollers[i].fh = in->fh;
                        server.shm->pollers[i].owner = owner;
                        lkg_quota_add(&quota, owner);
                        server.shm->pollers[i].node = node;
                        atomic_store_explicit(&server.shm->pollers[i].kh, in->kh, memory_order_release);
                }
        }
        return told;
}

/** lkg_view_closed() - the last close of a file that can be polled: no poller is left. */
void lkg_view_closed(uint64_t fh)
{
        if (fh == 0)
                return;
        LKG_LOCKED(&pollers_lock);
        for (size_t i = 0; i < LKG_POLLERS; i++)
                if (server.shm->pollers[i].fh == fh && atomic_load(&server.shm->pollers[i].kh) != 0)
                        forget_poller(i);
}

/*
 * The content was fixed at open, so "ready" means that it has been replaced. libfuse hides the kernel's poll
 * handle, which must survive us, so it is read from the request itself.
 *
 * A caller that cannot be notified is told to look now: waiting forever would be wrong, an error would end
 * a correct program, and a program that looks too often only slows down itself.
 */
void lkg_view_poll(fuse_req_t req, struct lkg_node *node)
{
        const struct fuse_poll_in *in = lkg_task_argument();
        bool wants = node && is_polled(node), told = true;

        if (!wants) {
                fuse_reply_poll(req, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
                return;
        }
        if ((in->flags & FUSE_POLL_SCHEDULE_NOTIFY) && node->retired_ns == 0)
                told = add_poller(fuse_req_ctx(req), in, lkg_node_id(node));
        /*
         * After the poller is recorded: a change in between is seen either here or by lkg_view_wake_pollers().
         */
        fuse_reply_poll(req, node->retired_ns || !told ? POLLIN | POLLPRI | POLLRDNORM : 0);
}

void lkg_view_wake_pollers(void)
{
        for (size_t i = 0; i < LKG_POLLERS; i++) {
                const struct lkg_node *node;
                struct {
                        struct fuse_out_header header;
                        struct fuse_notify_poll_wakeup_out wakeup;
                } message = {
                        .header = { .len = sizeof(message), .error = FUSE_NOTIFY_POLL },
                };
                bool wake;

                (void)pthread_mutex_lock(&pollers_lock);
                message.wakeup.kh = atomic_load(&server.shm->pollers[i].kh);
                node = message.wakeup.kh != 0 ? lkg_node_get(server.shm->pollers[i].node) : NULL;
                wake = message.wakeup.kh != 0 && (!node || node->retired_ns != 0);
                (void)pthread_mutex_unlock(&pollers_lock);
                if (!wake)
                        continue;
                lkg_kernel_send_raw(&message, sizeof(message));
                /*
                 * Killed before this, the successor wakes it once more; after it, every poll finds it ready.
                 */
                (void)pthread_mutex_lock(&pollers_lock);
                if (atomic_load(&server.shm->pollers[i].kh) == message.wakeup.kh)
                        forget_poller(i);
                (void)pthread_mutex_unlock(&pollers_lock);
        }
}
