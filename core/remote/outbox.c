/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/text.h>
#include "outbox.h"

#include <inttypes.h>

#define NAME_DIGITS 16u

static bool alike(const struct lkg_node_event *a, const struct lkg_node_event *b)
{
        return a->warning == b->warning && strcmp(a->reason, b->reason) == 0 &&
               strcmp(a->message, b->message) == 0;
}

static struct lkg_node_event *find(struct lkg_node_event *events, size_t n,
                                   const struct lkg_node_event *event)
{
        for (size_t i = 0; i < n; i++)
                if (alike(&events[i], event))
                        return &events[i];
        return NULL;
}

static void take_out(struct lkg_node_event *events, size_t *n, size_t i)
{
        memmove(&events[i], &events[i + 1], (*n - i - 1) * sizeof(*events));
        --*n;
}

/* ---- input ---- */

/* The event rate limits of client-go: LKG_OUTBOX_BURST at once, then one in LKG_OUTBOX_INTERVAL_NS. */
static bool take_token(struct lkg_outbox *outbox, uint64_t now_ns)
{
        uint64_t full_ns = outbox->full_ns > now_ns ? outbox->full_ns : now_ns;

        if (full_ns - now_ns > (LKG_OUTBOX_BURST - 1) * LKG_OUTBOX_INTERVAL_NS)
                return false;
        outbox->full_ns = full_ns + LKG_OUTBOX_INTERVAL_NS;
        return true;
}

/* The first one that the sender does not use: an event in flight is neither changed nor dropped. */
static size_t first_free(const struct lkg_outbox *outbox)
{
        return outbox->sending ? 1 : 0;
}

void lkg_outbox_add(struct lkg_outbox *outbox, bool warning, const char *reason, const char *message,
                    uint64_t now_ns, uint64_t wall_ns)
{
        struct lkg_node_event event = {
                .warning = warning,
                .count = 1,
                .first_wall_ns = wall_ns,
                .last_wall_ns = wall_ns,
        };
        size_t first = first_free(outbox);
        struct lkg_node_event *like;

        lkg_text_copy(event.reason, sizeof(event.reason), reason);
        lkg_text_copy(event.message, sizeof(event.message), message);
        like = find(outbox->waiting + first, outbox->n_waiting - first, &event);
        if (like) {
                like->count++;
                like->last_wall_ns = wall_ns;
                return;
        }
        if (!take_token(outbox, now_ns)) {
                like = find(outbox->known, outbox->n_known, &event);
                if (like)
                        like->count++;
                return;
        }
        if (outbox->n_waiting == LKG_OUTBOX_WAITING)
                take_out(outbox->waiting, &outbox->n_waiting, first);
        outbox->waiting[outbox->n_waiting++] = event;
}

/* ---- output ---- */

/*
 * The name must leave room for the digits, and the cut node name must not end with a character that is
 * invalid at the end of a label.
 */
static void make_name(char name[static LKG_EVENT_NAME_MAX + 1], const char *node, uint64_t random)
{
        size_t n = strnlen(node, LKG_EVENT_NAME_MAX - 1 - NAME_DIGITS);

        while (n > 0 && (node[n - 1] == '.' || node[n - 1] == '-'))
                n--;
        (void)snprintf(name, LKG_EVENT_NAME_MAX + 1, "%.*s.%016" PRIx64, (int)n, node, random);
}

bool lkg_outbox_next(struct lkg_outbox *outbox, const char *node, uint64_t random,
                     struct lkg_outbox_letter *ret)
{
        struct lkg_node_event *event = &outbox->waiting[0];
        struct lkg_node_event *known;

        if (outbox->sending || outbox->n_waiting == 0)
                return false;
        known = find(outbox->known, outbox->n_known, event);
        if (known) {
                (void)stpcpy(event->name, known->name);
                event->first_wall_ns = known->first_wall_ns;
                event->count += known->count;
                known->count = 0; /* from now on: those without a token while this one is under way */
        }
        if (!event->name[0])
                make_name(event->name, node, random);
        outbox->sending = true;
        *ret = (struct lkg_outbox_letter){ event, known != NULL };
        return true;
}

static struct lkg_node_event *place_for(struct lkg_outbox *outbox)
{
        struct lkg_node_event *place = &outbox->known[0];

        if (outbox->n_known < LKG_OUTBOX_KNOWN)
                return &outbox->known[outbox->n_known++];
        for (size_t i = 1; i < outbox->n_known; i++)
                if (outbox->known[i].used < place->used)
                        place = &outbox->known[i];
        return place;
}

static void remember(struct lkg_outbox *outbox, struct lkg_node_event *event)
{
        struct lkg_node_event *place = find(outbox->known, outbox->n_known, event);

        if (place)
                event->count += place->count;
        else
                place = place_for(outbox);
        *place = *event;
        place->used = ++outbox->n_used;
}

static void forget(struct lkg_outbox *outbox, struct lkg_node_event *event)
{
        struct lkg_node_event *known = find(outbox->known, outbox->n_known, event);

        if (known) {
                event->count += known->count;
                take_out(outbox->known, &outbox->n_known, (size_t)(known - outbox->known));
        }
        event->name[0] = '\0';
}

static void drop(struct lkg_outbox *outbox, const struct lkg_node_event *event)
{
        struct lkg_node_event *known = find(outbox->known, outbox->n_known, event);

        if (known)
                known->count += event->count;
        take_out(outbox->waiting, &outbox->n_waiting, 0);
}

void lkg_outbox_end(struct lkg_outbox *outbox, enum lkg_outbox_result result)
{
        struct lkg_node_event *event = &outbox->waiting[0];

        if (!outbox->sending)
                return;
        outbox->sending = false;
        switch (result) {
        case LKG_OUTBOX_SENT:
                remember(outbox, event);
                take_out(outbox->waiting, &outbox->n_waiting, 0);
                break;
        case LKG_OUTBOX_FORGOTTEN:
                forget(outbox, event);
                break;
        case LKG_OUTBOX_REFUSED:
                drop(outbox, event);
                break;
        case LKG_OUTBOX_FAILED:
                break;
        }
}

void lkg_outbox_renew(struct lkg_outbox *outbox)
{
        outbox->n_known = 0;
        for (size_t i = first_free(outbox); i < outbox->n_waiting; i++)
                outbox->waiting[i].name[0] = '\0';
}
