/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of a process of lkgfs that nobody asked for, as lkgfsd saw them. They are part of the memory that it shares with the file
 * server (lkg/shared.h), which shows them in metrics.prom: a process that is killed ten times a second and started again is otherwise
 * up whenever somebody looks.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define LKG_ENDS_KEPT      1024u
#define LKG_ENDS_RECENT_NS UINT64_C(60000000000)

struct lkg_ends {
        _Atomic uint64_t n;           /* in total; counts when the rest is written */
        _Atomic int32_t code, status; /* of the last one: si_code and si_status of waitid(2); 0 = unknown */
        _Atomic uint64_t
                at_ns[LKG_ENDS_KEPT]; /* CLOCK_BOOTTIME of the latest; number i is at i % LKG_ENDS_KEPT */
};

void lkg_ends_note(struct lkg_ends *ends, int code, int status, uint64_t now_ns);
/** lkg_ends_recent() - how many there were within LKG_ENDS_RECENT_NS; at most LKG_ENDS_KEPT. */
unsigned lkg_ends_recent(const struct lkg_ends *ends, uint64_t now_ns);
/** lkg_ends_reason() - of the last one: "killed by SIGKILL", "exit code 70", "unknown". */
void lkg_ends_reason(const struct lkg_ends *ends, char *ret, size_t size);
