/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"

#define NEVER UINT64_MAX

/* ---- the next step ---- */

static bool may_watch(const struct lkg_follow *follow)
{
        return !follow->watching && !follow->getting && follow->get_at_ns == NEVER &&
               follow->known != LKG_FOLLOW_UNKNOWN;
}

static void begin_watch(struct lkg_follow *follow, struct lkg_moment at)
{
        follow->watching = true;
        follow->open = follow->heard = follow->marked = false;
        follow->from_now = follow->position[0] == '\0';
        follow->seconds = lkg_watch_seconds(at.random);
        follow->byte_ns = at.now_ns;
        follow->half_ns = 0;
}

static unsigned plan(struct lkg_follow *follow, struct lkg_moment at)
{
        if (!follow->getting && follow->get_at_ns <= at.now_ns) {
                follow->get_at_ns = NEVER;
                follow->getting = true;
                follow->changed_since_get = false;
                return LKG_FOLLOW_GET;
        }
        if (may_watch(follow) && follow->watch_at_ns <= at.now_ns) {
                begin_watch(follow, at);
                return LKG_FOLLOW_WATCH;
        }
        return 0;
}

static void want_get(struct lkg_follow *follow, uint64_t when_ns)
{
        follow->get_at_ns = lkg_earlier(follow->get_at_ns, when_ns);
}

static void poll_later(struct lkg_follow *follow, struct lkg_moment at)
{
        want_get(follow, at.now_ns + lkg_jitter(follow->limits.poll_interval_ns, LKG_FOLLOW_POLL_PERCENT,
                                                at.random));
}

void lkg_follow_begin(struct lkg_follow *follow, uint64_t poll_interval_ns, uint64_t now_ns)
{
        *follow = (struct lkg_follow){
                .limits = { poll_interval_ns, LKG_WATCH_IDLE_NS, LKG_FOLLOW_HALF_NS, LKG_WATCH_QUIET_NS },
                .get_at_ns = now_ns,
        };
}

/* ---- success and failure ---- */

static void works(struct lkg_follow *follow, struct lkg_moment at)
{
        follow->status = LKG_API_OK;
        follow->failing_since_ns = 0;
        lkg_backoff_succeeded(&follow->backoff, at.now_ns);
}

/* The server has reported the object, or that our state is still current. */
static void learned(struct lkg_follow *follow, struct lkg_moment at)
{
        works(follow, at);
        follow->success_wall_ns = at.wall_ns;
}

/* Return: when to try again. */
static uint64_t fails(struct lkg_follow *follow, enum lkg_api_status status, uint64_t retry_after_ns,
                      struct lkg_moment at)
{
        follow->n_failures++;
        follow->status = status;
        if (follow->failing_since_ns == 0)
                follow->failing_since_ns = at.now_ns;
        return at.now_ns + lkg_backoff_failed(&follow->backoff, retry_after_ns, at.random, at.now_ns);
}

/*
 * The watch reported something impossible, so the object must be read again. The read is immediate, unless
 * the watch does this repeatedly.
 */
static void doubt(struct lkg_follow *follow, struct lkg_moment at)
{
        uint64_t when = lkg_later(at.now_ns, follow->doubt_at_ns);

        if (follow->get_at_ns <= when)
                return;
        follow->get_at_ns = when;
        follow->doubt_at_ns = when + lkg_backoff_failed(&follow->doubts, 0, at.random, when);
}

/* ---- known state ---- */

/* Return: the event to report. */
static unsigned know(struct lkg_follow *follow, const struct lkg_object_id *id)
{
        if (!id) {
                follow->known = LKG_FOLLOW_ABSENT;
                return LKG_FOLLOW_TELL_NONE;
        }
        follow->known = LKG_FOLLOW_PRESENT;
        follow->id = *id;
        return LKG_FOLLOW_TELL;
}

static void move_to(struct lkg_follow *follow, const char *version)
{
        if (follow->position[0] && lkg_version_compare(version, follow->position) == LKG_VERSION_OLDER)
                return;
        (void)stpcpy(follow->position, version);
}

