/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the engine, pollers and watchers that a new publication is current. In the thread of the event loop. */
#include "file-server.h"

void announce(void)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = publication_get();

        engine_loaded(ref->publication->number);
        view_wake_pollers();
        nodes_prune();
        kernel_invalidate_attributes(FUSE_ROOT_ID);
        relay_announce();
}

/* A worker may have loaded it already, but only here it is announced. */
void announce_newer(uint64_t number)
{
        static uint64_t announced;
        struct lkg_error err = { 0 };
        int r;

        if (number <= announced)
                return;
        r = publication_load(&err);
        if (r < 0) {
                lkg_log_error("publication %llu: %s", (unsigned long long)number, err.message);
                return;
        }
        announced = number;
        announce();
}
