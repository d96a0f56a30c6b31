/* SPDX-License-Identifier: Apache-2.0 */
/* A node that seeks a slot, keeps it, and gives it back: see <lkg/slots.h>. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <lkg/slots.h>

#define UNUSED_NS         (60 * LKG_NSEC_PER_SEC)  /* a slot that is granted and not used goes back */
#define REFUSED_NS        (300 * LKG_NSEC_PER_SEC) /* between two questions; control/sync asks at once */
#define REFUSED_HELD_NS   (20 * LKG_NSEC_PER_SEC)
#define REFUSED_FIRST_NS  LKG_NSEC_PER_SEC
#define REFUSED_DOUBLINGS 9u
#define ASKED_RETRY_NS    (10 * LKG_NSEC_PER_SEC) /* who is asked has no time for a long backoff */
#define IN_VAIN_DOUBLINGS 3u                      /* of a second, as that */
/* of the first window, for each node that competes, where the size of the fleet is known */
#define PER_NODE_NS (200 * LKG_NSEC_PER_MSEC)
#define WIDEST      8u /* times the first window, then */

const char *lkg_slot_verdict_name(enum lkg_slot_verdict verdict)
{
        static const char *const names[] = {
                [LKG_SLOT_WAITING] = "waiting", [LKG_SLOT_GRANTED] = "granted", [LKG_SLOT_HALTED] = "halted",
                [LKG_SLOT_DOUBTED] = "refused", [LKG_SLOT_REFUSED] = "refused", [LKG_SLOT_SILENT] = "silent",
        };

        return names[verdict];
}

static uint64_t part_of(uint64_t ns, uint32_t random)
{
        return (uint64_t)(((unsigned __int128)ns * random) >> 32);
}

/* ---- whose slot is it? ---- */

static enum lkg_slot_outcome outcome_of(const struct lkg_seeker *seeker, const char *sha256,
                                        char reason[static LKG_SLOT_REASON_MAX])
{
        *reason = '\0';
        return seeker->ops.outcome(sha256, reason, seeker->ops.userdata);
}

/* Has this machine tried it, or does it? Then the state directory says so, whatever has become of the Node object meanwhile. */
static bool is_tried_here(const struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot)
{
        char reason[LKG_SLOT_REASON_MAX];
        enum lkg_slot_outcome outcome = outcome_of(seeker, slot->sha256, reason);

        return outcome == LKG_OUTCOME_TRYING || outcome == LKG_OUTCOME_GOOD || outcome == LKG_OUTCOME_BAD;
}

/* By the name of the Node and its uid: a machine that was installed anew under an old name is another one. */
static bool is_mine(const struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot)
{
        return slot->state == LKG_SLOT_HELD && strcmp(slot->node, seeker->node) == 0 &&
               (!*slot->node_uid || !*seeker->node_uid || strcmp(slot->node_uid, seeker->node_uid) == 0 ||
                is_tried_here(seeker, slot));
}

static bool is_of_wish(const struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot)
{
        return strcmp(slot->hash, seeker->wish.id.hash) == 0;
}

/* The first of mine, of any rollout of the ConfigMap or of what is wanted: after an unclear answer there may be two. */
static const struct lkg_rollout_slot *find_mine(const struct lkg_seeker *seeker, bool any_rollout)
{
        for (size_t i = 0; i < seeker->ledger.n_items; i++)
                if ((any_rollout || is_of_wish(seeker, &seeker->ledger.items[i])) &&
                    is_mine(seeker, &seeker->ledger.items[i]))
                        return &seeker->ledger.items[i];
        return NULL;
}

static const struct lkg_rollout_slot *my_slot(const struct lkg_seeker *seeker)
{
        return find_mine(seeker, /* any_rollout= */ false);
}

int lkg_seeker_own(const struct lkg_seeker *seeker)
{
        const struct lkg_rollout_slot *mine = my_slot(seeker);

        return mine ? (int)mine->index : -1;
}

/* Slow start: one more than have succeeded at a time; a slot that has failed, and does not halt the rollout, is made up for. */
static unsigned highest_open(const struct lkg_slot_counts *counts)
{
        return counts->n_done + counts->n_failed;
}

/* After how long it lists the slots once more; 0: it watches them; UINT64_MAX: never. */
static uint64_t look_ns(const struct lkg_seeker *seeker)
{
        struct lkg_slot_counts counts;

        lkg_ledger_count(&seeker->ledger, seeker->wish.id.hash, &counts);
        return find_mine(seeker, /* any_rollout= */ true) ? 0 : lkg_slots_look_ns(&seeker->wish, &counts);
}

