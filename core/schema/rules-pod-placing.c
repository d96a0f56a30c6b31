/* SPDX-License-Identifier: Apache-2.0 */
/* What ValidatePodCreate() asks of tolerations, affinity, topology spread, and requests and limits. */
#include "pod.h"
#include "values/values.h"

#include <lkg/tree.h>

#define BILLION 1000000000

/* ---- tolerations ---- */

static void check_toleration(const struct lkg_pod_part *toleration)
{
        struct lkg_span value = lkg_pod_text(toleration, "value");
        bool exists = lkg_pod_is(toleration, "operator", "Exists");
        char why[LKG_REFUSAL_MAX];

        if (!exists && lkg_pod_text(toleration, "key").size == 0)
                lkg_pod_breach(toleration, LKG_F_CONTRADICTION, "operator", "must be Exists without a key");
        if (!lkg_pod_is(toleration, "effect", "NoExecute"))
                lkg_pod_exclude(toleration, "tolerationSeconds", "another effect than NoExecute");
        if (exists)
                lkg_pod_exclude(toleration, "value", "operator Exists");
        else if (lkg_name_label_value(value.data, value.size, why) < 0)
                lkg_pod_breach(toleration, LKG_F_BAD_FORMAT, "value", "is not right: %s", why);
}

/* ---- selectors ---- */

/* @some: operators that need values, @none: that have none, @one: that have one. */
static void check_operator(const struct lkg_pod_part *part, const char *some, const char *none,
                           const char *one)
{
        struct lkg_span operator= lkg_pod_text(part, "operator");
        size_t n = lkg_pod_size(part, "values");

        if (lkg_rule_word(some, operator) ? n == 0 : lkg_rule_word(one, operator) && n != 1)
                lkg_pod_breach(part, LKG_F_REQUIRED, "values", "must have %s entry with this operator",
                               lkg_rule_word(one, operator) ? "one" : "an");
        else if (lkg_rule_word(none, operator) && n > 0)
                lkg_pod_breach(part, LKG_F_CONTRADICTION, "values", "must be empty with this operator");
        else if (!lkg_rule_word(some, operator) && !lkg_rule_word(none, operator) &&
                 !lkg_rule_word(one, operator))
                lkg_pod_breach(part, LKG_F_NOT_ONE_OF, "operator", "is not known; want one of %s%s%s%s",
                               some, none, *some && *one ? ", " : "", one);
}

static void check_label_requirement(const struct lkg_pod_part *part)
{
        check_operator(part, "In, NotIn, ", "Exists, DoesNotExist", "");
}

/* Of the fields of a node there is its name alone. Values of labels are judged where they are required. */
static void check_node_requirement(const struct lkg_pod_part *part)
{
        bool fields = strcmp(part->name, "matchFields") == 0;
        struct lkg_span key = lkg_pod_text(part, "key");
        char why[LKG_REFUSAL_MAX] = "want metadata.name";

        check_operator(part, fields ? "" : "In, NotIn, ", fields ? "" : "Exists, DoesNotExist",
                       fields ? "In, NotIn" : "Gt, Lt");
        if (fields ? !lkg_span_is(key, "metadata.name") : lkg_name_qualified(key.data, key.size, why) < 0)
                lkg_pod_breach(part, LKG_F_BAD_FORMAT, "key", "is not right: %s", why);
        if (!fields && !lkg_pod_around(part, "NodeSelector"))
                return;
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_pod_get(part, "values"), &m);)
                lkg_rule_parse_item(&part->rules, LKG_F_BAD_FORMAT, "values", m.i, NULL, m.value,
                                    fields ? lkg_name_dns_subdomain : lkg_name_label_value);
}

static void check_selector(const struct lkg_pod_part *selector)
{
        lkg_pod_labels(selector, "matchLabels");
}

static bool has_item(const struct lkg_value *list, struct lkg_span text)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                if (lkg_span_equal(lkg_text_of(m.value), text))
                        return true;
        return false;
}

/* Does the selector have the key: as a label and in an expression, or (@either) in one of them? */
static bool selects(const struct lkg_value *selector, struct lkg_span key, bool either)
{
        const struct lkg_value *labels = selector ? lkg_map_get(selector, "matchLabels") : NULL;
        size_t n = labels && lkg_map_find(labels, key);

        for (struct lkg_member m = { 0 };
             selector && lkg_value_next(lkg_map_get(selector, "matchExpressions"), &m);)
                n += lkg_span_equal(lkg_object_text(m.value, "key"), key);
        return n > (either ? 0 : 1);
}

