/* SPDX-License-Identifier: Apache-2.0 */

#include <sys/wait.h>

#include "unit.h"
#include "../../fs/supervisor/supervisor.h"

#define LIMIT_NS (30 * LKG_NSEC_PER_SEC) /* for tests that do not reach it */
#define SOON_NS  (20 * LKG_NSEC_PER_MSEC)

struct heard {
        unsigned n;
        int status;
};

static void on_done(void *userdata, int status)
{
        struct heard *heard = userdata;

        heard->n++;
        heard->status = status;
}

static int answer(void *userdata)
{
        (void)userdata;
        return 7;
}

static int hang(void *userdata)
{
        (void)userdata;
        for (;;)
                (void)pause();
        return 0;
}

static sd_event *loop(void)
{
        sd_event *event = NULL;

        assert_true(sd_event_new(&event) >= 0);
        return event;
}

static void turn(sd_event *event)
{
        assert_true(sd_event_run(event, (uint64_t)LIMIT_NS / 1000) > 0);
}

static bool has_children(void)
{
        siginfo_t info = { 0 };

        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

TEST(test_its_end)
{
        struct heard heard = { 0 };
        const struct lkg_helper_work work = {
                .run = answer, .done = on_done, .userdata = &heard, .limit_ns = LIMIT_NS
        };
        struct lkg_helper helper = { 0 };
        sd_event *event = loop();

        assert_int_equal(lkg_helper_start(&helper, event, &work), 0);
        assert_int_equal(lkg_helper_start(&helper, event, &work), -EBUSY);
        while (heard.n == 0)
                turn(event);
        assert_int_equal(heard.status, 7);
        assert_false(lkg_helper_running(&helper));
        assert_false(has_children());
        sd_event_unref(event);
}

/* With any patience: @done is called once, and no zombie remains. */
TEST(test_the_limit)
{
        for (int impatient = 0; impatient < 2; impatient++) {
                struct heard heard = { 0 };
                const struct lkg_helper_work work = { .run = hang,
                                                      .done = on_done,
                                                      .userdata = &heard,
                                                      .limit_ns = SOON_NS,
                                                      .flags = impatient ? LKG_JOB_OUTLIVES_US : 0,
                                                      .impatient = impatient };
                struct lkg_helper helper = { 0 };
                sd_event *event = loop();

                assert_int_equal(lkg_helper_start(&helper, event, &work), 0);
                while (heard.n == 0 || has_children())
                        turn(event);
                assert_int_equal(heard.n, 1);
                assert_int_equal(heard.status, -1);
                assert_false(lkg_helper_running(&helper));
                lkg_helper_cancel(&helper);
                sd_event_unref(event);
        }
}

TEST(test_cancel)
{
        for (int impatient = 0; impatient < 2; impatient++) {
                struct heard heard = { 0 };
                const struct lkg_helper_work work = { .run = hang,
                                                      .done = on_done,
                                                      .userdata = &heard,
                                                      .limit_ns = LIMIT_NS,
                                                      .impatient = impatient };
                struct lkg_helper helper = { 0 };
                sd_event *event = loop();

                assert_int_equal(lkg_helper_start(&helper, event, &work), 0);
                lkg_helper_cancel(&helper);
                assert_false(lkg_helper_running(&helper));
                while (has_children())
                        turn(event);
                assert_int_equal(heard.n, 0);
                sd_event_unref(event);
        }
}
