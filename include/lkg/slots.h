/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a rollout: at most N nodes of a fleet have a new configuration on trial at a time, and when it has failed on some,
 * nobody else switches to it. Nothing but an API server is needed. Pure: answers and time in, the next request and a verdict out.
 *
 * A *rollout* is the content of one key of one ConfigMap: uid, SHA-256, key. (Not the resourceVersion: an annotation changes that,
 * too, and a halt must not forget what has failed.) Its slots are objects, one each, in a namespace of their own. A node takes one
 * before it switches, and keeps it while its trial runs:
 *
 *     (not there) ──take──> held ──promoted──> free, one more success ──take──> held ...
 *                            ├──condemned──> failed, for ever
 *                            ├──not renewed for its patience, nor when asked──> failed (whoever sees it notes it)
 *                            └──superseded, reset──> free
 *
 * Slot k can be taken only when k are on record as succeeded or failed (slow start: 1, 2, 4, ... up to N nodes at a time), and none while
 * max_failures or more have failed: the rollout has halted itself.
 *
 * The API server's conflict (409) alone decides who gets a slot. What a node knows from its watch may be old, so after it has taken
 * one it lists all slots once more, consistently, and gives its own back unless everything still holds. So no trial begins after
 * the failure that halts the rollout is on record, and a node never runs a trial that no slot stands for.
 *
 * Each write of a slot is an event for every node that watches, so only those watch whose turn is near; the others look from time to time
 * (docs/decisions/041-turns.md). That is for the load alone: what is said above holds whoever takes a slot, and when.
 *
 * Clocks of other machines are never compared with ours: how long a slot was not renewed is measured by the observer, from when
 * it saw the change, and only while it is in contact with the API server and can write. Before a holder has vanished it is asked, by
 * a mark in its slot, which it answers at once by renewing; so an API server that takes no writes condemns nobody.
 *
 * What is read was written by other nodes, and is checked: such a node can stall a rollout, or lift
 * its limits; it cannot make another node follow anything but the ConfigMap.
 */
#pragma once

#include <lkg/process.h>
#include <lkg/documents.h>
#include <lkg/base.h>
#include <lkg/text.h>
#include <lkg/limits.h>

#define LKG_SLOTS_MAX          1000u /* of one rollout */
#define LKG_SLOTS_KNOWN_MAX    4000u /* of all rollouts of a ConfigMap; others are not looked at */
#define LKG_SLOTS_PART         500u  /* in one part of a list; each has up to 2 KiB */
#define LKG_SLOT_HASH          17u   /* 16 hex digits and NUL */
#define LKG_SLOT_TEXT_MAX      254u  /* names and uids, with NUL */
#define LKG_SLOT_REASON_MAX    257u
#define LKG_SLOT_PATIENCE_MORE (300 * LKG_NSEC_PER_SEC) /* beyond the trial */
/* the last part of the patience: a silent holder is asked first */
#define LKG_SLOT_ASKED_NS      (120 * LKG_NSEC_PER_SEC)
#define LKG_SLOT_REFUSALS_SURE 5u /* so many one after the other, in a quarter of a minute, are believed */
#define LKG_SLOT_PATIENCE_MAX  (176400 * LKG_NSEC_PER_SEC) /* 49 h; longer ones count as that */
#define LKG_SLOT_WINDOW_MIN    LKG_NSEC_PER_SEC
#define LKG_SLOT_WINDOW_MAX    (300 * LKG_NSEC_PER_SEC)
/* of a finished rollout, before its slots are collected */
#define LKG_SLOT_OLD_NS        (86400 * LKG_NSEC_PER_SEC)
#define LKG_SLOT_COLLECT_NS    (360 * LKG_NSEC_PER_SEC) /* between two that one node collects */

#define LKG_SLOTS_NAMESPACE    "lkgfs-rollout"
#define LKG_SLOT_LABEL_ROLLOUT "lkgfs.io/rollout"
#define LKG_SLOT_LABEL_OBJECT  "lkgfs.io/configmap-uid"

/* Texts are of the ConfigMap; checked by lkg_configmap_from_value(). */
struct lkg_rollout_id {
        char ns[LKG_SLOT_TEXT_MAX], name[LKG_SLOT_TEXT_MAX];
        char uid[LKG_SLOT_TEXT_MAX], key[LKG_SLOT_TEXT_MAX];
        char sha256[LKG_SHA256_HEX];     /* of the content */
        char version[LKG_SLOT_TEXT_MAX]; /* resourceVersion, for people */
        char hash[LKG_SLOT_HASH];        /* of uid, sha256 and key: names the slots */
};
/** lkg_rollout_id_seal() - set the hash, when all other members are set. */
void lkg_rollout_id_seal(struct lkg_rollout_id *id);

