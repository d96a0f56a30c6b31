/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of one component: found on disk, parsed (with a cache), checked and folded into one candidate.
 *
 * Both the engine (repeatedly) and the tool (once) use a stack; it never writes and never logs.
 * Parsed layers are cached by file identity and content, running results by position. So the cost of a refresh is that of the
 * change: one stat per layer, and one merge per layer from the first changed one on. A file that was younger
 * than a clock tick when it was read is read (not parsed) again by the next refresh, because its identity
 * would not show a second write.
 *
 * Merge order, lowest first: base, kubeadm patches (they stand for what kubeadm would have written into the
 * base), drop-ins in walk order, instance.
 *
 * One thread. Sources are reached through a directory descriptor, so a view mounted on top is never seen.
 */
#pragma once

#include <lkg/admission.h>
#include <lkg/doc.h>
#include <lkg/decode.h>
#include <lkg/error.h>
#include <lkg/file.h>

struct lkg_schema; /* schema.h */

enum lkg_layer_role {
        LKG_LAYER_BASE,
        LKG_LAYER_REMOTE, /* in place of the base; filled by the dynamic configuration */
        LKG_LAYER_DROPIN,
        LKG_LAYER_PATCH, /* kubeadm patches directory */
        LKG_LAYER_INSTANCE,
        _LKG_LAYER_ROLE_MAX
};
const char *lkg_layer_role_name(
        enum lkg_layer_role role); /* "base", "remote", "drop-in", "patch", "instance" */

/* A document in memory that takes the base's place. */
struct lkg_stack_remote {
        const char *name,
                *file; /* as lkg_layer_info has them: "kubelet-config", "kube-system/kubelet-config:kubelet" */
        const char *text; /* NULL = none: the base file is the base */
        size_t size;
        const char *fault; /* there is no text, and this is why: the candidate is invalid; NULL = none */
        const char *const *hidden; /* top-level fields that are not part of the document; NULL at the end */
};

/*
 * Strings are borrowed and must outlive the stack. Paths are relative to source_fd or absolute; "" = not
 * used.
 */
struct lkg_stack_config {
        const char *component;   /* "kubelet": only for messages */
        int source_fd;           /* O_PATH descriptor of the source directory, or AT_FDCWD; borrowed */
        const char *source_path; /* its path, for messages and `file` of findings; "" = paths as given */
        bool links_beneath;      /* links below source_path must not lead out of it */
        const char *base;        /* "kubelet.conf" */
        const char *base_wanted; /* the same, when its absence is an error; "" = it may be missing */
        bool refuse_generated;   /* a document that lkgfs generated is not accepted as a base */
        struct lkg_stack_remote
                remote;         /* then base is not read; relative paths still start in its directory */
        bool base_is_view_name; /* base and view file have the same name: a kubeconfig there = name clash */
        const char *dropin_dir; /* "kubelet.conf.d" */
        bool dropin_dir_required;   /* configured explicitly: missing = error; else no drop-ins */
        const char *instance;       /* "kubelet-instance.conf" */
        bool instance_required;     /* configured explicitly */
        const char *patches_dir;    /* kubeadm patches; "" */
        const char *patches_target; /* "kubeletconfiguration": files named TARGET[suffix][+type].yaml|json */
        const char *kind, *api_version; /* "" = those of the base */
        bool headerless_instance;       /* accept an instance file without kind and apiVersion (kubeadm's) */
        uint64_t (*realtime_ns)(
                void); /* wall clock that file times are compared with; NULL = lkg_realtime_ns() */
};

/* One layer of a candidate, in merge order. */
struct lkg_layer_info {
        enum lkg_layer_role role;
        const char *name;            /* relative to its directory: "10-node.conf", "sub/a.conf" */
        const char *file;            /* as a user would open it */
        const char *beside;          /* relative paths of a base start in the directory of this file */
        const struct lkg_value *doc; /* as parsed; NULL when it could not be (the report says why) */
        const struct lkg_value
                *partial; /* of those up to it that could be merged; NULL = none of them, or @dropped */
        bool dropped;     /* partial is not kept: ask lkg_candidate_partial() */
        bool whole;       /* neither it nor an earlier layer failed */
        bool left_out;    /* it could not be merged; the report says why */
        bool idle;        /* it is empty, which is allowed: the merge is as before, so NULL is not a fault */
        unsigned cookie;  /* differs when doc or merged differ from those under the same position before:
                                           lets a renderer skip what it rendered already */
};

