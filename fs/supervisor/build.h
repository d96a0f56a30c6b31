/* SPDX-License-Identifier: Apache-2.0 */
/* Does a running program still match the file on disk? */
#pragma once

#include <lkg/base.h>

#define LKG_BUILD_ID_MAX 64

/**
 * lkg_build_id() - read the GNU build id of the ELF file @fd.
 * Return: its size, with the id in @ret; -ENOENT: it has none; -errno.
 */
int lkg_build_id(int fd, unsigned char ret[static LKG_BUILD_ID_MAX]);
/**
 * lkg_build_same() - does process @pid run the same build as the file @path has?
 *
 * Compares build ids, which packaging and stripping keep; without one, all bytes.
 * Return: 1; 0; -errno: unknown.
 */
int lkg_build_same(int pid, const char *path);
