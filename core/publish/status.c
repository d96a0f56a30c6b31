/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renderers of the status files. Pure; absolute times only, so that a file stays correct while it is not
 * rendered again; no value of a document in a fact file, no secret anywhere.
 */
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/publication.h>
#include <lkg/documents.h>
#include <lkg/schema.h>

#include "status.h"

static const struct lkg_generation *active(const struct lkg_status_context *x)
{
        return x->component->active;
}

/* " from base, 3 drop-ins, instance", where the candidate is what is served. */
static void put_layers(const struct lkg_component *c, struct lkg_buf *buf)
{
        static const struct {
                enum lkg_layer_role role;
                const char *one, *many; /* many NULL: there is one at most */
        } rows[] = {
                { LKG_LAYER_BASE, "base", NULL },         { LKG_LAYER_REMOTE, "ConfigMap", NULL },
                { LKG_LAYER_PATCH, "patch", "patches" },  { LKG_LAYER_DROPIN, "drop-in", "drop-ins" },
                { LKG_LAYER_INSTANCE, "instance", NULL }, { LKG_LAYER_MANIFEST, "manifest", "manifests" },
        };
        size_t n[_LKG_LAYER_ROLE_MAX] = { 0 };
        const char *separator = " from ";

        if (!lkg_component_serves_candidate(c))
                return;
        for (size_t i = 0; i < c->candidate->n_layers; i++)
                n[c->candidate->layers[i].role]++;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                size_t count = n[rows[i].role];

                if (count == 0)
                        continue;
                lkg_buf_puts(buf, separator);
                if (rows[i].many)
                        lkg_buf_printf(buf, "%zu ", count);
                lkg_buf_puts(buf, count == 1 || !rows[i].many ? rows[i].one : rows[i].many);
                if (rows[i].role == LKG_LAYER_REMOTE)
                        lkg_buf_printf(buf, " %s/%s", lkg_component_source(c)->ns,
                                       lkg_component_source(c)->name);
                separator = ", ";
        }
}

/* What is served, in a plain sentence; the words of the proposal follow in brackets. */
static void render_condition(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;
        const struct lkg_hold *hold = &c->state.hold;

        lkg_buf_printf(buf, "%s serving ", lkg_condition_status_name(c->condition.status));
        if (c->active)
                lkg_buf_printf(buf, "generation %" PRIu64, c->active->number);
        else
                lkg_buf_puts(buf, "nothing");
        if (c->active)
                put_layers(c, buf);
        if (lkg_component_refuses(c))
                lkg_buf_puts(buf, c->active ? ", the newest change is refused" : ", the layers are refused");
        if (hold->mode != LKG_HOLD_FREE)
                lkg_buf_puts(buf, ", held");
        else if (hold->try_phase == LKG_TRY_RUNNING)
                lkg_buf_puts(buf, ", on try");
        lkg_buf_printf(buf, "; [%s: %s]\n", c->condition.reason, c->condition.message);
}

static void render_condition_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_condition *c = &x->component->condition;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_u64(&json, "schemaVersion", 1);
        lkg_json_text(&json, "type", x->component->pods ? "StaticPodsOK" : "ConfigOK");
        lkg_json_text(&json, "status", lkg_condition_status_name(c->status));
        lkg_json_foreign(&json, "reason", c->reason);
        lkg_json_foreign(&json, "message", c->message);
        if (c->pending)
                lkg_json_foreign(&json, "pending", c->reason);
        lkg_json_time(&json, "lastTransitionTime", c->transition_ns);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}

/* The first error in status/<c>/findings. Return: was there one? */
static bool put_first_error(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_finding *first = NULL;
        struct lkg_component_reports reports;

        lkg_component_reports(x->component, x->in->findings, &reports);
        for (size_t i = 0; i < reports.n_items && !first; i++)
                first = lkg_report_first_error(reports.items[i]);
        if (first) {
                lkg_finding_format(first, buf);
                lkg_buf_putc(buf, '\n');
        }
        lkg_component_reports_deinit(&reports);
        return first != NULL;
}

/* The words of the proposal, which config.json has, only say that there are findings. */
static void render_error(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        bool in_findings;
        const char *text = lkg_component_error(x->component, &in_findings);

        if (*text && !(in_findings && put_first_error(x, buf)))
                lkg_buf_printf(buf, "%s\n", text);
}

/* Which document: 0 as @number if unknown. */
static void put_document(struct lkg_json *json, uint64_t number, const char *sha256)
{
        if (number == 0)
                return;
        lkg_json_u64(json, "generation", number);
        lkg_json_foreign(json, "sha256", sha256);
}

static void put_local(struct lkg_json *json, bool has_base, uint64_t number, const char *sha256)
{
        char id[32];

        lkg_json_text(json, "local", lkg_local_word(has_base));
        if (number) {
                (void)snprintf(id, sizeof(id), "local@%.12s", sha256);
                lkg_json_foreign(json, "source", id);
        }
}

