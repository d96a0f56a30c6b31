/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that a refresh depends on; see lkg_stack_watches(). */
#include <limits.h>
#include <sys/vfs.h>

#include "layers.h"

#include <lkg/base.h>

#define LINKS_MAX 40

static void item_deinit(struct lkg_stack_watch *w)
{
        for (size_t i = 0; i < w->n_names; i++)
                free((char *)w->names[i]);
        free(w->names);
        free((char *)w->path);
        *w = (struct lkg_stack_watch){ 0 };
}

void lkg_way_deinit(struct lkg_way *watches)
{
        for (size_t i = 0; i < watches->n; i++)
                item_deinit(&watches->items[i]);
        free(watches->items);
        *watches = (struct lkg_way){ 0 };
}

/* Takes over nothing; duplicates are ignored. */
static int add_name(struct lkg_stack_watch *w, const char *name)
{
        char *copy;

        for (size_t i = 0; i < w->n_names; i++)
                if (strcmp(w->names[i], name) == 0)
                        return 0;
        copy = strdup(name);
        if (!copy || LKG_GROW(w->names, w->n_names) < 0) {
                free(copy);
                return -ENOMEM;
        }
        w->names[w->n_names++] = copy;
        return 0;
}

int lkg_watches_add(struct lkg_way *watches, const char *path, const char *name)
{
        struct lkg_stack_watch *w;

        if (LKG_RESERVE(watches->items, watches->n, watches->n_allocated) < 0)
                return -ENOMEM;
        w = &watches->items[watches->n];
        *w = (struct lkg_stack_watch){ .path = strdup(*path ? path : "."), .recursive_member = !name };
        if (!w->path || (name && add_name(w, name) < 0)) {
                item_deinit(w);
                return -ENOMEM;
        }
        watches->n++;
        return 0;
}

/* In place: "/a/b" -> "/a", "/a" -> "/", "a" -> ".". */
static void cut_last(char *path)
{
        char *slash = strrchr(path, '/');

        if (!slash)
                strcpy(path, ".");
        else
                slash[slash == path ? 1 : 0] = '\0';
}

/*
 * The directory of the entry @path, or its nearest existing ancestor; with the relevant name in it.
 */
static int add_holder(struct lkg_way *watches, const char *path)
{
        char dir[PATH_MAX], name[NAME_MAX + 1];
        struct stat st;

        if (strlen(path) >= sizeof(dir))
                return 0;
        strcpy(dir, *path ? path : ".");
        do {
                const char *slash = strrchr(dir, '/');

                if (snprintf(name, sizeof(name), "%s", slash ? slash + 1 : dir) >= (int)sizeof(name))
                        *name = '\0'; /* such a name cannot exist, but its parent may */
                cut_last(dir);
        } while ((stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) && strcmp(dir, "/") != 0 &&
                 strcmp(dir, ".") != 0);
        return lkg_watches_add(watches, dir, name);
}

/* A relative path that has climbed above its start cannot be shortened any more. */
static bool ends_in_dots(const char *path)
{
        const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

        return strcmp(last, "..") == 0 || strcmp(last, ".") == 0;
}

/*
 * Handles one component: appends it to @cur or, if it is a symlink, prepends its target to @rest and stores
 * its own path in @link.
 * Return: 1 = a symlink.
 */
static int way_step(char *cur, char *rest, char *link)
{
        size_t skip = strspn(rest, "/"), n = strcspn(rest + skip, "/"), length = strlen(cur);
        char target[PATH_MAX], next[PATH_MAX];
        const char *glue = length == 0 || cur[length - 1] == '/' ? "" : "/";
        ssize_t t;
        int k;

        k = snprintf(next, sizeof(next), "%s%s%.*s", cur, glue, (int)n, rest + skip);
        if (k < 0 || (size_t)k >= sizeof(next))
                return -ENAMETOOLONG;
        memmove(rest, rest + skip + n, strlen(rest + skip + n) + 1);
        if (n == 1 && next[k - 1] == '.')
                return 0;
        if (n == 2 && strcmp(next + k - 2, "..") == 0 && length > 0 && !ends_in_dots(cur)) {
                cut_last(cur); /* it contains no symlink */
                return 0;
        }
        t = readlink(next, target, sizeof(target) - 1);
        if (t < 0) {
                strcpy(cur, next);
                return 0;
        }
        target[t] = '\0';
        strcpy(link, next);
        k = snprintf(next, sizeof(next), "%s%s", target, rest);
        if (k < 0 || (size_t)k >= sizeof(next))
                return -ENAMETOOLONG;
        strcpy(rest, next);
        return 1;
}

