/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <lkg/pods.h>
#include <lkg/text.h>

const char *const lkg_pod_state_names[_LKG_POD_STATE_MAX] = {
        [LKG_POD_GOOD] = "good",         [LKG_POD_UNTRIED] = "untried", [LKG_POD_TRYING] = "on trial",
        [LKG_POD_WORKS] = "works",       [LKG_POD_FAILED] = "failed",   [LKG_POD_BACK] = "back",
        [LKG_POD_DEAD_END] = "dead end",
};

/*
 * What answers right after a change is still the old pod: a kubelet looks at its directory every 20 s, and gives the old pod time to
 * end.
 */
static uint64_t counts_from(const struct lkg_pod_trial *trial, const struct lkg_pod_rules *rules)
{
        return lkg_after(trial->since_ns, lkg_earlier(rules->settle_ns, rules->duration_ns / 4));
}

static uint64_t works_at(const struct lkg_pod_trial *trial, const struct lkg_pod_facts *facts,
                         const struct lkg_pod_rules *rules)
{
        return facts->answers_ns ? lkg_after(lkg_later(facts->answers_ns, counts_from(trial, rules)),
                                             lkg_earlier(rules->stable_for_ns, rules->duration_ns / 2))
                                 : UINT64_MAX;
}

static uint64_t over_at(const struct lkg_pod_trial *trial, const struct lkg_pod_rules *rules)
{
        return lkg_after(trial->since_ns, lkg_after(rules->duration_ns, 1));
}

static bool is_on_trial(enum lkg_pod_state state)
{
        return state == LKG_POD_TRYING || state == LKG_POD_WORKS || state == LKG_POD_FAILED;
}

/* Its document is neither known to be good nor to be bad. */
static struct lkg_pod_trial try_it(struct lkg_pod_trial trial, const struct lkg_pod_facts *facts,
                                   const struct lkg_pod_rules *rules, uint64_t now_ns)
{
        if (!rules->duration_ns || !facts->can_ask)
                return (struct lkg_pod_trial){ .state = LKG_POD_UNTRIED };
        if (!is_on_trial(trial.state))
                trial = (struct lkg_pod_trial){ LKG_POD_TRYING, now_ns, now_ns, 0 };
        if (facts->restarts > rules->threshold)
                trial.state = LKG_POD_FAILED;
        else if (now_ns >= works_at(&trial, facts, rules))
                trial.state = LKG_POD_WORKS;
        else if (now_ns < over_at(&trial, rules))
                trial.state = LKG_POD_TRYING;
        else if (facts->unknown)
                return (struct lkg_pod_trial){ .state = LKG_POD_UNTRIED };
        else
                trial.state = LKG_POD_FAILED;
        return trial;
}

/* The last good document of a pod whose file is bad, or of one that failed or may have. */
static struct lkg_pod_trial go_back(struct lkg_pod_trial trial, const struct lkg_pod_facts *facts,
                                    const struct lkg_pod_rules *rules, uint64_t now_ns)
{
        if (!facts->can_ask || trial.state == LKG_POD_GOOD || trial.state == LKG_POD_UNTRIED)
                return (struct lkg_pod_trial){ 0 };
        if (is_on_trial(trial.state) ||
            !trial.since_ns) /* what is served instead could not be published at once */
                trial = (struct lkg_pod_trial){ LKG_POD_BACK, now_ns, now_ns, 0 };
        if (now_ns >= works_at(&trial, facts, rules) || (facts->unknown && now_ns >= over_at(&trial, rules)))
                return (struct lkg_pod_trial){ 0 };
        if (now_ns >= over_at(&trial, rules))
                trial.state = LKG_POD_DEAD_END;
        return trial;
}

/* And what it went back to is not known to work. Without a time, nobody knows whether it has failed. */
static bool has_failed(const struct lkg_pod_trial *trial)
{
        return trial->state == LKG_POD_FAILED || (trial->state == LKG_POD_BACK && trial->since_ns) ||
               trial->state == LKG_POD_DEAD_END;
}

struct lkg_pod_trial lkg_pod_follow(struct lkg_pod_trial trial, const struct lkg_pod_facts *facts,
                                    const struct lkg_pod_rules *rules, uint64_t now_ns)
{
        if (facts->is_bad && !facts->is_good)
                return (struct lkg_pod_trial){ .state = LKG_POD_DEAD_END };
        if (facts->is_good && !facts->is_bad && !has_failed(&trial))
                return (struct lkg_pod_trial){ 0 };
        if (trial.state != LKG_POD_TRYING && trial.state != LKG_POD_BACK)
                trial.suspended_ns = 0;
        else if (facts->suspended) { /* the time stands still */
                trial.suspended_ns = trial.suspended_ns ? trial.suspended_ns : now_ns;
                return trial;
        }
        if (trial.suspended_ns) {
                trial.since_ns = lkg_after(trial.since_ns, now_ns - trial.suspended_ns);
                trial.suspended_ns = 0;
        }
        if (facts->is_bad || facts->is_good)
                return go_back(trial, facts, rules, now_ns);
        return try_it(trial, facts, rules, now_ns);
}

uint64_t lkg_pod_due(const struct lkg_pod_trial *trial, const struct lkg_pod_facts *facts,
                     const struct lkg_pod_rules *rules)
{
        if (trial->suspended_ns)
                return UINT64_MAX;
        if (trial->state == LKG_POD_TRYING || trial->state == LKG_POD_BACK)
                return lkg_earlier(works_at(trial, facts, rules), over_at(trial, rules));
        if (trial->state == LKG_POD_FAILED || (trial->state == LKG_POD_DEAD_END && facts->is_good))
                return works_at(trial, facts, rules);
        return UINT64_MAX;
}

static int compare_begin(const void *a, const void *b)
{
        const struct lkg_pod_trial *const *x = a, *const *y = b;

        return ((*x)->since_ns > (*y)->since_ns) - ((*x)->since_ns < (*y)->since_ns);
}

uint64_t lkg_pods_decide(const struct lkg_pod_trial *pods, size_t n, const struct lkg_pod_rules *rules,
                         uint64_t now_ns, bool *ret_decided)
{
        LKG_CLEANUP(lkg_freep)
        const struct lkg_pod_trial **tried = lkg_must(calloc(n + 1, sizeof(*tried)));
        uint64_t due = UINT64_MAX;
        size_t n_tried = 0;

        for (size_t i = 0; i < n; i++) {
                ret_decided[i] = false;
                if (is_on_trial(pods[i].state))
                        tried[n_tried++] = &pods[i];
        }
        qsort(tried, n_tried, sizeof(*tried), compare_begin);
        for (size_t first = 0, last; first < n_tried; first = last + 1) {
                bool open = tried[first]->state == LKG_POD_TRYING;
                uint64_t closed_at;

                for (last = first; last + 1 < n_tried &&
                                   tried[last + 1]->since_ns - tried[last]->since_ns <= rules->settle_ns;
                     last++)
                        open = open || tried[last + 1]->state == LKG_POD_TRYING;
                closed_at =
                        lkg_after(tried[last]->since_ns, lkg_earlier(rules->settle_ns, rules->duration_ns));
                if (!open && now_ns < closed_at) /* another change may still join it */
                        due = lkg_earlier(due, closed_at);
                for (size_t i = first; i <= last; i++)
                        ret_decided[tried[i] - pods] = !open && now_ns >= closed_at;
        }
        return due;
}
