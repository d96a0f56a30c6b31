/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file server, lkgfs-fs: answers the kernel from three sources: the current publication, the source
 * directory and the engine's answers. Shared by the files of this folder only.
 *
 * Threads. LKG_WORKERS workers each run "read a request into a slot, handle it, reply"; helpers wait for the source directory
 * (requests.h), also with requests that a dead predecessor left; others watch for changes behind the mount (source-watch.c);
 * the main thread runs the event loop (engine socket, supervisor, deadlines) and never touches the source directory. No thread
 * holds a lock across a system call that can block.
 *
 * Locks, in the order in which they may be taken: parked_lock, openers_lock (opener.c), publication_lock, files_lock,
 * nodes_lock, watch_lock (source-watch.c), kept_lock, health_lock (health.c).
 * In practice none is taken while another is held, except workers_lock before lkg_held_lock, and lkg_held_lock before notifiers_lock
 * (caller.c); the order is for new code that nests them.
 *
 * All state that the kernel relies on is in the shared memory (lkg/shared.h); open descriptors and caches in
 * this process can be rebuilt from it.
 */
#pragma once

#define FUSE_USE_VERSION 314

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <fuse_lowlevel.h>
#include <systemd/sd-event.h>

#include <lkg/messages.h>
#include <lkg/base.h>
#include <lkg/publication.h>
#include <lkg/shared.h>

#define LKG_WORKERS  4
#define LKG_DOOR_DIR ".lv" /* where the notifier reaches inodes of older generations */
#define FOREVER_S    1e9   /* attributes of immutable content */
#define DIRECTORY_S  1.0   /* names and attributes of directories */

struct lkg_node;
/* Hooks: calls from lower to higher files, which the lower ones do not know (wiring.c). */
struct lkg_server_hooks {
        void (*nodes_crowded)(uint32_t owner);  /* @owner has used most of its share. nodes_lock held. */
        void (*directory_gone)(uint32_t index); /* lkg_node_get() no longer finds it. nodes_lock held. */
        bool (*kept_owner)(uint64_t node, uint32_t *ret_uid); /* its owner; false: no such node */
        void (*engine_linked)(int fd); /* a connection to the engine has arrived; takes over @fd */
        void (*turn_ended)(void);      /* the engine's messages have been handled */
        void (*watch)(void);           /* something held must not wait for long. lkg_held_lock held. */
        void (*slot_freed)(void);      /* by a helper: there may be too few workers */
};

struct lkg_server {
        struct lkg_shared *shm;
        const struct lkg_server_hooks *hooks;
        uint64_t source_dev; /* of the source directory itself */
        bool maps_directly; /* the kernel maps files shared whose content it does not keep; set by session.c */
        _Atomic bool source_is_local; /* it needs no other machine or process; set by source-watch.c */
        int device, shared_fd, source, runtime, blobs, pinned, listen, supervisor;
        uint32_t epoch; /* counts the servers since the mount: owner of our slots */
        struct fuse_session *session;
        sd_event *event;
        int gone; /* eventfd: a worker found the device gone (unmounted) */

        pthread_mutex_t publication_lock; /* protects: publication (the pointer), publication_refs */
        struct publication_ref *publication;

        pthread_mutex_t parked_lock; /* protects: shm->parked, engine_fd, engine_link, timer arming */
        int engine;                  /* connected socket, -EBADF while there is none */
        uint64_t engine_link;
        uint64_t armed_ns;
        /* a command that the engine has begun: the deadline for its result */
        uint64_t taken_until_ns[LKG_PARKED];
        int timer;
        struct lkg_claims *claims; /* commands that may still be carried out */

        pthread_mutex_t nodes_lock; /* protects: shm->nodes allocation, hash chains */
        pthread_mutex_t files_lock; /* protects: shm->files allocation */
        pthread_mutex_t kept_lock;  /* protects: kept descriptors and sends on `supervisor` */
};

/*
 * Flags of open(2) that apply only to the first open of a name, or that an open through /proc/self/fd cannot
 * use: the kernel has already resolved links, and a request is not aligned memory.
 */
#define LKG_OPEN_ONCE \
        (O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW | O_DIRECT | O_NOATIME | (O_TMPFILE & ~O_DIRECTORY))

extern const struct lkg_server_hooks lkg_server_hooks; /* wiring.c */
extern struct lkg_server server; /* kernel.c: one per process; filled by main() before any thread starts */

