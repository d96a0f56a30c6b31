/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for the source directory. A dead disk, a lease or a network may delay an answer without limit, so a request
 * that is found to wait is *held*: its slot stays taken, one of a bounded number of helpers (or the worker that noticed) waits, and
 * the workers go on reading. There is a limit for each user and for each file system.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "file-server.h"

#define ALL_SLOTS   (LKG_SLOTS + LKG_MORE_SLOTS)
#define HELD_MAX    (ALL_SLOTS - LKG_SLOTS) /* the rest is for reading */
#define HELPERS_MAX 64u
#define HELD_OF_FS \
        (HELD_MAX / 4) /* requests to one file system that is mounted below the source directory */
#define RUN_OF_FS (HELPERS_MAX / 4)       /* threads that wait for it */
#define WAIT_NS   (3 * LKG_NSEC_PER_MSEC) /* longer than that it waits for something */

enum request_kind {
        REQUEST_VIEW,  /* answered out of memory */
        REQUEST_QUICK, /* the source directory, and most likely its caches */
        REQUEST_LONG,  /* changes something, which may wait for a disk anyway */
};

/* request-kinds.c */
enum request_kind request_kind(const struct fuse_in_header *header);
bool request_is_long(const struct fuse_in_header *header); /* by its number alone */
uint64_t request_device(const struct fuse_in_header *header);
uint32_t request_owner(const struct fuse_in_header *header); /* quota.h */
/**
 * request_locks() - does the kernel have a directory or a file locked until it is answered, which others may need? Not so of what
 * only who may write to the file can do.
 */
bool request_locks(const struct fuse_in_header *header);
/** request_locks_root() - does the kernel have the root of the view locked until it is answered? */
bool request_locks_root(const struct fuse_in_header *header);

/* shape.c */
/** request_is_sound() - is all there that its handling reads? Not so: it is answered EIO, and nothing is done. */
bool request_is_sound(const struct fuse_in_header *header, size_t size);
bool request_has_reply(const struct fuse_in_header *header);

/* slots.c */
struct lkg_slot *slot_take(void); /* to be read into; NULL: none is free */
void slot_free(struct lkg_slot *slot);
void slot_finish(struct lkg_slot *slot);
void slot_trim(struct lkg_slot *slot); /* the request in it is short: the rest of its memory */
void slots_init(void);
void slots_cool(void);
size_t slot_number(const struct lkg_slot *slot);
struct lkg_slot *slot_at(size_t number);

struct held {
        struct lkg_slot *slot; /* NULL: not held */
        bool running, replay, interrupted;
        bool locks_root;       /* the kernel has locked the root of the view until it is answered */
        bool locks_others_out; /* and only its user's share is what it waits for */
        uint32_t owner;
        uint64_t dev, order;
        pthread_t thread; /* running: the thread that waits */
};

/* held-requests.c; protects: all that is held, closings, helpers. Taken after nothing and before nothing. */
extern pthread_mutex_t held_lock;
extern struct held held[ALL_SLOTS];
/** held_add() - have it handled by a helper. Return: 0; -EBUSY: the caller has his share, or the file system. */
int held_add(struct lkg_slot *slot, bool replay);
/** held_adopt() - it is being handled, and waits. Lock held. */
void held_adopt(struct lkg_slot *slot, pthread_t thread);
void held_end(struct lkg_slot *slot);
/** held_next() - what may be run now, marked as running by this thread. Lock held. */
struct held *held_next(void);
bool held_any(void);
bool held_may_run(uint32_t owner, uint64_t dev); /* one thread more? Lock held. */
void held_count_run(uint32_t owner, int by);     /* Lock held. */
void held_replay_waits(uint64_t now_ns);         /* the loop's tick: the others need not wait for it */

/* A file that the kernel has closed, and we have not yet. All of it with the lock held. */
struct closing {
        struct closing *next;
        uint64_t fh, dev;
        uint32_t owner;
};
void closing_add(struct closing *one); /* taken over */
/** closing_next() - one that may run now, counted as running; NULL: none. */
struct closing *closing_next(void);
void closing_end(struct closing *one); /* freed */

/* helpers.c */
/*
 * Number and state of the helpers. A helper that was signalled is not idle any more, although it has not run yet: of two requests
 * that come at once, the second must not be left to the helper that has got the first one, and wait with it.
 */
struct crew {
        unsigned n, n_idle, n_signalled;
};
enum crew_wake {
        CREW_SIGNAL,  /* one that is idle */
        CREW_START,   /* another one */
        CREW_NOTHING, /* all are busy: the first that is ready looks for more */
};
enum crew_wake crew_wake(struct crew *crew, unsigned most);
void crew_woken(struct crew *crew); /* one that was idle goes on, signalled or not */
void helpers_wake(void);            /* there is something to run; lock held */
bool helper_close_later(
        const struct fuse_in_header *header); /* a RELEASE, answered here; false: do it now */

/* interrupt.c */
int interrupts_init(void);
void interrupt_request(const struct fuse_in_header *header);
void interrupt_watch(void); /* a request is held that must not wait for long */

/* threads.c */
int thread_init(const char *name);
void thread_end(void);
int thread_start(void *(*main)(void *), void *arg);

/* handle.c */
void request_handle(struct lkg_slot *slot, size_t size);
void request_reply_code(uint64_t unique, int error); /* without a body */

/* workers.c */
void worker_watch(void); /* hooks: have the loop look at what waits */
unsigned workers_start_more(
        void); /* as many as there shall be and slots are free for. Return: how many there are */

/* replay.c */
void replay_slot(struct lkg_slot *slot);
bool replay_needed(void); /* to be called once: it also decides which request killed the last server */
int replay_start(unsigned (*when_freed)(void)); /* @when_freed: called when there is a slot more */

/* answers.c: which thread answers a request */
bool task_claim(size_t slot_number); /* false: it has been answered */
void task_reset_claim(size_t slot_number);
void task_mark_interrupted(size_t slot_number); /* perhaps before it is held */
bool task_was_interrupted(size_t slot_number);
