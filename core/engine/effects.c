/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out the effects that lkg_step() returns: the only place where the lifecycle of a component changes. The rules are in
 * core/lifecycle, the durable records in core/state; this file only carries out the effects in order, and a failed one comes back
 * as an event.
 */
#include "engine-internal.h"

#include <lkg/base.h>

/* A step that is being carried out. */
struct running {
        struct lkg_engine *e;
        struct lkg_component *c;
        const struct lkg_event *event;
        const struct lkg_effect *effect;
        struct lkg_lifecycle now; /* before the step */
        struct lkg_step step;
        uint64_t now_ns;
        bool marked;       /* there is a new bad mark */
        bool saved_record; /* that of step.next is on disk */
        bool settled;      /* this effect failed in a nested event, which has handled that itself */
        struct lkg_error *err;
};

static int carry_out(struct lkg_engine *e, struct lkg_component *c, const struct lkg_event *event,
                     struct lkg_error *err, bool *ret_accepted);

static int adopt(struct running *run)
{
        lkg_component_adopt(run->c, &run->now, &run->step.next, run->saved_record);
        return 0;
}

/* ---- durable effects ---- */

static int not_written(struct running *run, int r)
{
        struct lkg_error *err = run->err;

        err->code = r;
        (void)snprintf(err->message, sizeof(err->message), "the state directory cannot be written");
        return r;
}

static int keep_record(struct running *run)
{
        return lkg_state_keep_component(&run->e->state, run->c->config->name);
}

static int restore_record(struct running *run)
{
        return lkg_state_restore_component(&run->e->state, run->c->config->name);
}

static int forget_record(struct running *run)
{
        lkg_state_forget_kept(&run->e->state, run->c->config->name);
        return 0;
}

static int keep_generation(struct running *run)
{
        int r = lkg_history_write(&run->c->history, run->effect->generation, run->err);

        return r < 0 ? not_written(run, r) : 0;
}

static int save_record(struct running *run)
{
        int r = lkg_engine_save_record(run->e, run->c, &run->step.next.record);

        run->saved_record = r >= 0;
        return r < 0 ? not_written(run, r) : 0;
}

static int save_document(struct running *run)
{
        const struct lkg_dynamic *d = run->c->dynamic;
        const struct lkg_generation *active = run->c->active;
        const char *before = *d->pointers.good.sha256 ? d->pointers.good.sha256 : NULL;
        char sha256[LKG_SHA256_HEX];

        return lkg_store_save_document(&d->store, active->document.data, active->document.size, before,
                                       sha256, run->err);
}

static int save_trial(struct running *run)
{
        const struct lkg_lifecycle *next = &run->step.next;
        struct lkg_dynamic *d = run->c->dynamic;
        int r = lkg_store_save_trial(&d->store, lkg_lifecycle_tried(next, d->scope_all), &next->trial,
                                     run->now_ns, run->err);

        if (r >= 0)
                d->trial_saved_ns = run->now_ns;
        return r;
}

static int save_pointers(struct running *run)
{
        return lkg_store_save_pointers(&run->c->dynamic->store, &run->step.next.pointers, run->err);
}

static int mark_bad(struct running *run)
{
        bool is_new = !lkg_bad_named(&run->c->dynamic->bad, run->step.mark.id);
        int r = lkg_component_mark_bad(run->c, &run->step.mark, run->err);

        run->marked = r >= 0 && is_new;
        return r;
}

/* Removes the mark that the failed event made. That was a step of the caller, so the event names the mark. */
static int forgive(struct running *run)
{
        struct lkg_dynamic *d = run->c->dynamic;
        int r = lkg_store_forgive(&d->store, &d->bad, run->event->marked_id, /* exactly= */ true, run->err);

        return r < 0 ? r : 0;
}

static int note_start(struct running *run)
{
        struct lkg_dynamic *d = run->c->dynamic;
        const struct lkg_startups before = d->startups;
        int r;

        lkg_startups_add(&d->startups, d->boot, &run->step.startup);
        r = lkg_store_save_startups(&d->store, &d->startups, run->err);
        if (r < 0 && run->event->by_command && !run->effect->optional)
                d->startups = before; /* refused, so it will be reported again */
        return r;
}

/* ---- in memory ---- */

