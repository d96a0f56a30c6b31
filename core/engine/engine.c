/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cycle: layers -> candidate -> verdict -> generation -> publication; the rest is done while no caller waits.
 *
 * A new generation becomes active before the publication is written, and is taken back if that fails: then readers have the old
 * publication, the condition says why, and a timer tries again. So a change may be late, but is never lost.
 */
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/base.h>

#include "engine-internal.h"

/* ---- looking ---- */

static void refresh_component(struct lkg_engine *e, struct lkg_component *c,
                              const struct lkg_touched *touched)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_error err = { 0 };
        int r = lkg_component_refresh(c, touched, &err);

        if (r < 0) {
                lkg_component_set_fault(c, "failed to read the layers: %s", strerror(-r));
                lkg_log(LOG_ERR, &fields, "cannot look at the layers: %s", err.message);
                e->clock.retry_at_ns = lkg_boottime_ns() + e->clock.retry_delay_ns;
                return;
        }
        lkg_component_clear_fault(c);
}

/* Does the configuration name @path (in the source directory), or a tree that it is in? */
static bool is_named(const struct lkg_manifest_rules *rules, const char *path)
{
        for (size_t i = 0; i < rules->n_fixed; i++) {
                const struct lkg_rule *rule = &rules->items[i];
                size_t n = strlen(rule->text);

                if ((rule->type == LKG_RULE_FILE || rule->type == LKG_RULE_TREE) &&
                    strncmp(path, rule->text, n) == 0 &&
                    (path[n] == '\0' || (path[n] == '/' && rule->type == LKG_RULE_TREE)))
                        return true;
        }
        return false;
}

/*
 * The file server learns which names, beside those of the configuration, decide what the layers are: the links on the way to a
 * layer, and where they lead. These are the names that we watch.
 */
static void note_ways(struct lkg_engine *e)
{
        struct lkg_strings ways = { 0 };

        for (size_t i = 0; i < e->watch.dirs.n; i++) {
                const struct lkg_stack_watch *dir = &e->watch.dirs.items[i];
                bool top = strcmp(dir->path, e->paths.source) == 0;
                const char *below = top ? "" : lkg_path_below(dir->path, e->paths.source);

                for (size_t k = 0; below && k < dir->n_names && ways.n_items < LKG_WAYS_MAX; k++) {
                        char *path;

                        if (!*dir->names[k])
                                continue;
                        path = lkg_format("%s%s%s", below, top ? "" : "/", dir->names[k]);
                        if (is_named(&e->rules, path))
                                free(path);
                        else
                                (void)lkg_need(lkg_strings_take(&ways.items, &ways.n_items, path));
                }
        }
        if (ways.n_items == LKG_WAYS_MAX && !e->reports.ways_noted) {
                e->reports.ways_noted = true;
                lkg_report_add(&e->reports.setup, LKG_NOTE, 4025, NULL,
                               "layers are reached by more than %u names of links and what they lead to; a "
                               "change of the others "
                               "through the view is served within 100 ms, not by the next open",
                               LKG_WAYS_MAX);
                lkg_engine_mark_findings(e);
        }
        if (lkg_rules_set_ways(&e->rules, ways.items, ways.n_items))
                lkg_engine_mark_findings(e); /* so that a publication shows them */
}

/* Return: true: a new directory is watched, so something may have happened before the watch was added. */
static bool update_watches(struct lkg_engine *e)
{
        const struct lkg_way *way = lkg_places_way(e->places);
        bool added;

        for (size_t i = 0; i < e->n_components; i++)
                lkg_component_watch(&e->components[i], &e->watch);
        for (size_t i = 0; i < way->n; i++)
                lkg_watch_add(&e->watch, &way->items[i]);
        added = lkg_watch_end(&e->watch);
        note_ways(e);
        if (e->watch.over_limit && !e->reports.over_limit_noted) {
                e->reports.over_limit_noted = true;
                lkg_report_add(&e->reports.setup, LKG_WARNING, 4008, NULL,
                               "the limit of inotify watches is reached (fs.inotify.max_user_watches); "
                               "changes made "
                               "behind the mount are looked for every %u s",
                               (unsigned)(LKG_POLL_NS / LKG_NSEC_PER_SEC));
                lkg_engine_mark_findings(e);
        }
        if (!e->watch.poll)
                e->clock.poll_at_ns = LKG_NEVER;
        else if (e->clock.poll_at_ns == LKG_NEVER)
                e->clock.poll_at_ns = lkg_boottime_ns() + LKG_POLL_NS;
        return added;
}