bool lkg_seeker_watches(const struct lkg_seeker *seeker)
{
        return look_ns(seeker) == 0;
}

/* ---- lifetime and what is wanted ---- */

void lkg_seeker_init(struct lkg_seeker *seeker, const char *node, const struct lkg_seeker_ops *ops)
{
        *seeker = (struct lkg_seeker){ .must_list = true, .ops = *ops };
        (void)snprintf(seeker->node, sizeof(seeker->node), "%s", node);
}

void lkg_seeker_deinit(struct lkg_seeker *seeker)
{
        lkg_ledger_deinit(&seeker->ledger);
}

/* Does it hold a slot, or may it be about to get one? */
static bool has_any(const struct lkg_seeker *seeker)
{
        return seeker->under_way == LKG_SLOT_CREATE || seeker->under_way == LKG_SLOT_UPDATE ||
               find_mine(seeker, /* any_rollout= */ true);
}

void lkg_seeker_wish(struct lkg_seeker *seeker, const struct lkg_slot_wish *wish)
{
        bool watched = lkg_seeker_watches(seeker);

        if (strcmp(wish->id.uid, seeker->wish.id.uid) != 0 && has_any(seeker)) {
                seeker->wish.any = false; /* first give back what is held of the other ConfigMap */
                seeker->wish.newest = false;
                seeker->postponed = true;
                return;
        }
        seeker->postponed = false;
        if (strcmp(wish->id.uid, seeker->wish.id.uid) != 0) {
                lkg_ledger_deinit(&seeker->ledger);
                seeker->must_list = true;
        }
        if (strcmp(wish->id.hash, seeker->wish.id.hash) != 0) {
                seeker->granted = false;
                seeker->take_at_ns = seeker->window_ns = 0;
        }
        if (strcmp(wish->id.hash, seeker->wish.id.hash) != 0 || wish->any != seeker->wish.any)
                seeker->look_at_ns = 0;
        seeker->wish = *wish;
        seeker->must_list |= !watched && lkg_seeker_watches(seeker); /* what is known may be old */
}

/* ---- inputs ---- */

void lkg_seeker_list_begins(struct lkg_seeker *seeker, const char *version)
{
        (void)snprintf(seeker->list_version, sizeof(seeker->list_version), "%s", version);
        seeker->ledger.too_many = false;
        for (size_t i = 0; i < seeker->ledger.n_items; i++)
                seeker->ledger.items[i].listed = false;
}

static void put(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, const char *list_version,
                uint64_t now_ns)
{
        const struct lkg_rollout_slot *mine;

        lkg_ledger_put(&seeker->ledger, slot, list_version, now_ns);
        mine = my_slot(seeker);
        if (seeker->granted && !mine)
                seeker->granted = false;
        if (mine && mine->asked)
                seeker->not_before_ns = lkg_earlier(seeker->not_before_ns, now_ns + ASKED_RETRY_NS);
}

void lkg_seeker_put(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, uint64_t now_ns)
{
        put(seeker, slot, /* list_version= */ NULL, now_ns);
}

void lkg_seeker_put_listed(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, uint64_t now_ns)
{
        put(seeker, slot, seeker->list_version, now_ns);
}

void lkg_seeker_removed(struct lkg_seeker *seeker, const char *hash, unsigned index)
{
        lkg_ledger_remove(&seeker->ledger, hash, index);
        seeker->must_list |= seeker->ledger.too_many; /* there is room for one that is not known */
        seeker->granted = seeker->granted && my_slot(seeker);
}

/*
 * A consistent list decides. On trial already: a restart, the slot stays. Otherwise everything must hold now, as it did for the
 * watch when the slot was taken.
 */
static void decide(struct lkg_seeker *seeker, uint64_t now_ns)
{
        const struct lkg_rollout_slot *mine = my_slot(seeker);
        char reason[LKG_SLOT_REASON_MAX];
        struct lkg_slot_counts counts;

        seeker->granted = false;
        if (!mine)
                return;
        seeker->granted_ns = now_ns;
        if (outcome_of(seeker, mine->sha256, reason) == LKG_OUTCOME_TRYING) {
                seeker->granted = true;
                return;
        }
        lkg_ledger_count(&seeker->ledger, seeker->wish.id.hash, &counts);
        seeker->granted = !lkg_slots_halted(&seeker->wish, &counts) &&
                          mine->index < seeker->wish.max_in_trial && mine->index <= highest_open(&counts) &&
                          counts.n_held <= seeker->wish.max_in_trial && !seeker->ledger.too_many;
}

