/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a changed file count yet, or is it still being written? docs/specification.md 2.5 has the table.
 * inotify is one source of information; what the writers report, and how long a file has stayed the same,
 * are the others.
 */
#pragma once

#include <lkg/file.h>
#include <lkg/inotify.h>
#include <lkg/limits.h>

/* Minimum age of a file's last change if there was no close through the mount: well above a clock tick. */
#define LKG_RECENT_NS (20 * LKG_NSEC_PER_MSEC)

/* A changed file, and since when it has looked like this. */
struct lkg_stability_sample {
        char *path;
        struct lkg_file_id id;
        uint64_t since_ns; /* CLOCK_BOOTTIME */
};

struct lkg_settled {
        struct lkg_watch *watch;             /* borrowed */
        const char *source_path;             /* borrowed */
        char *vouched[LKG_MESSAGES_AT_ONCE]; /* paths that their writers have reported as complete */
        size_t n_vouched;
        bool vouched_all; /* an operator asked for a look now */
        bool new_stacks;  /* they have no earlier content to fall back on, so every file counts as it is */
        bool started;     /* there were earlier looks; before that, there are only timestamps */
        uint64_t lost_ns; /* when a file server went away; 0 = never */
        struct lkg_stability_sample samples[64];
        size_t n_samples;
        bool recent;     /* a file was skipped because it had just been written */
        bool look_again; /* the sources changed while they were being read */
};

/** lkg_is_unsettled() - lkg_unsettled_fn; @userdata is the struct lkg_settled. Notes `recent` and `look_again`. */
bool lkg_is_unsettled(const char *path, void *userdata);
/**
 * lkg_settled_vouch() - the writer of @path (as the stacks name it, or relative to the source directory)
 * reports that the file is complete.
 */
void lkg_settled_vouch(struct lkg_settled *settled, const char *path);
/** lkg_settled_forget_vouched() - forget these reports: they were about the previous look. */
void lkg_settled_forget_vouched(struct lkg_settled *settled);
/** lkg_settled_forget_old() - drop the samples of files that have not changed for a long time. */
void lkg_settled_forget_old(struct lkg_settled *settled);
void lkg_settled_deinit(struct lkg_settled *settled);