enum lkg_rollout_slot_state { LKG_SLOT_FREE, LKG_SLOT_HELD, LKG_SLOT_FAILED };
const char *lkg_slot_state_name(enum lkg_rollout_slot_state state); /* "free", "held", "failed" */

struct lkg_rollout_slot {
        char uid[LKG_SLOT_TEXT_MAX], key[LKG_SLOT_TEXT_MAX]; /* of the ConfigMap */
        char hash[LKG_SLOT_HASH];                            /* of uid, sha256 and key */
        unsigned index;
        enum lkg_rollout_slot_state state;
        char node[LKG_SLOT_TEXT_MAX],
                node_uid[LKG_SLOT_TEXT_MAX]; /* holder, or where it failed; "" = none, not known */
        char sha256[LKG_SHA256_HEX];         /* of the content that is on trial */
        /* resourceVersion of the ConfigMap when it was taken, for people */
        char of_version[LKG_SLOT_TEXT_MAX];
        uint64_t patience_ns;             /* a holder that does not renew it for so long has vanished */
        uint64_t since_ns, renewed_ns;    /* wall time of the holder, for people */
        bool asked;                       /* HELD: somebody wants to know whether the holder is there */
        unsigned successes;               /* given back to this slot */
        char reason[LKG_SLOT_REASON_MAX]; /* FAILED */
        bool collected;                   /* handed to the garbage collector */
        /* of the object */
        char version[LKG_SLOT_TEXT_MAX]; /* resourceVersion; "" = it does not exist */
        uint64_t created_ns;             /* by the API server's clock */
        /* of the observer */
        uint64_t seen_ns; /* CLOCK_BOOTTIME since when it is in this version; 0 = out of contact meanwhile */
        uint64_t known_ns; /* the same, whether it was in contact or not; 0 = not by a seeker */
        bool listed;       /* by the list that is being read */
};

/* What a slot is at the API server: remote.rolloutObjects, in this order. All nodes of a fleet must use the same. */
enum lkg_slot_kind { LKG_SLOT_CONFIGMAP, LKG_SLOT_LEASE };
struct lkg_slot_format {
        const char *group_version, *plural, *kind, *list_kind;
};
/** lkg_slot_format() - how the API server calls them. */
const struct lkg_slot_format *lkg_slot_format(enum lkg_slot_kind kind);

/**
 * lkg_slot_read() - a slot from the object of the API server. @kind: what was asked for; items of a list do not say it
 * Return: 0; -EINVAL: @err says what is wrong with it.
 */
int lkg_slot_read(enum lkg_slot_kind kind, const struct lkg_value *object, struct lkg_rollout_slot *ret,
                  struct lkg_error *err);
/** lkg_slot_name() - of its object: HASH-INDEX. */
void lkg_slot_name(const struct lkg_rollout_slot *slot, char ret[static LKG_SLOT_HASH + 8]);
/** lkg_slot_write() - its object, for a POST (version "") or a PUT. @id: names the ConfigMap; the content may be another one */
void lkg_slot_write(enum lkg_slot_kind kind, const struct lkg_rollout_slot *slot,
                    const struct lkg_rollout_id *id, const char *ns, struct lkg_json *json);

/** lkg_slot_give_back() - nobody holds it, and no failure is noted in it. */
void lkg_slot_give_back(struct lkg_rollout_slot *slot);

/* ---- the slots that are known ---- */

/* Of one ConfigMap, all its rollouts. All zero = empty. */
struct lkg_ledger {
        struct lkg_rollout_slot *items; /* sorted by hash and index */
        size_t n_items, n_allocated;
        bool too_many; /* there are more than LKG_SLOTS_KNOWN_MAX */
};
void lkg_ledger_deinit(struct lkg_ledger *ledger);
/**
 * lkg_ledger_put() - @slot is in this state.
 * @list_version: it is from a list of this resourceVersion ("" = unknown), which knows better than everything that is not newer, also
 *                where the object has an older version than before (etcd was restored); NULL = from a watch or an answer
 */
void lkg_ledger_put(struct lkg_ledger *ledger, const struct lkg_rollout_slot *slot, const char *list_version,
                    uint64_t now_ns);
void lkg_ledger_remove(struct lkg_ledger *ledger, const char *hash, unsigned index);
const struct lkg_rollout_slot *lkg_ledger_find(const struct lkg_ledger *ledger, const char *hash,
                                               unsigned index);

