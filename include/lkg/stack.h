/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of one component: found on disk, parsed (with a cache), checked and folded into one candidate.
 *
 * A stack is what both the engine (again and again) and the tool (once) use; it never writes, never logs and never
 * looks at a clock. Parsed layers are cached by file identity and content, running results by position, so a refresh
 * costs the change: one stat per layer and one merge per layer from the first changed one on.
 *
 * One thread. Sources are reached through a directory descriptor, so a view mounted on top is never seen.
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/decode.h>
#include <lkg/error.h>
#include <lkg/file.h>

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

/* Strings are borrowed and must outlive the stack. Paths are relative to source_fd or absolute; "" = not used. */
struct lkg_stack_config {
        const char *component;   /* "kubelet": only for messages */
        int source_fd;           /* O_PATH descriptor of the source directory, or AT_FDCWD; borrowed */
        const char *source_path; /* its path, for messages and `file` of findings; "" = paths as given */
        const char *base;        /* "kubelet.conf" */
        bool base_is_view_name;  /* base and view file have the same name: a kubeconfig there = name clash */
        const char *dropin_dir;  /* "kubelet.conf.d" */
        bool dropin_dir_required; /* configured explicitly: missing = error; default: missing = no drop-ins */
        const char *instance;     /* "kubelet-instance.conf" */
        bool instance_required;   /* configured explicitly */
        const char *patches_dir;  /* kubeadm patches; "" */
        const char *patches_target; /* "kubeletconfiguration": files named TARGET[suffix][+type].yaml|json */
        const char *kind, *api_version; /* "" = those of the base */
        bool headerless_instance;       /* accept an instance file without kind and apiVersion (kubeadm's) */
};

/* One layer of a candidate, in merge order. */
struct lkg_layer_info {
        enum lkg_layer_role role;
        const char *name;               /* relative to its directory: "10-node.conf", "sub/a.conf" */
        const char *file;               /* as a user would open it */
        const struct lkg_value *doc;    /* as parsed */
        const struct lkg_value *merged; /* running result after it; NULL when an earlier layer failed */
        unsigned cookie; /* differs when doc or merged differ from those under the same position before:
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
        struct lkg_value *doc;    /* merged document; NULL unless VALID */
        enum lkg_format format;   /* of the base: JSON base = JSON output */
        struct lkg_report report; /* all findings, in layer order */
        struct lkg_layer_info *layers;
        size_t n_layers;
        bool has_base; /* `init` when local and true, else `default` */
};

struct lkg_stack;

int lkg_stack_new(const struct lkg_stack_config *config, struct lkg_stack **ret, struct lkg_error *err);
struct lkg_stack *lkg_stack_free(struct lkg_stack *stack);

/**
 * lkg_stack_refresh() - look at the sources again.
 * @ret: caller owns one reference; the very same candidate as last time (pointer-equal) when nothing has changed.
 *
 * Return: 0, also for an invalid candidate; -errno for a fault (no memory, the source directory is gone).
 */
int lkg_stack_refresh(struct lkg_stack *stack, struct lkg_candidate **ret, struct lkg_error *err);
struct lkg_candidate *lkg_candidate_unref(struct lkg_candidate *candidate);
struct lkg_candidate *lkg_candidate_ref(struct lkg_candidate *candidate);

/**
 * lkg_is_kubeconfig() - judged by content: `kind: Config` or top-level clusters, users or contexts (spec section 2,
 * name clash). Never copies or quotes what it read.
 */
bool lkg_is_kubeconfig(const struct lkg_value *doc);
