/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by stack.c, merges.c, fold.c, layer.c, walk.c and watched.c: one layer file, and the walk over a directory of
 * layer files.
 */
#pragma once

#include <sys/stat.h>

#include <lkg/stack.h>
#include <lkg/tree.h>

/*
 * One layer file as it was read. Shared by the cache, the steps of the fold and the candidates; everything
 * except identity and racy is immutable once it is built.
 */
struct lkg_layer {
        unsigned refs;
        enum lkg_layer_role role;
        enum lkg_patch_type type;
        char *path; /* watch form, raw bytes: the key of the cache */
        char *name; /* relative to its directory, for messages: unsafe bytes escaped */
        char *file; /* as a user would open it, escaped */
        /* for a document in memory: the file in whose directory relative paths start; else NULL */
        char *beside;
        bool has_identity; /* false: could not be opened */
        struct lkg_file_id identity;
        bool other_names; /* it can be changed through a name that inotify does not report */
        bool racy; /* its identity is not reliable: written just before we read it, or being written since */
        char sha256[LKG_SHA256_HEX];
        size_t size; /* bytes of the file */
        enum lkg_format format;
        /* usually one; a kubeadm patch file may contain several; none if it is broken */
        struct lkg_value **docs;
        size_t n_docs;
        char *text; /* of a manifest, which is served as it is; else NULL */
        char *resembles; /* what it looks like, if its header is that of no component: lkg_resembles(); NULL = nothing */
        bool kubeconfig;
        bool refused; /* not admitted, so it was not read; checked again at every refresh */
        bool judged;  /* its content has been merged and judged with others at least once */
        struct lkg_report report;
};

struct lkg_layer *lkg_layer_ref(struct lkg_layer *layer);
struct lkg_layer *lkg_layer_unref(struct lkg_layer *layer);
static inline void lkg_layer_unrefp(struct lkg_layer **layer)
{
        *layer = lkg_layer_unref(*layer);
}

/* Where a layer was found. */
struct lkg_place {
        enum lkg_layer_role role;
        enum lkg_patch_type type;
        int dirfd;
        const char *entry;     /* name to open, relative to dirfd */
        const char *path;      /* watch form, raw */
        const char *name;      /* relative to its directory, raw */
        const struct stat *st; /* from lstat, or NULL if unknown */
};

/** lkg_layer_admit() - lkg_admit() for the content of a layer. */
int lkg_layer_admit(const struct lkg_stack *stack, const struct lkg_layer *layer, char **ret_why);

/** lkg_layer_new() - the file at @place, of which nothing has been read. */
struct lkg_layer *lkg_layer_new(const struct lkg_place *place);
/**
 * lkg_layer_load() - load the current layer at @place.
 * @cached: the earlier layer of this place, or NULL; returned again if the content is the same
 * @ret:    one reference; NULL if there is no such file
 *
 * A file that cannot be used is a layer without documents; its report has the reason.
 *
 * Return: false: the entry was removed after it had been listed.
 */
bool lkg_layer_load(struct lkg_stack *stack, const struct lkg_place *place, struct lkg_layer *cached,
                    struct lkg_layer **ret);
/** lkg_layer_from_memory() - the document that replaces the base; otherwise like lkg_layer_load(). */
struct lkg_layer *lkg_layer_from_memory(struct lkg_stack *stack, const struct lkg_stack_remote *remote,
                                        struct lkg_layer *cached);
/** lkg_display() - @text with bytes that are not printable UTF-8 as \xNN. Heap. */
char *lkg_display(const char *text);

/* ---- walk.c ---- */

enum lkg_walk_verdict { LKG_WALK_LOAD, LKG_WALK_SKIP, LKG_WALK_IGNORE };

