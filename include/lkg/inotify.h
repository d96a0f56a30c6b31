/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects changes in the source: inotify on the directories that the stacks name, and the set of files that
 * are being written.
 *
 * A file is *unsettled* from its creation or a write until its writer closes it (or it is renamed, removed,
 * or the file server reports that a caller's close waits for it); the stacks keep using its previous
 * content. If a writer does not close it, its content counts after two seconds without a further write. Hard
 * links, symlinks and directories are complete at once.
 *
 * If inotify does not see everything (network and user-space file systems, the kernel's limit of watches),
 * the caller polls. One thread.
 */
#pragma once

#include <lkg/stack.h>

#define LKG_UNSETTLED_NS (2 * LKG_NSEC_PER_SEC)
#define LKG_POLL_NS      (2 * LKG_NSEC_PER_SEC)

struct lkg_watched_dir {
        char *path;
        char **names; /* the entries that matter; none = every entry */
        size_t n_names;
        int wd; /* -1 = not watched: removed, or over the limit */
        bool wanted;
        bool every; /* every entry matters, whatever names says */
};

/* What may have changed since the last query: paths, or simply anything. */
struct lkg_touched {
        char **paths;
        size_t n_paths;
        bool everything;
};
#define LKG_TOUCHED_MAX 64u /* if there are more at once: anything */

struct lkg_unsettled {
        char *path;
        uint64_t since_ns; /* CLOCK_BOOTTIME of the last event */
};

struct lkg_watch {
        int fd;        /* inotify; for the event loop */
        int source_fd; /* borrowed */
        char *source_path;
        struct lkg_watched_dir *dirs; /* sorted by path */
        size_t n_dirs;
        struct lkg_unsettled *unsettled;
        size_t n_unsettled;
        struct lkg_touched touched; /* initially everything */
        bool poll;                  /* some directory must be polled */
        bool over_limit;            /* fs.inotify.max_user_watches */
        bool added;
};

int lkg_watch_open(struct lkg_watch *ret, int source_fd, const char *source_path, struct lkg_error *err);
void lkg_watch_deinit(struct lkg_watch *watch);

/*
 * The set of wanted directories: begin, add every directory of every stack, end. Unchanged ones keep their
 * watch.
 */
void lkg_watch_begin(struct lkg_watch *watch);
int lkg_watch_add(struct lkg_watch *watch, const struct lkg_stack_watch *wanted);
/**
 * lkg_watch_end() - remove the watches of directories that were not added again.
 * Return: true: a directory is newly watched: look again, because something may have happened in between.
 */
bool lkg_watch_end(struct lkg_watch *watch);

/**
 * lkg_watch_drain() - read all queued events.
 * Return: true: the layers must be read again (see what was touched).
 */
bool lkg_watch_drain(struct lkg_watch *watch, uint64_t now_ns);

/** lkg_watch_touch() - @path (as the stacks name it) may have changed; NULL = anything. */
void lkg_watch_touch(struct lkg_watch *watch, const char *path);
/**
 * lkg_watch_take_touched() - what may have changed since the last call. The caller calls
 * lkg_touched_deinit().
 */
struct lkg_touched lkg_watch_take_touched(struct lkg_watch *watch);
void lkg_touched_deinit(struct lkg_touched *touched);

/** lkg_watch_settle() - the file at @path (absolute, or relative to the source directory) is complete. */
void lkg_watch_settle(struct lkg_watch *watch, const char *path);

/** lkg_watch_unsettled() - lkg_unsettled_fn for the stacks; @userdata is the watch. */
bool lkg_watch_unsettled(const char *path, void *userdata);

/** lkg_watch_deadline() - when lkg_watch_tick() must be called; UINT64_MAX = never. */
uint64_t lkg_watch_deadline(const struct lkg_watch *watch);
/**
 * lkg_watch_tick() - accept the content of writers that have been silent.
 * Return: true: the layers must be read again.
 */
bool lkg_watch_tick(struct lkg_watch *watch, uint64_t now_ns);
