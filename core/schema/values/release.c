/* SPDX-License-Identifier: Apache-2.0 */
#include "release.h"

#include <lkg/schema.h>

int lkg_release_hidden_metrics(const char *text, size_t size, unsigned release, char *reason)
{
        char want[LKG_RELEASE_TEXT_MAX];

        if (size == 0)
                return 0;
        (void)lkg_release_text(release - 1, want);
        if (lkg_span_is(lkg_span(text, size), want))
                return 0;
        return lkg_refuse(reason,
                          "only the minor version before the component's is allowed; want %s or nothing",
                          want);
}
