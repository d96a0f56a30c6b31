/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine knows at one moment, for the publisher (<lkg/snapshot.h>). */
#include "engine-api.h"
#include "engine-internal.h"

/* A remote change restarts each node at a moment of its own (remote.restartJitter): when this one is due. */
static uint64_t planned_restart(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        uint64_t now = lkg_boottime_ns(), at = 0;

        if (c->facts && lkg_fact_read(c->facts->dirfd, LKG_FACT_PLAN, &text, NULL) >= 0)
                at = lkg_fact_plan_due(text);
        return at ? lkg_realtime_ns() + (at > now ? at - now : 0) : 0;
}

static void fill_object(struct lkg_api *api, struct lkg_followed *followed, struct lkg_remote_object *ret)
{
        const struct lkg_informer *informer = followed->informer;

        *ret = (struct lkg_remote_object){
                .followed = informer != NULL,
                .may_be_missing = followed == &api->node && lkg_api_may_do_without_node(api),
                .mode = "off",
                .failing_ns = followed->failing_wall_ns,
        };
        if (!informer)
                return;
        ret->mode = lkg_informer_mode_name(lkg_informer_mode(informer));
        ret->watching = lkg_informer_mode(informer) == LKG_INFORMER_WATCH;
        ret->success_ns = lkg_informer_success_ns(informer);
        ret->failing = lkg_informer_failing_since_ns(informer) != 0;
        /* A failure shows at once; what it does to the reference only after a while. */
        (void)snprintf(ret->error, sizeof(ret->error), "%s", lkg_informer_words(informer));
        if (!*ret->error &&
            lkg_api_trouble(api, followed, lkg_boottime_ns(), ret->error) <= LKG_TROUBLE_NOT_YET)
                *ret->error = '\0';
}

static void fill_credential(const struct lkg_api *api, struct lkg_remote_status *ret)
{
        const struct lkg_identity *identity = lkg_credential_identity(api->credential);

        ret->credential = lkg_credential_kind_name(lkg_credential_kind(api->credential));
        ret->credential_file = lkg_credential_file(api->credential);
        ret->server = identity && identity->server ? identity->server : "";
        ret->user = identity && identity->user ? identity->user : "";
        ret->expires_ns = identity ? identity->expires_ns : 0;
}

static void fill_counters(struct lkg_api *api, struct lkg_remote_status *ret)
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

static void fill_remote(struct lkg_api *api, const struct lkg_component *c, struct lkg_remote_status *ret)
{
        *ret = (struct lkg_remote_status){
                .in_use = api->client || lkg_api_in_use(api->engine, LKG_PLACE_STATIC),
                .has_client = api->client != NULL,
                .node_name = api->node_name,
                .node_uid = api->node_says.uid,
                .place = lkg_place_name(api->engine->place),
                .reference = api->has_reference ? &api->reference : NULL,
                .rollout = &api->rollout,
                .has_rollout = api->has_rollout,
                .not_reported = api->reporter ? lkg_reporter_words(api->reporter)
                                              : "no credential, or no name of a Node",
                .restart_ns = planned_restart(c),
        };
        fill_credential(api, ret);
        fill_object(api, &api->node, &ret->node);
        fill_object(api, &api->object, &ret->configmap);
        if (api->client)
                fill_counters(api, ret);
}

void lkg_engine_take_snapshot(struct lkg_engine *e, struct lkg_engine_snapshot *ret)
{
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_component *c = &e->components[i];

                if (c->api)
                        fill_remote(c->api, c, &ret->remote[i]);
                ret->components[i] = (struct lkg_snapshot_component){
                        .component = c,
                        .remote = c->api ? &ret->remote[i] : NULL,
                        .changed = c->dirty,
                };
        }
        ret->snapshot = (struct lkg_snapshot){
                .config = e->config,
                .components = ret->components,
                .n_components = e->n_components,
                .rules = &e->rules,
                .findings = &e->shown,
                .now_ns = lkg_realtime_ns(),
        };
}

void lkg_engine_note_published(struct lkg_engine *e, const struct lkg_engine_snapshot *snapshot)
{
        for (size_t i = 0; i < e->n_components; i++)
                e->components[i].dirty = snapshot->components[i].changed;
}
