/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes fallback copies (<lkg/fallback.h>) for the engine, to which the source directory is read-only. A helper writes them,
 * because a disk may block. Our settings say which files, with which owner and mode; the engine says when, and names the
 * document by its digest.
 */
#pragma once

#include <lkg/control.h>

struct lkg_supervisor;

/** lkg_fallback_request() - the engine asks; of several requests for one component the last one counts. */
void lkg_fallback_request(struct lkg_supervisor *s, const struct lkg_message *message);
/** lkg_fallback_busy() - is one being written, or to be written? At its end copies_done() of struct lkg_life is called. */
bool lkg_fallback_busy(const struct lkg_supervisor *s);
void lkg_fallback_cancel(struct lkg_supervisor *s);
