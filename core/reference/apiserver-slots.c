/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a rollout: sends what the seeker (<lkg/slots.h>) asks for, and tells it the answers. A list of all slots of the followed
 * ConfigMap, then a watch from there, as long as the seeker watches; when the watch breaks off, another list.
 */
#include <lkg/base.h>

#include <lkg/client.h>
#include "apiserver.h"

#define SLOT_BYTES 4096u                     /* of an answer, for one; they have up to 2 KiB */
#define LISTED_MAX (2 * LKG_SLOTS_KNOWN_MAX) /* with objects that are no slots */
#define SLACK_NS   (10 * LKG_NSEC_PER_MSEC)

struct lkg_slot_keeper {
        struct lkg_apiserver *api; /* borrowed */
        struct lkg_seeker seeker;
        char uid[LKG_SLOT_TEXT_MAX];      /* of the ConfigMap whose slots are watched; "" = none */
        char position[LKG_SLOT_TEXT_MAX]; /* resourceVersion of what was heard last */
        /* the same when the list was asked for: a list from before it is of a server that was restored */
        char floor[LKG_SLOT_TEXT_MAX];
        struct lkg_call *call, *watch;
        struct lkg_watch_stream stream;
        /* the failure that this node has written last, until it was listed; hash "" = none */
        struct lkg_rollout_slot noted;
        unsigned halts_with;          /* so many of that content */
        uint64_t opened_ns, heard_ns; /* opened: 0 = the watch is not open yet */
        bool marked;                  /* a bookmark came, so there will be one every minute */
        sd_event_source *timer;
        char trouble[LKG_API_WORDS_MAX]; /* of the last answer; "" = none */
        enum lkg_slot_verdict told;
        size_t told_counts;
        unsigned n_wrong; /* objects that are no slots */
        unsigned n_parts; /* of the list that is being read */
};

static struct lkg_seeker_moment now(void)
{
        return (struct lkg_seeker_moment){ lkg_boottime_ns(), lkg_realtime_ns(), lkg_random() };
}

static const char *slot_namespace(const struct lkg_slot_keeper *keeper)
{
        return keeper->api->places->config->remote.rollout_namespace;
}

static enum lkg_slot_kind slot_kind(const struct lkg_slot_keeper *keeper)
{
        return (enum lkg_slot_kind)keeper->api->places->config->remote.rollout_objects;
}

static struct lkg_resource slot_list(const struct lkg_slot_keeper *keeper)
{
        const struct lkg_slot_format *format = lkg_slot_format(slot_kind(keeper));

        return (struct lkg_resource){ .group_version = format->group_version,
                                      .plural = format->plural,
                                      .kind = format->list_kind,
                                      .ns = slot_namespace(keeper) };
}

/*
 * A kubelet's credential never gets Leases outside kube-node-lease, whatever a Role grants (the authorizer Node and NodeRestriction). The
 * server says so at the end of a sentence that is cut in a condition, so these words replace it. A credential whose user is not known
 * here, a token, is recognised by the server's words.
 */
static bool is_kept_from_leases(const struct lkg_slot_keeper *keeper, const struct lkg_api_answer *answer)
{
        return slot_kind(keeper) == LKG_SLOT_LEASE && answer->status == LKG_API_FORBIDDEN &&
               (lkg_credential_is_node(keeper->api->credential, keeper->api->node_name) ||
                strstr(answer->words, "kube-node-lease") || strstr(answer->words, "delete a node lease"));
}

static void note_trouble(struct lkg_slot_keeper *keeper, const struct lkg_api_answer *answer)
{
        if (is_kept_from_leases(keeper, answer))
                (void)snprintf(keeper->trouble, sizeof(keeper->trouble),
                               "%.*s: a node's own credential may use Leases in kube-node-lease only, see "
                               "remote.rolloutObjects",
                               (int)strcspn(answer->words, ":"), answer->words);
        else
                (void)snprintf(keeper->trouble, sizeof(keeper->trouble), "%s", answer->words);
}

static void drive(struct lkg_slot_keeper *keeper);

/* ---- what the objects say ---- */

