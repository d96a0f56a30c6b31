/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows one object: makes the decisions of an informer (lkg/client.h), without its requests. Input: answers, events, the
 * time, a random number. Output: the next step. No allocation, no clock, no I/O; the caller executes the
 * step and reports with the next input.
 *
 * At most one GET and one watch are in flight. Three things are separate: the known state of the object
 * (uid, version, or its absence); the *position* from which a watch would resume (a bookmark moves it, so it
 * may be newer than the object's own version, which is the version of its last change and may be too old for
 * the server); and when each request may be sent.
 */
#pragma once

#include <lkg/client.h>

#include "api.h"

#define LKG_FOLLOW_HALF_NS      (30 * LKG_NSEC_PER_SEC) /* from the beginning of an event to its end */
#define LKG_FOLLOW_POLL_PERCENT 25u
#define LKG_FOLLOW_POLLS        10u /* so many reads between two attempts to watch */

/* The time of an input. */
struct lkg_moment {
        uint64_t now_ns; /* CLOCK_BOOTTIME */
        uint64_t wall_ns;
        uint32_t random;
};

/* The steps, in this order. */
enum lkg_follow_do {
        LKG_FOLLOW_TELL = 1 << 0,      /* the object that was given is the state now */
        LKG_FOLLOW_TELL_NONE = 1 << 1, /* the object does not exist */
        LKG_FOLLOW_END_GET = 1 << 2,   /* cancel, without hearing of it again */
        LKG_FOLLOW_END_WATCH = 1 << 3,
        LKG_FOLLOW_GET = 1 << 4,
        LKG_FOLLOW_WATCH = 1 << 5, /* from lkg_follow_position(), for @seconds */
};

enum lkg_follow_knowledge { LKG_FOLLOW_UNKNOWN, LKG_FOLLOW_ABSENT, LKG_FOLLOW_PRESENT };

struct lkg_follow_limits {
        uint64_t poll_interval_ns;
        uint64_t idle_max_ns, half_max_ns,
                quiet_ns; /* LKG_WATCH_IDLE_NS, LKG_FOLLOW_HALF_NS, LKG_WATCH_QUIET_NS */
};

struct lkg_follow {
        struct lkg_follow_limits limits;

        enum lkg_follow_knowledge known;
        /* PRESENT: of the last reported state; ABSENT: of the last object that existed, "" = none */
        struct lkg_object_id id;
        char position[LKG_IDENTIFIER_MAX + 1]; /* "" = the state of now */
        bool expired; /* the server has forgotten our position: the next watch begins with the state of now */

        uint64_t get_at_ns;   /* when to read next; UINT64_MAX = no read is wanted */
        uint64_t watch_at_ns; /* not before */

        bool getting;
        bool changed_since_get; /* the watch said something new while the read was under way */
        bool repeated;          /* the read was repeated because of that */

        bool watching, open;
        bool heard;    /* an event came */
        bool marked;   /* a bookmark came, so there will be one every minute */
        bool from_now; /* it began without a position */
        bool quiet; /* such a watch begins without the state of now: this server breaks off those with it */
        bool streaming; /* the last watch was open and did not fail: a pause between two is not worth telling */
        unsigned seconds;
        uint64_t opened_ns, byte_ns;
        uint64_t half_ns; /* an event began then and has not ended; 0 = none */

        bool polling;
        unsigned n_polls;
        struct lkg_backoff backoff;
        struct lkg_backoff doubts; /* how often a watch may make us read again */
        uint64_t doubt_at_ns;

        uint64_t n_failures;
        enum lkg_api_status status; /* of the last try */
        uint64_t failing_since_ns, success_wall_ns;
};

/** lkg_follow_begin() - the first read is due immediately. Call lkg_follow_tick() next. */
void lkg_follow_begin(struct lkg_follow *follow, uint64_t poll_interval_ns, uint64_t now_ns);

/* Inputs. Each returns the next steps: enum lkg_follow_do. */

/** lkg_follow_got() - the read found the object @id; NULL = it does not exist. */
unsigned lkg_follow_got(struct lkg_follow *follow, const struct lkg_object_id *id, struct lkg_moment at);
/** lkg_follow_not_got() - the read failed, could not be sent, or returned another object. */
unsigned lkg_follow_not_got(struct lkg_follow *follow, enum lkg_api_status status, uint64_t retry_after_ns,
                            struct lkg_moment at);
unsigned lkg_follow_opened(struct lkg_follow *follow, struct lkg_moment at);
/**
 * lkg_follow_bytes() - bytes arrived. @partial: an event has begun and not ended; @fresh: since these bytes.
 */
void lkg_follow_bytes(struct lkg_follow *follow, bool partial, bool fresh, uint64_t now_ns);
/** lkg_follow_event() - ADDED, MODIFIED or DELETED. */
unsigned lkg_follow_event(struct lkg_follow *follow, enum lkg_event_type type,
                          const struct lkg_object_id *id, struct lkg_moment at);
unsigned lkg_follow_bookmark(struct lkg_follow *follow, const char *version, struct lkg_moment at);
/**
 * lkg_follow_broken() - the watch is over because of its content (LKG_API_GONE or LKG_API_BUSY of an ERROR
 * event, LKG_API_INVALID, LKG_API_TOO_LARGE) or its silence (LKG_API_UNREACHABLE). The caller also ends the
 * request.
 *
 * An API server in front of an etcd before 3.4.25 accepts a watch with the current state and breaks it off at once
 * (apiserver, storage/cacher: RequestWatchProgress is disabled). The next watch then begins without that state.
 */
unsigned lkg_follow_broken(struct lkg_follow *follow, enum lkg_api_status status, struct lkg_moment at);
/** lkg_follow_ended() - the request has ended, or could not be sent. @http_status: 0 = no reply. */
unsigned lkg_follow_ended(struct lkg_follow *follow, enum lkg_api_status status, unsigned http_status,
                          uint64_t retry_after_ns, struct lkg_moment at);
/**
 * lkg_follow_cut() - the connection of the watch broke, not in the middle of an event.
 *
 * After a quiet period this is not a failure: many API servers are behind a load balancer that closes idle
 * connections (kubeadm's own example: after 35 s). The next watch begins at once where this one ended; as in
 * client-go, the object is not read.
 */
unsigned lkg_follow_cut(struct lkg_follow *follow, struct lkg_moment at);
/**
 * lkg_follow_fetch() - read the object now. @anew: as if no request were in flight and watching were
 * allowed.
 */
unsigned lkg_follow_fetch(struct lkg_follow *follow, bool anew, struct lkg_moment at);
/** lkg_follow_tick() - time has passed. */
unsigned lkg_follow_tick(struct lkg_follow *follow, struct lkg_moment at);

/** lkg_follow_silent() - has the open watch been silent for too long? Then call lkg_follow_broken(). */
bool lkg_follow_silent(const struct lkg_follow *follow, uint64_t now_ns);

/**
 * lkg_follow_due() - return when to call lkg_follow_tick() or lkg_follow_silent() again. UINT64_MAX = never.
 */
uint64_t lkg_follow_due(const struct lkg_follow *follow);

/** lkg_follow_position() - return @version of the next watch, see struct lkg_request. */
const char *lkg_follow_position(const struct lkg_follow *follow);
enum lkg_informer_mode lkg_follow_mode(const struct lkg_follow *follow);
