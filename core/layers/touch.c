/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short form of a refresh: the caller names the paths that may have changed, and if all of them are
 * known layer files, only those are read again.
 *
 * Anything that could change the list of layers or how they are reached (a new or removed name, a directory,
 * a symlink, a file that is not a regular one) needs a walk. Layers that may have changed without a change
 * of identity are always read again, as in a walk.
 */
#include <fcntl.h>

#include "layers.h"

enum concern { CONCERN_NONE, CONCERN_LAYER, CONCERN_LIST };

struct touch {
        struct lkg_stack *stack;
        char *tree;   /* watch form of the drop-in directory, when needed */
        int tree_fd;  /* the same, open */
        bool changed; /* a layer has changed */
};

/* The part of @path below @top, "" for @top itself, NULL if it is elsewhere. */
static const char *below(const char *path, const char *top)
{
        size_t n = strlen(top);

        if (strcmp(top, "/") == 0)
                return *path == '/' ? path + 1 : NULL;
        if (strncmp(path, top, n) != 0 || (path[n] != '/' && path[n] != '\0'))
                return NULL;
        return path[n] ? path + n + 1 : path + n;
}

static bool matters(const struct lkg_stack_watch *w, const char *rest)
{
        if (w->recursive_member || w->n_names == 0)
                return true;
        for (size_t i = 0; i < w->n_names; i++)
                if (below(rest, w->names[i]))
                        return true;
        return false;
}

/* The effect that a change of @path can have on the layers. */
static enum concern concern_of(const struct lkg_stack *stack, const char *path)
{
        if (lkg_stack_find(stack, path) != SIZE_MAX)
                return CONCERN_LAYER;
        for (size_t i = 0; i < stack->found.watches.n; i++) {
                const struct lkg_stack_watch *w = &stack->found.watches.items[i];
                const char *rest = below(path, w->path);

                if (below(w->path, path) || (rest && matters(w, rest)))
                        return CONCERN_LIST;
        }
        return CONCERN_NONE;
}

static int open_tree(struct touch *t)
{
        const char *dir = t->stack->config.dropin_dir;

        if (t->tree_fd >= 0)
                return 0;
        free(t->tree);
        t->tree = lkg_stack_tree_form(t->stack, dir);
        t->tree_fd = lkg_stack_open_tree(t->stack, dir, t->tree);
        return t->tree_fd < 0 ? -EAGAIN : 0;
}

/* Where the walk found @layer. -EAGAIN: only a walk can tell. */
static int place_of(struct touch *t, const struct lkg_layer *layer, struct lkg_place *ret)
{
        const struct lkg_stack_config *config = &t->stack->config;
        const char *slash, *rest;
        int r;

        *ret = (struct lkg_place){
                .role = layer->role, .type = layer->type, .dirfd = config->source_fd, .path = layer->path
        };
        if (layer->role == LKG_LAYER_BASE || layer->role == LKG_LAYER_INSTANCE) {
                ret->entry = layer->role == LKG_LAYER_BASE ? config->base : config->instance;
                slash = strrchr(ret->entry, '/');
                ret->name = slash ? slash + 1 : ret->entry;
                return 0;
        }
        if (layer->role != LKG_LAYER_DROPIN && layer->role != LKG_LAYER_MANIFEST)
                return -EAGAIN;
        r = open_tree(t);
        if (r < 0)
                return r;
        rest = below(layer->path, t->tree);
        if (!rest || !*rest || strchr(rest, '/'))
                return -EAGAIN; /* in a subdirectory, which may have become a symlink */
        ret->dirfd = t->tree_fd;
        ret->entry = ret->name = rest;
        return 0;
}

/*
 * Does another layer use the same file (a link to it, a mounted ConfigMap)? Then a change of one is a change
 * of both.
 */
static bool is_alone(const struct lkg_stack *stack, const struct lkg_layer *layer)
{
        for (size_t i = 0; i < stack->found.layers.n; i++) {
                const struct lkg_layer *other = stack->found.layers.items[i];

                if (other != layer && other->has_identity && other->identity.ino == layer->identity.ino &&
                    other->identity.dev == layer->identity.dev)
                        return false;
        }
        return true;
}

/* Reads the layer at index @at of the sorted list again. */
static int reload(struct touch *t, size_t at)
{
        struct lkg_stack *stack = t->stack;
        struct lkg_layer *before = stack->sorted[at], *now = NULL;
        bool others = before->other_names;
        struct lkg_place place;
        struct stat st;
        int r;

        if (!before->has_identity || !is_alone(stack, before))
                return -EAGAIN;
        r = place_of(t, before, &place);
        if (r < 0)
                return r;
        if (fstatat(place.dirfd, place.entry, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return -EAGAIN;
        if (before->role == LKG_LAYER_DROPIN || before->role == LKG_LAYER_MANIFEST)
                place.st = &st;
        if (!lkg_stack_load(stack, &place, before, &now) || !now)
                return -EAGAIN;
        if (now->other_names != others) {
                lkg_layer_unref(now);
                return -EAGAIN; /* a walk says so, and has it polled */
        }
        if (now == before) {
                lkg_layer_unref(now);
                return 0;
        }
        for (size_t i = 0; i < stack->found.layers.n; i++)
                if (stack->found.layers.items[i] == before)
                        stack->found.layers.items[i] = now;
        stack->sorted[at] = now;
        lkg_layer_unref(before);
        t->changed = true;
        return 0;
}

/*
 * Each only once: a file that is written again and again is touched and may have changed without a change of
 * identity.
 */
static int reload_all(struct touch *t, const char *const *paths, size_t n_paths)
{
        struct lkg_stack *stack = t->stack;
        LKG_CLEANUP(lkg_freep) bool *wanted = lkg_must(calloc(stack->found.layers.n + 1, sizeof(*wanted)));
        int r = 0;

        for (size_t i = 0; i < n_paths; i++) {
                size_t at = lkg_stack_find(stack, paths[i]);

                if (at != SIZE_MAX)
                        wanted[at] = true;
        }
        for (size_t i = 0; r == 0 && i < stack->found.layers.n; i++)
                if (wanted[i] || stack->sorted[i]->racy)
                        r = reload(t, i);
        return r;
}

static uint64_t size_of_all(const struct lkg_stack *stack)
{
        uint64_t n = 0;

        for (size_t i = 0; i < stack->found.layers.n; i++)
                n += stack->found.layers.items[i]->size;
        return n;
}

int lkg_stack_touch(struct lkg_stack *stack, const char *const *paths, size_t n_paths)
{
        struct touch t = { .stack = stack, .tree_fd = -EBADF };
        bool layer = false;
        int r;

        for (size_t i = 0; i < n_paths; i++) {
                enum concern concern = concern_of(stack, paths[i]);

                if (concern == CONCERN_LIST)
                        return -EAGAIN;
                layer = layer || concern == CONCERN_LAYER;
        }
        if (!layer)
                return 0;
        r = reload_all(&t, paths, n_paths);
        lkg_close(t.tree_fd);
        free(t.tree);
        if (r < 0)
                stack->complete = false; /* some may have been replaced: the next refresh is a full one */
        if (r == 0 && t.changed &&
            (stack->found.too_big || size_of_all(stack) > lkg_stack_max_bytes(&stack->config)))
                return -EAGAIN; /* a walk decides which of them are loaded */
        return r < 0 ? r : t.changed;
}
