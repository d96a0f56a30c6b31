/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One component: from its layers to a verdict, and what is recorded about the served generation. See
 * component.h.
 */
#include <inttypes.h>
#include <stdarg.h>

#include <lkg/publication.h>
#include <lkg/documents.h>

#include <lkg/component.h>

/* ---- setup ---- */

/* Where a value can be changed: the first two layers that are configured. */
static void put_places(struct lkg_buf *buf, const struct lkg_config_component *c)
{
        const struct {
                const char *name, *end;
        } places[] = { { c->dropin_dir, c->is_pods ? "/*" : "/*.conf" },
                       { c->base, strcmp(c->base, c->file) == 0 ? ".base" : "" },
                       { c->instance, "" } };
        unsigned n = 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(places) && n < 2; i++)
                if (*places[i].name)
                        lkg_buf_printf(buf, n++ ? " (or %s%s" : "%s%s", places[i].name, places[i].end);
        if (n != 1)
                lkg_buf_puts(buf, n ? ")" : "the remote configuration");
}

static char *make_hint(const struct lkg_config *config, const struct lkg_config_component *c)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf places = LKG_BUF_INIT;
        const char *top = config->virtual_dir;
        char *hint;

        put_places(&places, c);
        hint = lkg_format(LKG_GENERATED_BY ": change %s; see %s%sstatus/%s/origin.", lkg_buf_text(&places),
                          top, *top ? "/" : "", c->name);
        lkg_blank_hidden(hint, strlen(hint), '?'); /* a name may hold a line break; a comment must not */
        return hint;
}

static bool headerless(const struct lkg_config_component *c)
{
        const char *name = strrchr(c->instance, '/');

        return c->instance_set && strcmp(name ? name + 1 : c->instance, "instance-config.yaml") == 0;
}

struct lkg_stack_config lkg_component_stack_config(const struct lkg_config *config,
                                                   const struct lkg_config_component *k, int source_fd,
                                                   const char *source_path)
{
        return (struct lkg_stack_config){
                .component = k->name,
                .source_fd = source_fd,
                .source_path = source_path,
                .links_beneath = config->layer_links == LKG_LINKS_BENEATH,
                .base = k->base,
                .base_wanted = k->base_set ? k->base : "",
                .refuse_generated = true,
                .base_is_view_name = strcmp(k->base, k->file) == 0,
                .dropin_dir = k->dropin_dir,
                .dropin_dir_required = k->dropin_dir_set,
                .instance = k->instance,
                .instance_required = k->instance_set,
                .patches_dir = k->patches_dir,
                .patches_target = "kubeletconfiguration",
                .kind = k->is_pods ? "" : k->kind,
                .api_version = k->api_version,
                .headerless_instance = headerless(k),
                .manifests = k->is_pods,
                .max_dropins = k->max_dropins,
                .max_bytes = k->max_layer_bytes,
        };
}

/*
 * A digest of the judge's inputs. Only the digest is kept, because a command line may contain credentials.
 */
static void digest_of_facts(const struct lkg_component *c, char ret[static LKG_SHA256_HEX])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(&buf, "%u %d", c->line.release, (int)c->config->startup_rules);
        for (size_t i = 0; i < c->line.words.n_items; i++) {
                lkg_buf_putc(&buf, '\0');
                lkg_buf_puts(&buf, c->line.words.items[i]);
        }
        (void)lkg_need(lkg_sha256_hex(buf.data, buf.size, ret));
}

static int admit(const struct lkg_content *content, char **ret_why, void *userdata)
{
        const struct lkg_component *c = userdata;
        char by[LKG_SHA256_HEX] = "";

        if (content->what == LKG_ADMIT_TOGETHER)
                digest_of_facts(c, by);
        return lkg_poison_admit(c->env->poison, c->config->name, content, by, ret_why);
}

static void finished(void *userdata)
{
        const struct lkg_component *c = userdata;

        lkg_poison_finished(c->env->poison);
}

static void judged(const char *file, const char *sha256, void *userdata)
{
        const struct lkg_component *c = userdata;

        lkg_poison_judged(c->env->poison, c->config->name, file, sha256);
}

