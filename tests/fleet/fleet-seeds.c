/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rollout of a whole fleet, with a clock that is a number: nodes made of the product's own lifecycle (lkg_step()) and slots
 * (lkg_seeker_next()), and an API server in memory that delays, loses answers, goes away and comes back. Nodes die at any
 * durable step, and vanish for good; their wall clocks are wrong by years, their disks are full when they may switch, for hours.
 * Nodes are kept at an earlier content (a percentage), for days beside a rollout that has halted. etcd is restored from a backup, which
 * forgets failures, so there are as many broken nodes once more, at most.
 *
 *     fleet-seeds [--scenario NAME] [--seeds A-B] [--nodes N] [--slots N] [--failures N] [--verbose]
 *
 * In every seed: nodes with a broken configuration, at a time and in all, are at most as many as there are slots; no node switches
 * without a slot of its own at the server; nobody gets a slot after the failure that halts the rollout was on record; a good
 * configuration reaches every node that has not vanished.
 *
 * Exit: 0; 1: the promise was broken, with the seed and what the node did; 64: usage.
 * Rule: docs/specification.md 4.14.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "virtual-node.h"

#define S         LKG_NSEC_PER_SEC
#define M         (60 * S)
#define H         (60 * M)
#define DURATION  (10 * M)
#define THRESHOLD 1u
#define END_NS    (2000 * H)
#define SLOTS_MAX 250u

/* ---- what is tried ---- */

enum breakage { BREAKS_NONE, BREAKS_ALL, BREAKS_SOME }; /* SOME: 2 % of the nodes */

static const struct scenario {
        const char *name;
        enum breakage breakage;
        bool crashes, vanishes, outages, read_only, two_versions, lost_answers, wrong_clocks, limits,
                full_disks, kept_back, restores, wrong_fleet, last_vanishes;
} scenarios[] = {
        { .name = "good" },
        { .name = "bad", .breakage = BREAKS_ALL },
        { .name = "hardware", .breakage = BREAKS_SOME },
        { .name = "vanish", .breakage = BREAKS_ALL, .vanishes = true },
        { .name = "crash", .crashes = true, .lost_answers = true },
        { .name = "bad-crash", .breakage = BREAKS_ALL, .crashes = true, .lost_answers = true },
        { .name = "outage", .outages = true, .lost_answers = true },
        { .name = "bad-outage", .breakage = BREAKS_ALL, .outages = true, .lost_answers = true },
        { .name = "read-only", .read_only = true, .lost_answers = true },
        { .name = "bad-read-only", .breakage = BREAKS_ALL, .read_only = true, .vanishes = true },
        { .name = "two", .breakage = BREAKS_ALL, .two_versions = true },
        { .name = "clocks", .breakage = BREAKS_SOME, .wrong_clocks = true, .crashes = true },
        { .name = "limits", .breakage = BREAKS_SOME, .limits = true, .crashes = true },
        { .name = "full-disks", .breakage = BREAKS_SOME, .full_disks = true, .outages = true },
        { .name = "bad-full-disks", .breakage = BREAKS_ALL, .full_disks = true, .outages = true },
        { .name = "kept-back", .breakage = BREAKS_ALL, .kept_back = true },
        { .name = "kept-back-crash", .breakage = BREAKS_ALL, .kept_back = true, .crashes = true },
        { .name = "restore", .restores = true, .lost_answers = true },
        { .name = "bad-restore", .breakage = BREAKS_ALL, .restores = true, .crashes = true },
        { .name = "wrong-fleet", .wrong_fleet = true, .outages = true },
        { .name = "bad-fleet", .breakage = BREAKS_ALL, .wrong_fleet = true, .vanishes = true },
        { .name = "last", .last_vanishes = true, .outages = true },
        { .name = "everything",
          .breakage = BREAKS_ALL,
          .crashes = true,
          .vanishes = true,
          .outages = true,
          .read_only = true,
          .two_versions = true,
          .lost_answers = true,
          .wrong_clocks = true,
          .full_disks = true },
};

static struct options {
        const struct scenario *scenario;
        unsigned n_nodes, n_slots, n_failures;
        uint64_t first, last;
        bool verbose;
} opt = { .n_nodes = 60, .n_slots = 5, .n_failures = 1, .first = 1, .last = 20 };

/* ---- the world ---- */

struct node {
        unsigned number, life;
        bool gone, dead; /* for ever; until it is started again */
        bool cut_off;    /* it alone does not reach the API server */
        char name[16];
        struct lkg_seeker seeker;
        struct virtual_node v;
        unsigned bucket;
        bool watching;                   /* or its list is under way, from which it will perhaps */
        struct lkg_config_source newest; /* what the API server said last */
        struct lkg_config_source known;  /* what may be followed of that */
        uint64_t heard;                  /* the newest version of a slot, or of a list */
        int64_t clock_ns;                /* its wall clock is wrong by that much */
        uint64_t wake_ns;
        uint64_t full_until_ns; /* its disk: a switch cannot be made durable; 0 = not decided yet */
        unsigned dies_in;       /* durable steps until it dies; 0 = never */
        bool broken;
        bool ever_broken[3]; /* by version */
};