/* If the watch was faster than a read, the read counts only if it is certainly newer, or the same. */
static bool overtaken(const struct lkg_follow *follow, const struct lkg_object_id *id)
{
        enum lkg_version_order order;

        if (!follow->changed_since_get)
                return false;
        if (!id)
                return follow->known != LKG_FOLLOW_ABSENT;
        order = lkg_version_compare(id->version, follow->id.version);
        if (order == LKG_VERSION_NEWER)
                return false;
        return order != LKG_VERSION_SAME || follow->known != LKG_FOLLOW_PRESENT ||
               strcmp(id->uid, follow->id.uid) != 0;
}

/* Set the position of the next watch. An open watch knows better, unless the read contradicts it. */
static void place(struct lkg_follow *follow, const struct lkg_object_id *id)
{
        if (!follow->watching)
                (void)stpcpy(follow->position, id && !follow->expired ? id->version : "");
        else if (id && follow->id.version[0] &&
                 lkg_version_compare(id->version, follow->id.version) == LKG_VERSION_OLDER)
                follow->position[0] = '\0';
}

unsigned lkg_follow_got(struct lkg_follow *follow, const struct lkg_object_id *id, struct lkg_moment at)
{
        unsigned todo;

        follow->getting = false;
        lkg_backoff_succeeded(&follow->doubts, at.now_ns);
        if (overtaken(follow, id)) {
                /* Read once more; if the watch is faster again, it works and reports the object sooner. */
                works(follow, at);
                if (!follow->repeated)
                        want_get(follow, at.now_ns);
                follow->repeated = !follow->repeated;
                return plan(follow, at);
        }
        follow->repeated = false;
        place(follow, id);
        learned(follow, at);
        todo = know(follow, id);
        if (follow->polling && !follow->watching) {
                if (++follow->n_polls < LKG_FOLLOW_POLLS)
                        poll_later(follow, at);
                else
                        follow->n_polls = 0;
        }
        return todo | plan(follow, at);
}

unsigned lkg_follow_not_got(struct lkg_follow *follow, enum lkg_api_status status, uint64_t retry_after_ns,
                            struct lkg_moment at)
{
        follow->getting = false;
        if (!follow->watching)
                follow->streaming = false;
        follow->get_at_ns = fails(follow, status, retry_after_ns, at);
        return plan(follow, at);
}

/* ---- events of the watch ---- */

unsigned lkg_follow_opened(struct lkg_follow *follow, struct lkg_moment at)
{
        follow->open = follow->streaming = true;
        follow->opened_ns = follow->byte_ns = at.now_ns;
        follow->polling = follow->expired = false;
        follow->n_polls = 0;
        works(follow, at);
        /* The watch starts with the current state only if the object exists; a deletion since the last read would go unnoticed. */
        if (follow->from_now && (follow->quiet || follow->known == LKG_FOLLOW_PRESENT))
                want_get(follow, at.now_ns);
        return plan(follow, at);
}

void lkg_follow_bytes(struct lkg_follow *follow, bool partial, bool fresh, uint64_t now_ns)
{
        follow->byte_ns = now_ns;
        if (!partial)
                follow->half_ns = 0;
        else if (fresh || follow->half_ns == 0)
                follow->half_ns = now_ns;
}

enum belief { NEWS, KNOWN, PASSED, DOUBTFUL };

/*
 * Events arrive in the order of their versions, after the position; any other event is DOUBTFUL. An event in
 * order that is older than the result of a read in the meantime is PASSED: the watch is catching up with
 * that read.
 */
