/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the API server that the files beside this one share, and its next turn. */
#include "engine-api.h"
#include "engine-internal.h"

static const char *const place_words[] = {
        [LKG_PLACE_NONE] = "none",          [LKG_PLACE_NODE_ANNOTATION] = "nodeAnnotation",
        [LKG_PLACE_NODE_SPEC] = "nodeSpec", [LKG_PLACE_STATIC] = "static",
        [LKG_PLACE_FILE] = "file",
};

const char *lkg_place_name(enum lkg_object_place place)
{
        return place_words[place];
}

void lkg_api_kick(struct lkg_api *api)
{
        if (api)
                (void)sd_event_source_set_enabled(api->work, SD_EVENT_ONESHOT);
}

void lkg_api_reconsider(struct lkg_api *api)
{
        api->engine->reference_pending = true;
        lkg_api_kick(api);
}

bool lkg_api_has_credential(const struct lkg_engine *e)
{
        return e->api && (*e->config->remote.kubeconfig ||
                          lkg_credential_kind(e->api->credential) != LKG_CREDENTIAL_NONE);
}

bool lkg_api_in_use(const struct lkg_engine *e, enum lkg_object_place place)
{
        const struct lkg_config *config = e->config;

        switch (place) {
        case LKG_PLACE_NODE_ANNOTATION:
        case LKG_PLACE_NODE_SPEC:
                return lkg_api_has_credential(e);
        case LKG_PLACE_STATIC:
                return e->api && *config->remote.fixed.ns && *config->remote.fixed.name;
        case LKG_PLACE_FILE:
                return *config->remote.file;
        case LKG_PLACE_NONE:
        case _LKG_PLACE_MAX:
                break;
        }
        return false;
}

void lkg_api_note_shown(struct lkg_api *api)
{
        if (!api->client)
                return;
        memset(&api->shown, 0, sizeof(api->shown));
        lkg_client_counters(api->client, &api->shown);
        api->shown_success_ns[0] = api->node.informer ? lkg_informer_success_ns(api->node.informer) : 0;
        api->shown_success_ns[1] = api->object.informer ? lkg_informer_success_ns(api->object.informer) : 0;
}
