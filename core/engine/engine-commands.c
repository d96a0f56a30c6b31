/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: a write to a control file, a name created or removed in bad/. Parsed by command.c, checked by decide.h or
 * dynamic configuration, durable before it is published, answered afterwards. A command that is sent again (its answer was
 * lost with a file server or an engine) has the same result.
 */
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/log.h>

#include <lkg/command.h>
#include "engine-internal.h"

/* Why a command was refused: a literal, or text of its own. */
struct refusal {
        const char *why;
        char text[200];
};

static int refuse(struct refusal *refusal, int code, const char *why)
{
        refusal->why = why;
        return code;
}

static int refuse_error(struct refusal *refusal, const struct lkg_error *err, int code)
{
        (void)snprintf(refusal->text, sizeof(refusal->text), "%.190s", err->message);
        refusal->why = refusal->text;
        return code;
}

/* Whose command this is. */
static struct lkg_held_by who(const struct lkg_engine *e)
{
        const struct lkg_message *m = e->command;
        const char *slash = m ? strrchr(m->exe, '/') : NULL;
        struct lkg_held_by by = { .time_ns = lkg_realtime_ns() };

        if (!m)
                return by;
        by.uid = m->uid;
        by.pid = m->pid;
        (void)snprintf(by.program, sizeof(by.program), "%.63s", slash ? slash + 1 : m->exe);
        for (char *p = by.program; *p; p++) /* it becomes part of a line */
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = '?';
        return by;
}

/* The author; a hold or a try that continues keeps its first author. */
static void note_holder(const struct lkg_engine *e, struct lkg_component *c,
                        const struct lkg_component_state *before)
{
        const struct lkg_message *m = e->command;
        const struct lkg_hold *hold = &c->state.hold;

        if (hold->try_phase == LKG_TRY_NONE)
                c->state.tried_by = (struct lkg_held_by){ 0 };
        else if (m && before->hold.try_phase == LKG_TRY_NONE)
                c->state.tried_by = who(e);
        if (hold->mode == LKG_HOLD_FREE)
                c->state.held_by = (struct lkg_held_by){ 0 };
        if (hold->mode == LKG_HOLD_FREE || !m ||
            (hold->mode == before->hold.mode && hold->generation == before->hold.generation))
                return;
        c->state.held_by = who(e);
}

static void note_pin(struct lkg_component *c)
{
        if (c->state.hold.mode == LKG_HOLD_ROLLBACK)
                lkg_engine_say_assigned(c, c->state.pinned_for);
        else
                *c->state.pinned_for = '\0';
}

/*
 * All its changes of the state are one record, so they are stored completely or not at all.
 * @unfinished: work that remains when the record is durable; NULL = none
 */
static int do_hold(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                   uint64_t ticket, const struct lkg_unfinished *unfinished, struct refusal *refusal)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *target = NULL;
        struct lkg_component_state before = c->state;
        bool known =
                lkg_history_get(&c->history, call->argument, &target, NULL) >= 0; /* it can be read, too */
        struct lkg_hold_step step = lkg_hold_command(c->state.hold, call->hold, call->argument, known,
                                                     c->active ? c->active->number : 0);
        struct lkg_error err = { 0 };
        uint64_t needed = step.next.generation ? step.next.generation : step.next.try_previous;
        int r = 0;

        if (step.result < 0)
                return refuse(refusal, step.result, step.why);
        if (needed) /* a generation that is pinned, or may be, must be in the history before the state names it */
                r = lkg_history_write(&c->history, needed, &err);
        if (r < 0)
                return refuse(refusal, r, "the state directory cannot be written");
        c->state.hold = step.next;
        if (c->active && c->active->number == needed)
                c->state.last_good = needed; /* it is durable: a node without a hold begins with it, too */
        note_holder(e, c, &before);
        note_pin(c);
        c->state.unfinished = unfinished ? *unfinished : (struct lkg_unfinished){ 0 };
        c->state.ticket = ticket;
        r = lkg_engine_save_state(e, c); /* durable before anybody sees it */
        if (r < 0) {
                c->state = before;
                return refuse(refusal, r, "the state directory cannot be written");
        }
        c->dirty |= LKG_DIRTY_CONDITION;
        return 0;
}