/* Labels whose values the scheduler adds to the selector. */
static void check_keys(const struct lkg_pod_part *part, const char *path, bool either)
{
        const struct lkg_value *selector = lkg_pod_get(part, "labelSelector"),
                               *keys = lkg_pod_get(part, path);

        if (!selector && lkg_pod_size(part, path) > 0)
                lkg_pod_breach(part, LKG_F_REQUIRED, path, "needs a labelSelector");
        for (struct lkg_member m = { 0 }; lkg_value_next(keys, &m);)
                if (selects(selector, lkg_text_of(m.value), either) ||
                    has_item(lkg_pod_get(part, "mismatchLabelKeys"), lkg_text_of(m.value)))
                        lkg_breach(&part->rules, LKG_F_DUPLICATE, LKG_ITEM_PATH(path, m.i, NULL), m.value,
                                   "is in labelSelector or mismatchLabelKeys, too");
}

static void check_affinity_term(const struct lkg_pod_part *term)
{
        check_keys(term, "matchLabelKeys", false);
        if (lkg_pod_size(term, "mismatchLabelKeys") > 0 && !lkg_pod_get(term, "labelSelector"))
                lkg_pod_breach(term, LKG_F_REQUIRED, "mismatchLabelKeys", "needs a labelSelector");
}

static void check_spread(const struct lkg_pod_part *spread)
{
        check_keys(spread, "matchLabelKeys",
                   !lkg_rule_gate(&spread->rules, "MatchLabelKeysInPodTopologySpreadSelectorMerge"));
        if (!lkg_pod_is(spread, "whenUnsatisfiable", "DoNotSchedule"))
                lkg_pod_exclude(spread, "minDomains", "another whenUnsatisfiable than DoNotSchedule");
}

static void check_spreads(const struct lkg_pod_part *spec)
{
        static const char path[] = "topologySpreadConstraints";
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *seen = lkg_value_new_map(NULL, 0, 0);

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_pod_get(spec, path), &m);) {
                LKG_CLEANUP(lkg_freep)
                char *key = lkg_format("%s %s", lkg_object_text(m.value, "topologyKey").data,
                                       lkg_object_text(m.value, "whenUnsatisfiable").data);

                lkg_pod_once(spec, seen, lkg_span(key, strlen(key)), LKG_ITEM_PATH(path, m.i, NULL),
                             m.value);
        }
}

/* ---- resources ---- */

