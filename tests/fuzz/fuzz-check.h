/* SPDX-License-Identifier: Apache-2.0 */
/* assert() of a fuzz target: it stays on in release builds, and a fuzzing engine takes it for a crash. */
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
