/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared memory that outlives a file server: one memfd, created by the supervisor, mapped by the supervisor, the
 * file server and the notifier.
 *
 * It holds all state that the kernel relies on: requests that were read and not answered (slots), replies
 * that wait for the engine (parked), node ids, open files, poll handles. A successor needs nothing else.
 * Rules: docs/specification.md 6.8.
 *
 * Writing rules. A record is filled first and its state word is stored last (release), so that a SIGKILL
 * leaves either the old record or the new one. Only the running file server writes slots, parked, openers,
 * nodes, files and pollers; the process-local locks that order its threads are named in fs/server. The
 * memory is zero when it is created, and an all-zero record is unused.
 *
 * Source of the journal: the kernel copies the request header in the same copy_to_user() as the body, so that
 * `header.len != 0` after a SIGKILL means "this request was handed out" (docs/decisions/003-journal.md).
 */
#pragma once

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fuse.h>

#include <lkg/messages.h>
#include <lkg/process.h>

#define LKG_SHARED_MAGIC UINT64_C(0x6c6b6766732d3107) /* changes with the layout */
#define LKG_MAX_WRITE    (128u * 1024)                /* largest WRITE we negotiate */
#define LKG_SLOT_BUF     (LKG_MAX_WRITE + 8192)       /* a request: header, arguments, data */
/* for threads that read, and requests that the source directory has not answered yet */
#define LKG_SLOTS       256
#define LKG_PARKED      256
#define LKG_NODES       262144 /* names that the kernel may know at once; pages are used as needed */
#define LKG_FILES       16384
#define LKG_POLLERS     1024
#define LKG_KEPT        200 /* unlinked but open files whose descriptors the supervisor holds */
#define LKG_RELAY_JOBS  256
#define LKG_VIEW_NAMES  128 /* view files and aliases of all components */
#define LKG_NODE_NAME   384 /* for a source node: its last name; for a virtual node: its path */
#define LKG_OPENERS     64  /* processes that opened their component's file */
#define LKG_LOOKED      256 /* threads whose last lookup of a view file is recorded */
#define LKG_REPLY_MAX   512 /* longest reply of an operation that changes something */
#define LKG_HANDLE_MAX  64
#define LKG_BLAMED      16
#define LKG_BLAME_LIMIT 3 /* a request that killed the server this often is answered with EIO */
#define LKG_INIT_MAX    256

enum lkg_slot_state {
        LKG_SLOT_FREE,
        LKG_SLOT_READING,
        LKG_SLOT_BUSY,
        LKG_SLOT_HELD, /* waits for the source directory, for any time: no sign of a hung server */
};

/*
 * The state before a mutation, so that a repetition can distinguish its own effect from that of another
 * process.
 */
struct lkg_intent {
        uint32_t valid;
        uint32_t existed;  /* the target name existed */
        uint64_t dev, ino; /* of the target, or of the object that is moved */
        uint64_t size;     /* O_APPEND: the size before */
};

struct lkg_slot {
        _Atomic uint32_t state;
        _Atomic uint32_t owner;      /* epoch of the server that reads into it */
        _Atomic uint64_t since_ns;   /* CLOCK_BOOTTIME when it became busy */
        _Atomic uint32_t reply_size; /* 0 = no reply recorded yet */
        struct lkg_intent intent;
        /* file handle that this OPEN or CREATE made: released when it is replayed */
        _Atomic uint64_t made_file;
        char reply[LKG_REPLY_MAX];
        char buf[LKG_SLOT_BUF] __attribute__((aligned(4096)));
};

enum lkg_parked_state {
        LKG_PARKED_FREE,
        LKG_PARKED_WAITING, /* the caller waits */
        LKG_PARKED_OWED,    /* answered at its deadline; the engine must still be told of the event */
};

/* The effect of the engine's answer on the waiting reply. */
enum lkg_answer {
        LKG_ANSWER_REPLY,  /* none: the reply is sent as it is */
        LKG_ANSWER_RESULT, /* a negative result replaces it */
        LKG_ANSWER_STALE,  /* -ESTALE replaces it, once per opener */
};

/* A reply that is complete but waits for the engine. */
struct lkg_parked {
        _Atomic uint32_t state;
        uint32_t reply_size;
        uint64_t unique;
        uint64_t deadline_ns; /* absolute CLOCK_BOOTTIME */
        uint32_t answer;      /* enum lkg_answer */
        uint32_t sent;        /* sent on engine connection number `sent` (0 = not yet) */
        char reply[LKG_REPLY_MAX];
        struct lkg_message message;
};

