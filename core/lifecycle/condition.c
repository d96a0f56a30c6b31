/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the condition: see lkg/lifecycle.h. The first row that applies sets status and reason. */
#include <inttypes.h>

#include <lkg/text.h>
#include <lkg/lifecycle.h>

const char *lkg_condition_status_name(enum lkg_condition_status status)
{
        static const char *const names[] = {
                [LKG_CONDITION_UNKNOWN] = "Unknown",
                [LKG_CONDITION_FALSE] = "False",
                [LKG_CONDITION_TRUE] = "True",
        };

        return names[status];
}

static const char *local_name(bool has_base)
{
        return has_base ? "init" : "default";
}

static bool is_set(const char *text)
{
        return text && *text;
}

/* `(init)`, `(default)` or `(UID: ...)` */
static void say_which(char *buf, size_t size, const char *uid, bool has_base)
{
        if (is_set(uid))
                (void)snprintf(buf, size, "(UID: %.64s)", uid);
        else
                (void)snprintf(buf, size, "(%s)", local_name(has_base));
}

/* Appends to the message; text that does not fit is cut. */
static void LKG_PRINTF(2, 3) add_words(struct lkg_condition *c, const char *fmt, ...)
{
        size_t n = strlen(c->message);
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(c->message + n, sizeof(c->message) - n, fmt, ap);
        va_end(ap);
}

/* Status and reason. Return: true, because the row applies. */
static bool LKG_PRINTF(3, 4)
        say(struct lkg_condition *c, enum lkg_condition_status status, const char *fmt, ...)
{
        va_list ap;

        c->status = status;
        va_start(ap, fmt);
        (void)vsnprintf(c->reason, sizeof(c->reason), fmt, ap);
        va_end(ap);
        return true;
}

/* The served configuration, in the wording of the proposal. A remote one is the assigned one, the last known good, or an earlier one. */
static void say_using(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        const struct lkg_condition_remote *r = &f->remote;
        char which[96];

        say_which(which, sizeof(which), r->active, f->active_has_base);
        if (f->pods.is)
                add_words(c, f->pods.n == 1 ? "%zu static pod is served" : "%zu static pods are served",
                          f->pods.n);
        else if (!f->active)
                add_words(c, "%s is not served", f->file);
        else if (r->any || is_set(r->active))
                add_words(c, "using %s %s",
                          r->active_is_assigned && !r->bad && !r->went_back ? "current"
                          : r->active_is_good                               ? "last-known-good"
                                                                            : "previous",
                          which);
        else if (f->last_good)
                add_words(c, "using last-known-good %s, generation %" PRIu64, which, f->active);
        else
                add_words(c, "using %s %s", r->went_back ? "last-known-good" : "current", which);
}

static bool say_not_ready(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->not_ready && say(c, LKG_CONDITION_UNKNOWN, "engine not ready");
}

static bool say_fault(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->fault && say(c, LKG_CONDITION_UNKNOWN, "%s", f->fault);
}

static bool say_name_taken(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        if (f->state != LKG_CANDIDATE_NAME_TAKEN)
                return false;
        *c->message = '\0';
        add_words(c, "%s is a kubeconfig and is passed through; choose another name (file: %s-config.yaml)",
                  f->file, f->component);
        return say(c, LKG_CONDITION_FALSE, "name taken");
}

static bool say_good_failed(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->remote.good_failed &&
               say(c, LKG_CONDITION_FALSE, "last-known-good also failed%s%.160s",
                   f->remote.bad ? ", after: " : "", f->remote.bad ? f->remote.bad : "");
}

static bool say_exonerated(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        const char *which = f->remote.bad ? strrchr(f->remote.bad, '(') : NULL;

        return f->remote.exonerated && say(c, LKG_CONDITION_FALSE,
                                           "crash loop goes on with last-known-good, so the configuration "
                                           "was probably not the cause "
                                           "%.80s; forgive it by forget",
                                           which ? which : "");
}

