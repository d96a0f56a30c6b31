/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as YAML, lenient and strict. */
#include "fuzz-document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        fuzz_decode(data, size, LKG_FORMAT_YAML, 0);
        fuzz_decode(data, size, LKG_FORMAT_YAML, LKG_DECODE_STRICT | LKG_DECODE_UNTYPED);
        return 0;
}