/* A process that opened its component's file and was reported to the engine. */
struct lkg_opener {
        _Atomic uint32_t used; /* stored last */
        uint32_t component;
        int32_t pid;
        uint64_t start_time;
        uint64_t generation;   /* the newest one recorded */
        uint64_t stale_ticket; /* the question that was answered with ESTALE; 0 = none */
        uint64_t last_ns;
};

enum lkg_node_kind {
        LKG_NODE_FREE,
        LKG_NODE_ROOT,
        LKG_NODE_SOURCE,  /* something in the source directory */
        LKG_NODE_VDIR,    /* directory of the publication */
        LKG_NODE_CONTENT, /* file of the publication: one path with one content that never changes */
        LKG_NODE_CONTROL,
        LKG_NODE_HIDDEN,   /* .lv: the notifier's entrance */
        LKG_NODE_BAD,      /* directory of the publication in which root creates and removes names */
        LKG_NODE_BAD_MADE, /* file created in such a directory, until its last close: no lookup finds it */
        _LKG_NODE_KIND_MAX
};

struct lkg_node {
        _Atomic uint32_t kind;    /* stored last */
        uint32_t incarnation;     /* upper half of the node id; never 0 in use */
        _Atomic uint64_t nlookup; /* at least the kernel's count */
        uint64_t retired_ns;      /* content: when it stopped being current; 0 = current */
        /* source */
        uint64_t dev, ino;
        uint64_t parent;                    /* node id */
        _Atomic uint32_t n_open, n_writers; /* with an lkg_file */
        _Atomic uint32_t dirty;             /* enum lkg_dirty */
        uint32_t kept;                      /* the supervisor holds a descriptor */
        uint32_t handle_size;
        int32_t handle_type;
        unsigned char handle[LKG_HANDLE_MAX];
        /* virtual; for a source node the type and the owner at its creation */
        uint32_t mode, uid, gid;
        uint32_t flags; /* enum lkg_entry_flags */
        uint32_t component;
        uint64_t st_ino, size, generation;
        int64_t mtime_ns;
        char sha256[LKG_SHA256_HEX];
        _Atomic uint32_t n_counted; /* content: opens without an lkg_file, root's */
        _Atomic uint32_t looker;    /* content: lkg_quota_owner() of who looked it up; 0 = nobody */
        /* both */
        uint32_t hash_next; /* index + 1 */
        char name[LKG_NODE_NAME];
};

enum lkg_dirty { LKG_DIRTY_WROTE = 1 << 0, LKG_DIRTY_TRUNCATED = 1 << 1 };

enum lkg_file_use {
        LKG_FILE_FREE,
        LKG_FILE_OPEN,
        LKG_FILE_CLOSING, /* closed for the kernel; not yet closed in the source directory */
};

/*
 * A file of the source that is open, or a file of the view that a user has open. Directories need none: a
 * successor continues from node and offset.
 */
struct lkg_file {
        _Atomic uint32_t used; /* enum lkg_file_use; stored last */
        uint32_t incarnation;
        uint32_t flags; /* of open(2), without O_CREAT, O_EXCL, O_TRUNC */
        uint32_t owner; /* lkg_quota_owner() of the opener */
        uint64_t node;  /* of the source; or content that a user has open */
};

struct lkg_poller {
        _Atomic uint64_t kh; /* 0 = free; stored last */
        uint64_t node;
        uint64_t fh; /* of the polled file: the poller is removed with its release; 0 = unknown */
        uint32_t owner;
};

/* A change behind the mount that the notifier has to make visible through it. */
enum lkg_relay_op { LKG_RELAY_NONE, LKG_RELAY_CREATED, LKG_RELAY_MODIFIED, LKG_RELAY_REMOVED };

struct lkg_relay_job {
        uint32_t op;
        uint32_t type;   /* S_IFMT bits of what was created or removed */
        uint64_t dir;    /* node id of the directory */
        char path[1024]; /* of the directory, relative to the view's root; "" = root */
        char name[256];
};

struct lkg_process {
        _Atomic int32_t pid; /* 0 = none */
        uint64_t start_time; /* field 22 of /proc/pid/stat: with the pid it identifies a process */
};

/* The children of lkgfsd. */
enum lkg_child_kind { LKG_CHILD_ENGINE, LKG_CHILD_SERVER, LKG_CHILD_NOTIFIER, _LKG_CHILD_KIND_MAX };

#define LKG_SHARED_PAGE 65536 /* the largest page size of machines that Kubernetes runs on */

/*
 * Work for the notifier, and the only part of the shared memory that it maps: separate pages. A process that
 * adds work raises `bell` and wakes its futex.
 */
