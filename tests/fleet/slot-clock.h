/* SPDX-License-Identifier: Apache-2.0 */
/* Another clock for the slots of a node, and for nothing else of it. */
#pragma once

#include <stdbool.h>

extern struct slot_clock {
        unsigned lapse; /* patience and windows pass so many times faster */
        bool wrong;     /* each node has another wall time, by up to ten years */
} slot_clock;
