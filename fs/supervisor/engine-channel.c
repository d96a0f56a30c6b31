/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the engine. */
#include <lkg/base.h>

#include "supervisor.h"

int lkg_engine_tell(struct lkg_supervisor *s, const struct lkg_message *message)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        int r;

        if (child->channel < 0)
                return -ENOTCONN;
        r = lkg_message_send(child->channel, message);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* those: it has just ended */
                lkg_child_log(child, LOG_WARNING, "does not take messages: %s", strerror(-r));
        return r;
}

void lkg_engine_send(struct lkg_supervisor *s, uint32_t type)
{
        struct lkg_message message;

        lkg_message_init(&message, type);
        (void)lkg_engine_tell(s, &message);
}
