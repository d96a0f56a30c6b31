/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server's answers mean: why an object is not known, what the Node says, what the rollout allows; and findings.
 */
#include <lkg/base.h>
#include <lkg/text.h>

#include "apiserver.h"

/* ---- objects ---- */

/* Failures that waiting does not cure. */
static bool is_definite(enum lkg_api_status status)
{
        return status == LKG_API_FORBIDDEN || status == LKG_API_TOO_LARGE || status == LKG_API_INVALID;
}

/* `failed to read Node n1`; for a ConfigMap, the wording of the proposal. */
static void say_what(const struct lkg_apiserver *api, const struct lkg_followed *followed, char *ret,
                     size_t size)
{
        if (followed == &api->node)
                (void)snprintf(ret, size, "failed to read Node %.128s", api->node_name);
        else
                (void)snprintf(ret, size,
                               "failed to download ConfigMap with name %.128s from namespace %.63s",
                               api->reference.name, api->reference.ns);
}

static enum lkg_trouble say_unreachable(const struct lkg_followed *followed, char *ret)
{
        char since[21];

        lkg_format_rfc3339(followed->failing_wall_ns, since);
        (void)snprintf(ret, LKG_REASON_MAX, "API server not reached since %s: %.400s", since,
                       lkg_informer_look(followed->informer).words);
        return LKG_TROUBLE_UNREACHABLE;
}

static enum lkg_trouble say_trouble(const struct lkg_apiserver *api, const struct lkg_followed *followed,
                                    char ret[static LKG_REASON_MAX])
{
        bool failing = followed->informer && followed->failing_ns;
        enum lkg_api_status status =
                followed->informer ? lkg_informer_look(followed->informer).status : LKG_API_OK;
        char what[256];

        *ret = '\0';
        say_what(api, followed, what, sizeof(what));
        if (failing && is_definite(status)) {
                (void)snprintf(ret, LKG_REASON_MAX, "%s: %.250s", what,
                               lkg_informer_look(followed->informer).words);
                return status == LKG_API_FORBIDDEN ? LKG_TROUBLE_FORBIDDEN : LKG_TROUBLE_OBJECT;
        }
        if (failing && status != LKG_API_NOT_FOUND &&
            (followed->answer == LKG_ANSWER_NONE ||
             lkg_boottime_ns() >= followed->failing_ns + LKG_OUTAGE_NS))
                return say_unreachable(followed, ret);
        if (followed->answer == LKG_ANSWER_OBJECT)
                return LKG_TROUBLE_NONE;
        if (followed->answer == LKG_ANSWER_NONE && status != LKG_API_NOT_FOUND) {
                (void)snprintf(ret, LKG_REASON_MAX, "%s: no answer yet", what);
                return LKG_TROUBLE_NOT_YET;
        }
        (void)snprintf(ret, LKG_REASON_MAX, "%s: %.250s", what,
                       followed->answer == LKG_ANSWER_WRONG ? followed->fault : "not found");
        return LKG_TROUBLE_OBJECT;
}

enum lkg_trouble lkg_apiserver_trouble(struct lkg_apiserver *api, struct lkg_followed *followed,
                                       char ret[static LKG_REASON_MAX])
{
        enum lkg_trouble trouble = say_trouble(api, followed, ret);

        lkg_utf8_mend(ret); /* a server's text may be in any language, and is cut to fit */
        return trouble;
}

void lkg_apiserver_node_says(struct lkg_apiserver *api, enum lkg_reference_place place,
                             struct lkg_saying *ret)
{
        *ret = (struct lkg_saying){ .says = LKG_SAYS_UNKNOWN };
        if (*api->name_fault)
                (void)snprintf(ret->fault, sizeof(ret->fault), "%.500s", api->name_fault);
        else if (lkg_apiserver_trouble(api, &api->node, ret->fault) == LKG_TROUBLE_NONE)
                *ret = place == LKG_PLACE_NODE_SPEC ? api->node_says.spec : api->node_says.annotation;
}