/* Would a rollback abandon a remote configuration? */
static bool may_abandon(const struct lkg_engine *e, const struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;

        return d && lkg_engine_is_remote(e, c) && !lkg_config_source_is_local(&d->pointers.active) &&
               !lkg_config_source_equal(&d->pointers.active, &d->pointers.good.source);
}

static struct lkg_unfinished plan(const struct lkg_engine *e, const struct lkg_component *c,
                                  enum lkg_unfinished_kind kind)
{
        struct lkg_unfinished plan = { .kind = kind };

        if (may_abandon(e, c))
                lkg_config_source_id(&c->dynamic->pointers.active, plan.source);
        return plan;
}

/*
 * A rollback by an operator: a remote configuration that it abandons is marked bad, on request. If that was done before, or
 * something else is active by now: nothing to do.
 */
static int abandon(struct lkg_engine *e, struct lkg_component *c, struct lkg_error *err)
{
        struct lkg_dynamic *d = c->dynamic;
        char reason[LKG_REASON_MAX], id[LKG_SOURCE_ID_MAX + 1];
        int r = 0;

        if (!may_abandon(e, c))
                return 0;
        lkg_config_source_id(&d->pointers.active, id);
        if (strcmp(id, c->state.unfinished.source) != 0)
                return 0;
        (void)snprintf(reason, sizeof(reason), "operator request (UID: %s)", d->pointers.active.uid);
        if (!lkg_dynamic_is_bad(d, &d->pointers.active))
                r = lkg_dynamic_condemn(d, &d->pointers.active, NULL, LKG_BAD_OPERATOR, reason,
                                        lkg_realtime_ns(), err);
        if (r >= 0) {
                r = lkg_engine_roll_back(e, c, LKG_BAD_OPERATOR, reason, err);
                if (r < 0) /* all of it or nothing */
                        (void)lkg_dynamic_forgive(d, id, /* exactly= */ true, NULL);
        }
        c->dirty |= LKG_DIRTY_BAD | LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION;
        return r;
}

/* The pin after a rollback to the last known good. Both are one command, because of the plan. */
static void pin_good(struct lkg_component *c, enum lkg_hold_mode mode)
{
        c->state.hold = (struct lkg_hold){ .mode = mode, .generation = c->active->number };
        c->state.held_by = c->state.unfinished.by;
        note_pin(c);
        c->dirty |= LKG_DIRTY_CONDITION;
}

/* Today's local layers may be invalid with it; then it is the document that lkg/ shows, byte for byte. */
static int serve_merge_or_stored(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_generation *good = NULL;
        int r = e->hooks->commit(e, /* force= */ false);

        if (r >= 0)
                r = lkg_component_good_generation(c, &good);
        if (r >= 0 && good)
                r = lkg_engine_serve_stored(c);
        lkg_generation_unref(good);
        return r;
}

/* A stored document has its number already, and the pin holds today's layers back. A merge gets a number by being published. */
static int serve_good(struct lkg_engine *e, struct lkg_component *c, struct lkg_error *err)
{
        enum lkg_hold_mode mode = c->state.hold.mode == LKG_HOLD_ON ? LKG_HOLD_ON : LKG_HOLD_ROLLBACK;
        int r;

        if (c->state.hold.mode != LKG_HOLD_FREE) { /* the current pin would stay */
                c->state.hold = (struct lkg_hold){ 0 };
                c->dirty |= LKG_DIRTY_CONDITION;
        }
        r = c->dynamic->scope_all ? lkg_engine_serve_stored(c) : serve_merge_or_stored(e, c);
        if (r >= 0 && !c->active)
                r = -EBUSY;
        if (r < 0)
                return lkg_error_set(err, r, NULL, "there is no last known good that could be served");
        pin_good(c, mode);
        return lkg_history_write(&c->history, c->active->number, err);
}

/* The plan is not needed any more. */
static int end_plan(struct lkg_engine *e, struct lkg_component *c)
{
        int r;

        c->state.unfinished = (struct lkg_unfinished){ 0 };
        r = lkg_engine_save_state(e, c);
        if (r < 0)
                c->state_changed = true; /* the record on disk leads to the same result */
        lkg_state_forget_kept(&e->state, c->config->name);
        return r;
}