static void allowed(struct lkg_seeker *seeker)
{
        seeker->refused_request = LKG_SLOT_NOTHING;
        seeker->n_refusals = 0;
}

void lkg_seeker_listed(struct lkg_seeker *seeker, struct lkg_seeker_moment at)
{
        for (size_t i = seeker->ledger.n_items; i-- > 0;) {
                const struct lkg_rollout_slot *slot = &seeker->ledger.items[i];

                if (!slot->listed &&
                    lkg_version_compare(seeker->list_version, slot->version) != LKG_VERSION_OLDER)
                        lkg_ledger_remove(&seeker->ledger, slot->hash, slot->index);
        }
        for (size_t i = 0; i < seeker->ledger.n_items; i++)
                if (!seeker->ledger.items[i].seen_ns)
                        seeker->ledger.items[i].seen_ns = at.now_ns;
        lkg_backoff_succeeded(&seeker->backoff, at.now_ns);
        seeker->under_way = LKG_SLOT_NOTHING;
        seeker->not_before_ns = 0;
        seeker->in_contact = true;
        seeker->must_list = false;
        if (seeker->refused_request == LKG_SLOT_LIST)
                allowed(seeker);
        decide(seeker, at.now_ns);
}

/* How long the holders have been silent counts from the next list. */
static void forgive_silence(struct lkg_seeker *seeker)
{
        for (size_t i = 0; i < seeker->ledger.n_items; i++)
                seeker->ledger.items[i].seen_ns = 0;
}

void lkg_seeker_forget(struct lkg_seeker *seeker)
{
        lkg_ledger_deinit(&seeker->ledger);
        seeker->granted = false;
}

void lkg_seeker_lost_contact(struct lkg_seeker *seeker)
{
        seeker->in_contact = seeker->hears = false;
        /* others may fail, or take the slot for abandoned: the next list decides again */
        seeker->granted = false;
        seeker->must_list = true;
        forgive_silence(seeker);
}

/* For so many that may write at a time; only those do that watch. */
static uint64_t window_for(const struct lkg_seeker *seeker, uint64_t n_nodes)
{
        uint64_t ns = lkg_earlier(n_nodes, 2 * (uint64_t)seeker->wish.max_in_trial) * PER_NODE_NS;

        return ns < LKG_SLOT_WINDOW_MIN ? LKG_SLOT_WINDOW_MIN : lkg_earlier(ns, LKG_SLOT_WINDOW_MAX);
}

/* Those of the fleet that have no verdict yet compete for a slot. */
static uint64_t first_window(const struct lkg_seeker *seeker)
{
        struct lkg_slot_counts counts;
        unsigned fleet = seeker->wish.fleet;

        lkg_ledger_count(&seeker->ledger, seeker->wish.id.hash, &counts);
        return window_for(seeker, fleet > highest_open(&counts) ? fleet - highest_open(&counts) : 0);
}

/*
 * A window that conflicts have widened is for as many competitors as there were then. Where the size of the fleet is known, it
 * shrinks with those who are left: otherwise the last nodes of a rollout would wait minutes for slots that nobody else wants.
 */
static uint64_t window(const struct lkg_seeker *seeker)
{
        uint64_t first_ns = first_window(seeker);

        if (seeker->window_ns <= first_ns)
                return first_ns;
        return seeker->wish.fleet ? lkg_earlier(seeker->window_ns, WIDEST * first_ns) : seeker->window_ns;
}

static void note_conflict(struct lkg_seeker *seeker)
{
        seeker->n_conflicts++;
        seeker->window_ns = lkg_earlier(2 * window(seeker), LKG_SLOT_WINDOW_MAX);
}

/*
 * An API server that has just started refuses everything, because its authorizer has not read the Roles yet. So the first
 * refusals say little, and are repeated soon; a Role that is missing does not appear by itself, and is asked for every five minutes.
 * Who holds a slot asks more often: others would take it for vanished.
 */
static uint64_t refused_for(struct lkg_seeker *seeker, uint32_t random)
{
        uint64_t ns = REFUSED_FIRST_NS
                      << (seeker->n_refusals < REFUSED_DOUBLINGS ? seeker->n_refusals : REFUSED_DOUBLINGS);

        if (seeker->n_refusals < UINT_MAX)
                seeker->n_refusals++;
        ns = lkg_earlier(ns, find_mine(seeker, true) ? REFUSED_HELD_NS : REFUSED_NS);
        return ns / 2 + part_of(ns, random);
}

void lkg_seeker_watch_lost(struct lkg_seeker *seeker, struct lkg_seeker_moment at)
{
        lkg_seeker_lost_contact(seeker);
        seeker->not_before_ns = at.now_ns + lkg_backoff_failed(&seeker->backoff, 0, at.random, at.now_ns);
}