/*
 * Static pods are where the kubelet's layers say, unless that is configured. While these are refused, or no longer say so, they are
 * where they were. Return: have they moved?
 */
static bool follow_kubelet(struct lkg_engine *e)
{
        const struct lkg_component *kubelet = lkg_engine_kubelet(e);
        bool serves = kubelet && lkg_component_verdict(kubelet) <= LKG_PUBLISH, learned = false;
        const char *dir = serves ? lkg_pods_directory(kubelet->candidate, e->paths.mount_point,
                                                      e->paths.source, e->options.source_fd)
                                 : NULL;
        struct lkg_component *c = NULL;

        for (size_t i = 0; i < e->n_components; i++)
                if (e->components[i].pods)
                        c = &e->components[i];
        if (!c || !kubelet)
                return false;
        if (c->pods->release != kubelet->line.release) { /* it is the judge */
                c->pods->release = kubelet->line.release;
                learned = lkg_component_learn(c);
        }
        if (!serves || c->config->pods.source_set || lkg_pods_stay(c, kubelet, dir) || !dir ||
            strcmp(dir, c->config->file) == 0 || !lkg_component_read_pods_from(c, dir))
                return learned;
        if (*dir != '/')
                lkg_rules_set_tree(&e->rules, c->index, dir);
        for (size_t i = 0; i < e->n_components; i++)
                if (!e->components[i].pods)
                        lkg_component_move_pods(&e->components[i]);
        return true;
}

/* One round. Return: true: something may have changed meanwhile that it has not seen. */
static bool look_once(struct lkg_engine *e)
{
        struct lkg_touched touched;

        (void)lkg_watch_drain(&e->watch, lkg_boottime_ns());
        touched = lkg_watch_take_touched(&e->watch);
        for (size_t i = 0; i < e->n_components; i++) {
                refresh_component(e, &e->components[i], &touched);
                lkg_engine_look_remote(e, &e->components[i], &touched);
        }
        lkg_touched_deinit(&touched);
        if (follow_kubelet(e)) {
                lkg_watch_touch(&e->watch, NULL);
                return true;
        }
        if (update_watches(e)) {
                lkg_watch_touch(&e->watch, NULL);
                return true;
        }
        if (e->poison.look_again) {
                e->poison.look_again = false;
                lkg_watch_touch(&e->watch, NULL);
                return true;
        }
        return e->settled.look_again;
}

void lkg_engine_look(struct lkg_engine *e)
{
        lkg_settled_forget_old(&e->settled);
        for (unsigned round = 0; round < 4; round++) {
                e->settled.look_again = e->settled.recent = false;
                if (look_once(e))
                        continue;
                if (e->settled.recent)
                        lkg_engine_retry_by(e, lkg_boottime_ns() + LKG_RECENT_NS);
                return;
        }
        e->clock.retry_at_ns = lkg_boottime_ns(); /* the tree keeps changing: publish, then look again */
}

/* ---- holds ---- */

static void tick_hold(struct lkg_engine *e, struct lkg_component *c)
{
        if (c->state.hold.try_phase == LKG_TRY_RUNNING)
                lkg_engine_happened(e, c, LKG_EVENT_TRY_DUE);
}

/* The pinned generation is lost. This is reported, because the hold was acknowledged. */
static void lose_hold(struct lkg_engine *e, struct lkg_component *c, const struct lkg_error *why)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        char lost[LKG_LOST_MAX];
        const struct lkg_event event = { .kind = LKG_EVENT_HOLD_LOST, .reason = lost };

        lkg_log(LOG_ERR, &fields, "cannot serve the held generation, no longer held: %s", why->message);
        (void)snprintf(lost, sizeof(lost), "the hold at generation %" PRIu64 " (%s), its document is lost",
                       c->state.hold.generation, lkg_hold_mode_name(c->state.hold.mode));
        (void)lkg_engine_step(e, c, &event, NULL);
        c->faults.lost_now = true;
}

