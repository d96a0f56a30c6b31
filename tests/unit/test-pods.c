/* SPDX-License-Identifier: Apache-2.0 */
/* The trial of static pods: who is tried, works or has failed, and who is judged together: rows/pods.rows. Rule: docs/specification.md 4.18. */
#include <lkg/pods.h>
#include <lkg/text.h>

#include "rows.h"

#define BOOTED (300 * LKG_NSEC_PER_SEC) /* any CLOCK_BOOTTIME to start from */
#define PODS   3

static struct lkg_pod_trial trials[PODS];
static struct lkg_pod_facts facts[PODS];

static uint64_t duration(const char *text)
{
        uint64_t ns = 0;

        if (lkg_duration_parse_plain(text, &ns) < 0)
                fail_msg("no duration: %s", text);
        return ns;
}

static void happen(struct lkg_pod_facts *f, const char *event, const char *argument, uint64_t now)
{
        if (strcmp(event, "changes") == 0)
                *f = (struct lkg_pod_facts){ .can_ask = strcmp(argument, "unasked") != 0 };
        else if (strcmp(event, "answers") == 0)
                f->answers_ns = now;
        else if (strcmp(event, "is-silent") == 0)
                f->answers_ns = 0;
        else if (strcmp(event, "kubelet") == 0)
                f->suspended = strcmp(argument, "down") == 0;
        else if (strcmp(event, "is-nowhere") == 0)
                f->unknown = true;
        else if (strcmp(event, "restarts") == 0)
                f->restarts = (unsigned)strtoul(argument, NULL, 10);
        else if (strcmp(event, "is-marked") == 0)
                f->is_bad = true;
        else if (strcmp(event, "goes-back") == 0)
                *f = (struct lkg_pod_facts){ .is_good = true, .is_bad = true, .can_ask = true };
        else if (strcmp(event, "is-good") == 0)
                f->is_good = true;
        else if (strcmp(event, "is-forgiven") == 0)
                f->is_bad = false;
        else if (strcmp(event, "waits") != 0)
                fail_msg("no event: %s", event);
}

/* TIME POD EVENT [ARGUMENT] => the pods that are not good, who may be judged, and when something else follows. */
static void answer(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_pod_rules rules = { duration(rows_arg(q, "duration", "5m")),
                                             duration(rows_arg(q, "stable", "1m")),
                                             duration(rows_arg(q, "settle", "30s")),
                                             (unsigned)strtoul(rows_arg(q, "threshold", "10"), NULL, 10) };
        char at[32], pod, event[32], argument[32] = "", text[LKG_DURATION_MAX];
        bool decided[PODS];
        uint64_t now, due = UINT64_MAX;

        if (q->begins) {
                memset(trials, 0, sizeof(trials));
                for (size_t i = 0; i < PODS; i++)
                        facts[i] = (struct lkg_pod_facts){ .is_good = true, .can_ask = true };
        }
        assert_true(sscanf(q->text, "%31s %c %31s %31s", at, &pod, event, argument) >= 3);
        now = BOOTED + duration(at);
        happen(&facts[pod - 'a'], event, argument, now);
        for (size_t i = 0; i < PODS; i++) {
                trials[i] = lkg_pod_follow(trials[i], &facts[i], &rules, now);
                if (trials[i].state != LKG_POD_GOOD)
                        lkg_buf_printf(ret, "%c %s, ", (char)('a' + i),
                                       lkg_pod_state_names[trials[i].state]);
                due = lkg_earlier(due, lkg_pod_due(&trials[i], &facts[i], &rules));
        }
        due = lkg_earlier(due, lkg_pods_decide(trials, PODS, &rules, now, decided));
        for (size_t i = 0; i < PODS; i++)
                if (decided[i])
                        lkg_buf_printf(ret, "judge %c, ", (char)('a' + i));
        if (due == UINT64_MAX) {
                lkg_buf_puts(ret, "nothing is due");
                return;
        }
        (void)lkg_duration_format((int64_t)(due - BOOTED), text);
        lkg_buf_printf(ret, "due at %s", text);
}

static const struct operation operations[] = { { "pods", answer, 0 }, { 0 } };

ROWS(pods, operations)
