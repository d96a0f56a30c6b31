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
        struct lkg_rule *items; /* their texts are their own */
        size_t n_items;
        size_t n_fixed; /* items that follow from the configuration; the ways come after them */
};

#define LKG_WAYS_MAX 1024u /* names that links lead to; changes of further ones are found by inotify */

/** lkg_rules_build() - @report: a warning for each real entry that the view covers. */
struct lkg_manifest_rules lkg_rules_build(const struct lkg_config *config, int source_fd,
                                          const char *source_path, struct lkg_report *report);
/**
 * lkg_rules_set_ways() - names of the source directory that decide what the layers are, beside those of the configuration:
 * every link on the way to a layer, and where it leads. Takes over @paths, relative to the source directory.
 * Return: do they differ from the ones before?
 */
bool lkg_rules_set_ways(struct lkg_manifest_rules *rules, char **paths, size_t n_paths);
/** lkg_rules_set_tree() - the watched directory of @component is @path now, relative to the source directory. */
void lkg_rules_set_tree(struct lkg_manifest_rules *rules, unsigned component, const char *path);
void lkg_rules_deinit(struct lkg_manifest_rules *rules);

/* ---- snapshot ---- */

/*
 * The input of a publication: everything that the engine knows at one moment. The publisher reads it and
 * changes nothing; all pointers are borrowed for the duration of one call.
 */

struct lkg_snapshot_component {
        const struct lkg_component *component;
        const struct lkg_remote_status *remote; /* NULL = it follows no reference */
};

struct lkg_snapshot {
        const struct lkg_config *config;
        const struct lkg_snapshot_component *components;
        size_t n_components;
        const struct lkg_manifest_rules *rules;
        const struct lkg_report *findings; /* findings that are not about a component */
        uint64_t now_ns;                   /* wall time */
};

/* ---- publish ---- */

/*
 * The publisher: turns a snapshot of all components into one publication in the runtime directory.
 *
 * A publication has the bytes of what must be there without an engine: the served documents, the last known good, and
 * the condition. All else is a name, rendered when it is looked up (lkg_publisher_render()). Nothing is remembered of
 * what has changed: if the manifest says the same as the current one, there is no new publication. If any step fails
 * (a full tmpfs), the old publication stays current and the caller tries again later.
 */

#define LKG_PUBLICATIONS_KEPT 256u /* unacknowledged publications whose blobs are kept */

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
 * lkg_publisher_recover() - the generation of @c that @publication, of an engine before this one, shows; its origin and
 * layers are not known.
 * @view: its entry
 * Return: 0; -ENOENT; as lkg_publication_read().
 */
int lkg_publisher_recover(const struct lkg_publisher *publisher, const struct lkg_publication *publication,
                          const struct lkg_component *c, const struct lkg_entry *view,
                          struct lkg_generation **ret);
/** lkg_publisher_recover_pods() - the same for static pods, by the files that @publication shows. */
int lkg_publisher_recover_pods(struct lkg_publisher *publisher, const struct lkg_publication *publication,
                               const struct lkg_component *c, struct lkg_generation **ret);
/**
 * lkg_publish() - make the next publication current, if it says anything new.
 * Return: 1: it did; 0; -ENOSPC ...: nothing has changed for readers.
 */
int lkg_publish(struct lkg_publisher *publisher, const struct lkg_snapshot *snapshot, struct lkg_error *err);

/**
 * lkg_publisher_render() - what is at @path of the view now: a `rendered` entry, or a name in an `asked` directory.
 * @path: with a slash at its end: the names in that directory, see <lkg/publication.h>
 * @state: differs whenever the answer may; a text is rendered once for each @state within LKG_RENDERED_NS, or 20 times as
 *         long as it took, so that nobody keeps the engine busy by looking
 *
 * The blob stays until LKG_ANSWERED_MAX others were rendered.
 * Return: 0; -ENOENT; -ENOSPC ...
 */
int lkg_publisher_render(struct lkg_publisher *publisher, const struct lkg_snapshot *snapshot,
                         const char *path, uint64_t state, struct lkg_rendered *ret, struct lkg_error *err);
#define LKG_RENDERED_NS (20 * LKG_NSEC_PER_MSEC)

/** lkg_publisher_loaded() - no reader needs publications before @number any more. */
void lkg_publisher_loaded(struct lkg_publisher *publisher, uint64_t number);

/** lkg_publisher_reset() - drop rendered content: the components are replaced by others. */
void lkg_publisher_reset(struct lkg_publisher *publisher);
