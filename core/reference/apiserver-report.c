/* SPDX-License-Identifier: Apache-2.0 */
/* Status of the API client for the view, and reports to the cluster: condition and Events. */
#include "apiserver.h"

/* ---- for the view ---- */

static void fill_object(struct lkg_apiserver *api, struct lkg_followed *followed,
                        struct lkg_remote_object *ret)
{
        const struct lkg_informer *informer = followed->informer;
        struct lkg_informer_look look;

        *ret = (struct lkg_remote_object){
                .followed = informer != NULL,
                .may_be_missing = followed == &api->node && lkg_apiserver_may_do_without_node(api),
                .mode = "off",
                .failing_ns = followed->failing_wall_ns,
        };
        if (!informer)
                return;
        look = lkg_informer_look(informer);
        ret->mode = lkg_informer_mode_name(look.mode);
        ret->watching = look.mode == LKG_INFORMER_WATCH;
        ret->success_ns = look.success_ns;
        ret->failing = look.failing_since_ns != 0;
        /* Shows a failure at once; it affects the reference only after LKG_OUTAGE_NS. */
        (void)snprintf(ret->error, sizeof(ret->error), "%s", look.words);
        if (!*ret->error && lkg_apiserver_trouble(api, followed, ret->error) <= LKG_TROUBLE_NOT_YET)
                *ret->error = '\0';
}

static void fill_credential(const struct lkg_apiserver *api, struct lkg_remote_status *ret)
{
        const struct lkg_identity *identity = lkg_credential_identity(api->credential);

        ret->credential = lkg_credential_kind_name(lkg_credential_kind(api->credential));
        ret->credential_file = lkg_credential_file(api->credential);
        ret->server = identity && identity->server ? identity->server : "";
        ret->user = identity && identity->user ? identity->user : "";
        ret->expires_ns = identity ? identity->expires_ns : 0;
}

static void fill_counters(struct lkg_apiserver *api, struct lkg_remote_status *ret)
{
        struct lkg_client_counters counters = { .n_connections = 0 };

        _Static_assert(_LKG_API_STATUS_MAX <= LKG_REMOTE_CODES_MAX, "each code has a counter");
        lkg_client_counters(api->client, &counters);
        for (int s = 0; s < _LKG_API_STATUS_MAX; s++)
                ret->counts[ret->n_counts++] =
                        (struct lkg_remote_count){ lkg_api_status_name((enum lkg_api_status)s),
                                                   counters.n_answers[s] };
        ret->received_bytes = counters.received_bytes;
        ret->sent_bytes = counters.sent_bytes;
        ret->n_connections = counters.n_connections;
}

void lkg_places_status(struct lkg_places *places, struct lkg_remote_status *ret)
{
        struct lkg_apiserver *api = places->apiserver;

        *ret = (struct lkg_remote_status){
                .in_use = api->client || lkg_places_in_use(places, LKG_PLACE_STATIC),
                .has_client = api->client != NULL,
                .node_name = api->node_name,
                .node_uid = api->node_says.uid,
                .place = lkg_reference_place_name(places->place),
                .reference = *api->reference.name ? &api->reference : NULL,
                .rollout = &api->rollout,
                .has_rollout = api->has_rollout,
                .not_reported = api->reporter ? lkg_reporter_words(api->reporter)
                                              : "no credential, or no name of a Node",
        };
        lkg_places_rollout_status(places, &ret->slots);
        fill_credential(api, ret);
        fill_object(api, &api->node, &ret->node);
        fill_object(api, &api->object, &ret->configmap);
        if (api->client)
                fill_counters(api, ret);
}

/* ---- reports to the cluster ---- */

static bool is_too_early(struct lkg_apiserver *api, struct lkg_followed *followed)
{
        char ignored[LKG_REASON_MAX];

        return lkg_apiserver_trouble(api, followed, ignored) == LKG_TROUBLE_NOT_YET;
}

void lkg_places_published(struct lkg_places *places, const struct lkg_node_condition *condition)
{
        struct lkg_apiserver *api = places->apiserver;

        if (!api)
                return;
        /* Do not report that it is Unknown for a moment at each start, before the first answer. */
        if (!api->reporter || !places->config->remote.condition || is_too_early(api, &api->node) ||
            (api->object.informer && is_too_early(api, &api->object)))
                return;
        lkg_reporter_set_condition(api->reporter, condition);
}

bool lkg_places_note_served(struct lkg_places *places, const char *id)
{
        struct lkg_apiserver *api = places->apiserver;
        bool other;

        if (!api)
                return false;
        other = api->served_known && strcmp(api->served, id) != 0;
        (void)snprintf(api->served, sizeof(api->served), "%s", id);
        api->served_known = true;
        return other;
}

void lkg_places_event(struct lkg_places *places, bool warning, const char *reason, const char *message)
{
        if (places->apiserver && places->apiserver->reporter)
                lkg_reporter_event(places->apiserver->reporter, warning, reason, message);
}
