/* SPDX-License-Identifier: Apache-2.0 */
/* A command is carried out or refused, never both. Rule: docs/specification.md 6.3. */

#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/messages.h>

#include "unit.h"
#include "tmpdir.h"

#define T UINT64_C(1800000000000000007) /* tickets start with the wall time in nanoseconds */

static struct lkg_claims claims;

static int clear(void **state)
{
        (void)state;
        memset(&claims, 0, sizeof(claims));
        return 0;
}

TEST_WITH(test_one_of_both, clear, NULL)
{
        assert_true(lkg_claim_offer(&claims, T));
        assert_true(lkg_claim_take(&claims, T));
        assert_int_equal(lkg_claim_withdraw(&claims, T),
                         LKG_CLAIM_TAKEN); /* too late: the engine's answer counts */
        lkg_claim_end(&claims, T);
        assert_true(lkg_claim_offer(&claims, T + 1));
        assert_int_equal(lkg_claim_withdraw(&claims, T + 1), LKG_CLAIM_NEVER);
        assert_false(lkg_claim_take(&claims, T + 1)); /* it was told that the command failed */
        assert_int_equal(lkg_claim_withdraw(&claims, T + 1), LKG_CLAIM_NEVER);
}

TEST_WITH(test_what_was_never_offered, clear, NULL)
{
        assert_false(lkg_claim_take(&claims, T));
        assert_true(lkg_claim_offer(&claims, T));
        lkg_claim_end(&claims, T);
        assert_false(lkg_claim_take(&claims, T));
}

TEST_WITH(test_a_word_belongs_to_one, clear, NULL)
{
        assert_true(lkg_claim_offer(&claims, T));
        assert_true(lkg_claim_offer(&claims, T)); /* by the next file server */
        assert_false(lkg_claim_offer(&claims, T + LKG_CLAIMS));
        assert_false(lkg_claim_take(&claims, T + LKG_CLAIMS));
        lkg_claim_end(&claims, T + LKG_CLAIMS);
        assert_true(lkg_claim_take(&claims, T));
        assert_false(lkg_claim_offer(&claims, T + LKG_CLAIMS));
        lkg_claim_end(&claims, T);
        assert_true(lkg_claim_offer(&claims, T + LKG_CLAIMS));
}

TEST_WITH(test_an_engine_that_dies_in_the_middle, clear, NULL)
{
        assert_true(lkg_claim_offer(&claims, T));
        assert_true(lkg_claim_take(&claims, T));
        assert_true(lkg_claim_take(&claims, T)); /* its successor, before the failure is noticed */
        lkg_claim_return(&claims, T);
        assert_true(lkg_claim_offer(&claims, T)); /* by the next file server */
        assert_true(lkg_claim_take(&claims, T));
        lkg_claim_return(&claims, T);
        assert_int_equal(lkg_claim_withdraw(&claims, T),
                         LKG_CLAIM_UNKNOWN); /* it may have been carried out */
        lkg_claim_return(&claims, T);
        assert_false(lkg_claim_take(&claims, T));
        assert_int_equal(lkg_claim_withdraw(&claims, T), LKG_CLAIM_NEVER);
}

static bool only_the_first(uint64_t ticket)
{
        return ticket == T;
}

TEST_WITH(test_a_new_file_server_keeps_what_waits, clear, NULL)
{
        assert_true(lkg_claim_offer(&claims, T));
        assert_true(lkg_claim_offer(&claims, T + 1));
        assert_true(lkg_claim_take(&claims, T + 1));
        lkg_claims_keep(&claims, only_the_first);
        assert_true(lkg_claim_take(&claims, T));
        assert_false(lkg_claim_take(&claims, T + 1));
}

TEST(test_two_processes_one_file)
{
        struct lkg_claims *server = NULL, *engine = NULL;
        struct lkg_error err = { 0 };
        char top[TMPDIR_MAX];
        struct stat st;
        int fd;

        assert_int_equal(tmpdir_make(top), 0);
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(lkg_claims_open(fd, &engine, &err), 0);
        assert_int_equal(lkg_claims_open(fd, &server, &err), 0);
        assert_true(lkg_claim_offer(server, T));
        assert_true(lkg_claim_take(engine, T));
        assert_int_equal(lkg_claim_withdraw(server, T), LKG_CLAIM_TAKEN);
        engine = lkg_claims_close(engine);
        assert_int_equal(lkg_claims_open(fd, &engine, &err), 0); /* the next engine */
        assert_true(lkg_claim_take(engine, T));
        assert_int_equal(fstatat(fd, LKG_CLAIMS_NAME, &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        lkg_claims_close(engine);
        lkg_claims_close(server);
        lkg_close(fd);
        assert_int_equal(tmpdir_remove(top), 0);
}