void lkg_seeker_watch_refused(struct lkg_seeker *seeker, struct lkg_seeker_moment at)
{
        lkg_seeker_lost_contact(seeker);
        seeker->refused_request = LKG_SLOT_WATCH;
        seeker->not_before_ns = at.now_ns + refused_for(seeker, at.random);
}

void lkg_seeker_watch_closed(struct lkg_seeker *seeker)
{
        seeker->hears = false;
}

void lkg_seeker_watch_open(struct lkg_seeker *seeker)
{
        seeker->hears = true;
        if (seeker->refused_request == LKG_SLOT_WATCH)
                allowed(seeker);
}

/*
 * After a conflict the next list says what the slot is now, and a second one is an accident. Whatever else may cause them: no loop
 * without a pause. Return: when it may go on; 0 = at once.
 */
static uint64_t in_vain(struct lkg_seeker *seeker, bool conflict, struct lkg_seeker_moment at)
{
        unsigned n = seeker->n_in_vain;

        seeker->n_in_vain = !conflict ? 0 : n < IN_VAIN_DOUBLINGS ? n + 1 : n;
        return conflict && n > 0 ? at.now_ns + part_of(LKG_NSEC_PER_SEC << n, at.random) : 0;
}

void lkg_seeker_answered(struct lkg_seeker *seeker, enum lkg_slot_answer answer,
                         const struct lkg_rollout_slot *written, struct lkg_seeker_moment at)
{
        enum lkg_slot_request was = seeker->under_way;
        bool taking = was != LKG_SLOT_LIST && seeker->taking;
        const struct lkg_rollout_slot *mine = my_slot(seeker);

        seeker->under_way = LKG_SLOT_NOTHING;
        seeker->taking = false;
        if (answer == LKG_SLOT_FORBIDDEN)
                seeker->refused_request = was;
        else if (seeker->refused_request != LKG_SLOT_WATCH)
                allowed(seeker);
        if (answer == LKG_SLOT_DONE || answer == LKG_SLOT_CONFLICT) {
                lkg_backoff_succeeded(&seeker->backoff, at.now_ns);
                seeker->not_before_ns = in_vain(seeker, answer == LKG_SLOT_CONFLICT && !taking, at);
        } else {
                uint64_t wait_ns = lkg_backoff_failed(&seeker->backoff, 0, at.random, at.now_ns);

                if (answer == LKG_SLOT_FORBIDDEN)
                        wait_ns = refused_for(seeker, at.random);
                if (mine && mine->asked)
                        wait_ns = lkg_earlier(wait_ns, ASKED_RETRY_NS);
                seeker->not_before_ns = at.now_ns + wait_ns;
                forgive_silence(seeker); /* who cannot be written to cannot be blamed for not writing */
        }
        if (answer == LKG_SLOT_DONE && written)
                lkg_seeker_put(seeker, written, at.now_ns);
        if (answer == LKG_SLOT_CONFLICT && taking)
                note_conflict(seeker);
        if (answer == LKG_SLOT_DONE && taking)
                seeker->window_ns = 0;
        /*
         * Taken: look once more before it counts. Conflict: it is not as we know it, and the watch is about to say so to who wants one.
         * Unclear: it may be done.
         */
        if (!(answer == LKG_SLOT_CONFLICT ? taking : answer == LKG_SLOT_DONE && written && !taking) ||
            !seeker->hears)
                seeker->must_list = true;
}

/* ---- what to do next ---- */

static enum lkg_slot_request write_slot(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot,
                                        bool taking)
{
        seeker->writing = *slot;
        seeker->taking = taking;
        seeker->under_way = *slot->version ? LKG_SLOT_UPDATE : LKG_SLOT_CREATE;
        return seeker->under_way;
}

static void set_text(char *ret, size_t size, const char *text)
{
        (void)snprintf(ret, size, "%s", text);
}

/*
 * Not all may write at once: each waits for a random part of @within_ns. @when_ns: 0 = not planned yet. Return: has the time come? Then
 * nothing is planned any more.
 */
static bool has_come(uint64_t *when_ns, uint64_t within_ns, struct lkg_seeker_moment at, uint64_t *due_ns)
{
        if (!*when_ns)
                *when_ns = at.now_ns + 1 + part_of(within_ns, at.random);
        *due_ns = lkg_earlier(*due_ns, *when_ns);
        if (at.now_ns < *when_ns)
                return false;
        *when_ns = 0;
        return true;
}

