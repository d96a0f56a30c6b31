/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a duration: an accepted one prints in a canonical form with the same meaning. */
#include <lkg/text.h>

#include "fuzz-document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char canonical[LKG_DURATION_MAX], again[LKG_DURATION_MAX], reason[LKG_REFUSAL_MAX] = "";
        int64_t ns = 0, back = 0;
        size_t n;

        if (lkg_duration_parse((const char *)data, size, &ns, reason) < 0) {
                FUZZ_CHECK(*reason && memchr(reason, '\0', sizeof(reason)));
                return 0;
        }
        n = lkg_duration_format(ns, canonical);
        FUZZ_CHECK(n == strlen(canonical));
        FUZZ_CHECK(lkg_duration_parse(canonical, n, &back, NULL) == 0);
        FUZZ_CHECK(back == ns);
        (void)lkg_duration_format(back, again);
        FUZZ_CHECK(strcmp(canonical, again) == 0);
        return 0;
}