enum lkg_health_state lkg_places_node_health(struct lkg_places *places,
                                             char ret_words[static LKG_HEALTH_WORDS_MAX])
{
        struct lkg_apiserver *api = places->apiserver;
        char fault[LKG_REASON_MAX];

        *ret_words = '\0';
        if (!lkg_apiserver_has_credential(api))
                return LKG_HEALTH_OFF;
        /* After a start or a reload it has not been asked yet. That, or a refusal, is no reason to forget what was judged. */
        if (!api->node.informer || lkg_apiserver_may_do_without_node(api)) {
                (void)snprintf(ret_words, LKG_HEALTH_WORDS_MAX, "the Node is not read");
                return LKG_HEALTH_UNKNOWN;
        }
        /* Who has deleted it, and why, does not matter: a kubelet that is well has a Node. */
        if (!api->node.failing_ns && api->node.answer == LKG_ANSWER_MISSING) {
                (void)snprintf(ret_words, LKG_HEALTH_WORDS_MAX, "the Node does not exist");
                return LKG_HEALTH_BAD;
        }
        /* A watch that has just broken may miss a change, so what it said last is not what is true now. */
        if (api->node.failing_ns || lkg_apiserver_trouble(api, &api->node, fault) != LKG_TROUBLE_NONE) {
                (void)snprintf(ret_words, LKG_HEALTH_WORDS_MAX, "the Node cannot be read at the moment");
                return LKG_HEALTH_UNKNOWN;
        }
        if (api->node_says.ready == LKG_NODE_READY)
                return LKG_HEALTH_GOOD;
        (void)snprintf(ret_words, LKG_HEALTH_WORDS_MAX, "the Node %s%s%s%s",
                       api->node_says.ready == LKG_NODE_NOT_READY ? "is not Ready"
                                                                  : "has no condition Ready",
                       *api->node_says.ready_reason ? " (" : "", api->node_says.ready_reason,
                       *api->node_says.ready_reason ? ")" : "");
        return api->node_says.ready == LKG_NODE_NOT_READY ? LKG_HEALTH_BAD : LKG_HEALTH_UNKNOWN;
}

const struct lkg_configmap *lkg_apiserver_configmap(struct lkg_apiserver *api,
                                                    char fault[static LKG_REASON_MAX])
{
        if (!api->client) {
                (void)snprintf(fault, LKG_REASON_MAX, "no credential for the API server was found");
                return NULL;
        }
        return lkg_apiserver_trouble(api, &api->object, fault) == LKG_TROUBLE_NONE ? &api->configmap : NULL;
}

/* ---- rollout ---- */

/* The id that determines this node's bucket; NULL = not known yet, so the bucket might still change. */
static const char *rollout_uid(struct lkg_apiserver *api)
{
        char ignored[LKG_REASON_MAX];
        enum lkg_trouble trouble;

        if (*api->node_says.uid) /* also of a deleted Node: keep the bucket */
                return api->node_says.uid;
        if (*api->name_fault)
                return NULL;
        trouble = lkg_apiserver_trouble(api, &api->node, ignored);
        return trouble == LKG_TROUBLE_FORBIDDEN || trouble == LKG_TROUBLE_OBJECT ? api->node_name : NULL;
}

static bool depends_on_bucket(const struct lkg_rollout *rollout)
{
        return (rollout->state == LKG_ROLLOUT_GO || rollout->state == LKG_ROLLOUT_WAITING) &&
               rollout->percent_milli > 0 && rollout->percent_milli < 100000;
}

const struct lkg_rollout *lkg_apiserver_rollout(struct lkg_apiserver *api,
                                                const struct lkg_configmap *configmap)
{
        const char *uid = rollout_uid(api);

        lkg_rollout_decide(configmap, uid ? uid : "", &api->rollout);
        api->has_rollout = uid != NULL || !depends_on_bucket(&api->rollout);
        return api->has_rollout ? &api->rollout : NULL;
}

