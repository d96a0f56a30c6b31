/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes fallback copies (<lkg/publication.h>) for the engine, which has read-only access to the source
 * directory. A helper writes them, because a disk may block. Our settings determine the files, their owner
 * and mode; the engine determines when, and names the document by its digest.
 */
#pragma once

#include <lkg/messages.h>

struct lkg_supervisor;

/** lkg_fallback_request() - a request of the engine; of several for one component the last one counts. */
void lkg_fallback_request(struct lkg_supervisor *s, const struct lkg_message *message);
/**
 * lkg_fallback_busy() - is a copy being written, or waiting to be? At the end copies_done() of struct
 * lkg_life is called.
 */
bool lkg_fallback_busy(const struct lkg_supervisor *s);
void lkg_fallback_cancel(struct lkg_supervisor *s);