struct lkg_walk {
        const char *what; /* "drop-in directory" */
        struct lkg_report *report;
        /* Is the entry a layer? Adds findings itself. @file: for findings. */
        enum lkg_walk_verdict (*judge)(struct lkg_walk *walk, const char *name, bool link, const char *file);
        /* Called for each layer in order. Return: has it vanished? */
        bool (*found)(int dirfd, const char *entry, const char *path, const char *name,
                      const struct stat *st, void *userdata);
        void (*directory)(const char *path, void *userdata);
        void *userdata;
        const char *target; /* of kubeadm patches */
        bool flat;          /* directories in it are not entered */
        size_t n_entries;
        bool vanished; /* an entry was removed during the walk */
};

/**
 * lkg_walk() - visit the layers below an open directory in upstream's order.
 * @fd:   the directory; borrowed
 * @path: its watch form
 */
int lkg_walk(struct lkg_walk *walk, int fd, const char *path);
enum lkg_walk_verdict lkg_judge_dropin(struct lkg_walk *walk, const char *name, bool link, const char *file);
enum lkg_walk_verdict lkg_judge_patch(struct lkg_walk *walk, const char *name, bool link, const char *file);
enum lkg_walk_verdict lkg_judge_manifest(struct lkg_walk *walk, const char *name, bool link,
                                         const char *file);
/**
 * lkg_patch_name() - kubeadm's file name rule.
 * Return: 1 and the type; 0: of another component; -EINVAL: invalid type.
 */
int lkg_patch_name(const char *name, const char *target, enum lkg_patch_type *ret_type);
bool lkg_is_conf(const char *name);

/* ---- fold.c ---- */

/* One document in merge order, and what its merge came to. */
struct lkg_fold_step {
        struct lkg_layer_info info; /* whole: as far as the fold knows */
        size_t doc;                 /* index in the layer's docs; SIZE_MAX if it has none */
        struct lkg_report report;
};

struct lkg_fold {
        struct lkg_fold_step *steps;
        size_t n_steps;
        struct lkg_value *result; /* of all that could be merged; NULL = none */
        struct lkg_value *base;   /* of the first n_base steps: base or remote, and kubeadm's patches */
        struct lkg_value *below;  /* of the first n_below steps: those below the last change */
        size_t n_base, n_below;
};

void lkg_fold_deinit(struct lkg_fold *fold);
/** lkg_fold_update() - merge @layers, starting from what is known of the first ones. */
void lkg_fold_update(struct lkg_fold *fold, const struct lkg_stack_config *config, struct lkg_layer **layers,
                     size_t n_layers, struct lkg_stack_stats *stats);
/**
 * lkg_candidate_same() - were they made from the same layers and results? Compares pointers; @a may be NULL.
 */
bool lkg_candidate_same(const struct lkg_candidate *a, const struct lkg_candidate *b);

/* ---- watched.c ---- */

/** lkg_watches_add() - add directory @path and the relevant @name in it; NULL = a member of a tree. */
void lkg_watches_add(struct lkg_way *watches, const char *path, const char *name);
/**
 * lkg_watches_add_way() - add every directory and name that determines what @path (a file or directory)
 * resolves to.
 */
void lkg_watches_add_way(struct lkg_way *watches, const char *path);
/** lkg_watches_add_polled() - the file @path (in the form of watches) changes without an event: its directory is polled. */
void lkg_watches_add_polled(struct lkg_way *watches, const char *path);
/** lkg_way_unite() - sort, merge duplicates. */
void lkg_way_unite(struct lkg_way *watches);
/** lkg_way_at() - that of @path in one that is united; NULL = it is not there. */
struct lkg_stack_watch *lkg_way_at(const struct lkg_way *watches, const char *path);
/** lkg_watches_finish() - unite, and check the file systems. */
void lkg_watches_finish(struct lkg_way *watches);

/* ---- stack.c, touch.c, merges.c ---- */

struct lkg_layers {
        struct lkg_layer **items; /* in merge order; one reference each */
        size_t n, n_allocated;
};

/* What a look at everything has found. */
struct lkg_found {
        struct lkg_layers layers;
        struct lkg_way watches;
        struct lkg_report reports[_LKG_LAYER_ROLE_MAX]; /* about files and directories, by role */
        bool has_base, has_dropin_dir;
        bool too_big; /* a layer was left out because of max_bytes */
};

