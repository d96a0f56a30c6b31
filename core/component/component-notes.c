/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings about the served document rather than a layer: held, tried, waiting for the rollout, without a
 * base, without any layer, or a command that was lost.
 */
#include <lkg/documents.h>

#include <lkg/component.h>

/* ---- differences between the files on disk and the pinned generation ---- */

#define DIFFERENCES_MAX 10

struct difference {
        struct lkg_buf names;
        size_t n;
};

static int add_name(const char *pointer, const struct lkg_value *a, const struct lkg_value *b,
                    void *userdata)
{
        struct difference *d = userdata;

        (void)a;
        (void)b;
        if (d->n++ >= DIFFERENCES_MAX)
                return 0;
        if (d->n > 1)
                lkg_buf_puts(&d->names, ", ");
        return lkg_pointer_text(pointer, &d->names);
}

/* Names fields only: a value may be a secret. */
static void note_difference(const struct lkg_component *c, const char *holder, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *served = NULL;
        struct lkg_report ignored = LKG_REPORT_INIT;
        struct difference d = { .names = LKG_BUF_INIT };

        if (lkg_decode(c->active->document.data, c->active->document.size,
                       lkg_detect_format(c->active->document.data, c->active->document.size), 0, NULL,
                       &ignored, &served) >= 0)
                (void)lkg_value_compare(c->candidate->doc, served, add_name, &d);
        lkg_report_deinit(&ignored);
        lkg_report_add(
                report, LKG_WARNING, 4006, NULL,
                "the try was not committed in time: the files on disk differ from generation %llu, which is "
                "held%s, in %s%s; repair them, then write off to %scontrol/%s/hold",
                (unsigned long long)c->active->number, holder, d.names.data ? d.names.data : "some fields",
                d.n > DIFFERENCES_MAX ? ", ..." : "", c->top, c->config->name);
        lkg_buf_deinit(&d.names);
}

static void note_hold(const struct lkg_component *c, struct lkg_report *report)
{
        const struct lkg_hold *hold = &c->state.hold;
        bool waits = lkg_component_verdict(c) == LKG_WAIT;
        char holder[LKG_HOLDER_MAX];

        lkg_condition_holder(&c->state.held_by, hold->mode, holder);
        if (hold->mode == LKG_HOLD_TRY_EXPIRED && waits && c->active && c->candidate && c->candidate->doc)
                note_difference(c, holder, report);
        else
                lkg_report_add(report, waits ? LKG_WARNING : LKG_NOTE, waits ? 4018 : 4019, NULL,
                               "held%s at generation %llu (%s)%s; nothing newer is served before off is "
                               "written to %scontrol/%s/hold%s",
                               holder, (unsigned long long)hold->generation, lkg_hold_mode_name(hold->mode),
                               waits ? ", and a newer one waits" : "", c->top, c->config->name,
                               hold->mode == LKG_HOLD_ROLLBACK && c->dynamic
                                       ? ", or another configuration is assigned"
                                       : "");
}

static void note_try(const struct lkg_component *c, struct lkg_report *report)
{
        const struct lkg_hold *hold = &c->state.hold;
        char until[21];

        if (hold->try_phase == LKG_TRY_ARMED) {
                lkg_report_add(
                        report, LKG_NOTE, 4015, NULL,
                        "a try of %llu s is armed: the next change is taken back unless now is written to "
                        "%scontrol/%s/commit in time",
                        (unsigned long long)(hold->try_duration_ns / LKG_NSEC_PER_SEC), c->top,
                        c->config->name);
                return;
        }
        lkg_format_rfc3339(lkg_component_try_deadline(c), until);
        lkg_report_add(report, LKG_NOTE, 4020, NULL,
                       "on try until %s, then back to generation %llu unless now is written to "
                       "%scontrol/%s/commit",
                       until, (unsigned long long)hold->try_previous, c->top, c->config->name);
}

/* Appends `/etc/kubernetes/kubelet.conf (base)`, for example; nothing if @path is not configured. */
static void put_place(struct lkg_buf *buf, const char *source_path, const char *path, const char *suffix,
                      const char *what)
{
        if (!*path)
                return;
        lkg_buf_printf(buf, "%s%s%s%s%s (%s)", buf->size ? ", " : "", *path == '/' ? "" : source_path,
                       *path == '/' ? "" : "/", path, suffix, what);
}

static void note_no_layer(const struct lkg_component *c, const char *source_path, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf places = LKG_BUF_INIT;

        put_place(&places, source_path, c->config->base, "", "base");
        put_place(&places, source_path, c->config->dropin_dir, "/*.conf", "drop-ins");
        put_place(&places, source_path, c->config->instance, "", "instance");
        lkg_buf_putc(&places, '\0');
        lkg_report_add(report, LKG_WARNING, 4021, NULL, "no layer found, so %s is not served; looked for %s",
                       c->config->file, lkg_buf_failed(&places) ? "nothing" : places.data);
}

/*
 * Our own fallback copy is in place of a base that never existed; the stack does not see it and reports
 * nothing about it.
 */
static void note_no_base(const struct lkg_component *c, struct lkg_report *report)
{
        if (!c->base_is_fallback || c->base || !c->candidate || c->candidate->n_layers == 0 ||
            c->candidate->has_base || *lkg_component_wanted_base(c))
                return;
        lkg_report_add(
                report, LKG_WARNING, LKG_NO_BASE, NULL,
                "%s has no base file (%s is only lkgfs' own copy of what is served); the other layers "
                "are merged alone",
                c->config->name, c->config->base);
}

void lkg_component_note(struct lkg_component *c, const char *source_path)
{
        struct lkg_report report = LKG_REPORT_INIT;
        const char *waiting = lkg_component_waiting(c);

        if (*c->state.lost)
                lkg_report_add(&report, LKG_WARNING, 4022, NULL,
                               "could not be kept: %s; give the command again if it is still wanted, any "
                               "command or change ends this message",
                               c->state.lost);
        if (c->state.hold.mode != LKG_HOLD_FREE)
                note_hold(c, &report);
        if (c->state.hold.try_phase != LKG_TRY_NONE)
                note_try(c, &report);
        if (waiting)
                lkg_report_add(&report, LKG_NOTE, 6009, NULL,
                               "%s; what was assigned before stays until the fleet's operator lets it go on",
                               waiting);
        if (c->candidate && c->candidate->state == LKG_CANDIDATE_NONE && !c->active)
                note_no_layer(c, source_path, &report);
        note_no_base(c, &report);
        lkg_report_deinit(&c->findings);
        c->findings = report;
}
