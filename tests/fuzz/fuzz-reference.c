/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a reference: an accepted one has names that are safe in paths, and means the same in the
 * short form.
 */

#include <lkg/objects.h>

#include "fuzz-document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lkg_reference reference, again;
        struct lkg_error err = { 0 };
        char text[3 * (LKG_IDENTIFIER_MAX + 1)];
        int r = lkg_reference_from_text((const char *)data, size, &reference, &err);

        FUZZ_CHECK(r == 0 || (r == -EINVAL && err.message[0]));
        if (r < 0 || reference.type == LKG_REFERENCE_LOCAL)
                return 0;
        FUZZ_CHECK(lkg_identifier_ok(reference.ns) && lkg_identifier_ok(reference.name) &&
                   lkg_identifier_ok(reference.key));
        FUZZ_CHECK(!reference.uid[0] || lkg_identifier_ok(reference.uid));
        (void)snprintf(text, sizeof(text), "%s/%s/%s", reference.ns, reference.name, reference.key);
        FUZZ_CHECK(lkg_reference_from_text(text, strlen(text), &again, NULL) == 0);
        memset(reference.uid, 0, sizeof(reference.uid)); /* the short form has no uid */
        FUZZ_CHECK(memcmp(&reference, &again, sizeof(again)) == 0);
        return 0;
}
