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

#define NO_STORE "the state directory cannot be written, so nothing is remembered"

/* The one that is being carried out. */
struct command {
        struct lkg_engine *e;
        struct lkg_component *c;
        const struct lkg_message *message;
        struct lkg_command_call call;
        struct lkg_error err; /* why it is refused */
};

static int refuse_command(struct command *cmd, int code, const char *why)
{
        return lkg_refuse_because(&cmd->err, code, NULL, "%s", why);
}

/* Who gave it. */
static struct lkg_held_by who(const struct lkg_message *m)
{
        const char *slash = strrchr(m->exe, '/');
        struct lkg_held_by by = { .time_ns = lkg_realtime_ns(), .uid = m->uid, .pid = m->pid };

        (void)snprintf(by.program, sizeof(by.program), "%.63s", slash ? slash + 1 : m->exe);
        for (char *p = by.program; *p; p++) /* it becomes part of one line */
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = '?';
        return by;
}

/* Once a command is accepted, its decision is durable; a refused command has changed nothing. */
static int step(struct command *cmd, struct lkg_event event)
{
        const struct lkg_held_by by = who(cmd->message);

        event.by_command = true;
        event.by = &by;
        event.ticket = cmd->message->ticket;
        return lkg_engine_step(cmd->e, cmd->c, &event, &cmd->err);
}

/* `rollback N`: a generation from another source abandons the active one. */
static int do_hold(struct command *cmd)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *target = NULL;
        const struct lkg_component *c = cmd->c;
        const struct lkg_history_entry *entry = lkg_history_find(&c->history, cmd->call.argument);
        const struct lkg_event event = {
                .kind = LKG_EVENT_HOLD,
                .command = cmd->call.hold,
                .argument = cmd->call.argument,
                /* and can be read */
                .known = lkg_history_get(&c->history, cmd->call.argument, &target, NULL) >= 0,
                .other = entry && c->active &&
                         !lkg_config_records_match(entry->source, entry->source_sha256, c->active->source,
                                                   c->active->source_sha256),
        };

        return step(cmd, event);
}

static int do_sync(struct command *cmd)
{
        lkg_engine_lift_poison(cmd->e, cmd->c);
        lkg_component_try_anew(cmd->c);
        lkg_places_fetch(cmd->e->places);
        return 0;
}

/* `rollback lkg` */
static int do_rollback_good(struct command *cmd)
{
        return step(cmd, (struct lkg_event){ .kind = LKG_EVENT_ROLLBACK_GOOD,
                                             .servable = lkg_component_can_serve_good(cmd->c) });
}

