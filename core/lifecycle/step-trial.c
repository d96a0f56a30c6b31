/* SPDX-License-Identifier: Apache-2.0 */
/* The trial of the served configuration: begin, starts and time, pass or fail (docs/specification.md 4.8 to 4.10). */
#include <stdio.h>
#include <string.h>

#include "stepping.h"

#include <lkg/lifecycle.h>

static const struct lkg_bad *find_bad_document(const struct lkg_stepping *s)
{
        const struct lkg_config_source source = lkg_document_source(s->facts->sha256);

        return lkg_bad_find(s->facts->bad, &source);
}

/* Is the served configuration the last known good? */
static bool serves_good(const struct lkg_stepping *s)
{
        const struct lkg_pointers *p = &s->l->pointers;

        return s->facts->scope_all ? lkg_is_good_document(&s->l->pointers, s->facts->sha256)
                                   : lkg_config_source_equal(&p->active, &p->good.source);
}

/* ---- promotion ---- */

void lkg_on_passed(struct lkg_stepping *s)
{
        struct lkg_pointers *p = &s->next->pointers;
        struct lkg_trial *trial = &s->next->trial;

        p->good = (struct lkg_good){
                .source = p->active,
                .generation = s->facts->active,
                .time_ns = s->event->wall_ns,
        };
        (void)snprintf(p->good.sha256, sizeof(p->good.sha256), "%s", s->facts->sha256);
        (void)lkg_then(s, LKG_EFFECT_SAVE_DOCUMENT);
        lkg_then_point(s);
        if (trial->state == LKG_TRIAL_RUNNING) {
                *trial = lkg_trial_alive(*trial, false, s->now_ns);
                trial->state = LKG_TRIAL_PASSED;
                lkg_then_try(s, LKG_EFFECT_SAVE_TRIAL); /* the pointers say so, too */
        }
        lkg_then_tell(s, LKG_NEWS_PROMOTED);
}

void lkg_on_promote(struct lkg_stepping *s)
{
        const struct lkg_pointers *p = &s->l->pointers;

        if (!s->facts->active)
                lkg_refuse_step(s, -EBUSY, "nothing is served");
        else if (lkg_bad_find(s->facts->bad, &p->assigned))
                lkg_refuse_step(s, -EBUSY, "what is assigned is marked bad; write its uid to forget first");
        else if (!lkg_config_source_equal(&p->assigned, &p->active) || !s->facts->serves_active ||
                 (!s->facts->remote && !lkg_config_source_is_local(&p->active)))
                lkg_refuse_step(s, -EBUSY, "what is assigned is not active");
        else
                lkg_on_passed(s);
}

/* ---- the trial begins ---- */

static bool needs_trial(const struct lkg_stepping *s)
{
        const struct lkg_trial *trial = &s->l->trial;

        return trial->state == LKG_TRIAL_IDLE || lkg_is_other_trial(s->l, s->facts) ||
               (s->facts->scope_all && trial->state == LKG_TRIAL_FAILED); /* its mark was removed */
}

void lkg_on_served(struct lkg_stepping *s)
{
        struct lkg_trial *trial = &s->next->trial;

        if (!s->facts->active || !s->facts->serves_active || (!s->facts->scope_all && !s->facts->remote))
                return;
        if (serves_good(s)) {
                if (!lkg_is_other_trial(s->l, s->facts) || trial->state != LKG_TRIAL_RUNNING)
                        return;
                *trial = (struct lkg_trial){ /* of a document that is no longer served */
                                             .state = LKG_TRIAL_IDLE
                };
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
                lkg_then_try(s, LKG_EFFECT_SAVE_TRIAL);
        } else if (s->facts->scope_all && !*s->l->pointers.good.sha256) {
                lkg_on_passed(s); /* nothing to roll back to: a node's first configuration is good */
        } else if (needs_trial(s)) {
                (void)lkg_then(s, LKG_EFFECT_BEGIN_TRIAL);
        } else if (trial->state == LKG_TRIAL_PASSED) {
                lkg_on_passed(s);
        }
}