static bool read_slot(struct lkg_slot_keeper *keeper, const struct lkg_value *object,
                      struct lkg_rollout_slot *ret)
{
        struct lkg_error err = { 0 };

        if (lkg_slot_read(slot_kind(keeper), object, ret, &err) == 0)
                return true;
        if (keeper->n_wrong++ == 0) /* once: whoever may write there could fill the log */
                lkg_log_warning("an object in namespace %s is not a slot of a rollout: %s",
                                slot_namespace(keeper), err.message);
        return false;
}

static const char *version_of(const struct lkg_value *object)
{
        const struct lkg_value *metadata = lkg_map_get_map(object, "metadata");

        return metadata ? lkg_map_get_string(metadata, "resourceVersion") : NULL;
}

static void take_part(struct lkg_slot_keeper *keeper, const struct lkg_value *list)
{
        const struct lkg_value *items = lkg_map_get(list, "items");
        size_t n = items && lkg_value_type(items) == LKG_LIST ? lkg_value_size(items) : 0;
        const char *version = version_of(list);
        struct lkg_rollout_slot slot;

        if (keeper->n_parts++ == 0) {
                if (version && lkg_version_compare(version, keeper->floor) == LKG_VERSION_OLDER)
                        lkg_seeker_forget(&keeper->seeker);
                lkg_seeker_list_begins(&keeper->seeker, version ? version : "");
        }
        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(items, i);

                if (lkg_value_type(item) == LKG_MAP && read_slot(keeper, item, &slot))
                        lkg_seeker_put_listed(&keeper->seeker, &slot, lkg_boottime_ns());
        }
        (void)snprintf(keeper->position, sizeof(keeper->position), "%s", version ? version : "");
}

/* ---- the watch ---- */

static void stop_watch(struct lkg_slot_keeper *keeper)
{
        keeper->watch = lkg_call_cancel(keeper->watch);
        lkg_watch_stream_deinit(&keeper->stream);
}

static void lose_watch(struct lkg_slot_keeper *keeper)
{
        stop_watch(keeper);
        lkg_seeker_watch_lost(&keeper->seeker, now());
}

/* When it has said nothing for too long. As in an informer, a watch that is open need not say anything before its first bookmark. */
static uint64_t silent_at(const struct lkg_slot_keeper *keeper)
{
        return keeper->watch && (!keeper->opened_ns || keeper->marked) ? keeper->heard_ns + LKG_WATCH_IDLE_NS
                                                                       : UINT64_MAX;
}

static int on_event(const struct lkg_watch_event *event, void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;
        const char *version = version_of(event->object);
        struct lkg_rollout_slot slot;

        if (event->type == LKG_EVENT_ERROR)
                return -ECANCELED;
        if (version)
                (void)snprintf(keeper->position, sizeof(keeper->position), "%s", version);
        keeper->marked |= event->type == LKG_EVENT_BOOKMARK;
        if (event->type == LKG_EVENT_BOOKMARK || !read_slot(keeper, event->object, &slot))
                return 0;
        if (event->type == LKG_EVENT_DELETED)
                lkg_seeker_removed(&keeper->seeker, slot.hash, slot.index);
        else
                lkg_seeker_put(&keeper->seeker, &slot, lkg_boottime_ns());
        return 0;
}

static void on_open(void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;

        keeper->opened_ns = keeper->heard_ns = lkg_boottime_ns();
        lkg_seeker_watch_open(&keeper->seeker);
        drive(keeper);
}

static int on_data(const char *data, size_t size, void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;
        struct lkg_error err = { 0 };
        int r;

        keeper->heard_ns = lkg_boottime_ns();
        r = lkg_watch_stream_feed(&keeper->stream, data, size, on_event, keeper, &err);
        if (r < 0)
                lose_watch(keeper);
        drive(keeper);
        return r == 0 && keeper->watch ? 0 : -ECANCELED;
}

/*
 * As in an informer: the server ends a watch as announced, or a balancer ends a connection that was quiet, and nothing was missed. Never
 * in a circle: one that ends at once has failed.
 */
