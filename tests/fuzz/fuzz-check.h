/* SPDX-License-Identifier: Apache-2.0 */
/* assert() for fuzz targets: it is active in release builds too, and a fuzzing engine sees it as a crash. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define FUZZ_CHECK(condition)                                                     \
        do {                                                                      \
                if (!(condition)) {                                               \
                        (void)fprintf(stderr, "does not hold: %s\n", #condition); \
                        abort();                                                  \
                }                                                                 \
        } while (0)