static void put_config_map(struct lkg_json *json, const struct lkg_config_source *source)
{
        char id[LKG_SOURCE_ID_MAX + 1];

        lkg_json_map(json, "configMap", LKG_JSON_AROUND);
        lkg_json_foreign(json, "namespace", source->ns);
        lkg_json_foreign(json, "name", source->name);
        lkg_json_foreign(json, "uid", source->uid);
        lkg_json_foreign(json, "resourceVersion", source->version);
        lkg_json_foreign(json, "kubeletConfigKey", source->key);
        lkg_json_end(json);
        lkg_config_source_id(source, id);
        lkg_json_foreign(json, "source", id);
}

/* A NodeConfigSource as in NodeConfigStatus, and its document. */
static void put_source(struct lkg_json *json, const char *name, const struct lkg_config_source *source,
                       bool has_base, uint64_t number, const char *sha256)
{
        lkg_json_map(json, name, LKG_JSON_AROUND);
        if (lkg_config_source_is_local(source))
                put_local(json, has_base, number, sha256);
        else
                put_config_map(json, source);
        put_document(json, number, sha256);
        lkg_json_end(json);
}

/* Of the document that a rollback would serve, if it is local. */
static bool good_has_base(const struct lkg_status_context *x)
{
        LKG_CLEANUP(lkg_generation_unrefp)
        struct lkg_generation *good = lkg_component_good_generation(x->component);

        return good ? good->has_base : lkg_component_served_has_base(x->component);
}

/* The configuration that is avoided, by name: a wish of the proposal. */
static void put_rejected(struct lkg_json *json, const struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad = d ? lkg_bad_find(&d->bad, &lkg_component_pointers(c)->assigned) : NULL;
        bool avoided = !bad && d && lkg_component_verdict(c) == LKG_AVOID;

        if (!bad && !avoided && !c->served.rejected_ns)
                return;
        lkg_json_map(json, "rejected", LKG_JSON_AROUND);
        lkg_json_foreign(json, "source", bad ? bad->id : "local");
        lkg_json_foreign(json, "reason",
                         bad       ? bad->reason
                         : avoided ? d->pointers.rollback.reason
                                   : c->condition.reason);
        lkg_json_time(json, "time",
                      bad       ? bad->time_ns
                      : avoided ? d->pointers.rollback.time_ns
                                : c->served.rejected_ns);
        lkg_json_end(json);
}

static void render_config_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_component *c = x->component;
        const struct lkg_pointers *p = lkg_component_pointers(c);
        const struct lkg_generation *g = c->active;
        struct lkg_config_source active;
        bool is_active, base = lkg_component_local_has_base(c);
        const char *sha256 = g ? g->sha256 : "", *good_sha256;
        uint64_t number = g ? g->number : 0, good_number = lkg_component_good_document(c, &good_sha256);

        lkg_component_shown(c, &active);
        is_active = lkg_config_source_equal(&p->assigned, &active);
        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_u64(&json, "schemaVersion", 1);
        put_source(&json, "assigned", &p->assigned, base, is_active ? number : 0, sha256);
        put_source(&json, "active", &active, lkg_component_served_has_base(c), number, sha256);
        put_source(&json, "lastKnownGood", &p->good.source, good_has_base(x), good_number, good_sha256);
        lkg_json_foreign(&json, "error", lkg_component_error(c, NULL));
        put_rejected(&json, c);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}

static void render_generation(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%" PRIu64 "\n", active(x) ? active(x)->number : 0);
}

static void render_sha256(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        if (active(x))
                lkg_buf_printf(buf, "%s\n", active(x)->sha256);
}

/* @has_base: if it is local */
static void put_word(const struct lkg_status_context *x, const struct lkg_config_source *source,
                     bool has_base, struct lkg_buf *buf)
{
        char word[LKG_SOURCE_ID_MAX + 2 * LKG_IDENTIFIER_MAX + 4];

        if (!active(x) && lkg_config_source_is_local(source))
                return;
        lkg_dynamic_word(source, has_base, word);
        lkg_buf_printf(buf, "%s\n", word);
}

static void render_assigned(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        put_word(x, &lkg_component_pointers(x->component)->assigned,
                 lkg_component_local_has_base(x->component), buf);
}

static void render_active(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_generation *g = active(x);
        struct lkg_config_source shown;

        lkg_component_shown(x->component, &shown);
        if (g && lkg_config_source_is_local(&shown))
                lkg_buf_printf(buf, "%s\n", lkg_local_word(lkg_component_served_has_base(x->component)));
        else if (g)
                put_word(x, &shown, false, buf);
}

static void render_good(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        put_word(x, &lkg_component_pointers(x->component)->good.source, good_has_base(x), buf);
}

