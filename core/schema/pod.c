/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/pod.h>
#include <lkg/tree.h>
#include "findings-codes.h"
void lkg_pod_judge(const struct lkg_value *doc, unsigned release, struct lkg_report *report)
{
        const char *kind = lkg_map_get_string(doc, "kind");

        (void)release;
        if (!kind || strcmp(kind, "Pod") != 0)
                lkg_report_add(report, LKG_ERROR, LKG_F_NOT_ONE_OF,
                               LKG_AT(lkg_map_get(doc, "kind") ? lkg_map_get(doc, "kind") : doc),
                               "kind: want Pod");
}