static bool starts(struct lkg_span text, const char *with)
{
        return text.size >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

/* Of Kubernetes, not of a device: only these may be promised more than once. */
static bool is_native(struct lkg_span name)
{
        return lkg_span_count(name, '/') == 0 || memmem(name.data, name.size, "kubernetes.io/", 14);
}

static bool is_huge(struct lkg_span name)
{
        return starts(name, "hugepages-");
}

static bool may_overcommit(struct lkg_span name)
{
        return is_native(name) && !is_huge(name);
}

static int parse_resource(const char *text, size_t size, char *reason)
{
        struct lkg_span name = { text, size };
        LKG_CLEANUP(lkg_freep) char *request = lkg_format("requests.%s", text);

        if (lkg_name_qualified(text, size, reason) < 0)
                return -EINVAL;
        if (lkg_span_count(name, '/') == 0)
                return is_huge(name) || lkg_rule_word("cpu, memory, ephemeral-storage", name)
                               ? 0
                               : lkg_refuse(reason, "want cpu, memory, ephemeral-storage, hugepages-SIZE or "
                                                    "one such as example.com/device");
        if (!is_native(name) &&
            (starts(name, "requests.") || lkg_name_qualified(request, strlen(request), NULL) < 0))
                return lkg_refuse(reason, "too long, or begins with requests.");
        return 0;
}

static int parse_pod_resource(const char *text, size_t size, char *reason)
{
        struct lkg_span name = { text, size };

        if (is_huge(name) || lkg_rule_word("cpu, memory", name))
                return lkg_name_qualified(text, size, reason);
        return lkg_refuse(reason, "want cpu, memory or hugepages-SIZE for a whole pod");
}

__int128 lkg_pod_amount(const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        struct lkg_span text = lkg_text_of(value);
        const __int128 most = (__int128)1 << 100;
        __int128 n;

        if (text.size == 0 || lkg_quantity_parse(text.data, text.size, &quantity, NULL) < 0)
                return 0;
        n = quantity.digits ? most : (__int128)quantity.value;
        for (int32_t scale = quantity.scale + 9; scale > 0 && n > 0 && n < most; scale--)
                n *= 10;
        for (int32_t scale = quantity.scale + 9; scale < 0 && n > 0; scale++)
                n /= 10;
        return quantity.negative ? -n : n;
}

static bool is_divisible(struct lkg_span name, const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity page = LKG_QUANTITY_INIT;
        size_t size = strlen("hugepages-");
        int64_t bytes;

        if (lkg_quantity_parse(name.data + size, name.size - size, &page, NULL) < 0 ||
            !lkg_quantity_int64(&page, &bytes) || bytes <= 0)
                return false;
        return lkg_pod_amount(value) % ((__int128)bytes * BILLION) == 0;
}

/* Up to 1.34, the kubelet validated without the options of its feature gates. */
static bool has_whole(const struct lkg_pod_part *part)
{
        return part->rules.release >= 135 && lkg_rule_gate(&part->rules, "PodLevelResources");
}

/* Does a pod with limits request what its containers do, if it does not say what? */
static bool is_completed(const struct lkg_pod_part *part)
{
        return !lkg_rule_gate(&part->rules, "PodLevelResourcesFixDefaulting");
}

#define HAS_HUGE    1u
#define HAS_COMPUTE 2u /* cpu or memory, which huge pages need beside them */

/* One map of @part, of a container or (@whole) of the pod. Return: what it has. */
static unsigned check_list(const struct lkg_pod_part *part, const char *path, bool whole)
{
        unsigned has = 0;

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_pod_get(part, path), &m);) {
                const char *key = LKG_KEY_PATH(path, m.key);
                char why[LKG_REFUSAL_MAX];

                has |= is_huge(m.key) ? HAS_HUGE : lkg_rule_word("cpu, memory", m.key) ? HAS_COMPUTE : 0;
                if ((whole ? parse_pod_resource : parse_resource)(m.key.data, m.key.size, why) < 0)
                        lkg_breach(&part->rules, LKG_F_NOT_ONE_OF, key, m.value, "is of no resource: %s",
                                   why);
                else if (lkg_pod_amount(m.value) < 0)
                        lkg_breach(&part->rules, LKG_F_OUT_OF_RANGE, key, m.value,
                                   "is out of range; it must not be negative");
                else if (is_huge(m.key) && !is_divisible(m.key, m.value))
                        lkg_breach(&part->rules, LKG_F_BAD_FORMAT, key, m.value,
                                   "is not a number of whole pages");
                else if (!is_native(m.key) && lkg_pod_amount(m.value) % BILLION != 0)
                        lkg_breach(&part->rules, LKG_F_BAD_FORMAT, key, m.value, "is not a whole number");
        }
        return has;
}

/* A request that is left out is its limit. */
static void check_resources(const struct lkg_pod_part *part)
{
        bool whole = part->up && strcmp(part->up->rules.node->go, "PodSpec") == 0;
        const struct lkg_value *limits = lkg_pod_get(part, "limits"),
                               *requests = lkg_pod_get(part, "requests");

        if (whole && !has_whole(part))
                return;
        /* of a pod that is completed, what its containers request counts, too */
        if ((check_list(part, "limits", whole) | check_list(part, "requests", whole)) == HAS_HUGE &&
            !(whole && is_completed(part)))
                lkg_pod_breach(part, LKG_F_REQUIRED, "limits", "must have cpu or memory beside huge pages");
        for (struct lkg_member m = { 0 }; lkg_value_next(requests, &m);) {
                const struct lkg_value *limit = limits ? lkg_map_find(limits, m.key) : NULL;
                const char *key = LKG_KEY_PATH("requests", m.key);

                if (!limit && !may_overcommit(m.key))
                        lkg_breach(&part->rules, LKG_F_REQUIRED, key, m.value,
                                   "needs a limit, which must be the same");
                else if (limit &&
                         (lkg_pod_amount(m.value) > lkg_pod_amount(limit) ||
                          (lkg_pod_amount(m.value) != lkg_pod_amount(limit) && !may_overcommit(m.key))))
                        lkg_breach(&part->rules, LKG_F_CONTRADICTION, key, m.value, "must be %s its limit%s",
                                   may_overcommit(m.key) ? "at most" : "the same as", LKG_ASIDE(limit));
        }
        if (lkg_pod_get(part, "claims") && (whole || lkg_pod_size(part, "claims") > 0))
                lkg_pod_breach(part, LKG_F_STATIC_POD, "claims",
                               "is not allowed; a static pod cannot use objects of the API server");
}

