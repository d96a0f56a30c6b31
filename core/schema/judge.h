/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of lkg_judge. */
#pragma once

#include "pipeline.h"

/* One layer of the last candidate, and its own results. */
struct lkg_judged_layer {
        const struct lkg_value *doc; /* one reference; tells whether it is still the same */
        enum lkg_layer_role role;
        bool left_out; /* it is not in the merge */
        struct lkg_report lint;
        struct lkg_value *running; /* the typed document with all layers up to this one; NULL = failed */
        struct lkg_report report;  /* of that merge */
};

/*
 * The document of --config: the base with kubeadm's patches. If the base itself is broken, the other layers
 * are checked as if there were no base.
 */
struct lkg_judged_base {
        const struct lkg_value *doc; /* without its broken parts; NULL = none */
        const char *file;            /* directory for relative paths; NULL = none */
        bool broken;
        bool as_read; /* no patch has changed it: it may have a duplicate key */
};

struct lkg_judge {
        struct lkg_judge_config config;
        const struct lkg_schema *schema; /* of the last candidate */
        struct lkg_gates flag_gates;
        struct lkg_report flag_report; /* mistakes of the command line, independent of the files */

        /* the base as it was last loaded */
        struct lkg_judged_base base; /* with a reference to the document and a copy of the name */
        bool base_known;
        char *base_dir;
        struct lkg_value *loaded;  /* typed, complete */
        struct lkg_value *unread;  /* its values that could not be read */
        struct lkg_value *encoded; /* as JSON: what drop-ins are merged into */
        struct lkg_report base_report;

        struct lkg_judged_layer *layers;
        size_t n_layers;
};

/** lkg_has_misfit() - was a value left out because it did not decode? No component would run with the rest. */
bool lkg_has_misfit(const struct lkg_report *report);

/**
 * lkg_lint_layer() - findings about one layer alone (advice beyond the component's own checks).
 * @doc:   as parsed, a map
 * @below: the merge of the layers under it, or NULL
 * @role:  drop-ins are not decoded like the base
 * @all:   also gates that are set to their default
 */
void lkg_lint_layer(const struct lkg_schema *schema, const struct lkg_value *doc,
                    const struct lkg_value *below, enum lkg_layer_role role, bool all,
                    struct lkg_report *report);

/**
 * lkg_lint_whole() - advice that needs the whole document: @object is complete, @merged the document as
 * merged.
 */
void lkg_lint_whole(const struct lkg_judge *judge, const struct lkg_candidate *candidate,
                    const struct lkg_value *object, const struct lkg_value *unread,
                    struct lkg_report *report);

/**
 * lkg_serve() - make the document to serve for a kubelet: @merged, plus the fields that a component reading
 * only this file needs to get @object.
 * @object: typed, complete, before flags: the component's result from base and drop-ins
 * @ret:    one reference; @merged itself if nothing is needed
 *
 * Return: 0; -EBADMSG (@report).
 */
int lkg_serve(const struct lkg_judge *judge, const struct lkg_value *merged, const struct lkg_value *object,
              struct lkg_report *report, struct lkg_value **ret);