int lkg_engine_finish_command(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_error err = { 0 };
        int r;

        if (c->state.unfinished.kind == LKG_UNFINISHED_NONE)
                return 0;
        r = abandon(e, c, &err);
        if (r >= 0 && c->state.unfinished.kind == LKG_UNFINISHED_GOOD && c->dynamic)
                r = serve_good(e, c, &err);
        if (r >= 0)
                return end_plan(e, c);
        lkg_log(LOG_ERR, &fields, "the rest of a rollback cannot be carried out, trying again: %s",
                err.message);
        e->retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS;
        return r;
}

/*
 * The first step of the plan failed: undo all of it. If the record on disk cannot be restored, the
 * command will be carried out later.
 */
static int give_up(struct lkg_engine *e, struct lkg_component *c, const struct lkg_component_state *before,
                   int code)
{
        const struct lkg_component_state planned = c->state;

        c->state = *before;
        c->dirty |= LKG_DIRTY_CONDITION;
        if (lkg_state_restore_component(&e->state, c->config->name) >= 0) {
                c->state_changed =
                        true; /* the record that is written in quiet times may have an older one */
                return code;
        }
        if (lkg_engine_save_state(e, c) >= 0)
                return code;
        c->state = planned;
        e->retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS;
        return 0;
}

/* `rollback N`: a generation of another source abandons the active one. */
static int do_rollback(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                       uint64_t ticket, struct refusal *refusal)
{
        const struct lkg_history_entry *target = lkg_history_find(&c->history, call->argument);
        bool other = target && c->active && strcmp(target->source, c->active->source) != 0;
        const struct lkg_unfinished todo = plan(e, c, LKG_UNFINISHED_ABANDON);
        const struct lkg_component_state before = c->state;
        struct lkg_error err = { 0 };
        int r;

        if (!other || !*todo.source)
                return do_hold(e, c, call, ticket, NULL, refusal);
        (void)lkg_state_keep_component(&e->state, c->config->name);
        r = do_hold(e, c, call, ticket, &todo, refusal);
        if (r < 0) {
                lkg_state_forget_kept(&e->state, c->config->name);
                return r;
        }
        r = abandon(e, c, &err);
        if (r < 0)
                return refuse_error(refusal, &err, give_up(e, c, &before, r));
        (void)end_plan(e, c);
        return 0;
}

/* `rollback lkg`: back to the last known good, published first, because only then it has a number that can be pinned. */
static int do_rollback_good(struct lkg_engine *e, struct lkg_component *c, uint64_t ticket,
                            struct refusal *refusal)
{
        const struct lkg_component_state before = c->state;
        struct lkg_error err = { 0 };
        int r;

        if (!c->dynamic)
                return refuse(refusal, -EBUSY,
                              "the state directory cannot be written, so nothing is remembered");
        (void)lkg_state_keep_component(&e->state, c->config->name);
        c->state.unfinished = plan(e, c, LKG_UNFINISHED_GOOD);
        c->state.unfinished.held = c->state.hold.generation;
        c->state.unfinished.by = who(e);
        c->state.ticket = ticket;
        r = lkg_engine_save_state(e, c);
        if (r < 0) {
                c->state = before;
                lkg_state_forget_kept(&e->state, c->config->name);
                return refuse(refusal, r, "the state directory cannot be written");
        }
        r = abandon(e, c, &err);
        if (r < 0)
                return refuse_error(refusal, &err, give_up(e, c, &before, r));
        r = serve_good(e, c, &err);
        if (r == -EBUSY || r == -ENOENT) /* not a fault of the disk: it would never succeed */
                return refuse_error(refusal, &err, give_up(e, c, &before, r));
        if (r < 0)
                e->retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS; /* the rest of it is on disk */
        else
                (void)end_plan(e, c);
        return 0;
}