enum event_kind {
        WAKE,
        ARRIVES,
        ANSWERED,
        SEEN,
        TOLD,
        AWAY,
        BACK,
        NO_WRITES,
        WRITES,
        LIMITS,
        NEXT_VERSION,
        KILLED,
        CUT_OFF,
        CONNECTED,
        SAVED,     /* a backup of etcd */
        RESTORED,  /* from that */
        COLLECTED, /* by the garbage collector */
        BOOKMARKS  /* nothing is new; more seldom than in real life */
};

struct event {
        uint64_t at_ns, order;
        enum event_kind kind;
        unsigned node, life;
        enum lkg_slot_request request;
        enum lkg_slot_answer answer;
        bool taking;
        struct lkg_rollout_slot slot;
        struct lkg_rollout_slot *list; /* ANSWERED to LIST */
        size_t n_list;
        uint64_t version; /* of the list, or of SEEN */
        bool deleted;     /* SEEN */
        struct lkg_config_source source;
};

struct etcd {
        struct lkg_rollout_slot slots[2 * SLOTS_MAX];
        bool taken_late[2 * SLOTS_MAX]; /* when the rollout had halted already */
        size_t n;
        uint64_t version;
};

static struct world {
        uint64_t seed, random, now_ns, n_events, finished_ns;
        struct event **heap;
        size_t n_heap, n_allocated;
        struct node *nodes;
        struct etcd is, was; /* now, and in the backup */
        uint64_t until_ns;   /* it is not over before */
        unsigned n_restored;
        bool away, takes_no_writes;
        unsigned max_in_trial;     /* as the annotation says now, at most opt.n_slots */
        unsigned fleet;            /* the same of the number of nodes */
        uint64_t refuses_until_ns; /* it has started, and has not read its Roles yet */
        struct lkg_config_source current;
        struct lkg_rollout_id id; /* of that */
        unsigned which;           /* 1 or 2: version of the configuration */
        unsigned n_broken, max_broken, n_ever[3];
        uint64_t n_writes, n_conflicts, n_lists, n_listed, n_seen;
        uint64_t second, n_in_second, most_in_second; /* of n_seen */
        bool wrong;
} w;

/* xorshift64* */
static uint32_t rnd(void)
{
        w.random ^= w.random >> 12;
        w.random ^= w.random << 25;
        w.random ^= w.random >> 27;
        return (uint32_t)((w.random * UINT64_C(2685821657736338717)) >> 32);
}

static uint64_t between(uint64_t low, uint64_t high)
{
        return low + (((uint64_t)rnd() << 32) | rnd()) % (high - low + 1);
}

static void LKG_PRINTF(2, 3) broke(const struct node *node, const char *fmt, ...)
{
        va_list ap;

        (void)printf("seed %llu, %s, after %.1f s: ", (unsigned long long)w.seed,
                     node ? node->name : "fleet", (double)w.now_ns / (double)S);
        va_start(ap, fmt);
        (void)vprintf(fmt, ap);
        va_end(ap);
        (void)putchar('\n');
        w.wrong = true;
}

static void LKG_PRINTF(2, 3) say(const struct node *node, const char *fmt, ...)
{
        va_list ap;

        if (!opt.verbose)
                return;
        (void)printf("%10.1f %-8s ", (double)w.now_ns / (double)S, node ? node->name : "");
        va_start(ap, fmt);
        (void)vprintf(fmt, ap);
        va_end(ap);
        (void)putchar('\n');
}

/* ---- events in the order of time ---- */

static bool is_before(const struct event *a, const struct event *b)
{
        return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct event event)
{
        struct event *copy = malloc(sizeof(*copy));
        size_t at = w.n_heap;

        if (w.n_heap == w.n_allocated) {
                w.n_allocated = w.n_allocated ? 2 * w.n_allocated : 1024;
                w.heap = reallocarray(w.heap, w.n_allocated, sizeof(struct event *));
        }
        if (!copy || !w.heap)
                abort();
        event.order = ++w.n_events;
        *copy = event;
        w.heap[w.n_heap++] = copy;
        for (; at > 0 && is_before(copy, w.heap[(at - 1) / 2]); at = (at - 1) / 2)
                w.heap[at] = w.heap[(at - 1) / 2];
        w.heap[at] = copy;
}

static struct event *pop(void)
{
        struct event *first = w.heap[0], *last = w.heap[--w.n_heap];
        size_t at = 0, child;

        while ((child = 2 * at + 1) < w.n_heap) {
                if (child + 1 < w.n_heap && is_before(w.heap[child + 1], w.heap[child]))
                        child++;
                if (!is_before(w.heap[child], last))
                        break;
                w.heap[at] = w.heap[child];
                at = child;
        }
        w.heap[at] = last;
        return first;
}

