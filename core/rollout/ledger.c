/* SPDX-License-Identifier: Apache-2.0 */
/* The slots that are known, sorted by rollout and index; and whose turn that makes it. */
#include <stdlib.h>
#include <string.h>

#include <lkg/slots.h>

#define LOOK_MAX_NS (7200 * LKG_NSEC_PER_SEC)

static int compare(const struct lkg_rollout_slot *slot, const char *hash, unsigned index)
{
        int order = strcmp(slot->hash, hash);

        return order ? order : slot->index < index ? -1 : slot->index > index;
}

/* Where it is, or would be. */
static size_t place(const struct lkg_ledger *ledger, const char *hash, unsigned index)
{
        size_t low = 0, high = ledger->n_items;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare(&ledger->items[middle], hash, index) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static struct lkg_rollout_slot *find_slot(const struct lkg_ledger *ledger, const char *hash, unsigned index)
{
        size_t at = place(ledger, hash, index);

        return at < ledger->n_items && compare(&ledger->items[at], hash, index) == 0 ? &ledger->items[at]
                                                                                     : NULL;
}

const struct lkg_rollout_slot *lkg_ledger_find(const struct lkg_ledger *ledger, const char *hash,
                                               unsigned index)
{
        return find_slot(ledger, hash, index);
}

static void remove_at(struct lkg_ledger *ledger, size_t at)
{
        memmove(&ledger->items[at], &ledger->items[at + 1],
                (ledger->n_items - at - 1) * sizeof(*ledger->items));
        ledger->n_items--;
}

/* While a list is being read, what it has not confirmed so far makes room; if it comes later, it is new. */
static bool make_room(struct lkg_ledger *ledger)
{
        for (size_t i = ledger->n_items; i-- > 0;)
                if (!ledger->items[i].listed) {
                        remove_at(ledger, i);
                        return true;
                }
        return false;
}

/* Return: NULL: there is no room. */
static struct lkg_rollout_slot *insert(struct lkg_ledger *ledger, const struct lkg_rollout_slot *slot)
{
        size_t at;

        if (ledger->n_items == LKG_SLOTS_KNOWN_MAX && !make_room(ledger)) {
                ledger->too_many = true;
                return NULL;
        }
        at = place(ledger, slot->hash, slot->index);
        (void)lkg_need(LKG_RESERVE(ledger->items, ledger->n_items, ledger->n_allocated));
        memmove(&ledger->items[at + 1], &ledger->items[at], (ledger->n_items - at) * sizeof(*ledger->items));
        ledger->n_items++;
        ledger->items[at] = (struct lkg_rollout_slot){ .index = 0 };
        return &ledger->items[at];
}

void lkg_ledger_put(struct lkg_ledger *ledger, const struct lkg_rollout_slot *slot, const char *list_version,
                    uint64_t now_ns)
{
        struct lkg_rollout_slot *known = find_slot(ledger, slot->hash, slot->index);
        uint64_t seen_ns, known_ns;
        bool same;

        if (!known)
                known = insert(ledger, slot);
        if (!known)
                return;
        known->listed = true;
        /* An event that crossed with a newer answer, or a list that did. */
        if (lkg_version_compare(slot->version, known->version) == LKG_VERSION_OLDER &&
            (!list_version || lkg_version_compare(list_version, known->version) == LKG_VERSION_OLDER))
                return;
        same = strcmp(known->version, slot->version) == 0;
        seen_ns = same && known->seen_ns ? known->seen_ns : now_ns;
        known_ns = same && known->known_ns ? known->known_ns : now_ns;
        *known = *slot;
        known->seen_ns = seen_ns;
        known->known_ns = known_ns;
        known->listed = true;
}

void lkg_ledger_remove(struct lkg_ledger *ledger, const char *hash, unsigned index)
{
        const struct lkg_rollout_slot *known = find_slot(ledger, hash, index);

        if (known)
                remove_at(ledger, (size_t)(known - ledger->items));
}

void lkg_ledger_count(const struct lkg_ledger *ledger, const char *hash, struct lkg_slot_counts *ret)
{
        *ret = (struct lkg_slot_counts){ .failed = NULL };
        for (size_t i = place(ledger, hash, 0);
             i < ledger->n_items && strcmp(ledger->items[i].hash, hash) == 0; i++) {
                const struct lkg_rollout_slot *slot = &ledger->items[i];

                ret->n_done += slot->successes;
                ret->n_held += slot->state == LKG_SLOT_HELD;
                ret->n_asked += slot->state == LKG_SLOT_HELD && slot->asked;
                ret->n_failed += slot->state == LKG_SLOT_FAILED;
                if (slot->state == LKG_SLOT_FAILED && !ret->failed)
                        ret->failed = slot;
        }
}

unsigned lkg_ledger_failed_before(const struct lkg_ledger *ledger, const struct lkg_rollout_slot *slot)
{
        unsigned n = 0;

        for (size_t i = place(ledger, slot->hash, 0);
             i < ledger->n_items && strcmp(ledger->items[i].hash, slot->hash) == 0; i++)
                n += ledger->items[i].state == LKG_SLOT_FAILED &&
                     lkg_version_compare(ledger->items[i].version, slot->version) == LKG_VERSION_OLDER;
        return n;
}

/*
 * A list of hundreds of slots costs as much as hundreds of events. So who waits does not look before its turn can be near: after a trial
 * for each N nodes before it, and half of one, as there are N that wait. For who does not wait there is one look a second in the fleet.
 */
uint64_t lkg_slots_look_ns(const struct lkg_slot_wish *wish, const struct lkg_slot_counts *counts)
{
        uint64_t slots = lkg_later(wish->max_in_trial, 1);
        uint64_t near = counts->n_done + counts->n_failed + 2 * slots;
        uint64_t nodes = lkg_later(wish->fleet, counts->n_done);
        uint64_t turn = (uint64_t)wish->fleet * wish->bucket / 100000;
        uint64_t trial_ns = lkg_earlier(lkg_later(wish->duration_ns, LKG_NSEC_PER_SEC), LOOK_MAX_NS);

        if (counts->n_asked || (wish->any && turn < near) ||
            (wish->any && !counts->n_held && lkg_slots_halted(wish, counts)))
                return 0;
        if (!wish->any)
                return counts->n_held ? lkg_later(trial_ns, nodes * LKG_NSEC_PER_SEC) : UINT64_MAX;
        return lkg_earlier(trial_ns / 2 + trial_ns * (turn - near) / slots, LOOK_MAX_NS);
}

void lkg_ledger_deinit(struct lkg_ledger *ledger)
{
        free(ledger->items);
        *ledger = (struct lkg_ledger){ .items = NULL };
}
