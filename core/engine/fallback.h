/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remains usable when lkgfs is gone for good: a copy of the served document as a plain file in the source
 * directory.
 *
 *     .lkgfs-fallback/<view name>   always; mode and owner of the view file
 *     <view name>                   only where the source directory has no such file
 *
 * Both carry the extended attribute user.lkgfs.fallback, whose value is the SHA-256 of the content. A file that carries
 * it is never a base. Somebody who edits the copy under the view's name means it as a base: its content no longer has
 * that digest, so the attribute is removed, and from then on it is one.
 *
 * Where extended attributes are not supported only the copy in .lkgfs-fallback is written.
 */
#pragma once

#include <lkg/error.h>

#include "config.h"
#include "generation.h"

#define LKG_FALLBACK_XATTR "user.lkgfs.fallback"

/** lkg_fallback_is_ours() - the file carries the attribute. One system call when it does not exist or does not. */
bool lkg_fallback_is_ours(int source_fd, const char *name);

/**
 * lkg_fallback_claim() - is @name ours, or was it edited and is a base from now on?
 * Return: true while it is ours.
 */
bool lkg_fallback_claim(int source_fd, const char *name, struct lkg_report *report);

/** lkg_fallback_write() - bring the copies up to date; unchanged ones are not written. Failures are findings. */
void lkg_fallback_write(int source_fd, const struct lkg_config_component *component,
                        const struct lkg_generation *generation, struct lkg_report *report);

/** lkg_fallback_withdraw() - the view name is not claimed any more: no copy under it may show through. */
void lkg_fallback_withdraw(int source_fd, const struct lkg_config_component *component);
