/* SPDX-License-Identifier: Apache-2.0 */
/* Contents that may not be opened, because an engine died of them; what an engine is judging. */
#pragma once

#include <stdatomic.h>

#include <lkg/base.h>

/*
 * A check that libraries make before they parse, merge or judge content from users:
 * docs/decisions/012-poison.md. Only the engine implements it (core/engine/admission.c); all other callers pass
 * NULL, and everything is admitted.
 */

enum lkg_admit_what {
        LKG_ADMIT_LAYER,    /* the content of one layer */
        LKG_ADMIT_TOGETHER, /* all layers of a component, to be merged and judged */
        LKG_ADMIT_OBJECT,   /* the origin of a layer: an API object as received, or as stored */
        LKG_ADMIT_READ, /* the file of a layer, about to be opened and read; what is in it is not known yet */
        _LKG_ADMIT_MAX
};

/* What is asked about. The texts are the caller's. */
struct lkg_content {
        enum lkg_admit_what what;
        const char *file;   /* as findings name it; "" of LKG_ADMIT_TOGETHER */
        const char *sha256; /* hexadecimal; of LKG_ADMIT_READ: of what stat(2) says of the file */
        size_t size;        /* bytes; of LKG_ADMIT_TOGETHER: of all layers */
};

struct lkg_admission {
        /**
         * admit() - may this content be used? Called after it was read, right before it is used.
         * @ret_why: the message if it may not; heap
         *
         * Return: 0; -EKEYREJECTED: it may not.
         */
        int (*admit)(const struct lkg_content *content, char **ret_why, void *userdata);
        /** finished() - what was admitted last is not worked on any more, and nothing else is yet. May be NULL. */
        void (*finished)(void *userdata);
        /** judged() - a layer's content was merged and judged with the others, and did no harm. May be NULL. */
        void (*judged)(const char *file, const char *sha256, void *userdata);
        void *userdata;
};

/** lkg_admit() - call admit(). Return: 0, also if @admission is NULL; -EKEYREJECTED. Without memory see lkg_no_memory(). */
int lkg_admit(const struct lkg_admission *admission, const struct lkg_content *content, char **ret_why);
/** lkg_admit_finished() - call finished(). */
void lkg_admit_finished(const struct lkg_admission *admission);
/** lkg_admit_text() - the same for content whose digest has not been computed. */
int lkg_admit_text(const struct lkg_admission *admission, enum lkg_admit_what what, const char *file,
                   const void *text, size_t size, char **ret_why);

/* ---- judging ---- */

/*
 * The note that an engine writes before it parses, merges or judges content from users, so that the next
 * engine knows what killed it: docs/decisions/012-poison.md, docs/specification.md 6.4.
 *
 * One small file in the private runtime directory, mapped by the supervisor and the current engine. It
 * outlives both and is removed with the runtime directory. Writing an item costs no system call. The
 * supervisor adds how an engine ended. Of the rest, it uses only when work began and how large the
 * content is, which it compares with the CPU time that it measures itself. After an engine has died, the
 * next one reads the note once, at its start (core/state/poison.c).
 *
 * Order of writes: an item is filled before `n_items` counts it; `since_ns` is stored first and cleared
 * last. So after a SIGKILL between two instructions the note names too much, never too little.
 */

#define LKG_JUDGING_NAME      "judging" /* in the runtime directory */
#define LKG_JUDGING_MAGIC     UINT64_C(0x6c6b672d6a756404)
#define LKG_JUDGING_KEY       16    /* bytes that identify content in a place */
#define LKG_JUDGING_ITEMS     512   /* new contents in one piece of work; then "and others" */
#define LKG_JUDGING_KNOWN     16384 /* the latest contents that were judged without harm */
#define LKG_JUDGING_FILE_MAX  192
#define LKG_JUDGING_OWNER_MAX 64

struct lkg_judging_key {
        unsigned char bytes[LKG_JUDGING_KEY];
};

