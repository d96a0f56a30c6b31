/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows one object: GET, then WATCH from there, repeated forever; only GET if watching is forbidden.
 * Modelled on client-go's reflector, for one name instead of a list. Reports each state that is newer than
 * the previous one.
 *
 * Rules: a watch without a version starts with the current state. 410 and an Expired event lead to a GET and
 * such a watch, and once that is open, to another GET (nothing else would report a deletion in between). An
 * event that is older than the known state (versions are compared as numbers if both are) is not used; the
 * object is read once more, and the result of that read counts, even if it is older (a restored etcd). If
 * watching is refused (403): polling every poll_interval +-25 %, and a new attempt to watch every tenth
 * time. A watch without a byte for 150 s (bookmarks arrive every minute) or with an incomplete event for 30
 * s is ended. A watch that ends within 1 s without an event counts as failed.
 */
#pragma once

#include <lkg/backoff.h>
#include <lkg/client.h>

enum lkg_informer_mode {
        LKG_INFORMER_STARTING, /* no watch has been open yet */
        LKG_INFORMER_WATCH,    /* the watch is open */
        LKG_INFORMER_POLL,     /* watching is forbidden */
        LKG_INFORMER_DOWN,     /* the last attempt failed */
};
const char *lkg_informer_mode_name(enum lkg_informer_mode mode); /* "starting", "watch", "poll", "down" */

struct lkg_informer_ops {
        /*
         * A state: @object (with metadata.uid and resourceVersion, kind and name are checked), or NULL: the object does not
         * exist (404, DELETED). Also called when a GET confirms the known state.
         */
        void (*state)(const struct lkg_value *object, void *userdata);
        /* Mode or last error has changed: see the accessors. */
        void (*changed)(void *userdata);
};

struct lkg_informer;

struct lkg_informer_options {
        sd_event *event;
        struct lkg_client *client;
        struct lkg_resource resource; /* texts are copied */
        uint64_t poll_interval_ns;
        size_t max_bytes;
        const struct lkg_admission
                *admission; /* called before an event is decoded; borrowed, NULL = no check */
        /*
         * For tests; 0 = the defaults above: a watch without a byte, an incomplete event, the first wait
         * after a failure.
         */
        uint64_t idle_ns, half_ns, quiet_ns, backoff_ns;
        const struct lkg_informer_ops *ops; /* static */
        void *userdata;
};

/** lkg_informer_new() - starts at once; its first answer comes from the loop. */
int lkg_informer_new(const struct lkg_informer_options *options, struct lkg_informer **ret,
                     struct lkg_error *err);
/**
 * lkg_informer_free() - no callback is called any more. From any callback, including its own state() and
 * changed().
 */
struct lkg_informer *lkg_informer_free(struct lkg_informer *informer);

/**
 * lkg_informer_fetch() - read the object now, from the loop (control/sync); a watch continues. @anew: end it
 * and start again (another identity). From any callback.
 */
void lkg_informer_fetch(struct lkg_informer *informer, bool anew);

/** lkg_informer_is() - does it follow that object? */
bool lkg_informer_is(const struct lkg_informer *informer, const struct lkg_resource *resource);

enum lkg_informer_mode lkg_informer_mode(const struct lkg_informer *informer);
/** lkg_informer_status() - status of the last answer; LKG_API_OK. */
enum lkg_api_status lkg_informer_status(const struct lkg_informer *informer);
/** lkg_informer_words() - why it is not OK; "". Kept until the next success. */
const char *lkg_informer_words(const struct lkg_informer *informer);
/** lkg_informer_refusal() - mode POLL: a message about the missing permission to watch; "". */
const char *lkg_informer_refusal(const struct lkg_informer *informer);
/**
 * lkg_informer_success_ns() - wall time of the last answer that confirmed the state, including bookmarks; 0
 * = none yet.
 */
uint64_t lkg_informer_success_ns(const struct lkg_informer *informer);
/**
 * lkg_informer_failing_since_ns() - CLOCK_BOOTTIME since when there have been only failures; 0 = no failure.
 */
uint64_t lkg_informer_failing_since_ns(const struct lkg_informer *informer);
