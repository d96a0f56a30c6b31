/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `remote.file`: a ConfigMap in a local file as the reference (air-gapped nodes, image builds, tests). The file says three
 * things: this object, back to the local configuration (empty, removed, or the text `local`), or nothing that can be
 * understood. Rules: docs/specification.md 4.3.
 */
#pragma once

#include <lkg/configmap.h>
#include <lkg/file.h>
#include <lkg/stack.h>

#define LKG_KEY_ANNOTATION "lkgfs.io/config-key" /* of an object in a file: which key is meant */

enum lkg_remote_file_says {
        LKG_FILE_SAYS_NOTHING, /* missing or empty, and it said nothing before: no reference yet */
        LKG_FILE_SAYS_UNCLEAR, /* err: why */
        LKG_FILE_SAYS_LOCAL,
        LKG_FILE_SAYS_CONFIGMAP,
};

struct lkg_remote_file {
        const char *path; /* absolute; borrowed */
        struct lkg_way way;
        bool known; /* id is that of the last look; a missing file has none */
        struct lkg_file_id id;
        bool here; /* this engine has understood it itself */
        uint64_t
                blank_ns; /* CLOCK_BOOTTIME since when it is empty or missing, while that is not believed; 0 = it is not */
        bool had_one; /* it was understood before, an object or `local`: emptying or removing it means something */
        int runtime_fd; /* borrowed; where had_one outlives an engine that is killed */
};

/*
 * Somebody may be in the middle of writing the file while an engine begins, and no event tells: an empty or missing one is
 * believed after this long, unless the same engine has seen the object itself.
 */
#define LKG_BLANK_NS (2 * LKG_NSEC_PER_SEC)

struct lkg_remote_file_options {
        size_t max_bytes;
        const char *const *allowed; /* remote.allowedSources */
        size_t n_allowed;
        const struct lkg_admission *admission; /* asked before it is parsed; NULL = nobody */
        bool careful;                          /* a reset would lose something: see LKG_BLANK_NS */
        lkg_unsettled_fn *unsettled;           /* is somebody in the middle of writing it? May be NULL */
        void *userdata;
};

/**
 * lkg_remote_file_look() - read it again when it may have changed.
 * @ret, @ret_source: the object and what it means, for CONFIGMAP; caller lkg_configmap_deinit()
 * @err:              for UNCLEAR and NOTHING
 *
 * Return: 1 and *@ret_says; 0 nothing new (also: it is just being written); -ENOMEM.
 */
int lkg_remote_file_look(struct lkg_remote_file *file, const struct lkg_remote_file_options *options,
                         enum lkg_remote_file_says *ret_says, struct lkg_configmap *ret,
                         struct lkg_config_source *ret_source, struct lkg_error *err);
/**
 * lkg_remote_file_open() - (re)configure it.
 * @path:       absolute, borrowed; NULL = there is none
 * @runtime_fd: borrowed
 * @fresh:      a daemon begins, so a file that is missing now never was a reference (docs/specification.md 4.3)
 *
 * Otherwise what a predecessor or an earlier configuration has seen at this very path counts.
 */
void lkg_remote_file_open(struct lkg_remote_file *file, const char *path, int runtime_fd, bool fresh);
void lkg_remote_file_deinit(struct lkg_remote_file *file);