static void wake_at(struct node *node, uint64_t at_ns)
{
        if (node->gone || (node->wake_ns > w.now_ns && node->wake_ns <= at_ns))
                return;
        node->wake_ns = at_ns;
        push((struct event){ .at_ns = at_ns, .kind = WAKE, .node = node->number, .life = node->life });
}

/* ---- the API server ---- */

static struct lkg_rollout_id id_of(const struct lkg_config_source *source)
{
        struct lkg_rollout_id id;

        lkg_rollout_id_of(source, &id);
        return id;
}

static struct lkg_rollout_slot *served(const char *hash, unsigned index)
{
        for (size_t i = 0; i < w.is.n; i++)
                if (w.is.slots[i].index == index && strcmp(w.is.slots[i].hash, hash) == 0)
                        return &w.is.slots[i];
        return NULL;
}

static unsigned count(const char *hash, enum lkg_rollout_slot_state state)
{
        unsigned n = 0;

        for (size_t i = 0; i < w.is.n; i++)
                n += strcmp(w.is.slots[i].hash, hash) == 0 && w.is.slots[i].state == state;
        return n;
}

static unsigned done(const char *hash)
{
        unsigned n = 0;

        for (size_t i = 0; i < w.is.n; i++)
                n += strcmp(w.is.slots[i].hash, hash) == 0 ? w.is.slots[i].successes : 0;
        return n;
}

static void tell_watchers(const struct lkg_rollout_slot *slot, bool deleted)
{
        if (w.second != w.now_ns / S)
                w.n_in_second = 0;
        w.second = w.now_ns / S;
        for (unsigned i = 0; i < opt.n_nodes; i++)
                if (w.nodes[i].watching && !w.nodes[i].gone) {
                        w.n_seen += w.nodes[i].seeker.hears;
                        w.n_in_second += w.nodes[i].seeker.hears;
                        push((struct event){ .at_ns = w.now_ns + between(S / 100, S / 2),
                                             .kind = SEEN,
                                             .node = i,
                                             .life = w.nodes[i].life,
                                             .slot = *slot,
                                             .deleted = deleted,
                                             .version = w.is.version });
                }
        if (w.n_in_second > w.most_in_second)
                w.most_in_second = w.n_in_second;
}

/* Return: the object as it is then; NULL = conflict. */
static struct lkg_rollout_slot *store(const struct lkg_rollout_slot *slot, enum lkg_slot_request request)
{
        struct lkg_rollout_slot *known = served(slot->hash, slot->index);
        bool halted = count(slot->hash, LKG_SLOT_FAILED) >= opt.n_failures, was_held;
        uint64_t created_ns;

        if (request == LKG_SLOT_CREATE ? known != NULL
                                       : !known || strcmp(known->version, slot->version) != 0)
                return NULL;
        was_held = known && known->state == LKG_SLOT_HELD;
        created_ns = known ? known->created_ns : S + w.now_ns;
        if (!known)
                known = &w.is.slots[w.is.n++];
        *known = *slot;
        known->created_ns = created_ns;
        known->seen_ns = 0;
        (void)snprintf(known->version, sizeof(known->version), "%llu", (unsigned long long)++w.is.version);
        if (!was_held)
                w.is.taken_late[known - w.is.slots] = halted;
        w.n_writes++;
        tell_watchers(known, /* deleted= */ false);
        if (known->collected) /* its owner does not exist */
                push((struct event){ .at_ns = w.now_ns + between(S, M), .kind = COLLECTED, .slot = *known });
        return known;
}

static void collect_garbage(const struct lkg_rollout_slot *slot)
{
        struct lkg_rollout_slot *known = served(slot->hash, slot->index);
        size_t at = known ? (size_t)(known - w.is.slots) : 0;

        if (!known)
                return;
        say(NULL, "slot %u of %s is deleted", slot->index, slot->hash);
        if (strcmp(slot->hash, w.id.hash) == 0)
                broke(NULL, "slot %u of the newest content is collected: it was %s", slot->index,
                      lkg_slot_state_name(known->state));
        w.is.version++;
        tell_watchers(known, /* deleted= */ true);
        w.is.n--;
        memmove(&w.is.slots[at], &w.is.slots[at + 1], (w.is.n - at) * sizeof(*w.is.slots));
        memmove(&w.is.taken_late[at], &w.is.taken_late[at + 1], (w.is.n - at) * sizeof(*w.is.taken_late));
}

static void answer_list(struct event *answer)
{
        answer->n_list = w.is.n;
        answer->list = calloc(w.is.n + 1, sizeof(*answer->list));
        if (!answer->list)
                abort();
        memcpy(answer->list, w.is.slots, w.is.n * sizeof(*answer->list));
        answer->version = w.is.version;
        w.nodes[answer->node].watching = true; /* from this state on; what comes later arrives later */
        w.n_lists++;
        w.n_listed += w.is.n;
}