struct lkg_slot_counts {
        unsigned n_held, n_asked, n_failed, n_done; /* asked: of those that are held */
        const struct lkg_rollout_slot *failed;      /* the first one; NULL = none */
};
/**
 * lkg_slots_halting() - with so many failures a rollout halts itself. A slot that has failed is never used again, so it also ends when
 * there is none left.
 */
static inline unsigned lkg_slots_halting(unsigned max_in_trial, unsigned max_failures)
{
        return max_in_trial && max_in_trial < max_failures ? max_in_trial : max_failures;
}
/** lkg_ledger_failed_before() - how many failures of the rollout of @slot, which is FAILED, were noted before it, by the API server. */
unsigned lkg_ledger_failed_before(const struct lkg_ledger *ledger, const struct lkg_rollout_slot *slot);
/** lkg_ledger_count() - of one rollout. */
void lkg_ledger_count(const struct lkg_ledger *ledger, const char *hash, struct lkg_slot_counts *ret);

/* ---- a node that seeks a slot ---- */

/* What has become of a content on this node. */
enum lkg_slot_outcome {
        LKG_OUTCOME_WANTED, /* assigned, and not followed yet */
        LKG_OUTCOME_TRYING,
        LKG_OUTCOME_GOOD,
        LKG_OUTCOME_BAD,
        LKG_OUTCOME_OVER, /* superseded, reset, switched off: no verdict */
};

struct lkg_slot_wish {
        bool any;                 /* a slot is needed to go on */
        struct lkg_rollout_id id; /* what is wanted, on trial, or was last; uid "" = none */
        bool newest;              /* the ConfigMap has that content now: slots of others may be collected */
        unsigned max_in_trial, max_failures;
        unsigned fleet;       /* number of nodes, a hint; 0 = unknown */
        unsigned bucket;      /* of this node, 0 to 99999: lkg_rollout_bucket(); 0 = unknown */
        uint64_t duration_ns; /* of the trial; it may take twice as long */
};
static inline bool lkg_slots_halted(const struct lkg_slot_wish *wish, const struct lkg_slot_counts *counts)
{
        return counts->n_failed >= lkg_slots_halting(wish->max_in_trial, wish->max_failures);
}
/**
 * lkg_slots_look_ns() - is it this node's turn? Nodes go in the order of their buckets, and near are those that come within twice the slots
 * after as many as have been judged. Pure.
 *
 * Return: 0: it watches; so it does when a holder is asked, and when the rollout has halted and nothing changes any more. Else after how long
 * it lists all slots once more; UINT64_MAX = never, because it wants none and nobody has one.
 */
uint64_t lkg_slots_look_ns(const struct lkg_slot_wish *wish, const struct lkg_slot_counts *counts);

enum lkg_slot_request {
        LKG_SLOT_NOTHING,
        LKG_SLOT_LIST,
        LKG_SLOT_CREATE,
        LKG_SLOT_UPDATE,
        LKG_SLOT_WATCH, /* by whoever drives the seeker, while it is in contact */
};
enum lkg_slot_answer { LKG_SLOT_DONE, LKG_SLOT_CONFLICT, LKG_SLOT_FORBIDDEN, LKG_SLOT_UNCLEAR };
enum lkg_slot_verdict {
        LKG_SLOT_WAITING,
        LKG_SLOT_GRANTED,
        LKG_SLOT_HALTED,
        LKG_SLOT_DOUBTED, /* a permission is missing, or the API server has just started */
        LKG_SLOT_REFUSED, /* a permission is missing */
        LKG_SLOT_SILENT,  /* the API server does not answer */
};
const char *lkg_slot_verdict_name(enum lkg_slot_verdict verdict); /* "waiting", "granted", ... */

struct lkg_seeker_ops {
        /* What has become of the content @sha256 of this ConfigMap? BAD: @reason. */
        enum lkg_slot_outcome (*outcome)(const char *sha256, char reason[static LKG_SLOT_REASON_MAX],
                                         void *userdata);
        void *userdata;
};

