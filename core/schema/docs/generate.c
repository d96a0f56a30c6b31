/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time program: writes documentation out of the tables, so that the two cannot differ.
 *
 *     generate findings        lkgfs-findings(7), mdoc
 *     generate fields KIND     the fields of a kind, Markdown
 *     generate hardened        what guard.profile hardened denies: `field word` a line
 *
 * On standard output; no input. Not installed.
 */
#include <lkg/error.h>

#include "../kinds.h"

/* ---- lkgfs-findings(7) ---- */

#define COLUMNS 78

/* One word in mdoc: `words` in back quotes are bold; *quoted carries that over to the next word. */
static size_t put_word(FILE *out, const char *word, size_t size, bool first, bool *quoted)
{
        size_t columns = size;

        if (first && (*word == '.' || *word == '\''))
                (void)fputs("\\&", out); /* it would be a request */
        for (size_t i = 0; i < size; i++) {
                if (word[i] == '`') {
                        *quoted = !*quoted;
                        columns += (size_t)fprintf(out, "%s", *quoted ? "\\fB" : "\\fR");
                } else if (word[i] == '\\') {
                        columns += (size_t)fprintf(out, "\\e");
                } else if (word[i] == '-') {
                        columns += (size_t)fprintf(out, "\\-") - 1;
                } else {
                        (void)fputc(word[i], out);
                }
        }
        return columns;
}

/* Running text: broken at spaces, and after each sentence, as mdoc wants it. */
static void put_mdoc(FILE *out, const char *text)
{
        bool quoted = false;
        size_t column = 0;

        while (*text) {
                size_t size = strcspn(text, " ");
                const char *next = text + size + strspn(text + size, " ");
                bool sentence = strchr(".?!", text[size - 1]) && *next >= 'A' && *next <= 'Z';

                if (column > 0 && column + 1 + size > COLUMNS) {
                        (void)fputc('\n', out);
                        column = 0;
                }
                if (column > 0)
                        (void)fputc(' ', out);
                column += (column > 0) + put_word(out, text, size, column == 0, &quoted);
                if (sentence || !*next) {
                        (void)fputc('\n', out);
                        column = 0;
                }
                text = next;
        }
}

static const struct {
        unsigned first;
        const char *title;
} sections[] = {
        { 1000, "One document" },           { 2000, "Layers and merging" },
        { 3000, "Configuration of lkgfs" }, { 4000, "The running system" },
        { 5000, "Fields of a kind" },       { 5030, "Rules of the component" },
        { 6000, "Dynamic configuration" },
};

static void put_section_of(FILE *out, const struct lkg_finding_kind *kind, unsigned before)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(sections); i++)
                if (before < sections[i].first && kind->code >= sections[i].first &&
                    (i + 1 == LKG_ARRAY_SIZE(sections) || kind->code < sections[i + 1].first))
                        (void)fprintf(out, "%s.Ss %s\n.Bl -tag -width Ds\n", before ? ".El\n" : "",
                                      sections[i].title);
}

static void write_findings(FILE *out)
{
        unsigned before = 0;

        (void)fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n"
                    ".\\\" Written by the build out of the table of findings.\n"
                    ".Dd November 21, 2026\n.Dt LKGFS-FINDINGS 7\n.Os lkgfs\n"
                    ".Sh NAME\n.Nm lkgfs-findings\n.Nd what lkgfs finds in configurations, by code\n"
                    ".Sh DESCRIPTION\n"
                    "Everything that lkgfs has to say about a configuration is a finding:\n"
                    "one line with file, line and column, how bad it is, and a code.\n"
                    "Findings stand in\n.Pa status/COMPONENT/findings\nof the view and in the output of\n"
                    ".Ql lkgfs check .\n"
                    "An\n.Em error\nmakes the candidate invalid: it is never served.\n"
                    "A\n.Em warning\nis served, and most likely not what was meant.\n"
                    "A\n.Em note\nis only worth knowing.\n"
                    "A code never changes its meaning;\n.Ql lkgfs explain CODE\nshows the text below.\n",
                    out);
        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                const struct lkg_finding_kind *kind = &lkg_finding_kinds[i];

                put_section_of(out, kind, before);
                before = kind->code;
                (void)fprintf(out, ".It \\fBLKG%04u\\fR (%s): %s\n", kind->code,
                              lkg_severity_name(kind->severity), kind->title);
                put_mdoc(out, kind->paragraph);
                (void)fputs(".Pp\n.Em What to do :\n", out);
                put_mdoc(out, kind->advice);
        }
        (void)fputs(
                ".El\n.Sh SEE ALSO\n.Xr lkgfs 1 ,\n.Xr lkgfs.conf 5 ,\n.Xr lkgfs-view 7 ,\n.Xr lkgfsd 8\n",
                out);
}

/* ---- fields ---- */

/* A cell of a Markdown table. */
static void put_cell(FILE *out, const char *text)
{
        for (; text && *text; text++) {
                if (*text == '|' || *text == '<' || *text == '*' || *text == '_')
                        (void)fputc('\\', out);
                (void)fputc(*text, out);
        }
}

