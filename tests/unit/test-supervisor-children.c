/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a child, and how many of them are read at a time. */

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "unit.h"
#include "fs/supervisor/supervisor.h"

#define SAID 200 /* bytes; each message of the notifier is one */

static int left_in(int fd)
{
        int n = -1;

        assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
        return n;
}

TEST(test_one_that_talks_without_end_is_heard_in_turn)
{
        struct lkg_supervisor s = { 0 };
        struct lkg_child child = { .supervisor = &s, .row = &lkg_notifier_row, .kind = LKG_CHILD_NOTIFIER };
        char text[SAID] = "";
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        child.channel = pair[0];
        assert_int_equal(write(pair[1], text, SAID), SAID);
        assert_true(lkg_child_hear(&child));
        assert_int_equal(left_in(pair[0]), SAID - LKG_MESSAGES_AT_ONCE);
        lkg_child_hear_out(&child);
        assert_int_equal(left_in(pair[0]), 0);
        assert_false(lkg_child_hear(&child));
        assert_int_equal(close(pair[1]), 0);
        assert_false(lkg_child_hear(&child));
        assert_int_equal(close(pair[0]), 0);
        child.channel = -EBADF;
        assert_false(lkg_child_hear(&child));
}
