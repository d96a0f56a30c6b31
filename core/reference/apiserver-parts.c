/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder: queries about places, and scheduling the next turn. */
#include "apiserver.h"

void lkg_apiserver_kick(struct lkg_apiserver *api)
{
        if (api)
                (void)sd_event_source_set_enabled(api->work, SD_EVENT_ONESHOT);
}

void lkg_apiserver_reconsider(struct lkg_apiserver *api)
{
        api->places->pending = true;
        lkg_apiserver_kick(api);
}

bool lkg_apiserver_has_credential(const struct lkg_apiserver *api)
{
        return api && (*api->places->config->remote.kubeconfig ||
                       lkg_credential_kind(api->credential) != LKG_CREDENTIAL_NONE);
}

bool lkg_places_in_use(const struct lkg_places *places, enum lkg_reference_place place)
{
        const struct lkg_config *config = places->config;

        switch (place) {
        case LKG_PLACE_NODE_ANNOTATION:
        case LKG_PLACE_NODE_SPEC:
                return lkg_apiserver_has_credential(places->apiserver);
        case LKG_PLACE_STATIC:
                return places->apiserver && *config->remote.fixed.ns && *config->remote.fixed.name;
        case LKG_PLACE_FILE:
                return *config->remote.file;
        case LKG_PLACE_NONE:
        case _LKG_PLACE_MAX:
                break;
        }
        return false;
}
