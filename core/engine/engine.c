/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cycle: layers -> candidate -> verdict -> generation -> publication, and what follows it when nobody waits.
 *
 * A new generation is made active before the publication is written, and taken back if that fails: then readers have
 * the old publication, the condition says why, and a timer tries again. So a change is late, never lost.
 */
#include <inttypes.h>

#include <lkg/log.h>

#include "engine-internal.h"
#include "fallback.h"

struct lkg_component_env lkg_engine_env(struct lkg_engine *e)
{
        return (struct lkg_component_env){
                .config = e->config,
                .state = &e->state,
                .source_fd = e->options.source_fd,
                .source_path = e->source_path,
                .unsettled = lkg_watch_unsettled,
                .userdata = &e->watch,
        };
}

static struct lkg_log_fields fields_of(const struct lkg_component *c)
{
        return (struct lkg_log_fields){ .component = c->config->name,
                                        .generation = c->active ? c->active->number : 0 };
}

void lkg_engine_mark_findings(struct lkg_engine *e)
{
        lkg_report_deinit(&e->shown);
        lkg_report_append(&e->shown, &e->report);
        lkg_report_append(&e->shown, &e->reload_report);
        for (size_t i = 0; i < e->n_components; i++)
                e->components[i].dirty |= LKG_DIRTY_FINDINGS;
}

/* ---- looking ---- */

static void log_refusal(const struct lkg_component *c)
{
        const struct lkg_log_fields fields = fields_of(c);
        const struct lkg_report *report = &c->candidate->report;

        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (f->severity != LKG_ERROR)
                        continue;
                lkg_log(LOG_WARNING, &fields, "refused, %zu error%s, the first: %s:%u:%u: %s [LKG%04u]",
                        report->n_severity[LKG_ERROR], report->n_severity[LKG_ERROR] == 1 ? "" : "s",
                        f->file ? f->file : "", f->line, f->column, f->text, f->code);
                return;
        }
}

static void refresh_component(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_component_env env = lkg_engine_env(e);
        const struct lkg_log_fields fields = fields_of(c);
        struct lkg_error err = { 0 };
        int r = lkg_component_refresh(c, &env, &err);

        if (r < 0) {
                lkg_component_set_fault(c, "failed to read the layers: %s", strerror(-r));
                lkg_log(LOG_ERR, &fields, "cannot look at the layers: %s", err.message);
                e->retry_at_ns = lkg_boottime_ns() + e->retry_delay_ns;
                return;
        }
        lkg_component_clear_fault(c);
        if (r > 0 && c->candidate->state == LKG_CANDIDATE_INVALID)
                log_refusal(c);
}

/* Return: true when a new directory is watched, so something may have happened before the watch was there. */
static bool update_watches(struct lkg_engine *e)
{
        bool added;

        lkg_watch_begin(&e->watch);
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_stack_watch *wanted;
                size_t n = lkg_stack_watches(e->components[i].stack, &wanted);

                for (size_t k = 0; k < n; k++)
                        if (lkg_watch_add(&e->watch, &wanted[k]) < 0)
                                e->watch.poll = true;
        }
        added = lkg_watch_end(&e->watch);
        if (e->watch.over_limit && !e->over_limit_noted) {
                e->over_limit_noted = true;
                lkg_report_add(&e->report, LKG_WARNING, 4008, NULL,
                               "the limit of inotify watches is reached (fs.inotify.max_user_watches); changes made "
                               "behind the mount are looked for every %u s",
                               (unsigned)(LKG_POLL_NS / LKG_NSEC_PER_SEC));
                lkg_engine_mark_findings(e);
        }
        if (!e->watch.poll)
                e->poll_at_ns = LKG_NEVER;
        else if (e->poll_at_ns == LKG_NEVER)
                e->poll_at_ns = lkg_boottime_ns() + LKG_POLL_NS;
        return added;
}

