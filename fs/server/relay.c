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

/* As last announced; NULL: nothing yet. Only the event loop's thread announces. */
static struct publication_ref *announced;

static bool was_announced(const struct lkg_entry *entry)
{
        const struct lkg_entry *before =
                announced ? lkg_publication_find(announced->publication, entry->path) : NULL;

        return before && before->flags & LKG_ENTRY_VIEW && before->generation == entry->generation &&
               strcmp(before->sha256, entry->sha256) == 0;
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

/*
 * Wakes only the watchers of files that have changed: a component may exit on an event, and most publications change only status/.
 * Names that the notifier has not finished stay wanted.
 */
static void wake_watchers(const struct lkg_publication *publication)
{
        uint32_t n = atomic_load(&server.shm->notify.n_view_names), n_new = 0;

        if (n > LKG_VIEW_NAMES)
                n = LKG_VIEW_NAMES;
        if (atomic_load(&server.shm->notify.wake_done) == atomic_load(&server.shm->notify.wake_wanted))
                n = 0; /* the notifier has finished all of them */
        for (size_t i = 0; i < publication->n_entries; i++) {
                const struct lkg_entry *entry = &publication->entries[i];

                if (!(entry->flags & LKG_ENTRY_VIEW) || was_announced(entry))
                        continue;
                n = want_name(n, entry->path);
                n_new++;
        }
        atomic_store(&server.shm->notify.root_changed, 1);
        if (n_new > 0) {
                atomic_store(&server.shm->notify.n_view_names, n);
                atomic_store(&server.shm->notify.wake_wanted, publication->number);
        }
        lkg_notifier_ring();
}

/* --- operations of the notifier through the mount --- */

static const struct lkg_relay_job *active(const struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job;

        if (!lkg_caller_is_notifier() || atomic_load(&server.shm->notify.relay_active) == 0)
                return NULL;
        job = &server.shm->notify.relay[atomic_load(&server.shm->notify.relay_tail) % LKG_RELAY_JOBS];
        return job->dir == lkg_node_id(dir) && strcmp(job->name, name) == 0 ? job : NULL;
}

/*
 * It may still be open: the kernel takes the size as that of the open file, so it must be the right one. It
 * has a name here, so its link count is 1.
 */
static void describe_removed(struct lkg_node *node, struct fuse_entry_param *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->ino = lkg_node_id(node);
        if (lkg_source_attributes(node, &ret->attr) < 0)
                ret->attr = (struct stat){ .st_ino = node->ino, .st_mode = node->mode };
        if (ret->attr.st_nlink == 0)
                ret->attr.st_nlink = 1;
}

/*
 * The name does not exist before a creation and exists before a removal: otherwise the kernel would not send
 * the request.
 */
int lkg_relay_lookup(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job = active(dir, name);
        struct fuse_entry_param entry = { 0 };
        struct lkg_node *node;

        if (!job || atomic_load(&server.shm->notify.relay_done) ||
            (job->op != LKG_RELAY_CREATED && job->op != LKG_RELAY_REMOVED))
                return 0;
        if (job->op == LKG_RELAY_CREATED)
                return -ENOENT;
        if (lkg_source_lookup(dir, name, &entry) < 0) {
                node = lkg_node_find_child(lkg_node_id(dir), name);
                if (!node)
                        node = lkg_node_placeholder(lkg_node_id(dir), name, S_ISDIR(job->type));
                if (!node)
                        return -ENFILE;
                describe_removed(node, &entry);
        }
        fuse_reply_entry(req, &entry);
        return REPLIED;
}

/* Without a job its path leads elsewhere by now, or it is compromised: it never changes anything real. */
int lkg_relay_make(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        struct fuse_entry_param entry;
        int r;

        if (!active(dir, name))
                return -ESTALE;
        atomic_store(&server.shm->notify.relay_done, 1);
        r = lkg_source_lookup(dir, name, &entry);
        if (r < 0)
                return r; /* already removed: its removal is the next job */
        fuse_reply_entry(req, &entry);
        return REPLIED;
}

int lkg_relay_remove(const struct lkg_node *dir, const char *name)
{
        if (!active(dir, name))
                return -ESTALE;
        atomic_store(&server.shm->notify.relay_done, 1);
        return 0;
}

int lkg_relay_open(fuse_req_t req, struct fuse_file_info *fi)
{
        fi->fh = 0;
        fi->noflush = 1;
        fi->keep_cache = 1;
        fuse_reply_open(req, fi);
        return REPLIED;
}

/* ---- announce ---- */

/* Tells the engine, pollers and watchers that a new publication is current. In the thread of the event loop. */

void lkg_announce_newer(void)
{
        struct publication_ref *ref = lkg_publication_get();
        uint64_t number = ref->publication->number;

        if (announced && announced->publication->number == number) {
                lkg_publication_put(ref);
                return;
        }
        lkg_link_loaded(number);
        lkg_view_wake_pollers();
        lkg_nodes_prune();
        lkg_kernel_invalidate_attributes(FUSE_ROOT_ID);
        wake_watchers(ref->publication);
        if (announced)
                lkg_publication_put(announced);
        announced = ref;
}