struct lkg_admission lkg_component_admission(const struct lkg_component *c)
{
        return (struct lkg_admission){
                .admit = admit, .finished = finished, .judged = judged, .userdata = (void *)c
        };
}

const char *lkg_component_wanted_base(const struct lkg_component *c)
{
        const char *base = c->config->base;

        return c->config->base_set || strcmp(base, c->state.base) == 0 ? base : "";
}

void lkg_component_note_base(struct lkg_component *c)
{
        const char *base = c->config->base;

        if (!c->active || *c->active->source || !c->active->has_base || !*base ||
            strcmp(c->state.base, base) == 0 || strlen(base) >= sizeof(c->state.base))
                return;
        (void)strcpy(c->state.base, base);
        c->due.record = true;
        lkg_stack_want_base(c->stack, base);
}

size_t lkg_component_local_errors(const struct lkg_component *c)
{
        const struct lkg_candidate *local = lkg_component_local(c);
        size_t n = local ? local->report.n_severity[LKG_ERROR] : 0;

        for (size_t i = 0; c->base && local && i < local->report.n_findings; i++) {
                const struct lkg_finding *f = &local->report.findings[i];

                n -= f->code == LKG_BASE_MISSING || (f->severity == LKG_ERROR && f->incomplete);
        }
        return n;
}

size_t lkg_component_errors_in(const struct lkg_report *report, const char *file, bool *ret_syntax)
{
        size_t n = 0;

        *ret_syntax = false;
        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (f->severity != LKG_ERROR || f->incomplete || !f->file || strcmp(f->file, file) != 0)
                        continue;
                n++;
                *ret_syntax = *ret_syntax || f->code < 2000;
        }
        return n;
}

static bool is_over_remote(const struct lkg_candidate *candidate)
{
        return candidate->n_layers > 0 && candidate->layers[0].role == LKG_LAYER_REMOTE;
}

static void judge_candidate(struct lkg_candidate *candidate, void *userdata)
{
        const struct lkg_component *c = userdata;

        lkg_candidate_judge(candidate, c->judges[is_over_remote(candidate)], c->names.hint);
}

static void new_stack(struct lkg_component *c)
{
        const struct lkg_component_env *env = c->env;
        struct lkg_stack_config config =
                lkg_component_stack_config(env->config, c->config, env->source_fd, env->source_path);
        const struct lkg_admission admission = lkg_component_admission(c);

        config.base_wanted = lkg_component_wanted_base(c);
        if (c->base_is_fallback)
                config.base = "";
        c->stack = lkg_stack_new(&config);
        if (c->config->is_pods)
                lkg_stack_set_unsettled(c->stack, lkg_pods_is_unsettled, c);
        else
                lkg_stack_set_unsettled(c->stack, lkg_is_unsettled, env->settled);
        lkg_stack_set_judge(c->stack, c->config->is_pods ? lkg_pods_judge : judge_candidate, c);
        lkg_stack_set_admission(c->stack, &admission);
}

const struct lkg_config_source *lkg_component_source(const struct lkg_component *c)
{
        static const struct lkg_config_source local = { 0 };

        return c->base ? &c->base->source : &local;
}

/* The same content may have a later version by now: that is what the pointers name. */
static void name_as_today(const struct lkg_component *c, struct lkg_config_source *source)
{
        const struct lkg_pointers *p = c->dynamic ? &c->dynamic->pointers : NULL;
        const struct lkg_config_source *names[] = { p ? &p->assigned : NULL, p ? &p->active : NULL };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                if (names[i] && lkg_config_source_same_content(names[i], source)) {
                        *source = *names[i];
                        return;
                }
}

const struct lkg_config_source *lkg_component_shown(const struct lkg_component *c,
                                                    struct lkg_config_source *ret)
{
        const struct lkg_generation *g = c->active;
        const char *slash;