/* ---- starts ---- */

static void render_startups(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_dynamic *d = x->component->dynamic;

        lkg_json_list(&json, NULL, LKG_JSON_TIGHT);
        for (size_t i = 0; d && i < d->startups.n_items; i++)
                lkg_json_time(&json, NULL, d->startups.items[i].time_ns);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}

/* The supervisor's own text: one line for each requested restart. */
static void render_restarts(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_facts *facts = x->component->facts;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        if (facts && lkg_fact_read(facts->dirfd, LKG_FACT_RESTARTS, &text, &size) >= 0)
                lkg_buf_append(buf, text, size);
}

static void render_drift(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        lkg_component_drift(x->component, buf);
}

/*
 * The origin of the layers as they were when they last merged to the served document, as in effective.yaml:
 * a comment moves lines, and of two layers with the same value one may be removed. Unknown after a restart:
 * then as it was when the generation was made.
 */
static void render_origin(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;

        if (!c->active)
                return;
        if (c->served.doc && c->served.number == c->active->number) {
                lkg_origin_render(c->served.doc, buf);
                return;
        }
        lkg_generation_describe(c->active);
        lkg_buf_append(buf, c->active->origin.data, c->active->origin.size);
}

/* The source of the marks `flag ...`, but never the command line itself. */
static const char *flags_text(const struct lkg_component *c)
{
        const struct lkg_line *line;
        bool running = false;

        line = c->facts ? lkg_facts_line(c->facts, &running) : NULL;
        if (!line)
                return "its command line is not known";
        if (running)
                return "flags of the running process";
        return line == &c->facts->unit ? "flags of its unit" : "flags of the process that ran last";
}

static void render_effective(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *effective = NULL, *masked = NULL;
        const struct lkg_component *c = x->component;
        char release[LKG_RELEASE_TEXT_MAX];

        effective = lkg_component_effective(c);
        if (!effective)
                return;
        masked = lkg_mask_secrets(effective);
        lkg_buf_printf(
                buf,
                "# What the component runs with: generation %" PRIu64
                ", defaults of release %s, %s; a comment after each value says where it comes from.\n",
                c->active->number, lkg_release_text(lkg_component_release(c), release), flags_text(c));
        lkg_effective_render(masked, buf);
}

static void render_last_error(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        if (x->component->faults.last_error)
                lkg_buf_printf(buf, "%s\n", x->component->faults.last_error);
        else
                render_error(x, buf);
}

static void put_diff(struct lkg_generation *a, const char *a_name, struct lkg_generation *b,
                     struct lkg_buf *buf)
{
        char b_name[40];

        lkg_generation_describe(a);
        lkg_generation_describe(b);
        (void)snprintf(b_name, sizeof(b_name), "generation %" PRIu64, b->number);
        (void)lkg_render_diff(a_name, lkg_generation_shown(a)->data, lkg_generation_shown(a)->size, b_name,
                              lkg_generation_shown(b)->data, lkg_generation_shown(b)->size, buf);
}

/*
 * Compared with the last known good; if that is the active source itself, with the previous generation.
 * Secrets are masked in both.
 */
static void render_diff(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *good = NULL;
        struct lkg_generation *a = x->component->previous, *b = x->component->active;
        char a_name[40];

        if (!b)
                return;
        good = lkg_component_good_generation(x->component);
        if (good) {
                put_diff(good, "last-known-good", b, buf);
                return;
        }
        if (!a || a == b)
                return;
        (void)snprintf(a_name, sizeof(a_name), "generation %" PRIu64, a->number);
        put_diff(a, a_name, b, buf);
}

/* ---- findings: a line of text cannot be parsed reliably, because a file name may contain the separators ---- */

/* All of them, as they are shown: every note only to programs, which `lkgfs status --all` is one of. */
static void arrange(const struct lkg_status_context *x, bool all, struct lkg_report *ret)
{
        struct lkg_component_reports reports;

        lkg_component_reports(x->component, x->in->findings, &reports);
        for (size_t i = 0; i < reports.n_items; i++)
                lkg_report_append(ret, reports.items[i]);
        lkg_component_reports_deinit(&reports);
        lkg_report_arrange(ret, all);
}

static void render_findings(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        arrange(x, false, &report);
        text = lkg_report_format(&report, &size);
        lkg_buf_append(buf, text, size);
}

static void put_finding(const struct lkg_finding *f, struct lkg_json *json)
{
        char code[16];

        (void)snprintf(code, sizeof(code), "LKG%04u", f->code);
        lkg_json_map(json, NULL, LKG_JSON_AROUND);
        lkg_json_text(json, "severity", lkg_severity_name(f->severity));
        lkg_json_text(json, "code", code);
        lkg_json_foreign(json, "text", f->text);
        if (f->file)
                lkg_json_foreign(json, "file", f->file);
        if (f->file && f->line) {
                lkg_json_u64(json, "line", f->line);
                lkg_json_u64(json, "column", f->column ? f->column : 1);
        }
        lkg_json_end(json);
}

