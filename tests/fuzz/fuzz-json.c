/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as JSON, lenient and strict. */
#include "fuzz-document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        fuzz_decode(data, size, LKG_FORMAT_JSON, 0);
        fuzz_decode(data, size, LKG_FORMAT_JSON, LKG_DECODE_STRICT | LKG_DECODE_UNTYPED);
        return 0;
}
