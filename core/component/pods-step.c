/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of each static pod that is served: its trial, marks, the last good set (core/lifecycle/pod-trial.c says when). */
#include <lkg/component.h>
#include <lkg/documents.h>
#include <lkg/schema.h>

struct lkg_pod_rules lkg_pods_rules(const struct lkg_component *c)
{
        const struct lkg_config_trial *trial = &c->env->config->trial;
        const struct lkg_config_pods *own = &c->config->pods;
        bool off = trial->scope_set && trial->scope == LKG_TRIAL_REMOTE;

        return (struct lkg_pod_rules){
                .duration_ns = off                                         ? 0
                               : own->duration_set || !trial->duration_set ? own->duration_ns
                                                                           : trial->duration_ns,
                .stable_for_ns = c->config->health.stable_for_ns,
                .settle_ns = own->settle_ns,
                .threshold = (unsigned)trial->crash_loop_threshold,
        };
}

static const struct lkg_value *good_text(const struct lkg_component *c, const struct lkg_pod *pod)
{
        const struct lkg_value *good = lkg_pods_good(c);
        bool is_good = pod->facts.is_good || pod->trial.state == LKG_POD_GOOD ||
                       pod->trial.state == LKG_POD_UNTRIED;

        return is_good ? pod->text : lkg_pods_text(good, pod->file);
}

/* When a file that is gone is so for good: some programs remove a file before they write it. */
static uint64_t settled_at(const struct lkg_component *c)
{
        return lkg_after(c->pods->since_ns, c->config->pods.settle_ns);
}

/* What has failed may come back: what it goes back to is kept as long as it is marked. */
static bool has_mark(const struct lkg_component *c, const char *file)
{
        const struct lkg_bad_list *bad = &c->dynamic->bad;

        for (size_t i = 0; i < bad->n_items; i++)
                if (strcmp(bad->items[i].source.uid, file) == 0)
                        return true;
        return false;
}

/* The set of those that are good, with the earlier documents of the others. NULL: that is what is stored. */
static struct lkg_value *make_good(const struct lkg_component *c, uint64_t now_ns)
{
        const struct lkg_value *good = lkg_pods_good(c);
        struct lkg_value *texts = lkg_value_new_map(NULL, 0, 0);

        for (size_t i = 0; i < c->pods->n_items; i++) {
                const struct lkg_pod *pod = &c->pods->items[i];
                const struct lkg_value *text = good_text(c, pod);

                if (text)
                        (void)lkg_map_set(texts, pod->file, strlen(pod->file),
                                          lkg_value_ref((struct lkg_value *)text));
        }
        for (struct lkg_member m = { 0 }; good && lkg_value_next(good, &m);)
                if (!lkg_pods_text(c->pods->texts, m.key.data) &&
                    (now_ns < settled_at(c) || lkg_pods_layer(c->candidate, m.key.data) ||
                     has_mark(c, m.key.data)))
                        (void)lkg_map_set(texts, m.key.data, m.key.size, lkg_value_ref(m.value));
        if (good && lkg_value_equal(texts, good))
                texts = lkg_value_unref(texts);
        return texts ? lkg_pods_set_of(texts) : NULL;
}

/* What is good now is stored before anybody relies on it. */
static int save_good(struct lkg_component *c, uint64_t now_ns, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *set = make_good(c, now_ns);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_pointers next = d->pointers;
        int r;

        if (!set)
                return 0;
        lkg_document_render(set, LKG_FORMAT_YAML, c->names.hint, &buf);
        next.good = (struct lkg_good){ .generation = c->active->number, .time_ns = lkg_realtime_ns() };
        r = lkg_store_save_document(&d->store, lkg_buf_text(&buf), buf.size,
                                    *d->pointers.good.sha256 ? d->pointers.good.sha256 : NULL,
                                    next.good.sha256, err);
        if (r >= 0 && strcmp(next.good.sha256, c->active->sha256) != 0) /* never served as it is */
                r = lkg_state_next_generation(c->env->state, &next.good.generation, err);
        if (r >= 0)
                r = lkg_store_save_pointers(&d->store, &next, err);
        if (r >= 0)
                d->pointers = next;
        return r;
}

/* What the log and the cluster are told. */
struct telling {
        struct lkg_component *c;
        lkg_pods_tell_fn *tell;
        void *userdata;
};