/* What one thread is doing; the reply hook looks at it. */
struct lkg_task {
        struct lkg_slot *slot;   /* request being handled; NULL in the main thread */
        struct lkg_node *node;   /* that it is about; NULL only for REQUEST_ANY_NODE (requests.h) */
        struct lkg_parked *park; /* the next reply goes there instead of to the kernel */
        bool replay;             /* the slot was left by a dead server */
        bool notifiers;          /* the notifier has sent it */
        bool may_block;          /* a helper: no other request waits for it */
        bool again; /* the source directory would block: no reply, a helper repeats the request */
        bool lost;  /* the caller was released before the reply: its effect must be undone */
        uint32_t reserved_node; /* lkg_quota_owner() for which a node of a new file is reserved; 0 = none */
        bool swallow;           /* do not send the next answer */
        char *buf;              /* LKG_MAX_WRITE bytes: replies are sent from here */
};
extern __thread struct lkg_task task;

static inline pthread_mutex_t *lkg_lock(pthread_mutex_t *lock)
{
        (void)pthread_mutex_lock(lock);
        return lock;
}

static inline void lkg_unlockp(pthread_mutex_t **lock)
{
        (void)pthread_mutex_unlock(*lock);
}

/* Takes @lock until the end of the block. */
#define LKG_LOCKED(lock) LKG_CLEANUP(lkg_unlockp) pthread_mutex_t *locked = lkg_lock(lock)

/* session.c: libfuse and the device */
int lkg_session_open(struct lkg_error *err);
/* kernel.c: messages to the kernel without libfuse */
void lkg_kernel_send_raw(const void *data, size_t size); /* a whole reply or notification */
/* forget cached attributes, never pages: cannot block */
void lkg_kernel_invalidate_attributes(uint64_t node);
/**
 * lkg_kernel_forget_name() - make the kernel look the name up again. Waits for the lock of the directory: never
 * call it before a reply.
 */
void lkg_kernel_forget_name(uint64_t parent, const char *name);
bool lkg_kernel_knows(uint64_t node); /* false: the kernel no longer has such an inode */
/** lkg_source_stat() - as the kernel has it cached, without asking the file system. Return: 0 or -errno. */
int lkg_source_stat(int dirfd, const char *name, int flags, struct stat *ret);
static inline const void *lkg_task_argument(void)
{
        return task.slot->buf + sizeof(struct fuse_in_header);
}

/* replay.c, workers.c: worker threads; replay after a dead server */
void lkg_replay_clean(void); /* before lkg_link_init() */
bool lkg_replay_start(void);
int lkg_workers_start(struct lkg_error *err);

/* slots.c: threads */
int lkg_thread_start(void *(*main)(void *), void *arg);
uint64_t lkg_monotonic_ns(void);
/** lkg_cond_wait() - Return: false: it is @until_ns (CLOCK_MONOTONIC). */
bool lkg_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

/* ops.c */
#define REPLIED 1 /* returned by what has replied; 0: success without a body; -errno */
extern const struct fuse_lowlevel_ops lkg_fuse_ops;

#define OLD_MAX   1024u /* old contents that users may have open, and as many again that they may refer to */
#define OLD_BYTES (256u << 20)

/* content.c, surplus.c: old content and its users */
void lkg_content_looked(const struct fuse_ctx *ctx, struct lkg_node *node);
/**
 * lkg_content_open() - a caller opens @node for reading. Nodes without content are ignored.
 * @trusted: counted only
 * @ret_fh: written when the open has a record
 * Return: 0; -ENFILE: the user's share of old content is used up; -ESTALE: it has just been forgotten.
 */
int lkg_content_open(const struct fuse_ctx *ctx, struct lkg_node *node, bool trusted, uint64_t *ret_fh);
void lkg_content_closed(uint64_t id); /* an open without a record was closed */
bool lkg_content_is_open(const struct lkg_node *node);
bool lkg_content_is_crowded(void); /* root knows so many that the kinds of root are told apart */
/**
 * lkg_content_surplus() - select which to forget of @nodes, a bit for each. nodes_lock held.
 * Return: how many; the caller frees @ret.
 */
size_t lkg_content_surplus(const uint64_t *nodes, uint32_t **ret);