enum lkg_candidate_state {
        LKG_CANDIDATE_NONE, /* no layer at all: the view name is not claimed */
        LKG_CANDIDATE_VALID,
        LKG_CANDIDATE_INVALID,    /* report has at least one error */
        LKG_CANDIDATE_NAME_TAKEN, /* a kubeconfig stands under the view name */
};

/* Immutable, reference counted (same thread). */
struct lkg_candidate {
        unsigned refs;
        enum lkg_candidate_state state;
        struct lkg_value *doc; /* merged document; NULL unless VALID */
        char *without; /* the layers that `partial` of the last one lacks, for a sentence: "a.conf and 2 more"; or NULL */
        enum lkg_format format;   /* of the base: JSON base = JSON output */
        struct lkg_report report; /* all findings, in layer order */
        struct lkg_layer_info *layers;
        size_t n_layers;
        bool has_base;       /* `init` when local and true, else `default` */
        bool has_dropin_dir; /* there is a drop-in directory, even an empty one */

        /* Filled by the judge (core/schema), when the kind has a table. */
        struct lkg_value
                *effective; /* what the component will run with: defaults, merge, flags; may be NULL */
        const struct lkg_schema *schema;

        /* The result of the first @n layers, merged again: see lkg_candidate_partial(). */
        struct lkg_again {
                struct lkg_value *merged;
                size_t n;
        } again;
};

struct lkg_stack;

int lkg_stack_new(const struct lkg_stack_config *config, struct lkg_stack **ret, struct lkg_error *err);
struct lkg_stack *lkg_stack_free(struct lkg_stack *stack);

/**
 * lkg_stack_set_admission() - ask before any layer is parsed, and before all of them are merged and judged.
 *
 * A layer that is not admitted gets the error finding LKG2030 with the reason that was given. The question is asked again at
 * every refresh that looks at it.
 */
void lkg_stack_set_admission(struct lkg_stack *stack, const struct lkg_admission *admission);

/**
 * lkg_candidate_partial() - the merge of those layers up to @i that could be merged. @ret: one reference, or NULL = nothing.
 *
 * In ascending order of @i this costs one merge each where results were dropped, else nothing. Return: 0 or -ENOMEM.
 */
int lkg_candidate_partial(const struct lkg_candidate *candidate, size_t i, struct lkg_value **ret);
/** lkg_candidate_merged() - the same, but NULL when one of these layers failed. */
int lkg_candidate_merged(const struct lkg_candidate *candidate, size_t i, struct lkg_value **ret);

/**
 * lkg_judge_fn - look at a candidate that differs from the last one, before anybody else sees it.
 *
 * May replace @candidate->doc by the document to be served, fill in @effective and add findings; an error
 * among them makes the candidate invalid.
 *
 * Return: 0, also for an invalid candidate; -errno.
 */
typedef int lkg_judge_fn(struct lkg_candidate *candidate, void *userdata);
void lkg_stack_set_judge(struct lkg_stack *stack, lkg_judge_fn *fn, void *userdata);
/**
 * lkg_stack_want_base() - the base has been part of what was served, so it must exist from now on. @path: as
 * struct lkg_stack_config.base_wanted; borrowed. Rule: docs/specification.md 3.7.
 */
void lkg_stack_want_base(struct lkg_stack *stack, const char *path);
/** lkg_stack_rejudge() - the inputs of the judge have changed: the next refresh asks it again. */
void lkg_stack_rejudge(struct lkg_stack *stack);

/**
 * lkg_stack_refresh() - look at the sources again.
 * @ret: caller owns one reference; the very same candidate as last time (pointer-equal) when nothing has
 * changed.
 *
 * Return: 0, also for an invalid candidate; -errno for a fault (no memory, the source directory is gone).
 */