void lkg_engine_look(struct lkg_engine *e)
{
        for (unsigned round = 0; round < 4; round++) { /* a tree that grows all the time is looked at again soon */
                (void)lkg_watch_drain(&e->watch, lkg_boottime_ns());
                for (size_t i = 0; i < e->n_components; i++)
                        refresh_component(e, &e->components[i]);
                if (!update_watches(e))
                        return;
        }
}

/* ---- holds ---- */

int lkg_engine_save_state(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = fields_of(c);
        struct lkg_error err = { 0 };
        int r = lkg_state_save_component(&e->state, c->config->name, &c->state, /* durable= */ true, &err);

        if (r < 0)
                lkg_log(LOG_ERR, &fields, "cannot save the state: %s", err.message);
        else
                c->state_changed = false;
        return r;
}

static void tick_hold(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = fields_of(c);
        struct lkg_hold next = lkg_hold_tick(c->state.hold, lkg_boottime_ns());

        if (next.mode == c->state.hold.mode && next.try_phase == c->state.hold.try_phase)
                return;
        lkg_log(LOG_WARNING, &fields, "the try was not committed in time, going back to generation %" PRIu64,
                next.generation);
        c->state.hold = next;
        (void)lkg_engine_save_state(e, c); /* the old state expires again at the next start: the same result */
        c->dirty |= LKG_DIRTY_CONDITION;
}

/* Make the frozen generation the active one. */
static void apply_hold(struct lkg_engine *e, struct lkg_component *c)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        const struct lkg_log_fields fields = fields_of(c);
        const struct lkg_hold *hold = &c->state.hold;
        struct lkg_error err = { 0 };
        int r;

        if (hold->mode == LKG_HOLD_FREE || hold->generation == 0 ||
            (c->active && c->active->number == hold->generation) ||
            (c->candidate && c->candidate->state == LKG_CANDIDATE_NAME_TAKEN))
                return;
        r = lkg_history_get(&c->history, hold->generation, &g, &err);
        if (r < 0) {
                lkg_log(LOG_ERR, &fields, "cannot serve the held generation, no longer held: %s", err.message);
                c->state.hold = (struct lkg_hold){ 0 };
                (void)lkg_engine_save_state(e, c);
                c->dirty |= LKG_DIRTY_CONDITION;
                return;
        }
        lkg_component_set_active(c, g);
        c->last_good = false;
}

/* ---- committing ---- */

/* What a component was before a publication that may fail. */
struct undo {
        struct lkg_generation *active, *previous;
        struct lkg_hold hold;
        bool last_good, changed;
        uint64_t number; /* of a new generation */
};

static void remember(struct undo *u, const struct lkg_component *c)
{
        *u = (struct undo){
                .active = lkg_generation_ref(c->active),
                .previous = lkg_generation_ref(c->previous),
                .hold = c->state.hold,
                .last_good = c->last_good,
        };
}

static void forget(struct undo *u)
{
        u->active = lkg_generation_unref(u->active);
        u->previous = lkg_generation_unref(u->previous);
}

static void prune_history(struct lkg_engine *e, struct lkg_component *c)
{
        const uint64_t keep[] = { c->active ? c->active->number : 0, c->state.hold.generation,
                                  c->state.hold.try_phase == LKG_TRY_RUNNING ? c->state.hold.try_previous : 0 };

        if (lkg_history_prune(&c->history, e->config->history_limit, keep, LKG_ARRAY_SIZE(keep)))
                c->dirty |= LKG_DIRTY_HISTORY;
}

static int new_generation(struct lkg_engine *e, struct lkg_component *c, struct undo *u, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        struct lkg_hold hold;
        uint64_t number;
        int r = lkg_state_next_generation(&e->state, &number, err);

        if (r < 0)
                return r;
        r = lkg_generation_new(c->candidate, c->hint, number, lkg_realtime_ns(), c->rendered, &g);
        c->rendered = (struct lkg_text){ 0 };
        if (r >= 0)
                r = lkg_history_add(&c->history, g);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "generation %" PRIu64, number);
        u->number = number;
        hold = lkg_hold_published(c->state.hold, c->active ? c->active->number : 0, lkg_boottime_ns());
        if (hold.try_phase != c->state.hold.try_phase) {
                c->state.hold = hold;
                (void)lkg_engine_save_state(e, c);
        }
        lkg_component_set_active(c, g);
        c->same = true;
        c->n_published++;
        c->dirty |= LKG_DIRTY_HISTORY;
        return 0;
}