/* published.c: the current publication */
struct publication_ref {
        struct lkg_publication *publication;
        unsigned refs;
};
struct publication_ref *lkg_publication_get(void); /* never NULL; release with lkg_publication_put() */
void lkg_publication_put(struct publication_ref *ref);
static inline void lkg_publication_putp(struct publication_ref **ref)
{
        if (*ref)
                lkg_publication_put(*ref);
}
const struct lkg_rule *lkg_publication_rule(const struct lkg_publication *publication,
                                            enum lkg_rule_type type, const char *text);
/** lkg_publication_rule_of() - the first one of a component: of LKG_RULE_FILE, its base. */
const struct lkg_rule *lkg_publication_rule_of(const struct lkg_publication *publication,
                                               enum lkg_rule_type type, unsigned component);
bool lkg_publication_commits(const struct lkg_publication *publication, const char *path);
bool lkg_publication_hides(const struct lkg_publication *publication, const char *path);
/**
 * lkg_publication_bad_directory() - the directory of bad/ that holds @node; NULL if there is none (any more).
 */
const struct lkg_entry *lkg_publication_bad_directory(const struct lkg_publication *publication,
                                                      const struct lkg_node *node);
/** lkg_publication_asked() - the `asked` directory that @path is, or is in; NULL = none. */
const struct lkg_entry *lkg_publication_asked(const struct lkg_publication *publication, const char *path);
/* in a directory of bad/ of the current publication */
bool lkg_publication_holds_bad(const struct lkg_node *node);
/**
 * lkg_publication_owns() - can the name not be created, removed or replaced, because it is published or
 * reserved?
 */
bool lkg_publication_owns(const struct lkg_node *dir, const char *name);

/*
 * The path in /proc/self/fd through which the file of a descriptor (even O_PATH) can be opened again or
 * changed.
 */
#define FD_PATH_MAX 64
static inline const char *lkg_fd_path(int fd, char buf[static FD_PATH_MAX])
{
        (void)snprintf(buf, FD_PATH_MAX, "/proc/self/fd/%d", fd);
        return buf;
}

/* published.c */
int lkg_publication_load(struct lkg_error *err); /* make runtime/current current; 0 also if it already is */

/* content.c */
struct lkg_name {
        uint64_t parent;
        char name[LKG_NODE_NAME];
};
/** lkg_reclaim() - make the kernel forget unused files of @owner; in a separate thread. */
void lkg_reclaim(uint32_t owner);

/* nodes.c: node ids */
static inline struct lkg_node *lkg_node_at(uint32_t index)
{
        return &server.shm->nodes[index];
}
struct lkg_node *lkg_node_get(uint64_t id); /* NULL: an unknown node id */
uint64_t lkg_node_id(const struct lkg_node *node);
static inline uint32_t lkg_node_index(const struct lkg_node *node)
{
        return (uint32_t)(node - server.shm->nodes);
}
static inline bool lkg_node_is_source(const struct lkg_node *node)
{
        uint32_t kind = atomic_load(&node->kind);

        return kind == LKG_NODE_SOURCE || kind == LKG_NODE_ROOT;
}
static inline bool lkg_node_is_content(const struct lkg_node *node)
{
        return atomic_load(&node->kind) == LKG_NODE_CONTENT;
}
ssize_t lkg_node_read_content(const struct lkg_node *node, char *buf, size_t size,
                              off_t off); /* or -errno */
#define ROOT_INDEX 1u
void lkg_nodes_init(void);
int lkg_node_source(uint64_t parent, const char *name, int *fd, const struct stat *st,
                    struct lkg_node **ret);
int lkg_node_virtual(enum lkg_node_kind kind, const char *path, const struct lkg_entry *entry,
                     const char *bytes, struct lkg_node **ret);
uint32_t lkg_nodes_next(uint32_t i);
size_t lkg_nodes_of_owner(uint32_t owner, uint32_t *cursor, struct lkg_name *names, size_t max);
struct quota;
/** lkg_nodes_ask() - one of the questions of quota.h about the nodes of @owner. */
bool lkg_nodes_ask(uint32_t owner, bool (*is)(const struct quota *quota, uint32_t owner));
int lkg_node_reserve(uid_t uid);
void lkg_node_unreserve(void);
/** lkg_node_keep() - a successor needs a descriptor: the node is open and may lose its last name. */
void lkg_node_keep(struct lkg_node *node);
void lkg_node_unkeep(struct lkg_node *node);
bool lkg_node_owner(uint64_t id, uint32_t *ret_uid); /* for hooks; false: no such node */
void lkg_node_forget(struct lkg_node *node, uint64_t n);
int lkg_node_fd(struct lkg_node *node); /* O_PATH descriptor, borrowed; -errno */
int lkg_node_path(const struct lkg_node *node, char *buf,
                  size_t size); /* relative to the root; 0 or -errno */