static enum belief judge(const struct lkg_follow *follow, enum lkg_event_type type,
                         const struct lkg_object_id *id)
{
        bool same = strcmp(id->uid, follow->id.uid) == 0, deleted = type == LKG_EVENT_DELETED;
        enum lkg_version_order order = follow->id.version[0]
                                               ? lkg_version_compare(id->version, follow->id.version)
                                               : LKG_VERSION_OTHER;
        bool behind = follow->position[0] &&
                      lkg_version_compare(id->version, follow->position) == LKG_VERSION_OLDER;

        if (deleted && follow->known == LKG_FOLLOW_ABSENT)
                return KNOWN;
        if (!deleted && same && follow->known == LKG_FOLLOW_ABSENT)
                return DOUBTFUL; /* a deleted object does not return with the same uid */
        if (!deleted && same && order == LKG_VERSION_SAME)
                return KNOWN;
        if (behind)
                return DOUBTFUL;
        if (order == LKG_VERSION_OLDER)
                return follow->position[0] && !(deleted && same) && follow->known == LKG_FOLLOW_PRESENT &&
                                       lkg_version_compare(id->version, follow->position) ==
                                               LKG_VERSION_NEWER
                               ? PASSED
                               : DOUBTFUL;
        if (deleted && !same && follow->known == LKG_FOLLOW_PRESENT)
                return DOUBTFUL;
        return NEWS;
}

static unsigned believe(struct lkg_follow *follow, enum lkg_event_type type, const struct lkg_object_id *id)
{
        unsigned todo = know(follow, type == LKG_EVENT_DELETED ? NULL : id);

        follow->id = *id; /* of a deletion, too: nothing older is news after it */
        follow->changed_since_get = true;
        return todo;
}

unsigned lkg_follow_event(struct lkg_follow *follow, enum lkg_event_type type,
                          const struct lkg_object_id *id, struct lkg_moment at)
{
        unsigned todo = 0;

        follow->heard = true;
        switch (judge(follow, type, id)) {
        case NEWS:
                todo = believe(follow, type, id);
                move_to(follow, id->version);
                learned(follow, at);
                break;
        case KNOWN:
        case PASSED:
                move_to(follow, id->version);
                learned(follow, at);
                break;
        case DOUBTFUL:
                doubt(follow, at);
                break;
        }
        return todo | plan(follow, at);
}

unsigned lkg_follow_bookmark(struct lkg_follow *follow, const char *version, struct lkg_moment at)
{
        follow->heard = follow->marked = true;
        if (follow->position[0] && lkg_version_compare(version, follow->position) == LKG_VERSION_OLDER) {
                /* The store is now an older one: this watch would not report changes below our position. */
                follow->watching = false;
                follow->expired = true;
                doubt(follow, at);
                return LKG_FOLLOW_END_WATCH | plan(follow, at);
        }
        move_to(follow, version);
        learned(follow, at);
        return plan(follow, at);
}

/* ---- end of the watch ---- */

static void read_after_failure(struct lkg_follow *follow, enum lkg_api_status status,
                               uint64_t retry_after_ns, struct lkg_moment at)
{
        follow->streaming = false;
        if (follow->from_now && !follow->heard)
                follow->quiet = false;
        follow->get_at_ns = fails(follow, status, retry_after_ns, at);
}

/*
 * An object's own version is often too old, because it is the version of its last change. Without a version
 * it cannot be too old.
 */
static void gone(struct lkg_follow *follow, struct lkg_moment at)
{
        follow->expired = true;
        if (follow->from_now)
                read_after_failure(follow, LKG_API_GONE, 0, at);
        else
                want_get(follow, at.now_ns);
}

static void refused(struct lkg_follow *follow, struct lkg_moment at)
{
        follow->polling = true;
        follow->streaming = false;
        works(follow, at); /* the server answers; reading is another permission */
        poll_later(follow, at);
}

/* As announced, or nearly: a restarting server ends its watches early. */
static void done(struct lkg_follow *follow, struct lkg_moment at)
{
        bool lasted = follow->open && at.now_ns - follow->opened_ns >= LKG_WATCH_SHORT_NS;

        if (lasted) /* no event means no change: the state is still true */
                learned(follow, at);
        if (!lasted && !(follow->open && follow->heard))
                read_after_failure(follow, LKG_API_UNREACHABLE, 0, at);
        else
                /* never in a circle */
                follow->watch_at_ns = lasted ? at.now_ns : follow->opened_ns + LKG_WATCH_SHORT_NS;
}