/* Bring what is served in line with the verdict. */
static int prepare(struct lkg_engine *e, struct lkg_component *c, struct undo *u, struct lkg_error *err)
{
        bool was_served_from_disk = c->last_good;
        int r = lkg_component_judge(c);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "component %s", c->config->name);
        if (c->verdict == LKG_PUBLISH)
                r = new_generation(e, c, u, err);
        else if (c->verdict == LKG_WITHDRAW)
                lkg_component_set_active(c, NULL);
        if (r < 0)
                return r;
        if (c->verdict != LKG_REFUSE && c->candidate)
                c->last_good = false;
        if (c->last_good != was_served_from_disk)
                c->dirty |= LKG_DIRTY_CONDITION;
        u->changed = c->active != u->active;
        if (u->changed) {
                r = lkg_component_judge(c); /* against what is active now */
                prune_history(e, c);
        }
        if (c->state.hold.mode == LKG_HOLD_TRY_EXPIRED ? c->dirty & (LKG_DIRTY_CANDIDATE | LKG_DIRTY_ACTIVE)
                                                       : c->findings.n_findings > 0)
                lkg_component_note_difference(c);
        return r < 0 ? lkg_error_set(err, r, NULL, "component %s", c->config->name) : 0;
}

static void take_back(struct lkg_component *c, struct undo *u)
{
        if (!u->changed)
                return;
        if (u->number) {
                lkg_history_remove(&c->history, u->number);
                c->n_published--;
        }
        lkg_generation_unref(c->active);
        lkg_generation_unref(c->previous);
        c->active = LKG_STEAL(u->active);
        c->previous = LKG_STEAL(u->previous);
        c->same = false;
        c->last_good = u->last_good;
        if (c->state.hold.try_phase != u->hold.try_phase) {
                c->state.hold = u->hold;
                c->state_changed = true;
        }
        c->dirty |= LKG_DIRTY_ACTIVE | LKG_DIRTY_CONDITION | LKG_DIRTY_HISTORY;
}

static void announce(struct lkg_engine *e, struct lkg_component *c, const struct undo *u)
{
        const struct lkg_log_fields fields = fields_of(c);

        if (!u->changed)
                return;
        c->fallback_due = c->state_changed = true;
        if (!c->active)
                lkg_log(LOG_NOTICE, &fields, "%s is not served any more: %s", c->config->file, c->condition.reason);
        else
                lkg_log(LOG_INFO, &fields, "serving generation %" PRIu64 " (publication %" PRIu64 ", %zu layers)",
                        c->active->number, e->publisher.number, c->candidate ? c->candidate->n_layers : 0);
}

static struct lkg_publication_input input_of(const struct lkg_engine *e)
{
        return (struct lkg_publication_input){
                .config = e->config,
                .components = e->components,
                .n_components = e->n_components,
                .rules = &e->rules,
                .findings = &e->shown,
                .now_ns = lkg_realtime_ns(),
        };
}

static int publish(struct lkg_engine *e, struct lkg_error *err)
{
        struct lkg_publication_input in = input_of(e);
        int r = lkg_publish(&e->publisher, &in, err);

        if (r < 0)
                return r;
        lkg_server_published(&e->server, e->publisher.number);
        return 0;
}

static void update_conditions(struct lkg_engine *e)
{
        for (size_t i = 0; i < e->n_components; i++)
                lkg_component_update_condition(&e->components[i], !e->components[i].candidate);
}

static bool any_dirty(const struct lkg_engine *e)
{
        for (size_t i = 0; i < e->n_components; i++)
                if (e->components[i].dirty & ~(unsigned)(LKG_DIRTY_LAYERS | LKG_DIRTY_EVER))
                        return true;
        return false;
}