static void say(const struct telling *t, const char *reason, const struct lkg_bad *mark, const char *words)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(t->c);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_puts(&buf, words);
        if (mark && lkg_suspects_known(mark->suspects)) {
                lkg_buf_puts(&buf, "; ");
                lkg_suspects_say(mark->suspects, 300, &buf);
        }
        lkg_log(mark ? LOG_ERR : LOG_NOTICE, &fields, "%s", lkg_buf_text(&buf));
        t->tell(t->userdata, t->c, mark != NULL, reason, lkg_buf_text(&buf));
}

/* A mark that cannot be written counts all the same: the pod goes back. Another engine tries the text again. */
static int condemn(const struct telling *t, const struct lkg_pod *pod, struct lkg_error *err)
{
        struct lkg_component *c = t->c;
        bool crashed = pod->facts.restarts > lkg_pods_rules(c).threshold;
        struct lkg_bad mark = { .time_ns = lkg_realtime_ns(),
                                .cause = crashed ? LKG_BAD_CRASHED : LKG_BAD_UNHEALTHY,
                                .source = lkg_pods_source(pod->file, pod->sha256) };
        int r;

        lkg_config_source_id(&mark.source, mark.id);
        if (crashed)
                (void)snprintf(mark.reason, sizeof(mark.reason),
                               "failed trial period due to crash loop, %u restarts (%s)",
                               pod->facts.restarts, mark.id);
        else
                (void)snprintf(mark.reason, sizeof(mark.reason), "failed trial period, not healthy: %s (%s)",
                               *pod->words ? pod->words : "it has not answered well for long enough",
                               mark.id);
        r = lkg_component_mark_bad(c, &mark, err);
        if (r < 0)
                lkg_bad_keep(&c->dynamic->bad, &mark);
        c->counts.rollbacks[crashed ? LKG_ROLLBACK_CRASH_LOOP : LKG_ROLLBACK_UNHEALTHY]++;
        say(t, "StaticPodRolledBack", lkg_bad_named(&c->dynamic->bad, mark.id), mark.reason);
        return r;
}

static void pass(const struct telling *t, struct lkg_pod *pod)
{
        char words[LKG_IDENTIFIER_MAX + 64];

        (void)snprintf(words, sizeof(words), "%s@%.12s works, it is the last known good", pod->file,
                       pod->sha256);
        pod->trial = (struct lkg_pod_trial){ 0 };
        say(t, "StaticPodPromoted", NULL, words);
}

/* Is the text of its file marked, or what is served of it? */
static bool is_bad(const struct lkg_component *c, const struct lkg_pod *pod)
{
        const struct lkg_layer_info *info = lkg_pods_layer(c->candidate, pod->file);

        return lkg_pods_mark(c, pod->file, pod->sha256) ||
               (info && lkg_pods_mark(c, pod->file, lkg_layer_info_sha256(info)));
}

const struct lkg_bad *lkg_pods_first_bad(const struct lkg_component *c, size_t *ret_n)
{
        const struct lkg_bad *first = NULL;

        *ret_n = 0;
        for (size_t i = 0; c->candidate && i < c->candidate->n_layers; i++) {
                const struct lkg_layer_info *info = &c->candidate->layers[i];
                const struct lkg_bad *mark = lkg_pods_mark(c, info->name, lkg_layer_info_sha256(info));

                first = first ? first : mark;
                *ret_n += mark != NULL;
        }
        return first;
}

size_t lkg_pods_in(const struct lkg_component *c, enum lkg_pod_state state)
{
        size_t n = 0;

        for (size_t i = 0; i < c->pods->n_items; i++)
                n += c->pods->items[i].trial.state == state;
        return n;
}

size_t lkg_pods_on_trial(const struct lkg_component *c)
{
        return lkg_pods_in(c, LKG_POD_TRYING) + lkg_pods_in(c, LKG_POD_WORKS) +
               lkg_pods_in(c, LKG_POD_FAILED);
}

/* What a kubelet does not see, such as a comment, needs no trial. */
static bool is_same(const struct lkg_value *text, const struct lkg_pod *pod)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;

        if (lkg_value_equal(text, pod->text))
                return true;
        doc = lkg_pods_document("last known good", pod->file, text);
        return doc && pod->doc && lkg_value_equal(doc, pod->doc);
}

