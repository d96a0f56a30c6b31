/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of other processes: a layer changed, an operator wrote a command, a publication is being served; and messages of the
 * supervisor. A request is answered once a publication contains everything that it caused.
 */

#include <lkg/base.h>

#include "engine-internal.h"

/* ---- CHANGED ---- */

/* One look answers all changes of this batch: as soon as a publication shows it, otherwise when the look ends. */
static void answer_changes(struct lkg_engine *e)
{
        if (e->batch.n == 0 && e->settled.n_vouched == 0)
                return;
        e->batch.is_looked_at = true;
        lkg_engine_cycle(e, /* look= */ true);
        lkg_engine_answer_looked_at(e);
        e->batch.is_looked_at = false;
        lkg_settled_forget_vouched(&e->settled);
}

/* @path: relative to the source directory. A path that is not a layer yet, or is known under another name, causes a full look. */
static void touch_source(struct lkg_engine *e, const char *path)
{
        LKG_CLEANUP(lkg_freep) char *whole = NULL;
        bool known = false;

        if (asprintf(&whole, "%s/%s", e->paths.source, path) < 0)
                whole = NULL;
        for (size_t i = 0; whole && i < e->n_components; i++)
                known = known || lkg_stack_knows(e->components[i].stack, whole);
        lkg_watch_touch(&e->watch, known ? whole : NULL);
}

static void on_changed(struct lkg_engine *e, struct lkg_peer *peer, const struct lkg_message *m)
{
        if (e->batch.n == LKG_BATCH_MAX || e->settled.n_vouched == LKG_BATCH_MAX)
                answer_changes(e);
        /* Read the inotify events of this write first: after it, the file is complete, even if it is still open. */
        (void)lkg_watch_drain(&e->watch, lkg_boottime_ns());
        lkg_watch_settle(&e->watch, m->text);
        touch_source(e, m->text);
        lkg_settled_vouch(&e->settled, m->text);
        e->batch.items[e->batch.n++] = (struct lkg_pending){ peer, m->ticket };
}

/* ---- COMMAND ---- */

static void on_command(struct lkg_engine *e, struct lkg_peer *peer, const struct lkg_message *m)
{
        int r;

        answer_changes(e); /* keep the order of the requests */
        /* Its caller may have got an error while the command was queued: then it must not be carried out. */
        if (!e->claims || !lkg_claim_take(e->claims, m->ticket)) {
                lkg_log_notice("'%s' comes too late and is not carried out", m->command);
                lkg_server_done(peer, m->ticket, -ETIMEDOUT, lkg_publisher_number(e->publisher));
                return;
        }
        r = lkg_engine_run_command(e, m);
        lkg_server_done(peer, m->ticket, r, lkg_publisher_number(e->publisher));
}

/* ---- RENDER ---- */

/* Not remembered by its ticket: whoever asks again gets what is true then. */
static void on_render(struct lkg_engine *e, struct lkg_peer *peer, const struct lkg_message *m)
{
        struct lkg_engine_snapshot now;
        struct lkg_rendered rendered;
        struct lkg_message answer;
        struct lkg_error err = { 0 };

        lkg_message_init(&answer, LKG_MSG_DONE);
        answer.ticket = m->ticket;
        lkg_engine_take_snapshot(e, &now);
        answer.result =
                lkg_publisher_render(e->publisher, &now.snapshot, m->text, e->n_cycles, &rendered, &err);
        answer.number = lkg_publisher_number(e->publisher);
        if (answer.result == 0) {
                lkg_rendered_format(&rendered, answer.text, sizeof(answer.text));
                answer.text_size = (uint32_t)strlen(answer.text);
        } else if (answer.result != -ENOENT) {
                lkg_log_warning("cannot render a file for a reader: %s", err.message);
        }
        lkg_peer_send(peer, &answer);
}

/* ---- other messages ---- */

static void on_loaded(struct lkg_engine *e, struct lkg_peer *peer, const struct lkg_message *m)
{
        uint64_t oldest;

        if (m->number > peer->loaded)
                peer->loaded = m->number;
        oldest = lkg_server_loaded(&e->server);
        if (oldest != UINT64_MAX)
                lkg_publisher_loaded(e->publisher, oldest);
}

static void on_supervisor(struct lkg_engine *e, const struct lkg_message *m)
{
        if (m->type == LKG_MSG_RELOAD) {
                lkg_engine_reload(e);
        } else if (m->type == LKG_MSG_STOP) {
                lkg_engine_stop(e);
                (void)sd_event_exit(e->event, 0);
        } else if (m->type == LKG_MSG_CREDENTIAL) {
                lkg_places_exec_done(e->places, m);
        } else if (m->type == LKG_MSG_FALLBACK) {
                lkg_engine_fallback_answered(e, m);
        } else if (m->type == LKG_MSG_CONTAINERS) {
                lkg_engine_containers_answered(e, m);
        }
}

static void on_message(struct lkg_peer *peer, const struct lkg_message *m, void *userdata)
{
        struct lkg_engine *e = userdata;

        if (m->type == LKG_MSG_ALIVE) {
                lkg_peer_send(peer, m);
                return;
        }
        if (peer->is_supervisor) {
                on_supervisor(e, m);
                return;
        }
        if (m->type == LKG_MSG_LOADED) {
                on_loaded(e, peer, m);
                return;
        }
        if (m->type == LKG_MSG_RENDER) {
                on_render(e, peer, m);
                return;
        }
        if (lkg_server_repeat(peer, m->ticket))
                return;
        if (m->type == LKG_MSG_CHANGED)
                on_changed(e, peer, m);
        else if (m->type == LKG_MSG_COMMAND)
                on_command(e, peer, m);
        else if (m->type == LKG_MSG_STARTED)
                lkg_engine_start_seen(e, peer, m);
}

static void on_batch_done(struct lkg_peer *peer, void *userdata)
{
        (void)peer;
        answer_changes(userdata);
}

static void watch_for_orphans(struct lkg_engine *e)
{
        e->clock.orphan_at_ns =
                e->orphan && e->server.n_peers == 0 ? lkg_boottime_ns() + LKG_ORPHAN_NS : LKG_NEVER;
}

static void on_gone(struct lkg_peer *peer, void *userdata)
{
        struct lkg_engine *e = userdata;
        size_t n = 0;

        for (size_t i = 0; i < e->batch.n; i++)
                if (e->batch.items[i].peer != peer)
                        e->batch.items[n++] = e->batch.items[i];
        e->batch.n = n;
        lkg_engine_forget_peer_starts(e, peer);
        if (peer->is_supervisor) {
                lkg_log_notice("the supervisor is gone, serving on");
                e->orphan = true;
        } else {
                e->settled.lost_ns = lkg_boottime_ns();
        }
        watch_for_orphans(e);
}

/*
 * A previous engine may have died between a publication and its announcement, and ours may have published before anyone connected.
 */
static void on_came(struct lkg_peer *peer, void *userdata)
{
        struct lkg_engine *e = userdata;
        struct lkg_message m;

        watch_for_orphans(e);
        if (peer->is_supervisor || lkg_publisher_number(e->publisher) == 0)
                return;
        lkg_message_init(&m, LKG_MSG_PUBLISHED);
        m.number = lkg_publisher_number(e->publisher);
        lkg_peer_send(peer, &m);
}

const struct lkg_server_ops lkg_engine_server_ops = {
        .message = on_message,
        .batch_done = on_batch_done,
        .came = on_came,
        .gone = on_gone,
};