/* After a power cut the trial is known, but not the served document. The stored trial of the same document continues. */
void lkg_on_begin(struct lkg_stepping *s)
{
        struct lkg_trial *trial = &s->next->trial;
        const struct lkg_trial *stored = s->event->stored;

        s->next->document = lkg_document_source(s->facts->sha256);
        if (s->facts->scope_all && stored && stored->state == LKG_TRIAL_RUNNING) {
                *trial = lkg_trial_resume(*stored, s->facts->watched, s->now_ns);
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
                return;
        }
        *trial = lkg_trial_begin(s->event->rules, s->facts->watched, s->now_ns, s->event->wall_ns);
        *trial = lkg_trial_see(*trial, s->facts->health, s->now_ns);
        (void)lkg_then(s, LKG_EFFECT_SAVE_TRIAL);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        if (trial->state == LKG_TRIAL_PASSED)
                lkg_then_next(s, LKG_EVENT_PASSED);
}

/* ---- a start ---- */

/*
 * "Have I seen this process?" - has the trial counted its start? A start is judged once, even if it is reported again
 * because an engine died before recording it.
 */
static bool is_judged(const struct lkg_trial *trial, const struct lkg_startup *startup)
{
        return startup->start_time && trial->last_start_time == startup->start_time &&
               trial->last_pid == startup->pid;
}

/* Does the component start with a configuration that is not on trial? */
static bool starts_on_good(const struct lkg_stepping *s)
{
        const struct lkg_pointers *p = &s->l->pointers;

        if (s->facts->scope_all)
                return s->facts->active && lkg_is_good_document(&s->l->pointers, s->facts->sha256);
        return lkg_config_source_is_local(&p->active) || *p->rollback.reason;
}

/* Mark what failed its trial: the remote configuration or, if every generation is on trial, this document. */
static void fail_trial(struct lkg_stepping *s, enum lkg_bad_cause cause, const char *words)
{
        const struct lkg_pointers *p = &s->l->pointers;
        struct lkg_config_source source = p->active;
        char reason[LKG_REASON_MAX];

        if (!lkg_config_source_is_local(&source) && !lkg_config_source_equal(&source, &p->good.source)) {
                (void)snprintf(reason, sizeof(reason), "current failed trial period%.200s (UID: %s)", words,
                               source.uid);
        } else {
                source = lkg_document_source(s->facts->sha256);
                (void)snprintf(source.sha256, sizeof(source.sha256), "%s", s->facts->sha256);
                (void)snprintf(reason, sizeof(reason), "current failed trial period%.200s (local@%.12s)",
                               words, s->facts->sha256);
        }
        lkg_then_mark(s, &source, cause, reason);
        lkg_then_roll_back(s, cause, reason);
}

static void condemn(struct lkg_stepping *s)
{
        fail_trial(s, LKG_BAD_CRASHED, " due to crash loop");
        s->next->trial.last_pid = s->step->startup.pid; /* told again, it is the same start */
        s->next->trial.last_start_time = s->step->startup.start_time;
        lkg_then_try(s, LKG_EFFECT_NOTE_START);
}

/* Starts count only within one trial duration after the rollback: later ones have other causes. */
static bool counts_on_good(const struct lkg_stepping *s, const struct lkg_startup *startup)
{
        const struct lkg_pointers *p = &s->l->pointers;

        return startup->counted && startup->local && *p->rollback.reason &&
               s->event->wall_ns - p->rollback.time_ns <= s->l->trial.rules.duration_ns;
}

/* The trial records the newest judged start. If that is durable, the list of starts need not be. */
static void count(struct lkg_stepping *s, struct lkg_trial judged)
{
        const struct lkg_startup *startup = &s->step->startup;

        s->next->trial = judged;
        s->next->trial.last_pid = startup->pid;
        s->next->trial.last_start_time = startup->start_time;
        if (!s->event->by_command) /* it happened, even if it cannot be stored */
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
        (void)lkg_then(s, LKG_EFFECT_SAVE_TRIAL);
        if (s->event->by_command)
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
        lkg_then_try(s, LKG_EFFECT_NOTE_START);
}

void lkg_on_start(struct lkg_stepping *s)
{
        struct lkg_startup *startup = &s->step->startup;
        struct lkg_trial_step judged;

        *startup = *s->event->startup;
        startup->local = starts_on_good(s);
        if (is_judged(&s->l->trial, startup)) {
                (void)lkg_then(s, LKG_EFFECT_NOTE_START);
                return;
        }
        if (lkg_lifecycle_on_trial(s->l, s->facts)) {
                judged = lkg_trial_start(s->l->trial, startup->counted, s->now_ns);
                if (judged.verdict == LKG_TRIAL_CONDEMN)
                        condemn(s);
                else
                        count(s, judged.next);
                return;
        }
        if (counts_on_good(s, startup)) {
                s->next->pointers.rollback.starts_since++;
                lkg_then_point(s);
        }
        (void)lkg_then(s, LKG_EFFECT_NOTE_START);
}

