/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State that survives a restart or a reboot, in the private state directory (0700):
 *
 *     generation-next              decimal: the first generation number that was never assigned
 *     components/<component>.json  hold, try, unfinished command, condition, last good generation
 *     history/<component>/<n>/     one generation: see history.h
 *
 * Every file is replaced atomically. A file that cannot be read or parsed is reported and treated as absent: an
 * engine that has lost some state is better than one that does not start.
 */
#pragma once

#include <limits.h>

#include <lkg/error.h>
#include <lkg/lifecycle.h>

struct lkg_state {
        int fd;                  /* state directory; borrowed */
        uint64_t next, reserved; /* numbers next..reserved-1 can be assigned without a write to disk */
};

/** lkg_state_open() - create the directories, read generation-next. @report: what could not be read */
int lkg_state_open(int fd, struct lkg_state *ret, struct lkg_report *report, struct lkg_error *err);

/**
 * lkg_state_next_generation() - get a number that was never used. If none is left, reserves a block of 64 durably; a
 * crash leaves a gap.
 */
int lkg_state_next_generation(struct lkg_state *state, uint64_t *ret, struct lkg_error *err);

/** lkg_state_reserve_ahead() - if few numbers are left, reserve the next block now, when no caller waits for it. */
int lkg_state_reserve_ahead(struct lkg_state *state, struct lkg_error *err);

/** lkg_state_at_least() - numbers up to @used are in use: never assign them again. */
void lkg_state_at_least(struct lkg_state *state, uint64_t used);

/**
 * lkg_state_load_component() - read one component's state.
 * A try deadline of an earlier boot is converted through the wall clock; one of this boot is exact.
 * Return: 0, also if there is none; -ENOMEM. A damaged record is reported in @report and in `lost` of @ret.
 */
int lkg_state_load_component(const struct lkg_state *state, const char *component,
                             struct lkg_component_state *ret, struct lkg_report *report);
/**
 * lkg_state_keep_component() - link the current record under another name, so that lkg_state_restore_component() can restore
 * it without disk space. Kept until lkg_state_forget_kept() or the next start.
 */
int lkg_state_keep_component(const struct lkg_state *state, const char *component);
int lkg_state_restore_component(const struct lkg_state *state, const char *component);
void lkg_state_forget_kept(const struct lkg_state *state, const char *component);
int lkg_state_save_component(const struct lkg_state *state, const char *component,
                             const struct lkg_component_state *value, bool durable, struct lkg_error *err);