/* Makes the pinned generation the active one. */
static void apply_hold(struct lkg_engine *e, struct lkg_component *c)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        const struct lkg_hold *hold = &c->state.hold;
        struct lkg_error err = { 0 };
        int r;

        if (hold->mode == LKG_HOLD_FREE || hold->generation == 0 ||
            (c->active && c->active->number == hold->generation) ||
            (c->candidate && c->candidate->state == LKG_CANDIDATE_NAME_TAKEN))
                return;
        r = lkg_history_get(&c->history, hold->generation, &g, &err);
        if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
                return; /* keep what is served until the next round */
        if (r < 0) {
                lose_hold(e, c, &err);
                return;
        }
        lkg_component_serve_again(c, g);
}

/* ---- committing ---- */

static int new_generation(struct lkg_engine *e, struct lkg_component *c, struct lkg_served *u,
                          struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        const struct lkg_event publishing = { .kind = LKG_EVENT_PUBLISHING };
        uint64_t number;
        int r = lkg_state_next_generation(&e->state, &number, err);

        if (r < 0)
                return r;
        g = lkg_generation_new(c->candidate, lkg_component_source(c), number, lkg_realtime_ns(),
                               lkg_candidate_take_text(c->candidate, c->names.hint));
        lkg_history_add(&c->history, g);
        r = lkg_engine_step(e, c, &publishing, err);
        if (r < 0) {
                lkg_history_remove(&c->history, number);
                return lkg_error_wrap(err, r, "save that the try runs");
        }
        if (e->started && !c->faults.lost_now)
                lkg_component_set_lost(c, NULL); /* something has changed since */
        u->number = number;
        lkg_component_set_active(c, g);
        c->counts.published++;
        return 0;
}

/* Makes the served generation follow the verdict. */
static int prepare(struct lkg_engine *e, struct lkg_component *c, struct lkg_served *u,
                   struct lkg_error *err)
{
        const enum lkg_verdict verdict = lkg_component_verdict(c);
        int r = 0;

        if (verdict == LKG_PUBLISH)
                r = new_generation(e, c, u, err);
        else if (verdict == LKG_WITHDRAW)
                lkg_component_set_active(c, NULL);
        if (r < 0)
                return r;
        if (verdict != LKG_REFUSE && c->candidate)
                c->served.from_disk = false;
        lkg_component_note_base(c);
        u->changed = c->active != u->active;
        if (u->changed)
                lkg_component_prune_history(c);
        if (u->changed && c->pods) /* the trials of those that are new begin */
                lkg_engine_tick_pods(e, c, /* publishing= */ true);
        lkg_component_note_served(c);
        lkg_engine_prepare_remote(e, c);
        lkg_component_note(c);
        if (c->due.facts && c->candidate)
                lkg_component_check_facts(c);
        return 0;
}

static void take_back(struct lkg_engine *e, struct lkg_component *c, struct lkg_served *before)
{
        const struct lkg_event unpublished = { .kind = LKG_EVENT_UNPUBLISHED, .hold = &before->hold };

        if (!before->changed)
                return;
        lkg_component_serve_before(c, before);
        (void)lkg_engine_step(e, c, &unpublished, NULL);
}

/* The only place that handles what follows when readers get another generation, whatever the reason. */
static void announce(struct lkg_engine *e, struct lkg_component *c, bool is_new)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);

        if (!lkg_component_note_published(c))
                return;
        c->due.fallback = c->due.record = true;
        c->process.served_ns = lkg_boottime_ns();
        lkg_engine_consume(e, c);
        if (!c->active)
                lkg_log(LOG_NOTICE, &fields, "%s is not served any more: %s", c->config->file,
                        c->condition.reason);
        else if (!is_new)
                lkg_log(LOG_NOTICE, &fields, "serving generation %" PRIu64 " again", c->active->number);
        else
                lkg_log(LOG_INFO, &fields,
                        "serving generation %" PRIu64 " (publication %" PRIu64 ", %zu layers)",
                        c->active->number, lkg_publisher_number(e->publisher),
                        c->candidate ? c->candidate->n_layers : 0);
}