int lkg_node_child_path(const struct lkg_node *dir, const char *name, char *buf, size_t size);
void lkg_node_moved(struct lkg_node *node, uint64_t parent, const char *name);
struct lkg_node *lkg_node_find_source(uint64_t dev, uint64_t ino);
struct lkg_node *lkg_node_find_child(uint64_t parent,
                                     const char *name); /* one more lookup counted; or NULL */
struct lkg_node *lkg_node_placeholder(uint64_t parent, const char *name, bool is_dir);
size_t lkg_nodes_old_views(uint64_t *ids, size_t max); /* nodes of older generations that the kernel knows */
struct lkg_node *lkg_node_old_view(uint64_t id);       /* one of them, one more lookup counted; or NULL */
/* the newest text rendered for it, one more lookup counted; or NULL */
struct lkg_node *lkg_node_last(const char *path);
void lkg_nodes_retire(const struct lkg_publication *publication);
void lkg_nodes_prune(void);
void lkg_node_attributes(const struct lkg_node *node, struct stat *ret);

/* files.c: open files of the source directory, and files of the view that users have open */
int lkg_file_reserve(const struct fuse_ctx *ctx, uint32_t *ret_index);
int lkg_file_reserve_for(uint32_t owner, uint32_t *ret_index); /* of quota.h */
void lkg_file_give_back(uint32_t index);
uint64_t lkg_file_fill(uint32_t index, struct lkg_node *node, int flags, int fd);
uint64_t lkg_handle_new(void);
#define LKG_HANDLE_LOOSE (UINT64_C(1) << 31) /* beyond any index */
/** lkg_handle_is_file() - does @fh refer to a record of an open file? Directories and polled files have none. */
static inline bool lkg_handle_is_file(uint64_t fh)
{
        return fh != 0 && !(fh & LKG_HANDLE_LOOSE);
}
struct lkg_file *lkg_file_get(uint64_t fh);
int lkg_file_fd(uint64_t fh);                  /* borrowed; reopened after a restart; -errno */
uid_t lkg_file_opener(uint64_t fh);            /* 0 also if unknown */
void lkg_file_opened_by(uint64_t fh, int tid); /* of a writer */
/** lkg_file_is_inherited() - is @tid of another process than the one that opened the file and lives? False also if that is unknown. */
bool lkg_file_is_inherited(uint64_t fh, int tid);
uint32_t lkg_file_owner(uint64_t fh); /* see quota.h; 0 = unknown */
/* the kernel has its answer, but the file is still open here; false: no such file */
bool lkg_file_mark_closing(uint64_t fh);
void lkg_file_close(uint64_t fh);
void lkg_files_recount(void);
void lkg_file_announce_writer(struct lkg_node *node,
                              int by); /* one more writer is about to open it (or one less) */

/* inherit.c */
/** lkg_inherit() - free impossible records of a predecessor, before any other use of them; lkg_nodes_init() does it for nodes. */
void lkg_inherit(struct lkg_shared *shm);
/** lkg_inherit_node() - the same for one node that is not free. Return: whether it stays. */
bool lkg_inherit_node(struct lkg_node *node);

/* confine.c */
/**
 * lkg_server_confine() - drop capabilities and system calls, for this thread and those that it starts.
 * Return: 0 or -errno.
 */
int lkg_server_confine(struct lkg_error *err);

/* kept.c: descriptors that the supervisor keeps for our successor; fs.sock */
/** lkg_kept_listen() - listen on fs.sock; before lkg_server_confine(), after which no socket can be created. */
int lkg_kept_listen(struct lkg_error *err);
int lkg_kept_init(struct lkg_error *err);
/**
 * lkg_kept_link() - a connection to the engine.
 * Return: the socket; -EAGAIN: requested, it arrives at hooks->engine_linked().
 */
int lkg_kept_link(void);
/**
 * lkg_kept_keep() - have the supervisor keep @fd (which stays the caller's) for @node, a file of @uid.
 * Return: false: no room.
 */