static struct lkg_rollout_slot failed(const struct lkg_rollout_slot *held, const char *reason,
                                      uint64_t wall_ns)
{
        struct lkg_rollout_slot slot = *held;

        slot.state = LKG_SLOT_FAILED;
        slot.asked = false;
        slot.renewed_ns = wall_ns;
        set_text(slot.reason, sizeof(slot.reason), reason);
        return slot;
}

/* Each renewal is an event for the whole fleet. Half of the time after which the holder would be asked: one may be lost. */
static uint64_t renewal_ns(const struct lkg_rollout_slot *mine)
{
        return (mine->patience_ns - LKG_SLOT_ASKED_NS) / 2;
}

/* Others rely on it for a minute: whoever has not switched by then has to ask again. */
static bool grant_lasts(const struct lkg_seeker *seeker, uint64_t now_ns)
{
        return seeker->granted && now_ns < seeker->granted_ns + UNUSED_NS;
}

/* What is to be done with one of mine. Return: NOTHING: it is kept. */
static enum lkg_slot_request tend(struct lkg_seeker *seeker, const struct lkg_rollout_slot *mine,
                                  struct lkg_seeker_moment at, uint64_t *due_ns)
{
        char reason[LKG_SLOT_REASON_MAX];
        enum lkg_slot_outcome outcome = outcome_of(seeker, mine->sha256, reason);
        bool first = mine == my_slot(seeker);
        struct lkg_rollout_slot next = *mine;

        lkg_slot_give_back(&next);
        if (outcome == LKG_OUTCOME_BAD) {
                next = failed(mine, reason, at.wall_ns);
                return write_slot(seeker, &next, false);
        }
        next.successes += outcome == LKG_OUTCOME_GOOD;
        if (outcome == LKG_OUTCOME_WANTED && first && seeker->granted) {
                *due_ns = lkg_earlier(*due_ns, seeker->granted_ns + UNUSED_NS);
                seeker->granted = grant_lasts(seeker, at.now_ns);
        }
        if (outcome == LKG_OUTCOME_TRYING || (outcome == LKG_OUTCOME_WANTED && first && seeker->granted)) {
                if (!seeker->renew_at_ns)
                        seeker->renew_at_ns = at.now_ns + lkg_jitter(renewal_ns(mine), 20, at.random);
                *due_ns = lkg_earlier(*due_ns, seeker->renew_at_ns);
                if (at.now_ns < seeker->renew_at_ns && !mine->asked)
                        return LKG_SLOT_NOTHING;
                next = *mine;
                next.asked = false;
                next.renewed_ns = at.wall_ns;
                if (*seeker->node_uid)
                        set_text(next.node_uid, sizeof(next.node_uid), seeker->node_uid);
        }
        seeker->renew_at_ns = 0;
        return write_slot(seeker, &next, false);
}

static enum lkg_slot_request tend_mine(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                       uint64_t *due_ns)
{
        enum lkg_slot_request request = LKG_SLOT_NOTHING;

        for (size_t i = 0; i < seeker->ledger.n_items && request == LKG_SLOT_NOTHING; i++)
                if (is_mine(seeker, &seeker->ledger.items[i]))
                        request = tend(seeker, &seeker->ledger.items[i], at, due_ns);
        return request;
}

static bool is_takeable(const struct lkg_seeker *seeker, unsigned index)
{
        const struct lkg_rollout_slot *slot = lkg_ledger_find(&seeker->ledger, seeker->wish.id.hash, index);

        return !slot || (slot->state == LKG_SLOT_FREE && !slot->collected);
}

/* One of the slots below @end that can be taken, at random. Return: is there any? */
static bool choose_below(const struct lkg_seeker *seeker, unsigned end, uint32_t random, unsigned *ret_index)
{
        unsigned n = 0, which;

        for (unsigned k = 0; k < end; k++)
                n += is_takeable(seeker, k);
        which = (unsigned)part_of(n, random);
        for (unsigned k = 0; k < end; k++)
                if (is_takeable(seeker, k) && which-- == 0) {
                        *ret_index = k;
                        return true;
                }
        return false;
}

/*
 * One of those that may be taken, at random. Return: is there any? Who has only looked leaves them to those whose turn is near, unless
 * these use less than half: the fleet may be smaller than it was said to be, and those whose turn it was may be away.
 */
static bool choose(const struct lkg_seeker *seeker, uint32_t random, unsigned *ret_index)
{
        struct lkg_slot_counts counts;
        unsigned end;

        lkg_ledger_count(&seeker->ledger, seeker->wish.id.hash, &counts);
        if (lkg_slots_halted(&seeker->wish, &counts) || seeker->ledger.too_many ||
            counts.n_held >= seeker->wish.max_in_trial)
                return false;
        end = (unsigned)lkg_earlier(seeker->wish.max_in_trial, highest_open(&counts) + 1);
        return (seeker->hears || 2 * counts.n_held + counts.n_failed < end) &&
               choose_below(seeker, end, random, ret_index);
}

