/* SPDX-License-Identifier: Apache-2.0 */
#include "release.h"

int lkg_release_hidden_metrics(const char *text, size_t size, unsigned release, char *reason)
{
        char want[24];

        if (size == 0)
                return 0;
        (void)snprintf(want, sizeof(want), "%u.%u", release / 100, release % 100 - 1);
        if (lkg_span_is(lkg_span(text, size), want))
                return 0;
        return lkg_refuse(reason,
                          "only the minor version before the component's is allowed; want %s or nothing",
                          want);
}