static bool is_whole(const struct lkg_slot_keeper *keeper, const struct lkg_api_answer *answer)
{
        uint64_t now_ns = lkg_boottime_ns();

        if (!keeper->opened_ns || lkg_watch_stream_is_partial(&keeper->stream))
                return false;
        return answer->status == LKG_API_OK ? now_ns - keeper->opened_ns >= LKG_WATCH_SHORT_NS
                                            : answer->cut && now_ns - keeper->heard_ns >= LKG_WATCH_QUIET_NS;
}

/* The next watch begins where a whole one ended. */
static void on_end(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;
        bool whole = is_whole(keeper, answer);

        keeper->watch = NULL;
        if (answer->status != LKG_API_OK && !whole)
                note_trouble(keeper, answer);
        stop_watch(keeper);
        if (answer->status == LKG_API_FORBIDDEN)
                lkg_seeker_watch_refused(&keeper->seeker, now());
        else if (!whole)
                lkg_seeker_watch_lost(&keeper->seeker, now());
        drive(keeper);
}

static void start_watch(struct lkg_slot_keeper *keeper)
{
        const struct lkg_resource resource = slot_list(keeper);
        const struct lkg_request request = { .verb = "watch",
                                             .resource = &resource,
                                             .label = LKG_SLOT_LABEL_OBJECT,
                                             .value = keeper->uid,
                                             .version = keeper->position,
                                             .seconds = lkg_watch_seconds(lkg_random()),
                                             .open = on_open,
                                             .data = on_data,
                                             .done = on_end,
                                             .userdata = keeper };

        lkg_watch_stream_deinit(&keeper->stream);
        lkg_watch_stream_init(&keeper->stream, keeper->api->places->config->remote.max_bytes);
        keeper->stream.admission = keeper->api->places->options.admission;
        keeper->heard_ns = lkg_boottime_ns();
        keeper->opened_ns = 0;
        keeper->marked = false;
        keeper->watch = lkg_client_send(keeper->api->client, &request);
}

/* ---- requests ---- */

static enum lkg_slot_answer meaning(const struct lkg_api_answer *answer, enum lkg_slot_request request)
{
        switch (answer->status) {
        case LKG_API_OK:
                return LKG_SLOT_DONE;
        case LKG_API_CONFLICT:
                return LKG_SLOT_CONFLICT;
        case LKG_API_FORBIDDEN:
                return LKG_SLOT_FORBIDDEN;
        /* An update of a Lease that was deleted makes it anew instead; who takes one lists all once more in any case. */
        case LKG_API_NOT_FOUND: /* of an update: somebody has deleted it; of a create: there is no such namespace */
                return request == LKG_SLOT_UPDATE ? LKG_SLOT_CONFLICT : LKG_SLOT_FORBIDDEN;
        default:
                return LKG_SLOT_UNCLEAR;
        }
}

static void on_listed(const struct lkg_api_answer *answer, void *userdata);

/* So many that a part is not larger than remote.maxBytes. */
static unsigned in_one_part(const struct lkg_slot_keeper *keeper)
{
        size_t n = keeper->api->places->config->remote.max_bytes / SLOT_BYTES;

        return n < 1 ? 1 : n > LKG_SLOTS_PART ? LKG_SLOTS_PART : (unsigned)n;
}

/* @token: NULL = from the beginning */
static void send_list(struct lkg_slot_keeper *keeper, const char *token)
{
        const struct lkg_resource resource = slot_list(keeper);
        const struct lkg_request request = { .verb = "list",
                                             .resource = &resource,
                                             .label = LKG_SLOT_LABEL_OBJECT,
                                             .value = keeper->uid,
                                             .limit = in_one_part(keeper),
                                             .token = token,
                                             .done = on_listed,
                                             .userdata = keeper };

        keeper->call = lkg_client_send(keeper->api->client, &request);
}

static void begin_list(struct lkg_slot_keeper *keeper)
{
        keeper->n_parts = 0;
        (void)snprintf(keeper->floor, sizeof(keeper->floor), "%s", keeper->position);
        send_list(keeper, /* token= */ NULL);
}

