/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, messages and callbacks around follow.c. Every input ends in finish(), which reports changes,
 * sets the timer, and frees an informer that was released inside one of its own callbacks.
 */
#include <lkg/text.h>
#include "api.h"
#include "follow.h"

#define ENVELOPE_BYTES 256u /* bytes of an event around its object */
#define WORDS_MAX      sizeof(((struct lkg_api_answer *)NULL)->words)

struct lkg_informer {
        struct lkg_informer_options options; /* the resource has texts of its own */

        struct lkg_follow follow;
        struct lkg_watch_stream stream;
        struct lkg_call *get, *watch;
        sd_event_source *timer;
        bool fetch, anew; /* wanted by lkg_informer_fetch() */

        char words[WORDS_MAX], refusal[WORDS_MAX];
        /* as reported last */
        enum lkg_informer_mode told_mode;
        enum lkg_api_status told_status;
        bool words_changed;
        uint64_t n_failures;

        unsigned busy; /* inputs being worked on */
        bool given_up; /* while busy */
};

const char *lkg_informer_mode_name(enum lkg_informer_mode mode)
{
        static const char *const names[] = {
                [LKG_INFORMER_STARTING] = "starting",
                [LKG_INFORMER_WATCH] = "watch",
                [LKG_INFORMER_POLL] = "poll",
                [LKG_INFORMER_DOWN] = "down",
        };

        return names[mode];
}

static struct lkg_moment now(void)
{
        return (struct lkg_moment){ lkg_boottime_ns(), lkg_realtime_ns(), lkg_random() };
}

static void set_text(struct lkg_informer *informer, char text[static WORDS_MAX], const char *words)
{
        char cut[WORDS_MAX];

        lkg_text_copy(cut, sizeof(cut), words);
        if (strcmp(text, cut) == 0)
                return;
        memcpy(text, cut, sizeof(cut));
        informer->words_changed = true;
}

static void destroy(struct lkg_informer *informer)
{
        lkg_call_cancel(informer->get);
        lkg_call_cancel(informer->watch);
        sd_event_source_disable_unref(informer->timer);
        lkg_watch_stream_deinit(&informer->stream);
        lkg_resource_deinit(&informer->options.resource);
        free(informer);
}

struct lkg_informer *lkg_informer_free(struct lkg_informer *informer)
{
        if (!informer)
                return NULL;
        if (informer->busy == 0) {
                destroy(informer);
                return NULL;
        }
        informer->given_up = true; /* finish() does the rest; until then nothing may come */
        informer->get = lkg_call_cancel(informer->get);
        informer->watch = lkg_call_cancel(informer->watch);
        return NULL;
}

/* ---- every input ---- */

static void begin(struct lkg_informer *informer)
{
        informer->busy++;
}

static void tell_changes(struct lkg_informer *informer)
{
        enum lkg_informer_mode mode = lkg_follow_mode(&informer->follow);

        if (mode == informer->told_mode && informer->follow.status == informer->told_status &&
            !informer->words_changed)
                return;
        informer->told_mode = mode;
        informer->told_status = informer->follow.status;
        informer->words_changed = false;
        informer->options.ops->changed(informer->options.userdata);
}

static void finish(struct lkg_informer *informer)
{
        if (!informer->given_up)
                tell_changes(informer);
        if (!informer->given_up)
                lkg_remote_arm(informer->timer, informer->fetch ? 0 : lkg_follow_due(&informer->follow));
        if (--informer->busy == 0 && informer->given_up)
                destroy(informer);
}

/* ---- the steps of follow.c ---- */

static void on_got(const struct lkg_api_answer *answer, void *userdata);
static void on_open(void *userdata);
static int on_data(const char *data, size_t size, void *userdata);
static void on_end(const struct lkg_api_answer *answer, void *userdata);

static void start_get(struct lkg_informer *informer)
{
        const struct lkg_request request = {
                .verb = "get", .resource = &informer->options.resource, .done = on_got, .userdata = informer
        };

        informer->get = lkg_client_send(informer->options.client, &request);
}

static void start_watch(struct lkg_informer *informer)
{
        const struct lkg_request request = {
                .verb = "watch",
                .resource = &informer->options.resource,
                .version = lkg_follow_position(&informer->follow),
                .seconds = informer->follow.seconds,
                .open = on_open,
                .data = on_data,
                .done = on_end,
                .userdata = informer,
        };

        lkg_watch_stream_deinit(&informer->stream);
        lkg_watch_stream_init(&informer->stream, informer->options.max_bytes + ENVELOPE_BYTES);
        informer->stream.admission = informer->options.admission;
        informer->stream.what = informer->options.resource.name;
        informer->watch = lkg_client_send(informer->options.client, &request);
}

