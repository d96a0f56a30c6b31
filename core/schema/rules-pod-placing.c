/* SPDX-License-Identifier: Apache-2.0 */
/* What ValidatePodCreate() asks of tolerations, affinity, topology spread, and requests and limits. */
#include "pod.h"
#include "values/values.h"

#include <lkg/tree.h>

#define BILLION 1000000000

/* ---- selectors ---- */

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
static void check_keys(const struct lkg_rules *part, const char *path)
{
        const struct lkg_value *selector = lkg_rule_get(part, "labelSelector");
        bool either = strcmp(part->node->go, "TopologySpreadConstraint") == 0 &&
                      !lkg_rule_gate(part, "MatchLabelKeysInPodTopologySpreadSelectorMerge");

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(part, path), &m);)
                if (selects(selector, lkg_text_of(m.value), either) ||
                    has_item(lkg_rule_get(part, "mismatchLabelKeys"), lkg_text_of(m.value)))
                        lkg_breach(part, LKG_F_DUPLICATE, LKG_ITEM_PATH(path, m.i, NULL), m.value,
                                   "is in labelSelector or mismatchLabelKeys, too");
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

/* A quantity in billionths, the finest that there is; what is beyond 2^63 is as good as endless. */
static __int128 amount(const struct lkg_value *value)
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
        return amount(value) % ((__int128)bytes * BILLION) == 0;
}

static const char huge_alone[] = "must have cpu or memory beside huge pages";

#define HAS_HUGE    1u
#define HAS_COMPUTE 2u /* cpu or memory, which huge pages need beside them */

/* One map of @part, of a container or (@whole) of the pod. Return: what it has. */
static unsigned check_list(const struct lkg_rules *part, const char *path, bool whole)
{
        unsigned has = 0;

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(part, path), &m);) {
                const char *key = LKG_KEY_PATH(path, m.key);
                char why[LKG_REFUSAL_MAX];

                has |= is_huge(m.key) ? HAS_HUGE : lkg_rule_word("cpu, memory", m.key) ? HAS_COMPUTE : 0;
                if ((whole ? parse_pod_resource : parse_resource)(m.key.data, m.key.size, why) < 0)
                        lkg_breach(part, LKG_F_NOT_ONE_OF, key, m.value, "is of no resource: %s", why);
                else if (amount(m.value) < 0)
                        lkg_breach(part, LKG_F_OUT_OF_RANGE, key, m.value,
                                   "is out of range; it must not be negative");
                else if (is_huge(m.key) && !is_divisible(m.key, m.value))
                        lkg_breach(part, LKG_F_BAD_FORMAT, key, m.value, "is not a number of whole pages");
                else if (!is_native(m.key) && amount(m.value) % BILLION != 0)
                        lkg_breach(part, LKG_F_BAD_FORMAT, key, m.value, "is not a whole number");
        }
        return has;
}

static const struct lkg_value *in_map(const struct lkg_value *object, const char *path, struct lkg_span key)
{
        const struct lkg_value *map = lkg_object_get(object, path);

        return map ? lkg_map_find(map, key) : NULL;
}

/* Does a pod with limits request what its containers do, if it does not say what? */
static bool is_completed(const struct lkg_rules *part)
{
        return !lkg_rule_gate(part, "PodLevelResourcesFixDefaulting");
}

static void check_size(const struct lkg_rules *part, const char *path)
{
        if (amount(lkg_rule_get(part, path)) < 0)
                lkg_breach_at(part, LKG_F_OUT_OF_RANGE, path, "is out of range; it must not be negative");
}

/* A request that is left out is its limit. */
static void check_resources(const struct lkg_rules *part, const char *path)
{
        bool whole = strcmp(part->up->node->go, "PodSpec") == 0;

        if (whole && part->release < 135)
                return;
        /* of a pod that is completed, what its containers request counts, too */
        if ((check_list(part, "limits", whole) | check_list(part, "requests", whole)) == HAS_HUGE &&
            !(whole && is_completed(part)))
                lkg_breach_at(part, LKG_F_REQUIRED, "limits", huge_alone);
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(part, "requests"), &m);) {
                const struct lkg_value *limit = in_map(part->object, "limits", m.key);
                const char *key = LKG_KEY_PATH("requests", m.key);
                bool may = may_overcommit(m.key);

                if (!limit && !may)
                        lkg_breach(part, LKG_F_REQUIRED, key, m.value,
                                   "needs a limit, which must be the same");
                else if (limit && (may ? amount(m.value) > amount(limit) : amount(m.value) != amount(limit)))
                        lkg_breach(part, LKG_F_CONTRADICTION, key, m.value, "must be %s its limit%s",
                                   may ? "at most" : "the same as", LKG_ASIDE(limit));
        }
}

/* What the containers ask for together: those that stay, or with them the init container that asks for most. */
static __int128 together(const struct lkg_rules *spec, const char *path, struct lkg_span name)
{
        static const char *const lists[] = { "containers", "initContainers" };
        __int128 sum = 0, sidecars = 0, most = 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(lists); i++) {
                for (struct lkg_member c = { 0 }; lkg_value_next(lkg_rule_get(spec, lists[i]), &c);) {
                        const struct lkg_value *asked = in_map(c.value, path, name);
                        __int128 n = amount(asked ? asked : in_map(c.value, "resources.limits", name));
                        bool stays =
                                i == 0 || lkg_span_is(lkg_object_text(c.value, "restartPolicy"), "Always");

                        sum += stays ? n : 0;
                        sidecars += stays && i > 0 ? n : 0;
                        if (sidecars + (stays ? 0 : n) > most)
                                most = sidecars + (stays ? 0 : n);
                }
        }
        return sum > most ? sum : most;
}