/* The last part ends the list, and so does one too many: what is not known is as bad as too many slots, and no slot is taken. */
static bool ask_for_next_part(struct lkg_slot_keeper *keeper, const char *token)
{
        if (token && !keeper->seeker.ledger.too_many && keeper->n_parts * in_one_part(keeper) < LISTED_MAX) {
                send_list(keeper, token);
                return true;
        }
        keeper->seeker.ledger.too_many |= token != NULL;
        lkg_seeker_listed(&keeper->seeker, now());
        return false;
}

/*
 * Once in the fleet: by the node whose note of a failure is the one that halts the rollout. The order of the notes is that of the API
 * server, so the list that follows the note is what tells.
 */
static void tell_halt(struct lkg_slot_keeper *keeper)
{
        const struct lkg_places_options *options = &keeper->api->places->options;
        const struct lkg_slot_wish *wish = &keeper->seeker.wish;
        struct lkg_rollout_slot *noted = &keeper->noted;
        const struct lkg_rollout_slot *is =
                *noted->hash ? lkg_ledger_find(&keeper->seeker.ledger, noted->hash, noted->index) : NULL;
        struct lkg_config_source source = { .ns = "" };
        struct lkg_slot_counts counts;
        char words[160];

        *noted->hash = '\0';
        if (!is || is->state != LKG_SLOT_FAILED || strcmp(is->node, noted->node) != 0 ||
            is->renewed_ns / LKG_NSEC_PER_SEC != noted->renewed_ns / LKG_NSEC_PER_SEC ||
            !options->rollout_halted ||
            lkg_ledger_failed_before(&keeper->seeker.ledger, is) + 1 != keeper->halts_with)
                return;
        lkg_ledger_count(&keeper->seeker.ledger, is->hash, &counts);
        (void)snprintf(words, sizeof(words),
                       "rollout halted, %u failed, and it halts with %u; %u nodes have it, %u try it",
                       counts.n_failed, keeper->halts_with, counts.n_done, counts.n_held);
        (void)snprintf(source.ns, sizeof(source.ns), "%s", wish->id.ns);
        (void)snprintf(source.name, sizeof(source.name), "%s", wish->id.name);
        (void)snprintf(source.uid, sizeof(source.uid), "%s", is->uid);
        (void)snprintf(source.version, sizeof(source.version), "%s", is->of_version);
        (void)snprintf(source.key, sizeof(source.key), "%s", is->key);
        memcpy(source.sha256, is->sha256, sizeof(source.sha256));
        options->rollout_halted(&source, words, options->userdata);
}

static void on_listed(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;

        keeper->call = NULL;
        if (answer->status != LKG_API_OK) {
                note_trouble(keeper, answer);
                lkg_seeker_answered(&keeper->seeker, meaning(answer, LKG_SLOT_LIST), NULL, now());
        } else {
                *keeper->trouble = '\0';
                take_part(keeper, answer->object);
                if (ask_for_next_part(keeper, lkg_list_token(answer->object)))
                        return;
                tell_halt(keeper);
        }
        drive(keeper);
}

static void on_written(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;
        enum lkg_slot_answer is = meaning(answer, keeper->seeker.under_way);
        struct lkg_rollout_slot slot;
        bool known = is == LKG_SLOT_DONE && read_slot(keeper, answer->object, &slot);

        keeper->call = NULL;
        if (is == LKG_SLOT_FORBIDDEN || is == LKG_SLOT_UNCLEAR)
                note_trouble(keeper, answer);
        lkg_seeker_answered(&keeper->seeker, is, known ? &slot : NULL, now());
        if (is == LKG_SLOT_CONFLICT) /* somebody else was faster, or it is tried again */
                *keeper->noted.hash = '\0';
        keeper->seeker.must_list |= *keeper->noted.hash != '\0';
        drive(keeper);
}