static bool say_bad(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        const char *bad = f->remote.bad;

        if (!bad || !f->remote.marked)
                return bad && say(c, LKG_CONDITION_FALSE, "%.255s", bad);
        return say(c, LKG_CONDITION_FALSE, "marked bad (UID: %.64s): %.160s", f->remote.assigned, bad);
}

static bool say_unclear(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->remote.desired_fault &&
               say(c, LKG_CONDITION_UNKNOWN, "failed to sync, desired config unclear, cause: %.200s",
                   f->remote.desired_fault);
}

/* It was not tried, so it is not bad. */
static bool say_untried(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->remote.untried &&
               say(c, LKG_CONDITION_UNKNOWN, "failed to try current (UID: %.64s), trying again: %.120s",
                   f->remote.assigned, f->remote.untried);
}

static const char *say_waits(const struct lkg_condition_facts *f)
{
        return f->remote.waits ? "; what is assigned waits for it" : "";
}

/* Appends the number of errors; if findings has others, too, also their total, so that the two agree. */
static void add_errors(struct lkg_condition *c, const struct lkg_condition_facts *f, size_t n)
{
        size_t used = strlen(c->reason);

        if (f->n_all_errors > n)
                (void)snprintf(c->reason + used, sizeof(c->reason) - used,
                               ", %zu of the %zu errors in %s/findings%s", n, f->n_all_errors,
                               f->status_path, say_waits(f));
        else
                (void)snprintf(c->reason + used, sizeof(c->reason) - used,
                               ", %zu error%s, see %s/findings%s", n, n == 1 ? "" : "s", f->status_path,
                               say_waits(f));
}

/* The local base is invalid and not in use now, but a rollback may need it; or a drop-in is invalid with any base. */
static bool say_local_invalid(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        if (f->remote.n_local_errors == 0)
                return false;
        (void)say(c, LKG_CONDITION_FALSE, "failed to validate local (%s)",
                  local_name(f->remote.local_has_base));
        add_errors(c, f, f->remote.n_local_errors);
        return true;
}

/*
 * The followed remote document was accepted with the layers of that time. It is blamed only for errors in itself (the command
 * line or the release may have changed), never for errors in a layer of this node.
 */
static bool say_invalid(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        const struct lkg_condition_remote *r = &f->remote;
        const char *role = r->bad ? "last-known-good" : "current"; /* of the followed configuration */
        bool of_a_layer = is_set(r->followed) && f->n_remote_errors < f->n_errors;
        bool local = !is_set(r->followed) && (r->waits || r->bad || r->good_failed);
        char which[96];

        if (f->state != LKG_CANDIDATE_INVALID)
                return false;
        if ((of_a_layer || (is_set(r->followed) && r->followed_lost)) && say_local_invalid(c, f))
                return true;
        say_which(which, sizeof(which), r->followed, f->candidate_has_base);
        if (r->followed_lost)
                return say(c, LKG_CONDITION_FALSE, "checkpoint of %s %s %s, see %s/findings", role, which,
                           r->followed_unread ? "cannot be read" : "lost", f->status_path);
        if (of_a_layer)
                (void)say(c, LKG_CONDITION_FALSE, "failed to validate local (%s) with %s %s",
                          local_name(r->local_has_base), role, which);
        else
                (void)say(c, LKG_CONDITION_FALSE, "failed to validate %s %s", local ? "local" : role, which);
        add_errors(c, f, f->n_errors);
        return true;
}

static bool say_dead_end(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->pods.dead_end &&
               say(c, LKG_CONDITION_FALSE, "last-known-good also failed: %.200s", f->pods.dead_end);
}

static bool say_bad_pods(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        char more[32] = "";

        if (!f->pods.bad)
                return false;
        if (f->pods.n_bad > 1)
                (void)snprintf(more, sizeof(more), ", and %zu more", f->pods.n_bad - 1);
        return say(c, LKG_CONDITION_FALSE, "%.200s%s", f->pods.bad, more);
}