struct lkg_notify {
        _Atomic uint32_t bell;
        _Atomic uint64_t wake_wanted;  /* publications to be announced; written by the server */
        _Atomic uint64_t wake_done;    /* written by the notifier when it has finished all of them */
        _Atomic uint32_t root_changed; /* server: the root's attributes must be fetched; notifier: done, 0 */
        _Atomic uint32_t lv_closing;   /* notifier: hide names below .lv, so that dentries are dropped */
        _Atomic uint32_t relay_head, relay_tail; /* server appends at head, notifier takes at tail */
        _Atomic uint32_t relay_active;        /* notifier: job tail % LKG_RELAY_JOBS is being carried out */
        _Atomic uint32_t relay_done;          /* server: the active job's create or remove was answered */
        char view_names[LKG_VIEW_NAMES][256]; /* the view files, for the notifier */
        _Atomic uint32_t n_view_names;
        _Atomic uint64_t steps; /* notifier: counts calls through the view; only its growth matters */
        struct lkg_relay_job relay[LKG_RELAY_JOBS];
};

#define LKG_ROOT_NAMES 64
#define LKG_NOTIFY_BYTES \
        ((sizeof(struct lkg_notify) + LKG_SHARED_PAGE - 1) / LKG_SHARED_PAGE * LKG_SHARED_PAGE)

/*
 * Does the engine answer? The supervisor and the file server both ask it and record the result; the file
 * server shows it (fs/server/health.c). A time of 0 means none.
 */
struct lkg_health {
        _Atomic uint64_t heard_ns, heard_wall_ns;   /* its last sign of life: CLOCK_BOOTTIME, wall time */
        _Atomic uint64_t silent_ns, silent_wall_ns; /* start of the silence; 0 = it answers */
        _Atomic uint32_t works; /* supervisor: it is making progress with its work, so it may be silent */
        _Atomic uint64_t looked_ns; /* supervisor: CLOCK_BOOTTIME of its last check */
};

/* They continue when a view is replaced: the engine knows tickets and inodes of the old one. */
struct lkg_counters {
        _Atomic uint32_t epoch;        /* grows with every server */
        _Atomic uint64_t tickets;      /* last ticket assigned */
        _Atomic uint64_t engine_links; /* connections made to an engine */
        _Atomic uint64_t inodes;       /* last virtual st_ino assigned */
};

/* FUSE_INIT, stored for every later server. */
struct lkg_init_record {
        uint32_t request_size, reply_size;
        unsigned char request[LKG_INIT_MAX], reply[LKG_INIT_MAX];
};

/* Replayed requests that may have ended a server; judged by its successor. */
struct lkg_blame {
        _Atomic uint64_t suspect; /* set around each replayed request */
        /* supervisor: the last server crashed by itself, and was not killed by SIGKILL */
        _Atomic uint32_t crashed;
        struct {
                _Atomic uint64_t unique;
                _Atomic uint32_t deaths;
        } items[LKG_BLAMED];
        _Atomic uint32_t n_items;
};

/* What is above has never been touched. */
struct lkg_high_water {
        _Atomic uint32_t nodes, files, slots, parked;
};

/* What the last good publication shows or hides in the root: EIO for a server without a publication. */
struct lkg_shown_root {
        char names[LKG_ROOT_NAMES][256];
        _Atomic uint32_t n_names;
};

struct lkg_shared {
        union {
                uint64_t magic;
                char page[LKG_SHARED_PAGE];
        };
        /* separate pages, which the notifier maps */
        union {
                struct lkg_notify notify;
                char notify_pages[LKG_NOTIFY_BYTES];
        };
        char mount_point[4096]; /* absolute */

        struct lkg_init_record init;

        struct lkg_process supervisor, server, engine, notifier;
        struct lkg_counters counters;
        _Atomic uint64_t served;      /* requests answered or parked: the heartbeat */
        _Atomic uint64_t publication; /* number being served */

        struct lkg_blame blame;

        _Atomic uint64_t looked[LKG_LOOKED]; /* thread and node: fs/server/opener.c */
        struct lkg_opener openers[LKG_OPENERS];

        struct lkg_high_water touched;

        struct lkg_poller pollers[LKG_POLLERS];
        struct lkg_file files[LKG_FILES];
        struct lkg_parked parked[LKG_PARKED];
        struct lkg_slot slots[LKG_SLOTS];
        struct lkg_node nodes[LKG_NODES];