struct lkg_seeker {
        char node[LKG_SLOT_TEXT_MAX], node_uid[LKG_SLOT_TEXT_MAX];
        struct lkg_seeker_ops ops;
        struct lkg_slot_wish wish;
        struct lkg_ledger ledger;
        bool in_contact; /* the watch is open, or the last list succeeded */
        bool hears;      /* the watch is open */
        bool looked; /* the list that was answered last was a look: without it or the watch no slot is taken, and nobody has vanished */
        bool must_list; /* what is known may be wrong */
        bool granted;
        bool postponed;      /* another ConfigMap is wanted: not before the slot of this one is given back */
        uint64_t granted_ns; /* a granted slot that is not used goes back after a minute */
        unsigned n_refusals; /* answers with 403, one after the other */
        enum lkg_slot_request refused_request; /* not allowed since then; NOTHING = all are */
        enum lkg_slot_request under_way;
        struct lkg_rollout_slot writing; /* CREATE, UPDATE */
        bool taking;                     /* it takes a slot */
        struct lkg_backoff backoff;
        uint64_t not_before_ns;             /* after a failure */
        uint64_t take_at_ns, reclaim_at_ns; /* 0 = not decided yet */
        uint64_t window_ns;                 /* doubled with each conflict; 0 = the first */
        uint64_t renew_at_ns, vanished_at_ns, collect_at_ns, look_at_ns; /* 0 = not decided yet */
        unsigned n_in_vain; /* writes to a slot of its own that met a conflict, one after the other */
        char list_version[LKG_SLOT_TEXT_MAX]; /* of the list that is being read */
        uint64_t n_conflicts;
};

struct lkg_seeker_moment {
        uint64_t now_ns; /* CLOCK_BOOTTIME */
        uint64_t wall_ns;
        uint32_t random;
};

/** lkg_seeker_init() - nothing is wanted. @node: name of this Node; its uid may become known later */
void lkg_seeker_init(struct lkg_seeker *seeker, const char *node, const struct lkg_seeker_ops *ops);
void lkg_seeker_deinit(struct lkg_seeker *seeker);
/** lkg_seeker_wish() - what is wanted from now on. Another ConfigMap than before: the ledger is emptied. */
void lkg_seeker_wish(struct lkg_seeker *seeker, const struct lkg_slot_wish *wish);

/* Inputs. */
/** lkg_seeker_list_begins(), _put_listed(), _listed() - LIST is answered. @version: resourceVersion of the list, "" = unknown */
void lkg_seeker_list_begins(struct lkg_seeker *seeker, const char *version);
void lkg_seeker_put_listed(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, uint64_t now_ns);
/** lkg_seeker_put() - an object of the watch. */
void lkg_seeker_put(struct lkg_seeker *seeker, const struct lkg_rollout_slot *slot, uint64_t now_ns);
void lkg_seeker_listed(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void lkg_seeker_removed(struct lkg_seeker *seeker, const char *hash, unsigned index);
/** lkg_seeker_forget() - the API server has gone back in time (etcd restored): nothing that is known counts. */
void lkg_seeker_forget(struct lkg_seeker *seeker);
/** lkg_seeker_lost_contact() - nothing that other nodes do is heard any more. */
void lkg_seeker_lost_contact(struct lkg_seeker *seeker);
/** lkg_seeker_watches() - should the watch be open, once a list was answered? Else lkg_seeker_watch_closed(). */
bool lkg_seeker_watches(const struct lkg_seeker *seeker);
void lkg_seeker_watch_closed(struct lkg_seeker *seeker);
/** lkg_seeker_watch_lost(), _watch_refused(), _watch_open() - it broke off; the API server does not allow a watch (403); it does. */
void lkg_seeker_watch_lost(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void lkg_seeker_watch_refused(struct lkg_seeker *seeker, struct lkg_seeker_moment at);
void lkg_seeker_watch_open(struct lkg_seeker *seeker);
/** lkg_seeker_answered() - to CREATE, UPDATE, or a LIST that failed. @written: DONE: the object as it is now; NULL = not known */
void lkg_seeker_answered(struct lkg_seeker *seeker, enum lkg_slot_answer answer,
                         const struct lkg_rollout_slot *written, struct lkg_seeker_moment at);

/**
 * lkg_seeker_next() - the next request; it is under way then, until it is answered. CREATE and UPDATE write seeker->writing.
 * @ret_due_ns: when to ask again at the latest, UINT64_MAX = after the next input
 */
enum lkg_slot_request lkg_seeker_next(struct lkg_seeker *seeker, struct lkg_seeker_moment at,
                                      uint64_t *ret_due_ns);

/** lkg_rollout_lets_go() - may a node go on with this verdict? @prefer: also if it may not take part. */
bool lkg_rollout_lets_go(enum lkg_slot_verdict verdict, bool prefer);

/** lkg_seeker_own() - index of its slot for what is wanted; -1 = none. */
int lkg_seeker_own(const struct lkg_seeker *seeker);

/** lkg_seeker_verdict() - may this node switch to what it wants, now? @ret_words: why not, for the condition */
enum lkg_slot_verdict lkg_seeker_verdict(const struct lkg_seeker *seeker, uint64_t now_ns,
                                         char ret_words[static 256]);
