/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the publisher: what was last rendered, as files; and the interfaces between its parts. */
#pragma once

#include <lkg/text.h>
#include <lkg/publish.h>

#include "blob.h"
#include "status.h"

/* One file as last rendered; mtime is the publication in which its content last changed. */
struct lkg_file_slot {
        struct lkg_blob *blob; /* NULL = no such file */
        uint64_t mtime_ns;
};

/*
 * The same for a small file that is rendered with almost every publication: its bytes are a part of the
 * blob.
 */
struct lkg_part_slot {
        struct lkg_file_slot file;
        char sha256[LKG_SHA256_HEX]; /* of the part; "" = the whole blob */
        uint64_t size, offset;       /* of the part */
};

/* Values are immutable, so equal pointers mean equal texts. */
struct lkg_layer_slot {
        char *name;  /* NNNN-role-name */
        char *layer; /* the layer's own name */
        enum lkg_layer_role role;
        struct lkg_value *doc_value; /* shown in its file; one reference */
        unsigned merged_cookie;      /* of the layer when the result was rendered; 0 = it is not shown */
        struct lkg_file_slot doc, merged;
};

struct lkg_history_slot {
        uint64_t number;
        struct lkg_file_slot document, origin, meta;
};

struct lkg_bad_slot {
        char *id;
        struct lkg_file_slot slot;
};

/* What is shown of one component. All zero = nothing. */
struct lkg_shown {
        struct lkg_file_slot document;      /* of the active generation */
        struct lkg_file_slot good_document; /* lkg/ */
        /* for the document that a rollback would serve, if it is local */
        bool good_has_base;
        struct lkg_bad_slot *bad;
        size_t n_bad;
        struct lkg_part_slot status[LKG_STATUS_FILES_MAX];
        struct lkg_layer_slot *layers;
        size_t n_layers;
        bool layers_cut; /* more layers than the view shows */
        struct lkg_history_slot *past;
        size_t n_past;
        uint64_t changed_ns; /* mtime of the component's directories */
};

/* A part that has not been written yet. */
struct lkg_pending_part {
        struct lkg_part_slot *slot;
        struct lkg_part_slot now; /* its new state; without the blob */
};

/* The small files of one publication in one blob: a tenth of the cost of separate files. */
struct lkg_pack {
        struct lkg_buf bytes;
        struct lkg_pending_part *parts;
        size_t n_parts, n_allocated;
};

struct lkg_kept_blobs {
        uint64_t number;
        struct lkg_blob **blobs;
        size_t n_blobs;
};

struct lkg_publisher {
        int runtime_fd; /* borrowed */
        struct lkg_blobs blobs;
        struct lkg_pack pack;
        struct lkg_shown shown[LKG_COMPONENTS_MAX]; /* by the component's index */
        uint64_t number;                            /* of the current publication */
        struct lkg_kept_blobs *kept;
        size_t n_kept;
        size_t n_entries, n_bytes; /* of the last manifest: an estimate for the next one */
        /* there was no publication when we started: the first start with this runtime directory */
        bool fresh;
};

/* ---- slots: slot.c ---- */

void lkg_slot_clear(struct lkg_publisher *p, struct lkg_file_slot *slot);
/**
 * lkg_slot_fill() - set new content; equal content keeps its time.
 * Return: 0; -ENOSPC ...: nothing has changed.
 */
int lkg_slot_fill(struct lkg_publisher *p, struct lkg_file_slot *slot, const void *data, size_t size,
                  uint64_t mtime_ns, struct lkg_error *err);
/** lkg_slot_fill_buf() - the same from a buffer, which is empty afterwards. */
int lkg_slot_fill_buf(struct lkg_publisher *p, struct lkg_file_slot *slot, struct lkg_buf *buf,
                      uint64_t mtime_ns, struct lkg_error *err);

/**
 * lkg_part_fill() - like lkg_slot_fill_buf(), for a small file: its bytes are added to the pack of this
 * publication. @slot must not move until lkg_pack_finish().
 */
int lkg_part_fill(struct lkg_publisher *p, struct lkg_part_slot *slot, struct lkg_buf *buf,
                  uint64_t mtime_ns, struct lkg_error *err);
/**
 * lkg_pack_finish() - write the pack; from now on the slots show it.
 * Return: 0; -errno: all of them are unchanged.
 */
int lkg_pack_finish(struct lkg_publisher *p, struct lkg_error *err);
/** lkg_pack_drop() - discard it. */
void lkg_pack_drop(struct lkg_publisher *p);

/* ---- layers/ and history/: publish-layers.c ---- */

/**
 * lkg_publish_component_layers() - bring at most @budget files of layers/ of component @i up to date.
 * Return: 1: more to do; 0: done, the mark is cleared; -errno.
 */
int lkg_publish_component_layers(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t i,
                                 size_t budget, struct lkg_error *err);

/** lkg_publish_component_history() - update the slots from the list of records. Return: 0 or -errno. */
int lkg_publish_component_history(struct lkg_publisher *p, const struct lkg_component *c,
                                  struct lkg_shown *shown, struct lkg_error *err);
void lkg_history_slot_clear(struct lkg_publisher *p, struct lkg_history_slot *slot);