static void send_slot(struct lkg_slot_keeper *keeper, enum lkg_slot_request request)
{
        const struct lkg_rollout_slot *slot = &keeper->seeker.writing;
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf body = LKG_BUF_INIT;
        struct lkg_rollout_id id = keeper->seeker.wish.id;
        struct lkg_resource resource = slot_list(keeper);
        char name[LKG_SLOT_HASH + 8];

        lkg_slot_name(slot, name);
        resource.kind = lkg_slot_format(slot_kind(keeper))->kind;
        resource.name = request == LKG_SLOT_UPDATE ? name : NULL;
        if (slot->state == LKG_SLOT_FAILED && !slot->collected) {
                keeper->noted = *slot;
                keeper->halts_with = lkg_slots_halting(keeper->seeker.wish.max_in_trial,
                                                       keeper->seeker.wish.max_failures);
        }
        lkg_slot_write(slot_kind(keeper), slot, &id, resource.ns, &json);
        (void)lkg_need(lkg_json_write_line(&json, &body));
        keeper->call = lkg_client_send(
                keeper->api->client,
                &(struct lkg_request){ .verb = request == LKG_SLOT_UPDATE ? "update" : "create",
                                       .resource = &resource,
                                       .content_type = "application/json",
                                       .body = body.data,
                                       .size = body.size,
                                       .done = on_written,
                                       .userdata = keeper });
}

/* ---- the next step ---- */

static void tell_changes(struct lkg_slot_keeper *keeper)
{
        struct lkg_slot_counts counts;
        char words[256];
        enum lkg_slot_verdict verdict = lkg_seeker_verdict(&keeper->seeker, lkg_boottime_ns(), words);
        size_t sum;

        lkg_ledger_count(&keeper->seeker.ledger, keeper->seeker.wish.id.hash, &counts);
        sum = (((size_t)counts.n_done * 1000 + counts.n_held) * 1000) + counts.n_failed;
        if (verdict == keeper->told && sum == keeper->told_counts)
                return;
        keeper->told = verdict;
        keeper->told_counts = sum;
        lkg_apiserver_kick(keeper->api);
}

static void arm(struct lkg_slot_keeper *keeper, uint64_t due_ns)
{
        lkg_remote_arm(keeper->timer, lkg_earlier(due_ns, silent_at(keeper)));
}

/* Another ConfigMap. A list of the slots of the one before may have been answered since the wish for this one, and its watch was open. */
static void follow_wish(struct lkg_slot_keeper *keeper)
{
        const char *uid = keeper->seeker.wish.id.uid;

        if (strcmp(keeper->uid, uid) == 0)
                return;
        stop_watch(keeper);
        (void)snprintf(keeper->uid, sizeof(keeper->uid), "%s", uid);
        *keeper->position = '\0';
        lkg_seeker_forget(&keeper->seeker);
        lkg_seeker_lost_contact(&keeper->seeker);
}

static void drive(struct lkg_slot_keeper *keeper)
{
        enum lkg_slot_request request = LKG_SLOT_NOTHING;
        uint64_t due_ns = UINT64_MAX;

        if (!keeper->call) {
                follow_wish(keeper);
                request = lkg_seeker_next(&keeper->seeker, now(), &due_ns);
        }
        if (request == LKG_SLOT_LIST)
                begin_list(keeper);
        else if (request != LKG_SLOT_NOTHING)
                send_slot(keeper, request);
        if (!lkg_seeker_watches(&keeper->seeker)) {
                stop_watch(keeper);
                lkg_seeker_watch_closed(&keeper->seeker);
        } else if (!keeper->watch && *keeper->position && *keeper->uid && keeper->seeker.in_contact &&
                   !keeper->seeker.must_list) {
                start_watch(keeper);
        }
        arm(keeper, due_ns);
        tell_changes(keeper);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;

        if (lkg_boottime_ns() >= silent_at(keeper)) {
                keeper->watch = lkg_call_abandon(keeper->watch);
                lose_watch(keeper);
        }
        drive(keeper);
        return 0;
}

/* ---- questions ---- */

static enum lkg_slot_outcome outcome(const char *sha256, char reason[static LKG_SLOT_REASON_MAX],
                                     void *userdata)
{
        struct lkg_slot_keeper *keeper = userdata;
        const struct lkg_places_options *options = &keeper->api->places->options;

        return options->slot_outcome
                       ? options->slot_outcome(keeper->seeker.wish.id.uid, sha256, reason, options->userdata)
                       : LKG_OUTCOME_OVER;
}

