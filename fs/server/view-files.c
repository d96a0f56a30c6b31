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

void view_entry(struct lkg_node *node, struct fuse_entry_param *ret)
{
        uint32_t kind = atomic_load(&node->kind);

        memset(ret, 0, sizeof(*ret));
        ret->ino = node_id(node);
        node_attributes(node, &ret->attr);
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
                entry = publication_asked(publication, path);
        r = entry ? engine_render(path, &rendered) : -ENOENT;
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

        if (r == -ETIMEDOUT &&
            !lkg_publication_find(publication, path)) { /* only the engine knows whether it exists */
                *ret = node_last(path);
                return *ret ? 0 : -ETIMEDOUT;
        }
        if (r == -ETIMEDOUT)
                return outage_answer(publication, &entry, ret);
        if (r < 0)
                return r;
        if (entry.type == LKG_ENTRY_ASKED) {
                entry.mode = 0700;
                entry.uid = entry.gid = 0;
        }
        r = entry.type == LKG_ENTRY_FILE ? outage_node(publication, &entry, ret) : -ENOENT;
        return r == -ENOENT ? node_virtual(kinds[entry.type], path, &entry, ret) : r;
}

static int lookup_entry(const char *path, struct fuse_entry_param *ret)
{
        for (int attempt = 0;; attempt++) {
                LKG_CLEANUP(publication_putp) struct publication_ref *ref = publication_get();
                struct lkg_node *node;
                int r = find_node(ref->publication, path, &node);

                if (task.again)
                        return r;
                /* Made up (published.c): is there one by now? */
                if (r == -ENOENT && ref->publication->number == 0 &&
                    (strchr(path, '/') || publication_hides(ref->publication, path)))
                        r = -EAGAIN;
                /* Replaced meanwhile: the node may have been made too late to be marked as old. */
                if (r == 0 && attempt < 16 &&
                    atomic_load(&server.shm->publication) != ref->publication->number) {
                        node_forget(node, 1);
                        continue;
                }
                if (r == 0) {
                        view_entry(node, ret);
                        return 0;
                }
                if (r != -EAGAIN)
                        return r;
                /*
                 * Its blob is gone: there is a newer publication, and a new engine's message about it has
                 * not arrived.
                 */
                if (attempt == 16 || publication_load(NULL) < 0)
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
        node = node_old_view(id);
        if (!node)
                return -ENOENT;
        view_entry(node, ret);
        return 0;
}

/**
 * view_lookup() - Return: 0; -ENOENT: not a name of the view (in the root directory: look in the source);
 * another -errno.
 */
int view_lookup(struct lkg_node *dir, const char *name, struct fuse_entry_param *ret)
{
        char buf[PATH_MAX];
        const char *path;
        struct lkg_node *door;
        int r;

        if (atomic_load(&dir->kind) == LKG_NODE_HIDDEN)
                return lookup_door(name, ret);
        if (atomic_load(&dir->kind) == LKG_NODE_ROOT && strcmp(name, LKG_DOOR_DIR) == 0) {
                r = node_virtual(LKG_NODE_HIDDEN, LKG_DOOR_DIR, NULL, &door);
                if (r < 0)
                        return r;
                door->mode = 0700;
                view_entry(door, ret);
                return 0;
        }
        path = child_path(dir, name, buf, sizeof(buf));
        return path ? lookup_entry(path, ret) : -ENAMETOOLONG;
}

/* `baseWrites: through`: the base that receives the writes to this view file; NULL: writes are refused. */
struct lkg_node *view_through(const struct lkg_node *node)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = NULL;
        struct lkg_node *found = NULL;

        if (!(node->flags & LKG_ENTRY_THROUGH))
                return NULL;
        ref = publication_get();
        for (size_t i = 0; i < ref->publication->n_rules && !found; i++) {
                const struct lkg_rule *rule = &ref->publication->rules[i];
                struct stat st;
                int fd;

                if (rule->type != LKG_RULE_FILE || rule->component != node->component)
                        continue;
                fd = openat(server.source, rule->text, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0)
                        return NULL;
                if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                        (void)node_source(FUSE_ROOT_ID, rule->text, &fd, &st, &found);
                lkg_close(fd);
                break; /* the first rule is the base */
        }
        return found;
}