int lkg_watches_add_way(struct lkg_way *watches, const char *path)
{
        char cur[PATH_MAX], rest[PATH_MAX], link[PATH_MAX];
        unsigned n_links = 0;
        int r;

        if (strlen(path) >= sizeof(rest))
                return 0;
        strcpy(rest, path);
        strcpy(cur, *path == '/' ? "/" : "");
        while (rest[strspn(rest, "/")]) {
                r = way_step(cur, rest, link);
                if (r < 0)
                        break;
                if (r == 0)
                        continue;
                r = add_holder(watches, link);
                if (r < 0)
                        return r;
                if (*rest == '/')
                        strcpy(cur, "/");
                if (++n_links > LINKS_MAX)
                        break;
        }
        return add_holder(watches, cur);
}

int lkg_watches_add_polled(struct lkg_way *watches, const char *path)
{
        int r = add_holder(watches, path);

        if (r == 0)
                watches->items[watches->n - 1].poll_only = true;
        return r;
}

/* File systems on which others can change files without an event in our kernel. */
static bool needs_polling(const char *path)
{
        static const unsigned long magics[] = {
                0x6969 /* nfs */,        0x517b /* smb */,        0xff534d42 /* cifs */,
                0xfe534d42 /* smb2 */,   0x65735546 /* fuse */,   0x00c36400 /* ceph */,
                0x01021997 /* 9p */,     0x5346414f /* afs */,    0x6b414653 /* kafs */,
                0x73757245 /* coda */,   0x01161970 /* gfs2 */,   0x7461636f /* ocfs2 */,
                0x786f4256 /* vboxsf */, 0x0bd00bd0 /* lustre */, 0xaad7aaea /* panfs */,
        };
        struct statfs st;

        if (statfs(path, &st) < 0)
                return false;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(magics); i++)
                if (((unsigned long)st.f_type & 0xffffffffUL) == magics[i])
                        return true;
        return false;
}

static int compare(const void *a, const void *b)
{
        return strcmp(((const struct lkg_stack_watch *)a)->path, ((const struct lkg_stack_watch *)b)->path);
}

/* Merges two reasons to watch one directory. Without memory for a name, all names matter. */
static void unite(struct lkg_stack_watch *to, struct lkg_stack_watch *from)
{
        to->recursive_member |= from->recursive_member;
        to->poll_only |= from->poll_only;
        for (size_t i = 0; i < from->n_names; i++)
                if (add_name(to, from->names[i]) < 0)
                        to->recursive_member = true;
        item_deinit(from);
}

void lkg_watches_finish(struct lkg_way *watches)
{
        size_t n = 0;

        if (watches->n > 1)
                qsort(watches->items, watches->n, sizeof(*watches->items), compare);
        for (size_t i = 0; i < watches->n; i++) {
                if (n > 0 && strcmp(watches->items[n - 1].path, watches->items[i].path) == 0)
                        unite(&watches->items[n - 1], &watches->items[i]);
                else
                        watches->items[n++] = watches->items[i];
        }
        watches->n = n;
        for (size_t i = 0; i < n; i++)
                watches->items[i].poll_only |= needs_polling(watches->items[i].path);
}

int lkg_way_find(const char *path, struct lkg_way *ret)
{
        struct lkg_way way = { 0 };
        int r = lkg_watches_add_way(&way, path);

        if (r < 0) {
                lkg_way_deinit(&way);
                return r;
        }
        lkg_watches_finish(&way);
        *ret = way;
        return 0;
}
