/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The publisher: a snapshot of all components -> one publication in the runtime directory.
 *
 * Only what has changed is rendered, only new content is written, the manifest is replaced by one rename(2). When any step
 * fails (a full tmpfs), the old publication stays current and the caller tries again later.
 *
 * When a change makes more than LKG_LAYERS_AT_ONCE files of layers/ differ (LKG_LAYERS_AT_FIRST before anybody reads),
 * the rest is rendered after the publication, in slices, followed by one more publication: a caller that waits for its
 * close() never waits for a thousand renderings.
 */
#pragma once

#include <lkg/publication.h>
#include <lkg/snapshot.h>

#define LKG_LAYERS_AT_ONCE    8u
#define LKG_LAYERS_AT_FIRST   64u
#define LKG_LAYERS_SHOWN_MAX  4096u       /* of one component alone; fewer when there are several */
#define LKG_LAYERS_MERGED_MAX (16u << 20) /* bytes of all .merged.yaml files of one component */
#define LKG_PUBLICATIONS_KEPT 256u        /* unacknowledged publications whose blobs are kept */

struct lkg_publisher;

/**
 * lkg_publisher_open() - take over the runtime directory.
 * @runtime_fd: borrowed, outlives it
 * @ret_previous: the publication a predecessor left, or NULL; caller frees
 */
int lkg_publisher_open(int runtime_fd, struct lkg_publisher **ret, struct lkg_publication **ret_previous,
                       struct lkg_error *err);
/** lkg_publisher_free() - forget everything without touching a file: the engine ends, readers go on. NULL is fine. */
struct lkg_publisher *lkg_publisher_free(struct lkg_publisher *publisher);

/** lkg_publisher_number() - of the current publication; 0 = there is none. */
uint64_t lkg_publisher_number(const struct lkg_publisher *publisher);
/** lkg_publisher_is_fresh() - there was no publication when it was opened: the first boot of this runtime directory. */
bool lkg_publisher_is_fresh(const struct lkg_publisher *publisher);
/**
 * lkg_publisher_recover() - the generation of @c that @publication, of an engine before this one, shows.
 * @view: its entry
 * Return: 0; -ENOENT; -ENOMEM; as lkg_publication_read().
 */
int lkg_publisher_recover(const struct lkg_publisher *publisher, const struct lkg_publication *publication,
                          const struct lkg_component *c, const struct lkg_entry *view,
                          struct lkg_generation **ret);
/** lkg_publisher_read() - the bytes of @entry of a publication. Caller frees. Return: as lkg_publication_read(). */
int lkg_publisher_read(const struct lkg_publisher *publisher, const struct lkg_entry *entry, char **ret,
                       size_t *ret_size);
/** lkg_publisher_layer_sha256() - of the file that shows @doc as layer @i of component @component; NULL = none does. */
const char *lkg_publisher_layer_sha256(const struct lkg_publisher *publisher, unsigned component, size_t i,
                                       const struct lkg_value *doc);

/**
 * lkg_publish() - make the next publication current.
 * Clears what has changed of the components, except LKG_DIRTY_LAYERS where lkg_publish_layers() still has work.
 * Return: 0; -ENOSPC, -ENOMEM ...: nothing has changed for readers.
 */
int lkg_publish(struct lkg_publisher *publisher, const struct lkg_snapshot *snapshot, struct lkg_error *err);

/**
 * lkg_publish_layers() - render up to @budget files of layers/ that are behind.
 * Return: 1 when there is more to do, 0 when a publication will show everything, -errno.
 */
int lkg_publish_layers(struct lkg_publisher *publisher, const struct lkg_snapshot *snapshot, size_t budget,
                       struct lkg_error *err);

/** lkg_publisher_loaded() - no reader needs publications before @number any more. */
void lkg_publisher_loaded(struct lkg_publisher *publisher, uint64_t number);

/** lkg_publisher_reset() - give back what is rendered: the components are others from now on. */
void lkg_publisher_reset(struct lkg_publisher *publisher);