static int follow(struct running *run)
{
        lkg_component_follow_tried(run->c);
        return 0;
}

static int follow_missing(struct running *run)
{
        lkg_component_follow_missing(run->c, run->event->fault);
        return 0;
}

static int serve_stored(struct running *run)
{
        lkg_component_serve_stored_or_local(run->c);
        return 0;
}

/* Runs another event as a part of this step. It handles its own failures. */
static int nested(struct running *run, const struct lkg_event *event)
{
        bool accepted;
        int r = carry_out(run->e, run->c, event, run->err, &accepted);

        run->settled = r < 0;
        return r;
}

/* If the document that was passed over cannot be recorded, it stays unknown. The rollback stands. */
static int merge_good(struct running *run)
{
        struct lkg_event event = *run->event;
        char sha256[LKG_SHA256_HEX], fault[LKG_REASON_MAX];

        event.kind = LKG_EVENT_MERGED;
        event.merge = lkg_component_merge_good(run->c, run->effect->same, sha256, fault);
        event.sha256 = sha256;
        event.fault = fault;
        (void)nested(run, &event);
        return 0;
}

/* Today's local layers may be invalid with it; then serves the document that lkg/ shows, byte for byte. */
static int serve_merge_or_stored(struct lkg_engine *e, struct lkg_component *c)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *good = NULL;
        int r = e->hooks->commit(e);

        if (r >= 0)
                good = lkg_component_good_generation(c);
        return good ? lkg_component_serve_stored(c, NULL) : r;
}

/*
 * A stored document already has a number, and the pin keeps today's layers from replacing it. A merge gets its number when it is
 * published.
 */
static int serve_good(struct running *run)
{
        struct lkg_event event = *run->event;
        int r = run->effect->same ? lkg_component_serve_stored(run->c, NULL)
                                  : serve_merge_or_stored(run->e, run->c);

        if (r >= 0 && !run->c->active)
                r = -EBUSY;
        if (r < 0)
                return lkg_error_set(run->err, r, NULL, "there is no last known good that could be served");
        event.kind = LKG_EVENT_PINNED;
        event.mode = run->effect->mode;
        return nested(run, &event);
}

static int begin_trial(struct running *run)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_dynamic *d = run->c->dynamic;
        const struct lkg_config_source document = lkg_document_source(run->c->active->sha256);
        struct lkg_event event = *run->event;
        struct lkg_trial stored;

        event.kind = LKG_EVENT_BEGIN;
        if (d->scope_all && lkg_store_load_trial(&d->store, &document, &stored, &ignored) >= 0)
                event.stored = &stored;
        return nested(run, &event);
}

static int retry(struct running *run)
{
        lkg_engine_retry_by(run->e, run->now_ns + LKG_RETRY_MAX_NS);
        return 0;
}

static int next(struct running *run)
{
        struct lkg_event event = *run->event;

        event.kind = run->effect->next;
        return nested(run, &event);
}

static int tell(struct running *run)
{
        struct lkg_component_news news;

        lkg_component_tell(run->c, run->effect->news, run->event, &run->step, &news);
        if (news.reason)
                lkg_engine_event(run->e, run->c, news.warning, news.reason, news.source, news.words);
        return 0;
}

/* ---- all effects ---- */

static const struct {
        int (*run)(struct running *run);
        const char *failure; /* for the log; NULL = the caller or a waiting client is told */
} effects[_LKG_EFFECT_MAX] = {
        [LKG_EFFECT_ADOPT] = { adopt, NULL },
        [LKG_EFFECT_KEEP_RECORD] = { keep_record, NULL },
        [LKG_EFFECT_RESTORE_RECORD] = { restore_record, NULL },
        [LKG_EFFECT_FORGET_RECORD] = { forget_record, NULL },
        [LKG_EFFECT_KEEP_GENERATION] = { keep_generation, NULL },
        [LKG_EFFECT_SAVE_RECORD] = { save_record, NULL },
        [LKG_EFFECT_SAVE_DOCUMENT] = { save_document, "cannot store the document of the last known good" },
        [LKG_EFFECT_SAVE_TRIAL] = { save_trial, "cannot save the trial" },
        [LKG_EFFECT_SAVE_POINTERS] = { save_pointers, "cannot save which configuration is followed" },
        [LKG_EFFECT_MARK_BAD] = { mark_bad, "cannot mark a configuration as bad" },
        [LKG_EFFECT_FORGIVE] = { forgive, "cannot remove a bad mark" },
        [LKG_EFFECT_NOTE_START] = { note_start, "cannot note a start" },
        [LKG_EFFECT_FOLLOW] = { follow, NULL },
        [LKG_EFFECT_FOLLOW_MISSING] = { follow_missing, NULL },
        [LKG_EFFECT_MERGE_GOOD] = { merge_good, NULL },
        [LKG_EFFECT_SERVE_STORED] = { serve_stored, NULL },
        [LKG_EFFECT_SERVE_GOOD] = { serve_good, NULL },
        [LKG_EFFECT_BEGIN_TRIAL] = { begin_trial, NULL },
        [LKG_EFFECT_TELL] = { tell, NULL },
        [LKG_EFFECT_RETRY] = { retry, NULL },
        [LKG_EFFECT_NEXT] = { next, NULL },
};