        *ret = *lkg_component_source(c);
        /* Nothing is served, or exactly the bytes of the followed configuration. */
        if (!g || (lkg_component_serves_candidate(c) && (*g->source || c->base)))
                return ret;
        /*
         * The source of this document before its layers became invalid, or before another source was
         * followed.
         */
        if (c->served.doc && c->served.number == g->number) {
                *ret = c->served.source;
                name_as_today(c, ret);
                return ret;
        }
        lkg_config_source_recorded(g->source, g->source_sha256, ret);
        slash = strchr(g->object, '/');
        if (!*ret->uid || !slash)
                return ret;
        (void)snprintf(ret->ns, sizeof(ret->ns), "%.*s", (int)(slash - g->object), g->object);
        (void)snprintf(ret->name, sizeof(ret->name), "%s", slash + 1);
        name_as_today(c, ret);
        return ret;
}

/* ---- the judge and its inputs ---- */

const char *lkg_component_reader(const struct lkg_config_component *k)
{
        return *k->kind || *k->api_version ? NULL : lkg_schema_reader(k->name);
}

static const struct lkg_config_component *find_pods(const struct lkg_config *config)
{
        for (size_t i = 0; i < config->n_components; i++)
                if (config->components[i].is_pods)
                        return &config->components[i];
        return NULL;
}

static void forget_pods(struct lkg_component_names *names)
{
        free(LKG_STEAL(names->pods_dir));
        free(LKG_STEAL(names->pods_source));
}

bool lkg_component_covers(const struct lkg_component_env *env)
{
        return env->mount_point && strcmp(env->mount_point, env->source_path) == 0;
}

/* The paths of static pods, as a kubelet knows them. Beside its source directory the view leaves nothing there when lkgfs is stopped. */
static void name_pods(struct lkg_component *c)
{
        const struct lkg_config_component *pods = find_pods(c->env->config);
        const char *over = c->env->source_path;

        forget_pods(&c->names);
        if (!pods || !lkg_component_covers(c->env))
                return;
        c->names.pods_dir = lkg_format("%s/%s", over, pods->file);
        c->names.pods_source = *pods->dropin_dir == '/' ? lkg_copy(pods->dropin_dir)
                                                        : lkg_format("%s/%s", over, pods->dropin_dir);
}

/* Borrows the command line. */
static struct lkg_judge_config judge_config(const struct lkg_component *c)
{
        struct lkg_judge_config config = {
                .release = c->line.release,
                .flags = (const char *const *)c->line.words.items,
                .n_flags = c->line.words.n_items,
                .flags_observed = true,
                .component = lkg_component_reader(c->config),
                .pods_dir = c->names.pods_dir,
                .pods_source = c->names.pods_source,
                .lint = true,
                .startup_refuses = c->config->startup_rules == LKG_STARTUP_REFUSE,
        };

        lkg_host_detect(&config.host);
        return config;
}

static unsigned wanted_release(const struct lkg_component *c)
{
        unsigned release = c->config->schema_release;

        if (c->pods && !release)
                return c->pods->release;
        return release || !c->facts ? release : c->facts->release;
}

unsigned lkg_component_release(const struct lkg_component *c)
{
        return lkg_release_judged(c->line.release);
}

static void new_judges(struct lkg_component *c)
{
        struct lkg_judge_config config;

        name_pods(c);
        c->line.release = wanted_release(c);
        config = judge_config(c);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(c->judges); i++)
                c->judges[i] = lkg_judge_new(&config);
}

void lkg_component_move_pods(struct lkg_component *c)
{
        struct lkg_judge_config config;

        name_pods(c);
        config = judge_config(c);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(c->judges); i++)
                lkg_judge_configure(c->judges[i], &config);
        lkg_stack_rejudge(c->stack);
}

bool lkg_component_read_pods_from(struct lkg_component *c, const char *dir)
{
        struct lkg_config_component *config = &c->env->config->components[c->index];

        if (strcmp(config->dropin_dir, dir) == 0)
                return false;
        free(config->dropin_dir);
        config->dropin_dir = lkg_copy(dir);
        lkg_stack_free(c->stack);
        new_stack(c);
        return true;
}