static void open_through(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        struct lkg_node *base = view_through(node);

        if (!base) {
                fuse_reply_err(req, EPERM);
                return;
        }
        fi->direct_io = 1; /* a write does not change what is read */
        source_open(req, base, fi);
        node_forget(base, 1); /* the open file holds it now */
}

static void open_command(fuse_req_t req, struct fuse_file_info *fi)
{
        int r = caller_may_command(fuse_req_ctx(req));

        if (r < 0) {
                fuse_reply_err(req, -r);
                return;
        }
        fi->direct_io = 1;
        fi->noflush = 1;
        fuse_reply_open(req, fi);
}

bool view_takes_commands(const struct lkg_node *node, bool writes)
{
        uint32_t kind = atomic_load(&node->kind);

        return kind == LKG_NODE_CONTROL || kind == LKG_NODE_BAD_MADE ||
               (writes && publication_holds_bad(node));
}

static bool is_polled(const struct lkg_node *node)
{
        return (node->flags & LKG_ENTRY_POLL) && atomic_load(&node->kind) == LKG_NODE_CONTENT;
}

void view_open(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        const struct fuse_ctx *ctx = fuse_req_ctx(req);
        bool writes = (fi->flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY;
        struct lkg_parked *parked = NULL;
        int r;

        fi->fh = 0;
        if (view_takes_commands(node, writes)) {
                open_command(req, fi);
                return;
        }
        if (writes && !caller_is_notifier(ctx)) {
                open_through(req, node, fi);
                return;
        }
        if (!writes && (node->flags & LKG_ENTRY_VIEW))
                parked = start_park(ctx, node);
        if (is_polled(node))
                fi->fh = handle_new(); /* its release ends the polling */
        /*
         * A caller that waits for the engine may get ESTALE and then never closes the file, so opens by root
         * and by components are only counted.
         */
        r = content_open(ctx, node, parked != NULL || writes, &fi->fh);
        if (r < 0) {
                fuse_reply_err(req, -r);
                return;
        }
        fi->keep_cache = 1;
        fi->noflush = 1;
        fuse_reply_open(req, fi);
        if (parked)
                start_submit(parked);
}

void view_read(fuse_req_t req, struct lkg_node *node, size_t size, off_t off)
{
        uint32_t kind = atomic_load(&node->kind);
        ssize_t n;

        if (kind == LKG_NODE_CONTROL || kind == LKG_NODE_BAD_MADE) {
                fuse_reply_buf(req, NULL, 0);
                return;
        }
        n = node_read_content(node, task.buf, size < LKG_MAX_WRITE ? size : LKG_MAX_WRITE, off);
        if (n < 0)
                fuse_reply_err(req, (int)-n);
        else
                fuse_reply_buf(req, task.buf, (size_t)n);
}

/*
 * Timestamps: the notifier causes MODIFY with them. On files that take commands, truncation and times have
 * no effect.
 */
void view_setattr(fuse_req_t req, struct lkg_node *node, int valid)
{
        const struct fuse_ctx *ctx = fuse_req_ctx(req);
        bool commands = view_takes_commands(node, true);
        struct stat st;

        if (commands ? (valid & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0
                     : !caller_is_notifier(ctx)) {
                fuse_reply_err(req, EPERM);
                return;
        }
        node_attributes(node, &st);
        fuse_reply_attr(req, &st, atomic_load(&node->kind) == LKG_NODE_CONTENT ? FOREVER_S : DIRECTORY_S);
}

/**
 * view_command() - a parked record for a command of the caller; the caller adds the text, makes the reply
 * and calls engine_submit().
 * Return: NULL when an error was replied: that of caller_may_command(), or EBUSY when too many wait for the
 * engine.
 */
struct lkg_parked *view_command(fuse_req_t req, unsigned component, const char *command)
{
        const struct fuse_ctx *ctx = fuse_req_ctx(req);
        int r = caller_may_command(ctx);
        struct lkg_parked *parked = r == 0 ? engine_park(LKG_MSG_COMMAND) : NULL;

        if (!parked) {
                fuse_reply_err(req, r < 0 ? -r : EBUSY);
                return NULL;
        }
        caller_describe(ctx->pid, &parked->message);
        parked->message.uid = ctx->uid;
        parked->message.gid = ctx->gid;
        parked->message.component = component;
        (void)snprintf(parked->message.command, sizeof(parked->message.command), "%.31s", command);
        return parked;
}

/* One write, one command. The engine's verdict is the result of write(). */
void view_write(fuse_req_t req, struct lkg_node *node, const char *data, size_t size)
{
        const char *slash = strrchr(node->name, '/');
        struct lkg_parked *parked;

        if (size == 0) {
                fuse_reply_write(req, 0);
                return;
        }
        parked = view_command(req, node->component, slash ? slash + 1 : node->name);
        if (!parked)
                return;
        engine_text(&parked->message, data, size);
        fuse_reply_write(req, size);
        engine_submit(parked);
}

/* ---- pollers ---- */

static pthread_mutex_t pollers_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: shm->pollers, quota. A leaf. */
static struct quota_cell cells[LKG_POLLERS];
static struct quota quota = { .size = LKG_POLLERS, .n_cells = LKG_POLLERS, .cells = cells };

/* Records of a predecessor; one that it was about to fill is empty. */
void view_recount_pollers(void)
{
        quota_reset(&quota);
        for (size_t i = 0; i < LKG_POLLERS; i++) {
                if (atomic_load(&server.shm->pollers[i].kh) != 0)
                        quota_add(&quota, server.shm->poller_of[i].owner);
        }
}

/* Lock held. */
static void forget_poller(size_t i)
{
        atomic_store(&server.shm->pollers[i].kh, 0);
        quota_remove(&quota, server.shm->poller_of[i].owner);
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
        uint32_t owner = caller_share(ctx, &quota);
        bool told = true;
        size_t i;

        (void)pthread_mutex_lock(&pollers_lock);
        i = find_poller(in->kh);
        if (i == LKG_POLLERS) {
                i = find_poller(0);
                told = i < LKG_POLLERS && (task.replay || quota_ask(&quota, owner));
                if (told) {
                        server.shm->poller_of[i].fh = in->fh;
                        server.shm->poller_of[i].owner = owner;
                        quota_add(&quota, owner);
                        server.shm->pollers[i].node = node;
                        atomic_store_explicit(&server.shm->pollers[i].kh, in->kh, memory_order_release);
                }
        }
        (void)pthread_mutex_unlock(&pollers_lock);
        return told;
}

/** view_closed() - the last close of a file that can be polled: no poller is left. */
void view_closed(uint64_t fh)
{
        if (fh == 0)
                return;
        (void)pthread_mutex_lock(&pollers_lock);
        for (size_t i = 0; i < LKG_POLLERS; i++)
                if (server.shm->poller_of[i].fh == fh && atomic_load(&server.shm->pollers[i].kh) != 0)
                        forget_poller(i);
        (void)pthread_mutex_unlock(&pollers_lock);
}

/*
 * The content was fixed at open, so "ready" means that it has been replaced. libfuse hides the kernel's poll
 * handle, which must survive us, so it is read from the request itself.
 *
 * A caller that cannot be notified is told to look now: waiting forever would be wrong, an error would end
 * a correct program, and a program that looks too often only slows down itself.
 */
void view_poll(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        const struct fuse_poll_in *in = task_argument();
        bool wants = node && is_polled(node), told = true;

        (void)fi;
        if (!wants) {
                fuse_reply_poll(req, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
                return;
        }
        if ((in->flags & FUSE_POLL_SCHEDULE_NOTIFY) && node->retired_ns == 0)
                told = add_poller(fuse_req_ctx(req), in, node_id(node));
        /*
         * After the poller is recorded: a change in between is seen either here or by view_wake_pollers().
         */
        fuse_reply_poll(req, node->retired_ns || !told ? POLLIN | POLLPRI | POLLRDNORM : 0);
}

void view_wake_pollers(void)
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
                node = message.wakeup.kh != 0 ? node_get(server.shm->pollers[i].node) : NULL;
                wake = message.wakeup.kh != 0 && (!node || node->retired_ns != 0);
                (void)pthread_mutex_unlock(&pollers_lock);
                if (!wake)
                        continue;
                kernel_send_raw(&message, sizeof(message));
                /*
                 * Killed before this, the successor wakes it once more; after it, every poll finds it ready.
                 */
                (void)pthread_mutex_lock(&pollers_lock);
                if (atomic_load(&server.shm->pollers[i].kh) == message.wakeup.kh)
                        forget_poller(i);
                (void)pthread_mutex_unlock(&pollers_lock);
        }
}
