/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every finding code, one row each, in order. A code never changes its meaning and is never used again.
 *
 * 1000-1999 one document, 2000-2999 layers and merging, 3000-3999 our own configuration, 4000-4999 the running system.
 */
#include <lkg/error.h>

const struct lkg_finding_kind lkg_finding_kinds[] = {
        /* code severity     title                                advice */
        { 1001, LKG_ERROR, "syntax error",
          "Correct the document at the place named; `lkgfs convert FILE` reads it alone." },
};
const size_t lkg_n_finding_kinds = LKG_ARRAY_SIZE(lkg_finding_kinds);
