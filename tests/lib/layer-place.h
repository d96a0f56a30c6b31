/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of one component on disk and in memory, looked at as the engine does it: one stack and one judge that live
 * through any number of changes, with the engine's options (advice, instance, kubeadm patches, a ConfigMap in the base's
 * place), told what was touched, and everything that the engine renders of a candidate. For whoever wants to know what the
 * *product* makes of documents: the differential fuzzer, the generator, the sequences.
 *
 * place_fresh() is the yardstick: the same files, seen by somebody who has never seen any before. What differs is a fault.
 *
 * Not for production: whatever cannot be (memory, disk) ends the program.
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/config.h>
#include <lkg/remote-base.h>
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
        struct lkg_judge_config judge; /* borrowed words; lint is what the caller says */
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
        struct lkg_remote_base *remote;  /* NULL = the base file counts */
        char *touched[PLACE_TOUCHED_MAX];
        size_t n_touched;
        bool everything; /* a look at everything is needed: too much was touched, or nobody has looked yet */
        uint64_t n_looks, number;
};

void place_open(struct place *p, const struct place_options *options);
void place_close(struct place *p);

/** place_put() - a file, with the directories on its way; unchanged bytes are not written again. */
void place_put(struct place *p, const char *name, const char *text, size_t size);
/** place_remove() - a file; fine when there is none. */
void place_remove(struct place *p, const char *name);
/** place_mkdir(), place_rmdir() - a directory; no directory, whatever was in it. */
void place_mkdir(struct place *p, const char *name);
void place_rmdir(struct place *p, const char *name);
/** place_set_remote() - the payload of a ConfigMap instead of the base; NULL = the base again. false: it has none that can be used. */
bool place_set_remote(struct place *p, const char *text, size_t size);
/** place_judge_by() - another command line, release or host, as when facts about the component change. */
void place_judge_by(struct place *p, const struct lkg_judge_config *judge);

/** place_look() - what the engine makes of it now: refresh, told what was touched. Borrowed until the next call. */
const struct lkg_candidate *place_look(struct place *p);
/** place_fresh() - what somebody makes of it who begins now. Caller owns one reference. */
struct lkg_candidate *place_fresh(struct place *p);
/** place_compare() - empty when both are the same: state, document, effective, findings, and where every value comes from. */
void place_compare(const struct lkg_candidate *a, const struct lkg_candidate *b, struct lkg_buf *ret);
/** place_render() - the bytes that would be served, as lkg_generation has them. */
void place_render(const struct lkg_candidate *candidate, struct lkg_buf *ret);
/** place_publish() - everything that the engine renders for people and programs, thrown away. */
void place_publish(struct place *p, const struct lkg_candidate *candidate);
