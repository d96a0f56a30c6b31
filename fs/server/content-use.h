/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and users of old content, for content.c and content-use.c. */
#pragma once

#include "file-server.h"

#define OLD_MAX   1024u /* old contents that users may have open, and as many again that they may refer to */
#define OLD_BYTES (256u << 20)

#define SEVERAL   UINT32_MAX /* instead of quota_owner(): users, not one */
#define NO_ONE    (UINT32_MAX - 1)

static inline struct lkg_content_use *use_of(const struct lkg_node *node)
{
        return &server.shm->content_use[node_index(node)];
}

static inline bool is_content(const struct lkg_node *node)
{
        return atomic_load(&node->kind) == LKG_NODE_CONTENT;
}

bool content_is_crowded(void); /* root knows so many that the kinds of root are told apart */
