/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renderers of the status files: what the engine knows -> text. Pure; absolute times only, so that a file stays true
 * while it is not rendered again; no value of a document in a fact file, no secret anywhere.
 */
#include <inttypes.h>

#include <lkg-config.h>
#include <lkg/publication.h>
#include <lkg/render.h>
#include <lkg/schema.h>

#include "status.h"

static void put_json(struct lkg_buf *buf, const char *text)
{
        lkg_buf_json_string(buf, text, strlen(text));
}

static void put_time(struct lkg_buf *buf, uint64_t ns)
{
        char text[21];

        lkg_format_rfc3339(ns, text);
        lkg_buf_puts(buf, text);
}

static const struct lkg_generation *active(const struct lkg_status_context *x)
{
        return x->component->active;
}

static void render_condition(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_condition *c = &x->component->condition;

        lkg_buf_printf(buf, "%s %s: %s\n", lkg_condition_status_name(c->status), c->reason, c->message);
}

static void render_condition_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_condition *c = &x->component->condition;

        lkg_buf_printf(buf, "{\"schemaVersion\":1,\"type\":\"ConfigOK\",\"status\":\"%s\",\"reason\":",
                       lkg_condition_status_name(c->status));
        put_json(buf, c->reason);
        lkg_buf_puts(buf, ",\"message\":");
        put_json(buf, c->message);
        lkg_buf_puts(buf, ",\"lastTransitionTime\":\"");
        put_time(buf, c->transition_ns);
        lkg_buf_puts(buf, "\"}\n");
}

/* What the NodeConfigStatus field `error` says; empty when there is none. A hint for people, never a value. */
static const char *error_text(const struct lkg_component *c)
{
        if (c->candidate && c->candidate->state == LKG_CANDIDATE_INVALID)
                return "failed to validate config, see status findings for details";
        if (c->candidate && c->candidate->state == LKG_CANDIDATE_NAME_TAKEN)
                return "name taken: a kubeconfig stands under the name of the view file";
        return c->fault ? c->fault : "";
}

static void render_error(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const char *text = error_text(x->component);

        lkg_buf_printf(buf, "%s%s", text, *text ? "\n" : "");
}

static void put_source(struct lkg_buf *buf, const char *name, const struct lkg_generation *g)
{
        lkg_buf_printf(buf, ",\"%s\":", name);
        if (!g) {
                lkg_buf_puts(buf, "null");
                return;
        }
        lkg_buf_printf(buf,
                       "{\"local\":\"%s\",\"source\":\"local@%.12s\",\"generation\":%" PRIu64
                       ",\"sha256\":\"%s\"}",
                       lkg_local_word(g->has_base), g->sha256, g->number, g->sha256);
}

static void render_config_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;

        lkg_buf_puts(buf, "{\"schemaVersion\":1");
        put_source(buf, "assigned", c->active);
        put_source(buf, "active", c->active);
        put_source(buf, "lastKnownGood", c->active);
        lkg_buf_puts(buf, ",\"error\":");
        put_json(buf, error_text(c));
        if (c->rejected_ns) {
                lkg_buf_puts(buf, ",\"rejected\":{\"source\":\"local\",\"reason\":");
                put_json(buf, c->condition.reason);
                lkg_buf_puts(buf, ",\"time\":\"");
                put_time(buf, c->rejected_ns);
                lkg_buf_puts(buf, "\"}");
        }
        lkg_buf_puts(buf, "}\n");
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

/* Local configuration counts as good, so assigned, active and last known good are one word until a remote exists. */
static void render_local_word(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        if (active(x))
                lkg_buf_printf(buf, "%s\n", lkg_local_word(active(x)->has_base));
}

static void put_report(const struct lkg_report *report, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        text = lkg_report_format(report, &size);
        if (text)
                lkg_buf_append(buf, text, size);
        else
                buf->failed = true;
}

static void render_findings(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        if (x->component->candidate)
                put_report(&x->component->candidate->report, buf);
        put_report(&x->component->findings, buf);
        put_report(&x->component->fallback_findings, buf);
        put_report(&x->component->facts_findings, buf);
        put_report(x->findings, buf);
        if (x->component->layers_cut)
                lkg_buf_printf(
                        buf, "note: layers/%s does not show every layer: too many, or too large [LKG4010]\n",
                        x->component->config->name);
}

