/* SPDX-License-Identifier: Apache-2.0 */
/* inotify and the unsettled set: see lkg/stack.h. */
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <lkg/base.h>
#include <lkg/text.h>

#include <lkg/publish.h>
#include "layers.h"

#define EVENTS                                                                                          \
        (IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | \
         IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define UNSETTLED_MAX 4096u /* beyond this number files count at once: a flood must not exhaust our memory */

int lkg_watch_open(struct lkg_watch *ret, int source_fd, const char *source_path, struct lkg_error *err)
{
        int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "inotify");
        *ret = (struct lkg_watch){
                .fd = fd,
                .source_fd = source_fd,
                .source_path = lkg_copy(source_path),
                .touched.everything = true,
        };
        return 0;
}

void lkg_watch_deinit(struct lkg_watch *w)
{
        lkg_way_deinit(&w->dirs);
        lkg_way_deinit(&w->next);
        lkg_touched_deinit(&w->touched);
        for (size_t i = 0; i < w->n_unsettled; i++)
                free(w->unsettled[i].path);
        free(w->unsettled);
        free(w->source_path);
        *w = (struct lkg_watch){ .fd = lkg_close(w->fd), .source_fd = -EBADF };
}

/*
 * Converts a path as the stacks name it to one that reaches the source directory even if a view is mounted
 * over it.
 */
static bool reach(const struct lkg_watch *w, const char *path, char ret[static PATH_MAX])
{
        const char *below = *w->source_path ? lkg_path_below(path, w->source_path) : NULL;
        int n;

        if (*w->source_path && strcmp(path, w->source_path) == 0)
                n = snprintf(ret, PATH_MAX, "/proc/self/fd/%d/.", w->source_fd);
        else if (below || *path != '/')
                n = snprintf(ret, PATH_MAX, "/proc/self/fd/%d/%s", w->source_fd, below ? below : path);
        else
                n = snprintf(ret, PATH_MAX, "%s", path);
        return n > 0 && n < PATH_MAX;
}

/* ---- the wanted set ---- */

void lkg_watch_add(struct lkg_watch *w, const struct lkg_stack_watch *wanted)
{
        bool every = wanted->recursive_member || wanted->n_names == 0;

        for (size_t i = 0; i < (every ? 1 : wanted->n_names); i++)
                lkg_watches_add(&w->next, wanted->path, every ? NULL : wanted->names[i]);
        w->next.items[w->next.n - 1].poll_only = wanted->poll_only;
}

static bool is_watched(const struct lkg_watch *w, int wd)
{
        for (size_t i = 0; i < w->dirs.n; i++)
                if (w->dirs.items[i].wd == wd)
                        return true;
        return false;
}

/* Return: may something have happened in it since it was looked at? */
static bool begin_watch(struct lkg_watch *w, struct lkg_stack_watch *dir)
{
        char path[PATH_MAX];

        if (!reach(w, dir->path, path))
                return false;
        dir->wd = inotify_add_watch(w->fd, path, EVENTS);
        if (dir->wd >= 0)
                return true;
        w->over_limit |= errno == ENOSPC || errno == ENOMEM;
        if (errno != ENOSPC && errno != ENOMEM && errno != EACCES && errno != EPERM)
                return true; /* it was removed since the stack saw it: the stack will name another one */
        w->poll = true;
        return false;
}

bool lkg_watch_end(struct lkg_watch *w)
{
        struct lkg_way old = w->dirs;
        bool added = false;

        lkg_way_unite(&w->next);
        w->dirs = w->next;
        w->next = (struct lkg_way){ 0 };
        w->poll = w->over_limit = false;
        for (size_t i = 0; i < w->dirs.n; i++) {
                struct lkg_stack_watch *dir = &w->dirs.items[i];
                const struct lkg_stack_watch *before = lkg_way_at(&old, dir->path);

                w->poll |= dir->poll_only; /* watched anyway: changes made on this node are seen at once */
                dir->wd = before ? before->wd : -1;
                if (dir->wd < 0)
                        added |= begin_watch(w, dir);
        }
        for (size_t i = 0; i < old.n; i++) {
                const struct lkg_stack_watch *now = lkg_way_at(&w->dirs, old.items[i].path);

                if (old.items[i].wd >= 0 && !(now && now->wd == old.items[i].wd) &&
                    !is_watched(w, old.items[i].wd))
                        (void)inotify_rm_watch(w->fd, old.items[i].wd);
        }
        lkg_way_deinit(&old);
        return added;
}