bool lkg_component_learn(struct lkg_component *c)
{
        static const struct lkg_strings nothing = { 0 };
        const struct lkg_line *line = c->facts ? lkg_facts_line(c->facts, NULL) : NULL;
        const struct lkg_strings *words = line ? &line->words : &nothing;
        struct lkg_strings old = c->line.words;
        struct lkg_judge_config config;

        c->due.facts = true;
        if (wanted_release(c) == c->line.release && lkg_strings_equal(words, &c->line.words))
                return false;
        (void)lkg_need(lkg_strings_copy(words, &c->line.words));
        c->line.release = wanted_release(c);
        config = judge_config(c);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(c->judges); i++)
                lkg_judge_configure(c->judges[i], &config);
        lkg_strings_deinit(&old);
        lkg_stack_rejudge(c->stack);
        return true;
}

int lkg_component_init(struct lkg_component *c, const struct lkg_component_env *env, unsigned index,
                       struct lkg_report *report, struct lkg_error *err)
{
        int r;

        *c = (struct lkg_component){
                .env = env,
                .config = &env->config->components[index],
                .index = index,
                .history = { .dirfd = -EBADF },
                .process.ended_fd = -EBADF,
        };
        c->names.hint = make_hint(env->config, c->config);
        c->names.top = lkg_format("%s%s", env->config->virtual_dir, *env->config->virtual_dir ? "/" : "");
        c->names.status_path = lkg_format("%sstatus/%s", c->names.top, c->config->name);
        c->base_is_fallback = *c->config->base && *c->config->base != '/' &&
                              lkg_fallback_is_ours(env->source_fd, c->config->base);
        r = lkg_state_load_component(env->state, c->config->name, &c->state, report);
        if (r >= 0) {
                if (c->config->is_pods)
                        c->pods = lkg_must(calloc(1, sizeof(*c->pods)));
                new_judges(c);
                new_stack(c);
                r = lkg_history_open(env->state->fd, c->config->name, &c->history, report, err);
        }
        if (r < 0) {
                lkg_component_deinit(c);
                return lkg_error_wrap(err, r, "component %s", env->config->components[index].name);
        }
        if (c->history.n_entries)
                lkg_state_at_least(env->state, c->history.entries[c->history.n_entries - 1].number);
        if (*c->state.lost)
                c->due.record = true; /* even if the record itself was lost */
        c->condition.status = c->state.status;
        c->condition.transition_ns = c->state.transition_ns;
        return 0;
}

#define SWAP(a, b)                       \
        do {                             \
                __typeof__(a) swap_ = a; \
                (a) = b;                 \
                (b) = swap_;             \
        } while (0)

static void swap_what_settings_decide(struct lkg_component *a, struct lkg_component *b)
{
        SWAP(a->config, b->config);
        SWAP(a->index, b->index);
        SWAP(a->names, b->names);
        SWAP(a->line.words, b->line.words);
        SWAP(a->line.release, b->line.release);
        SWAP(a->judges[0], b->judges[0]);
        SWAP(a->judges[1], b->judges[1]);
        SWAP(a->stack, b->stack);
        SWAP(a->pods, b->pods);
        SWAP(a->base_is_fallback, b->base_is_fallback);
}

void lkg_component_keep(struct lkg_component *c, struct lkg_component *known)
{
        SWAP(*c, *known);                    /* swap everything ... */
        swap_what_settings_decide(c, known); /* ... except this */
        if (c->pods && known->pods && !c->config->pods.source_set && !known->config->pods.source_set) {
                (void)lkg_component_read_pods_from(c, known->config->dropin_dir);
                c->pods->is_placed = known->pods->is_placed;
        }
        lkg_stack_inherit(c->stack, known->stack);
        lkg_stack_want_base(c->stack, lkg_component_wanted_base(c));
        c->due.guard = c->due.facts = true;
        c->due.fallback = true;
}

void lkg_component_deinit(struct lkg_component *c)
{
        lkg_stack_free(c->stack);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(c->judges); i++)
                lkg_judge_free(c->judges[i]);
        lkg_remote_base_free(c->base);
        lkg_remote_base_free(c->good);
        lkg_pods_free(c->pods);
        lkg_dynamic_free(c->dynamic);
        lkg_candidate_unref(c->assigned.tried_with);
        lkg_report_deinit(&c->assigned.findings);
        lkg_strings_deinit(&c->line.words);
        lkg_value_unref(c->served.doc);
        lkg_facts_free(c->facts);
        lkg_close(c->process.ended_fd);
        lkg_candidate_unref(c->candidate);
        lkg_generation_unref(c->active);
        lkg_generation_unref(c->previous);
        lkg_generation_unref(c->published);
        lkg_history_deinit(&c->history);
        lkg_report_deinit(&c->findings.engine);
        lkg_report_deinit(&c->findings.fallback);
        lkg_report_deinit(&c->findings.facts);
        free(c->faults.text);
        free(c->faults.last_error);
        forget_pods(&c->names);
        free(c->names.hint);
        free(c->names.top);
        free(c->names.status_path);
        *c = (struct lkg_component){ .history = { .dirfd = -EBADF } };
}

