/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The note that an engine leaves before it parses, merges or judges what others wrote, so that whoever finds the engine
 * dead knows what it died of: docs/decisions/012-poison.md.
 *
 * One small file of the private runtime directory, mapped by the supervisor and by the engine of the moment. It outlives
 * both; it ends with the runtime directory. To note something costs no system call. The supervisor adds how an engine
 * ended, and believes nothing else in it: only when work began, which it compares with the processor time that it sees
 * itself. The successor of a dead engine reads the rest once, at its start (core/engine/poison.c).
 *
 * Writing rules: an item is filled before `n_items` counts it, `since_ns` is stored first and cleared last, so a SIGKILL
 * between two instructions leaves a note that names too much, never too little.
 */
#pragma once

#include <stdatomic.h>

#include <lkg/admission.h>

#define LKG_JUDGING_NAME      "judging" /* in the runtime directory */
#define LKG_JUDGING_MAGIC     UINT64_C(0x6c6b672d6a756402)
#define LKG_JUDGING_KEY       16    /* bytes that tell one content in one place from another */
#define LKG_JUDGING_ITEMS     512   /* new contents of one piece of work; more are noted as "and others" */
#define LKG_JUDGING_KNOWN     16384 /* contents that were judged and harmed nobody, the last ones */
#define LKG_JUDGING_FILE_MAX  192
#define LKG_JUDGING_OWNER_MAX 64

struct lkg_judging_key {
        unsigned char bytes[LKG_JUDGING_KEY];
};

/* What is being worked on. */
struct lkg_judging_item {
        struct lkg_judging_key key;
        uint32_t what;                         /* enum lkg_admit_what */
        uint32_t judged;                       /* a layer: all of it was done, without harm */
        char component[LKG_JUDGING_OWNER_MAX]; /* whose */
        char sha256[LKG_SHA256_HEX];
        char file[LKG_JUDGING_FILE_MAX]; /* for people, cut when it is longer */
};

/* Why the engine that left the note ended. */
enum lkg_judging_end {
        LKG_END_UNKNOWN, /* nobody saw it */
        LKG_END_SIGNAL,  /* number in end_status; SIGKILL proves nothing by itself */
        LKG_END_EXIT,    /* code in end_status */
        LKG_END_TIME,    /* killed: it used too much processor time for one piece of work */
        LKG_END_MEMORY,  /* it gave up itself: its memory limit was reached */
};

struct lkg_judging {
        uint64_t magic;
        _Atomic uint64_t since_ns; /* CLOCK_BOOTTIME when the work began; 0 = none is being done */
        _Atomic uint32_t n_items;
        _Atomic uint32_t others; /* there were more than LKG_JUDGING_ITEMS */

        _Atomic uint32_t end; /* enum lkg_judging_end */
        _Atomic int32_t end_status;

        /* Engines in a row that were killed from outside in the middle of the same work. */
        _Atomic uint32_t n_killed;
        struct lkg_judging_key killed_with;

        _Atomic uint64_t n_known; /* ever; the ring below holds the last ones */
        uint64_t n_saved;         /* how many of them the state directory has, too */
        struct lkg_judging_item items[LKG_JUDGING_ITEMS];
        struct lkg_judging_key known[LKG_JUDGING_KNOWN];
};

/**
 * lkg_judging_open() - map the note of @runtime_fd, made when there is none or when it is of another layout.
 *
 * All of its space is taken at once: a full file system is an error here and not a SIGBUS later.
 *
 * Return: 0; -errno, and then there is no note: whoever asked goes on without.
 */
int lkg_judging_open(int runtime_fd, struct lkg_judging **ret, struct lkg_error *err);
struct lkg_judging *lkg_judging_close(struct lkg_judging *judging);

/** lkg_judging_key() - of content @sha256 in @file of @component. */
int lkg_judging_key(const char *component, const char *file, const char *sha256,
                    struct lkg_judging_key *ret);
bool lkg_judging_key_equal(const struct lkg_judging_key *a, const struct lkg_judging_key *b);

/**
 * lkg_judging_add() - this is going to be parsed, merged or judged. Begins the work when none was being done.
 * @file: "" of LKG_ADMIT_TOGETHER
 */
void lkg_judging_add(struct lkg_judging *judging, const struct lkg_judging_key *key,
                     enum lkg_admit_what what, const char *component, const char *file, const char *sha256);
/** lkg_judging_count() - how many items there are: never more than the note has room for, whatever it says. */
uint32_t lkg_judging_count(const struct lkg_judging *judging);
/** lkg_judging_judged() - a layer was merged and judged. It is known when the work is done. */
void lkg_judging_judged(struct lkg_judging *judging, const struct lkg_judging_key *key,
                        const char *component, const char *file, const char *sha256);
/** lkg_judging_learn_judged() - what was judged is known, although the work was not done: whoever did it was killed from outside. */
void lkg_judging_learn_judged(struct lkg_judging *judging);
/** lkg_judging_done() - the work is done, and nothing in the note did harm. What was judged is known from now on. */
void lkg_judging_done(struct lkg_judging *judging);
/** lkg_judging_knows() - was this judged before, as far back as is remembered, and harmed nobody? */
bool lkg_judging_knows(const struct lkg_judging *judging, const struct lkg_judging_key *key);
/** lkg_judging_learn() - it was, in an earlier life. */
void lkg_judging_learn(struct lkg_judging *judging, const struct lkg_judging_key *key);
/** lkg_judging_forget() - the note of the dead has been read: an empty one for the living. What is known stays known. */
void lkg_judging_forget(struct lkg_judging *judging);