bool lkg_kept_keep(uint64_t node, uint32_t uid, int fd);
void lkg_kept_let_go(uint64_t node);
int lkg_kept_fd(uint64_t node);
void lkg_kept_ready(void);
/** lkg_kept_forget_names() - ask the supervisor to make the kernel drop unused names. */
void lkg_kept_forget_names(void);

/* caller.c: acting as the caller */
struct caller {
        bool switched;
};
void lkg_caller_enter(const struct fuse_ctx *ctx, struct caller *ret);
void lkg_caller_leave(const struct caller *caller);
bool lkg_is_notifier(int tid);
bool lkg_caller_is_notifier(void);
/** lkg_caller_may_change() - may a caller in this mount namespace change files of the source? If not: EROFS. */
bool lkg_caller_may_change(const struct fuse_ctx *ctx);
/** lkg_caller_may_command() - control/ and bad/. Return: 0; -EACCES not root; -EPERM root of another mount namespace. */
int lkg_caller_may_command(const struct fuse_ctx *ctx);
/** lkg_caller_owner() - the owner for quota.h. Reads /proc for root. */
uint32_t lkg_caller_owner(const struct fuse_ctx *ctx);
/** lkg_caller_share() - the same, but reads /proc only if @quota is crowded. */
uint32_t lkg_caller_share(const struct fuse_ctx *ctx, const struct quota *quota);
/** lkg_caller_is_root() - in the initial user namespace, whatever its mount namespace. */
bool lkg_caller_is_root(const struct fuse_ctx *ctx);
/** lkg_caller_is_host_root() - root in the host's user and mount namespaces, whatever is configured. */
bool lkg_caller_is_host_root(const struct fuse_ctx *ctx);
void lkg_caller_describe(int tid, struct lkg_message *message); /* pid, exe, login uid, start time */
int lkg_caller_process(int tid);                                /* its process; 0 = gone, or unknown */
ssize_t lkg_caller_read_proc(int tid, const char *name, char *buf, size_t size); /* NUL-terminated; -errno */

/* matching.c */
/** lkg_unit_holds() - according to @cgroups, the text of /proc/<tid>/cgroup, is the thread in @unit? */
bool lkg_unit_holds(const char *cgroups, const char *unit);

/**
 * lkg_cgroup_matches() - is the thread in a control group whose path matches @pattern (fnmatch(3), `*` within
 * one name)?
 */
bool lkg_cgroup_matches(const char *cgroups, const char *pattern);

struct lkg_program_file {
        dev_t dev;
        ino_t ino; /* 0 = it does not exist, or is not known */
};
/** lkg_program_file() - the file at @path, which a rule names. Waits only briefly for its file system. */
struct lkg_program_file lkg_program_file(const char *path);
/**
 * lkg_program_file_expect() - look at @path once, without waiting: on a machine that has just booted the first look may
 * take longer than anybody waits, and the process that asks is not looked at again.
 */
void lkg_program_file_expect(const char *path);

/* opener.c: processes that open a component's file; @started: component, pid and start time of one */
void lkg_opener_looked(int tid, const struct lkg_node *node); /* this thread has looked up this view file */
/**
 * lkg_opener_came_by_name() - was @node the result of this thread's last lookup? Then it can look it up again.
 */
bool lkg_opener_came_by_name(int tid, const struct lkg_node *node);
bool lkg_opener_known(const struct lkg_message *started,
                      uint64_t *ret_generation);         /* the newest one recorded */
void lkg_opener_told(const struct lkg_message *started); /* the engine knows of @started->number, or will */
/** lkg_opener_refuse() - may question @started->ticket be answered with ESTALE? Once per process. */
bool lkg_opener_refuse(const struct lkg_message *started);

/**
 * lkg_source_open_path() - open() that does not wait for a lease, except in a helper.
 * Return: a descriptor; -errno; -EAGAIN with task.again: a helper has to do it.
 */
int lkg_source_open_path(const char *path, int flags);

/* start.c */
/**
 * lkg_start_park() - recognise a component that opens a view file.
 * Return: true: the reply is sent when the engine has answered.
 */
bool lkg_start_park(const struct fuse_ctx *ctx, const struct lkg_node *node);

/* health.c: does the engine answer? */
bool lkg_health_is_down(uint64_t now_ns); /* known to be silent for more than a second; does not ask */
void lkg_health_heard(void);              /* a message of the engine has arrived */
/**
 * lkg_health_find_out() - is the engine down? Waits at most a second. @send: asks it; the answer arrives at
 * lkg_health_heard().
 */