        struct lkg_health health;
        _Atomic uint64_t mount_namespace; /* supervisor: inode of that of the mount; 0 = unknown */
        _Atomic uint32_t foreign_writes;  /* supervisor: enum lkg_foreign_writes (messages.h) */
        _Atomic uint32_t incarnation;     /* the last one of any node or file */
        struct lkg_shown_root root;
        struct lkg_ends ends[_LKG_CHILD_KIND_MAX]; /* supervisor */
};

/** lkg_shared_slots() - the maximum number of slots in use. */
static inline size_t lkg_shared_slots(const struct lkg_shared *s)
{
        uint32_t n = atomic_load(&s->touched.slots);

        return n < LKG_SLOTS ? n : LKG_SLOTS;
}

/** lkg_shared_parked() - the maximum number of parked replies. */
static inline size_t lkg_shared_parked(const struct lkg_shared *s)
{
        uint32_t n = atomic_load(&s->touched.parked);

        return n < LKG_PARKED ? n : LKG_PARKED;
}

#define LKG_INIT_MAPS_DIRECTLY \
        (1u << 4) /* FUSE_DIRECT_IO_ALLOW_MMAP (Linux 6.6), in the second half of the flags */

/**
 * lkg_init_answer() - what we answer to this FUSE_INIT, to which every file server of the connection must keep. libfuse decodes
 * and encodes by this version of the protocol.
 *
 * Where the kernel offers it, it keeps no content and files may be mapped shared nevertheless; and a write, truncation or chown
 * ends set-id bits and file capabilities here (otherwise it asks for security.capability before each write).
 * Source: <linux/fuse.h>.
 *
 * Return: the size of the answer in @ret; 0: it is no FUSE_INIT that we know.
 */
static inline uint32_t lkg_init_answer(const void *request, size_t size,
                                       unsigned char ret[static LKG_INIT_MAX])
{
        const uint32_t wanted = FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_DONT_MASK |
                                FUSE_AUTO_INVAL_DATA | FUSE_POSIX_ACL | FUSE_MAX_PAGES |
                                FUSE_HANDLE_KILLPRIV_V2;
        struct fuse_in_header header;
        struct fuse_init_in in = { 0 };
        struct {
                struct fuse_out_header header;
                struct fuse_init_out init;
        } out = { 0 };

        if (size < sizeof(header) + offsetof(struct fuse_init_in, flags2) || size > LKG_INIT_MAX)
                return 0;
        memcpy(&header, request, sizeof(header));
        size -= sizeof(header);
        memcpy(&in, (const char *)request + sizeof(header), size < sizeof(in) ? size : sizeof(in));
        if (in.major != FUSE_KERNEL_VERSION)
                return 0;
        out.header = (struct fuse_out_header){ .len = sizeof(out), .unique = header.unique };
        out.init = (struct fuse_init_out){
                .major = FUSE_KERNEL_VERSION,
                .minor = 31,
                .max_readahead = in.max_readahead < LKG_MAX_WRITE ? in.max_readahead : LKG_MAX_WRITE,
                .flags = FUSE_BIG_WRITES | (in.flags & wanted),
                .max_background = 32, /* raised later: fs/supervisor/connection.c */
                .congestion_threshold = 24,
                .max_write = LKG_MAX_WRITE,
                .time_gran = 1,
                .max_pages = in.flags & FUSE_MAX_PAGES ? LKG_MAX_WRITE / 4096 : 0,
        };
        if (in.flags & FUSE_INIT_EXT && in.flags2 & LKG_INIT_MAPS_DIRECTLY) {
                out.init.flags |= FUSE_INIT_EXT;
                out.init.flags2 = LKG_INIT_MAPS_DIRECTLY;
        }
        memcpy(ret, &out, sizeof(out));
        return sizeof(out);
}

/** lkg_init_maps_directly() - does this answer say so? */
static inline bool lkg_init_maps_directly(const unsigned char *answer)
{
        struct fuse_init_out out;

        memcpy(&out, answer + sizeof(struct fuse_out_header), sizeof(out));
        return out.flags2 & LKG_INIT_MAPS_DIRECTLY;
}

/** lkg_shared_map() - map the memfd; NULL (errno set) if it is not ours or has another layout: another build makes another view. */
static inline struct lkg_shared *lkg_shared_map(int fd)
{
        struct stat st;
        struct lkg_shared *s;

        if (fstat(fd, &st) < 0)
                return NULL;
        if ((size_t)st.st_size != sizeof(*s)) {
                errno = EPROTO;
                return NULL;
        }
        s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (s == MAP_FAILED)
                return NULL;
        if (s->magic != LKG_SHARED_MAGIC) {
                munmap(s, sizeof(*s));
                errno = EPROTO;
                return NULL;
        }
        return s;
}
