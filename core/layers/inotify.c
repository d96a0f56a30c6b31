/* SPDX-License-Identifier: Apache-2.0 */
/* inotify and the unsettled set: see layers.h. */
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <lkg/base.h>
#include <lkg/text.h>

#include <lkg/publish.h>
#include <lkg/stack.h>

#define EVENTS                                                                                          \
        (IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | \
         IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define UNSETTLED_MAX 4096u /* beyond this number files count at once: a flood must not exhaust our memory */

int lkg_watch_open(struct lkg_watch *ret, int source_fd, const char *source_path, struct lkg_error *err)
{
        *ret = (struct lkg_watch){
                .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                .source_fd = source_fd,
                .source_path = strdup(source_path),
                .touched.everything = true,
        };
        if (ret->fd < 0) {
                int r = -errno;

                free(ret->source_path);
                return lkg_error_set(err, r, NULL, "inotify");
        }
        if (!ret->source_path) {
                ret->fd = lkg_close(ret->fd);
                return lkg_error_set(err, -ENOMEM, NULL, "inotify");
        }
        return 0;
}

static void forget_names(struct lkg_watched_dir *dir)
{
        while (dir->n_names > 0)
                free(dir->names[--dir->n_names]);
        free(dir->names);
        dir->names = NULL;
}

static void dir_deinit(struct lkg_watched_dir *dir)
{
        forget_names(dir);
        free(dir->path);
}

void lkg_watch_deinit(struct lkg_watch *w)
{
        for (size_t i = 0; i < w->n_dirs; i++)
                dir_deinit(&w->dirs[i]);
        lkg_touched_deinit(&w->touched);
        for (size_t i = 0; i < w->n_unsettled; i++)
                free(w->unsettled[i].path);
        free(w->dirs);
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

void lkg_watch_begin(struct lkg_watch *w)
{
        for (size_t i = 0; i < w->n_dirs; i++) {
                w->dirs[i].wanted = w->dirs[i].every = false;
                forget_names(&w->dirs[i]);
        }
        w->poll = w->over_limit = w->added = false;
}

static size_t position(const struct lkg_watch *w, const char *path)
{
        size_t low = 0, high = w->n_dirs;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(w->dirs[middle].path, path) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int insert(struct lkg_watch *w, size_t at, const char *path)
{
        char *copy = strdup(path);

        if (!copy || LKG_GROW(w->dirs, w->n_dirs) < 0) {
                free(copy);
                return -ENOMEM;
        }
        memmove(w->dirs + at + 1, w->dirs + at, (w->n_dirs - at) * sizeof(*w->dirs));
        w->dirs[at] = (struct lkg_watched_dir){ .path = copy, .wd = -1 };
        w->n_dirs++;
        return 0;
}

static bool has_name(const struct lkg_watched_dir *dir, const char *name)
{
        for (size_t i = 0; i < dir->n_names; i++)
                if (strcmp(dir->names[i], name) == 0)
                        return true;
        return dir->every;
}

/* Without memory for a name, every name matters. */
static void add_names(struct lkg_watched_dir *dir, const struct lkg_stack_watch *wanted)
{
        dir->every = dir->every || wanted->recursive_member || wanted->n_names == 0;
        for (size_t i = 0; !dir->every && i < wanted->n_names; i++)
                if (!has_name(dir, wanted->names[i]))
                        dir->every =
                                lkg_strings_take(&dir->names, &dir->n_names, strdup(wanted->names[i])) < 0;
}

int lkg_watch_add(struct lkg_watch *w, const struct lkg_stack_watch *wanted)
{
        size_t at = position(w, wanted->path);
        struct lkg_watched_dir *dir;
        char path[PATH_MAX];

        if (wanted->poll_only)
                w->poll = true; /* watched anyway: changes made on this node are seen at once */
        if (at == w->n_dirs || strcmp(w->dirs[at].path, wanted->path) != 0) {
                int r = insert(w, at, wanted->path);

                if (r < 0)
                        return r;
        }
        dir = &w->dirs[at];
        dir->wanted = true;
        add_names(dir, wanted);
        if (dir->wd >= 0 || !reach(w, dir->path, path))
                return 0;
        dir->wd = inotify_add_watch(w->fd, path, EVENTS);
        if (dir->wd >= 0) {
                w->added = true;
        } else if (errno == ENOSPC || errno == ENOMEM) {
                w->poll = w->over_limit = true;
        } else if (errno == EACCES || errno == EPERM) {
                w->poll = true;
        } else {
                w->added = true; /* it was removed since the stack saw it: the stack will name another one */
        }
        return 0;
}

static bool shared(const struct lkg_watch *w, const struct lkg_watched_dir *dir)
{
        for (size_t i = 0; i < w->n_dirs; i++)
                if (&w->dirs[i] != dir && w->dirs[i].wanted && w->dirs[i].wd == dir->wd)
                        return true;
        return false;
}

bool lkg_watch_end(struct lkg_watch *w)
{
        size_t n = 0;

        for (size_t i = 0; i < w->n_dirs; i++)
                if (!w->dirs[i].wanted && w->dirs[i].wd >= 0 && !shared(w, &w->dirs[i]))
                        (void)inotify_rm_watch(w->fd, w->dirs[i].wd);
        for (size_t i = 0; i < w->n_dirs; i++) {
                if (w->dirs[i].wanted)
                        w->dirs[n++] = w->dirs[i];
                else
                        dir_deinit(&w->dirs[i]);
        }
        w->n_dirs = n;
        return w->added;
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

/* Takes over @path; NULL = anything. */
static void touch(struct lkg_watch *w, char *path)
{
        struct lkg_touched *t = &w->touched;
        bool known = t->everything;

        for (size_t i = 0; path && !known && i < t->n_paths; i++)
                known = strcmp(t->paths[i], path) == 0;
        if (path && known) {
                free(path);
                return;
        }
        if (t->n_paths >= LKG_TOUCHED_MAX) {
                free(path);
                path = NULL;
        }
        if (!path || lkg_strings_take(&t->paths, &t->n_paths, path) < 0) {
                lkg_touched_deinit(t);
                t->everything = true;
        }
}

void lkg_watch_touch(struct lkg_watch *w, const char *path)
{
        touch(w, path ? strdup(path) : NULL);
}

/* ---- unsettled ---- */

static size_t find_unsettled(const struct lkg_watch *w, const char *path)
{
        size_t i = 0;

        while (i < w->n_unsettled && strcmp(w->unsettled[i].path, path) != 0)
                i++;
        return i;
}

/* Return: false: the set is full, so the file counts as complete. */
static bool unsettle(struct lkg_watch *w, const char *path, uint64_t now_ns)
{
        size_t i = find_unsettled(w, path);
        char *copy;

        if (i < w->n_unsettled) {
                w->unsettled[i].since_ns = now_ns;
                return true;
        }
        if (w->n_unsettled >= UNSETTLED_MAX)
                return false;
        copy = strdup(path);
        if (!copy || LKG_GROW(w->unsettled, w->n_unsettled) < 0) {
                free(copy);
                return false;
        }
        w->unsettled[w->n_unsettled++] = (struct lkg_unsettled){ copy, now_ns };
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

bool lkg_watch_unsettled(const char *path, void *userdata)
{
        const struct lkg_watch *w = userdata;

        return w->n_unsettled && find_unsettled(w, path) < w->n_unsettled;
}

uint64_t lkg_watch_deadline(const struct lkg_watch *w)
{
        uint64_t first = UINT64_MAX;

        for (size_t i = 0; i < w->n_unsettled; i++)
                if (w->unsettled[i].since_ns + LKG_UNSETTLED_NS < first)
                        first = w->unsettled[i].since_ns + LKG_UNSETTLED_NS;
        return first;
}

bool lkg_watch_tick(struct lkg_watch *w, uint64_t now_ns)
{
        bool any = false;

        for (size_t i = 0; i < w->n_unsettled;) {
                if (w->unsettled[i].since_ns + LKG_UNSETTLED_NS > now_ns) {
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

/* A new name: only a regular file with one link can be in the middle of a write. */
static bool created(struct lkg_watch *w, const char *path, uint64_t now_ns)
{
        char reachable[PATH_MAX];
        struct stat st;

        if (!reach(w, path, reachable) || lstat(reachable, &st) < 0)
                return true;
        if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
                return true;
        return !unsettle(w, path, now_ns);
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
                return !unsettle(w, path, now_ns);
        return true; /* attributes: it may have become readable */
}

/* Something happened to an entry of @dir. */
static bool on_entry(struct lkg_watch *w, const struct lkg_watched_dir *dir, const struct inotify_event *e,
                     uint64_t now_ns)
{
        char *path;

        if (!has_name(dir, e->name))
                return false;
        if (asprintf(&path, "%s%s%s", dir->path, dir->path[strlen(dir->path) - 1] == '/' ? "" : "/",
                     e->name) < 0) {
                touch(w, NULL);
                return true;
        }
        if (strlen(path) < PATH_MAX && !on_name(w, path, e, now_ns)) {
                free(path);
                return false;
        }
        touch(w, path);
        return true;
}

/* Something happened to @dir itself, or to its watch. */
static void on_self(struct lkg_watch *w, struct lkg_watched_dir *dir, const struct inotify_event *e)
{
        if (e->mask & (IN_IGNORED | IN_MOVE_SELF)) {
                /* The name now refers to something else: look it up again at the next refresh. */
                if (e->mask & IN_MOVE_SELF)
                        (void)inotify_rm_watch(w->fd, dir->wd);
                dir->wd = -1;
        }
        touch(w, NULL);
}

static bool on_event(struct lkg_watch *w, const struct inotify_event *e, uint64_t now_ns)
{
        bool any = e->mask & IN_Q_OVERFLOW;

        if (any)
                touch(w, NULL);
        for (size_t i = 0; i < w->n_dirs; i++) {
                struct lkg_watched_dir *dir = &w->dirs[i];

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