static void render_origin(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        if (active(x))
                lkg_buf_append(buf, active(x)->origin.data, active(x)->origin.size);
}

/* Where the marks `flag ...` come from; never the line itself. */
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

        if (lkg_component_effective(c, &effective) < 0) {
                buf->failed = true;
                return;
        }
        if (!effective)
                return;
        masked = lkg_mask_secrets(effective);
        if (!masked) {
                buf->failed = true;
                return;
        }
        lkg_buf_printf(buf,
                       "# What the component runs with: generation %" PRIu64 ", defaults of release %s, %s; "
                       "behind each value where it comes from.\n",
                       c->active->number, lkg_release_text(lkg_component_release(c), release),
                       flags_text(c));
        lkg_effective_render(masked, buf);
}

static void render_last_error(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        if (x->component->last_error)
                lkg_buf_printf(buf, "%s\n", x->component->last_error);
}

/* From the generation before to the active one; secrets are masked in both. */
static void render_diff(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_generation *a = x->component->previous, *b = active(x);
        char a_name[40], b_name[40];

        if (!a || !b || a == b)
                return;
        (void)snprintf(a_name, sizeof(a_name), "generation %" PRIu64, a->number);
        (void)snprintf(b_name, sizeof(b_name), "generation %" PRIu64, b->number);
        if (lkg_render_diff(a_name, lkg_generation_shown(a)->data, lkg_generation_shown(a)->size, b_name,
                            lkg_generation_shown(b)->data, lkg_generation_shown(b)->size, buf) < 0)
                buf->failed = true;
}

/* ---- metrics: bounded labels only, never a value, a file name or a message ---- */

static void put_metric(struct lkg_buf *buf, const char *name, const char *type, const char *help)
{
        lkg_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(struct lkg_buf *buf, const char *text)
{
        for (const char *p = text; *p; p++) {
                if (*p == '\\' || *p == '"')
                        lkg_buf_putc(buf, '\\');
                if (*p == '\n')
                        lkg_buf_puts(buf, "\\n");
                else
                        lkg_buf_putc(buf, *p);
        }
}

static void put_gauge(struct lkg_buf *buf, const char *name, const char *type, const char *help,
                      const struct lkg_component *c, uint64_t value)
{
        put_metric(buf, name, type, help);
        lkg_buf_printf(buf, "%s{component=\"", name);
        put_label(buf, c->config->name);
        lkg_buf_printf(buf, "\"} %" PRIu64 "\n", value);
}

static void put_config_info(struct lkg_buf *buf, const struct lkg_component *c)
{
        static const char *const roles[] = { "assigned", "active", "lkg" };

        put_metric(buf, "lkgfs_config_info", "gauge", "Configuration in each role; the value is always 1.");
        for (size_t i = 0; c->active && i < LKG_ARRAY_SIZE(roles); i++) {
                lkg_buf_puts(buf, "lkgfs_config_info{component=\"");
                put_label(buf, c->config->name);
                lkg_buf_printf(buf, "\",role=\"%s\",source_id=\"local@%.12s\"} 1\n", roles[i],
                               c->active->sha256);
        }
}

static void put_findings(struct lkg_buf *buf, const struct lkg_status_context *x)
{
        const struct lkg_component *c = x->component;

        put_metric(buf, "lkgfs_findings", "gauge", "Findings about the layers, by severity.");
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++) {
                size_t n = c->findings.n_severity[s] + c->fallback_findings.n_severity[s] +
                           c->facts_findings.n_severity[s] + x->findings->n_severity[s] +
                           (c->candidate ? c->candidate->report.n_severity[s] : 0);

                lkg_buf_puts(buf, "lkgfs_findings{component=\"");
                put_label(buf, c->config->name);
                lkg_buf_printf(buf, "\",severity=\"%s\"} %zu\n", lkg_severity_name((enum lkg_severity)s), n);
        }
}