/* ---- touched ---- */

void lkg_touched_deinit(struct lkg_touched *touched)
{
        while (touched->n_paths > 0)
                free(touched->paths[--touched->n_paths]);
        free(touched->paths);
        *touched = (struct lkg_touched){ 0 };
}

struct lkg_touched lkg_watch_take_touched(struct lkg_watch *w)
{
        struct lkg_touched touched = w->touched;

        w->touched = (struct lkg_touched){ 0 };
        return touched;
}

void lkg_watch_touch(struct lkg_watch *w, const char *path)
{
        struct lkg_touched *t = &w->touched;

        if (t->everything)
                return;
        for (size_t i = 0; path && i < t->n_paths; i++)
                if (strcmp(t->paths[i], path) == 0)
                        return;
        if (path && t->n_paths < LKG_TOUCHED_MAX) {
                (void)lkg_need(lkg_strings_take(&t->paths, &t->n_paths, lkg_copy(path)));
                return;
        }
        lkg_touched_deinit(t);
        t->everything = true;
}

/* ---- unsettled ---- */

static size_t find_unsettled(const struct lkg_watch *w, const char *path)
{
        size_t i = 0;

        while (i < w->n_unsettled && strcmp(w->unsettled[i].path, path) != 0)
                i++;
        return i;
}

bool lkg_watch_unsettle(struct lkg_watch *w, const char *path, uint64_t at_ns)
{
        size_t i = find_unsettled(w, path);

        if (i < w->n_unsettled) {
                w->unsettled[i].since_ns = at_ns;
                return true;
        }
        if (w->n_unsettled >= UNSETTLED_MAX)
                return false;
        (void)lkg_need(LKG_GROW(w->unsettled, w->n_unsettled));
        w->unsettled[w->n_unsettled++] = (struct lkg_unsettled){ lkg_copy(path), at_ns };
        return true;
}

static void forget(struct lkg_watch *w, size_t i)
{
        free(w->unsettled[i].path);
        w->unsettled[i] = w->unsettled[--w->n_unsettled];
}

static void settle(struct lkg_watch *w, const char *path)
{
        size_t i = find_unsettled(w, path);

        if (i < w->n_unsettled)
                forget(w, i);
}

void lkg_watch_settle(struct lkg_watch *w, const char *path)
{
        char whole[PATH_MAX];

        if (*path == '/' || !*w->source_path)
                settle(w, path);
        else if (snprintf(whole, sizeof(whole), "%s/%s", w->source_path, path) < (int)sizeof(whole))
                settle(w, whole);
}

bool lkg_watch_unsettled(const struct lkg_watch *w, const char *path)
{
        return w->n_unsettled && find_unsettled(w, path) < w->n_unsettled;
}

uint64_t lkg_watch_deadline(const struct lkg_watch *w)
{
        uint64_t first = UINT64_MAX;

        for (size_t i = 0; i < w->n_unsettled; i++)
                if (w->unsettled[i].since_ns + LKG_UNCLOSED_NS < first)
                        first = w->unsettled[i].since_ns + LKG_UNCLOSED_NS;
        return first;
}

bool lkg_watch_tick(struct lkg_watch *w, uint64_t now_ns)
{
        bool any = false;

        for (size_t i = 0; i < w->n_unsettled;) {
                if (w->unsettled[i].since_ns + LKG_UNCLOSED_NS > now_ns) {
                        i++;
                        continue;
                }
                lkg_watch_touch(w, w->unsettled[i].path);
                forget(w, i);
                any = true;
        }
        return any;
}