/* Carrier sensing: wait a random time, until @when_ns, and give up when somebody else was faster. */
static enum lkg_slot_request take_slot(struct lkg_seeker *seeker, unsigned index, uint64_t *when_ns,
                                       struct lkg_seeker_moment at, uint64_t *due_ns)
{
        const struct lkg_rollout_slot *known = lkg_ledger_find(&seeker->ledger, seeker->wish.id.hash, index);
        struct lkg_rollout_slot slot = known ? *known : (struct lkg_rollout_slot){ .index = index };

        if (!has_come(when_ns, window(seeker), at, due_ns))
                return LKG_SLOT_NOTHING;
        set_text(slot.uid, sizeof(slot.uid), seeker->wish.id.uid);
        set_text(slot.key, sizeof(slot.key), seeker->wish.id.key);
        set_text(slot.hash, sizeof(slot.hash), seeker->wish.id.hash);
        set_text(slot.sha256, sizeof(slot.sha256), seeker->wish.id.sha256);
        set_text(slot.of_version, sizeof(slot.of_version), seeker->wish.id.version);
        set_text(slot.node, sizeof(slot.node), seeker->node);
        set_text(slot.node_uid, sizeof(slot.node_uid), seeker->node_uid);
        slot.state = LKG_SLOT_HELD;
        slot.since_ns = slot.renewed_ns = at.wall_ns;
        slot.patience_ns =
                lkg_earlier(seeker->wish.duration_ns, LKG_SLOT_PATIENCE_MAX - LKG_SLOT_PATIENCE_MORE) +
                LKG_SLOT_PATIENCE_MORE;
        *slot.reason = '\0';
        return write_slot(seeker, &slot, /* taking= */ true);
}

static bool has_failed_here(const struct lkg_seeker *seeker)
{
        for (size_t i = 0; i < seeker->ledger.n_items; i++)
                if (is_of_wish(seeker, &seeker->ledger.items[i]) &&
                    seeker->ledger.items[i].state == LKG_SLOT_FAILED &&
                    strcmp(seeker->ledger.items[i].node, seeker->node) == 0)
                        return true;
        return false;
}

/*
 * On trial and without a slot, because somebody has deleted it, or slots came later than the trial: the fleet has to know, even if
 * there are more on trial then than there may be. All slots may have been deleted at once, so those that were in them keep apart like
 * all who want one.
 */
static enum lkg_slot_request reclaim(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                     uint64_t *due_ns)
{
        char reason[LKG_SLOT_REASON_MAX];
        unsigned index = 0;

        if (!seeker->wish.max_in_trial || seeker->postponed || seeker->ledger.too_many || my_slot(seeker) ||
            outcome_of(seeker, seeker->wish.id.sha256, reason) != LKG_OUTCOME_TRYING ||
            has_failed_here(seeker) ||
            (!choose_below(seeker, seeker->wish.max_in_trial, at.random, &index) &&
             !choose_below(seeker, LKG_SLOTS_MAX, at.random, &index))) {
                seeker->reclaim_at_ns = 0;
                return LKG_SLOT_NOTHING;
        }
        return take_slot(seeker, index, &seeker->reclaim_at_ns, at, due_ns);
}

static enum lkg_slot_request take(struct lkg_seeker *seeker, struct lkg_seeker_moment at, uint64_t *due_ns)
{
        unsigned index = 0;

        if (!seeker->wish.any || !(seeker->hears || seeker->looked) || my_slot(seeker) ||
            !choose(seeker, at.random, &index)) {
                seeker->take_at_ns = 0;
                return LKG_SLOT_NOTHING;
        }
        if (seeker->looked) /* at a random time already */
                seeker->take_at_ns = at.now_ns;
        return take_slot(seeker, index, &seeker->take_at_ns, at, due_ns);
}

/* For how long may a holder say nothing, before it is asked, and then before it has vanished? */
static uint64_t silence_ns(const struct lkg_rollout_slot *held)
{
        return held->asked ? LKG_SLOT_ASKED_NS : held->patience_ns - LKG_SLOT_ASKED_NS;
}

/*
 * A holder that has not renewed its slot for too long is asked, and has vanished if it does not answer: while nobody can write,
 * nobody can renew, and the first write after that must not be the verdict. Not all observers may write at once.
 */