static void arrives(const struct event *e)
{
        struct event answer = { .kind = ANSWERED, .node = e->node, .life = e->life, .request = e->request };
        const struct lkg_rollout_slot *known;

        answer.at_ns = w.now_ns + between(S / 200, S / 5);
        if (w.away || w.nodes[e->node].cut_off || (w.takes_no_writes && e->request != LKG_SLOT_LIST)) {
                answer.answer = LKG_SLOT_UNCLEAR;
                answer.at_ns = w.now_ns + between(S, 10 * S);
        } else if (w.now_ns < w.refuses_until_ns) {
                answer.answer = LKG_SLOT_FORBIDDEN;
        } else if (e->request == LKG_SLOT_LIST) {
                answer_list(&answer);
                answer.at_ns += S / 2; /* after what the watch has for the time before it */
        } else {
                known = store(&e->slot, e->request);
                answer.answer = known ? LKG_SLOT_DONE : LKG_SLOT_CONFLICT;
                if (known)
                        answer.slot = *known;
                w.n_conflicts += !known;
                if (known)
                        say(&w.nodes[e->node], "wrote slot %u: %s%s, %u done", known->index,
                            lkg_slot_state_name(known->state), known->asked ? ", asked" : "",
                            known->successes);
        }
        if (opt.scenario->lost_answers && between(0, 9) == 0) { /* it may have been carried out */
                answer.answer = LKG_SLOT_UNCLEAR;
                free(answer.list);
                answer.list = NULL;
                if (e->request == LKG_SLOT_LIST) /* a watch that is open stays so */
                        w.nodes[e->node].watching = w.nodes[e->node].seeker.hears;
        }
        push(answer);
}

/* ---- a node ---- */

static bool breaks(const struct node *node, const struct lkg_config_source *source)
{
        /* The second version mends it, or breaks what the first one did not. */
        if (strcmp(source->version, opt.scenario->kept_back ? "2" : "1") != 0)
                return false;
        return opt.scenario->breakage == BREAKS_ALL ||
               (opt.scenario->breakage == BREAKS_SOME && node->number % 50 == 7);
}

static enum lkg_slot_outcome outcome(const char *sha256, char reason[static LKG_SLOT_REASON_MAX],
                                     void *userdata)
{
        const struct node *node = userdata;

        return virtual_node_outcome(&node->v, w.current.uid, sha256, reason);
}

static void start_seeker(struct node *node)
{
        const struct lkg_seeker_ops ops = { .outcome = outcome, .userdata = node };

        lkg_seeker_init(&node->seeker, node->name, &ops);
}

static struct lkg_seeker_moment moment(const struct node *node)
{
        return (struct lkg_seeker_moment){
                w.now_ns, (uint64_t)((int64_t)(w.now_ns + 60 * 365 * 24 * H) + node->clock_ns), rnd()
        };
}

/* What was noted after the backup is forgotten with it. */
static unsigned allowed(void)
{
        return opt.n_slots * (1 + w.n_restored);
}

static void note_broken(struct node *node, bool broken)
{
        if (node->broken == broken)
                return;
        node->broken = broken;
        w.n_broken += broken ? 1 : -1u;
        if (w.n_broken > w.max_broken)
                w.max_broken = w.n_broken;
        if (broken && !node->ever_broken[w.which]) {
                node->ever_broken[w.which] = true;
                w.n_ever[w.which]++;
        }
        if (w.n_broken > allowed() || w.n_ever[w.which] > allowed())
                broke(node, "%u nodes are broken, %u were; there are %u slots", w.n_broken,
                      w.n_ever[w.which], opt.n_slots);
}

/* The promise: a node never runs a trial that the fleet does not know of. */
static void check_switch(const struct lkg_pointers *next, void *userdata)
{
        const struct node *node = userdata;
        const struct lkg_rollout_id id = id_of(&next->active);
        bool has_slot = false;

        if (lkg_config_source_is_local(&next->active) ||
            lkg_config_source_equal(&next->active, &next->good.source) ||
            lkg_config_source_equal(&next->active, &node->v.pointers.active))
                return;
        for (size_t i = 0; i < w.is.n; i++) {
                const struct lkg_rollout_slot *slot = &w.is.slots[i];

                if (slot->state != LKG_SLOT_HELD || strcmp(slot->hash, id.hash) != 0 ||
                    strcmp(slot->node, node->name) != 0)
                        continue;
                has_slot = true;
                if (w.is.taken_late[i])
                        broke(node, "switches with a slot that it took after the rollout had halted itself");
                if (slot->index > done(id.hash) + count(id.hash, LKG_SLOT_FAILED))
                        broke(node, "switches with slot %u, %u are done", slot->index, done(id.hash));
        }
        say(node, "switches to version %s", next->active.version);
        if (!has_slot)
                broke(node, "switches without a slot");
}

static void die(struct node *node)
{
        say(node, "dies");
        node->life++;
        node->dead = true;
        node->watching = false;
        node->wake_ns = 0;
        wake_at(node, w.now_ns + between(S, 20 * S));
}

/* Return: does it die right before this durable step? */
static bool dies_now(void *userdata)
{
        struct node *node = userdata;

        return node->dies_in && --node->dies_in == 0;
}