static void check_together(const struct lkg_rules *spec, const char *path)
{
        static const char limits[] = "resources.limits", requests[] = "resources.requests",
                          less[] = "is less than the containers request together";
        const struct lkg_value *list = lkg_rule_get(spec, "containers");

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(spec, requests), &m);)
                if (amount(m.value) < together(spec, requests, m.key))
                        lkg_breach(spec, LKG_F_CONTRADICTION, LKG_KEY_PATH(requests, m.key), m.value, less);
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_rule_get(spec, limits), &m);) {
                const char *key = LKG_KEY_PATH(limits, m.key);

                /* what the containers request is the default of what the pod does */
                if (is_completed(spec) && may_overcommit(m.key) && !in_map(spec->object, requests, m.key) &&
                    amount(m.value) < together(spec, requests, m.key))
                        lkg_breach(spec, LKG_F_CONTRADICTION, key, m.value, less);
                if (is_huge(m.key) && amount(m.value) < together(spec, limits, m.key))
                        lkg_breach(spec, LKG_F_CONTRADICTION, key, m.value,
                                   "is less than the limits of the containers together");
                for (struct lkg_member c = { 0 }; lkg_value_next(list, &c);) {
                        const struct lkg_value *limit = in_map(c.value, limits, m.key);

                        if (limit && amount(limit) > amount(m.value))
                                lkg_breach(spec, LKG_F_CONTRADICTION, key, m.value,
                                           "is less than the limit of a container%s", LKG_ASIDE(limit));
                }
        }
}

static void check_overhead(const struct lkg_rules *spec, const char *path)
{
        if (check_list(spec, path, false) == HAS_HUGE)
                lkg_breach_at(spec, LKG_F_REQUIRED, path, huge_alone);
}

/* ---- rows ---- */

#define ROW      LKG_POD_ROW
#define OR_EMPTY .flags = LKG_RULE_EMPTY_OK

static const char one[] = "must have one entry with this operator";

const struct lkg_value_rule lkg_pod_placing_rules[] = {
        ROW(SET, "Toleration.operator", "want a key, or Exists", .when = "key", .is = "!"),
        ROW(NOT, "Toleration.operator", "must be Exists without a key", .words = "Equal", .when = "key",
            .is = "!"),
        ROW(UNSET, "Toleration.tolerationSeconds", "another effect than NoExecute", .flags = LKG_RULE_NIL,
            .when = "effect", .is = "!NoExecute"),
        ROW(UNSET, "Toleration.value", "operator Exists", .when = "operator", .is = "Exists"),
        ROW(PARSE, "Toleration.value", .parse = lkg_name_label_value, OR_EMPTY, .when = "operator",
            .is = "!Exists"),

        ROW(WORD, "LabelSelectorRequirement.operator", .words = "In, NotIn, Exists, DoesNotExist"),
        ROW(WORD, "matchExpressions.operator", .words = "In, NotIn, Exists, DoesNotExist, Gt, Lt",
            .around = "NodeSelectorTerm"),
        ROW(WORD, "matchFields.operator", .words = "In, NotIn"),
        ROW(COUNT, "LabelSelectorRequirement.values NodeSelectorRequirement.values",
            "must have an entry with this operator", 1, INT64_MAX, .when = "operator", .is = "In, NotIn"),
        ROW(COUNT, "LabelSelectorRequirement.values NodeSelectorRequirement.values",
            "must be empty with this operator", .when = "operator", .is = "Exists, DoesNotExist"),
        ROW(COUNT, "NodeSelectorRequirement.values", one, 1, 1, .when = "operator", .is = "Gt, Lt"),
        /* of the fields of a node there is its name alone */
        ROW(COUNT, "matchFields.values", one, .max = 1, .when = "operator", .is = "In, NotIn"),
        ROW(WORD, "matchFields.key", .words = "metadata.name"),
        ROW(PARSE, "matchFields.values", .parse = lkg_name_dns_subdomain, OR_EMPTY),
        /* values of labels are judged where they are required */
        ROW(PARSE, "matchExpressions.values", .parse = lkg_name_label_value, OR_EMPTY,
            .around = "NodeSelector"),

        ROW(COUNT,
            "PodAffinityTerm.matchLabelKeys PodAffinityTerm.mismatchLabelKeys "
            "TopologySpreadConstraint.matchLabelKeys",
            "needs a labelSelector", .when = "labelSelector", .is = "!"),
        ROW(UNSET, "TopologySpreadConstraint.minDomains", "another whenUnsatisfiable than DoNotSchedule",
            .flags = LKG_RULE_NIL, .when = "whenUnsatisfiable", .is = "!DoNotSchedule"),
        ROW(ONCE, "TopologySpreadConstraint.topologyKey", .words = "whenUnsatisfiable", .around = "PodSpec"),

        ROW(CHECK, "PodAffinityTerm.matchLabelKeys TopologySpreadConstraint.matchLabelKeys",
            .check = check_keys),
        ROW(CHECK, "EmptyDirVolumeSource.sizeLimit", .check = check_size),
        ROW(CHECK, "ResourceRequirements", .check = check_resources),
        ROW(CHECK, "PodSpec.resources", .check = check_together, .since = 135),
        ROW(CHECK, "PodSpec.overhead", .check = check_overhead),
};
const size_t lkg_n_pod_placing_rules = LKG_ARRAY_SIZE(lkg_pod_placing_rules);
