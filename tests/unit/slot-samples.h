/* SPDX-License-Identifier: Apache-2.0 */
/* Slots for tests: of one rollout, or of another content. Include <cmocka.h> before. */
#pragma once

#include <lkg/slots.h>

#define S LKG_NSEC_PER_SEC

static inline struct lkg_rollout_id make_id(const char *content)
{
        struct lkg_rollout_id id = {
                .ns = "kube-system", .name = "config", .uid = "uid-1", .key = "kubelet", .version = "7"
        };

        (void)snprintf(id.sha256, sizeof(id.sha256), "%s", content);
        lkg_rollout_id_seal(&id);
        return id;
}

static inline struct lkg_rollout_slot make_slot(unsigned index, enum lkg_rollout_slot_state state,
                                                const char *node, const char *version)
{
        const struct lkg_rollout_id id = make_id("aa");
        struct lkg_rollout_slot slot = { .index = index, .state = state, .patience_ns = 900 * S };

        memcpy(slot.uid, id.uid, sizeof(slot.uid));
        memcpy(slot.key, id.key, sizeof(slot.key));
        memcpy(slot.hash, id.hash, sizeof(slot.hash));
        memcpy(slot.sha256, id.sha256, sizeof(slot.sha256));
        (void)snprintf(slot.node, sizeof(slot.node), "%s", node);
        (void)snprintf(slot.version, sizeof(slot.version), "%s", version);
        return slot;
}