/* The start happened, so record it even if something failed; but a command that is refused will be repeated. */
void lkg_on_start_failed(struct lkg_stepping *s)
{
        const struct lkg_event *event = s->event;

        s->step->startup = *event->startup;
        s->step->startup.local = starts_on_good(s);
        lkg_take_mark_back(s);
        /* only the count of starts on the last known good is lost */
        if (event->failed == LKG_EFFECT_SAVE_POINTERS && !event->marked_id) {
                s->step->accepted = true;
                (void)lkg_then(s, LKG_EFFECT_RETRY);
                (void)lkg_then(s, LKG_EFFECT_NOTE_START);
        } else if (event->failed != LKG_EFFECT_NOTE_START && (!event->by_command || s->step->accepted)) {
                lkg_then_try(s, LKG_EFFECT_NOTE_START);
        }
}

/* ---- the clock ---- */

/* An absence is durable from its beginning, and with it that there was a life: one that nobody ends must not last for ever. */
void lkg_on_alive(struct lkg_stepping *s)
{
        bool on_trial = lkg_lifecycle_on_trial(s->l, s->facts);
        const struct lkg_trial *before = &s->l->trial;
        struct lkg_trial *trial = &s->next->trial;

        if (!s->facts->watched || trial->state != LKG_TRIAL_RUNNING)
                return;
        *trial = lkg_trial_alive(*trial, s->event->alive, s->now_ns);
        *trial = lkg_trial_away(*trial, s->event->away, on_trial, s->now_ns);
        if (trial->running_since_ns == before->running_since_ns && trial->away_ns == before->away_ns &&
            trial->away_since_ns == before->away_since_ns)
                return;
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        if (trial->away_since_ns && !before->away_since_ns)
                lkg_then_try(s, LKG_EFFECT_SAVE_TRIAL);
}

/* Durable at once: what has been good since is judged, and what was bad counts, also for the next engine. */
void lkg_on_health(struct lkg_stepping *s)
{
        struct lkg_trial *trial = &s->next->trial;
        bool counts;

        if (trial->state != LKG_TRIAL_RUNNING)
                return;
        *trial = lkg_trial_see(*trial, s->facts->health, s->now_ns);
        counts = memcmp(trial->judged, s->l->trial.judged, sizeof(trial->judged)) != 0 ||
                 memcmp(trial->bad, s->l->trial.bad, sizeof(trial->bad)) != 0;
        if (counts || memcmp(trial->seen, s->l->trial.seen, sizeof(trial->seen)) != 0)
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
        if (counts)
                lkg_then_try(s, LKG_EFFECT_SAVE_TRIAL);
}

static void reject(struct lkg_stepping *s)
{
        char words[300], what[LKG_HEALTH_WORDS_MAX];

        (void)snprintf(words, sizeof(words), ", not healthy: %s",
                       lkg_trial_say_unhealthy(&s->l->trial, s->event->reason, what));
        fail_trial(s, LKG_BAD_UNHEALTHY, words);
}

static void extend(struct lkg_stepping *s, struct lkg_trial extended)
{
        s->next->trial = extended;
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        lkg_then_try(s, LKG_EFFECT_SAVE_TRIAL);
        lkg_then_tell(s, LKG_NEWS_EXTENDED);
}

void lkg_on_trial_due(struct lkg_stepping *s)
{
        const struct lkg_trial *trial = &s->l->trial;
        struct lkg_trial_step judged = { .verdict = LKG_TRIAL_GO_ON };

        if (trial->state != LKG_TRIAL_RUNNING)
                return;
        if (lkg_lifecycle_on_trial(s->l, s->facts))
                judged = lkg_trial_tick(*trial, s->now_ns);
        if (judged.verdict == LKG_TRIAL_PROMOTE)
                lkg_on_passed(s);
        else if (judged.verdict == LKG_TRIAL_REJECT)
                reject(s);
        else if (judged.verdict == LKG_TRIAL_EXTEND)
                extend(s, judged.next);
        else if ((trial->running_since_ns || trial->away_since_ns) &&
                 s->now_ns - s->facts->trial_saved_ns >= LKG_TRIAL_SAVE_NS)
                (void)lkg_then(s, LKG_EFFECT_SAVE_TRIAL);
}

/* ---- trial.scope all: a document that is marked bad ---- */

