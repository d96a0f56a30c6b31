/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: a write to a control file, or a name created or removed in bad/. Parsed by command.c, checked by the lifecycle or
 * dynamic configuration, durable before they are published, answered last. A command that is sent again (its answer was lost with
 * a file server or an engine) has the same result.
 */
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/base.h>

#include <lkg/component.h>
#include "engine-internal.h"

/* Why a command was refused: a string literal, or @text. */
struct refusal {
        const char *why;
        char text[200];
};

static int refuse_command(struct refusal *refusal, int code, const char *why)
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

/* Who gave the current command. */
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
        for (char *p = by.program; *p; p++) /* it becomes part of one line */
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = '?';
        return by;
}

/* Once a command is accepted, its decision is durable; a refused command has changed nothing. */
static int step(struct lkg_engine *e, struct lkg_component *c, const struct lkg_event *event,
                uint64_t ticket, struct refusal *refusal)
{
        const struct lkg_held_by by = who(e);
        struct lkg_event whole = *event;
        struct lkg_error err = { 0 };
        int r;

        whole.by_command = true;
        whole.by = &by;
        whole.ticket = ticket;
        r = lkg_engine_step(e, c, &whole, &err);
        return r < 0 ? refuse_error(refusal, &err, r) : 0;
}

/* `rollback N`: a generation from another source abandons the active one. */
static int do_hold(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                   uint64_t ticket, struct refusal *refusal)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *target = NULL;
        const struct lkg_history_entry *entry = lkg_history_find(&c->history, call->argument);
        const struct lkg_event event = {
                .kind = LKG_EVENT_HOLD,
                .command = call->hold,
                .argument = call->argument,
                /* and can be read */
                .known = lkg_history_get(&c->history, call->argument, &target, NULL) >= 0,
                .other = entry && c->active &&
                         !lkg_config_records_match(entry->source, entry->source_sha256, c->active->source,
                                                   c->active->source_sha256),
        };

        return step(e, c, &event, ticket, refusal);
}

int lkg_engine_finish_command(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_event event = { .kind = LKG_EVENT_FINISH };
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_error err = { 0 };
        int r;

        if (c->state.unfinished.kind == LKG_UNFINISHED_NONE)
                return 0;
        event.servable = lkg_component_can_serve_good(c);
        if (c->state.unfinished.kind == LKG_UNFINISHED_GOOD && !event.servable)
                lkg_log(LOG_ERR, &fields,
                        "the rest of a rollback is given up: nothing could be served then");
        r = lkg_engine_step(e, c, &event, &err);
        if (r < 0)
                lkg_log(LOG_ERR, &fields, "the rest of a rollback cannot be carried out, trying again: %s",
                        err.message);
        return r;
}

/* `rollback lkg` */
static int do_rollback_good(struct lkg_engine *e, struct lkg_component *c, uint64_t ticket,
                            struct refusal *refusal)
{
        const struct lkg_event event = { .kind = LKG_EVENT_ROLLBACK_GOOD,
                                         .servable = lkg_component_can_serve_good(c) };

        if (!c->dynamic)
                return refuse_command(refusal, -EBUSY,
                                      "the state directory cannot be written, so nothing is remembered");
        return step(e, c, &event, ticket, refusal);
}

static int do_promote(struct lkg_engine *e, struct lkg_component *c, uint64_t ticket,
                      struct refusal *refusal)
{
        const struct lkg_event event = { .kind = LKG_EVENT_PROMOTE };

        return c->dynamic ? step(e, c, &event, ticket, refusal)
                          : refuse_command(refusal, -EBUSY, "nothing is served");
}

/* Only existing marks can be removed, so if the engine died, the same command would find none when it is repeated. */
static bool has_forgotten(const struct lkg_engine *e, const char *ticket)
{
        LKG_CLEANUP(lkg_closep)
        int fd = lkg_open_plain(e->options.runtime_fd, LKG_FORGETTING_NAME);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        return fd >= 0 && lkg_read_file(fd, 64, &text, &size, NULL) >= 0 && strcmp(text, ticket) == 0;
}