int lkg_stack_refresh(struct lkg_stack *stack, struct lkg_candidate **ret, struct lkg_error *err);

/**
 * lkg_stack_refresh_touched() - the same, given the paths that may have changed since the last refresh.
 * @paths: as lkg_unsettled_fn gets them; those that concern no layer are ignored
 *
 * Known layer files are read again without looking at the others, so the cost does not grow with their number;
 * anything else (a new name, a directory, a link) causes a full refresh. The caller must report every change: one
 * that is not reported is found only by the next lkg_stack_refresh().
 */
int lkg_stack_refresh_touched(struct lkg_stack *stack, const char *const *paths, size_t n_paths,
                              struct lkg_candidate **ret, struct lkg_error *err);
/** lkg_stack_knows() - is there a layer file that was found under exactly this path? */
bool lkg_stack_knows(const struct lkg_stack *stack, const char *path);
struct lkg_candidate *lkg_candidate_unref(struct lkg_candidate *candidate);
static inline void lkg_candidate_unrefp(struct lkg_candidate **candidate)
{
        *candidate = lkg_candidate_unref(*candidate);
}
struct lkg_candidate *lkg_candidate_ref(struct lkg_candidate *candidate);

/*
 * A directory whose entries decide what the next refresh finds: a member of the drop-in or patches tree, or
 * one on the way to a single file (the parent of the base and of the instance, the directories of every symlink on the way
 * and of its target; for something that does not exist yet, the nearest directory that does).
 *
 * path is source_path (or, if that is "", the path as configured) joined with the path below it,
 * without a final slash; the root directory is "/". So it is absolute whenever the configuration is.
 */
struct lkg_stack_watch {
        const char *path;   /* valid until the next refresh */
        const char **names; /* the entries that matter, unless recursive_member; 0 of them = every entry */
        size_t n_names;
        bool recursive_member; /* every entry matters, and so does every directory that appears below it */
        bool poll_only;        /* a network or user-space file system: inotify does not see all changes */
};

/**
 * lkg_stack_set_remote() - another document takes the base's place from the next refresh on; NULL = the base file again.
 * @remote's strings are borrowed until the next call or the end of the stack.
 */
void lkg_stack_set_remote(struct lkg_stack *stack, const struct lkg_stack_remote *remote);

/** lkg_stack_watches() - directories to watch as of the last refresh, sorted, each once. Return: number. */
size_t lkg_stack_watches(const struct lkg_stack *stack, const struct lkg_stack_watch **ret);

/* The same for one path that is not part of a stack. */
struct lkg_way {
        struct lkg_stack_watch *items;
        size_t n, n_allocated;
};

/** lkg_way_find() - directories and names on the way to @path, as lkg_stack_watches() has them. Return: 0 or -ENOMEM. */
int lkg_way_find(const char *path, struct lkg_way *ret);
void lkg_way_deinit(struct lkg_way *way);

/**
 * lkg_unsettled_fn - is somebody in the middle of writing this file?
 * @path: a directory as lkg_stack_watches() names it, "/", the entry's name (raw bytes)
 *
 * Asked after a changed file was read. If it is unsettled, what was read is dropped and the document that it held before
 * counts (a new file is treated as absent). So a half-written drop-in is
 * never published because of another layer's change. Rule: docs/specification.md 2.5.
 */
typedef bool lkg_unsettled_fn(const char *path, void *userdata);
void lkg_stack_set_unsettled(struct lkg_stack *stack, lkg_unsettled_fn *fn, void *userdata);

/* Counters of all refreshes so far; for tests and metrics. */
struct lkg_stack_stats {
        uint64_t n_refreshes, n_walks, n_reads, n_parses, n_merges;
};
const struct lkg_stack_stats *lkg_stack_stats(const struct lkg_stack *stack);

/**
 * lkg_is_kubeconfig() - judged by content: `kind: Config` or top-level clusters, users or contexts
 * (docs/specification.md 2.15). Never copies or quotes what it read.
 */
bool lkg_is_kubeconfig(const struct lkg_value *doc);