/* What the containers ask for together: those that stay, or with them the init container that asks for most. */
static __int128 together(const struct lkg_pod_part *spec, const char *path, struct lkg_span name)
{
        static const char *const lists[] = { "containers", "initContainers" };
        __int128 sum = 0, sidecars = 0, most = 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(lists); i++) {
                for (struct lkg_member c = { 0 }; lkg_value_next(lkg_pod_get(spec, lists[i]), &c);) {
                        const struct lkg_value *map = lkg_object_get(c.value, path),
                                               *value = map ? lkg_map_find(map, name) : NULL;
                        bool stays =
                                i == 0 || lkg_span_is(lkg_object_text(c.value, "restartPolicy"), "Always");

                        if (!value && (map = lkg_object_get(c.value, "resources.limits")))
                                value = lkg_map_find(map, name);
                        sum += stays ? lkg_pod_amount(value) : 0;
                        sidecars += stays && i > 0 ? lkg_pod_amount(value) : 0;
                        if (i > 0 && sidecars + (stays ? 0 : lkg_pod_amount(value)) > most)
                                most = sidecars + (stays ? 0 : lkg_pod_amount(value));
                }
        }
        return sum > most ? sum : most;
}

static void check_together(const struct lkg_pod_part *spec)
{
        const struct lkg_value *limits = lkg_pod_get(spec, "resources.limits"),
                               *requests = lkg_pod_get(spec, "resources.requests");

        if (!has_whole(spec))
                return;
        for (struct lkg_member m = { 0 }; lkg_value_next(requests, &m);)
                if (lkg_pod_amount(m.value) < together(spec, "resources.requests", m.key))
                        lkg_breach(&spec->rules, LKG_F_CONTRADICTION,
                                   LKG_KEY_PATH("resources.requests", m.key), m.value,
                                   "is less than the containers request together");
        for (struct lkg_member m = { 0 }; lkg_value_next(limits, &m);) {
                /* what the containers request is the default of what the pod does */
                if (is_completed(spec) && may_overcommit(m.key) &&
                    !(requests && lkg_map_find(requests, m.key)) &&
                    lkg_pod_amount(m.value) < together(spec, "resources.requests", m.key))
                        lkg_breach(&spec->rules, LKG_F_CONTRADICTION,
                                   LKG_KEY_PATH("resources.limits", m.key), m.value,
                                   "is less than the containers request together");
                if (is_huge(m.key) && lkg_pod_amount(m.value) < together(spec, "resources.limits", m.key))
                        lkg_breach(&spec->rules, LKG_F_CONTRADICTION,
                                   LKG_KEY_PATH("resources.limits", m.key), m.value,
                                   "is less than the limits of the containers together");
                for (struct lkg_member c = { 0 }; lkg_value_next(lkg_pod_get(spec, "containers"), &c);) {
                        const struct lkg_value *map = lkg_object_get(c.value, "resources.limits"),
                                               *value = map ? lkg_map_find(map, m.key) : NULL;

                        if (value && lkg_pod_amount(value) > lkg_pod_amount(m.value))
                                lkg_breach(&spec->rules, LKG_F_CONTRADICTION,
                                           LKG_KEY_PATH("resources.limits", m.key), m.value,
                                           "is less than the limit of a container%s", LKG_ASIDE(value));
                }
        }
}

static void check_overhead(const struct lkg_pod_part *spec)
{
        if (check_list(spec, "overhead", false) == HAS_HUGE)
                lkg_pod_breach(spec, LKG_F_REQUIRED, "overhead",
                               "must have cpu or memory beside huge pages");
}

const struct lkg_pod_check lkg_pod_placing_checks[] = {
        { "Toleration", check_toleration },
        { "LabelSelector", check_selector },
        { "LabelSelectorRequirement", check_label_requirement },
        { "NodeSelectorRequirement", check_node_requirement },
        { "PodAffinityTerm", check_affinity_term },
        { "TopologySpreadConstraint", check_spread },
        { "PodSpec", check_spreads },
        { "PodSpec", check_together },
        { "PodSpec", check_overhead },
        { "ResourceRequirements", check_resources },
};
const size_t lkg_n_pod_placing_checks = LKG_ARRAY_SIZE(lkg_pod_placing_checks);
