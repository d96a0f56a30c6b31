/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine publishes and the file server serves; the fallback copies; the answer to FUSE_INIT. */
#pragma once

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include <lkg/base.h>
#include <lkg/limits.h>

/*
 * A publication: one state of the whole virtual tree. Written by the engine, served by the file server.
 *
 * In the private runtime directory (tmpfs, 0700):
 *
 *     blobs/<sha256>     immutable bytes, named by content, 0600
 *     current            the manifest; replaced by rename(2): the one atomic step
 *     pinned/<node id>   hard links made by the file server for content that an inode it handed out still needs
 *
 * The engine removes blobs that are named neither by the current publication nor by one that is not yet
 * acknowledged (LKG_MSG_LOADED); pinned/ belongs to the file server alone. So an old generation stays
 * readable as long as it is open anywhere, and neither process needs to know the other's state. Rules:
 * docs/specification.md 6.1.
 *
 * The manifest is text, so that a person can read it. Fields are separated by tabs; in a path, bytes below 0x21, 0x7f
 * and `%` are written as %XX. Lines:
 *
 *     lkgfs-publication 1
 *     number <n>                              of this publication, grows by at least 1
 *     timeout-ms <n>                          engineTimeout: how long a caller waits for the engine
 *     component <index> <name> <generation>   index from 0; generation 0 = nothing served
 *     match <index> unit|exe|cgroup <text>    how the component's process is recognised
 *     watch <index> tree|file <source path>   a change below it, or of it, is a layer change; index `-`: a link on the
 *                                             way to a layer, or where it leads
 *     hide <source path>                      a name of the source directory that the view does not show
 *     alias <view path> <source path>         pass-through under another name (kubelet.conf.base)
 *     clash <view path>                       a virtual directory shadows this entry of the source directory
 *     dir <view path> <mode> <uid> <gid> <mtime ns>
 *     bad <view path> <mode> <uid> <gid> <mtime ns> <index>
 *     file <view path> <mode> <uid> <gid> <mtime ns> <size> <sha256> <flags> <index> <generation>
 *     rendered <view path> <mode> <uid> <gid> <index>
 *     asked <view path> <mode> <uid> <gid> <mtime ns> <index>
 *     source <index> <id> <namespace/name>    of the ConfigMap in what the component serves; `init` or `default` and ""
 *     control <view path> <mode> <uid> <gid> <index> <command>
 *     end
 *
 * mode is octal permission bits. Entries are in byte order of their paths, each directory before its
 * entries; the root itself is not listed. flags are letters: `v` a component's view file or alias (EPERM on
 * change, xattrs, watchers are woken); `p` poll(2) reports POLLPRI when other content has replaced it; `w`
 * with `v`: writes go to the source (baseWrites: through); `-` none. `generation` is 0 if it does not apply.
 *
 * A `bad` entry is a directory in which root creates, writes and removes names: each request goes to the engine as a
 * command about that name, and the directory holds, as ordinary `rendered` entries, what the engine has published since.
 *
 * A `rendered` entry has no bytes: the engine renders them when the name is looked up (LKG_MSG_RENDER). Of an `asked`
 * directory the engine alone knows what is in it, also deeper; mode and owner are those of the files there, the
 * directories are root's, 0700. Decision: docs/decisions/032.
 */

#define LKG_PUBLICATION_MAGIC   "lkgfs-publication 1"
#define LKG_PUBLICATION_CURRENT "current"
#define LKG_PUBLICATION_BLOBS   "blobs"
#define LKG_PUBLICATION_PINNED  "pinned"

enum lkg_entry_type {
        LKG_ENTRY_DIR,
        LKG_ENTRY_FILE,
        LKG_ENTRY_CONTROL,
        LKG_ENTRY_BAD,      /* bad/<component>: a directory in which root may create and remove names */
        LKG_ENTRY_RENDERED, /* a file whose bytes the engine renders when it is looked up */
        LKG_ENTRY_ASKED,    /* a directory in which the engine is asked for each name */
};

