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

/* Duplicates are ignored. */
static void add_name(struct lkg_stack_watch *w, const char *name)
{
        for (size_t i = 0; i < w->n_names; i++)
                if (strcmp(w->names[i], name) == 0)
                        return;
        (void)lkg_need(LKG_GROW(w->names, w->n_names));
        w->names[w->n_names++] = lkg_copy(name);
}

void lkg_watches_add(struct lkg_way *watches, const char *path, const char *name)
{
        struct lkg_stack_watch *w;

        (void)lkg_need(LKG_RESERVE(watches->items, watches->n, watches->n_allocated));
        w = &watches->items[watches->n++];
        *w = (struct lkg_stack_watch){ .path = lkg_copy(*path ? path : "."), .recursive_member = !name };
        if (name)
                add_name(w, name);
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
static void add_holder(struct lkg_way *watches, const char *path)
{
        char dir[PATH_MAX], name[NAME_MAX + 1];
        struct stat st;

        if (strlen(path) >= sizeof(dir))
                return;
        strcpy(dir, *path ? path : ".");
        do {
                const char *slash = strrchr(dir, '/');

                if (snprintf(name, sizeof(name), "%s", slash ? slash + 1 : dir) >= (int)sizeof(name))
                        *name = '\0'; /* such a name cannot exist, but its parent may */
                cut_last(dir);
        } while ((stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) && strcmp(dir, "/") != 0 &&
                 strcmp(dir, ".") != 0);
        lkg_watches_add(watches, dir, name);
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

void lkg_watches_add_way(struct lkg_way *watches, const char *path)
{
        char cur[PATH_MAX], rest[PATH_MAX], link[PATH_MAX];
        unsigned n_links = 0;

        if (strlen(path) >= sizeof(rest))
                return;
        strcpy(rest, path);
        strcpy(cur, *path == '/' ? "/" : "");
        while (rest[strspn(rest, "/")]) {
                int r = way_step(cur, rest, link);

                if (r < 0)
                        break;
                if (r == 0)
                        continue;
                add_holder(watches, link);
                if (*rest == '/')
                        strcpy(cur, "/");
                if (++n_links > LINKS_MAX)
                        break;
        }
        add_holder(watches, cur);
}

void lkg_watches_add_polled(struct lkg_way *watches, const char *path)
{
        size_t n = watches->n;

        add_holder(watches, path);
        if (watches->n > n)
                watches->items[n].poll_only = true;
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

/* Merges two reasons to watch one directory. */
static void unite(struct lkg_stack_watch *to, struct lkg_stack_watch *from)
{
        to->recursive_member |= from->recursive_member;
        to->poll_only |= from->poll_only;
        for (size_t i = 0; i < from->n_names; i++)
                add_name(to, from->names[i]);
        item_deinit(from);
}

void lkg_way_unite(struct lkg_way *watches)
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
}

struct lkg_stack_watch *lkg_way_at(const struct lkg_way *watches, const char *path)
{
        const struct lkg_stack_watch key = { .path = path };

        return watches->n ? bsearch(&key, watches->items, watches->n, sizeof(key), compare) : NULL;
}

void lkg_watches_finish(struct lkg_way *watches)
{
        lkg_way_unite(watches);
        for (size_t i = 0; i < watches->n; i++)
                watches->items[i].poll_only |= needs_polling(watches->items[i].path);
}

void lkg_way_find(const char *path, struct lkg_way *ret)
{
        *ret = (struct lkg_way){ 0 };
        lkg_watches_add_way(ret, path);
        lkg_watches_finish(ret);
}
