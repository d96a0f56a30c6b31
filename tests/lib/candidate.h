/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates made in memory, as a stack would make them from files, for callers that judge without a disk.
 * Free one with candidate_free(), not with lkg_candidate_unref(): it belongs to no stack.
 *
 * In two builds with the same layer (made once, by layer_decode()) the judge sees the same document.
 */
#pragma once

#include <lkg/documents.h>
#include <lkg/schema.h>
#include <lkg/stack.h>

/* One parsed layer; doc is NULL if it could not be parsed. */
struct made_layer {
        enum lkg_layer_role role;
        char name[24], file[48];
        struct lkg_value *doc; /* one reference */
};

/** layer_decode() - parse @text as the layer @name. Return: 0; -EBADMSG (@report); -ENOMEM. */
static inline int layer_decode(enum lkg_layer_role role, const char *name, const char *text, size_t size,
                               struct lkg_report *report, struct made_layer *ret)
{
        bool base = role == LKG_LAYER_BASE || role == LKG_LAYER_REMOTE;
        unsigned flags = base ? 0 : LKG_DECODE_STRICT | LKG_DECODE_UNTYPED;
        struct lkg_source *source;
        char layer[48];
        int r;

        *ret = (struct made_layer){ .role = role };
        (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
        (void)snprintf(ret->file, sizeof(ret->file), "/e/%s%s", base ? "" : "d/", name);
        (void)snprintf(layer, sizeof(layer), "%s %s", lkg_layer_role_name(role), name);
        source = lkg_source_new(layer, ret->file);
        r = source ? lkg_decode(text, size, lkg_detect_format(text, size), flags, source, report, &ret->doc)
                   : -ENOMEM;
        lkg_source_unref(source);
        return r;
}

static inline void layer_free(struct made_layer *layer)
{
        layer->doc = lkg_value_unref(layer->doc);
}

static inline void candidate_free(struct lkg_candidate *candidate)
{
        for (size_t i = 0; i < candidate->n_layers; i++)
                lkg_value_unref((struct lkg_value *)candidate->layers[i].doc);
        free(candidate->layers);
        lkg_value_unref(candidate->again.merged);
        lkg_value_unref(candidate->base);
        lkg_value_unref(candidate->merged);
        free(candidate->without);
        lkg_value_unref(candidate->doc);
        lkg_value_unref(candidate->effective);
        lkg_report_deinit(&candidate->report);
        *candidate = (struct lkg_candidate){ 0 };
}

/* Merge @layer over the document @below, which may be NULL. */
static inline int layer_merge(const struct made_layer *layer, const struct lkg_value *below,
                              struct lkg_report *report, struct lkg_value **ret)
{
        if (!below) {
                *ret = lkg_value_ref(layer->doc);
                return 0;
        }
        if (layer->role == LKG_LAYER_INSTANCE)
                return lkg_merge_strategic(below, layer->doc, report, ret);
        *ret = lkg_merge_json(below, layer->doc);
        return 0;
}

/** candidate_build() - fold @layers. Return: 0; -EBADMSG: a layer that does not merge; -ENOMEM. */
static inline int candidate_build(const struct made_layer *layers, size_t n, struct lkg_candidate *ret)
{
        int r = 0;

        *ret = (struct lkg_candidate){ .refs = 1, .state = LKG_CANDIDATE_VALID };
        ret->layers = calloc(n + 1, sizeof(*ret->layers));
        if (!ret->layers)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < n; i++) {
                struct lkg_value *merged = NULL;

                r = layer_merge(&layers[i], ret->merged, &ret->report, &merged);
                if (r < 0)
                        break;
                ret->layers[ret->n_layers] = (struct lkg_layer_info){
                        .role = layers[i].role,
                        .name = layers[i].name,
                        .file = layers[i].file,
                        .beside = layers[i].file,
                        .doc = lkg_value_ref(layers[i].doc),
                        .type = layers[i].role == LKG_LAYER_INSTANCE ? LKG_PATCH_STRATEGIC
                                : ret->n_layers == 0                 ? LKG_PATCH_BASE
                                                                     : LKG_PATCH_MERGE,
                        .whole = true,
                        .cookie = (unsigned)i + 1,
                };
                ret->n_layers++;
                lkg_value_unref(ret->merged);
                ret->merged = merged;
                if (layers[i].role == LKG_LAYER_BASE || layers[i].role == LKG_LAYER_REMOTE)
                        ret->base = lkg_value_ref(merged);
                ret->has_base |= layers[i].role == LKG_LAYER_BASE;
                ret->has_dropin_dir |= layers[i].role == LKG_LAYER_DROPIN;
        }
        ret->doc = lkg_value_ref(ret->merged);
        return r;
}
