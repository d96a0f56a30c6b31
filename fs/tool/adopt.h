/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adopting a node: which installer made it, what has to be written for lkgfs, and the way back.
 *
 * profiles.c has the installers as data, adopt-node.c recognises one, lists the files and compares what the component reads before
 * and after, adopt-files.c writes the files and undoes them by the record in /etc/lkgfs.
 *
 * All paths are absolute paths of the node; --root puts a directory before them. One thread.
 */
#pragma once

#include "tool.h"

#define LKG_ADOPT_DIRECTORY "/etc/lkgfs"
#define LKG_ADOPT_RECORD    LKG_ADOPT_DIRECTORY "/adopted.json"
#define LKG_ADOPT_CONFIG    "/etc/lkgfs/config.yaml"
#define LKG_ADOPT_DROPINS   LKG_ADOPT_DIRECTORY "/config.d"
#define LKG_ADOPT_PODS      LKG_ADOPT_DROPINS "/50-static-pods.conf" /* adds the component of static pods */
#define LKG_ADOPT_PODS_DIR  "static-pods"                            /* of the view */
#define LKG_ADOPT_DROPIN    "20-lkgfs.conf"
#define LKG_ADOPT_KUBELET   "/etc/systemd/system/kubelet.service.d/" LKG_ADOPT_DROPIN
#define LKG_ADOPT_LKGFS     "/etc/systemd/system/lkgfs.service.d/10-adopted.conf"
#define LKG_ADOPT_ARGUMENTS "/run/lkgfs-kubelet.env" /* what names the view on the kubelet's command line */
#define LKG_ADOPT_ASIDE     ".before-lkgfs"          /* what a replaced file is called meanwhile */
#define LKG_ADOPT_EDITED    ".after-lkgfs"           /* one of our files that somebody has edited since */

#define LKG_PROFILE_WORDS   6

/* ---- a unit, read from its files: unit-file.c ---- */

/*
 * A systemd unit read from its files, without systemd: for a tree that is not running, and to see what a unit would be without
 * one of its drop-ins. Only what starts the component is read: ExecStart=, Environment=, EnvironmentFile=.
 *
 * Everything is opened below one directory: an absolute symlink in an image stays in the image.
 */
struct lkg_unit_on_disk {
        char *exec_start;    /* as written, in one line */
        size_t n_exec_start; /* more than one: not a service that stays */
        /* its words with the variables filled in, without prefixes (`-`, `+`) of the program */
        struct lkg_strings words;
        struct lkg_strings files;   /* that were read: the unit, drop-ins, environment files */
        struct lkg_strings lacking; /* variables without a value */
};

/**
 * lkg_unit_file_read() - read unit @name with its drop-ins.
 * @rootfd:  the directory that counts as /
 * @without: name of a drop-in to leave out, or NULL
 *
 * Source of the rules: systemd.unit(5), UNIT FILE LOAD PATH; systemd.exec(5), ENVIRONMENT; systemd.service(5), COMMAND LINES.
 * Specifiers (`%i`) are not filled in.
 * Return: 0; -ENOENT: there is no such unit; -errno.
 */
int lkg_unit_file_read(int rootfd, const char *name, const char *without, struct lkg_unit_on_disk *ret,
                       struct lkg_error *err);

/** lkg_root_open() - open @path (absolute) with @rootfd as /. Return: a descriptor or -errno. */
int lkg_root_open(int rootfd, const char *path, int flags);
/** lkg_root_read() - read a whole file, at most 1 MiB. Return: 0 or -errno. */
int lkg_root_read(int rootfd, const char *path, char **ret, size_t *ret_size);
/** lkg_root_exists() - does a file or directory of this name exist? */
bool lkg_root_exists(int rootfd, const char *path);