struct lkg_component *lkg_component_find(struct lkg_component *components, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(components[i].config->name, name) == 0)
                        return &components[i];
        return NULL;
}

struct lkg_log_fields lkg_component_log_fields(const struct lkg_component *c)
{
        return (struct lkg_log_fields){ .component = c->config->name,
                                        .generation = c->active ? c->active->number : 0 };
}

/* ---- faults and errors ---- */

static bool same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

void lkg_component_set_fault(struct lkg_component *c, const char *fmt, ...)
{
        va_list ap;
        char *text;

        va_start(ap, fmt);
        text = lkg_vformat(fmt, ap);
        va_end(ap);
        if (same_text(c->faults.text, text)) {
                free(text);
                return;
        }
        free(c->faults.text);
        c->faults.text = text;
}

void lkg_component_clear_fault(struct lkg_component *c)
{
        if (!c->faults.text)
                return;
        free(c->faults.text);
        c->faults.text = NULL;
        c->faults.of_publication = false;
}

void lkg_component_set_last_error(struct lkg_component *c, const char *text)
{
        if (same_text(c->faults.last_error, text))
                return;
        free(c->faults.last_error);
        c->faults.last_error = text ? strdup(text) : NULL;
}

void lkg_component_set_lost(struct lkg_component *c, const char *text)
{
        c->faults.lost_now = text != NULL;
        if (strcmp(c->state.lost, text ? text : "") == 0)
                return;
        (void)snprintf(c->state.lost, sizeof(c->state.lost), "%s", text ? text : "");
        c->due.record = true;
}

/* ---- candidate ---- */

/* The fallback copy under the base's name comes and goes; the stack must not see it. */
static void check_base(struct lkg_component *c)
{
        bool ours;

        if (!*c->config->base || *c->config->base == '/')
                return;
        ours = lkg_fallback_is_ours(c->env->source_fd, c->config->base);
        if (ours == c->base_is_fallback)
                return;
        c->base_is_fallback = ours;
        c->due.fallback = true; /* the copy or its mark is out of date */
        lkg_stack_set_base(c->stack, ours ? "" : c->config->base);
}

/* Only if documents themselves are on trial (trial.scope all). */
static bool is_bad_document(const struct lkg_component *c)
{
        const char *passed_over = c->dynamic ? c->dynamic->pointers.rollback.passed_over : "";
        const char *sha256 = c->candidate->sha256;

        return c->dynamic && c->dynamic->scope_all && *sha256 &&
               (lkg_dynamic_bad_document(c->dynamic, sha256) || strcmp(passed_over, sha256) == 0 ||
                (!lkg_component_serves_candidate(c) && strcmp(passed_over, LKG_PASSED_OVER_UNKNOWN) == 0));
}

enum lkg_verdict lkg_component_verdict(const struct lkg_component *c)
{
        return c->candidate
                       ? lkg_decide(&c->state.hold, c->candidate->state, lkg_component_serves_candidate(c),
                                    is_bad_document(c), c->active ? c->active->number : 0)
                       : LKG_KEEP;
}

void lkg_component_note_served(struct lkg_component *c)
{
        if (!lkg_component_serves_candidate(c))
                return;
        lkg_value_unref(c->served.doc);
        c->served.doc = lkg_value_ref(c->candidate->doc);
        c->served.number = c->active->number;
        c->served.source = *lkg_component_source(c);
}

