/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a component is restarted: requests, limits, failures, jitter, and what a successor reads. Time is
 * simulated. Rule: docs/specification.md 4.15.
 */
#include "unit.h"
#include "fs/supervisor/consumer-plan.h"

#define S    LKG_NSEC_PER_SEC
#define BOOT "2f7a3c1e-0000-4000-8000-000000000001"

static const struct lkg_plan_limits limits = { .min_interval_ns = 60 * S, .max_per_hour = 3 };

struct step {
        enum { REQUEST, WITHDRAW, BEGIN, DONE, FAILED } event;
        uint64_t now_ns, generation, delay_ns;
        uint64_t want_due_ns;     /* after it */
        uint64_t want_generation; /* that is planned or running */
};

static void play(const struct step *steps, size_t n)
{
        struct lkg_plan *plan = calloc(1, sizeof(*plan));

        assert_non_null(plan);
        for (size_t i = 0; i < n; i++) {
                const struct step *step = &steps[i];
                uint64_t due_ns, generation;

                switch (step->event) {
                case REQUEST:
                        lkg_plan_request(plan, step->generation, step->delay_ns, step->now_ns);
                        break;
                case WITHDRAW:
                        lkg_plan_withdraw(plan);
                        break;
                case BEGIN:
                        assert_true(lkg_plan_due(plan, &limits) <= step->now_ns);
                        (void)lkg_plan_begin(plan, step->now_ns);
                        break;
                case DONE:
                        (void)lkg_plan_end(plan, true);
                        break;
                case FAILED:
                        assert_int_equal(lkg_plan_end(plan, false), step->want_due_ns != LKG_PLAN_NEVER);
                        break;
                }
                due_ns = lkg_plan_due(plan, &limits);
                generation = plan->generation ? plan->generation : plan->running_generation;
                if (due_ns != step->want_due_ns || generation != step->want_generation)
                        fail_msg("step %zu: due %llu for %llu, want %llu for %llu", i + 1,
                                 (unsigned long long)due_ns, (unsigned long long)generation,
                                 (unsigned long long)step->want_due_ns,
                                 (unsigned long long)step->want_generation);
        }
        free(plan);
}

#define PLAY(...)                                                   \
        do {                                                        \
                static const struct step steps[] = { __VA_ARGS__ }; \
                play(steps, LKG_ARRAY_SIZE(steps));                 \
        } while (0)

TEST(test_requests_while_one_is_planned_become_one)
{
        PLAY({ REQUEST, 1000 * S, 7, 100 * S, 1100 * S, 7 }, { REQUEST, 1050 * S, 8, 100 * S, 1100 * S, 8 },
             { REQUEST, 1060 * S, 9, 0, 1060 * S, 9 }, /* a local change does not wait */
             { REQUEST, 1061 * S, 10, 100 * S, 1060 * S, 10 }, { BEGIN, 1062 * S, 0, 0, LKG_PLAN_NEVER, 10 },
             { DONE, 1063 * S, 0, 0, LKG_PLAN_NEVER, 0 });
}

