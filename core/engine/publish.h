/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The publisher: the state of all components -> one publication in the runtime directory.
 *
 * Only what is dirty is rendered, only new content is written, the manifest is replaced by one rename(2). When any step
 * fails (a full tmpfs), the old publication stays current and the caller tries again later.
 *
 * When a change makes more than LKG_LAYERS_AT_ONCE files of layers/ differ (LKG_LAYERS_AT_FIRST before anybody reads),
 * the rest is rendered after the publication, in slices, followed by one more publication: a caller that waits for its
 * close() never waits for a thousand renderings.
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/publication.h>

#include "blob.h"
#include "component.h"

#define LKG_LAYERS_AT_ONCE    8u
#define LKG_LAYERS_AT_FIRST   64u
#define LKG_LAYERS_SHOWN_MAX  4096u       /* of one component alone; fewer when there are several */
#define LKG_LAYERS_MERGED_MAX (16u << 20) /* bytes of all .merged.yaml files of one component */
#define LKG_PUBLICATIONS_KEPT 256u        /* unacknowledged publications whose blobs are kept */

struct lkg_kept_blobs {
        uint64_t number;
        struct lkg_blob **blobs;
        size_t n_blobs;
};

/* A part that is not written yet. */
struct lkg_pending_part {
        struct lkg_part_slot *slot;
        struct lkg_part_slot now; /* what it becomes; without the blob */
};

/* The small files of one publication, which are one blob: a tenth of what as many files cost. */
struct lkg_pack {
        struct lkg_buf bytes;
        struct lkg_pending_part *parts;
        size_t n_parts, n_allocated;
};

struct lkg_publisher {
        int runtime_fd; /* borrowed */
        struct lkg_blobs blobs;
        struct lkg_pack pack;
        uint64_t number; /* of the current publication */
        struct lkg_kept_blobs *kept;
        size_t n_kept;
        size_t n_entries, n_bytes; /* of the last manifest: how big the next will be */
        bool fresh; /* there was no publication when we started: the first boot of this runtime directory */
};

struct lkg_manifest_rules; /* manifest-rules.h */

struct lkg_publication_input {
        const struct lkg_config *config;
        struct lkg_component *components;
        size_t n_components;
        const struct lkg_manifest_rules *rules;
        const struct lkg_report *findings; /* of the whole engine */
        uint64_t now_ns;                   /* wall time */
};

/**
 * lkg_publisher_open() - take over the runtime directory.
 * @ret_previous: the publication a predecessor left, or NULL; caller frees
 */
int lkg_publisher_open(int runtime_fd, struct lkg_publisher *ret, struct lkg_publication **ret_previous,
                       struct lkg_error *err);
void lkg_publisher_deinit(struct lkg_publisher *publisher);

/**
 * lkg_publish() - make the next publication current.
 * Clears the dirty marks of the components, except LKG_DIRTY_LAYERS where lkg_publish_layers() still has work.
 * Return: 0; -ENOSPC, -ENOMEM ...: nothing has changed for readers.
 */
int lkg_publish(struct lkg_publisher *publisher, const struct lkg_publication_input *input,
                struct lkg_error *err);

/**
 * lkg_publish_layers() - render up to @budget files of layers/ that are behind.
 * Return: 1 when there is more to do, 0 when a publication will show everything, -errno.
 */
int lkg_publish_layers(struct lkg_publisher *publisher, const struct lkg_publication_input *input,
                       size_t budget, struct lkg_error *err);

/** lkg_publisher_loaded() - no reader needs publications before @number any more. */
void lkg_publisher_loaded(struct lkg_publisher *publisher, uint64_t number);

/** lkg_publisher_release() - give back what is rendered of @component; it will not be published again. */
void lkg_publisher_release(struct lkg_publisher *publisher, struct lkg_component *component);
/** lkg_publisher_forget() - free the memory of it without touching a file: the engine ends, readers go on. */
void lkg_publisher_forget(struct lkg_component *component);