static void render_findings_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        arrange(x, true, &report);
        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_u64(&json, "schemaVersion", 1);
        lkg_json_u64(&json, "notListed", report.n_dropped);
        lkg_json_list(&json, "findings", LKG_JSON_LINES);
        for (size_t i = 0; i < report.n_findings; i++)
                put_finding(&report.findings[i], &json);
        lkg_json_end(&json);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}

/* ---- the files ---- */

static bool has_slots(const struct lkg_status_context *x)
{
        return x->remote && x->remote->slots.any;
}

static bool has_pods(const struct lkg_status_context *x)
{
        return x->component->pods;
}

static bool has_trial(const struct lkg_status_context *x)
{
        return !has_pods(x); /* each has one, in `pods` */
}

/* Has its kind a table? If it came from disk, a reader finds out. */
static bool has_effective(const struct lkg_status_context *x)
{
        const struct lkg_component *c = x->component;

        if (!active(x) || !c->judges[0])
                return false;
        return lkg_component_serves_candidate(c) ? c->candidate->schema != NULL
                                                 : lkg_component_served_has_table(c);
}

const struct lkg_status_file lkg_status_files[] = {
        /* name document flags blob renderer manual exists */
        { "active", false, 0, false, render_active,
          "what the view shows: source id and ConfigMap, or init (a base exists), or default" },
        { "assigned", false, 0, false, render_assigned, "what is meant to be shown, in the same words" },
        { "condition", false, 0, true, render_condition,
          "status, what is served in a plain sentence, and reason and message in brackets, in one line" },
        { "condition.json", false, 0, true, render_condition_json, "the same as a NodeCondition" },
        { "config.json", false, 0, false, render_config_json,
          "assigned, active, last known good and error in the shape of NodeConfigStatus" },
        { "diff", true, 0, false, render_diff,
          "from the last known good to what is active, as a unified diff; from the generation before where "
          "they are one" },
        { "drift", true, 0, false, render_drift,
          "fields in which the running process, by its start, differs from what is served: pointer, value "
          "it "
          "runs with, value served; tab separated" },
        { "effective.yaml", true, 0, false, render_effective,
          "defaults, the served document and the component's flags, each value with where it comes from",
          has_effective },
        { "error", true, 0, true, render_error,
          "why the newest configuration is refused: the first error in findings, else the reason; or "
          "empty" },
        { "findings", true, 0, false, render_findings,
          "everything noticed about the layers, one line each" },
        { "findings.json", true, 0, false, render_findings_json, "the same as JSON" },
        { "generation", false, LKG_ENTRY_POLL, true, render_generation,
          "number of the published document; poll(2) reports a change" },
        { "hold", false, 0, true, lkg_status_render_hold,
          "what keeps the view from following: hold, pin, try, rollout; since when, by whom; one key=value "
          "a "
          "line" },
        { "last-error", true, 0, false, render_last_error,
          "why the last control write was refused; if it was not, the same as error" },
        { "last-known-good", false, 0, false, render_good, "where a rollback leads, in the same words" },
        { "metrics.prom", false, 0, false, lkg_status_render_metrics,
          "metrics for node_exporter's textfile collector" },
        { "origin", true, 0, false, render_origin, "where every value comes from, tab separated" },
        { "pods", false, 0, false, lkg_status_render_pods,
          "of static pods: file, SHA-256, state of its trial, since when, and why, tab separated",
          has_pods },
        { "process", false, 0, false, lkg_status_render_process,
          "unit, newest living process, the generation it reads, version; one key=value a line" },
        { "remote", false, 0, false, lkg_status_render_remote,
          "what is known of the API server: credential, node, reference, answers, rollout; one key=value a "
          "line" },
        { "restarts", false, 0, false, render_restarts, "restarts that lkgfs asked for, one line each" },
        { "rollout", false, 0, false, lkg_status_render_rollout,
          "slots of the rollout: how many nodes try it, have it, failed; one key=value a line", has_slots },
        { "sha256", false, 0, false, render_sha256, "SHA-256 of the bytes served" },
        { "startups", false, 0, false, render_startups,
          "when the component started, the last eleven, as JSON" },
        { "trial", false, 0, false, lkg_status_render_trial,
          "state, started, deadline, prior_starts and threshold of the trial, and what its checks of health "
          "say, one "
          "key=value a line",
          has_trial },
};
const size_t lkg_n_status_files = LKG_ARRAY_SIZE(lkg_status_files);

_Static_assert(LKG_ARRAY_SIZE(lkg_status_files) <= LKG_STATUS_FILES_MAX,
               "a component has a slot for each status file");