enum lkg_entry_flags {
        LKG_ENTRY_VIEW = 1 << 0,
        LKG_ENTRY_POLL = 1 << 1,
        LKG_ENTRY_THROUGH = 1 << 2,
        /* never in a manifest: the file server has made this entry of an answer */
        LKG_ENTRY_ANSWERED = 1 << 3,
};

struct lkg_entry {
        const char *path; /* "status/kubelet/condition"; unescaped, no leading slash */
        enum lkg_entry_type type;
        uint32_t mode, uid, gid;
        int64_t mtime_ns;
        uint64_t size;
        char sha256[LKG_SHA256_HEX];
        unsigned flags;
        unsigned component; /* index; UINT_MAX = none */
        uint64_t generation;
        const char *command; /* for a control file: "rollback" */
};

struct lkg_publication_component {
        const char *name;
        uint64_t generation;
        /* what it serves: id and namespace/name of a ConfigMap, or `init` or `default` and ""; NULL = not said */
        const char *source, *object;
};

enum lkg_rule_type {
        LKG_RULE_TREE,
        LKG_RULE_FILE,
        LKG_RULE_UNIT,
        LKG_RULE_EXE,
        LKG_RULE_CGROUP,
        LKG_RULE_HIDE,
        LKG_RULE_ALIAS,
        LKG_RULE_CLASH,
};

struct lkg_rule {
        enum lkg_rule_type type;
        unsigned component; /* watch and match rules */
        const char *text;   /* path or match text */
        const char *target; /* alias: source path */
};

/* Parsed and immutable; contains all its strings. Freed as a whole. */
struct lkg_publication {
        uint64_t number;
        uint32_t timeout_ms;
        struct lkg_publication_component *components;
        size_t n_components;
        struct lkg_rule *rules;
        size_t n_rules;
        struct lkg_entry *entries; /* sorted by path */
        size_t n_entries;
        char *text; /* owns the strings */
};

/**
 * lkg_publication_parse() - read a manifest. Takes a copy of @data.
 * Return: 0; -EBADMSG (err names line and field); -EFBIG; -ENOMEM.
 */
int lkg_publication_parse(const char *data, size_t size, struct lkg_publication **ret,
                          struct lkg_error *err);
struct lkg_publication *lkg_publication_free(struct lkg_publication *publication);
/** lkg_entry_is_dir() - does @entry hold other entries? */
static inline bool lkg_entry_is_dir(const struct lkg_entry *entry)
{
        return entry->type == LKG_ENTRY_DIR || entry->type == LKG_ENTRY_BAD ||
               entry->type == LKG_ENTRY_ASKED;
}
/** lkg_publication_find() - the entry with exactly this @path, or NULL. Binary search. */
const struct lkg_entry *lkg_publication_find(const struct lkg_publication *publication, const char *path);

/** lkg_entry_name_in() - the name of @entry in @dir, a directory of the view; NULL: it is none of its files. */
const char *lkg_entry_name_in(const struct lkg_entry *entry, const char *dir);

/**
 * lkg_publication_read_blob() - read the bytes named @sha256. Another process wrote them, so they are
 * checked against the name.
 * @blobs: descriptor of LKG_PUBLICATION_BLOBS
 *
 * Return: 0, caller frees; -EBADMSG: not a digest, not a regular file, or other bytes; -EFBIG: longer than
 * @max; -errno.
 */
int lkg_publication_read_blob(int blobs, const char *sha256, size_t max, char **ret, size_t *ret_size);
/** lkg_publication_read() - the same for @entry, a file. @ret_size: may be NULL; the text ends with a NUL */
int lkg_publication_read(int blobs, const struct lkg_entry *entry, size_t max, char **ret, size_t *ret_size);

struct lkg_buf;