bool lkg_health_find_out(void (*send)(void));
void lkg_health_waited(uint64_t timeout_ns); /* a caller has waited this long in vain */

/* outage.c: status while it does not */
/**
 * lkg_outage_answer() - the engine has not rendered @entry: the last text that is still known, or one that says so.
 * Return: 0 or -errno.
 */
int lkg_outage_answer(const struct lkg_publication *publication, const struct lkg_entry *entry,
                      struct lkg_node **ret);
/**
 * lkg_outage_node() - the node of a status file that health.c completes or replaces.
 * Return: 0; -ENOENT: show @entry; -EAGAIN: the publication was replaced, look again; another -errno.
 */
int lkg_outage_node(const struct lkg_publication *publication, const struct lkg_entry *entry,
                    struct lkg_node **ret);

/* relay.c */
void lkg_announce_newer(void); /* hooks: that the current publication is another one than the last time */

/* engine-link.c */
void lkg_link_ask(void); /* ping; the answer arrives at lkg_health_heard() */
/**
 * lkg_link_render() - have the engine render @path, or with a slash at its end the names in it. Only a helper waits; else
 * task.again is set.
 * Return: 0; -ENOENT; -ETIMEDOUT: it does not answer; -EBADMSG; another -errno.
 */
int lkg_link_render(const char *path, struct lkg_rendered *ret);
void lkg_link_made(int fd); /* hooks */
/** lkg_link_loaded() - tell the engine which publication is served. */
void lkg_link_loaded(uint64_t number);
int lkg_link_init(struct lkg_error *err);
struct lkg_parked *lkg_link_park(enum lkg_message_type type);
void lkg_link_submit(struct lkg_parked *parked);
bool lkg_link_tell(const struct lkg_message *message); /* false: there is no engine */
void lkg_link_changed(const char *path, uid_t uid);
void lkg_link_text(struct lkg_message *message, const char *text, size_t size);
void lkg_link_named_text(struct lkg_message *message, const char *name, const char *text, size_t size);
bool lkg_link_is_parked(uint64_t unique);

/* source-names.c: names, attributes */
int lkg_source_lookup(struct lkg_node *dir, const char *name, struct fuse_entry_param *ret);
int lkg_source_adopt(struct lkg_node *dir, const char *name, int fd, struct fuse_entry_param *ret);
/**
 * lkg_source_unless_lost() - the caller was released and does not know @entry: forget it, too. After the reply.
 */
void lkg_source_unless_lost(const struct fuse_entry_param *entry);
int lkg_source_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry);
const char *lkg_source_real_name(const struct lkg_node *dir, const char *name, char *buf, size_t size);
/**
 * lkg_source_attributes() - of the inode now, even if it has no name.
 * Return: 0 or -errno; -ESTALE: it is gone.
 */
int lkg_source_attributes(struct lkg_node *node, struct stat *ret);
int lkg_source_getattr(fuse_req_t req, struct lkg_node *node);
int lkg_source_setattr(fuse_req_t req, struct lkg_node *node, struct stat *attr, int valid,
                       struct fuse_file_info *fi);
int lkg_source_readlink(fuse_req_t req, struct lkg_node *node);
/** lkg_source_park() - the reply waits for the engine's judgement if @path belongs to a layer. @said: the path that it is told */
void lkg_source_park(const char *path, const char *said);

/* source-change.c: creating, removing and renaming names */
int lkg_source_create(fuse_req_t req, struct lkg_node *dir, const char *name, mode_t mode,
                      struct fuse_file_info *fi);
int lkg_source_make(fuse_req_t req, struct lkg_node *dir, const char *name, mode_t mode, dev_t rdev,
                    const char *link);
int lkg_source_link(fuse_req_t req, struct lkg_node *node, struct lkg_node *dir, const char *name);
int lkg_source_unlink(struct lkg_node *dir, const char *name, int flags);
int lkg_source_rename(struct lkg_node *dir, const char *name, struct lkg_node *newdir, const char *newname,
                      unsigned flags);

/* source-io.c: open files */
int lkg_source_open_node(struct lkg_node *node, int flags); /* a separate descriptor, or -errno */
/** lkg_source_closed() - the last close of @fh: closes its file, and reports it if nothing else does. */
void lkg_source_closed(uint64_t fh);
int lkg_source_open_file(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi);
int lkg_source_read(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi);
int lkg_source_write(fuse_req_t req, struct lkg_node *node, const char *data, size_t size, off_t off,
                     struct fuse_file_info *fi);
