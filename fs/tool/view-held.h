/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons why the view does not follow changes, from status/<component>/hold: a hold, a pin, a try, a
 * rollout. Shared by the verbs status and doctor. If a daemon does not provide the file, nothing counts as
 * held.
 */
#pragma once

#include "tool.h"

struct lkg_held {
        char *mode; /* "hold", "rollback", "try-expired"; NULL = free */
        char *generation, *since, *uid, *pid, *program, *until, *rollout; /* NULL = not given */
        bool newer_waits;
        bool on_try, try_armed;
};

void lkg_held_parse(const char *text, struct lkg_held *ret);
void lkg_held_read(const struct lkg_view *view, const char *component, struct lkg_held *ret);
void lkg_held_deinit(struct lkg_held *held);

/**
 * lkg_held_who() - "since T by uid U (pid P, PROGRAM)", or "since T, after a try by uid ...", as far as
 * known; nothing if unknown.
 */
void lkg_held_who(const struct lkg_held *held, struct lkg_buf *buf);

/** lkg_held_text() - the lines of `lkgfs status`; none if nothing is held. */
void lkg_held_text(const struct lkg_held *held, struct lkg_buf *buf);
void lkg_held_map(const struct lkg_held *held, struct lkg_tool_map *map);

/**
 * lkg_held_next() - the command that ends it, one line of advice.
 * Return: false: nothing is held or tried.
 */
bool lkg_held_next(const struct lkg_held *held, const char *component, struct lkg_buf *buf);