/* Execute @todo; @words: the message if it is a failure. */
static void carry_out(struct lkg_informer *informer, unsigned todo, const struct lkg_value *object,
                      const char *words)
{
        if (informer->follow.n_failures != informer->n_failures)
                set_text(informer, informer->words, words);
        informer->n_failures = informer->follow.n_failures;
        if (informer->follow.status == LKG_API_OK)
                set_text(informer, informer->words, "");
        if (!informer->follow.polling)
                set_text(informer, informer->refusal, "");
        if (todo & LKG_FOLLOW_END_GET)
                informer->get = lkg_call_cancel(informer->get);
        if (todo & LKG_FOLLOW_END_WATCH)
                informer->watch = lkg_call_cancel(informer->watch);
        if (todo & (LKG_FOLLOW_TELL | LKG_FOLLOW_TELL_NONE))
                informer->options.ops->state(todo & LKG_FOLLOW_TELL ? object : NULL,
                                             informer->options.userdata);
        if (todo & LKG_FOLLOW_GET && !informer->given_up)
                start_get(informer);
        if (todo & LKG_FOLLOW_WATCH && !informer->given_up)
                start_watch(informer);
}

/* ---- the read ---- */

static void on_got(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_informer *informer = userdata;
        struct lkg_follow *follow = &informer->follow;
        const char *words = answer->words;
        struct lkg_error err = { 0 };
        struct lkg_object_id id;
        unsigned todo;

        begin(informer);
        informer->get = NULL;
        if (answer->status == LKG_API_NOT_FOUND) {
                todo = lkg_follow_got(follow, NULL, now());
        } else if (answer->status != LKG_API_OK) {
                todo = lkg_follow_not_got(follow, answer->status, answer->retry_after_ns, now());
        } else if (lkg_object_read(answer->object, &informer->options.resource, "the API server sent", &id,
                                   &err) < 0) {
                words = err.message;
                todo = lkg_follow_not_got(follow, LKG_API_INVALID, 0, now());
        } else {
                todo = lkg_follow_got(follow, &id, now());
        }
        carry_out(informer, todo, answer->object, words);
        finish(informer);
}

/* ---- the watch ---- */

static void on_open(void *userdata)
{
        struct lkg_informer *informer = userdata;

        begin(informer);
        carry_out(informer, lkg_follow_opened(&informer->follow, now()), NULL, "");
        finish(informer);
}

static void break_watch(struct lkg_informer *informer, enum lkg_api_status status, const char *words)
{
        carry_out(informer, lkg_follow_broken(&informer->follow, status, now()), NULL, words);
}

/* The Status of an ERROR event. */
static void break_by_server(struct lkg_informer *informer, const struct lkg_value *status)
{
        const char *message = lkg_map_get_string(status, "message");
        char quoted[5 * 64 + 8], words[WORDS_MAX];

        (void)snprintf(words, sizeof(words), "the API server broke the watch off: %s",
                       message ? lkg_quote(message, strlen(message), quoted) : "it does not say why");
        break_watch(informer, lkg_object_says_gone(status) ? LKG_API_GONE : LKG_API_BUSY, words);
}

/* Return: -ECANCELED if that watch has ended; another one may have begun. */
static int on_event(const struct lkg_watch_event *event, void *userdata)
{
        struct lkg_informer *informer = userdata;
        bool bookmark = event->type == LKG_EVENT_BOOKMARK;
        static const char what[] = "the watch sent";
        struct lkg_error err = { 0 };
        struct lkg_object_id id;
        unsigned todo;

        if (event->type == LKG_EVENT_ERROR) {
                break_by_server(informer, event->object);
                return -ECANCELED;
        }
        if ((bookmark ? lkg_object_read_version(event->object, what, id.version, &err)
                      : lkg_object_read(event->object, &informer->options.resource, what, &id, &err)) < 0) {
                break_watch(informer, LKG_API_INVALID, err.message);
                return -ECANCELED;
        }
        todo = bookmark ? lkg_follow_bookmark(&informer->follow, id.version, now())
                        : lkg_follow_event(&informer->follow, event->type, &id, now());
        carry_out(informer, todo, event->object, "");
        return todo & LKG_FOLLOW_END_WATCH || !informer->watch ? -ECANCELED : 0;
}