static int carry_out_one(struct running *run)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(run->c);
        const char *failure = effects[run->effect->kind].failure;
        int r = effects[run->effect->kind].run(run);

        if (r < 0 && failure)
                lkg_log(run->effect->optional ? LOG_WARNING : LOG_ERR, &fields, "%s: %s", failure,
                        run->err->message);
        return run->effect->optional ? 0 : r;
}

/* Handles a failed effect. Return: @code; or, if the event still counts as done, the result of the remaining work. */
static int fail(struct running *run, int code, bool *ret_accepted)
{
        struct lkg_event event = *run->event;
        struct lkg_error ignored = { 0 };
        int r;

        if (event.kind != LKG_EVENT_FAILED)
                event.of = event.kind;
        event.kind = LKG_EVENT_FAILED;
        event.failed = run->effect->kind;
        event.code = code;
        event.marked_id = run->marked ? run->step.mark.id : NULL;
        r = carry_out(run->e, run->c, &event, &ignored, ret_accepted);
        return *ret_accepted ? r : code;
}

static int carry_out(struct lkg_engine *e, struct lkg_component *c, const struct lkg_event *event,
                     struct lkg_error *err, bool *ret_accepted)
{
        struct running run = { .e = e, .c = c, .event = event, .now_ns = lkg_boottime_ns(), .err = err };
        struct lkg_lifecycle_facts facts;
        bool accepted = false;
        int r = 0;

        lkg_component_take_lifecycle(c, &run.now, &facts);
        lkg_step(&run.now, &facts, event, run.now_ns, &run.step);
        *ret_accepted = run.step.accepted;
        if (run.step.result < 0) {
                err->code = run.step.result;
                (void)snprintf(err->message, sizeof(err->message), "%s", run.step.why);
                return run.step.result;
        }
        for (size_t i = 0; i < run.step.n_effects; i++) {
                run.effect = &run.step.effects[i];
                run.settled = false;
                r = carry_out_one(&run);
                if (r >= 0)
                        continue;
                if (!run.settled)
                        r = fail(&run, r, &accepted);
                break;
        }
        *ret_accepted = *ret_accepted || accepted;
        return r;
}

int lkg_engine_step(struct lkg_engine *e, struct lkg_component *c, const struct lkg_event *event,
                    struct lkg_error *err)
{
        const struct lkg_component_state before = c->state;
        struct lkg_event whole = *event;
        struct lkg_error ignored = { 0 };
        bool accepted;

        whole.before = &before;
        if (!whole.wall_ns)
                whole.wall_ns = lkg_realtime_ns();
        return carry_out(e, c, &whole, err ? err : &ignored, &accepted);
}

void lkg_engine_happened(struct lkg_engine *e, struct lkg_component *c, enum lkg_event_kind kind)
{
        (void)lkg_engine_step(e, c, &(struct lkg_event){ .kind = kind }, NULL);
}

/* ---- does the component run the configuration on trial? ---- */

/* Its open() is not answered yet, so the generation that it will read is unknown. */
static bool waits_for_us(const struct lkg_engine *e, const struct lkg_component *c,
                         const struct lkg_tracked *t)
{
        for (size_t i = 0; i < e->starts.n; i++)
                if (e->starts.items[i].component == c->index && e->starts.items[i].pid == t->pid &&
                    e->starts.items[i].start_time == t->start_time)
                        return true;
        return false;
}

