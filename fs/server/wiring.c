/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the hooks of the lower files with the functions above them. The only file that knows both sides. */
#include "requests.h"

const struct lkg_server_hooks lkg_server_hooks = {
        .nodes_crowded = lkg_reclaim,
        .directory_gone = lkg_watch_drop,
        .kept_owner = lkg_node_owner,
        .engine_linked = lkg_link_made,
        .turn_ended = lkg_announce_newer,
        .watch = lkg_worker_watch,
        .slot_freed = lkg_workers_start_more,
};