int lkg_source_flush(struct lkg_node *node, int tid, struct fuse_file_info *fi);
int lkg_source_fsync(struct lkg_node *node, int datasync, struct fuse_file_info *fi);

int lkg_source_ioctl(fuse_req_t req, struct lkg_node *node, unsigned cmd, struct fuse_file_info *fi);

/* listing.c: directories */
int lkg_listing_read(fuse_req_t req, struct lkg_node *node, size_t size, off_t off, uint64_t fh);
void lkg_listing_close(uint64_t fh);

/* view-files.c: the files of the publication */
/**
 * lkg_view_is_gone() - is it a directory in the root of the view that is not published any more? Its answer is ESTALE: the kernel then
 * looks the name up again, and finds what the source directory has, such as fallback copies. Who has opened it before reads these names.
 */
bool lkg_view_is_gone(const struct lkg_node *dir);
int lkg_view_lookup(struct lkg_node *dir, const char *name, struct fuse_entry_param *ret);
void lkg_view_entry(struct lkg_node *node, struct fuse_entry_param *ret);
/**
 * lkg_view_takes_commands() - is a write to it a command? (In bad/ it is, although names there are read like any
 * content.)
 */
bool lkg_view_takes_commands(const struct lkg_node *node, bool writes);
int lkg_view_file_open(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi);
int lkg_view_file_read(fuse_req_t req, struct lkg_node *node, size_t size, off_t off);
int lkg_view_getattr(fuse_req_t req, const struct lkg_node *node);
int lkg_view_setattr(fuse_req_t req, struct lkg_node *node, int valid);
int lkg_view_file_write(fuse_req_t req, struct lkg_node *node, const char *data, size_t size);
void lkg_view_poll(fuse_req_t req, struct lkg_node *node);
void lkg_view_wake_pollers(void);
void lkg_view_recount_pollers(void);
void lkg_view_closed(uint64_t fh);
struct lkg_node *lkg_view_through(const struct lkg_node *node);
int lkg_view_file_command(fuse_req_t req, unsigned component, const char *command, struct lkg_message **ret);

/* bad-names.c: names that root creates and removes */
int lkg_bad_create(fuse_req_t req, struct lkg_node *dir, const char *name, struct fuse_file_info *fi);
int lkg_bad_make(fuse_req_t req, struct lkg_node *dir, const char *name);
int lkg_bad_write(fuse_req_t req, struct lkg_node *node, const char *data, size_t size);
int lkg_bad_unlink(fuse_req_t req, struct lkg_node *dir, const char *name);

/* xattr.c */
bool lkg_xattr_is_absent(const struct lkg_node *node,
                         const char *name); /* the ACL of the root, known without asking */
int lkg_xattr_get(fuse_req_t req, struct lkg_node *node, const char *name, size_t size);
int lkg_xattr_list(fuse_req_t req, struct lkg_node *node, size_t size);
int lkg_xattr_set(struct lkg_node *node, const char *name, const char *value, size_t size, int flags);
int lkg_xattr_remove(struct lkg_node *node, const char *name);

/* source-watch.c: inotify on the source directory; what happens there goes to lkg_relay_event() */
int lkg_watch_init(struct lkg_error *err);
void lkg_watch_directory(struct lkg_node *dir);
void lkg_watch_drop(uint32_t index);

/* own-changes.c: changes behind the mount, and our own */
void lkg_relay_event(uint64_t dir, uint32_t mask, const char *name); /* of inotify */
void lkg_relay_ring(void);                                           /* after events */
void lkg_notifier_ring(void);                                        /* there is work for it */
void lkg_relay_begin(uint64_t dir, const char *name);                /* we are about to change this name */
void lkg_relay_end(uint64_t dir, const char *name); /* we have changed it: the current file is ours */
/* relay.c: work for the notifier, and what it asks */
int lkg_relay_lookup(fuse_req_t req, struct lkg_node *dir, const char *name); /* 0: like anybody else's */
int lkg_relay_make(fuse_req_t req, struct lkg_node *dir, const char *name);
int lkg_relay_remove(const struct lkg_node *dir, const char *name);
int lkg_relay_open(fuse_req_t req, struct fuse_file_info *fi);
