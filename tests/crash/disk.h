/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk as a record of calls, and its possible contents after a power failure.
 *
 * The model is the strict one of ALICE (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014) and of fsync(2):
 *
 *   - A name (create, mkdir, link, rename, unlink) belongs to its directory. It is durable when an fsync of that directory has
 *     been called after it and has returned; of a rename between two directories, of both. fsync of a file makes none of its
 *     names durable, and fsync of a directory none of its files' bytes.
 *   - Bytes and size belong to the file. They are durable when an fsync of the file has returned after them.
 *   - What is not durable may be lost or kept, each call for itself and in any order: a later rename is there and an earlier
 *     one is not; a name is there and the bytes of its file are not. A call on names happens whole or not at all, as every
 *     journal gives it; a rename that is lost leaves both names as they were. A write that is lost leaves nothing, zeros of
 *     its size, or its first half.
 *
 * ext4 and XFS keep more than that (names in their order; zeros instead of old bytes). Permissions, times and extended attributes
 * are not looked at.
 */
#pragma once

#include "trace.h"

/* What happens to one call when the power fails. */
enum disk_fate { DISK_KEPT, DISK_LOST, DISK_ZEROS, DISK_HALF, _DISK_FATE_MAX };

struct disk;

/**
 * disk_new() - the contents of @top now, all of it durable. Names in @leave_out (terminated by NULL) are
 * ignored.
 */
struct disk *disk_new(const char *top, const char *const *leave_out);
struct disk *disk_free(struct disk *disk);

/**
 * disk_play() - @call has happened. Return: 1: it changed or flushed something relevant; 0; -EINVAL: it does
 * not fit.
 */
int disk_play(struct disk *disk, const struct trace_call *call);

/**
 * disk_points() - how many calls have changed or flushed something: the power may fail after each, at points
 * 0 to this.
 */
size_t disk_points(const struct disk *disk);

/**
 * disk_loose() - the calls before point @at that were not durable by then.
 * @ret: their numbers, ascending; room for @max
 * Return: how many.
 */
size_t disk_loose(const struct disk *disk, size_t at, size_t *ret, size_t max);
/** disk_is_bytes() - is this call about bytes, so that it can be lost in more than one way? */
bool disk_is_bytes(const struct disk *disk, size_t call);
/** disk_describe() - describe the call. Caller frees. */
char *disk_describe(const struct disk *disk, size_t call);

/**
 * disk_digest() - digest of the contents of the disk after a power failure at point @at.
 * @fates: of the calls by number, as many as disk_points(); NULL = all are kept
 */
uint64_t disk_digest(const struct disk *disk, size_t at, const unsigned char *fates);
/** disk_digest_of() - the same, only of what is below @name. */
uint64_t disk_digest_of(const struct disk *disk, size_t at, const unsigned char *fates, const char *name);
/**
 * disk_write() - write the same contents as files below @name of @top, which exists and is empty. Return: 0
 * or -errno.
 */
int disk_write(const struct disk *disk, size_t at, const unsigned char *fates, const char *name,
               const char *top);
