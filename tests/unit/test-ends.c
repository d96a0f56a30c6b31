/* SPDX-License-Identifier: Apache-2.0 */
/* How often a process of ours ended, and why it did the last time. */

#include <signal.h>
#include <stdlib.h>

#include <lkg/base.h>
#include <lkg/process.h>

#include "unit.h"

#define SECOND LKG_NSEC_PER_SEC

static int setup(void **state)
{
        *state = calloc(1, sizeof(struct lkg_ends));
        return *state ? 0 : -1;
}

static int teardown(void **state)
{
        free(*state);
        return 0;
}

TEST_WITH(test_those_of_the_last_minute, setup, teardown)
{
        struct lkg_ends *ends = *state;

        assert_int_equal(lkg_ends_recent(ends, 1000 * SECOND), 0);
        for (unsigned i = 0; i < 100; i++)
                lkg_ends_note(ends, CLD_KILLED, SIGKILL, (1000 + i) * SECOND);
        assert_int_equal(ends->n, 100);
        assert_int_equal(lkg_ends_recent(ends, 1099 * SECOND), 60);
        assert_int_equal(lkg_ends_recent(ends, 1158 * SECOND), 1);
        assert_int_equal(lkg_ends_recent(ends, 1159 * SECOND), 0);
}

TEST_WITH(test_more_than_are_kept, setup, teardown)
{
        struct lkg_ends *ends = *state;

        for (unsigned i = 0; i < 3 * LKG_ENDS_KEPT; i++)
                lkg_ends_note(ends, CLD_EXITED, 70, 1000 * SECOND + i);
        assert_int_equal(ends->n, 3 * LKG_ENDS_KEPT);
        assert_int_equal(lkg_ends_recent(ends, 1001 * SECOND), LKG_ENDS_KEPT);
        ends->n = UINT64_MAX; /* written by a compromised file server */
        assert_int_equal(lkg_ends_recent(ends, 1001 * SECOND), LKG_ENDS_KEPT);
        lkg_ends_note(ends, CLD_EXITED, 70, 1001 * SECOND);
}

TEST_WITH(test_the_reason, setup, teardown)
{
        static const struct {
                int code, status;
                const char *reason;
        } rows[] = { { CLD_EXITED, 0, "exit code 0" },
                     { CLD_EXITED, 70, "exit code 70" },
                     { CLD_KILLED, SIGKILL, "killed by SIGKILL" },
                     { CLD_DUMPED, SIGSEGV, "killed by SIGSEGV" },
                     { CLD_KILLED, 4711, "killed by signal 4711" },
                     { 0, 0, "unknown" } };
        struct lkg_ends *ends = *state;
        char reason[64];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                lkg_ends_note(ends, rows[i].code, rows[i].status, SECOND);
                lkg_ends_reason(ends, reason, sizeof(reason));
                assert_string_equal(reason, rows[i].reason);
        }
}
