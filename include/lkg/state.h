/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must survive a restart or a reboot, in the private state directory (0700):
 *
 *     generation-next              decimal: the first generation number that was never handed out
 *     components/<component>.json  hold, try, condition, last good generation
 *     history/<component>/<n>/     one generation: see history.h
 *
 * Every file is replaced atomically. A file that cannot be read or understood is reported and treated as absent:
 * starting with less memory is better than not starting.
 */
#pragma once

#include <limits.h>

#include <lkg/error.h>
#include <lkg/lifecycle.h>

struct lkg_state {
        int fd;                  /* state directory; borrowed */
        uint64_t next, reserved; /* numbers next..reserved-1 may be handed out without touching the disk */
};

/** lkg_state_open() - create the directories, read generation-next. @report: what could not be read. */
int lkg_state_open(int fd, struct lkg_state *ret, struct lkg_report *report, struct lkg_error *err);

/**
 * lkg_state_next_generation() - a number that was never used. Reserves a block of 64 durably when none is left; a
 * crash leaves a gap.
 */
int lkg_state_next_generation(struct lkg_state *state, uint64_t *ret, struct lkg_error *err);

/** lkg_state_reserve_ahead() - when few numbers are left, get the next block now, while nobody waits. */
int lkg_state_reserve_ahead(struct lkg_state *state, struct lkg_error *err);

/** lkg_state_at_least() - numbers up to @used were seen in use: never hand them out again. */
void lkg_state_at_least(struct lkg_state *state, uint64_t used);

/**
 * lkg_state_load_component() - read one component's state.
 * A try deadline of an earlier boot is converted through the wall clock; one of this boot is exact.
 * Return: 0, also when there is none; -ENOMEM. What cannot be understood goes to @report and to `lost` of @ret.
 */
int lkg_state_load_component(const struct lkg_state *state, const char *component,
                             struct lkg_component_state *ret, struct lkg_report *report);
/**
 * lkg_state_keep_component() - keep the record as it is under another name, so that lkg_state_restore_component() brings it
 * back without needing space. Kept until lkg_state_forget_kept(), or the next start.
 */
int lkg_state_keep_component(const struct lkg_state *state, const char *component);
int lkg_state_restore_component(const struct lkg_state *state, const char *component);
void lkg_state_forget_kept(const struct lkg_state *state, const char *component);
int lkg_state_save_component(const struct lkg_state *state, const char *component,
                             const struct lkg_component_state *value, bool durable, struct lkg_error *err);