/* ---- findings ---- */

static bool looks_at_node(const struct lkg_config *config)
{
        for (size_t i = 0; i < config->remote.references.n_items; i++)
                if (strncmp(config->remote.references.items[i], "node", 4) == 0)
                        return true;
        return false;
}

bool lkg_apiserver_may_do_without_node(const struct lkg_apiserver *api)
{
        return api->node.informer && lkg_informer_look(api->node.informer).status == LKG_API_FORBIDDEN &&
               !looks_at_node(api->places->config) &&
               !lkg_credential_is_node(api->credential, api->node_name);
}

static void find_trouble(struct lkg_apiserver *api, struct lkg_followed *followed, struct lkg_report *report)
{
        static const struct {
                unsigned code;
                const char *hint;
        } kinds[] = {
                [LKG_TROUBLE_FORBIDDEN] = { 7005, "" },
                [LKG_TROUBLE_UNREACHABLE] = { 7006, "; what is assigned goes on serving" },
                [LKG_TROUBLE_OBJECT] = { 7010, "; what is assigned goes on serving" },
        };
        char words[LKG_REASON_MAX];
        enum lkg_trouble trouble = lkg_apiserver_trouble(api, followed, words);

        /* The last reference is still valid then, but the cause is shown at once. */
        if (trouble == LKG_TROUBLE_NONE && followed->failing_ns)
                trouble = say_unreachable(followed, words);
        if (followed == &api->node && lkg_apiserver_may_do_without_node(api))
                lkg_report_add(report, LKG_NOTE, 7005, NULL, "%s; no reference of this node needs it",
                               words);
        else if (trouble > LKG_TROUBLE_NOT_YET)
                lkg_report_add(report, LKG_WARNING, kinds[trouble].code, NULL, "%s%s", words,
                               kinds[trouble].hint);
        else if (followed->informer && *lkg_informer_look(followed->informer).refusal)
                lkg_report_add(report, LKG_NOTE, 7005, NULL,
                               "%s; it is read every %llu s instead of watched",
                               lkg_informer_look(followed->informer).refusal,
                               (unsigned long long)(api->places->config->remote.poll_interval_ns /
                                                    LKG_NSEC_PER_SEC));
}

static void find_credential(const struct lkg_apiserver *api, struct lkg_report *report)
{
        const struct lkg_config *config = api->places->config;

        lkg_report_append(report, lkg_credential_findings(api->credential));
        if (!api->client && looks_at_node(config) && !*config->remote.kubeconfig)
                lkg_report_add(report, LKG_NOTE, 7009, NULL,
                               "no credential for the API server was found, so the Node is not looked at");
        if (api->client && lkg_credential_identity(api->credential) &&
            (config->remote.condition || config->remote.events) &&
            !lkg_credential_is_node(api->credential, api->node_name))
                lkg_report_add(report, LKG_NOTE, 7008, NULL,
                               "the credential is not known to be that of node %s, so neither condition nor "
                               "events are written",
                               api->node_name);
}

void lkg_places_update_findings(struct lkg_places *places)
{
        struct lkg_apiserver *api = places->apiserver;
        struct lkg_report report = LKG_REPORT_INIT;

        if (!api)
                return;
        find_credential(api, &report);
        if (api->node.informer)
                find_trouble(api, &api->node, &report);
        if (api->object.informer && *api->reference.name)
                find_trouble(api, &api->object, &report);
        if (api->has_rollout && api->rollout.state == LKG_ROLLOUT_UNCLEAR)
                lkg_report_add(&report, LKG_WARNING, 7007, NULL,
                               "ConfigMap %s/%s: %s; no node switches to it", api->reference.ns,
                               api->reference.name, api->rollout.words);
        lkg_report_deinit(&api->findings);
        api->findings = report;
}

const struct lkg_report *lkg_places_findings(const struct lkg_places *places)
{
        return places->apiserver ? &places->apiserver->findings : NULL;
}