static enum lkg_slot_request note_vanished(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                           uint64_t *due_ns)
{
        const struct lkg_rollout_slot *gone = NULL;
        struct lkg_rollout_slot slot;
        char reason[LKG_SLOT_REASON_MAX];

        for (size_t i = 0; (seeker->hears || seeker->looked) && i < seeker->ledger.n_items && !gone; i++) {
                const struct lkg_rollout_slot *held = &seeker->ledger.items[i];

                if (held->state != LKG_SLOT_HELD || !held->seen_ns || is_mine(seeker, held) ||
                    !is_of_wish(seeker, held))
                        continue;
                if (at.now_ns >= held->seen_ns + silence_ns(held))
                        gone = held;
                else
                        *due_ns = lkg_earlier(*due_ns, held->seen_ns + silence_ns(held));
        }
        if (!gone) {
                seeker->vanished_at_ns = 0;
                return LKG_SLOT_NOTHING;
        }
        if (seeker->looked)
                seeker->vanished_at_ns = at.now_ns;
        if (!has_come(&seeker->vanished_at_ns, window_for(seeker, seeker->wish.fleet), at, due_ns))
                return LKG_SLOT_NOTHING;
        if (!gone->asked) {
                slot = *gone;
                slot.asked = true;
                return write_slot(seeker, &slot, false);
        }
        (void)snprintf(reason, sizeof(reason), "vanished: it has not renewed its slot for %llu s",
                       (unsigned long long)(gone->patience_ns / LKG_NSEC_PER_SEC));
        slot = failed(gone, reason, at.wall_ns);
        return write_slot(seeker, &slot, false);
}

/*
 * A slot of a rollout that another one has followed a day ago: by the API server's clock, which an engine that has just started can
 * compare; or nobody has written it for a day of this observer, while something else was wanted.
 */
static bool is_old(const struct lkg_rollout_slot *slot, uint64_t newest, uint64_t now_ns)
{
        bool vanished = slot->seen_ns && now_ns >= slot->seen_ns + slot->patience_ns;
        bool followed = slot->created_ns && slot->created_ns + LKG_SLOT_OLD_NS < newest;
        bool silent = slot->known_ns && now_ns >= slot->known_ns + LKG_SLOT_OLD_NS;

        return (followed || silent) && (slot->state != LKG_SLOT_HELD || vanished);
}

static const struct lkg_rollout_slot *find_old(const struct lkg_seeker *seeker, uint64_t now_ns)
{
        uint64_t newest = 0;

        for (size_t i = 0; i < seeker->ledger.n_items; i++)
                if (is_of_wish(seeker, &seeker->ledger.items[i]) &&
                    seeker->ledger.items[i].created_ns > newest)
                        newest = seeker->ledger.items[i].created_ns;
        for (size_t i = 0; i < seeker->ledger.n_items; i++) {
                const struct lkg_rollout_slot *slot = &seeker->ledger.items[i];

                /* Another key is a pool of its own, whose rollout may be halted or under way. */
                if (!is_of_wish(seeker, slot) && strcmp(slot->key, seeker->wish.id.key) == 0 &&
                    !slot->collected && is_old(slot, newest, now_ns))
                        return slot;
        }
        return NULL;
}

/*
 * Only by a node that wants what the ConfigMap has now. One that is kept at an earlier content (a percentage, a halt, a failure of
 * its own) would take the slots of the newest for old, and with them the failures that have halted it.
 */
static enum lkg_slot_request collect(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                     uint64_t *due_ns)
{
        const struct lkg_rollout_slot *old =
                seeker->wish.newest && seeker->hears ? find_old(seeker, at.now_ns) : NULL;
        struct lkg_rollout_slot slot;

        if (!old || !has_come(&seeker->collect_at_ns, LKG_SLOT_COLLECT_NS, at, due_ns))
                return LKG_SLOT_NOTHING;
        seeker->collect_at_ns = at.now_ns + LKG_SLOT_COLLECT_NS;
        slot = *old;
        slot.collected = true;
        return write_slot(seeker, &slot, false);
}

/* Who does not watch lists all slots from time to time. */
static enum lkg_slot_request look(struct lkg_seeker *seeker, struct lkg_seeker_moment at, uint64_t *due_ns)
{
        uint64_t ns = look_ns(seeker);

        if (ns == 0 || ns == UINT64_MAX)
                seeker->look_at_ns = 0;
        else if (!seeker->look_at_ns)
                seeker->look_at_ns = at.now_ns + ns / 4 * 3 + part_of(ns / 4, at.random);
        if (!seeker->look_at_ns || !has_come(&seeker->look_at_ns, 0, at, due_ns))
                return LKG_SLOT_NOTHING;
        seeker->under_way = LKG_SLOT_LIST;
        return LKG_SLOT_LIST;
}