static bool is_last(const struct node *node)
{
        const struct lkg_pointers *p = &node->v.l.pointers;

        return opt.scenario->last_vanishes && lkg_config_source_equal(&p->active, &w.current) &&
               !lkg_config_source_equal(&p->good.source, &w.current) && done(w.id.hash) + 1 == opt.n_nodes;
}

/* As the engine: a component that crash-loops starts every ten seconds, one that does not lives. */
static bool run_component(struct node *node)
{
        static const struct lkg_trial_rules rules = { .duration_ns = DURATION,
                                                      .threshold = THRESHOLD,
                                                      .stable_for_ns = M };
        bool broken = breaks(node, &node->v.l.pointers.active);

        note_broken(node, broken);
        if (!virtual_node_serve(&node->v, &rules, w.now_ns))
                return false;
        if ((broken && opt.scenario->vanishes && between(0, 3) == 0) || is_last(node)) {
                say(node, "vanishes");
                node->gone = true;
                node->watching = false;
                return true;
        }
        if (!broken)
                return virtual_node_live(&node->v, w.now_ns);
        if (!virtual_node_crash(&node->v, w.now_ns))
                return false;
        if (breaks(node, &node->v.l.pointers.active))
                wake_at(node, node->v.start_ns);
        else
                note_broken(node, false);
        return true;
}

/* Return: may it switch, and can it? Every fourth node cannot when it is to, for a time that the fleet does not wait. */
static bool can_switch(struct node *node)
{
        char words[256];

        if (lkg_seeker_verdict(&node->seeker, w.now_ns, words) != LKG_SLOT_GRANTED)
                return false;
        if (opt.scenario->full_disks && !node->full_until_ns) {
                node->full_until_ns = w.now_ns + (between(0, 3) == 0 ? between(S, 3 * H) : 0);
                wake_at(node, node->full_until_ns + 1);
                if (node->full_until_ns > w.now_ns &&
                    between(0, 1) == 0) /* what fills a disk is often a network that is gone */
                        push((struct event){ .at_ns = w.now_ns + between(S / 10, M),
                                             .kind = CUT_OFF,
                                             .node = node->number });
        }
        return w.now_ns >= node->full_until_ns;
}

static bool follow(struct node *node)
{
        struct lkg_slot_wish wish = { .max_in_trial = w.max_in_trial,
                                      .max_failures = opt.n_failures,
                                      .fleet = w.fleet,
                                      .bucket = node->bucket,
                                      .duration_ns = DURATION };

        if (*node->known.uid && !virtual_node_assign(&node->v, &node->known, w.now_ns))
                return false;
        wish.any = virtual_node_wants(&node->v);
        wish.id = id_of(&node->v.l.pointers.assigned);
        wish.newest = lkg_config_source_same_content(&node->v.l.pointers.assigned, &node->newest);
        lkg_seeker_wish(&node->seeker, &wish);
        return !wish.any || !can_switch(node) || virtual_node_switch(&node->v, w.now_ns);
}

static bool live(struct node *node)
{
        uint64_t due_ns = UINT64_MAX, trial_ns;
        struct event request = { .kind = ARRIVES, .node = node->number, .life = node->life };

        if (!follow(node) || !run_component(node))
                return false;
        if (node->gone)
                return true;
        if (w.now_ns >= virtual_node_due(&node->v) && !virtual_node_tick(&node->v, w.now_ns))
                return false;
        trial_ns = virtual_node_due(&node->v);
        if (trial_ns != UINT64_MAX)
                wake_at(node, trial_ns > w.now_ns ? trial_ns : w.now_ns + 1);
        request.request = lkg_seeker_next(&node->seeker, moment(node), &due_ns);
        if (node->seeker.hears && !lkg_seeker_watches(&node->seeker)) {
                node->watching = false;
                lkg_seeker_watch_closed(&node->seeker);
        }
        if (request.request != LKG_SLOT_NOTHING) {
                request.slot = node->seeker.writing;
                request.taking = node->seeker.taking;
                request.at_ns = w.now_ns + between(S / 200, S / 5);
                push(request);
        } else if (due_ns != UINT64_MAX) {
                wake_at(node, due_ns > w.now_ns ? due_ns : w.now_ns + 1);
        }
        return true;
}

static void run_node(struct node *node)
{
        if (!node->gone && !node->dead && !live(node))
                die(node);
}

/* A new process: what is durable is read, the rest is gone. */
static void reborn(struct node *node)
{
        lkg_seeker_deinit(&node->seeker);
        start_seeker(node);
        node->dead = false;
        virtual_node_reborn(&node->v, w.now_ns);
        node->known = node->newest = node->v.pointers.assigned;
        node->heard = 0;
        push((struct event){ .at_ns = w.now_ns + between(0, 5 * S),
                             .kind = TOLD,
                             .node = node->number,
                             .life = node->life,
                             .source = w.current });
}

