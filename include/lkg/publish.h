/* SPDX-License-Identifier: Apache-2.0 */
/* From a snapshot of the engine to the files of a publication. */
#pragma once

#include <lkg/component.h>
#include <lkg/config.h>
#include <lkg/places.h>
#include <lkg/publication.h>

/*
 * The rules of a publication that follow from the configuration and from names in the source directory: what is watched
 * and hidden, how components are recognised, which real entries the virtual tree covers.
 */

struct lkg_manifest_rules {
        struct lkg_rule *items;
        size_t n_items;
        char **texts; /* owns the strings */
        size_t n_texts;
        size_t n_fixed; /* items that follow from the configuration; the ways come after them */
        size_t n_fixed_texts;
};

#define LKG_WAYS_MAX 1024u /* names that links lead to; changes of further ones are found by inotify */

/**
 * lkg_rules_build() - @report: a warning for each real entry that the view covers.
 * Return: 0 or -ENOMEM.
 */
int lkg_rules_build(const struct lkg_config *config, int source_fd, const char *source_path,
                    struct lkg_manifest_rules *ret, struct lkg_report *report);
/**
 * lkg_rules_set_ways() - names of the source directory that decide what the layers are, beside those of the configuration:
 * every link on the way to a layer, and where it leads. Takes over @paths, relative to the source directory.
 * Return: 1 = they differ from the ones before; 0; -ENOMEM: there are none now.
 */
int lkg_rules_set_ways(struct lkg_manifest_rules *rules, char **paths, size_t n_paths);
void lkg_rules_deinit(struct lkg_manifest_rules *rules);

/* ---- snapshot ---- */

/*
 * The input of a publication: everything that the engine knows at one moment. The publisher reads it and
 * changes nothing; all pointers are borrowed for the duration of one call.
 */

struct lkg_snapshot_component {
        const struct lkg_component *component;
        const struct lkg_remote_status *remote; /* NULL = it follows no reference */
        unsigned changed; /* enum lkg_component_dirty; a publication clears what it has shown */
};

struct lkg_snapshot {
        const struct lkg_config *config;
        struct lkg_snapshot_component *components;
        size_t n_components;
        const struct lkg_manifest_rules *rules;
        const struct lkg_report *findings; /* findings that are not about a component */
        uint64_t now_ns;                   /* wall time */
};

/* ---- publish ---- */

/*
 * The publisher: turns a snapshot of all components into one publication in the runtime directory.
 *
 * Only what has changed is rendered, only new content is written, the manifest is replaced by one rename(2).
 * If any step fails (a full tmpfs), the old publication stays current and the caller tries again later.
 *
 * If a change affects more than LKG_LAYERS_AT_ONCE files of layers/ (LKG_LAYERS_AT_FIRST before there are
 * readers), the rest is rendered after the publication, in slices, followed by another publication: a caller
 * that waits for its close() never waits for a thousand renderings.
 */

#define LKG_LAYERS_AT_ONCE    8u
#define LKG_LAYERS_AT_FIRST   64u
#define LKG_LAYERS_SHOWN_MAX  4096u       /* for a single component; fewer if there are several */
#define LKG_LAYERS_MERGED_MAX (16u << 20) /* bytes of all .merged.yaml files of one component */
#define LKG_PUBLICATIONS_KEPT 256u        /* unacknowledged publications whose blobs are kept */

struct lkg_publisher;

/**
 * lkg_publisher_open() - take over the runtime directory.
 * @runtime_fd: borrowed for its lifetime
 * @ret_previous: the publication a predecessor left, or NULL; caller frees
 */
int lkg_publisher_open(int runtime_fd, struct lkg_publisher **ret, struct lkg_publication **ret_previous,
                       struct lkg_error *err);
/**
 * lkg_publisher_free() - free it without touching a file: the engine ends, readers continue. NULL is fine.
 */
struct lkg_publisher *lkg_publisher_free(struct lkg_publisher *publisher);

/** lkg_publisher_number() - number of the current publication; 0 = none. */
uint64_t lkg_publisher_number(const struct lkg_publisher *publisher);
/**
 * lkg_publisher_is_fresh() - there was no publication when it was opened: the first start with this runtime
 * directory.
 */
bool lkg_publisher_is_fresh(const struct lkg_publisher *publisher);
/**
 * lkg_publisher_recover() - the generation of @c that @publication, of an engine before this one, shows.
 * @view: its entry
 * Return: 0; -ENOENT; -ENOMEM; as lkg_publication_read().
 */
int lkg_publisher_recover(const struct lkg_publisher *publisher, const struct lkg_publication *publication,
                          const struct lkg_component *c, const struct lkg_entry *view,
                          struct lkg_generation **ret);
/**
 * lkg_publisher_read() - read the bytes of @entry of a publication. Caller frees.
 * Return: see lkg_publication_read().
 */
int lkg_publisher_read(const struct lkg_publisher *publisher, const struct lkg_entry *entry, char **ret,
                       size_t *ret_size);
/**
 * lkg_publisher_layer_sha256() - digest of the file that shows @doc as layer @i of component @component;
 * NULL = none.
 */
const char *lkg_publisher_layer_sha256(const struct lkg_publisher *publisher, unsigned component, size_t i,
                                       const struct lkg_value *doc);

/**
 * lkg_publish() - make the next publication current.
 * Clears the changes of the components, except LKG_DIRTY_LAYERS if lkg_publish_layers() still has work.
 * Return: 0; -ENOSPC, -ENOMEM ...: nothing has changed for readers.
 */
int lkg_publish(struct lkg_publisher *publisher, const struct lkg_snapshot *snapshot, struct lkg_error *err);

/**
 * lkg_publish_layers() - render up to @budget outdated files of layers/.
 * Return: 1: there is more to do; 0: the next publication will show everything; -errno.
 */
int lkg_publish_layers(struct lkg_publisher *publisher, const struct lkg_snapshot *snapshot, size_t budget,
                       struct lkg_error *err);

/** lkg_publisher_loaded() - no reader needs publications before @number any more. */
void lkg_publisher_loaded(struct lkg_publisher *publisher, uint64_t number);

/** lkg_publisher_reset() - drop rendered content: the components are replaced by others. */
void lkg_publisher_reset(struct lkg_publisher *publisher);