static void render_metrics(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;

        put_metric(buf, "lkgfs_build_info", "gauge", "Version of lkgfs; the value is always 1.");
        lkg_buf_printf(buf, "lkgfs_build_info{version=\"%s\"} 1\n", LKG_VERSION);
        put_config_info(buf, c);
        put_gauge(buf, "lkgfs_config_error", "gauge", "1 while the newest configuration is refused.", c,
                  *error_text(c) != '\0');
        put_gauge(buf, "lkgfs_condition_ok", "gauge", "1 while the condition ConfigOK is True.", c,
                  c->condition.status == LKG_CONDITION_TRUE);
        put_gauge(buf, "lkgfs_generation", "gauge", "Number of the generation that is served, 0 for none.",
                  c, c->active ? c->active->number : 0);
        put_gauge(buf, "lkgfs_generation_timestamp_seconds", "gauge", "When that generation was published.",
                  c, c->active ? c->active->time_ns / LKG_NSEC_PER_SEC : 0);
        put_gauge(buf, "lkgfs_held", "gauge",
                  "1 while one generation is held (hold, rollback, expired try).", c,
                  c->state.hold.mode != LKG_HOLD_FREE);
        put_gauge(buf, "lkgfs_layers", "gauge", "Layers of the newest candidate.", c,
                  c->candidate ? c->candidate->n_layers : 0);
        put_gauge(buf, "lkgfs_generations_total", "counter",
                  "Generations published since the engine started.", c, c->n_published);
        put_gauge(buf, "lkgfs_refusals_total", "counter", "Candidates refused since the engine started.", c,
                  c->n_refused);
        put_findings(buf, x);
        put_gauge(buf, "lkgfs_publication", "gauge", "Number of the publication this file belongs to.", c,
                  x->publication);
}

#define ACTIVE    LKG_DIRTY_ACTIVE
#define CANDIDATE LKG_DIRTY_CANDIDATE
#define CONDITION LKG_DIRTY_CONDITION

const struct lkg_status_file lkg_status_files[] = {
        /* name            document flags  depends                          renderer            manual */
        { "active", false, 0, ACTIVE, render_local_word,
          "what the view shows: init (a base exists) or default" },
        { "assigned", false, 0, ACTIVE, render_local_word, "what is meant to be shown, in the same words" },
        { "condition", false, 0, CONDITION, render_condition, "status, reason and message in one line" },
        { "condition.json", false, 0, CONDITION, render_condition_json, "the same as a NodeCondition" },
        { "config.json", false, 0, ACTIVE | CANDIDATE | CONDITION, render_config_json,
          "assigned, active, last known good and error in the shape of NodeConfigStatus" },
        { "diff", true, 0, ACTIVE, render_diff, "what the active generation changed, as a unified diff" },
        { "effective.yaml", true, 0, ACTIVE | CANDIDATE | LKG_DIRTY_EFFECTIVE, render_effective,
          "defaults, the served document and the component's flags, each value with where it comes from",
          true },
        { "error", false, 0, CANDIDATE | CONDITION, render_error,
          "why the newest configuration is refused, or empty" },
        { "findings", true, 0, CANDIDATE | LKG_DIRTY_FINDINGS, render_findings,
          "everything noticed about the layers, one line each" },
        { "generation", false, LKG_ENTRY_POLL, ACTIVE, render_generation,
          "number of the published document; poll(2) reports a change" },
        { "last-error", true, 0, LKG_DIRTY_LAST_ERROR, render_last_error,
          "why the last control write was refused" },
        { "last-known-good", false, 0, ACTIVE, render_local_word,
          "where a rollback leads, in the same words" },
        { "metrics.prom", false, 0, LKG_DIRTY_EVER, render_metrics,
          "metrics for node_exporter's textfile collector" },
        { "origin", true, 0, ACTIVE, render_origin, "where every value comes from, tab separated" },
        { "sha256", false, 0, ACTIVE, render_sha256, "SHA-256 of the bytes served" },
};
const size_t lkg_n_status_files = LKG_ARRAY_SIZE(lkg_status_files);

_Static_assert(LKG_ARRAY_SIZE(lkg_status_files) <= LKG_STATUS_FILES_MAX,
               "a component has a slot for each status file");