static void answered(const struct event *e)
{
        struct node *node = &w.nodes[e->node];
        struct lkg_seeker_moment at = moment(node);

        if (e->request == LKG_SLOT_LIST && e->answer == LKG_SLOT_DONE) {
                char version[32];

                (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)e->version);
                if (e->version < node->heard) /* as apiserver-slots.c */
                        lkg_seeker_forget(&node->seeker);
                node->heard = e->version;
                lkg_seeker_list_begins(&node->seeker, version);
                for (size_t i = 0; i < e->n_list; i++)
                        lkg_seeker_put_listed(&node->seeker, &e->list[i], w.now_ns);
                lkg_seeker_listed(&node->seeker, at);
                if (!lkg_seeker_watches(&node->seeker))
                        node->watching = false;
                else if (node->watching)
                        lkg_seeker_watch_open(&node->seeker);
                else /* the server went away after it had answered: no watch begins */
                        lkg_seeker_lost_contact(&node->seeker);
        } else {
                lkg_seeker_answered(
                        &node->seeker, e->answer,
                        e->request == LKG_SLOT_LIST || e->answer != LKG_SLOT_DONE ? NULL : &e->slot, at);
        }
        run_node(node);
}

/* ---- the story ---- */

static void new_version(unsigned which)
{
        w.which = which;
        w.current = (struct lkg_config_source){
                .ns = "kube-system", .name = "config", .uid = "5d1f", .key = "kubelet"
        };
        (void)snprintf(w.current.version, sizeof(w.current.version), "%u", which);
        (void)snprintf(w.current.sha256, sizeof(w.current.sha256), "%064u", which);
        w.id = id_of(&w.current);
        for (unsigned i = 0; i < opt.n_nodes; i++)
                push((struct event){ .at_ns = w.now_ns + between(S / 100, 30 * S),
                                     .kind = TOLD,
                                     .node = i,
                                     .life = w.nodes[i].life,
                                     .source = w.current });
}

static void lose_watches(void)
{
        for (unsigned i = 0; i < opt.n_nodes; i++) {
                if (w.nodes[i].gone || w.nodes[i].dead)
                        continue;
                w.nodes[i].watching = false;
                lkg_seeker_lost_contact(&w.nodes[i].seeker);
                wake_at(&w.nodes[i], w.now_ns + between(1, 2 * S));
        }
}

static void happens(const struct event *e)
{
        struct node *node =
                e->kind < AWAY || (e->kind >= KILLED && e->kind <= CONNECTED) ? &w.nodes[e->node] : NULL;

        if (node && (node->gone || (node->life != e->life && e->kind != WAKE && e->kind != ARRIVES &&
                                    e->kind != TOLD && e->kind < KILLED)))
                return;
        switch (e->kind) {
        case WAKE:
                if (node->life != e->life)
                        return;
                if (node->wake_ns <= w.now_ns)
                        node->wake_ns = 0;
                if (node->dead)
                        reborn(node);
                run_node(node);
                return;
        case ARRIVES:
                arrives(e);
                return;
        case ANSWERED:
                answered(e);
                return;
        case SEEN:
                if (!node->watching)
                        return;
                if (!node->seeker.hears) { /* the watch begins where the list that is under way ends */
                        struct event later = *e;

                        later.at_ns += S / 10;
                        push(later);
                        return;
                }
                node->heard = e->version > node->heard ? e->version : node->heard;
                if (e->deleted)
                        lkg_seeker_removed(&node->seeker, e->slot.hash, e->slot.index);
                else
                        lkg_seeker_put(&node->seeker, &e->slot, w.now_ns);
                run_node(node);
                return;
        case TOLD:
                if (strcmp(e->source.version, node->newest.version) > 0) /* an informer never goes back */
                        node->newest = e->source;
                if (!opt.scenario->kept_back || node->number % 2 == 0 ||
                    strcmp(node->newest.version, "2") != 0)
                        node->known = node->newest;
                run_node(node);
                return;
        case COLLECTED:
                collect_garbage(&e->slot);
                return;
        case SAVED:
                w.was = w.is;
                push((struct event){ .at_ns = w.now_ns + between(M, 3 * H), .kind = RESTORED });
                return;
        case RESTORED: /* half of them as etcdutl does with --bump-revision: of the store, not of its objects */
                w.was.version = between(0, 1) == 0 ? w.is.version + 1000000000 : w.was.version;
                w.is = w.was;
                w.n_restored = 1;
                w.until_ns = w.now_ns + 24 * H;
                push((struct event){ .at_ns = w.now_ns + H, .kind = BOOKMARKS });
                say(NULL, "etcd is restored, its version is %llu", (unsigned long long)w.is.version);
                lose_watches();
                return;
        case BOOKMARKS:
                for (unsigned i = 0; i < opt.n_nodes; i++)
                        if (w.nodes[i].watching && !w.nodes[i].dead)
                                run_node(&w.nodes[i]);
                push((struct event){ .at_ns = w.now_ns + H, .kind = BOOKMARKS });
                return;
        case KILLED:
                node->dies_in = (unsigned)between(1, 4);
                push((struct event){
                        .at_ns = w.now_ns + between(M, 2 * H), .kind = KILLED, .node = e->node });
                if (between(0, 1) == 0)
                        die(node);
                return;
        case CUT_OFF:
                say(node, "is cut off");
                node->cut_off = true;
                node->watching = false;
                if (!node->dead)
                        lkg_seeker_lost_contact(&node->seeker);
                push((struct event){
                        .at_ns = w.now_ns + between(M, 3 * H), .kind = CONNECTED, .node = e->node });
                return;
        case CONNECTED:
                say(node, "is connected again");
                node->cut_off = false;
                wake_at(node, w.now_ns + between(1, 2 * S));
                return;
        case AWAY:
                w.away = true;
                lose_watches();
                push((struct event){ .at_ns = w.now_ns + between(S, 30 * M), .kind = BACK });
                return;
        case BACK:
                w.away = false;
                w.refuses_until_ns = w.now_ns + between(0, 20 * S);
                push((struct event){ .at_ns = w.now_ns + between(M, 10 * H), .kind = AWAY });
                return;
        case NO_WRITES: /* etcd is full, or has no quorum: lists and watches go on */
                w.takes_no_writes = true;
                say(NULL, "no writes");
                push((struct event){ .at_ns = w.now_ns + between(S, H), .kind = WRITES });
                return;
        case WRITES:
                w.takes_no_writes = false;
                say(NULL, "writes again");
                push((struct event){ .at_ns = w.now_ns + between(M, 2 * H), .kind = NO_WRITES });
                return;
        case LIMITS: /* an operator changes the annotation; it may be lower than the number of those who try it */
                w.max_in_trial = (unsigned)between(1, opt.n_slots);
                push((struct event){ .at_ns = w.now_ns + between(M, 2 * H), .kind = LIMITS });
                return;
        case NEXT_VERSION:
                new_version(2);
                if (opt.scenario->kept_back) {
                        w.until_ns = w.now_ns + 200 * H; /* a failure that is forgotten once a day shows */
                        push((struct event){ .at_ns = w.now_ns + H, .kind = BOOKMARKS });
                }
                return;
        }
}