static int do_promote(struct lkg_engine *e, struct lkg_component *c, struct refusal *refusal)
{
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_error err = { 0 };
        int r;

        if (!d || !c->active)
                return refuse(refusal, -EBUSY, "nothing is served");
        if (lkg_dynamic_is_bad(d, &d->pointers.assigned))
                return refuse(refusal, -EBUSY,
                              "what is assigned is marked bad; write its uid to forget first");
        if (!lkg_config_source_equal(&d->pointers.assigned, &d->pointers.active) ||
            !lkg_engine_serves_active(c))
                return refuse(refusal, -EBUSY, "what is assigned is not active");
        r = lkg_engine_promote(e, c, &err);
        return r < 0 ? refuse_error(refusal, &err, r) : 0;
}

/* Only existing marks can be removed, so the same command, repeated after an engine died, would find none. */
static bool has_forgotten(const struct lkg_engine *e, const char *ticket)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(e->options.runtime_fd, LKG_FORGETTING_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        return fd >= 0 && lkg_read_file(fd, 64, &text, &size, NULL) >= 0 && strcmp(text, ticket) == 0;
}

static int do_forget(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                     uint64_t ticket, struct refusal *refusal)
{
        struct lkg_error err = { 0 };
        bool exactly = call->action == LKG_DO_FORGIVE;
        char text[24];
        int r = -ENOENT;

        (void)snprintf(text, sizeof(text), "%" PRIu64, ticket);
        if (c->dynamic && has_forgotten(e, text)) {
                r = lkg_dynamic_forgive(c->dynamic, *call->id ? call->id : NULL, exactly, &err);
                r = r == -ENOENT ? 0 : r;
        } else if (c->dynamic) {
                (void)lkg_write_file_atomic(e->options.runtime_fd, LKG_FORGETTING_NAME, text, strlen(text),
                                            0600,
                                            /* durable= */ false, NULL);
                r = lkg_dynamic_forgive(c->dynamic, *call->id ? call->id : NULL, exactly, &err);
                if (r < 0)
                        (void)unlinkat(e->options.runtime_fd, LKG_FORGETTING_NAME, 0);
        }
        if (r == -ENOENT)
                return refuse(refusal, -EINVAL, "no such entry in the bad list");
        if (r < 0)
                return refuse_error(refusal, &err, r);
        lkg_poison_lift(&e->poison, c->config->name, call->id); /* what condemned it may be tried, too */
        if (!lkg_dynamic_is_bad(c->dynamic, &c->dynamic->pointers.assigned))
                lkg_report_deinit(&c->remote_findings);
        c->waited = lkg_candidate_unref(c->waited);
        if (lkg_dynamic_pass_over(c->dynamic, "", &err) < 0)
                lkg_log_warning("cannot note that nothing is passed over any more: %s", err.message);
        c->dirty |= LKG_DIRTY_BAD | LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION | LKG_DIRTY_FINDINGS;
        return 0;
}

/* If the mark is about the active configuration, that is abandoned as part of the same command. */
static int leave_condemned(struct lkg_engine *e, struct lkg_component *c, struct lkg_error *err)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad = lkg_dynamic_is_bad(d, &d->pointers.active);
        char reason[LKG_REASON_MAX];

        if (!bad || !may_abandon(e, c))
                return 0;
        (void)snprintf(reason, sizeof(reason), "%s", bad->reason);
        return lkg_engine_roll_back(e, c, bad->cause, reason, err);
}

/* A uid condemns all its versions. */
static int do_condemn(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                      struct refusal *refusal)
{
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_config_source source;
        struct lkg_error err = { 0 };
        bool known;
        int r;

        if (!d)
                return refuse(refusal, -EBUSY,
                              "the state directory cannot be written, so nothing is remembered");
        if (lkg_config_source_parse_id(call->id, &source) < 0)
                return refuse(refusal, -EINVAL, "no uid and no source id");
        known = lkg_dynamic_has_mark(d, call->id);
        r = lkg_dynamic_condemn(d, &source, call->id, LKG_BAD_MARKED, call->text, lkg_realtime_ns(), &err);
        if (r >= 0) {
                r = leave_condemned(e, c, &err);
                /* All of it or nothing. If the mark cannot be removed again, the next round finishes the rollback. */
                if (r < 0 && (known || lkg_dynamic_forgive(d, call->id, /* exactly= */ true, NULL) < 0))
                        r = 0;
        }
        if (r < 0)
                return refuse_error(refusal, &err, r);
        c->dirty |= LKG_DIRTY_BAD | LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION;
        return 0;
}