/* The old document with the reason in the condition; may fail for the same cause, then only the log has it. */
static void publish_failed(struct lkg_engine *e, struct undo *undo, int cause, const struct lkg_error *why)
{
        struct lkg_error ignored;

        lkg_log_error("cannot publish, trying again in %" PRIu64 " ms: %s", e->retry_delay_ns / LKG_NSEC_PER_MSEC,
                      why->message);
        for (size_t i = 0; i < e->n_components; i++) {
                take_back(&e->components[i], &undo[i]);
                lkg_component_set_fault(&e->components[i], "failed to publish: %s", strerror(-cause));
                e->components[i].publish_fault = true;
        }
        e->retry_at_ns = lkg_boottime_ns() + e->retry_delay_ns;
        e->retry_delay_ns = 2 * e->retry_delay_ns < LKG_RETRY_MAX_NS ? 2 * e->retry_delay_ns : LKG_RETRY_MAX_NS;
        update_conditions(e);
        if (e->publisher.number > 0)
                (void)publish(e, &ignored);
}

int lkg_engine_commit(struct lkg_engine *e, bool force)
{
        struct undo undo[LKG_COMPONENTS_MAX] = { 0 };
        struct lkg_error err = { 0 };
        bool publishing = false, layers = false;
        int r = 0;

        for (size_t i = 0; i < e->n_components; i++) {
                remember(&undo[i], &e->components[i]);
                if (e->components[i].publish_fault)
                        lkg_component_clear_fault(&e->components[i]);
                if (r >= 0)
                        r = prepare(e, &e->components[i], &undo[i], &err);
                undo[i].changed = e->components[i].active != undo[i].active;
        }
        update_conditions(e);
        if (r >= 0 && (force || any_dirty(e))) {
                publishing = true;
                r = publish(e, &err);
        }
        if (r < 0) {
                publish_failed(e, undo, r, &err);
        } else if (publishing) {
                e->retry_delay_ns = LKG_RETRY_MIN_NS;
                if (e->persist_at_ns == LKG_NEVER)
                        e->persist_at_ns = lkg_boottime_ns() + LKG_PERSIST_NS;
                for (size_t i = 0; i < e->n_components; i++)
                        announce(e, &e->components[i], &undo[i]);
        }
        for (size_t i = 0; i < e->n_components; i++) {
                layers = layers || e->components[i].dirty & LKG_DIRTY_LAYERS;
                forget(&undo[i]);
        }
        if (layers && r >= 0)
                (void)sd_event_source_set_enabled(e->layers, SD_EVENT_ONESHOT);
        return r;
}

void lkg_engine_cycle(struct lkg_engine *e, bool look)
{
        if (look) {
                e->retry_at_ns = LKG_NEVER;
                lkg_engine_look(e);
        }
        for (size_t i = 0; i < e->n_components; i++) {
                tick_hold(e, &e->components[i]);
                apply_hold(e, &e->components[i]);
        }
        (void)lkg_engine_commit(e, /* force= */ false);
        lkg_engine_arm(e);
}

/* ---- what nobody waits for ---- */

static void persist_component(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = fields_of(c);
        struct lkg_error err = { 0 };
        size_t before = c->fallback_findings.n_findings;

        if (lkg_history_write(&c->history, &err) < 0)
                lkg_log(LOG_WARNING, &fields, "cannot write the history, trying again at the next change: %s",
                        err.message);
        else if (c->active && lkg_history_find(&c->history, c->active->number) &&
                 c->state.last_good != c->active->number) {
                c->state.last_good = c->active->number;
                c->state_changed = true;
        }
        if (c->state_changed)
                (void)lkg_engine_save_state(e, c);
        if (!c->fallback_due)
                return;
        c->fallback_due = false;
        lkg_report_deinit(&c->fallback_findings);
        if (c->active)
                lkg_fallback_write(e->options.source_fd, c->config, c->active, &c->fallback_findings);
        else
                lkg_fallback_withdraw(e->options.source_fd, c->config);
        if (c->fallback_findings.n_findings || before)
                c->dirty |= LKG_DIRTY_FINDINGS;
}