static bool has_same_layers(const struct lkg_candidate *a, const struct lkg_candidate *b)
{
        if (a->n_layers != b->n_layers)
                return false;
        for (size_t i = 0; i < a->n_layers; i++) {
                const struct lkg_layer_info *x = &a->layers[i], *y = &b->layers[i];

                if (strcmp(x->file, y->file) != 0 || !x->doc != !y->doc ||
                    (x->doc && !lkg_value_equal(x->doc, y->doc)))
                        return false;
        }
        return true;
}

/* Also after a reload: the same layers, refused for the same reasons, are no news. */
static bool was_refused(const struct lkg_component *c, const struct lkg_candidate *candidate)
{
        return c->candidate && c->candidate->state == LKG_CANDIDATE_INVALID &&
               has_same_layers(c->candidate, candidate) &&
               lkg_report_equal(&c->candidate->report, &candidate->report);
}

static void log_refusal(const struct lkg_component *c, const struct lkg_candidate *candidate)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const size_t n_errors = candidate->report.n_severity[LKG_ERROR];
        const struct lkg_finding *f = lkg_report_first_error(&candidate->report);
        struct lkg_where where;
        char place[PATH_MAX];

        if (!f)
                return;
        where = (struct lkg_where){ f->file, f->line, f->column };
        (void)lkg_where_text(&where, place, sizeof(place));
        lkg_log(LOG_WARNING, &fields, "refused, %zu error%s, the first: %s%s [LKG%04u]", n_errors,
                n_errors == 1 ? "" : "s", place, f->text, f->code);
}

static void note_refused(struct lkg_component *c, const struct lkg_candidate *candidate)
{
        if (!c->served.rejected_ns)
                c->served.rejected_ns = lkg_realtime_ns();
        if (was_refused(c, candidate))
                return;
        c->counts.refused++;
        log_refusal(c, candidate);
}

/* Takes over @candidate. Return: 1: it is another one; 0. */
static int take_candidate(struct lkg_component *c, struct lkg_candidate *candidate)
{
        struct lkg_candidate *before = c->candidate;

        if (before == candidate) {
                lkg_candidate_unref(candidate);
                return 0;
        }
        if (!before || before->schema != candidate->schema ||
            before->has_dropin_dir != candidate->has_dropin_dir)
                c->due.facts = true;
        if (candidate->state == LKG_CANDIDATE_INVALID)
                note_refused(c, candidate);
        else
                c->served.rejected_ns = 0;
        c->candidate = candidate;
        lkg_candidate_unref(before);
        return 1;
}

/* Over the base that is followed, unless the local one shows that the name of the view is taken. */
static int look_over_base(struct lkg_component *c, struct lkg_error *err)
{
        struct lkg_candidate *local = NULL, *candidate = NULL;
        int r = lkg_component_over(c, NULL, &local, err);

        if (r >= 0 && c->base && local->state != LKG_CANDIDATE_NAME_TAKEN)
                r = lkg_component_over(c, c->base, &candidate, err);
        else if (r >= 0)
                candidate = lkg_candidate_ref(local);
        lkg_candidate_unref(local);
        return r < 0 ? r : take_candidate(c, candidate);
}

int lkg_component_over(const struct lkg_component *c, const struct lkg_remote_base *base,
                       struct lkg_candidate **ret, struct lkg_error *err)
{
        const struct lkg_stack_remote remote =
                base ? lkg_remote_base_stack(base) : (struct lkg_stack_remote){ 0 };

        return lkg_stack_over(c->stack, &remote, ret, err);
}

struct lkg_candidate *lkg_component_local(const struct lkg_component *c)
{
        struct lkg_candidate *local = NULL;

        if (!c->base)
                return c->candidate;
        (void)lkg_component_over(c, NULL, &local, NULL);
        lkg_candidate_unref(local); /* the stack keeps it until the next look */
        return local;
}

int lkg_component_refresh(struct lkg_component *c, const struct lkg_touched *touched, struct lkg_error *err)
{
        int r;

        check_base(c);
        if (c->pods)
                lkg_pods_refresh(c);
        r = lkg_stack_look(c->stack, touched->everything ? NULL : (const char *const *)touched->paths,
                           touched->n_paths, err);
        return r < 0 ? r : look_over_base(c, err);
}