/* What is being worked on: the last of the items, unless that is finished. */
struct lkg_judging_item {
        struct lkg_judging_key key;
        uint32_t what;   /* enum lkg_admit_what */
        uint32_t judged; /* a layer: it was merged and judged without harm */
        char component[LKG_JUDGING_OWNER_MAX];
        char sha256[LKG_SHA256_HEX];
        char file[LKG_JUDGING_FILE_MAX]; /* for messages, truncated if it is longer */
};

/* Why the engine that left the note ended. */
enum lkg_judging_end {
        LKG_END_UNKNOWN, /* not observed */
        LKG_END_SIGNAL,  /* number in end_status; SIGKILL by itself proves nothing */
        LKG_END_EXIT,    /* code in end_status */
        LKG_END_TIME,    /* killed: it used too much CPU time for one piece of work */
        LKG_END_MEMORY,  /* it exited because its memory limit was reached */
};

struct lkg_judging {
        uint64_t magic;
        _Atomic uint64_t since_ns; /* CLOCK_BOOTTIME when the work began; 0 = no work */
        _Atomic uint32_t n_items;
        _Atomic uint32_t others; /* there were more than LKG_JUDGING_ITEMS */

        _Atomic uint32_t end; /* enum lkg_judging_end */
        _Atomic int32_t end_status;

        /* Engines in a row that were killed from outside during the same work. */
        _Atomic uint32_t n_killed;
        struct lkg_judging_key killed_with;

        _Atomic uint64_t n_known; /* in total; the ring below holds the latest */
        uint64_t n_saved;         /* how many of them are also in the state directory */
        struct lkg_judging_item items[LKG_JUDGING_ITEMS];
        struct lkg_judging_key known[LKG_JUDGING_KNOWN];

        /* Of all content added since the work began: read, merged, judged together; each counts again. */
        _Atomic uint64_t bytes;
        /* 1: the last item is not worked on any more: the next one is looked for */
        _Atomic uint64_t between;
};

/**
 * lkg_judging_open() - map the note in @runtime_fd; create it if there is none or it has another layout.
 *
 * All of its space is allocated at once: a full file system is an error here and not a SIGBUS later.
 *
 * Return: 0; -errno: there is no note, and the caller continues without it.
 */
int lkg_judging_open(int runtime_fd, struct lkg_judging **ret, struct lkg_error *err);
struct lkg_judging *lkg_judging_close(struct lkg_judging *judging);

/** lkg_judging_key() - the key of content @sha256 in @file of @component. */
void lkg_judging_key(const char *component, const char *file, const char *sha256,
                     struct lkg_judging_key *ret);
bool lkg_judging_key_equal(const struct lkg_judging_key *a, const struct lkg_judging_key *b);

/**
 * lkg_judging_add() - this content of @component is about to be parsed, merged or judged. Begins the work if
 * there was none.
 */
void lkg_judging_add(struct lkg_judging *judging, const struct lkg_judging_key *key, const char *component,
                     const struct lkg_content *content);
/** lkg_judging_finished() - the item added last is not worked on any more. One of LKG_ADMIT_READ is forgotten. */
void lkg_judging_finished(struct lkg_judging *judging);
/** lkg_judging_count() - the number of items, limited to the size of the note, whatever it contains. */
uint32_t lkg_judging_count(const struct lkg_judging *judging);
/** lkg_judging_judged() - a layer was merged and judged. It becomes known once the work is done. */
void lkg_judging_judged(struct lkg_judging *judging, const struct lkg_judging_key *key,
                        const char *component, const char *file, const char *sha256);
/**
 * lkg_judging_done() - the work is done, and nothing in the note did harm. Judged layers are known from now
 * on.
 */
void lkg_judging_done(struct lkg_judging *judging);
/** lkg_judging_knows() - was this judged before without harm, as far as we remember? */
bool lkg_judging_knows(const struct lkg_judging *judging, const struct lkg_judging_key *key);
/** lkg_judging_learn() - mark it as known, from an earlier run. */
void lkg_judging_learn(struct lkg_judging *judging, const struct lkg_judging_key *key);
/** lkg_judging_forget() - the note of the dead engine has been read: empty it. Known contents stay known. */
void lkg_judging_forget(struct lkg_judging *judging);
