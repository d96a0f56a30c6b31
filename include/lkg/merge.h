/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges two documents. Inputs are never changed; the result shares unchanged parts, and every leaf keeps
 * its origin and the value that it shadows.
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/error.h>

/** The fields of metav1.TypeMeta, apiVersion and kind. Layers above the first one do not change them. */
#define LKG_HEADER_FIELDS 2
extern const char *const lkg_header_fields[LKG_HEADER_FIELDS];

/**
 * lkg_merge_json() - JSON merge patch as gopkg.in/evanphx/json-patch.v4 applies it (mergePatch).
 * @base: a map (anything else is replaced by the patch)
 * @ret:  caller owns one reference
 *
 * Return: 0 or -ENOMEM.
 */
int lkg_merge_json(const struct lkg_value *base, const struct lkg_value *patch, struct lkg_value **ret);

/**
 * lkg_merge_json_into() - the same, but the result replaces *@base, whose reference is taken over.
 * Parts without other references are changed in place. On failure *@base is NULL.
 */
int lkg_merge_json_into(struct lkg_value **base, const struct lkg_value *patch);

/**
 * lkg_merge_json_patch() - the same for two whole documents of any shape, as json-patch's MergePatch handles
 * them: a target that is not a map is replaced; a list as a patch replaces any target.
 *
 * Return: 0; -EBADMSG: @report says which of the two is unsuitable; -ENOMEM.
 */
int lkg_merge_json_patch(const struct lkg_value *target, const struct lkg_value *patch,
                         struct lkg_report *report, struct lkg_value **ret);

/*
 * What a strategic merge needs to know about the Go type of a position in the document. Implemented by
 * core/schema; small enough to be passed by value.
 */
enum lkg_merge_class {
        LKG_MERGE_ANY,    /* unknown: everything may be merged */
        LKG_MERGE_STRUCT, /* has fields */
        LKG_MERGE_LIST,   /* of anything except lists */
        LKG_MERGE_OTHER,  /* a map, a list of lists, a scalar: nothing below it has a field */
};

struct lkg_merge_type {
        enum lkg_merge_class class;
        bool pointer; /* the field is a pointer (`*bool`, `*Struct`) */
        /*
         * LKG_MERGE_STRUCT: the field with this JSON name, else the first one with this name in another
         * case (lkg_merge_key_folds). Return: false if there is none.
         */
        bool (*member)(const struct lkg_merge_type *type, const char *key, size_t key_size,
                       struct lkg_merge_type *ret);
        const void *data; /* for @member; borrowed */
};

/** lkg_merge_key_folds() - is @key the name of a field, ignoring case as Go's encoding/json does? */
bool lkg_merge_key_folds(const char *name, const char *key, size_t key_size);

/**
 * lkg_merge_strategic_typed() - strategic merge patch on a kind whose lists are all atomic, as
 * k8s.io/apimachinery/pkg/util/strategicpatch applies it: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/x`,
 * `$setElementOrder/x` are honoured.
 * @base, @patch: maps; null counts as an empty one, as upstream
 * @type: of the kind; NULL = unknown. If known, a map or list is merged into another only where the kind has
 *        a struct or list field; scalars, and members of one side only, pass through.
 *
 * Return: 0; -EBADMSG: @report says what is wrong with the patch; -ENOMEM.
 */
int lkg_merge_strategic_typed(const struct lkg_value *base, const struct lkg_value *patch,
                              const struct lkg_merge_type *type, struct lkg_report *report,
                              struct lkg_value **ret);
/** lkg_merge_strategic() - the same without a type. */
int lkg_merge_strategic(const struct lkg_value *base, const struct lkg_value *patch,
                        struct lkg_report *report, struct lkg_value **ret);
/** lkg_patch_json() - RFC 6902 like evanphx/json-patch v4. Return: 0; -EBADMSG (@report); -ENOMEM. */
int lkg_patch_json(const struct lkg_value *base, const struct lkg_value *patch, struct lkg_report *report,
                   struct lkg_value **ret);