static enum lkg_api_status status_of(int r)
{
        return r == -EFBIG ? LKG_API_TOO_LARGE : r == -EBADMSG ? LKG_API_INVALID : LKG_API_UNREACHABLE;
}

static int on_data(const char *data, size_t size, void *userdata)
{
        struct lkg_informer *informer = userdata;
        bool before = lkg_watch_stream_is_partial(&informer->stream);
        struct lkg_error err = { 0 };
        int r;

        begin(informer);
        r = lkg_watch_stream_feed(&informer->stream, data, size, on_event, informer, &err);
        if (r == 0)
                lkg_follow_bytes(&informer->follow, lkg_watch_stream_is_partial(&informer->stream),
                                 !before || memchr(data, '\n', size), lkg_boottime_ns());
        else if (r != -ECANCELED)
                break_watch(informer, status_of(r), err.message);
        finish(informer);
        return r;
}

static void on_end(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_informer *informer = userdata;
        struct lkg_follow *follow = &informer->follow;
        const char *words = answer->words;
        unsigned todo;

        begin(informer);
        informer->watch = NULL;
        if (answer->status == LKG_API_OK && lkg_watch_stream_is_partial(&informer->stream)) {
                words = "the watch ended in the middle of an event";
                todo = lkg_follow_broken(follow, LKG_API_UNREACHABLE, now());
        } else if (answer->cut && !lkg_watch_stream_is_partial(&informer->stream)) {
                todo = lkg_follow_cut(follow, now());
        } else {
                if (answer->status == LKG_API_OK)
                        words = "the API server ended the watch at once, without an event";
                todo = lkg_follow_ended(follow, answer->status, answer->http_status, answer->retry_after_ns,
                                        now());
        }
        if (answer->status == LKG_API_FORBIDDEN)
                set_text(informer, informer->refusal, words);
        carry_out(informer, todo, NULL, words);
        finish(informer);
}

/* ---- time and requests of the caller ---- */

static void tick(struct lkg_informer *informer)
{
        if (!lkg_follow_silent(&informer->follow, lkg_boottime_ns())) {
                carry_out(informer, lkg_follow_tick(&informer->follow, now()), NULL, "");
                return;
        }
        informer->watch = lkg_call_abandon(informer->watch);
        break_watch(informer, LKG_API_UNREACHABLE,
                    lkg_watch_stream_is_partial(&informer->stream)
                            ? "the watch stopped in the middle of an event"
                            : "the watch said nothing for too long, not even that nothing happened");
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_informer *informer = userdata;
        bool fetch = informer->fetch, anew = informer->anew;

        begin(informer);
        informer->fetch = informer->anew = false;
        if (fetch)
                carry_out(informer, lkg_follow_fetch(&informer->follow, anew, now()), NULL, "");
        else
                tick(informer);
        finish(informer);
        return 0;
}

void lkg_informer_fetch(struct lkg_informer *informer, bool anew)
{
        informer->fetch = true;
        informer->anew |= anew;
        lkg_remote_arm(informer->timer, 0);
}

/* ---- beginning ---- */

static void set_limits(struct lkg_follow *follow, const struct lkg_informer_options *options)
{
        if (options->idle_ns > 0)
                follow->limits.idle_max_ns = options->idle_ns;
        if (options->half_ns > 0)
                follow->limits.half_max_ns = options->half_ns;
        if (options->quiet_ns > 0)
                follow->limits.quiet_ns = options->quiet_ns;
        follow->backoff.first_ns = follow->doubts.first_ns = options->backoff_ns;
}

struct lkg_informer *lkg_informer_new(const struct lkg_informer_options *options)
{
        struct lkg_informer *informer = lkg_must(calloc(1, sizeof(*informer)));

        informer->options = *options;
        lkg_resource_copy(&options->resource, &informer->options.resource);
        lkg_follow_begin(&informer->follow, options->poll_interval_ns, lkg_boottime_ns());
        set_limits(&informer->follow, options);
        informer->timer = lkg_remote_timer(options->event, 0, on_timer, informer);
        lkg_remote_arm(informer->timer, 0);
        return informer;
}

/* ---- questions ---- */

struct lkg_informer_look lkg_informer_look(const struct lkg_informer *informer)
{
        return (struct lkg_informer_look){ .mode = lkg_follow_mode(&informer->follow),
                                           .status = informer->follow.status,
                                           .words = informer->words,
                                           .refusal = informer->refusal,
                                           .success_ns = informer->follow.success_wall_ns,
                                           .failing_since_ns = informer->follow.failing_since_ns };
}
