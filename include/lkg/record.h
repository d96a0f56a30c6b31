/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small JSON files of ours: state, history, dynamic configuration. They are read here; their
 * owners write them as text with lkg_write_file_atomic(). No state; callable from any thread.
 */
#pragma once

#include <lkg/doc.h>

#define LKG_RECORD_BYTES_MAX (8u << 20)

/**
 * lkg_record_read_text() - read a whole file of ours: never a symlink, never blocks, regular files only.
 * Return: 0; -ENOENT; -EBADMSG: it is not a regular file; -EFBIG: over @max; -ENOMEM; -errno. Caller frees.
 */
int lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                         struct lkg_error *err);

/**
 * lkg_record_read() - read the JSON object in a file of ours.
 * Return: see lkg_record_read_text(); -EBADMSG also if it is not a JSON object.
 */
int lkg_record_read(int dirfd, const char *path, struct lkg_value **ret, struct lkg_error *err);

/**
 * lkg_record_parse_u64() - parse decimal digits with at most one line break after them.
 * Return: 0 or -EBADMSG.
 */
int lkg_record_parse_u64(const char *text, uint64_t *ret);

/** lkg_record_number() - member @name of a map as a number, or @fallback. */
uint64_t lkg_record_number(const struct lkg_value *map, const char *name, uint64_t fallback);