unsigned lkg_follow_broken(struct lkg_follow *follow, enum lkg_api_status status, struct lkg_moment at)
{
        follow->watching = false;
        if (status == LKG_API_GONE)
                gone(follow, at);
        else if (status == LKG_API_BUSY && follow->from_now && !follow->heard && !follow->quiet)
                follow->quiet = follow->expired = true;
        else
                read_after_failure(follow, status, 0, at);
        return LKG_FOLLOW_END_WATCH | plan(follow, at);
}

unsigned lkg_follow_ended(struct lkg_follow *follow, enum lkg_api_status status, unsigned http_status,
                          uint64_t retry_after_ns, struct lkg_moment at)
{
        /* Nothing is missed that the same position would not report, so a read would only add load. */
        bool not_begun =
                !follow->open && ((status == LKG_API_UNREACHABLE && http_status == 0) || http_status == 429);

        follow->watching = false;
        if (status == LKG_API_OK) {
                done(follow, at);
        } else if (status == LKG_API_GONE) {
                gone(follow, at);
        } else if (status == LKG_API_FORBIDDEN) {
                refused(follow, at);
        } else if (not_begun && !follow->polling) {
                follow->streaming = false;
                follow->watch_at_ns = fails(follow, status, retry_after_ns, at);
        } else {
                read_after_failure(follow, status, retry_after_ns, at);
        }
        return plan(follow, at);
}

unsigned lkg_follow_cut(struct lkg_follow *follow, struct lkg_moment at)
{
        if (!follow->open || at.now_ns - follow->byte_ns < follow->limits.quiet_ns)
                return lkg_follow_ended(follow, LKG_API_UNREACHABLE, 200, 0, at);
        follow->watching = false;
        follow->watch_at_ns = at.now_ns;
        return plan(follow, at);
}

/* ---- others ---- */

static void forgive(struct lkg_backoff *backoff)
{
        backoff->n_failures = 0;
        backoff->healthy_ns = 0;
}

unsigned lkg_follow_fetch(struct lkg_follow *follow, bool anew, struct lkg_moment at)
{
        unsigned todo = 0;

        if (anew) {
                follow->getting = follow->watching = follow->streaming = false;
                follow->polling = follow->expired = follow->repeated = false;
                forgive(&follow->backoff);
                forgive(&follow->doubts);
                follow->watch_at_ns = follow->doubt_at_ns = at.now_ns;
                todo = LKG_FOLLOW_END_GET | LKG_FOLLOW_END_WATCH;
        }
        follow->get_at_ns = at.now_ns;
        return todo | plan(follow, at);
}

unsigned lkg_follow_tick(struct lkg_follow *follow, struct lkg_moment at)
{
        return plan(follow, at);
}

/*
 * Silence is a fault only before the watch is open or after its first bookmark. Between them it is normal:
 * if no object of the kind has changed since the watch's position, an API server sends no bookmark for hours
 * (apiserver, storage/cacher). Such a watch ends at its timeout.
 */
static uint64_t silent_at(const struct lkg_follow *follow)
{
        if (!follow->watching)
                return NEVER;
        return lkg_earlier(!follow->open || follow->marked ? follow->byte_ns + follow->limits.idle_max_ns
                                                           : NEVER,
                           follow->half_ns ? follow->half_ns + follow->limits.half_max_ns : NEVER);
}

bool lkg_follow_silent(const struct lkg_follow *follow, uint64_t now_ns)
{
        return silent_at(follow) <= now_ns;
}

uint64_t lkg_follow_due(const struct lkg_follow *follow)
{
        uint64_t due = silent_at(follow);

        if (!follow->getting)
                due = lkg_earlier(due, follow->get_at_ns);
        if (may_watch(follow))
                due = lkg_earlier(due, follow->watch_at_ns);
        return due;
}

const char *lkg_follow_position(const struct lkg_follow *follow)
{
        return follow->position[0] || follow->quiet ? follow->position : NULL;
}

enum lkg_informer_mode lkg_follow_mode(const struct lkg_follow *follow)
{
        if (follow->streaming)
                return LKG_INFORMER_WATCH;
        if (follow->status != LKG_API_OK)
                return LKG_INFORMER_DOWN;
        return follow->polling ? LKG_INFORMER_POLL : LKG_INFORMER_STARTING;
}
