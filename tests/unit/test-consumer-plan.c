/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a component is restarted: requests, limits, failures, jitter, and what a successor reads: rows/plan.rows. Time is
 * a number. Rule: docs/specification.md 4.15.
 */
#include <inttypes.h>

#include "rows.h"
#include "fs/supervisor/consumer-plan.h"

#define S LKG_NSEC_PER_SEC

static struct lkg_plan *plan;
static struct lkg_plan_limits limits;

static uint64_t ns(const char *seconds)
{
        return strtoull(seconds, NULL, 10) * S;
}

/* When what is planned or running is due. */
static void say_due(struct lkg_buf *ret)
{
        uint64_t due_ns = lkg_plan_due(plan, &limits);

        if (due_ns == LKG_PLAN_NEVER)
                lkg_buf_puts(ret, "never");
        else
                lkg_buf_printf(ret, "%" PRIu64 " s", due_ns / S);
        assert_true(due_ns == LKG_PLAN_NEVER || due_ns % S == 0);
        lkg_buf_printf(ret, ", generation %" PRIu64,
                       plan->generation ? plan->generation : plan->running_generation);
}

STEP(steps, 0)
{
        free(plan);
        plan = calloc(1, sizeof(*plan));
        assert_non_null(plan);
        limits = (struct lkg_plan_limits){ .min_interval_ns = 60 * S, .max_per_hour = 3 };
}

STEP(limits, 2)
{
        limits.min_interval_ns = ns(q->parts[0]);
        limits.max_per_hour = (uint32_t)strtoul(q->parts[1], NULL, 10);
}

/* When, generation, how long it may wait */
STEP(request, 3)
{
        lkg_plan_request(plan, strtoull(q->parts[1], NULL, 10), ns(q->parts[2]), ns(q->parts[0]));
        say_due(ret);
}

STEP(withdraw, 0)
{
        lkg_plan_withdraw(plan);
        say_due(ret);
}

STEP(begin, 1)
{
        uint64_t generation = plan->generation;

        assert_true(lkg_plan_due(plan, &limits) <= ns(q->parts[0]));
        assert_int_equal(lkg_plan_begin(plan, ns(q->parts[0])), generation);
        say_due(ret);
}

static void say_end(bool done, struct lkg_buf *ret)
{
        if (lkg_plan_end(plan, done))
                lkg_buf_puts(ret, "planned, ");
        say_due(ret);
}

STEP(done, 0)
{
        say_end(true, ret);
}

STEP(failed, 0)
{
        say_end(false, ret);
}

/* ---- on disk ---- */

STEP(format, 0)
{
        lkg_plan_format(plan, "b-1", ret);
        assert_int_equal(ret->data[ret->size - 1], '\n');
}

/* Another process reads it, in a boot. */
STEP(succeed, 1)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_plan_format(plan, "b-1", &buf);
        lkg_plan_parse(buf.data, q->parts[0], 1000 * S, 300 * S, plan);
        say_due(ret);
}

STEP(parse, 2)
{
        lkg_plan_parse(q->parts[1], q->parts[0], 1000 * S, 300 * S, plan);
        say_due(ret);
}

static int end(void **state)
{
        (void)state;
        free(plan);
        plan = NULL;
        return 0;
}

ROWS_WITH(plan, rows_steps, NULL, end)

/* ---- what no row can say ---- */

TEST_WITH(test_only_an_hour_is_remembered, NULL, end)
{
        step_steps(NULL, NULL);
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