void lkg_component_follow(struct lkg_component *c, struct lkg_remote_base *base)
{
        lkg_remote_base_free(c->base);
        c->base = base;
        lkg_component_look_again(c);
}

void lkg_component_look_again(struct lkg_component *c)
{
        struct lkg_error err = { 0 };
        int r;

        if (c->pods)
                lkg_pods_refresh(c);
        r = look_over_base(c, &err);
        if (r < 0 && r != -EAGAIN) /* the first look is still to come */
                lkg_component_set_fault(c, "failed to read the layers: %s", strerror(-r));
}

/* ---- watching ---- */

/*
 * If the base is our own fallback copy, the stack has no base and does not watch that path; a file that
 * replaces the copy must still be noticed.
 */
static void watch_fallback(const struct lkg_component *c, struct lkg_watch *watch)
{
        LKG_CLEANUP(lkg_freep) char *dir;
        const char *slash = strrchr(c->config->base, '/'), *name = slash ? slash + 1 : c->config->base;
        struct lkg_stack_watch wanted = { .names = &name, .n_names = 1 };

        wanted.path = dir = lkg_format("%s%s%.*s", c->env->source_path, slash ? "/" : "",
                                       slash ? (int)(slash - c->config->base) : 0, c->config->base);
        lkg_watch_add(watch, &wanted);
}

void lkg_component_watch(const struct lkg_component *c, struct lkg_watch *watch)
{
        const struct lkg_stack_watch *wanted;
        size_t n = lkg_stack_watches(c->stack, &wanted);

        for (size_t i = 0; i < n; i++)
                lkg_watch_add(watch, &wanted[i]);
        if (c->base_is_fallback)
                watch_fallback(c, watch);
}

/* ---- what is served ---- */

void lkg_component_set_active(struct lkg_component *c, struct lkg_generation *generation)
{
        if (generation == c->active)
                return;
        lkg_generation_unref(c->previous);
        c->previous = c->active;
        c->active = lkg_generation_ref(generation);
}

void lkg_component_serve_again(struct lkg_component *c, struct lkg_generation *generation)
{
        lkg_component_set_active(c, generation);
        c->served.from_disk = false;
}

bool lkg_component_note_published(struct lkg_component *c)
{
        if (c->published == c->active)
                return false;
        lkg_generation_unref(c->published);
        c->published = lkg_generation_ref(c->active);
        return true;
}

struct lkg_value *lkg_component_effective(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        const struct lkg_text *text = c->active ? &c->active->document : NULL;
        struct lkg_source *source;
        char layer[40];
        int r;

        if (!text || !c->judges[0] || c->pods)
                return NULL;
        if (lkg_component_serves_candidate(c))
                return lkg_value_ref(c->candidate->effective);
        if (c->served.doc && c->served.number == c->active->number)
                return lkg_judge_document(c->judges[0], c->served.doc);
        (void)snprintf(layer, sizeof(layer), "generation %llu", (unsigned long long)c->active->number);
        source = lkg_source_new(layer, c->config->file);
        r = lkg_decode_own(text->data, text->size, 0, source, &doc);
        lkg_source_unref(source);
        return r < 0 ? NULL : lkg_judge_document(c->judges[0], doc);
}

bool lkg_component_served_has_table(const struct lkg_component *c)
{
        const char *kind = c->served.doc ? lkg_map_get_string(c->served.doc, "kind") : NULL;
        const struct lkg_schema *schema = NULL;

        return !kind || lkg_schema_get(kind, lkg_map_get_string(c->served.doc, "apiVersion"),
                                       lkg_component_release(c), &schema) >= 0;
}

const char *lkg_component_waiting(const struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;

        if (d && *c->slots.words)
                return c->slots.words;
        return d && d->desired == LKG_DESIRED_REMOTE && *d->waiting ? d->waiting : NULL;
}

uint64_t lkg_component_try_deadline(const struct lkg_component *c)
{
        uint64_t now = lkg_boottime_ns(), at = c->state.hold.try_deadline_ns;
        uint64_t wall = lkg_realtime_ns() + (at > now ? at - now : 0);

        return (wall + LKG_NSEC_PER_SEC / 2) / LKG_NSEC_PER_SEC * LKG_NSEC_PER_SEC;
}
