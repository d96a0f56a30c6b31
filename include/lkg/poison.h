/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content that crashed an engine, and is not read again: docs/decisions/012-poison.md.
 *
 * There are two records. The note (lkg/judging.h) in the runtime directory names the content that is being
 * processed, and content that did no harm. The list of refused content is in the state directory (`refused`,
 * JSON), so that a reboot does not start with the same crash; so are the keys of what did no harm (`judged`,
 * one per line), so that also after a reboot only new content is refused.
 *
 * Owned by the engine; one thread. Without a note (full runtime directory) everything is admitted, as in
 * earlier versions.
 */
#pragma once

#include <limits.h>

#include <lkg/judging.h>
#include <lkg/source.h>

#define LKG_REFUSED_NAME "refused" /* in the state directory */
#define LKG_JUDGED_NAME  "judged"  /* in the state directory */
#define LKG_REFUSED_MAX  1024u     /* contents that are stored; the oldest is dropped first */
#define LKG_KILLS_PROOF  3u        /* engines killed from outside during the same work that count as proof */

struct lkg_refused {
        struct lkg_judging_key key;
        enum lkg_admit_what what;
        bool lifted; /* refused by another version of lkgfs: admitted now, its bad mark is to be removed */
        enum lkg_judging_end end;
        int status;
        uint64_t time_ns; /* wall time */
        unsigned n_new;   /* contents that were new when the engine ended, including this one */
        char component[LKG_JUDGING_OWNER_MAX];
        char file[LKG_JUDGING_FILE_MAX];
        char sha256[LKG_SHA256_HEX];
        char layers
                [LKG_SHA256_HEX]; /* digest of all layers of the component since then; "" = not yet known */
        char source[LKG_SOURCE_ID_MAX + 1]; /* the id that was marked bad because of it; "" = none */
};

struct lkg_poison {
        struct lkg_judging *note; /* NULL = none */
        int state_fd;             /* borrowed */
        /* where control/ is, for messages: `lkgfs/` for a virtualDir, otherwise "" */
        char top[NAME_MAX + 2];
        struct lkg_refused *items;
        size_t n_items;
        size_t last;     /* index in @items: refused last */
        bool unsaved;    /* the list differs from the file */
        bool look_again; /* something is admitted again: the owner looks at everything and clears it */
        /* The note was too small for all new content: unknown content is refused until the first look is over. */
        bool refuse_unknown;
        struct lkg_refused how; /* ... and this is how the engine ended */
};

/**
 * lkg_poison_open() - read the records of the previous engine, and determine which content is refused from
 * now on.
 * @virtual_dir: "" = none
 * @report:      parts of the list that could not be read or written
 */
int lkg_poison_open(int runtime_fd, int state_fd, const char *virtual_dir, struct lkg_poison *ret,
                    struct lkg_report *report, struct lkg_error *err);
void lkg_poison_close(struct lkg_poison *poison);

/**
 * lkg_poison_admit() - see struct lkg_admission, for content of @component.
 * @by: digest of its other inputs (a command line); refused content is refused only together with them. "" =
 * none
 */
int lkg_poison_admit(struct lkg_poison *poison, const char *component, const struct lkg_content *content,
                     const char *by, char **ret_why);
/** lkg_poison_finished() - what was admitted last is not worked on any more. */
void lkg_poison_finished(struct lkg_poison *poison);
/** lkg_poison_judged() - a layer of @component was merged and judged without harm. */
void lkg_poison_judged(struct lkg_poison *poison, const char *component, const char *file,
                       const char *sha256);
/**
 * lkg_poison_done() - the admitted content did no harm, and no work is in progress. Almost free if there was
 * none.
 */
void lkg_poison_done(struct lkg_poison *poison);
/**
 * lkg_poison_give_up() - out of memory for the current work.
 * Return: true: this was recorded, and the engine must exit now.
 */
bool lkg_poison_give_up(struct lkg_poison *poison);

/** lkg_poison_how() - describe an entry: "the engine was ended by SIGSEGV". */
void lkg_poison_how(const struct lkg_refused *refused, char *ret, size_t size);
/**
 * lkg_poison_last() - the entry because of which lkg_poison_admit() just refused; call it right afterwards.
 * NULL = none.
 */
struct lkg_refused *lkg_poison_last(const struct lkg_poison *poison);
/** lkg_poison_set_source() - @source was marked bad because of @refused. */
void lkg_poison_set_source(struct lkg_poison *poison, struct lkg_refused *refused, const char *source);
/**
 * lkg_poison_lift() - admit refused content of @component again.
 * @source: only content because of which this source, or any version of this uid, or ("") any source was
 * marked bad; NULL = everything
 */
void lkg_poison_lift(struct lkg_poison *poison, const char *component, const char *source);
/** lkg_poison_remove() - forget entry @at. */
void lkg_poison_remove(struct lkg_poison *poison, size_t at);
/** lkg_poison_save() - write changes to the state directory. Return: 0; -errno: a later call tries again. */
int lkg_poison_save(struct lkg_poison *poison, struct lkg_error *err);
/** lkg_poison_persist() - the same, and the keys of what did no harm; while no caller waits. */
int lkg_poison_persist(struct lkg_poison *poison, struct lkg_error *err);
