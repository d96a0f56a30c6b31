/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A generation: one published document of one component, with everything that readers may see of it.
 * Immutable and reference counted; used by the engine's thread only.
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/source.h>
#include <lkg/stack.h>

struct lkg_text {
        char *data; /* NUL-terminated */
        size_t size;
};

struct lkg_generation {
        unsigned refs;
        uint64_t number;
        uint64_t time_ns;                        /* wall time of the publication */
        bool has_base;                           /* of a local one: `init`, else `default` */
        char source[LKG_SOURCE_ID_MAX + 1];      /* id of the remote configuration in it; "" = local */
        char source_sha256[LKG_SHA256_HEX];      /* of the bytes of that; "" = local, or not known */
        char object[2 * LKG_IDENTIFIER_MAX + 2]; /* its namespace/name */
        char sha256[LKG_SHA256_HEX];
        struct lkg_text document; /* the bytes served */
        struct lkg_text shown;  /* the same with secrets masked; data NULL = no secrets, show the document */
        struct lkg_text origin; /* TSV */
        struct lkg_text meta;   /* meta.json */
};

/**
 * lkg_document_render() - render the document of a valid candidate as it would be served.
 * @hint: text of the first comment line of a YAML document, without `# ` and newline; JSON gets none
 *
 * Failure is sticky in @buf.
 */
void lkg_document_render(const struct lkg_value *doc, enum lkg_format format, const char *hint,
                         struct lkg_buf *buf);

/**
 * lkg_candidate_judge() - call lkg_judge_candidate(), then render a valid candidate and read it with a second
 * reader (<lkg/readback.h>): a difference is the error finding LKG2033. A lkg_judge_fn.
 */
int lkg_candidate_judge(struct lkg_candidate *candidate, void *judge);

#define LKG_ORIGIN_BYTES_MAX (4u << 20)
/**
 * lkg_origin_render() - the text of `origin`: as many lines as fit into LKG_ORIGIN_BYTES_MAX, and one line
 * with the number of omitted ones.
 */
void lkg_origin_render(const struct lkg_value *doc, struct lkg_buf *buf);

/* Returns the digest of a layer's canonical text if it is already computed, else NULL. */
typedef const char *lkg_layer_digest_fn(const struct lkg_layer_info *layer, size_t i, void *userdata);

/**
 * lkg_generation_new() - make a generation of a valid candidate.
 * @source:   the remote configuration in it; local or NULL = none
 * @document: its rendered bytes; taken over, even on failure
 * @digest:   avoids rendering unchanged layers; may be NULL
 *
 * Return: 0 or -ENOMEM. Caller owns one reference.
 */
int lkg_generation_new(const struct lkg_candidate *candidate, const struct lkg_config_source *source,
                       const char *hint, uint64_t number, uint64_t time_ns, struct lkg_text document,
                       lkg_layer_digest_fn *digest, void *userdata, struct lkg_generation **ret);

/**
 * lkg_generation_stored() - make a generation of which only the document is left.
 * @document: taken over, even on failure
 *
 * Its origin is `stored`; its layers are unknown.
 * Return: 0; -EBADMSG: not a document; -ENOMEM.
 */
int lkg_generation_stored(const struct lkg_config_source *source, uint64_t number, uint64_t time_ns,
                          struct lkg_text document, struct lkg_generation **ret);

struct lkg_generation *lkg_generation_alloc(void); /* empty, one reference */
struct lkg_generation *lkg_generation_ref(struct lkg_generation *generation);
struct lkg_generation *lkg_generation_unref(struct lkg_generation *generation);
static inline void lkg_generation_unrefp(struct lkg_generation **generation)
{
        *generation = lkg_generation_unref(*generation);
}

/** lkg_generation_shown() - the document without secrets. */
static inline const struct lkg_text *lkg_generation_shown(const struct lkg_generation *generation)
{
        return generation->shown.data ? &generation->shown : &generation->document;
}

/** lkg_local_word() - `init` or `default`. */
static inline const char *lkg_local_word(bool has_base)
{
        return has_base ? "init" : "default";
}

/** lkg_layer_entry_name() - `NNNN-<role>-<name>` of layer @i, slashes replaced, short enough for a suffix. */
void lkg_layer_entry_name(const struct lkg_layer_info *layer, size_t i, char *buf, size_t size);