/* The wish is carried out by the timer: this may be called from one of the keeper's own callbacks. */
enum lkg_slot_verdict lkg_places_slot(struct lkg_places *places, const struct lkg_slot_wish *wish,
                                      char ret_words[static 256])
{
        struct lkg_slot_keeper *keeper = places->apiserver ? places->apiserver->slots : NULL;
        struct lkg_slot_wish mine = *wish;
        enum lkg_slot_verdict verdict;

        *ret_words = '\0';
        if (places->place == LKG_PLACE_FILE) /* no fleet: who delivers the file decides */
                return LKG_SLOT_GRANTED;
        if (!keeper) {
                const char *fault = places->apiserver ? places->apiserver->name_fault : "";

                (void)snprintf(ret_words, 256, "waiting for a rollout slot: %.200s",
                               *fault ? fault : "no API server is asked");
                return LKG_SLOT_REFUSED;
        }
        (void)snprintf(keeper->seeker.node_uid, sizeof(keeper->seeker.node_uid), "%s",
                       places->apiserver->node_says.uid);
        mine.bucket = places->apiserver->rollout.bucket_milli;
        lkg_seeker_wish(&keeper->seeker, &mine);
        if (!keeper->call && *keeper->seeker.wish.id.uid)
                arm(keeper, 0);
        verdict = lkg_seeker_verdict(&keeper->seeker, lkg_boottime_ns(), ret_words);
        if ((verdict == LKG_SLOT_DOUBTED || verdict == LKG_SLOT_REFUSED || verdict == LKG_SLOT_SILENT) &&
            *keeper->trouble)
                (void)snprintf(ret_words, 256, "waiting for a rollout slot: %.200s", keeper->trouble);
        return verdict;
}

void lkg_places_rollout_status(const struct lkg_places *places, struct lkg_rollout_status *ret)
{
        const struct lkg_slot_keeper *keeper = places->apiserver ? places->apiserver->slots : NULL;

        *ret = (struct lkg_rollout_status){ .own = -1 };
        if (!keeper || !*keeper->seeker.wish.id.uid || !keeper->seeker.wish.max_in_trial)
                return;
        ret->any = true;
        ret->verdict = lkg_seeker_verdict(&keeper->seeker, lkg_boottime_ns(), ret->words);
        ret->max_in_trial = keeper->seeker.wish.max_in_trial;
        ret->max_failures = lkg_slots_halting(ret->max_in_trial, keeper->seeker.wish.max_failures);
        ret->n_conflicts = keeper->seeker.n_conflicts;
        ret->own = lkg_seeker_own(&keeper->seeker);
        lkg_ledger_count(&keeper->seeker.ledger, keeper->seeker.wish.id.hash, &ret->counts);
        if (ret->counts.failed) {
                memcpy(ret->failed_node, ret->counts.failed->node, sizeof(ret->failed_node));
                memcpy(ret->failed_reason, ret->counts.failed->reason, sizeof(ret->failed_reason));
        }
        ret->counts.failed = NULL;
}

/* ---- lifetime ---- */

void lkg_slot_keeper_fetch(struct lkg_slot_keeper *keeper)
{
        if (!keeper || !*keeper->seeker.wish.id.uid)
                return;
        keeper->seeker.must_list = true;
        keeper->seeker.not_before_ns = 0;
        arm(keeper, 0);
}

struct lkg_slot_keeper *lkg_slot_keeper_new(struct lkg_apiserver *api)
{
        struct lkg_slot_keeper *keeper = lkg_must(calloc(1, sizeof(*keeper)));
        const struct lkg_seeker_ops ops = { .outcome = outcome, .userdata = keeper };

        keeper->api = api;
        keeper->timer = lkg_remote_timer(api->places->options.event, SLACK_NS, on_timer, keeper);
        lkg_seeker_init(&keeper->seeker, api->node_name, &ops);
        return keeper;
}

struct lkg_slot_keeper *lkg_slot_keeper_free(struct lkg_slot_keeper *keeper)
{
        if (!keeper)
                return NULL;
        lkg_call_cancel(keeper->call);
        stop_watch(keeper);
        sd_event_source_disable_unref(keeper->timer);
        lkg_seeker_deinit(&keeper->seeker);
        free(keeper);
        return NULL;
}