static int do_startup(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                      uint64_t ticket, struct refusal *refusal)
{
        int r = lkg_engine_start_reported(e, c, (int)call->argument, ticket);

        return r >= 0 ? 0
                      : refuse(refusal, r,
                               r == -EINVAL ? "there is no such process"
                                            : "the state directory cannot be written");
}

static int carry_out(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                     uint64_t ticket, struct refusal *refusal)
{
        switch (call->action) {
        case LKG_DO_HOLD:
                return call->hold == LKG_CMD_ROLLBACK ? do_rollback(e, c, call, ticket, refusal)
                                                      : do_hold(e, c, call, ticket, NULL, refusal);
        case LKG_DO_SYNC:
                lkg_engine_lift_poison(e, c);
                lkg_engine_try_anew(c);
                lkg_places_fetch(e->places);
                return 0;
        case LKG_DO_ROLLBACK_GOOD:
                return do_rollback_good(e, c, ticket, refusal);
        case LKG_DO_PROMOTE:
                return do_promote(e, c, refusal);
        case LKG_DO_FORGET:
        case LKG_DO_FORGIVE:
                return do_forget(e, c, call, ticket, refusal);
        case LKG_DO_CONDEMN:
                return do_condemn(e, c, call, refusal);
        case LKG_DO_STARTUP:
                return do_startup(e, c, call, ticket, refusal);
        }
        return refuse(refusal, -EINVAL, "unknown command");
}

static void log_command(const struct lkg_component *c, const struct lkg_message *m, int result,
                        const char *why)
{
        const struct lkg_log_fields fields = { .component = c->config->name };
        bool bad = strcmp(m->command, LKG_COMMAND_BAD) == 0 || strcmp(m->command, LKG_COMMAND_FORGIVE) == 0;
        char quoted[5 * 64 + 8], login[16] = "unset";

        if (m->login_uid != UINT32_MAX)
                (void)snprintf(login, sizeof(login), "%" PRIu32, m->login_uid);
        lkg_log(result < 0 ? LOG_WARNING : LOG_NOTICE, &fields,
                "%s%s %s by uid %" PRIu32 ", pid %" PRId32 ", %s, login uid %s: %s%s%s",
                bad ? "" : "control/", m->command, lkg_quote(m->text, m->text_size, quoted), m->uid, m->pid,
                *m->exe ? m->exe : "unknown program", login, result < 0 ? "refused" : "accepted",
                result < 0 ? ": " : "", result < 0 ? why : "");
}

int lkg_engine_run_command(struct lkg_engine *e, const struct lkg_message *m)
{
        struct lkg_command_call call = { 0 };
        struct refusal refusal = { .why = "" };
        struct lkg_component *c;
        char text[256] = "";
        int r;

        if (m->component >= e->n_components)
                return -EINVAL;
        c = &e->components[m->component];
        if (m->uid != 0 ||
            m->pid <= 0) { /* the file server has checked this already; checking twice is cheap */
                r = -EACCES;
                (void)strcpy(text, "only root may give commands");
        } else {
                r = lkg_command_parse(m->command, m->text, m->text_size, &call, text);
        }
        if (r == 0)
                return 0;
        if (r > 0) {
                lkg_engine_note_ends(c);
                e->command = m;
                r = lkg_engine_finish_command(e, c);
                if (r < 0)
                        (void)refuse(&refusal, r, "the state directory cannot be written");
                else
                        r = carry_out(e, c, &call, m->ticket, &refusal);
                e->command = NULL;
                if (r >= 0 && call.action != LKG_DO_STARTUP)
                        lkg_component_set_lost(c, NULL); /* somebody has done something about it */
                if (r < 0)
                        (void)snprintf(text, sizeof(text), "%.31s: %s", m->command, refusal.why);
        }
        lkg_component_set_last_error(c, r < 0 ? text : NULL);
        log_command(c, m, r, text);
        e->vouched_all = r >= 0 && call.action == LKG_DO_SYNC;
        lkg_watch_touch(&e->watch, NULL);
        e->hooks->cycle(e, /* look= */ r >= 0);
        e->vouched_all = false;
        c->answers_start = false;
        return r < 0 ? r : 0;
}
