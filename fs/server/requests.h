/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: what each may do (request-table.c), where they are kept (slots.c), who handles them (workers.c, held.c).
 *
 * A dead disk, a lease or a network may delay an answer without limit, so a request that has to wait for the source directory is
 * *held*: its slot stays taken, one of a bounded number of helpers (or the worker that noticed) waits, and the workers
 * continue to read. There is a limit for each user and for each file system.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "file-server.h"

#define READING_SLOTS 16u /* these are for reading requests, however many are held */
#define HELD_MAX      (LKG_SLOTS - READING_SLOTS)
#define HELPERS_MAX   64u
#define ENGINE_DEVICE 0 /* in place of a file system: the request waits for the engine to render something */
/* requests to one file system that is mounted below the source directory */
#define HELD_OF_FS (HELD_MAX / 4)
#define RUN_OF_FS  (HELPERS_MAX / 4)       /* threads that wait for it */
#define PATIENT_NS LKG_NSEC_PER_SEC        /* an answer takes a while: who waits longer may give up */
#define WAIT_NS    (3 * LKG_NSEC_PER_MSEC) /* a thread that takes longer is waiting for something */

/* ---- request-table.c ---- */

enum lkg_request_kind {
        REQUEST_VIEW,  /* answered from memory */
        REQUEST_QUICK, /* reaches the source directory, most likely its caches */
        REQUEST_LONG,  /* may wait for a disk: another worker reads first */
};

enum request_flags {
        /* its arguments begin with a file handle, which may refer to the source from any node */
        REQUEST_HANDLE = 1 << 0,
        REQUEST_LOCKS_DIR = 1 << 1,  /* the kernel has locked the directory */
        REQUEST_LOCKS_FILE = 1 << 2, /* or a file that may only be open for reading, until the answer */
        REQUEST_EINTR = 1 << 3,      /* its system call may return EINTR */
        REQUEST_SILENT = 1 << 4,     /* has no reply */
        REQUEST_NEVER = 1 << 5,      /* no kernel sends it to us */
        REQUEST_CHANGES = 1 << 6,    /* not for callers of another mount namespace: EROFS */
        REQUEST_OTHERS = 1 << 7,     /* not for the notifier: ESTALE */
        REQUEST_ANY_NODE = 1 << 8,   /* also if its node is unknown; any other: ESTALE */
};

enum lkg_request_kind lkg_request_kind(const struct fuse_in_header *header);
bool lkg_request_is_long(const struct fuse_in_header *header);            /* from the opcode alone */
bool lkg_request_is(const struct fuse_in_header *header, unsigned flags); /* has it any of these? */
/* what callers of another mount namespace may not */
bool lkg_request_changes(const struct fuse_in_header *header);
uint64_t lkg_request_device(const struct fuse_in_header *header);
uint32_t lkg_request_owner(const struct fuse_in_header *header); /* quota.h */
/** lkg_request_locks_root() - has the kernel locked the view's root until the request is answered? */
bool lkg_request_locks_root(const struct fuse_in_header *header);
/**
 * lkg_request_is_sound() - is everything there that its handling reads? If not, it is answered with EIO, and
 * nothing is done.
 */
bool lkg_request_is_sound(const struct fuse_in_header *header, size_t size);
bool lkg_request_has_reply(const struct fuse_in_header *header);

static inline const struct fuse_in_header *lkg_slot_header(const struct lkg_slot *slot)
{
        return (const void *)slot->buf;
}

/* ---- slots.c ---- */

extern _Atomic uint32_t lkg_n_held; /* requests that wait for the source directory */

static inline bool lkg_held_any(void)
{
        return atomic_load(&lkg_n_held) != 0;
}

struct lkg_slot *lkg_slot_take(void); /* for reading a request into; NULL: none is free */
void lkg_slot_free(struct lkg_slot *slot);
void lkg_slot_finish(struct lkg_slot *slot);
/* release the rest of the memory of a slot with a short request */
void lkg_slot_trim(struct lkg_slot *slot);
size_t lkg_slot_number(const struct lkg_slot *slot);
/** lkg_slot_claim() - the right to answer the request. false: somebody else has answered it. */
bool lkg_slot_claim(const struct lkg_slot *slot);
void lkg_slot_mark_interrupted(const struct lkg_slot *slot); /* perhaps before it is held */
bool lkg_slot_was_interrupted(const struct lkg_slot *slot);

int lkg_thread_init(const char *name);
void lkg_thread_end(void);

/* ---- session.c ---- */

void lkg_request_handle(struct lkg_slot *slot, size_t size);
void lkg_request_reply_code(uint64_t unique, int error); /* without a body */

/* ops.c */
/** lkg_ops_refuse() - Return: 0; -errno: its caller may not make such a request. */
int lkg_ops_refuse(const struct fuse_in_header *header);

/* ---- held.c ---- */

/* Something that waits for the source directory. */
struct held_job {
        struct held_job *next;
        /* a held request; NULL: a file that the kernel has closed, but we have not yet */
        struct lkg_slot *slot;
        uint64_t fh;
        uint32_t owner;
        uint64_t dev;
        bool running, of_worker; /* by the worker that noticed */
        bool replay, interrupted;
        bool locks_root;       /* the kernel has locked the root of the view until it is answered */
        bool locks_others_out; /* and it waits only because its user's share is used up */
        pthread_t thread;      /* running: the thread that waits */
};

extern pthread_mutex_t lkg_held_lock;  /* protects: jobs, helpers. */
extern struct held_job *lkg_held_jobs; /* in the order of their arrival */
/**
 * lkg_held_add() - have a helper handle it.
 * Return: 0; -EBUSY: the share of the user or of the file system is used up, or the notifier would wait for a
 * file system that does not answer.
 */
int lkg_held_add(struct lkg_slot *slot, bool replay);
/** lkg_held_adopt() - mark a request that a worker handles, and that waits, as held. Lock held. */
void lkg_held_adopt(struct lkg_slot *slot, bool notifiers, pthread_t thread);
void lkg_held_end(struct lkg_slot *slot);
bool lkg_held_may_run(const struct held_job *job); /* one thread more? Lock held. */
void lkg_held_run(struct held_job *job);           /* in this thread. Lock held. */
/** lkg_held_close() - a RELEASE, answered here and carried out by a helper; false: handle it now. */
bool lkg_held_close(const struct fuse_in_header *header);
/** lkg_held_tick() - others need not wait for a replay that waits. Return: whether one is still given time. */
bool lkg_held_tick(uint64_t now_ns);

/* ---- interrupt.c ---- */

void lkg_interrupts_init(void);
void lkg_interrupt_request(const struct fuse_in_header *header);
/** lkg_interrupts_look() - release callers that need not wait any longer. Return: when to look again; UINT64_MAX: never. */
uint64_t lkg_interrupts_look(uint64_t now_ns);

/* ---- workers.c ---- */

void lkg_worker_watch(void);       /* hooks: have the loop check for waiting requests */
void lkg_workers_start_more(void); /* hooks: as many as needed and slots are free for */

/* ---- replay.c ---- */

void lkg_replay_slot(struct lkg_slot *slot);