/* What the engine answers to LKG_MSG_RENDER: a directory, or a file whose bytes are a blob. */
struct lkg_rendered {
        bool is_dir;
        int64_t mtime_ns;
        uint64_t size;
        char sha256[LKG_SHA256_HEX];
};

/** lkg_rendered_format() - as text of a message: type (`d` or `f`), time, size and digest. */
void lkg_rendered_format(const struct lkg_rendered *rendered, char *buf, size_t size);
/** lkg_rendered_parse() - Return: 0; -EBADMSG. @text is changed. */
int lkg_rendered_parse(char *text, struct lkg_rendered *ret);

/* What the file server says in place of a text that the engine does not render; in a *.json as value of `error`. */
#define LKG_NOT_ANSWERING "engine not answering since "

/*
 * The names of an `asked` directory are rendered, too, for its path and a slash: for each a letter (`d` or `f`), the
 * name and NUL.
 */

/**
 * lkg_publication_format() - write the manifest text of @publication; entries must be sorted. Failure is
 * sticky in @buf.
 */
void lkg_publication_format(const struct lkg_publication *publication, struct lkg_buf *buf);

/* ---- fallback ---- */

/*
 * Fallback copies, which remain usable without lkgfs: the served document as a plain file in the source
 * directory.
 *
 *     .lkgfs-fallback/<view name>   always; mode and owner of the view file
 *     <view name>                   only where the source directory has no such file
 *
 * Of static pods, <view name> is a directory, which has the attribute, too, and in it is a copy of each file.
 *
 * Both carry the extended attribute user.lkgfs.fallback, whose value is the SHA-256 of the content. A file
 * whose content matches this digest is never a base. A copy under the view's name that a user has edited is
 * intended as a base: from then on it is one, and the next write of copies removes the attribute. Rules:
 * docs/specification.md 2.16.
 *
 * The engine only checks them, because its source directory is read-only. lkgfsd writes them
 * (fs/supervisor/errands.c) from the blobs of the publication, with the names, owners and modes of
 * its own settings.
 *
 * Without support for extended attributes, only the copy in .lkgfs-fallback is written.
 */

#define LKG_FALLBACK_DIR   ".lkgfs-fallback"
#define LKG_FALLBACK_XATTR "user.lkgfs.fallback"

/* The view file of a component. */
struct lkg_fallback_file {
        const char *name; /* borrowed; no slash */
        uid_t uid;
        gid_t gid;
        mode_t mode;
};

/**
 * lkg_fallback_is_ours() - is it marked, and unedited since? One system call if it does not exist or is not
 * marked.
 */
bool lkg_fallback_is_ours(int source_fd, const char *name);

/** lkg_fallback_is_copy() - the same for an open file; its offset does not change. */
bool lkg_fallback_is_copy(int fd);

/**
 * lkg_fallback_write() - bring the copies up to date; unchanged ones are not written.
 * @runtime_fd: the private runtime directory, whose blob @sha256 is the document
 *
 * A file of that name that is not ours is not changed. Not synced: the copies matter when lkgfs is gone, and
 * after a power failure our next start writes them again.
 * Return: 0; -EBADMSG: the blob is not that document; -errno.
 */
int lkg_fallback_write(int source_fd, int runtime_fd, const struct lkg_fallback_file *file,
                       const char *sha256);

/**
 * lkg_fallback_write_pods() - the same for static pods, by the files that the current publication shows in @dir. Copies of others are
 * removed: without lkgfs nothing runs that was taken away.
 */
int lkg_fallback_write_pods(int source_fd, int runtime_fd, const struct lkg_fallback_file *dir);
/** lkg_fallback_is_ours_dir() - is it the directory of such copies? */
bool lkg_fallback_is_ours_dir(int source_fd, const char *name);

/**
 * lkg_fallback_withdraw() - the view name is no longer claimed: remove the copy with that name. 0 or -errno.
 */
int lkg_fallback_withdraw(int source_fd, const char *name);