/* ---- events ---- */

/* A new name: a regular file with one link may be in the middle of a write. With content it was linked, or an event tells of the write. */
static bool created(struct lkg_watch *w, const char *path, uint64_t now_ns)
{
        char reachable[PATH_MAX];
        struct stat st;

        if (!reach(w, path, reachable) || lstat(reachable, &st) < 0)
                return true;
        if (!S_ISREG(st.st_mode) || st.st_nlink > 1 || st.st_size > 0)
                return true;
        return !lkg_watch_unsettle(w, path, now_ns);
}

/* Return: true: the entry may have changed. */
static bool on_name(struct lkg_watch *w, const char *path, const struct inotify_event *e, uint64_t now_ns)
{
        if (e->mask & IN_ISDIR)
                return true;
        if (e->mask & (IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE)) {
                settle(w, path);
                return true;
        }
        if (e->mask & IN_CREATE)
                return created(w, path, now_ns);
        if (e->mask & IN_MODIFY)
                return !lkg_watch_unsettle(w, path, now_ns);
        return true; /* attributes: it may have become readable */
}

static bool matters(const struct lkg_stack_watch *dir, const char *name)
{
        for (size_t i = 0; i < dir->n_names; i++)
                if (strcmp(dir->names[i], name) == 0)
                        return true;
        return dir->recursive_member;
}

/* Something happened to an entry of @dir. */
static bool on_entry(struct lkg_watch *w, const struct lkg_stack_watch *dir, const struct inotify_event *e,
                     uint64_t now_ns)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;

        if (!matters(dir, e->name))
                return false;
        path = lkg_format("%s%s%s", dir->path, dir->path[strlen(dir->path) - 1] == '/' ? "" : "/", e->name);
        if (strlen(path) < PATH_MAX && !on_name(w, path, e, now_ns))
                return false;
        lkg_watch_touch(w, path);
        return true;
}

/* Something happened to @dir itself, or to its watch. */
static void on_self(struct lkg_watch *w, struct lkg_stack_watch *dir, const struct inotify_event *e)
{
        if (e->mask & (IN_IGNORED | IN_MOVE_SELF)) {
                /* The name now refers to something else: look it up again at the next refresh. */
                if (e->mask & IN_MOVE_SELF)
                        (void)inotify_rm_watch(w->fd, dir->wd);
                dir->wd = -1;
        }
        lkg_watch_touch(w, NULL);
}

static bool on_event(struct lkg_watch *w, const struct inotify_event *e, uint64_t now_ns)
{
        bool any = e->mask & IN_Q_OVERFLOW;

        if (any)
                lkg_watch_touch(w, NULL);
        for (size_t i = 0; any && i < w->n_unsettled; i++) /* its close may be what was lost */
                w->unsettled[i].since_ns =
                        now_ns > LKG_UNCLOSED_NS ? now_ns - LKG_UNCLOSED_NS + LKG_UNSETTLED_NS : 0;
        for (size_t i = 0; i < w->dirs.n; i++) {
                struct lkg_stack_watch *dir = &w->dirs.items[i];

                if (dir->wd != e->wd)
                        continue;
                if (e->len && *dir->path && !(e->mask & (IN_IGNORED | IN_MOVE_SELF))) {
                        any = on_entry(w, dir, e, now_ns) || any;
                } else {
                        on_self(w, dir, e);
                        any = true;
                }
        }
        return any;
}

bool lkg_watch_drain(struct lkg_watch *w, uint64_t now_ns)
{
        char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
        bool any = false;

        while (true) {
                ssize_t n = read(w->fd, buf, sizeof(buf));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return any;
                for (ssize_t at = 0; at < n;) {
                        const struct inotify_event *e = (const struct inotify_event *)(buf + at);

                        any = on_event(w, e, now_ns) || any;
                        at += (ssize_t)sizeof(*e) + e->len;
                }
        }
}