/* Return: 1: readers see something new; 0; -errno. */
static int publish(struct lkg_engine *e, struct lkg_error *err)
{
        struct lkg_engine_snapshot now;
        int r;

        lkg_engine_take_snapshot(e, &now);
        r = lkg_publish(e->publisher, &now.snapshot, err);
        if (r < 0)
                return r;
        /* Answer writers first: the answer names the publication, and their close() waits for nothing else. */
        lkg_engine_answer_looked_at(e);
        if (r > 0) {
                lkg_engine_ask_first_fallback(e);
                lkg_server_published(&e->server, lkg_publisher_number(e->publisher));
        }
        for (size_t i = 0; i < e->n_components; i++)
                lkg_engine_report(e, &e->components[i]);
        return r;
}

static void update_conditions(struct lkg_engine *e)
{
        for (size_t i = 0; i < e->n_components; i++)
                lkg_component_update_condition(&e->components[i], &e->reports.shown,
                                               !e->components[i].candidate);
}

/* Publishes the old document with the reason in the condition. This may fail for the same reason; then only the log has it. */
static void publish_failed(struct lkg_engine *e, struct lkg_served *undo, int cause,
                           const struct lkg_error *why)
{
        struct lkg_error ignored;

        lkg_log_error("cannot publish, trying again in %" PRIu64 " ms: %s",
                      e->clock.retry_delay_ns / LKG_NSEC_PER_MSEC, why->message);
        for (size_t i = 0; i < e->n_components; i++) {
                take_back(e, &e->components[i], &undo[i]);
                lkg_component_set_fault(&e->components[i], "failed to publish: %s", strerror(-cause));
                e->components[i].faults.of_publication = true;
        }
        e->clock.retry_at_ns = lkg_boottime_ns() + e->clock.retry_delay_ns;
        e->clock.retry_delay_ns = 2 * e->clock.retry_delay_ns < LKG_RETRY_MAX_NS
                                          ? 2 * e->clock.retry_delay_ns
                                          : LKG_RETRY_MAX_NS;
        update_conditions(e);
        if (lkg_publisher_number(e->publisher) > 0)
                (void)publish(e, &ignored);
}

int lkg_engine_commit(struct lkg_engine *e)
{
        struct lkg_served undo[LKG_COMPONENTS_MAX] = { 0 };
        struct lkg_error err = { 0 };
        int r = 0;

        for (size_t i = 0; i < e->n_components; i++) {
                lkg_component_remember(&e->components[i], &undo[i]);
                if (e->components[i].faults.of_publication)
                        lkg_component_clear_fault(&e->components[i]);
                if (r >= 0)
                        r = prepare(e, &e->components[i], &undo[i], &err);
                undo[i].changed = e->components[i].active != undo[i].active;
        }
        update_conditions(e);
        if (r >= 0)
                r = publish(e, &err);
        if (r < 0) {
                publish_failed(e, undo, r, &err);
        } else {
                e->clock.retry_delay_ns = LKG_RETRY_MIN_NS;
                for (size_t i = 0; r > 0 && i < e->n_components; i++)
                        announce(e, &e->components[i], undo[i].number != 0);
                if (r > 0)
                        lkg_engine_persist_soon(e);
        }
        for (size_t i = 0; i < e->n_components; i++) {
                e->components[i].faults.lost_now = false;
                lkg_served_deinit(&undo[i]);
        }
        return r < 0 ? r : 0;
}

void lkg_engine_turn(struct lkg_engine *e, bool look)
{
        for (size_t i = 0; i < e->n_components; i++)
                lkg_component_note_ends(&e->components[i]);
        if (look) {
                e->clock.retry_at_ns = LKG_NEVER;
                lkg_engine_look(e);
        }
        for (size_t i = 0; i < e->n_components; i++) {
                if (look)
                        (void)lkg_engine_finish_command(e, &e->components[i]);
                lkg_engine_settle_remote(e, &e->components[i]);
                tick_hold(e, &e->components[i]);
                apply_hold(e, &e->components[i]);
                lkg_engine_tick_trial(e, &e->components[i]);
        }
        e->n_cycles++;
        (void)lkg_engine_commit(e);
        for (size_t i = 0; i < e->n_components; i++)
                lkg_stack_rest(e->components[i].stack);
}

void lkg_engine_cycle(struct lkg_engine *e, bool look)
{
        lkg_engine_persist_soon(e);
        lkg_engine_turn(e, look);
}
