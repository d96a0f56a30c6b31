/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of one component on disk and in memory, handled as the engine does it: one stack and one judge
 * that live through any number of changes, with the engine's options (advice, instance, kubeadm patches, a
 * ConfigMap instead of the base), told what was touched; and everything that the engine renders from a
 * candidate. For tests that compare what the *product* makes of documents: the differential fuzzer, the
 * generator, the sequences.
 *
 * place_fresh() is the reference: the same files, read with no history. Any difference is a bug.
 *
 * Not for production: any failure (memory, disk) ends the program.
 */
#pragma once

#include <lkg/text.h>
#include <lkg/config.h>
#include <lkg/objects.h>
#include <lkg/schema.h>
#include <lkg/stack.h>

#define PLACE_TOUCHED_MAX 64

struct place_options {
        const char *component;         /* "kubelet", "kube-proxy" ... as in lkgfs.conf */
        const char *base;              /* file name; "" = none */
        const char *dropins;           /* directory name; NULL = the default of the component */
        const char *instance;          /* file name; NULL = that default */
        const char *patches;           /* directory name; "" = none */
        const char *kind;              /* NULL = that of the base */
        struct lkg_judge_config judge; /* borrowed words; the caller sets lint */
};

struct place {
        struct place_options options;
        char dir[64]; /* of the source; absolute */
        int fd;
        struct lkg_config *config;
        struct lkg_stack_config stack_config;
        struct lkg_stack *stack;
        struct lkg_judge *judge;
        struct lkg_candidate *candidate; /* of the last look; NULL = none yet */
        struct lkg_remote_base *remote;  /* NULL = the base file is used */
        char *touched[PLACE_TOUCHED_MAX];
        size_t n_touched;
        bool everything; /* look at everything: too much was touched, or this is the first look */
        uint64_t n_looks, number;
};

void place_open(struct place *p, const struct place_options *options);
void place_close(struct place *p);

/** place_put() - write a file and create its directories; unchanged bytes are not written again. */
void place_put(struct place *p, const char *name, const char *text, size_t size);
/** place_remove() - remove a file; a missing one is no error. */
void place_remove(struct place *p, const char *name);
/** place_mkdir(), place_rmdir() - create a directory; remove one with everything in it. */
void place_mkdir(struct place *p, const char *name);
void place_rmdir(struct place *p, const char *name);
/**
 * place_set_remote() - use the payload of a ConfigMap instead of the base; NULL = the base again.
 * Return: false: the payload cannot be used.
 */
bool place_set_remote(struct place *p, const char *text, size_t size);
/**
 * place_judge_by() - set another command line, release or host, as when facts about the component change.
 */
void place_judge_by(struct place *p, const struct lkg_judge_config *judge);

/**
 * place_look() - what the engine makes of the layers now: a refresh, told what was touched. Borrowed until
 * the next call.
 */
struct lkg_candidate *place_look(struct place *p);
/** place_fresh() - what a new process makes of the layers now. Caller owns one reference. */
struct lkg_candidate *place_fresh(struct place *p);
/**
 * place_compare() - compare state, document, effective, findings and the origin of every value; @ret is
 * empty if they are equal.
 */
void place_compare(const struct lkg_candidate *a, const struct lkg_candidate *b, struct lkg_buf *ret);
/** place_render() - the bytes that would be served, as in lkg_generation. */
void place_render(const struct lkg_candidate *candidate, struct lkg_buf *ret);
/** place_publish() - render everything that the engine publishes, and discard it. */
void place_publish(struct place *p, struct lkg_candidate *candidate);
