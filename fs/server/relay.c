/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work for the notifier, and the answers to its requests: it wakes watchers of files of the view and, for
 * changes behind the mount (own-changes.c), performs harmless operations through the mount that make the
 * kernel emit the events. Its requests are recognised by its pid and change nothing.
 */
#include <fcntl.h>
#include <linux/futex.h>

#include "quota.h"
#include "file-server.h"

/* A view file as last announced. Only the event loop's thread announces. */
struct announced {
        char path[sizeof(((struct lkg_notify *)NULL)->view_names[0])], sha256[LKG_SHA256_HEX];
        uint64_t generation;
};
static struct announced announced[LKG_VIEW_NAMES];
static size_t n_announced;

static bool was_announced(const struct lkg_entry *entry)
{
        for (size_t i = 0; i < n_announced; i++)
                if (strcmp(announced[i].path, entry->path) == 0)
                        return announced[i].generation == entry->generation &&
                               strcmp(announced[i].sha256, entry->sha256) == 0;
        return false;
}

/* @n: number of names so far. Return: the new number. */
static uint32_t want_name(uint32_t n, const char *path)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(server.shm->notify.view_names[i], path) == 0)
                        return n;
        if (n == LKG_VIEW_NAMES)
                return n;
        (void)snprintf(server.shm->notify.view_names[n], sizeof(server.shm->notify.view_names[n]), "%s",
                       path);
        return n + 1;
}

static void remember(const struct lkg_publication *publication)
{
        n_announced = 0;
        for (size_t i = 0; i < publication->n_entries && n_announced < LKG_VIEW_NAMES; i++) {
                const struct lkg_entry *entry = &publication->entries[i];
                struct announced *a = &announced[n_announced];

                if (!(entry->flags & LKG_ENTRY_VIEW))
                        continue;
                (void)snprintf(a->path, sizeof(a->path), "%s", entry->path);
                memcpy(a->sha256, entry->sha256, sizeof(a->sha256));
                a->generation = entry->generation;
                n_announced++;
        }
}

/*
 * Wakes only the watchers of files that have changed: a component may exit on an event, and most publications change only status/.
 * Names that the notifier has not finished stay wanted.
 */
static void wake_watchers(void)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = publication_get();
        uint32_t n = atomic_load(&server.shm->notify.n_view_names), n_new = 0;

        if (n > LKG_VIEW_NAMES)
                n = LKG_VIEW_NAMES;
        if (atomic_load(&server.shm->notify.wake_done) == atomic_load(&server.shm->notify.wake_wanted))
                n = 0; /* the notifier has finished all of them */
        for (size_t i = 0; i < ref->publication->n_entries; i++) {
                const struct lkg_entry *entry = &ref->publication->entries[i];

                if (!(entry->flags & LKG_ENTRY_VIEW) || was_announced(entry))
                        continue;
                n = want_name(n, entry->path);
                n_new++;
        }
        remember(ref->publication);
        atomic_store(&server.shm->notify.root_changed, 1);
        if (n_new > 0) {
                atomic_store(&server.shm->notify.n_view_names, n);
                atomic_store(&server.shm->notify.wake_wanted, ref->publication->number);
        }
        notifier_ring();
}

/* --- operations of the notifier through the mount --- */

static const struct lkg_relay_job *active(fuse_req_t req, const struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job;

        if (!caller_is_notifier(fuse_req_ctx(req)) || atomic_load(&server.shm->notify.relay_active) == 0)
                return NULL;
        job = &server.shm->notify.relay[atomic_load(&server.shm->notify.relay_tail) % LKG_RELAY_JOBS];
        return job->dir == node_id(dir) && strcmp(job->name, name) == 0 ? job : NULL;
}

/* Its path leads elsewhere by now, or it is compromised: it never changes anything real. */
bool relay_refuse(fuse_req_t req)
{
        if (!caller_is_notifier(fuse_req_ctx(req)))
                return false;
        fuse_reply_err(req, ESTALE);
        return true;
}

bool relay_matches(fuse_req_t req, const struct lkg_node *dir, const char *name)
{
        return active(req, dir, name) != NULL;
}

/*
 * It may still be open: the kernel takes the size as that of the open file, so it must be the right one. It
 * has a name here, so its link count is 1.
 */
static void describe_removed(struct lkg_node *node, struct fuse_entry_param *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->ino = node_id(node);
        if (source_attributes(node, &ret->attr) < 0)
                ret->attr = (struct stat){ .st_ino = node->ino, .st_mode = node->mode };
        if (ret->attr.st_nlink == 0)
                ret->attr.st_nlink = 1;
}

/*
 * The name does not exist before a creation and exists before a removal: otherwise the kernel would not send
 * the request.
 */
bool relay_lookup(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job = active(req, dir, name);
        struct fuse_entry_param entry = { 0 };
        struct lkg_node *node;

        if (!job || atomic_load(&server.shm->notify.relay_done))
                return false;
        if (job->op == LKG_RELAY_CREATED) {
                fuse_reply_err(req, ENOENT);
                return true;
        }
        if (job->op != LKG_RELAY_REMOVED || source_lookup(dir, name, &entry) == 0) {
                if (job->op != LKG_RELAY_REMOVED)
                        return false;
                fuse_reply_entry(req, &entry);
                return true;
        }
        node = node_find_child(node_id(dir), name);
        if (!node)
                node = node_placeholder(node_id(dir), name, S_ISDIR(job->type));
        if (!node) {
                fuse_reply_err(req, ENFILE);
                return true;
        }
        describe_removed(node, &entry);
        fuse_reply_entry(req, &entry);
        return true;
}

bool relay_make(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job = active(req, dir, name);
        struct fuse_entry_param entry;
        int r;

        if (!job)
                return relay_refuse(req);
        atomic_store(&server.shm->notify.relay_done, 1);
        r = source_lookup(dir, name, &entry);
        if (r < 0)
                fuse_reply_err(req, -r); /* already removed: its removal is the next job */
        else
                fuse_reply_entry(req, &entry);
        return true;
}

bool relay_remove(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        if (!active(req, dir, name))
                return relay_refuse(req);
        atomic_store(&server.shm->notify.relay_done, 1);
        fuse_reply_err(req, 0);
        return true;
}

bool relay_touch(fuse_req_t req, struct lkg_node *node)
{
        uint32_t kind = atomic_load(&node->kind);

        if (!caller_is_notifier(fuse_req_ctx(req)) || (kind != LKG_NODE_SOURCE && kind != LKG_NODE_ROOT))
                return false;
        source_getattr(req, node);
        return true;
}

bool relay_open(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        (void)node;
        if (!caller_is_notifier(fuse_req_ctx(req)) || (fi->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY)
                return false;
        fi->fh = 0;
        fi->noflush = 1;
        fi->keep_cache = 1;
        fuse_reply_open(req, fi);
        return true;
}

/* ---- announce ---- */

/* Tells the engine, pollers and watchers that a new publication is current. In the thread of the event loop. */

void announce_newer(void)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = publication_get();
        static uint64_t newest = UINT64_MAX;

        if (ref->publication->number == newest)
                return;
        newest = ref->publication->number;
        engine_loaded(newest);
        view_wake_pollers();
        nodes_prune();
        kernel_invalidate_attributes(FUSE_ROOT_ID);
        wake_watchers();
}