/* profiles.c: one row per installer. The first row that fits is taken. */
struct lkg_profile {
        const char *name;                      /* "kubeadm" */
        const char *units[LKG_PROFILE_WORDS];  /* one of them exists */
        const char *files[LKG_PROFILE_WORDS];  /* one of them exists; none: not asked */
        const char *config[LKG_PROFILE_WORDS]; /* what --config of the unit names; none: anything */
        const char *mount_point;               /* of the view */
        const char *source;                    /* the directory behind it; NULL: that of the base */
        const char *cannot; /* why it cannot be adopted, and what to do instead; NULL: it can */
        const char *stays[LKG_PROFILE_WORDS]; /* remarks for people */
};
extern const struct lkg_profile lkg_profiles[];
extern const size_t lkg_n_profiles;

/* The node as it is without lkgfs. */
struct lkg_adopt_node {
        const struct lkg_tool *tool;
        int rootfd;
        const char *root; /* "" = the running node */
        const struct lkg_profile *profile;
        const char *unit_name;
        struct lkg_unit_on_disk unit;
        struct lkg_strings signs; /* what the profile was recognised by */
        const char *program;      /* of the component; below: borrowed from unit */
        const char *base, *config_dir;
        struct lkg_strings flags; /* without --config and --config-dir */
};
/** lkg_adopt_root() - open --root, or end the verb. */
void lkg_adopt_root(const struct lkg_tool *tool, struct lkg_adopt_node *ret);
/** lkg_adopt_look() - recognise the node. @ret: from lkg_adopt_root(). Return: LKG_TOOL_OK, or a status after a message. */
int lkg_adopt_look(struct lkg_adopt_node *ret);

/* One file or directory to be made, in this order. */
struct lkg_adopt_file {
        const char *path;
        const char *text;            /* NULL = a directory */
        bool kept;                   /* there was a file, which is kept aside */
        char sha256[LKG_SHA256_HEX]; /* "" = a directory */
        char *earlier; /* for --over: what an earlier adoption has written there; NULL = nothing */
};
struct lkg_adopt_plan {
        const char *mount_point, *source, *file, *base, *config_dir;
        const char *profile;
        struct lkg_adopt_file *files;
        size_t n_files;
};
/**
 * lkg_plan_make() - what to write. Nothing was changed yet: a node where that is not possible ends the verb.
 * @old: of the record; empty if there is none
 */
void lkg_plan_make(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *old,
                   struct lkg_adopt_plan *ret);
/** lkg_plan_config() - our configuration; @root: to judge by, before anything was made; NULL: to write. */
void lkg_plan_config(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan, const char *root,
                     struct lkg_buf *buf);
/** lkg_plan_put_layer() - a line of a component: @path, relative to the source directory if it is there; @root as above. */
void lkg_plan_put_layer(const struct lkg_adopt_plan *plan, const char *root, const char *key,
                        const char *path, struct lkg_buf *buf);
/** lkg_plan_add_text() - add a file at the end, after the directories that it lacks. Takes what @buf has. */
void lkg_plan_add_text(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan, const char *path,
                       struct lkg_buf *buf);
/** lkg_plan_insert() - add a file before the one at @i; a text gets its digest. */
void lkg_plan_insert(struct lkg_adopt_plan *plan, size_t i, const struct lkg_adopt_file *file);
/** lkg_plan_find() - the place of @path; n_files: it is not there. */
size_t lkg_plan_find(const struct lkg_adopt_plan *plan, const char *path);
/** lkg_plan_add_record() - the last that is added, and nearly the first that is made. @text: NULL = that of the plan */
void lkg_plan_add_record(struct lkg_adopt_plan *plan, const char *text);

/** lkg_adopt_before() - the effective document of the component without lkgfs. A status after a message. */
int lkg_adopt_before(const struct lkg_adopt_node *look, struct lkg_value **ret);
/** lkg_adopt_judge() - the layers of the one component of configuration @text, judged. A failure ends the verb. Return: one reference. */
struct lkg_candidate *lkg_adopt_judge(const struct lkg_adopt_node *look, const char *source,
                                      const char *text);