static int do_forget(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                     uint64_t ticket, struct refusal *refusal)
{
        const struct lkg_event forgiven = { .kind = LKG_EVENT_FORGIVEN };
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
                return refuse_command(refusal, -EINVAL, "no such entry in the bad list");
        if (r < 0)
                return refuse_error(refusal, &err, r);
        lkg_poison_lift(&e->poison, c->config->name,
                        call->id); /* the content behind the mark may be tried, too */
        if (!lkg_bad_find(&c->dynamic->bad, &c->dynamic->pointers.assigned))
                lkg_report_deinit(&c->assigned.findings);
        lkg_component_note_tried(c, false);
        (void)lkg_engine_step(e, c, &forgiven, &err); /* the marks are gone, even if this fails */
        return 0;
}

/* A uid marks all versions of the object. */
static int do_condemn(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                      uint64_t ticket, struct refusal *refusal)
{
        struct lkg_bad mark = { .time_ns = lkg_realtime_ns(), .cause = LKG_BAD_MARKED };
        struct lkg_event event = { .kind = LKG_EVENT_MARK, .mark = &mark };

        if (!c->dynamic)
                return refuse_command(refusal, -EBUSY,
                                      "the state directory cannot be written, so nothing is remembered");
        if (lkg_config_source_parse_id(call->id, &mark.source) < 0)
                return refuse_command(refusal, -EINVAL, "no uid and no source id");
        (void)snprintf(mark.id, sizeof(mark.id), "%s", call->id);
        (void)snprintf(mark.reason, sizeof(mark.reason), "%s", call->text);
        event.known = lkg_bad_named(&c->dynamic->bad, mark.id) != NULL;
        return step(e, c, &event, ticket, refusal);
}

static int do_startup(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                      uint64_t ticket, struct refusal *refusal)
{
        int r = c->dynamic ? lkg_engine_start_reported(e, c, (int)call->argument, ticket) : -EBUSY;

        return r >= 0 ? 0
                      : refuse_command(refusal, r,
                                       r == -EINVAL ? "there is no such process"
                                                    : "the state directory cannot be written");
}

static int carry_out(struct lkg_engine *e, struct lkg_component *c, const struct lkg_command_call *call,
                     uint64_t ticket, struct refusal *refusal)
{
        switch (call->action) {
        case LKG_DO_HOLD:
                return do_hold(e, c, call, ticket, refusal);
        case LKG_DO_SYNC:
                lkg_engine_lift_poison(e, c);
                lkg_component_try_anew(c);
                lkg_places_fetch(e->places);
                return 0;
        case LKG_DO_ROLLBACK_GOOD:
                return do_rollback_good(e, c, ticket, refusal);
        case LKG_DO_PROMOTE:
                return do_promote(e, c, ticket, refusal);
        case LKG_DO_FORGET:
        case LKG_DO_FORGIVE:
                return do_forget(e, c, call, ticket, refusal);
        case LKG_DO_CONDEMN:
                return do_condemn(e, c, call, ticket, refusal);
        case LKG_DO_STARTUP:
                return do_startup(e, c, call, ticket, refusal);
        }
        return refuse_command(refusal, -EINVAL, "unknown command");
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
        /* the file server has checked this already; checking twice is cheap */
        if (m->uid != 0 || m->pid <= 0) {
                r = -EACCES;
                (void)strcpy(text, "only root may give commands");
        } else {
                r = lkg_command_parse(m->command, m->text, m->text_size, &call, text);
        }
        if (r == 0)
                return 0;
        if (r > 0) {
                if (call.action == LKG_DO_STARTUP)
                        lkg_engine_look_before_start(e);
                lkg_component_note_ends(c);
                e->command = m;
                r = lkg_engine_finish_command(e, c);
                if (r < 0)
                        (void)refuse_command(&refusal, r, "the state directory cannot be written");
                else
                        r = carry_out(e, c, &call, m->ticket, &refusal);
                e->command = NULL;
                if (r >= 0 && call.action != LKG_DO_STARTUP)
                        lkg_component_set_lost(c, NULL); /* an operator has reacted */
                if (r < 0)
                        (void)snprintf(text, sizeof(text), "%.31s: %s", m->command, refusal.why);
        }
        lkg_component_set_last_error(c, r < 0 ? text : NULL);
        log_command(c, m, r, text);
        e->settled.vouched_all = r >= 0 && call.action == LKG_DO_SYNC;
        lkg_watch_touch(&e->watch, NULL);
        e->hooks->cycle(e, /* look= */ r >= 0);
        e->settled.vouched_all = false;
        c->process.answers_start = false;
        return r < 0 ? r : 0;
}