void lkg_engine_persist(struct lkg_engine *e)
{
        struct lkg_error err = { 0 };

        e->persist_at_ns = LKG_NEVER;
        for (size_t i = 0; i < e->n_components; i++)
                persist_component(e, &e->components[i]);
        if (lkg_state_reserve_ahead(&e->state, &err) < 0)
                lkg_log_warning("cannot reserve generation numbers: %s", err.message);
}

/* ---- events ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

void lkg_engine_arm(struct lkg_engine *e)
{
        uint64_t at = earlier(earlier(e->persist_at_ns, e->retry_at_ns), earlier(e->poll_at_ns, e->orphan_at_ns));

        at = earlier(at, lkg_watch_deadline(&e->watch));
        for (size_t i = 0; i < e->n_components; i++)
                at = earlier(at, lkg_hold_deadline(&e->components[i].state.hold));
        if (at == LKG_NEVER) {
                (void)sd_event_source_set_enabled(e->timer, SD_EVENT_OFF);
                return;
        }
        (void)sd_event_source_set_time(e->timer, at / 1000 + 1);
        (void)sd_event_source_set_enabled(e->timer, SD_EVENT_ONESHOT);
}

static bool due(uint64_t *at_ns, uint64_t now_ns)
{
        if (*at_ns > now_ns)
                return false;
        *at_ns = LKG_NEVER;
        return true;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_engine *e = userdata;
        uint64_t now = lkg_boottime_ns();
        bool look;

        (void)source;
        (void)usec;
        (void)lkg_watch_drain(&e->watch, now); /* a writer may have closed its file just now */
        look = lkg_watch_tick(&e->watch, now);
        look = due(&e->retry_at_ns, now) || look;
        look = due(&e->poll_at_ns, now) || look;
        if (due(&e->orphan_at_ns, now)) {
                lkg_log_notice("no supervisor and no file server for 30 s, leaving");
                lkg_engine_stop(e);
                return sd_event_exit(e->event, 0);
        }
        lkg_engine_cycle(e, look);
        if (due(&e->persist_at_ns, now)) {
                lkg_engine_persist(e);
                lkg_engine_cycle(e, /* look= */ false); /* a fallback copy that could not be written is a finding */
        }
        return 0;
}

static int on_inotify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_engine *e = userdata;

        (void)source;
        (void)fd;
        (void)revents;
        if (lkg_watch_drain(&e->watch, lkg_boottime_ns()))
                lkg_engine_cycle(e, /* look= */ true);
        else
                lkg_engine_arm(e); /* somebody began to write */
        return 0;
}

/* layers/ of a component with many: a slice now, the rest when the loop has nothing better to do. */
static int on_layers(sd_event_source *source, void *userdata)
{
        struct lkg_engine *e = userdata;
        struct lkg_publication_input in = input_of(e);
        struct lkg_error err = { 0 };
        int r = lkg_publish_layers(&e->publisher, &in, LKG_LAYERS_BUDGET, &err);

        if (r > 0)
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (r == 0) {
                (void)lkg_engine_commit(e, /* force= */ true);
        } else {
                lkg_log_warning("cannot render layers/, trying again: %s", err.message);
                e->retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS;
        }
        lkg_engine_arm(e);
        return 0;
}

int lkg_engine_add_sources(struct lkg_engine *e)
{
        int r = sd_event_add_io(e->event, &e->inotify, e->watch.fd, EPOLLIN, on_inotify, e);

        if (r >= 0)
                r = sd_event_add_time(e->event, &e->timer, CLOCK_BOOTTIME, 0, 1000, on_timer, e);
        if (r >= 0)
                r = sd_event_source_set_enabled(e->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(e->event, &e->layers, on_layers, e);
        if (r >= 0)
                r = sd_event_source_set_enabled(e->layers, SD_EVENT_OFF);
        if (r >= 0) /* sources with the same priority take turns; a caller that waits goes first */
                r = sd_event_source_set_priority(e->layers, SD_EVENT_PRIORITY_IDLE);
        return r;
}