/* What the layers come to over one base. */
struct lkg_merge {
        struct lkg_layer *remote; /* the document in memory that replaces the base; NULL = the base file */
        struct lkg_fold fold;
        struct lkg_candidate *merged;    /* as merged, before the judge changed it */
        struct lkg_candidate *candidate; /* what is returned */
        char *refused;                   /* why the layers may not be merged; NULL = they may */
        bool current;                    /* no layer and no input of the judge has changed since */
        bool rejudge;                    /* the latter has */
        uint64_t used;                   /* when it was last asked for, in uses */
};
#define LKG_MERGES_MAX 4 /* local, followed, last known good, tried */

struct lkg_stack {
        struct lkg_stack_config config;
        struct lkg_bounds bounds;  /* the source directory */
        struct lkg_found found;    /* by the last walk; layers that have changed since are replaced */
        struct lkg_layer **sorted; /* its layers by path; borrowed from them; NULL = there was no refresh */
        struct lkg_merge merges[LKG_MERGES_MAX];
        uint64_t n_used;
        bool complete; /* the last refresh saw everything: nothing vanished, no new file was skipped */
        int last_fd;   /* the file that was read last (lkg_stack_rest()) */
        struct lkg_stack_stats stats;
        lkg_unsettled_fn *unsettled;
        void *unsettled_userdata;
        lkg_judge_fn *judge;
        void *judge_userdata;
        struct lkg_admission admission;
};

static inline uint64_t lkg_stack_max_dropins(const struct lkg_stack_config *config)
{
        return config->max_dropins ? config->max_dropins : LKG_DROPINS_MAX;
}

static inline uint64_t lkg_stack_max_bytes(const struct lkg_stack_config *config)
{
        return config->max_bytes ? config->max_bytes : LKG_LAYER_BYTES_MAX;
}

/**
 * lkg_stack_load() - load one layer file as it is now, or its last version while it is being written.
 * @before: the cached layer of this path, or NULL
 * @ret:    one reference; NULL = no layer there (yet)
 * Return: false: it has just been removed.
 */
bool lkg_stack_load(struct lkg_stack *stack, const struct lkg_place *place, struct lkg_layer *before,
                    struct lkg_layer **ret);
/** lkg_stack_bounds() - what links on the way to @full, in the form of watches, must not leave; NULL = nothing. */
const struct lkg_bounds *lkg_stack_bounds(const struct lkg_stack *stack, const char *full);
/**
 * lkg_stack_open_tree() - open a configured directory with O_PATH. @full: lkg_stack_form() of @path.
 * Return: descriptor; -errno.
 */
int lkg_stack_open_tree(const struct lkg_stack *stack, const char *path, const char *full);
/** lkg_stack_find() - position of the layer at @path in stack->sorted, SIZE_MAX if there is none. */
size_t lkg_stack_find(const struct lkg_stack *stack, const char *path);
/**
 * lkg_stack_form() - @path in the form of watches and layers: source_path + "/" + @path, or an absolute
 * @path. Heap.
 */
char *lkg_stack_form(const struct lkg_stack *stack, const char *path);

/** lkg_stack_tree_form() - the same of a directory, without slashes at its end. */
char *lkg_stack_tree_form(const struct lkg_stack *stack, const char *path);

/** lkg_merges_outdated() - the layers have changed: each merge is made again when somebody asks for it. */
void lkg_merges_outdated(struct lkg_stack *stack);
void lkg_merges_forget(struct lkg_stack *stack);

/**
 * lkg_stack_touch() - read only the layers at @paths again, and those whose identity is not reliable.
 * Return: 1: a layer has changed; 0: nothing has changed; -EAGAIN: a walk is needed; -errno.
 */
int lkg_stack_touch(struct lkg_stack *stack, const char *const *paths, size_t n_paths);
