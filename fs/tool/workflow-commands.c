/* SPDX-License-Identifier: Apache-2.0 */
/* Workflow commands of GitHub Actions, one line for each finding: `::error file=F,line=L,col=C,title=T::message`. */
#include "annotations.h"

/* In a property a colon or a comma would end it; in both, a line break would end the command. */
static void put_escaped(struct lkg_buf *buf, const char *text, bool property)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf clean = LKG_BUF_INIT;

        lkg_buf_utf8(&clean, text, strlen(text));
        lkg_buf_putc(&clean, '\0');
        for (const char *p = clean.data; p && *p; p++) {
                if (*p == '%' || *p == '\r' || *p == '\n' || (property && (*p == ':' || *p == ',')))
                        lkg_buf_printf(buf, "%%%02X", (unsigned char)*p);
                else
                        lkg_buf_putc(buf, *p);
        }
}

static void put_file(struct lkg_annotations *a, const char *path)
{
        lkg_buf_puts(&a->lines, "file=");
        put_escaped(&a->lines, lkg_annotations_path(a, path), true);
        lkg_buf_putc(&a->lines, ',');
}

static const char *title_of(unsigned code)
{
        for (size_t i = 0; i < lkg_n_finding_kinds; i++)
                if (lkg_finding_kinds[i].code == code)
                        return lkg_finding_kinds[i].title;
        return "";
}

static void put_finding(struct lkg_annotations *a, const char *place, const struct lkg_finding *f)
{
        static const char *const commands[_LKG_SEVERITY_MAX] = {
                [LKG_ERROR] = "error",
                [LKG_WARNING] = "warning",
                [LKG_NOTE] = "notice",
        };
        const char *file = f->file ? f->file : place;

        lkg_buf_printf(&a->lines, "::%s ", commands[f->severity]);
        if (file)
                put_file(a, file);
        if (f->file && f->line)
                lkg_buf_printf(&a->lines, "line=%u,col=%u,", f->line, f->column ? f->column : 1);
        lkg_buf_printf(&a->lines, "title=LKG%04u ", f->code);
        put_escaped(&a->lines, title_of(f->code), true);
        lkg_buf_puts(&a->lines, "::");
        put_escaped(&a->lines, f->text, false);
        lkg_buf_putc(&a->lines, '\n');
}

void lkg_workflow_add(struct lkg_annotations *a, const char *place, const struct lkg_report *report)
{
        for (size_t i = 0; i < report->n_findings; i++)
                put_finding(a, place, &report->findings[i]);
}

void lkg_workflow_fail(struct lkg_annotations *a, const char *place, const char *message)
{
        lkg_buf_puts(&a->lines, "::error ");
        if (place)
                put_file(a, place);
        lkg_buf_puts(&a->lines, "title=lkgfs check::");
        put_escaped(&a->lines, message, false);
        lkg_buf_putc(&a->lines, '\n');
}