/* The mark is the first step of a rollback. If the engine died or failed right after it, do the rest now. */
bool lkg_leave_bad_document(struct lkg_stepping *s, bool again)
{
        const struct lkg_bad *bad;

        if (!s->facts->scope_all || !s->facts->active || s->l->record.hold.mode != LKG_HOLD_FREE ||
            lkg_is_other_trial(s->l, s->facts) || !*s->l->pointers.good.sha256 || serves_good(s))
                return false;
        bad = find_bad_document(s);
        if (!bad || !lkg_bad_failed_trial(bad->cause) ||
            (!again && strcmp(bad->reason, s->l->pointers.rollback.reason) == 0))
                return false;
        lkg_then_roll_back(s, bad->cause, bad->reason);
        return true;
}

void lkg_on_resumed(struct lkg_stepping *s)
{
        (void)lkg_leave_bad_document(s, /* again= */ true);
}

/* If an engine made the mark but did not finish the rollback, record the rollback: it explains what is served. */
void lkg_on_layers(struct lkg_stepping *s)
{
        const struct lkg_bad *bad = s->event->mark;
        char *passed_over = s->next->pointers.rollback.passed_over;
        const struct lkg_pointers *p = &s->l->pointers;
        /* A remote configuration that merges to it is followed all the same: its document is just not served. */
        bool left = bad && lkg_bad_failed_trial(bad->cause) &&
                    strcmp(bad->reason, p->rollback.reason) != 0 &&
                    lkg_config_source_equal(&p->active, &p->good.source);

        if (!s->facts->scope_all)
                return;
        if (left)
                lkg_fall_back(s, bad->reason, 0, bad->time_ns);
        if (strcmp(passed_over, LKG_PASSED_OVER_UNKNOWN) != 0)
                return;
        (void)snprintf(passed_over, LKG_SHA256_HEX, "%s", s->event->sha256);
        if (left)
                return;
        lkg_then_try(s, LKG_EFFECT_SAVE_POINTERS); /* optional: unknown means the same to the next engine */
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
}

/* ---- slot-outcome ---- */

/* What a slot of a rollout is told about this node: see <lkg/slots.h>. */

static bool has_content(const struct lkg_config_source *source, const char *uid, const char *sha256)
{
        return strcmp(source->uid, uid) == 0 && strcmp(source->sha256, sha256) == 0;
}

void lkg_rollout_id_of(const struct lkg_config_source *source, struct lkg_rollout_id *ret)
{
        *ret = (struct lkg_rollout_id){ .ns = "" };
        (void)snprintf(ret->ns, sizeof(ret->ns), "%s", source->ns);
        (void)snprintf(ret->name, sizeof(ret->name), "%s", source->name);
        (void)snprintf(ret->uid, sizeof(ret->uid), "%s", source->uid);
        (void)snprintf(ret->key, sizeof(ret->key), "%s", source->key);
        (void)snprintf(ret->version, sizeof(ret->version), "%s", source->version);
        (void)snprintf(ret->sha256, sizeof(ret->sha256), "%s", source->sha256);
        lkg_rollout_id_seal(ret);
}

/*
 * Does the mark say something about the content, so that the fleet has to know? A trial that failed does, and what made an engine
 * crash. A layer of this node that the content does not go with, or an operator who went back here, does not.
 */
static bool is_failure(const struct lkg_bad *mark)
{
        return lkg_bad_failed_trial(mark->cause) || mark->cause == LKG_BAD_LOAD;
}

static const struct lkg_bad *find_bad(const struct lkg_bad_list *list, const char *uid, const char *sha256)
{
        for (size_t i = 0; i < list->n_items; i++)
                if (has_content(&list->items[i].source, uid, sha256))
                        return &list->items[i];
        return NULL;
}

enum lkg_slot_outcome lkg_lifecycle_slot_outcome(const struct lkg_pointers *p,
                                                 const struct lkg_bad_list *bad, const char *uid,
                                                 const char *sha256, char reason[static LKG_SLOT_REASON_MAX])
{
        const struct lkg_bad *mark = find_bad(bad, uid, sha256);

        if (has_content(&p->good.source, uid, sha256))
                return LKG_OUTCOME_GOOD;
        if (mark && is_failure(mark)) {
                (void)snprintf(reason, LKG_SLOT_REASON_MAX, "%.255s", mark->reason);
                return LKG_OUTCOME_BAD;
        }
        if (has_content(&p->active, uid, sha256))
                return LKG_OUTCOME_TRYING;
        return !mark && has_content(&p->assigned, uid, sha256) ? LKG_OUTCOME_WANTED : LKG_OUTCOME_OVER;
}