void lkg_pods_learn(struct lkg_component *c)
{
        const struct lkg_value *good = lkg_pods_good(c);
        bool is_first = !c->dynamic || !*c->dynamic->pointers.good.sha256; /* a node's first set is good */

        for (size_t i = 0; i < c->pods->n_items; i++) {
                struct lkg_pod *pod = &c->pods->items[i];
                const struct lkg_value *text = lkg_pods_text(good, pod->file);

                pod->facts.is_good = is_first || (text && is_same(text, pod));
                pod->facts.is_bad = is_bad(c, pod);
        }
}

bool lkg_pod_is_asked(const struct lkg_pod *pod)
{
        return !pod->facts.is_good || pod->trial.state == LKG_POD_FAILED ||
               pod->trial.state == LKG_POD_BACK || pod->trial.state == LKG_POD_DEAD_END;
}

/* Which pods may be judged now; @ret_decided: heap. Return: when that changes. */
static uint64_t decide(const struct lkg_pods *pods, const struct lkg_pod_rules *rules, uint64_t now_ns,
                       bool **ret_decided)
{
        LKG_CLEANUP(lkg_freep)
        struct lkg_pod_trial *trials = lkg_must(calloc(pods->n_items + 1, sizeof(*trials)));

        for (size_t i = 0; i < pods->n_items; i++)
                trials[i] = pods->items[i].trial;
        *ret_decided = lkg_must(calloc(pods->n_items + 1, sizeof(**ret_decided)));
        return lkg_pods_decide(trials, pods->n_items, rules, now_ns, *ret_decided);
}

void lkg_pods_step(struct lkg_component *c, uint64_t now_ns, bool publishing, lkg_pods_tell_fn *tell,
                   void *userdata)
{
        const struct telling telling = { c, tell, userdata };
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const struct lkg_pod_rules rules = lkg_pods_rules(c);
        bool held = c->state.hold.mode != LKG_HOLD_FREE; /* what is held is not on trial */
        struct lkg_pods *pods = c->pods;
        LKG_CLEANUP(lkg_freep) bool *decided = NULL;
        struct lkg_error err = { 0 };
        int r = 0;

        if (!c->dynamic || !c->active)
                return;
        for (size_t i = 0; i < pods->n_items; i++) {
                struct lkg_pod *pod = &pods->items[i];

                if (held)
                        pod->trial = (struct lkg_pod_trial){ .state = pod->facts.is_good ? LKG_POD_GOOD
                                                                                         : LKG_POD_UNTRIED };
                else
                        pod->trial = lkg_pod_follow(pod->trial, &pod->facts, &rules, now_ns);
        }
        if (held)
                return;
        (void)decide(pods, &rules, now_ns, &decided);
        for (size_t i = 0; i < pods->n_items; i++) {
                struct lkg_pod *pod = &pods->items[i];

                if (decided[i] && pod->trial.state == LKG_POD_FAILED)
                        r = condemn(&telling, pod, &err) < 0 ? -EIO : r;
                else if (decided[i])
                        pass(&telling, pod);
        }
        if (r >= 0 && !publishing) /* a writer waits, and nobody relies on it yet */
                r = save_good(c, now_ns, &err);
        if (r < 0)
                lkg_log(LOG_ERR, &fields, "cannot save what became of a trial: %s", err.message);
        c->due.trial_failed_ns = r < 0 ? now_ns : 0;
}

uint64_t lkg_pods_deadline(const struct lkg_component *c)
{
        const struct lkg_pod_rules rules = lkg_pods_rules(c);
        LKG_CLEANUP(lkg_freep) bool *decided = NULL;
        uint64_t now_ns = lkg_boottime_ns(), due;

        if (c->due.trial_failed_ns)
                return c->due.trial_failed_ns + 5 * LKG_NSEC_PER_SEC;
        due = decide(c->pods, &rules, now_ns, &decided);
        if (now_ns < settled_at(c))
                due = lkg_earlier(due, settled_at(c));
        for (size_t i = 0; i < c->pods->n_items; i++)
                due = lkg_earlier(due,
                                  lkg_pod_due(&c->pods->items[i].trial, &c->pods->items[i].facts, &rules));
        return due;
}
