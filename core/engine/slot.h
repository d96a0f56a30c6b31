/* SPDX-License-Identifier: Apache-2.0 */
/* What publish.c and publish-layers.c share: filling the slots of a component. Private to the publisher. */
#pragma once

#include <lkg/buf.h>

#include "publish.h"

void lkg_slot_clear(struct lkg_publisher *p, struct lkg_file_slot *slot);
/** lkg_slot_fill() - new content; the same content keeps its time. Return: 0; -ENOSPC ... and nothing has changed. */
int lkg_slot_fill(struct lkg_publisher *p, struct lkg_file_slot *slot, const void *data, size_t size,
                  uint64_t mtime_ns, struct lkg_error *err);
/** lkg_slot_fill_buf() - the same from a buffer, which is empty afterwards. */
int lkg_slot_fill_buf(struct lkg_publisher *p, struct lkg_file_slot *slot, struct lkg_buf *buf,
                      uint64_t mtime_ns, struct lkg_error *err);

/**
 * lkg_part_fill() - as lkg_slot_fill_buf(), for a small file: its bytes join the pack of this publication. @slot must stay where it is
 * until lkg_pack_finish().
 */
int lkg_part_fill(struct lkg_publisher *p, struct lkg_part_slot *slot, struct lkg_buf *buf,
                  uint64_t mtime_ns, struct lkg_error *err);
/** lkg_pack_finish() - write the pack; the slots show it from now on. Return: 0; -errno: all of them are as they were. */
int lkg_pack_finish(struct lkg_publisher *p, struct lkg_error *err);
/** lkg_pack_drop() - nothing of it is needed. */
void lkg_pack_drop(struct lkg_publisher *p);

/**
 * lkg_publish_component_layers() - bring at most @budget files of layers/ of @c up to date.
 * Return: 1 more to do; 0 done, the mark is cleared; -errno.
 */
int lkg_publish_component_layers(struct lkg_publisher *p, const struct lkg_publication_input *in,
                                 struct lkg_component *c, size_t budget, struct lkg_error *err);

/** lkg_publish_component_history() - the slots follow the list of records. Return: 0 or -errno. */
int lkg_publish_component_history(struct lkg_publisher *p, struct lkg_component *c, struct lkg_error *err);
void lkg_history_slot_clear(struct lkg_publisher *p, struct lkg_history_slot *slot);