/** lkg_adopt_merge() - what lkgfs would serve by the configuration @text. What cannot be served ends the verb. */
struct lkg_value *lkg_adopt_merge(const struct lkg_adopt_node *look, const char *source, const char *text);
/** lkg_adopt_effective() - the effective document of a component that reads @served alone. As _merge(). */
struct lkg_value *lkg_adopt_effective(const struct lkg_adopt_node *look, const struct lkg_value *served);
/** lkg_adopt_diff() - what differs, secrets masked; "" = nothing. */
const char *lkg_adopt_diff(const char *a_name, const struct lkg_value *a, const char *b_name,
                           const struct lkg_value *b);

/* adopt-pods.c: static pods */

/** lkg_plan_add_pods() - add what makes lkgfs serve them. A node where that is not possible ends the verb. */
void lkg_plan_add_pods(const struct lkg_adopt_node *look, struct lkg_adopt_plan *plan);
/** lkg_plan_has_pods() - is it there? */
bool lkg_plan_has_pods(const struct lkg_adopt_plan *plan);
/** lkg_adopt_pods() - their files. If one of them would not be served, the verb ends. */
void lkg_adopt_pods(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan,
                    struct lkg_strings *ret);
/** lkg_adopt_names_view() - does this document of the kubelet name the view's directory? */
bool lkg_adopt_names_view(const struct lkg_adopt_plan *plan, const struct lkg_value *doc);
/**
 * lkg_adopt_bake_pods() - make the manifests in @dir what is served: others get a hidden name. Return: LKG_TOOL_OK; another status
 * after a message.
 */
int lkg_adopt_bake_pods(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan,
                        const char *dir);
#define LKG_ADOPT_BAKED ".before-abandon" /* what a replaced file is called then */
/** lkg_adopt_clean_pods() - remove the copies that lkgfs leaves behind the view. No kubelet reads them any more. */
void lkg_adopt_clean_pods(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan);

/* adopt-files.c */
/* Each returns LKG_TOOL_OK, or LKG_TOOL_FAILED after a message. */

/** lkg_adopt_record_find() - read it. Return: is the node adopted? A record that cannot be read ends the verb. */
bool lkg_adopt_record_find(const struct lkg_adopt_node *look, struct lkg_adopt_plan *ret);
/** lkg_adopt_make() - write one file, the old one is kept aside, or make one directory. */
int lkg_adopt_make(const struct lkg_adopt_node *look, const struct lkg_adopt_file *file);
/**
 * lkg_adopt_unmake() - the opposite: put back what was there. Does nothing if it was done before.
 * @ret_kept: what stays because it is not ours (an edited file, a directory with entries): a word for people, or NULL
 */
int lkg_adopt_unmake(const struct lkg_adopt_node *look, const struct lkg_adopt_file *file,
                     const char **ret_kept);
/**
 * lkg_adopt_replace() - replace the content of an existing file, with its owner and mode. The old one stays beside it.
 * @text: NULL = nothing takes its place
 * @ret_kept: the name of the old one: NAME.before-abandon, or .NAME.before-abandon if @hidden; with a number if an earlier run has left one
 */
int lkg_adopt_replace(const struct lkg_adopt_node *look, const char *path, const char *text, bool hidden,
                      const char **ret_kept);
/** lkg_adopt_clean() - remove the copies that lkgfs leaves behind the view. */
int lkg_adopt_clean(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan);

/* systemctl */
/** lkg_adopt_live() - is this the running node, under systemd? */
bool lkg_adopt_live(const struct lkg_adopt_node *look);
/** lkg_adopt_systemctl() - run one command ("enable --now lkgfs.service"), or print it if the node is not live. A status after a message. */
int lkg_adopt_systemctl(const struct lkg_adopt_node *look, const char *words);
#define LKG_ADOPT_RELOAD  "daemon-reload"
#define LKG_ADOPT_DISABLE "disable --now lkgfs.service"
#define LKG_ADOPT_REREAD  "reload lkgfs.service" /* what is wrong then is not used */
#define LKG_ADOPT_TRIES   100 /* of a tenth of a second, until lkgfs does what it was told */
#define LKG_ADOPT_RESTART "try-restart kubelet.service" /* only because of static pods */