TEST(test_limits)
{
        /* The interval counts from request to request; three fit into the hour. */
        PLAY({ REQUEST, 1000 * S, 1, 0, 1000 * S, 1 }, { BEGIN, 1000 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { DONE, 1005 * S, 0, 0, LKG_PLAN_NEVER, 0 }, { REQUEST, 1010 * S, 2, 0, 1060 * S, 2 },
             { BEGIN, 1060 * S, 0, 0, LKG_PLAN_NEVER, 2 }, { DONE, 1061 * S, 0, 0, LKG_PLAN_NEVER, 0 },
             { REQUEST, 2000 * S, 3, 0, 2000 * S, 3 }, { BEGIN, 2000 * S, 0, 0, LKG_PLAN_NEVER, 3 },
             { DONE, 2001 * S, 0, 0, LKG_PLAN_NEVER, 0 }, { REQUEST, 2100 * S, 4, 0, 4600 * S, 4 },
             { BEGIN, 4600 * S, 0, 0, LKG_PLAN_NEVER, 4 }, { DONE, 4601 * S, 0, 0, LKG_PLAN_NEVER, 0 },
             { REQUEST, 4601 * S, 5, 0, 4660 * S, 5 });
}

TEST(test_a_request_while_one_runs_is_the_next)
{
        PLAY({ REQUEST, 1000 * S, 1, 0, 1000 * S, 1 }, { BEGIN, 1000 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { REQUEST, 1001 * S, 2, 0, LKG_PLAN_NEVER, 2 }, { DONE, 1002 * S, 0, 0, 1060 * S, 2 });
        PLAY({ REQUEST, 1000 * S, 1, 0, 1000 * S, 1 }, { BEGIN, 1000 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { REQUEST, 1001 * S, 2, 0, LKG_PLAN_NEVER, 2 }, { FAILED, 1002 * S, 0, 0, 1060 * S, 2 });
}

TEST(test_failures)
{
        static const struct lkg_plan_limits many = { .min_interval_ns = 60 * S, .max_per_hour = 3600 };
        struct lkg_plan *plan = calloc(1, sizeof(*plan));
        uint64_t now_ns = 1000 * S;
        unsigned n = 0;

        assert_non_null(plan);
        lkg_plan_request(plan, 1, 0, now_ns);
        while (plan->generation) {
                now_ns = lkg_plan_due(plan, &many);
                assert_int_equal(now_ns, (1000 + 60 * n) * S);
                assert_int_equal(lkg_plan_begin(plan, now_ns), 1);
                (void)lkg_plan_end(plan, false);
                n++;
        }
        assert_int_equal(n, 1 + LKG_PLAN_RETRIES_MAX);
        free(plan);
        /* Failed restarts count for the hour, too. */
        PLAY({ REQUEST, 1000 * S, 1, 0, 1000 * S, 1 }, { BEGIN, 1000 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { FAILED, 1005 * S, 0, 0, 1060 * S, 1 }, { BEGIN, 1060 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { FAILED, 1061 * S, 0, 0, 1120 * S, 1 }, { BEGIN, 1120 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { FAILED, 1121 * S, 0, 0, 4600 * S, 1 });
        /* A new request starts counting again. */
        PLAY({ REQUEST, 1000 * S, 1, 0, 1000 * S, 1 }, { BEGIN, 1000 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { FAILED, 1005 * S, 0, 0, 1060 * S, 1 }, { REQUEST, 1010 * S, 2, 0, 1060 * S, 2 });
}

TEST(test_withdrawn)
{
        PLAY({ REQUEST, 1000 * S, 1, 50 * S, 1050 * S, 1 }, { WITHDRAW, 1001 * S, 0, 0, LKG_PLAN_NEVER, 0 },
             { REQUEST, 1002 * S, 2, 50 * S, 1052 * S, 2 });
        PLAY({ REQUEST, 1000 * S, 1, 0, 1000 * S, 1 }, { BEGIN, 1000 * S, 0, 0, LKG_PLAN_NEVER, 1 },
             { WITHDRAW, 1001 * S, 0, 0, LKG_PLAN_NEVER, 1 }, { FAILED, 1002 * S, 0, 0, LKG_PLAN_NEVER, 0 },
             { REQUEST, 1100 * S, 2, 0, 1100 * S, 2 }, { BEGIN, 1100 * S, 0, 0, LKG_PLAN_NEVER, 2 },
             { FAILED, 1101 * S, 0, 0, 1160 * S, 2 });
}

TEST(test_an_end_without_a_begin_is_nothing)
{
        PLAY({ FAILED, 1000 * S, 0, 0, LKG_PLAN_NEVER, 0 }, { DONE, 1000 * S, 0, 0, LKG_PLAN_NEVER, 0 });
}

TEST(test_only_an_hour_is_remembered)
{
        struct lkg_plan *plan = calloc(1, sizeof(*plan));

        assert_non_null(plan);
        for (uint64_t i = 0; i < 3 * LKG_PLAN_ASKED_MAX; i++) { /* two per second: more than fit */
                lkg_plan_request(plan, i + 1, 0, i * S / 2);
                (void)lkg_plan_begin(plan, i * S / 2);
                assert_true(plan->n_asked <= LKG_PLAN_ASKED_MAX);
                (void)lkg_plan_end(plan, true);
        }
        assert_int_equal(plan->n_asked, LKG_PLAN_ASKED_MAX);
        assert_int_equal(plan->asked_ns[plan->n_asked - 1], (3 * LKG_PLAN_ASKED_MAX - 1) * S / 2);
        lkg_plan_request(plan, 1, 0, 100000 * S);
        (void)lkg_plan_begin(plan, 100000 * S);
        assert_int_equal(plan->n_asked, 1);
        free(plan);
}

TEST(test_jitter)
{
        const uint32_t jitter_ms = 300000;
        unsigned quarters[4] = { 0 };

        for (unsigned i = 0; i < 400; i++) {
                char node[16];
                uint64_t ns;

                (void)snprintf(node, sizeof(node), "node-%u", i);
                ns = lkg_plan_jitter_ns(node, "kubelet", jitter_ms);
                assert_int_equal(ns, lkg_plan_jitter_ns(node, "kubelet", jitter_ms));
                assert_true(ns < jitter_ms * LKG_NSEC_PER_MSEC);
                quarters[ns / (jitter_ms / 4 * LKG_NSEC_PER_MSEC)]++;
        }
        for (unsigned i = 0; i < 4; i++)
                assert_in_range(quarters[i], 60, 140);
        assert_int_equal(lkg_plan_jitter_ns("node-1", "kubelet", 0), 0);
        assert_true(lkg_plan_jitter_ns("node-1", "kubelet", jitter_ms) !=
                    lkg_plan_jitter_ns("node-1", "kube-proxy", jitter_ms));
        /* The end of one name is not the beginning of the other. */
        assert_true(lkg_plan_jitter_ns("a", "bc", UINT32_MAX) != lkg_plan_jitter_ns("ab", "c", UINT32_MAX));
}

/* ---- on disk ---- */

static char *formatted(const struct lkg_plan *plan)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_plan_format(plan, BOOT, &buf);
        assert_false(lkg_buf_failed(&buf));
        return lkg_buf_steal(&buf, NULL);
}

TEST(test_a_successor_goes_on)
{
        struct lkg_plan *plan = calloc(2, sizeof(*plan)), *again = plan + 1;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_freep) char *copy = NULL;

        assert_non_null(plan);
        lkg_plan_request(plan, 7, 0, 900 * S);
        (void)lkg_plan_begin(plan, 900 * S);
        (void)lkg_plan_end(plan, false);
        (void)lkg_plan_begin(plan, 960 * S);
        lkg_plan_request(plan, 8, 50 * S, 970 * S);
        text = formatted(plan);
        assert_string_equal(text, "boot_id=" BOOT "\nplanned_generation=8\nnot_before_ns=1020000000000\n"
                                  "running_generation=7\n"
                                  "asked_ns=900000000000\nasked_ns=960000000000\n");
        lkg_plan_parse(text, BOOT, 1000 * S, 300 * S, again);
        copy = formatted(again);
        assert_string_equal(copy, text);
        assert_true(lkg_plan_end(again, false));
        assert_int_equal(lkg_plan_due(again, &limits), 1020 * S);
        lkg_plan_parse(text, "another boot", 1000 * S, 300 * S, again); /* the component has started since */
        assert_false(again->generation || again->running_generation);
        assert_int_equal(again->n_asked, 0);
        free(plan);
}

TEST(test_plans_that_cannot_be_true)
{
        static const struct {
                const char *text;
                uint64_t want_due_ns;
        } cases[] = {
                { "", LKG_PLAN_NEVER },
                { "planned_generation=3\n", LKG_PLAN_NEVER }, /* of which boot? */
                { "boot_id=" BOOT "\nplanned_generation=3\n", 0 },
                { "boot_id=" BOOT "\nplanned_generation=3\nnot_before_ns=18446744073709551615\n", 1300 * S },
                { "boot_id=" BOOT "\nplanned_generation=3\nnot_before_ns=-1\n", 0 },
                { "boot_id=" BOOT "\nplanned_generation=x\n", LKG_PLAN_NEVER },
                { "boot_id=" BOOT "\nplanned_generation=3\nasked_ns=9999999999999\n",
                  0 }, /* in the future */
                { "boot_id=" BOOT "\nplanned_generation=3\nasked_ns=990000000000\nasked_ns=1\n", 1050 * S },
                { "boot_id=" BOOT "\nplanned_generation=3\nfrom_the_future=1\n=\n\n\nno equals", 0 },
                { "boot_id=\nplanned_generation=3\n", LKG_PLAN_NEVER },
                { "boot_id=" BOOT "\nplanned_generation=3\nretries=99999999999\nrunning_generation=3\n",
                  LKG_PLAN_NEVER },
        };
        struct lkg_plan *plan = calloc(1, sizeof(*plan));

        assert_non_null(plan);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                lkg_plan_parse(cases[i].text, BOOT, 1000 * S, 300 * S, plan);
                if (lkg_plan_due(plan, &limits) != cases[i].want_due_ns)
                        fail_msg("%s: due %llu", cases[i].text,
                                 (unsigned long long)lkg_plan_due(plan, &limits));
        }
        assert_false(lkg_plan_end(plan, false)); /* the last one: failed too often already */
        lkg_plan_parse("boot_id=\nplanned_generation=3\n", "", 1000 * S, 0, plan); /* an unknown boot */
        assert_int_equal(plan->generation, 0);
        free(plan);
}

TEST(test_the_last_restarts)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        char line[16];

        for (unsigned i = 0; i < 30; i++) {
                struct lkg_buf buf = LKG_BUF_INIT;

                (void)snprintf(line, sizeof(line), "line %u", i);
                lkg_restarts_append(text, line, &buf);
                free(text);
                text = lkg_buf_steal(&buf, NULL);
                assert_non_null(text);
                if (i == 1)
                        assert_string_equal(text, "line 0\nline 1\n");
        }
        assert_memory_equal(text, "line 10\nline 11\n", 16);
        assert_non_null(strstr(text, "\nline 28\nline 29\n"));
}