static bool is_over(unsigned *ret_done)
{
        bool over = true;

        *ret_done = 0;
        for (unsigned i = 0; i < opt.n_nodes; i++) {
                const struct lkg_pointers *p = &w.nodes[i].v.l.pointers;
                bool done = lkg_config_source_equal(&p->good.source, &w.current);

                *ret_done += done;
                over = over && (w.nodes[i].gone || done || virtual_node_is_bad(&w.nodes[i].v, &w.current));
        }
        return over;
}

static void begin(uint64_t seed)
{
        memset(&w, 0, sizeof(w));
        w.seed = seed;
        w.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
        w.nodes = calloc(opt.n_nodes, sizeof(*w.nodes));
        if (!w.nodes)
                abort();
        for (unsigned i = 0; i < opt.n_nodes; i++) {
                struct node *node = &w.nodes[i];
                const struct virtual_node_ops ops = { .dies = dies_now,
                                                      .saves = check_switch,
                                                      .userdata = node };

                node->number = i;
                node->bucket = (unsigned)between(0, 99999);
                virtual_node_init(&node->v, &ops);
                (void)snprintf(node->name, sizeof(node->name), "node-%u", i);
                if (opt.scenario->wrong_clocks)
                        node->clock_ns =
                                (int64_t)between(0, 20 * 365 * 24 * H) - (int64_t)(10 * 365 * 24 * H);
                start_seeker(node);
                if (opt.scenario->crashes)
                        push((struct event){ .at_ns = between(S, H), .kind = KILLED, .node = i });
        }
        w.max_in_trial = opt.n_slots;
        w.fleet = opt.n_nodes;
        if (opt.scenario->wrong_fleet) {
                const unsigned fleets[] = { 0, 1, opt.n_nodes / 4, 4 * opt.n_nodes, 1000000 };

                w.fleet = fleets[between(0, LKG_ARRAY_SIZE(fleets) - 1)];
        }
        new_version(1);
        if (opt.scenario->limits)
                push((struct event){ .at_ns = between(S, H), .kind = LIMITS });
        if (opt.scenario->outages)
                push((struct event){ .at_ns = between(S, H), .kind = AWAY });
        if (opt.scenario->read_only)
                push((struct event){ .at_ns = between(S, H), .kind = NO_WRITES });
        if (opt.scenario->restores) {
                bool bad =
                        opt.scenario->breakage != BREAKS_NONE; /* then the first minutes are what matters */

                w.until_ns = UINT64_MAX;
                push((struct event){ .at_ns = between(S, bad ? M : 2 * H), .kind = SAVED });
        }
        if (opt.scenario->kept_back) {
                w.until_ns = UINT64_MAX;
                push((struct event){ .at_ns = between(8 * H, 40 * H), .kind = NEXT_VERSION });
        }
        if (opt.scenario->two_versions)
                push((struct event){ .at_ns = between(S, 2 * H), .kind = NEXT_VERSION });
}