enum lkg_slot_request lkg_seeker_next(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                      uint64_t *ret_due_ns)
{
        static enum lkg_slot_request (*const steps[])(struct lkg_seeker *, struct lkg_seeker_moment,
                                                      uint64_t *) = {
                tend_mine, reclaim, take, note_vanished, collect, look,
        };
        enum lkg_slot_request request = LKG_SLOT_NOTHING;

        *ret_due_ns = UINT64_MAX;
        if (seeker->under_way != LKG_SLOT_NOTHING || !*seeker->wish.id.uid)
                return LKG_SLOT_NOTHING;
        if (at.now_ns < seeker->not_before_ns) {
                *ret_due_ns = seeker->not_before_ns;
                return LKG_SLOT_NOTHING;
        }
        if (seeker->must_list) {
                seeker->under_way = LKG_SLOT_LIST;
                return LKG_SLOT_LIST;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(steps) && request == LKG_SLOT_NOTHING; i++)
                request = steps[i](seeker, at, ret_due_ns);
        seeker->looked = request == LKG_SLOT_LIST;
        return request;
}

/* ---- the verdict ---- */

bool lkg_rollout_lets_go(enum lkg_slot_verdict verdict, bool prefer)
{
        return verdict == LKG_SLOT_GRANTED || (prefer && verdict == LKG_SLOT_REFUSED);
}

/*
 * It does already; or it has been granted, and nothing has been heard since that speaks against it, and only for so long as others
 * may still rely on it.
 */
static bool may_switch(const struct lkg_seeker *seeker, uint64_t now_ns)
{
        const struct lkg_rollout_slot *mine = my_slot(seeker);
        char reason[LKG_SLOT_REASON_MAX];
        struct lkg_slot_counts counts;

        if (mine && outcome_of(seeker, mine->sha256, reason) == LKG_OUTCOME_TRYING)
                return true;
        if (!mine || !grant_lasts(seeker, now_ns) || !seeker->in_contact || seeker->must_list)
                return false;
        lkg_ledger_count(&seeker->ledger, seeker->wish.id.hash, &counts);
        return !lkg_slots_halted(&seeker->wish, &counts);
}

enum lkg_slot_verdict lkg_seeker_verdict(const struct lkg_seeker *seeker, uint64_t now_ns,
                                         char ret_words[static 256])
{
        struct lkg_slot_counts counts;

        *ret_words = '\0';
        if (seeker->postponed) {
                (void)snprintf(ret_words, 256,
                               "waiting for a rollout slot: the trial of ConfigMap %.60s/%.60s ends first",
                               seeker->wish.id.ns, seeker->wish.id.name);
                return LKG_SLOT_WAITING;
        }
        if (may_switch(seeker, now_ns))
                return LKG_SLOT_GRANTED;
        if (seeker->refused_request != LKG_SLOT_NOTHING) {
                (void)snprintf(ret_words, 256, "waiting for a rollout slot: a permission is missing");
                return seeker->n_refusals >= LKG_SLOT_REFUSALS_SURE ? LKG_SLOT_REFUSED : LKG_SLOT_DOUBTED;
        }
        if (!seeker->in_contact) {
                (void)snprintf(ret_words, 256,
                               "waiting for a rollout slot: the API server has not answered yet");
                return LKG_SLOT_SILENT;
        }
        lkg_ledger_count(&seeker->ledger, seeker->wish.id.hash, &counts);
        if (lkg_slots_halted(&seeker->wish, &counts)) {
                (void)snprintf(ret_words, 256, "rollout halted: %u failed%s%.63s%s%.120s", counts.n_failed,
                               counts.failed ? ", node " : "", counts.failed ? counts.failed->node : "",
                               counts.failed ? ": " : "", counts.failed ? counts.failed->reason : "");
                return LKG_SLOT_HALTED;
        }
        if (seeker->ledger.too_many) {
                (void)snprintf(ret_words, 256,
                               "waiting for a rollout slot: there are more than %u slots of ConfigMap "
                               "%.60s/%.60s, which is too many",
                               LKG_SLOTS_KNOWN_MAX, seeker->wish.id.ns, seeker->wish.id.name);
                return LKG_SLOT_WAITING;
        }
        (void)snprintf(ret_words, 256, "waiting for a rollout slot (%u of %u in trial, %u done, %u failed)",
                       counts.n_held, seeker->wish.max_in_trial, counts.n_done, counts.n_failed);
        return LKG_SLOT_WAITING;
}