static bool say_refused_pods(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        if (!f->pods.is || f->n_errors == 0)
                return false;
        (void)say(c, LKG_CONDITION_FALSE, "failed to validate manifests");
        add_errors(c, f, f->n_errors);
        return true;
}

static bool say_tried_pods(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->pods.n_tried > 0 && say(c, LKG_CONDITION_TRUE, "%zu on trial", f->pods.n_tried);
}

static bool say_try_expired(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->hold->mode == LKG_HOLD_TRY_EXPIRED &&
               say(c, LKG_CONDITION_FALSE, "try expired, held at generation %" PRIu64, f->hold->generation);
}

/* An acknowledged command is no longer in effect. */
static bool say_lost(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->lost && say(c, LKG_CONDITION_FALSE, "failed to keep %.200s", f->lost);
}

static bool say_none(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->state == LKG_CANDIDATE_NONE && !f->active &&
               say(c, LKG_CONDITION_UNKNOWN, "no layer found");
}

static bool say_held(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        if (f->hold->mode == LKG_HOLD_FREE)
                return false;
        if (f->verdict == LKG_WAIT)
                add_words(c, "; a newer one waits for hold off");
        return say(c, LKG_CONDITION_TRUE, "held at generation %" PRIu64 " (%s)", f->hold->generation,
                   lkg_hold_mode_name(f->hold->mode));
}

static bool say_try(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        char until[21];

        lkg_format_rfc3339(f->try_deadline_wall_ns, until);
        return f->hold->try_phase == LKG_TRY_RUNNING &&
               say(c, LKG_CONDITION_TRUE,
                   "on try until %s, then back to generation %" PRIu64 " unless committed", until,
                   f->hold->try_previous);
}

/* The rollout holds a newer configuration back, so the served one is correct. */
static bool say_waiting(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        return f->remote.waiting && say(c, LKG_CONDITION_TRUE, "%.255s", f->remote.waiting);
}

static bool say_good(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        if (is_set(f->remote.active) || f->pods.is)
                return say(c, LKG_CONDITION_TRUE, "all checks passed");
        return say(c, LKG_CONDITION_TRUE,
                   "current is set to the local default, and %s init config was provided",
                   f->active_has_base ? "an" : "no");
}

/*
 * If reason and message show the same uid but mean two versions of one ConfigMap, append both versions. The wording of the
 * proposal stays unchanged.
 */
static void tell_versions(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        const struct lkg_condition_remote *r = &f->remote;

        if (!is_set(r->assigned) || !is_set(r->active) || strcmp(r->assigned, r->active) != 0 ||
            !is_set(r->assigned_version) || !is_set(r->active_version) ||
            strcmp(r->assigned_version, r->active_version) == 0)
                return;
        add_words(c, ", resourceVersion %.64s instead of %.64s", r->active_version, r->assigned_version);
}

void lkg_condition_holder(const struct lkg_held_by *by, enum lkg_hold_mode mode,
                          char ret[static LKG_HOLDER_MAX])
{
        char time[21];

        *ret = '\0';
        if (!by || !by->time_ns)
                return;
        lkg_format_rfc3339(by->time_ns, time);
        if (strcmp(by->program, "try") == 0)
                (void)snprintf(ret, LKG_HOLDER_MAX, " since %s", time);
        else
                (void)snprintf(ret, LKG_HOLDER_MAX, " since %s%s by uid %u (pid %d, %s)", time,
                               mode == LKG_HOLD_TRY_EXPIRED ? ", after a try" : "", by->uid, by->pid,
                               *by->program ? by->program : "unknown program");
}

/*
 * Always mention a hold: no correction is served before it ends.
 * @told: the reason already names the hold
 */