void lkg_engine_update_alive(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        struct lkg_event event = { .kind = LKG_EVENT_ALIVE };

        if (!d || !d->watched || !c->facts || d->trial.state != LKG_TRIAL_RUNNING)
                return;
        event.away = true;
        for (size_t i = 0; i < c->facts->n_processes; i++) {
                event.away = event.away && c->facts->processes[i].pidfd < 0;
                event.alive = event.alive || (!waits_for_us(e, c, &c->facts->processes[i]) &&
                                              lkg_component_runs_tried(c, &c->facts->processes[i]));
        }
        (void)lkg_engine_step(e, c, &event, NULL);
}

void lkg_engine_on_health(void *userdata)
{
        struct lkg_engine *e = userdata;

        if (e->started)
                e->hooks->cycle(e, /* look= */ false);
}

/* ---- the clock ---- */

static void tell_of_pod(void *userdata, const struct lkg_component *c, bool warning, const char *reason,
                        const char *words)
{
        lkg_engine_event(userdata, c, warning, reason, lkg_component_source(c), words);
}

/* Without lkgfsd there is nobody to ask for us. */
static void ask_runtime(struct lkg_engine *e, const struct lkg_component *c)
{
        uint64_t now = lkg_boottime_ns();
        struct lkg_message m;

        if (!lkg_pod_checks_active(e->pod_checks) || !e->server.supervisor ||
            now < e->clock.containers_at_ns)
                return;
        lkg_message_init(&m, LKG_MSG_CONTAINERS);
        m.text_size = (uint32_t)snprintf(m.text, sizeof(m.text), "%s", c->config->name);
        lkg_peer_send(e->server.supervisor, &m);
        e->clock.containers_at_ns = now + LKG_CONTAINERS_NS;
}

uint64_t lkg_engine_containers_due(const struct lkg_engine *e)
{
        return lkg_pod_checks_active(e->pod_checks) ? e->clock.containers_at_ns : LKG_NEVER;
}

void lkg_engine_containers_answered(struct lkg_engine *e, const struct lkg_message *m)
{
        struct lkg_containers next = { 0 };
        struct lkg_error err = { 0 };
        int r = m->result < 0 ? m->result : lkg_containers_read(e->options.runtime_fd, &next, &err);

        if (r == -EAGAIN)
                return; /* it was asked a moment ago */
        e->runtime.silent = r < 0;
        if (r >= 0) {
                lkg_containers_deinit(&e->runtime.containers);
                e->runtime.containers = next;
                e->runtime.answered = true;
        }
        e->hooks->cycle(e, /* look= */ false);
}

void lkg_engine_tick_pods(struct lkg_engine *e, struct lkg_component *c, bool publishing)
{
        struct lkg_component *kubelet = lkg_engine_kubelet(e);
        const char *node = c->env->config->remote.node_name, *flag = NULL;
        char host[HOST_NAME_MAX + 1];

        if (kubelet)
                flag = lkg_flag_on_line(lkg_kubelet_flags, lkg_n_kubelet_flags, &kubelet->line.words,
                                        "hostname-override");
        lkg_host_name(host);
        node = *node ? node : flag && *flag ? flag : host;
        lkg_pods_follow(c);
        lkg_pods_learn(c);
        lkg_pod_checks_update(e->pod_checks, c, &e->runtime, kubelet ? lkg_health_endpoint(kubelet) : "",
                              node);
        ask_runtime(e, c);
        lkg_pods_step(c, lkg_boottime_ns(), publishing, tell_of_pod, e);
}

void lkg_engine_tick_trial(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_event event = { .kind = LKG_EVENT_TRIAL_DUE };

        if (c->pods) {
                lkg_engine_tick_pods(e, c, /* publishing= */ false);
                lkg_component_look_again(c); /* a mark makes another set */
                return;
        }
        if (lkg_health_update(e->probes, e->places, c))
                lkg_engine_happened(e, c, LKG_EVENT_HEALTH);
        event.reason = lkg_component_unhealthy(c);
        if (!c->dynamic || c->dynamic->trial.state != LKG_TRIAL_RUNNING)
                return;
        c->due.trial_failed_ns = lkg_engine_step(e, c, &event, NULL) < 0 ? lkg_boottime_ns() : 0;
}
