/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `remote.file`: a ConfigMap in a local file as the reference (air-gapped nodes, image builds, tests). The
 * file has one of three meanings: this object, back to the local configuration (empty, removed, or the text
 * `local`), or unclear. Rules: docs/specification.md 4.3.
 */
#pragma once

#include <lkg/configmap.h>
#include <lkg/file.h>
#include <lkg/stack.h>

#define LKG_KEY_ANNOTATION "lkgfs.io/config-key" /* of an object in a file: the key to use */

enum lkg_remote_file_says {
        LKG_FILE_SAYS_NOTHING, /* missing or empty, and there was nothing before: no reference yet */
        LKG_FILE_SAYS_UNCLEAR, /* err has the reason */
        LKG_FILE_SAYS_LOCAL,
        LKG_FILE_SAYS_CONFIGMAP,
};

struct lkg_remote_file {
        const char *path; /* absolute; borrowed */
        struct lkg_way way;
        bool known; /* id is from the last check; a missing file has none */
        struct lkg_file_id id;
        bool here; /* this engine has read it successfully */
        /* CLOCK_BOOTTIME since when it has been empty or missing, while that does not count; 0 = it is not */
        uint64_t blank_ns;
        bool had_one; /* it was valid before, an object or `local`: emptying or removing it has a meaning */
        int runtime_fd; /* borrowed; stores had_one, so that it survives a killed engine */
};

/*
 * The file may be in the middle of a write when an engine starts, without an event: an empty or missing file
 * counts only after this time, unless the same engine has seen the object itself.
 */
#define LKG_BLANK_NS (2 * LKG_NSEC_PER_SEC)

struct lkg_remote_file_options {
        size_t max_bytes;
        const char *const *allowed; /* remote.allowedSources */
        size_t n_allowed;
        const struct lkg_admission *admission; /* called before it is parsed; NULL = no check */
        bool careful;                          /* a reset would lose something: see LKG_BLANK_NS */
        lkg_unsettled_fn *unsettled;           /* is the file being written? May be NULL */
        void *userdata;
};

/**
 * lkg_remote_file_look() - read it again if it may have changed.
 * @ret, @ret_source: the object and its meaning, for CONFIGMAP; the caller calls lkg_configmap_deinit()
 * @err:              for UNCLEAR and NOTHING
 *
 * Return: 1: see *@ret_says; 0: nothing new (or it is being written); -ENOMEM.
 */
int lkg_remote_file_look(struct lkg_remote_file *file, const struct lkg_remote_file_options *options,
                         enum lkg_remote_file_says *ret_says, struct lkg_configmap *ret,
                         struct lkg_config_source *ret_source, struct lkg_error *err);
/**
 * lkg_remote_file_open() - (re)configure it.
 * @path:       absolute, borrowed; NULL = none
 * @runtime_fd: borrowed
 * @fresh:      a daemon starts, so a file that is missing now never was a reference (docs/specification.md
 * 4.3)
 *
 * Otherwise what a predecessor or an earlier configuration has seen at this path counts.
 */
void lkg_remote_file_open(struct lkg_remote_file *file, const char *path, int runtime_fd, bool fresh);
void lkg_remote_file_deinit(struct lkg_remote_file *file);