/* Joins the words of the last column with semicolons. */
static const char *separator(bool *first)
{
        const char *text = *first ? "" : "; ";

        *first = false;
        return text;
}

static void put_release(FILE *out, bool *first, const char *what, unsigned release)
{
        char text[LKG_RELEASE_TEXT_MAX];

        if (release)
                (void)fprintf(out, "%s%s %s", separator(first), what, lkg_release_text(release, text));
}

static void put_notes(FILE *out, const struct lkg_field *field)
{
        bool first = true;

        put_release(out, &first, "since", field->since);
        put_release(out, &first, "until", field->until);
        if (field->gate)
                (void)fprintf(out, "%sfeature gate `%s`", separator(&first), field->gate);
        if (field->flags & LKG_FIELD_RESOLVED)
                (void)fprintf(out, "%spath, in the base relative to its directory", separator(&first));
        else if (field->flags & LKG_FIELD_PATH)
                (void)fprintf(out, "%spath", separator(&first));
        if (field->flags & LKG_FIELD_SECRET)
                (void)fprintf(out, "%ssecret, never shown", separator(&first));
        if (strcmp(field->guard, LKG_GUARD_NOTHING) != 0) {
                (void)fprintf(out, "%shardened: ", separator(&first));
                put_cell(out, field->guard);
        }
        if (field->unit)
                (void)fprintf(out, "%sunit: %s", separator(&first), field->unit);
        if (field->deprecated) {
                (void)fprintf(out, "%sdeprecated: ", separator(&first));
                put_cell(out, field->deprecated);
        }
}

static void put_field(FILE *out, const struct lkg_field *field)
{
        (void)fprintf(out, "| `%s` | ", field->path);
        put_cell(out, field->doc);
        (void)fprintf(out, " | `%s` | ", field->type);
        if (field->def)
                (void)fprintf(out, "`%s`", field->def);
        (void)fputs(" | ", out);
        put_cell(out, field->rule);
        (void)fputs(" | ", out);
        if (field->flag)
                (void)fprintf(out, "`--%s`", field->flag);
        (void)fputs(" | ", out);
        put_notes(out, field);
        (void)fputs(" |\n", out);
}

static int write_fields(FILE *out, const char *name)
{
        for (size_t k = 0; k < lkg_n_kinds; k++) {
                const struct lkg_kind *kind = &lkg_kinds[k];

                if (strcmp(kind->kind, name) != 0)
                        continue;
                (void)fprintf(
                        out,
                        "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
                        "<!-- Written by the build out of the field tables. -->\n"
                        "# %s %s\n\n"
                        "Every field that %s reads from its document, in the releases 1.%d to 1.%d. `[]` is "
                        "an "
                        "item of a list. A type with a star may be unset, which is not the same as empty; "
                        "of "
                        "any other the empty value means the default. A default is JSON; where the column "
                        "is "
                        "empty there is none, or \"allowed\" says how it comes about. \"hardened\" is what "
                        "speaks against a remote configuration that sets the field: `guard.profile: "
                        "hardened` denies it (lkgfs.conf(5)). `lkgfs explain FIELD` shows the same on a "
                        "terminal.\n\n"
                        "| field | what it is for | type | default | allowed | flag | notes |\n"
                        "| --- | --- | --- | --- | --- | --- | --- |\n",
                        kind->kind, kind->api_version, kind->component, LKG_RELEASE_MIN - 100,
                        LKG_RELEASE_MAX - 100);
                for (size_t i = 0; i < *kind->n_fields; i++)
                        put_field(out, &kind->fields[i]);
                return 0;
        }
        return -ENOENT;
}

/* ---- what hardened denies ---- */

static void put_guarded(FILE *out, const char *path, const char *guard)
{
        if (strcmp(guard, LKG_GUARD_NOTHING) != 0)
                (void)fprintf(out, "%s %.*s\n", path, (int)strcspn(guard, ":"), guard);
}

static void write_hardened(FILE *out)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++)
                        put_guarded(out, lkg_kinds[k].fields[i].path, lkg_kinds[k].fields[i].guard);
        for (size_t i = 0; i < lkg_n_guarded_keys; i++)
                put_guarded(out, lkg_guarded_keys[i].path, lkg_guarded_keys[i].guard);
}

int main(int argc, char **argv)
{
        int r = -EINVAL;

        if (argc == 2 && strcmp(argv[1], "findings") == 0) {
                write_findings(stdout);
                r = 0;
        } else if (argc == 2 && strcmp(argv[1], "hardened") == 0) {
                write_hardened(stdout);
                r = 0;
        } else if (argc == 3 && strcmp(argv[1], "fields") == 0) {
                r = write_fields(stdout, argv[2]);
        }
        if (r < 0) {
                (void)fprintf(stderr, "usage: %s findings | fields KIND | hardened\n", argv[0]);
                return EXIT_FAILURE;
        }
        if (fflush(stdout) != 0 || ferror(stdout)) {
                perror("standard output");
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
