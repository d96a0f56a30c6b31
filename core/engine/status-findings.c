/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<component>/findings and findings.json: the same findings, for people and for programs. A line of text cannot be taken
 * apart again: a file name may hold whatever separates its parts.
 */
#include "engine-internal.h"
#include "status.h"

typedef void put_fn(const struct lkg_report *report, struct lkg_buf *buf);

static void put_text(const struct lkg_report *report, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        text = lkg_report_format(report, &size);
        if (text)
                lkg_buf_append(buf, text, size);
        else
                buf->failed = true;
}

static void put_member(struct lkg_buf *buf, const char *name, const char *text)
{
        lkg_buf_printf(buf, ",\"%s\":", name);
        lkg_buf_json_string(buf, text, strlen(text));
}

/* Each with a comma before it. */
static void put_json(const struct lkg_report *report, struct lkg_buf *buf)
{
        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                lkg_buf_printf(buf, ",\n{\"severity\":\"%s\",\"code\":\"LKG%04u\"",
                               lkg_severity_name(f->severity), f->code);
                put_member(buf, "text", f->text);
                if (f->file)
                        put_member(buf, "file", f->file);
                if (f->file && f->line)
                        lkg_buf_printf(buf, ",\"line\":%u,\"column\":%u", f->line,
                                       f->column ? f->column : 1);
                lkg_buf_putc(buf, '}');
        }
}

/*
 * Of the local layers that a remote configuration hides: what would be wrong after a rollback. What is wrong with a drop-in is
 * the same over both bases, and was said.
 */
static void local_errors(const struct lkg_component *c, struct lkg_report *errors)
{
        const struct lkg_report *report = &c->local.candidate->report;

        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (f->code == LKG_BASE_MISSING)
                        lkg_report_add(
                                errors, LKG_WARNING, f->code, &(struct lkg_where){ .file = f->file },
                                "the base does not exist; a remote configuration stands in its place, but a "
                                "reset to local would be refused: put it back, or write base: \"\" for this "
                                "component if there is to be none");
                else if (f->severity == LKG_ERROR && !f->incomplete &&
                         !(c->candidate && lkg_report_has(&c->candidate->report, f)))
                        lkg_report_add_copy(errors, f);
        }
}

static void put_local(const struct lkg_component *c, put_fn *put, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report errors = LKG_REPORT_INIT;

        local_errors(c, &errors);
        put(&errors, buf);
}

static void put_layers_cut(const struct lkg_component *c, put_fn *put, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;

        if (!c->layers_cut)
                return;
        lkg_report_add(&report, LKG_NOTE, 4010, NULL,
                       "layers/%s does not show every layer: too many, or too large", c->config->name);
        put(&report, buf);
}

/*
 * The stack of a component whose base is our own copy has none, and takes that for what is wanted. What is true of it stands in
 * c->findings.
 */
static void put_candidate(const struct lkg_component *c, put_fn *put, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report copy = LKG_REPORT_INIT;
        const struct lkg_report *report = &c->candidate->report;

        if (!c->base_is_fallback) {
                put(report, buf);
                return;
        }
        for (size_t i = 0; i < report->n_findings; i++)
                if (report->findings[i].code != LKG_NO_BASE)
                        lkg_report_add_copy(&copy, &report->findings[i]);
        copy.n_dropped = report->n_dropped;
        put(&copy, buf);
}

/* Those that stand behind the layers' own. */
#define OTHERS_MAX 6

static size_t others(const struct lkg_component *c, const struct lkg_report *node,
                     const struct lkg_report *ret[static OTHERS_MAX])
{
        const struct lkg_report *reports[OTHERS_MAX] = {
                &c->remote_findings, c->api ? &c->api->findings : NULL,
                &c->findings,        &c->fallback_findings,
                &c->facts_findings,  node,
        };
        size_t n = 0;

        for (size_t i = 0; i < OTHERS_MAX; i++)
                if (reports[i])
                        ret[n++] = reports[i];
        return n;
}

void lkg_status_count_findings(const struct lkg_component *c, const struct lkg_report *node,
                               size_t ret[static _LKG_SEVERITY_MAX])
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report local = LKG_REPORT_INIT;
        const struct lkg_report *reports[OTHERS_MAX];
        size_t n = others(c, node, reports);

        if (c->base && c->local.candidate)
                local_errors(c, &local);
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++) {
                ret[s] = local.n_severity[s] + (c->candidate ? c->candidate->report.n_severity[s] : 0);
                for (size_t i = 0; i < n; i++)
                        ret[s] += reports[i]->n_severity[s];
        }
}

/* Return: how many were only counted. */
static size_t put_all(const struct lkg_status_context *x, put_fn *put, struct lkg_buf *buf)
{
        const struct lkg_component *c = x->component;
        const struct lkg_report *reports[OTHERS_MAX];
        size_t n_dropped = 0, n = others(c, x->findings, reports);

        if (c->candidate) {
                put_candidate(c, put, buf);
                n_dropped = c->candidate->report.n_dropped;
        }
        if (c->base && c->local.candidate)
                put_local(c, put, buf);
        for (size_t i = 0; i < n; i++) {
                put(reports[i], buf);
                n_dropped += reports[i]->n_dropped;
        }
        put_layers_cut(c, put, buf);
        return n_dropped;
}

void lkg_status_render_findings(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        (void)put_all(x, put_text, buf);
}

void lkg_status_render_findings_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf list = LKG_BUF_INIT;
        size_t n_dropped = put_all(x, put_json, &list);

        lkg_buf_printf(buf, "{\"schemaVersion\":1,\"notListed\":%zu,\"findings\":[", n_dropped);
        if (list.size > 0) /* the first one needs no comma */
                lkg_buf_append(buf, list.data + 1, list.size - 1);
        lkg_buf_puts(buf, "]}\n");
        buf->failed |= lkg_buf_failed(&list);
}
