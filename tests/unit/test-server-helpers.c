/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the file server: every job is given to a thread that does not wait for something else. */
#include "unit.h"
#include "held-requests.h"

/* Two requests before the idle helper has run: it takes the first one, which may hang. */
TEST(test_two_at_once)
{
        struct crew crew = { .n = 1, .n_idle = 1 };

        assert_int_equal(crew_wake(&crew, 4), CREW_SIGNAL);
        assert_int_equal(crew_wake(&crew, 4), CREW_START);
        crew.n++;
        crew_woken(&crew);
        assert_int_equal(crew.n_idle, 0);
        assert_int_equal(crew.n_signalled, 0);
}

/* A signal is seen by a helper that has just given up waiting; the intended one wakes later, for nothing. */
TEST(test_a_signal_that_another_one_takes)
{
        struct crew crew = { .n = 2, .n_idle = 2 };

        assert_int_equal(crew_wake(&crew, 4), CREW_SIGNAL);
        crew_woken(&crew);
        assert_int_equal(crew.n_idle, 1);
        crew_woken(&crew);
        assert_int_equal(crew.n_idle, 0);
        assert_int_equal(crew_wake(&crew, 2), CREW_NOTHING);
}
