/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the publisher: what was last rendered, as files; and the interfaces between its parts. */
#pragma once

#include <lkg/text.h>
#include <lkg/publish.h>

#include "blob.h"
#include "status.h"

/* One file of a publication; mtime is the publication in which its content last changed. */
struct lkg_file_slot {
        struct lkg_blob *blob; /* NULL = no such file */
        uint64_t mtime_ns;
};

/* A static pod. */
struct lkg_pod_file {
        char *name;
        struct lkg_file_slot slot;
        uint64_t generation; /* in which it got this content */
};

struct lkg_pod_files {
        struct lkg_pod_file *items;
        size_t n;
        char of[LKG_SHA256_HEX]; /* digest of the set; "" = none, or not known */
};

/* What is shown of one component. All zero = nothing. */
struct lkg_shown {
        struct lkg_file_slot document;                     /* of the active generation */
        struct lkg_file_slot good_document;                /* lkg/ */
        struct lkg_pod_files pods, good_pods;              /* of static pods instead of these two */
        struct lkg_file_slot status[LKG_STATUS_FILES_MAX]; /* those that are blobs */
        uint64_t hash;                                     /* of all that the publication shows */
        uint64_t changed_ns; /* when that changed: mtime of the component's directories */
};

struct lkg_kept_blobs {
        uint64_t number;
        struct lkg_blob **blobs;
        size_t n_blobs;
};

/* A text that was rendered for a reader, who links to its blob as soon as the answer arrives. */
struct lkg_answered {
        char *path;
        struct lkg_blob *blob;
        struct lkg_rendered rendered;
        uint64_t state,
                until_ns; /* of the engine; CLOCK_BOOTTIME: how long it counts while that is the same */
};
#define LKG_ANSWERED_MAX 256u /* names of several components; more than may wait at once */

struct lkg_publisher {
        int runtime_fd; /* borrowed */
        struct lkg_blobs blobs;
        struct lkg_shown shown[LKG_COMPONENTS_MAX]; /* by the component's index */
        uint64_t number;                            /* of the current publication */
        struct lkg_buf manifest; /* of that, with a NUL; empty: of an engine before this one */
        struct lkg_kept_blobs *kept;
        size_t n_kept;
        struct lkg_answered answered[LKG_ANSWERED_MAX]; /* used in turn */
        size_t next_answered;
        /* there was no publication when we started: the first start with this runtime directory */
        bool fresh;
};

/* pod-files.c */
/** lkg_pod_files_fill() - the files of @texts, whose digest is @sha256; those that are new came with @g. Return: 0; -ENOSPC ... */
int lkg_pod_files_fill(struct lkg_publisher *p, struct lkg_pod_files *files, const struct lkg_value *texts,
                       const char *sha256, const struct lkg_generation *g, struct lkg_error *err);
void lkg_pod_files_free(struct lkg_pod_files *files); /* without its blobs */
void lkg_pod_files_clear(struct lkg_publisher *p, struct lkg_pod_files *files);