static void end(void)
{
        for (size_t i = 0; i < w.n_heap; i++) {
                free(w.heap[i]->list);
                free(w.heap[i]);
        }
        for (unsigned i = 0; i < opt.n_nodes; i++)
                lkg_seeker_deinit(&w.nodes[i].seeker);
        free(w.heap);
        free(w.nodes);
}

static bool can_end(void)
{
        return count(w.id.hash, LKG_SLOT_FAILED) >= opt.n_failures && count(w.id.hash, LKG_SLOT_HELD) == 0 &&
               (!opt.scenario->two_versions || w.which == 2);
}

/* Return: was the promise kept? */
static bool run(uint64_t seed)
{
        unsigned n_done = 0, n_gone = 0;
        bool over = false;

        begin(seed);
        while (w.n_heap && !w.wrong && w.now_ns < END_NS &&
               !(over && (!opt.scenario->two_versions || w.which == 2))) {
                struct event *e = pop();

                w.now_ns = e->at_ns;
                happens(e);
                free(e->list);
                free(e);
                over = w.now_ns >= w.until_ns && (is_over(&n_done) || can_end());
                over = over && (!opt.scenario->last_vanishes || can_end() || n_done == opt.n_nodes);
        }
        for (unsigned i = 0; i < opt.n_nodes; i++)
                n_gone += w.nodes[i].gone;
        if (!over)
                broke(NULL, "not over: %u of %u nodes have it, %u are gone", n_done, opt.n_nodes, n_gone);
        /* After a restore the slot of who had it already may be held again, and it does not hear of that. */
        else if (opt.scenario->breakage == BREAKS_NONE && n_done + n_gone != opt.n_nodes &&
                 !(w.n_restored && can_end()))
                broke(NULL, "%u of %u nodes have a good configuration", n_done, opt.n_nodes);
        (void)printf(
                "%-15s seed %llu: %u of %u nodes have it after %.1f h; broken at a time %u, in all %u "
                "(of %u slots); "
                "%llu writes, %llu conflicts, %llu lists of %llu slots, %llu events, %llu in a second\n",
                opt.scenario->name, (unsigned long long)seed, n_done, opt.n_nodes,
                (double)w.now_ns / (double)H, w.max_broken,
                w.n_ever[1] > w.n_ever[2] ? w.n_ever[1] : w.n_ever[2], opt.n_slots,
                (unsigned long long)w.n_writes, (unsigned long long)w.n_conflicts,
                (unsigned long long)w.n_lists, (unsigned long long)w.n_listed, (unsigned long long)w.n_seen,
                (unsigned long long)w.most_in_second);
        end();
        return !w.wrong;
}

static const struct scenario *find_scenario(const char *name)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(scenarios); i++)
                if (strcmp(scenarios[i].name, name) == 0)
                        return &scenarios[i];
        return NULL;
}

static bool parse(int argc, char **argv)
{
        static const struct option options[] = {
                { "scenario", required_argument, NULL, 's' },
                { "seeds", required_argument, NULL, 'n' },
                { "nodes", required_argument, NULL, 'N' },
                { "slots", required_argument, NULL, 'k' },
                { "failures", required_argument, NULL, 'f' },
                { "verbose", no_argument, NULL, 'v' },
                { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "v", options, NULL)) >= 0) {
                unsigned long long first = 0, last = 0;

                if (c == 's' && !(opt.scenario = find_scenario(optarg)))
                        return false;
                if (c == 'n') {
                        int n = sscanf(optarg, "%llu-%llu", &first, &last);

                        if (n < 1)
                                return false;
                        opt.first = first;
                        opt.last = n == 2 ? last : first;
                }
                if (c == 'N')
                        opt.n_nodes = (unsigned)strtoul(optarg, NULL, 10);
                if (c == 'k')
                        opt.n_slots = (unsigned)strtoul(optarg, NULL, 10);
                if (c == 'f')
                        opt.n_failures = (unsigned)strtoul(optarg, NULL, 10);
                if (c == 'v')
                        opt.verbose = true;
                if (c == '?')
                        return false;
        }
        return opt.n_nodes > 0 && opt.n_slots > 0 && opt.n_slots <= SLOTS_MAX && opt.n_failures > 0;
}

int main(int argc, char **argv)
{
        const struct scenario *only;
        unsigned n_wrong = 0, n = 0;

        if (!parse(argc, argv)) {
                (void)fprintf(stderr, "usage: fleet-seeds [--scenario NAME] [--seeds A-B] [--nodes N] "
                                      "[--slots N (1 to 250)] "
                                      "[--failures N] [--verbose]\n");
                return EX_USAGE;
        }
        only = opt.scenario;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(scenarios); i++) {
                if (only && only != &scenarios[i])
                        continue;
                opt.scenario = &scenarios[i];
                for (uint64_t seed = opt.first; seed <= opt.last; seed++, n++)
                        n_wrong += !run(seed);
        }
        (void)printf("%u rollouts, %u broke the promise\n", n, n_wrong);
        return n_wrong ? 1 : 0;
}
