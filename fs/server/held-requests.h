/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for the source directory. A dead disk, a lease or a network may delay an answer without
 * limit, so a request that has to wait is *held*: its slot stays taken, one of a bounded number of helpers
 * (or the worker that noticed) waits, and the workers continue to read. There is a limit for each user and
 * for each file system.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "file-server.h"

#define ALL_SLOTS     (LKG_SLOTS + LKG_MORE_SLOTS)
#define HELD_MAX      (ALL_SLOTS - LKG_SLOTS) /* the rest is for reading requests */
#define HELPERS_MAX   64u
#define ENGINE_DEVICE 0 /* in place of a file system: the request waits for the engine to render something */
/* requests to one file system that is mounted below the source directory */
#define HELD_OF_FS (HELD_MAX / 4)
#define RUN_OF_FS  (HELPERS_MAX / 4)       /* threads that wait for it */
#define PATIENT_NS LKG_NSEC_PER_SEC        /* an answer takes a while: who waits longer may give up */
#define WAIT_NS    (3 * LKG_NSEC_PER_MSEC) /* a thread that takes longer is waiting for something */

enum request_kind {
        REQUEST_VIEW,  /* answered from memory */
        REQUEST_QUICK, /* reaches the source directory, most likely its caches */
        REQUEST_LONG,  /* changes something, which may wait for a disk anyway */
};

/* request-kinds.c */
enum request_kind request_kind(const struct fuse_in_header *header);
bool request_is_long(const struct fuse_in_header *header); /* from the opcode alone */
uint64_t request_device(const struct fuse_in_header *header);
uint32_t request_owner(const struct fuse_in_header *header); /* quota.h */
/**
 * request_locks() - does the kernel hold a lock on a directory or file that others may need until the
 * request is answered? false for requests that only writers of the file can make.
 */
bool request_locks(const struct fuse_in_header *header);
/** request_locks_root() - does the kernel hold the lock of the view's root until the request is answered? */
bool request_locks_root(const struct fuse_in_header *header);

/* request-kinds.c */
/**
 * request_is_sound() - is everything there that its handling reads? If not, it is answered with EIO, and
 * nothing is done.
 */
bool request_is_sound(const struct fuse_in_header *header, size_t size);
bool request_has_reply(const struct fuse_in_header *header);

/* slots.c */
struct lkg_slot *slot_take(void); /* for reading a request into; NULL: none is free */
void slot_free(struct lkg_slot *slot);
void slot_finish(struct lkg_slot *slot);
void slot_trim(struct lkg_slot *slot); /* release the rest of the memory of a slot with a short request */
void slots_init(void);
void slots_cool(void);
size_t slot_number(const struct lkg_slot *slot);
struct lkg_slot *slot_at(size_t number);

struct held {
        struct lkg_slot *slot; /* NULL: not held */
        bool running, replay, interrupted;
        bool locks_root;       /* the kernel has locked the root of the view until it is answered */
        bool locks_others_out; /* and it waits only because its user's share is used up */
        uint32_t owner;
        uint64_t dev, order;
        pthread_t thread; /* running: the thread that waits */
};

/* held-requests.c; protects: everything held, closings, helpers. Never nested with another lock. */
extern pthread_mutex_t held_lock;
extern struct held held[ALL_SLOTS];
/**
 * held_add() - have a helper handle it.
 * Return: 0; -EBUSY: the share of the user or of the file system is used up, or the notifier would wait for a
 * file system that does not answer.
 */
int held_add(struct lkg_slot *slot, bool replay);
/** held_adopt() - mark a request that is being handled, and waits, as held. @notifiers: the notifier sent it. Lock held. */
void held_adopt(struct lkg_slot *slot, bool notifiers, pthread_t thread);
void held_end(struct lkg_slot *slot);
/** held_next() - a request that may run now, marked as running in this thread. Lock held. */
struct held *held_next(void);
bool held_any(void);
bool held_may_run(uint32_t owner, uint64_t dev); /* one thread more? Lock held. */
void held_count_run(uint32_t owner, int by);     /* Lock held. */
void held_replay_waits(uint64_t now_ns);         /* the loop's tick: others need not wait for the replay */

/* A file that the kernel has closed, but we have not yet. Everything with the lock held. */
struct closing {
        struct closing *next;
        uint64_t fh, dev;
        uint32_t owner;
};
void closing_add(struct closing *one); /* takes over @one */
/** closing_next() - one that may run now, counted as running; NULL: none. */
struct closing *closing_next(void);
void closing_end(struct closing *one); /* frees @one */

/* helpers.c */
/*
 * Number and state of the helpers. A helper that was signalled is no longer idle, although it has not run
 * yet: when two requests arrive at once, the second must not be left to the helper that got the first one,
 * and wait with it.
 */
struct crew {
        unsigned n, n_idle, n_signalled;
};
enum crew_wake {
        CREW_SIGNAL,  /* wake an idle helper */
        CREW_START,   /* start another one */
        CREW_NOTHING, /* all are busy: the first one that finishes looks for work */
};
enum crew_wake crew_wake(struct crew *crew, unsigned most);
void crew_woken(struct crew *crew); /* an idle helper continues, signalled or not */
void helpers_wake(void);            /* there is work; lock held */
bool helper_close_later(
        const struct fuse_in_header *header); /* a RELEASE, answered here; false: handle it now */

/* interrupt.c */
int interrupts_init(void);
void interrupt_request(const struct fuse_in_header *header);
void interrupt_watch(void); /* a request is held that must not wait for long */

/* threads.c */
int thread_init(const char *name);
void thread_end(void);
int thread_start(void *(*main)(void *), void *arg);

/* session.c */
void request_handle(struct lkg_slot *slot, size_t size);
void request_reply_code(uint64_t unique, int error); /* without a body */

/* workers.c */
void worker_watch(void);           /* hooks: have the loop check for waiting requests */
unsigned workers_start_more(void); /* as many as needed and slots are free for. Return: how many there are */

/* replay.c */
void replay_slot(struct lkg_slot *slot);
bool replay_needed(void); /* call it once: it also decides which request killed the last server */
int replay_start(unsigned (*when_freed)(void)); /* @when_freed: called when another slot is free */

/* slots.c: which thread answers a request */
bool task_claim(size_t slot_number); /* false: it has already been answered */
void task_reset_claim(size_t slot_number);
void task_mark_interrupted(size_t slot_number); /* perhaps before it is held */
bool task_was_interrupted(size_t slot_number);