static void tell_hold(struct lkg_condition *c, const struct lkg_condition_facts *f, bool told)
{
        char holder[LKG_HOLDER_MAX], what[64] = "";

        if (f->hold->mode == LKG_HOLD_FREE)
                return;
        lkg_condition_holder(f->held_by, f->hold->mode, holder);
        if (!told)
                (void)snprintf(what, sizeof(what), " at generation %" PRIu64 " (%s)", f->hold->generation,
                               lkg_hold_mode_name(f->hold->mode));
        add_words(c, "; held%s%s: `echo off > %scontrol/%s/hold`", holder, what, f->top, f->component);
}

/* @told: the reason already has the end time */
static void tell_try(struct lkg_condition *c, const struct lkg_condition_facts *f, bool told)
{
        char until[21];

        if (f->hold->try_phase == LKG_TRY_ARMED)
                add_words(c, "; the next change is on try for %" PRIu64 " s",
                          f->hold->try_duration_ns / LKG_NSEC_PER_SEC);
        if (f->hold->try_phase != LKG_TRY_RUNNING)
                return;
        lkg_format_rfc3339(f->try_deadline_wall_ns, until);
        add_words(c, "; %s%s%s`echo now > %scontrol/%s/commit` keeps it", told ? "" : "on try until ",
                  told ? "" : until, told ? "" : ": ", f->top, f->component);
}

/* Errors in this node's layers: until they are fixed, fixing the assigned configuration changes nothing. */
static void tell_mistake(struct lkg_condition *c, const struct lkg_condition_facts *f)
{
        struct lkg_condition other = { .reason = "" };

        if (say_invalid(&other, f) || say_local_invalid(&other, f))
                add_words(c, "; %s", other.reason);
}

bool lkg_condition_update(struct lkg_condition *condition, const struct lkg_condition_facts *facts,
                          uint64_t now_ns)
{
        static bool (*const rows[])(struct lkg_condition *, const struct lkg_condition_facts *) = {
                say_not_ready,   say_fault,         say_name_taken, say_good_failed, say_exonerated,
                say_dead_end,    say_bad_pods,      say_bad,        say_invalid,     say_refused_pods,
                say_try_expired, say_local_invalid, say_lost,       say_untried,     say_unclear,
                say_none,        say_held,          say_try,        say_tried_pods,  say_waiting,
                say_good,
        };
        struct lkg_condition next = { .transition_ns = condition->transition_ns };
        size_t row;
        bool changed;

        say_using(&next, facts);
        tell_versions(&next, facts);
        for (row = 0; row < LKG_ARRAY_SIZE(rows) && !rows[row](&next, facts); row++)
                ;
        if (rows[row] == say_good_failed || rows[row] == say_exonerated || rows[row] == say_bad ||
            rows[row] == say_try_expired)
                tell_mistake(&next, facts);
        if (facts->remote.restart_needed)
                add_words(&next, "; restart %.64s: it still runs with what failed", facts->component);
        if (facts->lost && rows[row] != say_lost) /* another row came first */
                add_words(&next, "; failed to keep %.160s", facts->lost);
        next.pending = rows[row] == say_try || rows[row] == say_waiting;
        tell_hold(&next, facts, rows[row] == say_held || rows[row] == say_try_expired);
        tell_try(&next, facts, rows[row] == say_try);
        /* The rollout holds back, whatever else is true of this node. */
        if (facts->remote.waiting && rows[row] != say_waiting)
                add_words(&next, "; %.160s", facts->remote.waiting);
        /* Foreign text (of a server or an operator) may have been cut within a character. */
        lkg_utf8_mend(next.reason);
        lkg_utf8_mend(next.message);
        if (next.status != condition->status || next.transition_ns == 0)
                next.transition_ns = now_ns;
        changed = next.status != condition->status || next.transition_ns != condition->transition_ns ||
                  strcmp(next.reason, condition->reason) != 0 ||
                  strcmp(next.message, condition->message) != 0;
        *condition = next;
        return changed;
}