static int do_promote(struct command *cmd)
{
        return step(cmd, (struct lkg_event){ .kind = LKG_EVENT_PROMOTE });
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

static int do_forget(struct command *cmd)
{
        const char *id = *cmd->call.id ? cmd->call.id : NULL;
        int runtime_fd = cmd->e->options.runtime_fd, r;
        struct lkg_component *c = cmd->c;
        char ticket[24];
        bool again;

        (void)snprintf(ticket, sizeof(ticket), "%" PRIu64, cmd->message->ticket);
        again = has_forgotten(cmd->e, ticket);
        if (!again)
                (void)lkg_write_file_atomic(runtime_fd, LKG_FORGETTING_NAME, ticket, strlen(ticket), 0600,
                                            /* durable= */ false, NULL);
        r = lkg_dynamic_forgive(c->dynamic, id, cmd->call.action == LKG_DO_FORGIVE, &cmd->err);
        if (r < 0 && !again)
                (void)unlinkat(runtime_fd, LKG_FORGETTING_NAME, 0);
        if (r == -ENOENT && !again)
                return refuse_command(cmd, -EINVAL, "no such entry in the bad list");
        if (r < 0 && r != -ENOENT)
                return r;
        /* the content behind the mark may be tried, too */
        lkg_poison_lift(&cmd->e->poison, c->config->name, cmd->call.id);
        if (!lkg_bad_find(&c->dynamic->bad, &c->dynamic->pointers.assigned))
                lkg_report_deinit(&c->assigned.findings);
        lkg_component_note_tried(c, false);
        lkg_engine_happened(cmd->e, c, LKG_EVENT_FORGIVEN); /* the marks are gone, even if this fails */
        return 0;
}

/* A uid marks all versions of the object. */
static int do_condemn(struct command *cmd)
{
        struct lkg_bad mark = { .time_ns = lkg_realtime_ns(), .cause = LKG_BAD_MARKED };

        if (lkg_config_source_parse_id(cmd->call.id, &mark.source) < 0)
                return refuse_command(cmd, -EINVAL, "no uid and no source id");
        (void)snprintf(mark.id, sizeof(mark.id), "%s", cmd->call.id);
        (void)snprintf(mark.reason, sizeof(mark.reason), "%s", cmd->call.text);
        return step(cmd, (struct lkg_event){ .kind = LKG_EVENT_MARK,
                                             .mark = &mark,
                                             .known = lkg_bad_named(&cmd->c->dynamic->bad, mark.id) });
}

static int do_startup(struct command *cmd)
{
        int r;

        if (cmd->c->config->is_pods)
                return refuse_command(cmd, -EINVAL,
                                      "a kubelet starts static pods, and reads no file before");
        r = lkg_engine_start_reported(cmd->e, cmd->c, (int)cmd->call.argument, cmd->message->ticket);
        if (r >= 0)
                return 0;
        return refuse_command(
                cmd, r, r == -EINVAL ? "there is no such process" : "the state directory cannot be written");
}

/* What carries it out; and what it is refused with where there is no store. */
static const struct {
        int (*run)(struct command *cmd);
        int code;
        const char *why; /* NULL = it needs none */
} rows[] = {
        [LKG_DO_HOLD] = { do_hold, 0, NULL },
        [LKG_DO_SYNC] = { do_sync, 0, NULL },
        [LKG_DO_ROLLBACK_GOOD] = { do_rollback_good, -EBUSY, NO_STORE },
        [LKG_DO_PROMOTE] = { do_promote, -EBUSY, "nothing is served" },
        [LKG_DO_FORGET] = { do_forget, -EINVAL, "no such entry in the bad list" },
        [LKG_DO_FORGIVE] = { do_forget, -EINVAL, "no such entry in the bad list" },
        [LKG_DO_CONDEMN] = { do_condemn, -EBUSY, NO_STORE },
        [LKG_DO_STARTUP] = { do_startup, -EBUSY, "the state directory cannot be written" },
};

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

static int carry_out(struct command *cmd)
{
        enum lkg_command_action action = cmd->call.action;
        int r;

        if (action == LKG_DO_STARTUP)
                lkg_engine_look_before_start(cmd->e);
        lkg_component_note_ends(cmd->c);
        r = lkg_engine_finish_command(cmd->e, cmd->c);
        if (r < 0)
                return refuse_command(cmd, r, "the state directory cannot be written");
        r = rows[action].why && !cmd->c->dynamic ? refuse_command(cmd, rows[action].code, rows[action].why)
                                                 : rows[action].run(cmd);
        if (r >= 0 && action != LKG_DO_STARTUP)
                lkg_component_set_lost(cmd->c, NULL); /* an operator has reacted */
        return r;
}

int lkg_engine_run_command(struct lkg_engine *e, const struct lkg_message *m)
{
        struct command cmd = { .e = e, .message = m };
        struct lkg_component *c;
        char text[256] = "";
        int r;

        if (m->component >= e->n_components)
                return -EINVAL;
        cmd.c = c = &e->components[m->component];
        /* the file server has checked this already; checking twice is cheap */
        if (m->uid != 0 || m->pid <= 0) {
                r = -EACCES;
                (void)strcpy(text, "only root may give commands");
        } else {
                r = lkg_command_parse(m->command, m->text, m->text_size, &cmd.call, text);
        }
        if (r == 0)
                return 0;
        if (r > 0 && (r = carry_out(&cmd)) < 0)
                (void)snprintf(text, sizeof(text), "%.31s: %.190s", m->command, cmd.err.message);
        lkg_component_set_last_error(c, r < 0 ? text : NULL);
        log_command(c, m, r, text);
        e->settled.vouched_all = r >= 0 && cmd.call.action == LKG_DO_SYNC;
        lkg_watch_touch(&e->watch, NULL);
        e->hooks->cycle(e, /* look= */ r >= 0);
        e->settled.vouched_all = false;
        c->process.answers_start = false;
        return r < 0 ? r : 0;
}
