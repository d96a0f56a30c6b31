/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the hooks of the lower files with the functions above them. The only file that knows both sides. */
#include "held-requests.h"

const struct server_hooks server_hooks = {
        .nodes_crowded = reclaim,
        .directory_gone = watch_drop,
        .kept_owner = node_owner,
        .engine_linked = engine_linked,
        .turn_ended = announce_newer,
        .held_work = helpers_wake,
        .held_waits = interrupt_watch,
        .held_replays = worker_watch,
};
